#include "prelude.cuh"
#include "elementwise.cuh"

#define ENTRIES(T, suffix) MAP1(sigmoid, T, suffix, sigmoid())
EACH_FLOAT(ENTRIES)
