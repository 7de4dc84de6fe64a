package main

import (
	"github.com/spf13/cobra"

	"samebits/parity/launch"
)

type benchFlags struct {
	cellFlags
	selection
	rounds, iterations int
	starts             int
	noCompile          bool
	json, resume       bool
	output             string
}

func (a *app) bench() *cobra.Command {
	var f benchFlags
	c := &cobra.Command{
		Use:   "bench FAMILY...|--all",
		Short: "Measure families: times of a step, memory, time to the first prediction",
		Long: `bench starts all arms of a cell side by side, in processes of their own, on the same weights and input: the four of
verify, and torch.compile in mode reduce-overhead with the profile's switches. It measures one at a time, in rounds; in each
round every arm has one turn, warmed up, and another one is first. For each arm it gives median, minimum and quartiles of
all steps, transfers left out, peak memory of device and host, and what one step launches. Then it measures the time from
the start of a process to its first prediction: of the native engine with and without compiled kernels in its cache, and of
a plain program with eager PyTorch.

nvidia-smi is asked for clocks, power, temperature and what holds the clocks back, before, after each round, and at the
end; nothing is changed. The outputs of arms are compared with eager PyTorch's: an arm that claims the same bits and gives
others is called so, but only verify judges. On the device host the figures are the CPU's, and said to be.

An arm that fails does not take the others' figures along. Cells are chosen as by verify. docs/bench.md explains every
figure.

Exit status: 0 everything was measured; 1 an arm gave other bits than it claims; 2 an arm refused a cell, or the command
was called wrongly; 3 something broke, or the run was interrupted.`,
		Example: `  parity bench yolo9 --size t --imgsz 640 --precision fp32,bf16
  parity bench resnet --no-compile --rounds 10 --json
  parity bench --all --precision fp32 --output bench --resume
  parity bench 'detect/yolo*' --starts 0 --output bench      # bench/bench.json, bench/bench.html`,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runBench(cmd.Context(), &f, args) },
		ValidArgsFunction: a.completeFamilies,
	}
	f.addPredict(c)
	flags := c.Flags()
	flags.Lookup("imgsz").Usage = "height and width of the images; list: as the parity list has it; native: what the family was made for\n(default: native, of --all and patterns list)"
	flags.Lookup("task").Usage = "tasks, as detect or classify (default: the family's first, of --all and patterns all)"
	flags.BoolVar(&f.all, "all", false, "measure all cells of the parity list")
	flags.StringSliceVar(&f.groups, "group", []string{launch.Matrix}, "of --all and patterns: groups of the reference plugin's table")
	flags.IntVar(&f.rounds, "rounds", 5, "rounds, in each of which every arm is measured once")
	flags.IntVar(&f.iterations, "iterations", 0, "steps of an arm in a round (default: as many as fill 0.3 s)")
	flags.IntVar(&f.starts, "starts", 1, "processes to start for each kind of first prediction, with no kernel in the cache one; 0: measure none")
	flags.BoolVar(&f.noCompile, "no-compile", false, "leave torch.compile out")
	flags.BoolVar(&f.json, "json", false, "print one JSON object at the end (docs/bench.md), and nothing else on stdout")
	flags.StringVar(&f.output, "output", "", "folder for "+benchFile+" and "+benchPage+", written anew after each cell; a report of before is kept as bench-1.json")
	flags.BoolVar(&f.resume, "resume", false, "go on with the "+benchFile+" in --output: leave out cells that are measured there")
	return c
}

// The files of --output.
const (
	benchFile = "bench.json"
	benchPage = "bench.html"
)

// benchSeconds is how long an arm is measured in a round.
const benchSeconds = 0.3

func (f *benchFlags) check(families []string) error {
	if err := checkBounds(bounded{"rounds", f.rounds, 1, mostRounds, true}, bounded{"starts", f.starts, 0, mostStarts, true},
		bounded{"iterations", f.iterations, 1, mostIterations, f.given("iterations")}); err != nil {
		return err
	}
	if f.resume && f.output == "" {
		return usagef("--resume needs --output, where the cells are that are measured already")
	}
	return f.checkSelection("bench", families, f.selection)
}
