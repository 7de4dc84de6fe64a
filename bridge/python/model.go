package samebits

import (
	"samebits/bridge/recording"
	"samebits/native/device"
	"samebits/native/engine"
)

// model is a recording of mode predict, ready to run.
type model struct {
	*engine.Model
	host      bool // its device is
	recording *recording.Recording
	graph     graph
	written   bool // inputs were written once
	launched  bool // on a caller's stream, and nobody waited
}

// LoadModel loads a recording and its weights, which lie in memory, into a reserved object: a job that gives a
// description. It copies both before it returns.
func LoadModel(ticket, number, recordingAt, recordingBytes, weightsAt, weightsBytes int64, options string) (result string, err error) {
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
		if r.Header.Mode != "predict" {
			return "", as(codeRecording, wrongMode("model", "predict", r.Header.Mode))
		}
		err = load(number, o.Device, o.Torch, func(d device.Device) (content, error) {
			m, err := engine.Load(d, r, weights, engine.Options{})
			if err != nil {
				return nil, err
			}
			result = asJSON(describe(r, d, m))
			return &model{Model: m, host: d.Name() == "host", recording: r, graph: graph{mode: o.Graph}}, nil
		})
		return result, err
	})
}

// LoadWeights gives a model other weights: a job. A captured graph stays valid.
func LoadWeights(ticket, number, weightsAt, weightsBytes int64) (result string, err error) {
	defer finish(&err)
	data := copied(weightsAt, weightsBytes)
	return run(ticket, func(*job) (string, error) {
		return "{}", use(number, func(_ *object, m *model) error {
			weights, err := decodeWeights(m.recording, data)
			if err != nil {
				return err
			}
			if err := m.settle(); err != nil {
				return err
			}
			return as(codeDevice, m.SetWeights(weights))
		})
	})
}

func (m *model) onHostDevice() bool { return m.host }

// settle waits for what was launched for a caller's stream.
func (m *model) settle() error {
	if !m.launched {
		return nil
	}
	m.launched = false
	return as(codeDevice, m.Wait())
}
