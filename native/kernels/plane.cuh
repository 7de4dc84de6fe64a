// plane.cuh: what pooling and resampling share: tensors of images of channels of rows and columns, and the windows that
// slide over them.
#pragma once

// How far apart, in elements, neighbours of each kind lie. Offsets fit into 31 bits.
struct planes {
  int image, channel, row, column;
  __device__ __forceinline__ int at(int n, int c, int h, int w) const {
    return n * image + c * channel + h * row + w * column;
  }
};
#define PLANES(x) int x##_image, int x##_channel, int x##_row, int x##_column
#define THE_PLANES(x) \
  planes { x##_image, x##_channel, x##_row, x##_column }

// The outputs: how many there are of each kind, and whether channels or columns are neighbours in memory.
struct outputs {
  int images, channels, height, width;
  int channels_last;
};
#define OUTPUTS int images, int channels, int out_height, int out_width, int channels_last
#define THE_OUTPUTS(last) \
  outputs { images, channels, out_height, out_width, last }

// each_output calls f(n, c, h, w) for every output. Threads along x have neighbours in memory: columns, or channels;
// along y lie rows, or columns; along the grid's z planes, or lines. So nothing but z is divided.
template <class F> __device__ __forceinline__ void each_output(const outputs& o, F f) {
  int inner = o.channels_last ? o.channels : o.width, middle = o.channels_last ? o.width : o.height;
  int split = o.channels_last ? o.height : o.channels;
  for (int z = blockIdx.z; z < o.images * split; z += gridDim.z) {
    int n = z / split, rest = z - n * split;
    for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < middle; y += gridDim.y * blockDim.y)
      for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < inner; x += gridDim.x * blockDim.x)
        f(n, o.channels_last ? x : rest, o.channels_last ? rest : y, o.channels_last ? y : x);
  }
}

// A pooling window and what it slides over.
struct window {
  int height, width;  // of the input
  int kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
};
#define WINDOW                                                                                                         \
  int height, int width, int kernel_h, int kernel_w, int stride_h, int stride_w, int pad_h, int pad_w, int dilation_h, \
      int dilation_w
#define THE_WINDOW \
  window { height, width, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w }

// visit calls f(element, index in the plane) for every input element of the window of output (h, w), row by row,
// padding left out. K > 0 is a square window of K x K without dilation over columns that are neighbours in memory:
// where it lies inside of the input, all its loads are on their way before the first is used.
template <int K, class T, class F>
__device__ __forceinline__ void visit(const T* plane, const planes& in, const window& k, int h, int w, F f) {
  int top = h * k.stride_h - k.pad_h, left = w * k.stride_w - k.pad_w;
  if (K > 0 && top >= 0 && left >= 0 && top + K <= k.height && left + K <= k.width) {
    T element[K > 0 ? K * K : 1];
#pragma unroll
    for (int i = 0; i < K; i++) {
      const T* line = plane + (top + i) * in.row + left;
#pragma unroll
      for (int j = 0; j < K; j++) element[i * K + j] = line[j];
    }
    int index = top * k.width + left;
#pragma unroll
    for (int i = 0; i < K; i++, index += k.width)
#pragma unroll
      for (int j = 0; j < K; j++) f(element[i * K + j], index + j);
    return;
  }
  int bottom = min(top + (k.kernel_h - 1) * k.dilation_h + 1, k.height);
  int right = min(left + (k.kernel_w - 1) * k.dilation_w + 1, k.width);
  while (top < 0) top += k.dilation_h;
  while (left < 0) left += k.dilation_w;
  for (int y = top; y < bottom; y += k.dilation_h)
    for (int x = left; x < right; x += k.dilation_w) f(plane[y * in.row + x * in.column], y * k.width + x);
}
