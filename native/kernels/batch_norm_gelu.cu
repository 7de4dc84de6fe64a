#include "prelude.cuh"
#include "batch_norm_then.cuh"

#define ENTRIES(T, suffix) NORM_THEN(gelu, T, suffix, gelu())
EACH_DTYPE(ENTRIES)
