package signature_test

import (
	"slices"
	"strings"
	"testing"

	"samebits/bridge/recording"
	. "samebits/bridge/recording/recordingtest"
	"samebits/bridge/tensor"
	"samebits/parity/signature"
)

func gather(t *testing.T, recordings ...*recording.Recording) map[string]*signature.Operation {
	t.Helper()
	var set signature.Set
	for i, r := range recordings {
		if err := set.Add(string(rune('a'+i)), r); err != nil {
			t.Fatal(err)
		}
	}
	all := map[string]*signature.Operation{}
	for _, o := range set.Operations() {
		name := o.Name
		for all[name] != nil {
			name += "'"
		}
		all[name] = o
		if ps := recording.Verify(o.Alone); len(ps) != 1 || ps[0].Reason != "NO_OUTPUT" {
			t.Errorf("%s alone: %v", o.Name, ps)
		}
	}
	return all
}

// step is y = relu(x[1]) twice, z = y + y in place, a view of it, and dead ends.
func step(rows int64) *recording.Recording {
	b := New("cuda")
	x := b.Tensor(recording.Input, "images", tensor.Float32, rows, 256)
	b.Input("images", x)
	row := b.View(x, []int64{256}, []int64{1}, 256)
	b.Op("aten::select.int", Args(Value("self", x), Int("dim", 0), Int("index", 1)), row)
	y, again := b.Scratch(tensor.Float32, 256), b.Scratch(tensor.Float32, 256)
	b.Op("aten::relu", Args(Value("self", row)), y)
	b.Op("aten::relu", Args(Value("self", row)), again)
	b.Op("aten::add_.Tensor", Args(Value("self", y), Value("other", y), Int("alpha", 1)), y)
	b.Op("aten::sigmoid", Args(Value("self", y)), b.Scratch(tensor.Float32, 256))
	b.Op("aten::empty.memory_format", Args(Ints("size", 4)), b.Scratch(tensor.Float32, 4))
	b.Op("aten::relu", Args(Value("self", again)), b.Scratch(tensor.Float32, 256))
	b.Output("output", y)
	return b.R
}

func TestDistinct(t *testing.T) {
	all := gather(t, step(2), step(3))
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{"aten::add_.Tensor", "aten::empty.memory_format", "aten::relu", "aten::select.int", "aten::select.int'", "aten::sigmoid"}
	if !slices.Equal(names, want) {
		t.Fatalf("got  %q\nwant %q", names, want)
	}
	relu := all["aten::relu"] // of the second row or of a whole tensor: a multiple of 512 bytes is no difference
	if relu.Calls != 6 || !slices.Equal(relu.Recordings, []string{"a", "b"}) || relu.Module != "block" || relu.Class != signature.Computes {
		t.Errorf("%d calls in %v, module %q, %v", relu.Calls, relu.Recordings, relu.Module, relu.Class)
	}
	if len(relu.ID) != 12 || relu.Bytes() != 2*1024 || relu.Text != "aten::relu(self float32[256]) -> float32[256]" {
		t.Errorf("%s, %d bytes: %s", relu.ID, relu.Bytes(), relu.Text)
	}
	for name, class := range map[string]signature.Class{"aten::select.int": signature.View, "aten::sigmoid": signature.Unread,
		"aten::empty.memory_format": signature.Creation, "aten::add_.Tensor": signature.Computes} {
		if all[name].Class != class {
			t.Errorf("%s: %v instead of %v", name, all[name].Class, class)
		}
	}
	add := all["aten::add_.Tensor"]
	if len(add.Results) != 0 || !slices.Equal(add.Written, []int{0}) || len(add.Alone.Storages) != 1 || len(add.Alone.Values) != 1 {
		t.Errorf("add_(y, y): %+v", add.Alone)
	}
}

// What lies on one storage stays on one storage, at the same distances; what makes addresses differ makes another signature.
func TestGeometry(t *testing.T) {
	build := func(offset, gap int64, strides ...int64) *recording.Recording {
		b := New("cuda")
		x := b.Tensor(recording.Input, "images", tensor.BFloat16, 4096)
		b.Input("images", x)
		one := b.View(x, []int64{4, 8}, strides, offset)
		two := b.View(x, []int64{4, 8}, strides, offset+gap)
		y := b.Scratch(tensor.BFloat16, 4, 8)
		b.Op("aten::add.Tensor", Args(Value("self", one), Value("other", two), Int("alpha", 1)), y)
		b.Output("output", y)
		return b.R
	}
	base := gather(t, build(8, 64, 16, 1))["aten::add.Tensor"]
	v := base.Alone.Values
	if len(base.Alone.Storages) != 2 || v[0].Offset != 8 || v[1].Offset != 72 || v[0].Alignment != 16 || base.Alone.Storages[0].Bytes != 2*(72+3*16+8) {
		t.Errorf("%+v", base.Alone)
	}
	for name, c := range map[string]struct {
		other *recording.Recording
		same  bool
	}{
		"512 bytes further":  {build(8+256, 64, 16, 1), true},
		"16 bytes further":   {build(16, 64, 16, 1), false},
		"further apart":      {build(8, 128, 16, 1), false},
		"other strides":      {build(8, 64, 32, 1), false},
		"larger as a whole":  {build(8+1024, 64, 16, 1), true},
		"256 bytes further":  {build(8+128, 64, 16, 1), false},
		"columns, not rows":  {build(8, 64, 1, 16), false},
		"the very same":      {build(8, 64, 16, 1), true},
		"recorded elsewhere": {func() *recording.Recording { r := build(8, 64, 16, 1); r.Header.Family = "other"; return r }(), true},
		"of another profile": {func() *recording.Recording { r := build(8, 64, 16, 1); r.Header.Profile = "other"; return r }(), false},
		"on another device": {func() *recording.Recording {
			r := build(8, 64, 16, 1)
			r.Header.DeviceType = "cpu"
			return r
		}(), false},
	} {
		if got := gather(t, c.other)["aten::add.Tensor"].ID == base.ID; got != c.same {
			t.Errorf("%s: same is %v", name, got)
		}
	}
}

func TestWhatIsWrittenAndWhatIsDefined(t *testing.T) {
	norm := func(name string, training bool, results int) *signature.Operation {
		b := New("cuda")
		x := b.Tensor(recording.Input, "images", tensor.Float32, 2, 3, 4, 4)
		b.Input("images", x)
		args := Args(Value("input", x))
		for _, n := range []string{"weight", "bias", "running_mean", "running_var"} {
			args = append(args, Value(n, b.Tensor(recording.Buffer, n, tensor.Float32, 3)))
		}
		args = append(args, Bool("training", training), Real("momentum", 0.1))
		out := []int{b.Scratch(tensor.Float32, 2, 3, 4, 4), b.Scratch(tensor.Float32, 3), b.Scratch(tensor.Float32, 3), b.Scratch(tensor.Uint8, 16)}[:results]
		b.Op(name, args, out...)
		for i, v := range out {
			b.Output(string(rune('a'+i)), v)
		}
		return gather(t, b.R)[name]
	}
	for _, c := range []struct {
		name             string
		training         bool
		results          int
		defined, written []int
	}{
		{"aten::native_batch_norm", false, 3, []int{0}, nil},
		{"aten::native_batch_norm", true, 3, []int{0, 1, 2}, []int{3, 4}},
		{"aten::cudnn_batch_norm", true, 4, []int{0, 1, 2}, []int{3, 4}},
		{"aten::cudnn_batch_norm", false, 4, []int{0, 1, 2, 3}, nil},
	} {
		o := norm(c.name, c.training, c.results)
		var defined []int
		for _, r := range o.Results {
			defined = append(defined, r.Number)
		}
		if !slices.Equal(defined, c.defined) || !slices.Equal(o.Written, c.written) {
			t.Errorf("%s, training %v: results %v, writes %v", c.name, c.training, defined, o.Written)
		}
	}
}

func TestClasses(t *testing.T) {
	b := New("cpu")
	x := b.Tensor(recording.Input, "images", tensor.Float32, 2, 2)
	b.Input("images", x)
	turned := b.View(x, []int64{2, 2}, []int64{1, 2}, 0)
	b.Op("aten::t_", Args(Value("self", x)), turned)
	none := b.Scratch(tensor.Float32, 0)
	b.Op("aten::relu", Args(Value("self", b.View(x, []int64{0}, []int64{1}, 3))), none)
	b.Op("aten::fill_.Scalar", Args(Value("self", x), recording.Argument{Name: "value", Kind: recording.SlotOf}), x)
	b.R.Slots = []recording.Slot{{Name: "lr", DType: tensor.Float32}}
	b.Op("aten::_assert", Args(Value("self", x)))
	b.Output("output", x)
	all := gather(t, b.R)
	for name, class := range map[string]signature.Class{"aten::t_": signature.View, "aten::relu": signature.Empty,
		"aten::fill_.Scalar": signature.Slotted, "aten::_assert": signature.Empty} {
		if all[name].Class != class || strings.Contains(class.String(), "%") {
			t.Errorf("%s: %v instead of %v", name, all[name].Class, class)
		}
	}
}

// An address is aligned as its storage is, and as the offset allows. A storage may lie worse than at the largest alignment.
func TestAlignment(t *testing.T) {
	b := New("cpu")
	whole := b.Tensor(recording.Input, "images", tensor.Float32, 64)
	moved := b.Tensor(recording.Input, "mask", tensor.Float32, 64)
	behind := b.View(moved, []int64{32}, []int64{1}, 16)
	b.R.Values[moved].Alignment, b.R.Values[behind].Alignment = 16, 16
	for _, c := range []struct {
		value  int
		offset int64
		want   uint32
	}{
		{whole, 0, recording.MaxAlignment}, {whole, recording.MaxAlignment, recording.MaxAlignment}, {whole, 64, 64}, {whole, 20, 4},
		{moved, 0, 16}, {moved, 64, 16}, {moved, 24, 8},
	} {
		if got := signature.Alignment(b.R, b.R.Values[c.value].Storage, c.offset); got != c.want {
			t.Errorf("%d bytes behind storage %d: %d, not %d", c.offset, b.R.Values[c.value].Storage, got, c.want)
		}
	}
}
