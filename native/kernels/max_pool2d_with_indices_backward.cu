#include "prelude.cuh"
#include "convert.cuh"
#include "plane.cuh"

// How many windows begin before a place, so that the first window that reaches it is found.
__device__ __forceinline__ int first_window(int at, int pad, int kernel, int dilation, int stride) {
  int beyond = at + pad - ((kernel - 1) * dilation + 1);
  return beyond < 0 ? 0 : beyond / stride + 1;
}

// Every input element gathers the gradients of the windows whose largest element it was, row by row, in the order of
// PyTorch's max_pool_backward_nchw.
template <class T> __device__ __forceinline__ void max_pool_backward(T* to, const planes& out, const T* grad,
                                                                     const planes& from, const int64_t* indices,
                                                                     const planes& index, const outputs& o,
                                                                     const window& k, int rows, int columns) {
  each_output(o, [&](int n, int c, int h, int w) {
    int top = first_window(h, k.pad_h, k.kernel_h, k.dilation_h, k.stride_h);
    int left = first_window(w, k.pad_w, k.kernel_w, k.dilation_w, k.stride_w);
    int bottom = min((h + k.pad_h) / k.stride_h + 1, rows), right = min((w + k.pad_w) / k.stride_w + 1, columns);
    accumulate<T> sum = 0;
    for (int y = top; y < bottom; y++)
      for (int x = left; x < right; x++)
        if (indices[index.at(n, c, y, x)] == h * k.width + w) sum += ld(grad + from.at(n, c, y, x));
    st(to + out.at(n, c, h, w), sum);
  });
}

#define ENTRY(T, suffix)                                                                            \
  KERNEL(max_pool2d_with_indices_backward_##suffix, T* to, PLANES(to), const T* grad, PLANES(grad), \
         const int64_t* indices, PLANES(indices), OUTPUTS, WINDOW, int rows, int columns) {         \
    max_pool_backward(to, THE_PLANES(to), grad, THE_PLANES(grad), indices, THE_PLANES(indices),     \
                      THE_OUTPUTS(channels_last), THE_WINDOW, rows, columns);                       \
  }
EACH_FLOAT(ENTRY)
