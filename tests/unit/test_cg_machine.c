/* The hand-written machine modules of tests/machine: they parse and verify, print back to
 * themselves, emit the same text each time (tests/golden/cuda/machine_NAME.cu; KILN_UPDATE=1 writes
 * it anew: review the difference), and NVRTC takes them for sm_90a without spills and without
 * serialising wgmma (C75xx, C7602). */
#include "codegen/cg.h"
#include "codegen/recipe.h"
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

/* The lowering's description of a map is the one written by hand. */
static void maps_of_recipes(void **state) {
  (void)state;
  for (size_t i = 0; i < N_MODULES; i++) {
    struct fixture f;
    struct ir_module *m = load(&f, modules[i].name);
    struct strbuf want = {.arena = &f.h.arena}, got = {.arena = &f.h.arena};
    recipe_print(m->recipe, &want);
    struct recipe_step *launch = cg_kernel_step(m);
    unsigned n = 0;
    for (uint32_t k = 0; k < m->params.n; k++)
      if (m->params.at[k].kind == RECIPE_PARAM_TMAP) {
        launch->params.at[k].tmap = cg_recipe_tmap(m->recipe, m, m->params.at[k].res);
        n++;
      }
    recipe_print(m->recipe, &got);
    assert_true(n > 1);
    assert_string_equal(sb_str(&got), sb_str(&want));
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

/* ---- every form of every op ---- */

/* A module around `body`, with resources of these dtypes: fragments of 256 elements' worth. */
static const char *every_form(struct arena *a, const char *acc, const char *x, const char *body) {
  return arena_printf(
      a,
      "kiln-ir 1 machine\nkernel forms {\n  target sm_90a\n  arg X: in %s [A, B, C, D, E]\n"
      "  arg Y: in %s [N]\n  arg Z: out %s [M, N]\n  dims A, B, C, D, E, M, N\n  grid 1\n"
      "  roles consumer {warps = 4, regs = 200}, producer {warps = 4, regs = 24}\n"
      "  layout #1 = [64,256] reg 2:(0,1) 2:(8,0) 32:(0,8) lane 4:(0,2) 8:(1,0) warp 4:(16,0)\n"
      "  layout #2 = [64,32] reg 2:(0,1) 2:(8,0) 4:(0,8) lane 4:(0,2) 8:(1,0) warp 4:(16,0)\n"
      "  res frag $acc: %s(64,256) #1\n  res frag $a: %s(64,32) #2\n"
      "  res buf $s: %s(2,64,64) {slots = 2, bytes = 32768, offset = 0, swizzle_bytes = 64, lbo = "
      "16, sbo = 512}\n"
      "  res tmap $t5: %s(1,1,1,8,16) {arg = X, perm = [4,3,2,1,0], box = [16,8,1,1,1], "
      "swizzle_bytes = 64, l2 = 64}\n"
      "  res tmap $t1: %s(16) {arg = Y, perm = [0], box = [16], swizzle_bytes = 64}\n"
      "  res tmap $t2: %s(8,16) {arg = Z, perm = [1,0], box = [16,8], swizzle_bytes = 64, l2 = "
      "128}\n"
      "  res pipe $p {kind = tma, slots = 2, bytes = 4096, arrivals = 3, offset = 32768}\n"
      "  res pipe $r {kind = role, slots = 3, fills = 2, arrivals = 3, offset = 32800}\n"
      "  res cursor $pp {pipe = p, side = producer}\n  res cursor $pc {pipe = p, side = consumer, "
      "start = 5}\n"
      "  res cursor $rp {pipe = r, side = producer}\n  res cursor $rc {pipe = r, side = consumer}\n"
      "  res bar $b {id = 3, threads = 128}\n"
      "  param tmap $t5\n  param tmap $t1\n  param tmap $t2\n  param i32 = M\n"
      "  recipe {\n    kiln-recipe 1\n    kernel \"forms\"\n    target \"sm_90a\"\n"
      "    arg in \"X\" %s [A, B, C, D, E]\n    arg in \"Y\" %s [N]\n    arg out \"Z\" %s [M, N]\n"
      "    launch \"forms\"\n      grid 1, 1, 1\n      block 256, 1, 1\n      cluster 2, 1, 1\n"
      "      smem 32848\n      regs 0\n"
      "      param tmap 0 [E, D, C, B, A] strides [1, 16, 16, 16, 16] box [16, 8, 1, 1, 1] swizzle "
      "64 l2 64 fill zero\n"
      "      param tmap 1 [N] strides [1] box [16] swizzle 64 l2 0 fill zero\n"
      "      param tmap 2 [N, M] strides [1, 16] box [16, 8] swizzle 64 l2 128 fill zero\n"
      "      param i32 M\n    end\n  }\n"
      "  body(%%x: ptr %s, %%y: ptr %s, %%z: ptr %s, %%m: s32) {\n    %%0 = const 0 : s32\n"
      "    %%t = const true : bool\n    %%f = const 1.5 : f32\n    %%d = desc $s, %%m : s32\n%s"
      "    return\n  }\n}\n",
      x, x, x, acc, x, x, x, x, x, x, x, x, x, x, x, body);
}

static void compile_form(struct rt_ctx *ctx, struct diag_sink *diags, struct arena *a,
                         const char *what, const char *text) {
  struct ir_module *m = ir_parse(a, diags, 0, text, strlen(text));
  if (!m || !ir_verify(m, diags))
    fail_msg("%s: %s", what, help_last_message(diags));
  struct strbuf cuda = {.arena = a};
  cg_emit(m, (struct cg_emit_options){0}, &cuda);
  struct rt_compile_job job = {
      .name = what, .source = sb_str(&cuda), .arch = "sm_90a", .allow_serialized = true};
  struct rt_compiled out;
  if (rt_compile(ctx, &job, &out) != RT_OK)
    fail_msg("%s: %s\n%s", what, help_last_message(diags), out.log);
  rt_compiled_free(&out);
}

static const char ops_body[] =
    "    %c = in_role {role = consumer} : bool\n    pdl_wait\n    pdl_launch\n"
    "    %wg = warpgroup_id : s32\n    %cr = cluster_rank : s32\n    %gs = grid_size : s32\n"
    "    tmap_prefetch $t5\n    pipe_init $p\n    pipe_init $r\n    fence_init\n"
    "    cluster_arrive {sem = relaxed}\n    cluster_wait\n"
    "    if %c {\n      set_regs {count = 200, up = 1}\n      slot_wait $pc\n"
    "      slot_release $pc {behind = 1}\n      slot_release $pc, %cr\n      slot_next $pc\n"
    "      slot_skip $pc, %m\n      slot_wait $rc\n      slot_release $rc {behind = 2}\n"
    "      slot_next $rc\n      bar_sync $b\n"
    "      %at = slot_at $pc, $s : s32\n      ldmatrix $a, $s, %at, %0 {num = 4, trans = 0}\n"
    "      stmatrix $s, $a, %at, %0 {num = 1, trans = 0}\n"
    "      stmatrix $s, $a, %at, %0 {num = 2, trans = 0}\n"
    "      stmatrix $s, $a, %at, %0 {num = 4, trans = 0}\n"
    "      stmatrix $s, $a, %at, %0 {num = 1, trans = 1}\n"
    "      stmatrix $s, $a, %at, %0 {num = 2, trans = 1}\n"
    "      stmatrix $s, $a, %at, %0 {num = 4, trans = 1}\n      pin $a, $acc\n"
    "      %v0 = rload $s, %at, %cr : bf16\n      %v1, %v2 = rload $s, %at, %cr : bf16, bf16\n"
    "      %v3, %v4, %v5, %v6 = rload $s, %at, %cr : bf16, bf16, bf16, bf16\n"
    "      %w0, %w1, %w2, %w3, %w4, %w5, %w6, %w7 = rload $s, %at, %cr : bf16, bf16, bf16, bf16, "
    "bf16, bf16, bf16, bf16\n"
    "      rstore $s, %at, %cr, %t, %v0\n      rstore $s, %at, %cr, %t, %v1, %v2\n"
    "      rstore $s, %at, %cr, %t, %v3, %v4, %v5, %v6\n"
    "      rstore $s, %at, %cr, %t, %w0, %w1, %w2, %w3, %w4, %w5, %w6, %w7\n"
    "      %e = ex2 %f : f32\n      rstore $s, %at, %cr, %t, %e\n"
    "      fence_async\n      tma_store $t2, $s, %at, %0, %m\n"
    "      tma_store $t2, $s, %at, %0, %m {reduce = add}\n      bulk_commit\n"
    "      bulk_wait {pending = 1, read = 1}\n      bulk_wait {pending = 0}\n"
    "      %q = floordiv %m, %gs : s32\n      %qm = mod %q, %cr : s32\n"
    "      bar_arrive $b\n      cluster_arrive {sem = release}\n      cluster_wait\n      yield\n"
    "    } else {\n      set_regs {count = 24, up = 0}\n      slot_acquire $pp\n"
    "      slot_expect $pp\n      %at2 = slot_at $pp, $s : s32\n"
    "      tma_load $s, $pp, $t5, %at2, %0, %m, %0, %m, %0\n"
    "      tma_load $s, $pp, $t1, %at2, %m {hint = evict_last}\n"
    "      tma_load $s, $pp, $t2, %at2, %m, %0, %gs {multicast = 1, hint = evict_first}\n"
    "      tma_load $s, $pp, $t2, %at2, %m, %0, %gs {multicast = 1}\n"
    "      slot_next $pp\n      slot_acquire $rp\n      slot_fill $rp\n      slot_next $rp\n"
    "      cluster_arrive {sem = release}\n      cluster_wait\n      yield\n    }\n";

static void every_form_compiles(void **state) {
  (void)state;
  static const struct {
    const char *acc, *x;
    int k;
    bool int8, turns;
  } units[] = {{"f32", "bf16", 16, false, true},  {"f32", "f16", 16, false, true},
               {"f16", "f16", 16, false, true},   {"f32", "f32", 8, false, false},
               {"f32", "e4m3", 32, false, false}, {"f16", "e5m2", 32, false, false},
               {"s32", "s8", 32, true, false},    {"s32", "u8", 32, true, false}};
  static const int columns[] = {8, 24, 96, 144, 256};
  struct diag_sink diags;
  struct rt_ctx *ctx;
  struct help_arena h;
  help_arena_init(&h);
  assert_true(diag_init(&diags, &mem_libc));
  assert_int_equal(rt_ctx_new(&mem_libc, &diags, NULL, &ctx), RT_OK);
  bool have = rt_library_info(ctx, RT_LIB_NVRTC).loaded;
  if (have)
    compile_form(ctx, &diags, &h.arena, "ops", every_form(&h.arena, "f32", "bf16", ops_body));
  for (size_t i = 0; have && i < sizeof units / sizeof units[0]; i++) {
    struct strbuf b = {.arena = &h.arena};
    sb_puts(&b, "    wgmma_fence\n");
    for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++)
      for (int form = 0; form < (units[i].turns ? 5 : 2); form++)
        sb_printf(&b, "    wgmma $acc, %s, $s, %%0, %s, %%d, %%t {shape = m64n%dk%d%s%s}\n",
                  form % 2 ? "$a" : "$s", form % 2 ? "%0" : "%d", columns[c], units[i].k,
                  form == 2 || form == 4 ? ", trans_a = 1" : "", form > 2 ? ", trans_b = 1" : "");
    sb_puts(&b, "    wgmma_commit\n    wgmma_wait {pending = 0}\n    pin $acc\n");
    const char *what = arena_printf(&h.arena, "%s into %s", units[i].x, units[i].acc);
    compile_form(ctx, &diags, &h.arena, what,
                 every_form(&h.arena, units[i].acc, units[i].x, sb_str(&b)));
  }
  rt_ctx_free(ctx);
  diag_free(&diags);
  arena_free(&h.arena);
  if (!have) {
    print_message("SKIP: NVRTC is not there\n");
    skip();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(round_trip),          cmocka_unit_test(maps_of_recipes),
      cmocka_unit_test(golden_sources),      cmocka_unit_test(nvrtc_keeps_wgmma_in_flight),
      cmocka_unit_test(every_form_compiles),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
