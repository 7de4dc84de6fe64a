// softmax_forms.cuh: the ways in which PyTorch 2.11 computes softmax (ATen/native/cuda/SoftMax.cu,
// PersistentSoftmax.cuh); package ops chooses. They differ in the order of the sum, in how NaN passes through the
// maximum, and in one rounding: see add_exp.
//   rows<n>  the reduced dimension is the innermost and short: a warp holds the row, n elements a lane
//   block    the same, long: a block a row
//   spatial  there are inner dimensions: a thread, or a column of threads, an output position
// SAFE gives zeros where all of a row is -infinity: PyTorch's _safe_softmax puts them there afterwards.
#pragma once
#include "softmax.cuh"

__device__ __forceinline__ bool masked(float v) { return v == -INFINITY; }

// Whether a predicate holds for any lane of a row; all lanes of the warp ask.
__device__ __forceinline__ bool any_of_row(bool yes) {
  unsigned lanes = __ballot_sync(FULL, yes), width = blockDim.x;
  if (width == 32) return lanes != 0;
  unsigned first = (threadIdx.y * width) % 32;
  return (lanes >> first & ((1u << width) - 1)) != 0;
}

template <int N, bool SAFE, class T>
__device__ __forceinline__ void softmax_rows(T* out, int wide, const T* in, int64_t rows, int width) {
  int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
  int count = row < rows ? width : 0;
  int64_t first = row * width + threadIdx.x;
  in += first;
  float e[N];
#pragma unroll
  for (int i = 0; i < N; i++) e[i] = (int)(threadIdx.x + i * blockDim.x) < count ? ld(in + i * blockDim.x) : -INFINITY;
  float max = e[0];
#pragma unroll
  for (int i = 0; i < N; i++) max = newer_unless_greater(max, e[i]);
  max = row_max(max);
  bool zeros = false;
  if constexpr (SAFE) {
    bool any = false;
#pragma unroll
    for (int i = 0; i < N; i++) any |= !masked(e[i]);
    zeros = !any_of_row(any);
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < N; i++) {
    e[i] = expf(e[i] - max);
    sum += e[i];
  }
  sum = row_sum(sum);
#pragma unroll
  for (int i = 0; i < N; i++)
    if ((int)(threadIdx.x + i * blockDim.x) < count) {
      float y = sum == 0 ? __int_as_float(0x7fc00000) : e[i] / sum;
      store(out, wide, first + i * blockDim.x, SAFE && zeros ? 0.0f : y);
    }
}

// The sum or maximum of a block whose size is a multiple of 32, in every thread.
template <class Op> __device__ __forceinline__ float block_all(float v, Op op, float identity) {
  __shared__ float part[32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  v = warp_reduce_down(v, op);
  __syncthreads();
  if (lane == 0) part[warp] = v;
  __syncthreads();
  if (warp == 0) {
    v = warp_reduce_down(lane < (int)(blockDim.x / 32) ? part[lane] : identity, op);
    if (lane == 0) part[0] = v;
  }
  __syncthreads();
  return part[0];
}
PART float block_max(float v) { return block_all(v, older_unless_less, lowest()); }
PART float block_sum(float v) { return block_all(v, add, 0.0f); }

// Visits the elements of a row that a thread takes: first, if shift is above 0, single elements up to an aligned
// address, then vectors of `vector`, `vectored` elements in all, then single elements.
template <class Visit>
__device__ __forceinline__ void block_row(int width, int shift, int vector, int vectored, Visit visit) {
  int block = blockDim.x, t = threadIdx.x, begin = 0;
  if (shift > 0) {
    if (t >= shift && t < width + shift) visit(t - shift);
    begin = block - shift;
  }
  for (int i = t; i * vector < vectored; i += block)
    for (int j = 0; j < vector; j++) visit(begin + i * vector + j);
  for (int i = begin + vectored + t; i < width; i += block) visit(i);
}

// How a row is divided: 0: by single elements; 1: by vectors, the width is a multiple of `vector` and rows are aligned;
// 2: by as many whole vectors for each thread as there are behind the first aligned address.
template <bool SAFE, class T>
__device__ __forceinline__ void softmax_block(T* out, int wide, const T* in, int width, int way) {
  constexpr int vector = 16 / sizeof(T);
  int64_t first = (int64_t)blockIdx.x * width;
  in += first;
  int shift = 0, vectored = way == 1 ? width : 0;
  if (way == 2) {
    shift = (uint64_t)in % 16 / sizeof(T);
    int left = shift > 0 ? width + shift - (int)blockDim.x : width;
    vectored = left > 0 ? left - left % (vector * (int)blockDim.x) : 0;
  }
  float max = lowest();
  block_row(width, shift, vector, vectored, [&](int i) { max = fmaxf(max, ld(in + i)); });
  max = block_max(max);
  if (SAFE && max == lowest()) {  // the same in all threads
    bool any = false;
    for (int i = threadIdx.x; i < width; i += blockDim.x) any |= !masked(ld(in + i));
    if (!__syncthreads_or(any)) {
      for (int i = threadIdx.x; i < width; i += blockDim.x) store(out, wide, first + i, 0);
      return;
    }
  }
  float sum = 0;
  block_row(width, shift, vector, vectored, [&](int i) { sum = add_exp(sum, ld(in + i) - max); });
  sum = block_sum(sum);
  for (int i = threadIdx.x; i < width; i += blockDim.x) store(out, wide, first + i, expf(ld(in + i) - max) / sum);
}

// The threads of a column, blockDim.x of them, share a position; shared memory holds their row.
template <class Op> __device__ __forceinline__ float column_all(float* row, float v, Op op) {
  __syncthreads();
  row[threadIdx.x] = v;
  for (uint32_t o = blockDim.x / 2; o > 0; o /= 2) {
    __syncthreads();
    if (threadIdx.x < o) row[threadIdx.x] = op(row[threadIdx.x], row[threadIdx.x + o]);
  }
  __syncthreads();
  return row[0];
}
// Whether a predicate holds for any thread of a column; all of the block ask.
PART bool any_of_column(float* row, bool yes) { return column_all(row, yes ? 1.0f : 0.0f, older_unless_less) > 0; }
PART float column_max(float* row, float v) { return column_all(row, v, older_unless_less); }
PART float column_sum(float* row, float v) { return column_all(row, v, add); }

template <bool SAFE, class T>
__device__ __forceinline__ void softmax_spatial(T* out, int wide, const T* in, int width, int inner) {
  DYN_SHARED(float, shared);
  float* row = shared + threadIdx.y * blockDim.x;
  int position = blockIdx.y * blockDim.y + threadIdx.y;
  int count = position < inner ? width : 0;
  int64_t first = (int64_t)blockIdx.x * width * inner + position, step = inner;
  in += first;
  float max = lowest();
  for (int d = threadIdx.x; d < count; d += blockDim.x) max = older_unless_less(max, ld(in + d * step));
  if (blockDim.x > 1) max = column_max(row, max);
  bool zeros = false;
  if constexpr (SAFE) {
    bool any = false;
    for (int d = threadIdx.x; d < count; d += blockDim.x) any |= !masked(ld(in + d * step));
    zeros = blockDim.x > 1 ? !any_of_column(row, any) : !any;
  }
  float sum = 0;
  for (int d = threadIdx.x; d < count; d += blockDim.x) sum = add_exp(sum, ld(in + d * step) - max);
  if (blockDim.x > 1) sum = column_sum(row, sum);
  for (int d = threadIdx.x; d < count; d += blockDim.x)
    store(out, wide, first + d * step, SAFE && zeros ? 0.0f : expf(ld(in + d * step) - max) / sum);
}

#define ROWS(n, name, SAFE, T, suffix)                                                                    \
  KERNEL_BOUNDS(name##_rows##n##_##suffix, 128, T* out, int wide, const T* in, int64_t rows, int width) { \
    softmax_rows<n, SAFE>(out, wide, in, rows, width);                                                    \
  }
#define FORMS(name, SAFE, T, suffix)                                                                  \
  ROWS(1, name, SAFE, T, suffix)                                                                      \
  ROWS(2, name, SAFE, T, suffix)                                                                      \
  ROWS(4, name, SAFE, T, suffix)                                                                      \
  ROWS(8, name, SAFE, T, suffix)                                                                      \
  ROWS(16, name, SAFE, T, suffix)                                                                     \
  ROWS(32, name, SAFE, T, suffix)                                                                     \
  ROWS(64, name, SAFE, T, suffix)                                                                     \
  KERNEL_BOUNDS(name##_block_##suffix, 1024, T* out, int wide, const T* in, int width, int way) {     \
    softmax_block<SAFE>(out, wide, in, width, way);                                                   \
  }                                                                                                   \
  KERNEL_BOUNDS(name##_spatial_##suffix, 1024, T* out, int wide, const T* in, int width, int inner) { \
    softmax_spatial<SAFE>(out, wide, in, width, inner);                                               \
  }
