// Package host is the CPU as a device: it compiles the same kernel text as package cuda with the system's C++ compiler
// and has convolution, batch norm and linear layers of its own. It exists to develop, test and try out; it never grants
// the CUDA flag. A capture copies the launch list, and a replay walks the copy.
//
// Results never depend on the number of threads or on the width of the CPU's vectors. They depend on libm where a kernel
// calls it.
//
// # Rules for kernels that run on both devices
//
//   - Include prelude.cuh first. Define entries by KERNEL or KERNEL_BOUNDS: others are not found here.
//   - Element-wise: GRID_STRIDE(i, n). On the GPU it strides; here the first thread of a block does the block's whole piece,
//     contiguous, so that the compiler vectorises the body. So the body must not depend on which thread runs it.
//   - Dynamic shared memory by DYN_SHARED(T, name). Types in shared memory have no constructors.
//   - Write fmaf where PyTorch's compiled code fuses and nowhere else: no compiler contracts here (-ffp-contract=off,
//     --fmad=false). Then both devices agree wherever only + - * /, fma and sqrt are used.
//   - Shuffle structs and reduce warps by the prelude's helpers: one wait instead of many, in the same order.
//   - __syncwarp wherever lanes communicate through memory; no waiting for a later block; no inline PTX, mma, cp.async,
//     cooperative groups or clusters without an #ifdef CUDA_HOST path.
//   - bf16 and fp16 are storage: convert, compute in float, convert once (ld, st, round_to).
//
// What differs from a GPU: threads run in a fixed order, so a missing barrier does not show (run compute-sanitizer's
// racecheck on a GPU); casts of floats out of an integer's range, shifts by 32 and integer division by zero; a wild
// address ends the process. A barrier that not all threads reach is an error that names block and thread, and so is __trap.
//
// Environment variables: CXX (the compiler), SAMEBITS_CACHE (a folder; default samebits in the user's cache folder),
// SAMEBITS_THREADS (default GOMAXPROCS).
package host
