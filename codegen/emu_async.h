/* Private to the emulator's asynchronous hardware: pipes with mbarriers and the tensor memory unit
 * (emu_async.c, emu_tma.c), wgmma (emu_wgmma.c).
 *
 * What the hardware does by itself is an agent of its own, with a queue of work:
 *
 *   a slot of a pipe     the copies into it. They complete together, with the slot's phase; so the
 *                        agent's time is the number of the slot's use, from 1 on
 *   the stores of a warp  its time is the number of the group
 *   a warpgroup's matrix unit   the same
 *
 * A piece of work knows what its issuer knew (a copy of its clocks), and nothing more. In the mode
 * `early` work is done at once where it is issued; in `late` and `reversed` when no warp can go on
 * without; in `seeded` either, or any time in between. */
#ifndef KILN_CODEGEN_EMU_ASYNC_H
#define KILN_CODEGEN_EMU_ASYNC_H

#include "codegen/emu_impl.h"
#include "codegen/emu_tables.h"

/* What is the same for all blocks. By resource: first[r] is the slot of the block that is slot 0 of
 * pipe r, tmap[r] a tensor map. */
struct emu_async {
  uint32_t n_slots, n_groups, n_stores; /* agents of a block, in this order behind all warps */
  uint32_t *first;
  uint32_t *pipe; /* by slot of the block: its pipe */
  struct emu_tmap *tmap;
};

struct emu_mbar {
  uint32_t count, pending; /* arrivals: of a phase, still to come */
  int64_t tx;              /* bytes that are expected less those that have come */
  uint32_t phase;          /* phases that are complete: the hardware keeps its lowest bit */
  uint32_t *clock;         /* of those that arrived in the open phase */
  uint32_t *done;          /* of those of complete phases */
};

struct emu_slot_state {
  struct emu_mbar full, empty;
  bool made, fenced;           /* pipe_init, fence_init */
  uint32_t made_by, made_time; /* agent, clock */
};

/* A box on its way, or a wgmma. */
struct emu_work {
  struct emu_work *next;
  const struct emu_insn *by;
  uint32_t lane, time; /* of the issuer; of the agent that does it */
  uint32_t *clock;
  int32_t coord[EMU_TMAP_RANK];
  uint32_t address;
  /* wgmma */
  uint32_t warps; /* that have come to it, a bit each */
  uint32_t at_d, at_a;
  uint32_t desc_a, desc_b; /* low words */
  bool add;
};

/* Elements [at, at + n) of a fragment that a wgmma of a group reads (and writes). */
#define EMU_HELD 64u
struct emu_held {
  const struct emu_frag *frag;
  uint32_t at, n, group;
  bool written;
};

/* What a warp has of it. */
struct emu_async_warp {
  int64_t *cursor;           /* [resource][lane]: positions */
  const void *waits_on;      /* an mbarrier or an agent */
  uint32_t fence[EMU_LANES]; /* clock of each lane's last fence_async */
  /* stores: the open group; the lane that stores; groups whose reads it has waited for */
  uint32_t store_group, store_lane, store_read;
  uint32_t store_last; /* the group of its last one */
  /* wgmma: how many it has come to, the open group; what they hold until it has waited for them;
   * has it fenced? */
  uint32_t mma_count, mma_group;
  struct emu_held held[EMU_HELD];
  uint32_t n_held;
  bool mma_fenced;
  uint32_t cluster_phase; /* of the cluster's barrier that it has arrived for; 0: none */
  uint32_t regs;          /* of each thread */
};

struct emu_cluster_bar {
  uint32_t arrived, phase; /* warps; phases that are complete */
  uint32_t *clock, *done;
};

static inline struct emu_agent *emu_slot_agent(const struct emu_cta *cta, uint32_t slot) {
  return &cta->unit[slot];
}
static inline struct emu_agent *emu_group_agent(const struct emu_agent *warp) {
  return &warp->cta->unit[warp->unit->e->async->n_slots + warp->warp / 4];
}
static inline struct emu_agent *emu_store_agent(const struct emu_agent *warp) {
  const struct emu_async *x = warp->unit->e->async;
  return &warp->cta->unit[x->n_slots + x->n_groups + warp->warp];
}

/* emu_async.c. A new piece of work of agent `by`, which knows what `issuer` knows; the agent that
 * does it takes on what the work knows, at its time. */
struct emu_work *emu_new_work(struct emu_agent *issuer, const struct emu_insn *i, uint32_t lane);
void emu_become(struct emu_agent *by, const struct emu_work *w);
/* Puts work into the queue; does it at once where the mode says so. */
void emu_issue(struct emu_agent *by, struct emu_work *w);
void emu_free_work(struct emu_unit *u, struct emu_work *w);
/* Wakes the warps of a block that wait on an mbarrier or an agent. */
void emu_wake_waiting(struct emu_cta *cta, const void *on);
/* The warp executes its instruction again once something on which it waits has happened. */
#define EMU_WAIT_ON(a, on, ...)                                                                    \
  do {                                                                                             \
    (a)->pc--;                                                                                     \
    (a)->async->waits_on = (on);                                                                   \
    emu_wait((a), __VA_ARGS__);                                                                    \
  } while (0)
/* The one lane that executes this, which is for one thread; false after an error. */
bool emu_one_lane(struct emu_agent *a, const struct emu_insn *i, uint32_t *lane);
bool emu_has_ended(const struct emu_cta *cta);
/* The slot (of the block) and the use of it where the cursor stands, `behind` places back. */
bool emu_cursor_at(struct emu_agent *a, const struct emu_insn *i, uint32_t res, int64_t behind,
                   uint32_t *slot, uint32_t *use);
/* `bytes` have come for use number `use` of a slot, with what `by` knows. */
void emu_bytes_came(struct emu_agent *by, const struct emu_work *w, uint32_t slot, uint32_t bytes);
const char *emu_pipe_name(const struct emu_agent *a, uint32_t slot);

/* emu_tma.c: what its agents run. */
void emu_run_loads(struct emu_agent *a, uint32_t budget);
void emu_run_stores(struct emu_agent *a, uint32_t budget);
bool emu_stores_end(struct emu_agent *warp);

/* emu_wgmma.c */
void emu_run_group(struct emu_agent *a, uint32_t budget);
bool emu_group_end(struct emu_agent *warp);

#endif
