#include "prelude.cuh"
#include "elementwise.cuh"

#define ENTRIES(T, suffix)                              \
  MAP1_TO(logical_not, T, truth, suffix, logical_not()) \
  MAP2_TO(logical_and, T, truth, suffix, logical_and()) \
  MAP2_TO(logical_or, T, truth, suffix, logical_or())
EACH_FLOAT(ENTRIES)
ENTRIES(int64_t, i64)
