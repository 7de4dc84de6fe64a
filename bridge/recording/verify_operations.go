package recording

import (
	"fmt"
)

// operations walks the list in order, so that it knows what has been written when an operation reads it. Which operations
// create memory without writing it is the engine's knowledge: here a storage counts as written once it was a result.
func (v *verifier) operations() {
	for i := range v.r.Operations {
		o := &v.r.Operations[i]
		path := fmt.Sprintf("operations[%d]", i)
		if !operationName(o.Name) {
			v.add("BAD_NAME", path+".name", "%.64q is no operation's name like aten::add.Tensor", o.Name)
		}
		if !printable(o.Module, maxText) || !printable(o.Source, maxText) {
			v.add("BAD_NAME", path, "module or source is longer than %d bytes or not printable", maxText)
		}
		seen := map[string]int{}
		for j := range o.Arguments {
			a := &o.Arguments[j]
			at := fmt.Sprintf("%s.arguments[%d]", path, j)
			v.name(at+".name", a.Name, j, seen)
			v.argument(at, o, a, 0)
		}
		for j := range o.Results {
			v.result(fmt.Sprintf("%s.results[%d]", path, j), o, &o.Results[j], 0)
		}
	}
}

func (v *verifier) argument(path string, o *Operation, a *Argument, depth int) {
	switch a.Kind {
	case None, Boolean, Integer, Real:
	case Text:
		if !printable(a.Text, maxText) {
			v.add("BAD_ARGUMENT", path+".text", "the text is longer than %d bytes or not printable", maxText)
		}
	case ValueOf:
		if s, ok := v.storageOf(path+".value", a.Value); ok && !v.written[s] {
			v.add("NEVER_WRITTEN", path+".value", "%.64s reads value %d on storages[%d] before any operation wrote it", o.Name, a.Value, s)
		}
	case List:
		if depth == MaxDepth {
			v.add("TOO_DEEP", path, "lists are nested deeper than %d", MaxDepth)
			return
		}
		for i := range a.Items {
			v.argument(fmt.Sprintf("%s.list[%d]", path, i), o, &a.Items[i], depth+1)
		}
	case DTypeOf:
		if !a.DType.Valid() {
			v.add("UNKNOWN_DTYPE", path+".dtype", "the argument has no dtype that we know")
		}
	case MemoryFormat:
		v.word(path+".memory_format", a.Text, []string{"contiguous", "preserve", "channels_last", "channels_last_3d"})
	case Layout:
		v.word(path+".layout", a.Text, []string{"strided"})
	case Device:
		v.word(path+".device", a.Text, []string{"cuda", "cpu"})
	case SlotOf:
		if a.Slot < 0 || a.Slot >= len(v.r.Slots) {
			v.add("BAD_INDEX", path+".slot", "there is no slot %d, only %d slots", a.Slot, len(v.r.Slots))
		}
	default:
		v.add("BAD_ARGUMENT", path, "kind %d is unknown", a.Kind)
	}
}

func (v *verifier) word(path, text string, known []string) {
	if !oneOf(text, known) {
		v.add("BAD_ARGUMENT", path, "%.64q is none of %v", text, known)
	}
}

func (v *verifier) result(path string, o *Operation, a *Argument, depth int) {
	switch a.Kind {
	case None:
	case ValueOf:
		if s, ok := v.storageOf(path+".value", a.Value); ok {
			v.written[s] = true
		}
	case List:
		if depth == MaxDepth {
			v.add("TOO_DEEP", path, "lists are nested deeper than %d", MaxDepth)
			return
		}
		for i := range a.Items {
			v.result(fmt.Sprintf("%s.list[%d]", path, i), o, &a.Items[i], depth+1)
		}
	default:
		v.add("BAD_RESULT", path, "a result of %.64s is neither a value nor a list of values nor none", o.Name)
	}
}

// operationName reports whether name is namespace::operation or namespace::operation.overload.
func operationName(name string) bool {
	if len(name) > maxName {
		return false
	}
	part, colons, dots := 0, 0, 0
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_':
			part++
			continue
		case c == ':' && colons == 0 && part > 0 && i+1 < len(name) && name[i+1] == ':':
			colons++
			i++
		case c == '.' && colons == 1 && dots == 0 && part > 0:
			dots++
		default:
			return false
		}
		part = 0
	}
	return colons == 1 && part > 0
}
