#include "prelude.cuh"
#include "elementwise.cuh"

#define ENTRIES(T, suffix) MAP1(tanh, T, suffix, tangens_hyperbolicus())
EACH_FLOAT(ENTRIES)
