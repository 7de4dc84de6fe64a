#include "prelude.cuh"
#include "pad.cuh"

struct outside {
  template <class I> __device__ I operator()(I i, uint32_t size) const { return i >= 0 && i < (I)size ? i : -1; }
};

#define ENTRY(T, bytes) PAD_ENTRIES(constant_pad_nd, T, bytes, outside(), (T)value, uint64_t value)
EACH_SIZE(ENTRY)
