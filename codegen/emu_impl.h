/* Private to codegen/emu*.c: how a run is held.
 *
 * The module is turned into a flat program once (emu_plan.c): an array of instructions, control
 * among them, whose operands are slots of 32 cells, one per lane. A worker (struct emu_unit) runs
 * one cluster of blocks at a time; its agents take turns (emu_sched.c). What an agent needs to stop
 * in the middle and go on later is in the agent.
 *
 * Every access to memory goes through emu_touch (emu_mem.c), which says where the bytes are or that
 * the access is an error; what an access means for order is emu_race.c's. */
#ifndef KILN_CODEGEN_EMU_IMPL_H
#define KILN_CODEGEN_EMU_IMPL_H

#include "codegen/emu.h"
#include "base/num.h"
#include "ir/cells.h"
#include "ir/resource.h"

#include <stdatomic.h>

#define EMU_LANES    32u
#define EMU_ALL      0xffffffffu /* every lane */
#define EMU_SLOT     256u        /* bytes of a slot: 32 cells of 8 bytes at most */
#define EMU_NO_LANE  255u        /* several lanes, or the warp as one */
#define EMU_BARRIERS 16u

/* ---- program ---- */

/* Where an operand is: a slot of the agent, or one of the constants that all share. */
typedef uint32_t emu_slot;
#define EMU_CONST 0x80000000u

struct emu_agent;
struct emu_insn;
typedef void emu_fn(struct emu_agent *a, const struct emu_insn *i);

struct emu_insn {
  emu_fn *fn;
  struct ir_op op;
  const struct ir_opnode *n;
  const emu_slot *in, *out;
  enum dtype in_dtype, out_dtype; /* of the last operand, of the first result */
  const struct ir_res *res[3];    /* as the op lists them */
  uint32_t target;                /* control: where to go on */
  uint32_t n_moves;               /* control: values that change slots here */
  const struct emu_move *moves;
  uint8_t uniform;  /* a bit per operand (8 of them): the same in all active lanes */
  bool follows;     /* its results are hollow where operands are */
  bool once;        /* the same in all lanes: computed for one (emu_plan.c) */
  uint8_t bytes[4]; /* of a cell: of the operands, and of the result, of what is computed once */
  const void *data; /* what the op's function made of it (emu_plan.c) */
  const struct ir_res *buf;  /* of its resources the first that is a buffer, or NULL */
  int64_t buf_at, buf_bytes; /* where that is, and how many bytes it has */
  int64_t imm, imm2;         /* the op's attribute or attributes; see emu_plan.c */
};

struct emu_move {
  emu_slot from, to;
  uint32_t bytes; /* of a cell */
  bool late;      /* its source is a target of the same group: through a copy */
};

struct emu_plan {
  struct emu_insn *insn;
  uint32_t n_insns;
  uint32_t n_slots, n_consts;
  char *consts;
  uint32_t max_depth, max_moves;
  uint32_t granule, granule_shift; /* bytes of shared memory that one shadow stands for: 2^shift */
  uint32_t unit;                   /* bytes of shared memory per payload */
  emu_slot *entry;                 /* of the entry block's arguments */
};

/* ---- memory ---- */

enum emu_proxy { EMU_GENERIC, EMU_ASYNC };
enum emu_kind { EMU_READ, EMU_WRITE, EMU_ATOMIC };

/* Who touched an element of a tensor that is written. block: number + 1, or one of these. */
#define EMU_SEVERAL 0xffffffffu /* blocks */
#define EMU_LAUNCH  0xfffffffeu /* written by the launch itself */
struct emu_gshadow {
  atomic_uint writer, reader, atomic; /* blocks; reader of emu_sync.c: a list of them */
  /* Within the block: warps, and their clocks then. */
  atomic_uint w_agent, w_clock, a_agent, a_clock, r_agent[2], r_clock[2];
};

/* Memory of an argument, or the workspace. Its addresses are made up: region k + 1 of 2^44 bytes,
 * with the low bits of the true one, so that no pointer leads from one into another. */
struct emu_region {
  const char *name;
  uint64_t va;    /* of element 0 */
  int64_t lo, hi; /* bytes relative to va that belong to it */
  char *data;     /* element 0 */
  uint32_t size;  /* bytes per element */
  bool payload;   /* data are payloads, one per `size` bytes */
  bool writable;
  bool unset;                 /* holds nothing until it is written */
  struct emu_gshadow *shadow; /* of elements from lo on; NULL: not written by anybody */
};
#define EMU_REGION_BITS 44

/* A place in memory: element j of dtype t is element j * step from `at`, as interp_load_cells
 * counts. at is NULL after an error. */
struct emu_ref {
  char *at;
  int64_t step;
  uint32_t hollow; /* a bit per byte: nobody has written what is there */
};

/* Shared memory, per granule. */
struct emu_granule {
  uint64_t readers; /* since it was written: a bit for agents of that number modulo 64 */
  uint32_t writer_op, clock;
  uint16_t writer; /* agent */
  uint8_t lane;
  uint8_t flags;
  uint16_t hollow; /* a bit per byte: written, but with nothing */
  uint32_t epoch;  /* the block's when it was last touched; 0: never */
};
enum { EMU_INIT = 1, EMU_FLYING = 2, EMU_BY_ASYNC = 4 };
struct emu_read {
  uint32_t clock;
  uint32_t who; /* op * 256 + lane; one word, as it is written and read in turn very often */
};

/* ---- the run ---- */

struct emu_team;

struct emu {
  const struct ir_module *m;
  const struct emu_options *opt;
  const struct interp_arg *args;
  struct emu_plan plan;
  struct emu_region *region; /* by argument, then the workspace */
  uint32_t n_regions;
  const struct recipe_step *step;
  uint64_t grid;           /* blocks */
  uint32_t cluster, warps; /* blocks of a cluster, warps of a block */
  uint32_t n_agents;       /* of a cluster: its warps, then what works asynchronously */
  const struct emu_async *async;
  int64_t *param; /* as cells: integers and addresses */
  double *param_f;
  int64_t *dims; /* scratch for binding */
  bool serial;   /* blocks one after the other */
  bool syncs;    /* some atomic orders blocks */
  bool counts;   /* somebody wants the numbers */
  bool skeleton;
  bool frags_hold; /* skeleton: fragments hold something from the start */
  uint32_t trips;  /* skeleton: of any loop, at most */
  char *zeros;     /* skeleton: what is read from global memory, and behind it what is written */
};

enum emu_state { EMU_READY, EMU_WAITS, EMU_DONE };

struct emu_frag {
  char *cells;      /* [element][lane] */
  uint32_t *set;    /* lanes that hold something, per element */
  uint32_t *hollow; /* of these, lanes where that is nothing */
  uint32_t n;
  enum cell cell;
  enum dtype dtype;
  bool touched; /* since the last wgmma_fence */
};

struct emu_frame {
  uint32_t saved, other; /* lanes */
  int64_t k;
  int64_t leap_at, leap; /* skeleton: after how many iterations the index leaps, and how far */
};

/* Of a skeleton: loops of about n iterations run `less` of them less. */
#define EMU_CUTS 16
struct emu_cut {
  int64_t n, less;
};

struct emu_copy {
  struct emu_ref from;
  uint64_t from_va;
  uint32_t to, bytes, valid; /* bytes */
  uint32_t lane, group;
  bool landed;
  const struct emu_insn *by;
};

struct emu_agent {
  struct emu_unit *unit;
  struct emu_cta *cta;
  void (*run)(struct emu_agent *a, uint32_t budget); /* until it waits, ends or has no budget */
  uint32_t id;                                       /* index of its clock */
  enum emu_state state;
  const struct emu_insn *at; /* what it does, or waits in */
  char waits_for[64];        /* as people read it */
  struct emu_bar *bar;       /* where it waits, if that is a barrier */
  uint32_t *clock;           /* see emu_race.c */
  const char *name;          /* NULL: a warp */
  struct emu_async_warp *async;
  struct emu_work *first, *last; /* of what works asynchronously: its queue */
  uint32_t finished;             /* pieces of work */
  bool mma_open;                 /* a wgmma that the warp has not waited for */
  /* warps */
  uint32_t warp, pc, active, depth;
  uint32_t waited; /* lanes that have waited for the kernels before (pdl_wait) */
  char *cells;
  uint32_t *hollow;   /* by slot: lanes */
  bool any_hollow;    /* some lane of some slot or fragment is */
  uint32_t hollow_op; /* where that began */
  struct emu_frame *frame;
  struct emu_frag *frag; /* by resource */
  VEC(struct emu_copy) copies;
  uint32_t group;     /* of copies, that is open */
  struct strbuf line; /* that it prints */
};

struct emu_bar {
  uint32_t arrived; /* threads */
  uint32_t *clock;
};

struct emu_cta {
  uint32_t rank; /* in the cluster */
  uint64_t index;
  char *smem;
  int64_t *payload;
  struct emu_granule *granule;
  struct emu_read *read; /* [agent][granule]; holds something where the granule's bit is set */
  uint32_t n_granules;
  struct emu_bar bar[EMU_BARRIERS];
  struct emu_agent *warp, *unit; /* unit: what works asynchronously */
  struct emu_slot_state *slot;
  uint32_t free_regs; /* per thread of a warp */
  /* Barriers that all agents have waited in, counted from 1: what was done in another epoch comes
   * before what anybody does now. Where more than the block's warps touch its memory, it stays. */
  uint32_t epoch;
};

struct emu_unit {
  const struct emu *e;
  struct arena *arena;
  struct diag_sink *diags;
  struct emu_team *team; /* NULL: alone */
  bool is_caller;
  struct emu_cta *cta;
  struct emu_agent *agent; /* [n_agents] */
  char *temp;              /* moves in progress */
  uint32_t *temp_hollow;
  struct emu_work *free_work;
  struct emu_cluster_bar *cluster_bar;
  struct emu_sync *sync; /* emu_sync.c; NULL: nothing yet */
  struct emu_cut cut[EMU_CUTS];
  uint32_t n_cuts;
  uint64_t rng;
  uint64_t steps, steps_told, poll_at;
  bool stopped; /* an error was reported, or the team stops */
  bool counting;
  struct emu_stats stats;
};

static inline void *emu_cells(const struct emu_agent *a, emu_slot p) {
  return p & EMU_CONST ? a->unit->e->plan.consts + (size_t)(p & ~EMU_CONST) * EMU_SLOT
                       : a->cells + (size_t)p * EMU_SLOT;
}
static inline const int64_t *emu_in_int(const struct emu_agent *a, const struct emu_insn *i,
                                        uint32_t k) {
  return emu_cells(a, i->in[k]);
}
static inline const uint8_t *emu_in_bool(const struct emu_agent *a, const struct emu_insn *i,
                                         uint32_t k) {
  return emu_cells(a, i->in[k]);
}
static inline enum cell emu_cell(const struct emu *e, enum dtype t) {
  return cell_kind(e->opt->domain, t);
}
static inline enum dtype emu_dtype(const struct emu *e, struct ir_val v) {
  return (enum dtype)ir_type_of(e->m, v).dtype;
}
static inline uint32_t emu_bytes(enum dtype t) {
  return (dtype_bits(t) + 7) / 8;
}
/* Elements that a thread holds of a resource, if that is a fragment. */
static inline uint32_t emu_frag_elems(const struct ir_module *m, uint32_t res) {
  return m->res.at[res].kind == IR_RES_FRAG ? ir_frag_elems(m, &m->res.at[res]) : 0;
}
/* The lanes of `mask` whose cells in a bool slot are true. */
static inline uint32_t emu_lanes(const uint8_t *cells, uint32_t mask) {
  uint32_t lanes = 0;
  for (uint32_t l = 0; l < EMU_LANES; l++)
    lanes |= (uint32_t)(cells[l] != 0) << l;
  return lanes & mask;
}
#define EMU_EACH_LANE(l, mask)                                                                     \
  for (uint32_t l = 0, left_##l = (mask); left_##l; left_##l &= left_##l - 1)                      \
    if ((l = (uint32_t)__builtin_ctz(left_##l)), true)

/* emu_bind.c: symbols of the recipe, its checks, regions, parameters, workspace. False after an
 * error. */
bool emu_bind(struct emu *e, struct arena *a, struct diag_sink *diags);

/* emu_plan.c: false after reporting an op that cannot be emulated. */
bool emu_make_plan(struct emu *e, struct arena *a, struct diag_sink *diags);

/* emu_skeleton.c: of a skeleton, by op, whether it is left out; sets frags_hold. */
const bool *emu_skeleton_leaves(struct emu *e, struct arena *a);

/* emu_sched.c: memory of a worker; runs cluster number k to its end (look at `stopped`). */
void emu_unit_init(struct emu_unit *u);
void emu_run_cluster(struct emu_unit *u, uint64_t k);
/* The next number of the run's sequence, which the seed starts. */
uint32_t emu_random(struct emu_unit *u);
/* Stops the agent until something wakes it; what it waits for, as people read it. */
void emu_wait(struct emu_agent *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void emu_wake(struct emu_agent *a);
/* Barrier `id` of the agent's block, for `threads` threads: arrives, and waits for it. */
void emu_bar_sync(struct emu_agent *a, uint32_t id, uint32_t threads);
/* The same without waiting. */
void emu_bar_arrive(struct emu_agent *a, uint32_t id, uint32_t threads);

/* emu_exec.c: control, scalars, fragments. lookup: NULL for an op that is not emulated. */
void emu_run_warp(struct emu_agent *a, uint32_t budget);
emu_fn *emu_find_fn(enum ir_opcode opcode);
/* Control instructions that the plan makes. */
emu_fn emu_if, emu_else, emu_end, emu_for, emu_for_test, emu_next, emu_each, emu_each_next,
    emu_while, emu_while_test, emu_exit;
/* False after reporting that lanes have diverged at an instruction of the whole warp. */
bool emu_need_all(struct emu_agent *a, const struct emu_insn *i);
/* The value of an index operand, which must be the same in all active lanes. */
bool emu_uniform(struct emu_agent *a, const struct emu_insn *i, uint32_t k, int64_t *value);
/* Of a skeleton: how many of a loop's n iterations are run. Loops of nearly as many lose the same
 * number, so that those who hand each other slots of a pipe still agree. */
int64_t emu_cut_trips(struct emu_unit *u, int64_t n);

/* emu_mem.c. elem: bytes of an element if it is a payload, else 0. */
struct emu_ref emu_touch_shared(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                                enum emu_proxy proxy, enum emu_kind kind, int64_t address,
                                uint32_t bytes, uint32_t elem);
struct emu_ref emu_touch_global(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                                enum emu_kind kind, uint64_t va, uint32_t bytes, uint32_t elem);
/* Address in shared memory of an offset into the op's buffer, which must hold `bytes` there; -1
 * after an error. */
int64_t emu_buffer(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                   const struct ir_res *buf, int64_t offset, uint32_t bytes);
/* Counts passes over the banks: address[k] of the lanes of `mask`, `bytes` each. */
void emu_count_banks(struct emu_agent *a, struct emu_banks *banks, const int64_t *address,
                     uint32_t mask, uint32_t bytes);
/* Values that a skeleton does without. */
static inline bool emu_is_left_out(const struct emu *e, enum dtype t) {
  return e->skeleton && dtype_is_float(t);
}
/* Of a skeleton's accesses to floats in shared memory, all lanes at once: are they all there is?
 * bytes: a power of 2. If not, the way lane by lane says what is wrong. */
bool emu_are_legal(const struct emu_agent *a, enum dtype t, const int64_t *address, uint32_t lanes,
                   uint32_t bytes);
emu_fn emu_gload, emu_gstore, emu_gatomic, emu_sload, emu_sstore;

/* emu_copy.c: cp.async. */
emu_fn emu_cp_async, emu_pipe_commit, emu_pipe_wait;

/* emu_matrix.c. plan_mma: what an mma op's function takes as `data`, in `a`; NULL: no such
 * instruction. */
emu_fn emu_run_ldmatrix, emu_run_stmatrix, emu_run_unzip, emu_run_mma;
const void *emu_plan_mma(const struct emu *e, struct ir_op o, struct arena *a);
/* emu_exec.c: element k of a fragment: its cells, all lanes; NULL after an error. hollow: lanes in
 * which what is written is nothing. */
void *emu_frag_read(struct emu_agent *a, const struct emu_insn *i, struct emu_frag *f, int64_t k);
void *emu_frag_write(struct emu_agent *a, const struct emu_insn *i, struct emu_frag *f, int64_t k,
                     uint32_t hollow);
static inline struct emu_frag *emu_frag_of(const struct emu_agent *a, const struct emu_insn *i,
                                           uint32_t k) {
  return &a->frag[i->n->res[k]];
}

/* emu_async.c, emu_tma.c, emu_wgmma.c: pipes with mbarriers, tensor maps, wgmma (emu_async.h).
 * bind: false after an error; how many agents there are is known then. end: a warp ends; false
 * after an error. may_touch: element k of a fragment; false after reporting that a wgmma under way
 * holds it. */
bool emu_async_bind(struct emu *e, struct arena *a, struct diag_sink *diags,
                    bool (*eval)(void *user, struct expr x, const char *what, int64_t *value),
                    void *user);
void emu_async_init(struct emu_unit *u);
void emu_async_start(struct emu_unit *u);
bool emu_async_end(struct emu_agent *a);
bool emu_may_touch(struct emu_agent *a, const struct emu_insn *i, const struct emu_frag *f,
                   int64_t k, bool writes);
emu_fn emu_pipe_init, emu_fence_init, emu_slot_acquire, emu_slot_expect, emu_slot_fill,
    emu_slot_wait, emu_slot_release, emu_slot_next, emu_slot_at, emu_fence_async, emu_tma_load,
    emu_tma_store, emu_bulk_commit, emu_bulk_wait, emu_desc, emu_wgmma, emu_wgmma_fence,
    emu_wgmma_commit, emu_wgmma_wait, emu_no_effect;

/* emu_block.c. other_block: NULL after an error; it may be the agent's own. */
emu_fn emu_warpgroup_id, emu_cluster_rank, emu_grid_size, emu_in_role, emu_bar_op,
    emu_cluster_arrive, emu_cluster_wait, emu_set_regs, emu_rload, emu_rstore, emu_pdl_wait;
struct emu_cta *emu_other_block(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                                int64_t rank);
void emu_start_regs(struct emu_cta *cta, uint32_t warps);

/* emu_wgmma.c: what a wgmma op's function takes as `data`; NULL: no such instruction. */
const void *emu_plan_wgmma(const struct emu *e, struct ir_op o, struct arena *a);

/* emu_race.c. shared: false after reporting; *hollow: a bit per byte that is read.
 * fly: the same for a copy that is issued, and from then
 * on nobody may touch the bytes; land: they are written now. global: k: which element of the
 * region's shadows. */
bool emu_order_shared(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                      enum emu_proxy proxy, enum emu_kind kind, uint32_t address, uint32_t bytes,
                      uint32_t *hollow);
/* The same for generic reads or writes of several lanes, or of the warp as one, at address[lane];
 * hollow: of reads, by lane. */
bool emu_order_lanes(struct emu_agent *a, const struct emu_insn *i, uint32_t lanes, bool as_one,
                     enum emu_kind kind, const int64_t *address, uint32_t bytes, uint32_t *hollow);
bool emu_order_fly(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                   enum emu_proxy proxy, uint32_t address, uint32_t bytes);
void emu_order_land(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                    enum emu_proxy proxy, uint32_t address, uint32_t bytes);
bool emu_order_global(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                      enum emu_kind kind, struct emu_region *r, int64_t k);
/* `who` does `what` to an element, which the op conflicts with; returns false. */
bool emu_report_global(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                       const struct emu_region *r, int64_t k, enum emu_kind kind, const char *who,
                       const char *what);
/* In a launch that may begin before the kernels before it have ended (pdl): false after reporting
 * that nothing says that they have. */
bool emu_order_launches(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                        enum emu_kind kind, const struct emu_region *r, int64_t at);
void emu_report_unwritten(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                          const struct emu_region *r, int64_t k);

/* emu_sync.c, where an atomic orders blocks: an atomic that does, at an address; and what
 * emu_order_global is then. */
void emu_sync_at(struct emu_agent *a, uint64_t va);
bool emu_order_synced(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                      enum emu_kind kind, struct emu_region *r, int64_t k);

/* emu_race.c, clocks. */
/* Vector clocks: what the agent did so far is in *to; what is in *from happened before what the
 * agent does from here on. */
void emu_release(struct emu_agent *a, uint32_t *to);
void emu_acquire(struct emu_agent *a, const uint32_t *from);
/* Hands on that what the agent did is over, but not what it wrote. */
void emu_release_order(struct emu_agent *a, uint32_t *to);
/* From here on what the agent does is later than what it did. */
void emu_tick(struct emu_agent *a);
/* Parts of a clock array, each [n_agents]: what the agent may read of the others' writes; what of
 * theirs is over, so that it may write there; their writes up to which they have fenced for the
 * asynchronous proxy. */
#define EMU_CLOCKS(e)    (3 * (e)->n_agents + 1)
#define EMU_ORDER(e, c)  ((c) + (e)->n_agents)
#define EMU_FENCED(e, c) ((c) + 2 * (e)->n_agents)
/* The last part, one word: 1 where the kernels before have ended, as far as the agent knows. */
#define EMU_WAITED(e, c) ((c)[3 * (e)->n_agents])
/* Has that lane waited for them? What is done by no one lane is not asked here. */
static inline bool emu_lane_waited(const struct emu_agent *a, uint32_t lane) {
  return lane < EMU_LANES && (a->waited >> lane & 1);
}

/* emu_hollow.c: values that come from memory that nothing has written. They may be computed with,
 * as long as nothing depends on them: addresses, masks, branches, what is stored to tensors.
 * follow: what the operands of an op without rules of its own make of its results. need: false
 * after reporting that operand k is hollow in one of these lanes. */
static inline uint32_t emu_hollow(const struct emu_agent *a, emu_slot p) {
  return p & EMU_CONST ? 0 : a->hollow[p];
}
void emu_set_hollow(struct emu_agent *a, const struct emu_insn *i, emu_slot p, uint32_t lanes);
void emu_follow(struct emu_agent *a, const struct emu_insn *i);
bool emu_need(struct emu_agent *a, const struct emu_insn *i, uint32_t k, uint32_t lanes);
void emu_store_hollow(struct emu_agent *a, uint32_t address, uint32_t bytes);

/* emu_text.c. fail: reports at the instruction, naming block, warp and lane (EMU_NO_LANE: the
 * warp), and stops the unit. also: a note at another op, for the error just reported. */
void emu_fail(struct emu_agent *a, const struct emu_insn *i, uint32_t lane, enum diag_id id,
              const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void emu_also(struct emu_agent *a, uint32_t op, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
const char *emu_agent_name(const struct emu_agent *a, char *out, size_t size);
emu_fn emu_check, emu_gprint;

/* emu_grid.c: all clusters, over threads where that pays. poll: of a unit, from time to time. */
bool emu_run_grid(struct emu *e, struct emu_unit *u);
void emu_poll(struct emu_unit *u);

#endif
