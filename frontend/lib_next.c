/* Iteration in sorted key order: numbers, then strings bytewise, then false and true.
 *
 * Stock Lua's order depends on addresses and a hash seed; a kernel must trace the same way each
 * time, so keys of other types, which have no order of their own, are an error here.
 *
 * `pairs` sorts the keys once and returns a function that takes the key before, like `next`: what
 * it keeps is the (immutable) list and a hint where that key is, so a discarded pass of a device
 * region cannot disturb it. `next` alone finds its place again each time; a loop over it finds the
 * sorted list of its table, kept from the call before. As in stock Lua, fields may be assigned and
 * removed on the way; a field that is added may be missed. */
#include "frontend/lib.h"

#include <math.h>
#include <string.h>

enum key_kind { KEY_INT, KEY_FLOAT, KEY_STRING, KEY_BOOL, KEY_NONE };

struct key {
  enum key_kind kind;
  int64_t i; /* also the boolean */
  double f;
  const char *s; /* the Lua string's own bytes: alive as long as the table has the key */
  size_t n;
};

/* KEY_NONE for what has no order. */
static struct key key_at(lua_State *L, int idx) {
  struct key k = {.kind = KEY_NONE};
  switch (lua_type(L, idx)) {
  case LUA_TNUMBER:
    k.kind = lua_isinteger(L, idx) ? KEY_INT : KEY_FLOAT;
    if (k.kind == KEY_INT) {
      k.i = lua_tointeger(L, idx);
    } else {
      k.f = lua_tonumber(L, idx);
      int exact;
      lua_Integer i = lua_tointegerx(L, idx, &exact);
      if (exact) { /* 2.0 is key 2 */
        k.kind = KEY_INT;
        k.i = i;
      } else if (isnan(k.f)) {
        k.kind = KEY_NONE;
      }
    }
    break;
  case LUA_TSTRING:
    k.kind = KEY_STRING;
    k.s = lua_tolstring(L, idx, &k.n);
    break;
  case LUA_TBOOLEAN:
    k.kind = KEY_BOOL;
    k.i = lua_toboolean(L, idx);
    break;
  default: break;
  }
  return k;
}

/* An integer beside a float that is no integer: never equal. */
static int compare_int_float(int64_t i, double f) {
  if (f >= 9223372036854775808.0)
    return -1;
  if (f < -9223372036854775808.0)
    return 1;
  return i <= (int64_t)floor(f) ? -1 : 1;
}

static int compare(const struct key *a, const struct key *b) {
  if (a->kind == KEY_INT && b->kind == KEY_FLOAT)
    return compare_int_float(a->i, b->f);
  if (a->kind == KEY_FLOAT && b->kind == KEY_INT)
    return -compare_int_float(b->i, a->f);
  if (a->kind != b->kind)
    return a->kind < b->kind ? -1 : 1;
  switch (a->kind) {
  case KEY_INT:
  case KEY_BOOL: return a->i < b->i ? -1 : a->i > b->i;
  case KEY_FLOAT: return a->f < b->f ? -1 : a->f > b->f;
  case KEY_STRING: {
    size_t n = a->n < b->n ? a->n : b->n;
    int c = memcmp(a->s, b->s, n);
    return c ? c : a->n < b->n ? -1 : a->n > b->n;
  }
  case KEY_NONE: break;
  }
  return 0;
}

/* The key at idx, which is one of a table's; raises if it has no order. */
static struct key table_key(lua_State *L, int idx) {
  struct key k = key_at(L, idx);
  if (k.kind == KEY_NONE)
    luaL_error(L,
               "cannot iterate over a table with a %s as a key: only numbers, strings and booleans "
               "have an order",
               luaL_typename(L, idx));
  return k;
}

static void merge(const struct key *from, struct key *to, size_t lo, size_t mid, size_t hi) {
  for (size_t i = lo, j = mid, k = lo; k < hi; k++)
    to[k] = j >= hi || (i < mid && compare(&from[i], &from[j]) <= 0) ? from[i++] : from[j++];
}

static void push_key(lua_State *L, const struct key *k) {
  switch (k->kind) {
  case KEY_INT: lua_pushinteger(L, k->i); break;
  case KEY_FLOAT: lua_pushnumber(L, k->f); break;
  case KEY_STRING: lua_pushlstring(L, k->s, k->n); break;
  case KEY_BOOL: lua_pushboolean(L, (int)k->i); break;
  case KEY_NONE: lua_pushnil(L); break;
  }
}

/* Counts the keys of a table; *is_list: they are 1 ... n. */
static size_t count_keys(lua_State *L, int table, bool *is_list) {
  size_t n = 0;
  *is_list = true;
  for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
    n++;
    *is_list = *is_list && lua_isinteger(L, -2) && lua_tointeger(L, -2) == (lua_Integer)n;
  }
  return n;
}

/* Pushes the sorted keys of the table at idx: a list, or the number n for 1 ... n. The collector
 * may be stopped: what is needed on the way is freed at once. */
static void push_sorted_keys(lua_State *L, int table) {
  bool sorted;
  size_t n = count_keys(L, table, &sorted);
  fe_lib_charge(L, 1 + n);
  if (sorted) {
    lua_pushinteger(L, (lua_Integer)n);
    return;
  }
  lua_createtable(L, (int)n, 0);
  int list = lua_gettop(L);
  luaL_Buffer memory;
  struct key *keys = (struct key *)(void *)luaL_buffinitsize(L, &memory, 2 * n * sizeof *keys);
  size_t at = 0;
  sorted = true;
  for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1), at++) {
    keys[at] = table_key(L, -2);
    sorted = sorted && (at == 0 || compare(&keys[at - 1], &keys[at]) < 0);
  }
  struct key *from = keys, *to = keys + n;
  for (size_t width = 1; !sorted && width < n; width *= 2) {
    fe_lib_charge(L, n);
    for (size_t lo = 0; lo < n; lo += 2 * width) {
      size_t mid = lo + width < n ? lo + width : n;
      merge(from, to, lo, mid, mid + width < n ? mid + width : n);
    }
    struct key *swap = from;
    from = to;
    to = swap;
  }
  for (size_t i = 0; i < n; i++) {
    push_key(L, &from[i]);
    lua_rawseti(L, list, (lua_Integer)i + 1);
  }
  luaL_pushresultsize(&memory, 0);
  lua_pop(L, 1);
}

/* Pushes key i of sorted keys, from 1; nil after the last one. */
static void push_key_at(lua_State *L, int keys, lua_Integer i) {
  if (lua_istable(L, keys))
    lua_rawgeti(L, keys, i);
  else if (i <= lua_tointeger(L, keys))
    lua_pushinteger(L, i);
  else
    lua_pushnil(L);
}

/* Pushes the first key after *hint that the table has, and its value, and moves the hint there;
 * returns 2. With none left, pushes nil; returns 1. */
static int push_next(lua_State *L, int table, int keys, lua_Integer *hint) {
  const struct fe_lib_host *host = fe_lib_of(L);
  for (;;) {
    ++*hint;
    fe_lib_charge(L, 1);
    push_key_at(L, keys, *hint);
    if (lua_isnil(L, -1))
      return 1;
    lua_pushvalue(L, -1);
    int type = lua_rawget(L, table);
    if (type == LUA_TLIGHTUSERDATA)
      host->did_read(host->user, L, lua_gettop(L), table, lua_gettop(L) - 1);
    if (type != LUA_TNIL)
      return 2;
    lua_pop(L, 2); /* removed since */
  }
}

/* The position in the sorted keys of the key at idx, or of the last one before it; `hint` is tried
 * first. */
static lua_Integer find_key(lua_State *L, int keys, int idx, lua_Integer hint) {
  if (lua_isnil(L, idx))
    return 0;
  if (hint > 0) {
    push_key_at(L, keys, hint);
    bool same = lua_rawequal(L, -1, idx);
    lua_pop(L, 1);
    if (same)
      return hint;
  }
  struct key want = key_at(L, idx);
  if (want.kind == KEY_NONE)
    luaL_error(L, "invalid key to 'next'");
  lua_Integer lo = 0;
  lua_Integer hi = lua_istable(L, keys) ? (lua_Integer)lua_rawlen(L, keys) : lua_tointeger(L, keys);
  while (lo < hi) { /* keys[lo] <= want < keys[hi + 1] */
    lua_Integer mid = lo + (hi - lo + 1) / 2;
    push_key_at(L, keys, mid);
    struct key k = key_at(L, -1);
    bool after = compare(&k, &want) > 0;
    lua_pop(L, 1);
    if (after)
      hi = mid - 1;
    else
      lo = mid;
  }
  return lo;
}

/* What pairs returns: upvalues 2 the sorted keys, 3 the hint, 4 the table. */
static int pairs_step(lua_State *L) {
  lua_settop(L, 2);
  lua_Integer hint = lua_tointeger(L, lua_upvalueindex(3));
  hint = find_key(L, lua_upvalueindex(2), 2, hint);
  lua_pushvalue(L, lua_upvalueindex(4));
  int n = push_next(L, 3, lua_upvalueindex(2), &hint);
  lua_pushinteger(L, hint);
  lua_replace(L, lua_upvalueindex(3));
  return n;
}

/* Upvalue 2: what pairs of a value that is no table gives, `next`. */
static int base_pairs(lua_State *L) {
  fe_lib_arg_any(L, 1);
  fe_lib_no_dev(L, "pairs", "a device value has no elements; use range(...) or a tile operation");
  if (luaL_getmetafield(L, 1, "__pairs") != LUA_TNIL) {
    lua_pushvalue(L, 1);
    lua_call(L, 1, 3);
    return 3;
  }
  lua_settop(L, 1);
  if (!lua_istable(L, 1)) { /* the first step complains, as in stock Lua */
    lua_pushvalue(L, lua_upvalueindex(2));
  } else {
    lua_pushvalue(L, lua_upvalueindex(1));
    push_sorted_keys(L, 1);
    lua_pushinteger(L, 0);
    lua_pushvalue(L, 1);
    lua_pushcclosure(L, pairs_step, 4);
  }
  lua_pushvalue(L, 1);
  lua_pushnil(L);
  return 3;
}

/* Pushes the smallest key of the table at 1, or nil. */
static void push_first_key(lua_State *L) {
  struct key best = {.kind = KEY_NONE};
  uint64_t n = 1;
  for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1), n++) {
    struct key k = table_key(L, -2);
    if (best.kind == KEY_NONE || compare(&k, &best) < 0)
      best = k;
  }
  fe_lib_charge(L, n);
  push_key(L, &best);
}

/* Upvalues: 2 the table of the call before, 3 the key that it returned, 4 the sorted keys or nil if
 * they were not needed yet, 5 the hint. */
static int base_next(lua_State *L) {
  const struct fe_lib_host *host = fe_lib_of(L);
  fe_lib_arg_type(L, 1, LUA_TTABLE);
  lua_settop(L, 2);
  int results = 1;
  if (lua_isnil(L, 2)) {
    push_first_key(L);
    if (!lua_isnil(L, -1)) {
      results = 2;
      lua_pushvalue(L, -1);
      if (lua_rawget(L, 1) == LUA_TLIGHTUSERDATA)
        host->did_read(host->user, L, 4, 1, 3);
    }
    lua_pushnil(L);
    lua_replace(L, lua_upvalueindex(4));
  } else {
    if (!lua_rawequal(L, 1, lua_upvalueindex(2)) || !lua_rawequal(L, 2, lua_upvalueindex(3)) ||
        lua_isnil(L, lua_upvalueindex(4))) {
      push_sorted_keys(L, 1);
      lua_replace(L, lua_upvalueindex(4));
    }
    lua_Integer hint = lua_tointeger(L, lua_upvalueindex(5));
    hint = find_key(L, lua_upvalueindex(4), 2, hint);
    results = push_next(L, 1, lua_upvalueindex(4), &hint);
    lua_pushinteger(L, hint);
    lua_replace(L, lua_upvalueindex(5));
  }
  /* At the end of a table nothing is kept: the key returned is nil. */
  lua_pushvalue(L, 3);
  lua_replace(L, lua_upvalueindex(3));
  if (results == 2)
    lua_pushvalue(L, 1);
  else
    lua_pushnil(L);
  lua_replace(L, lua_upvalueindex(2));
  return results;
}

void fe_lib_add_next(lua_State *L, const struct fe_lib_host *host) {
  lua_pushlightuserdata(L, (void *)(uintptr_t)host);
  for (int i = 0; i < 4; i++)
    lua_pushnil(L);
  lua_pushcclosure(L, base_next, 5);
  lua_pushlightuserdata(L, (void *)(uintptr_t)host);
  lua_pushvalue(L, -2);
  lua_pushcclosure(L, base_pairs, 2);
  lua_setfield(L, -3, "pairs");
  lua_setfield(L, -2, "next");
}
