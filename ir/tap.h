/* Taps: a value of a kernel becomes an output, so that what several ways to run the kernel make of
 * it can be compared. */
#ifndef KILN_IR_TAP_H
#define KILN_IR_TAP_H

#include "ir/ir.h"

#define IR_TAP_LOOPS 8

/* Arguments are numbered as in module->args. */
struct ir_tap {
  uint32_t value; /* the out argument, of the value's dims (a scalar: 1) */
  /* s64 scalars that choose what is kept: the program's coordinate on each axis of the grid, then
   * which iteration of each loop around, from 0. */
  uint32_t first, n_loops;
  struct ir_op loop[IR_TAP_LOOPS]; /* outermost first */
  bool changed_dtype;              /* the argument holds the value cast to an integer type */
};

/* The loops around a block, outermost first; how many there are. */
uint32_t ir_loops_around(const struct ir_module *m, struct ir_block b,
                         struct ir_op loop[static IR_TAP_LOOPS]);

/* Adds arguments at the end of the module's, and where the value is made a store of it; handles
 * that were valid stay so. In other programs and iterations the store is out of range. Index and
 * bool are stored as s64 and s32, 4-bit integers as s32. False, with nothing changed: the value is
 * a view, or there are more than IR_TAP_LOOPS loops around it. Needs a verified module of the tile
 * stage, leaves one. */
bool ir_add_tap(struct ir_module *m, struct ir_val v, struct ir_tap *out);

#endif
