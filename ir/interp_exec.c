/* Interpreter: dispatch and control flow.
 *
 * Ops come through a table from opcode to function. A terminator does nothing by itself: the op
 * that owns the block reads its operands and moves them to where its results or the next
 * iteration's arguments live. */
#include "ir/interp_impl.h"

#include <string.h>

/* Work between two questions to opt.interrupted: some milliseconds of elementwise work. */
#define POLL_WORK (UINT64_C(1) << 22)

static struct ir_op last_op(const struct interp *in, struct ir_block b) {
  return ir_block_at(in->m, b)->last;
}

/* ---- moving values between blocks ---- */

static bool is_slot_of(const struct interp *in, uint32_t slot, uint32_t n,
                       const struct ir_val *vals) {
  for (uint32_t k = 0; k < n; k++)
    if (in->slot[vals[k].id] == slot)
      return true;
  return false;
}

static uint32_t times_used(const struct interp *in, uint32_t slot, uint32_t n,
                           const struct ir_val *vals) {
  uint32_t times = 0;
  for (uint32_t k = 0; k < n; k++)
    times += in->slot[vals[k].id] == slot;
  return times;
}

/* to[k] = from[k] for all k at once. A source made by an op of `dying`, the block that ends here,
 * is not read again before it is made again: its buffer changes places with the target's. Other
 * sources are copied, through scratch memory if they are targets too (a swap of two carried
 * values). */
void interp_move(struct interp *in, uint32_t n, const struct ir_val *from, const struct ir_val *to,
                 struct ir_block dying) {
  char *scratch = in->scratch;
  size_t used = 0;
  for (uint32_t k = 0; k < n; k++) {
    uint32_t s = in->slot[from[k].id];
    if (s != in->slot[to[k].id] && is_slot_of(in, s, n, to)) {
      memcpy(scratch + used, in->buf[s], in->buf_bytes[s]);
      used += in->buf_bytes[s];
    }
  }
  used = 0;
  for (uint32_t k = 0; k < n; k++) {
    uint32_t s = in->slot[from[k].id], d = in->slot[to[k].id];
    size_t bytes = in->buf_bytes[s];
    if (s == d)
      continue;
    struct ir_op def = ir_value_at(in->m, from[k])->def;
    if (is_slot_of(in, s, n, to)) {
      memcpy(in->buf[d], scratch + used, bytes);
      used += bytes;
    } else if (def.id && ir_op_at(in->m, def)->block.id == dying.id &&
               times_used(in, s, n, from) == 1) {
      void *buf = in->buf[s];
      in->buf[s] = in->buf[d];
      in->buf[d] = buf;
    } else {
      memcpy(in->buf[d], in->buf[s], bytes);
    }
  }
}

/* Moves the operands of the block's terminator, from `skip` on. */
void interp_move_yielded(struct interp *in, struct ir_block b, uint32_t skip,
                         const struct ir_val *to) {
  const struct ir_opnode *end = ir_op_at(in->m, last_op(in, b));
  interp_move(in, end->n_in - skip, end->n_in > skip ? end->in + skip : NULL, to, b);
}

/* ---- control ---- */

/* Which iteration of the loops around runs, as far as a watch wants to know. */
static void begin_loop(struct interp *in) {
  if (in->depth++ < INTERP_WATCH_LOOPS)
    in->iteration[in->depth - 1] = 0;
}

static void next_iteration(struct interp *in) {
  if (in->depth <= INTERP_WATCH_LOOPS)
    in->iteration[in->depth - 1]++;
}

static void end_loop(struct interp *in) {
  in->depth--;
}

static void exec_for(struct interp *in, struct ir_op o) {
  const struct ir_opnode *op = ir_op_at(in->m, o);
  const struct ir_blocknode *body = ir_block_at(in->m, op->blocks[0]);
  int64_t k = val_int(in, op->in[0]), hi = val_int(in, op->in[1]), step = val_int(in, op->in[2]);
  uint32_t n = op->n_in - 3u;
  const struct ir_val *carried = body->args.at + 1;
  interp_move(in, n, op->in + 3, carried, (struct ir_block){0});
  if (step <= 0) {
    interp_fail(in, o, DIAG_OPERAND, "the step of a loop must be positive, it is %lld",
                (long long)step);
    return;
  }
  if (in->cut_of && in->cut_of[o.id] && k < hi) {
    interp_cut_exec(in, o, &in->cuts[in->cut_of[o.id] - 1], k, hi, step);
    return;
  }
  begin_loop(in);
  while (k < hi) {
    *(int64_t *)val_buf(in, body->args.at[0]) = k;
    interp_exec_block(in, op->blocks[0]);
    if (in->stopped)
      return;
    interp_move_yielded(in, op->blocks[0], 0, carried);
    next_iteration(in);
    if (__builtin_add_overflow(k, step, &k))
      break; /* the next index lies beyond any hi */
  }
  end_loop(in);
}

static void exec_if(struct interp *in, struct ir_op o) {
  const struct ir_opnode *op = ir_op_at(in->m, o);
  bool taken = *(const uint8_t *)val_buf(in, op->in[0]);
  struct ir_block b = op->blocks[taken ? 0 : 1];
  interp_exec_block(in, b);
  if (!in->stopped)
    interp_move_yielded(in, b, 0, op->out);
}

static void exec_while(struct interp *in, struct ir_op o) {
  const struct ir_opnode *op = ir_op_at(in->m, o);
  const struct ir_blocknode *test = ir_block_at(in->m, op->blocks[0]);
  const struct ir_blocknode *body = ir_block_at(in->m, op->blocks[1]);
  interp_move(in, op->n_in, op->in, test->args.at, (struct ir_block){0});
  begin_loop(in);
  for (;;) {
    interp_exec_block(in, op->blocks[0]);
    if (in->stopped)
      return;
    const struct ir_opnode *end = ir_op_at(in->m, last_op(in, op->blocks[0]));
    bool go_on = *(const uint8_t *)val_buf(in, end->in[0]);
    interp_move_yielded(in, op->blocks[0], 1, body->args.at);
    if (!go_on)
      break; /* the results share the body's arguments */
    interp_exec_block(in, op->blocks[1]);
    if (in->stopped)
      return;
    interp_move_yielded(in, op->blocks[1], 0, test->args.at);
    next_iteration(in);
  }
  end_loop(in);
}

/* What merges parts runs within the loop (interp_cut.c). */
static void exec_merge(struct interp *in, struct ir_op o) {
  const struct ir_opnode *op = ir_op_at(in->m, o);
  interp_move(in, op->n_in, op->in, op->out, (struct ir_block){0});
}

static void exec_end(struct interp *in, struct ir_op o) {
  (void)in, (void)o;
}

/* ---- dispatch ---- */

#define BY_NODE(name)                                                                              \
  static void exec_##name(struct interp *in, struct ir_op o) {                                     \
    interp_##name(in, ir_op_at(in->m, o));                                                         \
  }
BY_NODE(const)
BY_NODE(splat)
BY_NODE(iota)
BY_NODE(broadcast)
BY_NODE(reshape)
BY_NODE(transpose)
BY_NODE(elem)
BY_NODE(cast)
BY_NODE(reduce)
BY_NODE(dot)
BY_NODE(extract)
BY_NODE(concat)
BY_NODE(bitcast)
BY_NODE(random)
BY_NODE(mask_reduce)
BY_NODE(arg_reduce)
BY_NODE(scan)

typedef void exec_fn(struct interp *in, struct ir_op o);

static exec_fn *const table[IR_OPCODE_COUNT] = {
    [IR_CONST] = exec_const,
    [IR_SPLAT] = exec_splat,
    [IR_IOTA] = exec_iota,
    [IR_BROADCAST] = exec_broadcast,
    [IR_RESHAPE] = exec_reshape,
    [IR_TRANSPOSE] = exec_transpose,
    [IR_ITEM] = exec_reshape,
    [IR_CONVERT] = exec_reshape,
    [IR_CAST] = exec_cast,
    [IR_REDUCE_SUM] = exec_reduce,
    [IR_REDUCE_MAX] = exec_reduce,
    [IR_REDUCE_MIN] = exec_reduce,
    [IR_REDUCE_ANY] = exec_mask_reduce,
    [IR_REDUCE_ALL] = exec_mask_reduce,
    [IR_ARGMAX] = exec_arg_reduce,
    [IR_ARGMIN] = exec_arg_reduce,
    [IR_SCAN_SUM] = exec_scan,
    [IR_EXTRACT] = exec_extract,
    [IR_CONCAT] = exec_concat,
    [IR_BITCAST] = exec_bitcast,
    [IR_RANDOM] = exec_random,
    [IR_DOT] = exec_dot,
    [IR_VIEW_AT] = interp_view_op,
    [IR_VIEW_SLICE] = interp_view_op,
    [IR_VIEW_TRANSPOSE] = interp_view_op,
    [IR_VIEW_EVERY] = interp_view_op,
    [IR_VIEW_RESHAPE] = interp_view_op,
    [IR_DIM] = interp_view_op,
    [IR_GATHER] = interp_gather,
    [IR_SCATTER] = interp_scatter,
    [IR_ATOMIC] = interp_atomic,
    [IR_LOAD] = interp_load,
    [IR_STORE] = interp_store,
    [IR_ASSERT] = interp_assert,
    [IR_PRINT] = interp_print,
    [IR_FOR] = exec_for,
    [IR_IF] = exec_if,
    [IR_WHILE] = exec_while,
    [IR_MERGE] = exec_merge,
    [IR_YIELD] = exec_end,
    [IR_CONDITION] = exec_end,
    [IR_RETURN] = exec_end,
};

bool interp_has_op(enum ir_opcode opcode) {
  return table[opcode] || interp_is_elem(opcode);
}

static uint64_t work_of(const struct interp *in, const struct ir_opnode *op) {
  if (op->opcode == IR_DOT) {
    const struct ir_type *a = &ir_value_at(in->m, op->in[0])->type;
    return (uint64_t)val_elems(in, op->out[0]) * (uint64_t)a->dim[1];
  }
  /* What an op does grows with its widest side: a reduction's operand, a splat's result. */
  uint64_t n = op->n_out ? val_elems(in, op->out[0]) : 1;
  if (op->n_in) {
    uint64_t last = val_elems(in, op->in[op->n_in - 1]);
    n = last > n ? last : n;
  }
  return n + 32;
}

static void count_step(struct interp *in, struct ir_op o) {
  in->steps++;
  if (in->opt.max_steps && in->steps > in->opt.max_steps) {
    interp_fail(in, o, DIAG_STEP_LIMIT, "more than %llu ops were executed",
                (unsigned long long)in->opt.max_steps);
    return;
  }
  in->work += work_of(in, ir_op_at(in->m, o));
  if (in->work < in->poll_at)
    return;
  in->poll_at = in->work + POLL_WORK;
  if (in->team) {
    interp_team_poll(in, o);
    return;
  }
  if (in->opt.interrupted && in->opt.interrupted(in->opt.user))
    interp_fail(in, o, DIAG_INTERRUPTED, "interrupted while interpreting");
}

void interp_exec_block(struct interp *in, struct ir_block b) {
  IR_EACH_OP (in->m, b, o) {
    count_step(in, o);
    if (in->stopped)
      return;
    exec_fn *fn = table[ir_op_at(in->m, o)->opcode];
    (fn ? fn : exec_elem)(in, o);
    if (in->stopped)
      return;
  }
}

bool interp_exec_body(struct interp *in) {
  interp_exec_block(in, in->m->body);
  return !in->stopped;
}
