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
	cold bool // it finds no compiled kernel
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

// parts are those of a cell of mode predict, beside the recorder; nil: nobody asks for what it shows.
type parts struct {
	eager, again             *part
	graph                    *part // nil without a GPU
	double                   *part // nil on a GPU
	nativeEager, nativeGraph *part
	fresh                    *part // another nativeGraph, on a GPU with a cold cache of kernels; nil if none can be had

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
	replayed := func(truth func(context.Context) (truth, error)) func(context.Context, *session) (evidence, error) {
		return func(ctx context.Context, s *session) (evidence, error) {
			t, err := truth(ctx)
			if err != nil {
				return evidence{}, err
			}
			return v.graphed(ctx, s, t)
		}
	}
	once := func(ctx context.Context, s *session) (e evidence, err error) {
		if e.run, err = s.all(ctx); err == nil {
			err = v.weigh(ctx, s)
		}
		return e, err
	}
	truthful := func(run func(context.Context, *session) (evidence, error)) func(context.Context, *session) (evidence, error) {
		return func(ctx context.Context, s *session) (evidence, error) {
			e, err := run(ctx, s)
			if err == nil {
				e.truth, err = v.truths(ctx, s, e.run)
			}
			return e, err
		}
	}
	gpu := v.asked.OnGPU()
	all := len(v.suite.Gates) == 0
	graphs := v.asks(graphGates...) || v.asks(gate.Situations...)
	bits := v.asks(gate.Native, gate.Processes, gate.Seam)
	ps := &parts{}
	if bits || gpu && (graphs || v.asks(gate.Shape)) || v.asks(gate.Reproduces, gate.InputSeen) {
		ps.eager = &part{name: arm.ReferenceEager, what: arm.ReferenceEager, open: reference(arm.ReferenceEager), run: v.eagerly}
		if gpu {
			ps.eager.run = truthful(v.eagerly)
		}
	}
	if v.asks(gate.Reproduces, gate.Processes) {
		ps.again = &part{name: arm.ReferenceEager, what: "reference-eager again", open: again, run: v.eagerly, measured: all}
	}
	if graphs || bits || !gpu && v.asks(gate.Shape) {
		ps.nativeEager = &part{name: arm.NativeEager, what: arm.NativeEager, open: native(arm.NativeEager), run: once, measured: all}
		if !gpu {
			ps.nativeEager.run = truthful(once)
		}
	}
	if graphs || bits {
		ps.nativeGraph = &part{name: arm.NativeGraph, what: arm.NativeGraph, open: native(arm.NativeGraph), run: replayed(ps.ofNative), measured: all}
	}
	if gpu && (graphs || v.asks(gate.Processes, gate.Seam)) {
		ps.graph = &part{name: arm.ReferenceGraph, what: arm.ReferenceGraph, open: reference(arm.ReferenceGraph), run: replayed(ps.ofReference), measured: all}
	}
	if !gpu && v.asks(gate.Native) {
		ps.double = &part{name: arm.ReferenceFP64, what: arm.ReferenceFP64, open: reference(arm.ReferenceFP64), run: once}
	}
	switch _, can := v.suite.Start.(Compiling); {
	case !v.asks(gate.Processes):
	case !gpu: // a compiler of C++ would take longer than all else
		ps.fresh = &part{name: arm.NativeGraph, what: "native-graph again", open: native(arm.NativeGraph), run: once}
	case can:
		ps.fresh = &part{name: arm.NativeGraph, what: "native-graph with a cold cache", open: v.openCold, run: once, cold: true}
	}
	return ps
}

// ofReference is what the reference's graph must give.
func (ps *parts) ofReference(ctx context.Context) (truth, error) {
	e, err := ps.eager.do(ctx)
	return e.truth, err
}

// ofNative is what native's graph must give: what native-eager gives. Where values change that is the reference's, if the two are the
// same in the first place: so that it shows, too, if native keeps something of the old values eagerly.
func (ps *parts) ofNative(ctx context.Context) (truth, error) {
	e, err := ps.nativeEager.do(ctx)
	if err != nil || ps.eager == nil || e.truth.run != nil { // on the host native is its own truth
		return e.truth, err
	}
	base, err := ps.eager.do(ctx)
	if err != nil {
		return truth{}, err
	}
	t := base.truth
	for probe, outputs := range e.run {
		if !outputs.Same(base.run[probe]) {
			why := "native-eager has other bits than reference-eager anyway"
			t = truth{noUpdate: why, noSeeding: why}
		}
	}
	t.run = e.run
	return t, nil
}

// all lists the parts in the order in which they are judged.
func (ps *parts) all() []*part {
	var all []*part
	for _, p := range []*part{ps.eager, ps.again, ps.graph, ps.double, ps.nativeEager, ps.nativeGraph, ps.fresh} {
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

// dismiss ends the process of a part that is needed no more and is not measured. Where all run at once nobody waits for that.
func (v *verification) dismiss(ps *parts, p *part) {
	if v.suite.Together {
		ps.working.Go(p.stop)
		return
	}
	p.stop()
}

// predict goes through the arms of a cell of mode predict, and judges them one after the other.
func (v *verification) predict(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	ps := v.newParts()
	v.parts = 1 + len(ps.all())
	if v.suite.Together {
		v.crew = ps.crew()
	}
	defer ps.end()
	defer cancel()
	if v.suite.Together {
		ps.begin(ctx)
	}
	if err := v.record(ctx, v.asks(gate.SameRecording)); err != nil || v.failed(gate.SameRecording) {
		return err
	}
	if err := v.room.await(ctx); err != nil {
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
