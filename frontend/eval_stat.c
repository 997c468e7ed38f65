/* Statements: blocks, variables, assignment, plain loops. A statement leaves the stack as it found
 * it and says how control goes on; only `return` leaves values, on top. What follows a device
 * condition or iterates over a device range is in region_if.c and region_loop.c. */
#include "frontend/eval_expr.h"

#include "base/check.h"

#include <math.h>

/* ---- variables ---- */

static void tell_name(struct fe_state *fe, const struct fe_var *v) {
  struct fe_dev *dev = fe_to_dev(fe->L, -1);
  if (dev && dev->kind != FE_DEV_UNDEF && !fe_is_unknown(dev))
    fe->tracer->named(fe->tracer->user, dev, v->name->s);
}

void fe_declare(struct fe_state *fe, struct fe_act *A, const struct fe_var *v) {
  lua_State *L = fe->L;
  tell_name(fe, v);
  struct fe_stamp *s = &fe->stamps[A->stamps + v->slot];
  s->born = fe->serial;
  s->logged = 0;
  if (v->boxed) {
    struct fe_box *box = lua_newuserdatauv(L, sizeof *box, 1);
    box->stamp = *s;
    box->seq = fe->n_boxes++;
    box->var = v;
    lua_insert(L, -2);
    lua_setiuservalue(L, -2, 1);
  }
  lua_replace(L, fe_slot_index(A, v));
}

void fe_assign_box(struct fe_state *fe, int idx) {
  struct fe_box *box = lua_touserdata(fe->L, idx);
  if (fe_must_log(fe, &box->stamp))
    fe_log_box(fe, idx);
  lua_setiuservalue(fe->L, idx, 1);
}

void fe_assign_local(struct fe_state *fe, struct fe_act *A, const struct fe_var *v) {
  tell_name(fe, v);
  int idx = fe_slot_index(A, v);
  if (v->boxed) {
    fe_assign_box(fe, idx);
    return;
  }
  if (fe_must_log(fe, &fe->stamps[A->stamps + v->slot]))
    fe_log_local(fe, A, v);
  lua_replace(fe->L, idx);
}

static void assign_upvalue(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  lua_State *L = fe->L;
  int i = (int)n->index + 2;
  if (!A->closure) {
    fe_assign_box(fe, lua_upvalueindex(i));
    return;
  }
  lua_getupvalue(L, A->closure, i);
  lua_insert(L, -2);
  fe_assign_box(fe, lua_gettop(L) - 1);
  lua_pop(L, 1);
}

static void assign_global(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  lua_State *L = fe->L;
  A->node = n;
  if (!fe->top) {
    lua_setglobal(L, n->u.name->s);
    fe->act = A;
    return;
  }
  lua_pushglobaltable(L);
  lua_insert(L, -2);
  lua_pushstring(L, n->u.name->s);
  lua_insert(L, -2);
  fe_set(fe, lua_gettop(L) - 2);
  lua_pop(L, 1);
}

void fe_set(struct fe_state *fe, int table) {
  lua_State *L = fe->L;
  struct fe_act *A = fe->act;
  int key = lua_gettop(L) - 1, t = lua_absindex(L, table);
  fe_need_stack(L, 10, "too many values");
  for (int i = 0; i < 2000; i++) {
    if (lua_istable(L, t)) {
      lua_pushvalue(L, key);
      bool present = lua_rawget(L, t) != LUA_TNIL;
      lua_pop(L, 1);
      if (present || luaL_getmetafield(L, t, "__newindex") == LUA_TNIL) {
        fe_will_write(fe, t, key);
        lua_pushvalue(L, key);
        lua_pushvalue(L, key + 1);
        lua_rawset(L, t);
        lua_settop(L, key - 1);
        return;
      }
    } else if (fe_is_dev(L, t) || luaL_getmetafield(L, t, "__newindex") == LUA_TNIL) {
      lua_pushvalue(L, key);
      lua_pushvalue(L, key + 1);
      lua_settable(L, t); /* raises */
    }
    if (lua_isfunction(L, -1)) {
      lua_pushvalue(L, t);
      lua_pushvalue(L, key);
      lua_pushvalue(L, key + 1);
      lua_call(L, 3, 0);
      fe->act = A;
      lua_settop(L, key - 1);
      return;
    }
    if (t == key + 2) /* the handler is the table to try next; it lies above key and value */
      lua_replace(L, key + 2);
    t = key + 2;
  }
  luaL_error(L, "'__newindex' chain too long; possibly a loop");
}

/* The object at `at` is no table. */
static void store_other(struct fe_state *fe, struct fe_act *A, const struct fe_node *target,
                        int at) {
  lua_State *L = fe->L;
  A->node = target;
  if (fe_is_dev(L, at)) {
    fe_check_defined(fe, at);
    if (!fe_is_unknown(lua_touserdata(L, at)))
      fe_soft_error(fe, DIAG_STAGE_OPERAND, "cannot assign to a field of %s: it never changes",
                    fe_describe(fe, at));
    lua_pop(L, 1);
    return;
  }
  if (luaL_getmetafield(L, at, "__newindex") == LUA_TNIL)
    fe_operand_error(fe, A, target->a, target->a, at, "index");
  lua_pop(L, 1);
  if (target->kind == FE_FIELD)
    lua_setfield(L, at, target->u.name->s);
  else {
    lua_pushvalue(L, at + 1);
    lua_insert(L, -2);
    lua_settable(L, at);
  }
  fe->act = A;
}

void fe_store_index(struct fe_state *fe, struct fe_act *A, const struct fe_node *target, int at) {
  lua_State *L = fe->L;
  if (!lua_istable(L, at)) {
    store_other(fe, A, target, at);
    return;
  }
  A->node = target;
  bool field = target->kind == FE_FIELD;
  if (!field && fe_is_dev(L, at + 1)) {
    fe_refuse_device_key(fe, target, at + 1);
    lua_pop(L, 1);
    return;
  }
  if (!fe->top && field) {
    lua_setfield(L, at, target->u.name->s);
    fe->act = A;
    return;
  }
  if (field)
    lua_pushstring(L, target->u.name->s);
  else
    lua_pushvalue(L, at + 1);
  lua_insert(L, -2);
  if (fe->top) {
    fe_set(fe, at);
  } else {
    lua_settable(L, at);
    fe->act = A;
  }
}

/* Assigns the value on top (popped); prefix and key of an indexed target are at `at`. */
static void store(struct fe_state *fe, struct fe_act *A, const struct fe_node *target, int at) {
  switch (target->kind) {
  case FE_LOCAL: fe_assign_local(fe, A, target->u.var); return;
  case FE_UPVALUE: assign_upvalue(fe, A, target); return;
  case FE_GLOBAL: assign_global(fe, A, target); return;
  default: fe_store_index(fe, A, target, at); return;
  }
}

/* Pushes prefix and key of a target; how many values that is. */
static int eval_prefix(struct fe_state *fe, struct fe_act *A, const struct fe_node *target) {
  if (target->kind != FE_FIELD && target->kind != FE_INDEX)
    return 0;
  fe_eval(fe, A, target->a);
  if (target->kind == FE_FIELD)
    return 1;
  fe_eval(fe, A, target->b);
  return 2;
}

static void exec_assign(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  lua_State *L = fe->L;
  if (n->n == 1 && n->n2 == 1) {
    const struct fe_node *target = n->list[0];
    int size = eval_prefix(fe, A, target);
    fe_eval(fe, A, n->list2[0]);
    if (size == 0) {
      store(fe, A, target, 0);
      return;
    }
    store(fe, A, target, lua_gettop(L) - size);
    lua_pop(L, size);
    return;
  }
  int bottom = lua_gettop(L), at = bottom + 1;
  for (uint32_t i = 0; i < n->n; i++) {
    at += eval_prefix(fe, A, n->list[i]);
    fe_need_stack(L, STACK_MARGIN, "too many assignments");
  }
  fe_eval_list(fe, A, n->list2, n->n2, (int)n->n);
  for (uint32_t i = n->n; i-- > 0;) { /* from right to left, as stock Lua does */
    const struct fe_node *target = n->list[i];
    at -= target->kind == FE_INDEX ? 2 : target->kind == FE_FIELD;
    store(fe, A, target, at);
  }
  lua_settop(L, bottom);
}

/* ---- to-be-closed variables ---- */

/* Marks the value at stack position idx. */
static void mark_close(struct fe_state *fe, struct fe_act *A, const struct fe_node *n, int idx,
                       const char *name) {
  lua_State *L = fe->L;
  if (!lua_toboolean(L, idx))
    return;
  if (fe_is_dev(L, idx) || luaL_getmetafield(L, idx, "__close") == LUA_TNIL)
    fe_lua_error(fe, n, "variable '%s' got a non-closable value", name);
  (void)A;
  lua_pop(L, 1);
  lua_toclose(L, idx);
  VEC_PUSH(&fe->arena, &fe->closers, idx);
}

/* Closes the variables marked since there were `keep` of them, from stack position `from` on,
 * innermost first. Values to return, on top of the stack, stay. */
static void close_from(struct fe_state *fe, struct fe_act *A, uint32_t keep, int from) {
  int n_ret = fe->n_ret;
  const struct fe_node *leaving = fe->leaving;
  const struct fe_label *label = fe->label;
  while (fe->closers.n > keep && VEC_LAST(&fe->closers) >= from) {
    int idx = VEC_POP(&fe->closers);
    lua_closeslot(fe->L, idx);
    fe->act = A;
  }
  fe->n_ret = n_ret;
  fe->leaving = leaving;
  fe->label = label;
}

/* ---- declarations ---- */

static void exec_local(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  if (n->n == 1 && n->n_vars == 1)
    fe_eval(fe, A, n->list[0]);
  else
    fe_eval_list(fe, A, n->list, n->n, (int)n->n_vars);
  for (uint32_t i = n->n_vars; i-- > 0;)
    fe_declare(fe, A, n->vars[i]);
  if (n->has_close)
    for (uint32_t i = 0; i < n->n_vars; i++)
      if (n->vars[i]->is_close)
        mark_close(fe, A, n, fe_slot_index(A, n->vars[i]), n->vars[i]->name->s);
}

static void exec_local_function(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  lua_State *L = fe->L;
  const struct fe_var *v = n->u.var;
  const struct fe_func *f = n->a->u.func;
  if (v->boxed) {
    lua_pushnil(L);
    fe_declare(fe, A, v);
    fe_push_function(fe, A, f);
    fe_assign_local(fe, A, v);
    return;
  }
  fe_push_function(fe, A, f);
  for (uint32_t i = 0; i < f->n_upvalues; i++)
    if (f->upvalues[i].var == v) { /* it copied its own slot before that had a value */
      lua_pushvalue(L, -1);
      lua_setupvalue(L, -2, (int)i + 2);
    }
  fe_declare(fe, A, v);
}

/* ---- plain control ---- */

enum fe_signal fe_exec_arms(struct fe_state *fe, struct fe_act *A, const struct fe_node *n,
                            uint32_t arm) {
  for (; arm < n->n; arm++) {
    A->node = n->list[arm];
    switch (fe_eval_truth(fe, A, n->list[arm]->a, true)) {
    case FE_IS_TRUE: return fe_exec_block(fe, A, n->list[arm]->body);
    case FE_IS_FALSE: break;
    case FE_IS_STAGED: return fe_device_if(fe, A, n, arm);
    }
  }
  return n->body ? fe_exec_block(fe, A, n->body) : FE_GO_ON;
}

/* One pass of a loop's body: whether the loop goes on. Sets *s to the loop's own signal if not. */
static bool run_body(struct fe_state *fe, struct fe_act *A, const struct fe_node *n,
                     enum fe_signal *s) {
  fe_step(fe);
  *s = fe_exec_block(fe, A, n->body);
  if (*s == FE_GO_ON)
    return true;
  if (*s == FE_GO_BREAK)
    *s = FE_GO_ON;
  return false;
}

static enum fe_signal exec_plain_while(struct fe_state *fe, struct fe_act *A,
                                       const struct fe_node *n) {
  enum fe_signal s = FE_GO_ON;
  while (fe_eval_truth(fe, A, n->a, false) == FE_IS_TRUE)
    if (!run_body(fe, A, n, &s))
      return s;
  return FE_GO_ON;
}

/* Number at idx as stock Lua's `for` takes it (strings count); false if it is none. */
static bool for_number(lua_State *L, int idx, lua_Number *out) {
  int ok;
  *out = lua_tonumberx(L, idx, &ok);
  return ok;
}

static _Noreturn void for_error(struct fe_state *fe, const struct fe_node *n, int idx,
                                const char *what) {
  fe_lua_error(fe, n, "bad 'for' %s (number expected, got %s)", what, luaL_typename(fe->L, idx));
}

/* The limit of an integer loop at idx, clipped; false if the loop does not run. */
static bool for_limit(struct fe_state *fe, const struct fe_node *n, int idx, lua_Integer init,
                      lua_Integer step, lua_Integer *limit) {
  lua_State *L = fe->L;
  lua_Number f;
  int ok;
  *limit = lua_tointegerx(L, idx, &ok);
  if (!ok) {
    if (!for_number(L, idx, &f))
      for_error(fe, n, idx, "limit");
    lua_Number r = step < 0 ? ceil(f) : floor(f);
    if (!lua_numbertointeger(r, limit)) {
      if (0 < f) {
        if (step < 0)
          return false;
        *limit = LUA_MAXINTEGER;
      } else {
        if (step > 0)
          return false;
        *limit = LUA_MININTEGER;
      }
    }
  }
  return step > 0 ? init <= *limit : init >= *limit;
}

/* Three numbers are on top; pops them. The trip count is computed before the loop, in unsigned
 * arithmetic, so that nothing overflows. */
static enum fe_signal integer_for(struct fe_state *fe, struct fe_act *A, const struct fe_node *n,
                                  int at) {
  lua_State *L = fe->L;
  lua_Integer i = lua_tointeger(L, at), step = lua_tointeger(L, at + 2), limit;
  if (step == 0)
    fe_lua_error(fe, n, "'for' step is zero");
  bool runs = for_limit(fe, n, at + 1, i, step, &limit);
  lua_settop(L, at - 1);
  if (!runs)
    return FE_GO_ON;
  lua_Unsigned count =
      step > 0 ? ((lua_Unsigned)limit - (lua_Unsigned)i) / (lua_Unsigned)step
               : ((lua_Unsigned)i - (lua_Unsigned)limit) / ((lua_Unsigned)(-(step + 1)) + 1u);
  enum fe_signal s;
  for (;; count--, i = (lua_Integer)((lua_Unsigned)i + (lua_Unsigned)step)) {
    lua_pushinteger(L, i);
    fe_declare(fe, A, n->vars[0]);
    if (!run_body(fe, A, n, &s))
      return s;
    if (count == 0)
      return FE_GO_ON;
  }
}

static enum fe_signal float_for(struct fe_state *fe, struct fe_act *A, const struct fe_node *n,
                                int at) {
  lua_State *L = fe->L;
  lua_Number i, limit, step;
  if (!for_number(L, at + 1, &limit))
    for_error(fe, n, at + 1, "limit");
  if (!for_number(L, at + 2, &step))
    for_error(fe, n, at + 2, "step");
  if (!for_number(L, at, &i))
    for_error(fe, n, at, "initial value");
  if (step == 0)
    fe_lua_error(fe, n, "'for' step is zero");
  lua_settop(L, at - 1);
  if (0 < step ? limit < i : i < limit)
    return FE_GO_ON;
  enum fe_signal s;
  do {
    lua_pushnumber(L, i);
    fe_declare(fe, A, n->vars[0]);
    if (!run_body(fe, A, n, &s))
      return s;
    i += step;
  } while (0 < step ? i <= limit : limit <= i);
  return FE_GO_ON;
}

static enum fe_signal exec_for_num(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  lua_State *L = fe->L;
  int at = lua_gettop(L) + 1;
  const struct fe_node *parts[3] = {n->a, n->b, n->c};
  for (int i = 0; i < 3; i++)
    if (parts[i])
      fe_eval(fe, A, parts[i]);
    else
      lua_pushinteger(L, 1);
  A->node = n;
  for (int i = 0; i < 3; i++) {
    struct fe_dev *dev = fe_to_dev(L, at + i);
    if (!dev)
      continue;
    fe_check_defined(fe, at + i);
    if (!fe_is_unknown(lua_touserdata(L, at + i)))
      fe_soft_error_at(fe, DIAG_STAGE_CONTROL, fe_node_loc(A, parts[i]),
                       "a plain `for` needs numbers, got %s; write `for %s in range(lo, hi, step)`",
                       fe_describe(fe, at + i), n->vars[0]->name->s);
    lua_settop(L, at - 1);
    return FE_GO_ON;
  }
  if (lua_isinteger(L, at) && lua_isinteger(L, at + 2))
    return integer_for(fe, A, n, at);
  return float_for(fe, A, n, at);
}

/* The iterator, its state, the control variable and the closing value are in four hidden slots. */
static enum fe_signal iterate(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  lua_State *L = fe->L;
  int hidden = A->base + (int)n->index;
  for (;;) {
    int at = lua_gettop(L) + 1;
    for (int i = 0; i < 3; i++)
      lua_pushvalue(L, hidden + i);
    fe_do_call(fe, A, n, at, (int)n->n_vars);
    if (lua_isnil(L, at)) {
      lua_settop(L, at - 1);
      return FE_GO_ON;
    }
    lua_copy(L, at, hidden + 2);
    for (uint32_t i = n->n_vars; i-- > 0;)
      fe_declare(fe, A, n->vars[i]);
    enum fe_signal s;
    if (!run_body(fe, A, n, &s))
      return s;
  }
}

static enum fe_signal exec_for_in(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  lua_State *L = fe->L;
  int hidden = A->base + (int)n->index;
  fe_eval_list(fe, A, n->list, n->n, 4);
  for (int i = 3; i >= 0; i--)
    lua_replace(L, hidden + i);
  A->node = n;
  if (fe_is_dev(L, hidden)) {
    fe_check_defined(fe, hidden);
    struct fe_dev *dev = lua_touserdata(L, hidden);
    if (dev->kind == FE_DEV_RANGE)
      return fe_device_for(fe, A, n);
    if (!fe_is_unknown(dev))
      fe_soft_error(fe, DIAG_STAGE_CONTROL, "`for ... in` over %s; write range(...)",
                    fe_describe(fe, hidden));
    return FE_GO_ON;
  }
  uint32_t closers = fe->closers.n;
  mark_close(fe, A, n, hidden + 3, "(for state)");
  enum fe_signal s = iterate(fe, A, n);
  close_from(fe, A, closers, 0);
  return s;
}

static enum fe_signal exec(struct fe_state *fe, struct fe_act *A, const struct fe_node *n);

/* The statements of a block, without closing its variables. */
static inline enum fe_signal run_list(struct fe_state *fe, struct fe_act *A,
                                      const struct fe_node *block, uint32_t closers) {
  for (uint32_t i = 0; i < block->n; i++) {
    enum fe_signal s = exec(fe, A, block->list[i]);
    if (s == FE_GO_ON)
      continue;
    if (s != FE_GO_GOTO || fe->label->block != block)
      return s;
    i = fe->label->index;
    if (block->has_close)
      close_from(fe, A, closers, A->base + (int)fe->label->slots);
  }
  return FE_GO_ON;
}

enum fe_signal fe_exec_block(struct fe_state *fe, struct fe_act *A, const struct fe_node *block) {
  uint32_t closers = fe->closers.n;
  enum fe_signal s = run_list(fe, A, block, closers);
  if (block->has_close)
    close_from(fe, A, closers, 0);
  return s;
}

static enum fe_signal exec_repeat(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  for (;;) {
    uint32_t closers = fe->closers.n;
    fe_step(fe);
    enum fe_signal s = run_list(fe, A, n->body, closers);
    bool done = false;
    if (s == FE_GO_ON) { /* the condition sees the body's variables */
      enum fe_truth t = fe_eval_truth(fe, A, n->a, false);
      done = t != FE_IS_FALSE;
      if (t == FE_IS_STAGED) {
        A->node = n;
        if (!fe_is_unknown(lua_touserdata(fe->L, -1)))
          fe_soft_error(fe, DIAG_STAGE_CONTROL,
                        "`repeat ... until` on a device condition; use while");
        lua_pop(fe->L, 1);
      }
    }
    close_from(fe, A, closers, 0);
    if (s == FE_GO_BREAK || done)
      return FE_GO_ON;
    if (s != FE_GO_ON)
      return s;
  }
}

static enum fe_signal exec(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  A->node = n;
  fe_step(fe);
  switch (n->kind) {
  case FE_LOCAL_STAT: exec_local(fe, A, n); return FE_GO_ON;
  case FE_ASSIGN: exec_assign(fe, A, n); return FE_GO_ON;
  case FE_CALL_STAT: {
    int top = lua_gettop(fe->L);
    fe_eval_list(fe, A, (struct fe_node *const *)&n->a, 1, 0);
    lua_settop(fe->L, top);
    return FE_GO_ON;
  }
  case FE_LOCAL_FUNC: exec_local_function(fe, A, n); return FE_GO_ON;
  case FE_RETURN:
    fe->n_ret = fe_eval_list(fe, A, n->list, n->n, -1);
    fe->leaving = n;
    return FE_GO_RETURN;
  case FE_BREAK: fe->leaving = n; return FE_GO_BREAK;
  case FE_GOTO:
    fe->leaving = n;
    fe->label = n->u.label;
    return FE_GO_GOTO;
  case FE_LABEL: return FE_GO_ON;
  default: break;
  }
  fe_enter(fe);
  switch (n->kind) {
  case FE_DO: return fe_exec_block(fe, A, n->body);
  case FE_IF: return fe_exec_arms(fe, A, n, 0);
  case FE_WHILE: return fe->tracer ? fe_exec_while(fe, A, n) : exec_plain_while(fe, A, n);
  case FE_REPEAT: return exec_repeat(fe, A, n);
  case FE_FOR_NUM: return exec_for_num(fe, A, n);
  case FE_FOR_IN: return exec_for_in(fe, A, n);
  default: KILN_UNREACHABLE();
  }
}
