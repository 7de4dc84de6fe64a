// convolution.cpp: convolutions and linear layers as matrix products (host.h says in which arithmetic).
//
// First the weights are packed into panels of rows, block of k by block of k. Then threads take tiles, some rows by
// some columns: for each block of k they pack the columns of the image, and the micro kernels add into the tile; at
// last the tile is rounded and stored. Rows are split so that panels are nearly equal: 16 rows are 8 and 8, not 12
// and 4.
#include <algorithm>
#include <cmath>
#include <type_traits>
#include "elements.h"
#include "host.h"
#include "micro.h"

namespace {
enum : int64_t {
  DEPTH = 256,           // most k in a block
  COLUMNS = 256,         // most columns of a tile
  ROWS = 192,            // most rows of a tile
  FEW_WEIGHTS = 1 << 15  // so many are packed by one thread
};
static_assert((DEPTH + ROWS) * COLUMNS * sizeof(double) <= SB_SCRATCH, "block and tile fit the scratch memory");

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// parts cuts 0..n-1 in pieces of nearly the same length.
struct parts {
  int64_t n, count;
  int64_t start(int64_t i) const { return n * i / count; }
};

// NR is the width of a micro kernel in columns.
template <class E, int64_t NR> struct convolver {
  typedef typename accumulator<E>::type T;
  const sb_convolution& c;
  micro_set<T> micros;
  parts panels, blocks;        // rows of a group in panels; k in blocks
  parts row_tiles, col_tiles;  // panels in tiles; vectors of columns in tiles
  int64_t columns, next = 0, tiles = 0;

  convolver(const sb_convolution& c, micro_set<T> micros, int threads) : c(c), micros(micros) {
    int64_t k = c.ci * c.kh * c.kw;
    columns = c.oh * c.ow;
    panels = {c.co, divide_up(c.co, micros.rows)};
    blocks = {k, divide_up(k, DEPTH)};
    int64_t units = divide_up(columns, NR), images = c.n * c.groups, want = 4 * threads;
    // Enough tiles for all threads, unless they become too small to be worth it.
    row_tiles = {panels.count, divide_up(c.co, ROWS - micros.rows)};
    col_tiles = {units, divide_up(units * NR, COLUMNS)};
    if (images * row_tiles.count * col_tiles.count < want)
      col_tiles.count =
          std::max(col_tiles.count, std::min(divide_up(units, 2), divide_up(want, images * row_tiles.count)));
    if (images * row_tiles.count * col_tiles.count < threads)
      row_tiles.count =
          std::max(row_tiles.count, std::min(divide_up(panels.count, 2), divide_up(threads, images * col_tiles.count)));
    tiles = images * row_tiles.count * col_tiles.count;
  }

  T* packed(int64_t group, int64_t k0, int64_t depth, int64_t row) const {
    return (T*)c.packed + group * c.co * blocks.n + k0 * c.co + row * depth;
  }

  // ---- weights ----
  void pack_weights(int64_t group, int64_t block) const {
    int64_t k0 = blocks.start(block), k1 = blocks.start(block + 1);
    for (int64_t p = 0; p < panels.count; p++) {
      int64_t row = panels.start(p), rows = panels.start(p + 1) - row;
      T* to = packed(group, k0, k1 - k0, row);
      const E* w = (const E*)c.w + group * c.wg + row * c.ws[0];
      int64_t kx = k0 % c.kw, ky = k0 / c.kw % c.kh, ci = k0 / (c.kw * c.kh);
      for (int64_t k = k0; k < k1; k++, to += rows) {
        const E* from = w + ci * c.ws[1] + ky * c.ws[2] + kx * c.ws[3];
        for (int64_t i = 0; i < rows; i++) to[i] = load(from + i * c.ws[0]);
        if (++kx == c.kw) {
          kx = 0;
          if (++ky == c.kh) ky = 0, ci++;
        }
      }
    }
  }
  static void weights_work(void* context, sb_slot*) {
    convolver* v = (convolver*)context;
    int64_t all = v->c.groups * v->blocks.count;
    for (int64_t i; (i = __atomic_fetch_add(&v->next, 1, __ATOMIC_RELAXED)) < all;)
      v->pack_weights(i / v->blocks.count, i % v->blocks.count);
  }

  // ---- image ----
  // Packs rows k0..k1-1 of columns j..j+width-1 into panels of NR columns, the last one padded with zeros.
  void pack_image(const E* x, int64_t k0, int64_t k1, int64_t j, int64_t width, T* to) const {
    if (c.xs[1] == 1 && c.xs[3] != 1 && c.ci > 1)
      pack_pixels(x, k0, k1, j, width, to);
    else
      pack_rows(x, k0, k1, j, width, to);
  }
  // Row by row of the image: for images whose rows are contiguous, and any other.
  void pack_rows(const E* x, int64_t k0, int64_t k1, int64_t j, int64_t width, T* to) const {
    int64_t kx = k0 % c.kw, ky = k0 / c.kw % c.kh, ci = k0 / (c.kw * c.kh), oy0 = j / c.ow, ox0 = j % c.ow;
    int64_t panel = (k1 - k0) * NR, padded = divide_up(width, NR) * NR;
    for (int64_t k = k0; k < k1; k++) {
      // Pixels low..high-1 of a row read inside of the image's row; the others read padding.
      int64_t left = kx * c.dx - c.px;
      int64_t low = left < 0 ? divide_up(-left, c.sx) : 0, high = left < c.wd ? (c.wd - 1 - left) / c.sx + 1 : 0;
      writer w = {to + (k - k0) * NR, panel, 0};
      for (int64_t at = 0, oy = oy0, ox = ox0; at < width; oy++, ox = 0) {
        int64_t end = std::min(c.ow, ox + width - at), iy = oy * c.sy + ky * c.dy - c.py;
        at += end - ox;
        if (iy < 0 || iy >= c.h) {
          w.zeros(end - ox);
          continue;
        }
        int64_t from = std::min(end, std::max(ox, low)), until = std::max(from, std::min(end, high));
        w.zeros(from - ox);
        w.row(x + ci * c.xs[1] + iy * c.xs[2] + (left + from * c.sx) * c.xs[3], c.sx * c.xs[3], until - from);
        w.zeros(end - until);
      }
      w.zeros(padded - width);
      if (++kx == c.kw) {
        kx = 0;
        if (++ky == c.kh) ky = 0, ci++;
      }
    }
  }
  // Pixel by pixel: for channels-last images, where the channels of a pixel are neighbours.
  void pack_pixels(const E* x, int64_t k0, int64_t k1, int64_t j, int64_t width, T* to) const {
    int64_t taps = c.kh * c.kw, panel = (k1 - k0) * NR, padded = divide_up(width, NR) * NR, step = taps * NR;
    for (int64_t tap = 0; tap < taps; tap++) {
      int64_t ky = tap / c.kw, kx = tap % c.kw, oy = j / c.ow, ox = j % c.ow;
      int64_t first = divide_up(k0 - tap, taps), last = divide_up(k1 - tap, taps);  // channels whose k is in the block
      for (int64_t at = 0; at < padded; at++) {
        int64_t iy = oy * c.sy + ky * c.dy - c.py, ix = ox * c.sx + kx * c.dx - c.px;
        T* q = to + at / NR * panel + (first * taps + tap - k0) * NR + at % NR;
        if (at >= width || iy < 0 || iy >= c.h || ix < 0 || ix >= c.wd) {
          for (int64_t ci = first; ci < last; ci++, q += step) *q = 0;
        } else {
          const E* pixel = x + iy * c.xs[2] + ix * c.xs[3];
          for (int64_t ci = first; ci < last; ci++, q += step) *q = load(pixel + ci);
        }
        if (++ox == c.ow) ox = 0, oy++;
      }
    }
  }
  // writer writes one k of successive columns, which lie in one panel after another.
  struct writer {
    T* line;         // of the panel at hand
    int64_t panel;   // distance of panels
    int64_t column;  // of the panel at hand
    // in_panels calls f(to, done, n) for pieces of n columns that lie together; done columns came before.
    template <class F> void in_panels(int64_t n, F f) {
      for (int64_t done = 0; done < n;) {
        int64_t piece = std::min(n - done, NR - column);
        f(line + column, done, piece);
        done += piece;
        column += piece;
        if (column == NR) {
          column = 0;
          line += panel;
        }
      }
    }
    void zeros(int64_t n) {
      in_panels(n, [](T* to, int64_t, int64_t m) {
        for (int64_t i = 0; i < m; i++) to[i] = 0;
      });
    }
    void row(const E* from, int64_t step, int64_t n) {
      // Whole panels and steps 1 and 2 with constants, so that they become vector instructions.
      if (step == 1)
        in_panels(n, [from](T* to, int64_t done, int64_t m) {
          if (m == NR)
            load_run(to, from + done, NR);
          else
            load_run(to, from + done, m);
        });
      else if (step == 2)
        in_panels(n, [from](T* to, int64_t done, int64_t m) {
          const E* p = from + 2 * done;
          if (m == NR)
            for (int64_t i = 0; i < NR; i++) to[i] = load(p + 2 * i);
          else
            for (int64_t i = 0; i < m; i++) to[i] = load(p + 2 * i);
        });
      else
        in_panels(n, [from, step](T* to, int64_t done, int64_t m) {
          for (int64_t i = 0; i < m; i++) to[i] = load(from + (done + i) * step);
        });
    }
  };

  // ---- tiles ----
  void tile(int64_t index, char* scratch) const {
    // Groups are the fastest: in a channels-last image they share cache lines.
    int64_t group = index % c.groups, row_tile = index / c.groups % row_tiles.count;
    int64_t col_tile = index / (c.groups * row_tiles.count) % col_tiles.count;
    int64_t image = index / (c.groups * row_tiles.count * col_tiles.count);
    int64_t p0 = row_tiles.start(row_tile), p1 = row_tiles.start(row_tile + 1), row0 = panels.start(p0);
    int64_t j0 = col_tiles.start(col_tile) * NR;
    int64_t j1 = std::min(columns, col_tiles.start(col_tile + 1) * NR);
    int64_t ld = divide_up(j1 - j0, NR) * NR;
    const E* x = (const E*)c.x + image * c.xs[0] + group * c.xg;
    T *b = (T*)scratch, *acc = b + DEPTH * COLUMNS;
    for (int64_t block = 0; block < blocks.count; block++) {
      int64_t k0 = blocks.start(block), k1 = blocks.start(block + 1), depth = k1 - k0;
      pack_image(x, k0, k1, j0, j1 - j0, b);
      for (int64_t j = 0; j < j1 - j0; j += NR)
        for (int64_t p = p0; p < p1; p++) {
          int64_t row = panels.start(p), rows = panels.start(p + 1) - row;
          micros.with_rows[rows - 1](depth, packed(group, k0, depth, row), b + j * depth, acc + (row - row0) * ld + j,
                                     ld, block == 0);
        }
    }
    E* y = (E*)c.y + image * c.ys[0] + group * c.yg + row0 * c.ys[1];
    finish(acc, ld, y, panels.start(p1) - row0, j0, j1 - j0);
  }
  // Scales, adds what y held and the bias, rounds and stores.
  void finish(T* acc, int64_t ld, E* y, int64_t rows, int64_t j, int64_t width) const {
    if (c.alpha != 1)
      for (int64_t i = 0; i < rows; i++)
        for (int64_t t = 0; t < width; t++) acc[i * ld + t] *= (T)c.alpha;
    if (c.beta != 0)
      for (int64_t i = 0; i < rows; i++)
        for (int64_t t = 0; t < width; t++)
          acc[i * ld + t] =
              std::fma((T)c.beta, (T)load(y + i * c.ys[1] + (j + t) / c.ow * c.ys[2] + (j + t) % c.ow * c.ys[3]),
                       acc[i * ld + t]);
    if (c.bias)
      for (int64_t i = 0; i < rows; i++)
        for (int64_t t = 0; t < width; t++) acc[i * ld + t] += load((const E*)c.bias + j + t);
    if (c.ys[1] == 1 && c.ys[3] != 1) {
      for (int64_t t = 0; t < width; t++) {
        E* pixel = y + (j + t) / c.ow * c.ys[2] + (j + t) % c.ow * c.ys[3];
        for (int64_t i = 0; i < rows; i++) store(pixel + i, acc[i * ld + t]);
      }
      return;
    }
    for (int64_t i = 0; i < rows; i++) {
      int64_t oy = j / c.ow, ox = j % c.ow;
      for (int64_t at = 0; at < width; oy++, ox = 0) {
        int64_t run = std::min(width - at, c.ow - ox);
        E* to = y + i * c.ys[1] + oy * c.ys[2] + ox * c.ys[3];
        if (c.ys[3] == 1)
          store_run(to, acc + i * ld + at, run);
        else
          for (int64_t t = 0; t < run; t++) store(to + t * c.ys[3], acc[i * ld + at + t]);
        at += run;
      }
    }
  }
  static void tiles_work(void* context, sb_slot* slot) {
    convolver* v = (convolver*)context;
    for (int64_t i; (i = __atomic_fetch_add(&v->next, 1, __ATOMIC_RELAXED)) < v->tiles;) v->tile(i, slot->scratch);
  }
};

template <class E, int64_t NR>
void convolve(sb_host* host, sb_slot* mine, const sb_convolution& c, micro_set<typename accumulator<E>::type> micros) {
  typedef convolver<E, NR> V;
  V v(c, micros, sb_host_threads(host));
  int64_t weights = c.groups * c.co * v.blocks.n;
  sb_parallel(host, mine, weights < FEW_WEIGHTS ? 1 : c.groups * v.blocks.count, V::weights_work, &v);
  v.next = 0;
  sb_parallel(host, mine, v.tiles, V::tiles_work, &v);
}
template <class E> void convolve(sb_host* host, sb_slot* mine, const sb_convolution& c, int vector) {
  constexpr bool wide = std::is_same<E, double>::value;
  if constexpr (wide) {
    if (vector == 512)
      convolve<E, 16>(host, mine, c, micro_double_512());
    else
      convolve<E, 8>(host, mine, c, micro_double_256());
  } else {
    if (vector == 512)
      convolve<E, 32>(host, mine, c, micro_float_512());
    else
      convolve<E, 16>(host, mine, c, micro_float_256());
  }
}
}  // namespace

extern "C" void sb_convolve(sb_host* host, sb_slot* mine, int vector, const sb_convolution* given) {
  if (given->direction == SB_BACKWARD_DATA) return sb_convolve_backward_data(host, mine, vector, given);
  if (given->direction == SB_BACKWARD_FILTER) return sb_convolve_backward_filter(host, mine, vector, given);
  sb_convolution c = *given;
  if (c.n * c.co * c.groups * c.oh * c.ow == 0) return;
  if (sb_convolve_depthwise(host, mine, &c)) return;
  // A 1x1 convolution of whole contiguous rows is one long row: one matrix product without gaps.
  if (c.kh == 1 && c.kw == 1 && c.sy == 1 && c.sx == 1 && c.py == 0 && c.px == 0 && c.xs[2] == c.wd * c.xs[3] &&
      c.ys[2] == c.ow * c.ys[3]) {
    c.wd *= c.h;
    c.ow *= c.oh;
    c.h = c.oh = 1;
  }
  switch (c.type) {
    case SB_FLOAT32: return convolve<float>(host, mine, c, vector);
    case SB_BFLOAT16: return convolve<bf16>(host, mine, c, vector);
    case SB_FLOAT16: return convolve<f16>(host, mine, c, vector);
    case SB_FLOAT64: return convolve<double>(host, mine, c, vector);
  }
}
