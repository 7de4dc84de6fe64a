// convolution_backward.cpp: the gradients of a convolution.
//
// The input's gradient is one convolution without stride for each phase of the input, which are the pixels a stride
// apart: all of them are reached by the same taps, and these run backwards over y. What no tap reaches is zero.
//
// The weight's gradient is a matrix product, y times the image's columns, whose long sum runs over all pixels of all
// images. It is cut in blocks of k as host.h says, and only by k: neither threads nor vector width change a bit.
#include <algorithm>
#include <type_traits>
#include "elements.h"
#include "host.h"
#include "micro.h"

namespace {
int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// ---- the input's gradient -----------------------------------------------------------------------------------------

// One dimension of one phase: pixels first, first + stride, ... of x.
struct phase {
  int64_t first, pixels;
  int64_t tap, taps, step;  // taps tap, tap + step, ... reach them; the last comes first in the convolution
  int64_t dilation, padding;
};

phase phase_of(int64_t first, int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  phase p = {first, first < size ? (size - 1 - first) / stride + 1 : 0, 0, 0, 1, 1, 0};
  // Tap k reaches pixel i from y[(i + padding - k * dilation) / stride].
  while (p.tap < kernel && (first + padding - p.tap * dilation) % stride != 0) p.tap++;
  if (p.tap == kernel) return p;
  p.step = 1;
  while (p.step * dilation % stride != 0) p.step++;
  p.taps = (kernel - 1 - p.tap) / p.step + 1;
  p.dilation = p.step * dilation / stride;
  int64_t last = p.tap + (p.taps - 1) * p.step;
  p.padding = -(first + padding - last * dilation) / stride;
  return p;
}

template <class E> struct zeros {
  E* x;
  const sb_convolution& c;
  phase y, z;
  int64_t next = 0;
  static void work(void* context, sb_slot*) {
    zeros* v = (zeros*)context;
    const sb_convolution& c = v->c;
    int64_t planes = c.n * c.groups * c.ci;
    for (int64_t i; (i = __atomic_fetch_add(&v->next, 1, __ATOMIC_RELAXED)) < planes;) {
      E* plane = v->x + i / (c.groups * c.ci) * c.xs[0] + i % (c.groups * c.ci) * c.xs[1];
      for (int64_t r = 0; r < v->y.pixels; r++)
        for (int64_t s = 0; s < v->z.pixels; s++)
          store(plane + (v->y.first + r * c.sy) * c.xs[2] + (v->z.first + s * c.sx) * c.xs[3], 0);
    }
  }
};

template <class E> void backward_data(sb_host* host, sb_slot* mine, int vector, const sb_convolution& c) {
  for (int64_t fy = 0; fy < c.sy; fy++)
    for (int64_t fx = 0; fx < c.sx; fx++) {
      phase y = phase_of(fy, c.h, c.kh, c.sy, c.py, c.dy), x = phase_of(fx, c.wd, c.kw, c.sx, c.px, c.dx);
      if (!y.pixels || !x.pixels) continue;
      if (!y.taps || !x.taps) {
        zeros<E> z = {(E*)c.x, c, y, x};
        sb_parallel(host, mine, c.n * c.groups * c.ci, zeros<E>::work, &z);
        continue;
      }
      sb_convolution f = c;
      f.direction = SB_FORWARD;
      f.groups = 1;
      f.ci = c.co;
      f.co = c.ci;
      f.h = c.oh, f.wd = c.ow, f.oh = y.pixels, f.ow = x.pixels;
      f.kh = y.taps, f.kw = x.taps;
      f.sy = f.sx = 1;
      f.dy = y.dilation, f.dx = x.dilation;
      f.py = y.padding, f.px = x.padding;
      std::copy(c.ys, c.ys + 4, f.xs);
      f.ws[0] = c.ws[1], f.ws[1] = c.ws[0], f.ws[2] = -y.step * c.ws[2], f.ws[3] = -x.step * c.ws[3];
      f.ys[0] = c.xs[0], f.ys[1] = c.xs[1], f.ys[2] = c.sy * c.xs[2], f.ys[3] = c.sx * c.xs[3];
      int64_t taps = (y.tap + (y.taps - 1) * y.step) * c.ws[2] + (x.tap + (x.taps - 1) * x.step) * c.ws[3];
      for (int64_t g = 0; g < c.groups; g++) {
        f.x = (E*)c.y + g * c.co * c.ys[1];
        f.w = (E*)c.w + g * c.co * c.ws[0] + taps;
        f.y = (E*)c.x + g * c.ci * c.xs[1] + fy * c.xs[2] + fx * c.xs[3];
        sb_convolve(host, mine, vector, &f);
      }
    }
}

// ---- the weight's gradient ----------------------------------------------------------------------------------------
enum : int64_t {
  DEPTH = 256,    // most k in a block
  COLUMNS = 128,  // most columns of a tile
  ROWS = 96       // most rows of a tile
};
static_assert((DEPTH * (ROWS + COLUMNS) + ROWS * COLUMNS) * sizeof(double) <= SB_SCRATCH,
              "blocks and tile fit the scratch memory");

struct parts {
  int64_t n, count;
  int64_t start(int64_t i) const { return n * i / count; }
};

// Rows are a group's output channels, columns (ci * kh + ky) * kw + kx, and k = (image * oh + oy) * ow + ox.
template <class E, int64_t NR> struct filter {
  typedef typename accumulator<E>::type T;
  const sb_convolution& c;
  micro_set<T> micros;
  int64_t columns, pixels;
  parts blocks, row_tiles, col_tiles;  // of k; of rows; of vectors of columns
  int64_t tiles, next = 0;

  filter(const sb_convolution& c, micro_set<T> micros, int threads) : c(c), micros(micros) {
    columns = c.ci * c.kh * c.kw;
    pixels = c.oh * c.ow;
    blocks = {c.n * pixels, divide_up(c.n * pixels, DEPTH)};
    int64_t units = divide_up(columns, NR), want = 4 * threads;
    row_tiles = {c.co, divide_up(c.co, ROWS)};
    col_tiles = {units, divide_up(units * NR, COLUMNS)};
    if (c.groups * row_tiles.count * col_tiles.count < want)
      col_tiles.count = std::max(col_tiles.count, std::min(units, divide_up(want, c.groups * row_tiles.count)));
    tiles = c.groups * row_tiles.count * col_tiles.count;
  }

  // Packs k0..k1-1 of y into panels of rows.
  void pack_rows(int64_t channel, int64_t rows, int64_t k0, int64_t k1, T* to) const {
    for (int64_t row = 0; row < rows; row += micros.rows) {
      int64_t height = std::min<int64_t>(micros.rows, rows - row);
      for (int64_t i = 0; i < height; i++) {
        const E* from = (const E*)c.y + (channel + row + i) * c.ys[1];
        each_run(k0, k1, [&](int64_t k, int64_t image, int64_t oy, int64_t ox, int64_t n) {
          const E* y = from + image * c.ys[0] + oy * c.ys[2] + ox * c.ys[3];
          T* t = to + (k - k0) * height + i;
          for (int64_t s = 0; s < n; s++) t[s * height] = load(y + s * c.ys[3]);
        });
      }
      to += height * (k1 - k0);
    }
  }
  // Packs k0..k1-1 of width columns from column j on into panels of NR columns, the last one padded with zeros.
  void pack_columns(int64_t group, int64_t j, int64_t width, int64_t k0, int64_t k1, T* to) const {
    for (int64_t at = 0; at < divide_up(width, NR) * NR; at++) {
      T* column = to + at / NR * NR * (k1 - k0) + at % NR;
      if (at >= width) {
        for (int64_t k = 0; k < k1 - k0; k++) column[k * NR] = 0;
        continue;
      }
      int64_t kx = (j + at) % c.kw, ky = (j + at) / c.kw % c.kh, ci = (j + at) / (c.kw * c.kh);
      int64_t left = kx * c.dx - c.px;
      // Pixels low..high-1 of a row read inside of the image's row; the others read padding.
      int64_t low = left < 0 ? divide_up(-left, c.sx) : 0, high = left < c.wd ? (c.wd - 1 - left) / c.sx + 1 : 0;
      each_run(k0, k1, [&](int64_t k, int64_t image, int64_t oy, int64_t ox, int64_t n) {
        T* t = column + (k - k0) * NR;
        int64_t iy = oy * c.sy + ky * c.dy - c.py, end = ox + n;
        int64_t from = std::min(end, std::max(ox, low)), until = std::max(from, std::min(end, high));
        if (iy < 0 || iy >= c.h) from = until = end;
        const E* row = (const E*)c.x + image * c.xs[0] + (group * c.ci + ci) * c.xs[1] + iy * c.xs[2] + left * c.xs[3];
        for (; ox < from; ox++, t += NR) *t = 0;
        for (; ox < until; ox++, t += NR) *t = load(row + ox * c.sx * c.xs[3]);
        for (; ox < end; ox++, t += NR) *t = 0;
      });
    }
  }
  // Calls f(k, image, oy, ox, n) for runs of n pixels of one row.
  template <class F> void each_run(int64_t k0, int64_t k1, F f) const {
    int64_t image = k0 / pixels, oy = k0 % pixels / c.ow, ox = k0 % c.ow;
    for (int64_t k = k0; k < k1;) {
      int64_t n = std::min(k1 - k, c.ow - ox);
      f(k, image, oy, ox, n);
      k += n;
      ox = 0;
      if (++oy == c.oh) oy = 0, image++;
    }
  }

  void tile(int64_t index, char* scratch) const {
    int64_t group = index % c.groups, row_tile = index / c.groups % row_tiles.count;
    int64_t col_tile = index / (c.groups * row_tiles.count);
    int64_t row0 = row_tiles.start(row_tile), rows = row_tiles.start(row_tile + 1) - row0;
    int64_t j0 = col_tiles.start(col_tile) * NR, width = std::min(columns, col_tiles.start(col_tile + 1) * NR) - j0;
    int64_t ld = divide_up(width, NR) * NR;
    T *b = (T*)scratch, *acc = b + DEPTH * COLUMNS, *a = acc + ROWS * COLUMNS;
    if (!blocks.count) std::fill(acc, acc + rows * ld, T(0));
    for (int64_t block = 0; block < blocks.count; block++) {
      int64_t k0 = blocks.start(block), k1 = blocks.start(block + 1), depth = k1 - k0;
      pack_rows(group * c.co + row0, rows, k0, k1, a);
      pack_columns(group, j0, width, k0, k1, b);
      for (int64_t j = 0; j < width; j += NR)
        for (int64_t row = 0; row < rows; row += micros.rows) {
          int64_t height = std::min<int64_t>(micros.rows, rows - row);
          micros.with_rows[height - 1](depth, a + row * depth, b + j * depth, acc + row * ld + j, ld, block == 0);
        }
    }
    for (int64_t i = 0; i < rows; i++) {
      E* w = (E*)c.w + (group * c.co + row0 + i) * c.ws[0];
      for (int64_t t = 0; t < width; t++) {
        int64_t j = j0 + t;
        store(w + j / (c.kw * c.kh) * c.ws[1] + j / c.kw % c.kh * c.ws[2] + j % c.kw * c.ws[3], acc[i * ld + t]);
      }
    }
  }
  static void work(void* context, sb_slot* slot) {
    filter* v = (filter*)context;
    for (int64_t i; (i = __atomic_fetch_add(&v->next, 1, __ATOMIC_RELAXED)) < v->tiles;) v->tile(i, slot->scratch);
  }
};

template <class E, int64_t NR> void backward_filter(sb_host* host, sb_slot* mine, const sb_convolution& c,
                                                    micro_set<typename accumulator<E>::type> micros) {
  filter<E, NR> f(c, micros, sb_host_threads(host));
  sb_parallel(host, mine, f.tiles, filter<E, NR>::work, &f);
}
template <class E> void backward_filter(sb_host* host, sb_slot* mine, const sb_convolution& c, int vector) {
  if constexpr (std::is_same<E, double>::value) {
    if (vector == 512)
      backward_filter<E, 16>(host, mine, c, micro_double_512());
    else
      backward_filter<E, 8>(host, mine, c, micro_double_256());
  } else {
    if (vector == 512)
      backward_filter<E, 32>(host, mine, c, micro_float_512());
    else
      backward_filter<E, 16>(host, mine, c, micro_float_256());
  }
}
}  // namespace

extern "C" void sb_convolve_backward_data(sb_host* host, sb_slot* mine, int vector, const sb_convolution* c) {
  switch (c->type) {
    case SB_FLOAT32: return backward_data<float>(host, mine, vector, *c);
    case SB_BFLOAT16: return backward_data<bf16>(host, mine, vector, *c);
    case SB_FLOAT16: return backward_data<f16>(host, mine, vector, *c);
    case SB_FLOAT64: return backward_data<double>(host, mine, vector, *c);
  }
}

extern "C" void sb_convolve_backward_filter(sb_host* host, sb_slot* mine, int vector, const sb_convolution* c) {
  switch (c->type) {
    case SB_FLOAT32: return backward_filter<float>(host, mine, *c, vector);
    case SB_BFLOAT16: return backward_filter<bf16>(host, mine, *c, vector);
    case SB_FLOAT16: return backward_filter<f16>(host, mine, *c, vector);
    case SB_FLOAT64: return backward_filter<double>(host, mine, *c, vector);
  }
}
