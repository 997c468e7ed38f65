/* Lua programs run by stock Lua; see help_stock.h. */
#include "help_stock.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

bool hs_is_exact(void) {
  return strcmp(LUA_RELEASE, "Lua 5.4.4") == 0;
}

char *hs_read(struct arena *a, const char *name, size_t *n) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", HS_FOLDER, name);
  FILE *f = fopen(path, "rb");
  if (!f)
    fail_msg("cannot open %s", path);
  fseek(f, 0, SEEK_END);
  *n = (size_t)ftell(f);
  rewind(f);
  char *text = arena_get0(a, *n + 1);
  assert_int_equal(fread(text, 1, *n, f), *n);
  fclose(f);
  return text;
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

uint32_t hs_list(struct arena *a, const char *const **names) {
  const char **list = ARENA_ARRAY(a, const char *, 256);
  uint32_t n = 0;
  DIR *dir = opendir(HS_FOLDER);
  assert_non_null(dir);
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    size_t len = strlen(e->d_name);
    if (len > 4 && strcmp(e->d_name + len - 4, ".lua") == 0) {
      assert_true(n < 256);
      list[n++] = arena_strdup(a, e->d_name);
    }
  }
  closedir(dir);
  qsort(list, n, sizeof *list, by_name);
  *names = list;
  return n;
}

static int stock_print(lua_State *L) {
  struct strbuf *out = lua_touserdata(L, lua_upvalueindex(1));
  int n = lua_gettop(L);
  for (int i = 1; i <= n; i++) {
    size_t size;
    const char *s = luaL_tolstring(L, i, &size);
    if (i > 1)
      sb_putc(out, '\t');
    sb_put(out, s, size);
    lua_pop(L, 1);
  }
  sb_putc(out, '\n');
  return 0;
}

static lua_State *new_stock(void) {
  lua_State *L = luaL_newstate();
  assert_non_null(L);
  luaL_openlibs(L);
  lua_getglobal(L, "package");
  lua_pushstring(L, HS_FOLDER "/?.lua");
  lua_setfield(L, -2, "path");
  lua_pop(L, 1);
  return L;
}

void hs_run_stock(const char *name, const char *text, size_t n, bool exact, struct strbuf *out) {
  lua_State *L = new_stock();
  lua_pushlightuserdata(L, out);
  lua_pushcclosure(L, stock_print, 1);
  lua_setglobal(L, "print");
  lua_pushboolean(L, exact);
  lua_setglobal(L, "exact");
  char chunk[300];
  snprintf(chunk, sizeof chunk, "@%s", name);
  if (luaL_loadbufferx(L, text, n, chunk, "t") != LUA_OK || lua_pcall(L, 0, 0, 0) != LUA_OK)
    fail_msg("stock Lua: %s", lua_tostring(L, -1));
  lua_close(L);
}

lua_State *hs_generator(void) {
  lua_State *L = new_stock();
  if (luaL_dostring(L, "return require 'mod.generate'") != LUA_OK)
    fail_msg("%s", lua_tostring(L, -1));
  lua_settop(L, 1);
  return L;
}

char *hs_generate(lua_State *L, uint32_t seed, struct arena *a, size_t *n) {
  lua_pushvalue(L, 1);
  lua_pushinteger(L, (lua_Integer)seed);
  if (lua_pcall(L, 1, 1, 0) != LUA_OK)
    fail_msg("generator, seed %u: %s", seed, lua_tostring(L, -1));
  const char *s = lua_tolstring(L, -1, n);
  char *text = arena_strndup(a, s, *n);
  lua_pop(L, 1);
  return text;
}

/* Zero bytes would hide the rest of a line. */
static void show_zeros(struct strbuf *b) {
  for (size_t i = 0; i < b->n; i++)
    if (b->s[i] == 0)
      b->s[i] = '@';
}

void hs_compare(const char *name, struct strbuf *want, struct strbuf *got) {
  show_zeros(want);
  show_zeros(got);
  assert_true(want->n > 0);
  const char *w = sb_str(want), *g = sb_str(got);
  for (unsigned line = 1; *w || *g; line++) {
    size_t nw = strcspn(w, "\n"), ng = strcspn(g, "\n");
    if (nw != ng || memcmp(w, g, nw) != 0) {
      fail_msg("%s, line %u of the output\n stock: %.*s\n  ours: %.*s", name, line, (int)nw, w,
               (int)ng, g);
    }
    w += nw + (w[nw] != 0);
    g += ng + (g[ng] != 0);
  }
}
