// cpu.c: what this CPU can do. By hand: __builtin_cpu_supports depends on which compiler's runtime library is linked.
#include <cpuid.h>
#include "host.h"

static uint32_t saved_registers(void) {  // by the operating system: XCR0
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

int sb_cpu_vector(void) {
  enum { YMM = 6, ZMM = 0xe6 };
  const uint32_t basic = bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C | bit_MOVBE;
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & basic) != basic || (saved_registers() & YMM) != YMM) return 0;
  if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !(c & bit_LZCNT)) return 0;
  const uint32_t more = bit_AVX2 | bit_BMI | bit_BMI2;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & more) != more) return 0;
  return b & bit_AVX512F && (saved_registers() & ZMM) == ZMM ? 512 : 256;
}
