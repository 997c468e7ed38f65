/* Private to ir/rules*.c: short names for what a rule looks at. */
#ifndef KILN_IR_RULES_IMPL_H
#define KILN_IR_RULES_IMPL_H

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

#endif
