package recording_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"samebits/bridge/fuzztest"
	"samebits/bridge/proto/samebitsv1"
	"samebits/bridge/recording"
	"samebits/bridge/recording/recordingtest"
)

// kept are recordings of real steps, in a file each.
const kept = "../python/tests/data/*/recording.pb"

// decode checks what holds of any bytes.
func decode(t *testing.T, data []byte) {
	t.Helper()
	var r *recording.Recording
	var err error
	fuzztest.Bounded(t, len(data), 1<<20, 400, func() { r, err = recording.Decode(data) })
	if err != nil {
		fuzztest.Refused(t, err)
		return
	}
	useEverything(r)
	encoded := recordingtest.Encoded(t, r)
	again, err := recording.Decode(encoded)
	if err != nil {
		t.Fatalf("encoded again it is refused: %v", err)
	}
	if ds := recording.Equal(r, again); len(ds) > 0 {
		t.Errorf("encoded again it differs: %v", ds)
	}
	if !bytes.Equal(recordingtest.Encoded(t, again), encoded) {
		t.Error("it has two encodings")
	}
}

func FuzzDecode(f *testing.F) {
	seeds := fuzztest.Seeds(f, 4<<10, kept)
	for _, r := range []*recording.Recording{recordingtest.ConvBNReLU(), everyKind()} {
		seeds = append(seeds, recordingtest.Encoded(f, r))
	}
	for _, data := range seeds {
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Fuzz(decode)
}

// FuzzEdit changes fields of a sound recording, which other bytes would mostly tear: what reaches Verify and what comes behind it.
func FuzzEdit(f *testing.F) {
	var sound []*samebitsv1.Recording
	for _, data := range append(fuzztest.Seeds(f, 4<<10, kept), recordingtest.Encoded(f, recordingtest.ConvBNReLU()), recordingtest.Encoded(f, everyKind())) {
		m := &samebitsv1.Recording{}
		if err := proto.Unmarshal(data, m); err != nil {
			f.Fatal(err)
		}
		sound = append(sound, m)
	}
	for i := range sound {
		f.Add(uint8(i), []byte{})
		f.Add(uint8(i), fuzztest.Edit(7, 0, -1))
		f.Add(uint8(i), append(fuzztest.Edit(40, 1, 3), fuzztest.Edit(41, 2, 1<<62)...))
	}
	f.Fuzz(func(t *testing.T, which uint8, edits []byte) {
		m := proto.CloneOf(sound[int(which)%len(sound)])
		fuzztest.Edits(edits, func(where uint16, deed byte, number int64) { apply(m, where, deed, number) })
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			return // text that is no UTF-8
		}
		decode(t, data)
	})
}

// apply does a deed to one of all fields that a message and those in it have, counted in their order and from the start again.
func apply(m proto.Message, field uint16, deed byte, number int64) {
	var all []place
	collect(m.ProtoReflect(), &all)
	if len(all) > 0 {
		all[int(field)%len(all)].change(deed, number)
	}
}

// place is a field of a message.
type place struct {
	in    protoreflect.Message
	field protoreflect.FieldDescriptor
}

func collect(m protoreflect.Message, all *[]place) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() { // in their order: Range has none
		field := fields.Get(i)
		if !m.Has(field) {
			continue
		}
		*all = append(*all, place{m, field})
		switch {
		case field.Message() != nil && field.IsList():
			for j := range m.Get(field).List().Len() {
				collect(m.Get(field).List().Get(j).Message(), all)
			}
		case field.Message() != nil:
			collect(m.Get(field).Message(), all)
		}
	}
}

func (p place) change(deed byte, number int64) {
	if !p.field.IsList() {
		if deed%4 == 0 {
			p.in.Clear(p.field)
		} else if p.field.Message() == nil {
			p.in.Set(p.field, scalar(p.field, p.in.Get(p.field), deed, number))
		}
		return
	}
	list := p.in.Mutable(p.field).List()
	at := int(uint64(number) % uint64(list.Len()))
	switch deed % 4 {
	case 0:
		list.Truncate(at)
	case 1:
		list.Append(list.Get(at))
	case 2:
		last := list.Get(list.Len() - 1)
		list.Set(list.Len()-1, list.Get(at))
		list.Set(at, last)
	default:
		if p.field.Message() == nil {
			list.Set(at, scalar(p.field, list.Get(at), deed, number))
		}
	}
}

// scalar is another value for a field: the number itself, or what is there, a little changed.
func scalar(field protoreflect.FieldDescriptor, old protoreflect.Value, deed byte, number int64) protoreflect.Value {
	near := deed&4 != 0 // to what is there
	switch field.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(!old.Bool())
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(number))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(number))
	case protoreflect.StringKind:
		raw := binary.LittleEndian.AppendUint64(nil, uint64(number))
		if near {
			return protoreflect.ValueOfString(old.String() + string(bytes.TrimRight(raw, "\x00")))
		}
		return protoreflect.ValueOfString(string(bytes.TrimRight(raw, "\x00")))
	case protoreflect.Uint32Kind:
		if near {
			return protoreflect.ValueOfUint32(uint32(old.Uint()) + uint32(int8(number)))
		}
		return protoreflect.ValueOfUint32(uint32(number))
	case protoreflect.Uint64Kind:
		if near {
			return protoreflect.ValueOfUint64(old.Uint() + uint64(int8(number)))
		}
		return protoreflect.ValueOfUint64(uint64(number))
	case protoreflect.Int64Kind:
		if near {
			return protoreflect.ValueOfInt64(old.Int() + int64(int8(number)))
		}
		return protoreflect.ValueOfInt64(number)
	}
	return old
}

// FuzzVerify changes numbers that no file can hold.
func FuzzVerify(f *testing.F) {
	f.Add(0, 0, int64(1), int64(-1), uint32(3), uint64(1<<63))
	f.Add(3, 5, int64(1<<62), int64(4), uint32(512), uint64(16))
	f.Fuzz(func(t *testing.T, value, operation int, size, stride int64, alignment uint32, bytes uint64) {
		r := recordingtest.ConvBNReLU()
		v := &r.Values[uint(value)%uint(len(r.Values))]
		if len(v.Sizes) > 0 {
			v.Sizes[0], v.Strides[len(v.Strides)-1] = size, stride
		}
		v.Offset, v.Alignment = size^stride, alignment
		r.Storages[uint(operation)%uint(len(r.Storages))].Bytes = int64(bytes)
		o := &r.Operations[uint(operation)%uint(len(r.Operations))]
		o.Arguments[0].Value, o.Results[0].Value = value, operation
		if ps := recording.Verify(r); len(ps) > 0 {
			fuzztest.Refused(t, ps)
			return
		}
		useEverything(r)
	})
}

// useEverything touches each element that a verified recording says it has.
func useEverything(r *recording.Recording) {
	for i := range r.Values {
		v := &r.Values[i]
		if v.Numel() == 0 {
			continue
		}
		last := v.Offset
		for d := range v.Sizes {
			last += (v.Sizes[d] - 1) * v.Strides[d]
		}
		if end := (last + 1) * v.DType.Size(); last < 0 || end > r.Storages[v.Storage].Bytes {
			panic("a verified value lies outside of its storage")
		}
	}
	for i := range r.Operations {
		_ = r.Signature(&r.Operations[i])
	}
}

func TestFlippedBitsNeverPanic(t *testing.T) {
	whole := recordingtest.Encoded(t, recordingtest.ConvBNReLU())
	for i := range whole {
		for bit := range 8 {
			data := bytes.Clone(whole)
			data[i] ^= 1 << bit
			if r, err := recording.Decode(data); err == nil {
				useEverything(r)
			}
		}
	}
}
