package device

// Pointers gives every place that a command reads or writes.
func Pointers(c Command) []Pointer {
	switch c := c.(type) {
	case *Kernel:
		var list []Pointer
		for _, a := range c.Args {
			if p, ok := a.(Pointer); ok {
				list = append(list, p)
			}
		}
		return list
	case *Convolution:
		return places(c.X, c.W, c.Y)
	case *BatchNorm:
		return places(c.X, c.Y, c.Scale, c.Bias, c.Mean, c.Variance)
	case *BatchNormTraining:
		return places(c.X, c.Y, c.Scale, c.Bias, c.RunningMean, c.RunningVariance, c.SaveMean, c.SaveInvstd, c.Reserve)
	case *BatchNormBackward:
		return places(c.X, c.DY, c.DX, c.Scale, c.DScale, c.DBias, c.SaveMean, c.SaveInvstd, c.Reserve)
	case *Matmul:
		return places(c.A, c.B, c.D)
	case *MatVec:
		return places(c.A, c.X, c.D)
	case *Linear:
		if c.Bias.Sizes == nil {
			return places(c.A, c.B, c.D)
		}
		return places(c.A, c.B, c.Bias, c.D)
	case *Copy:
		return []Pointer{c.To, c.From}
	case *Fill:
		return []Pointer{c.To}
	}
	panic("device: Pointers knows not all commands")
}

func places(tensors ...Tensor) []Pointer {
	list := make([]Pointer, len(tensors))
	for i, t := range tensors {
		list[i] = t.Pointer
	}
	return list
}
