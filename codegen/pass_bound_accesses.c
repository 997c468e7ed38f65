/* What each load and store may take for granted of its edges and its alignment.
 *
 * Before: tile IR with facts. After, on every load and store: masks (per dim, which edges of the
 * view the tile may cross), vdim (the dim along which elements are adjacent in memory), vec
 * (elements of one access that lie all inside or all outside, aligned as one) and, on loads, align
 * (the same by alignment alone: the copies of a tile's last chunk may then be partial). Where no
 * fact says that a stride is 1, vec is 1. Everything proved here rests on facts that the launch
 * recipe checks. */
#include "codegen/pass.h"
#include "codegen/view.h"
#include "ir/range.h"

#define ACCESS 16 /* bytes of the widest access */

/* The dim with stride 1; of several, the one along which the tile is longest, then the last. */
static int unit_stride_dim(const struct ir_module *m, const struct ir_access *a,
                           const struct cg_view_fact *v) {
  int best = -1;
  for (uint32_t d = 0; d < a->rank; d++) {
    int64_t stride;
    if (v->dim[d].div == 1 && ir_expr_value(m, v->dim[d].stride, &stride) && stride == 1 &&
        (best < 0 || a->tile.dim[d] >= a->tile.dim[best]))
      best = (int)d;
  }
  return best;
}

/* The largest power of two of elements, at most 16 bytes, to which every row of the tile starts
 * aligned. */
static int64_t alignment(struct ir_module *m, const struct ir_access *a,
                         const struct cg_view_fact *f, uint32_t vdim) {
  int64_t bytes = dtype_bytes((enum dtype)a->tile.dtype, 1);
  int64_t addr = ir_arg_alignment(m, f->arg);
  int64_t v = ACCESS / bytes;
  while (v > 1 && addr % (v * bytes))
    v /= 2;
  v = ir_pow2_divisor(f->base_div, v);
  v = ir_pow2_divisor(ir_val_divisor(m, a->offset[vdim]), v);
  for (uint32_t d = 0; d < a->rank; d++) {
    if (d == vdim)
      continue;
    int64_t step = f->dim[d].stride_div;
    int64_t at = ir_val_divisor(m, a->offset[d]), product;
    /* Along a dim of one element only the offset moves the start. */
    if (a->tile.dim[d] == 1 && f->dim[d].div == 1)
      step = __builtin_mul_overflow(step, at, &product) ? step : product;
    v = ir_pow2_divisor(step, v);
  }
  return v;
}

static void bound(struct ir_module *m, const struct ir_intervals *r, struct ir_access a) {
  struct ir_op o = a.op;
  struct cg_view_fact f = cg_view_facts(m, r, a.view);
  int64_t masks[IR_MAX_RANK];
  for (uint32_t d = 0; d < a.rank; d++)
    masks[d] = (cg_fits(m, r, &f.dim[d], a.offset[d], a.tile.dim[d]) ? 0 : IR_MASK_END) |
               (cg_starts(m, r, &f.dim[d], a.offset[d]) ? 0 : IR_MASK_START);
  int unit = unit_stride_dim(m, &a, &f);
  uint32_t vdim = unit < 0 ? a.rank - 1 : (uint32_t)unit;
  int64_t align = 1, vec = 1;
  if (unit >= 0) {
    align = alignment(m, &a, &f, vdim);
    vec = ir_pow2_divisor(a.tile.dim[vdim], align);
    if (masks[vdim] & IR_MASK_END)
      vec = ir_pow2_divisor(f.dim[vdim].end_div, vec);
    if (masks[vdim] & IR_MASK_START)
      vec = ir_pow2_divisor(f.dim[vdim].start_div, vec);
  }
  /* A view of which nothing is in range says so along its first dim. */
  masks[0] |= f.inside ? 0 : IR_MASK_END;
  cg_set_ints(m, o, IR_ATTR_masks, a.rank, masks);
  cg_set_int(m, o, IR_ATTR_vdim, vdim);
  cg_set_int(m, o, IR_ATTR_vec, vec);
  if (ir_op_at(m, o)->opcode == IR_LOAD)
    cg_set_int(m, o, IR_ATTR_align, align);
}

static void visit(void *user, struct ir_module *m, struct ir_op o) {
  struct ir_access a;
  if (ir_access_of(m, o, &a))
    bound(m, user, a);
}

bool cg_pass_bound_accesses(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  ir_walk(m, m->body, visit, ir_find_intervals(m, ctx->scratch));
  *changed = true;
  return true;
}
