#include "prelude.cuh"
#include "reduce.cuh"

template <class N> struct total : adding<N> {
  __device__ N project(N a) const { return a; }
};

REDUCE_ENTRIES(sum_f32, float, 4, total<float>())
REDUCE_ENTRIES(sum_bf16, bf16, 8, total<float>())
REDUCE_ENTRIES(sum_f16, f16, 8, total<float>())
// Sums of integers have the same bits in every order.
REDUCE_INTO(sum_i64, int64_t, int64_t, 4, total<int64_t>())
REDUCE_INTO(sum_bool, truth, int64_t, 4, total<int64_t>())
