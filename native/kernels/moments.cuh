// moments.cuh: mean and variance of a row in the order of PyTorch's RowwiseMomentsCUDAKernel (layer_norm_kernel.cu and
// group_norm_kernel.cu, one kernel text): threads take elements blockDim.x apart, warps are joined by shuffles from 16
// down, the first warp joins the warps' results likewise. The rounding points are those of its SASS for sm_90.
#pragma once

// Parts that wait are functions on the host, so that the compiler sees each wait once.
#ifdef CUDA_HOST
#define MOMENTS_PART static __noinline__
#else
#define MOMENTS_PART __device__ __forceinline__
#endif

// m2 is the sum of squared distances from the mean.
struct moments {
  float mean, m2, count;
};

// One more element, the count'th: the quotient is rounded before it is added.
__device__ __forceinline__ moments with_element(const moments& m, float v, int count) {
  moments next;
  float delta = v - m.mean;
  next.count = (float)count;
  next.mean = m.mean + delta / next.count;
  next.m2 = fmaf(delta, v - next.mean, m.m2);
  return next;
}

// What is empty leaves the other as it is.
struct join_moments {
  __device__ __forceinline__ moments operator()(const moments& a, const moments& b) const {
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    moments both;
    float delta = b.mean - a.mean;
    both.count = a.count + b.count;
    float share = b.count / both.count;
    both.mean = fmaf(delta, share, a.mean);
    both.m2 = fmaf(delta * delta * a.count, share, a.m2 + b.m2);
    return both;
  }
};

MOMENTS_PART moments moments_of_warp(moments m) { return warp_reduce_down(m, join_moments()); }

// The moments of n elements in thread 0; blockDim.x is 32 or a multiple of it, at most 1024.
template <class T> __device__ __forceinline__ moments moments_of_row(const T* row, int64_t n) {
  moments m = {0, 0, 0};
  int count = 0;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) m = with_element(m, ld(row + i), ++count);
  m = moments_of_warp(m);
  if (blockDim.x == 32) return m;
  __shared__ moments part[32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0) part[warp] = m;
  __syncthreads();
  if (warp == 0) {
    moments none = {0, 0, 0};
    m = moments_of_warp(threadIdx.x < blockDim.x / 32 ? part[lane] : none);
  }
  return m;
}

__device__ __forceinline__ float rstd_of(const moments& m, float eps) { return rsqrtf(m.m2 / m.count + eps); }
