package arm

import "errors"

// Why a call was refused, beside the problems it names. A plugin wraps one of them (errors.Join or %w) around its
// diag.Problems; on the host's side errors.Is finds it again.
var (
	ErrUnimplemented = errors.New("not implemented by this plugin") // what a plugin does not do
	ErrWrongOrder    = errors.New("called out of order")            // Prepare before Load
	ErrOutOfMemory   = errors.New("out of memory")                  // of the device or the machine
)
