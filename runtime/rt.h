/* The runtime: everything that touches CUDA libraries, GPUs and helper processes.
 *
 * It depends on base/ alone: it launches compiled variants by their recipe (base/recipe.h), knows
 * no Lua and no IR. CUDA's libraries are loaded at run time behind tables of functions (abi_*.h,
 * internal.h), so this builds and tests on machines without CUDA; tests put fakes behind the
 * tables.
 *
 * Rules of this header
 * - A call that can fail returns enum rt_status. Unless said otherwise every value but RT_OK comes
 *   with exactly one error diagnostic in the context's sink.
 * - A context, its devices and all that is made from them are used by one thread at a time; several
 *   contexts are independent. Nothing here is global.
 * - Memory comes from the context's allocator. `*_free` and `*_close` accept NULL.
 * - Streams are CUstream handles passed as void pointers; NULL is the legacy default stream.
 * - Bytes are bytes, strides are elements, times are microseconds. */
#ifndef KILN_RUNTIME_RT_H
#define KILN_RUNTIME_RT_H

#include "base/diag.h"
#include "base/dtype.h"
#include "base/mem.h"
#include "base/recipe.h"

enum rt_status {
  RT_OK = 0,
  RT_NO_MEMORY, /* host or device memory */
  RT_MISSING,   /* a library, GPU or function that is not there; the message says what to do */
  RT_BAD_INPUT, /* the caller's arguments do not fit */
  RT_FAILED,    /* a compilation, a helper or a driver call failed */
  RT_DEAD,      /* the device's context is unusable after an earlier fault; open a new process */
};

/* ---- ctx.c: the context --------------------------------------------------------------------- */

enum rt_worker_mode {
  RT_WORKER_OFF,  /* compile in this process (the default) */
  RT_WORKER_AUTO, /* kiln-worker beside the executable, else in process, which is then said */
  RT_WORKER_MUST, /* as AUTO, but a missing helper is an error */
};

/* All fields optional (zero). Strings are copied. */
struct rt_options {
  const char *nvrtc;       /* the NVRTC library, or its folder, to take, and no other; default:
                              env KILN_NVRTC, else the usual places */
  const char *cuda_home;   /* a toolkit root; default: env CUDA_HOME, CUDA_PATH */
  const char *private_dir; /* Kiln's own folder (".kiln"): where `make demo` unpacks wheels */
  enum rt_worker_mode worker;
  const char *worker_path;     /* the helper's path; default: beside the running executable */
  uint32_t worker_count;       /* parallel helpers for batches; 0: usable cores, at most 8 */
  uint32_t compile_timeout_ms; /* per job; 0: 120 s */
  uint64_t compile_memory;     /* address space of a helper in bytes; 0: 16 GiB */
  void (*log)(void *user, const char *text); /* progress and remarks, one line each, no newline */
  void *log_user;
};

struct rt_ctx;

/* diags must outlive the context. RT_NO_MEMORY is the one failure. Loads nothing yet. */
enum rt_status rt_ctx_new(const struct mem_alloc *mem, struct diag_sink *diags,
                          const struct rt_options *options, struct rt_ctx **out);
/* Ends helpers. Devices must be closed before. CUDA's libraries stay loaded in the process: they do
 * not support being unloaded. */
void rt_ctx_free(struct rt_ctx *ctx);

/* ---- load.c: what is installed -------------------------------------------------------------- */

enum rt_library {
  RT_LIB_CUDA,
  RT_LIB_NVRTC,
  RT_LIB_CUBLAS,
  RT_LIB_CUBLASLT,
  RT_LIB_NVML,
  RT_LIB_COUNT
};

struct rt_library_info {
  const char *name; /* "NVRTC" */
  bool loaded;
  const char *path; /* what was opened; NULL if not loaded */
  int major, minor; /* its version; 0 if it tells none */
  const char *why;  /* not loaded: what is missing and what to do; loaded: remarks or NULL */
};

/* Loads on first use. Never reports a diagnostic: for `kiln doctor`. Strings live as long as
 * ctx. */
struct rt_library_info rt_library_info(struct rt_ctx *ctx, enum rt_library lib);
/* Loads, or reports why not (K0803, K0901, K0903). */
enum rt_status rt_library_need(struct rt_ctx *ctx, enum rt_library lib);

/* ---- compile.c: CUDA C to cubin ------------------------------------------------------------- */

struct rt_compile_job {
  const char *name;           /* shown in messages; also the program's file name for NVRTC */
  const char *source;         /* NUL-terminated CUDA C, header-free */
  const char *arch;           /* "sm_90a" */
  const char *const *options; /* further NVRTC options, in order */
  uint32_t n_options;
  uint32_t timeout_ms;      /* 0: the context's */
  bool lineinfo;            /* adds -lineinfo */
  bool want_ptx;            /* also give the PTX */
  uint32_t max_spill_bytes; /* refuse (K0802) more spill stores + loads than this in a function */
  bool allow_serialized; /* do not refuse C7602 and C75xx remarks of ptxas (wgmma serialised, ...;
                               C7519, an injected fence, is never refused) */
  uint32_t allow_regs;   /* refuse more registers than this; 0: no limit */
};

struct rt_kernel_info { /* one entry function, from ptxas -v */
  const char *name;
  uint32_t regs, smem_static, stack, spill_stores, spill_loads, barriers, cmem;
};

struct rt_ptxas_remark { /* "C7510", and the line it came in */
  const char *code, *text;
};

/* Not to be copied or moved while in use: its arena points into it. */
struct rt_compiled {
  enum rt_status status;
  const void *cubin;
  size_t cubin_size;
  const char *ptx; /* NULL unless asked for */
  const char *log; /* NVRTC's whole log, "" if none */
  struct rt_kernel_info *kernels;
  uint32_t n_kernels;
  struct rt_ptxas_remark *remarks;
  uint32_t n_remarks;
  double compile_ms; /* inside NVRTC */
  int nvrtc_major, nvrtc_minor;
  bool in_process;
  struct arena arena; /* owns the above */
  struct oom_trap trap;
};

/* Compiles one job; out is filled also on failure (log, status) and must be freed. The error
 * diagnostic quotes the log's first errors. Same inputs, same cubin. */
enum rt_status rt_compile(struct rt_ctx *ctx, const struct rt_compile_job *job,
                          struct rt_compiled *out);
/* Compiles n jobs in parallel helpers (or one after the other in process); each out[i] has its own
 * status, in the order of the jobs. Returns RT_OK only if every job did. */
enum rt_status rt_compile_batch(struct rt_ctx *ctx, const struct rt_compile_job *jobs, uint32_t n,
                                struct rt_compiled *out);
void rt_compiled_free(struct rt_compiled *c);
/* The options that enter NVRTC for this job, in order, as one line: part of a variant's key. */
void rt_compile_options_text(const struct rt_compile_job *job, struct strbuf *out);
/* Reads ptxas -v lines of a log into c->kernels and c->remarks (which are allocated in
 * c->arena). */
void rt_parse_ptxas_log(struct rt_compiled *c, const char *log);

/* ---- device.c: a GPU ------------------------------------------------------------------------ */

struct rt_device_info {
  char name[128];
  char uuid[48]; /* "GPU-..." */
  char pci[20];  /* "0000:17:00.0" */
  char arch[16]; /* what to compile for: "sm_90a" for compute capability 9.0 */
  int cc_major, cc_minor;
  int sm_count;
  int max_threads_per_block, max_threads_per_sm, regs_per_sm;
  size_t smem_per_block_optin, smem_per_sm, smem_reserved;
  size_t l2_bytes, memory_bytes;
  int clock_khz, memory_clock_khz, bus_bits; /* 0 where the driver does not tell */
  int driver_version;                        /* 13000: CUDA 13.0 */
};

struct rt_device;
typedef void *rt_stream; /* a CUstream */

/* Number of GPUs; RT_MISSING with K0901 when there is no driver or no GPU. */
enum rt_status rt_device_count(struct rt_ctx *ctx, int *out);
/* Retains the primary context of GPU `ordinal`. */
enum rt_status rt_device_open(struct rt_ctx *ctx, int ordinal, struct rt_device **out);
void rt_device_close(struct rt_device *dev);
const struct rt_device_info *rt_device_info(const struct rt_device *dev);
/* An illegal access, a trap or another sticky error happened: every later call gives RT_DEAD. */
bool rt_device_is_dead(const struct rt_device *dev);
/* A stream of Kiln's own (non-blocking), made on first use; destroyed with the device. */
enum rt_status rt_device_stream(struct rt_device *dev, rt_stream *out);
/* Waits for all work of the device or of one stream; asynchronous faults surface here. */
enum rt_status rt_device_sync(struct rt_device *dev);
enum rt_status rt_stream_sync(struct rt_device *dev, rt_stream stream);
/* True while a graph capture is under way: nothing may then allocate or load. */
bool rt_stream_is_capturing(struct rt_device *dev, rt_stream stream);

/* RT_BAD_INPUT, reported, where the device does not run a kernel compiled for `target`. */
enum rt_status rt_check_target(struct rt_device *dev, const char *kernel, const char *target);
struct rt_module;
enum rt_status rt_module_load(struct rt_device *dev, const void *cubin, size_t size,
                              struct rt_module **out);
void rt_module_free(struct rt_module *m);

/* ---- buffer.c: device memory with guards ---------------------------------------------------- */

#define RT_GUARD_BYTES  4096
#define RT_POISON_FLOAT 0xff /* a NaN in every float type */
#define RT_POISON_INT   0xa5

/* A device allocation of `bytes`, with RT_GUARD_BYTES of 0xff before and after. */
struct rt_buffer;
/* `name` is used in messages (copied). The contents are undefined; bytes 0 is allowed. */
enum rt_status rt_buffer_new(struct rt_device *dev, const char *name, size_t bytes,
                             struct rt_buffer **out);
void rt_buffer_free(struct rt_buffer *b);
/* Device address of the first byte, aligned to 256 bytes at least; valid also for 0 bytes. */
void *rt_buffer_data(const struct rt_buffer *b);
size_t rt_buffer_bytes(const struct rt_buffer *b);
/* Copies; synchronous. Offsets and sizes are checked. */
enum rt_status rt_buffer_upload(struct rt_buffer *b, size_t offset, const void *src, size_t bytes);
enum rt_status rt_buffer_download(const struct rt_buffer *b, size_t offset, void *dst,
                                  size_t bytes);
/* Copies the first `bytes` bytes, which both have, within the device; asynchronous on `stream`. */
enum rt_status rt_buffer_copy(struct rt_buffer *to, const struct rt_buffer *from, size_t bytes,
                              rt_stream stream);
/* Sets every byte; asynchronous on `stream`. */
enum rt_status rt_buffer_fill(struct rt_buffer *b, unsigned char byte, rt_stream stream);
/* Fills with the poison of `t` (see RT_POISON_*). */
enum rt_status rt_buffer_poison(struct rt_buffer *b, enum dtype t, rt_stream stream);
static inline unsigned char rt_poison_byte(enum dtype t) {
  return dtype_is_float(t) ? RT_POISON_FLOAT : RT_POISON_INT;
}
/* RT_FAILED with K1002 naming the buffer, the side and the offset if a guard was written. */
enum rt_status rt_buffer_check_guards(struct rt_buffer *b);

/* ---- launch.c: launching by recipe ---------------------------------------------------------- */

/* A view of device memory, as DLPack has it. Strides are elements and may be 0 or negative. */
struct rt_tensor {
  void *data;
  enum dtype dtype;
  uint32_t rank;
  int64_t dim[RECIPE_MAX_RANK], stride[RECIPE_MAX_RANK];
};

/* One argument, in the order of recipe->args. */
struct rt_arg {
  bool absent; /* an optional argument that is not given */
  struct rt_tensor tensor;
  double f64;  /* value of a float scalar argument, rounded to its dtype */
  int64_t i64; /* value of an integer or bool scalar argument; it must fit */
};

/* Row-major strides for the dims that are set. */
void rt_tensor_contiguous(struct rt_tensor *t);
/* Bytes from the lowest to past the highest element, and the (not positive) byte offset of the
 * lowest element from data. False on overflow. Empty tensors: 0, 0. */
bool rt_tensor_extent(const struct rt_tensor *t, int64_t *low, int64_t *bytes);

struct rt_prepared;

struct rt_prepare_options {
  void *workspace; /* device memory to use; NULL: the prepared launch owns its own */
  size_t workspace_bytes;
  bool allow_overlap; /* arguments may overlap in memory (declared so by the caller) */
};

/* Binds arguments to a variant: checks dtypes, ranks, dim equalities, predicates and overlaps,
 * evaluates the recipe, sets up everything a launch needs. recipe and module must outlive the
 * result. All errors of the arguments are reported (K0404), not only the first. options may be
 * NULL. */
enum rt_status rt_prepare(struct rt_module *m, const struct recipe *recipe,
                          const struct rt_arg *args, uint32_t n_args,
                          const struct rt_prepare_options *options, struct rt_prepared **out);
/* The same prepared launch for other arguments; allocates only if the workspace must grow. On
 * failure the former binding is gone: launching is then RT_BAD_INPUT. */
enum rt_status rt_rebind(struct rt_prepared *p, const struct rt_arg *args, uint32_t n_args);
/* Enqueues all steps. No allocation, hashing or lookup; may be captured into a graph. An empty grid
 * succeeds without a launch. Several threads may launch one prepared launch (onto streams that keep
 * its workspace from being used twice at a time). */
enum rt_status rt_launch(struct rt_prepared *p, rt_stream stream);
void rt_prepared_free(struct rt_prepared *p);
/* As rt_buffer_check_guards, for a workspace that the prepared launch owns. */
enum rt_status rt_prepared_check_guards(struct rt_prepared *p);
/* What was evaluated, for messages: the grid of kernel step i (skipping memsets), false if none. */
bool rt_prepared_grid(const struct rt_prepared *p, uint32_t i, uint32_t grid[3]);
size_t rt_prepared_workspace(const struct rt_prepared *p);

/* Binding alone, without a device: checks `args` against the recipe as rt_prepare does, and gives
 * the value of any expression of the recipe. sm_count as on the device meant. For dry runs and the
 * interpreter; RT_BAD_INPUT with diagnostics like rt_prepare's. */
struct rt_bindings;
enum rt_status rt_bind(struct rt_ctx *ctx, const struct recipe *recipe, const struct rt_arg *args,
                       uint32_t n_args, int sm_count, bool allow_overlap, struct rt_bindings **out);
bool rt_bound_value(const struct rt_bindings *b, struct expr e, int64_t *value, const char **why);
void rt_bindings_free(struct rt_bindings *b);

/* ---- stats.c, timing.c, nvml.c: measuring --------------------------------------------------- */

struct rt_interval {
  double median, lo, hi; /* 95% confidence, percentile bootstrap, deterministic */
  double min;
};
/* n >= 1; reorders samples. scratch: n doubles. */
struct rt_interval rt_median_interval(double *samples, double *scratch, uint32_t n);

/* One thing to time: enqueues one run on `stream`. `round` counts up, for rotating buffers. */
struct rt_candidate {
  const char *name;
  enum rt_status (*run)(void *user, rt_stream stream, uint32_t round);
  void *user;
};

struct rt_timing_options {
  uint32_t rounds;        /* timed rounds; 0: 30 */
  uint32_t warmup;        /* untimed rounds; 0: 5 */
  uint32_t inner;         /* runs per timed stretch; 0: chosen: 1, or for graphs 20 */
  bool graph;             /* replay `inner` runs as one CUDA graph: for work under 20 us */
  bool keep_l2;           /* do not flush L2 before each timed stretch */
  uint64_t time_limit_us; /* stop adding rounds after this; 0: 10 s; at least 3 rounds are kept */
};

struct rt_timing {
  struct rt_interval us;    /* of one run */
  struct rt_interval ratio; /* time of candidate 0 / time of this one, in the same round */
  double *rounds_us;        /* one per round, in order */
};

struct rt_timing_set {
  struct rt_timing *at; /* one per candidate */
  uint32_t n, rounds, inner;
  bool graph, flushed;
  size_t bytes; /* private */
  struct rt_ctx *ctx;
};

/* Times candidates interleaved, launch by launch, in an order rotated per round. */
enum rt_status rt_time(struct rt_device *dev, const struct rt_candidate *candidates, uint32_t n,
                       const struct rt_timing_options *options, struct rt_timing_set *out);
void rt_timing_free(struct rt_timing_set *t);

struct rt_gpu_state { /* fields are -1 where NVML does not tell */
  int sm_mhz, memory_mhz, temperature_c;
  double power_w, power_limit_w;
  int64_t throttle; /* NVML's reasons mask */
};
/* RT_MISSING without a diagnostic when NVML is not there. */
enum rt_status rt_gpu_state(struct rt_device *dev, struct rt_gpu_state *out);
/* The driver's release, "580.159.04" (80 bytes are enough). False, without a diagnostic, where NVML
 * is not there. */
bool rt_driver_version(struct rt_device *dev, char *out, size_t size);
/* "sw_power_cap|hw_slowdown", "none". */
void rt_throttle_text(int64_t mask, struct strbuf *out);

/* ---- blas_host.c: double-precision references on the host ------------------------------------ */

/* C[m,n] = A[m,k] B[k,n] in double precision. a[i*as0 + l*as1], b[l*bs0 + j*bs1], c row-major.
 * OpenBLAS where found (and found right against plain loops on first use), else blocked loops. */
enum rt_status rt_host_matmul(struct rt_ctx *ctx, int64_t m, int64_t n, int64_t k, const double *a,
                              int64_t as0, int64_t as1, const double *b, int64_t bs0, int64_t bs1,
                              double *c);
/* Which one is used: "OpenBLAS (libopenblas.so.0)" or "plain loops"; lives as long as ctx. */
const char *rt_host_matmul_name(struct rt_ctx *ctx);

/* ---- random.c: inputs ------------------------------------------------------------------------ */

enum rt_fill {
  RT_FILL_NORMAL, /* sum of 12 uniforms - 6: mean 0, variance 1, times scale; exact in f64 */
  RT_FILL_SMALL,  /* integers 0..4, one-sided: sums of products are exact and large */
  RT_FILL_ZERO,
};
/* Value of element `index` of stream `seed`: depends on these alone, on every machine. */
double rt_random(enum rt_fill fill, uint64_t seed, uint64_t index);
/* Fills n elements of dtype t with rt_random(...) * scale, rounded once. */
void rt_random_fill(enum rt_fill fill, uint64_t seed, double scale, enum dtype t, void *out,
                    int64_t first, int64_t n);
/* The same values into device memory, bit for bit: made there for f64, f32, bf16, f16, s8, s32,
 * else on the host. Synchronous. */
enum rt_status rt_random_fill_device(struct rt_buffer *b, enum rt_fill fill, uint64_t seed,
                                     double scale, enum dtype t, int64_t n);

/* ---- oracle_cublas.c: cuBLAS ----------------------------------------------------------------- */

/* C = A B through cublasLt: a [M,K], b [K,N], c [M,N] with one stride 1 each (c: the inner one), so
 * all of NN, NT, TN, TT. With f32 accumulation: a and b of bf16, f16 or f32 alike, c of that type
 * or f32; a and b of e4m3 or e5m2 (each; cuBLAS wants k adjacent and one e4m3 at least), c bf16,
 * f16 or f32, in cuBLAS' precise mode. In s32: a and b s8, c s32. Never a reduction in the output
 * type; tf32 only where asked for. */
struct rt_lt_matmul;
enum rt_lt_activation { RT_LT_IDENTITY, RT_LT_RELU, RT_LT_GELU_TANH };
/* What cublasLt computes beside the product: C = activation(A B + residual + bias). All zero: the
 * product alone. Pointers must stay valid until rt_lt_free. */
struct rt_lt_options {
  bool tf32;                        /* f32 operands may enter as tf32 */
  const void *bias;                 /* device memory, N elements of c's dtype; NULL: none */
  const struct rt_tensor *residual; /* dims and dtype of c, inner stride 1; NULL: none */
  enum rt_lt_activation activation;
};
enum rt_status rt_lt_new(struct rt_device *dev, const struct rt_tensor *a,
                         const struct rt_tensor *b, const struct rt_tensor *c,
                         const struct rt_lt_options *opt, struct rt_lt_matmul **out);
/* How many algorithms the heuristic gave (1 to 8, best guess first). */
uint32_t rt_lt_count(const struct rt_lt_matmul *p);
/* Enqueues algorithm i. 0 is the accuracy baseline. */
enum rt_status rt_lt_run(struct rt_lt_matmul *p, uint32_t i, rt_stream stream);
/* Times all algorithms and returns the fastest one's index: the timing peer. */
enum rt_status rt_lt_fastest(struct rt_lt_matmul *p, uint32_t *out);
void rt_lt_free(struct rt_lt_matmul *p);

/* Double-precision product on the device; all f64 device memory, strides as in rt_host_matmul with
 * one of each pair 1, c row-major [m,n]. */
enum rt_status rt_device_matmul_f64(struct rt_device *dev, int64_t m, int64_t n, int64_t k,
                                    const void *a, int64_t as0, int64_t as1, const void *b,
                                    int64_t bs0, int64_t bs1, void *c, rt_stream stream);
/* Host in, host out: on the device where dev is given, has cuBLAS and the product is large; else
 * rt_host_matmul. */
enum rt_status rt_matmul_f64(struct rt_ctx *ctx, struct rt_device *dev, int64_t m, int64_t n,
                             int64_t k, const double *a, int64_t as0, int64_t as1, const double *b,
                             int64_t bs0, int64_t bs1, double *c);

/* matmul_f32.c: the same product with operands rounded to f32 and f32 accumulation, the accuracy
 * baseline of the error policy: cublasLt where dev is given and has it (never tf32), else host
 * loops that sum in order of k. c holds f32 values. */
enum rt_status rt_matmul_f32(struct rt_ctx *ctx, struct rt_device *dev, int64_t m, int64_t n,
                             int64_t k, const double *a, int64_t as0, int64_t as1, const double *b,
                             int64_t bs0, int64_t bs1, double *c);

/* ---- verify.c, verify_device.c: the error policy --------------------------------------------- */

enum rt_rule {
  RT_RULE_NONE,      /* passed */
  RT_RULE_UNWRITTEN, /* poison still there */
  RT_RULE_SPECIAL,   /* NaN or infinity where the reference has none, or the other way round */
  RT_RULE_EXACT,     /* bits differ in exact mode */
  RT_RULE_RATIO,     /* error over 2 x baseline + one rounding in a 128 x 128 block */
  RT_RULE_CEILING,   /* error over the a-priori bound */
  RT_RULE_MEAN,      /* mean error over 2 x the baseline's + one rounding */
  RT_RULE_BASELINE,  /* the baseline itself breaks the a-priori bound: the oracle is broken */
  RT_RULE_NOTHING,   /* neither baseline, bound nor exactness was given: nothing to judge by */
};

/* An output to judge, as a matrix (row kernels: rows x row length; higher ranks flattened). */
struct rt_verify {
  enum dtype dtype;
  int64_t rows, cols;
  const void *out; /* dtype; element (i,j) at i*out_stride[0] + j*out_stride[1] */
  int64_t out_stride[2];
  const double *ref;     /* [rows, cols] row-major, from the rounded inputs, not rounded to dtype */
  const double *base;    /* the baseline's output, same layout; NULL: no ratio rule */
  const double *bound;   /* allowed absolute error without the output's rounding (K*u*|A||B|);
                             NULL: no ceiling */
  const bool *unwritten; /* the elements that were not written, same layout as ref; NULL: told by
                            their poison, as far as that is sure */
  bool exact;            /* inputs integer-valued, every partial sum exact */
  bool row_blocks;       /* blocks of 128 whole rows instead of 128 x 128 */
};

#define RT_VERIFY_FIRST 4

struct rt_verdict {
  bool passed;
  enum rt_rule rule;                     /* the first broken rule, in the order above */
  int64_t row, col;                      /* element it was found at (the worst one), -1 if none */
  const char *place;                     /* how rt_verdict_text calls it; NULL: "[row, col]" */
  double got, want;                      /* there */
  double max_error, mean_error, max_ref; /* over all elements */
  double base_max_error;                 /* -1 without a baseline */
  double ratio;          /* worst block's max error / (baseline's max error in it), -1 without */
  double tolerance_used; /* worst share of the allowed error over all rules, 1 = at the limit */
  int64_t n_wrong;       /* elements that break the rule by themselves (exact, ceiling, special,
                            unwritten); blocks for the ratio rule */
  int64_t n_unwritten;
  uint32_t n_first; /* first elements, to look at */
  double first_got[RT_VERIFY_FIRST], first_want[RT_VERIFY_FIRST];
  bool on_device;
};

/* Pure: looks at host arrays only. */
void rt_verify(const struct rt_verify *v, struct rt_verdict *out);
/* K * u / (1 - K*u): times |A||B| it is the a-priori bound of a K-term sum with f32
 * accumulation. */
double rt_gamma(int64_t k, enum dtype accumulate);
/* One line: what was found, or by how much it passed. */
void rt_verdict_text(const struct rt_verdict *v, struct strbuf *out);
/* Every byte of a downloaded buffer that no element of `t` covers must still be the poison byte:
 * pads between rows. t->data is not read; `offset` is where element 0 lies in `bytes`. Returns the
 * offset of the first byte that changed, -1 if none, -2 without memory. */
int64_t rt_check_pads(const struct mem_alloc *mem, const struct rt_tensor *t, const void *buffer,
                      size_t bytes, size_t offset, unsigned char poison);

/* Device fast path for a plain product: judges out = A B against cublasDgemm, with the baseline
 * cublasLt and the a-priori bound, all on the device. The references are computed once per input
 * and reused by every candidate. a, b, out as in rt_lt_new. */
struct rt_gemm_oracle;
enum rt_status rt_gemm_oracle_new(struct rt_device *dev, const struct rt_tensor *a,
                                  const struct rt_tensor *b, const struct rt_tensor *out_like,
                                  bool exact, struct rt_gemm_oracle **out);
enum rt_status rt_gemm_oracle_judge(struct rt_gemm_oracle *o, const struct rt_tensor *c,
                                    struct rt_verdict *verdict);
void rt_gemm_oracle_free(struct rt_gemm_oracle *o);

#endif
