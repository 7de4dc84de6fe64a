package diff

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"samebits/bridge/digest"
	"samebits/bridge/recording"
	"samebits/bridge/tensor/safetensors"
)

// Recordings is what two recordings have that differs.
type Recordings struct {
	Equal       bool     `json:"equal"`
	Digests     []string `json:"digests"`    // of both files
	Operations  []int    `json:"operations"` // of both
	Differences []Place  `json:"differences"`
	More        int      `json:"more,omitempty"`    // differences that are not listed
	Weights     []Place  `json:"weights,omitempty"` // tensors of the weights files that differ
}

// Place is one place where they differ.
type Place struct {
	Path  string `json:"path"`
	A     string `json:"a"`
	B     string `json:"b"`
	Where string `json:"where,omitempty"` // the operation with its module and source
}

// mostPlaces is how many differences are listed.
const mostPlaces = 20

// Compare compares two recordings by recording.Equal: seed, environment and slots do not count.
func Compare(a, b *recording.Recording) Recordings {
	found := recording.Equal(a, b)
	c := Recordings{Equal: len(found) == 0, Digests: []string{a.Digest, b.Digest}, Operations: []int{len(a.Operations), len(b.Operations)}, Differences: []Place{}}
	for _, d := range found[:min(len(found), mostPlaces)] {
		c.Differences = append(c.Differences, Place{d.Path, d.A, d.B, d.Where})
	}
	c.More = len(found) - len(c.Differences)
	return c
}

// CompareWeights adds the tensors of two weights files that are not the same.
func (c *Recordings) CompareWeights(a, b *safetensors.File) {
	var names []string
	for _, file := range []*safetensors.File{a, b} {
		for _, t := range file.Tensors {
			if !slices.Contains(names, t.Name) {
				names = append(names, t.Name)
			}
		}
	}
	for _, name := range names {
		if x, y := weight(a, name), weight(b, name); x != y {
			c.Equal = false
			c.Weights = append(c.Weights, Place{Path: "weights/" + name, A: x, B: y})
		}
	}
}

func weight(f *safetensors.File, name string) string {
	t, has := f.Get(name)
	if !has {
		return "none"
	}
	return fmt.Sprintf("%v%v %s", t.DType, t.Sizes, digest.Tensor(t.Spec, t.Data))
}

// Write writes a comparison as text.
func (c Recordings) Write(w io.Writer, nameA, nameB string) error {
	var b strings.Builder
	for i, name := range []string{nameA, nameB} {
		fmt.Fprintf(&b, "%c is %s: %d operations, recording %s\n", 'A'+i, name, c.Operations[i], c.Digests[i])
	}
	for _, group := range []struct {
		places []Place
		more   int
	}{{c.Differences, c.More}, {c.Weights[:min(len(c.Weights), mostPlaces)], max(0, len(c.Weights)-mostPlaces)}} {
		for _, d := range group.places {
			fmt.Fprintf(&b, "%s\n  A: %s\n  B: %s\n", d.Path, d.A, d.B)
			if d.Where != "" {
				fmt.Fprintf(&b, "  in %s\n", d.Where)
			}
		}
		if group.more > 0 {
			fmt.Fprintf(&b, "and %d more\n", group.more)
		}
	}
	switch {
	case !c.Equal:
	case c.Digests[0] == c.Digests[1]:
		b.WriteString("equal: the same bytes\n")
	default:
		b.WriteString("equal: the same operations; seed, environment or slots are others\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
