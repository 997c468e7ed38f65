/* Interpreter: from arguments to dims, shapes and the grid.
 *
 * A dim is bound by the first present tensor that has it as a plain symbol; every other shape
 * expression is then checked, and so are the facts the specialization assumes about dims and
 * scalars. */
#include "ir/interp_impl.h"

#include "base/num.h"

#include <math.h>
#include <string.h>

/* Offsets of elements stay below this, so that byte addresses cannot overflow. */
#define MAX_OFFSET  (INT64_C(1) << 59)
#define MAX_SCRATCH (INT64_C(1) << 40)

struct binder {
  struct interp *in;
  const struct interp_arg *args;
  uint32_t *bound_arg, *bound_axis; /* by dim: who bound it, for messages */
};

static const char *arg_name(const struct interp *in, uint32_t k) {
  return ir_sym(in->m, in->m->args.at[k].name);
}

#define FAIL_AT(in, loc, ...)                                                                      \
  do {                                                                                             \
    diag_report((in)->diags, DIAG_ERROR, DIAG_SHAPE_BINDING, loc, __VA_ARGS__);                    \
    return false;                                                                                  \
  } while (0)
#define FAIL(in, ...) FAIL_AT(in, DIAG_NOWHERE, __VA_ARGS__)

static bool find_dim(const struct ir_module *m, const char *name, uint32_t *dim) {
  for (uint32_t d = 0; d < m->dims.n; d++)
    if (str_eq(ir_sym(m, m->dims.at[d]), name)) {
      *dim = d;
      return true;
    }
  return false;
}

/* "A.dim0" and "A.stride0" of a bound tensor. */
static bool look_up_part(const struct binder *b, const char *name, int64_t *value) {
  const struct ir_module *m = b->in->m;
  for (uint32_t k = 0; k < m->args.n; k++) {
    const char *arg = arg_name(b->in, k);
    size_t n = strlen(arg);
    const struct interp_tensor *t = &b->args[k].tensor;
    if (m->args.at[k].kind == IR_ARG_SCALAR || strncmp(name, arg, n) != 0 || name[n] != '.')
      continue;
    const char *part = name + n + 1;
    const int64_t *list = str_starts(part, "dim")      ? t->dim
                          : str_starts(part, "stride") ? t->stride
                                                       : NULL;
    if (!list)
      return false;
    part += list == t->dim ? 3 : 6;
    if (*part < '0' || part[1] || (uint32_t)(*part - '0') >= t->rank)
      return false;
    *value = list[*part - '0'];
    return true;
  }
  return false;
}

static bool look_up(void *user, const char *name, int64_t *value) {
  const struct binder *b = user;
  const struct ir_module *m = b->in->m;
  uint32_t d;
  if (find_dim(m, name, &d)) {
    *value = b->in->dims[d];
    return b->in->dim_known[d];
  }
  for (uint32_t k = 0; k < m->args.n; k++) {
    const struct ir_arg *a = &m->args.at[k];
    if (a->kind == IR_ARG_SCALAR && !dtype_is_float(a->dtype) && a->present &&
        str_eq(arg_name(b->in, k), name)) {
      *value = b->args[k].i;
      return true;
    }
  }
  return look_up_part(b, name, value);
}

static const char *expr_text(struct interp *in, struct expr e) {
  struct strbuf text = {.arena = in->arena};
  expr_print(&in->m->exprs, e, &text);
  return sb_str(&text);
}

/* The tensor's own description: dtype, rank, dims, and that its addresses cannot overflow. */
static bool check_tensor(struct binder *b, uint32_t k) {
  struct interp *in = b->in;
  const struct ir_arg *a = &in->m->args.at[k];
  const struct interp_tensor *t = &b->args[k].tensor;
  const char *name = arg_name(in, k);
  bool is_float = dtype_is_float(a->dtype);
  bool widened = in->opt.domain == INTERP_DOUBLE && is_float && t->dtype == DT_F64;
  enum dtype want = in->opt.domain == INTERP_ALGEBRAIC && is_float ? DT_S64 : a->dtype;
  if (t->dtype != want && !widened)
    FAIL_AT(in, a->at, "argument '%s': expected %s%s, found %s", name, dtype_name(want),
            want == a->dtype ? "" : " payloads", dtype_name(t->dtype));
  if (t->rank != a->rank)
    FAIL_AT(in, a->at, "argument '%s': expected %u dims, found %u", name, a->rank, t->rank);
  int64_t lo = t->offset, hi = t->offset;
  bool empty = false;
  for (uint32_t d = 0; d < t->rank; d++) {
    int64_t span;
    if (t->dim[d] < 0)
      FAIL_AT(in, a->at, "argument '%s': dim %u is negative (%lld)", name, d, (long long)t->dim[d]);
    if (t->dim[d] > INTERP_MAX_EXTENT)
      FAIL_AT(in, a->at, "argument '%s': dim %u of %lld is too large", name, d,
              (long long)t->dim[d]);
    if (t->dim[d] == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(t->dim[d] - 1, t->stride[d], &span) ||
               __builtin_add_overflow(*(span < 0 ? &lo : &hi), span, span < 0 ? &lo : &hi)) {
      lo = INT64_MIN;
    }
    if (!empty && (lo < -MAX_OFFSET || hi > MAX_OFFSET))
      FAIL_AT(in, a->at, "argument '%s': dim %u of %lld with stride %lld reaches too far", name, d,
              (long long)t->dim[d], (long long)t->stride[d]);
  }
  if (!t->data && !empty)
    FAIL_AT(in, a->at, "argument '%s' is missing", name);
  return true;
}

static void bind_dims(struct binder *b, uint32_t k) {
  struct interp *in = b->in;
  const struct ir_arg *a = &in->m->args.at[k];
  for (uint32_t axis = 0; axis < a->rank; axis++) {
    const struct expr_node *e = expr_at(&in->m->exprs, a->dim[axis]);
    uint32_t d;
    if (e->op != EXPR_SYM || !find_dim(in->m, ir_sym(in->m, e->sym), &d) || in->dim_known[d])
      continue;
    in->dims[d] = b->args[k].tensor.dim[axis];
    in->dim_known[d] = true;
    b->bound_arg[d] = k;
    b->bound_axis[d] = axis;
  }
}

static bool check_shape(struct binder *b, uint32_t k) {
  struct interp *in = b->in;
  const struct ir_arg *a = &in->m->args.at[k];
  for (uint32_t axis = 0; axis < a->rank; axis++) {
    int64_t want, found = b->args[k].tensor.dim[axis];
    const char *why, *text = expr_text(in, a->dim[axis]);
    if (!expr_eval(&in->m->exprs, a->dim[axis], look_up, b, &want, &why))
      FAIL_AT(in, a->at, "argument '%s': dim %u, %s, cannot be computed: %s", arg_name(in, k), axis,
              text, why);
    if (want == found)
      continue;
    const struct expr_node *e = expr_at(&in->m->exprs, a->dim[axis]);
    uint32_t d;
    if (e->op == EXPR_SYM && find_dim(in->m, text, &d))
      FAIL_AT(in, a->at,
              "argument '%s': dim %u: expected %s = %lld as in dim %u of '%s', found %lld",
              arg_name(in, k), axis, text, (long long)want, b->bound_axis[d],
              arg_name(in, b->bound_arg[d]), (long long)found);
    if (e->op == EXPR_CONST)
      FAIL_AT(in, a->at, "argument '%s': dim %u: expected %lld, found %lld", arg_name(in, k), axis,
              (long long)want, (long long)found);
    FAIL_AT(in, a->at, "argument '%s': dim %u: expected %s = %lld, found %lld", arg_name(in, k),
            axis, text, (long long)want, (long long)found);
  }
  return true;
}

/* A scalar must be what its dtype can hold: it is passed in that dtype. */
static bool check_scalar(struct binder *b, uint32_t k) {
  struct interp *in = b->in;
  enum dtype t = in->m->args.at[k].dtype;
  if (dtype_is_float(t))
    return true;
  int64_t cell = 0, v = b->args[k].i;
  num_store_int(t, &cell, 0, v);
  if (num_load_int(t, &cell, 0) != v)
    FAIL_AT(in, in->m->args.at[k].at, "argument '%s': %lld does not fit into %s", arg_name(in, k),
            (long long)v, dtype_name(t));
  return true;
}

/* Strides and addresses concern the mapping to the machine, not the meaning. */
static bool is_layout_symbol(const char *name) {
  const char *dot = strchr(name, '.');
  return dot && (str_eq(dot, ".addr") || str_starts(dot, ".stride"));
}

static bool check_facts(struct binder *b) {
  struct interp *in = b->in;
  for (uint32_t k = 0; k < in->m->facts.n; k++) {
    const struct ir_fact *f = &in->m->facts.at[k];
    const char *name = ir_sym(in->m, f->sym);
    int64_t v;
    if (is_layout_symbol(name))
      continue;
    if (!look_up(b, name, &v))
      FAIL_AT(in, f->at, "this specialization assumes something of '%s', which is not bound", name);
    if (f->is_value && v != f->n)
      FAIL_AT(in, f->at, "this specialization assumes %s = %lld, found %lld", name, (long long)f->n,
              (long long)v);
    if (!f->is_value && v % f->n != 0)
      FAIL_AT(in, f->at, "this specialization assumes that %s is a multiple of %lld, found %lld",
              name, (long long)f->n, (long long)v);
  }
  return true;
}

/* Dims that no present tensor has: a value fact of the specialization may give them. */
static bool finish_dims(struct binder *b) {
  struct interp *in = b->in;
  const struct ir_module *m = in->m;
  for (uint32_t d = 0; d < m->dims.n; d++) {
    for (uint32_t k = 0; k < m->facts.n && !in->dim_known[d]; k++)
      if (m->facts.at[k].is_value && m->facts.at[k].sym.id == m->dims.at[d].id) {
        in->dims[d] = m->facts.at[k].n;
        in->dim_known[d] = true;
      }
    if (!in->dim_known[d])
      FAIL_AT(in, m->at.dims.line ? m->at.dims : m->at.kernel,
              "dim '%s' has no value: no argument that is present has it as a dim",
              ir_sym(m, m->dims.at[d]));
  }
  return true;
}

static bool bind_grid(struct binder *b) {
  struct interp *in = b->in;
  struct diag_loc at = in->m->at.grid.line ? in->m->at.grid : in->m->at.kernel;
  int64_t total = 1;
  for (uint32_t k = 0; k < IR_MAX_GRID; k++) {
    in->grid[k] = 1;
    if (k >= in->m->n_grid)
      continue;
    const char *why;
    if (!expr_eval(&in->m->exprs, in->m->grid[k], look_up, b, &in->grid[k], &why))
      FAIL_AT(in, at, "grid axis %u, %s, cannot be computed: %s", k, expr_text(in, in->m->grid[k]),
              why);
    if (in->grid[k] < 0)
      FAIL_AT(in, at, "grid axis %u, %s, is negative: %lld", k, expr_text(in, in->m->grid[k]),
              (long long)in->grid[k]);
  }
  for (uint32_t k = 0; k < IR_MAX_GRID; k++)
    if (in->grid[k] == 0)
      return true;
  for (uint32_t k = 0; k < IR_MAX_GRID; k++)
    if (__builtin_mul_overflow(total, in->grid[k], &total))
      FAIL_AT(in, at, "the grid has more than 2^63 programs");
  if (in->opt.check_races && total >= UINT32_MAX)
    FAIL_AT(in, at, "races can be checked in grids of fewer than 2^32 - 1 programs, found %lld",
            (long long)total);
  return true;
}

/* Memory for a scratch argument: zeros, or what shows when it is read unwritten (NaN, -1). */
static bool make_scratch(struct binder *b, uint32_t k) {
  struct interp *in = b->in;
  const struct ir_arg *a = &in->m->args.at[k];
  bool is_float = dtype_is_float(a->dtype),
       payload = is_float && in->opt.domain == INTERP_ALGEBRAIC;
  enum dtype t = payload ? DT_S64 : is_float && in->opt.domain == INTERP_DOUBLE ? DT_F64 : a->dtype;
  int64_t dim[IR_MAX_RANK], n = 1;
  for (uint32_t d = 0; d < a->rank; d++) {
    const char *why;
    if (!expr_eval(&in->m->exprs, a->dim[d], look_up, b, &dim[d], &why))
      FAIL_AT(in, a->at, "argument '%s': dim %u, %s, cannot be computed: %s", arg_name(in, k), d,
              expr_text(in, a->dim[d]), why);
    if (dim[d] < 0)
      FAIL_AT(in, a->at, "argument '%s': dim %u, %s, is negative (%lld)", arg_name(in, k), d,
              expr_text(in, a->dim[d]), (long long)dim[d]);
    if (__builtin_mul_overflow(n, dim[d], &n) || n > MAX_SCRATCH)
      FAIL_AT(in, a->at, "argument '%s': more scratch memory than 2^40 elements", arg_name(in, k));
  }
  size_t bytes = (size_t)dtype_bytes(t, n);
  void *data = arena_get(in->arena, bytes + 1);
  memset(data, a->zero ? 0 : 0xff, bytes);
  for (int64_t i = 0; payload && !a->zero && i < n; i++)
    ((int64_t *)data)[i] = INTERP_NAN;
  in->bound[k].t = interp_dense(data, t, a->rank, dim);
  return true;
}

bool interp_bind(struct interp *in, const struct interp_arg *args, uint32_t n_args) {
  const struct ir_module *m = in->m;
  struct arena *a = in->arena;
  struct binder b = {.in = in, .args = args};
  if (n_args != m->args.n && n_args != ir_given_args(m))
    FAIL(in, "kernel '%s' takes %u arguments, found %u", ir_sym(m, m->kernel), m->args.n, n_args);
  in->dims = ARENA_ARRAY(a, int64_t, m->dims.n);
  in->dim_known = ARENA_ARRAY(a, bool, m->dims.n);
  in->bound = ARENA_ARRAY(a, struct interp_bound, m->args.n);
  b.bound_arg = ARENA_ARRAY(a, uint32_t, m->dims.n);
  b.bound_axis = ARENA_ARRAY(a, uint32_t, m->dims.n);
  for (uint32_t k = 0; k < m->args.n; k++) {
    const struct ir_arg *arg = &m->args.at[k];
    bool tensor = arg->kind != IR_ARG_SCALAR;
    if (tensor && !arg->present && args[k].tensor.data)
      FAIL(in, "argument '%s' is given, but this specialization is for its absence",
           arg_name(in, k));
    if (!arg->present || arg->kind == IR_ARG_SCRATCH)
      continue;
    if (tensor ? !check_tensor(&b, k) : !check_scalar(&b, k))
      return false;
    if (tensor)
      bind_dims(&b, k);
    in->bound[k].t = args[k].tensor;
    map_init(&in->bound[k].pages, a);
  }
  if (!finish_dims(&b))
    return false;
  for (uint32_t k = 0; k < m->args.n; k++) {
    const struct ir_arg *arg = &m->args.at[k];
    if (arg->kind == IR_ARG_SCRATCH) {
      map_init(&in->bound[k].pages, a);
      if (!make_scratch(&b, k))
        return false;
    } else if (arg->kind != IR_ARG_SCALAR && arg->present && !check_shape(&b, k)) {
      return false;
    }
  }
  return check_facts(&b) && bind_grid(&b);
}
