// pool.h: what pool.c and run.c share.
#ifndef SAMEBITS_POOL_H
#define SAMEBITS_POOL_H
#include <pthread.h>
#include "host.h"

struct sb_host {
  int threads, vector, poison;
  pthread_mutex_t lock;
  pthread_cond_t wake, done;
  pthread_t* workers;
  // The job, under lock. A worker that comes after it was closed takes no part.
  uint64_t job;  // its number; read without the lock by workers that spin
  int open, room, running, asleep, stop;
  sb_work work;
  void* context;
  // Slots of the workers, and those that callers take and give back.
  struct sb_slot* worker_slots[1024];
  struct sb_slot* callers;  // not in use
  int job_taken;            // a caller owns the pool
};

struct sb_slot* sb_slot_take(struct sb_host* host);  // null if there is no memory
void sb_slot_give(struct sb_host* host, struct sb_slot* slot);
#endif
