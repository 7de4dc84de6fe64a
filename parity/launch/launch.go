// Package launch finds the plugins on this machine and starts them for the suite.
package launch

import (
	"context"
	"errors"
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
	devices   []Device      // as they were found

	tuning  Tuning
	forking sync.Mutex
	zygote  *host.Zygote
	slow    error // that it was not there in time; said once a plugin by itself is
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

// Tuning says how plugins are started. The zero value starts each by itself, as it likes.
type Tuning struct {
	Threads int // that PyTorch takes in each process; 0: its own choice
	// Fork has reference plugins forked by one process that has imported PyTorch. Where that cannot be done, Warn is told
	// why, once, and they are started one by one. Where these are too slow as well, their own error says all.
	Fork bool
	Warn func(error)
}

// Tune is for the plugins that start from now on. Close ends what it may have started.
func (l *Launcher) Tune(t Tuning) { l.tuning = t }

// Close ends the process that forks plugins, if there is one.
func (l *Launcher) Close() {
	l.forking.Lock()
	defer l.forking.Unlock()
	if l.zygote != nil {
		l.zygote.Stop()
		l.zygote = nil
	}
}

// Reference starts the plugin in Python.
func (l *Launcher) Reference(ctx context.Context) (suite.Arm, error) {
	c, err := l.referenceConfig()
	if err != nil {
		return nil, err
	}
	if c.Zygote = l.forker(ctx, c); c.Zygote != nil {
		a, err := l.start(ctx, c)
		var broken *host.Error
		if !errors.As(err, &broken) || broken.Reason != host.ReasonStart {
			return a, err
		}
		l.cannotFork(err) // the zygote is gone
		c.Zygote = nil
	}
	a, err := l.start(ctx, c)
	if err == nil {
		l.sayThatItWasSlow()
	}
	return a, err
}

// ReferenceFromScratch starts the plugin in Python, and is never a fork.
func (l *Launcher) ReferenceFromScratch(ctx context.Context) (suite.Arm, error) {
	c, err := l.referenceConfig()
	if err != nil {
		return nil, err
	}
	return l.start(ctx, c)
}

func (l *Launcher) referenceConfig() (host.Config, error) {
	python, err := l.Python()
	if err != nil {
		return host.Config{}, err
	}
	c := l.config("reference", python)
	c.Args = []string{"-m", "samebits_reference"}
	c.Env = append(l.pythonEnvironment(), "OPENBLAS_NUM_THREADS=1") // its threads could not be forked; torch has others
	if l.tuning.Threads > 0 {
		c.Env = append(c.Env, fmt.Sprintf("%s=%d", threadsVariable, l.tuning.Threads), "OMP_WAIT_POLICY=passive")
	}
	return c, nil
}

// forker gives the process that forks plugins, and starts it first if it must; nil if there shall be none.
func (l *Launcher) forker(ctx context.Context, c host.Config) *host.Zygote {
	l.forking.Lock()
	defer l.forking.Unlock()
	if !l.tuning.Fork || l.zygote != nil {
		return l.zygote
	}
	c.Args = []string{"-m", "samebits_reference.zygote"}
	z, err := host.StartZygote(ctx, c)
	var broken *host.Error
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil
	case errors.As(err, &broken) && broken.Reason == host.ReasonStartDeadline:
		l.tuning.Fork, l.slow = false, err
		return nil
	default:
		l.stopForking(err)
		return nil
	}
	l.zygote = z
	return z
}

func (l *Launcher) sayThatItWasSlow() {
	l.forking.Lock()
	defer l.forking.Unlock()
	if l.slow != nil && l.tuning.Warn != nil {
		l.tuning.Warn(l.slow)
	}
	l.slow = nil
}

func (l *Launcher) cannotFork(why error) {
	l.forking.Lock()
	defer l.forking.Unlock()
	l.stopForking(why)
}

// stopForking has later plugins started one by one.
func (l *Launcher) stopForking(why error) {
	if !l.tuning.Fork {
		return
	}
	l.tuning.Fork = false
	if l.zygote != nil {
		l.zygote.Stop()
		l.zygote = nil
	}
	if l.tuning.Warn != nil {
		l.tuning.Warn(why)
	}
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
			Disturb: d, Situate: d, Trace: d, Measure: d, Stats: d, Process: d}
	}
	return c
}

// threadsVariable tells the reference plugin of them.
const threadsVariable = "SAMEBITS_THREADS"

// librariesVariable tells the native engine where PyTorch's CUDA libraries are.
const librariesVariable = "SAMEBITS_TORCH_LIB"

// handedOn are settings of the native engine itself: where it caches, and what.
var handedOn = []string{cacheVariable, "SAMEBITS_PLAN_CACHE"}

func (l *Launcher) nativeEnvironment() []string {
	var env []string
	for _, name := range handedOn {
		if value := l.getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	folders := l.getenv(librariesVariable)
	if folders == "" {
		folders = l.libraries()
	}
	if folders == "" {
		return env
	}
	return append(env, librariesVariable+"="+folders)
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
