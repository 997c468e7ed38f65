/* Tiles by element: what a register of a tile holds, computed where it is read. See lower.h. */
#include "base/check.h"
#include "codegen/lower.h"
#include "codegen/schedule.h"

#define MANY_REGS                                                                                  \
  48 /* a tile that takes more registers a thread is computed twice rather than kept */

void cg_next_reg(struct lower *l) {
  l->epoch++;
}

uint32_t cg_layout_of(const struct lower *l, struct ir_val v) {
  return ir_value_at(l->m, v)->layout;
}

struct ir_val cg_scalar(struct lower *l, struct ir_val v) {
  KILN_ASSERT(v.id < l->n_val && l->val[v.id].kind == CG_LV_SCALAR);
  return l->val[v.id].scalar;
}

void cg_set_scalar(struct lower *l, struct ir_val v, struct ir_val x) {
  l->val[v.id].kind = CG_LV_SCALAR;
  l->val[v.id].scalar = x;
}

struct ir_val cg_scalar_op(struct lower *l, struct ir_op o, const struct ir_val *in) {
  const struct ir_opnode *n = ir_op_at(l->m, o);
  enum dtype t = (enum dtype)ir_type_of(l->m, n->out[0]).dtype;
  enum ir_opcode c = n->opcode;
  /* Subnormal results as zeros: three instructions fewer of ten that a softmax has an element. */
  if (c == IR_EXP2 && t == DT_F32)
    return ir_build1(&l->b, IR_EX2, ir_scalar(t), 1, in);
  if (c == IR_CAST)
    return cg_cast(l, in[0], t);
  bool folds = (c == IR_ADD || c == IR_SUB || c == IR_MUL || c == IR_MIN || c == IR_MAX ||
                c == IR_AND || c == IR_OR || c == IR_XOR) &&
               (t == DT_INDEX || t == DT_S32 || t == DT_BOOL);
  if (folds)
    return cg_op2(l, c, in[0], in[1]);
  struct ir_attr attrs[2];
  uint32_t n_attrs = n->n_attrs < 2 ? n->n_attrs : 2;
  for (uint32_t i = 0; i < n_attrs; i++)
    attrs[i] = n->attrs[i];
  struct ir_val v = ir_build1(&l->b, c, ir_scalar(t), n->n_in, in);
  for (uint32_t i = 0; i < n_attrs; i++)
    ir_set_attr(l->m, ir_value_at(l->m, v)->def, attrs[i]);
  return v;
}

/* Registers of a layout to those of its slice in which the dims grown by a broadcast are 1. */
static struct ir_val slice_reg(struct lower *l, const struct layout *big, uint32_t grown,
                               struct ir_val r) {
  int64_t map[128], next = 1;
  uint32_t n = 0;
  for (uint32_t i = 0; i < big->modes.n && big->modes.at[i].hw == LAYOUT_REG; i++) {
    const struct layout_mode *m = &big->modes.at[i];
    bool kept = false;
    for (uint32_t d = 0; d < big->rank; d++)
      kept = kept || (!(grown >> d & 1) && m->step[d]);
    map[n++] = m->extent;
    map[n++] = kept ? next : 0;
    if (kept)
      next *= m->extent;
  }
  return next == layout_extent(big, LAYOUT_REG) ? r : cg_digits(l, r, n, map);
}

struct ir_val cg_eval_grown(struct lower *l, struct ir_val in, struct ir_type t, struct ir_val r,
                            uint32_t layout) {
  struct ir_type a = ir_type_of(l->m, in);
  uint32_t grown = 0;
  for (uint32_t d = 0; d < t.rank; d++)
    grown |= (uint32_t)(a.dim[d] != t.dim[d]) << d;
  if (!grown)
    return cg_eval(l, in, r, layout);
  const struct layout *big = cg_layout_at(l, layout);
  uint32_t small = cg_layout_of(l, in);
  if (cg_is_free(l->m, in))
    small = ir_add_layout(l->m, cg_layout_slice(l->a, big, grown));
  return cg_eval(l, in, slice_reg(l, big, grown, r), small);
}

static struct ir_val eval_op(struct lower *l, struct ir_val v, struct ir_val r, uint32_t layout) {
  struct ir_module *m = l->m;
  struct ir_op o = ir_value_at(m, v)->def;
  const struct ir_opnode *n = ir_op_at(m, o);
  if (n->opcode == IR_LOAD)
    return cg_read_element(l, l->val[v.id].reading, r);
  if (n->opcode == IR_SPLAT)
    return cg_scalar(l, n->in[0]);
  if (n->opcode == IR_IOTA) {
    uint32_t axis = (uint32_t)ir_attr_int(m, o, IR_ATTR_axis, 0);
    return cg_cast(l, cg_coord(l, layout, axis, r), DT_INDEX);
  }
  if (n->opcode == IR_BROADCAST)
    return cg_eval_grown(l, n->in[0], ir_type_of(m, v), r, layout);
  if (n->opcode == IR_TRANSPOSE || n->opcode == IR_RESHAPE)
    return cg_eval(l, n->in[0], r, cg_layout_of(l, n->in[0]));
  if (n->opcode == IR_BITCAST)
    return cg_eval_bitcast(l, o, r, layout);
  KILN_ASSERT(cg_is_elementwise(n->opcode));
  struct ir_val in[3] = {{0}};
  uint32_t n_in = n->n_in;
  for (uint32_t i = 0; i < n_in; i++)
    in[i] = cg_eval(l, ir_op_at(m, o)->in[i], r, layout);
  return cg_scalar_op(l, o, in);
}

struct ir_val cg_eval(struct lower *l, struct ir_val v, struct ir_val r, uint32_t layout) {
  KILN_ASSERT(v.id < l->n_val);
  struct cg_lval *x = &l->val[v.id];
  if (x->kind == CG_LV_SCALAR)
    return x->scalar;
  if (x->memo.id && x->memo_epoch == l->epoch && x->memo_reg == r.id)
    return x->memo;
  struct ir_val e;
  if (x->kind == CG_LV_FRAG)
    e = cg_fget(l, x->frag, r);
  else if (x->delayed || x->landed)
    e = cg_fget(l, x->part, cg_op2(l, IR_SUB, r, x->from));
  else
    e = eval_op(l, v, r, layout);
  x->memo = e;
  x->memo_epoch = l->epoch;
  x->memo_reg = r.id;
  return e;
}

/* A cast that whoever writes the value does on the way: to be skipped. */
static struct ir_val without_rounding(const struct lower *l, struct ir_val v, enum dtype t) {
  struct ir_op def = ir_value_at(l->m, v)->def;
  if (l->val[v.id].kind != CG_LV_INLINE || !def.id || ir_op_at(l->m, def)->opcode != IR_CAST ||
      (t != DT_F16 && t != DT_BF16))
    return v;
  struct ir_val from = ir_op_at(l->m, def)->in[0];
  return ir_type_of(l->m, from).dtype == DT_F32 ? from : v;
}

void cg_eval_regs(struct lower *l, struct ir_val v, struct ir_val r, uint32_t layout, uint32_t n,
                  const uint32_t *regs, struct ir_val *out) {
  struct ir_val from = without_rounding(l, v, (enum dtype)ir_type_of(l->m, v).dtype);
  bool adjacent = true;
  for (uint32_t i = 0; i < n; i++)
    adjacent = adjacent && regs[i] == i;
  l->run = (struct cg_run){.n = n, .number = l->run.number + 1};
  if (adjacent)
    l->run.first = r;
  for (uint32_t i = 0; i < n; i++) {
    cg_next_reg(l);
    l->run.at = i;
    l->run.reg = cg_addi(l, r, regs[i]);
    out[i] = cg_eval(l, from, l->run.reg, layout);
  }
  l->run.first = (struct ir_val){0};
}

void cg_eval_run(struct lower *l, struct ir_val v, struct ir_val r, uint32_t layout, uint32_t n,
                 struct ir_val *out) {
  static const uint32_t run[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  KILN_ASSERT(n <= 16);
  cg_eval_regs(l, v, r, layout, n, run, out);
}

bool cg_reads_memory_alone(struct lower *l, struct ir_val v, uint32_t *width) {
  const struct cg_lval *x = &l->val[v.id];
  if (x->kind == CG_LV_SCALAR || ir_type_of(l->m, v).kind != IR_TILE)
    return true;
  if (x->kind != CG_LV_INLINE)
    return false;
  if (x->reading) {
    uint32_t w = cg_reading_width(x->reading);
    *width = w > *width ? w : *width;
    return true;
  }
  const struct ir_opnode *n = ir_op_at(l->m, ir_value_at(l->m, v)->def);
  for (uint32_t i = 0; i < n->n_in; i++)
    if (!cg_reads_memory_alone(l, n->in[i], width))
      return false;
  return true;
}

void cg_fill_frag(struct lower *l, uint32_t frag, struct ir_val v, uint32_t layout) {
  struct ir_op def = ir_value_at(l->m, v)->def;
  if (def.id && ir_op_at(l->m, def)->opcode == IR_SPLAT) {
    cg_ffill(l, frag, cg_scalar(l, ir_op_at(l->m, def)->in[0]));
    return;
  }
  uint32_t n = cg_frag_elems(l, frag), w = cg_put_width(l, frag);
  struct ir_builder saved;
  struct ir_val r = cg_muli(l, cg_each(l, n / w, &saved), w), out[4];
  cg_eval_run(l, v, r, layout, w, out);
  cg_fput(l, frag, r, w, out);
  cg_end_each(l, saved);
}

/* ---- a place that is free ---- */

static uint32_t value_regs(const struct lower *l, struct ir_val v) {
  uint32_t layout = cg_layout_of(l, v), bits = dtype_bits((enum dtype)ir_type_of(l->m, v).dtype);
  return layout ? layout_extent(cg_layout_at(l, layout), LAYOUT_REG) * bits / 32 : 0;
}

#define MOST_CHAIN 16

/* The ops that compute an element of a value from the same one of others, and nothing else reads
 * what lies between. */
struct chain {
  uint32_t n;
  struct ir_op op[MOST_CHAIN];
};

static bool holds(const struct chain *c, struct ir_op o) {
  for (uint32_t i = 0; i < c->n; i++)
    if (c->op[i].id == o.id)
      return true;
  return false;
}

/* Was all that reads v, but for the chain, lowered before the chain's first op? Reductions and the
 * like then have read it; what is computed where it is read has not. */
static bool is_done(const struct lower *l, struct ir_val v, const struct chain *c) {
  const struct ir_module *m = l->m;
  const uint32_t *order = l->roles->order;
  for (uint32_t i = l->uses.first[v.id]; i; i = l->uses.list.at[i].next) {
    struct ir_op user = l->uses.list.at[i].op;
    const struct ir_opnode *n = ir_op_at(m, user);
    if (!holds(c, user) && (!cg_is_reduce(n->opcode) || order[user.id] > order[c->op[0].id] ||
                            n->block.id != ir_op_at(m, c->op[0])->block.id))
      return false;
  }
  return true;
}

static bool is_inline(struct lower *l, struct ir_val v);
static struct ir_val free_place(struct lower *l, struct ir_val v);

/* Has v, or will it have, a fragment of its own? */
static bool has_fragment(struct lower *l, struct ir_val v) {
  enum ir_opcode c = ir_op_at(l->m, ir_value_at(l->m, v)->def)->opcode;
  if (l->val[v.id].kind != CG_LV_NONE)
    return l->val[v.id].kind == CG_LV_FRAG;
  /* Asked for what reads v while v itself is asked for: it has one where it finds a place. */
  if (l->val[v.id].lazy == CG_LAZY_ASKED)
    return l->uses.count[v.id] > 1 && free_place(l, v).id;
  return c == IR_DOT || c == IR_IF || c == IR_FOR || (cg_is_elementwise(c) && !is_inline(l, v));
}

/* Collects the chain of v; a tile that it reads in `to`'s layout and no one needs any more, or
 * none. */
static struct ir_val place_in(struct lower *l, struct ir_val v, struct ir_val to, struct chain *c) {
  struct ir_module *m = l->m;
  struct ir_op def = ir_value_at(m, v)->def;
  struct ir_val place = {0};
  if (c->n == MOST_CHAIN || !cg_is_elementwise(ir_op_at(m, def)->opcode))
    return place;
  c->op[c->n++] = def;
  for (uint32_t i = 0; i < ir_op_at(m, def)->n_in && !place.id; i++) {
    struct ir_val in = ir_op_at(m, def)->in[i];
    struct ir_op made = ir_value_at(m, in)->def;
    if (ir_type_of(m, in).kind != IR_TILE || cg_is_free(m, in) || !made.id ||
        ir_op_at(m, made)->block.id != ir_op_at(m, def)->block.id)
      continue;
    if (has_fragment(l, in)) {
      if (cg_layout_of(l, in) == cg_layout_of(l, to) &&
          ir_type_eq(ir_type_of(m, in), ir_type_of(m, to)) && is_done(l, in, c))
        place = in;
    } else if (l->uses.count[in.id] == 1) {
      place = place_in(l, in, to, c);
    }
  }
  return place;
}

/* The tile that v, a long one, is the last to read: it may take its place. Of kernels with a
 * producer, whose accumulators leave no room for a copy. */
static struct ir_val free_place(struct lower *l, struct ir_val v) {
  struct chain c = {0};
  return l->roles ? place_in(l, v, v, &c) : (struct ir_val){0};
}

uint32_t cg_materialize(struct lower *l, struct ir_val v, const char *name) {
  struct cg_lval *x = &l->val[v.id];
  if (x->kind == CG_LV_FRAG)
    return x->frag;
  uint32_t layout = cg_layout_of(l, v), frag = 0;
  if (x->kind == CG_LV_INLINE && value_regs(l, v) > MANY_REGS)
    frag = l->val[free_place(l, v).id].frag;
  if (!frag)
    frag = cg_new_frag(l, name, ir_type_of(l->m, v), layout);
  cg_fill_frag(l, frag, v, layout);
  x->kind = CG_LV_FRAG;
  x->frag = frag;
  return frag;
}

/* Costs at most one instruction, and none of memory. */
static bool is_cheap(const struct lower *l, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(l->m, o);
  if (n->opcode == IR_BROADCAST || n->opcode == IR_TRANSPOSE || n->opcode == IR_RESHAPE)
    return true;
  if (n->opcode != IR_CAST)
    return false;
  enum dtype from = (enum dtype)ir_type_of(l->m, n->in[0]).dtype;
  enum dtype to = (enum dtype)ir_type_of(l->m, n->out[0]).dtype;
  return (from == DT_BF16 || from == DT_F16) && to == DT_F32;
}

static bool is_lazy(enum ir_opcode c) {
  return cg_is_elementwise(c) || c == IR_BROADCAST || c == IR_TRANSPOSE || c == IR_RESHAPE ||
         c == IR_BITCAST;
}

static const struct cg_lval *find_writer(struct lower *l, struct ir_val v);

/* May v be computed again wherever it is read? All readers must be in v's block: in a loop they
 * would compute it in each iteration. And where there are several writers that each compute it, it
 * must cost nearly nothing, or its fragment too much. Nothing that v is read from changes before
 * its last reader comes: what writes in place, a dot its accumulator, a loop its initial value,
 * does so only where it is the one reader. */
static bool is_inline(struct lower *l, struct ir_val v) {
  struct cg_lval *x = &l->val[v.id];
  struct ir_op o = ir_value_at(l->m, v)->def;
  bool here = true, spread = false;
  if (x->lazy != CG_LAZY_UNKNOWN)
    return x->lazy != CG_LAZY_FRAG;
  x->lazy = CG_LAZY_ASKED;
  if (cg_is_free(l->m, v) || l->uses.count[v.id] == 0) {
    x->lazy = CG_LAZY_INLINE;
    return true;
  }
  for (uint32_t i = l->uses.first[v.id]; i; i = l->uses.list.at[i].next) {
    const struct ir_opnode *user = ir_op_at(l->m, l->uses.list.at[i].op);
    here = here && user->block.id == ir_op_at(l->m, o)->block.id;
    spread = spread || user->opcode == IR_BROADCAST;
  }
  bool several = here && find_writer(l, v)->several, cheap = is_cheap(l, o);
  /* A broadcast asks for one element many times. */
  bool again = cg_knob_get(l->m, CG_KNOB_RECOMPUTE) == 1;
  uint32_t most = again ? CG_LONG_TILE - 1 : MANY_REGS;
  bool large = value_regs(l, v) > most && !(several && free_place(l, v).id);
  bool inline_it = here && (cheap || (!spread && (!several || large)));
  x->lazy = inline_it ? CG_LAZY_INLINE : CG_LAZY_FRAG;
  return inline_it;
}

/* The op that makes someone compute v: the one writer at the end of all readers' chains, or
 * several. */
static const struct cg_lval *find_writer(struct lower *l, struct ir_val v) {
  struct cg_lval *x = &l->val[v.id];
  if (x->writer.id || x->several)
    return x;
  for (uint32_t i = l->uses.first[v.id]; i && !x->several; i = l->uses.list.at[i].next) {
    struct ir_op writer = l->uses.list.at[i].op;
    const struct ir_opnode *n = ir_op_at(l->m, writer);
    if (is_lazy(n->opcode) && is_inline(l, n->out[0])) {
      const struct cg_lval *y = find_writer(l, n->out[0]);
      x->several = y->several;
      writer = y->writer;
    }
    x->several = x->several || (x->writer.id && x->writer.id != writer.id);
    x->writer = writer;
  }
  return x;
}

struct ir_op cg_only_writer(struct lower *l, struct ir_val v) {
  const struct cg_lval *x = find_writer(l, v);
  return x->several ? (struct ir_op){0} : x->writer;
}

void cg_lower_lazy(struct lower *l, struct ir_op o) {
  struct ir_val v = ir_op_at(l->m, o)->out[0];
  if (cg_is_smem_only(l->m, &l->uses, v))
    return; /* the dot looks through it */
  l->val[v.id].kind = CG_LV_INLINE;
  if (!is_inline(l, v))
    cg_materialize(l, v, "t");
}

/* ---- reading again ---- */

/* Marks the fragments that v is computed from as read; those that were before are renewed. */
static void reread(struct lower *l, struct ir_val v) {
  struct cg_lval *x = &l->val[v.id];
  if (x->walk == l->walk)
    return;
  x->walk = l->walk;
  if (x->kind == CG_LV_INLINE) {
    const struct ir_opnode *n = ir_op_at(l->m, ir_value_at(l->m, v)->def);
    for (uint32_t i = 0; i < n->n_in; i++)
      if (ir_type_of(l->m, n->in[i]).kind == IR_TILE)
        reread(l, n->in[i]);
  } else if (x->kind == CG_LV_FRAG && cg_frag_elems(l, x->frag) >= CG_LONG_TILE &&
             l->m->res.at[x->frag].type.dtype != DT_BOOL) {
    if (x->was_read)
      ir_set_res(l->m, ir_build(&l->b, IR_RENEW, 0, NULL, 0, NULL), 1, &x->frag);
    x->was_read = true;
  }
}

void cg_begin_writer(struct lower *l, struct ir_val v) {
  l->walk++;
  if (cg_knob_get(l->m, CG_KNOB_RECOMPUTE) == 1 && ir_type_of(l->m, v).kind == IR_TILE)
    reread(l, v);
}
