/* Argument checks, names in messages, and the checked table access of the sandbox library.
 *
 * The checks say what stock Lua's say. They are ours because stock Lua looks the called function's
 * name up in the caller's bytecode, and the caller here is the evaluator, which knows the name
 * itself (`site`); and because a device value is named by its dtype and shape. */
#include "frontend/lib.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bound on a chain of __newindex tables, as in stock Lua. */
#define META_CHAIN_MAX 2000

static const char *const library_names[] = {"_G", "string", "table", "math", "utf8"};

/* Pushes "string.rep" for the running function, found by value in the library tables, or "?". Of
 * several names the smallest: the order of a hash table must not show. */
static const char *push_library_name(lua_State *L) {
  lua_Debug ar;
  if (!lua_getstack(L, 0, &ar) || !lua_getinfo(L, "f", &ar))
    return lua_pushliteral(L, "?");
  int function = lua_gettop(L);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  int loaded = lua_gettop(L);
  lua_pushnil(L);
  int best = lua_gettop(L);
  for (size_t i = 0; i < sizeof library_names / sizeof *library_names && lua_isnil(L, best); i++) {
    if (lua_getfield(L, loaded, library_names[i]) == LUA_TTABLE) {
      lua_pushnil(L);
      while (lua_next(L, -2)) {
        fe_lib_charge(L, 1);
        if (lua_rawequal(L, -1, function) && lua_type(L, -2) == LUA_TSTRING &&
            (lua_isnil(L, best) || strcmp(lua_tostring(L, -2), lua_tostring(L, best)) < 0)) {
          lua_pushvalue(L, -2);
          lua_replace(L, best);
        }
        lua_pop(L, 1);
      }
    }
    lua_pop(L, 1);
    if (!lua_isnil(L, best) && i > 0) {
      lua_pushfstring(L, "%s.%s", library_names[i], lua_tostring(L, best));
      lua_replace(L, best);
    }
  }
  if (lua_isnil(L, best)) {
    lua_pushliteral(L, "?");
    lua_replace(L, best);
  }
  lua_replace(L, function);
  lua_settop(L, function);
  return lua_tostring(L, function);
}

int fe_lib_arg_error(lua_State *L, int arg, const char *message) {
  const struct fe_lib_host *host = fe_lib_of(L);
  struct fe_lib_site site = {0};
  host->site(host->user, L, &site);
  if (site.method && site.name) {
    arg--; /* `self` is not counted */
    if (arg == 0)
      return luaL_error(L, "calling '%s' on bad self (%s)", site.name, message);
  }
  if (!site.name)
    site.name = push_library_name(L);
  return luaL_error(L, "bad argument #%d to '%s' (%s)", arg, site.name, message);
}

const char *fe_lib_dev_name(lua_State *L, const struct fe_lib_host *host, int idx) {
  host->will_refuse(host->user, L, idx);
  return host->dev_name(host->user, L, idx);
}

const char *fe_lib_type_name(lua_State *L, const struct fe_lib_host *host, int idx) {
  idx = lua_absindex(L, idx);
  if (fe_lib_is_dev(L, idx))
    return fe_lib_dev_name(L, host, idx);
  int type = luaL_getmetafield(L, idx, "__name");
  if (type == LUA_TSTRING)
    return lua_tostring(L, -1);
  if (type != LUA_TNIL)
    lua_pop(L, 1);
  return lua_pushstring(L, luaL_typename(L, idx));
}

int fe_lib_type_error(lua_State *L, int arg, const char *expected) {
  const char *got = fe_lib_type_name(L, fe_lib_of(L), arg);
  return fe_lib_arg_error(L, arg, lua_pushfstring(L, "%s expected, got %s", expected, got));
}

void fe_lib_arg_any(lua_State *L, int arg) {
  if (lua_isnone(L, arg))
    fe_lib_arg_error(L, arg, "value expected");
}

void fe_lib_arg_type(lua_State *L, int arg, int type) {
  if (lua_type(L, arg) != type)
    fe_lib_type_error(L, arg, lua_typename(L, type));
}

void fe_lib_arg_table(lua_State *L, int arg, int needs) {
  static const char *const fields[] = {"__index", "__newindex", "__len"};
  if (lua_istable(L, arg))
    return;
  bool acts = !fe_lib_is_dev(L, arg) && lua_getmetatable(L, arg);
  if (acts) {
    for (int i = 0; i < 3; i++) {
      if (needs & (1 << i)) {
        lua_pushstring(L, fields[i]);
        acts = lua_rawget(L, -2) != LUA_TNIL && acts;
        lua_pop(L, 1);
      }
    }
    lua_pop(L, 1);
  }
  if (!acts)
    fe_lib_type_error(L, arg, "table");
}

lua_Integer fe_lib_arg_int(lua_State *L, int arg) {
  int ok;
  lua_Integer v = lua_tointegerx(L, arg, &ok);
  if (ok)
    return v;
  if (lua_isnumber(L, arg))
    fe_lib_arg_error(L, arg, "number has no integer representation");
  else
    fe_lib_type_error(L, arg, "number");
  return 0;
}

lua_Integer fe_lib_arg_opt_int(lua_State *L, int arg, lua_Integer def) {
  return lua_isnoneornil(L, arg) ? def : fe_lib_arg_int(L, arg);
}

lua_Number fe_lib_arg_num(lua_State *L, int arg) {
  int ok;
  lua_Number v = lua_tonumberx(L, arg, &ok);
  if (!ok)
    fe_lib_type_error(L, arg, "number");
  return v;
}

const char *fe_lib_arg_str(lua_State *L, int arg, size_t *n) {
  const char *s = lua_tolstring(L, arg, n);
  if (!s)
    fe_lib_type_error(L, arg, "string");
  return s;
}

const char *fe_lib_arg_opt_str(lua_State *L, int arg, const char *def, size_t *n) {
  if (!lua_isnoneornil(L, arg))
    return fe_lib_arg_str(L, arg, n);
  *n = strlen(def);
  return def;
}

int fe_lib_refuse(lua_State *L, enum diag_id id, const char *fmt, ...) {
  const struct fe_lib_host *host = fe_lib_of(L);
  char text[512];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  host->refuse(host->user, L, id, text);
  return 0;
}

void fe_lib_no_dev(lua_State *L, const char *function, const char *advice) {
  for (int arg = lua_gettop(L); arg > 0; arg--) {
    if (fe_lib_is_dev(L, arg)) {
      const struct fe_lib_host *host = fe_lib_of(L);
      fe_lib_refuse(L, DIAG_STAGE_OPERAND, "%s of %s: %s", function, fe_lib_dev_name(L, host, arg),
                    advice);
    }
  }
}

/* ---- stock functions ---- */

/* The closure behind a stock function: upvalue 2 is the function, upvalue 3 its name. */
static int call_stock(lua_State *L) {
  const char *name = lua_tostring(L, lua_upvalueindex(3));
  int n = lua_gettop(L);
  fe_lib_no_dev(L, name, "a plain value is needed here");
  for (int i = 1; i <= n; i++)
    if (lua_type(L, i) == LUA_TSTRING)
      fe_lib_charge(L, fe_lib_byte_steps((size_t)lua_rawlen(L, i)));
  lua_pushvalue(L, lua_upvalueindex(2));
  lua_insert(L, 1);
  int status = lua_pcall(L, n, LUA_MULTRET, 0);
  if (status == LUA_OK)
    return lua_gettop(L);
  if (status != LUA_ERRRUN || lua_type(L, -1) != LUA_TSTRING)
    return lua_error(L);
  /* A stock function called from C does not know its name: "bad argument #2 to '?' (text)". */
  size_t size;
  const char *message = lua_tolstring(L, -1, &size);
  const char *rest = message;
  if (strncmp(rest, "bad argument #", 14) == 0) {
    char *end;
    long arg = strtol(rest + 14, &end, 10);
    if (strncmp(end, " to '?' (", 9) == 0 && message[size - 1] == ')') {
      rest = end + 9;
      return fe_lib_arg_error(L, (int)arg,
                              lua_pushlstring(L, rest, (size_t)(message + size - 1 - rest)));
    }
  }
  return luaL_error(L, "%s", message);
}

void fe_lib_add_stock(lua_State *L, const struct fe_lib_host *host, lua_CFunction open,
                      const char *library, const char *const *names) {
  lua_pushcfunction(L, open);
  lua_call(L, 0, 1);
  for (; *names; names++) {
    lua_pushlightuserdata(L, (void *)(uintptr_t)host);
    lua_getfield(L, -2, *names);
    lua_pushfstring(L, "%s.%s", library, *names);
    lua_pushcclosure(L, call_stock, 3);
    lua_setfield(L, -3, *names);
  }
  lua_pop(L, 1);
}

/* ---- tables ---- */

void fe_lib_check_key(lua_State *L, const struct fe_lib_host *host, int key) {
  if (fe_lib_is_dev(L, key)) {
    const char *name = fe_lib_dev_name(L, host, key);
    lua_pushfstring(L, "a Lua table cannot be indexed by %s; use a plain loop or where", name);
    host->refuse(host->user, L, DIAG_STAGE_OPERAND, lua_tostring(L, -1));
  }
}

void fe_lib_get(lua_State *L, const struct fe_lib_host *host, int table) {
  int key = lua_gettop(L);
  lua_pushvalue(L, key);
  int type = lua_gettable(L, table);
  if (type == LUA_TLIGHTUSERDATA)
    host->did_read(host->user, L, key + 1, table, key);
  lua_replace(L, key);
}

void fe_lib_set(lua_State *L, const struct fe_lib_host *host, int table) {
  int value = lua_gettop(L), key = value - 1;
  fe_lib_check_key(L, host, key);
  lua_pushvalue(L, table);
  for (int chain = 0; chain < META_CHAIN_MAX; chain++) {
    int target = value + 1;
    bool is_table = lua_istable(L, target);
    bool raw = false;
    if (is_table) {
      lua_pushvalue(L, key);
      raw = lua_rawget(L, target) != LUA_TNIL;
      lua_pop(L, 1);
    }
    if (!raw && luaL_getmetafield(L, target, "__newindex") == LUA_TNIL) {
      if (!is_table) { /* stock Lua's message */
        lua_pushvalue(L, key);
        lua_pushvalue(L, value);
        lua_settable(L, target);
        return;
      }
      raw = true;
    }
    if (raw) {
      host->will_write(host->user, L, target, key);
      lua_insert(L, key);
      lua_rawset(L, key);
      lua_settop(L, key - 1);
      return;
    }
    if (lua_isfunction(L, -1)) {
      lua_insert(L, key);     /* metamethod, key, value, target */
      lua_insert(L, key + 1); /* metamethod, target, key, value */
      lua_call(L, 3, 0);
      return;
    }
    lua_replace(L, target);
  }
  luaL_error(L, "'__newindex' chain too long; possibly a loop");
}

lua_Integer fe_lib_len(lua_State *L, const struct fe_lib_host *host, int idx) {
  idx = lua_absindex(L, idx);
  if (lua_istable(L, idx) && luaL_getmetafield(L, idx, "__len") == LUA_TNIL) {
    lua_Integer n = (lua_Integer)lua_rawlen(L, idx);
    if (n > 0) {
      if (lua_rawgeti(L, idx, n) == LUA_TLIGHTUSERDATA)
        host->did_len(host->user, L, lua_gettop(L));
      lua_pop(L, 1);
    }
    return n;
  }
  if (lua_istable(L, idx))
    lua_pop(L, 1);
  return luaL_len(L, idx);
}

/* ---- values as text ---- */

const char *fe_lib_push_serial(lua_State *L, int idx) {
  idx = lua_absindex(L, idx);
  if (!luaL_getsubtable(L, LUA_REGISTRYINDEX, "fe_lib.serials")) {
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "k");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
  }
  lua_pushvalue(L, idx);
  if (lua_rawget(L, -2) == LUA_TNIL) {
    lua_pop(L, 1);
    lua_getfield(L, LUA_REGISTRYINDEX, "fe_lib.next_serial");
    lua_Integer serial = lua_tointeger(L, -1) + 1;
    lua_pop(L, 1);
    lua_pushinteger(L, serial);
    lua_setfield(L, LUA_REGISTRYINDEX, "fe_lib.next_serial");
    lua_pushvalue(L, idx);
    lua_pushinteger(L, serial);
    lua_rawset(L, -3);
    lua_pushinteger(L, serial);
  }
  char text[32];
  snprintf(text, sizeof text, "0x%012llx", (unsigned long long)lua_tointeger(L, -1));
  lua_pop(L, 2);
  return lua_pushstring(L, text);
}

const char *fe_lib_tostring(lua_State *L, const struct fe_lib_host *host, int idx, size_t *n) {
  idx = lua_absindex(L, idx);
  if (fe_lib_is_dev(L, idx)) {
    host->dev_name(host->user, L, idx);
    return lua_tolstring(L, -1, n);
  }
  if (luaL_callmeta(L, idx, "__tostring")) {
    if (!lua_isstring(L, -1))
      luaL_error(L, "'__tostring' must return a string");
    return lua_tolstring(L, -1, n);
  }
  switch (lua_type(L, idx)) {
  case LUA_TNUMBER:
  case LUA_TSTRING: lua_pushvalue(L, idx); break;
  case LUA_TBOOLEAN: lua_pushstring(L, lua_toboolean(L, idx) ? "true" : "false"); break;
  case LUA_TNIL: lua_pushliteral(L, "nil"); break;
  default: {
    const char *type = fe_lib_type_name(L, host, idx);
    lua_pushfstring(L, "%s: %s", type, fe_lib_push_serial(L, idx));
    lua_replace(L, -3);
    lua_pop(L, 1);
    break;
  }
  }
  return lua_tolstring(L, -1, n);
}

void fe_lib_register(lua_State *L, const struct fe_lib_host *host, const luaL_Reg *list) {
  lua_pushlightuserdata(L, (void *)(uintptr_t)host);
  luaL_setfuncs(L, list, 1);
}

void fe_lib_open(lua_State *L, const struct fe_lib_host *host) {
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  lua_pushglobaltable(L);
  fe_lib_add_base(L, host);
  fe_lib_add_next(L, host);
  fe_lib_add_require(L, host);
  lua_pushvalue(L, -1);
  lua_setfield(L, -2, "_G");
  lua_pushliteral(L, "Lua 5.4");
  lua_setfield(L, -2, "_VERSION");
  lua_pushvalue(L, -1);
  lua_setfield(L, -3, "_G");

  static const struct {
    const char *name;
    void (*add[3])(lua_State *L, const struct fe_lib_host *host);
  } libraries[] = {{"string", {fe_lib_add_string, fe_lib_add_pattern, fe_lib_add_format}},
                   {"table", {fe_lib_add_table, fe_lib_add_sort}},
                   {"math", {fe_lib_add_math}},
                   {"utf8", {fe_lib_add_utf8}}};
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
    lua_newtable(L);
    for (size_t j = 0; j < 3 && libraries[i].add[j]; j++)
      libraries[i].add[j](L, host);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, libraries[i].name);
    lua_setfield(L, -3, libraries[i].name);
  }
  lua_pop(L, 2);
}
