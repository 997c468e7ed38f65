/* Kernel files: any bytes end in kernels or in diagnostics, within the limits, and what a kernel
 * traces to by default is a module that the verifier accepts. */
#include "tests/fuzz/fuzz.h"

#include "frontend/fe.h"

struct traced {
  struct fe_file *file;
  const struct fe_kernel *kernel;
  struct arena *arena;
  struct diag_sink *diags;
};

static void trace_one(void *user) {
  struct traced *t = user;
  struct fe_config config;
  uint32_t errors = t->diags->n_errors;
  if (!fe_default_config(t->file, t->kernel, t->arena, NULL, &config)) {
    PROMISE(t->diags->n_errors > errors);
    return;
  }
  struct fe_trace_options options = {.config = &config};
  struct ir_module *m = fe_trace(t->file, t->kernel, &options, t->arena);
  PROMISE((m == NULL) == (t->diags->n_errors > errors));
  if (m)
    PROMISE(ir_verify(m, t->diags));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct diag_sink diags;
  if (!diag_init(&diags, &mem_libc))
    return 0;
  struct fe_host host = {.mem = &mem_libc,
                         .diags = &diags,
                         .limits = {.steps = 200000, .memory = (size_t)32 << 20, .ops = 2000},
                         .root = ""};
  struct fe_file *file = fe_load(&host, "input.lua", (const char *)data, size);
  PROMISE((file == NULL) == (diags.n_errors > 0));
  for (uint32_t i = 0; file && i < fe_kernel_count(file) && i < 8; i++) {
    struct arena arena;
    struct oom_trap trap = {0};
    arena_init(&arena, &mem_libc, &trap);
    arena.limit = (size_t)64 << 20;
    struct traced t = {file, fe_kernel_at(file, i), &arena, &diags};
    arena_guard(&arena, trace_one, &t); /* running out of this memory is no crash */
    arena_free(&arena);
  }
  fe_free(file);
  diag_free(&diags);
  return 0;
}
