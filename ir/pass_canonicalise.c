/* Simplification: constants are folded, and of several forms of a thing one is left.
 *
 * Contract of every rewrite here:
 * 1. Results keep their type, their layout (scheduled stage) and, but for rule 4, every bit, NaN,
 *    infinities and signed zeros included. x + 0.0 stays (-0.0 + 0.0 is 0.0); x + -0.0, x - 0.0,
 *    x * 1.0 and x / 1.0 go, in types of 16 bits and more (8-bit floats saturate infinities in
 *    arithmetic and keep them when moved).
 * 2. Nothing is computed where it was not: a value moves neither into nor out of a loop.
 * 3. Each rewrite makes the module smaller or an operand simpler, so that it ends.
 * 4. add(acc, dot(a, b, 0)) becomes dot(a, b, acc) if the dot has no other use: that is what the
 *    kernel text says, `acc = acc + dot(a, b)` accumulates in place (docs/ir.md). The order of a
 *    dot's sum is unspecified anyway.
 *
 * One walk in order, operands replaced on the way; what becomes simpler only later (a carried
 * value that turned out not to change) is met in the next round. What loses its last use is left
 * for dce. */
#include "base/check.h"
#include "ir/merge.h"
#include "ir/passes.h"
#include "ir/rules.h"

#include <math.h>

#define MAX_ROUNDS 8

struct canon {
  struct ir_module *m;
  struct arena *scratch;
  VEC(struct ir_val) subst; /* value -> what replaces it, 0 = itself */
  VEC(uint32_t) uses;
  struct ir_op *loop_of; /* op -> if it is a merge, the loop it stood behind */
  struct ir_op at;       /* the op that is looked at: new ops go before it */
  bool changed;
};

static const struct ir_val none = {0};

/* ---- values ---- */

static struct ir_val resolve(const struct canon *c, struct ir_val v) {
  while (v.id < c->subst.n && c->subst.at[v.id].id)
    v = c->subst.at[v.id];
  return v;
}

static struct ir_type type_of(const struct canon *c, struct ir_val v) {
  return ir_type_of(c->m, v);
}

static const struct ir_opnode *def_of(const struct canon *c, struct ir_val v) {
  return ir_op_at(c->m, ir_value_at(c->m, v)->def); /* op 0 has opcode IR_NO_OP */
}

static bool is_def(const struct canon *c, struct ir_val v, enum ir_opcode opcode) {
  return def_of(c, v)->opcode == opcode;
}

/* Operand i of the op that defines v. */
static struct ir_val arg_of(const struct canon *c, struct ir_val v, uint32_t i) {
  return resolve(c, def_of(c, v)->in[i]);
}

static void track_new_values(struct canon *c) {
  while (c->subst.n < c->m->values.n) {
    VEC_PUSH(c->scratch, &c->subst, none);
    VEC_PUSH(c->scratch, &c->uses, 0);
  }
}

static bool replace(struct canon *c, struct ir_val from, struct ir_val to) {
  struct ir_value *x = ir_value_at(c->m, from), *y = ir_value_at(c->m, to);
  if (from.id == to.id || x->layout != y->layout)
    return false;
  KILN_ASSERT(ir_type_eq(x->type, y->type));
  if (!y->name.id)
    y->name = x->name;
  c->subst.at[from.id] = to;
  c->uses.at[to.id] += c->uses.at[from.id];
  c->uses.at[from.id] = 0;
  return c->changed = true;
}

static void remove_op(struct canon *c, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(c->m, o);
  for (uint32_t i = 0; i < n->n_in; i++)
    c->uses.at[resolve(c, n->in[i]).id]--;
  ir_remove(c->m, o);
  c->changed = true;
}

/* ---- new ops ---- */

/* Before the current op, with its location and schedule. */
static struct ir_val build(struct canon *c, enum ir_opcode opcode, struct ir_type t, uint32_t n,
                           const struct ir_val *in) {
  struct ir_module *m = c->m;
  struct ir_builder b = {m, ir_op_at(m, c->at)->block, c->at, ir_op_at(m, c->at)->loc};
  struct ir_val v = ir_build1(&b, opcode, t, n, in);
  ir_op_at(m, ir_value_at(m, v)->def)->sched = ir_op_at(m, c->at)->sched;
  track_new_values(c);
  for (uint32_t i = 0; i < n; i++)
    c->uses.at[in[i].id]++;
  /* A new tile lies as the value it stands for does. */
  const struct ir_opnode *at = ir_op_at(m, c->at);
  if (at->n_out && ir_shape_eq(type_of(c, at->out[0]), t))
    ir_value_at(m, v)->layout = ir_value_at(m, at->out[0])->layout;
  return v;
}

static struct ir_val build_splat(struct canon *c, struct ir_type t, struct ir_val scalar) {
  return t.kind == IR_SCALAR ? scalar : build(c, IR_SPLAT, t, 1, &scalar);
}

static struct ir_val build_constant(struct canon *c, struct ir_type t,
                                    const struct ir_constant *k) {
  struct ir_val v = build(c, IR_CONST, ir_scalar((enum dtype)t.dtype), 0, NULL);
  struct ir_attr a = {.key = IR_ATTR_value, .i = k->i, .f = k->f};
  ir_set_attr(c->m, ir_value_at(c->m, v)->def, a);
  return build_splat(c, t, v);
}

static struct ir_val build_int(struct canon *c, struct ir_type t, int64_t i) {
  struct ir_constant k = {.i = i};
  return build_constant(c, t, &k);
}

static struct ir_val make(struct canon *c, enum ir_opcode opcode, struct ir_type t, uint32_t n,
                          const struct ir_val *in);

/* ---- elementwise ops ---- */

static bool is_elementwise(enum ir_opcode opcode) {
  switch ((int)ir_info(opcode)->rule) {
  case IR_RULE_arith:
  case IR_RULE_float_arith:
  case IR_RULE_int_arith:
  case IR_RULE_bits:
  case IR_RULE_compare:
  case IR_RULE_select:
  case IR_RULE_cast: return true;
  default: return false;
  }
}

static bool const_int(const struct canon *c, struct ir_val v, int64_t *out) {
  struct ir_constant k;
  if (!ir_constant_of(c->m, v, &k) || dtype_is_float(k.dtype))
    return false;
  *out = k.i;
  return true;
}

static bool is_int(const struct canon *c, struct ir_val v, int64_t want) {
  int64_t i;
  return const_int(c, v, &i) && i == want;
}

/* Exactly this float, sign of zero included. */
static bool is_float(const struct canon *c, struct ir_val v, double want) {
  struct ir_constant k;
  return ir_constant_of(c->m, v, &k) && dtype_is_float(k.dtype) && k.f == want &&
         signbit(k.f) == signbit(want);
}

static int64_t all_ones(enum dtype t) {
  return t == DT_BOOL ? 1 : dtype_kind(t) == DTK_UINT ? (INT64_C(1) << dtype_bits(t)) - 1 : -1;
}

/* x op y, where y is what the op that defines `of` is of. */
static struct ir_val with_arg(struct canon *c, enum ir_opcode opcode, struct ir_type t,
                              struct ir_val x, struct ir_val of) {
  struct ir_val pair[2] = {x, arg_of(c, of, 0)};
  return make(c, opcode, t, 2, pair);
}

/* x + -y is x - y. */
static struct ir_val add_of_negated(struct canon *c, struct ir_type t, const struct ir_val *in) {
  if (is_def(c, in[1], IR_NEG))
    return with_arg(c, IR_SUB, t, in[0], in[1]);
  return is_def(c, in[0], IR_NEG) ? with_arg(c, IR_SUB, t, in[1], in[0]) : none;
}

static struct ir_val reassociate(struct canon *c, enum ir_opcode opcode, struct ir_type t,
                                 const struct ir_val *in);

/* Of x and x, and of x op y and y or x: what is there already. */
static struct ir_val same_extremum(struct canon *c, enum ir_opcode opcode, struct ir_type t,
                                   const struct ir_val *in) {
  if (in[0].id == in[1].id)
    return in[0];
  for (int i = 0; i < 2; i++)
    if (is_def(c, in[i], opcode) &&
        (arg_of(c, in[i], 0).id == in[1 - i].id || arg_of(c, in[i], 1).id == in[1 - i].id))
      return in[i];
  return reassociate(c, opcode, t, in);
}

static struct ir_val simplify_float(struct canon *c, enum ir_opcode opcode, struct ir_type t,
                                    const struct ir_val *in) {
  if (dtype_bits((enum dtype)t.dtype) < 16)
    return none;
  struct ir_val x = in[0];
  switch ((int)opcode) {
  case IR_ADD: return is_float(c, in[1], -0.0) ? x : add_of_negated(c, t, in);
  case IR_SUB:
    if (is_float(c, in[1], 0.0))
      return x;
    return is_def(c, in[1], IR_NEG) ? with_arg(c, IR_ADD, t, x, in[1]) : none;
  case IR_MUL:
  case IR_DIV:
    if (is_float(c, in[1], 1.0))
      return x;
    if (is_float(c, in[1], -1.0))
      return make(c, IR_NEG, t, 1, &x);
    /* Signs cancel (of a quotient too, but that is no law of the algebraic domain). */
    return opcode == IR_MUL && is_def(c, x, IR_NEG) && is_def(c, in[1], IR_NEG)
               ? with_arg(c, opcode, t, arg_of(c, x, 0), in[1])
               : none;
  case IR_FMA: {
    /* An exact product, or a sum that changes nothing. What does not fold must not fold so. */
    struct ir_constant k;
    if (is_float(c, in[1], 1.0) &&
        !(ir_constant_of(c->m, x, &k) && ir_constant_of(c->m, in[2], &k)))
      return make(c, IR_ADD, t, 2, (struct ir_val[]){x, in[2]});
    if (is_float(c, in[2], -0.0) &&
        !(ir_constant_of(c->m, x, &k) && ir_constant_of(c->m, in[1], &k)))
      return make(c, IR_MUL, t, 2, in);
    return none;
  }
  case IR_MIN:
  case IR_MAX: return same_extremum(c, opcode, t, in);
  case IR_NEG: return is_def(c, x, IR_NEG) ? arg_of(c, x, 0) : none;
  case IR_ABS:
    if (is_def(c, x, IR_ABS))
      return x;
    if (is_def(c, x, IR_NEG)) {
      struct ir_val y = arg_of(c, x, 0);
      return make(c, IR_ABS, t, 1, &y);
    }
    return none;
  default: return none;
  }
}

/* x op c2 where x is y op c1: y op (c1 op c2), for ops that are associative: sums and products that
 * wrap, extrema, bits. */
static struct ir_val reassociate(struct canon *c, enum ir_opcode opcode, struct ir_type t,
                                 const struct ir_val *in) {
  struct ir_constant k[3] = {{0}}, r;
  if (!is_def(c, in[0], opcode) || !ir_constant_of(c->m, in[1], &k[1]) ||
      !ir_constant_of(c->m, arg_of(c, in[0], 1), &k[0]) ||
      !ir_fold(opcode, (enum dtype)t.dtype, k, &r))
    return none;
  struct ir_val pair[2] = {arg_of(c, in[0], 0), build_constant(c, t, &r)};
  return make(c, opcode, t, 2, pair);
}

/* x + y - y and the like. A wrapped sum is one, too. */
static struct ir_val cancel(struct canon *c, enum ir_opcode opcode, struct ir_type t,
                            const struct ir_val *in) {
  struct ir_val x = in[0], y = in[1];
  if (opcode == IR_ADD) {
    for (int i = 0; i < 2; i++)
      if (is_def(c, in[i], IR_SUB) && arg_of(c, in[i], 1).id == in[1 - i].id)
        return arg_of(c, in[i], 0); /* (a - b) + b */
    return add_of_negated(c, t, in);
  }
  if (is_def(c, x, IR_ADD) && arg_of(c, x, 0).id == y.id)
    return arg_of(c, x, 1); /* (y + b) - y */
  if (is_def(c, x, IR_ADD) && arg_of(c, x, 1).id == y.id)
    return arg_of(c, x, 0);
  if (is_def(c, y, IR_NEG))
    return with_arg(c, IR_ADD, t, x, y);
  return is_int(c, x, 0) ? make(c, IR_NEG, t, 1, &y) : none;
}

static int64_t const_arg(const struct canon *c, struct ir_val v, enum ir_opcode opcode) {
  int64_t k;
  return is_def(c, v, opcode) && const_int(c, arg_of(c, v, 1), &k) ? k : 0;
}

static struct ir_val divide_int(struct canon *c, enum ir_opcode opcode, struct ir_type t,
                                const struct ir_val *in) {
  struct ir_val x = in[0];
  int64_t k, inner;
  if (!const_int(c, in[1], &k) || k == 0)
    return none;
  if (k == 1 || k == -1)
    return opcode == IR_MOD ? build_int(c, t, 0) : k == 1 ? x : make(c, IR_NEG, t, 1, &x);
  /* A product of an index does not overflow. */
  if (t.dtype == DT_INDEX && const_arg(c, x, IR_MUL) == k)
    return opcode == IR_MOD ? build_int(c, t, 0) : arg_of(c, x, 0);
  if (opcode == IR_MOD)
    return const_arg(c, x, IR_MOD) == k ? x : none;
  inner = const_arg(c, x, IR_FLOORDIV);
  struct ir_constant pair[3] = {{.i = inner}, {.i = k}}, product;
  if (inner < 1 || k < 1 || __builtin_mul_overflow(inner, k, &(int64_t){0}) ||
      !ir_fold(IR_MUL, (enum dtype)t.dtype, pair, &product) || product.i != inner * k)
    return none;
  struct ir_val once[2] = {arg_of(c, x, 0), build_constant(c, t, &product)};
  return make(c, IR_FLOORDIV, t, 2, once);
}

/* Is one of x and y `not` of the other? */
static bool is_complement(const struct canon *c, struct ir_val x, struct ir_val y) {
  return (is_def(c, x, IR_NOT) && arg_of(c, x, 0).id == y.id) ||
         (is_def(c, y, IR_NOT) && arg_of(c, y, 0).id == x.id);
}

/* x and (x or y) is x, and so on: other is the op inside. */
static bool absorbs(const struct canon *c, struct ir_val x, struct ir_val y, enum ir_opcode other) {
  return is_def(c, y, other) && (arg_of(c, y, 0).id == x.id || arg_of(c, y, 1).id == x.id);
}

static struct ir_val simplify_bits(struct canon *c, enum ir_opcode opcode, struct ir_type t,
                                   const struct ir_val *in) {
  struct ir_val x = in[0];
  int64_t ones = all_ones((enum dtype)t.dtype);
  int64_t neutral = opcode == IR_AND ? ones : 0, taking = opcode == IR_AND ? 0 : ones;
  enum ir_opcode other = opcode == IR_AND ? IR_OR : IR_AND;
  if (opcode == IR_XOR) {
    if (x.id == in[1].id)
      return build_int(c, t, 0);
    if (is_int(c, in[1], 0))
      return x;
    if (is_int(c, in[1], ones))
      return make(c, IR_NOT, t, 1, &x);
    return is_complement(c, x, in[1]) ? build_int(c, t, ones) : reassociate(c, opcode, t, in);
  }
  if (x.id == in[1].id || is_int(c, in[1], neutral))
    return x;
  if (is_int(c, in[1], taking))
    return in[1];
  if (is_complement(c, x, in[1]))
    return build_int(c, t, taking);
  for (int i = 0; i < 2; i++)
    if (absorbs(c, in[i], in[1 - i], other))
      return in[i];
  return reassociate(c, opcode, t, in);
}

/* The comparison that is true where this one is not, for integers; for floats only == and ~=. */
static enum ir_opcode inverse(enum ir_opcode o, bool floats) {
  switch ((int)o) {
  case IR_EQ: return IR_NE;
  case IR_NE: return IR_EQ;
  case IR_LT: return floats ? IR_NO_OP : IR_GE;
  case IR_LE: return floats ? IR_NO_OP : IR_GT;
  case IR_GT: return floats ? IR_NO_OP : IR_LE;
  case IR_GE: return floats ? IR_NO_OP : IR_LT;
  default: return IR_NO_OP;
  }
}

static struct ir_val simplify_not(struct canon *c, struct ir_type t, struct ir_val x) {
  if (is_def(c, x, IR_NOT))
    return arg_of(c, x, 0);
  enum ir_opcode o = def_of(c, x)->opcode;
  if (t.dtype != DT_BOOL || ir_info(o)->rule != IR_RULE_compare || c->uses.at[x.id] != 1)
    return none;
  struct ir_val pair[2] = {arg_of(c, x, 0), arg_of(c, x, 1)};
  enum ir_opcode i = inverse(o, dtype_is_float((enum dtype)type_of(c, pair[0]).dtype));
  return i ? make(c, i, t, 2, pair) : none;
}

static struct ir_val simplify_int(struct canon *c, enum ir_opcode opcode, struct ir_type t,
                                  const struct ir_val *in) {
  struct ir_val x = in[0], v;
  bool same = ir_info(opcode)->n_in == 2 && x.id == in[1].id;
  switch ((int)opcode) {
  case IR_ADD:
    if (is_int(c, in[1], 0))
      return x;
    v = cancel(c, opcode, t, in);
    return v.id ? v : reassociate(c, opcode, t, in);
  case IR_SUB:
    if (same)
      return build_int(c, t, 0);
    return is_int(c, in[1], 0) ? x : cancel(c, opcode, t, in);
  case IR_MUL:
    if (is_int(c, in[1], 1))
      return x;
    if (is_int(c, in[1], -1))
      return make(c, IR_NEG, t, 1, &x);
    return is_int(c, in[1], 0) ? in[1] : reassociate(c, opcode, t, in);
  case IR_FLOORDIV:
  case IR_MOD: return divide_int(c, opcode, t, in);
  case IR_MIN:
  case IR_MAX:
    /* min(x, max(x, y)) is x */
    for (int i = 0; i < 2; i++)
      if (absorbs(c, in[i], in[1 - i], opcode == IR_MIN ? IR_MAX : IR_MIN))
        return in[i];
    return same_extremum(c, opcode, t, in);
  case IR_AND:
  case IR_OR:
  case IR_XOR: return simplify_bits(c, opcode, t, in);
  case IR_NOT: return simplify_not(c, t, x);
  case IR_NEG:
    if (is_def(c, x, IR_SUB)) {
      struct ir_val swapped[2] = {arg_of(c, x, 1), arg_of(c, x, 0)};
      return make(c, IR_SUB, t, 2, swapped);
    }
    return is_def(c, x, IR_NEG) ? arg_of(c, x, 0) : none;
  case IR_ABS: return is_def(c, x, IR_ABS) ? x : none;
  case IR_SHL:
  case IR_SHR: return is_int(c, in[1], 0) ? x : none;
  default: return none;
  }
}

static struct ir_val simplify_compare(struct canon *c, enum ir_opcode opcode, struct ir_type t,
                                      const struct ir_val *in) {
  enum dtype from = (enum dtype)type_of(c, in[0]).dtype;
  bool floats = dtype_is_float(from);
  int64_t k;
  if (from == DT_BOOL && const_int(c, in[1], &k)) /* mask == true */
    return (k != 0) == (opcode == IR_EQ) ? in[0] : make(c, IR_NOT, t, 1, in);
  if (in[0].id != in[1].id)
    return none;
  if (opcode == IR_LT || opcode == IR_GT) /* NaN: false as well */
    return build_int(c, t, 0);
  return floats ? none : build_int(c, t, opcode != IR_NE);
}

static struct ir_val simplify_select(struct canon *c, struct ir_type t, const struct ir_val *in) {
  int64_t mask;
  if (in[1].id == in[2].id)
    return in[1];
  if (const_int(c, in[0], &mask))
    return mask ? in[1] : in[2];
  if (is_def(c, in[0], IR_NOT)) {
    struct ir_val swapped[3] = {arg_of(c, in[0], 0), in[2], in[1]};
    return make(c, IR_SELECT, t, 3, swapped);
  }
  /* the same mask inside */
  for (uint32_t i = 1; i < 3; i++)
    if (is_def(c, in[i], IR_SELECT) && arg_of(c, in[i], 0).id == in[0].id) {
      struct ir_val one[3] = {in[0], in[1], in[2]};
      one[i] = arg_of(c, in[i], i);
      return make(c, IR_SELECT, t, 3, one);
    }
  if (t.dtype != DT_BOOL)
    return none;
  if (is_int(c, in[1], 1)) {
    struct ir_val either[2] = {in[0], in[2]};
    return is_int(c, in[2], 0) ? in[0] : make(c, IR_OR, t, 2, either);
  }
  if (is_int(c, in[2], 0))
    return make(c, IR_AND, t, 2, in);
  return is_int(c, in[1], 0) && is_int(c, in[2], 1) ? make(c, IR_NOT, t, 1, in) : none;
}

static struct ir_val simplify_cast(struct canon *c, struct ir_type t, struct ir_val x) {
  enum dtype to = (enum dtype)t.dtype, from = (enum dtype)type_of(c, x).dtype;
  if (to == from)
    return x;
  if (is_def(c, x, IR_CAST)) {
    /* The type between holds every value: the second cast sees what the first saw. But an infinity
     * of e5m2 does not come back. */
    struct ir_val y = arg_of(c, x, 0);
    enum dtype first = (enum dtype)type_of(c, y).dtype;
    if (ir_holds_all(from, first) && !(first == DT_E5M2 && to == DT_E5M2))
      return make(c, IR_CAST, t, 1, &y);
  }
  return none;
}

/* An elementwise op of splats is a splat of the op on scalars. */
static struct ir_val splat_of_scalars(struct canon *c, enum ir_opcode opcode, struct ir_type t,
                                      uint32_t n, const struct ir_val *in) {
  struct ir_val scalars[3];
  if (t.kind != IR_TILE)
    return none;
  for (uint32_t i = 0; i < n; i++) {
    if (!is_def(c, in[i], IR_SPLAT))
      return none;
    scalars[i] = arg_of(c, in[i], 0);
  }
  return build_splat(c, t, make(c, opcode, ir_scalar((enum dtype)t.dtype), n, scalars));
}

static struct ir_val simplify_elementwise(struct canon *c, enum ir_opcode opcode, struct ir_type t,
                                          uint32_t n, const struct ir_val *in) {
  struct ir_constant k[3] = {{0}}, r;
  bool constant = true;
  for (uint32_t i = 0; i < n && constant; i++)
    constant = ir_constant_of(c->m, in[i], &k[i]);
  if (constant && ir_fold(opcode, (enum dtype)t.dtype, k, &r))
    return build_constant(c, t, &r);
  struct ir_val v = none;
  if (opcode == IR_SELECT)
    v = simplify_select(c, t, in);
  else if (opcode == IR_CAST)
    v = simplify_cast(c, t, in[0]);
  else if (ir_info(opcode)->rule == IR_RULE_compare)
    v = simplify_compare(c, opcode, t, in);
  else if (dtype_is_float((enum dtype)t.dtype))
    v = simplify_float(c, opcode, t, in);
  else
    v = simplify_int(c, opcode, t, in);
  return v.id ? v : splat_of_scalars(c, opcode, t, n, in);
}

/* The value of an elementwise op: an existing one, a simpler one, or the op itself, built. */
static struct ir_val make(struct canon *c, enum ir_opcode opcode, struct ir_type t, uint32_t n,
                          const struct ir_val *in) {
  struct ir_val v = simplify_elementwise(c, opcode, t, n, in);
  return v.id ? v : build(c, opcode, t, n, in);
}

/* ---- shapes ---- */

static struct ir_val simplify_transpose(struct canon *c, struct ir_op o, struct ir_val x) {
  const struct ir_attr *perm = ir_get_attr(c->m, o, IR_ATTR_perm);
  struct ir_type t = type_of(c, ir_op_at(c->m, o)->out[0]);
  bool identity = true;
  for (uint32_t i = 0; i < perm->n_ints; i++)
    identity = identity && perm->ints[i] == (int64_t)i;
  if (identity)
    return x;
  if (!is_def(c, x, IR_TRANSPOSE))
    return none;
  /* Dim i of the result is dim perm[i] of x, which is dim inner[perm[i]] of what x permutes. */
  const struct ir_attr *inner = ir_get_attr(c->m, ir_value_at(c->m, x)->def, IR_ATTR_perm);
  int64_t both[IR_MAX_RANK];
  for (uint32_t i = 0; i < perm->n_ints; i++)
    both[i] = inner->ints[perm->ints[i]];
  struct ir_val y = arg_of(c, x, 0);
  struct ir_val v = build(c, IR_TRANSPOSE, t, 1, &y);
  struct ir_attr a = {.key = IR_ATTR_perm, .ints = both, .n_ints = perm->n_ints};
  ir_set_attr(c->m, ir_value_at(c->m, v)->def, a);
  return v;
}

static struct ir_val simplify_extract(struct canon *c, struct ir_op o, struct ir_val x) {
  struct ir_type t = type_of(c, ir_op_at(c->m, o)->out[0]);
  if (ir_type_eq(t, type_of(c, x)))
    return x;
  if (!is_def(c, x, IR_EXTRACT))
    return none;
  const struct ir_attr *at = ir_get_attr(c->m, o, IR_ATTR_offsets);
  const struct ir_attr *inner = ir_get_attr(c->m, ir_value_at(c->m, x)->def, IR_ATTR_offsets);
  int64_t both[IR_MAX_RANK];
  struct ir_attr a = {.key = IR_ATTR_offsets, .ints = both, .n_ints = at->n_ints};
  for (uint32_t i = 0; i < at->n_ints; i++)
    both[i] = at->ints[i] + inner->ints[i];
  struct ir_val y = arg_of(c, x, 0);
  if (ir_type_eq(t, type_of(c, y)))
    return y;
  struct ir_val v = build(c, IR_EXTRACT, t, 1, &y);
  ir_set_attr(c->m, ir_value_at(c->m, v)->def, a);
  return v;
}

static struct ir_val simplify_shape(struct canon *c, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(c->m, o);
  struct ir_type t = type_of(c, n->out[0]);
  struct ir_val x = n->in[0];
  if (is_def(c, x, IR_SPLAT) && n->opcode != IR_REDUCE_SUM)
    return build_splat(c, t, arg_of(c, x, 0));
  if (n->opcode == IR_TRANSPOSE)
    return simplify_transpose(c, o, x);
  if ((n->opcode == IR_BROADCAST || n->opcode == IR_RESHAPE) && ir_type_eq(t, type_of(c, x)))
    return x;
  /* Of two broadcasts or reshapes in a row the first does nothing that the second would not. */
  if ((n->opcode == IR_BROADCAST || n->opcode == IR_RESHAPE) && is_def(c, x, n->opcode)) {
    struct ir_val y = arg_of(c, x, 0);
    return ir_type_eq(t, type_of(c, y)) ? y : build(c, n->opcode, t, 1, &y);
  }
  /* The only element is the same however the tile is shaped. */
  if (n->opcode == IR_ITEM && (is_def(c, x, IR_RESHAPE) || is_def(c, x, IR_TRANSPOSE))) {
    struct ir_val y = arg_of(c, x, 0);
    return build(c, IR_ITEM, t, 1, &y);
  }
  if (n->opcode == IR_EXTRACT)
    return simplify_extract(c, o, x);
  bool extremum = n->opcode == IR_REDUCE_MAX || n->opcode == IR_REDUCE_MIN ||
                  n->opcode == IR_REDUCE_ANY || n->opcode == IR_REDUCE_ALL;
  return extremum && ir_type_eq(t, type_of(c, x)) ? x : none;
}

/* ---- dot ---- */

/* Rule 4 at the head. acc: the other operand of the add. */
static struct ir_val accumulate(struct canon *c, struct ir_type t, struct ir_val dot,
                                struct ir_val acc) {
  struct ir_op o = ir_value_at(c->m, dot)->def;
  if (!is_def(c, dot, IR_DOT) || c->uses.at[dot.id] != 1 ||
      ir_op_at(c->m, o)->block.id != ir_op_at(c->m, c->at)->block.id)
    return none;
  struct ir_constant zero;
  if (!ir_constant_of(c->m, arg_of(c, dot, 2), &zero) || zero.i != 0 || zero.f != 0)
    return none;
  struct ir_val in[3] = {arg_of(c, dot, 0), arg_of(c, dot, 1), acc};
  struct ir_val v = build(c, IR_DOT, t, 3, in);
  for (uint32_t i = 0; i < ir_op_at(c->m, o)->n_attrs; i++)
    ir_set_attr(c->m, ir_value_at(c->m, v)->def, ir_op_at(c->m, o)->attrs[i]);
  remove_op(c, o);
  return v;
}

/* ---- control ---- */

/* Puts the ops of a block, its terminator aside, before the current op. The first of them, or 0. */
static struct ir_op splice(struct canon *c, struct ir_block b) {
  struct ir_op first = ir_block_at(c->m, b)->first, last = ir_block_at(c->m, b)->last;
  struct ir_block home = ir_op_at(c->m, c->at)->block;
  for (struct ir_op o = first, next; o.id && o.id != last.id; o = next) {
    next = ir_op_at(c->m, o)->next;
    ir_move_before(c->m, o, home, c->at);
  }
  return first.id == last.id ? (struct ir_op){0} : first;
}

/* Can `values` stand for the results of the current op? Only layouts can be in the way. */
static bool results_fit(const struct canon *c, const struct ir_val *values) {
  const struct ir_opnode *n = ir_op_at(c->m, c->at);
  for (uint32_t i = 0; i < n->n_out; i++)
    if (ir_value_at(c->m, n->out[i])->layout != ir_value_at(c->m, resolve(c, values[i]))->layout)
      return false;
  return true;
}

static void replace_op(struct canon *c, struct ir_op o, const struct ir_val *values) {
  const struct ir_opnode *n = ir_op_at(c->m, o);
  for (uint32_t i = 0; i < n->n_out; i++)
    replace(c, n->out[i], resolve(c, values[i]));
  remove_op(c, o);
}

/* What is left of a conditional on a constant, or of a loop that does not run, is put in place:
 * *next is then the op to go on with. */
static bool take_branch(struct canon *c, struct ir_op o, struct ir_op *next) {
  const struct ir_opnode *n = ir_op_at(c->m, o);
  struct ir_op after = n->next;
  int64_t condition, lo, hi;
  if (n->opcode == IR_FOR) {
    bool never = n->in[0].id == n->in[1].id ||
                 (const_int(c, n->in[0], &lo) && const_int(c, n->in[1], &hi) && lo >= hi);
    if (!never || !results_fit(c, n->in + 3))
      return false;
    replace_op(c, o, n->in + 3);
    *next = after;
    return true;
  }
  if (n->opcode != IR_IF || !const_int(c, n->in[0], &condition))
    return false;
  /* The yielded values are defined in the block or before: moved with it, they stay visible. Their
   * own operands are resolved when the walk meets them, at their new place. */
  struct ir_block b = n->blocks[condition ? 0 : 1];
  const struct ir_opnode *yield = ir_op_at(c->m, ir_block_at(c->m, b)->last);
  if (!results_fit(c, yield->in))
    return false;
  struct ir_op first = splice(c, b);
  replace_op(c, o, yield->in);
  *next = first.id ? first : after;
  return true;
}

/* Carried values that never change are what they were before the loop. */
static void drop_invariants(struct canon *c, struct ir_op o) {
  struct ir_opnode *n = ir_op_at(c->m, o);
  struct ir_blocknode *b = ir_block_at(c->m, n->blocks[0]);
  const struct ir_opnode *yield = ir_op_at(c->m, b->last);
  bool any = false, *drop = ARENA_ARRAY(c->scratch, bool, n->n_out);
  for (uint32_t k = 0; k < n->n_out; k++) {
    struct ir_val y = resolve(c, yield->in[k]), arg = b->args.at[1 + k], init = n->in[3 + k];
    if (y.id != arg.id && y.id != init.id)
      continue;
    uint32_t layout = ir_value_at(c->m, init)->layout;
    if (ir_value_at(c->m, arg)->layout != layout || ir_value_at(c->m, n->out[k])->layout != layout)
      continue;
    replace(c, arg, init);
    replace(c, n->out[k], init);
    any = drop[k] = true;
  }
  if (any)
    ir_drop_carried(c->m, o, drop);
}

/* Results of a conditional that are the same on both sides. */
static void drop_equal_results(struct canon *c, struct ir_op o) {
  struct ir_opnode *n = ir_op_at(c->m, o);
  const struct ir_opnode *x = ir_op_at(c->m, ir_block_at(c->m, n->blocks[0])->last);
  const struct ir_opnode *y = ir_op_at(c->m, ir_block_at(c->m, n->blocks[1])->last);
  bool any = false, *drop = ARENA_ARRAY(c->scratch, bool, n->n_out);
  for (uint32_t k = 0; k < n->n_out; k++) {
    struct ir_val v = resolve(c, x->in[k]);
    if (v.id == resolve(c, y->in[k]).id && replace(c, n->out[k], v))
      any = drop[k] = true;
  }
  if (any)
    ir_drop_carried(c->m, o, drop);
}

/* What a merge takes that is no result of its loop, or not any more, it gives on. Such an operand
 * may come from another loop: it must not stay until someone asks whose results these are. */
static void drop_merged(struct canon *c, struct ir_op o, struct ir_op loop) {
  struct ir_opnode *n = ir_op_at(c->m, o);
  const struct ir_blocknode *b = ir_block_at(c->m, n->blocks[0]);
  bool any = false, *drop = ARENA_ARRAY(c->scratch, bool, n->n_out);
  for (uint32_t k = 0; k < n->n_out; k++) {
    uint32_t layout = ir_value_at(c->m, n->in[k])->layout;
    if ((loop.id && ir_value_at(c->m, n->in[k])->def.id == loop.id) ||
        ir_value_at(c->m, n->out[k])->layout != layout ||
        ir_value_at(c->m, b->args.at[k])->layout != layout ||
        ir_value_at(c->m, b->args.at[n->n_out + k])->layout != layout)
      continue;
    replace(c, b->args.at[k], n->in[k]);
    replace(c, b->args.at[n->n_out + k], n->in[k]);
    replace(c, n->out[k], n->in[k]);
    any = drop[k] = true;
  }
  if (any)
    ir_drop_carried(c->m, o, drop);
}

/* ---- the walk ---- */

static struct ir_val simplify(struct canon *c, struct ir_op o) {
  struct ir_opnode *n = ir_op_at(c->m, o);
  if (is_elementwise(n->opcode)) {
    struct ir_type t = type_of(c, n->out[0]);
    struct ir_constant k;
    /* Constants stand on the right. */
    if ((ir_info(n->opcode)->traits & IR_COMMUTES) && ir_constant_of(c->m, n->in[0], &k) &&
        !ir_constant_of(c->m, n->in[1], &k)) {
      struct ir_val x = n->in[0];
      n->in[0] = n->in[1];
      n->in[1] = x;
      c->changed = true;
    }
    if (n->opcode == IR_ADD && t.kind == IR_TILE) {
      struct ir_val v = accumulate(c, t, n->in[1], n->in[0]);
      if (!v.id)
        v = accumulate(c, t, n->in[0], n->in[1]);
      if (v.id)
        return v;
    }
    return simplify_elementwise(c, n->opcode, t, n->n_in, n->in);
  }
  switch ((int)n->opcode) {
  case IR_BROADCAST:
  case IR_RESHAPE:
  case IR_TRANSPOSE:
  case IR_ITEM:
  case IR_REDUCE_SUM:
  case IR_REDUCE_MAX:
  case IR_REDUCE_MIN:
  case IR_REDUCE_ANY:
  case IR_REDUCE_ALL:
  case IR_EXTRACT: return simplify_shape(c, o);
  case IR_CONCAT: return n->n_in == 1 ? n->in[0] : none;
  case IR_IOTA: {
    struct ir_type t = type_of(c, n->out[0]);
    return ir_elems(t) == 1 ? build_int(c, t, 0) : none;
  }
  default: return none;
  }
}

static void visit_block(struct canon *c, struct ir_block b, uint32_t depth);

/* Returns the op to go on with. */
static struct ir_op visit_op(struct canon *c, struct ir_op o, uint32_t depth) {
  struct ir_opnode *n = ir_op_at(c->m, o);
  struct ir_op next;
  int64_t condition;
  for (uint32_t i = 0; i < n->n_in; i++)
    n->in[i] = resolve(c, n->in[i]);
  c->at = o;
  if (take_branch(c, o, &next))
    return next;
  if (n->opcode == IR_ASSERT && const_int(c, n->in[0], &condition) && condition) {
    next = n->next;
    remove_op(c, o);
    return next;
  }
  uint32_t first_new = c->m->ops.n;
  struct ir_val v = simplify(c, o);
  n = ir_op_at(c->m, o); /* new ops may have moved the table */
  if (v.id && replace(c, n->out[0], v)) {
    next = n->next;
    remove_op(c, o);
    return next;
  }
  for (uint32_t i = c->m->ops.n; i > first_new; i--) /* built in vain: of another layout */
    if (ir_op_at(c->m, (struct ir_op){i - 1})->block.id)
      ir_remove(c->m, (struct ir_op){i - 1});
  if (n->opcode == IR_MERGE) {
    next = n->next;
    drop_merged(c, o, c->loop_of[o.id]);
    if (!ir_op_at(c->m, o)->n_out) { /* nothing is left of the loop */
      remove_op(c, o);
      return next;
    }
  }
  if (n->opcode == IR_FOR)
    drop_invariants(c, o);
  if (n->n_out && n->opcode == IR_IF)
    drop_equal_results(c, o);
  for (uint32_t i = 0; i < ir_op_at(c->m, o)->n_blocks; i++)
    visit_block(c, ir_op_at(c->m, o)->blocks[i], depth + 1);
  return ir_op_at(c->m, o)->next;
}

static void visit_block(struct canon *c, struct ir_block b, uint32_t depth) {
  KILN_ASSERT(depth <= IR_MAX_DEPTH);
  for (struct ir_op o = ir_block_at(c->m, b)->first; o.id;)
    o = visit_op(c, o, depth);
}

static void look(void *user, struct ir_module *m, struct ir_op o) {
  struct canon *c = user;
  const struct ir_opnode *n = ir_op_at(m, o);
  for (uint32_t i = 0; i < n->n_in; i++)
    c->uses.at[n->in[i].id]++;
  if (n->opcode == IR_MERGE)
    c->loop_of[o.id] = ir_merge_loop(m, o);
}

bool ir_pass_canonicalise(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  for (int round = 0; round < MAX_ROUNDS; round++) {
    struct arena_mark mark = arena_get_mark(ctx->scratch);
    struct canon c = {.m = m, .scratch = ctx->scratch};
    track_new_values(&c);
    c.loop_of = ARENA_ARRAY(c.scratch, struct ir_op, m->ops.n);
    ir_walk(m, m->body, look, &c);
    visit_block(&c, m->body, 0);
    arena_reset(ctx->scratch, mark);
    if (!c.changed)
      break;
    *changed = true;
  }
  return true;
}
