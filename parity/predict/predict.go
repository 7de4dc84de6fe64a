// Package predict predicts pictures: one reference process runs a family's own code before and behind the step, one arm the
// step. docs/predict.md says what comes out.
package predict

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"samebits/bridge/arm"
	"samebits/bridge/recording"
	"samebits/parity/suite"
)

// Options say what predicts.
type Options struct {
	Cell    suite.Cell
	Weights string // a file; empty: seeded weights
	Arm     string // reference-eager, reference-graph, native-eager or native-graph; empty: Choose says
	// Choose is asked for the arm once the cell's size, task and image size are known; it may be nil if Arm is named.
	Choose   func(ctx context.Context, cell suite.Cell) (Choice, error)
	Settings Settings
	Warn     func(format string, args ...any)
}

// Choice is an arm, and whether its graph holds for the shape of the cell alone.
type Choice struct {
	Arm       string
	OnlyCell  bool // other shapes have no certificate
	OrEagerly bool // they run eagerly then, instead of being refused
}

// Settings are LibreYOLO's own. What is nil is left to it.
type Settings struct {
	Conf, IoU *float64
	MaxDet    *int64
	Classes   []int64
	ImgSize   int64  // 0: the family's own
	Masks     string // polygon, rle, none; empty: polygon
	Folder    string // for files; empty: there are none
	Annotate  bool
}

// Predictor is a family that is ready.
type Predictor struct {
	Cell   suite.Cell // with what the family filled in
	Choice Choice

	options Options
	around  suite.Arm // runs what lies around the step
	places  pool      // of around

	turn       sync.Mutex // of the arm and what follows
	arm        suite.Arm
	memory     pool // of the arm
	graph      bool
	shapes     map[string]*shape
	order      []*shape
	weights    []place // that the native arm was given
	recordings int     // that it was given
	wasReady   bool    // for some shape
	broken     error   // why it never was
}

// Open builds the family and starts the arm. What cannot be is refused here, as far as no picture is needed to tell.
func Open(ctx context.Context, start suite.Starter, o Options) (p *Predictor, err error) {
	p = &Predictor{Cell: o.Cell, Choice: Choice{Arm: o.Arm}, options: o, shapes: map[string]*shape{}}
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	if p.isReference() { // both processes build for seconds
		beside := make(chan error, 1)
		go func() { beside <- p.openReference(ctx, start) }()
		err = p.openAround(ctx, start)
		if failed := <-beside; err == nil {
			err = failed
		}
		return p, err
	}
	if err := p.openAround(ctx, start); err != nil {
		return p, err
	}
	if o.Arm == "" {
		if p.Choice, err = o.Choose(ctx, p.Cell); err != nil {
			return p, err
		}
	}
	if p.isReference() {
		return p, p.openReference(ctx, start)
	}
	described, err := p.around.Describe(ctx)
	if err != nil {
		return p, err
	}
	p.graph = isGraph(p.Choice.Arm)
	p.arm, err = start.Native(ctx, described.Environment)
	p.memory.arm = p.arm
	return p, err
}

func (p *Predictor) openAround(ctx context.Context, start suite.Starter) (err error) {
	if p.around, err = start.Reference(ctx); err != nil {
		return err
	}
	p.places.arm = p.around
	built, err := p.around.Build(ctx, p.buildRequest(arm.ReferenceEager))
	if err != nil {
		return fmt.Errorf("build %v: %w", p.options.Cell, err)
	}
	p.Cell.Size, p.Cell.Task, p.Cell.ImgSize = built.Size, built.Task, built.ImgSize
	return nil
}

func (p *Predictor) openReference(ctx context.Context, start suite.Starter) error {
	a, err := start.Reference(ctx)
	if err != nil {
		return err
	}
	p.arm, p.memory.arm, p.graph = a, a, isGraph(p.Choice.Arm)
	_, err = a.Build(ctx, p.buildRequest(p.Choice.Arm))
	return err
}

func (p *Predictor) buildRequest(name string) arm.BuildRequest {
	c := p.options.Cell
	return arm.BuildRequest{Family: c.Family, Size: c.Size, Task: c.Task, Seed: c.Seed, Precision: c.Precision, Profile: c.Profile,
		Device: c.ReferenceDevice(), Arm: name, ImgSize: c.ImgSize, Batch: c.Batch, WeightsFile: p.options.Weights}
}

func (p *Predictor) isReference() bool { return strings.HasPrefix(p.Choice.Arm, "reference-") }

func isGraph(name string) bool { return name == arm.NativeGraph || name == arm.ReferenceGraph }

// Close ends the processes.
func (p *Predictor) Close() {
	for _, a := range []suite.Arm{p.around, p.arm} {
		if a != nil {
			a.Stop()
		}
	}
}

// warn says something once in a while.
func (p *Predictor) warn(format string, args ...any) {
	if p.options.Warn != nil {
		p.options.Warn(format, args...)
	}
}

// settings are those of the stage begin, pictures left out.
func (p *Predictor) settings() []recording.Setting {
	s := p.options.Settings
	var all []recording.Setting
	add := func(key string, value any) { all = append(all, recording.Setting{Key: key, Value: fmt.Sprint(value)}) }
	add("batch", max(p.Cell.Batch, 1))
	if s.Conf != nil {
		add("conf", *s.Conf)
	}
	if s.IoU != nil {
		add("iou", *s.IoU)
	}
	if s.MaxDet != nil {
		add("max_det", *s.MaxDet)
	}
	if len(s.Classes) > 0 {
		add("classes", strings.Trim(strings.ReplaceAll(fmt.Sprint(s.Classes), " ", ","), "[]"))
	}
	if s.ImgSize != 0 {
		add("imgsz", s.ImgSize)
	}
	if s.Masks != "" {
		add("masks", s.Masks)
	}
	if s.Folder != "" {
		add("output", s.Folder)
	}
	if s.Annotate {
		add("annotate", true)
	}
	return all
}
