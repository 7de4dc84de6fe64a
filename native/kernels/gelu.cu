#include "prelude.cuh"
#include "elementwise.cuh"

#define ENTRIES(T, suffix)      \
  MAP1(gelu, T, suffix, gelu()) \
  MAP1(gelu_tanh, T, suffix, gelu_tanh())
EACH_FLOAT(ENTRIES)
