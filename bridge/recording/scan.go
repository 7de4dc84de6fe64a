package recording

import (
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"samebits/bridge/diag"
	"samebits/bridge/proto/samebitsv1"
)

// recursionLimit is how deep messages may lie: recording, operation, argument, and two for each list.
const recursionLimit = 3 + 2*(MaxDepth+2)

// scan walks encoded bytes before anything is allocated for them. An empty message takes two bytes on the wire and a
// hundred in memory, so the number of messages and of list items is what bounds memory. Fields that the schema does not have are listed:
// the decoder would keep them aside, and a flipped bit would go unnoticed. Places are offsets, as "byte 12".
func scan(data []byte) (unknown diag.Problems, err error) {
	if len(data) > MaxBytes {
		return nil, diag.New("TOO_LARGE", place(MaxBytes), "the recording has %d bytes, more than %d", len(data), MaxBytes)
	}
	s := &scanner{room: cap(data)}
	if err := s.message(data, (&samebitsv1.Recording{}).ProtoReflect().Descriptor(), 0); err != nil {
		return nil, err
	}
	return s.unknown, nil
}

type scanner struct {
	room     int // capacity of the whole: what a slice of it has less is its offset
	elements int
	unknown  diag.Problems
}

func (s *scanner) at(data []byte) string { return place(s.room - cap(data)) }

func place(offset int) string { return fmt.Sprintf("byte %d", offset) }

func (s *scanner) message(data []byte, m protoreflect.MessageDescriptor, depth int) error {
	if depth > recursionLimit {
		return diag.New("TOO_DEEP", s.at(data), "lists are nested deeper than %d", MaxDepth)
	}
	if err := s.count(1, data); err != nil {
		return err
	}
	for len(data) > 0 {
		number, wire, n := protowire.ConsumeTag(data)
		if n < 0 {
			return s.torn(data, m, protowire.ParseError(n))
		}
		tag := data
		data = data[n:]
		size := protowire.ConsumeFieldValue(number, wire, data)
		if size < 0 {
			return s.torn(data, m, protowire.ParseError(size))
		}
		field := m.Fields().ByNumber(number)
		switch {
		case field == nil || !fits(field, wire):
			s.unknown.Add("UNKNOWN_FIELD", s.at(tag), "%s has a field %d of wire type %d that the schema does not have", m.Name(), number, wire)
		case field.Message() != nil:
			inner, _ := protowire.ConsumeBytes(data)
			if err := s.message(inner, field.Message(), depth+1); err != nil {
				return err
			}
		case field.Kind() == protoreflect.StringKind:
			if text, _ := protowire.ConsumeBytes(data); !utf8.Valid(text) {
				return s.torn(data, m, fmt.Errorf("%s is not UTF-8", field.Name()))
			}
		case field.IsList(): // of integers: each ends in a byte whose high bit is clear
			items := 0
			for _, b := range data[:size] {
				items += int(1 - b>>7)
			}
			if err := s.count(items, data); err != nil {
				return err
			}
		}
		data = data[size:]
	}
	return nil
}

func (s *scanner) count(n int, data []byte) error {
	if s.elements += n; s.elements > MaxElements {
		return diag.New("TOO_LARGE", s.at(data), "the recording has more than %d elements", MaxElements)
	}
	return nil
}

// fits reports whether the decoder reads a field of this wire type, rather than keep it aside as unknown.
func fits(field protoreflect.FieldDescriptor, wire protowire.Type) bool {
	switch field.Kind() {
	case protoreflect.MessageKind, protoreflect.StringKind:
		return wire == protowire.BytesType
	case protoreflect.DoubleKind:
		return wire == protowire.Fixed64Type
	default: // integers, booleans, enumerations; lists of them are packed
		return wire == protowire.VarintType || wire == protowire.BytesType && field.IsList()
	}
}

func (s *scanner) torn(data []byte, m protoreflect.MessageDescriptor, err error) error {
	return diag.New("TORN_RECORDING", s.at(data), "it is no recording, or a torn one: %v", fmt.Errorf("in %s: %w", m.Name(), err))
}
