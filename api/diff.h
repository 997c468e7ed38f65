/* What the files of kiln_diff share (api/diff*.c).
 *
 *   diff.c         the sides, inputs and domain; the order of the steps; the public call
 *   diff_run.c     runs one module on one side
 *   diff_compare.c the first element that differs
 *   diff_search.c  the first op whose value differs, by taps (ir/tap.h)
 *   diff_pass.c    the pass that a difference comes with
 *   diff_knob.c    the knobs that a difference needs
 *   diff_text.c    the report
 *
 * A step gives a kiln_status only where the whole must stop: interrupted, out of memory, no device.
 * That a module cannot be lowered or fails where it runs is a verdict. */
#ifndef KILN_API_DIFF_H
#define KILN_API_DIFF_H

#include "api/api.h"
#include "codegen/emu.h"
#include "ir/tap.h"

/* The passes that lead from what was traced to machine code: the product's, or a test's. */
struct diff_pipelines {
  const struct ir_pass *tile, *lowering;
  uint32_t n_tile, n_lowering;
};

enum diff_state {
  DIFF_SAME,
  DIFF_DIFFERS,
  DIFF_FAILS,   /* an error where it ran: a race, a wrong address, .. */
  DIFF_UNKNOWN, /* it could not be run: no lowering, over a limit */
};

/* The first element that differs (by the error policy: the worst one). */
struct diff_element {
  uint32_t arg;
  int64_t number; /* row-major */
  int64_t coord[IR_MAX_RANK];
  int64_t n_differ, n_elements;
  char want[40], got[40]; /* as people read them */
  double ulps;            /* between them; < 0: does not apply */
  char rule[240];         /* the rule of the error policy that it breaks, or "" */
};

struct diff_verdict {
  enum diff_state state;
  enum diag_id id;     /* FAILS, UNKNOWN: of the first error, */
  char why[480];       /* what it says, */
  struct diag_loc loc; /* and where */
  struct diff_element at;
};

/* A module and what it runs on. Arguments are those of the problem, then taps'. */
struct diff_job {
  const struct ir_module *m; /* of the tile or scheduled stage; not INTERP: it is lowered first */
  const struct api_arg *args;
  uint32_t n_args;
  double **inputs; /* per argument: dense, NULL for outputs */
  enum kiln_on on;
  enum interp_domain domain;
  uint32_t emu_run;                   /* which interleaving */
  const struct cg_schedule *schedule; /* not INTERP */
  const char *debug;                  /* modes of the pass runner, or NULL */
  struct interp_watch *watch;         /* INTERP: or NULL */
  bool checks;                        /* INTERP: report races and reads of what nobody wrote */
  const struct ir_module *machine;    /* not INTERP: what runs, instead of lowering m; or NULL */
  bool keep; /* a failure is one of the whole: its diagnostics stay, its status is returned */
};

/* What outputs are expected to be: bits and, where they are judged by the error policy, values in
 * double precision. By argument; NULL where it is no output. */
struct diff_values {
  void **bits;
  double **exact;
};

/* Where an op runs: a program of the grid, and the iterations of the loops around it. */
struct diff_place {
  int64_t program[IR_MAX_GRID];
  uint32_t n_loops;
  int64_t iteration[IR_TAP_LOOPS];
};

/* The op that a difference comes from. */
struct diff_origin {
  bool found;
  const char *op, *label, *value; /* "dot"; "dot.2" or NULL; the value's name or NULL */
  struct diag_loc loc;
  const char *differs; /* a machine text: how it differs from the lowering there */
  bool is_store;       /* the op is one: no value of its own */
  bool at_store;       /* the values that it stores are the same: what it leaves in memory is not */
  struct diff_place place;
  struct diff_element at; /* of its value */
  int64_t tile_dim[IR_MAX_RANK];
  uint32_t tile_rank;
  const char *unseen; /* values before it that could not be compared, and why, or NULL */
};

struct diff_knob {
  const char *name;
  int64_t given, plain, value; /* value: the plainest that still shows the difference */
  bool needed;                 /* with a plainer one it goes */
  bool stuck;                  /* plainer ones could not be tried */
};

struct diff {
  struct kiln_file *file;
  struct kiln_context *ctx;
  const struct kiln_request *req;
  struct diff_pipelines pipes;
  void (*progress)(void *user, const char *step, uint32_t runs);
  void *user;
  struct arena *a;
  uint32_t runs; /* so far */

  struct api_problem p;
  struct kiln_variant *v;
  const struct ir_module *traced, *tile; /* before and after the tile passes */
  struct kiln_file *given_file;          /* a machine text that runs instead, or NULL */
  const struct ir_module *given;
  bool own_agrees; /* Kiln's own lowering does what is expected */

  /* The side that is compared with the interpreter. */
  enum kiln_on on;
  enum interp_domain domain;
  bool by_policy;
  uint32_t emu_run;
  struct api_inputs in;
  struct diff_values want;

  /* What is open on the GPU while a job runs there. */
  struct kiln_variant *on_gpu;
  struct rt_buffer **buffers;
  uint32_t n_buffers;
  struct rt_prepared *prepared;

  /* Findings. */
  struct diff_verdict first;
  const char *agreed; /* "emulator (rounded)": the sides that agree, or NULL */
  struct interp_watch writer;
  bool has_writer;
  int64_t writer_dim[IR_MAX_RANK]; /* of the tile that it writes */
  uint32_t writer_rank;
  const char *writer_op;
  struct diag_loc writer_loc;
  const char *pass;            /* or NULL */
  bool pass_of_interpretation; /* what the kernel means changed with it */
  const char *without;         /* optional passes without which the difference goes, or NULL */
  struct diff_origin origin;
  struct diff_knob *knobs;
  uint32_t n_knobs;
  const char *plainest; /* "stages=2,group=1", or NULL: not bisected */
  bool any_schedule;    /* the plainest schedule of all shows it */
  const char *no_knobs; /* why they were not bisected, or NULL */
};

/* ---- diff_run.c ---- */

/* *out: by argument what is in outputs then, in d->a; undefined where the verdict is not SAME,
 * which says here that it ran. Diagnostics of the job are taken away. */
enum kiln_status diff_run(struct diff *d, const struct diff_job *job, void ***out,
                          struct diff_verdict *verdict);
/* A job on the problem's own arguments. */
struct diff_job diff_job_of(const struct diff *d, const struct ir_module *m, enum kiln_on on);
/* What the interpreter makes of a job, in the domain and, by the policy, in double precision. */
enum kiln_status diff_expect(struct diff *d, const struct diff_job *job, struct diff_values *out,
                             struct diff_verdict *verdict);
/* Runs the tile module on the other side and compares. */
enum kiln_status diff_probe(struct diff *d, const struct cg_schedule *schedule, const char *debug,
                            struct diff_verdict *verdict);
/* Takes diagnostics from number n on away and makes a verdict of them; a status where the failure
 * is no verdict. */
enum kiln_status diff_take_failure(struct diff *d, struct api_mark before, uint32_t n,
                                   enum diff_state state, struct diff_verdict *verdict);
void diff_release(struct diff *d);
void diff_step(struct diff *d, const char *what);
/* Nothing runs on the GPU any more. */
static inline bool diff_is_lost(const struct diff *d) {
  return d->on == KILN_ON_GPU && d->ctx->device && rt_device_is_dead(d->ctx->device);
}
static inline bool diff_is_bad(const struct diff *d, const struct diff_verdict *v) {
  return v->state == d->first.state && (v->state != DIFF_FAILS || v->id == d->first.id);
}

/* ---- diff_compare.c ---- */

/* Compares what argument number i is with what it is to be; false: it differs, *at says where.
 * exact: by the error policy, in double precision. */
bool diff_compare_arg(const struct diff *d, const struct api_arg *arg, uint32_t i, const void *want,
                      const double *exact, const void *got, struct diff_element *at);
/* The problem's outputs, in order. */
bool diff_compare(const struct diff *d, const struct diff_values *want, void **got,
                  struct diff_element *at);

/* ---- diff_search.c ---- */

/* The op of `got` whose value differs though what it is made of does not, going back from `start`,
 * a store. want: the module that `got` is compared with, in the interpreter; on: where got runs;
 * pair[value of got] = value of want, 0: none. */
struct diff_search {
  const struct ir_module *want, *got;
  enum kiln_on on;
  const struct ir_val *pair;
  struct ir_op start;
  struct diff_place place;
};
enum kiln_status diff_find_origin(struct diff *d, const struct diff_search *s,
                                  struct diff_origin *out);

/* ---- diff_pass.c ---- */

/* Interprets the kernel after each pass up to machine code: d->pass, and where it is one of those
 * the op; else the op on the other side, and which optional passes are needed. */
enum kiln_status diff_find_pass(struct diff *d);
/* The same for a machine text that was given: its op that is not as the kernel is lowered. */
enum kiln_status diff_find_line(struct diff *d);

/* ---- diff_knob.c ---- */

enum kiln_status diff_find_knobs(struct diff *d);

/* ---- diff_text.c ---- */

void diff_report(const struct diff *d, const char *domain, struct kiln_diff_report *out,
                 struct arena *a);

/* ---- diff.c ---- */

/* kiln_diff with passes of the caller's. */
enum kiln_status diff_case(struct kiln_file *file, const struct kiln_request *req,
                           const struct kiln_diff_options *options,
                           const struct diff_pipelines *pipes, const struct kiln_diff_report **out);

#endif
