/* Scalar ops as C expressions. 16-bit floats are bit patterns (typedefs of unsigned short):
 * arithmetic on them computes in f32 and rounds once, as docs/numerics.md says. */
#include "codegen/emit.h"

#include "base/check.h"
#include "base/num.h"

#include <inttypes.h>
#include <math.h>

bool emit_is_scalar(enum ir_opcode o) {
  return (o >= IR_ADD && o <= IR_CAST) || o == IR_THREAD_ID || o == IR_WARP_ID || o == IR_LANE_ID ||
         o == IR_BLOCK_ID || o == IR_DIGITS || o == IR_PTR_ADD || o == IR_SHUFFLE ||
         o == IR_RANDOM || o == IR_TO_BITS || o == IR_FROM_BITS || o == IR_WARPGROUP_ID ||
         o == IR_CLUSTER_RANK || o == IR_GRID_SIZE || o == IR_IN_ROLE || o == IR_SLOT_AT ||
         o == IR_DESC || o == IR_EX2 || o == IR_TF32;
}

const char *emit_const(struct emit *e, enum dtype t, int64_t i, double f) {
  struct strbuf b = {.arena = e->a};
  switch (t) {
  case DT_BOOL: return i ? "true" : "false";
  case DT_INDEX:
  case DT_S64:
    return i == INT64_MIN ? "(-9223372036854775807ll - 1)"
                          : arena_printf(e->a, i < 0 ? "(%" PRId64 "ll)" : "%" PRId64 "ll", i);
  case DT_S4:
  case DT_U4:
  case DT_S8:
  case DT_U8:
  case DT_S32:
    return i == INT32_MIN ? "(-2147483647 - 1)"
                          : arena_printf(e->a, i < 0 ? "(%" PRId64 ")" : "%" PRId64, i);
  case DT_F16: return arena_printf(e->a, "(f16)0x%04x", num_f16_bits(f));
  case DT_BF16: return arena_printf(e->a, "(bf16)0x%04x", num_bf16_bits(f));
  case DT_E4M3: return arena_printf(e->a, "(e4m3)0x%02x", num_e4m3_bits(f));
  case DT_E5M2: return arena_printf(e->a, "(e5m2)0x%02x", num_e5m2_bits(f));
  case DT_F32:
  case DT_F64: break;
  case DT_COUNT: KILN_UNREACHABLE();
  }
  const char *suffix = t == DT_F32 ? "f" : "";
  if (isnan(f) || isinf(f)) {
    const char *bits = isnan(f) ? "0x7fffffff" : f > 0 ? "0x7f800000" : "0xff800000";
    return arena_printf(e->a, t == DT_F32 ? "__uint_as_float(%s)" : "(double)__uint_as_float(%s)",
                        bits);
  }
  sb_put_double(&b, f);
  return arena_printf(e->a, signbit(f) ? "(%s%s)" : "%s%s", sb_str(&b), suffix);
}

/* Narrow floats and their conversions from and to f32. */
static const struct {
  enum dtype t;
  enum emit_helper widen, narrow;
} halves[] = {
    {DT_BF16, EMIT_BF16_TO_F32, EMIT_F32_TO_BF16},
    {DT_F16, EMIT_F16_TO_F32, EMIT_F32_TO_F16},
    {DT_E4M3, EMIT_E4M3_TO_F32, EMIT_F32_TO_E4M3},
    {DT_E5M2, EMIT_E5M2_TO_F32, EMIT_F32_TO_E5M2},
};

static bool is_half(enum dtype t) {
  return dtype_is_float(t) && dtype_bits(t) <= 16;
}

static const char *convert(struct emit *e, enum dtype t, bool widen, const char *x) {
  for (size_t i = 0; i < sizeof halves / sizeof halves[0]; i++)
    if (halves[i].t == t)
      return arena_printf(e->a, "%s(%s)", emit_use(e, widen ? halves[i].widen : halves[i].narrow),
                          x);
  return x;
}

/* A narrow float's value in f32; anything else as it is. */
static const char *widen(struct emit *e, enum dtype t, const char *x) {
  return convert(e, t, true, x);
}

static const char *narrow(struct emit *e, enum dtype t, const char *x) {
  return convert(e, t, false, x);
}

static const char *to_int(struct emit *e, enum dtype from, enum dtype to, const char *x) {
  if (dtype_is_float(from)) {
    const char *f = widen(e, from, x);
    if (to == DT_S32 && from != DT_F64)
      return arena_printf(e->a, "%s(%s)", emit_use(e, EMIT_F32_TO_S32), f);
    x = arena_printf(e->a, "%s(%s)",
                     emit_use(e, from == DT_F64 ? EMIT_F64_TO_S64 : EMIT_F32_TO_S64), f);
    from = DT_S64;
  }
  if (from == DT_BOOL || num_min(from) >= num_min(to))
    if (from == DT_BOOL || num_max(from) <= num_max(to))
      return arena_printf(e->a, "(%s)(%s)", emit_dtype(to), x);
  return arena_printf(e->a, "(%s)%s(%s, %" PRId64 "ll, %" PRId64 "ll)", emit_dtype(to),
                      emit_use(e, EMIT_CLAMP_S64), x, (int64_t)num_min(to), (int64_t)num_max(to));
}

const char *emit_cast(struct emit *e, enum dtype from, enum dtype to, const char *x) {
  if (from == to)
    return x;
  if (to == DT_BOOL)
    return arena_printf(e->a, "%s != 0", widen(e, from, x));
  if (!dtype_is_float(to))
    return to_int(e, from, to, x);
  if (!is_half(to)) /* f32, f64 */
    return is_half(from) && to == DT_F32
               ? widen(e, from, x)
               : arena_printf(e->a, "(%s)%s", emit_dtype(to), widen(e, from, x));
  if (from == DT_F64)
    x = arena_printf(e->a, "%s(%s)", emit_use(e, EMIT_F64_TO_F32_ODD), x);
  else if (dtype_is_int(from) && dtype_bits(from) > 16)
    x = arena_printf(e->a, "%s(%s)", emit_use(e, EMIT_S64_TO_F32_ODD), x);
  else if (!dtype_is_float(from))
    x = arena_printf(e->a, "(float)%s", x);
  return narrow(e, to, widen(e, from, x));
}

/* x = sum of digits times steps; extents that are powers of two become shifts and masks. */
static const char *digits(struct emit *e, struct ir_op o) {
  const struct ir_attr *map = ir_get_attr(e->m, o, IR_ATTR_map);
  const char *x = emit_val(e, ir_op_at(e->m, o)->in[0]);
  struct strbuf b = {.arena = e->a};
  int64_t before = 1;
  for (uint32_t i = 0; i < map->n_ints; i += 2) {
    int64_t extent = map->ints[i], step = map->ints[i + 1];
    bool last = i + 2 == map->n_ints;
    if (step != 0) {
      bool powers = (before & (before - 1)) == 0 && (extent & (extent - 1)) == 0;
      sb_puts(&b, b.n ? " + " : "");
      const char *digit = x;
      if (before > 1)
        digit = powers ? arena_printf(e->a, "(%s >> %d)", digit, __builtin_ctzll((uint64_t)before))
                       : arena_printf(e->a, "%s / %" PRId64, digit, before);
      if (!last)
        digit = powers ? arena_printf(e->a, "(%s & %" PRId64 ")", digit, extent - 1)
                       : arena_printf(e->a, "%s %% %" PRId64, digit, extent);
      sb_printf(&b, step == 1 ? "%s" : "%s * %" PRId64, digit, step);
    }
    before *= extent;
  }
  return b.n ? sb_str(&b) : "0";
}

static const char *infix(struct emit *e, const char *op, const char *x, const char *y) {
  return arena_printf(e->a, "%s %s %s", x, op, y);
}

static const char *call1(struct emit *e, const char *fn, const char *x) {
  return arena_printf(e->a, "%s(%s)", fn, x);
}

/* Wrapping arithmetic of signed integers goes through the unsigned type: overflow is defined. */
static const char *wrapping(struct emit *e, enum dtype t, const char *op, const char *x,
                            const char *y) {
  if (dtype_bits(t) < 32)
    return arena_printf(e->a, "(%s)(%s %s %s)", emit_dtype(t), x, op, y);
  return infix(e, op, x, y);
}

static const char *arithmetic(struct emit *e, enum ir_opcode o, enum dtype t, const char *x,
                              const char *y, const char *z) {
  bool is_float = dtype_is_float(t), wide = t == DT_F64;
  switch ((int)o) {
  case IR_ADD: return is_float ? infix(e, "+", x, y) : wrapping(e, t, "+", x, y);
  case IR_SUB: return is_float ? infix(e, "-", x, y) : wrapping(e, t, "-", x, y);
  case IR_MUL: return is_float ? infix(e, "*", x, y) : wrapping(e, t, "*", x, y);
  case IR_DIV: return infix(e, "/", x, y);
  case IR_MIN:
  case IR_MAX:
    if (!is_float)
      return arena_printf(e->a, "%s %s %s ? %s : %s", x, o == IR_MIN ? "<" : ">", y, x, y);
    return arena_printf(e->a, "%s(%s, %s)",
                        emit_use(e, o == IR_MIN ? (wide ? EMIT_MIN_F64 : EMIT_MIN_F32)
                                                : (wide ? EMIT_MAX_F64 : EMIT_MAX_F32)),
                        x, y);
  case IR_NEG:
    return !is_float && dtype_bits(t) < 32 ? arena_printf(e->a, "(%s)-%s", emit_dtype(t), x)
                                           : arena_printf(e->a, "-%s", x);
  case IR_ABS:
    return is_float ? call1(e, wide ? "fabs" : "fabsf", x)
                    : arena_printf(e->a, "(%s)(%s < 0 ? -%s : %s)", emit_dtype(t), x, x, x);
  case IR_FMA: return arena_printf(e->a, "%s(%s, %s, %s)", wide ? "fma" : "fmaf", x, y, z);
  case IR_EXP: return call1(e, wide ? "exp" : "expf", x);
  case IR_EXP2: return call1(e, wide ? "exp2" : "exp2f", x);
  case IR_LOG: return call1(e, wide ? "log" : "logf", x);
  case IR_LOG2: return call1(e, wide ? "log2" : "log2f", x);
  case IR_SQRT: return call1(e, wide ? "sqrt" : "sqrtf", x);
  case IR_RSQRT: return call1(e, wide ? "rsqrt" : "rsqrtf", x);
  case IR_TANH: return call1(e, wide ? "tanh" : "tanhf", x);
  case IR_ERF: return call1(e, wide ? "erf" : "erff", x);
  case IR_SIGMOID:
    return arena_printf(e->a, wide ? "1.0 / (1.0 + exp(-%s))" : "1.0f / (1.0f + expf(-%s))", x);
  case IR_SIN: return call1(e, wide ? "sin" : "sinf", x);
  case IR_COS: return call1(e, wide ? "cos" : "cosf", x);
  case IR_FLOOR: return call1(e, wide ? "floor" : "floorf", x);
  case IR_CEIL: return call1(e, wide ? "ceil" : "ceilf", x);
  case IR_ROUND: return call1(e, wide ? "rint" : "rintf", x);
  case IR_TRUNC: return call1(e, wide ? "trunc" : "truncf", x);
  default: KILN_UNREACHABLE();
  }
}

static const char *divide(struct emit *e, struct ir_op o, enum dtype t, const char *x,
                          const char *y) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  bool mod = n->opcode == IR_MOD;
  int64_t c;
  if (emit_is_const(e, n->in[1], &c) && c > 0 && (c & (c - 1)) == 0)
    return mod ? arena_printf(e->a, "%s & %" PRId64, x, c - 1)
               : arena_printf(e->a, "%s >> %d", x, __builtin_ctzll((uint64_t)c));
  bool wide = dtype_bits(t) > 32;
  enum emit_helper h =
      wide ? (mod ? EMIT_FLOORMOD : EMIT_FLOORDIV) : (mod ? EMIT_FLOORMOD_S32 : EMIT_FLOORDIV_S32);
  return arena_printf(e->a, "(%s)%s(%s, %s)", emit_dtype(t), emit_use(e, h), x, y);
}

static const char *shift(struct emit *e, struct ir_op o, enum dtype t, const char *x,
                         const char *y) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  bool left = n->opcode == IR_SHL;
  int64_t c;
  if (emit_is_const(e, n->in[1], &c) && c >= 0 && c < dtype_bits(t))
    return arena_printf(e->a, "(%s)(%s %s %" PRId64 ")", emit_dtype(t), x, left ? "<<" : ">>", c);
  if (left)
    return arena_printf(e->a, "(%s)%s(%s, %s, %u)", emit_dtype(t), emit_use(e, EMIT_SHIFT_LEFT), x,
                        y, dtype_bits(t));
  return arena_printf(e->a, "(%s)%s(%s, %s)", emit_dtype(t), emit_use(e, EMIT_SHIFT_RIGHT), x, y);
}

static const char *bits(struct emit *e, enum ir_opcode o, enum dtype t, const char *x,
                        const char *y) {
  bool logical = t == DT_BOOL;
  switch ((int)o) {
  case IR_AND: return infix(e, logical ? "&&" : "&", x, y);
  case IR_OR: return infix(e, logical ? "||" : "|", x, y);
  case IR_XOR: return infix(e, logical ? "!=" : "^", x, y);
  default: return arena_printf(e->a, logical ? "!%s" : "~%s", x);
  }
}

static const char *shuffle(struct emit *e, struct ir_op o, enum dtype t, const char *x) {
  int64_t mask = ir_attr_int(e->m, o, IR_ATTR_mask, 0);
  bool small = dtype_bits(t) < 32;
  return arena_printf(e->a, "(%s)__shfl_xor_sync(0xffffffffu, %s%s, %" PRId64 ")", emit_dtype(t),
                      small ? "(int)" : "", x, mask);
}

/* Bits of a scalar of dtype t, as an unsigned integer. */
static const char *to_bits(struct emit *e, enum dtype t, enum dtype word, const char *x) {
  const char *u = "";
  if (t == DT_F32)
    u = "__float_as_uint";
  else if (t == DT_F64)
    u = "(unsigned long long)__double_as_longlong";
  else if (dtype_bits(t) == 8)
    u = "(unsigned char)";
  else if (t == DT_S32)
    u = "(unsigned)";
  return dtype_bits(t) == 4
             ? arena_printf(e->a, "(%s)(%s & 15)", emit_dtype(word), x)
             : arena_printf(e->a, u[0] == '(' && t != DT_F64 ? "(%s)%s%s" : "(%s)%s(%s)",
                            emit_dtype(word), u, x);
}

static const char *from_bits(struct emit *e, enum dtype t, const char *x) {
  if (t == DT_F32)
    return arena_printf(e->a, "__uint_as_float((unsigned)%s)", x);
  if (t == DT_F64)
    return arena_printf(e->a, "__longlong_as_double(%s)", x);
  if (dtype_bits(t) == 4)
    return arena_printf(
        e->a,
        t == DT_S4 ? "(signed char)((signed char)(%s << 4) >> 4)" : "(unsigned char)(%s & 15)", x);
  return arena_printf(e->a, "(%s)%s", emit_dtype(t), x);
}

static const char *scalar(struct emit *e, struct ir_op o) {
  static const char *const signs[] = {"==", "!=", "<", "<=", ">", ">="};
  const struct ir_opnode *n = ir_op_at(e->m, o);
  const char *x[3] = {"", "", ""};
  for (uint32_t i = 0; i < n->n_in && i < 3; i++)
    x[i] = emit_val(e, n->in[i]);
  enum dtype t = (enum dtype)ir_type_of(e->m, n->n_in ? n->in[0] : n->out[0]).dtype;
  switch ((int)n->opcode) {
  case IR_THREAD_ID: return "(int)threadIdx.x";
  case IR_WARP_ID: return "__shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0)";
  case IR_LANE_ID: return "(int)threadIdx.x % 32";
  case IR_BLOCK_ID: return "(int)blockIdx.x";
  case IR_WARPGROUP_ID: return "__shfl_sync(0xffffffffu, (int)threadIdx.x / 128, 0)";
  case IR_GRID_SIZE: return "(int)gridDim.x";
  case IR_CLUSTER_RANK: return arena_printf(e->a, "%s()", emit_use(e, EMIT_CLUSTER_RANK));
  case IR_EX2: return call1(e, emit_use(e, EMIT_EX2_F32), x[0]);
  case IR_IN_ROLE:
  case IR_SLOT_AT:
  case IR_DESC: return emit_place(e, o);
  case IR_DIGITS: return digits(e, o);
  case IR_PTR_ADD: return infix(e, "+", x[0], x[1]);
  case IR_SHUFFLE: return shuffle(e, o, t, x[0]);
  case IR_RANDOM:
    return arena_printf(e->a, "%s(%s, %s, %d)", emit_use(e, EMIT_RANDOM_WORD), x[0], x[1],
                        (int)ir_attr_int(e->m, o, IR_ATTR_word, 0));
  case IR_TO_BITS: return to_bits(e, t, (enum dtype)ir_type_of(e->m, n->out[0]).dtype, x[0]);
  case IR_TF32: return arena_printf(e->a, "%s(%s)", emit_use(e, EMIT_F32_TO_TF32), x[0]);
  case IR_FROM_BITS: return from_bits(e, (enum dtype)ir_type_of(e->m, n->out[0]).dtype, x[0]);
  case IR_SELECT: return arena_printf(e->a, "%s ? %s : %s", x[0], x[1], x[2]);
  case IR_CAST: return emit_cast(e, t, (enum dtype)ir_type_of(e->m, n->out[0]).dtype, x[0]);
  case IR_FLOORDIV:
  case IR_MOD: return divide(e, o, t, x[0], x[1]);
  case IR_SHL:
  case IR_SHR: return shift(e, o, t, x[0], x[1]);
  case IR_AND:
  case IR_OR:
  case IR_XOR:
  case IR_NOT: return bits(e, n->opcode, t, x[0], x[1]);
  case IR_EQ:
  case IR_NE:
  case IR_LT:
  case IR_LE:
  case IR_GT:
  case IR_GE: return infix(e, signs[n->opcode - IR_EQ], widen(e, t, x[0]), widen(e, t, x[1]));
  default:
    for (uint32_t i = 0; i < n->n_in && i < 3; i++)
      x[i] = widen(e, t, x[i]);
    return narrow(e, t, arithmetic(e, n->opcode, t, x[0], x[1], x[2]));
  }
}

const char *emit_scalar(struct emit *e, struct ir_op o) {
  enum ir_opcode c = ir_op_at(e->m, o)->opcode;
  struct ir_type t = ir_type_of(e->m, ir_op_at(e->m, o)->out[0]);
  const char *x = scalar(e, o);
  /* 4-bit integers are kept in 8: what may leave their range is wrapped. */
  bool computes = c >= IR_ADD && c <= IR_SHR;
  return t.kind == IR_SCALAR && dtype_bits((enum dtype)t.dtype) == 4 && computes
             ? from_bits(e, (enum dtype)t.dtype, arena_printf(e->a, "(%s)", x))
             : x;
}

_Static_assert(IR_GE - IR_EQ == 5, "signs[] follows the order of the comparisons in ops.def");
