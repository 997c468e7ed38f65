/* Device `if`: both sides are traced, each in a region; every slot that one of them changed gets a
 * merged value. Values that are equal on both sides stay what they are, plain ones included; what
 * cannot be merged becomes undefined, and only a read of it is an error. An `if` whose two sides
 * both end in a `return` of equally many values returns the merged values. */
#include "frontend/eval.h"

/* One slot with its two values, at stack positions a (then) and a + 1 (else). */
struct merge {
  const struct fe_changes *in;   /* the side that holds its place */
  const struct fe_change *place; /* NULL: a return value */
  const char *name;
  int a;
  enum fe_merge how;
  struct fe_type type;
};

struct device_if {
  struct fe_state *fe;
  struct fe_act *A;
  const struct fe_node *arm; /* whose `if` or `elseif` it is */
  struct fe_changes then_side, else_side;
  VEC(struct merge) merges;
};

/* ---- merging two values ---- */

static enum fe_merge merge_number(struct fe_state *fe, const struct fe_dev *dev, int plain,
                                  struct fe_type *type) {
  const struct fe_tracer *t = fe->tracer;
  if (fe_is_unknown(dev))
    return FE_MERGE_UNKNOWN;
  if (dev->kind != FE_DEV_VALUE || !(dev->flags & FE_DEV_SCALAR) ||
      !t->fits(t->user, dev->type, plain))
    return FE_MERGE_NONE;
  *type = dev->type;
  return FE_MERGE_TYPE;
}

enum fe_merge fe_merge_values(struct fe_state *fe, int a, int b, struct fe_type *type) {
  lua_State *L = fe->L;
  const struct fe_dev *da = fe_to_dev(L, a), *db = fe_to_dev(L, b);
  if (fe_same_value(L, a, b))
    return FE_MERGE_SAME;
  if (da && db) {
    if (da->kind == FE_DEV_UNDEF || db->kind == FE_DEV_UNDEF)
      return FE_MERGE_NONE;
    if (fe_is_unknown(da) || fe_is_unknown(db))
      return FE_MERGE_UNKNOWN;
    if (da->kind != FE_DEV_VALUE || db->kind != FE_DEV_VALUE || da->type.id != db->type.id)
      return FE_MERGE_NONE;
    *type = da->type;
    return FE_MERGE_TYPE;
  }
  int other = da ? b : a;
  bool plain = lua_type(L, other) == LUA_TNUMBER || lua_isboolean(L, other);
  if (da || db)
    return plain                         ? merge_number(fe, da ? da : db, other, type)
           : fe_is_unknown(da ? da : db) ? FE_MERGE_UNKNOWN
                                         : FE_MERGE_NONE;
  if (lua_isinteger(L, a) && lua_isinteger(L, b)) {
    *type = fe->tracer->index_type;
    return FE_MERGE_TYPE;
  }
  if (lua_isboolean(L, a) && lua_isboolean(L, b)) {
    *type = fe->tracer->bool_type;
    return FE_MERGE_TYPE;
  }
  return FE_MERGE_NONE;
}

/* Why values at a, a + 1 do not merge. */
static const char *no_merge(struct device_if *d, const struct merge *m) {
  struct fe_state *fe = d->fe;
  lua_State *L = fe->L;
  const char *where = fe_place(fe, fe_node_loc(d->A, d->arm));
  const char *quoted = m->place ? fe_change_name(fe, m->in, m->place, true) : m->name;
  for (int i = m->a; i <= m->a + 1; i++) {
    struct fe_dev *dev = fe_to_dev(L, i);
    if (dev && dev->kind == FE_DEV_UNDEF)
      return ((struct fe_undef *)dev)->reason;
  }
  if (lua_isnil(L, m->a) || lua_isnil(L, m->a + 1))
    return arena_printf(&fe->trace,
                        "%s has a value only in one branch of the `if` at %s; assign it before the "
                        "if or in both branches",
                        quoted, where);
  const char *hint = "";
  if (lua_type(L, m->a) == LUA_TNUMBER && lua_type(L, m->a + 1) == LUA_TNUMBER) {
    lua_pushvalue(L, lua_isinteger(L, m->a) ? m->a + 1 : m->a);
    hint =
        arena_printf(&fe->trace, ", and neither has a dtype: write f32(%s)", lua_tostring(L, -1));
    lua_pop(L, 1);
  }
  return arena_printf(&fe->trace, "%s is %s in one branch and %s in the other (if at %s)%s", quoted,
                      fe_describe(fe, m->a), fe_describe(fe, m->a + 1), where, hint);
}

/* ---- collecting ---- */

static const struct fe_change *find(struct fe_state *fe, const struct fe_changes *in,
                                    const struct fe_change *c, const struct fe_changes *of) {
  for (uint32_t i = 0; i < in->list.n; i++)
    if (fe_same_place(fe, &in->list.at[i], in, c, of))
      return &in->list.at[i];
  return NULL;
}

/* Adds the merge of the two values on top of the stack. */
static void add_merge(struct device_if *d, struct merge m) {
  struct fe_state *fe = d->fe;
  m.a = lua_gettop(fe->L) - 1;
  m.how = fe_merge_values(fe, m.a, m.a + 1, &m.type);
  VEC_PUSH(&fe->trace, &d->merges, m);
}

static void add_change(struct device_if *d, const struct fe_changes *in, const struct fe_change *c,
                       const struct fe_change *then_c, const struct fe_change *else_c) {
  struct fe_state *fe = d->fe;
  struct merge m = {.in = in, .place = c, .name = fe_change_name(fe, in, c, false)};
  fe_need_stack(fe->L, 40, "too many values");
  if (c->at.kind == FE_AT_META) {
    fe_soft_error_at(
        fe, DIAG_STAGE_CARRY, c->at.loc,
        "the metatable of a table is changed in a branch of the device `if` at %s: set it "
        "before the if",
        fe_place(fe, fe_node_loc(d->A, d->arm)));
    return;
  }
  if (then_c)
    fe_push_change(fe, &d->then_side, then_c, 4);
  else
    fe_push_change(fe, &d->else_side, else_c, 3);
  if (else_c)
    fe_push_change(fe, &d->else_side, else_c, 4);
  else
    fe_push_change(fe, &d->then_side, then_c, 3);
  add_merge(d, m);
}

/* Every slot that either side changed, in the order in which carried values are named. */
static void collect(struct device_if *d) {
  struct fe_state *fe = d->fe;
  struct fe_changes all = {.values = 0};
  struct {
    const struct fe_changes *in;
    const struct fe_change *then_c, *else_c;
  } * sides;
  uint32_t most = d->then_side.list.n + d->else_side.list.n, n = 0;
  if (most == 0)
    return;
  sides = arena_get(&fe->trace, sizeof *sides * most);
  fe_sort_changes(&d->then_side);
  fe_sort_changes(&d->else_side);
  for (uint32_t i = 0; i < d->then_side.list.n; i++) {
    const struct fe_change *c = &d->then_side.list.at[i];
    sides[n].in = &d->then_side;
    sides[n].then_c = c;
    sides[n++].else_c = find(fe, &d->else_side, c, &d->then_side);
  }
  for (uint32_t i = 0; i < d->else_side.list.n; i++) {
    const struct fe_change *c = &d->else_side.list.at[i];
    if (find(fe, &d->then_side, c, &d->else_side))
      continue;
    sides[n].in = &d->else_side;
    sides[n].then_c = NULL;
    sides[n++].else_c = c;
  }
  for (uint32_t i = 0; i < n; i++) { /* `value` leads back to the sides */
    struct fe_change c = {.at = (sides[i].then_c ? sides[i].then_c : sides[i].else_c)->at,
                          .value = (int)i};
    VEC_PUSH(&fe->trace, &all.list, c);
  }
  fe_sort_changes(&all);
  for (uint32_t k = 0; k < n; k++) {
    uint32_t i = (uint32_t)all.list.at[k].value;
    add_change(d, sides[i].in, sides[i].then_c ? sides[i].then_c : sides[i].else_c, sides[i].then_c,
               sides[i].else_c);
  }
}

/* ---- control ---- */

void fe_refuse_leaving(struct fe_state *fe, struct fe_act *A, enum fe_signal signal,
                       const struct fe_region *r, const char *what) {
  const struct fe_node *n = fe->leaving;
  const char *hint = "", *word = signal == FE_GO_BREAK ? "break" : "return";
  if (signal == FE_GO_GOTO) {
    word = "goto";
    if (fe->label->at_end || str_eq(fe->label->name->s, "continue"))
      hint = "; invert the condition";
  } else if (signal == FE_GO_RETURN && (r->kind == FE_REGION_THEN || r->kind == FE_REGION_ELSE)) {
    hint =
        "; return as many values in both branches, or assign to a local and return it after the if";
  }
  fe_soft_error_at(fe, DIAG_STAGE_CONTROL, fe_node_loc(A, n), "`%s` out of %s (opened at %s)%s",
                   word, what, fe_place(fe, r->loc), hint);
}

struct side {
  enum fe_signal signal;
  const struct fe_node *leaving;
  const struct fe_label *label;
  int n_ret, ret; /* returned values, and the stack position of the first */
};

static struct side end_side(struct fe_state *fe, enum fe_signal s) {
  int n = s == FE_GO_RETURN ? fe->n_ret : 0;
  return (struct side){s, fe->leaving, fe->label, n, lua_gettop(fe->L) - n + 1};
}

static void refuse_side(struct device_if *d, const struct side *s, const struct fe_region *r) {
  d->fe->leaving = s->leaving;
  d->fe->label = s->label;
  fe_refuse_leaving(d->fe, d->A, s->signal, r, "a device if");
}

/* Whether both sides return and the values can be merged. Reports what leaves the `if`
 * otherwise. */
static bool check_signals(struct device_if *d, const struct side *a, const struct fe_region *ra,
                          const struct side *b, const struct fe_region *rb) {
  if (a->signal == FE_GO_RETURN && b->signal == FE_GO_RETURN) {
    if (a->n_ret == b->n_ret)
      return true;
    fe_soft_error_at(d->fe, DIAG_STAGE_CONTROL, fe_node_loc(d->A, b->leaving),
                     "`return` of %d value%s here and of %d in the other branch of the device if "
                     "(opened at %s)",
                     b->n_ret, b->n_ret == 1 ? "" : "s", a->n_ret, fe_place(d->fe, ra->loc));
    return false;
  }
  if (a->signal != FE_GO_ON)
    refuse_side(d, a, ra);
  if (b->signal != FE_GO_ON)
    refuse_side(d, b, rb);
  return false;
}

/* Builds the `if` and gives every merged slot its value. Returned values end up on top. */
static void build(struct device_if *d, struct fe_region *ra, struct fe_region *rb, int cond,
                  uint32_t n_returned) {
  struct fe_state *fe = d->fe;
  lua_State *L = fe->L;
  const struct fe_tracer *t = fe->tracer;
  struct fe_slot *slots = ARENA_ARRAY(&fe->trace, struct fe_slot, d->merges.n + 1);
  uint32_t n = 0;
  for (uint32_t i = 0; i < d->merges.n; i++) {
    const struct merge *m = &d->merges.at[i];
    if (m->how == FE_MERGE_TYPE)
      slots[n++] = (struct fe_slot){.name = m->name,
                                    .is_captured = m->place && m->place->at.kind == FE_AT_BOX,
                                    .type = m->type,
                                    .first = m->a,
                                    .second = m->a + 1};
  }
  fe_need_stack(L, (int)n + (int)d->merges.n + 40, "too many merged values");
  int results = lua_gettop(L) + 1;
  d->A->node = d->arm;
  if (fe_is_unknown(fe_to_dev(L, cond)))
    for (uint32_t i = 0; i < n; i++)
      fe_push_unknown(fe);
  else
    t->build_if(t->user, ra, rb, cond, n, slots);
  uint32_t first_returned = d->merges.n - n_returned;
  for (uint32_t i = 0; i < d->merges.n; i++) {
    const struct merge *m = &d->merges.at[i];
    switch (m->how) {
    case FE_MERGE_SAME: lua_pushvalue(L, m->a); break;
    case FE_MERGE_TYPE: lua_pushvalue(L, results++); break;
    case FE_MERGE_UNKNOWN: fe_push_unknown(fe); break;
    case FE_MERGE_NONE: fe_push_undef(fe, no_merge(d, m), NULL); break;
    }
    if (i < first_returned)
      fe_store_change(fe, d->A, m->in, m->place);
  }
}

enum fe_signal fe_device_if(struct fe_state *fe, struct fe_act *A, const struct fe_node *n,
                            uint32_t arm) {
  lua_State *L = fe->L;
  struct device_if d = {.fe = fe, .A = A, .arm = n->list[arm]};
  int cond = lua_gettop(L);
  struct fe_dev *dev = lua_touserdata(L, cond);
  fe_need_stack(L, 40, "too many values");
  A->node = d.arm;
  if (!fe_is_unknown(dev) && !(dev->flags & FE_DEV_SCALAR)) {
    fe_soft_error(fe, DIAG_STAGE_CONTROL, "`if` on a tile %s; use where(cond, x, y)",
                  fe_describe(fe, cond));
    fe_push_unknown(fe);
    lua_replace(L, cond);
  }
  bool keep = !fe_is_unknown(lua_touserdata(L, cond));
  struct fe_region_state *ra = fe_region_open(fe, A, FE_REGION_THEN, d.arm);
  struct side a = end_side(fe, fe_exec_block(fe, A, d.arm->body));
  fe_region_close(fe, keep, &d.then_side);
  struct fe_region_state *rb = fe_region_open(fe, A, FE_REGION_ELSE, d.arm);
  struct side b = end_side(fe, fe_exec_arms(fe, A, n, arm + 1));
  fe_region_close(fe, keep, &d.else_side);
  collect(&d);
  bool returns = check_signals(&d, &a, &ra->pub, &b, &rb->pub);
  for (int i = 0; returns && i < a.n_ret; i++) {
    const char *name = arena_printf(&fe->trace, "return value %d", i + 1);
    fe_need_stack(L, 40, "too many values");
    lua_pushvalue(L, a.ret + i);
    lua_pushvalue(L, b.ret + i);
    add_merge(&d, (struct merge){.name = name});
  }
  build(&d, &ra->pub, &rb->pub, cond, returns ? (uint32_t)a.n_ret : 0);
  fe_region_free(fe, rb);
  fe_region_free(fe, ra);
  if (!returns) {
    lua_settop(L, cond - 1);
    return FE_GO_ON;
  }
  fe->n_ret = a.n_ret;
  fe->leaving = a.leaving;
  return FE_GO_RETURN;
}
