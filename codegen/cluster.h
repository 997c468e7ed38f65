/* Clusters: blocks whose tiles are neighbours along one axis of the grid (knobs `cluster` and
 * `cluster_axis`), and which share what they load. */
#ifndef KILN_CODEGEN_CLUSTER_H
#define KILN_CODEGEN_CLUSTER_H

#include "codegen/box.h"

/* A block's share of a tile's boxes, where each loads as much and all get all: panels, or rows of
 * each panel (the other is then all there are). */
struct cg_share {
  int64_t panels, rows;
  bool by_rows;
};

/* Do `blocks` neighbours along `axis` load the same tile there, equally often, and can they share
 * its boxes? */
bool cg_is_shared(struct ir_module *m, struct ir_op load, const struct cg_box *box, int64_t blocks,
                  uint32_t axis, struct cg_share *out);

/* Is the load read once, where the axis of the knob `stream_axis` has one tile? It has no business
 * in L2. */
bool cg_is_streamed(struct ir_module *m, struct ir_op load);

/* May programs whose indices along the axis differ run loops of different lengths? */
bool cg_trips_differ(struct ir_module *m, uint32_t axis);

/* The knobs, resolved: 1 block where there are no clusters. */
int64_t cg_cluster_blocks(struct ir_module *m);
uint32_t cg_cluster_axis(struct ir_module *m);

#endif
