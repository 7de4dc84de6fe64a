#include "prelude.cuh"
#include "elementwise.cuh"

#define ENTRIES(T, suffix)    \
  MAP2(mul, T, suffix, mul()) \
  MAP1(mul_number, T, suffix, mul_number<accumulate<T>>{other}, accumulate<T> other)
EACH_FLOAT(ENTRIES)
MAP2_INTO(mul_f32_bf16_strided, float, bf16, mul())
MAP2_INTO(mul_f32_f16_strided, float, f16, mul())
