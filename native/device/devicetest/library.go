package devicetest

import (
	"encoding/binary"
	"slices"
	"testing"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

// The library commands are tried on small integers, whose results every order of additions gives exactly.

func rawFloats(x []float32) []byte {
	raw, err := binary.Append(nil, binary.LittleEndian, x)
	if err != nil {
		panic(err)
	}
	return raw
}

func integers(n, modulus int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i*7%modulus - modulus/2)
	}
	return x
}

func contiguous(p device.Pointer, sizes ...int64) device.Tensor {
	return device.Tensor{Pointer: p, DType: tensor.Float32, Sizes: sizes, Strides: tensor.ContiguousStrides(sizes)}
}

func libraryConvolution(t *testing.T, b *bench) {
	const n, ci, co, size, k = 2, 8, 16, 12, 3
	xs, ws := integers(n*ci*size*size, 11), integers(co*ci*k*k, 5)
	x, w, y := storage(b, xs), storage(b, ws), storage(b, make([]float32, n*co*size*size))
	c := &device.Convolution{
		X: contiguous(x, n, ci, size, size), W: contiguous(w, co, ci, k, k), Y: contiguous(y, n, co, size, size),
		Padding: []int64{1, 1}, Stride: []int64{1, 1}, Dilation: []int64{1, 1}, Groups: 1,
	}
	want := make([]float32, n*co*size*size)
	for i := range want {
		image, m, oy, ox := i/(co*size*size), i/(size*size)%co, i/size%size, i%size
		for j := range ci * k * k {
			c, ky, kx := j/(k*k), j/k%k, j%k
			iy, ix := oy+ky-1, ox+kx-1
			if iy >= 0 && iy < size && ix >= 0 && ix < size {
				want[i] += ws[m*ci*k*k+j] * xs[((image*ci+c)*size+iy)*size+ix]
			}
		}
	}
	p := b.run(c)
	if !slices.Equal(read[float32](b, y, len(want)), want) {
		t.Errorf("the convolution is wrong")
	}
	if _, err := p.Capture(); err != nil {
		t.Fatal(err)
	}
	b.must(b.storages[y.Storage].Fill(0, int64(4*len(want)), 0xff))
	b.must(p.Replay())
	b.must(p.Wait())
	if !slices.Equal(read[float32](b, y, len(want)), want) {
		t.Errorf("the replayed convolution is wrong")
	}
}

func libraryLinear(t *testing.T, b *bench) {
	const m, k, n = 5, 64, 24
	as, bs, biases := integers(m*k, 9), integers(n*k, 7), integers(n, 13)
	a, w, bias, d := storage(b, as), storage(b, bs), storage(b, biases), storage(b, make([]float32, m*n))
	// b is the transpose of a row-major weight, as PyTorch's linear has it.
	columnMajor := device.Tensor{Pointer: w, DType: tensor.Float32, Sizes: []int64{k, n}, Strides: []int64{1, k}}
	b.run(&device.Linear{A: contiguous(a, m, k), B: columnMajor, Bias: contiguous(bias, n), D: contiguous(d, m, n)})
	want := make([]float32, m*n)
	for i := range want {
		want[i] = biases[i%n]
		for j := range k {
			want[i] += as[i/n*k+j] * bs[i%n*k+j]
		}
	}
	if got := read[float32](b, d, m*n); !slices.Equal(got, want) {
		t.Errorf("linear %v, wanted %v", got, want)
	}
}

func libraryBatchNorm(t *testing.T, b *bench) {
	const n, c, plane = 2, 3, 25
	xs := integers(n*c*plane, 21)
	scale, bias, mean, variance := []float32{1, 2, -3}, []float32{0, 5, 1}, []float32{2, 0, -1}, []float32{1, 1, 1}
	x, y := storage(b, xs), storage(b, make([]float32, len(xs)))
	b.run(&device.BatchNorm{
		X: contiguous(x, n, c, 5, 5), Y: contiguous(y, n, c, 5, 5), Scale: contiguous(storage(b, scale), c), Bias: contiguous(storage(b, bias), c),
		Mean: contiguous(storage(b, mean), c), Variance: contiguous(storage(b, variance), c), Epsilon: 3,
	})
	want := make([]float32, len(xs))
	for i, v := range xs {
		ch := i / plane % c
		want[i] = scale[ch]*(v-mean[ch])/2 + bias[ch] // 2 = sqrt(1 + 3)
	}
	if got := read[float32](b, y, len(xs)); !slices.Equal(got, want) {
		t.Errorf("batch norm %v, wanted %v", got, want)
	}
}

// product is alpha*a*b + beta*d of element (i, j).
func product(a, b func(i, j int) float32, depth int, i, j int, alpha, beta, d float32) float32 {
	sum := float32(0)
	for k := range depth {
		sum += a(i, k) * b(k, j)
	}
	return alpha*sum + beta*d
}

// Products of a batch whose factors lie between those of others, as the heads of attention do, with alpha and beta.
func libraryMatmul(t *testing.T, b *bench) {
	const batch, m, k, n = 3, 5, 16, 7
	as, bs, ds := integers(m*batch*k, 9), integers(n*batch*k, 7), integers(batch*m*n, 5)
	heads := func(p device.Pointer, sizes, strides []int64) device.Tensor {
		return device.Tensor{Pointer: p, DType: tensor.Float32, Sizes: sizes, Strides: strides}
	}
	for _, factors := range []*device.Factors{nil, {Alpha: 3, Beta: -2}, {Alpha: 2}} {
		a, w, d := storage(b, as), storage(b, bs), storage(b, ds)
		alpha, beta := float32(1), float32(0)
		if factors != nil {
			alpha, beta = float32(factors.Alpha), float32(factors.Beta)
		}
		b.run(&device.Matmul{A: heads(a, []int64{batch, m, k}, []int64{k, batch * k, 1}),
			B: heads(w, []int64{batch, k, n}, []int64{k, 1, batch * k}), D: contiguous(d, batch, m, n), Factors: factors})
		want := make([]float32, batch*m*n)
		for i := range want {
			h := i / (m * n)
			want[i] = product(func(r, c int) float32 { return as[r*batch*k+h*k+c] }, func(r, c int) float32 { return bs[c*batch*k+h*k+r] },
				k, i/n%m, i%n, alpha, beta, ds[i])
		}
		if got := read[float32](b, d, batch*m*n); !slices.Equal(got, want) {
			t.Errorf("products %v, wanted %v", got, want)
		}
		// One of them alone.
		d = storage(b, ds)
		b.run(&device.Matmul{A: heads(a, []int64{m, k}, []int64{batch * k, 1}), B: heads(w, []int64{k, n}, []int64{1, batch * k}),
			D: contiguous(d, m, n), Factors: factors})
		if got := read[float32](b, d, m*n); !slices.Equal(got, want[:m*n]) {
			t.Errorf("product %v, wanted %v", got, want[:m*n])
		}
	}
}

func libraryMatVec(t *testing.T, b *bench) {
	const m, k = 9, 33
	as, xs := integers(m*k, 9), integers(2*k, 7)
	a, x := storage(b, as), storage(b, xs)
	for _, rowMajor := range []bool{true, false} {
		matrix, step := contiguous(a, m, k), 1
		if !rowMajor {
			matrix.Strides, step = []int64{1, m}, 2
		}
		vector := contiguous(x, k)
		vector.Strides = []int64{int64(step)}
		d := storage(b, make([]float32, m))
		b.run(&device.MatVec{A: matrix, X: vector, D: contiguous(d, m)})
		want := make([]float32, m)
		for i := range want {
			want[i] = product(func(r, c int) float32 { return as[r*int(matrix.Strides[0])+c*int(matrix.Strides[1])] },
				func(r, _ int) float32 { return xs[r*step] }, k, i, 0, 1, 0, 0)
		}
		if got := read[float32](b, d, m); !slices.Equal(got, want) {
			t.Errorf("row-major %v: %v, wanted %v", rowMajor, got, want)
		}
	}
}

// Without a bias a linear adds to what its result held.
func libraryLinearAdds(t *testing.T, b *bench) {
	const m, k, n = 5, 64, 24
	as, bs, ds := integers(m*k, 9), integers(k*n, 7), integers(m*n, 13)
	a, w, d := storage(b, as), storage(b, bs), storage(b, ds)
	b.run(&device.Linear{A: contiguous(a, m, k), B: contiguous(w, k, n), D: contiguous(d, m, n), Factors: &device.Factors{Alpha: 2}})
	want := make([]float32, m*n)
	for i := range want {
		want[i] = product(func(r, c int) float32 { return as[r*k+c] }, func(r, c int) float32 { return bs[r*n+c] }, k, i/n, i%n, 2, 1, ds[i])
	}
	if got := read[float32](b, d, m*n); !slices.Equal(got, want) {
		t.Errorf("linear %v, wanted %v", got, want)
	}
}
