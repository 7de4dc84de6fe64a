#include "prelude.cuh"
#include "elementwise.cuh"

#define ENTRIES(T, suffix) MAP1(sin, T, suffix, sine())
EACH_FLOAT(ENTRIES)
