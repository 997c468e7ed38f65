/* Interpreter: loops in parts, for tests of what says that they may be cut.
 *
 * A range of iterations is cut in two at random, each half perhaps again; a part at the end runs
 * from its own start, and where two meet the block of the merge op behind the loop makes one of
 * them. Parts are never empty. All that a part leaves lives in the slots of the carried values;
 * what waits for its other half is saved aside. */
#include "ir/interp_impl.h"

#include "base/check.h"

#include <string.h>

void interp_cut_begin(struct interp *in) {
  struct ir_module *copy = ir_clone(in->m, in->arena);
  struct ir_merges merges = {.arena = in->arena};
  ir_add_merges(copy, &merges);
  in->m = copy;
  in->n_cuts = merges.list.n;
  in->cuts = ARENA_ARRAY(in->arena, struct interp_cut, merges.list.n + 1);
  in->cut_of = ARENA_ARRAY(in->arena, uint32_t, copy->ops.n);
  for (uint32_t i = 0; i < merges.list.n; i++) {
    in->cuts[i].how = merges.list.at[i];
    in->cut_of[merges.list.at[i].loop.id] = i + 1;
  }
}

static const struct ir_val *carried_of(const struct interp *in, struct ir_op loop) {
  return ir_block_at(in->m, ir_op_at(in->m, loop)->blocks[0])->args.at + 1;
}

void interp_cut_prepare(struct interp *in) {
  for (uint32_t o = 1; o < in->m->ops.n; o++) {
    struct interp_cut *cut = in->cut_of[o] ? &in->cuts[in->cut_of[o] - 1] : NULL;
    size_t bytes = 0;
    for (uint32_t k = 0; cut && k < cut->how.n; k++)
      bytes += in->buf_bytes[in->slot[carried_of(in, (struct ir_op){o})[k].id]];
    for (uint32_t level = 0; cut && level < INTERP_CUT_DEPTH; level++)
      cut->saved[level] = arena_get(in->arena, bytes);
  }
}

struct cutter {
  struct interp *in;
  const struct ir_opnode *loop;
  struct interp_cut *cut;
  const struct ir_val *carried;
  int64_t lo, step;
};

static uint64_t random_below(struct interp *in, uint64_t n) {
  in->cut_state += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t x = in->cut_state;
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return (x ^ x >> 31) % n;
}

/* Iterations [first, first + n) from the start of a part. */
static void run_part(const struct cutter *c, uint64_t first, uint64_t n) {
  struct interp *in = c->in;
  interp_move(in, c->cut->how.n, c->loop->in + 3, c->carried, (struct ir_block){0});
  for (uint32_t k = 0; k < c->cut->how.n && first; k++)
    if (c->cut->how.kind[k] == IR_MERGE_SUM) {
      uint32_t slot = in->slot[c->carried[k].id];
      memset(in->buf[slot], 0, in->buf_bytes[slot]);
    }
  const struct ir_blocknode *body = ir_block_at(in->m, c->loop->blocks[0]);
  for (uint64_t i = first; i < first + n && !in->stopped; i++) {
    *(int64_t *)val_buf(in, body->args.at[0]) = c->lo + (int64_t)i * c->step;
    interp_exec_block(in, c->loop->blocks[0]);
    if (!in->stopped)
      interp_move_yielded(in, c->loop->blocks[0], 0, c->carried);
  }
}

/* The carried values to or from a place aside. */
static void save(const struct cutter *c, char *to) {
  for (uint32_t k = 0; k < c->cut->how.n; k++) {
    uint32_t slot = c->in->slot[c->carried[k].id];
    memcpy(to, c->in->buf[slot], c->in->buf_bytes[slot]);
    to += c->in->buf_bytes[slot];
  }
}

/* carried = merge(saved, carried) */
static void merge(const struct cutter *c, const char *saved) {
  struct interp *in = c->in;
  struct ir_block b = ir_op_at(in->m, c->cut->how.merge)->blocks[0];
  const struct ir_opnode *op = ir_op_at(in->m, c->cut->how.merge);
  const struct ir_val *p = ir_block_at(in->m, b)->args.at, *q = p + op->n_in;
  for (uint32_t k = 0; k < op->n_in; k++) {
    /* An operand that is no result of the loop does not change in it. */
    struct ir_val v = op->in[k], from = v;
    const char *part = NULL;
    if (ir_value_at(in->m, v)->def.id == c->cut->how.loop.id) {
      uint32_t at = ir_value_at(in->m, v)->index;
      from = c->carried[at];
      part = saved;
      for (uint32_t j = 0; j < at; j++)
        part += in->buf_bytes[in->slot[c->carried[j].id]];
    }
    size_t bytes = in->buf_bytes[in->slot[from.id]];
    memcpy(val_buf(in, p[k]), part ? part : (const char *)val_buf(in, from), bytes);
    memcpy(val_buf(in, q[k]), val_buf(in, from), bytes);
  }
  interp_exec_block(in, b);
  if (in->stopped)
    return;
  const struct ir_opnode *end = ir_op_at(in->m, ir_block_at(in->m, b)->last);
  for (uint32_t k = 0; k < op->n_in; k++) {
    const struct ir_value *v = ir_value_at(in->m, op->in[k]);
    if (v->def.id == c->cut->how.loop.id)
      memcpy(val_buf(in, c->carried[v->index]), val_buf(in, end->in[k]),
             in->buf_bytes[in->slot[end->in[k].id]]);
  }
}

static void run_range(const struct cutter *c, uint64_t first, uint64_t n, uint32_t level) {
  struct interp *in = c->in;
  if (n < 2 || level == INTERP_CUT_DEPTH || (level && random_below(in, 3) == 0)) {
    run_part(c, first, n);
    return;
  }
  uint64_t left = 1 + random_below(in, n - 1);
  run_range(c, first, left, level + 1);
  if (in->stopped)
    return;
  save(c, c->cut->saved[level]);
  run_range(c, first + left, n - left, level + 1);
  if (!in->stopped)
    merge(c, c->cut->saved[level]);
}

void interp_cut_exec(struct interp *in, struct ir_op o, struct interp_cut *cut, int64_t lo,
                     int64_t hi, int64_t step) {
  struct cutter c = {in, ir_op_at(in->m, o), cut, carried_of(in, o), lo, step};
  KILN_ASSERT(lo < hi && step > 0);
  run_range(&c, 0, ((uint64_t)hi - (uint64_t)lo - 1) / (uint64_t)step + 1, 0);
}
