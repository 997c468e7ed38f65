/* Which accesses the tensor memory unit takes: see box.h.
 *
 * What it demands (CUDA driver API, cuTensorMapEncodeTiled; PTX ISA, "Tensor copy"; and index dumps
 * from an H200, tests/data/sm90a): adjacent elements along one dim, all other strides and the base
 * multiples of 16 bytes, boxes of at most 256 elements a dim. The first coordinate along the
 * contiguous dim must be a multiple of 16 bytes. Loads give zeros outside of the argument, so also
 * where an index of the view is out of range; stores write whole 16-byte units, and nowhere before
 * coordinate 0. */
#include "codegen/box.h"

#include "codegen/pass.h"
#include "codegen/schedule.h"
#include "codegen/view.h"
#include "ir/range.h"

#define UNIT    16         /* bytes */
#define BOX_DIM 256        /* elements */
#define PANEL   (64 * 128) /* bytes, at most */

/* Follows the view to its argument: which of the view's dims is which of the argument's, and at
 * which coordinate the others stand. */
static const char *follow(struct ir_module *m, struct ir_val view, struct cg_box *b, int *dim_of) {
  struct ir_val chain[IR_MAX_RANK * 4];
  uint32_t n = 0;
  while (ir_value_at(m, view)->def.id) {
    const struct ir_opnode *x = ir_op_at(m, ir_value_at(m, view)->def);
    if (x->opcode != IR_VIEW_AT && x->opcode != IR_VIEW_TRANSPOSE)
      return "its view is a part, a reshape or a repetition of the argument";
    if (n == sizeof chain / sizeof chain[0])
      return "its view is made in too many steps";
    chain[n++] = view;
    view = x->in[0];
  }
  struct ir_entry e = ir_entry_of(m, view);
  b->arg = e.index;
  b->rank = m->args.at[b->arg].rank;
  uint32_t rank = b->rank;
  for (uint32_t d = 0; d < rank; d++) {
    dim_of[d] = (int)d;
    b->tile_dim[d] = -1;
  }
  while (n-- > 0) {
    struct ir_op def = ir_value_at(m, chain[n])->def;
    if (ir_op_at(m, def)->opcode == IR_VIEW_TRANSPOSE) {
      int was[IR_MAX_RANK];
      for (uint32_t d = 0; d < rank; d++)
        was[d] = dim_of[d];
      for (uint32_t d = 0; d < rank; d++)
        dim_of[d] = was[ir_get_attr(m, def, IR_ATTR_perm)->ints[d]];
    } else {
      uint32_t axis = (uint32_t)ir_attr_int(m, def, IR_ATTR_axis, 0);
      b->at[dim_of[axis]] = ir_op_at(m, def)->in[1];
      rank--;
      for (uint32_t d = axis; d < rank; d++)
        dim_of[d] = dim_of[d + 1];
    }
  }
  return NULL;
}

const char *cg_box_of(struct ir_module *m, const struct ir_intervals *r, struct ir_op access,
                      struct cg_box *out) {
  const struct ir_opnode *n = ir_op_at(m, access);
  bool store = n->opcode == IR_STORE;
  struct ir_type t = ir_type_of(m, store ? n->in[n->n_in - 1u] : n->out[0]);
  uint32_t rank = ir_type_of(m, n->in[0]).rank;
  int64_t bytes = dtype_bytes((enum dtype)t.dtype, 1);
  int dim_of[IR_MAX_RANK];
  *out = (struct cg_box){0};
  if (dtype_bits((enum dtype)t.dtype) < 8)
    return "its elements are smaller than a byte";
  out->checked = !cg_view_facts(m, r, n->in[0]).inside;
  if (store && out->checked)
    return "an index of its view may be out of range";
  const char *why = follow(m, n->in[0], out, dim_of);
  if (why)
    return why;
  enum ir_arg_kind kind = m->args.at[out->arg].kind;
  if (kind == IR_ARG_SCRATCH)
    return "its argument is scratch";
  for (uint32_t d = 0; d < out->rank; d++) {
    int64_t size;
    if (ir_expr_value(m, m->args.at[out->arg].dim[d], &size) && size == 0)
      return "its argument has no elements";
  }
  int64_t vdim = ir_attr_int(m, access, IR_ATTR_vdim, 0);
  int64_t adjacent = ir_attr_int(m, access, store ? IR_ATTR_vec : IR_ATTR_align, 1);
  if (adjacent * bytes != UNIT)
    return store ? "rows of its argument may not begin and end at multiples of 16 bytes"
                 : "rows of its argument, or the tile's columns, may not begin at multiples of 16 "
                   "bytes";
  const struct ir_attr *masks = ir_get_attr(m, access, IR_ATTR_masks);
  for (uint32_t d = 0; d < rank; d++) {
    out->tile_dim[dim_of[d]] = (int)d;
    out->at[dim_of[d]] = n->in[1 + d];
    if (store && (masks->ints[d] & IR_MASK_START))
      return "it may begin before the first element";
    if ((int64_t)d == vdim)
      out->inner = (uint32_t)dim_of[d];
  }
  out->width = t.dim[vdim];
  out->height = 1;
  for (uint32_t d = 0; d < t.rank; d++)
    if ((int64_t)d != vdim && t.dim[d] != 1) {
      if (out->height != 1)
        return "its tile has more than two dims";
      out->height = t.dim[d];
    }
  if (out->height > BOX_DIM)
    return arena_printf(m->arena, "its tile has %lld rows, and %d is the most",
                        (long long)out->height, BOX_DIM);
  for (out->swizzle = 128; out->width * bytes % out->swizzle; out->swizzle /= 2)
    if (out->swizzle == 32)
      return arena_printf(m->arena, "rows of its tile have %lld bytes, which is no multiple of 32",
                          (long long)(out->width * bytes));
  out->panel = out->swizzle / bytes;
  const struct ir_attr *pad = store ? NULL : ir_get_attr(m, access, IR_ATTR_pad);
  if (pad && (dtype_is_float((enum dtype)t.dtype) ? pad->f != 0 : pad->i != 0))
    return "what lies outside is not read as 0";
  return NULL;
}

int64_t cg_panels(struct ir_type t, int64_t groups) {
  return ir_elems(t) * dtype_bytes((enum dtype)t.dtype, 1) / (groups * PANEL);
}

static int64_t staging_of(struct ir_type t, int64_t groups, int64_t panels) {
  int64_t all = ir_elems(t) * dtype_bytes((enum dtype)t.dtype, 1), most = groups * panels * PANEL;
  return most > 0 && most < all ? most : all;
}

int64_t cg_staging_bytes(struct ir_module *m, struct ir_type t, int64_t groups) {
  return staging_of(t, groups, cg_knob_get(m, CG_KNOB_STAGING));
}

int64_t cg_least_staging(struct ir_module *m, struct ir_type t, int64_t groups) {
  int64_t asked = cg_knob_get(m, CG_KNOB_STAGING);
  return staging_of(t, groups, asked > 0 ? asked : CG_LEAST_PANELS);
}
