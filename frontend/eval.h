/* The evaluator's own data: what eval_*.c and region_*.c share. Nothing outside of them (and
 * lua_host.c) includes this.
 *
 * Activations of kernel functions are laid out on the Lua stack one above the other, inside the C
 * frame of the `tramp` that was entered last: an activation's slot i is stack position base + i,
 * temporaries lie above. Activation records are chained and reused, never on the C stack: a
 * `__close` function that runs while an error unwinds still sees its (dead) callers.
 *
 * Stamps: `serial` counts regions opened. What is born (a slot, a box, a table) is stamped with it;
 * "born outside region r" is stamp < r.serial. `logged` is the serial of the innermost region that
 * holds a journal entry for the slot; entries remember the former value, so that closing a
 * region brings it back. */
#ifndef KILN_FRONTEND_EVAL_H
#define KILN_FRONTEND_EVAL_H

#include "base/map.h"
#include "frontend/ast.h"
#include "frontend/stage.h"

#include <locale.h>
struct fe_stamp {
  uint32_t born, logged;
};

/* A variable that closures hold and somebody assigns: a userdata with its value in user value 1. */
struct fe_box {
  struct fe_stamp stamp;
  uint32_t seq; /* order of creation */
  const struct fe_var *var;
};

struct fe_act {
  const struct fe_func *func;
  struct fe_act *up, *down;   /* caller; record to reuse for the next call */
  const struct fe_node *node; /* what is being done */
  int base;                   /* stack position of slot 0 */
  int closure;      /* stack position of the function, or 0: it is the running C function */
  int va, n_va;     /* all arguments, for `...` */
  uint32_t stamps;  /* its slots in fe_state.stamps */
  uint32_t callers; /* interned stack of callers; valid if has_callers */
  bool has_callers;
  const struct fe_node *stack_node; /* node that `stack` was interned for */
  uint32_t stack;
  bool from_c; /* called by a C function: the caller's node says nothing about the call */
};

/* What journal entries, changes and carried variables are about. */
enum fe_place_kind {
  FE_AT_LOCAL, /* slot of the region's activation */
  FE_AT_BOX,   /* a captured variable */
  FE_AT_FIELD, /* table[key] */
  FE_AT_META,  /* a table's metatable */
};

struct fe_entry {
  enum fe_place_kind kind;
  uint32_t slot;   /* LOCAL */
  uint32_t former; /* BOX, LOCAL: stamp.logged before; FIELD, META: 1 + entry before, or 0 */
  const struct fe_var *var; /* LOCAL, BOX */
  const void *object;       /* BOX: its fe_box; FIELD, META: the table */
  uint64_t hash;            /* FIELD: of the key */
  struct diag_loc loc;      /* of the write */
};

/* A slot that a region changed. Its Lua values are in a table: container, key, old, new at
 * 4 * value + 1 ... + 4. */
struct fe_change {
  struct fe_entry at;
  int value;
};

struct fe_changes {
  VEC(struct fe_change) list;
  int values; /* stack position of that table (nil while the list is empty) */
};

/* A slot that a device loop carries from one iteration to the next, or would have to. */
enum fe_carry_state { FE_CARRY_TYPED, FE_CARRY_UNKNOWN, FE_CARRY_UNDEF };
struct fe_carry {
  struct fe_change place;
  enum fe_carry_state state;
  struct fe_type type;        /* TYPED */
  const char *before, *after; /* UNDEF: why it cannot be read in the body, after the loop */
  const char *grown;          /* the same for the length of the table */
  bool own;                   /* BOX: a variable of the function that the loop is in */
};

/* What a device loop settled with, for the same loop in the next pass of the loop around it. */
struct fe_settled {
  const struct fe_node *node;
  VEC(struct fe_carry) carried;
  int values; /* index in the registry's table of settled values, 0 = none */
  VEC(struct fe_settled *) inner;
};

struct fe_region_state {
  struct fe_region pub; /* first: a fe_region* is one of these */
  struct fe_region_state *up;
  struct fe_act *act;               /* whose code opened it */
  uint32_t journal;                 /* entries before it */
  size_t out;                       /* bytes of printed text before it */
  uint32_t n_inner;                 /* LOOP: device loops begun directly inside */
  struct fe_settled *record;        /* LOOP: filled by device loops opened directly inside */
  const struct fe_settled *inherit; /* LOOP: record of the former pass, or NULL */
};

/* The undefined value: which read is an error, and why. */
struct fe_undef {
  struct fe_dev dev; /* kind FE_DEV_UNDEF */
  const char *reason;
  const char
      *grown; /* reason to give when the length of the table around it is asked for, or NULL */
  bool reported;
};

enum fe_signal { FE_GO_ON, FE_GO_BREAK, FE_GO_GOTO, FE_GO_RETURN };

struct fe_stack_entry {
  struct diag_loc loc;
  uint32_t up;
};

struct fe_file_entry {
  const char *name, *text;
  size_t n;
  struct fe_func *func;
};

enum fe_fatal { FE_NOT_FATAL, FE_FATAL_DIAG, FE_FATAL_MEMORY };

struct fe_state {
  lua_State *L;
  struct fe_host host;
  const struct fe_tracer *tracer;
  struct fe_lib_host lib;

  /* running */
  struct fe_act *act;      /* innermost activation, or NULL */
  struct diag_loc idle_at; /* the place of errors where no Lua runs */
  /* The DSL function that is running, and the call it was made by; name NULL: none. */
  const char *calling;
  const struct fe_act *calling_act;
  const struct fe_node *calling_node;
  struct fe_act *first_act;  /* head of the chain of records */
  int32_t fuel;              /* steps before the next look at the limits */
  int64_t steps;             /* left after the fuel */
  double deadline;           /* of the monotonic clock, seconds */
  const char *stack_checked; /* no C frame below this address has room that was checked */
  const char *stack_base;
  int n_ret;                     /* FE_GO_RETURN: values on top */
  const struct fe_node *leaving; /* BREAK, GOTO, RETURN: the statement */
  struct diag_loc returned_at;   /* the RETURN of the function that returned last */
  const struct fe_label *label;
  VEC(int) closers; /* stack positions of to-be-closed variables of open blocks */
  uint32_t n_undef; /* undefined values made in this trace: 0 = nothing to look for */
  uint32_t n_boxes;

  /* regions */
  struct fe_region_state *top, *free_regions;
  uint32_t serial;
  VEC(struct fe_entry) journal; /* in the trace arena */
  struct fe_stamp *stamps;      /* from mem */
  uint32_t n_stamps, cap_stamps;
  struct map births; /* tables born in regions -> stamp */
  bool has_births;
  bool has_index;  /* the index table is not empty */
  int journal_ref; /* registry: table of (container, key, old) per entry */
  int settled_ref; /* registry: list of value tables of settled loops */
  int n_settled;
  int index_ref;           /* registry: table -> key -> newest entry + 1 */
  struct fe_undef unknown; /* only its fe_dev is looked at */
  char *out;               /* printed text that waits for its region; from mem */
  size_t n_out, cap_out;
  int gc_floor; /* KiB after the last full collection */
  bool gc_stopped;

  /* errors */
  enum fe_fatal fatal;
  bool final_error; /* the error on its way has its place already */
  bool broken;      /* unwinding ran out of memory: nothing works any more */
  bool over_limit, host_failed;
  uint32_t first_diag;  /* diagnostics before this fe_protect */
  uint32_t n_errors;    /* errors of this fe_protect */
  uint32_t error_stack; /* where the latest Lua error came from */
  bool running;         /* inside fe_protect */

  /* memory */
  struct mem_alloc mem; /* counts */
  locale_t c_locale;    /* Lua code runs in it: a decimal point is a point */
  size_t used, used_top;
  struct arena arena, trace;
  struct arena_mark trace_mark;
  struct oom_trap trap;
  struct fe_names names;
  VEC(struct fe_file_entry) files;
  VEC(struct fe_stack_entry) stacks;
  struct map stack_index;
};

static inline int fe_slot_index(const struct fe_act *A, const struct fe_var *v) {
  return A->base + (int)v->slot;
}

/* A stack check that costs a load and a compare: one in so many bytes of C stack is a real one. */
void fe_check_stack(struct fe_state *fe);
static inline void fe_enter(struct fe_state *fe) {
  if ((const char *)__builtin_frame_address(0) < fe->stack_checked)
    fe_check_stack(fe);
}
void fe_refuel(struct fe_state *fe);
static inline void fe_step(struct fe_state *fe) {
  if (--fe->fuel < 0)
    fe_refuel(fe);
}

/* ---- eval_expr.c ---- */

enum fe_truth { FE_IS_FALSE, FE_IS_TRUE, FE_IS_STAGED };

/* Pushes the value of an expression. */
void fe_eval(struct fe_state *fe, struct fe_act *A, const struct fe_node *n);
/* Pushes `want` values of a list, or all (want -1); returns how many. */
int fe_eval_list(struct fe_state *fe, struct fe_act *A, struct fe_node *const *list, uint32_t n,
                 int want);
/* Truth of an expression; FE_IS_STAGED leaves the mask on the stack, else nothing. `warn`: the
 * expression is a whole condition. */
enum fe_truth fe_eval_truth(struct fe_state *fe, struct fe_act *A, const struct fe_node *n,
                            bool warn);
/* table[key] = value for a target whose table (and key) are at `at` (and at + 1), value on top;
 * pops the value. */
void fe_store_index(struct fe_state *fe, struct fe_act *A, const struct fe_node *target, int at);

/* ---- eval_stat.c ---- */

enum fe_signal fe_exec_block(struct fe_state *fe, struct fe_act *A, const struct fe_node *block);
/* The value on top (popped) becomes that of a freshly declared variable, or is assigned to one. */
void fe_declare(struct fe_state *fe, struct fe_act *A, const struct fe_var *v);
void fe_assign_local(struct fe_state *fe, struct fe_act *A, const struct fe_var *v);
/* Assigns to the box at stack index idx (may be a pseudo-index). */
void fe_assign_box(struct fe_state *fe, int idx);
enum fe_signal fe_exec_arms(struct fe_state *fe, struct fe_act *A, const struct fe_node *n,
                            uint32_t arm);

/* ---- eval_call.c ---- */

int fe_tramp(lua_State *L);
/* Calls the function at `at` with everything above it; leaves `want` results (-1: all) from `at`
 * on, returns how many. */
int fe_do_call(struct fe_state *fe, struct fe_act *A, const struct fe_node *n, int at, int want);
void fe_push_function(struct fe_state *fe, struct fe_act *A, const struct fe_func *f);
struct fe_act *fe_push_act(struct fe_state *fe, const struct fe_func *f);
/* lua_pcall as Lua's pcall: see fe_lib_host.protect. */
bool fe_pcall(struct fe_state *fe, int nargs, int handler);
void fe_start_limits(struct fe_state *fe);

/* ---- eval_error.c ---- */

/* A Lua error (a value, pcall catches it) at a node of the running function. */
_Noreturn void fe_lua_error(struct fe_state *fe, const struct fe_node *n, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* "attempt to <what> a nil value (local 'x')": names the operand when it can. */
_Noreturn void fe_operand_error(struct fe_state *fe, const struct fe_act *A,
                                const struct fe_node *at, const struct fe_node *operand, int idx,
                                const char *what);
/* "number (local 'x') has no integer representation". */
_Noreturn void fe_no_integer(struct fe_state *fe, const struct fe_node *at,
                             const struct fe_node *operand);
struct diag_loc fe_node_loc(const struct fe_act *A, const struct fe_node *n);
/* Passes on what must not be caught. */
_Noreturn void fe_rethrow(struct fe_state *fe);
/* Message handler of every protected call. Upvalue 1: the Lua handler to call after, or nil. */
int fe_on_error(lua_State *L);
void fe_push_where(struct fe_state *fe, int level);
/* Reports an uncaught Lua error, whose value is on top. */
void fe_report_uncaught(struct fe_state *fe);
/* Reports the running out of memory or over the memory limit, once. */
void fe_report_memory(struct fe_state *fe);
void fe_report_at(struct fe_state *fe, enum diag_severity sev, enum diag_id id, struct diag_loc loc,
                  const char *fmt, va_list ap);

/* ---- region.c ---- */

struct fe_region_state *fe_region_open(struct fe_state *fe, struct fe_act *A,
                                       enum fe_region_kind kind, const struct fe_node *n);
/* Undoes what the innermost region changed; if out is given, pushes the table of values (or nil)
 * and fills in the changes. Then fe_region_pop takes the region off the stack; it stays valid until
 * fe_region_free. */
void fe_region_undo(struct fe_state *fe, struct fe_changes *out);
void fe_region_pop(struct fe_state *fe, bool keep);
/* Both. */
void fe_region_close(struct fe_state *fe, bool keep, struct fe_changes *out);
/* Closes the innermost region, keeping its changes and ops as part of the region around it. */
void fe_region_join(struct fe_state *fe);
/* First slot that the innermost region changed, by name ("`x`", "field 'n'"), or NULL. */
const char *fe_region_changed(struct fe_state *fe);
void fe_region_free(struct fe_state *fe, struct fe_region_state *r);
/* Drops regions that were opened after `to`, whose activations are gone. Never calls hooks that
 * raise; may raise when memory runs out. */
void fe_region_unwind(struct fe_state *fe, struct fe_region_state *to);

void fe_log_local(struct fe_state *fe, struct fe_act *A, const struct fe_var *v);
void fe_log_box(struct fe_state *fe, int idx);
static inline bool fe_must_log(const struct fe_state *fe, const struct fe_stamp *s) {
  return fe->top && s->born < fe->top->pub.serial && s->logged != fe->top->pub.serial;
}
static inline void fe_table_born(struct fe_state *fe, int idx) {
  if (fe->has_births || fe->top)
    fe_born(fe, idx);
}
/* Is the value at a equal to that at b, bit for bit? */
bool fe_same_value(lua_State *L, int a, int b);
bool fe_same_place(struct fe_state *fe, const struct fe_change *a, const struct fe_changes *in_a,
                   const struct fe_change *b, const struct fe_changes *in_b);
/* Pushes one of a change's values: 1 container, 2 key, 3 old, 4 new. */
void fe_push_change(struct fe_state *fe, const struct fe_changes *c, const struct fe_change *at,
                    int which);
/* Stores the value on top (popped) into the place of a change, journalled. */
void fe_store_change(struct fe_state *fe, struct fe_act *A, const struct fe_changes *c,
                     const struct fe_change *at);
/* "x" or "field 'n'" / "global 'n'": as fe_slot.name; quoted: "`x`" or the latter. */
const char *fe_change_name(struct fe_state *fe, const struct fe_changes *c,
                           const struct fe_change *at, bool quoted);
/* Pushes what the place of a change holds now. */
void fe_push_place(struct fe_state *fe, struct fe_act *A, const struct fe_changes *c,
                   const struct fe_change *at);
/* Stamp of a table by its address; 0 for one born outside of all regions. */
uint32_t fe_table_stamp(const struct fe_state *fe, const void *table);
/* Outer function first, then order of declaration; fields last, as they were first written. */
int fe_order_changes(const struct fe_change *a, const struct fe_change *b);
void fe_sort_changes(struct fe_changes *c);
/* The undefined value with a reason. */
void fe_push_undef(struct fe_state *fe, const char *reason, const char *grown);
void fe_trap_undef(struct fe_state *fe, int idx);
/* After a value was read. */
static inline void fe_did_read(struct fe_state *fe) {
  if (fe->n_undef && fe_is_dev(fe->L, -1))
    fe_trap_undef(fe, -1);
}
void fe_print(struct fe_state *fe, const char *text, size_t n);
void fe_flush_out(struct fe_state *fe);

/* ---- region_if.c ---- */

/* What two values of one slot merge to. */
enum fe_merge { FE_MERGE_SAME, FE_MERGE_TYPE, FE_MERGE_NONE, FE_MERGE_UNKNOWN };
enum fe_merge fe_merge_values(struct fe_state *fe, int a, int b, struct fe_type *type);
/* The mask is on top of the stack. Arm `arm` of n and what follows it. */
enum fe_signal fe_device_if(struct fe_state *fe, struct fe_act *A, const struct fe_node *n,
                            uint32_t arm);
/* A soft error about a statement that leaves a region; what: "a device loop". */
void fe_refuse_leaving(struct fe_state *fe, struct fe_act *A, enum fe_signal signal,
                       const struct fe_region *r, const char *what);

/* ---- region_loop.c ---- */

enum fe_signal fe_device_for(struct fe_state *fe, struct fe_act *A, const struct fe_node *n);
enum fe_signal fe_exec_while(struct fe_state *fe, struct fe_act *A, const struct fe_node *n);

/* ---- lua_host.c ---- */

/* After a trace: lets the collector run again, and runs it if much has gathered. */
void fe_restart_gc(struct fe_state *fe);

/* ---- eval_lib.c ---- */

void fe_lib_host_init(struct fe_state *fe);

#endif
