/* dtypes as values of kernel Lua (`bf16`, callable: bf16(0.5) is a constant, bf16(x) a cast), and
 * the plain arguments that DSL functions take: dtypes, sizes, axes. */
#include "base/num.h"
#include "frontend/dsl.h"

#include <inttypes.h>
#include <stdio.h>

static const char dtypes_key = 0; /* its address is the registry's key for the list of dtypes */

void dsl_register(lua_State *L, struct fe_file *f, const luaL_Reg *list) {
  for (; list->name; list++) {
    lua_pushlightuserdata(L, (void *)(uintptr_t)fe_lib_host_of(f->fe));
    lua_pushlightuserdata(L, f);
    lua_pushcclosure(L, list->func, 2);
    lua_setfield(L, -2, list->name);
  }
}

void dsl_push_dtype(lua_State *L, enum dtype t) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &dtypes_key);
  lua_rawgeti(L, -1, (lua_Integer)t + 1);
  lua_remove(L, -2);
}

bool dsl_to_dtype(lua_State *L, int idx, enum dtype *out) {
  if (lua_type(L, idx) != LUA_TUSERDATA)
    return false;
  idx = lua_absindex(L, idx);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &dtypes_key);
  const unsigned char *cell = lua_touserdata(L, idx);
  bool found = false;
  if (lua_rawlen(L, idx) == 1 && *cell < DT_COUNT) {
    lua_rawgeti(L, -1, (lua_Integer)*cell + 1);
    found = lua_rawequal(L, -1, idx);
    *out = (enum dtype) * cell;
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  return found;
}

bool dsl_dtype_at(struct fe_file *f, int idx, const char *what, enum dtype *out) {
  lua_State *L = fe_lua(f->fe);
  if (dsl_to_dtype(L, idx, out))
    return true;
  if (fe_is_unknown(fe_to_dev(L, idx)))
    return false;
  fe_soft_error(f->fe, DIAG_TYPE_MISMATCH, "%s needs a dtype (f32, bf16, ...), got %s", what,
                dsl_describe(f, idx));
  return false;
}

static int dtype_tostring(lua_State *L) {
  enum dtype t;
  lua_pushstring(L, dsl_to_dtype(L, 1, &t) ? dtype_name(t) : "dtype");
  return 1;
}

/* t(x): a constant of the dtype, or a cast; a plain number where no device values live. */
static int dtype_call(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  enum dtype t;
  if (!dsl_to_dtype(L, 1, &t))
    return luaL_error(L, "attempt to call a value that is no dtype");
  const char *what = dtype_name(t);
  int n = lua_gettop(L);
  if (n != 2) {
    fe_soft_error(f->fe, DIAG_OPERAND, "%s(x) takes one value, got %d", what, n - 1);
    dsl_push(f, NULL);
    return 1;
  }
  if (f->mode == DSL_HOST || f->mode == DSL_IDLE) {
    char text[32];
    snprintf(text, sizeof text, "the value of %s(x)", what);
    lua_pushnumber(L, num_round(t, dsl_number_at(f, 2, text)));
    return 1;
  }
  struct dsl_opnd o;
  if (!dsl_opnd_at(f, 2, what, &o))
    dsl_push(f, NULL);
  else
    dsl_push(f, o.kind == DSL_DEV ? dsl_cast(f, o.dev, t) : dsl_const(f, t, &o));
  return 1;
}

void dsl_open_dtype(lua_State *L, struct fe_file *f) {
  lua_createtable(L, DT_COUNT, 0); /* the list */
  lua_newtable(L);                 /* the metatable */
  static const luaL_Reg meta[] = {
      {"__tostring", dtype_tostring}, {"__call", dtype_call}, {NULL, NULL}};
  dsl_register(L, f, meta);
  lua_pushliteral(L, "dtype");
  lua_setfield(L, -2, "__name");
  lua_pushboolean(L, 0);
  lua_setfield(L, -2, "__metatable");
  for (int t = 0; t < DT_COUNT; t++) {
    unsigned char *cell = lua_newuserdatauv(L, 1, 0);
    *cell = (unsigned char)t;
    lua_pushvalue(L, -2);
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    lua_setglobal(L, dtype_name((enum dtype)t));
    lua_rawseti(L, -3, (lua_Integer)t + 1);
  }
  lua_pop(L, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &dtypes_key);
}

/* ---- plain arguments ---- */

double dsl_number_at(struct fe_file *f, int idx, const char *what) {
  lua_State *L = fe_lua(f->fe);
  if (lua_type(L, idx) != LUA_TNUMBER)
    fe_error(f->fe, DIAG_OPERAND, "%s is %s, not a number", what, dsl_describe(f, idx));
  return lua_tonumber(L, idx);
}

int64_t dsl_integer_at(struct fe_file *f, int idx, const char *what) {
  lua_State *L = fe_lua(f->fe);
  int ok = 0;
  lua_Integer n = lua_type(L, idx) == LUA_TNUMBER ? lua_tointegerx(L, idx, &ok) : 0;
  if (!ok)
    fe_error(f->fe, DIAG_OPERAND, "%s is %s, not an integer", what, dsl_describe(f, idx));
  return n;
}

bool dsl_size_at(struct fe_file *f, int idx, const char *what, int64_t *out) {
  lua_State *L = fe_lua(f->fe);
  int is_num = 0;
  lua_Integer n = 0, least = f->mode == DSL_HOST ? 0 : 1;
  if (fe_is_unknown(fe_to_dev(L, idx)))
    return false;
  if (lua_type(L, idx) == LUA_TNUMBER)
    n = lua_tointegerx(L, idx, &is_num);
  if (is_num && n >= least) {
    *out = n;
    return true;
  }
  if (lua_type(L, idx) == LUA_TNUMBER)
    fe_soft_error(f->fe, DIAG_OPERAND, "%s is %s; it must be an integer of at least %d", what,
                  dsl_describe(f, idx) + strlen("number "), (int)least);
  else
    fe_soft_error(f->fe, DIAG_STAGE_OPERAND, "%s is %s, not a Lua number", what,
                  dsl_describe(f, idx));
  return false;
}

bool dsl_sizes_at(struct fe_file *f, int first, int last, const char *what, uint32_t *rank,
                  int64_t dim[IR_MAX_RANK]) {
  lua_State *L = fe_lua(f->fe);
  bool list = first == last && lua_type(L, first) == LUA_TTABLE;
  int64_t n = list ? (int64_t)lua_rawlen(L, first) : last - first + 1;
  if (!list && first <= last && lua_type(L, first) == LUA_TTABLE) {
    fe_soft_error(f->fe, DIAG_OPERAND, "%s: sizes are numbers or one list, not both", what);
    return false;
  }
  if (n < 1 || n > IR_MAX_RANK) {
    fe_soft_error(f->fe, DIAG_OPERAND, "%s needs 1 to %d sizes, got %" PRId64, what, IR_MAX_RANK,
                  n);
    return false;
  }
  bool ok = true;
  for (int i = 0; i < (int)n; i++) {
    if (list) {
      lua_rawgeti(L, first, (lua_Integer)i + 1);
      fe_check_defined(f->fe, lua_gettop(L));
    } else {
      lua_pushvalue(L, first + i);
    }
    ok &= dsl_size_at(f, lua_gettop(L), "tile size", &dim[i]);
    lua_settop(L, -2);
  }
  *rank = (uint32_t)n;
  if (!ok)
    return false;
  struct ir_type t = ir_tile(DT_BOOL, *rank, dim);
  if (ir_elems(t) > FE_MAX_ELEMS && f->mode != DSL_HOST) { /* arrays have their own limit */
    fe_soft_error(f->fe, DIAG_LIMIT,
                  "%s: a tile %s has %" PRId64 " elements; %" PRId64 " are the most", what,
                  dsl_shape_text(f, t), ir_elems(t), (int64_t)FE_MAX_ELEMS);
    return false;
  }
  return true;
}

int dsl_axis_at(struct fe_file *f, int idx, const char *what, uint32_t rank) {
  lua_State *L = fe_lua(f->fe);
  int is_num = 0;
  lua_Integer n = lua_type(L, idx) == LUA_TNUMBER ? lua_tointegerx(L, idx, &is_num) : 0;
  if (is_num && n >= 0 && n < (lua_Integer)rank)
    return (int)n;
  if (!fe_is_unknown(fe_to_dev(L, idx)))
    fe_soft_error(f->fe, DIAG_OPERAND, "%s: axis is %s; axes count from 0 to %" PRIu32, what,
                  dsl_describe(f, idx), rank ? rank - 1 : 0);
  return -1;
}
