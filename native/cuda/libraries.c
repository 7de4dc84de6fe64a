#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tables.h"

static void set_error(sb_error *e, int library, unsigned code) {
  e->library = library;
  e->code = code;
  e->command = -1;
}

int sb_fail(sb_libraries *l, int library, unsigned code, const char *call, sb_error *e) {
  const char *name = NULL, *detail = NULL;
  char last[512] = "";
  set_error(e, library, code);
  switch (library) {
    case SB_CUDA:
      l->cuGetErrorName(code, &name);
      l->cuGetErrorString(code, &detail);
      break;
    case SB_NVRTC:
      name = l->nvrtcGetErrorString(code);
      break;
    case SB_CUDNN:
      name = l->cudnnGetErrorString(code);
      l->cudnnGetLastErrorString(last, sizeof last);
      detail = last;
      break;
    case SB_CUBLAS:
    case SB_CUBLASLT:
      name = l->cublasGetStatusName(code);
      break;
  }
  snprintf(e->text, sizeof e->text, "%s: %s (%u)%s%s", call, name ? name : "unknown status", code,
           detail && *detail ? ": " : "", detail ? detail : "");
  return -1;
}

void *sb_zeroed(size_t count, size_t size) {
  void *p = calloc(count, size);
  if (p == NULL) {
    fprintf(stderr, "samebits: no host memory for %zu bytes\n", count * size);
    abort();
  }
  return p;
}

sb_libraries *sb_libraries_new(void) { return sb_zeroed(1, sizeof(sb_libraries)); }

void sb_libraries_free(sb_libraries *l) { free(l); }

static void *open_library(const char *path, int flags, int library, sb_error *e) {
  void *handle = dlopen(path, flags);
  if (handle == NULL) {
    const char *why = dlerror();
    set_error(e, library, 0);
    snprintf(e->text, sizeof e->text, "%s", why ? why : "dlopen gave no reason");
  }
  return handle;
}

int sb_open(const char *path, sb_error *e) {
  return open_library(path, RTLD_LAZY | RTLD_LOCAL, SB_LOADER, e) == NULL ? -1 : 0;
}

#define SB_RESOLVE(result, name, parameters)   \
  *(void **)(&l->name) = dlsym(handle, #name); \
  if (l->name == NULL && missing == NULL) missing = #name;
#define SB_RESOLVE_OPTIONAL(result, name, parameters) *(void **)(&l->name) = dlsym(handle, #name);

int sb_load(sb_libraries *l, int library, const char *path, sb_error *e) {
  const char *missing = NULL;
  void *handle = open_library(path, RTLD_LAZY | RTLD_LOCAL, library, e);
  if (handle == NULL) return -1;
  switch (library) {
    case SB_CUDA:
      SB_CUDA_SYMBOLS(SB_RESOLVE)
      SB_CUDA_OPTIONAL(SB_RESOLVE_OPTIONAL)
      break;
    case SB_NVRTC:
      SB_NVRTC_SYMBOLS(SB_RESOLVE)
      break;
    case SB_CUDNN:
      SB_CUDNN_SYMBOLS(SB_RESOLVE)
      break;
    case SB_CUBLAS:
      SB_CUBLAS_SYMBOLS(SB_RESOLVE)
      break;
    case SB_CUBLASLT:
      SB_CUBLASLT_SYMBOLS(SB_RESOLVE)
      break;
  }
  if (missing != NULL) {
    set_error(e, library, 0);
    snprintf(e->text, sizeof e->text, "it has no symbol %s", missing);
    return -1;
  }
  l->handles[library] = handle;
  return 0;
}

int sb_loaded(sb_libraries *l, int library) { return l->handles[library] != NULL; }

int sb_path(sb_libraries *l, int library, char *path, size_t n) {
  struct link_map *map = NULL;
  if (l->handles[library] == NULL || dlinfo(l->handles[library], RTLD_DI_LINKMAP, &map) != 0 || map == NULL) return -1;
  snprintf(path, n, "%s", map->l_name);
  return 0;
}

int sb_version(sb_libraries *l, int library, int *version, sb_error *e) {
  int major = 0, minor = 0, patch = 0;
  switch (library) {
    case SB_CUDA:
      SB_TRY(l, SB_CUDA, cuDriverGetVersion, (version), e);
      return 0;
    case SB_NVRTC:
      SB_TRY(l, SB_NVRTC, nvrtcVersion, (&major, &minor), e);
      *version = 1000 * major + 10 * minor;
      return 0;
    case SB_CUDNN:
      *version = (int)l->cudnnGetVersion();
      return 0;
    case SB_CUBLAS:
      SB_TRY(l, SB_CUBLAS, cublasGetProperty, (0, &major), e);
      SB_TRY(l, SB_CUBLAS, cublasGetProperty, (1, &minor), e);
      SB_TRY(l, SB_CUBLAS, cublasGetProperty, (2, &patch), e);
      *version = 10000 * major + 100 * minor + patch;
      return 0;
    case SB_CUBLASLT:
      *version = (int)l->cublasLtGetVersion();
      return 0;
  }
  set_error(e, library, 0);
  snprintf(e->text, sizeof e->text, "no library number %d", library);
  return -1;
}
