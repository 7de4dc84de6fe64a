#include "prelude.cuh"
#include "elementwise.cuh"

// start + i * step, fused in floating point, as PyTorch's compiled code is.
#define ENTRIES(T, suffix)                                                                     \
  KERNEL(arange_##suffix, int64_t n, T* y, parameter<T> start, parameter<T> step) {            \
    GRID_STRIDE(i, n) { y[i] = cast_to<T>::from(multiply_add((parameter<T>)i, step, start)); } \
  }
EACH_FLOAT(ENTRIES)
ENTRIES(int64_t, i64)
ENTRIES(int32_t, i32)
ENTRIES(uint8_t, u8)
