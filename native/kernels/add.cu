#include "prelude.cuh"
#include "elementwise.cuh"

// add_T(..., alpha) and add_number_T(..., other, alpha). Subtraction is the same with -alpha, as in PyTorch.
#define ENTRIES(T, suffix)                                             \
  MAP2(add, T, suffix, add<accumulate<T>>{alpha}, accumulate<T> alpha) \
  MAP1(add_number, T, suffix, (add_number<accumulate<T>>{other, alpha}), accumulate<T> other, accumulate<T> alpha)
EACH_FLOAT(ENTRIES)
MAP2_INTO(add_f32_bf16_strided, float, bf16, add<float>{alpha}, float alpha)
MAP2_INTO(add_f32_f16_strided, float, f16, add<float>{alpha}, float alpha)
MAP2(add, int64_t, i64, add_integers{alpha}, int64_t alpha)
MAP1(add_number, int64_t, i64, (add_integer{other, alpha}), int64_t other, int64_t alpha)
