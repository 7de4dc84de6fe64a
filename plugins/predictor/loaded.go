package main

import (
	"fmt"
	"slices"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/bridge/serve"
	"samebits/bridge/tensor"
	"samebits/native/engine"
	"samebits/plugins/internal/nativearm"
)

// loaded is a recording with its model. There are several where one does not hold for all steps: each step takes the one
// of its inputs' shapes and of what its keys hold, and there is none to replay for others.
type loaded struct {
	model     *engine.Model
	recording *recording.Recording
	weights   engine.Weights
	captured  bool
}

// bank is a set of inputs or outputs at their places.
type bank struct {
	data [][]byte
	fits []*loaded // recordings that take or give tensors of these shapes
}

// resolve finds the bytes of banks and the recordings that they fit.
func (p *predictor) resolve(memory *serve.Memory, what string, banks []arm.Bank, of func(*engine.Model) []tensor.Spec) ([]bank, error) {
	var problems diag.Problems
	out := make([]bank, len(banks))
	for i, b := range banks {
		for _, l := range p.loaded {
			if nativearm.Fits(b, of(l.model)) {
				out[i].fits = append(out[i].fits, l)
			}
		}
		specs := of(p.loaded[0].model) // those that are named where nothing fits
		if len(out[i].fits) > 0 {
			specs = of(out[i].fits[0].model)
		}
		var err error
		if out[i].data, err = nativearm.ResolveOne(memory, fmt.Sprintf("%s[%d]", what, i), b, specs, &problems); err != nil {
			return nil, err
		}
	}
	return out, problems.Err()
}

// choose finds the recording for what a bank of inputs holds now.
func (p *predictor) choose(input int) (*loaded, error) {
	b := p.inputs[input]
	var other error
	for _, l := range b.fits {
		err := l.model.Accepts(b.data)
		if err == nil {
			return l, nil
		}
		other = err
	}
	return nil, other
}

// write hands a bank's inputs to the steps that follow. Their bytes must stay until Wait.
func (l *loaded) write(b bank) error {
	for i, data := range b.data {
		if err := l.model.Feed(i, data); err != nil {
			return err
		}
	}
	return nil
}

// capture records a model's step into a graph, if it has none, with real data in its inputs. Keys no step reads.
func (p *predictor) capture(l *loaded) (nodes int, err error) {
	for _, b := range p.inputs {
		if !slices.Contains(b.fits, l) {
			continue
		}
		for i, data := range b.data {
			if l.model.IsKey(i) {
				continue
			}
			if err := l.model.Feed(i, data); err != nil {
				return 0, err
			}
		}
		if err := l.model.Wait(); err != nil {
			return 0, err
		}
		break
	}
	if !l.captured {
		p.stats.Captures++
	}
	if nodes, err = l.model.Capture(); err != nil {
		return 0, nativearm.MemoryError(err)
	}
	l.captured = true
	return nodes, nil
}
