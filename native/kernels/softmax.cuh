// softmax.cuh: what softmax, log-softmax and their gradients share: exponentials, maxima and sums in the order of
// PyTorch's, and the stores.
#pragma once

// Parts that wait are functions on the host, so that the compiler sees each wait once.
#ifdef CUDA_HOST
#define PART static __noinline__
#else
#define PART __device__ __forceinline__
#endif

// sum + exp(x). PyTorch's compiler folds expf's last step, a multiplication by a power of two, into the addition
// wherever the exponential is used only there (read from SASS: FFMA sum, 2^k, ex2(f), sum). The bits differ from
// sum + expf(x) only where the exponential is denormal. On the host expf is another one anyway.
__device__ __forceinline__ float add_exp(float sum, float x) {
#ifdef CUDA_HOST
  return sum + expf(x);
#else
  float n = __fmaf_rd(__saturatef(fmaf(x, __int_as_float(0x3bbb989d), 0.5f)), 252.0f, 12582913.0f);
  float f = fmaf(x, __int_as_float(0x3fb8aa3b), -(n - 12583039.0f));
  f = fmaf(x, __int_as_float(0x32a57060), f);
  asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(f));
  return fmaf(__int_as_float(__float_as_int(n) << 23), f, sum);
#endif
}

// A NaN is taken, then passed over by the next number.
__device__ __forceinline__ float newer_unless_greater(float a, float b) { return a > b ? a : b; }
// A NaN b is passed over, a NaN a stays.
__device__ __forceinline__ float older_unless_less(float a, float b) { return a < b ? b : a; }
__device__ __forceinline__ float add(float a, float b) { return a + b; }
__device__ __forceinline__ float lowest() { return -3.402823466e+38f; }

// A result is the input's type, or float if wide.
template <class T> __device__ __forceinline__ void store(T* out, int wide, int64_t i, float v) {
  if (wide)
    st((float*)out + i, v);
  else
    st(out + i, v);
}

// Lanes of a row are blockDim.x = 1, 2, .. 32 neighbours of a warp.
template <class Op> __device__ __forceinline__ float row_butterfly(float v, Op op) {
  if (blockDim.x == 32) return warp_reduce_xor(v, op);
  for (int o = blockDim.x / 2; o > 0; o /= 2) v = op(v, shfl_xor(v, o));
  return v;
}
PART float row_max(float v) { return row_butterfly(v, older_unless_less); }
PART float row_sum(float v) { return row_butterfly(v, add); }
