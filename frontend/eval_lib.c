/* What the sandbox library asks of the evaluator: fills its table of functions (lib.h). */
#include "frontend/eval.h"

static void charge(void *user, lua_State *L, uint64_t steps) {
  (void)L;
  fe_charge(user, steps);
}

/* The name of the expression that is called, as stock Lua gives it in argument errors. */
static const char *called_name(const struct fe_node *n) {
  switch (n->kind) {
  case FE_LOCAL:
  case FE_UPVALUE: return n->u.var->name->s;
  case FE_GLOBAL:
  case FE_FIELD: return n->u.name->s;
  case FE_INDEX:
    if (n->b->kind == FE_STRING)
      return n->b->u.name->s;
    return n->b->kind == FE_INTEGER ? "integer index" : "?";
  default: return NULL;
  }
}

/* Only what a kernel function called directly has a name; pcall(f) hides it, as in stock Lua. */
static void site(void *user, lua_State *L, struct fe_lib_site *out) {
  const struct fe_state *fe = user;
  lua_Debug ar;
  *out = (struct fe_lib_site){NULL, false};
  if (!fe->act || !lua_getstack(L, 1, &ar))
    return;
  lua_getinfo(L, "f", &ar);
  bool direct = lua_tocfunction(L, -1) == fe_tramp;
  lua_pop(L, 1);
  const struct fe_node *n = fe->act->node;
  if (!direct)
    return;
  if (n->kind == FE_METHOD)
    *out = (struct fe_lib_site){n->u.name->s, true};
  else if (n->kind == FE_CALL)
    out->name = called_name(n->a);
  else if (n->kind == FE_FOR_IN)
    out->name = "for iterator";
}

static void raise_at(void *user, lua_State *L, int level) {
  struct fe_state *fe = user;
  if (level > 0 && lua_type(L, -1) == LUA_TSTRING) {
    fe_push_where(fe, level);
    lua_insert(L, -2);
    lua_concat(L, 2);
  }
  fe->final_error = true;
  lua_error(L);
}

static void refuse(void *user, lua_State *L, enum diag_id id, const char *message) {
  (void)L;
  fe_error(user, id, "%s", message);
}

static void will_write(void *user, lua_State *L, int table, int key) {
  (void)L;
  fe_will_write(user, table, key);
}

static void will_set_meta(void *user, lua_State *L, int table) {
  (void)L;
  fe_will_set_meta(user, table);
}

static void born(void *user, lua_State *L, int idx) {
  (void)L;
  fe_table_born(user, idx);
}

static void did_read(void *user, lua_State *L, int value, int table, int key) {
  (void)L;
  (void)table;
  (void)key;
  fe_check_defined(user, value);
}

/* Ends the run without a further word: an error was reported already. */
static _Noreturn void give_up(struct fe_state *fe) {
  fe->fatal = FE_FATAL_DIAG;
  fe_rethrow(fe);
}

static void did_len(void *user, lua_State *L, int value) {
  struct fe_state *fe = user;
  struct fe_undef *u = lua_touserdata(L, value);
  if (u->dev.kind != FE_DEV_UNDEF)
    return;
  if (!u->reported && u->grown)
    fe_soft_error(fe, DIAG_STAGE_CARRY, "%s", u->grown);
  else if (!u->reported)
    fe_soft_error(fe, DIAG_STAGE_UNDEFINED, "%s", u->reason);
  u->reported = true;
  give_up(fe);
}

static void will_refuse(void *user, lua_State *L, int idx) {
  if (fe_is_unknown(fe_to_dev(L, idx)))
    give_up(user);
}

static const char *dev_type(void *user, lua_State *L, int idx) {
  const struct fe_state *fe = user;
  const struct fe_dev *dev = lua_touserdata(L, idx);
  return fe_is_unknown(dev) ? "unknown" : fe->tracer->type_name(fe->tracer->user, dev);
}

static const char *dev_name(void *user, lua_State *L, int idx) {
  return lua_pushstring(L, fe_describe(user, idx));
}

static int dev_assert(void *user, lua_State *L) {
  struct fe_state *fe = user;
  if (fe_is_unknown(fe_to_dev(L, 1)))
    return lua_gettop(L);
  return fe->tracer->dev_assert(fe->tracer->user, L);
}

static int dev_print(void *user, lua_State *L) {
  struct fe_state *fe = user;
  for (int i = lua_gettop(L); i > 0; i--)
    if (fe_is_unknown(fe_to_dev(L, i)))
      return 0;
  return fe->tracer->dev_print(fe->tracer->user, L);
}

static void print_line(void *user, lua_State *L, const char *text, size_t n) {
  (void)L;
  fe_print(user, text, n);
  fe_print(user, "\n", 1);
}

static bool less(void *user, lua_State *L, int a, int b, const char *function) {
  (void)L;
  return fe_less(user, a, b, function);
}

static bool protect(void *user, lua_State *L, int nargs, int handler) {
  (void)L;
  return fe_pcall(user, nargs, handler);
}

static bool read_module(void *user, lua_State *L, const char *path) {
  struct fe_state *fe = user;
  struct strbuf text = {.arena = &fe->trace};
  const char *error = NULL;
  if (fe->host.read_module && fe->host.read_module(fe->host.user, path, &text, &error)) {
    lua_pushlstring(L, sb_str(&text), text.n);
    return true;
  }
  lua_pushstring(L, error); /* NULL: nil */
  return false;
}

static void load_module(void *user, lua_State *L, const char *path, int idx) {
  struct fe_state *fe = user;
  size_t n;
  const char *text = lua_tolstring(L, idx, &n), *root = fe->host.root;
  const char *name = root && *root ? arena_printf(&fe->trace, "%s/%s", root, path) : path;
  fe_load_text(fe, name, text, n);
}

static bool has_stack(void *user, lua_State *L, int n) {
  (void)user;
  return fe_has_stack(L, n);
}

void fe_lib_host_init(struct fe_state *fe) {
  fe->lib = (struct fe_lib_host){.user = fe,
                                 .charge = charge,
                                 .site = site,
                                 .raise = raise_at,
                                 .refuse = refuse,
                                 .has_stack = has_stack,
                                 .will_write = will_write,
                                 .will_set_meta = will_set_meta,
                                 .born = born,
                                 .did_read = did_read,
                                 .did_len = did_len,
                                 .will_refuse = will_refuse,
                                 .dev_type = dev_type,
                                 .dev_name = dev_name,
                                 .dev_assert = dev_assert,
                                 .dev_print = dev_print,
                                 .print = print_line,
                                 .less = less,
                                 .protect = protect,
                                 .read_module = read_module,
                                 .load_module = load_module};
}

const struct fe_lib_host *fe_lib_host_of(const struct fe_state *fe) {
  return &fe->lib;
}
