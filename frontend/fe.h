/* The frontend towards api/: kernel files in, tile IR out.
 *
 * fe_load parses a kernel file and runs it once; the result is a list of kernel descriptions and a
 * Lua state kept for what needs it later: `legal`, tracing, `inputs`, `oracle`. A file is used by
 * one thread at a time; different files are independent. Errors go to the host's diagnostic sink,
 * many at once; a function that returns false or NULL has reported at least one error. Texts and
 * arrays reachable from a `struct fe_file` live until fe_free. */
#ifndef KILN_FRONTEND_FE_H
#define KILN_FRONTEND_FE_H

#include "ir/ir.h"

#define FE_MAX_ARGS 64

/* A zero field takes its default. */
struct fe_limits {
  int64_t steps;   /* calls, statements, iterations, and elements in library calls: 10^8 */
  size_t memory;   /* bytes of the Lua state, and again of the traced module: 256 MiB */
  double seconds;  /* wall clock of one call; only ever aborts: 10 */
  uint32_t ops;    /* ops of one traced kernel: 10^5 */
  size_t c_stack;  /* bytes of C stack that recursion in Lua may take: 512 KiB */
  size_t host_mem; /* bytes of host arrays alive at once in inputs() and oracle(): 8 GiB */
};

struct fe_matmul {
  int64_t m, n, k;
  const double *a, *b;
  int64_t a_row, a_col, b_row, b_col;
  double *c;
};

/* What the embedding program provides. Copied by fe_load; `diags` and what the callbacks need must
 * outlive the file. */
struct fe_host {
  const struct mem_alloc *mem;
  struct diag_sink *diags; /* its max_errors is the limit on errors */
  struct fe_limits limits;
  /* The kernel root as shown in messages, "" or "kernels": `require "a.b"` is root/a/b.lua
   * there. */
  const char *root;
  /* Appends the text of the file at `path` ("a/b.lua", relative to the kernel root; it never leaves
   * the root) to *text. False: no such file, or *error says what went wrong. May be NULL: require
   * then fails. */
  bool (*read_module)(void *user, const char *path, struct strbuf *text, const char **error);
  /* What `print` of plain values writes while a kernel file runs, newline included. May be NULL. */
  void (*print)(void *user, const char *text, size_t n);
  /* Polled now and then; true abandons the call with DIAG_INTERRUPTED. May be NULL. */
  bool (*interrupted)(void *user);
  /* c[m,n] = a[m,k] . b[k,n], double, c row-major. Strides in elements: a[i,p] is
   * a[i * a_row + p * a_col]; one of the two is 1, so a transposed operand is not copied and an
   * argument's own array reaches the callback. May be NULL (a plain blocked loop runs); false: it
   * failed (and reported why). */
  bool (*matmul)(void *user, const struct fe_matmul *mm);
  void *user;
};

/* A plain value of a config, const, schedule or case. Numbers with no fraction are FE_INT. */
enum fe_value_kind { FE_NONE, FE_INT, FE_NUM, FE_BOOL, FE_DTYPE, FE_STR };
struct fe_value {
  enum fe_value_kind kind;
  int64_t i; /* INT, BOOL, DTYPE (enum dtype) */
  double f;  /* NUM */
  const char *s;
};
/* "128", "0.5", "true", "bf16", "\"text\"". */
void fe_value_print(struct fe_value v, struct strbuf *out);
bool fe_value_eq(struct fe_value a, struct fe_value b);

struct fe_named {
  const char *name;
  struct fe_value value;
};

/* A list to choose from: `const` (by the caller) or `tune` (by the tuner). */
struct fe_choice {
  const char *name;
  bool is_const;
  bool open; /* the list ends in `any`: every value of the first one's kind will do */
  const struct fe_value *values;
  uint32_t n_values;
};

struct fe_arg {
  const char *name;
  enum ir_arg_kind kind;
  bool optional;
  bool zero;                    /* scratch: zeros at launch */
  enum dtype dtype;             /* when dtype_const is NULL */
  const char *dtype_const;      /* name of the const that gives the dtype */
  uint32_t rank;                /* 0 for scalars */
  struct expr dim[IR_MAX_RANK]; /* over kernel->exprs: symbols are dim names */
  const char *dim_text[IR_MAX_RANK];
  struct diag_loc loc;
};

struct fe_case_stride {
  const char *arg;
  uint32_t n;
  int64_t at[IR_MAX_RANK]; /* elements */
};

/* `cases[i]`: what `kiln test` runs, and `kiln run` with no --shape (the first one). */
struct fe_case {
  const struct fe_named *shape; /* dim name -> FE_INT */
  uint32_t n_shape;
  const struct fe_named *consts;
  uint32_t n_consts;
  const struct fe_named *set; /* tune values, instead of the default config's */
  uint32_t n_set;
  const struct fe_named *schedule; /* over the kernel's; flattened as there */
  uint32_t n_schedule;
  const struct fe_named *layout; /* argument -> FE_STR "row" or "col" */
  uint32_t n_layout;
  const struct fe_case_stride *stride;
  uint32_t n_stride;
  const struct fe_named *offset; /* argument -> FE_INT, elements */
  uint32_t n_offset;
  const struct fe_named *scalars; /* scalar argument -> number */
  uint32_t n_scalars;
  const char *const *absent; /* optional arguments left out */
  uint32_t n_absent;
  int64_t seed; /* 0 if not given */
  struct diag_loc loc;
};

struct fe_kernel {
  const char *name; /* its key in the file's table, otherwise its `name` */
  struct diag_loc loc;
  const struct fe_arg *args;
  uint32_t n_args;
  const char *const *dims; /* named dims, in order of first appearance in args */
  uint32_t n_dims;
  const struct fe_choice *choices; /* sorted by name in byte order */
  uint32_t n_choices;
  const struct fe_named *schedule; /* nested tables are flattened: "load.A.pipe" */
  uint32_t n_schedule;
  const struct fe_case *cases;
  uint32_t n_cases;
  bool has_legal, has_inputs, has_oracle;
  struct expr_pool *exprs;
  uint32_t index; /* position in the file's list */
};

struct fe_file;

/* kernel.c: `name` is shown in messages. NULL if anything was reported as an error. */
struct fe_file *fe_load(const struct fe_host *host, const char *name, const char *text, size_t n);
void fe_free(struct fe_file *f); /* NULL is fine */
uint32_t fe_kernel_count(const struct fe_file *f);
/* In byte order of their names. */
const struct fe_kernel *fe_kernel_at(const struct fe_file *f, uint32_t i);
/* NULL name: the file's only kernel. Reports which kernels there are if it is not found. */
const struct fe_kernel *fe_find_kernel(struct fe_file *f, const char *name);
const struct fe_arg *fe_find_arg(const struct fe_kernel *k, const char *name);

/* ---- config (config.c) ---- */

/* One value per kernel->choices, same order. */
struct fe_config {
  struct fe_value *at;
  uint32_t n;
};

/* First value of each list; if `legal` refuses it, the first legal one (names in byte order, the
 * last varying fastest) that keeps the consts. Values are in the arena `a`. `fixed` (may be NULL)
 * are entries that the caller set already (FE_NONE: free): they are kept. */
bool fe_default_config(struct fe_file *f, const struct fe_kernel *k, struct arena *a,
                       const struct fe_config *fixed, struct fe_config *out);
/* A config with nothing set, to be filled by fe_set_config and passed on as `fixed`. */
struct fe_config fe_empty_config(const struct fe_kernel *k, struct arena *a);
/* Sets from text: "BM=128", or several "BM=128,BN=64". `which`: FE_SET_TUNE accepts tune names with
 * any value of the list's kind, FE_SET_CONST const names with a value of their list. A const named
 * like a dim is the dim's value: the caller sets it from the shape. `origin` is how
 * messages call the text: "--set", "--const". */
enum fe_set { FE_SET_TUNE, FE_SET_CONST };
bool fe_set_config(struct fe_file *f, const struct fe_kernel *k, struct arena *a, enum fe_set which,
                   const char *origin, const char *text, struct fe_config *config);
/* The same from a value (cases). */
bool fe_set_value(struct fe_file *f, const struct fe_kernel *k, struct arena *a, enum fe_set which,
                  const char *origin, const char *name, struct fe_value v,
                  struct fe_config *config);
/* Quiet: FE_ILLEGAL reports nothing, FE_FAILED reported an error. */
enum fe_legal { FE_LEGAL, FE_ILLEGAL, FE_FAILED };
enum fe_legal fe_is_legal(struct fe_file *f, const struct fe_kernel *k,
                          const struct fe_config *config);
/* Reports DIAG_CONFIG with the config's values if `legal` refuses it. */
bool fe_check_config(struct fe_file *f, const struct fe_kernel *k, const struct fe_config *config);
/* "BK=64 BM=128 T=bf16". */
void fe_config_print(const struct fe_kernel *k, const struct fe_config *config, struct strbuf *out);
const struct fe_value *fe_config_get(const struct fe_kernel *k, const struct fe_config *config,
                                     const char *name);
/* The dtype an argument has under a config. */
enum dtype fe_arg_dtype(const struct fe_kernel *k, const struct fe_config *config,
                        const struct fe_arg *arg);

/* ---- tracing (trace.c) ---- */

/* symbol % n == 0, or symbol == n: "M", "A.stride0", "A.addr" (see ir_fact). */
struct fe_fact {
  const char *sym;
  bool is_value;
  int64_t n;
};

struct fe_trace_options {
  const struct fe_config *config;
  uint64_t absent; /* bit per argument index: optional arguments left out */
  const struct fe_fact *facts;
  uint32_t n_facts;
};

/* The kernel's tile IR for a config, in arena `a` (whose trap must be set). Verified by the caller.
 * Facts that follow from the description (a dim named like a const, "K/128") are added. NULL if
 * anything was reported as an error. */
struct ir_module *fe_trace(struct fe_file *f, const struct fe_kernel *k,
                           const struct fe_trace_options *opt, struct arena *a);

/* ---- inputs() and oracle() (dsl_oracle.c) ---- */

/* A dense row-major array of doubles; rank 0 is a scalar. data NULL: absent. */
struct fe_array {
  uint32_t rank;
  int64_t dim[IR_MAX_RANK];
  double *data;
};

struct fe_problem {
  const struct fe_config *config;
  expr_lookup dim; /* value of a dim by name */
  void *dim_user;
  uint64_t absent;
  /* Round each element of every result (partial results too) to f32: the oracle as an unfused
   * single-precision composition, which is the baseline of the error policy. */
  bool single;
};

/* Dims of an argument. Reports SHAPE_BINDING and returns false where a dim has no value. */
bool fe_arg_shape(struct fe_file *f, const struct fe_kernel *k, const struct fe_arg *arg,
                  const struct fe_problem *p, int64_t dim[IR_MAX_RANK]);

/* Calls inputs(shape, rng) with a generator seeded by `seed`. For each argument that it returned,
 * fills arrays[arg index].data (allocated: shape as fe_arg_shape says, the caller set rank and
 * dims) and sets its bit in *given; other arrays stay as they are. */
bool fe_inputs(struct fe_file *f, const struct fe_kernel *k, const struct fe_problem *p,
               uint64_t seed, struct fe_array *arrays, uint64_t *given);
/* Calls oracle(t, d, c). arrays: one per argument; `in` and `inout` ones are read (borrowed, never
 * changed), results of `out` and `inout` arguments are written to results[arg index].data. */
bool fe_oracle(struct fe_file *f, const struct fe_kernel *k, const struct fe_problem *p,
               const struct fe_array *arrays, struct fe_array *results);

/* ---- the language as text (dsl_text.c) ---- */

/* A Lua file for the Lua language server; docs/reference.md. */
void fe_language_stubs(struct strbuf *out);
void fe_language_reference(struct strbuf *out);

/* ---- modules (lib_file.c) ---- */

/* For fe_host.read_module: appends root/path to *text. false: there is no such file, or *error says
 * why it is not read: it lies outside the root (a symbolic link), is no plain file, or has more
 * than FE_MODULE_MAX bytes. `root` NULL or "": the current folder. */
#define FE_MODULE_MAX (4u << 20)
bool fe_read_module(const char *root, const char *path, struct strbuf *text, const char **error);

#endif
