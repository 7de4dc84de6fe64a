#include "tables.h"

// The state of the handle and the arguments are those of PyTorch's gemm: they decide about the kernel.

static int single(sb_queue *q, const sb_matmul *p, unsigned transa, unsigned transb, sb_error *e) {
  float alpha = 1, beta = 0;
  SB_TRY(q->d->l, SB_CUBLAS, cublasSetMathMode, (q->cublas, p->tf32 ? SB_MATH_TF32 : SB_MATH_DEFAULT), e);
  SB_TRY(q->d->l, SB_CUBLAS, cublasSgemm_v2,
         (q->cublas, transa, transb, p->m, p->n, p->k, &alpha, (const float *)p->a, p->lda, (const float *)p->b, p->ldb,
          &beta, (float *)p->d, p->ldd),
         e);
  return 0;
}

// Sums are in float32; the default mode lets cuBLAS add parts of them in the type of the result, as PyTorch does unless
// it is told otherwise.
static int half(sb_queue *q, const sb_matmul *p, unsigned transa, unsigned transb, sb_error *e) {
  float alpha = 1, beta = 0;
  SB_TRY(q->d->l, SB_CUBLAS, cublasSetMathMode, (q->cublas, SB_MATH_DEFAULT), e);
  SB_TRY(q->d->l, SB_CUBLAS, cublasGemmEx,
         (q->cublas, transa, transb, p->m, p->n, p->k, &alpha, (const void *)p->a, p->type, p->lda, (const void *)p->b,
          p->type, p->ldb, &beta, (void *)p->d, p->type, p->ldd, SB_COMPUTE_32F, SB_GEMM_DEFAULT_TENSOR_OP),
         e);
  SB_TRY(q->d->l, SB_CUBLAS, cublasSetMathMode, (q->cublas, SB_MATH_DEFAULT), e);
  return 0;
}

int sb_matmul_launch(sb_queue *q, const sb_matmul *p, sb_error *e) {
  unsigned transa = p->transa ? SB_OP_T : SB_OP_N, transb = p->transb ? SB_OP_T : SB_OP_N;
  return p->type == SB_R_32F ? single(q, p, transa, transb, e) : half(q, p, transa, transb, e);
}

int sb_matmul_run(sb_queue *q, const sb_matmul *p, sb_error *e) {
  SB_ENTER(q->d, e);
  return sb_matmul_launch(q, p, e);
}
