// norm.cpp: batch norm inference: y = fma(scale * (x - mean), invstd, bias) with invstd = 1 / sqrt(variance + epsilon),
// all in float, rounded once to the type of y. These are the products and the fusion of PyTorch's own CUDA kernel
// (batch_norm_transform_input_kernel); cuDNN does not publish its order.
#include <math.h>
#include <algorithm>
#include "elements.h"
#include "host.h"

namespace {
struct job {
  const sb_batch_norm& b;
  int64_t next;
};

float inverse_deviation(const sb_batch_norm& b, int64_t c) { return 1.0f / sqrtf(b.variance[c] + b.epsilon); }
float normalise(float x, float scale, float mean, float invstd, float bias) {
  return fmaf(scale * (x - mean), invstd, bias);
}

// One channel of one image after another.
template <class E> void planes(void* context, sb_slot*) {
  job* j = (job*)context;
  const sb_batch_norm& b = j->b;
  bool rows_join = b.xs[2] == b.w * b.xs[3] && b.ys[2] == b.w * b.ys[3];
  int64_t rows = rows_join ? 1 : b.h, width = rows_join ? b.h * b.w : b.w;
  for (int64_t i; (i = __atomic_fetch_add(&j->next, 1, __ATOMIC_RELAXED)) < b.n * b.c;) {
    int64_t n = i / b.c, c = i % b.c;
    float scale = b.scale[c], mean = b.mean[c], bias = b.bias[c], invstd = inverse_deviation(b, c);
    for (int64_t r = 0; r < rows; r++) {
      const E* x = (const E*)b.x + n * b.xs[0] + c * b.xs[1] + r * b.xs[2];
      E* y = (E*)b.y + n * b.ys[0] + c * b.ys[1] + r * b.ys[2];
      if (b.xs[3] == 1 && b.ys[3] == 1)
        for (int64_t t = 0; t < width; t++) store(y + t, normalise(load(x + t), scale, mean, invstd, bias));
      else
        for (int64_t t = 0; t < width; t++)
          store(y + t * b.ys[3], normalise(load(x + t * b.xs[3]), scale, mean, invstd, bias));
    }
  }
}

// One row of pixels after another, where the channels of a pixel are neighbours.
template <class E> void pixels(void* context, sb_slot* slot) {
  job* j = (job*)context;
  const sb_batch_norm& b = j->b;
  float* invstd = (float*)slot->scratch;
  for (int64_t c = 0; c < b.c; c++) invstd[c] = inverse_deviation(b, c);
  for (int64_t i; (i = __atomic_fetch_add(&j->next, 1, __ATOMIC_RELAXED)) < b.n * b.h;) {
    const E* x = (const E*)b.x + i / b.h * b.xs[0] + i % b.h * b.xs[2];
    E* y = (E*)b.y + i / b.h * b.ys[0] + i % b.h * b.ys[2];
    for (int64_t t = 0; t < b.w; t++, x += b.xs[3], y += b.ys[3])
      for (int64_t c = 0; c < b.c; c++)
        store(y + c, normalise(load(x + c), b.scale[c], b.mean[c], invstd[c], b.bias[c]));
  }
}

template <class E> void run(sb_host* host, sb_slot* mine, const sb_batch_norm& b) {
  job j = {b, 0};
  if (b.xs[1] == 1 && b.ys[1] == 1 && b.xs[3] != 1 && b.c <= SB_SCRATCH / (int64_t)sizeof(float))
    sb_parallel(host, mine, b.n * b.h, pixels<E>, &j);
  else
    sb_parallel(host, mine, b.n * b.c, planes<E>, &j);
}
}  // namespace

extern "C" void sb_normalise(sb_host* host, sb_slot* mine, const sb_batch_norm* b) {
  switch (b->type) {
    case SB_FLOAT32: return run<float>(host, mine, *b);
    case SB_BFLOAT16: return run<bf16>(host, mine, *b);
    case SB_FLOAT16: return run<f16>(host, mine, *b);
  }
}
