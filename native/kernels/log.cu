#include "prelude.cuh"
#include "elementwise.cuh"

#define ENTRIES(T, suffix) MAP1(log, T, suffix, natural_logarithm())
EACH_FLOAT(ENTRIES)
