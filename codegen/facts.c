/* From actual arguments to the facts of their class; see cg.h. */
#include "codegen/cg.h"
#include "ir/range.h"

#define DIM_CLASS                                                                                  \
  256             /* the largest tile extent in use: more divisibility removes no further mask */
#define ACCESS 16 /* bytes of the widest access */

static bool has_fact(const struct ir_module *m, struct sym s) {
  for (uint32_t i = 0; i < m->facts.n; i++)
    if (m->facts.at[i].sym.id == s.id)
      return true;
  return false;
}

static void add_fact(struct ir_module *m, struct expr e, bool is_value, int64_t n) {
  struct ir_fact f = {.sym = expr_at(&m->exprs, e)->sym, .is_value = is_value, .n = n};
  if (!has_fact(m, f.sym) && (is_value || n > 1))
    VEC_PUSH(m->arena, &m->facts, f);
}

static void add_arg(struct ir_module *m, uint32_t k, const struct cg_arg_value *v) {
  const struct ir_arg *a = &m->args.at[k];
  int64_t bytes = dtype_bytes(a->dtype, 1);
  int64_t elems = ACCESS / bytes;
  for (uint32_t d = 0; d < a->rank; d++)
    if (expr_at(&m->exprs, a->dim[d])->op == EXPR_SYM) {
      /* Nothing is a class of its own: the tensor memory unit takes no map of it. */
      if (v->dim[d] == 0)
        add_fact(m, a->dim[d], true, 0);
      else
        add_fact(m, a->dim[d], false, ir_pow2_divisor(v->dim[d], DIM_CLASS));
    }
  for (uint32_t d = 0; d < a->rank; d++) {
    struct expr stride = ir_arg_expr(m, k, "stride", (int)d);
    if (v->stride[d] < 0) /* the tensor memory unit takes no map of it: a class without facts */
      continue;
    if (v->stride[d] != 1)
      add_fact(m, stride, false, ir_pow2_divisor(v->stride[d], elems));
    else if (v->dim[d] != 1)
      add_fact(m, stride, true, 1);
  }
  int64_t align = ACCESS;
  while (align > 1 && v->addr % (uint64_t)align)
    align /= 2;
  if (align > bytes)
    add_fact(m, ir_arg_expr(m, k, "addr", -1), false, align);
}

void cg_facts_from_args(struct ir_module *m, const struct cg_arg_value *args) {
  for (uint32_t k = 0; k < m->args.n; k++)
    if (m->args.at[k].kind != IR_ARG_SCALAR && m->args.at[k].kind != IR_ARG_SCRATCH &&
        m->args.at[k].present && args[k].present)
      add_arg(m, k, &args[k]);
}
