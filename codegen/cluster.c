/* Which loads the blocks of a cluster share: see cluster.h.
 *
 * Read off the program: nothing of where the tile lies depends on the index of the cluster's axis,
 * nor does how often the loops around the load run. Shares are whole boxes, or runs of 8 rows, as
 * swizzles repeat after 8. */
#include "codegen/cluster.h"

#include "codegen/pass.h"
#include "codegen/schedule.h"
#include "ir/range.h"

#define SWIZZLE_ROWS 8
#define MOST_VISITS  1000

struct look {
  const struct ir_module *m;
  uint32_t axis, visits;
};

/* May v differ between programs whose indices along the axis differ? */
static bool depends(struct look *s, struct ir_val v) {
  const struct ir_module *m = s->m;
  const struct ir_value *x = ir_value_at(m, v);
  struct ir_op op = x->def;
  if (++s->visits > MOST_VISITS)
    return true;
  if (x->block.id) {
    struct ir_entry e = ir_entry_of(m, v);
    op = ir_block_at(m, x->block)->parent;
    if (!op.id)
      return e.kind == IR_ENTRY_GRID && e.index == s->axis;
    if (ir_op_at(m, op)->opcode != IR_FOR || x->index > 0)
      return true;
  }
  const struct ir_opnode *n = ir_op_at(m, op);
  if (!x->block.id && !(ir_info(n->opcode)->traits & IR_PURE))
    return true;
  uint32_t n_in = x->block.id ? 3 : n->n_in;
  for (uint32_t i = 0; i < n_in; i++)
    if (depends(s, n->in[i]))
      return true;
  return false;
}

static bool share(const struct cg_box *b, int64_t blocks, struct cg_share *out) {
  int64_t panels = b->width / b->panel;
  *out = (struct cg_share){.panels = panels, .rows = b->height};
  if (panels % blocks == 0) {
    out->panels /= blocks;
    return true;
  }
  out->by_rows = true;
  out->rows /= blocks;
  return b->height % (blocks * SWIZZLE_ROWS) == 0;
}

/* Does where the tile lies not depend on the axis? */
static bool is_same(const struct ir_module *m, struct ir_op load, uint32_t axis) {
  struct look s = {.m = m, .axis = axis};
  const struct ir_opnode *n = ir_op_at(m, load);
  for (uint32_t i = 0; i < n->n_in; i++)
    if (depends(&s, n->in[i]))
      return false;
  return true;
}

bool cg_trips_differ(struct ir_module *m, uint32_t axis) {
  for (struct ir_op o = {1}; o.id < m->ops.n; o.id++) {
    const struct ir_opnode *n = ir_op_at(m, o);
    for (uint32_t i = 0; n->block.id && n->opcode == IR_FOR && i < 3; i++) {
      struct look s = {.m = m, .axis = axis};
      if (depends(&s, n->in[i]))
        return true;
    }
  }
  return false;
}

bool cg_is_streamed(struct ir_module *m, struct ir_op load) {
  int64_t axis = cg_knob_get(m, CG_KNOB_STREAM_AXIS);
  return axis >= 0 && is_same(m, load, (uint32_t)axis);
}

bool cg_is_shared(struct ir_module *m, struct ir_op load, const struct cg_box *box, int64_t blocks,
                  uint32_t axis, struct cg_share *out) {
  struct look s = {.m = m, .axis = axis};
  if (blocks < 2 || !share(box, blocks, out) || !is_same(m, load, axis))
    return false;
  for (struct ir_op o = load;;) {
    o = ir_block_at(m, ir_op_at(m, o)->block)->parent;
    if (!o.id)
      return true;
    for (uint32_t i = 0; i < 3; i++)
      if (ir_op_at(m, o)->opcode != IR_FOR || depends(&s, ir_op_at(m, o)->in[i]))
        return false;
  }
}

int64_t cg_cluster_blocks(struct ir_module *m) {
  int64_t n = cg_knob_get(m, CG_KNOB_CLUSTER);
  return n > 1 ? n : 1;
}

uint32_t cg_cluster_axis(struct ir_module *m) {
  int64_t axis = cg_knob_get(m, CG_KNOB_CLUSTER_AXIS);
  return axis > 0 ? (uint32_t)axis : 0;
}
