package signature

import (
	"slices"
	"strings"

	"samebits/bridge/recording"
)

// uninitialised operations give whatever lay in memory before.
var uninitialised = []string{"aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty", "aten::new_empty_strided"}

// inPlaceViews change where their first argument lies, not what lies there.
var inPlaceViews = []string{"aten::as_strided_", "aten::squeeze_", "aten::unsqueeze_", "aten::transpose_", "aten::swapaxes_",
	"aten::swapdims_", "aten::t_", "aten::detach_"}

// Base is an operation's name without its overload.
func Base(name string) string {
	short, _, _ := strings.Cut(name, ".")
	return short
}

// classify settles the class, the results and what is written, from who reads what.
func (o *Operation) classify() {
	r, op := o.Alone, o.Op()
	o.Results, o.Written, o.bytes = nil, Writes(op), 0
	for _, s := range r.Storages {
		o.bytes += s.Bytes
	}
	onInput := func(v int) bool { return r.Storages[r.Values[v].Storage].Role == recording.Input }
	undefined := Undefined(op)
	unread, elements, views := 0, 0, 0
	results := recording.Values(op.Results, nil)
	for number, v := range results {
		switch {
		case onInput(v):
			views++
		case r.Values[v].Numel() == 0 || slices.Contains(undefined, number):
		case !o.read[number]:
			unread++
		default:
			o.Results = append(o.Results, Result{number, v})
		}
		if r.Values[v].Numel() > 0 {
			elements++
		}
	}
	switch {
	case len(r.Slots) > 0:
		o.Class = Slotted
	case Creates(op):
		o.Class = Creation
	case elements == 0:
		o.Class = Empty
	case len(o.Results) > 0 || len(o.Written) > 0:
		o.Class = Computes
	case views > 0:
		o.Class = View
	case unread > 0:
		o.Class = Unread
	default:
		o.Class = Empty
	}
}

// Writes gives the values that an operation writes in place.
func Writes(op *recording.Operation) []int {
	var written []int
	name := Base(op.Name)
	if strings.HasSuffix(name, "_") && !slices.Contains(inPlaceViews, name) && len(op.Arguments) > 0 {
		written = recording.Values(op.Arguments[:1], nil)
	}
	return append(written, alsoWritten(op)...)
}

// Creates reports whether an operation makes memory without content.
func Creates(op *recording.Operation) bool { return slices.Contains(uninitialised, Base(op.Name)) }

// alsoWritten gives the values that an operation writes though its schema does not say so: batch norm's running statistics.
func alsoWritten(op *recording.Operation) []int {
	training, ok := op.Arg("training")
	if !ok || !training.Bool || op.Name != "aten::native_batch_norm" && op.Name != "aten::cudnn_batch_norm" {
		return nil
	}
	var written []int
	for _, name := range []string{"running_mean", "running_var"} {
		if a, ok := op.Arg(name); ok && a.Kind == recording.ValueOf {
			written = append(written, a.Value)
		}
	}
	return written
}

// Undefined gives the results, by their number in the flat list, that hold no defined bits: nobody may compare them.
func Undefined(op *recording.Operation) []int {
	training, ok := op.Arg("training")
	switch {
	case !ok:
	case op.Name == "aten::native_batch_norm" && !training.Bool:
		return []int{1, 2} // the saved statistics of a call that does not train
	case op.Name == "aten::cudnn_batch_norm" && training.Bool:
		return []int{3} // cuDNN's own notes for backward
	}
	return nil
}
