package device

// What follows is for those who test that steps stay right whatever happens around them. A Program or a Device offers it where
// there is such a thing: a CPU has no streams.

// Switcher is what a Program may offer.
type Switcher interface {
	// SwitchStream goes on on another stream than before, behind what is on that one, without waiting. A captured graph stays.
	SwitchStream() error
}

// Breaker is what a Program may offer.
type Breaker interface {
	// BreakCapture makes the next Capture fail in its midst, unless Release comes before it.
	BreakCapture()
}

// Bustler is what a Device may offer.
type Bustler interface {
	// Bustle does once what may go on in any thread while another one captures: it takes and frees memory, records an event
	// and asks for it.
	Bustle() error
}

// Elsewhere is what a Device may offer that shares threads with others.
type Elsewhere interface {
	// MakeOtherCurrent makes another device current in the calling thread: the problem NO_SECOND_DEVICE where there is none.
	MakeOtherCurrent() error
	// KeepCurrent gives a function that makes current again, in the calling thread, what is current there now.
	KeepCurrent() (restore func())
}
