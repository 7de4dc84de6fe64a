package recording_test

import (
	"slices"
	"testing"

	"samebits/bridge/diag"
	"samebits/bridge/digest"
	"samebits/bridge/recording"
	"samebits/bridge/recording/recordingtest"
	"samebits/bridge/tensor"
	"samebits/bridge/tensor/safetensors"
)

func TestCheckWeights(t *testing.T) {
	find := func(list []safetensors.Tensor, name string) *safetensors.Tensor {
		i := slices.IndexFunc(list, func(t safetensors.Tensor) bool { return t.Name == name })
		return &list[i]
	}
	drop := func(list []safetensors.Tensor, name string) []safetensors.Tensor {
		return slices.DeleteFunc(list, func(t safetensors.Tensor) bool { return t.Name == name })
	}
	for _, c := range []struct {
		name  string
		spoil func(list []safetensors.Tensor) []safetensors.Tensor
		want  []string
	}{
		{"all there", func(list []safetensors.Tensor) []safetensors.Tensor { return list }, nil},
		{"one more", func(list []safetensors.Tensor) []safetensors.Tensor {
			return append(list, safetensors.Tensor{Spec: tensor.Spec{Name: "bn.num_batches_tracked", DType: tensor.Int64}, Data: make([]byte, 8)})
		}, nil},
		{"flat storage", func(list []safetensors.Tensor) []safetensors.Tensor {
			find(list, "conv.weight").Sizes = []int64{108}
			return list
		}, nil},
		{"missing", func(list []safetensors.Tensor) []safetensors.Tensor {
			return drop(drop(list, "bn.bias"), "conv.weight")
		},
			[]string{"weights/conv.weight: MISSING_WEIGHT", "weights/bn.bias: MISSING_WEIGHT"}},
		{"dtype of the same size", func(list []safetensors.Tensor) []safetensors.Tensor {
			find(list, "bn.bias").DType = tensor.Int32
			return list
		}, []string{"weights/bn.bias: WRONG_DTYPE"}},
		{"another size", func(list []safetensors.Tensor) []safetensors.Tensor {
			w := find(list, "bn.bias")
			w.Sizes, w.Data = []int64{5}, make([]byte, 20)
			return list
		}, []string{"weights/bn.bias: WRONG_SHAPE"}},
		{"another shape of the same size", func(list []safetensors.Tensor) []safetensors.Tensor {
			find(list, "conv.weight").Sizes = []int64{3, 4, 3, 3}
			return list
		}, []string{"weights/conv.weight: WRONG_SHAPE"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := recordingtest.ConvBNReLU()
			file := recordingtest.File(t, c.spoil(recordingtest.Weights(r, 1)))
			err := recording.CheckWeights(r, file)
			ps, _ := diag.Of(err)
			if got := found(ps); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q (%v)", got, c.want, err)
			}
		})
	}
}

func TestUnreadWeightsMayBeMissing(t *testing.T) {
	r := recordingtest.ConvBNReLU()
	r.Storages = append(r.Storages, recording.Storage{Bytes: 8, Role: recording.Buffer, Name: "unread", DType: tensor.Int64})
	if err := recording.CheckWeights(r, recordingtest.File(t, recordingtest.Weights(r, 1))); err != nil {
		t.Error(err)
	}
}

// What the reference read on the host is part of the recording: weights that hold something else there do not fit it.
func TestHostConstants(t *testing.T) {
	r := recordingtest.ConvBNReLU()
	list := recordingtest.Weights(r, 1)
	at := slices.IndexFunc(list, func(t safetensors.Tensor) bool { return t.Name == "bn.bias" })
	r.Header.ProfileSettings = append(r.Header.ProfileSettings,
		recording.Setting{Key: "host.absent", Value: "00"},
		recording.Setting{Key: "host.bn.bias", Value: digest.Tensor(list[at].Spec, list[at].Data)})
	if err := recording.CheckWeights(r, recordingtest.File(t, list)); err != nil {
		t.Errorf("the same content: %v", err)
	}
	list[at].Data[0] ^= 1
	ps, _ := diag.Of(recording.CheckWeights(r, recordingtest.File(t, list)))
	if got, want := found(ps), []string{"weights/bn.bias: HOST_CONSTANT"}; !slices.Equal(got, want) {
		t.Errorf("one bit flipped: %q instead of %q", got, want)
	}
}
