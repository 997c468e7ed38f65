/* Elementwise ops: the dtype rules (numbers adopt, dtypes never mix), broadcasting of dims of 1
 * at equal rank, splats of scalars, and the same operators on launch expressions in a grid
 * function. */
#include "base/check.h"
#include "base/num.h"
#include "frontend/dsl.h"

#include <stdio.h>

static bool is_tile(const struct dsl_val *v) {
  return v->t.kind == IR_TILE;
}

/* What an op takes. */
enum takes {
  TAKES_NUMBERS, /* integers and floats that compute */
  TAKES_FLOATS,
  TAKES_INTS,
  TAKES_BITS,    /* bool or integers */
  TAKES_ORDERED, /* all but bool */
  TAKES_ALL,
};

static enum takes op_takes(enum ir_opcode op) {
  switch ((int)op) {
  case IR_ADD:
  case IR_SUB:
  case IR_MUL:
  case IR_MIN:
  case IR_MAX:
  case IR_NEG:
  case IR_ABS: return TAKES_NUMBERS;
  case IR_FLOORDIV:
  case IR_MOD:
  case IR_SHL:
  case IR_SHR: return TAKES_INTS;
  case IR_LT:
  case IR_LE:
  case IR_GT:
  case IR_GE: return TAKES_ORDERED;
  case IR_AND:
  case IR_OR:
  case IR_XOR:
  case IR_NOT: return TAKES_BITS;
  case IR_EQ:
  case IR_NE: return TAKES_ALL;
  default: return TAKES_FLOATS;
  }
}

/* Storage formats: they are compared, selected and cast, but arithmetic in them would round each
 * step to a few bits, which nobody wants by accident. */
static bool computes(enum dtype t) {
  return dtype_bits(t) > (dtype_is_float(t) ? 8u : 4u);
}

static bool check_dtype(struct fe_file *f, enum ir_opcode op, const char *what,
                        const struct dsl_val *v) {
  enum dtype t = (enum dtype)v->t.dtype;
  enum takes takes = op_takes(op);
  const char *type = NULL, *advice = "";
  bool ok = true;
  switch (takes) {
  case TAKES_ALL: return true;
  case TAKES_BITS:
    ok = t == DT_BOOL || dtype_is_int(t);
    type = "masks and integers";
    break;
  case TAKES_ORDERED:
    ok = t != DT_BOOL;
    type = "numbers";
    advice = "; masks combine with and, or, not, == and ~=";
    break;
  case TAKES_INTS:
    ok = dtype_is_int(t);
    type = "integers";
    break;
  case TAKES_FLOATS:
    ok = dtype_is_float(t);
    type = "floats";
    advice = "; cast it first";
    break;
  case TAKES_NUMBERS:
    ok = t != DT_BOOL;
    type = "numbers";
    advice = "; use where(mask, x, y), or cast it first";
    break;
  }
  if (ok && takes != TAKES_BITS && takes != TAKES_ORDERED && !computes(t)) {
    type = "types of 8 bits or more that compute";
    if (dtype_is_float(t))
      type = "f16, bf16, f32 and f64";
    advice = "; cast it first";
    ok = false;
  }
  if (!ok)
    fe_soft_error(f->fe, DIAG_TYPE_MISMATCH, "%s takes %s, got %s%s", what, type,
                  dsl_describe_type(f, v->t), advice);
  return ok;
}

/* ---- launch expressions ---- */

static bool expr_op_of(enum ir_opcode op, enum expr_op *out) {
  switch ((int)op) {
  case IR_ADD: *out = EXPR_ADD; return true;
  case IR_SUB: *out = EXPR_SUB; return true;
  case IR_MUL: *out = EXPR_MUL; return true;
  case IR_FLOORDIV: *out = EXPR_DIV; return true;
  case IR_MOD: *out = EXPR_MOD; return true;
  case IR_MIN: *out = EXPR_MIN; return true;
  case IR_MAX: *out = EXPR_MAX; return true;
  case IR_EQ: *out = EXPR_EQ; return true;
  case IR_NE: *out = EXPR_NE; return true;
  case IR_LT: *out = EXPR_LT; return true;
  case IR_LE: *out = EXPR_LE; return true;
  case IR_AND: *out = EXPR_AND; return true;
  case IR_OR: *out = EXPR_OR; return true;
  case IR_NOT: *out = EXPR_NOT; return true;
  case IR_SELECT: *out = EXPR_SELECT; return true;
  default: return false;
  }
}

static void refuse_in_grid(struct fe_file *f, const char *what) {
  fe_soft_error(f->fe, DIAG_OPERAND,
                "%s is not available in grid: a launch computes with + - * // %% min max cdiv, "
                "comparisons and where",
                what);
}

static struct dsl_val *grid_elem(struct fe_file *f, enum ir_opcode op, const char *what, uint32_t n,
                                 struct dsl_val *const *in, enum dtype out) {
  struct expr_pool *p = &f->m->exprs;
  struct expr e[3] = {{0}};
  for (uint32_t i = 0; i < n; i++)
    e[i] = in[i]->e;
  enum expr_op x;
  struct expr r;
  bool logic = op == IR_AND || op == IR_OR || op == IR_NOT;
  if (logic && in[0]->t.dtype != DT_BOOL) {
    refuse_in_grid(f, what);
    return NULL;
  }
  if (op == IR_GT || op == IR_GE)
    r = expr_op2(p, op == IR_GT ? EXPR_LT : EXPR_LE, e[1], e[0]);
  else if (op == IR_NEG)
    r = expr_op2(p, EXPR_SUB, expr_const(p, 0), e[0]);
  else if (expr_op_of(op, &x))
    r = n == 1   ? expr_op1(p, x, e[0])
        : n == 2 ? expr_op2(p, x, e[0], e[1])
                 : expr_op3(p, x, e[0], e[1], e[2]);
  else {
    refuse_in_grid(f, what);
    return NULL;
  }
  return dsl_new_expr(f, out, r);
}

/* ---- shapes ---- */

/* The common shape of the tiles among v; false after an error. */
static bool common_shape(struct fe_file *f, const char *what, uint32_t n, struct dsl_val *const *v,
                         struct ir_type *out) {
  const struct dsl_val *first = NULL;
  *out = (struct ir_type){.kind = IR_SCALAR};
  for (uint32_t i = 0; i < n; i++) {
    if (!is_tile(v[i]))
      continue;
    if (!first) {
      first = v[i];
      *out = v[i]->t;
      continue;
    }
    if (v[i]->t.rank != first->t.rank) {
      fe_soft_error(f->fe, DIAG_SHAPE_MISMATCH,
                    "shapes %s and %s of %s have different ranks; make them equal with :row(), "
                    ":col() or :reshape(...)",
                    dsl_shape_text(f, first->t), dsl_shape_text(f, v[i]->t), what);
      return false;
    }
    for (uint32_t d = 0; d < out->rank; d++) {
      int64_t x = out->dim[d], y = v[i]->t.dim[d];
      if (x != y && x != 1 && y != 1) {
        fe_soft_error(f->fe, DIAG_SHAPE_MISMATCH,
                      "shapes %s and %s of %s do not fit: dim %u is %lld and %lld",
                      dsl_shape_text(f, first->t), dsl_shape_text(f, v[i]->t), what, d,
                      (long long)x, (long long)y);
        return false;
      }
      if (x == 1)
        out->dim[d] = y;
    }
  }
  return true;
}

struct dsl_val *dsl_grow(struct fe_file *f, struct dsl_val *x, struct ir_type shape) {
  shape.dtype = x->t.dtype;
  if (ir_type_eq(x->t, shape))
    return x;
  struct dsl_val *r =
      dsl_new_val(f, shape, dsl_build1(f, is_tile(x) ? IR_BROADCAST : IR_SPLAT, shape, 1, &x->v));
  r->made = x->made;
  r->never_negative = x->never_negative;
  r->has_range = x->has_range;
  r->lo = x->lo;
  r->hi = x->hi;
  if (x->is_const) {
    r->is_const = true;
    r->value = x->value;
  } else {
    r->pads = dsl_pad_elem(f, IR_BROADCAST, 1, &x, shape);
  }
  return r;
}

static bool has_dtype(const struct dsl_opnd *o, enum dtype t) {
  return o->kind == DSL_DEV && o->dev->t.dtype == t;
}

/* An integer scalar beside an index: a length or an offset that was loaded. */
static bool becomes_index(const struct dsl_val *v) {
  return !is_tile(v) && v->t.dtype != DT_INDEX && dtype_is_int((enum dtype)v->t.dtype);
}

/* Gives the operands values[] of one dtype: those of the tiles and device scalars, which numbers
 * take. Beside an index, integer scalars become one: no value is lost. False after an error. */
static bool adopt(struct fe_file *f, const char *what, uint32_t n, const struct dsl_opnd *in,
                  struct dsl_val **v) {
  const struct dsl_val *lead = NULL;
  bool index = false;
  for (uint32_t i = 0; i < n; i++)
    index = index || has_dtype(&in[i], DT_INDEX);
  for (uint32_t i = 0; i < n; i++) {
    if (in[i].kind != DSL_DEV)
      continue;
    v[i] = in[i].dev;
    if (index && becomes_index(v[i]) && !(v[i] = dsl_cast(f, v[i], DT_INDEX)))
      return false;
    if (lead && lead->t.dtype != v[i]->t.dtype) {
      fe_soft_error(f->fe, DIAG_TYPE_MISMATCH,
                    "%s of %s and %s: two dtypes never mix; cast one of them", what,
                    dsl_describe_type(f, lead->t), dsl_describe_type(f, v[i]->t));
      return false;
    }
    lead = v[i];
  }
  KILN_ASSERT(lead);
  for (uint32_t i = 0; i < n; i++)
    if (in[i].kind != DSL_DEV && !(v[i] = dsl_const(f, (enum dtype)lead->t.dtype, &in[i])))
      return false;
  return true;
}

static struct dsl_val *build_elem(struct fe_file *f, enum ir_opcode op, const char *what,
                                  uint32_t n, struct dsl_val **v, enum dtype out) {
  if (f->mode == DSL_GRID)
    return grid_elem(f, op, what, n, v, out);
  struct ir_type shape;
  if (!common_shape(f, what, n, v, &shape))
    return NULL;
  struct ir_val in[3] = {{0}};
  for (uint32_t i = 0; i < n; i++) {
    v[i] = dsl_grow(f, v[i], shape);
    in[i] = v[i]->v;
  }
  struct ir_type t = shape;
  t.dtype = (uint8_t)out;
  struct dsl_val *r = dsl_new_val(f, t, dsl_build1(f, op, t, n, in));
  r->pads = dsl_pad_elem(f, op, n, v, t);
  r->never_negative = dsl_makes_no_negative(op, n, v, out);
  if (n == 2)
    dsl_range_elem(op, v[0], v[1], r);
  return r;
}

struct dsl_val *dsl_elem(struct fe_file *f, enum ir_opcode op, const char *what, uint32_t n,
                         const struct dsl_opnd *in, enum dtype out) {
  struct dsl_val *v[3];
  KILN_ASSERT(n >= 1 && n <= 3);
  for (uint32_t i = 0; i < n; i++)
    if (in[i].kind == DSL_DEV && !check_dtype(f, op, what, in[i].dev))
      return NULL;
  if (!adopt(f, what, n, in, v))
    return NULL;
  return build_elem(f, op, what, n, v, out == DT_COUNT ? (enum dtype)v[0]->t.dtype : out);
}

static enum ir_opcode opcode_of(enum fe_op op) {
  switch (op) {
  case FE_OP_ADD: return IR_ADD;
  case FE_OP_SUB: return IR_SUB;
  case FE_OP_MUL: return IR_MUL;
  case FE_OP_MOD: return IR_MOD;
  case FE_OP_DIV: return IR_DIV;
  case FE_OP_IDIV: return IR_FLOORDIV;
  case FE_OP_BAND:
  case FE_OP_AND: return IR_AND;
  case FE_OP_BOR:
  case FE_OP_OR: return IR_OR;
  case FE_OP_BXOR: return IR_XOR;
  case FE_OP_SHL: return IR_SHL;
  case FE_OP_SHR: return IR_SHR;
  case FE_OP_NEG: return IR_NEG;
  case FE_OP_BNOT:
  case FE_OP_NOT: return IR_NOT;
  case FE_OP_EQ: return IR_EQ;
  case FE_OP_NE: return IR_NE;
  case FE_OP_LT: return IR_LT;
  case FE_OP_LE: return IR_LE;
  case FE_OP_GT: return IR_GT;
  case FE_OP_GE: return IR_GE;
  case FE_OP_POW: return IR_NO_OP;
  }
  KILN_UNREACHABLE();
}

struct dsl_val *dsl_binary(struct fe_file *f, enum fe_op op, const struct dsl_opnd *a,
                           const struct dsl_opnd *b) {
  char what[16];
  snprintf(what, sizeof what, "`%s`", fe_op_text(op));
  enum ir_opcode code = opcode_of(op);
  if (op == FE_OP_POW) {
    fe_soft_error(f->fe, DIAG_OPERAND,
                  "`^` on device values; multiply, or use exp2(y * log2(x)) or sqrt(x)");
    return NULL;
  }
  const struct dsl_opnd in[2] = {*a, *b};
  const struct dsl_val *dev = a->kind == DSL_DEV ? a->dev : b->dev;
  enum dtype t = (enum dtype)dev->t.dtype;
  if (op == FE_OP_DIV && dtype_is_int(t)) {
    fe_soft_error(f->fe, DIAG_TYPE_MISMATCH, "'/' on device integers; use '//'");
    return NULL;
  }
  if ((op == FE_OP_IDIV || op == FE_OP_MOD) && dtype_is_float(t)) {
    fe_soft_error(f->fe, DIAG_TYPE_MISMATCH, "%s takes integers, got %s%s", what,
                  dsl_describe_type(f, dev->t), op == FE_OP_IDIV ? "; use '/'" : "");
    return NULL;
  }
  bool compares = op >= FE_OP_EQ && op <= FE_OP_GE;
  return dsl_elem(f, code, what, 2, in, compares ? DT_BOOL : DT_COUNT);
}

struct dsl_val *dsl_select(struct fe_file *f, const char *what, const struct dsl_opnd *mask,
                           const struct dsl_opnd *yes, const struct dsl_opnd *no) {
  KILN_ASSERT(mask->kind == DSL_DEV);
  if (mask->dev->t.dtype != DT_BOOL) {
    fe_soft_error(f->fe, DIAG_TYPE_MISMATCH, "%s takes a mask (a comparison's result), got %s",
                  what, dsl_describe_type(f, mask->dev->t));
    return NULL;
  }
  struct dsl_val *v[3] = {mask->dev};
  const struct dsl_opnd sides[2] = {*yes, *no};
  if (yes->kind == DSL_DEV || no->kind == DSL_DEV) {
    if (!adopt(f, what, 2, sides, v + 1))
      return NULL;
  } else {
    enum dtype t;
    if (yes->kind == DSL_BOOL && no->kind == DSL_BOOL) {
      t = DT_BOOL;
    } else if (yes->kind == DSL_INT && no->kind == DSL_INT) {
      t = DT_INDEX;
    } else {
      fe_soft_error(f->fe, DIAG_TYPE_MISMATCH,
                    "%s between %s and %s has no dtype; give one side its dtype, as f32(%.14g)",
                    what, dsl_describe_opnd(f, yes), dsl_describe_opnd(f, no), yes->f);
      return NULL;
    }
    for (uint32_t i = 0; i < 2; i++)
      if (!(v[i + 1] = dsl_const(f, t, &sides[i])))
        return NULL;
  }
  return build_elem(f, IR_SELECT, what, 3, v, (enum dtype)v[1]->t.dtype);
}

struct dsl_val *dsl_math(struct fe_file *f, enum ir_opcode op, const char *what,
                         const struct dsl_opnd *x) {
  KILN_ASSERT(x->kind == DSL_DEV);
  return dsl_elem(f, op, what, 1, x, DT_COUNT);
}

struct dsl_val *dsl_cast(struct fe_file *f, struct dsl_val *x, enum dtype t) {
  if (x->t.dtype == t)
    return x;
  if (f->mode == DSL_GRID) {
    fe_soft_error(f->fe, DIAG_OPERAND, "cast is not available in grid");
    return NULL;
  }
  struct ir_type type = x->t;
  type.dtype = (uint8_t)t;
  struct dsl_val *r = dsl_new_val(f, type, dsl_build1(f, IR_CAST, type, 1, &x->v));
  if (x->is_const) {
    r->is_const = true;
    r->value = num_round(t, x->value);
  } else {
    r->pads = dsl_pad_elem(f, IR_CAST, 1, &x, type);
    r->never_negative = dsl_makes_no_negative(IR_CAST, 1, &x, t);
  }
  if (x->has_range && t == DT_INDEX) {
    r->has_range = true;
    r->lo = x->lo;
    r->hi = x->hi;
  }
  return r;
}
