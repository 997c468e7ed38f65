/* The layouts that the solver knows, and what follows from them.
 *
 * Anchors (matrix fragments, blocked layouts for memory) are made here; all others derive from them
 * by slicing (reductions, broadcasts), permuting and inserting unit dims. Every layout names all
 * lanes and warps of the block: those that hold copies have a mode with all steps 0. */
#ifndef KILN_CODEGEN_LAYOUTS_H
#define KILN_CODEGEN_LAYOUTS_H

#include "ir/layout.h"

/* Warps of a block, laid over a matrix: rows x cols, columns fastest. */
struct cg_warps {
  uint32_t rows, cols;
};

/* How an instruction of the matrix unit (ir/mma.h) lies over a tile. */
struct cg_mma_atom {
  uint32_t m, k;  /* n is 8 */
  uint32_t per;   /* elements of k side by side in a lane: those of a 32-bit register */
  bool row_pairs; /* a lane's rows are 2g and 2g + 1, not g and g + 8 */
  bool col_pairs; /* blocks of columns come in pairs: even columns of 16, odd columns */
};

/* Blocks of a warp: of m rows, of 8 columns. */
struct cg_mma_cut {
  uint32_t blocks, n8;
};
struct cg_mma_cut cg_mma_cut(int64_t rows, int64_t cols, struct cg_warps w,
                             const struct cg_mma_atom *x);

/* PTX ISA, "Matrix Fragments for mma": accumulator over [rows, cols]; a over [rows, k * steps]; b
 * over [k * steps, cols]. Registers of one instruction are adjacent. */
struct layout *cg_layout_mma_acc(struct arena *a, int64_t rows, int64_t cols, struct cg_warps w,
                                 const struct cg_mma_atom *x);
struct layout *cg_layout_mma_a(struct arena *a, int64_t rows, int64_t cols, uint32_t steps,
                               struct cg_warps w, const struct cg_mma_atom *x);
struct layout *cg_layout_mma_b(struct arena *a, int64_t rows, int64_t cols, uint32_t steps,
                               struct cg_warps w, const struct cg_mma_atom *x);

/* How instructions of warpgroups (wgmma, 64 rows, n columns, n a multiple of 8 up to 256; where
 * they sum integers, above 32 of 16) lie over a tile: w.rows / 4 warpgroups along the rows, w.cols
 * along the columns; each has `blocks` times 64 adjacent rows, `atoms` times n columns. n = 0: they
 * do not fit; nothing is padded. */
struct cg_wgmma_cut {
  uint32_t blocks, atoms, n;
};
struct cg_wgmma_cut cg_wgmma_cut(int64_t rows, int64_t cols, struct cg_warps w, bool integers);
/* PTX ISA, "Register Fragments for wgmma": D; registers of one instruction are adjacent. */
struct layout *cg_layout_wgmma_acc(struct arena *a, int64_t rows, int64_t cols, struct cg_warps w);
/* The same, A of elements of `bits` bits in registers, over [rows, k]; steps of an instruction's k
 * follow each other. Of 16 bits it is the accumulator of k columns. */
struct layout *cg_layout_wgmma_a(struct arena *a, int64_t rows, int64_t k, struct cg_warps w,
                                 uint32_t bits);

/* Accumulator of a dot by multiply-adds: a thread holds `vec` adjacent rows (columns) where the
 * operand is contiguous along them, else rows (columns) that its neighbours' lie between; lanes 4 x
 * 8. */
struct layout *cg_layout_fma_acc(struct arena *a, int64_t rows, int64_t cols, struct cg_warps w,
                                 bool rows_adjacent, bool cols_adjacent, uint32_t vec);

/* A tile spread over the block for memory: `vec` elements along `vdim` to a thread, lanes along
 * vdim first, then warps, then registers. With reduce_axis >= 0 warps go along other dims first, so
 * that a row stays within a warp where that does not starve others. */
struct layout *cg_layout_blocked(struct arena *a, uint32_t rank, const int64_t *shape,
                                 uint32_t vdim, uint32_t vec, uint32_t warps, int reduce_axis);

/* The same for a tile of elements of `bytes` bytes that meets another layout in shared memory: up
 * to 16 bytes of a thread lie side by side along adim too, where that costs no registers, and lanes
 * cover 128 bytes along vdim before they go along others. What one side moves as rows the other
 * then moves as columns, both several elements at a time and from different banks. */
struct layout *cg_layout_turning(struct arena *a, uint32_t rank, const int64_t *shape,
                                 uint32_t vdim, uint32_t vec, uint32_t adim, uint32_t bytes,
                                 uint32_t warps);

/* Derived layouts. slice: dims whose bit is set in `dims` become 1; registers that differ only
 * along them fall together. */
struct layout *cg_layout_slice(struct arena *a, const struct layout *l, uint32_t dims);
struct layout *cg_layout_permute(struct arena *a, const struct layout *l, const int64_t *perm);
/* The same registers under another shape that differs in unit dims alone; NULL if it does not. */
struct layout *cg_layout_reshape(struct arena *a, const struct layout *l, uint32_t rank,
                                 const int64_t *shape);

/* The same elements in parts, `parts` of each along dim, which a thread holds in registers side by
 * side; and back: NULL if the parts of an element are not so. */
struct layout *cg_layout_refine(struct arena *a, const struct layout *l, uint32_t dim,
                                uint32_t parts);
struct layout *cg_layout_coarsen(struct arena *a, const struct layout *l, uint32_t dim,
                                 uint32_t parts);

/* One past the largest coordinate along dim; beyond the shape it is padding. */
int64_t cg_layout_cover(const struct layout *l, uint32_t dim);
/* Do all threads hold the same one element or elements of an axis? */
bool cg_layout_spans(const struct layout *l, enum layout_hw hw, uint32_t dim);
/* Registers that hold consecutive elements along dim, from register 0 on. */
uint32_t cg_layout_run(const struct layout *l, uint32_t dim);
/* Registers in a row along dim that start aligned to their number in every thread, at most `most`,
 * a power of two. */
uint32_t cg_aligned_run(const struct layout *x, uint32_t dim, uint32_t most);
/* What the accesses of a block cost, where elements of `bytes` bytes are adjacent along vdim in
 * global memory and up to `vec` of them are moved at a time: each access its sectors of 32 bytes,
 * and a pass over L1, which is 4 of them, for itself. Warps that hold copies count once. */
int64_t cg_access_cost(const struct layout *l, uint32_t vdim, uint32_t vec, int64_t bytes);

#endif
