/* Structural equality of modules. Both are walked in step; two values are equal if they were
 * defined at the same place of their walks. Names of arguments, dims and resources count, names of
 * values and locations do not. */
#include "ir/ir.h"
#include "ir/table.h"
#include "ir/text.h"
#include "ir/walk.h"

#include <stdarg.h>
#include <string.h>

struct comparer {
  const struct ir_module *a, *b;
  struct strbuf *why; /* NULL: not wanted */
  uint32_t *number;   /* value of a -> value of b */
};

static bool differ(struct comparer *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool differ(struct comparer *c, const char *fmt, ...) {
  if (c->why) {
    va_list ap;
    va_start(ap, fmt);
    sb_vprintf(c->why, fmt, ap);
    va_end(ap);
  }
  return false;
}

static bool sym_eq(const struct comparer *c, struct sym x, struct sym y) {
  return str_eq(ir_sym(c->a, x), ir_sym(c->b, y));
}

/* Pools hold equal expressions once each, but number them by their own history. */
static bool expr_eq(const struct expr_pool *p, struct expr x, const struct expr_pool *q,
                    struct expr y, uint32_t budget) {
  if (!x.id || !y.id || !budget)
    return x.id == y.id;
  const struct expr_node *m = expr_at(p, x), *n = expr_at(q, y);
  if (m->op != n->op || m->value != n->value)
    return false;
  if (m->op == EXPR_SYM)
    return str_eq(symtab_str(p->syms, m->sym), symtab_str(q->syms, n->sym));
  for (int i = 0; i < 3; i++)
    if (!expr_eq(p, m->in[i], q, n->in[i], budget - 1))
      return false;
  return true;
}

static bool exprs_eq(const struct comparer *c, struct expr x, struct expr y) {
  /* Larger ones are refused wherever expressions are read (expr.h); the depth is less than the
   * size. */
  if (x.id && y.id &&
      (expr_size(&c->a->exprs, x) != expr_size(&c->b->exprs, y) ||
       expr_size(&c->a->exprs, x) > EXPR_MAX_SIZE))
    return false;
  return expr_eq(&c->a->exprs, x, &c->b->exprs, y, EXPR_MAX_SIZE);
}

static bool bits_eq(double x, double y) {
  return memcmp(&x, &y, sizeof x) == 0;
}

/* t: the dtype of NUM attributes here. */
static bool attr_eq(const struct comparer *c, enum dtype t, const struct ir_attr *x,
                    const struct ir_attr *y) {
  if (x->key != y->key)
    return false;
  switch (ir_attr_kind_of(x->key)) {
  case IR_AK_INT: return x->i == y->i;
  case IR_AK_NUM: return dtype_is_float(t) ? bits_eq(x->f, y->f) : x->i == y->i;
  case IR_AK_INTS:
    return x->n_ints == y->n_ints &&
           (!x->n_ints || memcmp(x->ints, y->ints, x->n_ints * sizeof *x->ints) == 0);
  case IR_AK_SYM:
  case IR_AK_STR: return sym_eq(c, x->s, y->s);
  case IR_AK_DTYPE: return x->dtype == y->dtype;
  case IR_AK_EXPR: return exprs_eq(c, x->e, y->e);
  }
  return false;
}

static bool attrs_eq(const struct comparer *c, enum dtype t, uint32_t n, const struct ir_attr *x,
                     uint32_t n_y, const struct ir_attr *y) {
  if (n != n_y)
    return false;
  for (uint32_t i = 0; i < n; i++)
    if (!attr_eq(c, t, &x[i], &y[i]))
      return false;
  return true;
}

static bool arg_eq(const struct comparer *c, const struct ir_arg *x, const struct ir_arg *y) {
  if (!sym_eq(c, x->name, y->name) || x->kind != y->kind || x->dtype != y->dtype ||
      x->rank != y->rank || x->optional != y->optional || x->present != y->present ||
      x->zero != y->zero)
    return false;
  for (uint32_t k = 0; k < x->rank; k++)
    if (!exprs_eq(c, x->dim[k], y->dim[k]))
      return false;
  return true;
}

static bool config_eq(const struct comparer *c, const struct ir_config_entry *x,
                      const struct ir_config_entry *y) {
  if (!sym_eq(c, x->key, y->key) || x->kind != y->kind)
    return false;
  switch (x->kind) {
  case IR_CFG_INT:
  case IR_CFG_BOOL:
  case IR_CFG_DTYPE: return x->i == y->i;
  case IR_CFG_NUM: return bits_eq(x->f, y->f);
  case IR_CFG_STR: return sym_eq(c, x->s, y->s);
  }
  return false;
}

static bool layout_at_eq(const struct comparer *c, uint32_t x, uint32_t y) {
  if (!x || !y || x >= c->a->layouts.n || y >= c->b->layouts.n)
    return x == y;
  return layout_eq(c->a->layouts.at[x], c->b->layouts.at[y]);
}

static bool res_eq(const struct comparer *c, const struct ir_res *x, const struct ir_res *y) {
  return x->kind == y->kind && sym_eq(c, x->name, y->name) && ir_type_eq(x->type, y->type) &&
         layout_at_eq(c, x->layout, y->layout) &&
         attrs_eq(c, ir_num_dtype(0, NULL, 1, x), x->n_attrs, x->attrs, y->n_attrs, y->attrs);
}

static bool param_eq(const struct comparer *c, const struct ir_param *x, const struct ir_param *y) {
  bool of_arg = x->kind == RECIPE_PARAM_PTR || x->kind == RECIPE_PARAM_SCALAR;
  return x->kind == y->kind && (!of_arg || x->arg == y->arg) &&
         (x->kind != RECIPE_PARAM_TMAP || x->res == y->res) && exprs_eq(c, x->value, y->value);
}

static bool recipes_eq(struct comparer *c) {
  if (!c->a->recipe || !c->b->recipe)
    return c->a->recipe == c->b->recipe;
  struct strbuf x = {.arena = c->a->arena}, y = {.arena = c->a->arena};
  recipe_print(c->a->recipe, &x);
  recipe_print(c->b->recipe, &y);
  return str_eq(sb_str(&x), sb_str(&y));
}

/* Compares two tables element by element. */
#define EACH_EQ(c, field, first, eq, what)                                                         \
  do {                                                                                             \
    if ((c)->a->field.n != (c)->b->field.n)                                                        \
      return differ(c, "%u %ss against %u", (c)->a->field.n - first, what,                         \
                    (c)->b->field.n - first);                                                      \
    for (uint32_t i = first; i < (c)->a->field.n; i++)                                             \
      if (!eq(c, &(c)->a->field.at[i], &(c)->b->field.at[i]))                                      \
        return differ(c, "%s %u differs", what, i);                                                \
  } while (0)

static bool name_eq(const struct comparer *c, const struct sym *x, const struct sym *y) {
  return sym_eq(c, *x, *y);
}

static bool role_eq(const struct comparer *c, const struct ir_role *x, const struct ir_role *y) {
  return sym_eq(c, x->name, y->name) && x->warps == y->warps && x->regs == y->regs;
}

static bool fact_eq(const struct comparer *c, const struct ir_fact *x, const struct ir_fact *y) {
  return sym_eq(c, x->sym, y->sym) && x->is_value == y->is_value && x->n == y->n;
}

static bool layout_ptr_eq(const struct comparer *c, struct layout *const *x,
                          struct layout *const *y) {
  (void)c;
  return layout_eq(*x, *y);
}

static bool heads_eq(struct comparer *c) {
  if (c->a->stage != c->b->stage)
    return differ(c, "the stages differ");
  if (!sym_eq(c, c->a->kernel, c->b->kernel))
    return differ(c, "the kernels' names differ");
  if (!sym_eq(c, c->a->target, c->b->target))
    return differ(c, "the targets differ");
  EACH_EQ(c, args, 0, arg_eq, "argument");
  EACH_EQ(c, dims, 0, name_eq, "dim");
  EACH_EQ(c, config, 0, config_eq, "config entry");
  EACH_EQ(c, facts, 0, fact_eq, "fact");
  if (c->a->n_grid != c->b->n_grid)
    return differ(c, "%u grid axes against %u", c->a->n_grid, c->b->n_grid);
  for (uint32_t i = 0; i < c->a->n_grid && i < IR_MAX_GRID; i++)
    if (!exprs_eq(c, c->a->grid[i], c->b->grid[i]))
      return differ(c, "grid axis %u differs", i);
  EACH_EQ(c, roles, 0, role_eq, "role");
  EACH_EQ(c, layouts, 1, layout_ptr_eq, "layout");
  EACH_EQ(c, res, 1, res_eq, "resource");
  EACH_EQ(c, params, 0, param_eq, "param");
  return recipes_eq(c) || differ(c, "the recipes differ");
}

/* Pairs two definitions. */
static bool defs_eq(struct comparer *c, struct ir_val x, struct ir_val y) {
  const struct ir_value *v = ir_value_at(c->a, x), *w = ir_value_at(c->b, y);
  c->number[x.id] = y.id;
  return ir_type_eq(v->type, w->type) && layout_at_eq(c, v->layout, w->layout);
}

static bool args_eq(struct comparer *c, struct ir_block x, struct ir_block y) {
  const struct ir_blocknode *m = ir_block_at(c->a, x), *n = ir_block_at(c->b, y);
  if (m->args.n != n->args.n)
    return false;
  for (uint32_t i = 0; i < m->args.n; i++)
    if (!defs_eq(c, m->args.at[i], n->args.at[i]))
      return false;
  return true;
}

static bool use_eq(const struct comparer *c, struct ir_val x, struct ir_val y) {
  return x.id < c->a->values.n && c->number[x.id] == y.id;
}

static bool sched_eq(struct ir_sched x, struct ir_sched y) {
  return x.role_mask == y.role_mask && x.stage == y.stage && x.order == y.order;
}

/* The difference of two ops, operands aside which must have been paired, or NULL. */
static const char *op_difference(struct comparer *c, const struct ir_opnode *m,
                                 const struct ir_opnode *n) {
  if (m->opcode != n->opcode)
    return "another op";
  if (m->n_in != n->n_in || m->n_out != n->n_out || m->n_blocks != n->n_blocks ||
      m->n_res != n->n_res)
    return "other counts of operands, results, resources or blocks";
  for (uint32_t i = 0; i < m->n_in; i++)
    if (!use_eq(c, m->in[i], n->in[i]))
      return "another operand";
  for (uint32_t i = 0; i < m->n_res; i++)
    if (m->res[i] != n->res[i])
      return "another resource";
  const struct ir_type *first = m->n_out ? &ir_value_at(c->a, m->out[0])->type : NULL;
  uint32_t res = m->n_res && m->res[0] < c->a->res.n ? m->res[0] : 0;
  enum dtype t = ir_num_dtype(m->n_out, first, m->n_res, &c->a->res.at[res]);
  if (!attrs_eq(c, t, m->n_attrs, m->attrs, n->n_attrs, n->attrs))
    return "another attribute";
  if (!sched_eq(m->sched, n->sched))
    return "another schedule";
  for (uint32_t i = 0; i < m->n_out; i++)
    if (!defs_eq(c, m->out[i], n->out[i]))
      return "another result type or layout";
  for (uint32_t i = 0; i < m->n_blocks; i++)
    if (!args_eq(c, m->blocks[i], n->blocks[i]))
      return "other block arguments";
  return NULL;
}

/* Where an op stands: its block's owner has the same number of ops on both sides. */
static bool bodies_eq(struct comparer *c, struct ir_op *at) {
  const struct ir_module *a = c->a, *b = c->b;
  if (!args_eq(c, a->body, b->body))
    return differ(c, "the body's arguments differ");
  struct ir_op x = ir_block_at(a, a->body)->first, y = ir_block_at(b, b->body)->first;
  uint32_t count = 0;
  /* The owner of each block, paired: ops of a are numbered by their pair of b. */
  uint32_t *pair = ARENA_ARRAY(a->arena, uint32_t, a->ops.n);
  while (x.id && y.id) {
    const struct ir_opnode *m = ir_op_at(a, x), *n = ir_op_at(b, y);
    const char *difference = op_difference(c, m, n);
    struct ir_op up = ir_block_at(a, m->block)->parent, up_b = ir_block_at(b, n->block)->parent;
    pair[x.id] = y.id;
    if (!difference && pair[up.id] != up_b.id)
      difference = "in another block";
    for (uint32_t i = 0; !difference && up.id && i < ir_op_at(a, up)->n_blocks; i++)
      if ((ir_op_at(a, up)->blocks[i].id == m->block.id) !=
          (ir_op_at(b, up_b)->blocks[i].id == n->block.id))
        difference = "in another block";
    *at = x;
    if (difference)
      return differ(c, "op %u (%s): %s", count, ir_info(m->opcode)->name, difference);
    x = ir_walk_next(a, x, a->body);
    y = ir_walk_next(b, y, b->body);
    count++;
  }
  *at = x;
  if (x.id || y.id)
    return differ(c, "one has more than %u ops", count);
  return true;
}

bool ir_equal(const struct ir_module *a, const struct ir_module *b, struct strbuf *why) {
  struct ir_op at;
  return ir_equal_at(a, b, why, &at);
}

bool ir_equal_at(const struct ir_module *a, const struct ir_module *b, struct strbuf *why,
                 struct ir_op *at) {
  struct comparer c = {.a = a, .b = b, .why = why};
  struct arena_mark mark = arena_get_mark(a->arena);
  c.number = ARENA_ARRAY(a->arena, uint32_t, a->values.n);
  *at = (struct ir_op){0};
  bool same = heads_eq(&c) && bodies_eq(&c, at);
  if (!why || why->arena != a->arena)
    arena_reset(a->arena, mark);
  return same;
}
