// reduce.cuh: reductions in the order of additions of PyTorch 2.11's reduce_kernel (ATen/native/cuda/Reduce.cuh). What
// shares inputs and outputs among threads is computed in package ops (reduce_config.go). From thread to result:
//   thread   4 accumulators over inputs step_input apart, or one for each element of an input vector; added left to
//   right block x  through shared memory down to one warp, then by shuffles from 16 down block y  through shared
//   memory, halving; after block x grid y   every block leaves its sum; the last to finish adds them in the order of
//   blocks, then block y, then block x
// An operation is a struct with the type `number` it computes in, take(a, element), combine(a, b), and project(a) for
// the result.
#pragma once
#include "elementwise.cuh"

// On the host these are functions, so that the compiler sees each wait once.
#ifdef CUDA_HOST
#define REDUCE_PART static __noinline__
#else
#define REDUCE_PART __device__ __forceinline__
#endif

// What an operation is that adds elements, or something made of them.
template <class N> struct adding {
  typedef N number;
  template <class T> __device__ number take(number a, T element) const { return a + up(element); }
  __device__ number combine(number a, number b) const { return a + b; }
};

// The axes that one index runs over, innermost first, and the elements that a step along each advances.
struct reduce_axes {
  uint32_t size[4], by[4];
};

struct reduce_shape {
  uint32_t inputs, outputs, step_input, step_output, ctas;
  uint32_t in_x, in_y, in_cta, out_x,
      out_y;               // steps of the indices along block x, block y and grid y; 0: not split there
  uint32_t reduced, rest;  // numbers of axes
  reduce_axes in;          // of the inputs of one output
  reduce_axes from, to;    // of the outputs: where its inputs begin, where it goes

  __device__ uint32_t first_input() const { return threadIdx.x * in_x + threadIdx.y * in_y + blockIdx.y * in_cta; }
  __device__ uint32_t output() const { return threadIdx.x * out_x + threadIdx.y * out_y + blockIdx.x * step_output; }
  __device__ bool stores() const { return (!in_x || threadIdx.x == 0) && (!in_y || threadIdx.y == 0); }
  __device__ bool takes_tail() const { return (!in_y || threadIdx.y == 0) && (!in_cta || blockIdx.y == 0); }
  // Where a block's partial sum waits for the last block.
  __device__ uint32_t staging(uint32_t cta) const {
    uint32_t at = cta + blockIdx.x * gridDim.y;
    return in_x ? at : threadIdx.x + at * blockDim.x;
  }
};

__device__ __forceinline__ uint32_t offset_of(const reduce_axes& a, uint32_t axes, uint32_t index) {
  uint32_t offset = 0;
#pragma unroll
  for (uint32_t d = 0; d < 4; d++) {
    if (d == axes) break;
    uint32_t up = d + 1 == axes ? 0 : index / a.size[d];
    offset += (index - up * a.size[d]) * a.by[d];
    index = up;
  }
  return offset;
}

// Sums of neighbouring outputs that one thread computes.
template <class Op, int N> struct sums {
  typename Op::number at[N];

  __device__ void add(const Op& op, const sums& other) {
#pragma unroll
    for (int j = 0; j < N; j++) at[j] = op.combine(at[j], other.at[j]);
  }
};

template <int N, class Op, class In, class Offset>
REDUCE_PART sums<Op, N> reduce_steps(const Op& op, const In* data, const reduce_shape& s, Offset offset) {
  sums<Op, N> acc[4] = {};
  pack<In, N> v[4];
  uint32_t i = s.first_input();
  for (; i + 3 * s.step_input < s.inputs; i += 4 * s.step_input) {
#pragma unroll
    for (int k = 0; k < 4; k++) v[k] = *(const pack<In, N>*)(data + offset(i + k * s.step_input));
#pragma unroll
    for (int k = 0; k < 4; k++)
#pragma unroll
      for (int j = 0; j < N; j++) acc[k].at[j] = op.take(acc[k].at[j], v[k].at[j]);
  }
#pragma unroll
  for (int k = 0; k < 4; k++) {
    if (i >= s.inputs) break;
    v[k] = *(const pack<In, N>*)(data + offset(i));
#pragma unroll
    for (int j = 0; j < N; j++) acc[k].at[j] = op.take(acc[k].at[j], v[k].at[j]);
    i += s.step_input;
  }
#pragma unroll
  for (int k = 1; k < 4; k++) acc[0].add(op, acc[k]);
  return acc[0];
}

// A row without gaps, loaded in vectors of V. Elements before the first aligned address and behind the last whole
// vector go to single threads.
template <int V, class Op, class In>
REDUCE_PART sums<Op, 1> reduce_vectors(const Op& op, const In* data, const reduce_shape& s) {
  typename Op::number acc[V] = {};
  uint32_t end = s.inputs, shift = (uint64_t)data % (V * sizeof(In)) / sizeof(In);
  if (shift > 0) {
    data -= shift;
    end += shift;
    if (threadIdx.x >= shift && threadIdx.x < V && s.takes_tail()) acc[0] = op.take(acc[0], data[threadIdx.x]);
    end -= V;
    data += V;
  }
  for (uint32_t i = s.first_input(); i * V + V - 1 < end; i += s.step_input) {
    pack<In, V> v = ((const pack<In, V>*)data)[i];
#pragma unroll
    for (int j = 0; j < V; j++) acc[j] = op.take(acc[j], v.at[j]);
  }
  uint32_t tail = end - end % V + threadIdx.x;
  if (s.takes_tail() && tail < end) acc[0] = op.take(acc[0], data[tail]);
#pragma unroll
  for (int j = 1; j < V; j++) acc[0] = op.combine(acc[0], acc[j]);
  return {{acc[0]}};
}

template <int N, class Op> REDUCE_PART void reduce_block_x(const Op& op, sums<Op, N>& v, sums<Op, N>* shared) {
  uint32_t width = blockDim.x;
  if (width > 32) {
    uint32_t at = threadIdx.x + threadIdx.y * blockDim.x;
    __syncthreads();
    shared[at] = v;
    for (uint32_t o = width / 2; o >= 32; o >>= 1) {
      __syncthreads();
      if (threadIdx.x < o) {
        v.add(op, shared[at + o]);
        shared[at] = v;
      }
    }
    width = 32;
  }
  auto add = [&](sums<Op, N> mine, const sums<Op, N>& other) {
    mine.add(op, other);
    return mine;
  };
  if (width == 32)
    v = warp_reduce_down(v, add);
  else
    for (uint32_t o = width / 2; o > 0; o >>= 1) v = add(v, shfl_down(v, o));
}

template <int N, class Op> REDUCE_PART void reduce_block_y(const Op& op, sums<Op, N>& v, sums<Op, N>* shared) {
  uint32_t at = threadIdx.x + threadIdx.y * blockDim.x;
  __syncthreads();
  shared[at] = v;
  for (uint32_t o = blockDim.y / 2; o > 0; o >>= 1) {
    __syncthreads();
    if (threadIdx.y < o) {
      v.add(op, shared[at + o * blockDim.x]);
      shared[at] = v;
    }
  }
}

// reduce_grid_y is true in the last block of an output to finish, with the sum of all its blocks.
template <int N, class Op> REDUCE_PART bool reduce_grid_y(const Op& op, const reduce_shape& s, sums<Op, N>& v,
                                                          sums<Op, N>* shared, sums<Op, N>* staging,
                                                          uint32_t* finished) {
  __shared__ bool last;
  if (s.output() * N < s.outputs && s.stores()) staging[s.staging(blockIdx.y)] = v;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0) last = atomicAdd(&finished[blockIdx.x], 1u) == gridDim.y - 1;
  __syncthreads();
  if (!last) return false;
  __threadfence();
  v = {};
  uint32_t cta = s.in_x ? threadIdx.x + threadIdx.y * blockDim.x : threadIdx.y;
  uint32_t step = s.in_x ? blockDim.x * blockDim.y : blockDim.y;
  for (; cta < s.ctas; cta += step) v.add(op, staging[s.staging(cta)]);
  reduce_block_y(op, v, shared);
  if (s.in_x) reduce_block_x(op, v, shared);
  return true;
}

// A result is the output's type, or float if wide.
template <class Out> __device__ __forceinline__ void put(Out* out, int wide, uint32_t i, float v) {
  if (wide)
    st((float*)out + i, v);
  else
    st(out + i, v);
}
__device__ __forceinline__ void put(int64_t* out, int, uint32_t i, int64_t v) { out[i] = v; }

// V > 0: input vectors of V elements. N: outputs of one thread.
template <int V, int N, class Op, class Out, class T>
__device__ __forceinline__ void reduce(const Op& op, Out* out, int wide, const T* in, void* staging, uint32_t* finished,
                                       const reduce_shape& s) {
  DYN_SHARED(unsigned char, bytes);
  sums<Op, N>* shared = (sums<Op, N>*)bytes;
  uint32_t output = s.output() * N;
  sums<Op, N> v = {};
  if (output < s.outputs && s.first_input() < s.inputs) {
    const T* row = in + offset_of(s.from, s.rest, output);
    if constexpr (V > 0)
      v = reduce_vectors<V>(op, row, s);
    else if (s.reduced == 1)
      v = reduce_steps<N>(op, row, s, [&](uint32_t i) { return i * s.in.by[0]; });
    else
      v = reduce_steps<N>(op, row, s, [&](uint32_t i) { return offset_of(s.in, s.reduced, i); });
  }
  if (s.in_x) reduce_block_x(op, v, shared);
  if (s.in_y) reduce_block_y(op, v, shared);
  if (s.in_cta && !reduce_grid_y(op, s, v, shared, (sums<Op, N>*)staging, finished)) return;
  if (output >= s.outputs || !s.stores()) return;
#pragma unroll
  for (int j = 0; j < N; j++) put(out, wide, offset_of(s.to, s.rest, output + j), op.project(v.at[j]));
}

#define REDUCE_AXES(x) uint32_t x##0, uint32_t x##1, uint32_t x##2, uint32_t x##3
#define THE_AXES(size, by) {{size##0, size##1, size##2, size##3}, {by##0, by##1, by##2, by##3}}
#define REDUCE_ENTRY(entry, V, N, T, Out, Op, ...)                                                                    \
  KERNEL_BOUNDS(entry, 512 / N, Out * out, int wide, const T* in, void* staging, uint32_t* finished, uint32_t inputs, \
                uint32_t outputs, uint32_t step_input, uint32_t step_output, uint32_t ctas, uint32_t in_x,            \
                uint32_t in_y, uint32_t in_cta, uint32_t out_x, uint32_t out_y, uint32_t reduced, uint32_t rest,      \
                REDUCE_AXES(in_size), REDUCE_AXES(in_by), REDUCE_AXES(out_size), REDUCE_AXES(from_by),                \
                REDUCE_AXES(to_by), ##__VA_ARGS__) {                                                                  \
    reduce_shape s = {                                                                                                \
        inputs, outputs, step_input, step_output, ctas, in_x, in_y, in_cta, out_x, out_y, reduced, rest};             \
    s.in = THE_AXES(in_size, in_by);                                                                                  \
    s.from = THE_AXES(out_size, from_by);                                                                             \
    s.to = THE_AXES(out_size, to_by);                                                                                 \
    reduce<V, N>(Op, out, wide, in, staging, finished, s);                                                            \
  }

// The entries of an operation from T to Out: NAME_in takes input vectors of V, NAME_out1, 2 and 4 that many outputs.
#define REDUCE_INTO(name, T, Out, V, op, ...)                \
  REDUCE_ENTRY(name##_in, V, 1, T, Out, op, ##__VA_ARGS__)   \
  REDUCE_ENTRY(name##_out1, 0, 1, T, Out, op, ##__VA_ARGS__) \
  REDUCE_ENTRY(name##_out2, 0, 2, T, Out, op, ##__VA_ARGS__) \
  REDUCE_ENTRY(name##_out4, 0, 4, T, Out, op, ##__VA_ARGS__)
#define REDUCE_ENTRIES(name, T, V, op, ...) REDUCE_INTO(name, T, T, V, op, ##__VA_ARGS__)
