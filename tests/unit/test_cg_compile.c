/* NVRTC accepts what is emitted, on every target, with no register spilled; and the text of a few
 * small kernels is as in tests/golden/cuda (KILN_UPDATE=1 writes it anew: review the
 * difference). */
#include "help_cg.h"
#include "runtime/rt.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static struct help_arena h;
static struct diag_sink diags;
static struct rt_ctx *ctx;
static const char *no_nvrtc; /* why the compiler is not there, or NULL */

enum kind { GEMM, ADD, SOFTMAX, RMSNORM };

struct source {
  const char *name;
  enum kind kind;
  struct cg_gemm g; /* ADD: bn = tile; rows: bm rows, bn columns */
  const char *dims, *layout, *target, *knobs;
};

/* What the reference kernels need, at their default tiles. */
static const struct source compiled[] = {
    {"flagship",
     GEMM,
     {.t = DT_BF16, .bm = 128, .bn = 128, .bk = 64},
     "M=256,N=256,K=256",
     "",
     "sm_90a",
     ""},
    {"wide, ahead",
     GEMM,
     {.t = DT_F16, .bm = 128, .bn = 256, .bk = 64},
     "M=256,N=256,K=256",
     "B=col",
     "sm_90a",
     ""},
    {"edges, epilogue",
     GEMM,
     {.t = DT_BF16,
      .bm = 128,
      .bn = 128,
      .bk = 64,
      .bias = true,
      .residual = true,
      .act = "gelu_tanh"},
     "M=65,N=127,K=33",
     "",
     "sm_90a",
     ""},
    {"columns, odd",
     GEMM,
     {.t = DT_BF16, .bm = 128, .bn = 128, .bk = 64},
     "M=119,N=104,K=24",
     "A=col,B=col",
     "sm_89",
     ""},
    {"one element, strides unknown",
     GEMM,
     {.t = DT_F16, .bm = 128, .bn = 128, .bk = 64, .bias = true, .residual = true, .act = "gelu"},
     "M=1,N=1,K=1",
     "",
     "sm_80",
     ""},
    {"f32",
     GEMM,
     {.t = DT_F32, .bm = 128, .bn = 128, .bk = 64, .bias = true, .act = "silu"},
     "M=65,N=127,K=33",
     "",
     "sm_90a",
     ""},
    {"Ampere",
     GEMM,
     {.t = DT_F16, .bm = 64, .bn = 64, .bk = 32, .act = "relu"},
     "M=64,N=64,K=64",
     "A=col",
     "sm_80",
     ""},
    {"small shared memory",
     GEMM,
     {.t = DT_BF16, .bm = 128, .bn = 128, .bk = 32},
     "M=128,N=128,K=64",
     "",
     "sm_86",
     ""},
    {"consumer Blackwell",
     GEMM,
     {.t = DT_BF16, .bm = 64, .bn = 96, .bk = 48},
     "M=64,N=96,K=96",
     "",
     "sm_120",
     ""},
    {"softmax", SOFTMAX, {.t = DT_BF16, .bm = 1, .bn = 4096}, "M=4,N=4096", "", "sm_90a", ""},
    {"softmax of long rows",
     SOFTMAX,
     {.t = DT_F32, .bm = 1, .bn = 16384},
     "M=4,N=16384",
     "",
     "sm_90a",
     ""},
    {"rmsnorm of odd rows",
     RMSNORM,
     {.t = DT_F16, .bm = 4, .bn = 257},
     "M=9,N=257",
     "X=col",
     "sm_90a",
     ""},
    {"rmsnorm", RMSNORM, {.t = DT_BF16, .bm = 1, .bn = 16384}, "M=4,N=16384", "", "sm_100", ""},
    {"vector_add", ADD, {.t = DT_BF16, .bn = 4096}, "N=8192", "", "sm_90a", ""},
};

static const struct source goldens[] = {
    {"vector_add_f32", ADD, {.t = DT_F32, .bn = 512}, "N=1000", "", "sm_80", ""},
    {"softmax_bf16_2x1024",
     SOFTMAX,
     {.t = DT_BF16, .bm = 2, .bn = 1024},
     "M=4,N=1024",
     "",
     "sm_90a",
     "threads=128"},
    {"gemm_bf16_64x64x32",
     GEMM,
     {.t = DT_BF16, .bm = 64, .bn = 64, .bk = 32, .bias = true},
     "M=128,N=128,K=128",
     "B=col",
     "sm_90a",
     "stages=3,prefetch=1"},
    {"gemm_bf16_warpgroups",
     GEMM,
     {.t = DT_BF16, .bm = 128, .bn = 256, .bk = 64, .residual = true},
     "M=256,N=512,K=256",
     "",
     "sm_90a",
     "warpgroups=2"},
    {"gemm_f32_edges",
     GEMM,
     {.t = DT_F32, .bm = 32, .bn = 32, .bk = 16},
     "M=33,N=31,K=20",
     "A=col",
     "sm_90a",
     "stages=2"},
};

static const char *emit(const struct source *s) {
  struct cg_test t;
  struct strbuf text = {.arena = &h.arena}, out = {.arena = &h.arena};
  if (s->kind == GEMM)
    cg_gemm_text(&text, &s->g);
  else if (s->kind == ADD)
    cg_add_text(&text, s->g.t, s->g.bn);
  else if (s->kind == SOFTMAX)
    cg_softmax_text(&text, s->g.t, s->g.bm, s->g.bn);
  else
    cg_rmsnorm_text(&text, s->g.t, s->g.bm, s->g.bn);
  cg_test_begin(&t, sb_str(&text));
  cg_test_args(&t, s->dims, s->layout, 0, 1);
  if (!cg_test_lower(&t, s->target, s->knobs))
    fail_msg("%s: %s", s->name, cg_test_messages(&t));
  cg_emit(t.machine, (struct cg_emit_options){0}, &out);
  cg_test_end(&t);
  return sb_str(&out);
}

static void nothing_spills(void **state) {
  (void)state;
  if (no_nvrtc) {
    print_message("SKIP: %s\n", no_nvrtc);
    skip();
  }
  for (unsigned i = 0; i < sizeof compiled / sizeof compiled[0]; i++) {
    const struct source *s = &compiled[i];
    struct rt_compile_job job = {.name = s->name, .source = emit(s), .arch = s->target};
    struct rt_compiled out;
    if (rt_compile(ctx, &job, &out) != RT_OK)
      fail_msg("%s: %s\n%s", s->name, help_last_message(&diags), out.log);
    assert_int_equal(out.n_kernels, 1);
    const struct rt_kernel_info *k = &out.kernels[0];
    print_message("%s on %s: %u registers, %.0f ms\n", s->name, s->target, k->regs, out.compile_ms);
    if (k->spill_stores || k->spill_loads || k->stack)
      fail_msg("%s: %u bytes of stack, %u spilled, %u loaded again", s->name, k->stack,
               k->spill_stores, k->spill_loads);
    rt_compiled_free(&out);
  }
}

/* With locations: each #line names the kernel file. */
static void lines_of_the_kernel_file(void **state) {
  (void)state;
  struct cg_test t;
  struct strbuf text = {.arena = &h.arena}, out = {.arena = &h.arena};
  cg_add_text(&text, DT_F32, 256);
  cg_test_begin(&t, sb_str(&text));
  cg_test_args(&t, "N=100", "", 0, 1);
  assert_true(cg_test_lower(&t, "sm_90a", ""));
  cg_emit(t.machine, (struct cg_emit_options){.lineinfo = true, .files = &t.diags}, &out);
  assert_non_null(strstr(sb_str(&out), "\n#line 11 \"test.tir\"\n")); /* the first load */
  cg_test_end(&t);
}

static void golden_sources(void **state) {
  (void)state;
  for (unsigned i = 0; i < sizeof goldens / sizeof goldens[0]; i++) {
    const char *text = emit(&goldens[i]);
    char path[400];
    snprintf(path, sizeof path, "%s/tests/golden/cuda/%s.cu", KILN_SRC_DIR, goldens[i].name);
    if (getenv("KILN_UPDATE")) {
      FILE *f = fopen(path, "wb");
      assert_non_null(f);
      fputs(text, f);
      fclose(f);
      continue;
    }
    FILE *f = fopen(path, "rb");
    if (!f)
      fail_msg("%s is not there: KILN_UPDATE=1 writes it", path);
    char *want = arena_get0(&h.arena, 1 << 18);
    size_t n = fread(want, 1, (1 << 18) - 1, f);
    fclose(f);
    if (n != strlen(text) || memcmp(want, text, n) != 0) {
      size_t at = 0, line = 1;
      for (; want[at] && want[at] == text[at]; at++)
        line += want[at] == '\n';
      fail_msg("%s differs from what is emitted at line %zu: look at it, then KILN_UPDATE=1", path,
               line);
    }
  }
}

int main(void) {
  help_arena_init(&h);
  diag_init(&diags, &mem_libc);
  if (rt_ctx_new(&mem_libc, &diags, NULL, &ctx) != RT_OK)
    return 1;
  struct rt_library_info nvrtc = rt_library_info(ctx, RT_LIB_NVRTC);
  no_nvrtc = nvrtc.loaded ? NULL : nvrtc.why ? nvrtc.why : "NVRTC is not there";
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_spills),
      cmocka_unit_test(lines_of_the_kernel_file),
      cmocka_unit_test(golden_sources),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  rt_ctx_free(ctx);
  diag_free(&diags);
  arena_free(&h.arena);
  return failed;
}
