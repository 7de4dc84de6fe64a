package ops

import (
	"fmt"
	"math"
	"testing"

	"samebits/bridge/tensor"
)

// sampler is grid_sampler_2d in float64, at places that are float32 as PyTorch has them.
type sampler struct {
	mode, padding int64
	corners       bool
}

func (s sampler) place(v float32, size int64) float32 {
	if s.corners {
		return (v + 1) / 2 * float32(size-1)
	}
	return fma32(v+1, float32(size), -1) / 2
}

// pad folds or clips a place; ok is false for one that no int can hold.
func (s sampler) pad(place float64, size int64) (padded float64, ok bool) {
	if s.padding == 2 {
		low, span := -0.5, float64(size)
		if s.corners {
			low, span = 0, float64(size-1)
		}
		if span == 0 {
			place = 0
		} else {
			from := float64(float32(math.Abs(place - low)))
			place = math.Mod(from, span)
			// Beyond the ints the count of flips is the greatest one, which is odd.
			if math.Mod(min(math.Floor(from/span), math.MaxInt32), 2) != 0 {
				place = span - place
			}
			place += low
		}
	}
	if s.padding != 0 {
		if math.IsNaN(place) {
			place = 0
		}
		place = min(max(place, 0), float64(size-1))
	}
	return place, math.Abs(place) <= 1<<31
}

// shares gives the pixels along one dimension; one outside is -1.
func (s sampler) shares(v float32, size int64) []share {
	inside := func(p float64, ok bool) int64 {
		if !ok || p < 0 || p > float64(size-1) {
			return -1
		}
		return int64(p)
	}
	place := float64(s.place(v, size))
	if s.mode == 2 {
		first := math.Floor(place)
		var list []share
		for i := -1.0; i <= 2; i++ {
			list = append(list, share{inside(s.pad(first+i, size)), keys(place-(first+i), -0.75)})
		}
		return list
	}
	place, ok := s.pad(place, size)
	if s.mode == 1 {
		return []share{{inside(math.RoundToEven(place), ok), 1}}
	}
	first := math.Floor(place)
	return []share{{inside(first, ok), first + 1 - place}, {inside(first+1, ok), place - first}}
}

func TestGridSampler(t *testing.T) {
	points := []float64{0, -1, 1, 0.5, -0.25, 0.75, 1.25, -1.5, 3.25, 0.999, -0.3, 0.1, 0.7, -0.9, 0.33, -2.7}
	far := append([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 3e38, -3e38, 1e10, -1e10}, points...)
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16} {
		for _, c := range []struct {
			name        string
			image, grid operand
			points      []float64
		}{
			{"rows", run(2, 3, 5, 7), run(2, 3, 4, 2), points},
			{"heads", operand{[]int64{3, 6, 4, 5}, []int64{6, 1, 90, 18}, 0}, operand{[]int64{3, 5, 2, 2}, []int64{8, 24, 2, 1}, 4}, points},
			{"one row", run(1, 2, 1, 6), run(1, 4, 4, 2), points},
			{"coordinates apart", run(1, 5, 4, 4), operand{[]int64{1, 5, 5, 2}, []int64{50, 5, 1, 25}, 0}, points},
			{"far away", run(1, 2, 4, 4), operand{[]int64{1, 23, 2, 2}, []int64{94, 2, 1, 47}, 0}, far},
		} {
			for mode := range int64(3) {
				if mode == 2 && c.name == "far away" {
					continue // weights that are no numbers; cases of goldens/ops have them
				}
				for padding := range int64(3) {
					for _, corners := range []bool{false, true} {
						t.Run(fmt.Sprintf("%s/%s/%d/%d/%v", dtype, c.name, mode, padding, corners), func(t *testing.T) {
							b := newBench(t)
							x, grid := c.image.in(b, dtype), c.grid.in(b, dtype)
							b.setFloats(x, []float64{1, 1.9, 1.37, 1.5, 1.11, 1.77, 1.03, 1.625, 1.25, 1.4, 1.8})
							b.setFloats(grid, c.points)
							n, g := c.image.sizes, c.grid.sizes
							y := b.tensor(dtype, []int64{n[0], n[1], g[1], g[2]}, nil)
							expected := sampler{mode, padding, corners}.sample(b, x, grid)
							b.run(operation("aten::grid_sampler_2d", args("input", x, "grid", grid, "interpolation_mode", mode,
								"padding_mode", padding, "align_corners", corners), results(y)))
							// Places of bicubic pixels are rounded to the type, but these are small whole numbers. Cubic weights
							// of both signs lose some digits.
							most := []uint64{8, 0, 64}[mode]
							if dtype != tensor.Float32 {
								most = []uint64{1, 0, 2}[mode]
							}
							expectBits(t, dtype, b.bits(y), expected, most)
						})
					}
				}
			}
		}
	}
}

func (s sampler) sample(b *bench, x, grid int) []uint64 {
	image, v := b.floats(x), &b.recording.Values[x]
	points, n, g := b.floats(grid), v.Sizes, b.recording.Values[grid].Sizes
	var list []uint64
	for plane := range n[0] * n[1] {
		for at := range g[1] * g[2] {
			point := points[(plane/n[1]*g[1]*g[2]+at)*2:]
			sum := 0.0
			for _, row := range s.shares(float32(point[1]), n[2]) {
				for _, column := range s.shares(float32(point[0]), n[3]) {
					if row.pixel >= 0 && column.pixel >= 0 {
						sum += row.weight * column.weight * image[(plane*n[2]+row.pixel)*n[3]+column.pixel]
					}
				}
			}
			list = append(list, encode(v.DType, sum))
		}
	}
	return list
}

func TestGridSamplerRefusals(t *testing.T) {
	b := newBench(t)
	float := func(sizes ...int64) int { return b.tensor(tensor.Float32, sizes, nil) }
	x, grid, y := float(1, 2, 4, 4), float(1, 3, 3, 2), float(1, 2, 3, 3)
	half := b.tensor(tensor.Float16, []int64{1, 3, 3, 2}, nil)
	for _, c := range []struct {
		name          string
		input, grid   int
		mode, padding int64
		out           int
		path          string
	}{
		{"another size", x, grid, 0, 0, float(1, 2, 3, 4), "results[0]"},
		{"three coordinates", x, float(1, 3, 3, 3), 0, 0, y, "results[0]"},
		{"another batch", x, float(2, 3, 3, 2), 0, 0, y, "results[0]"},
		{"another type", x, half, 0, 0, y, "results[0]"},
		{"no image", float(1, 2, 0, 4), grid, 0, 0, y, "arguments[0]"},
		{"mode", x, grid, 3, 0, y, "arguments[2]"},
		{"padding", x, grid, 0, -1, y, "arguments[3]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			expectRefusal(t, b, operation("aten::grid_sampler_2d", args("input", c.input, "grid", c.grid, "interpolation_mode", c.mode,
				"padding_mode", c.padding, "align_corners", false), results(c.out)), c.path)
		})
	}
}
