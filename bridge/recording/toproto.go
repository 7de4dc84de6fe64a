package recording

import (
	"fmt"
	"math"

	"samebits/bridge/proto/samebitsv1"
)

// toProto turns r into the wire's message.
func toProto(r *Recording) (*samebitsv1.Recording, error) {
	h := &r.Header
	m := &samebitsv1.Recording{Header: &samebitsv1.Header{
		Schema: Schema, Family: h.Family, Size: h.Size, Task: h.Task, Mode: h.Mode, Precision: h.Precision, Profile: h.Profile,
		ProfileSettings: settingsTo(h.ProfileSettings), DeviceType: h.DeviceType, Environment: settingsTo(h.Environment),
		Seed: h.Seed, Seasoning: h.Seasoning, Imgsz: h.ImgSize, Batch: h.Batch,
	}}
	for i, s := range r.Storages {
		if s.Bytes < 0 {
			return nil, fmt.Errorf("storages[%d] has %d bytes", i, s.Bytes)
		}
		m.Storages = append(m.Storages, &samebitsv1.Storage{Bytes: uint64(s.Bytes), Role: samebitsv1.Role(s.Role), Name: s.Name, Dtype: samebitsv1.DType(s.DType)})
	}
	for i, v := range r.Values {
		storage, err := index(v.Storage)
		if err != nil {
			return nil, fmt.Errorf("values[%d].storage: %w", i, err)
		}
		m.Values = append(m.Values, &samebitsv1.Value{Storage: storage, Dtype: samebitsv1.DType(v.DType), Sizes: v.Sizes, Strides: v.Strides, Offset: v.Offset, Alignment: v.Alignment})
	}
	for i, o := range r.Operations {
		arguments, err := argumentsTo(o.Arguments)
		if err != nil {
			return nil, fmt.Errorf("operations[%d].arguments%w", i, err)
		}
		results, err := argumentsTo(o.Results)
		if err != nil {
			return nil, fmt.Errorf("operations[%d].results%w", i, err)
		}
		m.Operations = append(m.Operations, &samebitsv1.Operation{Name: o.Name, Arguments: arguments, Results: results, Module: o.Module, Source: o.Source})
	}
	var err error
	if m.Inputs, err = namedTo(r.Inputs); err != nil {
		return nil, fmt.Errorf("inputs%w", err)
	}
	if m.Outputs, err = namedTo(r.Outputs); err != nil {
		return nil, fmt.Errorf("outputs%w", err)
	}
	for _, s := range r.Slots {
		m.Slots = append(m.Slots, &samebitsv1.Slot{Name: s.Name, Dtype: samebitsv1.DType(s.DType)})
	}
	return m, nil
}

// index checks that the wire, whose indices have 32 bits without sign, can hold i.
func index(i int) (uint32, error) {
	if i < 0 || int64(i) > math.MaxUint32 {
		return 0, fmt.Errorf("%d is no index", i)
	}
	return uint32(i), nil
}

func settingsTo(list []Setting) []*samebitsv1.Setting {
	var out []*samebitsv1.Setting
	for _, s := range list {
		out = append(out, &samebitsv1.Setting{Key: s.Key, Value: s.Value})
	}
	return out
}

func namedTo(list []Named) ([]*samebitsv1.NamedValue, error) {
	var out []*samebitsv1.NamedValue
	for i, n := range list {
		v, err := index(n.Value)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		out = append(out, &samebitsv1.NamedValue{Name: n.Name, Value: v})
	}
	return out, nil
}

func argumentsTo(list []Argument) ([]*samebitsv1.Argument, error) {
	var out []*samebitsv1.Argument
	for i := range list {
		m := &samebitsv1.Argument{Name: list[i].Name}
		if err := setKind(m, &list[i]); err != nil {
			return nil, fmt.Errorf("[%d]%w", i, err)
		}
		out = append(out, m)
	}
	return out, nil
}

func setKind(m *samebitsv1.Argument, a *Argument) error {
	switch a.Kind {
	case None:
		m.Kind = &samebitsv1.Argument_None{None: true}
	case ValueOf:
		v, err := index(a.Value)
		if err != nil {
			return fmt.Errorf(".value: %w", err)
		}
		m.Kind = &samebitsv1.Argument_Value{Value: v}
	case Boolean:
		m.Kind = &samebitsv1.Argument_Boolean{Boolean: a.Bool}
	case Integer:
		m.Kind = &samebitsv1.Argument_Integer{Integer: a.Int}
	case Real:
		m.Kind = &samebitsv1.Argument_Real{Real: a.Real}
	case Text:
		m.Kind = &samebitsv1.Argument_Text{Text: a.Text}
	case List:
		items, err := argumentsTo(a.Items)
		if err != nil {
			return fmt.Errorf(".list%w", err)
		}
		m.Kind = &samebitsv1.Argument_List{List: &samebitsv1.ArgumentList{Items: items}}
	case DTypeOf:
		m.Kind = &samebitsv1.Argument_Dtype{Dtype: samebitsv1.DType(a.DType)}
	case MemoryFormat:
		m.Kind = &samebitsv1.Argument_MemoryFormat{MemoryFormat: a.Text}
	case Layout:
		m.Kind = &samebitsv1.Argument_Layout{Layout: a.Text}
	case Device:
		m.Kind = &samebitsv1.Argument_Device{Device: a.Text}
	case SlotOf:
		s, err := index(a.Slot)
		if err != nil {
			return fmt.Errorf(".slot: %w", err)
		}
		m.Kind = &samebitsv1.Argument_Slot{Slot: s}
	default:
		return fmt.Errorf(": kind %d is unknown", a.Kind)
	}
	return nil
}
