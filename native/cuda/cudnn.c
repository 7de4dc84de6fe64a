#include <stdio.h>
#include <stdlib.h>

#include "tables.h"

// The attributes, their order and their values are those that PyTorch sets through cudnn_frontend, and no others:
// what else is set could make the heuristic answer differently.

// PyTorch's names of the three tensors.
enum { UID_X = 'x', UID_Y = 'y', UID_W = 'w' };

// As many as cuDNN 9.19 has kinds of, like PyTorch asks for.
enum { MAX_NOTES = 10, MAX_KNOBS = SB_MAX_KNOBS };

static int create(sb_queue *q, unsigned type, void **descriptor, sb_error *e) {
  SB_TRY(q->d->l, SB_CUDNN, cudnnBackendCreateDescriptor, (type, descriptor), e);
  return 0;
}

static int set(sb_queue *q, void *descriptor, unsigned name, unsigned type, int64_t count, const void *values,
               sb_error *e) {
  SB_TRY(q->d->l, SB_CUDNN, cudnnBackendSetAttribute, (descriptor, name, type, count, values), e);
  return 0;
}

static int finalize(sb_queue *q, void *descriptor, sb_error *e) {
  SB_TRY(q->d->l, SB_CUDNN, cudnnBackendFinalize, (descriptor), e);
  return 0;
}

void sb_descriptor_free(sb_queue *q, void *descriptor) {
  if (descriptor != NULL) q->d->l->cudnnBackendDestroyDescriptor(descriptor);
}

static int tensor(sb_queue *q, const sb_tensor *t, int64_t uid, void **out, sb_error *e) {
  unsigned type = (unsigned)t->type;
  if (create(q, SB_DESC_TENSOR, out, e) || set(q, *out, SB_TENSOR_DATA_TYPE, SB_TYPE_DATA_TYPE, 1, &type, e) ||
      set(q, *out, SB_TENSOR_DIMENSIONS, SB_TYPE_INT64, t->dims, t->sizes, e) ||
      set(q, *out, SB_TENSOR_STRIDES, SB_TYPE_INT64, t->dims, t->strides, e) ||
      set(q, *out, SB_TENSOR_UNIQUE_ID, SB_TYPE_INT64, 1, &uid, e) ||
      set(q, *out, SB_TENSOR_BYTE_ALIGNMENT, SB_TYPE_INT64, 1, &t->alignment, e) || finalize(q, *out, e))
    return -1;
  return 0;
}

static int convolution(sb_queue *q, const sb_convolution *c, void **out, sb_error *e) {
  unsigned compute = SB_DNN_FLOAT, mode = SB_CROSS_CORRELATION;
  int64_t n = c->spatial;
  if (create(q, SB_DESC_CONVOLUTION, out, e) ||
      set(q, *out, SB_CONVOLUTION_COMP_TYPE, SB_TYPE_DATA_TYPE, 1, &compute, e) ||
      set(q, *out, SB_CONVOLUTION_CONV_MODE, SB_TYPE_CONVOLUTION_MODE, 1, &mode, e) ||
      set(q, *out, SB_CONVOLUTION_SPATIAL_DIMS, SB_TYPE_INT64, 1, &n, e) ||
      set(q, *out, SB_CONVOLUTION_PRE_PADDINGS, SB_TYPE_INT64, n, c->padding, e) ||
      set(q, *out, SB_CONVOLUTION_POST_PADDINGS, SB_TYPE_INT64, n, c->padding, e) ||
      set(q, *out, SB_CONVOLUTION_DILATIONS, SB_TYPE_INT64, n, c->dilation, e) ||
      set(q, *out, SB_CONVOLUTION_FILTER_STRIDES, SB_TYPE_INT64, n, c->stride, e) || finalize(q, *out, e))
    return -1;
  return 0;
}

// What an operation's attributes are called, in the order in which they are set, and its name in cudnn_frontend's tags.
static const struct operation {
  unsigned type, x, w, y, convolution, alpha, beta;
  const char *tag;
} operations[] = {
    [SB_FORWARD] = {SB_DESC_OPERATION_FORWARD, SB_FORWARD_X, SB_FORWARD_W, SB_FORWARD_Y, SB_FORWARD_CONV_DESC,
                    SB_FORWARD_ALPHA, SB_FORWARD_BETA, "ConvFwd"},
    [SB_BACKWARD_DATA] = {SB_DESC_OPERATION_BACKWARD_DATA, SB_BACKWARD_DATA_DX, SB_BACKWARD_DATA_W, SB_BACKWARD_DATA_DY,
                          SB_BACKWARD_DATA_CONV_DESC, SB_BACKWARD_DATA_ALPHA, SB_BACKWARD_DATA_BETA, "ConvBwdData"},
    [SB_BACKWARD_FILTER] = {SB_DESC_OPERATION_BACKWARD_FILTER, SB_BACKWARD_FILTER_X, SB_BACKWARD_FILTER_DW,
                            SB_BACKWARD_FILTER_DY, SB_BACKWARD_FILTER_CONV_DESC, SB_BACKWARD_FILTER_ALPHA,
                            SB_BACKWARD_FILTER_BETA, "ConvBwdFilter"},
};

struct sb_configs {
  const char *tag;
  void *x, *w, *y, *convolution, *operation, *graph, *heuristic;
  void *engine, *knob[MAX_KNOBS];  // of a configuration that no heuristic made
  void **config;
  int count;
};

static int operation(sb_queue *q, const struct operation *names, sb_configs *s, sb_error *e) {
  float alpha = 1, beta = 0;
  if (create(q, names->type, &s->operation, e) || set(q, s->operation, names->x, SB_TYPE_DESCRIPTOR, 1, &s->x, e) ||
      set(q, s->operation, names->w, SB_TYPE_DESCRIPTOR, 1, &s->w, e) ||
      set(q, s->operation, names->y, SB_TYPE_DESCRIPTOR, 1, &s->y, e) ||
      set(q, s->operation, names->convolution, SB_TYPE_DESCRIPTOR, 1, &s->convolution, e) ||
      set(q, s->operation, names->alpha, SB_TYPE_FLOAT, 1, &alpha, e) ||
      set(q, s->operation, names->beta, SB_TYPE_FLOAT, 1, &beta, e) || finalize(q, s->operation, e))
    return -1;
  if (create(q, SB_DESC_GRAPH, &s->graph, e) ||
      set(q, s->graph, SB_GRAPH_OPS, SB_TYPE_DESCRIPTOR, 1, &s->operation, e) ||
      set(q, s->graph, SB_GRAPH_HANDLE, SB_TYPE_HANDLE, 1, &q->cudnn, e) || finalize(q, s->graph, e))
    return -1;
  return 0;
}

// engine_of gives a configuration's engine as a new descriptor, or NULL.
static void *engine_of(sb_queue *q, void *config) {
  sb_error ignored;
  void *engine = NULL;
  int64_t count = 0;
  if (create(q, SB_DESC_ENGINE, &engine, &ignored) != 0) return NULL;
  if (q->d->l->cudnnBackendGetAttribute(config, SB_ENGINECFG_ENGINE, SB_TYPE_DESCRIPTOR, 1, &count, &engine) != 0 ||
      count != 1) {
    sb_descriptor_free(q, engine);
    return NULL;
  }
  return engine;
}

// dropped applies PyTorch's three rules. A configuration whose notes cannot be read stays, as there.
static int dropped(sb_queue *q, const sb_convolution *c, void *config) {
  unsigned notes[MAX_NOTES];
  int64_t count = 0;
  int drop = 0;
  void *engine = engine_of(q, config);
  if (engine == NULL) return 0;
  q->d->l->cudnnBackendGetAttribute(engine, SB_ENGINE_NUMERICAL_NOTE, SB_TYPE_NUMERICAL_NOTE, MAX_NOTES, &count, notes);
  for (int64_t i = 0; i < count && i < MAX_NOTES; i++) {
    drop |= notes[i] == SB_NOTE_DOWN_CONVERT_INPUTS;
    drop |= notes[i] == SB_NOTE_NONDETERMINISTIC && c->deterministic;
    drop |= notes[i] == SB_NOTE_TENSOR_CORE && c->no_tensor_core;
  }
  sb_descriptor_free(q, engine);
  return drop;
}

static int heuristic(sb_queue *q, const sb_convolution *c, unsigned mode, sb_configs *s, int *proposed, sb_error *e) {
  sb_libraries *l = q->d->l;
  int64_t count = 0, returned = 0;
  if (create(q, SB_DESC_ENGINEHEUR, &s->heuristic, e) ||
      set(q, s->heuristic, SB_ENGINEHEUR_OPERATION_GRAPH, SB_TYPE_DESCRIPTOR, 1, &s->graph, e) ||
      set(q, s->heuristic, SB_ENGINEHEUR_MODE, SB_TYPE_HEUR_MODE, 1, &mode, e) || finalize(q, s->heuristic, e))
    return -1;
  SB_TRY(l, SB_CUDNN, cudnnBackendGetAttribute,
         (s->heuristic, SB_ENGINEHEUR_RESULTS, SB_TYPE_DESCRIPTOR, 0, &count, NULL), e);
  s->config = sb_zeroed((size_t)count + 1, sizeof(void *));
  for (s->count = 0; s->count < count; s->count++)
    if (create(q, SB_DESC_ENGINECFG, &s->config[s->count], e) != 0) return -1;
  SB_TRY(l, SB_CUDNN, cudnnBackendGetAttribute,
         (s->heuristic, SB_ENGINEHEUR_RESULTS, SB_TYPE_DESCRIPTOR, count, &returned, s->config), e);
  *proposed = (int)returned;
  int left = 0;
  for (int i = 0; i < s->count; i++) {
    if (i >= returned || dropped(q, c, s->config[i]))
      sb_descriptor_free(q, s->config[i]);
    else
      s->config[left++] = s->config[i];
  }
  s->count = left;
  return 0;
}

// graph_of makes the graph that heuristics and engines are asked about.
static sb_configs *graph_of(sb_queue *q, const sb_convolution *c, sb_error *e) {
  sb_configs *s = sb_zeroed(1, sizeof *s);
  const struct operation *names = &operations[c->direction];
  s->tag = names->tag;
  if (tensor(q, &c->x, UID_X, &s->x, e) || tensor(q, &c->y, UID_Y, &s->y, e) || tensor(q, &c->w, UID_W, &s->w, e) ||
      convolution(q, c, &s->convolution, e) || operation(q, names, s, e)) {
    sb_configs_free(q, s);
    return NULL;
  }
  return s;
}

int sb_convolution_configs(sb_queue *q, const sb_convolution *c, int mode, sb_configs **out, int *proposed, int *left,
                           sb_error *e) {
  SB_ENTER(q->d, e);
  sb_configs *s = graph_of(q, c, e);
  if (s == NULL) return -1;
  if (heuristic(q, c, (unsigned)mode, s, proposed, e)) {
    sb_configs_free(q, s);
    return -1;
  }
  *left = s->count;
  *out = s;
  return 0;
}

static int configuration(sb_queue *q, sb_configs *s, int64_t engine, int knobs, const unsigned *types,
                         const int64_t *values, sb_error *e) {
  if (create(q, SB_DESC_ENGINE, &s->engine, e) ||
      set(q, s->engine, SB_ENGINE_OPERATION_GRAPH, SB_TYPE_DESCRIPTOR, 1, &s->graph, e) ||
      set(q, s->engine, SB_ENGINE_GLOBAL_INDEX, SB_TYPE_INT64, 1, &engine, e) || finalize(q, s->engine, e))
    return -1;
  for (int i = 0; i < knobs; i++)
    if (create(q, SB_DESC_KNOB_CHOICE, &s->knob[i], e) ||
        set(q, s->knob[i], SB_KNOB_CHOICE_TYPE, SB_TYPE_KNOB_TYPE, 1, &types[i], e) ||
        set(q, s->knob[i], SB_KNOB_CHOICE_VALUE, SB_TYPE_INT64, 1, &values[i], e) || finalize(q, s->knob[i], e))
      return -1;
  s->config = sb_zeroed(1, sizeof(void *));
  s->count = 1;
  if (create(q, SB_DESC_ENGINECFG, &s->config[0], e) ||
      set(q, s->config[0], SB_ENGINECFG_ENGINE, SB_TYPE_DESCRIPTOR, 1, &s->engine, e) ||
      (knobs > 0 && set(q, s->config[0], SB_ENGINECFG_KNOB_CHOICES, SB_TYPE_DESCRIPTOR, knobs, s->knob, e)) ||
      finalize(q, s->config[0], e))
    return -1;
  return 0;
}

int sb_convolution_config(sb_queue *q, const sb_convolution *c, int64_t engine, int knobs, const unsigned *types,
                          const int64_t *values, sb_configs **out, int *left, sb_error *e) {
  SB_ENTER(q->d, e);
  sb_configs *s = graph_of(q, c, e);
  if (s == NULL) return -1;
  if (configuration(q, s, engine, knobs, types, values, e)) {
    sb_configs_free(q, s);
    return -1;
  }
  *left = !dropped(q, c, s->config[0]);
  *out = s;
  return 0;
}

void sb_configs_free(sb_queue *q, sb_configs *s) {
  for (int i = 0; i < s->count; i++) sb_descriptor_free(q, s->config[i]);
  free(s->config);
  for (int i = 0; i < MAX_KNOBS; i++) sb_descriptor_free(q, s->knob[i]);
  sb_descriptor_free(q, s->engine);
  sb_descriptor_free(q, s->heuristic);
  sb_descriptor_free(q, s->graph);
  sb_descriptor_free(q, s->operation);
  sb_descriptor_free(q, s->convolution);
  sb_descriptor_free(q, s->x);
  sb_descriptor_free(q, s->y);
  sb_descriptor_free(q, s->w);
  free(s);
}

void *sb_configs_take(sb_configs *s, int i) {
  void *config = s->config[i];
  s->config[i] = NULL;
  return config;
}

// describe writes the engine and its knobs as cudnn_frontend's tags do: ConvFwd_eng70_k2=12_k18=0.
static void describe(sb_queue *q, const char *operation, void *config, char tag[SB_TAG]) {
  sb_libraries *l = q->d->l;
  sb_error ignored;
  void *knobs[MAX_KNOBS] = {NULL};
  int64_t id = -1, count = 0, one = 0;
  void *engine = engine_of(q, config);
  if (engine != NULL) l->cudnnBackendGetAttribute(engine, SB_ENGINE_GLOBAL_INDEX, SB_TYPE_INT64, 1, &one, &id);
  sb_descriptor_free(q, engine);
  int used = snprintf(tag, SB_TAG, "%s_eng%lld", operation, (long long)id);
  for (int i = 0; i < MAX_KNOBS; i++)
    if (create(q, SB_DESC_KNOB_CHOICE, &knobs[i], &ignored) != 0) break;
  l->cudnnBackendGetAttribute(config, SB_ENGINECFG_KNOB_CHOICES, SB_TYPE_DESCRIPTOR, MAX_KNOBS, &count, knobs);
  for (int64_t i = 0; i < count && i < MAX_KNOBS && used < SB_TAG; i++) {
    unsigned type = 0;
    int64_t value = 0;
    l->cudnnBackendGetAttribute(knobs[i], SB_KNOB_CHOICE_TYPE, SB_TYPE_KNOB_TYPE, 1, &one, &type);
    l->cudnnBackendGetAttribute(knobs[i], SB_KNOB_CHOICE_VALUE, SB_TYPE_INT64, 1, &one, &value);
    used += snprintf(tag + used, (size_t)(SB_TAG - used), "_k%u=%lld", type, (long long)value);
  }
  for (int i = 0; i < MAX_KNOBS; i++) sb_descriptor_free(q, knobs[i]);
}

int sb_convolution_plan(sb_queue *q, sb_configs *s, int i, void **plan, int64_t *workspace, char tag[SB_TAG],
                        sb_error *e) {
  int result = 0;
  int64_t count = 0;
  void *p = NULL;
  SB_ENTER(q->d, e);
  describe(q, s->tag, s->config[i], tag);
  if (create(q, SB_DESC_PLAN, &p, e) || set(q, p, SB_PLAN_ENGINE_CONFIG, SB_TYPE_DESCRIPTOR, 1, &s->config[i], e) ||
      finalize(q, p, e)) {
    result = -1;
    goto done;
  }
  SB_GO(q->d->l, SB_CUDNN, cudnnBackendGetAttribute, (p, SB_PLAN_WORKSPACE_SIZE, SB_TYPE_INT64, 1, &count, workspace),
        e);
done:
  if (result != 0)
    sb_descriptor_free(q, p);
  else
    *plan = p;
  return result;
}

int sb_convolution_pack(sb_queue *q, sb_pointer x, sb_pointer w, sb_pointer y, sb_pointer workspace, void **pack,
                        sb_error *e) {
  void *p = NULL;
  void *pointers[3] = {(void *)x, (void *)y, (void *)w}, *scratch = (void *)workspace;
  int64_t uids[3] = {UID_X, UID_Y, UID_W};
  SB_ENTER(q->d, e);
  if (create(q, SB_DESC_PACK, &p, e) || set(q, p, SB_PACK_DATA_POINTERS, SB_TYPE_VOID_PTR, 3, pointers, e) ||
      set(q, p, SB_PACK_UNIQUE_IDS, SB_TYPE_INT64, 3, uids, e) ||
      set(q, p, SB_PACK_WORKSPACE, SB_TYPE_VOID_PTR, 1, &scratch, e) || finalize(q, p, e)) {
    sb_descriptor_free(q, p);
    return -1;
  }
  *pack = p;
  return 0;
}

int sb_convolution_launch(sb_queue *q, void *plan, void *pack, sb_error *e) {
  SB_TRY(q->d->l, SB_CUDNN, cudnnBackendExecute, (q->cudnn, plan, pack), e);
  return 0;
}

int sb_convolution_run(sb_queue *q, void *plan, void *pack, sb_error *e) {
  SB_ENTER(q->d, e);
  return sb_convolution_launch(q, plan, pack, e);
}
