/* Comparison, truth, `and`, `or`.
 *
 * Only masks are staged at a truth test; every other device value is true, as every number and
 * table is in Lua. After a mask, both sides of `and` and `or` always run: the right side is
 * evaluated in a region, and an effect or a change in it is an error. `mask and value` is half a
 * select, which only an `or` can complete: it exists as two values on the stack and never as a Lua
 * value. */
#include "frontend/eval_expr.h"

/* ---- comparison ---- */

/* Calls metamethod `event` of the values at `at` and at + 1, if one of them has it; 0, 1, or -1. */
static int compare_event(struct fe_state *fe, struct fe_act *A, const char *event, int a, int b) {
  lua_State *L = fe->L;
  if (luaL_getmetafield(L, a, event) == LUA_TNIL && luaL_getmetafield(L, b, event) == LUA_TNIL)
    return -1;
  lua_pushvalue(L, a);
  lua_pushvalue(L, b);
  lua_call(L, 2, 1);
  fe->act = A;
  bool r = fe_truth(fe, lua_gettop(L), event);
  lua_pop(L, 1);
  return r;
}

bool fe_less(struct fe_state *fe, int a, int b, const char *what) {
  lua_State *L = fe->L;
  int ta = lua_type(L, a), tb = lua_type(L, b);
  if (ta != tb || (ta != LUA_TNUMBER && ta != LUA_TSTRING)) {
    if (fe_is_dev(L, a) || fe_is_dev(L, b))
      fe_error(fe, DIAG_STAGE_OPERAND, "%s: comparing %s and %s gives a device value", what,
               fe_describe(fe, a), fe_describe(fe, b));
    int r = compare_event(fe, fe->act, "__lt", a, b);
    if (r >= 0)
      return r;
  }
  return lua_compare(L, a, b, LUA_OPLT);
}

static int equals(struct fe_state *fe, struct fe_act *A, int a) {
  lua_State *L = fe->L;
  if (lua_type(L, a) != LUA_TTABLE || lua_type(L, a + 1) != LUA_TTABLE || lua_rawequal(L, a, a + 1))
    return lua_rawequal(L, a, a + 1);
  int r = compare_event(fe, A, "__eq", a, a + 1);
  return r > 0;
}

/* A device value is compared: -1 and the result pushed, or 0, 1. */
static int compare_device(struct fe_state *fe, const struct fe_node *n, int at) {
  lua_State *L = fe->L;
  bool eq = n->op == FE_OP_EQ, ne = n->op == FE_OP_NE;
  for (int i = at; i <= at + 1; i++)
    if (fe_is_dev(L, i))
      fe_check_defined(fe, i);
  const struct fe_dev *a = fe_to_dev(L, at), *b = fe_to_dev(L, at + 1);
  int other = a ? at + 1 : at;
  if ((eq || ne) && lua_isnil(L, other)) {
    lua_settop(L, at - 1);
    return ne;
  }
  if ((eq || ne) && a && b && (a->kind == FE_DEV_OBJECT || b->kind == FE_DEV_OBJECT) &&
      !fe_is_unknown(a) && !fe_is_unknown(b)) {
    lua_settop(L, at - 1);
    return (a == b) == eq;
  }
  if ((a && b) || lua_type(L, other) == LUA_TNUMBER) {
    fe_trace_binary(fe, (enum fe_op)n->op, at);
    return -1;
  }
  const struct fe_dev *dev = a ? a : b;
  if (fe_is_unknown(dev)) {
    /* said already */
  } else if (lua_isboolean(L, other) && (dev->flags & FE_DEV_MASK)) {
    fe_soft_error(fe, DIAG_STAGE_OPERAND, "comparing %s with %s: use the mask itself or `not`",
                  fe_describe(fe, a ? at : at + 1), fe_describe(fe, other));
  } else {
    fe_soft_error(fe, DIAG_STAGE_OPERAND, "cannot compare %s with %s", fe_describe(fe, at),
                  fe_describe(fe, at + 1));
  }
  lua_settop(L, at - 1);
  fe_push_unknown(fe);
  return -1;
}

static int compare_other(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  lua_State *L = fe->L;
  int at = lua_gettop(L) - 1, r;
  if (fe_is_dev(L, at) || fe_is_dev(L, at + 1))
    return compare_device(fe, n, at);
  if (n->op == FE_OP_EQ || n->op == FE_OP_NE) {
    r = equals(fe, A, at) == (n->op == FE_OP_EQ);
  } else {
    /* a > b is b < a, also for metamethods */
    bool swap = n->op == FE_OP_GT || n->op == FE_OP_GE;
    bool strict = n->op == FE_OP_LT || n->op == FE_OP_GT;
    int x = swap ? at + 1 : at, y = swap ? at : at + 1;
    r = -1;
    if (lua_type(L, at) != LUA_TSTRING || lua_type(L, at + 1) != LUA_TSTRING)
      r = compare_event(fe, A, strict ? "__lt" : "__le", x, y);
    if (r < 0)
      r = lua_compare(L, x, y, strict ? LUA_OPLT : LUA_OPLE);
  }
  lua_settop(L, at - 1);
  return r;
}

int fe_eval_compare(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  lua_State *L = fe->L;
  int r;
  fe_enter(fe);
  fe_eval(fe, A, n->a);
  fe_eval(fe, A, n->b);
  A->node = n;
  if (lua_type(L, -1) != LUA_TNUMBER || lua_type(L, -2) != LUA_TNUMBER)
    return compare_other(fe, A, n);
  switch (n->op) {
  case FE_OP_EQ: r = lua_rawequal(L, -2, -1); break;
  case FE_OP_NE: r = !lua_rawequal(L, -2, -1); break;
  case FE_OP_LT: r = lua_compare(L, -2, -1, LUA_OPLT); break;
  case FE_OP_LE: r = lua_compare(L, -2, -1, LUA_OPLE); break;
  case FE_OP_GT: r = lua_compare(L, -1, -2, LUA_OPLT); break;
  default: r = lua_compare(L, -1, -2, LUA_OPLE); break;
  }
  lua_pop(L, 2);
  return r;
}

/* ---- truth ---- */

/* Truth of the value on top, which is popped unless it is a mask. */
static enum fe_truth classify(struct fe_state *fe) {
  lua_State *L = fe->L;
  if (fe_is_dev(L, -1)) {
    fe_check_defined(fe, lua_gettop(L));
    const struct fe_dev *dev = lua_touserdata(L, -1);
    if (dev->flags & FE_DEV_MASK)
      return FE_IS_STAGED;
    lua_pop(L, 1);
    return FE_IS_TRUE;
  }
  bool b = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return b ? FE_IS_TRUE : FE_IS_FALSE;
}

static void warn_always_true(struct fe_state *fe, const struct fe_act *A, const struct fe_node *n) {
  const struct fe_dev *dev = fe_to_dev(fe->L, -1);
  if (dev && dev->kind == FE_DEV_VALUE && (dev->flags & FE_DEV_INT) &&
      (dev->flags & FE_DEV_SCALAR) && !(dev->flags & (FE_DEV_OPTIONAL | FE_DEV_UNKNOWN)))
    fe_warn(fe, DIAG_ALWAYS_TRUE, fe_node_loc(A, n),
            "the condition is %s, which is always true; compare with 0 or nil",
            fe_describe(fe, -1));
}

enum fe_truth fe_eval_truth(struct fe_state *fe, struct fe_act *A, const struct fe_node *n,
                            bool warn) {
  switch (n->kind) {
  case FE_NIL:
  case FE_FALSE: return FE_IS_FALSE;
  case FE_TRUE: return FE_IS_TRUE;
  case FE_COMPARE: {
    int r = fe_eval_compare(fe, A, n);
    return r < 0 ? classify(fe) : r ? FE_IS_TRUE : FE_IS_FALSE;
  }
  default:
    fe_eval(fe, A, n);
    if (warn && fe->top)
      warn_always_true(fe, A, n);
    return classify(fe);
  }
}

bool fe_truth(struct fe_state *fe, int idx, const char *what) {
  if (!fe_is_dev(fe->L, idx))
    return lua_toboolean(fe->L, idx);
  fe_check_defined(fe, idx);
  const struct fe_dev *dev = lua_touserdata(fe->L, idx);
  if (fe_is_unknown(dev) || !(dev->flags & FE_DEV_MASK))
    return true;
  fe_error(fe, DIAG_STAGE_OPERAND, "%s: the comparison gave %s", what, fe_describe(fe, idx));
}

/* ---- and, or ---- */

enum operand { PLAIN_FALSE, PLAIN_TRUE, MASK, OTHER_TRUE, HALF };

static bool is_logic(const struct fe_node *n) {
  return n->kind == FE_AND || n->kind == FE_OR;
}

/* Evaluates an operand and leaves it on the stack (HALF: two values). */
static enum operand eval_operand(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  lua_State *L = fe->L;
  if (is_logic(n)) {
    if (fe_eval_logic(fe, A, n, true))
      return HALF;
  } else {
    fe_eval(fe, A, n);
  }
  if (fe_is_dev(L, -1)) {
    fe_check_defined(fe, lua_gettop(L));
    const struct fe_dev *dev = lua_touserdata(L, -1);
    return dev->flags & FE_DEV_MASK ? MASK : OTHER_TRUE;
  }
  if (!lua_toboolean(L, -1))
    return PLAIN_FALSE;
  return lua_isboolean(L, -1) ? PLAIN_TRUE : OTHER_TRUE;
}

/* Evaluates the right side of n, whose left side is a mask. */
static enum operand eval_right(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  struct fe_region_state *r = fe_region_open(fe, A, FE_REGION_SHORT, n);
  enum operand what = eval_operand(fe, A, n->b);
  A->node = n;
  const char *op = fe_op_text((enum fe_op)n->op);
  const char *changed = fe_region_changed(fe);
  const char *effect = fe->tracer->effect(fe->tracer->user, &r->pub);
  if (changed)
    fe_soft_error(
        fe, DIAG_STAGE_EFFECT,
        "the right side of `%s` has an effect (changes %s), but its left side is a device "
        "value: both sides always run",
        op, changed);
  else if (effect)
    fe_soft_error(fe, DIAG_STAGE_EFFECT,
                  "the right side of `%s` has an effect (%s), but its left side is a device value: "
                  "both sides always run",
                  op, effect);
  fe_region_join(fe);
  fe_region_free(fe, r);
  return what;
}

/* A half select that nothing completes: two values on top become an unknown one. */
static void refuse_half(struct fe_state *fe, const struct fe_node *n) {
  lua_State *L = fe->L;
  fe->act->node = n;
  if (!fe_is_unknown(fe_to_dev(L, -2)) && !fe_is_unknown(fe_to_dev(L, -1)))
    fe_soft_error(
        fe, DIAG_STAGE_OPERAND,
        "`mask and value` has no value where the mask is false; write `mask and x or y` or "
        "where(...)");
  lua_pop(L, 2);
  fe_push_unknown(fe);
}

/* Left side: a mask at `at`. Combines it with the right side. */
static bool finish_and(struct fe_state *fe, struct fe_act *A, const struct fe_node *n, int at,
                       bool half_ok) {
  lua_State *L = fe->L;
  switch (eval_right(fe, A, n)) {
  case PLAIN_TRUE: lua_settop(L, at); return false;
  case PLAIN_FALSE:
    lua_settop(L, at - 1);
    lua_pushboolean(L, 0);
    return false;
  case MASK: fe_trace_binary(fe, FE_OP_AND, at); return false;
  case HALF: /* mask, mask, value */
    lua_pushvalue(L, at);
    lua_pushvalue(L, at + 1);
    fe_trace_binary(fe, FE_OP_AND, at + 3);
    lua_replace(L, at);
    lua_remove(L, at + 1);
    break;
  case OTHER_TRUE: break;
  }
  if (half_ok)
    return true;
  refuse_half(fe, n);
  return false;
}

static bool eval_and(struct fe_state *fe, struct fe_act *A, const struct fe_node *n, bool half_ok) {
  lua_State *L = fe->L;
  int at = lua_gettop(L) + 1;
  enum operand left = eval_operand(fe, A, n->a);
  switch (left) {
  case PLAIN_FALSE: return false;
  case HALF: /* its value is true where its mask is */
    lua_settop(L, at);
    return finish_and(fe, A, n, at, half_ok);
  case MASK: return finish_and(fe, A, n, at, half_ok);
  case PLAIN_TRUE:
  case OTHER_TRUE: break;
  }
  lua_settop(L, at - 1);
  if (half_ok && is_logic(n->b))
    return fe_eval_logic(fe, A, n->b, true);
  fe_eval(fe, A, n->b);
  return false;
}

/* mask, yes, no from `at` on become the select. */
static void trace_select(struct fe_state *fe, const struct fe_node *n, int at) {
  lua_State *L = fe->L;
  fe->act->node = n;
  bool unknown = false;
  for (int i = at; i <= at + 2; i++)
    unknown = unknown || fe_is_unknown(fe_to_dev(L, i));
  if (unknown)
    fe_push_unknown(fe);
  else
    fe->tracer->select(fe->tracer->user, at, at + 1, at + 2);
  lua_replace(L, at);
  lua_settop(L, at);
}

/* Left side: mask and value at `at`, at + 1. */
static bool finish_select(struct fe_state *fe, struct fe_act *A, const struct fe_node *n, int at,
                          bool half_ok) {
  lua_State *L = fe->L;
  if (eval_right(fe, A, n) != HALF) {
    trace_select(fe, n, at);
    return false;
  }
  /* (m and x) or (k and y): where m or k, it is where(m, x, y) */
  lua_pushvalue(L, at);
  lua_pushvalue(L, at + 2);
  fe_trace_binary(fe, FE_OP_OR, at + 4); /* m x k y m|k */
  lua_replace(L, at + 2);
  lua_insert(L, at + 1); /* m y x m|k */
  lua_insert(L, at);     /* m|k m y x */
  lua_insert(L, at + 2); /* m|k m x y */
  trace_select(fe, n, at + 1);
  if (half_ok)
    return true;
  refuse_half(fe, n);
  return false;
}

static bool eval_or(struct fe_state *fe, struct fe_act *A, const struct fe_node *n, bool half_ok) {
  lua_State *L = fe->L;
  int at = lua_gettop(L) + 1;
  switch (eval_operand(fe, A, n->a)) {
  case PLAIN_TRUE:
  case OTHER_TRUE: return false;
  case HALF: return finish_select(fe, A, n, at, half_ok);
  case PLAIN_FALSE:
    lua_settop(L, at - 1);
    if (half_ok && is_logic(n->b))
      return fe_eval_logic(fe, A, n->b, true);
    fe_eval(fe, A, n->b);
    return false;
  case MASK: break;
  }
  switch (eval_right(fe, A, n)) {
  case MASK: fe_trace_binary(fe, FE_OP_OR, at); return false;
  case PLAIN_FALSE: lua_settop(L, at); return false;
  case PLAIN_TRUE:
    lua_settop(L, at - 1);
    lua_pushboolean(L, 1);
    return false;
  case HALF:
  case OTHER_TRUE: break;
  }
  fe->act->node = n;
  if (!fe_is_unknown(fe_to_dev(L, at)))
    fe_soft_error(fe, DIAG_STAGE_OPERAND,
                  "`mask or value` has no value where the mask is true; write `mask and x or y` or "
                  "where(...)");
  lua_settop(L, at - 1);
  fe_push_unknown(fe);
  return false;
}

bool fe_eval_logic(struct fe_state *fe, struct fe_act *A, const struct fe_node *n, bool half_ok) {
  fe_enter(fe);
  return n->kind == FE_AND ? eval_and(fe, A, n, half_ok) : eval_or(fe, A, n, half_ok);
}
