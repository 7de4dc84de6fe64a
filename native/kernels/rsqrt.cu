#include "prelude.cuh"
#include "elementwise.cuh"

// Not called rsqrt: on the host that is a macro.
#define ENTRIES(T, suffix) MAP1(reciprocal_root, T, suffix, reciprocal_root())
EACH_FLOAT(ENTRIES)
