/* Mergeable loops: a `for` that may run in parts, each from a start of its own, whose results are
 * then merged. Sums and extremes are found out here; other state needs a `merge` op behind the
 * loop, which the author wrote (docs/dsl.md). */
#ifndef KILN_IR_MERGE_H
#define KILN_IR_MERGE_H

#include "ir/ir.h"

/* What a carried value is, hence what a part starts from and how two parts are merged. */
enum ir_merge_kind {
  IR_MERGE_NONE,   /* unknown: the loop cannot be cut */
  IR_MERGE_SAME,   /* never changes */
  IR_MERGE_SUM,    /* only added to: the first part starts from the initial value, others from 0 */
  IR_MERGE_MAX,    /* parts start from the initial value */
  IR_MERGE_MIN,    /* the same */
  IR_MERGE_CUSTOM, /* by the merge op; parts start from the initial value */
};

struct ir_merge {
  struct ir_op loop;
  struct ir_op merge; /* 0: none is there */
  uint32_t n;         /* carried values */
  enum ir_merge_kind *kind;
};

/* The loop whose results a merge op takes; 0 if passes took it away. */
struct ir_op ir_merge_loop(const struct ir_module *m, struct ir_op merge);
/* May this `for` be cut? merge: the op behind it, or 0. Loops with effects may not. Fills *out
 * (kinds in the arena) either way. */
bool ir_find_merge(const struct ir_module *m, struct ir_op loop, struct ir_op merge,
                   struct arena *a, struct ir_merge *out);

struct ir_merges {
  struct arena *arena;
  VEC(struct ir_merge) list;
};
/* Gives every loop that may be cut a merge op, and lists these loops. */
void ir_add_merges(struct ir_module *m, struct ir_merges *out);
/* Takes all merge ops away: their results are their operands. */
void ir_drop_merges(struct ir_module *m);
/* Whether there is a merge op, that is, one that an author wrote unless ir_add_merges ran. */
bool ir_has_merge(const struct ir_module *m);

#endif
