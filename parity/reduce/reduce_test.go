package reduce

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"samebits/bridge/arm"
	"samebits/bridge/digest"
	"samebits/bridge/recording"
	. "samebits/bridge/recording/recordingtest"
	"samebits/bridge/tensor"
	"samebits/bridge/tensor/safetensors"
	"samebits/parity/launch"
	"samebits/parity/ops/opstest"
	"samebits/parity/probe"
)

// chain is a step of ten operations: x = images + weight, then neg, relu_, exp, mul and so on in turn, with a relu_ in place
// in the middle and a branch that joins at the end.
func chain(t *testing.T) *Case {
	t.Helper()
	b := New("cpu")
	b.R.Header.ProfileSettings = nil
	images := b.Tensor(recording.Input, "images", tensor.Float32, 2, 6)
	weight := b.Tensor(recording.Parameter, "weight", tensor.Float32, 2, 6)
	b.Input("images", images)
	fresh := func(name string, args []recording.Argument) int {
		v := b.Scratch(tensor.Float32, 2, 6)
		b.Op(name, args, v)
		return v
	}
	sum := fresh("aten::add.Tensor", Args(Value("self", images), Value("other", weight), Int("alpha", 1))) // 0
	left := fresh("aten::neg", Args(Value("self", sum)))                                                   // 1
	b.Op("aten::relu_", Args(Value("self", left)), left)                                                   // 2
	wide := fresh("aten::exp", Args(Value("self", left)))                                                  // 3
	right := fresh("aten::mul.Tensor", Args(Value("self", sum), Value("other", weight)))                   // 4
	half := fresh("aten::neg", Args(Value("self", right)))                                                 // 5
	more := fresh("aten::mul.Tensor", Args(Value("self", half), Value("other", wide)))                     // 6
	last := fresh("aten::relu", Args(Value("self", more)))                                                 // 7
	unread := fresh("aten::neg", Args(Value("self", last)))                                                // 8
	_ = unread
	end := fresh("aten::add.Tensor", Args(Value("self", last), Value("other", left), Int("alpha", 1))) // 9
	b.Output("end", end)
	file := Encoded(t, b.R)
	r, err := recording.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	numbers := func(from float32) []byte {
		var data []byte
		for i := range 12 {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(from+float32(i)/8))
		}
		return data
	}
	c, err := NewCase(r, func(string) ([]byte, bool) { return numbers(-0.7), true }, func(string) ([]byte, bool) { return numbers(0.3), true })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func nextULP(x float32) float32 { return math.Float32frombits(math.Float32bits(x) + 1) }

// half is a fault that no later rounding hides.
func half(x float32) float32 { return x + 0.5 }

func TestReduce(t *testing.T) {
	bad := func(operation, after string) *opstest.Starter {
		return &opstest.Starter{Faults: opstest.Fault{Operation: operation, Element: 0, Change: half, After: after}}
	}
	for _, c := range []struct {
		name   string
		start  *opstest.Starter
		device string
		want   []int
	}{
		{"one operation", bad("aten::exp", ""), "cuda:0", []int{3}},
		{"the last but one", bad("aten::relu", ""), "cuda:0", []int{7}},
		{"in place", bad("aten::relu_", ""), "cuda:0", []int{2}},
		{"one of two that are alike", bad("aten::mul.Tensor", "aten::neg"), "cuda:0", []int{5, 6}},
		{"only together", bad("aten::exp", "aten::relu_"), "cuda:0", []int{2, 3}},
		{"more than rounding on the host", &opstest.Starter{Faults: opstest.Fault{Operation: "aten::exp", Element: 0,
			Change: func(x float32) float32 { return x + 1 }}}, "host", []int{3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &Finder{Start: c.start, Device: c.device}
			part, err := f.Reduce(t.Context(), chain(t))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(part.Operations, c.want) || part.Detail == "" || part.Of != 10 {
				t.Errorf("%v instead of %v, %s", part.Operations, c.want, part.Detail)
			}
			if c.start.Alive != 0 {
				t.Errorf("%d processes are left", c.start.Alive)
			}
			reference := map[string]string{"host": "cpu", "cuda:0": "cuda:0"}[c.device]
			if d := c.start.Devices; d[arm.ReferenceEager] != reference || d[arm.NativeEager] != c.device || c.device == "host" && d[arm.ReferenceFP64] != reference {
				t.Errorf("they ran on %v", d)
			}
			reduceAgain(t, c.start, c.device, part)
		})
	}
}

// reduceAgain writes a part, reads it, and finds the same fault in it alone.
func reduceAgain(t *testing.T, start *opstest.Starter, device string, part *Part) {
	t.Helper()
	dir := t.TempDir()
	if err := part.Write(dir); err != nil {
		t.Fatal(err)
	}
	c, err := ReadFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := (&Finder{Start: start, Device: device}).Reduce(t.Context(), c)
	if err != nil || len(again.Operations) != len(part.Operations) || again.Detail != part.Detail {
		t.Fatalf("%+v, %v", again, err)
	}
	var said Report
	data, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err := errors.Join(err, json.Unmarshal(data, &said)); err != nil {
		t.Fatal(err)
	}
	given, err := safetensors.ReadFile(filepath.Join(dir, "inputs.safetensors"))
	if err != nil || !slices.Equal(said.Operations, part.Operations) || said.Of != 10 || said.Tests != part.Tests || said.Detail != part.Detail ||
		len(said.Signatures) != len(part.Operations) || said.Modules[0] != "block tiny/block.py:7" || len(said.Inputs) != len(given.Tensors) {
		t.Errorf("%v, %+v", err, said)
	}
	for i, in := range given.Tensors {
		if want := (Tensor{Name: in.Name, Value: "float32[2,6]", Reference: digest.Tensor(in.Spec, in.Data)}); said.Inputs[i] != want {
			t.Errorf("%+v instead of %+v", said.Inputs[i], want)
		}
	}
	for i, o := range said.Outputs {
		if o.Reference != part.both.reference[i].Digest || o.Native != part.both.native[i].Digest || o.Value != "float32[2,6]" {
			t.Errorf("%+v", o)
		}
	}
	for i, o := range again.both.reference {
		if o.Digest != part.both.reference[i].Digest {
			t.Errorf("%s has other bits than before", o.Name)
		}
	}
}

func TestNothingToReduce(t *testing.T) {
	f := &Finder{Start: &opstest.Starter{}, Device: "cuda:0"}
	if _, err := f.Reduce(t.Context(), chain(t)); !errors.Is(err, ErrNothingDiffers) {
		t.Errorf("%v", err)
	}
	if c, err := f.Bisect(t.Context(), chain(t)); c != nil || err != nil {
		t.Errorf("%+v, %v", c, err)
	}
	noisy := &Finder{Device: "cuda:0", Start: &opstest.Starter{PyTorch: opstest.Fault{Steps: func(step int) int { return step }}}}
	if _, err := noisy.Reduce(t.Context(), chain(t)); err == nil || !strings.Contains(err.Error(), "EAGER_NOISE") {
		t.Errorf("%v", err)
	}
	refused := &Finder{Device: "cuda:0", Start: &opstest.Starter{Faults: opstest.Fault{Refuse: map[string]string{"aten::exp": "UNSUPPORTED"}}}}
	if _, err := refused.Reduce(t.Context(), chain(t)); err == nil || !strings.Contains(err.Error(), "UNSUPPORTED") {
		t.Errorf("%v", err)
	}
}

func TestBisect(t *testing.T) {
	for _, c := range []struct {
		name   string
		after  string
		device string
		alone  bool
	}{{"by itself", "", "cuda:0", true}, {"behind another", "aten::relu_", "cuda:0", false}, {"a rounding on the host", "", "host", true}} {
		start := &opstest.Starter{Faults: opstest.Fault{Operation: "aten::exp", Element: 0, Change: nextULP, After: c.after}}
		got, err := (&Finder{Start: start, Device: c.device}).Bisect(t.Context(), chain(t))
		if err != nil {
			t.Fatal(err)
		}
		if got.Operation != 3 || got.Alone != c.alone || got.Bits.Different != 1 || got.Bits.MaxULP != 1 || len(got.Histogram) != 2 ||
			got.Histogram[1].Count != 1 || got.Module != "block" || got.Source != "tiny/block.py:7" {
			t.Errorf("%s: %+v", c.name, got)
		}
		dir := t.TempDir()
		if err := got.Write(dir); err != nil {
			t.Fatal(err)
		}
		operands, err := safetensors.ReadFile(filepath.Join(dir, "inputs.safetensors"))
		if err != nil || len(operands.Tensors) != 1 {
			t.Fatalf("%v, %v", operands, err)
		}
		for side, want := range map[string]string{"reference": got.Reference, "native": got.Native} {
			file, err := safetensors.ReadFile(filepath.Join(dir, side+".safetensors"))
			if err != nil || digest.Tensor(file.Tensors[0].Spec, file.Tensors[0].Data) != want {
				t.Errorf("%s: %v", side, err)
			}
		}
		if r, err := ReadFolder(dir); err != nil || len(r.Recording.Operations) != 1 {
			t.Errorf("%v", err)
		}
	}
}

// Whatever operations a part has, what it runs on has the bits of the whole step: the reference gives the same results.
func TestCutsKeepBits(t *testing.T) {
	c := chain(t)
	f := &Finder{Start: &opstest.Starter{}, Device: "cuda:0"}
	f.open()
	defer f.close()
	s := newSearch(f, c)
	whole := map[string]string{}
	n := len(c.Recording.Operations)
	for mask := 1; mask < 1<<n; mask += 7 { // some of all subsets
		var operations []int
		for i := range n {
			if mask>>i&1 == 1 {
				operations = append(operations, i)
			}
		}
		part, err := s.part(t.Context(), operations)
		if err != nil {
			t.Fatal(err)
		}
		if part == nil {
			continue
		}
		outputs, err := f.reference.run(t.Context(), part.job)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range outputs {
			var at, result int
			if _, err := fmt.Sscanf(o.Name, "operation%d.%d", &at, &result); err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprint(operations[at], result)
			if before, known := whole[name]; known && before != o.Digest {
				t.Fatalf("operations %v: the result of %s has other bits", operations, name)
			}
			whole[name] = o.Digest
		}
	}
	if len(whole) < 8 {
		t.Errorf("only %v were compared", whole)
	}
}

// The script runs in plain PyTorch and gives the bits that the reference gave.
func TestScript(t *testing.T) {
	python := os.Getenv(launch.PythonVariable)
	if python == "" {
		t.Skipf("needs an interpreter with PyTorch in %s", launch.PythonVariable)
	}
	start := &opstest.Starter{Faults: opstest.Fault{Operation: "aten::relu_", Element: 0, Change: half}}
	part, err := (&Finder{Start: start, Device: "cuda:0"}).Reduce(t.Context(), chain(t))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := part.Write(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "run.py"))
	if err != nil || strings.Contains(string(text), "samebits") {
		t.Fatalf("%v: it is not plain PyTorch", err)
	}
	out, err := exec.Command(python, filepath.Join(dir, "run.py"), "cpu").CombinedOutput()
	if err != nil || strings.Count(string(out), "\n") != len(part.both.reference) || !strings.Contains(string(out), "  reference\n") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = exec.Command(python, filepath.Join(dir, "run.py"), "cuda:99").CombinedOutput()
	if err == nil || strings.Count(string(out), "\n") != 1 || !strings.HasPrefix(string(out), "run.py: device cuda:99: ") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A folder of verify --keep has inputs as files. Those that are not there are made; one that is torn is not taken for another.
func TestKeptInputs(t *testing.T) {
	c := chain(t)
	dir := t.TempDir()
	weight := tensor.Spec{Name: "weight", DType: tensor.Float32, Sizes: []int64{2, 6}}
	images := tensor.Spec{Name: "images", DType: tensor.Float32, Sizes: []int64{2, 6}}
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "inputs/noise"), 0o755), os.WriteFile(filepath.Join(dir, "recording.pb"), Encoded(t, c.Recording), 0o644),
		safetensors.WriteFile(filepath.Join(dir, "weights.safetensors"), []safetensors.Tensor{{Spec: weight, Data: make([]byte, 48)}}, nil)); err != nil {
		t.Fatal(err)
	}
	made := make([]byte, 48)
	if err := probe.Fill(probe.Noise, images, c.Recording.Header.Seed, made); err != nil {
		t.Fatal(err)
	}
	kept := bytes.Repeat([]byte{7}, 48)
	for _, k := range []struct {
		name  string
		file  []byte // nil: none
		want  []byte
		wrong string
	}{
		{"none is kept", nil, made, ""},
		{"one is kept", append(digest.Header(images), kept...), kept, ""},
		{"torn", append(digest.Header(images), kept[:40]...), nil, "WRONG_INPUT"},
		{"of another shape", append(digest.Header(tensor.Spec{DType: tensor.Float32, Sizes: []int64{6, 2}}), kept...), nil, "WRONG_INPUT"},
	} {
		if k.file != nil {
			if err := os.WriteFile(filepath.Join(dir, "inputs/noise/images.tensor"), k.file, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		read, err := ReadFolder(dir)
		if k.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), k.wrong) {
				t.Errorf("%s: %v", k.name, err)
			}
			continue
		}
		if err != nil || !bytes.Equal(read.Given[0], k.want) || !bytes.Equal(read.Given[1], make([]byte, 48)) {
			t.Errorf("%s: %v, %x", k.name, err, read.Given)
		}
	}
}

// A checkpoint has tensors in row-major order, a storage may hold them otherwise.
func TestStateOfACheckpoint(t *testing.T) {
	b := New("cpu")
	turned := b.Tensor(recording.Parameter, "turned", tensor.Float32, 3, 2)
	b.R.Values[turned].Sizes, b.R.Values[turned].Strides = []int64{2, 3}, []int64{1, 2}
	flat := b.Tensor(recording.Buffer, "flat", tensor.Float32, 4)
	b.Output("sum", b.Scratch(tensor.Float32, 1))
	numbers := func(list ...float32) []byte {
		var data []byte
		for _, x := range list {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
		}
		return data
	}
	c := &Case{Recording: b.R, Given: map[int][]byte{}}
	named := func(name string, data []byte, sizes ...int64) *safetensors.Tensor {
		return &safetensors.Tensor{Spec: tensor.Spec{Name: name, DType: tensor.Float32, Sizes: sizes}, Data: data}
	}
	for _, s := range []struct {
		value int
		give  *safetensors.Tensor
		want  []byte
	}{
		{turned, named("param.turned", numbers(1, 2, 3, 4, 5, 6), 2, 3), numbers(1, 4, 2, 5, 3, 6)},
		{flat, named("buffer.flat", numbers(1, 2, 3, 4), 4), numbers(1, 2, 3, 4)},
	} {
		storage := b.R.Values[s.value].Storage
		if err := c.set(storage, s.give); err != nil || !slices.Equal(c.Given[storage], s.want) {
			t.Errorf("%s: %v, %v", s.give.Name, err, c.Given[storage])
		}
		if err := c.set(storage, named("short", numbers(1), 1)); err == nil {
			t.Error("a tensor of another size was taken")
		}
	}
}
