/* Shared by eval_expr.c and eval_logic.c. */
#ifndef KILN_FRONTEND_EVAL_EXPR_H
#define KILN_FRONTEND_EVAL_EXPR_H

#include "frontend/eval.h"

#define STACK_MARGIN 100 /* room that stays free behind what a check asks for */

/* eval_expr.c: operands at `at`, at + 1 (or on top), no undefined ones; the result replaces
 * them. */
void fe_trace_binary(struct fe_state *fe, enum fe_op op, int at);
void fe_trace_unary(struct fe_state *fe, enum fe_op op);
/* A soft error: a table key is a device value. */
void fe_refuse_device_key(struct fe_state *fe, const struct fe_node *n, int key);

/* eval_logic.c: 0 or 1 and nothing pushed, or -1 and the device result pushed. */
int fe_eval_compare(struct fe_state *fe, struct fe_act *A, const struct fe_node *n);
/* `and`, `or`. Pushes the value, or, if half_ok, may push a mask and a value and return true: what
 * `mask and value` is before an `or` completes it. */
bool fe_eval_logic(struct fe_state *fe, struct fe_act *A, const struct fe_node *n, bool half_ok);

#endif
