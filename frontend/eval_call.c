/* Calls: activations of kernel functions, the C function behind every kernel closure, protected
 * calls, and the limits that calls are checked against.
 *
 * A kernel function that calls a kernel function does not go through lua_call: the callee's
 * activation lies on the same Lua frame, above the caller's. lua_call, and with it `tramp`, is used
 * only from C: metamethods, pcall, sort, gsub. There Lua's own limit on nested C calls holds. */
#define _POSIX_C_SOURCE 200809L

#include "frontend/eval.h"

#include "base/check.h"

#include <time.h>

#define FUEL       2048 /* steps between two looks at the clock */
#define STACK_STEP 2048 /* bytes of C stack between two checks of the Lua stack */
#define STACK_ROOM 600  /* Lua stack slots that code on that much C stack can use */

/* ---- limits ---- */

static double monotonic_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Called once per protected call. */
void fe_start_limits(struct fe_state *fe) {
  fe->idle_at = DIAG_NOWHERE;
  fe->deadline = monotonic_seconds() + fe->host.limits.seconds;
  fe->steps = fe->host.limits.steps;
  fe->fuel = 0;
}

static void check_clock(struct fe_state *fe) {
  if (fe->host.interrupted && fe->host.interrupted(fe->host.user))
    fe_error(fe, DIAG_INTERRUPTED, "interrupted");
  if (monotonic_seconds() > fe->deadline)
    fe_error(fe, DIAG_TIME_LIMIT, "the kernel file ran for longer than its limit of %g seconds",
             fe->host.limits.seconds);
}

static _Noreturn void out_of_steps(struct fe_state *fe) {
  fe_error(fe, DIAG_STEP_LIMIT,
           "the kernel file ran for more than its limit of %lld steps (an endless loop?)",
           (long long)fe->host.limits.steps);
}

void fe_refuel(struct fe_state *fe) {
  if (fe->steps <= 0)
    out_of_steps(fe);
  check_clock(fe);
  fe->fuel = fe->steps < FUEL ? (int32_t)fe->steps : FUEL;
  fe->steps -= fe->fuel--;
}

void fe_charge(struct fe_state *fe, uint64_t steps) {
  if (steps <= (uint64_t)fe->fuel && fe->fuel >= 0) {
    fe->fuel -= (int32_t)steps;
    return;
  }
  uint64_t left = (uint64_t)fe->steps + (uint64_t)(fe->fuel > 0 ? fe->fuel : 0);
  if (steps > left)
    out_of_steps(fe);
  fe->steps = (int64_t)(left - steps);
  fe->fuel = 0;
  check_clock(fe);
}

static _Noreturn void too_deep(struct fe_state *fe) {
  unsigned calls = 0;
  for (const struct fe_act *A = fe->act; A; A = A->up)
    calls++;
  if (calls < 4)
    fe_error(fe, DIAG_DEPTH_LIMIT,
             "expression or block nested deeper than the C stack limit allows");
  const char *name = fe->act->func->name;
  fe_error(fe, DIAG_DEPTH_LIMIT, "recursion deeper than %u calls%s%s%s", calls,
           name ? " (in '" : "", name ? name : "", name ? "')" : "");
}

static void lua_stack_room(struct fe_state *fe, int n) {
  if (!fe_has_stack(fe->L, n))
    too_deep(fe);
}

bool fe_has_stack(lua_State *L, int n) {
  if (lua_checkstack(L, n))
    return true;
  struct fe_state *fe = fe_of(L);
  if (fe->over_limit || fe->host_failed)
    fe_out_of_memory(fe);
  return false;
}

void fe_need_stack(lua_State *L, int n, const char *what) {
  if (!fe_has_stack(L, n))
    luaL_error(L, "stack overflow (%s)", what);
}

void fe_check_stack(struct fe_state *fe) {
  if (fe_stack_over(fe->stack_base, fe->host.limits.c_stack))
    too_deep(fe);
  lua_stack_room(fe, STACK_ROOM);
  fe->stack_checked = (const char *)__builtin_frame_address(0) - STACK_STEP;
}

/* ---- activations ---- */

static void grow_stamps(struct fe_state *fe, uint32_t need) {
  uint32_t cap = fe->cap_stamps ? fe->cap_stamps : 256;
  while (cap < need)
    cap *= 2;
  struct fe_stamp *p =
      mem_resize(&fe->mem, fe->stamps, fe->cap_stamps * sizeof *p, cap * sizeof *p);
  if (!p)
    fe_out_of_memory(fe);
  fe->stamps = p;
  fe->cap_stamps = cap;
}

struct fe_act *fe_push_act(struct fe_state *fe, const struct fe_func *f) {
  struct fe_act *up = fe->act, *A = up ? up->down : fe->first_act;
  if (!A) {
    A = ARENA_NEW(&fe->arena, struct fe_act);
    if (up)
      up->down = A;
    else
      fe->first_act = A;
  }
  uint32_t stamps = up ? up->stamps + up->func->n_slots : 0;
  if (stamps + f->n_slots > fe->cap_stamps)
    grow_stamps(fe, stamps + f->n_slots);
  A->func = f;
  A->up = up;
  A->node = f->body;
  A->closure = 0;
  A->va = A->n_va = 0;
  A->stamps = stamps;
  A->has_callers = false;
  A->from_c = false;
  fe->act = A;
  return A;
}

/* Slots are laid out, the arguments lie in the first ones: makes them parameters. */
static void declare_params(struct fe_state *fe, struct fe_act *A) {
  const struct fe_func *f = A->func;
  for (uint32_t i = 0; i < f->n_params; i++) {
    struct fe_stamp *s = &fe->stamps[A->stamps + i];
    s->born = fe->serial;
    s->logged = 0;
    if (f->params[i]->boxed) {
      lua_pushvalue(fe->L, A->base + (int)i);
      fe_declare(fe, A, f->params[i]);
    }
  }
}

/* Arguments are at `at`..., n of them, at the top. */
static void lay_out(struct fe_state *fe, struct fe_act *A, int at, int n) {
  lua_State *L = fe->L;
  const struct fe_func *f = A->func;
  int params = (int)f->n_params;
  lua_stack_room(fe, (int)f->n_slots + STACK_ROOM);
  if (f->is_vararg) {
    A->va = at;
    A->n_va = n;
    A->base = at + n;
    for (int i = 0; i < params && i < n; i++)
      lua_pushvalue(L, at + i);
  } else {
    A->base = at;
    if (n > params)
      lua_settop(L, at + params - 1);
  }
  lua_settop(L, A->base + (int)f->n_slots - 1);
  if (params)
    declare_params(fe, A);
}

static const struct fe_func *function_of(lua_State *L, int idx) {
  if (lua_tocfunction(L, idx) != fe_tramp)
    return NULL;
  lua_getupvalue(L, idx, 1);
  const struct fe_func *f = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return f;
}

int fe_tramp(lua_State *L) {
  struct fe_state *fe = fe_of(L);
  const struct fe_func *f = lua_touserdata(L, lua_upvalueindex(1));
  const char *checked = fe->stack_checked;
  struct fe_act *up = fe->act;
  if (fe->fatal) /* a __close metamethod on the way out */
    fe_rethrow(fe);
  fe_check_stack(fe);
  struct fe_act *A = fe_push_act(fe, f);
  A->from_c = true;
  lay_out(fe, A, 1, lua_gettop(L));
  fe_step(fe);
  enum fe_signal s = fe_exec_block(fe, A, f->body);
  fe->act = up;
  fe->stack_checked = checked;
  if (s == FE_GO_RETURN)
    fe->returned_at = fe_node_loc(A, fe->leaving);
  return s == FE_GO_RETURN ? fe->n_ret : 0;
}

static int call_kernel(struct fe_state *fe, const struct fe_func *f, int at, int want) {
  lua_State *L = fe->L;
  const char *checked = fe->stack_checked;
  if (fe_stack_over(fe->stack_base, fe->host.limits.c_stack))
    too_deep(fe);
  fe->stack_checked = (const char *)__builtin_frame_address(0) - STACK_STEP;
  int n = lua_gettop(L) - at;
  struct fe_act *A = fe_push_act(fe, f);
  A->closure = at;
  lay_out(fe, A, at + 1, n);
  enum fe_signal s = fe_exec_block(fe, A, f->body);
  fe->act = A->up;
  fe->stack_checked = checked;
  if (s == FE_GO_RETURN)
    fe->returned_at = fe_node_loc(A, fe->leaving);
  int got = s == FE_GO_RETURN ? fe->n_ret : 0;
  if (got == 1 && want == 1) {
    lua_replace(L, at);
    lua_settop(L, at);
    return 1;
  }
  int from = lua_gettop(L) - got + 1;
  if (want >= 0 && got > want)
    got = want;
  for (int i = 0; i < got; i++)
    lua_copy(L, from + i, at + i);
  if (want < 0)
    want = got;
  lua_settop(L, at + got - 1);
  if (got < want) {
    fe_need_stack(L, want - got, "too many results");
    lua_settop(L, at + want - 1);
  }
  return want;
}

/* The value at `at` is no function: puts its __call metamethod in front. */
static void use_call_metamethod(struct fe_state *fe, struct fe_act *A, const struct fe_node *n,
                                int at) {
  if (fe_is_dev(fe->L, at)) {
    fe_check_defined(fe, at);
    fe_error(fe, DIAG_STAGE_OPERAND, "attempt to call %s", fe_describe(fe, at));
  }
  if (luaL_getmetafield(fe->L, at, "__call") == LUA_TNIL) {
    if (n->kind == FE_FOR_IN)
      fe_lua_error(fe, n, "attempt to call a %s value (for iterator 'for iterator')",
                   luaL_typename(fe->L, at));
    fe_operand_error(fe, A, n, n->kind == FE_METHOD ? n : n->a, at, "call");
  }
  lua_insert(fe->L, at);
}

/* Library functions must not see what is undefined. */
static void check_args(struct fe_state *fe, int at) {
  for (int i = lua_gettop(fe->L); i > at; i--)
    if (fe_is_dev(fe->L, i))
      fe_check_defined(fe, i);
}

/* What a refused op gave is called: gives unknown values, says nothing. */
static int call_unknown(struct fe_state *fe, int at, int want) {
  lua_settop(fe->L, at - 1);
  want = want < 0 ? 1 : want;
  lua_stack_room(fe, want + STACK_ROOM);
  for (int i = 0; i < want; i++)
    fe_push_unknown(fe);
  return want;
}

int fe_do_call(struct fe_state *fe, struct fe_act *A, const struct fe_node *n, int at, int want) {
  lua_State *L = fe->L;
  A->node = n;
  fe_step(fe);
  if (fe_is_unknown(fe_to_dev(L, at)))
    return call_unknown(fe, at, want);
  for (int i = 0; !lua_isfunction(L, at); i++) {
    if (i == 100) /* __call chains may be circular */
      fe_lua_error(fe, n, "too many nested __call metamethods");
    use_call_metamethod(fe, A, n, at);
  }
  const struct fe_func *f = function_of(L, at);
  if (f)
    return call_kernel(fe, f, at, want);
  if (fe->n_undef)
    check_args(fe, at);
  lua_call(L, lua_gettop(L) - at, want < 0 ? LUA_MULTRET : want);
  fe->act = A;
  return want < 0 ? lua_gettop(L) - at + 1 : want;
}

void fe_call(struct fe_state *fe, int nargs, int nresults) {
  struct fe_act *A = fe->act;
  lua_call(fe->L, nargs, nresults);
  fe->act = A;
}

/* ---- closures ---- */

/* Pushes what upvalue i of the running function holds: a box or a value. */
static void push_raw_upvalue(lua_State *L, const struct fe_act *A, uint32_t i) {
  if (A->closure)
    lua_getupvalue(L, A->closure, (int)i + 2);
  else
    lua_pushvalue(L, lua_upvalueindex((int)i + 2));
}

void fe_push_function(struct fe_state *fe, struct fe_act *A, const struct fe_func *f) {
  lua_State *L = fe->L;
  lua_stack_room(fe, (int)f->n_upvalues + 20);
  lua_pushlightuserdata(L, (void *)(uintptr_t)f);
  for (uint32_t i = 0; i < f->n_upvalues; i++) {
    const struct fe_upvalue *u = &f->upvalues[i];
    if (u->from_local)
      lua_pushvalue(L, fe_slot_index(A, u->var));
    else
      push_raw_upvalue(L, A, u->index);
  }
  lua_pushcclosure(L, fe_tramp, (int)f->n_upvalues + 1);
}

/* ---- protected calls ---- */

bool fe_pcall(struct fe_state *fe, int nargs, int handler) {
  lua_State *L = fe->L;
  struct fe_act *act = fe->act;
  struct fe_region_state *top = fe->top;
  const char *checked = fe->stack_checked;
  uint32_t closers = fe->closers.n;
  int at = lua_gettop(L) - nargs; /* the function */
  if (handler) {
    lua_pushvalue(L, handler);
    lua_pushcclosure(L, fe_on_error, 1);
  } else {
    lua_pushcfunction(L, fe_on_error);
  }
  lua_insert(L, at);
  int status = lua_pcall(L, nargs, LUA_MULTRET, at);
  fe->act = act;
  fe->stack_checked = checked;
  fe->closers.n = closers;
  if (status == LUA_ERRMEM)
    fe->fatal = FE_FATAL_MEMORY;
  if (status != LUA_OK && fe->fatal)
    fe_rethrow(fe);
  fe->final_error = false;
  lua_remove(L, at);
  if (status != LUA_OK)
    fe_region_unwind(fe, top);
  return status == LUA_OK;
}
