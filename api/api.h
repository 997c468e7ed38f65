/* What the files of api/ share: the objects behind kiln.h and the steps between them.
 *
 * Every public call that may allocate runs its body under api_guarded: an arena's trap turns a
 * failed allocation into KILN_NO_MEMORY, and objects own nothing outside their arenas but the
 * handles that their *_free releases. */
#ifndef KILN_API_API_H
#define KILN_API_API_H

#include "base/diag.h"
#include "base/num.h"
#include "codegen/cg.h"
#include "frontend/fe.h"
#include "ir/interp.h"
#include "ir/merge.h"
#include "ir/ir.h"
#include "runtime/rt.h"

#include <kiln.h>

#include <locale.h>

struct api_object { /* an arena with its trap, and the context */
  struct kiln_context *ctx;
  struct arena arena;
  struct oom_trap trap;
};

struct kiln_context {
  struct mem_alloc mem;
  locale_t c_locale; /* in which numbers are read and written, whatever the program's is */
  struct kiln_context_options opt;
  const char *worker_path, *private_dir, *ir_debug; /* copies, in `own` */
  struct api_object own;                            /* what lives as long as the context */
  struct api_object shown;   /* the text last returned by a kiln_diag_* call or kiln_doctor */
  struct api_object reduced; /* what kiln_reduce last returned */
  struct diag_sink diags;
  struct rt_ctx *rt;        /* made on first use */
  struct rt_device *device; /* ordinal 0, opened on first use */
  const char *no_device;    /* why there is none, once that is known */
};

struct kiln_file {
  struct api_object own;
  struct api_object shown; /* description or report last returned */
  struct api_object work;  /* emptied after each call */
  char *root;
  struct fe_file *fe;             /* a kernel file, or */
  struct ir_module *tir;          /* an IR text */
  struct api_oracle_call *oracle; /* judge.c: while an oracle runs */
  struct api_memo *memo;          /* pick.c: configs chosen before, or NULL */
  char printed[1000];             /* a line that the kernel file prints, so far */
  size_t n_printed;
};

struct kiln_variant {
  struct api_object own, shown;
  struct kiln_file *file;
  const struct cg_target *target;
  struct cg_schedule schedule;
  /* Not given: 1, through memory and to L2 where they cannot be. */
  bool split_by_rule, cluster_by_rule, stream_by_rule;
  const char *picked;        /* how its config was chosen, lines; NULL: it was given */
  struct ir_module *tile;    /* after the tile passes */
  struct ir_module *traced;  /* as traced or parsed */
  struct ir_module *machine; /* NULL until lowered */
  struct ir_module *asked;   /* machine as it was asked for, where the compiled one spares more */
  const char *cuda;          /* NULL until emitted */
  bool lineinfo;
  bool compiled;
  struct rt_compiled cubin;
  struct rt_module *module; /* loaded on file->ctx->device */
  struct kiln_compile_info info;
};

/* ---- context.c ---- */

void api_object_init(struct api_object *o, struct kiln_context *ctx);
void api_object_free(struct api_object *o);
/* Runs fn(user) in the C locale under o's trap: KILN_NO_MEMORY (and a diagnostic) where memory ran
 * out. */
enum kiln_status api_guarded(struct api_object *o, enum kiln_status (*fn)(void *user), void *user);
enum kiln_status api_from_rt(enum rt_status st);
/* The runtime context, made on first use. */
enum kiln_status api_runtime(struct kiln_context *ctx, struct rt_ctx **out);
enum kiln_status api_device(struct kiln_context *ctx, struct rt_device **out);
/* As api_device, but where there is none that is no failure: *out NULL, and ctx->no_device says
 * why. KILN_NO_MEMORY is the one failure. */
enum kiln_status api_device_if_any(struct kiln_context *ctx, struct rt_device **out);
/* 0.0 where there is no NVRTC; fails only for want of memory. */
enum kiln_status api_nvrtc_version(struct kiln_context *ctx, int *major, int *minor);
void api_log(struct kiln_context *ctx, enum kiln_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool api_interrupted(void *ctx);
/* A line that a kernel prints: to the log, control characters as \xNN. */
void api_print_line(void *ctx, const char *line);
void api_print(struct kiln_context *ctx, const char *line, size_t n);
#define API_ERROR(ctx, id, ...)                                                                    \
  diag_report(&(ctx)->diags, DIAG_ERROR, DIAG_##id, DIAG_NOWHERE, __VA_ARGS__)
double api_now_ms(void);
/* sb_put that reports running out of memory instead of leaving through the trap: for code that
 * holds something to be released. */
bool api_try_append(struct strbuf *out, const char *text, size_t n);
/* Reports it. */
enum kiln_status api_no_memory(struct kiln_context *ctx);
/* The status of a failure that reported diagnostics since the mark: KILN_INTERRUPTED,
 * KILN_NO_MEMORY (running out of memory, not a limit), else KILN_INVALID. Counts, as the list may
 * be full. */
struct api_mark {
  uint32_t n_no_memory, n_interrupted;
};
struct api_mark api_mark(const struct kiln_context *ctx);
enum kiln_status api_failure_since(const struct kiln_context *ctx, struct api_mark since);

/* ---- request.c: a request resolved against a kernel ---- */

struct api_dim {
  const char *name;
  int64_t value;
  bool known;
  bool asked; /* by the request, not the case */
};

/* An argument with its shape and place. Strides in elements. */
struct api_arg {
  const char *name;
  enum ir_arg_kind kind;
  enum dtype dtype;
  bool absent;
  uint32_t rank; /* 0: scalar */
  int64_t dim[IR_MAX_RANK], stride[IR_MAX_RANK];
  int64_t offset; /* of the least address in its allocation */
  double number;  /* scalars */
};

/* What nobody gave and the cost model chose. */
struct api_pick {
  int64_t split_k;     /* 0: it says nothing */
  bool split_cluster;  /* of that */
  int64_t stream_axis; /* -1: none */
  const char *text;    /* what was chosen, why, and what else there was; NULL: all was given */
};

struct api_fused { /* argument indices, -1: none */
  int bias, residual;
  enum rt_lt_activation activation;
};

struct api_problem {
  struct kiln_file *file;
  const struct fe_kernel *kernel; /* NULL for an IR text */
  const char *name;
  const char *text;               /* "kernel `k` (case 1)" */
  struct fe_config config, fixed; /* fixed: what was given; the others are FE_NONE */
  struct api_pick pick;
  struct cg_schedule schedule;
  struct api_arg *args;
  uint32_t n_args;
  struct api_dim *dims;
  uint32_t n_dims;
  const char *target; /* asked for, or NULL */
  bool shaped;        /* every dim has a value, so args have shapes and strides */
  uint64_t absent;
  uint64_t seed;
  struct api_fused fused; /* what cuBLAS is to compute beside its product */
};

/* The caller's request as this library knows it: fields that an older program lacks get their
 * defaults. NULL: all defaults. False: made by a newer program, or struct_size was not set. */
bool api_request(struct kiln_context *ctx, const struct kiln_request *req,
                 struct kiln_request *out);
/* Allocates in `a`. need_shape: a dim without a value is an error. */
bool api_resolve(struct kiln_file *file, const struct kiln_request *req, bool need_shape,
                 struct arena *a, struct api_problem *out);
/* expr_lookup over a problem's dims. */
bool api_dim_lookup(void *problem, const char *name, int64_t *value);
enum kiln_status api_pick_target(struct kiln_context *ctx, const char *name,
                                 const struct cg_target **out);

/* ---- pick.c ---- */

/* Replaces the first legal meta-parameters of a resolved, shaped problem by the cheapest, as
 * modelled for the target; what was given stays. Everything is in `a`, whose trap is set. */
enum kiln_status api_pick_config(struct api_problem *p, const struct cg_target *target,
                                 struct arena *a);
void api_pick_free(struct kiln_file *file);
/* The class of a size, for choices by size: its last member, of at most 4 significant bits. */
int64_t api_size_class(int64_t n);
/* expr_lookup over a problem's dims, which gives classes. */
bool api_class_lookup(void *problem, const char *name, int64_t *value);

/* ---- file.c ---- */

/* Appends the whole of a regular file; false: *error says why not. */
bool api_read_file(const char *path, struct strbuf *out, const char **error);
/* Whether a file of this name and text is an IR text. */
bool api_is_tir(const char *name, const char *text, size_t n);

/* ---- variant.c ---- */

/* What the problem's kernel traces to, verified, with the facts that its shapes imply; it lives in
 * `a`. NULL, reported, on failure. */
struct ir_module *api_trace(const struct api_problem *p, struct arena *a);
/* Traces (or takes the IR text), verifies and runs the tile passes. */
enum kiln_status api_variant_new(const struct api_problem *p, const struct cg_target *target,
                                 bool lineinfo, struct kiln_variant **out);
/* A variant that is a machine module alone, which must outlive it. */
enum kiln_status api_variant_of_machine(struct kiln_file *file, const struct cg_target *target,
                                        const struct ir_module *machine, struct kiln_variant **out);
/* Whether what the variant was made from is at most at stage `last`; else reports that `what` needs
 * that. Kernel files give tile IR, IR texts may hold any stage. */
bool api_stage_upto(const struct kiln_variant *v, enum ir_stage last, const char *what);
enum kiln_status api_lower(struct kiln_variant *v);
enum kiln_status api_emit(struct kiln_variant *v);
enum kiln_status api_compile(struct kiln_variant *v);
/* Loads the cubin on the context's device. */
enum kiln_status api_load(struct kiln_variant *v);
struct ir_run_options api_run_options(struct kiln_context *ctx);

/* ---- disasm.c ---- */

/* Appends what nvdisasm says of a cubin. KILN_UNAVAILABLE where nvdisasm is not found. */
enum kiln_status api_disassemble(struct kiln_context *ctx, const void *cubin, size_t n,
                                 struct strbuf *out);

/* ---- data.c: host images of arguments ---- */

/* The memory of one tensor as the kernel sees it: guards, pads and elements. */
struct api_image {
  unsigned char *memory; /* RT_GUARD_BYTES, bytes, RT_GUARD_BYTES */
  size_t bytes;          /* between the guards */
  size_t origin;         /* byte offset of element (0,0,..) in them */
};
bool api_image_new(struct kiln_context *ctx, struct arena *a, const struct api_arg *arg,
                   struct api_image *out);
/* Bytes from the start of the allocation to element (0,0,..), and of the whole: false: more than
 * memory can hold. */
bool api_image_extent(const struct api_arg *arg, int64_t *origin, int64_t *bytes);
/* Everything to the poison of the dtype, guards included. */
void api_image_poison(struct api_image *im, const struct api_arg *arg);
/* All between the guards to another byte than the poison, and back to what it was before: `kept` is
 * what the first gave. */
unsigned char *api_image_other_poison(struct api_image *im, const struct api_arg *arg,
                                      struct arena *a);
void api_image_restore(struct api_image *im, const unsigned char *kept);
/* Drops the marks of elements that do not consist of the poison (other: of the other one); marks
 * are in row-major order. Returns how many are left. */
int64_t api_image_mark_poison(const struct api_image *im, const struct api_arg *arg, bool other,
                              bool *marks);
int64_t api_elements(const struct api_arg *arg);
/* Whether two elements share memory. Its reach must have been found to fit into memory. */
bool api_overlaps_itself(const struct api_arg *arg, struct arena *a);
/* A scalar argument's value as an integer: 0 for float dtypes. It must be in range. */
int64_t api_scalar_int(enum dtype t, double number);
/* Dense row-major doubles into the image (rounding once) and out of it. */
void api_image_store(struct api_image *im, const struct api_arg *arg, const double *dense);
void api_image_load(const struct api_image *im, const struct api_arg *arg, double *dense);
/* The elements' bytes, unconverted, dense and row-major. */
void api_image_pack(const struct api_image *im, const struct api_arg *arg, void *dense);
/* KILN_WRONG, reported, if a guard or a byte that belongs to no element changed. */
enum kiln_status api_image_check(struct kiln_context *ctx, const struct api_image *im,
                                 const struct api_arg *arg);
/* ---- dense.c: dense arrays of arguments ---- */

/* What elements are held as: floats in the algebraic domain as s64 payloads. */
enum dtype api_dense_dtype(const struct api_arg *arg, enum interp_domain domain);
size_t api_dense_bytes(const struct api_arg *arg, enum interp_domain domain);
/* The input rounded to the dtype, or embedded; NULL: poison. */
void *api_dense_new(const struct api_arg *arg, enum interp_domain domain, const double *input,
                    struct arena *a);
/* Equal values, or both NaN. */
bool api_dense_same(const struct api_arg *arg, enum interp_domain domain, const void *x,
                    const void *y, int64_t i);
/* Memory with the argument's strides: element (0, 0, ..) is number `origin` of it. */
struct api_placed {
  void *memory;
  size_t bytes;
  int64_t origin;
  enum dtype dtype;
};
struct api_placed api_dense_place(const struct api_arg *arg, enum interp_domain domain, void *dense,
                                  struct arena *a);
void api_dense_fetch(const struct api_arg *arg, const struct api_placed *p, void *dense);

struct rt_tensor api_rt_tensor(const struct api_arg *arg, void *origin);
/* launch.c: of arguments, one for each of the module's, those that its recipe takes: scratch is the
 * launch's own. out: room for all; may be args. Returns their number. */
uint32_t api_recipe_args(const struct ir_module *m, const struct rt_arg *args, struct rt_arg *out);

static inline bool api_is_tensor(const struct api_arg *arg) {
  return arg->kind != IR_ARG_SCALAR && !arg->absent;
}
static inline bool api_is_read(const struct api_arg *arg) {
  return api_is_tensor(arg) && arg->kind != IR_ARG_OUT;
}
static inline bool api_is_written(const struct api_arg *arg) {
  return api_is_tensor(arg) && (arg->kind == IR_ARG_OUT || arg->kind == IR_ARG_INOUT);
}

/* ---- inputs.c ---- */

struct api_inputs {
  struct api_image *images; /* per argument */
  double **values;          /* per argument: dense, as rounded; NULL for pure outputs */
};
/* Takes the memory, or reports why the case cannot be had. referenced: outputs will be held in
 * double, too. */
enum kiln_status api_inputs_new(const struct api_problem *p, bool referenced, struct arena *a,
                                struct api_inputs *out);
/* Fills values, and images with outputs poisoned. small: integers from 0 to 4 where the kernel does
 * not say otherwise. */
enum kiln_status api_inputs_make(const struct api_problem *p, struct api_inputs *in, bool small,
                                 struct arena *a);
/* Is every input a whole number? */
bool api_inputs_whole(const struct api_problem *p, const struct api_inputs *in);

/* ---- judge.c: references and verdicts ---- */

/* A matrix product that the oracle asked for, in terms of the kernel's arguments where it can be
 * told. */
struct api_matmul {
  int64_t m, n, k;
  int a, b; /* argument indices, -1 unknown */
  bool a_trans, b_trans;
};

struct api_reference {
  double **ref;   /* per argument: dense doubles, NULL where not an output */
  double **base;  /* baseline outputs, rounded to the dtype; NULL: none */
  double **bound; /* a-priori bound; NULL: none */
  const char *source, *baseline;
  enum kiln_level level;
  struct api_matmul *matmuls;
  uint32_t n_matmuls;
};

/* inputs: dense doubles per argument (as rounded to the dtype). module: for self-checks. */
enum kiln_status api_reference_make(const struct api_problem *p, const struct ir_module *module,
                                    double **inputs, struct arena *a, struct api_reference *out);
/* Whether integer-valued inputs give exact results in any order of summation, with one rounding at
 * most: at the store. */
bool api_is_exact(const struct ir_module *m, struct arena *a);

/* ---- peer.c: what a case is timed beside ---- */

struct api_peer {
  const char *name;
  struct rt_lt_matmul *plan; /* cuBLAS */
  uint32_t algorithm;
  struct rt_buffer *to, *from; /* cuBLAS: its result in `to`; copy: both */
  size_t bytes;
};

/* Reads what the request wants fused; false after an error. */
bool api_read_fused(struct kiln_context *ctx, const struct kiln_request *req,
                    struct api_problem *p);
/* cuBLAS for a kernel whose oracle is one product of two of its arguments: false where it has no
 * such operation, with an error or, where there is no such product, without. */
bool api_peer_product(struct api_peer *peer, struct rt_device *dev, const struct api_problem *p,
                      struct ir_module *tile, const struct rt_arg *args,
                      const struct api_reference *ref);
/* A copy that reads and writes as many bytes as the kernel must: what the memory gives. */
bool api_peer_copy(struct api_peer *peer, struct rt_device *dev, double bytes);
/* One run, as rt_time wants it; user: the peer. */
enum rt_status api_peer_run(void *user, rt_stream stream, uint32_t round);
void api_peer_free(struct api_peer *peer);

/* The matrix products of the oracle under way (fe_host.matmul). */
bool api_oracle_matmul(struct kiln_file *file, const struct fe_matmul *mm);

/* ---- emulate.c ---- */

/* Runs the variant's machine module on the emulator, in each of its modes, on the images' memory,
 * which the args point into; KILN_WRONG, reported, where modes leave different bits. print: what
 * the kernel prints goes to the log, once. */
enum kiln_status api_emulate(const struct api_problem *p, const struct kiln_variant *v,
                             const struct interp_arg *args, struct api_image *images, bool print,
                             struct arena *a);

/* ---- algebra.c ---- */

/* Runs the case in the algebraic domain at each stage that tile IR goes through and compares
 * outputs to the bit; emulate: also the variant's machine module on the emulator, in each mode.
 * inputs: as for references. *agreed: what agreed, as people read it; "" with KILN_WRONG, after a
 * report. */
enum kiln_status api_compare_algebraic(const struct api_problem *p, const struct kiln_variant *v,
                                       double **inputs, bool emulate, struct arena *a,
                                       const char **agreed);

/* ---- report.c ---- */

/* Fills bound, text and json. dev: NULL where no GPU took part. */
void api_report_text(struct kiln_report *r, const struct api_problem *p,
                     const struct kiln_variant *v, struct rt_device *dev, struct arena *a);

#endif
