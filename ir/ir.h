/* The IR: one data structure for tile, scheduled tile and machine stages.
 *
 * A module holds one kernel: its arguments, dims, config, specialization facts, target, resources
 * and a tree of blocks. Values, ops, blocks are 32-bit handles into tables of the module (0 =
 * none). Everything lives in the module's arena; nothing is freed before it. Ops of a block form a
 * doubly linked list. Control is structured: an op owns its nested blocks; a block's args are
 * values.
 *
 * Reading order: ops.def (what exists), this file (how it is held), print.c (how it looks). */
#ifndef KILN_IR_IR_H
#define KILN_IR_IR_H

#include "base/diag.h"
#include "base/dtype.h"
#include "base/expr.h"
#include "base/recipe.h"
#include "ir/layout.h"

#define IR_VERSION   1
#define IR_MAX_RANK  5
#define IR_MAX_PARTS 8    /* blocks of a cluster, on every GPU that has clusters */
#define IR_MAX_GRID  4    /* axes: 3 of the kernel, and one that a pass may add */
#define IR_DYN       (-1) /* a view's dim known only at launch */

struct ir_val {
  uint32_t id;
};
struct ir_op {
  uint32_t id;
};
struct ir_block {
  uint32_t id;
};

enum ir_stage { IR_TILE_STAGE, IR_SCHEDULED_STAGE, IR_MACHINE_STAGE };

enum ir_opcode {
  IR_NO_OP,
#define OP(id, text, in, out, blocks, stages, traits, rule, attrs) IR_##id,
#include "ir/ops.def"
  IR_OPCODE_COUNT
};

enum ir_trait {
  IR_PURE = 1,
  IR_COMMUTES = 2,
  IR_READS = 4,
  IR_WRITES = 8,
  IR_EFFECT = 16,
  IR_TERM = 32,
  IR_SYNC = 64,
  IR_ASYNC = 128,
  IR_EXACT = 256,
};

enum ir_attr_key {
  IR_ATTR_NONE,
#define ATTR(key, text, kind) IR_ATTR_##key,
#include "ir/attrs.def"
  IR_ATTR_COUNT
};

enum ir_attr_kind {
  IR_AK_INT,
  IR_AK_NUM,
  IR_AK_INTS,
  IR_AK_SYM,
  IR_AK_STR,
  IR_AK_DTYPE,
  IR_AK_EXPR
};

#define IR_ANY 255

/* A row of the op table. */
struct ir_opinfo {
  const char *name;
  uint8_t n_in, n_out; /* IR_ANY: variadic */
  uint8_t n_blocks;
  uint8_t stages; /* bit per enum ir_stage */
  uint32_t traits;
  uint8_t rule; /* enum ir_rule, rules.c */
  uint8_t n_attrs;
  struct {
    uint8_t key;
    bool required;
  } attrs[8];
};
const struct ir_opinfo *ir_info(enum ir_opcode opcode);
bool ir_find_opcode(const char *name, size_t n, enum ir_opcode *out);
/* view_at, view_slice, ...: view operand, view result. */
bool ir_is_view_op(enum ir_opcode opcode);

/* ---- types ---- */

enum ir_type_kind {
  IR_NONE,
  IR_SCALAR,
  IR_TILE, /* static dims, each >= 1 */
  IR_VIEW, /* a tensor or part of one: dims static or IR_DYN */
  IR_PTR,  /* machine: address of global memory of dtype */
};

struct ir_type {
  uint8_t kind, dtype, rank;
  int64_t dim[IR_MAX_RANK];
};

static inline struct ir_type ir_scalar(enum dtype t) {
  return (struct ir_type){.kind = IR_SCALAR, .dtype = (uint8_t)t};
}
struct ir_type ir_tile(enum dtype t, uint32_t rank, const int64_t *dim);
bool ir_type_eq(struct ir_type a, struct ir_type b);
/* Same kind, rank and dims; dtypes may differ. */
bool ir_shape_eq(struct ir_type a, struct ir_type b);
int64_t ir_elems(struct ir_type t);
/* "f32(128,64)", "index", "view bf16(?,?)": as people read it in messages. */
void ir_type_describe(struct ir_type t, struct strbuf *out);

/* ---- contents of a module ---- */

/* One frame of an op's Lua call stack; `up` is the caller's. Index 0 = none. */
struct ir_loc {
  struct diag_loc at;
  uint32_t up;
};

struct ir_attr {
  enum ir_attr_key key;
  int64_t i;           /* INT; NUM of integer or bool dtype */
  double f;            /* NUM of float dtype */
  struct sym s;        /* SYM, STR */
  enum dtype dtype;    /* DTYPE */
  struct expr e;       /* EXPR */
  const int64_t *ints; /* INTS */
  uint32_t n_ints;
};

/* Where and when an op runs (scheduled stage). role_mask: bit per module role. */
struct ir_sched {
  uint32_t role_mask;
  int16_t stage, order;
};

struct ir_value {
  struct ir_type type;
  struct ir_op def;      /* the op that makes it, or 0 for a block argument */
  struct ir_block block; /* the block whose argument it is, or 0 */
  uint32_t index;        /* result or argument number */
  struct sym name;       /* a name for people: the Lua variable, or empty; never enters keys */
  uint32_t layout;       /* scheduled stage: index into module->layouts, 0 = none */
};

struct ir_opnode {
  enum ir_opcode opcode;
  uint32_t loc; /* index into module->locs */
  struct ir_block block;
  struct ir_op prev, next;
  uint16_t n_in, n_out, n_blocks, n_res, n_attrs;
  struct ir_val *in, *out;
  struct ir_block *blocks;
  uint32_t *res; /* indices into module->res (machine) */
  struct ir_attr *attrs;
  struct ir_sched sched;
};

struct ir_blocknode {
  struct ir_op parent; /* 0 for the kernel's body */
  struct ir_op first, last;
  VEC(struct ir_val) args;
};

/* A named resource of the machine stage (res_kinds.def): frag, buf, pipe, ... Index 0 is none. */
enum ir_res_kind {
#define RES_KIND(id, text) IR_RES_##id,
#include "ir/res_kinds.def"
  IR_RES_KIND_COUNT
};

struct ir_res {
  enum ir_res_kind kind;
  struct sym name;
  struct ir_type type; /* dtype and tile shape; kind IR_TILE or IR_NONE */
  uint32_t layout;     /* fragments: index into module->layouts */
  uint16_t n_attrs;
  struct ir_attr *attrs;
};

enum ir_arg_kind {
  IR_ARG_IN,
  IR_ARG_OUT,
  IR_ARG_INOUT,
  IR_ARG_SCALAR,
  IR_ARG_SCRATCH, /* a tensor that the launch makes: poisoned, or zeros; its dims bind nothing */
};

struct ir_arg {
  struct sym name;
  enum ir_arg_kind kind;
  enum dtype dtype;
  uint32_t rank;
  struct expr dim[IR_MAX_RANK];
  bool optional;
  bool present; /* an optional argument may be absent in this specialization */
  bool zero;    /* SCRATCH: zeros at launch */
  struct diag_loc at;
};

/* A fact the specialization assumes about a launch symbol ("M", "A.stride0", "A.addr"):
 * symbol % divisor == 0, or symbol == value. Facts become launch checks of the variant. */
struct ir_fact {
  struct sym sym;
  bool is_value;
  int64_t n; /* divisor or value */
  struct diag_loc at;
};

struct ir_config_entry {
  struct sym key;
  enum { IR_CFG_INT, IR_CFG_NUM, IR_CFG_BOOL, IR_CFG_DTYPE, IR_CFG_STR } kind;
  int64_t i;
  double f;
  struct sym s;
};

/* Machine stage: a scalar or pointer parameter of the emitted function, with its launch value.
 * params.at[k] belongs to argument k of the entry block. Of a tensor map that argument is a pointer
 * to the map's dtype, which no op uses: ops name the resource. */
struct ir_param {
  enum recipe_param_kind kind;
  uint32_t arg; /* index into module->args for PTR and SCALAR */
  uint32_t res; /* index into module->res for TMAP */
  struct expr value;
};

/* A group of warps that run different code from the others. Machine stage: its warps follow those
 * of the role before it. */
struct ir_role {
  struct sym name;
  uint32_t warps; /* 0: all there are (then it is the only role) */
  uint32_t regs;  /* registers of each thread after set_regs; 0: as compiled */
};

/* Where the head says what, for messages; as far as known. */
struct ir_places {
  struct diag_loc kernel, dims, config, roles, grid, body;
};

struct ir_module {
  struct arena *arena;
  struct symtab *syms;
  struct expr_pool exprs;
  enum ir_stage stage;
  struct sym kernel;
  struct sym target; /* "sm_90a"; empty until chosen */
  VEC(struct ir_arg) args;
  VEC(struct sym) dims; /* named dims, in order of first appearance */
  VEC(struct ir_config_entry) config;
  VEC(struct ir_fact) facts;
  uint32_t n_grid; /* 1..IR_MAX_GRID */
  struct expr grid[IR_MAX_GRID];
  struct ir_places at;
  /* Entry block args, tile stages: one per present argument (view or scalar), then one index per
   * dim, then one index per grid axis. Machine stage: one per param. */
  struct ir_block body;
  VEC(struct ir_value) values;
  VEC(struct ir_opnode) ops;
  VEC(struct ir_blocknode) blocks;
  VEC(struct ir_loc) locs;
  VEC(struct layout *) layouts;
  VEC(struct ir_role) roles;
  VEC(struct ir_res) res;
  VEC(struct ir_param) params;
  struct recipe *recipe; /* machine stage */
};

/* build.c */
struct ir_module *ir_module_new(struct arena *a, enum ir_stage stage);
static inline struct ir_value *ir_value_at(const struct ir_module *m, struct ir_val v) {
  return &m->values.at[v.id];
}
static inline struct ir_opnode *ir_op_at(const struct ir_module *m, struct ir_op o) {
  return &m->ops.at[o.id];
}
static inline struct ir_blocknode *ir_block_at(const struct ir_module *m, struct ir_block b) {
  return &m->blocks.at[b.id];
}
static inline struct ir_type ir_type_of(const struct ir_module *m, struct ir_val v) {
  return m->values.at[v.id].type;
}
static inline const char *ir_sym(const struct ir_module *m, struct sym s) {
  return symtab_str(m->syms, s);
}

/* types.c: how many arguments there are before the scratch ones at the end, which callers may leave
 * out: passes add some. */
uint32_t ir_given_args(const struct ir_module *m);

/* types.c: the argument (index into m->args) that a view is of or a part of; false for a value that
 * is none, as an invalid module may have. */
bool ir_view_arg(const struct ir_module *m, struct ir_val view, uint32_t *arg);

struct ir_block ir_new_block(struct ir_module *m, struct ir_op parent);
struct ir_val ir_add_arg(struct ir_module *m, struct ir_block b, struct ir_type t);

/* Where the builder puts new ops: before `before` in `block`, or at its end if before is 0; `loc`
 * is given to each. */
struct ir_builder {
  struct ir_module *m;
  struct ir_block block;
  struct ir_op before;
  uint32_t loc;
};

/* Creates an op with n_out results of the given types, appended at the builder's place. Operands
 * are copied. Blocks are created empty for opcodes that own them. */
struct ir_op ir_build(struct ir_builder *b, enum ir_opcode opcode, uint32_t n_in,
                      const struct ir_val *in, uint32_t n_out, const struct ir_type *out);
/* Single-result shorthand. */
struct ir_val ir_build1(struct ir_builder *b, enum ir_opcode opcode, struct ir_type t,
                        uint32_t n_in, const struct ir_val *in);
struct ir_val ir_const_int(struct ir_builder *b, enum dtype t, int64_t value);
struct ir_val ir_const_num(struct ir_builder *b, enum dtype t, double value);
void ir_set_attr(struct ir_module *m, struct ir_op o, struct ir_attr a); /* adds or replaces */
const struct ir_attr *ir_get_attr(const struct ir_module *m, struct ir_op o, enum ir_attr_key key);
int64_t ir_attr_int(const struct ir_module *m, struct ir_op o, enum ir_attr_key key,
                    int64_t otherwise);
void ir_add_operand(struct ir_module *m, struct ir_op o, struct ir_val v);
void ir_set_res(struct ir_module *m, struct ir_op o, uint32_t n, const uint32_t *res);
uint32_t ir_add_res(struct ir_module *m, struct ir_res r);
uint32_t ir_add_loc(struct ir_module *m, struct diag_loc at, uint32_t up);
uint32_t ir_add_layout(struct ir_module *m, const struct layout *l); /* interned */
/* Unlinks an op (its results must be unused) and its nested blocks. */
void ir_remove(struct ir_module *m, struct ir_op o);
void ir_move_before(struct ir_module *m, struct ir_op o, struct ir_block block,
                    struct ir_op before);
/* Replaces every use of `from` by `to`, in the whole module (linear; passes that replace much keep
 * a substitution of their own). */
void ir_replace_uses(struct ir_module *m, struct ir_val from, struct ir_val to);
/* copy.c: copies of ops beside the originals, with all that is nested in them; operands that were
 * copied before, or that the caller put into `to` (by value id), are replaced. */
struct ir_copy {
  struct arena *scratch;
  struct ir_val *to; /* by value of the module as it was: its copy, or 0 */
  uint32_t n;
  struct ir_module *m;
};
struct ir_copy ir_copy_begin(struct ir_module *m, struct arena *scratch);
/* Where the builder builds; returns the copy. */
struct ir_op ir_copy_op(struct ir_copy *c, struct ir_builder *b, struct ir_op o);
/* All ops of a block, at the end of another. */
void ir_copy_block(struct ir_copy *c, struct ir_block from, struct ir_block to);
/* A deep copy into another arena. */
struct ir_module *ir_clone(const struct ir_module *m, struct arena *a);

/* Walks ops of a block and of all nested blocks, in order. */
typedef void (*ir_visit)(void *user, struct ir_module *m, struct ir_op o);
void ir_walk(struct ir_module *m, struct ir_block b, ir_visit fn, void *user);
#define IR_EACH_OP(m, b, o)                                                                        \
  for (struct ir_op o = ir_block_at(m, b)->first; o.id; o = ir_op_at(m, o)->next)

/* print.c: canonical text; line 1 is `kiln-ir 1 tile|scheduled|machine`. Values are numbered in
 * order of appearance; names for people and locations are printed only on request. Config, facts
 * and arguments are part of the text. */
struct ir_print_options {
  bool names;                    /* ` "acc"` after a named value */
  bool locs;                     /* ` @"file":3:5` after each op, innermost frame first */
  const struct diag_sink *files; /* for locs */
};
void ir_print(const struct ir_module *m, struct ir_print_options opt, struct strbuf *out);

/* parse.c: the exact inverse. Reports to `diags` (file index `file`), recovers per line to report
 * many errors, returns NULL if there was one. The result is not verified. */
struct ir_module *ir_parse(struct arena *a, struct diag_sink *diags, uint32_t file,
                           const char *text, size_t n);
/* Structural equality, names and locations aside. On a difference, says where. */
bool ir_equal(const struct ir_module *a, const struct ir_module *b, struct strbuf *why);
/* The same; *at: the op of a that differs first, 0 where it is the head, or b that goes on. */
bool ir_equal_at(const struct ir_module *a, const struct ir_module *b, struct strbuf *why,
                 struct ir_op *at);

/* verify.c: reports every broken rule, keyed by op, to `diags`; true if there was none. */
bool ir_verify(const struct ir_module *m, struct diag_sink *diags);

/* ---- passes (pass.c, passes.def, pass_*.c) ---- */

struct ir_pass_ctx {
  struct diag_sink *diags;
  struct arena *scratch; /* reset by the runner after each pass */
};
/* Returns false after reporting an error. *changed: whether the module differs now. */
typedef bool (*ir_pass_fn)(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed);

struct ir_pass {
  const char *name;
  ir_pass_fn fn;
  bool optional; /* it improves what is right without it */
};

/* Debug modes of the runner, parsed from the KILN_IR text ("print:after=all",
 * "print:after=cse", "roundtrip", "clone", "skip=cse", "stop-after=dce", "timing"; comma
 * separated); dump receives printed IR and timings. */
struct ir_run_options {
  const char *debug; /* NULL: none */
  void (*dump)(void *user, const char *text);
  void *user;
};
/* Runs the passes in order; verifies before the first and after each; internal error (DIAG_INTERNAL
 * with the annotated IR) if a pass breaks a rule. Returns false if anything was reported. */
bool ir_run_passes(struct ir_module *m, const struct ir_pass *passes, uint32_t n,
                   struct diag_sink *diags, const struct ir_run_options *opt);

/* The target-independent pipeline: passes.def, in order. */
const struct ir_pass *ir_tile_pipeline(uint32_t *n);

#endif
