// atomics.h: atomic operations. All of them are sequentially consistent, which is more than CUDA promises.
#pragma once
#define CH_ATOMIC_INTEGER(T)                                                                    \
  static inline T atomicAdd(T* p, T v) { return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST); }   \
  static inline T atomicSub(T* p, T v) { return __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST); }   \
  static inline T atomicOr(T* p, T v) { return __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST); }     \
  static inline T atomicAnd(T* p, T v) { return __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST); }   \
  static inline T atomicXor(T* p, T v) { return __atomic_fetch_xor(p, v, __ATOMIC_SEQ_CST); }   \
  static inline T atomicExch(T* p, T v) { return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST); } \
  static inline T atomicCAS(T* p, T compare, T v) {                                             \
    __atomic_compare_exchange_n(p, &compare, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);         \
    return compare;                                                                             \
  }                                                                                             \
  static inline T atomicMax(T* p, T v) {                                                        \
    return ch_atomic_update(p, [v](T old) { return old < v ? v : old; });                       \
  }                                                                                             \
  static inline T atomicMin(T* p, T v) {                                                        \
    return ch_atomic_update(p, [v](T old) { return v < old ? v : old; });                       \
  }
// ch_atomic_update replaces *p by f(*p) and gives the old value.
template <class T, class F> static inline T ch_atomic_update(T* p, F f) {
  typedef std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t> __attribute__((may_alias)) bits;
  static_assert(sizeof(T) == sizeof(bits), "atomics are of 4 or 8 bytes");
  bits seen = __atomic_load_n((bits*)p, __ATOMIC_RELAXED), next;
  T old, value;
  do {
    memcpy(&old, &seen, sizeof old);
    value = f(old);
    memcpy(&next, &value, sizeof next);
  } while (!__atomic_compare_exchange_n((bits*)p, &seen, next, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
  return old;
}
CH_ATOMIC_INTEGER(int)
CH_ATOMIC_INTEGER(unsigned)
CH_ATOMIC_INTEGER(long long)
CH_ATOMIC_INTEGER(unsigned long long)
CH_ATOMIC_INTEGER(long)  // int64_t and uint64_t here; on the GPU they are long long
CH_ATOMIC_INTEGER(unsigned long)
#undef CH_ATOMIC_INTEGER
static inline unsigned atomicInc(unsigned* p, unsigned limit) {
  return ch_atomic_update(p, [limit](unsigned old) { return old >= limit ? 0u : old + 1; });
}
static inline unsigned atomicDec(unsigned* p, unsigned limit) {
  return ch_atomic_update(p, [limit](unsigned old) { return old == 0 || old > limit ? limit : old - 1; });
}
static inline float atomicAdd(float* p, float v) {
  return ch_atomic_update(p, [v](float old) { return old + v; });
}
static inline double atomicAdd(double* p, double v) {
  return ch_atomic_update(p, [v](double old) { return old + v; });
}
static inline float atomicExch(float* p, float v) {
  return ch_atomic_update(p, [v](float) { return v; });
}
