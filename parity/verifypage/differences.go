package verifypage

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"samebits/parity/compare"
	"samebits/parity/page"
)

// bits and bucket are compare.Figures and compare.Bucket. Distances may be as large as 2^64: what was read from a file has them
// as floats.
type bits struct {
	compare.Figures
	MaxULP float64 `json:"max_ulp"`
}

type bucket struct {
	Least float64 `json:"least_ulp"`
	Most  float64 `json:"most_ulp"`
	Count int64   `json:"elements"`
}

// difference is one tensor that has other bits, of a step of inference or of training.
type difference struct {
	Probe   string  `json:"probe"`
	Output  string  `json:"output"`
	Episode string  `json:"episode"`
	Step    int     `json:"step"`
	Tensor  string  `json:"tensor"`
	DType   string  `json:"dtype"`
	Sizes   []int64 `json:"sizes"`
	Want    string  `json:"want"`
	Got     string  `json:"got"`

	Bits      *bits    `json:"bits"`
	Histogram []bucket `json:"histogram"`

	Of   string `json:"-"` // gate and arm
	Bars []bar  `json:"-"`
}

func (d *difference) draw() { d.Bars = bars(d.Histogram) }

// Name says which tensor it is.
func (d difference) Name() string {
	if d.Tensor != "" {
		return fmt.Sprintf("%s, step %d of the %s episode", d.Tensor, d.Step, d.Episode)
	}
	return fmt.Sprintf("%s, probe %s", d.Output, d.Probe)
}

// Type is dtype and sizes.
func (d difference) Type() string { return d.DType + strings.ReplaceAll(fmt.Sprint(d.Sizes), " ", ",") }

// culprit is the first operation whose result differs.
type culprit struct {
	Probe     string    `json:"probe"`
	Operation int       `json:"operation"`
	Of        int       `json:"of"`
	Result    int       `json:"result"`
	Signature string    `json:"signature"`
	Module    string    `json:"module"`
	Source    string    `json:"source"`
	Reference string    `json:"reference"`
	Native    string    `json:"native"`
	Again     string    `json:"again"` // instead of native: of another process of the reference
	Operands  []operand `json:"operands"`
	Bits      *bits     `json:"bits"`
	Histogram []bucket  `json:"histogram"`

	Gate string `json:"-"`
	Bars []bar  `json:"-"`
}

type operand struct {
	Argument  string `json:"argument"`
	Value     string `json:"value"`
	From      string `json:"from"`
	Reference string `json:"reference"`
	Native    string `json:"native"`
	Again     string `json:"again"`
}

// Other is what the side had that is compared with the reference.
func (o operand) Other() string { return cmp.Or(o.Native, o.Again) }

// Same says in a word whether both sides had the same operand.
func (o operand) Same() string {
	switch {
	case o.Reference == "" || o.Other() == "":
		return "not known"
	case o.Reference == o.Other():
		return "the same"
	}
	return "other"
}

// bar is a row of a histogram.
type bar struct {
	Distance string
	Count    int64
	Width    float64 // of barWidth
}

const barWidth = 240

// bars draws a histogram by the logarithm of its counts, so that one element among millions is seen.
func bars(buckets []bucket) []bar {
	most := int64(0)
	for _, b := range buckets {
		most = max(most, b.Count)
	}
	var all []bar
	for _, b := range buckets {
		if b.Count <= 0 {
			continue
		}
		width := page.Round(barWidth * math.Log1p(float64(b.Count)) / math.Log1p(float64(most)))
		all = append(all, bar{b.String(), b.Count, width})
	}
	return all
}

// String writes a range of distances. Long ones are powers of two.
func (b bucket) String() string {
	switch {
	case b.Most <= b.Least:
		return fmt.Sprint(b.Least)
	case b.Least < 1<<17:
		return fmt.Sprintf("%.0f to %.0f", b.Least, b.Most)
	}
	return fmt.Sprintf("from 2^%.0f", math.Log2(b.Least))
}
