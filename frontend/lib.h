/* The sandbox library of kernel Lua: what a kernel file finds in its globals.
 *
 * Plain values behave as in stock Lua 5.4, messages included. What differs, and why:
 *   - functions that can run long are ours and charge the step counter (`charge`);
 *   - every write to a table goes through `will_write` / `will_set_meta`, so that a discarded pass
 *     of a device region leaves no trace; a table made here is announced with `born`;
 *   - `pairs` and `next` go in sorted key order, `tostring` of a table or function shows a serial
 *     number: nothing depends on a hash seed or an address;
 *   - a device value (a light userdata) is refused where a plain value is needed;
 *   - what hides state or reaches outside (coroutines, io, os, debug, load, random) is refused.
 *
 * The library knows the evaluator only as a `fe_lib_host`: a table of functions, kept as a light
 * userdata in upvalue 1 of every library function. Tests put it into a stock lua_State that way. */
#ifndef KILN_FRONTEND_LIB_H
#define KILN_FRONTEND_LIB_H

#include "base/diag.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <stdbool.h>
#include <stdint.h>

/* How the running C function was called. name NULL: not known. method: as `x:name(...)`. */
struct fe_lib_site {
  const char *name;
  bool method;
};

/* Every function may raise a Lua error unless it says otherwise. `idx`, `table`, ... are absolute
 * stack indices. Functions leave the stack as they found it unless they say otherwise. */
struct fe_lib_host {
  void *user;

  /* Adds to the step counter; raises when the limit is passed. */
  void (*charge)(void *user, lua_State *L, uint64_t steps);
  /* Fills in how the running library function was called; leaves name NULL if that is not known. */
  void (*site)(void *user, lua_State *L, struct fe_lib_site *out);
  /* Raises the error value on top of the stack, as error(value, level) does: a string gets the
   * position of `level` in front (0: none). Does not return. */
  void (*raise)(void *user, lua_State *L, int level);
  /* Reports a Kiln diagnostic: pcall does not catch it. Does not return. */
  void (*refuse)(void *user, lua_State *L, enum diag_id id, const char *message);

  /* Is there room for n more values on the stack? Raises if there is no memory for it. */
  bool (*has_stack)(void *user, lua_State *L, int n);

  /* Before table[key] is changed with a raw write; before the metatable is. */
  void (*will_write)(void *user, lua_State *L, int table, int key);
  void (*will_set_meta)(void *user, lua_State *L, int table);
  /* The table at idx was just made. */
  void (*born)(void *user, lua_State *L, int idx);
  /* A light userdata at `value` was just read from table[key]: raises if it stands for a value that
   * is not defined here. */
  void (*did_read)(void *user, lua_State *L, int value, int table, int key);
  /* The last element of a list whose length is asked for is the light userdata at `value`: raises
   * if it stands for a value that is not defined here, for then the length is not either. */
  void (*did_len)(void *user, lua_State *L, int value);
  /* Before a message about the device value at idx: ends the run quietly if it is the result of an
   * error that was reported already. */
  void (*will_refuse)(void *user, lua_State *L, int idx);

  /* "tile", "scalar", "view", ...: what type() says of a device value. A constant text. */
  const char *(*dev_type)(void *user, lua_State *L, int idx);
  /* Pushes dtype and shape of a device value ("f32(4)", "index") and returns that string. */
  const char *(*dev_name)(void *user, lua_State *L, int idx);
  /* assert() with a device condition, print() with at least one device value among the arguments;
   * the arguments are the whole stack. They return the number of results they pushed. */
  int (*dev_assert)(void *user, lua_State *L);
  int (*dev_print)(void *user, lua_State *L);

  /* One line of print(), without its newline. */
  void (*print)(void *user, lua_State *L, const char *text, size_t n);
  /* a < b for values that are not both numbers and not both strings, with __lt, for a library
   * function ("table.sort"). */
  bool (*less)(void *user, lua_State *L, int a, int b, const char *function);
  /* Like lua_pcall with LUA_MULTRET: the function and nargs arguments are on top, handler is a
   * stack index or 0. true: results are there. false: the error value is there. Raises what pcall
   * must not catch. */
  bool (*protect)(void *user, lua_State *L, int nargs, int handler);

  /* Finds module file `path` ("a/b.lua", checked to be relative and without "..") under the kernel
   * root. true: pushes its text. false: pushes why it cannot be read, or nil if there is none. */
  bool (*read_module)(void *user, lua_State *L, const char *path);
  /* Turns the text at idx into a function and pushes it; raises on a syntax error. */
  void (*load_module)(void *user, lua_State *L, const char *path, int idx);
};

/* Puts the library into the globals of L. `host` must outlive L. */
void fe_lib_open(lua_State *L, const struct fe_lib_host *host);

/* ---- for the evaluator and the DSL ---- */

/* tostring(value at idx): pushes it and returns it. Raises if __tostring gives no string. */
const char *fe_lib_tostring(lua_State *L, const struct fe_lib_host *host, int idx, size_t *n);
/* #value for a table or string, through __len; raises as stock Lua does when the length is no
 * integer, and when the last element is not defined here. */
lua_Integer fe_lib_len(lua_State *L, const struct fe_lib_host *host, int idx);
/* table[key] = value with key and value on top (both popped): journalled, through __newindex.
 * `table` may be any value, as for lua_settable. */
void fe_lib_set(lua_State *L, const struct fe_lib_host *host, int table);
/* Pushes table[key] for the key on top (replaced), through __index; checked to be defined. */
void fe_lib_get(lua_State *L, const struct fe_lib_host *host, int table);

/* ---- argument checks: stock Lua's messages, device values named by dtype and shape ---- */

static inline bool fe_lib_is_dev(lua_State *L, int idx) {
  return lua_type(L, idx) == LUA_TLIGHTUSERDATA;
}
static inline const struct fe_lib_host *fe_lib_of(lua_State *L) {
  return lua_touserdata(L, lua_upvalueindex(1));
}
static inline void fe_lib_need_stack(lua_State *L, int n, const char *what) {
  const struct fe_lib_host *host = fe_lib_of(L);
  if (!host->has_stack(host->user, L, n))
    luaL_error(L, "stack overflow (%s)", what);
}
static inline void fe_lib_charge(lua_State *L, uint64_t steps) {
  const struct fe_lib_host *host = fe_lib_of(L);
  host->charge(host->user, L, steps);
}
/* Steps for moving n bytes: what a step costs elsewhere, about. */
static inline uint64_t fe_lib_byte_steps(size_t n) {
  return 1 + n / 16;
}

int fe_lib_arg_error(lua_State *L, int arg, const char *message);
int fe_lib_type_error(lua_State *L, int arg, const char *expected);
void fe_lib_arg_any(lua_State *L, int arg);
void fe_lib_arg_type(lua_State *L, int arg, int type);
/* A table, or what has the metamethods to act as one. needs: FE_LIB_READS | ... */
enum { FE_LIB_READS = 1, FE_LIB_WRITES = 2, FE_LIB_HAS_LEN = 4 };
void fe_lib_arg_table(lua_State *L, int arg, int needs);
lua_Integer fe_lib_arg_int(lua_State *L, int arg);
lua_Integer fe_lib_arg_opt_int(lua_State *L, int arg, lua_Integer def);
lua_Number fe_lib_arg_num(lua_State *L, int arg);
const char *fe_lib_arg_str(lua_State *L, int arg, size_t *n);
const char *fe_lib_arg_opt_str(lua_State *L, int arg, const char *def, size_t *n);
/* Pushes dtype and shape of the device value at idx, for a message about it. */
const char *fe_lib_dev_name(lua_State *L, const struct fe_lib_host *host, int idx);
/* The name of a value's type as messages show it: __name, or dtype and shape of a device value.
 * Pushes one value, which keeps the text alive. */
const char *fe_lib_type_name(lua_State *L, const struct fe_lib_host *host, int idx);
/* Raises a diagnostic that pcall does not catch. */
int fe_lib_refuse(lua_State *L, enum diag_id id, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Raises if an argument is a device value: "string.pack of f32(4): <advice>". */
void fe_lib_no_dev(lua_State *L, const char *function, const char *advice);
/* Raises if the value at `key` is a device value. */
void fe_lib_check_key(lua_State *L, const struct fe_lib_host *host, int key);
/* Adds stock functions to the table on top: those that neither run long nor take device values.
 * `open` is a luaopen_ function, `names` ends with NULL. */
void fe_lib_add_stock(lua_State *L, const struct fe_lib_host *host, lua_CFunction open,
                      const char *library, const char *const *names);
/* Registers {name, function} pairs in the table on top, each with the host as upvalue 1. */
void fe_lib_register(lua_State *L, const struct fe_lib_host *host, const luaL_Reg *list);
/* Adds a function that only refuses: "load is not available in kernels". */
void fe_lib_add_refused(lua_State *L, const struct fe_lib_host *host, const char *name,
                        const char *message);

/* lib_base.c, lib_next.c, lib_string.c, lib_pattern.c, lib_format.c, lib_table.c, lib_sort.c,
 * lib_math.c, lib_require.c: each fills the table on top. */
void fe_lib_add_base(lua_State *L, const struct fe_lib_host *host);
void fe_lib_add_next(lua_State *L, const struct fe_lib_host *host);
void fe_lib_add_string(lua_State *L, const struct fe_lib_host *host);
void fe_lib_add_pattern(lua_State *L, const struct fe_lib_host *host);
void fe_lib_add_table(lua_State *L, const struct fe_lib_host *host);
void fe_lib_add_sort(lua_State *L, const struct fe_lib_host *host);
void fe_lib_add_math(lua_State *L, const struct fe_lib_host *host);
void fe_lib_add_utf8(lua_State *L, const struct fe_lib_host *host);
void fe_lib_add_require(lua_State *L, const struct fe_lib_host *host);
void fe_lib_add_format(lua_State *L, const struct fe_lib_host *host);
/* Pushes "0x000000000001": a serial number in place of an address. */
const char *fe_lib_push_serial(lua_State *L, int idx);

#endif
