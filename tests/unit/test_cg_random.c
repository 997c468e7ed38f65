/* Random tile programs: what they are lowered to, run on the host, gives the interpreter's bits.
 * Left out are programs with results that numerics.md leaves some freedom (sums of floats, math
 * functions) and those the lowering refuses (4-bit types, limits); both are counted. */
#include "codegen/pass.h"
#include "help_cg.h"
#include "help_gen_ir.h"

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAMS 1500

static bool has_freedom(const struct ir_module *m) {
  for (struct ir_op o = {1}; o.id < m->ops.n; o.id++) {
    const struct ir_opnode *n = ir_op_at(m, o);
    if ((n->opcode == IR_REDUCE_SUM || n->opcode == IR_DOT) && n->block.id &&
        dtype_is_float((enum dtype)ir_type_of(m, n->out[0]).dtype))
      return true;
    if (n->opcode >= IR_EXP && n->opcode <= IR_COS && n->opcode != IR_SQRT && n->block.id)
      return true;
  }
  return false;
}

static void programs_keep_their_meaning(void **state) {
  (void)state;
  unsigned ran = 0, free = 0, refused = 0;
  const char *only = getenv("KILN_SEED");
  for (uint64_t seed = only ? strtoull(only, NULL, 10) : 1; seed <= PROGRAMS || only; seed++) {
    struct cg_test t;
    struct gen_ir g = {.seed = seed, .n_ops = 30, .max_depth = 3};
    g.allowed = cg_has_lowering;
    g.any_order = true;
    cg_test_begin_module(&t, NULL);
    t.tile = gen_ir(&t.mem.arena, &g);
    /* One program: generated ones write over each other's outputs. */
    for (uint32_t i = 0; i < t.tile->n_grid; i++)
      t.tile->grid[i] = expr_const(&t.tile->exprs, 1);
    cg_test_simplify(&t);
    cg_test_args(&t, seed % 3 ? "M=13,N=7" : "M=32,N=16", seed % 2 ? "" : "E=col", -3, 4);
    static const char *const knobs[] = {"", "threads=64", "threads=256", "stages=1"};
    if (has_freedom(t.tile)) {
      free++;
    } else if (!cg_test_lower(&t, "sm_90a", knobs[seed % 4])) {
      refused++;
      for (uint32_t i = 0; i < t.diags.list.n; i++)
        if (t.diags.list.at[i].id != DIAG_LIMIT && t.diags.list.at[i].id != DIAG_LOWER_UNSUPPORTED)
          fail_msg("seed %llu: %s", (unsigned long long)seed, cg_test_messages(&t));
    } else {
      t.what = seed;
      if (only) {
        struct strbuf text = {.arena = &t.mem.arena};
        ir_print(t.tile, (struct ir_print_options){0}, &text);
        printf("%s", sb_str(&text));
      }
      cg_test_compare(&t, 0);
      ran++;
    }
    cg_test_end(&t);
    if (only)
      break;
  }
  print_message("%u programs ran, %u refused, %u with freedom left out\n", ran, refused, free);
  if (!only)
    assert_true(ran >= PROGRAMS / 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(programs_keep_their_meaning)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
