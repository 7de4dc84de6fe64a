package recording

import (
	"fmt"
	"strconv"
	"strings"
)

// Signature is an operation on one line, for messages:
//
//	aten::convolution(input float32[1,3,8,8], weight float32[4,3,3,3], bias none, stride [1,1]) -> float32[1,4,8,8]
//
// A tensor is its dtype and sizes, and unless it is contiguous its strides and offset: float32[8,4]:[1,8]+16.
func (r *Recording) Signature(o *Operation) string {
	var b strings.Builder
	b.WriteString(o.Name)
	b.WriteByte('(')
	for i := range o.Arguments {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(o.Arguments[i].Name)
		b.WriteByte(' ')
		r.write(&b, &o.Arguments[i])
	}
	b.WriteString(") -> ")
	for i := range o.Results {
		if i > 0 {
			b.WriteString(", ")
		}
		r.write(&b, &o.Results[i])
	}
	if len(o.Results) == 0 {
		b.WriteString("nothing")
	}
	return b.String()
}

// write is safe for recordings that were not verified.
func (r *Recording) write(b *strings.Builder, a *Argument) {
	switch a.Kind {
	case None:
		b.WriteString("none")
	case ValueOf:
		if a.Value < 0 || a.Value >= len(r.Values) {
			fmt.Fprintf(b, "value %d", a.Value)
			return
		}
		b.WriteString(r.Values[a.Value].String())
	case Boolean:
		b.WriteString(strconv.FormatBool(a.Bool))
	case Integer:
		b.WriteString(strconv.FormatInt(a.Int, 10))
	case Real:
		b.WriteString(real(a.Real))
	case Text:
		b.WriteString(strconv.Quote(a.Text))
	case List:
		b.WriteByte('[')
		for i := range a.Items {
			if i > 0 {
				b.WriteByte(',')
			}
			r.write(b, &a.Items[i])
		}
		b.WriteByte(']')
	case DTypeOf:
		b.WriteString(a.DType.String())
	case MemoryFormat, Layout, Device:
		b.WriteString(a.Text)
	case SlotOf:
		if a.Slot < 0 || a.Slot >= len(r.Slots) {
			fmt.Fprintf(b, "slot %d", a.Slot)
			return
		}
		b.WriteString("slot " + r.Slots[a.Slot].Name)
	default:
		fmt.Fprintf(b, "kind(%d)", a.Kind)
	}
}

// real keeps a number apart from an integer of the same value: 1.0 is not 1.
func real(f float64) string {
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".eIN") {
		s += ".0"
	}
	return s
}

// String is the value's dtype and sizes, with strides and offset where they are not those of a contiguous tensor.
func (v *Value) String() string {
	var b strings.Builder
	b.WriteString(v.DType.String())
	numbers(&b, v.Sizes)
	if len(v.Sizes) != len(v.Strides) || !v.Contiguous() {
		b.WriteByte(':')
		numbers(&b, v.Strides)
	}
	if v.Offset != 0 {
		fmt.Fprintf(&b, "+%d", v.Offset)
	}
	return b.String()
}

func numbers(b *strings.Builder, list []int64) {
	b.WriteByte('[')
	for i, n := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(n, 10))
	}
	b.WriteByte(']')
}
