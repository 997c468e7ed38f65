/* Taps; see tap.h.
 *
 * The store is no branch: its offset along the first dim is 0 in the program and iteration that are
 * asked for, and the dim's extent elsewhere, where every element is out of range. A `for` tells its
 * iteration by its index; a `while` gets a counter carried along. */
#include "ir/tap.h"

#include "base/check.h"

#include <string.h>

uint32_t ir_loops_around(const struct ir_module *m, struct ir_block b,
                         struct ir_op loop[static IR_TAP_LOOPS]) {
  struct ir_op inward[IR_TAP_LOOPS];
  uint32_t n = 0;
  for (struct ir_op o = ir_block_at(m, b)->parent; o.id;
       o = ir_block_at(m, ir_op_at(m, o)->block)->parent) {
    enum ir_opcode opcode = ir_op_at(m, o)->opcode;
    if (opcode == IR_FOR || opcode == IR_WHILE) {
      if (n < IR_TAP_LOOPS)
        inward[n] = o;
      n++;
    }
  }
  for (uint32_t i = 0; i < n && n <= IR_TAP_LOOPS; i++)
    loop[i] = inward[n - 1 - i];
  return n;
}

/* ---- arguments ---- */

/* A name that no argument and no dim has. */
static struct sym free_name(struct ir_module *m, const char *stem) {
  for (uint32_t k = 0;; k++) {
    struct sym s = symtab_get(m->syms, arena_printf(m->arena, "%s%u", stem, k));
    bool used = false;
    for (uint32_t i = 0; i < m->args.n; i++)
      used |= m->args.at[i].name.id == s.id;
    for (uint32_t i = 0; i < m->dims.n; i++)
      used |= m->dims.at[i].id == s.id;
    if (!used)
      return s;
  }
}

/* The entry block's arguments follow the module's: its last is in front of dims and grid. */
static struct ir_val add_entry(struct ir_module *m, struct ir_type t) {
  struct ir_val v = ir_add_arg(m, m->body, t);
  struct ir_blocknode *body = ir_block_at(m, m->body);
  uint32_t at = body->args.n - 1 - m->dims.n - m->n_grid;
  memmove(body->args.at + at + 1, body->args.at + at, (body->args.n - 1 - at) * sizeof v);
  body->args.at[at] = v;
  for (uint32_t i = at; i < body->args.n; i++)
    ir_value_at(m, body->args.at[i])->index = i;
  return v;
}

static struct ir_val add_scalar(struct ir_module *m) {
  struct ir_arg a = {
      .name = free_name(m, "tap_at"), .kind = IR_ARG_SCALAR, .dtype = DT_S64, .present = true};
  VEC_PUSH(m->arena, &m->args, a);
  return add_entry(m, ir_scalar(DT_S64));
}

/* The tensor is row-major and dense: facts, so that its stores are as plain as they can be. */
static struct ir_val add_tensor(struct ir_module *m, struct ir_type t) {
  struct ir_arg a = {.name = free_name(m, "tap"),
                     .kind = IR_ARG_OUT,
                     .dtype = (enum dtype)t.dtype,
                     .rank = t.rank,
                     .present = true};
  int64_t stride = 1;
  for (uint32_t k = t.rank; k-- > 0;) {
    a.dim[k] = expr_const(&m->exprs, t.dim[k]);
    const char *name = arena_printf(m->arena, "%s.stride%u", ir_sym(m, a.name), k);
    struct ir_fact f = {.sym = symtab_get(m->syms, name), .is_value = true, .n = stride};
    VEC_PUSH(m->arena, &m->facts, f);
    stride *= t.dim[k];
  }
  VEC_PUSH(m->arena, &m->args, a);
  t.kind = IR_VIEW;
  return add_entry(m, t);
}

/* ---- which iteration ---- */

static struct ir_val index_op(struct ir_builder *b, enum ir_opcode o, struct ir_val x,
                              struct ir_val y) {
  return ir_build1(b, o, ir_scalar(DT_INDEX), 2, (struct ir_val[]){x, y});
}

/* Appends to the operands of a block's terminator. */
static void pass_on(struct ir_module *m, struct ir_block b, struct ir_val v) {
  ir_add_operand(m, ir_block_at(m, b)->last, v);
}

/* A `while` carries one value more, which counts; its value in block number `in`. */
static struct ir_val count_while(struct ir_module *m, struct ir_op o, uint32_t in) {
  struct ir_opnode *n = ir_op_at(m, o);
  struct ir_builder b = {.m = m, .block = n->block, .before = o, .loc = n->loc};
  struct ir_val zero = ir_const_int(&b, DT_INDEX, 0);
  n = ir_op_at(m, o); /* building moves the table */
  struct ir_block test = n->blocks[0], body = n->blocks[1];
  ir_add_operand(m, o, zero);
  struct ir_val at_test = ir_add_arg(m, test, ir_scalar(DT_INDEX));
  pass_on(m, test, at_test);
  struct ir_val at_body = ir_add_arg(m, body, ir_scalar(DT_INDEX));
  b = (struct ir_builder){.m = m, .block = body, .before = ir_block_at(m, body)->last};
  b.loc = ir_op_at(m, o)->loc;
  pass_on(m, body, index_op(&b, IR_ADD, at_body, ir_const_int(&b, DT_INDEX, 1)));
  /* And one result more, which nothing uses. */
  struct ir_value result = {.type = ir_scalar(DT_INDEX), .def = o, .index = ir_op_at(m, o)->n_out};
  VEC_PUSH(m->arena, &m->values, result);
  n = ir_op_at(m, o);
  struct ir_val *out = arena_get(m->arena, (n->n_out + 1u) * sizeof *out);
  if (n->n_out)
    memcpy(out, n->out, n->n_out * sizeof *out);
  out[n->n_out++] = (struct ir_val){m->values.n - 1};
  n->out = out;
  return in ? at_body : at_test;
}

/* The block of `loop` that b is, or lies in. */
static uint32_t block_within(const struct ir_module *m, struct ir_op loop, struct ir_block b) {
  for (;;) {
    struct ir_op up = ir_block_at(m, b)->parent;
    if (up.id == loop.id)
      break;
    b = ir_op_at(m, up)->block;
  }
  return ir_op_at(m, loop)->blocks[0].id == b.id ? 0 : 1;
}

static struct ir_val iteration_of(struct ir_builder *b, struct ir_op loop, struct ir_val counter) {
  const struct ir_opnode *n = ir_op_at(b->m, loop);
  if (n->opcode == IR_WHILE)
    return counter;
  struct ir_val lo = n->in[0], step = n->in[2];
  struct ir_val k = ir_block_at(b->m, n->blocks[0])->args.at[0];
  return index_op(b, IR_FLOORDIV, index_op(b, IR_SUB, k, lo), step);
}

/* ---- the store ---- */

static enum dtype stored_as(enum dtype t) {
  if (t == DT_INDEX)
    return DT_S64;
  return t == DT_BOOL || dtype_bits(t) < 8 ? DT_S32 : t;
}

static struct ir_val and_equal(struct ir_builder *b, struct ir_val so_far, struct ir_val x,
                               struct ir_val wanted) {
  struct ir_val y = ir_build1(b, IR_CAST, ir_scalar(DT_INDEX), 1, &wanted);
  struct ir_val same = ir_build1(b, IR_EQ, ir_scalar(DT_BOOL), 2, (struct ir_val[]){x, y});
  if (!so_far.id)
    return same;
  return ir_build1(b, IR_AND, ir_scalar(DT_BOOL), 2, (struct ir_val[]){so_far, same});
}

/* Behind what defines the value. */
static struct ir_builder place_of(struct ir_module *m, struct ir_val v) {
  const struct ir_value *value = ir_value_at(m, v);
  struct ir_builder b = {.m = m};
  if (value->def.id) {
    const struct ir_opnode *n = ir_op_at(m, value->def);
    b.block = n->block;
    b.before = n->next;
    b.loc = n->loc;
  } else {
    struct ir_op parent = ir_block_at(m, value->block)->parent;
    b.block = value->block;
    b.before = ir_block_at(m, value->block)->first;
    b.loc = parent.id ? ir_op_at(m, parent)->loc : 0;
  }
  return b;
}

bool ir_add_tap(struct ir_module *m, struct ir_val v, struct ir_tap *out) {
  struct ir_type t = ir_type_of(m, v);
  struct ir_builder b = place_of(m, v);
  memset(out, 0, sizeof *out);
  out->n_loops = ir_loops_around(m, b.block, out->loop);
  if ((t.kind != IR_TILE && t.kind != IR_SCALAR) || out->n_loops > IR_TAP_LOOPS)
    return false;
  struct ir_val wanted[IR_MAX_GRID + IR_TAP_LOOPS], counter[IR_TAP_LOOPS] = {{0}}, same = {0};
  enum dtype dtype = stored_as((enum dtype)t.dtype);
  struct ir_type stored = t;
  stored.dtype = (uint8_t)dtype;
  if (t.kind == IR_SCALAR)
    stored = ir_tile(dtype, 1, (int64_t[]){1});
  out->changed_dtype = dtype != (enum dtype)t.dtype;
  out->first = m->args.n;
  for (uint32_t i = 0; i < m->n_grid + out->n_loops; i++)
    wanted[i] = add_scalar(m);
  out->value = m->args.n;
  struct ir_val view = add_tensor(m, stored);
  for (uint32_t i = 0; i < out->n_loops; i++)
    if (ir_op_at(m, out->loop[i])->opcode == IR_WHILE)
      counter[i] = count_while(m, out->loop[i], block_within(m, out->loop[i], b.block));
  for (uint32_t i = 0; i < m->n_grid; i++) {
    const struct ir_blocknode *body = ir_block_at(m, m->body);
    same = and_equal(&b, same, body->args.at[body->args.n - m->n_grid + i], wanted[i]);
  }
  for (uint32_t i = 0; i < out->n_loops; i++)
    same = and_equal(&b, same, iteration_of(&b, out->loop[i], counter[i]), wanted[m->n_grid + i]);
  if (out->changed_dtype) {
    struct ir_type to = t;
    to.dtype = (uint8_t)dtype;
    v = ir_build1(&b, IR_CAST, to, 1, &v);
  }
  if (t.kind == IR_SCALAR)
    v = ir_build1(&b, IR_SPLAT, stored, 1, &v);
  struct ir_val in[2 + IR_MAX_RANK] = {view}, zero = ir_const_int(&b, DT_INDEX, 0);
  struct ir_val outside = ir_const_int(&b, DT_INDEX, stored.dim[0]);
  in[1] = ir_build1(&b, IR_SELECT, ir_scalar(DT_INDEX), 3, (struct ir_val[]){same, zero, outside});
  for (uint32_t k = 1; k < stored.rank; k++)
    in[1 + k] = zero;
  in[1 + stored.rank] = v;
  ir_build(&b, IR_STORE, 2 + stored.rank, in, 0, NULL);
  return true;
}
