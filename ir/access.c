/* Range facts put to use; see access.h. */
#include "ir/access.h"

#include "base/check.h"
#include "ir/range.h"
#include "ir/walk.h"

bool ir_access_of(const struct ir_module *m, struct ir_op o, struct ir_access *out) {
  const struct ir_opnode *n = ir_op_at(m, o);
  if (n->opcode != IR_LOAD && n->opcode != IR_STORE)
    return false;
  struct ir_entry e = ir_entry_of(m, n->in[0]);
  *out = (struct ir_access){.op = o, .view = n->in[0], .offset = n->in + 1};
  out->arg = e.kind == IR_ENTRY_ARG ? e.index : IR_NO_ARG;
  out->rank = ir_type_of(m, n->in[0]).rank;
  out->tile = ir_type_of(m, n->opcode == IR_LOAD ? n->out[0] : n->in[1 + out->rank]);
  return true;
}

/* The size of a view's dim as a launch expression, or {0}. */
static struct expr size_of(struct ir_module *m, const struct ir_access *a, uint32_t d) {
  int64_t n = ir_type_of(m, a->view).dim[d];
  if (a->arg != IR_NO_ARG)
    return m->args.at[a->arg].dim[d];
  return n == IR_DYN ? (struct expr){0} : expr_const(&m->exprs, n);
}

static bool fits(struct ir_module *m, const struct ir_intervals *r, const struct ir_access *a,
                 uint32_t d) {
  struct expr dim = size_of(m, a, d);
  int64_t size, end;
  if (!dim.id)
    return false;
  if (ir_val_fits(m, a->offset[d], a->tile.dim[d], dim))
    return true;
  return r && ir_expr_value(m, dim, &size) &&
         !__builtin_add_overflow(ir_interval_of(r, a->offset[d]).hi, a->tile.dim[d], &end) &&
         end <= size;
}

void ir_access_masks(struct ir_module *m, const struct ir_intervals *r, const struct ir_access *a,
                     int64_t masks[IR_MAX_RANK]) {
  for (uint32_t d = 0; d < a->rank; d++) {
    bool starts =
        ir_val_is_nonneg(m, a->offset[d]) || (r && ir_interval_of(r, a->offset[d]).lo >= 0);
    masks[d] = (fits(m, r, a, d) ? 0 : IR_MASK_END) | (starts ? 0 : IR_MASK_START);
  }
}

bool ir_fits_32(const struct ir_intervals *r, struct ir_val v) {
  struct ir_interval i = ir_interval_of(r, v);
  return i.lo >= INT32_MIN && i.hi <= INT32_MAX;
}

static uint32_t count_last_only(struct ir_module *m, const struct ir_intervals *r,
                                struct ir_op loop) {
  struct ir_block b = ir_op_at(m, loop)->blocks[0];
  uint32_t n = 0;
  struct ir_op o = ir_block_at(m, b)->first;
  for (; o.id; o = ir_walk_next(m, o, b)) {
    struct ir_access a;
    bool found = false;
    if (!ir_access_of(m, o, &a))
      continue;
    for (uint32_t d = 0; d < a.rank && !found; d++) {
      struct expr dim = size_of(m, &a, d);
      found = dim.id && !fits(m, r, &a, d) &&
              ir_val_fits_but_last(m, a.offset[d], a.tile.dim[d], dim).id == loop.id;
    }
    n += found;
  }
  return n;
}

struct ir_loop_facts ir_loop_facts(struct ir_module *m, const struct ir_intervals *r,
                                   struct ir_op loop) {
  const struct ir_opnode *n = ir_op_at(m, loop);
  KILN_ASSERT(n->opcode == IR_FOR);
  struct ir_interval lo = ir_interval_of(r, n->in[0]), hi = ir_interval_of(r, n->in[1]),
                     step = ir_interval_of(r, n->in[2]);
  struct ir_loop_facts f = {.runs = lo.hi < hi.lo, .trips = -1};
  bool fixed = step.lo == step.hi && step.lo > 0;
  int64_t span;
  f.even = fixed && lo.div % step.lo == 0 && hi.div % step.lo == 0;
  if (fixed && lo.lo == lo.hi && hi.lo == hi.hi && !__builtin_sub_overflow(hi.lo, lo.lo, &span)) {
    f.trips = span > 0 ? (span - 1) / step.lo + 1 : 0;
    f.even = f.even || (span > 0 && span % step.lo == 0);
  }
  f.n_last_only = count_last_only(m, r, loop);
  return f;
}
