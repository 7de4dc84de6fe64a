package diff

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"samebits/parity/result"
)

// Repetition is one of several results of a cell, with what it has otherwise than the one that all are held to.
type Repetition struct {
	Number    int // from 1
	Verdict   result.Verdict
	Summary   string
	Different []Row // of what counts
}

// Repetitions are results of one cell that ought to be the same.
type Repetitions struct {
	Of    int // the number that the others are held to; 0: none says anything of the cell
	Asked int // those that were not made among them
	List  []Repetition
}

// Repeated holds results of one cell to the first that says something of it. A nil one was not made.
func Repeated(results []*result.Result) Repetitions {
	all := Repetitions{Asked: len(results)}
	for i, r := range results {
		if all.Of == 0 && r != nil && r.Judged() {
			all.Of = i + 1
		}
	}
	for i, r := range results {
		if r == nil {
			continue
		}
		one := Repetition{Number: i + 1, Verdict: r.Verdict, Summary: r.Summary}
		if all.Of > 0 {
			for _, row := range Results(*results[all.Of-1], *r).Rows {
				if row.Counts && row.Different() {
					one.Different = append(one.Different, row)
				}
			}
		}
		all.List = append(all.List, one)
	}
	return all
}

// Same reports whether there is a result, and all have its verdict, gates and digests.
func (r Repetitions) Same() bool {
	return r.Of > 0 && !slices.ContainsFunc(r.List, func(one Repetition) bool { return len(one.Different) > 0 })
}

// Write writes a line for each repetition, and one for all.
func (r Repetitions) Write(w io.Writer) error {
	number := fmt.Sprint(len(r.List))
	if len(r.List) < r.Asked {
		number += fmt.Sprintf(" of %d", r.Asked)
	}
	if len(r.List) == 0 {
		_, err := fmt.Fprintf(w, "%s repetitions\n", number)
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "REPETITION\tVERDICT\tOTHERWISE THAN IN %d\n", r.Of)
	counts := map[result.Verdict]int{}
	different := 0
	for _, one := range r.List {
		counts[one.Verdict]++
		if len(one.Different) > 0 {
			different++
		}
		fmt.Fprintf(t, "%d\t%s\t%s\n", one.Number, one.Verdict, cmp.Or(one.differences(), "-"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	var words []string
	for _, v := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%d %s", counts[v], v))
	}
	end := "verdicts, gates and digests are the same in all"
	if different > 0 {
		end = fmt.Sprintf("verdict, gates or digests are others in %d", different)
	} else if r.Of == 0 {
		end = "none says anything of the cell"
	}
	_, err := fmt.Fprintf(w, "%s repetitions: %s; %s\n", number, strings.Join(words, ", "), end)
	return err
}

// mostNamed is how many differences a line names.
const mostNamed = 3

func (r Repetition) differences() string {
	var words []string
	for i, row := range r.Different {
		if i == mostNamed {
			words = append(words, fmt.Sprintf("%d more", len(r.Different)-mostNamed))
			break
		}
		words = append(words, fmt.Sprintf("%s %s: %s instead of %s", row.Section, row.What, short(row.B), short(row.A)))
	}
	return strings.Join(words, "; ")
}
