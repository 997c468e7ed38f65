/* Skeletons: synchronisation and addresses without values, in tensors without data. Right code
 * passes whatever the mode, code with an op of synchronisation left out does not, and both quickly:
 * the time of each module is printed. */
#include "help_cg.h"
#include "help_hopper.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool run(const struct ir_module *m, const struct interp_arg *args, uint32_t n,
                enum emu_mode mode, struct diag_sink *diags) {
  struct emu_options opt = {.mode = mode, .seed = 1, .skeleton = true};
  diag_clear(diags);
  return emu_run(m, args, n, &opt, NULL, diags, &mem_libc);
}

/* Every mode; the shortest of them in milliseconds. */
static void passes(const char *name, const struct ir_module *m, const struct interp_arg *args,
                   uint32_t n, struct diag_sink *diags) {
  double best = 1e9;
  for (int mode = 0; mode < EMU_MODES; mode++) {
    double start = now();
    if (!run(m, args, n, (enum emu_mode)mode, diags))
      fail_msg("%s, %s: %s", name, emu_mode_name((enum emu_mode)mode), help_last_message(diags));
    double ms = (now() - start) * 1e3;
    best = ms < best ? ms : best;
  }
  print_message("%s: %.1f ms\n", *name ? name : "default", best);
  assert_true(best < 500); /* of a build with sanitizers, on a busy machine */
}

static void without_data(struct interp_arg *args, uint32_t n) {
  for (uint32_t k = 0; k < n; k++)
    args[k].tensor.data = NULL;
}

/* ---- what the lowering makes ---- */

static const struct {
  const char *knobs, *dims;
  struct cg_gemm g;
} gemms[] = {
    {"", "M=512,N=512,K=4096", {.t = DT_BF16, .bm = 128, .bn = 128, .bk = 32}},
    {"stages=3,store=1", "M=512,N=512,K=4096", {.t = DT_F16, .bm = 64, .bn = 128, .bk = 64}},
    {"stages=1", "M=500,N=510,K=4090", {.t = DT_BF16, .bm = 64, .bn = 64, .bk = 32}},
    {"stages=4", "M=512,N=512,K=2048", {.t = DT_F32, .bm = 64, .bn = 64, .bk = 16}},
};

static uint32_t mutants(const struct ir_module *whole, const struct interp_arg *args, uint32_t n,
                        struct diag_sink *diags, uint32_t *survivors) {
  uint32_t count = 0;
  for (struct ir_op o = {1}; o.id < whole->ops.n; o.id++) {
    enum ir_opcode opcode = ir_op_at(whole, o)->opcode;
    if (!ir_op_at(whole, o)->block.id ||
        (opcode != IR_BARRIER && opcode != IR_PIPE_WAIT && opcode != IR_PIPE_COMMIT))
      continue;
    struct help_arena h;
    help_arena_init(&h);
    /* Ops of a clone are numbered anew: the same place in the order of the walk. */
    struct ir_module *m = ir_clone(whole, &h.arena);
    uint32_t before = 0, seen = 0;
    for (struct ir_op x = {1}; x.id < o.id; x.id++)
      before += ir_op_at(whole, x)->block.id && ir_op_at(whole, x)->opcode == opcode;
    for (struct ir_op x = {1}; x.id < m->ops.n; x.id++)
      if (ir_op_at(m, x)->block.id && ir_op_at(m, x)->opcode == opcode && seen++ == before) {
        ir_remove(m, x);
        break;
      }
    bool ok = run(m, args, n, EMU_LATE, diags) && run(m, args, n, EMU_REVERSED, diags);
    count++;
    *survivors += ok;
    arena_free(&h.arena);
  }
  return count;
}

static void lowered_products(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof gemms / sizeof gemms[0]; k++) {
    struct help_arena h;
    struct cg_test t;
    help_arena_init(&h);
    struct strbuf b = {.arena = &h.arena};
    cg_gemm_text(&b, &gemms[k].g);
    cg_test_begin(&t, sb_str(&b));
    cg_test_args(&t, gemms[k].dims, "", 0, 1);
    assert_true(cg_test_lower(&t, "sm_90a", gemms[k].knobs));
    uint32_t n = t.tile->args.n, survivors = 0;
    struct interp_arg args[16];
    memcpy(args, t.arg, sizeof args);
    without_data(args, n);
    passes(gemms[k].knobs, t.machine, args, n, &t.diags);
    uint32_t all = mutants(t.machine, args, n, &t.diags, &survivors);
    print_message("  %u mutants, %u survive\n", all, survivors);
    assert_true(all > 2 && survivors == 0);
    cg_test_end(&t);
    arena_free(&h.arena);
  }
}

/* ---- written by hand ---- */

static void modules_for_hopper(void **state) {
  (void)state;
  static const struct hopper_case cases[] = {
      {.name = "gemm_128x256", .m = 512, .n = 512, .k = 2048},
      {.name = "gemm_split2", .m = 256, .n = 256, .k = 2048},
      {.name = "attention_full", .bh = 3, .s = 512},
      {.name = "attention_causal", .bh = 3, .s = 512, .causal = true},
  };
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    struct hopper_run r;
    hopper_begin(&r);
    if (!hopper_parse(&r, hopper_text(&r.mem.arena, cases[k].name)))
      fail_msg("%s", hopper_messages(&r));
    hopper_bind(&r, &cases[k]);
    without_data(r.args, r.n);
    passes(cases[k].name, r.m, r.args, r.n, &r.diags);
    hopper_end(&r);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(lowered_products),
                                     cmocka_unit_test(modules_for_hopper)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
