/* Kiln: a kernel-generation compiler and autotuner for NVIDIA GPUs. The public C API.
 *
 * A context holds the allocator, limits, diagnostics and the libraries that were found. A file is
 * a loaded kernel file; a variant is one kernel of it, specialised: config, constants, facts about
 * the arguments, and target chosen. From a variant: show a stage as text, interpret on the CPU,
 * compile to a cubin, launch on a GPU. A case bundles all that with inputs, an oracle and a
 * verdict.
 *
 * Every call returns a status; on anything but KILN_OK the context's diagnostics say why. No call
 * exits, aborts, installs signal handlers, or keeps global state.
 *
 * Threads: a context and what was made from it belong to one thread at a time; different contexts
 * are independent. kiln_launch on prepared launches of one context may run on several threads while
 * nothing else is done with that context; a launch that fails adds a diagnostic, through the
 * context's allocator.
 *
 * Ownership: what a *_new, *_load, *_specialise or *_prepare call gives is freed by the matching
 * *_free; strings and structs returned by pointer live as long as the object they were asked of,
 * unless said otherwise. Free in the order launch, variant, file, context: each needs the next.
 *
 * Structs that begin with struct_size may grow: zero one, set struct_size to its sizeof, then set
 * fields. A library that is older than the program refuses a larger struct (KILN_INVALID). */
#ifndef KILN_H
#define KILN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KILN_VERSION_MAJOR 0
#define KILN_VERSION_MINOR 1
#define KILN_VERSION_PATCH 0
/* Raised when a struct or function of this header changes incompatibly. */
#define KILN_ABI 1

#if defined(__GNUC__)
#define KILN_API __attribute__((visibility("default")))
#else
#define KILN_API
#endif

enum kiln_status {
  KILN_OK = 0,
  KILN_INVALID = 1,     /* the kernel, its arguments or the request are wrong: see diagnostics */
  KILN_NO_MEMORY = 2,   /* an allocation failed; a kernel's limit on memory is KILN_INVALID */
  KILN_UNAVAILABLE = 3, /* no driver, GPU, NVRTC or cuBLAS: the diagnostic says what to install */
  KILN_FAILED = 4,      /* compilation, a driver call or a file operation failed */
  KILN_WRONG = 5,       /* a result did not pass verification */
  KILN_INTERRUPTED = 6, /* the interrupt callback asked to stop */
};

/* "ok", "invalid", ... */
KILN_API const char *kiln_status_name(enum kiln_status status);
/* "0.1.0" */
KILN_API const char *kiln_version(void);

/* ---- context ---- */

enum kiln_log_level { KILN_LOG_INFO, KILN_LOG_WARNING, KILN_LOG_ERROR };

struct kiln_context_options {
  size_t struct_size; /* sizeof(struct kiln_context_options) */
  /* Allocator: new_size 0 frees; NULL return = failure. NULL = the C library's. The interpreter's
   * threads call it too, one at a time, while the call that started them waits. */
  void *(*alloc)(void *user, void *p, size_t old_size, size_t new_size);
  void *alloc_user;
  /* Progress and findings as they happen; NULL = silent. */
  void (*log)(void *user, enum kiln_log_level level, const char *text);
  void *log_user;
  /* Polled in long work; return true to stop with KILN_INTERRUPTED. NULL = never. Must be
   * async-safe with respect to the caller's own use. Called on the thread that made the call. */
  bool (*interrupted)(void *user);
  void *interrupted_user;
  /* The compile helper. NULL = compile in process. */
  const char *worker_path;
  /* A folder of private downloads (NVRTC, cuBLAS) searched besides the usual places, or NULL. */
  const char *private_dir;
  /* Limits on kernel files; 0 = default. */
  uint64_t max_steps;   /* 10^8; if given, also the ops of a run in the interpreter */
  uint64_t max_memory;  /* bytes, 256 MiB */
  uint32_t max_seconds; /* 10 */
  uint32_t max_ops;     /* 10^5 per kernel */
  uint32_t max_errors;  /* 200 */
  /* Debug modes of the pass runner ("print:after=all,roundtrip,timing,skip=cse"), or NULL; its
   * output goes to log. */
  const char *ir_debug;
};

struct kiln_context;

KILN_API enum kiln_status kiln_context_new(const struct kiln_context_options *options,
                                           struct kiln_context **out);
KILN_API void kiln_context_free(struct kiln_context *ctx);

/* Diagnostics since the last clear, oldest first. Text has the source line and a caret; JSON is one
 * object. The returned string lives until the next kiln_diag_* call. */
KILN_API uint32_t kiln_diag_count(const struct kiln_context *ctx);
KILN_API bool kiln_diag_is_error(const struct kiln_context *ctx, uint32_t i);
/* "K0404": what kind of finding it is; codes keep their meaning. "" past the end. */
KILN_API const char *kiln_diag_code(const struct kiln_context *ctx, uint32_t i);
KILN_API const char *kiln_diag_text(struct kiln_context *ctx, uint32_t i);
KILN_API const char *kiln_diag_json(struct kiln_context *ctx, uint32_t i);
/* Diagnostics that were dropped: over the limit, or memory had run out. */
KILN_API uint32_t kiln_diag_dropped(const struct kiln_context *ctx);
KILN_API void kiln_diag_clear(struct kiln_context *ctx);

/* ---- kernel files ---- */

struct kiln_file;

/* Loads and runs a kernel file (.lua) or an IR text (.tir). root: the folder that `require` reads
 * from; NULL = the file's own. */
KILN_API enum kiln_status kiln_file_load(struct kiln_context *ctx, const char *path,
                                         const char *root, struct kiln_file **out);
/* The same from memory; `name` stands in diagnostics. */
KILN_API enum kiln_status kiln_file_load_text(struct kiln_context *ctx, const char *name,
                                              const char *text, size_t n, const char *root,
                                              struct kiln_file **out);
KILN_API void kiln_file_free(struct kiln_file *file);
/* Kernels of the file, by name in byte order. */
KILN_API uint32_t kiln_file_kernel_count(const struct kiln_file *file);
KILN_API const char *kiln_file_kernel_name(const struct kiln_file *file, uint32_t i);
/* Number of the kernel's own cases; 0 for an IR text. */
KILN_API uint32_t kiln_file_case_count(const struct kiln_file *file, const char *kernel);
/* One JSON object: arguments (kind, dtype, dims), consts, tune lists, whether it has an oracle,
 * inputs, cases. Lives until the next call on this file. */
KILN_API const char *kiln_file_describe(struct kiln_file *file, const char *kernel);

/* ---- variants ---- */

/* EMU: the machine code that the variant is lowered to, on an emulator of the GPU: every mode of it
 * must leave the same bits (docs/ir.md). */
enum kiln_on { KILN_ON_INTERP, KILN_ON_GPU, KILN_ON_EMU };

/* What is asked of a kernel. Lists of "KEY=VALUE" texts as on the command line; all may be empty.
 * They replace what the case says of the same name. */
struct kiln_request {
  size_t struct_size;
  const char *kernel; /* NULL: the file's only kernel */
  const char *target; /* "sm_90a"; NULL: the GPU at hand, else sm_90a */
  /* Start from the kernel's own case, counted from 0 (0 is ignored where there are no cases); -1:
   * none, or the first if shapes is empty. */
  int32_t case_index;
  uint32_t n_set; /* meta-parameters and schedule knobs: "BM=128" */
  const char *const *set;
  uint32_t n_consts; /* "T=bf16" */
  const char *const *consts;
  uint32_t n_shapes; /* dims: "M=4096" */
  const char *const *shapes;
  uint32_t n_layouts; /* "A=row", "A=col" */
  const char *const *layouts;
  uint32_t n_strides; /* elements: "A=1,4096" */
  const char *const *strides;
  uint32_t n_scalars; /* "eps=1e-5" */
  const char *const *scalars;
  uint32_t n_absent; /* optional arguments left out: "bias" */
  const char *const *absent;
  uint64_t seed;      /* of random inputs; 0: the case's own, else 0 */
  bool lineinfo;      /* #line to the kernel file in the CUDA source */
  uint32_t n_offsets; /* elements of its allocation before an argument begins: "A=1" */
  const char *const *offsets;
  /* What cuBLAS computes beside its product where a case is timed beside it, as far as the kernel
   * does: "bias=ARG" (an argument of N elements), "residual=ARG" (of the output's shape and dtype),
   * "activation=relu" or "activation=gelu_tanh"; activation(A B + residual + bias). */
  uint32_t n_fused;
  const char *const *fused;
};

struct kiln_variant;

/* Traces and verifies; errors are the kernel's. The facts specialised on are those the request's
 * shapes, layouts and strides imply. req NULL: as if zeroed, with case_index -1. */
KILN_API enum kiln_status kiln_specialise(struct kiln_file *file, const struct kiln_request *req,
                                          struct kiln_variant **out);
KILN_API void kiln_variant_free(struct kiln_variant *v);
KILN_API const char *kiln_variant_kernel(const struct kiln_variant *v);
KILN_API const char *kiln_variant_target(const struct kiln_variant *v);
/* The variant's key: 32 hexadecimal digits over IR text, config, specialization, target, emitter
 * version, NVRTC version and options (the latter two only once NVRTC was found). Lowers if need
 * be. */
KILN_API enum kiln_status kiln_variant_key(struct kiln_variant *v, char out[33]);

/* Text of a stage: "tile", "scheduled", "machine", "schedule" (what was decided, by op), "recipe",
 * "cuda", "ptx", "sass"; NULL: "tile", or the stage of the IR text that was loaded. after: the IR
 * after that pass (NULL: all of the stage). sass needs nvdisasm. The text lives until the next call
 * on this variant. */
KILN_API enum kiln_status kiln_show(struct kiln_variant *v, const char *stage, const char *after,
                                    const char **text);

struct kiln_compile_info {
  uint32_t registers, spill_bytes, smem_bytes; /* per thread; per thread; static + dynamic */
  uint32_t threads;
  uint64_t cubin_bytes;
  double trace_ms, lower_ms, emit_ms, nvrtc_ms;
  bool in_helper; /* compiled in the helper process */
};
/* Lowers, emits, compiles through NVRTC; a kernel that spills or whose matrix instructions were
 * serialised is refused by name. Needs no GPU. */
KILN_API enum kiln_status kiln_compile(struct kiln_variant *v, struct kiln_compile_info *info);
/* The cubin of a compiled variant. */
KILN_API enum kiln_status kiln_variant_cubin(struct kiln_variant *v, const void **data, size_t *n);

/* ---- tensors and launches ---- */

/* Laid out as DLPack's DLTensor (version 1): data + byte_offset is the first element; strides in
 * elements, NULL = row-major. device_type 1 = CPU, 2 = CUDA, of which device_id is the ordinal.
 * dtype codes: 0 int, 1 uint, 2 float, 4 bfloat, 6 bool, 10 float8_e4m3fn, 12 float8_e5m2. */
struct kiln_tensor {
  void *data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t dtype_code, dtype_bits;
  uint16_t dtype_lanes;
  int64_t *shape;
  int64_t *strides;
  uint64_t byte_offset;
};

/* An argument in the kernel's order, scratch left out: a tensor (data NULL in `tensor`, or tensor
 * NULL: absent), or a scalar's value in `number`. */
struct kiln_arg {
  const struct kiln_tensor *tensor;
  double number;
};

/* Runs the variant in the interpreter on CPU tensors. exact: compute in double precision instead of
 * rounding each op to its dtype (outputs are then rounded once, when stored). */
KILN_API enum kiln_status kiln_interpret(struct kiln_variant *v, const struct kiln_arg *args,
                                         uint32_t n_args, bool exact);

struct kiln_launch;
/* Compiles and loads if need be, checks the arguments against the variant (dims, strides,
 * alignment, no overlap of an output with another argument), evaluates the launch recipe (grid,
 * parameters, shared memory, checks: what kiln_show prints as "recipe"). The tensors must stay
 * where they are while the launch is used. device: CUDA ordinal. */
KILN_API enum kiln_status kiln_prepare(struct kiln_variant *v, int device,
                                       const struct kiln_arg *args, uint32_t n_args,
                                       struct kiln_launch **out);
/* Enqueues on `stream` (a CUstream; NULL = the default stream). No allocation, hashing or
 * look-up. */
KILN_API enum kiln_status kiln_launch(struct kiln_launch *launch, void *stream);
KILN_API void kiln_launch_free(struct kiln_launch *launch);

/* ---- cases ---- */

enum kiln_level {
  KILN_LEVEL_NONE,         /* not checked */
  KILN_LEVEL_SELF_CHECKED, /* agrees with the kernel's own double-precision interpretation */
  KILN_LEVEL_VERIFIED,     /* agrees with its oracle */
};

/* What a case run found, per output. Errors are against the reference in double precision. */
struct kiln_output_report {
  const char *name;
  double max_error;      /* max |out - R| */
  double baseline_error; /* max |baseline - R|; < 0: there was no baseline */
  double max_reference;  /* max |R| */
  double tolerance_used; /* worst share of the tolerance over all blocks, 1 = at the limit */
  int64_t worst[5];      /* coordinates of the worst element */
  uint32_t rank;
  double worst_out, worst_ref;
};

struct kiln_timing {
  double us;              /* median */
  double us_low, us_high; /* 95% bootstrap interval */
  uint32_t rounds;
};

struct kiln_report {
  enum kiln_level level;
  bool exact;            /* integer-valued inputs were compared bitwise too */
  const char *reference; /* "oracle", "cublasDgemm", "double-precision interpretation" */
  const char *baseline;  /* "cuBLAS", "interpreter", or NULL */
  uint32_t n_outputs;
  const struct kiln_output_report *outputs;
  struct kiln_compile_info compile;            /* on the GPU */
  struct kiln_timing flushed, graph;           /* rounds 0: not timed */
  struct kiln_timing peer_flushed, peer_graph; /* `peer`, interleaved; rounds 0: none */
  double ratio_flushed, ratio_graph; /* peer time / our time, of the same rounds; 0: no peer */
  double ratio_low, ratio_high;      /* 95% interval of ratio_flushed */
  double flops, bytes;               /* of the case: matrix operations; least memory traffic */
  const char *bound;                 /* one line: what bounds it */
  const char *device; /* "NVIDIA H200, driver 580.159.04", "interpreter", "emulator" */
  const char *text;   /* the whole report as people read it */
  const char *json;   /* and as one JSON object */
  /* KILN_CASE_ALGEBRAIC: the stages that agreed, "as traced, after the tile passes, with loops cut
   * and merged and as scheduled", or "" where they did not; else NULL. */
  const char *algebraic;
  /* What was timed beside the kernel: "cuBLAS" for one that is one product; "copy", the driver's
   * copy within the device that moves as many bytes, for one without products; NULL: nothing. */
  const char *peer;
};

enum kiln_case_flags {
  /* Against the oracle, by the error policy. In the interpreter, kernels with merge functions once
   * more with their loops run in parts. */
  KILN_CASE_VERIFY = 1,
  KILN_CASE_EXACT = 2, /* also on integer-valued inputs, bitwise */
  KILN_CASE_TIME = 4,  /* GPU only; with KILN_CASE_PEERS beside cuBLAS or a copy: see `peer` */
  KILN_CASE_PEERS = 8,
  /* Instead of all that, in the interpreter: the kernel as traced, after the tile passes, with its
   * loops cut and merged and as scheduled, on the emulator also its machine code in every mode,
   * gives the same bits in the algebraic domain (docs/numerics.md). Inputs are made as ever, then
   * embedded. */
  KILN_CASE_ALGEBRAIC = 16,
};

/* Makes inputs (the kernel's own `inputs`, else random normal by seed), runs the case with outputs
 * poisoned and guard bands around every buffer, verifies, times. The report lives until the next
 * call on this file. Returns KILN_WRONG if verification failed (the report is filled then too). */
KILN_API enum kiln_status kiln_run_case(struct kiln_file *file, const struct kiln_request *req,
                                        enum kiln_on on, uint32_t flags,
                                        const struct kiln_report **out);

/* ---- reduction ---- */

struct kiln_reduce_options {
  size_t struct_size;
  /* Does this IR text fail as the file does? NULL: it does if loading, specialising, lowering and
   * compiling it end in an error of the same code as the file's first. It must not use the context
   * that is being reduced in. */
  bool (*fails)(void *user, const char *text, size_t n);
  /* Now and then; may be NULL. */
  void (*progress)(void *user, uint32_t lines_before, uint32_t lines_now, uint32_t tried);
  void *user;
};

/* Shrinks an IR text, or what the kernel of a kernel file traces to, while it goes on failing.
 * KILN_INTERRUPTED: *text is the smallest found so far. It lives until the next call of
 * kiln_reduce; NULL if there was nothing to reduce. */
KILN_API enum kiln_status kiln_reduce(struct kiln_context *ctx, const char *path, const char *root,
                                      const struct kiln_request *req,
                                      const struct kiln_reduce_options *options, const char **text);

/* ---- differences ---- */

/* In which numbers sides are compared (docs/numerics.md). AUTO: in those that demand the same bits:
 * rounded, on integer-valued inputs, where every sum is exact; else algebraic; else, as a GPU has
 * no algebraic domain, rounded and by the error policy. */
enum kiln_domain { KILN_DOMAIN_AUTO, KILN_DOMAIN_ROUNDED, KILN_DOMAIN_ALGEBRAIC };

struct kiln_diff_options {
  size_t struct_size;
  /* What is compared with the interpreter: bits 1 << KILN_ON_EMU and 1 << KILN_ON_GPU; 0: the
   * emulator, and the GPU where there is one. */
  uint32_t sides;
  enum kiln_domain domain;
  /* A machine IR text (its path) that runs instead of what the kernel is lowered to, or NULL: such
   * as one that kiln_show gave and somebody changed. Its first op that is not as Kiln lowers it is
   * then the op. */
  const char *machine;
  /* Before each run of the kernel: what it is for, and how many there were; may be NULL. */
  void (*progress)(void *user, const char *step, uint32_t runs);
  void *user;
};

/* The first difference, in the order of sides, outputs, elements. Texts that do not apply, or were
 * not found, are NULL. */
struct kiln_diff_report {
  bool same;
  enum kiln_on on;    /* the side that differs */
  const char *domain; /* "rounded", "rounded, by the error policy" or "algebraic" */
  const char *error;  /* instead of an element: what the side reports, such as a race */
  const char *output; /* the element: */
  uint32_t rank;
  int64_t coord[5];
  const char *expected, *found; /* the interpreter's value and the other one */
  double ulps;                  /* between them; < 0: does not apply */
  int64_t n_differ, n_elements; /* of that output */
  /* The program of the grid that writes it, and where in the tile that it stores; program[0] < 0:
   * none does. */
  int64_t program[3], tile_coord[5];
  uint32_t tile_rank;
  /* The first op whose value differs though its operands agree: its name, its label in the
   * schedule, the name of its value, its place in the kernel file. */
  const char *op, *op_label, *op_value, *op_file;
  uint32_t op_line, op_column;
  /* Its operands agree and it is a store: what is wrong is where or whether it writes. */
  bool at_store;
  const char *op_differs;    /* of a machine text: how the op differs from Kiln's own lowering */
  const char *pass;          /* the pass that makes the difference */
  bool pass_changes_meaning; /* the interpreter sees it, too */
  const char *without;       /* "cse, machine_cse": optional passes without any of which it goes */
  /* Knobs that must be above their plainest value for the difference to show ("" none, NULL not
   * known), and the plainest schedule that shows it, as --set takes it. */
  const char *needed, *plainest;
  uint32_t runs; /* of the kernel, on any side */
  const char *text, *json;
};

/* Compares what the kernel leaves behind in the interpreter, on the emulator and on the GPU, and,
 * where that differs, looks for the element, tile, op, pass and knobs. KILN_WRONG: it differs (and
 * *out is filled). The report lives until the next call on this file. */
KILN_API enum kiln_status kiln_diff(struct kiln_file *file, const struct kiln_request *req,
                                    const struct kiln_diff_options *options,
                                    const struct kiln_diff_report **out);

/* ---- environment ---- */

/* What was found and what is missing: driver, GPUs, NVRTC, cuBLAS, NVML, OpenBLAS, helper, folders.
 * Lives until the next call on this context. KILN_OK even where things are missing. */
KILN_API enum kiln_status kiln_doctor(struct kiln_context *ctx, bool json, const char **text);

/* The kernel language as text: a Lua file that tells editors (the Lua language server) its
 * functions and types, or the tables of docs/reference.md. Lives until the next call on this
 * context. */
enum kiln_language { KILN_LANGUAGE_STUBS, KILN_LANGUAGE_REFERENCE };
KILN_API enum kiln_status kiln_describe_language(struct kiln_context *ctx, enum kiln_language form,
                                                 const char **text);

#ifdef __cplusplus
}
#endif
#endif
