package ops

import (
	"samebits/bridge/recording"
	"samebits/native/device"
)

func init() {
	register(lowerAntialiased("bilinear", 2), "aten::_upsample_bilinear2d_aa")
	register(lowerAntialiased("bicubic", 4), "aten::_upsample_bicubic2d_aa")
}

// lowerAntialiased computes the weights of each output row and column once, when the program is loaded: nothing but
// sizes and scales decides about them. pixels is the width of the filter.
func lowerAntialiased(filter string, pixels int) Lower {
	return func(b *Builder, op *recording.Operation) error {
		r, err := readResizing(b, op)
		if err != nil || b.Value(r.out).Numel() == 0 {
			return err
		}
		supportH, mostH := reach(pixels, r.rows)
		supportW, mostW := reach(pixels, r.columns)
		height, width := r.to.sizes[2], r.to.sizes[3]
		rowBytes := height * int64(2+mostH) * 4
		rows := b.Precompute(rowBytes+width*int64(2+mostW)*4, nil, func(to device.Pointer) {
			columns := to
			columns.Offset += rowBytes
			b.launch("upsample_aa2d", filter+"_weights_"+r.suffix, height+width, []any{to, columns,
				int32(r.in.sizes[2]), int32(r.in.sizes[3]), int32(height), int32(width),
				r.rows, r.columns, supportH, supportW, mostH, mostW})
		})
		columns := rows
		columns.Offset += rowBytes
		r.launch(b, "upsample_aa2d", "upsample_aa2d", rows, columns, mostH, mostW)
		return nil
	}
}
