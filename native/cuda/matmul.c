#include "tables.h"

// The state of the handle and the arguments are those of PyTorch's gemm, bgemm and gemv: they decide about the kernel.

static int vector(sb_queue *q, const sb_matmul *p, unsigned trans, sb_error *e) {
  // cuBLAS wants the sizes of the matrix as it lies.
  int rows = p->transa ? p->k : p->m, columns = p->transa ? p->m : p->k;
  SB_TRY(q->d->l, SB_CUBLAS, cublasSetMathMode, (q->cublas, SB_MATH_DEFAULT), e);
  SB_TRY(q->d->l, SB_CUBLAS, cublasSgemv_v2,
         (q->cublas, trans, rows, columns, &p->alpha, (const float *)p->a, p->lda, (const float *)p->b, p->ldb,
          &p->beta, (float *)p->d, p->ldd),
         e);
  return 0;
}

static int single(sb_queue *q, const sb_matmul *p, unsigned transa, unsigned transb, sb_error *e) {
  const float *a = (const float *)p->a, *b = (const float *)p->b;
  float *d = (float *)p->d;
  SB_TRY(q->d->l, SB_CUBLAS, cublasSetMathMode, (q->cublas, p->tf32 ? SB_MATH_TF32 : SB_MATH_DEFAULT), e);
  if (p->count == 1) {
    SB_TRY(q->d->l, SB_CUBLAS, cublasSgemm_v2,
           (q->cublas, transa, transb, p->m, p->n, p->k, &p->alpha, a, p->lda, b, p->ldb, &p->beta, d, p->ldd), e);
  } else {
    SB_TRY(q->d->l, SB_CUBLAS, cublasSgemmStridedBatched,
           (q->cublas, transa, transb, p->m, p->n, p->k, &p->alpha, a, p->lda, p->step_a, b, p->ldb, p->step_b,
            &p->beta, d, p->ldd, p->step_d, p->count),
           e);
  }
  return 0;
}

// Sums are in float32; the default mode lets cuBLAS add parts of them in the type of the result, as PyTorch does unless
// it is told otherwise.
static int half(sb_queue *q, const sb_matmul *p, unsigned transa, unsigned transb, sb_error *e) {
  const void *a = (const void *)p->a, *b = (const void *)p->b;
  void *d = (void *)p->d;
  SB_TRY(q->d->l, SB_CUBLAS, cublasSetMathMode, (q->cublas, SB_MATH_DEFAULT), e);
  if (p->count == 1) {
    SB_TRY(q->d->l, SB_CUBLAS, cublasGemmEx,
           (q->cublas, transa, transb, p->m, p->n, p->k, &p->alpha, a, p->type, p->lda, b, p->type, p->ldb, &p->beta, d,
            p->type, p->ldd, SB_COMPUTE_32F, SB_GEMM_DEFAULT_TENSOR_OP),
           e);
  } else {
    SB_TRY(q->d->l, SB_CUBLAS, cublasGemmStridedBatchedEx,
           (q->cublas, transa, transb, p->m, p->n, p->k, &p->alpha, a, p->type, p->lda, p->step_a, b, p->type, p->ldb,
            p->step_b, &p->beta, d, p->type, p->ldd, p->step_d, p->count, SB_COMPUTE_32F, SB_GEMM_DEFAULT_TENSOR_OP),
           e);
  }
  return 0;
}

int sb_matmul_launch(sb_queue *q, const sb_matmul *p, sb_error *e) {
  unsigned transa = p->transa ? SB_OP_T : SB_OP_N, transb = p->transb ? SB_OP_T : SB_OP_N;
  // After the handle's stream, as PyTorch does for each call: setting that takes the workspace away.
  SB_TRY(q->d->l, SB_CUBLAS, cublasSetWorkspace_v2, (q->cublas, (void *)p->workspace, p->workspace_bytes), e);
  if (p->vector) return vector(q, p, transa, e);
  return p->type == SB_R_32F ? single(q, p, transa, transb, e) : half(q, p, transa, transb, e);
}

int sb_matmul_run(sb_queue *q, const sb_matmul *p, sb_error *e) {
  SB_ENTER(q->d, e);
  return sb_matmul_launch(q, p, e);
}
