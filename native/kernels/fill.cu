#include "prelude.cuh"
#include "elementwise.cuh"

// Elements of a size, all with the same bits.
template <class T> struct constant {
  typedef void on_elements;
  T bits;
  __device__ T operator()() const { return bits; }
};
#define FILL(T, bytes, Word)                                            \
  KERNEL(fill_##bytes, SPACE, OUTPUT(T, y), Word bits) {                \
    map_strided<T>(constant<T>{(T)bits}, THE_SPACE, y, THE_STRIDES(y)); \
  }
FILL(uint8_t, 1, uint32_t)
FILL(uint16_t, 2, uint32_t)
FILL(uint32_t, 4, uint32_t)
FILL(uint64_t, 8, uint64_t)
