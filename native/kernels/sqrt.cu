#include "prelude.cuh"
#include "elementwise.cuh"

#define ENTRIES(T, suffix) MAP1(sqrt, T, suffix, square_root())
EACH_FLOAT(ENTRIES)
