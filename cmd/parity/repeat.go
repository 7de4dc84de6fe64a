package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"samebits/parity/diff"
	"samebits/parity/result"
	"samebits/parity/suite"
)

// checkRepeat finds what does not go together with repetitions.
func (f *verifyFlags) checkRepeat() error {
	if err := checkBounds(bounded{"repeat", f.repeat, 1, mostRepeats, f.given("repeat")}); err != nil {
		return err
	}
	if f.repeat > 1 && (f.keep != "" || len(f.matrix) > 0 || f.html != "") {
		return usagef("--repeat does not go together with --keep, --matrix and --html: it is of one cell")
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

// unit is what a campaign has many of.
func (c *campaign) unit() string {
	if c.flags.repeat > 1 {
		return "repetitions"
	}
	return "cells"
}

// timing says how steps are measured. Repetitions are about bits; a step is measured alone on the device, and the others would wait.
func (c *campaign) timing() suite.Timing {
	if c.flags.repeat > 1 {
		return suite.Timing{}
	}
	return suite.DefaultTiming()
}

// keptRepetitions reads what is finished in the folders of repetitions, by their numbers. A number is the same with fewer zeros
// before it: there were fewer repetitions then.
func keptRepetitions(output string) (map[int][]result.Kept, error) {
	entries, err := os.ReadDir(output)
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	all := map[int][]result.Kept{}
	var wrong []error
	for _, e := range entries {
		number, err := strconv.Atoi(e.Name())
		if err != nil || !e.IsDir() {
			continue
		}
		kept, err := result.ReadFolder(filepath.Join(output, e.Name()))
		wrong = append(wrong, err)
		for _, k := range kept {
			k.File = filepath.Join(e.Name(), k.File)
			all[number] = append(all[number], k)
		}
	}
	return all, errors.Join(wrong...)
}

// shown reports whether a repetition is printed: it is the first, or not as it should be.
func (c *campaign) shown(r result.Result) bool {
	first := !c.said
	c.said = true
	return c.flags.json || first || r.Verdict.Exit() != result.ExitExact
}

// sayRepetition keeps a result in a folder of its own, and prints it if it is to be shown.
func (c *campaign) sayRepetition(number int, r result.Result) error {
	if r.Reason == suite.Interrupted && !c.flags.json {
		return nil // the end says how many are finished
	}
	flags := *c.flags
	if flags.output != "" && r.Judged() {
		flags.output = filepath.Join(flags.output, fmt.Sprintf("%0*d", len(fmt.Sprint(flags.repeat)), number+1))
		if err := os.MkdirAll(flags.output, 0o755); err != nil {
			flags.output = "" // it is printed all the same
			return errors.Join(err, c.app.say(&flags, r))
		}
	}
	if c.shown(r) {
		return c.app.say(&flags, r)
	}
	_, err := flags.keepResult(r)
	return err
}

// compare ends repetitions with a table of those that are finished, and gives the exit status.
func (c *campaign) compare(status int) (int, error) {
	finished := slices.Clone(c.results)
	for i, r := range finished {
		if r != nil && r.Reason == suite.Interrupted {
			finished[i] = nil
		}
	}
	all := diff.Repeated(finished)
	to := c.app.out
	if c.flags.json {
		to = c.app.err // stdout has the results
	}
	if !all.Same() {
		status = max(status, result.ExitDiffers)
	}
	return status, all.Write(to)
}
