package ops

import (
	"math"

	"samebits/bridge/recording"
	"samebits/native/device"
)

func init() { register(lowerGridSampler, "aten::grid_sampler_2d") }

// channelsEach is CHANNELS_EACH of kernels/grid_sampler_2d.cu.
const channelsEach = 4

func lowerGridSampler(b *Builder, op *recording.Operation) error {
	input, err := ValueArg(op, "input")
	if err != nil {
		return err
	}
	grid, err := ValueArg(op, "grid")
	if err != nil {
		return err
	}
	out, err := Result(op, 0)
	if err != nil {
		return err
	}
	in, err := planeOf(op, b.Value(input), argumentPath(op, "input"))
	if err != nil {
		return err
	}
	points, err := planeOf(op, b.Value(grid), argumentPath(op, "grid"))
	if err != nil {
		return err
	}
	to, err := planeOf(op, b.Value(out), "results[0]")
	if err != nil {
		return err
	}
	x, g, y := b.Value(input), b.Value(grid), b.Value(out)
	switch {
	case len(x.Sizes) != 4 || len(g.Sizes) != 4 || len(y.Sizes) != 4:
		return Refuse(op, "results[0]", "an image %v and a grid %v give %v; all must have 4 dimensions", x.Sizes, g.Sizes, y.Sizes)
	case points.sizes[0] != in.sizes[0] || points.sizes[3] != 2 ||
		to.sizes != [4]int64{in.sizes[0], in.sizes[1], points.sizes[1], points.sizes[2]}:
		return Refuse(op, "results[0]", "an image %v and a grid %v give no %v", x.Sizes, g.Sizes, y.Sizes)
	case x.DType != y.DType || g.DType != y.DType:
		return Refuse(op, "results[0]", "an image of %s and a grid of %s give %s", x.DType, g.DType, y.DType)
	}
	mode, err := choice(op, "interpolation_mode", "bilinear", "nearest", "bicubic")
	if err != nil {
		return err
	}
	padding, err := IntArg(op, "padding_mode")
	if err != nil {
		return err
	}
	if padding < 0 || padding > 2 {
		return Refuse(op, argumentPath(op, "padding_mode"), "padding_mode is %d, wanted 0 to 2", padding)
	}
	corners, err := BoolArg(op, "align_corners")
	if err != nil {
		return err
	}
	suffix, err := floatSuffix(op, y)
	if err != nil || y.Numel() == 0 {
		return err
	}
	if suffix == "f64" {
		return Refuse(op, "results[0]", "sampling of float64")
	}
	if x.Numel() == 0 {
		return Refuse(op, argumentPath(op, "input"), "an empty tensor gives %v", y.Sizes)
	}
	args := append([]any{b.Pointer(input)}, in.args()...)
	args = append(append(args, b.Pointer(grid)), points.args()...)
	args = append(append(args, b.Pointer(out)), to.args()...)
	args = append(args, int32(to.sizes[0]), int32(to.sizes[1]), int32(to.sizes[2]), int32(to.sizes[3]), int32(0),
		int32(in.sizes[2]), int32(in.sizes[3]), int32(padding), flag(corners))
	groups := (to.sizes[1] + channelsEach - 1) / channelsEach
	if groups > math.MaxUint16 {
		return Refuse(op, argumentPath(op, "input"), "%d channels, at most %d are done", to.sizes[1], math.MaxUint16*channelsEach)
	}
	launch := blocks(to.sizes[0] * to.sizes[2] * to.sizes[3])
	launch[1] = uint32(groups)
	b.Emit(&device.Kernel{File: "grid_sampler_2d", Entry: "grid_sampler_2d_" + mode + "_" + suffix, Grid: launch,
		Block: [3]uint32{threads, 1, 1}, Args: args})
	return nil
}

// choice reads an integer that numbers names.
func choice(op *recording.Operation, name string, names ...string) (string, error) {
	n, err := IntArg(op, name)
	if err != nil {
		return "", err
	}
	if n < 0 || n >= int64(len(names)) {
		return "", Refuse(op, argumentPath(op, name), "%s is %d, wanted 0 to %d", name, n, len(names)-1)
	}
	return names[n], nil
}
