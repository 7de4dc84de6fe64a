#include "prelude.cuh"
#include "elementwise.cuh"

#define ENTRIES(T, suffix) MAP1(abs, T, suffix, absolute())
EACH_FLOAT(ENTRIES)
EACH_INTEGER(ENTRIES)
