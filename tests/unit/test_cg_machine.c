/* The hand-written machine modules of tests/machine: they parse and verify, print back to
 * themselves, emit the same text each time (tests/golden/cuda/machine_NAME.cu; KILN_UPDATE=1 writes
 * it anew: review the difference), and NVRTC takes them for sm_90a without spills and without
 * serialising wgmma (C75xx, C7602). */
#include "codegen/cg.h"
#include "help_rt.h"
#include "runtime/rt.h"

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name;
  uint32_t regs; /* the block's entry cap, which ptxas reports with set_regs */
} modules[] = {{"gemm_128x256", 168},
               {"gemm_split2", 255},
               {"attention_causal", 168},
               {"attention_full", 168}};
#define N_MODULES (sizeof modules / sizeof modules[0])

struct fixture {
  struct help_arena h;
  struct diag_sink diags;
};

static const char *read_text(struct arena *a, const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  if (!f)
    return NULL;
  char *text = arena_get0(a, 1 << 18);
  *n = fread(text, 1, (1 << 18) - 1, f);
  fclose(f);
  return text;
}

static struct ir_module *load(struct fixture *f, const char *name) {
  char path[400];
  size_t n;
  help_arena_init(&f->h);
  assert_true(diag_init(&f->diags, &mem_libc));
  snprintf(path, sizeof path, "%s/tests/machine/%s.tir", KILN_SRC_DIR, name);
  const char *text = read_text(&f->h.arena, path, &n);
  if (!text)
    fail_msg("%s cannot be read", path);
  uint32_t file = diag_add_file(&f->diags, path, text, n);
  struct ir_module *m = ir_parse(&f->h.arena, &f->diags, file, text, n);
  if (!m || !ir_verify(m, &f->diags))
    fail_msg("%s: %s", path, help_last_message(&f->diags));
  return m;
}

static void unload(struct fixture *f) {
  diag_free(&f->diags);
  arena_free(&f->h.arena);
}

static const char *printed(struct fixture *f, const struct ir_module *m) {
  struct strbuf out = {.arena = &f->h.arena};
  ir_print(m, (struct ir_print_options){0}, &out);
  return sb_str(&out);
}

static const char *emitted(struct fixture *f, const struct ir_module *m) {
  struct strbuf out = {.arena = &f->h.arena};
  cg_emit(m, (struct cg_emit_options){0}, &out);
  return sb_str(&out);
}

static void round_trip(void **state) {
  (void)state;
  for (size_t i = 0; i < N_MODULES; i++) {
    struct fixture f;
    struct ir_module *m = load(&f, modules[i].name);
    const char *text = printed(&f, m);
    struct ir_module *again = ir_parse(&f.h.arena, &f.diags, 0, text, strlen(text));
    struct strbuf why = {.arena = &f.h.arena};
    if (!again || !ir_verify(again, &f.diags))
      fail_msg("%s: %s", modules[i].name, help_last_message(&f.diags));
    if (!ir_equal(m, again, &why))
      fail_msg("%s: %s", modules[i].name, sb_str(&why));
    assert_string_equal(printed(&f, again), text);
    struct ir_module *copy = ir_clone(m, &f.h.arena);
    assert_true(ir_verify(copy, &f.diags));
    assert_string_equal(printed(&f, copy), text);
    assert_string_equal(emitted(&f, m), emitted(&f, again));
    unload(&f);
  }
}

static void golden_sources(void **state) {
  (void)state;
  for (size_t i = 0; i < N_MODULES; i++) {
    struct fixture f;
    const char *text = emitted(&f, load(&f, modules[i].name));
    char path[400];
    size_t n = 0;
    snprintf(path, sizeof path, "%s/tests/golden/cuda/machine_%s.cu", KILN_SRC_DIR,
             modules[i].name);
    if (getenv("KILN_UPDATE")) {
      FILE *out = fopen(path, "wb");
      assert_non_null(out);
      fputs(text, out);
      fclose(out);
    } else {
      const char *want = read_text(&f.h.arena, path, &n);
      if (!want)
        fail_msg("%s is not there: KILN_UPDATE=1 writes it", path);
      size_t at = 0, line = 1;
      for (; want[at] && want[at] == text[at]; at++)
        line += want[at] == '\n';
      if (want[at] != text[at])
        fail_msg("%s differs from what is emitted at line %zu: look at it, then KILN_UPDATE=1",
                 path, line);
    }
    unload(&f);
  }
}

static void nvrtc_keeps_wgmma_in_flight(void **state) {
  (void)state;
  struct diag_sink diags;
  struct rt_ctx *ctx;
  assert_true(diag_init(&diags, &mem_libc));
  assert_int_equal(rt_ctx_new(&mem_libc, &diags, NULL, &ctx), RT_OK);
  struct rt_library_info nvrtc = rt_library_info(ctx, RT_LIB_NVRTC);
  if (!nvrtc.loaded) {
    print_message("SKIP: %s\n", nvrtc.why ? nvrtc.why : "NVRTC is not there");
    rt_ctx_free(ctx);
    diag_free(&diags);
    skip();
  }
  for (size_t i = 0; i < N_MODULES; i++) {
    struct fixture f;
    struct rt_compile_job job = {.name = modules[i].name,
                                 .source = emitted(&f, load(&f, modules[i].name)),
                                 .arch = "sm_90a"};
    struct rt_compiled out;
    if (rt_compile(ctx, &job, &out) != RT_OK)
      fail_msg("%s: %s\n%s", modules[i].name, help_last_message(&diags), out.log);
    assert_int_equal(out.n_kernels, 1);
    const struct rt_kernel_info *k = &out.kernels[0];
    print_message("%s: %u registers, %.0f ms\n", modules[i].name, k->regs, out.compile_ms);
    if (k->spill_stores || k->spill_loads || k->stack || k->regs > modules[i].regs)
      fail_msg("%s: %u registers, %u bytes of stack, %u spilled, %u loaded again", modules[i].name,
               k->regs, k->stack, k->spill_stores, k->spill_loads);
    static const char *const fatal[] = {"C7510", "C7511", "C7512", "C7514", "C7520", "C7602"};
    for (size_t c = 0; c < sizeof fatal / sizeof fatal[0]; c++)
      if (strstr(out.log, fatal[c]))
        fail_msg("%s: %s\n%s", modules[i].name, fatal[c], out.log);
    rt_compiled_free(&out);
    unload(&f);
  }
  rt_ctx_free(ctx);
  diag_free(&diags);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(round_trip),
      cmocka_unit_test(golden_sources),
      cmocka_unit_test(nvrtc_keeps_wgmma_in_flight),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
