#include <string.h>

#include "tables.h"

static int compile(sb_libraries *l, struct _nvrtcProgram *program, int options, const char *const *option_list,
                   sb_compilation *out, sb_error *e) {
  unsigned status = l->nvrtcCompileProgram(program, options, option_list);
  SB_TRY(l, SB_NVRTC, nvrtcGetProgramLogSize, (program, &out->log_bytes), e);
  out->log = sb_zeroed(out->log_bytes + 1, 1);
  SB_TRY(l, SB_NVRTC, nvrtcGetProgramLog, (program, out->log), e);
  if (status != 0) return sb_fail(l, SB_NVRTC, status, "nvrtcCompileProgram", e);
  SB_TRY(l, SB_NVRTC, nvrtcGetCUBINSize, (program, &out->cubin_bytes), e);
  out->cubin = sb_zeroed(out->cubin_bytes + 1, 1);
  SB_TRY(l, SB_NVRTC, nvrtcGetCUBIN, (program, out->cubin), e);
  return 0;
}

int sb_compile(sb_libraries *l, const char *text, const char *name, int headers, const char *const *header_texts,
               const char *const *header_names, int options, const char *const *option_list, sb_compilation *out,
               sb_error *e) {
  struct _nvrtcProgram *program = NULL;
  memset(out, 0, sizeof *out);
  SB_TRY(l, SB_NVRTC, nvrtcCreateProgram, (&program, text, name, headers, header_texts, header_names), e);
  int result = compile(l, program, options, option_list, out, e);
  l->nvrtcDestroyProgram(&program);
  return result;
}
