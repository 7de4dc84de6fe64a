// bounds.cuh: indices that come from data. One that is out of range stops the launch: nothing outside of a tensor is
// read, and the error says so. On a GPU that is an assertion, as in PyTorch, and the context is lost.
#pragma once

__device__ __forceinline__ void index_fault() {
#ifdef CUDA_HOST
  ch_fail("an index is out of range");
#else
  __assertfail("an index is out of range", "kernels/bounds.cuh", __LINE__, "bounded", 1);
#endif
}

// bounded gives an index that lies in 0..size-1.
__device__ __forceinline__ int64_t bounded(int64_t i, int64_t size) {
  if ((uint64_t)i >= (uint64_t)size) index_fault();
  return i;
}
