/* Emulator: order between blocks that an atomic makes (gatomic with sem = acq_rel).
 *
 * Such an atomic hands on what its warp did and knew of, and takes up what earlier ones at the same
 * element handed on. Kernels that have one run block by block (emu_grid.c); what an element of
 * memory has to remember of others' reads is then more than one reader: a list of them, which many
 * elements share. What goes on from one such element to another, through a third block, is not
 * followed: that would be reported as a race though it is none. */
#include "codegen/emu_impl.h"

#include <stdio.h>

/* What a block handed on at an element: up to which of its agents' clocks. */
struct handed {
  uint32_t block;
  uint32_t *clock;
};

struct element {
  VEC(struct handed) list;
};

/* That the block which runs took up the first n of an element's list, in its agent at a clock. */
struct taken {
  uint32_t element, n, agent, clock;
};

/* A reader, and those before it: index into `readers`, 0: none. */
struct reader {
  uint32_t before, block, agent, clock;
};

struct emu_sync {
  struct map elements; /* address -> index */
  VEC(struct element) element;
  uint32_t block; /* whose is `taken` */
  VEC(struct taken) taken;
  VEC(struct reader) readers;
};

static uint32_t block_of(const struct emu_agent *a) {
  return (uint32_t)(a->cta->index / a->unit->e->cluster) + 1;
}

/* The order that there is so far, seen from the agent's block. */
static struct emu_sync *sync_of(struct emu_agent *a) {
  struct emu_unit *u = a->unit;
  if (!u->sync) {
    u->sync = ARENA_NEW(u->arena, struct emu_sync);
    map_init(&u->sync->elements, u->arena);
    VEC_PUSH(u->arena, &u->sync->readers, (struct reader){0});
  }
  if (u->sync->block != block_of(a)) {
    u->sync->block = block_of(a);
    u->sync->taken.n = 0;
  }
  return u->sync;
}

void emu_sync_at(struct emu_agent *a, uint64_t va) {
  struct emu_unit *u = a->unit;
  struct emu_sync *s = sync_of(a);
  uint32_t *found = map_get(&s->elements, va), k = found ? *found : s->element.n;
  if (!found) {
    map_put(&s->elements, va, k);
    VEC_PUSH(u->arena, &s->element, (struct element){{0}});
  }
  struct element *x = &s->element.at[k];
  struct taken t = {k, x->list.n, a->id, a->clock[a->id]};
  VEC_PUSH(u->arena, &s->taken, t);
  struct handed h = {s->block, arena_copy(u->arena, a->clock, u->e->n_agents * sizeof *a->clock)};
  VEC_PUSH(u->arena, &x->list, h);
  emu_tick(a);
}

/* Did what the agent of a block did at its clock happen before what this warp does now? over: it is
 * enough that it is over. */
static bool happened(struct emu_agent *a, uint32_t block, uint32_t agent, uint32_t clock,
                     bool over) {
  const struct emu_sync *s = sync_of(a);
  if (block == s->block)
    return agent == a->id || clock <= (over ? EMU_ORDER(a->unit->e, a->clock) : a->clock)[agent];
  for (uint32_t i = 0; i < s->taken.n; i++) {
    const struct taken *t = &s->taken.at[i];
    if (a->clock[t->agent] <= t->clock)
      continue;
    for (uint32_t k = 0; k < t->n; k++) {
      const struct handed *h = &s->element.at[t->element].list.at[k];
      if (h->block == block && clock <= h->clock[agent])
        return true;
    }
  }
  return false;
}

static void note_read(struct emu_agent *a, struct emu_gshadow *x) {
  struct emu_sync *s = sync_of(a);
  uint32_t top = atomic_load(&x->reader);
  struct reader r = {top, s->block, a->id, a->clock[a->id]};
  const struct reader *t = &s->readers.at[top], *last = &VEC_LAST(&s->readers);
  if (top && t->block == r.block && t->agent == r.agent) {
    if (t->clock == r.clock)
      return;
    r.before = t->before; /* the later read stands for both */
  }
  if (s->readers.n == 1 || last->before != r.before || last->block != r.block ||
      last->agent != r.agent || last->clock != r.clock)
    VEC_PUSH(a->unit->arena, &s->readers, r);
  atomic_store(&x->reader, s->readers.n - 1);
}

static const char *who_text(const struct emu_agent *a, uint32_t block, uint32_t agent, char *out,
                            size_t size) {
  if (block != block_of(a))
    return "another block";
  return emu_agent_name(&a->unit->agent[agent], out, size);
}

bool emu_order_synced(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                      enum emu_kind kind, struct emu_region *r, int64_t k) {
  struct emu_gshadow *x = &r->shadow[k];
  uint32_t me = sync_of(a)->block, w = atomic_load(&x->writer), at = atomic_load(&x->atomic);
  char who[60];
  if (w && w != EMU_LAUNCH &&
      !happened(a, w, atomic_load(&x->w_agent), atomic_load(&x->w_clock), kind != EMU_READ))
    return emu_report_global(a, i, lane, r, k, kind,
                             who_text(a, w, atomic_load(&x->w_agent), who, sizeof who), "writes");
  if (kind != EMU_ATOMIC && at &&
      (at != me || !happened(a, at, atomic_load(&x->a_agent), atomic_load(&x->a_clock), false)))
    return emu_report_global(a, i, lane, r, k, kind, at == me ? "another warp" : "another block",
                             "changes atomically");
  for (uint32_t q = atomic_load(&x->reader); q && kind != EMU_READ;) {
    const struct reader *t = &a->unit->sync->readers.at[q];
    if (!happened(a, t->block, t->agent, t->clock, true))
      return emu_report_global(a, i, lane, r, k, kind,
                               who_text(a, t->block, t->agent, who, sizeof who), "reads");
    q = t->before;
  }
  if (kind == EMU_READ && r->unset && !w && !at) {
    emu_report_unwritten(a, i, lane, r, k);
    return false;
  }
  if (kind == EMU_READ) {
    note_read(a, x);
  } else if (kind == EMU_WRITE) {
    atomic_store(&x->writer, me);
    atomic_store(&x->w_agent, a->id);
    atomic_store(&x->w_clock, a->clock[a->id]);
  } else {
    atomic_store(&x->atomic, at && at != me ? EMU_SEVERAL : me);
    atomic_store(&x->a_agent, a->id);
    atomic_store(&x->a_clock, a->clock[a->id]);
  }
  return true;
}
