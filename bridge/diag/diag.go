// Package diag holds problems written for people: a stable reason, what is wrong, where, and what to do.
package diag

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Problem is one thing that is wrong with what somebody gave us.
type Problem struct {
	Reason  string // stable id in capitals: UNKNOWN_OPERATION
	Summary string // one line, lower case
	Detail  string // what to do, or more of what was seen; may be empty
	Path    string // where: operations[12].arguments[0], weights/layer1.0.conv1.weight
}

func (p Problem) String() string {
	s := p.Reason + ": " + p.Summary
	if p.Path != "" {
		s = p.Path + ": " + s
	}
	if p.Detail != "" {
		s += " (" + p.Detail + ")"
	}
	return s
}

// Problems is every problem found in one pass. It is an error if there is at least one.
type Problems []Problem

func (ps Problems) Error() string {
	switch len(ps) {
	case 0:
		return "no problems"
	case 1:
		return ps[0].String()
	}
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return fmt.Sprintf("%d problems:\n  %s", len(ps), strings.Join(lines, "\n  "))
}

// Err gives ps as an error, or nil if there is none.
func (ps Problems) Err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

// Limit is how many problems one pass lists: a hostile file could have millions.
const Limit = 200

// Add appends a problem whose summary is made by fmt.Sprintf. After Limit problems it only says that there are more.
func (ps *Problems) Add(reason, path, format string, args ...any) {
	switch {
	case len(*ps) > Limit:
		return
	case len(*ps) == Limit:
		*ps = append(*ps, Problem{Reason: "MORE_PROBLEMS", Summary: fmt.Sprintf("there are more; the first %d are listed", Limit)})
		return
	}
	*ps = append(*ps, Problem{Reason: reason, Path: Readable(path), Summary: Readable(fmt.Sprintf(format, args...))})
}

// mostText is how many bytes of a text are kept: names in a hostile file may be as long as the file.
const mostText = 4 << 10

// Readable makes a text one that can be shown, whoever wrote it: what a terminal might obey is spelled out, other spaces
// are spaces, and what is too long is cut.
func Readable(text string) string {
	if len(text) <= mostText && utf8.ValidString(text) && strings.IndexFunc(text, unreadable) < 0 {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		if b.Len() >= mostText {
			b.WriteString("…")
			break
		}
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case !unreadable(r):
			b.WriteRune(r)
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

func unreadable(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' }

// New makes an error of one problem.
func New(reason, path, format string, args ...any) error {
	var ps Problems
	ps.Add(reason, path, format, args...)
	return ps
}

// Of finds the problems in an error's chain.
func Of(err error) (Problems, bool) {
	var ps Problems
	ok := errors.As(err, &ps)
	return ps, ok
}
