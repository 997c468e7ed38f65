/* Deep copies. Tables are copied as they are, so a handle means the same in the copy; names and
 * expressions are interned anew, as the copy has tables of its own. */
#include "ir/ir.h"

#include <string.h>

struct cloner {
  const struct ir_module *from;
  struct ir_module *to;
  struct arena *arena;
};

static struct sym clone_sym(struct cloner *c, struct sym s) {
  return s.id ? symtab_get(c->to->syms, ir_sym(c->from, s)) : s;
}

static struct expr clone_expr(struct cloner *c, struct expr e) {
  return e.id ? expr_import(&c->to->exprs, &c->from->exprs, e) : e;
}

/* Empties dst and gives it the elements of src. */
#define CLONE_VEC(c, dst, src)                                                                     \
  do {                                                                                             \
    (dst)->at = arena_copy((c)->arena, (src)->at, (src)->n * sizeof *(src)->at);                   \
    (dst)->n = (dst)->cap = (src)->n;                                                              \
  } while (0)

static struct ir_attr *clone_attrs(struct cloner *c, uint32_t n, const struct ir_attr *attrs) {
  struct ir_attr *copy = NULL;
  uint32_t room = 1; /* see build.c on the room of such arrays */
  while (room < n)
    room *= 2;
  if (n)
    copy = arena_get(c->arena, room * sizeof *copy);
  for (uint32_t i = 0; i < n; i++) {
    copy[i] = attrs[i];
    copy[i].s = clone_sym(c, attrs[i].s);
    copy[i].e = clone_expr(c, attrs[i].e);
    if (attrs[i].n_ints)
      copy[i].ints = arena_copy(c->arena, attrs[i].ints, attrs[i].n_ints * sizeof(int64_t));
  }
  return copy;
}

static struct ir_val *clone_vals(struct cloner *c, uint32_t n, const struct ir_val *v) {
  uint32_t room = 1;
  while (room < n)
    room *= 2;
  if (!n)
    return NULL;
  struct ir_val *copy = arena_get(c->arena, room * sizeof *copy);
  memcpy(copy, v, n * sizeof *copy);
  return copy;
}

static void clone_head(struct cloner *c) {
  const struct ir_module *from = c->from;
  struct ir_module *to = c->to;
  to->kernel = clone_sym(c, from->kernel);
  to->target = clone_sym(c, from->target);
  CLONE_VEC(c, &to->args, &from->args);
  for (uint32_t i = 0; i < to->args.n; i++) {
    struct ir_arg *a = &to->args.at[i];
    a->name = clone_sym(c, a->name);
    for (uint32_t k = 0; k < a->rank && k < IR_MAX_RANK; k++)
      a->dim[k] = clone_expr(c, a->dim[k]);
  }
  CLONE_VEC(c, &to->dims, &from->dims);
  for (uint32_t i = 0; i < to->dims.n; i++)
    to->dims.at[i] = clone_sym(c, to->dims.at[i]);
  CLONE_VEC(c, &to->config, &from->config);
  for (uint32_t i = 0; i < to->config.n; i++) {
    to->config.at[i].key = clone_sym(c, to->config.at[i].key);
    to->config.at[i].s = clone_sym(c, to->config.at[i].s);
  }
  CLONE_VEC(c, &to->facts, &from->facts);
  for (uint32_t i = 0; i < to->facts.n; i++)
    to->facts.at[i].sym = clone_sym(c, to->facts.at[i].sym);
  to->n_grid = from->n_grid;
  to->at = from->at;
  for (uint32_t i = 0; i < IR_MAX_GRID; i++)
    to->grid[i] = clone_expr(c, from->grid[i]);
  CLONE_VEC(c, &to->roles, &from->roles);
  for (uint32_t i = 0; i < to->roles.n; i++)
    to->roles.at[i].name = clone_sym(c, to->roles.at[i].name);
}

static void clone_resources(struct cloner *c) {
  const struct ir_module *from = c->from;
  struct ir_module *to = c->to;
  CLONE_VEC(c, &to->layouts, &from->layouts);
  for (uint32_t i = 1; i < to->layouts.n; i++) {
    const struct layout *l = from->layouts.at[i];
    struct layout *copy = layout_new(c->arena, l->rank, l->shape);
    CLONE_VEC(c, &copy->modes, &l->modes);
    to->layouts.at[i] = copy;
  }
  CLONE_VEC(c, &to->res, &from->res);
  for (uint32_t i = 1; i < to->res.n; i++) {
    struct ir_res *r = &to->res.at[i];
    r->name = clone_sym(c, r->name);
    r->attrs = clone_attrs(c, r->n_attrs, r->attrs);
  }
  CLONE_VEC(c, &to->params, &from->params);
  for (uint32_t i = 0; i < to->params.n; i++)
    to->params.at[i].value = clone_expr(c, to->params.at[i].value);
}

static void clone_ops(struct cloner *c) {
  const struct ir_module *from = c->from;
  struct ir_module *to = c->to;
  CLONE_VEC(c, &to->values, &from->values);
  for (uint32_t i = 1; i < to->values.n; i++)
    to->values.at[i].name = clone_sym(c, to->values.at[i].name);
  CLONE_VEC(c, &to->locs, &from->locs);
  CLONE_VEC(c, &to->blocks, &from->blocks);
  for (uint32_t i = 1; i < to->blocks.n; i++)
    CLONE_VEC(c, &to->blocks.at[i].args, &from->blocks.at[i].args);
  CLONE_VEC(c, &to->ops, &from->ops);
  for (uint32_t i = 1; i < to->ops.n; i++) {
    struct ir_opnode *n = &to->ops.at[i];
    n->in = clone_vals(c, n->n_in, n->in);
    n->out = clone_vals(c, n->n_out, n->out);
    if (n->n_blocks)
      n->blocks = arena_copy(c->arena, n->blocks, n->n_blocks * sizeof *n->blocks);
    if (n->n_res)
      n->res = arena_copy(c->arena, n->res, n->n_res * sizeof *n->res);
    n->attrs = clone_attrs(c, n->n_attrs, n->attrs);
  }
  to->body = from->body;
}

static struct recipe *clone_recipe(struct cloner *c) {
  const struct recipe *from = c->from->recipe;
  if (!from)
    return NULL;
  struct recipe *to = recipe_new(c->arena, c->to->syms);
#define IMPORT(e) ((e).id ? expr_import(&to->exprs, &from->exprs, (e)) : (e))
#define COPY(s)   ((s) ? arena_strdup(c->arena, (s)) : NULL)
  to->kernel = COPY(from->kernel);
  to->target = COPY(from->target);
  to->workspace_bytes = IMPORT(from->workspace_bytes);
  CLONE_VEC(c, &to->args, &from->args);
  for (uint32_t i = 0; i < to->args.n; i++) {
    struct recipe_arg *a = &to->args.at[i];
    a->name = COPY(a->name);
    for (uint32_t k = 0; k < a->rank && k < RECIPE_MAX_RANK; k++)
      a->dim[k] = IMPORT(a->dim[k]);
  }
  CLONE_VEC(c, &to->checks, &from->checks);
  for (uint32_t i = 0; i < to->checks.n; i++) {
    to->checks.at[i].cond = IMPORT(to->checks.at[i].cond);
    to->checks.at[i].message = COPY(to->checks.at[i].message);
  }
  CLONE_VEC(c, &to->steps, &from->steps);
  for (uint32_t i = 0; i < to->steps.n; i++) {
    struct recipe_step *s = &to->steps.at[i];
    s->offset = IMPORT(s->offset);
    s->bytes = IMPORT(s->bytes);
    s->entry = COPY(s->entry);
    for (uint32_t k = 0; k < 3; k++)
      s->grid[k] = IMPORT(s->grid[k]);
    CLONE_VEC(c, &s->params, &from->steps.at[i].params);
    for (uint32_t k = 0; k < s->params.n; k++) {
      struct recipe_param *p = &s->params.at[k];
      p->value = IMPORT(p->value);
      if (!p->tmap)
        continue;
      struct recipe_tmap *t = arena_copy(c->arena, p->tmap, sizeof *t);
      for (uint32_t d = 0; d < t->rank; d++) {
        t->dim[d] = IMPORT(t->dim[d]);
        t->stride[d] = IMPORT(t->stride[d]);
      }
      p->tmap = t;
    }
  }
#undef IMPORT
#undef COPY
  return to;
}

struct ir_module *ir_clone(const struct ir_module *m, struct arena *a) {
  struct ir_module *to = ARENA_NEW(a, struct ir_module);
  struct cloner c = {m, to, a};
  to->arena = a;
  to->syms = symtab_new(a);
  expr_pool_init(&to->exprs, a, to->syms);
  to->stage = m->stage;
  clone_head(&c);
  clone_resources(&c);
  clone_ops(&c);
  to->recipe = clone_recipe(&c);
  return to;
}
