#include "prelude.cuh"
#include "elementwise.cuh"

// Bits that are moved as they are, by the size of an element.
struct same {
  typedef void on_elements;
  template <class T> __device__ T operator()(T v) const { return v; }
};
#define BITS(T, bytes)                                                  \
  KERNEL(copy_##bytes, SPACE, OUTPUT(T, y), INPUT(a)) {                 \
    map_strided<T>(same(), THE_SPACE, y, THE_STRIDES(y), THE_INPUT(a)); \
  }
BITS(uint8_t, 1)
BITS(uint16_t, 2)
BITS(uint32_t, 4)
BITS(uint64_t, 8)

// Conversions between arrays without gaps that every mixed-precision step is full of.
template <class To> struct conversion {
  typedef void on_elements;
  template <class From> __device__ To operator()(From v) const { return convert<To>(v); }
};
#define CONVERT(From, from, To, to) \
  KERNEL(copy_##from##_##to, int64_t n, To* y, const From* a) { map_dense(conversion<To>(), n, y, a); }
CONVERT(float, f32, bf16, bf16)
CONVERT(float, f32, f16, f16)
CONVERT(bf16, bf16, float, f32)
CONVERT(f16, f16, float, f32)

// All others: the input has any type and layout.
#define CONVERT_ANY(T, suffix)                                          \
  KERNEL(copy_to_##suffix, SPACE, OUTPUT(T, y), INPUT(a)) {             \
    map_strided<T>(same(), THE_SPACE, y, THE_STRIDES(y), THE_INPUT(a)); \
  }
EACH_FLOAT(CONVERT_ANY)
CONVERT_ANY(int64_t, i64)
CONVERT_ANY(int32_t, i32)
CONVERT_ANY(uint8_t, u8)
CONVERT_ANY(truth, bool)
