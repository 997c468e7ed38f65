/* The table of the language (dsl.def) at run time: registers functions, names what there is. */
#include "frontend/dsl.h"

#define DSL_FN(owner, name, on, ops, signature, example, text)                                     \
  {DSL_OF_##owner, #name, on, ops, signature, example, text, dsl_fn_##owner##_##name},
#define DSL_LUA(owner, name, on, ops, signature, example, text)                                    \
  {DSL_OF_##owner, #name, on, ops, signature, example, text, NULL},
#define DSL_VALUE(owner, name, type, text) {DSL_OF_##owner, #name, "", "", type, "", text, NULL},
#define DSL_PART(title, text)              {DSL_OF_part, title, "", "", "", "", text, NULL},
static const struct dsl_entry entries[] = {
#include "frontend/dsl.def"
};

const struct dsl_entry *dsl_entries(uint32_t *n) {
  *n = sizeof entries / sizeof *entries;
  return entries;
}

/* ---- calls ---- */

/* How many arguments a signature lists; -1: any number. */
static int n_params(const char *signature) {
  if (signature[1] == ')')
    return 0;
  int n = 1, depth = 0;
  for (const char *p = signature + 1; *p && (depth || *p != ')'); p++) {
    if (!depth && str_starts(p, "...:"))
      return -1;
    n += !depth && *p == ',';
    depth += (*p == '(' || *p == '{' || *p == '<') - (*p == ')' || *p == '}' || *p == '>');
  }
  return n;
}

static bool is_method(const struct dsl_entry *e) {
  return e->owner != DSL_OF_global;
}

/* Calls the entry's function: with its object, and no more arguments than it takes; its errors
 * name it. */
static int call_entry(lua_State *L) {
  struct fe_file *f = dsl_of(L);
  const struct dsl_entry *e = lua_touserdata(L, lua_upvalueindex(3));
  fe_set_calling(f->fe, e->name);
  int first = is_method(e) ? 2 : 1, most = n_params(e->signature), n = lua_gettop(L);
  bool object = e->owner == DSL_OF_rng ? lua_istable(L, 1) : lua_isuserdata(L, 1);
  if (is_method(e) && !object)
    fe_error(f->fe, DIAG_OPERAND, "%s is a method: call it with a colon, x:%s(...)", e->name,
             e->name);
  while (n >= first && lua_isnil(L, n) && most >= 0 && n - first + 1 > most)
    n--;
  if (most >= 0 && n - first + 1 > most) {
    static const char *const counts[] = {"no", "1", "2", "3", "4"};
    fe_soft_error(f->fe, DIAG_OPERAND, "%s takes %s%s argument%s, got %d: %s%s", e->name,
                  strchr(e->signature, '?') ? "at most " : "", most < 5 ? counts[most] : "fewer",
                  most == 1 ? "" : "s", n - first + 1, e->name, e->signature);
    dsl_push(f, NULL);
    fe_set_calling(f->fe, NULL);
    return 1;
  }
  lua_settop(L, n);
  int results = e->fn(L);
  fe_set_calling(f->fe, NULL);
  return results;
}

void dsl_register_all(lua_State *L, struct fe_file *f, enum dsl_owner owner) {
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
    if (entries[i].owner != owner || !entries[i].fn)
      continue;
    lua_pushlightuserdata(L, (void *)(uintptr_t)fe_lib_host_of(f->fe));
    lua_pushlightuserdata(L, f);
    lua_pushlightuserdata(L, (void *)(uintptr_t)&entries[i]);
    lua_pushcclosure(L, call_entry, 3);
    lua_setfield(L, -2, entries[i].name);
  }
}

const char *const *dsl_names(struct fe_file *f, enum dsl_owner owner, uint32_t *n) {
  const char **names = ARENA_ARRAY(fe_arena(f->fe), const char *, sizeof entries / sizeof *entries);
  *n = 0;
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
    if (entries[i].owner == owner)
      names[(*n)++] = entries[i].name;
  return names;
}

bool dsl_is_named(enum dsl_owner owner, const char *name) {
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
    if (entries[i].owner == owner && str_eq(entries[i].name, name))
      return true;
  return false;
}

/* ---- distance of names ---- */

/* Edit distance, small strings. */
static uint32_t distance(const char *a, const char *b) {
  enum { MAX = 32 };
  size_t na = strlen(a), nb = strlen(b);
  if (na >= MAX || nb >= MAX)
    return MAX;
  uint32_t row[MAX + 1];
  for (size_t j = 0; j <= nb; j++)
    row[j] = (uint32_t)j;
  for (size_t i = 1; i <= na; i++) {
    uint32_t diag = row[0];
    row[0] = (uint32_t)i;
    for (size_t j = 1; j <= nb; j++) {
      uint32_t best = diag + (a[i - 1] != b[j - 1]);
      diag = row[j];
      if (row[j] + 1 < best)
        best = row[j] + 1;
      if (row[j - 1] + 1 < best)
        best = row[j - 1] + 1;
      row[j] = best;
    }
  }
  return row[nb];
}

const char *dsl_nearest(struct fe_file *f, const char *name, const char *const *names, uint32_t n) {
  const char *best = NULL;
  size_t len = strlen(name);
  uint32_t best_d = len > 4 ? 3 : len > 1 ? 2 : 1; /* suggestions are nearer than this */
  for (uint32_t i = 0; i < n; i++) {
    uint32_t d = distance(name, names[i]);
    if (d < best_d) {
      best_d = d;
      best = names[i];
    }
  }
  return best ? arena_printf(fe_arena(f->fe), " (did you mean `%s`?)", best) : "";
}
