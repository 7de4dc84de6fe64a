// elementwise.cuh: how every element-wise kernel walks its operands. A kernel file takes functors of functors.cuh and
// says, by MAP1 or MAP2, for which types they become entries; elementwise.go in package ops computes what these are
// launched with. An entry has two forms:
//   silu_bf16          operands of one type without gaps, elements in the same order: packs of 16 bytes
//   silu_bf16_strided  up to 8 dimensions, any strides, inputs of any type, converted to the entry's on loading
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

// MAP1(silu, bf16, bf16, silu()) makes the entries silu_bf16 and silu_bf16_strided. More parameters may follow, which
// the functor's expression may use. MAP1_TO stores another type than it computes in: truth values.
#define MAP1(name, T, suffix, functor, ...) MAP1_TO(name, T, T, suffix, functor, ##__VA_ARGS__)
#define MAP1_TO(name, T, Out, suffix, functor, ...)                                                      \
  KERNEL(name##_##suffix, int64_t n, Out* y, const T* a, ##__VA_ARGS__) { map_dense(functor, n, y, a); } \
  KERNEL(name##_##suffix##_strided, SPACE, OUTPUT(Out, y), INPUT(a), ##__VA_ARGS__) {                    \
    map_strided<T>(functor, THE_SPACE, y, THE_STRIDES(y), THE_INPUT(a));                                 \
  }

// MAP2 is MAP1 for two inputs.
#define MAP2(name, T, suffix, functor, ...) MAP2_FROM(name, T, T, T, suffix, functor, ##__VA_ARGS__)
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
