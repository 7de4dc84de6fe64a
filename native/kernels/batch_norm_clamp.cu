#include "prelude.cuh"
#include "batch_norm_then.cuh"

#define ENTRIES(T, suffix) NORM_THEN(clamp, T, suffix, (clamp<T>{p, q}))
EACH_DTYPE(ENTRIES)
