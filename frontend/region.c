/* Regions and their journal.
 *
 * A region is an open device loop body, branch, or short-circuited operand. The first write inside
 * it to a slot born outside of it - local, box, table field, metatable - is logged with the old
 * value; closing the region restores all old values and hands out what changed. Old values live in
 * a Lua table, never as bare pointers. The collector does not run while a trace goes on, so the
 * address of a table identifies it, and "born in a region" is a map from addresses to stamps. */
#include "frontend/eval.h"

#include "base/check.h"
#include "base/hash.h"

static const char meta_key = 'm'; /* its address is the key of a table's metatable in the index */

/* ---- values ---- */

bool fe_same_value(lua_State *L, int a, int b) {
  if (lua_type(L, a) != lua_type(L, b))
    return false;
  if (lua_type(L, a) != LUA_TNUMBER)
    return lua_rawequal(L, a, b);
  if (lua_isinteger(L, a) != lua_isinteger(L, b))
    return false;
  if (lua_isinteger(L, a))
    return lua_tointeger(L, a) == lua_tointeger(L, b);
  lua_Number x = lua_tonumber(L, a), y = lua_tonumber(L, b);
  return memcmp(&x, &y, sizeof x) == 0;
}

static uint64_t hash_key(lua_State *L, int idx) {
  int ok;
  lua_Integer i;
  switch (lua_type(L, idx)) {
  case LUA_TNUMBER:
    i = lua_tointegerx(L, idx, &ok);
    if (ok)
      return hash_mix(1, (uint64_t)i);
    lua_Number x = lua_tonumber(L, idx);
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return hash_mix(2, bits);
  case LUA_TSTRING: {
    size_t n;
    const char *s = lua_tolstring(L, idx, &n);
    return hash_quick(s, n);
  }
  case LUA_TBOOLEAN: return (uint64_t)lua_toboolean(L, idx) + 3;
  default: return (uint64_t)(uintptr_t)lua_topointer(L, idx);
  }
}

/* ---- undefined values ---- */

void fe_push_undef(struct fe_state *fe, const char *reason, const char *grown) {
  struct fe_undef *u = ARENA_NEW(&fe->trace, struct fe_undef);
  u->dev.kind = FE_DEV_UNDEF;
  u->reason = reason;
  u->grown = grown;
  fe->n_undef++;
  lua_pushlightuserdata(fe->L, u);
}

void fe_push_unknown(struct fe_state *fe) {
  KILN_ASSERT(fe->n_errors > 0); /* it silences what uses it: something must have been said */
  lua_pushlightuserdata(fe->L, &fe->unknown);
}

void fe_trap_undef(struct fe_state *fe, int idx) {
  lua_State *L = fe->L;
  idx = lua_absindex(L, idx);
  struct fe_undef *u = lua_touserdata(L, idx);
  if (u->dev.kind != FE_DEV_UNDEF)
    return;
  if (!u->reported)
    fe_soft_error(fe, DIAG_STAGE_UNDEFINED, "%s", u->reason);
  u->reported = true; /* further reads of it say nothing new */
  fe_push_unknown(fe);
  lua_replace(L, idx);
}

void fe_check_defined(struct fe_state *fe, int idx) {
  if (fe->n_undef && fe_is_dev(fe->L, idx))
    fe_trap_undef(fe, idx);
}

/* ---- births ---- */

void fe_born(struct fe_state *fe, int idx) {
  if (!fe->top && !fe->has_births)
    return;
  if (!fe->has_births) {
    map_init(&fe->births, &fe->trace);
    fe->has_births = true;
  }
  map_put(&fe->births, (uint64_t)(uintptr_t)lua_topointer(fe->L, idx), fe->serial);
}

uint32_t fe_table_stamp(const struct fe_state *fe, const void *table) {
  const uint32_t *stamp = fe->has_births ? map_get(&fe->births, (uint64_t)(uintptr_t)table) : NULL;
  return stamp ? *stamp : 0;
}

/* ---- logging ---- */

/* Pushes the table of old values. */
static void push_journal(struct fe_state *fe) {
  lua_rawgeti(fe->L, LUA_REGISTRYINDEX, fe->journal_ref);
}

static lua_Integer journal_index(uint32_t entry, int which) {
  return 3 * (lua_Integer)entry + which;
}

void fe_log_local(struct fe_state *fe, struct fe_act *A, const struct fe_var *v) {
  struct fe_stamp *s = &fe->stamps[A->stamps + v->slot];
  struct fe_entry e = {
      .kind = FE_AT_LOCAL, .slot = v->slot, .former = s->logged, .var = v, .loc = fe_where(fe)};
  push_journal(fe);
  lua_pushvalue(fe->L, fe_slot_index(A, v));
  lua_rawseti(fe->L, -2, journal_index(fe->journal.n, 3));
  lua_pop(fe->L, 1);
  VEC_PUSH(&fe->trace, &fe->journal, e);
  s->logged = fe->top->pub.serial;
}

void fe_log_box(struct fe_state *fe, int idx) {
  lua_State *L = fe->L;
  struct fe_box *box = lua_touserdata(L, idx);
  struct fe_entry e = {.kind = FE_AT_BOX,
                       .former = box->stamp.logged,
                       .var = box->var,
                       .object = box,
                       .loc = fe_where(fe)};
  lua_pushvalue(L, idx);
  push_journal(fe);
  lua_pushvalue(L, -2);
  lua_rawseti(L, -2, journal_index(fe->journal.n, 1));
  lua_getiuservalue(L, -2, 1);
  lua_rawseti(L, -2, journal_index(fe->journal.n, 3));
  lua_pop(L, 2);
  VEC_PUSH(&fe->trace, &fe->journal, e);
  box->stamp.logged = fe->top->pub.serial;
}

/* Pushes the index's table for the table at idx, made if need be. */
static void push_index_of(struct fe_state *fe, int idx) {
  lua_State *L = fe->L;
  lua_rawgeti(L, LUA_REGISTRYINDEX, fe->index_ref);
  lua_pushvalue(L, idx);
  if (lua_rawget(L, -2) == LUA_TNIL) {
    lua_pop(L, 1);
    fe->has_index = true;
    lua_newtable(L);
    lua_pushvalue(L, idx);
    lua_pushvalue(L, -2);
    lua_rawset(L, -4);
  }
  lua_remove(L, -2);
}

/* Logs table[key], or the table's metatable, unless the innermost region did. The key is on top
 * (popped). */
static void log_field(struct fe_state *fe, int table, enum fe_place_kind kind) {
  lua_State *L = fe->L;
  int key = lua_gettop(L);
  fe_need_stack(L, 10, "too many values");
  push_index_of(fe, table);
  lua_pushvalue(L, key);
  lua_rawget(L, key + 1);
  lua_Integer former = lua_tointeger(L, -1); /* 0 if nil */
  if (former > (lua_Integer)fe->top->journal) {
    lua_settop(L, key - 1);
    return;
  }
  uint32_t i = fe->journal.n;
  struct fe_entry e = {.kind = kind,
                       .former = (uint32_t)former,
                       .object = lua_topointer(L, table),
                       .hash = hash_key(L, key),
                       .loc = fe_where(fe)};
  push_journal(fe);
  int journal = lua_gettop(L);
  lua_pushvalue(L, table);
  lua_rawseti(L, journal, journal_index(i, 1));
  lua_pushvalue(L, key);
  lua_rawseti(L, journal, journal_index(i, 2));
  if (kind == FE_AT_META) {
    if (!lua_getmetatable(L, table))
      lua_pushnil(L);
  } else {
    lua_pushvalue(L, key);
    lua_rawget(L, table);
  }
  lua_rawseti(L, journal, journal_index(i, 3));
  lua_pushvalue(L, key);
  lua_pushinteger(L, (lua_Integer)i + 1);
  lua_rawset(L, key + 1);
  VEC_PUSH(&fe->trace, &fe->journal, e);
  lua_settop(L, key - 1);
}

static bool born_outside(const struct fe_state *fe, int table) {
  return fe->top && fe_table_stamp(fe, lua_topointer(fe->L, table)) < fe->top->pub.serial;
}

void fe_will_write(struct fe_state *fe, int table, int key) {
  if (!born_outside(fe, table))
    return;
  lua_pushvalue(fe->L, key);
  log_field(fe, table, FE_AT_FIELD);
}

void fe_will_set_meta(struct fe_state *fe, int table) {
  if (!born_outside(fe, table))
    return;
  lua_pushlightuserdata(fe->L, (void *)(uintptr_t)&meta_key);
  log_field(fe, table, FE_AT_META);
}

/* ---- entries ---- */

/* Pushes the value that the place of entry i has now. */
static void push_current(struct fe_state *fe, const struct fe_region_state *r, uint32_t i,
                         int journal) {
  lua_State *L = fe->L;
  const struct fe_entry *e = &fe->journal.at[i];
  if (e->kind == FE_AT_LOCAL) {
    lua_pushvalue(L, r->act->base + (int)e->slot);
    return;
  }
  lua_rawgeti(L, journal, journal_index(i, 1));
  if (e->kind == FE_AT_BOX) {
    lua_getiuservalue(L, -1, 1);
  } else if (e->kind == FE_AT_META) {
    if (!lua_getmetatable(L, -1))
      lua_pushnil(L);
  } else {
    lua_rawgeti(L, journal, journal_index(i, 2));
    lua_rawget(L, -2);
  }
  lua_replace(L, -2);
}

/* Sets what says who logged the place of entry i last. */
static void set_logged(struct fe_state *fe, const struct fe_region_state *r, uint32_t i,
                       int journal, uint32_t value) {
  lua_State *L = fe->L;
  const struct fe_entry *e = &fe->journal.at[i];
  if (e->kind == FE_AT_LOCAL) {
    fe->stamps[r->act->stamps + e->slot].logged = value;
    return;
  }
  if (e->kind == FE_AT_BOX) {
    ((struct fe_box *)(uintptr_t)e->object)->stamp.logged = value;
    return;
  }
  lua_rawgeti(L, journal, journal_index(i, 1));
  push_index_of(fe, lua_gettop(L));
  lua_rawgeti(L, journal, journal_index(i, 2));
  if (value)
    lua_pushinteger(L, value);
  else
    lua_pushnil(L);
  lua_rawset(L, -3);
  lua_pop(L, 2);
}

/* Brings the old value of entry i back. */
static void restore(struct fe_state *fe, const struct fe_region_state *r, uint32_t i, int journal) {
  lua_State *L = fe->L;
  const struct fe_entry *e = &fe->journal.at[i];
  if (e->kind == FE_AT_LOCAL) {
    lua_rawgeti(L, journal, journal_index(i, 3));
    lua_replace(L, r->act->base + (int)e->slot);
  } else {
    lua_rawgeti(L, journal, journal_index(i, 1));
    if (e->kind == FE_AT_FIELD)
      lua_rawgeti(L, journal, journal_index(i, 2));
    lua_rawgeti(L, journal, journal_index(i, 3));
    if (e->kind == FE_AT_BOX)
      lua_setiuservalue(L, -2, 1);
    else if (e->kind == FE_AT_META)
      lua_setmetatable(L, -2);
    else
      lua_rawset(L, -3);
    lua_pop(L, 1);
  }
  set_logged(fe, r, i, journal, e->former);
}

/* ---- open and close ---- */

struct fe_region_state *fe_region_open(struct fe_state *fe, struct fe_act *A,
                                       enum fe_region_kind kind, const struct fe_node *n) {
  struct fe_region_state *r = fe->free_regions;
  if (r)
    fe->free_regions = r->up;
  else
    r = ARENA_NEW(&fe->trace, struct fe_region_state);
  void *kept[2] = {r->pub.user[0], r->pub.user[1]};
  *r = (struct fe_region_state){.pub = {.kind = kind,
                                        .serial = ++fe->serial,
                                        .loc = A && n ? fe_node_loc(A, n) : DIAG_NOWHERE,
                                        .user = {kept[0], kept[1]},
                                        .state = r},
                                .up = fe->top,
                                .act = A,
                                .journal = fe->journal.n,
                                .out = fe->n_out};
  fe->top = r;
  if (fe->tracer)
    fe->tracer->open(fe->tracer->user, &r->pub);
  return r;
}

void fe_region_free(struct fe_state *fe, struct fe_region_state *r) {
  r->up = fe->free_regions;
  fe->free_regions = r;
}

void fe_region_pop(struct fe_state *fe, bool keep) {
  struct fe_region_state *r = fe->top;
  if (fe->tracer)
    fe->tracer->close(fe->tracer->user, &r->pub, keep);
  if (!keep)
    fe->n_out = r->out;
  fe->top = r->up;
  if (!fe->top)
    fe_flush_out(fe);
}

/* Entry i as change number `value`; current and old value are on top. */
static void note_change(struct fe_state *fe, struct fe_changes *out, uint32_t i, int value,
                        int journal) {
  lua_State *L = fe->L;
  struct fe_change c = {.at = fe->journal.at[i], .value = value};
  lua_Integer k = 4 * (lua_Integer)value;
  lua_rawseti(L, out->values, k + 3);
  lua_rawseti(L, out->values, k + 4);
  for (int which = 1; which <= 2; which++) {
    lua_rawgeti(L, journal, journal_index(i, which));
    lua_rawseti(L, out->values, k + which);
  }
  VEC_PUSH(&fe->trace, &out->list, c);
}

void fe_region_undo(struct fe_state *fe, struct fe_changes *out) {
  lua_State *L = fe->L;
  struct fe_region_state *r = fe->top;
  fe_need_stack(L, 20, "too many values");
  if (out) {
    *out = (struct fe_changes){.values = lua_gettop(L) + 1};
    if (fe->journal.n > r->journal)
      lua_newtable(L);
    else
      lua_pushnil(L);
  }
  push_journal(fe);
  int journal = lua_gettop(L);
  for (uint32_t i = fe->journal.n; i-- > r->journal;) {
    if (out) {
      push_current(fe, r, i, journal);
      lua_rawgeti(L, journal, journal_index(i, 3));
      if (fe_same_value(L, -1, -2))
        lua_pop(L, 2);
      else
        note_change(fe, out, i, (int)(i - r->journal), journal);
    }
    restore(fe, r, i, journal);
  }
  lua_pop(L, 1);
  fe->journal.n = r->journal;
}

void fe_region_close(struct fe_state *fe, bool keep, struct fe_changes *out) {
  fe_region_undo(fe, out);
  fe_region_pop(fe, keep);
}

void fe_region_join(struct fe_state *fe) {
  lua_State *L = fe->L;
  struct fe_region_state *r = fe->top, *up = r->up;
  uint32_t kept = r->journal;
  if (fe->journal.n > kept) {
    fe_need_stack(L, 20, "too many values");
    push_journal(fe);
    int journal = lua_gettop(L);
    for (uint32_t i = kept; i < fe->journal.n; i++) {
      const struct fe_entry *e = &fe->journal.at[i];
      bool is_table = e->kind == FE_AT_FIELD || e->kind == FE_AT_META;
      uint32_t born = is_table               ? fe_table_stamp(fe, e->object)
                      : e->kind == FE_AT_BOX ? ((const struct fe_box *)e->object)->stamp.born
                                             : fe->stamps[r->act->stamps + e->slot].born;
      bool logged = up && (is_table ? e->former > up->journal : e->former == up->pub.serial);
      if (!up || born >= up->pub.serial || logged) {
        set_logged(fe, r, i, journal, e->former);
        continue;
      }
      set_logged(fe, r, i, journal, is_table ? kept + 1 : up->pub.serial);
      for (int which = 1; which <= 3 && kept != i; which++) {
        lua_rawgeti(L, journal, journal_index(i, which));
        lua_rawseti(L, journal, journal_index(kept, which));
      }
      fe->journal.at[kept++] = *e;
    }
    lua_pop(L, 1);
    fe->journal.n = kept;
  }
  fe_region_pop(fe, true);
}

void fe_region_unwind(struct fe_state *fe, struct fe_region_state *to) {
  lua_State *L = fe->L;
  if (fe->top == to)
    return;
  fe_need_stack(L, 20, "too many values");
  push_journal(fe);
  while (fe->top != to) {
    struct fe_region_state *r = fe->top;
    for (; fe->journal.n > r->journal; fe->journal.n--)
      if (fe->journal.at[fe->journal.n - 1].kind != FE_AT_LOCAL) /* its activation is gone */
        restore(fe, r, fe->journal.n - 1, lua_gettop(L));
    fe_region_pop(fe, false);
    fe_region_free(fe, r);
  }
  lua_pop(L, 1);
}

/* ---- questions ---- */

struct fe_region *fe_region_top(const struct fe_state *fe) {
  return fe->top ? &fe->top->pub : NULL;
}

uint32_t fe_value_region(const struct fe_state *fe) {
  const struct fe_region_state *r = fe->top;
  while (r && (r->pub.kind == FE_REGION_SHORT || r->pub.kind == FE_REGION_PROBE))
    r = r->up;
  return r ? r->pub.serial : 0;
}

bool fe_check_open(struct fe_state *fe, const struct fe_dev *dev, struct diag_loc made) {
  if (dev->region == 0)
    return true;
  for (const struct fe_region_state *r = fe->top; r; r = r->up)
    if (r->pub.serial == dev->region)
      return true;
  fe_soft_error(fe, DIAG_STAGE_UNDEFINED,
                "the value made at %s is used outside the loop or branch that made it",
                fe_place(fe, made));
  return false;
}

const char *fe_region_changed(struct fe_state *fe) {
  lua_State *L = fe->L;
  const struct fe_region_state *r = fe->top;
  const char *name = NULL;
  if (fe->journal.n == r->journal)
    return NULL;
  fe_need_stack(L, 20, "too many values");
  int top = lua_gettop(L);
  push_journal(fe);
  for (uint32_t i = r->journal; i < fe->journal.n && !name; i++) {
    push_current(fe, r, i, top + 1);
    lua_rawgeti(L, top + 1, journal_index(i, 3));
    if (!fe_same_value(L, -1, -2)) {
      struct fe_changes one = {.values = top + 4};
      lua_newtable(L);
      lua_pushvalue(L, top + 2);
      lua_pushvalue(L, top + 3);
      note_change(fe, &one, i, 0, top + 1);
      name = fe_change_name(fe, &one, &one.list.at[0], true);
    }
    lua_settop(L, top + 1);
  }
  lua_settop(L, top);
  return name;
}

/* ---- changes ---- */

void fe_push_change(struct fe_state *fe, const struct fe_changes *c, const struct fe_change *at,
                    int which) {
  lua_rawgeti(fe->L, c->values, 4 * (lua_Integer)at->value + which);
}

bool fe_same_place(struct fe_state *fe, const struct fe_change *a, const struct fe_changes *in_a,
                   const struct fe_change *b, const struct fe_changes *in_b) {
  if (a->at.kind != b->at.kind)
    return false;
  if (a->at.kind == FE_AT_LOCAL)
    return a->at.slot == b->at.slot;
  if (a->at.object != b->at.object || a->at.hash != b->at.hash)
    return false;
  if (a->at.kind != FE_AT_FIELD)
    return true;
  fe_push_change(fe, in_a, a, 2);
  fe_push_change(fe, in_b, b, 2);
  bool same = lua_rawequal(fe->L, -1, -2);
  lua_pop(fe->L, 2);
  return same;
}

void fe_push_place(struct fe_state *fe, struct fe_act *A, const struct fe_changes *c,
                   const struct fe_change *at) {
  lua_State *L = fe->L;
  if (at->at.kind == FE_AT_LOCAL) {
    lua_pushvalue(L, fe_slot_index(A, at->at.var));
    return;
  }
  fe_push_change(fe, c, at, 1);
  if (at->at.kind == FE_AT_BOX) {
    lua_getiuservalue(L, -1, 1);
  } else if (at->at.kind == FE_AT_FIELD) {
    fe_push_change(fe, c, at, 2);
    lua_rawget(L, -2);
  } else {
    lua_pushnil(L);
  }
  lua_replace(L, -2);
}

void fe_store_change(struct fe_state *fe, struct fe_act *A, const struct fe_changes *c,
                     const struct fe_change *at) {
  lua_State *L = fe->L;
  fe_need_stack(L, 10, "too many values");
  switch (at->at.kind) {
  case FE_AT_LOCAL: fe_assign_local(fe, A, at->at.var); return;
  case FE_AT_BOX:
    fe_push_change(fe, c, at, 1);
    lua_insert(L, -2);
    fe_assign_box(fe, lua_gettop(L) - 1);
    break;
  case FE_AT_FIELD:
    fe_push_change(fe, c, at, 1);
    fe_push_change(fe, c, at, 2);
    fe_will_write(fe, lua_gettop(L) - 1, lua_gettop(L));
    lua_pushvalue(L, -3);
    lua_rawset(L, -3);
    lua_pop(L, 1);
    break;
  case FE_AT_META: break;
  }
  lua_pop(L, 1);
}

const char *fe_change_name(struct fe_state *fe, const struct fe_changes *c,
                           const struct fe_change *at, bool quoted) {
  lua_State *L = fe->L;
  if (at->at.kind == FE_AT_META)
    return "the metatable of a table";
  if (at->at.kind != FE_AT_FIELD) {
    const char *name = at->at.var->name->s;
    return quoted ? arena_printf(&fe->trace, "`%s`", name) : name;
  }
  fe_need_stack(L, 10, "too many values");
  int top = lua_gettop(L);
  fe_push_change(fe, c, at, 1);
  lua_pushglobaltable(L);
  const char *what = lua_rawequal(L, -1, -2) ? "global" : "field";
  fe_push_change(fe, c, at, 2);
  const char *key = lua_type(L, -1) == LUA_TSTRING || lua_type(L, -1) == LUA_TNUMBER
                        ? lua_tostring(L, -1)
                        : fe_describe(fe, -1);
  const char *text = arena_printf(&fe->trace, "%s '%s'", what, key);
  lua_settop(L, top);
  return text;
}

int fe_order_changes(const struct fe_change *a, const struct fe_change *b) {
  bool var_a = a->at.kind <= FE_AT_BOX, var_b = b->at.kind <= FE_AT_BOX;
  if (var_a != var_b)
    return var_a ? -1 : 1;
  if (!var_a)
    return a->value - b->value;
  const struct fe_var *va = a->at.var, *vb = b->at.var;
  if (va->func->depth != vb->func->depth)
    return va->func->depth < vb->func->depth ? -1 : 1;
  if (va->func->file != vb->func->file)
    return va->func->file < vb->func->file ? -1 : 1;
  if (va->seq != vb->seq)
    return va->seq < vb->seq ? -1 : 1;
  if (a->at.kind == FE_AT_BOX && b->at.kind == FE_AT_BOX) {
    uint32_t sa = ((const struct fe_box *)a->at.object)->seq;
    uint32_t sb = ((const struct fe_box *)b->at.object)->seq;
    return sa < sb ? -1 : sa > sb;
  }
  return 0;
}

void fe_sort_changes(struct fe_changes *c) {
  for (uint32_t gap = c->list.n / 2; gap > 0; gap /= 2)
    for (uint32_t i = gap; i < c->list.n; i++) {
      struct fe_change x = c->list.at[i];
      uint32_t j = i;
      for (; j >= gap && fe_order_changes(&x, &c->list.at[j - gap]) < 0; j -= gap)
        c->list.at[j] = c->list.at[j - gap];
      c->list.at[j] = x;
    }
}

/* ---- printed text ---- */

void fe_print(struct fe_state *fe, const char *text, size_t n) {
  if (n == 0)
    return;
  if (!fe->top) {
    if (fe->host.print)
      fe->host.print(fe->host.user, text, n);
    return;
  }
  if (fe->n_out + n > fe->cap_out) {
    size_t cap = fe->cap_out ? fe->cap_out * 2 : 256;
    while (cap < fe->n_out + n)
      cap *= 2;
    char *p = mem_resize(&fe->mem, fe->out, fe->cap_out, cap);
    if (!p)
      fe_out_of_memory(fe);
    fe->out = p;
    fe->cap_out = cap;
  }
  memcpy(fe->out + fe->n_out, text, n);
  fe->n_out += n;
}

void fe_flush_out(struct fe_state *fe) {
  if (fe->n_out && fe->host.print)
    fe->host.print(fe->host.user, fe->out, fe->n_out);
  fe->n_out = 0;
}

/* ---- traces ---- */

/* Forgets tables that the journal's index of former traces holds on to. */
static void renew_tables(struct fe_state *fe) {
  lua_State *L = fe->L;
  if (fe->has_index) {
    fe->has_index = false;
    lua_newtable(L);
    lua_rawseti(L, LUA_REGISTRYINDEX, fe->index_ref);
  }
  if (fe->n_settled) {
    fe->n_settled = 0;
    lua_newtable(L);
    lua_rawseti(L, LUA_REGISTRYINDEX, fe->settled_ref);
  }
}

void fe_trace_begin(struct fe_state *fe) {
  KILN_ASSERT(!fe->top);
  arena_reset(&fe->trace, fe->trace_mark);
  memset(&fe->journal, 0, sizeof fe->journal);
  fe->free_regions = NULL;
  fe->has_births = false;
  fe->n_undef = 0;
  renew_tables(fe);
  lua_gc(fe->L, LUA_GCSTOP);
  fe->gc_stopped = true;
  fe_region_open(fe, fe->act, FE_REGION_ROOT, NULL);
}

void fe_trace_end(struct fe_state *fe, bool keep) {
  struct fe_region_state *r = fe->top;
  KILN_ASSERT(r && r->pub.kind == FE_REGION_ROOT);
  fe_region_close(fe, keep, NULL);
  fe_region_free(fe, r);
  fe_restart_gc(fe);
}
