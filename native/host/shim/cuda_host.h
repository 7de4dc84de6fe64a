// cuda_host.h: compiles CUDA C++ kernel text as C++17 and runs it on the CPU. The compiler includes it before the
// kernel file (-include). A kernel library is this header and one kernel file; it needs nothing but libm.
//
//   qualifiers, types   here and vector_types.h
//   fiber.h             threads of a block as fibers, and their scheduler
//   launch_blocks.h     runs the blocks of a launch; the table of entries; KERNEL, DYN_SHARED, GRID_STRIDE
//   warp.h              barriers, shuffles, votes
//   atomics.h           atomic operations
//   half_types.h        bf16 and fp16 as storage
//   device_math.h       bit casts, conversions, arithmetic with CUDA's names and semantics
#pragma once
#define CUDA_HOST 1
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <limits>
#include <type_traits>
#include <utility>
#include "launch.h"
#if !defined(__x86_64__) || !defined(__AVX2__) || !defined(__FMA__) || !defined(__F16C__)
#error "kernels for the host need x86-64 with AVX2, FMA and F16C"
#endif

#define __host__
#define __device__
#define __global__ _Pragma("GCC error \"define entries by KERNEL of prelude.cuh\"")
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __constant__ static const
// A block stays on one OS thread, so what its threads share is local to that. At block scope thread_local implies
// static.
#define __shared__ thread_local
#define CH_TL static __thread
#define CH_COLD __attribute__((noinline, cold))

#include "vector_types.h"
#include "fiber.h"
#include "launch_blocks.h"
#include "warp.h"
#include "atomics.h"
#include "half_types.h"
#include "device_math.h"
