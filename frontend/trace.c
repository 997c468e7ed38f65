/* Tracing a kernel: the evaluator's operators on device values, and fe_trace, which runs `grid` and
 * `body` of a kernel under a config and hands out the module they built. */
#include "base/check.h"
#include "frontend/dsl.h"

#include <stdio.h>

/* ---- operators ---- */

static bool is_object(const struct fe_dev *h) {
  return h && h->kind != FE_DEV_VALUE;
}

static void binary(void *user, enum fe_op op, int a, int b) {
  struct fe_file *f = user;
  lua_State *L = fe_lua(f->fe);
  struct fe_dev *ha = fe_to_dev(L, a), *hb = fe_to_dev(L, b);
  /* Tensors are compared by identity, as tables are. */
  if ((op == FE_OP_EQ || op == FE_OP_NE) && is_object(ha) && is_object(hb)) {
    lua_pushboolean(L, (ha == hb) == (op == FE_OP_EQ));
    return;
  }
  char what[16];
  snprintf(what, sizeof what, "`%s`", fe_op_text(op));
  struct dsl_opnd x, y;
  bool ok = dsl_opnd_at(f, a, what, &x);
  ok &= dsl_opnd_at(f, b, what, &y);
  dsl_push(f, ok ? dsl_binary(f, op, &x, &y) : NULL);
}

static void unary(void *user, enum fe_op op, int a) {
  struct fe_file *f = user;
  char what[16];
  snprintf(what, sizeof what, "`%s`", fe_op_text(op));
  struct dsl_opnd x;
  if (!dsl_opnd_at(f, a, what, &x)) {
    dsl_push(f, NULL);
    return;
  }
  dsl_push(f, dsl_elem(f, op == FE_OP_NEG ? IR_NEG : IR_NOT, what, 1, &x, DT_COUNT));
}

static void select_values(void *user, int mask, int yes, int no) {
  struct fe_file *f = user;
  struct dsl_opnd m, x, y;
  static const char what[] = "`mask and x or y`";
  bool ok = dsl_opnd_at(f, mask, what, &m);
  ok &= dsl_opnd_at(f, yes, what, &x);
  ok &= dsl_opnd_at(f, no, what, &y);
  dsl_push(f, ok ? dsl_select(f, what, &m, &x, &y) : NULL);
}

/* ---- fields and methods ---- */

static void refuse_name(struct fe_file *f, const struct fe_dev *h, int key, enum dsl_owner owner) {
  lua_State *L = fe_lua(f->fe);
  uint32_t n;
  const char *const *names = dsl_names(f, owner, &n);
  const char *key_text = lua_type(L, key) == LUA_TSTRING ? lua_tostring(L, key) : NULL;
  if (key_text)
    fe_soft_error(f->fe, DIAG_OPERAND, "%s has no `%s`%s; it has %s", f->tracer.describe(f, h),
                  key_text,
                  dsl_is_named(DSL_OF_global, key_text)
                      ? arena_printf(fe_arena(f->fe), ", call it as %s(x)", key_text)
                      : dsl_nearest(f, key_text, names, n),
                  dsl_join(f, names, n));
  else
    fe_soft_error(f->fe, DIAG_STAGE_OPERAND,
                  "%s cannot be indexed by %s; read a part of a tensor with t:tile(offsets, sizes)",
                  f->tracer.describe(f, h), dsl_describe(f, key));
}

static void index_dev(void *user, int obj, int key) {
  struct fe_file *f = user;
  lua_State *L = fe_lua(f->fe);
  struct fe_dev *h = fe_to_dev(L, obj);
  if (fe_is_unknown(h)) {
    fe_push_unknown(f->fe);
    return;
  }
  const char *name = lua_type(L, key) == LUA_TSTRING ? lua_tostring(L, key) : "";
  if (h->kind == FE_DEV_VALUE) {
    struct dsl_val *v = (struct dsl_val *)h;
    if (str_eq(name, "dtype")) {
      dsl_push_dtype(L, (enum dtype)v->t.dtype);
      return;
    }
    if (str_eq(name, "shape")) {
      lua_createtable(L, v->t.rank, 0);
      for (uint32_t d = 0; d < v->t.rank; d++) {
        lua_pushinteger(L, v->t.dim[d]);
        lua_rawseti(L, -2, (lua_Integer)d + 1);
      }
      fe_born(f->fe, lua_gettop(L));
      return;
    }
    if (dsl_push_method(L, false, key))
      return;
    refuse_name(f, h, key, DSL_OF_tile);
  } else if (h->kind == FE_DEV_OBJECT) {
    const struct dsl_view *v = (const struct dsl_view *)h;
    if (str_eq(name, "dtype")) {
      dsl_push_dtype(L, f->m->args.at[v->arg].dtype);
      return;
    }
    if (dsl_push_method(L, true, key))
      return;
    refuse_name(f, h, key, DSL_OF_tensor);
  } else {
    fe_soft_error(f->fe, DIAG_OPERAND, "a range only goes into `for k in range(lo, hi, step)`");
  }
  fe_push_unknown(f->fe);
}

/* ---- messages and merges ---- */

static const char *describe(void *user, const struct fe_dev *dev) {
  struct fe_file *f = user;
  if (dev->flags & FE_DEV_UNKNOWN)
    return "a value refused above";
  if (dev->kind == FE_DEV_RANGE)
    return "a range";
  if (dev->kind == FE_DEV_VALUE)
    return dsl_describe_type(f, ((const struct dsl_val *)dev)->t);
  const struct dsl_view *v = (const struct dsl_view *)dev;
  const struct ir_arg *arg = &f->m->args.at[v->arg];
  struct strbuf b = {.arena = fe_trace_arena(f->fe)};
  if (dev->region) { /* not an argument itself */
    sb_printf(&b, "%s, a ", v->name);
    ir_type_describe(v->t, &b);
    return sb_str(&b);
  }
  sb_printf(&b, "tensor %s %s(", ir_sym(f->m, arg->name), dtype_name(arg->dtype));
  for (uint32_t d = 0; d < arg->rank; d++) {
    if (d)
      sb_putc(&b, ',');
    expr_print(&f->m->exprs, arg->dim[d], &b);
  }
  sb_putc(&b, ')');
  return sb_str(&b);
}

static const char *type_name(void *user, const struct fe_dev *dev) {
  (void)user;
  if (dev->kind == FE_DEV_RANGE)
    return "range";
  if (dev->kind != FE_DEV_VALUE)
    return "tensor";
  return dev->flags & FE_DEV_SCALAR ? "scalar" : "tile";
}

static const char *suggest(void *user, const char *name) {
  struct fe_file *f = user;
  uint32_t n;
  const char *const *names = dsl_names(f, DSL_OF_global, &n);
  return dsl_nearest(f, name, names, n);
}

static const char *describe_type(void *user, struct fe_type type) {
  struct fe_file *f = user;
  return dsl_describe_type(f, dsl_type(f, type));
}

static bool fits(void *user, struct fe_type type, int idx) {
  struct fe_file *f = user;
  struct dsl_opnd o;
  const char *why;
  int kind = lua_type(fe_lua(f->fe), idx);
  if (kind != LUA_TNUMBER && kind != LUA_TBOOLEAN)
    return false;
  return dsl_opnd_at(f, idx, "", &o) && dsl_fits(f, (enum dtype)dsl_type(f, type).dtype, &o, &why);
}

static bool is_scalar_type(void *user, struct fe_type type) {
  return type.id && dsl_type(user, type).kind == IR_SCALAR;
}

/* The first name stays: `local q = p` says less of a value than the p that made it. */
static void named(void *user, struct fe_dev *dev, const char *name) {
  struct fe_file *f = user;
  if (fe_is_unknown(dev) || f->mode != DSL_BODY ||
      (dev->kind != FE_DEV_VALUE && dev->kind != FE_DEV_OBJECT))
    return;
  struct ir_val v =
      dev->kind == FE_DEV_VALUE ? ((struct dsl_val *)dev)->v : ((struct dsl_view *)dev)->v;
  /* A value of a region that was dropped has lost its place in the module. */
  if (v.id < f->m->values.n && !ir_value_at(f->m, v)->name.id)
    ir_value_at(f->m, v)->name = symtab_get(f->m->syms, name);
}

/* ---- print and assert ---- */

static struct sym text_sym(struct fe_file *f, const char *s, size_t n) {
  return symtab_intern(f->m->syms, s, n);
}

static int dev_assert(void *user, lua_State *L) {
  struct fe_file *f = user;
  int n = lua_gettop(L);
  struct dsl_val *v = dsl_val_at(f, 1, "assert");
  if (v && v->t.dtype != DT_BOOL) {
    fe_soft_error(f->fe, DIAG_TYPE_MISMATCH, "assert takes a comparison's result, got %s",
                  dsl_describe_type(f, v->t));
  } else if (v && f->mode == DSL_BODY) {
    if (n >= 2 && fe_is_dev(L, 2))
      fe_soft_error(f->fe, DIAG_OPERAND, "the message of an assert is a string, got %s",
                    dsl_describe(f, 2));
    struct ir_op o = dsl_build(f, IR_ASSERT, 1, &v->v, 0, NULL);
    if (n >= 2 && lua_type(L, 2) == LUA_TSTRING) {
      size_t len;
      const char *s = lua_tolstring(L, 2, &len);
      ir_set_attr(f->m, o, (struct ir_attr){.key = IR_ATTR_message, .s = text_sym(f, s, len)});
    }
  } else if (v) {
    fe_soft_error(f->fe, DIAG_STAGE_OPERAND, "assert on a device value is not available in grid");
  }
  return n;
}

/* One op: plain arguments are the message, `{}` stands for a device value that another plain
 * argument follows. */
static int dev_print(void *user, lua_State *L) {
  struct fe_file *f = user;
  int n = lua_gettop(L);
  struct arena *a = fe_trace_arena(f->fe);
  struct ir_val *in = ARENA_ARRAY(a, struct ir_val, n + 1);
  struct strbuf text = {.arena = a};
  uint32_t k = 0;
  size_t plain_end = 0;
  bool later = false;
  for (int i = 1; i <= n; i++) {
    if (text.n)
      sb_putc(&text, ' ');
    if (fe_is_dev(L, i)) {
      struct dsl_val *v = dsl_val_at(f, i, "print");
      if (!v)
        return 0;
      in[k++] = v->v;
      sb_puts(&text, "{}");
    } else {
      size_t len;
      const char *s = fe_lib_tostring(L, fe_lib_host_of(f->fe), i, &len);
      later |= k > 0;
      sb_put(&text, s, len);
      plain_end = text.n;
      lua_pop(L, 1);
    }
  }
  if (f->mode != DSL_BODY) {
    fe_soft_error(f->fe, DIAG_STAGE_OPERAND, "print of a device value is not available in grid");
    return 0;
  }
  struct ir_op o = dsl_build(f, IR_PRINT, k, in, 0, NULL);
  if (plain_end) {
    size_t len = later ? text.n : plain_end;
    ir_set_attr(f->m, o,
                (struct ir_attr){.key = IR_ATTR_message, .s = text_sym(f, sb_str(&text), len)});
  }
  return 0;
}

void dsl_fill_tracer(struct fe_file *f) {
  struct fe_tracer *t = &f->tracer;
  t->user = f;
  t->binary = binary;
  t->unary = unary;
  t->select = select_values;
  t->index = index_dev;
  t->describe = describe;
  t->type_name = type_name;
  t->describe_type = describe_type;
  t->suggest = suggest;
  t->fits = fits;
  t->is_scalar_type = is_scalar_type;
  t->named = named;
  t->index_type = dsl_type_id(f, ir_scalar(DT_INDEX));
  t->bool_type = dsl_type_id(f, ir_scalar(DT_BOOL));
  t->dev_assert = dev_assert;
  t->dev_print = dev_print;
  dsl_fill_region_hooks(t);
}

/* ---- fe_trace ---- */

struct trace_call {
  struct fe_file *f;
  const struct dsl_kernel *k;
  const struct fe_trace_options *opt;
  const bool *bound; /* per kernel dim */
};

static bool add_fact(struct ir_module *m, struct ir_fact fact) {
  for (uint32_t i = 0; i < m->facts.n; i++) {
    const struct ir_fact *o = &m->facts.at[i];
    if (o->sym.id == fact.sym.id && o->is_value == fact.is_value && o->n == fact.n)
      return false;
  }
  VEC_PUSH(m->arena, &m->facts, fact);
  return true;
}

/* "K//128" was written "K/128": the dim must divide. */
static void add_division_facts(struct ir_module *m, struct expr e, const char *text) {
  const struct expr_node *n = expr_at(&m->exprs, e);
  const char *slash = strchr(text, '/');
  if (!slash || slash[1] == '/' || n->op != EXPR_DIV)
    return;
  int64_t by;
  if (expr_at(&m->exprs, n->in[0])->op == EXPR_SYM && expr_is_const(&m->exprs, n->in[1], &by))
    add_fact(
        m, (struct ir_fact){.sym = expr_at(&m->exprs, n->in[0])->sym, .n = by, .at = m->at.kernel});
}

static void add_config(struct ir_module *m, const struct fe_kernel *k,
                       const struct fe_config *config) {
  for (uint32_t i = 0; i < k->n_choices; i++) {
    const struct fe_value *v = &config->at[i];
    struct ir_config_entry e = {.key = symtab_get(m->syms, k->choices[i].name)};
    switch (v->kind) {
    case FE_INT:
      e.kind = IR_CFG_INT;
      e.i = v->i;
      break;
    case FE_NUM:
      e.kind = IR_CFG_NUM;
      e.f = v->f;
      break;
    case FE_BOOL:
      e.kind = IR_CFG_BOOL;
      e.i = v->i;
      break;
    case FE_DTYPE:
      e.kind = IR_CFG_DTYPE;
      e.i = v->i;
      break;
    case FE_STR:
      e.kind = IR_CFG_STR;
      e.s = symtab_get(m->syms, v->s);
      break;
    case FE_NONE: continue;
    }
    VEC_PUSH(m->arena, &m->config, e);
  }
}

static bool is_absent(const struct fe_trace_options *opt, uint32_t arg) {
  return opt->absent >> arg & 1;
}

/* Arguments, dims, config and facts: all but grid and body. */
static void declare(struct trace_call *c, bool *bound) {
  struct fe_file *f = c->f;
  struct ir_module *m = f->m;
  const struct fe_kernel *k = &c->k->pub;
  m->kernel = symtab_get(m->syms, k->name);
  m->at.kernel = m->at.dims = m->at.config = m->at.grid = m->at.body = k->loc;
  for (uint32_t i = 0; i < k->n_args; i++) {
    const struct fe_arg *arg = &k->args[i];
    struct ir_arg a = {.name = symtab_get(m->syms, arg->name),
                       .kind = arg->kind,
                       .dtype = fe_arg_dtype(k, c->opt->config, arg),
                       .rank = arg->rank,
                       .optional = arg->optional,
                       .present = !is_absent(c->opt, i),
                       .zero = arg->zero,
                       .at = arg->loc};
    for (uint32_t d = 0; d < arg->rank; d++) {
      a.dim[d] = dsl_import_dim(&m->exprs, k, c->opt->config, arg->dim[d]);
      if (a.present)
        add_division_facts(m, a.dim[d], arg->dim_text[d]);
      for (uint32_t j = 0; a.present && a.kind != IR_ARG_SCRATCH && j < k->n_dims; j++)
        if (expr_at(k->exprs, arg->dim[d])->op == EXPR_SYM && str_eq(arg->dim_text[d], k->dims[j]))
          bound[j] = true;
    }
    VEC_PUSH(m->arena, &m->args, a);
  }
  for (uint32_t j = 0; j < k->n_dims; j++) {
    int64_t value;
    if (!bound[j])
      continue;
    struct sym s = symtab_get(m->syms, k->dims[j]);
    VEC_PUSH(m->arena, &m->dims, s);
    if (dsl_const_int_of(k, c->opt->config, k->dims[j], &value))
      add_fact(m, (struct ir_fact){.sym = s, .is_value = true, .n = value, .at = k->loc});
  }
  add_config(m, k, c->opt->config);
  for (uint32_t i = 0; i < c->opt->n_facts; i++) {
    const struct fe_fact *x = &c->opt->facts[i];
    add_fact(m, (struct ir_fact){.sym = symtab_get(m->syms, x->sym),
                                 .is_value = x->is_value,
                                 .n = x->n,
                                 .at = k->loc});
  }
}

/* The table `d`; expr: launch expressions in place of values. */
static void push_dims(struct trace_call *c, bool expr, const struct ir_val *vals) {
  struct fe_file *f = c->f;
  lua_State *L = fe_lua(f->fe);
  const struct fe_kernel *k = &c->k->pub;
  lua_createtable(L, 0, (int)k->n_dims);
  uint32_t n = 0;
  for (uint32_t j = 0; j < k->n_dims; j++) {
    if (!c->bound[j])
      continue;
    struct dsl_val *v = expr ? dsl_new_expr(f, DT_INDEX, expr_sym(&f->m->exprs, k->dims[j]))
                             : dsl_new_val(f, ir_scalar(DT_INDEX), vals[n]);
    int64_t value;
    if (dsl_const_int_of(k, c->opt->config, k->dims[j], &value)) {
      v->has_range = true;
      v->lo = v->hi = value;
    }
    n++;
    dsl_push(f, v);
    lua_setfield(L, -2, k->dims[j]);
  }
}

static void trace_grid(struct trace_call *c) {
  struct fe_file *f = c->f;
  lua_State *L = fe_lua(f->fe);
  int base = lua_gettop(L);
  f->mode = DSL_GRID;
  lua_rawgeti(L, LUA_REGISTRYINDEX, c->k->ref_grid);
  push_dims(c, true, NULL);
  dsl_push_config(L, &c->k->pub, c->opt->config);
  fe_call(f->fe, 2, LUA_MULTRET);
  int n = lua_gettop(L) - base;
  if (n < 1 || n > 3)
    fe_error_at(f->fe, DIAG_KERNEL_FIELD, c->k->pub.loc,
                "grid of kernel `%s` returns %d values; it must return 1 to 3 sizes",
                c->k->pub.name, n);
  for (int i = 0; i < n; i++) {
    int idx = base + 1 + i, is_int = 0;
    struct fe_dev *h = fe_to_dev(L, idx);
    struct expr e = {0};
    if (fe_is_unknown(h)) {
      e = expr_const(&f->m->exprs, 1); /* reported before */
    } else if (h && h->kind == FE_DEV_VALUE && (h->flags & FE_DEV_INT)) {
      e = ((struct dsl_val *)h)->e;
      f->m->at.grid = ((struct dsl_val *)h)->made;
    } else if (lua_type(L, idx) == LUA_TNUMBER && lua_tointegerx(L, idx, &is_int) >= 0 && is_int) {
      e = expr_const(&f->m->exprs, lua_tointeger(L, idx));
    } else {
      fe_error_at(f->fe, DIAG_KERNEL_FIELD, c->k->pub.loc,
                  "grid of kernel `%s` returns %s as size %d; it must be an integer",
                  c->k->pub.name, dsl_describe(f, idx), i + 1);
    }
    f->m->grid[i] = e;
  }
  f->m->n_grid = (uint32_t)n;
  lua_settop(L, base);
}

static int64_t static_dim(struct trace_call *c, const struct ir_arg *a, uint32_t d) {
  struct ir_module *m = c->f->m;
  int64_t value;
  if (expr_is_const(&m->exprs, a->dim[d], &value))
    return value;
  const struct expr_node *n = expr_at(&m->exprs, a->dim[d]);
  if (n->op == EXPR_SYM &&
      dsl_const_int_of(&c->k->pub, c->opt->config, symtab_str(m->syms, n->sym), &value))
    return value;
  return IR_DYN;
}

/* Pushes the arguments of `body`; returns their number. */
static int push_arguments(struct trace_call *c) {
  struct fe_file *f = c->f;
  struct ir_module *m = f->m;
  lua_State *L = fe_lua(f->fe);
  lua_createtable(L, 0, (int)m->args.n);
  for (uint32_t i = 0; i < m->args.n; i++) {
    const struct ir_arg *a = &m->args.at[i];
    if (!a->present)
      continue;
    struct ir_type t = {.kind = a->kind == IR_ARG_SCALAR ? IR_SCALAR : IR_VIEW,
                        .dtype = (uint8_t)a->dtype,
                        .rank = (uint8_t)a->rank};
    for (uint32_t d = 0; d < a->rank; d++)
      t.dim[d] = static_dim(c, a, d);
    struct ir_val v = ir_add_arg(m, m->body, t);
    ir_value_at(m, v)->name = a->name;
    if (t.kind == IR_SCALAR) {
      struct dsl_val *s = dsl_new_val(f, t, v);
      if (a->optional)
        s->h.flags |= FE_DEV_OPTIONAL;
      dsl_push(f, s);
    } else {
      struct dsl_view *w = dsl_arg_view(f, i, v);
      w->h.flags = a->optional ? FE_DEV_OPTIONAL : 0;
      w->made = c->k->pub.args[i].loc;
      dsl_push_view(f, w);
    }
    lua_setfield(L, -2, ir_sym(m, a->name));
  }
  struct ir_val *dims = ARENA_ARRAY(fe_trace_arena(f->fe), struct ir_val, m->dims.n + 1);
  for (uint32_t j = 0; j < m->dims.n; j++) {
    dims[j] = ir_add_arg(m, m->body, ir_scalar(DT_INDEX));
    ir_value_at(m, dims[j])->name = m->dims.at[j];
  }
  f->dim_vals = dims;
  push_dims(c, false, dims);
  dsl_push_config(L, &c->k->pub, c->opt->config);
  for (uint32_t g = 0; g < m->n_grid; g++) {
    struct dsl_val *v =
        dsl_new_val(f, ir_scalar(DT_INDEX), ir_add_arg(m, m->body, ir_scalar(DT_INDEX)));
    int64_t size;
    if (expr_is_const(&m->exprs, m->grid[g], &size) && size > 0) {
      v->has_range = true;
      v->hi = size - 1;
    }
    dsl_push(f, v);
  }
  return 3 + (int)m->n_grid;
}

/* A body has no results: who returns one expects it to be stored. */
static void refuse_results(struct trace_call *c, int base) {
  lua_State *L = fe_lua(c->f->fe);
  for (int i = base; i <= lua_gettop(L); i++)
    if (!lua_isnil(L, i) && !fe_is_unknown(fe_to_dev(L, i))) {
      fe_soft_error_at(c->f->fe, DIAG_KERNEL_FIELD, fe_returned_at(c->f->fe),
                       "body of kernel `%s` returns %s, which would be lost; a kernel gives its "
                       "results by storing them, as in a.Y:store(offsets, x)",
                       c->k->pub.name, dsl_describe(c->f, i));
      break;
    }
  lua_settop(L, base - 1);
}

struct run_call {
  struct trace_call *c;
  struct arena *a;
};

static void run_trace(struct fe_state *fe, void *user) {
  const struct run_call *r = user;
  struct trace_call *c = r->c;
  struct fe_file *f = c->f;
  lua_State *L = fe_lua(fe);
  f->m = ir_module_new(r->a, IR_TILE_STAGE);
  f->b = (struct ir_builder){.m = f->m, .block = f->m->body};
  bool *bound = ARENA_ARRAY(f->m->arena, bool, c->k->pub.n_dims + 1);
  c->bound = bound;
  f->locs.n = f->locs.cap = 0;
  f->locs.at = NULL;
  f->srcs.n = f->srcs.cap = 0;
  f->srcs.at = NULL;
  f->extents.n = f->extents.cap = 0;
  f->extents.at = NULL;
  fe_trace_begin(fe);
  VEC_PUSH(fe_trace_arena(fe), &f->srcs, (struct dsl_src){0});
  VEC_PUSH(fe_trace_arena(fe), &f->extents, (struct dsl_extent){.kind = DSL_EXTENT_OTHER});
  declare(c, bound);
  trace_grid(c);
  f->mode = DSL_BODY;
  lua_rawgeti(L, LUA_REGISTRYINDEX, c->k->ref_body);
  int base = lua_gettop(L);
  fe_call(fe, push_arguments(c), LUA_MULTRET);
  refuse_results(c, base);
  f->b.loc = 0;
  ir_build(&f->b, IR_RETURN, 0, NULL, 0, NULL);
  dsl_fuse_dots(f->m, fe_trace_arena(fe));
  fe_trace_end(fe, true);
}

struct ir_module *fe_trace(struct fe_file *f, const struct fe_kernel *k,
                           const struct fe_trace_options *opt, struct arena *a) {
  struct trace_call c = {.f = f, .k = f->kernels.at[k->index], .opt = opt};
  struct oom_trap *trap = a->trap;
  size_t limit = a->limit, room = fe_host_of(f->fe)->limits.memory;
  uint32_t before = f->diags->n_errors;
  a->trap = fe_trap(f->fe);
  if (!limit || limit > a->total + room)
    a->limit = a->total + room;
  enum fe_status s = fe_protect(f->fe, run_trace, &(struct run_call){&c, a});
  a->trap = trap;
  a->limit = limit;
  struct ir_module *m = f->m;
  f->m = NULL;
  f->mode = DSL_IDLE;
  return s == FE_DONE && f->diags->n_errors == before ? m : NULL;
}
