/* A real GPU for tests of the runtime: opened once a program, or the reason why there is none. */
#ifndef KILN_TESTS_HELP_GPU_H
#define KILN_TESTS_HELP_GPU_H

#include "help_rt.h"

#include "base/recipe.h"
#include "runtime/rt.h"

struct help_gpu {
  struct help_mem mem;
  struct help_arena arena;
  struct diag_sink diags;
  struct rt_ctx *ctx;
  struct rt_device *dev;
  const char *skip_reason; /* NULL: there is a GPU and an NVRTC */
};

/* For the set-up and tear-down of a group: -1 after an error, or a leak. */
int help_gpu_open(struct help_gpu *g);
int help_gpu_close(struct help_gpu *g);
/* Skips the running test, with the reason, where there is no GPU. */
void help_gpu_need(const struct help_gpu *g);
/* Compiles CUDA C for the GPU and loads it. */
struct rt_module *help_gpu_build(struct help_gpu *g, const char *source);
/* Parses a recipe; its first lines, up to the target, are put in. */
struct recipe *help_gpu_recipe(struct help_gpu *g, const char *rest);

/* Fails with the newest diagnostic of G, a struct help_gpu, unless the call gives RT_OK. */
#define HELP_GPU_OK(G, call)                                                                       \
  do {                                                                                             \
    if ((call) != RT_OK)                                                                           \
      fail_msg("%s: %s", #call, help_last_message(&(G)->diags));                                   \
  } while (0)

#endif
