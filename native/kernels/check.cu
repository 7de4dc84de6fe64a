// check.cu: what every device must be able to do. The conformance suite (native/device/devicetest) launches these, and
// so does whoever wants to know whether a device works at all.
#include "prelude.cuh"

// y = fma(a, x, y)
KERNEL(check_axpy_f32, float* y, const float* x, float a, int64_t n) { GRID_STRIDE(i, n) y[i] = fmaf(a, x[i], y[i]); }

// Adds 1 to a counter: shows how often a command ran.
KERNEL(check_count, int* counter) {
  if (threadIdx.x == 0 && blockIdx.x == 0) *counter += 1;
}

// Stores the bits of one argument of every kind.
KERNEL(check_arguments, uint64_t* out, int32_t i32, uint32_t u32, int64_t i64, uint64_t u64, float f32, double f64) {
  out[0] = (uint64_t)(int64_t)i32;
  out[1] = u32;
  out[2] = (uint64_t)i64;
  out[3] = u64;
  union {
    float f;
    uint32_t u;
  } a;
  a.f = f32;
  out[4] = a.u;
  union {
    double f;
    uint64_t u;
  } b;
  b.f = f64;
  out[5] = b.u;
}

// Every thread stores its own number, counted through a grid and blocks of three dimensions.
KERNEL(check_geometry, uint32_t* out) {
  uint32_t block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  uint32_t thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  uint32_t i = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
  out[i] = i;
}

// Reverses each block's elements through dynamic shared memory of blockDim.x ints.
KERNEL(check_reverse, int* y, const int* x) {
  DYN_SHARED(int, row);
  const int* from = x + (int64_t)blockIdx.x * blockDim.x;
  row[threadIdx.x] = from[threadIdx.x];
  __syncthreads();
  y[(int64_t)blockIdx.x * blockDim.x + threadIdx.x] = row[blockDim.x - 1 - threadIdx.x];
}

// Adds the ints of each warp: lane 0 stores the sum. Blocks are whole warps.
KERNEL(check_warp_sum, int* y, const int* x) {
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  int sum = warp_reduce_down(x[i], [](int a, int b) { return a + b; });
  if (threadIdx.x % 32 == 0) y[i / 32] = sum;
}

// Adds all ints to one counter, and tells the last block to come: it stores the counter to *total.
KERNEL(check_last_block, int* total, int* counter, unsigned* arrived, const int* x) {
  DYN_SHARED(unsigned, last);
  atomicAdd(counter, x[(int64_t)blockIdx.x * blockDim.x + threadIdx.x]);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) *last = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();
  if (threadIdx.x == 0 && *last) *total = atomicAdd(counter, 0);
}

// Rounds floats to bf16 and fp16.
KERNEL(check_round, bf16* b, f16* h, const float* x, int64_t n) {
  GRID_STRIDE(i, n) {
    st(b + i, x[i]);
    st(h + i, x[i]);
  }
}
