package train

import "testing"

// A step takes no memory from Go, whether it is replayed or not.
func TestStepsDoNotAllocate(t *testing.T) {
	tr, s := open(t, "cuda")
	inputs := make([][]byte, len(s.Inputs()))
	for i, spec := range s.Inputs() {
		inputs[i] = make([]byte, spec.Bytes())
	}
	state := tr.State()[0]
	data := make([]byte, state.Bytes())
	for _, graph := range []bool{false, true} {
		if graph {
			if _, err := s.Capture(); err != nil {
				t.Fatal(err)
			}
		}
		var failed error
		must := func(err error) {
			if err != nil {
				failed = err
			}
		}
		n := testing.AllocsPerRun(20, func() {
			for i, data := range inputs {
				must(s.Feed(i, data))
			}
			must(s.SetHyper(hyper))
			if graph {
				must(s.Replay())
			} else {
				must(s.Run())
			}
			must(s.FetchState(state.Name, data))
			must(s.Wait())
		})
		if n != 0 || failed != nil {
			t.Errorf("graph %v: a step takes memory %v times, %v", graph, n, failed)
		}
	}
}
