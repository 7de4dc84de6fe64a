#include "prelude.cuh"
#include "convert.cuh"
#include "plane.cuh"

// The largest element of each window and its index in the plane (row * width + column), as PyTorch finds them: the
// first of equal ones; a NaN beats everything before it, so the last NaN wins. Padding is never looked at. Where every
// element is -infinity the index is the window's first element in NCHW and 0 in channels-last tensors. indices may be
// null.
template <int K, class T>
__device__ __forceinline__ void max_pool(const T* x, const planes& in, T* y, const planes& out, int64_t* indices,
                                         const planes& index, const outputs& o, const window& k) {
  each_output(o, [&](int n, int c, int h, int w) {
    T best = convert<T>(-INFINITY);
    accumulate<T> best_value = -INFINITY;
    int best_at = -1;
    visit<K>(x + in.at(n, c, 0, 0), in, k, h, w, [&](T element, int at) {
      accumulate<T> v = up(element);
      if (v > best_value || v != v) best = element, best_value = v, best_at = at;
    });
    if (best_at < 0) {
      int row = h * k.stride_h - k.pad_h, column = w * k.stride_w - k.pad_w;
      while (row < 0) row += k.dilation_h;
      while (column < 0) column += k.dilation_w;
      best_at = o.channels_last ? 0 : row * k.width + column;
    }
    y[out.at(n, c, h, w)] = best;
    if (indices) indices[index.at(n, c, h, w)] = best_at;
  });
}

#define ENTRY(K, T, suffix)                                                                                           \
  KERNEL(max_pool2d_with_indices_##suffix, const T* x, PLANES(x), T* y, PLANES(y), int64_t* indices, PLANES(indices), \
         OUTPUTS, WINDOW) {                                                                                           \
    max_pool<K>(x, THE_PLANES(x), y, THE_PLANES(y), indices, THE_PLANES(indices), THE_OUTPUTS(K ? 0 : channels_last), \
                THE_WINDOW);                                                                                          \
  }
#define ENTRIES(T, suffix) \
  ENTRY(0, T, suffix) ENTRY(2, T, suffix##_2x2) ENTRY(3, T, suffix##_3x3) ENTRY(5, T, suffix##_5x5)
EACH_DTYPE(ENTRIES)
ENTRY(0, double, f64)
