/* Errors and positions: diagnostics of the staging evaluator, the messages of Lua errors, and where
 * they happened.
 *
 * The C API gives errors no position, because every kernel function looks like a C function to Lua:
 * the message handler puts `file:line:col: ` in front of an error that the evaluator or a library
 * function called by it raised. Errors that have their place already say so with `final_error`. */
#include "frontend/eval.h"

#include "base/check.h"
#include "base/hash.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_NOTES 8 /* callers shown with an error */

/* ---- places ---- */

struct diag_loc fe_node_loc(const struct fe_act *A, const struct fe_node *n) {
  return (struct diag_loc){A->func->file, n->line, n->col};
}

struct diag_loc fe_where(const struct fe_state *fe) {
  return fe->act ? fe_node_loc(fe->act, fe->act->node) : fe->idle_at;
}

void fe_set_place(struct fe_state *fe, struct diag_loc loc) {
  fe->idle_at = loc;
}

struct diag_loc fe_returned_at(const struct fe_state *fe) {
  return fe->returned_at;
}

static uint32_t intern_stack(struct fe_state *fe, struct diag_loc loc, uint32_t up) {
  uint64_t key = hash_mix(hash_mix(((uint64_t)loc.file << 32) | loc.line, loc.col), up);
  uint32_t pos = 0, id;
  while (map_find_from(&fe->stack_index, key, &pos, &id)) {
    const struct fe_stack_entry *e = &fe->stacks.at[id - 1];
    if (e->up == up && e->loc.file == loc.file && e->loc.line == loc.line && e->loc.col == loc.col)
      return id;
  }
  struct fe_stack_entry e = {loc, up};
  VEC_PUSH(&fe->arena, &fe->stacks, e);
  map_add(&fe->stack_index, key, fe->stacks.n);
  return fe->stacks.n;
}

/* The stack of A's callers. Interned from the outermost on, without recursion: stacks can be
 * deep. */
static uint32_t callers_of(struct fe_state *fe, struct fe_act *A) {
  struct fe_act *B = A;
  while (!B->has_callers && B->up)
    B = B->up;
  for (;; B = B->down) {
    if (!B->has_callers)
      B->callers = B->up ? intern_stack(fe, fe_node_loc(B->up, B->up->node), B->up->callers) : 0;
    B->has_callers = true;
    if (B == A)
      return A->callers;
  }
}

uint32_t fe_callstack(struct fe_state *fe) {
  struct fe_act *A = fe->act;
  if (!A)
    return 0;
  if (!A->has_callers || A->stack_node != A->node) {
    A->stack = intern_stack(fe, fe_where(fe), callers_of(fe, A));
    A->stack_node = A->node; /* an operator asks several times */
  }
  return A->stack;
}

struct diag_loc fe_callstack_at(const struct fe_state *fe, uint32_t id, uint32_t *up) {
  *up = 0;
  if (id == 0 || id > fe->stacks.n)
    return DIAG_NOWHERE;
  *up = fe->stacks.at[id - 1].up;
  return fe->stacks.at[id - 1].loc;
}

uint32_t fe_callstack_count(const struct fe_state *fe) {
  return fe->stacks.n;
}

const char *fe_place(struct fe_state *fe, struct diag_loc loc) {
  return arena_printf(&fe->trace, "%s:%u:%u", diag_file_name(fe->host.diags, loc.file), loc.line,
                      loc.col);
}

static void push_place(struct fe_state *fe, struct diag_loc loc) {
  lua_pushfstring(fe->L, "%s:%d:%d: ", diag_file_name(fe->host.diags, loc.file), (int)loc.line,
                  (int)loc.col);
}

static bool is_tramp(lua_State *L, lua_Debug *ar) {
  lua_getinfo(L, "f", ar);
  bool yes = lua_tocfunction(L, -1) == fe_tramp;
  lua_pop(L, 1);
  return yes;
}

/* Pushes the position of a level as luaL_where counts them: each activation in the frame of a tramp
 * is one level, every other C function another. */
void fe_push_where(struct fe_state *fe, int level) {
  lua_State *L = fe->L;
  const struct fe_act *A = fe->act;
  lua_Debug ar;
  for (int i = 1; level > 0 && A && lua_getstack(L, i, &ar); i++) {
    if (!is_tramp(L, &ar)) {
      level--;
      continue;
    }
    for (bool last = false; A && !last; A = A->up) {
      if (--level == 0) {
        push_place(fe, fe_node_loc(A, A->node));
        return;
      }
      last = A->from_c;
    }
  }
  lua_pushliteral(L, "");
}

/* ---- diagnostics ---- */

_Noreturn void fe_rethrow(struct fe_state *fe) {
  /* Needs no memory. Functions of the library get to see it, as the second argument of a __close
   * metamethod: to them it is an unknown value. Kernel code does not run any more (fe_tramp). */
  lua_pushlightuserdata(fe->L, &fe->unknown);
  lua_error(fe->L);
  KILN_UNREACHABLE();
}

static bool same_loc(struct diag_loc a, struct diag_loc b) {
  return a.file == b.file && a.line == b.line && a.col == b.col;
}

static bool was_reported(const struct fe_state *fe, enum diag_severity sev, enum diag_id id,
                         struct diag_loc loc, const char *text) {
  const struct diag_sink *s = fe->host.diags;
  for (uint32_t i = fe->first_diag; i < s->list.n; i++) {
    const struct diag *d = &s->list.at[i];
    if (d->id == id && d->severity == sev && same_loc(d->loc, loc) && str_eq(d->message, text))
      return true;
  }
  return false;
}

static void add_caller_notes(struct fe_state *fe, uint32_t stack) {
  uint32_t up;
  fe_callstack_at(fe, stack, &up);
  for (int i = 0; up; i++) {
    struct diag_loc loc = fe_callstack_at(fe, up, &up);
    if (i == MAX_NOTES) {
      diag_note(fe->host.diags, DIAG_NOWHERE, "further callers are not shown");
      return;
    }
    diag_note(fe->host.diags, loc, "called from here");
  }
}

static void report_text(struct fe_state *fe, enum diag_severity sev, enum diag_id id,
                        struct diag_loc loc, uint32_t stack, const char *text) {
  if (was_reported(fe, sev, id, loc, text))
    return;
  diag_report(fe->host.diags, sev, id, loc, "%s", text);
  if (sev == DIAG_ERROR) {
    add_caller_notes(fe, stack);
    if (++fe->n_errors >= fe->host.diags->max_errors) {
      fe->fatal = FE_FATAL_DIAG;
      fe_rethrow(fe);
    }
  }
}

void fe_set_calling(struct fe_state *fe, const char *name) {
  fe->calling = name;
  fe->calling_act = fe->act;
  fe->calling_node = fe->act ? fe->act->node : NULL;
}

static bool is_word(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

static bool has_word(const char *text, const char *word) {
  size_t n = strlen(word);
  for (const char *p = text; (p = strstr(p, word)) != NULL; p++)
    if ((p == text || !is_word(p[-1])) && !is_word(p[n]))
      return true;
  return false;
}

void fe_report_at(struct fe_state *fe, enum diag_severity sev, enum diag_id id, struct diag_loc loc,
                  const char *fmt, va_list ap) {
  struct strbuf b = {.arena = &fe->trace};
  sb_vprintf(&b, fmt, ap);
  /* A call that an error unwound leaves its name behind; another call is at another node. */
  bool in_call = fe->calling && fe->act && fe->calling_act == fe->act &&
                 fe->calling_node == fe->act->node && same_loc(loc, fe_where(fe));
  const char *text = sb_str(&b);
  if (in_call && sev == DIAG_ERROR && !has_word(text, fe->calling))
    text = arena_printf(&fe->trace, "%s: %s", fe->calling, text);
  report_text(fe, sev, id, loc, sev == DIAG_ERROR ? fe_callstack(fe) : 0, text);
}

#define REPORT(sev, loc)                                                                           \
  do {                                                                                             \
    va_list ap;                                                                                    \
    va_start(ap, fmt);                                                                             \
    fe_report_at(fe, (sev), id, (loc), fmt, ap);                                                   \
    va_end(ap);                                                                                    \
  } while (0)

_Noreturn void fe_error(struct fe_state *fe, enum diag_id id, const char *fmt, ...) {
  REPORT(DIAG_ERROR, fe_where(fe));
  fe->fatal = FE_FATAL_DIAG;
  fe_rethrow(fe);
}

_Noreturn void fe_error_at(struct fe_state *fe, enum diag_id id, struct diag_loc loc,
                           const char *fmt, ...) {
  REPORT(DIAG_ERROR, loc);
  fe->fatal = FE_FATAL_DIAG;
  fe_rethrow(fe);
}

void fe_soft_error(struct fe_state *fe, enum diag_id id, const char *fmt, ...) {
  REPORT(DIAG_ERROR, fe_where(fe));
}

void fe_soft_error_at(struct fe_state *fe, enum diag_id id, struct diag_loc loc, const char *fmt,
                      ...) {
  REPORT(DIAG_ERROR, loc);
}

void fe_warn(struct fe_state *fe, enum diag_id id, struct diag_loc loc, const char *fmt, ...) {
  REPORT(DIAG_WARNING, loc);
}

void fe_report_memory(struct fe_state *fe) {
  struct diag_sink *s = fe->host.diags;
  size_t limit = fe->host.limits.memory;
  if (fe->over_limit)
    diag_report(s, DIAG_ERROR, DIAG_MEMORY_LIMIT, fe_where(fe),
                "the kernel file needs more memory than its limit of %zu %s",
                limit >> 20 ? limit >> 20 : limit, limit >> 20 ? "MiB" : "bytes");
  else
    diag_report(s, DIAG_ERROR, DIAG_NO_MEMORY, fe_where(fe), "out of memory");
  fe->n_errors++;
}

/* ---- Lua errors ---- */

_Noreturn void fe_lua_error(struct fe_state *fe, const struct fe_node *n, const char *fmt, ...) {
  va_list ap;
  fe->act->node = n;
  push_place(fe, fe_where(fe));
  va_start(ap, fmt);
  lua_pushvfstring(fe->L, fmt, ap);
  va_end(ap);
  lua_concat(fe->L, 2);
  fe->final_error = true;
  lua_error(fe->L);
  KILN_UNREACHABLE();
}

static const char *type_name(lua_State *L, int idx) {
  if (luaL_getmetafield(L, idx, "__name") == LUA_TSTRING)
    return lua_tostring(L, -1);
  return luaL_typename(L, idx);
}

/* " (local 'x')": what stock Lua says of the operand. Pushes the text. */
static void push_operand_name(struct fe_state *fe, const struct fe_node *n) {
  lua_State *L = fe->L;
  switch (n->kind) {
  case FE_LOCAL: lua_pushfstring(L, " (local '%s')", n->u.var->name->s); return;
  case FE_UPVALUE: lua_pushfstring(L, " (upvalue '%s')", n->u.var->name->s); return;
  case FE_GLOBAL: lua_pushfstring(L, " (global '%s')", n->u.name->s); return;
  case FE_FIELD: lua_pushfstring(L, " (field '%s')", n->u.name->s); return;
  case FE_METHOD: lua_pushfstring(L, " (method '%s')", n->u.name->s); return;
  case FE_STRING: lua_pushfstring(L, " (constant '%s')", n->u.name->s); return;
  case FE_INDEX:
    if (n->b->kind == FE_STRING)
      lua_pushfstring(L, " (field '%s')", n->b->u.name->s);
    else if (n->b->kind == FE_INTEGER)
      lua_pushliteral(L, " (field 'integer index')");
    else
      lua_pushliteral(L, " (field '?')");
    return;
  default: lua_pushliteral(L, ""); return;
  }
}

_Noreturn void fe_operand_error(struct fe_state *fe, const struct fe_act *A,
                                const struct fe_node *at, const struct fe_node *operand, int idx,
                                const char *what) {
  (void)A;
  idx = lua_absindex(fe->L, idx);
  lua_checkstack(fe->L, 10);
  const char *type = type_name(fe->L, idx);
  push_operand_name(fe, operand);
  const char *meant = "";
  if (operand->kind == FE_GLOBAL && lua_isnil(fe->L, idx) && fe->tracer && fe->tracer->suggest)
    meant = fe->tracer->suggest(fe->tracer->user, operand->u.name->s);
  fe_lua_error(fe, at, "attempt to %s a %s value%s%s", what, type, lua_tostring(fe->L, -1), meant);
}

_Noreturn void fe_no_integer(struct fe_state *fe, const struct fe_node *at,
                             const struct fe_node *operand) {
  push_operand_name(fe, operand);
  fe_lua_error(fe, at, "number%s has no integer representation", lua_tostring(fe->L, -1));
}

/* A C stack overflow inside Lua itself: nested calls through pcall, metamethods, sort, gsub. */
static bool is_c_overflow(const char *message) {
  return strstr(message, "C stack overflow") != NULL;
}

int fe_on_error(lua_State *L) {
  struct fe_state *fe = fe_of(L);
  bool final = fe->final_error;
  fe->final_error = false;
  if (fe->fatal)
    return 1;
  fe->error_stack = fe_callstack(fe);
  if (!final && lua_type(L, 1) == LUA_TSTRING) {
    lua_Debug ar;
    if (is_c_overflow(lua_tostring(L, 1)))
      fe_error(
          fe, DIAG_DEPTH_LIMIT,
          "recursion through pcall, metamethods or library functions is deeper than Lua's limit "
          "of about 190 calls");
    bool ours = lua_getstack(L, 1, &ar) && is_tramp(L, &ar);
    if (!ours)
      ours = lua_getstack(L, 2, &ar) && is_tramp(L, &ar);
    if (ours && fe->act) {
      push_place(fe, fe_where(fe));
      lua_insert(L, 1);
      lua_concat(L, 2);
    }
  }
  if (lua_toboolean(L, lua_upvalueindex(1))) {
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
  }
  return 1;
}

/* "file:3:7: text" of a file that we know: its place, and the text without it. */
static const char *split_place(const struct fe_state *fe, const char *text, struct diag_loc *loc) {
  for (uint32_t f = 1; f < fe->host.diags->files.n; f++) {
    const char *name = diag_file_name(fe->host.diags, f);
    size_t n = strlen(name);
    unsigned line, col;
    int used = 0;
    if (strncmp(text, name, n) == 0 && sscanf(text + n, ":%u:%u: %n", &line, &col, &used) == 2 &&
        used > 0) {
      *loc = (struct diag_loc){f, line, col};
      return text + n + used;
    }
  }
  return text;
}

void fe_report_uncaught(struct fe_state *fe) {
  lua_State *L = fe->L;
  uint32_t up;
  struct diag_loc loc = fe_callstack_at(fe, fe->error_stack, &up);
  const char *text;
  if (lua_type(L, -1) == LUA_TSTRING || lua_type(L, -1) == LUA_TNUMBER ||
      luaL_getmetafield(L, -1, "__tostring") != LUA_TNIL) {
    if (lua_type(L, -1) == LUA_TFUNCTION)
      lua_pop(L, 1);
    text = split_place(fe, luaL_tolstring(L, -1, NULL), &loc);
  } else {
    text = lua_pushfstring(L, "error object is a %s value", luaL_typename(L, -1));
  }
  report_text(fe, DIAG_ERROR, DIAG_LUA_ERROR, loc, fe->error_stack, text);
}

/* ---- descriptions ---- */

const char *fe_describe(struct fe_state *fe, int idx) {
  lua_State *L = fe->L;
  switch (lua_type(L, idx)) {
  case LUA_TLIGHTUSERDATA: {
    struct fe_dev *dev = lua_touserdata(L, idx);
    if (dev->kind == FE_DEV_UNDEF)
      return "an undefined value";
    if (fe_is_unknown(dev))
      return "an unknown value";
    return fe->tracer->describe(fe->tracer->user, dev);
  }
  case LUA_TNUMBER: {
    lua_pushvalue(L, idx);
    const char *digits = isnan(lua_tonumber(L, idx)) ? "nan" : lua_tostring(L, -1); /* no -nan */
    const char *text = arena_printf(&fe->trace, "number %s", digits);
    lua_pop(L, 1);
    return text;
  }
  case LUA_TBOOLEAN: return lua_toboolean(L, idx) ? "true" : "false";
  case LUA_TNONE: return "nothing";
  case LUA_TNIL: return "nil";
  case LUA_TSTRING: return "a string";
  case LUA_TTABLE: return "a table";
  case LUA_TFUNCTION: return "a function";
  default: return luaL_typename(L, idx);
  }
}

static const char *const op_texts[] = {
    "+", "-", "*",  "%",  "^", "/",  "//", "&",  "|",   "~",  "<<", ">>",
    "-", "~", "==", "~=", "<", "<=", ">",  ">=", "and", "or", "not"};
_Static_assert(sizeof op_texts / sizeof *op_texts == FE_OP_NOT + 1, "one text per operator");

const char *fe_op_text(enum fe_op op) {
  return op_texts[op];
}
