/* Strings, without patterns and format: slices, repetition, case, bytes; packing, UTF-8 and the
 * arithmetic of strings are stock Lua's. Letters are ASCII's, whatever the locale. */
#include "frontend/lib.h"

#include <limits.h>
#include <string.h>

/* Results of rep and slices are bounded as in stock Lua. */
#define RESULT_MAX ((size_t)INT_MAX)

/* A start position (1-based, negative from the end) as a value from 1 on. */
static size_t start_position(lua_Integer pos, size_t n) {
  if (pos > 0)
    return (size_t)pos;
  if (pos == 0 || pos < -(lua_Integer)n)
    return 1;
  return n + (size_t)pos + 1;
}

/* An end position as a value in 0 ... n. */
static size_t end_position(lua_State *L, int arg, lua_Integer def, size_t n) {
  lua_Integer pos = fe_lib_arg_opt_int(L, arg, def);
  if (pos > (lua_Integer)n)
    return n;
  if (pos >= 0)
    return (size_t)pos;
  return pos < -(lua_Integer)n ? 0 : n + (size_t)pos + 1;
}

static int str_len(lua_State *L) {
  size_t n;
  fe_lib_arg_str(L, 1, &n);
  lua_pushinteger(L, (lua_Integer)n);
  return 1;
}

static int str_sub(lua_State *L) {
  size_t n;
  const char *s = fe_lib_arg_str(L, 1, &n);
  size_t from = start_position(fe_lib_arg_int(L, 2), n);
  size_t to = end_position(L, 3, -1, n);
  if (from > to) {
    lua_pushliteral(L, "");
    return 1;
  }
  fe_lib_charge(L, fe_lib_byte_steps(to - from));
  lua_pushlstring(L, s + from - 1, to - from + 1);
  return 1;
}

static char to_upper(char c) {
  return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static int map_bytes(lua_State *L, char (*map)(char)) {
  size_t n;
  const char *s = fe_lib_arg_str(L, 1, &n);
  fe_lib_charge(L, fe_lib_byte_steps(n));
  luaL_Buffer out;
  char *to = luaL_buffinitsize(L, &out, n);
  for (size_t i = 0; i < n; i++)
    to[i] = map(s[i]);
  luaL_pushresultsize(&out, n);
  return 1;
}

static int str_upper(lua_State *L) {
  return map_bytes(L, to_upper);
}

static int str_lower(lua_State *L) {
  return map_bytes(L, to_lower);
}

static int str_reverse(lua_State *L) {
  size_t n;
  const char *s = fe_lib_arg_str(L, 1, &n);
  fe_lib_charge(L, fe_lib_byte_steps(n));
  luaL_Buffer out;
  char *to = luaL_buffinitsize(L, &out, n);
  for (size_t i = 0; i < n; i++)
    to[i] = s[n - 1 - i];
  luaL_pushresultsize(&out, n);
  return 1;
}

static int str_rep(lua_State *L) {
  size_t n, n_sep;
  const char *s = fe_lib_arg_str(L, 1, &n);
  lua_Integer count = fe_lib_arg_int(L, 2);
  const char *sep = fe_lib_arg_opt_str(L, 3, "", &n_sep);
  if (count <= 0 || n + n_sep == 0) {
    lua_pushliteral(L, "");
    return 1;
  }
  if (n + n_sep > RESULT_MAX / (lua_Unsigned)count)
    return luaL_error(L, "resulting string too large");
  size_t unit = n + n_sep, total = unit * (size_t)count - n_sep;
  fe_lib_charge(L, fe_lib_byte_steps(total));
  luaL_Buffer out;
  char *to = luaL_buffinitsize(L, &out, total);
  memcpy(to, s, n);
  size_t done = n;
  if (count > 1) {
    memcpy(to + n, sep, n_sep);
    for (done = unit; done < total;) { /* doubles what is there, always whole units */
      size_t more = done < total - done ? done : total - done;
      memcpy(to + done, to, more);
      done += more;
    }
  }
  luaL_pushresultsize(&out, total);
  return 1;
}

static int str_byte(lua_State *L) {
  size_t n;
  const char *s = fe_lib_arg_str(L, 1, &n);
  lua_Integer first = fe_lib_arg_opt_int(L, 2, 1);
  size_t from = start_position(first, n), to = end_position(L, 3, first, n);
  if (from > to)
    return 0;
  if (to - from >= RESULT_MAX)
    return luaL_error(L, "string slice too long");
  int count = (int)(to - from) + 1;
  fe_lib_charge(L, (uint64_t)count);
  fe_lib_need_stack(L, count, "string slice too long");
  for (size_t i = from - 1; i < to; i++)
    lua_pushinteger(L, (unsigned char)s[i]);
  return count;
}

static int str_char(lua_State *L) {
  int n = lua_gettop(L);
  fe_lib_charge(L, (uint64_t)n);
  luaL_Buffer out;
  char *to = luaL_buffinitsize(L, &out, (size_t)n);
  for (int i = 1; i <= n; i++) {
    lua_Unsigned c = (lua_Unsigned)fe_lib_arg_int(L, i);
    if (c > UCHAR_MAX)
      fe_lib_arg_error(L, i, "value out of range");
    to[i - 1] = (char)(unsigned char)c;
  }
  luaL_pushresultsize(&out, (size_t)n);
  return 1;
}

void fe_lib_add_string(lua_State *L, const struct fe_lib_host *host) {
  static const luaL_Reg functions[] = {
      {"byte", str_byte},       {"char", str_char},   {"len", str_len},
      {"lower", str_lower},     {"rep", str_rep},     {"sub", str_sub},
      {"reverse", str_reverse}, {"upper", str_upper}, {NULL, NULL},
  };
  /* Linear in their arguments, and what they give is bounded by the memory limit. Opening the stock
   * library also makes the metatable of strings, with their arithmetic. */
  static const char *const stock[] = {"pack", "packsize", "unpack", NULL};
  fe_lib_add_stock(L, host, luaopen_string, "string", stock);
  fe_lib_register(L, host, functions);
  fe_lib_add_refused(L, host, "dump",
                     "string.dump is not available in kernels: functions have no bytecode");
  lua_pushliteral(L, "");
  lua_getmetatable(L, -1);
  lua_pushvalue(L, -3);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 2);
}

void fe_lib_add_utf8(lua_State *L, const struct fe_lib_host *host) {
  static const char *const stock[] = {"char", "codepoint", "codes", "len", "offset", NULL};
  fe_lib_add_stock(L, host, luaopen_utf8, "utf8", stock);
  lua_pushlstring(L, "[\0-\x7F\xC2-\xFD][\x80-\xBF]*", 14);
  lua_setfield(L, -2, "charpattern");
}
