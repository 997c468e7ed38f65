/* The table library, without sort: every element read is checked to be defined, every one written
 * is journalled, and each costs a step. */
#include "frontend/lib.h"

#include <limits.h>

#define STACK_ROOM 20 /* slots beside the results of unpack */

static lua_Integer length(lua_State *L, int arg, int needs) {
  fe_lib_arg_table(L, arg, needs | FE_LIB_HAS_LEN);
  return fe_lib_len(L, fe_lib_of(L), arg);
}

static void get(lua_State *L, int table, lua_Integer i) {
  lua_pushinteger(L, i);
  fe_lib_get(L, fe_lib_of(L), table);
}

/* table[i] = the value on top. */
static void set(lua_State *L, int table, lua_Integer i) {
  lua_pushinteger(L, i);
  lua_insert(L, -2);
  fe_lib_set(L, fe_lib_of(L), table);
}

static int tab_insert(lua_State *L) {
  lua_Integer end = (lua_Integer)((lua_Unsigned)length(L, 1, FE_LIB_READS | FE_LIB_WRITES) + 1);
  lua_Integer pos = end;
  int n = lua_gettop(L);
  if (n == 3) {
    pos = fe_lib_arg_int(L, 2);
    if ((lua_Unsigned)pos - 1u >= (lua_Unsigned)end)
      fe_lib_arg_error(L, 2, "position out of bounds");
    for (lua_Integer i = end; i > pos; i--) {
      fe_lib_charge(L, 1);
      get(L, 1, i - 1);
      set(L, 1, i);
    }
  } else if (n != 2) {
    return luaL_error(L, "wrong number of arguments to 'insert'");
  }
  set(L, 1, pos);
  return 0;
}

static int tab_remove(lua_State *L) {
  lua_Integer size = length(L, 1, FE_LIB_READS | FE_LIB_WRITES);
  lua_Integer pos = fe_lib_arg_opt_int(L, 2, size);
  /* Position size + 1 is allowed. */
  if (lua_gettop(L) >= 2 && pos != size && (lua_Unsigned)pos - 1u > (lua_Unsigned)size)
    fe_lib_arg_error(L, 1, "position out of bounds");
  get(L, 1, pos);
  for (; pos < size; pos++) {
    fe_lib_charge(L, 1);
    get(L, 1, pos + 1);
    set(L, 1, pos);
  }
  lua_pushnil(L);
  set(L, 1, pos);
  return 1;
}

static int tab_move(lua_State *L) {
  lua_Integer first = fe_lib_arg_int(L, 2), last = fe_lib_arg_int(L, 3);
  lua_Integer to = fe_lib_arg_int(L, 4);
  int target = lua_isnoneornil(L, 5) ? 1 : 5;
  fe_lib_arg_table(L, 1, FE_LIB_READS);
  fe_lib_arg_table(L, target, FE_LIB_WRITES);
  if (last >= first) {
    if (first <= 0 && last >= LUA_MAXINTEGER + first)
      fe_lib_arg_error(L, 3, "too many elements to move");
    lua_Integer n = last - first + 1;
    if (to > LUA_MAXINTEGER - n + 1)
      fe_lib_arg_error(L, 4, "destination wrap around");
    bool upward = to > last || to <= first || !lua_rawequal(L, 1, target);
    for (lua_Integer i = 0; i < n; i++) {
      lua_Integer k = upward ? i : n - 1 - i; /* downward if the target overlaps what follows */
      fe_lib_charge(L, 1);
      get(L, 1, first + k);
      set(L, target, to + k);
    }
  }
  lua_pushvalue(L, target);
  return 1;
}

static void add_field(lua_State *L, luaL_Buffer *out, lua_Integer i) {
  fe_lib_charge(L, 1);
  get(L, 1, i);
  if (fe_lib_is_dev(L, -1) || !lua_isstring(L, -1)) {
    const struct fe_lib_host *host = fe_lib_of(L);
    const char *type =
        fe_lib_is_dev(L, -1) ? fe_lib_dev_name(L, host, lua_gettop(L)) : luaL_typename(L, -1);
    luaL_error(L, "invalid value (%s) at index %I in table for 'concat'", type, (LUAI_UACINT)i);
  }
  luaL_addvalue(out);
}

static int tab_concat(lua_State *L) {
  lua_Integer last = length(L, 1, FE_LIB_READS);
  size_t n_sep;
  const char *sep = fe_lib_arg_opt_str(L, 2, "", &n_sep);
  lua_Integer i = fe_lib_arg_opt_int(L, 3, 1);
  last = fe_lib_arg_opt_int(L, 4, last);
  luaL_Buffer out;
  luaL_buffinit(L, &out);
  for (; i < last; i++) {
    add_field(L, &out, i);
    luaL_addlstring(&out, sep, n_sep);
  }
  if (i == last)
    add_field(L, &out, i);
  luaL_pushresult(&out);
  fe_lib_charge(L, fe_lib_byte_steps((size_t)lua_rawlen(L, -1)));
  return 1;
}

static int tab_pack(lua_State *L) {
  const struct fe_lib_host *host = fe_lib_of(L);
  int n = lua_gettop(L);
  fe_lib_charge(L, (uint64_t)n + 1);
  lua_createtable(L, n, 1);
  lua_insert(L, 1);
  host->born(host->user, L, 1);
  for (int i = n; i >= 1; i--)
    lua_rawseti(L, 1, i);
  lua_pushinteger(L, n);
  lua_setfield(L, 1, "n");
  return 1;
}

static int tab_unpack(lua_State *L) {
  lua_Integer i = fe_lib_arg_opt_int(L, 2, 1);
  fe_lib_no_dev(L, "table.unpack", "a device value has no elements");
  lua_Integer last = lua_isnoneornil(L, 3) ? fe_lib_len(L, fe_lib_of(L), 1) : fe_lib_arg_int(L, 3);
  if (i > last)
    return 0;
  lua_Unsigned n = (lua_Unsigned)last - (lua_Unsigned)i;
  const struct fe_lib_host *host = fe_lib_of(L);
  if (n >= INT_MAX - STACK_ROOM || !host->has_stack(host->user, L, (int)++n + STACK_ROOM))
    return luaL_error(L, "too many results to unpack");
  fe_lib_charge(L, n);
  lua_settop(L, 1);
  for (lua_Unsigned k = 0; k < n; k++)
    get(L, 1, (lua_Integer)((lua_Unsigned)i + k));
  return (int)n;
}

void fe_lib_add_table(lua_State *L, const struct fe_lib_host *host) {
  static const luaL_Reg functions[] = {
      {"concat", tab_concat}, {"insert", tab_insert}, {"move", tab_move}, {"pack", tab_pack},
      {"remove", tab_remove}, {"unpack", tab_unpack}, {NULL, NULL},
  };
  fe_lib_register(L, host, functions);
}
