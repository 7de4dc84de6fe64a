#include "prelude.cuh"
#include "reduce.cuh"

// The root of the sum of squares. A square is fused with its addition; the root is rounded correctly (read from SASS).
struct two_norm : adding<float> {
  template <class T> __device__ float take(float a, T element) const { return fmaf(up(element), up(element), a); }
  __device__ float project(float a) const { return sqrtf(a); }
};

// Unlike sums, norms of 16-bit types take vectors of 4.
REDUCE_ENTRIES(vector_norm_f32, float, 4, two_norm())
REDUCE_ENTRIES(vector_norm_bf16, bf16, 4, two_norm())
REDUCE_ENTRIES(vector_norm_f16, f16, 4, two_norm())
