package diag_test

import (
	"fmt"
	"strings"
	"testing"

	"samebits/bridge/diag"
)

func TestProblemText(t *testing.T) {
	for _, c := range []struct {
		name string
		p    diag.Problem
		want string
	}{
		{"all fields", diag.Problem{Reason: "R", Summary: "is wrong", Detail: "do this", Path: "values[1]"}, "values[1]: R: is wrong (do this)"},
		{"no path, no detail", diag.Problem{Reason: "R", Summary: "is wrong"}, "R: is wrong"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.p.String(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestErr(t *testing.T) {
	if diag.Limit != 200 {
		t.Errorf("%d problems are listed", diag.Limit)
	}
	one, two := diag.Problem{Reason: "R", Summary: "is wrong"}, diag.Problem{Reason: "S", Summary: "is wrong, too", Path: "p"}
	for _, c := range []struct {
		ps   diag.Problems
		text string
	}{
		{diag.Problems{one}, "R: is wrong"},
		{diag.Problems{one, two}, "2 problems:\n  R: is wrong\n  p: S: is wrong, too"},
	} {
		if err := c.ps.Err(); err == nil || err.Error() != c.text {
			t.Errorf("%v instead of %s", err, c.text)
		}
	}
	if text := (diag.Problems{}).Error(); text != "no problems" {
		t.Error(text)
	}
}

func TestOfSeesThroughWrapping(t *testing.T) {
	err := fmt.Errorf("load: %w", diag.New("R", "weights/a", "%d is wrong", 7))
	ps, ok := diag.Of(err)
	if !ok || len(ps) != 1 || ps[0].Summary != "7 is wrong" {
		t.Errorf("Of = %v, %v", ps, ok)
	}
	if _, ok := diag.Of(fmt.Errorf("plumbing")); ok {
		t.Error("Of found problems in an error without any")
	}
}

func TestAddStopsAtLimit(t *testing.T) {
	var ps diag.Problems
	if ps.Err() != nil {
		t.Fatal("no problems are an error")
	}
	for i := range 3 * diag.Limit {
		ps.Add("R", "", "number %d", i)
	}
	if len(ps) != diag.Limit+1 || ps[diag.Limit].Reason != "MORE_PROBLEMS" {
		t.Errorf("%d problems, last %v", len(ps), ps[len(ps)-1])
	}
	if !strings.HasPrefix(ps.Error(), fmt.Sprintf("%d problems:\n  R: number 0\n", diag.Limit+1)) {
		t.Errorf("text starts %.60q", ps.Error())
	}
}

// What a hostile file or plugin writes does a terminal no harm.
func TestReadable(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"plain", "weights/läyer1: 3 × 4\n\tmore", "weights/läyer1: 3 × 4\n\tmore"},
		{"escape sequence", "a\x1b[31mb\rc\x7f", `a\x1b[31mb c\x7f`},
		{"other space", "proto:\u00a0torn", "proto: torn"},
		{"direction of writing", "a\u202eb", `a\u202eb`},
		{"no UTF-8", "a\xffb", `a\xffb`},
		{"the character that stands for none", "a\ufffdb", "a\ufffdb"},
		{"that character, and one that is spelled out", "a\ufffd\a", "a\ufffd\\a"},
		{"quotes", `it's "a\b"` + "\a", `it's "a\b"\a`},
		{"long", strings.Repeat("é", 3000), strings.Repeat("é", 2048) + "…"},
		{"long, cut behind a character", "x" + strings.Repeat("é", 3000), "x" + strings.Repeat("é", 2048) + "…"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := diag.Readable(c.text); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			ps, _ := diag.Of(diag.New("R", c.text, "%s", c.text))
			if ps[0].Path != c.want || ps[0].Summary != c.want {
				t.Errorf("problem %q", ps[0])
			}
		})
	}
}
