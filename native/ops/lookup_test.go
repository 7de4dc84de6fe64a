package ops

import (
	"bytes"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"

	"samebits/bridge/diag"
	"samebits/bridge/tensor"
)

// An index that is out of range stops the step, and nothing outside of the tensor is read. On a GPU it is an assertion, which
// takes the context from everything in the process: it fails in a process of its own.
func TestIndexOutOfRange(t *testing.T) {
	if os.Getenv("SAMEBITS_TEST_DEVICE") != "" {
		indexOutOfRangeOnGPU(t)
		return
	}
	for _, bad := range []uint64{20, 1 << 40, math.MaxUint64, 1 << 63} {
		b := newBench(t)
		x, index := b.tensor(tensor.Float32, []int64{20, 4}, nil), b.tensor(tensor.Int64, []int64{3, 4}, nil)
		out := b.tensor(tensor.Float32, []int64{3, 4}, nil)
		b.setBits(index, []uint64{1, 2, 19, bad, 0})
		err := b.try(operation("aten::gather", args("self", x, "dim", int64(0), "index", index, "sparse_grad", false), results(out)))
		if err == nil || !strings.Contains(err.Error(), "an index is out of range") || !strings.Contains(err.Error(), "index1_4") {
			t.Errorf("index %d: %v", int64(bad), err)
		}
	}
	// Where negative ones count from the end, the end is the limit.
	b := newBench(t)
	x, index := b.tensor(tensor.Float32, []int64{5, 6}, nil), b.tensor(tensor.Int64, []int64{2}, nil)
	out := b.tensor(tensor.Float32, []int64{2, 6}, nil)
	op := operation("aten::index.Tensor", indexArgs(x, index), results(out))
	last := int64(-5)
	b.setBits(index, []uint64{4, uint64(last)})
	if err := b.try(op); err != nil {
		t.Errorf("index %d of 5: %v", last, err)
	}
	b.setBits(index, []uint64{4, uint64(last - 1)})
	if b.try(op) == nil {
		t.Errorf("index %d of 5 passed", last-1)
	}
}

func indexOutOfRangeOnGPU(t *testing.T) {
	if os.Getenv("SAMEBITS_TEST_LOST") == "" {
		c := exec.Command(os.Args[0], "-test.v", "-test.run", "^TestIndexOutOfRange$")
		c.Env = append(os.Environ(), "SAMEBITS_TEST_LOST=1")
		if out, err := c.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS")) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	b := newBench(t)
	x, index := b.tensor(tensor.Float32, []int64{20, 4}, nil), b.tensor(tensor.Int64, []int64{4}, nil)
	out := b.tensor(tensor.Float32, []int64{4, 4}, nil)
	b.setBits(index, []uint64{1, 2, 19, 20})
	err := b.try(operation("aten::index_select", args("self", x, "dim", int64(0), "index", index), results(out)))
	problems, _ := diag.Of(err)
	if len(problems) != 1 || problems[0].Reason != "DEVICE_LOST" || !strings.Contains(problems[0].Detail, "an index is out of range") {
		t.Errorf("%v", err)
	}
}
