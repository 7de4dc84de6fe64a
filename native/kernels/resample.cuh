// resample.cuh: coordinates and weights that resizing and grid sampling share. Where nvcc fused PyTorch's sums of
// products (in its SASS for sm_90, the same for all types) stands fmaf: of a*b + c*d the first product is fused.
#pragma once

// The place in the input that an output pixel shows, as PyTorch's area_pixel_compute_source_index gives it: the
// corners' centres on each other, or the edges. What lies before the first pixel's centre is that pixel, but not for
// cubics.
__device__ __forceinline__ float source_place(int at, float scale, int align_corners, bool cubic) {
  if (align_corners) return (float)at * scale;
  float place = fmaf((float)at + 0.5f, scale, -0.5f);
  return !cubic && place < 0.0f ? 0.0f : place;
}

// Two neighbours of a place and their weights. Behind the last pixel both are that pixel.
struct neighbours {
  int first, second;
  float weight0, weight1;
};
__device__ __forceinline__ neighbours neighbours_of(int at, int size, float scale, int align_corners) {
  float place = source_place(at, scale, align_corners, false);
  int first = (int)place;
  float weight1 = place - (float)first;
  first = min(first, size - 1);  // only a scale that does not fit the sizes leads behind the end
  return neighbours{first, min(first + 1, size - 1), 1.0f - weight1, weight1};
}

// Keys' cubic with A = -0.75 at the distances t + 1, t, 1 - t, 2 - t.
__device__ __forceinline__ float cubic_near(float x) { return fmaf(fmaf(x, 1.25f, -2.25f) * x, x, 1.0f); }
__device__ __forceinline__ float cubic_far(float x) { return fmaf(fmaf(fmaf(x, -0.75f, 3.75f), x, -6.0f), x, 3.0f); }
struct cubic {
  float weight[4];
  __device__ __forceinline__ explicit cubic(float t) {
    float back = 1.0f - t;
    weight[0] = cubic_far(t + 1.0f);
    weight[1] = cubic_near(t);
    weight[2] = cubic_near(back);
    weight[3] = cubic_far(back + 1.0f);
  }
  __device__ __forceinline__ float blend(float a, float b, float c, float d) const {
    return fmaf(d, weight[3], fmaf(c, weight[2], fmaf(a, weight[0], b * weight[1])));
  }
};
