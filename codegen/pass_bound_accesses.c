/* What each load and store may take for granted of its edges and its alignment.
 *
 * Before: tile IR with facts. After, on every load and store: masks (per dim, which edges of the
 * view the tile may cross), vdim (the dim along which elements are adjacent in memory), vec
 * (elements of one access that lie all inside or all outside, aligned as one) and, on loads, align
 * (the same by alignment alone: the copies of a tile's last chunk may then be partial). Where no
 * fact says that a stride is 1, vec is 1. Everything proved here rests on facts that the launch
 * recipe checks. */
#include "codegen/pass.h"
#include "codegen/range.h"

#define ACCESS 16 /* bytes of the widest access */

struct access {
  struct ir_op op;
  uint32_t arg, rank;
  struct ir_type tile;
  const struct ir_val *offset; /* per dim */
};

static struct access access_of(const struct ir_module *m, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(m, o);
  struct access a = {.op = o};
  struct ir_type view = ir_type_of(m, n->in[0]);
  a.arg = cg_entry_of(m, n->in[0]).index;
  a.rank = view.rank;
  a.offset = n->in + 1;
  a.tile = ir_type_of(m, n->opcode == IR_LOAD ? n->out[0] : n->in[1 + view.rank]);
  return a;
}

/* The dim with stride 1; of several, the one along which the tile is longest, then the last. */
static int unit_stride_dim(struct ir_module *m, const struct access *a) {
  int best = -1;
  for (uint32_t d = 0; d < a->rank; d++) {
    int64_t stride;
    if (cg_expr_value(m, cg_arg_expr(m, a->arg, "stride", (int)d), &stride) && stride == 1 &&
        (best < 0 || a->tile.dim[d] >= a->tile.dim[best]))
      best = (int)d;
  }
  return best;
}

/* The largest power of two of elements, at most 16 bytes, to which every row of the tile starts
 * aligned. */
static int64_t alignment(struct ir_module *m, const struct access *a, uint32_t vdim) {
  int64_t bytes = dtype_bytes((enum dtype)a->tile.dtype, 1);
  int64_t addr = cg_expr_divisor(m, cg_arg_expr(m, a->arg, "addr", -1));
  int64_t v = ACCESS / bytes;
  while (v > 1 && addr % (v * bytes))
    v /= 2;
  v = cg_pow2_divisor(cg_val_divisor(m, a->offset[vdim]), v);
  for (uint32_t d = 0; d < a->rank; d++) {
    if (d == vdim)
      continue;
    int64_t step = cg_expr_divisor(m, cg_arg_expr(m, a->arg, "stride", (int)d));
    int64_t at = cg_val_divisor(m, a->offset[d]), product;
    /* Along a dim of one element only the offset moves the start. */
    if (a->tile.dim[d] == 1)
      step = __builtin_mul_overflow(step, at, &product) ? step : product;
    v = cg_pow2_divisor(step, v);
  }
  return v;
}

static void bound(struct ir_module *m, struct ir_op o) {
  struct access a = access_of(m, o);
  const struct ir_arg *arg = &m->args.at[a.arg];
  int64_t masks[IR_MAX_RANK];
  for (uint32_t d = 0; d < a.rank; d++)
    masks[d] = (cg_val_fits(m, a.offset[d], a.tile.dim[d], arg->dim[d]) ? 0 : 1) |
               (cg_val_is_nonneg(m, a.offset[d]) ? 0 : 2);
  int unit = unit_stride_dim(m, &a);
  uint32_t vdim = unit < 0 ? a.rank - 1 : (uint32_t)unit;
  int64_t align = 1, vec = 1;
  if (unit >= 0) {
    align = alignment(m, &a, vdim);
    vec = cg_pow2_divisor(a.tile.dim[vdim], align);
    if (masks[vdim])
      vec = cg_pow2_divisor(cg_expr_divisor(m, arg->dim[vdim]), vec);
  }
  cg_set_ints(m, o, IR_ATTR_masks, a.rank, masks);
  cg_set_int(m, o, IR_ATTR_vdim, vdim);
  cg_set_int(m, o, IR_ATTR_vec, vec);
  if (ir_op_at(m, o)->opcode == IR_LOAD)
    cg_set_int(m, o, IR_ATTR_align, align);
}

static void visit(void *user, struct ir_module *m, struct ir_op o) {
  (void)user;
  enum ir_opcode c = ir_op_at(m, o)->opcode;
  if (c == IR_LOAD || c == IR_STORE)
    bound(m, o);
}

bool cg_pass_bound_accesses(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  (void)ctx;
  ir_walk(m, m->body, visit, NULL);
  *changed = true;
  return true;
}
