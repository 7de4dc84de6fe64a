package samebits

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
	"unsafe"
)

// inSlices makes every call a job that is awaited, however short it is.
func inSlices(t *testing.T) {
	before := slice
	slice = time.Nanosecond
	t.Cleanup(func() { slice = before })
}

var tickets int64 = 1 << 40

// called runs a job to its end and reads its result.
func called[T any](t *testing.T, start func(ticket int64) (string, error)) T {
	t.Helper()
	tickets++
	text, err := start(tickets)
	for text == "" && err == nil {
		time.Sleep(time.Millisecond)
		text, err = Await(tickets)
	}
	if err != nil {
		t.Fatal(err)
	}
	var out T
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return out
}

// address is what Python gives of an array, which stays where it is until the test ends.
func address[T any](t *testing.T, s []T) int64 {
	var pin runtime.Pinner
	pin.Pin(unsafe.SliceData(s))
	t.Cleanup(pin.Unpin)
	return int64(uintptr(unsafe.Pointer(unsafe.SliceData(s))))
}

func fixture(t *testing.T, name string) (recording, weights []byte) {
	t.Helper()
	var files [2][]byte
	for i, file := range []string{"recording.pb", "weights.safetensors"} {
		data, err := os.ReadFile(filepath.Join("tests", "data", name, file))
		if err != nil {
			t.Fatal(err)
		}
		files[i] = data
	}
	return files[0], files[1]
}

type loader func(ticket, number, recordingAt, recordingBytes, weightsAt, weightsBytes int64, options string) (string, error)

func loadFixture(t *testing.T, what, name string, load loader) (int64, describedTrainer) {
	t.Helper()
	number, err := Reserve(what)
	if err != nil {
		t.Fatal(err)
	}
	recording, weights := fixture(t, name)
	described := called[describedTrainer](t, func(ticket int64) (string, error) {
		return load(ticket, number, address(t, recording), int64(len(recording)), address(t, weights), int64(len(weights)),
			`{"device": "host", "graph": "auto", "torch": []}`)
	})
	t.Cleanup(func() {
		called[struct{}](t, func(ticket int64) (string, error) { return Close(ticket, number) })
		if jobs.size() != 0 || len(devicesInUse.all) != 0 {
			t.Errorf("%d jobs and %d devices are left", jobs.size(), len(devicesInUse.all))
		}
	})
	return number, described
}

func TestPredictInSlices(t *testing.T) {
	inSlices(t)
	number, described := loadFixture(t, "model", "pair", LoadModel)
	if described.Family != "tiny" || len(described.Inputs) != 2 || described.Outputs[1].Name != "turned" {
		t.Errorf("described as %+v", described)
	}
	left, right := []float32{1, 2, 3, 4, 5, 6}, []float32{1, 1, 1, 1, 1, 1}
	sum, turned := make([]float32, 6), make([]float32, 6)
	for range 4 {
		clear(sum)
		called[stepped](t, func(ticket int64) (string, error) {
			return Predict(ticket, number, asJSON(step{Inputs: []int64{address(t, left), address(t, right)}, Outputs: []int64{address(t, sum), address(t, turned)}, Shapes: []int{0}}))
		})
		if sum[0] != 2 || sum[5] != 7 || turned[1] != 5 {
			t.Errorf("sum %v, turned %v", sum, turned)
		}
	}
	if got := called[info](t, func(ticket int64) (string, error) { return GraphInfo(ticket, number) }); got.Count != 0 || got.EagerSteps != 4 || got.Supported {
		t.Errorf("on the host %+v", got)
	}
	seen := called[stepped](t, func(ticket int64) (string, error) { return ViewInputs(ticket, number, 0) })
	if len(seen.Addresses) != 2 || seen.View == 0 {
		t.Errorf("inputs are seen at %+v", seen)
	}
	if known, err := Release(seen.View); !known || err != nil {
		t.Errorf("release: %v, %v", known, err)
	}
}

func TestTrainInSlices(t *testing.T) {
	inSlices(t)
	number, described := loadFixture(t, "trainer", "train", LoadTrainer)
	if len(described.Groups) != 2 || len(described.State) != 6 {
		t.Errorf("described as %+v", described)
	}
	last, _ := fixture(t, "train-last")
	shape := called[describedTrainer](t, func(ticket int64) (string, error) {
		return AddShape(ticket, number, address(t, last), int64(len(last)))
	})
	if shape.Batch != 2 {
		t.Errorf("the second recording is %+v", shape)
	}
	images, targets, loss := make([]float32, 12), []int64{0, 1, 2, 0}, make([]float32, 1)
	call := trainCall{Inputs: []int64{address(t, images), address(t, targets)}, Outputs: []trainWants{{0, address(t, loss)}}}
	call.Hyper.LR, call.Hyper.WeightDecay = []float64{0.1, 0.1}, []float64{0, 0}
	for i := range 3 {
		call.Shape = i % 2 // the second takes half of the rows
		got := called[trained](t, func(ticket int64) (string, error) { return TrainStep(ticket, number, asJSON(call)) })
		if got.Steps != int64(i+1) || loss[0] <= 0 || loss[0] != loss[0] {
			t.Errorf("step %d: %+v, loss %v", i, got, loss)
		}
	}
	path := filepath.Join(t.TempDir(), "checkpoint")
	type steps struct{ Steps int64 }
	if got := called[steps](t, func(ticket int64) (string, error) { return SaveCheckpoint(ticket, number, path) }); got.Steps != 3 {
		t.Errorf("saved %+v", got)
	}
	checkpoint, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	called[trained](t, func(ticket int64) (string, error) { return TrainStep(ticket, number, asJSON(call)) })
	restored := called[steps](t, func(ticket int64) (string, error) {
		return RestoreCheckpoint(ticket, number, address(t, checkpoint), int64(len(checkpoint)))
	})
	if restored.Steps != 3 {
		t.Errorf("restored %+v", restored)
	}
	scale := make([]float32, 3)
	called[struct{}](t, func(ticket int64) (string, error) {
		return ReadState(ticket, number, asJSON(stateCall{[]string{"param.scale"}, []int64{address(t, scale)}}))
	})
	if scale[0] == 0 {
		t.Errorf("scale is %v", scale)
	}
}
