package signature

import (
	"fmt"

	"samebits/bridge/recording"
)

// isolate gives a recording of one operation of r, in a form that is the same for equal operations: values and storages
// are numbered as the operation names them, arguments' storages begin at the multiple of recording.MaxAlignment bytes
// below their first element and end behind their last, and nothing says where the operation comes from.
func isolate(r *recording.Recording, op *recording.Operation) *recording.Recording {
	h := r.Header
	x := &isolator{from: r, values: map[int]int{}, storages: map[int]int{}, to: &recording.Recording{
		Header: recording.Header{Family: "operations", Size: "1", Task: "operation", Mode: "predict", Precision: "fp32",
			Profile: h.Profile, ProfileSettings: profileSettings(h.ProfileSettings), DeviceType: h.DeviceType, Seasoning: "none",
			ImgSize: 1, Batch: 1},
	}}
	given := recording.Values(op.Arguments, nil)
	x.shifts = shifts(r, given, recording.Values(op.Results, nil))
	isolated := recording.Operation{Name: op.Name}
	x.role = recording.Input
	isolated.Arguments = x.arguments(op.Arguments)
	x.role = recording.Output
	isolated.Results = x.arguments(op.Results)
	x.to.Operations = []recording.Operation{isolated}
	for i := range x.to.Storages {
		s := &x.to.Storages[i]
		s.Bytes = (s.Bytes + s.DType.Size() - 1) / s.DType.Size() * s.DType.Size()
	}
	return x.to
}

// profileSettings leaves out what is of the step.
func profileSettings(all []recording.Setting) []recording.Setting {
	var kept []recording.Setting
	for _, s := range all {
		if !s.OfStep() {
			kept = append(kept, s)
		}
	}
	return kept
}

type isolator struct {
	from, to         *recording.Recording
	values, storages map[int]int   // from there to here
	shifts           map[int]int64 // by storage there, in bytes
	role             recording.Role
}

func (x *isolator) arguments(list []recording.Argument) []recording.Argument {
	out := make([]recording.Argument, len(list))
	for i, a := range list {
		switch a.Kind {
		case recording.ValueOf:
			a.Value = x.value(a.Value)
		case recording.List:
			a.Items = x.arguments(a.Items)
		case recording.SlotOf:
			x.to.Slots = append(x.to.Slots, x.from.Slots[a.Slot])
			x.to.Slots[len(x.to.Slots)-1].Name = fmt.Sprintf("slot%d", len(x.to.Slots)-1)
			a.Slot = len(x.to.Slots) - 1
		}
		out[i] = a
	}
	return out
}

func (x *isolator) value(there int) int {
	if here, known := x.values[there]; known {
		return here
	}
	v := x.from.Values[there]
	v.Offset -= x.shifts[v.Storage] / v.DType.Size()
	if v.Numel() == 0 {
		v.Offset = 0
	}
	v.Storage = x.storage(v.Storage, &v)
	x.values[there] = len(x.to.Values)
	x.to.Values = append(x.to.Values, v)
	return len(x.to.Values) - 1
}

func (x *isolator) storage(there int, v *recording.Value) int {
	here, known := x.storages[there]
	if !known {
		here = len(x.to.Storages)
		x.storages[there] = here
		s := recording.Storage{Role: x.role, DType: v.DType}
		if x.role == recording.Input {
			s.Name = fmt.Sprintf("s%d", here)
		}
		x.to.Storages = append(x.to.Storages, s)
	}
	s := &x.to.Storages[here]
	s.Bytes = max(s.Bytes, end(v))
	return here
}

// shifts gives how many bytes of each argument's storage lie before all that the operation touches. Only whole multiples of the
// largest alignment count: addresses stay what they were as far as anybody looks. What an operation makes is not shifted,
// unless it lies on an argument.
func shifts(r *recording.Recording, given, made []int) map[int]int64 {
	least := map[int]int64{}
	for n, list := range [][]int{given, made} {
		for _, i := range list {
			v := &r.Values[i]
			first, known := least[v.Storage]
			if n == 1 && !known || v.Numel() == 0 {
				continue
			}
			if at := v.Offset * v.DType.Size(); !known || at < first {
				least[v.Storage] = at
			}
		}
	}
	for s, at := range least {
		least[s] = at / recording.MaxAlignment * recording.MaxAlignment
	}
	return least
}

// end is the number of bytes up to the last element of v.
func end(v *recording.Value) int64 {
	if v.Numel() == 0 {
		return 0
	}
	last := v.Offset
	for d, n := range v.Sizes {
		last += (n - 1) * v.Strides[d]
	}
	return (last + 1) * v.DType.Size()
}
