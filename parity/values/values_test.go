package values

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"samebits/bridge/digest"
	"samebits/bridge/recording"
	. "samebits/bridge/recording/recordingtest"
	"samebits/bridge/tensor"
)

const count = 1 << 16

func fill(kind Kind, d tensor.DType, domain Domain) []byte {
	data := make([]byte, count*d.Size())
	Fill(kind, d, domain, 7, 0, data)
	return data
}

func floats(data []byte) []float64 {
	var all []float64
	for i := 0; i < len(data); i += 4 {
		all = append(all, float64(math.Float32frombits(binary.LittleEndian.Uint32(data[i:]))))
	}
	return all
}

func share(all []float64, has func(x float64) bool) float64 {
	n := 0
	for _, x := range all {
		if has(x) {
			n++
		}
	}
	return float64(n) / float64(len(all))
}

func isNaN(x float64) bool    { return math.IsNaN(x) }
func isInf(x float64) bool    { return math.IsInf(x, 0) }
func negative(x float64) bool { return x < 0 }
func negativeZero(x float64) bool {
	return x == 0 && math.Signbit(x)
}
func denormal(x float64) bool { return x != 0 && math.Abs(x) < math.Ldexp(1, -126) }
func huge(x float64) bool     { return math.Abs(x) > 1e30 && !isInf(x) }
func half(x float64) bool     { return x == 2.5 || x == -2.5 }
func tie(x float64) bool {
	return math.Float32bits(float32(x))&0xffff == 0x8000 && !isNaN(x)
}

func TestKinds(t *testing.T) {
	ordinary, edges, sparse := floats(fill(Ordinary, tensor.Float32, Domain{})), floats(fill(Edges, tensor.Float32, Domain{})),
		floats(fill(Sparse, tensor.Float32, Domain{}))
	outside := func(x float64) bool { return !(math.Abs(x) >= 0.125 && math.Abs(x) < 16) }
	if got := share(ordinary, outside); got != 0 {
		t.Errorf("%v of ordinary numbers are not between 1/8 and 16", got)
	}
	if got := share(ordinary, negative); got < 0.48 || got > 0.52 {
		t.Errorf("%v of ordinary numbers are negative", got)
	}
	for name, has := range map[string]func(float64) bool{"NaN": isNaN, "infinite": isInf, "-0": negativeZero, "denormal": denormal,
		"huge": huge, "a half": half, "between two bfloat16": tie} {
		if got := share(edges, has); got < 0.002 {
			t.Errorf("%v of edges are %s", got, name)
		}
	}
	if got := share(sparse, outside); got < 0.0005 || got > 0.003 {
		t.Errorf("%v of sparse numbers are edges", got)
	}
	payloads := map[uint32]bool{}
	for i := range count {
		if bits := binary.LittleEndian.Uint32(fillEdges[4*i:]); bits&0x7fffffff > 0x7f800000 {
			payloads[bits] = true
		}
	}
	if len(payloads) < 8 {
		t.Errorf("%d different NaNs", len(payloads))
	}
}

var fillEdges = fill(Edges, tensor.Float32, Domain{})

// Every type has edges of its own.
func TestEveryFloat(t *testing.T) {
	for d, infinity := range map[tensor.DType]uint64{tensor.Float16: 0x7c00, tensor.BFloat16: 0x7f80, tensor.Float32: 0x7f800000,
		tensor.Float64: 0x7ff0000000000000} {
		var inf, nan, ones int
		size := int(d.Size())
		data := fill(Edges, d, Domain{})
		for i := range count {
			var word [8]byte
			copy(word[:], data[i*size:][:size])
			bits := binary.LittleEndian.Uint64(word[:]) &^ (1 << (8*size - 1))
			switch {
			case bits == infinity:
				inf++
			case bits > infinity:
				nan++
			case bits == formats[d].bias<<formats[d].mantissa:
				ones++
			}
		}
		if inf < 100 || nan < 100 || ones < 100 {
			t.Errorf("%v: %d infinities, %d NaNs, %d ones", d, inf, nan, ones)
		}
		finite := fill(Edges, d, Domain{NoNaN: true})
		for i := range count {
			var word [8]byte
			copy(word[:], finite[i*size:][:size])
			if bits := binary.LittleEndian.Uint64(word[:]) &^ (1 << (8*size - 1)); bits > infinity {
				t.Fatalf("%v: %#x is a NaN", d, bits)
			}
		}
	}
}

// Any part can be made by itself, and another seed or name gives something else.
func TestParts(t *testing.T) {
	for _, d := range []tensor.DType{tensor.Bool, tensor.Uint8, tensor.BFloat16, tensor.Float32, tensor.Int64} {
		whole := fill(Edges, d, Domain{})
		part := make([]byte, 100*d.Size())
		Fill(Edges, d, Domain{}, 7, 1000, part)
		if !bytes.Equal(part, whole[1000*d.Size():1100*d.Size()]) {
			t.Errorf("%v: a part is not what it is in the whole", d)
		}
	}
	if Seed(0, "a") == Seed(0, "b") || Seed(0, "a") == Seed(1, "a") || Seed(0, "") == 0 {
		t.Error("seeds are the same")
	}
}

func int64s(data []byte) (least, most int64, seen map[int64]int) {
	least, most, seen = math.MaxInt64, math.MinInt64, map[int64]int{}
	for i := 0; i < len(data); i += 8 {
		x := int64(binary.LittleEndian.Uint64(data[i:]))
		least, most = min(least, x), max(most, x)
		seen[x]++
	}
	return least, most, seen
}

func TestDomains(t *testing.T) {
	for _, c := range []struct {
		name        string
		kind        Kind
		domain      Domain
		least, most int64
	}{
		{"index", Edges, Domain{Index: 10}, 0, 9},
		{"index from the end", Ordinary, Domain{Index: 10, Negative: true}, -10, 9},
		{"labels", Edges, Domain{Index: 5, Also: []int64{-100}}, -100, 4},
		{"labels of ordinary values", Ordinary, Domain{Index: 5, Also: []int64{-100}}, 0, 4},
		{"range", Edges, Domain{Low: 2, High: 6}, 2, 5},
		{"anything", Ordinary, Domain{}, -100, 99},
		{"anything at the edges", Edges, Domain{}, math.MinInt64, math.MaxInt64},
	} {
		if least, most, _ := int64s(fill(c.kind, tensor.Int64, c.domain)); least != c.least || most != c.most {
			t.Errorf("%s: from %d to %d", c.name, least, most)
		}
	}
	if _, _, seen := int64s(fill(Edges, tensor.Int64, Domain{NonZero: true})); seen[0]+seen[-1] > 0 || seen[math.MaxInt64] == 0 {
		t.Errorf("divisors: %d zeros, %d times -1", seen[0], seen[-1])
	}
	for _, kind := range Kinds() {
		all := floats(fill(kind, tensor.Float32, Domain{Low: -1.125, High: 1.125}))
		if got := share(all, func(x float64) bool { return x >= -1.125 && x < 1.125 }); got != 1 {
			t.Errorf("%s: only %v are in range", kind, got)
		}
	}
	if got := share(floats(fill(Ordinary, tensor.Float32, Domain{Positive: true})), negative); got != 0 {
		t.Errorf("%v of positive numbers are negative", got)
	}
	// What 16 bits hold of a range is exact.
	half := fill(Ordinary, tensor.BFloat16, Domain{Low: -3, High: 3})
	for i := 0; i < len(half); i += 2 {
		x := float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(half[i:])) << 16))
		if x < -3 || x >= 3 || x*64 != math.Floor(x*64) {
			t.Fatalf("%v", x)
		}
	}
}

func TestDomainsOfOperations(t *testing.T) {
	b := New("cuda")
	x := b.Tensor(recording.Input, "x", tensor.Float32, 7, 5)
	index := b.Tensor(recording.Input, "index", tensor.Int64, 4)
	images := b.Tensor(recording.Input, "images", tensor.Float32, 1, 2, 6, 6)
	pooled := b.Tensor(recording.Input, "pooled", tensor.Int64, 1, 2, 3, 3)
	y := b.Scratch(tensor.Float32, 4, 5)
	for _, c := range []struct {
		name  string
		args  []recording.Argument
		value int
		want  Domain
	}{
		{"aten::embedding", Args(Value("weight", x), Value("indices", index)), index, Domain{Index: 7}},
		{"aten::gather", Args(Value("self", x), Int("dim", -1), Value("index", index)), index, Domain{Index: 5}},
		{"aten::index.Tensor", Args(Value("self", x), recording.Argument{Name: "indices", Kind: recording.List,
			Items: Args(None(""), Value("", index))}), index, Domain{Index: 5, Negative: true}},
		{"aten::index.Tensor", Args(Value("self", x), Values("indices", index, index)), index, Domain{Index: 5, Negative: true}},
		{"aten::nll_loss_forward", Args(Value("self", x), Value("target", index), Int("ignore_index", -100)), index, Domain{Index: 5, Also: []int64{-100}}},
		{"aten::remainder.Tensor", Args(Value("self", index), Value("other", index)), index, Domain{NonZero: true}},
		{"aten::native_batch_norm", Args(Value("input", images), Value("running_var", x)), x, Domain{Positive: true}},
		{"aten::log", Args(Value("self", x)), x, Domain{Positive: true}},
		{"aten::relu", Args(Value("self", x)), x, Domain{}},
	} {
		b.R.Operations = nil
		b.Op(c.name, c.args, y)
		got := Domains(b.R, &b.R.Operations[0])[c.value]
		if got.Index != c.want.Index || got.Negative != c.want.Negative || len(got.Also) != len(c.want.Also) || got.NonZero != c.want.NonZero ||
			got.Positive != c.want.Positive {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	b.R.Operations = nil
	b.Op("aten::max_pool2d_with_indices_backward", Args(Value("self", images), Ints("kernel_size", 3, 3), Ints("stride", 2, 2), Ints("padding", 1, 1),
		Value("indices", pooled)), y)
	place := Domains(b.R, &b.R.Operations[0])[pooled].Place
	if place([]int64{0, 1, 0, 0}) != 0 || place([]int64{0, 0, 2, 1}) != 3*6+1 {
		t.Error("indices lie outside of their windows")
	}
	b.R.Operations = nil
	b.Op("aten::max_pool2d_with_indices_backward", Args(Value("self", images), Ints("kernel_size", 3, 2), Ints("stride"), Ints("padding", 0, 1),
		Value("indices", pooled)), y) // without a stride it is the kernel's size
	if place := Domains(b.R, &b.R.Operations[0])[pooled].Place; place([]int64{0, 0, 1, 2}) != 3*6+3 || place([]int64{0, 0, 0, 0}) != 0 {
		t.Error("heights are taken for widths")
	}
	narrow := Of(map[int]Domain{1: {Index: 9}, 2: {Index: 4}}, []int{1, 2, 3})
	if narrow.Index != 4 {
		t.Errorf("of two domains: %+v", narrow)
	}
}

// Every machine must make these bits, and so must later versions: reports name differences by kind and seed.
func TestBitsNeverChange(t *testing.T) {
	for _, c := range []struct {
		kind   Kind
		d      tensor.DType
		domain Domain
		want   string
	}{
		{Ordinary, tensor.Float32, Domain{}, "dd85fc26612af61d"},
		{Edges, tensor.Float32, Domain{}, "6216125dce4da8d1"},
		{Sparse, tensor.BFloat16, Domain{}, "a843cc3c3c05d069"},
		{Edges, tensor.Float16, Domain{NoNaN: true}, "a9c072fadac91581"},
		{Edges, tensor.Float64, Domain{Low: -1.125, High: 1.125}, "dc21243d05b4638b"},
		{Ordinary, tensor.Float64, Domain{Positive: true}, "5755fb06a5355bf3"},
		{Edges, tensor.Int32, Domain{}, "023dac578e4be229"},
		{Ordinary, tensor.Uint8, Domain{}, "25f987010f910c9e"},
		{Sparse, tensor.Int64, Domain{Index: 7, Negative: true}, "ad14eecc7722c481"},
		{Edges, tensor.Int64, Domain{Index: 7, Also: []int64{-100}}, "a5549528d8472c71"},
		{Edges, tensor.Int64, Domain{NonZero: true}, "bcb7d6e9e3e5eedf"},
	} {
		if got := digest.Bytes(fill(c.kind, c.d, c.domain))[:16]; got != c.want {
			t.Errorf("%s %v %+v: %s", c.kind, c.d, c.domain, got)
		}
	}
	if Seed(7, "aten::relu") != 0xa890fe41ddbe08b {
		t.Errorf("seed %#x", Seed(7, "aten::relu"))
	}
}
