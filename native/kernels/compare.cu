#include "prelude.cuh"
#include "elementwise.cuh"

// compare_T(..., how) and compare_number_T(..., how, other).
#define ENTRIES(T, suffix)                                                                                \
  MAP2_TO(compare, T, truth, suffix, compare{how}, int how)                                               \
  MAP1_TO(compare_number, T, truth, suffix, (compare_number<number<T>>{how, rounded<T>(other)}), int how, \
          parameter<T> other)
EACH_FLOAT(ENTRIES)
ENTRIES(int64_t, i64)
