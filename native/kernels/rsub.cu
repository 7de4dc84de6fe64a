#include "prelude.cuh"
#include "elementwise.cuh"

// other + alpha * self. The alpha is the negative of PyTorch's.
#define ENTRIES(T, suffix)                                                                               \
  MAP1(rsub, T, suffix, (number_add<number<T>>{(number<T>)other, (number<T>)alpha}), parameter<T> other, \
       parameter<T> alpha)
EACH_FLOAT(ENTRIES)
EACH_INTEGER(ENTRIES)
