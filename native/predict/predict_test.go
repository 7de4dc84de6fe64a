package predict

import (
	"bytes"
	"strings"
	"testing"

	"samebits/bridge/diag"
	"samebits/bridge/recording"
	rt "samebits/bridge/recording/recordingtest"
	"samebits/bridge/replay"
	"samebits/native/engine"
	"samebits/native/host"
)

// open loads ConvBNReLU on the host, with every memory poisoned that nobody wrote.
func open(t *testing.T) *Predictor {
	t.Helper()
	dev, err := host.Open(host.Poison())
	if err != nil {
		t.Skip(err)
	}
	r := rt.ConvBNReLU()
	p, err := Open(dev, r, weightsOf(t, r), Options{KeepWeights: true})
	if err != nil {
		if strings.Contains(err.Error(), "NO_COMPILER") {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func weightsOf(t *testing.T, r *recording.Recording) engine.Weights {
	file := rt.File(t, rt.Weights(r, 3))
	return func(name string) ([]byte, bool) {
		w, ok := file.Get(name)
		if !ok {
			return nil, false
		}
		return w.Data, true
	}
}

func input(s *Shape) []byte {
	data := make([]byte, s.Inputs[0].Bytes())
	for i := range data {
		data[i] = byte(i%3) * byte(i%61) // small floats
	}
	for i := 3; i < len(data); i += 4 {
		data[i] = 0x3f
	}
	return data
}

func run(t *testing.T, s *Shape) []byte {
	t.Helper()
	out := make([]byte, s.Outputs[0].Bytes())
	if err := s.Feed(0, input(s)); err != nil {
		t.Fatal(err)
	}
	if err := s.Graph.Launch(); err != nil {
		t.Fatal(err)
	}
	if err := s.Fetch(0, out); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(); err != nil {
		t.Fatal(err)
	}
	return out
}

// Weights that lie elsewhere invalidate what held their addresses: the engine finds that out, and gives the same bits.
func TestMove(t *testing.T) {
	for _, mode := range []replay.Mode{replay.Off, replay.On} {
		p := open(t)
		p.Graphs.Mode = mode
		s := p.Shapes()[0]
		want := run(t, s)
		place := s.InputPlace(0).Address
		for i := range 3 {
			before := p.Graphs.Count()
			if err := p.Move(); err != nil {
				t.Fatal(err)
			}
			if p.Graphs.Count() != 0 || s.Nodes() != nil || s.Captured() {
				t.Errorf("%s: a graph with old addresses is still one", mode)
			}
			if !bytes.Equal(run(t, s), want) {
				t.Errorf("%s: move %d changed the result", mode, i)
			}
			if mode == replay.On && (before != 1 || s.Invalidations() != int64(i+1) || p.Graphs.Info().Captures != int64(i+2)) {
				t.Errorf("move %d: %d graphs before, %d invalidations, %+v", i, before, s.Invalidations(), p.Graphs.Info())
			}
		}
		if s.InputPlace(0).Address != place {
			t.Errorf("inputs moved, which a caller may hold")
		}
	}
}

// A replay by hand does not use addresses of memory that moved either.
func TestReplayAfterAMove(t *testing.T) {
	p := open(t)
	s := p.Shapes()[0]
	if _, err := s.Capture(); err != nil {
		t.Fatal(err)
	}
	if err := s.Move(); err != nil {
		t.Fatal(err)
	}
	if err := s.Replay(); err == nil || s.Invalidations() != 1 {
		t.Errorf("%v, %d invalidations", err, s.Invalidations())
	}
}

// What was written to an input stays while the step is prepared anew.
func TestInputsStay(t *testing.T) {
	p := open(t)
	s := p.Shapes()[0]
	want := run(t, s)
	if err := s.Feed(0, input(s)); err != nil {
		t.Fatal(err)
	}
	if err := s.Move(); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if err := s.ReadOutput(0, got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the result is another one")
	}
}

// Weights that change where they lie are followed by replays.
func TestRescale(t *testing.T) {
	p := open(t)
	p.Graphs.Mode = replay.On
	s := p.Shapes()[0]
	want := run(t, s)
	for i, up := range []bool{false, true} {
		if err := s.Rescale(up); err != nil {
			t.Fatal(err)
		}
		if same := bytes.Equal(run(t, s), want); same != up {
			t.Errorf("rescaled %d times, the result is the same: %t", i+1, same)
		}
	}
	if s.Invalidations() != 0 || p.Graphs.Info().Captures != 1 {
		t.Errorf("%d invalidations, %+v", s.Invalidations(), p.Graphs.Info())
	}
}

func TestFind(t *testing.T) {
	p := open(t)
	r := rt.ConvBNReLU()
	r.Header.Batch = 9
	if _, err := p.Add(r, weightsOf(t, r), Options{}); err != nil {
		t.Fatal(err)
	}
	if found, err := p.Find(Wanted{Batch: 9, DType: "float32"}); err != nil || len(found) != 1 || found[0] != p.Shapes()[1] {
		t.Errorf("%v, %v", found, err)
	}
	if found, err := p.Find(Wanted{}); err != nil || len(found) != 2 {
		t.Errorf("%v, %v", found, err)
	}
	for _, w := range []Wanted{{DType: "bfloat16"}, {ImgSize: 31}} {
		if _, err := p.Find(w); !strings.Contains(err.Error(), "NO_RECORDING") {
			t.Errorf("%+v: %v", w, err)
		}
	}
	other := rt.ConvBNReLU()
	other.Header.Family += "x"
	_, err := p.Add(other, weightsOf(t, other), Options{})
	if problems, ok := diag.Of(err); !ok || problems[0].Reason != "OTHER_FAMILY" {
		t.Errorf("%v", err)
	}
}
