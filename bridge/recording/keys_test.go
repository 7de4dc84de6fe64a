package recording_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/bridge/recording/recordingtest"
	"samebits/bridge/tensor"
)

func TestKeys(t *testing.T) {
	r := recordingtest.ConvBNReLU()
	r.Header.ProfileSettings = append(r.Header.ProfileSettings, recording.Setting{Key: "key.grids", Value: "8 -3 16 9223372036854775807"})
	grids := tensor.Spec{Name: "grids", DType: tensor.Int64, Sizes: []int64{2, 2}}
	data := make([]byte, grids.Bytes())
	if err := r.PutKey(grids, data); err != nil {
		t.Fatal(err)
	}
	if err := r.CheckKey(grids, data); err != nil {
		t.Errorf("its own key: %v", err)
	}
	data[0]++
	ps, _ := diag.Of(r.CheckKey(grids, data))
	if len(ps) != 1 || ps[0].Reason != recording.OtherKey || ps[0].Path != "inputs/grids" || !strings.Contains(ps[0].Summary, "9 -3 16") {
		t.Errorf("another key: %v", ps)
	}
	data[0]--
	if n := testing.AllocsPerRun(10, func() { _ = r.CheckKey(grids, data) }); n != 0 {
		t.Errorf("a key that fits takes memory %v times", n)
	}
	images := tensor.Spec{Name: "images", DType: tensor.Float32, Sizes: []int64{1}}
	if err := r.CheckKey(images, make([]byte, 4)); err != nil {
		t.Errorf("an input that is no key: %v", err)
	}
}

// Numbers are compared one by one, and none is taken for the beginning of another.
func TestHoldsFor(t *testing.T) {
	r := recordingtest.ConvBNReLU()
	r.Header.ProfileSettings = append(r.Header.ProfileSettings, recording.Setting{Key: "key.grids", Value: "12 -3"})
	for _, c := range []struct {
		numbers []int64
		want    bool
	}{
		{[]int64{12, -3}, true}, {[]int64{1, 2}, false}, {[]int64{1, -3}, false}, {[]int64{12}, false}, {[]int64{12, -3, 0}, false},
		{[]int64{12, -34}, false}, {[]int64{12, 3}, false}, {nil, false},
	} {
		var data []byte
		for _, n := range c.numbers {
			data = binary.LittleEndian.AppendUint64(data, uint64(n))
		}
		spec := tensor.Spec{Name: "grids", DType: tensor.Int64, Sizes: []int64{int64(len(c.numbers))}}
		if got := r.HoldsFor(spec, data); got != c.want || (r.CheckKey(spec, data) == nil) != c.want {
			t.Errorf("%v: %v", c.numbers, got)
		}
	}
	if !r.HoldsFor(tensor.Spec{Name: "images", DType: tensor.Float32, Sizes: []int64{1}}, make([]byte, 4)) {
		t.Error("an input that is no key")
	}
	spec := tensor.Spec{Name: "grids", DType: tensor.Float64, Sizes: []int64{2}}
	if err := r.CheckKey(spec, make([]byte, 16)); err == nil || !strings.Contains(err.Error(), "key grids: 16 bytes of float64[2]") {
		t.Errorf("another type: %v", err)
	}
	if r.HoldsFor(spec, make([]byte, 16)) || r.HoldsFor(tensor.Spec{Name: "grids", DType: tensor.Int64, Sizes: []int64{2}}, nil) {
		t.Error("it holds for another type or number of bytes")
	}
}

func TestBadKeys(t *testing.T) {
	for name, c := range map[string]struct {
		value string
		spec  tensor.Spec
	}{
		"too few":    {"1", tensor.Spec{Name: "grids", DType: tensor.Int64, Sizes: []int64{2}}},
		"no numbers": {"one two", tensor.Spec{Name: "grids", DType: tensor.Int64, Sizes: []int64{2}}},
		"too large":  {"1 9223372036854775808", tensor.Spec{Name: "grids", DType: tensor.Int64, Sizes: []int64{2}}},
		"other type": {"1 2", tensor.Spec{Name: "grids", DType: tensor.Float64, Sizes: []int64{2}}},
		"none":       {"", tensor.Spec{Name: "other", DType: tensor.Int64, Sizes: []int64{2}}},
	} {
		r := recordingtest.ConvBNReLU()
		r.Header.ProfileSettings = append(r.Header.ProfileSettings, recording.Setting{Key: "key.grids", Value: c.value})
		if ps, ok := diag.Of(r.PutKey(c.spec, make([]byte, c.spec.Bytes()))); !ok || ps[0].Reason != "BAD_KEY" {
			t.Errorf("%s: %v", name, ps)
		}
	}
}

func TestSettingsOfAStep(t *testing.T) {
	for key, want := range map[string]bool{"key.grids": true, "host.schedule": true, "train.groups": true, "torch.tf32": false, "env.HOST": false, "keys": false} {
		if got := (recording.Setting{Key: key}).OfStep(); got != want {
			t.Errorf("%s: %v", key, got)
		}
	}
}
