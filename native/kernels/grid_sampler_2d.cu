#include "prelude.cuh"
#include "convert.cuh"
#include "plane.cuh"
#include "resample.cuh"

// grid_sampler_2d: the image at places that a grid gives, -1 and 1 being its borders. Images, their sizes and strides
// are those of plane.cuh; a thread computes CHANNELS_EACH channels of a point, so that its place is found once for
// them.
#define CHANNELS_EACH 4
enum { ZEROS, BORDER, REFLECTION };

struct grid {
  int height, width;  // of the image
  int padding, align_corners;
};

// From -1..1 to pixels: the borders are the centres of the corner pixels, or the edges of the image.
__device__ __forceinline__ float unnormalize(float v, int size, int align_corners) {
  if (align_corners) return (v + 1.0f) * 0.5f * (float)(size - 1);
  return fmaf(v + 1.0f, (float)size, -1.0f) * 0.5f;
}

template <class T> __device__ __forceinline__ float clip(float v, int size) {
  return fminf(round_to<T>((float)(size - 1)), fmaxf(v, 0.0f));
}

// A place folded back between low and high, which are given doubled. PyTorch computes it in T: float, but in bicubic
// the element's type.
template <class T> __device__ __noinline__ float reflect(float v, int twice_low, int twice_high) {
  if (twice_low == twice_high) return 0.0f;
  float low = round_to<T>(round_to<T>((float)twice_low) / 2.0f);
  float span = round_to<T>(round_to<T>((float)(twice_high - twice_low)) / 2.0f);
  v = fabsf(round_to<T>(v - low));
  float extra = round_to<T>(fmodf(v, span));
  int flips = __float2int_rd(round_to<T>(v / span));
  if (flips % 2 == 0) return round_to<T>(extra + low);
  return round_to<T>(round_to<T>(span - extra) + low);
}

// What is no number, or none that an int can hold, becomes a place outside.
template <class T> __device__ __forceinline__ float padded(float v, int size, const grid& g) {
  if (g.padding == REFLECTION) v = g.align_corners ? reflect<T>(v, 0, 2 * (size - 1)) : reflect<T>(v, -1, 2 * size - 1);
  if (g.padding != ZEROS) v = clip<T>(v, size);
  return v >= -2147483648.0f && v <= 2147483648.0f ? v : -100.0f;
}

__device__ __forceinline__ bool inside(int row, int column, const grid& g) {
  return row >= 0 && row < g.height && column >= 0 && column < g.width;
}

struct bilinear {
  int64_t at[4];
  float weight[4];
  bool seen[4];
  template <class T> __device__ __forceinline__ bilinear(T, float row, float column, const planes& in, const grid& g) {
    row = padded<float>(row, g.height, g), column = padded<float>(column, g.width, g);
    int y = __float2int_rd(row), x = __float2int_rd(column);
    // At the very end of the range of ints y + 1 wraps around; both are outside.
    int ys[2] = {y, (int)((unsigned)y + 1)}, xs[2] = {x, (int)((unsigned)x + 1)};
    float down[2] = {(float)ys[1] - row, row - (float)y}, across[2] = {(float)xs[1] - column, column - (float)x};
#pragma unroll
    for (int i = 0; i < 4; i++) {
      at[i] = (int64_t)ys[i / 2] * in.row + (int64_t)xs[i % 2] * in.column;
      weight[i] = across[i % 2] * down[i / 2];
      seen[i] = inside(ys[i / 2], xs[i % 2], g);
    }
  }
  template <class T> __device__ __forceinline__ T operator()(const T* p) const {
    float value[4], sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 4; i++) value[i] = seen[i] ? ld(p + at[i]) : 0.0f;
#pragma unroll
    for (int i = 0; i < 4; i++)
      if (seen[i]) sum = fmaf(value[i], weight[i], sum);
    return convert<T>(sum);
  }
};

struct nearest {
  int at;
  bool seen;
  template <class T> __device__ __forceinline__ nearest(T, float row, float column, const planes& in, const grid& g) {
    int y = __float2int_rn(padded<float>(row, g.height, g)), x = __float2int_rn(padded<float>(column, g.width, g));
    seen = inside(y, x, g);
    at = seen ? y * in.row + x * in.column : 0;
  }
  template <class T> __device__ __forceinline__ T operator()(const T* p) const {
    return seen ? p[at] : convert<T>(0.0f);
  }
};

// Each pixel of the neighbourhood is padded by itself, at a place that was rounded to the element's type.
struct bicubic {
  cubic down, across;
  int at[16];
  template <class T> __device__ __forceinline__ bicubic(T, float row, float column, const planes& in, const grid& g)
      : down(row - floorf(row)), across(column - floorf(column)) {
    float top = floorf(row), left = floorf(column);
    int ys[4], xs[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      float h = top - 1.0f + (float)i, w = left + (float)(i - 1);  // each as PyTorch writes it
      ys[i] = __float2int_rz(padded<T>(round_to<T>(h), g.height, g));
      xs[i] = __float2int_rz(padded<T>(round_to<T>(w), g.width, g));
    }
#pragma unroll
    for (int i = 0; i < 16; i++)
      at[i] = inside(ys[i / 4], xs[i % 4], g) ? ys[i / 4] * in.row + xs[i % 4] * in.column : -1;
  }
  template <class T> __device__ __forceinline__ T operator()(const T* p) const {
    float line[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      float value[4];
#pragma unroll
      for (int j = 0; j < 4; j++) value[j] = at[4 * i + j] >= 0 ? ld(p + at[4 * i + j]) : 0.0f;
      line[i] = across.blend(value[0], value[1], value[2], value[3]);
    }
    return convert<T>(down.blend(line[0], line[1], line[2], line[3]));
  }
};

// Points are along the grid's x, channels along its y. The last dimension of points is column, row.
template <class Mode, class T> __device__ __forceinline__ void sample(const T* x, const planes& in, const T* points,
                                                                      const planes& from, T* y, const planes& out,
                                                                      const outputs& o, const grid& g) {
  int first = blockIdx.y * CHANNELS_EACH;
  GRID_STRIDE(i, o.images * o.height * o.width) {
    int w = (int)i % o.width, h = (int)i / o.width % o.height, n = (int)i / o.width / o.height;
    const T* point = points + from.at(n, h, w, 0);
    float column = unnormalize(ld(point), g.width, g.align_corners);
    float row = unnormalize(ld(point + from.column), g.height, g.align_corners);
    Mode mode(T(), row, column, in, g);
#pragma unroll
    for (int c = 0; c < CHANNELS_EACH; c++)
      if (first + c < o.channels) y[out.at(n, first + c, h, w)] = mode(x + in.at(n, first + c, 0, 0));
  }
}

#define MODE(T, suffix, mode)                                                                                        \
  KERNEL(grid_sampler_2d_##mode##_##suffix, const T* x, PLANES(x), const T* points, PLANES(points), T* y, PLANES(y), \
         OUTPUTS, int height, int width, int padding, int align_corners) {                                           \
    sample<mode>(x, THE_PLANES(x), points, THE_PLANES(points), y, THE_PLANES(y), THE_OUTPUTS(channels_last),         \
                 grid{height, width, padding, align_corners});                                                       \
  }
#define ENTRY(T, suffix) MODE(T, suffix, bilinear) MODE(T, suffix, nearest) MODE(T, suffix, bicubic)
EACH_DTYPE(ENTRY)
