/* Runs Lua text in stock Lua and in the evaluator; see help_lua.h. */
#include "help_lua.h"

#include "frontend/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- stock Lua ---- */

static int stock_print(lua_State *L) {
  struct strbuf *out = lua_touserdata(L, lua_upvalueindex(1));
  int n = lua_gettop(L);
  for (int i = 1; i <= n; i++) {
    size_t len;
    const char *s = luaL_tolstring(L, i, &len);
    if (i > 1)
      sb_putc(out, '\t');
    sb_put(out, s, len);
    lua_pop(L, 1);
  }
  sb_putc(out, '\n');
  return 0;
}

/* Programs compare messages only with the release whose messages ours are: see mod/show.lua. */
static void set_exact(lua_State *L) {
  lua_pushboolean(L, str_eq(LUA_RELEASE, "Lua 5.4.4"));
  lua_setglobal(L, "exact");
}

static lua_State *stock_state(struct strbuf *out, const char *folder) {
  lua_State *L = luaL_newstate();
  assert_non_null(L);
  luaL_openlibs(L);
  /* Lua 5.4.4 reads freed memory when the stack moves while __eq, __lt or __le runs: a stack that
   * is big from the start stays where it is. */
  assert_true(lua_checkstack(L, 20000));
  lua_pushlightuserdata(L, out);
  lua_pushcclosure(L, stock_print, 1);
  lua_setglobal(L, "print");
  set_exact(L);
  if (folder) {
    lua_getglobal(L, "package");
    lua_pushfstring(L, "%s/?.lua", folder);
    lua_setfield(L, -2, "path");
    lua_pop(L, 1);
  }
  return L;
}

const char *hl_stock(struct arena *a, const char *name, const char *text, const char *folder) {
  struct strbuf out = {.arena = a};
  lua_State *L = stock_state(&out, folder);
  const char *chunk = lua_pushfstring(L, "@%s", name);
  if (luaL_loadbuffer(L, text, strlen(text), chunk) || lua_pcall(L, 0, 0, 0))
    sb_printf(&out, "error: %s\n", luaL_tolstring(L, -1, NULL));
  lua_close(L);
  return sb_str(&out);
}

const char *hl_stock_syntax(struct arena *a, const char *name, const char *text, size_t n) {
  struct strbuf out = {.arena = a};
  lua_State *L = luaL_newstate();
  assert_non_null(L);
  const char *chunk = lua_pushfstring(L, "@%s", name);
  const char *message = NULL;
  if (luaL_loadbuffer(L, text, n, chunk)) {
    const char *s = lua_tostring(L, -1);
    assert_true(str_starts(s, name));
    sb_puts(&out, s + strlen(name) + 1);
    message = sb_str(&out);
  }
  lua_close(L);
  return message;
}

/* ---- the evaluator ---- */

struct run {
  struct arena *arena;
  struct diag_sink diags;
  struct strbuf out;
  const char *name, *text, *folder;
  size_t n;
  bool only_load;
};

static void take_print(void *user, const char *text, size_t n) {
  struct run *r = user;
  sb_put(&r->out, text, n);
}

static bool read_module(void *user, const char *path, struct strbuf *text, const char **error) {
  const struct run *r = user;
  char full[512], buf[4096];
  *error = NULL;
  if (!r->folder)
    return false;
  snprintf(full, sizeof full, "%s/%s", r->folder, path);
  FILE *f = fopen(full, "rb");
  if (!f)
    return false;
  for (size_t n; (n = fread(buf, 1, sizeof buf, f)) > 0;)
    sb_put(text, buf, n);
  fclose(f);
  return true;
}

static void run_text(struct fe_state *fe, void *user) {
  struct run *r = user;
  set_exact(fe_lua(fe));
  fe_load_text(fe, r->name, r->text, r->n);
  if (!r->only_load)
    fe_call(fe, 0, 0);
}

static void run_kiln(struct run *r, const struct fe_limits *limits) {
  assert_true(diag_init(&r->diags, &mem_libc));
  struct fe_host host = {.mem = &mem_libc,
                         .diags = &r->diags,
                         .root = "",
                         .read_module = read_module,
                         .print = take_print,
                         .user = r};
  if (limits)
    host.limits = *limits;
  else
    host.limits.seconds = 120; /* sanitizers are slow */
  r->out.arena = r->arena;
  struct fe_state *fe = fe_state_new(&host);
  assert_non_null(fe);
  enum fe_status s = fe_protect(fe, run_text, r);
  assert_int_equal(s == FE_DONE, r->diags.n_errors == 0);
  fe_state_free(fe);
}

/* Copies text, dropping the column of every place "name:line:col:". */
static const char *drop_columns(struct arena *a, const char *text) {
  struct strbuf out = {.arena = a};
  for (const char *p = text; *p;) {
    if (!str_starts(p, ".lua:")) {
      sb_putc(&out, *p++);
      continue;
    }
    size_t head = strlen(".lua:"), line = strspn(p + head, "0123456789");
    sb_put(&out, p, head + line);
    p += head + line;
    size_t col = *p == ':' ? strspn(p + 1, "0123456789") : 0;
    if (line && col && p[1 + col] == ':')
      p += 1 + col;
  }
  return sb_str(&out);
}

const char *hl_kiln(struct arena *a, const char *name, const char *text, const char *folder) {
  struct run r = {.arena = a, .name = name, .text = text, .folder = folder, .n = strlen(text)};
  run_kiln(&r, NULL);
  for (uint32_t i = 0; i < r.diags.list.n; i++) {
    const struct diag *d = &r.diags.list.at[i];
    sb_puts(&r.out, "error: ");
    if (d->loc.file)
      sb_printf(&r.out, "%s:%u: ", diag_file_name(&r.diags, d->loc.file), d->loc.line);
    sb_printf(&r.out, "%s\n", d->message);
  }
  diag_free(&r.diags);
  return drop_columns(a, sb_str(&r.out));
}

const char *hl_kiln_syntax(struct arena *a, const char *name, const char *text, size_t n) {
  struct run r = {.arena = a, .name = name, .text = text, .n = n, .only_load = true};
  run_kiln(&r, NULL);
  const char *message = NULL;
  if (r.diags.list.n)
    message = arena_printf(a, "%u: %s", r.diags.list.at[0].loc.line, r.diags.list.at[0].message);
  diag_free(&r.diags);
  return message;
}

const char *hl_diags(struct arena *a, const char *name, const char *text,
                     const struct fe_limits *limits) {
  static const char *const severities[] = {"error", "warning", "note"};
  struct run r = {.arena = a, .name = name, .text = text, .n = strlen(text)};
  struct strbuf out = {.arena = a};
  run_kiln(&r, limits);
  for (uint32_t i = 0; i < r.diags.list.n; i++) {
    const struct diag *d = &r.diags.list.at[i];
    sb_printf(&out, "%s:%u:%u: %s: %s [%s]\n", diag_file_name(&r.diags, d->loc.file), d->loc.line,
              d->loc.col, severities[d->severity], d->message, diag_code(d->id));
    for (uint32_t k = 0; k < d->notes.n; k++)
      sb_printf(&out, "  %u:%u: %s\n", d->notes.at[k].loc.line, d->notes.at[k].loc.col,
                d->notes.at[k].text);
  }
  diag_free(&r.diags);
  return sb_str(&out);
}

void hl_same(const char *title, const char *text, const char *stock, const char *kiln) {
  if (str_eq(stock, kiln))
    return;
  size_t i = 0, start = 0;
  unsigned line = 1;
  for (; stock[i] && stock[i] == kiln[i]; i++)
    if (stock[i] == '\n') {
      line++;
      start = i + 1;
    }
  if (text)
    fprintf(stderr, "%s\n", text);
  fail_msg("%s: output differs in line %u\nstock: %.*s\nkiln:  %.*s", title, line,
           (int)strcspn(stock + start, "\n"), stock + start, (int)strcspn(kiln + start, "\n"),
           kiln + start);
}
