// vector_types.h: CUDA's vector types, with CUDA's alignments.
#pragma once
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
#define CH_VECTOR(T, N, ALIGN2, ALIGN4)                               \
  struct N##1 { T x; };                                               \
  struct __align__(ALIGN2) N##2 { T x, y; };                          \
  struct N##3 { T x, y, z; };                                         \
  struct __align__(ALIGN4) N##4 { T x, y, z, w; };                    \
  static inline N##1 make_##N##1(T x) { return {x}; }                 \
  static inline N##2 make_##N##2(T x, T y) { return {x, y}; }         \
  static inline N##3 make_##N##3(T x, T y, T z) { return {x, y, z}; } \
  static inline N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }
CH_VECTOR(signed char, char, 2, 4)
CH_VECTOR(unsigned char, uchar, 2, 4)
CH_VECTOR(short, short, 4, 8)
CH_VECTOR(unsigned short, ushort, 4, 8)
CH_VECTOR(int, int, 8, 16)
CH_VECTOR(unsigned, uint, 8, 16)
CH_VECTOR(long long, longlong, 16, 16)
CH_VECTOR(unsigned long long, ulonglong, 16, 16)
CH_VECTOR(float, float, 8, 16)
CH_VECTOR(double, double, 16, 16)
#undef CH_VECTOR
