package recording

import (
	"fmt"
	"unicode"

	"samebits/bridge/diag"
)

// Verify lists every problem of r at once. A recording without problems is safe to run: indices are in range, values lie
// within their storages, nothing reads memory that no one wrote, names are unique.
func Verify(r *Recording) diag.Problems {
	v := &verifier{r: r, aligned: make([]residue, len(r.Storages))}
	if !v.counts() {
		return v.problems
	}
	v.header()
	v.storages()
	v.values()
	v.slots()
	v.operations()
	v.ends()
	return v.problems
}

type verifier struct {
	r        *Recording
	problems diag.Problems
	written  []bool    // storages whose content is defined
	aligned  []residue // what is known of each storage's address
}

func (v *verifier) add(reason, path, format string, args ...any) {
	v.problems.Add(reason, path, format, args...)
}

func (v *verifier) counts() bool {
	for _, c := range []struct {
		path        string
		count, most int
	}{
		{"storages", len(v.r.Storages), MaxStorages}, {"values", len(v.r.Values), MaxValues},
		{"operations", len(v.r.Operations), MaxOperations}, {"slots", len(v.r.Slots), MaxValues},
		{"inputs", len(v.r.Inputs), MaxValues}, {"outputs", len(v.r.Outputs), MaxValues},
	} {
		if c.count > c.most {
			v.add("TOO_LARGE", c.path, "there are %d, more than %d", c.count, c.most)
		}
	}
	return len(v.problems) == 0
}

// header checks what every user of a recording relies on. Families and tasks are not known here: only their names' form.
func (v *verifier) header() {
	h := &v.r.Header
	for _, f := range []struct{ path, text string }{
		{"header.family", h.Family}, {"header.size", h.Size}, {"header.task", h.Task}, {"header.profile", h.Profile},
	} {
		if !identifier(f.text) {
			v.add("BAD_HEADER", f.path, "%.64q is no name of letters, digits and _ . + - @", f.text)
		}
	}
	for _, f := range []struct {
		path, text string
		known      []string
	}{
		{"header.mode", h.Mode, []string{"predict", "train"}},
		{"header.precision", h.Precision, []string{"fp32", "bf16", "fp16", "fp64"}},
		{"header.device_type", h.DeviceType, []string{"cuda", "cpu"}},
	} {
		if !oneOf(f.text, f.known) {
			v.add("BAD_HEADER", f.path, "%.64q is none of %v", f.text, f.known)
		}
	}
	for _, f := range []struct {
		path  string
		value int64
	}{{"header.imgsz", h.ImgSize}, {"header.batch", h.Batch}} {
		if f.value < 1 || f.value > maxExtent {
			v.add("BAD_HEADER", f.path, "%d is not between 1 and %d", f.value, maxExtent)
		}
	}
	if !printable(h.Seasoning, maxText) {
		v.add("BAD_HEADER", "header.seasoning", "it is longer than %d bytes or not printable", maxText)
	}
	v.settings("header.profile_settings", h.ProfileSettings)
	v.settings("header.environment", h.Environment)
}

func (v *verifier) settings(path string, list []Setting) {
	for i, s := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		if s.Key == "" || !printable(s.Key, maxName) || !printable(s.Value, maxText) {
			v.add("BAD_HEADER", at, "the setting %.64q is empty, too long or not printable", s.Key)
		}
		if i > 0 && list[i-1].Key >= s.Key {
			v.add("BAD_HEADER", at, "%.64q does not come after %.64q: settings are sorted, each once", s.Key, list[i-1].Key)
		}
	}
}

func (v *verifier) slots() {
	seen := map[string]int{}
	for i, s := range v.r.Slots {
		path := fmt.Sprintf("slots[%d]", i)
		v.name(path+".name", s.Name, i, seen)
		if !s.DType.Valid() {
			v.add("UNKNOWN_DTYPE", path+".dtype", "slot %.64q has no dtype that we know", s.Name)
		}
	}
}

// name checks a name that must be there and unique in seen.
func (v *verifier) name(path, name string, i int, seen map[string]int) {
	if name == "" || !printable(name, maxName) {
		v.add("BAD_NAME", path, "the name %.64q is empty, longer than %d bytes or not printable", name, maxName)
		return
	}
	if first, ok := seen[name]; ok {
		v.add("DUPLICATE_NAME", path, "the name %.200q is that of number %d already", name, first)
		return
	}
	seen[name] = i
}

// ends checks inputs and outputs of the step.
func (v *verifier) ends() {
	seen := map[string]int{}
	for i, n := range v.r.Inputs {
		path := fmt.Sprintf("inputs[%d]", i)
		v.name(path+".name", n.Name, i, seen)
		if s, ok := v.storageOf(path+".value", n.Value); ok && v.r.Storages[s].Role != Input {
			v.add("BAD_ROLE", path+".value", "input %.64q lies on storages[%d], whose role is %s", n.Name, s, v.r.Storages[s].Role)
		}
	}
	clear(seen)
	for i, n := range v.r.Outputs {
		path := fmt.Sprintf("outputs[%d]", i)
		v.name(path+".name", n.Name, i, seen)
		if s, ok := v.storageOf(path+".value", n.Value); ok && !v.written[s] {
			v.add("NEVER_WRITTEN", path+".value", "output %.64q lies on storages[%d], which no operation writes", n.Name, s)
		}
	}
	if len(v.r.Outputs) == 0 {
		v.add("NO_OUTPUT", "outputs", "the step has no output")
	}
}

// storageOf gives the storage of a value, if both indices are in range. A bad storage index was reported with its value.
func (v *verifier) storageOf(path string, value int) (int, bool) {
	if value < 0 || value >= len(v.r.Values) {
		v.add("BAD_INDEX", path, "there is no value %d, only %d values", value, len(v.r.Values))
		return 0, false
	}
	s := v.r.Values[value].Storage
	return s, s >= 0 && s < len(v.r.Storages)
}

func oneOf(text string, known []string) bool {
	for _, k := range known {
		if text == k {
			return true
		}
	}
	return false
}

// identifier reports whether text is a short name of letters, digits and _ . + - and @, which stands before a variant
func identifier(text string) bool {
	if text == "" || len(text) > 64 {
		return false
	}
	for _, c := range []byte(text) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '.', c == '+', c == '-', c == '@':
		default:
			return false
		}
	}
	return true
}

// printable reports whether text can stand in a message without doing harm to a terminal.
func printable(text string, most int) bool {
	if len(text) > most {
		return false
	}
	for _, c := range text {
		if !unicode.IsPrint(c) {
			return false
		}
	}
	return true
}
