/* Emulator: what the runtime does before a launch. Dims are bound to the tensors' shapes, the
 * recipe's checks hold, grid and parameters have values; each argument is a region of made-up
 * addresses (emu_impl.h), so that an address tells which tensor it is meant for. */
#include "codegen/emu_impl.h"

#include "base/check.h"

#include <string.h>

#define MAX_BYTES (INT64_C(1) << 40) /* of a tensor or a workspace */

struct binder {
  struct emu *e;
  struct arena *a;
  struct diag_sink *diags;
};

#define FAIL(b, ...)                                                                               \
  do {                                                                                             \
    diag_report((b)->diags, DIAG_ERROR, DIAG_SHAPE_BINDING, DIAG_NOWHERE, __VA_ARGS__);            \
    return false;                                                                                  \
  } while (0)

static bool is_tensor(const struct ir_arg *a) {
  return a->kind != IR_ARG_SCALAR && a->present;
}

static bool has_elements(const struct ir_arg *a) {
  return is_tensor(a) && a->kind != IR_ARG_SCRATCH;
}

/* A dim's value: that of the first tensor that has it as a dim, or what the module assumes. */
static bool dim_value(const struct emu *e, const char *name, int64_t *value) {
  const struct ir_module *m = e->m;
  for (uint32_t k = 0; k < m->args.n; k++) {
    const struct ir_arg *a = &m->args.at[k];
    for (uint32_t d = 0; d < a->rank && has_elements(a); d++) {
      const struct expr_node *x = expr_at(&m->exprs, a->dim[d]);
      if (x->op == EXPR_SYM && str_eq(ir_sym(m, x->sym), name)) {
        *value = e->args[k].tensor.dim[d];
        return true;
      }
    }
  }
  for (uint32_t k = 0; k < m->facts.n; k++)
    if (m->facts.at[k].is_value && str_eq(ir_sym(m, m->facts.at[k].sym), name)) {
      *value = m->facts.at[k].n;
      return true;
    }
  return false;
}

/* What follows the argument's name and a dot: "dim0", "stride1", "addr". */
static bool arg_value(const struct emu *e, uint32_t k, const char *what, int64_t *value) {
  const struct interp_tensor *t = &e->args[k].tensor;
  bool dim = str_starts(what, "dim");
  if (str_eq(what, "addr")) {
    *value = (int64_t)e->region[k].va;
    return true;
  }
  if (!dim && !str_starts(what, "stride"))
    return false;
  const char *digit = what + (dim ? 3 : 6);
  uint32_t d = (uint32_t)(unsigned char)digit[0] - '0';
  if (d >= t->rank || digit[1])
    return false;
  *value = dim ? t->dim[d] : t->stride[d];
  return true;
}

static bool look_up(void *user, const char *name, int64_t *value) {
  const struct emu *e = user;
  const struct ir_module *m = e->m;
  if (str_eq(name, "sm_count")) {
    *value = e->opt->sm_count ? e->opt->sm_count : 132;
    return true;
  }
  for (uint32_t k = 0; k < m->args.n; k++) {
    const char *arg = ir_sym(m, m->args.at[k].name);
    size_t n = strlen(arg);
    if (m->args.at[k].kind == IR_ARG_SCALAR && str_eq(arg, name)) {
      *value = e->args[k].i;
      return true;
    }
    if (is_tensor(&m->args.at[k]) && strncmp(name, arg, n) == 0 && name[n] == '.')
      return arg_value(e, k, name + n + 1, value);
  }
  return dim_value(e, name, value);
}

static bool eval(struct binder *b, const struct expr_pool *p, struct expr x, const char *what,
                 int64_t *value) {
  const char *why;
  if (!expr_eval(p, x, look_up, b->e, value, &why))
    FAIL(b, "%s cannot be computed: %s", what, why);
  return true;
}

/* ---- regions ---- */

/* The bytes a tensor reaches, relative to element 0; false if that is more than memory has. */
static bool reach(const struct interp_tensor *t, int64_t size, int64_t *lo, int64_t *hi) {
  int64_t first = 0, last = 0;
  for (uint32_t d = 0; d < t->rank; d++) {
    int64_t span;
    if (t->dim[d] == 0) {
      *lo = *hi = 0;
      return true;
    }
    if (t->dim[d] < 0 || __builtin_mul_overflow(t->dim[d] - 1, t->stride[d], &span) ||
        __builtin_add_overflow(span < 0 ? first : last, span, span < 0 ? &first : &last))
      return false;
  }
  if (first < -MAX_BYTES / size || last > MAX_BYTES / size - 1)
    return false;
  *lo = first * size;
  *hi = (last + 1) * size;
  return true;
}

static void add_shadow(struct binder *b, struct emu_region *r) {
  r->writable = true;
  if (b->e->skeleton)
    return;
  r->shadow = ARENA_ARRAY(b->a, struct emu_gshadow, (r->hi - r->lo) / r->size + 1);
}

static bool bind_tensor(struct binder *b, uint32_t k) {
  struct emu *e = b->e;
  const struct ir_arg *a = &e->m->args.at[k];
  const struct interp_tensor *t = &e->args[k].tensor;
  struct emu_region *r = &e->region[k];
  const char *name = r->name = ir_sym(e->m, a->name);
  bool payload = dtype_is_float(a->dtype) && e->opt->domain == INTERP_ALGEBRAIC;
  enum dtype want = payload ? DT_S64 : a->dtype;
  if (t->dtype != want)
    FAIL(b, "argument '%s': expected %s, found %s", name, dtype_name(want), dtype_name(t->dtype));
  if (t->rank != a->rank)
    FAIL(b, "argument '%s': expected rank %u, found %u", name, a->rank, t->rank);
  r->size = emu_bytes(a->dtype);
  r->payload = payload;
  bool nibbles = dtype_bits(a->dtype) == 4; /* two to a byte */
  if (nibbles && t->offset % 2)
    FAIL(b, "argument '%s' starts in the middle of a byte", name);
  r->data = (char *)t->data + (nibbles ? t->offset / 2 : t->offset * (payload ? 8 : r->size));
  /* Payloads are where they are: the address that they stand for is as aligned as can be. */
  r->va = ((uint64_t)k + 1) << EMU_REGION_BITS;
  r->va |= payload ? 0 : (uint64_t)(uintptr_t)r->data & 0xfff;
  if (!reach(t, r->size, &r->lo, &r->hi))
    FAIL(b, "argument '%s' reaches further than memory can", name);
  if (nibbles) {
    r->lo = r->lo / 2 - (r->lo % 2 < 0);
    r->hi = r->hi / 2 + (r->hi % 2 > 0);
  }
  r->unset = a->kind == IR_ARG_OUT;
  if (a->kind != IR_ARG_IN)
    add_shadow(b, r);
  return true;
}

static bool check_shape(struct binder *b, uint32_t k) {
  const struct ir_module *m = b->e->m;
  const struct ir_arg *a = &m->args.at[k];
  const char *name = ir_sym(m, a->name);
  for (uint32_t d = 0; d < a->rank; d++) {
    int64_t want, found = b->e->args[k].tensor.dim[d];
    if (!eval(b, &m->exprs, a->dim[d], arena_printf(b->a, "argument '%s': dim %u", name, d), &want))
      return false;
    if (want != found)
      FAIL(b, "argument '%s': dim %u: expected %lld, found %lld", name, d, (long long)want,
           (long long)found);
  }
  return true;
}

/* ---- the recipe ---- */

static bool bind_workspace(struct binder *b) {
  struct emu *e = b->e;
  const struct recipe *rc = e->m->recipe;
  struct emu_region *r = &e->region[e->m->args.n];
  int64_t bytes = 0, offset = 0, n = 0;
  bool payload = e->opt->domain == INTERP_ALGEBRAIC;
  r->name = "the workspace";
  r->va = ((uint64_t)e->m->args.n + 1) << EMU_REGION_BITS;
  r->size = 1;
  if (rc->workspace_bytes.id && !eval(b, &rc->exprs, rc->workspace_bytes, "the workspace", &bytes))
    return false;
  if (bytes < 0 || bytes > MAX_BYTES / 64)
    FAIL(b, "the workspace has %lld bytes", (long long)bytes);
  if (!bytes)
    return true;
  r->hi = bytes;
  if (e->skeleton) {
    r->writable = true;
    return true;
  }
  r->payload = payload;
  r->unset = true;
  r->data = arena_get(b->a, (size_t)bytes * (payload ? 8 : 1));
  memset(r->data, 0xff, (size_t)bytes * (payload ? 8 : 1));
  add_shadow(b, r);
  for (uint32_t s = 0; s < rc->steps.n; s++) {
    const struct recipe_step *step = &rc->steps.at[s];
    if (step->kind != RECIPE_MEMSET)
      continue;
    if (!eval(b, &rc->exprs, step->offset, "the offset of a memset", &offset) ||
        !eval(b, &rc->exprs, step->bytes, "the length of a memset", &n))
      return false;
    if (offset < 0 || n < 0 || offset > bytes || n > bytes - offset)
      FAIL(b, "a memset of bytes %lld..%lld of a workspace of %lld", (long long)offset,
           (long long)offset + (long long)n, (long long)bytes);
    memset(r->data + offset * (payload ? 8 : 1), 0, (size_t)n * (payload ? 8 : 1));
    for (int64_t k = offset; k < offset + n; k++)
      atomic_store_explicit(&r->shadow[k].writer, EMU_LAUNCH, memory_order_relaxed);
  }
  return true;
}

/* The module's argument that the recipe, which has no scratch arguments, counts as number k. */
static uint32_t module_arg(const struct ir_module *m, uint32_t k) {
  for (uint32_t i = 0; i < m->args.n; i++)
    if (str_eq(ir_sym(m, m->args.at[i].name), m->recipe->args.at[k].name))
      return i;
  KILN_UNREACHABLE();
}

static bool bind_param(struct binder *b, uint32_t k) {
  struct emu *e = b->e;
  const struct recipe_param *p = &e->step->params.at[k];
  uint32_t arg;
  int64_t v = 0;
  if (p->value.id && !eval(b, &e->m->recipe->exprs, p->value,
                           arena_printf(b->a, "parameter %u of the kernel", k), &v))
    return false;
  switch (p->kind) {
  case RECIPE_PARAM_PTR: e->param[k] = (int64_t)e->region[module_arg(e->m, p->arg)].va; break;
  case RECIPE_PARAM_WORKSPACE: e->param[k] = (int64_t)e->region[e->m->args.n].va + v; break;
  case RECIPE_PARAM_I32:
    if (v < INT32_MIN || v > INT32_MAX)
      FAIL(b, "parameter %u of the kernel is %lld, which does not fit into 32 bits", k,
           (long long)v);
    e->param[k] = v;
    break;
  case RECIPE_PARAM_I64: e->param[k] = v; break;
  case RECIPE_PARAM_TMAP: break; /* the op names its map */
  case RECIPE_PARAM_SCALAR:
    arg = module_arg(e->m, p->arg);
    e->param[k] = e->args[arg].i;
    e->param_f[k] = num_round(e->m->args.at[arg].dtype, e->args[arg].f);
    break;
  }
  struct ir_type type = ir_type_of(e->m, ir_block_at(e->m, e->m->body)->args.at[k]);
  if (type.kind == IR_PTR && dtype_bits((enum dtype)type.dtype) == 4)
    e->param[k] *= 2; /* as ops_machine.def says */
  return true;
}

static bool eval_recipe(void *user, struct expr x, const char *what, int64_t *value) {
  struct binder *b = user;
  return eval(b, &b->e->m->recipe->exprs, x, what, value);
}

static bool bind_launch(struct binder *b) {
  struct emu *e = b->e;
  const struct recipe *rc = e->m->recipe;
  int64_t v;
  for (uint32_t k = 0; k < rc->checks.n; k++) {
    if (!eval(b, &rc->exprs, rc->checks.at[k].cond, rc->checks.at[k].message, &v))
      return false;
    if (!v)
      FAIL(b, "kernel '%s' cannot be launched: %s", rc->kernel, rc->checks.at[k].message);
  }
  e->grid = 1;
  for (int d = 0; d < 3; d++) {
    if (!eval(b, &rc->exprs, e->step->grid[d], "the grid", &v))
      return false;
    if (v < 0 || (v && e->grid > INT32_MAX / (uint64_t)v))
      FAIL(b, "the grid has more than 2^31 - 1 blocks, or less than none");
    e->grid *= (uint64_t)v;
  }
  e->cluster = e->step->cluster[0] * e->step->cluster[1] * e->step->cluster[2];
  e->cluster = e->cluster ? e->cluster : 1;
  if (e->grid % e->cluster)
    FAIL(b, "the grid of %llu blocks is not a multiple of the cluster of %u",
         (unsigned long long)e->grid, e->cluster);
  uint32_t threads = e->step->block[0] * e->step->block[1] * e->step->block[2];
  if (threads == 0 || threads % EMU_LANES || threads > 1024)
    FAIL(b, "blocks of %u threads are no whole warps, or more than 32 of them", threads);
  e->warps = threads / EMU_LANES;
  if (!emu_async_bind(e, b->a, b->diags, eval_recipe, b))
    return false;
  for (uint32_t k = 0; k < e->step->params.n; k++)
    if (!bind_param(b, k))
      return false;
  return true;
}

bool emu_bind(struct emu *e, struct arena *a, struct diag_sink *diags) {
  struct binder bound = {e, a, diags}, *b = &bound;
  const struct ir_module *m = e->m;
  e->n_regions = m->args.n + 1;
  e->region = ARENA_ARRAY(a, struct emu_region, e->n_regions);
  e->step = &m->recipe->steps.at[m->recipe->steps.n - 1];
  e->param = ARENA_ARRAY(a, int64_t, e->step->params.n + 1);
  e->param_f = ARENA_ARRAY(a, double, e->step->params.n + 1);
  for (uint32_t k = 0; k < m->args.n; k++)
    if (has_elements(&m->args.at[k]) && !bind_tensor(b, k))
      return false;
  for (uint32_t k = 0; k < m->args.n; k++)
    if (has_elements(&m->args.at[k]) && !check_shape(b, k))
      return false;
  return bind_workspace(b) && bind_launch(b);
}
