package verifypage

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"samebits/bridge/arm"
	"samebits/parity/compare"
	"samebits/parity/gate"
	"samebits/parity/result"
)

// gateRow is a gate, or what it found of one arm.
type gateRow struct {
	ID      gate.ID
	Arm     string // empty: of no arm
	Outcome gate.Outcome
	Reason  gate.Reason
	Figures []string
	Detail  string
}

// Known says that there is a line on the gate.
func (g gateRow) Known() bool { return texts[g.ID] != "" }

// figures are those of any gate, as JSON has them.
type figures map[string]json.RawMessage

func figuresOf(f gate.Finding) figures {
	var of figures
	if data, err := json.Marshal(f.Figures); err != nil || json.Unmarshal(data, &of) != nil {
		return nil // there are none
	}
	return of
}

// read takes one of the figures, if it is there and of that form.
func read[T any](f figures, name string) (value T, is bool) {
	data, there := f[name]
	return value, there && json.Unmarshal(data, &value) == nil
}

// bulky are figures that have a table of their own, where they are no counts.
var bulky = []string{"differences", "first_operation", "outputs"}

// words writes all figures that are numbers, words or lists of them.
func (f figures) words() []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(f)) {
		var value any
		_, counted := read[float64](f, name)
		if slices.Contains(bulky, name) && !counted || json.Unmarshal(f[name], &value) != nil {
			continue
		}
		if text := plain(value); text != "" {
			all = append(all, strings.ReplaceAll(name, "_", " ")+" "+text)
		}
	}
	return all
}

// plain writes a value of JSON in a few words.
func plain(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case bool:
		return fmt.Sprint(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		var parts []string
		for _, x := range v {
			parts = append(parts, plain(x))
		}
		return strings.Join(parts, ", ")
	case map[string]any:
		var parts []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if text := plain(v[key]); text != "" {
				parts = append(parts, strings.ReplaceAll(key, "_", " ")+" "+text)
			}
		}
		if len(parts) == 0 {
			return ""
		}
		return "(" + strings.Join(parts, ", ") + ")"
	}
	return ""
}

// usual is the order of the arms.
var usual = []string{arm.ReferenceEager, arm.ReferenceGraph, arm.NativeEager, arm.NativeGraph}

// sortedArms lists arms in their order, those that this program does not know first.
func sortedArms(arms map[string]gate.Finding) []string {
	return slices.SortedFunc(maps.Keys(arms), func(a, b string) int {
		return cmp.Or(cmp.Compare(slices.Index(usual, a), slices.Index(usual, b)), strings.Compare(a, b))
	})
}

// gates fills in what gates found.
func (c *cellView) gates() {
	for _, id := range allGates(c.Result) {
		f := c.Result.Gates[id]
		if len(f.Arms) == 0 {
			c.found(id, "", f)
			continue
		}
		for _, name := range sortedArms(f.Arms) {
			c.found(id, name, f.Arms[name])
		}
	}
}

// allGates lists the gates of a result: in their order, and those behind that this program does not know.
func allGates(r *result.Result) []gate.ID {
	all := gate.Of(r.Mode, r.Gates)
	for _, id := range slices.Sorted(maps.Keys(r.Gates)) {
		if !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return slices.DeleteFunc(all, func(id gate.ID) bool { _, has := r.Gates[id]; return !has })
}

func (c *cellView) found(id gate.ID, name string, f gate.Finding) {
	of := figuresOf(f)
	row := gateRow{ID: id, Arm: name, Outcome: f.Outcome, Reason: f.Reason, Figures: of.words(), Detail: shorten(f.Detail)}
	c.Gates = append(c.Gates, row)
	what := string(id)
	if name != "" {
		what += " of " + name
	}
	if all, is := read[[]difference](of, "differences"); is {
		for _, d := range all {
			d.Of = what
			d.draw()
			c.Differences = append(c.Differences, d)
		}
	}
	if first, is := read[culprit](of, "first_operation"); is {
		first.Gate = what
		first.Bars = bars(first.Histogram)
		c.Culprits = append(c.Culprits, first)
	}
	if all, is := read[[]outputRounding](of, "outputs"); is {
		limit, _ := read[float64](of, "limit")
		same, _ := read[bool](of, "same_bits")
		c.Roundings = append(c.Roundings, rounding{what, limit, same, all})
	}
}

// longest is how much of a text the page has; the result has all of it.
const longest = 2000

func shorten(s string) string {
	if len(s) <= longest {
		return s
	}
	return fmt.Sprintf("%s… (%d bytes more in the result)", strings.ToValidUTF8(s[:longest], ""), len(s)-longest)
}

// engaged are the figures of ENGAGED.
type engaged struct {
	Nodes    int64 `json:"nodes"`
	Steps    int64 `json:"steps"`
	Launches int64 `json:"launches"`
}

func engagedOf(r *result.Result, name string) (e engaged) {
	data, err := json.Marshal(r.Gates[gate.Engaged].Arms[name].Figures)
	if err != nil || json.Unmarshal(data, &e) != nil {
		return engaged{}
	}
	return e
}

// rounding is NATIVE on the host.
type rounding struct {
	Of      string
	Limit   float64
	Same    bool
	Outputs []outputRounding
}

type outputRounding struct {
	Output    string        `json:"output"`
	Reference compare.Error `json:"reference"`
	Native    compare.Error `json:"native"`
	Floor     float64       `json:"floor"`
}

// Part is native's largest error as a part of PyTorch's.
func (o outputRounding) Part() string {
	if x := part(o.Native.Max, max(o.Reference.Max, o.Floor)); x > 0 {
		return ratioText(x)
	}
	return "0"
}

// gateText says what a gate demands.
type gateText struct {
	ID   gate.ID
	Text string
}

// texts has a line for each gate; docs/gates.md has a page.
var texts = map[gate.ID]string{
	gate.SameRecording: "Recorded with other inputs and at other steps, the list of operations is the same: a graph freezes nothing that changes.",
	gate.Reproduces:    "Eager PyTorch gives the same bits in two fresh processes; otherwise no arm could be blamed.",
	gate.InputSeen:     "Other inputs give other bits; otherwise a graph that gives one answer for ever could not be told from a right one.",
	gate.Engaged:       "Graphs were really captured and launched; no step fell back to eager.",
	gate.Replay:        "Every replay gives eager's bits in every output, with outputs poisoned and memory churned before each.",
	gate.NotStale:      "No replay gives what belongs to another input.",
	gate.Nodes:         "The captured graph holds the step's work, and nothing that holds on to the host or takes memory.",
	gate.OtherStream:   "Steps on another stream than the captured one give eager's bits.",
	gate.OtherThread:   "A graph that was captured in a thread, while another one used the device, gives eager's bits.",
	gate.Moved:         "Weights that move to other addresses, or change in place, are followed.",
	gate.Modes:         "After train and eval, grad, no_grad and inference mode, or the graph off and on, steps give eager's bits.",
	gate.SeedObeyed:    "After a seed, steps and generator are eager's.",
	gate.FailedCapture: "A capture that fails does no harm, is not tried again at once, and does not prevent a later one.",
	gate.MemoryKept:    "Neither replays nor another capture take more memory.",
	gate.OtherDevice:   "With another device current, steps give eager's bits.",
	gate.Processes:     "At least five fresh processes agree, one of which had to compile all its kernels.",
	gate.State:         "After every training step loss, gradients, parameters, buffers, momentum and average have eager's bits.",
	gate.HyperObeyed:   "Hyperparameters that change between replays are obeyed.",
	gate.PartialBatch:  "A short batch among full ones gives eager's bits.",
	gate.Resume:        "A run that was stopped and resumed from a checkpoint gives the bits of one that was not.",
	gate.Native:        "The native engine gives PyTorch's bits; on the device host its error is at most four times PyTorch's own.",
	gate.Seam:          "The step is a segment: what comes behind it gives the bits of the whole forward.",
	gate.Shape:         "Graphs of several shapes or keys stand beside each other, and each step takes the right one.",
}

// gateTexts lists gates in their order, those that this program does not know behind.
func gateTexts(ids map[gate.ID]bool) []gateText {
	var order []gate.ID
	for _, id := range slices.Concat(gate.Order(gate.Predict), gate.Order(gate.Train), slices.Sorted(maps.Keys(ids))) {
		if ids[id] && !slices.Contains(order, id) {
			order = append(order, id)
		}
	}
	var all []gateText
	for _, id := range order {
		all = append(all, gateText{id, texts[id]})
	}
	return all
}
