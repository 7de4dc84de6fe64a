// launch_blocks.h: runs the blocks of a launch on the calling OS thread, and keeps the table of a library's entries.
#pragma once

// Takes the next block of the launch; false if none is left.
static inline bool ch_next_block(ch_worker* w) {
  const ch_launch* l = w->launch;
  if (w->block == w->block_end) {
    uint64_t b = __atomic_fetch_add(l->next, l->chunk, __ATOMIC_RELAXED);
    if (b >= w->total) return false;
    w->block = b;
    w->block_end = b + l->chunk < w->total ? b + l->chunk : w->total;
    blockIdx.x = b % gridDim.x;
    b /= gridDim.x;
    blockIdx.y = b % gridDim.y;
    blockIdx.z = b / gridDim.y;
  } else if (++blockIdx.x == gridDim.x) {
    blockIdx.x = 0;
    if (++blockIdx.y == gridDim.y) {
      blockIdx.y = 0;
      blockIdx.z++;
    }
  }
  w->block++;
  if (l->flags & CH_POISON) memset(w->shared, 0xff, l->shared_bytes);
  return true;
}
// A thread is done that ran as a fiber. No fiber outlives its block: the last one starts stack 0 anew.
static __attribute__((noinline, noreturn)) void ch_exit_thread() {
  ch_worker* w = ch_self();
  unsigned me = w->current, q = me >> 5, t = 0;
  w->alive[q] &= ~(1u << (me & 31));
  if (--w->alive_count == 0) {
    ch_mode = w->mode = 0;
    ch_fresh(w, 0);
  } else {
    if (w->arrived == w->alive_count) ch_release_block(w);
    if (w->waiting[q]) ch_exit_warp(w, q);
    t = ch_pick(w, me);
    ch_set_thread(w, t);
  }
  ch_switch(&w->dead, &w->fiber[t]);
  __builtin_unreachable();
}
// The top of every fiber. Stack 0 runs whole blocks as plain loops until one of them waits.
static void ch_fiber_main() {
  ch_worker* w = ch_self();
  if (w->mode)
    w->loop(w->launch->args, w->current);
  else
    while (ch_next_block(w)) w->loop(w->launch->args, 0);
  ch_switch(&w->dead, &w->main);
  __builtin_unreachable();
}
static __noinline__ void ch_run(const ch_launch* l, ch_loop_fn loop) {
  ch_worker* w = (ch_worker*)l->region;
  for (int i = 0; i < 2; i++) {
    ch_worker* seen = __atomic_load_n(&ch_guess[i], __ATOMIC_RELAXED);
    if (seen == w) break;
    if (!seen && __atomic_compare_exchange_n(&ch_guess[i], &seen, w, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) break;
  }
  gridDim = {l->grid[0], l->grid[1], l->grid[2]};
  blockDim = {l->block[0], l->block[1], l->block[2]};
  w->launch = l;
  w->loop = loop;
  w->total = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
  w->block = w->block_end = 0;
  w->mode = ch_mode = 0;
  w->thread_idx = &ch_thread_idx;
  ch_fresh(w, 0);
  ch_switch(&w->main, &w->fiber[0]);
}

// The plain loop over the threads of a block; with first > 0, or once fibers run, one thread of it.
template <auto F> struct ch_entry;
template <class... A, void (*F)(A...)> struct ch_entry<F> {
  static constexpr uint32_t sizes[sizeof...(A) + 1] = {sizeof(A)..., 0}, count = sizeof...(A);
  template <size_t... I> static __forceinline__ void threads(void** args, unsigned first, std::index_sequence<I...>) {
    const unsigned nx = blockDim.x, ny = blockDim.y, nz = blockDim.z;
    unsigned x = 0, y = 0, z = 0;
    if (first) {
      x = threadIdx.x;
      y = threadIdx.y;
      z = threadIdx.z;
    }
    for (; z < nz; z++, y = 0)
      for (; y < ny; y++, x = 0)
        for (; x < nx; x++) {
          threadIdx.x = x;
          threadIdx.y = y;
          threadIdx.z = z;
          F(*(std::remove_cv_t<A>*)args[I]...);
          if (ch_mode) ch_exit_thread();
        }
  }
  static void loop(void** args, unsigned first) { threads(args, first, std::index_sequence_for<A...>{}); }
  static void run(const ch_launch* l) { ch_run(l, loop); }
};

// The table of entries is a section of the library, so that an entry is one line and needs no list elsewhere. The
// linker makes the symbols of its bounds; they are weak for a file without entries.
extern "C" {
extern const ch_kernel __start_ch_kernels[] __attribute__((weak, visibility("hidden")));
extern const ch_kernel __stop_ch_kernels[] __attribute__((weak, visibility("hidden")));
__attribute__((visibility("default"), used)) const ch_kernel* cuda_host_kernels(uint64_t* count) {
  *count = __stop_ch_kernels - __start_ch_kernels;
  return __start_ch_kernels;
}
}
#define KERNEL(name, ...)                                                                      \
  static inline void name(__VA_ARGS__);                                                        \
  __attribute__((section("ch_kernels"), used, retain)) static const ch_kernel name##_entry = { \
      #name, ch_entry<&name>::run, ch_entry<&name>::sizes, ch_entry<&name>::count};            \
  static __forceinline__ void name(__VA_ARGS__)
#define KERNEL_BOUNDS(name, threads, ...) KERNEL(name, __VA_ARGS__)
#define DYN_SHARED(T, name) T* name = (T*)ch_self()->shared

// Here a block's piece is contiguous and its first thread does all of it, so that the compiler vectorises the body.
static inline int64_t ch_piece(int64_t n, int64_t block) {
  int64_t length = (n + gridDim.x - 1) / gridDim.x, low = length * block;
  return low < n ? low : n;
}
#define GRID_STRIDE(i, n)                                                         \
  for (int64_t i = threadIdx.x ? 0 : ch_piece(n, blockIdx.x),                     \
               i##_end_ = threadIdx.x ? 0 : ch_piece(n, (int64_t)blockIdx.x + 1); \
       i < i##_end_; ++i)
