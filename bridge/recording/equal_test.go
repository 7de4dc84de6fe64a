package recording_test

import (
	"slices"
	"testing"

	"samebits/bridge/recording"
	"samebits/bridge/recording/recordingtest"
	"samebits/bridge/tensor"
)

func TestEqualFinds(t *testing.T) {
	const where = " (aten::add.Tensor in block at tiny/block.py:7)"
	for _, c := range []struct {
		name  string
		spoil func(*recording.Recording)
		want  []string
	}{
		{"nothing", func(r *recording.Recording) { r.Header.Seed, r.Header.Environment = 2, nil }, nil},
		{"alignment on the CPU", func(r *recording.Recording) { r.Values[0].Alignment = 64 }, nil},
		{"scalar", func(r *recording.Recording) { r.Operations[4].Arguments[2].Int = 2 },
			[]string{"operations[4].arguments[2]: alpha 1 and alpha 2" + where}},
		{"integer and real of one value", func(r *recording.Recording) { r.Operations[4].Arguments[2] = recordingtest.Real("alpha", 1) },
			[]string{"operations[4].arguments[2]: alpha 1 and alpha 1.0" + where}},
		{"scalar in a list", func(r *recording.Recording) { r.Operations[5].Arguments[1].Items[0].Int = 2 },
			[]string{"operations[5].arguments[1].list[0]: 1 and 2 (aten::view in block at tiny/block.py:7)"}},
		{"length of a list", func(r *recording.Recording) { r.Operations[5].Arguments[1] = recordingtest.Ints("size", 256) },
			[]string{"operations[5].arguments[1]: size [1,256] and size [256] (aten::view in block at tiny/block.py:7)"}},
		{"another operand", func(r *recording.Recording) { r.Operations[4].Arguments[1].Value = 7 },
			[]string{"operations[4].arguments[1]: value 12 on storage 12, float32[1,4,8,8], aligned to 512 and " +
				"value 7 on storage 7, float32[1,4,8,8], aligned to 512" + where}},
		{"one more operation", func(r *recording.Recording) { r.Operations = append(r.Operations, r.Operations[2]) },
			[]string{"operations[6]: the end and aten::relu_(self float32[1,4,8,8]) -> float32[1,4,8,8] in block at tiny/block.py:7"}},
		{"a branch", func(r *recording.Recording) { r.Operations = slices.Delete(r.Operations, 2, 3) },
			[]string{"operations[2]: aten::relu_(self float32[1,4,8,8]) -> float32[1,4,8,8] in block at tiny/block.py:7 and " +
				"aten::convolution(input float32[1,3,8,8], weight float32[4,3,1,1], bias float32[4], stride [1,1], padding [0,0], " +
				"dilation [1,1], transposed false, output_padding [0,0], groups 1) -> float32[1,4,8,8] in block at tiny/block.py:7"}},
		{"header", func(r *recording.Recording) { r.Header.Precision, r.Header.Batch = "bf16", 2 },
			[]string{`header.precision: "fp32" and "bf16"`, "header.batch: 1 and 2"}},
		{"outputs", func(r *recording.Recording) { r.Outputs[0].Name = "x" }, []string{`outputs[0].name: "features" and "x"`}},
		{"storages", func(r *recording.Recording) { r.Storages[3].Role = recording.Constant },
			[]string{`storages[3]: parameter "bn.weight" of 16 bytes, float32 and constant "bn.weight" of 16 bytes, float32`}},
		{"all of the header", func(r *recording.Recording) {
			h := &r.Header
			h.Family, h.Size, h.Task, h.Mode, h.Profile, h.DeviceType, h.ImgSize = "f", "s", "k", "train", "exact-2", "cuda", 9
			h.ProfileSettings = []recording.Setting{{Key: "tf32", Value: "true"}}
		}, []string{`header.family: "tiny" and "f"`, `header.size: "t" and "s"`, `header.task: "classify" and "k"`, `header.mode: "predict" and "train"`,
			`header.profile: "exact-1" and "exact-2"`, `header.device_type: "cpu" and "cuda"`, "header.imgsz: 8 and 9",
			"header.profile_settings: [{cudnn.benchmark false} {tf32 false}] and [{tf32 true}]"}},
		{"one output less", func(r *recording.Recording) { r.Outputs = r.Outputs[:1] }, []string{"outputs: 2 values and 1 values"}},
		{"one input more", func(r *recording.Recording) { r.Inputs = append(r.Inputs, r.Inputs[0]) }, []string{"inputs: 1 values and 2 values"}},
		{"one storage more", func(r *recording.Recording) { r.Storages = append(r.Storages, recording.Storage{}) }, []string{"storages: 14 storages and 15 storages"}},
		{"a value that is not there", func(r *recording.Recording) { r.Outputs[0].Value = 99 }, []string{"outputs[0].value: 13 and 99"}},
		{"slots", func(r *recording.Recording) { r.Slots = []recording.Slot{{Name: "lr", DType: tensor.Float32}} },
			[]string{"slots: [] and [{lr float32}]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := recordingtest.ConvBNReLU(), recordingtest.ConvBNReLU()
			c.spoil(b)
			var got []string
			for _, d := range recording.Equal(a, b) {
				got = append(got, d.String())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if back := recording.Equal(b, a); len(back) != len(c.want) {
				t.Errorf("the other way round: %v", back)
			}
		})
	}
}

func TestAlignmentCountsOnCUDA(t *testing.T) {
	a, b := recordingtest.ConvBNReLU(), recordingtest.ConvBNReLU()
	a.Header.DeviceType, b.Header.DeviceType = "cuda", "cuda"
	b.Values[0].Alignment = 64
	ds := recording.Equal(a, b)
	// Both convolutions read the input, which is also named as one.
	if len(ds) != 3 || ds[0].Path != "operations[0].arguments[0]" {
		t.Errorf("differences: %v", ds)
	}
}

func TestEqualIsBounded(t *testing.T) {
	a, b := recordingtest.ConvBNReLU(), recordingtest.ConvBNReLU()
	for _, r := range []*recording.Recording{a, b} {
		r.Operations = slices.Repeat(r.Operations[4:5], 1000)
	}
	b.Values[13].Storage = 7
	if n := len(recording.Equal(a, b)); n != 100 {
		t.Errorf("%d differences", n)
	}
}

func TestSignature(t *testing.T) {
	r := everyKind()
	want := `mine::odd.out(none none, self bfloat16[2,3], flag true, n -3, negative_zero -0.0, text "bilinear", ` +
		`tensors [bfloat16[2,3],bfloat16[2,3]], empty [], dtype float32, memory_format channels_last, layout strided, device cuda, ` +
		`lr slot lr) -> float32[3,2], float32[2]:[2]+1, [float32[3,2],float32[2]:[2]+1], none`
	if got := r.Signature(&r.Operations[0]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// What was not verified is written, too.
func TestSignatureOfUnsoundOperations(t *testing.T) {
	r := everyKind()
	o := &recording.Operation{Name: "mine::odd", Arguments: []recording.Argument{
		recordingtest.Value("a", 99), recordingtest.Value("b", -1), {Name: "c", Kind: recording.SlotOf, Slot: 1}, {Name: "d", Kind: recording.SlotOf, Slot: -1}, {Name: "e", Kind: 99},
	}}
	if got, want := r.Signature(o), "mine::odd(a value 99, b value -1, c slot 1, d slot -1, e kind(99)) -> nothing"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	v := &recording.Value{DType: tensor.Float32, Sizes: []int64{2, 3}, Strides: []int64{1}}
	if got, want := v.String(), "float32[2,3]:[1]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if text := recording.Role(99).String(); text != "role(99)" {
		t.Error(text)
	}
}

func TestArgumentsByName(t *testing.T) {
	o := &everyKind().Operations[0]
	if a, ok := o.Arg("n"); !ok || a.Int != -3 {
		t.Errorf("%+v, %v", a, ok)
	}
	if a, ok := o.Arg("m"); ok || a != nil {
		t.Errorf("one that is not there: %+v", a)
	}
}

// Of a value everything counts, and of both recordings what is theirs is said first or second.
func TestEqualValues(t *testing.T) {
	const at = "operations[4].results[0]: value 13 on storage 13, float32[1,4,8,8], aligned to 512 and "
	for _, c := range []struct {
		spoil func(r *recording.Recording, v *recording.Value)
		want  string
	}{
		{func(_ *recording.Recording, v *recording.Value) { v.Storage = 12 }, at + "value 13 on storage 12, float32[1,4,8,8], aligned to 512"},
		{func(_ *recording.Recording, v *recording.Value) { v.DType = tensor.Int32 }, at + "value 13 on storage 13, int32[1,4,8,8], aligned to 512"},
		{func(_ *recording.Recording, v *recording.Value) { v.Offset = 1 }, at + "value 13 on storage 13, float32[1,4,8,8]+1, aligned to 512"},
		{func(_ *recording.Recording, v *recording.Value) { v.Sizes = []int64{4, 1, 8, 8} },
			at + "value 13 on storage 13, float32[4,1,8,8]:[256,64,8,1], aligned to 512"},
		{func(_ *recording.Recording, v *recording.Value) { v.Strides = []int64{256, 1, 32, 4} },
			at + "value 13 on storage 13, float32[1,4,8,8]:[256,1,32,4], aligned to 512"},
		{func(r *recording.Recording, _ *recording.Value) { r.Operations[4].Results[0].Value = 12 },
			at + "value 12 on storage 12, float32[1,4,8,8], aligned to 512"},
		{func(r *recording.Recording, _ *recording.Value) { r.Operations[4].Results[0].Value = len(r.Values) }, "operations[4].results[0]: 13 and 15"},
	} {
		a, b := recordingtest.ConvBNReLU(), recordingtest.ConvBNReLU()
		c.spoil(b, &b.Values[13])
		differences := recording.Equal(a, b)
		i := slices.IndexFunc(differences, func(d recording.Difference) bool { return d.Path == "operations[4].results[0]" })
		if i < 0 {
			t.Errorf("nothing instead of %s", c.want)
			continue
		}
		d := differences[i]
		if d.Where = ""; d.String() != c.want {
			t.Errorf("got  %s\nwant %s", d, c.want)
		}
	}
}
