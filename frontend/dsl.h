/* The DSL and the tracer: what kernel text means on device values. Internal to the frontend's
 * dsl*, trace* and kernel* files.
 *
 * The evaluator (stage.h) drives a tracer through a table of functions; library functions of the
 * DSL (zeros, dot, exp, ...) are C functions in the sandbox's globals. Both end in the functions
 * below, which check dtypes and shapes, insert the explicit splats and broadcasts that the IR
 * wants, and build ops. A function that returns a value returns NULL after it reported an error
 * (or met a value of an op refused before); the caller then pushes an unknown value, so that one
 * mistake gives one message and the rest of the body is still checked. */
#ifndef KILN_FRONTEND_DSL_H
#define KILN_FRONTEND_DSL_H

#include "frontend/stage.h"
#include "ir/ir.h"

/* What a dim of a value holds where it was loaded from outside of its tensor ("padding"). */
struct dsl_pad {
  uint32_t src; /* index into dsl->srcs of the load that padded it; 0: not padded */
  bool known;   /* `value` is what stands there (or would stand there: constants) */
  bool pos;     /* differs along this dim by position (iota): a mask that can tell padding */
  bool masked;  /* went through where() with such a mask: the author decided about padding */
  double value;
};

/* An index scalar as such: equal numbers are equal, other values if they are one value. */
struct dsl_key {
  bool is_const;
  int64_t n; /* the number, or the value's id, a cast to index left out */
};

/* What a dim of a view ranges over. Dims with one extent hold elements in the same places, or lack
 * them in the same. */
enum dsl_extent_kind { DSL_EXTENT_DIM, DSL_EXTENT_SLICE, DSL_EXTENT_EVERY, DSL_EXTENT_OTHER };
struct dsl_extent {
  enum dsl_extent_kind kind;
  struct expr dim;             /* DIM: as the argument declares it */
  uint32_t parent;             /* SLICE, EVERY */
  struct dsl_key offset, size; /* SLICE; EVERY: size is the count */
};

/* A load that may read outside of its tensor along one dim. Same extent, offset and size: same
 * elements, so that pads of two operands coincide. */
struct dsl_src {
  struct diag_loc loc;
  const char *text; /* "dim 1 (K) of A" */
  uint32_t extent;  /* index into dsl->extents; 0: like no other */
  struct dsl_key offset;
  int64_t size;
};

/* A tile or device scalar. In a grid function it is a launch expression, and v is none. */
struct dsl_val {
  struct fe_dev h;
  struct diag_loc made;
  struct ir_type t;
  struct ir_val v;
  struct expr e;
  const struct dsl_pad *pads; /* one per dim; NULL: no padding, values unknown */
  bool is_const;              /* the same value everywhere: `value` */
  bool never_negative;        /* each element is at least 0, or NaN; see dsl_never_negative */
  bool has_range;             /* integers within lo..hi, both included */
  double value;
  int64_t lo, hi;
};

/* A tensor argument or a view of one. */
struct dsl_view {
  struct fe_dev h;
  struct diag_loc made;
  uint32_t arg; /* index into module->args */
  struct ir_type t;
  struct ir_val v;
  const char *name;             /* "K", "K:slice(...)" */
  uint32_t extent[IR_MAX_RANK]; /* per dim: index into dsl->extents */
  bool may_miss[IR_MAX_RANK];   /* coordinates within the dim may lie outside of the tensor */
  bool repeats;                 /* went through every(): it cannot be written */
};

/* An operand: a device value or a plain number or boolean. */
enum dsl_num_kind { DSL_DEV, DSL_INT, DSL_FLT, DSL_BOOL };
struct dsl_opnd {
  enum dsl_num_kind kind;
  struct dsl_val *dev;
  int64_t i; /* INT, BOOL */
  double f;  /* FLT; INT too, as a double */
};

/* range(lo, hi, step, {merge = function}): the function is in the registry, by the range's
 * address. */
struct dsl_range {
  struct fe_dev h;
  struct diag_loc made;
  struct dsl_opnd lo, hi;
  int64_t step;
  bool has_merge;
};

/* Elements of one tile: as ir/ allows. */
#define FE_MAX_ELEMS ((int64_t)1 << 24)

enum dsl_mode {
  DSL_IDLE, /* file level, legal, inputs: no device values */
  DSL_HOST, /* oracle, inputs: zeros, full, iota give host arrays */
  DSL_GRID, /* grid: dims are launch expressions */
  DSL_BODY
};

/* A kernel as kernel{...} described it; the Lua functions are in the registry, by reference. */
struct dsl_kernel {
  struct fe_kernel pub;
  int ref_grid, ref_body, ref_legal, ref_inputs, ref_oracle; /* LUA_NOREF: none */
};

struct fe_file {
  const struct mem_alloc *mem;
  struct diag_sink *diags;
  struct fe_host host;
  struct fe_state *fe;
  struct fe_tracer tracer;
  enum dsl_mode mode;
  /* Kernels made by kernel{...} so far, and those that the file returned. */
  VEC(struct dsl_kernel *) made;
  VEC(struct dsl_kernel *) kernels;
  struct symtab *syms; /* of the kernels' expressions */
  struct expr_pool exprs;
  VEC(struct ir_type) types; /* fe_type.id - 1 */
  struct map type_ids;

  /* The trace in hand. */
  struct ir_module *m;
  struct ir_builder b;
  const struct dsl_kernel *kernel;
  uint32_t max_ops;
  VEC(uint32_t) locs; /* call stack id -> index into m->locs; 0: not there yet */
  VEC(struct dsl_src) srcs;
  VEC(struct dsl_extent) extents;
  const struct ir_val *dim_vals; /* by module dim */

  /* Host arrays. */
  size_t host_bytes, host_since; /* alive; allocated since the last collection */
  struct dsl_array *borrowed;
  bool single;
  uint64_t rng[4];
};

static inline struct fe_file *dsl_of(lua_State *L) {
  return lua_touserdata(L, lua_upvalueindex(2));
}
/* Registers {name, function} in the table on top, each with the library's host and the file as
 * upvalues. */
void dsl_register(lua_State *L, struct fe_file *f, const luaL_Reg *list);

/* ---- dsl_table.c: the table of the language, dsl.def ---- */

enum dsl_owner {
  DSL_OF_part, /* a heading */
  DSL_OF_global,
  DSL_OF_tile, /* methods and fields of these */
  DSL_OF_array,
  DSL_OF_tensor,
  DSL_OF_rng,
  DSL_OF_kernel,
  DSL_OF_description, /* fields of kernel{} */
  DSL_OF_case         /* and of its cases */
};
struct dsl_entry {
  enum dsl_owner owner;
  const char *name, *on, *ops;
  const char *signature; /* of a value: its type */
  const char *example, *text;
  lua_CFunction fn; /* NULL: a value, or registered elsewhere */
};
const struct dsl_entry *dsl_entries(uint32_t *n);
/* Registers the owner's functions in the table on top. */
void dsl_register_all(lua_State *L, struct fe_file *f, enum dsl_owner owner);
/* The owner's names, in the table's order. */
const char *const *dsl_names(struct fe_file *f, enum dsl_owner owner, uint32_t *n);
bool dsl_is_named(enum dsl_owner owner, const char *name);
/* " (did you mean `x`?)" for the nearest of the names, or "". */
const char *dsl_nearest(struct fe_file *f, const char *name, const char *const *names, uint32_t n);
#define DSL_FN(owner, name, on, ops, signature, example, text)                                     \
  int dsl_fn_##owner##_##name(lua_State *L);
#include "frontend/dsl.def"

/* ---- trace_value.c: types, values, operands, messages ---- */

struct fe_type dsl_type_id(struct fe_file *f, struct ir_type t);
struct ir_type dsl_type(const struct fe_file *f, struct fe_type id);
const char *dsl_describe_type(struct fe_file *f, struct ir_type t); /* "f32(4)"; trace arena */
/* fe_describe, with names for dtypes and host arrays. */
const char *dsl_describe(struct fe_file *f, int idx);
const char *dsl_describe_opnd(struct fe_file *f, const struct dsl_opnd *o);
const char *dsl_shape_text(struct fe_file *f, struct ir_type t); /* "(4,1)" */
/* A fresh value for an op's result, in the present region. */
struct dsl_val *dsl_new_val(struct fe_file *f, struct ir_type t, struct ir_val v);
struct dsl_val *dsl_new_expr(struct fe_file *f, enum dtype t, struct expr e);
/* NULL pushes an unknown value. Returns 1, as functions of Lua do that give one value. */
int dsl_push(struct fe_file *f, struct dsl_val *v);
/* The operand at a stack index. `what` names the op for messages ("`+`", "exp"). False after an
 * error, or if the value is unknown. */
bool dsl_opnd_at(struct fe_file *f, int idx, const char *what, struct dsl_opnd *out);
/* A device value whose region is still open; NULL after an error. */
struct dsl_val *dsl_val_at(struct fe_file *f, int idx, const char *what);
/* Can a number be a constant of this dtype? Otherwise *why is a message in the trace arena. */
bool dsl_fits(struct fe_file *f, enum dtype t, const struct dsl_opnd *o, const char **why);
/* A scalar constant; reports and returns NULL if it does not fit. */
struct dsl_val *dsl_const(struct fe_file *f, enum dtype t, const struct dsl_opnd *o);
struct dsl_val *dsl_const_num(struct fe_file *f, enum dtype t, double x);
struct dsl_val *dsl_const_int(struct fe_file *f, enum dtype t, int64_t x);
/* An integer scalar as index: offsets, range bounds. */
struct dsl_val *dsl_as_index(struct fe_file *f, const struct dsl_opnd *o, const char *what);
/* Builds an op at the running kernel function's place; counts it against the limit. */
struct ir_val dsl_build1(struct fe_file *f, enum ir_opcode op, struct ir_type t, uint32_t n,
                         const struct ir_val *in);
struct ir_op dsl_build(struct fe_file *f, enum ir_opcode op, uint32_t n, const struct ir_val *in,
                       uint32_t n_out, const struct ir_type *out);

/* ---- trace_elem.c: elementwise ops with dtype and broadcasting rules ---- */

/* An elementwise op on operands that take one dtype (numbers adopt it). out: the result's dtype, or
 * DT_COUNT for the operands' own. */
struct dsl_val *dsl_elem(struct fe_file *f, enum ir_opcode op, const char *what, uint32_t n,
                         const struct dsl_opnd *in, enum dtype out);
struct dsl_val *dsl_binary(struct fe_file *f, enum fe_op op, const struct dsl_opnd *a,
                           const struct dsl_opnd *b);
struct dsl_val *dsl_select(struct fe_file *f, const char *what, const struct dsl_opnd *mask,
                           const struct dsl_opnd *yes, const struct dsl_opnd *no);
struct dsl_val *dsl_math(struct fe_file *f, enum ir_opcode op, const char *what,
                         const struct dsl_opnd *x); /* float only */
struct dsl_val *dsl_cast(struct fe_file *f, struct dsl_val *x, enum dtype t);
/* Grows dims of 1, or splats a scalar, to the shape. */
struct dsl_val *dsl_grow(struct fe_file *f, struct dsl_val *x, struct ir_type shape);
static inline struct dsl_opnd dsl_opnd_dev(struct dsl_val *v) {
  return (struct dsl_opnd){.kind = DSL_DEV, .dev = v};
}
static inline struct dsl_opnd dsl_opnd_num(double x) {
  return (struct dsl_opnd){.kind = DSL_FLT, .f = x};
}

/* ---- trace_tile.c: ops that know shapes ---- */

struct dsl_val *dsl_reduce(struct fe_file *f, enum ir_opcode op, const char *what,
                           struct dsl_val *x, uint32_t axis);
struct dsl_val *dsl_reduce_all(struct fe_file *f, enum ir_opcode op, const char *what,
                               struct dsl_val *x);
struct dsl_val *dsl_dot(struct fe_file *f, struct dsl_val *a, struct dsl_val *b,
                        struct dsl_val *acc, const char *prec);
struct dsl_val *dsl_iota(struct fe_file *f, uint32_t axis, int64_t n);
struct dsl_val *dsl_transpose(struct fe_file *f, struct dsl_val *x);
struct dsl_val *dsl_reshape(struct fe_file *f, struct dsl_val *x, uint32_t rank,
                            const int64_t *dim);

/* ---- trace_memory.c: loads and stores ---- */

struct dsl_val *dsl_load(struct fe_file *f, struct dsl_view *view, struct dsl_val *const *offset,
                         struct ir_type t, bool has_pad, const struct dsl_opnd *pad);
/* One element; 0 out of range. */
struct dsl_val *dsl_load_scalar(struct fe_file *f, struct dsl_view *view,
                                struct dsl_val *const *index);
bool dsl_store(struct fe_file *f, struct dsl_view *view, struct dsl_val *const *offset,
               struct dsl_val *x);
/* Reports and returns false if nothing may be written there. what: "store to" */
bool dsl_check_written(struct fe_file *f, const struct dsl_view *view, const char *what);
/* x as it is written to the view: cast among floats and among integers. NULL after an error. */
struct dsl_val *dsl_written(struct fe_file *f, const struct dsl_view *view, const char *what,
                            struct dsl_val *x);
/* The pad of a load or gather as its attribute (none for 0); its value. */
bool dsl_check_pad(struct fe_file *f, enum dtype t, const struct dsl_opnd *pad);
double dsl_set_pad(struct fe_file *f, struct ir_op o, enum dtype t, const struct dsl_opnd *pad);

/* ---- trace_gather.c: elements at indices. Indices are of dtype index, scalars and tiles. ---- */

/* What the indices select, of the view's dtype; false after an error. */
bool dsl_selected(struct fe_file *f, const struct dsl_view *view, const char *what,
                  struct dsl_val *const *index, struct ir_type *t);
struct dsl_val *dsl_gather(struct fe_file *f, struct dsl_view *view, struct dsl_val *const *index,
                           bool has_pad, const struct dsl_opnd *pad);
bool dsl_scatter(struct fe_file *f, struct dsl_view *view, struct dsl_val *const *index,
                 struct dsl_val *x);
struct dsl_val *dsl_atomic(struct fe_file *f, struct dsl_view *view, const char *what,
                           const char *kind, struct dsl_val *const *index, struct dsl_val *x);

/* ---- trace_fold.c ---- */

/* any, all, argmax, argmin, scan_sum: over an axis that x has; over all elements, to a scalar. */
struct dsl_val *dsl_fold_axis(struct fe_file *f, enum ir_opcode op, const char *what,
                              struct dsl_val *x, uint32_t axis);
struct dsl_val *dsl_fold_all(struct fe_file *f, enum ir_opcode op, const char *what,
                             struct dsl_val *x);
/* Random bits as s32, of the counter's shape. */
struct dsl_val *dsl_random(struct fe_file *f, const char *what, const struct dsl_opnd *seed,
                           const struct dsl_opnd *counter, int64_t word);

/* ---- trace_part.c ---- */

/* perm: a permutation of x's axes. */
struct dsl_val *dsl_permute(struct fe_file *f, struct dsl_val *x, const int64_t *perm);
struct dsl_val *dsl_extract(struct fe_file *f, struct dsl_val *x, const int64_t *offset,
                            const int64_t *size);
/* Tiles of one dtype and rank that differ along the axis alone. */
struct dsl_val *dsl_concat(struct fe_file *f, uint32_t axis, uint32_t n, struct dsl_val *const *x);
struct dsl_val *dsl_bitcast(struct fe_file *f, struct dsl_val *x, enum dtype to);

/* ---- trace_view.c: views ---- */

struct dsl_key dsl_key_of(const struct fe_file *f, const struct dsl_val *v);
static inline bool dsl_key_eq(struct dsl_key a, struct dsl_key b) {
  return a.is_const == b.is_const && a.n == b.n;
}
struct dsl_view *dsl_arg_view(struct fe_file *f, uint32_t arg, struct ir_val v);
struct dsl_view *dsl_view_at(struct fe_file *f, struct dsl_view *v, struct dsl_val *index);
struct dsl_view *dsl_view_slice(struct fe_file *f, struct dsl_view *v,
                                struct dsl_val *const *offset, struct dsl_val *const *size);
struct dsl_view *dsl_view_permute(struct fe_file *f, struct dsl_view *v, const char *what,
                                  const int64_t *perm);
struct dsl_view *dsl_view_every(struct fe_file *f, struct dsl_view *v, uint32_t axis, int64_t n);
/* NULL after an error. */
struct dsl_view *dsl_view_reshape(struct fe_file *f, struct dsl_view *v, uint32_t rank,
                                  struct dsl_val *const *size);
struct dsl_val *dsl_view_size(struct fe_file *f, struct dsl_view *v, uint32_t axis);
void dsl_push_view(struct fe_file *f, struct dsl_view *v); /* NULL pushes an unknown value */

/* ---- trace_pad.c ---- */

/* The pads of a loaded tile: `value` in every dim where its author wrote `pad =` (which decides
 * what stands there: no source), and where src[d], the load's entry in f->srcs, is not 0. */
void dsl_pad_loaded(struct fe_file *f, struct dsl_val *r, bool has_pad, double value,
                    const uint32_t *src);
const struct dsl_pad *dsl_pad_elem(struct fe_file *f, enum ir_opcode op, uint32_t n,
                                   struct dsl_val *const *in, struct ir_type t);
const struct dsl_pad *dsl_pad_join(struct fe_file *f, const struct dsl_val *a,
                                   const struct dsl_val *b, struct ir_type t);
/* The pad of a dim, or that of a constant. */
struct dsl_pad dsl_pad_of(const struct dsl_val *v, uint32_t dim);
/* Is no element below 0? By what it was made of; does the op, with these operands, make such? */
bool dsl_never_negative(const struct dsl_val *v);
bool dsl_makes_no_negative(enum ir_opcode op, uint32_t n, struct dsl_val *const *in, enum dtype t);
/* Reports a reduction over a dim whose padding is not neutral to it. */
bool dsl_pad_check(struct fe_file *f, const struct dsl_val *x, uint32_t dim, double neutral,
                   const char *what);
void dsl_range_elem(enum ir_opcode op, const struct dsl_val *a, const struct dsl_val *b,
                    struct dsl_val *out);

/* ---- trace_region.c, trace.c ---- */

void dsl_fill_tracer(struct fe_file *f);
void dsl_fill_region_hooks(struct fe_tracer *t);
/* trace_fuse.c: `acc + dot(x, y)` becomes the product accumulated in place. */
void dsl_fuse_dots(struct ir_module *m, struct arena *scratch);
/* dsl_method.c: the tile that a method is called on; NULL after an error. */
struct dsl_val *dsl_self_tile(struct fe_file *f, const char *what);
/* Pushes the method that key names, of tiles or of views; false (nothing pushed) if
 * there is none. */
void dsl_open_methods(lua_State *L, struct fe_file *f);
bool dsl_push_method(lua_State *L, bool view, int key);

/* ---- dsl_*.c: globals ---- */

void dsl_open_math(lua_State *L);                     /* dsl_math.c: constants */
void dsl_open_dtype(lua_State *L, struct fe_file *f); /* dsl_dtype.c */
void dsl_open_array(lua_State *L, struct fe_file *f); /* dsl_array.c */
void dsl_seed(struct fe_file *f, uint64_t seed);
void dsl_push_rng(lua_State *L, struct fe_file *f);
void dsl_open_kernel(lua_State *L, struct fe_file *f); /* kernel.c */

/* dsl_dtype.c: dtypes are userdata, one per dtype and state: compared by identity. */
void dsl_push_dtype(lua_State *L, enum dtype t);
bool dsl_to_dtype(lua_State *L, int idx, enum dtype *out);
/* The dtype at a stack index; reports and returns false if it is none. */
bool dsl_dtype_at(struct fe_file *f, int idx, const char *what, enum dtype *out);
/* A plain number, a plain integer, for functions of oracles; an error otherwise ends the call. */
double dsl_number_at(struct fe_file *f, int idx, const char *what);
int64_t dsl_integer_at(struct fe_file *f, int idx, const char *what);
/* A plain integer of at least 1 (64.0 is one); reports otherwise. */
bool dsl_size_at(struct fe_file *f, int idx, const char *what, int64_t *out);
/* Sizes given as the stack's values first..last, or as one list there. False after an error. */
bool dsl_sizes_at(struct fe_file *f, int first, int last, const char *what, uint32_t *rank,
                  int64_t dim[IR_MAX_RANK]);
/* An axis of a value of the rank; -1 after an error. */
int dsl_axis_at(struct fe_file *f, int idx, const char *what, uint32_t rank);

/* ---- dsl_array.c: host arrays, what oracles compute with ---- */

struct dsl_array {
  uint32_t rank;
  int64_t dim[IR_MAX_RANK], stride[IR_MAX_RANK]; /* elements */
  double *data;
  double *owned; /* NULL: borrowed from an argument or another array (kept alive by a user value) */
  size_t bytes;  /* of `owned` */
  /* Over an argument's memory: in fe_file.borrowed until the call ends, empty from then on. */
  struct dsl_array *next, **link;
  bool ended;
  double nothing; /* `data` of an ended array: never read, but an address */
};

/* NULL if the value is no host array. */
struct dsl_array *dsl_to_array(lua_State *L, int idx);
/* Pushes a new dense array of undefined contents. */
struct dsl_array *dsl_new_array(lua_State *L, struct fe_file *f, uint32_t rank, const int64_t *dim);
/* Pushes an array over memory that lives until dsl_end_borrowed: kernel text may keep the array,
 * which is empty then. Never written to. */
struct dsl_array *dsl_borrow_array(lua_State *L, struct fe_file *f, uint32_t rank,
                                   const int64_t *dim, double *data);
void dsl_end_borrowed(struct fe_file *f);
/* Pushes a view of the array at idx, to be given its own dims, strides and data. */
struct dsl_array *dsl_array_view(lua_State *L, int idx);
/* The array that a method is called on; raises if there is none. */
struct dsl_array *dsl_array_self(lua_State *L, const char *what);
/* "(3,4)", for messages */
const char *dsl_array_shape(struct fe_file *f, const struct dsl_array *a);
/* Steps a multi-index over dim; false at the end. Where it is, in elements. */
bool dsl_array_next(uint32_t rank, const int64_t *dim, int64_t *i);
int64_t dsl_array_offset(uint32_t rank, const int64_t *i, const int64_t *stride);
/* Copies to dense row-major memory. */
void dsl_array_copy(const struct dsl_array *a, double *out);
int64_t dsl_array_count(const struct dsl_array *a);
/* Applies fn to n operands (arrays and numbers at idx..idx+n-1), broadcasting; pushes it. */
typedef double (*dsl_fn)(const double *x);
void dsl_array_elem(lua_State *L, struct fe_file *f, const char *what, dsl_fn fn, int idx, int n);
enum dsl_fold { DSL_SUM, DSL_MAX, DSL_MIN };
/* Pushes the reduction of the array at idx over an axis (kept as 1), or over all (axis < 0: a
 * number). */
void dsl_array_reduce(lua_State *L, struct fe_file *f, enum dsl_fold fold, int idx, int axis);
/* Rounds to f32 where the oracle runs in single precision. */
double dsl_round(const struct fe_file *f, double x);

/* ---- kernel_arg.c, kernel.c, kernel_case.c, config.c ---- */

/* What tensor(...), scalar(...), ... give; a userdata. dtype_const names a const, or is NULL. */
struct dsl_arg_spec {
  struct fe_arg arg;
};
const struct dsl_arg_spec *dsl_to_arg(lua_State *L, int idx);
void dsl_open_arg(lua_State *L, struct fe_file *f);
void dsl_read_schedule(lua_State *L, struct fe_file *f, struct fe_kernel *k, int idx);
/* Whether the table at idx has nothing but entries 1, 2, ...; reports otherwise. */
bool dsl_is_list(lua_State *L, struct fe_file *f, int idx, const char *what, const char *example);
/* "kernel `name`"; "this kernel" while it has none. */
const char *dsl_kernel_text(struct fe_file *f, const struct fe_kernel *k);
void dsl_read_cases(lua_State *L, struct fe_file *f, struct fe_kernel *k, int idx);
/* Keys of the table at idx in byte order; reports keys that are not strings. In fe_arena. */
const char **dsl_sorted_keys(lua_State *L, struct fe_file *f, int idx, const char *what,
                             uint32_t *n);
bool dsl_is_name(const char *s);
/* "a, b, c" */
const char *dsl_join(struct fe_file *f, const char *const *names, uint32_t n);
/* A number, boolean, dtype or string; false (nothing reported) for anything else. */
bool dsl_value_from_lua(lua_State *L, struct fe_file *f, int idx, struct fe_value *out);
void dsl_value_to_lua(lua_State *L, struct fe_value v);
/* Pushes the table `c`. */
void dsl_push_config(lua_State *L, const struct fe_kernel *k, const struct fe_config *config);
/* The value that a const of that name has as an integer. */
bool dsl_const_int_of(const struct fe_kernel *k, const struct fe_config *config, const char *name,
                      int64_t *value);
/* A dim expression in another pool; consts that are no dims become numbers. */
struct expr dsl_import_dim(struct expr_pool *to, const struct fe_kernel *k,
                           const struct fe_config *config, struct expr e);

#endif
