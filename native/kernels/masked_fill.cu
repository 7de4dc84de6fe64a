#include "prelude.cuh"
#include "elementwise.cuh"

// The value comes as the bits of an element.
#define ENTRIES(T, suffix) \
  MAP2_FROM(masked_fill, T, truth, T, suffix, masked_fill<T>{from_bits<T>(value)}, uint64_t value)
EACH_FLOAT(ENTRIES)
EACH_INTEGER(ENTRIES)
