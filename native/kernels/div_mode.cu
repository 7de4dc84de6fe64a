#include "prelude.cuh"
#include "elementwise.cuh"

#define ENTRIES(T, suffix)                      \
  MAP2(div_floor, T, suffix, divide_floor<T>()) \
  MAP2(div_trunc, T, suffix, divide_trunc<T>())
EACH_FLOAT(ENTRIES)
ENTRIES(int64_t, i64)
ENTRIES(int32_t, i32)
ENTRIES(uint8_t, u8)

// By a Python number, which is not 0.
#define NUMBERS(T, suffix)                                                                                        \
  MAP1(div_floor_number, T, suffix, (divide_floor_number<T>{other, inverse}), number<T> other, number<T> inverse) \
  MAP1(div_trunc_number, T, suffix, divide_trunc_number<number<T>>{inverse}, number<T> inverse)
EACH_FLOAT(NUMBERS)
