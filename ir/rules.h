/* What a verifier rule sees and how it reports: shared by verify.c and the rules_*.c files.
 *
 * verify.c calls the rule of each op after it has checked what the op table says (operand, result,
 * block and attribute counts, stage), so a rule may rely on those: n_in >= info->n_in where that is
 * not IR_ANY, and so on. Operands are defined values; blocks exist but may be empty or badly
 * terminated. */
#ifndef KILN_IR_RULES_H
#define KILN_IR_RULES_H

#include "ir/ir.h"

/* Elements of one tile. A row of a vocabulary (128256) fits many times; anything larger is a
 * mistake that would only surface as exhausted memory. */
#define IR_MAX_ELEMS ((int64_t)1 << 24)
/* Nested blocks; passes may recurse over them. */
#define IR_MAX_DEPTH 200

enum ir_rule {
#define RULE(id, text) IR_RULE_##id,
#include "ir/rules.def"
  IR_RULE_COUNT
};

struct ir_check {
  const struct ir_module *m;
  struct diag_sink *diags;
  struct ir_op op;
  const struct ir_opnode *n;
  const struct ir_opinfo *info;
  bool ok; /* cleared by ir_rule_fail */
};

/* Reports a broken rule of c->op: location, the op's text name, then the message. */
void ir_rule_fail(struct ir_check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same, keyed by another op (a terminator of the op's blocks). */
void ir_rule_fail_at(struct ir_check *c, struct ir_op at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A type as text for messages, in a buffer of the caller. */
struct ir_type_text {
  char s[128];
};
const char *ir_type_text(struct ir_type t, struct ir_type_text *buf);

/* Reports a view that must not be written: of an `in` argument, or one in which several coordinates
 * stand for one element (rules_view.c). */
void ir_rule_check_written(struct ir_check *c, struct ir_val view);

/* Reports an attribute, if it is there, that dtype t cannot hold. */
void ir_rule_check_num(struct ir_check *c, enum ir_attr_key key, const char *what, enum dtype t);

typedef void (*ir_rule_fn)(struct ir_check *c);
ir_rule_fn ir_rule(enum ir_rule r);

/* rules.c, rules_tile.c, rules_view.c, rules_gather.c, rules_control.c, rules_machine.c */
#define RULE(id, text) void ir_rule_##id(struct ir_check *c);
#include "ir/rules.def"

#endif
