/* Life of an evaluator: the sandboxed Lua state on the host's allocator, files loaded into it, and
 * the protected calls in which everything else runs.
 *
 * Every byte - Lua's, the arenas', the evaluator's own arrays - is counted against one limit. When
 * memory runs out inside Lua, arenas raise a Lua error (fe_trap) that no pcall catches. */
#include "frontend/eval.h"

#include "base/check.h"

#include <string.h>

#define MIN_COLLECT 4096 /* KiB of garbage that a trace may leave before a full collection */

/* ---- memory ---- */

static void *count_alloc(void *user, void *p, size_t old_size, size_t new_size) {
  struct fe_state *fe = user;
  const struct mem_alloc *mem = fe->host.mem;
  if (new_size > old_size) {
    size_t more = new_size - old_size;
    if (fe->used > fe->host.limits.memory || more > fe->host.limits.memory - fe->used) {
      fe->over_limit = true;
      return NULL;
    }
  }
  void *q = mem->fn(mem->user, p, old_size, new_size);
  if (!q && new_size) {
    if (new_size > old_size)
      fe->host_failed = true;
    return NULL;
  }
  fe->used += new_size - old_size;
  return q;
}

static void *lua_alloc(void *user, void *p, size_t old_size, size_t new_size) {
  if (!p)
    old_size = 0; /* Lua passes the kind of object */
  if (!p && new_size == 0)
    return NULL;
  return count_alloc(user, p, old_size, new_size);
}

_Noreturn void fe_out_of_memory(struct fe_state *fe) {
  fe->fatal = FE_FATAL_MEMORY;
  fe_rethrow(fe);
}

static void trap_raise(void *user) {
  fe_out_of_memory(user);
}

/* ---- set-up ---- */

/* All device values share a metatable: it refuses them where only Lua itself gets to see them. */
static int refuse_device(lua_State *L) {
  struct fe_state *fe = fe_of(L);
  int idx = fe_is_dev(L, 1) ? 1 : 2;
  fe_check_defined(fe, idx);
  fe_error(fe, DIAG_STAGE_OPERAND, "%s used where a plain value is needed", fe_describe(fe, idx));
}

static void set_device_metatable(lua_State *L) {
  static const char *const events[] = {
      "__add",  "__sub", "__mul",  "__mod",   "__pow",      "__div",  "__idiv",
      "__band", "__bor", "__bxor", "__shl",   "__shr",      "__unm",  "__bnot",
      "__lt",   "__le",  "__len",  "__index", "__newindex", "__call", "__concat"};
  lua_pushlightuserdata(L, NULL);
  lua_newtable(L);
  for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
    lua_pushcfunction(L, refuse_device);
    lua_setfield(L, -2, events[i]);
  }
  lua_pushliteral(L, "device value");
  lua_setfield(L, -2, "__name");
  lua_pushboolean(L, 0);
  lua_setfield(L, -2, "__metatable");
  lua_setmetatable(L, -2);
  lua_pop(L, 1);
}

static int new_registry_table(lua_State *L) {
  lua_newtable(L);
  return luaL_ref(L, LUA_REGISTRYINDEX);
}

static int set_up(lua_State *L) {
  struct fe_state *fe = lua_touserdata(L, 1);
  arena_get(&fe->trace, 1); /* so that the mark keeps the first chunk */
  fe->trace_mark = arena_get_mark(&fe->trace);
  fe_names_init(&fe->names, &fe->arena);
  map_init(&fe->stack_index, &fe->arena);
  fe->journal_ref = new_registry_table(L);
  fe->index_ref = new_registry_table(L);
  fe->settled_ref = new_registry_table(L);
  set_device_metatable(L);
  fe_lib_open(L, &fe->lib);
  return 0;
}

static struct fe_limits with_defaults(struct fe_limits l) {
  if (!l.steps)
    l.steps = 100000000;
  if (!l.memory)
    l.memory = (size_t)256 << 20;
  if (l.seconds == 0)
    l.seconds = 10;
  if (!l.ops)
    l.ops = 100000;
  if (!l.c_stack)
    l.c_stack = (size_t)512 << 10;
  if (!l.host_mem)
    l.host_mem = (size_t)8 << 30;
  return l;
}

struct fe_state *fe_state_new(const struct fe_host *host) {
  struct fe_state *fe = mem_get0(host->mem, sizeof *fe);
  if (!fe) {
    diag_report(host->diags, DIAG_ERROR, DIAG_NO_MEMORY, DIAG_NOWHERE, "out of memory");
    return NULL;
  }
  fe->host = *host;
  fe->host.limits = with_defaults(host->limits);
  fe->mem = (struct mem_alloc){count_alloc, fe};
  fe->trap = (struct oom_trap){.raise = trap_raise, .user = fe};
  arena_init(&fe->arena, &fe->mem, &fe->trap);
  arena_init(&fe->trace, &fe->mem, &fe->trap);
  fe->unknown.dev = (struct fe_dev){.kind = FE_DEV_VALUE, .flags = FE_DEV_MASK | FE_DEV_UNKNOWN};
  fe_lib_host_init(fe);
  fe->c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  fe->L = lua_newstate(lua_alloc, fe);
  if (fe->L) {
    *(struct fe_state **)lua_getextraspace(fe->L) = fe;
    fe->stack_base = fe->stack_checked = __builtin_frame_address(0);
    lua_pushcfunction(fe->L, set_up);
    lua_pushlightuserdata(fe->L, fe);
    if (lua_pcall(fe->L, 1, 0, 0) == LUA_OK)
      return fe;
  }
  fe_report_memory(fe);
  fe_state_free(fe);
  return NULL;
}

void fe_state_free(struct fe_state *fe) {
  if (!fe)
    return;
  if (fe->L)
    lua_close(fe->L);
  mem_drop(&fe->mem, fe->stamps, fe->cap_stamps * sizeof *fe->stamps);
  mem_drop(&fe->mem, fe->out, fe->cap_out);
  arena_free(&fe->trace);
  arena_free(&fe->arena);
  KILN_ASSERT(fe->used == 0);
  if (fe->c_locale)
    freelocale(fe->c_locale);
  mem_drop(fe->host.mem, fe, sizeof *fe);
}

void fe_set_tracer(struct fe_state *fe, const struct fe_tracer *tracer) {
  fe->tracer = tracer;
}

/* ---- what others need ---- */

lua_State *fe_lua(const struct fe_state *fe) {
  return fe->L;
}

struct fe_state *fe_of(lua_State *L) {
  return *(struct fe_state **)lua_getextraspace(L);
}

const struct fe_host *fe_host_of(const struct fe_state *fe) {
  return &fe->host;
}

struct diag_sink *fe_diags(const struct fe_state *fe) {
  return fe->host.diags;
}

struct arena *fe_arena(struct fe_state *fe) {
  return &fe->arena;
}

struct arena *fe_trace_arena(struct fe_state *fe) {
  return &fe->trace;
}

struct oom_trap *fe_trap(struct fe_state *fe) {
  return &fe->trap;
}

void fe_restart_gc(struct fe_state *fe) {
  lua_State *L = fe->L;
  fe->gc_stopped = false;
  lua_gc(L, LUA_GCRESTART);
  if (lua_gc(L, LUA_GCCOUNT) > 2 * fe->gc_floor + MIN_COLLECT) {
    lua_gc(L, LUA_GCCOLLECT);
    fe->gc_floor = lua_gc(L, LUA_GCCOUNT);
  }
}

/* ---- files ---- */

static void syntax_error(void *user, enum diag_id id, struct diag_loc loc, const char *message) {
  fe_error_at(user, id, loc, "%s", message);
}

static void charge_parser(void *user, uint64_t steps) {
  fe_charge(user, steps);
}

static struct fe_func *find_file(const struct fe_state *fe, const char *name, const char *text,
                                 size_t n) {
  for (uint32_t i = 0; i < fe->files.n; i++) {
    const struct fe_file_entry *f = &fe->files.at[i];
    if (str_eq(f->name, name) && f->n == n && memcmp(f->text, text, n) == 0)
      return f->func;
  }
  return NULL;
}

void fe_load_text(struct fe_state *fe, const char *name, const char *text, size_t n) {
  struct fe_func *f = find_file(fe, name, text, n);
  if (!f) {
    struct fe_parser p = {.lex = {.arena = &fe->arena,
                                  .names = &fe->names,
                                  .L = fe->L,
                                  .fail = syntax_error,
                                  .user = fe},
                          .charge = charge_parser,
                          .stack_base = fe->stack_base,
                          .stack_limit = fe->host.limits.c_stack};
    uint32_t file = diag_add_file(fe->host.diags, name, text, n);
    if (!file)
      fe_out_of_memory(fe);
    struct fe_file_entry e = {
        .name = arena_strdup(&fe->arena, name), .text = arena_strndup(&fe->arena, text, n), .n = n};
    fe_charge(fe, fe_lib_byte_steps(n));
    e.func = f = fe_parse(&p, file, e.text, n);
    VEC_PUSH(&fe->arena, &fe->files, e);
  }
  lua_pushlightuserdata(fe->L, f);
  lua_pushcclosure(fe->L, fe_tramp, 1);
}

/* ---- protected calls ---- */

struct protected_call {
  void (*fn)(struct fe_state *fe, void *user);
  void *user;
};

static int run_call(lua_State *L) {
  const struct protected_call *c = lua_touserdata(L, 1);
  lua_settop(L, 0);
  fe_need_stack(L, 100, "too many values");
  c->fn(fe_of(L), c->user);
  return 0;
}

/* Reports an error whose value is argument 1, unless the diagnostic is out already. */
static int run_report(lua_State *L) {
  struct fe_state *fe = fe_of(L);
  lua_settop(L, 1);
  fe_report_uncaught(fe);
  return 0;
}

static int run_unwind(lua_State *L) {
  fe_region_unwind(fe_of(L), NULL);
  return 0;
}

/* Lua is as it was before the call. */
static void clean_up(struct fe_state *fe) {
  lua_State *L = fe->L;
  fe_flush_out(fe); /* what a failing trace printed is worth seeing */
  if (fe->top) {
    lua_pushcfunction(L, run_unwind);
    if (lua_pcall(L, 0, 0, 0) != LUA_OK)
      fe->broken = true;
  }
  lua_settop(L, 0);
  fe->act = NULL;
  fe->closers.n = 0;
  fe->final_error = false;
  if (fe->gc_stopped)
    fe_restart_gc(fe);
}

static void report_failure(struct fe_state *fe, int status) {
  lua_State *L = fe->L;
  if (status == LUA_ERRMEM)
    fe->fatal = FE_FATAL_MEMORY;
  if (!fe->fatal) {
    fe->act = NULL;
    lua_pushcfunction(L, run_report);
    lua_insert(L, -2);
    status = lua_pcall(L, 1, 0, 0);
    if (status != LUA_OK && status != LUA_ERRMEM && !fe->fatal) {
      /* The error object's own __tostring failed: say that instead. */
      fe->act = NULL;
      lua_settop(L, 0);
      lua_pushcfunction(L, run_report);
      lua_pushliteral(L, "error object is a value whose __tostring failed");
      status = lua_pcall(L, 1, 0, 0);
    }
    if (status != LUA_OK && fe->fatal != FE_FATAL_DIAG)
      fe->fatal = FE_FATAL_MEMORY;
  }
  if (fe->fatal == FE_FATAL_MEMORY)
    fe_report_memory(fe);
}

enum fe_status fe_protect(struct fe_state *fe, void (*fn)(struct fe_state *fe, void *user),
                          void *user) {
  lua_State *L = fe->L;
  if (fe->act || fe->top || fe->running) {
    fn(fe, user); /* inside another one */
    return FE_DONE;
  }
  if (fe->broken) {
    fe_report_memory(fe);
    return FE_NO_MEMORY;
  }
  struct protected_call c = {fn, user};
  /* This thread's alone; (locale_t)0 would change nothing. */
  locale_t callers_locale = uselocale(fe->c_locale);
  fe->running = true;
  fe->fatal = FE_NOT_FATAL;
  fe->over_limit = fe->host_failed = fe->final_error = false;
  fe->first_diag = fe->host.diags->list.n;
  fe->n_errors = 0;
  fe->error_stack = 0;
  fe->stack_base = fe->stack_checked = __builtin_frame_address(0);
  fe_start_limits(fe);
  lua_settop(L, 0);
  lua_pushcfunction(L, fe_on_error);
  lua_pushcfunction(L, run_call);
  lua_pushlightuserdata(L, &c);
  int status = lua_pcall(L, 1, 0, 1);
  if (status != LUA_OK)
    report_failure(fe, status);
  clean_up(fe);
  fe->running = false;
  uselocale(callers_locale);
  if (fe->broken || (fe->fatal == FE_FATAL_MEMORY && !fe->over_limit))
    return FE_NO_MEMORY;
  return fe->n_errors || status != LUA_OK ? FE_ERRORS : FE_DONE;
}
