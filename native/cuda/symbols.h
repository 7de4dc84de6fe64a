// The functions that we take from NVIDIA's libraries, by their exported names. The libraries' own headers are not
// needed to build: opaque structs keep NVIDIA's tags and enumerations are unsigned, so that a test can hold every
// prototype and constant below against the real headers (testdata/headers.c).
#ifndef SAMEBITS_SYMBOLS_H
#define SAMEBITS_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;
struct CUgraphNode_st;
struct CUuuid_st;
struct CUDA_MEMCPY3D_st;
struct _nvrtcProgram;
struct cudnnContext;
struct cudnnTensorStruct;
struct cudnnActivationStruct;
struct cublasContext;
struct cublasLtContext;

typedef unsigned long long sb_pointer;  // CUdeviceptr

// Constants of the driver API.
enum {
  SB_OUT_OF_MEMORY = 2,
  SB_INVALID_VALUE = 1,
  SB_NOT_READY = 600,
  SB_ATTRIBUTE_SM_COUNT = 16,
  SB_ATTRIBUTE_MAJOR = 75,
  SB_ATTRIBUTE_MINOR = 76,
  SB_ATTRIBUTE_SHARED_OPTIN = 97,
  SB_FUNCTION_MAX_DYNAMIC_SHARED = 8,
  SB_STREAM_NON_BLOCKING = 1,
  SB_EVENT_DISABLE_TIMING = 2,
  SB_CAPTURE_THREAD_LOCAL = 1,
  SB_HOST_PORTABLE = 1,
  SB_POINTER_MEMORY_TYPE = 2,
  SB_MEMORY_HOST = 1,
  SB_MEMORY_UNIFIED = 4,

  SB_NODE_KERNEL = 0,
  SB_NODE_MEMCPY = 1,
  SB_NODE_MEMSET = 2,
  SB_NODE_HOST = 3,
  SB_NODE_GRAPH = 4,
  SB_NODE_WAIT_EVENT = 6,
  SB_NODE_EVENT_RECORD = 7,
  SB_NODE_ALLOC = 10,
  SB_NODE_FREE = 11,

  // Where CUDA_MEMCPY3D has the type and the address of its source and of its target.
  SB_MEMCPY_BYTES = 200,
  SB_MEMCPY_FROM_TYPE = 32,
  SB_MEMCPY_FROM = 48,
  SB_MEMCPY_TO_TYPE = 120,
  SB_MEMCPY_TO = 136,
};

// X(result, name, parameters)
#define SB_CUDA_SYMBOLS(X)                                                                                           \
  X(unsigned, cuInit, (unsigned))                                                                                    \
  X(unsigned, cuDriverGetVersion, (int *))                                                                           \
  X(unsigned, cuGetErrorName, (unsigned, const char **))                                                             \
  X(unsigned, cuGetErrorString, (unsigned, const char **))                                                           \
  X(unsigned, cuDeviceGetCount, (int *))                                                                             \
  X(unsigned, cuDeviceGet, (int *, int))                                                                             \
  X(unsigned, cuDeviceGetName, (char *, int, int))                                                                   \
  X(unsigned, cuDeviceGetUuid_v2, (struct CUuuid_st *, int))                                                         \
  X(unsigned, cuDeviceGetAttribute, (int *, unsigned, int))                                                          \
  X(unsigned, cuDeviceTotalMem_v2, (size_t *, int))                                                                  \
  X(unsigned, cuDevicePrimaryCtxRetain, (struct CUctx_st **, int))                                                   \
  X(unsigned, cuDevicePrimaryCtxRelease_v2, (int))                                                                   \
  X(unsigned, cuCtxSetCurrent, (struct CUctx_st *))                                                                  \
  X(unsigned, cuCtxGetCurrent, (struct CUctx_st **))                                                                 \
  X(unsigned, cuMemGetInfo_v2, (size_t *, size_t *))                                                                 \
  X(unsigned, cuMemAlloc_v2, (sb_pointer *, size_t))                                                                 \
  X(unsigned, cuMemFree_v2, (sb_pointer))                                                                            \
  X(unsigned, cuMemcpyHtoDAsync_v2, (sb_pointer, const void *, size_t, struct CUstream_st *))                        \
  X(unsigned, cuMemcpyDtoHAsync_v2, (void *, sb_pointer, size_t, struct CUstream_st *))                              \
  X(unsigned, cuMemcpyDtoDAsync_v2, (sb_pointer, sb_pointer, size_t, struct CUstream_st *))                          \
  X(unsigned, cuMemsetD8Async, (sb_pointer, unsigned char, size_t, struct CUstream_st *))                            \
  X(unsigned, cuMemHostRegister_v2, (void *, size_t, unsigned))                                                      \
  X(unsigned, cuMemHostUnregister, (void *))                                                                         \
  X(unsigned, cuMemHostAlloc, (void **, size_t, unsigned))                                                           \
  X(unsigned, cuMemFreeHost, (void *))                                                                               \
  X(unsigned, cuPointerGetAttribute, (void *, unsigned, sb_pointer))                                                 \
  X(unsigned, cuStreamCreate, (struct CUstream_st **, unsigned))                                                     \
  X(unsigned, cuStreamDestroy_v2, (struct CUstream_st *))                                                            \
  X(unsigned, cuStreamSynchronize, (struct CUstream_st *))                                                           \
  X(unsigned, cuStreamWaitEvent, (struct CUstream_st *, struct CUevent_st *, unsigned))                              \
  X(unsigned, cuEventCreate, (struct CUevent_st **, unsigned))                                                       \
  X(unsigned, cuEventRecord, (struct CUevent_st *, struct CUstream_st *))                                            \
  X(unsigned, cuEventQuery, (struct CUevent_st *))                                                                   \
  X(unsigned, cuEventDestroy_v2, (struct CUevent_st *))                                                              \
  X(unsigned, cuModuleLoadData, (struct CUmod_st **, const void *))                                                  \
  X(unsigned, cuModuleUnload, (struct CUmod_st *))                                                                   \
  X(unsigned, cuModuleGetFunction, (struct CUfunc_st **, struct CUmod_st *, const char *))                           \
  X(unsigned, cuFuncSetAttribute, (struct CUfunc_st *, unsigned, int))                                               \
  X(unsigned, cuLaunchKernel,                                                                                        \
    (struct CUfunc_st *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, struct CUstream_st *, \
     void **, void **))                                                                                              \
  X(unsigned, cuStreamBeginCapture_v2, (struct CUstream_st *, unsigned))                                             \
  X(unsigned, cuStreamEndCapture, (struct CUstream_st *, struct CUgraph_st **))                                      \
  X(unsigned, cuGraphGetNodes, (struct CUgraph_st *, struct CUgraphNode_st **, size_t *))                            \
  X(unsigned, cuGraphNodeGetType, (struct CUgraphNode_st *, unsigned *))                                             \
  X(unsigned, cuGraphMemcpyNodeGetParams, (struct CUgraphNode_st *, struct CUDA_MEMCPY3D_st *))                      \
  X(unsigned, cuGraphInstantiateWithFlags, (struct CUgraphExec_st **, struct CUgraph_st *, unsigned long long))      \
  X(unsigned, cuGraphLaunch, (struct CUgraphExec_st *, struct CUstream_st *))                                        \
  X(unsigned, cuGraphDestroy, (struct CUgraph_st *))                                                                 \
  X(unsigned, cuGraphExecDestroy, (struct CUgraphExec_st *))

// Of drivers since 12.4: loads a kernel before its first launch.
#define SB_CUDA_OPTIONAL(X) X(unsigned, cuFuncLoad, (struct CUfunc_st *))

#define SB_NVRTC_SYMBOLS(X)                                                                               \
  X(unsigned, nvrtcVersion, (int *, int *))                                                               \
  X(const char *, nvrtcGetErrorString, (unsigned))                                                        \
  X(unsigned, nvrtcCreateProgram,                                                                         \
    (struct _nvrtcProgram **, const char *, const char *, int, const char *const *, const char *const *)) \
  X(unsigned, nvrtcCompileProgram, (struct _nvrtcProgram *, int, const char *const *))                    \
  X(unsigned, nvrtcDestroyProgram, (struct _nvrtcProgram **))                                             \
  X(unsigned, nvrtcGetProgramLogSize, (struct _nvrtcProgram *, size_t *))                                 \
  X(unsigned, nvrtcGetProgramLog, (struct _nvrtcProgram *, char *))                                       \
  X(unsigned, nvrtcGetCUBINSize, (struct _nvrtcProgram *, size_t *))                                      \
  X(unsigned, nvrtcGetCUBIN, (struct _nvrtcProgram *, char *))

// Constants of cuDNN. Types of elements, descriptors, attributes and their types, notes, modes.
enum {
  SB_DNN_FLOAT = 0,
  SB_DNN_HALF = 2,
  SB_DNN_BFLOAT16 = 9,

  SB_DESC_CONVOLUTION = 1,
  SB_DESC_ENGINE = 2,
  SB_DESC_ENGINECFG = 3,
  SB_DESC_ENGINEHEUR = 4,
  SB_DESC_PLAN = 5,
  SB_DESC_KNOB_CHOICE = 7,
  SB_DESC_OPERATION_FORWARD = 10,
  SB_DESC_OPERATION_BACKWARD_FILTER = 11,
  SB_DESC_OPERATION_BACKWARD_DATA = 12,
  SB_DESC_GRAPH = 15,
  SB_DESC_PACK = 16,
  SB_DESC_TENSOR = 17,

  SB_TYPE_HANDLE = 0,
  SB_TYPE_DATA_TYPE = 1,
  SB_TYPE_INT64 = 3,
  SB_TYPE_FLOAT = 4,
  SB_TYPE_VOID_PTR = 6,
  SB_TYPE_CONVOLUTION_MODE = 7,
  SB_TYPE_HEUR_MODE = 8,
  SB_TYPE_KNOB_TYPE = 9,
  SB_TYPE_NUMERICAL_NOTE = 11,
  SB_TYPE_DESCRIPTOR = 15,

  SB_CONVOLUTION_COMP_TYPE = 100,
  SB_CONVOLUTION_CONV_MODE = 101,
  SB_CONVOLUTION_DILATIONS = 102,
  SB_CONVOLUTION_FILTER_STRIDES = 103,
  SB_CONVOLUTION_POST_PADDINGS = 104,
  SB_CONVOLUTION_PRE_PADDINGS = 105,
  SB_CONVOLUTION_SPATIAL_DIMS = 106,
  SB_ENGINEHEUR_MODE = 200,
  SB_ENGINEHEUR_OPERATION_GRAPH = 201,
  SB_ENGINEHEUR_RESULTS = 202,
  SB_ENGINECFG_ENGINE = 300,
  SB_ENGINECFG_KNOB_CHOICES = 302,
  SB_PLAN_ENGINE_CONFIG = 401,
  SB_PLAN_WORKSPACE_SIZE = 402,
  SB_KNOB_CHOICE_TYPE = 600,
  SB_KNOB_CHOICE_VALUE = 601,
  SB_FORWARD_ALPHA = 700,
  SB_FORWARD_BETA = 701,
  SB_FORWARD_CONV_DESC = 702,
  SB_FORWARD_W = 703,
  SB_FORWARD_X = 704,
  SB_FORWARD_Y = 705,
  SB_BACKWARD_DATA_ALPHA = 706,
  SB_BACKWARD_DATA_BETA = 707,
  SB_BACKWARD_DATA_CONV_DESC = 708,
  SB_BACKWARD_DATA_W = 709,
  SB_BACKWARD_DATA_DX = 710,
  SB_BACKWARD_DATA_DY = 711,
  SB_BACKWARD_FILTER_ALPHA = 712,
  SB_BACKWARD_FILTER_BETA = 713,
  SB_BACKWARD_FILTER_CONV_DESC = 714,
  SB_BACKWARD_FILTER_DW = 715,
  SB_BACKWARD_FILTER_X = 716,
  SB_BACKWARD_FILTER_DY = 717,
  SB_GRAPH_HANDLE = 800,
  SB_GRAPH_OPS = 801,
  SB_TENSOR_BYTE_ALIGNMENT = 900,
  SB_TENSOR_DATA_TYPE = 901,
  SB_TENSOR_DIMENSIONS = 902,
  SB_TENSOR_STRIDES = 903,
  SB_TENSOR_UNIQUE_ID = 906,
  SB_PACK_UNIQUE_IDS = 1000,
  SB_PACK_DATA_POINTERS = 1001,
  SB_PACK_WORKSPACE = 1003,
  SB_ENGINE_OPERATION_GRAPH = 1300,
  SB_ENGINE_GLOBAL_INDEX = 1301,
  SB_ENGINE_NUMERICAL_NOTE = 1303,

  SB_CROSS_CORRELATION = 1,
  SB_HEUR_INSTANT = 0,
  SB_HEUR_FALLBACK = 2,
  SB_NOTE_TENSOR_CORE = 0,
  SB_NOTE_DOWN_CONVERT_INPUTS = 1,
  SB_NOTE_NONDETERMINISTIC = 4,
  SB_BATCHNORM_SPATIAL = 1,
  SB_BATCHNORM_SPATIAL_PERSISTENT = 2,
  SB_BATCHNORM_OPS_BN = 0,
};

#define SB_CUDNN_SYMBOLS(X)                                                                                            \
  X(size_t, cudnnGetVersion, (void))                                                                                   \
  X(const char *, cudnnGetErrorString, (unsigned))                                                                     \
  X(void, cudnnGetLastErrorString, (char *, size_t))                                                                   \
  X(unsigned, cudnnCreate, (struct cudnnContext **))                                                                   \
  X(unsigned, cudnnDestroy, (struct cudnnContext *))                                                                   \
  X(unsigned, cudnnSetStream, (struct cudnnContext *, struct CUstream_st *))                                           \
  X(unsigned, cudnnBackendCreateDescriptor, (unsigned, void **))                                                       \
  X(unsigned, cudnnBackendDestroyDescriptor, (void *))                                                                 \
  X(unsigned, cudnnBackendFinalize, (void *))                                                                          \
  X(unsigned, cudnnBackendSetAttribute, (void *, unsigned, unsigned, int64_t, const void *))                           \
  X(unsigned, cudnnBackendGetAttribute, (void *const, unsigned, unsigned, int64_t, int64_t *, void *))                 \
  X(unsigned, cudnnBackendExecute, (struct cudnnContext *, void *, void *))                                            \
  X(unsigned, cudnnCreateTensorDescriptor, (struct cudnnTensorStruct **))                                              \
  X(unsigned, cudnnDestroyTensorDescriptor, (struct cudnnTensorStruct *))                                              \
  X(unsigned, cudnnSetTensorNdDescriptor, (struct cudnnTensorStruct *, unsigned, int, const int *, const int *))       \
  X(unsigned, cudnnBatchNormalizationForwardInference,                                                                 \
    (struct cudnnContext *, unsigned, const void *, const void *, struct cudnnTensorStruct *const, const void *,       \
     struct cudnnTensorStruct *const, void *, struct cudnnTensorStruct *const, const void *, const void *,             \
     const void *, const void *, double))                                                                              \
  X(unsigned, cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize,                                                \
    (struct cudnnContext *, unsigned, unsigned, struct cudnnTensorStruct *, struct cudnnTensorStruct *,                \
     struct cudnnTensorStruct *, struct cudnnTensorStruct *, struct cudnnActivationStruct *, size_t *))                \
  X(unsigned, cudnnGetBatchNormalizationBackwardExWorkspaceSize,                                                       \
    (struct cudnnContext *, unsigned, unsigned, struct cudnnTensorStruct *, struct cudnnTensorStruct *,                \
     struct cudnnTensorStruct *, struct cudnnTensorStruct *, struct cudnnTensorStruct *, struct cudnnTensorStruct *,   \
     struct cudnnActivationStruct *, size_t *))                                                                        \
  X(unsigned, cudnnGetBatchNormalizationTrainingExReserveSpaceSize,                                                    \
    (struct cudnnContext *, unsigned, unsigned, struct cudnnActivationStruct *, struct cudnnTensorStruct *, size_t *)) \
  X(unsigned, cudnnBatchNormalizationForwardTrainingEx,                                                                \
    (struct cudnnContext *, unsigned, unsigned, const void *, const void *, struct cudnnTensorStruct *, const void *,  \
     struct cudnnTensorStruct *, const void *, struct cudnnTensorStruct *, void *, struct cudnnTensorStruct *,         \
     const void *, const void *, double, void *, void *, double, void *, void *, struct cudnnActivationStruct *,       \
     void *, size_t, void *, size_t))                                                                                  \
  X(unsigned, cudnnBatchNormalizationBackwardEx,                                                                       \
    (struct cudnnContext *, unsigned, unsigned, const void *, const void *, const void *, const void *,                \
     struct cudnnTensorStruct *, const void *, struct cudnnTensorStruct *, const void *, struct cudnnTensorStruct *,   \
     const void *, struct cudnnTensorStruct *, void *, struct cudnnTensorStruct *, void *, struct cudnnTensorStruct *, \
     const void *, const void *, void *, void *, double, const void *, const void *, struct cudnnActivationStruct *,   \
     void *, size_t, void *, size_t))

// Constants of cuBLAS and cuBLASLt.
enum {
  SB_R_32F = 0,
  SB_R_16F = 2,
  SB_R_16BF = 14,
  SB_COMPUTE_32F = 68,
  SB_COMPUTE_32F_FAST_TF32 = 77,
  SB_OP_N = 0,
  SB_OP_T = 1,
  SB_MATMUL_DESC_TRANSA = 3,
  SB_MATMUL_DESC_TRANSB = 4,
  SB_MATMUL_DESC_EPILOGUE = 7,
  SB_MATMUL_DESC_BIAS_POINTER = 8,
  SB_EPILOGUE_DEFAULT = 1,
  SB_EPILOGUE_BIAS = 4,
  SB_MATH_DEFAULT = 0,
  SB_MATH_TF32 = 3,
  SB_GEMM_DEFAULT_TENSOR_OP = 99,
  SB_PREF_MAX_WORKSPACE_BYTES = 1,
  SB_PREF_MIN_ALIGNMENT_A_BYTES = 5,
  SB_PREF_MIN_ALIGNMENT_B_BYTES = 6,
  SB_PREF_MIN_ALIGNMENT_C_BYTES = 7,
  SB_PREF_MIN_ALIGNMENT_D_BYTES = 8,
  SB_ALGO_ID = 0,
  SB_ALGO_TILE_ID = 1,
  SB_ALGO_SPLITK_NUM = 2,
  SB_ALGO_REDUCTION_SCHEME = 3,
  SB_ALGO_CUSTOM_OPTION = 5,
  SB_ALGO_STAGES_ID = 6,
};

// cuBLASLt's types have no tags, so the test of the prototypes takes them from NVIDIA's header.
#ifdef SB_NVIDIA_HEADERS
typedef cublasLtMatmulAlgo_t sb_matmul_algo;
typedef cublasLtMatmulHeuristicResult_t sb_matmul_result;
typedef cublasLtMatmulPreference_t sb_matmul_preference;
typedef cublasLtMatmulDesc_t sb_matmul_desc;
typedef cublasLtMatrixLayout_t sb_matrix_layout;
#else
typedef struct {
  uint64_t data[8];
} sb_matmul_algo;

typedef struct {
  sb_matmul_algo algo;
  size_t workspaceSize;
  unsigned state;
  float wavesCount;
  int reserved[4];
} sb_matmul_result;

typedef void *sb_matmul_preference;
typedef void *sb_matmul_desc;
typedef void *sb_matrix_layout;
#endif

#define SB_CUBLAS_SYMBOLS(X)                                                                                           \
  X(unsigned, cublasCreate_v2, (struct cublasContext **))                                                              \
  X(unsigned, cublasDestroy_v2, (struct cublasContext *))                                                              \
  X(unsigned, cublasSetStream_v2, (struct cublasContext *, struct CUstream_st *))                                      \
  X(unsigned, cublasSetWorkspace_v2, (struct cublasContext *, void *, size_t))                                         \
  X(unsigned, cublasSetMathMode, (struct cublasContext *, unsigned))                                                   \
  X(unsigned, cublasSgemm_v2,                                                                                          \
    (struct cublasContext *, unsigned, unsigned, int, int, int, const float *, const float *, int, const float *, int, \
     const float *, float *, int))                                                                                     \
  X(unsigned, cublasGemmEx,                                                                                            \
    (struct cublasContext *, unsigned, unsigned, int, int, int, const void *, const void *, unsigned, int,             \
     const void *, unsigned, int, const void *, void *, unsigned, int, unsigned, int))                                 \
  X(unsigned, cublasSgemmStridedBatched,                                                                               \
    (struct cublasContext *, unsigned, unsigned, int, int, int, const float *, const float *, int, long long,          \
     const float *, int, long long, const float *, float *, int, long long, int))                                      \
  X(unsigned, cublasGemmStridedBatchedEx,                                                                              \
    (struct cublasContext *, unsigned, unsigned, int, int, int, const void *, const void *, unsigned, int, long long,  \
     const void *, unsigned, int, long long, const void *, void *, unsigned, int, long long, int, unsigned, int))      \
  X(unsigned, cublasSgemv_v2,                                                                                          \
    (struct cublasContext *, unsigned, int, int, const float *, const float *, int, const float *, int, const float *, \
     float *, int))                                                                                                    \
  X(unsigned, cublasGetProperty, (unsigned, int *))                                                                    \
  X(const char *, cublasGetStatusName, (unsigned))

#define SB_CUBLASLT_SYMBOLS(X)                                                                                         \
  X(size_t, cublasLtGetVersion, (void))                                                                                \
  X(unsigned, cublasLtMatmulPreferenceCreate, (sb_matmul_preference *))                                                \
  X(unsigned, cublasLtMatmulPreferenceSetAttribute, (sb_matmul_preference, unsigned, const void *, size_t))            \
  X(unsigned, cublasLtMatmulPreferenceDestroy, (sb_matmul_preference))                                                 \
  X(unsigned, cublasLtMatmulDescCreate, (sb_matmul_desc *, unsigned, unsigned))                                        \
  X(unsigned, cublasLtMatmulDescSetAttribute, (sb_matmul_desc, unsigned, const void *, size_t))                        \
  X(unsigned, cublasLtMatmulDescDestroy, (sb_matmul_desc))                                                             \
  X(unsigned, cublasLtMatrixLayoutCreate, (sb_matrix_layout *, unsigned, uint64_t, uint64_t, int64_t))                 \
  X(unsigned, cublasLtMatrixLayoutDestroy, (sb_matrix_layout))                                                         \
  X(unsigned, cublasLtMatmulAlgoGetHeuristic,                                                                          \
    (struct cublasLtContext *, sb_matmul_desc, sb_matrix_layout, sb_matrix_layout, sb_matrix_layout, sb_matrix_layout, \
     sb_matmul_preference, int, sb_matmul_result *, int *))                                                            \
  X(unsigned, cublasLtMatmulAlgoConfigGetAttribute, (const sb_matmul_algo *, unsigned, void *, size_t, size_t *))      \
  X(unsigned, cublasLtMatmul,                                                                                          \
    (struct cublasLtContext *, sb_matmul_desc, const void *, const void *, sb_matrix_layout, const void *,             \
     sb_matrix_layout, const void *, const void *, sb_matrix_layout, void *, sb_matrix_layout, const sb_matmul_algo *, \
     void *, size_t, struct CUstream_st *))

#endif
