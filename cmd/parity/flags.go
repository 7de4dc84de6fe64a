package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"samebits/bridge/host"
	"samebits/parity/gate"
	"samebits/parity/launch"
	"samebits/parity/shell"
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

// given are the flags that name plugins, as they were given, a space before each.
func (f *pluginFlags) given() string {
	var b strings.Builder
	for _, flag := range []struct{ name, value string }{{"python", f.python}, {"predictor", f.predictor}, {"trainer", f.trainer}} {
		if flag.value != "" {
			b.WriteString(" --" + flag.name + " " + shell.Quote(flag.value))
		}
	}
	return b.String()
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
	size       string
	tasks      []string
	imgsz      imageSize
	batch      int64
	precisions []string
	profile    string
	seed       uint64
	device     string
	training   trainingFlags
	given      func(flag string) bool // whether it was named
}

func (f *cellFlags) add(c *cobra.Command) {
	f.addPredict(c)
	f.training.add(c)
}

// addPredict leaves the flags of training out.
func (f *cellFlags) addPredict(c *cobra.Command) {
	f.training.modes = []string{gate.Predict}
	flags := c.Flags()
	flags.StringVar(&f.size, "size", "", "size of the family, as t or 18 (default: the family's first)")
	flags.StringSliceVar(&f.tasks, "task", nil, "task, as detect or classify (default: the family's first)")
	flags.Var(&f.imgsz, "imgsz", "height and width of the images (default: what the family was made for)")
	flags.Int64Var(&f.batch, "batch", 0, "images in a batch (default: 1, in training 16)")
	flags.StringSliceVar(&f.precisions, "precision", []string{"fp32"}, "fp32, bf16 or fp16; several by commas or by repeating the flag")
	flags.StringVar(&f.profile, "profile", "exact-1", "numerics profile")
	flags.Uint64Var(&f.seed, "seed", 0, "seed of weights and inputs")
	flags.StringVar(&f.device, "device", "auto", "cuda:N, host, or auto: the first GPU if there is one")
	f.given = flags.Changed
	for flag, words := range map[string][]string{
		"precision": {"fp32", "bf16", "fp16"},
		"device":    {"auto", "host", "cuda:0"},
		"task":      {"detect", "segment", "pose", "point", "classify", "semantic", "depth", "restore", "matte"},
		"imgsz":     {"list", "native"},
		"profile":   {"exact-1"},
	} {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	}
}

// imageSize is a number, or a word for the numbers of a table.
type imageSize struct {
	pixels int64
	word   string // list, native
}

func (s *imageSize) String() string {
	if s.pixels != 0 {
		return strconv.FormatInt(s.pixels, 10)
	}
	return s.word
}

func (s *imageSize) Set(text string) error {
	if text == "list" || text == "native" {
		*s = imageSize{word: text}
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return errors.New("it is a number, list or native")
	}
	*s = imageSize{pixels: n}
	return nil
}

func (s *imageSize) Type() string { return "size" }

// cells gives one cell for each family, task, mode and precision.
func (f *cellFlags) cells(families []string) ([]suite.Cell, error) {
	if f.imgsz.word == "list" {
		return nil, usagef("--imgsz list is of verify; name a number here")
	}
	tasks := f.tasks
	if len(tasks) == 0 {
		tasks = []string{""}
	}
	var named []suite.Cell
	for _, family := range families {
		for _, task := range tasks {
			named = append(named, suite.Cell{Family: family, Size: f.size, Task: task, ImgSize: f.imgsz.pixels})
		}
	}
	return f.expand(named)
}

// expand gives each of the cells in each mode and precision.
func (f *cellFlags) expand(named []suite.Cell) ([]suite.Cell, error) {
	if err := f.checkNames(named); err != nil {
		return nil, err
	}
	if f.imgsz.pixels < 0 || f.batch < 0 || f.batch == 0 && f.given("batch") || f.imgsz.pixels == 0 && f.imgsz.word == "" && f.given("imgsz") {
		return nil, usagef("--imgsz and --batch are positive numbers")
	}
	if len(f.precisions) == 0 {
		return nil, usagef("--precision is empty; there are fp32, bf16 and fp16")
	}
	if len(f.training.modes) == 0 {
		return nil, usagef("--mode is empty; there are %s and %s", gate.Predict, gate.Train)
	}
	if err := f.training.stray(); err != nil {
		return nil, err
	}
	var cells []suite.Cell
	for _, c := range named {
		for _, mode := range f.training.modes {
			precisions := []string{"fp32", "bf16", "fp16"}
			c.Batch = max(f.batch, 1)
			if mode == gate.Train {
				precisions = precisions[:2]
				if c.Batch = f.batch; c.Batch == 0 {
					c.Batch = 16
				}
			}
			var err error
			if c.Training, err = f.training.recipe(mode, c.Batch); err != nil {
				return nil, err
			}
			c.Mode, c.Profile, c.Seed, c.Device = mode, f.profile, f.seed, f.device
			for _, p := range f.precisions {
				if !slices.Contains(precisions, p) {
					return nil, usagef("--precision %q; in mode %s there are %s", p, mode, strings.Join(precisions, ", "))
				}
				c.Precision = p
				if !slices.Contains(cells, c) { // named twice
					cells = append(cells, c)
				}
			}
		}
	}
	return cells, nil
}

// checkNames refuses what cannot be a name: it would stand in files' names, in commands and on terminals.
func (f *cellFlags) checkNames(named []suite.Cell) error {
	if f.profile == "" {
		return usagef("--profile is empty; there is exact-1")
	}
	for _, c := range append(named, suite.Cell{Family: "any", Size: f.size, Profile: f.profile}) {
		for what, name := range map[string]string{"family": c.Family, "--size": c.Size, "--task": c.Task, "--profile": c.Profile} {
			strange := !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
			if strange || len(name) > 128 {
				return usagef("%s %.128q: this is no name; see parity list", what, name)
			}
		}
	}
	return nil
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
	var ended *host.Error
	if errors.As(err, &ended) && ended.Reason == host.ReasonExited {
		return "", fmt.Errorf("--device auto asks the native plugin, and this one did not answer; --device host or cuda:N does not ask: %w", err)
	}
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
