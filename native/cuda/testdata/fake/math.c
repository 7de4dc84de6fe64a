#include "fake.h"

// cuDNN. Descriptors are numbers with a type; configurations and what is made of them carry their engine and its knobs.
typedef struct descriptor {
  unsigned type;
  unsigned mode;
  int engine, has_graph;
  char notes[64];
  int knobs;
  unsigned knob[8];
  int64_t value[8];
} descriptor;

// faulty tells whether FAKE_FAULT says this of an engine.
static int faulty(const char *what, int engine) {
  char fault[64];
  int of = 0;
  return sscanf(setting("FAKE_FAULT", ""), "%63s %d", fault, &of) == 2 && of == engine && strcmp(fault, what) == 0;
}

struct cudnnContext {
  struct CUstream_st *stream;
};

size_t cudnnGetVersion(void) { return strtoull(setting("FAKE_CUDNN", "91900"), NULL, 10); }
const char *cudnnGetErrorString(unsigned code) {
  return code == 3000 ? "CUDNN_STATUS_NOT_SUPPORTED" : code == 5000 ? "CUDNN_STATUS_EXECUTION_FAILED" : "CUDNN_STATUS";
}
void cudnnGetLastErrorString(char *text, size_t n) { snprintf(text, n, "the fake refuses"); }
unsigned cudnnCreate(struct cudnnContext **h) { return *h = calloc(1, sizeof **h), 0; }
unsigned cudnnDestroy(struct cudnnContext *h) { return free(h), 0; }
unsigned cudnnSetStream(struct cudnnContext *h, struct CUstream_st *s) { return h->stream = s, 0; }

unsigned cudnnBackendCreateDescriptor(unsigned type, void **d) {
  descriptor *made = calloc(1, sizeof *made);
  made->type = type;
  *d = made;
  return 0;
}
unsigned cudnnBackendDestroyDescriptor(void *d) { return free(d), 0; }

// known finds an engine among all that FAKE_ENGINES has, and its notes.
static int known(descriptor *engine) {
  char list[1024], *rest = list, *item;
  snprintf(list, sizeof list, "%s", setting("FAKE_ENGINES", "1:"));
  while ((item = strsep(&rest, ";|")) != NULL) {
    int id = 0;
    engine->notes[0] = 0;
    if (sscanf(item, "%d:%63s", &id, engine->notes) >= 1 && id == engine->engine) return 1;
  }
  return 0;
}

unsigned cudnnBackendFinalize(void *d) {
  descriptor *self = d;
  if (self->type == SB_DESC_ENGINE && !(self->has_graph && known(self))) return 3000;
  return self->type == SB_DESC_PLAN && (self->engine < 0 || faulty("build", self->engine)) ? 3000 : 0;
}

static void record_set(const descriptor *d, unsigned name, unsigned type, int64_t count, const void *values) {
  FILE *f = record();
  if (f == NULL) return;
  fprintf(f, "%u.%u %u:", d->type, name, type);
  for (int64_t i = 0; i < count; i++) {
    if (type == SB_TYPE_INT64)
      fprintf(f, " %lld", (long long)((const int64_t *)values)[i]);
    else if (type == SB_TYPE_FLOAT)
      fprintf(f, " %g", ((const float *)values)[i]);
    else if (type == SB_TYPE_HANDLE || type == SB_TYPE_VOID_PTR)
      fprintf(f, " *");
    else if (type == SB_TYPE_DESCRIPTOR)
      fprintf(f, " %u", (*(descriptor *const *)values)->type);
    else
      fprintf(f, " %u", ((const unsigned *)values)[i]);
  }
  fprintf(f, "\n");
  fclose(f);
}

unsigned cudnnBackendSetAttribute(void *d, unsigned name, unsigned type, int64_t count, const void *values) {
  descriptor *self = d;
  record_set(self, name, type, count, values);
  if (name == SB_ENGINEHEUR_MODE) self->mode = *(const unsigned *)values;
  if (name == SB_PLAN_ENGINE_CONFIG) self->engine = (*(descriptor *const *)values)->engine;
  if (name == SB_ENGINE_OPERATION_GRAPH) self->has_graph = 1;
  if (name == SB_ENGINE_GLOBAL_INDEX) self->engine = (int)*(const int64_t *)values;
  if (name == SB_KNOB_CHOICE_TYPE) self->knob[0] = *(const unsigned *)values;
  if (name == SB_KNOB_CHOICE_VALUE) self->value[0] = *(const int64_t *)values;
  if (name == SB_ENGINECFG_ENGINE) {
    const descriptor *engine = *(descriptor *const *)values;
    self->engine = engine->engine;
    memcpy(self->notes, engine->notes, sizeof self->notes);
  }
  if (name == SB_ENGINECFG_KNOB_CHOICES) {
    self->knobs = (int)count;
    for (int i = 0; i < self->knobs; i++) {
      self->knob[i] = ((descriptor *const *)values)[i]->knob[0];
      self->value[i] = ((descriptor *const *)values)[i]->value[0];
    }
  }
  return 0;
}

// proposals reads FAKE_ENGINES for a heuristic's mode.
static int64_t proposals(unsigned mode, int64_t room, descriptor **out) {
  char list[1024], *rest = list, *item;
  snprintf(list, sizeof list, "%s", setting("FAKE_ENGINES", "1:"));
  char *fallback = strchr(list, '|');
  if (fallback != NULL) *fallback++ = 0;
  if (mode == SB_HEUR_FALLBACK) rest = fallback;
  int64_t n = 0;
  while (rest != NULL && (item = strsep(&rest, ";")) != NULL && *item) {
    if (n < room) {
      sscanf(item, "%d:%63s", &out[n]->engine, out[n]->notes);
      out[n]->knobs = 2;
      memcpy(out[n]->knob, (unsigned[]){2, 18}, 2 * sizeof(unsigned));
      memcpy(out[n]->value, (int64_t[]){12, -1}, 2 * sizeof(int64_t));
    }
    n++;
  }
  return n;
}

unsigned cudnnBackendGetAttribute(void *const d, unsigned name, unsigned type, int64_t room, int64_t *count,
                                  void *out) {
  descriptor *self = d;
  (void)type;
  *count = 1;
  if (name == SB_ENGINEHEUR_RESULTS) {
    *count = proposals(self->mode, room, out);
  } else if (name == SB_ENGINECFG_ENGINE) {
    descriptor *engine = *(descriptor **)out;
    engine->engine = self->engine;
    memcpy(engine->notes, self->notes, sizeof engine->notes);
  } else if (name == SB_ENGINE_NUMERICAL_NOTE) {
    *count = 0;
    for (char *note = self->notes; *note; note += strcspn(note, ",") + (note[strcspn(note, ",")] == ','))
      ((unsigned *)out)[(*count)++] = (unsigned)atoi(note);
  } else if (name == SB_ENGINE_GLOBAL_INDEX) {
    *(int64_t *)out = self->engine;
  } else if (name == SB_ENGINECFG_KNOB_CHOICES) {
    *count = self->knobs;
    for (int i = 0; i < self->knobs; i++) {
      ((descriptor **)out)[i]->knob[0] = self->knob[i];
      ((descriptor **)out)[i]->value[0] = self->value[i] + faulty("knobs", self->engine);
    }
  } else if (name == SB_KNOB_CHOICE_TYPE) {
    *(unsigned *)out = self->knob[0];
  } else if (name == SB_KNOB_CHOICE_VALUE) {
    *(int64_t *)out = self->value[0];
  } else if (name == SB_PLAN_WORKSPACE_SIZE) {
    *(int64_t *)out = 64 * (self->engine + faulty("workspace", self->engine));
  }
  return 0;
}

static void run_nothing(const op *o) { (void)o; }

unsigned cudnnBackendExecute(struct cudnnContext *h, void *plan, void *pack) {
  (void)pack;
  int engine = ((descriptor *)plan)->engine;
  if (engine > 999 || faulty("run", engine)) return 5000;
  return enqueue(h->stream, (op){run_nothing, {0}}) ? 5000 : 0;
}

struct cudnnTensorStruct {
  int unused;
};
unsigned cudnnCreateTensorDescriptor(struct cudnnTensorStruct **t) { return *t = calloc(1, sizeof **t), 0; }
unsigned cudnnDestroyTensorDescriptor(struct cudnnTensorStruct *t) { return free(t), 0; }
unsigned cudnnSetTensorNdDescriptor(struct cudnnTensorStruct *t, unsigned type, int dims, const int *sizes,
                                    const int *strides) {
  FILE *f = record();
  (void)t;
  if (f == NULL) return 0;
  fprintf(f, "tensor %u:", type);
  for (int i = 0; i < dims; i++) fprintf(f, " %d", sizes[i]);
  fprintf(f, " /");
  for (int i = 0; i < dims; i++) fprintf(f, " %d", strides[i]);
  fprintf(f, "\n");
  fclose(f);
  return 0;
}
unsigned cudnnBatchNormalizationForwardInference(struct cudnnContext *h, unsigned mode, const void *alpha,
                                                 const void *beta, struct cudnnTensorStruct *const xt, const void *x,
                                                 struct cudnnTensorStruct *const yt, void *y,
                                                 struct cudnnTensorStruct *const ct, const void *scale,
                                                 const void *bias, const void *mean, const void *variance,
                                                 double epsilon) {
  FILE *f = record();
  (void)x, (void)y, (void)ct, (void)scale, (void)bias, (void)mean, (void)variance;
  if (f != NULL) {
    fprintf(f, "batchnorm mode %u alpha %g beta %g one descriptor %d epsilon %g\n", mode, *(const float *)alpha,
            *(const float *)beta, xt == yt, epsilon);
    fclose(f);
  }
  return enqueue(h->stream, (op){run_nothing, {0}}) ? 5000 : 0;
}

// Batch norms in training want a reserve of 64 bytes in persistent mode and of 16 otherwise.
unsigned cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    struct cudnnContext *h, unsigned mode, unsigned ops, struct cudnnTensorStruct *x, struct cudnnTensorStruct *z,
    struct cudnnTensorStruct *y, struct cudnnTensorStruct *c, struct cudnnActivationStruct *a, size_t *n) {
  return (void)h, (void)mode, (void)ops, (void)x, (void)z, (void)y, (void)c, (void)a, *n = 1000, 0;
}
unsigned cudnnGetBatchNormalizationBackwardExWorkspaceSize(struct cudnnContext *h, unsigned mode, unsigned ops,
                                                           struct cudnnTensorStruct *x, struct cudnnTensorStruct *y,
                                                           struct cudnnTensorStruct *dy, struct cudnnTensorStruct *dz,
                                                           struct cudnnTensorStruct *dx, struct cudnnTensorStruct *c,
                                                           struct cudnnActivationStruct *a, size_t *n) {
  (void)h, (void)mode, (void)ops, (void)x, (void)y, (void)dy, (void)dz, (void)dx, (void)c, (void)a;
  return *n = 2000, 0;
}
unsigned cudnnGetBatchNormalizationTrainingExReserveSpaceSize(struct cudnnContext *h, unsigned mode, unsigned ops,
                                                              struct cudnnActivationStruct *a,
                                                              struct cudnnTensorStruct *x, size_t *n) {
  (void)h, (void)ops, (void)a, (void)x;
  return *n = mode == SB_BATCHNORM_SPATIAL_PERSISTENT ? 64 : 16, 0;
}
unsigned cudnnBatchNormalizationForwardTrainingEx(struct cudnnContext *h, unsigned mode, unsigned ops,
                                                  const void *alpha, const void *beta, struct cudnnTensorStruct *xt,
                                                  const void *x, struct cudnnTensorStruct *zt, const void *z,
                                                  struct cudnnTensorStruct *yt, void *y, struct cudnnTensorStruct *ct,
                                                  const void *scale, const void *bias, double momentum, void *mean,
                                                  void *variance, double epsilon, void *save_mean, void *save_invstd,
                                                  struct cudnnActivationStruct *a, void *workspace,
                                                  size_t workspace_bytes, void *reserve, size_t reserve_bytes) {
  FILE *f = record();
  int given = x && y && ct && scale && bias && mean && variance && save_mean && save_invstd && !z && !zt && !a;
  if (f != NULL) {
    fprintf(f, "norm forward mode %u ops %u alpha %g beta %g one descriptor %d all given %d", mode, ops,
            *(const float *)alpha, *(const float *)beta, xt == yt, given);
    fprintf(f, " momentum %g epsilon %g workspace %d of %zu reserve %d of %zu\n", momentum, epsilon, workspace != NULL,
            workspace_bytes, reserve != NULL, reserve_bytes);
    fclose(f);
  }
  return enqueue(h->stream, (op){run_nothing, {0}}) ? 5000 : 0;
}
unsigned cudnnBatchNormalizationBackwardEx(struct cudnnContext *h, unsigned mode, unsigned ops, const void *alpha,
                                           const void *beta, const void *alpha_param, const void *beta_param,
                                           struct cudnnTensorStruct *xt, const void *x, struct cudnnTensorStruct *yt,
                                           const void *y, struct cudnnTensorStruct *dyt, const void *dy,
                                           struct cudnnTensorStruct *dzt, void *dz, struct cudnnTensorStruct *dxt,
                                           void *dx, struct cudnnTensorStruct *ct, const void *scale, const void *bias,
                                           void *dscale, void *dbias, double epsilon, const void *mean,
                                           const void *invstd, struct cudnnActivationStruct *a, void *workspace,
                                           size_t workspace_bytes, void *reserve, size_t reserve_bytes) {
  FILE *f = record();
  int given = x && dy && dx && ct && scale && dscale && dbias && mean && invstd;
  int absent = !yt && !y && !dzt && !dz && !bias && !a;
  if (f != NULL) {
    fprintf(f, "norm backward mode %u ops %u alpha %g %g beta %g %g one descriptor %d all given %d", mode, ops,
            *(const float *)alpha, *(const float *)alpha_param, *(const float *)beta, *(const float *)beta_param,
            xt == dyt && xt == dxt, given && absent);
    fprintf(f, " epsilon %g workspace %d of %zu reserve %d of %zu\n", epsilon, workspace != NULL, workspace_bytes,
            reserve != NULL, reserve_bytes);
    fclose(f);
  }
  return enqueue(h->stream, (op){run_nothing, {0}}) ? 5000 : 0;
}

struct cublasContext {
  struct CUstream_st *stream;
  size_t workspace;
  unsigned mode;
};
unsigned cublasCreate_v2(struct cublasContext **h) { return *h = calloc(1, sizeof **h), 0; }
unsigned cublasDestroy_v2(struct cublasContext *h) { return free(h), 0; }
unsigned cublasSetStream_v2(struct cublasContext *h, struct CUstream_st *s) {
  h->stream = s;
  h->workspace = 0;  // the library's own, as in the real one
  return 0;
}
unsigned cublasSetWorkspace_v2(struct cublasContext *h, void *p, size_t bytes) {
  if ((uintptr_t)p % 256 != 0) return 7;
  return h->workspace = bytes, 0;
}
unsigned cublasSetMathMode(struct cublasContext *h, unsigned mode) { return h->mode = mode, 0; }

static unsigned record_gemm(struct cublasContext *h, const char *name, unsigned ta, unsigned tb, const int sizes[6],
                            const float *alpha, const float *beta) {
  FILE *f = record();
  if (f != NULL) {
    fprintf(f, "%s %u %u m %d n %d k %d lda %d ldb %d ldc %d alpha %g beta %g mode %u workspace %zu\n", name, ta, tb,
            sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], *alpha, *beta, h->mode, h->workspace);
    fclose(f);
  }
  return enqueue(h->stream, (op){run_nothing, {0}}) ? 13 : 0;
}
unsigned cublasSgemm_v2(struct cublasContext *h, unsigned ta, unsigned tb, int m, int n, int k, const float *alpha,
                        const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc) {
  (void)a, (void)b, (void)c;
  return record_gemm(h, "sgemm", ta, tb, (int[]){m, n, k, lda, ldb, ldc}, alpha, beta);
}
unsigned cublasGemmEx(struct cublasContext *h, unsigned ta, unsigned tb, int m, int n, int k, const void *alpha,
                      const void *a, unsigned at, int lda, const void *b, unsigned bt, int ldb, const void *beta,
                      void *c, unsigned ct, int ldc, unsigned compute, int algo) {
  char name[64];
  (void)a, (void)b, (void)c;
  snprintf(name, sizeof name, "gemm of %u %u %u compute %u algo %d", at, bt, ct, compute, algo);
  return record_gemm(h, name, ta, tb, (int[]){m, n, k, lda, ldb, ldc}, alpha, beta);
}
unsigned cublasSgemmStridedBatched(struct cublasContext *h, unsigned ta, unsigned tb, int m, int n, int k,
                                   const float *alpha, const float *a, int lda, long long step_a, const float *b,
                                   int ldb, long long step_b, const float *beta, float *c, int ldc, long long step_c,
                                   int count) {
  char name[96];
  (void)a, (void)b, (void)c;
  snprintf(name, sizeof name, "sgemm %d by %lld %lld %lld", count, step_a, step_b, step_c);
  return record_gemm(h, name, ta, tb, (int[]){m, n, k, lda, ldb, ldc}, alpha, beta);
}
unsigned cublasGemmStridedBatchedEx(struct cublasContext *h, unsigned ta, unsigned tb, int m, int n, int k,
                                    const void *alpha, const void *a, unsigned at, int lda, long long step_a,
                                    const void *b, unsigned bt, int ldb, long long step_b, const void *beta, void *c,
                                    unsigned ct, int ldc, long long step_c, int count, unsigned compute, int algo) {
  char name[128];
  (void)a, (void)b, (void)c;
  snprintf(name, sizeof name, "gemm of %u %u %u compute %u algo %d, %d by %lld %lld %lld", at, bt, ct, compute, algo,
           count, step_a, step_b, step_c);
  return record_gemm(h, name, ta, tb, (int[]){m, n, k, lda, ldb, ldc}, alpha, beta);
}
unsigned cublasSgemv_v2(struct cublasContext *h, unsigned trans, int m, int n, const float *alpha, const float *a,
                        int lda, const float *x, int incx, const float *beta, float *y, int incy) {
  (void)a, (void)x, (void)y;
  return record_gemm(h, "sgemv", trans, 0, (int[]){m, n, 0, lda, incx, incy}, alpha, beta);
}
unsigned cublasGetProperty(unsigned which, int *v) { return *v = which == 0 ? 13 : which == 1 ? 1 : 0, 0; }
const char *cublasGetStatusName(unsigned code) { return code == 15 ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS"; }

static unsigned record_attribute(const char *what, unsigned name, const void *value, size_t n) {
  FILE *f = record();
  if (f == NULL) return 0;
  if (n == 4)
    fprintf(f, "%s.%u = %u\n", what, name, *(const unsigned *)value);
  else if (name == SB_MATMUL_DESC_BIAS_POINTER)
    fprintf(f, "%s.%u = *\n", what, name);
  else
    fprintf(f, "%s.%u = %llu\n", what, name, *(const unsigned long long *)value);
  fclose(f);
  return 0;
}

size_t cublasLtGetVersion(void) { return 130100; }
unsigned cublasLtMatmulPreferenceCreate(void **p) { return *p = calloc(1, 8), 0; }
unsigned cublasLtMatmulPreferenceDestroy(void *p) { return free(p), 0; }
unsigned cublasLtMatmulPreferenceSetAttribute(void *p, unsigned name, const void *value, size_t n) {
  return (void)p, record_attribute("preference", name, value, n);
}
unsigned cublasLtMatmulDescCreate(void **d, unsigned compute, unsigned scale) {
  FILE *f = record();
  *d = calloc(1, 8);
  if (f != NULL) {
    fprintf(f, "operation compute %u scale %u\n", compute, scale);
    fclose(f);
  }
  return 0;
}
unsigned cublasLtMatmulDescDestroy(void *d) { return free(d), 0; }
unsigned cublasLtMatmulDescSetAttribute(void *d, unsigned name, const void *value, size_t n) {
  return (void)d, record_attribute("operation", name, value, n);
}
unsigned cublasLtMatrixLayoutCreate(void **m, unsigned type, uint64_t rows, uint64_t cols, int64_t ld) {
  FILE *f = record();
  *m = calloc(1, 8);
  if (f != NULL) {
    fprintf(f, "matrix type %u rows %d cols %d ld %d\n", type, (int)rows, (int)cols, (int)ld);
    fclose(f);
  }
  return 0;
}
unsigned cublasLtMatrixLayoutDestroy(void *m) { return free(m), 0; }
unsigned cublasLtMatmulAlgoGetHeuristic(struct cublasLtContext *h, void *o, void *a, void *b, void *c, void *d, void *p,
                                        int wanted, sb_matmul_result *out, int *count) {
  FILE *f = record();
  (void)h, (void)o, (void)a, (void)b, (void)p, (void)out;
  if (f != NULL) {
    fprintf(f, "heuristic for %d, c is d %d\n", wanted, c == d);
    fclose(f);
  }
  return *count = 1, 0;
}
unsigned cublasLtMatmulAlgoConfigGetAttribute(const sb_matmul_algo *a, unsigned name, void *value, size_t n,
                                              size_t *w) {
  (void)a;
  *w = n;
  return *(unsigned *)value = name == SB_ALGO_ID ? 13 : 0, 0;
}
unsigned cublasLtMatmul(struct cublasLtContext *h, void *o, const void *alpha, const void *a, void *at, const void *b,
                        void *bt, const void *beta, const void *c, void *ct, void *d, void *dt,
                        const sb_matmul_algo *algo, void *workspace, size_t bytes, struct CUstream_st *s) {
  FILE *f = record();
  (void)h, (void)o, (void)a, (void)at, (void)b, (void)bt, (void)algo;
  if (f != NULL) {
    fprintf(f, "matmul alpha %g beta %g c is d %d %d workspace %d of %zu\n", *(const float *)alpha,
            *(const float *)beta, c == d, ct == dt, workspace != NULL, bytes);
    fclose(f);
  }
  return enqueue(s, (op){run_nothing, {0}});
}
