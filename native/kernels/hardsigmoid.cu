#include "prelude.cuh"
#include "elementwise.cuh"

#define ENTRIES(T, suffix) MAP1(hardsigmoid, T, suffix, hardsigmoid())
EACH_FLOAT(ENTRIES)
