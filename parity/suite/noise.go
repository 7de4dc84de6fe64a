package suite

import (
	"context"
	"fmt"
	"strings"

	"samebits/bridge/recording"
	"samebits/bridge/tensor/safetensors"
	"samebits/parity/gate"
)

// blameNoise adds the first operation that differs to a finding of REPRODUCES. It asks the very two processes that gave other
// bits: what one of them has from its start, others may never show again. If they cannot be asked, the finding stays.
func (v *verification) blameNoise(ctx context.Context, f *gate.Finding, sides [2]*session) {
	if err := guarded(func() error { return v.traceNoise(ctx, f, sides) }); err != nil {
		f.Detail += "; the trace failed: " + err.Error()
	}
}

func (v *verification) traceNoise(ctx context.Context, f *gate.Finding, sides [2]*session) error {
	figures := f.Figures.(gate.NoiseFigures)
	probe := figures.Differences[0].Probe
	unknown := func(recording.Storage) string { return "" } // each side may have its own
	culprit, err := v.compareTraces(ctx, sides, sides[0].bankOf(probe), probe, unknown)
	if culprit == nil {
		if err == nil {
			f.Detail += "; traced one by one, all operations agree"
		}
		return err
	}
	figures.First = culprit
	f.Figures = figures
	if err != nil {
		f.Detail += "; first at " + culprit.String()
		return err
	}
	unsteady := culprit.unsteady(titles(sides))
	f.Detail += "; first at " + culprit.String() + unsteady
	why, err := v.compareGiven(ctx, culprit, sides)
	f.Detail += why
	return err
}

// unsteady says which sides gave yet other bits when they ran the operation once more: then how far the two are apart is chance.
func (c *Culprit) unsteady(names [2]string) string {
	var other []string
	for i, traced := range [2]string{c.Reference, c.Again} {
		if c.fetched[i] != traced {
			other = append(other, names[i])
		}
	}
	if other == nil {
		return ""
	}
	c.Bits, c.Histogram = nil, nil
	return "; run once more, it gives yet other bits in " + strings.Join(other, " and ")
}

// compareGiven fills in the weights among the operands of c as each side has them, the constants that it made itself among
// them, and says what of them is not the same. A side that records is asked for all that its step reads.
func (v *verification) compareGiven(ctx context.Context, c *Culprit, sides [2]*session) (string, error) {
	var weights [2]*safetensors.File
	names := titles(sides)
	for i, s := range sides {
		r := recorder{session: *s}
		if err := r.first(ctx); err != nil {
			return "", fmt.Errorf("%s: %w", names[i], err)
		}
		if changes := recording.Equal(v.recorded.Recording, r.got.Recording); len(changes) > 0 {
			return fmt.Sprintf("; %s has another step than the recorder: %v", names[i], changes[0]), nil
		}
		var err error
		if weights[i], err = safetensors.Decode(r.got.Weights); err != nil {
			return "", fmt.Errorf("%s: %w", names[i], err)
		}
	}
	var why strings.Builder
	known := len(c.Operands) > 0
	for i := range c.Operands {
		o := &c.Operands[i]
		if o.weight != "" {
			o.Sides = sides[1].sides(digestIn(weights[0], o.weight), digestIn(weights[1], o.weight))
		}
		if o.Reference == "" || o.Again == "" {
			known = false
		} else if o.Reference != o.Again {
			fmt.Fprintf(&why, "; its operand %s (%s) has other bits in the two processes already", o.Argument, o.weight)
		}
	}
	if why.Len() == 0 && known {
		return "; all its operands have the same bits in both", nil
	}
	return why.String(), nil
}
