/* cg_lower: copies the tile module, writes target and knobs into it, runs the pipeline. */
#include "codegen/pass.h"
#include "codegen/schedule.h"
#include "ir/merge.h"

/* The tile ops that have a lowering: those that cg_lower_op knows (lower_control.c) and
 * emit_scalar.c writes. An op of the table that is not here is refused by name. */
bool cg_has_lowering(enum ir_opcode o) {
  switch ((int)o) {
  case IR_CONST:
  case IR_SPLAT:
  case IR_IOTA:
  case IR_BROADCAST:
  case IR_RESHAPE:
  case IR_TRANSPOSE:
  case IR_ITEM:
  case IR_EXTRACT:
  case IR_CONCAT:
  case IR_VIEW_AT:
  case IR_VIEW_SLICE:
  case IR_VIEW_TRANSPOSE:
  case IR_VIEW_EVERY:
  case IR_VIEW_RESHAPE:
  case IR_DIM:
  case IR_ADD:
  case IR_SUB:
  case IR_MUL:
  case IR_DIV:
  case IR_FLOORDIV:
  case IR_MOD:
  case IR_MIN:
  case IR_MAX:
  case IR_NEG:
  case IR_ABS:
  case IR_FMA:
  case IR_EXP:
  case IR_EXP2:
  case IR_LOG:
  case IR_LOG2:
  case IR_SQRT:
  case IR_RSQRT:
  case IR_TANH:
  case IR_ERF:
  case IR_SIGMOID:
  case IR_SIN:
  case IR_COS:
  case IR_FLOOR:
  case IR_CEIL:
  case IR_ROUND:
  case IR_TRUNC:
  case IR_AND:
  case IR_OR:
  case IR_XOR:
  case IR_NOT:
  case IR_SHL:
  case IR_SHR:
  case IR_EQ:
  case IR_NE:
  case IR_LT:
  case IR_LE:
  case IR_GT:
  case IR_GE:
  case IR_SELECT:
  case IR_CAST:
  case IR_BITCAST:
  case IR_RANDOM:
  case IR_REDUCE_SUM:
  case IR_REDUCE_MAX:
  case IR_REDUCE_MIN:
  case IR_REDUCE_ANY:
  case IR_REDUCE_ALL:
  case IR_ARGMAX:
  case IR_ARGMIN:
  case IR_SCAN_SUM:
  case IR_DOT:
  case IR_LOAD:
  case IR_STORE:
  case IR_GATHER:
  case IR_SCATTER:
  case IR_ATOMIC:
  case IR_ASSERT:
  case IR_PRINT:
  case IR_FOR:
  case IR_IF:
  case IR_WHILE:
  case IR_YIELD:
  case IR_CONDITION:
  case IR_RETURN: return true;
  default: return false;
  }
}

struct op_check {
  struct diag_sink *diags;
  bool said[IR_OPCODE_COUNT]; /* one error per kind of op */
  bool failed;
};

static void check_op(void *user, struct ir_module *m, struct ir_op o) {
  struct op_check *c = user;
  enum ir_opcode opcode = ir_op_at(m, o)->opcode;
  if (cg_has_lowering(opcode) || opcode == IR_MERGE)
    return;
  c->failed = true;
  if (!c->said[opcode])
    cg_error(m, c->diags, o, DIAG_LOWER_UNSUPPORTED,
             "%s is not lowered to the GPU yet: use --on interp, or take it out",
             ir_info(opcode)->name);
  c->said[opcode] = true;
}

/* Ops without a lowering: one error per kind of op, at its first line. */
static bool check_ops(struct ir_module *m, struct diag_sink *diags) {
  struct op_check c = {.diags = diags};
  ir_walk(m, m->body, check_op, &c);
  return !c.failed;
}

/* Passes up to the one that makes machine IR. */
static uint32_t scheduled_passes(const struct ir_pass *p, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (str_eq(p[i].name, "lower_machine"))
      return i;
  return n;
}

struct ir_module *cg_lower(const struct ir_module *tile, const struct cg_options *opt,
                           struct arena *a, struct diag_sink *diags) {
  uint32_t n, features = CG_CP_ASYNC | CG_LDMATRIX;
  const struct ir_pass *passes = cg_pipeline(&n);
  if (opt->passes) {
    passes = opt->passes;
    n = opt->n_passes;
  }
  if ((opt->target->features & features) != features) {
    diag_report(diags, DIAG_ERROR, DIAG_LOWER_UNSUPPORTED, DIAG_NOWHERE,
                "%s lacks cp.async and ldmatrix, which every kernel needs", opt->target->name);
    return NULL;
  }
  struct ir_module *m = ir_clone(tile, a);
  if (opt->schedule.knob[CG_KNOB_SPLIT_K] <= 1)
    ir_drop_merges(m); /* else pass_split_loops.c does, when it has used them */
  if (!check_ops(m, diags))
    return NULL;
  m->target = symtab_get(m->syms, opt->target->name);
  for (unsigned k = 0; k < CG_KNOB_COUNT; k++)
    if (opt->schedule.knob[k] != CG_AUTO)
      cg_knob_put(m, (enum cg_knob)k, opt->schedule.knob[k]);
  for (uint32_t i = 0; i < opt->schedule.n_pins; i++)
    cg_pin_put(m, &opt->schedule.pins[i]);
  if (opt->stop == IR_SCHEDULED_STAGE)
    n = scheduled_passes(passes, n);
  return ir_run_passes(m, passes, n, diags, opt->run) ? m : NULL;
}
