/* The table of the language, frontend/dsl.def: every row is registered and nothing else is, every
 * example works wherever its row says and gives the ops it says, the stubs are Lua and define
 * every row, docs/reference.md is what the table gives, docs/dsl.md names every row.
 * KILN_UPDATE=1 writes docs/reference.md. */
#include "help_dsl.h"

#include "frontend/dsl.h"

#include <ctype.h>
#include <lauxlib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define REFERENCE KILN_SRC_DIR "/docs/reference.md"

/* A kernel file with the example in one place. */
static const char *file_of(struct hf *h, const struct dsl_entry *e, char place) {
  const char *code = arena_printf(&h->arena, "local result = %s", e->example);
  if (str_eq(e->name, "range"))
    code = arena_printf(&h->arena, "for k in %s do a.Y:store({k, 0}, x) end", e->example);
  else if (e->owner == DSL_OF_tensor && (str_eq(e->name, "store") || str_eq(e->name, "scatter")))
    code = e->example;
  return hd_file(h, place, code);
}

/* Whether the printed module has the op: "= exp " or a line that begins with it. */
static bool has_op(const char *ir, const char *op, size_t n) {
  for (const char *p = ir; (p = strstr(p, op)) != NULL; p++) {
    bool begins = p == ir || p[-1] == ' ';
    if (begins && (p[n] == ' ' || p[n] == '\n'))
      return true;
  }
  return false;
}

static void check_ops(struct hf *h, const struct dsl_entry *e, const struct ir_module *m) {
  struct strbuf text = {.arena = &h->arena};
  ir_print(m, (struct ir_print_options){0}, &text);
  const char *body = strstr(sb_str(&text), "\n  body");
  for (const char *p = e->ops; *p;) {
    size_t n = strcspn(p, " ");
    const char *op = arena_strndup(&h->arena, p, n);
    if (!has_op(body, op, n))
      fail_msg("`%s` gives no op `%s`:\n%s", e->example, op, body);
    p += n + (p[n] == ' ');
  }
}

static void test_examples(void **state) {
  (void)state;
  uint32_t n, n_run = 0;
  const struct dsl_entry *e = dsl_entries(&n);
  for (uint32_t i = 0; i < n; i++)
    for (const char *place = e[i].on; *place; place++) {
      struct hf h;
      hf_init(&h);
      n_run++;
      const char *text = file_of(&h, &e[i], *place);
      struct ir_module *m = NULL;
      if (!hf_load(&h, "example.lua", text) || !(m = hf_trace(&h, "example", 0)) ||
          ((*place == 'o' || *place == 'i') && !hd_run_oracle(&h)) || h.diags.list.n)
        fail_msg("%s, place %c:\n%s\n%s", e[i].name, *place, text, hf_diags(&h));
      if (*place == 'b')
        check_ops(&h, &e[i], m);
      hf_free(&h);
    }
  print_message("%u examples\n", n_run);
  assert_true(n_run > 100);
}

/* Where a row does not say that it works, it is refused with a message (or gives Lua's error). */
static void test_other_places(void **state) {
  (void)state;
  uint32_t n;
  const struct dsl_entry *e = dsl_entries(&n);
  for (uint32_t i = 0; i < n; i++) {
    if (!e[i].on[0] || strchr(e[i].on, 'f') || strchr(e[i].on, 'n') || e[i].owner != DSL_OF_global)
      continue;
    struct hf h;
    hf_init(&h);
    if (hf_load(&h, "example.lua", file_of(&h, &e[i], 'f')) && hf_trace(&h, "example", 0) &&
        !h.diags.n_errors)
      fail_msg("`%s` works on numbers at file level; its row does not say so", e[i].example);
    hf_free(&h);
  }
}

/* ---- what is registered ---- */

static bool is_lua(const char *name) {
  static const char *const names[] = {"_G",           "_VERSION",   "assert",   "collectgarbage",
                                      "coroutine",    "debug",      "dofile",   "error",
                                      "getmetatable", "io",         "ipairs",   "load",
                                      "loadfile",     "loadstring", "math",     "next",
                                      "os",           "package",    "pairs",    "pcall",
                                      "print",        "rawequal",   "rawget",   "rawlen",
                                      "rawset",       "require",    "select",   "setmetatable",
                                      "string",       "table",      "tonumber", "tostring",
                                      "type",         "utf8",       "warn",     "xpcall"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (str_eq(names[i], name))
      return true;
  return false;
}

static void test_registered(void **state) {
  (void)state;
  struct hf h;
  hf_init(&h);
  if (!hf_load(&h, "k.lua",
               "return kernel { name = 'k', args = { out('Y', f32, 4) },\n"
               "grid = function() return 1 end, body = function() end }"))
    fail_msg("%s", hf_diags(&h));
  lua_State *L = fe_lua(h.file->fe);
  uint32_t n;
  const struct dsl_entry *e = dsl_entries(&n);
  for (uint32_t i = 0; i < n; i++)
    if (e[i].owner == DSL_OF_global) {
      if (lua_getglobal(L, e[i].name) == LUA_TNIL)
        fail_msg("`%s` is in the table and no global", e[i].name);
      lua_pop(L, 1);
    }
  enum dtype t;
  lua_pushglobaltable(L);
  lua_pushnil(L);
  for (; lua_next(L, -2); lua_pop(L, 1)) {
    const char *name = lua_tostring(L, -2);
    if (!is_lua(name) && !dtype_find(name, &t) && !dsl_is_named(DSL_OF_global, name))
      fail_msg("the global `%s` is not in the table", name);
  }
  hf_free(&h);
}

/* Each name once. */
static void test_unique(void **state) {
  (void)state;
  uint32_t n;
  const struct dsl_entry *e = dsl_entries(&n);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < i; j++)
      if (e[i].owner == e[j].owner && str_eq(e[i].name, e[j].name))
        fail_msg("`%s` is in the table twice", e[i].name);
}

/* ---- texts ---- */

static void test_stubs(void **state) {
  (void)state;
  struct hf h;
  hf_init(&h);
  struct strbuf b = {.arena = &h.arena};
  fe_language_stubs(&b);
  const char *text = sb_str(&b);
  /* Stock Lua takes the file and gets each function. */
  lua_State *L = luaL_newstate();
  assert_non_null(L);
  if (luaL_dostring(L, text))
    fail_msg("%s", lua_tostring(L, -1));
  uint32_t n;
  const struct dsl_entry *e = dsl_entries(&n);
  for (uint32_t i = 0; i < n; i++) {
    const char *what = NULL;
    if (e[i].owner == DSL_OF_global && e[i].on[0]) {
      if (lua_getglobal(L, e[i].name) != LUA_TFUNCTION)
        fail_msg("`%s` is no function in the stubs", e[i].name);
      lua_pop(L, 1);
    } else if (e[i].on[0]) {
      what = arena_printf(&h.arena, ":%s(", e[i].name);
    } else if (e[i].owner != DSL_OF_part && !e[i].fn) {
      what = e[i].owner == DSL_OF_global ? arena_printf(&h.arena, "\n%s = nil\n", e[i].name)
                                         : arena_printf(&h.arena, "---@field %s", e[i].name);
    }
    if (what && !strstr(text, what))
      fail_msg("the stubs lack `%s`", what);
  }
  lua_close(L);
  /* Types are known ones: no word of a signature is left over. */
  assert_null(strstr(text, "kiln.kiln."));
  assert_non_null(strstr(text, "\n---@field grid (fun("));
  assert_non_null(strstr(text, "\n---@field cases? kiln.case[] "));
  assert_non_null(strstr(text, "---@param x T\n---@return T\nfunction exp(x) end\n"));
  assert_non_null(strstr(text, "---@param acc? kiln.value\n"
                               "---@param options? {prec: string}\n"
                               "---@return kiln.value\nfunction dot(a, b, acc, options) end\n"));
  assert_non_null(strstr(text, "---@param ... integer|integer[]\n"
                               "---@return kiln.value\n"
                               "function Value:reshape(...) end\n"));
  hf_free(&h);
}

static void test_reference(void **state) {
  (void)state;
  struct hf h;
  hf_init(&h);
  struct strbuf b = {.arena = &h.arena};
  fe_language_reference(&b);
  size_t n;
  const char *now = hf_read(&h, REFERENCE, &n);
  if (!now || !str_eq(now, sb_str(&b))) {
    if (!getenv("KILN_UPDATE"))
      fail_msg("docs/reference.md is not what frontend/dsl.def gives: run this with KILN_UPDATE=1");
    FILE *f = fopen(REFERENCE, "wb");
    assert_non_null(f);
    assert_true(fputs(sb_str(&b), f) >= 0);
    assert_int_equal(fclose(f), 0);
  }
  hf_free(&h);
}

static bool is_word(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

static void test_guide(void **state) {
  (void)state;
  struct hf h;
  hf_init(&h);
  size_t n_text;
  const char *text = hf_read(&h, KILN_SRC_DIR "/docs/dsl.md", &n_text);
  assert_non_null(text);
  uint32_t n, missing = 0;
  const struct dsl_entry *e = dsl_entries(&n);
  for (uint32_t i = 0; i < n; i++) {
    if (e[i].owner == DSL_OF_part)
      continue;
    size_t len = strlen(e[i].name);
    bool found = false;
    for (const char *p = text; !found && (p = strstr(p, e[i].name)) != NULL; p += len) {
      found = (p == text || !is_word(p[-1])) && !is_word(p[len]);
    }
    if (!found) {
      print_message("docs/dsl.md does not name `%s`\n", e[i].name);
      missing++;
    }
  }
  assert_int_equal(missing, 0);
  hf_free(&h);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_unique),   cmocka_unit_test(test_registered),
      cmocka_unit_test(test_examples), cmocka_unit_test(test_other_places),
      cmocka_unit_test(test_stubs),    cmocka_unit_test(test_reference),
      cmocka_unit_test(test_guide),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
