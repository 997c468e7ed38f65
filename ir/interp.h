/* The interpreter of tile IR: the definition of what a kernel means.
 *
 * It runs a verified module of the tile or scheduled stage, one program of the grid after the
 * other, on tensors in host memory. It knows nothing of threads, layouts or memory spaces: what a
 * lowering may do is whatever gives these results. docs/numerics.md states the policy per op.
 *
 * Three domains. ROUNDED: each op computes as its dtype does and rounds to it. DOUBLE: float values
 * are kept in double and never rounded on the way (casts between float types only saturate where
 * the type does); integers are exact in both. Inputs are read as they lie in memory, so both
 * domains see the same rounded inputs; in DOUBLE a float argument may also be given as an f64
 * array, which is how unrounded outputs are received. ALGEBRAIC: float values are payloads:
 * integers modulo 2^64 on which sums and products are exact, so that two ways to compute the same
 * thing agree bit for bit or differ (docs/numerics.md has the laws); every float argument is then
 * an s64 array of payloads. */
#ifndef KILN_IR_INTERP_H
#define KILN_IR_INTERP_H

#include "ir/ir.h"

/* Element (i0, i1, ...) lies at element offset + sum(i_k * stride_k) of `data`. Strides are in
 * elements and may be 0 or negative; negative ones need an offset (or data inside the buffer).
 * 4-bit types are packed two to a byte, so their offset counts nibbles from `data`. */
struct interp_tensor {
  void *data; /* NULL: an absent optional argument, or a tensor without elements */
  enum dtype dtype;
  uint32_t rank;
  int64_t dim[IR_MAX_RANK], stride[IR_MAX_RANK];
  int64_t offset;
};

/* The value of module argument k; not read where that is scratch, which the run makes. A scalar
 * takes i (integer or bool dtype) or f (float dtype; it is rounded to the dtype in every domain, as
 * the launch would). */
struct interp_arg {
  struct interp_tensor tensor;
  int64_t i;
  double f;
};

enum interp_domain { INTERP_ROUNDED, INTERP_DOUBLE, INTERP_ALGEBRAIC };

/* The payload of a number: whole numbers below 2^63 are themselves, others a hash of their bits
 * with their sign. */
int64_t interp_embed(double x);
#define INTERP_MINUS_INF INT64_MIN
#define INTERP_PLUS_INF  INT64_MAX
#define INTERP_NAN       (INT64_MAX - 1)

/* Who writes an element: argument and coordinates are given, the rest says who wrote it last. */
#define INTERP_WATCH_LOOPS 8
struct interp_watch {
  uint32_t arg; /* index of the module argument */
  int64_t coord[IR_MAX_RANK];
  bool found;
  struct ir_op op;                       /* a store, scatter or atomic */
  int64_t program[IR_MAX_GRID];          /* coordinates in the grid */
  int64_t cell;                          /* of the value that it wrote, in row-major order */
  uint32_t n_loops;                      /* for and while around it */
  int64_t iteration[INTERP_WATCH_LOOPS]; /* of the outer ones, outermost first, from 0 */
};

struct interp_options {
  enum interp_domain domain;
  uint64_t grid_seed; /* 0: programs in order, the first axis fastest; else shuffled by the seed */
  /* Report (DIAG_RACE) elements that two programs store to, elements that one program stores to or
   * changes atomically and another loads or stores to, in whatever order they ran, and elements
   * that one scatter writes twice. Costs 28 bytes per touched element of each written tensor. */
  bool check_races;
  /* With check_races: report (DIAG_UNWRITTEN) accesses that read an element of an out argument or
   * of scratch without zeros before anything was written to it. */
  bool check_unwritten;
  /* Not 0: every loop that may be cut (ir/merge.h) runs in parts, chosen by the seed, which are
   * then merged. The results are the same but for the order of sums: to the bit on integers and in
   * the algebraic domain. */
  uint64_t cut_seed;
  struct interp_watch *watch; /* or NULL; programs then run one after the other */
  uint32_t threads;           /* 0: as many as processors; results do not depend on it */
  uint64_t max_steps;         /* ops executed over all programs; 0: no limit (DIAG_STEP_LIMIT) */
  /* Asked every few milliseconds; true stops the run (DIAG_INTERRUPTED). May be NULL. */
  bool (*interrupted)(void *user);
  /* Receives what `print` ops print: one line, without the newline. May be NULL. */
  void (*print)(void *user, const char *line);
  void *user;
};

/* A tensor with row-major strides. */
struct interp_tensor interp_dense(void *data, enum dtype t, uint32_t rank, const int64_t *dim);

/* Binds dims to the tensors' shapes, checks every shape expression and fact about dims, evaluates
 * the grid and runs every program. args: one per module argument, in order. Facts about strides and
 * addresses are the mapping's business and are not checked. Returns false after reporting an error
 * to `diags`; outputs may then be partly written. After races the run goes on to its end. */
bool interp_run(const struct ir_module *m, const struct interp_arg *args, uint32_t n_args,
                const struct interp_options *opt, struct diag_sink *diags,
                const struct mem_alloc *mem);

#endif
