package arm

import "fmt"

// LaunchList is what one step of an arm launches, in the order in which it does. It is for reports.
type LaunchList struct {
	// Kinds are names: kernel silu, library convolution, memory copy.
	Kinds []string
	Kind  []uint8 // by launch: the number of its kind
	Lane  []uint8 // by launch: what is on other lanes may run beside it; none: all is on one
}

// The first words of kinds.
const (
	KernelLaunch  = "kernel"  // one of the engine's own
	LibraryLaunch = "library" // a call of cuDNN or cuBLAS
	MemoryLaunch  = "memory"  // a copy or a fill
)

// Check says how a list is none.
func (l LaunchList) Check() error {
	if len(l.Lane) != 0 && len(l.Lane) != len(l.Kind) {
		return fmt.Errorf("lanes of %d launches, and there are %d", len(l.Lane), len(l.Kind))
	}
	for i, k := range l.Kind {
		if int(k) >= len(l.Kinds) {
			return fmt.Errorf("launch %d is of kind %d, and there are %d", i, k, len(l.Kinds))
		}
	}
	return nil
}
