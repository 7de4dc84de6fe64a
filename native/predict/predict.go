// Package predict runs recordings of prediction: one or several of a family on a device, each at a shape of its own, with at
// most replay.MaxGraphs graphs. A step takes the recording of its inputs' shapes and of what its keys hold.
package predict

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/bridge/replay"
	"samebits/native/device"
	"samebits/native/engine"
	"samebits/native/plan"
)

// Options of a predictor.
type Options struct {
	Plan plan.Options // off switches, of the recording at hand
	// KeepWeights says that weights stay readable, which Weight and Rescale need.
	KeepWeights bool
}

// Predictor is a family's recordings. It is used by one goroutine at a time.
type Predictor struct {
	Graphs replay.Graphs

	device device.Device
	shapes []*Shape
}

// Shape is one recording with its model.
type Shape struct {
	*engine.Model
	Recording *recording.Recording
	Graph     *replay.Graph

	weights engine.Weights
	scaled  map[string][]byte // what Rescale made of parameters; others are as weights has them
}

// Open loads the first recording.
func Open(dev device.Device, r *recording.Recording, weights engine.Weights, options Options) (*Predictor, error) {
	p := &Predictor{device: dev}
	p.Graphs.Mode = replay.Off
	if _, err := p.Add(r, weights, options); err != nil {
		return nil, err
	}
	return p, nil
}

// Add loads a further recording, of another shape, of other keys or of another precision, with the weights that it wants.
func (p *Predictor) Add(r *recording.Recording, weights engine.Weights, options Options) (*Shape, error) {
	if r.Header.Mode != "predict" {
		return nil, diag.New("WRONG_MODE", "header.mode", "a predictor runs recordings of mode predict, this one is %q", r.Header.Mode)
	}
	if len(p.shapes) > 0 {
		if h := p.shapes[0].Recording.Header; r.Header.Family != h.Family && !sameFamily(r.Header.Family, h.Family) {
			return nil, diag.New("OTHER_FAMILY", "header.family", "it is of %s, and the first recording of %s", r.Header.Family, h.Family)
		}
	}
	model, err := engine.Load(p.device, r, weights, engine.Options{Plan: options.Plan})
	if err != nil {
		return nil, err
	}
	s := &Shape{Model: model, Recording: r}
	if options.KeepWeights {
		s.weights = weights
	}
	s.Graph = p.Graphs.Add(model, s.graphShape(p.device.Name()))
	p.shapes = append(p.shapes, s)
	return s, nil
}

// sameFamily takes variants of a family for it: ppocr-rec@320x48.
func sameFamily(a, b string) bool {
	a, _, _ = strings.Cut(a, "@")
	b, _, _ = strings.Cut(b, "@")
	return a == b
}

// graphShape is that of the first input that a step reads.
func (s *Shape) graphShape(dev string) replay.Shape {
	for i := range s.Inputs {
		if !s.IsKey(i) {
			return replay.ShapeOf(s.Inputs[i:], dev)
		}
	}
	return replay.ShapeOf(nil, dev)
}

// Models are those of the shapes.
func (p *Predictor) Models() []*engine.Model {
	out := make([]*engine.Model, len(p.shapes))
	for i, s := range p.shapes {
		out[i] = s.Model
	}
	return out
}

// Shapes lists the recordings in the order in which they were loaded.
func (p *Predictor) Shapes() []*Shape { return p.shapes }

// Wanted picks recordings: of an image size, a batch and an element type of the first input. What is 0 or empty does not count.
type Wanted struct {
	ImgSize, Batch int64
	DType          string
}

func (w Wanted) fits(s *Shape) bool {
	h := &s.Recording.Header
	of := s.graphShape("")
	return (w.ImgSize == 0 || w.ImgSize == h.ImgSize) && (w.Batch == 0 || w.Batch == h.Batch) && (w.DType == "" || w.DType == of.DType)
}

// Find gives the recordings that are wanted, or says which there are.
func (p *Predictor) Find(w Wanted) ([]*Shape, error) {
	var found []*Shape
	var have []string
	for _, s := range p.shapes {
		if w.fits(s) {
			found = append(found, s)
		}
		have = append(have, fmt.Sprintf("imgsz %d batch %d %s", s.Recording.Header.ImgSize, s.Recording.Header.Batch, s.graphShape("").DType))
	}
	if len(found) == 0 {
		return nil, diag.New("NO_RECORDING", "", "no recording has that image size, batch and type; there are %s", strings.Join(have, ", "))
	}
	return found, nil
}

// SetWeights gives the recording other weights at the same addresses: its graph stays valid.
func (s *Shape) SetWeights(weights engine.Weights) error {
	if err := s.Model.SetWeights(weights); err != nil {
		return err
	}
	if s.weights != nil {
		s.weights = weights
	}
	s.scaled = nil
	return nil
}

// Rescale doubles or halves every floating parameter where it lies, for tests.
func (s *Shape) Rescale(up bool) error {
	scaled := map[string][]byte{}
	for i := range s.Recording.Storages {
		storage := &s.Recording.Storages[i]
		if storage.Role != recording.Parameter || !storage.DType.Float() {
			continue
		}
		data, _ := s.Weight(storage.Name)
		scaled[storage.Name] = slices.Clone(data)
		engine.Scale(storage.DType, scaled[storage.Name], up)
	}
	before := s.scaled
	s.scaled = scaled
	if err := s.Model.SetWeights(s.Weight); err != nil {
		s.scaled = before
		return err
	}
	return nil
}

// Weight is what a name holds now, with KeepWeights.
func (s *Shape) Weight(name string) ([]byte, bool) {
	if data, ok := s.scaled[name]; ok {
		return data, true
	}
	return s.weights(name)
}

// Move gives every recording's weights other memory. Graphs are dropped when their next step finds that out.
func (p *Predictor) Move() error {
	for _, s := range p.shapes {
		if err := s.Move(); err != nil {
			return err
		}
	}
	return nil
}

// PeakBytes is what all recordings hold at once.
func (p *Predictor) PeakBytes() int64 {
	n := int64(0)
	for _, s := range p.shapes {
		n += s.PeakBytes()
	}
	return n
}

// Close frees everything.
func (p *Predictor) Close() error {
	var errs []error
	for _, s := range p.shapes {
		errs = append(errs, s.Model.Close())
	}
	p.shapes = nil
	return errors.Join(errs...)
}
