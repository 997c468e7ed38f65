/* See help_gpu.h. */
#include "help_gpu.h"

#include <string.h>

int help_gpu_open(struct help_gpu *g) {
  help_mem_init(&g->mem);
  help_arena_init(&g->arena);
  if (!diag_init(&g->diags, &mem_libc) ||
      rt_ctx_new(&g->mem.alloc, &g->diags, NULL, &g->ctx) != RT_OK)
    return -1;
  if (rt_device_open(g->ctx, 0, &g->dev) != RT_OK || rt_library_need(g->ctx, RT_LIB_NVRTC) != RT_OK)
    g->skip_reason = help_last_message(&g->diags);
  return 0;
}

int help_gpu_close(struct help_gpu *g) {
  rt_device_close(g->dev);
  rt_ctx_free(g->ctx);
  bool leak = g->mem.live_blocks != 0;
  diag_free(&g->diags);
  arena_free(&g->arena.arena);
  return leak ? -1 : 0;
}

void help_gpu_need(const struct help_gpu *g) {
  if (!g->skip_reason)
    return;
  printf("SKIP: %s\n", g->skip_reason);
  skip();
}

struct rt_module *help_gpu_build(struct help_gpu *g, const char *source) {
  struct rt_compile_job job = {
      .name = "test.cu", .source = source, .arch = rt_device_info(g->dev)->arch};
  struct rt_compiled c;
  struct rt_module *m = NULL;
  HELP_GPU_OK(g, rt_compile(g->ctx, &job, &c));
  HELP_GPU_OK(g, rt_module_load(g->dev, c.cubin, c.cubin_size, &m));
  rt_compiled_free(&c);
  return m;
}

struct recipe *help_gpu_recipe(struct help_gpu *g, const char *rest) {
  struct arena *a = &g->arena.arena;
  const char *text = arena_printf(a, "kiln-recipe 1\nkernel \"test\"\ntarget \"%s\"\n%s",
                                  rt_device_info(g->dev)->arch, rest);
  struct recipe *r = recipe_parse(a, symtab_new(a), &g->diags, 0, text, strlen(text));
  if (!r)
    fail_msg("%s", help_last_message(&g->diags));
  return r;
}
