/* The staging evaluator towards the rest of the frontend: the tracer that it drives, and what C
 * functions called from kernel Lua may ask of it.
 *
 * The evaluator walks the AST over the API of a stock lua_State. A value is *device* iff it is a
 * light userdata; it then points at a `struct fe_dev`. Everything the evaluator knows about device
 * values is in that header and in the tracer's table of functions; everything about control,
 * variables, tables and regions is the evaluator's. Positions of stack operands are absolute.
 *
 * Errors: fe_error reports to the diagnostic sink and unwinds past every pcall; fe_soft_error
 * reports and goes on (push fe_push_unknown then); plain Lua errors (luaL_error, lua_error) are
 * values, the evaluator puts `file:line:col: ` in front. All of it runs under fe_protect, so no C
 * function owns anything but arena memory when it raises. */
#ifndef KILN_FRONTEND_STAGE_H
#define KILN_FRONTEND_STAGE_H

#include "base/diag.h"
#include "frontend/fe.h"
#include "frontend/lib.h"

struct fe_state;

/* ---- device values ---- */

enum fe_dev_kind {
  FE_DEV_VALUE,  /* a tile or device scalar */
  FE_DEV_RANGE,  /* what range() gives: only a generic `for` takes it */
  FE_DEV_OBJECT, /* tensors, views, dtypes, ...: the tracer's own, always true */
  FE_DEV_UNDEF,  /* the evaluator's: a slot with no value; reading it is an error */
};

enum fe_dev_flag {
  FE_DEV_MASK = 1,     /* bool: staged at a truth test */
  FE_DEV_SCALAR = 2,   /* rank 0: plain numbers and booleans can take its type */
  FE_DEV_INT = 4,      /* integer or index dtype */
  FE_DEV_OPTIONAL = 8, /* an optional argument: no "always true" warning */
  FE_DEV_UNKNOWN = 16, /* result of a refused op: silences what uses it. Never has an fe_dev bigger
                          than this header; every hook must look for it first */
};

/* dtype and shape, interned by the tracer: equal iff the ids are. 0: no type (objects, unknown). */
struct fe_type {
  uint32_t id;
};

/* The first member of whatever a device value points at. Allocated in the arena of fe_trace_arena
 * (or a longer-lived one), so that it stays readable after its region was dropped. */
struct fe_dev {
  uint8_t kind, flags; /* enum fe_dev_kind, enum fe_dev_flag bits */
  uint32_t region;     /* fe_value_region() where it was made; 0 = usable everywhere */
  struct fe_type type;
};

static inline bool fe_is_dev(lua_State *L, int idx) {
  return lua_type(L, idx) == LUA_TLIGHTUSERDATA;
}
/* NULL if the value at idx is no device value. */
static inline struct fe_dev *fe_to_dev(lua_State *L, int idx) {
  return fe_is_dev(L, idx) ? lua_touserdata(L, idx) : NULL;
}

/* ---- regions ---- */

enum fe_region_kind {
  FE_REGION_ROOT, /* one trace: everything it changed is undone at its end */
  FE_REGION_LOOP, /* body of a device `for`, or condition and body of a device `while` */
  FE_REGION_THEN, /* sides of a device `if` */
  FE_REGION_ELSE,
  FE_REGION_SHORT, /* right side of and/or after a mask; its ops join the block around it */
  FE_REGION_MERGE, /* a merge function of a device `for`, after the loop */
  FE_REGION_PROBE, /* condition of a `while`, the first time; kept ops join the block around it */
};

struct fe_region {
  enum fe_region_kind kind;
  uint32_t serial;               /* grows with every region opened */
  struct diag_loc loc;           /* of the `for`, `if`, `while`, `and`, `or` */
  uint32_t pass;                 /* LOOP: from 1; only its end tells whether it is kept */
  void *user[2];                 /* the tracer's; NULL, or what it left in a region since closed,
                                    for it to use again: plain loops open millions */
  struct fe_region_state *state; /* the evaluator's */
};

/* A carried variable of a loop or a merged one of an `if`. Indices are stack positions of values
 * that are device values, numbers or booleans. */
struct fe_slot {
  const char *name; /* for people: "s"; "field 'n'" */
  bool is_captured; /* a variable that a closure holds */
  struct fe_type type;
  int first, second; /* if: then and else value. loop: value before, value at the end of the body */
};

/* Same numbers as LUA_OPADD ... LUA_OPBNOT up to FE_OP_BNOT. */
enum fe_op {
  FE_OP_ADD,
  FE_OP_SUB,
  FE_OP_MUL,
  FE_OP_MOD,
  FE_OP_POW,
  FE_OP_DIV,
  FE_OP_IDIV,
  FE_OP_BAND,
  FE_OP_BOR,
  FE_OP_BXOR,
  FE_OP_SHL,
  FE_OP_SHR,
  FE_OP_NEG,
  FE_OP_BNOT,
  FE_OP_EQ,
  FE_OP_NE,
  FE_OP_LT,
  FE_OP_LE,
  FE_OP_GT,
  FE_OP_GE,
  FE_OP_AND, /* masks only */
  FE_OP_OR,
  FE_OP_NOT,
};
/* "+", "//", "and", ... */
const char *fe_op_text(enum fe_op op);

/* What the evaluator calls. Every function may raise (fe_error) and must leave the stack as it
 * found it plus what it is said to push. Where a hook refuses with fe_soft_error it pushes unknown
 * values instead. Operands are never FE_DEV_UNDEF; they may be unknown. */
struct fe_tracer {
  void *user;

  /* a op b, at least one a device value (FE_DEV_VALUE or UNKNOWN or an object), the other a device
   * value or a number (for comparisons never nil, string, table or boolean: refused before). AND,
   * OR get two masks. Pushes the result. */
  void (*binary)(void *user, enum fe_op op, int a, int b);
  void (*unary)(void *user, enum fe_op op, int a); /* NEG, BNOT, NOT (of a mask) */
  /* where(mask, yes, no) written as `mask and yes or no`; yes and no are any values. */
  void (*select)(void *user, int mask, int yes, int no);
  /* obj.key, obj:key, obj[key] for a device value obj. Pushes the value; refuses unknown names. */
  void (*index)(void *user, int obj, int key);

  /* For messages: "f32(4)", "index", "tensor bf16(M,K)"; result in arena memory or constant. */
  const char *(*describe)(void *user, const struct fe_dev *dev);
  const char *(*type_name)(void *user,
                           const struct fe_dev *dev); /* type(): "tile", "scalar", ... */
  const char *(*describe_type)(void *user, struct fe_type type);
  /* What a global that is nil may have been meant to be: " (did you mean `exp`?)", or "". */
  const char *(*suggest)(void *user, const char *name);
  /* Can the plain number or boolean at idx be a constant of this scalar type, exactly as `dev + n`
   * would take it? Says nothing, pushes nothing. */
  bool (*fits)(void *user, struct fe_type type, int idx);
  bool (*is_scalar_type)(void *user, struct fe_type type);
  struct fe_type index_type, bool_type; /* scalars: what two integers, two booleans merge to */

  /* New ops go into a fresh block for LOOP, THEN, ELSE (and ROOT); for SHORT and PROBE the tracer
   * may go on in the same block, as long as close(keep = false) drops the ops made since. */
  void (*open)(void *user, struct fe_region *r);
  /* keep: for LOOP, THEN, ELSE the block waits for build_*; values made in it cannot be used from
   * now on. Called in reverse order of open, also while an error unwinds (it must not raise then:
   * keep is false). */
  void (*close)(void *user, struct fe_region *r, bool keep);
  /* Name of the first op with an effect since r was opened ("store", "print"), or NULL. */
  const char *(*effect)(void *user, struct fe_region *r);

  /* Inside a LOOP region, in this order: loop_index (device `for`; range is the stack index of the
   * FE_DEV_RANGE), then loop_arg per carried slot: first = value before the loop, type = what it is
   * carried as. Each pushes a fresh device value. */
  void (*loop_index)(void *user, struct fe_region *r, int range);
  void (*loop_arg)(void *user, struct fe_region *r, const struct fe_slot *slot);
  /* Device `while`: its condition was just traced, `mask` (a scalar mask, or a plain boolean)
   * decides whether the body follows; slots[i].first is what the carried slots are there. Pushes n
   * values, what they are in the body. */
  void (*while_cond)(void *user, struct fe_region *r, int mask, uint32_t n,
                     const struct fe_slot *slots);

  /* After the regions were closed with keep. Constants for plain values in `second` (and `first` of
   * an `if`) belong into their blocks, those for `first` of a loop before the loop. Push n
   * results of slots[i].type. */
  void (*build_if)(void *user, struct fe_region *then_side, struct fe_region *else_side, int cond,
                   uint32_t n, const struct fe_slot *slots);
  void (*build_for)(void *user, struct fe_region *r, int range, uint32_t n,
                    const struct fe_slot *slots);
  void (*build_while)(void *user, struct fe_region *r, uint32_t n, const struct fe_slot *slots);

  /* Mergeable loop state, after build_for; slots[i].first is then result i. merge_fn: if the range
   * has a merge function, pushes it and returns true (NULL: none ever has). merge_args, inside a
   * MERGE region: pushes two tables name -> fresh device value, of two parts of the loop.
   * build_merge, after the region was closed with keep: slots[i].second is what the function gave;
   * pushes n results that stand for the loop's. */
  bool (*merge_fn)(void *user, int range);
  void (*merge_args)(void *user, struct fe_region *r, uint32_t n, const struct fe_slot *slots);
  void (*build_merge)(void *user, struct fe_region *r, uint32_t n, const struct fe_slot *slots);

  /* A variable called `name` was given the device value (of any kind): for people who read the
   * IR. */
  void (*named)(void *user, struct fe_dev *dev, const char *name);

  /* assert(device condition, ...) and print(... device value ...): the arguments are the whole
   * stack. They return the number of results pushed. */
  int (*dev_assert)(void *user, lua_State *L);
  int (*dev_print)(void *user, lua_State *L);
};

/* ---- life (lua_host.c) ---- */

/* A sandboxed state with the library open. Copies *host. NULL, reported, if memory ran out. The
 * tracer may be set later, and changed between calls; with none, light userdata cannot arise. */
struct fe_state *fe_state_new(const struct fe_host *host);
void fe_state_free(struct fe_state *fe);
void fe_set_tracer(struct fe_state *fe, const struct fe_tracer *tracer);

enum fe_status {
  FE_DONE,
  FE_ERRORS,    /* at least one error was reported */
  FE_NO_MEMORY, /* of the host, not the limit; DIAG_NO_MEMORY was reported if that was possible */
};
/* Runs fn(fe, user) where Lua errors, diagnostics and failed allocations end: an uncaught Lua error
 * is reported as DIAG_LUA_ERROR at its place. The step and time limits start afresh, unless
 * nested in another fe_protect (not needed: raise instead). Soft errors alone give FE_ERRORS
 * too. */
enum fe_status fe_protect(struct fe_state *fe, void (*fn)(struct fe_state *fe, void *user),
                          void *user);

/* ---- inside fe_protect, and in C functions called from kernel Lua ---- */

lua_State *fe_lua(const struct fe_state *fe);
struct fe_state *fe_of(lua_State *L);
/* As lua_checkstack and luaL_checkstack; but where it is memory that the stack cannot grow for, the
 * run ends as out of memory. */
bool fe_has_stack(lua_State *L, int n);
void fe_need_stack(lua_State *L, int n, const char *what);
const struct fe_host *fe_host_of(const struct fe_state *fe);
struct diag_sink *fe_diags(const struct fe_state *fe);
/* Lives as long as the state (ASTs); and until the outermost ROOT region closes. Both raise out of
 * Lua when memory runs out and count towards the memory limit. fe_trap: give it to other arenas
 * (the traced module's) that grow while Lua runs. */
struct arena *fe_arena(struct fe_state *fe);
struct arena *fe_trace_arena(struct fe_state *fe);
struct oom_trap *fe_trap(struct fe_state *fe);
_Noreturn void fe_out_of_memory(struct fe_state *fe);

/* Parses a file and pushes its main function. Raises fe_error(DIAG_SYNTAX) on a syntax error. */
void fe_load_text(struct fe_state *fe, const char *name, const char *text, size_t n);
/* lua_call, from C that is not itself called by kernel Lua or is: no matter. */
void fe_call(struct fe_state *fe, int nargs, int nresults);
/* Between the two, every change to what existed before is journalled and undone at the end, so that
 * one trace never sees another. fe_trace_end(keep = false) also drops the ops. The results, below
 * or above, are the caller's; device values stay readable until the next fe_trace_begin. */
void fe_trace_begin(struct fe_state *fe);
void fe_trace_end(struct fe_state *fe, bool keep);

void fe_charge(struct fe_state *fe, uint64_t steps);

/* Where the running kernel function is: the call, operator or statement in hand. */
struct diag_loc fe_where(const struct fe_state *fe);
/* The `return` of the function that returned last. */
struct diag_loc fe_returned_at(const struct fe_state *fe);
/* What fe_where says between calls of Lua, until the protected call ends. */
void fe_set_place(struct fe_state *fe, struct diag_loc loc);
/* fe_where with its callers, interned: equal stacks have equal ids. 0 = nowhere. */
uint32_t fe_callstack(struct fe_state *fe);
/* Its place; *up is the caller's id. */
struct diag_loc fe_callstack_at(const struct fe_state *fe, uint32_t id, uint32_t *up);
uint32_t fe_callstack_count(const struct fe_state *fe);

/* Reports an error at fe_where (fe_error_at: elsewhere), with the calls as notes; pcall does not
 * catch it. The messages must not start with a place. */
_Noreturn void fe_error(struct fe_state *fe, enum diag_id id, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
_Noreturn void fe_error_at(struct fe_state *fe, enum diag_id id, struct diag_loc loc,
                           const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Reports and returns. The same message at the same place is reported once per fe_protect (passes
 * repeat bodies); too many errors unwind. fe_note adds to it. */
void fe_soft_error(struct fe_state *fe, enum diag_id id, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void fe_soft_error_at(struct fe_state *fe, enum diag_id id, struct diag_loc loc, const char *fmt,
                      ...) __attribute__((format(printf, 4, 5)));
void fe_warn(struct fe_state *fe, enum diag_id id, struct diag_loc loc, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* A library function `name` begins (NULL: ends), for the call in hand: errors at that call that do
 * not name it get its name in front. */
void fe_set_calling(struct fe_state *fe, const char *name);
/* "file:3:7" in trace-arena memory. */
const char *fe_place(struct fe_state *fe, struct diag_loc loc);
void fe_push_unknown(struct fe_state *fe);
static inline bool fe_is_unknown(const struct fe_dev *dev) {
  return dev && (dev->flags & FE_DEV_UNKNOWN);
}
/* "f32(4)", "number -inf", "true", "nil", "a string", "a table", "a function": for messages. */
const char *fe_describe(struct fe_state *fe, int idx);

/* Serial of the block that new device values belong to (fe_dev.region): the innermost LOOP, THEN,
 * ELSE or ROOT region. 0 outside of any. */
uint32_t fe_value_region(const struct fe_state *fe);
/* The safety net: false after a soft error "value made at ... is used outside the loop that made
 * it" (made: where, for the message). Call it for every operand. */
bool fe_check_open(struct fe_state *fe, const struct fe_dev *dev, struct diag_loc made);
/* NULL outside of any region. */
struct fe_region *fe_region_top(const struct fe_state *fe);

/* Must be called before a table that existed before is changed by raw means, and after a table was
 * made. lua_settable and friends count as raw means for tables with no metatable; fe_set is
 * lua_settable with all of it (key and value on top, popped). */
void fe_will_write(struct fe_state *fe, int table, int key);
void fe_will_set_meta(struct fe_state *fe, int table);
void fe_born(struct fe_state *fe, int idx);
void fe_set(struct fe_state *fe, int table);
/* Reports and replaces the value at idx by an unknown one if it is undefined; values read from
 * tables by raw means must pass here. Cheap. */
void fe_check_defined(struct fe_state *fe, int idx);

/* Truth of a value that C code needs to know: "<what>: the comparison gave bool" if it is a
 * mask. */
bool fe_truth(struct fe_state *fe, int idx, const char *what);
/* a < b with __lt, refusing a device result. */
bool fe_less(struct fe_state *fe, int a, int b, const char *what);

/* The library's table, made of all of the above (eval_lib.c). */
const struct fe_lib_host *fe_lib_host_of(const struct fe_state *fe);

#endif
