package samebits

import (
	"errors"
	"fmt"

	"samebits/bridge/diag"
	"samebits/bridge/replay"
	"samebits/native/device"
	"samebits/native/engine"
	"samebits/native/predict"
)

// model is one or several recordings of mode predict, ready to run.
type model struct {
	*predict.Predictor
	graphs   *graphs // of the predictor
	host     bool    // its device is
	options  loadOptions
	written  map[*predict.Shape]bool // inputs were written once
	launched map[*predict.Shape]bool // on a caller's stream, and nobody waited
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
			g, err := begin(r, d, o)
			if err == nil {
				err = g.refused(g.mode) // before anything is compiled
			}
			if err != nil {
				return nil, err
			}
			p, err := predict.Open(d, r, weights, predict.Options{})
			if err != nil {
				return nil, err
			}
			g.attach(&p.Graphs, d)
			p.Shapes()[0].Graph.Refusal = g.support.Err()
			m := &model{p, g, d.Name() == "host", o, map[*predict.Shape]bool{}, map[*predict.Shape]bool{}}
			described := describe(r, d, p.Shapes()[0].Model)
			described.Line = g.line()
			result = asJSON(described)
			return m, nil
		})
		return result, err
	})
}

// AddRecording loads a further recording of a model, with the weights that it wants: a job that gives a description.
func AddRecording(ticket, number, recordingAt, recordingBytes, weightsAt, weightsBytes int64) (result string, err error) {
	defer finish(&err)
	recordingData, weightsData := copied(recordingAt, recordingBytes), copied(weightsAt, weightsBytes)
	return run(ticket, func(*job) (result string, err error) {
		r, weights, err := decode(recordingData, weightsData)
		if err != nil {
			return "", err
		}
		err = use(number, func(o *object, m *model) error {
			if r.Header.Mode != "predict" {
				return as(codeRecording, wrongMode("model", "predict", r.Header.Mode))
			}
			support := supportOf(r, o.device, m.options)
			if m.graphs.mode == replay.On && !support.Supported() {
				return as(codeUncertified, support.Err())
			}
			s, err := m.Add(r, weights, predict.Options{})
			if err != nil {
				return as(codeDevice, err)
			}
			m.graphs.further(s.Graph, support)
			described := describe(r, o.device, s.Model)
			described.Line = m.graphs.warning()
			result = asJSON(described)
			return nil
		})
		return result, err
	})
}

// LoadWeights gives every recording of a model other weights: a job. Captured graphs stay valid.
func LoadWeights(ticket, number, weightsAt, weightsBytes int64) (result string, err error) {
	defer finish(&err)
	data := copied(weightsAt, weightsBytes)
	return run(ticket, func(*job) (string, error) {
		return "{}", use(number, func(_ *object, m *model) error {
			all := make([]engine.Weights, len(m.Shapes()))
			for i, s := range m.Shapes() { // nothing changes if they do not fit one
				var err error
				if all[i], err = decodeWeights(s.Recording, data); err != nil {
					return err
				}
			}
			if err := m.settle(); err != nil {
				return err
			}
			for i, s := range m.Shapes() {
				if err := s.SetWeights(all[i]); err != nil {
					return as(codeDevice, err)
				}
			}
			return nil
		})
	})
}

// choose finds, among recordings by their numbers, the one for what inputs at addresses of the host hold.
func (m *model) choose(numbers []int, inputs []int64, onDevice bool) (*predict.Shape, error) {
	var last *predict.Shape
	var data [][]byte
	for _, n := range numbers {
		if n < 0 || n >= len(m.Shapes()) || len(inputs) != len(m.Shapes()[n].Inputs) {
			return nil, as(codeInternal, fmt.Errorf("no recording %d of %d with %d inputs", n, len(m.Shapes()), len(inputs)))
		}
		s := m.Shapes()[n]
		if len(numbers) == 1 || onDevice {
			return s, nil
		}
		last, data = s, data[:0]
		for i, address := range inputs {
			data = append(data, at(address, s.Inputs[i].Bytes()))
		}
		if s.Holds(data) {
			return s, nil
		}
	}
	if last == nil {
		return nil, as(codeInput, diag.New("NO_RECORDING", "inputs", "no recording was named"))
	}
	return nil, as(codeInput, last.Accepts(data))
}

// settle waits for what was launched for a caller's stream.
func (m *model) settle() error {
	var errs []error
	for s := range m.launched {
		delete(m.launched, s)
		errs = append(errs, s.Wait())
	}
	return as(codeDevice, errors.Join(errs...))
}

func (m *model) captureNow(w wanted) error {
	found, err := m.Find(predict.Wanted{ImgSize: w.ImgSize, Batch: w.Batch, DType: w.DType})
	if err != nil {
		return as(codeInput, err)
	}
	if err := m.settle(); err != nil {
		return err
	}
	for _, s := range found {
		if s.Graph.Refusal != nil && !m.graphs.Trial {
			return as(codeUncertified, s.Graph.Refusal)
		}
		if err := m.zeroInputs(s); err != nil {
			return err
		}
		if err := s.Graph.Capture(); err != nil {
			return err
		}
	}
	return nil
}

func (m *model) releaseNow() error {
	return errors.Join(m.settle(), m.graphs.Release())
}

func (m *model) lastWords() string { return m.graphs.lastWords() }

func (m *model) graphInfo() info { return m.graphs.info(m.Models()) }

// zeroInputs gives inputs that were never written a content, before a step runs to warm up: garbage could be an index.
func (m *model) zeroInputs(s *predict.Shape) error {
	if m.written[s] {
		return nil
	}
	for i := range s.Inputs {
		if s.IsKey(i) {
			continue // no step reads it
		}
		if err := s.ZeroInput(i); err != nil {
			return err
		}
	}
	return nil
}
