// Package launch finds the plugins on this machine and starts them for the suite.
package launch

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"samebits/bridge/host"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/parity/suite"
)

// Options say where the plugins are. What is empty is looked for; see Python and Predictor.
type Options struct {
	Python    string // the interpreter that has PyTorch
	Predictor string // the native engine's plugin
	Trainer   string // its plugin for training
	// Deadline bounds each call on a plugin; 0: the host's own deadlines.
	Deadline time.Duration
	// Log takes the lines that plugins write; nil drops them.
	Log     func(host.Line)
	Version string // of the host, told to plugins
}

// Launcher starts plugins. It is a suite.Starter.
type Launcher struct {
	options Options
	roots   []string
	getenv  func(string) string

	libraries func() string // torch's library folders; asked of Python once
	threads   int
	devices   []Device // as they were found
}

// New makes a launcher that looks beside the running program first, then in the working directory.
func New(options Options) *Launcher {
	l := &Launcher{options: options, roots: roots(), getenv: os.Getenv}
	l.libraries = sync.OnceValue(l.findLibraries)
	return l
}

// plugin is a host.Plugin with its memory's methods beside its own.
type plugin struct {
	*host.Plugin
	log func(host.Line)
}

func (p plugin) Alloc(ctx context.Context, n int64) (host.Region, []byte, error) {
	return p.Memory().Alloc(ctx, n)
}

func (p plugin) AllocBank(ctx context.Context, specs []tensor.Spec) (host.Bank, [][]byte, error) {
	return p.Memory().AllocBank(ctx, specs)
}

// Stop ends the plugin. That it had to be killed is no reason to doubt what it said before, but worth a line.
func (p plugin) Stop() {
	if err := p.Plugin.Stop(); err != nil && p.log != nil {
		p.log(host.Line{Time: time.Now(), Plugin: p.Description().Plugin, Level: slog.LevelWarn, Source: "log", Text: err.Error()})
	}
}

// Reference starts the plugin in Python.
func (l *Launcher) Reference(ctx context.Context) (suite.Arm, error) {
	python, err := l.Python()
	if err != nil {
		return nil, err
	}
	c := l.config("reference", python)
	c.Args = []string{"-m", "samebits_reference"}
	c.Env = l.pythonEnvironment()
	if l.threads > 0 {
		c.Env = append(c.Env, fmt.Sprintf("%s=%d", threadsVariable, l.threads))
	}
	return l.start(ctx, c)
}

// Native starts the plugin around the native engine, pointed at the libraries that PyTorch uses.
func (l *Launcher) Native(ctx context.Context, _ []recording.Setting) (suite.Arm, error) {
	return l.startNative(ctx, "predictor", l.Predictor)
}

// NativeTrainer starts the native engine's plugin for training in the same way.
func (l *Launcher) NativeTrainer(ctx context.Context, _ []recording.Setting) (suite.Arm, error) {
	return l.startNative(ctx, "trainer", l.Trainer)
}

func (l *Launcher) startNative(ctx context.Context, name string, find func() (string, error)) (suite.Arm, error) {
	program, err := find()
	if err != nil {
		return nil, err
	}
	c := l.config(name, program)
	c.Env = l.nativeEnvironment()
	return l.start(ctx, c)
}

func (l *Launcher) start(ctx context.Context, c host.Config) (suite.Arm, error) {
	p, err := host.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	return plugin{p, l.options.Log}, nil
}

func (l *Launcher) config(name, command string) host.Config {
	c := host.Config{Name: name, Command: command, Log: l.options.Log, HostVersion: l.options.Version}
	if d := l.options.Deadline; d > 0 {
		c.StartDeadline = d
		c.Deadlines = host.Deadlines{Ping: d, Describe: d, Attach: d, Build: d, Record: d, Export: d, Load: d, Prepare: d, Step: d,
			Disturb: d, Trace: d, Measure: d, Stats: d}
	}
	return c
}

// Threads says how many threads PyTorch takes in each process that is started from now on; 0 leaves it the choice.
func (l *Launcher) Threads(n int) { l.threads = n }

// threadsVariable tells the reference plugin of them.
const threadsVariable = "SAMEBITS_THREADS"

// librariesVariable tells the native engine where PyTorch's CUDA libraries are.
const librariesVariable = "SAMEBITS_TORCH_LIB"

func (l *Launcher) nativeEnvironment() []string {
	folders := l.getenv(librariesVariable)
	if folders == "" {
		folders = l.libraries()
	}
	if folders == "" {
		return nil
	}
	return []string{librariesVariable + "=" + folders}
}

func (l *Launcher) pythonEnvironment() []string {
	if paths := l.pythonPath(); len(paths) > 0 {
		return []string{"PYTHONPATH=" + strings.Join(paths, string(os.PathListSeparator))}
	}
	return nil // it may be installed in the interpreter's own environment
}

// pythonPath lists the folders that hold the reference plugin's packages: of the first root that has them.
func (l *Launcher) pythonPath() []string {
	for _, root := range l.roots {
		var paths []string
		for _, below := range pythonFolders {
			if path := join(root, below); isFolder(join(path, "samebits_reference")) {
				paths = append(paths, path)
			}
		}
		if len(paths) > 0 {
			return paths
		}
	}
	return nil
}
