/* The verifier: everything that later code may take for granted of a module.
 *
 * Reports every broken rule and goes on: the module's head (arguments, dims, facts, grid, entry
 * arguments, resources), then each op in order: what the op table says, that operands are visible
 * (defined before, in an enclosing block), then the op's rule (rules.def). Needs sound links
 * between ops and blocks; anything else may be wrong, as in a text just parsed. Not recursive
 * before depth is known to be bounded. */
#include "ir/verify.h"

#include "base/bitset.h"
#include "base/map.h"
#include "ir/resource.h"
#include "ir/rules.h"
#include "ir/table.h"
#include "ir/verify_machine.h"

#include <stdarg.h>
#include <stdio.h>

#define MAX_LAYOUT_EXTENT (1u << 20)

struct verifier {
  const struct ir_module *m;
  struct diag_sink *diags;
  struct ir_notes *notes;
  struct arena *scratch;
  bool ok;
  struct bitset defined; /* values seen so far */
  struct bitset open;    /* blocks around the current op */
  struct map dims, args; /* name -> index + 1 */
  struct diag_loc at;    /* the part of the head that is being checked */
};

const char *ir_type_text(struct ir_type t, struct ir_type_text *buf) {
  /* No arena at hand: rules run with none of their own. The longest type, of 5 dims of 20 digits,
   * fits. */
  size_t at = 0;
  const char *head = t.kind == IR_VIEW ? "view " : t.kind == IR_PTR ? "ptr " : "";
  if (t.kind == IR_NONE)
    return "none";
  at += (size_t)snprintf(buf->s, sizeof buf->s, "%s%s", head, dtype_name((enum dtype)t.dtype));
  if (t.kind != IR_TILE && t.kind != IR_VIEW)
    return buf->s;
  at += (size_t)snprintf(buf->s + at, sizeof buf->s - at, "(");
  for (uint32_t i = 0; i < t.rank; i++) {
    const char *comma = i ? "," : "";
    if (t.dim[i] == IR_DYN)
      at += (size_t)snprintf(buf->s + at, sizeof buf->s - at, "%s?", comma);
    else
      at += (size_t)snprintf(buf->s + at, sizeof buf->s - at, "%s%lld", comma, (long long)t.dim[i]);
  }
  snprintf(buf->s + at, sizeof buf->s - at, ")");
  return buf->s;
}
_Static_assert(sizeof(struct ir_type_text) >= 16 + IR_MAX_RANK * 21, "the longest type fits");

ir_rule_fn ir_rule(enum ir_rule r) {
  static const ir_rule_fn rules[] = {
#define RULE(id, text) ir_rule_##id,
#include "ir/rules.def"
  };
  return rules[r];
}

/* ---- reporting ---- */

/* At op, or without one at `head`. */
static void report(const struct ir_module *m, struct diag_sink *diags, struct ir_op op,
                   struct diag_loc head, const char *name, const char *fmt, va_list ap) {
  char message[600];
  int n = name ? snprintf(message, sizeof message, "%s: ", name) : 0;
  vsnprintf(message + n, sizeof message - (size_t)n, fmt, ap);
  uint32_t loc = op.id ? ir_op_at(m, op)->loc : 0;
  struct diag_loc at = loc < m->locs.n ? m->locs.at[loc].at : DIAG_NOWHERE;
  at = op.id ? at : head;
  diag_report(diags, DIAG_ERROR, DIAG_IR_INVALID, at, "%s", message);
  while (loc && loc < m->locs.n && m->locs.at[loc].up && m->locs.at[loc].up < loc) {
    loc = m->locs.at[loc].up;
    diag_note(diags, m->locs.at[loc].at, "called from here");
  }
}

static void fail(struct verifier *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void fail(struct verifier *v, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  report(v->m, v->diags, (struct ir_op){0}, v->at, NULL, fmt, ap);
  va_end(ap);
  v->ok = false;
}

void ir_rule_fail_at(struct ir_check *c, struct ir_op at, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  report(c->m, c->diags, at, DIAG_NOWHERE, ir_info(ir_op_at(c->m, at)->opcode)->name, fmt, ap);
  va_end(ap);
  c->ok = false;
}

void ir_rule_fail(struct ir_check *c, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  report(c->m, c->diags, c->op, DIAG_NOWHERE, c->info->name, fmt, ap);
  va_end(ap);
  c->ok = false;
}

/* ---- types and layouts ---- */

/* What is wrong with a type in this stage, or NULL. */
static const char *type_fault(const struct ir_module *m, struct ir_type t) {
  bool machine = m->stage == IR_MACHINE_STAGE;
  if (t.kind > IR_PTR || t.dtype >= DT_COUNT || t.rank > IR_MAX_RANK)
    return "is not a type";
  if (t.kind == IR_NONE)
    return "without a type";
  if (t.kind == IR_PTR)
    return machine ? NULL : "a pointer; those are of the machine stage";
  if (t.kind == IR_SCALAR)
    return NULL;
  if (machine)
    return "not a scalar or pointer, as values of the machine stage are";
  if (t.kind == IR_VIEW && t.dtype == DT_INDEX)
    return "a view of index, which is no type of memory";
  if (t.kind == IR_TILE && t.rank == 0)
    return "a tile without dims";
  for (uint32_t i = 0; i < t.rank; i++)
    if (t.kind == IR_TILE ? t.dim[i] < 1 : t.dim[i] < 0 && t.dim[i] != IR_DYN)
      return t.kind == IR_TILE ? "a tile with a dim below 1" : "a view with a negative dim";
  if (t.kind == IR_TILE && ir_elems(t) > IR_MAX_ELEMS)
    return "a tile of more than 16777216 elements";
  return NULL;
}

static bool layout_fits(const struct layout *l, struct ir_type t) {
  if (t.kind != IR_TILE || l->rank != t.rank)
    return false;
  for (uint32_t i = 0; i < t.rank; i++)
    if (l->shape[i] != t.dim[i])
      return false;
  return true;
}

static void check_layouts(struct verifier *v) {
  for (uint32_t i = 1; i < v->m->layouts.n; i++) {
    const struct layout *l = v->m->layouts.at[i];
    uint64_t total = 1;
    bool extents = true, steps = true;
    for (uint32_t k = 0; k < l->modes.n; k++) {
      const struct layout_mode *x = &l->modes.at[k];
      extents = extents && x->extent >= 1 && x->extent <= MAX_LAYOUT_EXTENT &&
                (total *= x->extent) <= UINT32_MAX;
      for (uint32_t d = 0; d < l->rank; d++)
        steps = steps && x->step[d] >= 0 && x->step[d] <= IR_MAX_ELEMS;
      if (!extents)
        break;
    }
    if (!extents)
      fail(v, "layout #%u: extents must be 1 to %u, their product below 2^32", i,
           MAX_LAYOUT_EXTENT);
    if (!steps)
      fail(v, "layout #%u: steps must be 0 to %lld", i, (long long)IR_MAX_ELEMS);
    for (uint32_t d = 0; d < l->rank; d++)
      if (l->shape[d] < 1)
        fail(v, "layout #%u: dim %u is %lld; it must be at least 1", i, d, (long long)l->shape[d]);
  }
}

/* ---- the module's head ---- */

/* Adds a name to a table of names; false if it was there. */
static bool add_name(struct map *names, struct sym name, uint32_t index) {
  if (map_get(names, name.id))
    return false;
  map_put(names, name.id, index + 1);
  return true;
}

/* A symbol that recipe.h binds at launch: a dim, an integer scalar argument, or a property of a
 * tensor argument. */
static bool is_launch_symbol(struct verifier *v, struct sym s) {
  if (map_get(&v->dims, s.id))
    return true;
  const char *text = ir_sym(v->m, s), *dot = strrchr(text, '.');
  uint32_t *arg = map_get(&v->args, s.id);
  if (arg) {
    const struct ir_arg *a = &v->m->args.at[*arg - 1];
    return a->kind == IR_ARG_SCALAR && dtype_is_int(a->dtype);
  }
  if (str_eq(text, "sm_count"))
    return true;
  struct sym owner;
  if (!dot || !symtab_find(v->m->syms, text, (size_t)(dot - text), &owner) ||
      !(arg = map_get(&v->args, owner.id)))
    return false;
  const struct ir_arg *a = &v->m->args.at[*arg - 1];
  if (a->kind == IR_ARG_SCALAR)
    return false;
  if (str_eq(dot, ".addr"))
    return true;
  size_t head = str_starts(dot, ".stride") ? 7 : str_starts(dot, ".dim") ? 4 : 0;
  return head && dot[head] >= '0' && dot[head] <= '9' && dot[head + 1] == 0 &&
         (uint32_t)(dot[head] - '0') < a->rank;
}

/* Every symbol of an expression is a dim, or with `any_launch` any launch symbol. */
static void check_expr(struct verifier *v, struct expr e, bool any_launch, const char *where) {
  const struct expr_pool *p = &v->m->exprs;
  if (!e.id || e.id >= p->nodes.n) {
    fail(v, "%s has no expression", where);
    return;
  }
  VEC(uint32_t) todo = {0};
  struct map seen;
  map_init(&seen, v->scratch);
  VEC_PUSH(v->scratch, &todo, e.id);
  while (todo.n) {
    uint32_t id = VEC_POP(&todo);
    if (!id || map_get(&seen, id))
      continue;
    map_put(&seen, id, 1);
    const struct expr_node *n = &p->nodes.at[id];
    if (n->op == EXPR_SYM && !map_get(&v->dims, n->sym.id) &&
        !(any_launch && is_launch_symbol(v, n->sym)))
      fail(v, "%s: `%s` is %s", where, ir_sym(v->m, n->sym),
           any_launch ? "not known at launch" : "not a dim of the kernel");
    for (int i = 0; i < 3; i++)
      VEC_PUSH(v->scratch, &todo, n->in[i].id);
  }
}

static void check_arg(struct verifier *v, const struct ir_arg *a) {
  const char *name = ir_sym(v->m, a->name);
  v->at = a->at;
  if (a->kind > IR_ARG_SCRATCH || a->dtype >= DT_COUNT) {
    fail(v, "argument `%s` has no kind or dtype", name);
    return;
  }
  if (a->kind == IR_ARG_SCALAR && a->rank)
    fail(v, "scalar argument `%s` has dims", name);
  if (a->kind != IR_ARG_SCALAR && a->dtype == DT_INDEX)
    fail(v, "argument `%s`: index is no type of memory; use s64", name);
  if (a->kind == IR_ARG_SCRATCH && (a->optional || !a->present))
    fail(v, "scratch argument `%s` is optional; it is never passed", name);
  if (a->zero && a->kind != IR_ARG_SCRATCH)
    fail(v, "argument `%s` is zero at launch, but no scratch", name);
  if (!a->present && !a->optional)
    fail(v, "argument `%s` is absent but not optional", name);
  if (a->rank > IR_MAX_RANK) {
    fail(v, "argument `%s` has rank %u; at most %d is supported", name, a->rank, IR_MAX_RANK);
    return;
  }
  for (uint32_t k = 0; k < a->rank; k++) {
    char where[160];
    int64_t value;
    snprintf(where, sizeof where, "dim %u of argument `%.100s`", k, name);
    check_expr(v, a->dim[k], false, where);
    if (a->dim[k].id && expr_is_const(&v->m->exprs, a->dim[k], &value) && value < 0)
      fail(v, "%s is negative", where);
  }
}

static void check_names(struct verifier *v) {
  const struct ir_module *m = v->m;
  v->at = m->at.kernel;
  if (!m->kernel.id)
    fail(v, "the kernel has no name");
  for (uint32_t i = 0; i < m->args.n; i++)
    if (!add_name(&v->args, m->args.at[i].name, i)) {
      v->at = m->args.at[i].at;
      fail(v, "argument `%s` is there twice", ir_sym(m, m->args.at[i].name));
    }
  v->at = m->at.dims;
  for (uint32_t i = 0; i < m->dims.n; i++) {
    const char *name = ir_sym(m, m->dims.at[i]);
    if (!add_name(&v->dims, m->dims.at[i], i))
      fail(v, "dim `%s` is there twice", name);
    if (map_get(&v->args, m->dims.at[i].id))
      fail(v, "`%s` is a dim and an argument", name);
  }
  v->at = m->at.config;
  struct map keys;
  map_init(&keys, v->scratch);
  for (uint32_t i = 0; i < m->config.n; i++)
    if (!add_name(&keys, m->config.at[i].key, i))
      fail(v, "config key `%s` is there twice", ir_sym(m, m->config.at[i].key));
  v->at = m->at.roles;
  struct map roles;
  map_init(&roles, v->scratch);
  for (uint32_t i = 0; i < m->roles.n; i++)
    if (!add_name(&roles, m->roles.at[i].name, i))
      fail(v, "role `%s` is there twice", ir_sym(m, m->roles.at[i].name));
  if (m->roles.n > 32)
    fail(v, "%u roles; at most 32 are supported", m->roles.n);
}

static void check_facts(struct verifier *v) {
  for (uint32_t i = 0; i < v->m->facts.n; i++) {
    const struct ir_fact *f = &v->m->facts.at[i];
    const char *name = ir_sym(v->m, f->sym);
    v->at = f->at;
    if (!is_launch_symbol(v, f->sym))
      fail(v, "fact: `%s` is not known at launch", name);
    if (!f->is_value && f->n < 1)
      fail(v, "fact: `%s` %% %lld: a divisor is at least 1", name, (long long)f->n);
  }
}

/* May a view of this argument have the static size `dim` in dim k? */
static bool dim_is_known(const struct verifier *v, const struct ir_arg *a, uint32_t k,
                         int64_t dim) {
  int64_t value;
  if (expr_is_const(&v->m->exprs, a->dim[k], &value))
    return value == dim;
  const struct expr_node *n = expr_at(&v->m->exprs, a->dim[k]);
  for (uint32_t i = 0; n->op == EXPR_SYM && i < v->m->facts.n; i++) {
    const struct ir_fact *f = &v->m->facts.at[i];
    if (f->is_value && f->sym.id == n->sym.id && f->n == dim)
      return true;
  }
  return false;
}

static void check_entry_arg(struct verifier *v, const struct ir_arg *a, struct ir_type t) {
  struct ir_type_text x;
  const char *name = ir_sym(v->m, a->name);
  bool scalar = a->kind == IR_ARG_SCALAR;
  if (t.kind != (scalar ? IR_SCALAR : IR_VIEW) || t.dtype != a->dtype ||
      (!scalar && t.rank != a->rank)) {
    fail(v, "argument `%s` enters the body as %s", name, ir_type_text(t, &x));
    return;
  }
  for (uint32_t k = 0; !scalar && k < t.rank; k++)
    if (t.dim[k] != IR_DYN && a->dim[k].id && !dim_is_known(v, a, k, t.dim[k]))
      fail(v, "argument `%s` enters the body as %s, but nothing says that dim %u is %lld", name,
           ir_type_text(t, &x), k, (long long)t.dim[k]);
}

/* Body arguments of the tile stages: arguments, dims, grid. */
static void check_tile_entry(struct verifier *v) {
  const struct ir_module *m = v->m;
  const struct ir_blocknode *body = ir_block_at(m, m->body);
  uint32_t n_present = 0, k = 0;
  for (uint32_t i = 0; i < m->args.n; i++)
    n_present += m->args.at[i].present;
  if (body->args.n != n_present + m->dims.n + m->n_grid) {
    fail(v, "the body has %u arguments; %u kernel arguments, %u dims and %u grid axes need %u",
         body->args.n, n_present, m->dims.n, m->n_grid, n_present + m->dims.n + m->n_grid);
    return;
  }
  for (uint32_t i = 0; i < m->args.n; i++)
    if (m->args.at[i].present)
      check_entry_arg(v, &m->args.at[i], ir_type_of(m, body->args.at[k++]));
  for (; k < body->args.n; k++)
    if (!ir_type_eq(ir_type_of(m, body->args.at[k]), ir_scalar(DT_INDEX)))
      fail(v, "body argument %u stands for a dim or grid axis: it must be an index scalar", k + 1);
}

static void check_param(struct verifier *v, uint32_t i, struct ir_type t) {
  const struct ir_module *m = v->m;
  const struct ir_param *p = &m->params.at[i];
  struct ir_type_text x;
  char where[40];
  snprintf(where, sizeof where, "param %u", i);
  const struct ir_arg *a = p->arg < m->args.n ? &m->args.at[p->arg] : NULL;
  bool ok = false;
  switch (p->kind) {
  case RECIPE_PARAM_PTR:
    ok = a && a->kind != IR_ARG_SCALAR && t.kind == IR_PTR && t.dtype == a->dtype;
    break;
  case RECIPE_PARAM_SCALAR:
    ok = a && a->kind == IR_ARG_SCALAR && ir_type_eq(t, ir_scalar(a->dtype));
    break;
  case RECIPE_PARAM_WORKSPACE:
    ok = t.kind == IR_PTR;
    check_expr(v, p->value, true, where);
    break;
  case RECIPE_PARAM_I32:
    ok = ir_type_eq(t, ir_scalar(DT_S32));
    check_expr(v, p->value, true, where);
    break;
  case RECIPE_PARAM_I64:
    ok = ir_type_eq(t, ir_scalar(DT_S64)) || ir_type_eq(t, ir_scalar(DT_INDEX));
    check_expr(v, p->value, true, where);
    break;
  case RECIPE_PARAM_TMAP:
    ok = p->res > 0 && p->res < m->res.n && m->res.at[p->res].kind == IR_RES_TMAP &&
         t.kind == IR_PTR && t.dtype == m->res.at[p->res].type.dtype;
    break;
  }
  if (!ok)
    fail(v, "%s does not fit its body argument of type %s", where, ir_type_text(t, &x));
}

static void check_machine_head(struct verifier *v) {
  const struct ir_module *m = v->m;
  const struct ir_blocknode *body = ir_block_at(m, m->body);
  v->at = m->at.kernel;
  if (!m->target.id)
    fail(v, "a machine module needs a target");
  v->at = m->at.body;
  if (body->args.n != m->params.n)
    fail(v, "the body has %u arguments for %u params", body->args.n, m->params.n);
  else
    for (uint32_t i = 0; i < m->params.n; i++)
      check_param(v, i, ir_type_of(m, body->args.at[i]));
  v->at = m->at.kernel;
  struct map names;
  map_init(&names, v->scratch);
  for (uint32_t i = 1; i < m->res.n; i++) {
    const struct ir_res *r = &m->res.at[i];
    const char *name = ir_sym(m, r->name), *fault;
    struct ir_type_text x;
    if (!r->name.id)
      fail(v, "resource %u has no name", i);
    else if (!add_name(&names, r->name, i))
      fail(v, "resource `%s` is there twice", name);
    struct ir_type t = r->type;
    struct ir_module tile = {.stage = IR_TILE_STAGE};
    if (t.kind != IR_NONE && t.kind != IR_TILE)
      fail(v, "resource `%s` is %s; it must be a tile or have no type", name, ir_type_text(t, &x));
    else if (t.kind == IR_TILE && (fault = type_fault(&tile, t)))
      fail(v, "resource `%s` is %s", name, fault);
    if (r->layout >= m->layouts.n)
      fail(v, "resource `%s`: there is no layout #%u", name, r->layout);
    else if (r->layout && !layout_fits(m->layouts.at[r->layout], t))
      fail(v, "resource `%s` is %s, layout #%u is of another shape", name, ir_type_text(t, &x),
           r->layout);
  }
}

static void check_head(struct verifier *v) {
  const struct ir_module *m = v->m;
  check_names(v);
  for (uint32_t i = 0; i < m->args.n; i++)
    check_arg(v, &m->args.at[i]);
  check_facts(v);
  v->at = m->at.kernel;
  check_layouts(v);
  v->at = m->at.grid.line ? m->at.grid : m->at.kernel;
  if (m->n_grid < 1 || m->n_grid > IR_MAX_GRID)
    fail(v, "the grid has %u axes; it must have 1 to %d", m->n_grid, IR_MAX_GRID);
  else
    for (uint32_t i = 0; i < m->n_grid; i++)
      check_expr(v, m->grid[i], true, "grid");
  v->at = m->at.kernel;
  if (m->stage == IR_TILE_STAGE && (m->layouts.n > 1 || m->roles.n))
    fail(v, "layouts and roles are of the later stages");
  const struct ir_blocknode *body = ir_block_at(m, m->body);
  v->at = m->at.body;
  for (uint32_t i = 0; i < body->args.n; i++) {
    const char *fault = type_fault(m, ir_type_of(m, body->args.at[i]));
    if (fault)
      fail(v, "body argument %u is %s", i + 1, fault);
    if (ir_value_at(m, body->args.at[i])->layout)
      fail(v, "body argument %u has a layout", i + 1);
  }
  if (m->stage != IR_MACHINE_STAGE && (m->res.n > 1 || m->params.n || m->recipe))
    fail(v, "resources, params and the recipe are of the machine stage");
  if (m->stage == IR_MACHINE_STAGE)
    check_machine_head(v);
  else
    check_tile_entry(v);
}

/* ---- ops ---- */

static void check_value(struct ir_check *c, struct ir_val x, const char *what, uint32_t i) {
  const struct ir_module *m = c->m;
  const struct ir_value *value = ir_value_at(m, x);
  const char *fault = type_fault(m, value->type);
  struct ir_type_text t;
  if (fault)
    ir_rule_fail(c, "%s %u is %s", what, i + 1, fault);
  if (!value->layout)
    return;
  if (m->stage != IR_SCHEDULED_STAGE)
    ir_rule_fail(c, "%s %u has a layout; values have one in the scheduled stage only", what, i + 1);
  else if (value->layout >= m->layouts.n)
    ir_rule_fail(c, "%s %u: there is no layout #%u", what, i + 1, value->layout);
  else if (!layout_fits(m->layouts.at[value->layout], value->type))
    ir_rule_fail(c, "%s %u is %s, its layout #%u is of another shape", what, i + 1,
                 ir_type_text(value->type, &t), value->layout);
}

/* Operands: defined before, in a block that is still open. */
static void check_operands(struct verifier *v, struct ir_check *c) {
  const struct ir_module *m = v->m;
  for (uint32_t i = 0; i < c->n->n_in; i++) {
    struct ir_val x = c->n->in[i];
    if (!x.id || x.id >= m->values.n) {
      ir_rule_fail(c, "operand %u is no value", i + 1);
      continue;
    }
    const struct ir_value *value = ir_value_at(m, x);
    struct ir_block home = value->def.id ? ir_op_at(m, value->def)->block : value->block;
    if (!bitset_has(&v->defined, x.id))
      ir_rule_fail(c, "operand %u is used before it is defined", i + 1);
    else if (!bitset_has(&v->open, home.id))
      ir_rule_fail(c, "operand %u is used outside the block that defines it", i + 1);
  }
}

/* Resources: as many and of the kinds that the op's row in res_uses.def says. */
static void check_uses(struct ir_check *c) {
  const struct ir_res_uses *u = ir_uses(c->n->opcode);
  if (!u) {
    if (c->n->n_res)
      ir_rule_fail(c, "takes no resources");
    return;
  }
  const struct ir_res_use *last = &u->use[u->n - 1];
  uint32_t least = last->optional ? u->n - 1u : u->n;
  bool ok = c->n->n_res >= least && (last->many || c->n->n_res <= u->n);
  for (uint32_t i = 0; ok && i < c->n->n_res; i++) {
    const struct ir_res_use *use = i < u->n ? &u->use[i] : last;
    ok = c->n->res[i] > 0 && c->n->res[i] < c->m->res.n &&
         (use->kinds >> c->m->res.at[c->n->res[i]].kind & 1);
  }
  if (!ok)
    ir_rule_fail(c, "its resources must be %s", u->text);
}

static void check_attrs(struct ir_check *c) {
  for (uint32_t k = 0; k < c->info->n_attrs; k++) {
    enum ir_attr_key key = (enum ir_attr_key)c->info->attrs[k].key;
    if (c->info->attrs[k].required && !ir_get_attr(c->m, c->op, key))
      ir_rule_fail(c, "needs the attribute `%s`", ir_attr_name(key));
  }
  for (uint32_t i = 0; i < c->n->n_attrs; i++) {
    uint32_t k = 0;
    while (k < c->info->n_attrs && c->info->attrs[k].key != c->n->attrs[i].key)
      k++;
    if (k == c->info->n_attrs)
      ir_rule_fail(c, "takes no attribute `%s`", ir_attr_name(c->n->attrs[i].key));
  }
}

static void check_sched(struct ir_check *c) {
  const struct ir_sched *s = &c->n->sched;
  uint32_t n_roles = c->m->roles.n;
  if (c->m->stage == IR_TILE_STAGE && (s->role_mask || s->stage || s->order))
    ir_rule_fail(c, "has a schedule; ops have one from the scheduled stage on");
  else if (n_roles < 32 && s->role_mask >> n_roles)
    ir_rule_fail(c, "runs in a role that the module does not list");
  else if (s->stage < 0 || s->order < 0)
    ir_rule_fail(c, "stage and order must be at least 0");
}

/* What the op's row in the table says. */
static void check_row(struct ir_check *c) {
  static const char *const stages[] = {"tile", "scheduled", "machine"};
  const struct ir_opinfo *info = c->info;
  if (!(info->stages >> c->m->stage & 1))
    ir_rule_fail(c, "is no op of the %s stage", stages[c->m->stage]);
  if (info->n_in != IR_ANY && c->n->n_in != info->n_in)
    ir_rule_fail(c, "takes %u operands, %u are given", info->n_in, c->n->n_in);
  if (info->n_out != IR_ANY && c->n->n_out != info->n_out)
    ir_rule_fail(c, "gives %u results, %u are named", info->n_out, c->n->n_out);
  if (c->n->n_blocks != info->n_blocks)
    ir_rule_fail(c, "owns %u blocks, has %u", info->n_blocks, c->n->n_blocks);
  if (c->n->n_res && c->m->stage != IR_MACHINE_STAGE)
    ir_rule_fail(c, "names resources; those are of the machine stage");
  if (c->m->stage == IR_MACHINE_STAGE)
    check_uses(c);
  check_attrs(c);
  check_sched(c);
}

/* Keeps what was reported since the sink's list had `first` entries. */
static void keep_notes(struct verifier *v, struct ir_op o, uint32_t first) {
  for (uint32_t i = first; v->notes && i < v->diags->list.n; i++) {
    struct ir_note note = {o, v->diags->list.at[i].message};
    VEC_PUSH(v->notes->arena, &v->notes->list, note);
  }
}

static void verify_block(struct verifier *v, struct ir_block b, struct ir_op owner, uint32_t depth);

static void verify_op(struct verifier *v, struct ir_op o, uint32_t depth) {
  const struct ir_module *m = v->m;
  const struct ir_opnode *n = ir_op_at(m, o);
  uint32_t first = v->diags->list.n;
  struct ir_check c = {m, v->diags, o, n, ir_info(n->opcode), true};
  check_row(&c);
  check_operands(v, &c);
  for (uint32_t i = 0; i < n->n_out; i++) {
    check_value(&c, n->out[i], "result", i);
    if (ir_value_at(m, n->out[i])->def.id != o.id || ir_value_at(m, n->out[i])->index != i)
      ir_rule_fail(&c, "result %u belongs to another op", i + 1);
  }
  for (uint32_t i = 0; i < n->n_blocks; i++) {
    const struct ir_blocknode *bn = ir_block_at(m, n->blocks[i]);
    for (uint32_t k = 0; k < bn->args.n; k++) {
      const struct ir_value *arg = ir_value_at(m, bn->args.at[k]);
      check_value(&c, bn->args.at[k], "block argument", k);
      if (arg->def.id || arg->block.id != n->blocks[i].id || arg->index != k)
        ir_rule_fail(&c, "block argument %u belongs to another block", k + 1);
    }
  }
  if ((c.info->traits & IR_TERM) && n->next.id)
    ir_rule_fail(&c, "ends its block, but another op follows");
  bool too_deep = n->n_blocks && depth == IR_MAX_DEPTH;
  if (too_deep)
    ir_rule_fail(&c, "blocks are nested deeper than %d", IR_MAX_DEPTH);
  if (c.ok)
    ir_rule((enum ir_rule)c.info->rule)(&c);
  v->ok = v->ok && c.ok;
  keep_notes(v, o, first);
  for (uint32_t i = 0; i < n->n_blocks && !too_deep; i++)
    verify_block(v, n->blocks[i], o, depth + 1);
  /* Results are not visible in the op's own blocks. */
  for (uint32_t i = 0; i < n->n_out; i++)
    bitset_add(&v->defined, n->out[i].id);
}

static void verify_block(struct verifier *v, struct ir_block b, struct ir_op owner,
                         uint32_t depth) {
  const struct ir_module *m = v->m;
  const struct ir_blocknode *n = ir_block_at(m, b);
  bitset_add(&v->open, b.id);
  for (uint32_t i = 0; i < n->args.n; i++)
    bitset_add(&v->defined, n->args.at[i].id);
  IR_EACH_OP (m, b, o)
    verify_op(v, o, depth);
  if (!n->last.id || !(ir_info(ir_op_at(m, n->last)->opcode)->traits & IR_TERM)) {
    struct ir_op at = n->last.id ? n->last : owner;
    struct ir_check c = {m, v->diags, at, NULL, NULL, true};
    uint32_t first = v->diags->list.n;
    if (n->last.id)
      ir_rule_fail_at(&c, at, "is the last op of its block, which must end in a terminator");
    else if (owner.id)
      ir_rule_fail_at(&c, at, "has an empty block; each ends in a terminator");
    else
      fail(v, "the body is empty; it ends in `return`");
    v->ok = false;
    keep_notes(v, at, first);
  }
  bitset_remove(&v->open, b.id);
}

/* notes->arena must not be the module's: what the verifier allocates there is given back. */
bool ir_verify_notes(const struct ir_module *m, struct diag_sink *diags, struct ir_notes *notes) {
  struct verifier v = {.m = m, .diags = diags, .notes = notes, .scratch = m->arena, .ok = true};
  struct arena_mark mark = arena_get_mark(m->arena);
  v.defined = bitset_new(m->arena, m->values.n);
  v.open = bitset_new(m->arena, m->blocks.n);
  map_init(&v.dims, m->arena);
  map_init(&v.args, m->arena);
  uint32_t first = diags->list.n;
  check_head(&v);
  if (m->stage == IR_MACHINE_STAGE)
    ir_check_machine(m, diags, &v.ok);
  keep_notes(&v, (struct ir_op){0}, first);
  verify_block(&v, m->body, (struct ir_op){0}, 0);
  first = diags->list.n;
  if (m->stage == IR_MACHINE_STAGE && v.ok)
    ir_check_in_flight(m, diags, &v.ok);
  keep_notes(&v, (struct ir_op){0}, first);
  arena_reset(m->arena, mark);
  return v.ok;
}

bool ir_verify(const struct ir_module *m, struct diag_sink *diags) {
  return ir_verify_notes(m, diags, NULL);
}
