/* What the host's and the device's verification share: statistics of one block of an output, and
 * the verdict over all blocks. */
#ifndef KILN_RUNTIME_VERIFY_H
#define KILN_RUNTIME_VERIFY_H

#include "runtime/rt.h"

#define RT_BLOCK 128

/* Filled per block by the host (verify.c) or by the helper kernel RT_HELPER_COMPARE, whose source
 * declares the same 18 fields of 8 bytes in the same order. Positions are i * cols + j, -1:
 * none. */
struct rt_block_stats {
  double max_err, max_base, max_ref; /* |out - R|, |baseline - R|, |R| */
  double sum_err, sum_base, sum_ref;
  double share, base_share; /* worst error / a-priori bound, of the output and of the baseline */
  int64_t n_unwritten, n_special, n_inexact, n_ceiling;
  int64_t at_err, at_share, at_unwritten, at_special, at_inexact, at_base;
};
_Static_assert(sizeof(struct rt_block_stats) == 18 * 8, "as the helper kernel declares it");

/* The rounding error that storing a value of magnitude x as t adds at most. */
double rt_half_ulp(enum dtype t, double x);
/* Infinities do not exist, or overflow saturates: references are clamped before they are
 * compared. */
bool rt_saturates(enum dtype t);

/* The block of RT_BLOCK rows and `width` columns (as far as there are) at (i0, j0). */
struct rt_block_stats rt_scan_block(const struct rt_verify *v, int64_t i0, int64_t j0,
                                    int64_t width);

/* Blocks cover rows x cols. Fills everything of the verdict but got, want, first_*. */
void rt_judge(enum dtype t, int64_t rows, int64_t cols, bool exact, bool has_base, bool has_bound,
              const struct rt_block_stats *blocks, int64_t n_blocks, struct rt_verdict *out);

#endif
