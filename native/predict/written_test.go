package predict

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"samebits/bridge/recording"
	rt "samebits/bridge/recording/recordingtest"
	"samebits/bridge/replay"
	"samebits/bridge/tensor"
)

// The step that is captured has the inputs that were given for it, also where the step writes them.
func TestACaptureLeavesInputsAlone(t *testing.T) {
	p := open(t)
	b := rt.New("cpu")
	b.R.Header.Family = p.Shapes()[0].Recording.Header.Family
	x := b.Tensor(recording.Input, "x", tensor.Float32, 3)
	y, z := b.Scratch(tensor.Float32, 3), b.Scratch(tensor.Float32, 3)
	b.Op("aten::add.Tensor", rt.Args(rt.Value("self", x), rt.Value("other", x), rt.Int("alpha", 1)), y)
	b.Op("aten::copy_", rt.Args(rt.Value("self", x), rt.Value("src", y), rt.Bool("non_blocking", false)), x)
	b.Op("aten::add.Tensor", rt.Args(rt.Value("self", x), rt.Value("other", y), rt.Int("alpha", 1)), z)
	b.Input("x", x)
	b.Output("z", z)
	s, err := p.Add(b.R, func(string) ([]byte, bool) { return nil, false }, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var one, four []byte
	for range 3 {
		one = binary.LittleEndian.AppendUint32(one, math.Float32bits(1))
		four = binary.LittleEndian.AppendUint32(four, math.Float32bits(4))
	}
	for _, mode := range []replay.Mode{replay.Off, replay.On} {
		p.Graphs.Mode = mode
		for step := range 3 {
			out := make([]byte, 12)
			if err := s.Feed(0, one); err != nil {
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
			if !bytes.Equal(out, four) {
				t.Errorf("%s: step %d gives %v", mode, step, math.Float32frombits(binary.LittleEndian.Uint32(out)))
			}
		}
	}
}
