/* Code generation: tile IR to machine IR to CUDA C, for one target and one schedule.
 *
 *   tile module + facts + schedule --cg_lower--> machine module with its launch recipe
 *   machine module                 --cg_emit---> CUDA C
 *
 * Everything allocates from the caller's arena (set a trap on it first); nothing here is global.
 * The passes between the stages are listed in pipeline_portable.c; each has a name for
 * `--after`. */
#ifndef KILN_CODEGEN_CG_H
#define KILN_CODEGEN_CG_H

#include "ir/ir.h"

/* ---- targets (targets.c, targets.def, gpus.def) ---- */

enum cg_feature {
  CG_CP_ASYNC = 1, /* cp.async, wait_group */
  CG_LDMATRIX = 2, /* ldmatrix, mma.sync m16n8k16 for f16 and bf16 */
  CG_FP8_MMA = 4,  /* mma.sync m16n8k32 for e4m3 and e5m2 */
  CG_TMA = 8,      /* bulk tensor copies, mbarrier transactions, clusters */
  CG_WGMMA = 16,   /* warpgroup matrix instructions */
  CG_SETMAXNREG = 32,
  CG_TCGEN05 = 64,
};

struct cg_target {
  const char *name;            /* "sm_90a": NVRTC's --gpu-architecture */
  uint32_t cc_major, cc_minor; /* compute capability it runs on */
  bool exact;                  /* runs on that capability alone (the `a` targets) */
  uint32_t smem_per_block;     /* bytes a block may opt in to */
  uint32_t smem_per_sm;        /* bytes of an SM for all its blocks */
  uint32_t smem_reserved;      /* bytes the system takes per block */
  uint32_t regs_per_sm;        /* 32-bit registers */
  uint32_t max_regs_per_thread;
  uint32_t max_threads_per_sm, max_blocks_per_sm;
  uint32_t features;                 /* enum cg_feature */
  uint32_t nvrtc_major, nvrtc_minor; /* first NVRTC that knows it */
};

/* A GPU model as sold: what a cost model or a report needs beyond the target. */
struct cg_gpu {
  const char *name;   /* as the driver names it, without the vendor */
  const char *target; /* the best target for it */
  uint32_t sm_count;
  uint32_t l2_bytes;
  uint32_t dram_gbps; /* nominal memory bandwidth, 10^9 bytes/s */
};

uint32_t cg_target_count(void);
const struct cg_target *cg_target_at(uint32_t i);
/* NULL if unknown. */
const struct cg_target *cg_find_target(const char *name);
/* The best target that runs on a device of this compute capability, or NULL. */
const struct cg_target *cg_target_for_device(uint32_t cc_major, uint32_t cc_minor);
/* "sm_80, sm_86, ..." for messages. */
void cg_list_targets(struct strbuf *out);
/* Does the target's mma.sync for operands of this dtype (8-bit floats) keep fewer bits of sums than
 * f32 has? sm_90 and sm_100 make it of conversions to f16, whose sums are f32's. */
bool cg_mma_sums_short(const struct cg_target *t, enum dtype operand);
uint32_t cg_gpu_count(void);
const struct cg_gpu *cg_gpu_at(uint32_t i);
/* SMs of the largest GPU model of a target; 0: none is known. */
uint32_t cg_target_sms(const struct cg_target *t);
/* The largest GPU model of a target, of these the one of the highest bandwidth; NULL: none. */
const struct cg_gpu *cg_target_gpu(const struct cg_target *t);
/* By the driver's device name (a vendor prefix is skipped), or NULL. */
const struct cg_gpu *cg_find_gpu(const char *name);

/* ---- schedule (schedule.c, knobs.def) ---- */

#define CG_AUTO (-1) /* a knob left to the rule */

enum cg_knob {
#define KNOB(id, text, min, max, meaning) CG_KNOB_##id,
#include "codegen/knobs.def"
  CG_KNOB_COUNT
};

/* The short vector of knobs: what a kernel's `schedule = {...}`, `--set` or a tuner gives. The rule
 * (pass_fill_schedule.c) resolves it into the module's config as entries "schedule.<knob>". */
struct cg_schedule {
  int64_t knob[CG_KNOB_COUNT]; /* CG_AUTO or a value */
  const struct cg_pin *pins;   /* fields of single ops, fixed by an expert (pins.def) */
  uint32_t n_pins;
};

/* "load.A.path" = "staged", "loop.slots" = 3: a label of an op (pass_apply_pins.c), a field, and a
 * word or (word NULL) a number. Whether there is such an op is known when the kernel is lowered. */
struct cg_pin {
  const char *key;
  const char *word;
  int64_t number;
};

struct cg_schedule cg_schedule_auto(void);
/* A copy whose pins lie in `a`. */
struct cg_schedule cg_schedule_copy(const struct cg_schedule *s, struct arena *a);
/* Pins a field of an op; key and word are kept in `a`. */
void cg_schedule_pin(struct cg_schedule *s, struct cg_pin pin, struct arena *a);
/* Is there such a knob? For callers that tell knobs from meta-parameters by name. */
bool cg_is_knob(const char *key);
/* Sets a knob by name. On failure says what is legal in *error (kept in `a`) and returns false. */
bool cg_schedule_set(struct cg_schedule *s, const char *key, int64_t value, struct arena *a,
                     const char **error);
/* The next step of the knob `spare`, for a kernel that spilled; false: there is none. */
bool cg_spare_more(struct cg_schedule *s);
/* Are two lowered modules the same but for what that knob says? */
bool cg_is_same_kernel(struct ir_module *a, struct ir_module *b);

/* ---- facts (facts.c) ---- */

/* An actual argument, for specialisation; one per module argument, in order. */
struct cg_arg_value {
  bool present;  /* scalars: ignored */
  uint64_t addr; /* address of element 0 */
  int64_t dim[IR_MAX_RANK];
  int64_t stride[IR_MAX_RANK]; /* elements */
};

/* Adds to m->facts what the lowering can use and these arguments satisfy: unit strides, and for
 * dims, strides and addresses the class of divisibility (a power of two, at most 256 for dims;
 * enough for 16-byte accesses for strides and addresses; strides below 0 get none). Dims of extent
 * 1 give their stride no meaning and get no fact. Facts of the module that are already there stay.
 * Two argument lists of one class give the same facts, so the number of variants is bounded. */
void cg_facts_from_args(struct ir_module *m, const struct cg_arg_value *args);

/* ---- a rule that needs sizes (pass_split_loops.c) ---- */

/* What the knob `split_k` should be where it is open: as long as programs of the grid leave half of
 * the SMs idle, and the parts of the main loop are at least 8 iterations, twice as many parts, up
 * to 16. tile: after the tile pipeline, merge ops in it. 1 where the loop may not be split, or
 * where its range is known on the device alone. */
int64_t cg_split_rule(struct ir_module *tile, expr_lookup look_up, void *user, uint32_t sm_count,
                      struct arena *a);

/* ---- lowering (lower.c, pipeline_portable.c) ---- */

struct cg_options {
  const struct cg_target *target;
  struct cg_schedule schedule;
  enum ir_stage stop;               /* IR_SCHEDULED_STAGE: stop before machine IR; else machine */
  const struct ir_run_options *run; /* debug modes of the pass runner, or NULL */
  const struct ir_pass *passes;     /* others than cg_pipeline's, n_passes of them; NULL: those */
  uint32_t n_passes;
};

/* Lowers a copy of `tile` (which stays as it is). Returns NULL after reporting to `diags`. The
 * result is verified; at the machine stage its recipe is filled and every limit of the target is
 * kept. */
struct ir_module *cg_lower(const struct ir_module *tile, const struct cg_options *opt,
                           struct arena *a, struct diag_sink *diags);
/* The schedule record of a scheduled module: knobs, then loops, loads, dots and stores by label,
 * nested as in the kernel, with what was decided about each. */
void cg_print_schedule(const struct ir_module *m, struct strbuf *out);
/* The passes that cg_lower runs, in order (names for `--after`). */
const struct ir_pass *cg_pipeline(uint32_t *n);

/* ---- cost model (cost_model.c) ---- */

/* Microseconds of one launch, as modelled, and what they are made of; parts overlap. */
struct cg_cost {
  const char
      *why; /* why the model says nothing, a phrase that starts with `it` or `its`; or NULL */
  double us;
  int64_t programs, split_k; /* programs: tiles times parts */
  bool split_cluster;        /* the parts of a tile are blocks of a cluster */
  int64_t stream_axis;       /* of operands that are read once and that L2 cannot keep; -1: none */
  double waves;              /* programs over SMs */
  double matrix_us, l2_us, dram_us;
  double ends_us;  /* of iterations and programs, what they begin and end with */
  double merge_us; /* parts of split loops */
};

/* The cost of a kernel (tile: after the tile pipeline, merge ops in it) under a schedule, at the
 * sizes that look_up knows; an open `split_k` is the cheapest, in a cluster or not. What cannot be
 * lowered is reported to `diags`, too: a caller that tries drops that. */
struct cg_cost cg_model_cost(struct ir_module *tile, const struct cg_options *opt,
                             const struct cg_gpu *gpu, expr_lookup look_up, void *user,
                             struct arena *a, struct diag_sink *diags);

/* ---- emission (machine_check.c, emit_cuda.c) ---- */

struct cg_emit_options {
  bool lineinfo;                 /* #line to the kernel file; a variant of its own */
  const struct diag_sink *files; /* names for lineinfo */
};

/* Reports what a machine module asks of its target (a known one) that it does not have: units,
 * shared memory, clusters. What cg_lower gives passes. */
bool cg_check_machine(const struct ir_module *m, struct diag_sink *diags);
/* Has the module what emission needs, a recipe that launches a kernel? Texts may lack it. */
bool cg_has_launch(const struct ir_module *m);
/* CUDA C of a verified machine module that has a launch: deterministic, header-free. */
void cg_emit(const struct ir_module *m, struct cg_emit_options opt, struct strbuf *out);

#endif
