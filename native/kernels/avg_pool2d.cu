#include "prelude.cuh"
#include "convert.cuh"
#include "plane.cuh"

// The mean of each window: elements are added row by row, left to right, to a zero, in float (double for double); the
// sum is divided, not multiplied by a reciprocal, and rounded once. divisor 0 means the size of the window, with what
// lies in the padding (but not beyond it, where ceil_mode makes a window hang over) or without.
template <int K, class T> __device__ __forceinline__ void avg_pool(const T* x, const planes& in, T* y,
                                                                   const planes& out, const outputs& o, const window& k,
                                                                   bool include_pad, int divisor) {
  each_output(o, [&](int n, int c, int h, int w) {
    accumulate<T> sum = 0;
    int inside = 0;
    visit<K>(x + in.at(n, c, 0, 0), in, k, h, w, [&](T element, int) {
      sum += up(element);
      inside++;
    });
    int top = h * k.stride_h - k.pad_h, left = w * k.stride_w - k.pad_w;
    int padded = (min(top + k.kernel_h, k.height + k.pad_h) - top) * (min(left + k.kernel_w, k.width + k.pad_w) - left);
    int count = divisor ? divisor : include_pad ? padded : inside;
    st(y + out.at(n, c, h, w), inside ? sum / (accumulate<T>)count : (accumulate<T>)0);
  });
}

#define ENTRY(K, T, suffix)                                                                                            \
  KERNEL(avg_pool2d_##suffix, const T* x, PLANES(x), T* y, PLANES(y), OUTPUTS, WINDOW, int include_pad, int divisor) { \
    avg_pool<K>(x, THE_PLANES(x), y, THE_PLANES(y), THE_OUTPUTS(K ? 0 : channels_last), THE_WINDOW, include_pad,       \
                divisor);                                                                                              \
  }
#define ENTRIES(T, suffix) ENTRY(0, T, suffix) ENTRY(2, T, suffix##_2x2) ENTRY(3, T, suffix##_3x3)
EACH_DTYPE(ENTRIES)
ENTRY(0, double, f64)
