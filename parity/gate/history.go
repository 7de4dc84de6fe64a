package gate

import (
	"bytes"
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"samebits/bridge/digest"
	"samebits/bridge/tensor"
)

// History is what an arm held after each step of a training run: a digest of every tensor. The tensors themselves are
// dropped, but for those of the first step that differs from a history which was there before.
type History struct {
	Arm     string
	Episode string        // the run that it is a part of
	First   int           // number of the first step
	Tensors []tensor.Spec // loss, grad.X, param.X, buffer.X, momentum.X, ema.X in any order
	Steps   [][]string    // digests by step and tensor

	bases       []*basis
	unwritten   string // the first output of a step that kept its poison
	overwritten string // the first result that a later step changed
	held        int
}

// basis is a history that this one is held against while it grows.
type basis struct {
	*History
	parting *Parting
}

// Parting is the first step at which two histories differ.
type Parting struct {
	Step    int
	Tensors []Kept // the first of them, in the order in which a step makes them
}

// Kept is a tensor of the step that differs, as the later history has it.
type Kept struct {
	tensor.Spec
	Data []byte
}

// NewHistory starts a history whose first step has a number. Where it parts from a base, tensors are kept for Parting.
func NewHistory(arm, episode string, first int, tensors []tensor.Spec, bases ...*History) *History {
	h := &History{Arm: arm, Episode: episode, First: first, Tensors: tensors}
	for _, b := range bases {
		h.bases = append(h.bases, &basis{History: b})
	}
	return h
}

// Stepped takes what the next step left in a bank that was poisoned before. The data may be overwritten afterwards.
func (h *History) Stepped(data [][]byte) {
	h.Steps = append(h.Steps, h.digests(data))
	number := h.First + len(h.Steps) - 1
	for _, b := range h.bases {
		if b.parting != nil {
			continue
		}
		names := h.different(b.History, number, func(string) bool { return true })
		if len(names) == 0 {
			continue
		}
		b.parting = &Parting{Step: number}
		for _, name := range names[:min(len(names), maxDifferences)] {
			i := h.index(name)
			b.parting.Tensors = append(b.parting.Tensors, Kept{h.Tensors[i], slices.Clone(data[i])})
			if Made(name) && h.unwritten == "" && len(data[i]) > 0 && len(bytes.Trim(data[i], string([]byte{Poison}))) == 0 {
				h.unwritten = fmt.Sprintf("step %d left the poison in %s", number, name)
			}
		}
	}
}

// Held takes what the bank of the last step but one holds now.
func (h *History) Held(data [][]byte) {
	h.held++
	at := len(h.Steps) - 2
	for i, d := range h.digests(data) {
		if d != h.Steps[at][i] && h.overwritten == "" {
			h.overwritten = fmt.Sprintf("%s of step %d changed when the next step ran", h.Tensors[i].Name, h.First+at)
		}
	}
}

// digests names all tensors of a bank, several at a time.
func (h *History) digests(data [][]byte) []string {
	names := make([]string, len(data))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 8, len(data)) {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for i := int(next.Add(1)) - 1; i < len(data); i = int(next.Add(1)) - 1 {
				names[i] = digest.Tensor(h.Tensors[i], data[i])
			}
		}()
	}
	workers.Wait()
	return names
}

// Parting gives the first step that differs from a base, with its tensors; nil if none does.
func (h *History) Parting(base *History) *Parting {
	for _, b := range h.bases {
		if b.History == base {
			return b.parting
		}
	}
	return nil
}

// Digest gives a tensor's digest after a step; empty text if there is none.
func (h *History) Digest(step int, name string) string {
	i := h.index(name)
	if i < 0 || step < h.First || step >= h.First+len(h.Steps) {
		return ""
	}
	return h.Steps[step-h.First][i]
}

func (h *History) index(name string) int {
	return slices.IndexFunc(h.Tensors, func(s tensor.Spec) bool { return s.Name == name })
}

// Last is the number of the last step.
func (h *History) Last() int { return h.First + len(h.Steps) - 1 }

// List gives the digests after a step as lines that b3sum could have written, sorted by the tensors' names. The digest of
// this text names everything that the arm held.
func (h *History) List(step int) []byte {
	order := make([]int, len(h.Tensors))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(h.Tensors[a].Name, h.Tensors[b].Name) })
	var b bytes.Buffer
	for _, i := range order {
		fmt.Fprintf(&b, "%s  %s\n", h.Steps[step-h.First][i], h.Tensors[i].Name)
	}
	return b.Bytes()
}

// Made reports whether a step makes the tensor anew: the loss and the gradients. All else is state.
func Made(name string) bool { return name == "loss" || strings.HasPrefix(name, "grad.") }

// stages are the kinds of tensors in the order in which a step changes them.
var stages = []string{"buffer.", "loss", "grad.", "momentum.", "param.", "ema."}

func stage(name string) int {
	return slices.IndexFunc(stages, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// different lists the tensors that both have, and that differ after a step: the first that a step makes first. Gradients
// come in the order of backward, from the last parameter to the first.
func (h *History) different(base *History, step int, which func(name string) bool) []string {
	var names []string
	for i, spec := range h.Tensors {
		want := base.Digest(step, spec.Name)
		if want != "" && want != h.Steps[step-h.First][i] && which(spec.Name) {
			names = append(names, spec.Name)
		}
	}
	place := make(map[string]int, len(names))
	for i, name := range names {
		place[name] = i
		if strings.HasPrefix(name, "grad.") {
			place[name] = -i
		}
	}
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(stage(a), stage(b)), cmp.Compare(place[a], place[b]))
	})
	return names
}

// others says how the tensors of two arms are not the same ones; empty text if they are.
func others(base, got *History) string {
	for _, w := range base.Tensors {
		i := got.index(w.Name)
		switch {
		case i < 0:
			return fmt.Sprintf("%s has %s, %s does not", base.Arm, w.Name, got.Arm)
		case got.Tensors[i].DType != w.DType || !slices.Equal(got.Tensors[i].Sizes, w.Sizes):
			g := got.Tensors[i]
			return fmt.Sprintf("%s is %v%v, of %s %v%v", w.Name, g.DType, g.Sizes, base.Arm, w.DType, w.Sizes)
		}
	}
	for _, g := range got.Tensors {
		if base.index(g.Name) < 0 {
			return fmt.Sprintf("%s has %s, %s does not", got.Arm, g.Name, base.Arm)
		}
	}
	return ""
}
