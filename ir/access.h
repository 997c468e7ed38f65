/* What range facts say to a lowering: which edges of its view a load or store may cross, which
 * integers need 64 bits, which loops run, come out even, or are better peeled. */
#ifndef KILN_IR_ACCESS_H
#define KILN_IR_ACCESS_H

#include "ir/interval.h"

#define IR_NO_ARG UINT32_MAX

/* A load or store: view, one offset per dim, and the tile. */
struct ir_access {
  struct ir_op op;
  struct ir_val view;
  uint32_t arg; /* the module's argument that the view is, whole, or IR_NO_ARG */
  uint32_t rank;
  const struct ir_val *offset; /* per dim */
  struct ir_type tile;
};
/* False: the op is none. */
bool ir_access_of(const struct ir_module *m, struct ir_op o, struct ir_access *out);

enum { IR_MASK_END = 1, IR_MASK_START = 2 };
/* Per dim: MASK_END if an element may lie at or past the view's end, MASK_START if before its
 * start. With no intervals (NULL) less is known. */
void ir_access_masks(struct ir_module *m, const struct ir_intervals *r, const struct ir_access *a,
                     int64_t masks[IR_MAX_RANK]);

/* Does every value lie in 32 bits, signed? */
bool ir_fits_32(const struct ir_intervals *r, struct ir_val v);

struct ir_loop_facts {
  bool runs;     /* at least once */
  bool even;     /* the step divides hi - lo: the last iteration is as long as the others */
  int64_t trips; /* -1: not known */
  /* Accesses in it that need MASK_END along some dim in the last iteration alone: with that peeled,
   * the others need none there. */
  uint32_t n_last_only;
};
/* Of a `for`. */
struct ir_loop_facts ir_loop_facts(struct ir_module *m, const struct ir_intervals *r,
                                   struct ir_op loop);

#endif
