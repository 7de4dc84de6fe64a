// launch.h: what a kernel library and its caller agree on. The caller is package host; a library is a kernel file
// compiled with shim/cuda_host.h.
#ifndef SAMEBITS_LAUNCH_H
#define SAMEBITS_LAUNCH_H
#include <stdint.h>

enum {
  CH_MAX_THREADS = 1024,       // in a block
  CH_MAX_SHARED = 227 * 1024,  // bytes of dynamic shared memory in a block, as on sm_90
  CH_REGION = 64 << 20,        // bytes of a region, and its alignment
  CH_ERROR = 256,              // bytes of an error text with its final zero
  CH_POISON = 1,               // flag: dynamic shared memory is 0xff at the start of every block
};

// A launch as one OS thread sees it. Threads that share `next` share the blocks of one launch.
struct ch_launch {
  uint32_t grid[3], block[3];
  uint32_t shared_bytes, flags;
  void** args;     // as cuLaunchKernel's kernelParams
  uint64_t* next;  // index of the next block that nobody took
  uint64_t chunk;  // blocks taken at once
  void* region;    // CH_REGION bytes, so aligned, readable and writable, for this OS thread alone
  char* error;     // CH_ERROR bytes; becomes non-empty if a kernel fails; this thread's own
};

typedef void (*ch_entry_fn)(const struct ch_launch*);

// An entry of a library's table. The table is given by cuda_host_kernels.
struct ch_kernel {
  const char* name;
  ch_entry_fn run;
  const uint32_t* sizes;  // bytes of each argument
  uint64_t nargs;
};
typedef const struct ch_kernel* (*ch_table_fn)(uint64_t* count);
#endif
