package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"samebits/bridge/digest"
	"samebits/parity/ci"
	"samebits/parity/launch"
	"samebits/parity/matrix"
	"samebits/parity/report"
	"samebits/parity/result"
	"samebits/parity/suite"
	"samebits/parity/turns"
	"samebits/parity/verifypage"
)

// campaign is the verification of all cells that one command asked for.
type campaign struct {
	app     *app
	flags   *verifyFlags
	backend backend
	cells   []suite.Cell
	results []*result.Result // as the cells; nil: there is none yet

	plan   matrix.Plan
	suites map[string]*suite.Suite // by mode
	calls  *callLog                // nil: nobody wants to know
	lines  io.Writer               // of JSON, a result each

	certifier *certifier // signs what is exact; nil: nobody asked
	said      bool       // of repetitions: the first was printed
}

// callLog writes down where the time goes.
type callLog struct {
	mu    sync.Mutex
	out   io.Writer
	began time.Time
	err   error // the first
}

func (l *callLog) add(c suite.Call) {
	line, err := json.Marshal(struct {
		Cell   string  `json:"cell"`
		Arm    string  `json:"arm"`
		Call   string  `json:"call"`
		At     float64 `json:"at"` // seconds since the start
		Waited float64 `json:"waited"`
		Took   float64 `json:"took"`
	}{c.Cell.String(), c.Arm, c.What, c.Began.Sub(l.began).Seconds(), c.Waited.Seconds(), c.Took.Seconds()})
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		_, err = l.out.Write(append(line, '\n'))
	}
	if l.err == nil {
		l.err = err
	}
}

func (c *campaign) run(ctx context.Context) (err error) {
	defer c.backend.Close()
	if c.flags.calls != "" {
		file, createErr := os.Create(c.flags.calls)
		if createErr != nil {
			return usagef("%w", createErr)
		}
		c.calls = &callLog{out: file, began: time.Now()}
		defer func() { err = errors.Join(err, c.calls.err, file.Close()) }()
	}
	lines, err := c.flags.ci.lines()
	if err != nil {
		return err
	}
	c.lines = lines
	defer func() { err = errors.Join(err, lines.Close()) }()
	device, err := c.device(ctx)
	if err != nil {
		return err
	}
	if err := c.makePlan(device); err != nil {
		return err
	}
	todo, err := c.reuse(ctx, device)
	if err != nil {
		return err
	}
	unkept := c.verify(ctx, todo) // the run has ended by it, what is finished is not lost
	finished := 0
	var results []result.Result
	for _, r := range c.results {
		if r != nil {
			results = append(results, *r)
			if r.Reason != suite.Interrupted {
				finished++
			}
		}
	}
	unkept = errors.Join(unkept, c.flags.ci.write(results), c.page(results))
	status := result.Exit(results)
	if finished < len(c.cells) {
		status = result.ExitInfrastructure
	}
	interrupted := ctx.Err() != nil && finished < len(c.cells) // a signal after the last cell changes nothing
	if interrupted {
		fmt.Fprintf(c.app.err, "interrupted; %d of %d %s are finished\n", finished, len(c.cells), c.unit())
	}
	switch {
	case c.flags.repeat > 1:
		status, err = c.compare(status)
	case !interrupted && len(results) > 0:
		err = c.table(results)
	}
	if err = errors.Join(unkept, err); err != nil {
		return err
	}
	if status != result.ExitExact {
		return statusError(status)
	}
	return nil
}

// device is what the native engine says of the device of all cells. A single cell on the host asks for nothing.
func (c *campaign) device(ctx context.Context) (launch.Device, error) {
	name := c.flags.device
	if name == suite.HostDevice && !c.flags.resume {
		return launch.Device{Name: name}, nil
	}
	return namedDevice(ctx, c.backend, name)
}

// makePlan chooses how much is done at once, and makes the suites.
func (c *campaign) makePlan(device launch.Device) error {
	machine := matrix.ThisMachine()
	machine.GPU = device.Name != suite.HostDevice
	for _, s := range device.Environment {
		if s.Key == "gpu.memory" {
			machine.GPUMemory, _ = strconv.ParseInt(s.Value, 10, 64) // 0: not known
		}
	}
	c.plan = machine.Plan(c.flags.jobs)
	c.backend.Tune(launch.Tuning{Threads: c.plan.Threads, Fork: true, Warn: func(err error) {
		fmt.Fprintf(c.app.err, "each reference process imports PyTorch by itself: %v\n", err)
	}})
	programs, err := programsOf(c.backend)
	if err != nil {
		return err
	}
	order, memory := turns.New(c.plan.Preparing, c.plan.Gathered), turns.NewMemory(c.plan.GPUMemory, c.plan.Jobs)
	c.suites = map[string]*suite.Suite{}
	for _, cell := range c.cells {
		if c.suites[cell.Mode] != nil {
			continue
		}
		s := &suite.Suite{Start: c.backend, Timing: c.timing(), Keep: c.flags.keep, Programs: programs,
			Together: c.plan.Together, Turns: order, Memory: memory, Gates: c.flags.alone(), PluginFlags: c.app.plugins.given()}
		if c.calls != nil {
			s.Calls = c.calls.add
		}
		build := c.backend.EngineBuild
		if cell.Trains() {
			build = c.backend.TrainerBuild
		}
		if s.EngineBuild, err = build(); err != nil {
			return err
		}
		c.suites[cell.Mode] = s
	}
	return nil
}

// programsOf names what takes part in a verification beside the native engine.
func programsOf(b backend) (map[string]string, error) {
	reference, err := b.ReferenceBuild()
	if err != nil {
		return nil, err
	}
	programs := map[string]string{"reference_build": reference}
	self, err := os.Executable()
	if err != nil {
		return programs, nil
	}
	if data, err := os.ReadFile(self); err == nil {
		programs["parity_build"] = digest.Bytes(data)
	}
	return programs, nil
}

// reuse takes what is finished already, and gives the numbers of the other cells.
func (c *campaign) reuse(ctx context.Context, device launch.Device) (todo []int, err error) {
	if !c.flags.resume {
		for i := range c.cells {
			todo = append(todo, i)
		}
		return todo, nil
	}
	kept, wrong := c.kept()
	if wrong != nil {
		fmt.Fprintf(c.app.err, "not reused: %v\n", strings.ReplaceAll(wrong.Error(), "\n", "\nnot reused: "))
	}
	info, err := c.backend.Inspect(ctx)
	if err != nil {
		return nil, err
	}
	here := map[string]matrix.Here{}
	for mode, s := range c.suites {
		here[mode] = hereOn(device, info, s)
	}
	for i, cell := range c.cells {
		found, why := matrix.Reuse(kept(i), cell, here[cell.Mode])
		if found != nil && c.flags.keep != "" && !isFolder(filepath.Join(c.flags.keep, strings.TrimSuffix(found.File, ".json"))) {
			found, why = nil, found.File+": its evidence was not kept"
		}
		if why != "" {
			fmt.Fprintf(c.app.err, "not reused: %s\n", why)
		}
		if found == nil {
			todo = append(todo, i)
			continue
		}
		c.results[i] = &found.Result
		if err := ci.Line(c.lines, found.Result); err != nil {
			return nil, err
		}
		if c.flags.repeat > 1 && !c.shown(found.Result) {
			continue
		}
		if err := c.app.sayReused(c.flags, found); err != nil {
			return nil, err
		}
	}
	fmt.Fprintf(c.app.err, "%d of %d %s are finished already\n", len(c.cells)-len(todo), len(c.cells), c.unit())
	return todo, nil
}

// kept reads what lies in the output: of it, what may be of the cell with a number.
func (c *campaign) kept() (of func(number int) []result.Kept, wrong error) {
	if c.flags.repeat > 1 {
		all, wrong := keptRepetitions(c.flags.output)
		return func(number int) []result.Kept { return all[number+1] }, wrong
	}
	all, wrong := result.ReadFolder(c.flags.output)
	return func(int) []result.Kept { return all }, wrong
}

// hereOn is what can be known of a suite's results on a device before there are any.
func hereOn(device launch.Device, info launch.PythonInfo, s *suite.Suite) matrix.Here {
	h := matrix.Here{}
	for _, setting := range device.Environment {
		h.Take(map[string]string{setting.Key: setting.Value})
	}
	h.Take(s.Programs)
	h.Take(map[string]string{"engine_build": s.EngineBuild, "python": info.Version, "torch": info.Packages["torch"],
		"libreyolo": info.Packages["libreyolo"]})
	return h
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// verify verifies the cells with these numbers.
func (c *campaign) verify(ctx context.Context, todo []int) error {
	parts := 0
	for _, i := range todo {
		parts += suite.Steps(c.cells[i])
	}
	var inWork crowd
	progress := report.NewProgress(c.app.err, c.app.terminal && !c.app.plugins.verbose, len(todo), parts)
	verify := func(ctx context.Context, number int) result.Result {
		cell := c.cells[todo[number]]
		s := *c.suites[cell.Mode]
		s.Progress = func(e suite.Event) { progress.Show(number, e) }
		if c.certifier != nil {
			s.OnRecording = func(file []byte) { c.certifier.saw(todo[number], file) }
		}
		leave := inWork.enter()
		r := s.Verify(ctx, cell)
		advise(&r, leave())
		return r
	}
	done := func(number int, r result.Result) error {
		return progress.Finished(number, r, func() error {
			c.results[todo[number]] = &r
			said := errors.Join(ci.Line(c.lines, r), c.say(todo[number], r))
			if c.certifier == nil || said != nil {
				return said
			}
			return c.certifier.finished(todo[number], r)
		})
	}
	return matrix.Run(ctx, len(todo), c.plan.Jobs, verify, done)
}

// say prints a result, and keeps it where it belongs.
func (c *campaign) say(number int, r result.Result) error {
	if c.flags.repeat > 1 {
		return c.sayRepetition(number, r)
	}
	return c.app.say(c.flags, r)
}

// page writes the page of all results that there are, if one is asked for.
func (c *campaign) page(results []result.Result) error {
	if c.flags.html == "" {
		return nil
	}
	flag, err := c.app.flagsOf("", nil)
	if err != nil {
		fmt.Fprintf(c.app.err, "%s says nothing of certificates: %v\n", c.flags.html, err)
	}
	return writePage(c.app.out, c.flags.html, results, verifypage.Options{Flag: flag})
}

// table ends the run with a table, if there is more than one cell.
func (c *campaign) table(results []result.Result) error {
	t := matrix.NewTable(results)
	var wrong []error
	for _, path := range c.flags.matrix {
		wrong = append(wrong, writeMatrix(path, t))
	}
	if len(c.cells) > 1 && !c.flags.json {
		fmt.Fprintln(c.app.out)
		wrong = append(wrong, report.MatrixText(c.app.out, t))
	}
	return errors.Join(wrong...)
}
