package host_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"samebits/bridge/diag"
	"samebits/bridge/host"
	"samebits/bridge/tensor"
)

func TestSteps(t *testing.T) {
	leavesNothing(t)
	p, inputs, outputs := ready(t, config(t, "good"))
	for i := range 200 {
		in, out := i%2, i/2%2
		for j := range inputs[in] {
			inputs[in][j] = byte(i + j)
		}
		if err := p.Step(t.Context(), in, out); err != nil {
			t.Fatal(err)
		}
		for j, b := range outputs[out] {
			if b != byte(i+j+1) {
				t.Fatalf("step %d: byte %d is %d, want %d", i, j, b, byte(i+j+1))
			}
		}
	}
	if p.StepTime() <= 0 || p.StepTime() > time.Second {
		t.Errorf("step time %v", p.StepTime())
	}
	stats, err := p.Stats(t.Context())
	if err != nil || stats.EagerSteps != 200 || stats.FallbackReason != "none" {
		t.Errorf("%+v, %v", stats, err)
	}
	if err := p.Stop(); err != nil {
		t.Errorf("Stop: %v", err)
	}
	var e *host.Error
	if err := p.Step(t.Context(), 0, 0); !errors.As(err, &e) || e.Reason != host.ReasonStopped {
		t.Errorf("a step after Stop: %v", err)
	}
	if _, _, err := p.Memory().Alloc(t.Context(), 1); err == nil {
		t.Error("memory after Stop")
	}
}

func TestStepRefusals(t *testing.T) {
	for _, c := range []struct{ name, deed, reason, says string }{
		{"panic", "panic", "PLUGIN_PANIC", "index out of range"},
		{"problems", "problems", "UNKNOWN_OPERATION", "operations[9]"},
		{"more problems than the block holds", "many-problems", "UNKNOWN_OPERATION", "more problems"},
		{"a problem longer than the block", "long-problem", "LONG", "…"},
		{"error", "error", "PLUGIN_ERROR", "something broke"},
	} {
		t.Run(c.name, func(t *testing.T) {
			leavesNothing(t)
			p, _, _ := ready(t, config(t, "good"), "step", c.deed)
			for range 2 { // it goes on serving
				err := p.Step(t.Context(), 1, 1)
				if ps, _ := diag.Of(err); len(ps) == 0 || ps[0].Reason != c.reason || !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %v", err)
				}
			}
			if err := p.Step(t.Context(), 2, 0); err == nil || !strings.Contains(err.Error(), "input bank 2: Prepare gave 2") {
				t.Errorf("a bank that is not there: %v", err)
			}
			if err := p.Step(t.Context(), 0, -1); err == nil {
				t.Error("a negative bank")
			}
			if err := p.Stop(); err != nil {
				t.Errorf("Stop: %v", err)
			}
		})
	}
}

// A plugin that answers a step against the rules of the wire is ended, and said why.
func TestStepsAgainstTheWire(t *testing.T) {
	for _, c := range []struct{ deed, says string }{
		{"no status", "ended a step with status 0xffffffff"},
		{"unknown status", "ended a step with status 0x2"},
		{"other byte", "answered a step with byte 0x58"},
		{"other step", "answered a step with byte 0x44"},
		{"long text", "gave 4033 bytes of problems"},
		{"torn text", "problems: "},
	} {
		t.Run(c.deed, func(t *testing.T) {
			leavesNothing(t)
			p, _, _ := ready(t, config(t, "liar"), "step", c.deed)
			err := p.Step(t.Context(), 0, 0)
			var e *host.Error
			if !errors.As(err, &e) || e.Reason != host.ReasonWire || e.During != "Step" || !strings.Contains(e.Summary, c.says) {
				t.Errorf("got %v", err)
			}
			<-p.Done()
			if again := p.Step(t.Context(), 0, 0); !errors.Is(again, err) {
				t.Errorf("a later step: %v", again)
			}
		})
	}
	t.Run("no problem", func(t *testing.T) {
		leavesNothing(t)
		p, _, _ := ready(t, config(t, "liar"), "step", "no problem")
		if err := p.Step(t.Context(), 0, 0); err == nil || !strings.Contains(err.Error(), "PLUGIN_ERROR: named no problem") {
			t.Errorf("a refusal without a reason: %v", err)
		}
	})
}

// Steps that are asked for at once run one after the other.
func TestStepsAtOnce(t *testing.T) {
	leavesNothing(t)
	p, inputs, outputs := ready(t, config(t, "good"))
	var both sync.WaitGroup
	for bank := range 2 {
		both.Go(func() {
			for i := range 100 {
				inputs[bank][0] = byte(i + 100*bank)
				if err := p.Step(t.Context(), bank, bank); err != nil || outputs[bank][0] != byte(i+100*bank+1) {
					t.Errorf("bank %d, step %d: %d, %v", bank, i, outputs[bank][0], err)
					return
				}
			}
		})
	}
	both.Wait()
}

// What is allocated at once lies apart, and in one range: nobody makes the memory grow beside another.
func TestAllocAtOnce(t *testing.T) {
	leavesNothing(t)
	p := start(t, config(t, "good"))
	var all sync.WaitGroup
	var mu sync.Mutex
	taken := map[int64]bool{}
	for range 8 {
		all.Go(func() {
			for range 50 {
				region, _, err := p.Memory().Alloc(t.Context(), 1<<10)
				mu.Lock()
				if err != nil || taken[region.Offset] || region.Length != 1<<10 || region.Offset%(1<<10) != 0 {
					t.Errorf("%+v, %v", region, err)
				}
				taken[region.Offset] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if size := p.Memory().Size(); size != 4096+16<<20 {
		t.Errorf("%d bytes are mapped", size)
	}
}

func TestMemoryGrows(t *testing.T) {
	leavesNothing(t)
	p, inputs, outputs := ready(t, config(t, "good"), "step", "slow")
	if err := p.Disturb(t.Context(), host.DisturbRequest{}); err != nil {
		t.Fatal(err)
	}
	stepped := make(chan error, 1)
	copy(inputs[0], bytes.Repeat([]byte{41}, 100))
	go func() { stepped <- p.Step(t.Context(), 0, 0) }()
	time.Sleep(50 * time.Millisecond)
	before := p.Memory().Size()
	region, big, err := p.Memory().Alloc(t.Context(), 100<<20+1) // while the step runs
	if err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-stepped:
		t.Errorf("the memory grew only after the step: %v", err)
		stepped <- err
	default:
	}
	if err := <-stepped; err != nil {
		t.Fatal(err)
	}
	if outputs[0][99] != 42 {
		t.Error("the old slices are no longer shared")
	}
	if p.Memory().Size() < before+100<<20 || region.Offset%64 != 0 || int64(len(big)) != region.Length {
		t.Errorf("%+v of %d", region, p.Memory().Size())
	}
	digest := []byte("far away")
	copy(big[len(big)-len(digest):], digest)
	tail := host.Region{Offset: region.Offset + 100<<20 - 64, Length: 65}
	if r, err := p.Load(t.Context(), host.LoadRequest{Weights: tail}); err != nil || !strings.HasSuffix(r.RecordingDigest, string(digest)) {
		t.Errorf("%q, %v", r.RecordingDigest, err)
	}
	size := p.Memory().Size()
	if err := p.Memory().Reset(); err != nil {
		t.Fatal(err)
	}
	again, place, err := p.Memory().Alloc(t.Context(), 100<<20)
	if err != nil || p.Memory().Size() != size || again.Offset != region.Offset || place[len(place)-1] != 0 {
		t.Errorf("after Reset: %+v of %d, %v", again, p.Memory().Size(), err)
	}
	for _, n := range []int64{-1, 1 << 60} {
		if _, _, err := p.Memory().Alloc(t.Context(), n); err == nil {
			t.Errorf("%d bytes were shared", n)
		}
	}
	if r, _, err := p.Memory().Alloc(t.Context(), 0); err != nil || r.Length != 0 {
		t.Errorf("no bytes: %+v, %v", r, err)
	}
	wrong := []tensor.Spec{spec, {Name: "wrong", DType: tensor.Uint8, Sizes: []int64{-1}}}
	if bank, data, err := p.Memory().AllocBank(t.Context(), wrong); bank != nil || data != nil || err == nil || !strings.Contains(err.Error(), `tensor "wrong"`) {
		t.Errorf("a bank that cannot be: %v", err)
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := p.Memory().Reset(); err != nil {
		t.Errorf("Reset after Stop: %v", err)
	}
}

func TestStepInterrupted(t *testing.T) {
	leavesNothing(t)
	p, _, _ := ready(t, config(t, "good"), "step", "hang")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	began := time.Now()
	err := p.Step(ctx, 0, 0)
	if took := time.Since(began); took > time.Second || !errors.Is(err, context.Canceled) {
		t.Errorf("%v after %v", err, took)
	}
	eventually(t, time.Second, "the process is gone", func() bool { return !alive(p.PID()) })
	if err := p.Step(ctx, 0, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("a step that may not start: %v", err)
	}
}

func TestStopDuringStep(t *testing.T) {
	leavesNothing(t)
	p, _, _ := ready(t, config(t, "good"), "step", "hang")
	stepped := make(chan error, 1)
	go func() { stepped <- p.Step(context.Background(), 0, 0) }()
	time.Sleep(50 * time.Millisecond)
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	var e *host.Error
	if err := <-stepped; !errors.As(err, &e) || e.Reason != host.ReasonStopped {
		t.Errorf("the step: %v", err)
	}
}

func TestPluginsSideBySide(t *testing.T) {
	leavesNothing(t)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			p, inputs, outputs := ready(t, config(t, "good"))
			for i := range 50 {
				inputs[0][0] = byte(i)
				if err := p.Step(t.Context(), 0, 1); err != nil || outputs[1][0] != byte(i+1) {
					t.Errorf("step %d: %v", i, err)
					return
				}
			}
		})
	}
	all.Wait()
}
