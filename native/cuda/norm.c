#include "tables.h"

// Batch norms as PyTorch calls them, through cuDNN's older interface.

static int tensor_nd(sb_queue *q, struct cudnnTensorStruct **t, unsigned type, int dims, const int *sizes,
                     const int *strides, sb_error *e) {
  SB_TRY(q->d->l, SB_CUDNN, cudnnCreateTensorDescriptor, (t), e);
  SB_TRY(q->d->l, SB_CUDNN, cudnnSetTensorNdDescriptor, (*t, type, dims, sizes, strides), e);
  return 0;
}

// descriptors describes a tensor and what it has one element a channel of.
static int descriptors(sb_queue *q, int type, int dims, const int *sizes, const int *strides,
                       struct cudnnTensorStruct **t, struct cudnnTensorStruct **channels, sb_error *e) {
  int one[SB_MAX_DIMS] = {1, 1, 1, 1, 1}, apart[SB_MAX_DIMS] = {1, 1, 1, 1, 1};
  one[1] = apart[0] = sizes[1];
  if (tensor_nd(q, t, (unsigned)type, dims, sizes, strides, e) ||
      tensor_nd(q, channels, SB_DNN_FLOAT, dims, one, apart, e))
    return -1;
  return 0;
}

static void drop(sb_queue *q, struct cudnnTensorStruct **t, struct cudnnTensorStruct **channels) {
  if (*t != NULL) q->d->l->cudnnDestroyTensorDescriptor(*t);
  if (*channels != NULL) q->d->l->cudnnDestroyTensorDescriptor(*channels);
  *t = *channels = NULL;
}

int sb_batch_norm_open(sb_queue *q, sb_batch_norm *b, sb_error *e) {
  SB_ENTER(q->d, e);
  if (descriptors(q, b->type, b->dims, b->sizes, b->strides, &b->tensor, &b->channels, e) != 0) {
    sb_batch_norm_close(q, b);
    return -1;
  }
  return 0;
}

int sb_batch_norm_launch(sb_queue *q, const sb_batch_norm *b, sb_error *e) {
  float one = 1, zero = 0;
  SB_TRY(
      q->d->l, SB_CUDNN, cudnnBatchNormalizationForwardInference,
      (q->cudnn, SB_BATCHNORM_SPATIAL, &one, &zero, b->tensor, (const void *)b->x, b->tensor, (void *)b->y, b->channels,
       (const void *)b->scale, (const void *)b->bias, (const void *)b->mean, (const void *)b->variance, b->epsilon),
      e);
  return 0;
}

int sb_batch_norm_run(sb_queue *q, const sb_batch_norm *b, sb_error *e) {
  SB_ENTER(q->d, e);
  return sb_batch_norm_launch(q, b, e);
}

void sb_batch_norm_close(sb_queue *q, sb_batch_norm *b) { drop(q, &b->tensor, &b->channels); }

static int training_sizes(sb_queue *q, sb_norm *n, sb_error *e) {
  sb_libraries *l = q->d->l;
  if (n->backward)
    SB_TRY(l, SB_CUDNN, cudnnGetBatchNormalizationBackwardExWorkspaceSize,
           (q->cudnn, n->mode, SB_BATCHNORM_OPS_BN, n->tensor, n->tensor, n->tensor, NULL, n->tensor, n->channels, NULL,
            &n->workspace_bytes),
           e);
  else
    SB_TRY(l, SB_CUDNN, cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize,
           (q->cudnn, n->mode, SB_BATCHNORM_OPS_BN, n->tensor, n->tensor, n->tensor, n->channels, NULL,
            &n->workspace_bytes),
           e);
  SB_TRY(l, SB_CUDNN, cudnnGetBatchNormalizationTrainingExReserveSpaceSize,
         (q->cudnn, n->mode, SB_BATCHNORM_OPS_BN, NULL, n->tensor, &n->reserve_needed), e);
  return 0;
}

int sb_norm_open(sb_queue *q, sb_norm *n, sb_error *e) {
  SB_ENTER(q->d, e);
  if (descriptors(q, n->type, n->dims, n->sizes, n->strides, &n->tensor, &n->channels, e) || training_sizes(q, n, e)) {
    sb_norm_close(q, n);
    return -1;
  }
  return 0;
}

static int forward(sb_queue *q, const sb_norm *n, sb_error *e) {
  float one = 1, zero = 0;
  SB_TRY(q->d->l, SB_CUDNN, cudnnBatchNormalizationForwardTrainingEx,
         (q->cudnn, n->mode, SB_BATCHNORM_OPS_BN, &one, &zero, n->tensor, (const void *)n->x, NULL, NULL, n->tensor,
          (void *)n->y, n->channels, (const void *)n->scale, (const void *)n->bias, n->momentum,
          (void *)n->running_mean, (void *)n->running_variance, n->epsilon, (void *)n->save_mean,
          (void *)n->save_invstd, NULL, (void *)n->workspace, n->workspace_bytes, (void *)n->reserve, n->reserve_bytes),
         e);
  return 0;
}

static int backward(sb_queue *q, const sb_norm *n, sb_error *e) {
  float one = 1, zero = 0;
  SB_TRY(
      q->d->l, SB_CUDNN, cudnnBatchNormalizationBackwardEx,
      (q->cudnn, n->mode, SB_BATCHNORM_OPS_BN, &one, &zero, &one, &zero, n->tensor, (const void *)n->x, NULL, NULL,
       n->tensor, (const void *)n->dy, NULL, NULL, n->tensor, (void *)n->dx, n->channels, (const void *)n->scale, NULL,
       (void *)n->dscale, (void *)n->dbias, n->epsilon, (const void *)n->save_mean, (const void *)n->save_invstd, NULL,
       (void *)n->workspace, n->workspace_bytes, (void *)n->reserve, n->reserve_bytes),
      e);
  return 0;
}

int sb_norm_launch(sb_queue *q, const sb_norm *n, sb_error *e) {
  return n->backward ? backward(q, n, e) : forward(q, n, e);
}

int sb_norm_run(sb_queue *q, const sb_norm *n, sb_error *e) {
  SB_ENTER(q->d, e);
  return sb_norm_launch(q, n, e);
}

void sb_norm_close(sb_queue *q, sb_norm *n) { drop(q, &n->tensor, &n->channels); }
