#include "prelude.cuh"
#include "elementwise.cuh"

#define ENTRIES(T, suffix)                       \
  MAP1(bitwise_not, T, suffix, bitwise_not<T>()) \
  MAP2(bitwise_and, T, suffix, bitwise_and())    \
  MAP2(bitwise_or, T, suffix, bitwise_or())
EACH_INTEGER(ENTRIES)
