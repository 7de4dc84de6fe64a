#include "prelude.cuh"
#include "elementwise.cuh"

#define ENTRIES(T, suffix)                                                                          \
  MAP1(pow_2, T, suffix, square())                                                                  \
  MAP1(pow_3, T, suffix, cube<T>())                                                                 \
  MAP1(pow_minus_2, T, suffix, inverse_square<T>())                                                 \
  MAP1(pow_number, T, suffix, power_number<number<T>>{rounded<T>(exponent)}, parameter<T> exponent) \
  MAP1(number_pow, T, suffix, number_power<number<T>>{rounded<T>(base)}, parameter<T> base)
EACH_FLOAT(ENTRIES)
