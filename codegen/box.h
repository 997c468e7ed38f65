/* Accesses as the tensor memory unit makes them: boxes of a tensor map over an argument. */
#ifndef KILN_CODEGEN_BOX_H
#define KILN_CODEGEN_BOX_H

#include "ir/interval.h"

/* A load or store of a tile of two dims (the others are 1). */
struct cg_box {
  uint32_t arg, rank;            /* the argument, and its dims */
  int tile_dim[IR_MAX_RANK];     /* per dim of the argument: the tile's dim there, or -1 */
  struct ir_val at[IR_MAX_RANK]; /* per dim of the argument: the first coordinate, an index scalar;
                                    0: none, coordinate 0 */
  bool checked;          /* may an index of its view, a coordinate where the tile has no dim, be
                            outside of the argument, and of 32 bits? */
  uint32_t inner;        /* the argument's dim whose elements are adjacent */
  int64_t width, height; /* of the tile: elements along `inner`, rows of these */
  uint32_t swizzle;      /* bytes of a row of a box: 32, 64 or 128 */
  int64_t panel;         /* elements of that: the tile is width / panel boxes */
};

/* NULL, or why the unit cannot make the access: a phrase that starts with what is wrong. Accesses
 * were bounded before (pass_bound_accesses.c). */
const char *cg_box_of(struct ir_module *m, const struct ir_intervals *r, struct ir_op access,
                      struct cg_box *out);

/* Whole panels of a warpgroup's part of a tile of type t. */
int64_t cg_panels(struct ir_type t, int64_t groups);
/* Shared memory that results of type t pass on their way out of so many warpgroups, at most: panels
 * of 64 rows, all of the tile's or as many as the knob `staging` says. */
int64_t cg_staging_bytes(struct ir_module *m, struct ir_type t, int64_t groups);
/* The least that serves: as the knob says, else CG_LEAST_PANELS a warpgroup. */
#define CG_LEAST_PANELS 2 /* one is written while the unit reads the other */
int64_t cg_least_staging(struct ir_module *m, struct ir_type t, int64_t groups);

#endif
