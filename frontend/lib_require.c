/* require: modules from the kernel root, each loaded once per state.
 *
 * `require "a.b"` is a/b.lua under the root. A name is made of parts of letters, digits, `_` and
 * `-` with dots between: no part can be `..` or empty, so no path leaves the root by its text;
 * symbolic links are checked where files are read. Modules that need each other are an error that
 * shows the circle. */
#include "frontend/lib.h"

#include <string.h>

#define NAME_MAX_BYTES 200

static bool is_part_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

/* Pushes the path of a module, "a/b.lua"; raises if the name is not a proper one. */
static const char *push_path(lua_State *L, const char *name, size_t n) {
  bool ok = n > 0 && n <= NAME_MAX_BYTES && name[n - 1] != '.';
  for (size_t i = 0; ok && i < n; i++)
    ok = is_part_char(name[i]) || (name[i] == '.' && i > 0 && name[i - 1] != '.');
  if (!ok) {
    luaL_error(L,
               "module name '%s' is not allowed: write names of letters, digits, '_' and '-' "
               "with '.' between folders; '/' and '..' are never needed",
               n > NAME_MAX_BYTES ? "(too long)" : name);
  }
  lua_pushfstring(L, "%s.lua", luaL_gsub(L, name, ".", "/"));
  lua_remove(L, -2);
  return lua_tostring(L, -1);
}

/* Raises "a -> b -> a": the list at `loading` from the entry equal to `name` on. */
static void circle_error(lua_State *L, int loading, const char *name) {
  lua_Integer n = (lua_Integer)lua_rawlen(L, loading), i = n;
  for (; i > 1; i--) {
    lua_rawgeti(L, loading, i);
    bool here = strcmp(lua_tostring(L, -1), name) == 0;
    lua_pop(L, 1);
    if (here)
      break;
  }
  luaL_Buffer chain;
  luaL_buffinit(L, &chain);
  for (; i <= n; i++) {
    lua_rawgeti(L, loading, i);
    luaL_addvalue(&chain);
    luaL_addstring(&chain, " -> ");
  }
  luaL_addstring(&chain, name);
  luaL_pushresult(&chain);
  luaL_error(L, "modules require each other in a circle: %s", lua_tostring(L, -1));
}

/* __close of the guard in base_require: the module is loaded, or its loading failed. Upvalue 1: the
 * list of names being loaded. */
static int end_loading(lua_State *L) {
  lua_pushnil(L);
  lua_rawseti(L, lua_upvalueindex(1), (lua_Integer)lua_rawlen(L, lua_upvalueindex(1)));
  return 0;
}

/* Upvalues: 2 what modules gave, by name; 3 names of the modules being loaded, outermost first; 4
 * the metatable of the guard that keeps this list right when a load raises. */
static int base_require(lua_State *L) {
  const struct fe_lib_host *host = fe_lib_of(L);
  size_t n;
  const char *name = fe_lib_arg_str(L, 1, &n);
  lua_settop(L, 1);
  const char *path = push_path(L, name, n); /* 2 */
  lua_pushvalue(L, lua_upvalueindex(2));    /* 3 */
  lua_pushvalue(L, lua_upvalueindex(3));    /* 4 */
  lua_getfield(L, 3, name);
  if (!lua_isnil(L, -1)) {
    lua_pushvalue(L, 2);
    return 2;
  }
  lua_pop(L, 1);
  lua_Integer depth = (lua_Integer)lua_rawlen(L, 4);
  for (lua_Integer i = 1; i <= depth; i++) {
    lua_rawgeti(L, 4, i);
    if (lua_rawequal(L, -1, 1))
      circle_error(L, 4, name);
    lua_pop(L, 1);
  }
  if (!host->read_module(host->user, L, path)) {
    if (lua_isnil(L, -1))
      return luaL_error(L, "module '%s' not found: no file '%s' in the kernel root", name, path);
    return luaL_error(L, "module '%s' cannot be read: %s", name, lua_tostring(L, -1));
  }
  fe_lib_charge(L, fe_lib_byte_steps((size_t)lua_rawlen(L, -1)));
  host->load_module(host->user, L, path, 5); /* 6: the function, later what it returned */
  lua_pushvalue(L, 1);
  lua_rawseti(L, 4, depth + 1);
  lua_newtable(L);
  lua_pushvalue(L, lua_upvalueindex(4));
  lua_setmetatable(L, -2);
  lua_replace(L, 5);
  lua_toclose(L, 5);
  lua_pushvalue(L, 1);
  lua_pushvalue(L, 2);
  lua_call(L, 2, 1);
  if (lua_isnil(L, 6)) {
    lua_pushboolean(L, 1);
    lua_replace(L, 6);
  }
  lua_pushvalue(L, 6);
  lua_setfield(L, 3, name);
  lua_pushvalue(L, 2);
  return 2;
}

void fe_lib_add_require(lua_State *L, const struct fe_lib_host *host) {
  lua_pushlightuserdata(L, (void *)(uintptr_t)host);
  lua_newtable(L);
  lua_newtable(L);
  lua_newtable(L);
  lua_pushvalue(L, -2);
  lua_pushcclosure(L, end_loading, 1);
  lua_setfield(L, -2, "__close");
  lua_pushcclosure(L, base_require, 4);
  lua_setfield(L, -2, "require");
}
