#include "prelude.cuh"
#include "pad.cuh"

// Outside of the input its nearest element is repeated.
struct nearest {
  template <class I> __device__ I operator()(I i, uint32_t size) const {
    I last = (I)size - 1;
    return i < 0 ? 0 : i > last ? last : i;
  }
};

#define ENTRY(T, bytes) PAD_ENTRIES(replication_pad2d, T, bytes, nearest(), T())
EACH_SIZE(ENTRY)
