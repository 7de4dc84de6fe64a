package train

import (
	"bytes"
	"strconv"
	"strings"

	"samebits/bridge/diag"
	"samebits/bridge/tensor/safetensors"
)

// checkpointFormat is the value of the key "format" in a checkpoint's metadata.
const checkpointFormat = "samebits-checkpoint"

// Checkpoint gives the whole state as a safetensors file: State's tensors by their names, and the number of steps. All
// launched work must be done.
func (t *Trainer) Checkpoint() ([]byte, error) {
	tensors := make([]safetensors.Tensor, len(t.specs))
	for i, spec := range t.specs {
		data := make([]byte, spec.Bytes())
		if err := t.state.Read(spec.Name, data); err != nil {
			return nil, err
		}
		tensors[i] = safetensors.Tensor{Spec: spec, Data: data}
	}
	return safetensors.Encode(tensors, t.metadata())
}

// CheckpointBytes is the size of Checkpoint's file.
func (t *Trainer) CheckpointBytes() (int64, error) {
	return safetensors.Size(t.specs, t.metadata())
}

func (t *Trainer) metadata() map[string]string {
	return map[string]string{"format": checkpointFormat, "steps": stepText(t.steps)}
}

// stepText has a fixed width, so that a checkpoint's size is known before its step.
func stepText(n int64) string {
	s := strconv.FormatInt(n, 10)
	for len(s) < 12 {
		s = "0" + s
	}
	return s
}

// Restore sets the state from a checkpoint of the same model. Nothing changes if anything is wrong with it. Averages that
// the checkpoint lacks are refused like any other tensor.
func (t *Trainer) Restore(file *safetensors.File) error {
	var problems diag.Problems
	if got := file.Metadata["format"]; got != checkpointFormat {
		problems.Add("BAD_CHECKPOINT", "checkpoint/__metadata__.format", "%q, not %q", got, checkpointFormat)
	}
	steps, err := strconv.ParseInt(file.Metadata["steps"], 10, 64)
	if err != nil || steps < 0 {
		problems.Add("BAD_CHECKPOINT", "checkpoint/__metadata__.steps", "%q is no number of steps", file.Metadata["steps"])
	}
	for _, spec := range t.specs {
		have, ok := file.Get(spec.Name)
		switch {
		case !ok && strings.HasPrefix(spec.Name, "momentum.") && steps == 0:
			// PyTorch has no momentum before the first step
		case !ok:
			problems.Add("MISSING_WEIGHT", "checkpoint/"+spec.Name, "the checkpoint has no such tensor")
		case have.DType != spec.DType || have.Bytes() != spec.Bytes():
			problems.Add("WRONG_WEIGHT", "checkpoint/"+spec.Name, "%s%v, the model has %s%v", have.DType, have.Sizes, spec.DType, spec.Sizes)
		case strings.HasPrefix(spec.Name, "momentum.") && err == nil && steps == 0 && !bytes.Equal(have.Data, nothing(len(have.Data))):
			problems.Add("BAD_CHECKPOINT", "checkpoint/"+spec.Name, "momentum before the first step")
		}
	}
	if err := problems.Err(); err != nil {
		return err
	}
	for _, spec := range t.specs {
		have, ok := file.Get(spec.Name)
		if !ok {
			continue
		}
		if err := t.state.Write(spec.Name, have.Data); err != nil {
			return err
		}
	}
	t.steps = steps
	if steps == 0 {
		return t.noMomentum()
	}
	return nil
}
