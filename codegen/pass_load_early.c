/* Loads of what follows the dots of a tile, made while these run: in kernels with a producer.
 *
 * Before: layouts assigned; paths chosen. After: a tile that one store alone takes comes through
 * that store's own staging (path `staging`); a load of few registers (a row of biases) that stood
 * behind the first loop with dots stands before it, unless registers are to be spared (`spare`).
 *
 * The store's shared memory is free from when its last tile has been read until the next one is
 * written: the producer has the tile loaded there as soon as the loads of the dots are issued, and
 * each panel of the store is read, computed and written in its place (lower_box.c). It costs no
 * memory, and no one waits for it: read by each thread from memory, panel by panel, bias and
 * residual took 6 % of a GEMM of 4096^3.
 *
 * A store takes one load: of its own tile's size and dtype, in its layout, from which it is
 * computed element by element. */
#include "codegen/box.h"
#include "codegen/pass.h"
#include "codegen/schedule.h"
#include "ir/walk.h"

#define EARLY_REGS  32 /* of a thread: a row of biases for 256 columns, held beside 128 of a dot */
#define MOST_GROUPS 2  /* three have no registers to spare */

struct early {
  struct ir_module *m;
  struct cg_uses uses;
  const struct ir_intervals *intervals;
  struct ir_op *end; /* by value: store_of, */
  bool *seen;        /* once asked */
};

/* The one store that the value ends in, over element-wise ops of one block; or 0. */
static struct ir_op store_of(struct early *x, struct ir_val v, struct ir_block b) {
  const struct ir_module *m = x->m;
  struct ir_op *end = &x->end[v.id];
  if (x->seen[v.id])
    return *end;
  x->seen[v.id] = true;
  for (uint32_t i = x->uses.first[v.id]; i; i = x->uses.list.at[i].next) {
    struct ir_op user = x->uses.list.at[i].op, to = {0};
    const struct ir_opnode *n = ir_op_at(m, user);
    if (n->block.id == b.id && n->opcode == IR_STORE)
      to = user;
    else if (n->block.id == b.id && cg_is_elementwise(n->opcode) && n->n_out == 1)
      to = store_of(x, n->out[0], b);
    if (!to.id || (end->id && end->id != to.id))
      return *end = (struct ir_op){0};
    *end = to;
  }
  return *end;
}

/* Do blocks of a cluster share a loop? Then one of them alone does what follows (lower_parts.c). */
static bool is_parted(const struct ir_module *m) {
  IR_EACH_OP (m, m->body, o)
    if (ir_op_at(m, o)->opcode == IR_FOR && ir_attr_int(m, o, IR_ATTR_parts, 1) > 1)
      return true;
  return false;
}

static bool lands(struct early *x, struct ir_op load, struct ir_op store) {
  struct ir_module *m = x->m;
  struct cg_box in, out;
  const struct ir_opnode *n = ir_op_at(m, load), *s = ir_op_at(m, store);
  struct ir_val stored = s->in[s->n_in - 1u];
  struct ir_type from = ir_type_of(m, n->out[0]), to = ir_type_of(m, stored);
  if (!str_eq(cg_attr_word(m, load, IR_ATTR_path), "frag") ||
      !str_eq(cg_attr_word(m, store, IR_ATTR_path), "tma") ||
      cg_is_pinned(m, cg_attr_word(m, load, IR_ATTR_label), "path") || cg_is_stored(m, load))
    return false;
  for (uint32_t i = 0; i < n->n_in; i++)
    if (!cg_is_replayed(m, n->in[i]))
      return false;
  if (from.rank != 2 || to.rank != 2 || from.dim[0] != to.dim[0] || from.dim[1] != to.dim[1] ||
      from.dtype != to.dtype || dtype_bits((enum dtype)from.dtype) != 16 ||
      ir_value_at(m, n->out[0])->layout != ir_value_at(m, stored)->layout)
    return false;
  return !cg_box_of(m, x->intervals, load, &in) && !cg_box_of(m, x->intervals, store, &out) &&
         in.tile_dim[in.inner] == out.tile_dim[out.inner];
}

static bool has_dots(const struct ir_module *m, struct ir_op loop) {
  struct ir_block b = ir_op_at(m, loop)->blocks[0];
  for (struct ir_op o = ir_block_at(m, b)->first; o.id; o = ir_walk_next(m, o, b))
    if (ir_op_at(m, o)->opcode == IR_DOT)
      return true;
  return false;
}

/* Moves loads of few registers before the first loop with dots, if their operands are there. */
static void move_loads(struct early *x, struct arena *scratch, bool *changed) {
  struct ir_module *m = x->m;
  bool *known = ARENA_ARRAY(scratch, bool, m->ops.n + 1);
  struct ir_op loop = {0}, next;
  int64_t held = 0;
  for (struct ir_op o = ir_block_at(m, m->body)->first; o.id; o = next) {
    const struct ir_opnode *n = ir_op_at(m, o);
    next = n->next;
    if (!loop.id && n->opcode == IR_FOR && has_dots(m, o))
      loop = o;
    known[o.id] = !loop.id;
    if (!loop.id || n->opcode != IR_LOAD || !str_eq(cg_attr_word(m, o, IR_ATTR_path), "frag") ||
        cg_is_stored(m, o))
      continue;
    bool ready = true;
    for (uint32_t i = 0; i < n->n_in; i++) {
      struct ir_op def = ir_value_at(m, n->in[i])->def;
      ready = ready && (!def.id || known[def.id]);
    }
    uint32_t layout = ir_value_at(m, n->out[0])->layout;
    if (!ready || !layout)
      continue;
    int64_t bytes = dtype_bytes((enum dtype)ir_type_of(m, n->out[0]).dtype, 1);
    int64_t regs = (layout_extent(m->layouts.at[layout], LAYOUT_REG) * bytes + 3) / 4;
    if (held + regs > EARLY_REGS)
      continue;
    held += regs;
    ir_move_before(m, o, m->body, loop);
    known[o.id] = true;
    *changed = true;
  }
}

bool cg_pass_load_early(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  struct early x = {.m = m};
  if (cg_knob_get(m, CG_KNOB_WARPGROUPS) <= 0)
    return true;
  x.uses = cg_collect_uses(m, ctx->scratch);
  x.intervals = ir_find_intervals(m, ctx->scratch);
  x.end = ARENA_ARRAY(ctx->scratch, struct ir_op, m->values.n + 1);
  x.seen = ARENA_ARRAY(ctx->scratch, bool, m->values.n + 1);
  bool *taken = ARENA_ARRAY(ctx->scratch, bool, m->ops.n + 1);
  bool here = cg_knob_get(m, CG_KNOB_STAGING) <= 0 && !is_parted(m);
  IR_EACH_OP (m, m->body, o) {
    if (ir_op_at(m, o)->opcode != IR_LOAD || !here)
      continue;
    struct ir_op store = store_of(&x, ir_op_at(m, o)->out[0], m->body);
    if (!store.id || taken[store.id] || !lands(&x, o, store))
      continue;
    taken[store.id] = true;
    cg_set_word(m, o, IR_ATTR_path, "staging");
    *changed = true;
  }
  if (cg_knob_get(m, CG_KNOB_WARPGROUPS) <= MOST_GROUPS && cg_knob_get(m, CG_KNOB_SPARE) <= 0)
    move_loads(&x, ctx->scratch, changed);
  return true;
}
