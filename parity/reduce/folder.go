package reduce

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"samebits/bridge/diag"
	"samebits/bridge/digest"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/bridge/tensor/safetensors"
	"samebits/bridge/wholefile"
	"samebits/parity/probe"
	"samebits/parity/suite"
)

// ReadFolder reads a case: one that Write wrote (recording.pb, inputs.safetensors), or one of parity record or verify --keep
// (recording.pb, weights.safetensors). Inputs that are not there are made: the probe noise of the recording's seed.
func ReadFolder(dir string) (*Case, error) {
	data, err := wholefile.Read(filepath.Join(dir, "recording.pb"), recording.MaxBytes)
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
	if errors.Is(err, os.ErrNotExist) {
		return nil, err // it names the file
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if whole {
		return NewCase(r, dataOf(weights), dataOf(weights))
	}
	return fill(r, probe.Noise, dataOf(weights), func(spec tensor.Spec) ([]byte, error) {
		path := filepath.Join(dir, "inputs", probe.Noise, suite.TensorFile(spec.Name))
		header := digest.Header(spec)
		kept, err := os.ReadFile(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return nil, nil
		case err != nil:
			return nil, err
		}
		data, is := bytes.CutPrefix(kept, header)
		if !is || int64(len(data)) != spec.Bytes() {
			return nil, diag.New("WRONG_INPUT", "inputs/"+spec.Name, "%s does not hold a %v%v", path, spec.DType, spec.Sizes)
		}
		return data, nil
	})
}

// dataOf gives the tensors of a file by their names.
func dataOf(file *safetensors.File) func(name string) ([]byte, bool) {
	return func(name string) ([]byte, bool) {
		t, has := file.Get(name)
		if !has {
			return nil, false
		}
		return t.Data, true
	}
}

// FromRecorded takes a recorded cell on a probe.
func FromRecorded(r suite.Recorded, name string) (*Case, error) {
	weights, err := safetensors.Decode(r.Weights)
	if err != nil {
		return nil, err
	}
	return fill(r.Recording, name, dataOf(weights), func(tensor.Spec) ([]byte, error) { return nil, nil })
}

// FromStep takes a step of a training run, from the reference's state before it.
func FromStep(b suite.Before) (*Case, error) {
	weights, err := safetensors.Decode(b.Weights)
	if err != nil {
		return nil, err
	}
	r := b.Recording
	c, err := NewCase(r, func(name string) ([]byte, bool) {
		data, has := b.Batch[name]
		return data, has
	}, dataOf(weights))
	if err != nil {
		return nil, err
	}
	c.Step = b.Step
	for i := range r.Storages {
		s := &r.Storages[i]
		for _, kind := range []string{"param.", "buffer."} {
			if t, has := b.State.Get(kind + s.Name); has && s.Role.Weight() {
				if err := c.set(i, t); err != nil {
					return nil, err
				}
			}
		}
	}
	return c, nil
}

// set puts a tensor of a checkpoint where a storage has it.
func (c *Case) set(storage int, t *safetensors.Tensor) error {
	s := &c.Recording.Storages[storage]
	v := covering(c.Recording, storage)
	for i := range c.Recording.Values { // it may lie there otherwise than in row-major order
		if x := &c.Recording.Values[i]; x.Storage == storage && x.DType == t.DType && slices.Equal(x.Sizes, t.Sizes) {
			v = *x
			break
		}
	}
	if t.DType != s.DType || v.Numel()*v.DType.Size() != int64(len(t.Data)) || int64(len(t.Data)) != s.Bytes {
		return diag.New("WRONG_SHAPE", "checkpoint/"+t.Name, "%v in %d bytes of %s", t.Spec, s.Bytes, s.DType)
	}
	c.Given[storage] = make([]byte, s.Bytes)
	spread(&v, t.Data, c.Given[storage])
	return nil
}

// fill makes the inputs of which kept gives nothing.
func fill(r *recording.Recording, name string, weights func(string) ([]byte, bool), kept func(tensor.Spec) ([]byte, error)) (*Case, error) {
	if r.Header.Mode != "predict" {
		return nil, diag.New("WRONG_MODE", "header.mode", "a recording of mode %s alone does not say what its steps are given: name the family, with --mode %s --step N",
			r.Header.Mode, r.Header.Mode)
	}
	var wrong error
	c, err := NewCase(r, func(input string) ([]byte, bool) {
		for _, n := range r.Inputs {
			if n.Name != input {
				continue
			}
			s := spec(input, &r.Values[n.Value])
			data, err := kept(s)
			if wrong = errors.Join(wrong, err); data != nil {
				return data, true
			}
			data = make([]byte, s.Bytes())
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
