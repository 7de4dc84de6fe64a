package reduce

import (
	"context"
	"fmt"
	"slices"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/parity/compare"
	"samebits/parity/gate"
)

// Culprit is the first operation whose result differs when both sides run the whole recording.
type Culprit struct {
	Step      int              `json:"step,omitempty"` // of a training run
	Operation int              `json:"operation"`
	Of        int              `json:"of"`
	Result    int              `json:"result"` // in the flat list of result tensors
	Signature string           `json:"signature"`
	Module    string           `json:"module"`
	Source    string           `json:"source"`
	Reference string           `json:"reference"` // digest
	Native    string           `json:"native"`    // digest
	Bits      compare.Figures  `json:"bits"`
	Histogram []compare.Bucket `json:"histogram"`
	NaN       int64            `json:"nan"` // elements that are NaN on a side, not in the histogram
	// Alone says whether the operation differs by itself, on the reference's operands. If not, look at what is fused.
	Alone  bool   `json:"alone"`
	Detail string `json:"detail,omitempty"` // of that run, or why it could not be

	part    *Part // the operation alone
	results both  // as they were in the whole recording
}

// Bisect finds the first operation whose result has other bits. It gives nil if all agree.
func (f *Finder) Bisect(ctx context.Context, c *Case) (*Culprit, error) {
	f.open()
	defer f.close()
	s := newSearch(f, c)
	if len(c.Recording.Operations) == 0 {
		return nil, diag.New("NOTHING_TO_COMPARE", "operations", "the recording has none")
	}
	whole := s.analysis.prefix(len(c.Recording.Operations)-1, nil)
	whole.Outputs = c.Recording.Outputs
	j, err := newJob(whole, func(storage int) []byte { return c.Given[storage] })
	if err != nil {
		return nil, err
	}
	f.say("tracing %d operations", len(whole.Operations))
	var traces [2][]arm.OperationTrace
	for i, side := range []*side{f.reference, f.native} {
		if err := side.load(ctx, j); err != nil {
			return nil, fmt.Errorf("%s: %w", side.name, err)
		}
		reply, err := side.arm.Trace(ctx, arm.TraceRequest{})
		if err != nil {
			return nil, fmt.Errorf("%s: trace: %w", side.name, err)
		}
		if traces[i] = reply.Operations; len(traces[i]) != len(whole.Operations) {
			return nil, fmt.Errorf("%s: traced %d operations of %d", side.name, len(traces[i]), len(whole.Operations))
		}
	}
	culprit := firstDifference(c.Recording, traces)
	if culprit == nil {
		return nil, nil
	}
	culprit.Step = c.Step
	return culprit, s.look(ctx, j, culprit)
}

func firstDifference(r *recording.Recording, traces [2][]arm.OperationTrace) *Culprit {
	for i := range r.Operations {
		want, got := traces[0][i].Digests, traces[1][i].Digests
		for k := range min(len(want), len(got)) {
			if want[k] == got[k] || want[k] == "" || got[k] == "" {
				continue
			}
			o := &r.Operations[i]
			return &Culprit{Operation: i, Of: len(r.Operations), Result: k, Signature: r.Signature(o), Module: o.Module, Source: o.Source,
				Reference: want[k], Native: got[k]}
		}
	}
	return nil
}

// look fetches both results out of the whole step, and runs the operation alone.
func (s *search) look(ctx context.Context, j *job, c *Culprit) error {
	r := s.whole.Recording
	v := &r.Values[recording.Values(r.Operations[c.Operation].Results, nil)[c.Result]]
	want := spec("result", v)
	for i, side := range []*side{s.reference, s.native} {
		if err := side.load(ctx, j); err != nil { // anew: a step may have moved what it was given
			return fmt.Errorf("%s: %w", side.name, err)
		}
		region, data, err := side.arm.Alloc(ctx, want.Bytes())
		if err != nil {
			return err
		}
		side.room = arm.Room{} // a fresh region is taken for what comes next
		if _, err := side.arm.Trace(ctx, arm.TraceRequest{Want: &arm.Wanted{Operation: c.Operation, Result: c.Result, Region: region}}); err != nil {
			return fmt.Errorf("%s: fetch a result of operation %d: %w", side.name, c.Operation, err)
		}
		output := gate.Outputs{gate.NewOutput(want, slices.Clone(data[:want.Bytes()]))}
		if i == 0 {
			c.results.reference = output
		} else {
			c.results.native = output
		}
	}
	a, b := c.results.reference[0].Data, c.results.native[0].Data
	var err error
	if c.Bits, err = compare.Bits(v.DType, a, b); err != nil {
		return err
	}
	if c.Histogram, c.NaN, err = compare.Histogram(v.DType, a, b); err != nil {
		return err
	}
	s.say("running operation %d alone", c.Operation)
	if c.part, err = s.part(ctx, []int{c.Operation}); err != nil || c.part == nil {
		c.Detail = "it cannot stand alone"
		return err
	}
	c.part.both, err = s.test(ctx, c.part.job)
	if err != nil {
		if !s.tolerable(ctx, err) {
			return err
		}
		c.Detail = "alone it is refused: " + err.Error()
		return nil
	}
	c.Alone, c.Detail = !c.part.both.reference.Same(c.part.both.native), c.part.both.detail
	if c.Alone && c.Detail == "" { // on the host
		c.Detail = "other bits, no more than the gate NATIVE allows on this device"
	}
	return nil
}
