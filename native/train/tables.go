package train

import (
	"encoding/binary"
	"fmt"
	"math"

	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
	"samebits/native/plan"
)

// The layouts of sgd.cu's structs.
const (
	tensorBytes   = 48
	pieceBytes    = 24
	settingsBytes = (2*maxGroups + 4) * 4
	settingsName  = "settings"

	pieceElements = 4096 // of a tensor, for one block
	blockThreads  = 256

	flagNesterov = 1
	flagInPlace  = 2
)

// tables are the kernel's lists, and what they are made of.
type tables struct {
	tensors, pieces device.Pointer
	rows            []row
	pieceCount      int
}

// row is one tensor that a step updates; a pointer is given only where its flag says so.
type row struct {
	value, gradient, momentum, average device.Pointer
	hasGradient, hasAverage            bool
	elements                           int64
	group                              int64
}

// tail is the optimizer and the average, as the last command of a step.
func (s *Shape) tail(t *plan.Tail) error {
	groups := map[string]int64{}
	for g, names := range s.trainer.recipe.groups {
		for _, n := range names {
			groups[n] = int64(g)
		}
	}
	for i := range s.recording.Storages {
		storage := &s.recording.Storages[i]
		if storage.Role != recording.Parameter && storage.Role != recording.Buffer {
			continue
		}
		r, used, err := s.row(t, storage, groups)
		if err != nil {
			return err
		}
		if used {
			s.launcher.rows = append(s.launcher.rows, r)
			s.launcher.pieceCount += int((r.elements + pieceElements - 1) / pieceElements)
		}
	}
	if s.launcher.pieceCount == 0 {
		return nil
	}
	settings, err := t.Named(settingsName)
	if err != nil {
		return err
	}
	s.launcher.tensors = t.Table(int64(len(s.launcher.rows)) * tensorBytes)
	s.launcher.pieces = t.Table(int64(s.launcher.pieceCount) * pieceBytes)
	t.Emit(&device.Kernel{
		File: "sgd", Entry: "sgd",
		Grid: [3]uint32{uint32(s.launcher.pieceCount), 1, 1}, Block: [3]uint32{blockThreads, 1, 1},
		Args: []any{s.launcher.tensors, s.launcher.pieces, settings},
	})
	return nil
}

// row finds the places of one parameter or buffer; used is false where a step changes neither it nor its average.
func (s *Shape) row(t *plan.Tail, storage *recording.Storage, groups map[string]int64) (r row, used bool, err error) {
	if storage.DType != tensor.Float32 {
		return r, false, nil
	}
	if r.value, err = t.Named(stateName(*storage)); err != nil {
		return r, false, err
	}
	r.elements = storage.Bytes / 4
	if s.trainer.recipe.average {
		if r.average, err = t.Named("ema." + storage.Name); err != nil {
			return r, false, err
		}
		r.hasAverage = true
	}
	group, trained := groups[storage.Name]
	if trained && storage.Role == recording.Parameter {
		r.group = group
		if r.gradient, r.hasGradient = t.Output("grad." + storage.Name); r.hasGradient {
			if err := s.checkGradient(storage); err != nil {
				return r, false, err
			}
			if r.momentum, err = t.Named("momentum." + storage.Name); err != nil {
				return r, false, err
			}
		}
	}
	return r, r.hasGradient || r.hasAverage, nil
}

// checkGradient makes sure that element i of the gradient belongs to element i of the parameter.
func (s *Shape) checkGradient(storage *recording.Storage) error {
	for i, o := range s.recording.Outputs {
		if o.Name != "grad."+storage.Name {
			continue
		}
		v := &s.recording.Values[o.Value]
		if v.DType != tensor.Float32 || !v.Contiguous() || v.Numel()*4 != storage.Bytes {
			return diag.New("UNSUPPORTED_OPTIMIZER", fmt.Sprintf("outputs[%d]", i),
				"gradient %s is %s%v with strides %v, the trainer needs it as its parameter is: contiguous float32", o.Name, v.DType, v.Sizes, v.Strides)
		}
	}
	return nil
}

// fill writes the tables, now that addresses are known.
func (s *Shape) fill() error {
	if s.launcher.pieceCount == 0 {
		return nil
	}
	address := func(p device.Pointer, given bool) uint64 {
		if !given {
			return 0
		}
		return uint64(s.model.Resolve(p))
	}
	put := binary.LittleEndian.AppendUint64
	var rows, pieces []byte
	for i, r := range s.launcher.rows {
		rows = put(rows, address(r.value, true))
		rows = put(rows, address(r.gradient, r.hasGradient))
		rows = put(rows, address(r.momentum, r.hasGradient))
		rows = put(rows, address(r.average, r.hasAverage))
		rows = put(rows, uint64(r.elements))
		rows = put(rows, uint64(r.group))
		for at := int64(0); at < r.elements; at += pieceElements {
			pieces = put(pieces, uint64(i))
			pieces = put(pieces, uint64(at))
			pieces = put(pieces, uint64(min(at+pieceElements, r.elements)))
		}
	}
	if err := s.model.WriteTable(s.launcher.tensors, rows); err != nil {
		return err
	}
	return s.model.WriteTable(s.launcher.pieces, pieces)
}

// Hyper are the hyperparameters of one step. They are rounded to float32 where PyTorch rounds its Python numbers.
type Hyper struct {
	LR, WeightDecay []float64 // by parameter group
	Momentum        float64
	EMADecay        float64
}

// encode lays the settings out as sgd.cu reads them.
func (h *Hyper) encode(r recipe, to []byte) []byte {
	put := func(v float64) { to = binary.LittleEndian.AppendUint32(to, math.Float32bits(float32(v))) }
	for g := range maxGroups {
		if g < len(h.LR) {
			put(-h.LR[g])
		} else {
			put(0)
		}
	}
	for g := range maxGroups {
		if g < len(h.WeightDecay) {
			put(h.WeightDecay[g])
		} else {
			put(0)
		}
	}
	put(h.Momentum)
	put(h.EMADecay)
	put(1 - h.EMADecay)
	flags := uint32(0)
	if r.nesterov {
		flags |= flagNesterov
	}
	if r.inPlace {
		flags |= flagInPlace
	}
	return binary.LittleEndian.AppendUint32(to, flags)
}
