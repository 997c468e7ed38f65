/* Do these arguments fit this recipe? Binds dims to names, checks dtypes, ranks, equalities,
 * predicates and overlaps, and says for every argument that does not fit what was expected, where
 * that comes from, and what was found. */
#include "runtime/bind.h"

#include "runtime/internal.h"

#include "base/num.h"

#include <inttypes.h>
#include <stdio.h>

void rt_tensor_contiguous(struct rt_tensor *t) {
  int64_t stride = 1;
  for (uint32_t i = t->rank; i > 0; i--) {
    t->stride[i - 1] = stride;
    if (__builtin_mul_overflow(stride, t->dim[i - 1] > 1 ? t->dim[i - 1] : 1, &stride))
      stride = INT64_MAX; /* no such memory exists: the extent overflows, too */
  }
}

bool rt_tensor_extent(const struct rt_tensor *t, int64_t *low, int64_t *bytes) {
  int64_t lo = 0, hi = 0; /* elements */
  *low = *bytes = 0;
  for (uint32_t i = 0; i < t->rank; i++)
    if (t->dim[i] <= 0)
      return true;
  for (uint32_t i = 0; i < t->rank; i++) {
    int64_t reach;
    if (__builtin_mul_overflow(t->dim[i] - 1, t->stride[i], &reach) ||
        __builtin_add_overflow(reach < 0 ? lo : hi, reach, reach < 0 ? &lo : &hi))
      return false;
  }
  int64_t bits = (int64_t)dtype_bits(t->dtype), first, last;
  if (__builtin_mul_overflow(lo, bits, &first) || __builtin_add_overflow(hi, 1, &hi) ||
      __builtin_mul_overflow(hi, bits, &last))
    return false;
  /* Packed types: whole bytes around the elements. */
  first = first >= 0 ? first / 8 : -((-first + 7) / 8);
  last = (last + 7) / 8;
  *low = first;
  return !__builtin_sub_overflow(last, first, bytes);
}

struct rt_bindings *rt_bindings_new(struct rt_ctx *ctx, const struct recipe *recipe, int sm_count,
                                    bool allow_overlap) {
  struct rt_bindings *b = mem_get0(&ctx->mem, sizeof *b);
  if (!b)
    return NULL;
  uint32_t n = recipe->args.n;
  b->ctx = ctx;
  b->recipe = recipe;
  b->n_args = n;
  b->sm_count = sm_count;
  b->allow_overlap = allow_overlap;
  b->args = mem_get0(&ctx->mem, n * sizeof *b->args);
  b->dims = mem_get0(&ctx->mem, n * RECIPE_MAX_RANK * sizeof *b->dims);
  if (!b->args || !b->dims) {
    rt_bindings_free(b);
    return NULL;
  }
  return b;
}

void rt_bindings_free(struct rt_bindings *b) {
  if (!b)
    return;
  const struct mem_alloc *mem = &b->ctx->mem;
  mem_drop(mem, b->args, b->n_args * sizeof *b->args);
  mem_drop(mem, b->dims, b->n_args * RECIPE_MAX_RANK * sizeof *b->dims);
  mem_drop(mem, b, sizeof *b);
}

/* "dim0", "stride3" of rank. */
static bool is_field(const char *field, const char *name, uint32_t rank, uint32_t *index) {
  size_t n = strlen(name);
  if (strncmp(field, name, n) != 0 || field[n] < '0' || field[n] > '9' || field[n + 1])
    return false;
  *index = (uint32_t)(field[n] - '0');
  return *index < rank;
}

static bool lookup(void *user, const char *name, int64_t *value) {
  const struct rt_bindings *b = user;
  for (uint32_t i = 0; i < b->n_dims; i++)
    if (str_eq(b->dims[i].name, name)) {
      *value = b->dims[i].value;
      return true;
    }
  for (uint32_t i = 0; i < b->n_args; i++) {
    const struct recipe_arg *a = &b->recipe->args.at[i];
    const struct rt_tensor *t = &b->args[i].tensor;
    size_t n = strlen(a->name);
    uint32_t k;
    if (strncmp(a->name, name, n) != 0)
      continue;
    if (a->kind == RECIPE_SCALAR && name[n] == 0 && !dtype_is_float(a->dtype)) {
      *value = b->args[i].i64;
      return true;
    }
    if (a->kind == RECIPE_SCALAR || name[n] != '.')
      continue;
    const char *field = name + n + 1;
    if (is_field(field, "dim", a->rank, &k)) {
      *value = t->dim[k];
      return true;
    }
    if (is_field(field, "stride", a->rank, &k)) {
      *value = t->stride[k];
      return true;
    }
    if (str_eq(field, "addr")) {
      *value = (int64_t)(uintptr_t)t->data;
      return true;
    }
  }
  if (str_eq(name, "sm_count")) {
    *value = b->sm_count;
    return true;
  }
  return false;
}

bool rt_bound_value(const struct rt_bindings *b, struct expr e, int64_t *value, const char **why) {
  return expr_eval(&b->recipe->exprs, e, lookup, (void *)(uintptr_t)b, value, why);
}

/* The expression's text, in a fixed buffer: messages must not fail for want of memory. */
struct print_text {
  const struct expr_pool *pool;
  struct expr e;
  struct arena arena;
  struct oom_trap trap;
  char *out;
  size_t size;
};

static void print_text(void *user) {
  struct print_text *x = user;
  struct strbuf s = {.arena = &x->arena};
  expr_print(x->pool, x->e, &s);
  snprintf(x->out, x->size, "%s", sb_str(&s));
}

static const char *text_of(const struct rt_bindings *b, struct expr e, char *out, size_t size) {
  struct print_text x = {.pool = &b->recipe->exprs, .e = e, .out = out, .size = size};
  arena_init(&x.arena, &b->ctx->mem, &x.trap);
  if (!arena_guard(&x.arena, print_text, &x))
    snprintf(out, size, "an expression");
  arena_free(&x.arena);
  return out;
}

__attribute__((format(printf, 2, 3))) static void report(const struct rt_bindings *b,
                                                         const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  diag_vreport(b->ctx->diags, DIAG_ERROR, DIAG_SHAPE_BINDING, DIAG_NOWHERE, fmt, ap);
  va_end(ap);
}

bool rt_evaluate(const struct rt_bindings *b, struct expr e, const char *what, int64_t *value) {
  const char *why = "";
  char text[160];
  if (rt_bound_value(b, e, value, &why))
    return true;
  report(b, "%s: %s of kernel %s has no value here: %s", what, text_of(b, e, text, sizeof text),
         b->recipe->kernel, why);
  return false;
}

/* ---- one argument ---- */

static bool check_scalar(const struct rt_bindings *b, uint32_t i) {
  const struct recipe_arg *a = &b->recipe->args.at[i];
  const struct rt_arg *x = &b->args[i];
  if (x->absent) {
    report(b, "argument %s: a scalar cannot be left out", a->name);
    return false;
  }
  if (dtype_is_float(a->dtype))
    return true;
  int64_t cell = 0;
  num_store_int(a->dtype, &cell, 0, x->i64);
  if (num_load_int(a->dtype, &cell, 0) == x->i64)
    return true;
  report(b, "argument %s: %" PRId64 " does not fit in %s", a->name, x->i64, dtype_name(a->dtype));
  return false;
}

static bool check_tensor(const struct rt_bindings *b, uint32_t i) {
  const struct recipe_arg *a = &b->recipe->args.at[i];
  const struct rt_arg *x = &b->args[i];
  const struct rt_tensor *t = &x->tensor;
  if (x->absent) {
    if (!a->optional)
      report(b, "argument %s: it is missing, and not optional", a->name);
    return a->optional;
  }
  if (t->dtype != a->dtype) {
    report(b, "argument %s: its dtype is %s, the kernel takes %s", a->name, dtype_name(t->dtype),
           dtype_name(a->dtype));
    return false;
  }
  if (t->rank != a->rank) {
    report(b, "argument %s: it has %u dims, the kernel takes %u", a->name, t->rank, a->rank);
    return false;
  }
  for (uint32_t k = 0; k < t->rank; k++)
    if (t->dim[k] < 0) {
      report(b, "argument %s: dim %u is %" PRId64, a->name, k, t->dim[k]);
      return false;
    }
  int64_t low, bytes;
  if (!rt_tensor_extent(t, &low, &bytes)) {
    report(b, "argument %s: its extent overflows 64 bits", a->name);
    return false;
  }
  if (bytes > 0 && !t->data) {
    report(b, "argument %s: it has no memory", a->name);
    return false;
  }
  unsigned size = dtype_bits(t->dtype) / 8;
  if (size > 1 && (uintptr_t)t->data % size) {
    report(b, "argument %s: its address is not a multiple of the element size %u", a->name, size);
    return false;
  }
  for (uint32_t k = 0; k < t->rank && bytes > 0 && a->kind != RECIPE_IN; k++)
    if (t->stride[k] == 0 && t->dim[k] > 1) {
      report(b,
             "argument %s: it is written, but stride 0 of dim %u makes its elements share memory",
             a->name, k);
      return false;
    }
  return true;
}

/* The symbol's name if a dim is one, else NULL. */
static const char *plain_name(const struct recipe *r, struct expr e) {
  const struct expr_node *n = expr_at(&r->exprs, e);
  return n->op == EXPR_SYM ? symtab_str(r->exprs.syms, n->sym) : NULL;
}

/* Dims that are plain names: the first use binds, the others must agree. */
static bool bind_names(struct rt_bindings *b, uint32_t i) {
  const struct recipe_arg *a = &b->recipe->args.at[i];
  const struct rt_tensor *t = &b->args[i].tensor;
  bool ok = true;
  for (uint32_t k = 0; k < a->rank; k++) {
    const char *name = plain_name(b->recipe, a->dim[k]);
    uint32_t d = 0;
    if (!name)
      continue;
    while (d < b->n_dims && !str_eq(b->dims[d].name, name))
      d++;
    if (d == b->n_dims) {
      b->dims[b->n_dims++] = (struct bound_dim){name, t->dim[k], i, k};
    } else if (b->dims[d].value != t->dim[k]) {
      report(b, "argument %s: dim %u is %" PRId64 ", but %s is %" PRId64 " (argument %s, dim %u)",
             a->name, k, t->dim[k], name, b->dims[d].value, b->recipe->args.at[b->dims[d].arg].name,
             b->dims[d].dim);
      ok = false;
    }
  }
  return ok;
}

static bool check_other_dims(const struct rt_bindings *b, uint32_t i) {
  const struct recipe_arg *a = &b->recipe->args.at[i];
  const struct rt_tensor *t = &b->args[i].tensor;
  bool ok = true;
  for (uint32_t k = 0; k < a->rank; k++) {
    int64_t want, constant;
    char text[160], what[160];
    if (plain_name(b->recipe, a->dim[k]))
      continue;
    snprintf(what, sizeof what, "argument %.64s, dim %u", a->name, k);
    if (!rt_evaluate(b, a->dim[k], what, &want)) {
      ok = false;
    } else if (want != t->dim[k]) {
      if (expr_is_const(&b->recipe->exprs, a->dim[k], &constant))
        report(b, "argument %s: dim %u is %" PRId64 ", the kernel takes %" PRId64, a->name, k,
               t->dim[k], want);
      else
        report(b, "argument %s: dim %u is %" PRId64 ", but %s is %" PRId64, a->name, k, t->dim[k],
               text_of(b, a->dim[k], text, sizeof text), want);
      ok = false;
    }
  }
  return ok;
}

/* What predicates and parameters see of an optional tensor that is not there. */
static void stand_in(struct rt_bindings *b, uint32_t i) {
  const struct recipe_arg *a = &b->recipe->args.at[i];
  struct rt_tensor *t = &b->args[i].tensor;
  *t = (struct rt_tensor){.dtype = a->dtype, .rank = a->rank};
  for (uint32_t k = 0; k < a->rank; k++)
    if (!rt_bound_value(b, a->dim[k], &t->dim[k], NULL))
      t->dim[k] = 0;
  rt_tensor_contiguous(t);
}

/* ---- all of them ---- */

static bool is_tensor(const struct rt_bindings *b, uint32_t i) {
  return b->recipe->args.at[i].kind != RECIPE_SCALAR && !b->args[i].absent;
}

static bool check_overlaps(const struct rt_bindings *b) {
  bool ok = true;
  for (uint32_t i = 0; i < b->n_args; i++)
    for (uint32_t j = i + 1; j < b->n_args; j++) {
      const struct recipe_arg *x = &b->recipe->args.at[i], *y = &b->recipe->args.at[j];
      if (!is_tensor(b, i) || !is_tensor(b, j) || (x->kind == RECIPE_IN && y->kind == RECIPE_IN))
        continue;
      int64_t low_i, bytes_i, low_j, bytes_j;
      if (!rt_tensor_extent(&b->args[i].tensor, &low_i, &bytes_i) ||
          !rt_tensor_extent(&b->args[j].tensor, &low_j, &bytes_j) || !bytes_i || !bytes_j)
        continue;
      int64_t at_i = (int64_t)(uintptr_t)b->args[i].tensor.data + low_i;
      int64_t at_j = (int64_t)(uintptr_t)b->args[j].tensor.data + low_j;
      if (at_i < at_j + bytes_j && at_j < at_i + bytes_i) {
        report(b, "arguments %s and %s overlap in memory, and %s is written", x->name, y->name,
               x->kind != RECIPE_IN ? x->name : y->name);
        ok = false;
      }
    }
  return ok;
}

static bool check_predicates(const struct rt_bindings *b) {
  bool ok = true;
  for (uint32_t i = 0; i < b->recipe->checks.n; i++) {
    const struct recipe_check *c = &b->recipe->checks.at[i];
    int64_t v;
    char text[160];
    if (!rt_evaluate(b, c->cond, "a condition of the launch", &v)) {
      ok = false;
    } else if (v == 0) {
      report(b, "%s (%s)", c->message, text_of(b, c->cond, text, sizeof text));
      ok = false;
    }
  }
  return ok;
}

enum rt_status rt_bindings_set(struct rt_bindings *b, const struct rt_arg *args, uint32_t n_args) {
  const struct recipe *r = b->recipe;
  b->n_dims = 0;
  if (n_args != r->args.n) {
    report(b, "kernel %s takes %u arguments, %u were given", r->kernel, r->args.n, n_args);
    return RT_BAD_INPUT;
  }
  bool ok = true;
  for (uint32_t i = 0; i < n_args; i++) {
    b->args[i] = args[i];
    ok &= r->args.at[i].kind == RECIPE_SCALAR ? check_scalar(b, i) : check_tensor(b, i);
  }
  if (!ok)
    return RT_BAD_INPUT;
  for (uint32_t i = 0; i < n_args; i++)
    if (is_tensor(b, i))
      ok &= bind_names(b, i);
  if (!ok)
    return RT_BAD_INPUT;
  for (uint32_t i = 0; i < n_args; i++) {
    if (is_tensor(b, i))
      ok &= check_other_dims(b, i);
    else if (r->args.at[i].kind != RECIPE_SCALAR)
      stand_in(b, i);
  }
  if (ok && !b->allow_overlap)
    ok &= check_overlaps(b);
  if (ok)
    ok &= check_predicates(b);
  return ok ? RT_OK : RT_BAD_INPUT;
}

enum rt_status rt_bind(struct rt_ctx *ctx, const struct recipe *recipe, const struct rt_arg *args,
                       uint32_t n_args, int sm_count, bool allow_overlap,
                       struct rt_bindings **out) {
  *out = NULL;
  struct rt_bindings *b = rt_bindings_new(ctx, recipe, sm_count, allow_overlap);
  if (!b)
    return rt_no_memory(ctx);
  enum rt_status status = rt_bindings_set(b, args, n_args);
  if (status != RT_OK)
    rt_bindings_free(b);
  else
    *out = b;
  return status;
}
