#include "prelude.cuh"
#include "elementwise.cuh"

#define ENTRIES(T, suffix) MAP1(neg, T, suffix, neg())
EACH_FLOAT(ENTRIES)
EACH_INTEGER(ENTRIES)
