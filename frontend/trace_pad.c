/* Padding: which elements of a value stand for what lies outside of a tensor, and what is in
 * them.
 *
 * A tile that a load may fill past its tensor's edge has pad elements along that dim. Elementwise
 * ops keep them and change their value; here that value is followed where it can be known (0 * x,
 * x - inf, a select by a mask on an iota), so that a reduction over the dim can be refused unless
 * the padding cannot change its result. This judges the kernel's text and config alone, never the
 * facts of a specialization: no kernel is accepted for one shape and refused for another.
 *
 * It is a lint, not a proof: a value carried around a loop is taken to keep the padding it starts
 * with until the loop's end, where both are joined. */
#include "base/num.h"
#include "frontend/dsl.h"

#include <inttypes.h>
#include <math.h>

struct dsl_pad dsl_pad_of(const struct dsl_val *v, uint32_t dim) {
  if (v->pads && dim < v->t.rank)
    return v->pads[dim];
  return (struct dsl_pad){.known = v->is_const, .value = v->value};
}

/* A number that may be unknown. */
struct maybe {
  bool known;
  double x;
};

static struct maybe known(double x) {
  return (struct maybe){true, x};
}

static struct maybe eval1(enum ir_opcode op, double x) {
  switch ((int)op) {
  case IR_NEG: return known(-x);
  case IR_ABS: return known(fabs(x));
  case IR_EXP: return known(exp(x));
  case IR_EXP2: return known(exp2(x));
  case IR_LOG: return known(log(x));
  case IR_LOG2: return known(log2(x));
  case IR_SQRT: return known(sqrt(x));
  case IR_RSQRT: return known(1 / sqrt(x));
  case IR_TANH: return known(tanh(x));
  case IR_ERF: return known(erf(x));
  case IR_SIGMOID: return known(1 / (1 + exp(-x)));
  case IR_SIN: return known(sin(x));
  case IR_COS: return known(cos(x));
  case IR_FLOOR: return known(floor(x));
  case IR_CEIL: return known(ceil(x));
  case IR_ROUND: return known(rint(x));
  case IR_TRUNC: return known(trunc(x));
  case IR_NOT: return known(x == 0);
  case IR_CAST: return known(x);
  default: return (struct maybe){0};
  }
}

/* One side decides, whatever finite value the other has. */
static struct maybe absorb(enum ir_opcode op, struct maybe a, struct maybe b) {
  switch ((int)op) {
  case IR_MUL:
    if ((a.known && a.x == 0) || (b.known && b.x == 0))
      return known(0);
    break;
  case IR_DIV:
    if (a.known && a.x == 0)
      return known(0);
    if (b.known && isinf(b.x))
      return known(0);
    break;
  case IR_ADD:
    if (a.known && isinf(a.x))
      return a;
    if (b.known && isinf(b.x))
      return b;
    break;
  case IR_SUB:
    if (a.known && isinf(a.x))
      return a;
    if (b.known && isinf(b.x))
      return known(-b.x);
    break;
  case IR_AND:
    if ((a.known && a.x == 0) || (b.known && b.x == 0))
      return known(0);
    break;
  case IR_MIN:
    if ((a.known && a.x == -INFINITY) || (b.known && b.x == -INFINITY))
      return known(-INFINITY);
    break;
  case IR_MAX:
    if ((a.known && a.x == INFINITY) || (b.known && b.x == INFINITY))
      return known(INFINITY);
    break;
  default: break;
  }
  return (struct maybe){0};
}

static struct maybe eval2(enum ir_opcode op, struct maybe a, struct maybe b) {
  if (!a.known || !b.known)
    return absorb(op, a, b);
  const struct maybe none = {0};
  switch ((int)op) {
  case IR_ADD: return known(a.x + b.x);
  case IR_SUB: return known(a.x - b.x);
  case IR_MUL: return known(a.x * b.x);
  case IR_DIV: return known(a.x / b.x);
  case IR_MIN: return known(fmin(a.x, b.x));
  case IR_MAX: return known(fmax(a.x, b.x));
  case IR_AND: return a.x == b.x || a.x * b.x == 0 ? known(a.x * b.x == 0 ? 0 : a.x) : none;
  case IR_OR: return a.x == b.x || a.x * b.x == 0 ? known(a.x == 0 ? b.x : a.x) : none;
  case IR_EQ: return known(a.x == b.x);
  case IR_NE: return known(a.x != b.x);
  case IR_LT: return known(a.x < b.x);
  case IR_LE: return known(a.x <= b.x);
  case IR_GT: return known(a.x > b.x);
  case IR_GE: return known(a.x >= b.x);
  default: return none;
  }
}

static struct maybe eval(enum ir_opcode op, uint32_t n, const struct maybe *in) {
  if (op == IR_SELECT) {
    if (in[0].known)
      return in[0].x != 0 ? in[1] : in[2];
    if (in[1].known && in[2].known && in[1].x == in[2].x)
      return in[1];
    return (struct maybe){0};
  }
  if (n == 1)
    return in[0].known ? eval1(op, in[0].x) : (struct maybe){0};
  if (n == 2)
    return eval2(op, in[0], in[1]);
  return (struct maybe){0};
}

static bool same(struct maybe a, struct maybe b) {
  return a.known && b.known && (a.x == b.x || (isnan(a.x) && isnan(b.x)));
}

/* What the op gives along one dim: in[i] are the operands' pads there. mask: of bools. */
static struct dsl_pad elem_dim(enum ir_opcode op, uint32_t n, const struct dsl_pad *in, bool mask) {
  struct dsl_pad out = {0};
  for (uint32_t i = 0; i < n; i++)
    out.pos |= in[i].pos;
  for (uint32_t i = 0; i < n; i++)
    out.masked |= in[i].masked;
  /* The mask tells positions apart: the author decides what stands in the padding. So does an
   * operand that was masked, as in x + where(col < n, 0, -inf), and a mask joined with one that
   * tells positions apart, as in x > 0 and col < n. */
  bool joins = mask && (op == IR_AND || op == IR_OR);
  if ((op == IR_SELECT && in[0].pos) || (joins && (in[0].pos || in[1].pos)))
    out.masked = true;
  if (out.masked)
    return out;
  struct maybe all[3];
  for (uint32_t i = 0; i < n; i++) {
    all[i] = (struct maybe){in[i].known, in[i].value};
    if (in[i].src && !out.src)
      out.src = in[i].src;
  }
  struct maybe r = eval(op, n, all);
  /* Operands padded by different loads: where only one of them is padded, the other holds data. */
  for (uint32_t s = 0; s < n && r.known; s++) {
    if (!in[s].src || in[s].src == out.src)
      continue;
    for (uint32_t side = 0; side < 2; side++) {
      struct maybe some[3];
      for (uint32_t i = 0; i < n; i++) {
        bool mine = in[i].src == in[s].src;
        bool data = in[i].src && (side ? mine : !mine);
        some[i] = data ? (struct maybe){0} : all[i];
      }
      struct maybe x = eval(op, n, some);
      if (!same(x, r))
        r.known = false;
    }
  }
  out.known = r.known;
  out.value = r.x;
  return out;
}

static bool worth_keeping(const struct dsl_pad *p, uint32_t rank) {
  for (uint32_t d = 0; d < rank; d++)
    if (p[d].src || p[d].known || p[d].pos || p[d].masked)
      return true;
  return false;
}

static const struct dsl_pad *keep(struct fe_file *f, const struct dsl_pad *p, uint32_t rank) {
  if (!worth_keeping(p, rank))
    return NULL;
  return arena_copy(fe_trace_arena(f->fe), p, rank * sizeof *p);
}

void dsl_pad_loaded(struct fe_file *f, struct dsl_val *r, bool has_pad, double value,
                    const uint32_t *src) {
  struct dsl_pad p[IR_MAX_RANK] = {{0}};
  bool any = false;
  for (uint32_t d = 0; d < r->t.rank; d++) {
    p[d].src = has_pad ? 0 : src[d];
    p[d].known = has_pad || src[d] != 0;
    p[d].value = value;
    any |= p[d].known;
  }
  if (any)
    r->pads = arena_copy(fe_trace_arena(f->fe), p, r->t.rank * sizeof *p);
}

const struct dsl_pad *dsl_pad_elem(struct fe_file *f, enum ir_opcode op, uint32_t n,
                                   struct dsl_val *const *in, struct ir_type t) {
  if (t.kind != IR_TILE || n > 3)
    return NULL;
  struct dsl_pad out[IR_MAX_RANK];
  for (uint32_t d = 0; d < t.rank; d++) {
    struct dsl_pad p[3] = {{0}};
    for (uint32_t i = 0; i < n; i++) {
      p[i] = dsl_pad_of(in[i], d);
      /* A dim of 1 that grows: one element stands for all, data and padding alike. */
      if (in[i]->t.kind == IR_TILE && in[i]->t.dim[d] != t.dim[d]) {
        p[i].src = 0;
        p[i].pos = p[i].masked = false;
        p[i].known = in[i]->is_const;
        p[i].value = in[i]->value;
      }
    }
    out[d] = elem_dim(op, n, p, t.dtype == DT_BOOL);
  }
  return keep(f, out, t.rank);
}

const struct dsl_pad *dsl_pad_join(struct fe_file *f, const struct dsl_val *a,
                                   const struct dsl_val *b, struct ir_type t) {
  if (t.kind != IR_TILE)
    return NULL;
  struct dsl_pad out[IR_MAX_RANK];
  for (uint32_t d = 0; d < t.rank; d++) {
    struct dsl_pad x = dsl_pad_of(a, d), y = dsl_pad_of(b, d);
    out[d] = (struct dsl_pad){
        .src = x.src ? x.src : y.src, .pos = x.pos && y.pos, .masked = x.masked && y.masked};
    if (same((struct maybe){x.known, x.value}, (struct maybe){y.known, y.value})) {
      out[d].known = true;
      out[d].value = x.value;
    }
  }
  return keep(f, out, t.rank);
}

bool dsl_never_negative(const struct dsl_val *v) {
  enum dtype t = (enum dtype)v->t.dtype;
  bool is_unsigned = t == DT_U8 || t == DT_U4 || t == DT_BOOL;
  return v->never_negative || is_unsigned || (v->is_const && v->value >= 0);
}

/* Integers wrap around: of them only what cannot. */
bool dsl_makes_no_negative(enum ir_opcode op, uint32_t n, struct dsl_val *const *in, enum dtype t) {
  bool all = true, first = dsl_never_negative(in[0]), last = dsl_never_negative(in[n - 1]);
  for (uint32_t i = 0; i < n; i++)
    all = all && dsl_never_negative(in[i]);
  switch ((int)op) {
  case IR_ABS:
  case IR_EXP:
  case IR_EXP2:
  case IR_SIGMOID:
  case IR_SQRT: return dtype_is_float(t);
  case IR_MUL: return dtype_is_float(t) && (all || in[0]->v.id == in[1]->v.id);
  case IR_ADD:
  case IR_DIV: return dtype_is_float(t) && all;
  case IR_FLOOR:
  case IR_CEIL:
  case IR_ROUND:
  case IR_TRUNC:
  case IR_MIN: return all;
  case IR_MAX: return first || last;
  case IR_SELECT: return dsl_never_negative(in[1]) && last;
  case IR_CAST:
    return first && (dtype_is_float(t) || (dtype_is_int((enum dtype)in[0]->t.dtype) &&
                                           dtype_bits(t) > dtype_bits((enum dtype)in[0]->t.dtype)));
  default: return false;
  }
}

/* Does a pad value leave a reduction as it is? Integers have extremes for infinities. */
static bool is_neutral(enum dtype t, double value, double neutral) {
  if (dtype_is_int(t) && isinf(neutral))
    return neutral < 0 ? value <= num_min(t) : value >= num_max(t);
  return value == neutral;
}

static const char *value_text(struct fe_file *f, enum dtype t, double x) {
  if (t == DT_BOOL)
    return x != 0 ? "true" : "false";
  if (dtype_is_int(t) && isinf(x))
    x = x < 0 ? num_min(t) : num_max(t);
  struct arena *a = fe_trace_arena(f->fe);
  return dtype_is_int(t) ? arena_printf(a, "%.0f", x) : arena_printf(a, "%.10g", x);
}

bool dsl_pad_check(struct fe_file *f, const struct dsl_val *x, uint32_t dim, double neutral,
                   const char *what) {
  struct dsl_pad p = dsl_pad_of(x, dim);
  enum dtype t = (enum dtype)x->t.dtype;
  if (!p.src || x->t.dim[dim] == 1 || (p.known && is_neutral(t, p.value, neutral)))
    return true;
  const struct dsl_src *s = &f->srcs.at[p.src];
  struct strbuf mask = {.arena = fe_trace_arena(f->fe)};
  if (t == DT_BOOL)
    sb_printf(&mask, "join the mask with `%s`",
              neutral != 0 ? "or position >= size" : "and position < size");
  else
    sb_printf(&mask, "mask with where(position < size, x, %s)", value_text(f, t, neutral));
  const char *place = fe_place(f->fe, s->loc);
  const char *pad = p.known ? value_text(f, t, p.value) : "unknown values";
  if (!s->extent)
    fe_soft_error(f->fe, DIAG_PADDED_REDUCE,
                  "%s over dim %" PRIu32
                  ", which may be padded: %s at %s may be out of range, and %s would count there; "
                  "gather with pad = ..., or %s",
                  what, dim, s->text, place, pad, sb_str(&mask));
  else
    fe_soft_error(f->fe, DIAG_PADDED_REDUCE,
                  "%s over dim %" PRIu32
                  ", which may be padded: %s is loaded at %s in tiles of %" PRId64
                  " that may reach past its end, and %s would count there; load with pad = ..., "
                  "%s, or make the dim a const",
                  what, dim, s->text, place, s->size, pad, sb_str(&mask));
  return false;
}

/* Ranges of integers (of a tile: of all its elements), where they follow from numbers alone. */
void dsl_range_elem(enum ir_opcode op, const struct dsl_val *a, const struct dsl_val *b,
                    struct dsl_val *out) {
  int64_t lo, hi;
  if (op == IR_MOD && b->has_range && b->lo == b->hi && b->lo > 0) {
    out->has_range = true;
    out->lo = 0;
    out->hi = b->lo - 1;
    return;
  }
  if (!a->has_range || !b->has_range || out->t.dtype == DT_BOOL)
    return;
  switch ((int)op) {
  case IR_ADD:
    if (__builtin_add_overflow(a->lo, b->lo, &lo) || __builtin_add_overflow(a->hi, b->hi, &hi))
      return;
    break;
  case IR_SUB:
    if (__builtin_sub_overflow(a->lo, b->hi, &lo) || __builtin_sub_overflow(a->hi, b->lo, &hi))
      return;
    break;
  case IR_MUL:
    if (a->lo < 0 || b->lo < 0 || __builtin_mul_overflow(a->lo, b->lo, &lo) ||
        __builtin_mul_overflow(a->hi, b->hi, &hi))
      return;
    break;
  case IR_MIN:
    lo = a->lo < b->lo ? a->lo : b->lo;
    hi = a->hi < b->hi ? a->hi : b->hi;
    break;
  case IR_MAX:
    lo = a->lo > b->lo ? a->lo : b->lo;
    hi = a->hi > b->hi ? a->hi : b->hi;
    break;
  default: return;
  }
  out->has_range = true;
  out->lo = lo;
  out->hi = hi;
}
