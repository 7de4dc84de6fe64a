// numbers.cu: atomics, conversions and arithmetic.
#include "prelude.cuh"

KERNEL(atomics, int* i, unsigned* u, unsigned long long* l, float* f, double* d) {
  int t = (int)threadIdx.x;
  atomicAdd(i + 0, t);
  atomicSub(i + 1, t);
  atomicMax(i + 2, t);
  atomicMin(i + 3, -t);
  atomicOr(i + 4, 1 << (t % 31));
  atomicAnd(i + 5, ~(1 << (t % 31)));
  atomicXor(i + 6, t);
  if (atomicCAS(i + 7, 0, t + 1) == 0) atomicExch(i + 8, t + 1);
  atomicInc(u + 0, 9);
  atomicDec(u + 1, 9);
  atomicMax(u + 2, 0xfffffff0u + (unsigned)t % 8);
  atomicAdd(l, 1ull << 33);
  atomicAdd((uint64_t*)l + 1, (uint64_t)t);
  atomicAdd(f, (float)t);
  atomicAdd(d, (double)t * 0.5);
}

KERNEL(widen, float* from_bf16, float* from_f16, const uint16_t* x, int64_t n) {
  GRID_STRIDE(i, n) {
    from_bf16[i] = ld((const bf16*)x + i);
    from_f16[i] = ld((const f16*)x + i);
  }
}

KERNEL(narrow, uint16_t* to_bf16, uint16_t* to_f16, const float* x, int64_t n) {
  GRID_STRIDE(i, n) {
    st((bf16*)to_bf16 + i, x[i]);
    st((f16*)to_f16 + i, x[i]);
  }
}

// Results of one function a row.
KERNEL(pairs, float* y, const float* a, const float* b, int64_t n) {
  GRID_STRIDE(i, n) {
    y[0 * n + i] = fminf(a[i], b[i]);
    y[1 * n + i] = fmaxf(a[i], b[i]);
    y[2 * n + i] = min(a[i], b[i]);
    y[3 * n + i] = max(a[i], b[i]);
    y[4 * n + i] = (float)fmin((double)a[i], (double)b[i]);
    y[5 * n + i] = (float)fmax((double)a[i], (double)b[i]);
    y[6 * n + i] = __fdiv_rn(a[i], b[i]);
    y[7 * n + i] = a[i] * b[i] + a[i];
    y[8 * n + i] = fmaf(a[i], b[i], a[i]);
    y[9 * n + i] = __fmaf_rn(a[i], b[i], -b[i]);
    y[10 * n + i] = __fsqrt_rn(a[i]);
    y[11 * n + i] = __frcp_rn(a[i]);
    y[12 * n + i] = round_to<bf16>(a[i]);
    y[13 * n + i] = round_to<f16>(a[i]);
  }
}

KERNEL(integers, int64_t* y, const float* x, int64_t n) {
  GRID_STRIDE(i, n) {
    y[0 * n + i] = __float2int_rn(x[i]);
    y[1 * n + i] = __float2int_rz(x[i]);
    y[2 * n + i] = __float2int_rd(x[i]);
    y[3 * n + i] = __float2int_ru(x[i]);
    y[4 * n + i] = __float2uint_rn(x[i]);
    y[5 * n + i] = __float2ll_rn(x[i]);
    y[6 * n + i] = __double2int_rn((double)x[i]);
    y[7 * n + i] = (int64_t)__float2ull_rz(x[i]);
  }
}

KERNEL(bits, unsigned* y, unsigned a, unsigned b) {
  y[0] = __popc(a);
  y[1] = __clz((int)a);
  y[2] = __ffs((int)a);
  y[3] = __brev(a);
  y[4] = __umulhi(a, b);
  y[5] = __funnelshift_l(a, b, 8);
  y[6] = __funnelshift_r(a, b, 8);
  y[7] = (unsigned)__popcll((unsigned long long)a << 32 | b);
  y[8] = (unsigned)__clzll(1);
  y[9] = (unsigned)max(-1, 2);
  y[10] = max(-1, 2u);
  y[11] = (unsigned)min((long long)a, 7ll);
  y[12] = (unsigned)__clz(0);
  y[13] = __float_as_uint(__uint_as_float(a)) == a;
  y[14] = (unsigned)(__umul64hi(~0ull, ~0ull) >> 32);
  y[15] = (unsigned)__mulhi((int)a, -2);
}

// Functions whose bits no standard fixes.
KERNEL(functions, float* y, const float* x, int64_t n) {
  GRID_STRIDE(i, n) {
    y[0 * n + i] = expf(x[i]);
    y[1 * n + i] = tanhf(x[i]);
    y[2 * n + i] = erff(x[i]);
    y[3 * n + i] = logf(fabsf(x[i]));
    y[4 * n + i] = rsqrtf(fabsf(x[i]));
    y[5 * n + i] = log1pf(fabsf(x[i]));
    y[6 * n + i] = powf(fabsf(x[i]), 0.3f);
    y[7 * n + i] = sinf(x[i]);
  }
}

KERNEL(doubles, double* y, const double* x, int64_t n) {
  GRID_STRIDE(i, n) {
    y[i] = fma(ld(x + i), 3.0, exp(x[i])) + rsqrt(fabs(x[i]) + 1.0);
    st(y + n + i, __longlong_as_double(__double_as_longlong(x[i])));
  }
}

KERNEL(vectors, float4* y, const float4* x, int n) {
  int i = (int)threadIdx.x;
  if (i < n) {
    float4 v = __ldg(x + i);
    y[i] = make_float4(v.w, v.z, v.y, v.x);
  }
}
