/* Resources of the machine stage: their attributes, what ops do to them (res_uses.def), and facts
 * that follow from several of their attributes at once. */
#ifndef KILN_IR_RESOURCE_H
#define KILN_IR_RESOURCE_H

#include "ir/ir.h"

/* The attribute, or NULL. */
const struct ir_attr *ir_res_attr(const struct ir_res *r, enum ir_attr_key key);
int64_t ir_res_int(const struct ir_res *r, enum ir_attr_key key, int64_t otherwise);
/* The word of a SYM attribute, or "". */
const char *ir_res_word(const struct ir_module *m, const struct ir_res *r, enum ir_attr_key key);
/* The resource of this kind and name, 0 if there is none. */
uint32_t ir_find_res(const struct ir_module *m, enum ir_res_kind kind, struct sym name);

/* Elements of a fragment that each thread holds; 0 without a layout. */
uint32_t ir_frag_elems(const struct ir_module *m, const struct ir_res *frag);
/* The pipe of a cursor, 0 if its attribute names none. */
uint32_t ir_cursor_pipe(const struct ir_module *m, const struct ir_res *cursor);
/* Is it the producer's? */
bool ir_cursor_produces(const struct ir_module *m, const struct ir_res *cursor);
/* Does the pipe have mbarriers (kind tma or role)? */
bool ir_pipe_has_barriers(const struct ir_module *m, const struct ir_res *pipe);
/* The argument of a tensor map (index into m->args); false if its attribute names none. */
bool ir_tmap_arg(const struct ir_module *m, const struct ir_res *tmap, uint32_t *arg);
/* The role of this name; false if there is none. */
bool ir_find_role(const struct ir_module *m, struct sym name, uint32_t *role);

/* ---- what ops do to resources ---- */

enum ir_use_access { IR_ACCESS_NONE = 0, IR_ACCESS_READ = 1, IR_ACCESS_WRITE = 2 };

#define IR_MAX_USES 4

struct ir_res_use {
  uint32_t kinds; /* bit per enum ir_res_kind */
  uint8_t access; /* enum ir_use_access */
  bool optional, many;
};

/* A row of res_uses.def. */
struct ir_res_uses {
  const char *text; /* "a buffer and its pipe" */
  uint8_t n;
  struct ir_res_use use[IR_MAX_USES];
};

/* NULL: the op names no resources. */
const struct ir_res_uses *ir_uses(enum ir_opcode opcode);
/* What the op does to the contents of its i-th resource. */
uint8_t ir_res_access(const struct ir_opnode *n, uint32_t i);

#endif
