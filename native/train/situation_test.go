package train

import (
	"slices"
	"testing"
)

// Steps after the state moved are those of a run whose state stayed, and a graph with the old addresses is not replayed.
func TestMove(t *testing.T) {
	names := []string{"param.w", "param.b", "momentum.w", "momentum.b", "ema.w", "ema.b"}
	stayed, a := open(t, "cuda")
	moved, b := open(t, "cuda")
	for _, s := range []*Shape{a, b} {
		if err := s.SetHyper(hyper); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Capture(); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 4 {
		if n > 0 {
			if err := moved.Move(); err != nil {
				t.Fatal(err)
			}
			if b.Captured() {
				t.Error("a graph with old addresses is still one")
			}
			if n%2 == 0 { // capturing anew, or eagerly
				if _, err := b.Capture(); err != nil {
					t.Fatal(err)
				}
			}
		}
		step(t, a, true)
		step(t, b, b.Captured())
		for _, name := range names {
			if got, want := read(t, moved, name), read(t, stayed, name); !slices.Equal(got, want) {
				t.Errorf("step %d: %s is %v instead of %v", n, name, got, want)
			}
		}
	}
	if b.Model().Invalidations() != 2 {
		t.Errorf("%d invalidations", b.Model().Invalidations())
	}
}

func TestRescale(t *testing.T) {
	tr, _ := open(t, "cuda")
	for _, c := range []struct {
		up   bool
		want float32
	}{{false, -1}, {true, -2}, {true, -4}} {
		if err := tr.Rescale(c.up); err != nil {
			t.Fatal(err)
		}
		if got := read(t, tr, "param.w")[1]; got != c.want {
			t.Errorf("%v instead of %v", got, c.want)
		}
		if got := read(t, tr, "ema.w")[1]; got != -2 {
			t.Errorf("the average is %v", got)
		}
	}
}
