#include "prelude.cuh"
#include "reduce.cuh"

// The sum times 1/count: PyTorch multiplies by the rounded reciprocal, it does not divide.
struct average : adding<float> {
  float factor;
  __device__ explicit average(float f) : factor(f) {}
  __device__ float project(float a) const { return a * factor; }
};

REDUCE_ENTRIES(mean_f32, float, 4, average(factor), float factor)
REDUCE_ENTRIES(mean_bf16, bf16, 8, average(factor), float factor)
REDUCE_ENTRIES(mean_f16, f16, 8, average(factor), float factor)
