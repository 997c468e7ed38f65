/* Split-K: a loop cut into parts that run in programs of their own.
 *
 * Before: accesses bounded; knob `split_k` in the config, or 1. After: with split_k = S
 * > 1 the grid has one more axis, of S parts. Each program runs its part of the loop, writes what
 * the loop carried to scratch memory and counts itself in at its tile's counter; the one that comes
 * last merges all parts, in their order, and does what follows the loop:
 *
 *   part = grid axis; lo', hi' = the part's iterations
 *   r = for k = lo', hi', step carry(part ? start of a part : init) { ... }
 *   store partial[tile * S + part], r
 *   if atomic count[tile] += 1 {sem = acq_rel} was S - 1 {
 *     r = merge of partial[tile * S + 0 .. S - 1], in this order
 *     what followed the loop
 *   }
 *
 * So the results are the same bits in every run, whoever comes last. Legal where the state of the
 * loop can be merged (ir/merge.h) and what comes before the loop, which every part does, writes
 * nothing. Iterations stay whole and keep their indices: what was proved of accesses in the loop
 * still holds. Parts of a loop with a merge function are merged only if they have iterations:
 * nothing says that merging with a part that has none changes nothing. Merge ops are gone after
 * this pass.
 *
 * With `split_cluster` = 1 the grid stays: the loop gets the attribute `parts`, and blocks of a
 * cluster share its iterations (lower_parts.c). */
#include "codegen/pass.h"
#include "codegen/schedule.h"
#include "ir/merge.h"
#include "ir/range.h"
#include "ir/walk.h"

#include "base/check.h"

#define ACCESS 16 /* bytes of the widest access */
#define FEW    64 /* registers of a thread for all parts of a state, of 32 to 128 threads */

/* Where a carried value lies between the programs. */
struct saved {
  bool kept;           /* it changes in the loop, and someone reads the result */
  struct ir_type type; /* of what is saved: the value's, or one that memory has */
  struct ir_val view;
};

struct splitter {
  struct ir_module *m;
  struct ir_pass_ctx *ctx;
  int64_t parts;
  struct ir_merge how;
  struct ir_builder b;
  struct ir_val part;         /* index: which part this program runs */
  struct ir_val count;        /* view: a counter for each tile */
  struct ir_val trips, chunk; /* index: iterations of the whole loop, of a part */
  struct ir_val first_slot;   /* index: place of the tile's part 0 among all parts */
  struct saved *saved;        /* by carried value */
};

/* ---- which loop ---- */

/* What an iteration of the loop computes, roughly: elements, of dots multiply-adds. */
static int64_t work_of(const struct ir_module *m, struct ir_op loop) {
  struct ir_block b = ir_op_at(m, loop)->blocks[0];
  int64_t work = 0;
  for (struct ir_op o = ir_block_at(m, b)->first; o.id; o = ir_walk_next(m, o, b)) {
    const struct ir_opnode *n = ir_op_at(m, o);
    for (uint32_t k = 0; k < n->n_out; k++) {
      struct ir_type t = ir_type_of(m, n->out[k]);
      int64_t each = n->opcode == IR_DOT ? ir_type_of(m, n->in[0]).dim[1] : 1;
      work += t.kind == IR_TILE ? ir_elems(t) * each : 1;
    }
  }
  return work;
}

/* The loop of the kernel's own block that does most, or 0. */
static struct ir_op main_loop(const struct ir_module *m) {
  struct ir_op best = {0};
  int64_t most = -1;
  IR_EACH_OP (m, m->body, o) {
    if (ir_op_at(m, o)->opcode != IR_FOR)
      continue;
    int64_t work = work_of(m, o);
    if (work > most)
      best = o;
    most = work > most ? work : most;
  }
  return best;
}

static struct ir_op merge_behind(const struct ir_module *m, struct ir_op loop) {
  IR_EACH_OP (m, m->body, o)
    if (ir_op_at(m, o)->opcode == IR_MERGE && ir_merge_loop(m, o).id == loop.id)
      return o;
  return (struct ir_op){0};
}

/* What an op may not be that every part does: its effect would come as often. */
static bool is_once(const struct ir_module *m, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(m, o);
  return n->opcode != IR_ASSERT && (ir_info(n->opcode)->traits & (IR_WRITES | IR_EFFECT));
}

/* The first op in o, o included, that must not be done by every part; 0: none. */
static struct ir_op find_once(const struct ir_module *m, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(m, o);
  if (is_once(m, o))
    return o;
  for (uint32_t k = 0; k < n->n_blocks; k++)
    for (struct ir_op x = ir_block_at(m, n->blocks[k])->first; x.id;
         x = ir_walk_next(m, x, n->blocks[k]))
      if (is_once(m, x))
        return x;
  return (struct ir_op){0};
}

static bool refuse(const struct splitter *s, struct ir_op o, const char *why) {
  cg_error(s->m, s->ctx->diags, o, DIAG_CONFIG, "schedule `split_k` = %lld: %s",
           (long long)s->parts, why);
  return false;
}

/* Says which carried value keeps the loop whole. */
static bool refuse_state(const struct splitter *s) {
  const struct ir_module *m = s->m;
  const struct ir_opnode *n = ir_op_at(m, s->how.loop);
  const struct ir_blocknode *body = ir_block_at(m, n->blocks[0]);
  struct ir_op once = find_once(m, s->how.loop);
  if (!n->n_out)
    return refuse(s, s->how.loop,
                  "the loop carries nothing, so that its parts leave nothing to "
                  "merge; leave `split_k` at 1");
  if (once.id)
    return refuse(s, once,
                  "the loop writes: only loops that compute can be split; write behind "
                  "the loop, or leave `split_k` at 1");
  for (uint32_t k = 0; k < n->n_out; k++) {
    if (s->how.kind[k] != IR_MERGE_NONE)
      continue;
    struct sym name = ir_value_at(m, body->args.at[1 + k])->name;
    struct sym out = name.id ? name : ir_value_at(m, n->out[k])->name;
    const char *what = out.id ? arena_printf(s->ctx->scratch, "`%s`", ir_sym(m, out))
                              : arena_printf(s->ctx->scratch, "value %u that is carried", k + 1);
    return refuse(s, s->how.loop,
                  arena_printf(s->ctx->scratch,
                               "%s is neither a sum nor an extreme over the loop's iterations, so "
                               "that its parts cannot be merged; say how with `range(lo, hi, step, "
                               "{merge = ...})`, or leave `split_k` at 1",
                               what));
  }
  KILN_UNREACHABLE();
}

static bool choose(struct splitter *s) {
  struct ir_module *m = s->m;
  struct ir_op loop = main_loop(m);
  if (!loop.id) {
    diag_report(s->ctx->diags, DIAG_ERROR, DIAG_CONFIG, m->at.kernel,
                "schedule `split_k` = %lld: the kernel has no loop to split, a device loop outside "
                "of other loops and branches; leave it at 1",
                (long long)s->parts);
    return false;
  }
  if (!ir_find_merge(m, loop, merge_behind(m, loop), s->ctx->scratch, &s->how))
    return refuse_state(s);
  for (struct ir_op o = ir_block_at(m, m->body)->first; o.id != loop.id; o = ir_op_at(m, o)->next) {
    struct ir_op once = find_once(m, o);
    if (once.id)
      return refuse(s, once,
                    "every part of the loop would do this, which stands before it; move "
                    "it behind the loop, or leave `split_k` at 1");
  }
  return true;
}

/* ---- scalars ---- */

static struct ir_val op2(struct splitter *s, enum ir_opcode o, struct ir_val a, struct ir_val b) {
  return ir_build1(&s->b, o, ir_type_of(s->m, a), 2, (struct ir_val[]){a, b});
}

static struct ir_val number(struct splitter *s, int64_t n) {
  return ir_const_int(&s->b, DT_INDEX, n);
}

/* a / b upwards; a is not negative. */
static struct ir_val quotient_up(struct splitter *s, struct ir_val a, struct ir_val b) {
  struct ir_val more = op2(s, IR_SUB, op2(s, IR_ADD, a, b), number(s, 1));
  return op2(s, IR_FLOORDIV, more, b);
}

static struct ir_val compare(struct splitter *s, enum ir_opcode o, struct ir_val a,
                             struct ir_val b) {
  return ir_build1(&s->b, o, ir_scalar(DT_BOOL), 2, (struct ir_val[]){a, b});
}

/* ---- scratch memory ---- */

/* A name that no argument, dim or scalar has. */
static struct sym new_name(const struct splitter *s, const char *name) {
  struct ir_module *m = s->m;
  for (uint32_t n = 1;; n++) {
    const char *text = n == 1 ? name : arena_printf(s->ctx->scratch, "%s%u", name, n);
    struct sym sym = symtab_get(m->syms, text);
    bool taken = false;
    for (uint32_t i = 0; i < m->args.n; i++)
      taken = taken || m->args.at[i].name.id == sym.id;
    for (uint32_t i = 0; i < m->dims.n; i++)
      taken = taken || m->dims.at[i].id == sym.id;
    if (!taken)
      return sym;
  }
}

/* A value of the entry block, at place `at` among its arguments. */
static struct ir_val enter(struct ir_module *m, struct ir_type t, uint32_t at) {
  struct ir_val v = ir_add_arg(m, m->body, t);
  struct ir_blocknode *body = ir_block_at(m, m->body);
  for (uint32_t i = body->args.n - 1; i > at; i--)
    body->args.at[i] = body->args.at[i - 1];
  body->args.at[at] = v;
  for (uint32_t i = at; i < body->args.n; i++)
    ir_value_at(m, body->args.at[i])->index = i;
  return v;
}

static struct ir_val add_scratch(struct splitter *s, const char *name, enum dtype t, uint32_t rank,
                                 const struct expr *dim, bool zero) {
  struct ir_module *m = s->m;
  struct ir_arg a = {.name = new_name(s, name),
                     .kind = IR_ARG_SCRATCH,
                     .dtype = t,
                     .rank = rank,
                     .present = true,
                     .zero = zero};
  struct ir_type type = {.kind = IR_VIEW, .dtype = (uint8_t)t, .rank = (uint8_t)rank};
  uint32_t at = ir_block_at(m, m->body)->args.n - m->dims.n - m->n_grid;
  for (uint32_t d = 0; d < rank; d++) {
    int64_t n;
    a.dim[d] = dim[d];
    type.dim[d] = expr_is_const(&m->exprs, dim[d], &n) ? n : IR_DYN;
  }
  VEC_PUSH(m->arena, &m->args, a);
  return enter(m, type, at);
}

static void mark_inside(struct splitter *s, struct ir_op o, uint32_t rank, int64_t vdim,
                        int64_t vec) {
  static const int64_t none[IR_MAX_RANK] = {0};
  cg_set_ints(s->m, o, IR_ATTR_masks, rank, none);
  cg_set_int(s->m, o, IR_ATTR_vdim, vdim);
  cg_set_int(s->m, o, IR_ATTR_vec, vec);
}

/* What memory holds of a value. */
static struct ir_type memory_type(struct ir_type t) {
  enum dtype d = (enum dtype)t.dtype;
  t.dtype = (uint8_t)(d == DT_INDEX ? DT_S64 : d == DT_BOOL || dtype_bits(d) == 4 ? DT_S32 : d);
  return t;
}

/* Memory for the parts of a carried value: one behind the other along its dim 0. */
static void add_saved(struct splitter *s, uint32_t k, struct expr slots) {
  struct ir_module *m = s->m;
  struct saved *x = &s->saved[k];
  x->type = memory_type(ir_type_of(m, ir_op_at(m, s->how.loop)->out[k]));
  bool tile = x->type.kind == IR_TILE;
  struct expr dim[IR_MAX_RANK] = {slots};
  for (uint32_t d = 0; tile && d < x->type.rank; d++) {
    struct expr n = expr_const(&m->exprs, x->type.dim[d]);
    dim[d] = d ? n : expr_op2(&m->exprs, EXPR_MUL, slots, n);
  }
  x->view =
      add_scratch(s, "partial", (enum dtype)x->type.dtype, tile ? x->type.rank : 1, dim, false);
}

/* View, offsets and, where there is one, a value of an access to slot `slot` of a carried value. */
static uint32_t slot_operands(struct splitter *s, const struct saved *x, struct ir_val slot,
                              struct ir_val value, struct ir_val *in) {
  uint32_t n = 0;
  in[n++] = x->view;
  in[n++] = x->type.kind == IR_TILE && x->type.dim[0] > 1
                ? op2(s, IR_MUL, slot, number(s, x->type.dim[0]))
                : slot;
  for (uint32_t d = 1; x->type.kind == IR_TILE && d < x->type.rank; d++)
    in[n++] = number(s, 0);
  if (value.id)
    in[n++] = value;
  return n;
}

/* Elements of one access, which start aligned in every row of a tile. */
static int64_t row_vec(struct ir_type t) {
  int64_t most = ACCESS / dtype_bytes((enum dtype)t.dtype, 1);
  return ir_pow2_divisor(t.dim[t.rank - 1], most);
}

static struct ir_val as_type(struct splitter *s, struct ir_val v, struct ir_type t) {
  return ir_type_eq(ir_type_of(s->m, v), t) ? v : ir_build1(&s->b, IR_CAST, t, 1, &v);
}

static void save(struct splitter *s, uint32_t k, struct ir_val slot, struct ir_val v) {
  const struct saved *x = &s->saved[k];
  struct ir_val in[2 + IR_MAX_RANK];
  bool tile = x->type.kind == IR_TILE;
  uint32_t n = slot_operands(s, x, slot, as_type(s, v, x->type), in);
  struct ir_op o = ir_build(&s->b, tile ? IR_STORE : IR_SCATTER, n, in, 0, NULL);
  mark_inside(s, o, n - 2, tile ? x->type.rank - 1 : 0, tile ? row_vec(x->type) : 1);
  if (!tile)
    return;
  cg_set_word(s->m, o, IR_ATTR_label, "store.partial");
  /* A thread's elements lie in whole sectors of memory: no better way through shared memory. */
  cg_set_word(s->m, o, IR_ATTR_path, "frag");
}

static struct ir_val restore(struct splitter *s, uint32_t k, struct ir_val slot) {
  const struct saved *x = &s->saved[k];
  struct ir_val in[2 + IR_MAX_RANK];
  bool tile = x->type.kind == IR_TILE;
  uint32_t n = slot_operands(s, x, slot, (struct ir_val){0}, in);
  struct ir_val v = ir_build1(&s->b, tile ? IR_LOAD : IR_GATHER, x->type, n, in);
  struct ir_op o = ir_value_at(s->m, v)->def;
  int64_t vec = tile ? row_vec(x->type) : 1;
  mark_inside(s, o, n - 1, tile ? x->type.rank - 1 : 0, vec);
  if (tile) {
    cg_set_int(s->m, o, IR_ATTR_align, vec);
    cg_set_word(s->m, o, IR_ATTR_label, "load.partial");
  }
  return as_type(s, v, ir_type_of(s->m, ir_op_at(s->m, s->how.loop)->out[k]));
}

/* ---- the loop ---- */

/* The grid's new axis, counters and places for parts. */
static void add_memory(struct splitter *s) {
  struct ir_module *m = s->m;
  struct expr tiles = m->grid[0], dim[IR_MAX_GRID];
  uint32_t n = m->n_grid;
  for (uint32_t i = 0; i < n; i++) {
    dim[i] = m->grid[i];
    tiles = i ? expr_op2(&m->exprs, EXPR_MUL, tiles, m->grid[i]) : tiles;
  }
  struct expr parts = expr_const(&m->exprs, s->parts);
  struct expr slots = expr_op2(&m->exprs, EXPR_MUL, tiles, parts);
  for (uint32_t k = 0; k < s->how.n; k++)
    if (s->saved[k].kept)
      add_saved(s, k, slots);
  s->count = add_scratch(s, "count", DT_S32, n, dim, true);
  m->grid[m->n_grid++] = parts;
  s->part = enter(m, ir_scalar(DT_INDEX), ir_block_at(m, m->body)->args.n);
}

/* The index of grid axis i. */
static struct ir_val grid_index(const struct splitter *s, uint32_t i) {
  const struct ir_blocknode *body = ir_block_at(s->m, s->m->body);
  return body->args.at[body->args.n - s->m->n_grid + i];
}

/* The part's iterations: `chunk` of the loop's, fewer at the end. */
static void cut_range(struct splitter *s) {
  struct ir_op loop = s->how.loop;
  const struct ir_opnode n = *ir_op_at(s->m, loop);
  struct ir_val lo = n.in[0], hi = n.in[1], step = n.in[2];
  struct ir_val span = op2(s, IR_MAX, op2(s, IR_SUB, hi, lo), number(s, 0));
  s->trips = quotient_up(s, span, step);
  struct ir_val chunk = quotient_up(s, s->trips, number(s, s->parts));
  s->chunk = op2(s, IR_MAX, chunk, number(s, 1));
  struct ir_val by = op2(s, IR_MUL, s->chunk, step);
  struct ir_val from = op2(s, IR_ADD, lo, op2(s, IR_MUL, s->part, by));
  struct ir_val to = op2(s, IR_MIN, op2(s, IR_ADD, from, by), hi);
  ir_op_at(s->m, loop)->in[0] = from;
  ir_op_at(s->m, loop)->in[1] = to;
}

/* Is v zero in every element, and written as a constant? */
bool cg_is_zero(const struct ir_module *m, struct ir_val v) {
  struct ir_op def = ir_value_at(m, v)->def;
  if (def.id && ir_op_at(m, def)->opcode == IR_SPLAT)
    def = ir_value_at(m, ir_op_at(m, def)->in[0])->def;
  if (!def.id || ir_op_at(m, def)->opcode != IR_CONST)
    return false;
  const struct ir_attr *a = ir_get_attr(m, def, IR_ATTR_value);
  bool is_float = dtype_is_float((enum dtype)ir_type_of(m, ir_op_at(m, def)->out[0]).dtype);
  return is_float ? a->f == 0 : a->i == 0;
}

/* What a part starts from: sums from zero, but the first from what they started from. */
static void start_parts(struct splitter *s) {
  struct ir_module *m = s->m;
  struct ir_val is_first = {0};
  for (uint32_t k = 0; k < s->how.n; k++) {
    struct ir_val init = ir_op_at(m, s->how.loop)->in[3 + k];
    struct ir_type t = ir_type_of(m, init), mask = t;
    enum dtype d = (enum dtype)t.dtype;
    if (s->how.kind[k] != IR_MERGE_SUM || cg_is_zero(m, init))
      continue;
    if (!is_first.id)
      is_first = compare(s, IR_EQ, s->part, number(s, 0));
    struct ir_val cond = is_first;
    struct ir_val zero = dtype_is_float(d) ? ir_const_num(&s->b, d, 0) : ir_const_int(&s->b, d, 0);
    if (t.kind == IR_TILE) {
      mask.dtype = DT_BOOL;
      cond = ir_build1(&s->b, IR_SPLAT, mask, 1, &cond);
      zero = ir_build1(&s->b, IR_SPLAT, t, 1, &zero);
    }
    ir_op_at(m, s->how.loop)->in[3 + k] =
        ir_build1(&s->b, IR_SELECT, t, 3, (struct ir_val[]){cond, init, zero});
  }
}

/* ---- what follows ---- */

/* Writes the part's state, counts the program in, and opens the branch of the one that is last. */
static struct ir_op arrive(struct splitter *s) {
  struct ir_module *m = s->m;
  uint32_t axes = m->n_grid - 1, n = 0;
  struct ir_val tile = grid_index(s, 0), in[2 + IR_MAX_GRID];
  for (uint32_t i = 1; i < axes; i++) {
    struct ir_val size = ir_build1(&s->b, IR_DIM, ir_scalar(DT_INDEX), 1, &s->count);
    cg_set_int(m, ir_value_at(m, size)->def, IR_ATTR_axis, i);
    tile = op2(s, IR_ADD, op2(s, IR_MUL, tile, size), grid_index(s, i));
  }
  s->first_slot = op2(s, IR_MUL, tile, number(s, s->parts));
  struct ir_val slot = op2(s, IR_ADD, s->first_slot, s->part);
  for (uint32_t k = 0; k < s->how.n; k++)
    if (s->saved[k].kept)
      save(s, k, slot, ir_op_at(m, s->how.loop)->out[k]);
  in[n++] = s->count;
  for (uint32_t i = 0; i < axes; i++)
    in[n++] = grid_index(s, i);
  in[n++] = ir_const_int(&s->b, DT_S32, 1);
  struct ir_val before = ir_build1(&s->b, IR_ATOMIC, ir_scalar(DT_S32), n, in);
  struct ir_op o = ir_value_at(m, before)->def;
  cg_set_word(m, o, IR_ATTR_kind, "add");
  cg_set_word(m, o, IR_ATTR_sem, "acq_rel");
  mark_inside(s, o, axes, 0, 1);
  struct ir_val last = ir_const_int(&s->b, DT_S32, s->parts - 1);
  struct ir_val is_last = compare(s, IR_EQ, before, last);
  return ir_build(&s->b, IR_IF, 1, &is_last, 0, NULL);
}

/* Moves all behind `from` but the end of the kernel into a block. */
static void move_rest(struct ir_module *m, struct ir_op from, struct ir_block to) {
  struct ir_op next;
  for (struct ir_op o = ir_op_at(m, from)->next; o.id; o = next) {
    next = ir_op_at(m, o)->next;
    if (!(ir_info(ir_op_at(m, o)->opcode)->traits & IR_TERM))
      ir_move_before(m, o, to, (struct ir_op){0});
  }
}

static struct ir_val merged(struct splitter *s, enum ir_merge_kind kind, struct ir_val p,
                            struct ir_val q) {
  return op2(s, kind == IR_MERGE_SUM ? IR_ADD : kind == IR_MERGE_MAX ? IR_MAX : IR_MIN, p, q);
}

/* Which carried value operand i of the merge op is, or -1: one that the loop does not change. */
static int64_t carried_at(const struct splitter *s, struct ir_val v) {
  const struct ir_value *x = ir_value_at(s->m, v);
  return x->def.id == s->how.loop.id ? (int64_t)x->index : -1;
}

/* Of the merge op: takes its ops to where s->b builds; p, q: the two parts' values by carried
 * value, to: what comes of them. */
static void inline_merge(struct splitter *s, const struct ir_val *p, const struct ir_val *q,
                         struct ir_val *to) {
  struct ir_module *m = s->m;
  struct ir_block block = ir_op_at(m, s->how.merge)->blocks[0];
  uint32_t n = ir_op_at(m, s->how.merge)->n_in;
  for (uint32_t i = 0; i < n; i++) {
    struct ir_val v = ir_op_at(m, s->how.merge)->in[i];
    int64_t k = carried_at(s, v);
    ir_replace_uses(m, ir_block_at(m, block)->args.at[i], k < 0 ? v : p[k]);
    ir_replace_uses(m, ir_block_at(m, block)->args.at[n + i], k < 0 ? v : q[k]);
  }
  for (uint32_t i = 0; i < n; i++) {
    int64_t k = carried_at(s, ir_op_at(m, s->how.merge)->in[i]);
    if (k >= 0)
      to[k] = ir_op_at(m, ir_block_at(m, block)->last)->in[i];
  }
  struct ir_op next;
  for (struct ir_op o = ir_block_at(m, block)->first; o.id; o = next) {
    next = ir_op_at(m, o)->next;
    if (!(ir_info(ir_op_at(m, o)->opcode)->traits & IR_TERM))
      ir_move_before(m, o, s->b.block, s->b.before);
  }
}

/* How many parts there are to merge. */
static struct ir_val parts_run(struct splitter *s) {
  return s->how.merge.id ? quotient_up(s, s->trips, s->chunk) : number(s, s->parts);
}

/* Elements of all parts of the state. */
static int64_t elements(const struct splitter *s) {
  int64_t n = 0;
  for (uint32_t k = 0; k < s->how.n; k++)
    if (s->saved[k].kept)
      n += s->saved[k].type.kind == IR_TILE ? ir_elems(s->saved[k].type) : 1;
  return n * s->parts;
}

/* Would a thread hold all parts at once? How many threads there will be is not decided yet: small
 * tiles get few. */
static bool are_few(const struct splitter *s) {
  int64_t threads = elements(s) / s->parts / 16;
  threads = threads < 32 ? 32 : threads > 128 ? 128 : threads;
  return elements(s) <= FEW * threads;
}

/* Merges the parts, in their order. result: by carried value, where one is kept. Here in one go,
 * where there is so little that all parts are fetched at once: each costs the time that memory
 * takes to answer. */
static void merge_few(struct splitter *s, struct ir_val *result) {
  for (uint32_t k = 0; k < s->how.n; k++) {
    if (!s->saved[k].kept)
      continue;
    result[k] = restore(s, k, s->first_slot);
    for (int64_t i = 1; i < s->parts; i++) {
      struct ir_val slot = op2(s, IR_ADD, s->first_slot, number(s, i));
      result[k] = merged(s, s->how.kind[k], result[k], restore(s, k, slot));
    }
  }
}

/* In a loop. */
static void merge_parts(struct splitter *s, struct ir_val *result) {
  struct ir_module *m = s->m;
  struct arena *a = s->ctx->scratch;
  uint32_t n = 0, total = s->how.n;
  struct ir_val *in = ARENA_ARRAY(a, struct ir_val, total + 3);
  struct ir_val *p = ARENA_ARRAY(a, struct ir_val, total),
                *q = ARENA_ARRAY(a, struct ir_val, total);
  struct ir_val *next = ARENA_ARRAY(a, struct ir_val, total);
  struct ir_type *t = ARENA_ARRAY(a, struct ir_type, total);
  in[0] = number(s, 1);
  in[1] = parts_run(s);
  in[2] = in[0];
  for (uint32_t k = 0; k < total; k++)
    if (s->saved[k].kept) {
      in[3 + n] = restore(s, k, s->first_slot);
      t[n] = ir_type_of(m, in[3 + n]);
      n++;
    }
  struct ir_op loop = ir_build(&s->b, IR_FOR, 3 + n, in, n, t);
  struct ir_builder outer = s->b;
  s->b.block = ir_op_at(m, loop)->blocks[0];
  s->b.before = (struct ir_op){0};
  cg_set_word(m, loop, IR_ATTR_label, "merge");
  struct ir_val at = ir_add_arg(m, s->b.block, ir_scalar(DT_INDEX));
  struct ir_val slot = op2(s, IR_ADD, s->first_slot, at);
  for (uint32_t k = 0, i = 0; k < total; k++) {
    p[k] = q[k] = ir_op_at(m, s->how.loop)->in[3 + k]; /* of what never changes */
    if (s->saved[k].kept) {
      p[k] = ir_add_arg(m, s->b.block, t[i++]);
      q[k] = restore(s, k, slot);
    }
  }
  if (s->how.merge.id)
    inline_merge(s, p, q, next);
  for (uint32_t k = 0, i = 0; k < total; k++) {
    if (!s->saved[k].kept)
      continue;
    if (!s->how.merge.id)
      next[k] = merged(s, s->how.kind[k], p[k], q[k]);
    in[i] = next[k];
    result[k] = ir_op_at(m, loop)->out[i++];
  }
  ir_build(&s->b, IR_YIELD, n, in, 0, NULL);
  s->b = outer;
}

/* Who read the loop's results, or those of its merge op, reads the merged ones. */
static void hand_on(struct splitter *s, struct ir_op branch, const struct ir_val *result) {
  struct ir_module *m = s->m;
  struct ir_op merge = s->how.merge;
  if (merge.id) {
    for (uint32_t i = 0; i < ir_op_at(m, merge)->n_in; i++) {
      struct ir_val v = ir_op_at(m, merge)->in[i];
      int64_t k = carried_at(s, v);
      ir_replace_uses(m, ir_op_at(m, merge)->out[i], k < 0 ? v : result[k]);
    }
    ir_remove(m, merge);
    return;
  }
  struct ir_block block = ir_op_at(m, branch)->blocks[0];
  for (struct ir_op o = ir_block_at(m, block)->first; o.id; o = ir_walk_next(m, o, block))
    for (uint32_t i = 0; i < ir_op_at(m, o)->n_in; i++) {
      int64_t k = carried_at(s, ir_op_at(m, o)->in[i]);
      if (k >= 0)
        ir_op_at(m, o)->in[i] = result[k];
    }
}

static void split(struct splitter *s) {
  struct ir_module *m = s->m;
  struct ir_op loop = s->how.loop;
  struct cg_uses uses = cg_collect_uses(m, s->ctx->scratch);
  struct ir_val *result = ARENA_ARRAY(s->ctx->scratch, struct ir_val, s->how.n);
  s->saved = ARENA_ARRAY(s->ctx->scratch, struct saved, s->how.n);
  for (uint32_t k = 0; k < s->how.n; k++) {
    /* A merge function may want a value that nobody else reads. */
    bool read = s->how.merge.id || uses.count[ir_op_at(m, loop)->out[k].id] > 0;
    s->saved[k].kept = read && s->how.kind[k] != IR_MERGE_SAME;
    result[k] = ir_op_at(m, loop)->in[3 + k];
  }
  add_memory(s);
  s->b = (struct ir_builder){m, m->body, loop, ir_op_at(m, loop)->loc};
  cut_range(s);
  start_parts(s);
  s->b.before = ir_op_at(m, loop)->next;
  struct ir_op branch = arrive(s);
  struct ir_block last = ir_op_at(m, branch)->blocks[0];
  s->b.block = last;
  s->b.before = (struct ir_op){0};
  if (!s->how.merge.id && are_few(s))
    merge_few(s, result);
  else
    merge_parts(s, result);
  move_rest(m, branch, last);
  hand_on(s, branch, result);
  for (uint32_t i = 0; i < 2; i++) {
    s->b.block = ir_op_at(m, branch)->blocks[i];
    ir_build(&s->b, IR_YIELD, 0, NULL, 0, NULL);
  }
}

/* ---- blocks of a cluster ---- */

/* The loop stays whole; that its iterations are shared is said of it. Whether they can be is known
 * when the kernel has its roles (pass_choose_warpgroups.c). */
static bool share(struct splitter *s) {
  if (s->parts > IR_MAX_PARTS)
    return refuse(s, s->how.loop, "with `split_cluster` = 1 it is at most 8, a cluster's blocks");
  cg_set_int(s->m, s->how.loop, IR_ATTR_parts, s->parts);
  return true;
}

/* ---- the rule ---- */

#define MIN_TRIPS 8  /* iterations of a part: its ring is filled twice */
#define MAX_PARTS 16 /* one program reads all of a tile's parts */

bool cg_may_split(const struct ir_module *m, struct arena *a, struct ir_op *loop) {
  struct ir_merge how;
  *loop = main_loop(m);
  if (!loop->id || !ir_find_merge(m, *loop, merge_behind(m, *loop), a, &how))
    return false;
  for (struct ir_op o = ir_block_at(m, m->body)->first; o.id != loop->id; o = ir_op_at(m, o)->next)
    if (find_once(m, o).id)
      return false;
  return true;
}

int64_t cg_split_rule(struct ir_module *m, expr_lookup look_up, void *user, uint32_t sm_count,
                      struct arena *a) {
  struct ir_op loop;
  int64_t tiles = 1, bound[3], parts = 1;
  const char *why;
  if (!cg_may_split(m, a, &loop))
    return 1;
  for (uint32_t i = 0; i < m->n_grid; i++) {
    int64_t n;
    if (!expr_eval(&m->exprs, m->grid[i], look_up, user, &n, &why) || n < 1 ||
        __builtin_mul_overflow(tiles, n, &tiles))
      return 1;
  }
  for (uint32_t i = 0; i < 3; i++) {
    struct expr e = ir_val_expr(m, ir_op_at(m, loop)->in[i]);
    if (!e.id || !expr_eval(&m->exprs, e, look_up, user, &bound[i], &why))
      return 1;
  }
  int64_t trips = bound[2] > 0 && bound[1] > bound[0] ? (bound[1] - bound[0]) / bound[2] : 0;
  while (2 * parts <= MAX_PARTS && tiles <= sm_count / (2 * parts) &&
         trips / (2 * parts) >= MIN_TRIPS)
    parts *= 2;
  return parts;
}

bool cg_pass_split_loops(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  struct splitter s = {.m = m, .ctx = ctx, .parts = cg_knob_get(m, CG_KNOB_SPLIT_K)};
  if (s.parts > 1) {
    if (!choose(&s))
      return false;
    if (cg_knob_get(m, CG_KNOB_SPLIT_CLUSTER) != 1)
      split(&s);
    else if (!share(&s))
      return false;
  }
  ir_drop_merges(m);
  *changed = true;
  return true;
}
