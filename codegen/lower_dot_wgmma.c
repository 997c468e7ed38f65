/* Dots on the matrix unit of warpgroups: operands in shared memory as the tensor memory unit left
 * them, or, computed, the left one in registers and the right one written there; the accumulator in
 * registers.
 *
 * Descriptors (PTX ISA, "Shared Memory Matrix Layout"), in steps of an instruction's k, 32 bytes:
 *   K-major    a step is 32 bytes on in a panel of 128 (64, 32) bytes of k, then the next panel; 64
 *              rows or n columns on are that many rows of the panel
 *   MN-major   of 16-bit elements: a step is 16 rows on; 64 rows or columns are a panel
 *
 * A in registers is a fragment of its own layout (cg_layout_wgmma_a); while the dot is in flight
 * nobody writes it. One that comes from outside of the dot's block is copied in each iteration:
 * ptxas 13.0 gives registers that live through a loop as A to other dots of the loop, too, and
 * these overwrite them.
 *
 * Where sums are promoted, IR_PROMOTED_K of k are summed in a fragment that starts at nothing, and
 * that is added to the accumulator when they are done.
 *
 * A dot that a loop carries to itself stays in flight while the next iteration waits for its slots:
 * one group is left open, and the slots of the iteration before are released. Others are waited for
 * at once. */
#include "base/check.h"
#include "codegen/lower.h"

#define STEP_BYTES 32

/* An operand: its descriptor at the slot, and what to add, in 16-byte units. */
struct unit {
  const struct cg_smem *s;
  bool k_inner;
  struct ir_val desc; /* of this warpgroup's first row or column */
};

/* Bytes from the matrix's start to row or column `mn` (a multiple of 8; of the panel where that is
 * the inner dim). */
static int64_t mn_bytes(const struct unit *u, int64_t mn) {
  return u->k_inner ? mn * u->s->pitch : mn / u->s->panel * u->s->outer * u->s->pitch;
}

/* slot: bytes; k_dim: of the tile that lies there. */
static struct unit unit_at(struct lower *l, const struct cg_smem *s, struct ir_val slot, int k_dim,
                           struct ir_val group, int64_t per_group) {
  struct unit u = {.s = s, .k_inner = s->inner_dim == k_dim};
  struct ir_builder saved = cg_enter_top(l);
  struct ir_val from = cg_muli(l, group, mn_bytes(&u, per_group));
  struct ir_type t = ir_scalar(DT_S32);
  struct ir_op desc = ir_build(&l->b, IR_DESC, 1, &from, 1, &t);
  ir_set_res(l->m, desc, 1, &u.s->buf);
  cg_leave_top(l, saved);
  slot = cg_op2(l, IR_SHR, slot, cg_s32(l, 4));
  u.desc = cg_add(l, ir_op_at(l->m, desc)->out[0], slot);
  return u;
}

static struct unit open_unit(struct lower *l, struct ir_op dot, int i, struct ir_val group,
                             int64_t per_group) {
  struct ir_module *m = l->m;
  struct ir_val v = ir_op_at(m, dot)->in[i];
  if (!cg_takes_loaded(m, dot, (uint32_t)i))
    return unit_at(l, cg_write_panels(l, v, i ? "rhs" : "lhs"), cg_s32(l, 0), i == 0 ? 1 : 0, group,
                   per_group);
  struct cg_operand_source src = cg_trace_operand(m, v);
  const struct cg_lval *x = &l->val[ir_op_at(m, src.load)->out[0].id];
  KILN_ASSERT(x->smem);
  return unit_at(l, x->smem, x->scalar, src.dim[i == 0 ? 1 : 0], group, per_group);
}

/* The descriptor for step k, `mn` rows or columns on. */
static struct ir_val desc_at(struct lower *l, const struct unit *u, struct ir_val k,
                             struct ir_val mn_index, int64_t mn) {
  int64_t step = cg_wgmma_k(u->s->dtype), per = u->s->panel / step,
          panels = (u->s->inner + u->s->panel - 1) / u->s->panel;
  struct ir_val by;
  if (u->k_inner) {
    int64_t map[4] = {per, STEP_BYTES / 16, panels, u->s->outer * u->s->pitch / 16};
    by = cg_digits(l, k, 4, map);
  } else {
    by = cg_muli(l, k, step * u->s->pitch / 16);
  }
  by = cg_add(l, by, cg_muli(l, mn_index, mn_bytes(u, mn) / 16));
  return cg_add(l, u->desc, by);
}

bool cg_is_zero_tile(const struct lower *l, struct ir_val v) {
  struct ir_op def = ir_value_at(l->m, v)->def;
  if (!def.id || ir_op_at(l->m, def)->opcode != IR_SPLAT)
    return false;
  struct ir_op c = ir_value_at(l->m, ir_op_at(l->m, def)->in[0])->def;
  if (!c.id || ir_op_at(l->m, c)->opcode != IR_CONST)
    return false;
  const struct ir_attr *a = ir_get_attr(l->m, c, IR_ATTR_value);
  return dtype_is_float((enum dtype)ir_type_of(l->m, v).dtype) ? a->f == 0 : a->i == 0;
}

/* The accumulator, and whether it holds something yet. */
static uint32_t open_acc(struct lower *l, struct ir_op o, struct ir_val *filled) {
  struct ir_module *m = l->m;
  struct ir_val v = ir_op_at(m, o)->in[2];
  struct cg_lval *x = &l->val[v.id];
  if (cg_is_zero_tile(l, v) && x->kind != CG_LV_FRAG) {
    *filled = cg_bool(l, false);
    return cg_new_frag(l, "acc", ir_type_of(m, v), cg_layout_of(l, ir_op_at(m, o)->out[0]));
  }
  *filled = x->filled.id ? x->filled : cg_bool(l, true);
  return cg_open_acc(l, o);
}

/* Does another dot that stays in flight follow, before anything waits? They are one group. */
static bool joins_next(struct lower *l, struct ir_op dot) {
  for (struct ir_op o = ir_op_at(l->m, dot)->next; o.id; o = ir_op_at(l->m, o)->next)
    if (ir_op_at(l->m, o)->opcode == IR_DOT)
      return cg_is_deferred(l, o);
  return false;
}

static void wait_for(struct lower *l, int64_t pending) {
  struct ir_op o = ir_build(&l->b, IR_WGMMA_WAIT, 0, NULL, 0, NULL);
  cg_set_int(l->m, o, IR_ATTR_pending, pending);
}

/* The first of the dots of one group whose last is `dot`. */
static struct ir_op first_of_group(struct lower *l, struct ir_op dot) {
  struct ir_op first = dot;
  IR_EACH_OP (l->m, ir_op_at(l->m, dot)->block, o) {
    if (o.id == dot.id)
      break;
    if (ir_op_at(l->m, o)->opcode == IR_DOT)
      first = !cg_is_deferred(l, o) ? dot : first.id == dot.id ? o : first;
  }
  return first;
}

/* After the last dot of a group: leaves the group open, waits for the one before and releases what
 * that read. */
static void keep_flying(struct lower *l, struct ir_op dot) {
  struct ir_module *m = l->m;
  struct ir_op loop = ir_block_at(m, ir_op_at(m, dot)->block)->parent;
  struct ir_val index = cg_scalar(l, ir_block_at(m, ir_op_at(m, dot)->block)->args.at[0]);
  bool parted = l->roles->parted.id == loop.id;
  struct ir_val start = parted ? l->roles->part_start : cg_scalar(l, ir_op_at(m, loop)->in[0]);
  struct ir_val later = cg_cmp(l, IR_GT, index, start);
  struct ir_builder saved = cg_enter_if(l, later);
  wait_for(l, 1);
  cg_leave_if(l, saved);
  for (struct ir_op o = first_of_group(l, dot);; o = ir_op_at(m, o)->next) {
    if (ir_op_at(m, o)->opcode == IR_DOT) {
      cg_release_feeds(l, o, true, later);
      cg_advance_feeds(l, o);
    }
    if (o.id == dot.id)
      return;
  }
}

/* A dot ready to be issued. */
struct dot {
  struct ir_op op;
  struct cg_wgmma_cut cut;
  struct unit a, b; /* a.s NULL: in registers */
  uint32_t a_res;   /* buffer or fragment */
  int64_t k, step;  /* of the dot, of an instruction */
};

/* A, a fragment, written in the dot's block. */
static uint32_t own_a(struct lower *l, struct ir_op dot) {
  struct ir_module *m = l->m;
  struct ir_val v = ir_op_at(m, dot)->in[0];
  uint32_t a = cg_materialize(l, v, "a");
  struct ir_op def = ir_value_at(m, v)->def;
  uint32_t block = def.id ? ir_op_at(m, def)->block.id : ir_value_at(m, v)->block.id;
  if (block == ir_op_at(m, dot)->block.id)
    return a;
  uint32_t layout = m->res.at[a].layout, own = cg_new_frag(l, "own", ir_type_of(m, v), layout);
  cg_fill_frag(l, own, v, layout);
  ir_set_res(m, ir_build(&l->b, IR_RENEW, 0, NULL, 0, NULL), 1, &own);
  return own;
}

static struct dot open_dot(struct lower *l, struct ir_op o) {
  struct ir_module *m = l->m;
  const struct ir_attr *wa = ir_get_attr(m, o, IR_ATTR_warps);
  struct cg_warps w = {(uint32_t)wa->ints[0], (uint32_t)wa->ints[1]};
  struct ir_type a = ir_type_of(m, ir_op_at(m, o)->in[0]), c = ir_type_of(m, ir_op_at(m, o)->in[2]);
  struct dot d = {.op = o, .cut = cg_wgmma_cut(c.dim[0], c.dim[1], w, false), .k = a.dim[1]};
  uint32_t along = w.rows / 4;
  struct ir_val row = l->roles->group, col = cg_s32(l, 0);
  struct ir_builder saved = cg_enter_top(l);
  if (w.cols > 1) {
    row = cg_digits(l, l->roles->group, 4, (int64_t[]){along, 1, w.cols, 0});
    col = cg_digits(l, l->roles->group, 4, (int64_t[]){along, 0, w.cols, 1});
  }
  cg_leave_top(l, saved);
  d.step = cg_wgmma_k((enum dtype)a.dtype);
  if (cg_has_a_in_registers(m, o)) {
    d.a_res = own_a(l, o);
  } else {
    d.a = open_unit(l, o, 0, row, 64 * (int64_t)d.cut.blocks);
    d.a_res = d.a.s->buf;
  }
  d.b = open_unit(l, o, 1, col, (int64_t)d.cut.atoms * d.cut.n);
  return d;
}

/* `steps` instructions' k from step `first` on into acc, which holds something if `filled`. */
static void issue(struct lower *l, const struct dot *d, uint32_t acc, struct ir_val filled,
                  struct ir_val first, uint32_t steps) {
  struct ir_module *m = l->m;
  struct ir_builder out[3];
  ir_build(&l->b, IR_WGMMA_FENCE, 0, NULL, 0, NULL);
  struct ir_val s = cg_each(l, steps, &out[0]), k = cg_add(l, first, s);
  struct ir_val block = cg_each(l, d->cut.blocks, &out[1]),
                atom = cg_each(l, d->cut.atoms, &out[2]);
  struct ir_val in[4], later = cg_cmp(l, IR_GT, s, cg_s32(l, 0));
  in[0] = cg_muli(l, block, d->cut.atoms * (int64_t)d->cut.n / 2);
  in[0] = cg_add(l, in[0], cg_muli(l, atom, d->cut.n / 2));
  /* A thread holds half of the elements of an instruction's k columns, block by block. */
  in[1] = !d->a.s ? cg_add(l, cg_muli(l, block, d->k / 2), cg_muli(l, k, d->step / 2))
                  : desc_at(l, &d->a, k, block, 64);
  in[2] = desc_at(l, &d->b, k, atom, d->cut.n);
  in[3] = cg_op2(l, IR_OR, later, filled);
  struct ir_op g = cg_res_op(l, IR_WGMMA, 3, (uint32_t[]){acc, d->a_res, d->b.s->buf}, 4, in);
  const char *shape = arena_printf(m->arena, "m64n%uk%lld", d->cut.n, (long long)d->step);
  cg_set_word(m, g, IR_ATTR_shape, shape);
  if (d->a.s && !d->a.k_inner)
    cg_set_int(m, g, IR_ATTR_trans_a, 1);
  if (!d->b.k_inner)
    cg_set_int(m, g, IR_ATTR_trans_b, 1);
  for (int i = 2; i >= 0; i--)
    cg_end_each(l, out[i]);
}

/* Waits for all groups; what is computed from acc stays behind that. */
static void finish(struct lower *l, uint32_t acc) {
  wait_for(l, 0);
  ir_set_res(l->m, ir_build(&l->b, IR_PIN, 0, NULL, 0, NULL), 1, &acc);
}

static uint32_t promote(struct lower *l, const struct dot *d) {
  struct ir_module *m = l->m;
  struct ir_type t = ir_type_of(m, ir_op_at(m, d->op)->in[2]);
  uint32_t part = cg_new_frag(l, "part", t, cg_layout_of(l, ir_op_at(m, d->op)->out[0]));
  uint32_t acc = cg_open_acc(l, d->op), steps = (uint32_t)(d->k / d->step);
  uint32_t most = (uint32_t)(IR_PROMOTED_K / d->step), at_once = steps < most ? steps : most;
  struct ir_builder chunks, regs;
  struct ir_val chunk = cg_each(l, steps / at_once, &chunks), terms[2];
  issue(l, d, part, cg_bool(l, false), cg_muli(l, chunk, at_once), at_once);
  ir_build(&l->b, IR_WGMMA_COMMIT, 0, NULL, 0, NULL);
  finish(l, part);
  struct ir_val r = cg_each(l, cg_frag_elems(l, acc), &regs);
  terms[0] = cg_fget(l, acc, r);
  terms[1] = cg_fget(l, part, r);
  struct ir_val sum = ir_build1(&l->b, IR_ADD, ir_scalar((enum dtype)t.dtype), 2, terms);
  cg_fput(l, acc, r, 1, &sum);
  cg_end_each(l, regs);
  cg_end_each(l, chunks);
  return acc;
}

void cg_dot_wgmma(struct lower *l, struct ir_op o) {
  struct dot d = open_dot(l, o);
  struct cg_lval *v = &l->val[ir_op_at(l->m, o)->out[0].id];
  bool promotes = cg_wgmma_promotes(l->m, o), deferred = cg_is_deferred(l, o);
  if (promotes) {
    v->frag = promote(l, &d);
  } else {
    struct ir_val filled;
    v->frag = open_acc(l, o, &filled);
    issue(l, &d, v->frag, filled, cg_s32(l, 0), (uint32_t)(d.k / d.step));
  }
  v->kind = CG_LV_FRAG;
  if (deferred && joins_next(l, o))
    return;
  if (!promotes)
    ir_build(&l->b, IR_WGMMA_COMMIT, 0, NULL, 0, NULL);
  if (deferred) {
    keep_flying(l, o);
    return;
  }
  if (!promotes)
    finish(l, v->frag);
  cg_release_feeds(l, o, false, cg_bool(l, true));
  cg_advance_feeds(l, o);
}
