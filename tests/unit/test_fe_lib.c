/* The sandbox library in a stock lua_State: programs whose output must be stock Lua's, journalled
 * writes, device values, limits, require, and failing allocations. */
#include "frontend/fe.h"
#include "frontend/lib.h"
#include "help_stock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* A device value of these tests: what its light userdata points at. */
struct fake {
  const char *type, *name;
};
static const struct fake fake_tile = {"tile", "f32(4)"}, fake_index = {"scalar", "index"},
                         fake_mask = {"scalar", "bool"},
                         fake_undefined = {"undefined", "undefined"},
                         fake_unknown = {"unknown", "unknown"};

struct module {
  const char *path, *text;
};

/* One state under test. */
struct box {
  lua_State *L;
  struct fe_lib_host host;
  struct arena arena;
  struct oom_trap trap;
  struct strbuf out;
  uint64_t steps, max_steps;
  const struct module *modules; /* NULL: from HS_FOLDER */
  const char *root;
  size_t memory, max_memory;
  long fail_at; /* the n-th allocation from now fails; 0: none does */
  bool journal; /* writes are logged in registry.journal */
};

/* ---- the host ---- */

static void host_site(void *user, lua_State *L, struct fe_lib_site *out) {
  (void)user;
  lua_Debug ar;
  if (lua_getstack(L, 0, &ar) && lua_getinfo(L, "n", &ar)) {
    out->name = ar.name;
    out->method = strcmp(ar.namewhat, "method") == 0;
  }
}

static void host_raise(void *user, lua_State *L, int level) {
  (void)user;
  if (level > 0) {
    luaL_where(L, level);
    lua_insert(L, -2);
    lua_concat(L, 2);
  }
  lua_error(L);
}

/* Diagnostics pass through pcall: they are marked, and host_protect looks for the mark. */
static void host_refuse(void *user, lua_State *L, enum diag_id id, const char *message) {
  (void)user;
  if (id == DIAG_COUNT)
    lua_pushliteral(L, "\1quiet");
  else
    lua_pushfstring(L, "\1%s %s", diag_code(id), message);
  lua_error(L);
}

static void host_charge(void *user, lua_State *L, uint64_t steps) {
  struct box *b = user;
  b->steps += steps;
  if (b->max_steps && b->steps > b->max_steps)
    host_refuse(user, L, DIAG_STEP_LIMIT, "step limit");
}

/* Appends {table, key, old value or nil} to registry.journal. */
static void host_will_write(void *user, lua_State *L, int table, int key) {
  struct box *b = user;
  if (!b->journal)
    return;
  lua_getfield(L, LUA_REGISTRYINDEX, "journal");
  lua_newtable(L);
  lua_pushvalue(L, table);
  lua_rawseti(L, -2, 1);
  lua_pushvalue(L, key);
  lua_rawseti(L, -2, 2);
  lua_pushvalue(L, key);
  lua_rawget(L, table);
  lua_rawseti(L, -2, 3);
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  lua_pop(L, 1);
}

static void host_will_set_meta(void *user, lua_State *L, int table) {
  struct box *b = user;
  if (!b->journal)
    return;
  lua_getfield(L, LUA_REGISTRYINDEX, "journal");
  lua_newtable(L);
  lua_pushvalue(L, table);
  lua_rawseti(L, -2, 1);
  if (!lua_getmetatable(L, table))
    lua_pushboolean(L, 0);
  lua_rawseti(L, -2, 4);
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  lua_pop(L, 1);
}

static void host_born(void *user, lua_State *L, int idx) {
  (void)user;
  assert_true(lua_istable(L, idx));
  lua_getfield(L, LUA_REGISTRYINDEX, "born");
  if (lua_istable(L, -1)) {
    lua_pushvalue(L, idx);
    lua_pushboolean(L, 1);
    lua_rawset(L, -3);
  }
  lua_pop(L, 1);
}

static void host_did_read(void *user, lua_State *L, int value, int table, int key) {
  assert_true(lua_type(L, value) == LUA_TLIGHTUSERDATA && !lua_isnone(L, table) &&
              !lua_isnone(L, key));
  if (lua_touserdata(L, value) == (const void *)&fake_undefined)
    host_refuse(user, L, DIAG_STAGE_UNDEFINED, "read of an undefined field");
}

static void host_did_len(void *user, lua_State *L, int value) {
  if (lua_touserdata(L, value) == (const void *)&fake_undefined)
    host_refuse(user, L, DIAG_STAGE_UNDEFINED, "read of an undefined field");
}

static void host_will_refuse(void *user, lua_State *L, int idx) {
  if (lua_touserdata(L, idx) == (const void *)&fake_unknown)
    host_refuse(user, L, DIAG_COUNT, "");
}

static const char *host_dev_type(void *user, lua_State *L, int idx) {
  (void)user;
  return ((const struct fake *)lua_touserdata(L, idx))->type;
}

static const char *host_dev_name(void *user, lua_State *L, int idx) {
  (void)user;
  return lua_pushstring(L, ((const struct fake *)lua_touserdata(L, idx))->name);
}

static int host_dev_assert(void *user, lua_State *L) {
  struct box *b = user;
  sb_printf(&b->out, "[assert op, %d arguments]\n", lua_gettop(L));
  return 0;
}

static int host_dev_print(void *user, lua_State *L) {
  struct box *b = user;
  sb_printf(&b->out, "[print op, %d arguments]\n", lua_gettop(L));
  return 0;
}

static void host_print(void *user, lua_State *L, const char *text, size_t n) {
  (void)L;
  struct box *b = user;
  sb_put(&b->out, text, n);
  sb_putc(&b->out, '\n');
}

static bool host_less(void *user, lua_State *L, int a, int b, const char *function) {
  assert_true(strchr(function, '.') != NULL);
  (void)user;
  return lua_compare(L, a, b, LUA_OPLT);
}

static bool host_protect(void *user, lua_State *L, int nargs, int handler) {
  (void)user;
  if (lua_pcall(L, nargs, LUA_MULTRET, handler) == LUA_OK)
    return true;
  if (lua_type(L, -1) == LUA_TSTRING && lua_tostring(L, -1)[0] == 1)
    lua_error(L);
  return false;
}

static bool host_read_module(void *user, lua_State *L, const char *path) {
  struct box *b = user;
  if (b->modules) {
    for (const struct module *m = b->modules; m->path; m++) {
      if (strcmp(m->path, path) == 0) {
        lua_pushstring(L, m->text);
        return true;
      }
    }
    lua_pushnil(L);
    return false;
  }
  struct strbuf text = {.arena = &b->arena};
  const char *error;
  bool ok = fe_read_module(b->root, path, &text, &error);
  if (ok)
    lua_pushlstring(L, sb_str(&text), text.n);
  else
    lua_pushstring(L, error);
  return ok;
}

static void host_load_module(void *user, lua_State *L, const char *path, int idx) {
  (void)user;
  size_t n;
  const char *text = lua_tolstring(L, idx, &n);
  lua_pushfstring(L, "@%s", path);
  int status = luaL_loadbufferx(L, text, n, lua_tostring(L, -1), "t");
  lua_remove(L, -2);
  if (status != LUA_OK)
    lua_error(L);
}

/* ---- states ---- */

static void *box_alloc(void *user, void *p, size_t old_size, size_t new_size) {
  struct box *b = user;
  old_size = p ? old_size : 0;
  if (new_size == 0) {
    free(p);
    b->memory -= old_size;
    return NULL;
  }
  if (new_size > old_size) { /* Lua relies on shrinking */
    if (b->fail_at > 0 && --b->fail_at == 0)
      return NULL;
    if (b->max_memory && b->memory + new_size - old_size > b->max_memory)
      return NULL;
  }
  void *q = realloc(p, new_size);
  if (q)
    b->memory += new_size - old_size;
  return q;
}

static bool host_has_stack(void *user, lua_State *L, int n) {
  (void)user;
  return lua_checkstack(L, n);
}

static void box_init(struct box *b) {
  memset(b, 0, sizeof *b);
  arena_init(&b->arena, &mem_libc, &b->trap);
  b->out.arena = &b->arena;
  b->root = HS_FOLDER;
  b->host = (struct fe_lib_host){
      .user = b,
      .charge = host_charge,
      .site = host_site,
      .raise = host_raise,
      .refuse = host_refuse,
      .has_stack = host_has_stack,
      .will_write = host_will_write,
      .will_set_meta = host_will_set_meta,
      .born = host_born,
      .did_read = host_did_read,
      .did_len = host_did_len,
      .will_refuse = host_will_refuse,
      .dev_type = host_dev_type,
      .dev_name = host_dev_name,
      .dev_assert = host_dev_assert,
      .dev_print = host_dev_print,
      .print = host_print,
      .less = host_less,
      .protect = host_protect,
      .read_module = host_read_module,
      .load_module = host_load_module,
  };
  b->L = lua_newstate(box_alloc, b);
  assert_non_null(b->L);
}

static void box_free(struct box *b) {
  lua_close(b->L);
  assert_int_equal(b->memory, 0);
  arena_free(&b->arena);
}

static int open_library(lua_State *L) {
  fe_lib_open(L, lua_touserdata(L, 1));
  return 0;
}

static void set_fake(lua_State *L, const char *name, const struct fake *fake) {
  lua_pushlightuserdata(L, (void *)(uintptr_t)fake);
  lua_setglobal(L, name);
}

/* With the sandbox library and the globals tile, index, mask, undefined, unknown. */
static void box_open(struct box *b) {
  box_init(b);
  lua_pushcfunction(b->L, open_library);
  lua_pushlightuserdata(b->L, &b->host);
  assert_int_equal(lua_pcall(b->L, 1, 0, 0), LUA_OK);
  set_fake(b->L, "tile", &fake_tile);
  set_fake(b->L, "index", &fake_index);
  set_fake(b->L, "mask", &fake_mask);
  set_fake(b->L, "undefined", &fake_undefined);
  set_fake(b->L, "unknown", &fake_unknown);
}

/* Runs a chunk; its error message goes to the output too. Returns the status. */
static int box_run(struct box *b, const char *name, const char *text, size_t n) {
  int status = luaL_loadbufferx(b->L, text, n, name, "t");
  if (status == LUA_OK)
    status = lua_pcall(b->L, 0, 0, 0);
  if (status != LUA_OK) {
    const char *s = luaL_tolstring(b->L, -1, NULL);
    sb_printf(&b->out, "error: %s\n", s[0] == 1 ? s + 1 : s);
  }
  lua_settop(b->L, 0);
  return status;
}

static void run_text(struct box *b, const char *text) {
  b->out.n = 0;
  box_run(b, "=t", text, strlen(text));
}

static void expect(struct box *b, const char *text, const char *out) {
  run_text(b, text);
  if (strcmp(sb_str(&b->out), out) != 0)
    print_message("%s\n", text);
  assert_string_equal(sb_str(&b->out), out);
}

/* ---- programs ---- */

static void check_program(const char *name) {
  struct box b;
  box_open(&b);
  size_t n;
  char *text = hs_read(&b.arena, name, &n);
  struct strbuf stock = {.arena = &b.arena};
  hs_run_stock(name, text, n, hs_is_exact(), &stock);
  if (!hs_is_exact())
    print_message("%s: messages are not compared: this Lua is not 5.4.4\n", name);
  lua_pushboolean(b.L, hs_is_exact());
  lua_setglobal(b.L, "exact");
  if (box_run(&b, "@program.lua", text, n) != LUA_OK)
    fail_msg("%s with our library: %s", name, sb_str(&b.out));
  hs_compare(name, &stock, &b.out);
  box_free(&b);
}

static void test_programs(void **state) {
  (void)state;
  struct arena a;
  struct oom_trap trap;
  arena_init(&a, &mem_libc, &trap);
  const char *const *names;
  uint32_t n = hs_list(&a, &names);
  assert_true(n > 0);
  for (uint32_t i = 0; i < n; i++)
    check_program(names[i]);
  arena_free(&a);
}

/* ---- iteration order, names of objects ---- */

static void test_sorted_order(void **state) {
  (void)state;
  struct box b;
  box_open(&b);
  expect(
      &b,
      "local t = {b = 1, [true] = 2, a = 3, [2] = 4, [-1.5] = 5, aa = 6, ['a\\0'] = 7, "
      "[1e300] = 8, [math.maxinteger] = 9, [2^63] = 10, [-1/0] = 11, [1] = 12, [''] = 13, "
      "[false] = 14, ['\\200'] = 15, [math.mininteger] = 16, [-2^64] = 17}\n"
      "local out = {} for k, v in pairs(t) do out[#out + 1] = v end print(table.concat(out, ' '))\n"
      "out = {} for k, v in next, t do out[#out + 1] = v end print(table.concat(out, ' '))\n"
      "print(next(t), next(t, 2), next(t, true))",
      "11 17 16 5 12 4 9 10 8 13 3 7 6 1 15 14 2\n"
      "11 17 16 5 12 4 9 10 8 13 3 7 6 1 15 14 2\n"
      "-inf\t9223372036854775807\tnil\n");
  /* A thousand keys, inserted in an order that no hash table would give back. */
  expect(
      &b,
      "local t, x = {}, 7 for i = 1, 1000 do x = (x * 1103515245 + 12345) % 2147483648 t['k' .. x] = i t[x] = i end\n"
      "local n, last = 0 for k in pairs(t) do n = n + 1\n"
      "  assert(last == nil or (type(last) == type(k) and last < k) or type(last) == 'number') last = k end\n"
      "local m, k = 0, nil repeat k = next(t, k) m = m + 1 until k == nil print(n, m)",
      "2000\t2001\n");
  expect(&b, "print(pcall(pairs, {[{}] = 1})) print(pcall(next, {[print] = 1}))",
         "false\tcannot iterate over a table with a table as a key: only numbers, strings and "
         "booleans have an order\n"
         "false\tcannot iterate over a table with a function as a key: only numbers, strings and "
         "booleans have an order\n");
  /* A key that is not in the table, or no more, has its place all the same. */
  expect(&b, "print(next({10, 20, 30}, 1.5), (next({a = 1, c = 2}, 'b')), next({1}, 5))",
         "2\tc\tnil\n");
  expect(&b,
         "local t = {} print(tostring(t) == tostring(t), (tostring(t):gsub('0x%x+$', 'N')))\n"
         "print(tostring({}) ~= tostring({}), #tostring(print))",
         "true\ttable: N\ntrue\t24\n");
  box_free(&b);
  /* Serial numbers do not depend on addresses: two states give the same. */
  struct box c;
  box_open(&b);
  box_open(&c);
  const char *program = "for i = 1, 5 do print(tostring({}), string.format('%p', print)) end";
  void *gap = malloc(100000);
  run_text(&b, program);
  run_text(&c, program);
  free(gap);
  assert_string_equal(sb_str(&b.out), sb_str(&c.out));
  box_free(&b);
  box_free(&c);
}

/* ---- the journal ---- */

/* Puts back what registry.journal says, newest first, in the globals t, u and what they hold. */
static int undo_journal(lua_State *L) {
  lua_getfield(L, LUA_REGISTRYINDEX, "journal");
  for (lua_Integer i = (lua_Integer)lua_rawlen(L, 1); i > 0; i--) {
    lua_rawgeti(L, 1, i);
    lua_rawgeti(L, 2, 1);
    if (lua_rawgeti(L, 2, 4) != LUA_TNIL) {
      if (lua_isboolean(L, 4)) {
        lua_pop(L, 1);
        lua_pushnil(L);
      }
      lua_setmetatable(L, 3);
    } else {
      lua_rawgeti(L, 2, 2);
      lua_rawgeti(L, 2, 3);
      lua_rawset(L, 3);
    }
    lua_settop(L, 1);
  }
  lua_newtable(L);
  lua_setfield(L, LUA_REGISTRYINDEX, "journal");
  return 0;
}

static const char journal_program[] =
    "local T = require 'mod.show'\n"
    "local rnd = T.random(seed)\n"
    "local function fresh() local t = {} for i = 1, rnd(7) - 1 do t[i] = rnd(50) end return t end\n"
    "local base = fresh()\n"
    "local lists = {fresh(), fresh(), setmetatable({}, {__newindex = base, __index = base}), base}\n"
    "local function look() local m = {} for i, l in ipairs(lists) do m[i] = T.show(l) .. tostring(getmetatable(l)) end\n"
    "  return table.concat(m, ' ') end\n"
    "local iterator = ('a b c d'):gmatch('%a')\n"
    "iterator()\n"
    "local before = look()\n"
    "start()\n"
    "for _ = 1, 40 do\n"
    "  local t, k = lists[rnd(4)], rnd(9)\n"
    "  if k == 1 then table.insert(t, rnd(50))\n"
    "  elseif k == 2 then pcall(table.insert, t, rnd(8) - 2, rnd(50))\n"
    "  elseif k == 3 then table.remove(t)\n"
    "  elseif k == 4 then pcall(table.remove, t, rnd(8) - 1)\n"
    "  elseif k == 5 then table.move(lists[rnd(4)], rnd(4), rnd(4) + 3, rnd(5), t)\n"
    "  elseif k == 6 then pcall(table.sort, t, rnd(2) == 1 and function(a, b) return a > b end or nil)\n"
    "  elseif k == 7 then rawset(t, ({'x', 1, 2.5, true})[rnd(4)], rnd(50))\n"
    "  elseif k == 8 then setmetatable(t, rnd(2) == 1 and {} or nil)\n"
    "  else iterator() end\n"
    "end\n"
    "local after = look()\n"
    "undo()\n"
    "assert(look() == before, before .. ' became ' .. look())\n"
    "assert(iterator() == 'b')\n"
    "print(after ~= before)\n";

static int start_journal(lua_State *L) {
  struct box *b = lua_touserdata(L, lua_upvalueindex(1));
  b->journal = true;
  return 0;
}

static int end_journal(lua_State *L) {
  struct box *b = lua_touserdata(L, lua_upvalueindex(1));
  b->journal = false;
  lua_settop(L, 0);
  return undo_journal(L);
}

static void test_journal(void **state) {
  (void)state;
  int changed = 0;
  for (int seed = 1; seed <= 200; seed++) {
    struct box b;
    box_open(&b);
    lua_newtable(b.L);
    lua_setfield(b.L, LUA_REGISTRYINDEX, "journal");
    lua_pushlightuserdata(b.L, &b);
    lua_pushcclosure(b.L, start_journal, 1);
    lua_setglobal(b.L, "start");
    lua_pushlightuserdata(b.L, &b);
    lua_pushcclosure(b.L, end_journal, 1);
    lua_setglobal(b.L, "undo");
    lua_pushinteger(b.L, seed);
    lua_setglobal(b.L, "seed");
    if (box_run(&b, "=journal", journal_program, sizeof journal_program - 1) != LUA_OK)
      fail_msg("seed %d: %s", seed, sb_str(&b.out));
    changed += strcmp(sb_str(&b.out), "true\n") == 0;
    box_free(&b);
  }
  assert_true(changed > 190);
}

/* Tables that the library makes are announced; gmatch's place is a field of one of them. */
static void test_births(void **state) {
  (void)state;
  struct box b;
  box_open(&b);
  lua_newtable(b.L);
  lua_setfield(b.L, LUA_REGISTRYINDEX, "born");
  run_text(&b, "made = table.pack(1, 2); ('x'):gmatch('x')");
  lua_getfield(b.L, LUA_REGISTRYINDEX, "born");
  lua_getglobal(b.L, "made");
  lua_rawget(b.L, -2);
  assert_true(lua_toboolean(b.L, -1));
  int n = 0;
  lua_pop(b.L, 1);
  for (lua_pushnil(b.L); lua_next(b.L, -2); lua_pop(b.L, 1))
    n++;
  assert_int_equal(n, 2);
  box_free(&b);
}

/* ---- device values ---- */

static void test_device_values(void **state) {
  (void)state;
  static const struct {
    const char *text, *out;
  } cases[] = {
      {"print(type(tile), type(index), type(1))", "tile\tscalar\tnumber\n"},
      {"print(tostring(tile), tostring(index), ('%s|%8s'):format(index, index))",
       "f32(4)\tindex\tindex|   index\n"},
      {"print(1, index)", "[print op, 2 arguments]\n"},
      {"assert(mask) assert(mask, 'why') assert(true, mask)",
       "[assert op, 1 arguments]\n[assert op, 2 arguments]\n"},
      {"math.max(index, 1)", "error: K0305 math.max of index: use max\n"},
      {"math.max(1, index)", "error: K0305 math.max of index: use max\n"},
      {"math.floor(tile)",
       "error: K0305 math.floor of f32(4): integers are whole already, and there is no device function for floats\n"},
      {"math.sqrt(tile)", "error: K0305 math.sqrt of f32(4): use sqrt\n"},
      {"math.fmod(index, 2)", "error: K0305 math.fmod of index: use %\n"},
      {"math.tointeger(index)",
       "error: K0305 math.tointeger of index: a device value is not a Lua number; use cast\n"},
      {"tonumber(index)", "error: K0305 tonumber of index: a device value is not a Lua number\n"},
      {"rawequal(index, 1)", "error: K0305 rawequal of index: compare device values with ==\n"},
      {"print(rawequal(index, nil), rawequal(nil, tile))", "false\tfalse\n"},
      {"rawlen(tile)",
       "error: bad argument #1 to 'rawlen' (table or string expected, got f32(4))\n"},
      {"rawget(tile, 1)", "error: bad argument #1 to 'rawget' (table expected, got f32(4))\n"},
      {"rawget({}, index)", "error: K0305 a Lua table cannot be indexed by index; use a plain loop "
                            "or where\n"},
      {"rawset({}, index, 1)", "error: K0305 a Lua table cannot be indexed by index; use a plain "
                               "loop or where\n"},
      {"print(getmetatable(tile))", "nil\n"},
      {"setmetatable(tile, {})",
       "error: bad argument #1 to 'setmetatable' (table expected, got f32(4))\n"},
      {"setmetatable({}, tile)",
       "error: bad argument #2 to 'setmetatable' (nil or table expected, got f32(4))\n"},
      {"pairs(tile)",
       "error: K0305 pairs of f32(4): a device value has no elements; use range(...) "
       "or a tile operation\n"},
      {"ipairs(tile)", "error: K0305 ipairs of f32(4): a device value has no elements; use "
                       "range(...) or a tile operation\n"},
      {"next(tile)", "error: bad argument #1 to 'next' (table expected, got f32(4))\n"},
      {"table.insert(tile, 1)",
       "error: bad argument #1 to 'insert' (table expected, got f32(4))\n"},
      {"table.insert({}, index, 1)",
       "error: bad argument #2 to 'insert' (number expected, got index)\n"},
      {"table.unpack(tile)",
       "error: K0305 table.unpack of f32(4): a device value has no elements\n"},
      {"table.concat({1, index})",
       "error: invalid value (index) at index 2 in table for 'concat'\n"},
      {"table.sort({2, 1}, function() return mask end)",
       "error: K0305 table.sort: the comparison gave bool\n"},
      {"print(pcall(table.sort, {2, 1}, function() return mask end))",
       "error: K0305 table.sort: the comparison gave bool\n"},
      {"print(pcall(math.max, index, 1))", "error: K0305 math.max of index: use max\n"},
      {"('x'):rep(index)", "error: bad argument #1 to 'rep' (number expected, got index)\n"},
      {"string.rep(tile, 1)", "error: bad argument #1 to 'rep' (string expected, got f32(4))\n"},
      {"('%d'):format(index)", "error: bad argument #1 to 'format' (number expected, got index)\n"},
      {"('x'):gsub('x', function() return index end)",
       "error: invalid replacement value (a index)\n"},
      {"string.pack('i4', index)", "error: K0305 string.pack of index: a plain value is needed "
                                   "here\n"},
      {"utf8.char(index)", "error: K0305 utf8.char of index: a plain value is needed here\n"},
      {"local t = {n = 1, tile} print(t[1] == tile, table.unpack(t))", "[print op, 2 arguments]\n"},
      {"local t = {} table.insert(t, tile) table.insert(t, 1, index) print(#t, tostring(t[1]), "
       "tostring(table.remove(t)))",
       "2\tindex\tf32(4)\n"},
      {"print(select('#', tile, index), select(2, 1, 'x'))", "2\tx\n"},
      {"print(select('#', select(2, tile, index)))", "1\n"},
      {"print(pcall(error, tile) == false)", "true\n"},
      {"math.max(unknown, 1)", "error: quiet\n"},
      {"print(pcall(string.rep, 'x', unknown))", "error: quiet\n"},
      {"rawset({}, unknown, 1)", "error: quiet\n"},
      {"table.concat {unknown}", "error: quiet\n"},
      {"table.sort {1, unknown, 2}", "error: quiet\n"},
      {"('x'):gsub('x', {x = unknown})", "error: quiet\n"},
  };
  struct box b;
  box_open(&b);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    run_text(&b, cases[i].text);
    const char *out = sb_str(&b.out);
    char plain[512];
    snprintf(plain, sizeof plain, "%s", out);
    char *place = strstr(plain, "error: t:1: ");
    if (place)
      memmove(place + 7, place + 12, strlen(place + 12) + 1);
    if (strcmp(plain, cases[i].out) != 0)
      fail_msg("%s\n gives %s instead of %s", cases[i].text, plain, cases[i].out);
  }
  box_free(&b);
}

/* Reading a field that has no value is an error in every function that reads. */
static void test_undefined_reads(void **state) {
  (void)state;
  static const char *const reads[] = {
      "rawget(t, 2)",
      "next(t, 1)",
      "for k, v in pairs(t) do end",
      "for i, v in ipairs(t) do end",
      "for k, v in next, t do end",
      "table.unpack(t)",
      "table.concat(t)",
      "table.remove(t)",
      "table.remove(t, 1)",
      "table.insert(t, 1)",
      "table.insert(t, 1, 5)",
      "table.move(t, 1, 2, 5)",
      "table.sort(t)",
      "rawlen(t)",
      "('b'):gsub('b', {b = undefined})",
  };
  for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
    struct box b;
    box_open(&b);
    run_text(&b, "t = {1, undefined}");
    assert_string_equal(sb_str(&b.out), "");
    run_text(&b, reads[i]);
    if (strcmp(sb_str(&b.out), "error: K0303 read of an undefined field\n") != 0)
      fail_msg("%s: %s", reads[i], sb_str(&b.out));
    run_text(&b, "rawset(t, 2, 7) print(rawget(t, 2))");
    assert_string_equal(sb_str(&b.out), "7\n");
    box_free(&b);
  }
}

static void test_refused(void **state) {
  (void)state;
  struct box b;
  box_open(&b);
  static const struct {
    const char *text, *message;
  } cases[] = {
      {"load('return 1')", "load is not available in kernels: code comes from files; use require"},
      {"loadstring('x')",
       "loadstring is not available in kernels: code comes from files; use require"},
      {"dofile('x')", "dofile is not available in kernels: code comes from files; use require"},
      {"loadfile('x')", "loadfile is not available in kernels: code comes from files; use require"},
      {"collectgarbage()", "collectgarbage is not available in kernels"},
      {"coroutine.wrap(function() end)",
       "coroutines are not available in kernels (coroutine.wrap)"},
      {"pcall(coroutine.create)", "coroutines are not available in kernels (coroutine.create)"},
      {"io.open('x')",
       "io.open is not available in kernels: they reach nothing outside themselves"},
      {"os.time()", "os.time is not available in kernels: they reach nothing outside themselves"},
      {"debug.traceback()",
       "debug.traceback is not available in kernels: they reach nothing outside themselves"},
      {"package.loadlib()", "package.loadlib is not available in kernels; use require"},
      {"string.dump(print)", "string.dump is not available in kernels: functions have no bytecode"},
      {"math.random()", "math.random is not available in kernels: a kernel must trace the same way "
                        "each time; inputs() is given a generator"},
      {"math.randomseed(1)", "math.randomseed is not available in kernels: a kernel must trace the "
                             "same way each time; inputs() is given a generator"},
      {"warn('x')", "warn is not available in kernels; use print"},
      {"setmetatable({}, {__gc = print})", "__gc is not available in kernels"},
      {"setmetatable({}, {__mode = 'k'})", "__mode is not available in kernels"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char want[300];
    snprintf(want, sizeof want, "error: K0206 %s\n", cases[i].message);
    expect(&b, cases[i].text, want);
  }
  expect(&b, "print(io ~= nil, rawget(io, 'open'), getmetatable(io))", "true\tnil\tfalse\n");
  box_free(&b);
}

/* ---- limits ---- */

/* Inputs that would run or grow for ever end at the step or memory limit, soon. */
static void test_limits(void **state) {
  (void)state;
  static const char *const cases[] = {
      "('x'):rep(1 << 30)",
      "('x'):rep(1 << 27, ('y'):rep(7))",
      "table.move({}, 1, 1 << 62, 2)",
      "table.move(setmetatable({}, {__index = function() return 1 end}), 1, 1 << 62, 2)",
      "('x'):rep(5000):find(('.-'):rep(12) .. 'y')",
      "('a'):rep(2000):find(('a*'):rep(12) .. 'b')",
      "('a'):rep(100000):gsub('.-b', '')",
      "('a'):rep(100000):match('.*.*.*b')",
      "for _ in ('a'):rep(100000):gmatch('a-b') do end",
      "('a'):rep(1 << 20):find('[' .. ('x'):rep(1 << 20) .. ']')",
      "('('):rep(1 << 20):find('%b()')",
      "('a'):rep(1 << 20):find(('a'):rep(1 << 19) .. 'b', 1, true)",
      "table.insert(setmetatable({}, {__len = function() return 1 << 60 end}), 1, 1)",
      "table.remove(setmetatable({}, {__len = function() return 1 << 60 end}), 1)",
      "table.concat(setmetatable({}, {__index = function() return '' end}), '', 1, 1 << 60)",
      "table.concat(setmetatable({}, {__index = function() return 'x' end}), '', 1, 1 << 60)",
      "table.sort(setmetatable({}, {__len = function() return 1 << 30 end, __index = function(_, i) "
      "return i end, __newindex = function() end}))",
      "local t = {} for i = 1, 5000 do t[i] = i end table.sort(t, function(a, b) for i = 1, 100 do "
      "('x'):rep(1000) end return a < b end)",
      "for i in ipairs(setmetatable({}, {__index = function() return 1 end})) do end",
      "for k in function(_, k) return next({1, 2}, nil) end do end",
      "local t = {} for i = 1, 1 << 40 do t[i] = ('x'):rep(1000) .. i end",
      "local s = 'x' while true do s = s:gsub('x', 'xx') end",
      "local s = 'x' while true do s = ('%s%s'):format(s, s) end",
      "local s = 'x' while true do s = table.concat {s, s} end",
      "string.pack('c2147483647', 'x')",
      "while true do ('x'):rep(1 << 20) end",
      "local s = ('x'):rep(1 << 20) while true do s = s:upper() end",
      "local s = ('x'):rep(1 << 20) while true do s = s:reverse() end",
      "local s = ('1'):rep(1 << 20) while true do tonumber(s) end",
      "local s = ('1'):rep(1 << 20) while true do utf8.len(s) end",
      "local t = {} for i = 1, 10000 do t[i] = i end while true do next(t) end",
      "local t = {} for i = 1, 10000 do t[i] = i end while true do pairs(t) end",
      "for i = 1, 100000 do _G['g' .. i] = i end while true do pcall(string.rep) end",
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct box b;
    box_open(&b);
    b.max_steps = 1000 * 1000;
    b.max_memory = 64u << 20;
    run_text(&b, cases[i]);
    bool good = strstr(sb_str(&b.out), "step limit") || strstr(sb_str(&b.out), "not enough memory");
    if (!good)
      fail_msg("%s: %s", cases[i], sb_str(&b.out));
    box_free(&b);
  }
  /* What stock Lua would do for ever, but means nothing. */
  struct box b;
  box_open(&b);
  b.max_steps = 1000;
  expect(&b, "print(#(''):rep(1 << 60), #(''):rep(1 << 60, ''))", "0\t0\n");
  expect(&b, "print(pcall(string.rep, 'x', 1 << 60))", "false\tresulting string too large\n");
  expect(&b, "print(pcall(string.format, '%99999d', 1))",
         "false\tinvalid conversion specification: '%99999d'\n");
  expect(&b, "print(pcall(table.unpack, {}, 1, 1 << 40))", "false\ttoo many results to unpack\n");
  expect(&b, "print(('x'):find(('x'):rep(500), 1, true))", "nil\n");
  box_free(&b);
}

/* The steps of a call depend on nothing but its arguments. */
static void test_steps_repeat(void **state) {
  (void)state;
  uint64_t steps[2];
  for (int i = 0; i < 2; i++) {
    struct box b;
    box_open(&b);
    void *gap = i ? malloc(12345) : NULL;
    run_text(
        &b,
        "local t = {} for i = 1, 300 do t[i] = (i * 7919) % 301 t['k' .. i] = i end table.sort(t)\n"
        "for k in pairs(t) do end for w in ('the quick brown'):rep(50):gmatch('%a+') do end\n"
        "print(('x'):rep(100):gsub('x*y?', 'z'))");
    steps[i] = b.steps;
    free(gap);
    box_free(&b);
  }
  assert_true(steps[0] > 1000);
  assert_int_equal(steps[0], steps[1]);
}

/* Every allocation fails once: a memory error, or the result, and nothing lost. */
static void test_out_of_memory(void **state) {
  (void)state;
  static const char text[] =
      "local T = require 'mod.show'\n"
      "local t = {} for i = 1, 20 do table.insert(t, 1, i) end\n"
      "table.sort(t) table.remove(t, 3) table.move(t, 1, 5, 3)\n"
      "local s = table.concat(t, ', ') .. ('x'):rep(600, '-'):upper():reverse()\n"
      "s = s:gsub('%d+', function(d) return '<' .. d .. '>' end):gsub('x', {x = 'yy'})\n"
      "for a, b in s:gmatch('(%d)()') do t[#t + 1] = a .. b end\n"
      "print(('%10s %q %p'):format(s, s, t), tostring({}), #T.show {a = {1, 2}, b = s})\n"
      "for k, v in pairs {a = 1, b = 2, 3} do print(k, v) end\n"
      "print(pcall(string.rep), pcall(error, {}), xpcall(error, tostring, 'x'))\n"
      "print(string.unpack('s1z', string.pack('s1z', 'abc', 'def')), utf8.char(8364, 65))\n";
  struct box b;
  box_open(&b);
  run_text(&b, text);
  char *want = strdup(sb_str(&b.out));
  assert_null(strstr(want, "error: "));
  box_free(&b);
  long n = 1;
  for (bool done = false; !done; n++) {
    box_open(&b);
    lua_pushcfunction(b.L, open_library); /* room for the protected call itself */
    lua_pop(b.L, 1);
    b.fail_at = n;
    b.out.n = 0;
    int status = luaL_loadbufferx(b.L, text, sizeof text - 1, "=t", "t");
    if (status == LUA_OK)
      status = lua_pcall(b.L, 0, 0, 0);
    done = b.fail_at > 0;
    b.fail_at = 0;
    if (status == LUA_OK) {
      /* No allocation failed, or pcall in the program caught it. */
      if (done)
        assert_string_equal(sb_str(&b.out), want);
    } else {
      assert_string_equal(lua_tostring(b.L, -1), "not enough memory");
    }
    lua_settop(b.L, 0);
    expect(&b, "print(#('ok'):rep(3))", "6\n"); /* the state still works */
    box_free(&b);
  }
  print_message("%ld allocations failed in turn\n", n - 1);
  assert_true(n > 100);
  free(want);
}

/* ---- require ---- */

static void test_require(void **state) {
  (void)state;
  static const struct module modules[] = {
      {"a.lua", "count = (count or 0) + 1 return {name = ..., n = count}"},
      {"x/y/z.lua", "local name, path = ... return name .. '|' .. path"},
      {"nothing.lua", "x = 1"},
      {"no.lua", "return false"},
      {"one.lua", "return require 'two'"},
      {"two.lua", "return require 'three'"},
      {"three.lua", "return require 'one'"},
      {"self.lua", "return require 'self'"},
      {"bad.lua", "local x = \n = 3"},
      {"fails.lua", "\nerror('inside')"},
      {"fails_once.lua",
       "tries = (tries or 0) + 1 if tries == 1 then error('first', 0) end return 'fine'"},
      {"needs_fails.lua", "pcall(require, 'fails') return require 'a'"},
      {"refuses.lua", "return io.open"},
      {NULL, NULL},
  };
  struct box b;
  box_open(&b);
  b.modules = modules;
  expect(&b, "local m, path = require 'a' print(m.name, path, m.n, require 'a' == m, count)",
         "a\ta.lua\t1\ttrue\t1\n");
  expect(&b, "print(require('x.y.z'))", "x.y.z|x/y/z.lua\tx/y/z.lua\n");
  expect(&b, "print(require('nothing'), (require('no')), (require('no')))", "true\tfalse\tfalse\n");
  expect(
      &b, "print(pcall(require, 'one'))",
      "false\tthree.lua:1: modules require each other in a circle: one -> two -> three -> one\n");
  expect(&b, "print(pcall(require, 'self'))",
         "false\tself.lua:1: modules require each other in a circle: self -> self\n");
  expect(&b, "print(pcall(require, 'bad'))", "false\tbad.lua:2: unexpected symbol near '='\n");
  expect(&b, "print(pcall(require, 'fails'))", "false\tfails.lua:2: inside\n");
  /* A load that failed is neither remembered nor taken for one under way. */
  expect(&b, "print(pcall(require, 'fails_once')) print(require 'fails_once')",
         "false\tfirst\nfine\tfails_once.lua\n");
  expect(&b, "print((require 'needs_fails').name)", "a\n");
  run_text(&b, "require 'refuses'");
  assert_non_null(strstr(sb_str(&b.out), "io.open is not available"));
  run_text(&b, "require 'refuses'");
  assert_non_null(strstr(sb_str(&b.out), "io.open is not available"));
  expect(&b, "print(pcall(require, 'none.such'))",
         "false\tmodule 'none.such' not found: no file 'none/such.lua' in the kernel root\n");
  expect(&b, "print(pcall(require)) print(pcall(require, {}))",
         "false\tbad argument #1 to 'require' (string expected, got no value)\n"
         "false\tbad argument #1 to 'require' (string expected, got table)\n");
  static const char *const names[] = {
      "",     ".",     "..",  ".a",       "a.",    "a..b", "../a", "/etc/passwd", "a/b",
      "a\\b", "a\\0b", "a b", "a.lua\\n", "\\xff", "~a",   "C:a",  "a.../b",      "%s",
  };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char text[100];
    snprintf(text, sizeof text, "print(pcall(require, '%s'))", names[i]);
    run_text(&b, text);
    if (!strstr(sb_str(&b.out), "is not allowed"))
      fail_msg("%s: %s", names[i], sb_str(&b.out));
  }
  run_text(&b, "print(pcall(require, ('a'):rep(300)))");
  assert_non_null(strstr(sb_str(&b.out), "module name '(too long)' is not allowed"));
  box_free(&b);
}

static void write_file(const char *folder, const char *name, const char *text, size_t n) {
  char path[300];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(text, 1, n, f), n);
  fclose(f);
}

static void test_module_files(void **state) {
  (void)state;
  char outer[] = "/tmp/kiln_lib_XXXXXX", root[100], path[200];
  assert_non_null(mkdtemp(outer));
  snprintf(root, sizeof root, "%s/root", outer);
  assert_int_equal(mkdir(root, 0700), 0);
  snprintf(path, sizeof path, "%s/sub", root);
  assert_int_equal(mkdir(path, 0700), 0);
  write_file(outer, "secret.lua", "return 'secret'", 15);
  write_file(root, "sub/m.lua", "return 'm'", 10);
  write_file(root, "empty.lua", "", 0);
  static const char *const links[][2] = {
      {"inside.lua", "sub/m.lua"}, {"outside.lua", "../secret.lua"}, {"up", ".."},
      {"loop.lua", "loop.lua"},    {"gone.lua", "nowhere.lua"},
  };
  for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
    snprintf(path, sizeof path, "%s/%s", root, links[i][0]);
    assert_int_equal(symlink(links[i][1], path), 0);
  }
  snprintf(path, sizeof path, "%s/folder.lua", root);
  assert_int_equal(mkdir(path, 0700), 0);
  snprintf(path, sizeof path, "%s/pipe.lua", root);
  assert_int_equal(mkfifo(path, 0600), 0);
  char *big = calloc(1, FE_MODULE_MAX + 1);
  assert_non_null(big);
  memset(big, '\n', FE_MODULE_MAX + 1);
  write_file(root, "big.lua", big, FE_MODULE_MAX + 1);
  write_file(root, "full.lua", big, FE_MODULE_MAX);
  free(big);

  struct box b;
  box_open(&b);
  b.root = root;
  expect(&b, "print(require 'sub.m', require 'inside', require 'empty', require 'full')",
         "m\tm\ttrue\ttrue\tfull.lua\n");
  static const struct {
    const char *name, *want;
  } cases[] = {
      {"outside", "cannot be read: it is a symbolic link that leaves the kernel root"},
      {"up.secret", "cannot be read: it is a symbolic link that leaves the kernel root"},
      {"folder", "cannot be read: it is not a plain file"},
      {"pipe", "cannot be read: it is not a plain file"},
      {"big", "cannot be read: it has 4194305 bytes; the limit is 4194304"},
      {"loop", "cannot be read: Too many levels of symbolic links"},
      {"gone", "not found"},
      {"sub.none", "not found"},
      {"empty.lua", "not found"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[100];
    snprintf(text, sizeof text, "print(pcall(require, '%s'))", cases[i].name);
    run_text(&b, text);
    if (!strstr(sb_str(&b.out), cases[i].want))
      fail_msg("%s: %s", cases[i].name, sb_str(&b.out));
  }
  b.root = "/nonexistent_kernel_root";
  run_text(&b, "print(pcall(require, 'm'))");
  assert_non_null(strstr(sb_str(&b.out), "kernel root '/nonexistent_kernel_root': No such file"));
  box_free(&b);
  char command[100];
  snprintf(command, sizeof command, "rm -r %s", outer);
  assert_int_equal(system(command), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_programs),      cmocka_unit_test(test_sorted_order),
      cmocka_unit_test(test_journal),       cmocka_unit_test(test_births),
      cmocka_unit_test(test_device_values), cmocka_unit_test(test_undefined_reads),
      cmocka_unit_test(test_refused),       cmocka_unit_test(test_limits),
      cmocka_unit_test(test_steps_repeat),  cmocka_unit_test(test_out_of_memory),
      cmocka_unit_test(test_require),       cmocka_unit_test(test_module_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
