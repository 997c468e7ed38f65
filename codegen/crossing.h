/* How a tile lies in shared memory while its elements change their threads: which dim is contiguous
 * there, how far apart its rows are, and which registers each access moves. Decided from layouts
 * alone; lower_cross.c makes the accesses. */
#ifndef KILN_CODEGEN_CROSSING_H
#define KILN_CODEGEN_CROSSING_H

#include "codegen/layouts.h"

#define CG_CROSS_MOST 16 /* elements of one access */

/* A box of the tile that is written from, or read into, registers of a layout. */
struct cg_cross_side {
  const struct layout *layout; /* its shape is the box's */
  int64_t at[LAYOUT_MAX_RANK]; /* where the box starts in the tile */
  uint32_t put;                /* registers that must be written together; 1: any alone */

  /* Filled in. An access moves `width` elements along the inner dim, from or to registers `stride`
   * apart. It starts at a register that is `map` of a count below `n` (pairs of extent and step,
   * fastest first); `group` accesses, of registers side by side, belong together. */
  uint32_t width, stride, group, n;
  uint32_t n_map;
  int64_t map[2 * 64];
};

/* Byte of the element in column c of row r: r * pitch + (r >> shift) * step + c * size. Rows are
 * those of all dims but `inner`, row-major. */
struct cg_crossing {
  uint32_t rank, size; /* size: bytes of an element */
  int64_t dim[LAYOUT_MAX_RANK];
  uint32_t inner, shift;
  int64_t pitch, step, bytes;
};

/* Chooses for a tile (rank, size and dim given) what costs its sides the fewest passes over the
 * banks, then the fewest bytes. */
void cg_plan_crossing(struct arena *a, struct cg_crossing *x, struct cg_cross_side *sides,
                      uint32_t n);
/* Row-major without gaps, one element an access: for readers that see it in another shape. */
void cg_plan_packed(struct cg_crossing *x, struct cg_cross_side *sides, uint32_t n);

/* Is row >> shift the sum of that of a thread's first row and that of what a register adds? */
bool cg_rows_split(const struct cg_crossing *x, const struct cg_cross_side *s);

#endif
