#include "prelude.cuh"
#include "batch_norm_then.cuh"

#define ENTRIES(T, suffix) NORM_THEN(hardsigmoid, T, suffix, hardsigmoid())
EACH_DTYPE(ENTRIES)
