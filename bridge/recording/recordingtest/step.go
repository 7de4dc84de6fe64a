package recordingtest

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/bridge/tensor/safetensors"
)

// ConvBNReLU is a step as the CPU records it: a convolution, batch norm and relu in place, added to a second convolution
// of the input, then a view of the sum. Input "images" is float32[1,3,8,8]; outputs are "features", float32[1,4,8,8], and
// "flat", the same memory as float32[1,256].
func ConvBNReLU() *recording.Recording {
	b := New("cpu")
	f32 := tensor.Float32
	images := b.Tensor(recording.Input, "images", f32, 1, 3, 8, 8)
	weight := b.Tensor(recording.Parameter, "conv.weight", f32, 4, 3, 3, 3)
	y := b.Scratch(f32, 1, 4, 8, 8)
	b.Op("aten::convolution", convolution(images, weight, None("bias"), 1), y)

	gamma := b.Tensor(recording.Parameter, "bn.weight", f32, 4)
	beta := b.Tensor(recording.Parameter, "bn.bias", f32, 4)
	mean := b.Tensor(recording.Buffer, "bn.running_mean", f32, 4)
	variance := b.Tensor(recording.Buffer, "bn.running_var", f32, 4)
	z, saveMean, saveInvstd := b.Scratch(f32, 1, 4, 8, 8), b.Scratch(f32, 0), b.Scratch(f32, 0)
	b.Op("aten::native_batch_norm", Args(Value("input", y), Value("weight", gamma), Value("bias", beta), Value("running_mean", mean),
		Value("running_var", variance), Bool("training", false), Real("momentum", 0.1), Real("eps", 1e-5)), z, saveMean, saveInvstd)
	b.Op("aten::relu_", Args(Value("self", z)), z)

	shortcut := b.Tensor(recording.Parameter, "shortcut.weight", f32, 4, 3, 1, 1)
	bias := b.Tensor(recording.Parameter, "shortcut.bias", f32, 4)
	s := b.Scratch(f32, 1, 4, 8, 8)
	b.Op("aten::convolution", convolution(images, shortcut, Value("bias", bias), 0), s)
	sum := b.Scratch(f32, 1, 4, 8, 8)
	b.Op("aten::add.Tensor", Args(Value("self", z), Value("other", s), Int("alpha", 1)), sum)
	flat := b.View(sum, []int64{1, 256}, []int64{256, 1}, 0)
	b.Op("aten::view", Args(Value("self", sum), Ints("size", 1, 256)), flat)

	b.Input("images", images)
	b.Output("features", sum)
	b.Output("flat", flat)
	return b.R
}

func convolution(input, weight int, bias recording.Argument, padding int64) []recording.Argument {
	return Args(Value("input", input), Value("weight", weight), bias, Ints("stride", 1, 1), Ints("padding", padding, padding),
		Ints("dilation", 1, 1), Bool("transposed", false), Ints("output_padding", 0, 0), Int("groups", 1))
}

// Weights makes a tensor for each parameter, buffer and constant of r: floats between 0.5 and 1.5 from a seeded
// generator, zeros for other types.
func Weights(r *recording.Recording, seed uint64) []safetensors.Tensor {
	random := rand.New(rand.NewPCG(seed, 0))
	var out []safetensors.Tensor
	for i := range r.Values {
		v := &r.Values[i]
		s := r.Storages[v.Storage]
		if !s.Role.Weight() || v.Numel()*v.DType.Size() != s.Bytes || slices.ContainsFunc(out, func(t safetensors.Tensor) bool { return t.Name == s.Name }) {
			continue
		}
		data := make([]byte, 0, s.Bytes)
		for range v.Numel() {
			x := float32(random.Float64() + 0.5)
			switch v.DType {
			case tensor.Float32:
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
			case tensor.BFloat16:
				data = binary.LittleEndian.AppendUint16(data, uint16(math.Float32bits(x)>>16))
			default:
				data = append(data, make([]byte, v.DType.Size())...)
			}
		}
		out = append(out, safetensors.Tensor{Spec: tensor.Spec{Name: s.Name, DType: s.DType, Sizes: v.Sizes}, Data: data})
	}
	return out
}

// File puts tensors into a decoded weights file.
func File(t testing.TB, tensors []safetensors.Tensor) *safetensors.File {
	t.Helper()
	encoded, err := safetensors.Encode(tensors, nil)
	if err != nil {
		t.Fatal(err)
	}
	file, err := safetensors.Decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// Encoded gives the bytes of r.
func Encoded(t testing.TB, r *recording.Recording) []byte {
	t.Helper()
	data, err := recording.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
