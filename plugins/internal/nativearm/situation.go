package nativearm

import (
	"errors"
	"fmt"
	"runtime"

	"samebits/bridge/arm"
	"samebits/bridge/recording"
	"samebits/bridge/replay"
	"samebits/bridge/serve"
	"samebits/native/device"
	"samebits/native/engine"
)

// Situated is what a native arm hands over to be put into a situation (docs/wire.md).
type Situated struct {
	Device  device.Device
	Graphs  *replay.Graphs
	Models  []*engine.Model
	Capture func() error        // captures every shape, with real data in its inputs
	Move    func() error        // gives weights and state other memory
	Scale   func(up bool) error // doubles or halves the floating parameters where they lie
	Eager   func() error        // runs a step with the graph switched off; nil: the next step is that
}

// Around is what a situation leaves for the steps that follow.
type Around struct {
	switches bool // the next step changes the stream in its midst
	other    bool // another device is current in the thread of each step
	eager    bool // the next step runs eagerly
}

// Situate puts an arm into a situation. Native arms have no generator: seed is none that they know.
func (a *Around) Situate(s Situated, situation string) (arm.SituateReply, error) {
	var reply arm.SituateReply
	say := func(key, format string, args ...any) {
		reply.Facts = append(reply.Facts, recording.Setting{Key: key, Value: fmt.Sprintf(format, args...)})
	}
	known := true
	var err error
	switch situation {
	case arm.OtherStream:
		if known = streams(s.Models); known {
			a.switches = true
			say("stream", "the next step begins on one and ends on another")
		}
	case arm.OtherThread:
		err = captureElsewhere(s)
		say("captures", "%d", s.Graphs.Info().Count)
	case arm.Moved:
		err = s.Move()
		say("models", "%d", len(s.Models))
	case arm.Updated:
		err = s.Scale(false)
	case arm.Restored:
		err = s.Scale(true)
	case arm.OtherMode:
		if s.Eager != nil {
			err = s.Eager()
			say("eager", "one step")
		} else {
			a.eager = true
			say("eager", "the next step")
		}
	case arm.Released:
		err = s.Graphs.Release()
	case arm.FailsCapture:
		err = s.Graphs.Release()
		for _, m := range s.Models {
			known = m.BreakCapture() && known
		}
	case arm.OtherDevice:
		var elsewhere device.Elsewhere
		if elsewhere, known = s.Device.(device.Elsewhere); known {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			defer elsewhere.KeepCurrent()()
			err = elsewhere.MakeOtherCurrent()
			a.other = err == nil
		}
	default:
		known = false
	}
	if !known && err == nil {
		err = serve.UnknownSituation(situation)
	}
	return reply, err
}

func streams(models []*engine.Model) bool {
	for _, m := range models {
		if !m.HasStreams() {
			return false
		}
	}
	return true
}

// captureElsewhere captures in a thread that ends with it, while another one keeps the driver busy.
func captureElsewhere(s Situated) error {
	if err := s.Graphs.Release(); err != nil {
		return err
	}
	captured, stop, bustled := make(chan error, 1), make(chan struct{}), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		bustled <- bustle(s.Device, stop)
	}()
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the function
		captured <- s.Capture()
	}()
	err := <-captured
	close(stop)
	return errors.Join(err, <-bustled)
}

func bustle(d device.Device, stop <-chan struct{}) error {
	bustler, ok := d.(device.Bustler)
	if !ok {
		return nil
	}
	for {
		select {
		case <-stop:
			return nil
		default:
			if err := bustler.Bustle(); err != nil {
				return fmt.Errorf("beside a capture: %w", err)
			}
		}
	}
}

// Step does around the launch of a step what the situation wants. end is to be called when the step is over.
func (a *Around) Step(d device.Device) (end func(), err error) {
	if !a.other {
		return func() {}, nil
	}
	elsewhere, ok := d.(device.Elsewhere)
	if !ok {
		return func() {}, nil
	}
	runtime.LockOSThread()
	restore := elsewhere.KeepCurrent()
	end = func() {
		restore()
		runtime.UnlockOSThread()
	}
	if err := elsewhere.MakeOtherCurrent(); err != nil {
		end()
		return func() {}, err
	}
	return end, nil
}

// Eager reports whether the step that begins is one with the graph switched off.
func (a *Around) Eager() bool {
	eager := a.eager
	a.eager = false
	return eager
}

// Switch changes the stream of a step whose inputs, and perhaps more, are on their way on the old one.
func (a *Around) Switch(m *engine.Model) error {
	if !a.switches {
		return nil
	}
	a.switches = false
	return m.SwitchStream()
}

// Switches reports whether the step that begins will change its stream.
func (a *Around) Switches() bool { return a.switches }

// Count fills the counters that a model's graphs have.
func Count(stats *arm.Stats, g *replay.Graphs, models []*engine.Model, d device.Device) {
	info := g.Info()
	stats.Captures, stats.Replays, stats.EagerSteps, stats.Fallbacks = info.Captures, info.Replays, info.EagerSteps, info.EagerFallbacks
	stats.FallbackReason, stats.Latched = info.FallbackReason, g.Latched()
	stats.NodesByKind, stats.Invalidations = nil, 0
	for _, m := range models {
		stats.Invalidations += m.Invalidations()
		for kind, n := range m.Nodes() {
			if stats.NodesByKind == nil {
				stats.NodesByKind = map[string]int64{}
			}
			stats.NodesByKind[kind] += n
		}
	}
	if d != nil {
		stats.PeakBytes, stats.AllocatedBytes = max(stats.PeakBytes, d.Peak()), d.InUse()
	}
}
