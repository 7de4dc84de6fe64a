// Package nativearm is what the native plugins share: how they read requests and check banks.
package nativearm

import (
	"errors"
	"fmt"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/bridge/serve"
	"samebits/bridge/tensor/safetensors"
	"samebits/native/engine"
	"samebits/native/plan"
)

// Decode reads and checks what the host placed in shared memory. The recording is decoded into memory of our own;
// weights stay where they are until the engine has copied them to the device.
func Decode(memory *serve.Memory, request arm.LoadRequest) (*recording.Recording, engine.Weights, error) {
	raw, err := memory.Bytes(request.Recording)
	if err != nil {
		return nil, nil, err
	}
	r, err := recording.Decode(raw)
	if err != nil {
		return nil, nil, err
	}
	raw, err = memory.Bytes(request.Weights)
	if err != nil {
		return nil, nil, err
	}
	file, err := safetensors.Decode(raw)
	if err != nil {
		return nil, nil, err
	}
	if err := recording.CheckWeights(r, file); err != nil {
		return nil, nil, err
	}
	return r, func(name string) ([]byte, bool) {
		t, ok := file.Get(name)
		if !ok {
			return nil, false
		}
		return t.Data, true
	}, nil
}

// PlanOptions reads the off switches of a LoadRequest.
func PlanOptions(settings []recording.Setting) (plan.Options, error) {
	var options plan.Options
	for i, s := range settings {
		switch s.Key + "=" + s.Value {
		case "hoist=off":
			options.NoHoist = true
		case "hoist=on", "lanes=on", "keep=needed", "fuse=on", "norms=on":
		case "lanes=off":
			options.OneLane = true
		case "fuse=off":
			options.NoFuse = true
		case "norms=off":
			options.LibraryNorms = true
		case "keep=all":
			options.KeepAll = true
		default:
			return options, diag.New("UNKNOWN_OPTION", fmt.Sprintf("options[%d]", i), "no option %s=%s; there are hoist, lanes, fuse, norms (on, off), keep (needed, all) and, of the predictor, graph (asked)", s.Key, s.Value)
		}
	}
	return options, nil
}

// MemoryError gives an out-of-memory problem the status of one.
func MemoryError(err error) error {
	if problems, ok := diag.Of(err); ok {
		for _, found := range problems {
			if found.Reason == "OUT_OF_MEMORY" {
				return errors.Join(arm.ErrOutOfMemory, err)
			}
		}
	}
	return err
}
