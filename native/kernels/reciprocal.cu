#include "prelude.cuh"
#include "elementwise.cuh"

#define ENTRIES(T, suffix) MAP1(reciprocal, T, suffix, reciprocal())
EACH_FLOAT(ENTRIES)
