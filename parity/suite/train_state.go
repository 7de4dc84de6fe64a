package suite

import (
	"context"
	"fmt"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/tensor/safetensors"
)

// Before is a step of a training run with what it is given: its batch, and the state that the eager reference has before it.
type Before struct {
	Recorded
	Step  int
	Batch map[string][]byte // by name of the input, in row-major order
	// State is the reference's checkpoint, param.X and buffer.X among others. It is empty before the first step, whose state are
	// the weights.
	State *safetensors.File
}

// RecordBefore records a cell of mode train, and runs the eager reference up to a step of its run.
func RecordBefore(ctx context.Context, start Starter, cell Cell, step int) (Before, error) {
	v := (&Suite{Start: start}).begin(cell)
	if step < 1 || step > cell.Training.Steps {
		return Before{}, diag.New("UNKNOWN_STEP", "", "no step %d; there are 1 to %d", step, cell.Training.Steps)
	}
	if err := v.recordTraining(ctx, false); err != nil {
		return Before{}, err
	}
	b := Before{Recorded: v.recorded, Step: step, Batch: map[string][]byte{}, State: &safetensors.File{}}
	run := v.training.mainEpisode()
	data := make([][]byte, len(b.Inputs))
	for i, spec := range b.Inputs {
		data[i] = make([]byte, spec.Bytes())
		b.Batch[spec.Name] = data[i]
	}
	if err := v.training.fill(run.moves[step-1], b.Inputs, v.cell.Seed, data); err != nil || step == 1 {
		return b, err
	}
	t, err := v.openTrainee(ctx, arm.ReferenceEager, "loss")
	if err != nil {
		return b, err
	}
	defer t.arm.Stop()
	var state []byte
	_, err = t.run(ctx, run.until(step-1), nil, func(done int, _ [][]byte) (err error) {
		if done == step-1 {
			state, err = t.checkpoint(ctx)
		}
		return err
	})
	if err != nil {
		return b, err
	}
	if b.State, err = safetensors.Decode(state); err != nil {
		return b, fmt.Errorf("the reference's checkpoint before step %d: %w", step, err)
	}
	return b, nil
}
