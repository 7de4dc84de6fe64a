package probe

import (
	"encoding/binary"
	"testing"

	"samebits/bridge/diag"
	"samebits/bridge/digest"
	"samebits/bridge/tensor"
)

var targets = tensor.Spec{Name: "targets", DType: tensor.Int64, Sizes: []int64{64}}

func batch(t *testing.T, number int, spec tensor.Spec, seed uint64) []byte {
	t.Helper()
	dst := make([]byte, spec.Bytes())
	if err := FillBatch(number, spec, seed, 10, dst); err != nil {
		t.Fatal(err)
	}
	return dst
}

// Every machine must make these bits: results are named by them.
func TestBatchesNeverChange(t *testing.T) {
	small := images(tensor.Float32, 4, 3, 8, 8)
	for _, c := range []struct {
		number int
		spec   tensor.Spec
		want   string
	}{
		{1, small, "87832e9fb119426c8e95cbb206aff99ca4ea838506b2653f4090cb008bb9a4ff"},
		{2, small, "8cb5d7b798e5b4d299435be356d43bf35592d521c0853ff2638a2b75e21059e6"},
		{1, targets, "278f23144d8a5daf30bf97fd2ba19744902634d7012fe23e75d9b412d5a12f97"},
	} {
		if got := digest.Tensor(c.spec, batch(t, c.number, c.spec, 7)); got != c.want {
			t.Errorf("batch %d of %s: %s", c.number, c.spec.Name, got)
		}
	}
}

// Batches, and the images of the first, differ from each other.
func TestBatchesDiffer(t *testing.T) {
	small := images(tensor.Float32, 6, 3, 8, 8)
	seen := map[string]string{}
	note := func(what string, data []byte) {
		d := digest.Bytes(data)
		if seen[d] != "" {
			t.Errorf("%s is %s", what, seen[d])
		}
		seen[d] = what
	}
	for _, seed := range []uint64{0, 1} {
		for number := range 4 {
			data := batch(t, number+1, small, seed)
			for image := range 6 {
				note("an image", data[image*768:(image+1)*768])
			}
			note("targets", batch(t, number+1, targets, seed))
		}
	}
}

func TestTargetsAreClasses(t *testing.T) {
	seen := map[uint64]bool{}
	data := batch(t, 3, targets, 0)
	for i := range 64 {
		seen[binary.LittleEndian.Uint64(data[8*i:])] = true
	}
	for class := range seen {
		if class >= 10 {
			t.Errorf("class %d of 10", class)
		}
	}
	if len(seen) < 8 {
		t.Errorf("64 targets have only %d classes", len(seen))
	}
}

// A crop of a part is that part of the picture.
func TestCrop(t *testing.T) {
	p := &picture{4, 4, make([]byte, 48)}
	for i := range p.pixels {
		p.pixels[i] = byte(i)
	}
	got := make([]float32, 12)
	p.resize(images(tensor.Float32, 1, 3, 2, 2), 0, area{1, 2, 2, 2}, false, func(i int64, x float32) { got[i] = x * 255 })
	for i, want := range []float32{27, 30, 39, 42, 28, 31, 40, 43, 29, 32, 41, 44} {
		if got[i] < want-0.01 || got[i] > want+0.01 {
			t.Errorf("value %d is %v instead of %v", i, got[i], want)
		}
	}
}

func TestBatchRefuses(t *testing.T) {
	for name, spec := range map[string]tensor.Spec{
		"whole images": {Name: "images", DType: tensor.Uint8, Sizes: []int64{1, 3, 4, 4}},
		"one channel":  images(tensor.Float32, 1, 1, 4, 4),
	} {
		ps, ok := diag.Of(FillBatch(2, spec, 0, 10, make([]byte, spec.Bytes())))
		if !ok || ps[0].Reason != "UNSUPPORTED_INPUT" {
			t.Errorf("%s: %v", name, ps)
		}
	}
	if FillBatch(1, targets, 0, 10, nil) == nil {
		t.Error("no place for the bytes: no error")
	}
}
