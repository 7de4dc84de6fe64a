// Package predict predicts pictures: one reference process runs a family's own code before and behind the step, one arm the
// step. docs/predict.md says what comes out.
package predict

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"samebits/bridge/arm"
	"samebits/bridge/recording"
	"samebits/parity/suite"
)

// Options say what predicts.
type Options struct {
	Cell    suite.Cell
	Weights string // a file; empty: seeded weights
	Arm     string // reference-eager, reference-graph, native-eager or native-graph
	// Certified is asked of each recording whether a graph of it may be replayed, and says why not; nil: each may.
	Certified func(ctx context.Context, cell suite.Cell, recording string) error
	Demand    bool // refuse what is not certified, instead of running it eagerly
	Settings  Settings
	Warn      func(format string, args ...any)
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
	Cell suite.Cell // with what the family filled in

	options Options
	around  suite.Arm // runs what lies around the step
	places  pool      // of around

	turn       sync.Mutex // of the arm and what follows
	arm        suite.Arm
	memory     pool // of the arm
	graph      bool // steps are replays
	shapes     map[string]*shape
	order      []*shape
	weights    []place     // that the native arm was given
	recordings int         // that it was given
	wasReady   atomic.Bool // for some shape
	broken     error       // why it never was
}

// Open builds the family and starts the arm, both at once. What cannot be is refused here, as far as no picture is needed to
// tell.
func Open(ctx context.Context, start suite.Starter, o Options) (p *Predictor, err error) {
	p = &Predictor{Cell: o.Cell, options: o, shapes: map[string]*shape{}, graph: isGraph(o.Arm)}
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	if p.around, err = start.Reference(ctx); err != nil {
		return p, err
	}
	p.places.arm = p.around
	described, err := p.around.Describe(ctx)
	if err != nil {
		return p, err
	}
	beside := make(chan error, 1)
	go func() { beside <- p.openArm(ctx, start, described) }()
	built, err := p.around.Build(ctx, p.buildRequest(arm.ReferenceEager))
	if failed := <-beside; err == nil {
		err = failed
	}
	if err != nil {
		return p, fmt.Errorf("build %v: %w", p.options.Cell, err)
	}
	p.Cell.Size, p.Cell.Task, p.Cell.ImgSize, p.Cell.Batch = built.Size, built.Task, built.ImgSize, max(p.Cell.Batch, 1)
	return p, nil
}

func (p *Predictor) openArm(ctx context.Context, start suite.Starter, reference arm.Description) (err error) {
	if !p.isReference() {
		p.arm, err = start.Native(ctx, reference.Environment)
		p.memory.arm = p.arm
		return err
	}
	if p.arm, err = start.Reference(ctx); err != nil {
		return err
	}
	p.memory.arm = p.arm
	_, err = p.arm.Build(ctx, p.buildRequest(p.options.Arm))
	return err
}

func (p *Predictor) buildRequest(name string) arm.BuildRequest {
	c := p.options.Cell
	return arm.BuildRequest{Family: c.Family, Size: c.Size, Task: c.Task, Seed: c.Seed, Precision: c.Precision, Profile: c.Profile,
		Device: c.ReferenceDevice(), Arm: name, ImgSize: c.ImgSize, Batch: c.Batch, WeightsFile: p.options.Weights}
}

func (p *Predictor) isReference() bool { return strings.HasPrefix(p.options.Arm, "reference-") }

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
	add("batch", p.Cell.Batch)
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
