package predict

import (
	"testing"

	"samebits/bridge/replay"
)

// A step takes no memory from Go, whether it is replayed or not.
func TestStepsDoNotAllocate(t *testing.T) {
	p := open(t)
	s := p.Shapes()[0]
	in, out := input(s), make([]byte, s.Outputs[0].Bytes())
	for _, mode := range []replay.Mode{replay.Off, replay.On} {
		p.Graphs.Mode = mode
		run(t, s)
		var err error
		n := testing.AllocsPerRun(50, func() {
			if e := s.Feed(0, in); e != nil {
				err = e
			}
			if e := s.Graph.Launch(); e != nil {
				err = e
			}
			if e := s.Fetch(0, out); e != nil {
				err = e
			}
			if e := s.Wait(); e != nil {
				err = e
			}
		})
		if n != 0 || err != nil {
			t.Errorf("%s: a step takes memory %v times, %v", mode, n, err)
		}
	}
}
