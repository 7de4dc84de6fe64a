package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"samebits/bridge/digest"
	"samebits/bridge/tensor"
	"samebits/parity/compare"
)

// Output is one tensor that a step gave.
type Output struct {
	tensor.Spec
	Data   []byte
	Digest string
}

// Outputs is all that one step gave, in the arm's order.
type Outputs []Output

// Run is what an arm gave for each probe.
type Run map[string]Outputs

// NewOutput takes a tensor with its bytes, which are kept.
func NewOutput(spec tensor.Spec, data []byte) Output {
	return Output{spec, data, digest.Tensor(spec, data)}
}

// Digests gives the outputs' digests by their names.
func (o Outputs) Digests() map[string]string {
	digests := make(map[string]string, len(o))
	for _, output := range o {
		digests[output.Name] = output.Digest
	}
	return digests
}

// Same reports whether o and other have the same names, shapes and bits.
func (o Outputs) Same(other Outputs) bool {
	return slices.EqualFunc(o, other, func(a, b Output) bool { return a.Name == b.Name && a.Digest == b.Digest })
}

// Sorted gives the outputs in the order that others have them in. Names that others lack come last.
func (o Outputs) Sorted(others Outputs) Outputs {
	place := func(name string) int {
		if i := slices.IndexFunc(others, func(other Output) bool { return other.Name == name }); i >= 0 {
			return i
		}
		return len(others)
	}
	sorted := slices.Clone(o)
	slices.SortStableFunc(sorted, func(a, b Output) int { return cmp.Compare(place(a.Name), place(b.Name)) })
	return sorted
}

// Difference says where two steps that should agree do not.
type Difference struct {
	Probe  string          `json:"probe"`
	Output string          `json:"output"`
	DType  string          `json:"dtype"`
	Sizes  []int64         `json:"sizes"`
	Want   string          `json:"want"` // digest
	Got    string          `json:"got"`  // digest
	Bits   compare.Figures `json:"bits"`
	// Histogram counts elements by their distance.
	Histogram []compare.Bucket `json:"histogram,omitempty"`
}

func (d Difference) String() string {
	return fmt.Sprintf("probe %s, output %s: %v", d.Probe, d.Output, d.Bits)
}

// shapes checks that two steps gave the same tensors, whatever is in them.
func shapes(want, got Outputs) error {
	if len(want) != len(got) {
		return fmt.Errorf("%d outputs instead of %d%s", len(got), len(want), unmatched(want, got))
	}
	for i, w := range want {
		g := got[i]
		if w.Name != g.Name || w.DType != g.DType || !slices.Equal(w.Sizes, g.Sizes) {
			return fmt.Errorf("output %d is %s %v%v instead of %s %v%v", i, g.Name, g.DType, g.Sizes, w.Name, w.DType, w.Sizes)
		}
	}
	return nil
}

// unmatched names the outputs that one step gave and not the other.
func unmatched(want, got Outputs) string {
	var text string
	for _, side := range []struct {
		word       string
		some, rest Outputs
	}{{"missing", want, got}, {"not wanted", got, want}} {
		var names []string
		for _, o := range side.some {
			if !slices.ContainsFunc(side.rest, func(p Output) bool { return p.Name == o.Name }) {
				names = append(names, o.Name)
			}
		}
		if len(names) > 0 {
			text += fmt.Sprintf("; %s: %s", side.word, strings.Join(names, ", "))
		}
	}
	return text
}

// differences lists the outputs that differ. The two must have the same shapes.
func differences(probe string, want, got Outputs) ([]Difference, error) {
	var all []Difference
	for i, w := range want {
		g := got[i]
		if w.Digest == g.Digest {
			continue
		}
		bits, err := compare.Bits(w.DType, w.Data, g.Data)
		if err != nil {
			return nil, fmt.Errorf("output %s: %w", w.Name, err)
		}
		histogram, _, err := compare.Histogram(w.DType, w.Data, g.Data)
		if err != nil {
			return nil, fmt.Errorf("output %s: %w", w.Name, err)
		}
		all = append(all, Difference{probe, w.Name, w.DType.String(), append([]int64{}, w.Sizes...), w.Digest, g.Digest, bits, histogram})
	}
	return all, nil
}
