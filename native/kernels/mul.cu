#include "prelude.cuh"
#include "elementwise.cuh"

#define ENTRIES(T, suffix)    \
  MAP2(mul, T, suffix, mul()) \
  MAP1(mul_number, T, suffix, mul_number<number<T>>{(number<T>)other}, parameter<T> other)
EACH_FLOAT(ENTRIES)
EACH_INTEGER(ENTRIES)
MAP2_INTO(mul_f32_bf16_strided, float, bf16, mul())
MAP2_INTO(mul_f32_f16_strided, float, f16, mul())
