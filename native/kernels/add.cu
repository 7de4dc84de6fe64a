#include "prelude.cuh"
#include "elementwise.cuh"

// add_T(..., alpha) and add_number_T(..., other, alpha). Subtraction is the same with -alpha, as in PyTorch.
#define ENTRIES(T, suffix)                                                                                     \
  MAP2(add, T, suffix, add<number<T>>{(number<T>)alpha}, parameter<T> alpha)                                   \
  MAP1(add_number, T, suffix, (add_number<number<T>>{(number<T>)other, (number<T>)alpha}), parameter<T> other, \
       parameter<T> alpha)
EACH_FLOAT(ENTRIES)
EACH_INTEGER(ENTRIES)
MAP2_INTO(add_f32_bf16_strided, float, bf16, add<float>{alpha}, float alpha)
MAP2_INTO(add_f32_f16_strided, float, f16, add<float>{alpha}, float alpha)
