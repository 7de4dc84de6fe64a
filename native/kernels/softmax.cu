#include "prelude.cuh"
#include "softmax_forms.cuh"

#define ENTRIES(T, suffix) FORMS(softmax, false, T, suffix)
EACH_DTYPE(ENTRIES)
