/* Runs machine IR on the host, all threads of a block in step, op by op: proves data movement,
 * masks, barriers and the launch recipe of a lowering without a GPU. A seed of the emulator; it
 * knows the ops of ir/ops_machine.def and PTX's tables for ldmatrix and mma, and nothing of
 * codegen/.
 *
 * What it reports as an error, besides wrong values:
 *   an access outside a tensor's allocation or the block's shared memory, or not aligned
 *   a read of shared memory that another thread wrote since the last barrier, a write of what
 *   another thread read or wrote since then; a read of bytes a copy is still to write
 *   a fragment element read before it was written
 *   barriers, shuffles, matrix ops where threads have diverged
 *   the same for loops whose bounds differ between threads */
#ifndef KILN_TESTS_HELP_MACH_H
#define KILN_TESTS_HELP_MACH_H

#include "ir/interp.h"
#include "ir/ir.h"

struct mach_result {
  bool ok;
  char error[400];
  int64_t programs; /* blocks run */
  int64_t barriers; /* of one block */
  /* Of one block: 16-byte rows that ldmatrix (lanes by eights: a copy) moves in one phase and that
   * fall into a bank group already taken. */
  char printed[4000]; /* what gprint said */
  int64_t ldmatrix_conflicts, copy_conflicts, ldmatrix_rows, copy_rows;
};

/* Launches through m->recipe: checks, grid, params; runs every block in order. args: one per module
 * argument, as for interp_run; tensors lie in memory as their strides say, `alloc[k]` bytes from
 * `base[k]` may be touched. */
struct mach_args {
  const struct interp_arg *arg;
  uint32_t n;
  void *base[16];
  size_t alloc[16];
};
struct mach_result mach_run(const struct ir_module *m, const struct mach_args *args);

#endif
