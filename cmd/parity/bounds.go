package main

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The most of what is counted. More is a slip of the hand: it would run for years, or take all memory before it begins.
const (
	mostRounds     = 10_000
	mostIterations = 1_000_000
	mostStarts     = 1000
	mostRepeats    = 100_000
	mostJobs       = 1024
)

// bounded is a flag that counts something.
type bounded struct {
	flag        string
	value       int
	least, most int
	given       bool // otherwise 0 is one's own choice
}

// checkBounds refuses the first number that lies out of its bounds.
func checkBounds(all ...bounded) error {
	for _, b := range all {
		if b.value == 0 && !b.given {
			continue
		}
		if b.value < b.least || b.value > b.most {
			return usagef("--%s %d: it takes %d to %d", b.flag, b.value, b.least, b.most)
		}
	}
	return nil
}

// valueOf says what the value of a flag is, by its type. What is missing says so itself.
var valueOf = map[string]string{
	"int":         "a whole number",
	"int64":       "a whole number",
	"uint64":      "a whole number from 0 to 18446744073709551615",
	"float64":     "a number, as 0.5",
	"duration":    "a time, as 90s or 10m",
	"bool":        "true or false",
	"int64Slice":  "whole numbers, by commas",
	"stringSlice": "words, by commas, without quotes between",
}

// flagError says what is wrong with a command's flags.
func flagError(c *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		flag := invalid.GetFlag()
		why := errors.Unwrap(invalid).Error()
		if what, known := valueOf[flag.Value.Type()]; known {
			why = "it takes " + what
			if errors.Is(err, strconv.ErrRange) {
				why += ", and none so large"
			}
		}
		return usagef("--%s %q: %s; see %s --help", flag.Name, invalid.GetValue(), why, c.CommandPath())
	}
	return usagef("%w; see %s --help", err, c.CommandPath())
}
