package ops

import (
	"math"

	"samebits/bridge/recording"
)

// resizing is what operations that resize images have in common.
type resizing struct {
	self, out     int
	in, to        plane
	rows, columns float32 // input pixels for an output pixel
	corners       bool    // the centres of the corner pixels lie on each other
	suffix        string
}

func readResizing(b *Builder, op *recording.Operation) (r resizing, err error) {
	if r.self, r.out, r.in, r.to, err = planes(b, op); err != nil {
		return r, err
	}
	if r.corners, err = BoolArg(op, "align_corners"); err != nil {
		return r, err
	}
	if r.rows, err = r.scale(op, "scales_h", 2); err != nil {
		return r, err
	}
	if r.columns, err = r.scale(op, "scales_w", 3); err != nil {
		return r, err
	}
	if r.suffix, err = floatSuffix(op, b.Value(r.out)); err != nil {
		return r, err
	}
	if r.suffix == "f64" {
		return r, Refuse(op, "results[0]", "resizing of float64")
	}
	if b.Value(r.self).Numel() == 0 && b.Value(r.out).Numel() > 0 {
		return r, Refuse(op, argumentPath(op, "self"), "an empty tensor gives %v", b.Value(r.out).Sizes)
	}
	return r, nil
}

// scale is PyTorch's area_pixel_compute_scale.
func (r *resizing) scale(op *recording.Operation, name string, d int) (float32, error) {
	if !r.corners {
		return resizeScale(op, name, r.in.sizes[d], r.to.sizes[d])
	}
	if r.to.sizes[d] <= 1 {
		return 0, nil
	}
	return float32(r.in.sizes[d]-1) / float32(r.to.sizes[d]-1), nil
}

// launch emits a kernel on both images; more are the parameters after OUTPUTS.
func (r *resizing) launch(b *Builder, file, entry string, more ...any) {
	args := append([]any{b.Pointer(r.self)}, r.in.args()...)
	args = append(append(args, b.Pointer(r.out)), r.to.args()...)
	b.launchOutputs(file, entry+"_"+r.suffix, r.to, channelsLast(b.Value(r.out)), args, more...)
}

// lowerResize is for kernels that take sizes, scales and the corners' flag. choose gives the entry, if it is not called like
// the file. Where no size changes PyTorch copies.
func lowerResize(file string, choose func(*Builder, *resizing) string) Lower {
	return func(b *Builder, op *recording.Operation) error {
		r, err := readResizing(b, op)
		if err != nil || b.Value(r.out).Numel() == 0 {
			return err
		}
		if r.in.sizes == r.to.sizes {
			return copyTensor(b, op, b.Tensor(r.out), b.Tensor(r.self))
		}
		entry := file
		if choose != nil {
			entry = choose(b, &r)
		}
		r.launch(b, file, entry, int32(r.in.sizes[2]), int32(r.in.sizes[3]), r.rows, r.columns, flag(r.corners))
		return nil
	}
}

// reach is how far a filter of that many pixels looks to either side, and the length of its table of weights.
func reach(pixels int, scale float32) (support float32, most int32) {
	support = float32(pixels) / 2
	if scale >= 1 {
		support *= scale
	}
	return support, 2*int32(math.Ceil(float64(support))) + 1
}
