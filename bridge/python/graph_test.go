package samebits

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"samebits/bridge/replay"
)

// predictPair runs one step of a recording of pair, so wide, and gives its sum.
func predictPair(t *testing.T, number int64, shape, wide int, mode string) []float32 {
	t.Helper()
	left, right, sum, turned := make([]float32, 2*wide), make([]float32, 2*wide), make([]float32, 2*wide), make([]float32, 2*wide)
	for i := range left {
		left[i], right[i] = float32(i), 1
	}
	called[stepped](t, func(ticket int64) (string, error) {
		return Predict(ticket, number, asJSON(step{Inputs: []int64{address(t, left), address(t, right)},
			Outputs: []int64{address(t, sum), address(t, turned)}, Shapes: []int{shape}, Graph: mode}))
	})
	return sum
}

// Several recordings are one model, and each has a graph of its own.
func TestSeveralRecordings(t *testing.T) {
	number, _ := loadFixture(t, "model", "pair", LoadModel)
	wide, weights := fixture(t, "pair-wide")
	further := called[described](t, func(ticket int64) (string, error) {
		return AddRecording(ticket, number, address(t, wide), int64(len(wide)), address(t, weights), int64(len(weights)))
	})
	if !slices.Equal(further.Inputs[0].Sizes, []int64{2, 5}) {
		t.Errorf("described as %+v", further)
	}
	capture := func(w wanted) info {
		t.Helper()
		return called[info](t, func(ticket int64) (string, error) { return CaptureGraph(ticket, number, asJSON(w)) })
	}
	if got := capture(wanted{ImgSize: 5, DType: "float32"}); got.Count != 1 || !slices.Equal(got.Captured[0].Shape, []int64{2, 5}) || got.Captured[0].Device != "host" {
		t.Errorf("%+v", got)
	}
	if got := capture(wanted{}); got.Count != 2 || got.Captures != 2 || got.Supported || len(got.Unsupported) != 1 || got.Unsupported[0].Reason != "NO_GPU" {
		t.Errorf("%+v", got)
	}
	for turn, wide := range []int{3, 5, 5, 3} {
		sum := predictPair(t, number, wide/5, wide, "")
		if sum[2*wide-1] != float32(2*wide) {
			t.Errorf("turn %d: %v", turn, sum)
		}
	}
	got := called[info](t, func(ticket int64) (string, error) { return GraphInfo(ticket, number) })
	if got.Replays != 4 || got.EagerSteps != 0 || got.Captured[0].Replays != 2 || got.Captured[1].Replays != 2 {
		t.Errorf("%+v", got)
	}
	tickets++
	if _, err := CaptureGraph(tickets, number, `{"imgsz":7,"batch":0,"dtype":""}`); err == nil || !strings.Contains(err.Error(), "NO_RECORDING") {
		t.Error(err)
	}
}

// On the host there is no flag: who asks for a graph is refused before anything is compiled or run, and auto is eager.
func TestNoFlagOnTheHost(t *testing.T) {
	recording, weights := fixture(t, "pair")
	for _, graph := range []string{"on", "TRUE"} {
		number, err := Reserve("model")
		if err != nil {
			t.Fatal(err)
		}
		tickets++
		_, err = LoadModel(tickets, number, address(t, recording), int64(len(recording)), address(t, weights), int64(len(weights)),
			`{"device": "host", "graph": "`+graph+`", "torch": []}`)
		if err == nil || !strings.HasPrefix(err.Error(), "UNCERTIFIED: ") || !strings.Contains(err.Error(), "NO_GPU") || !strings.Contains(err.Error(), "tiny") {
			t.Error(err)
		}
		if _, err := Discard(number); err != nil {
			t.Fatal(err)
		}
	}
	number, described := loadFixture(t, "model", "pair", LoadModel) // auto
	if !strings.Contains(described.Line, "NO_GPU") || strings.Contains(described.Line, "\n") {
		t.Errorf("%q", described.Line)
	}
	for range 5 {
		predictPair(t, number, 0, 3, "")
	}
	if got := called[info](t, func(ticket int64) (string, error) { return GraphInfo(ticket, number) }); got.Captures != 0 || got.EagerSteps != 5 ||
		!strings.Contains(got.FallbackReason, "NO_GPU") || got.Mode != replay.Auto {
		t.Errorf("%+v", got)
	}
	tickets++
	if _, err := Predict(tickets, number, asJSON(step{Inputs: []int64{0, 0}, Shapes: []int{0}, Graph: "on"})); err == nil || !strings.HasPrefix(err.Error(), "UNCERTIFIED: ") {
		t.Error(err)
	}
	tickets++
	if _, err := Predict(tickets, number, asJSON(step{Inputs: []int64{0, 0}, Shapes: []int{0}, Graph: "perhaps"})); err == nil || !strings.HasPrefix(err.Error(), "INPUT: ") {
		t.Error(err)
	}
}

// A graph that was captured beforehand and served no step is said when the model is closed, if not before.
func TestAnUnusedGraphIsSaid(t *testing.T) {
	recording, weights := fixture(t, "pair")
	number, err := Reserve("model")
	if err != nil {
		t.Fatal(err)
	}
	called[described](t, func(ticket int64) (string, error) {
		return LoadModel(ticket, number, address(t, recording), int64(len(recording)), address(t, weights), int64(len(weights)), `{"device": "host", "graph": "off"}`)
	})
	called[info](t, func(ticket int64) (string, error) { return CaptureGraph(ticket, number, asJSON(wanted{})) })
	got := called[struct{ Warning string }](t, func(ticket int64) (string, error) { return Close(ticket, number) })
	if !strings.Contains(got.Warning, "GRAPH_UNUSED") {
		t.Errorf("%q", got.Warning)
	}
}

// What a caller wrote in place stays while a step is captured.
func TestCapturesLeaveWhatLiesInPlace(t *testing.T) {
	number, _ := loadFixture(t, "model", "pair", LoadModel)
	seen := called[stepped](t, func(ticket int64) (string, error) { return ViewInputs(ticket, number, 0) })
	for _, place := range seen.Addresses {
		for i, value := range []float32{1, 2, 3, 4, 5, 6} {
			binary.LittleEndian.PutUint32(at(place, 24)[4*i:], math.Float32bits(value))
		}
	}
	if got := called[info](t, func(ticket int64) (string, error) { return CaptureGraph(ticket, number, asJSON(wanted{})) }); got.Count != 1 {
		t.Fatalf("%+v", got)
	}
	sum, turned := make([]float32, 6), make([]float32, 6)
	called[stepped](t, func(ticket int64) (string, error) {
		return Predict(ticket, number, asJSON(step{Inputs: seen.Addresses, Outputs: []int64{address(t, sum), address(t, turned)}, Shapes: []int{0}}))
	})
	if want := []float32{2, 4, 6, 8, 10, 12}; !slices.Equal(sum, want) {
		t.Errorf("%v instead of %v", sum, want)
	}
	if known, err := Release(seen.View); !known || err != nil {
		t.Errorf("release: %v, %v", known, err)
	}
}
