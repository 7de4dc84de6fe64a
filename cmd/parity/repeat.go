package main

import (
	"fmt"
	"os"
	"path/filepath"

	"samebits/parity/diff"
	"samebits/parity/result"
	"samebits/parity/suite"
)

// checkRepeat finds what does not go together with repetitions.
func (f *verifyFlags) checkRepeat() error {
	switch {
	case f.repeat < 0 || f.repeat == 0 && f.given("repeat"):
		return usagef("--repeat is a positive number")
	case f.repeat > 1 && (f.resume || f.keep != "" || len(f.matrix) > 0 || f.html != ""):
		return usagef("--repeat does not go together with --resume, --keep, --matrix and --html: it is of one cell")
	}
	return nil
}

// repeated gives the one cell as often as it is asked for.
func (f *verifyFlags) repeated(cells []suite.Cell) ([]suite.Cell, error) {
	if f.repeat < 2 {
		return cells, nil
	}
	if len(cells) != 1 {
		return nil, usagef("--repeat is of one cell; these are %d", len(cells))
	}
	all := make([]suite.Cell, f.repeat)
	for i := range all {
		all[i] = cells[0]
	}
	return all, nil
}

// sayRepetition keeps a result in a folder of its own, and prints it if it is the first, or not as it should be.
func (c *campaign) sayRepetition(number int, r result.Result) error {
	flags := *c.flags
	if flags.output != "" {
		flags.output = filepath.Join(flags.output, fmt.Sprintf("%0*d", len(fmt.Sprint(flags.repeat)), number+1))
		if err := os.MkdirAll(flags.output, 0o755); err != nil {
			return err
		}
	}
	first := !c.said
	c.said = true
	if flags.json || first || r.Verdict.Exit() != result.ExitExact {
		return c.app.say(&flags, r)
	}
	if flags.output != "" && r.Judged() {
		_, err := r.Keep(flags.output)
		return err
	}
	return nil
}

// compare ends repetitions with a table of them, and gives the exit status.
func (c *campaign) compare(status int) (int, error) {
	all := diff.Repeated(c.results)
	to := c.app.out
	if c.flags.json {
		to = c.app.err // stdout has the results
	}
	if !all.Same() {
		status = max(status, result.ExitDiffers)
	}
	return status, all.Write(to)
}
