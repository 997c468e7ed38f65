/* See help_interp.h. */
#include "help_interp.h"

#include <math.h>
#include <string.h>

void hi_init(struct hi *h) {
  memset(h, 0, sizeof *h);
  help_arena_init(&h->mem);
  assert_true(diag_init(&h->diags, &mem_libc));
  h->m = ir_module_new(&h->mem.arena, IR_TILE_STAGE);
  h->m->kernel = symtab_get(h->m->syms, "test");
  h->b = (struct ir_builder){.m = h->m, .block = h->m->body};
}

void hi_free(struct hi *h) {
  diag_free(&h->diags);
  arena_free(&h->mem.arena);
}

/* Splits at the commas outside parentheses. */
static const char *expr_end(const char *s) {
  int depth = 0;
  for (; *s && (*s != ',' || depth); s++)
    depth += (*s == '(') - (*s == ')');
  return s;
}

static struct expr parse_expr(struct hi *h, const char *s, const char *end) {
  const char *error = NULL, *at = NULL;
  struct expr e = expr_parse(&h->m->exprs, s, end, &error, &at);
  if (!e.id)
    fail_msg("expression %s: %s", s, error);
  return e;
}

static void add_dim(struct hi *h, struct expr e) {
  const struct expr_node *n = expr_at(&h->m->exprs, e);
  if (n->op != EXPR_SYM)
    return;
  for (uint32_t d = 0; d < h->m->dims.n; d++)
    if (h->m->dims.at[d].id == n->sym.id)
      return;
  VEC_PUSH(h->m->arena, &h->m->dims, n->sym);
}

uint32_t hi_tensor(struct hi *h, const char *name, enum ir_arg_kind kind, enum dtype t,
                   const char *dims) {
  struct ir_arg a = {
      .name = symtab_get(h->m->syms, name), .kind = kind, .dtype = t, .present = true};
  for (const char *s = dims; *s; a.rank++) {
    const char *end = expr_end(s);
    a.dim[a.rank] = parse_expr(h, s, end);
    add_dim(h, a.dim[a.rank]);
    s = *end ? end + 1 : end;
  }
  VEC_PUSH(h->m->arena, &h->m->args, a);
  return h->m->args.n - 1;
}

uint32_t hi_scalar(struct hi *h, const char *name, enum dtype t) {
  struct ir_arg a = {
      .name = symtab_get(h->m->syms, name), .kind = IR_ARG_SCALAR, .dtype = t, .present = true};
  VEC_PUSH(h->m->arena, &h->m->args, a);
  return h->m->args.n - 1;
}

void hi_begin(struct hi *h, const char *grid) {
  struct ir_module *m = h->m;
  for (uint32_t k = 0; k < m->args.n; k++) {
    const struct ir_arg *a = &m->args.at[k];
    struct ir_type t = {.kind = a->kind == IR_ARG_SCALAR ? IR_SCALAR : IR_VIEW,
                        .dtype = (uint8_t)a->dtype,
                        .rank = (uint8_t)a->rank};
    for (uint32_t d = 0; d < a->rank; d++)
      if (!expr_is_const(&m->exprs, a->dim[d], &t.dim[d]))
        t.dim[d] = IR_DYN;
    if (a->present)
      h->arg[k] = ir_add_arg(m, m->body, t);
  }
  for (uint32_t d = 0; d < m->dims.n; d++)
    h->dim[d] = ir_add_arg(m, m->body, ir_scalar(DT_INDEX));
  for (const char *s = grid; *s; m->n_grid++) {
    const char *end = expr_end(s);
    m->grid[m->n_grid] = parse_expr(h, s, end);
    h->grid[m->n_grid] = ir_add_arg(m, m->body, ir_scalar(DT_INDEX));
    s = *end ? end + 1 : end;
  }
}

void hi_end(struct hi *h) {
  ir_build(&h->b, IR_RETURN, 0, NULL, 0, NULL);
  if (ir_verify(h->m, &h->diags))
    return;
  fail_msg("the test's module is invalid: %s", help_last_message(&h->diags));
}

static struct ir_type type_of(struct hi *h, struct ir_val v) {
  return ir_type_of(h->m, v);
}

struct ir_val hi_op1(struct hi *h, enum ir_opcode op, struct ir_val a) {
  struct ir_type t = type_of(h, a);
  return ir_build1(&h->b, op, op == IR_ITEM ? ir_scalar((enum dtype)t.dtype) : t, 1, &a);
}

struct ir_val hi_op2(struct hi *h, enum ir_opcode op, struct ir_val a, struct ir_val b) {
  struct ir_type t = type_of(h, a);
  if (op == IR_EQ || op == IR_NE || op == IR_LT || op == IR_LE || op == IR_GT || op == IR_GE)
    t.dtype = DT_BOOL;
  return ir_build1(&h->b, op, t, 2, (struct ir_val[]){a, b});
}

struct ir_val hi_op3(struct hi *h, enum ir_opcode op, struct ir_val a, struct ir_val b,
                     struct ir_val c) {
  return ir_build1(&h->b, op, type_of(h, c), 3, (struct ir_val[]){a, b, c});
}

struct ir_val hi_index(struct hi *h, int64_t v) {
  return ir_const_int(&h->b, DT_INDEX, v);
}

struct ir_val hi_num(struct hi *h, enum dtype t, double v) {
  return ir_const_num(&h->b, t, v);
}

struct ir_val hi_cast(struct hi *h, enum dtype t, struct ir_val a) {
  struct ir_type r = type_of(h, a);
  r.dtype = (uint8_t)t;
  return ir_build1(&h->b, IR_CAST, r, 1, &a);
}

struct ir_val hi_splat(struct hi *h, struct ir_val scalar, uint32_t rank, const int64_t *dim) {
  return ir_build1(&h->b, IR_SPLAT, ir_tile((enum dtype)type_of(h, scalar).dtype, rank, dim), 1,
                   &scalar);
}

struct ir_val hi_full(struct hi *h, enum dtype t, double v, int64_t rows, int64_t cols) {
  return hi_splat(h, hi_num(h, t, v), 2, (int64_t[]){rows, cols});
}

static struct ir_op def_of(struct hi *h, struct ir_val v) {
  return ir_value_at(h->m, v)->def;
}

struct ir_val hi_iota(struct hi *h, int64_t axis, int64_t n) {
  int64_t dim[2] = {axis ? 1 : n, axis ? n : 1};
  struct ir_val v = ir_build1(&h->b, IR_IOTA, ir_tile(DT_INDEX, 2, dim), 0, NULL);
  ir_set_attr(h->m, def_of(h, v), (struct ir_attr){.key = IR_ATTR_axis, .i = axis});
  return v;
}

struct ir_val hi_shape(struct hi *h, enum ir_opcode op, struct ir_val a, uint32_t rank,
                       const int64_t *dim) {
  return ir_build1(&h->b, op, ir_tile((enum dtype)type_of(h, a).dtype, rank, dim), 1, &a);
}

struct ir_val hi_wide(struct hi *h, struct ir_val a, int64_t rows, int64_t cols) {
  return hi_shape(h, IR_BROADCAST, a, 2, (int64_t[]){rows, cols});
}

struct ir_val hi_transpose(struct hi *h, struct ir_val a, const int64_t *perm) {
  struct ir_type t = type_of(h, a), r = t;
  for (uint32_t k = 0; k < t.rank; k++)
    r.dim[k] = t.dim[perm[k]];
  struct ir_val v = ir_build1(&h->b, IR_TRANSPOSE, r, 1, &a);
  ir_set_attr(h->m, def_of(h, v),
              (struct ir_attr){.key = IR_ATTR_perm, .ints = perm, .n_ints = t.rank});
  return v;
}

struct ir_val hi_reduce(struct hi *h, enum ir_opcode op, struct ir_val a, int64_t axis) {
  struct ir_type t = type_of(h, a);
  t.dim[axis] = 1;
  struct ir_val v = ir_build1(&h->b, op, t, 1, &a);
  ir_set_attr(h->m, def_of(h, v), (struct ir_attr){.key = IR_ATTR_axis, .i = axis});
  return v;
}

struct ir_val hi_load(struct hi *h, uint32_t arg, const struct ir_val *at, const int64_t *dim) {
  const struct ir_arg *a = &h->m->args.at[arg];
  struct ir_val in[1 + IR_MAX_RANK] = {h->arg[arg]};
  for (uint32_t k = 0; k < a->rank; k++)
    in[k + 1] = at[k];
  return ir_build1(&h->b, IR_LOAD, ir_tile(a->dtype, a->rank, dim), a->rank + 1, in);
}

void hi_store(struct hi *h, uint32_t arg, const struct ir_val *at, struct ir_val tile) {
  const struct ir_arg *a = &h->m->args.at[arg];
  struct ir_val in[2 + IR_MAX_RANK] = {h->arg[arg]};
  for (uint32_t k = 0; k < a->rank; k++)
    in[k + 1] = at[k];
  in[a->rank + 1] = tile;
  ir_build(&h->b, IR_STORE, a->rank + 2, in, 0, NULL);
}

struct ir_val hi_load1(struct hi *h, uint32_t arg, struct ir_val at, int64_t n) {
  return hi_load(h, arg, &at, &n);
}

struct ir_val hi_load2(struct hi *h, uint32_t arg, struct ir_val i, struct ir_val j, int64_t rows,
                       int64_t cols) {
  return hi_load(h, arg, (struct ir_val[]){i, j}, (int64_t[]){rows, cols});
}

void hi_store1(struct hi *h, uint32_t arg, struct ir_val at, struct ir_val tile) {
  hi_store(h, arg, &at, tile);
}

void hi_store2(struct hi *h, uint32_t arg, struct ir_val i, struct ir_val j, struct ir_val tile) {
  hi_store(h, arg, (struct ir_val[]){i, j}, tile);
}

void hi_set_pad(struct hi *h, struct ir_val loaded, double pad) {
  ir_set_attr(
      h->m, def_of(h, loaded),
      (struct ir_attr){.key = IR_ATTR_pad, .f = pad, .i = isfinite(pad) ? (int64_t)pad : 0});
}

void hi_message(struct hi *h, enum ir_opcode op, const char *text, uint32_t n,
                const struct ir_val *in) {
  struct ir_op o = ir_build(&h->b, op, n, in, 0, NULL);
  if (text)
    ir_set_attr(h->m, o,
                (struct ir_attr){.key = IR_ATTR_message, .s = symtab_get(h->m->syms, text)});
}

/* ---- nested blocks ---- */

static void enter(struct hi *h, struct ir_op o, uint32_t block) {
  h->b.block = ir_op_at(h->m, o)->blocks[block];
}

struct ir_op hi_for(struct hi *h, struct ir_val lo, struct ir_val hi, struct ir_val step,
                    uint32_t n, const struct ir_val *inits) {
  struct ir_val in[3 + HI_MAX_ARGS] = {lo, hi, step};
  struct ir_type out[HI_MAX_ARGS] = {0};
  for (uint32_t k = 0; k < n; k++) {
    in[3 + k] = inits[k];
    out[k] = type_of(h, inits[k]);
  }
  struct ir_op o = ir_build(&h->b, IR_FOR, 3 + n, in, n, out);
  enter(h, o, 0);
  ir_add_arg(h->m, h->b.block, ir_scalar(DT_INDEX));
  for (uint32_t k = 0; k < n; k++)
    ir_add_arg(h->m, h->b.block, out[k]);
  return o;
}

struct ir_op hi_if(struct hi *h, struct ir_val cond, uint32_t n, const struct ir_type *results) {
  struct ir_op o = ir_build(&h->b, IR_IF, 1, &cond, n, results);
  enter(h, o, 0);
  return o;
}

struct ir_op hi_while(struct hi *h, uint32_t n, const struct ir_val *inits, uint32_t n_passed,
                      const struct ir_type *passed) {
  struct ir_op o = ir_build(&h->b, IR_WHILE, n, inits, n_passed, passed);
  enter(h, o, 1);
  for (uint32_t k = 0; k < n_passed; k++)
    ir_add_arg(h->m, h->b.block, passed[k]);
  enter(h, o, 0);
  for (uint32_t k = 0; k < n; k++)
    ir_add_arg(h->m, h->b.block, type_of(h, inits[k]));
  return o;
}

void hi_condition(struct hi *h, uint32_t n, const struct ir_val *in) {
  ir_build(&h->b, IR_CONDITION, n, in, 0, NULL);
  enter(h, ir_block_at(h->m, h->b.block)->parent, 1);
}

void hi_yield(struct hi *h, uint32_t n, const struct ir_val *in) {
  ir_build(&h->b, IR_YIELD, n, in, 0, NULL);
  struct ir_op o = ir_block_at(h->m, h->b.block)->parent;
  const struct ir_opnode *op = ir_op_at(h->m, o);
  if (op->opcode == IR_IF && op->blocks[0].id == h->b.block.id)
    enter(h, o, 1);
  else
    h->b.block = op->block;
}

struct ir_val hi_arg(struct hi *h, struct ir_op o, uint32_t block, uint32_t k) {
  return ir_block_at(h->m, ir_op_at(h->m, o)->blocks[block])->args.at[k];
}

struct ir_val hi_out(struct hi *h, struct ir_op o, uint32_t k) {
  return ir_op_at(h->m, o)->out[k];
}

/* ---- runs ---- */

void hi_bind_as(struct hi *h, uint32_t arg, enum dtype t, void *data, const int64_t *dim) {
  h->value[arg].tensor = interp_dense(data, t, h->m->args.at[arg].rank, dim);
}

void hi_bind(struct hi *h, uint32_t arg, void *data, const int64_t *dim) {
  hi_bind_as(h, arg, h->m->args.at[arg].dtype, data, dim);
}

bool hi_run(struct hi *h) {
  diag_clear(&h->diags);
  return interp_run(h->m, h->value, h->m->args.n, &h->opt, &h->diags, &mem_libc);
}

void hi_run_ok(struct hi *h) {
  if (!hi_run(h))
    fail_msg("run failed: %s", help_last_message(&h->diags));
  assert_int_equal(h->diags.list.n, 0);
}
