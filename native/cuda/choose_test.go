package cuda

import (
	"os"
	"slices"
	"strings"
	"testing"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

func contiguous(offset int64, d tensor.DType, sizes ...int64) device.Tensor {
	return device.Tensor{Pointer: at(offset), DType: d, Sizes: sizes, Strides: tensor.ContiguousStrides(sizes)}
}

// torchConvolution is the one whose calls PyTorch 2.11 wrote to cuDNN's log; testdata/torch has them.
func torchConvolution(d tensor.DType) *device.Convolution {
	return &device.Convolution{
		X: contiguous(0, d, 1, 64, 40, 40), W: contiguous(1<<20, d, 64, 64, 3, 3), Y: contiguous(2<<20, d, 1, 64, 40, 40),
		Padding: []int64{1, 1}, Stride: []int64{1, 1}, Dilation: []int64{1, 1}, Groups: 1,
	}
}

var exact = device.Options{Deterministic: true}

func TestConvolutionCallsAreTorchs(t *testing.T) {
	needSource(t)
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16} {
		t.Run(dtype.String(), func(t *testing.T) {
			text, err := os.ReadFile("testdata/torch/convolution-" + dtype.String() + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			torch := strings.Split(strings.TrimSpace(string(text)), "\n")
			calls := logCalls(t)
			d := openFake(t)
			_, resolve := arena(t, d, 4<<20)
			prepare(t, d, resolve, exact, torchConvolution(dtype))
			pack := torch[len(torch)-3:] // once for the trial, once for the real addresses
			if got, want := calls(), append(torch, pack...); !slices.Equal(got, want) {
				t.Errorf("calls are\n%s\nPyTorch's are\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// TestGradientCallsAreTorchs: a gradient's calls are a convolution's but for the names of the operation and of its
// attributes, which cudnn_frontend sets in the same order.
func TestGradientCallsAreTorchs(t *testing.T) {
	needSource(t)
	text, err := os.ReadFile("testdata/torch/convolution-float32.txt")
	if err != nil {
		t.Fatal(err)
	}
	for direction, names := range map[device.Direction][]string{
		device.BackwardData: {"10.704", "12.710", "10.703", "12.709", "10.705", "12.711", "10.702", "12.708",
			"10.700", "12.706", "10.701", "12.707", "15.801 15: 10", "15.801 15: 12"},
		device.BackwardFilter: {"10.704", "11.716", "10.703", "11.715", "10.705", "11.717", "10.702", "11.714",
			"10.700", "11.712", "10.701", "11.713", "15.801 15: 10", "15.801 15: 11"},
	} {
		t.Run(convolutionNames[direction], func(t *testing.T) {
			torch := strings.Split(strings.TrimSpace(strings.NewReplacer(names...).Replace(string(text))), "\n")
			calls := logCalls(t)
			d := openFake(t)
			_, resolve := arena(t, d, 4<<20)
			forward, gradient := torchConvolution(tensor.Float32), torchConvolution(tensor.Float32)
			gradient.Direction = direction
			p := prepare(t, d, resolve, exact, gradient, forward)
			got := calls()
			if len(got) < len(torch) || !slices.Equal(got[:len(torch)], torch) {
				t.Errorf("calls are\n%s\nPyTorch's are\n%s", strings.Join(got, "\n"), strings.Join(torch, "\n"))
			}
			tag := map[device.Direction]string{device.BackwardData: "ConvBwdData_eng1_", device.BackwardFilter: "ConvBwdFilter_eng1_"}[direction]
			if got := p.Choices(); !strings.HasPrefix(got[0], tag) || !strings.HasPrefix(got[1], "ConvFwd_eng1_") {
				t.Errorf("choices %q", got)
			}
		})
	}
	bad := torchConvolution(tensor.Float32)
	bad.Direction = 3
	_, err = describeConvolution(bad, 0, 0, 0, exact)
	mustHave(t, err, "direction 3")
}

// notes of cuDNN's engines.
const engines = "67:0;70:1;71:4;72:"

func TestEngineChoice(t *testing.T) {
	for _, test := range []struct {
		name, engines string
		dtype         tensor.DType
		options       device.Options
		want          string // of Choices, or of the error
		workspace     int64
	}{
		{"the first that is left", engines, tensor.Float32, exact,
			"ConvFwd_eng72_k2=12_k18=-1 workspace=4608 instant 1 of 1, 4 proposed", 4608},
		{"not deterministic", engines, tensor.Float32, device.Options{}, "ConvFwd_eng71_k2=12_k18=-1 workspace=4544 instant 1 of 2", 4544},
		{"tensor cores for bfloat16", engines, tensor.BFloat16, exact, "ConvFwd_eng67", 4288},
		{"tensor cores for TF32", engines, tensor.Float32, device.Options{AllowTF32: true}, "ConvFwd_eng67", 4288},
		{"one that does not build", "-3:;5:", tensor.Float32, exact, "ConvFwd_eng5_k2=12_k18=-1 workspace=320 instant 2 of 2", 320},
		{"one that does not run", "1000:;6:", tensor.Float32, exact, "ConvFwd_eng6_k2=12_k18=-1 workspace=384 instant 2 of 2", 384},
		{"the fallback list", "-3:;67:0|1001:;8:9", tensor.Float32, exact, "ConvFwd_eng8_k2=12_k18=-1 workspace=512 fallback 2 of 2", 512},
		{"no workspace", "0:", tensor.Float32, exact, "ConvFwd_eng0_k2=12_k18=-1 workspace=0", 0},
		{"none", "-3:|1001:", tensor.Float32, exact, "commands[0]: NO_ENGINE: convolution: no cuDNN engine computes this convolution " +
			"(instant 1: cuDNN: cudnnBackendFinalize: CUDNN_STATUS_NOT_SUPPORTED (3000): the fake refuses; fallback 1: cuDNN: " +
			"cudnnBackendExecute: CUDNN_STATUS_EXECUTION_FAILED (5000)", 0},
		{"none is left", "67:0", tensor.Float32, exact, "instant: none of 1 is left by the numerical notes", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("FAKE_ENGINES", test.engines)
			d := openFake(t)
			_, resolve := arena(t, d, 4<<20)
			p, err := d.Prepare([]device.Command{torchConvolution(test.dtype)}, resolve, test.options)
			if err != nil {
				mustHave(t, err, test.want)
				return
			}
			defer p.Close()
			if got := p.Choices()[0]; !strings.HasPrefix(got, test.want) {
				t.Errorf("choice %q, want %q", got, test.want)
			}
			if p.WorkspaceBytes() != test.workspace {
				t.Errorf("workspace %d, want %d", p.WorkspaceBytes(), test.workspace)
			}
			if want := 4<<20 + test.workspace; d.InUse() != want {
				t.Errorf("%d bytes in use, want %d: the memory of the trial must be free", d.InUse(), want)
			}
		})
	}
}

func TestWorkspaceThatDoesNotFit(t *testing.T) {
	t.Setenv("FAKE_BYTES", "6000000")
	t.Setenv("FAKE_ENGINES", "999:")
	d := openFake(t)
	_, resolve := arena(t, d, 5900000)
	_, err := d.Prepare([]device.Command{torchConvolution(tensor.Float32)}, resolve, exact)
	mustHave(t, err, "OUT_OF_MEMORY", "bytes needed")
}

func TestEqualConvolutionsShareAPlan(t *testing.T) {
	calls := logCalls(t)
	d := openFake(t)
	_, resolve := arena(t, d, 8<<20)
	same, moved, unaligned := torchConvolution(tensor.Float32), torchConvolution(tensor.Float32), torchConvolution(tensor.Float32)
	moved.X.Offset = 3 << 20
	unaligned.X.Offset = 4<<20 + 16
	p := prepare(t, d, resolve, exact, torchConvolution(tensor.Float32), same, moved, unaligned)
	heuristics, plans, packs, alignments := 0, 0, 0, []string{}
	for _, call := range calls() {
		switch {
		case strings.HasPrefix(call, "4.200 "):
			heuristics++
		case strings.HasPrefix(call, "5.401 "):
			plans++
		case strings.HasPrefix(call, "16.1003 "):
			packs++
		case strings.HasPrefix(call, "17.900 "):
			alignments = append(alignments, strings.TrimPrefix(call, "17.900 3: "))
		}
	}
	if heuristics != 2 || plans != 2 || packs != 2+4 {
		t.Errorf("%d heuristics, %d plans and %d packs for two signatures and four commands", heuristics, plans, packs)
	}
	if want := []string{"32", "32", "32", "16", "32", "32"}; !slices.Equal(alignments, want) {
		t.Errorf("alignments %v, want %v", alignments, want)
	}
	if err := p.Run(0, 4); err != nil {
		t.Fatal(err)
	}
	if nodes, err := p.Capture(); err != nil || nodes != 4 {
		t.Errorf("%d nodes, %v", nodes, err)
	}
}

// TestLinearCallsAreTorchs compares with cuBLASLt's log of torch.nn.functional.linear for [1,512] x [1000,512].
func TestLinearCallsAreTorchs(t *testing.T) {
	torch := []string{
		"operation compute 68 scale 0",
		"operation.3 = 1", "operation.4 = 0", "operation.7 = 4", "operation.8 = *",
		"matrix type 0 rows 512 cols 1000 ld 512", "matrix type 0 rows 512 cols 1 ld 512", "matrix type 0 rows 1000 cols 1 ld 1000",
	}
	preference := []string{
		"preference.1 = 1048576", "preference.5 = 256", "preference.6 = 256", "preference.7 = 256", "preference.8 = 256",
		"heuristic for 1, c is d 1",
	}
	matmul := "matmul alpha 1 beta 0 c is d 1 1 workspace 1 of 1048576"
	calls := logCalls(t)
	d := openFake(t)
	_, resolve := arena(t, d, 4<<20)
	p := prepare(t, d, resolve, exact, torchLinear(tensor.Float32, 1))
	if err := p.Run(0, 1); err != nil {
		t.Fatal(err)
	}
	want := slices.Concat(torch, preference, []string{matmul}, torch, []string{matmul}) // the trial, then the command
	if got := calls(); !slices.Equal(got, want) {
		t.Errorf("calls are\n%s\nPyTorch's are\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := p.Choices()[0]; !strings.HasPrefix(got, "cublasLt TN algo=13") {
		t.Errorf("choice %q", got)
	}
	if p.WorkspaceBytes() != linearWorkspace {
		t.Errorf("workspace %d", p.WorkspaceBytes())
	}
}

// TestLinearWithoutBias: PyTorch's addmm with a bias of one row that is a matrix, which it copies into d first.
func TestLinearWithoutBias(t *testing.T) {
	calls := logCalls(t)
	d := openFake(t)
	_, resolve := arena(t, d, 4<<20)
	l := torchLinear(tensor.Float32, 1)
	l.Bias, l.Factors = device.Tensor{}, &device.Factors{Alpha: 1.5, Beta: 1}
	if err := prepare(t, d, resolve, exact, l).Run(0, 1); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(calls(), "\n")
	for _, want := range []string{"operation.7 = 1\nmatrix", "preference.8 = 256", "matmul alpha 1.5 beta 1 c is d 1 1"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func torchLinear(dtype tensor.DType, m int64) *device.Linear {
	l := &device.Linear{
		A: contiguous(0, dtype, m, 512), B: contiguous(1<<20, dtype, 512, 1000),
		Bias: contiguous(512<<10, dtype, 1000), D: contiguous(600<<10, dtype, m, 1000),
	}
	l.B.Strides = []int64{1, 512} // weight.t()
	return l
}

func TestBatchNormCallsAreTorchs(t *testing.T) {
	calls := logCalls(t)
	d := openFake(t)
	_, resolve := arena(t, d, 4<<20)
	p := prepare(t, d, resolve, exact, torchBatchNorm())
	if err := p.Run(0, 1); err != nil {
		t.Fatal(err)
	}
	call := "batchnorm mode 1 alpha 1 beta 0 one descriptor 1 epsilon 1e-05"
	want := []string{"tensor 0: 1 64 40 40 / 102400 1600 40 1", "tensor 0: 1 64 1 1 / 64 1 1 1", call, call}
	if got := calls(); !slices.Equal(got, want) {
		t.Errorf("calls are\n%s\nPyTorch's are\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func torchBatchNorm() *device.BatchNorm {
	channel := func(offset int64) device.Tensor { return contiguous(offset, tensor.Float32, 64) }
	return &device.BatchNorm{
		X: contiguous(0, tensor.Float32, 1, 64, 40, 40), Y: contiguous(1<<20, tensor.Float32, 1, 64, 40, 40),
		Scale: channel(2 << 20), Bias: channel(2<<20 + 512), Mean: channel(2<<20 + 1024), Variance: channel(2<<20 + 1536),
		Epsilon: 1e-5,
	}
}
