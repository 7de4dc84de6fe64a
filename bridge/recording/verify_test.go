package recording_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/bridge/recording/recordingtest"
	"samebits/bridge/tensor"
)

// found lists problems as "path: REASON".
func found(ps diag.Problems) []string {
	var out []string
	for _, p := range ps {
		out = append(out, p.Path+": "+p.Reason)
	}
	return out
}

func TestSoundRecordings(t *testing.T) {
	spare := recordingtest.New("cpu")
	x := spare.Tensor(recording.Input, "images", tensor.Int64)
	spare.Output("output", x)
	expanded := recordingtest.ConvBNReLU()
	expanded.Values[4].Sizes, expanded.Values[4].Strides = []int64{1000, 4}, []int64{0, 1}
	beyond := recordingtest.ConvBNReLU() // an empty value may begin anywhere: torch.empty(0, 4).select(1, 3)
	beyond.Values[8].Offset = 3
	promised := recordingtest.ConvBNReLU() // the CPU's allocator promises 64, whatever the address was
	promised.Values[14].Sizes, promised.Values[14].Offset, promised.Values[14].Alignment = []int64{1, 240}, 16, 64
	promised.Values[13].Alignment = 64
	most := recordingtest.ConvBNReLU()
	text := strings.Repeat("x", 4096)
	most.Header.Family, most.Header.Seasoning, most.Header.ImgSize, most.Header.Batch = text[:64], text, 65536, 65536
	most.Header.Environment = []recording.Setting{{Key: text[:512], Value: text}}
	most.Operations[0].Name, most.Operations[1].Module, most.Operations[2].Source = "a::"+text[:509], text, text
	most.Operations[4].Arguments[2] = recording.Argument{Name: text[:512], Kind: recording.Text, Text: text}
	most.Operations[5].Arguments = append(most.Operations[5].Arguments, recording.Argument{Name: "nested", Kind: recording.List,
		Items: []recording.Argument{{Kind: recording.List, Items: []recording.Argument{{Kind: recording.List, Items: []recording.Argument{{Kind: recording.List,
			Items: []recording.Argument{recordingtest.Int("", 1)}}}}}}}})
	most.Values[4].Sizes, most.Values[4].Strides = []int64{recording.MaxTotalBytes / 4}, []int64{0}
	for name, r := range map[string]*recording.Recording{
		"at all limits": most,
		"promised":      promised, "step": recordingtest.ConvBNReLU(), "every kind": everyKind(), "input is output": spare.R, "expanded": expanded, "empty": beyond,
	} {
		if ps := recording.Verify(r); len(ps) > 0 {
			t.Errorf("%s: %v", name, ps)
		}
	}
}

func TestVerifyFinds(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*recording.Recording)
		want  []string
	}{
		{"header", func(r *recording.Recording) {
			r.Header.Family, r.Header.Size, r.Header.Mode, r.Header.Precision, r.Header.DeviceType = "", "a/b", "eval", "fp8", "tpu"
			r.Header.ImgSize, r.Header.Batch, r.Header.Seasoning = 0, -1, "\x1b[2J"
		}, []string{"header.family: BAD_HEADER", "header.size: BAD_HEADER", "header.mode: BAD_HEADER", "header.precision: BAD_HEADER",
			"header.device_type: BAD_HEADER", "header.imgsz: BAD_HEADER", "header.batch: BAD_HEADER", "header.seasoning: BAD_HEADER"}},
		{"settings out of order", func(r *recording.Recording) { slices.Reverse(r.Header.ProfileSettings) },
			[]string{"header.profile_settings[1]: BAD_HEADER"}},
		{"setting twice", func(r *recording.Recording) {
			r.Header.Environment = append(r.Header.Environment, r.Header.Environment[0])
		}, []string{"header.environment[1]: BAD_HEADER"}},
		{"storage without role, dtype or size", func(r *recording.Recording) { r.Storages[2] = recording.Storage{Bytes: -1} },
			[]string{"storages[2].bytes: BAD_SIZE", "storages[2].dtype: UNKNOWN_DTYPE", "storages[2].role: BAD_ROLE", "values[2]: OUT_OF_BOUNDS"}},
		{"half an element", func(r *recording.Recording) { r.Storages[2].Bytes += 2 }, []string{"storages[2].bytes: BAD_SIZE"}},
		{"more memory than there is", func(r *recording.Recording) { r.Storages[2].Bytes = recording.MaxTotalBytes },
			[]string{"storages[2].bytes: TOO_LARGE"}},
		{"names", func(r *recording.Recording) { r.Storages[1].Name, r.Storages[3].Name = "", "bn.bias" },
			[]string{"storages[1].name: BAD_NAME", "storages[4].name: DUPLICATE_NAME"}},
		{"storage index", func(r *recording.Recording) { r.Values[2].Storage = 99 }, []string{"values[2].storage: BAD_INDEX"}},
		{"negative storage index", func(r *recording.Recording) { r.Values[2].Storage = -1 }, []string{"values[2].storage: BAD_INDEX"}},
		{"one element too many", func(r *recording.Recording) { r.Values[0].Offset, r.Values[0].Alignment = 1, 4 },
			[]string{"values[0]: OUT_OF_BOUNDS"}},
		{"last element by stride", func(r *recording.Recording) { r.Values[0].Strides[1] = 65 }, []string{"values[0]: OUT_OF_BOUNDS"}},
		{"sizes that overflow to few", func(r *recording.Recording) {
			r.Values[0].Sizes, r.Values[0].Strides = []int64{1 << 32, 1 << 32}, []int64{0, 0}
		}, []string{"values[0]: OUT_OF_BOUNDS"}},
		{"strides that overflow to few", func(r *recording.Recording) {
			r.Values[0].Sizes, r.Values[0].Strides = []int64{3, 2}, []int64{math.MaxInt64/2 + 1, 1}
		}, []string{"values[0]: OUT_OF_BOUNDS"}},
		{"offset that overflows in bytes", func(r *recording.Recording) { r.Values[0].Offset = math.MaxInt64 / 4 }, []string{"values[0]: OUT_OF_BOUNDS"}},
		{"negative", func(r *recording.Recording) {
			r.Values[0].Sizes[0], r.Values[1].Strides[0], r.Values[2].Offset = -1, -1, -1
		},
			[]string{"values[0]: BAD_SHAPE", "values[1]: BAD_SHAPE", "values[2]: BAD_SHAPE"}},
		{"sizes without strides", func(r *recording.Recording) { r.Values[0].Strides = nil }, []string{"values[0]: BAD_SHAPE"}},
		{"too many dimensions", func(r *recording.Recording) {
			r.Values[0].Sizes, r.Values[0].Strides = slices.Repeat([]int64{1}, 65), slices.Repeat([]int64{1}, 65)
		}, []string{"values[0]: BAD_SHAPE"}},
		{"alignment", func(r *recording.Recording) {
			r.Values[0].Alignment, r.Values[1].Alignment, r.Values[2].Alignment = 0, 48, 1024
		},
			[]string{"values[0].alignment: BAD_ALIGNMENT", "values[1].alignment: BAD_ALIGNMENT", "values[2].alignment: BAD_ALIGNMENT"}},
		{"alignment below the element", func(r *recording.Recording) { r.Values[0].Alignment = 2 }, []string{"values[0].alignment: BAD_ALIGNMENT"}},
		{"alignments that contradict", func(r *recording.Recording) {
			r.Values[14].Sizes, r.Values[14].Offset = []int64{1, 255}, 1
		}, []string{"values[14].alignment: BAD_ALIGNMENT"}},
		{"dtypes", func(r *recording.Recording) {
			r.Values[0].DType, r.Slots = tensor.Invalid, []recording.Slot{{Name: "lr"}}
		},
			[]string{"values[0].dtype: UNKNOWN_DTYPE", "slots[0].dtype: UNKNOWN_DTYPE"}},
		{"slots", func(r *recording.Recording) {
			r.Slots = []recording.Slot{{Name: "lr", DType: tensor.Float32}, {Name: "lr", DType: tensor.Float32}}
			r.Operations[4].Arguments[2] = recording.Argument{Name: "alpha", Kind: recording.SlotOf, Slot: 2}
		}, []string{"slots[1].name: DUPLICATE_NAME", "operations[4].arguments[2].slot: BAD_INDEX"}},
		{"names of operations", func(r *recording.Recording) {
			for i, name := range []string{"", "relu", "aten::", "aten::add.", "::add"} {
				r.Operations[i].Name = name
			}
			r.Operations[5].Module = "a\nb"
		}, []string{"operations[0].name: BAD_NAME", "operations[1].name: BAD_NAME", "operations[2].name: BAD_NAME",
			"operations[3].name: BAD_NAME", "operations[4].name: BAD_NAME", "operations[5]: BAD_NAME"}},
		{"arguments", func(r *recording.Recording) {
			r.Operations[0].Arguments[0].Value = 99
			r.Operations[0].Arguments[1].Name = "input"
			r.Operations[0].Arguments[2] = recording.Argument{Name: "layout", Kind: recording.Layout, Text: "sparse_coo"}
			r.Operations[0].Arguments[3].Items[1] = recording.Argument{Kind: recording.DTypeOf}
			r.Operations[0].Arguments[4].Kind = 99
		}, []string{"operations[0].arguments[0].value: BAD_INDEX", "operations[0].arguments[1].name: DUPLICATE_NAME",
			"operations[0].arguments[2].layout: BAD_ARGUMENT", "operations[0].arguments[3].list[1].dtype: UNKNOWN_DTYPE",
			"operations[0].arguments[4]: BAD_ARGUMENT"}},
		{"nesting", func(r *recording.Recording) {
			a := recordingtest.Int("", 1)
			for range 5 {
				a = recording.Argument{Name: "alpha", Kind: recording.List, Items: []recording.Argument{a}}
			}
			r.Operations[4].Arguments[2] = a
		}, []string{"operations[4].arguments[2].list[0].list[0].list[0].list[0]: TOO_DEEP"}},
		{"nesting of results", func(r *recording.Recording) {
			a := r.Operations[4].Results[0]
			for range 5 {
				a = recording.Argument{Kind: recording.List, Items: []recording.Argument{a}}
			}
			r.Operations[4].Results[0] = a
		}, []string{"operations[4].results[0].list[0].list[0].list[0].list[0]: TOO_DEEP", "operations[5].arguments[0].value: NEVER_WRITTEN"}},
		{"names of operations", func(r *recording.Recording) {
			for i, name := range []string{"a:", "a::", "::b", "a::b.", "a::b.c.d", "a::b::c"} {
				r.Operations[i].Name = name
			}
		}, []string{"operations[0].name: BAD_NAME", "operations[1].name: BAD_NAME", "operations[2].name: BAD_NAME",
			"operations[3].name: BAD_NAME", "operations[4].name: BAD_NAME", "operations[5].name: BAD_NAME"}},
		{"long texts", func(r *recording.Recording) {
			text := strings.Repeat("x", 4097)
			r.Header.Family, r.Header.Seasoning, r.Header.ImgSize, r.Header.Batch = text[:65], text, 65537, 65537
			r.Header.Environment = []recording.Setting{{Key: "", Value: "1"}, {Key: "a", Value: text}, {Key: text[:513], Value: "1"}}
			r.Operations[0].Name, r.Operations[1].Module, r.Operations[2].Source = "a::"+text[:510], text, text
			r.Operations[3].Arguments[0].Name = text[:513]
			r.Operations[3].Arguments[4] = recording.Argument{Name: "text", Kind: recording.Text, Text: text}
			r.Operations[4].Arguments[2] = recording.Argument{Name: "text", Kind: recording.Text, Text: "\x1b[2J"}
			r.Outputs[0].Name = text[:513]
		}, []string{"header.family: BAD_HEADER", "header.imgsz: BAD_HEADER", "header.batch: BAD_HEADER", "header.seasoning: BAD_HEADER",
			"header.environment[0]: BAD_HEADER", "header.environment[1]: BAD_HEADER", "header.environment[2]: BAD_HEADER",
			"operations[0].name: BAD_NAME", "operations[1]: BAD_NAME", "operations[2]: BAD_NAME", "operations[3].arguments[0].name: BAD_NAME",
			"operations[3].arguments[4].text: BAD_ARGUMENT", "operations[4].arguments[2].text: BAD_ARGUMENT", "outputs[0].name: BAD_NAME"}},
		{"expanded beyond what there is", func(r *recording.Recording) {
			r.Values[0].Sizes, r.Values[0].Strides = []int64{recording.MaxTotalBytes/4 + 1}, []int64{0}
		}, []string{"values[0]: OUT_OF_BOUNDS"}},
		{"all storages together", func(r *recording.Recording) {
			r.Storages[2].Bytes, r.Storages[3].Bytes = recording.MaxTotalBytes/2, recording.MaxTotalBytes/2
		}, []string{"storages[3].bytes: TOO_LARGE"}},
		{"slots", func(r *recording.Recording) {
			r.Slots = []recording.Slot{{Name: "lr", DType: tensor.Float64}, {Name: "lr", DType: tensor.Float64}, {Name: "wd"}}
			r.Operations[4].Arguments[2] = recording.Argument{Name: "alpha", Kind: recording.SlotOf, Slot: 3}
			r.Operations[5].Arguments[1] = recording.Argument{Name: "size", Kind: recording.SlotOf, Slot: -1}
		}, []string{"slots[1].name: DUPLICATE_NAME", "slots[2].dtype: UNKNOWN_DTYPE", "operations[4].arguments[2].slot: BAD_INDEX",
			"operations[5].arguments[1].slot: BAD_INDEX"}},
		{"results", func(r *recording.Recording) {
			r.Operations[4].Results[0] = recordingtest.Int("", 1)
			r.Operations[5].Results[0].Value = -1
		}, []string{"operations[4].results[0]: BAD_RESULT", "operations[5].arguments[0].value: NEVER_WRITTEN",
			"operations[5].results[0].value: BAD_INDEX", "outputs[0].value: NEVER_WRITTEN", "outputs[1].value: NEVER_WRITTEN"}},
		{"read before written", func(r *recording.Recording) {
			r.Operations[1], r.Operations[3] = r.Operations[3], r.Operations[1]
		}, []string{"operations[2].arguments[0].value: NEVER_WRITTEN"}},
		{"inputs and outputs", func(r *recording.Recording) {
			r.Inputs = append(r.Inputs, recording.Named{Name: "images", Value: 99}, recording.Named{Name: "weight", Value: 1})
			r.Outputs[0].Name, r.Outputs[1].Name = "", "a"
			r.Outputs = append(r.Outputs, recording.Named{Name: "a", Value: 0})
		}, []string{"inputs[1].name: DUPLICATE_NAME", "inputs[1].value: BAD_INDEX", "inputs[2].value: BAD_ROLE",
			"outputs[0].name: BAD_NAME", "outputs[2].name: DUPLICATE_NAME"}},
		{"no output", func(r *recording.Recording) { r.Outputs = nil }, []string{"outputs: NO_OUTPUT"}},
		{"too many operations", func(r *recording.Recording) { r.Operations = make([]recording.Operation, recording.MaxOperations+1) },
			[]string{"operations: TOO_LARGE"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := recordingtest.ConvBNReLU()
			c.spoil(r)
			ps := recording.Verify(r)
			if got := found(ps); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q\n%v", got, c.want, ps)
			}
		})
	}
}

// Names have the characters that they may have, and no others.
func TestCharacters(t *testing.T) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
	for c := range 256 {
		r := recordingtest.ConvBNReLU()
		r.Header.Size, r.Operations[0].Name = "a"+string([]byte{byte(c)}), "a::b"+string([]byte{byte(c), 'd'})
		var want []string
		if !strings.ContainsRune(letters+".+-@", rune(c)) {
			want = append(want, "header.size: BAD_HEADER")
		}
		if !strings.ContainsRune(letters+".", rune(c)) {
			want = append(want, "operations[0].name: BAD_NAME")
		}
		if got := found(recording.Verify(r)); !slices.Equal(got, want) {
			t.Errorf("%q: %q instead of %q", byte(c), got, want)
		}
	}
}

func TestProblemsSayWhatToLookAt(t *testing.T) {
	r := recordingtest.ConvBNReLU()
	r.Values[0].Offset, r.Values[0].Alignment = 1, 4
	text := recording.Verify(r).Error()
	for _, want := range []string{"float32[1 3 8 8]", "offset 1", "768 bytes", "storages[0]"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q does not name %q", text, want)
		}
	}
}
