/* Helpers of the code generator's tests: tile modules as text, arguments for them, and the
 * comparison of the machine IR they are lowered to, run on the host, with the interpreter. */
#ifndef KILN_TESTS_HELP_CG_H
#define KILN_TESTS_HELP_CG_H

#include "codegen/cg.h"
#include "codegen/emu.h"
#include "help_mach.h"
#include "help_rt.h"

/* C = act(A . B^T + bias + R), as kernels_ref/gemm.lua traces it. */
struct cg_gemm {
  enum dtype t;
  int bm, bn, bk;
  bool bias, residual;
  const char *act;   /* NULL, relu, gelu, gelu_tanh, silu */
  uint32_t computed; /* 1: a, 2: b: each element as the larger of itself and itself */
};
void cg_gemm_text(struct strbuf *out, const struct cg_gemm *g);
void cg_add_text(struct strbuf *out, enum dtype t, int tile);
void cg_softmax_text(struct strbuf *out, enum dtype t, int rows, int cols);
void cg_rmsnorm_text(struct strbuf *out, enum dtype t, int rows, int cols);

struct cg_test {
  struct help_arena mem;
  struct diag_sink diags;
  struct ir_module *tile;    /* after the tile pipeline, with facts */
  struct ir_module *machine; /* NULL: refused */
  struct interp_arg arg[16], ref[16];
  void *base[16];
  size_t alloc[16];
  uint64_t seed;
  uint64_t what; /* for messages: which of many programs this is */
};

/* Parses (failing the test on an error) and runs the tile pipeline. */
void cg_test_begin(struct cg_test *t, const char *text);
/* The same in two steps, for a module made otherwise: set t->tile between them. */
void cg_test_begin_module(struct cg_test *t, const char *text);
void cg_test_simplify(struct cg_test *t);
void cg_test_end(struct cg_test *t);
/* Makes arguments: dims as "M=3,N=4"; layout as "A=col,B=pad3" (row-major otherwise; padN: rows N
 * elements longer; offN: starts N elements into its allocation). Floats are integers in lo..hi. */
void cg_test_args(struct cg_test *t, const char *dims, const char *layout, int lo, int hi);
/* Adds facts from the arguments. */
void cg_test_facts(struct cg_test *t);
/* The same, and lowers; knobs and pins as "stages=3,load.A.path=staged". False: refused. */
bool cg_test_lower(struct cg_test *t, const char *target, const char *knobs);
/* The scheduled module alone, or NULL: refused. */
struct ir_module *cg_test_schedule(struct cg_test *t, const char *target, const char *knobs);
/* Runs interpreter and machine IR, that in the executor of help_mach.h and in the emulator, in a
 * mode that the number of the program chooses; fails the test where outputs differ by more than
 * `tolerance` (relative to the larger of 1 and the value; 0: bit for bit) or where anything else is
 * wrong. */
void cg_test_compare(struct cg_test *t, double tolerance);
/* The machine IR alone, on the arguments; outputs are not looked at. */
struct mach_result cg_test_run(struct cg_test *t);
/* The emulator in one mode, on the arguments: what it reported, "" where all was well. */
struct cg_emulation {
  const char *error; /* in the test's arena */
  struct emu_stats stats;
};
struct cg_emulation cg_test_emulate(struct cg_test *t, enum emu_mode mode, uint64_t seed);
/* Interpreter and emulator in the algebraic domain, on random payloads in the arguments' shapes and
 * strides: fails the test where they differ, in any of `runs` modes and seeds. */
void cg_test_compare_algebra(struct cg_test *t, uint32_t runs);
/* All of the above. */
void cg_check(const char *text, const char *dims, const char *layout, const char *knobs,
              double tolerance);
/* The diagnostics so far, as text in the test's arena. */
const char *cg_test_messages(struct cg_test *t);

#endif
