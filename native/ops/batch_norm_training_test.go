package ops

import (
	"fmt"
	"math"
	"testing"

	"samebits/bridge/tensor"
)

// trained is a batch norm in training: tensors, and what the backward pass takes and gives.
type trained struct {
	normed
	savedMean, savedInvstd int
	dy, dx, dweight, dbias int
}

const testMomentum = 0.1

func newTrained(t *testing.T, dtype tensor.DType, sizes, strides []int64) *trained {
	n := &trained{normed: newNormed(t, dtype, sizes, strides, strides)}
	channels := sizes[1:2]
	n.dy, n.dx = n.tensor(dtype, sizes, strides), n.tensor(dtype, sizes, strides)
	for _, p := range []*int{&n.savedMean, &n.savedInvstd, &n.dweight, &n.dbias} {
		*p = n.tensor(tensor.Float32, channels, nil)
	}
	state := uint64(77)
	n.setFloats(n.dy, randoms(&state, int(tensor.Numel(sizes))))
	return n
}

// image gives element i of a channel in the order images, pixels.
func (n *trained) channel(value, c int) []float32 {
	sizes := n.recording.Values[value].Sizes
	inner := int(tensor.Numel(sizes[2:]))
	var list []float32
	for i, v := range n.floats(value) {
		if i/inner%int(sizes[1]) == c {
			list = append(list, float32(v))
		}
	}
	return list
}

// blockOf gives the elements that each of 512 threads visits, in order.
func blockOf(images, inner int) [][]int {
	block := batchNormBlock(int64(inner))
	width, height := int(block[0]), int(block[1])
	var threads [][]int
	for thread := range width * height {
		var list []int
		for n := thread / width; n < images; n += height {
			for i := thread % width; i < inner; i += width {
				list = append(list, n*inner+i)
			}
		}
		threads = append(threads, list)
	}
	return threads
}

type welford struct {
	mean, m2 float32
	n        int
}

func (a welford) merge(b welford) welford {
	factor := 1 / max(float32(1), float32(a.n+b.n))
	d := a.mean - b.mean
	square := d * d
	square *= float32(a.n)
	square *= float32(b.n)
	m2 := a.m2 + fma32(square, factor, b.m2)
	return welford{fma32(float32(a.n), a.mean, float32(b.n)*b.mean) * factor, m2, a.n + b.n}
}

// butterfly merges 32 lanes, 1, 2, 4, 8 and 16 apart, and gives lane 0's.
func butterfly(lanes []welford) welford {
	lanes = append(append([]welford(nil), lanes...), make([]welford, 32-len(lanes))...)
	for apart := 1; apart < 32; apart *= 2 {
		next := make([]welford, 32)
		for l := range lanes {
			next[l] = lanes[l].merge(lanes[l^apart])
		}
		lanes = next
	}
	return lanes[0]
}

func statisticsOf(values []float32, images, inner int) welford {
	var warps, lanes []welford
	for _, visits := range blockOf(images, inner) {
		var m welford
		for _, i := range visits {
			d := values[i] - m.mean
			m.n++
			m.mean += d / float32(m.n)
			m.m2 = fma32(d, values[i]-m.mean, m.m2)
		}
		if lanes = append(lanes, m); len(lanes) == 32 {
			warps, lanes = append(warps, butterfly(lanes)), nil
		}
	}
	return butterfly(warps)
}

// Statistics, running statistics and results have the bits of the one order of operations; 1/sqrt is compared within one
// ULP, for its bits are the device's.
func TestNativeBatchNormTraining(t *testing.T) {
	tests := []struct {
		name  string
		sizes []int64
	}{
		{"a plane for a warp", []int64{3, 2, 5, 5}},
		{"several images a block", []int64{20, 3, 7, 7}},
		{"more pixels than threads", []int64{2, 2, 30, 40}},
		{"a sequence", []int64{4, 3, 100}},
		{"two elements", []int64{1, 3, 1, 2}},
	}
	for _, test := range tests {
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16} {
			t.Run(fmt.Sprintf("%s/%s", test.name, dtype), func(t *testing.T) {
				n := newTrained(t, dtype, test.sizes, nil)
				runningMean, runningVariance := n.floats(n.mean), n.floats(n.varian)
				n.run(operation("aten::native_batch_norm", args("input", n.x, "weight", n.weight, "bias", n.bias,
					"running_mean", n.mean, "running_var", n.varian, "training", true, "momentum", testMomentum, "eps", 1e-5),
					results(n.y, n.savedMean, n.savedInvstd)))
				images, inner := int(test.sizes[0]), int(tensor.Numel(test.sizes[2:]))
				for c := range int(test.sizes[1]) {
					m := statisticsOf(n.channel(n.x, c), images, inner)
					count := float64(images * inner)
					variance, keep := m.m2/float32(m.n), 1-float32(testMomentum)
					wantMean := fma32(m.mean, testMomentum, keep*float32(runningMean[c]))
					wantVariance := fma32(variance*float32(count/(count-1)), testMomentum, keep*float32(runningVariance[c]))
					n.same("save_mean", n.savedMean, c, m.mean)
					n.same("running_mean", n.mean, c, wantMean)
					n.same("running_var", n.varian, c, wantVariance)
					want := encode(tensor.Float32, 1/math.Sqrt(float64(variance+1e-5)))
					if got := n.bits(n.savedInvstd)[c]; ulps(tensor.Float32, got, want) > 1 {
						t.Errorf("save_invstd[%d] is %#x, wanted %#x", c, got, want)
					}
					n.checkNormalised(c)
				}
			})
		}
	}
}

func (n *trained) same(name string, value, c int, want float32) {
	n.t.Helper()
	if got := float32(n.floats(value)[c]); got != want {
		n.t.Errorf("%s[%d] is %v, wanted %v", name, c, got, want)
	}
}

// checkNormalised compares a channel of y with fma(invstd, weight*(x-mean), bias) of the saved statistics.
func (n *trained) checkNormalised(c int) {
	n.t.Helper()
	p := func(value int) float32 { return float32(n.floats(value)[c]) }
	mean, invstd, weight, bias := p(n.savedMean), p(n.savedInvstd), p(n.weight), p(n.bias)
	dtype, got := n.recording.Values[n.y].DType, n.channel(n.y, c)
	for i, x := range n.channel(n.x, c) {
		want := float32(decode(dtype, encode(dtype, float64(fma32(invstd, weight*(x-mean), bias)))))
		if got[i] != want {
			n.t.Fatalf("channel %d: element %d is %v, wanted %v", c, i, got[i], want)
		}
	}
}

// tree adds 32 lanes, 16, 8, 4, 2 and 1 apart; what comes from another lane is rounded first. It gives lane 0's.
func tree(lanes []float32, round func(float32) float32) float32 {
	lanes = append(append([]float32(nil), lanes...), make([]float32, 32-len(lanes))...)
	for apart := 16; apart > 0; apart /= 2 {
		for l := range apart {
			lanes[l] += round(lanes[l+apart])
		}
	}
	return lanes[0]
}

// The gradients have the bits of the one order of operations.
func TestNativeBatchNormBackward(t *testing.T) {
	tests := []struct {
		name    string
		sizes   []int64
		weight  bool
		dweight bool
	}{
		{"a plane for a warp", []int64{3, 2, 5, 5}, true, true},
		{"several images a block", []int64{20, 3, 7, 7}, true, true},
		{"more pixels than threads", []int64{2, 2, 30, 40}, true, true},
		{"no weight", []int64{2, 3, 6, 6}, false, false},
	}
	for _, test := range tests {
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16} {
			t.Run(fmt.Sprintf("%s/%s", test.name, dtype), func(t *testing.T) {
				n := newTrained(t, dtype, test.sizes, nil)
				state := uint64(3)
				n.setFloats(n.savedMean, randoms(&state, int(test.sizes[1])))
				n.setFloats(n.savedInvstd, []float64{0.7, 1.3, 0.2})
				weight := any(n.weight)
				if !test.weight {
					weight = nil
				}
				out := results(n.dx, n.dweight, n.dbias)
				if !test.dweight {
					out[1], out[2] = argument(nil), argument(nil)
				}
				n.run(operation("aten::native_batch_norm_backward", args("grad_out", n.dy, "input", n.x, "weight", weight,
					"running_mean", n.mean, "running_var", n.varian, "save_mean", n.savedMean, "save_invstd", n.savedInvstd,
					"train", true, "eps", 1e-5, "output_mask", nil), out))
				for c := range int(test.sizes[1]) {
					n.checkGradients(c, test.weight, test.dweight)
				}
			})
		}
	}
}

func (n *trained) checkGradients(c int, weighted, wanted bool) {
	n.t.Helper()
	dtype, sizes := n.recording.Values[n.x].DType, n.recording.Values[n.x].Sizes
	round := func(v float32) float32 { return float32(decode(dtype, encode(dtype, float64(v)))) }
	x, dy, mean, invstd := n.channel(n.x, c), n.channel(n.dy, c), float32(n.floats(n.savedMean)[c]), float32(n.floats(n.savedInvstd)[c])
	images, inner := int(sizes[0]), int(tensor.Numel(sizes[2:]))
	var warps, lanes [2][]float32
	for _, visits := range blockOf(images, inner) {
		var sum, dot float32
		for _, i := range visits {
			sum += dy[i]
			if dtype == tensor.Float32 {
				dot = fma32(dy[i], x[i]-mean, dot)
			} else {
				dot += round(dy[i] * (x[i] - mean))
			}
		}
		lanes[0], lanes[1] = append(lanes[0], sum), append(lanes[1], dot)
		if len(lanes[0]) == 32 {
			for k := range lanes {
				warps[k], lanes[k] = append(warps[k], tree(lanes[k], round)), nil
			}
		}
	}
	sum, dot := tree(warps[0], round), tree(warps[1], round)
	norm := 1 / float32(images*inner)
	slope := dot * norm
	slope *= invstd
	slope *= invstd
	average, factor := sum*norm, invstd
	if weighted {
		factor *= float32(n.floats(n.weight)[c])
	}
	if wanted {
		n.same("grad_weight", n.dweight, c, dot*invstd)
		n.same("grad_bias", n.dbias, c, sum)
	}
	for i, got := range n.channel(n.dx, c) {
		if want := round((fma32(-slope, x[i]-mean, dy[i]) - average) * factor); got != want {
			n.t.Fatalf("channel %d: grad_input %d is %v, wanted %v", c, i, got, want)
		}
	}
}

// cuDNN's formulas, by a device of any kind: in float64 up to a few ULPs.
func TestCudnnBatchNormTraining(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float16} {
		for _, strides := range [][]int64{nil, channelsLastStrides([]int64{4, 3, 5, 6})} {
			t.Run(fmt.Sprintf("%s %v", dtype, strides), func(t *testing.T) {
				n := newTrained(t, dtype, []int64{4, 3, 5, 6}, strides)
				reserve := n.tensor(tensor.Uint8, []int64{256}, nil)
				runningMean, runningVariance := n.floats(n.mean), n.floats(n.varian)
				n.unneeded(reserve)
				n.run(operation("aten::cudnn_batch_norm", args("input", n.x, "weight", n.weight, "bias", n.bias,
					"running_mean", n.mean, "running_var", n.varian, "training", true, "exponential_average_factor", testMomentum,
					"epsilon", 1e-5), results(n.y, n.savedMean, n.savedInvstd, reserve)))
				n.run(operation("aten::cudnn_batch_norm_backward", args("input", n.x, "grad_output", n.dy, "weight", n.weight,
					"running_mean", n.mean, "running_var", n.varian, "save_mean", n.savedMean, "save_var", n.savedInvstd,
					"epsilon", 1e-5, "reserveSpace", reserve), results(n.dx, n.dweight, n.dbias)))
				for c := range 3 {
					n.checkFloat64(c, runningMean[c], runningVariance[c])
				}
			})
		}
	}
}

func (n *trained) checkFloat64(c int, runningMean, runningVariance float64) {
	n.t.Helper()
	dtype := n.recording.Values[n.x].DType
	x, y, dy, dx := n.channel(n.x, c), n.channel(n.y, c), n.channel(n.dy, c), n.channel(n.dx, c)
	count := float64(len(x))
	var mean, variance, sum, dot, size float64
	for _, v := range x {
		mean += float64(v) / count
	}
	for i, v := range x {
		d := float64(v) - mean
		variance += d * d / count
		sum += float64(dy[i])
		dot += float64(dy[i]) * d
		size += math.Abs(float64(dy[i])) * (1 + math.Abs(d))
	}
	invstd, weight, bias := 1/math.Sqrt(variance+1e-5), n.floats(n.weight)[c], n.floats(n.bias)[c]
	close := func(name string, got, want, relative, scale float64) {
		n.t.Helper()
		if !(math.Abs(got-want) <= relative*scale) {
			n.t.Fatalf("%s of channel %d is %v, wanted %v", name, c, got, want)
		}
	}
	close("save_mean", n.floats(n.savedMean)[c], mean, 0x1p-21, 1+math.Abs(mean))
	close("save_var", n.floats(n.savedInvstd)[c], invstd, 0x1p-20, invstd)
	close("running_mean", n.floats(n.mean)[c], 0.9*runningMean+0.1*mean, 0x1p-20, 1+math.Abs(mean))
	close("running_var", n.floats(n.varian)[c], 0.9*runningVariance+0.1*variance*count/(count-1), 0x1p-20, 1+runningVariance+variance)
	close("grad_weight", n.floats(n.dweight)[c], dot*invstd, 0x1p-19, size*invstd)
	close("grad_bias", n.floats(n.dbias)[c], sum, 0x1p-19, size)
	relative := map[tensor.DType]float64{tensor.Float32: 0x1p-18, tensor.Float16: 0x1p-9}[dtype]
	for i := range x {
		centred := (float64(x[i]) - mean) * invstd
		close("y", float64(y[i]), weight*centred+bias, relative, 1+math.Abs(weight*centred)+math.Abs(bias))
		want := weight * invstd * (float64(dy[i]) - sum/count - centred*invstd*dot/count)
		close("grad_input", float64(dx[i]), want, relative, math.Abs(weight*invstd)*(1+math.Abs(float64(dy[i]))+math.Abs(sum/count)+math.Abs(centred*invstd*dot/count)))
	}
}

// Kinds of tensors that PyTorch gives to other kernels.
func TestBatchNormTrainingRefusals(t *testing.T) {
	sizes := []int64{2, 3, 4, 5}
	tests := []struct {
		name           string
		sizes, strides []int64
	}{
		{"channels-last", sizes, channelsLastStrides(sizes)},
		{"one pixel", []int64{4, 3, 1, 1}, nil},
		{"gaps", sizes, []int64{120, 40, 10, 2}},
	}
	for _, test := range tests {
		n := newTrained(t, tensor.BFloat16, test.sizes, test.strides)
		_, err := n.lower(operation("aten::native_batch_norm", args("input", n.x, "weight", n.weight, "bias", n.bias,
			"running_mean", n.mean, "running_var", n.varian, "training", true, "momentum", testMomentum, "eps", 1e-5),
			results(n.y, n.savedMean, n.savedInvstd)))
		if err == nil {
			t.Errorf("%s was not refused", test.name)
		}
		_, err = n.lower(operation("aten::native_batch_norm_backward", args("grad_out", n.dy, "input", n.x, "weight", n.weight,
			"running_mean", n.mean, "running_var", n.varian, "save_mean", n.savedMean, "save_invstd", n.savedInvstd,
			"train", true, "eps", 1e-5, "output_mask", nil), results(n.dx, n.dweight, n.dbias)))
		if err == nil {
			t.Errorf("%s: the gradients were not refused", test.name)
		}
	}
}

// The planner must know that running statistics change.
func TestBatchNormWrites(t *testing.T) {
	for _, name := range []string{"aten::native_batch_norm", "aten::cudnn_batch_norm"} {
		known, _ := Lookup(name)
		for _, training := range []bool{false, true} {
			op := operation(name, args("running_mean", 7, "running_var", 9, "training", training), nil)
			if got := fmt.Sprint(known.Writes(&op)); got != map[bool]string{false: "[]", true: "[7 9]"}[training] {
				t.Errorf("%s with training %v writes %s", name, training, got)
			}
		}
	}
}
