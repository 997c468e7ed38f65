/* Emulator: what happened before what.
 *
 * Each agent has a clock, and for each other agent the clock up to which that one's doings happened
 * before its own. It has it three times (EMU_CLOCKS): up to where it sees the other's writes; up to
 * where the other is through with what it did, which is enough to write over it, and which is all
 * that a relaxed barrier or a remote arrival on an mbarrier gives; and up to where the other has
 * fenced its writes for the asynchronous proxy.
 *
 * Behind them is one word more: whether the kernels before this one have ended, which an agent
 * knows from its own pdl_wait or from whoever handed that on.
 *
 * Memory remembers who touched it last and when; an access that does not come after those it
 * conflicts with is a race, whether or not it went wrong this time. A clock moves on where the
 * agent hands on what it did (emu_release). A barrier of all there are begins an epoch: all that
 * was done before it is in order then, and is not looked at again. Lanes of a warp are ordered by
 * what orders their warp with others: between two releases, what one lane writes is not for another
 * to touch. */
#include "codegen/emu_impl.h"

#include <stdio.h>
#include <string.h>

void emu_tick(struct emu_agent *a) {
  const struct emu *e = a->unit->e;
  EMU_ORDER(e, a->clock)[a->id] = ++a->clock[a->id];
}

static void join(uint32_t *to, const uint32_t *from, uint32_t n) {
  for (uint32_t k = 0; k < n; k++)
    to[k] = to[k] > from[k] ? to[k] : from[k];
}

void emu_release(struct emu_agent *a, uint32_t *to) {
  join(to, a->clock, EMU_CLOCKS(a->unit->e));
  EMU_WAITED(a->unit->e, to) |= (a->waited & a->active) != 0;
  emu_tick(a);
}

void emu_release_order(struct emu_agent *a, uint32_t *to) {
  const struct emu *e = a->unit->e;
  join(EMU_ORDER(e, to), EMU_ORDER(e, a->clock), e->n_agents);
  emu_tick(a);
}

void emu_acquire(struct emu_agent *a, const uint32_t *from) {
  join(a->clock, from, EMU_CLOCKS(a->unit->e));
}

static const char *op_name(const struct ir_module *m, uint32_t op) {
  return ir_info(ir_op_at(m, (struct ir_op){op})->opcode)->name;
}

/* "warp 3", or, of the warp's own: "another thread of the warp". */
static const char *other_name(const struct emu_agent *a, uint32_t other, char *out, size_t size) {
  if (other == a->id)
    snprintf(out, size, "another thread of the warp");
  else
    emu_agent_name(&a->unit->agent[other], out, size);
  return out;
}

/* ---- shared memory ---- */

static void report(struct emu_agent *a, const struct emu_insn *i, uint32_t lane, bool writes,
                   uint32_t address, uint32_t bytes, uint32_t other, uint32_t op, bool wrote) {
  char who[60];
  const struct ir_module *m = a->unit->e->m;
  emu_fail(a, i, lane, DIAG_MACHINE_RACE,
           "'%s' %s bytes %u..%u of shared memory, which %s %s with '%s'; nothing orders the two",
           op_name(m, i->op.id), writes ? "writes" : "reads", address, address + bytes - 1,
           other_name(a, other, who, sizeof who), wrote ? "writes" : "reads", op_name(m, op));
  emu_also(a, op, "the other access is this '%s'", op_name(m, op));
}

/* Did the access of (agent, clock, lane) happen before what this lane does now? */
static bool before(const struct emu_agent *a, uint32_t lane, bool writes, uint32_t agent,
                   uint32_t clock, uint32_t other_lane) {
  const struct emu *e = a->unit->e;
  if (agent == a->id)
    return clock < a->clock[a->id] || (lane == other_lane && lane != EMU_NO_LANE);
  return clock <= (writes ? EMU_ORDER(e, a->clock) : a->clock)[agent];
}

/* Is what a warp wrote there fenced for the asynchronous proxy, if that is who reads it? */
static bool check_fenced(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                         enum emu_proxy proxy, const struct emu_granule *g, uint32_t address,
                         uint32_t bytes) {
  const struct emu *e = a->unit->e;
  char who[60];
  if (proxy != EMU_ASYNC || !(g->flags & EMU_INIT) || (g->flags & EMU_BY_ASYNC) ||
      g->clock <= EMU_FENCED(e, a->clock)[g->writer])
    return true;
  emu_fail(
      a, i, lane, DIAG_MACHINE_RACE,
      "'%s' reads bytes %u..%u of shared memory through the asynchronous proxy, which %s wrote "
      "with '%s' without a fence_async after it",
      op_name(e->m, i->op.id), address, address + bytes - 1,
      emu_agent_name(&a->unit->agent[g->writer], who, sizeof who), op_name(e->m, g->writer_op));
  emu_also(a, g->writer_op, "written by this '%s'", op_name(e->m, g->writer_op));
  return false;
}

static bool check_flying(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                         const struct emu_granule *g, uint32_t address, uint32_t bytes) {
  const struct emu_agent *by = &a->unit->agent[g->writer];
  char who[60];
  if (!(g->flags & EMU_FLYING))
    return true;
  emu_fail(a, i, lane, DIAG_MACHINE_RACE,
           "'%s' touches bytes %u..%u of shared memory while %s%s is on its way there",
           op_name(a->unit->e->m, i->op.id), address, address + bytes - 1,
           by->name ? "one of " : "a copy by ",
           by == a && !by->name ? "its own warp" : emu_agent_name(by, who, sizeof who));
  emu_also(a, g->writer_op, "the copy is this '%s'", op_name(a->unit->e->m, g->writer_op));
  return false;
}

static bool check_writer(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                         const struct emu_granule *g, bool writes, uint32_t address,
                         uint32_t bytes) {
  if (!(g->flags & EMU_INIT) || before(a, lane, writes, g->writer, g->clock, g->lane))
    return true;
  report(a, i, lane, writes, address, bytes, g->writer, g->writer_op, true);
  return false;
}

/* Those before the last write are ordered before that. */
static bool check_readers(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                          const struct emu_granule *g, uint32_t address, uint32_t bytes) {
  const struct emu_read *all = a->cta->read + (g - a->cta->granule);
  for (uint64_t left = g->readers; left; left &= left - 1)
    for (uint32_t k = (uint32_t)__builtin_ctzll(left); k < a->unit->e->n_agents; k += 64) {
      const struct emu_read *r = all + (size_t)k * a->cta->n_granules;
      if (r->clock && !before(a, lane, true, k, r->clock, r->who & 255)) {
        report(a, i, lane, true, address, bytes, k, r->who >> 8, false);
        return false;
      }
    }
  return true;
}

/* A granule as a write leaves it. */
static struct emu_granule written(const struct emu_agent *a, const struct emu_insn *i,
                                  uint32_t lane, enum emu_proxy proxy) {
  return (struct emu_granule){
      .writer = (uint16_t)a->id,
      .writer_op = i->op.id,
      .clock = a->clock[a->id],
      .lane = (uint8_t)lane,
      .flags = (uint8_t)(EMU_INIT | (proxy == EMU_ASYNC ? EMU_BY_ASYNC : 0)),
      .epoch = a->cta->epoch,
  };
}

/* Touched in another epoch, and nothing is on its way there: what is done now comes after it. */
static inline bool is_settled(const struct emu_granule *g, uint32_t epoch) {
  return g->epoch != epoch && !(g->flags & EMU_FLYING);
}

static bool order_write(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                        const struct emu_granule *g, uint32_t address, uint32_t bytes) {
  return check_flying(a, i, lane, g, address, bytes) &&
         check_writer(a, i, lane, g, true, address, bytes) &&
         check_readers(a, i, lane, g, address, bytes);
}

/* flags: more of them. */
static bool write_all(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                      enum emu_proxy proxy, uint8_t flags, uint32_t address, uint32_t bytes) {
  uint32_t shift = a->unit->e->plan.granule_shift;
  uint32_t end = (address + bytes + (1u << shift) - 1) >> shift;
  struct emu_granule after = written(a, i, lane, proxy);
  after.flags |= flags;
  struct emu_granule *all = a->cta->granule;
  for (uint32_t k = address >> shift; k < end; k++) {
    struct emu_granule *g = &all[k];
    if (!is_settled(g, after.epoch) && !order_write(a, i, lane, g, address, bytes))
      return false;
    *g = after;
  }
  return true;
}

/* The common case of a read: written, by somebody before, and through the same proxy. */
static bool is_plain_read(const struct emu_agent *a, uint32_t lane, enum emu_proxy proxy,
                          const struct emu_granule *g) {
  return (g->flags & (EMU_INIT | EMU_FLYING)) == EMU_INIT &&
         before(a, lane, false, g->writer, g->clock, g->lane) &&
         (proxy == EMU_GENERIC || (g->flags & EMU_BY_ASYNC));
}

static bool order_read(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                       enum emu_proxy proxy, uint32_t address, uint32_t bytes, uint32_t *hollow) {
  uint32_t shift = a->unit->e->plan.granule_shift, size = 1u << shift;
  uint32_t end = (address + bytes + size - 1) >> shift, stride = a->cta->n_granules;
  uint32_t clock = a->clock[a->id], op = i->op.id << 8;
  uint32_t epoch = a->cta->epoch, by = lane & 255;
  struct emu_granule *all = a->cta->granule;
  struct emu_read *mine = a->cta->read + (size_t)a->id * stride;
  uint64_t bit = UINT64_C(1) << a->id % 64;
  bool share = a->unit->e->n_agents > 64;
  for (uint32_t k = address >> shift; k < end; k++) {
    struct emu_granule *g = &all[k];
    if (is_settled(g, epoch))
      g->readers = 0; /* over, too */
    else if (!is_plain_read(a, lane, proxy, g) &&
             (!check_flying(a, i, lane, g, address, bytes) ||
              !check_writer(a, i, lane, g, false, address, bytes) ||
              !check_fenced(a, i, lane, proxy, g, address, bytes)))
      return false;
    uint32_t here = g->flags & EMU_INIT ? g->hollow : (1u << size) - 1;
    if (here) /* from the access's first byte on */
      *hollow |= k << shift < address ? here >> (address - (k << shift))
                                      : here << ((k << shift) - address);
    /* Agents of the same number modulo 64 share a bit: the first to read since the last write says
     * that the others have not. */
    bool is_new = !(g->readers & bit), first = is_new || mine[k].clock != clock;
    if (is_new && share)
      for (uint32_t j = a->id % 64; j < a->unit->e->n_agents; j += 64)
        a->cta->read[(size_t)j * stride + k].clock = 0;
    g->readers |= bit;
    g->epoch = epoch;
    mine[k].who = op | (first || (mine[k].who & 255) == by ? by : EMU_NO_LANE);
    mine[k].clock = clock;
  }
  return true;
}

bool emu_order_shared(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                      enum emu_proxy proxy, enum emu_kind kind, uint32_t address, uint32_t bytes,
                      uint32_t *hollow) {
  if (kind == EMU_READ)
    return order_read(a, i, lane, proxy, address, bytes, hollow);
  return write_all(a, i, lane, proxy, 0, address, bytes);
}

bool emu_order_lanes(struct emu_agent *a, const struct emu_insn *i, uint32_t lanes, bool as_one,
                     enum emu_kind kind, const int64_t *address, uint32_t bytes, uint32_t *hollow) {
  EMU_EACH_LANE (l, lanes) {
    uint32_t lane = as_one ? EMU_NO_LANE : l;
    if (kind == EMU_WRITE) {
      if (!write_all(a, i, lane, EMU_GENERIC, 0, (uint32_t)address[l], bytes))
        return false;
      continue;
    }
    hollow[l] = 0;
    if (!order_read(a, i, lane, EMU_GENERIC, (uint32_t)address[l], bytes, &hollow[l]))
      return false;
  }
  return true;
}

bool emu_order_fly(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                   enum emu_proxy proxy, uint32_t address, uint32_t bytes) {
  return write_all(a, i, lane, proxy, EMU_FLYING, address, bytes);
}

void emu_order_land(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                    enum emu_proxy proxy, uint32_t address, uint32_t bytes) {
  uint32_t shift = a->unit->e->plan.granule_shift;
  uint32_t end = (address + bytes + (1u << shift) - 1) >> shift;
  struct emu_granule after = written(a, i, lane, proxy);
  for (uint32_t k = address >> shift; k < end; k++)
    a->cta->granule[k] = after;
}

/* ---- global memory ---- */

static uint32_t get(atomic_uint *x) {
  return atomic_load_explicit(x, memory_order_relaxed);
}

static void put(atomic_uint *x, uint32_t v) {
  atomic_store_explicit(x, v, memory_order_relaxed);
}

static const char *verb(enum emu_kind kind) {
  return kind == EMU_READ ? "reads" : kind == EMU_WRITE ? "writes" : "changes";
}

bool emu_report_global(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                       const struct emu_region *r, int64_t k, enum emu_kind kind, const char *who,
                       const char *what) {
  emu_fail(a, i, lane, DIAG_MACHINE_RACE,
           "'%s' %s element %lld of the memory of '%s', which %s %s; nothing orders the two",
           op_name(a->unit->e->m, i->op.id), verb(kind), (long long)(k + r->lo / r->size), r->name,
           who, what);
  return false;
}

bool emu_order_launches(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                        enum emu_kind kind, const struct emu_region *r, int64_t at) {
  if (EMU_WAITED(a->unit->e, a->clock) || emu_lane_waited(a, lane))
    return true;
  emu_fail(
      a, i, lane, DIAG_MACHINE_RACE,
      "'%s' %s byte %lld of '%s' without a pdl_wait before it: the launch may begin before the "
      "kernel before it has ended, which may still %s there",
      op_name(a->unit->e->m, i->op.id), verb(kind), (long long)at, r->name,
      kind == EMU_READ ? "write" : "read or write");
  return false;
}

void emu_report_unwritten(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                          const struct emu_region *r, int64_t k) {
  emu_fail(a, i, lane, DIAG_UNWRITTEN,
           "'%s' reads element %lld of the memory of '%s', which nothing has written before",
           op_name(a->unit->e->m, i->op.id), (long long)(k + r->lo / r->size), r->name);
}

/* Warps of one block. */
static bool order_within(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                         enum emu_kind kind, const struct emu_region *r, int64_t k) {
  struct emu_gshadow *s = &r->shadow[k];
  const uint32_t *over = EMU_ORDER(a->unit->e, a->clock);
  uint32_t me = a->id + 1, w = get(&s->w_agent);
  char who[60];
  if (w && w != me && get(&s->w_clock) > (kind == EMU_READ ? a->clock : over)[w - 1])
    return emu_report_global(a, i, lane, r, k, kind, other_name(a, w - 1, who, sizeof who),
                             "writes");
  uint32_t at = get(&s->a_agent);
  if (kind != EMU_ATOMIC && at && at != me && get(&s->a_clock) > a->clock[at - 1])
    return emu_report_global(a, i, lane, r, k, kind, other_name(a, at - 1, who, sizeof who),
                             "changes atomically");
  for (int j = 0; j < 2 && kind != EMU_READ; j++) {
    uint32_t by = get(&s->r_agent[j]);
    if (by && by != me && get(&s->r_clock[j]) > over[by - 1])
      return emu_report_global(a, i, lane, r, k, kind, other_name(a, by - 1, who, sizeof who),
                               "reads");
  }
  if (kind == EMU_WRITE) {
    put(&s->w_agent, me);
    put(&s->w_clock, a->clock[a->id]);
  } else if (kind == EMU_ATOMIC) {
    put(&s->a_agent, me);
    put(&s->a_clock, a->clock[a->id]);
  } else {
    /* Two readers that nothing orders are enough: a writer is another than one of them. */
    uint32_t first = get(&s->r_agent[0]);
    int j = first && first != me && get(&s->r_clock[0]) > a->clock[first - 1];
    put(&s->r_agent[j], me);
    put(&s->r_clock[j], a->clock[a->id]);
  }
  return true;
}

/* Blocks run in any order, at once too; both sides write down what they do before they look what
 * the other did, so that one of them notices. */
bool emu_order_global(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                      enum emu_kind kind, struct emu_region *r, int64_t k) {
  struct emu_gshadow *s = &r->shadow[k];
  if (a->unit->e->syncs)
    return emu_order_synced(a, i, lane, kind, r, k);
  /* A cluster's blocks order each other as warps do. */
  uint32_t me = (uint32_t)(a->cta->index / a->unit->e->cluster) + 1, other;
  bool ok = true;
  if (kind == EMU_WRITE) {
    other = atomic_exchange(&s->writer, me);
    if (other && other != me && other != EMU_LAUNCH)
      ok = emu_report_global(a, i, lane, r, k, kind, "another block", "writes");
    other = ok ? atomic_load(&s->reader) : 0;
    if (other && other != me)
      ok = emu_report_global(a, i, lane, r, k, kind, "another block", "reads");
  } else if (kind == EMU_READ) {
    other = atomic_load(&s->reader);
    if (other != me)
      atomic_store(&s->reader, other ? EMU_SEVERAL : me);
  } else {
    other = atomic_load(&s->atomic);
    if (other != me)
      atomic_store(&s->atomic, other ? EMU_SEVERAL : me);
  }
  other = ok ? atomic_load(&s->writer) : 0;
  if (other && other != me && other != EMU_LAUNCH)
    ok = emu_report_global(a, i, lane, r, k, kind, "another block", "writes");
  bool is_atomic = atomic_load(&s->atomic) != 0;
  if (ok && kind != EMU_ATOMIC && is_atomic && atomic_load(&s->atomic) != me)
    ok = emu_report_global(a, i, lane, r, k, kind, "another block", "changes atomically");
  other = ok && kind == EMU_ATOMIC ? atomic_load(&s->reader) : 0;
  if (other && other != me)
    ok = emu_report_global(a, i, lane, r, k, kind, "another block", "reads");
  if (ok && kind == EMU_READ && r->unset && !other && !atomic_load(&s->writer) && !is_atomic) {
    emu_report_unwritten(a, i, lane, r, k);
    return false;
  }
  return ok && order_within(a, i, lane, kind, r, k);
}
