#include <stdlib.h>
#include <string.h>

#include "tables.h"

// Events keep the order between lanes, in an eager run and in a capture alike: a stream that waits for an event of a
// captured stream is captured with it.
struct sb_lanes {
  sb_libraries *l;
  int commands, lanes;
  sb_queue **queues;
  unsigned char *lane;       // by command
  int *first, *waits;        // by command, with one more at the end; by what it waits for
  struct CUevent_st **done;  // by command; NULL where nobody waits
  struct CUevent_st *start;  // of the list, on the first lane
  struct CUevent_st **end;   // by lane; NULL for the first one and for those without commands
};

static void *copy(const void *from, size_t count, size_t size) {
  void *to = sb_zeroed(count + 1, size);
  if (count > 0) memcpy(to, from, count * size);
  return to;
}

static int event(sb_lanes *s, struct CUevent_st **out, sb_error *e) {
  if (*out != NULL) return 0;
  SB_TRY(s->l, SB_CUDA, cuEventCreate, (out, SB_EVENT_DISABLE_TIMING), e);
  return 0;
}

static int events(sb_lanes *s, sb_error *e) {
  if (event(s, &s->start, e) != 0) return -1;
  for (int i = 0; i < s->commands; i++) {
    if (s->lane[i] != 0 && event(s, &s->end[s->lane[i]], e) != 0) return -1;
    for (int w = s->first[i]; w < s->first[i + 1]; w++)
      if (event(s, &s->done[s->waits[w]], e) != 0) return -1;
  }
  return 0;
}

int sb_lanes_open(sb_lanes **out, int commands, int lanes, sb_queue **queues, const unsigned char *lane,
                  const int *first, const int *waits, sb_error *e) {
  SB_ENTER(queues[0]->d, e);
  sb_lanes *s = sb_zeroed(1, sizeof *s);
  s->l = queues[0]->d->l;
  s->commands = commands;
  s->lanes = lanes;
  s->queues = copy(queues, (size_t)lanes, sizeof *queues);
  s->lane = copy(lane, (size_t)commands, sizeof *lane);
  s->first = copy(first, (size_t)commands + 1, sizeof *first);
  s->waits = copy(waits, (size_t)first[commands], sizeof *waits);
  s->done = sb_zeroed((size_t)commands + 1, sizeof(struct CUevent_st *));
  s->end = sb_zeroed((size_t)lanes, sizeof(struct CUevent_st *));
  if (events(s, e) != 0) {
    sb_lanes_close(s);
    return -1;
  }
  *out = s;
  return 0;
}

void sb_lanes_close(sb_lanes *s) {
  for (int i = 0; i < s->commands; i++)
    if (s->done[i] != NULL) s->l->cuEventDestroy_v2(s->done[i]);
  for (int i = 0; i < s->lanes; i++)
    if (s->end[i] != NULL) s->l->cuEventDestroy_v2(s->end[i]);
  if (s->start != NULL) s->l->cuEventDestroy_v2(s->start);
  free(s->queues);
  free(s->lane);
  free(s->first);
  free(s->waits);
  free(s->done);
  free(s->end);
  free(s);
}

static int fork_lanes(const sb_lanes *s, sb_error *e) {
  SB_TRY(s->l, SB_CUDA, cuEventRecord, (s->start, s->queues[0]->stream), e);
  for (int i = 1; i < s->lanes; i++)
    if (s->end[i] != NULL) SB_TRY(s->l, SB_CUDA, cuStreamWaitEvent, (s->queues[i]->stream, s->start, 0), e);
  return 0;
}

static int join_lanes(const sb_lanes *s, sb_error *e) {
  for (int i = 1; i < s->lanes; i++) {
    if (s->end[i] == NULL) continue;
    SB_TRY(s->l, SB_CUDA, cuEventRecord, (s->end[i], s->queues[i]->stream), e);
    SB_TRY(s->l, SB_CUDA, cuStreamWaitEvent, (s->queues[0]->stream, s->end[i], 0), e);
  }
  return 0;
}

static int step(const sb_lanes *s, const sb_list *list, int i, sb_error *e) {
  sb_queue *q = s->queues[s->lane[i]];
  for (int w = s->first[i]; w < s->first[i + 1]; w++)
    SB_TRY(s->l, SB_CUDA, cuStreamWaitEvent, (q->stream, s->done[s->waits[w]], 0), e);
  if (sb_launch(q, list, i, e) != 0) return -1;
  if (s->done[i] != NULL) SB_TRY(s->l, SB_CUDA, cuEventRecord, (s->done[i], q->stream), e);
  return 0;
}

int sb_lanes_walk(const sb_lanes *s, const sb_list *list, sb_error *e) {
  sb_error second;
  int result = fork_lanes(s, e);
  for (int i = 0; result == 0 && i < s->commands; i++) {
    result = step(s, list, i, e);
    if (result != 0) e->command = i;
  }
  // The lanes are joined after a failure too: who waits for the first one waits for all, and a capture can end. The
  // first cause is the one to report.
  if (join_lanes(s, result == 0 ? e : &second) != 0) result = -1;
  return result;
}
