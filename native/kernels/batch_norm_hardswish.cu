#include "prelude.cuh"
#include "batch_norm_then.cuh"

#define ENTRIES(T, suffix) NORM_THEN(hardswish, T, suffix, hardswish())
EACH_DTYPE(ENTRIES)
