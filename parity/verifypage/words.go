package verifypage

import (
	"fmt"
	"math"
	"strings"

	"samebits/parity/matrix"
)

// spread sums up ratios.
type spread struct {
	n, within   int // within: at most 1
	logs        float64
	least, most float64
}

func spreadOf(cells []matrix.Cell, ratio func(matrix.Cell) float64) (s spread) {
	for _, c := range cells {
		x := ratio(c)
		if x <= 0 {
			continue
		}
		if s.n == 0 {
			s.least, s.most = x, x
		}
		s.n, s.logs, s.least, s.most = s.n+1, s.logs+math.Log(x), min(s.least, x), max(s.most, x)
		if x <= 1 {
			s.within++
		}
	}
	return s
}

func (s spread) geomean() float64 { return math.Exp(s.logs / float64(s.n)) }

func (s spread) String() string {
	if s.n == 1 {
		return fmt.Sprintf("%.3f in one cell", s.least)
	}
	return fmt.Sprintf("geomean %.3f of %d cells; %.3f to %.3f", s.geomean(), s.n, s.least, s.most)
}

// phrase is a part of a text: code, or not.
type phrase struct {
	Text string
	Code bool
}

// ticks finds code between backticks in a text of ours.
func ticks(text string) []phrase {
	var all []phrase
	for i, part := range strings.Split(text, "`") {
		if part != "" {
			all = append(all, phrase{part, i%2 == 1})
		}
	}
	return all
}

// thousands writes a count in groups of three digits.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	var b strings.Builder
	for i, c := range s {
		if left := len(s) - i; i > 0 && left%3 == 0 && s[i-1] != '-' {
			b.WriteRune('\u202f') // a narrow space that does not break
		}
		b.WriteRune(c)
	}
	return b.String()
}
