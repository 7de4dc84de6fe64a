package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"samebits/bridge/diag"
	"samebits/parity/gate"
	"samebits/parity/schedule"
)

// trainingFlags choose the mode, and what a training run is made of.
type trainingFlags struct {
	modes  []string
	values schedule.Recipe
	given  func(flag string) bool // whether it was named
	flags  []string               // those that say nothing of mode predict
}

func (f *trainingFlags) add(c *cobra.Command) {
	d := schedule.Default(20)
	flags := c.Flags()
	f.given = flags.Changed
	flags.StringSliceVar(&f.modes, "mode", []string{gate.Predict}, "predict: one step of inference; train: a training run")
	flags.IntVar(&f.values.Steps, "steps", d.Steps, "train: steps of the run")
	flags.Float64Var(&f.values.LR, "lr", d.LR, "train: learning rate at the end of the warm-up")
	flags.IntVar(&f.values.WarmupSteps, "warmup-steps", 0, "train: steps of quadratic warm-up (default: a quarter)")
	flags.IntVar(&f.values.PlateauSteps, "plateau-steps", d.PlateauSteps, "train: steps at the least learning rate, at the end")
	flags.Float64Var(&f.values.MinLRRatio, "min-lr-ratio", d.MinLRRatio, "train: least learning rate, as a part of --lr")
	flags.Float64Var(&f.values.Momentum, "momentum", d.Momentum, "train: momentum of SGD")
	flags.Float64Var(&f.values.WeightDecay, "weight-decay", d.WeightDecay, "train: weight decay of weights that belong to no normalisation")
	flags.Float64Var(&f.values.EMADecay, "ema-decay", d.EMADecay, "train: decay of the moving average of weights")
	flags.Float64Var(&f.values.EMATau, "ema-tau", d.EMATau, "train: steps over which that decay grows")
	f.flags = []string{"steps", "lr", "warmup-steps", "plateau-steps", "min-lr-ratio", "momentum", "weight-decay", "ema-decay", "ema-tau"}
	_ = c.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions([]string{gate.Predict, gate.Train}, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

// stray finds a flag of training where nothing is trained.
func (f *trainingFlags) stray() error {
	if i := slices.IndexFunc(f.flags, f.given); i >= 0 && !slices.Contains(f.modes, gate.Train) {
		return usagef("--%s is of --mode train", f.flags[i])
	}
	return nil
}

// recipe gives what the flags describe, for a run with so many images in a batch; nothing in mode predict.
func (f *trainingFlags) recipe(mode string, batch int64) (schedule.Recipe, error) {
	switch mode {
	case gate.Predict:
		return schedule.Recipe{}, nil
	case gate.Train:
	default:
		return schedule.Recipe{}, usagef("--mode %q; there are %s and %s", mode, gate.Predict, gate.Train)
	}
	r := f.values
	if !f.given("warmup-steps") {
		r.WarmupSteps = schedule.Default(r.Steps).WarmupSteps
	}
	if batch < 2 {
		return r, usagef("--batch %d; training needs two images or more, for there must be a shorter batch", batch)
	}
	if err := r.Check(); err != nil {
		ps, _ := diag.Of(err)
		return r, usagef("--%s: %s", strings.ReplaceAll(ps[0].Path, "_", "-"), ps[0].Summary)
	}
	return r, nil
}
