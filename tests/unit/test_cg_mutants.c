/* Keeps the other tests of lowerings honest: each barrier is taken out in turn, each wait leaves
 * one group more open, each commit is left out; the executor of machine IR must report every such
 * mutant. Survivors that are equivalent are listed by place, with the reason. */
#include "help_cg.h"

#include <cmocka.h>
#include <string.h>

struct subject {
  const char *name, *dims, *layout, *knobs;
  int kind; /* 0 gemm, 1 softmax */
  struct cg_gemm g;
  uint32_t expect;     /* mutants */
  uint32_t equivalent; /* of these, survivors, and why: */
  const char *why;
};

static const struct subject subjects[] = {
    {"gemm",
     "M=32,N=64,K=128",
     "",
     "stages=3,warps_m=1,warps_n=2",
     0,
     {.t = DT_BF16, .bm = 32, .bn = 64, .bk = 32},
     0,
     0,
     NULL},
    {"gemm ahead, stored through shared memory",
     "M=64,N=64,K=200",
     "A=col",
     "stages=2,prefetch=1,store=1",
     0,
     {.t = DT_F16, .bm = 64, .bn = 64, .bk = 32, .residual = true},
     0,
     0,
     NULL},
    {"gemm of one slot",
     "M=32,N=32,K=96",
     "",
     "stages=1",
     0,
     {.t = DT_BF16, .bm = 32, .bn = 32, .bk = 32},
     0,
     0,
     NULL},
    {"gemm in f32",
     "M=32,N=32,K=96",
     "B=col",
     "stages=4",
     0,
     {.t = DT_F32, .bm = 32, .bn = 32, .bk = 16},
     0,
     0,
     NULL},
    {"gemm by scalar copies",
     "M=33,N=31,K=65",
     "A=off1,B=pad1",
     "stages=3",
     0,
     {.t = DT_BF16, .bm = 32, .bn = 32, .bk = 32},
     0,
     0,
     NULL},
    {"softmax over warps", "M=3,N=512", "", "threads=128", 1, {.bm = 2, .bn = 512}, 0, 0, NULL},
};

static void make(const struct subject *s, struct cg_test *t) {
  struct help_arena h;
  help_arena_init(&h);
  struct strbuf b = {.arena = &h.arena};
  if (s->kind == 0)
    cg_gemm_text(&b, &s->g);
  else
    cg_softmax_text(&b, DT_F32, s->g.bm, s->g.bn);
  cg_test_begin(t, sb_str(&b));
  cg_test_args(t, s->dims, s->layout, -2, 3);
  assert_true(cg_test_lower(t, "sm_90a", s->knobs));
  arena_free(&h.arena);
}

/* Breaks the n-th thing that can be broken; false if there are fewer. */
static bool mutate(struct ir_module *m, uint32_t n, char *what, size_t size) {
  for (struct ir_op o = {1}; o.id < m->ops.n; o.id++) {
    struct ir_opnode *x = ir_op_at(m, o);
    bool hit = x->block.id && (x->opcode == IR_BARRIER || x->opcode == IR_PIPE_WAIT ||
                               x->opcode == IR_PIPE_COMMIT);
    if (!hit || n--)
      continue;
    snprintf(what, size, "%s (op %u)", ir_info(x->opcode)->name, o.id);
    if (x->opcode == IR_PIPE_WAIT)
      ir_set_attr(
          m, o,
          (struct ir_attr){.key = IR_ATTR_pending, .i = ir_attr_int(m, o, IR_ATTR_pending, 0) + 1});
    else
      ir_remove(m, o);
    return true;
  }
  return false;
}

static void mutants_are_reported(void **state) {
  (void)state;
  uint32_t total = 0;
  for (unsigned i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
    const struct subject *s = &subjects[i];
    uint32_t survivors = 0;
    for (uint32_t n = 0;; n++) {
      struct cg_test t;
      char what[80];
      make(s, &t);
      if (n == 0)
        cg_test_compare(&t, 1e-6); /* unharmed, it is right */
      bool made = mutate(t.machine, n, what, sizeof what);
      struct mach_result r = made ? cg_test_run(&t) : (struct mach_result){.ok = false};
      cg_test_end(&t);
      if (!made)
        break;
      total++;
      survivors += r.ok;
      if (r.ok)
        print_message("%s: %s: not reported\n", s->name, what);
    }
    if (survivors != s->equivalent)
      fail_msg("%s: %u mutants survive, %u are known to be equivalent", s->name, survivors,
               s->equivalent);
  }
  print_message("%u mutants\n", total);
  assert_true(total > 30);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(mutants_are_reported)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
