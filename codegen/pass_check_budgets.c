/* Limits of the target, before anything is compiled: shared memory, registers, threads.
 *
 * Before: storage placed. After: a module that would not run is refused with the limit, the sum and
 * what it is made of, at the Lua line that asks for most. Registers are an estimate from below:
 * fragments that live at once. The knob `blocks`, where it is open, becomes the number of blocks
 * that give an SM 1024 threads, if the fragments leave room for that: the compiler then keeps to 64
 * registers (rmsnorm of 16384 columns: 4.2 TB/s against 3.0 with the 71 it would take). */
#include "codegen/pass.h"
#include "codegen/recipe.h"
#include "codegen/schedule.h"

#define OTHER_REGS 20 /* addresses, indices, predicates: a kernel with fewer was not seen */

static uint32_t frag_regs(const struct ir_module *m, uint32_t res) {
  const struct ir_res *r = &m->res.at[res];
  uint32_t elems = layout_extent(m->layouts.at[r->layout], LAYOUT_REG);
  uint32_t bits = dtype_bits((enum dtype)r->type.dtype);
  return (uint32_t)(((uint64_t)elems * (bits < 8 ? 8 : bits) + 31) / 32);
}

/* The op that first touches a resource. */
static struct ir_op first_use(const struct ir_module *m, uint32_t res) {
  for (struct ir_op o = {1}; o.id < m->ops.n; o.id++)
    for (uint32_t i = 0; i < ir_op_at(m, o)->n_res; i++)
      if (ir_op_at(m, o)->res[i] == res && ir_op_at(m, o)->loc)
        return o;
  return (struct ir_op){0};
}

/* Does the buffer lie where a larger one does at another time? Then it adds nothing. */
static bool shares_larger(const struct ir_module *m, uint32_t res) {
  const struct ir_res *x = &m->res.at[res];
  int64_t at = cg_res_int(x, IR_ATTR_offset, 0), bytes = cg_res_int(x, IR_ATTR_bytes, 0);
  for (uint32_t r = 1; r < m->res.n; r++) {
    const struct ir_res *y = &m->res.at[r];
    int64_t o = cg_res_int(y, IR_ATTR_offset, 0), n = cg_res_int(y, IR_ATTR_bytes, 0);
    if (y->kind == IR_RES_BUF && r != res && (n > bytes || (n == bytes && r < res)) && at < o + n &&
        o < at + bytes)
      return true;
  }
  return false;
}

static bool check_smem(const struct ir_module *m, struct ir_pass_ctx *ctx,
                       const struct cg_target *t) {
  uint32_t total = cg_kernel_step(m)->smem_bytes, largest = 0;
  int64_t most = -1;
  if (total <= t->smem_per_block)
    return true;
  struct strbuf sum = {.arena = ctx->scratch};
  for (uint32_t r = 1; r < m->res.n; r++) {
    const struct ir_res *x = &m->res.at[r];
    int64_t bytes = cg_res_int(x, IR_ATTR_bytes, 0), slots = cg_res_int(x, IR_ATTR_slots, 1);
    if (x->kind != IR_RES_BUF || shares_larger(m, r))
      continue;
    sb_printf(&sum, "%s%s ", sum.n ? " + " : "", ir_sym(m, x->name));
    if (slots > 1)
      sb_printf(&sum, "%lld x %lld", (long long)slots, (long long)(bytes / slots));
    else
      sb_printf(&sum, "%lld", (long long)bytes);
    if (bytes > most) {
      most = bytes;
      largest = r;
    }
  }
  cg_error(
      m, ctx->diags, first_use(m, largest), DIAG_LIMIT,
      "the kernel needs %u bytes of shared memory, %s has %u for a block: %s; use smaller tiles "
      "or fewer stages",
      total, t->name, t->smem_per_block, sb_str(&sum));
  return false;
}

struct pressure {
  uint32_t *last; /* per resource: position of the last touch, loops counted whole */
  uint32_t *first;
  uint32_t position;
};

static void scan(struct pressure *p, const struct ir_module *m, struct ir_block b) {
  IR_EACH_OP (m, b, o) {
    const struct ir_opnode *n = ir_op_at(m, o);
    uint32_t start = ++p->position;
    for (uint32_t i = 0; i < n->n_res; i++) {
      uint32_t r = n->res[i];
      if (!p->first[r])
        p->first[r] = start;
      p->last[r] = start;
    }
    for (uint32_t i = 0; i < n->n_blocks; i++)
      scan(p, m, n->blocks[i]);
    bool loops = n->opcode == IR_FOR || n->opcode == IR_WHILE;
    for (uint32_t r = 1; loops && r < m->res.n; r++)
      if (p->first[r] && p->first[r] < start && p->last[r] > start)
        p->last[r] = p->position + 1; /* carried around the loop */
    p->position++;
  }
}

static bool is_repeated(const struct ir_module *m, struct ir_op o) {
  while (o.id && ir_op_at(m, o)->opcode != IR_EACH)
    o = ir_block_at(m, ir_op_at(m, o)->block)->parent;
  return o.id != 0;
}

/* Those of tiles of which a thread has more than a few elements: the others, sums of rows, take
 * next to no registers. */
static bool accesses_are_wide(const struct ir_module *m) {
  for (struct ir_op o = {1}; o.id < m->ops.n; o.id++) {
    const struct ir_opnode *n = ir_op_at(m, o);
    uint32_t elems = n->opcode == IR_GLOAD ? n->n_out : n->opcode == IR_GSTORE ? n->n_in - 2u : 0;
    if (n->block.id && elems &&
        elems * dtype_bits((enum dtype)ir_type_of(m, n->in[0]).dtype) < 8 * 8 && is_repeated(m, o))
      return false;
    if (n->block.id && n->opcode == IR_GPRINT)
      return false; /* a call, and values held for it: speed is not the point */
  }
  return true;
}

/* The largest number of elements that a thread holds of one fragment: a chain of elementwise ops
 * holds that many values at once, in 32 bits each. */
static uint32_t longest_fragment(const struct ir_module *m) {
  uint32_t most = 0;
  for (uint32_t r = 1; r < m->res.n; r++)
    if (m->res.at[r].kind == IR_RES_FRAG) {
      uint32_t n = layout_extent(m->layouts.at[m->res.at[r].layout], LAYOUT_REG);
      most = n > most ? n : most;
    }
  return most;
}

static void fill_blocks(struct ir_module *m, const struct cg_target *t, uint32_t worst,
                        uint32_t threads) {
  if (cg_knob_get(m, CG_KNOB_BLOCKS) != CG_AUTO)
    return;
  uint32_t blocks = CG_BUSY_THREADS / threads;
  /* Scalar accesses take more registers for addresses and masks than one can tell. */
  uint32_t have = t->regs_per_sm / CG_BUSY_THREADS;
  /* Elements that are computed again are not held in 32 bits. */
  bool narrow = longest_fragment(m) <= have / 2 || cg_knob_get(m, CG_KNOB_RECOMPUTE) == 1;
  bool fits = worst + CG_ROOM_REGS <= have && narrow && accesses_are_wide(m);
  blocks = blocks > t->max_blocks_per_sm ? t->max_blocks_per_sm : blocks;
  cg_knob_put(m, CG_KNOB_BLOCKS, fits && blocks > 1 ? blocks : 1);
}

static bool check_regs(struct ir_module *m, struct ir_pass_ctx *ctx, const struct cg_target *t) {
  struct pressure p = {.last = ARENA_ARRAY(ctx->scratch, uint32_t, m->res.n + 1),
                       .first = ARENA_ARRAY(ctx->scratch, uint32_t, m->res.n + 1)};
  uint32_t threads = cg_kernel_step(m)->block[0], worst = 0, worst_at = 0;
  scan(&p, m, m->body);
  for (uint32_t at = 1; at <= p.position; at++) {
    uint32_t sum = 0;
    for (uint32_t r = 1; r < m->res.n; r++)
      if (m->res.at[r].kind == IR_RES_FRAG && p.first[r] && p.first[r] <= at && at <= p.last[r])
        sum += frag_regs(m, r);
    if (sum > worst) {
      worst = sum;
      worst_at = at;
    }
  }
  /* Registers are handed out to warps in units of 8 a thread. */
  uint32_t limit = t->regs_per_sm / threads / 8 * 8;
  limit = limit < t->max_regs_per_thread ? limit : t->max_regs_per_thread;
  if (m->roles.at[0].regs) /* more than the block starts with, for those that compute */
    limit = m->roles.at[0].regs;
  fill_blocks(m, t, worst, threads);
  if (worst + OTHER_REGS <= limit)
    return true;
  struct strbuf sum = {.arena = ctx->scratch};
  uint32_t largest = 0, most = 0;
  for (uint32_t r = 1; r < m->res.n; r++) {
    if (m->res.at[r].kind != IR_RES_FRAG || !p.first[r] || p.first[r] > worst_at ||
        worst_at > p.last[r])
      continue;
    sb_printf(&sum, "%s%s %u", sum.n ? " + " : "", ir_sym(m, m->res.at[r].name), frag_regs(m, r));
    if (frag_regs(m, r) > most) {
      most = frag_regs(m, r);
      largest = r;
    }
  }
  cg_error(m, ctx->diags, first_use(m, largest), DIAG_LIMIT,
           "a thread would hold %u registers of tiles (%s) and about %u others; with %u threads a "
           "block it has %u: use smaller tiles or more threads",
           worst, sb_str(&sum), OTHER_REGS, threads, limit);
  return false;
}

bool cg_pass_check_budgets(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  const struct cg_target *t = cg_target_of(m);
  *changed = true;
  bool smem = check_smem(m, ctx, t);
  return check_regs(m, ctx, t) && smem;
}
