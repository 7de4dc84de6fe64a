// warp.h: barriers, shuffles and votes.
#pragma once
static __forceinline__ void __syncthreads() { ch_barrier(); }
static __noinline__ int ch_count_votes(int predicate) {
  ch_worker* w = ch_enter();
  unsigned g = w->barrier_generation & 1;
  if (!w->arrived) w->votes[g] = 0;
  w->votes[g] += predicate != 0;
  ch_barrier();
  return w->votes[g];
}
static __forceinline__ int __syncthreads_count(int predicate) { return ch_count_votes(predicate); }
static __forceinline__ int __syncthreads_or(int predicate) { return ch_count_votes(predicate) != 0; }
static __forceinline__ int __syncthreads_and(int predicate) { return ch_count_votes(!predicate) == 0; }
static __forceinline__ void __syncwarp(unsigned mask = ~0u) {
  ch_worker* w = ch_enter();
  ch_wait_warp(w, w->current, mask, CH_WAIT);
}
static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_block() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
static inline unsigned __activemask() { return ~0u; }

// A shuffle by part of a warp: the last lane to arrive gathers for all.
static __noinline__ uint64_t ch_shuffle_part(ch_worker* w, unsigned me, unsigned mask, uint64_t v, unsigned source) {
  w->part_value[me] = v;
  w->source[me] = source;
  ch_wait_warp(w, me, mask, CH_GATHER);
  return w->part_result[me];
}
enum { CH_LANE, CH_UP, CH_DOWN, CH_XOR };
template <int OP, class T> static __forceinline__ T ch_shuffle(unsigned mask, T v, unsigned x, unsigned width) {
  static_assert(sizeof(T) <= 8 * CH_WORDS && std::is_trivially_copyable_v<T>, "shuffled value too large");
  ch_worker* w = ch_enter();
  unsigned me = w->current, l = me & 31, q = me >> 5, source;
  if constexpr (OP == CH_LANE) source = (l & ~(width - 1)) | (x & (width - 1));
  if constexpr (OP == CH_UP) source = (l & (width - 1)) < x ? l : l - x;
  if constexpr (OP == CH_DOWN) source = (l & (width - 1)) + x >= width ? l : l + x;
  if constexpr (OP == CH_XOR) source = (l ^ x) > (l | (width - 1)) ? l : l ^ x;
  if (__builtin_expect(mask != ~0u, 0)) {
    if constexpr (sizeof(T) <= 8) {
      uint64_t u = 0;
      memcpy(&u, &v, sizeof v);
      u = ch_shuffle_part(w, me, mask, u, source);
      memcpy(&v, &u, sizeof v);
      return v;
    } else
      ch_fail("shuffle of a wide value by part of a warp");
  }
  char* slot = (char*)w->value[q][w->generation[q] & 1];
  memcpy(slot + l * sizeof v, &v, sizeof v);
  ch_wait_warp(w, me, ~0u, CH_WAIT);
  memcpy(&v, slot + source * sizeof v, sizeof v);
  return v;
}
// ch_warp_all applies f to the 32 values of a whole warp, in place; the last lane to arrive does it for all.
template <class T, class F> static __forceinline__ T ch_warp_all(T v, F f) {
  static_assert(sizeof(T) <= 8 * CH_WORDS && std::is_trivially_copyable_v<T>, "reduced value too large");
  ch_worker* w = ch_enter();
  unsigned me = w->current, l = me & 31, q = me >> 5;
  if (__builtin_expect(w->alive[q] != ~0u, 0)) ch_fail("warp reduction by less than a whole warp");
  char* slot = (char*)w->value[q][w->generation[q] & 1];
  memcpy(slot + l * sizeof v, &v, sizeof v);
  if ((w->waiting[q] | 1u << l) == ~0u) {
    T lanes[32];
    memcpy(lanes, slot, sizeof lanes);
    f(lanes);
    memcpy(slot, lanes, sizeof lanes);
  }
  ch_wait_warp(w, me, ~0u, CH_WAIT);
  memcpy(&v, slot + l * sizeof v, sizeof v);
  return v;
}
template <class T> static __forceinline__ T __shfl_sync(unsigned mask, T v, int lane, int width = 32) {
  return ch_shuffle<CH_LANE>(mask, v, lane, width);
}
template <class T> static __forceinline__ T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32) {
  return ch_shuffle<CH_UP>(mask, v, delta, width);
}
template <class T> static __forceinline__ T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32) {
  return ch_shuffle<CH_DOWN>(mask, v, delta, width);
}
template <class T> static __forceinline__ T __shfl_xor_sync(unsigned mask, T v, int lanes, int width = 32) {
  return ch_shuffle<CH_XOR>(mask, v, lanes, width);
}

static __forceinline__ unsigned __ballot_sync(unsigned mask, int predicate) {
  ch_worker* w = ch_enter();
  unsigned me = w->current;
  w->part_value[me] = predicate != 0;
  ch_wait_warp(w, me, mask, CH_VOTE);
  return (unsigned)w->part_result[me];
}
static __forceinline__ int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
static __forceinline__ int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }
