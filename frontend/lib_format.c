/* string.format: stock Lua's conversions and messages; `%s` and `%p` of a table or function show
 * its serial number. Widths and precisions have at most two digits, so that one item is bounded. */
#include "frontend/lib.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A whole conversion specification has at most this many bytes after the `%`. */
#define SPEC_MAX 22
/* The longest item: %99.99f of the largest double. */
#define ITEM_MAX 512

struct item {
  char spec[SPEC_MAX + 8]; /* "%5.2f": as printf takes it, with room for a length modifier */
  size_t n;                /* bytes of spec */
  char conversion;
};

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Reads the specification after a `%` at p; returns what follows it. */
static const char *read_item(lua_State *L, const char *p, struct item *item) {
  size_t n = strspn(p, "-+#0 123456789.") + 1; /* with the conversion letter */
  if (n >= SPEC_MAX)
    luaL_error(L, "invalid format (too long)");
  item->spec[0] = '%';
  memcpy(item->spec + 1, p, n);
  item->spec[n + 1] = 0;
  item->n = n + 1;
  item->conversion = p[n - 1];
  return p + n;
}

/* Raises unless the item has only these flags, a width of up to two digits that does not start with
 * 0, and, if allowed, a precision of up to two. */
static void check_item(lua_State *L, const struct item *item, const char *flags, bool precision) {
  const char *p = item->spec + 1;
  p += strspn(p, flags);
  if (*p != '0') {
    for (int i = 0; i < 2 && is_digit(*p); i++)
      p++;
    if (*p == '.' && precision) {
      p++;
      for (int i = 0; i < 2 && is_digit(*p); i++)
        p++;
    }
  }
  if (!is_letter(*p))
    luaL_error(L, "invalid conversion specification: '%s'", item->spec);
}

static void add_quoted(luaL_Buffer *out, const char *s, size_t n) {
  luaL_addchar(out, '"');
  for (size_t i = 0; i < n; i++) {
    char c = s[i];
    if (c == '"' || c == '\\' || c == '\n') {
      luaL_addchar(out, '\\');
      luaL_addchar(out, c);
    } else if ((unsigned char)c < 32 || c == 127) {
      char text[8];
      bool before_digit = i + 1 < n && is_digit(s[i + 1]);
      snprintf(text, sizeof text, before_digit ? "\\%03d" : "\\%d", (unsigned char)c);
      luaL_addstring(out, text);
    } else {
      luaL_addchar(out, c);
    }
  }
  luaL_addchar(out, '"');
}

static void add_number_literal(lua_State *L, luaL_Buffer *out, int arg) {
  char text[64];
  if (lua_isinteger(L, arg)) {
    lua_Integer i = lua_tointeger(L, arg);
    const char *format = i == LUA_MININTEGER ? "0x%llx" : "%lld"; /* has no decimal literal */
    snprintf(text, sizeof text, format, (long long)i);
  } else {
    double x = lua_tonumber(L, arg);
    if (isnan(x))
      strcpy(text, "(0/0)");
    else if (isinf(x))
      strcpy(text, x > 0 ? "1e9999" : "-1e9999");
    else
      snprintf(text, sizeof text, "%a", x);
  }
  luaL_addstring(out, text);
}

/* Adds the argument as a literal that reads back as the same value. */
static void add_literal(lua_State *L, luaL_Buffer *out, int arg) {
  switch (lua_type(L, arg)) {
  case LUA_TSTRING: {
    size_t n;
    const char *s = lua_tolstring(L, arg, &n);
    add_quoted(out, s, n);
    break;
  }
  case LUA_TNUMBER: add_number_literal(L, out, arg); break;
  case LUA_TNIL:
  case LUA_TBOOLEAN:
    luaL_tolstring(L, arg, NULL);
    luaL_addvalue(out);
    break;
  default: fe_lib_arg_error(L, arg, "value has no literal form");
  }
}

static void add_string(lua_State *L, luaL_Buffer *out, int arg, const struct item *item) {
  size_t n;
  const char *s = fe_lib_tostring(L, fe_lib_of(L), arg, &n);
  if (item->spec[2] == 0) {
    luaL_addvalue(out);
    return;
  }
  if (n != strlen(s))
    fe_lib_arg_error(L, arg, "string contains zeros");
  check_item(L, item, "-", true);
  if (!strchr(item->spec, '.') && n >= 100) { /* no precision, and wider than any width */
    luaL_addvalue(out);
    return;
  }
  char text[ITEM_MAX];
  int size = snprintf(text, sizeof text, item->spec, s);
  lua_pop(L, 1); /* the buffer wants its own place on top */
  luaL_addlstring(out, text, (size_t)size);
}

/* What lua_topointer would show: a serial number, or "(null)" for plain values. */
static void add_pointer(lua_State *L, luaL_Buffer *out, int arg, struct item *item) {
  check_item(L, item, "-", false);
  item->spec[item->n - 1] = 's';
  const char *s = "(null)";
  bool is_object = lua_topointer(L, arg) && !fe_lib_is_dev(L, arg);
  if (is_object)
    s = fe_lib_push_serial(L, arg);
  char text[ITEM_MAX];
  int size = snprintf(text, sizeof text, item->spec, s);
  if (is_object)
    lua_pop(L, 1);
  luaL_addlstring(out, text, (size_t)size);
}

static void add_item(lua_State *L, luaL_Buffer *out, int arg, struct item *item) {
  char text[ITEM_MAX];
  int size = 0;
  const char *flags = NULL;
  char *letter = item->spec + item->n - 1;
  switch (item->conversion) {
  case 'c':
    check_item(L, item, "-", false);
    size = snprintf(text, sizeof text, item->spec, (int)fe_lib_arg_int(L, arg));
    break;
  case 'd':
  case 'i': flags = "-+0 "; break;
  case 'u': flags = "-0"; break;
  case 'o':
  case 'x':
  case 'X': flags = "-#0"; break;
  case 'a':
  case 'A':
    check_item(L, item, "-+#0 ", true);
    size = snprintf(text, sizeof text, item->spec, fe_lib_arg_num(L, arg));
    break;
  case 'e':
  case 'E':
  case 'f':
  case 'g':
  case 'G': {
    double x = fe_lib_arg_num(L, arg);
    check_item(L, item, "-+#0 ", true);
    size = snprintf(text, sizeof text, item->spec, x);
    break;
  }
  case 'p': add_pointer(L, out, arg, item); return;
  case 'q':
    if (item->spec[2] != 0)
      luaL_error(L, "specifier '%%q' cannot have modifiers");
    add_literal(L, out, arg);
    return;
  case 's': add_string(L, out, arg, item); return;
  default: luaL_error(L, "invalid conversion '%s' to 'format'", item->spec);
  }
  if (flags) {
    lua_Integer i = fe_lib_arg_int(L, arg);
    check_item(L, item, flags, true);
    letter[2] = letter[0];
    letter[0] = letter[1] = 'l';
    letter[3] = 0;
    size = snprintf(text, sizeof text, item->spec, (long long)i);
  }
  luaL_addlstring(out, text, (size_t)size);
}

static int str_format(lua_State *L) {
  int top = lua_gettop(L), arg = 1;
  size_t n;
  const char *p = fe_lib_arg_str(L, 1, &n), *end = p + n;
  fe_lib_charge(L, fe_lib_byte_steps(n));
  luaL_Buffer out;
  luaL_buffinit(L, &out);
  while (p < end) {
    if (*p != '%') {
      luaL_addchar(&out, *p++);
    } else if (*++p == '%') {
      luaL_addchar(&out, *p++);
    } else {
      struct item item;
      if (++arg > top)
        return fe_lib_arg_error(L, arg, "no value");
      p = read_item(L, p, &item);
      fe_lib_charge(L, 1);
      add_item(L, &out, arg, &item);
    }
  }
  luaL_pushresult(&out);
  fe_lib_charge(L, fe_lib_byte_steps((size_t)lua_rawlen(L, -1)));
  return 1;
}

void fe_lib_add_format(lua_State *L, const struct fe_lib_host *host) {
  static const luaL_Reg functions[] = {{"format", str_format}, {NULL, NULL}};
  fe_lib_register(L, host, functions);
}
