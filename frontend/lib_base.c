/* Basic functions: types, conversion, raw access, metatables, errors, print; and the names that are
 * refused, each with a message of its own. */
#include "frontend/lib.h"

#include <limits.h>
#include <string.h>

static int base_type(lua_State *L) {
  fe_lib_arg_any(L, 1);
  const struct fe_lib_host *host = fe_lib_of(L);
  lua_pushstring(L, fe_lib_is_dev(L, 1) ? host->dev_type(host->user, L, 1) : luaL_typename(L, 1));
  return 1;
}

static int base_tostring(lua_State *L) {
  fe_lib_arg_any(L, 1);
  fe_lib_tostring(L, fe_lib_of(L), 1, NULL);
  return 1;
}

/* The value of a digit in bases up to 36; 36 for what is no digit. ASCII, whatever the locale. */
static int digit_value(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'z')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z')
    return c - 'A' + 10;
  return 36;
}

/* An integer in `base` with blanks around it; wraps around. false if `s` is anything else. */
static bool parse_integer(const char *s, size_t n, int base, lua_Integer *out) {
  static const char blanks[] = " \f\n\r\t\v";
  const char *end = s + n;
  s += strspn(s, blanks);
  bool negative = *s == '-';
  s += *s == '-' || *s == '+';
  if (digit_value(*s) >= 36)
    return false;
  lua_Unsigned value = 0;
  for (; digit_value(*s) < 36; s++) {
    if (digit_value(*s) >= base)
      return false;
    value = value * (lua_Unsigned)base + (lua_Unsigned)digit_value(*s);
  }
  s += strspn(s, blanks);
  *out = (lua_Integer)(negative ? 0 - value : value);
  return s == end;
}

static int base_tonumber(lua_State *L) {
  fe_lib_no_dev(L, "tonumber", "a device value is not a Lua number");
  if (lua_isnoneornil(L, 2)) {
    if (lua_type(L, 1) == LUA_TNUMBER) {
      lua_settop(L, 1);
      return 1;
    }
    size_t n;
    const char *s = lua_tolstring(L, 1, &n);
    if (s) {
      fe_lib_charge(L, fe_lib_byte_steps(n));
      if (lua_stringtonumber(L, s) == n + 1)
        return 1;
    }
    fe_lib_arg_any(L, 1);
  } else {
    lua_Integer base = fe_lib_arg_int(L, 2), value;
    fe_lib_arg_type(L, 1, LUA_TSTRING); /* no number: 10 in base 16 would be ambiguous */
    size_t n;
    const char *s = lua_tolstring(L, 1, &n);
    if (base < 2 || base > 36)
      fe_lib_arg_error(L, 2, "base out of range");
    fe_lib_charge(L, fe_lib_byte_steps(n));
    if (parse_integer(s, n, (int)base, &value)) {
      lua_pushinteger(L, value);
      return 1;
    }
  }
  luaL_pushfail(L);
  return 1;
}

static int base_select(lua_State *L) {
  int n = lua_gettop(L);
  if (lua_type(L, 1) == LUA_TSTRING && *lua_tostring(L, 1) == '#') {
    lua_pushinteger(L, n - 1);
    return 1;
  }
  lua_Integer i = fe_lib_arg_int(L, 1);
  if (i < 0)
    i = n + i;
  else if (i > n)
    i = n;
  if (i < 1)
    fe_lib_arg_error(L, 1, "index out of range");
  return n - (int)i;
}

/* ipairs keeps no state: upvalue 2 of `ipairs` is this one function. */
static int ipairs_step(lua_State *L) {
  lua_Integer i = (lua_Integer)((lua_Unsigned)fe_lib_arg_int(L, 2) + 1u);
  fe_lib_charge(L, 1);
  lua_pushinteger(L, i);
  lua_pushinteger(L, i);
  fe_lib_get(L, fe_lib_of(L), 1);
  return lua_isnil(L, -1) ? 1 : 2;
}

static int base_ipairs(lua_State *L) {
  fe_lib_arg_any(L, 1);
  fe_lib_no_dev(L, "ipairs", "a device value has no elements; use range(...) or a tile operation");
  lua_pushvalue(L, lua_upvalueindex(2));
  lua_pushvalue(L, 1);
  lua_pushinteger(L, 0);
  return 3;
}

/* ---- raw access ---- */

static int base_rawequal(lua_State *L) {
  fe_lib_arg_any(L, 1);
  fe_lib_arg_any(L, 2);
  if (!lua_isnil(L, 1) && !lua_isnil(L, 2)) /* nil is a plain false, as with == */
    fe_lib_no_dev(L, "rawequal", "compare device values with ==");
  lua_pushboolean(L, lua_rawequal(L, 1, 2));
  return 1;
}

static int base_rawlen(lua_State *L) {
  int type = lua_type(L, 1);
  if (type != LUA_TTABLE && type != LUA_TSTRING)
    fe_lib_type_error(L, 1, "table or string");
  const struct fe_lib_host *host = fe_lib_of(L);
  lua_Integer n = (lua_Integer)lua_rawlen(L, 1);
  if (type == LUA_TTABLE && n > 0 && lua_rawgeti(L, 1, n) == LUA_TLIGHTUSERDATA)
    host->did_len(host->user, L, lua_gettop(L));
  lua_pushinteger(L, n);
  return 1;
}

static int base_rawget(lua_State *L) {
  const struct fe_lib_host *host = fe_lib_of(L);
  fe_lib_arg_type(L, 1, LUA_TTABLE);
  fe_lib_arg_any(L, 2);
  lua_settop(L, 2);
  fe_lib_check_key(L, host, 2);
  lua_pushvalue(L, 2);
  if (lua_rawget(L, 1) == LUA_TLIGHTUSERDATA)
    host->did_read(host->user, L, 3, 1, 2);
  return 1;
}

static int base_rawset(lua_State *L) {
  const struct fe_lib_host *host = fe_lib_of(L);
  fe_lib_arg_type(L, 1, LUA_TTABLE);
  fe_lib_arg_any(L, 2);
  fe_lib_arg_any(L, 3);
  lua_settop(L, 3);
  fe_lib_check_key(L, host, 2);
  host->will_write(host->user, L, 1, 2);
  lua_rawset(L, 1);
  return 1;
}

/* ---- metatables ---- */

static int base_getmetatable(lua_State *L) {
  fe_lib_arg_any(L, 1);
  /* All device values share one metatable, which is the evaluator's. */
  if (fe_lib_is_dev(L, 1) || !lua_getmetatable(L, 1)) {
    lua_pushnil(L);
    return 1;
  }
  luaL_getmetafield(L, 1, "__metatable");
  return 1;
}

static int base_setmetatable(lua_State *L) {
  const struct fe_lib_host *host = fe_lib_of(L);
  int type = lua_type(L, 2);
  fe_lib_arg_type(L, 1, LUA_TTABLE);
  if (type != LUA_TNIL && type != LUA_TTABLE)
    fe_lib_type_error(L, 2, "nil or table");
  if (luaL_getmetafield(L, 1, "__metatable") != LUA_TNIL)
    return luaL_error(L, "cannot change a protected metatable");
  lua_settop(L, 2);
  if (type == LUA_TTABLE) {
    /* Both would show when the collector runs, which nothing may depend on. */
    static const char *const refused[] = {"__gc", "__mode"};
    for (size_t i = 0; i < 2; i++) {
      lua_pushstring(L, refused[i]);
      if (lua_rawget(L, 2) != LUA_TNIL)
        fe_lib_refuse(L, DIAG_NOT_AVAILABLE, "%s is not available in kernels", refused[i]);
      lua_pop(L, 1);
    }
  }
  host->will_set_meta(host->user, L, 1);
  lua_setmetatable(L, 1);
  return 1;
}

/* ---- errors ---- */

static int base_error(lua_State *L) {
  const struct fe_lib_host *host = fe_lib_of(L);
  lua_Integer level = fe_lib_arg_opt_int(L, 2, 1);
  lua_settop(L, 1);
  if (lua_type(L, 1) != LUA_TSTRING || level < 0)
    level = 0;
  host->raise(host->user, L, level > INT_MAX ? INT_MAX : (int)level);
  return 0;
}

static int base_assert(lua_State *L) {
  const struct fe_lib_host *host = fe_lib_of(L);
  if (fe_lib_is_dev(L, 1))
    return host->dev_assert(host->user, L);
  if (lua_toboolean(L, 1))
    return lua_gettop(L);
  fe_lib_arg_any(L, 1);
  lua_remove(L, 1);
  lua_pushliteral(L, "assertion failed!");
  lua_settop(L, 1);
  host->raise(host->user, L, lua_type(L, 1) == LUA_TSTRING ? 1 : 0);
  return 0;
}

static int finish_protected(lua_State *L, bool ok, int first) {
  if (ok)
    return lua_gettop(L) - (first - 1);
  lua_pushboolean(L, 0);
  lua_insert(L, -2);
  return 2;
}

static int base_pcall(lua_State *L) {
  const struct fe_lib_host *host = fe_lib_of(L);
  fe_lib_arg_any(L, 1);
  lua_pushboolean(L, 1); /* first result if all goes well */
  lua_insert(L, 1);
  bool ok = host->protect(host->user, L, lua_gettop(L) - 2, 0);
  return finish_protected(L, ok, 1);
}

static int base_xpcall(lua_State *L) {
  const struct fe_lib_host *host = fe_lib_of(L);
  int n = lua_gettop(L);
  fe_lib_arg_type(L, 2, LUA_TFUNCTION);
  lua_pushboolean(L, 1);
  lua_pushvalue(L, 1);
  lua_rotate(L, 3, 2); /* function, handler, true, function, arguments */
  bool ok = host->protect(host->user, L, n - 2, 2);
  return finish_protected(L, ok, 3);
}

/* ---- print ---- */

static int base_print(lua_State *L) {
  const struct fe_lib_host *host = fe_lib_of(L);
  int n = lua_gettop(L);
  for (int i = 1; i <= n; i++)
    if (fe_lib_is_dev(L, i))
      return host->dev_print(host->user, L);
  luaL_Buffer line;
  luaL_buffinit(L, &line);
  for (int i = 1; i <= n; i++) {
    if (i > 1)
      luaL_addchar(&line, '\t');
    fe_lib_tostring(L, host, i, NULL);
    luaL_addvalue(&line);
  }
  luaL_pushresult(&line);
  size_t size;
  const char *text = lua_tolstring(L, -1, &size);
  fe_lib_charge(L, fe_lib_byte_steps(size));
  host->print(host->user, L, text, size);
  return 0;
}

/* ---- what is refused ---- */

/* Upvalue 2: the message. */
static int refused(lua_State *L) {
  return fe_lib_refuse(L, DIAG_NOT_AVAILABLE, "%s", lua_tostring(L, lua_upvalueindex(2)));
}

/* __index of a refused library; upvalue 2: the message with a %s for the name. */
static int refused_field(lua_State *L) {
  const char *format = lua_tostring(L, lua_upvalueindex(2));
  const char *name = luaL_tolstring(L, 2, NULL);
  luaL_gsub(L, format, "%s", name);
  return fe_lib_refuse(L, DIAG_NOT_AVAILABLE, "%s", lua_tostring(L, -1));
}

void fe_lib_add_refused(lua_State *L, const struct fe_lib_host *host, const char *name,
                        const char *message) {
  lua_pushlightuserdata(L, (void *)(uintptr_t)host);
  lua_pushstring(L, message);
  lua_pushcclosure(L, refused, 2);
  lua_setfield(L, -2, name);
}

static void add_refused_library(lua_State *L, const struct fe_lib_host *host, const char *name,
                                const char *message) {
  lua_newtable(L);
  lua_createtable(L, 0, 2);
  lua_pushlightuserdata(L, (void *)(uintptr_t)host);
  lua_pushstring(L, message);
  lua_pushcclosure(L, refused_field, 2);
  lua_setfield(L, -2, "__index");
  lua_pushboolean(L, 0);
  lua_setfield(L, -2, "__metatable");
  lua_setmetatable(L, -2);
  lua_setfield(L, -2, name);
}

void fe_lib_add_base(lua_State *L, const struct fe_lib_host *host) {
  static const luaL_Reg functions[] = {
      {"assert", base_assert},
      {"error", base_error},
      {"getmetatable", base_getmetatable},
      {"pcall", base_pcall},
      {"print", base_print},
      {"rawequal", base_rawequal},
      {"rawget", base_rawget},
      {"rawlen", base_rawlen},
      {"rawset", base_rawset},
      {"select", base_select},
      {"setmetatable", base_setmetatable},
      {"tonumber", base_tonumber},
      {"tostring", base_tostring},
      {"type", base_type},
      {"xpcall", base_xpcall},
      {NULL, NULL},
  };
  fe_lib_register(L, host, functions);
  lua_pushlightuserdata(L, (void *)(uintptr_t)host);
  lua_pushlightuserdata(L, (void *)(uintptr_t)host);
  lua_pushcclosure(L, ipairs_step, 1);
  lua_pushcclosure(L, base_ipairs, 2);
  lua_setfield(L, -2, "ipairs");

  static const char text_is_code[] =
      "%s is not available in kernels: code comes from files; use require";
  static const char *const loaders[] = {"load", "loadstring", "loadfile", "dofile"};
  for (size_t i = 0; i < sizeof loaders / sizeof *loaders; i++) {
    const char *message = luaL_gsub(L, text_is_code, "%s", loaders[i]);
    lua_insert(L, -2);
    fe_lib_add_refused(L, host, loaders[i], message);
    lua_remove(L, -2);
  }
  fe_lib_add_refused(L, host, "collectgarbage", "collectgarbage is not available in kernels");
  fe_lib_add_refused(L, host, "warn", "warn is not available in kernels; use print");
  add_refused_library(L, host, "coroutine",
                      "coroutines are not available in kernels (coroutine.%s)");
  add_refused_library(L, host, "package", "package.%s is not available in kernels; use require");
  static const char outside[] =
      "is not available in kernels: they reach nothing outside themselves";
  static const char *const reaching[] = {"io", "os", "debug"};
  for (size_t i = 0; i < sizeof reaching / sizeof *reaching; i++) {
    const char *message = lua_pushfstring(L, "%s.%%s %s", reaching[i], outside);
    lua_insert(L, -2);
    add_refused_library(L, host, reaching[i], message);
    lua_remove(L, -2);
  }
}
