#include <stdlib.h>
#include <string.h>

#include "tables.h"

// on_host reports on which side an end of a copy lies: of an address that says nothing of itself, the driver is asked.
// It does not know memory of the host that nobody pinned.
static int on_host(sb_libraries *l, const unsigned char *copy, int type_at, int address_at) {
  unsigned type;
  sb_pointer address;
  memcpy(&type, copy + type_at, sizeof type);
  memcpy(&address, copy + address_at, sizeof address);
  if (type == SB_MEMORY_UNIFIED && l->cuPointerGetAttribute(&type, SB_POINTER_MEMORY_TYPE, address) != 0) return 1;
  return type == SB_MEMORY_HOST;
}

static int kind_of(sb_libraries *l, struct CUgraphNode_st *node, enum sb_node *kind, sb_error *e) {
  unsigned type;
  unsigned char copy[SB_MEMCPY_BYTES];
  SB_TRY(l, SB_CUDA, cuGraphNodeGetType, (node, &type), e);
  switch (type) {
    case SB_NODE_KERNEL:
      *kind = SB_KERNELS;
      break;
    case SB_NODE_MEMCPY: {
      SB_TRY(l, SB_CUDA, cuGraphMemcpyNodeGetParams, (node, (struct CUDA_MEMCPY3D_st *)copy), e);
      int from = on_host(l, copy, SB_MEMCPY_FROM_TYPE, SB_MEMCPY_FROM),
          to = on_host(l, copy, SB_MEMCPY_TO_TYPE, SB_MEMCPY_TO);
      *kind = from && to ? SB_OTHERS : from ? SB_UPLOADS : to ? SB_FETCHES : SB_COPIES;
      break;
    }
    case SB_NODE_MEMSET:
      *kind = SB_SETS;
      break;
    case SB_NODE_ALLOC:
      *kind = SB_ALLOCS;
      break;
    case SB_NODE_FREE:
      *kind = SB_FREES;
      break;
    case SB_NODE_HOST:
      *kind = SB_HOSTS;
      break;
    case SB_NODE_WAIT_EVENT:
    case SB_NODE_EVENT_RECORD:
      *kind = SB_EVENTS;
      break;
    case SB_NODE_GRAPH:
      *kind = SB_GRAPHS;
      break;
    default:
      *kind = SB_OTHERS;
  }
  return 0;
}

int sb_count_nodes(sb_libraries *l, struct CUgraph_st *graph, size_t *count, long long kinds[SB_NODES], sb_error *e) {
  SB_TRY(l, SB_CUDA, cuGraphGetNodes, (graph, NULL, count), e);
  if (*count == 0) return 0;
  int result = 0;
  struct CUgraphNode_st **nodes = sb_zeroed(*count, sizeof *nodes);
  SB_GO(l, SB_CUDA, cuGraphGetNodes, (graph, nodes, count), e);
  for (size_t i = 0; i < *count; i++) {
    enum sb_node kind = SB_OTHERS;
    if ((result = kind_of(l, nodes[i], &kind, e)) != 0) goto done;
    kinds[kind]++;
  }
done:
  free(nodes);
  return result;
}
