package cuda

/*
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"

	"samebits/bridge/diag"
)

// Error is a status that one of NVIDIA's libraries gave.
type Error struct {
	Library string // driver, NVRTC, cuDNN, cuBLAS, cuBLASLt
	Code    uint32 // in the library's own numbers
	Text    string // the call and the library's words
	Command int    // index in the launch list, or -1
}

func (e *Error) Error() string { return e.Library + ": " + e.Text }

var libraryNames = map[C.int]string{
	C.SB_LOADER: "dynamic linker", C.SB_CUDA: "driver", C.SB_NVRTC: "NVRTC", C.SB_CUDNN: "cuDNN",
	C.SB_CUBLAS: "cuBLAS", C.SB_CUBLASLT: "cuBLASLt",
}

// lost are the driver's errors after which a context answers every call with the same error.
var lost = map[uint32]bool{
	4:   true, // DEINITIALIZED
	46:  true, // DEVICE_UNAVAILABLE
	214: true, // ECC_UNCORRECTABLE
	220: true, // NVLINK_UNCORRECTABLE
	226: true, // CONTAINED
	700: true, // ILLEGAL_ADDRESS
	702: true, // LAUNCH_TIMEOUT
	709: true, // CONTEXT_IS_DESTROYED
	710: true, // ASSERT
	714: true, // HARDWARE_STACK_ERROR
	715: true, // ILLEGAL_INSTRUCTION
	716: true, // MISALIGNED_ADDRESS
	717: true, // INVALID_ADDRESS_SPACE
	718: true, // INVALID_PC
	719: true, // LAUNCH_FAILED
	721: true, // TENSOR_MEMORY_LEAK
}

// failure turns what the C layer wrote into an error. A lost device becomes a problem for people: only a new process
// helps.
func failure(e *C.sb_error) error {
	err := &Error{
		Library: libraryNames[e.library],
		Code:    uint32(e.code),
		Text:    C.GoString(&e.text[0]),
		Command: int(e.command),
	}
	if e.library == C.SB_CUDA && lost[err.Code] {
		return diag.Problems{{
			Reason:  "DEVICE_LOST",
			Summary: err.Error(),
			Detail:  lostDetail(err.Code),
			Path:    commandPath(err.Command),
		}}
	}
	return err
}

// lostDetail says what can be done about a lost device. Kernels assert one thing, that indices are in range
// (kernels/bounds.cuh): then weights or inputs are at fault, not the machine.
func lostDetail(code uint32) string {
	const (
		assertFailed = 710
		detail       = "the CUDA context of this process is unusable; start a new process"
	)
	if code == assertFailed {
		return "an index is out of range, which weights, constants or inputs gave to a lookup; nothing outside of the tensor was read; " + detail
	}
	return detail
}

func commandPath(i int) string {
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("commands[%d]", i)
}

// isLost reports whether err says that the context is unusable.
func isLost(err error) bool {
	problems, ok := diag.Of(err)
	return ok && len(problems) > 0 && problems[0].Reason == "DEVICE_LOST"
}

// driverCode gives the driver's status in err, or 0 if there is none.
func driverCode(err error) uint32 {
	var e *Error
	if errors.As(err, &e) && e.Library == libraryNames[C.SB_CUDA] {
		return e.Code
	}
	return 0
}
