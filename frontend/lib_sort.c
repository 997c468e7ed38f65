/* table.sort: quicksort in place with the median of three, as stock Lua orders and checks it, so
 * that elements which compare equal end where they do there. Stock Lua takes a random pivot for
 * badly split large arrays; here the pivot follows from the sizes.
 *
 * Comparisons with a comparator that is not a strict order may run out of the array: "invalid order
 * function for sorting". */
#include "frontend/lib.h"

#include <limits.h>

/* Below this many elements the pivot is always the middle one; otherwise it is until a split was
 * bad. */
#define MIDDLE_MAX 100

struct sorter {
  lua_State *L;
  const struct fe_lib_host *host;
  bool has_function; /* at stack index 2; the table is at 1 */
};

/* Pushes element i. */
static void get(const struct sorter *s, lua_Integer i) {
  lua_pushinteger(s->L, i);
  fe_lib_get(s->L, s->host, 1);
}

/* Element i = the value on top. */
static void set(const struct sorter *s, lua_Integer i) {
  lua_pushinteger(s->L, i);
  lua_insert(s->L, -2);
  fe_lib_set(s->L, s->host, 1);
}

/* Is the value at a to come before the one at b? */
static bool before(const struct sorter *s, int a, int b) {
  lua_State *L = s->L;
  a = lua_absindex(L, a);
  b = lua_absindex(L, b);
  s->host->charge(s->host->user, L, 1);
  if (s->has_function) {
    lua_pushvalue(L, 2);
    lua_pushvalue(L, a);
    lua_pushvalue(L, b);
    lua_call(L, 2, 1);
    if (fe_lib_is_dev(L, -1)) {
      fe_lib_refuse(L, DIAG_STAGE_OPERAND, "table.sort: the comparison gave %s",
                    fe_lib_dev_name(L, s->host, lua_gettop(L)));
    }
    bool result = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return result;
  }
  int type = lua_type(L, a);
  if (type == lua_type(L, b) && (type == LUA_TNUMBER || type == LUA_TSTRING))
    return lua_compare(L, a, b, LUA_OPLT);
  for (int i = a;; i = b) { /* elements that are errors already */
    if (fe_lib_is_dev(L, i))
      s->host->will_refuse(s->host->user, L, i);
    if (i == b)
      break;
  }
  return s->host->less(s->host->user, L, a, b, "table.sort");
}

/* Swaps elements i and j, whose values are on top in this order, if the second is to come before
 * the first. Pops both. */
static void order(const struct sorter *s, lua_Integer i, lua_Integer j) {
  if (before(s, -1, -2)) {
    set(s, i);
    set(s, j);
  } else {
    lua_pop(s->L, 2);
  }
}

/* lo and up are in order with the pivot, which is at up - 1 and on top of the stack (popped).
 * Returns where the pivot ends up: what is left of it is not after it, what is right not before. */
static lua_Integer partition(const struct sorter *s, lua_Integer lo, lua_Integer up) {
  lua_State *L = s->L;
  int pivot = lua_gettop(L);
  lua_Integer i = lo, j = up - 1;
  for (;;) {
    while (get(s, ++i), before(s, -1, pivot)) {
      if (i == up - 1)
        luaL_error(L, "invalid order function for sorting");
      lua_pop(L, 1);
    }
    while (get(s, --j), before(s, pivot, -1)) {
      if (j < i)
        luaL_error(L, "invalid order function for sorting");
      lua_pop(L, 1);
    }
    if (j < i) {
      lua_pop(L, 1);
      set(s, up - 1); /* element i and the pivot change places */
      set(s, i);
      return i;
    }
    set(s, i);
    set(s, j);
  }
}

static lua_Integer choose_pivot(lua_Integer lo, lua_Integer up, lua_Unsigned seed) {
  if (up - lo < MIDDLE_MAX || seed == 0)
    return (lo + up) / 2;
  lua_Unsigned quarter = (lua_Unsigned)(up - lo) / 4;
  return (lua_Integer)(seed % (quarter * 2)) + lo + (lua_Integer)quarter;
}

static void sort_range(const struct sorter *s, lua_Integer lo, lua_Integer up, lua_Unsigned seed) {
  lua_State *L = s->L;
  while (lo < up) {
    fe_lib_need_stack(L, 16, "table.sort");
    get(s, lo);
    get(s, up);
    order(s, lo, up);
    if (up - lo == 1)
      return;
    lua_Integer p = choose_pivot(lo, up, seed);
    get(s, p);
    get(s, lo);
    if (before(s, -2, -1)) {
      set(s, p);
      set(s, lo);
    } else {
      lua_pop(L, 1);
      get(s, up);
      order(s, p, up);
    }
    if (up - lo == 2)
      return;
    get(s, p);
    lua_pushvalue(L, -1);
    get(s, up - 1); /* pivot, pivot, element up - 1: they change places */
    set(s, p);
    set(s, up - 1);
    p = partition(s, lo, up);
    lua_Integer n;
    if (p - lo < up - p) { /* the smaller part first: the depth stays logarithmic */
      sort_range(s, lo, p - 1, seed);
      n = p - lo;
      lo = p + 1;
    } else {
      sort_range(s, p + 1, up, seed);
      n = up - p;
      up = p - 1;
    }
    if ((up - lo) / 128 > n)
      seed = seed * 6364136223846793005u + 1442695040888963407u;
  }
}

static int tab_sort(lua_State *L) {
  struct sorter s = {.L = L, .host = fe_lib_of(L)};
  fe_lib_arg_table(L, 1, FE_LIB_READS | FE_LIB_WRITES | FE_LIB_HAS_LEN);
  lua_Integer n = fe_lib_len(L, s.host, 1);
  if (n > 1) {
    if (n >= INT_MAX)
      fe_lib_arg_error(L, 1, "array too big");
    if (!lua_isnoneornil(L, 2))
      fe_lib_arg_type(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    s.has_function = !lua_isnil(L, 2);
    sort_range(&s, 1, n, 0);
  }
  return 0;
}

void fe_lib_add_sort(lua_State *L, const struct fe_lib_host *host) {
  static const luaL_Reg functions[] = {{"sort", tab_sort}, {NULL, NULL}};
  fe_lib_register(L, host, functions);
}
