/* The launch recipe of a machine module: what the facts assume becomes checks, what the kernel
 * takes becomes parameters. Shared memory is filled in when buffers have their places. */
#include "codegen/lower.h"
#include "codegen/recipe.h"
#include "codegen/schedule.h"
#include "ir/range.h"
#include "ir/resource.h"

#include "base/check.h"

/* Function name: the kernel's, letters alone, and a suffix that keeps it off reserved words. */
const char *cg_entry_name(const struct ir_module *m) {
  char *name = arena_printf(m->arena, "%s_kernel", ir_sym(m, m->kernel));
  for (char *c = name; *c; c++)
    if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9')))
      *c = '_';
  if (name[0] >= '0' && name[0] <= '9')
    name = arena_printf(m->arena, "k%s", name);
  return name;
}

static void add_arg(struct recipe *r, const struct ir_module *m, const struct ir_arg *a) {
  static const enum recipe_arg_kind kinds[] = {
      [IR_ARG_IN] = RECIPE_IN,
      [IR_ARG_OUT] = RECIPE_OUT,
      [IR_ARG_INOUT] = RECIPE_INOUT,
      [IR_ARG_SCALAR] = RECIPE_SCALAR,
  };
  struct recipe_arg x = {
      .name = arena_strdup(r->arena, ir_sym(m, a->name)),
      .kind = kinds[a->kind],
      .dtype = a->dtype,
      .rank = a->rank,
      .optional = a->optional,
  };
  for (uint32_t d = 0; d < a->rank; d++)
    x.dim[d] = expr_import(&r->exprs, &m->exprs, a->dim[d]);
  VEC_PUSH(r->arena, &r->args, x);
}

struct expr cg_scratch_bytes(struct ir_module *m, uint32_t arg) {
  const struct ir_arg *a = &m->args.at[arg];
  struct expr_pool *p = &m->exprs;
  struct expr n = expr_const(p, dtype_bits(a->dtype));
  for (uint32_t d = 0; d < a->rank; d++)
    n = expr_op2(p, EXPR_MUL, a->dim[d], n);
  struct expr per = expr_const(p, 8 * IR_SCRATCH_ALIGN);
  n = expr_op2(p, EXPR_CDIV, n, per);
  return expr_op2(p, EXPR_MUL, n, expr_const(p, IR_SCRATCH_ALIGN));
}

const struct recipe_tmap *cg_recipe_tmap(struct recipe *r, const struct ir_module *m,
                                         uint32_t res) {
  const struct ir_res *x = &m->res.at[res];
  const struct ir_attr *perm = ir_res_attr(x, IR_ATTR_perm), *box = ir_res_attr(x, IR_ATTR_box);
  struct recipe_tmap *t = ARENA_NEW(r->arena, struct recipe_tmap);
  struct expr_pool *p = &r->exprs;
  uint32_t arg = 0;
  bool found = ir_tmap_arg(m, x, &arg);
  KILN_ASSERT(found && perm && box);
  (void)found;
  const struct ir_arg *a = &m->args.at[arg];
  *t = (struct recipe_tmap){
      .rank = a->rank,
      .swizzle = (uint32_t)ir_res_int(x, IR_ATTR_swizzle_bytes, 0),
      .l2 = (uint32_t)ir_res_int(x, IR_ATTR_l2, 0),
      .fill_nan = str_eq(ir_res_word(m, x, IR_ATTR_fill), "nan"),
      .tf32 = str_eq(ir_res_word(m, x, IR_ATTR_round), "tf32"),
  };
  for (uint32_t d = 0; d < t->rank; d++) {
    uint32_t of = (uint32_t)perm->ints[d];
    const char *stride = arena_printf(r->arena, "%s.stride%u", ir_sym(m, a->name), of);
    t->dim[d] = expr_import(p, &m->exprs, a->dim[of]);
    t->stride[d] =
        expr_op2(p, EXPR_MUL, expr_const(p, dtype_bytes(a->dtype, 1)), expr_sym(p, stride));
    t->box[d] = (uint32_t)box->ints[d];
  }
  return t;
}

static void add_check(struct recipe *r, struct expr cond, const char *message) {
  struct recipe_check c = {.cond = cond, .message = message};
  int64_t value;
  if (!expr_is_const(&r->exprs, cond, &value) || !value)
    VEC_PUSH(r->arena, &r->checks, c);
}

static void add_fact(struct recipe *r, const struct ir_module *m, const struct ir_fact *f) {
  struct expr_pool *p = &r->exprs;
  const char *name = ir_sym(m, f->sym);
  struct expr s = expr_sym(p, name), n = expr_const(p, f->n), zero = expr_const(p, 0);
  if (f->is_value)
    add_check(r, expr_op2(p, EXPR_EQ, s, n),
              arena_printf(r->arena, "compiled for %s = %lld", name, (long long)f->n));
  else
    add_check(r, expr_op2(p, EXPR_EQ, expr_op2(p, EXPR_MOD, s, n), zero),
              arena_printf(r->arena, "compiled for %s divisible by %lld", name, (long long)f->n));
}

/* The workspace of scratch arguments, one behind the other; those that start as zeros are set at
 * each launch. What the others hold is nobody's business. */
static void add_scratch(struct recipe *r, struct ir_module *m) {
  struct expr_pool *p = &r->exprs;
  struct expr end = expr_const(p, 0), zero = end;
  for (uint32_t k = 0; k < m->args.n; k++) {
    const struct ir_arg *a = &m->args.at[k];
    if (a->kind != IR_ARG_SCRATCH)
      continue;
    for (uint32_t d = 0; d < a->rank; d++)
      if (expr_at(&m->exprs, a->dim[d])->op != EXPR_SYM) /* a dim of an argument */
        add_check(
            r, expr_op2(p, EXPR_LE, zero, expr_import(p, &m->exprs, a->dim[d])),
            arena_printf(r->arena, "dim %u of scratch `%s` is negative", d, ir_sym(m, a->name)));
    struct expr bytes = expr_import(p, &m->exprs, cg_scratch_bytes(m, k));
    struct recipe_step step = {.kind = RECIPE_MEMSET, .offset = end, .bytes = bytes};
    if (a->zero)
      VEC_PUSH(m->arena, &r->steps, step);
    end = expr_op2(p, EXPR_ADD, end, bytes);
    r->workspace_bytes = end;
  }
}

/* The tensor memory unit takes coordinates of 32 bits, and no map of nothing. */
static void check_map(struct recipe *r, const struct ir_module *m, const struct recipe_tmap *t,
                      uint32_t arg) {
  struct expr_pool *p = &r->exprs;
  for (uint32_t d = 0; d < t->rank; d++) {
    const char *name = r->args.at[arg].name;
    add_check(r, expr_op2(p, EXPR_LT, expr_const(p, 0), t->dim[d]),
              arena_printf(m->arena, "%s must have elements", name));
    add_check(r, expr_op2(p, EXPR_LE, t->dim[d], expr_const(p, INT32_MAX)),
              arena_printf(m->arena, "a dim of %s is more than 2^31 - 1", name));
  }
}

void cg_fill_recipe(struct lower *l, struct expr tiles) {
  struct ir_module *m = l->m;
  struct recipe *r = recipe_new(m->arena, m->syms);
  struct expr_pool *p = &r->exprs;
  r->kernel = arena_strdup(m->arena, ir_sym(m, m->kernel));
  r->target = arena_strdup(m->arena, ir_sym(m, m->target));
  uint32_t *position = ARENA_ARRAY(l->a, uint32_t, m->args.n + 1); /* in the recipe */
  for (uint32_t i = 0; i < m->args.n; i++) {
    position[i] = r->args.n;
    if (m->args.at[i].kind != IR_ARG_SCRATCH)
      add_arg(r, m, &m->args.at[i]);
  }
  for (uint32_t i = 0; i < m->facts.n; i++)
    add_fact(r, m, &m->facts.at[i]);
  for (uint32_t i = 0; i < m->args.n; i++) {
    const struct ir_arg *a = &m->args.at[i];
    int64_t bytes = dtype_bytes(a->dtype, 1);
    if (a->kind == IR_ARG_SCALAR || a->kind == IR_ARG_SCRATCH || !a->present)
      continue;
    struct expr addr = expr_sym(p, arena_printf(m->arena, "%s.addr", ir_sym(m, a->name)));
    struct expr rest = expr_op2(p, EXPR_MOD, addr, expr_const(p, bytes));
    add_check(r, expr_op2(p, EXPR_EQ, rest, expr_const(p, 0)),
              arena_printf(m->arena, "%s must be aligned to its elements", ir_sym(m, a->name)));
  }
  add_scratch(r, m);
  struct recipe_step step = {.kind = RECIPE_KERNEL, .entry = cg_entry_name(m)};
  tiles = expr_import(p, &m->exprs, tiles);
  step.grid[0] = tiles;
  if (l->roles) { /* blocks stay, one an SM; tiles are a cluster's */
    struct expr n = expr_const(p, l->roles->blocks), room = expr_sym(p, "sm_count");
    room = expr_op2(p, EXPR_DIV, room, n);
    if (l->roles->blocks > 1)
      room = expr_op2(p, EXPR_MAX, room, expr_const(p, 1));
    step.grid[0] = expr_op2(p, EXPR_MUL, n, expr_op2(p, EXPR_MIN, tiles, room));
    tiles = expr_op2(p, EXPR_MUL, tiles, n);
  }
  step.grid[1] = step.grid[2] = expr_const(p, 1);
  step.block[0] = l->all_threads;
  step.block[1] = step.block[2] = 1;
  for (int i = 0; i < 3; i++)
    step.cluster[i] = 1;
  step.cluster[0] = l->roles ? (uint32_t)l->roles->blocks : 1;
  add_check(r, expr_op2(p, EXPR_LE, tiles, expr_const(p, INT32_MAX)),
            "the grid has more than 2^31 - 1 programs");
  for (uint32_t i = 0; i < m->params.n; i++) {
    const struct ir_param *from = &m->params.at[i];
    bool of_arg = from->kind == RECIPE_PARAM_PTR || from->kind == RECIPE_PARAM_SCALAR;
    struct recipe_param x = {.kind = from->kind, .arg = of_arg ? position[from->arg] : from->arg};
    if (from->value.id)
      x.value = expr_import(p, &m->exprs, from->value);
    if (from->kind == RECIPE_PARAM_TMAP) {
      ir_tmap_arg(m, &m->res.at[from->res], &x.arg); /* verified: it names one */
      x.arg = position[x.arg];
      x.tmap = cg_recipe_tmap(r, m, from->res);
      check_map(r, m, x.tmap, x.arg);
    }
    VEC_PUSH(m->arena, &step.params, x);
  }
  VEC_PUSH(m->arena, &r->steps, step);
  m->recipe = r;
}
