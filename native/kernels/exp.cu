#include "prelude.cuh"
#include "elementwise.cuh"

#define ENTRIES(T, suffix) MAP1(exp, T, suffix, exponent())
EACH_FLOAT(ENTRIES)
