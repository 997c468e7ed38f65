/* The Lua parser alone: any bytes are taken or refused with one diagnostic, and what is refused is
 * what stock Lua refuses. Where either names a limit of its own (registers, nesting, memory) and
 * where Kiln refuses by rule (_ENV), the two may differ. */
#include "tests/fuzz/fuzz.h"

#include "frontend/stage.h"

#include <lauxlib.h>
#include <lua.h>
#include <string.h>

struct input {
  const char *text;
  size_t n;
};

static void load_only(struct fe_state *fe, void *user) {
  const struct input *in = user;
  fe_load_text(fe, "input.lua", in->text, in->n);
}

static bool names_a_limit(const char *message) {
  static const char *const words[] = {"too many", "limit",  "overflow",     "too deep",
                                      "too long", "memory", "C stack level"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strstr(message, words[i]))
      return true;
  return false;
}

/* As fe_load_text and luaL_loadfile do, but luaL_loadbuffer does not: without a byte order mark and
 * a first line that begins with #. */
static struct input without_head(struct input in) {
  if (in.n >= 3 && memcmp(in.text, "\xEF\xBB\xBF", 3) == 0)
    in = (struct input){in.text + 3, in.n - 3};
  if (in.n && in.text[0] == '#') {
    const char *end = memchr(in.text, '\n', in.n);
    size_t skip = end ? (size_t)(end - in.text) : in.n;
    in = (struct input){in.text + skip, in.n - skip};
  }
  return in;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct diag_sink diags;
  if (!diag_init(&diags, &mem_libc))
    return 0;
  struct fe_host host = {.mem = &mem_libc,
                         .diags = &diags,
                         .limits = {.memory = (size_t)64 << 20, .seconds = 60},
                         .root = ""};
  struct fe_state *fe = fe_state_new(&host);
  PROMISE(fe != NULL);
  struct input in = {(const char *)data, size};
  bool taken = fe_protect(fe, load_only, &in) == FE_DONE;
  PROMISE(taken == (diags.n_errors == 0));
  PROMISE(diags.n_errors <= 1);
  bool may_differ = !taken && (diags.list.at[0].id != DIAG_SYNTAX ||
                               strstr(diags.list.at[0].message, "too many") ||
                               strstr(diags.list.at[0].message, "variables"));
  if (!may_differ) {
    lua_State *L = luaL_newstate();
    PROMISE(L != NULL);
    struct input bare = without_head(in);
    bool stock = luaL_loadbufferx(L, bare.text, bare.n, "@input.lua", "t") == LUA_OK;
    if (stock != taken && (stock || !names_a_limit(lua_tostring(L, -1)))) {
      fprintf(stderr, "stock Lua: %s\nKiln: %s\n", stock ? "takes it" : lua_tostring(L, -1),
              taken ? "takes it" : diags.list.at[0].message);
      PROMISE(stock == taken);
    }
    lua_close(L);
  }
  fe_state_free(fe);
  diag_free(&diags);
  return 0;
}
