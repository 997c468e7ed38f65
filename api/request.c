/* Resolving a request against a kernel: config, constants, schedule knobs, dims, shapes, strides.
 *
 * The kernel's own case comes first, the request's lists overwrite it. Every mistake is reported,
 * naming the option it came with. */
#include "api/api.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

struct resolve {
  struct kiln_file *file;
  struct kiln_context *ctx;
  const struct kiln_request *req;
  struct arena *a;
  struct api_problem *p;
  const struct fe_case *from; /* the kernel's case, or NULL */
  bool ok;
};

#define BAD(r, id, ...) ((r)->ok = false, API_ERROR((r)->ctx, id, __VA_ARGS__))

#define BAD_AT(r, id, loc, ...)                                                                    \
  ((r)->ok = false, diag_report(&(r)->ctx->diags, DIAG_ERROR, DIAG_##id, loc, __VA_ARGS__))

bool api_request(struct kiln_context *ctx, const struct kiln_request *req,
                 struct kiln_request *out) {
  *out = (struct kiln_request){.struct_size = sizeof *out, .case_index = -1};
  if (!req)
    return true;
  if (req->struct_size < sizeof req->struct_size || req->struct_size > sizeof *out) {
    API_ERROR(ctx, USAGE, "struct_size of the request is %zu; this library takes up to %zu",
              req->struct_size, sizeof *out);
    return false;
  }
  memcpy(out, req, req->struct_size);
  return true;
}

enum kiln_status api_pick_target(struct kiln_context *ctx, const char *name,
                                 const struct cg_target **out) {
  struct rt_device *dev = NULL;
  *out = cg_find_target(name ? name : "sm_90a");
  if (name && !*out) {
    char known[512] = "";
    for (uint32_t i = 0; i < cg_target_count(); i++) {
      size_t n = strlen(known);
      snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", cg_target_at(i)->name);
    }
    API_ERROR(ctx, USAGE, "--target: unknown target `%s`; known are %s", name, known);
  }
  enum kiln_status st = name ? KILN_OK : api_device_if_any(ctx, &dev);
  if (dev) {
    const struct rt_device_info *info = rt_device_info(dev);
    *out = cg_target_for_device((uint32_t)info->cc_major, (uint32_t)info->cc_minor);
    if (!*out)
      API_ERROR(ctx, LOWER_UNSUPPORTED, "%s has compute capability %d.%d, which no target runs on",
                info->name, info->cc_major, info->cc_minor);
  }
  return st != KILN_OK || *out ? st : KILN_INVALID;
}

/* "KEY=VALUE" -> key (copied) and the text after '='. option: where the text comes from. */
static const char *split(struct resolve *r, const char *option, const char *text,
                         const char **value) {
  const char *eq = strchr(text, '=');
  if (!eq || eq == text) {
    BAD(r, USAGE, "%s: expected KEY=VALUE, got `%s`", option, text);
    return NULL;
  }
  *value = eq + 1;
  return arena_strndup(r->a, text, (size_t)(eq - text));
}

/* Each name is asked for once. */
static void check_twice(struct resolve *r, const char *option, uint32_t n,
                        const char *const *list) {
  for (uint32_t i = 1; i < n; i++)
    for (uint32_t k = 0; k < i; k++) {
      size_t len = strcspn(list[i], "=");
      if (len != strcspn(list[k], "=") || memcmp(list[i], list[k], len) != 0)
        continue;
      BAD(r, USAGE, "%s: `%.*s` is given twice, as `%s` and `%s`", option, (int)len, list[i],
          list[k], list[i]);
      break;
    }
}

static void check_lists(struct resolve *r) {
  const struct kiln_request *q = r->req;
  check_twice(r, "--set", q->n_set, q->set);
  check_twice(r, "--const", q->n_consts, q->consts);
  check_twice(r, "--shape", q->n_shapes, q->shapes);
  check_twice(r, "--layout", q->n_layouts, q->layouts);
  check_twice(r, "--stride", q->n_strides, q->strides);
  check_twice(r, "--offset", q->n_offsets, q->offsets);
  check_twice(r, "--scalar", q->n_scalars, q->scalars);
  check_twice(r, "--absent", q->n_absent, q->absent);
  check_twice(r, "--fused", q->n_fused, q->fused);
  for (uint32_t i = 0; i < q->n_layouts; i++)
    for (uint32_t k = 0; k < q->n_strides; k++) {
      size_t len = strcspn(q->layouts[i], "=");
      if (len == strcspn(q->strides[k], "=") && memcmp(q->layouts[i], q->strides[k], len) == 0)
        BAD(r, USAGE, "`%.*s` has both --layout and --stride; give one of them", (int)len,
            q->layouts[i]);
    }
}

/* Decimal digits, with a sign or without; no blanks. */
static bool parse_int(const char *text, const char **end, int64_t *value) {
  const char *digits = text + (*text == '-');
  char *stop = (char *)(uintptr_t)text;
  errno = 0;
  *value = *digits >= '0' && *digits <= '9' ? strtoll(text, &stop, 10) : 0;
  *end = stop;
  return errno == 0 && stop != text;
}

static struct api_dim *find_dim(struct api_problem *p, const char *name) {
  for (uint32_t i = 0; i < p->n_dims; i++)
    if (str_eq(p->dims[i].name, name))
      return &p->dims[i];
  return NULL;
}

static struct api_arg *find_arg(struct api_problem *p, const char *name) {
  for (uint32_t i = 0; i < p->n_args; i++)
    if (str_eq(p->args[i].name, name))
      return &p->args[i];
  return NULL;
}

bool api_dim_lookup(void *problem, const char *name, int64_t *value) {
  const struct api_problem *p = problem;
  const struct api_dim *d = find_dim(problem, name);
  if (d) {
    *value = d->value;
    return d->known;
  }
  for (uint32_t i = 0; p->kernel && i < p->kernel->n_choices; i++) /* "K//G" with a const G */
    if (p->kernel->choices[i].is_const && str_eq(p->kernel->choices[i].name, name) &&
        p->config.at[i].kind == FE_INT) {
      *value = p->config.at[i].i;
      return true;
    }
  return false;
}

/* The kernel's argument and dim names, before anything has a value. */
static void declare(struct resolve *r) {
  struct api_problem *p = r->p;
  const struct fe_kernel *k = p->kernel;
  const struct ir_module *m = r->file->tir;
  p->n_args = k ? k->n_args : m->args.n;
  p->args = ARENA_ARRAY(r->a, struct api_arg, p->n_args + 1);
  p->n_dims = k ? k->n_dims : m->dims.n;
  p->dims = ARENA_ARRAY(r->a, struct api_dim, p->n_dims + 1);
  for (uint32_t i = 0; i < p->n_args; i++) {
    struct api_arg *arg = &p->args[i];
    arg->name = k ? k->args[i].name : ir_sym(m, m->args.at[i].name);
    arg->kind = k ? k->args[i].kind : m->args.at[i].kind;
    arg->rank = k ? k->args[i].rank : m->args.at[i].rank;
    arg->dtype = k ? k->args[i].dtype : m->args.at[i].dtype;
    arg->absent = arg->kind == IR_ARG_SCRATCH || (!k && !m->args.at[i].present);
  }
  for (uint32_t i = 0; i < p->n_dims; i++)
    p->dims[i].name = k ? k->dims[i] : ir_sym(m, m->dims.at[i]);
}

static void pick_case(struct resolve *r) {
  r->p->text = arena_printf(r->a, "kernel `%s`", r->p->name);
  const struct fe_kernel *k = r->p->kernel;
  int32_t want = r->req->case_index;
  uint32_t n = k ? k->n_cases : 0;
  if (want > 0 && (uint32_t)want >= n) {
    BAD(r, USAGE, "--case: kernel `%s` has %u cases, counted from 0: there is no case %d",
        r->p->name, n, want);
    return;
  }
  if (n && (want >= 0 || r->req->n_shapes == 0))
    r->from = &k->cases[want >= 0 ? want : 0];
  if (r->from && n > 1)
    r->p->text = arena_printf(r->a, "kernel `%s` (case %d)", r->p->name, want >= 0 ? want : 0);
  if (r->from)
    r->p->seed = (uint64_t)r->from->seed;
}

/* Dims whose value an IR text assumes. */
static void set_dims_by_facts(struct resolve *r) {
  const struct ir_module *m = r->file->tir;
  for (uint32_t i = 0; m && i < m->facts.n; i++) {
    const struct ir_fact *f = &m->facts.at[i];
    struct api_dim *d = f->is_value ? find_dim(r->p, ir_sym(m, f->sym)) : NULL;
    if (d && !d->known) {
      d->value = f->n;
      d->known = true;
    }
  }
}

static void set_dims(struct resolve *r) {
  for (uint32_t i = 0; r->from && i < r->from->n_shape; i++) {
    struct api_dim *d = find_dim(r->p, r->from->shape[i].name);
    if (d) {
      d->value = r->from->shape[i].value.i;
      d->known = true;
    }
  }
  for (uint32_t i = 0; i < r->req->n_shapes; i++) {
    const char *value, *end;
    const char *name = split(r, "--shape", r->req->shapes[i], &value);
    if (!name)
      continue;
    struct api_dim *d = find_dim(r->p, name);
    int64_t n;
    if (!d)
      BAD(r, SHAPE_BINDING, "--shape: kernel `%s` has no dim `%s`", r->p->name, name);
    else if (!parse_int(value, &end, &n) || *end || n < 0)
      BAD(r, SHAPE_BINDING, "--shape: `%s` must be a whole number of at least 0, got `%s`", name,
          value);
    else {
      d->value = n;
      d->known = d->asked = true;
    }
  }
}

static bool is_choice(const struct fe_kernel *k, const char *name) {
  for (uint32_t i = 0; k && i < k->n_choices; i++)
    if (str_eq(k->choices[i].name, name))
      return true;
  return false;
}

static const char knob_names[] =
#define KNOB(id, text, min, max, meaning) ", " text
#include "codegen/knobs.def"
    ;

static void set_knob(struct resolve *r, const char *key, const char *value) {
  int64_t n;
  const char *end, *error;
  if (!parse_int(value, &end, &n) || *end)
    BAD(r, CONFIG, "--set: knob `%s` takes a whole number, got `%s`", key, value);
  else if (!cg_schedule_set(&r->p->schedule, key, n, r->a, &error))
    BAD(r, CONFIG, "--set: %s", error);
}

/* A field of one op: checked when the kernel is lowered, where its ops are known. */
static void pin(struct resolve *r, const struct fe_named *s) {
  if (s->value.kind != FE_INT && s->value.kind != FE_STR) {
    r->ok = false;
    diag_report(&r->ctx->diags, DIAG_ERROR, DIAG_CONFIG, r->p->kernel->loc,
                "schedule `%s`: expected a whole number or a string", s->name);
    return;
  }
  const char *word = s->value.kind == FE_STR ? s->value.s : NULL;
  cg_schedule_pin(&r->p->schedule, (struct cg_pin){s->name, word, s->value.i}, r->a);
}

/* The dim that a const gives, or NULL. */
static struct api_dim *dim_of_const(struct api_problem *p, uint32_t choice) {
  const struct fe_choice *c = &p->kernel->choices[choice];
  return c->is_const ? find_dim(p, c->name) : NULL;
}

/* What the request says of a const or its dim replaces what the case says of either. */
static void prefer_request(struct api_problem *p, const struct fe_config *asked,
                           struct fe_config *fixed) {
  for (uint32_t i = 0; i < asked->n; i++) {
    struct api_dim *d = dim_of_const(p, i);
    if (asked->at[i].kind != FE_NONE) {
      fixed->at[i] = asked->at[i];
      if (d && !d->asked)
        d->known = false;
    } else if (d && d->asked) {
      fixed->at[i] = (struct fe_value){0};
    }
  }
}

/* The knobs and pins of a `schedule` table. */
static void apply_schedule(struct resolve *r, uint32_t n, const struct fe_named *entries) {
  for (uint32_t i = 0; i < n; i++) {
    const char *error = "";
    const struct fe_named *s = &entries[i];
    if (strchr(s->name, '.')) {
      pin(r, s);
    } else if (s->value.kind != FE_INT ||
               !cg_schedule_set(&r->p->schedule, s->name, s->value.i, r->a, &error)) {
      r->ok = false;
      diag_report(&r->ctx->diags, DIAG_ERROR, DIAG_CONFIG, r->p->kernel->loc, "schedule `%s`: %s",
                  s->name, s->value.kind == FE_INT ? error : "expected a whole number");
    }
  }
}

static void set_config(struct resolve *r) {
  struct api_problem *p = r->p;
  const struct fe_kernel *k = p->kernel;
  p->schedule = cg_schedule_auto();
  struct fe_file *fe = r->file->fe;
  struct fe_config fixed = {0}, asked = {0};
  if (k) {
    fixed = fe_empty_config(k, r->a);
    asked = fe_empty_config(k, r->a);
    apply_schedule(r, k->n_schedule, k->schedule);
    if (r->from)
      apply_schedule(r, r->from->n_schedule, r->from->schedule);
  }
  for (uint32_t i = 0; r->from && i < r->from->n_consts; i++)
    r->ok &= fe_set_value(fe, k, r->a, FE_SET_CONST, "case", r->from->consts[i].name,
                          r->from->consts[i].value, &fixed);
  for (uint32_t i = 0; r->from && i < r->from->n_set; i++)
    r->ok &= fe_set_value(fe, k, r->a, FE_SET_TUNE, "case", r->from->set[i].name,
                          r->from->set[i].value, &fixed);
  for (uint32_t i = 0; i < r->req->n_consts; i++) {
    if (!k)
      BAD(r, CONFIG, "--const: an IR text has its constants fixed");
    else
      r->ok &= fe_set_config(fe, k, r->a, FE_SET_CONST, "--const", r->req->consts[i], &asked);
  }
  for (uint32_t i = 0; i < r->req->n_set; i++) {
    const char *value, *key = split(r, "--set", r->req->set[i], &value);
    if (!key)
      continue;
    bool choice = is_choice(k, key);
    const char *knob = str_starts(key, "schedule.") ? key + strlen("schedule.") : key;
    if (!choice && cg_is_knob(knob)) {
      set_knob(r, knob, value);
      continue;
    }
    if (!k)
      BAD(r, CONFIG, "--set: an IR text has its config fixed; `%s` is no schedule knob", key);
    else
      r->ok &= fe_set_config(fe, k, r->a, FE_SET_TUNE, "--set", r->req->set[i], &asked);
    if (!choice)
      diag_note(&r->ctx->diags, DIAG_NOWHERE, "schedule knobs are %s", knob_names + 2);
  }
  if (!k || !r->ok)
    return;
  prefer_request(p, &asked, &fixed);
  p->fixed = fixed;
  /* A const named like a dim and the dim are one: whichever is given sets the other. */
  for (uint32_t i = 0; i < k->n_choices; i++) {
    struct api_dim *d = dim_of_const(p, i);
    if (d && d->known && fixed.at[i].kind == FE_NONE)
      r->ok &= fe_set_value(fe, k, r->a, FE_SET_CONST, "--shape", d->name,
                            (struct fe_value){.kind = FE_INT, .i = d->value}, &fixed);
  }
  if (!r->ok || !fe_default_config(fe, k, r->a, &fixed, &p->config) ||
      !fe_check_config(fe, k, &p->config)) {
    r->ok = false;
    return;
  }
  for (uint32_t i = 0; i < k->n_choices; i++) {
    struct api_dim *d = dim_of_const(p, i);
    const struct fe_value *v = &p->config.at[i];
    if (!d || v->kind != FE_INT)
      continue;
    if (d->known && d->value != v->i)
      BAD(r, SHAPE_BINDING, "dim `%s` is %lld in the shape and %lld as a constant", d->name,
          (long long)d->value, (long long)v->i);
    d->value = v->i;
    d->known = true;
  }
  for (uint32_t i = 0; i < p->n_args; i++)
    p->args[i].dtype = fe_arg_dtype(k, &p->config, &k->args[i]);
}

static void set_absent(struct resolve *r) {
  struct api_problem *p = r->p;
  for (uint32_t i = 0; r->from && i < r->from->n_absent; i++) {
    struct api_arg *arg = find_arg(p, r->from->absent[i]);
    if (arg)
      arg->absent = true;
  }
  for (uint32_t i = 0; i < r->req->n_absent; i++) {
    struct api_arg *arg = find_arg(p, r->req->absent[i]);
    const struct fe_arg *decl = arg && p->kernel ? &p->kernel->args[arg - p->args] : NULL;
    if (!decl || !decl->optional)
      BAD(r, SHAPE_BINDING, "--absent: kernel `%s` has no optional argument `%s`", p->name,
          r->req->absent[i]);
    else
      arg->absent = true;
  }
  for (uint32_t i = 0; i < p->n_args && i < 64; i++)
    if (p->args[i].absent && p->args[i].kind != IR_ARG_SCRATCH)
      p->absent |= UINT64_C(1) << i;
}

/* Whether a scalar of the dtype can be the number; float types round it. */
static bool holds(enum dtype t, double x) {
  return dtype_is_float(t) || (num_round(t, x) == x && x < 0x1p63);
}

/* Scalars travel as doubles: a whole number that would change on the way is refused. */
static bool holds_whole(enum dtype t, int64_t i) {
  double x = (double)i;
  return dtype_is_float(t) || (holds(t, x) && (int64_t)x == i);
}

static bool parse_scalar(enum dtype t, const char *text, double *out) {
  char *end;
  *out = strtod(text, &end);
  if (end == text || *end || !holds(t, *out))
    return false;
  int64_t i = strtoll(text, &end, 0);
  return *end || holds_whole(t, i);
}

static const char *const inexact = "; whole numbers are passed exactly up to 2^53";

static bool is_beyond_exact(enum dtype t, double x) {
  return !dtype_is_float(t) && fabs(x) >= 0x1p53 && num_round(t, x) == x;
}

static void set_scalars(struct resolve *r) {
  struct api_problem *p = r->p;
  bool *given = ARENA_ARRAY(r->a, bool, p->n_args + 1);
  for (uint32_t i = 0; r->from && i < r->from->n_scalars; i++) {
    struct api_arg *arg = find_arg(p, r->from->scalars[i].name);
    const struct fe_value *v = &r->from->scalars[i].value;
    if (!arg || arg->kind != IR_ARG_SCALAR)
      continue;
    bool whole = v->kind != FE_NUM;
    arg->number = whole ? (double)v->i : v->f;
    given[arg - p->args] = true;
    if (whole ? holds_whole(arg->dtype, v->i) : holds(arg->dtype, v->f))
      continue;
    r->ok = false;
    const char *got =
        whole ? arena_printf(r->a, "%lld", (long long)v->i) : arena_printf(r->a, "%.14g", v->f);
    diag_report(&r->ctx->diags, DIAG_ERROR, DIAG_SHAPE_BINDING, r->from->loc,
                "the case's scalar `%s` is %s, got %s%s", arg->name, dtype_name(arg->dtype), got,
                is_beyond_exact(arg->dtype, arg->number) ? inexact : "");
  }
  for (uint32_t i = 0; i < r->req->n_scalars; i++) {
    const char *value, *name = split(r, "--scalar", r->req->scalars[i], &value);
    struct api_arg *arg = name ? find_arg(p, name) : NULL;
    if (!name)
      continue;
    if (!arg || arg->kind != IR_ARG_SCALAR) {
      BAD(r, SHAPE_BINDING, "--scalar: kernel `%s` has no scalar argument `%s`", p->name, name);
      continue;
    }
    if (!parse_scalar(arg->dtype, value, &arg->number))
      BAD(r, SHAPE_BINDING, "--scalar: `%s` is %s, got `%s`%s", name, dtype_name(arg->dtype), value,
          is_beyond_exact(arg->dtype, arg->number) ? inexact : "");
    given[arg - p->args] = true;
  }
  for (uint32_t i = 0; i < p->n_args; i++)
    if (p->args[i].kind == IR_ARG_SCALAR && !given[i])
      p->args[i].number = 1; /* neutral enough to run with; --scalar sets it */
}

/* Whether every dim has a value; with `complain` the first missing one is an error. */
static bool dims_known(struct resolve *r, bool complain) {
  for (uint32_t i = 0; i < r->p->n_dims; i++)
    if (!r->p->dims[i].known) {
      if (complain)
        BAD(r, SHAPE_BINDING, "dim `%s` of kernel `%s` has no value; give --shape %s=...",
            r->p->dims[i].name, r->p->name, r->p->dims[i].name);
      return false;
    }
  return true;
}

static void set_shapes(struct resolve *r) {
  struct api_problem *p = r->p;
  const struct fe_kernel *k = p->kernel;
  for (uint32_t i = 0; i < p->n_args; i++) {
    struct api_arg *arg = &p->args[i];
    struct diag_loc at = k ? k->args[i].loc : r->file->tir->args.at[i].at;
    for (uint32_t d = 0; d < arg->rank && arg->kind != IR_ARG_SCRATCH; d++) {
      const struct expr_pool *pool = k ? k->exprs : &r->file->tir->exprs;
      struct expr e = k ? k->args[i].dim[d] : r->file->tir->args.at[i].dim[d];
      const char *why = "";
      if (!expr_eval(pool, e, api_dim_lookup, p, &arg->dim[d], &why))
        BAD_AT(r, SHAPE_BINDING, at, "dim %u of argument `%s` has no value: %s", d, arg->name, why);
      else if (arg->dim[d] < 0)
        BAD_AT(r, SHAPE_BINDING, at, "dim %u of argument `%s` is %lld", d, arg->name,
               (long long)arg->dim[d]);
    }
  }
}

/* Row-major strides, or column-major (the first dim fastest). */
static bool fill_strides(struct api_arg *arg, bool col) {
  int64_t step = 1;
  for (uint32_t j = 0; j < arg->rank; j++) {
    uint32_t d = col ? j : arg->rank - 1 - j;
    arg->stride[d] = step;
    if (__builtin_mul_overflow(step, arg->dim[d] > 1 ? arg->dim[d] : 1, &step))
      return false;
  }
  return step <= INT64_MAX / 16;
}

static void set_layout(struct resolve *r, const char *origin, const char *name, const char *value) {
  struct api_arg *arg = find_arg(r->p, name);
  if (!arg || arg->kind == IR_ARG_SCALAR || arg->kind == IR_ARG_SCRATCH)
    BAD(r, SHAPE_BINDING, "%s: kernel `%s` has no tensor `%s`", origin, r->p->name, name);
  else if (!str_eq(value, "row") && !str_eq(value, "col"))
    BAD(r, SHAPE_BINDING, "%s: `%s` is row or col, got `%s`", origin, name, value);
  else
    fill_strides(arg, str_eq(value, "col"));
}

static void set_offset(struct resolve *r, const char *origin, const char *name, int64_t n) {
  struct api_arg *arg = find_arg(r->p, name);
  if (!arg || arg->kind == IR_ARG_SCALAR || arg->kind == IR_ARG_SCRATCH)
    BAD(r, SHAPE_BINDING, "%s: kernel `%s` has no tensor `%s`", origin, r->p->name, name);
  else if (dtype_bits(arg->dtype) < 8 && n % 2)
    BAD(r, SHAPE_BINDING,
        "%s: `%s` is of %s, two elements a byte: expected an even number, got %lld", origin, name,
        dtype_name(arg->dtype), (long long)n);
  else
    arg->offset = n;
}

/* "1,4096": one number per dim. */
static bool parse_strides(const char *text, struct api_arg *arg) {
  for (uint32_t d = 0; d < arg->rank; d++) {
    if ((d && *text++ != ',') || !parse_int(text, &text, &arg->stride[d]))
      return false;
  }
  return *text == 0;
}

static void set_strides(struct resolve *r) {
  struct api_problem *p = r->p;
  for (uint32_t i = 0; i < p->n_args; i++)
    if (!fill_strides(&p->args[i], false))
      BAD(r, SHAPE_BINDING, "argument `%s` has more elements than memory can hold",
          p->args[i].name);
  for (uint32_t i = 0; r->from && i < r->from->n_layout; i++)
    set_layout(r, "case", r->from->layout[i].name, r->from->layout[i].value.s);
  for (uint32_t i = 0; r->from && i < r->from->n_stride; i++) {
    struct api_arg *arg = find_arg(p, r->from->stride[i].arg);
    for (uint32_t d = 0; arg && d < arg->rank && d < r->from->stride[i].n; d++)
      arg->stride[d] = r->from->stride[i].at[d];
  }
  for (uint32_t i = 0; i < r->req->n_layouts; i++) {
    const char *value, *name = split(r, "--layout", r->req->layouts[i], &value);
    if (name)
      set_layout(r, "--layout", name, value);
  }
  for (uint32_t i = 0; i < r->req->n_strides; i++) {
    const char *value, *name = split(r, "--stride", r->req->strides[i], &value);
    struct api_arg *arg = name ? find_arg(p, name) : NULL;
    if (!name)
      continue;
    if (!arg || arg->kind == IR_ARG_SCALAR || arg->kind == IR_ARG_SCRATCH) {
      BAD(r, SHAPE_BINDING, "--stride: kernel `%s` has no tensor `%s`", p->name, name);
      continue;
    }
    if (!parse_strides(value, arg))
      BAD(r, SHAPE_BINDING, "--stride: `%s` has rank %u: expected %u comma-separated %s, got `%s`",
          name, arg->rank, arg->rank, arg->rank == 1 ? "number" : "numbers", value);
  }
}

static void set_offsets(struct resolve *r) {
  for (uint32_t i = 0; r->from && i < r->from->n_offset; i++)
    set_offset(r, "case", r->from->offset[i].name, r->from->offset[i].value.i);
  for (uint32_t i = 0; i < r->req->n_offsets; i++) {
    const char *value, *end, *name = split(r, "--offset", r->req->offsets[i], &value);
    int64_t n;
    if (!name)
      continue;
    if (!parse_int(value, &end, &n) || *end || n < 0)
      BAD(r, SHAPE_BINDING, "--offset: `%s` must be an integer of at least 0, got `%s`", name,
          value);
    else
      set_offset(r, "--offset", name, n);
  }
}

bool api_resolve(struct kiln_file *file, const struct kiln_request *req, bool need_shape,
                 struct arena *a, struct api_problem *out) {
  memset(out, 0, sizeof *out);
  struct resolve r = {file, file->own.ctx, req, a, out, NULL, true};
  out->file = file;
  out->target = req->target;
  if (file->tir) {
    out->name = ir_sym(file->tir, file->tir->kernel);
    if (req->kernel && !str_eq(req->kernel, out->name)) {
      API_ERROR(r.ctx, NO_SUCH_KERNEL, "the file has kernel `%s`, not `%s`", out->name,
                req->kernel);
      return false;
    }
  } else {
    out->kernel = fe_find_kernel(file->fe, req->kernel);
    if (!out->kernel)
      return false;
    out->name = out->kernel->name;
  }
  check_lists(&r);
  declare(&r);
  pick_case(&r);
  set_dims(&r);
  set_dims_by_facts(&r);
  set_config(&r);
  set_absent(&r);
  set_scalars(&r);
  if (req->seed)
    out->seed = req->seed;
  if (r.ok && dims_known(&r, need_shape || req->n_layouts || req->n_strides || req->n_offsets)) {
    set_shapes(&r);
    set_strides(&r);
    set_offsets(&r);
    out->shaped = r.ok;
  }
  if (r.ok && !api_read_fused(r.ctx, req, out))
    r.ok = false;
  return r.ok;
}
