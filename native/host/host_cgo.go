//go:build linux && amd64

package host

// The C++ files may be compiled with contraction on, for cgo does not pass -ffp-contract: no expression in them
// multiplies and adds without saying fma.

// #cgo CFLAGS: -std=gnu11 -O2 -Wall
// #cgo CXXFLAGS: -std=c++17 -O3 -march=x86-64-v3 -fno-exceptions -fno-rtti -Wall
// #cgo LDFLAGS: -Wl,--as-needed -lm -ldl -lpthread
// #include "host.h"
import "C"
