package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"samebits/bridge/atomicfile"
	"samebits/parity/bench"
	"samebits/parity/benchpage"
	"samebits/parity/launch"
	"samebits/parity/report"
	"samebits/parity/result"
	"samebits/parity/shell"
	"samebits/parity/smi"
	"samebits/parity/suite"
)

// benchRun is the measuring of all cells that one command asked for.
type benchRun struct {
	app     *app
	flags   *benchFlags
	backend backend
	cells   []suite.Cell
	report  bench.Report
	watch   bench.Watcher
}

func (a *app) runBench(ctx context.Context, f *benchFlags, families []string) error {
	if err := f.check(families); err != nil { // before anything starts
		return err
	}
	b, err := a.start()
	if err != nil {
		return err
	}
	defer b.Close()
	why, err := f.chooseDevice(ctx, b)
	if err != nil {
		return err
	}
	if why != "" {
		fmt.Fprintf(a.err, "%s; measuring on the device host (see parity doctor)\n", why)
	}
	cells, err := f.chooseFrom(ctx, b, families, f.selection, f.resume)
	if err != nil {
		return err
	}
	if err := makeFolder("--output", f.output); err != nil {
		return err
	}
	r := &benchRun{app: a, flags: f, backend: b, cells: cells}
	if err := r.prepare(ctx, families); err != nil {
		return err
	}
	return r.run(ctx)
}

// prepare begins the report, with what can be known before the first cell.
func (r *benchRun) prepare(ctx context.Context, families []string) error {
	f := r.flags
	onGPU := f.device != suite.HostDevice
	r.report = bench.Report{Schema: bench.Schema, Command: r.command(families), Began: time.Now().UTC().Format(time.RFC3339), Device: f.device,
		GPUFigures: onGPU, Arms: bench.Arms(onGPU, !f.noCompile), Environment: map[string]string{}, Cells: []bench.Cell{},
		Settings: bench.Settings{Rounds: f.rounds, Iterations: f.iterations, Seconds: benchSeconds, Starts: f.starts}}
	device, err := namedDevice(ctx, r.backend, f.device)
	if err != nil {
		return err
	}
	gpu := strings.TrimPrefix(f.device, "cuda:")
	for _, s := range device.Environment {
		if !strings.HasSuffix(s.Key, ".path") { // cells say which libraries, without where this machine has them
			r.report.Environment[s.Key] = strings.TrimSpace(s.Value)
		}
		if s.Key == "gpu.uuid" {
			gpu = s.Value
		}
	}
	if err := r.programs(ctx); err != nil {
		return err
	}
	r.monitor(ctx, gpu)
	return r.goOn()
}

// goOn takes what was measured before, with --resume. Otherwise, and if that is of something else, it keeps it under another name.
func (r *benchRun) goOn() error {
	f := r.flags
	if f.output == "" {
		return nil
	}
	path := filepath.Join(f.output, benchFile)
	different := "there is no --resume"
	if f.resume {
		var err error
		if different, err = r.report.Resume(path); err != nil || different == "" {
			return err
		}
	}
	aside, err := bench.SetAside(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(r.app.err, "%s is begun anew: %s; what was measured before is in %s\n", path, different, aside)
	return nil
}

// command is how the report can be made again.
func (r *benchRun) command(families []string) string {
	words := []string{"parity", "bench"}
	words = append(words, families...)
	f := r.flags
	add := func(given bool, more ...string) {
		if given {
			words = append(words, more...)
		}
	}
	add(f.all, "--all")
	for _, flag := range []struct{ name, value string }{
		{"size", f.size}, {"task", strings.Join(f.tasks, ",")}, {"imgsz", f.imgsz.String()}, {"precision", strings.Join(f.precisions, ",")},
		{"group", strings.Join(f.groups, ",")},
	} {
		usual := flag.name == "group" && flag.value == launch.Matrix
		add(flag.value != "" && !usual, "--"+flag.name, flag.value)
	}
	add(f.batch != 0, "--batch", fmt.Sprint(f.batch))
	add(f.seed != 0, "--seed", fmt.Sprint(f.seed))
	add(true, "--device", f.device, "--rounds", fmt.Sprint(f.rounds))
	add(f.iterations > 0, "--iterations", fmt.Sprint(f.iterations))
	add(true, "--starts", fmt.Sprint(f.starts))
	add(f.noCompile, "--no-compile")
	for i := range words {
		words[i] = shell.Quote(words[i])
	}
	return strings.Join(words, " ") + r.app.plugins.given()
}

// programs notes what takes part, as verify does.
func (r *benchRun) programs(ctx context.Context) error {
	info, err := r.backend.Inspect(ctx)
	if err != nil {
		return err
	}
	for key, value := range map[string]string{"python": info.Version, "torch": info.Packages["torch"], "libreyolo": info.Packages["libreyolo"]} {
		if value != "" {
			r.report.Environment[key] = value
		}
	}
	for key, build := range map[string]func() (string, error){"engine_build": r.backend.EngineBuild, "reference_build": r.backend.ReferenceBuild} {
		digest, err := build()
		if err != nil {
			return err
		}
		if digest != "" {
			r.report.Environment[key] = digest
		}
	}
	return nil
}

// monitor finds somebody who watches the GPU.
func (r *benchRun) monitor(ctx context.Context, gpu string) {
	if !r.report.GPUFigures {
		r.report.Monitor.Problem = "the device host is no GPU"
		return
	}
	reader, err := smi.Find(gpu)
	if err == nil {
		_, err = reader.Read(ctx)
	}
	if err != nil {
		r.report.Monitor.Problem = err.Error()
		fmt.Fprintf(r.app.err, "nobody watches clocks, power and temperature: %v\n", err)
		return
	}
	r.report.Monitor.Program, r.watch = "nvidia-smi", reader
}

func (r *benchRun) run(ctx context.Context) error {
	var todo []suite.Cell
	for _, c := range r.cells {
		if !r.report.Has(bench.KeyOf(c)) {
			todo = append(todo, c)
		}
	}
	if done := len(r.cells) - len(todo); done > 0 {
		fmt.Fprintf(r.app.err, "%d of %d cells are measured already\n", done, len(r.cells))
	}
	tuning := launch.Tuning{}
	opening := 1
	if r.report.GPUFigures {
		opening = min(max(runtime.GOMAXPROCS(0)/4, 1), len(r.report.Arms))
		tuning.Fork = len(todo) > 1
		tuning.Warn = func(err error) { fmt.Fprintf(r.app.err, "each reference process imports PyTorch by itself: %v\n", err) }
	}
	r.backend.Tune(tuning)
	progress := report.NewProgress(r.app.err, r.app.terminal && !r.app.plugins.verbose, len(todo), len(todo)*bench.Steps(len(r.report.Arms), r.report.Settings))
	measured := 0
	for i, cell := range todo {
		b := &bench.Bench{Start: r.backend, Settings: r.report.Settings, Arms: r.report.Arms, Opening: opening, Watch: r.watch,
			Progress: func(e suite.Event) { progress.Show(i, e) }}
		c, environment, err := b.Measure(ctx, cell)
		if ctx.Err() != nil {
			_ = progress.Done(i, c.Name(), "interrupted", func() error { return nil })
			break
		}
		if err != nil {
			return err
		}
		measured++
		c.Reproduce += r.app.plugins.given()
		maps.Copy(r.report.Environment, environment)
		if err := progress.Done(i, c.Name(), string(c.Outcome), func() error { return r.take(c) }); err != nil {
			return err
		}
	}
	if err := r.end(); err != nil {
		return err
	}
	if measured < len(todo) {
		fmt.Fprintf(r.app.err, "interrupted; %d of %d cells are measured\n", len(r.report.Cells), len(r.cells))
		return statusError(result.ExitInfrastructure)
	}
	worst := result.ExitExact
	for i := range r.report.Cells {
		worst = max(worst, r.report.Cells[i].Exit())
	}
	if worst != result.ExitExact {
		return statusError(worst)
	}
	return nil
}

// take adds a cell to the report, and says and writes what is known now.
func (r *benchRun) take(c bench.Cell) error {
	r.report.Cells = append(r.report.Cells, c)
	r.report.SumUp()
	if !r.flags.json {
		if err := report.BenchCell(r.app.out, &c, r.report.Device); err != nil {
			return err
		}
	}
	return r.write()
}

func (r *benchRun) write() error {
	if r.flags.output == "" {
		return nil
	}
	if err := r.report.Write(filepath.Join(r.flags.output, benchFile)); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(r.flags.output, benchPage), func(w io.Writer) error { return benchpage.Write(w, &r.report) })
}

// end prints what there is of all cells.
func (r *benchRun) end() error {
	r.report.SumUp()
	if err := r.write(); err != nil {
		return err
	}
	if r.flags.json {
		return r.report.Encode(r.app.out)
	}
	if len(r.report.Cells) == 0 {
		return nil
	}
	fmt.Fprintln(r.app.out)
	if err := report.BenchSummary(r.app.out, &r.report); err != nil || r.flags.output == "" {
		return err
	}
	_, err := fmt.Fprintf(r.app.out, "written to %s and %s\n", filepath.Join(r.flags.output, benchFile), filepath.Join(r.flags.output, benchPage))
	return err
}
