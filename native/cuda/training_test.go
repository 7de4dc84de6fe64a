package cuda

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

func channelsLast(t device.Tensor) device.Tensor {
	c, h, w := t.Sizes[1], t.Sizes[2], t.Sizes[3]
	t.Strides = []int64{c * h * w, 1, w * c, c}
	return t
}

// torchTraining is a batch norm of 4 images in training, and its gradient, with reserve bytes.
func torchTraining(dtype tensor.DType, reserve int64) (*device.BatchNormTraining, *device.BatchNormBackward) {
	image := func(place int64) device.Tensor { return contiguous(place<<20, dtype, 4, 64, 20, 20) }
	channel := func(place int64) device.Tensor { return contiguous(8<<20+512*place, tensor.Float32, 64) }
	r := contiguous(9<<20, tensor.Uint8, reserve)
	forward := &device.BatchNormTraining{
		X: image(0), Y: image(1), Scale: channel(0), Bias: channel(1), RunningMean: channel(2), RunningVariance: channel(3),
		SaveMean: channel(4), SaveInvstd: channel(5), Reserve: r, Momentum: 0.1, Epsilon: 1e-5,
	}
	return forward, &device.BatchNormBackward{
		X: image(0), DY: image(2), DX: image(3), Scale: channel(0), DScale: channel(6), DBias: channel(7),
		SaveMean: channel(4), SaveInvstd: channel(5), Reserve: r, Epsilon: 1e-5,
	}
}

func inChannelsLast(f *device.BatchNormTraining, b *device.BatchNormBackward) {
	for _, t := range []*device.Tensor{&f.X, &f.Y, &b.X, &b.DY, &b.DX} {
		*t = channelsLast(*t)
	}
}

// TestTrainingNormCallsAreTorchs holds the calls of ATen's native/cudnn/BatchNorm.cpp.
func TestTrainingNormCallsAreTorchs(t *testing.T) {
	calls := logCalls(t)
	d := openFake(t)
	_, resolve := arena(t, d, 10<<20)
	f, b := torchTraining(tensor.Float32, 16)
	p := prepare(t, d, resolve, exact, f, b)
	if err := p.Run(0, 2); err != nil {
		t.Fatal(err)
	}
	x, c := "tensor 0: 4 64 20 20 / 25600 400 20 1", "tensor 0: 1 64 1 1 / 64 1 1 1"
	forward := "norm forward mode 1 ops 0 alpha 1 beta 0 one descriptor 1 all given 1 momentum 0.1 epsilon 1e-05 workspace 1 of 1000 reserve 1 of 16"
	backward := "norm backward mode 1 ops 0 alpha 1 1 beta 0 0 one descriptor 1 all given 1 epsilon 1e-05 workspace 1 of 2000 reserve 1 of 16"
	want := []string{x, c, forward, x, c, backward, forward, backward} // each tried, then both run
	if got := calls(); !slices.Equal(got, want) {
		t.Errorf("calls are\n%s\nPyTorch's are\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if p.WorkspaceBytes() != 2000 {
		t.Errorf("workspace %d", p.WorkspaceBytes())
	}
	if nodes, err := p.Capture(); err != nil || nodes != 2 {
		t.Errorf("%d nodes, %v", nodes, err)
	}
}

func TestTrainingNormRefusals(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*device.BatchNormTraining, *device.BatchNormBackward)
		want   string
	}{
		{"reserve too small", func(f *device.BatchNormTraining, b *device.BatchNormBackward) { f.Reserve.Sizes[0] = 15 },
			"cuDNN wants a reserve of 16 bytes, the recording has 15"},
		{"reserve of channels last", inChannelsLast, "cuDNN wants a reserve of 64 bytes, the recording has 16"},
		{"reserve of floats", func(f *device.BatchNormTraining, b *device.BatchNormBackward) { f.Reserve.DType = tensor.Float32 },
			"reserve is float32"},
		{"bfloat16", func(f *device.BatchNormTraining, b *device.BatchNormBackward) { f.X.DType = tensor.BFloat16 }, "x is bfloat16"},
		{"another type of dy", func(f *device.BatchNormTraining, b *device.BatchNormBackward) { b.DY.DType = tensor.Float16 },
			"dy is float16 [4 64 20 20], x is float32"},
		{"another layout of dy", func(f *device.BatchNormTraining, b *device.BatchNormBackward) { b.DY = channelsLast(b.DY) },
			"dy has strides"},
		{"running mean", func(f *device.BatchNormTraining, b *device.BatchNormBackward) { f.RunningMean.Sizes = []int64{63} },
			"running mean is float32 [63]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := openFake(t)
			_, resolve := arena(t, d, 10<<20)
			f, b := torchTraining(tensor.Float32, 16)
			test.change(f, b)
			_, err := d.Prepare([]device.Command{f, b}, resolve, exact)
			mustHave(t, err, "BAD_COMMAND", test.want)
			if d.InUse() != 10<<20 {
				t.Errorf("%d bytes in use after a failed Prepare", d.InUse())
			}
		})
	}
	d := openFake(t)
	_, resolve := arena(t, d, 10<<20)
	f, _ := torchTraining(tensor.Float32, 0)
	f.Reserve.Pointer = device.Pointer{Storage: 9}
	_, err := d.Prepare([]device.Command{f}, func(p device.Pointer) uintptr {
		if p.Storage == 9 {
			return 0
		}
		return resolve(p)
	}, exact)
	mustHave(t, err, "the recording has 0") // an empty reserve needs no address
}

// TestPersistentNormsDoNotMeet: on different lanes the later one waits for the earlier one.
func TestPersistentNormsDoNotMeet(t *testing.T) {
	for _, last := range []bool{false, true} {
		d := openFake(t)
		_, resolve := arena(t, d, 10<<20)
		f, b := torchTraining(tensor.Float32, 64)
		if last {
			inChannelsLast(f, b)
		}
		p := prepare(t, d, resolve, device.Options{Schedule: &device.Schedule{
			Lanes: 2, Lane: []uint8{0, 1}, Waits: make([][]int32, 2),
		}}, f, b)
		path := filepath.Join(t.TempDir(), "streams")
		t.Setenv("FAKE_STREAMS", path)
		err := p.Run(0, 2)
		t.Setenv("FAKE_STREAMS", "")
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if waits := strings.Count(string(text), "2: wait"); waits != 1+int(toInt(last)) {
			t.Errorf("channels last %v: the second lane waits %d times:\n%s", last, waits, text)
		}
	}
}

func TestMatmulCallsAreTorchs(t *testing.T) {
	calls := logCalls(t)
	d := openFake(t)
	_, resolve := arena(t, d, 4<<20)
	single := &device.Matmul{A: contiguous(0, tensor.Float32, 4, 1000), B: contiguous(1<<20, tensor.Float32, 1000, 512),
		D: contiguous(512<<10, tensor.Float32, 4, 512)}
	half := &device.Matmul{A: contiguous(0, tensor.BFloat16, 4, 1000), B: contiguous(1<<20, tensor.BFloat16, 1000, 512),
		D: contiguous(512<<10, tensor.BFloat16, 4, 512)}
	half.A = device.Tensor{DType: tensor.BFloat16, Sizes: []int64{4, 1000}, Strides: []int64{1, 4}}
	p := prepare(t, d, resolve, exact, single, half)
	if err := p.Run(0, 2); err != nil {
		t.Fatal(err)
	}
	sgemm := "sgemm 0 0 m 512 n 4 k 1000 lda 512 ldb 1000 ldc 512 alpha 1 beta 0 mode 0 workspace 33554432"
	gemm := "gemm of 14 14 14 compute 68 algo 99 0 1 m 512 n 4 k 1000 lda 512 ldb 4 ldc 512 alpha 1 beta 0 mode 0 workspace 33554432"
	if got, want := calls(), []string{sgemm, gemm, sgemm, gemm}; !slices.Equal(got, want) {
		t.Errorf("calls are\n%s\nPyTorch's are\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got, want := p.Choices(), []string{"cublasSgemm NN 512x4x1000", "cublasGemmEx NT 512x4x1000"}; !slices.Equal(got, want) {
		t.Errorf("choices %q, want %q", got, want)
	}
	if p.WorkspaceBytes() != matmulWorkspace {
		t.Errorf("workspace %d", p.WorkspaceBytes())
	}
	calls = logCalls(t)
	tf32 := prepare(t, d, resolve, device.Options{AllowTF32: true}, single, half)
	if got := calls(); !strings.HasSuffix(got[0], "mode 3 workspace 33554432") || !strings.HasSuffix(got[1], "mode 0 workspace 33554432") {
		t.Errorf("with TF32: %q", got)
	}
	if err := tf32.Run(0, 2); err != nil {
		t.Fatal(err)
	}
}

// TestBatchCallsAreTorchs: bmm by PyTorch's prepare_batch_matrix_for_cublas, a batch of one by gemm.
func TestBatchCallsAreTorchs(t *testing.T) {
	heads := func(storage int64, dtype tensor.DType, sizes, strides []int64) device.Tensor {
		return device.Tensor{Pointer: device.Pointer{Offset: storage}, DType: dtype, Sizes: sizes, Strides: strides}
	}
	for _, test := range []struct {
		name    string
		command device.Command
		want    string
		choice  string
	}{
		{"queries and keys", &device.Matmul{A: heads(0, tensor.Float32, []int64{6, 50, 64}, []int64{64, 384, 1}),
			B: heads(1<<20, tensor.Float32, []int64{6, 64, 50}, []int64{64, 1, 384}), D: contiguous(512<<10, tensor.Float32, 6, 50, 50)},
			"sgemm 6 by 64 64 2500 1 0 m 50 n 50 k 64 lda 384 ldb 384 ldc 50 alpha 1 beta 0 mode 0 workspace 33554432",
			"cublasSgemmStridedBatched TN 50x50x64 of 6"},
		{"one factor for all", &device.Matmul{A: heads(0, tensor.BFloat16, []int64{4, 1, 128}, []int64{128, 128, 1}),
			B: heads(1<<20, tensor.BFloat16, []int64{4, 128, 96}, []int64{0, 1, 128}), D: contiguous(512<<10, tensor.BFloat16, 4, 1, 96),
			Factors: &device.Factors{Alpha: 2, Beta: 0.5}},
			"gemm of 14 14 14 compute 68 algo 99, 4 by 0 128 96 1 0 m 96 n 1 k 128 lda 128 ldb 128 ldc 96 alpha 2 beta 0.5 mode 0 workspace 33554432",
			"cublasGemmStridedBatchedEx TN 96x1x128 of 4"},
		{"one column", &device.Matmul{A: contiguous(0, tensor.Float16, 1, 192, 160), B: heads(1<<20, tensor.Float16, []int64{1, 160, 1}, []int64{160, 1, 160}),
			D: contiguous(512<<10, tensor.Float16, 1, 192, 1)},
			"gemm of 2 2 2 compute 68 algo 99 1 0 m 192 n 1 k 160 lda 160 ldb 160 ldc 192 alpha 1 beta 0 mode 0 workspace 33554432",
			"cublasGemmEx TN 192x1x160"},
		{"rows times a vector", &device.MatVec{A: contiguous(0, tensor.Float32, 120, 33), X: contiguous(1<<20, tensor.Float32, 33), D: contiguous(512<<10, tensor.Float32, 120)},
			"sgemv 1 0 m 33 n 120 k 0 lda 33 ldb 1 ldc 1 alpha 1 beta 0 mode 0 workspace 33554432", "cublasSgemv T 120x33"},
		{"columns times a vector", &device.MatVec{A: heads(0, tensor.Float32, []int64{120, 33}, []int64{1, 120}), X: heads(1<<20, tensor.Float32, []int64{33}, []int64{2}),
			D: contiguous(512<<10, tensor.Float32, 120)},
			"sgemv 0 0 m 120 n 33 k 0 lda 120 ldb 2 ldc 1 alpha 1 beta 0 mode 0 workspace 33554432", "cublasSgemv N 120x33"},
		{"rows of bfloat16 times a vector", &device.MatVec{A: contiguous(0, tensor.BFloat16, 120, 33), X: contiguous(1<<20, tensor.BFloat16, 33), D: contiguous(512<<10, tensor.BFloat16, 120)},
			"gemm of 14 14 14 compute 68 algo 99 0 0 m 1 n 120 k 33 lda 1 ldb 33 ldc 1 alpha 1 beta 0 mode 0 workspace 33554432", "cublasGemmEx NN 1x120x33"},
		{"columns of float16 times a vector", &device.MatVec{A: heads(0, tensor.Float16, []int64{120, 33}, []int64{1, 120}), X: contiguous(1<<20, tensor.Float16, 33), D: contiguous(512<<10, tensor.Float16, 120)},
			"gemm of 2 2 2 compute 68 algo 99 0 1 m 1 n 120 k 33 lda 1 ldb 120 ldc 1 alpha 1 beta 0 mode 0 workspace 33554432", "cublasGemmEx NT 1x120x33"},
	} {
		t.Run(test.name, func(t *testing.T) {
			calls := logCalls(t)
			d := openFake(t)
			_, resolve := arena(t, d, 4<<20)
			p := prepare(t, d, resolve, device.Options{AllowTF32: false}, test.command)
			if got := calls(); len(got) != 1 || got[0] != test.want {
				t.Errorf("calls %q\nwant  %q", got, test.want)
			}
			if got := p.Choices()[0]; got != test.choice {
				t.Errorf("choice %q, want %q", got, test.choice)
			}
		})
	}
	d := openFake(t)
	_, resolve := arena(t, d, 4<<20)
	for want, c := range map[string]device.Command{
		"a [2 4 8], b [3 8 6] and d [2 4 6] do not fit": &device.Matmul{A: contiguous(0, tensor.Float32, 2, 4, 8), B: contiguous(0, tensor.Float32, 3, 8, 6), D: contiguous(0, tensor.Float32, 2, 4, 6)},
		"factors have strides": &device.Matmul{A: heads(0, tensor.Float32, []int64{2, 4, 8}, []int64{100, 20, 2}), B: contiguous(0, tensor.Float32, 2, 8, 6),
			D: contiguous(0, tensor.Float32, 2, 4, 6)},
		"d has strides": &device.Matmul{A: contiguous(0, tensor.Float32, 2, 4, 8), B: contiguous(0, tensor.Float32, 2, 8, 6),
			D: heads(0, tensor.Float32, []int64{2, 4, 6}, []int64{100, 20, 2})},
		"a has strides [20 2]": &device.MatVec{A: heads(0, tensor.Float32, []int64{4, 8}, []int64{20, 2}), X: contiguous(0, tensor.Float32, 8), D: contiguous(0, tensor.Float32, 4)},
		"do not fit":           &device.MatVec{A: contiguous(0, tensor.Float32, 4, 8), X: contiguous(0, tensor.Float32, 9), D: contiguous(0, tensor.Float32, 4)},
	} {
		_, err := d.Prepare([]device.Command{c}, resolve, exact)
		mustHave(t, err, want)
	}
}

// TestMatmulsOnLanes: each lane's handle has a workspace of its own.
func TestMatmulsOnLanes(t *testing.T) {
	calls := logCalls(t)
	d := openFake(t)
	_, resolve := arena(t, d, 4<<20)
	c := &device.Matmul{A: contiguous(0, tensor.Float32, 4, 100), B: contiguous(1<<20, tensor.Float32, 100, 512),
		D: contiguous(512<<10, tensor.Float32, 4, 512)}
	p := prepare(t, d, resolve, device.Options{Schedule: &device.Schedule{
		Lanes: 3, Lane: []uint8{0, 2, 2}, Waits: make([][]int32, 3),
	}}, c, c, c)
	if p.WorkspaceBytes() != 2*matmulWorkspace {
		t.Errorf("workspace %d", p.WorkspaceBytes())
	}
	if err := p.Run(0, 3); err != nil {
		t.Fatal(err)
	}
	got := calls()
	if len(got) != 2+3 { // a trial on each lane
		t.Errorf("%d calls: %q", len(got), got)
	}
	for _, call := range got {
		if !strings.HasSuffix(call, "workspace 33554432") {
			t.Errorf("%q", call)
		}
	}
}

// TestDescribeMatmul holds leading dimensions where strides do not decide them, and the two layouts of a result.
func TestDescribeMatmul(t *testing.T) {
	for _, test := range []struct {
		name                   string
		a, b, d                device.Tensor
		swapped                bool
		transa, transb         bool
		m, n, k, lda, ldb, ldd int64
	}{
		{"gradient of an input", matrix(4, 1000, 1000, 1), matrix(1000, 512, 512, 1), matrix(4, 512, 512, 1), true, false, false, 512, 4, 1000, 512, 1000, 512},
		{"gradient of a weight", matrix(1000, 4, 1, 1000), matrix(4, 512, 512, 1), matrix(1000, 512, 512, 1), true, false, true, 512, 1000, 4, 512, 1000, 512},
		{"one row", matrix(1, 8, 1, 1), matrix(8, 6, 6, 1), matrix(1, 6, 6, 1), true, false, false, 6, 1, 8, 6, 8, 6},
		{"one column", matrix(4, 8, 8, 1), matrix(8, 1, 1, 1), matrix(4, 1, 1, 1), true, false, false, 1, 4, 8, 1, 8, 1},
		{"weight.t() of one column", matrix(4, 8, 8, 1), matrix(8, 1, 1, 8), matrix(4, 1, 1, 1), true, false, false, 1, 4, 8, 1, 8, 1},
		{"one term", matrix(4, 1, 1, 1), matrix(1, 6, 6, 1), matrix(4, 6, 6, 1), true, false, false, 6, 4, 1, 6, 1, 6},
		{"column-major result", matrix(4, 8, 8, 1), matrix(8, 6, 6, 1), matrix(4, 6, 1, 4), false, true, true, 4, 6, 8, 8, 6, 4},
		{"all column-major", matrix(4, 8, 1, 4), matrix(8, 6, 1, 8), matrix(4, 6, 1, 4), false, false, false, 4, 6, 8, 4, 8, 4},
		{"rows of a wider result", matrix(4, 8, 8, 1), matrix(8, 6, 6, 1), matrix(4, 6, 9, 1), true, false, false, 6, 4, 8, 6, 8, 9},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := describeMatmul(&device.Matmul{A: test.a, B: test.b, D: test.d}, exact)
			if err != nil {
				t.Fatal(err)
			}
			want := product{swapped: test.swapped, transa: test.transa, transb: test.transb, m: test.m, n: test.n, k: test.k,
				lda: test.lda, ldb: test.ldb, ldd: test.ldd}
			if got.product != want {
				t.Errorf("%+v\nwant %+v", got.product, want)
			}
		})
	}
	for _, test := range []struct {
		name    string
		a, b, d device.Tensor
		want    string
	}{
		{"shapes", matrix(4, 8, 8, 1), matrix(7, 6, 6, 1), matrix(4, 6, 6, 1), "do not fit"},
		{"strides that fit neither way", matrix(4, 8, 16, 2), matrix(8, 6, 6, 1), matrix(4, 6, 6, 1), "a has strides [16 2]"},
		{"result that fits neither way", matrix(4, 8, 8, 1), matrix(8, 6, 6, 1), matrix(4, 6, 12, 2), "d has strides [12 2]"},
		{"empty", matrix(0, 8, 8, 1), matrix(8, 6, 6, 1), matrix(0, 6, 6, 1), "a is empty"},
		{"too large", matrix(1, 1<<31, 1<<31, 1), matrix(1<<31, 2, 2, 1), matrix(1, 2, 2, 1), "too large"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := describeMatmul(&device.Matmul{A: test.a, B: test.b, D: test.d}, exact)
			mustHave(t, err, test.want)
		})
	}
}
