/* Targets and GPU models, knobs, facts, and what the lowering refuses: by name, with the sum, at
 * the line that asks for it, before anything is compiled. Also: same input, same text; every
 * failing allocation is survived. */
#include "codegen/pass.h"
#include "ir/range.h"
#include "help_cg.h"

#include <cmocka.h>
#include <string.h>

static struct help_arena h;

static const char *gemm_text(struct cg_gemm g) {
  struct strbuf b = {.arena = &h.arena};
  cg_gemm_text(&b, &g);
  return sb_str(&b);
}

static void targets(void **state) {
  (void)state;
  assert_string_equal(cg_target_for_device(9, 0)->name, "sm_90a");
  assert_string_equal(cg_target_for_device(8, 0)->name, "sm_80");
  assert_string_equal(cg_target_for_device(8, 6)->name, "sm_86");
  assert_string_equal(cg_target_for_device(8, 9)->name, "sm_89");
  assert_string_equal(cg_target_for_device(10, 0)->name, "sm_100");
  assert_string_equal(cg_target_for_device(10, 3)->name, "sm_100"); /* runs on later minors */
  assert_string_equal(cg_target_for_device(12, 1)->name, "sm_121");
  assert_null(cg_target_for_device(7, 5));
  assert_null(cg_find_target("sm_75"));
  for (uint32_t i = 0; i < cg_target_count(); i++) {
    const struct cg_target *t = cg_target_at(i);
    assert_ptr_equal(cg_find_target(t->name), t);
    assert_true(t->smem_per_block + t->smem_reserved <= t->smem_per_sm);
  }
  for (uint32_t i = 0; i < cg_gpu_count(); i++)
    assert_non_null(cg_find_target(cg_gpu_at(i)->target));
  assert_int_equal(cg_find_gpu("NVIDIA H200")->sm_count, 132);
  assert_int_equal(cg_find_gpu("H200")->sm_count, 132);
  assert_null(cg_find_gpu("NVIDIA H201"));
}

static void knobs(void **state) {
  (void)state;
  struct cg_schedule s = cg_schedule_auto();
  const char *error = NULL;
  assert_true(cg_is_knob("stages") && !cg_is_knob("BM"));
  assert_true(cg_schedule_set(&s, "stages", 3, &h.arena, &error));
  assert_int_equal(s.knob[CG_KNOB_STAGES], 3);
  assert_false(cg_schedule_set(&s, "stages", 13, &h.arena, &error));
  assert_non_null(strstr(error, "is 13; it must be 1 to 12"));
  assert_false(cg_schedule_set(&s, "threads", 100, &h.arena, &error));
  assert_false(cg_schedule_set(&s, "stagez", 3, &h.arena, &error));
  assert_non_null(strstr(error, "there is no schedule knob `stagez`; there are threads"));
}

static bool has(const struct ir_module *m, const char *sym, bool is_value, int64_t n) {
  for (uint32_t i = 0; i < m->facts.n; i++)
    if (str_eq(ir_sym(m, m->facts.at[i].sym), sym))
      return m->facts.at[i].is_value == is_value && m->facts.at[i].n == n;
  return is_value == false && n == 1; /* no fact */
}

static void facts_of_arguments(void **state) {
  (void)state;
  struct cg_test t;
  cg_test_begin(&t, gemm_text((struct cg_gemm){.t = DT_BF16, .bm = 64, .bn = 64, .bk = 32}));
  struct cg_arg_value v[3] = {
      {true, 4096, {96, 1000}, {1000, 1}},
      {true, 4096 + 8, {512, 1000}, {1, 513}},
      {true, 4096 + 2, {96, 512}, {514, 1}},
  };
  cg_facts_from_args(t.tile, v);
  const struct ir_module *m = t.tile;
  assert_true(has(m, "M", false, 32) && has(m, "K", false, 8) && has(m, "N", false, 256));
  assert_true(has(m, "A.stride0", false, 8) && has(m, "A.stride1", true, 1));
  assert_true(has(m, "A.addr", false, 16) && has(m, "B.addr", false, 8));
  assert_true(has(m, "B.stride0", true, 1) && has(m, "B.stride1", false, 1));
  assert_true(has(m, "C.addr", false, 1) && has(m, "C.stride0", false, 2));
  uint32_t n = m->facts.n;
  cg_facts_from_args(t.tile, v); /* nothing twice */
  assert_int_equal(m->facts.n, n);
  cg_test_end(&t);
  /* Rows that go backwards: nothing is known of their stride, as no tensor map has one. */
  cg_test_begin(&t, gemm_text((struct cg_gemm){.t = DT_BF16, .bm = 64, .bn = 64, .bk = 32}));
  v[0].stride[0] = -1000;
  v[1].stride[0] = -1;
  cg_facts_from_args(t.tile, v);
  m = t.tile;
  assert_true(has(m, "A.stride0", false, 1) && has(m, "B.stride0", false, 1));
  assert_true(has(m, "A.stride1", true, 1) && has(m, "C.stride0", false, 2));
  cg_test_end(&t);
}

/* Masks that facts prove unneeded, as printed on the scheduled stage. */
static void proofs(void **state) {
  (void)state;
  static const struct {
    const char *dims, *want[3];
  } rows[] = {
      {"M=128,N=128,K=64", {"load %0, ", "masks = [0,0], vdim = 1, vec = 8", "masks = [0,0]"}},
      {"M=100,N=128,K=64", {"masks = [1,0], vdim = 1, vec = 8", "masks = [0,0]", "masks = [1,0]"}},
      {"M=128,N=128,K=72", {"masks = [0,1], vdim = 1, vec = 8", "masks = [0,1]", "masks = [0,0]"}},
      {"M=128,N=127,K=63", {"masks = [0,1], vdim = 1, vec = 1", "masks = [1,1]", "masks = [0,1]"}},
  };
  for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct cg_test t;
    cg_test_begin(&t, gemm_text((struct cg_gemm){.t = DT_BF16, .bm = 64, .bn = 64, .bk = 32}));
    cg_test_args(&t, rows[i].dims, "", 0, 1);
    struct cg_options opt = {.target = cg_find_target("sm_80"), .schedule = cg_schedule_auto()};
    opt.stop = IR_SCHEDULED_STAGE;
    cg_test_facts(&t);
    struct ir_module *m = cg_lower(t.tile, &opt, &t.mem.arena, &t.diags);
    assert_non_null(m);
    assert_int_equal(m->stage, IR_SCHEDULED_STAGE);
    struct strbuf text = {.arena = &t.mem.arena};
    ir_print(m, (struct ir_print_options){0}, &text);
    const char *at = sb_str(&text);
    for (int k = 0; k < 3; k++) {
      at = strstr(at, rows[i].want[k]);
      if (!at)
        fail_msg("%s: no `%s` in\n%s", rows[i].dims, rows[i].want[k], sb_str(&text));
      at++;
    }
    cg_test_end(&t);
  }
}

static void refuse(const char *text, const char *target, const char *knobs_, enum diag_id id,
                   const char *want) {
  struct cg_test t;
  cg_test_begin(&t, text);
  cg_test_args(&t, "M=64,N=64,K=64", "", 0, 1);
  assert_false(cg_test_lower(&t, target, knobs_));
  bool found = false;
  for (uint32_t i = 0; i < t.diags.list.n; i++)
    found = found || (t.diags.list.at[i].id == id && strstr(t.diags.list.at[i].message, want));
  if (!found)
    fail_msg("no `%s` in\n%s", want, cg_test_messages(&t));
  cg_test_end(&t);
}

static void refusals(void **state) {
  (void)state;
  struct cg_gemm g = {.t = DT_BF16, .bm = 128, .bn = 128, .bk = 1024};
  refuse(
      gemm_text(g), "sm_90a", "", DIAG_LIMIT,
      "the kernel needs 524288 bytes of shared memory, sm_90a has 232448 for a block: A3 262144 + "
      "B4 262144");
  g.bk = 64;
  refuse(
      gemm_text(g), "sm_86", "stages=4", DIAG_LIMIT,
      "needs 131072 bytes of shared memory, sm_86 has 101376 for a block: A2 4 x 16384 + B3 4 x");
  refuse(gemm_text(g), "sm_90a", "warps_m=1,warps_n=1", DIAG_LIMIT, "with 32 threads a block");
  refuse(gemm_text(g), "sm_90a", "warps_m=8,warps_n=8", DIAG_LIMIT, "at most 1024");
  refuse(gemm_text(g), "sm_90a", "warps_m=3,threads=64", DIAG_LIMIT, "must be the threads");
}

/* Every op of the tile stage is lowered; but merge, which cg_lower takes out first. */
static void ops_without_lowering(void **state) {
  (void)state;
  for (unsigned o = 1; o < IR_OPCODE_COUNT; o++)
    if ((ir_info((enum ir_opcode)o)->stages >> IR_TILE_STAGE & 1) && o != IR_MERGE &&
        !cg_has_lowering((enum ir_opcode)o))
      fail_msg("`%s` has no lowering", ir_info((enum ir_opcode)o)->name);
}

static void same_input_same_text(void **state) {
  (void)state;
  const char *text[2];
  for (int i = 0; i < 2; i++) {
    struct cg_test t;
    struct cg_gemm g = {.t = DT_F16, .bm = 64, .bn = 128, .bk = 32, .bias = true, .act = "silu"};
    cg_test_begin(&t, gemm_text(g));
    cg_test_args(&t, "M=70,N=130,K=100", "B=col", 0, 1);
    assert_true(cg_test_lower(&t, "sm_90a", ""));
    struct strbuf b = {.arena = &h.arena};
    cg_emit(t.machine, (struct cg_emit_options){0}, &b);
    ir_print(t.machine, (struct ir_print_options){0}, &b);
    recipe_print(t.machine->recipe, &b);
    text[i] = sb_str(&b);
    cg_test_end(&t);
  }
  assert_string_equal(text[0], text[1]);
}

/* Lowers and emits with the arena's memory failing at some allocation. */
static bool lower_with(struct help_mem *mem, void *user) {
  struct oom_trap trap = {0};
  struct arena a;
  struct diag_sink diags;
  volatile bool done = false;
  assert_true(diag_init(&diags, &mem_libc));
  arena_init(&a, &mem->alloc, &trap);
  if (!setjmp(trap.env)) {
    struct cg_options opt = {.target = cg_find_target("sm_90a"), .schedule = cg_schedule_auto()};
    opt.stop = IR_MACHINE_STAGE;
    struct ir_module *m = cg_lower(user, &opt, &a, &diags);
    if (m) {
      struct strbuf b = {.arena = &a};
      cg_emit(m, (struct cg_emit_options){0}, &b);
      done = true;
    }
  }
  arena_free(&a);
  diag_free(&diags);
  return done;
}

static void allocations_that_fail(void **state) {
  (void)state;
  struct cg_test t;
  struct cg_gemm g = {.t = DT_BF16, .bm = 64, .bn = 64, .bk = 32, .bias = true};
  cg_test_begin(&t, gemm_text(g));
  cg_test_args(&t, "M=64,N=64,K=64", "", 0, 1);
  cg_test_facts(&t);
  assert_true(help_oom_loop(lower_with, t.tile, false) > 1);
  assert_true(help_oom_loop(lower_with, t.tile, true) > 1);
  cg_test_end(&t);
}

int main(void) {
  help_arena_init(&h);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(targets),
      cmocka_unit_test(knobs),
      cmocka_unit_test(facts_of_arguments),
      cmocka_unit_test(proofs),
      cmocka_unit_test(refusals),
      cmocka_unit_test(ops_without_lowering),
      cmocka_unit_test(same_input_same_text),
      cmocka_unit_test(allocations_that_fail),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  arena_free(&h.arena);
  return failed;
}
