// warps.cu: shuffles, votes and the prelude's reductions.
#include "prelude.cuh"

struct moments {
  float mean, m2;
  int count;
};

// y[lane][k] is the lane whose value operation k gave.
KERNEL(raw_shuffles, int* y) {
  int lane = threadIdx.x % 32, *out = y + threadIdx.x * 12;
  out[0] = __shfl_sync(FULL, lane, 5);
  out[1] = __shfl_sync(FULL, lane, lane + 1);
  out[2] = __shfl_sync(FULL, lane, 3, 8);
  out[3] = __shfl_up_sync(FULL, lane, 3);
  out[4] = __shfl_up_sync(FULL, lane, 3, 8);
  out[5] = __shfl_down_sync(FULL, lane, 9);
  out[6] = __shfl_down_sync(FULL, lane, 3, 16);
  out[7] = __shfl_xor_sync(FULL, lane, 16);
  out[8] = __shfl_xor_sync(FULL, lane, 5, 4);
  out[9] = (int)__shfl_down_sync(FULL, (double)lane, 1);
  out[10] = (int)(__shfl_xor_sync(FULL, (long long)lane << 33, 1) >> 33);
  out[11] = __shfl_sync(FULL, lane, -1);
}

// Shuffles and votes by lanes 0 to 9 and by the others, in branches of their own.
KERNEL(part_shuffles, int* y) {
  int lane = threadIdx.x % 32, *out = y + threadIdx.x * 3;
  unsigned low = 0x3ff;
  if (lane < 10) {
    out[0] = __shfl_xor_sync(low, lane, 1);
    out[1] = (int)__ballot_sync(low, lane % 2);
    out[2] = __any_sync(low, lane == 3);
  } else {
    out[0] = __shfl_sync(~low, lane, 20);
    out[1] = (int)__ballot_sync(~low, lane % 2);
    out[2] = __all_sync(~low, lane != 11);
  }
}

KERNEL(votes, unsigned* y) {
  unsigned t = threadIdx.x, *out = y + t * 3;
  out[0] = __ballot_sync(FULL, t % 3 == 0);
  out[1] = __any_sync(FULL, t == 40);
  out[2] = __all_sync(FULL, t < 40);
}

// The prelude's helpers and the shuffles that they stand for: y must hold equal pairs.
#define PAIR(helper, raw) \
  {                       \
    out[0] = helper;      \
    out[1] = raw;         \
    out += 2;             \
  }
KERNEL(reductions, float* y, const float* x) {
  float v = x[threadIdx.x], *out = y + threadIdx.x * 12;
  auto odd = [](float a, float b) { return fmaf(a, 0.75f, b); };
  float down = v, up = v;
  for (int o = 16; o; o >>= 1) {
    float other = __shfl_down_sync(FULL, down, o);
    down = odd(down, other);
  }
  for (int o = 16; o; o >>= 1) {
    float other = __shfl_xor_sync(FULL, up, o);
    up = odd(up, other);
  }
  PAIR(warp_reduce_down(v, odd), down)
  PAIR(warp_reduce_xor(v, odd), up)
  moments m = {v, v * v, (int)threadIdx.x};
  moments d = shfl_down(m, 3), q = shfl_xor(m, 3), s = shfl(m, 3);
  PAIR(d.mean + d.m2 + (float)d.count,
       __shfl_down_sync(FULL, m.mean, 3) + __shfl_down_sync(FULL, m.m2, 3) + (float)__shfl_down_sync(FULL, m.count, 3))
  PAIR(q.mean + q.m2 + (float)q.count,
       __shfl_xor_sync(FULL, m.mean, 3) + __shfl_xor_sync(FULL, m.m2, 3) + (float)__shfl_xor_sync(FULL, m.count, 3))
  PAIR(s.mean + s.m2 + (float)s.count,
       __shfl_sync(FULL, m.mean, 3) + __shfl_sync(FULL, m.m2, 3) + (float)__shfl_sync(FULL, m.count, 3))
  PAIR(accumulate<double>(v) == (double)v ? 1.f : 0.f, 1.f)
}

// Lanes talk through shared memory, with __syncwarp between.
KERNEL(neighbours, int* y) {
  __shared__ int row[64];
  int t = threadIdx.x, sum = t;
  for (int i = 0; i < 5; i++) {
    row[t] = sum;
    __syncwarp();
    sum += row[t ^ 1];
    __syncwarp();
  }
  y[t] = sum;
}
