#include "prelude.cuh"
#include "softmax_forms.cuh"

#define ENTRIES(T, suffix) FORMS(safe_softmax, true, T, suffix)
EACH_DTYPE(ENTRIES)
