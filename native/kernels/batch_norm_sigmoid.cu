#include "prelude.cuh"
#include "batch_norm_then.cuh"

#define ENTRIES(T, suffix) NORM_THEN(sigmoid, T, suffix, sigmoid())
EACH_DTYPE(ENTRIES)
