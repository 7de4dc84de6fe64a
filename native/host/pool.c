// pool.c: the threads of the device. One job at a time; a caller that finds the pool taken works alone.
#define _GNU_SOURCE
#include "pool.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// How long a thread spins before it sleeps: some 20 microseconds. A launch list has hundreds of short commands, and to
// wake a thread takes as long as many of them.
enum { SPINS = 400 };

static inline void pause_cpu(void) { __builtin_ia32_pause(); }

static void slot_free(struct sb_slot* s) {
  if (!s) return;
  if (s->region) munmap(s->region, CH_REGION);
  free(s->scratch);
  free(s);
}

static struct sb_slot* slot_new(void) {
  struct sb_slot* s = calloc(1, sizeof *s);
  if (!s) return NULL;
  // Twice the size, so that an aligned part can be kept. Only pages that are touched take memory.
  char* p =
      mmap(NULL, 2 * (size_t)CH_REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    free(s);
    return NULL;
  }
  char* aligned = (char*)(((uintptr_t)p + CH_REGION - 1) & ~((uintptr_t)CH_REGION - 1));
  if (aligned > p) munmap(p, aligned - p);
  munmap(aligned + CH_REGION, p + CH_REGION - aligned);
  s->region = aligned;
  s->scratch = aligned_alloc(64, SB_SCRATCH);
  if (!s->scratch) {
    slot_free(s);
    return NULL;
  }
  return s;
}

struct sb_slot* sb_slot_take(struct sb_host* host) {
  pthread_mutex_lock(&host->lock);
  struct sb_slot* s = host->callers;
  if (s) host->callers = s->link;
  pthread_mutex_unlock(&host->lock);
  return s ? s : slot_new();
}

void sb_slot_give(struct sb_host* host, struct sb_slot* slot) {
  pthread_mutex_lock(&host->lock);
  slot->link = host->callers;
  host->callers = slot;
  pthread_mutex_unlock(&host->lock);
}

struct worker_start {
  struct sb_host* host;
  struct sb_slot* slot;
};

static void* worker_main(void* argument) {
  struct sb_host* host = ((struct worker_start*)argument)->host;
  struct sb_slot* slot = ((struct worker_start*)argument)->slot;
  free(argument);
  uint64_t seen = 0;
  pthread_mutex_lock(&host->lock);
  while (!host->stop) {
    if (host->job == seen || !host->open || !host->room) {
      seen = host->job;
      pthread_mutex_unlock(&host->lock);
      for (int i = 0; i < SPINS && __atomic_load_n(&host->job, __ATOMIC_RELAXED) == seen; i++) pause_cpu();
      pthread_mutex_lock(&host->lock);
      if (host->job == seen && !host->stop) {
        host->asleep++;
        pthread_cond_wait(&host->wake, &host->lock);
        host->asleep--;
      }
      continue;
    }
    seen = host->job;
    host->room--;
    host->running++;
    pthread_mutex_unlock(&host->lock);
    host->work(host->context, slot);
    pthread_mutex_lock(&host->lock);
    if (__atomic_sub_fetch(&host->running, 1, __ATOMIC_RELEASE) == 0) pthread_cond_signal(&host->done);
  }
  pthread_mutex_unlock(&host->lock);
  return NULL;
}

struct sb_host* sb_host_new(int threads, int vector, int poison) {
  struct sb_host* host = calloc(1, sizeof *host);
  if (!host) return NULL;
  host->vector = vector;
  host->poison = poison;
  host->threads = 1;
  pthread_mutex_init(&host->lock, NULL);
  pthread_cond_init(&host->wake, NULL);
  pthread_cond_init(&host->done, NULL);
  int most = (int)(sizeof host->worker_slots / sizeof *host->worker_slots);
  if (threads > most) threads = most;
  host->workers = calloc(threads, sizeof *host->workers);
  if (!host->workers) {
    sb_host_free(host);
    return NULL;
  }
  // Signals are for the threads of Go: a handler must not run on the small stack of a fiber.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  // With fewer threads than asked for the results are the same, so a limit on threads is no error.
  while (host->threads < threads) {
    struct worker_start* start = malloc(sizeof *start);
    struct sb_slot* slot = slot_new();
    if (start && slot) {
      *start = (struct worker_start){host, slot};
      if (pthread_create(&host->workers[host->threads - 1], NULL, worker_main, start) == 0) {
        pthread_setname_np(host->workers[host->threads - 1], "samebits-host");
        host->worker_slots[host->threads - 1] = slot;
        host->threads++;
        continue;
      }
    }
    free(start);
    slot_free(slot);
    break;
  }
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return host;
}

void sb_host_free(struct sb_host* host) {
  pthread_mutex_lock(&host->lock);
  host->stop = 1;
  __atomic_add_fetch(&host->job, 1, __ATOMIC_RELAXED);
  pthread_cond_broadcast(&host->wake);
  pthread_mutex_unlock(&host->lock);
  for (int i = 0; i < host->threads - 1; i++) {
    pthread_join(host->workers[i], NULL);
    slot_free(host->worker_slots[i]);
  }
  while (host->callers) {
    struct sb_slot* s = host->callers;
    host->callers = s->link;
    slot_free(s);
  }
  free(host->workers);
  pthread_cond_destroy(&host->done);
  pthread_cond_destroy(&host->wake);
  pthread_mutex_destroy(&host->lock);
  free(host);
}

int sb_host_threads(const struct sb_host* host) { return host->threads; }

void sb_parallel(struct sb_host* host, struct sb_slot* mine, int64_t most, sb_work work, void* context) {
  if (most > host->threads) most = host->threads;
  if (most <= 1 || __atomic_exchange_n(&host->job_taken, 1, __ATOMIC_ACQUIRE)) {
    work(context, mine);
    return;
  }
  pthread_mutex_lock(&host->lock);
  host->work = work;
  host->context = context;
  host->room = (int)most - 1;
  host->open = 1;
  __atomic_add_fetch(&host->job, 1, __ATOMIC_RELAXED);
  if (host->asleep) pthread_cond_broadcast(&host->wake);
  pthread_mutex_unlock(&host->lock);
  work(context, mine);
  pthread_mutex_lock(&host->lock);
  host->open = 0;
  if (host->running) {
    pthread_mutex_unlock(&host->lock);
    for (int i = 0; i < SPINS && __atomic_load_n(&host->running, __ATOMIC_ACQUIRE); i++) pause_cpu();
    pthread_mutex_lock(&host->lock);
    while (host->running) pthread_cond_wait(&host->done, &host->lock);
  }
  for (int i = 0; i < host->threads - 1; i++) {
    struct sb_slot* s = host->worker_slots[i];
    if (s->error[0]) {
      if (!mine->error[0]) memcpy(mine->error, s->error, sizeof mine->error);
      s->error[0] = 0;
    }
  }
  pthread_mutex_unlock(&host->lock);
  __atomic_store_n(&host->job_taken, 0, __ATOMIC_RELEASE);
}
