/* Peeling: a loop cut where its masks become, or cease to be, true throughout.
 *
 * Before: accesses bounded, loops split, paths and knobs filled in. After: a loop in which a
 * comparison of a tile with the loop's index in it holds for every element in all iterations but
 * the first or the last ones is two or three loops in a row, the one in the middle without that
 * mask:
 *
 *   for k = lo, hi, step { where(k + iota <= row, x, -inf) }
 *   ->  for k = lo, q, step { x };  for k = q, hi, step { where(k + iota <= row, x, -inf) }
 *
 * The elements of such a comparison's difference are a * k + c + [r0, r1], with c a sum of scalars
 * from outside; so there is an iteration up to which (a > 0), or from which on (a < 0), it holds
 * for all. That iteration is computed before the loop; where it is none, a loop runs no time. In
 * the same way loads lose the check of an edge that they do not reach.
 *
 * The later loops say `follows`: they go on where the one before ended, so that loads which run
 * ahead need not stop between them (lower_loop.c).
 *
 * Knob `peel`: 1, masks of tiles and edges of loads; 0, no loop. Where it is open, masks of tiles
 * alone, of MIN_MASK elements a thread, in loops of at most MAX_OPS ops that write nothing (a store
 * beside its copy is not known to write elsewhere), where registers are not scarce: bounds and
 * slots of the second loop live through the first one. Loops in such a loop keep it whole.
 *
 * A loop with loads by the tensor memory unit, whose pipe is its alone, stays one (that unit checks
 * edges itself). What its masks select is a branch there:
 *
 *   x' = if largest difference < 0 { x } else { where(k + iota <= row, x, -inf) }
 */
#include "base/bitset.h"
#include "codegen/pass.h"
#include "codegen/schedule.h"
#include "ir/access.h"
#include "ir/passes.h"
#include "ir/range.h"
#include "ir/walk.h"

#define MAX_OPS   150
#define MIN_MASK  16  /* elements of a mask, a thread */
#define MAX_REGS  112 /* of what is carried and the largest other tile, a thread */
#define MAX_TERMS 8
#define MAX_CONDS 32

/* index * k + the sum of by * v + plus + a number from lo to hi, per element. */
struct form {
  int64_t index, plus, lo, hi;
  uint32_t n;
  struct {
    struct ir_val v;
    int64_t by;
  } term[MAX_TERMS];
};

/* Holds for every element where form - form.lo + form.hi < 0, that is, the largest element is. */
struct cond {
  struct ir_op op; /* comparison, or load */
  uint32_t dim;    /* of the load */
  struct form form;
};

struct peeler {
  struct ir_module *m;
  struct ir_pass_ctx *ctx;
  struct ir_op loop;
  struct ir_builder b;
  uint32_t n;
  struct cond cond[MAX_CONDS];
  bool loads; /* edges of loads too */
  bool whole; /* the loop stays one */
};

/* ---- linear forms ---- */

static bool is_inside(const struct ir_module *m, struct ir_val v, struct ir_op loop) {
  const struct ir_value *x = ir_value_at(m, v);
  struct ir_block b = x->def.id ? ir_op_at(m, x->def)->block : x->block;
  for (; b.id; b = ir_op_at(m, ir_block_at(m, b)->parent)->block) {
    struct ir_op parent = ir_block_at(m, b)->parent;
    if (!parent.id)
      return false;
    if (parent.id == loop.id)
      return true;
  }
  return false;
}

static bool add_product(int64_t *to, int64_t a, int64_t b) {
  int64_t p;
  return !__builtin_mul_overflow(a, b, &p) && !__builtin_add_overflow(*to, p, to);
}

static bool add_term(struct form *f, struct ir_val v, int64_t by) {
  for (uint32_t i = 0; i < f->n; i++)
    if (f->term[i].v.id == v.id)
      return add_product(&f->term[i].by, by, 1);
  if (f->n == MAX_TERMS)
    return false;
  f->term[f->n].v = v;
  f->term[f->n++].by = by;
  return true;
}

/* A constant scalar, or a tile of one. */
static bool constant(const struct ir_module *m, struct ir_val v, int64_t *c) {
  for (struct ir_op def; (def = ir_value_at(m, v)->def).id; v = ir_op_at(m, def)->in[0])
    if (ir_op_at(m, def)->opcode != IR_SPLAT && ir_op_at(m, def)->opcode != IR_BROADCAST)
      break;
  return ir_val_const(m, v, c);
}

/* Adds by * v to *f; false: v is nothing of the kind. */
static bool add_value(const struct peeler *p, struct form *f, struct ir_val v, int64_t by,
                      int depth) {
  const struct ir_module *m = p->m;
  struct ir_op def = ir_value_at(m, v)->def;
  struct ir_type t = ir_type_of(m, v);
  int64_t c;
  if (t.dtype != DT_INDEX || depth > 24)
    return false;
  if (ir_val_const(m, v, &c))
    return add_product(&f->plus, by, c);
  if (ir_loop_of_index(m, v).id == p->loop.id)
    return add_product(&f->index, by, 1);
  if (t.kind == IR_SCALAR && !is_inside(m, v, p->loop))
    return add_term(f, v, by);
  if (!def.id)
    return false;
  const struct ir_opnode *n = ir_op_at(m, def);
  switch ((int)n->opcode) {
  case IR_SPLAT:
  case IR_BROADCAST:
  case IR_RESHAPE:
  case IR_TRANSPOSE: return add_value(p, f, n->in[0], by, depth + 1);
  case IR_IOTA:
    return add_product(by > 0 ? &f->hi : &f->lo, by,
                       t.dim[ir_attr_int(m, def, IR_ATTR_axis, 0)] - 1);
  case IR_ADD:
    return add_value(p, f, n->in[0], by, depth + 1) && add_value(p, f, n->in[1], by, depth + 1);
  case IR_SUB:
    return by != INT64_MIN && add_value(p, f, n->in[0], by, depth + 1) &&
           add_value(p, f, n->in[1], -by, depth + 1);
  case IR_MUL: {
    bool left = constant(m, n->in[0], &c);
    if (!left && !constant(m, n->in[1], &c))
      return false;
    return !__builtin_mul_overflow(by, c, &by) && add_value(p, f, n->in[left], by, depth + 1);
  }
  default: return false;
  }
}

/* ---- conditions ---- */

static void add_cond(struct peeler *p, struct cond c) {
  if (c.form.index && c.form.index != INT64_MIN && p->n < MAX_CONDS)
    p->cond[p->n++] = c;
}

static void look_at_comparison(struct peeler *p, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(p->m, o);
  bool less = n->opcode == IR_LT || n->opcode == IR_LE;
  bool equal = n->opcode == IR_LE || n->opcode == IR_GE;
  struct cond c = {.op = o};
  if (ir_type_of(p->m, n->out[0]).kind != IR_TILE)
    return;
  if (add_value(p, &c.form, n->in[!less], 1, 0) && add_value(p, &c.form, n->in[less], -1, 0) &&
      add_product(&c.form.plus, equal ? -1 : 0, 1))
    add_cond(p, c);
}

/* The end of a tile along dim d, against the end of the tensor. */
static void look_at_load(struct peeler *p, struct ir_op o) {
  struct ir_module *m = p->m;
  struct ir_access a;
  const struct ir_attr *masks = ir_get_attr(m, o, IR_ATTR_masks);
  if (!ir_access_of(m, o, &a) || ir_op_at(m, o)->opcode != IR_LOAD || a.arg == IR_NO_ARG)
    return;
  for (uint32_t d = 0; d < a.rank; d++) {
    struct cond c = {.op = o, .dim = d};
    int64_t size = ir_type_of(m, a.view).dim[d];
    if (!(masks->ints[d] & IR_MASK_END) || !add_value(p, &c.form, a.offset[d], 1, 0) ||
        !c.form.index || !add_product(&c.form.plus, a.tile.dim[d] - 1, 1))
      continue;
    if (size == IR_DYN) {
      struct ir_val v = ir_build1(&p->b, IR_DIM, ir_scalar(DT_INDEX), 1, &a.view);
      cg_set_int(m, ir_value_at(m, v)->def, IR_ATTR_axis, d);
      if (!add_term(&c.form, v, -1))
        continue;
    } else if (!add_product(&c.form.plus, -size, 1)) {
      continue;
    }
    add_cond(p, c);
  }
}

/* Registers of a thread for a tile. */
static int64_t regs_of(struct ir_module *m, struct ir_val v) {
  struct ir_type t = ir_type_of(m, v);
  int64_t bytes = dtype_bytes((enum dtype)t.dtype, 1), threads = cg_knob_get(m, CG_KNOB_THREADS);
  return t.kind == IR_TILE ? ir_elems(t) * bytes / 4 / (threads > 0 ? threads : 128) : 0;
}

/* Elements that a thread has of a tile. */
static int64_t elems_of(struct ir_module *m, struct ir_val v) {
  int64_t threads = cg_knob_get(m, CG_KNOB_THREADS);
  return ir_elems(ir_type_of(m, v)) / (threads > 0 ? threads : 128);
}

static int64_t largest_mask(const struct peeler *p) {
  int64_t most = 0;
  for (uint32_t i = 0; i < p->n; i++) {
    int64_t n = elems_of(p->m, ir_op_at(p->m, p->cond[i].op)->out[0]);
    most = n > most ? n : most;
  }
  return most;
}

static bool has_room(struct ir_module *m, struct ir_op loop) {
  struct ir_block body = ir_op_at(m, loop)->blocks[0];
  int64_t carried = 0, most = 0;
  for (uint32_t k = 0; k < ir_op_at(m, loop)->n_out; k++)
    carried += regs_of(m, ir_op_at(m, loop)->out[k]);
  for (struct ir_op o = ir_block_at(m, body)->first; o.id; o = ir_walk_next(m, o, body))
    for (uint32_t k = 0; k < ir_op_at(m, o)->n_out; k++) {
      int64_t n = regs_of(m, ir_op_at(m, o)->out[k]);
      bool other = ir_type_of(m, ir_op_at(m, o)->out[k]).dtype != DT_INDEX;
      most = other && n > most ? n : most;
    }
  return carried + most <= MAX_REGS;
}

/* Whether the loop may be cut, and what for. */
static bool find_conds(struct peeler *p) {
  struct ir_module *m = p->m;
  struct ir_block body = ir_op_at(m, p->loop)->blocks[0];
  uint32_t ops = 0;
  for (struct ir_op o = ir_block_at(m, body)->first; o.id; o = ir_walk_next(m, o, body), ops++) {
    const struct ir_opnode *n = ir_op_at(m, o);
    bool writes = ir_info(n->opcode)->traits & (IR_WRITES | IR_EFFECT);
    if (n->opcode == IR_LOAD && str_eq(cg_attr_word(m, o, IR_ATTR_path), "tma"))
      p->whole = true;
    if (n->opcode == IR_FOR || n->opcode == IR_WHILE || (writes && !p->loads && !p->whole))
      return false;
  }
  p->loads = p->loads && !p->whole;
  if (!p->loads && !p->whole && (ops > MAX_OPS || !has_room(m, p->loop)))
    return false;
  for (struct ir_op o = ir_block_at(m, body)->first; o.id; o = ir_walk_next(m, o, body)) {
    enum ir_opcode c = ir_op_at(m, o)->opcode;
    if (c == IR_LT || c == IR_LE || c == IR_GT || c == IR_GE)
      look_at_comparison(p, o);
    if (c == IR_LOAD && p->loads)
      look_at_load(p, o);
  }
  return p->n > 0 && (p->loads || p->whole || largest_mask(p) >= MIN_MASK);
}

/* ---- where to cut ---- */

static struct ir_val op2(struct peeler *p, enum ir_opcode o, struct ir_val a, struct ir_val b) {
  return ir_build1(&p->b, o, ir_scalar(DT_INDEX), 2, (struct ir_val[]){a, b});
}

static struct ir_val number(struct peeler *p, int64_t n) {
  return ir_const_int(&p->b, DT_INDEX, n);
}

static struct ir_val quotient_up(struct peeler *p, struct ir_val a, struct ir_val b) {
  return op2(p, IR_FLOORDIV, op2(p, IR_SUB, op2(p, IR_ADD, a, b), number(p, 1)), b);
}

/* The largest element of the condition's form, less index * k. */
static struct ir_val rest(struct peeler *p, const struct form *f) {
  struct ir_val sum = number(p, f->plus + f->hi);
  for (uint32_t i = 0; i < f->n; i++) {
    struct ir_val v = f->term[i].v;
    if (f->term[i].by != 1 && f->term[i].by != -1)
      v = op2(p, IR_MUL, v, number(p, f->term[i].by));
    sum = op2(p, f->term[i].by == -1 ? IR_SUB : IR_ADD, sum, v);
  }
  return sum;
}

/* Holds for k below this (index > 0), or from this on (index < 0). */
static struct ir_val threshold(struct peeler *p, const struct form *f) {
  struct ir_val e = rest(p, f), one = number(p, 1);
  if (f->index < 0) {
    e = f->index == -1 ? e : op2(p, IR_FLOORDIV, e, number(p, -f->index));
    return op2(p, IR_ADD, e, one);
  }
  if (f->index == 1)
    return op2(p, IR_SUB, number(p, 0), e);
  struct ir_val last = op2(p, IR_SUB, number(p, -1), e);
  return op2(p, IR_ADD, op2(p, IR_FLOORDIV, last, number(p, f->index)), one);
}

/* Numbers of iterations before the middle loop and before the last one; 0: no such loop. */
static void find_cuts(struct peeler *p, struct ir_val trips, struct ir_val *first,
                      struct ir_val *last) {
  const struct ir_opnode *n = ir_op_at(p->m, p->loop);
  struct ir_val lo = n->in[0], step = n->in[2];
  *first = *last = (struct ir_val){0};
  for (uint32_t i = 0; i < p->n; i++) {
    struct ir_val t = threshold(p, &p->cond[i].form);
    struct ir_val count = quotient_up(p, op2(p, IR_SUB, t, lo), step);
    struct ir_val *to = p->cond[i].form.index < 0 ? first : last;
    *to = !to->id ? count : op2(p, to == first ? IR_MAX : IR_MIN, *to, count);
  }
  if (first->id)
    *first = op2(p, IR_MIN, op2(p, IR_MAX, *first, number(p, 0)), trips);
  if (last->id)
    *last = op2(p, IR_MIN, op2(p, IR_MAX, *last, first->id ? *first : number(p, 0)), trips);
}

/* ---- the loops ---- */

static void set_label(struct peeler *p, struct ir_op loop, const char *suffix) {
  const char *label = cg_attr_word(p->m, loop, IR_ATTR_label);
  if (*label)
    cg_set_word(p->m, loop, IR_ATTR_label, arena_printf(p->m->arena, "%s.%s", label, suffix));
}

/* Another copy of the loop before p->b's place. */
static struct ir_op copy_loop(struct peeler *p, const char *suffix) {
  struct ir_copy c = ir_copy_begin(p->m, p->ctx->scratch);
  struct ir_op copy = ir_copy_op(&c, &p->b, p->loop);
  set_label(p, copy, suffix);
  return copy;
}

/* `later` goes on where `loop` ends. */
static void chain(struct peeler *p, struct ir_op loop, struct ir_op later, struct ir_val at) {
  struct ir_module *m = p->m;
  ir_op_at(m, loop)->in[1] = at;
  ir_op_at(m, later)->in[0] = at;
  for (uint32_t k = 0; k < ir_op_at(m, loop)->n_out; k++)
    ir_op_at(m, later)->in[3 + k] = ir_op_at(m, loop)->out[k];
  cg_set_int(m, later, IR_ATTR_follows, 1);
}

/* ---- the loop in the middle ---- */

/* A mask that is known to be true has no use any more where it selects or is combined. */
static void fold_masks(struct peeler *p, struct bitset *known) {
  struct ir_module *m = p->m;
  struct ir_block body = ir_op_at(m, p->loop)->blocks[0];
  for (struct ir_op o = ir_block_at(m, body)->first; o.id; o = ir_walk_next(m, o, body)) {
    const struct ir_opnode n = *ir_op_at(m, o);
    if (!n.n_out || !n.n_in)
      continue;
    bool first = bitset_has(known, n.in[0].id);
    bool second = n.n_in > 1 && bitset_has(known, n.in[1].id);
    switch ((int)n.opcode) {
    case IR_SPLAT:
    case IR_BROADCAST:
    case IR_RESHAPE:
    case IR_TRANSPOSE:
      if (first)
        bitset_add(known, n.out[0].id);
      break;
    case IR_AND:
      if (first && second)
        bitset_add(known, n.out[0].id);
      else if (first || second)
        ir_replace_uses(m, n.out[0], n.in[first]);
      break;
    case IR_OR:
      if (first || second)
        bitset_add(known, n.out[0].id);
      break;
    case IR_SELECT:
      if (first)
        ir_replace_uses(m, n.out[0], n.in[1]);
      break;
    default: break;
    }
  }
}

/* A load's tile ends inside along dim d. Loads that feed a dot keep the width of their copies: the
 * loops share the memory these go to. */
static void drop_edge(struct peeler *p, struct ir_op o, uint32_t d) {
  struct ir_module *m = p->m;
  const struct ir_attr *a = ir_get_attr(m, o, IR_ATTR_masks);
  int64_t masks[IR_MAX_RANK] = {0}, vdim = ir_attr_int(m, o, IR_ATTR_vdim, 0);
  uint32_t rank = a->n_ints;
  for (uint32_t i = 0; i < rank; i++)
    masks[i] = a->ints[i];
  masks[d] &= ~IR_MASK_END;
  cg_set_ints(m, o, IR_ATTR_masks, rank, masks);
  struct ir_type t = ir_type_of(m, ir_op_at(m, o)->out[0]);
  if (!masks[vdim] && str_eq(cg_attr_word(m, o, IR_ATTR_path), "frag"))
    cg_set_int(m, o, IR_ATTR_vec,
               ir_pow2_divisor(t.dim[vdim], ir_attr_int(m, o, IR_ATTR_align, 1)));
}

static void simplify_middle(struct peeler *p) {
  struct ir_module *m = p->m;
  struct bitset known = bitset_new(p->ctx->scratch, m->values.n);
  for (uint32_t i = 0; i < p->n; i++) {
    struct ir_op o = p->cond[i].op;
    if (ir_op_at(m, o)->opcode == IR_LOAD)
      drop_edge(p, o, p->cond[i].dim);
    else
      bitset_add(&known, ir_op_at(m, o)->out[0].id);
  }
  fold_masks(p, &known);
}

/* ---- a loop that stays one ---- */

/* bool: do all conditions hold in this iteration? Computed where it begins. */
static struct ir_val all_hold(struct peeler *p) {
  struct ir_module *m = p->m;
  struct ir_block body = ir_op_at(m, p->loop)->blocks[0];
  struct ir_val index = ir_block_at(m, body)->args.at[0], all = {0}, zero = number(p, 0);
  struct ir_builder before = p->b, inside = p->b;
  inside.block = body;
  inside.before = ir_block_at(m, body)->first;
  for (uint32_t i = 0; i < p->n; i++) {
    struct ir_val e = rest(p, &p->cond[i].form), k = number(p, p->cond[i].form.index);
    p->b = inside;
    struct ir_val in[2] = {op2(p, IR_ADD, op2(p, IR_MUL, index, k), e), zero};
    struct ir_val holds = ir_build1(&p->b, IR_LT, ir_scalar(DT_BOOL), 2, in);
    struct ir_val both[2] = {all, holds};
    all = all.id ? ir_build1(&p->b, IR_AND, ir_scalar(DT_BOOL), 2, both) : holds;
    p->b = before;
  }
  return all;
}

/* The select becomes a branch: on one side what it selects where its mask is true. */
static void branch(struct peeler *p, struct ir_op select, struct ir_val all) {
  struct ir_module *m = p->m;
  const struct ir_opnode n = *ir_op_at(m, select);
  struct ir_val in[3] = {n.in[0], n.in[1], n.in[2]}, was = n.out[0];
  struct ir_type t = ir_type_of(m, was);
  struct ir_builder b = {m, n.block, select, n.loc};
  struct ir_op o = ir_build(&b, IR_IF, 1, &all, 1, &t);
  for (int side = 0; side < 2; side++) {
    b.block = ir_op_at(m, o)->blocks[side];
    b.before = (struct ir_op){0};
    struct ir_val v = side ? ir_build1(&b, IR_SELECT, t, 3, in) : in[1];
    ir_build(&b, IR_YIELD, 1, &v, 0, NULL);
  }
  ir_replace_uses(m, was, ir_op_at(m, o)->out[0]);
}

static bool guard(struct peeler *p) {
  struct ir_module *m = p->m;
  struct ir_block body = ir_op_at(m, p->loop)->blocks[0];
  struct bitset known = bitset_new(p->ctx->scratch, m->values.n);
  VEC(struct ir_op) selects = {0};
  for (uint32_t i = 0; i < p->n; i++)
    bitset_add(&known, ir_op_at(m, p->cond[i].op)->out[0].id);
  for (struct ir_op o = ir_block_at(m, body)->first; o.id; o = ir_walk_next(m, o, body)) {
    const struct ir_opnode *n = ir_op_at(m, o);
    bool first = n->n_in && bitset_has(&known, n->in[0].id);
    bool second = n->n_in > 1 && bitset_has(&known, n->in[1].id);
    bool moved = n->opcode == IR_SPLAT || n->opcode == IR_BROADCAST || n->opcode == IR_RESHAPE ||
                 n->opcode == IR_TRANSPOSE;
    if ((moved && first) || (n->opcode == IR_AND && first && second) ||
        (n->opcode == IR_OR && (first || second)))
      bitset_add(&known, n->out[0].id);
    if (n->opcode == IR_SELECT && first && n->block.id == body.id &&
        elems_of(m, n->out[0]) >= MIN_MASK)
      VEC_PUSH(p->ctx->scratch, &selects, o);
  }
  if (!selects.n)
    return false;
  struct ir_val all = all_hold(p);
  for (uint32_t i = 0; i < selects.n; i++)
    branch(p, selects.at[i], all);
  return true;
}

static void peel(struct peeler *p) {
  struct ir_module *m = p->m;
  struct ir_op loop = p->loop, first_loop = {0}, last_loop = {0};
  const struct ir_opnode *n = ir_op_at(m, loop);
  struct ir_val lo = n->in[0], hi = n->in[1], step = n->in[2], first, last;
  struct ir_val span = op2(p, IR_MAX, op2(p, IR_SUB, hi, lo), number(p, 0));
  find_cuts(p, quotient_up(p, span, step), &first, &last);
  struct ir_val from = first.id ? op2(p, IR_ADD, lo, op2(p, IR_MUL, first, step)) : first;
  struct ir_val to = last.id ? op2(p, IR_ADD, lo, op2(p, IR_MUL, last, step)) : last;
  if (first.id)
    first_loop = copy_loop(p, "first");
  p->b.before = ir_op_at(m, loop)->next;
  if (last.id) {
    last_loop = copy_loop(p, "last");
    for (uint32_t k = 0; k < ir_op_at(m, loop)->n_out; k++)
      ir_replace_uses(m, ir_op_at(m, loop)->out[k], ir_op_at(m, last_loop)->out[k]);
    chain(p, loop, last_loop, to);
  }
  if (first.id)
    chain(p, first_loop, loop, from);
  simplify_middle(p);
}

/* ---- the pass ---- */

struct loops {
  struct arena *a;
  VEC(struct ir_op) list;
};

static void list_loop(void *user, struct ir_module *m, struct ir_op o) {
  struct loops *l = user;
  if (ir_op_at(m, o)->opcode == IR_FOR)
    VEC_PUSH(l->a, &l->list, o);
}

bool cg_pass_peel_loops(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  int64_t knob = cg_knob_get(m, CG_KNOB_PEEL);
  struct loops loops = {.a = ctx->scratch};
  uint32_t n = 0, ops = m->ops.n;
  *changed = false;
  if (knob == 0)
    return true;
  ir_walk(m, m->body, list_loop, &loops);
  for (uint32_t i = 0; i < loops.list.n; i++) {
    struct ir_op o = loops.list.at[i];
    struct peeler p = {.m = m, .ctx = ctx, .loop = o, .loads = knob == 1};
    p.b = (struct ir_builder){m, ir_op_at(m, o)->block, o, ir_op_at(m, o)->loc};
    if (!find_conds(&p))
      continue;
    if (!p.whole)
      peel(&p);
    n += !p.whole || guard(&p);
  }
  if (n) {
    cg_knob_put(m, CG_KNOB_PEEL, 1);
    if (!ir_pass_dce(m, ctx, changed))
      return false;
  }
  *changed = m->ops.n != ops;
  return true;
}
