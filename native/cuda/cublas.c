#include <stdio.h>
#include <string.h>

#include "tables.h"

// The attributes, their order and their values are those of PyTorch's gemm_and_bias. In particular the alignment of d
// is told as that of the bias, and the heuristic may use 1 MiB of workspace.

static struct cublasLtContext *light(sb_queue *q) { return (struct cublasLtContext *)q->cublas; }

static int describe_operation(sb_queue *q, sb_linear *p, sb_error *e) {
  sb_libraries *l = q->d->l;
  int32_t transa = p->transa ? SB_OP_T : SB_OP_N, transb = p->transb ? SB_OP_T : SB_OP_N;
  uint32_t epilogue = p->biased ? SB_EPILOGUE_BIAS : SB_EPILOGUE_DEFAULT;
  unsigned compute = p->tf32 ? SB_COMPUTE_32F_FAST_TF32 : SB_COMPUTE_32F;
  SB_TRY(l, SB_CUBLASLT, cublasLtMatmulDescCreate, (&p->operation, compute, SB_R_32F), e);
  SB_TRY(l, SB_CUBLASLT, cublasLtMatmulDescSetAttribute, (p->operation, SB_MATMUL_DESC_TRANSA, &transa, sizeof transa),
         e);
  SB_TRY(l, SB_CUBLASLT, cublasLtMatmulDescSetAttribute, (p->operation, SB_MATMUL_DESC_TRANSB, &transb, sizeof transb),
         e);
  SB_TRY(l, SB_CUBLASLT, cublasLtMatmulDescSetAttribute,
         (p->operation, SB_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue), e);
  if (p->biased)
    SB_TRY(l, SB_CUBLASLT, cublasLtMatmulDescSetAttribute,
           (p->operation, SB_MATMUL_DESC_BIAS_POINTER, &p->bias, sizeof p->bias), e);
  return 0;
}

static int describe_matrices(sb_queue *q, sb_linear *p, sb_error *e) {
  sb_libraries *l = q->d->l;
  uint64_t m = (uint64_t)p->m, n = (uint64_t)p->n, k = (uint64_t)p->k;
  SB_TRY(l, SB_CUBLASLT, cublasLtMatrixLayoutCreate,
         (&p->layout_a, p->type, p->transa ? k : m, p->transa ? m : k, p->lda), e);
  SB_TRY(l, SB_CUBLASLT, cublasLtMatrixLayoutCreate,
         (&p->layout_b, p->type, p->transb ? n : k, p->transb ? k : n, p->ldb), e);
  SB_TRY(l, SB_CUBLASLT, cublasLtMatrixLayoutCreate, (&p->layout_d, p->type, m, n, p->ldd), e);
  return 0;
}

static int prefer(sb_queue *q, const sb_linear *p, sb_matmul_preference preference, sb_error *e) {
  sb_libraries *l = q->d->l;
  uint64_t workspace = p->workspace_bytes;
  const struct {
    unsigned name;
    const uint32_t *value;
  } alignments[] = {{SB_PREF_MIN_ALIGNMENT_A_BYTES, &p->align_a},
                    {SB_PREF_MIN_ALIGNMENT_B_BYTES, &p->align_b},
                    {SB_PREF_MIN_ALIGNMENT_C_BYTES, &p->align_d},
                    {SB_PREF_MIN_ALIGNMENT_D_BYTES, &p->align_bias}};
  SB_TRY(l, SB_CUBLASLT, cublasLtMatmulPreferenceSetAttribute,
         (preference, SB_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace), e);
  for (int i = 0; i < 4; i++)
    SB_TRY(l, SB_CUBLASLT, cublasLtMatmulPreferenceSetAttribute,
           (preference, alignments[i].name, alignments[i].value, sizeof(uint32_t)), e);
  return 0;
}

static int choose(sb_queue *q, sb_linear *p, sb_matmul_preference preference, sb_error *e) {
  sb_matmul_result answer;
  int count = 0;
  memset(&answer, 0, sizeof answer);
  if (prefer(q, p, preference, e) != 0) return -1;
  SB_TRY(q->d->l, SB_CUBLASLT, cublasLtMatmulAlgoGetHeuristic,
         (light(q), p->operation, p->layout_a, p->layout_b, p->layout_d, p->layout_d, preference, 1, &answer, &count),
         e);
  if (count < 1) {
    sb_fail(q->d->l, SB_CUBLASLT, 15, "cublasLtMatmulAlgoGetHeuristic", e);  // CUBLAS_STATUS_NOT_SUPPORTED
    return -1;
  }
  p->algo = answer.algo;
  return 0;
}

static void describe_algo(sb_queue *q, const sb_linear *p, char tag[SB_TAG]) {
  const struct {
    unsigned name;
    const char *label;
  } fields[] = {{SB_ALGO_ID, "algo"},
                {SB_ALGO_TILE_ID, "tile"},
                {SB_ALGO_STAGES_ID, "stages"},
                {SB_ALGO_SPLITK_NUM, "splitk"},
                {SB_ALGO_REDUCTION_SCHEME, "reduction"},
                {SB_ALGO_CUSTOM_OPTION, "custom"}};
  int used = snprintf(tag, SB_TAG, "cublasLt %s%s", p->transa ? "T" : "N", p->transb ? "T" : "N");
  for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
    uint32_t value = 0;
    size_t written = 0;
    if (q->d->l->cublasLtMatmulAlgoConfigGetAttribute(&p->algo, fields[i].name, &value, sizeof value, &written) == 0)
      used += snprintf(tag + used, (size_t)(SB_TAG - used), " %s=%u", fields[i].label, value);
  }
}

int sb_linear_open(sb_queue *q, sb_linear *p, const sb_linear *like, char tag[SB_TAG], sb_error *e) {
  sb_libraries *l = q->d->l;
  int result = 0;
  sb_matmul_preference preference = NULL;
  SB_ENTER(q->d, e);
  SB_GO(l, SB_CUBLASLT, cublasLtMatmulPreferenceCreate, (&preference), e);
  if (describe_operation(q, p, e) || describe_matrices(q, p, e)) result = -1;
  if (result == 0 && like != NULL) p->algo = like->algo;
  if (result == 0 && like == NULL) result = choose(q, p, preference, e);
  if (result == 0) describe_algo(q, p, tag);
done:
  if (preference != NULL) l->cublasLtMatmulPreferenceDestroy(preference);
  if (result != 0) sb_linear_close(q, p);
  return result;
}

int sb_linear_launch(sb_queue *q, const sb_linear *p, sb_error *e) {
  float beta = p->biased ? 0 : 1;
  SB_TRY(q->d->l, SB_CUBLASLT, cublasLtMatmul,
         (light(q), p->operation, &p->alpha, (const void *)p->a, p->layout_a, (const void *)p->b, p->layout_b, &beta,
          (const void *)p->d, p->layout_d, (void *)p->d, p->layout_d, &p->algo, (void *)p->workspace,
          p->workspace_bytes, q->stream),
         e);
  return 0;
}

int sb_linear_run(sb_queue *q, const sb_linear *p, sb_error *e) {
  SB_ENTER(q->d, e);
  return sb_linear_launch(q, p, e);
}

void sb_linear_close(sb_queue *q, sb_linear *p) {
  sb_libraries *l = q->d->l;
  if (p->operation != NULL) l->cublasLtMatmulDescDestroy(p->operation);
  if (p->layout_a != NULL) l->cublasLtMatrixLayoutDestroy(p->layout_a);
  if (p->layout_b != NULL) l->cublasLtMatrixLayoutDestroy(p->layout_b);
  if (p->layout_d != NULL) l->cublasLtMatrixLayoutDestroy(p->layout_d);
  p->operation = NULL;
  p->layout_a = p->layout_b = p->layout_d = NULL;
}
