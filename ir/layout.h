/* Layouts: maps from hardware coordinates to tile coordinates.
 *
 * A layout is a list of modes. Each hardware index (cta, warpgroup, warp, lane, register: elements
 * packed into one register count singly) is split by the extents of its modes, fastest first (mixed
 * radix, so extents need not be powers of two), and digit d of a mode moves the tile coordinate by
 * d * step[]. The coordinate of an element is the sum over all modes. A mode with all steps 0
 * replicates; one marked `unreduced` holds partial results to be combined. Coordinates at or past
 * the shape are padding.
 *
 * Example, the accumulator of mma.m16n8 over a (16,8) tile:
 *   reg 2:(0,1) 2:(8,0)   lane 4:(0,2) 8:(1,0)
 */
#ifndef KILN_IR_LAYOUT_H
#define KILN_IR_LAYOUT_H

#include "base/str.h"
#include "base/vec.h"

#define LAYOUT_MAX_RANK 5

enum layout_hw {
  LAYOUT_REG,
  LAYOUT_LANE,
  LAYOUT_WARP,
  LAYOUT_WARPGROUP,
  LAYOUT_CTA,
  LAYOUT_HW_COUNT
};

struct layout_mode {
  enum layout_hw hw;
  uint32_t extent;
  int64_t step[LAYOUT_MAX_RANK];
  bool unreduced;
};

struct layout {
  uint32_t rank;
  int64_t shape[LAYOUT_MAX_RANK];
  VEC(struct layout_mode) modes; /* grouped by hw in enum order, fastest first within each */
};

struct layout *layout_new(struct arena *a, uint32_t rank, const int64_t *shape);
void layout_add(struct arena *a, struct layout *l, enum layout_hw hw, uint32_t extent,
                const int64_t *step);
/* Product of the extents of a hardware index. */
uint32_t layout_extent(const struct layout *l, enum layout_hw hw);
/* Tile coordinate of hw[LAYOUT_HW_COUNT] indices. */
void layout_coord(const struct layout *l, const uint32_t hw[LAYOUT_HW_COUNT],
                  int64_t coord[LAYOUT_MAX_RANK]);
bool layout_eq(const struct layout *a, const struct layout *b);
/* One line: `[16,8] reg 2:(0,1) 2:(8,0) lane 4:(0,2) 8:(1,0)`; `!` after an extent = unreduced. */
void layout_print(const struct layout *l, struct strbuf *out);
/* Parses what layout_print wrote, from text up to `end`; NULL and *error on failure. *after: where
 * it stopped. */
struct layout *layout_parse(struct arena *a, const char *text, const char *end, const char **after,
                            const char **error);

#endif
