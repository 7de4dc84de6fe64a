package verifypage

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"samebits/parity/result"
)

// digestRow is a digest with all that have it.
type digestRow struct {
	Where, What string // probe and name
	Digest      string
	Arms        string // that have it; empty: of an input
	Alone       bool   // some arm has another one
}

// mostTensors bounds how many digests of one place are listed that all arms share; the others are in the result.
const mostTensors = 60

func (c *cellView) digests() {
	d := c.Result.Digests
	for _, probe := range slices.Sorted(maps.Keys(d.Inputs)) {
		for _, name := range slices.Sorted(maps.Keys(d.Inputs[probe])) {
			if c.Result.Training == nil { // of training there are some for every step
				c.Inputs = append(c.Inputs, digestRow{Where: probe, What: name, Digest: d.Inputs[probe][name]})
			}
		}
	}
	places := map[string]map[string]bool{}
	for _, probes := range d.Outputs {
		for probe, outputs := range probes {
			if places[probe] == nil {
				places[probe] = map[string]bool{}
			}
			for name := range outputs {
				places[probe][name] = true
			}
		}
	}
	left := 0
	for _, probe := range slices.Sorted(maps.Keys(places)) {
		for i, name := range slices.Sorted(maps.Keys(places[probe])) {
			rows := shared(c.Result, probe, name, func(arm string) string { return d.Outputs[arm][probe][name] })
			if i >= mostTensors && len(rows) == 1 {
				left++
				continue
			}
			c.Outputs = append(c.Outputs, rows...)
		}
	}
	if left > 0 {
		c.OutputsNote = fmt.Sprintf("%d more tensors have the same digest in all arms; the result lists them.", left)
	}
	steps := 0
	for _, list := range d.Steps {
		steps = max(steps, len(list))
	}
	for i := range steps {
		c.Steps = append(c.Steps, shared(c.Result, fmt.Sprintf("step %d", i+1), "all tensors", func(arm string) string {
			if i < len(d.Steps[arm]) {
				return d.Steps[arm][i]
			}
			return ""
		})...)
	}
}

// shared gives a row for each digest that arms have, in the arms' order.
func shared(r *result.Result, where, what string, of func(arm string) string) []digestRow {
	var order []string
	by := map[string][]string{}
	for _, arm := range r.Arms {
		d := of(arm)
		if d == "" {
			continue
		}
		if by[d] == nil {
			order = append(order, d)
		}
		by[d] = append(by[d], arm)
	}
	var rows []digestRow
	for _, d := range order {
		arms := strings.Join(by[d], ", ")
		if n := len(by[d]); n > 1 && n == len(r.Arms) {
			arms = fmt.Sprintf("all %d arms", n)
		}
		rows = append(rows, digestRow{where, what, d, arms, len(order) > 1})
	}
	return rows
}
