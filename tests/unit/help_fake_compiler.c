/* An NVRTC that takes every source: the cubin is a header alone, and its log is that of one kernel,
 * `twice_kernel`. See help_fake.h. */
#include "help_fake.h"

#include <string.h>

static const char nvrtc_log[] =
    "ptxas info    : Compiling entry function 'twice_kernel' for 'sm_90a'\n"
    "ptxas info    : Function properties for twice_kernel\n"
    "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 20 registers, 400 bytes cmem[0]\n";

static nvrtcResult n_version(int *major, int *minor) {
  *major = 13;
  *minor = 0;
  return NVRTC_SUCCESS;
}
static const char *n_error(nvrtcResult r) {
  return r ? "an error" : "none";
}
static nvrtcResult n_create(nvrtcProgram *p, const char *source, const char *name, int n,
                            const char *const *headers, const char *const *names) {
  (void)source, (void)name, (void)n, (void)headers, (void)names;
  *p = NULL;
  return NVRTC_SUCCESS;
}
static nvrtcResult n_destroy(nvrtcProgram *p) {
  (void)p;
  return NVRTC_SUCCESS;
}
static nvrtcResult n_compile(nvrtcProgram p, int n, const char *const *options) {
  (void)p, (void)n, (void)options;
  return NVRTC_SUCCESS;
}
static nvrtcResult n_size(nvrtcProgram p, size_t *size) {
  (void)p;
  *size = 64; /* an ELF header, for those who look */
  return NVRTC_SUCCESS;
}
static nvrtcResult n_get(nvrtcProgram p, char *out) {
  (void)p;
  memset(out, 0, 64);
  memcpy(out, "\177ELF", 4);
  return NVRTC_SUCCESS;
}
static nvrtcResult n_log_size(nvrtcProgram p, size_t *size) {
  (void)p;
  *size = sizeof nvrtc_log;
  return NVRTC_SUCCESS;
}
static nvrtcResult n_log(nvrtcProgram p, char *out) {
  (void)p;
  memcpy(out, nvrtc_log, sizeof nvrtc_log);
  return NVRTC_SUCCESS;
}
const struct nvrtc_api fake_compiler = {.nvrtcVersion = n_version,
                                        .nvrtcGetErrorString = n_error,
                                        .nvrtcCreateProgram = n_create,
                                        .nvrtcDestroyProgram = n_destroy,
                                        .nvrtcCompileProgram = n_compile,
                                        .nvrtcGetCUBINSize = n_size,
                                        .nvrtcGetCUBIN = n_get,
                                        .nvrtcGetPTXSize = n_size,
                                        .nvrtcGetPTX = n_get,
                                        .nvrtcGetProgramLogSize = n_log_size,
                                        .nvrtcGetProgramLog = n_log};
