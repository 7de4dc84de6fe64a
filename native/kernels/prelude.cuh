// prelude.cuh: what every kernel file includes first. It compiles under NVRTC and, with CUDA_HOST defined (the shim in
// native/host), as C++17 for the CPU. Rules for kernels that run on both are in native/host/doc.go.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#ifndef CUDA_HOST
// NVRTC has no <stdint.h>.
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned uint32_t;
typedef unsigned long long uint64_t;
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif

// KERNEL(name, parameters...) { body } defines an entry with C linkage. KERNEL_BOUNDS(name, threads, parameters...)
// also promises that no block has more threads. On the host only entries defined so are found.
#define KERNEL(name, ...) extern "C" __global__ void name(__VA_ARGS__)
#define KERNEL_BOUNDS(name, threads, ...) extern "C" __global__ void __launch_bounds__(threads) name(__VA_ARGS__)

// DYN_SHARED(float, row); gives the block's dynamic shared memory. No constructors run in it.
#define DYN_SHARED(T, name)                                \
  extern __shared__ __align__(16) unsigned char dynsmem[]; \
  T* name = (T*)dynsmem

// GRID_STRIDE(i, n) { body } visits 0..n-1 with the threads of a one-dimensional grid, in any order.
#define GRID_STRIDE(i, n)                                                            \
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (int64_t)(n); \
       i += (int64_t)gridDim.x * blockDim.x)
#endif

// Every lane of a warp.
#define FULL 0xffffffffu

typedef __nv_bfloat16 bf16;
typedef __half f16;

// accumulate<T> is the type that a kernel computes in when its elements are T: float, or double for double.
template <class T> struct accumulate_of {
  typedef float type;
};
template <> struct accumulate_of<double> {
  typedef double type;
};
template <class T> using accumulate = typename accumulate_of<T>::type;

// ld converts an element to the type that is computed in; st rounds once, to nearest even.
__device__ __forceinline__ float ld(const float* p) { return *p; }
__device__ __forceinline__ float ld(const bf16* p) { return __bfloat162float(*p); }
__device__ __forceinline__ float ld(const f16* p) { return __half2float(*p); }
__device__ __forceinline__ double ld(const double* p) { return *p; }
__device__ __forceinline__ void st(float* p, float v) { *p = v; }
__device__ __forceinline__ void st(bf16* p, float v) { *p = __float2bfloat16_rn(v); }
__device__ __forceinline__ void st(f16* p, float v) { *p = __float2half_rn(v); }
__device__ __forceinline__ void st(double* p, double v) { *p = v; }

// round_to<T>(v) is v after a store to T and a load: a rounding point between two operations of a fused chain.
template <class T> __device__ __forceinline__ accumulate<T> round_to(accumulate<T> v) {
  T t;
  st(&t, v);
  return ld(&t);
}

// Shuffles of whole structs (a multiple of 4 bytes) by all lanes of a warp: one wait on the host instead of one a word.
template <class T, class Lane> __device__ __forceinline__ T shuffle_words(T v, Lane lane) {
  static_assert(sizeof(T) % 4 == 0, "a shuffled type is a multiple of 4 bytes");
  union {
    T t;
    unsigned word[sizeof(T) / 4];
  } u;
  u.t = v;
#pragma unroll
  for (int i = 0; i < (int)(sizeof(T) / 4); i++) u.word[i] = lane(u.word[i]);
  return u.t;
}
template <class T> __device__ __forceinline__ T shfl_down(T v, int delta) {
#ifdef CUDA_HOST
  return __shfl_down_sync(FULL, v, delta);
#else
  return shuffle_words(v, [=](unsigned w) { return __shfl_down_sync(FULL, w, delta); });
#endif
}
template <class T> __device__ __forceinline__ T shfl_xor(T v, int mask) {
#ifdef CUDA_HOST
  return __shfl_xor_sync(FULL, v, mask);
#else
  return shuffle_words(v, [=](unsigned w) { return __shfl_xor_sync(FULL, w, mask); });
#endif
}
template <class T> __device__ __forceinline__ T shfl(T v, int lane) {
#ifdef CUDA_HOST
  return __shfl_sync(FULL, v, lane);
#else
  return shuffle_words(v, [=](unsigned w) { return __shfl_sync(FULL, w, lane); });
#endif
}

// warp_reduce_down is the tree v = op(v, shfl_down(v, o)) for o = 16, 8, 4, 2, 1; lane 0 has the result. op's first
// argument is the lane's own value. On the host one lane does the work of all, in the same order.
template <class T, class Op> __device__ __forceinline__ T warp_reduce_down(T v, Op op) {
#ifdef CUDA_HOST
  return ch_warp_all(v, [&](T* lane) {
    for (int o = 16; o; o >>= 1) {
      T next[32];
      for (int l = 0; l < 32; l++) next[l] = op(lane[l], l + o < 32 ? lane[l + o] : lane[l]);
      for (int l = 0; l < 32; l++) lane[l] = next[l];
    }
  });
#else
#pragma unroll
  for (int o = 16; o; o >>= 1) v = op(v, shfl_down(v, o));
  return v;
#endif
}

// warp_reduce_xor is the butterfly v = op(v, shfl_xor(v, o)) for o = 16, 8, 4, 2, 1; every lane has a result.
template <class T, class Op> __device__ __forceinline__ T warp_reduce_xor(T v, Op op) {
#ifdef CUDA_HOST
  return ch_warp_all(v, [&](T* lane) {
    for (int o = 16; o; o >>= 1) {
      T next[32];
      for (int l = 0; l < 32; l++) next[l] = op(lane[l], lane[l ^ o]);
      for (int l = 0; l < 32; l++) lane[l] = next[l];
    }
  });
#else
#pragma unroll
  for (int o = 16; o; o >>= 1) v = op(v, shfl_xor(v, o));
  return v;
#endif
}

// EACH_DTYPE(M) expands M(type, suffix) for the types that compute in float; EACH_FLOAT adds double.
#define EACH_DTYPE(M) M(float, f32) M(bf16, bf16) M(f16, f16)
#define EACH_FLOAT(M) EACH_DTYPE(M) M(double, f64)
