/* The `kiln` command with a GPU in host memory: contexts get the fake driver and compiler. The GPU
 * runs one kernel, `twice` of twice.lua: Y = 2 X, both dense, of a multiple of 8 rows. With
 * KILN_FAKE_WRONG in the environment it writes something else. */
#include "help_fake.h"

#include "api/api.h"

#include <stdlib.h>

enum kiln_status __real_kiln_context_new(const struct kiln_context_options *opt,
                                         struct kiln_context **out);
enum kiln_status __wrap_kiln_context_new(const struct kiln_context_options *opt,
                                         struct kiln_context **out);

/* Parameters: X, Y, programs along both axes, strides between rows. */
static void twice(const uint64_t *cells, const CUlaunchConfig *config) {
  (void)config;
  const float *x = (const float *)(uintptr_t)cells[0];
  float *y = (float *)(uintptr_t)cells[1];
  int64_t n = 8 * (int64_t)(uint32_t)cells[2] * (int64_t)cells[5];
  for (int64_t i = 0; i < n; i++)
    y[i] = getenv("KILN_FAKE_WRONG") ? 1 : 2 * x[i];
}

static struct fake_kernel kernels[] = {
    {.name = "twice_kernel", .n_params = 6, .us = 25, .body = twice}, {.name = NULL}};

enum kiln_status __wrap_kiln_context_new(const struct kiln_context_options *opt,
                                         struct kiln_context **out) {
  struct rt_ctx *rt;
  enum kiln_status st = __real_kiln_context_new(opt, out);
  if (st != KILN_OK)
    return st;
  help_fake_start();
  fake.kernels = kernels;
  fake.cc_major = 9;
  fake.cc_minor = 0;
  st = api_runtime(*out, &rt);
  if (st != KILN_OK)
    return st;
  rt_use_cuda(rt, &fake_cuda);
  rt_use_nvrtc(rt, &fake_compiler, 13, 0);
  rt_use_cublas(rt, NULL, NULL);
  rt_use_nvml(rt, NULL);
  return st;
}
