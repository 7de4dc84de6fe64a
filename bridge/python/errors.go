package samebits

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"syscall"

	"samebits/bridge/diag"
)

// Codes are the kinds of errors that Python tells apart; samebits/_errors.py has an exception for each.
const (
	codeRecording   = "RECORDING"   // the recording is torn or unsound
	codeWeights     = "WEIGHTS"     // the weights are, or do not fit the recording
	codeCheckpoint  = "CHECKPOINT"  // a checkpoint is, or does not fit
	codeUnsupported = "UNSUPPORTED" // the engine does not do what the recording wants
	codeUncertified = "UNCERTIFIED" // no certificate lets a graph be replayed
	codeDevice      = "DEVICE"      // the device is missing, or failed
	codeMemory      = "MEMORY"      // it has no room
	codeInput       = "INPUT"       // a value that was passed is wrong
	codeClosed      = "CLOSED"      // the object was closed
	codeFile        = "FILE"        // a file could not be written
	codeInternal    = "INTERNAL"    // a mistake of ours
)

// codeOf finds the code of reasons that may come up at any time.
var codeOf = map[string]string{
	"OUT_OF_MEMORY":         codeMemory,
	"UNKNOWN_OPERATION":     codeUnsupported,
	"UNKNOWN_KERNEL":        codeUnsupported,
	"OTHER_TORCH":           codeUnsupported,
	"UNSUPPORTED":           codeUnsupported,
	"UNSUPPORTED_OPTIMIZER": codeUnsupported,
	"NO_ENGINE":             codeUnsupported,
	"MISSING_ARGUMENT":      codeRecording,
	"WRONG_ARGUMENT":        codeRecording,
	"MISSING_RESULT":        codeRecording,
	"BAD_RECORDING":         codeRecording,
	"OTHER_RUN":             codeRecording,
	"STATE_SIZE":            codeRecording,
	"WRONG_MODE":            codeRecording,
	"MISSING_WEIGHT":        codeWeights,
	"WRONG_WEIGHT":          codeWeights,
	"BAD_CHECKPOINT":        codeCheckpoint,
	"LABEL_OUT_OF_RANGE":    codeInput,
	"WRONG_HYPER":           codeInput,
	"OTHER_FAMILY":          codeRecording,
	"WRONG_GRAPH_MODE":      codeInput,
	"NO_RECORDING":          codeInput,
	"GRAPH_LIMIT":           codeInput,
}

// coded is an error that says its code.
type coded struct {
	code string
	err  error
}

func (c *coded) Error() string { return c.err.Error() }
func (c *coded) Unwrap() error { return c.err }

// as gives err a code, unless it has one or its reasons say another.
func as(code string, err error) error {
	if err == nil {
		return nil
	}
	var known *coded
	if errors.As(err, &known) {
		return err
	}
	if problems, ok := diag.Of(err); ok {
		for _, p := range problems {
			if better, ok := codeOf[p.Reason]; ok {
				return &coded{better, err}
			}
		}
	}
	return &coded{code, err}
}

// problem is diag.Problem for Python.
type problem struct {
	Reason  string `json:"reason"`
	Summary string `json:"summary"`
	Detail  string `json:"detail"`
	Path    string `json:"path"`
}

// fail gives an error the text that samebits/_errors.py takes apart: its code, a colon and JSON. JSON, because a C string
// ends at a NUL and must be UTF-8.
func fail(err error) error {
	if err == nil {
		return nil
	}
	code := codeInternal
	var known *coded
	if errors.As(err, &known) {
		code = known.code
	}
	text := struct {
		Message  string    `json:"message"`
		Problems []problem `json:"problems"`
		Errno    int       `json:"errno"` // of the system, or 0
	}{Message: err.Error(), Problems: []problem{}}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		text.Errno = int(errno)
	}
	if problems, ok := diag.Of(err); ok {
		for _, p := range problems {
			text.Problems = append(text.Problems, problem(p))
		}
	}
	return fmt.Errorf("%s: %s", code, asJSON(text))
}

// asJSON cannot fail for what this package passes.
func asJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// fromJSON reads what samebits/_calls.py wrote.
func fromJSON(text string, v any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return as(codeInternal, fmt.Errorf("the arguments of a call are no sound JSON: %w", err))
	}
	return nil
}

// guard turns a panic into an error. Deferred in every function that Python calls, and in every job.
func guard(err *error) {
	if p := recover(); p != nil {
		*err = as(codeInternal, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	}
}

// finish is guard for exported functions: their errors leave for Python.
func finish(err *error) {
	if p := recover(); p != nil {
		*err = as(codeInternal, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	}
	*err = fail(*err)
}
