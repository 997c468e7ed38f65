/* Device loops: `for` over a range, `while` on a device condition.
 *
 * Pass 1 runs the body with the values from before the loop; what it changed becomes carried. The
 * next pass binds the carried slots to arguments of the loop and runs the body again; if further
 * slots changed, or a carried one needs another type, once more. The last pass is kept, the others
 * leave no trace. So an invariant stays a plain Lua number, and a carried value gets the dtype that
 * the body gives it. Only locals are carried, also captured ones; a table field, or a local that
 * cannot be carried, is *undefined* at the start of the body and after the loop: scratch use is
 * fine, a read of the former iteration's value is the error. */
#include "frontend/eval.h"

#define MAX_PASSES 6

struct loop {
  struct fe_state *fe;
  struct fe_act *A;
  const struct fe_node *n;
  int range;            /* stack position of the range; 0 for `while` */
  bool unknown;         /* a refused condition: nothing is built */
  struct fe_changes at; /* places of carried slots: containers and keys; only `values` is used */
  int n_values;
  VEC(struct fe_carry) carried;
};

/* Where the loop is, for messages. */
static const char *place_of(const struct loop *l) {
  return fe_place(l->fe, fe_node_loc(l->A, l->n));
}

/* ---- what a changed slot is carried as ---- */

static const char *text_of(struct fe_state *fe, int idx) {
  lua_pushvalue(fe->L, idx);
  const char *text = arena_strdup(&fe->trace, lua_tostring(fe->L, -1));
  lua_pop(fe->L, 1);
  return text;
}

/* "f32" of "f32(4)". */
static const char *dtype_of(struct fe_state *fe, const struct fe_dev *dev) {
  const char *text = fe->tracer->describe(fe->tracer->user, dev);
  return arena_strndup(&fe->trace, text, strcspn(text, "("));
}

static bool is_carriable(lua_State *L, int idx) {
  const struct fe_dev *dev = fe_to_dev(L, idx);
  return dev ? dev->kind == FE_DEV_VALUE : lua_type(L, idx) == LUA_TNUMBER || lua_isboolean(L, idx);
}

/* Why the values before the loop and after an iteration, at stack positions init and next, cannot
 * be carried in one variable. */
static const char *mismatch(struct loop *l, const char *name, const struct fe_carry *c, int init,
                            int next) {
  struct fe_state *fe = l->fe;
  lua_State *L = fe->L;
  const char *set = fe_place(fe, c->place.at.loc);
  for (int i = 0; i < 2; i++) {
    struct fe_dev *dev = fe_to_dev(L, i ? next : init);
    if (dev && dev->kind == FE_DEV_UNDEF)
      return ((struct fe_undef *)dev)->reason;
  }
  for (int i = 0; i < 2; i++) {
    int v = i ? next : init;
    if (!lua_isnil(L, v) && !is_carriable(L, v))
      return arena_printf(
          &fe->trace,
          "%s (%s) changes in the device loop at %s (set at %s): only device values, "
          "numbers and booleans can be carried",
          name, fe_describe(fe, v), place_of(l), set);
  }
  const struct fe_dev *dev = fe_to_dev(L, next);
  if (lua_type(L, init) == LUA_TNUMBER && dev && !(dev->flags & FE_DEV_SCALAR))
    return arena_printf(
        &fe->trace,
        "%s is %s before the loop at %s and %s after an iteration (set at %s): start "
        "it with full(%s, ...)",
        name, fe_describe(fe, init), place_of(l), fe_describe(fe, next), set, dtype_of(fe, dev));
  if (lua_type(L, init) == LUA_TNUMBER && lua_type(L, next) == LUA_TNUMBER)
    return arena_printf(
        &fe->trace,
        "%s changes in the device loop at %s (set at %s) but has no dtype: start it "
        "with f32(%s)",
        name, place_of(l), set, text_of(fe, init));
  return arena_printf(
      &fe->trace,
      "%s is %s at the start of the loop at %s and %s at the end of an iteration (set "
      "at %s)",
      name, fe_describe(fe, init), place_of(l), fe_describe(fe, next), set);
}

/* was_nil: the field was not there before the loop. */
static void classify_field(struct loop *l, struct fe_carry *c, const char *name, bool was_nil) {
  struct fe_state *fe = l->fe;
  const char *set = fe_place(fe, c->place.at.loc);
  c->state = FE_CARRY_UNDEF;
  c->before = c->after = arena_printf(
      &fe->trace,
      "%s set at %s in the device loop at %s is read in the next iteration or after the "
      "loop: only locals are carried",
      name, set, place_of(l));
  c->grown = NULL;
  if (was_nil)
    c->grown =
        arena_printf(&fe->trace, "the loop at %s never settles: a table grows in it (%s at %s)",
                     place_of(l), name, set);
}

/* Decides how a slot is carried that is `init` before the loop and `next` at the end of the
 * body. */
static void classify(struct loop *l, struct fe_carry *c, int init, int next) {
  struct fe_state *fe = l->fe;
  if (c->place.at.kind == FE_AT_FIELD) {
    classify_field(l, c, fe_change_name(fe, &l->at, &c->place, true), lua_isnil(fe->L, init));
    return;
  }
  if (lua_isnil(fe->L, init)) {
    const char *name = fe_change_name(fe, &l->at, &c->place, true);
    c->state = FE_CARRY_UNDEF;
    c->before =
        arena_printf(&fe->trace,
                     "%s is nil before the loop at %s and set in it (at %s): here it would be "
                     "the value of the iteration before; initialise it before the loop",
                     name, place_of(l), fe_place(fe, c->place.at.loc));
    c->after =
        arena_printf(&fe->trace,
                     "%s is set only in the device loop at %s: it has no value after it if the "
                     "loop runs zero times",
                     name, place_of(l));
    return;
  }
  struct fe_type type = c->type;
  switch (fe_merge_values(fe, init, next, &type)) {
  case FE_MERGE_SAME: return;
  case FE_MERGE_TYPE:
    c->state = FE_CARRY_TYPED;
    c->type = type;
    return;
  case FE_MERGE_UNKNOWN: c->state = FE_CARRY_UNKNOWN; return;
  case FE_MERGE_NONE:
    c->state = FE_CARRY_UNDEF;
    c->before = c->after = mismatch(l, fe_change_name(fe, &l->at, &c->place, true), c, init, next);
    return;
  }
}

/* ---- the set of carried slots ---- */

static struct fe_carry *find_carry(struct loop *l, const struct fe_changes *in,
                                   const struct fe_change *c) {
  for (uint32_t i = 0; i < l->carried.n; i++)
    if (fe_same_place(l->fe, &l->carried.at[i].place, &l->at, c, in))
      return &l->carried.at[i];
  return NULL;
}

static void sort_carried(struct loop *l) {
  for (uint32_t i = 1; i < l->carried.n; i++) {
    struct fe_carry x = l->carried.at[i];
    uint32_t j = i;
    for (; j > 0 && fe_order_changes(&x.place, &l->carried.at[j - 1].place) < 0; j--)
      l->carried.at[j] = l->carried.at[j - 1];
    l->carried.at[j] = x;
  }
}

/* Adds a place; container and key are on top (popped). */
static struct fe_carry *add_carry(struct loop *l, const struct fe_entry *at) {
  lua_State *L = l->fe->L;
  struct fe_carry c = {.place = {.at = *at, .value = l->n_values++}};
  lua_Integer k = 4 * (lua_Integer)c.place.value;
  lua_rawseti(L, l->at.values, k + 2);
  lua_rawseti(L, l->at.values, k + 1);
  VEC_PUSH(&l->fe->trace, &l->carried, c);
  return &VEC_LAST(&l->carried);
}

/* Takes in what a pass changed. Whether another pass is needed; *why then is one of the changes. */
static bool update(struct loop *l, const struct fe_changes *changes, const struct fe_change **why) {
  struct fe_state *fe = l->fe;
  lua_State *L = fe->L;
  bool fresh = false;
  uint32_t known = l->carried.n;
  for (uint32_t i = changes->list.n; i-- > 0;) { /* oldest write first */
    const struct fe_change *c = &changes->list.at[i];
    struct fe_carry *carry = find_carry(l, changes, c);
    if (c->at.kind == FE_AT_META) {
      fe_soft_error_at(
          fe, DIAG_STAGE_CARRY, c->at.loc,
          "the metatable of a table changes in the device loop at %s: set it before the "
          "loop",
          place_of(l));
      continue;
    }
    struct fe_carry old = {.state = FE_CARRY_TYPED};
    if (carry) {
      if (carry->state != FE_CARRY_TYPED)
        continue;
      old = *carry;
    } else {
      fe_push_change(fe, changes, c, 1);
      fe_push_change(fe, changes, c, 2);
      carry = add_carry(l, &c->at);
    }
    fe_push_change(fe, changes, c, 3);
    fe_push_change(fe, changes, c, 4);
    classify(l, carry, lua_gettop(L) - 1, lua_gettop(L));
    lua_pop(L, 2);
    if (carry->state != old.state || carry->type.id != old.type.id ||
        carry >= l->carried.at + known) {
      fresh = true;
      *why = c;
    }
  }
  sort_carried(l);
  return fresh;
}

/* Fills `slots` with the carried slots that have a type; how many. */
static uint32_t typed_slots(struct loop *l, struct fe_slot *slots) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < l->carried.n; i++) {
    const struct fe_carry *c = &l->carried.at[i];
    if (c->state == FE_CARRY_TYPED)
      slots[n++] = (struct fe_slot){.name = fe_change_name(l->fe, &l->at, &c->place, false),
                                    .is_captured = c->place.at.kind == FE_AT_BOX,
                                    .type = c->type};
  }
  return n;
}

/* Start of a pass: carried slots become arguments of the loop, the others undefined. */
static void bind(struct loop *l, struct fe_region_state *r) {
  struct fe_state *fe = l->fe;
  lua_State *L = fe->L;
  for (uint32_t i = 0; i < l->carried.n; i++) {
    const struct fe_carry *c = &l->carried.at[i];
    fe_push_place(fe, l->A, &l->at, &c->place);
    int init = lua_gettop(L);
    if (c->state == FE_CARRY_TYPED && !l->unknown) {
      struct fe_slot slot = {.name = fe_change_name(fe, &l->at, &c->place, false),
                             .is_captured = c->place.at.kind == FE_AT_BOX,
                             .type = c->type,
                             .first = init};
      fe->tracer->loop_arg(fe->tracer->user, &r->pub, &slot);
    } else if (c->state == FE_CARRY_UNDEF) {
      fe_push_undef(fe, c->before, c->grown);
    } else {
      fe_push_unknown(fe);
    }
    fe_store_change(fe, l->A, &l->at, &c->place);
    lua_settop(L, init - 1);
  }
}

/* ---- inheritance between passes of nested loops ---- */

static struct fe_region_state *enclosing_loop(const struct fe_state *fe) {
  struct fe_region_state *r = fe->top;
  while (r && r->pub.kind != FE_REGION_LOOP)
    r = r->up;
  return r;
}

static bool is_own_box(const struct loop *l, const struct fe_entry *at) {
  return at->kind == FE_AT_BOX && at->var->func == l->A->func &&
         lua_touserdata(l->fe->L, fe_slot_index(l->A, at->var)) == at->object;
}

/* Remembers the settled set for the next pass of the loop around this one. */
static void settle(struct loop *l, struct fe_region_state *outer, struct fe_settled *record) {
  struct fe_state *fe = l->fe;
  lua_State *L = fe->L;
  record->node = l->n;
  memset(&record->carried, 0, sizeof record->carried);
  for (uint32_t i = 0; i < l->carried.n; i++) {
    struct fe_carry c = l->carried.at[i];
    const struct fe_entry *at = &c.place.at;
    c.own = is_own_box(l, at);
    uint32_t born = at->kind == FE_AT_FIELD ? fe_table_stamp(fe, at->object)
                    : at->kind == FE_AT_BOX ? ((const struct fe_box *)at->object)->stamp.born
                                            : 0;
    if (c.own || born < outer->pub.serial) /* otherwise the next pass has another one */
      VEC_PUSH(&fe->trace, &record->carried, c);
  }
  record->values = ++fe->n_settled;
  lua_rawgeti(L, LUA_REGISTRYINDEX, fe->settled_ref);
  lua_pushvalue(L, l->at.values);
  lua_rawseti(L, -2, record->values);
  lua_pop(L, 1);
  VEC_PUSH(&fe->trace, &outer->record->inner, record);
}

/* Whether the value that a place has now can be bound to the type it was carried as. */
static bool still_fits(struct loop *l, const struct fe_carry *c) {
  struct fe_state *fe = l->fe;
  lua_State *L = fe->L;
  if (c->state != FE_CARRY_TYPED)
    return true;
  fe_push_place(fe, l->A, &l->at, &c->place);
  const struct fe_dev *dev = fe_to_dev(L, -1);
  bool fits = dev ? dev->kind == FE_DEV_VALUE && dev->type.id == c->type.id
                  : is_carriable(L, -1) && fe->tracer->is_scalar_type(fe->tracer->user, c->type) &&
                        fe->tracer->fits(fe->tracer->user, c->type, lua_gettop(L));
  lua_pop(L, 1);
  return fits;
}

static void inherit(struct loop *l, const struct fe_settled *from) {
  struct fe_state *fe = l->fe;
  lua_State *L = fe->L;
  lua_rawgeti(L, LUA_REGISTRYINDEX, fe->settled_ref);
  lua_rawgeti(L, -1, from->values);
  lua_replace(L, -2);
  struct fe_changes values = {.values = lua_gettop(L)};
  for (uint32_t i = 0; i < from->carried.n; i++) {
    struct fe_carry c = from->carried.at[i];
    if (c.own) {
      lua_pushvalue(L, fe_slot_index(l->A, c.place.at.var));
      c.place.at.object = lua_touserdata(L, -1);
      lua_pushnil(L);
    } else {
      fe_push_change(fe, &values, &c.place, 1);
      fe_push_change(fe, &values, &c.place, 2);
    }
    struct fe_carry *added = add_carry(l, &c.place.at);
    c.place.value = added->place.value;
    *added = c;
    if (!still_fits(l, added))
      l->carried.n--;
  }
  lua_settop(L, values.values - 1);
  sort_carried(l);
}

/* ---- passes ---- */

static void declare_index(struct loop *l, struct fe_region_state *r) {
  struct fe_state *fe = l->fe;
  fe->tracer->loop_index(fe->tracer->user, &r->pub, l->range);
  fe_declare(fe, l->A, l->n->vars[0]);
  for (uint32_t i = 1; i < l->n->n_vars; i++) {
    lua_pushnil(fe->L);
    fe_declare(fe, l->A, l->n->vars[i]);
  }
}

/* Traces the condition of a device `while`, which every iteration evaluates first, and rebinds the
 * carried slots for the body. */
static void trace_condition(struct loop *l, struct fe_region_state *r) {
  struct fe_state *fe = l->fe;
  lua_State *L = fe->L;
  struct fe_act *A = l->A;
  struct fe_region_state *inner = fe_region_open(fe, A, FE_REGION_PROBE, l->n);
  enum fe_truth t = fe_eval_truth(fe, A, l->n->a, false);
  if (t != FE_IS_STAGED)
    lua_pushboolean(L, t == FE_IS_TRUE);
  int mask = lua_gettop(L);
  A->node = l->n;
  const char *changed = fe_region_changed(fe);
  const char *effect = fe->tracer->effect(fe->tracer->user, &inner->pub);
  if (changed || effect)
    fe_soft_error(fe, DIAG_STAGE_EFFECT,
                  "the condition of a device `while` has an effect (%s%s): move it into the loop",
                  changed ? "changes " : "", changed ? changed : effect);
  fe_region_join(fe);
  fe_region_free(fe, inner);
  const struct fe_dev *dev = fe_to_dev(L, mask);
  if (fe_is_unknown(dev))
    l->unknown = true;
  else if (dev && !(dev->flags & FE_DEV_SCALAR)) {
    fe_soft_error(fe, DIAG_STAGE_CONTROL, "`while` on a tile %s; use where(cond, x, y)",
                  fe_describe(fe, mask));
    l->unknown = true;
  }
  struct fe_slot *slots = ARENA_ARRAY(&fe->trace, struct fe_slot, l->carried.n + 1);
  uint32_t n = typed_slots(l, slots), k = 0;
  fe_need_stack(L, 2 * (int)n + 40, "too many carried values");
  for (uint32_t i = 0; i < l->carried.n; i++)
    if (l->carried.at[i].state == FE_CARRY_TYPED) {
      fe_push_place(fe, A, &l->at, &l->carried.at[i].place);
      slots[k++].first = lua_gettop(L);
    }
  int value = lua_gettop(L) + 1;
  if (!l->unknown)
    fe->tracer->while_cond(fe->tracer->user, &r->pub, mask, n, slots);
  for (uint32_t i = 0; i < l->carried.n; i++)
    if (l->carried.at[i].state == FE_CARRY_TYPED) {
      if (l->unknown)
        fe_push_unknown(fe);
      else
        lua_pushvalue(L, value++);
      fe_store_change(fe, A, &l->at, &l->carried.at[i].place);
    }
  lua_settop(L, mask - 1);
}

static void run_pass(struct loop *l, struct fe_region_state *r) {
  struct fe_state *fe = l->fe;
  int top = lua_gettop(fe->L);
  l->A->node = l->n;
  if (l->range) {
    declare_index(l, r);
    bind(l, r);
  } else {
    bind(l, r);
    trace_condition(l, r);
  }
  fe_step(fe);
  enum fe_signal s = fe_exec_block(fe, l->A, l->n->body);
  if (s != FE_GO_ON)
    fe_refuse_leaving(fe, l->A, s, &r->pub, "a device loop");
  lua_settop(fe->L, top);
}

/* ---- merge functions ---- */

static const char *names_of(struct loop *l, uint32_t n, const struct fe_slot *slots) {
  struct strbuf b = {.arena = &l->fe->trace};
  for (uint32_t i = 0; i < n; i++)
    sb_printf(&b, "%s`%s`", i ? ", " : "", slots[i].name);
  return sb_str(&b);
}

/* Can the loop run in parts, and can the function be told of the carried values by their names? */
static bool can_merge(struct loop *l, struct fe_region *body, uint32_t n,
                      const struct fe_slot *slots) {
  struct fe_state *fe = l->fe;
  const char *effect = fe->tracer->effect(fe->tracer->user, body);
  if (effect)
    fe_soft_error(
        fe, DIAG_STAGE_EFFECT,
        "the loop at %s has a merge function and an effect (%s): only what it carries can "
        "be merged",
        place_of(l), effect);
  if (n == 0)
    fe_soft_error(fe, DIAG_STAGE_CARRY, "the loop at %s has a merge function but carries no local",
                  place_of(l));
  for (uint32_t i = 1; i < n; i++)
    for (uint32_t k = 0; k < i; k++)
      if (str_eq(slots[i].name, slots[k].name)) {
        fe_soft_error(fe, DIAG_STAGE_CARRY,
                      "the loop at %s carries two variables called `%s`: its merge function cannot "
                      "tell them apart; rename one",
                      place_of(l), slots[i].name);
        return false;
      }
  return n > 0 && !effect;
}

/* The merged value of a slot, at the top of the stack: is it of the slot's type? */
static bool check_merged(struct loop *l, const struct fe_slot *slot) {
  struct fe_state *fe = l->fe;
  const struct fe_tracer *t = fe->tracer;
  lua_State *L = fe->L;
  fe_check_defined(fe, lua_gettop(L));
  const struct fe_dev *dev = fe_to_dev(L, -1);
  if (fe_is_unknown(dev))
    return false;
  if (lua_isnil(L, -1)) {
    fe_soft_error(fe, DIAG_STAGE_CARRY,
                  "merge gives no value for `%s`, which the loop at %s carries", slot->name,
                  place_of(l));
    return false;
  }
  bool fits = dev ? dev->kind == FE_DEV_VALUE && dev->type.id == slot->type.id
                  : is_carriable(L, -1) && t->is_scalar_type(t->user, slot->type) &&
                        t->fits(t->user, slot->type, lua_gettop(L));
  if (!fits)
    fe_soft_error(fe, DIAG_STAGE_CARRY, "merge gives %s for `%s`; the loop at %s carries %s",
                  fe_describe(fe, lua_gettop(L)), slot->name, place_of(l),
                  t->describe_type(t->user, slot->type));
  return fits;
}

/* Names in the table at `table` that are no slot's: the first in byte order. */
static const char *unknown_name(struct loop *l, int table, uint32_t n,
                                const struct fe_slot *slots) {
  lua_State *L = l->fe->L;
  const char *first = NULL;
  for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
    const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : fe_describe(l->fe, -2);
    bool known = false;
    for (uint32_t i = 0; i < n; i++)
      known |= lua_type(L, -2) == LUA_TSTRING && str_eq(key, slots[i].name);
    if (!known && (!first || strcmp(key, first) < 0))
      first = arena_strdup(&l->fe->trace, key);
  }
  return first;
}

/* Takes merged values from the table at `table`; they stay on the stack. */
static bool take_merged(struct loop *l, int table, uint32_t n, struct fe_slot *slots) {
  struct fe_state *fe = l->fe;
  lua_State *L = fe->L;
  bool ok = true;
  fe_check_defined(fe, table);
  if (fe_is_unknown(fe_to_dev(L, table)))
    return false;
  if (!lua_istable(L, table)) {
    fe_soft_error(fe, DIAG_STAGE_CARRY, "merge gives %s, not a table with the merged values of %s",
                  fe_describe(fe, table), names_of(l, n, slots));
    return false;
  }
  for (uint32_t i = 0; i < n; i++) {
    lua_pushstring(L, slots[i].name);
    lua_rawget(L, table);
    ok = check_merged(l, &slots[i]) && ok;
    slots[i].second = lua_gettop(L);
  }
  const char *extra = unknown_name(l, table, n, slots);
  if (extra)
    fe_soft_error(fe, DIAG_STAGE_CARRY, "merge gives `%s`; the loop at %s carries %s", extra,
                  place_of(l), names_of(l, n, slots));
  return ok && !extra;
}

/* Where the range has a merge function: calls it on two parts' values, and what it gives stands
 * for the loop's results, n values from stack position `result`, from now on. */
static void merge_parts(struct loop *l, struct fe_region *body, uint32_t n, struct fe_slot *slots,
                        int result) {
  struct fe_state *fe = l->fe;
  lua_State *L = fe->L;
  const struct fe_tracer *t = fe->tracer;
  int top = lua_gettop(L);
  if (!t->merge_fn || !t->merge_fn(t->user, l->range))
    return;
  if (!can_merge(l, body, n, slots)) {
    lua_settop(L, top);
    return;
  }
  fe_need_stack(L, 2 * (int)n + 40, "too many carried values");
  for (uint32_t i = 0; i < n; i++)
    slots[i].first = result + (int)i;
  struct fe_region_state *r = fe_region_open(fe, l->A, FE_REGION_MERGE, l->n);
  t->merge_args(t->user, &r->pub, n, slots);
  fe_call(fe, 2, 1);
  l->A->node = l->n;
  bool ok = take_merged(l, top + 1, n, slots);
  const char *changed = fe_region_changed(fe), *effect = t->effect(t->user, &r->pub);
  if (changed || effect) {
    fe_soft_error(fe, DIAG_STAGE_EFFECT, "a merge function has an effect (%s%s): it only computes",
                  changed ? "changes " : "", changed ? changed : effect);
    ok = false;
  }
  fe_region_close(fe, ok, NULL);
  if (ok) {
    t->build_merge(t->user, &r->pub, n, slots);
    for (uint32_t i = n; i-- > 0;)
      lua_replace(L, result + (int)i);
  }
  fe_region_free(fe, r);
  lua_settop(L, top);
}

/* The last pass is closed and kept: builds the loop and gives carried slots their values after
 * it. */
static void build(struct loop *l, struct fe_region_state *r, const struct fe_changes *changes) {
  struct fe_state *fe = l->fe;
  lua_State *L = fe->L;
  const struct fe_tracer *t = fe->tracer;
  struct fe_slot *slots = ARENA_ARRAY(&fe->trace, struct fe_slot, l->carried.n + 1);
  uint32_t n = typed_slots(l, slots), k = 0;
  fe_need_stack(L, 3 * (int)n + 40, "too many carried values");
  for (uint32_t i = 0; i < l->carried.n; i++) {
    const struct fe_carry *c = &l->carried.at[i];
    if (c->state != FE_CARRY_TYPED)
      continue;
    fe_push_place(fe, l->A, &l->at, &c->place);
    slots[k].first = lua_gettop(L);
    lua_pushvalue(L, -1);
    for (uint32_t j = 0; j < changes->list.n; j++)
      if (fe_same_place(fe, &changes->list.at[j], changes, &c->place, &l->at)) {
        lua_pop(L, 1);
        fe_push_change(fe, changes, &changes->list.at[j], 4);
      }
    slots[k++].second = lua_gettop(L);
  }
  int result = lua_gettop(L) + 1;
  l->A->node = l->n;
  if (l->unknown) {
    for (uint32_t i = 0; i < n; i++)
      fe_push_unknown(fe);
  } else if (l->range) {
    t->build_for(t->user, &r->pub, l->range, n, slots);
    merge_parts(l, &r->pub, n, slots, result);
  } else {
    t->build_while(t->user, &r->pub, n, slots);
  }
  for (uint32_t i = 0; i < l->carried.n; i++) {
    const struct fe_carry *c = &l->carried.at[i];
    if (c->state == FE_CARRY_TYPED)
      lua_pushvalue(L, result++);
    else if (c->state == FE_CARRY_UNDEF)
      fe_push_undef(fe, c->after, NULL);
    else
      fe_push_unknown(fe);
    fe_store_change(fe, l->A, &l->at, &c->place);
  }
}

/* After MAX_PASSES something still changes. Whatever the loop touched is unknown from here on. */
static void give_up(struct loop *l, const struct fe_changes *changes, const struct fe_change *why) {
  struct fe_state *fe = l->fe;
  const char *name = fe_change_name(fe, changes, why, true);
  l->A->node = l->n;
  fe_soft_error(fe, DIAG_STAGE_CARRY, "the loop at %s never settles: %s (%s at %s)", place_of(l),
                why->at.kind == FE_AT_FIELD ? "a table grows in it"
                                            : "a variable changes in every pass",
                name, fe_place(fe, why->at.loc));
  for (uint32_t i = 0; i < l->carried.n; i++) {
    fe_push_unknown(fe);
    fe_store_change(fe, l->A, &l->at, &l->carried.at[i].place);
  }
}

static void trace_loop(struct fe_state *fe, struct fe_act *A, const struct fe_node *n, int range) {
  lua_State *L = fe->L;
  fe_need_stack(L, 60, "too many values");
  int top = lua_gettop(L);
  lua_newtable(L);
  struct loop l = {.fe = fe, .A = A, .n = n, .range = range, .at = {.values = top + 1}};
  struct fe_region_state *outer = enclosing_loop(fe);
  const struct fe_settled *before = NULL;
  if (outer) {
    uint32_t k = outer->n_inner++;
    if (outer->inherit && k < outer->inherit->inner.n && outer->inherit->inner.at[k]->node == n)
      before = outer->inherit->inner.at[k];
  }
  if (before)
    inherit(&l, before);
  for (uint32_t pass = 1;; pass++) {
    struct fe_changes changes;
    const struct fe_change *why = NULL;
    struct fe_settled *record = ARENA_NEW(&fe->trace, struct fe_settled);
    struct fe_region_state *r = fe_region_open(fe, A, FE_REGION_LOOP, n);
    r->pub.pass = pass;
    r->inherit = before;
    r->record = record;
    run_pass(&l, r);
    fe_region_undo(fe, &changes);
    bool fresh = update(&l, &changes, &why), last = !fresh || pass == MAX_PASSES;
    fe_region_pop(fe, !fresh && !l.unknown);
    if (!fresh)
      build(&l, r, &changes);
    else if (last)
      give_up(&l, &changes, why);
    fe_region_free(fe, r);
    lua_settop(L, top + 1);
    before = record;
    if (last) {
      if (outer)
        settle(&l, outer, record);
      break;
    }
  }
  lua_settop(L, top);
}

enum fe_signal fe_device_for(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  trace_loop(fe, A, n, A->base + (int)n->index);
  return FE_GO_ON;
}

enum fe_signal fe_exec_while(struct fe_state *fe, struct fe_act *A, const struct fe_node *n) {
  for (unsigned count = 0;; count++) {
    struct fe_region_state *probe = fe_region_open(fe, A, FE_REGION_PROBE, n);
    enum fe_truth t = fe_eval_truth(fe, A, n->a, count == 0);
    if (t == FE_IS_STAGED) {
      fe_region_close(fe, false, NULL);
      fe_region_free(fe, probe);
      lua_pop(fe->L, 1);
      if (count > 0)
        fe_warn(fe, DIAG_UNROLLED_WHILE, fe_node_loc(A, n),
                "the condition of this `while` became a device value after %u iteration%s, which "
                "%s unrolled",
                count, count == 1 ? "" : "s", count == 1 ? "was" : "were");
      trace_loop(fe, A, n, 0);
      return FE_GO_ON;
    }
    fe_region_join(fe);
    fe_region_free(fe, probe);
    if (t == FE_IS_FALSE)
      return FE_GO_ON;
    fe_step(fe);
    enum fe_signal s = fe_exec_block(fe, A, n->body);
    if (s == FE_GO_BREAK)
      return FE_GO_ON;
    if (s != FE_GO_ON)
      return s;
  }
}
