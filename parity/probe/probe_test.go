package probe

import (
	"encoding/binary"
	"math"
	"testing"

	"samebits/bridge/diag"
	"samebits/bridge/digest"
	"samebits/bridge/tensor"
)

func images(d tensor.DType, sizes ...int64) tensor.Spec {
	return tensor.Spec{Name: "images", DType: d, Sizes: sizes}
}

func fill(t *testing.T, name string, spec tensor.Spec, seed uint64) []byte {
	t.Helper()
	dst := make([]byte, spec.Bytes())
	if err := Fill(name, spec, seed, dst); err != nil {
		t.Fatal(err)
	}
	return dst
}

// Every machine must make these bits: results and goldens are named by them.
func TestBitsNeverChange(t *testing.T) {
	small, big := images(tensor.Float32, 1, 3, 8, 8), images(tensor.Float32, 4, 3, 64, 48)
	for _, c := range []struct {
		name string
		spec tensor.Spec
		seed uint64
		want string
	}{
		{Noise, small, 0, "ecf21c90fbc55ad9ff877a4dd7fcaca8af9f6e21c675eefb3a2c20328393a8d5"},
		{Noise, small, 1, "7f9022cfd453919b547e443e443a15180d7043d68fb2c300707bf9c21d5e1b76"},
		{Noise, big, 0, "a6cd893fa684d82e2c6f3058ec29aaefe0c4743540473b3e12bd5cb457159a5b"},
		{Twin, small, 0, "c40cebafae55274579ee8a243a49418d410213f9152b9f814a5a4f784250c53a"},
		{Photo, small, 0, "881a870a624a61acf78ac7f93538de88a03d833e4b3d1bec5baef41369708147"},
		{Photo, big, 0, "7d70035dbf05b9fa857a48da54859acb1dc1bee8638b6330ab7c8850d760acbf"},
		{Photo, images(tensor.BFloat16, 1, 3, 8, 8), 0, "eb81c8fd8bd19ae333ca10ba225289de59c151ba2da36c1c85965ee0da84ef08"},
		{Noise, images(tensor.Float16, 1, 3, 8, 8), 0, "da800d95ed8ec606d9e151132790cc72a132f23c0bfdeb7ed7d0aaabb0f84b21"},
	} {
		if got := digest.Tensor(c.spec, fill(t, c.name, c.spec, c.seed)); got != c.want {
			t.Errorf("%s %v%v seed %d: %s", c.name, c.spec.DType, c.spec.Sizes, c.seed, got)
		}
	}
}

func TestValues(t *testing.T) {
	for _, name := range Names() {
		wide := fill(t, name, images(tensor.Float64, 2, 3, 16, 16), 3)
		single := fill(t, name, images(tensor.Float32, 2, 3, 16, 16), 3)
		sum, distinct := 0.0, map[float32]bool{}
		for i := range 2 * 3 * 16 * 16 {
			x := math.Float32frombits(binary.LittleEndian.Uint32(single[4*i:]))
			if !(x >= 0 && x <= 1) {
				t.Fatalf("%s: element %d is %v", name, i, x)
			}
			if y := math.Float64frombits(binary.LittleEndian.Uint64(wide[8*i:])); y != float64(x) {
				t.Fatalf("%s: float64 element %d is %v, float32 one %v", name, i, y, x)
			}
			sum += float64(x)
			distinct[x] = true
		}
		if mean := sum / (2 * 3 * 16 * 16); mean < 0.2 || mean > 0.7 {
			t.Errorf("%s: mean %v", name, mean)
		}
		if len(distinct) < 100 {
			t.Errorf("%s: %d distinct values", name, len(distinct))
		}
	}
}

func TestSeedsAndNamesCount(t *testing.T) {
	spec := images(tensor.Float32, 1, 3, 8, 8)
	other := spec
	other.Name = "mask"
	a := digest.Bytes(fill(t, Noise, spec, 0))
	if a == digest.Bytes(fill(t, Noise, spec, 1)) || a == digest.Bytes(fill(t, Noise, other, 0)) {
		t.Error("another seed or name gives the same noise")
	}
}

func TestTaps(t *testing.T) {
	same := taps(0, 5, 5)
	for i, tap := range same {
		if tap.near != int64(i) || tap.part != 0 {
			t.Errorf("same size: %d is %+v", i, tap)
		}
	}
	double := taps(0, 2, 4)
	for i, want := range []tap{{0, 1, 0}, {0, 1, 16384}, {0, 1, 49152}, {1, 1, 16384}} {
		if double[i] != want {
			t.Errorf("twice the size: %d is %+v, want %+v", i, double[i], want)
		}
	}
}

func TestToHalf(t *testing.T) {
	for x, want := range map[float32]uint16{
		0: 0, 1: 0x3c00, 0.5: 0x3800, 1.0 / (1 << 24): 1, 1.0 / (1 << 25): 0, 1.0 / (1 << 14): 0x400,
		0.99999994: 0x3c00, 0.50024414: 0x3800, 0.5007324: 0x3802,
	} {
		if got := toHalf(x); got != want {
			t.Errorf("%v: got %#04x, want %#04x", x, got, want)
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, c := range []struct {
		name, probe, reason string
		spec                tensor.Spec
	}{
		{"an input of whole numbers", Noise, "UNSUPPORTED_INPUT", images(tensor.Int64, 1, 3, 4, 4)},
		{"a photograph of one channel", Photo, "UNSUPPORTED_INPUT", images(tensor.Float32, 1, 1, 4, 4)},
		{"an unknown probe", "zebra", "UNKNOWN_PROBE", images(tensor.Float32, 1, 3, 4, 4)},
	} {
		ps, ok := diag.Of(Fill(c.probe, c.spec, 0, make([]byte, c.spec.Bytes())))
		if !ok || ps[0].Reason != c.reason {
			t.Errorf("%s: %v", c.name, ps)
		}
	}
	if Fill(Noise, images(tensor.Float32, 1, 3, 4, 4), 0, nil) == nil {
		t.Error("no place for the bytes: no error")
	}
}
