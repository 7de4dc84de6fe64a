// depthwise.cpp: convolutions with one output channel a group, where a matrix product would spend its time packing. The
// arithmetic is that of host.h: one chain over k, zeros of the padding included.
//
// For an output row, the input rows that it reads are converted to lines without gaps: padding filled in, and for
// stride s split in s phases, so that every tap reads a run of neighbours. Then a few outputs at a time run through all
// taps.
#include <algorithm>
#include <type_traits>
#include "elements.h"
#include "host.h"

namespace {
struct floats {
  enum { lanes = 8 };
  __m256 v = _mm256_setzero_ps();
  void add(const float* a, const float* b) { v = _mm256_fmadd_ps(_mm256_broadcast_ss(a), _mm256_loadu_ps(b), v); }
  void store(float* p) const { _mm256_storeu_ps(p, v); }
};
struct doubles {
  enum { lanes = 4 };
  __m256d v = _mm256_setzero_pd();
  void add(const double* a, const double* b) { v = _mm256_fmadd_pd(_mm256_broadcast_sd(a), _mm256_loadu_pd(b), v); }
  void store(double* p) const { _mm256_storeu_pd(p, v); }
};

template <class E> struct depthwise {
  typedef typename accumulator<E>::type T;
  typedef std::conditional_t<std::is_same_v<T, double>, doubles, floats> vector;
  enum : int64_t { VECTORS = 4, OUTPUTS = VECTORS * vector::lanes };  // at a time
  const sb_convolution& c;
  int64_t length, next = 0;  // of a phase

  explicit depthwise(const sb_convolution& c) : c(c) {
    int64_t outputs = (c.ow + OUTPUTS - 1) / OUTPUTS * OUTPUTS;
    length = outputs + (c.kw - 1) * c.dx / c.sx;
  }
  // In scratch memory: lines, the weights of a group, and where in its line each tap starts.
  int64_t lines_count() const { return c.ci * c.kh * c.sx * length; }
  int64_t taps() const { return c.ci * c.kh * c.kw; }
  bool fits() const { return (lines_count() + 2 * taps()) * (int64_t)sizeof(double) <= SB_SCRATCH; }

  void lines(const E* x, int64_t oy, T* to) const {
    for (int64_t ci = 0; ci < c.ci; ci++)
      for (int64_t ky = 0; ky < c.kh; ky++) {
        int64_t iy = oy * c.sy + ky * c.dy - c.py;
        const E* row = x + ci * c.xs[1] + iy * c.xs[2];
        for (int64_t phase = 0; phase < c.sx; phase++, to += length) {
          // Element t is pixel t * sx + phase - px of the row: elements low..high-1 are inside.
          int64_t left = phase - c.px;
          int64_t low = left < 0 ? std::min(length, (-left + c.sx - 1) / c.sx) : 0;
          int64_t high = left < c.wd ? std::min(length, (c.wd - 1 - left) / c.sx + 1) : 0;
          if (iy < 0 || iy >= c.h) low = high = 0;
          high = std::max(low, high);
          std::fill(to, to + low, T(0));
          const E* from = row + left * c.xs[3];
          int64_t step = c.sx * c.xs[3];
          if (step == 1)
            load_run(to + low, from + low, high - low);
          else
            for (int64_t t = low; t < high; t++) to[t] = load(from + t * step);
          std::fill(to + high, to + length, T(0));
        }
      }
  }
  void row(const T* in, const T* weights, const int64_t* starts, E* y) const {
    for (int64_t j = 0; j < c.ow; j += OUTPUTS) {
      vector acc[VECTORS];
      for (int64_t k = 0; k < taps(); k++)
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++) acc[v].add(weights + k, in + starts[k] + j + v * vector::lanes);
      T out[OUTPUTS];
#pragma GCC unroll 4
      for (int v = 0; v < VECTORS; v++) acc[v].store(out + v * vector::lanes);
      int64_t n = std::min<int64_t>(OUTPUTS, c.ow - j);
      if (c.ys[3] == 1)
        store_run(y + j, out, n);
      else
        for (int64_t o = 0; o < n; o++) store(y + (j + o) * c.ys[3], out[o]);
    }
  }
  // One row of all groups: in a channels-last image they share cache lines.
  void rows(int64_t image, int64_t oy, char* scratch) const {
    int64_t* starts = (int64_t*)scratch;
    T *weights = (T*)(starts + taps()), *in = weights + taps();
    for (int64_t k = 0; k < taps(); k++) {
      int64_t x = k % c.kw * c.dx;
      starts[k] = k / c.kw * c.sx * length + x % c.sx * length + x / c.sx;
    }
    for (int64_t g = 0; g < c.groups; g++) {
      T* w = weights;
      for (int64_t ci = 0; ci < c.ci; ci++)
        for (int64_t ky = 0; ky < c.kh; ky++)
          for (int64_t kx = 0; kx < c.kw; kx++)
            *w++ = load((const E*)c.w + g * c.wg + ci * c.ws[1] + ky * c.ws[2] + kx * c.ws[3]);
      lines((const E*)c.x + image * c.xs[0] + g * c.xg, oy, in);
      row(in, weights, starts, (E*)c.y + image * c.ys[0] + g * c.yg + oy * c.ys[2]);
    }
  }
  static void work(void* context, sb_slot* slot) {
    depthwise* d = (depthwise*)context;
    for (int64_t i; (i = __atomic_fetch_add(&d->next, 1, __ATOMIC_RELAXED)) < d->c.n * d->c.oh;)
      d->rows(i / d->c.oh, i % d->c.oh, slot->scratch);
  }
};

template <class E> bool convolve(sb_host* host, sb_slot* mine, const sb_convolution& c) {
  depthwise<E> d(c);
  if (!d.fits()) return false;
  sb_parallel(host, mine, c.n * c.oh, depthwise<E>::work, &d);
  return true;
}
}  // namespace

extern "C" int sb_convolve_depthwise(sb_host* host, sb_slot* mine, const sb_convolution* c) {
  if (c->co != 1 || c->bias || c->alpha != 1 || c->beta != 0 || c->groups * c->kh * c->kw == 1) return 0;
  switch (c->type) {
    case SB_FLOAT32: return convolve<float>(host, mine, *c);
    case SB_BFLOAT16: return convolve<bf16>(host, mine, *c);
    case SB_FLOAT16: return convolve<f16>(host, mine, *c);
    case SB_FLOAT64: return convolve<double>(host, mine, *c);
  }
  return 0;
}
