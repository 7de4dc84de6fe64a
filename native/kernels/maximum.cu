#include "prelude.cuh"
#include "elementwise.cuh"

#define ENTRIES(T, suffix)            \
  MAP2(maximum, T, suffix, maximum()) \
  MAP2(minimum, T, suffix, minimum())
EACH_FLOAT(ENTRIES)
EACH_INTEGER(ENTRIES)
