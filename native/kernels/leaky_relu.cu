#include "prelude.cuh"
#include "elementwise.cuh"

#define ENTRIES(T, suffix) MAP1(leaky_relu, T, suffix, leaky_relu<number<T>>{slope}, number<T> slope)
EACH_FLOAT(ENTRIES)
