// norm_training.cpp: batch norm of a training step and its gradients. cuDNN does not publish its order of additions;
// here sums are in double, in eight chains over the pixels of an image and image after image, so that their order
// depends on the sizes alone. A thread takes whole channels.
#include <math.h>
#include <algorithm>
#include "elements.h"
#include "host.h"

namespace {
// plane walks the pixels of one image's channel: offsets in elements for two tensors.
struct plane {
  int64_t h, w;
  // each calls f(i, a, b): pixel number and its place in both tensors.
  template <class F> void each(const int64_t* as, const int64_t* bs, F f) const {
    for (int64_t y = 0, i = 0; y < h; y++)
      for (int64_t x = 0; x < w; x++, i++) f(i, y * as[2] + x * as[3], y * bs[2] + x * bs[3]);
  }
};

// chains add pixel i to chain i mod 8, so that the compiler may add them side by side.
struct chains {
  double at[8] = {};
  double sum() const { return ((at[0] + at[1]) + (at[2] + at[3])) + ((at[4] + at[5]) + (at[6] + at[7])); }
};

// Channels are shared among threads by a counter.
template <class B> struct job {
  const B& b;
  int64_t next;
  template <class F> void channels(F f) {
    for (int64_t c; (c = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)) < b.c;) f(c);
  }
};

template <class E> void train(void* context, sb_slot*) {
  auto* j = (job<sb_norm_training>*)context;
  const sb_norm_training& b = j->b;
  const plane p = {b.h, b.w};
  const double count = (double)(b.n * b.h * b.w);
  j->channels([&](int64_t c) {
    auto x = [&](int64_t n) { return (const E*)b.x + n * b.xs[0] + c * b.xs[1]; };
    chains sum;
    for (int64_t n = 0; n < b.n; n++) {
      const E* from = x(n);
      p.each(b.xs, b.xs, [&](int64_t i, int64_t at, int64_t) { sum.at[i & 7] += (double)load(from + at); });
    }
    const double mean = sum.sum() / count;
    chains squares;
    for (int64_t n = 0; n < b.n; n++) {
      const E* from = x(n);
      p.each(b.xs, b.xs, [&](int64_t i, int64_t at, int64_t) {
        double d = (double)load(from + at) - mean;
        squares.at[i & 7] = fma(d, d, squares.at[i & 7]);
      });
    }
    const double m2 = squares.sum();
    const float m = (float)mean, invstd = (float)(1 / sqrt(m2 / count + (double)b.epsilon));
    b.save_mean[c] = m;
    b.save_invstd[c] = invstd;
    b.running_mean[c] = (float)fma(b.momentum, mean, (1 - b.momentum) * (double)b.running_mean[c]);
    b.running_variance[c] = (float)fma(b.momentum, m2 / (count - 1), (1 - b.momentum) * (double)b.running_variance[c]);
    const float scale = b.scale[c], bias = b.bias[c];
    for (int64_t n = 0; n < b.n; n++) {
      const E* from = x(n);
      E* to = (E*)b.y + n * b.ys[0] + c * b.ys[1];
      p.each(b.xs, b.ys, [&](int64_t, int64_t in, int64_t out) {
        store(to + out, fmaf(scale * (load(from + in) - m), invstd, bias));
      });
    }
  });
}

template <class E> void backward(void* context, sb_slot*) {
  auto* j = (job<sb_norm_backward>*)context;
  const sb_norm_backward& b = j->b;
  const plane p = {b.h, b.w};
  const double count = (double)(b.n * b.h * b.w);
  j->channels([&](int64_t c) {
    auto x = [&](int64_t n) { return (const E*)b.x + n * b.xs[0] + c * b.xs[1]; };
    auto dy = [&](int64_t n) { return (const E*)b.dy + n * b.dys[0] + c * b.dys[1]; };
    const double mean = b.save_mean[c], invstd = b.save_invstd[c];
    chains sum, dot;
    for (int64_t n = 0; n < b.n; n++) {
      const E *in = x(n), *gradient = dy(n);
      p.each(b.xs, b.dys, [&](int64_t i, int64_t at, int64_t g) {
        double v = (double)load(gradient + g);
        sum.at[i & 7] += v;
        dot.at[i & 7] = fma(v, (double)load(in + at) - mean, dot.at[i & 7]);
      });
    }
    const double total = sum.sum(), product = dot.sum();
    b.dbias[c] = (float)total;
    b.dscale[c] = (float)(product * invstd);
    // dx = scale * invstd * (dy - mean of dy - (x - mean) * invstd^2 * mean of dy * (x - mean))
    const float m = b.save_mean[c], average = (float)(total / count),
                slope = (float)(product / count * invstd * invstd);
    const float factor = b.scale[c] * b.save_invstd[c];
    for (int64_t n = 0; n < b.n; n++) {
      const E *in = x(n), *gradient = dy(n);
      E* to = (E*)b.dx + n * b.dxs[0] + c * b.dxs[1];
      for (int64_t y = 0; y < b.h; y++)
        for (int64_t w = 0; w < b.w; w++) {
          float v = load(in + y * b.xs[2] + w * b.xs[3]) - m, g = load(gradient + y * b.dys[2] + w * b.dys[3]);
          store(to + y * b.dxs[2] + w * b.dxs[3], (fmaf(-slope, v, g) - average) * factor);
        }
    }
  });
}

template <class B> void run(sb_host* host, sb_slot* mine, const B& b, sb_work f32, sb_work half, sb_work brain) {
  job<B> j = {b, 0};
  sb_parallel(host, mine, b.c, b.type == SB_FLOAT32 ? f32 : b.type == SB_FLOAT16 ? half : brain, &j);
}
}  // namespace

extern "C" void sb_normalise_training(sb_host* host, sb_slot* mine, const sb_norm_training* b) {
  run(host, mine, *b, train<float>, train<f16>, train<bf16>);
}
extern "C" void sb_normalise_backward(sb_host* host, sb_slot* mine, const sb_norm_backward* b) {
  run(host, mine, *b, backward<float>, backward<f16>, backward<bf16>);
}
