/* inputs() and oracle() of a kernel, on host arrays. */
#include "frontend/dsl.h"

#include <inttypes.h>

struct call {
  struct fe_file *f;
  const struct fe_kernel *k;
  const struct fe_problem *p;
  const struct fe_arg *arg;          /* shape */
  int64_t *dim;                      /* shape */
  uint64_t seed;                     /* inputs */
  struct fe_array *arrays, *results; /* results: oracle */
  uint64_t *given;                   /* inputs */
};

/* ---- shapes ---- */

struct lookup {
  const struct call *c;
};

static bool look_up(void *user, const char *name, int64_t *value) {
  const struct call *c = ((const struct lookup *)user)->c;
  if (c->p->dim && c->p->dim(c->p->dim_user, name, value))
    return true;
  return dsl_const_int_of(c->k, c->p->config, name, value);
}

static void shape_of(const struct call *c, const struct fe_arg *arg, int64_t *dim) {
  struct lookup l = {c};
  for (uint32_t d = 0; d < arg->rank; d++) {
    const char *why;
    if (!expr_eval(c->k->exprs, arg->dim[d], look_up, &l, &dim[d], &why)) {
      fe_error_at(c->f->fe, DIAG_SHAPE_BINDING, arg->loc, "dim %" PRIu32 " of `%s`, %s: %s", d,
                  arg->name, arg->dim_text[d],
                  str_eq(why, arg->dim_text[d]) ? "no value is given" : why);
    }
    if (dim[d] < 0)
      fe_error_at(c->f->fe, DIAG_SHAPE_BINDING, arg->loc,
                  "dim %" PRIu32 " of `%s`, %s, is %" PRId64, d, arg->name, arg->dim_text[d],
                  dim[d]);
  }
}

static void run_shape(struct fe_state *fe, void *user) {
  struct call *c = user;
  (void)fe;
  shape_of(c, c->arg, c->dim);
}

bool fe_arg_shape(struct fe_file *f, const struct fe_kernel *k, const struct fe_arg *arg,
                  const struct fe_problem *p, int64_t dim[IR_MAX_RANK]) {
  struct call c = {.f = f, .k = k, .p = p, .arg = arg, .dim = dim};
  return fe_protect(f->fe, run_shape, &c) == FE_DONE;
}

/* ---- calls ---- */

/* The table of dims as plain numbers. */
static void push_dims(lua_State *L, const struct call *c) {
  struct lookup l = {c};
  lua_createtable(L, 0, (int)c->k->n_dims);
  for (uint32_t i = 0; i < c->k->n_dims; i++) {
    int64_t value;
    if (!look_up(&l, c->k->dims[i], &value))
      continue;
    lua_pushinteger(L, value);
    lua_setfield(L, -2, c->k->dims[i]);
  }
}

static bool is_absent(const struct call *c, uint32_t i) {
  return c->p->absent >> i & 1;
}

/* Numbers of a Lua list, nested as deep as dims or flat. */
static void read_list(lua_State *L, const struct call *c, const struct fe_arg *arg, int idx,
                      struct fe_array *out, int64_t *at, int64_t count, uint32_t depth) {
  struct fe_file *f = c->f;
  fe_need_stack(L, 4, "nested lists");
  lua_Integer n = (lua_Integer)lua_rawlen(L, idx);
  for (lua_Integer i = 1; i <= n; i++) {
    fe_charge(f->fe, 1);
    lua_rawgeti(L, idx, i);
    int type = lua_type(L, -1);
    if (type == LUA_TTABLE && depth < IR_MAX_RANK) {
      read_list(L, c, arg, lua_gettop(L), out, at, count, depth + 1);
    } else if (type == LUA_TNUMBER || type == LUA_TBOOLEAN) {
      if (*at < count)
        out->data[*at] = type == LUA_TNUMBER ? lua_tonumber(L, -1) : lua_toboolean(L, -1);
      ++*at;
    } else {
      fe_error_at(f->fe, DIAG_SHAPE_BINDING, c->k->loc, "inputs gives %s in the list for `%s`",
                  dsl_describe(f, lua_gettop(L)), arg->name);
    }
    lua_pop(L, 1);
  }
}

/* Copies the value at idx to an array of the caller, if it has the argument's shape. */
static void take(lua_State *L, const struct call *c, const char *who, uint32_t i, int idx,
                 struct fe_array *out) {
  struct fe_file *f = c->f;
  const struct fe_arg *arg = &c->k->args[i];
  int64_t dim[IR_MAX_RANK], count = 1;
  shape_of(c, arg, dim);
  for (uint32_t d = 0; d < arg->rank; d++)
    count *= dim[d];
  const struct dsl_array *a = dsl_to_array(L, idx);
  if (fe_is_unknown(fe_to_dev(L, idx))) /* reported before */
    return;
  struct strbuf want = {.arena = fe_arena(f->fe)};
  for (uint32_t d = 0; d < arg->rank; d++)
    sb_printf(&want, "%s%" PRId64, d ? "," : "(", dim[d]);
  sb_puts(&want, arg->rank ? ")" : "a number");
  if (a) {
    bool same = a->rank == arg->rank;
    for (uint32_t d = 0; same && d < a->rank; d++)
      same = a->dim[d] == dim[d];
    if (!same)
      fe_error_at(f->fe, DIAG_SHAPE_BINDING, c->k->loc, "%s gives %s for `%s`, which is %s", who,
                  luaL_tolstring(L, idx, NULL), arg->name, sb_str(&want));
    dsl_array_copy(a, out->data);
    return;
  }
  if (lua_type(L, idx) == LUA_TNUMBER && (arg->rank == 0 || count == 1)) {
    out->data[0] = lua_tonumber(L, idx);
    return;
  }
  if (lua_type(L, idx) == LUA_TTABLE && arg->rank) {
    int64_t at = 0;
    read_list(L, c, arg, idx, out, &at, count, 1);
    if (at != count)
      fe_error_at(f->fe, DIAG_SHAPE_BINDING, c->k->loc,
                  "%s gives a list of %" PRId64 " numbers for `%s`, which is %s", who, at,
                  arg->name, sb_str(&want));
    return;
  }
  fe_error_at(f->fe, DIAG_SHAPE_BINDING, c->k->loc, "%s gives %s for `%s`, which is %s", who,
              dsl_describe(f, idx), arg->name, sb_str(&want));
}

static void run_inputs(struct fe_state *fe, void *user) {
  struct call *c = user;
  struct fe_file *f = c->f;
  lua_State *L = fe_lua(fe);
  f->mode = DSL_HOST;
  dsl_seed(f, c->seed);
  lua_rawgeti(L, LUA_REGISTRYINDEX, f->kernels.at[c->k->index]->ref_inputs);
  push_dims(L, c);
  dsl_push_rng(L, f);
  dsl_push_config(L, c->k, c->p->config);
  fe_call(fe, 3, 1);
  int table = lua_gettop(L);
  if (lua_type(L, table) != LUA_TTABLE)
    fe_error_at(fe, DIAG_KERNEL_FIELD, c->k->loc,
                "inputs of kernel `%s` gives %s; it must give a table arg -> values", c->k->name,
                fe_describe(fe, table));
  uint32_t n, n_names = 0;
  const char **keys = dsl_sorted_keys(L, f, table, "inputs", &n);
  const char **names = ARENA_ARRAY(fe_arena(fe), const char *, c->k->n_args);
  for (uint32_t i = 0; i < c->k->n_args; i++)
    names[n_names++] = c->k->args[i].name;
  for (uint32_t i = 0; i < n; i++) {
    const struct fe_arg *arg = fe_find_arg(c->k, keys[i]);
    if (!arg || arg->kind == IR_ARG_OUT || arg->kind == IR_ARG_SCRATCH)
      fe_error_at(fe, DIAG_KERNEL_FIELD, c->k->loc,
                  "inputs of kernel `%s` gives `%s`, which is %s%s; args are %s", c->k->name,
                  keys[i], arg ? "no input: it is only written" : "no argument",
                  arg ? "" : dsl_nearest(f, keys[i], names, n_names), dsl_join(f, names, n_names));
    uint32_t at = (uint32_t)(arg - c->k->args);
    if (is_absent(c, at))
      continue;
    lua_getfield(L, table, keys[i]);
    take(L, c, "inputs", at, lua_gettop(L), &c->arrays[at]);
    *c->given |= (uint64_t)1 << at;
    lua_settop(L, table);
  }
  lua_settop(L, table - 1);
}

bool fe_inputs(struct fe_file *f, const struct fe_kernel *k, const struct fe_problem *p,
               uint64_t seed, struct fe_array *arrays, uint64_t *given) {
  struct call c = {.f = f, .k = k, .p = p, .seed = seed, .arrays = arrays, .given = given};
  *given = 0;
  if (!k->has_inputs)
    return true;
  f->single = false;
  enum fe_status s = fe_protect(f->fe, run_inputs, &c);
  f->mode = DSL_IDLE;
  return s == FE_DONE;
}

static void push_arrays(lua_State *L, const struct call *c) {
  lua_createtable(L, 0, (int)c->k->n_args);
  for (uint32_t i = 0; i < c->k->n_args; i++) {
    const struct fe_arg *arg = &c->k->args[i];
    const struct fe_array *a = &c->arrays[i];
    if (arg->kind == IR_ARG_OUT || arg->kind == IR_ARG_SCRATCH || is_absent(c, i) ||
        (!a->data && arg->kind == IR_ARG_SCALAR))
      continue;
    if (arg->kind == IR_ARG_SCALAR) {
      enum dtype t = fe_arg_dtype(c->k, c->p->config, arg);
      if (dtype_is_float(t))
        lua_pushnumber(L, a->data[0]);
      else if (t == DT_BOOL)
        lua_pushboolean(L, a->data[0] != 0);
      else
        lua_pushinteger(L, (lua_Integer)a->data[0]);
    } else {
      dsl_borrow_array(L, c->f, a->rank, a->dim, a->data);
    }
    lua_setfield(L, -2, arg->name);
  }
}

static void run_oracle(struct fe_state *fe, void *user) {
  struct call *c = user;
  struct fe_file *f = c->f;
  lua_State *L = fe_lua(fe);
  f->mode = DSL_HOST;
  int base = lua_gettop(L);
  lua_rawgeti(L, LUA_REGISTRYINDEX, f->kernels.at[c->k->index]->ref_oracle);
  push_arrays(L, c);
  push_dims(L, c);
  dsl_push_config(L, c->k, c->p->config);
  fe_call(fe, 3, LUA_MULTRET);
  int n = lua_gettop(L) - base;
  /* One table name -> array, or the outputs in the order of args. */
  bool by_name = n == 1 && lua_type(L, base + 1) == LUA_TTABLE;
  uint32_t n_outs = 0;
  for (uint32_t i = 0; i < c->k->n_args; i++) {
    const struct fe_arg *arg = &c->k->args[i];
    if ((arg->kind != IR_ARG_OUT && arg->kind != IR_ARG_INOUT) || is_absent(c, i))
      continue;
    n_outs++;
    if (by_name) {
      lua_getfield(L, base + 1, arg->name);
      take(L, c, "oracle", i, lua_gettop(L), &c->results[i]);
      lua_settop(L, base + 1);
    } else if ((int)n_outs <= n) {
      take(L, c, "oracle", i, base + (int)n_outs, &c->results[i]);
    }
  }
  if (!by_name && (int)n_outs != n)
    fe_error_at(fe, DIAG_KERNEL_FIELD, c->k->loc,
                "oracle of kernel `%s` gives %d value%s; it must give one per output, which are "
                "%" PRIu32,
                c->k->name, n, n == 1 ? "" : "s", n_outs);
  lua_settop(L, base);
  lua_gc(L, LUA_GCCOLLECT);
}

bool fe_oracle(struct fe_file *f, const struct fe_kernel *k, const struct fe_problem *p,
               const struct fe_array *arrays, struct fe_array *results) {
  struct call c = {
      .f = f, .k = k, .p = p, .arrays = (struct fe_array *)(uintptr_t)arrays, .results = results};
  if (!k->has_oracle) {
    diag_report(f->diags, DIAG_ERROR, DIAG_NO_ORACLE, k->loc, "kernel `%s` has no oracle", k->name);
    return false;
  }
  f->single = p->single;
  enum fe_status s = fe_protect(f->fe, run_oracle, &c);
  dsl_end_borrowed(f);
  f->single = false;
  f->mode = DSL_IDLE;
  return s == FE_DONE;
}
