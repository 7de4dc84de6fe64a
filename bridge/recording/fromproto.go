package recording

import (
	"fmt"
	"math"

	"samebits/bridge/diag"
	"samebits/bridge/proto/samebitsv1"
	"samebits/bridge/tensor"
)

// fromProto turns the wire's message into ours. What the wire can say and we cannot is a problem.
func fromProto(m *samebitsv1.Recording) (*Recording, diag.Problems) {
	var problems diag.Problems
	r := &Recording{
		Header:     headerFrom(m.GetHeader()),
		Storages:   make([]Storage, len(m.Storages)),
		Values:     make([]Value, len(m.Values)),
		Operations: make([]Operation, len(m.Operations)),
		Inputs:     namedFrom(m.Inputs),
		Outputs:    namedFrom(m.Outputs),
		Slots:      make([]Slot, len(m.Slots)),
	}
	for i, s := range m.Storages {
		if s.Bytes > math.MaxInt64 {
			problems.Add("BAD_SIZE", fmt.Sprintf("storages[%d].bytes", i), "%d bytes", s.Bytes)
		}
		r.Storages[i] = Storage{Bytes: int64(min(s.Bytes, math.MaxInt64)), Role: roleFrom(s.Role), Name: s.Name, DType: dtypeFrom(s.Dtype)}
	}
	for i, v := range m.Values {
		r.Values[i] = Value{Storage: int(v.Storage), DType: dtypeFrom(v.Dtype), Sizes: v.Sizes, Strides: v.Strides, Offset: v.Offset, Alignment: v.Alignment}
	}
	for i, o := range m.Operations {
		path := fmt.Sprintf("operations[%d]", i)
		r.Operations[i] = Operation{
			Name:      o.Name,
			Arguments: argumentsFrom(o.Arguments, path+".arguments", &problems),
			Results:   argumentsFrom(o.Results, path+".results", &problems),
			Module:    o.Module, Source: o.Source,
		}
	}
	for i, s := range m.Slots {
		r.Slots[i] = Slot{Name: s.Name, DType: dtypeFrom(s.Dtype)}
	}
	return r, problems
}

func headerFrom(h *samebitsv1.Header) Header {
	return Header{
		Family: h.GetFamily(), Size: h.GetSize(), Task: h.GetTask(), Mode: h.GetMode(), Precision: h.GetPrecision(), Profile: h.GetProfile(),
		ProfileSettings: settingsFrom(h.GetProfileSettings()), DeviceType: h.GetDeviceType(), Environment: settingsFrom(h.GetEnvironment()),
		Seed: h.GetSeed(), Seasoning: h.GetSeasoning(), ImgSize: h.GetImgsz(), Batch: h.GetBatch(),
	}
}

func settingsFrom(list []*samebitsv1.Setting) []Setting {
	var out []Setting
	for _, s := range list {
		out = append(out, Setting{s.Key, s.Value})
	}
	return out
}

func namedFrom(list []*samebitsv1.NamedValue) []Named {
	var out []Named
	for _, n := range list {
		out = append(out, Named{n.Name, int(n.Value)})
	}
	return out
}

// dtypeFrom and roleFrom give the invalid value for numbers that we do not know; Verify reports them.
func dtypeFrom(d samebitsv1.DType) tensor.DType {
	if d < 0 || d > samebitsv1.DType(tensor.Float64) {
		return tensor.Invalid
	}
	return tensor.DType(d)
}

func roleFrom(r samebitsv1.Role) Role {
	if r < 0 || r > samebitsv1.Role(Scratch) {
		return RoleInvalid
	}
	return Role(r)
}

func argumentsFrom(list []*samebitsv1.Argument, path string, problems *diag.Problems) []Argument {
	if len(list) == 0 {
		return nil
	}
	out := make([]Argument, len(list))
	for i, m := range list {
		a := &out[i]
		a.Name = m.Name
		switch k := m.Kind.(type) {
		case *samebitsv1.Argument_None:
			a.Kind = None
		case *samebitsv1.Argument_Value:
			a.Kind, a.Value = ValueOf, int(k.Value)
		case *samebitsv1.Argument_Boolean:
			a.Kind, a.Bool = Boolean, k.Boolean
		case *samebitsv1.Argument_Integer:
			a.Kind, a.Int = Integer, k.Integer
		case *samebitsv1.Argument_Real:
			a.Kind, a.Real = Real, k.Real
		case *samebitsv1.Argument_Text:
			a.Kind, a.Text = Text, k.Text
		case *samebitsv1.Argument_List:
			a.Kind, a.Items = List, argumentsFrom(k.List.GetItems(), fmt.Sprintf("%s[%d].list", path, i), problems)
		case *samebitsv1.Argument_Dtype:
			a.Kind, a.DType = DTypeOf, dtypeFrom(k.Dtype)
		case *samebitsv1.Argument_MemoryFormat:
			a.Kind, a.Text = MemoryFormat, k.MemoryFormat
		case *samebitsv1.Argument_Layout:
			a.Kind, a.Text = Layout, k.Layout
		case *samebitsv1.Argument_Device:
			a.Kind, a.Text = Device, k.Device
		case *samebitsv1.Argument_Slot:
			a.Kind, a.Slot = SlotOf, int(k.Slot)
		default:
			problems.Add("NO_KIND", fmt.Sprintf("%s[%d]", path, i), "the argument says neither a value nor none")
		}
	}
	return out
}
