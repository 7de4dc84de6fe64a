package ops

func init() { register(lowerResize("upsample_bicubic2d"), "aten::upsample_bicubic2d") }
