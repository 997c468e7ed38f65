/* Elementwise ops on constants, with the results that the interpreter's rounded domain gives.
 *
 * Sums, products and quotients are taken in double and rounded once to the dtype: for every type
 * of at most 24 bits of mantissa that is the correctly rounded result, as double has more than
 * twice as many. Nothing is folded whose result is not fixed to the bit on every target. */
#include "base/num.h"
#include "ir/passes.h"

#include <math.h>
#include <string.h>

bool ir_constant_of(const struct ir_module *m, struct ir_val v, struct ir_constant *out) {
  struct ir_op def = ir_value_at(m, v)->def;
  if (def.id && ir_op_at(m, def)->opcode == IR_SPLAT)
    def = ir_value_at(m, ir_op_at(m, def)->in[0])->def;
  if (!def.id || ir_op_at(m, def)->opcode != IR_CONST)
    return false;
  const struct ir_attr *a = ir_get_attr(m, def, IR_ATTR_value);
  *out = (struct ir_constant){(enum dtype)ir_type_of(m, v).dtype, a->i, a->f};
  return true;
}

bool ir_holds_all(enum dtype to, enum dtype from) {
  /* Bits of integers that float types hold exactly, and of the largest integers of a type. */
  static const struct {
    enum dtype t;
    int bits;
  } exact[] = {{DT_F16, 11}, {DT_BF16, 8}, {DT_F32, 24}, {DT_F64, 53}};
  if (to == from)
    return true;
  if (to == DT_BOOL)
    return false;
  if (dtype_is_float(from)) {
    bool narrow = dtype_bits(from) == 8;
    if (to == DT_F64)
      return true;
    if (to == DT_F32)
      return from != DT_F64;
    return narrow && (to == DT_F16 || to == DT_BF16);
  }
  bool is_unsigned = from == DT_BOOL || dtype_kind(from) == DTK_UINT;
  int bits = from == DT_BOOL ? 1 : (int)dtype_bits(from) - !is_unsigned;
  if (!dtype_is_float(to))
    return dtype_kind(to) == DTK_UINT ? is_unsigned && bits <= (int)dtype_bits(to)
                                      : bits <= (int)dtype_bits(to) - 1;
  for (size_t i = 0; i < sizeof exact / sizeof exact[0]; i++)
    if (exact[i].t == to)
      return bits <= exact[i].bits;
  return false;
}

/* The low bits of x as a value of integer type t. */
static int64_t wrap(enum dtype t, uint64_t x) {
  unsigned bits = dtype_bits(t);
  if (bits == 64)
    return (int64_t)x;
  uint64_t mask = (UINT64_C(1) << bits) - 1, sign = UINT64_C(1) << (bits - 1);
  x &= mask;
  return (int64_t)(dtype_kind(t) == DTK_UINT ? x : (x ^ sign) - sign);
}

static int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0)
    return 0;
  if (b == -1)
    return (int64_t)(0 - (uint64_t)a);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t floor_mod(int64_t a, int64_t b) {
  if (b == 0 || b == -1)
    return 0;
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* Does the op overflow 64 bits? An index never does, so there is nothing to fold then. */
static bool overflows(enum ir_opcode opcode, int64_t a, int64_t b) {
  int64_t r;
  switch ((int)opcode) {
  case IR_ADD: return __builtin_add_overflow(a, b, &r);
  case IR_SUB: return __builtin_sub_overflow(a, b, &r);
  case IR_MUL: return __builtin_mul_overflow(a, b, &r);
  case IR_NEG:
  case IR_ABS: return a == INT64_MIN;
  case IR_FLOORDIV: return a == INT64_MIN && b == -1;
  case IR_SHL: return b >= 0 && a != 0 && (b > 62 || a > INT64_MAX >> b || a < INT64_MIN >> b);
  default: return false;
  }
}

static bool fold_int(enum ir_opcode opcode, enum dtype t, int64_t a, int64_t b, int64_t *out) {
  uint64_t x = (uint64_t)a, y = (uint64_t)b, r;
  if (t == DT_INDEX && overflows(opcode, a, b))
    return false;
  switch ((int)opcode) {
  case IR_ADD: r = x + y; break;
  case IR_SUB: r = x - y; break;
  case IR_MUL: r = x * y; break;
  case IR_FLOORDIV: r = (uint64_t)floor_div(a, b); break;
  case IR_MOD: r = (uint64_t)floor_mod(a, b); break;
  case IR_MIN: r = (uint64_t)(a < b ? a : b); break;
  case IR_MAX: r = (uint64_t)(a > b ? a : b); break;
  case IR_NEG: r = 0 - x; break;
  case IR_ABS: r = a < 0 ? 0 - x : x; break;
  case IR_AND: r = x & y; break;
  case IR_OR: r = x | y; break;
  case IR_XOR: r = x ^ y; break;
  case IR_NOT: r = t == DT_BOOL ? x ^ 1 : ~x; break;
  /* A negative count is a huge one. */
  case IR_SHL: r = y > 63 ? 0 : x << y; break;
  case IR_SHR: r = (uint64_t)(a >> (y > 63 ? 63 : b)); break;
  default: return false;
  }
  *out = t == DT_BOOL ? (int64_t)r : wrap(t, r);
  return true;
}

static bool fold_float(enum ir_opcode opcode, enum dtype t, double a, double b, double c,
                       double *out) {
  bool nan = isnan(a) || isnan(b);
  switch ((int)opcode) {
  case IR_ADD: *out = a + b; break;
  case IR_SUB: *out = a - b; break;
  case IR_MUL: *out = a * b; break;
  case IR_DIV: *out = a / b; break;
  /* NaN if either is, -0 below +0. */
  case IR_MIN: *out = nan ? (double)NAN : a < b ? a : b < a ? b : signbit(a) ? a : b; break;
  case IR_MAX: *out = nan ? (double)NAN : a > b ? a : b > a ? b : signbit(a) ? b : a; break;
  case IR_NEG: *out = -a; break;
  case IR_ABS: *out = fabs(a); break;
  case IR_FLOOR: *out = floor(a); break;
  case IR_CEIL: *out = ceil(a); break;
  case IR_ROUND: *out = rint(a); break;
  case IR_TRUNC: *out = trunc(a); break;
  case IR_FMA:
    /* Narrower types would round twice. */
    if (t != DT_F32 && t != DT_F64)
      return false;
    *out = t == DT_F32 ? (double)fmaf((float)a, (float)b, (float)c) : fma(a, b, c);
    break;
  default: return false;
  }
  *out = isnan(*out) ? num_round(t, (double)NAN) : num_round(t, *out);
  return true;
}

static bool fold_compare(enum ir_opcode opcode, const struct ir_constant *x,
                         const struct ir_constant *y, int64_t *out) {
  bool is_float = dtype_is_float(x->dtype);
  bool less = is_float ? x->f < y->f : x->i < y->i;
  bool same = is_float ? x->f == y->f : x->i == y->i;
  bool more = is_float ? x->f > y->f : x->i > y->i;
  switch ((int)opcode) {
  case IR_EQ: *out = same; return true;
  case IR_NE: *out = !same; return true;
  case IR_LT: *out = less; return true;
  case IR_LE: *out = less || same; return true;
  case IR_GT: *out = more; return true;
  case IR_GE: *out = more || same; return true;
  default: return false;
  }
}

static void fold_cast(const struct ir_constant *x, struct ir_constant *out) {
  double cell = 0; /* room for any element */
  if (x->dtype == out->dtype) {
    *out = *x;
    return;
  }
  if (dtype_is_float(x->dtype))
    num_store(out->dtype, &cell, 0, x->f);
  else
    num_store_int(out->dtype, &cell, 0, x->i);
  if (dtype_is_float(out->dtype))
    out->f = num_load(out->dtype, &cell, 0);
  else
    out->i = num_load_int(out->dtype, &cell, 0);
}

bool ir_fold(enum ir_opcode opcode, enum dtype result, const struct ir_constant in[3],
             struct ir_constant *out) {
  *out = (struct ir_constant){.dtype = result};
  if (opcode == IR_SELECT) {
    *out = in[0].i ? in[1] : in[2];
    return true;
  }
  if (opcode == IR_CAST) {
    fold_cast(&in[0], out);
    return true;
  }
  if (fold_compare(opcode, &in[0], &in[1], &out->i))
    return true;
  if (dtype_is_float(result))
    return fold_float(opcode, result, in[0].f, in[1].f, in[2].f, &out->f);
  return fold_int(opcode, result, in[0].i, in[1].i, &out->i);
}
