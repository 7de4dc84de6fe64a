#include "prelude.cuh"
#include "elementwise.cuh"

#define ENTRIES(T, suffix) MAP3_FROM(where, truth, T, suffix, where())
EACH_FLOAT(ENTRIES)
EACH_INTEGER(ENTRIES)
