/* Emulator: agents take turns.
 *
 * An agent runs until it waits or ends; in the seeded mode also until a number of instructions,
 * drawn anew each time, is used up. When nobody can run and somebody waits, that is a deadlock. */
#include "codegen/emu_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_TOLD 8 /* waiting agents named in a report of a deadlock */

uint32_t emu_random(struct emu_unit *u) {
  uint64_t x = u->rng += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return (uint32_t)((x ^ x >> 31) >> 32);
}

void emu_wait(struct emu_agent *a, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(a->waits_for, sizeof a->waits_for, fmt, ap);
  va_end(ap);
  a->state = EMU_WAITS;
}

void emu_wake(struct emu_agent *a) {
  if (a->state == EMU_WAITS)
    a->state = EMU_READY;
}

/* ---- barriers ---- */

/* Arrives; true if that completes the barrier, and then wakes those that wait in it; how many. */
static bool arrive(struct emu_agent *a, struct emu_bar *b, uint32_t threads, uint32_t *woken) {
  struct emu_unit *u = a->unit;
  emu_release(a, b->clock);
  b->arrived += EMU_LANES;
  u->stats.barriers += u->counting && b->arrived == threads;
  if (b->arrived < threads)
    return false;
  *woken = 0;
  for (uint32_t w = 0; w < u->e->warps; w++) {
    struct emu_agent *other = &a->cta->warp[w];
    if (other->bar == b) {
      ++*woken;
      emu_acquire(other, b->clock);
      emu_wake(other);
      other->bar = NULL;
    }
  }
  return true;
}

static void clear(const struct emu *e, struct emu_bar *b) {
  b->arrived = 0;
  memset(b->clock, 0, EMU_CLOCKS(e) * sizeof *b->clock);
}

void emu_bar_sync(struct emu_agent *a, uint32_t id, uint32_t threads) {
  struct emu_bar *b = &a->cta->bar[id];
  uint32_t woken;
  if (arrive(a, b, threads, &woken)) {
    emu_acquire(a, b->clock);
    clear(a->unit->e, b);
    a->cta->epoch += woken + 1 == a->unit->e->n_agents;
  } else {
    emu_wait(a, "barrier %u", id);
    a->bar = b;
  }
}

void emu_bar_arrive(struct emu_agent *a, uint32_t id, uint32_t threads) {
  struct emu_bar *b = &a->cta->bar[id];
  uint32_t woken;
  if (arrive(a, b, threads, &woken))
    clear(a->unit->e, b);
}

/* ---- turns ---- */

/* The first of n agents that can run, counted from `first`, or from the last one down. */
static struct emu_agent *choose_of(struct emu_agent *agents, uint32_t n, uint32_t first,
                                   bool down) {
  for (uint32_t k = 0; k < n; k++) {
    struct emu_agent *a = &agents[down ? n - 1 - k : (first + k) % n];
    if (a->state == EMU_READY)
      return a;
  }
  return NULL;
}

/* What works asynchronously is as late as can be, but for the seeded mode. */
static struct emu_agent *choose(struct emu_unit *u) {
  uint32_t n = u->e->n_agents, warps = u->e->cluster * u->e->warps;
  bool down = u->e->opt->mode == EMU_REVERSED;
  if (u->e->opt->mode == EMU_SEEDED)
    return choose_of(u->agent, n, emu_random(u) % n, false);
  struct emu_agent *a = choose_of(u->agent, warps, 0, down);
  return a ? a : choose_of(u->agent + warps, n - warps, 0, down);
}

static void report_deadlock(struct emu_unit *u, struct emu_agent *first) {
  struct strbuf text = {.arena = u->arena};
  uint32_t waiting = 0, done = 0;
  for (uint32_t k = 0; k < u->e->n_agents; k++) {
    struct emu_agent *a = &u->agent[k];
    char name[60];
    done += a->state == EMU_DONE && !a->name;
    if (a->state != EMU_WAITS)
      continue;
    if (waiting < MAX_TOLD)
      sb_printf(&text, "%s%s waits for %s", waiting ? ", " : "",
                emu_agent_name(a, name, sizeof name), a->waits_for);
    waiting++;
  }
  if (waiting > MAX_TOLD)
    sb_printf(&text, " and %u more wait", waiting - MAX_TOLD);
  emu_fail(first, first->at, EMU_NO_LANE, DIAG_DEADLOCK,
           "nobody can go on: %s; %u warps have ended", sb_str(&text), done);
  for (uint32_t k = 0; k < u->e->n_agents; k++)
    if (u->agent[k].state == EMU_WAITS && &u->agent[k] != first && u->agent[k].at != first->at) {
      emu_also(first, u->agent[k].at->op.id, "another waits here");
      return;
    }
}

static void take_turns(struct emu_unit *u) {
  while (!u->stopped) {
    struct emu_agent *a = choose(u);
    if (!a)
      break;
    a->run(a, u->e->opt->mode == EMU_SEEDED ? 1 + emu_random(u) % 24 : UINT32_MAX);
  }
  for (uint32_t k = 0; k < u->e->n_agents && !u->stopped; k++)
    if (u->agent[k].state == EMU_WAITS)
      report_deadlock(u, &u->agent[k]);
}

/* ---- memory of a worker ---- */

static void init_agent(struct emu_unit *u, struct emu_agent *a) {
  const struct emu *e = u->e;
  const struct ir_module *m = e->m;
  a->clock = ARENA_ARRAY(u->arena, uint32_t, EMU_CLOCKS(e));
  a->cells = arena_get0(u->arena, (size_t)e->plan.n_slots * EMU_SLOT + 1);
  a->hollow = ARENA_ARRAY(u->arena, uint32_t, e->plan.n_slots + 1);
  a->frame = ARENA_ARRAY(u->arena, struct emu_frame, e->plan.max_depth + 1);
  a->frag = ARENA_ARRAY(u->arena, struct emu_frag, m->res.n + 1);
  for (uint32_t r = 1; r < m->res.n; r++) {
    struct emu_frag *f = &a->frag[r];
    f->n = emu_frag_elems(m, r);
    f->dtype = (enum dtype)m->res.at[r].type.dtype;
    f->cell = emu_cell(e, f->dtype);
    f->cells = arena_get0(u->arena, (size_t)f->n * EMU_LANES * cell_size(f->cell) + 1);
    f->set = ARENA_ARRAY(u->arena, uint32_t, f->n + 1);
    f->hollow = ARENA_ARRAY(u->arena, uint32_t, f->n + 1);
  }
}

void emu_unit_init(struct emu_unit *u) {
  const struct emu *e = u->e;
  size_t bytes = e->step->smem_bytes, granules = bytes / e->plan.granule + 1;
  u->temp = arena_get(u->arena, (size_t)e->plan.max_moves * EMU_SLOT + 1);
  u->temp_hollow = ARENA_ARRAY(u->arena, uint32_t, e->plan.max_moves + 1);
  u->cta = ARENA_ARRAY(u->arena, struct emu_cta, e->cluster);
  u->agent = ARENA_ARRAY(u->arena, struct emu_agent, e->n_agents);
  for (uint32_t c = 0; c < e->cluster; c++) {
    struct emu_cta *cta = &u->cta[c];
    cta->rank = c;
    cta->smem = arena_get0(u->arena, bytes + 16);
    if (e->opt->domain == INTERP_ALGEBRAIC)
      cta->payload = ARENA_ARRAY(u->arena, int64_t, bytes / e->plan.unit + 1);
    cta->granule = ARENA_ARRAY(u->arena, struct emu_granule, granules);
    cta->n_granules = (uint32_t)granules;
    cta->read = arena_get(u->arena, granules * e->n_agents * sizeof *cta->read);
    for (uint32_t b = 0; b < EMU_BARRIERS; b++)
      cta->bar[b].clock = ARENA_ARRAY(u->arena, uint32_t, EMU_CLOCKS(e));
    cta->warp = &u->agent[c * e->warps];
  }
  for (uint32_t k = 0; k < e->cluster * e->warps; k++) {
    struct emu_agent *a = &u->agent[k];
    a->unit = u;
    a->cta = &u->cta[k / e->warps];
    a->warp = k % e->warps;
    a->id = k;
    a->run = emu_run_warp;
    init_agent(u, a);
  }
  emu_async_init(u);
}

/* ---- a cluster ---- */

static void set_entry(struct emu_agent *a) {
  const struct emu *e = a->unit->e;
  const struct ir_blocknode *body = ir_block_at(e->m, e->m->body);
  for (uint32_t k = 0; k < body->args.n; k++) {
    enum dtype t = emu_dtype(e, body->args.at[k]);
    bool ptr = ir_type_of(e->m, body->args.at[k]).kind == IR_PTR;
    void *cells = emu_cells(a, e->plan.entry[k]);
    for (uint32_t l = 0; l < EMU_LANES; l++)
      switch (ptr ? CELL_INT : emu_cell(e, t)) {
      case CELL_FLOAT: ((float *)cells)[l] = (float)e->param_f[k]; break;
      case CELL_DOUBLE: ((double *)cells)[l] = e->param_f[k]; break;
      case CELL_INT: ((int64_t *)cells)[l] = e->param[k]; break;
      case CELL_BOOL: ((uint8_t *)cells)[l] = e->param[k] != 0; break;
      case CELL_PAYLOAD: ((int64_t *)cells)[l] = interp_embed(e->param_f[k]); break;
      }
  }
}

static void start_agent(struct emu_agent *a) {
  const struct ir_module *m = a->unit->e->m;
  memset(a->clock, 0, EMU_CLOCKS(a->unit->e) * sizeof *a->clock);
  emu_tick(a);
  EMU_WAITED(a->unit->e, a->clock) = !a->unit->e->step->pdl;
  a->state = EMU_READY;
  a->pc = a->depth = a->group = a->waited = 0;
  a->active = EMU_ALL;
  a->copies.n = 0;
  a->bar = NULL;
  a->line = (struct strbuf){.arena = a->unit->arena};
  a->any_hollow = false;
  memset(a->hollow, 0, a->unit->e->plan.n_slots * sizeof *a->hollow);
  for (uint32_t r = 1; r < m->res.n; r++) {
    a->frag[r].touched = false;
    memset(a->frag[r].set, a->unit->e->frags_hold ? 0xff : 0,
           a->frag[r].n * sizeof *a->frag[r].set);
    memset(a->frag[r].hollow, 0, a->frag[r].n * sizeof *a->frag[r].hollow);
  }
  set_entry(a);
}

static void start_cta(struct emu_unit *u, struct emu_cta *cta, uint64_t index) {
  const struct emu *e = u->e;
  size_t bytes = e->step->smem_bytes, granules = bytes / e->plan.granule + 1;
  cta->index = index;
  cta->epoch = 1;
  memset(cta->smem, 0xff, bytes);
  memset(cta->granule, 0, granules * sizeof *cta->granule);
  for (uint32_t b = 0; b < EMU_BARRIERS; b++) {
    cta->bar[b].arrived = 0;
    memset(cta->bar[b].clock, 0, EMU_CLOCKS(e) * sizeof *cta->bar[b].clock);
  }
}

void emu_run_cluster(struct emu_unit *u, uint64_t k) {
  const struct emu *e = u->e;
  u->rng = e->opt->seed * UINT64_C(0x9e3779b97f4a7c15) + k * UINT64_C(0xd1342543de82ef95);
  u->counting = k == 0 && e->counts;
  u->n_cuts = 0;
  for (uint32_t c = 0; c < e->cluster; c++)
    start_cta(u, &u->cta[c], k * e->cluster + c);
  for (uint32_t w = 0; w < e->cluster * e->warps; w++)
    start_agent(&u->agent[w]);
  emu_async_start(u);
  take_turns(u);
  u->stats.blocks += e->cluster;
}
