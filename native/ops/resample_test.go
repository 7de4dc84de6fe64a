package ops

import (
	"fmt"
	"math"
	"testing"

	"samebits/bridge/tensor"
)

// share is a pixel's part in an output pixel.
type share struct {
	pixel  int64
	weight float64
}

// resizer gives the pixels along one dimension that an output pixel is made of. Places are float32 as PyTorch has them;
// what follows is in float64.
type resizer func(at, size int64, scale float32, corners bool) []share

var resizers = map[string]resizer{
	"aten::upsample_bilinear2d": func(at, size int64, scale float32, corners bool) []share {
		place := placeOf(at, scale, corners)
		if !corners {
			place = max(place, 0)
		}
		first := int64(place)
		return []share{{first, 1 - (place - float64(first))}, {min(first+1, size-1), place - float64(first)}}
	},
	"aten::upsample_bicubic2d": func(at, size int64, scale float32, corners bool) []share {
		place := placeOf(at, scale, corners)
		first := math.Floor(place)
		var list []share
		for i := -1.0; i <= 2; i++ {
			list = append(list, share{min(max(int64(first+i), 0), size-1), keys(place-(first+i), -0.75)})
		}
		return list
	},
	"aten::_upsample_bilinear2d_aa": antialiased(1, func(x float64) float64 { return max(1-math.Abs(x), 0) }),
	"aten::_upsample_bicubic2d_aa":  antialiased(2, func(x float64) float64 { return keys(x, -0.5) }),
}

func placeOf(at int64, scale float32, corners bool) float64 {
	if corners {
		return float64(float32(at) * scale)
	}
	return float64(fma32(float32(at)+0.5, scale, -0.5))
}

// keys is the cubic convolution kernel.
func keys(x, a float64) float64 {
	switch x = math.Abs(x); {
	case x < 1:
		return ((a+2)*x-(a+3))*x*x + 1
	case x < 2:
		return ((a*x-5*a)*x+8*a)*x - 4*a
	}
	return 0
}

func antialiased(support float32, filter func(float64) float64) resizer {
	return func(at, size int64, scale float32, _ bool) []share {
		wide := max(scale, 1)
		low := fma32(float32(at)+0.5, scale, -support*wide)
		high := fma32(float32(at)+0.5, scale, support*wide)
		var list []share
		sum := 0.0
		for p := max(int64(low+0.5), 0); p < min(int64(high+0.5), size); p++ {
			w := filter((float64(p) + 0.5 - (float64(at)+0.5)*float64(scale)) / float64(wide))
			list = append(list, share{p, w})
			sum += w
		}
		for i := range list {
			list[i].weight /= sum
		}
		return list
	}
}

func TestResize(t *testing.T) {
	for name, resizer := range resizers {
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16} {
			for _, c := range []struct {
				name          string
				input         operand
				height, width int64
				scale         any
				last          bool
			}{
				{"twice", run(1, 3, 5, 6), 10, 12, nil, false},
				{"twice by scales", run(2, 3, 5, 6), 10, 12, 2.0, false},
				{"odd ratio", run(1, 2, 7, 10), 11, 23, nil, false},
				{"smaller", run(1, 2, 23, 19), 8, 5, nil, false},
				{"scale that is not the ratio", run(1, 2, 10, 10), 17, 17, 1.75, false},
				{"to one", run(1, 2, 6, 5), 1, 1, nil, false},
				{"from one", run(1, 2, 1, 1), 3, 4, nil, false},
				{"slice", operand{[]int64{2, 2, 4, 4}, []int64{96, 16, 4, 1}, 16}, 7, 9, nil, false},
				{"channels last", operand{[]int64{2, 16, 3, 4}, []int64{192, 1, 64, 16}, 0}, 6, 8, nil, true},
				{"three dimensions", run(3, 5, 6), 7, 7, nil, false},
			} {
				for _, corners := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/%s/%v", name, dtype, c.name, corners), func(t *testing.T) {
						b := newBench(t)
						x := c.input.in(b, dtype)
						// One sign only: what is left of numbers that cancel has few digits.
						b.setFloats(x, []float64{1, 1.9, 1.37, 1.5, 1.11, 1.77, 1.03, 1.625, 1.25, 1.4, 1.8})
						n := c.input.sizes
						d := len(n) - 2
						sizes := append(append([]int64{}, n[:d]...), c.height, c.width)
						out := run(sizes...)
						if c.last {
							out.strides = []int64{c.height * c.width * n[1], 1, c.width * n[1], n[1]}
						}
						y := out.in(b, dtype)
						scale := func(in, out int64) float32 {
							switch f, ok := c.scale.(float64); {
							case corners && out <= 1:
								return 0
							case corners:
								return float32(in-1) / float32(out-1)
							case ok:
								return float32(1 / f)
							}
							return float32(in) / float32(out)
						}
						values := b.floats(x)
						var expected []uint64
						for plane := range tensor.Numel(n[:d]) {
							for h := range c.height {
								for w := range c.width {
									sum := 0.0
									for _, row := range resizer(h, n[d], scale(n[d], c.height), corners) {
										for _, column := range resizer(w, n[d+1], scale(n[d+1], c.width), corners) {
											sum += row.weight * column.weight * values[(plane*n[d]+row.pixel)*n[d+1]+column.pixel]
										}
									}
									expected = append(expected, encode(dtype, sum))
								}
							}
						}
						b.run(operation(name, args("self", x, "output_size", []int64{c.height, c.width}, "align_corners", corners,
							"scales_h", c.scale, "scales_w", c.scale), results(y)))
						most := uint64(16) // of float32, whose weights are rounded too
						if dtype != tensor.Float32 {
							most = 4
						}
						expectBits(t, dtype, b.bits(y), expected, most)
					})
				}
			}
		}
	}
}

// Where no size changes PyTorch copies, and a NaN keeps its bits.
func TestResizeToTheSame(t *testing.T) {
	for _, name := range []string{"aten::upsample_bilinear2d", "aten::upsample_bicubic2d", "aten::_upsample_nearest_exact2d"} {
		b := newBench(t)
		x, y := b.tensor(tensor.BFloat16, []int64{1, 2, 3, 3}, nil), b.tensor(tensor.BFloat16, []int64{1, 2, 3, 3}, nil)
		b.setBits(x, []uint64{0x7f81, 0xffc3, 0x8000, 0x0001, 0x7f80})
		want := b.bits(x)
		b.run(operation(name, args("self", x, "output_size", []int64{3, 3}, "align_corners", false, "scales_h", nil, "scales_w", nil), results(y)))
		if got := b.bits(y); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %x, want %x", name, got, want)
		}
	}
}

func TestResizeRefusals(t *testing.T) {
	b := newBench(t)
	x, y := b.tensor(tensor.Float32, []int64{1, 2, 4, 4}, nil), b.tensor(tensor.Float32, []int64{1, 3, 8, 8}, nil)
	wide, far := b.tensor(tensor.Float64, []int64{1, 2, 4, 4}, nil), b.tensor(tensor.Float64, []int64{1, 2, 8, 8}, nil)
	empty, some := b.tensor(tensor.Float32, []int64{1, 2, 0, 4}, nil), b.tensor(tensor.Float32, []int64{1, 2, 8, 8}, nil)
	for name := range resizers {
		resize := func(self, out int) []any { return []any{self, out} }
		for path, pair := range map[string][]any{"results[0]": resize(x, y), "arguments[0]": resize(empty, some)} {
			expectRefusal(t, b, operation(name, args("self", pair[0], "output_size", []int64{8, 8}, "align_corners", false,
				"scales_h", nil, "scales_w", nil), results(pair[1].(int))), path)
		}
		expectRefusal(t, b, operation(name, args("self", wide, "output_size", []int64{8, 8}, "align_corners", false,
			"scales_h", nil, "scales_w", nil), results(far)), "results[0]")
	}
}
