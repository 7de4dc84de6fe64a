#include "prelude.cuh"
#include "elementwise.cuh"

#define ENTRIES(T, suffix) MAP1(cos, T, suffix, cosine())
EACH_FLOAT(ENTRIES)
