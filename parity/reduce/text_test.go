package reduce

import (
	"slices"
	"strings"
	"testing"

	"samebits/bridge/recording"
	. "samebits/bridge/recording/recordingtest"
	"samebits/bridge/tensor"
	"samebits/parity/compare"
)

func TestCulpritText(t *testing.T) {
	whole := Culprit{Step: 3, Operation: 17, Of: 40, Result: 1, Signature: "aten::exp(self float32[2]) -> float32[2]", Module: "block", Source: "block.py:7",
		Bits:      compare.Figures{Elements: 100, Different: 3, FirstIndex: 5, MaxULP: 3},
		Histogram: []compare.Bucket{{Count: 97}, {Least: 1, Most: 1, Count: 2}, {Least: 2, Most: 3, Count: 1}}, NaN: 4}
	alone, aside, fused := whole, whole, whole
	alone.Alone, alone.Detail, alone.Step = true, "by 1 ULP", 0
	aside.Detail = "alone it is refused: no"
	for _, c := range []struct {
		name    string
		culprit Culprit
		says    []string
	}{
		{"alone", alone, []string{"operation 17 of 40: aten::exp(self float32[2]) -> float32[2]\n  from block block.py:7\n  result 1: ",
			"it differs, too: by 1 ULP\n  kept in there\n"}},
		{"refused", aside, []string{"step 3, operation 17 of 40", "  alone it is refused: no\n"}},
		{"fused", fused, []string{"it does not differ: look at what is fused", "0 ULP         97 " + strings.Repeat("#", 40) + "\n", " 1 ULP          2 #\n",
			"2 to 3 ULP          1 #\n", "NaN on one side              4\n"}},
	} {
		var b strings.Builder
		if err := c.culprit.Text(&b, "there"); err != nil {
			t.Fatal(err)
		}
		for _, s := range c.says {
			if !strings.Contains(b.String(), s) {
				t.Errorf("%s: it lacks %q\n%s", c.name, s, b.String())
			}
		}
	}
}

func TestPartText(t *testing.T) {
	c := chain(t)
	part := Part{Step: 2, Operations: []int{3, 6}, Of: 10, Tests: 9, Recording: &recording.Recording{}, Detail: "end: by 1 ULP"}
	*part.Recording = *c.Recording
	part.Recording.Operations = c.Recording.Operations[3:5]
	for device, runs := range map[string]string{"cuda:0": "python there/run.py cuda:0\n", "host": "python there/run.py cpu\n"} {
		var b strings.Builder
		if err := part.Text(&b, "there", device); err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{"step 2, 2 of 10 operations are left after 9 tests: end: by 1 ULP\n      3  aten::exp(", "\n         from block tiny/block.py:7\n      6  aten::mul.Tensor(", runs} {
			if !strings.Contains(b.String(), s) {
				t.Errorf("%s: it lacks %q\n%s", device, s, b.String())
			}
		}
	}
}

// A name cannot end the text that the script has the recording in.
func TestScriptQuotes(t *testing.T) {
	c := chain(t)
	if _, err := Script(c.Recording, nil, nil); err != nil {
		t.Error(err)
	}
	c.Recording.Operations[0].Module = "'''"
	if _, err := Script(c.Recording, nil, nil); err == nil {
		t.Error("a name has three quotes")
	}
}

// A storage is covered by a value that is all of it, in memory order; one is made where there is none.
func TestCovering(t *testing.T) {
	b := New("cpu")
	whole := b.Tensor(recording.Input, "images", tensor.Float32, 2, 6)
	turned := b.Tensor(recording.Input, "mask", tensor.Float32, 2, 6)
	b.R.Values[turned].Strides = []int64{1, 2}
	part := b.Tensor(recording.Input, "row", tensor.Float32, 2, 6)
	b.R.Values[part].Sizes, b.R.Values[part].Strides = []int64{6}, []int64{1}
	behind := b.Tensor(recording.Input, "behind", tensor.Float32, 12)
	b.R.Values[behind].Sizes, b.R.Values[behind].Offset, b.R.Values[behind].Alignment = []int64{11}, 1, 4
	scalar := b.Tensor(recording.Input, "scalar", tensor.Float32)
	for _, c := range []struct {
		value int
		sizes []int64
	}{{whole, []int64{2, 6}}, {turned, []int64{12}}, {part, []int64{12}}, {behind, []int64{12}}, {scalar, []int64{1}}} {
		v := covering(b.R, b.R.Values[c.value].Storage)
		if !slices.Equal(v.Sizes, c.sizes) || v.Offset != 0 || !v.Contiguous() || v.Storage != b.R.Values[c.value].Storage || v.Alignment != recording.MaxAlignment {
			t.Errorf("%d: %+v", c.value, v)
		}
	}
}

// What is of the trainer, of the host and of keys is no setting of a part.
func TestPartSettings(t *testing.T) {
	all := []recording.Setting{{Key: "train.lr"}, {Key: "tf32"}, {Key: "host.threads"}, {Key: "key.texts"}, {Key: "keys"}}
	if got := settings(all); len(got) != 2 || got[0].Key != "tf32" || got[1].Key != "keys" {
		t.Errorf("%v", got)
	}
}
