// Package samebits is what the Python package of that name calls: gopy binds its exported functions, setup.py builds them
// into the extension samebits._native._samebits, and samebits/_calls.py is the one place that uses them.
//
// Its shape is that of the binding. Functions take and give int64, float64, bool and string alone, structures travel as
// JSON, and what lives on has a number: gopy's handles to Go values leak or crash when they are used too late. Every
// function recovers from panics, which would end the interpreter. Arrays are addresses: the Python side has checked their
// type, shape and layout, and keeps them alive until the call that names them is over.
//
// A call that may take long is a job. Python gets its number and asks again and again whether it is done, in between it
// looks at its signals; so Ctrl-C works while a kernel is compiled or a step runs. A job whose caller gave up touches the
// caller's memory no more.
package samebits

// The binding's generated code needs it, and `go mod tidy` must know.
import _ "github.com/go-python/gopy/gopyh"
