package ops

func init() { register(lowerResize("upsample_bilinear2d"), "aten::upsample_bilinear2d") }
