#include "prelude.cuh"
#include "batch_norm_then.cuh"

#define ENTRIES(T, suffix) NORM_THEN(relu, T, suffix, relu())
EACH_DTYPE(ENTRIES)
