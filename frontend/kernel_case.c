/* The parts of a kernel's description that hold named plain values: schedule and cases. */
#include "frontend/dsl.h"

#include <inttypes.h>

struct named_list {
  VEC(struct fe_named) v;
};

static bool is_table(lua_State *L, struct fe_file *f, int idx, const char *what,
                     const char *example) {
  if (lua_isnil(L, idx))
    return false;
  if (lua_type(L, idx) == LUA_TTABLE)
    return true;
  fe_soft_error(f->fe, DIAG_KERNEL_FIELD, "%s is %s; it is a table, as %s", what,
                dsl_describe(f, idx), example);
  return false;
}

bool dsl_is_list(lua_State *L, struct fe_file *f, int idx, const char *what, const char *example) {
  lua_Integer n = (lua_Integer)lua_rawlen(L, idx), other = 0;
  const char *name = NULL; /* the least, so that the message is always the same one */
  for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1)) {
    bool at = lua_isinteger(L, -2) && lua_tointeger(L, -2) >= 1 && lua_tointeger(L, -2) <= n;
    other += !at;
    if (lua_type(L, -2) == LUA_TSTRING && (!name || strcmp(lua_tostring(L, -2), name) < 0))
      name = arena_strdup(fe_arena(f->fe), lua_tostring(L, -2));
  }
  if (!other)
    return true;
  if (name)
    fe_soft_error(f->fe, DIAG_KERNEL_FIELD, "%s is a list, as %s; it has the field `%s`", what,
                  example, name);
  else
    fe_soft_error(f->fe, DIAG_KERNEL_FIELD, "%s is a list without gaps, as %s", what, example);
  return false;
}

/* ---- schedule ---- */

static void flatten(lua_State *L, struct fe_file *f, int idx, const char *prefix, uint32_t depth,
                    struct named_list *out) {
  struct arena *a = fe_arena(f->fe);
  uint32_t n;
  const char **keys = dsl_sorted_keys(L, f, idx, "schedule", &n);
  for (uint32_t i = 0; i < n; i++) {
    const char *name = *prefix ? arena_printf(a, "%s.%s", prefix, keys[i]) : keys[i];
    lua_getfield(L, idx, keys[i]);
    int at = lua_gettop(L);
    struct fe_named v = {.name = name};
    if (lua_type(L, at) == LUA_TTABLE && depth < 8)
      flatten(L, f, at, name, depth + 1, out);
    else if (dsl_value_from_lua(L, f, at, &v.value))
      VEC_PUSH(a, &out->v, v);
    else
      fe_soft_error(f->fe, DIAG_KERNEL_FIELD,
                    "schedule.%s is %s; knobs are numbers, booleans, dtypes and strings", name,
                    dsl_describe(f, at));
    lua_settop(L, at - 1);
  }
}

static struct named_list read_schedule(lua_State *L, struct fe_file *f, int idx, const char *what) {
  struct named_list list = {0};
  if (is_table(L, f, idx, what, "schedule = {stages = 4}"))
    flatten(L, f, idx, "", 0, &list);
  return list;
}

void dsl_read_schedule(lua_State *L, struct fe_file *f, struct fe_kernel *k, int idx) {
  struct named_list list = read_schedule(L, f, idx, "schedule");
  k->schedule = list.v.at;
  k->n_schedule = list.v.n;
}

/* ---- cases ---- */

struct case_reader {
  lua_State *L;
  struct fe_file *f;
  const struct fe_kernel *k;
  long long number; /* for messages: from 0, as for --case */
};

static const char *what_of(const struct case_reader *r, const char *field) {
  return arena_printf(fe_arena(r->f->fe), "case %lld of %s: %s", r->number,
                      dsl_kernel_text(r->f, r->k), field);
}

/* Reads {name = value}; `known` says which names there are (n_known of them, at `names`). */
static struct named_list read_named(const struct case_reader *r, int table, const char *field,
                                    const char *const *names, uint32_t n_names, const char *kind) {
  lua_State *L = r->L;
  struct fe_file *f = r->f;
  struct named_list list = {0};
  lua_getfield(L, table, field);
  int idx = lua_gettop(L);
  if (is_table(L, f, idx, what_of(r, field), "{M = 64}")) {
    uint32_t n;
    const char **keys = dsl_sorted_keys(L, f, idx, what_of(r, field), &n);
    for (uint32_t i = 0; i < n; i++) {
      bool known = false;
      for (uint32_t j = 0; j < n_names; j++)
        known |= str_eq(names[j], keys[i]);
      struct fe_named v = {.name = keys[i]};
      lua_getfield(L, idx, keys[i]);
      if (!known)
        fe_soft_error(f->fe, DIAG_KERNEL_FIELD, "%s: there is no %s `%s`%s; there are: %s",
                      what_of(r, field), kind, keys[i], dsl_nearest(f, keys[i], names, n_names),
                      dsl_join(f, names, n_names));
      else if (!dsl_value_from_lua(L, f, lua_gettop(L), &v.value))
        fe_soft_error(f->fe, DIAG_KERNEL_FIELD, "%s.%s is %s; it is a plain value",
                      what_of(r, field), keys[i], dsl_describe(f, lua_gettop(L)));
      else
        VEC_PUSH(fe_arena(f->fe), &list.v, v);
      lua_settop(L, idx);
    }
  }
  lua_settop(L, idx - 1);
  return list;
}

/* Names of args of a kind. */
enum arg_choice { TENSORS, SCALARS, OPTIONALS };
static const char **arg_names(const struct case_reader *r, enum arg_choice which, uint32_t *n) {
  struct arena *a = fe_arena(r->f->fe);
  const char **names = ARENA_ARRAY(a, const char *, r->k->n_args + 1);
  *n = 0;
  for (uint32_t i = 0; i < r->k->n_args; i++) {
    const struct fe_arg *arg = &r->k->args[i];
    bool scalar = arg->kind == IR_ARG_SCALAR;
    if (arg->kind == IR_ARG_SCRATCH)
      continue;
    if (which == OPTIONALS ? arg->optional : scalar == (which == SCALARS))
      names[(*n)++] = arg->name;
  }
  return names;
}

static const char **choice_names(const struct case_reader *r, bool is_const, uint32_t *n) {
  const char **names = ARENA_ARRAY(fe_arena(r->f->fe), const char *, r->k->n_choices + 1);
  *n = 0;
  for (uint32_t i = 0; i < r->k->n_choices; i++)
    if (r->k->choices[i].is_const == is_const)
      names[(*n)++] = r->k->choices[i].name;
  return names;
}

static void check_numbers(const struct case_reader *r, struct named_list *l, const char *field,
                          bool dims) {
  for (uint32_t i = 0; i < l->v.n; i++) {
    struct fe_value *v = &l->v.at[i].value;
    if (!dims && v->kind == FE_BOOL)
      v->kind = FE_INT; /* scalars of bool: 0 or 1 */
    if (dims ? v->kind == FE_INT && v->i >= 0 : v->kind == FE_INT || v->kind == FE_NUM)
      continue;
    fe_soft_error(r->f->fe, DIAG_KERNEL_FIELD, "%s.%s must be %s", what_of(r, field),
                  l->v.at[i].name, dims ? "an integer of at least 0" : "a number");
  }
}

static void check_const_values(const struct case_reader *r, const struct named_list *l) {
  for (uint32_t i = 0; i < l->v.n; i++)
    for (uint32_t j = 0; j < r->k->n_choices; j++) {
      const struct fe_choice *c = &r->k->choices[j];
      if (!c->is_const || !str_eq(c->name, l->v.at[i].name))
        continue;
      bool found = c->open && c->values[0].kind == l->v.at[i].value.kind;
      for (uint32_t k = 0; k < c->n_values; k++)
        found |= fe_value_eq(c->values[k], l->v.at[i].value);
      if (!found)
        fe_soft_error(r->f->fe, DIAG_KERNEL_FIELD, "%s.%s is not in the const's list",
                      what_of(r, "const"), c->name);
    }
}

static bool has_named(const struct named_list *l, const char *name) {
  for (uint32_t i = 0; i < l->v.n; i++)
    if (str_eq(l->v.at[i].name, name))
      return true;
  return false;
}

static bool is_const_name(const struct fe_kernel *k, const char *name) {
  for (uint32_t i = 0; i < k->n_choices; i++)
    if (k->choices[i].is_const && str_eq(k->choices[i].name, name))
      return true;
  return false;
}

static void read_shape(const struct case_reader *r, int table, struct fe_case *c) {
  struct named_list l = read_named(r, table, "shape", r->k->dims, r->k->n_dims, "dim");
  check_numbers(r, &l, "shape", true);
  lua_getfield(r->L, table, "shape");
  bool readable = lua_type(r->L, -1) == LUA_TTABLE || lua_isnil(r->L, -1);
  lua_pop(r->L, 1);
  for (uint32_t i = 0; readable && i < r->k->n_dims; i++)
    if (!has_named(&l, r->k->dims[i]) && !is_const_name(r->k, r->k->dims[i]))
      fe_soft_error(r->f->fe, DIAG_KERNEL_FIELD, "%s has no `%s`; the dims are %s",
                    what_of(r, "shape"), r->k->dims[i], dsl_join(r->f, r->k->dims, r->k->n_dims));
  c->shape = l.v.at;
  c->n_shape = l.v.n;
}

static void read_layout(const struct case_reader *r, int table, struct fe_case *c) {
  uint32_t n;
  const char **names = arg_names(r, TENSORS, &n);
  struct named_list l = read_named(r, table, "layout", names, n, "tensor");
  for (uint32_t i = 0; i < l.v.n; i++) {
    const struct fe_value *v = &l.v.at[i].value;
    if (v->kind != FE_STR || (!str_eq(v->s, "row") && !str_eq(v->s, "col")))
      fe_soft_error(r->f->fe, DIAG_KERNEL_FIELD, "%s.%s must be \"row\" or \"col\"",
                    what_of(r, "layout"), l.v.at[i].name);
  }
  c->layout = l.v.at;
  c->n_layout = l.v.n;
}

static void read_stride(const struct case_reader *r, int table, struct fe_case *c) {
  lua_State *L = r->L;
  struct fe_file *f = r->f;
  VEC(struct fe_case_stride) list = {0};
  lua_getfield(L, table, "stride");
  int idx = lua_gettop(L);
  if (is_table(L, f, idx, what_of(r, "stride"), "{A = {1, 4096}}")) {
    uint32_t n, n_names;
    const char **names = arg_names(r, TENSORS, &n_names);
    const char **keys = dsl_sorted_keys(L, f, idx, what_of(r, "stride"), &n);
    for (uint32_t i = 0; i < n; i++) {
      const struct fe_arg *arg = fe_find_arg(r->k, keys[i]);
      struct fe_case_stride s = {.arg = keys[i]};
      lua_getfield(L, idx, keys[i]);
      if (!arg || !arg->rank) {
        fe_soft_error(f->fe, DIAG_KERNEL_FIELD, "%s: there is no tensor `%s`%s; there are: %s",
                      what_of(r, "stride"), keys[i], dsl_nearest(f, keys[i], names, n_names),
                      dsl_join(f, names, n_names));
      } else if (lua_type(L, -1) != LUA_TTABLE || lua_rawlen(L, -1) != arg->rank) {
        fe_soft_error(f->fe, DIAG_KERNEL_FIELD, "%s.%s must be a list of %" PRIu32 " integers",
                      what_of(r, "stride"), keys[i], arg->rank);
      } else {
        for (uint32_t d = 0; d < arg->rank; d++) {
          int is_int;
          lua_rawgeti(L, idx + 1, (lua_Integer)d + 1);
          s.at[d] = lua_tointegerx(L, -1, &is_int);
          if (!is_int)
            fe_soft_error(f->fe, DIAG_KERNEL_FIELD, "%s.%s must be a list of integers",
                          what_of(r, "stride"), keys[i]);
          lua_pop(L, 1);
        }
        s.n = arg->rank;
        VEC_PUSH(fe_arena(f->fe), &list, s);
      }
      lua_settop(L, idx);
    }
  }
  lua_settop(L, idx - 1);
  c->stride = list.at;
  c->n_stride = list.n;
}

static void read_offset(const struct case_reader *r, int table, struct fe_case *c) {
  uint32_t n;
  const char **names = arg_names(r, TENSORS, &n);
  struct named_list l = read_named(r, table, "offset", names, n, "tensor");
  check_numbers(r, &l, "offset", true);
  c->offset = l.v.at;
  c->n_offset = l.v.n;
}

static void read_absent(const struct case_reader *r, int table, struct fe_case *c) {
  lua_State *L = r->L;
  struct fe_file *f = r->f;
  VEC(const char *) list = {0};
  lua_getfield(L, table, "absent");
  int idx = lua_gettop(L);
  if (is_table(L, f, idx, what_of(r, "absent"), "{\"bias\"}") &&
      dsl_is_list(L, f, idx, what_of(r, "absent"), "{\"bias\"}")) {
    uint32_t n_names;
    const char **names = arg_names(r, OPTIONALS, &n_names);
    lua_Integer n = (lua_Integer)lua_rawlen(L, idx);
    for (lua_Integer i = 1; i <= n; i++) {
      lua_rawgeti(L, idx, i);
      const char *name =
          lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : dsl_describe(f, lua_gettop(L));
      const struct fe_arg *arg = fe_find_arg(r->k, name);
      if (arg && arg->optional)
        VEC_PUSH(fe_arena(f->fe), &list, arg->name);
      else
        fe_soft_error(f->fe, DIAG_KERNEL_FIELD, "%s: `%s` is no optional arg; there are: %s",
                      what_of(r, "absent"), name, dsl_join(f, names, n_names));
      lua_settop(L, idx);
    }
  }
  lua_settop(L, idx - 1);
  c->absent = list.at;
  c->n_absent = list.n;
}

static void read_case(const struct case_reader *r, int table, struct fe_case *c) {
  lua_State *L = r->L;
  struct fe_file *f = r->f;
  uint32_t n;
  c->loc = r->k->loc;
  const char **keys = dsl_sorted_keys(L, f, table, what_of(r, "fields"), &n);
  uint32_t n_fields;
  const char *const *fields = dsl_names(f, DSL_OF_case, &n_fields);
  for (uint32_t i = 0; i < n; i++)
    if (!dsl_is_named(DSL_OF_case, keys[i]))
      fe_soft_error(f->fe, DIAG_KERNEL_FIELD, "%s: there is no such field%s; the fields are %s",
                    what_of(r, keys[i]), dsl_nearest(f, keys[i], fields, n_fields),
                    dsl_join(f, fields, n_fields));
  read_shape(r, table, c);
  const char **names = choice_names(r, true, &n);
  struct named_list l = read_named(r, table, "const", names, n, "const");
  check_const_values(r, &l);
  c->consts = l.v.at;
  c->n_consts = l.v.n;
  names = choice_names(r, false, &n);
  l = read_named(r, table, "set", names, n, "tune list");
  c->set = l.v.at;
  c->n_set = l.v.n;
  lua_getfield(L, table, "schedule");
  l = read_schedule(L, f, lua_gettop(L), what_of(r, "schedule"));
  lua_pop(L, 1);
  c->schedule = l.v.at;
  c->n_schedule = l.v.n;
  read_layout(r, table, c);
  read_stride(r, table, c);
  read_offset(r, table, c);
  names = arg_names(r, SCALARS, &n);
  l = read_named(r, table, "scalar", names, n, "scalar");
  check_numbers(r, &l, "scalar", false);
  c->scalars = l.v.at;
  c->n_scalars = l.v.n;
  read_absent(r, table, c);
  lua_getfield(L, table, "seed");
  int is_int;
  c->seed = lua_tointegerx(L, -1, &is_int);
  if (!is_int && !lua_isnil(L, -1))
    fe_soft_error(f->fe, DIAG_KERNEL_FIELD, "%s must be an integer", what_of(r, "seed"));
  lua_pop(L, 1);
}

void dsl_read_cases(lua_State *L, struct fe_file *f, struct fe_kernel *k, int idx) {
  VEC(struct fe_case) list = {0};
  static const char example[] = "cases = {{shape = {M = 64}}}";
  if (is_table(L, f, idx, "cases", example) && dsl_is_list(L, f, idx, "cases", example)) {
    lua_Integer n = (lua_Integer)lua_rawlen(L, idx);
    for (lua_Integer i = 1; i <= n; i++) {
      struct case_reader r = {.L = L, .f = f, .k = k, .number = i - 1};
      struct fe_case c = {0};
      lua_rawgeti(L, idx, i);
      if (lua_type(L, -1) == LUA_TTABLE) {
        read_case(&r, lua_gettop(L), &c);
        VEC_PUSH(fe_arena(f->fe), &list, c);
      } else {
        fe_soft_error(f->fe, DIAG_KERNEL_FIELD, "case %lld of %s is %s; it is a table", r.number,
                      dsl_kernel_text(f, k), dsl_describe(f, lua_gettop(L)));
      }
      lua_settop(L, idx);
    }
  }
  k->cases = list.at;
  k->n_cases = list.n;
}
