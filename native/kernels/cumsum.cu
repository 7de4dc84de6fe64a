// cumsum.cu: running sums in PyTorch 2.11's order of additions (ATen/native/cuda/ScanUtils.cuh), every sum rounded to
// the element's type. Input and output are row-major and may be the same.
//   inner   along the last dimension: chunks of 2 * blockDim.x elements by Sklansky's tree; the total of the chunk
//           before is added to the first element. The first chunk's is +0, so -0 becomes +0.
//   warp    the same where chunks have 32 elements
//   outer   along another: one addition after the other, from +0.
//   vector  a tensor that is one line: CUB's DeviceScan, one tile; see below.
#include "prelude.cuh"
#include "elementwise.cuh"

template <class T> struct sum {
  __device__ T operator()(T a, T b) const {
    T v;
    st(&v, up(a) + up(b));
    return v;
  }
};
template <> struct sum<int64_t> {
  __device__ int64_t operator()(int64_t a, int64_t b) const { return (int64_t)((uint64_t)a + (uint64_t)b); }
};

template <class T> __device__ __forceinline__ T zero() { return convert<T>(0.0f); }
template <> __device__ __forceinline__ int64_t zero<int64_t>() { return 0; }

// lane_up gives what the lane so many below has.
template <class T> __device__ __forceinline__ T lane_up(T v, int delta) {
#ifdef CUDA_HOST
  return __shfl_up_sync(FULL, v, delta);
#else
  if constexpr (sizeof(T) == 2) {
    union {
      T t;
      uint16_t bits;
    } u;
    u.t = v;
    u.bits = (uint16_t)__shfl_up_sync(FULL, (uint32_t)u.bits, delta);
    return u.t;
  } else
    return shuffle_words(v, [=](unsigned w) { return __shfl_up_sync(FULL, w, delta); });
#endif
}

// lane_at gives what a lane has.
template <class T> __device__ __forceinline__ T lane_at(T v, int lane) {
#ifdef CUDA_HOST
  return __shfl_sync(FULL, v, lane);
#else
  if constexpr (sizeof(T) == 2) {
    union {
      T t;
      uint16_t bits;
    } u;
    u.t = v;
    u.bits = (uint16_t)__shfl_sync(FULL, (uint32_t)u.bits, lane);
    return u.t;
  } else
    return shfl(v, lane);
#endif
}

template <class T> __device__ __forceinline__ void scan_inner(T* y, const T* x, uint32_t rows, uint32_t size) {
  DYN_SHARED(T, memory);
  const sum<T> add;
  uint32_t width = blockDim.x, t = threadIdx.x;
  T* v = memory + 2 * width * threadIdx.y;
  for (uint32_t first = blockIdx.x * blockDim.y; first < rows; first += blockDim.y * gridDim.x) {
    uint32_t row = first + threadIdx.y;
    bool there = row < rows;
    const T* from = x + (int64_t)row * size;
    T* to = y + (int64_t)row * size;
    T total = zero<T>();
    for (uint32_t start = 0; start < size; start += 2 * width) {
      uint32_t a = start + t, b = a + width;
      if (there) {
        v[t] = a < size ? from[a] : zero<T>();
        v[width + t] = b < size ? from[b] : zero<T>();
        if (t == 0) v[0] = add(v[0], total);
      }
      __syncthreads();
      for (uint32_t s = 1; s <= width; s *= 2) {
        if (there) {
          uint32_t below = t & (s - 1), middle = 2 * (t - below) + s, at = middle + below;  // t / s, without dividing
          v[at] = add(v[at], v[middle - 1]);
        }
        __syncthreads();
      }
      if (there) {
        if (a < size) to[a] = v[t];
        if (b < size) to[b] = v[width + t];
      }
      total = v[2 * width - 1];
      __syncthreads();
    }
  }
}

// scan_warp is scan_inner where blockDim.x is 16, which is what many long lines get: a chunk is what a warp's lanes
// have, and the tree goes by shuffles, without shared memory and barriers. Loads of several chunks are in flight.
template <class T> __device__ __forceinline__ void scan_warp(T* y, const T* x, uint32_t rows, uint32_t size) {
  const sum<T> add;
  constexpr int ahead = 4;
  uint32_t lane = threadIdx.x % 32, warps = blockDim.x / 32;
  for (int64_t row = (int64_t)blockIdx.x * warps + threadIdx.x / 32; row < rows; row += (int64_t)gridDim.x * warps) {
    const T* from = x + row * size;
    T* to = y + row * size;
    T total = zero<T>();
    for (uint32_t start = 0; start < size; start += 32 * ahead) {
      T v[ahead];
#pragma unroll
      for (int k = 0; k < ahead; k++) {
        uint32_t at = start + 32 * k + lane;
        v[k] = at < size ? from[at] : zero<T>();
      }
#pragma unroll
      for (int k = 0; k < ahead; k++) {
        if (lane == 0) v[k] = add(v[k], total);
#pragma unroll
        for (uint32_t s = 1; s <= 16; s *= 2) {
          T left = lane_at(v[k], (int)((lane & ~(s - 1)) - 1) & 31);
          if (lane & s) v[k] = add(v[k], left);
        }
        total = lane_at(v[k], 31);
        uint32_t at = start + 32 * k + lane;
        if (at < size) to[at] = v[k];
      }
    }
  }
}

// Each thread has a line; lines of one outer index lie next to each other. Loads of several elements are in flight.
template <class T>
__device__ __forceinline__ void scan_outer(T* y, const T* x, uint32_t outer, uint32_t inner, uint32_t size) {
  const sum<T> add;
  constexpr int ahead = 16;
  GRID_STRIDE(i, (int64_t)outer * inner) {
    uint32_t line = (uint32_t)i / inner;
    int64_t at = (int64_t)line * inner * size + ((uint32_t)i - line * inner);
    T total = zero<T>();
    uint32_t k = 0;
    for (; k + ahead <= size; k += ahead, at += (int64_t)ahead * inner) {
      T v[ahead];
#pragma unroll
      for (int j = 0; j < ahead; j++) v[j] = x[at + (int64_t)j * inner];
#pragma unroll
      for (int j = 0; j < ahead; j++) y[at + (int64_t)j * inner] = total = add(total, v[j]);
    }
    for (; k < size; k++, at += inner) y[at] = total = add(total, x[at]);
  }
}

// CUB's scan of one tile, 128 threads with `items` neighbouring elements each: every thread adds its own from left to
// right; warps scan these totals (shfl_up by 1, 2, 4, 8, 16); totals of warps are added from left to right; each thread
// adds what lies before it to its first element and goes on from there. Nothing is added to the first element of all.
// Further tiles follow one after the other, which gives CUB's bits for integers only.
template <int items, class T> __device__ __forceinline__ void scan_vector(T* y, const T* x, uint32_t size) {
  const sum<T> add;
  __shared__ T warp_total[4], tile_total;
  uint32_t t = threadIdx.x, lane = t % 32, warp = t / 32;
  for (uint32_t start = 0; start < size; start += 128 * items) {
    T v[items];
    uint32_t at = start + t * items;
#pragma unroll
    for (int j = 0; j < items; j++) v[j] = at + j < size ? x[at + j] : zero<T>();
    T own = v[0];
#pragma unroll
    for (int j = 1; j < items; j++) own = add(own, v[j]);
    T scanned = own;
    for (uint32_t o = 1; o < 32; o *= 2) {
      T left = lane_up(scanned, o);
      if (lane >= o) scanned = add(left, scanned);
    }
    T before = lane_up(scanned, 1);
    if (lane == 31) warp_total[warp] = scanned;
    __syncthreads();
    T sum_of_warps = warp_total[0];
    for (uint32_t w = 1; w < 4; w++) {
      if (w == warp) before = lane == 0 ? sum_of_warps : add(sum_of_warps, before);
      sum_of_warps = add(sum_of_warps, warp_total[w]);
    }
    bool any = t > 0;
    if (start > 0) {
      before = any ? add(tile_total, before) : tile_total;
      sum_of_warps = add(tile_total, sum_of_warps);
      any = true;
    }
    __syncthreads();
    if (t == 0) tile_total = sum_of_warps;
    T running = any ? add(before, v[0]) : v[0];
#pragma unroll
    for (int j = 0; j < items; j++) {
      if (j > 0) running = add(running, v[j]);
      if (at + j < size) y[at + j] = running;
    }
    __syncthreads();
  }
}

#define ENTRY(T, suffix, items)                                                                    \
  KERNEL_BOUNDS(cumsum_inner_##suffix, 512, T* y, const T* x, uint32_t rows, uint32_t size) {      \
    scan_inner<T>(y, x, rows, size);                                                               \
  }                                                                                                \
  KERNEL_BOUNDS(cumsum_warp_##suffix, 128, T* y, const T* x, uint32_t rows, uint32_t size) {       \
    scan_warp<T>(y, x, rows, size);                                                                \
  }                                                                                                \
  KERNEL(cumsum_outer_##suffix, T* y, const T* x, uint32_t outer, uint32_t inner, uint32_t size) { \
    scan_outer<T>(y, x, outer, inner, size);                                                       \
  }                                                                                                \
  KERNEL_BOUNDS(cumsum_vector_##suffix, 128, T* y, const T* x, uint32_t size) { scan_vector<items, T>(y, x, size); }
ENTRY(float, f32, 15)
ENTRY(bf16, bf16, 30)
ENTRY(f16, f16, 30)
ENTRY(double, f64, 7)
ENTRY(int64_t, i64, 7)
