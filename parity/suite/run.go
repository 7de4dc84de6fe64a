package suite

import (
	"context"
	"fmt"
	"os"
	"slices"

	"samebits/bridge/arm"
	"samebits/bridge/ownfolder"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/parity/gate"
)

// evidence is what the process of an arm showed.
type evidence struct {
	run    gate.Run // of a graph arm: its last replays
	again  gate.Outputs
	engage gate.Engagement
	watch  *gate.Watch // nil: there were no replays to watch

	truth      truth                    // of an eager arm
	situations map[gate.ID]gate.Finding // of a graph arm
	lost       bool                     // a graph arm that nobody can measure any more
}

// openReference builds the cell's model in a fresh process, with the weights that the recorder had.
func (v *verification) openReference(ctx context.Context, name string) (*session, error) {
	return v.openReferenceBy(ctx, name, v.suite.Start.Reference)
}

// fromScratch starts a process that shares nothing with others, where there is a choice.
func (v *verification) fromScratch(ctx context.Context) (Arm, error) {
	if s, is := v.suite.Start.(FromScratch); is {
		return s.ReferenceFromScratch(ctx)
	}
	return v.suite.Start.Reference(ctx)
}

func (v *verification) openReferenceBy(ctx context.Context, name string, start func(context.Context) (Arm, error)) (*session, error) {
	a, err := v.start(ctx, name, start)
	if err != nil {
		return nil, err
	}
	s := &session{arm: a, name: name, probes: v.probes}
	return opened(s, func() error { return v.build(ctx, s) })
}

// opened makes a session ready, or ends its process.
func opened(s *session, ready func() error) (_ *session, err error) {
	defer func() {
		if err != nil {
			s.arm.Stop()
		}
	}()
	if err := guarded(ready); err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	return s, nil
}

func (v *verification) build(ctx context.Context, s *session) error {
	built, err := s.arm.Build(ctx, v.asked.buildRequest(s.name))
	if err != nil {
		return err
	}
	if err := v.awaitRecording(ctx); err != nil {
		return err
	}
	weights, err := give(ctx, s.arm, v.recorded.Built)
	if err != nil {
		return err
	}
	loaded, err := s.arm.Load(ctx, arm.LoadRequest{Weights: weights, Device: v.cell.ReferenceDevice(), Arm: s.name})
	if err != nil {
		return err
	}
	outputs := v.recorded.Outputs
	switch {
	case len(loaded.Outputs) > 0:
		outputs = loaded.Outputs
	case s.name == arm.ReferenceFP64:
		outputs = double(outputs)
	}
	return s.ready(ctx, built.Inputs, outputs, v.cell.Seed, s.name == arm.ReferenceGraph)
}

// awaitRecording waits until the recorder has what other arms need, and there is room for them.
func (v *verification) awaitRecording(ctx context.Context) error {
	if err := v.room.await(ctx); err != nil {
		return err
	}
	select {
	case <-v.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// double gives the outputs of the same model in double precision.
func double(specs []tensor.Spec) []tensor.Spec {
	wide := slices.Clone(specs)
	for i := range wide {
		if wide[i].DType.Float() {
			wide[i].DType = tensor.Float64
		}
	}
	return wide
}

// openCold starts a native graph that finds no compiled kernel. The folder is gone when it stops.
func (v *verification) openCold(ctx context.Context) (*session, error) {
	folder, err := ownfolder.New(os.TempDir(), "cold")
	if err != nil {
		return nil, err
	}
	s, err := v.openNativeBy(ctx, arm.NativeGraph, func(ctx context.Context) (Arm, error) {
		a, err := v.suite.Start.(Compiling).NativeIn(ctx, folder.Path, v.settings(reference))
		return removing{a, folder}, err
	})
	if err != nil {
		folder.Remove()
	}
	return s, err
}

// removing is an arm that has a folder as long as it runs.
type removing struct {
	Arm
	folder *ownfolder.Folder
}

func (r removing) Stop() {
	r.Arm.Stop()
	r.folder.Remove()
}

// openNative loads the recording into a fresh process of the native engine.
func (v *verification) openNative(ctx context.Context, name string, options ...recording.Setting) (*session, error) {
	return v.openNativeBy(ctx, name, func(ctx context.Context) (Arm, error) {
		return v.suite.Start.Native(ctx, v.settings(reference))
	}, options...)
}

func (v *verification) openNativeBy(ctx context.Context, name string, start func(context.Context) (Arm, error), options ...recording.Setting) (*session, error) {
	if err := v.awaitRecording(ctx); err != nil {
		return nil, err
	}
	a, err := v.start(ctx, name, start)
	if err != nil {
		return nil, err
	}
	s := &session{arm: a, name: name, probes: v.probes, keys: v.recorded.Recording}
	return opened(s, func() error { return v.load(ctx, s, options) })
}

func (v *verification) load(ctx context.Context, s *session, options []recording.Setting) error {
	file, err := give(ctx, s.arm, v.recorded.File)
	if err != nil {
		return err
	}
	weights, err := give(ctx, s.arm, v.recorded.Weights)
	if err != nil {
		return err
	}
	loaded, err := s.arm.Load(ctx, arm.LoadRequest{Recording: file, Weights: weights, Device: v.cell.Device, Arm: s.name, Options: options})
	if err != nil {
		return err
	}
	if err := v.sameRecording(s.name, loaded); err != nil {
		return err
	}
	s.arena = loaded.ArenaBytes
	v.account.launch(loaded.Launches)
	if err := v.describe(ctx, s.arm, native); err != nil { // now that it has opened its device
		return err
	}
	return s.ready(ctx, loaded.Inputs, loaded.Outputs, v.cell.Seed, s.name == arm.NativeGraph)
}

// sameRecording fails if a plugin says that it loaded another recording than it was given.
func (v *verification) sameRecording(name string, loaded arm.LoadReply) error {
	if got, want := loaded.RecordingDigest, v.recorded.Recording.Digest; got != "" && got != want {
		return fmt.Errorf("%s: loaded the recording %s instead of %s", name, got, want)
	}
	return nil
}

// eagerly runs every probe once, and the first once more.
func (v *verification) eagerly(ctx context.Context, s *session) (evidence, error) {
	run, err := s.all(ctx)
	if err != nil {
		return evidence{}, err
	}
	again, err := s.step(ctx, s.probes[0], 0)
	if err != nil {
		return evidence{}, err
	}
	return evidence{run: run, again: again}, v.weigh(ctx, s)
}

// graphed runs a graph arm: its replays, as far as somebody asks for them, and then the situations.
func (v *verification) graphed(ctx context.Context, s *session, truth truth) (e evidence, err error) {
	if v.asks(graphGates...) {
		e, err = v.replays(ctx, s, truth.run)
	} else {
		e.run, err = s.all(ctx)
	}
	if err == nil && e.watch != nil && e.watch.Replay().Reason == gate.OutputDiffers {
		var alone gate.Run
		if alone, err = s.eagerly(ctx); err == nil {
			e.watch.Eagerly(alone, e.run)
		}
	}
	if err == nil {
		e.situations, e.lost, err = v.situated(ctx, s, truth)
	}
	return e, err
}

// replays runs a graph arm over and over, with its outputs poisoned and memory churned before each replay, and holds each
// result while the next is made.
func (v *verification) replays(ctx context.Context, s *session, eager gate.Run) (evidence, error) {
	e := evidence{run: gate.Run{}, watch: gate.NewWatch(eager)}
	e.engage.Prepared = s.prepared
	var err error
	if e.engage.Before, err = s.arm.Stats(ctx); err != nil {
		return e, err
	}
	v.account.weigh(s, e.engage.Before) // what disturbs it takes memory, too
	var held gate.Outputs
	var heldProbe string
	for i, name := range rotation(s.probes, gate.MinReplays) {
		if err := s.arm.Disturb(ctx, arm.DisturbRequest{PoisonOutputs: true, Churn: true}); err != nil {
			return e, fmt.Errorf("%s: disturb: %w", s.name, err)
		}
		got, err := s.step(ctx, name, i%outputBanks)
		if err != nil {
			return e, err
		}
		e.engage.Steps++
		if err := e.watch.Replayed(name, got); err != nil {
			return e, err
		}
		if held != nil {
			e.watch.Held(heldProbe, held, s.read((i+1)%outputBanks, held))
		}
		held, heldProbe, e.run[name] = got, name, got
	}
	e.engage.After, err = s.arm.Stats(ctx)
	return e, err
}
