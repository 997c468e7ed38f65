/* Making and changing modules; see ir.h.
 *
 * Operand, result and attribute arrays of an op have room for the next power of two of their
 * count, so that appending one element is amortised without a capacity field. Attributes are kept
 * sorted by key: their order in the text never depends on the order in which they were set. */
#include "base/check.h"
#include "base/num.h"
#include "ir/ir.h"

#include <string.h>

struct ir_module *ir_module_new(struct arena *a, enum ir_stage stage) {
  struct ir_module *m = ARENA_NEW(a, struct ir_module);
  m->arena = a;
  m->syms = symtab_new(a);
  m->stage = stage;
  expr_pool_init(&m->exprs, a, m->syms);
  /* Index 0 of each table is "none". */
  VEC_PUSH(a, &m->values, (struct ir_value){0});
  VEC_PUSH(a, &m->ops, (struct ir_opnode){0});
  VEC_PUSH(a, &m->blocks, (struct ir_blocknode){0});
  VEC_PUSH(a, &m->locs, (struct ir_loc){0});
  VEC_PUSH(a, &m->layouts, NULL);
  VEC_PUSH(a, &m->res, (struct ir_res){0});
  m->body = ir_new_block(m, (struct ir_op){0});
  return m;
}

struct ir_block ir_new_block(struct ir_module *m, struct ir_op parent) {
  struct ir_blocknode n = {.parent = parent};
  VEC_PUSH(m->arena, &m->blocks, n);
  return (struct ir_block){m->blocks.n - 1};
}

static struct ir_val new_value(struct ir_module *m, struct ir_value v) {
  VEC_PUSH(m->arena, &m->values, v);
  return (struct ir_val){m->values.n - 1};
}

struct ir_val ir_add_arg(struct ir_module *m, struct ir_block b, struct ir_type t) {
  struct ir_val v =
      new_value(m, (struct ir_value){.type = t, .block = b, .index = ir_block_at(m, b)->args.n});
  VEC_PUSH(m->arena, &ir_block_at(m, b)->args, v);
  return v;
}

static uint32_t room_for(uint32_t n) {
  uint32_t room = 1;
  while (room < n)
    room *= 2;
  return room;
}

/* Is an array that follows the rule of room_for full with n elements? */
static bool is_full(uint32_t n) {
  return (n & (n - 1)) == 0;
}

static void link_op(struct ir_module *m, struct ir_op o, struct ir_block b, struct ir_op before) {
  struct ir_opnode *n = ir_op_at(m, o);
  struct ir_blocknode *bn = ir_block_at(m, b);
  KILN_ASSERT(!before.id || ir_op_at(m, before)->block.id == b.id);
  n->block = b;
  n->next = before;
  n->prev = before.id ? ir_op_at(m, before)->prev : bn->last;
  if (n->prev.id)
    ir_op_at(m, n->prev)->next = o;
  else
    bn->first = o;
  if (before.id)
    ir_op_at(m, before)->prev = o;
  else
    bn->last = o;
}

static void unlink_op(struct ir_module *m, struct ir_op o) {
  struct ir_opnode *n = ir_op_at(m, o);
  struct ir_blocknode *bn = ir_block_at(m, n->block);
  if (n->prev.id)
    ir_op_at(m, n->prev)->next = n->next;
  else
    bn->first = n->next;
  if (n->next.id)
    ir_op_at(m, n->next)->prev = n->prev;
  else
    bn->last = n->prev;
  n->block.id = n->prev.id = n->next.id = 0;
}

struct ir_op ir_build(struct ir_builder *b, enum ir_opcode opcode, uint32_t n_in,
                      const struct ir_val *in, uint32_t n_out, const struct ir_type *out) {
  struct ir_module *m = b->m;
  KILN_ASSERT(opcode > IR_NO_OP && opcode < IR_OPCODE_COUNT);
  KILN_ASSERT(n_in <= UINT16_MAX && n_out <= UINT16_MAX);
  struct ir_op o = {m->ops.n};
  struct ir_opnode n = {.opcode = opcode, .loc = b->loc};
  if (n_in) {
    n.n_in = (uint16_t)n_in;
    n.in = arena_get(m->arena, room_for(n_in) * sizeof *n.in);
    memcpy(n.in, in, n_in * sizeof *n.in);
  }
  if (n_out) {
    n.n_out = (uint16_t)n_out;
    n.out = arena_get(m->arena, room_for(n_out) * sizeof *n.out);
    for (uint32_t i = 0; i < n_out; i++)
      n.out[i] = new_value(m, (struct ir_value){.type = out[i], .def = o, .index = i});
  }
  uint32_t n_blocks = ir_info(opcode)->n_blocks;
  if (n_blocks) {
    n.n_blocks = (uint16_t)n_blocks;
    n.blocks = arena_get(m->arena, n_blocks * sizeof *n.blocks);
    for (uint32_t i = 0; i < n_blocks; i++)
      n.blocks[i] = ir_new_block(m, o);
  }
  VEC_PUSH(m->arena, &m->ops, n);
  link_op(m, o, b->block, b->before);
  return o;
}

struct ir_val ir_build1(struct ir_builder *b, enum ir_opcode opcode, struct ir_type t,
                        uint32_t n_in, const struct ir_val *in) {
  struct ir_op o = ir_build(b, opcode, n_in, in, 1, &t);
  return ir_op_at(b->m, o)->out[0];
}

static struct ir_val build_const(struct ir_builder *b, enum dtype t, struct ir_attr a) {
  struct ir_type type = ir_scalar(t);
  struct ir_op o = ir_build(b, IR_CONST, 0, NULL, 1, &type);
  ir_set_attr(b->m, o, a);
  return ir_op_at(b->m, o)->out[0];
}

struct ir_val ir_const_int(struct ir_builder *b, enum dtype t, int64_t value) {
  if (dtype_is_float(t))
    return ir_const_num(b, t, (double)value);
  return build_const(b, t, (struct ir_attr){.key = IR_ATTR_value, .i = value});
}

struct ir_val ir_const_num(struct ir_builder *b, enum dtype t, double value) {
  if (dtype_is_float(t))
    return build_const(b, t, (struct ir_attr){.key = IR_ATTR_value, .f = num_round(t, value)});
  int64_t i;
  num_store(DT_S64, &i, 0, value);
  return build_const(b, t, (struct ir_attr){.key = IR_ATTR_value, .i = i});
}

/* Adds or replaces in an array sorted by key. */
static void put_attr(struct ir_module *m, struct ir_attr **attrs, uint16_t *n, struct ir_attr a) {
  KILN_ASSERT(a.key > IR_ATTR_NONE && a.key < IR_ATTR_COUNT);
  if (a.n_ints)
    a.ints = arena_copy(m->arena, a.ints, a.n_ints * sizeof *a.ints);
  uint32_t i = 0;
  while (i < *n && (*attrs)[i].key < a.key)
    i++;
  if (i < *n && (*attrs)[i].key == a.key) {
    (*attrs)[i] = a;
    return;
  }
  if (is_full(*n)) {
    struct ir_attr *more = arena_get(m->arena, room_for(*n + 1u) * sizeof *more);
    if (*n)
      memcpy(more, *attrs, *n * sizeof *more);
    *attrs = more;
  }
  memmove(*attrs + i + 1, *attrs + i, (*n - i) * sizeof **attrs);
  (*attrs)[i] = a;
  ++*n;
}

void ir_set_attr(struct ir_module *m, struct ir_op o, struct ir_attr a) {
  struct ir_opnode *n = ir_op_at(m, o);
  put_attr(m, &n->attrs, &n->n_attrs, a);
}

const struct ir_attr *ir_get_attr(const struct ir_module *m, struct ir_op o, enum ir_attr_key key) {
  const struct ir_opnode *n = ir_op_at(m, o);
  for (uint32_t i = 0; i < n->n_attrs; i++)
    if (n->attrs[i].key == key)
      return &n->attrs[i];
  return NULL;
}

int64_t ir_attr_int(const struct ir_module *m, struct ir_op o, enum ir_attr_key key,
                    int64_t otherwise) {
  const struct ir_attr *a = ir_get_attr(m, o, key);
  return a ? a->i : otherwise;
}

void ir_add_operand(struct ir_module *m, struct ir_op o, struct ir_val v) {
  struct ir_opnode *n = ir_op_at(m, o);
  KILN_ASSERT(n->n_in < UINT16_MAX);
  if (is_full(n->n_in)) {
    struct ir_val *more = arena_get(m->arena, room_for(n->n_in + 1u) * sizeof *more);
    if (n->n_in)
      memcpy(more, n->in, n->n_in * sizeof *more);
    n->in = more;
  }
  n->in[n->n_in++] = v;
}

void ir_set_res(struct ir_module *m, struct ir_op o, uint32_t n, const uint32_t *res) {
  struct ir_opnode *node = ir_op_at(m, o);
  KILN_ASSERT(n <= UINT16_MAX);
  node->res = arena_copy(m->arena, res, n * sizeof *res);
  node->n_res = (uint16_t)n;
}

uint32_t ir_add_res(struct ir_module *m, struct ir_res r) {
  struct ir_res copy = r;
  copy.attrs = NULL;
  copy.n_attrs = 0;
  for (uint32_t i = 0; i < r.n_attrs; i++)
    put_attr(m, &copy.attrs, &copy.n_attrs, r.attrs[i]);
  VEC_PUSH(m->arena, &m->res, copy);
  return m->res.n - 1;
}

uint32_t ir_add_loc(struct ir_module *m, struct diag_loc at, uint32_t up) {
  /* Ops of one statement come in a row. */
  const struct ir_loc *last = &VEC_LAST(&m->locs);
  if (m->locs.n > 1 && last->at.file == at.file && last->at.line == at.line &&
      last->at.col == at.col && last->up == up)
    return m->locs.n - 1;
  struct ir_loc l = {at, up};
  VEC_PUSH(m->arena, &m->locs, l);
  return m->locs.n - 1;
}

uint32_t ir_add_layout(struct ir_module *m, const struct layout *l) {
  for (uint32_t i = 1; i < m->layouts.n; i++)
    if (layout_eq(m->layouts.at[i], l))
      return i;
  struct layout *copy = layout_new(m->arena, l->rank, l->shape);
  for (uint32_t i = 0; i < l->modes.n; i++) {
    VEC_PUSH(m->arena, &copy->modes, l->modes.at[i]);
  }
  VEC_PUSH(m->arena, &m->layouts, copy);
  return m->layouts.n - 1;
}

void ir_remove(struct ir_module *m, struct ir_op o) {
  unlink_op(m, o);
}

void ir_move_before(struct ir_module *m, struct ir_op o, struct ir_block block,
                    struct ir_op before) {
  if (o.id == before.id)
    return;
  unlink_op(m, o);
  link_op(m, o, block, before);
}

static void replace_in_op(void *user, struct ir_module *m, struct ir_op o) {
  const struct ir_val *pair = user;
  struct ir_opnode *n = ir_op_at(m, o);
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i].id == pair[0].id)
      n->in[i] = pair[1];
}

void ir_replace_uses(struct ir_module *m, struct ir_val from, struct ir_val to) {
  struct ir_val pair[2] = {from, to};
  ir_walk(m, m->body, replace_in_op, pair);
}
