#include "prelude.cuh"

// torchvision's deformable convolution. Its elements are of the type they are computed in: each step is rounded to T,
// and in float products are fused into sums as nvcc did; of w1*v1 + w2*v2 the first.
template <class T> __device__ __forceinline__ float plus_product(float a, float b, float c) {
  return round_to<T>(round_to<T>(a * b) + c);
}
template <> __device__ __forceinline__ float plus_product<float>(float a, float b, float c) { return fmaf(a, b, c); }

struct sampling {
  int height, width, kernel_h, kernel_w, pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w;
  int images, channels, offset_groups, out_height, out_width, use_mask;
};

// The image between four pixels; outside it is 0. A NaN is at pixel 0, as the GPU converts it.
template <class T> __device__ __forceinline__ float sample(const T* image, int height, int width, float h, float w) {
  if (h <= -1.0f || (float)height <= h || w <= -1.0f || (float)width <= w) return 0.0f;
  int top = __float2int_rd(h), left = __float2int_rd(w);
  float lower = round_to<T>(h - round_to<T>((float)top)), east = round_to<T>(w - round_to<T>((float)left));
  float upper = round_to<T>(1.0f - lower), west = round_to<T>(1.0f - east);
  bool above = top >= 0, below = top + 1 <= height - 1, before = left >= 0, behind = left + 1 <= width - 1;
  const T* p = image + (top * width + left);
  float v1 = above && before ? ld(p) : 0.0f, v2 = above && behind ? ld(p + 1) : 0.0f;
  float v3 = below && before ? ld(p + width) : 0.0f, v4 = below && behind ? ld(p + width + 1) : 0.0f;
  float w1 = round_to<T>(upper * west), w2 = round_to<T>(upper * east);
  float w3 = round_to<T>(lower * west), w4 = round_to<T>(lower * east);
  return plus_product<T>(w4, v4, plus_product<T>(w3, v3, plus_product<T>(w1, v1, round_to<T>(w2 * v2))));
}

// One place of one channel, with its window: a column of [channels * window, images * places].
template <class T> __device__ __forceinline__ void gather(int i, const T* x, const T* offset, const T* mask, T* columns,
                                                          const sampling& s) {
  int places = s.out_height * s.out_width, window = s.kernel_h * s.kernel_w;
  int column = i % s.out_width, row = i / s.out_width % s.out_height;
  int image = i / places % s.images, channel = i / places / s.images;
  int place = i % places, group = image * s.offset_groups + channel / (s.channels / s.offset_groups);
  int64_t step = (int64_t)s.images * places;
  const T* plane = x + ((int64_t)image * s.channels + channel) * s.height * s.width;
  offset += (int64_t)group * 2 * window * places + place;
  mask += (int64_t)group * window * places + place;
  columns += channel * window * step + (int64_t)image * places + place;
  for (int j = 0; j < s.kernel_h; j++)
    for (int k = 0; k < s.kernel_w; k++) {
      int h = row * s.stride_h - s.pad_h + j * s.dilation_h, w = column * s.stride_w - s.pad_w + k * s.dilation_w;
      float y = round_to<T>(round_to<T>((float)h) + ld(offset));
      float x = round_to<T>(round_to<T>((float)w) + ld(offset + places));
      float v = sample(plane, s.height, s.width, y, x);
      st(columns, s.use_mask ? ld(mask) * v : v);
      offset += 2 * (int64_t)places, mask += places, columns += step;
    }
}

#define ENTRY(T, suffix)                                                                                              \
  KERNEL(deform_columns_##suffix, int n, const T* x, const T* offset, const T* mask, T* columns, int height,          \
         int width, int kernel_h, int kernel_w, int pad_h, int pad_w, int stride_h, int stride_w, int dilation_h,     \
         int dilation_w, int images, int channels, int offset_groups, int out_height, int out_width, int use_mask) {  \
    sampling s = {height,     width,      kernel_h, kernel_w, pad_h,         pad_w,      stride_h,  stride_w,         \
                  dilation_h, dilation_w, images,   channels, offset_groups, out_height, out_width, use_mask};        \
    GRID_STRIDE(i, n) gather((int)i, x, offset, mask, columns, s);                                                    \
  }                                                                                                                   \
  /* The products, [rounds, channels, images, places], to images of channels, and the bias added. */                  \
  KERNEL(deform_bias_##suffix, int n, const T* products, const T* bias, T* y, int images, int channels, int places) { \
    GRID_STRIDE(i, n) {                                                                                               \
      int place = (int)i % places, image = (int)i / places / channels, channel = (int)i / places % channels;          \
      int from = ((image / images * channels + channel) * images + image % images) * places + place;                  \
      st(y + i, ld(products + from) + ld(bias + channel));                                                            \
    }                                                                                                                 \
  }
ENTRY(float, f32)
ENTRY(f16, f16)
