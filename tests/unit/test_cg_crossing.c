/* Tiles whose elements change their threads: loads and stores of one tile that lie in memory along
 * different dims are both made as memory wants them, and what lies between costs as many passes
 * over the banks of shared memory as the widths allow. */
#include "codegen/crossing.h"
#include "codegen/schedule.h"
#include "help_cg.h"

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

/* B[n, m] = A[m, n] in tiles of bm x bn. */
static const char *transpose_text(struct strbuf *out, const char *t, int bm, int bn) {
  sb_printf(out,
            "kiln-ir 1 tile\nkernel k {\n  arg A: in %s [M, N]\n  arg B: out %s [N, M]\n"
            "  dims M, N\n  grid cdiv(M, %d), cdiv(N, %d)\n"
            "  body(%%0: view %s(?,?), %%1: view %s(?,?), %%2: index, %%3: index, %%4: index, %%5: "
            "index) {\n    %%6 = const %d : index\n    %%7 = const %d : index\n"
            "    %%8 = mul %%4, %%6 : index\n    %%9 = mul %%5, %%7 : index\n"
            "    %%10 = load %%0, %%8, %%9 : %s(%d,%d)\n"
            "    %%11 = transpose %%10 {perm = [1,0]} : %s(%d,%d)\n"
            "    store %%1, %%9, %%8, %%11\n    return\n  }\n}\n",
            t, t, bm, bn, t, t, bm, bn, t, bm, bn, t, bn, bm);
  return sb_str(out);
}

static const struct {
  const char *name;
  int bytes;
} dtypes[] = {{"bf16", 2}, {"f32", 4}, {"s8", 1}, {"f64", 8}, {"e4m3", 1}, {"s64", 8}};

enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

/* Bytes of the narrowest access to global memory. */
static uint32_t narrowest(const struct ir_module *m) {
  uint32_t least = 16;
  for (struct ir_op o = {1}; o.id < m->ops.n; o.id++) {
    const struct ir_opnode *n = ir_op_at(m, o);
    uint32_t elems = n->opcode == IR_GLOAD ? n->n_out : n->opcode == IR_GSTORE ? n->n_in - 2u : 0;
    if (!n->block.id || !elems)
      continue;
    uint32_t bytes = elems * dtype_bits((enum dtype)ir_type_of(m, n->in[0]).dtype) / 8;
    least = bytes < least ? bytes : least;
  }
  return least;
}

/* The text has a vector instruction for each wide store: what the compiler takes apart is an
 * assignment (f32 transposes ran at 0.70 of a copy instead of 0.93). */
static void check_wide_stores(struct cg_test *t, struct arena *a) {
  struct strbuf text = {.arena = a};
  cg_emit(t->machine, (struct cg_emit_options){0}, &text);
  const char *body = strstr(sb_str(&text), "__global__");
  for (const char *p = body; (p = strstr(p, ") = ")) != NULL; p++) {
    const char *line = p;
    while (line > body && line[-1] != '\n')
      line--;
    bool wide = strstr(line, "*(uint4 *)(") && strstr(line, "*(uint4 *)(") < p;
    if (wide && !(strstr(line, "(smem") && strstr(line, "(smem") < p))
      fail_msg("an assignment stores 16 bytes to global memory: %.*s", (int)strcspn(line, "\n"),
               line);
  }
  assert_non_null(strstr(body, "store_"));
}

/* Whole tiles: accesses of 16 bytes on both sides, no conflict, and each byte is moved once each
 * way, by the reader in accesses of 4 bytes or more. */
static void transposes_meet_no_bank_twice(void **state) {
  (void)state;
  static const int tiles[][2] = {{64, 64}, {32, 64}, {64, 32}, {128, 64}, {128, 128}, {32, 32}};
  for (uint32_t d = 0; d < DTYPES; d++)
    for (uint32_t k = 0; k < sizeof tiles / sizeof tiles[0]; k++) {
      int bm = tiles[k][0], bn = tiles[k][1];
      if (bm * bn * dtypes[d].bytes > 64 * 1024)
        continue;
      struct help_arena h;
      help_arena_init(&h);
      struct strbuf b = {.arena = &h.arena};
      struct cg_test t;
      char dims[32];
      snprintf(dims, sizeof dims, "M=%d,N=%d", 2 * bm, bn);
      cg_test_begin(&t, transpose_text(&b, dtypes[d].name, bm, bn));
      cg_test_args(&t, dims, "", -3, 3);
      assert_true(cg_test_lower(&t, "sm_90a", ""));
      cg_test_compare(&t, 0);
      assert_int_equal(narrowest(t.machine), 16);
      check_wide_stores(&t, &h.arena);
      struct cg_emulation e = cg_test_emulate(&t, EMU_EARLY, 1);
      assert_string_equal(e.error, "");
      uint64_t passes = (uint64_t)(bm * bn * dtypes[d].bytes / 128);
      print_message("%s %dx%d: writes %llu + %llu, reads %llu + %llu passes of %llu\n",
                    dtypes[d].name, bm, bn, (unsigned long long)e.stats.sstore.best,
                    (unsigned long long)e.stats.sstore.extra,
                    (unsigned long long)e.stats.sload.best, (unsigned long long)e.stats.sload.extra,
                    (unsigned long long)passes);
      assert_int_equal(e.stats.sstore.best, passes);
      assert_int_equal(e.stats.sstore.extra, 0);
      assert_int_equal(e.stats.sload.extra, 0);
      assert_true(e.stats.sload.best <= passes * (dtypes[d].bytes == 1 ? 2 : 1));
      cg_test_end(&t);
      arena_free(&h.arena);
    }
}

/* Tails, odd strides and bases, either side in columns, tiles that are no powers of two. */
static void odd_transposes_are_the_interpreters(void **state) {
  (void)state;
  static const char *const layouts[] = {"", "A=pad1", "B=pad3,A=off1", "A=col", "B=col", "B=off2"};
  static const char *const knobs[] = {"", "threads=64", "store=1", "store=0", "threads=256"};
  static const int tiles[][2] = {{64, 64}, {48, 40}, {33, 17}, {1, 96}, {96, 1}, {16, 128}};
  static const char *const dims[] = {"M=65,N=130", "M=33,N=71", "M=1,N=100", "M=128,N=64"};
  uint32_t n = 0;
  for (uint32_t d = 0; d < DTYPES; d++)
    for (uint32_t k = 0; k < sizeof tiles / sizeof tiles[0]; k++)
      for (uint32_t i = 0; i < 6; i++, n++) {
        struct help_arena h;
        help_arena_init(&h);
        struct strbuf b = {.arena = &h.arena};
        struct cg_test t;
        cg_test_begin(&t, transpose_text(&b, dtypes[d].name, tiles[k][0], tiles[k][1]));
        t.what = n;
        cg_test_args(&t, dims[n % 4], layouts[i], -3, 3);
        assert_true(cg_test_lower(&t, "sm_90a", knobs[n % 5]));
        cg_test_compare(&t, 0);
        if (n % 7 == 0)
          cg_test_compare_algebra(&t, EMU_RUNS);
        cg_test_end(&t);
        arena_free(&h.arena);
      }
}

/* C = A + B where B lies in columns: A and C decide how threads hold the tile, and B is loaded as
 * it lies. */
static void a_load_takes_its_own_layout(void **state) {
  (void)state;
  static const char text[] =
      "kiln-ir 1 tile\nkernel k {\n  arg A: in f32 [M, N]\n  arg B: in f32 [M, N]\n"
      "  arg C: out f32 [M, N]\n  dims M, N\n  grid cdiv(M, 32), cdiv(N, 64)\n"
      "  body(%0: view f32(?,?), %1: view f32(?,?), %2: view f32(?,?), %3: index, %4: index, "
      "%5: index, %6: index) {\n    %7 = const 32 : index\n    %8 = const 64 : index\n"
      "    %9 = mul %5, %7 : index\n    %10 = mul %6, %8 : index\n"
      "    %11 = load %0, %9, %10 : f32(32,64)\n    %12 = load %1, %9, %10 : f32(32,64)\n"
      "    %13 = add %11, %12 : f32(32,64)\n    store %2, %9, %10, %13\n    return\n  }\n}\n";
  static const char *const layouts[] = {"", "B=col", "A=col", "C=col", "A=col,B=col"};
  for (uint32_t i = 0; i < 5; i++) {
    struct cg_test t;
    cg_test_begin(&t, text);
    cg_test_args(&t, "M=64,N=128", layouts[i], -9, 9);
    assert_true(cg_test_lower(&t, "sm_90a", ""));
    cg_test_compare(&t, 0);
    assert_int_equal(narrowest(t.machine), 16);
    struct cg_emulation e = cg_test_emulate(&t, EMU_LATE, 1);
    assert_string_equal(e.error, "");
    assert_int_equal(e.stats.sstore.best, 32 * 64 * 4 / 128 * (i == 0 ? 0 : i == 4 ? 2 : 1));
    assert_int_equal(e.stats.sstore.extra + e.stats.sload.extra, 0);
    assert_int_equal(cg_knob_get(t.machine, CG_KNOB_STORE), i == 3);
    cg_test_end(&t);
    cg_test_begin(&t, text);
    cg_test_args(&t, "M=37,N=101", layouts[i], -9, 9);
    assert_true(cg_test_lower(&t, "sm_90a", ""));
    cg_test_compare(&t, 0);
    cg_test_end(&t);
  }
}

/* Beside 16-bit elements, 8 a thread, wider ones take two or more accesses that share sectors: that
 * is no reason to go through shared memory. */
static void widths_may_differ(void **state) {
  (void)state;
  static const char text[] =
      "kiln-ir 1 tile\nkernel k {\n  arg A: in bf16 [N]\n  arg B: in %s [N]\n"
      "  arg C: out %s [N]\n  dims N\n  grid cdiv(N, 2048)\n"
      "  body(%%0: view bf16(?), %%1: view %s(?), %%2: view %s(?), %%3: index, %%4: index) {\n"
      "    %%5 = const 2048 : index\n    %%6 = mul %%4, %%5 : index\n"
      "    %%7 = load %%0, %%6 : bf16(2048)\n    %%8 = cast %%7 : %s(2048)\n"
      "    %%9 = load %%1, %%6 : %s(2048)\n    %%10 = add %%8, %%9 : %s(2048)\n"
      "    store %%2, %%6, %%10\n    return\n  }\n}\n";
  static const char *const wide[] = {"f32", "f64"};
  for (uint32_t i = 0; i < 2; i++) {
    struct help_arena h;
    help_arena_init(&h);
    struct strbuf b = {.arena = &h.arena};
    struct cg_test t;
    const char *w = wide[i];
    sb_printf(&b, text, w, w, w, w, w, w, w);
    cg_test_begin(&t, sb_str(&b));
    cg_test_args(&t, "N=4096", "", -9, 9);
    assert_true(cg_test_lower(&t, "sm_90a", ""));
    cg_test_compare(&t, 0);
    struct cg_emulation e = cg_test_emulate(&t, EMU_LATE, 1);
    assert_string_equal(e.error, "");
    assert_int_equal(e.stats.sstore.best + e.stats.sload.best, 0);
    cg_test_end(&t);
    arena_free(&h.arena);
  }
}

/* Long tiles that are computed again, or loaded, where they are read: the same results, and a
 * thread holds no more than the tile as it was loaded. */
static void reading_again_changes_nothing(void **state) {
  (void)state;
  static const char *const knobs[] = {"threads=64,recompute=1", "threads=64,recompute=0"};
  static const char *const dims[] = {"M=3,N=4096", "M=5,N=3001"};
  struct help_arena h;
  help_arena_init(&h);
  for (uint32_t i = 0; i < 8; i++) {
    struct strbuf b = {.arena = &h.arena};
    struct cg_test t;
    int cols = i & 2 ? 3001 : 4096;
    if (i & 4)
      cg_softmax_text(&b, i & 1 ? DT_F32 : DT_BF16, 1, cols);
    else
      cg_rmsnorm_text(&b, DT_BF16, 1 + (int)(i & 1), cols);
    for (uint32_t k = 0; k < 2; k++) {
      cg_test_begin(&t, sb_str(&b));
      cg_test_args(&t, dims[(i & 2) / 2], "", -3, 3);
      assert_true(cg_test_lower(&t, "sm_90a", knobs[k]));
      uint32_t now = 0;
      for (struct ir_op o = {1}; o.id < t.machine->ops.n; o.id++)
        now += ir_op_at(t.machine, o)->block.id && ir_op_at(t.machine, o)->opcode == IR_RENEW;
      assert_true(k == 0 ? now > 0 : now == 0);
      cg_test_compare(&t, i & 4 && i & 1 ? 0x1p-22 : 0x1p-7);
      cg_test_compare_algebra(&t, EMU_RUNS);
      cg_test_end(&t);
    }
  }
  arena_free(&h.arena);
}

/* What one op alone reads is loaded there only if it asks for each register once: not what is
 * repeated along columns (S), or along rows where a thread has several (R). */
static void what_is_repeated_is_loaded_once(void **state) {
  (void)state;
  static const char text[] =
      "kiln-ir 1 tile\nkernel k {\n  arg X: in bf16 [M, N]\n  arg R: in bf16 [N]\n"
      "  arg S: in f32 [M, 1]\n  arg Y: out bf16 [M, N]\n  dims M, N\n  grid cdiv(M, %d)\n"
      "  body(%%0: view bf16(?,?), %%1: view bf16(?), %%2: view f32(?,1), %%3: view bf16(?,?), "
      "%%4: index, %%5: index, %%6: index) {\n"
      "    %%7 = const %d : index\n    %%8 = mul %%6, %%7 : index\n    %%9 = const 0 : index\n"
      "    %%10 = load %%0, %%8, %%9 : bf16(%d,1024)\n    %%11 = cast %%10 : f32(%d,1024)\n"
      "    %%12 = reduce_max %%11 {axis = 1} : f32(%d,1)\n"
      "    %%13 = broadcast %%12 : f32(%d,1024)\n    %%14 = sub %%11, %%13 : f32(%d,1024)\n"
      "    %%15 = load %%1, %%9 : bf16(1024)\n    %%16 = reshape %%15 : bf16(1,1024)\n"
      "    %%17 = cast %%16 : f32(1,1024)\n    %%18 = broadcast %%17 : f32(%d,1024)\n"
      "    %%19 = mul %%14, %%18 : f32(%d,1024)\n    %%20 = load %%2, %%8, %%9 : f32(%d,1)\n"
      "    %%21 = broadcast %%20 : f32(%d,1024)\n    %%22 = mul %%19, %%21 : f32(%d,1024)\n"
      "    %%23 = cast %%22 : bf16(%d,1024)\n    store %%3, %%8, %%9, %%23\n    return\n  }\n}\n";
  static const char *const layouts[] = {"", "X=col", "R=pad1", "Y=col", "S=pad3,X=off1"};
  static const char *const knobs[] = {"threads=64,recompute=1", "threads=256,recompute=1",
                                      "threads=64,recompute=0"};
  for (int rows = 1; rows <= 4; rows *= 2)
    for (uint32_t i = 0; i < 15; i++) {
      struct help_arena h;
      help_arena_init(&h);
      struct strbuf b = {.arena = &h.arena};
      struct cg_test t;
      int r = rows;
      sb_printf(&b, text, r, r, r, r, r, r, r, r, r, r, r, r, r);
      cg_test_begin(&t, sb_str(&b));
      cg_test_args(&t, i % 2 ? "M=9,N=1024" : "M=11,N=1001", layouts[i % 5], -3, 3);
      assert_true(cg_test_lower(&t, "sm_90a", knobs[i / 5]));
      cg_test_compare(&t, 0x1p-7);
      cg_test_end(&t);
      arena_free(&h.arena);
    }
}

/* The rule, by what a thread holds: kept as compilers like while that leaves an SM its threads. */
static void long_tiles_are_kept_while_they_fit(void **state) {
  (void)state;
  static const struct {
    enum { SOFTMAX, RMSNORM } kernel;
    enum dtype t;
    int cols;
    const char *layout;
    int64_t recompute, blocks;
  } rows[] = {
      {SOFTMAX, DT_BF16, 1024, "", CG_AUTO, 0},
      {SOFTMAX, DT_BF16, 16384, "", CG_AUTO, 2},
      {SOFTMAX, DT_BF16, 32768, "", 1, 2},
      {SOFTMAX, DT_BF16, 65536, "", 1, 1},
      {SOFTMAX, DT_F32, 16384, "", CG_AUTO, 0},
      {SOFTMAX, DT_F32, 32768, "", CG_AUTO, 1},
      {RMSNORM, DT_BF16, 16384, "", CG_AUTO, 2},
      {RMSNORM, DT_BF16, 32768, "", 1, 2},
      {RMSNORM, DT_F32, 16384, "", 1, 2},
      {RMSNORM, DT_F32, 32768, "", 1, 1},
      {SOFTMAX, DT_BF16, 32768, "X=pad1", CG_AUTO, 1}, /* element by element: other registers */
  };
  for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct help_arena h;
    help_arena_init(&h);
    struct strbuf b = {.arena = &h.arena};
    struct cg_test t;
    char dims[32];
    if (rows[i].kernel == SOFTMAX)
      cg_softmax_text(&b, rows[i].t, 1, rows[i].cols);
    else
      cg_rmsnorm_text(&b, rows[i].t, 1, rows[i].cols);
    snprintf(dims, sizeof dims, "M=4,N=%d", rows[i].cols);
    cg_test_begin(&t, sb_str(&b));
    cg_test_args(&t, dims, rows[i].layout, -3, 3);
    assert_true(cg_test_lower(&t, "sm_90a", ""));
    int64_t recompute = cg_knob_get(t.machine, CG_KNOB_RECOMPUTE);
    int64_t blocks = cg_knob_get(t.machine, CG_KNOB_BLOCKS);
    print_message("%s %s %s: recompute %lld, blocks %lld\n",
                  rows[i].kernel == SOFTMAX ? "softmax" : "rmsnorm", dtype_name(rows[i].t), dims,
                  (long long)recompute, (long long)blocks);
    assert_int_equal(recompute, rows[i].recompute);
    assert_true(!rows[i].blocks || blocks == rows[i].blocks);
    cg_test_end(&t);
    arena_free(&h.arena);
  }
}

/* Results of 32 bits on their way to the tensor memory unit: each byte once, no conflict, in panels
 * of 32, 16 and 8 columns. */
static void wide_results_meet_no_bank_twice(void **state) {
  (void)state;
  static const struct {
    int bm, bn, groups;
  } rows[] = {{64, 64, 1}, {128, 256, 2}, {128, 96, 2}, {64, 48, 1}, {64, 40, 1}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct help_arena h;
    struct cg_test t;
    int bm = rows[i].bm, bn = rows[i].bn;
    char dims[48], knobs[48];
    help_arena_init(&h);
    struct strbuf b = {.arena = &h.arena};
    sb_printf(&b,
              "kiln-ir 1 tile\n"
              "kernel wide {\n"
              "  arg A: in bf16 [M, K]\n  arg B: in bf16 [N, K]\n  arg C: out f32 [M, N]\n"
              "  dims M, N, K\n"
              "  fact A.stride0 %% 8\n  fact A.stride1 = 1\n  fact A.addr %% 16\n"
              "  fact B.stride0 %% 8\n  fact B.stride1 = 1\n  fact B.addr %% 16\n"
              "  fact C.stride0 %% 4\n  fact C.stride1 = 1\n  fact C.addr %% 16\n"
              "  grid cdiv(M, %d), cdiv(N, %d)\n"
              "  body(%%0: view bf16(?,?), %%1: view bf16(?,?), %%2: view f32(?,?), %%3: index,"
              " %%4: index, %%5: index, %%6: index, %%7: index) {\n"
              "    %%8 = const %d : index\n    %%9 = mul %%6, %%8 : index\n"
              "    %%10 = const %d : index\n    %%11 = mul %%7, %%10 : index\n"
              "    %%12 = const 0.0 : f32\n    %%13 = splat %%12 : f32(%d,%d)\n"
              "    %%14 = const 0 : index\n    %%15 = const 64 : index\n"
              "    %%16 = for %%17: index = %%14, %%5, %%15 carry(%%18: f32(%d,%d) = %%13)"
              " : f32(%d,%d) {\n"
              "      %%19 = load %%0, %%9, %%17 : bf16(%d,64)\n"
              "      %%20 = load %%1, %%11, %%17 : bf16(%d,64)\n"
              "      %%21 = transpose %%20 {perm = [1,0]} : bf16(64,%d)\n"
              "      %%22 = dot %%19, %%21, %%18 : f32(%d,%d)\n"
              "      yield %%22\n    }\n"
              "    store %%2, %%9, %%11, %%16\n    return\n  }\n}\n",
              bm, bn, bm, bn, bm, bn, bm, bn, bm, bn, bm, bn, bn, bm, bn);
    snprintf(dims, sizeof dims, "M=%d,N=%d,K=64", bm, bn);
    snprintf(knobs, sizeof knobs, "warpgroups=%d", rows[i].groups);
    cg_test_begin(&t, sb_str(&b));
    cg_test_args(&t, dims, "", -3, 3);
    assert_true(cg_test_lower(&t, "sm_90a", knobs));
    struct cg_emulation e = cg_test_emulate(&t, EMU_EARLY, 1);
    assert_string_equal(e.error, "");
    assert_int_equal(e.stats.sstore.best, bm * bn * 4 / 128);
    assert_int_equal(e.stats.sstore.extra, 0);
    cg_test_end(&t);
    arena_free(&h.arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(transposes_meet_no_bank_twice),
      cmocka_unit_test(wide_results_meet_no_bank_twice),
      cmocka_unit_test(odd_transposes_are_the_interpreters),
      cmocka_unit_test(a_load_takes_its_own_layout),
      cmocka_unit_test(widths_may_differ),
      cmocka_unit_test(reading_again_changes_nothing),
      cmocka_unit_test(what_is_repeated_is_loaded_once),
      cmocka_unit_test(long_tiles_are_kept_while_they_fit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
