// topk.cu: the k largest or smallest elements of each slice, and their places, in PyTorch 2.11's order. What decides:
//   which     the k-th element by the order of radix(): all NaNs are one, above infinity; -0 comes before +0. Of
//   elements
//             that equal it the first ones are taken.
//   gathered  those beyond the k-th in ascending order of places, then those that equal it, likewise.
//   sorted    up to 32 by a bitonic network, which moves equal elements about (zeros are equal, and so are NaNs); more
//   by
//             a stable sort in the order of cub_radix(): a NaN by its bits, zeros equal.
// One block a slice. Sorted places go through shared memory: k indices, then k keys.
#include "prelude.cuh"
#include "elementwise.cuh"

// bits of an element, and whether it is a number with a sign in the highest bit.
__device__ __forceinline__ uint32_t bits_of(float v) { return __float_as_uint(v); }
__device__ __forceinline__ uint32_t bits_of(bf16 v) { return __bfloat16_as_ushort(v); }
__device__ __forceinline__ uint32_t bits_of(f16 v) { return __half_as_ushort(v); }
__device__ __forceinline__ uint64_t bits_of(double v) { return (uint64_t)__double_as_longlong(v); }
__device__ __forceinline__ uint64_t bits_of(int64_t v) { return (uint64_t)v; }
__device__ __forceinline__ uint32_t bits_of(int32_t v) { return (uint32_t)v; }
__device__ __forceinline__ uint32_t bits_of(uint8_t v) { return v; }

template <class T> struct keys {
  typedef decltype(bits_of(T())) key;
  static constexpr int width = 8 * sizeof(T);
  static constexpr key sign = key(1) << (width - 1), all = sign | (sign - 1);
  static constexpr bool floats = code_of<T>::value <= 3, is_signed = code_of<T>::value < 6;

  // Numbers in ascending order; NaNs by their bits, on either side.
  __device__ static key twiddled(T v) {
    key b = bits_of(v);
    if (!floats) return is_signed ? b ^ sign : b;
    return b & sign ? b ^ all : b | sign;
  }
  __device__ static bool nan(T v) {
    auto x = up(v);
    return x != x;
  }
  __device__ static key radix(T v) { return floats && nan(v) ? all : twiddled(v); }
  __device__ static key cub_radix(T v) {
    key k = twiddled(v);
    return floats && k == sign - 1 ? sign : k;
  }
  // What a comparison of numbers sees, with NaNs above all.
  __device__ static key compared(T v) {
    key k = radix(v);
    return floats && k == sign - 1 ? sign : k;
  }
};

// The place in a slice that is walked.
template <class T> struct slice {
  const T* data;
  int64_t step;
  uint32_t size;
  __device__ T operator[](uint32_t i) const { return data[i * step]; }
};

// select finds the radix of the k-th largest (or smallest) element, 8 bits at a time from the top, and how many
// elements that equal it belong to the k.
template <class T> __device__ __forceinline__ typename keys<T>::key select(const slice<T>& x, uint32_t k, bool largest,
                                                                           uint32_t* count, uint32_t* equal) {
  typedef typename keys<T>::key key;
  __shared__ uint32_t digit, left;
  key found = 0, mask = 0;
  for (int shift = keys<T>::width - 8; shift >= 0; shift -= 8) {
    for (uint32_t d = threadIdx.x; d < 256; d += blockDim.x) count[d] = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < x.size; i += blockDim.x) {
      key v = keys<T>::radix(x[i]);
      if ((v & mask) == found) atomicAdd(&count[(uint32_t)(v >> shift) & 255], 1u);
    }
    __syncthreads();
    if (threadIdx.x < 32) {  // each lane has 8 digits, in the order in which they are taken
      uint32_t lane = threadIdx.x, own = 0, seen;
      auto nth = [&](uint32_t j) { return largest ? 255 - (8 * lane + j) : 8 * lane + j; };
      for (uint32_t j = 0; j < 8; j++) own += count[nth(j)];
      seen = own;
      for (uint32_t o = 1; o < 32; o *= 2) {
        uint32_t before = __shfl_up_sync(FULL, seen, o);
        if (lane >= o) seen += before;
      }
      seen -= own;
      if (seen < k && k <= seen + own) {
        uint32_t j = 0;
        for (; seen + count[nth(j)] < k; j++) seen += count[nth(j)];
        digit = nth(j);
        left = k - seen;
      }
    }
    __syncthreads();
    found |= (key)digit << shift;
    mask |= (key)255 << shift;
    k = left;
    __syncthreads();
  }
  *equal = k;
  return found;
}

// The exclusive sums of two flags over a block: low and high half of a word. total is that of all threads.
__device__ __forceinline__ uint32_t rank_in_block(bool beyond, bool equal, uint32_t* warps, uint32_t* total) {
  uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t a = __ballot_sync(FULL, beyond), b = __ballot_sync(FULL, equal), below = (1u << lane) - 1;
  if (lane == 0) warps[warp] = __popc(a) | __popc(b) << 16;
  __syncthreads();
  uint32_t before = __popc(a & below) | __popc(b & below) << 16, sum = 0;
  for (uint32_t w = 0; w < blockDim.x / 32; w++) {
    if (w == warp) before += sum;
    sum += warps[w];
  }
  *total = sum;
  __syncthreads();
  return before;
}

// network sorts up to 32 places by PyTorch's bitonic network of 16 threads.
template <class T>
__device__ __forceinline__ void network(const slice<T>& x, uint32_t k, bool largest, uint32_t* places) {
  typedef typename keys<T>::key key;
  __shared__ key value[32];
  __shared__ uint32_t at[32];
  __shared__ bool valid[32];
  uint32_t t = threadIdx.x;
  if (t < 32) {
    valid[t] = t < k;
    at[t] = t < k ? places[t] : 0;
    value[t] = t < k ? keys<T>::compared(x[places[t]]) : 0;
  }
  for (uint32_t size = 2; size <= 32; size *= 2) {
    bool down = size < 32 && (t & (size / 2)) != 0;
    for (uint32_t stride = size / 2; stride > 0; stride /= 2) {
      __syncthreads();
      if (t >= 16) continue;
      uint32_t a = 2 * t - (t & (stride - 1)), b = a + stride;
      bool after = largest ? value[a] > value[b] : value[a] < value[b];
      bool swap = (after && valid[a]) || !valid[b];
      if (swap != down) continue;
      key v = value[a];
      value[a] = value[b], value[b] = v;
      uint32_t place = at[a];
      at[a] = at[b], at[b] = place;
      bool was = valid[a];
      valid[a] = valid[b], valid[b] = was;
    }
  }
  __syncthreads();
  if (t < k) places[t] = at[t];
  __syncthreads();
}

// write_ranked stores what is at the places, sorted stably: the rank of each is the number of those that come before
// it.
template <class T> __device__ __forceinline__ void write_ranked(const slice<T>& x, uint32_t k, bool largest,
                                                                const uint32_t* places, typename keys<T>::key* value,
                                                                T* y, int64_t y_step, int64_t* at, int64_t at_step) {
  typedef typename keys<T>::key key;
  key flip = largest ? keys<T>::all : 0;
  for (uint32_t i = threadIdx.x; i < k; i += blockDim.x) value[i] = keys<T>::cub_radix(x[places[i]]) ^ flip;
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < k; i += blockDim.x) {
    key mine = value[i];
    uint32_t rank = 0;
    for (uint32_t j = 0; j < k; j++) rank += value[j] < mine || (value[j] == mine && j < i);
    y[rank * y_step] = x[places[i]];
    at[rank * at_step] = places[i];
  }
}

template <class T> __device__ __forceinline__ void topk(const space& s, T* y, const strides& to, int64_t y_step,
                                                        int64_t* at, const strides& at_by, int64_t at_step,
                                                        const T* data, const strides& from, int64_t step, uint32_t size,
                                                        uint32_t k, int largest, int sorted) {
  DYN_SHARED(unsigned char, memory);
  typedef typename keys<T>::key key;
  __shared__ uint32_t count[256], warps[32];
  uint32_t* places = (uint32_t*)(memory + (uint64_t)k * (sorted && k > 32 ? sizeof(key) : 0));
  position p = find<1>(s, blockIdx.x);
  slice<T> x = {data + offset(from, p, s.dims), step, size};
  y += offset(to, p, s.dims);
  at += offset(at_by, p, s.dims);
  uint32_t equal;
  key kth = select(x, k, largest, count, &equal);
  uint32_t beyond_at = 0, equal_at = k - equal;
  for (uint32_t start = 0; start < size && (beyond_at < k - equal || equal_at < k); start += blockDim.x) {
    uint32_t i = start + threadIdx.x, total;
    key v = i < size ? keys<T>::radix(x[i]) : 0;
    bool is_beyond = i < size && (largest ? v > kth : v < kth), is_equal = i < size && v == kth;
    uint32_t before = rank_in_block(is_beyond, is_equal, warps, &total);
    if (is_beyond) places[beyond_at + (before & 0xffff)] = i;
    if (is_equal && equal_at + (before >> 16) < k) places[equal_at + (before >> 16)] = i;
    beyond_at += total & 0xffff;
    equal_at += total >> 16;
  }
  __syncthreads();
  if (sorted && k > 32) return write_ranked(x, k, largest, places, (key*)memory, y, y_step, at, at_step);
  if (sorted) network(x, k, largest, places);
  for (uint32_t i = threadIdx.x; i < k; i += blockDim.x) {
    y[i * y_step] = x[places[i]];
    at[i * at_step] = places[i];
  }
}

#define ENTRY(T, suffix)                                                                                             \
  KERNEL_BOUNDS(topk_##suffix, 1024, SPACE, OUTPUT(T, y), int64_t y_step, OUTPUT(int64_t, at), int64_t at_step,      \
                OUTPUT(const T, x), int64_t step, uint32_t slice_size, uint32_t k, int largest, int sorted) {        \
    topk<T>(THE_SPACE, y, THE_STRIDES(y), y_step, at, THE_STRIDES(at), at_step, x, THE_STRIDES(x), step, slice_size, \
            k, largest, sorted);                                                                                     \
  }
EACH_FLOAT(ENTRY)
ENTRY(int64_t, i64)
ENTRY(int32_t, i32)
ENTRY(uint8_t, u8)
