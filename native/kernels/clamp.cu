#include "prelude.cuh"
#include "elementwise.cuh"

#define ENTRIES(T, suffix) \
  MAP1(clamp, T, suffix, (clamp<T>{(number<T>)low, (number<T>)high}), parameter<T> low, parameter<T> high)
EACH_FLOAT(ENTRIES)
EACH_INTEGER(ENTRIES)
