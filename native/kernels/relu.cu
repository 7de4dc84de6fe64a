#include "prelude.cuh"
#include "elementwise.cuh"

#define ENTRIES(T, suffix) MAP1(relu, T, suffix, relu())
EACH_FLOAT(ENTRIES)
