package samebits

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"samebits/bridge/atomicfile"
	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/bridge/replay"
	"samebits/bridge/tensor"
	"samebits/bridge/tensor/safetensors"
	"samebits/native/device"
	"samebits/native/engine"
	"samebits/native/train"
)

// trainer is a run of training: recordings of one step at one or more shapes, and the state that they share.
type trainer struct {
	*train.Trainer
	host     bool // its device is
	options  loadOptions
	graphs   *graphs
	graph    map[*train.Shape]*replay.Graph
	launched *train.Shape // on a caller's stream, and nobody waited
}

// describedTrainer is what Python shows of a trainer.
type describedTrainer struct {
	described
	Groups [][]string   `json:"groups"`
	State  []placedSpec `json:"state"`
	Steps  int64        `json:"steps"`
}

// LoadTrainer loads a recording of mode train and its weights into a reserved object: a job that gives a description.
func LoadTrainer(ticket, number, recordingAt, recordingBytes, weightsAt, weightsBytes int64, options string) (result string, err error) {
	defer finish(&err)
	var o loadOptions
	if err := fromJSON(options, &o); err != nil {
		return "", err
	}
	recordingData, weightsData := copied(recordingAt, recordingBytes), copied(weightsAt, weightsBytes)
	return run(ticket, func(*job) (result string, err error) {
		r, weights, err := decode(recordingData, weightsData)
		if err != nil {
			return "", err
		}
		err = load(number, o.Device, o.Torch, func(d device.Device) (content, error) {
			g, err := begin(r, d, o)
			if err != nil {
				return nil, err
			}
			t, err := train.Open(d, r, weights, train.Options{})
			if err != nil {
				return nil, err
			}
			g.attach(&replay.Graphs{}, d)
			made := &trainer{Trainer: t, host: d.Name() == "host", options: o, graphs: g, graph: map[*train.Shape]*replay.Graph{}}
			made.addGraph(t.Shapes()[0], d)
			made.graph[t.Shapes()[0]].Refusal = g.support.Err()
			described := made.describe(d, t.Shapes()[0])
			described.Line = g.line()
			result = asJSON(described)
			return made, nil
		})
		return result, err
	})
}

// AddShape loads a recording of the same run at another shape of input: a job that gives a description.
func AddShape(ticket, number, recordingAt, recordingBytes int64) (result string, err error) {
	defer finish(&err)
	data := copied(recordingAt, recordingBytes)
	return run(ticket, func(*job) (result string, err error) {
		r, err := recording.Decode(data)
		if err != nil {
			return "", as(codeRecording, err)
		}
		if r.Header.Mode != "train" {
			return "", as(codeRecording, wrongMode("trainer", "train", r.Header.Mode))
		}
		err = use(number, func(o *object, t *trainer) error {
			if err := t.settle(); err != nil {
				return err
			}
			s, err := t.Add(r)
			if err != nil {
				return as(codeDevice, err)
			}
			t.addGraph(s, o.device)
			t.graphs.further(t.graph[s], supportOf(r, o.device, t.options))
			described := t.describe(o.device, s)
			described.Line = t.graphs.warning()
			result = asJSON(described)
			return nil
		})
		return result, err
	})
}

func (t *trainer) addGraph(s *train.Shape, d device.Device) {
	t.graph[s] = t.graphs.Add(s, replay.ShapeOf(s.Inputs(), d.Name()))
}

func (t *trainer) describe(d device.Device, s *train.Shape) describedTrainer {
	out := describedTrainer{described: describe(s.Recording(), d, s.Model()), Groups: t.GroupNames(), Steps: t.Steps()}
	for _, spec := range t.Trainer.State() {
		out.State = append(out.State, placedSpec{spec.Name, spec.DType.String(), append([]int64{}, spec.Sizes...), tensor.ContiguousStrides(spec.Sizes)})
	}
	return out
}

// shape gives a recording by its number, in the order in which they were loaded.
func (t *trainer) shape(i int) (*train.Shape, error) {
	if i < 0 || i >= len(t.Shapes()) {
		return nil, as(codeInternal, fmt.Errorf("no recording %d of %d", i, len(t.Shapes())))
	}
	return t.Shapes()[i], nil
}

// settle waits for what was launched for a caller's stream.
func (t *trainer) settle() error {
	if t.launched == nil {
		return nil
	}
	m := t.launched.Model()
	t.launched = nil
	return as(codeDevice, m.Wait())
}

// stateCall is the argument of ReadState.
type stateCall struct {
	Names     []string `json:"names"`
	Addresses []int64  `json:"addresses"`
}

// ReadState copies state into arrays of the host: a job.
func ReadState(ticket, number int64, call string) (result string, err error) {
	defer finish(&err)
	var c stateCall
	if err := fromJSON(call, &c); err != nil {
		return "", err
	}
	return run(ticket, func(j *job) (string, error) {
		return "{}", use(number, func(_ *object, t *trainer) error {
			if err := t.settle(); err != nil {
				return err
			}
			for i, name := range c.Names {
				n := slices.IndexFunc(t.Trainer.State(), func(s tensor.Spec) bool { return s.Name == name })
				if n < 0 || i >= len(c.Addresses) {
					return as(codeInternal, fmt.Errorf("no state %q", name))
				}
				data := at(c.Addresses[i], t.Trainer.State()[n].Bytes())
				if err := j.touch(func() error { return t.Trainer.ReadState(name, data) }); err != nil {
					return as(codeDevice, err)
				}
			}
			return nil
		})
	})
}

// SaveCheckpoint writes all state to a file that is there whole or not at all: a job that gives {"steps"}.
func SaveCheckpoint(ticket, number int64, path string) (result string, err error) {
	defer finish(&err)
	return run(ticket, func(*job) (result string, err error) {
		err = use(number, func(_ *object, t *trainer) error {
			if err := t.settle(); err != nil {
				return err
			}
			result = t.stepsJSON()
			data, err := t.Checkpoint()
			if err != nil {
				return as(codeDevice, err)
			}
			return as(codeFile, atomicfile.WriteBytes(path, data))
		})
		return result, err
	})
}

// RestoreCheckpoint sets all state from a checkpoint that lies in memory: a job that gives {"steps"}.
func RestoreCheckpoint(ticket, number, checkpointAt, checkpointBytes int64) (result string, err error) {
	defer finish(&err)
	data := copied(checkpointAt, checkpointBytes)
	return run(ticket, func(*job) (result string, err error) {
		file, err := safetensors.Decode(data)
		if err != nil {
			return "", as(codeCheckpoint, err)
		}
		err = use(number, func(_ *object, t *trainer) error {
			if err := t.settle(); err != nil {
				return err
			}
			if err := t.Restore(file); err != nil {
				if _, unsound := diag.Of(err); unsound {
					return &coded{codeCheckpoint, err} // whatever its reasons mean elsewhere
				}
				return as(codeDevice, err)
			}
			result = t.stepsJSON()
			return nil
		})
		return result, err
	})
}

// SaveWeights writes the parameters and buffers, or their averages, as a weights file: a job.
func SaveWeights(ticket, number int64, path string, average bool) (result string, err error) {
	defer finish(&err)
	return run(ticket, func(*job) (string, error) {
		return "{}", use(number, func(_ *object, t *trainer) error {
			if err := t.settle(); err != nil {
				return err
			}
			tensors, err := t.weightTensors(average)
			if err != nil {
				return as(codeDevice, err)
			}
			return as(codeFile, safetensors.WriteFile(path, tensors, nil))
		})
	})
}

// weightTensors are the parameters and buffers under the names that a recording has for them. What has no average, such as
// a counter, is as it is.
func (t *trainer) weightTensors(average bool) ([]safetensors.Tensor, error) {
	var out []safetensors.Tensor
	for _, spec := range t.Trainer.State() {
		kind, name, _ := strings.Cut(spec.Name, ".")
		if kind != "param" && kind != "buffer" {
			continue
		}
		from := spec.Name
		if averaged := "ema." + name; average && slices.ContainsFunc(t.Trainer.State(), func(s tensor.Spec) bool { return s.Name == averaged }) {
			from = averaged
		}
		spec.Name = name
		data := make([]byte, spec.Bytes())
		if err := t.Trainer.ReadState(from, data); err != nil {
			return nil, err
		}
		out = append(out, safetensors.Tensor{Spec: spec, Data: data})
	}
	return out, nil
}

func (t *trainer) stepsJSON() string {
	return asJSON(struct {
		Steps int64 `json:"steps"`
	}{t.Steps()})
}

func (t *trainer) captureNow(w wanted) error {
	if err := t.settle(); err != nil {
		return err
	}
	found := false
	for _, s := range t.Shapes() {
		h := &s.Recording().Header
		if (w.ImgSize != 0 && w.ImgSize != h.ImgSize) || (w.Batch != 0 && w.Batch != h.Batch) || (w.DType != "" && w.DType != s.Inputs()[0].DType.String()) {
			continue
		}
		found = true
		if g := t.graph[s]; g.Refusal != nil && !t.graphs.Trial {
			return as(codeUncertified, g.Refusal)
		}
		if err := t.graph[s].Capture(); err != nil {
			return err
		}
	}
	if !found {
		return as(codeInput, diag.New("NO_RECORDING", "", "no recording has that image size, batch and type"))
	}
	return nil
}

func (t *trainer) releaseNow() error { return errors.Join(t.settle(), t.graphs.Release()) }

func (t *trainer) lastWords() string { return t.graphs.lastWords() }

func (t *trainer) graphInfo() info {
	var models []*engine.Model
	for _, s := range t.Shapes() {
		models = append(models, s.Model())
	}
	return t.graphs.info(models)
}
