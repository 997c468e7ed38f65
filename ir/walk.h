/* Steps of the walk in order, for code that wants a loop of its own (ir_walk: a call per op). */
#ifndef KILN_IR_WALK_H
#define KILN_IR_WALK_H

#include "ir/ir.h"

/* The op after `o` in the order of the text: first into its blocks, then on. Ends, with 0, at the
 * end of block `stop`. */
struct ir_op ir_walk_next(const struct ir_module *m, struct ir_op o, struct ir_block stop);
/* The op that comes after the end of block `b`. */
struct ir_op ir_walk_up(const struct ir_module *m, struct ir_block b, struct ir_block stop);

#endif
