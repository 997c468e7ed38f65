/* kernel{...}: checks a description field by field, as many errors at once as there are, and keeps
 * it; fe_load: runs a kernel file and collects the kernels that it returns. */
#include "frontend/dsl.h"

#include <inttypes.h>

static const char meta_key = 0, any_key = 0; /* addresses: registry keys */

/* ---- helpers ---- */

const char *dsl_join(struct fe_file *f, const char *const *names, uint32_t n) {
  struct strbuf b = {.arena = fe_arena(f->fe)};
  for (uint32_t i = 0; i < n; i++)
    sb_printf(&b, "%s%s", i ? ", " : "", names[i]);
  return n ? sb_str(&b) : "none";
}

/* loc: where a key that is no name is reported. */
static const char **sorted_keys_at(lua_State *L, struct fe_file *f, int idx, struct diag_loc loc,
                                   const char *what, uint32_t *n) {
  struct arena *a = fe_arena(f->fe);
  VEC(const char *) keys = {0};
  VEC_RESERVE(a, &keys, 1);
  lua_pushnil(L);
  while (lua_next(L, idx)) {
    lua_pop(L, 1);
    if (lua_type(L, -1) != LUA_TSTRING) {
      fe_soft_error_at(f->fe, DIAG_KERNEL_FIELD, loc, "%s: a key is %s; keys are names", what,
                       dsl_describe(f, lua_gettop(L)));
      continue;
    }
    const char *key = arena_strdup(a, lua_tostring(L, -1));
    VEC_PUSH(a, &keys, key);
    for (uint32_t i = keys.n - 1; i > 0 && strcmp(keys.at[i], keys.at[i - 1]) < 0; i--) {
      const char *t = keys.at[i];
      keys.at[i] = keys.at[i - 1];
      keys.at[i - 1] = t;
    }
  }
  *n = keys.n;
  return keys.at;
}

const char **dsl_sorted_keys(lua_State *L, struct fe_file *f, int idx, const char *what,
                             uint32_t *n) {
  return sorted_keys_at(L, f, idx, fe_where(f->fe), what, n);
}

bool dsl_value_from_lua(lua_State *L, struct fe_file *f, int idx, struct fe_value *out) {
  enum dtype t;
  *out = (struct fe_value){0};
  switch (lua_type(L, idx)) {
  case LUA_TNUMBER: {
    int is_int;
    out->i = lua_tointegerx(L, idx, &is_int);
    out->kind = is_int ? FE_INT : FE_NUM;
    if (!is_int)
      out->f = lua_tonumber(L, idx);
    return true;
  }
  case LUA_TBOOLEAN:
    out->kind = FE_BOOL;
    out->i = lua_toboolean(L, idx);
    return true;
  case LUA_TSTRING:
    out->kind = FE_STR;
    out->s = arena_strdup(fe_arena(f->fe), lua_tostring(L, idx));
    return true;
  default:
    if (!dsl_to_dtype(L, idx, &t))
      return false;
    out->kind = FE_DTYPE;
    out->i = t;
    return true;
  }
}

void dsl_value_to_lua(lua_State *L, struct fe_value v) {
  switch (v.kind) {
  case FE_NONE: lua_pushnil(L); return;
  case FE_INT: lua_pushinteger(L, v.i); return;
  case FE_NUM: lua_pushnumber(L, v.f); return;
  case FE_BOOL: lua_pushboolean(L, v.i != 0); return;
  case FE_DTYPE: dsl_push_dtype(L, (enum dtype)v.i); return;
  case FE_STR: lua_pushstring(L, v.s); return;
  }
}

/* ---- const and tune ---- */

static bool is_any(lua_State *L, int idx) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &any_key);
  bool same = lua_rawequal(L, -1, idx);
  lua_pop(L, 1);
  return same;
}

struct choice_vec {
  VEC(struct fe_choice) v;
};

/* One list: values of one kind, `any` last in a const list. */
static void read_list(lua_State *L, struct fe_file *f, struct fe_choice *c) {
  const char *where = c->is_const ? "const" : "tune";
  int idx = lua_gettop(L);
  struct arena *a = fe_arena(f->fe);
  if (lua_type(L, idx) != LUA_TTABLE || lua_rawlen(L, idx) == 0) {
    fe_soft_error(f->fe, DIAG_KERNEL_FIELD, "%s.%s needs a list of values, as {64, 128}; got %s",
                  where, c->name,
                  lua_type(L, idx) == LUA_TTABLE ? "an empty list" : dsl_describe(f, idx));
    return;
  }
  VEC(struct fe_value) values = {0};
  lua_Integer n = (lua_Integer)lua_rawlen(L, idx);
  for (lua_Integer i = 1; i <= n; i++) {
    lua_rawgeti(L, idx, i);
    int at = lua_gettop(L);
    struct fe_value v;
    if (is_any(L, at) && c->is_const && i == n && i > 1) {
      c->open = true;
    } else if (!dsl_value_from_lua(L, f, at, &v)) {
      fe_soft_error(f->fe, DIAG_KERNEL_FIELD,
                    "value %lld of %s.%s is %s; values are numbers, booleans, dtypes and strings%s",
                    (long long)i, where, c->name, is_any(L, at) ? "`any`" : dsl_describe(f, at),
                    is_any(L, at) ? ", and `any` ends a const list" : "");
    } else {
      bool number = v.kind == FE_INT || v.kind == FE_NUM;
      if (values.n && v.kind != values.at[0].kind &&
          !(number && (values.at[0].kind == FE_INT || values.at[0].kind == FE_NUM)))
        fe_soft_error(f->fe, DIAG_KERNEL_FIELD, "values of %s.%s are of different kinds", where,
                      c->name);
      for (uint32_t j = 0; j < values.n; j++)
        if (fe_value_eq(values.at[j], v))
          fe_soft_error(f->fe, DIAG_KERNEL_FIELD, "value %lld of %s.%s is in the list twice",
                        (long long)i, where, c->name);
      VEC_PUSH(a, &values, v);
    }
    lua_settop(L, idx);
  }
  c->values = values.at;
  c->n_values = values.n;
}

static void read_choices(lua_State *L, struct fe_file *f, int table, bool is_const,
                         struct choice_vec *out) {
  const char *field = is_const ? "const" : "tune";
  struct arena *a = fe_arena(f->fe);
  lua_getfield(L, table, field);
  int idx = lua_gettop(L);
  if (lua_isnil(L, idx)) {
    lua_pop(L, 1);
    return;
  }
  if (lua_type(L, idx) != LUA_TTABLE) {
    fe_soft_error(f->fe, DIAG_KERNEL_FIELD, "%s is %s; it is a table of lists, as {BM = {64, 128}}",
                  field, dsl_describe(f, idx));
    lua_pop(L, 1);
    return;
  }
  uint32_t n;
  const char **keys = dsl_sorted_keys(L, f, idx, field, &n);
  for (uint32_t i = 0; i < n; i++) {
    struct fe_choice c = {.name = keys[i], .is_const = is_const};
    if (!dsl_is_name(c.name))
      fe_soft_error(f->fe, DIAG_KERNEL_FIELD, "%s: \"%s\" is no name", field, c.name);
    for (uint32_t j = 0; j < out->v.n; j++)
      if (str_eq(out->v.at[j].name, c.name))
        fe_soft_error(f->fe, DIAG_KERNEL_FIELD, "`%s` is in const and in tune", c.name);
    lua_getfield(L, idx, c.name);
    read_list(L, f, &c);
    lua_settop(L, idx);
    if (!c.n_values)
      continue;
    VEC_PUSH(a, &out->v, c);
    for (uint32_t j = out->v.n - 1; j > 0 && strcmp(out->v.at[j].name, out->v.at[j - 1].name) < 0;
         j--) {
      struct fe_choice t = out->v.at[j];
      out->v.at[j] = out->v.at[j - 1];
      out->v.at[j - 1] = t;
    }
  }
  lua_settop(L, idx - 1);
}

static const struct fe_choice *find_choice(const struct fe_kernel *k, const char *name) {
  for (uint32_t i = 0; i < k->n_choices; i++)
    if (str_eq(k->choices[i].name, name))
      return &k->choices[i];
  return NULL;
}

/* ---- args ---- */

static void check_dtype_const(struct fe_file *f, const struct fe_kernel *k,
                              const struct fe_arg *arg) {
  const struct fe_choice *c = find_choice(k, arg->dtype_const);
  if (c && c->values[0].kind == FE_DTYPE && c->is_const) {
    for (uint32_t i = 0; i < c->n_values; i++)
      if (c->values[i].i == DT_INDEX)
        fe_soft_error_at(f->fe, DIAG_KERNEL_FIELD, arg->loc,
                         "`%s`: index is no type of memory; use s32 or s64", arg->name);
    return;
  }
  VEC(const char *) names = {0};
  for (uint32_t i = 0; i < k->n_choices; i++)
    if (k->choices[i].is_const && k->choices[i].values[0].kind == FE_DTYPE)
      VEC_PUSH(fe_arena(f->fe), &names, k->choices[i].name);
  enum dtype t;
  if (dtype_find(arg->dtype_const, &t))
    fe_soft_error_at(f->fe, DIAG_KERNEL_FIELD, arg->loc,
                     "dtype of `%s`: write %s without quotes, or name a const", arg->name,
                     arg->dtype_const);
  else
    fe_soft_error_at(f->fe, DIAG_KERNEL_FIELD, arg->loc,
                     "dtype of `%s`: \"%s\" is no const of dtypes%s; there are: %s", arg->name,
                     arg->dtype_const, dsl_nearest(f, arg->dtype_const, names.at, names.n),
                     dsl_join(f, names.at, names.n));
}

struct name_vec {
  VEC(const char *) v;
};

static bool has_name(const struct name_vec *v, const char *name) {
  for (uint32_t i = 0; i < v->v.n; i++)
    if (str_eq(v->v.at[i], name))
      return true;
  return false;
}

/* Collects the symbols of an expression in order. */
static void collect(struct fe_file *f, struct expr e, struct name_vec *out) {
  const struct expr_node *n = expr_at(&f->exprs, e);
  if (n->op == EXPR_SYM) {
    const char *name = symtab_str(f->syms, n->sym);
    if (!has_name(out, name))
      VEC_PUSH(fe_arena(f->fe), &out->v, name);
    return;
  }
  for (uint32_t i = 0; i < 3; i++)
    if (n->op != EXPR_CONST && n->in[i].id)
      collect(f, n->in[i], out);
}

/* Names in the sizes of scratch: dims, consts and meta-parameters. */
static void check_scratch_dims(struct fe_file *f, const struct fe_kernel *k,
                               const struct fe_arg *arg) {
  struct name_vec all = {0};
  for (uint32_t d = 0; d < arg->rank; d++)
    collect(f, arg->dim[d], &all);
  for (uint32_t i = 0; i < all.v.n; i++) {
    const char *name = all.v.at[i];
    const struct fe_choice *c = find_choice(k, name);
    bool known = c && c->values[0].kind == FE_INT;
    for (uint32_t j = 0; j < k->n_dims; j++)
      known |= str_eq(name, k->dims[j]);
    if (!known)
      fe_soft_error_at(
          f->fe, DIAG_KERNEL_FIELD, arg->loc,
          "size of scratch `%s`: \"%s\" is no dim of another argument, no const and no "
          "meta-parameter of integers",
          arg->name, name);
  }
}

/* Named dims: those that an argument has plainly, and so can be found at launch. */
static void find_dims(struct fe_file *f, struct fe_kernel *k) {
  struct arena *a = fe_arena(f->fe);
  struct name_vec all = {0}, plain = {0}, dims = {0};
  for (uint32_t i = 0; i < k->n_args; i++)
    for (uint32_t d = 0; k->args[i].kind != IR_ARG_SCRATCH && d < k->args[i].rank; d++) {
      struct expr e = k->args[i].dim[d];
      collect(f, e, &all);
      if (expr_at(&f->exprs, e)->op == EXPR_SYM)
        collect(f, e, &plain);
    }
  for (uint32_t i = 0; i < all.v.n; i++) {
    const char *name = all.v.at[i];
    const struct fe_choice *c = find_choice(k, name);
    if (!dsl_is_name(name))
      fe_soft_error_at(f->fe, DIAG_KERNEL_FIELD, k->loc, "dim \"%s\" is no name", name);
    else if (c && (!c->is_const || c->values[0].kind != FE_INT))
      fe_soft_error_at(f->fe, DIAG_KERNEL_FIELD, k->loc,
                       "dim \"%s\" is the name of a %s; a dim may share its name with a const of "
                       "integers only",
                       name, c->is_const ? "const of another kind" : "tune list");
    else if (has_name(&plain, name))
      VEC_PUSH(a, &dims.v, name);
    else if (!c)
      fe_soft_error_at(f->fe, DIAG_KERNEL_FIELD, k->loc,
                       "dim \"%s\" appears only in expressions: no argument tells its value", name);
  }
  k->dims = dims.v.at;
  k->n_dims = dims.v.n;
  for (uint32_t i = 0; i < k->n_args; i++)
    if (k->args[i].kind == IR_ARG_SCRATCH)
      check_scratch_dims(f, k, &k->args[i]);
}

const char *dsl_kernel_text(struct fe_file *f, const struct fe_kernel *k) {
  bool named = !str_eq(k->name, "?");
  return named ? arena_printf(fe_arena(f->fe), "kernel `%s`", k->name) : "this kernel";
}

static void read_args(lua_State *L, struct fe_file *f, struct fe_kernel *k, int table) {
  struct arena *a = fe_arena(f->fe);
  VEC(struct fe_arg) args = {0};
  lua_getfield(L, table, "args");
  int idx = lua_gettop(L);
  if (lua_type(L, idx) != LUA_TTABLE || lua_rawlen(L, idx) == 0) {
    fe_soft_error(f->fe, DIAG_KERNEL_FIELD,
                  "%s needs args, a list of tensor(...), out(...), ...; got %s",
                  dsl_kernel_text(f, k),
                  lua_type(L, idx) == LUA_TTABLE ? "an empty list" : dsl_describe(f, idx));
    lua_pop(L, 1);
    return;
  }
  bool writes = false;
  dsl_is_list(L, f, idx, "args", "{ tensor(...), out(...) }");
  lua_Integer n = (lua_Integer)lua_rawlen(L, idx);
  if (n > FE_MAX_ARGS) {
    fe_soft_error(f->fe, DIAG_KERNEL_FIELD, "%s has %lld args; %d are the most",
                  dsl_kernel_text(f, k), (long long)n, FE_MAX_ARGS);
    n = FE_MAX_ARGS;
  }
  for (lua_Integer i = 1; i <= n; i++) {
    lua_rawgeti(L, idx, i);
    const struct dsl_arg_spec *s = dsl_to_arg(L, -1);
    if (!s) {
      if (!fe_is_unknown(fe_to_dev(L, -1))) /* a declaration that was refused */
        fe_soft_error(f->fe, DIAG_KERNEL_FIELD,
                      "arg %lld of %s is %s; args are tensor(...), scalar(...), out(...), "
                      "inout(...) or optional(...)",
                      (long long)i, dsl_kernel_text(f, k), dsl_describe(f, lua_gettop(L)));
    } else {
      for (uint32_t j = 0; j < args.n; j++)
        if (str_eq(args.at[j].name, s->arg.name) && !str_eq(s->arg.name, "?"))
          fe_soft_error_at(f->fe, DIAG_KERNEL_FIELD, s->arg.loc, "%s has two args `%s`",
                           dsl_kernel_text(f, k), s->arg.name);
      writes |= s->arg.kind == IR_ARG_OUT || s->arg.kind == IR_ARG_INOUT;
      VEC_PUSH(a, &args, s->arg);
    }
    lua_settop(L, idx);
  }
  lua_settop(L, idx - 1);
  k->args = args.at;
  k->n_args = args.n;
  if (!writes && args.n == (uint32_t)n)
    fe_soft_error(f->fe, DIAG_KERNEL_FIELD, "%s writes nothing: it has no out or inout",
                  dsl_kernel_text(f, k));
  for (uint32_t i = 0; i < k->n_args; i++)
    if (args.at[i].dtype_const)
      check_dtype_const(f, k, &args.at[i]);
  find_dims(f, k);
  for (uint32_t i = 0; i < k->n_args; i++)
    for (uint32_t j = 0; j < k->n_dims; j++)
      if (str_eq(args.at[i].name, k->dims[j]))
        fe_soft_error_at(f->fe, DIAG_KERNEL_FIELD, args.at[i].loc, "`%s` names an arg and a dim",
                         k->dims[j]);
}

/* ---- kernel{...} ---- */

static int read_function(lua_State *L, struct fe_file *f, const struct fe_kernel *k, int table,
                         const char *field, bool needed) {
  lua_getfield(L, table, field);
  if (lua_type(L, -1) == LUA_TFUNCTION)
    return luaL_ref(L, LUA_REGISTRYINDEX);
  if (!lua_isnil(L, -1) || needed)
    fe_soft_error(f->fe, DIAG_KERNEL_FIELD, "%s needs %s to be a function, got %s",
                  dsl_kernel_text(f, k), field, dsl_describe(f, lua_gettop(L)));
  lua_pop(L, 1);
  return LUA_NOREF;
}

static void check_fields(lua_State *L, struct fe_file *f, int table) {
  uint32_t n, n_fields;
  const char **keys = dsl_sorted_keys(L, f, table, "kernel", &n);
  const char *const *fields = dsl_names(f, DSL_OF_description, &n_fields);
  for (uint32_t i = 0; i < n; i++)
    if (!dsl_is_named(DSL_OF_description, keys[i]))
      fe_soft_error(f->fe, DIAG_KERNEL_FIELD, "a kernel has no field `%s`%s; the fields are %s",
                    keys[i], dsl_nearest(f, keys[i], fields, n_fields),
                    dsl_join(f, fields, n_fields));
}

static struct dsl_kernel *to_kernel(lua_State *L, int idx) {
  if (lua_type(L, idx) != LUA_TUSERDATA || !lua_getmetatable(L, idx))
    return NULL;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &meta_key);
  bool same = lua_rawequal(L, -1, -2);
  lua_pop(L, 2);
  return same ? *(struct dsl_kernel **)lua_touserdata(L, idx) : NULL;
}

/* The description is the table at index 1, all else is dropped; pushes the kernel. */
static int describe_kernel(lua_State *L, struct fe_file *f) {
  lua_settop(L, 1);
  if (f->mode != DSL_IDLE || fe_region_top(f->fe))
    fe_error(f->fe, DIAG_KERNEL_FIELD, "a kernel cannot be made while another one runs");
  struct dsl_kernel *k = ARENA_NEW(fe_arena(f->fe), struct dsl_kernel);
  k->pub.exprs = &f->exprs;
  k->pub.loc = fe_where(f->fe);
  k->pub.name = "?";
  check_fields(L, f, 1);
  lua_getfield(L, 1, "name");
  if (lua_type(L, -1) == LUA_TSTRING && dsl_is_name(lua_tostring(L, -1)))
    k->pub.name = arena_strdup(fe_arena(f->fe), lua_tostring(L, -1));
  else if (!lua_isnil(L, -1))
    fe_soft_error(
        f->fe, DIAG_KERNEL_FIELD, "the name of a kernel is made of letters, digits and _; got %s",
        lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : dsl_describe(f, lua_gettop(L)));
  lua_settop(L, 1);
  struct choice_vec choices = {0};
  read_choices(L, f, 1, true, &choices);
  read_choices(L, f, 1, false, &choices);
  k->pub.choices = choices.v.at;
  k->pub.n_choices = choices.v.n;
  read_args(L, f, &k->pub, 1);
  k->ref_grid = read_function(L, f, &k->pub, 1, "grid", true);
  k->ref_body = read_function(L, f, &k->pub, 1, "body", true);
  k->ref_legal = read_function(L, f, &k->pub, 1, "legal", false);
  k->ref_inputs = read_function(L, f, &k->pub, 1, "inputs", false);
  k->ref_oracle = read_function(L, f, &k->pub, 1, "oracle", false);
  k->pub.has_legal = k->ref_legal != LUA_NOREF;
  k->pub.has_inputs = k->ref_inputs != LUA_NOREF;
  k->pub.has_oracle = k->ref_oracle != LUA_NOREF;
  lua_getfield(L, 1, "schedule");
  dsl_read_schedule(L, f, &k->pub, 2);
  lua_settop(L, 1);
  lua_getfield(L, 1, "cases");
  dsl_read_cases(L, f, &k->pub, 2);
  VEC_PUSH(fe_arena(f->fe), &f->made, k);
  struct dsl_kernel **box = lua_newuserdatauv(L, sizeof(void *), 1);
  *box = k;
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1); /* for with{...} */
  lua_rawgetp(L, LUA_REGISTRYINDEX, &meta_key);
  lua_setmetatable(L, -2);
  return 1;
}

int dsl_fn_global_kernel(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  lua_settop(L, 1);
  if (lua_type(L, 1) != LUA_TTABLE)
    fe_error(f->fe, DIAG_KERNEL_FIELD, "kernel takes a table, as kernel { name = ... }; got %s",
             dsl_describe(f, 1));
  return describe_kernel(L, f);
}

static void copy_fields(lua_State *L, int from, int to) {
  lua_pushnil(L);
  while (lua_next(L, from)) {
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, to);
  }
}

/* k:with{...}: the same kernel with some fields of its description replaced. */
int dsl_fn_kernel_with(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  lua_settop(L, 2);
  if (!to_kernel(L, 1) || lua_type(L, 2) != LUA_TTABLE)
    fe_error(f->fe, DIAG_KERNEL_FIELD, "with is called as k:with { cases = ... }; got %s",
             dsl_describe(f, 2));
  static const char *const fixed[] = {"args", "body", "grid"};
  for (uint32_t i = 0; i < 3; i++) {
    lua_getfield(L, 2, fixed[i]);
    if (!lua_isnil(L, -1))
      fe_soft_error(f->fe, DIAG_KERNEL_FIELD, "with cannot replace `%s`: that is another kernel",
                    fixed[i]);
    lua_pop(L, 1);
  }
  lua_newtable(L);
  lua_getiuservalue(L, 1, 1);
  copy_fields(L, 4, 3);
  copy_fields(L, 2, 3);
  for (uint32_t i = 0; i < 3; i++) {
    lua_getfield(L, 4, fixed[i]);
    lua_setfield(L, 3, fixed[i]);
  }
  fe_born(f->fe, 3);
  lua_pushvalue(L, 3);
  lua_replace(L, 1);
  return describe_kernel(L, f);
}

static int kernel_index(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : NULL;
  if (key && dsl_is_named(DSL_OF_kernel, key)) {
    lua_newtable(L);
    dsl_register_all(L, f, DSL_OF_kernel);
    lua_getfield(L, -1, key);
    return 1;
  }
  uint32_t n;
  const char *const *names = dsl_names(f, DSL_OF_kernel, &n);
  fe_error(f->fe, DIAG_KERNEL_FIELD, "a kernel has no %s; it has %s",
           key ? key : dsl_describe(f, 2), dsl_join(f, names, n));
}

static int kernel_tostring(lua_State *L) {
  struct dsl_kernel *k = to_kernel(L, 1);
  lua_pushfstring(L, "kernel %s", k ? k->pub.name : "?");
  return 1;
}

static void push_meta(lua_State *L, struct fe_file *f, const char *name, lua_CFunction tostring) {
  const luaL_Reg meta[] = {{"__tostring", tostring}, {NULL, NULL}};
  lua_newtable(L);
  dsl_register(L, f, meta);
  lua_pushstring(L, name);
  lua_setfield(L, -2, "__name");
  lua_pushboolean(L, 0);
  lua_setfield(L, -2, "__metatable");
}

void dsl_open_kernel(lua_State *L, struct fe_file *f) {
  static const luaL_Reg index[] = {{"__index", kernel_index}, {NULL, NULL}};
  push_meta(L, f, "kernel", kernel_tostring);
  dsl_register(L, f, index);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &meta_key);
}

/* ---- files ---- */

static void add_kernel(struct fe_file *f, const struct dsl_kernel *made, const char *name) {
  struct dsl_kernel *k = ARENA_NEW(fe_arena(f->fe), struct dsl_kernel);
  *k = *made;
  k->pub.name = name;
  k->pub.index = f->kernels.n;
  VEC_PUSH(fe_arena(f->fe), &f->kernels, k);
}

static void take_kernels(lua_State *L, struct fe_file *f, int idx, struct diag_loc file) {
  struct dsl_kernel *k = to_kernel(L, idx);
  if (k) {
    if (str_eq(k->pub.name, "?"))
      fe_soft_error_at(f->fe, DIAG_KERNEL_FIELD, k->pub.loc, "the kernel needs a name");
    add_kernel(f, k, k->pub.name);
    return;
  }
  static const char want[] = "a kernel file returns kernel { ... } or a table name -> kernel";
  if (lua_type(L, idx) != LUA_TTABLE)
    fe_error_at(f->fe, DIAG_KERNEL_FIELD, file, "%s; this one returns %s", want,
                dsl_describe(f, idx));
  uint32_t n;
  const char **names = sorted_keys_at(L, f, idx, file, "the table of kernels", &n);
  if (!n)
    fe_error_at(f->fe, DIAG_KERNEL_FIELD, file, "%s; this one returns an empty table", want);
  for (uint32_t i = 0; i < n; i++) {
    lua_getfield(L, idx, names[i]);
    k = to_kernel(L, lua_gettop(L));
    if (!k)
      fe_soft_error_at(f->fe, DIAG_KERNEL_FIELD, file, "%s; `%s` is %s", want, names[i],
                       dsl_describe(f, lua_gettop(L)));
    else if (!dsl_is_name(names[i]))
      fe_soft_error_at(f->fe, DIAG_KERNEL_FIELD, k->pub.loc,
                       "the name of a kernel is made of letters, digits and _; got \"%s\"",
                       names[i]);
    else
      add_kernel(f, k, names[i]);
    lua_pop(L, 1);
  }
}

struct load_call {
  struct fe_file *f;
  const char *name, *text;
  size_t n;
};

static void run_load(struct fe_state *fe, void *user) {
  struct load_call *c = user;
  struct fe_file *f = c->f;
  lua_State *L = fe_lua(fe);
  struct arena *a = fe_arena(fe);
  f->syms = symtab_new(a);
  expr_pool_init(&f->exprs, a, f->syms);
  map_init(&f->type_ids, a);
  dsl_fill_tracer(f);
  fe_set_tracer(fe, &f->tracer);
  dsl_open_dtype(L, f);
  dsl_open_methods(L, f);
  dsl_open_math(L);
  dsl_open_array(L, f);
  dsl_open_arg(L, f);
  dsl_open_kernel(L, f);
  lua_pushglobaltable(L);
  dsl_register_all(L, f, DSL_OF_global);
  lua_getfield(L, -1, "any"); /* the function of masks is also the word that ends a const list */
  lua_rawsetp(L, LUA_REGISTRYINDEX, &any_key);
  lua_pop(L, 1);
  fe_load_text(fe, c->name, c->text, c->n);
  fe_call(fe, 0, 1);
  struct diag_loc file = DIAG_NOWHERE;
  for (uint32_t i = 1; i < f->diags->files.n; i++)
    if (str_eq(f->diags->files.at[i].name, c->name))
      file = (struct diag_loc){i, 1, 1};
  take_kernels(L, f, lua_gettop(L), file);
  lua_settop(L, 0);
}

struct fe_file *fe_load(const struct fe_host *host, const char *name, const char *text, size_t n) {
  struct fe_host h = *host;
  if (!h.limits.host_mem)
    h.limits.host_mem = (size_t)8 << 30;
  if (!h.limits.ops)
    h.limits.ops = 100000;
  if (!h.limits.memory)
    h.limits.memory = (size_t)256 << 20;
  struct fe_file *f = mem_get0(h.mem, sizeof *f);
  struct fe_state *fe = f ? fe_state_new(&h) : NULL;
  if (!fe) {
    if (f)
      mem_drop(h.mem, f, sizeof *f);
    else
      diag_report(h.diags, DIAG_ERROR, DIAG_NO_MEMORY, DIAG_NOWHERE, "out of memory");
    return NULL;
  }
  f->mem = h.mem;
  f->diags = h.diags;
  f->host = h;
  f->fe = fe;
  f->max_ops = h.limits.ops;
  uint32_t before = h.diags->n_errors;
  if (fe_protect(fe, run_load, &(struct load_call){f, name, text, n}) == FE_DONE &&
      h.diags->n_errors == before)
    return f;
  fe_free(f);
  return NULL;
}

void fe_free(struct fe_file *f) {
  if (!f)
    return;
  const struct mem_alloc *mem = f->mem;
  fe_state_free(f->fe); /* its collector frees host arrays through f */
  mem_drop(mem, f, sizeof *f);
}

uint32_t fe_kernel_count(const struct fe_file *f) {
  return f->kernels.n;
}

const struct fe_kernel *fe_kernel_at(const struct fe_file *f, uint32_t i) {
  return &f->kernels.at[i]->pub;
}

struct find_call {
  struct fe_file *f;
  const char *name;
};

static void report_unknown(struct fe_state *fe, void *user) {
  const struct find_call *c = user;
  struct fe_file *f = c->f;
  struct name_vec names = {0};
  for (uint32_t i = 0; i < f->kernels.n; i++)
    VEC_PUSH(fe_arena(fe), &names.v, f->kernels.at[i]->pub.name);
  if (c->name)
    fe_soft_error_at(fe, DIAG_NO_SUCH_KERNEL, DIAG_NOWHERE,
                     "there is no kernel `%s`%s; the file has %s", c->name,
                     dsl_nearest(f, c->name, names.v.at, names.v.n),
                     dsl_join(f, names.v.at, names.v.n));
  else
    fe_soft_error_at(fe, DIAG_NO_SUCH_KERNEL, DIAG_NOWHERE,
                     "the file has several kernels; choose one (--kernel NAME) of %s",
                     dsl_join(f, names.v.at, names.v.n));
}

const struct fe_kernel *fe_find_kernel(struct fe_file *f, const char *name) {
  if (!name && f->kernels.n == 1)
    return &f->kernels.at[0]->pub;
  for (uint32_t i = 0; name && i < f->kernels.n; i++)
    if (str_eq(f->kernels.at[i]->pub.name, name))
      return &f->kernels.at[i]->pub;
  fe_protect(f->fe, report_unknown, &(struct find_call){f, name});
  return NULL;
}

const struct fe_arg *fe_find_arg(const struct fe_kernel *k, const char *name) {
  for (uint32_t i = 0; i < k->n_args; i++)
    if (str_eq(k->args[i].name, name))
      return &k->args[i];
  return NULL;
}
