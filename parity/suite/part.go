package suite

import (
	"context"
	"sync"

	"samebits/bridge/arm"
	"samebits/parity/gate"
)

// part is what one process of a verification does, from its start until it is ready to be measured.
type part struct {
	name string // of the arm
	what string // for people
	open func(ctx context.Context) (*session, error)
	run  func(ctx context.Context, s *session) (evidence, error)
	// measured says that the arm's times are taken in this process.
	measured bool

	once    sync.Once
	session *session
	got     evidence
	err     error
}

// do does the part's work if nobody has begun it, and otherwise waits for its end.
func (p *part) do(ctx context.Context) (evidence, error) {
	p.once.Do(func() {
		p.err = guarded(func() (err error) { // it may be on a goroutine of its own
			if p.session, err = p.open(ctx); err == nil {
				p.got, err = p.run(ctx, p.session)
			}
			return err
		})
	})
	return p.got, p.err
}

// stop ends the part's process, if there is one. Nobody may be doing its work.
func (p *part) stop() {
	if p.session != nil {
		p.session.arm.Stop()
		p.session = nil
	}
}

// parts are those of a cell of mode predict, beside the recorder.
type parts struct {
	eager, again             *part
	graph                    *part // nil without a GPU
	double                   *part // nil on a GPU
	nativeEager, nativeGraph *part

	working sync.WaitGroup
}

func (v *verification) newParts() *parts {
	reference := func(name string) func(context.Context) (*session, error) {
		return func(ctx context.Context) (*session, error) { return v.openReference(ctx, name) }
	}
	again := func(ctx context.Context) (*session, error) {
		return v.openReferenceBy(ctx, arm.ReferenceEager, v.fromScratch)
	}
	native := func(name string) func(context.Context) (*session, error) {
		return func(ctx context.Context) (*session, error) { return v.openNative(ctx, name) }
	}
	replayed := func(eager *part) func(context.Context, *session) (evidence, error) {
		return func(ctx context.Context, s *session) (evidence, error) {
			base, err := eager.do(ctx)
			if err != nil {
				return evidence{}, err
			}
			return v.replays(ctx, s, base.run)
		}
	}
	once := func(ctx context.Context, s *session) (e evidence, err error) {
		if e.run, err = s.all(ctx); err == nil {
			err = v.weigh(ctx, s)
		}
		return e, err
	}
	ps := &parts{
		eager:       &part{name: arm.ReferenceEager, what: arm.ReferenceEager, open: reference(arm.ReferenceEager), run: v.eagerly},
		again:       &part{name: arm.ReferenceEager, what: "reference-eager again", open: again, run: v.eagerly, measured: true},
		nativeEager: &part{name: arm.NativeEager, what: arm.NativeEager, open: native(arm.NativeEager), run: once, measured: true},
	}
	ps.nativeGraph = &part{name: arm.NativeGraph, what: arm.NativeGraph, open: native(arm.NativeGraph), run: replayed(ps.nativeEager), measured: true}
	if v.asked.OnGPU() {
		ps.graph = &part{name: arm.ReferenceGraph, what: arm.ReferenceGraph, open: reference(arm.ReferenceGraph), run: replayed(ps.eager), measured: true}
	} else {
		ps.double = &part{name: arm.ReferenceFP64, what: arm.ReferenceFP64, open: reference(arm.ReferenceFP64), run: once}
	}
	return ps
}

// all lists the parts in the order in which they are judged.
func (ps *parts) all() []*part {
	var all []*part
	for _, p := range []*part{ps.eager, ps.again, ps.graph, ps.double, ps.nativeEager, ps.nativeGraph} {
		if p != nil {
			all = append(all, p)
		}
	}
	return all
}

// begin does the work of all parts at the same time.
func (ps *parts) begin(ctx context.Context) {
	for _, p := range ps.all() {
		ps.working.Go(func() { _, _ = p.do(ctx) }) // who asks for the part hears of its error
	}
}

// end waits until nobody works any more, and ends all processes.
func (ps *parts) end() {
	ps.working.Wait()
	var stopping sync.WaitGroup
	for _, p := range ps.all() {
		stopping.Go(p.stop)
	}
	stopping.Wait()
}

// await gives what a part showed.
func (v *verification) await(ctx context.Context, p *part) (evidence, error) {
	v.progress(p.what)
	return p.do(ctx)
}

// settle is called when a part was judged. Its process is needed no more, unless it is measured with all others at the end.
func (v *verification) settle(ctx context.Context, p *part) error {
	if p.measured && v.suite.Together {
		return nil
	}
	defer p.stop()
	if !p.measured {
		return nil
	}
	return v.measure(ctx, p.session)
}

// predict goes through the arms of a cell of mode predict, and judges them one after the other.
func (v *verification) predict(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	ps := v.newParts()
	defer ps.end()
	defer cancel()
	if v.suite.Together {
		ps.begin(ctx)
	}
	if err := v.record(ctx, true); err != nil || v.failed(gate.SameRecording) {
		return err
	}
	if err := v.repeat(ctx, ps); err != nil || v.failed(gate.Reproduces) || v.failed(gate.InputSeen) {
		return err
	}
	if err := v.referenceGraph(ctx, ps); err != nil {
		return err
	}
	if err := v.native(ctx, ps); err != nil {
		return err
	}
	if err := v.further(ctx); err != nil || !v.suite.Together {
		return err
	}
	var measured []*session
	for _, p := range ps.all() {
		if p.measured {
			measured = append(measured, p.session)
		}
	}
	return v.measure(ctx, measured...)
}
