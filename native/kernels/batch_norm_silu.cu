#include "prelude.cuh"
#include "batch_norm_then.cuh"

#define ENTRIES(T, suffix) NORM_THEN(silu, T, suffix, silu())
EACH_DTYPE(ENTRIES)
