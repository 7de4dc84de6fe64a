package recording

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Difference is one place where two recordings differ.
type Difference struct {
	Path  string // operations[12].arguments[1]
	A, B  string // what is there
	Where string // the operation with its module and source; empty outside operations
}

func (d Difference) String() string {
	s := fmt.Sprintf("%s: %s and %s", d.Path, d.A, d.B)
	if d.Where != "" {
		s += " (" + d.Where + ")"
	}
	return s
}

// maxDifferences bounds the list: after a branch everything may differ.
const maxDifferences = 100

// Equal lists where two recordings of the same step differ: a scalar, a shape or a branch that a captured graph would
// freeze. Slots may change by definition and do not count; nor do seed and environment. Alignments count on CUDA only,
// where the allocator repeats itself. No difference means that one recording can stand for the other.
func Equal(a, b *Recording) []Difference {
	c := &comparison{a: a, b: b, alignment: a.Header.DeviceType == "cuda" && b.Header.DeviceType == "cuda"}
	c.header()
	c.operations()
	c.ends("inputs", a.Inputs, b.Inputs)
	c.ends("outputs", a.Outputs, b.Outputs)
	c.storages()
	c.slots()
	return c.found
}

type comparison struct {
	a, b      *Recording
	alignment bool
	where     string
	found     []Difference
}

func (c *comparison) differ(path, a, b string) {
	if len(c.found) < maxDifferences {
		c.found = append(c.found, Difference{path, a, b, c.where})
	}
}

func (c *comparison) text(path, a, b string) {
	if a != b {
		c.differ(path, fmt.Sprintf("%q", a), fmt.Sprintf("%q", b))
	}
}

func (c *comparison) number(path string, a, b int64) {
	if a != b {
		c.differ(path, fmt.Sprint(a), fmt.Sprint(b))
	}
}

func (c *comparison) header() {
	a, b := &c.a.Header, &c.b.Header
	c.text("header.family", a.Family, b.Family)
	c.text("header.size", a.Size, b.Size)
	c.text("header.task", a.Task, b.Task)
	c.text("header.mode", a.Mode, b.Mode)
	c.text("header.precision", a.Precision, b.Precision)
	c.text("header.profile", a.Profile, b.Profile)
	c.text("header.device_type", a.DeviceType, b.DeviceType)
	c.number("header.imgsz", a.ImgSize, b.ImgSize)
	c.number("header.batch", a.Batch, b.Batch)
	if !slices.Equal(a.ProfileSettings, b.ProfileSettings) {
		c.differ("header.profile_settings", fmt.Sprint(a.ProfileSettings), fmt.Sprint(b.ProfileSettings))
	}
}

// operations stops at the first operation that is another one: the lists went apart there.
func (c *comparison) operations() {
	defer func() { c.where = "" }()
	for i := range max(len(c.a.Operations), len(c.b.Operations)) {
		path := fmt.Sprintf("operations[%d]", i)
		if i >= len(c.a.Operations) || i >= len(c.b.Operations) {
			c.where = ""
			c.differ(path, c.at(c.a, i), c.at(c.b, i))
			return
		}
		a, b := &c.a.Operations[i], &c.b.Operations[i]
		if a.Name != b.Name || a.Module != b.Module || len(a.Arguments) != len(b.Arguments) || len(a.Results) != len(b.Results) {
			c.where = ""
			c.differ(path, c.at(c.a, i), c.at(c.b, i))
			return
		}
		c.where = a.Name + origin(a)
		c.arguments(path+".arguments", a.Arguments, b.Arguments)
		c.arguments(path+".results", a.Results, b.Results)
	}
}

func (c *comparison) at(r *Recording, i int) string {
	if i >= len(r.Operations) {
		return "the end"
	}
	return r.Signature(&r.Operations[i]) + origin(&r.Operations[i])
}

// origin says where an operation came from.
func origin(o *Operation) string {
	s := ""
	if o.Module != "" {
		s += " in " + o.Module
	}
	if o.Source != "" {
		s += " at " + o.Source
	}
	return s
}

func (c *comparison) arguments(path string, a, b []Argument) {
	for i := range a {
		c.argument(fmt.Sprintf("%s[%d]", path, i), &a[i], &b[i])
	}
}

func (c *comparison) argument(path string, a, b *Argument) {
	switch {
	case a.Name != b.Name || a.Kind != b.Kind:
		c.shown(path, a, b)
	case a.Kind == ValueOf:
		c.value(path, a.Value, b.Value)
	case a.Kind == List && len(a.Items) == len(b.Items):
		c.arguments(path+".list", a.Items, b.Items)
	case a.Kind == List, a.Bool != b.Bool, a.Int != b.Int, math.Float64bits(a.Real) != math.Float64bits(b.Real), a.Text != b.Text,
		a.DType != b.DType, a.Slot != b.Slot:
		c.shown(path, a, b)
	}
}

func (c *comparison) shown(path string, a, b *Argument) {
	show := func(r *Recording, x *Argument) string {
		var b strings.Builder
		if x.Name != "" {
			b.WriteString(x.Name + " ")
		}
		r.write(&b, x)
		return b.String()
	}
	c.differ(path, show(c.a, a), show(c.b, b))
}

// value compares two values with their storages' indices: recordings number both by first use, so that another number
// is another tensor, or another aliasing.
func (c *comparison) value(path string, i, j int) {
	if i < 0 || i >= len(c.a.Values) || j < 0 || j >= len(c.b.Values) {
		c.number(path, int64(i), int64(j))
		return
	}
	a, b := &c.a.Values[i], &c.b.Values[j]
	same := i == j && a.Storage == b.Storage && a.DType == b.DType && a.Offset == b.Offset &&
		slices.Equal(a.Sizes, b.Sizes) && slices.Equal(a.Strides, b.Strides)
	if c.alignment && a.Alignment != b.Alignment {
		same = false
	}
	if !same {
		show := func(i int, v *Value) string {
			return fmt.Sprintf("value %d on storage %d, %s, aligned to %d", i, v.Storage, v, v.Alignment)
		}
		c.differ(path, show(i, a), show(j, b))
	}
}

func (c *comparison) ends(path string, a, b []Named) {
	if len(a) != len(b) {
		c.differ(path, fmt.Sprintf("%d values", len(a)), fmt.Sprintf("%d values", len(b)))
		return
	}
	for i := range a {
		at := fmt.Sprintf("%s[%d]", path, i)
		c.text(at+".name", a[i].Name, b[i].Name)
		c.value(at+".value", a[i].Value, b[i].Value)
	}
}

func (c *comparison) storages() {
	if len(c.a.Storages) != len(c.b.Storages) {
		c.differ("storages", fmt.Sprintf("%d storages", len(c.a.Storages)), fmt.Sprintf("%d storages", len(c.b.Storages)))
		return
	}
	for i, a := range c.a.Storages {
		if b := c.b.Storages[i]; a != b {
			show := func(s Storage) string { return fmt.Sprintf("%s %q of %d bytes, %s", s.Role, s.Name, s.Bytes, s.DType) }
			c.differ(fmt.Sprintf("storages[%d]", i), show(a), show(b))
		}
	}
}

func (c *comparison) slots() {
	if !slices.Equal(c.a.Slots, c.b.Slots) {
		c.differ("slots", fmt.Sprint(c.a.Slots), fmt.Sprint(c.b.Slots))
	}
}
