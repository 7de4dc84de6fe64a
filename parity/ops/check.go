// Package ops compares the native engine with PyTorch operation by operation: each distinct one of a set of recordings by
// itself, on values of its own. docs/ops.md says what is compared and what the outcomes mean.
package ops

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/host"
	"samebits/bridge/recording"
	"samebits/parity/signature"
	"samebits/parity/suite"
	"samebits/parity/values"
)

// Checker compares operations.
type Checker struct {
	Start  suite.Starter
	Device string // cuda:N, host
	Seed   uint64
	Kinds  []values.Kind
	// BatchBytes and BatchCount bound what runs in one recording. An operation that is larger runs alone.
	BatchBytes int64
	BatchCount int
	// MostBytes is the size above which operations are skipped.
	MostBytes int64
	// Progress is told after each batch; it may be nil.
	Progress func(Event)
}

// Event says how far the work is.
type Event struct{ Done, Of, Failed int }

// Defaults fills in bounds that suit a device.
func (c *Checker) Defaults() {
	gpu := c.Device != suite.HostDevice
	set := func(to *int64, onGPU, onHost int64) {
		if *to == 0 {
			*to = onHost
			if gpu {
				*to = onGPU
			}
		}
	}
	set(&c.BatchBytes, 1<<30, 64<<20)
	set(&c.MostBytes, 16<<30, 256<<20)
	if c.BatchCount == 0 {
		c.BatchCount = 256
	}
	if len(c.Kinds) == 0 {
		c.Kinds = values.Kinds()
	}
}

// run is one Check.
type run struct {
	*Checker
	reference, native, double *side
	room                      int64 // of shared memory: what the largest batch takes
	findings                  map[*signature.Operation]*Finding
	done                      int
	of                        int
	failed                    int
}

// Check compares all operations and gives a finding for each, in their order. An error means that nothing could be
// compared, or that it was interrupted: then the findings are those that are finished.
func (c *Checker) Check(ctx context.Context, all []*signature.Operation) (*Report, error) {
	c.Defaults()
	began := time.Now()
	r := &run{Checker: c, findings: map[*signature.Operation]*Finding{}}
	r.reference = &side{name: arm.ReferenceEager, device: "cpu", start: c.Start.Reference}
	if c.gpu() {
		r.reference.device = c.Device
	}
	r.native = &side{name: arm.NativeEager, device: c.Device, option: []recording.Setting{{Key: "lanes", Value: "off"}},
		start: func(ctx context.Context) (suite.Arm, error) { return c.Start.Native(ctx, r.reference.environment) }}
	r.double = &side{name: arm.ReferenceFP64, device: r.reference.device, start: c.Start.Reference}
	defer r.reference.stop()
	defer r.native.stop()
	defer r.double.stop()

	err := r.all(ctx, all)
	report := &Report{Schema: Schema, Device: c.Device, Seed: c.Seed, Values: c.Kinds, Environment: r.environment(), Findings: []Finding{}}
	for _, o := range all {
		if f := r.findings[o]; f != nil {
			report.Findings = append(report.Findings, *f)
		}
	}
	report.Seconds = time.Since(began).Seconds()
	return report, err
}

func (c *Checker) gpu() bool { return c.Device != suite.HostDevice }

// all sorts out what cannot be compared, and runs the rest batch by batch.
func (r *run) all(ctx context.Context, all []*signature.Operation) error {
	var rest []*signature.Operation
	for _, o := range all {
		switch {
		case o.Class != signature.Computes:
			r.find(o, Skipped, skips[o.Class], o.Class.String())
		case o.Bytes() > r.MostBytes:
			r.find(o, Skipped, "TOO_LARGE", fmt.Sprintf("it takes %d MiB, more than %d", o.Bytes()>>20, r.MostBytes>>20))
		default:
			rest = append(rest, o)
		}
	}
	r.of = len(rest)
	var batches []*batch
	for _, ops := range r.group(rest) {
		b, err := newBatch(ops, !r.gpu())
		if err != nil {
			return err
		}
		batches = append(batches, b)
		r.room = max(r.room, b.room(false))
	}
	for _, b := range batches {
		if err := r.batch(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// skips are the reasons of operations that are not compared.
var skips = map[signature.Class]string{signature.View: "VIEW", signature.Creation: "NO_CONTENT", signature.Unread: "UNREAD",
	signature.Empty: "EMPTY", signature.Slotted: "SLOT"}

// group cuts a list into batches of one context each.
func (r *run) group(all []*signature.Operation) [][]*signature.Operation {
	type open struct {
		ops   []*signature.Operation
		bytes int64
	}
	var groups [][]*signature.Operation
	current := map[string]*open{}
	var contexts []string
	for _, o := range all {
		key := context_(o)
		g := current[key]
		if g == nil {
			g = &open{}
			current[key] = g
			contexts = append(contexts, key)
		}
		if len(g.ops) > 0 && (g.bytes+o.Bytes() > r.BatchBytes || len(g.ops) == r.BatchCount) {
			groups = append(groups, g.ops)
			*g = open{}
		}
		g.ops, g.bytes = append(g.ops, o), g.bytes+o.Bytes()
	}
	for _, key := range contexts {
		if g := current[key]; len(g.ops) > 0 {
			groups = append(groups, g.ops)
		}
	}
	return groups
}

// context_ is what operations of one recording must have in common.
func context_(o *signature.Operation) string {
	h := o.Alone.Header
	return fmt.Sprint(h.DeviceType, h.Profile, h.ProfileSettings)
}

// failure is what went wrong on a side.
type failure struct {
	at  *side
	err error
}

// batch compares a batch. What an arm refuses is taken out and the rest tried again; a batch that fails without saying
// where is halved until one operation is left.
func (r *run) batch(ctx context.Context, b *batch) error {
	failures := r.compare(ctx, b)
	if len(failures) == 0 {
		r.progress(len(b.ops))
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var named []blame
	for _, f := range failures {
		if f.at.arm == nil { // it could not be started
			return f.err
		}
		for _, n := range b.blame(f.err, named) {
			r.refused(n.o, f.at, n.problem)
			named = append(named, n)
		}
	}
	if len(named) == 0 && len(b.ops) == 1 {
		named = []blame{{o: b.ops[0]}}
		r.blameOne(b.ops[0], failures[0])
	}
	for _, f := range failures {
		if died(f.err) {
			f.at.stop()
		}
	}
	r.progress(len(named))
	parts := b.without(named)
	for _, ops := range parts {
		if len(ops) == 0 {
			continue
		}
		smaller, err := newBatch(ops, !r.gpu())
		if err != nil {
			return err
		}
		if err := r.batch(ctx, smaller); err != nil {
			return err
		}
	}
	return nil
}

func died(err error) bool {
	var gone *host.Error
	return errors.As(err, &gone)
}

func (r *run) progress(n int) {
	r.done += n
	if r.Progress != nil && n > 0 {
		r.Progress(Event{r.done, r.of, r.failed})
	}
}

var operationPath = regexp.MustCompile(`^operations\[(\d+)\]`)

// blame is an operation with the problem that names it.
type blame struct {
	o       *signature.Operation
	problem diag.Problem
}

// blame gives the operations that the problems of an error name, each once, without those that are known.
func (b *batch) blame(err error, known []blame) []blame {
	problems, _ := diag.Of(err)
	named := map[*signature.Operation]bool{}
	for _, k := range known {
		named[k.o] = true
	}
	var found []blame
	for _, p := range problems {
		m := operationPath.FindStringSubmatch(p.Path)
		if m == nil {
			continue
		}
		i, err := strconv.Atoi(m[1])
		if err != nil || i >= len(b.ops) {
			continue
		}
		for _, o := range b.ops {
			// An unknown operation may be listed once, whatever it is called with.
			if (o == b.ops[i] || p.Reason == "UNKNOWN_OPERATION" && o.Name == b.ops[i].Name) && !named[o] {
				named[o] = true
				found = append(found, blame{o, p})
			}
		}
	}
	return found
}

// without gives what is left to try after a failure: the others, or halves where nobody is named.
func (b *batch) without(named []blame) [][]*signature.Operation {
	if len(named) == 0 {
		return [][]*signature.Operation{b.ops[:len(b.ops)/2], b.ops[len(b.ops)/2:]}
	}
	return [][]*signature.Operation{slices.DeleteFunc(slices.Clone(b.ops), func(o *signature.Operation) bool {
		return slices.ContainsFunc(named, func(n blame) bool { return n.o == o })
	})}
}

// refused notes a problem that an arm has with an operation. What PyTorch cannot run says nothing of native.
func (r *run) refused(o *signature.Operation, at *side, p diag.Problem) {
	if at == r.native {
		r.find(o, Refused, p.Reason, p.Summary)
		return
	}
	r.find(o, Skipped, p.Reason, "PyTorch: "+p.Summary)
}

// blameOne notes what went wrong with an operation that ran alone.
func (r *run) blameOne(o *signature.Operation, f failure) {
	problem := problemOf(f.err)
	if died(f.err) {
		r.find(o, Broken, problem.Reason, f.at.name+": "+problem.Summary)
		return
	}
	r.refused(o, f.at, problem)
}

// problemOf gives an error's first problem.
func problemOf(err error) diag.Problem {
	if problems, ok := diag.Of(err); ok && len(problems) > 0 {
		return problems[0]
	}
	return diag.Problem{Reason: "BROKEN", Summary: err.Error()}
}

func (r *run) find(o *signature.Operation, outcome Outcome, reason, detail string) *Finding {
	f := &Finding{ID: o.ID, Operation: o.Name, Signature: o.Text, Outcome: outcome, Reason: reason, Detail: detail, Calls: o.Calls,
		Recordings: o.Recordings, Module: o.Module, Source: o.Source}
	r.findings[o] = f
	if outcome == Differs || outcome == Broken {
		r.failed++
	}
	return f
}

// both does something on both sides at once. PyTorch's failure comes first: what it does not run need not run anywhere.
func (r *run) both(do func(s *side) error) []failure {
	var wait sync.WaitGroup
	var errs [2]error
	sides := []*side{r.reference, r.native}
	for i, s := range sides {
		wait.Go(func() { errs[i] = do(s) })
	}
	wait.Wait()
	var failures []failure
	for i, err := range errs {
		if err != nil {
			failures = append(failures, failure{sides[i], err})
		}
	}
	return failures
}

// environment is that of both sides, native's with its name in front where they disagree.
func (r *run) environment() map[string]string {
	merged := map[string]string{}
	for _, s := range r.reference.environment {
		merged[s.Key] = s.Value
	}
	for _, s := range r.native.environment {
		if other, both := merged[s.Key]; both && other != s.Value {
			merged["native."+s.Key] = s.Value
			continue
		}
		merged[s.Key] = s.Value
	}
	return merged
}
