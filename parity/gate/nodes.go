package gate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"samebits/bridge/arm"
	"samebits/bridge/recording"
)

// NodesFigures says what an arm's graphs are made of.
type NodesFigures struct {
	Nodes int64            `json:"nodes"`
	Kinds map[string]int64 `json:"kinds,omitempty"` // nil: the arm counts commands alone
	Work  int64            `json:"work"`            // operations of the recording that must be a kernel each
}

// unfit are the kinds that no graph may have, in the order in which they are reported.
var unfit = []struct {
	kind   string
	reason Reason
	what   string
}{
	{arm.AllocNode, AllocInRegion, "allocate memory"},
	{arm.FreeNode, AllocInRegion, "free memory"},
	{arm.UploadNode, UploadInRegion, "copy from the host"},
	{arm.FetchNode, FetchInRegion, "copy to the host"},
	{arm.HostNode, HostInRegion, "call the host"},
}

// JudgeNodes holds if a graph has the step's work in it, and nothing that holds on to the host or to memory that others may get.
// onGPU demands that the arm can look into its graphs.
func JudgeNodes(prepared arm.PrepareReply, s arm.Stats, r *recording.Recording, onGPU bool) Finding {
	figures := NodesFigures{Nodes: prepared.Nodes, Kinds: s.NodesByKind, Work: work(r)}
	f := Finding{Outcome: Failed, Figures: figures}
	if figures.Kinds == nil && prepared.Captured && prepared.Nodes > 0 && onGPU {
		return Finding{Outcome: Skipped, Reason: NotApplicable, Detail: "it does not say what its graphs are made of", Figures: figures}
	}
	kernels := prepared.Nodes
	if figures.Kinds != nil {
		kernels = figures.Kinds[arm.KernelNode]
	}
	for _, u := range unfit {
		if n := figures.Kinds[u.kind]; n > 0 {
			f.Reason, f.Detail = u.reason, fmt.Sprintf("%d nodes %s (%s)", n, u.what, listed(figures.Kinds))
			return f
		}
	}
	switch {
	case kernels == 0 && figures.Kinds[arm.GraphNode] == 0:
		f.Reason, f.Detail = EmptyGraph, "the graph has no kernel"
	case kernels < figures.Work && figures.Kinds[arm.GraphNode] == 0:
		f.Reason = OffStreamWork
		f.Detail = fmt.Sprintf("the graph has %d kernels, and the recording %d convolutions and products: the others run elsewhere", kernels, figures.Work)
	default:
		f.Outcome = Passed
	}
	return f
}

func listed(kinds map[string]int64) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		parts = append(parts, fmt.Sprintf("%s %d", kind, kinds[kind]))
	}
	return strings.Join(parts, ", ")
}

// heavy are operations that are a kernel at least each, however others are put together.
var heavy = []string{"aten::convolution", "aten::_convolution", "aten::cudnn_convolution", "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"}

// work counts the heavy operations that depend on an input, for what depends on weights alone may be done once, before the capture;
// and that an output depends on, for others need not be done at all. Both are told by storages.
func work(r *recording.Recording) int64 {
	needed := needed(r)
	fed := make([]bool, len(r.Storages))
	for _, in := range r.Inputs {
		fed[r.Values[in.Value].Storage] = true
	}
	var n int64
	var arguments, results []int
	for i := range r.Operations {
		o := &r.Operations[i]
		arguments, results = recording.Values(o.Arguments, arguments[:0]), recording.Values(o.Results, results[:0])
		if !slices.ContainsFunc(arguments, func(v int) bool { return fed[r.Values[v].Storage] }) {
			continue
		}
		elements := int64(0)
		for _, v := range results {
			fed[r.Values[v].Storage] = true
			elements += r.Values[v].Numel()
		}
		if elements > 0 && needed[i] && slices.Contains(heavy, o.Name) {
			n++
		}
	}
	return n
}

// needed says of each operation whether an output depends on it.
func needed(r *recording.Recording) []bool {
	read := make([]bool, len(r.Storages))
	for _, out := range r.Outputs {
		read[r.Values[out.Value].Storage] = true
	}
	needed := make([]bool, len(r.Operations))
	var values []int
	for i := len(r.Operations) - 1; i >= 0; i-- {
		o := &r.Operations[i]
		values = recording.Values(o.Results, values[:0])
		if !slices.ContainsFunc(values, func(v int) bool { return read[r.Values[v].Storage] }) {
			continue
		}
		needed[i] = true
		for _, v := range recording.Values(o.Arguments, values[:0]) {
			read[r.Values[v].Storage] = true
		}
	}
	return needed
}
