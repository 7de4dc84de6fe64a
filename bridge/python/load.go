package samebits

import (
	"samebits/bridge/certificate"
	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/bridge/tensor/safetensors"
	"samebits/native/device"
	"samebits/native/engine"
)

// loadOptions are those of LoadModel and LoadTrainer.
type loadOptions struct {
	Device string `json:"device"`
	Graph  string `json:"graph"` // off, on, auto
	// Certificates is a file or a folder; empty: as package certificate finds them.
	Certificates string `json:"certificates"`
	// The torch of this interpreter, to which certificates are bound; empty: there is none.
	TorchVersion  string   `json:"torch_version"`
	TorchRevision string   `json:"torch_revision"`
	Torch         []string `json:"torch"` // folders of torch's libraries
}

// described is what Python shows of a recording that was loaded.
type described struct {
	Family      string            `json:"family"`
	Size        string            `json:"size"`
	Task        string            `json:"task"`
	Mode        string            `json:"mode"`
	Precision   string            `json:"precision"`
	Profile     string            `json:"profile"`
	ImgSize     int64             `json:"imgsz"`
	Batch       int64             `json:"batch"`
	Digest      string            `json:"digest"`
	Device      string            `json:"device"`
	Environment map[string]string `json:"environment"`
	PeakBytes   int64             `json:"peak_bytes"`
	Inputs      []placedSpec      `json:"inputs"`
	Outputs     []placedSpec      `json:"outputs"`
	Line        string            `json:"line"` // for a log: why steps run eagerly though graphs were asked for
}

// placedSpec is a tensor with the layout that it has in the model's memory.
type placedSpec struct {
	Name    string  `json:"name"`
	DType   string  `json:"dtype"`
	Sizes   []int64 `json:"sizes"`
	Strides []int64 `json:"strides"` // in elements
}

func describe(r *recording.Recording, d device.Device, m *engine.Model) described {
	h := &r.Header
	out := described{
		Family: h.Family, Size: h.Size, Task: h.Task, Mode: h.Mode, Precision: h.Precision, Profile: h.Profile,
		ImgSize: h.ImgSize, Batch: h.Batch, Digest: r.Digest, Device: d.Name(), Environment: map[string]string{},
		PeakBytes: m.PeakBytes(), Inputs: placed(m.Inputs, m.InputPlace), Outputs: placed(m.Outputs, m.OutputPlace),
	}
	for _, s := range d.Environment() {
		out.Environment[s.Key] = s.Value
	}
	if build := buildOf(h.Mode); build != "" {
		out.Environment[certificate.EngineKey] = build
	}
	return out
}

func placed(specs []tensor.Spec, place func(int) engine.Place) []placedSpec {
	out := make([]placedSpec, len(specs))
	for i, s := range specs {
		out[i] = placedSpec{s.Name, s.DType.String(), append([]int64{}, s.Sizes...), append([]int64{}, place(i).Strides...)}
	}
	return out
}

func wrongMode(what, wanted, mode string) error {
	return diag.New("WRONG_MODE", "header.mode", "a %s runs recordings of mode %s, this one is %q", what, wanted, mode)
}

// decode reads a recording and the weights that belong to it.
func decode(recordingData, weightsData []byte) (*recording.Recording, engine.Weights, error) {
	r, err := recording.Decode(recordingData)
	if err != nil {
		return nil, nil, as(codeRecording, err)
	}
	weights, err := decodeWeights(r, weightsData)
	return r, weights, err
}

func decodeWeights(r *recording.Recording, data []byte) (engine.Weights, error) {
	file, err := safetensors.Decode(data)
	if err == nil {
		err = recording.CheckWeights(r, file)
	}
	if err != nil {
		return nil, as(codeWeights, err)
	}
	return func(name string) ([]byte, bool) {
		t, ok := file.Get(name)
		if !ok {
			return nil, false
		}
		return t.Data, true
	}, nil
}
