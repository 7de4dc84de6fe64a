#include "prelude.cuh"
#include "elementwise.cuh"

#define ENTRIES(T, suffix) MAP1(silu, T, suffix, silu())
EACH_FLOAT(ENTRIES)
