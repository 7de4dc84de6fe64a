// layer_norm.cu: both of PyTorch 2.11's kernels (ATen/native/cuda/layer_norm_kernel.cu); package ops chooses. They
// differ in the order in which mean and variance are found and in how a row is scaled; each is read from SASS for
// sm_90.
//   packs  rows of whole vectors of 4: a block of 32 x 4 threads a row. Entries differ in nothing but speed: `short` is
//          for rows of at most 128 elements, which only the first of those warps would see, and gives every warp a row;
//          1, 2 and 4 hold that many vectors a thread in registers, 0 loads them again.
//   any    rows of any length and alignment: a block of 512 threads.
#include "prelude.cuh"
#include "elementwise.cuh"
#include "moments.cuh"

// One more element, the count'th: the reciprocal is rounded, the product is not. It is a constant where count is.
__device__ __forceinline__ moments with_packed(const moments& m, float v, float count) {
  moments next;
  float delta = v - m.mean;
  next.count = count;
  next.mean = fmaf(delta, 1 / count, m.mean);
  next.m2 = fmaf(delta, v - next.mean, m.m2);
  return next;
}

// Joining with something empty is done like any other: count / count need not be 1.
struct join_packed {
  __device__ __forceinline__ moments operator()(const moments& mine, const moments& other) const {
    moments both = {0, 0, mine.count + other.count};
    if (!(both.count > 0)) return both;
    float delta = mine.mean - other.mean, scale = 1 / both.count;
    float a = other.count * scale, b = mine.count * scale;
    both.mean = fmaf(a, other.mean, b * mine.mean);
    both.m2 = fmaf(delta * delta * other.count, b, other.m2 + mine.m2);
    return both;
  }
};
MOMENTS_PART moments packed_of_warp(moments m) { return warp_reduce_down(m, join_packed()); }

template <class T> struct layer {
  T* y;
  const T* x;
  const T *weight, *bias;  // null: none
  float *mean, *rstd;      // null: nobody asks
  int n;                   // elements of a row
  float eps;
};

// One more vector, after `before` elements.
template <class T> __device__ __forceinline__ moments with_pack(moments m, const pack<T, 4>& v, int before) {
#pragma unroll
  for (int j = 0; j < 4; j++) m = with_packed(m, ld(&v.at[j]), (float)(before + j + 1));
  return m;
}

// A product is fused with the bias, but for the first element of a vector where there is no weight.
template <class T> __device__ __forceinline__ void scale_pack(const layer<T>& a, int64_t row, int i,
                                                              const pack<T, 4>& v, float mean, float rstd) {
  pack<T, 4> w, b, out;
  if (a.weight) w = read<4>(a.weight + i * 4);
  if (a.bias) b = read<4>(a.bias + i * 4);
#pragma unroll
  for (int j = 0; j < 4; j++) {
    float centred = ld(&v.at[j]) - mean, y = rstd * centred;
    if (a.weight && a.bias)
      y = fmaf(ld(&w.at[j]), y, ld(&b.at[j]));
    else if (a.weight)
      y = ld(&w.at[j]) * y;
    else if (a.bias)
      y = j == 0 ? y + ld(&b.at[j]) : fmaf(rstd, centred, ld(&b.at[j]));
    st(&out.at[j], y);
  }
  write<4>(a.y + row * a.n + i * 4, out);
}

template <class T>
__device__ __forceinline__ void keep_statistics(const layer<T>& a, int64_t row, float mean, float rstd) {
  if (a.mean) a.mean[row] = mean;
  if (a.rstd) a.rstd[row] = rstd;
}

// Every warp has a row of its own. What the other three warps of PyTorch's block would add is empty.
template <class T> __device__ __forceinline__ void layer_norm_short(const layer<T>& a, int64_t rows) {
  int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
  int lane = threadIdx.x;
  bool mine = row < rows && lane < a.n / 4;
  moments m = {0, 0, 0}, none = {0, 0, 0};
  pack<T, 4> v;
  if (mine) {
    v = read<4>(a.x + row * a.n + lane * 4);
    m = with_pack(m, v, 0);
  }
  m = packed_of_warp(m);
  m = join_packed()(join_packed()(m, none), none);
  m = shfl(m, 0);
  if (row >= rows) return;
  float rstd = rsqrtf(m.m2 / (float)a.n + a.eps);
  if (mine) scale_pack(a, row, lane, v, m.mean, rstd);
  if (lane == 0) keep_statistics(a, row, m.mean, rstd);
}

template <int KEPT, class T> __device__ __forceinline__ void layer_norm_packs(const layer<T>& a) {
  int64_t row = blockIdx.x;
  int warp = threadIdx.y, thread = threadIdx.x + 32 * warp, packs = a.n / 4;
  const T* x = a.x + row * a.n;
  moments m = {0, 0, 0};
  pack<T, 4> v[KEPT > 0 ? KEPT : 1];
  if constexpr (KEPT > 0) {
#pragma unroll
    for (int k = 0; k < KEPT; k++)
      if (thread + 128 * k < packs) v[k] = read<4>(x + (thread + 128 * k) * 4);
#pragma unroll
    for (int k = 0; k < KEPT; k++)
      if (thread + 128 * k < packs) m = with_pack(m, v[k], 4 * k);
  } else {
    for (int i = thread, before = 0; i < packs; i += 128, before += 4) m = with_pack(m, read<4>(x + i * 4), before);
  }
  m = packed_of_warp(m);
  __shared__ moments part[4];
  if (threadIdx.x == 0) part[warp] = m;
  __syncthreads();
  join_packed join;
  m = join(join(part[0], part[2]), join(part[1], part[3]));
  float rstd = rsqrtf(m.m2 / (float)a.n + a.eps);
  if constexpr (KEPT > 0) {
#pragma unroll
    for (int k = 0; k < KEPT; k++)
      if (thread + 128 * k < packs) scale_pack(a, row, thread + 128 * k, v[k], m.mean, rstd);
  } else {
    for (int i = thread; i < packs; i += 128) scale_pack(a, row, i, read<4>(x + i * 4), m.mean, rstd);
  }
  if (thread == 0) keep_statistics(a, row, m.mean, rstd);
}

template <class T> __device__ __forceinline__ void layer_norm_any(const layer<T>& a) {
  int64_t row = blockIdx.x;
  const T* x = a.x + row * a.n;
  moments m = moments_of_row(x, a.n);
  __shared__ float statistic[2];
  if (threadIdx.x == 0) {
    statistic[0] = m.mean;
    statistic[1] = rstd_of(m, a.eps);
    keep_statistics(a, row, statistic[0], statistic[1]);
  }
  __syncthreads();
  float mean = statistic[0], rstd = statistic[1];
  for (int i = threadIdx.x; i < a.n; i += blockDim.x) {
    float centred = ld(x + i) - mean, b = a.bias ? ld(a.bias + i) : 0.0f;
    st(a.y + row * a.n + i, a.weight ? fmaf(ld(a.weight + i), centred * rstd, b) : fmaf(centred, rstd, b));
  }
}

#define NORM(T)                                                                                              \
  T *y, const T *x, const T *weight, int has_weight, const T *bias, int has_bias, float *mean, int has_mean, \
      float *rstd, int has_rstd, int n, float eps
#define THE_NORM(T)                                                                            \
  layer<T> {                                                                                   \
    y, x, has_weight ? weight : nullptr, has_bias ? bias : nullptr, has_mean ? mean : nullptr, \
        has_rstd ? rstd : nullptr, n, eps                                                      \
  }
#define PACKS(kept, T, suffix) \
  KERNEL_BOUNDS(layer_norm_packs##kept##_##suffix, 128, NORM(T)) { layer_norm_packs<kept>(THE_NORM(T)); }
#define ENTRIES(T, suffix)                                                                                      \
  KERNEL_BOUNDS(layer_norm_short_##suffix, 128, NORM(T), int64_t rows) { layer_norm_short(THE_NORM(T), rows); } \
  PACKS(0, T, suffix)                                                                                           \
  PACKS(1, T, suffix)                                                                                           \
  PACKS(2, T, suffix)                                                                                           \
  PACKS(4, T, suffix)                                                                                           \
  KERNEL_BOUNDS(layer_norm_any_##suffix, 512, NORM(T)) { layer_norm_any(THE_NORM(T)); }
EACH_DTYPE(ENTRIES)
