/* The parser's state, shared by parse.c (lines, the module's head) and parse_op.c (ops, blocks). */
#ifndef KILN_IR_PARSE_H
#define KILN_IR_PARSE_H

#include "base/map.h"
#include "ir/lex.h"

/* A block whose `}` has not come yet. owner 0: the body, or the block of an op with an error. */
struct ir_open_block {
  struct ir_block block;
  struct ir_op owner;
  uint32_t index; /* which of the owner's blocks */
  uint32_t line;
};

/* `%name "people's name": type #layout`, and what may stand with it. */
struct ir_named {
  struct ir_span name;
  const char *at;
  struct sym sym;
  struct ir_type type;
  uint32_t layout;
};

struct ir_read_attr {
  struct ir_attr a;
  struct ir_literal literal; /* of NUM attributes, until the dtype is known */
};

struct ir_parser {
  struct ir_lex x;
  struct ir_module *m;
  const char *next, *end; /* what follows the current line */
  struct map values;      /* name -> id of the value; 0: its definition had an error */
  struct map layouts;     /* number in the text -> index */
  struct map res, args;   /* name -> index */
  VEC(struct ir_open_block) stack;
  bool depth_reported;
  uint32_t last_loc_file; /* the file of the last `@"..."` */
  struct sym last_loc_name;
  /* Of the op being read; kept to reuse their memory. */
  VEC(struct ir_named) results, block_args;
  VEC(struct ir_type) types;
  VEC(struct ir_val) in;
  VEC(uint32_t) res_used;
  VEC(struct ir_read_attr) attrs;
};

/* parse.c */
bool ir_parse_layout_ref(struct ir_parser *p, uint32_t *out);
/* `{key = value, ...}` into p->attrs, if one is next. */
bool ir_parse_attrs(struct ir_parser *p);
/* Converts NUM attributes to dtype t. */
bool ir_fit_attrs(struct ir_parser *p, enum dtype t);

/* parse_op.c */
/* `(%a: type, ...)` into p->block_args. */
bool ir_parse_block_args(struct ir_parser *p);
/* Gives p->block_args to block b and makes b the current block. */
bool ir_enter_block(struct ir_parser *p, struct ir_block b, struct ir_op owner, uint32_t index);
/* One line of the body; false after reporting. */
bool ir_parse_body_line(struct ir_parser *p);
/* After an error: what the line defines counts as defined, the block it opens as open. */
void ir_parse_recover(struct ir_parser *p);

#endif
