#include "prelude.cuh"
#include "elementwise.cuh"

#define ENTRIES(T, suffix) MAP1(hardswish, T, suffix, hardswish())
EACH_FLOAT(ENTRIES)
