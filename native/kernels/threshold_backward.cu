#include "prelude.cuh"
#include "elementwise.cuh"

#define ENTRIES(T, suffix) \
  MAP2(threshold_backward, T, suffix, threshold_gradient<T>{round_to<T>(threshold)}, accumulate<T> threshold)
EACH_FLOAT(ENTRIES)
