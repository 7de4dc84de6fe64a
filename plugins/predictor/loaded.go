package main

import (
	"fmt"
	"slices"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/replay"
	"samebits/bridge/serve"
	"samebits/bridge/tensor"
	"samebits/native/predict"
	"samebits/plugins/internal/nativearm"
)

// bank is a set of inputs or outputs at their places.
type bank struct {
	data [][]byte
	fits []*predict.Shape // recordings that take or give tensors of these shapes
}

// resolve finds the bytes of banks and the recordings that they fit.
func (p *predictor) resolve(memory *serve.Memory, what string, banks []arm.Bank, of func(*predict.Shape) []tensor.Spec) ([]bank, error) {
	var problems diag.Problems
	out := make([]bank, len(banks))
	for i, b := range banks {
		for _, l := range p.model.Shapes() {
			if nativearm.Fits(b, of(l)) {
				out[i].fits = append(out[i].fits, l)
			}
		}
		specs := of(p.model.Shapes()[0]) // those that are named where nothing fits
		if len(out[i].fits) > 0 {
			specs = of(out[i].fits[0])
		}
		var err error
		if out[i].data, err = nativearm.ResolveOne(memory, fmt.Sprintf("%s[%d]", what, i), b, specs, &problems); err != nil {
			return nil, err
		}
	}
	return out, problems.Err()
}

// choose finds the recording for what a bank of inputs holds now.
func (p *predictor) choose(input int) (*predict.Shape, error) {
	b := p.inputs[input]
	for _, l := range b.fits {
		if l.Holds(b.data) {
			return l, nil
		}
	}
	return nil, b.fits[len(b.fits)-1].Accepts(b.data)
}

// write hands a bank's inputs to the steps that follow. Their bytes must stay until Wait.
func write(l *predict.Shape, b bank) error {
	for i, data := range b.data {
		if err := l.Feed(i, data); err != nil {
			return err
		}
	}
	return nil
}

// fill writes real data to a recording's inputs, if a bank has some. Keys no step reads.
func (p *predictor) fill(l *predict.Shape) error {
	for _, b := range p.inputs {
		if !slices.Contains(b.fits, l) {
			continue
		}
		for i, data := range b.data {
			if l.IsKey(i) {
				continue
			}
			if err := l.Feed(i, data); err != nil {
				return err
			}
		}
		return l.Wait()
	}
	return nil
}

// capture records every recording's step into a graph, if it has none: as many as a model may have. Recordings that want to be
// asked must have a bank.
func (p *predictor) capture() error {
	for _, l := range p.model.Shapes() {
		if p.asked[l] && !slices.ContainsFunc(p.inputs, func(b bank) bool { return slices.Contains(b.fits, l) }) {
			continue
		}
		if l.Captured() || p.model.Graphs.Count() >= replay.MaxGraphs {
			continue
		}
		if err := p.fill(l); err != nil {
			return err
		}
		if err := l.Graph.Capture(); err != nil {
			return nativearm.MemoryError(err)
		}
	}
	return nil
}
