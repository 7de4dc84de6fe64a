#include "prelude.cuh"
#include "batch_norm_then.cuh"

#define ENTRIES(T, suffix) NORM_THEN(leaky_relu, T, suffix, leaky_relu<float>{p})
EACH_DTYPE(ENTRIES)
