package samebits

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"samebits/bridge/recording"
	rt "samebits/bridge/recording/recordingtest"
	"samebits/bridge/tensor"
	"samebits/bridge/tensor/safetensors"
)

var rewrite = flag.Bool("rewrite", false, "write tests/data anew")

// fixtures are the recordings that the tests in Python load.
var fixtures = map[string]func() *recording.Recording{
	"tiny":        rt.ConvBNReLU,
	"pair":        func() *recording.Recording { return pair(3) },
	"pair-wide":   func() *recording.Recording { return pair(5) },
	"bfloat16":    bfloat16,
	"slow":        slow,
	"unsupported": unsupported,
	"train":       func() *recording.Recording { return training(4) },
	"train-last":  func() *recording.Recording { return training(2) },
}

// pair adds two inputs, and shows the sum turned: an output whose elements do not lie in order.
func pair(wide int64) *recording.Recording {
	b := rt.New("cpu")
	b.R.Header.ImgSize = wide
	left, right := b.Tensor(recording.Input, "left", tensor.Float32, 2, wide), b.Tensor(recording.Input, "right", tensor.Float32, 2, wide)
	sum := b.Scratch(tensor.Float32, 2, wide)
	b.Op("aten::add.Tensor", rt.Args(rt.Value("self", left), rt.Value("other", right), rt.Int("alpha", 1)), sum)
	turned := b.View(sum, []int64{wide, 2}, []int64{1, wide}, 0)
	b.Op("aten::t", rt.Args(rt.Value("self", sum)), turned)
	b.Input("left", left)
	b.Input("right", right)
	b.Output("sum", sum)
	b.Output("turned", turned)
	return b.R
}

// bfloat16 is relu.
func bfloat16() *recording.Recording {
	b := rt.New("cpu")
	x, y := b.Tensor(recording.Input, "x", tensor.BFloat16, 4), b.Scratch(tensor.BFloat16, 4)
	b.Op("aten::relu", rt.Args(rt.Value("self", x)), y)
	b.Input("x", x)
	b.Output("y", y)
	return b.R
}

// slow takes seconds on any CPU: relu in place on 64 MiB, over and over.
func slow() *recording.Recording {
	b := rt.New("cpu")
	const side = 4096
	x, y := b.Tensor(recording.Input, "x", tensor.Float32, side, side), b.Scratch(tensor.Float32, side, side)
	b.Op("aten::add.Tensor", rt.Args(rt.Value("self", x), rt.Value("other", x), rt.Int("alpha", 1)), y)
	for range 300 {
		b.Op("aten::relu_", rt.Args(rt.Value("self", y)), y)
	}
	b.Input("x", x)
	b.Output("y", y)
	return b.R
}

// unsupported calls operations that do not exist.
func unsupported() *recording.Recording {
	b := rt.New("cpu")
	x, y := b.Tensor(recording.Input, "x", tensor.Float32, 4), b.Scratch(tensor.Float32, 4)
	z := b.Scratch(tensor.Float32, 4)
	b.Op("aten::frobnicate", rt.Args(rt.Value("self", x)), y)
	b.Op("aten::defenestrate", rt.Args(rt.Value("self", y)), z)
	b.Input("x", x)
	b.Output("z", z)
	return b.R
}

// training is one step of a classifier into three classes: logits = images * scale + shift, and the mean of the negative
// log-likelihood. Each parameter is a group of its own.
func training(batch int64) *recording.Recording {
	b := rt.New("cpu")
	h := &b.R.Header
	h.Mode, h.Batch = "train", batch
	h.ProfileSettings = []recording.Setting{
		{Key: "train.dampening", Value: "0"}, {Key: "train.ema", Value: "true"}, {Key: "train.groups", Value: `[["scale"],["shift"]]`},
		{Key: "train.nesterov", Value: "true"}, {Key: "train.optimizer", Value: "sgd"},
	}
	const classes = 3
	f32 := tensor.Float32
	images, targets := b.Tensor(recording.Input, "images", f32, batch, classes), b.Tensor(recording.Input, "targets", tensor.Int64, batch)
	scale, shift := b.Tensor(recording.Parameter, "scale", f32, classes), b.Tensor(recording.Parameter, "shift", f32, classes)
	one := b.Tensor(recording.Constant, "one", f32)
	matrix := func() int { return b.Scratch(f32, batch, classes) }
	scaled, logits, logp := matrix(), matrix(), matrix()
	b.Op("aten::mul.Tensor", rt.Args(rt.Value("self", images), rt.Value("other", scale)), scaled)
	b.Op("aten::add.Tensor", rt.Args(rt.Value("self", scaled), rt.Value("other", shift), rt.Int("alpha", 1)), logits)
	b.Op("aten::_log_softmax", rt.Args(rt.Value("self", logits), rt.Int("dim", 1), rt.Bool("half_to_float", false)), logp)
	loss, total := b.Scratch(f32), b.Scratch(f32)
	b.Op("aten::nll_loss_forward", rt.Args(rt.Value("self", logp), rt.Value("target", targets), rt.None("weight"),
		rt.Int("reduction", 1), rt.Int("ignore_index", -100)), loss, total)

	dlogp, dlogits, dscaled := matrix(), matrix(), matrix()
	b.Op("aten::nll_loss_backward", rt.Args(rt.Value("grad_output", one), rt.Value("self", logp), rt.Value("target", targets),
		rt.None("weight"), rt.Int("reduction", 1), rt.Int("ignore_index", -100), rt.Value("total_weight", total)), dlogp)
	b.Op("aten::_log_softmax_backward_data", rt.Args(rt.Value("grad_output", dlogp), rt.Value("output", logp), rt.Int("dim", 1),
		recording.Argument{Name: "input_dtype", Kind: recording.DTypeOf, DType: f32}), dlogits)
	b.Op("aten::mul.Tensor", rt.Args(rt.Value("self", dlogits), rt.Value("other", images)), dscaled)
	dscale, dshift := b.Scratch(f32, classes), b.Scratch(f32, classes)
	for _, sum := range []struct{ from, to int }{{dscaled, dscale}, {dlogits, dshift}} {
		b.Op("aten::sum.dim_IntList", rt.Args(rt.Value("self", sum.from), rt.Ints("dim", 0), rt.Bool("keepdim", false), rt.None("dtype")), sum.to)
	}
	b.Input("images", images)
	b.Input("targets", targets)
	b.Output("loss", loss)
	b.Output("grad.scale", dscale)
	b.Output("grad.shift", dshift)
	for _, v := range []int{dscale, dshift} {
		b.R.Storages[b.R.Values[v].Storage].Role = recording.Gradient
	}
	return b.R
}

// TestFixtures keeps the committed files equal to what is above; with -rewrite it writes them.
func TestFixtures(t *testing.T) {
	for name, build := range fixtures {
		t.Run(name, func(t *testing.T) {
			r := build()
			tensors := rt.Weights(r, 7)
			for _, w := range tensors {
				if w.Name == "one" {
					copy(w.Data, []byte{0, 0, 0x80, 0x3f})
				}
			}
			weights, err := safetensors.Encode(tensors, nil)
			if err != nil {
				t.Fatal(err)
			}
			for file, data := range map[string][]byte{"recording.pb": rt.Encoded(t, r), "weights.safetensors": weights} {
				path := filepath.Join("tests", "data", name, file)
				if *rewrite {
					if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, data, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				have, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(have, data) {
					t.Errorf("%s is not what the test makes: go test ./bridge/python -run Fixtures -rewrite", path)
				}
			}
		})
	}
}
