/* Emulator: agents that work asynchronously, and pipes with mbarriers.
 *
 * An mbarrier counts arrivals and bytes. The hardware keeps the lowest bit of the number of its
 * phase, and a waiter asks for a bit; the emulator keeps both numbers, so that a waiter whose bit
 * fits by chance (two phases off) is an error, and so is an arrival that counts for another use of
 * a slot than it was meant for. A cursor is a position of each thread: use number position / slots
 * of slot position % slots. Use n of a slot is full when `full` has completed n + 1 phases, and the
 * slot is empty for it when `empty` has completed n: the producer's first wait asks for the phase
 * before the first, which passes. */
#include "codegen/emu_async.h"

#include "base/str.h"

#include <string.h>

/* ---- agents ---- */

static uint32_t *new_clock(struct emu_unit *u) {
  return ARENA_ARRAY(u->arena, uint32_t, EMU_CLOCKS(u->e));
}

struct emu_work *emu_new_work(struct emu_agent *issuer, const struct emu_insn *i, uint32_t lane) {
  struct emu_unit *u = issuer->unit;
  struct emu_work *w = u->free_work;
  if (w) {
    uint32_t *clock = w->clock;
    u->free_work = w->next;
    *w = (struct emu_work){.clock = clock};
  } else {
    w = ARENA_NEW(u->arena, struct emu_work);
    w->clock = new_clock(u);
  }
  w->by = i;
  w->lane = lane;
  memcpy(w->clock, issuer->clock, EMU_CLOCKS(u->e) * sizeof *w->clock);
  EMU_WAITED(u->e, w->clock) |= emu_lane_waited(issuer, lane);
  return w;
}

void emu_free_work(struct emu_unit *u, struct emu_work *w) {
  w->next = u->free_work;
  u->free_work = w;
}

void emu_become(struct emu_agent *by, const struct emu_work *w) {
  const struct emu *e = by->unit->e;
  memcpy(by->clock, w->clock, EMU_CLOCKS(e) * sizeof *by->clock);
  by->clock[by->id] = EMU_ORDER(e, by->clock)[by->id] = w->time;
  by->at = w->by;
}

void emu_issue(struct emu_agent *by, struct emu_work *w) {
  struct emu_unit *u = by->unit;
  enum emu_mode mode = u->e->opt->mode;
  if (by->last)
    by->last->next = w;
  else
    by->first = w;
  by->last = w;
  by->state = EMU_READY;
  if (mode == EMU_EARLY || (mode == EMU_SEEDED && emu_random(u) % 2))
    by->run(by, UINT32_MAX);
}

void emu_wake_waiting(struct emu_cta *cta, const void *on) {
  for (uint32_t k = 0; k < cta->warp->unit->e->warps; k++)
    if (cta->warp[k].async->waits_on == on) {
      cta->warp[k].async->waits_on = NULL;
      emu_wake(&cta->warp[k]);
    }
}

bool emu_has_ended(const struct emu_cta *cta) {
  for (uint32_t k = 0; k < cta->warp->unit->e->warps; k++)
    if (cta->warp[k].state != EMU_DONE)
      return false;
  return true;
}

static const char *op_name(const struct emu_insn *i) {
  return ir_info(i->n->opcode)->name;
}

bool emu_one_lane(struct emu_agent *a, const struct emu_insn *i, uint32_t *lane) {
  *lane = (uint32_t)__builtin_ctz(a->active);
  if (!(a->active & (a->active - 1)))
    return true;
  emu_fail(a, i, EMU_NO_LANE, DIAG_DIVERGED,
           "'%s' is for one thread, but lanes %#x have come to it", op_name(i), a->active);
  return false;
}

/* ---- memory of a worker ---- */

static const char *agent_name(struct emu_unit *u, const struct emu_cta *cta, const char *text,
                              uint32_t k, const char *pipe) {
  const char *s = pipe ? arena_printf(u->arena, text, k, pipe) : arena_printf(u->arena, text, k);
  return u->e->cluster > 1 ? arena_printf(u->arena, "%s of the cluster's block %u", s, cta->rank)
                           : s;
}

static void init_mbar(struct emu_unit *u, struct emu_mbar *b, int64_t count) {
  b->count = (uint32_t)count;
  b->clock = new_clock(u);
  b->done = new_clock(u);
}

static void init_slots(struct emu_unit *u, struct emu_cta *cta) {
  const struct emu_async *x = u->e->async;
  cta->slot = ARENA_ARRAY(u->arena, struct emu_slot_state, x->n_slots + 1);
  for (uint32_t s = 0; s < x->n_slots; s++) {
    const struct ir_res *pipe = &u->e->m->res.at[x->pipe[s]];
    struct emu_agent *a = emu_slot_agent(cta, s);
    a->run = emu_run_loads;
    a->name = agent_name(u, cta, "the copies into slot %u of pipe '%s'", s - x->first[x->pipe[s]],
                         ir_sym(u->e->m, pipe->name));
    init_mbar(u, &cta->slot[s].full, ir_res_int(pipe, IR_ATTR_fills, 1));
    init_mbar(u, &cta->slot[s].empty, ir_res_int(pipe, IR_ATTR_arrivals, 1));
  }
}

void emu_async_init(struct emu_unit *u) {
  const struct emu *e = u->e;
  const struct emu_async *x = e->async;
  uint32_t of_block = x->n_slots + x->n_groups + x->n_stores;
  u->cluster_bar = ARENA_NEW(u->arena, struct emu_cluster_bar);
  u->cluster_bar->clock = new_clock(u);
  u->cluster_bar->done = new_clock(u);
  for (uint32_t c = 0; c < e->cluster; c++) {
    struct emu_cta *cta = &u->cta[c];
    cta->unit = &u->agent[e->cluster * e->warps + c * of_block];
    for (uint32_t k = 0; k < of_block; k++) {
      cta->unit[k].unit = u;
      cta->unit[k].cta = cta;
      cta->unit[k].id = (uint32_t)(&cta->unit[k] - u->agent);
      cta->unit[k].clock = new_clock(u);
    }
    init_slots(u, cta);
    for (uint32_t k = 0; k < x->n_groups; k++) {
      struct emu_agent *a = &cta->unit[x->n_slots + k];
      a->run = emu_run_group;
      a->name = agent_name(u, cta, "the matrix unit of warpgroup %u", k, NULL);
    }
    for (uint32_t k = 0; k < x->n_stores; k++) {
      struct emu_agent *a = &cta->unit[x->n_slots + x->n_groups + k];
      a->run = emu_run_stores;
      a->warp = k;
      a->name = agent_name(u, cta, "the stores of warp %u", k, NULL);
    }
    for (uint32_t k = 0; k < e->warps; k++) {
      cta->warp[k].async = ARENA_NEW(u->arena, struct emu_async_warp);
      cta->warp[k].async->cursor = ARENA_ARRAY(u->arena, int64_t, e->m->res.n * EMU_LANES);
    }
  }
}

/* ---- a cluster ---- */

static void start_mbar(const struct emu *e, struct emu_mbar *b) {
  b->pending = b->count;
  b->tx = 0;
  b->phase = 0;
  memset(b->clock, 0, EMU_CLOCKS(e) * sizeof *b->clock);
  memset(b->done, 0, EMU_CLOCKS(e) * sizeof *b->done);
}

static void start_warp(struct emu_agent *a) {
  const struct ir_module *m = a->unit->e->m;
  struct emu_async_warp *w = a->async;
  int64_t *cursor = w->cursor;
  *w = (struct emu_async_warp){.cursor = cursor, .store_group = 1, .mma_group = 1};
  a->mma_open = false;
  for (uint32_t r = 1; r < m->res.n; r++)
    for (uint32_t l = 0; l < EMU_LANES && m->res.at[r].kind == IR_RES_CURSOR; l++)
      cursor[r * EMU_LANES + l] = ir_res_int(&m->res.at[r], IR_ATTR_start, 0);
}

void emu_async_start(struct emu_unit *u) {
  const struct emu *e = u->e;
  const struct emu_async *x = e->async;
  struct emu_cluster_bar *b = u->cluster_bar;
  u->free_work = NULL; /* the arena may have been reset */
  b->arrived = b->phase = 0;
  memset(b->clock, 0, EMU_CLOCKS(e) * sizeof *b->clock);
  memset(b->done, 0, EMU_CLOCKS(e) * sizeof *b->done);
  for (uint32_t c = 0; c < e->cluster; c++) {
    struct emu_cta *cta = &u->cta[c];
    for (uint32_t s = 0; s < x->n_slots; s++) {
      start_mbar(e, &cta->slot[s].full);
      start_mbar(e, &cta->slot[s].empty);
      cta->slot[s].made = cta->slot[s].fenced = false;
    }
    for (uint32_t k = 0; k < x->n_slots + x->n_groups + x->n_stores; k++) {
      cta->unit[k].state = EMU_DONE;
      cta->unit[k].finished = 0;
      cta->unit[k].first = cta->unit[k].last = NULL;
    }
    for (uint32_t k = 0; k < e->warps; k++)
      start_warp(&cta->warp[k]);
    emu_start_regs(cta, e->warps);
  }
}

bool emu_async_end(struct emu_agent *a) {
  return emu_stores_end(a) && emu_group_end(a);
}

/* ---- the launch ---- */

struct binding {
  struct emu *e;
  struct emu_async *x;
  struct arena *a;
  struct diag_sink *diags;
  bool (*eval)(void *user, struct expr x, const char *what, int64_t *value);
  void *user;
};

/* Is every element of the map one of the region's? */
static bool lies_inside(const struct emu_tmap *t, const struct emu_region *r) {
  int64_t end = (int64_t)t->dim[0] * t->bytes, more;
  for (uint32_t d = 1; d < t->rank; d++)
    if (__builtin_mul_overflow((int64_t)t->dim[d] - 1, t->stride[d], &more) ||
        __builtin_add_overflow(end, more, &end))
      return false;
  return r->lo <= 0 && end <= r->hi && r->size == t->bytes;
}

static bool bind_tmap(struct binding *b, const struct recipe_param *p, uint32_t res) {
  const struct recipe_tmap *r = p->tmap;
  const struct ir_module *m = b->e->m;
  const char *name = ir_sym(m, m->res.at[res].name);
  struct emu_tmap *t = &b->x->tmap[res];
  t->rank = r->rank;
  t->bytes = emu_bytes((enum dtype)m->res.at[res].type.dtype);
  t->base = b->e->region[p->arg].va;
  t->span = r->swizzle;
  t->tf32 = r->tf32;
  const char *why = r->rank > EMU_TMAP_RANK ? "a tensor map has 1 to 5 dims"
                    : r->fill_nan           ? "the emulator fills with 0 alone"
                                            : NULL;
  for (uint32_t d = 0; d < r->rank && !why; d++) {
    int64_t dim, stride;
    const char *what = arena_printf(b->a, "dim %u of tensor map '%s'", d, name);
    if (!b->eval(b->user, r->dim[d], what, &dim) || !b->eval(b->user, r->stride[d], what, &stride))
      return false;
    if (dim < 0)
      why = "a tensor map's dims are 1 to 2^32 elements";
    else if (d == 0 && stride != t->bytes)
      why = "the innermost dim of a tensor map must be contiguous";
    t->dim[d] = (uint64_t)dim;
    t->stride[d] = stride;
    t->box[d] = r->box[d];
  }
  why = why ? why : emu_tmap_refuse(t);
  t->legal = !why && lies_inside(t, &b->e->region[p->arg]);
  t->writable = b->e->region[p->arg].writable;
  if (!why)
    return true;
  diag_report(b->diags, DIAG_ERROR, DIAG_SHAPE_BINDING, DIAG_NOWHERE,
              "the kernel cannot be launched: tensor map '%s': %s", name, why);
  return false;
}

static void number_slots(struct binding *b) {
  const struct ir_module *m = b->e->m;
  struct emu_async *x = b->x;
  x->first = ARENA_ARRAY(b->a, uint32_t, m->res.n);
  for (uint32_t r = 1; r < m->res.n; r++) {
    const struct ir_res *pipe = &m->res.at[r];
    x->first[r] = x->n_slots;
    if (pipe->kind == IR_RES_PIPE && ir_pipe_has_barriers(m, pipe))
      x->n_slots += (uint32_t)ir_res_int(pipe, IR_ATTR_slots, 1);
  }
  x->pipe = ARENA_ARRAY(b->a, uint32_t, x->n_slots + 1);
  for (uint32_t r = 1; r < m->res.n; r++)
    for (uint32_t s = x->first[r]; s < (r + 1 < m->res.n ? x->first[r + 1] : x->n_slots); s++)
      x->pipe[s] = r;
}

bool emu_async_bind(struct emu *e, struct arena *a, struct diag_sink *diags,
                    bool (*eval)(void *user, struct expr x, const char *what, int64_t *value),
                    void *user) {
  const struct ir_module *m = e->m;
  struct emu_async *x = ARENA_NEW(a, struct emu_async);
  struct binding bound = {e, x, a, diags, eval, user};
  x->tmap = ARENA_ARRAY(a, struct emu_tmap, m->res.n);
  number_slots(&bound);
  for (struct ir_op o = {1}; o.id < m->ops.n; o.id++) {
    enum ir_opcode opcode = ir_op_at(m, o)->block.id ? ir_op_at(m, o)->opcode : IR_CONST;
    if (opcode == IR_TMA_STORE)
      x->n_stores = e->warps;
    else if (opcode == IR_WGMMA)
      x->n_groups = (e->warps + 3) / 4;
  }
  for (uint32_t k = 0; k < e->step->params.n && k < m->params.n; k++)
    if (e->step->params.at[k].kind == RECIPE_PARAM_TMAP &&
        !bind_tmap(&bound, &e->step->params.at[k], m->params.at[k].res))
      return false;
  e->async = x;
  e->n_agents = e->cluster * (e->warps + x->n_slots + x->n_groups + x->n_stores);
  return true;
}

/* ---- cursors ---- */

const char *emu_pipe_name(const struct emu_agent *a, uint32_t slot) {
  const struct emu *e = a->unit->e;
  return ir_sym(e->m, e->m->res.at[e->async->pipe[slot]].name);
}

static uint32_t slots_of(const struct emu *e, uint32_t cursor, uint32_t *pipe) {
  *pipe = ir_cursor_pipe(e->m, &e->m->res.at[cursor]);
  return (uint32_t)ir_res_int(&e->m->res.at[*pipe], IR_ATTR_slots, 1);
}

bool emu_cursor_at(struct emu_agent *a, const struct emu_insn *i, uint32_t res, int64_t behind,
                   uint32_t *slot, uint32_t *use) {
  const struct emu *e = a->unit->e;
  uint32_t cursor = i->n->res[res], pipe, slots = slots_of(e, cursor, &pipe);
  const int64_t *at = a->async->cursor + cursor * EMU_LANES;
  int64_t first = at[__builtin_ctz(a->active)];
  EMU_EACH_LANE (l, a->active)
    if (at[l] != first) {
      emu_fail(a, i, l, DIAG_DIVERGED,
               "lanes stand at different places of pipe '%s': at positions %lld and %lld",
               ir_sym(e->m, e->m->res.at[pipe].name), (long long)first, (long long)at[l]);
      return false;
    }
  if (first < behind) {
    emu_fail(a, i, EMU_NO_LANE, DIAG_MACHINE_RACE,
             "'%s' of the slot %lld behind position %lld of pipe '%s'", op_name(i),
             (long long)behind, (long long)first, ir_sym(e->m, e->m->res.at[pipe].name));
    return false;
  }
  *slot = e->async->first[pipe] + (uint32_t)((first - behind) % slots);
  *use = (uint32_t)((first - behind) / slots);
  return true;
}

void emu_slot_next(struct emu_agent *a, const struct emu_insn *i) {
  int64_t *at = a->async->cursor + i->n->res[0] * EMU_LANES;
  const int64_t *more = i->n->n_in ? emu_in_int(a, i, 0) : NULL;
  if (more && !emu_need(a, i, 0, a->active))
    return;
  EMU_EACH_LANE (l, a->active)
    at[l] += !more ? 1 : a->unit->e->skeleton ? emu_cut_trips(a->unit, more[l]) : more[l];
}

/* Inactive lanes' results are never read. */
void emu_slot_at(struct emu_agent *a, const struct emu_insn *i) {
  uint32_t pipe, slots = slots_of(a->unit->e, i->n->res[0], &pipe);
  const int64_t *at = a->async->cursor + i->n->res[0] * EMU_LANES;
  int64_t *o = emu_cells(a, i->out[0]);
  int64_t bytes = ir_res_int(i->res[1], IR_ATTR_bytes, 0) / slots;
  for (uint32_t l = 0; l < EMU_LANES; l++)
    o[l] = at[l] % slots * bytes;
  emu_set_hollow(a, i, i->out[0], 0);
}

/* ---- mbarriers ---- */

void emu_pipe_init(struct emu_agent *a, const struct emu_insn *i) {
  const struct emu_async *x = a->unit->e->async;
  uint32_t lane, first = x->first[i->n->res[0]];
  if (!emu_one_lane(a, i, &lane))
    return;
  for (uint32_t s = first; s < first + (uint32_t)ir_res_int(i->res[0], IR_ATTR_slots, 1); s++) {
    struct emu_slot_state *st = &a->cta->slot[s];
    if (st->made) {
      emu_fail(a, i, lane, DIAG_MACHINE_RACE, "pipe '%s' has been made before",
               emu_pipe_name(a, s));
      return;
    }
    st->made = true;
    st->made_by = a->id;
    st->made_time = a->clock[a->id];
  }
  emu_tick(a);
}

void emu_fence_init(struct emu_agent *a, const struct emu_insn *i) {
  (void)i;
  for (uint32_t s = 0; s < a->unit->e->async->n_slots; s++)
    if (a->cta->slot[s].made && a->cta->slot[s].made_by == a->id)
      a->cta->slot[s].fenced = true;
}

/* Does the agent know that the barriers of a slot of this block are there? */
static bool is_made(struct emu_agent *a, const struct emu_insn *i, const struct emu_cta *cta,
                    uint32_t slot) {
  const struct emu_slot_state *st = &cta->slot[slot];
  const char *wrong = NULL;
  if (!st->made)
    wrong = "which nobody has made";
  else if (st->made_by != a->id && EMU_ORDER(a->unit->e, a->clock)[st->made_by] < st->made_time)
    wrong = "without a barrier behind its pipe_init";
  else if (st->made_by != a->id && !st->fenced)
    wrong = "whose pipe_init has no fence_init behind it";
  if (!wrong)
    return true;
  emu_fail(a, i, EMU_NO_LANE, DIAG_MACHINE_RACE, "'%s' of pipe '%s'%s, %s", op_name(i),
           emu_pipe_name(a, slot), cta == a->cta ? "" : " of another block", wrong);
  return false;
}

static void complete_if_done(struct emu_agent *a, struct emu_cta *cta, struct emu_mbar *b) {
  const struct emu *e = a->unit->e;
  if (b->pending || b->tx)
    return;
  b->phase++;
  b->pending = b->count;
  for (uint32_t k = 0; k < EMU_CLOCKS(e); k++) {
    b->done[k] = b->done[k] > b->clock[k] ? b->done[k] : b->clock[k];
    b->clock[k] = 0;
  }
  emu_wake_waiting(cta, b);
}

/* Arrivals for use number `use`; the phase that is open must be that one's. */
static void arrive(struct emu_agent *a, const struct emu_insn *i, struct emu_cta *cta,
                   uint32_t slot, bool full, uint32_t use, uint32_t count) {
  struct emu_mbar *b = full ? &cta->slot[slot].full : &cta->slot[slot].empty;
  const char *which = full ? "full" : "empty";
  if (!is_made(a, i, cta, slot))
    return;
  if (emu_has_ended(cta)) {
    emu_fail(a, i, EMU_NO_LANE, DIAG_MACHINE_ACCESS,
             "'%s' arrives at a block of the cluster that has ended", op_name(i));
    return;
  }
  if (b->phase != use || b->pending < count) {
    emu_fail(
        a, i, EMU_NO_LANE, DIAG_MACHINE_RACE,
        b->phase == use
            ? "'%s' for use %u of a slot of pipe '%s': '%s' has had the arrivals of that phase "
              "already (its open phase: %u)"
            : "'%s' for use %u of a slot of pipe '%s': '%s' is in another phase (%u), and "
              "counts it there",
        op_name(i), use, emu_pipe_name(a, slot), which, b->phase);
    return;
  }
  b->pending -= count;
  if (cta == a->cta)
    emu_release(a, b->clock);
  else
    emu_release_order(a, b->clock);
  complete_if_done(a, cta, b);
}

/* Waits until `need` phases are complete. The hardware sees the lowest bits alone: it waits while
 * bit 0 of the number of complete phases is not that of `need`. */
static void wait_phase(struct emu_agent *a, const struct emu_insn *i, uint32_t slot, bool full,
                       uint32_t need, uint32_t use) {
  struct emu_slot_state *st = &a->cta->slot[slot];
  struct emu_mbar *b = full ? &st->full : &st->empty;
  if (!is_made(a, i, a->cta, slot))
    return;
  if (b->phase == need) {
    emu_acquire(a, b->done);
    return;
  }
  if (b->phase + 1 == need) {
    const struct emu *e = a->unit->e;
    EMU_WAIT_ON(a, b, "slot %u of pipe '%s' to be %s", slot - e->async->first[e->async->pipe[slot]],
                emu_pipe_name(a, slot), full ? "full" : "empty");
    return;
  }
  emu_fail(a, i, EMU_NO_LANE, DIAG_MACHINE_RACE,
           "'%s' for use %u of a slot of pipe '%s' waits for phase %u of '%s', of which %u are "
           "complete: one bit of the number does not tell them apart",
           op_name(i), use, emu_pipe_name(a, slot), need, full ? "full" : "empty", b->phase);
}

void emu_slot_acquire(struct emu_agent *a, const struct emu_insn *i) {
  uint32_t slot, use;
  if (emu_cursor_at(a, i, 0, 0, &slot, &use))
    wait_phase(a, i, slot, false, use, use);
}

void emu_slot_wait(struct emu_agent *a, const struct emu_insn *i) {
  uint32_t slot, use;
  if (emu_cursor_at(a, i, 0, 0, &slot, &use))
    wait_phase(a, i, slot, true, use + 1, use);
}

void emu_slot_expect(struct emu_agent *a, const struct emu_insn *i) {
  uint32_t slot, use, lane;
  if (!emu_one_lane(a, i, &lane) || !emu_cursor_at(a, i, 0, 0, &slot, &use))
    return;
  a->cta->slot[slot].full.tx +=
      ir_res_int(&a->unit->e->m->res.at[a->unit->e->async->pipe[slot]], IR_ATTR_bytes, 0);
  arrive(a, i, a->cta, slot, true, use, 1);
}

void emu_slot_fill(struct emu_agent *a, const struct emu_insn *i) {
  uint32_t slot, use;
  if (emu_cursor_at(a, i, 0, 0, &slot, &use))
    arrive(a, i, a->cta, slot, true, use, (uint32_t)__builtin_popcount(a->active));
}

void emu_slot_release(struct emu_agent *a, const struct emu_insn *i) {
  const struct emu *e = a->unit->e;
  uint32_t slot, use;
  if (!emu_cursor_at(a, i, 0, ir_attr_int(e->m, i->op, IR_ATTR_behind, 0), &slot, &use))
    return;
  if (!i->n->n_in) {
    arrive(a, i, a->cta, slot, false, use, (uint32_t)__builtin_popcount(a->active));
    return;
  }
  const int64_t *rank = emu_in_int(a, i, 0);
  if (!emu_need(a, i, 0, a->active))
    return;
  EMU_EACH_LANE (l, a->active) {
    if (rank[l] < 0 || rank[l] >= e->cluster) {
      emu_fail(a, i, l, DIAG_MACHINE_ACCESS, "'%s' at block %lld of a cluster of %u", op_name(i),
               (long long)rank[l], e->cluster);
      return;
    }
    arrive(a, i, &a->unit->cta[rank[l]], slot, false, use, 1);
  }
}

void emu_bytes_came(struct emu_agent *by, const struct emu_work *w, uint32_t slot, uint32_t bytes) {
  const struct emu *e = by->unit->e;
  struct emu_mbar *b = &by->cta->slot[slot].full;
  uint32_t use = w->time - 1;
  if (!by->cta->slot[slot].made || b->phase != use) {
    emu_fail(by, w->by, EMU_NO_LANE, DIAG_MACHINE_RACE,
             "bytes come for use %u of a slot of pipe '%s', but 'full' is in phase %u, and counts "
             "them there",
             use, emu_pipe_name(by, slot), b->phase);
    return;
  }
  b->tx -= bytes;
  for (uint32_t k = 0; k < EMU_CLOCKS(e); k++)
    b->clock[k] = b->clock[k] > by->clock[k] ? b->clock[k] : by->clock[k];
  complete_if_done(by, by->cta, b);
}

/* ---- fences ---- */

/* What each lane wrote before is fenced; of the warp as one, what all its lanes have fenced. */
void emu_fence_async(struct emu_agent *a, const struct emu_insn *i) {
  uint32_t all = UINT32_MAX;
  (void)i;
  EMU_EACH_LANE (l, a->active)
    a->async->fence[l] = a->clock[a->id];
  for (uint32_t l = 0; l < EMU_LANES; l++)
    all = a->async->fence[l] < all ? a->async->fence[l] : all;
  EMU_FENCED(a->unit->e, a->clock)[a->id] = all;
  emu_tick(a);
}

void emu_no_effect(struct emu_agent *a, const struct emu_insn *i) {
  (void)a;
  (void)i;
}
