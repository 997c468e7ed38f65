/* What the files of api/ share: the objects behind kiln.h and the steps between them.
 *
 * Every public call that may allocate runs its body under api_guarded: an arena's trap turns a failed
 * allocation into KILN_NO_MEMORY, and objects own nothing outside their arenas but the handles that
 * their *_free releases. */
#ifndef KILN_API_API_H
#define KILN_API_API_H

#include "base/diag.h"
#include "base/num.h"
#include "codegen/cg.h"
#include "frontend/fe.h"
#include "ir/interp.h"
#include "ir/ir.h"
#include "runtime/rt.h"

#include <kiln.h>

struct api_object { /* an arena with its trap, and the context */
  struct kiln_context *ctx;
  struct arena arena;
  struct oom_trap trap;
};

struct kiln_context {
  struct mem_alloc mem;
  struct kiln_context_options opt;
  const char *worker_path, *private_dir, *ir_debug; /* copies, in `own` */
  struct api_object own;                            /* what lives as long as the context */
  struct api_object shown; /* the text last returned by a kiln_diag_* call or kiln_doctor */
  struct diag_sink diags;
  struct rt_ctx *rt;        /* made on first use */
  struct rt_device *device; /* ordinal 0, opened on first use */
};

struct kiln_file {
  struct api_object own;
  struct api_object shown; /* description or report last returned */
  struct api_object work;  /* emptied after each call */
  char *root;
  struct fe_file *fe;             /* a kernel file, or */
  struct ir_module *tir;          /* an IR text */
  struct api_oracle_call *oracle; /* judge.c: while an oracle runs */
};

struct kiln_variant {
  struct api_object own, shown;
  struct kiln_file *file;
  const struct cg_target *target;
  struct cg_schedule schedule;
  struct ir_module *tile;    /* after the tile passes */
  struct ir_module *traced;  /* as traced or parsed */
  struct ir_module *machine; /* NULL until lowered */
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
/* Runs fn(user) under o's trap: KILN_NO_MEMORY (and a diagnostic) where memory ran out. */
enum kiln_status api_guarded(struct api_object *o, enum kiln_status (*fn)(void *user), void *user);
enum kiln_status api_from_rt(enum rt_status st);
/* The runtime context, made on first use. */
enum kiln_status api_runtime(struct kiln_context *ctx, struct rt_ctx **out);
enum kiln_status api_device(struct kiln_context *ctx, struct rt_device **out);
/* As api_device, but quiet where there is none: *out NULL. */
void api_device_if_any(struct kiln_context *ctx, struct rt_device **out);
void api_log(struct kiln_context *ctx, enum kiln_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool api_interrupted(void *ctx);
#define API_ERROR(ctx, id, ...)                                                                    \
  diag_report(&(ctx)->diags, DIAG_ERROR, DIAG_##id, DIAG_NOWHERE, __VA_ARGS__)
double api_now_ms(void);
/* sb_put that reports running out of memory instead of leaving through the trap: for code that holds
 * something to be released. */
bool api_try_append(struct strbuf *out, const char *text, size_t n);
/* The status of a failure that reported diagnostics: KILN_INTERRUPTED, KILN_NO_MEMORY (running out of
 * memory, not a limit), else KILN_INVALID. since: the number of diagnostics before. */
enum kiln_status api_failure_since(struct kiln_context *ctx, uint32_t since);

/* ---- request.c: a request resolved against a kernel ---- */

struct api_dim {
  const char *name;
  int64_t value;
  bool known;
};

/* An argument with its shape and place. Strides in elements. */
struct api_arg {
  const char *name;
  enum ir_arg_kind kind;
  enum dtype dtype;
  bool absent;
  uint32_t rank; /* 0: scalar */
  int64_t dim[IR_MAX_RANK], stride[IR_MAX_RANK];
  double number; /* scalars */
};

struct api_problem {
  struct kiln_file *file;
  const struct fe_kernel *kernel; /* NULL for an IR text */
  const char *name;
  struct fe_config config;
  struct cg_schedule schedule;
  struct api_arg *args;
  uint32_t n_args;
  struct api_dim *dims;
  uint32_t n_dims;
  bool shaped; /* every dim has a value, so args have shapes and strides */
  uint64_t absent;
  uint64_t seed;
};

/* Allocates in `a`. need_shape: a dim without a value is an error. */
bool api_resolve(struct kiln_file *file, const struct kiln_request *req, bool need_shape,
                 struct arena *a, struct api_problem *out);
/* expr_lookup over a problem's dims. */
bool api_dim_lookup(void *problem, const char *name, int64_t *value);
const struct cg_target *api_pick_target(struct kiln_context *ctx, const char *name);

/* ---- variant.c ---- */

/* Traces (or takes the IR text), verifies and runs the tile passes. */
enum kiln_status api_variant_new(const struct api_problem *p, const struct cg_target *target,
                                 bool lineinfo, struct kiln_variant **out);
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
/* Everything to the poison of the dtype, guards included. */
void api_image_poison(struct api_image *im, const struct api_arg *arg);
int64_t api_elements(const struct api_arg *arg);
/* Dense row-major doubles into the image (rounding once) and out of it. */
void api_image_store(struct api_image *im, const struct api_arg *arg, const double *dense);
void api_image_load(const struct api_image *im, const struct api_arg *arg, double *dense);
/* Reports and returns false if a guard, or a byte that belongs to no element, changed. */
bool api_image_check(struct kiln_context *ctx, const struct api_image *im,
                     const struct api_arg *arg);
struct rt_tensor api_rt_tensor(const struct api_arg *arg, void *origin);

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
/* Whether integer-valued inputs give exact results in any order of summation. */
bool api_is_exact(const struct ir_module *m);

/* The matrix products of the oracle under way (fe_host.matmul). */
bool api_oracle_matmul(struct kiln_file *file, const struct fe_matmul *mm);

/* ---- report.c ---- */

/* Fills bound, text and json. dev: NULL on the interpreter. */
void api_report_text(struct kiln_report *r, const struct api_problem *p,
                     const struct kiln_variant *v, struct rt_device *dev, struct arena *a);

#endif
