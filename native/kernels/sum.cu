#include "prelude.cuh"
#include "reduce.cuh"

struct total {
  typedef float number;
  __device__ float combine(float a, float b) const { return a + b; }
  __device__ float project(float a) const { return a; }
};

REDUCE_ENTRIES(sum_f32, float, 4, total())
REDUCE_ENTRIES(sum_bf16, bf16, 8, total())
REDUCE_ENTRIES(sum_f16, f16, 8, total())
