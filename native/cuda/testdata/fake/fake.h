// Stand-ins for the driver, NVRTC, cuDNN, cuBLAS and cuBLASLt in one library, for tests on machines without a GPU.
// Device memory is host memory, a stream runs at once, a capture collects what a stream would run. Calls of cuDNN and
// cuBLASLt are written, in numbers, to the file that FAKE_LOG names. Other variables:
//   FAKE_STREAMS      a file to write what each stream runs, records and waits for
//   FAKE_DEVICES      how many GPUs there are (1)
//   FAKE_BYTES        how much device memory there is (1 GiB)
//   FAKE_ENGINES      what the heuristics propose, "id:note,note;id:..."; an id below 0 does not build, one above
//                     999 does not run; engines of the fallback list stand behind a '|'
//   FAKE_FAULT        what an engine does otherwise than before: "build 72", "run 72", "workspace 72", "knobs 72"
//   FAKE_CUDNN        cuDNN's version (91900)
#ifndef SAMEBITS_FAKE_H
#define SAMEBITS_FAKE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../symbols.h"

#define DECLARE(result, name, parameters) result name parameters;
SB_CUDA_SYMBOLS(DECLARE)
SB_CUDA_OPTIONAL(DECLARE)
SB_NVRTC_SYMBOLS(DECLARE)
SB_CUDNN_SYMBOLS(DECLARE)
SB_CUBLAS_SYMBOLS(DECLARE)
SB_CUBLASLT_SYMBOLS(DECLARE)

// One thing that a stream runs.
typedef struct op {
  void (*run)(const struct op *);
  uint64_t words[6];
} op;

const char *setting(const char *name, const char *otherwise);
FILE *record(void);  // the log to append to, or NULL
unsigned enqueue(struct CUstream_st *s, op o);

#endif
