/* See range.h. Recursion follows def chains of index scalars; its depth is bounded, beyond that
 * nothing is known. */
#include "ir/range.h"

#include "base/check.h"

#define MAX_DEPTH 64

struct ir_entry ir_entry_of(const struct ir_module *m, struct ir_val v) {
  const struct ir_value *x = ir_value_at(m, v);
  struct ir_entry e = {IR_ENTRY_NONE, 0};
  if (x->def.id || x->block.id != m->body.id)
    return e;
  uint32_t i = x->index;
  for (uint32_t k = 0; k < m->args.n; k++) {
    if (!m->args.at[k].present)
      continue;
    if (i-- == 0)
      return (struct ir_entry){IR_ENTRY_ARG, k};
  }
  if (i < m->dims.n)
    return (struct ir_entry){IR_ENTRY_DIM, i};
  return (struct ir_entry){IR_ENTRY_GRID, i - m->dims.n};
}

struct ir_val ir_entry_arg(const struct ir_module *m, uint32_t arg) {
  uint32_t i = 0;
  for (uint32_t k = 0; k < arg; k++)
    i += m->args.at[k].present;
  KILN_ASSERT(m->args.at[arg].present);
  return ir_block_at(m, m->body)->args.at[i];
}

/* Elements from one coordinate of dim to the next in a tensor that the launch lays out. */
static struct expr scratch_stride(struct ir_module *m, const struct ir_arg *a, uint32_t dim) {
  struct expr e = expr_const(&m->exprs, 1);
  for (uint32_t d = a->rank; d-- > dim + 1;)
    e = expr_op2(&m->exprs, EXPR_MUL, a->dim[d], e);
  return e;
}

struct expr ir_arg_stride(struct ir_module *m, uint32_t arg, uint32_t dim) {
  const struct ir_arg *a = &m->args.at[arg];
  if (a->kind == IR_ARG_SCRATCH)
    return scratch_stride(m, a, dim);
  return ir_arg_expr(m, arg, "stride", (int)dim);
}

int64_t ir_arg_alignment(struct ir_module *m, uint32_t arg) {
  if (m->args.at[arg].kind == IR_ARG_SCRATCH)
    return IR_SCRATCH_ALIGN;
  return ir_expr_divisor(m, ir_arg_expr(m, arg, "addr", -1));
}

struct expr ir_arg_expr(struct ir_module *m, uint32_t arg, const char *property, int dim) {
  const char *name = ir_sym(m, m->args.at[arg].name);
  const char *text = dim < 0 ? arena_printf(m->arena, "%s.%s", name, property)
                             : arena_printf(m->arena, "%s.%s%d", name, property, dim);
  return expr_sym(&m->exprs, text);
}

int64_t ir_gcd(int64_t a, int64_t b) {
  a = a < 0 ? -a : a;
  b = b < 0 ? -b : b;
  while (b) {
    int64_t t = a % b;
    a = b;
    b = t;
  }
  return a;
}

int64_t ir_pow2_divisor(int64_t d, int64_t most) {
  while (most > 1 && d % most)
    most /= 2;
  return most;
}

/* a * b, or 1 (unknown) where that is too large to matter. */
static int64_t times(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_mul_overflow(a, b, &r) ? 1 : r;
}

/* ---- launch expressions ---- */

static const struct ir_fact *value_fact(const struct ir_module *m, struct sym s) {
  for (uint32_t i = 0; i < m->facts.n; i++)
    if (m->facts.at[i].sym.id == s.id && m->facts.at[i].is_value)
      return &m->facts.at[i];
  return NULL;
}

static bool lookup(void *user, const char *name, int64_t *value) {
  const struct ir_module *m = user;
  struct sym s;
  const struct ir_fact *f;
  if (!symtab_find(m->syms, name, strlen(name), &s) || !(f = value_fact(m, s)))
    return false;
  *value = f->n;
  return true;
}

bool ir_expr_value(const struct ir_module *m, struct expr e, int64_t *value) {
  const char *why;
  return e.id && expr_eval(&m->exprs, e, lookup, (void *)m, value, &why);
}

int64_t ir_sym_divisor(const struct ir_module *m, struct sym s) {
  int64_t d = 1;
  for (uint32_t i = 0; i < m->facts.n; i++) {
    const struct ir_fact *f = &m->facts.at[i];
    if (f->sym.id != s.id)
      continue;
    if (f->is_value)
      return f->n < 0 ? -f->n : f->n;
    d = times(d / ir_gcd(d, f->n), f->n); /* both divide: their least common multiple */
  }
  return d;
}

static int64_t expr_divisor(const struct ir_module *m, struct expr e, int depth) {
  int64_t value;
  if (depth > MAX_DEPTH)
    return 1;
  if (ir_expr_value(m, e, &value))
    return value < 0 ? -value : value;
  const struct expr_node *n = expr_at(&m->exprs, e);
  switch (n->op) {
  case EXPR_SYM: return ir_sym_divisor(m, n->sym);
  case EXPR_MUL:
    return times(expr_divisor(m, n->in[0], depth + 1), expr_divisor(m, n->in[1], depth + 1));
  case EXPR_ADD:
  case EXPR_SUB:
  case EXPR_MIN:
  case EXPR_MAX:
    return ir_gcd(expr_divisor(m, n->in[0], depth + 1), expr_divisor(m, n->in[1], depth + 1));
  case EXPR_SELECT:
    return ir_gcd(expr_divisor(m, n->in[1], depth + 1), expr_divisor(m, n->in[2], depth + 1));
  case EXPR_DIV:
  case EXPR_CDIV: {
    int64_t d = expr_divisor(m, n->in[0], depth + 1);
    if (ir_expr_value(m, n->in[1], &value) && value > 0 && d % value == 0)
      return d / value;
    return 1;
  }
  case EXPR_CONST:
  case EXPR_MOD:
  case EXPR_EQ:
  case EXPR_NE:
  case EXPR_LT:
  case EXPR_LE:
  case EXPR_AND:
  case EXPR_OR:
  case EXPR_NOT: return 1;
  }
  return 1;
}

int64_t ir_expr_divisor(const struct ir_module *m, struct expr e) {
  return expr_divisor(m, e, 0);
}

/* ---- index scalars ---- */

static struct expr entry_expr(struct ir_module *m, struct ir_val v) {
  struct ir_entry e = ir_entry_of(m, v);
  if (e.kind == IR_ENTRY_DIM)
    return expr_sym(&m->exprs, ir_sym(m, m->dims.at[e.index]));
  return (struct expr){0};
}

static struct expr val_expr(struct ir_module *m, struct ir_val v, int depth);

/* Of dims of arguments and constants, as body arguments and their arithmetic are. */
static bool expr_is_nonneg(const struct ir_module *m, struct expr e, int depth) {
  const struct expr_node *n = expr_at(&m->exprs, e);
  bool a, b;
  if (depth > MAX_DEPTH)
    return false;
  switch ((int)n->op) {
  case EXPR_CONST: return n->value >= 0;
  case EXPR_SYM: return true;
  case EXPR_ADD:
  case EXPR_MUL:
  case EXPR_MIN:
  case EXPR_MAX:
  case EXPR_DIV:
    a = expr_is_nonneg(m, n->in[0], depth + 1);
    b = expr_is_nonneg(m, n->in[1], depth + 1);
    return n->op == EXPR_MAX ? a || b : a && b;
  default: return false;
  }
}

/* Sizes below 0 are 0. */
static struct expr clamped(struct ir_module *m, struct expr e) {
  if (!e.id || expr_is_nonneg(m, e, 0))
    return e;
  return expr_op2(&m->exprs, EXPR_MAX, e, expr_const(&m->exprs, 0));
}

/* The size of a view's dim: through the ops that make the view to what the size came from. */
static struct expr size_expr(struct ir_module *m, struct ir_val view, uint32_t axis, int depth) {
  const struct expr none = {0};
  struct ir_op def = ir_value_at(m, view)->def;
  if (!def.id) {
    struct ir_entry e = ir_entry_of(m, view);
    return e.kind == IR_ENTRY_ARG ? m->args.at[e.index].dim[axis] : none;
  }
  const struct ir_opnode *n = ir_op_at(m, def);
  uint32_t at = (uint32_t)ir_attr_int(m, def, IR_ATTR_axis, 0);
  if (depth > MAX_DEPTH)
    return none;
  switch ((int)n->opcode) {
  case IR_VIEW_AT: return size_expr(m, n->in[0], axis + (axis >= at), depth + 1);
  case IR_VIEW_SLICE:
    return clamped(m, val_expr(m, n->in[1u + ir_type_of(m, view).rank + axis], depth + 1));
  case IR_VIEW_RESHAPE: return clamped(m, val_expr(m, n->in[1 + axis], depth + 1));
  case IR_VIEW_TRANSPOSE: {
    const struct ir_attr *perm = ir_get_attr(m, def, IR_ATTR_perm);
    return size_expr(m, n->in[0], (uint32_t)perm->ints[axis], depth + 1);
  }
  case IR_VIEW_EVERY: {
    struct expr e = size_expr(m, n->in[0], axis, depth + 1);
    if (axis != at || !e.id)
      return e;
    struct expr count = expr_const(&m->exprs, ir_attr_int(m, def, IR_ATTR_count, 1));
    return expr_op2(&m->exprs, EXPR_MUL, e, count);
  }
  default: return none;
  }
}

struct expr ir_view_size(struct ir_module *m, struct ir_val view, uint32_t axis) {
  return size_expr(m, view, axis, 0);
}

static struct expr val_expr(struct ir_module *m, struct ir_val v, int depth) {
  const struct expr none = {0};
  struct ir_op def = ir_value_at(m, v)->def;
  if (!def.id)
    return entry_expr(m, v);
  if (depth > MAX_DEPTH)
    return none;
  const struct ir_opnode *n = ir_op_at(m, def);
  if (n->opcode == IR_CONST)
    return expr_const(&m->exprs, ir_attr_int(m, def, IR_ATTR_value, 0));
  if (n->opcode == IR_DIM)
    return size_expr(m, n->in[0], (uint32_t)ir_attr_int(m, def, IR_ATTR_axis, 0), depth + 1);
  static const struct {
    enum ir_opcode from;
    enum expr_op to;
  } ops[] = {{IR_ADD, EXPR_ADD},      {IR_SUB, EXPR_SUB}, {IR_MUL, EXPR_MUL}, {IR_MIN, EXPR_MIN},
             {IR_FLOORDIV, EXPR_DIV}, {IR_MAX, EXPR_MAX}, {IR_MOD, EXPR_MOD}};
  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
    if (ops[i].from != n->opcode)
      continue;
    struct expr a = val_expr(m, n->in[0], depth + 1), b = val_expr(m, n->in[1], depth + 1);
    return a.id && b.id ? expr_op2(&m->exprs, ops[i].to, a, b) : none;
  }
  return none;
}

struct expr ir_val_expr(struct ir_module *m, struct ir_val v) {
  return val_expr(m, v, 0);
}

bool ir_val_const(const struct ir_module *m, struct ir_val v, int64_t *value) {
  struct ir_op def = ir_value_at(m, v)->def;
  if (def.id && ir_op_at(m, def)->opcode == IR_CONST &&
      !dtype_is_float((enum dtype)ir_type_of(m, v).dtype)) {
    *value = ir_attr_int(m, def, IR_ATTR_value, 0);
    return true;
  }
  struct ir_entry e = ir_entry_of(m, v);
  const struct ir_fact *f;
  if (e.kind == IR_ENTRY_DIM && (f = value_fact(m, m->dims.at[e.index]))) {
    *value = f->n;
    return true;
  }
  return false;
}

struct ir_op ir_loop_of_index(const struct ir_module *m, struct ir_val v) {
  const struct ir_value *x = ir_value_at(m, v);
  struct ir_op none = {0};
  if (!x->block.id || x->index != 0)
    return none;
  struct ir_op parent = ir_block_at(m, x->block)->parent;
  return parent.id && ir_op_at(m, parent)->opcode == IR_FOR ? parent : none;
}

static int64_t val_divisor(struct ir_module *m, struct ir_val v, int depth) {
  int64_t c;
  if (depth > MAX_DEPTH)
    return 1;
  if (ir_val_const(m, v, &c))
    return c < 0 ? -c : c;
  struct ir_op loop = ir_loop_of_index(m, v);
  if (loop.id) {
    const struct ir_opnode *n = ir_op_at(m, loop);
    return ir_gcd(val_divisor(m, n->in[0], depth + 1), val_divisor(m, n->in[2], depth + 1));
  }
  struct ir_op def = ir_value_at(m, v)->def;
  if (!def.id) {
    struct expr e = entry_expr(m, v);
    return e.id ? ir_expr_divisor(m, e) : 1;
  }
  const struct ir_opnode *n = ir_op_at(m, def);
  if (n->opcode == IR_MUL)
    return times(val_divisor(m, n->in[0], depth + 1), val_divisor(m, n->in[1], depth + 1));
  if (n->opcode == IR_ADD || n->opcode == IR_SUB || n->opcode == IR_MIN || n->opcode == IR_MAX)
    return ir_gcd(val_divisor(m, n->in[0], depth + 1), val_divisor(m, n->in[1], depth + 1));
  if (n->opcode == IR_SELECT)
    return ir_gcd(val_divisor(m, n->in[1], depth + 1), val_divisor(m, n->in[2], depth + 1));
  if (n->opcode == IR_NEG)
    return val_divisor(m, n->in[0], depth + 1);
  if (n->opcode == IR_FLOORDIV && ir_val_const(m, n->in[1], &c) && c > 0) {
    int64_t d = val_divisor(m, n->in[0], depth + 1);
    return d % c == 0 ? d / c : 1;
  }
  return 1;
}

int64_t ir_val_divisor(struct ir_module *m, struct ir_val v) {
  return val_divisor(m, v, 0);
}

static bool is_nonneg(struct ir_module *m, struct ir_val v, int depth) {
  int64_t c;
  if (depth > MAX_DEPTH)
    return false;
  if (ir_val_const(m, v, &c))
    return c >= 0;
  struct ir_op loop = ir_loop_of_index(m, v);
  if (loop.id) /* steps are at least 1 */
    return is_nonneg(m, ir_op_at(m, loop)->in[0], depth + 1);
  struct ir_op def = ir_value_at(m, v)->def;
  if (!def.id) {
    struct ir_entry e = ir_entry_of(m, v);
    return e.kind == IR_ENTRY_DIM || e.kind == IR_ENTRY_GRID;
  }
  const struct ir_opnode *n = ir_op_at(m, def);
  if (n->opcode == IR_ADD || n->opcode == IR_MUL || n->opcode == IR_MIN || n->opcode == IR_FLOORDIV)
    return is_nonneg(m, n->in[0], depth + 1) && is_nonneg(m, n->in[1], depth + 1);
  if (n->opcode == IR_MAX)
    return is_nonneg(m, n->in[0], depth + 1) || is_nonneg(m, n->in[1], depth + 1);
  if (n->opcode == IR_MOD)
    return ir_val_const(m, n->in[1], &c) && c > 0;
  if (n->opcode == IR_SELECT)
    return is_nonneg(m, n->in[1], depth + 1) && is_nonneg(m, n->in[2], depth + 1);
  return false;
}

bool ir_val_is_nonneg(struct ir_module *m, struct ir_val v) {
  return is_nonneg(m, v, 0);
}

/* v = base * scale + plus, where base is nothing, a grid axis or a loop index. */
struct strided {
  struct ir_val base;
  int64_t scale, plus;
};

static bool decompose(const struct ir_module *m, struct ir_val v, struct strided *s, int depth) {
  int64_t c;
  if (depth > MAX_DEPTH)
    return false;
  if (ir_val_const(m, v, &c)) {
    *s = (struct strided){{0}, 0, c};
    return true;
  }
  if (ir_loop_of_index(m, v).id || ir_entry_of(m, v).kind == IR_ENTRY_GRID) {
    *s = (struct strided){v, 1, 0};
    return true;
  }
  struct ir_op def = ir_value_at(m, v)->def;
  if (!def.id)
    return false;
  const struct ir_opnode *n = ir_op_at(m, def);
  if (n->opcode != IR_ADD && n->opcode != IR_SUB && n->opcode != IR_MUL)
    return false;
  struct strided a, b;
  if (!decompose(m, n->in[0], &a, depth + 1) || !decompose(m, n->in[1], &b, depth + 1))
    return false;
  if (n->opcode == IR_MUL) {
    if (a.base.id && b.base.id)
      return false;
    if (a.base.id == 0) {
      struct strided t = a;
      a = b;
      b = t;
    }
    *s = a;
    return !__builtin_mul_overflow(a.scale, b.plus, &s->scale) &&
           !__builtin_mul_overflow(a.plus, b.plus, &s->plus);
  }
  if (b.base.id && (a.base.id || n->opcode == IR_SUB))
    return false;
  *s = a.base.id ? a : b;
  return n->opcode == IR_ADD ? !__builtin_add_overflow(a.plus, b.plus, &s->plus)
                             : !__builtin_sub_overflow(a.plus, b.plus, &s->plus);
}

bool ir_val_linear(const struct ir_module *m, struct ir_val v, struct ir_val *base, int64_t *scale,
                   int64_t *plus) {
  struct strided s;
  if (!decompose(m, v, &s, 0))
    return false;
  *base = s.base;
  *scale = s.scale;
  *plus = s.plus;
  return true;
}

/* The largest value of base, known as a number: the last of lo, lo + step, ... below hi. */
static bool largest(struct ir_module *m, struct ir_val base, int64_t *last) {
  int64_t lo, hi, step;
  struct ir_entry e = ir_entry_of(m, base);
  if (e.kind == IR_ENTRY_GRID) {
    if (!ir_expr_value(m, m->grid[e.index], &hi))
      return false;
    *last = hi - 1;
    return true;
  }
  const struct ir_opnode *n = ir_op_at(m, ir_loop_of_index(m, base));
  struct expr h = ir_val_expr(m, n->in[1]);
  if (!ir_val_const(m, n->in[0], &lo) || !h.id || !ir_expr_value(m, h, &hi) ||
      !ir_val_const(m, n->in[2], &step) || step < 1 || hi > INT64_MAX / 4 || lo < -INT64_MAX / 4)
    return false;
  *last = hi > lo ? lo + (hi - 1 - lo) / step * step : lo;
  return true;
}

/* Is the value at most dim? */
static bool is_at_most(struct ir_module *m, struct ir_val v, struct expr dim, int depth) {
  struct expr e = ir_val_expr(m, v);
  int64_t a, b;
  if (e.id && (e.id == dim.id || (ir_expr_value(m, e, &a) && ir_expr_value(m, dim, &b) && a <= b)))
    return true;
  struct ir_op def = ir_value_at(m, v)->def;
  if (!def.id || depth > MAX_DEPTH || ir_op_at(m, def)->opcode != IR_MIN)
    return false;
  return is_at_most(m, ir_op_at(m, def)->in[0], dim, depth + 1) ||
         is_at_most(m, ir_op_at(m, def)->in[1], dim, depth + 1);
}

/* Grid axis g in [0, G): does g * scale + room <= dim hold, where room = plus + extent? */
static bool grid_fits(struct ir_module *m, struct expr grid, int64_t scale, int64_t room,
                      struct expr dim) {
  const struct expr_node *g = expr_at(&m->exprs, grid);
  int64_t by;
  if (grid.id == dim.id)
    return scale == 1 && room <= 1;
  if ((g->op != EXPR_CDIV && g->op != EXPR_DIV) || g->in[0].id != dim.id ||
      !ir_expr_value(m, g->in[1], &by) || by < 1)
    return false;
  /* The last program starts at (G - 1) * by, which is dim - by at most where by divides dim (or the
   * division floors). */
  return scale == by && room <= by && (g->op == EXPR_DIV || ir_expr_divisor(m, dim) % by == 0);
}

bool ir_val_fits(struct ir_module *m, struct ir_val offset, int64_t extent, struct expr dim) {
  struct strided s;
  int64_t size, last, end, room;
  if (!decompose(m, offset, &s, 0) || s.scale < 0 || __builtin_add_overflow(s.plus, extent, &room))
    return false;
  bool size_known = ir_expr_value(m, dim, &size);
  if (!s.base.id)
    return size_known && room <= size;
  if (size_known && largest(m, s.base, &last) && !__builtin_mul_overflow(last, s.scale, &end) &&
      !__builtin_add_overflow(end, room, &end))
    return end <= size;
  struct ir_entry e = ir_entry_of(m, s.base);
  if (e.kind == IR_ENTRY_GRID)
    return grid_fits(m, m->grid[e.index], s.scale, room, dim);
  const struct ir_opnode *n = ir_op_at(m, ir_loop_of_index(m, s.base));
  int64_t step;
  if (s.scale != 1 || !is_at_most(m, n->in[1], dim, 0))
    return false;
  if (room <= 1)
    return true;
  /* The last index is hi - step at most where lo and hi are multiples of step. */
  return ir_val_const(m, n->in[2], &step) && step > 0 && room <= step &&
         ir_val_divisor(m, n->in[0]) % step == 0 && ir_val_divisor(m, n->in[1]) % step == 0;
}

struct ir_op ir_val_fits_but_last(struct ir_module *m, struct ir_val offset, int64_t extent,
                                  struct expr dim) {
  const struct ir_op none = {0};
  struct strided s;
  int64_t room, step;
  if (!decompose(m, offset, &s, 0) || !s.base.id || s.scale != 1 ||
      __builtin_add_overflow(s.plus, extent, &room))
    return none;
  struct ir_op loop = ir_loop_of_index(m, s.base);
  if (!loop.id)
    return none;
  const struct ir_opnode *n = ir_op_at(m, loop);
  /* Before the last iteration index + step < hi. */
  return ir_val_const(m, n->in[2], &step) && step > 0 && room <= step &&
                 is_at_most(m, n->in[1], dim, 0)
             ? loop
             : none;
}
