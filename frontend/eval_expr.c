/* Expressions. Plain values are Lua's own: arithmetic, comparison, indexing go through the C API.
 * An operator with a device operand goes to the tracer; truth of a mask is staged (eval_logic.c).
 * Checks that only serve a better message come after a fast path for the common types. */
#include "frontend/eval_expr.h"

#include "base/check.h"

#define PENDING_FIELDS 50 /* positional fields held back, as stock Lua does */

static bool is_multi(const struct fe_node *n) {
  return n->kind == FE_CALL || n->kind == FE_METHOD || n->kind == FE_VARARG;
}

/* ---- variables ---- */

static void eval_upvalue(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  lua_State *L = fe->L;
  int i = (int)n->index + 2;
  if (!A->closure) {
    if (n->u.var->boxed)
      lua_getiuservalue(L, lua_upvalueindex(i), 1);
    else
      lua_pushvalue(L, lua_upvalueindex(i));
    return;
  }
  lua_getupvalue(L, A->closure, i);
  if (n->u.var->boxed) {
    lua_getiuservalue(L, -1, 1);
    lua_replace(L, -2);
  }
}

/* ---- indexing ---- */

void fe_refuse_device_key(struct fe_state *fe, const struct fe_node *n, int key) {
  fe->act->node = n;
  fe_check_defined(fe, key);
  if (!fe_is_unknown(fe_to_dev(fe->L, key)))
    fe_soft_error(fe, DIAG_STAGE_OPERAND,
                  "a Lua table cannot be indexed by %s; use a plain loop or where",
                  fe_describe(fe, key));
}

/* The object at -2 (key at -1), no table: replaces both by object[key]. */
static void index_other(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  lua_State *L = fe->L;
  int obj = lua_gettop(L) - 1;
  A->node = n;
  if (fe_is_dev(L, obj)) {
    fe_check_defined(fe, obj);
    if (fe_is_unknown(lua_touserdata(L, obj)))
      fe_push_unknown(fe);
    else
      fe->tracer->index(fe->tracer->user, obj, obj + 1);
    lua_replace(L, obj);
    lua_settop(L, obj);
    return;
  }
  if (luaL_getmetafield(L, obj, "__index") == LUA_TNIL)
    fe_operand_error(fe, A, n->a, n->a, obj, "index");
  lua_pop(L, 1);
  lua_gettable(L, obj);
  lua_replace(L, obj);
}

static void eval_index(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  lua_State *L = fe->L;
  fe_enter(fe);
  fe_eval(fe, A, n->a);
  fe_eval(fe, A, n->b);
  if (lua_istable(L, -2)) {
    A->node = n;
    if (fe_is_dev(L, -1)) {
      fe_refuse_device_key(fe, n, lua_gettop(L));
      lua_settop(L, -3);
      fe_push_unknown(fe);
      return;
    }
    lua_gettable(L, -2);
    lua_replace(L, -2);
  } else {
    index_other(fe, A, n);
  }
  fe_did_read(fe);
}

/* The object on top is replaced by its field `n->u.name`. */
static void get_field(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  lua_State *L = fe->L;
  if (lua_istable(L, -1) || lua_type(L, -1) == LUA_TSTRING) {
    A->node = n;
    lua_getfield(L, -1, n->u.name->s);
    lua_replace(L, -2);
  } else {
    lua_pushstring(L, n->u.name->s);
    index_other(fe, A, n);
  }
  fe_did_read(fe);
}

/* ---- calls ---- */

static int eval_multi(struct fe_state *fe, struct fe_act *A, const struct fe_node *n, int want);

int fe_eval_list(struct fe_state *fe, struct fe_act *A, struct fe_node *const *list, uint32_t n,
                 int want) {
  lua_State *L = fe->L;
  if (n > 8 || want > 8)
    fe_need_stack(L, (int)n + (want > 0 ? want : 0) + STACK_MARGIN, "too many values");
  for (uint32_t i = 0; i + 1 < n; i++) {
    fe_eval(fe, A, list[i]);
    if (want >= 0 && (int)i >= want)
      lua_pop(L, 1);
  }
  int got = n && (want < 0 || (int)n <= want) ? (int)n - 1 : want;
  if (n == 0) {
    got = 0;
  } else if (is_multi(list[n - 1])) {
    if (want < 0)
      return got + eval_multi(fe, A, list[n - 1], -1);
    got += eval_multi(fe, A, list[n - 1], want - got);
  } else {
    fe_eval(fe, A, list[n - 1]);
    if (want >= 0 && got >= want)
      lua_pop(L, 1);
    else
      got++;
  }
  for (; got < want; got++)
    lua_pushnil(L);
  return got;
}

static int eval_call(struct fe_state *fe, struct fe_act *A, const struct fe_node *n, int want) {
  lua_State *L = fe->L;
  fe_enter(fe);
  int at = lua_gettop(L) + 1;
  fe_eval(fe, A, n->a);
  if (n->kind == FE_METHOD) {
    lua_pushvalue(L, at);
    get_field(fe, A, n);
    lua_insert(L, at); /* below the object, which is the first argument */
  }
  fe_eval_list(fe, A, n->list, n->n, -1);
  return fe_do_call(fe, A, n, at, want);
}

static int eval_vararg(struct fe_state *fe, struct fe_act *A, int want) {
  lua_State *L = fe->L;
  int params = (int)A->func->n_params, n = A->n_va > params ? A->n_va - params : 0;
  int total = want < 0 ? n : want;
  fe_need_stack(L, total + STACK_MARGIN, "too many values");
  for (int i = 0; i < total; i++)
    if (i < n) {
      lua_pushvalue(L, A->va + params + i);
      fe_did_read(fe);
    } else {
      lua_pushnil(L);
    }
  return total;
}

static int eval_multi(struct fe_state *fe, struct fe_act *A, const struct fe_node *n, int want) {
  return n->kind == FE_VARARG ? eval_vararg(fe, A, want) : eval_call(fe, A, n, want);
}

/* ---- arithmetic ---- */

static const char *const events[] = {"__add", "__sub",  "__mul",  "__mod", "__pow",
                                     "__div", "__idiv", "__band", "__bor", "__bxor",
                                     "__shl", "__shr",  "__unm",  "__bnot"};
_Static_assert(sizeof events / sizeof *events == FE_OP_BNOT + 1, "one event per operator");
_Static_assert((int)FE_OP_BNOT == LUA_OPBNOT && (int)FE_OP_IDIV == LUA_OPIDIV &&
                   (int)FE_OP_MOD == LUA_OPMOD && (int)FE_OP_SHR == LUA_OPSHR,
               "operators are numbered as Lua does");

static bool has_event(lua_State *L, int idx, const char *event) {
  if (fe_is_dev(L, idx) || luaL_getmetafield(L, idx, event) == LUA_TNIL)
    return false;
  lua_pop(L, 1);
  return true;
}

/* Can stand in integer operations: a number, or a string that is one. */
static bool is_numeric(lua_State *L, int idx) {
  return lua_isnumber(L, idx) != 0;
}

/* Replaces the operands from `at` on by one unknown value. */
static void give_unknown(struct fe_state *fe, int at) {
  lua_settop(fe->L, at - 1);
  fe_push_unknown(fe);
}

/* Moves the result on top to `at`, dropping the operands. */
static void give_result(struct fe_state *fe, int at) {
  lua_replace(fe->L, at);
  lua_settop(fe->L, at);
}

/* Operands at `at`, at + 1, at least one of them a device value. */
static void device_binary(struct fe_state *fe, struct fe_act *A, const struct fe_node *n, int at) {
  lua_State *L = fe->L;
  for (int i = at; i <= at + 1; i++) {
    if (fe_is_dev(L, i)) {
      fe_check_defined(fe, i);
    } else if (lua_type(L, i) != LUA_TSTRING && has_event(L, i, events[n->op])) {
      luaL_getmetafield(L, i, events[n->op]);
      lua_insert(L, at);
      lua_call(L, 2, 1);
      fe->act = A;
      return;
    }
  }
  for (int i = at; i <= at + 1; i++) {
    if (fe_is_dev(L, i) || lua_type(L, i) == LUA_TNUMBER)
      continue;
    const struct fe_node *operand = i == at ? n->a : n->b;
    if (lua_isnil(L, i))
      fe_operand_error(fe, A, n, operand, i,
                       n->op >= FE_OP_BAND && n->op <= FE_OP_SHR ? "perform bitwise operation on"
                                                                 : "perform arithmetic on");
    const struct fe_dev *other = fe_to_dev(L, 2 * at + 1 - i);
    if (!fe_is_unknown(other))
      fe_soft_error(fe, DIAG_STAGE_OPERAND, "cannot apply '%s' to %s and %s",
                    fe_op_text((enum fe_op)n->op), fe_describe(fe, at), fe_describe(fe, at + 1));
    give_unknown(fe, at);
    return;
  }
  fe_trace_binary(fe, (enum fe_op)n->op, at);
}

/* Operands at `at`, at + 1; the result replaces them. */
void fe_trace_binary(struct fe_state *fe, enum fe_op op, int at) {
  const struct fe_dev *a = fe_to_dev(fe->L, at), *b = fe_to_dev(fe->L, at + 1);
  if (fe_is_unknown(a) || fe_is_unknown(b)) {
    give_unknown(fe, at);
    return;
  }
  fe->tracer->binary(fe->tracer->user, op, at, at + 1);
  give_result(fe, at);
}

/* Not two numbers. */
static void slow_binary(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  lua_State *L = fe->L;
  int at = lua_gettop(L) - 1;
  if (fe_is_dev(L, at) || fe_is_dev(L, at + 1)) {
    device_binary(fe, A, n, at);
    return;
  }
  if (!has_event(L, at, events[n->op]) && !has_event(L, at + 1, events[n->op])) {
    bool bits = n->op >= FE_OP_BAND && n->op <= FE_OP_SHR;
    if (!bits || !is_numeric(L, at) || !is_numeric(L, at + 1)) {
      int bad = lua_type(L, at) != LUA_TNUMBER ? at : at + 1;
      fe_operand_error(fe, A, n, bad == at ? n->a : n->b, bad,
                       bits ? "perform bitwise operation on" : "perform arithmetic on");
    }
  }
  lua_arith(L, n->op);
  fe->act = A;
}

/* Two numbers that are not both integers, for an operator on bits. */
static void check_integers(struct fe_state *fe, const struct fe_node *n) {
  lua_State *L = fe->L;
  int ok;
  for (int i = 2; i > 0; i--) {
    lua_tointegerx(L, -i, &ok);
    if (!ok)
      fe_no_integer(fe, n, i == 2 ? n->a : n->b);
  }
}

static void eval_binary(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  lua_State *L = fe->L;
  fe_enter(fe);
  fe_eval(fe, A, n->a);
  fe_eval(fe, A, n->b);
  A->node = n;
  if (lua_type(L, -1) == LUA_TNUMBER && lua_type(L, -2) == LUA_TNUMBER) {
    if (n->op >= FE_OP_BAND)
      check_integers(fe, n);
    lua_arith(L, n->op);
  } else {
    slow_binary(fe, A, n);
  }
}

/* The length of a table whose last element is undefined is undefined too: replaces it on top. */
static void check_length(struct fe_state *fe, int table) {
  lua_State *L = fe->L;
  if (lua_type(L, table) != LUA_TTABLE || lua_type(L, -1) != LUA_TNUMBER)
    return;
  int len = lua_gettop(L);
  lua_pushvalue(L, -1);
  lua_rawget(L, table);
  struct fe_dev *dev = fe_to_dev(L, -1);
  if (dev && dev->kind == FE_DEV_UNDEF) {
    struct fe_undef *u = (struct fe_undef *)dev;
    if (!u->reported && u->grown)
      fe_soft_error(fe, DIAG_STAGE_CARRY, "%s", u->grown);
    else if (!u->reported)
      fe_soft_error(fe, DIAG_STAGE_UNDEFINED, "%s", u->reason);
    u->reported = true;
    fe_push_unknown(fe);
    lua_replace(L, len);
  }
  lua_settop(L, len);
}

static void eval_length(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  lua_State *L = fe->L;
  int at = lua_gettop(L);
  if (fe_is_dev(L, at)) {
    fe_check_defined(fe, at);
    if (!fe_is_unknown(lua_touserdata(L, at)))
      fe_soft_error(fe, DIAG_STAGE_OPERAND, "cannot take the length of %s", fe_describe(fe, at));
    give_unknown(fe, at);
    return;
  }
  if (lua_type(L, at) != LUA_TTABLE && lua_type(L, at) != LUA_TSTRING && !has_event(L, at, "__len"))
    fe_operand_error(fe, A, n, n->a, at, "get length of");
  lua_len(L, at);
  fe->act = A;
  if (fe->n_undef)
    check_length(fe, at);
  lua_replace(L, at);
}

static void eval_unary(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  lua_State *L = fe->L;
  fe_enter(fe);
  if (n->op == FE_OP_NOT) {
    enum fe_truth t = fe_eval_truth(fe, A, n->a, false);
    A->node = n;
    if (t != FE_IS_STAGED)
      lua_pushboolean(L, t == FE_IS_FALSE);
    else
      fe_trace_unary(fe, FE_OP_NOT);
    return;
  }
  fe_eval(fe, A, n->a);
  A->node = n;
  if (n->op == FE_LENGTH) {
    eval_length(fe, A, n);
  } else if (fe_is_dev(L, -1)) {
    fe_check_defined(fe, lua_gettop(L));
    fe_trace_unary(fe, (enum fe_op)n->op);
  } else {
    bool bits = n->op == FE_OP_BNOT;
    if (lua_type(L, -1) != LUA_TNUMBER && !has_event(L, -1, events[n->op]) &&
        !(bits && is_numeric(L, -1)))
      fe_operand_error(fe, A, n, n->a, -1,
                       bits ? "perform bitwise operation on" : "perform arithmetic on");
    int ok = 1;
    if (bits && lua_type(L, -1) == LUA_TNUMBER)
      lua_tointegerx(L, -1, &ok);
    if (!ok)
      fe_no_integer(fe, n, n->a);
    lua_arith(L, n->op);
    fe->act = A;
  }
}

/* The operand on top, a device value, is replaced by the result. */
void fe_trace_unary(struct fe_state *fe, enum fe_op op) {
  int at = lua_gettop(fe->L);
  if (fe_is_unknown(lua_touserdata(fe->L, at)))
    return;
  fe->tracer->unary(fe->tracer->user, op, at);
  lua_replace(fe->L, at);
}

/* ---- concatenation ---- */

/* Item i (from 0) of a chain of `..`. */
static const struct fe_node *concat_item(const struct fe_node *n, int i) {
  while (i > 0 && n->kind == FE_CONCAT) {
    n = n->b;
    i--;
  }
  return n->kind == FE_CONCAT ? n->a : n;
}

/* The place of the operator behind item i. */
static const struct fe_node *concat_op(const struct fe_node *n, int i) {
  while (i-- > 0 && n->b->kind == FE_CONCAT && !n->b->parens)
    n = n->b;
  return n;
}

static bool is_text(lua_State *L, int idx) {
  int t = lua_type(L, idx);
  return t == LUA_TSTRING || t == LUA_TNUMBER;
}

/* Items at `at`..., n of them, not all of them text: refuses device values, names the operand that
 * stock Lua would blame; returns where a metamethod may help. */
static bool check_concat(struct fe_state *fe, struct fe_act *A, const struct fe_node *n, int at,
                         int items) {
  lua_State *L = fe->L;
  int bad = -1;
  for (int i = 0; i < items; i++) {
    if (fe_is_dev(L, at + i)) {
      int pair = i + 1 < items ? at + i : at + i - 1;
      A->node = concat_op(n, pair - at);
      fe_check_defined(fe, at + i);
      if (!fe_is_unknown(lua_touserdata(L, at + i)))
        fe_soft_error(fe, DIAG_STAGE_OPERAND, "cannot concatenate %s and %s", fe_describe(fe, pair),
                      fe_describe(fe, pair + 1));
      give_unknown(fe, at);
      return false;
    }
    if (has_event(L, at + i, "__concat"))
      return true;
    if (!is_text(L, at + i))
      bad = i;
  }
  if (bad == items - 1 && bad > 0 && !is_text(L, at + bad - 1))
    bad--;
  fe_operand_error(fe, A, concat_op(n, bad < items - 1 ? bad : bad - 1), concat_item(n, bad),
                   at + bad, "concatenate");
}

static void eval_concat(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  lua_State *L = fe->L;
  fe_enter(fe);
  int at = lua_gettop(L) + 1, items = 1;
  bool all_text = true;
  const struct fe_node *m = n;
  for (; m->kind == FE_CONCAT && (m == n || !m->parens); m = m->b) {
    fe_eval(fe, A, m->a);
    all_text = all_text && is_text(L, -1);
    if (items++ % 8 == 0)
      fe_need_stack(L, STACK_MARGIN, "too many values");
  }
  fe_eval(fe, A, m);
  all_text = all_text && is_text(L, -1);
  A->node = n;
  if (!all_text && !check_concat(fe, A, n, at, items))
    return;
  lua_concat(L, items);
  fe->act = A;
  size_t len;
  if (lua_type(L, -1) == LUA_TSTRING && lua_tolstring(L, -1, &len) && len > 256)
    fe_charge(fe, fe_lib_byte_steps(len));
}

/* ---- constructors ---- */

static void flush_fields(lua_State *L, int table, int pending, lua_Integer *next) {
  for (int i = pending; i > 0; i--)
    lua_rawseti(L, table, *next + i - 1);
  *next += pending;
}

/* A constructor that ends in several values: all are evaluated before the table is made, so that
 * its array part gets the size that stock Lua gives it (which `#` can tell where there are
 * nils). */
static void eval_open_table(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  lua_State *L = fe->L;
  fe_need_stack(L, 2 * PENDING_FIELDS + STACK_MARGIN, "too many values");
  int at = lua_gettop(L) + 1, several = 0;
  for (uint32_t i = 0; i < n->n; i++) {
    const struct fe_node *key = n->list2[i];
    if (key)
      fe_eval(fe, A, key->kind == FE_STRING ? key : key->a);
    if (i + 1 < n->n)
      fe_eval(fe, A, n->list[i]);
    else
      several = eval_multi(fe, A, n->list[i], -1);
  }
  fe_need_stack(L, STACK_MARGIN, "too many values");
  lua_createtable(L, (int)n->n2 - 1 + several, (int)(n->n - n->n2));
  fe_table_born(fe, lua_gettop(L));
  int table = lua_gettop(L), next = 1;
  for (uint32_t i = 0, v = (uint32_t)at; i + 1 < n->n; v += n->list2[i] ? 2 : 1, i++)
    if (n->list2[i]) {
      A->node = n->list2[i];
      lua_pushvalue(L, (int)v);
      lua_pushvalue(L, (int)v + 1);
      if (fe_is_dev(L, -2))
        fe_refuse_device_key(fe, n->list2[i], (int)v);
      else
        lua_rawset(L, table);
      lua_settop(L, table);
    }
  for (uint32_t i = 0, v = (uint32_t)at; i + 1 < n->n; v += n->list2[i] ? 2 : 1, i++)
    if (!n->list2[i]) {
      lua_pushvalue(L, (int)v);
      lua_rawseti(L, table, next++);
    }
  for (int i = table - several; i < table; i++) {
    lua_pushvalue(L, i);
    lua_rawseti(L, table, next++);
  }
  if (table > at)
    lua_replace(L, at);
  lua_settop(L, at);
}

static void eval_table(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  lua_State *L = fe->L;
  fe_enter(fe);
  if (n->n && n->n <= PENDING_FIELDS && !n->list2[n->n - 1] && is_multi(n->list[n->n - 1])) {
    eval_open_table(fe, A, n);
    return;
  }
  lua_createtable(L, (int)n->n2, (int)(n->n - n->n2));
  fe_table_born(fe, lua_gettop(L));
  if (n->n == 0)
    return;
  int table = lua_gettop(L), pending = 0;
  lua_Integer next = 1;
  if (n->n2 > 4)
    fe_need_stack(L, PENDING_FIELDS + STACK_MARGIN, "too many values");
  for (uint32_t i = 0; i < n->n; i++) {
    const struct fe_node *key = n->list2[i];
    if (pending == PENDING_FIELDS) {
      flush_fields(L, table, pending, &next);
      pending = 0;
    }
    if (!key) {
      if (i + 1 == n->n && is_multi(n->list[i]))
        pending += eval_multi(fe, A, n->list[i], -1);
      else {
        fe_eval(fe, A, n->list[i]);
        pending++;
      }
    } else if (key->kind == FE_STRING) {
      fe_eval(fe, A, n->list[i]);
      A->node = key;
      lua_setfield(L, table, key->u.name->s);
    } else {
      fe_eval(fe, A, key->a);
      fe_eval(fe, A, n->list[i]);
      A->node = key;
      if (fe_is_dev(L, -2)) {
        fe_refuse_device_key(fe, key, lua_gettop(L) - 1);
        lua_settop(L, -3);
      } else {
        lua_rawset(L, table);
      }
    }
  }
  flush_fields(L, table, pending, &next);
}

static void eval_string(struct fe_state *fe, struct fe_name *name) {
  lua_State *L = fe->L;
  if (!name->ref) {
    lua_pushlstring(L, name->s, name->n);
    name->ref = luaL_ref(L, LUA_REGISTRYINDEX);
  }
  lua_rawgeti(L, LUA_REGISTRYINDEX, name->ref);
}

void fe_eval(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  lua_State *L = fe->L;
  int compared;
  switch (n->kind) {
  case FE_NIL: lua_pushnil(L); return;
  case FE_FALSE: lua_pushboolean(L, 0); return;
  case FE_TRUE: lua_pushboolean(L, 1); return;
  case FE_INTEGER: lua_pushinteger(L, n->u.i); return;
  case FE_NUMBER: lua_pushnumber(L, n->u.f); return;
  case FE_STRING: eval_string(fe, n->u.name); return;
  case FE_LOCAL:
    if (n->u.var->boxed)
      lua_getiuservalue(L, fe_slot_index(A, n->u.var), 1);
    else
      lua_pushvalue(L, fe_slot_index(A, n->u.var));
    break;
  case FE_UPVALUE: eval_upvalue(fe, A, n); break;
  case FE_GLOBAL:
    A->node = n;
    lua_getglobal(L, n->u.name->s);
    break;
  case FE_VARARG: eval_vararg(fe, A, 1); return;
  case FE_PAREN: fe_eval(fe, A, n->a); return;
  case FE_INDEX: eval_index(fe, A, n); return;
  case FE_FIELD:
    fe_enter(fe);
    fe_eval(fe, A, n->a);
    get_field(fe, A, n);
    return;
  case FE_CALL:
  case FE_METHOD: eval_call(fe, A, n, 1); return;
  case FE_FUNCTION: fe_push_function(fe, A, n->u.func); return;
  case FE_UNARY: eval_unary(fe, A, n); return;
  case FE_BINARY: eval_binary(fe, A, n); return;
  case FE_COMPARE:
    if ((compared = fe_eval_compare(fe, A, n)) >= 0)
      lua_pushboolean(L, compared);
    return;
  case FE_CONCAT: eval_concat(fe, A, n); return;
  case FE_AND:
  case FE_OR: fe_eval_logic(fe, A, n, false); return;
  case FE_TABLE: eval_table(fe, A, n); return;
  default: KILN_UNREACHABLE();
  }
  if (fe->n_undef && fe_is_dev(L, -1)) {
    A->node = n;
    fe_trap_undef(fe, -1);
  }
}
