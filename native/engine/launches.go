package engine

import (
	"math"

	"samebits/bridge/arm"
	"samebits/native/device"
)

// LaunchList is what a step launches, in its order: eagerly and in a graph.
func (m *Model) LaunchList() arm.LaunchList {
	l := arm.LaunchList{Kind: make([]uint8, len(m.plan.Step))}
	numbers := map[string]uint8{}
	for i, c := range m.plan.Step {
		kind := launchKind(c)
		number, known := numbers[kind]
		if !known {
			number = uint8(min(len(l.Kinds), math.MaxUint8)) // more kinds than there are kernels share the last
			numbers[kind] = number
			if int(number) == len(l.Kinds) {
				l.Kinds = append(l.Kinds, kind)
			}
		}
		l.Kind[i] = number
	}
	if s := m.placement.Schedule; s != nil && len(s.Lane) == len(l.Kind) {
		l.Lane = append([]uint8(nil), s.Lane...)
	}
	return l
}

func launchKind(c device.Command) string {
	switch c := c.(type) {
	case *device.Kernel:
		return arm.KernelLaunch + " " + c.File
	case *device.Convolution:
		return arm.LibraryLaunch + " " + []string{"convolution", "convolution of inputs' gradients", "convolution of weights' gradients"}[c.Direction]
	case *device.BatchNorm:
		return arm.LibraryLaunch + " batch norm"
	case *device.BatchNormTraining:
		return arm.LibraryLaunch + " batch norm of training"
	case *device.BatchNormBackward:
		return arm.LibraryLaunch + " batch norm backward"
	case *device.Matmul:
		return arm.LibraryLaunch + " matrix product"
	case *device.MatVec:
		return arm.LibraryLaunch + " product with a vector"
	case *device.Linear:
		return arm.LibraryLaunch + " linear"
	case *device.Copy:
		return arm.MemoryLaunch + " copy"
	case *device.Fill:
		return arm.MemoryLaunch + " fill"
	}
	return "other"
}
