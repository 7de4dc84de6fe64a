// fiber.h: the threads of a block.
//
// A block starts as a plain loop over its threads, all on stack 0. At the first barrier, shuffle or vote that stack
// becomes the fiber of the thread that met it, and the threads that have not run yet start as fibers of their own. From
// then to the end of the block each fiber runs one thread. A kernel that never synchronises never switches.
//
// Threads run in a fixed order, so a missing barrier does not show here: run compute-sanitizer's racecheck on a GPU.
#pragma once

// The built-in variables. They are static and their address is never taken as far as the compiler sees, so it keeps
// them in registers in a kernel that calls nothing opaque.
CH_TL uint3 threadIdx asm("ch_threadIdx");
extern __attribute__((visibility("hidden"))) __thread uint3 ch_thread_idx asm("ch_threadIdx");  // the same, by address
CH_TL uint3 blockIdx, blockDim, gridDim;
CH_TL int ch_mode;  // 0: plain loop over threads, 1: fibers
static constexpr int warpSize = 32;

// A worker and the stacks of a block's threads lie in one region aligned to its size, so the worker is found from the
// stack pointer, without thread-local storage. The distance of the stacks is no multiple of the page size, or their
// tops would share cache sets.
static constexpr size_t CH_HEAD = 768 << 10, CH_STACK = (CH_REGION - CH_HEAD) / CH_MAX_THREADS;
static constexpr unsigned CH_WORDS = 4;  // a shuffled value has up to 4 x 8 bytes
typedef void (*ch_loop_fn)(void** args, unsigned first);
struct ch_fiber {
  void *pc, *sp, *bp;
  uint16_t x, y, z;  // threadIdx
};
struct ch_worker {
  unsigned current, mode, arrived, alive_count, threads, barrier_generation;
  uint32_t ready_warps;                                        // warps with a ready lane
  uint32_t ready[32], alive[32], waiting[32], generation[32];  // by warp: ready, not exited, in a warp operation
  int votes[2];                                                // of __syncthreads_count, double buffered
  uint3* thread_idx;                                           // this OS thread's threadIdx
  ch_loop_fn loop;
  const ch_launch* launch;
  uint64_t block, block_end, total;
  uint32_t wait_mask[CH_MAX_THREADS];
  uint8_t wait_kind[CH_MAX_THREADS], source[CH_MAX_THREADS];
  uint64_t value[32][2][32 * CH_WORDS];  // whole-warp shuffles, double buffered by generation
  uint64_t part_value[CH_MAX_THREADS], part_result[CH_MAX_THREADS];  // shuffles of part of a warp, votes
  ch_fiber main, dead, fiber[CH_MAX_THREADS];                        // fiber[t]: thread t
  __align__(128) unsigned char shared[CH_MAX_SHARED];                // dynamic shared memory
};
static_assert(sizeof(ch_worker) <= CH_HEAD);

static ch_worker* ch_guess[2];  // the first workers that ran in this library
static __forceinline__ ch_worker* ch_self() {
  uintptr_t sp;
  asm volatile("movq %%rsp,%0" : "=r"(sp));
  sp &= ~((uintptr_t)CH_REGION - 1);
  // The branch lets the CPU guess the worker, so the loads that follow need not wait for the stack pointer of a switch
  // just before; that halves the cost of a barrier. The empty asm hides the equality from the compiler.
  for (int i = 0; i < 2; i++) {
    uintptr_t candidate = (uintptr_t)ch_guess[i], difference = candidate ^ sp;
    asm volatile("" : "+r"(difference));
    if (difference == 0) return (ch_worker*)candidate;
  }
  return (ch_worker*)sp;
}

extern "C" {
static void ch_fiber_main() __attribute__((used, noreturn));
}
// Goes on with another fiber. Every register but rsp, rbp and rip is a clobber, so the compiler saves what is live.
static __forceinline__ void ch_switch(ch_fiber* from, ch_fiber* to) {
  asm volatile(
      "leaq 1f(%%rip),%%rax\n\tmovq %%rax,(%0)\n\tmovq %%rsp,8(%0)\n\tmovq %%rbp,16(%0)\n\t"
      "movq 8(%1),%%rsp\n\tmovq 16(%1),%%rbp\n\tjmpq *(%1)\n1:"
      : "+D"(from), "+S"(to)
      :
      : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc", "xmm0",
        "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
        "xmm14", "xmm15"
#ifdef __AVX512F__
        ,
        "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27",
        "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#endif
  );
}
// Makes fiber t start at ch_fiber_main on an empty stack.
static inline void ch_fresh(ch_worker* w, unsigned t) {
  char* top = (char*)w + CH_HEAD + (t + 1) * CH_STACK;
  top -= (uintptr_t)top & 63;
  top -= 64 - 8;  // rsp = 8 mod 16, as after a call
  *(void**)top = 0;
  w->fiber[t].pc = (void*)ch_fiber_main;
  w->fiber[t].sp = top;
  w->fiber[t].bp = 0;
}

// Gives up the launch: the error goes to the caller, who sees block and thread. Stacks of the block are left as they
// are.
static CH_COLD __attribute__((noreturn)) void ch_fail(const char* why) {
  ch_worker* w = ch_self();
  snprintf(w->launch->error, CH_ERROR, "%s: block (%u,%u,%u) thread (%u,%u,%u)", why, blockIdx.x, blockIdx.y,
           blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
  ch_switch(&w->dead, &w->main);
  __builtin_unreachable();
}

// ---- scheduler ----------------------------------------------------------------------------------------------------
static __forceinline__ void ch_set_thread(ch_worker* w, unsigned t) {
  ch_fiber* f = &w->fiber[t];
  *w->thread_idx = {f->x, f->y, f->z};
  if (__builtin_expect(w->threads == ~0u, 0)) threadIdx = {0, 0, 0};  // never: says that threadIdx changes here
}
static __forceinline__ void ch_take(ch_worker* w, unsigned t) {  // t runs, so it is no longer ready
  uint32_t left = w->ready[t >> 5] &= ~(1u << (t & 31));
  if (!left) w->ready_warps &= ~(1u << (t >> 5));
}
// The next ready thread after `current`: in the same warp first, cyclic.
static __noinline__ unsigned ch_pick_far(ch_worker* w, unsigned current) {
  unsigned q = current >> 5;
  uint32_t lanes = w->ready[q], from = (uint32_t)-2 << (current & 31);
  if (!lanes) {
    uint32_t warps = w->ready_warps, later = warps & ((uint32_t)-2 << q);
    if (__builtin_expect(!warps, 0)) ch_fail("deadlock: a barrier or warp operation that not all threads reach");
    q = __builtin_ctz(later ? later : warps);
    lanes = w->ready[q];
    from = ~0u;
  }
  uint32_t later = lanes & from;
  return q * 32 + __builtin_ctz(later ? later : lanes);
}
static __forceinline__ unsigned ch_pick(ch_worker* w, unsigned current) {
  unsigned t = current + 1;
  // Mostly the next lane: a guess that also lets the CPU run ahead.
  if (!__builtin_expect((t & 31) && (w->ready[current >> 5] >> (t & 31) & 1), 1)) t = ch_pick_far(w, current);
  ch_take(w, t);
  return w->current = t;
}
// The switch is inlined where the kernel waits: a fiber resumes by one indirect jump, which the CPU predicts; a return
// to another fiber's caller would mispredict (3 times slower layer norm).
static __forceinline__ void ch_yield(ch_worker* w, unsigned me) {
  unsigned t = ch_pick(w, me);
  ch_set_thread(w, t);
  ch_switch(&w->fiber[me], &w->fiber[t]);
}
// The first wait of a block, met in the plain loop on stack 0: the threads below this one are done.
static CH_COLD void ch_start_fibers(ch_worker* w) {
  unsigned me = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  unsigned n = blockDim.x * blockDim.y * blockDim.z;
  ch_mode = w->mode = 1;
  w->threads = n;
  w->alive_count = n - me;
  w->arrived = 0;
  w->ready_warps = 0;
  for (unsigned q = 0; q * 32 < n; q++) {
    uint32_t lanes = n - q * 32 >= 32 ? ~0u : (1u << (n - q * 32)) - 1;
    if (me >= q * 32 + 32)
      lanes = 0;
    else if (me > q * 32)
      lanes &= ~0u << (me - q * 32);
    w->alive[q] = w->ready[q] = lanes;
    w->waiting[q] = 0;
    w->ready_warps |= (uint32_t)(lanes != 0) << q;
  }
  unsigned x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
  for (unsigned t = me; t < n; t++) {
    w->fiber[t].x = x;
    w->fiber[t].y = y;
    w->fiber[t].z = z;
    if (t > me) ch_fresh(w, t);
    if (++x == blockDim.x) {
      x = 0;
      if (++y == blockDim.y) {
        y = 0;
        z++;
      }
    }
  }
  w->current = me;
  ch_take(w, me);
}
static __forceinline__ ch_worker* ch_enter() {
  ch_worker* w = ch_self();
  if (__builtin_expect(!w->mode, 0)) ch_start_fibers(w);
  return w;
}

// ---- waiting ------------------------------------------------------------------------------------------------------
static __noinline__ void ch_release_block(ch_worker* w) {
  unsigned warps = (w->threads + 31) >> 5;
  uint32_t ready = 0;
  w->arrived = 0;
  w->barrier_generation++;
  for (unsigned q = 0; q < warps; q++) {
    w->ready[q] = w->alive[q];
    ready |= (uint32_t)(w->alive[q] != 0) << q;
  }
  w->ready_warps = ready;
}
static __forceinline__ void ch_barrier() {
  ch_worker* w = ch_enter();
  unsigned me = w->current;
  if (++w->arrived == w->alive_count) {
    ch_release_block(w);
    ch_take(w, me);
  } else
    ch_yield(w, me);
}
enum { CH_WAIT, CH_GATHER, CH_VOTE };  // what the last lane to arrive does for all
static __noinline__ void ch_complete_warp(ch_worker* w, unsigned q, uint32_t mask, uint32_t need, int kind) {
  unsigned first = q * 32;
  if (kind == CH_GATHER) {
    for (uint32_t m = need; m; m &= m - 1) {
      unsigned t = first + __builtin_ctz(m);
      w->part_result[t] = w->part_value[first + w->source[t]];
    }
  } else if (kind == CH_VOTE) {
    uint32_t votes = 0;
    for (uint32_t m = need; m; m &= m - 1) {
      unsigned lane = __builtin_ctz(m);
      votes |= (uint32_t)(w->part_value[first + lane] != 0) << lane;
    }
    for (uint32_t m = need; m; m &= m - 1) w->part_result[first + __builtin_ctz(m)] = votes;
  }
  if (mask == ~0u) w->generation[q]++;
  w->waiting[q] &= ~need;
  w->ready[q] |= need;
  w->ready_warps |= 1u << q;
}
static __forceinline__ void ch_wait_warp(ch_worker* w, unsigned me, uint32_t mask, int kind) {
  unsigned q = me >> 5;
  uint32_t arrived = w->waiting[q] | 1u << (me & 31), need = mask & w->alive[q];
  w->wait_mask[me] = mask;
  w->wait_kind[me] = kind;
  w->waiting[q] = arrived;
  if ((arrived & need) == need) {
    ch_complete_warp(w, q, mask, need, kind);
    ch_take(w, me);
  } else
    ch_yield(w, me);
}
// A lane exited: warp operations that waited only for it are complete.
static CH_COLD void ch_exit_warp(ch_worker* w, unsigned q) {
  for (uint32_t m = w->waiting[q]; m;) {
    unsigned t = q * 32 + __builtin_ctz(m);
    uint32_t need = w->wait_mask[t] & w->alive[q];
    if ((w->waiting[q] & need) == need) ch_complete_warp(w, q, w->wait_mask[t], need, w->wait_kind[t]);
    m &= ~(need | (m & -m));
  }
}
