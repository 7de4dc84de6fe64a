package ops

func init() { register(lowerResize("upsample_bicubic2d", nil), "aten::upsample_bicubic2d") }
