// blocks.cu: how threads of a block meet.
#include "prelude.cuh"

// An inclusive sum over a block of any size, by doubling: two barriers a step.
KERNEL(block_scan, int* y, const int* x) {
  DYN_SHARED(int, row);
  int t = threadIdx.x;
  int64_t at = (int64_t)blockIdx.x * blockDim.x + t;
  row[t] = x[at];
  __syncthreads();
  for (int d = 1; d < (int)blockDim.x; d *= 2) {
    int add = t >= d ? row[t - d] : 0;
    __syncthreads();
    row[t] += add;
    __syncthreads();
  }
  y[at] = row[t];
}

// Threads leave one after another; the others go on meeting. y[t] is how many rounds thread t was in, as seen by thread
// 0.
KERNEL(leave_early, int* y) {
  __shared__ int rounds[1024];
  rounds[threadIdx.x] = 0;
  __syncthreads();
  for (int i = 0;; i++) {
    if ((int)threadIdx.x != 0 && i == (int)threadIdx.x) return;
    rounds[threadIdx.x]++;
    __syncthreads();
    if (i == (int)blockDim.x) break;
  }
  for (int i = 0; i < (int)blockDim.x; i++) y[i] = rounds[i];
}

// Some threads leave before the first barrier.
KERNEL(leave_first, int* y, int stay) {
  __shared__ int sum;
  if ((int)threadIdx.x >= stay) return;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, 1);
  __syncthreads();
  if (threadIdx.x == 0) *y = sum;
}

KERNEL(counts, int* y) {
  int t = threadIdx.x;
  int threes = __syncthreads_count(t % 3 == 0), any = __syncthreads_or(t == 40), none = __syncthreads_or(t > 5000);
  int all = __syncthreads_and(t >= 0), most = __syncthreads_and(t != 7);
  int* out = y + 5 * t;
  out[0] = threes;
  out[1] = any;
  out[2] = none;
  out[3] = all;
  out[4] = most;
}

// Static shared memory of a block in three dimensions, read across the barrier in another order.
KERNEL(transpose, int* y) {
  __shared__ int cube[4][5][6];
  cube[threadIdx.z][threadIdx.y][threadIdx.x] = (int)(threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z);
  __syncthreads();
  int i = threadIdx.x + 6 * (threadIdx.y + 5 * threadIdx.z);
  int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  y[120 * block + i] = cube[i % 4][i / 4 % 5][i / 20];
}

// Reads shared memory that nobody wrote.
KERNEL(unwritten, unsigned* y) {
  DYN_SHARED(unsigned, row);
  y[threadIdx.x] = row[threadIdx.x];
  row[threadIdx.x] = 1;
}

// One lane waits for the block, the others for the warp.
KERNEL(deadlock, int* y) {
  if (threadIdx.x == 33 && blockIdx.x == 2)
    __syncthreads();
  else
    __syncwarp();
  y[blockIdx.x] = 1;
}

KERNEL(trap, const int* x) {
  if (x[blockIdx.x * blockDim.x + threadIdx.x] < 0) __trap();
}

// Uses far more stack than a plain loop would need, across barriers.
KERNEL(deep, int* y) {
  volatile int pad[4096];
  for (int i = 0; i < 4096; i++) pad[i] = (int)threadIdx.x + i;
  __syncthreads();
  int sum = 0;
  for (int i = 0; i < 4096; i++) sum += pad[i] - i;
  __syncthreads();
  y[threadIdx.x] = sum;
}
