/* Helpers of the interpreter's tests: kernels built by hand in few lines, and runs of them. */
#ifndef KILN_TESTS_HELP_INTERP_H
#define KILN_TESTS_HELP_INTERP_H

#include "help_rt.h"
#include "ir/interp.h"

#define HI_MAX_ARGS 8

/* One kernel under construction, later its arguments. Call order: hi_init, hi_tensor / hi_scalar,
 * hi_begin, ops, hi_end, hi_bind / hi_bind_scalar, hi_run, hi_free. */
struct hi {
  struct help_arena mem;
  struct ir_module *m;
  struct ir_builder b;
  struct diag_sink diags;
  struct ir_val arg[HI_MAX_ARGS]; /* entry values, valid from hi_begin on; absent: id 0 */
  struct ir_val dim[HI_MAX_ARGS], grid[3];
  struct interp_arg value[HI_MAX_ARGS];
  struct interp_options opt;
};

void hi_init(struct hi *h);
void hi_free(struct hi *h);

/* dims: "M,K" or "M,K//128" or "4"; plain names become dims of the module. */
uint32_t hi_tensor(struct hi *h, const char *name, enum ir_arg_kind kind, enum dtype t,
                   const char *dims);
uint32_t hi_scalar(struct hi *h, const char *name, enum dtype t);
/* grid: "cdiv(M, 16),1". */
void hi_begin(struct hi *h, const char *grid);
/* Ends the body and verifies the module: a test that builds an invalid one fails. */
void hi_end(struct hi *h);

/* Ops. Result types follow from the operands. */
struct ir_val hi_op1(struct hi *h, enum ir_opcode op, struct ir_val a);
struct ir_val hi_op2(struct hi *h, enum ir_opcode op, struct ir_val a, struct ir_val b);
struct ir_val hi_op3(struct hi *h, enum ir_opcode op, struct ir_val a, struct ir_val b,
                     struct ir_val c);
struct ir_val hi_index(struct hi *h, int64_t v);
struct ir_val hi_num(struct hi *h, enum dtype t, double v);
struct ir_val hi_cast(struct hi *h, enum dtype t, struct ir_val a);
struct ir_val hi_splat(struct hi *h, struct ir_val scalar, uint32_t rank, const int64_t *dim);
struct ir_val hi_full(struct hi *h, enum dtype t, double v, int64_t rows, int64_t cols);
struct ir_val hi_iota(struct hi *h, int64_t axis, int64_t n);
/* broadcast, reshape */
struct ir_val hi_shape(struct hi *h, enum ir_opcode op, struct ir_val a, uint32_t rank,
                       const int64_t *dim);
struct ir_val hi_wide(struct hi *h, struct ir_val a, int64_t rows, int64_t cols); /* broadcast */
struct ir_val hi_transpose(struct hi *h, struct ir_val a, const int64_t *perm);
struct ir_val hi_reduce(struct hi *h, enum ir_opcode op, struct ir_val a, int64_t axis);
struct ir_val hi_load(struct hi *h, uint32_t arg, const struct ir_val *at, const int64_t *dim);
void hi_store(struct hi *h, uint32_t arg, const struct ir_val *at, struct ir_val tile);
/* Rank 1 and 2 shorthands. */
struct ir_val hi_load1(struct hi *h, uint32_t arg, struct ir_val at, int64_t n);
struct ir_val hi_load2(struct hi *h, uint32_t arg, struct ir_val i, struct ir_val j, int64_t rows,
                       int64_t cols);
void hi_store1(struct hi *h, uint32_t arg, struct ir_val at, struct ir_val tile);
void hi_store2(struct hi *h, uint32_t arg, struct ir_val i, struct ir_val j, struct ir_val tile);
void hi_set_pad(struct hi *h, struct ir_val loaded, double pad);
/* An op without result whose message is text; n operands. */
void hi_message(struct hi *h, enum ir_opcode op, const char *text, uint32_t n,
                const struct ir_val *in);

/* Nested blocks. hi_for enters the body: index and carried values are its arguments. hi_if enters
 * the first block. hi_yield ends the open block: of a `for`, and of an `if`'s second, it leaves the
 * op; of an `if`'s first it enters the second. hi_while enters the condition block, hi_condition
 * ends it and enters the body, whose hi_yield leaves. */
struct ir_op hi_for(struct hi *h, struct ir_val lo, struct ir_val hi, struct ir_val step,
                    uint32_t n, const struct ir_val *inits);
struct ir_op hi_if(struct hi *h, struct ir_val cond, uint32_t n, const struct ir_type *results);
struct ir_op hi_while(struct hi *h, uint32_t n, const struct ir_val *inits, uint32_t n_passed,
                      const struct ir_type *passed);
void hi_condition(struct hi *h, uint32_t n, const struct ir_val *in); /* bool, then passed */
void hi_yield(struct hi *h, uint32_t n, const struct ir_val *in);
struct ir_val hi_arg(struct hi *h, struct ir_op o, uint32_t block, uint32_t k);
struct ir_val hi_out(struct hi *h, struct ir_op o, uint32_t k);

/* Arguments: row-major, the argument's dtype (hi_bind_as: another one). */
void hi_bind(struct hi *h, uint32_t arg, void *data, const int64_t *dim);
void hi_bind_as(struct hi *h, uint32_t arg, enum dtype t, void *data, const int64_t *dim);
bool hi_run(struct hi *h);
/* Runs and fails the test, printing diagnostics, if that does not succeed. */
void hi_run_ok(struct hi *h);

#endif
