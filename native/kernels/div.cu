#include "prelude.cuh"
#include "elementwise.cuh"

#define ENTRIES(T, suffix) MAP2(div, T, suffix, divide())
EACH_FLOAT(ENTRIES)
MAP2_INTO(div_f32_bf16_strided, float, bf16, divide())
MAP2_INTO(div_f32_f16_strided, float, f16, divide())
