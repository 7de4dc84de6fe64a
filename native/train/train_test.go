package train

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/bridge/tensor/safetensors"
	"samebits/native/host"
)

// product is a training recording whose gradient is images * w, for two parameters of four elements each.
func product(deviceType string) *recording.Recording {
	r := &recording.Recording{Header: recording.Header{
		Mode: "train", DeviceType: deviceType,
		ProfileSettings: []recording.Setting{
			{Key: "train.dampening", Value: "0"}, {Key: "train.ema", Value: "true"}, {Key: "train.groups", Value: `[["w"],["b"]]`},
			{Key: "train.nesterov", Value: "true"}, {Key: "train.optimizer", Value: "sgd"},
		},
	}}
	add := func(role recording.Role, name string) int {
		r.Storages = append(r.Storages, recording.Storage{Bytes: 16, Role: role, Name: name, DType: tensor.Float32})
		r.Values = append(r.Values, recording.Value{
			Storage: len(r.Storages) - 1, DType: tensor.Float32, Sizes: []int64{4}, Strides: []int64{1}, Alignment: 64})
		return len(r.Values) - 1
	}
	images := add(recording.Input, "images")
	r.Inputs = []recording.Named{{Name: "images", Value: images}}
	for _, name := range []string{"w", "b"} {
		parameter, gradient := add(recording.Parameter, name), add(recording.Gradient, "")
		value := func(n string, v int) recording.Argument {
			return recording.Argument{Name: n, Kind: recording.ValueOf, Value: v}
		}
		r.Operations = append(r.Operations, recording.Operation{
			Name:      "aten::mul.Tensor",
			Arguments: []recording.Argument{value("self", images), value("other", parameter)},
			Results:   []recording.Argument{value("", gradient)},
		})
		r.Outputs = append(r.Outputs, recording.Named{Name: "grad." + name, Value: gradient})
	}
	return r
}

func floats(v ...float32) []byte {
	var out []byte
	for _, f := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(f))
	}
	return out
}

func open(t testing.TB, deviceType string) (*Trainer, *Shape) {
	t.Helper()
	dev, err := host.Open()
	if err != nil {
		t.Skip(err)
	}
	weights := map[string][]byte{"w": floats(1, -2, 0.5, 3), "b": floats(0.25, 7, -1, 2)}
	tr, err := Open(dev, product(deviceType), func(name string) ([]byte, bool) { data, ok := weights[name]; return data, ok }, Options{})
	if err != nil {
		if strings.Contains(err.Error(), "NO_COMPILER") {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return tr, tr.Shapes()[0]
}

var hyper = Hyper{LR: []float64{0.1, 0.03}, WeightDecay: []float64{0.01, 0}, Momentum: 0.9, EMADecay: 0.99}

func step(t *testing.T, s *Shape, graph bool) {
	t.Helper()
	run := s.Run
	if graph {
		run = s.Replay
	}
	for _, do := range []func() error{
		func() error { return s.Feed(0, floats(1, 2, -3, 0.1)) },
		func() error { return s.SetHyper(hyper) }, run, s.Wait,
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, tr *Trainer, name string) []float32 {
	t.Helper()
	data := make([]byte, 16)
	if err := tr.ReadState(name, data); err != nil {
		t.Fatal(err)
	}
	out := make([]float32, 4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out
}

func fma(a, b, c float32) float32 { return float32(math.FMA(float64(a), float64(b), float64(c))) }

// Three steps give what PyTorch's foreach calls give, bit for bit, eagerly and by a replay.
func TestSteps(t *testing.T) {
	for name, graph := range map[string]bool{"eager": false, "graph": true} {
		t.Run(name, func(t *testing.T) {
			tr, s := open(t, "cuda")
			if graph {
				if err := s.SetHyper(hyper); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Capture(); err != nil {
					t.Fatal(err)
				}
			}
			x := []float32{1, 2, -3, 0.1}
			for _, parameter := range []string{"w", "b"} {
				if got, want := read(t, tr, "ema."+parameter), read(t, tr, "param."+parameter); got[1] != want[1] {
					t.Fatalf("the average starts at %v, the weights at %v", got, want)
				}
			}
			p := [][]float32{read(t, tr, "param.w"), read(t, tr, "param.b")}
			m := [][]float32{make([]float32, 4), make([]float32, 4)}
			a := [][]float32{read(t, tr, "param.w"), read(t, tr, "param.b")}
			for n := range 3 {
				step(t, s, graph)
				for g, parameter := range []string{"w", "b"} {
					gradients := make([]byte, 16)
					if err := s.Fetch(g, gradients); err != nil {
						t.Fatal(err)
					}
					if err := s.Wait(); err != nil {
						t.Fatal(err)
					}
					for i := range 4 {
						gradient := x[i] * p[g][i]
						seen := gradient
						if g == 0 {
							gradient = fma(0.01, p[g][i], gradient)
						}
						if n == 0 {
							m[g][i] = gradient
						} else {
							m[g][i] = float32(m[g][i]*0.9) + gradient
						}
						gradient = fma(0.9, m[g][i], gradient)
						if g == 1 {
							seen = gradient // Nesterov without weight decay, in place
						}
						p[g][i] = fma(float32(-hyper.LR[g]), gradient, p[g][i])
						a[g][i] = fma(float32(1-0.99), p[g][i], float32(a[g][i]*0.99))
						if got := math.Float32frombits(binary.LittleEndian.Uint32(gradients[4*i:])); got != seen {
							t.Errorf("step %d, grad.%s[%d]: %v, want %v", n, parameter, i, got, seen)
						}
					}
					for kind, want := range map[string][]float32{"param.": p[g], "momentum.": m[g], "ema.": a[g]} {
						for i, got := range read(t, tr, kind+parameter) {
							if math.Float32bits(got) != math.Float32bits(want[i]) {
								t.Errorf("step %d, %s%s[%d]: %v, want %v", n, kind, parameter, i, got, want[i])
							}
						}
					}
				}
			}
		})
	}
}

// A run that goes on from a checkpoint in a fresh trainer ends where the uninterrupted one does.
func TestResume(t *testing.T) {
	whole, s := open(t, "cpu")
	step(t, s, false)
	data, err := whole.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	if size, err := whole.CheckpointBytes(); err != nil || size != int64(len(data)) {
		t.Fatalf("announced %d bytes (%v), made %d", size, err, len(data))
	}
	step(t, s, false)

	resumed, s := open(t, "cpu")
	file, err := safetensors.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := resumed.Restore(file); err != nil {
		t.Fatal(err)
	}
	step(t, s, false)
	if resumed.Steps() != 2 {
		t.Errorf("%d steps, want 2", resumed.Steps())
	}
	for _, spec := range whole.State() {
		a, b := read(t, whole, spec.Name), read(t, resumed, spec.Name)
		for i := range a {
			if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
				t.Errorf("%s[%d]: %v, resumed %v", spec.Name, i, a[i], b[i])
			}
		}
	}
}

func TestRestoreRefusesAndKeepsState(t *testing.T) {
	tr, s := open(t, "cpu")
	step(t, s, false)
	before := read(t, tr, "param.w")
	bad, err := safetensors.Encode([]safetensors.Tensor{{Spec: tensor.Spec{Name: "param.w", DType: tensor.Float32, Sizes: []int64{2}}, Data: floats(1, 2)}},
		map[string]string{"format": "samebits-checkpoint", "steps": "000000000003"})
	if err != nil {
		t.Fatal(err)
	}
	file, err := safetensors.Decode(bad)
	if err != nil {
		t.Fatal(err)
	}
	problems, ok := diag.Of(tr.Restore(file))
	if !ok || problems[0].Path != "checkpoint/param.w" || problems[0].Reason != "WRONG_WEIGHT" || len(problems) < 3 {
		t.Fatalf("got %v", problems)
	}
	if after := read(t, tr, "param.w"); after[0] != before[0] {
		t.Errorf("a refused checkpoint changed w from %v to %v", before, after)
	}
}

func TestOpenRefuses(t *testing.T) {
	dev, err := host.Open()
	if err != nil {
		t.Skip(err)
	}
	defer dev.Close()
	for name, change := range map[string]func(*recording.Recording){
		"WRONG_MODE":            func(r *recording.Recording) { r.Header.Mode = "predict" },
		"UNSUPPORTED_OPTIMIZER": func(r *recording.Recording) { r.Header.ProfileSettings[4].Value = "adamw" },
		"BAD_RECORDING":         func(r *recording.Recording) { r.Header.ProfileSettings[2].Value = `[["other"]]` },
	} {
		r := product("cuda")
		change(r)
		_, err := Open(dev, r, func(string) ([]byte, bool) { return floats(0, 0, 0, 0), true }, Options{})
		if problems, ok := diag.Of(err); !ok || problems[0].Reason != name {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
