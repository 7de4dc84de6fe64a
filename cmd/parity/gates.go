package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"samebits/parity/gate"
)

// askable are the gates that can be judged alone.
func askable() []gate.ID { return append(gate.Order(gate.Predict), gate.Seam, gate.Shape) }

func (f *verifyFlags) addGates(c *cobra.Command) {
	c.Flags().StringSliceVar(&f.gates, "gate", nil, "gates to judge alone, as MOVE or STREAM,THREAD (docs/gates.md)")
	names := make([]string, 0, len(askable()))
	for _, id := range askable() {
		names = append(names, string(id))
	}
	_ = c.RegisterFlagCompletionFunc("gate", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

// checkGates finds what is wrong with --gate.
func (f *verifyFlags) checkGates() error {
	if f.given("gate") && len(f.gates) == 0 {
		return usagef("--gate is empty; %s", known())
	}
	for i, name := range f.gates {
		if !slices.Contains(askable(), gate.ID(name)) {
			return usagef("--gate %q; %s", name, known())
		}
		if slices.Contains(f.gates[:i], name) {
			return usagef("--gate %s is there twice", name)
		}
	}
	if len(f.gates) > 0 && slices.Contains(f.training.modes, gate.Train) {
		return usagef("--gate is of mode %s: a training run is judged as a whole", gate.Predict)
	}
	return nil
}

func known() string {
	return fmt.Sprintf("there are %s", strings.Trim(fmt.Sprint(askable()), "[]"))
}

// alone are the gates that are judged alone, in their order; nil: all are judged.
func (f *verifyFlags) alone() []gate.ID {
	var ids []gate.ID
	for _, id := range askable() {
		if slices.Contains(f.gates, string(id)) {
			ids = append(ids, id)
		}
	}
	return ids
}
