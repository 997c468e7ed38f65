/* Private to ir/rules*.c: short names for what a rule looks at. */
#ifndef KILN_IR_RULES_IMPL_H
#define KILN_IR_RULES_IMPL_H

#include "ir/resource.h"
#include "ir/rules.h"

static inline struct ir_type in(const struct ir_check *c, uint32_t i) {
  return ir_type_of(c->m, c->n->in[i]);
}
static inline struct ir_type out(const struct ir_check *c, uint32_t i) {
  return ir_type_of(c->m, c->n->out[i]);
}
static inline enum dtype dt(struct ir_type t) {
  return (enum dtype)t.dtype;
}
/* A scalar or a tile. */
static inline bool is_data(struct ir_type t) {
  return t.kind == IR_SCALAR || t.kind == IR_TILE;
}

/* Is there an atomic of this kind and dtype (rules_gather.c)? */
bool ir_has_atomic(const char *kind, enum dtype t);
/* The attribute sem of one whose value is of type t. */
void ir_rule_check_sem(struct ir_check *c, const char *kind, struct ir_type t);

/* ---- machine ops (rules_machine.c) ---- */

/* The op's i-th resource. */
static inline const struct ir_res *ir_rule_res(const struct ir_check *c, uint32_t i) {
  return &c->m->res.at[c->n->res[i]];
}
bool ir_rule_is_scalar(struct ir_type t, enum dtype dt);
/* Operand i, `what`, is a scalar of dtype dt; reports. */
bool ir_rule_want_scalar(struct ir_check *c, uint32_t i, enum dtype dt, const char *what);
/* Operand i is an index of n elements into the fragment: a constant one must leave room. */
void ir_rule_check_index(struct ir_check *c, uint32_t i, const struct ir_res *frag, int64_t n);
/* Operands from `first` on round to t; all results are of t; n elements of t are one access. */
bool ir_rule_check_values(struct ir_check *c, uint32_t first, enum dtype t);
bool ir_rule_check_results(struct ir_check *c, enum dtype t);
void ir_rule_check_width(struct ir_check *c, uint32_t n, enum dtype t);

#endif
