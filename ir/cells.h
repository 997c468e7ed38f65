/* Cells: how the interpreter and the emulator hold elements, and arithmetic on n of them.
 *
 * A cell is wider than the element: narrow floats are held as float (already rounded), all integers
 * as int64_t (already wrapped), so that each op has one plain loop per kind of cell; the algebraic
 * domain holds floats as int64_t payloads (interp.h says what they are). */
#ifndef KILN_IR_CELLS_H
#define KILN_IR_CELLS_H

#include "ir/interp.h"

enum cell { CELL_FLOAT, CELL_DOUBLE, CELL_INT, CELL_BOOL, CELL_PAYLOAD };
#define CELL_KINDS 5

static inline size_t cell_size(enum cell c) {
  return c == CELL_BOOL ? 1 : c == CELL_FLOAT ? sizeof(float) : 8;
}
static inline enum cell cell_kind(enum interp_domain domain, enum dtype t) {
  if (t == DT_BOOL)
    return CELL_BOOL;
  if (!dtype_is_float(t))
    return CELL_INT;
  if (domain == INTERP_ALGEBRAIC)
    return CELL_PAYLOAD;
  return t == DT_F64 || domain == INTERP_DOUBLE ? CELL_DOUBLE : CELL_FLOAT;
}

/* interp_elem.c: an elementwise op on n cells of x, y, z (as many as it has operands), rounded to
 * its result's dtype. `in`: the dtype of its last operand, `to`: of its result. No two buffers
 * overlap, unless operands are the same value. */
void cells_elem(enum interp_domain domain, enum ir_opcode opcode, enum dtype in, enum dtype to,
                size_t n, const void *x, const void *y, const void *z, void *o);
void cells_cast(enum interp_domain domain, enum dtype from, enum dtype to, size_t n, const void *x,
                void *o);
bool interp_is_elem(enum ir_opcode opcode);
/* Rounds cells to a narrow float type, in place; wraps integer cells to their width. */
void interp_round_cells(enum dtype t, size_t n, float *cells);
void interp_wrap_cells(enum dtype t, size_t n, int64_t *cells);

/* interp_algebra.c: the same on payloads, which cells_elem and cells_cast call; sums of products
 * a[m, k] . b[k, n] + first[m, n]. */
void cells_algebra_elem(enum ir_opcode opcode, enum dtype to, size_t n, const void *x,
                        const void *y, const void *z, void *o);
void cells_algebra_cast(enum dtype from, enum dtype to, size_t n, const void *x, void *o);
void interp_algebra_dot(size_t m, size_t k_n, size_t n, const int64_t *a, const int64_t *b,
                        const int64_t *first, int64_t *o);

/* interp_part.c: the bits of cell i, as memory would hold the element, zeros above them; and the
 * cell that has these. Not of bool. */
uint64_t cells_get_bits(enum dtype t, enum cell c, const void *x, size_t i);
void cells_put_bits(enum dtype t, enum cell c, void *o, size_t i, uint64_t bits);

/* interp_mem.c: n elements of memory from `first` on, `step` apart, to cells and back. Payloads lie
 * in memory as int64_t, whatever t. */
void interp_load_cells(enum dtype t, enum cell c, const void *data, int64_t first, int64_t step,
                       int64_t n, void *o);
void interp_store_cells(enum dtype t, enum cell c, void *data, int64_t first, int64_t step,
                        int64_t n, const void *x);

#endif
