/* Lowering from scheduled tile IR to machine IR: the context that the lower_*.c files share. Each
 * op kind is lowered in one file; pass_lower_machine.c walks the ops and calls them.
 *
 * A tile value is a fragment, or is computed again wherever it is read (inline), or lies in shared
 * memory as loaded (dot operands). The lowering pulls: what writes (stores, reductions, fragments
 * with several readers, operands for dots) opens an `each` loop over registers and asks for the
 * value of one register, which asks for its operands' and so on: chains of elementwise ops become
 * one loop with no fragments between them. */
#ifndef KILN_CODEGEN_LOWER_H
#define KILN_CODEGEN_LOWER_H

#include "codegen/cluster.h"
#include "codegen/layouts.h"
#include "codegen/pass.h"
#include "codegen/view.h"

/* A matrix in shared memory: `outer` rows of `pitch` bytes; byte of (o, b), b bytes into its row,
 * is o * pitch + ((b / 16) ^ ((o >> shift) & mask)) * 16 + b % 16. */
struct cg_smem {
  uint32_t buf, pipe; /* resources */
  enum dtype dtype;
  int64_t outer, inner; /* elements, padding included */
  int64_t pitch;        /* bytes */
  uint32_t shift, mask; /* mask 0: no swizzle */
  int64_t slot_bytes;
  int outer_dim, inner_dim;       /* dims of the loaded tile; -1: a unit dim */
  int64_t fill_outer, fill_inner; /* what a copy writes: the tile, and zeros up to k's padding */
  /* Filled by the tensor memory unit: panels of `panel` elements along inner, each outer rows of
   * `panel_swizzle` bytes, swizzled as the unit does. 0: not. */
  int64_t panel;
  uint32_t panel_swizzle;
};

enum cg_lval_kind {
  CG_LV_NONE,
  CG_LV_SCALAR, /* `scalar` */
  CG_LV_FRAG,   /* fragment `frag` in the value's layout */
  CG_LV_INLINE, /* computed where it is read */
  CG_LV_SMEM,   /* `smem`, in slot offset `scalar`; a fragment that was read from there has both */
};

enum cg_lazy { CG_LAZY_UNKNOWN, CG_LAZY_ASKED, CG_LAZY_INLINE, CG_LAZY_FRAG };

/* What became of a value of the scheduled module. */
struct cg_lval {
  enum cg_lval_kind kind;
  enum cg_lazy lazy;   /* lower_eval.c: computed where it is read? */
  struct ir_op writer; /* ... and by whom, where it is one */
  bool several;
  struct ir_val scalar; /* SCALAR; SMEM: byte offset of the current slot */
  struct ir_val filled; /* FRAG: bool, false where the fragment holds nothing yet and counts as
                           zeros; 0: always true */
  uint32_t frag;
  struct cg_smem *smem;
  const struct cg_view *view; /* of a view, which is of no kind */
  struct cg_reading *reading; /* INLINE: of a load whose elements are read where they are used */
  /* INLINE, a load that its one writer makes part by part: the access, and the fragment of the part
   * at hand, whose register 0 is register `from` of the tile. */
  const struct cg_delayed *delayed;
  const struct cg_unit_load *landed; /* the same of one that lies in the writer's panels */
  uint32_t part;
  struct ir_val from;
  /* The element computed last, for readers within one register's evaluation. */
  uint32_t memo_epoch, memo_reg;
  struct ir_val memo;
  uint32_t walk; /* lower_eval.c: the last walk that came by */
  bool was_read; /* of a fragment: by a writer that is done */
};

/* The registers that cg_eval_run evaluates, and which of them it is at. */
struct cg_run {
  struct ir_val first; /* id 0: none, or not side by side */
  struct ir_val reg;   /* the one it is at */
  uint32_t n, at;
  uint32_t number; /* of the run, from 1 */
};

struct lower {
  struct ir_module *m;
  struct ir_pass_ctx *ctx;
  struct arena *a; /* scratch */
  const struct cg_target *target;
  struct ir_builder b;   /* where ops go */
  struct ir_builder top; /* end of the prologue: thread coordinates, pointers */
  struct cg_uses uses;
  struct ir_intervals *intervals; /* of the scheduled module */
  bool failed;                    /* an error was reported */
  struct cg_lval *val;            /* per value of the scheduled module */
  uint32_t n_val, n_ops;          /* of the scheduled module */
  uint32_t threads, warps;        /* that compute */
  uint32_t all_threads;           /* of the block */
  struct ir_val lane, warp;
  struct ir_val *arg_ptr; /* per module argument; 0 where absent or a scalar */
  struct map exprs;       /* launch expression -> parameter */
  struct map coords;      /* (layout, dim) -> this thread's base coordinate */
  struct map consts;      /* (dtype, value) -> constant in the prologue */
  uint32_t epoch, walk;
  struct cg_run run; /* lower_eval.c */
  uint32_t n_names;
  uint32_t open_pipe;     /* lower_smem.c: copies of loads in a row, not yet waited for */
  struct cg_roles *roles; /* lower_roles.c: consumers and a producer; NULL: all do the same */
  struct ring *ring;      /* lower_loop.c: left for the loop that follows, */
  struct ir_op ring_next; /* which is this one */
};

/* ---- lower_core.c: scalars ---- */

struct ir_val cg_s32(struct lower *l, int64_t c);
struct ir_val cg_index(struct lower *l, int64_t c);
struct ir_val cg_bool(struct lower *l, bool c);
bool cg_is_const(const struct lower *l, struct ir_val v, int64_t *c);
/* Folds constants and neutral operands; both operands of one integer dtype (AND, OR: bool too). */
struct ir_val cg_op2(struct lower *l, enum ir_opcode o, struct ir_val a, struct ir_val b);
struct ir_val cg_add(struct lower *l, struct ir_val a, struct ir_val b);
struct ir_val cg_mul(struct lower *l, struct ir_val a, struct ir_val b);
struct ir_val cg_addi(struct lower *l, struct ir_val a, int64_t c);
struct ir_val cg_muli(struct lower *l, struct ir_val a, int64_t c);
struct ir_val cg_cmp(struct lower *l, enum ir_opcode o, struct ir_val a, struct ir_val b);
struct ir_val cg_select(struct lower *l, struct ir_val c, struct ir_val x, struct ir_val y);
struct ir_val cg_cast(struct lower *l, struct ir_val v, enum dtype t);
/* What the lane whose number differs by the bits of `mask` has. */
struct ir_val cg_shuffle(struct lower *l, struct ir_val v, int64_t mask);
/* An integer constant of dtype t. */
struct ir_val cg_int(struct lower *l, enum dtype t, int64_t c);
/* Digits of x: pairs (extent, step); folds what is constant or trivial. */
struct ir_val cg_digits(struct lower *l, struct ir_val x, uint32_t n, const int64_t *map);

/* Launch expression as an index scalar: a constant where facts tell it, else a parameter. */
struct ir_val cg_launch_index(struct lower *l, struct expr e);
/* The same as s32: the launch checks that it fits. */
struct ir_val cg_launch_s32(struct lower *l, struct expr e);

/* Code that every thread needs once, whatever asks for it: between these two calls ops go to the
 * prologue. */
struct ir_builder cg_enter_top(struct lower *l);
void cg_leave_top(struct lower *l, struct ir_builder saved);

/* An unrolled loop over n registers; returns the index. n == 1 makes no loop. */
struct ir_val cg_each(struct lower *l, uint32_t n, struct ir_builder *saved);
struct ir_val cg_each_rolled(struct lower *l, uint32_t n, struct ir_builder *saved);
void cg_end_each(struct lower *l, struct ir_builder saved);

/* ---- lower_core.c: layouts ---- */

const struct layout *cg_layout_at(const struct lower *l, uint32_t layout);
/* (extent, step) pairs of a hardware index along a dim, into map (room for 2 * modes). */
uint32_t cg_mode_map(const struct layout *x, enum layout_hw hw, uint32_t dim, int64_t *map);
/* This thread's coordinate along dim of register 0, s32; computed in the prologue. */
struct ir_val cg_thread_coord(struct lower *l, uint32_t layout, uint32_t dim);
/* What register r adds to it. */
struct ir_val cg_reg_coord(struct lower *l, uint32_t layout, uint32_t dim, struct ir_val r);
struct ir_val cg_coord(struct lower *l, uint32_t layout, uint32_t dim, struct ir_val r);
/* Is this thread the one of its copies that writes? true where nothing is replicated. */
struct ir_val cg_is_writer(struct lower *l, uint32_t layout);
/* Is register r of the layout an element of the tile, and not padding? */
struct ir_val cg_inside_tile(struct lower *l, struct ir_type t, uint32_t layout, struct ir_val r);

/* ---- lower_core.c: fragments and resources ---- */

uint32_t cg_new_frag(struct lower *l, const char *name, struct ir_type t, uint32_t layout);
uint32_t cg_frag_elems(const struct lower *l, uint32_t frag);
struct ir_val cg_fget(struct lower *l, uint32_t frag, struct ir_val at);
void cg_fput(struct lower *l, uint32_t frag, struct ir_val at, uint32_t n, const struct ir_val *v);
void cg_ffill(struct lower *l, uint32_t frag, struct ir_val v);
struct ir_val cg_zero_of(struct lower *l, enum dtype t);
uint32_t cg_new_buf(struct lower *l, const char *name, struct ir_type t, int64_t bytes,
                    int64_t align);
/* Elements that one fput writes: whole registers. */
uint32_t cg_put_width(const struct lower *l, uint32_t frag);

/* ---- lower_eval.c: tiles by element ---- */

/* Starts the evaluation of another register: forgets what was computed for the last one. */
void cg_next_reg(struct lower *l);
/* Element r of tile v; `layout` is the layout r counts in (v's own, unless v is free). */
struct ir_val cg_eval(struct lower *l, struct ir_val v, struct ir_val r, uint32_t layout);
/* The element of v that stands at element r of a tile of type t, to which v's dims of 1 grow; r
 * counts in t's layout. */
struct ir_val cg_eval_grown(struct lower *l, struct ir_val v, struct ir_type t, struct ir_val r,
                            uint32_t layout);
/* Elements r .. r + n - 1, for a writer that rounds to v's dtype: a last cast is left to it. */
void cg_eval_run(struct lower *l, struct ir_val v, struct ir_val r, uint32_t layout, uint32_t n,
                 struct ir_val *out);
/* The same for elements r + regs[0] .. r + regs[n - 1]. */
void cg_eval_regs(struct lower *l, struct ir_val v, struct ir_val r, uint32_t layout, uint32_t n,
                  const uint32_t *regs, struct ir_val *out);
/* The layout v is read in by an op that takes it as it is. */
uint32_t cg_layout_of(const struct lower *l, struct ir_val v);
/* Writes all of v into a fragment of its layout. */
/* Does computing v read memory and no fragment, so that a loop over its registers need not be
 * unrolled? The widest access of its loads. */
bool cg_reads_memory_alone(struct lower *l, struct ir_val v, uint32_t *width);
void cg_fill_frag(struct lower *l, uint32_t frag, struct ir_val v, uint32_t layout);
/* v as a fragment of its own, new unless it is one. */
uint32_t cg_materialize(struct lower *l, struct ir_val v, const char *name);
/* Scalars of the scheduled module. */
struct ir_val cg_scalar(struct lower *l, struct ir_val v);
void cg_set_scalar(struct lower *l, struct ir_val v, struct ir_val x);

/* Before an op that reads all of v: with the knob `recompute` compilers forget what they computed
 * of the fragments that v comes from, so that it does not keep a long tile of 16-bit elements
 * widened, or exponentials, from one reader to the next. */
void cg_begin_writer(struct lower *l, struct ir_val v);

/* Lowers one elementwise scalar op over lowered operands. */
struct ir_val cg_scalar_op(struct lower *l, struct ir_op o, const struct ir_val *in);
/* The one op that makes someone compute v, or 0: there are several. */
struct ir_op cg_only_writer(struct lower *l, struct ir_val v);
/* Decides for an elementwise, broadcast, reshape or transpose op: inline or a fragment now. */
void cg_lower_lazy(struct lower *l, struct ir_op o);

/* ---- lower_memory.c ---- */

/* One load or store: its place in the view. */
struct cg_access {
  struct ir_op op;
  uint32_t arg, rank;
  struct ir_type tile;
  int64_t masks[IR_MAX_RANK];
  uint32_t vdim, vec, align;
  const struct cg_view *view;        /* set by open; before bind at the latest */
  struct ir_val offset[IR_MAX_RANK]; /* index scalars */
  struct ir_val rest[IR_MAX_RANK]; /* dims that repeat elements: repeats before the tile's first */
  struct ir_val low[IR_MAX_RANK], high[IR_MAX_RANK]; /* s32: coordinates of the tile in the view */
  struct ir_val base;                                /* pointer to the tile's element 0 */
};
/* Reads the op, but for the view and the offsets. */
struct cg_access cg_access_shape(struct lower *l, struct ir_op o);
/* Reads the op; view and offsets are its lowered operands. */
struct cg_access cg_open_access(struct lower *l, struct ir_op o);
/* Computes base, low and high from the offsets, here. */
void cg_bind_access(struct lower *l, struct cg_access *x);
/* Computes low and high of dim d anew from its offset. */
void cg_bind_edges(struct lower *l, struct cg_access *x, uint32_t d);
/* A layout over some dims of the tile: its dim j is the tile's dims[j]. */
struct cg_place {
  uint32_t layout, rank;
  int dims[IR_MAX_RANK]; /* -1: a unit dim */
  struct ir_val ptr;     /* this thread's element at register 0 */
};
struct cg_place cg_open_place(struct lower *l, const struct cg_access *x, uint32_t layout,
                              uint32_t rank, const int *dims);
struct ir_val cg_place_ptr(struct lower *l, const struct cg_access *x, const struct cg_place *p,
                           struct ir_val r);
/* Is element r inside the tile and the view? */
struct ir_val cg_place_mask(struct lower *l, const struct cg_access *x, const struct cg_place *p,
                            struct ir_val r);
/* `n` elements from ptr on, `other` where mask is false. */
void cg_gload(struct lower *l, struct ir_val ptr, struct ir_val mask, struct ir_val other,
              uint32_t n, struct ir_val *out);
struct ir_val cg_pad_value(struct lower *l, struct ir_op load);
/* A load into registers that waits for who reads it. */
struct cg_delayed {
  struct cg_access x;
  struct cg_place p;
};
/* Loads that v is computed from and that wait: as many registers as `part`, a layout, has, from
 * register `from` on. Until the next such call v can be evaluated there. */
void cg_load_part(struct lower *l, struct ir_val v, uint32_t part, struct ir_val from);
void cg_lower_load(struct lower *l, struct ir_op o);
/* A load of path `direct`: element r; a run of elements is read at once. */
struct ir_val cg_read_element(struct lower *l, struct cg_reading *x, struct ir_val r);
/* Elements that such a load reads in one access. */
uint32_t cg_reading_width(const struct cg_reading *x);
void cg_lower_store(struct lower *l, struct ir_op o);

/* ---- lower_gather.c ---- */
void cg_lower_gather(struct lower *l, struct ir_op o);
void cg_lower_scatter(struct lower *l, struct ir_op o);
void cg_lower_atomic(struct lower *l, struct ir_op o);
/* bool: is this the one thread that does for the block what is to be done once? */
struct ir_val cg_is_first_thread(struct lower *l);

/* ---- lower_smem.c ---- */

/* A buffer for a matrix of outer x inner elements, padding included, times slots. */
struct cg_smem *cg_new_smem(struct lower *l, const char *name, enum dtype t, int64_t outer,
                            int64_t inner, uint32_t slots, uint32_t pipe);
/* Byte offset of element (outer, inner) in slot 0; outer and inner are s32. */
struct ir_val cg_smem_addr(struct lower *l, const struct cg_smem *s, struct ir_val outer,
                           struct ir_val inner);
void cg_sstore(struct lower *l, const struct cg_smem *s, struct ir_val at, struct ir_val mask,
               uint32_t n, const struct ir_val *v);
void cg_sload(struct lower *l, const struct cg_smem *s, struct ir_val at, uint32_t n,
              struct ir_val *out);
uint32_t cg_new_pipe(struct lower *l, uint32_t slots);
void cg_commit(struct lower *l, uint32_t pipe);
void cg_wait(struct lower *l, uint32_t pipe, uint32_t pending);
/* Buffer for a load that feeds dots. */
struct cg_smem *cg_smem_for_load(struct lower *l, struct ir_op load, uint32_t slots, uint32_t pipe);
/* A copy of the tile of a bound access into its buffer, in n steps that each thread takes. */
struct cg_copy {
  struct cg_access x;
  const struct cg_smem *s;
  struct cg_place p;
  int64_t outer, inner; /* of the tile */
  uint32_t width, n;    /* elements of a step, steps */
  bool async;
};
struct cg_copy cg_open_copy(struct lower *l, const struct cg_access *x, const struct cg_smem *s);
/* Step `chunk` into the slot that starts at byte `slot`; nothing happens where mask is false. */
void cg_copy_chunk(struct lower *l, const struct cg_copy *c, struct ir_val slot, struct ir_val mask,
                   struct ir_val chunk);
/* Must its steps be a rolled loop? */
bool cg_is_long_copy(const struct cg_copy *c);
void cg_copy_all(struct lower *l, const struct cg_copy *c, struct ir_val slot, struct ir_val mask);
/* Writes tile v, in registers, into a new matrix for a dot: its dim 0 is outer, dim 1 inner; both
 * are at least the tile's, and what lies beyond along k_dim is zero. */
struct cg_smem *cg_write_operand(struct lower *l, struct ir_val v, const char *name, int64_t outer,
                                 int64_t inner, int k_dim);
/* Zeros in a matrix that holds tile t, its dims outer and inner, from t's end along k_dim on. */
void cg_zero_padding(struct lower *l, const struct cg_smem *s, struct ir_type t, int k_dim);
/* A load outside pipelined loops that feeds dots: buffer, copy, wait. */
void cg_lower_smem_load(struct lower *l, struct ir_op o);

/* ---- lower_cross.c ---- */

/* The same value in another layout (convert), or in another shape (reshape), through shared
 * memory */
void cg_lower_convert(struct lower *l, struct ir_op o);
void cg_lower_extract(struct lower *l, struct ir_op o);
void cg_lower_concat(struct lower *l, struct ir_op o);
/* Writes a tile to shared memory, row-major and packed. */
const struct cg_smem *cg_spill_tile(struct lower *l, struct ir_val v);

/* ---- lower_print.c ---- */
void cg_lower_print(struct lower *l, struct ir_op o);

/* ---- lower_reduce.c, lower_scan.c ---- */
void cg_lower_reduce(struct lower *l, struct ir_op o);
void cg_lower_scan(struct lower *l, struct ir_op o);
/* The dtype that values of dtype t are summed or compared in. */
enum dtype cg_fold_type(enum dtype t);
/* Fragment `from` as one of type t: rounded once; where `wraps`, integers modulo their width, where
 * a cast would saturate. */
uint32_t cg_narrow_sums(struct lower *l, uint32_t from, struct ir_type t, bool wraps);

/* ---- lower_bits.c ---- */

/* Element r of a bitcast. */
struct ir_val cg_eval_bitcast(struct lower *l, struct ir_op o, struct ir_val r, uint32_t layout);
/* Of a scalar: as wide as it. */
struct ir_val cg_bitcast(struct lower *l, struct ir_val v, enum dtype to);

/* ---- lower_dot.c, lower_dot_mma.c, lower_dot_fma.c ---- */

/* A dot ready to be issued: accumulator fragment, operands in shared memory. */
struct cg_dot {
  struct ir_op op;
  int64_t m, n, k;
  struct cg_warps w;
  uint32_t acc; /* fragment */
  uint32_t acc_layout;
  const struct ir_mma *mma; /* NULL: multiply-adds */
  struct cg_mma_atom atom;
  bool splits;   /* tf32x3 */
  bool promotes; /* each instruction's sum is added by itself */
  const struct cg_smem *x[2];
  struct ir_val slot[2];    /* byte offset of the slot of each */
  bool k_inner[2];          /* is the operand's contiguous dim k? */
  uint32_t frag[2], low[2]; /* operand fragments, and of what tf32 cuts off; made by *_open */
  uint32_t part;            /* promotes: the sum of one instruction, the same */
  struct ir_val thread_offset[2][4];
};
void cg_lower_dot(struct lower *l, struct ir_op o);
/* Operands: written to shared memory where they are computed. */
void cg_open_dot(struct lower *l, struct ir_op o, struct cg_dot *d);
/* Operands as loaded: the slots they are in now. */
void cg_move_dot(struct lower *l, struct cg_dot *d);
/* The accumulator's fragment, which is the result's. */
void cg_take_acc(struct lower *l, struct cg_dot *d);
void cg_dot_mma(struct lower *l, struct cg_dot *d);
void cg_dot_fma(struct lower *l, struct cg_dot *d);
/* The parts of an mma dot, for loops that load ahead. */
uint32_t cg_mma_steps(const struct cg_dot *d);
void cg_mma_open(struct lower *l, struct cg_dot *d);
void cg_mma_load(struct lower *l, const struct cg_dot *d, struct ir_val step);
void cg_mma_issue(struct lower *l, const struct cg_dot *d, struct ir_val step);
/* Issues a step while the fragments of another one are loaded and, if c is given, a tile is
 * copied. */
struct cg_overlap {
  const struct cg_copy *c;
  struct ir_val slot, mask;
};
void cg_mma_overlap(struct lower *l, const struct cg_dot *d, struct ir_val step, struct ir_val next,
                    const struct cg_overlap *o);

void cg_dot_wgmma(struct lower *l, struct ir_op o);
/* The fragment the dot accumulates into: its operand's, where no one else reads that. */
uint32_t cg_open_acc(struct lower *l, struct ir_op o);
/* Is v a tile of zeros? */
bool cg_is_zero_tile(const struct lower *l, struct ir_val v);

/* ---- lower_roles.c: kernels with a producer ---- */

/* Loads whose slots are filled and emptied together. */
struct cg_feed {
  struct ir_block block;    /* scheduled */
  uint32_t pipe, cursor[2]; /* resources; cursors of producer, consumer */
  uint32_t slots;
  uint32_t n_loads, n_seen; /* loads in it; of these, lowered on the way through the block */
  struct ir_op first, last; /* what reads its slots first and last, in that block: a dot, an op that
                               holds dots, or the load itself: read into registers */
  bool shared;              /* by the blocks of the cluster: some load is */
};

struct cg_unit_load {
  struct ir_op load;
  struct cg_box box;
  struct cg_smem *smem;
  uint32_t tmap, feed; /* resource; index into feeds */
  struct ir_op store;  /* path `staging`: whose panels it lands in; else 0 */
  bool to_regs;        /* others than dots read it: it goes on to registers */
  bool shared;         /* each block of the cluster loads a share, for all */
  bool streamed;       /* leaves L2 first */
  struct cg_share share;
};

struct cg_roles {
  uint32_t groups;            /* consumer warpgroups */
  struct ir_val group;        /* this thread's, s32 */
  struct ir_val one;          /* bool: the first thread of its warpgroup */
  struct ir_val first, leads; /* bool: the block's first thread; the producer's */
  uint32_t group_bar;         /* named barriers of a consumer warpgroup each */
  uint32_t store_groups;      /* boxes that the tensor memory unit stores of a tile, if each store
                              runs once for it; else 0 */
  bool stores;                /* ... stores any */
  uint32_t *order, n_ordered; /* per op of the scheduled module: its number in a walk */
  int64_t blocks;             /* of a cluster */
  uint32_t axis;              /* of the grid, along which their tiles lie */
  struct ir_val rank;         /* of this block in its cluster, s32 */
  struct ir_val in_group;     /* this thread in its warpgroup, s32 */
  struct ir_op parted;        /* the loop that they share at one tile, or 0 */
  struct ir_val part_start;   /* its first index in this block */
  struct ir_val turn;         /* s32: 0 or 1, from tile to tile */
  struct ir_val thread;       /* s32: of the block */
  struct ir_val panel_at;     /* in a store: offset of the panel at hand, s32 */
  struct ir_val has_tile;     /* bool: is this block's tile inside the grid? 0: always */
  VEC(struct cg_feed) feeds;
  VEC(struct cg_unit_load) loads;
};
/* Lowers the body: tile by tile, the consumers' code and the producer's. */
void cg_lower_roles(struct lower *l, struct ir_block body);
/* pass_lower_machine.c: the body's arguments, for tile `id` of the grid (s32). */
void cg_bind_entry(struct lower *l, struct ir_block entry, struct ir_val id);
/* Tiles along an axis of the grid; of clusters, where theirs lie along it. */
struct expr cg_grid_size(struct lower *l, uint32_t axis);
/* a / b, both s32 and a not negative, b positive. */
struct ir_val cg_quotient(struct lower *l, struct ir_val a, struct ir_val b);
struct cg_unit_load *cg_unit_load_of(struct lower *l, struct ir_op load);
/* A consumer comes to a load: waits for its slot. */
void cg_consume_load(struct lower *l, struct ir_op load);
/* Consumers have done with the slots that op `last` is the last to read: with this iteration's, or
 * (behind = 1) those of the one before. */
void cg_release_feeds(struct lower *l, struct ir_op last, bool behind, struct ir_val cond);
/* They go on to the next slots. */
void cg_advance_feeds(struct lower *l, struct ir_op last);
/* Code where cond, a bool, holds: between these two calls. */
struct ir_builder cg_enter_if(struct lower *l, struct ir_val cond);
void cg_leave_if(struct lower *l, struct ir_builder saved);
/* An op on resources, without results. */
struct ir_op cg_res_op(struct lower *l, enum ir_opcode o, uint32_t n_res, const uint32_t *res,
                       uint32_t n_in, const struct ir_val *in);
/* Stays the dot in flight at the end of its loop's iteration: does nobody but the next one use its
 * result there? */
bool cg_is_deferred(struct lower *l, struct ir_op dot);
/* After a loop: waits for the dots it left in flight; `ran`: did it run at all? */
void cg_settle_dots(struct lower *l, struct ir_block body, struct ir_val ran);

/* ---- lower_parts.c: blocks of a cluster that share a loop ---- */

/* Blocks that share the op's iterations; 1: it is no such loop. */
int64_t cg_loop_parts(const struct ir_module *m, struct ir_op o);
/* From the loop's bounds to those of this block's part. */
void cg_cut_bounds(struct lower *l, struct ir_op loop, struct ir_val bounds[3]);
/* All threads of the cluster meet, and know what the others wrote into their memory. */
void cg_meet_parts(struct lower *l);
/* Behind the loop: adds up the accumulators in block 0, and stays in the branch that is its. */
struct ir_builder cg_join_parts(struct lower *l, struct ir_op loop);

/* ---- lower_box.c, lower_panels.c: the tensor memory unit ---- */

/* A map of boxes of `rows` rows of a tile of type t. */
uint32_t cg_new_tmap(struct lower *l, const struct cg_box *b, struct ir_type t, int64_t rows,
                     bool tf32);
struct cg_smem *cg_new_panels(struct lower *l, const char *name, enum dtype t, int64_t outer,
                              int64_t inner, uint32_t swizzle, uint32_t slots);
/* Reads a tile that lies in panels, in slot offset `slot`, into a new fragment of the layout. */
uint32_t cg_read_panels(struct lower *l, const struct cg_smem *s, struct ir_val slot,
                        struct ir_type t, uint32_t layout);
/* Writes a tile, in registers, into panels of its own as the unit lays them out, its dim 1
 * adjacent, when the matrix unit has read what was there; that may read it when this is done. */
struct cg_smem *cg_write_panels(struct lower *l, struct ir_val v, const char *name);
/* Loads all boxes of the tile into the producer's slot. */
void cg_load_boxes(struct lower *l, const struct cg_unit_load *x);
void cg_store_boxes(struct lower *l, struct ir_op o);
/* A load that lands in its store's panels: their memory and its tensor map; what the producer does;
 * and the panel at hand of a consumer's store, in a fragment of layout `part`. */
void cg_open_landing(struct lower *l, struct cg_unit_load *x);
void cg_load_landing(struct lower *l, const struct cg_unit_load *x);
uint32_t cg_read_landed(struct lower *l, const struct cg_unit_load *x, uint32_t part);
/* Boxes that a warpgroup stores for it. */
uint32_t cg_store_box_count(struct lower *l, struct ir_op o);

/* ---- lower_control.c, lower_loop.c ---- */
void cg_lower_block(struct lower *l, struct ir_block b); /* without its terminator */
void cg_lower_op(struct lower *l, struct ir_op o);
void cg_lower_for(struct lower *l, struct ir_op o);
void cg_lower_if(struct lower *l, struct ir_op o);
void cg_lower_while(struct lower *l, struct ir_op o);

/* Values of the scheduled module that a loop carries: fragments for tiles, scalars. */
struct cg_carried {
  uint32_t n, n_scalars;
  const struct ir_val *inits, *args, *results, *yields; /* n each */
  uint32_t *frag;                                       /* per value, 0 for scalars */
  struct ir_val *scalars;                               /* n_scalars: lowered initial values */
};
struct cg_carried cg_carried_of_for(struct lower *l, struct ir_op o);
/* Fragments and lowered initial values. */
void cg_open_carried(struct lower *l, struct ir_op user, struct cg_carried *c);
/* Says that `values` (n) are the fragments and, in order, the scalars given. */
void cg_bind(struct lower *l, const struct cg_carried *c, const struct ir_val *values,
             const struct ir_val *scalars);
/* Stores what a block yields into fragments; lowered scalars go to `out`. Returns their number. */
uint32_t cg_put_yields(struct lower *l, uint32_t n, const struct ir_val *yields,
                       const uint32_t *frag, struct ir_val *out);
struct ir_builder cg_enter_block(struct lower *l, struct ir_block b);
void cg_leave_block(struct lower *l, struct ir_builder saved, enum ir_opcode end, uint32_t n,
                    const struct ir_val *v);
/* A machine loop; its index and carried scalars. */
struct ir_op cg_open_for(struct lower *l, const struct ir_val bounds[3], uint32_t n,
                         const struct ir_val *inits, struct ir_val *index, struct ir_val *args);
/* false: the loop has no pipe. */
bool cg_lower_pipelined_for(struct lower *l, struct ir_op o);

/* ---- lower_recipe.c ---- */
/* Bytes of a scratch argument, rounded up so that another may follow. */
struct expr cg_scratch_bytes(struct ir_module *m, uint32_t arg);
void cg_fill_recipe(struct lower *l, struct expr tiles);

#endif
