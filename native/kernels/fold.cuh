// fold.cuh: reductions along one dimension whose result does not depend on the order of the elements. An operation is a
// struct with the type `number` that it carries, first() for what it starts with, take(number&, element, index) and
// join(number&, other). Two forms: a thread for each result, and a warp for each where elements lie next to each other.
#pragma once
#include "elementwise.cuh"

// The inputs of one result: so many elements, step apart.
struct line {
  uint32_t count;
  int64_t step;
};

template <class Op, class T, class Store>
__device__ __forceinline__ void fold_by_thread(const Op& op, const space& s, const T* x, const strides& from,
                                               const line& l, Store store) {
  GRID_STRIDE(i, s.n) {
    position p = find<1>(s, (uint32_t)i);
    const T* row = x + offset(from, p, s.dims);
    typename Op::number v = op.first();
    for (uint32_t k = 0; k < l.count; k++) op.take(v, row[k * l.step], k);
    store(p, row, v);
  }
}

// The lines of a block's warps; blockDim.x is 32.
template <class Op, class T, class Store> __device__ __forceinline__ void fold_by_warp(const Op& op, const space& s,
                                                                                       const T* x, const strides& from,
                                                                                       const line& l, Store store) {
  uint32_t i = blockIdx.x * blockDim.y + threadIdx.y;
  bool there = i < s.n;
  position p = find<1>(s, there ? i : 0);
  const T* row = x + offset(from, p, s.dims);
  typename Op::number v = op.first();
  if (there)
    for (uint32_t k = threadIdx.x; k < l.count; k += 32) op.take(v, row[k * l.step], k);
  v = warp_reduce_xor(v, [&](typename Op::number a, const typename Op::number& b) {
    op.join(a, b);
    return a;
  });
  if (there && threadIdx.x == 0) store(p, row, v);
}
