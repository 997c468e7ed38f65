/* Private to ir/interp*.c: how a run is held.
 *
 * Every value but a view lives in a slot: a buffer of cells (cells.h), row-major, allocated once a
 * run. Slots whose values are never live together share a buffer (interp_plan.c). */
#ifndef KILN_IR_INTERP_IMPL_H
#define KILN_IR_INTERP_IMPL_H

#include "ir/cells.h"
#include "ir/merge.h"
#include "ir/passes.h"

/* Who touched an element, for race checks. Programs count from 1; 0: nobody. Where programs order
 * each other (interp_race.c), it is parts of programs that are counted. As programs run one
 * after the other, the last writer, the first reader and the first to change it atomically are
 * enough: whoever conflicts with another conflicts with one of these. */
struct shadow {
  uint32_t writer, writer_op;
  uint32_t reader, reader_op;
  uint32_t atomic, atomic_op;
  uint32_t scatter; /* serial of the last scatter that wrote it */
};
#define SHADOW_PAGE      1024
#define INTERP_MAX_RACES 8 /* reported one by one; more are only counted */

/* A tensor argument as bound for the run. */
struct interp_bound {
  struct interp_tensor t;
  bool stored;               /* some op stores to it */
  bool tracked;              /* its elements have shadows */
  bool unset;                /* and hold nothing until they are written */
  bool watched;              /* opt.watch is about one of its elements */
  struct map pages;          /* element offset / SHADOW_PAGE -> index + 1 into page */
  VEC(struct shadow *) page; /* arena memory */
  int64_t last_key;          /* the page found last */
  struct shadow *last_page;  /* NULL: none yet */
};

/* A view: which element of a tensor argument each coordinate stands for. Coordinate x of a dim is
 * ((x + phase) / div) * stride elements from `base`; those outside of [lo, hi) are out of range.
 * `base` is that of coordinates that may be out of range themselves: it wraps. */
struct interp_view_dim {
  int64_t size;   /* up to INTERP_MAX_EXTENT */
  int64_t lo, hi; /* within 0..size; lo >= hi: none */
  int64_t stride;
  int64_t div, phase; /* phase within 0..div-1 */
};
#define INTERP_MAX_EXTENT (INT64_C(1) << 62)

enum interp_fault { VIEW_OK, VIEW_COUNT, VIEW_SPLIT, VIEW_OUTSIDE, VIEW_TOO_LONG };

struct interp_view {
  uint32_t arg; /* module argument */
  uint32_t rank;
  bool empty; /* no coordinate is in range, whatever the dims say */
  uint64_t base;
  struct interp_view_dim dim[IR_MAX_RANK];
  /* The op that could not make a view of its operands, and why; reported where an access needs
   * it. */
  struct ir_op faulty;
  enum interp_fault fault;
  int64_t fault_at[2]; /* numbers for the message */
};

/* Element offset of a coordinate that is in range, without the base. */
static inline uint64_t interp_view_step(const struct interp_view_dim *d, int64_t x) {
  uint64_t q = (uint64_t)x + (uint64_t)d->phase;
  return (d->div == 1 ? q : q / (uint64_t)d->div) * (uint64_t)d->stride;
}

/* A loop that runs in parts. saved: a copy of the carried values per level of nested parts, as
 * bytes. */
#define INTERP_CUT_DEPTH 3
struct interp_cut {
  struct ir_merge how;
  char *saved[INTERP_CUT_DEPTH];
};

struct interp {
  const struct ir_module *m;
  struct interp_options opt;
  struct diag_sink *diags;
  struct arena *arena;
  struct interp_bound *bound; /* by module argument */
  int64_t *dims;              /* by module dim */
  bool *dim_known;

  /* Plan */
  uint32_t *slot;    /* by value: 1-based slot, 0 for views */
  uint32_t *view_at; /* by value: index into `views` */
  struct interp_view *views;
  uint32_t n_views;
  uint32_t *last_use; /* by value: the op of its own block that uses it last, 0 if none */
  void **buf;         /* by slot */
  size_t *buf_bytes;
  uint32_t n_slots;
  size_t scratch_bytes; /* what the neediest op wants */
  void *scratch;

  /* Algebraic domain, by value: is it the same constant whenever it is made? */
  struct ir_constant *constant;
  bool *is_constant;

  /* Loops that run in parts (cut_seed), and by op of theirs: index + 1 into it */
  struct interp_cut *cuts;
  uint32_t n_cuts;
  uint32_t *cut_of;
  uint64_t cut_state;

  /* The program that runs */
  int64_t grid[IR_MAX_GRID], at[IR_MAX_GRID];
  uint32_t program;           /* 1-based serial for shadows */
  struct interp_order *order; /* NULL: no atomic orders programs */
  uint32_t scatter;           /* the same of scatters */
  uint32_t depth;             /* of loops, and which iteration the outer ones are at */
  int64_t iteration[INTERP_WATCH_LOOPS];
  int64_t watched_at; /* element that opt.watch is about */
  uint64_t steps, work, poll_at;
  uint64_t n_races, n_unwritten;
  uint32_t unwritten_by[INTERP_MAX_RACES]; /* ops that were reported to read unwritten elements */
  bool stopped;                            /* an error was reported: unwind */

  /* Threads: programs run one by one if `serial`. Of a worker: its team, whether it is the thread
   * that called, and the steps that the team knows of. */
  bool serial, is_caller;
  struct interp_team *team;
  uint64_t steps_told;
};

/* The kind of cell for a dtype in the run's domain. */
static inline enum cell cell_of(const struct interp *in, enum dtype t) {
  return cell_kind(in->opt.domain, t);
}
static inline enum dtype val_dtype(const struct interp *in, struct ir_val v) {
  return (enum dtype)ir_value_at(in->m, v)->type.dtype;
}
static inline enum cell val_cell(const struct interp *in, struct ir_val v) {
  return cell_of(in, val_dtype(in, v));
}
/* Elements of a value: 1 for a scalar or a view. */
static inline size_t val_elems(const struct interp *in, struct ir_val v) {
  const struct ir_type *t = &ir_value_at(in->m, v)->type;
  size_t n = 1;
  if (t->kind == IR_VIEW)
    return 1;
  for (uint32_t k = 0; k < t->rank; k++)
    n *= (size_t)t->dim[k];
  return n;
}
/* An attribute of the op, or NULL. */
static inline const struct ir_attr *interp_attr(const struct ir_opnode *op, enum ir_attr_key key) {
  for (uint32_t k = 0; k < op->n_attrs; k++)
    if (op->attrs[k].key == key)
      return &op->attrs[k];
  return NULL;
}
static inline void *val_buf(const struct interp *in, struct ir_val v) {
  return in->buf[in->slot[v.id]];
}
static inline int64_t val_int(const struct interp *in, struct ir_val v) {
  return *(const int64_t *)val_buf(in, v);
}

static inline struct interp_view *val_view(const struct interp *in, struct ir_val v) {
  return &in->views[in->view_at[v.id]];
}

/* interp_plan.c: gives every value its slot. */
void interp_plan(struct interp *in);

/* interp.c: runs program number i of n; at the end look at `stopped`. note_watched: the op writes a
 * cell of its value to an element of the watched argument. */
void interp_run_program(struct interp *in, uint64_t i, uint64_t n);
void interp_note_watched(struct interp *in, struct ir_op o, int64_t element, int64_t cell);

/* interp_threads.c. prepare: which kernels run serially. run: programs [first, n) over threads, if
 * that pays; true if they are done (or `stopped`: interrupted), false: run them one by one, nothing
 * has changed. poll: of a worker, from time to time. */
void interp_threads_prepare(struct interp *in);
bool interp_run_parallel(struct interp *in, uint64_t first, uint64_t n);
void interp_team_poll(struct interp *in, struct ir_op o);

/* interp_bind.c: dims, shapes, facts, grid. False after an error. */
bool interp_bind(struct interp *in, const struct interp_arg *args, uint32_t n_args);

/* interp_cut.c: finds the loops that may be cut, in a copy of the module that has a merge op behind
 * each; prepare, after the plan: memory. exec: runs such a loop, its bounds given. */
void interp_cut_begin(struct interp *in);
void interp_cut_prepare(struct interp *in);
void interp_cut_exec(struct interp *in, struct ir_op o, struct interp_cut *cut, int64_t lo,
                     int64_t hi, int64_t step);

/* interp_exec.c: to[k] = from[k] for all k at once; values of the block that ends here are dying:
 * they may change places with the targets. */
void interp_move(struct interp *in, uint32_t n, const struct ir_val *from, const struct ir_val *to,
                 struct ir_block dying);
void interp_move_yielded(struct interp *in, struct ir_block b, uint32_t skip,
                         const struct ir_val *to);
/* One block, its terminator included; look at `stopped` after it. */
void interp_exec_block(struct interp *in, struct ir_block b);
/* Runs the body once for in->at; false when the run must stop. An op without an
 * entry in the table cannot be interpreted. */
bool interp_exec_body(struct interp *in);
bool interp_has_op(enum ir_opcode opcode);

/* interp_elem.c: elementwise ops (select, comparisons, bits and math among them) and cast. */
void interp_elem(struct interp *in, const struct ir_opnode *op);
void interp_cast(struct interp *in, const struct ir_opnode *op);
struct int_range {
  int64_t lo, hi;
};
struct int_range interp_int_range(enum dtype t);

/* interp_algebra.c: what the algebraic domain does with payloads. begin: refuses a module with an
 * op that has no rule there (the unit test of the table fails too), finds constants. elem: where
 * the last operand is a float; cast: where a float comes in or out. reduce: x is [n, inner], o
 * [inner]. */
bool interp_algebra_has_rule(enum ir_opcode opcode);
bool interp_algebra_begin(struct interp *in);
void interp_algebra_elem(struct interp *in, const struct ir_opnode *op);
void interp_algebra_cast(struct interp *in, const struct ir_opnode *op);
void interp_algebra_reduce(enum ir_opcode opcode, size_t n, size_t inner, const int64_t *x,
                           int64_t *o);
/* Running sums of n payloads, `step` cells apart. */
void interp_algebra_scan(size_t n, size_t step, const int64_t *x, int64_t *o);

/* interp_shape.c: constants, shapes, reductions, dot. */
void interp_const(struct interp *in, const struct ir_opnode *op);
void interp_splat(struct interp *in, const struct ir_opnode *op);
void interp_iota(struct interp *in, const struct ir_opnode *op);
void interp_broadcast(struct interp *in, const struct ir_opnode *op);
void interp_reshape(struct interp *in, const struct ir_opnode *op); /* item, convert too */
void interp_transpose(struct interp *in, const struct ir_opnode *op);
void interp_reduce(struct interp *in, const struct ir_opnode *op);
void interp_dot(struct interp *in, const struct ir_opnode *op);
size_t interp_dot_scratch(const struct interp *in, const struct ir_opnode *op);
size_t interp_reduce_scratch(const struct interp *in, const struct ir_opnode *op);

/* interp_fold.c: reductions of masks, positions of extremes, running sums. */
void interp_mask_reduce(struct interp *in, const struct ir_opnode *op);
void interp_arg_reduce(struct interp *in, const struct ir_opnode *op);
void interp_scan(struct interp *in, const struct ir_opnode *op);

/* interp_part.c: parts of tiles, tiles of parts, bits, random numbers. */
void interp_extract(struct interp *in, const struct ir_opnode *op);
void interp_concat(struct interp *in, const struct ir_opnode *op);
void interp_bitcast(struct interp *in, const struct ir_opnode *op);
void interp_random(struct interp *in, const struct ir_opnode *op);

/* interp_view.c: views of arguments and the ops on views. view_ok: false after reporting that the
 * view that an access needs could not be made. */
void interp_set_view(struct interp *in, struct ir_val v, uint32_t arg);
void interp_view_op(struct interp *in, struct ir_op o);
bool interp_view_ok(struct interp *in, struct ir_op o, const struct interp_view *v);

/* interp_mem.c. pad: the op's attribute, or 0, in n cells. note: checks of an element; repeated:
 * the scatter that runs wrote it before; atomic: reads if its result depends on what was there. */
void interp_fill_pad(const struct interp *in, struct ir_op o, enum dtype t, size_t n, void *out);
/* Order between programs, made by atomics that say so: once a run where there are some; as each
 * program starts; behind each such atomic at an element. */
void interp_order_begin(struct interp *in);
void interp_order_program(struct interp *in);
void interp_order_sync(struct interp *in, const struct interp_bound *b, int64_t element);
void interp_note_read(struct interp *in, struct ir_op o, struct interp_bound *b, int64_t element);
void interp_note_write(struct interp *in, struct ir_op o, struct interp_bound *b, int64_t element);
void interp_note_atomic(struct interp *in, struct ir_op o, struct interp_bound *b, int64_t element,
                        bool reads);
void interp_note_repeated(struct interp *in, struct ir_op o, struct interp_bound *b,
                          int64_t element);
void interp_load(struct interp *in, struct ir_op o);
void interp_store(struct interp *in, struct ir_op o);

/* interp_gather.c: elements at indices. */
void interp_gather(struct interp *in, struct ir_op o);
void interp_scatter(struct interp *in, struct ir_op o);
void interp_atomic(struct interp *in, struct ir_op o);

/* interp_text.c: messages and printed values. report: at the op, naming the program, with its call
 * stack as notes; fail: the same, and the run stops. */
void interp_fail(struct interp *in, struct ir_op o, enum diag_id id, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void interp_report(struct interp *in, struct ir_op o, enum diag_id id, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void interp_assert(struct interp *in, struct ir_op o);
void interp_print(struct interp *in, struct ir_op o);

#endif
