// run.c: lists of commands, and the walk over one.
#include <stdlib.h>
#include <string.h>
#include "pool.h"

// ---- lists --------------------------------------------------------------------------------------------------------
static size_t commands_bytes(int64_t count) { return sizeof(struct sb_list) + count * sizeof(struct sb_command); }

struct sb_list* sb_host_list_new(int64_t count, int64_t arguments) {
  size_t bytes = commands_bytes(count) + arguments * (sizeof(void*) + sizeof(uint64_t));
  struct sb_list* l = calloc(1, bytes);
  if (!l) return NULL;
  l->count = count;
  l->bytes = (int64_t)bytes;
  l->commands = (struct sb_command*)(l + 1);
  return l;
}

uint64_t* sb_list_arguments(struct sb_list* l, int64_t command, int64_t first, int64_t count) {
  char* at = (char*)l + commands_bytes(l->count) + first * (sizeof(void*) + sizeof(uint64_t));
  void** args = (void**)at;
  uint64_t* values = (uint64_t*)(args + count);
  for (int64_t i = 0; i < count; i++) args[i] = values + i;
  l->commands[command].kernel.args = args;
  l->commands[command].kernel.nargs = (uint32_t)count;
  return values;
}

struct sb_list* sb_host_list_copy(const struct sb_list* l) {
  struct sb_list* copy = malloc(l->bytes);
  if (!copy) return NULL;
  memcpy(copy, l, l->bytes);
  copy->commands = (struct sb_command*)(copy + 1);
  for (int64_t i = 0; i < copy->count; i++) {
    struct sb_command* c = &copy->commands[i];
    if (c->kind != SB_KERNEL || !c->kernel.nargs) continue;
    void** args = (void**)((char*)copy + ((char*)c->kernel.args - (const char*)l));
    for (uint32_t a = 0; a < c->kernel.nargs; a++) args[a] = (uint64_t*)(args + c->kernel.nargs) + a;
    c->kernel.args = args;
  }
  return copy;
}

// ---- kernels ------------------------------------------------------------------------------------------------------
struct kernel_job {
  const struct sb_kernel* kernel;
  uint64_t next, chunk;
  uint32_t flags;
};

static void kernel_work(void* context, struct sb_slot* slot) {
  struct kernel_job* job = context;
  const struct sb_kernel* k = job->kernel;
  struct ch_launch launch = {
      .grid = {k->grid[0], k->grid[1], k->grid[2]},
      .block = {k->block[0], k->block[1], k->block[2]},
      .shared_bytes = k->shared_bytes,
      .flags = job->flags,
      .args = k->args,
      .next = &job->next,
      .chunk = job->chunk,
      .region = slot->region,
      .error = slot->error,
  };
  k->run(&launch);
  // After an error the other threads find no more blocks.
  if (slot->error[0]) __atomic_store_n(&job->next, UINT64_MAX / 2, __ATOMIC_RELAXED);
}

static void run_kernel(struct sb_host* host, struct sb_slot* mine, const struct sb_kernel* k) {
  uint64_t blocks = (uint64_t)k->grid[0] * k->grid[1] * k->grid[2];
  struct kernel_job job = {.kernel = k, .flags = host->poison ? CH_POISON : 0};
  job.chunk = blocks / (8 * (uint64_t)host->threads);
  if (!job.chunk) job.chunk = 1;
  sb_parallel(host, mine, blocks < 1024 ? (int64_t)blocks : 1024, kernel_work, &job);
}

// ---- copies -------------------------------------------------------------------------------------------------------
enum { PIECE = 1 << 20 };  // bytes that one thread copies or sets at once
struct bytes_job {
  char* to;
  const char* from;  // null: set
  int byte;
  int64_t bytes, next;
};

static void bytes_work(void* context, struct sb_slot* slot) {
  struct bytes_job* job = context;
  (void)slot;
  for (;;) {
    int64_t at = __atomic_fetch_add(&job->next, PIECE, __ATOMIC_RELAXED);
    if (at >= job->bytes) return;
    size_t n = job->bytes - at < PIECE ? job->bytes - at : PIECE;
    if (job->from)
      memcpy(job->to + at, job->from + at, n);
    else
      memset(job->to + at, job->byte, n);
  }
}

static void run_bytes(struct sb_host* host, struct sb_slot* mine, struct bytes_job job) {
  sb_parallel(host, mine, (job.bytes + PIECE - 1) / PIECE, bytes_work, &job);
}

// ---- the walk -----------------------------------------------------------------------------------------------------
int sb_host_run(struct sb_host* host, const struct sb_list* list, int64_t from, int64_t to,
                struct sb_failure* failure) {
  struct sb_slot* mine = sb_slot_take(host);
  if (!mine) {
    failure->index = from;
    strcpy(failure->text, "no memory for a thread's stacks");
    return 1;
  }
  mine->error[0] = 0;
  for (int64_t i = from; i < to; i++) {
    const struct sb_command* c = &list->commands[i];
    switch (c->kind) {
      case SB_KERNEL: run_kernel(host, mine, &c->kernel); break;
      case SB_CONVOLUTION: sb_convolve(host, mine, host->vector, &c->convolution); break;
      case SB_BATCH_NORM: sb_normalise(host, mine, &c->batch_norm); break;
      case SB_NORM_TRAINING: sb_normalise_training(host, mine, &c->norm_training); break;
      case SB_NORM_BACKWARD: sb_normalise_backward(host, mine, &c->norm_backward); break;
      case SB_COPY:
        run_bytes(host, mine, (struct bytes_job){.to = c->copy.to, .from = c->copy.from, .bytes = c->copy.bytes});
        break;
      case SB_FILL:
        run_bytes(host, mine, (struct bytes_job){.to = c->fill.to, .byte = c->fill.byte, .bytes = c->fill.bytes});
        break;
    }
    if (mine->error[0]) {
      failure->index = i;
      memcpy(failure->text, mine->error, sizeof failure->text);
      sb_slot_give(host, mine);
      return 1;
    }
  }
  sb_slot_give(host, mine);
  return 0;
}
