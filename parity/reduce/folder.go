package reduce

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"samebits/bridge/diag"
	"samebits/bridge/digest"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/bridge/tensor/safetensors"
	"samebits/parity/probe"
	"samebits/parity/suite"
)

// ReadFolder reads a case: one that Write wrote (recording.pb, inputs.safetensors), or one of parity record or verify --keep
// (recording.pb, weights.safetensors). Inputs that are not there are made: the probe noise of the recording's seed.
func ReadFolder(dir string) (*Case, error) {
	data, err := os.ReadFile(filepath.Join(dir, "recording.pb"))
	if err != nil {
		return nil, err
	}
	r, err := recording.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, "recording.pb"), err)
	}
	weights, err := safetensors.ReadFile(filepath.Join(dir, "inputs.safetensors"))
	whole := err == nil
	if errors.Is(err, os.ErrNotExist) {
		weights, err = safetensors.ReadFile(filepath.Join(dir, "weights.safetensors"))
	}
	if err != nil {
		return nil, err
	}
	named := func(name string) ([]byte, bool) {
		t, has := weights.Get(name)
		if !has {
			return nil, false
		}
		return t.Data, true
	}
	if whole {
		return NewCase(r, named, named)
	}
	return fill(r, probe.Noise, named, func(spec tensor.Spec) []byte {
		header := digest.Header(spec)
		kept, err := os.ReadFile(filepath.Join(dir, "inputs", probe.Noise, spec.Name+".tensor"))
		if err != nil || int64(len(kept)) != int64(len(header))+spec.Bytes() {
			return nil
		}
		return kept[len(header):]
	})
}

// FromRecorded takes a recorded cell on a probe.
func FromRecorded(r suite.Recorded, name string) (*Case, error) {
	weights, err := safetensors.Decode(r.Weights)
	if err != nil {
		return nil, err
	}
	return fill(r.Recording, name, func(name string) ([]byte, bool) {
		t, has := weights.Get(name)
		if !has {
			return nil, false
		}
		return t.Data, true
	}, func(tensor.Spec) []byte { return nil })
}

// fill makes the inputs that are not kept anywhere.
func fill(r *recording.Recording, name string, weights func(string) ([]byte, bool), kept func(tensor.Spec) []byte) (*Case, error) {
	if r.Header.Mode != "predict" {
		return nil, diag.New("WRONG_MODE", "header.mode", "inputs of mode %s are not made here; parity trace looks at its steps", r.Header.Mode)
	}
	var wrong error
	c, err := NewCase(r, func(input string) ([]byte, bool) {
		for _, n := range r.Inputs {
			if n.Name != input {
				continue
			}
			s := spec(input, &r.Values[n.Value])
			if data := kept(s); data != nil {
				return data, true
			}
			data := make([]byte, s.Bytes())
			if _, is := r.Key(input); is {
				wrong = errors.Join(wrong, r.PutKey(s, data))
			} else {
				wrong = errors.Join(wrong, probe.Fill(name, s, r.Header.Seed, data))
			}
			return data, true
		}
		return nil, false
	}, weights)
	return c, errors.Join(err, wrong)
}
