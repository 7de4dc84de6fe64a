// elementwise.cuh: how every element-wise kernel walks its operands. A kernel file takes functors of functors.cuh and
// says, by MAP1 or MAP2, for which types they become entries; elementwise.go in package ops computes what these are
// launched with. An entry has two forms, and one of two inputs a third:
//   silu_bf16          operands of one type without gaps, elements in the same order: packs of 16 bytes
//   silu_bf16_strided  up to 8 dimensions, any strides, inputs of any type, converted to the entry's on loading
//   add_bf16_rows      operands of one type, up to 3 dimensions; along the first elements follow each other, or one is
//   repeated
#pragma once
#include "convert.cuh"
#include "functors.cuh"

// N elements that are loaded and stored at once: by one instruction on the GPU, through a word of their size.
template <class T, int N> struct __align__(sizeof(T) * N) pack {
  T at[N];
};
#ifdef CUDA_HOST
template <int N, class T> inline pack<T, N> read(const T* p) {
  pack<T, N> v;
  memcpy(&v, p, sizeof v);
  return v;
}
template <int N, class T> inline void write(T* p, const pack<T, N>& v) { memcpy(p, &v, sizeof v); }
#else
template <int bytes> struct word;
#define WORD(bytes, T)             \
  template <> struct word<bytes> { \
    typedef T type;                \
  };
WORD(1, uint8_t)
WORD(2, uint16_t)
WORD(4, uint32_t)
WORD(8, uint2)
WORD(16, uint4)
template <class T, int N> union packed {
  pack<T, N> v;
  typename word<sizeof(T) * N>::type w;
};
template <int N, class T> __device__ __forceinline__ pack<T, N> read(const T* p) {
  packed<T, N> u;
  u.w = *(decltype(u.w)*)p;
  return u.v;
}
template <int N, class T> __device__ __forceinline__ void write(T* p, const pack<T, N>& v) {
  packed<T, N> u;
  u.v = v;
  *(decltype(u.w)*)p = u.w;
}
#endif

// The largest of sizes, for the widest pack.
__device__ constexpr int largest(int a) { return a; }
template <class... More> __device__ constexpr int largest(int a, int b, More... more) {
  return largest(a > b ? a : b, more...);
}

template <class T> __device__ __forceinline__ bool aligned(const T* p, int elements) {
  return (uint64_t)p % (sizeof(T) * elements) == 0;
}
template <class T, class... More>
__device__ __forceinline__ bool aligned(int elements, const T* p, const More*... more) {
  bool yes = aligned(p, elements);
  if constexpr (sizeof...(More) > 0) return yes && aligned(elements, more...);
  return yes;
}

template <class Out, int N, class F, class... In>
__device__ __forceinline__ pack<Out, N> map_pack(const F& f, const pack<In, N>&... in) {
  pack<Out, N> out;
#pragma unroll
  for (int j = 0; j < N; j++) out.at[j] = apply<Out>(f, in.at[j]...);
  return out;
}

// map_dense: out[i] = f(in[i]...). On the host the plain loop becomes vector instructions: operands do not overlap but
// where they are the same.
template <class F, class Out, class... In>
__device__ __forceinline__ void map_dense(const F& f, int64_t n, Out* out, const In*... in) {
#ifdef CUDA_HOST
#pragma GCC ivdep
  GRID_STRIDE(i, n) { out[i] = apply<Out>(f, in[i]...); }
#else
  constexpr int N = 16 / largest(sizeof(Out), sizeof(In)...);
  int64_t packs = aligned(N, out, in...) ? n / N : 0;
  GRID_STRIDE(p, packs) { write<N>(out + p * N, map_pack<Out, N>(f, read<N>(in + p * N)...)); }
  int64_t rest = packs * N;
  GRID_STRIDE(i, n - rest) { out[rest + i] = apply<Out>(f, in[rest + i]...); }
#endif
}

// The iteration space: sizes of dimensions, innermost first; their product is n.
struct space {
  uint32_t n;
  int dims;
  uint32_t size[8];
};

// A place in the space.
struct position {
  int64_t along[8];
};

// How many elements an operand advances along each dimension.
struct strides {
  int64_t along[8];
};

// An input whose type is known by its code.
struct source {
  const void* data;
  int type;
  strides by;
};

// find gives the place of pack number i, where packs are N elements of the innermost dimension.
template <int N> __device__ __forceinline__ position find(const space& s, uint32_t i) {
  position p = {};
#pragma unroll
  for (int d = 0; d < 8; d++) {
    if (d == s.dims) break;
    uint32_t size = d == 0 ? s.size[0] / N : s.size[d];
    uint32_t rest = d + 1 == s.dims ? 0 : i / size;
    p.along[d] = (int64_t)(i - rest * size) * (d == 0 ? N : 1);
    i = rest;
  }
  return p;
}

// offset of a place in an operand, in elements.
__device__ __forceinline__ int64_t offset(const strides& by, const position& p, int dims) {
  int64_t at = 0;
#pragma unroll
  for (int d = 0; d < 8; d++)
    if (d < dims) at += p.along[d] * by.along[d];
  return at;
}

// whole reports whether packs of an operand lie in memory as they are used, so that one instruction moves them.
template <int N, class T> __device__ __forceinline__ bool whole(const T* data, const strides& by, int dims) {
  int64_t all = 0;
#pragma unroll
  for (int d = 1; d < 8; d++)
    if (d < dims) all |= by.along[d];
  return by.along[0] == 1 && all % N == 0 && aligned(data, N);
}

// load_whole loads a pack by one instruction where an input is made of S and lies so.
template <class S, int N, class T>
__device__ __forceinline__ bool load_whole(const source& x, int64_t at, int dims, pack<T, N>* v) {
  const S* data = (const S*)x.data;
  if (x.type != code_of<S>::value || !whole<N>(data, x.by, dims)) return false;
  pack<S, N> in = read<N>(data + at);
#pragma unroll
  for (int j = 0; j < N; j++) v->at[j] = convert<T>(in.at[j]);
  return true;
}
// What autocast mixes with float32 is as quick as what has one type.
template <int N, class T>
__device__ __forceinline__ bool load_narrow(const source& x, int64_t at, int dims, pack<T, N>* v) {
  return false;
}
template <int N> __device__ __forceinline__ bool load_narrow(const source& x, int64_t at, int dims, pack<float, N>* v) {
  if constexpr (N > 1) return load_whole<bf16>(x, at, dims, v) || load_whole<f16>(x, at, dims, v);
  return false;
}

template <int N, class T>
__device__ __forceinline__ pack<T, N> load_pack(const source& x, const position& p, int dims) {
  int64_t at = offset(x.by, p, dims), step = x.by.along[0];
  pack<T, N> v;
  if (x.type == code_of<T>::value) {
    if (load_whole<T>(x, at, dims, &v)) return v;
    const T* data = (const T*)x.data;
#pragma unroll
    for (int j = 0; j < N; j++) v.at[j] = step == 0 && j > 0 ? v.at[0] : data[at + j * step];
    return v;
  }
  if (load_narrow(x, at, dims, &v)) return v;
#pragma unroll
  for (int j = 0; j < N; j++) v.at[j] = step == 0 && j > 0 ? v.at[0] : load_as<T>(x.type, x.data, at + j * step);
  return v;
}

template <int N, class Out> __device__ __forceinline__ void store_pack(Out* out, const strides& by, const position& p,
                                                                       int dims, const pack<Out, N>& v) {
  int64_t at = offset(by, p, dims);
  if (whole<N>(out, by, dims)) return write<N>(out + at, v);
#pragma unroll
  for (int j = 0; j < N; j++) out[at + j * by.along[0]] = v.at[j];
}

template <int N, class T, class Out, class F, class... Source>
__device__ __forceinline__ void map_packs(const F& f, const space& s, Out* out, const strides& by,
                                          const Source&... in) {
  GRID_STRIDE(i, s.n / N) {
    position p = find<N>(s, (uint32_t)i);
    store_pack<N>(out, by, p, s.dims, map_pack<Out, N>(f, load_pack<N, T>(in, p, s.dims)...));
  }
}

// map_strided: out = f(in...) in the arithmetic of T, over operands of any layout.
template <class T, class F, class Out, class... Source>
__device__ __forceinline__ void map_strided(const F& f, const space& s, Out* out, const strides& by,
                                            const Source&... in) {
  constexpr int N = 16 / largest(sizeof(T), sizeof(Out));
  if (s.size[0] % N == 0)
    map_packs<N, T>(f, s, out, by, in...);
  else
    map_packs<1, T>(f, s, out, by, in...);
}

// rows is a space whose innermost dimension, of length elements, is walked by a group of neighbouring threads, as many
// as a power of two; count rows lie along the second and third dimension.
struct rows {
  uint32_t length, across, count;  // across is the second dimension's size
  uint32_t lanes, depth;           // threads of a group, and packs that each takes at once: 1 or 4
};

// row is an operand of rows: each of its elements, or one for all of a row (one is 0).
template <class T> struct row {
  T* data;
  int64_t one, second, third;
  __device__ __forceinline__ T* at(uint32_t along, uint32_t outer) const {
    return data + along * second + outer * third;
  }
  // whole reports whether each row is made of packs.
  template <int N> __device__ __forceinline__ bool whole() const {
    return one == 0 || ((second | third) % N == 0 && aligned(data, N));
  }
};

#ifndef CUDA_HOST
// load_row gives pack number i of an operand's row that begins at from.
template <int N, class T>
__device__ __forceinline__ pack<T, N> load_row(const row<const T>& x, const T* from, uint32_t i) {
  if (x.one) return read<N>(from + (int64_t)i * N);
  pack<T, N> v;
#pragma unroll
  for (int j = 0; j < N; j++) v.at[j] = *from;
  return v;
}

template <int N, int depth, class T, class F>
__device__ __forceinline__ void map_row(const F& f, uint32_t packs, uint32_t lanes, T* out, const row<const T>& a,
                                        const T* from_a, const row<const T>& b, const T* from_b) {
  uint32_t chunk = lanes * depth;
  for (uint32_t i = blockIdx.y * chunk + threadIdx.x % lanes; i < packs; i += gridDim.y * chunk) {
    pack<T, N> x[depth], y[depth];
#pragma unroll
    for (int k = 0; k < depth; k++)
      if (i + k * lanes < packs) {
        x[k] = load_row<N>(a, from_a, i + k * lanes);
        y[k] = load_row<N>(b, from_b, i + k * lanes);
      }
#pragma unroll
    for (int k = 0; k < depth; k++)
      if (i + k * lanes < packs) write<N>(out + (int64_t)(i + k * lanes) * N, map_pack<T, N>(f, x[k], y[k]));
  }
}
#endif

// map_rows: out = f(a, b), row by row.
template <class T, class F> __device__ __forceinline__ void map_rows(const F& f, const rows& r, const row<T>& out,
                                                                     const row<const T>& a, const row<const T>& b) {
#ifdef CUDA_HOST
  if (blockIdx.y) return;  // the others do all of it
  constexpr uint32_t part = 4096;
  uint32_t parts = (r.length + part - 1) / part;
  GRID_STRIDE(i, (int64_t)r.count * parts) {
    uint32_t at = (uint32_t)(i / parts), from = (uint32_t)(i % parts) * part,
             to = from + part < r.length ? from + part : r.length;
    uint32_t along = at % r.across, outer = at / r.across;
    T* y = out.at(along, outer);
    const T *x = a.at(along, outer), *z = b.at(along, outer);
    if (a.one && b.one) {
#pragma GCC ivdep
      for (uint32_t j = from; j < to; j++) y[j] = apply<T>(f, x[j], z[j]);
    } else if (a.one) {
      const T v = *z;
#pragma GCC ivdep
      for (uint32_t j = from; j < to; j++) y[j] = apply<T>(f, x[j], v);
    } else {
      const T v = *x;
#pragma GCC ivdep
      for (uint32_t j = from; j < to; j++) y[j] = apply<T>(f, v, z[b.one * j]);
    }
  }
#else
  constexpr int N = 16 / sizeof(T);
  bool packed = r.length % N == 0 && out.template whole<N>() && a.template whole<N>() && b.template whole<N>();
  uint32_t groups = blockDim.x / r.lanes;
  for (uint32_t i = blockIdx.x * groups + threadIdx.x / r.lanes; i < r.count; i += gridDim.x * groups) {
    uint32_t outer = r.across == r.count ? 0 : i / r.across, along = i - outer * r.across;
    T* y = out.at(along, outer);
    const T *x = a.at(along, outer), *z = b.at(along, outer);
    if (!packed)
      map_row<1, 1>(f, r.length, r.lanes, y, a, x, b, z);
    else if (r.depth == 1)
      map_row<N, 1>(f, r.length / N, r.lanes, y, a, x, b, z);
    else
      map_row<N, 4>(f, r.length / N, r.lanes, y, a, x, b, z);
  }
#endif
}

// Kernel parameters of a space, of an output and of an input, and the structs made of them.
#define SPACE                                                                                           \
  uint32_t n, int dims, uint32_t size0, uint32_t size1, uint32_t size2, uint32_t size3, uint32_t size4, \
      uint32_t size5, uint32_t size6, uint32_t size7
#define STRIDES(x) \
  int64_t x##_0, int64_t x##_1, int64_t x##_2, int64_t x##_3, int64_t x##_4, int64_t x##_5, int64_t x##_6, int64_t x##_7
#define OUTPUT(T, x) T *x, STRIDES(x)
#define INPUT(x) const void *x, int x##_type, STRIDES(x)
#define THE_SPACE                                                       \
  space {                                                               \
    n, dims, { size0, size1, size2, size3, size4, size5, size6, size7 } \
  }
#define THE_STRIDES(x)                                       \
  strides {                                                  \
    {                                                        \
      x##_0, x##_1, x##_2, x##_3, x##_4, x##_5, x##_6, x##_7 \
    }                                                        \
  }
#define THE_INPUT(x) \
  source { x, x##_type, THE_STRIDES(x) }

// The same of rows.
#define ROWS uint32_t length, uint32_t across, uint32_t count, uint32_t lanes, uint32_t depth
#define ROW(T, x) T *x, int64_t x##_0, int64_t x##_1, int64_t x##_2
#define THE_ROWS \
  rows { length, across, count, lanes, depth }
#define THE_ROW(T, x) \
  row<T> { x, x##_0, x##_1, x##_2 }

// MAP1(silu, bf16, bf16, silu()) makes the entries silu_bf16 and silu_bf16_strided. More parameters may follow, which
// the functor's expression may use. MAP1_TO stores another type than it computes in: truth values.
#define MAP1(name, T, suffix, functor, ...) MAP1_TO(name, T, T, suffix, functor, ##__VA_ARGS__)
#define MAP1_TO(name, T, Out, suffix, functor, ...)                                                      \
  KERNEL(name##_##suffix, int64_t n, Out* y, const T* a, ##__VA_ARGS__) { map_dense(functor, n, y, a); } \
  KERNEL(name##_##suffix##_strided, SPACE, OUTPUT(Out, y), INPUT(a), ##__VA_ARGS__) {                    \
    map_strided<T>(functor, THE_SPACE, y, THE_STRIDES(y), THE_INPUT(a));                                 \
  }

// MAP2 is MAP1 for two inputs.
#define MAP2(name, T, suffix, functor, ...)                                                          \
  MAP2_FROM(name, T, T, T, suffix, functor, ##__VA_ARGS__)                                           \
  KERNEL(name##_##suffix##_rows, ROWS, ROW(T, y), ROW(const T, a), ROW(const T, b), ##__VA_ARGS__) { \
    map_rows<T>(functor, THE_ROWS, THE_ROW(T, y), THE_ROW(const T, a), THE_ROW(const T, b));         \
  }
#define MAP2_TO(name, T, Out, suffix, functor, ...) MAP2_FROM(name, T, T, Out, suffix, functor, ##__VA_ARGS__)

// MAP2_FROM has a second input of a type of its own, a mask, that the strided entry too is given as a T.
#define MAP2_FROM(name, T, B, Out, suffix, functor, ...)                              \
  KERNEL(name##_##suffix, int64_t n, Out* y, const T* a, const B* b, ##__VA_ARGS__) { \
    map_dense(functor, n, y, a, b);                                                   \
  }                                                                                   \
  MAP2_INTO(name##_##suffix##_strided, T, Out, functor, ##__VA_ARGS__)

// MAP2_INTO computes in T and stores another type: x_bf16.add_(y_f32).
#define MAP2_INTO(entry, T, Out, functor, ...)                                         \
  KERNEL(entry, SPACE, OUTPUT(Out, y), INPUT(a), INPUT(b), ##__VA_ARGS__) {            \
    map_strided<T>(functor, THE_SPACE, y, THE_STRIDES(y), THE_INPUT(a), THE_INPUT(b)); \
  }

// MAP3_FROM has three inputs, the first of a type of its own.
#define MAP3_FROM(name, A, T, suffix, functor, ...)                                                     \
  KERNEL(name##_##suffix, int64_t n, T* y, const A* a, const T* b, const T* c, ##__VA_ARGS__) {         \
    map_dense(functor, n, y, a, b, c);                                                                  \
  }                                                                                                     \
  KERNEL(name##_##suffix##_strided, SPACE, OUTPUT(T, y), INPUT(a), INPUT(b), INPUT(c), ##__VA_ARGS__) { \
    map_strided<T>(functor, THE_SPACE, y, THE_STRIDES(y), THE_INPUT(a), THE_INPUT(b), THE_INPUT(c));    \
  }
