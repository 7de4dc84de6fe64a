package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"samebits/bridge/host"
	"samebits/parity/gate"
	"samebits/parity/launch"
	"samebits/parity/suite"
)

// pluginFlags say where plugins are and how to treat them.
type pluginFlags struct {
	python    string
	predictor string
	trainer   string
	timeout   time.Duration
	verbose   bool
}

func (f *pluginFlags) add(c *cobra.Command) {
	flags := c.PersistentFlags()
	flags.StringVar(&f.python, "python", "", "interpreter that has PyTorch (default: $"+launch.PythonVariable+", .venv beside bin, python3)")
	flags.StringVar(&f.predictor, "predictor", "", "plugin of the native engine (default: $"+launch.PredictorVariable+", the one beside this program)")
	flags.StringVar(&f.trainer, "trainer", "", "plugin of the native engine for training (default: $"+launch.TrainerVariable+", the one beside this program)")
	flags.DurationVar(&f.timeout, "timeout", 0, "deadline for each call on a plugin, as 90s or 10m (default: one for each kind of call)")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "show what plugins write")
}

// start makes the backend that the flags describe.
func (a *app) start() (backend, error) {
	if a.plugins.timeout < 0 {
		return nil, usagef("--timeout %v is negative", a.plugins.timeout)
	}
	o := launch.Options{Python: a.plugins.python, Predictor: a.plugins.predictor, Trainer: a.plugins.trainer,
		Deadline: a.plugins.timeout, Version: versionText()}
	if a.plugins.verbose {
		o.Log = func(l host.Line) { a.logLine(l) }
	}
	return a.backend(o), nil
}

// cellFlags choose the cells of the families that are named.
type cellFlags struct {
	size, task string
	imgsz      int64
	batch      int64
	precisions []string
	profile    string
	seed       uint64
	device     string
	training   trainingFlags
	given      func(flag string) bool // whether it was named
}

func (f *cellFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.size, "size", "", "size of the family, as t or 18 (default: the family's first)")
	flags.StringVar(&f.task, "task", "", "task, as detect or classify (default: the family's first)")
	flags.Int64Var(&f.imgsz, "imgsz", 0, "height and width of the images (default: what the family was made for)")
	flags.Int64Var(&f.batch, "batch", 0, "images in a batch (default: 1, in training 16)")
	flags.StringSliceVar(&f.precisions, "precision", []string{"fp32"}, "fp32, bf16 or fp16; several by commas or by repeating the flag")
	flags.StringVar(&f.profile, "profile", "exact-1", "numerics profile")
	flags.Uint64Var(&f.seed, "seed", 0, "seed of weights and inputs")
	flags.StringVar(&f.device, "device", "auto", "cuda:N, host, or auto: the first GPU if there is one")
	f.given = flags.Changed
	f.training.add(c)
	for flag, words := range map[string][]string{
		"precision": {"fp32", "bf16", "fp16"},
		"device":    {"auto", "host", "cuda:0"},
		"task":      {"detect", "segment", "pose", "point", "classify", "semantic", "depth", "restore", "matte"},
		"profile":   {"exact-1"},
	} {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	}
}

// cells gives one cell for each family and precision.
func (f *cellFlags) cells(families []string) ([]suite.Cell, error) {
	if f.imgsz < 0 || f.batch < 0 || f.batch == 0 && f.given("batch") {
		return nil, usagef("--imgsz and --batch are positive numbers")
	}
	precisions := []string{"fp32", "bf16", "fp16"}
	batch := max(f.batch, 1)
	if f.training.mode == gate.Train {
		precisions = precisions[:2]
		if batch = f.batch; batch == 0 {
			batch = 16
		}
	}
	recipe, err := f.training.recipe(batch)
	if err != nil {
		return nil, err
	}
	if len(f.precisions) == 0 {
		return nil, usagef("--precision is empty; there are fp32, bf16 and fp16")
	}
	var cells []suite.Cell
	for _, family := range families {
		for _, p := range f.precisions {
			if !slices.Contains(precisions, p) {
				return nil, usagef("--precision %q; in mode %s there are %s", p, f.training.mode, strings.Join(precisions, ", "))
			}
			cells = append(cells, suite.Cell{Family: family, Size: f.size, Task: f.task, ImgSize: f.imgsz, Batch: batch,
				Precision: p, Profile: f.profile, Seed: f.seed, Device: f.device, Mode: f.training.mode, Training: recipe})
		}
	}
	return cells, nil
}

// chooseDevice resolves auto, and says why if that is the host.
func (f *cellFlags) chooseDevice(ctx context.Context, b backend) (why string, err error) {
	if number, isGPU := strings.CutPrefix(f.device, "cuda:"); f.device == suite.HostDevice ||
		isGPU && number != "" && strings.Trim(number, "0123456789") == "" {
		return "", nil
	}
	if f.device != "auto" {
		return "", usagef("--device %q; there are auto, host and cuda:N", f.device)
	}
	devices, err := b.Devices(ctx)
	if err != nil {
		return "", err
	}
	why = "there is none"
	for _, d := range devices {
		if !strings.HasPrefix(d.Name, "cuda:") {
			continue
		}
		if d.Problem == "" {
			f.device = d.Name
			return "", nil
		}
		why, _, _ = strings.Cut(d.Problem, "\n")
	}
	f.device = suite.HostDevice
	return "no GPU can be used: " + why, nil
}
