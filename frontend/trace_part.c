/* Tiles cut, joined, permuted, and read as another dtype. Offsets and sizes are plain numbers:
 * parts at device offsets are loads. */
#include "frontend/dsl.h"

#include <inttypes.h>
#include <math.h>

static enum dtype dtype_of(const struct dsl_val *v) {
  return (enum dtype)v->t.dtype;
}

static struct dsl_val *with_pads(struct fe_file *f, struct dsl_val *r, const struct dsl_pad *p) {
  r->pads = arena_copy(fe_trace_arena(f->fe), p, r->t.rank * sizeof *p);
  return r;
}

struct dsl_val *dsl_permute(struct fe_file *f, struct dsl_val *x, const int64_t *perm) {
  struct ir_type t = x->t;
  bool same = true;
  for (uint32_t d = 0; d < t.rank; d++) {
    t.dim[d] = x->t.dim[perm[d]];
    same = same && perm[d] == (int64_t)d;
  }
  if (same)
    return x;
  struct ir_op o = dsl_build(f, IR_TRANSPOSE, 1, &x->v, 1, &t);
  ir_set_attr(f->m, o, (struct ir_attr){.key = IR_ATTR_perm, .ints = perm, .n_ints = t.rank});
  struct dsl_val *r = dsl_new_val(f, t, ir_op_at(f->m, o)->out[0]);
  r->is_const = x->is_const;
  r->value = x->value;
  if (!x->pads)
    return r;
  struct dsl_pad p[IR_MAX_RANK];
  for (uint32_t d = 0; d < t.rank; d++)
    p[d] = x->pads[perm[d]];
  return with_pads(f, r, p);
}

struct dsl_val *dsl_extract(struct fe_file *f, struct dsl_val *x, const int64_t *offset,
                            const int64_t *size) {
  struct ir_type t = x->t;
  for (uint32_t d = 0; d < t.rank; d++) {
    if (offset[d] < 0 || offset[d] > t.dim[d] - size[d]) {
      fe_soft_error(f->fe, DIAG_SHAPE_MISMATCH,
                    ":slice: %" PRId64 " element%s from %" PRId64 " on %s not inside dim %" PRIu32
                    " of %s",
                    size[d], size[d] == 1 ? "" : "s", offset[d], size[d] == 1 ? "is" : "are", d,
                    dsl_describe_type(f, x->t));
      return NULL;
    }
    t.dim[d] = size[d];
  }
  if (ir_type_eq(t, x->t))
    return x;
  struct ir_op o = dsl_build(f, IR_EXTRACT, 1, &x->v, 1, &t);
  ir_set_attr(f->m, o, (struct ir_attr){.key = IR_ATTR_offsets, .ints = offset, .n_ints = t.rank});
  struct dsl_val *r = dsl_new_val(f, t, ir_op_at(f->m, o)->out[0]);
  r->is_const = x->is_const;
  r->value = x->value;
  return x->pads ? with_pads(f, r, x->pads) : r;
}

/* Padded where either is; what stands there is known where both say the same, or one has none. */
static struct dsl_pad join(struct dsl_pad a, struct dsl_pad b) {
  if (!a.src && !a.masked && b.src)
    return b;
  if (!b.src && !b.masked && a.src)
    return a;
  struct dsl_pad p = {.src = a.src ? a.src : b.src,
                      .pos = a.pos && b.pos,
                      .masked = a.masked && b.masked,
                      .known = a.known && b.known && a.value == b.value,
                      .value = a.value};
  return p;
}

struct dsl_val *dsl_concat(struct fe_file *f, uint32_t axis, uint32_t n, struct dsl_val *const *x) {
  struct ir_type t = x[0]->t;
  struct ir_val *in = ARENA_ARRAY(fe_trace_arena(f->fe), struct ir_val, n);
  struct dsl_pad p[IR_MAX_RANK];
  for (uint32_t i = 0; i < n; i++) {
    in[i] = x[i]->v;
    if (i)
      t.dim[axis] += x[i]->t.dim[axis];
    for (uint32_t d = 0; d < t.rank; d++)
      p[d] = i ? join(p[d], dsl_pad_of(x[i], d)) : dsl_pad_of(x[i], d);
  }
  if (ir_elems(t) > FE_MAX_ELEMS) {
    fe_soft_error(f->fe, DIAG_LIMIT,
                  "cat: a tile %s has %" PRId64 " elements; %" PRId64 " are the most",
                  dsl_shape_text(f, t), ir_elems(t), (int64_t)FE_MAX_ELEMS);
    return NULL;
  }
  struct ir_op o = dsl_build(f, IR_CONCAT, n, in, 1, &t);
  ir_set_attr(f->m, o, (struct ir_attr){.key = IR_ATTR_axis, .i = axis});
  return with_pads(f, dsl_new_val(f, t, ir_op_at(f->m, o)->out[0]), p);
}

/* ---- bits ---- */

struct dsl_val *dsl_bitcast(struct fe_file *f, struct dsl_val *x, enum dtype to) {
  enum dtype from = dtype_of(x);
  if (f->mode != DSL_BODY) {
    fe_soft_error(f->fe, DIAG_STAGE_OPERAND,
                  "bitcast is not available here: tiles live in a kernel's body");
    return NULL;
  }
  if (from == DT_BOOL || from == DT_INDEX || to == DT_BOOL || to == DT_INDEX) {
    enum dtype bad = from == DT_BOOL || from == DT_INDEX ? from : to;
    fe_soft_error(f->fe, DIAG_TYPE_MISMATCH,
                  "bitcast of %s to %s: %s has no bits to speak of; use cast",
                  dsl_describe_type(f, x->t), dtype_name(to), dtype_name(bad));
    return NULL;
  }
  if (from == to)
    return x;
  struct ir_type t = x->t;
  int64_t wide_from = dtype_bits(from), wide_to = dtype_bits(to);
  t.dtype = (uint8_t)to;
  if (wide_from != wide_to) {
    if (t.kind == IR_SCALAR) {
      fe_soft_error(f->fe, DIAG_TYPE_MISMATCH,
                    "bitcast of a scalar %s to %s: %lld bits are not %lld", dtype_name(from),
                    dtype_name(to), (long long)wide_from, (long long)wide_to);
      return NULL;
    }
    int64_t *last = &t.dim[t.rank - 1];
    if (*last * wide_from % wide_to) {
      fe_soft_error(f->fe, DIAG_SHAPE_MISMATCH,
                    "bitcast of %s to %s: the last dim, %" PRId64
                    " elements of %lld bits, is no whole number of elements of %lld",
                    dsl_describe_type(f, x->t), dtype_name(to), *last, (long long)wide_from,
                    (long long)wide_to);
      return NULL;
    }
    *last = *last * wide_from / wide_to;
    if (ir_elems(t) > FE_MAX_ELEMS) {
      fe_soft_error(f->fe, DIAG_LIMIT,
                    "bitcast: a tile %s has %" PRId64 " elements; %" PRId64 " are the most",
                    dsl_shape_text(f, t), ir_elems(t), (int64_t)FE_MAX_ELEMS);
      return NULL;
    }
  }
  struct dsl_val *r = dsl_new_val(f, t, dsl_build1(f, IR_BITCAST, t, 1, &x->v));
  if (!x->pads)
    return r;
  struct dsl_pad p[IR_MAX_RANK];
  for (uint32_t d = 0; d < t.rank; d++) {
    p[d] = x->pads[d];
    /* All bits 0 are 0 in every dtype. */
    p[d].known = p[d].known && p[d].value == 0 && !signbit(p[d].value);
    p[d].pos = false;
  }
  return with_pads(f, r, p);
}
