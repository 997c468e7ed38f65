/* Interpreter: the algebraic domain. docs/numerics.md states the laws.
 *
 * A float value is a payload: an integer modulo 2^64 on which add, sub, mul, fma, sums and dot are
 * exact ring operations, so that every order and grouping of them agrees to the bit. exp2 is 5^x,
 * which turns sums into products. What has no law is a scrambling bijection with a tag of its own.
 * Three payloads stand for -inf, +inf and NaN and behave as IEEE 754 says. Integers and masks are
 * those of the other domains.
 *
 * An op on constants alone whose result the rounded domain fixes (ir_fold) is a constant: the
 * payload of that result. Otherwise folding, which may round, would change what a kernel means. */
#include "ir/interp_impl.h"

#include "base/check.h"
#include "base/num.h"
#include "ir/passes.h"

#include <math.h>
#include <string.h>

#define MINUS_INF INTERP_MINUS_INF
#define PLUS_INF  INTERP_PLUS_INF
#define NOT_A_NUM INTERP_NAN
#define U64(v)    ((uint64_t)(v))

/* ---- payloads ---- */

/* A bijection of 64 bits (splitmix64's) after adding a tag. */
static uint64_t scramble(uint64_t x, uint64_t tag) {
  x += tag * UINT64_C(0x9e3779b97f4a7c15);
  x ^= x >> 30;
  x *= UINT64_C(0xbf58476d1ce4e5b9);
  x ^= x >> 27;
  x *= UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

/* The three special payloads are neighbours modulo 2^64, and no power of 5 is one of them (those
 * are 1 modulo 4). */
static inline bool is_special(int64_t x) {
  return U64(x) - U64(NOT_A_NUM) <= 2;
}

/* What comes out of a scrambler by chance must not be taken for an infinity. */
static int64_t plain(uint64_t x) {
  return is_special((int64_t)x) ? (int64_t)(x ^ UINT64_C(1) << 32) : (int64_t)x;
}

#define TAG_EMBED UINT64_C(0x100)

int64_t interp_embed(double x) {
  if (isnan(x))
    return NOT_A_NUM;
  if (isinf(x))
    return x < 0 ? MINUS_INF : PLUS_INF;
  if (x == nearbyint(x) && fabs(x) < 0x1p63)
    return (int64_t)x;
  /* A sign is kept: what is greater than 0 stays so, and the payload of -x is minus that of x. */
  double mag = fabs(x);
  uint64_t bits;
  memcpy(&bits, &mag, sizeof bits);
  int64_t h = plain(scramble(bits, TAG_EMBED) & INT64_MAX);
  h = h < 1 << 16 ? h + (1 << 20) : h; /* the small numbers are whole ones */
  return x < 0 ? -h : h;
}

static inline int64_t neg(int64_t a) {
  if (is_special(a))
    return a == NOT_A_NUM ? a : a == MINUS_INF ? PLUS_INF : MINUS_INF;
  return (int64_t)(0 - U64(a));
}

static int64_t add_special(int64_t a, int64_t b) {
  if (!is_special(a))
    return b;
  return !is_special(b) || a == b ? a : NOT_A_NUM;
}
static inline int64_t add(int64_t a, int64_t b) {
  if (is_special(a) || is_special(b))
    return add_special(a, b);
  return (int64_t)(U64(a) + U64(b));
}
static inline int64_t sub(int64_t a, int64_t b) {
  if (is_special(a) || is_special(b))
    return add_special(a, is_special(b) ? neg(b) : 0);
  return (int64_t)(U64(a) - U64(b));
}

static int64_t mul_special(int64_t a, int64_t b) {
  if (a == NOT_A_NUM || b == NOT_A_NUM || a == 0 || b == 0)
    return NOT_A_NUM;
  return (a < 0) != (b < 0) ? MINUS_INF : PLUS_INF;
}
static inline int64_t mul(int64_t a, int64_t b) {
  if (is_special(a) || is_special(b))
    return mul_special(a, b);
  return (int64_t)(U64(a) * U64(b));
}

/* ---- the laws beyond the ring ---- */

#define TAG_EVEN UINT64_C(0x200)

/* Odd payloads have an inverse; even ones get a payload that no rule leads back from. */
static int64_t reciprocal(int64_t a) {
  if (is_special(a))
    return a == NOT_A_NUM ? a : 0;
  if (a == 0)
    return PLUS_INF;
  uint64_t x = U64(a), y = x; /* right to 3 bits; each step doubles them */
  if (!(x & 1))
    return plain(scramble(x, TAG_EVEN));
  for (int step = 0; step < 5; step++)
    y *= 2 - x * y;
  return (int64_t)y;
}
static inline int64_t quotient(int64_t a, int64_t b) {
  return mul(a, reciprocal(b));
}

static int64_t exp2_of(int64_t a) {
  if (is_special(a))
    return a == MINUS_INF ? 0 : a;
  uint64_t r = 1, power = 5;
  for (uint64_t x = U64(a); x; x >>= 1) {
    if (x & 1)
      r *= power;
    power *= power;
  }
  return (int64_t)r;
}

static inline int64_t magnitude(int64_t a) {
  return a < 0 && a != NOT_A_NUM ? neg(a) : a;
}
static inline int64_t lesser(int64_t a, int64_t b) {
  return a == NOT_A_NUM || b == NOT_A_NUM ? NOT_A_NUM : a < b ? a : b;
}
static inline int64_t greater(int64_t a, int64_t b) {
  return a == NOT_A_NUM || b == NOT_A_NUM ? NOT_A_NUM : a > b ? a : b;
}

/* Functions without a law: what they give for zero and the infinities, as docs/numerics.md has it;
 * elsewhere a bijection tagged with the opcode. NaN gives NaN. */
struct opaque {
  bool is;
  double of_zero, of_minus_inf, of_plus_inf;
};
static const struct opaque opaque[IR_OPCODE_COUNT] = {
    [IR_LOG] = {true, -HUGE_VAL, NAN, HUGE_VAL},
    [IR_LOG2] = {true, -HUGE_VAL, NAN, HUGE_VAL},
    [IR_SQRT] = {true, 0, NAN, HUGE_VAL},
    [IR_RSQRT] = {true, HUGE_VAL, NAN, 0},
    [IR_TANH] = {true, 0, -1, 1},
    [IR_ERF] = {true, 0, -1, 1},
    [IR_SIGMOID] = {true, 0.5, 0, 1},
    [IR_SIN] = {true, 0, NAN, NAN},
    [IR_COS] = {true, 1, NAN, NAN},
    [IR_FLOOR] = {true, 0, -HUGE_VAL, HUGE_VAL},
    [IR_CEIL] = {true, 0, -HUGE_VAL, HUGE_VAL},
    [IR_ROUND] = {true, 0, -HUGE_VAL, HUGE_VAL},
    [IR_TRUNC] = {true, 0, -HUGE_VAL, HUGE_VAL},
};

static int64_t opaque_of(enum ir_opcode opcode, int64_t a) {
  const struct opaque *f = &opaque[opcode];
  if (a == NOT_A_NUM)
    return a;
  if (a == 0)
    return interp_embed(f->of_zero);
  if (is_special(a))
    return interp_embed(a == MINUS_INF ? f->of_minus_inf : f->of_plus_inf);
  return plain(scramble(U64(a), 1 + U64(opcode)));
}

/* ---- which op has which rule ---- */

enum rule {
  NO_RULE,   /* nobody has thought about it: refused, and a test fails */
  NO_FLOATS, /* its operands and results are never floats */
  MOVES,     /* moves or makes cells, whatever they hold: the code that all domains share */
  CONTROL,   /* blocks, their ends, messages */
  ALGEBRA,   /* has a rule on payloads */
};

static const uint8_t rules[IR_OPCODE_COUNT] = {
    /* clang-format off */
    [IR_CONST] = MOVES, [IR_SPLAT] = MOVES, [IR_BROADCAST] = MOVES, [IR_RESHAPE] = MOVES,
    [IR_TRANSPOSE] = MOVES, [IR_ITEM] = MOVES, [IR_CONVERT] = MOVES, [IR_SELECT] = MOVES,
    [IR_LOAD] = MOVES, [IR_STORE] = MOVES, [IR_EXTRACT] = MOVES, [IR_CONCAT] = MOVES,
    [IR_VIEW_AT] = MOVES, [IR_VIEW_SLICE] = MOVES, [IR_VIEW_TRANSPOSE] = MOVES,
    [IR_VIEW_EVERY] = MOVES, [IR_VIEW_RESHAPE] = MOVES, [IR_DIM] = NO_FLOATS,
    [IR_GATHER] = MOVES, [IR_SCATTER] = MOVES, [IR_ATOMIC] = ALGEBRA,
    [IR_ADD] = ALGEBRA, [IR_SUB] = ALGEBRA, [IR_MUL] = ALGEBRA, [IR_DIV] = ALGEBRA,
    [IR_MIN] = ALGEBRA, [IR_MAX] = ALGEBRA, [IR_NEG] = ALGEBRA, [IR_ABS] = ALGEBRA,
    [IR_FMA] = ALGEBRA, [IR_EXP] = ALGEBRA, [IR_EXP2] = ALGEBRA, [IR_LOG] = ALGEBRA,
    [IR_LOG2] = ALGEBRA, [IR_SQRT] = ALGEBRA, [IR_RSQRT] = ALGEBRA, [IR_TANH] = ALGEBRA,
    [IR_ERF] = ALGEBRA, [IR_SIGMOID] = ALGEBRA, [IR_SIN] = ALGEBRA, [IR_COS] = ALGEBRA,
    [IR_EQ] = ALGEBRA, [IR_NE] = ALGEBRA, [IR_LT] = ALGEBRA, [IR_LE] = ALGEBRA, [IR_GT] = ALGEBRA,
    [IR_GE] = ALGEBRA, [IR_CAST] = ALGEBRA, [IR_REDUCE_SUM] = ALGEBRA, [IR_REDUCE_MAX] = ALGEBRA,
    [IR_REDUCE_MIN] = ALGEBRA, [IR_DOT] = ALGEBRA, [IR_FLOOR] = ALGEBRA, [IR_CEIL] = ALGEBRA,
    [IR_ROUND] = ALGEBRA, [IR_TRUNC] = ALGEBRA, [IR_ARGMAX] = ALGEBRA, [IR_ARGMIN] = ALGEBRA,
    [IR_SCAN_SUM] = ALGEBRA, [IR_BITCAST] = ALGEBRA,
    [IR_IOTA] = NO_FLOATS, [IR_FLOORDIV] = NO_FLOATS, [IR_MOD] = NO_FLOATS, [IR_AND] = NO_FLOATS,
    [IR_OR] = NO_FLOATS, [IR_XOR] = NO_FLOATS, [IR_NOT] = NO_FLOATS, [IR_SHL] = NO_FLOATS,
    [IR_SHR] = NO_FLOATS, [IR_ASSERT] = NO_FLOATS, [IR_RANDOM] = NO_FLOATS,
    [IR_REDUCE_ANY] = NO_FLOATS, [IR_REDUCE_ALL] = NO_FLOATS,
    [IR_PRINT] = CONTROL, [IR_FOR] = CONTROL, [IR_MERGE] = CONTROL, [IR_IF] = CONTROL,
    [IR_WHILE] = CONTROL, [IR_YIELD] = CONTROL, [IR_CONDITION] = CONTROL, [IR_RETURN] = CONTROL,
    /* clang-format on */
};

bool interp_algebra_has_rule(enum ir_opcode opcode) {
  return rules[opcode] != NO_RULE;
}

/* ---- elementwise ops ---- */

static void fill(size_t n, int64_t *o, int64_t x) {
  for (size_t i = 0; i < n; i++)
    o[i] = x;
}

/* The value of an op that is a constant (see the head); false: compute it. */
static bool put_constant(struct interp *in, struct ir_val v) {
  if (!in->is_constant[v.id])
    return false;
  const struct ir_constant *k = &in->constant[v.id];
  size_t n = val_elems(in, v);
  void *o = val_buf(in, v);
  switch (val_cell(in, v)) {
  case CELL_PAYLOAD: fill(n, o, interp_embed(k->f)); break;
  case CELL_INT: fill(n, o, k->i); break;
  case CELL_BOOL: memset(o, k->i != 0, n); break;
  case CELL_FLOAT:
  case CELL_DOUBLE: KILN_ASSERT(false); break; /* no cells of this domain */
  }
  return true;
}

#define EACH(T, expr)                                                                              \
  do {                                                                                             \
    T *cells = o;                                                                                  \
    for (size_t i = 0; i < n; i++)                                                                 \
      cells[i] = (T)(expr);                                                                        \
  } while (0)
#define ORDERED(sign) EACH(uint8_t, x[i] != NOT_A_NUM && y[i] != NOT_A_NUM && x[i] sign y[i])

void cells_algebra_elem(enum ir_opcode opcode, enum dtype to, size_t n, const void *in0,
                        const void *in1, const void *in2, void *o) {
  const int64_t *x = in0, *y = in1, *z = in2;
  switch ((int)opcode) {
  case IR_ADD: EACH(int64_t, add(x[i], y[i])); return;
  case IR_SUB: EACH(int64_t, sub(x[i], y[i])); return;
  case IR_MUL: EACH(int64_t, mul(x[i], y[i])); return;
  case IR_DIV: EACH(int64_t, quotient(x[i], y[i])); return;
  case IR_MIN: EACH(int64_t, lesser(x[i], y[i])); return;
  case IR_MAX: EACH(int64_t, greater(x[i], y[i])); return;
  case IR_NEG: EACH(int64_t, neg(x[i])); return;
  case IR_ABS: EACH(int64_t, magnitude(x[i])); return;
  case IR_FMA: EACH(int64_t, add(mul(x[i], y[i]), z[i])); return;
  case IR_EXP2: EACH(int64_t, exp2_of(x[i])); return;
  case IR_EXP: { /* as exp2(x * log2e) with the constant that the dtype holds */
    int64_t k = interp_embed(num_round(to, 0x1.71547652b82fep+0));
    EACH(int64_t, exp2_of(mul(x[i], k)));
    return;
  }
  case IR_EQ: ORDERED(==); return;
  case IR_LT: ORDERED(<); return;
  case IR_LE: ORDERED(<=); return;
  case IR_GT: ORDERED(>); return;
  case IR_GE: ORDERED(>=); return;
  case IR_NE: EACH(uint8_t, x[i] == NOT_A_NUM || x[i] != y[i]); return;
  case IR_SELECT: {
    const uint8_t *mask = in0;
    EACH(int64_t, mask[i] ? y[i] : z[i]);
    return;
  }
  default: KILN_ASSERT(opaque[opcode].is); EACH(int64_t, opaque_of(opcode, x[i]));
  }
}

void interp_algebra_elem(struct interp *in, const struct ir_opnode *op) {
  const void *x[3] = {NULL, NULL, NULL};
  for (uint32_t k = 0; k < op->n_in; k++)
    x[k] = val_buf(in, op->in[k]);
  if (!put_constant(in, op->out[0]))
    cells_algebra_elem(op->opcode, val_dtype(in, op->out[0]), val_elems(in, op->out[0]), x[0], x[1],
                       x[2], val_buf(in, op->out[0]));
}

/* Between floats: the payload. To integers: clamped to their range, as casts of integers do, so
 * that a detour over floats changes nothing. From integers: the number. */
void cells_algebra_cast(enum dtype from, enum dtype to, size_t n, const void *x, void *o) {
  if (from == DT_BOOL) {
    const uint8_t *p = x;
    EACH(int64_t, p[i]);
    return;
  }
  const int64_t *p = x;
  struct int_range r;
  switch (cell_kind(INTERP_ALGEBRAIC, to)) {
  case CELL_PAYLOAD: memcpy(o, x, n * sizeof *p); break;
  case CELL_BOOL: EACH(uint8_t, p[i] != 0); break;
  case CELL_INT:
    r = interp_int_range(to);
    EACH(int64_t, p[i] == NOT_A_NUM ? 0 : p[i] < r.lo ? r.lo : p[i] > r.hi ? r.hi : p[i]);
    break;
  case CELL_FLOAT:
  case CELL_DOUBLE: KILN_ASSERT(false); break; /* no cells of this domain */
  }
}

void interp_algebra_cast(struct interp *in, const struct ir_opnode *op) {
  if (!put_constant(in, op->out[0]))
    cells_algebra_cast(val_dtype(in, op->in[0]), val_dtype(in, op->out[0]),
                       val_elems(in, op->out[0]), val_buf(in, op->in[0]), val_buf(in, op->out[0]));
}

/* ---- sums, extremes, dot ---- */

/* A sum in any order: the ring's, and apart from it what infinities and NaNs make of it. */
struct sum {
  uint64_t ring;
  int64_t special; /* 0: none was met */
};

static void put(struct sum *s, int64_t x) {
  if (!is_special(x))
    s->ring += U64(x);
  else
    s->special = s->special ? add_special(s->special, x) : x;
}
static int64_t total(const struct sum *s) {
  return s->special ? s->special : (int64_t)s->ring;
}

void interp_algebra_reduce(enum ir_opcode opcode, size_t n, size_t inner, const int64_t *x,
                           int64_t *o) {
  for (size_t j = 0; j < inner; j++) {
    struct sum s = {0};
    int64_t best = x[j];
    for (size_t k = 0; k < n; k++) {
      int64_t v = x[k * inner + j];
      if (opcode == IR_REDUCE_SUM)
        put(&s, v);
      else
        best = opcode == IR_REDUCE_MAX ? greater(best, v) : lesser(best, v);
    }
    o[j] = opcode == IR_REDUCE_SUM ? total(&s) : best;
  }
}

void interp_algebra_scan(size_t n, size_t step, const int64_t *x, int64_t *o) {
  struct sum s = {0};
  for (size_t k = 0; k < n * step; k += step) {
    put(&s, x[k]);
    o[k] = total(&s);
  }
}

static bool any_special(size_t n, const int64_t *x) {
  bool any = false;
  for (size_t i = 0; i < n; i++)
    any |= is_special(x[i]);
  return any;
}

void interp_algebra_dot(size_t m, size_t k_n, size_t n, const int64_t *a, const int64_t *b,
                        const int64_t *first, int64_t *o) {
  if (any_special(m * k_n, a) || any_special(k_n * n, b)) {
    for (size_t i = 0; i < m; i++)
      for (size_t j = 0; j < n; j++) {
        struct sum s = {0};
        for (size_t k = 0; k < k_n; k++)
          put(&s, mul(a[i * k_n + k], b[k * n + j]));
        o[i * n + j] = add(first[i * n + j], total(&s));
      }
    return;
  }
  for (size_t i = 0; i < m; i++) {
    int64_t *row = o + i * n;
    memset(row, 0, n * sizeof *row);
    for (size_t k = 0; k < k_n; k++) {
      uint64_t av = U64(a[i * k_n + k]);
      for (size_t j = 0; j < n; j++)
        row[j] = (int64_t)(U64(row[j]) + av * U64(b[k * n + j]));
    }
    for (size_t j = 0; j < n; j++)
      row[j] = add(first[i * n + j], row[j]);
  }
}

/* ---- constants ---- */

static bool same_constant(const struct ir_constant *a, const struct ir_constant *b) {
  return a->i == b->i && memcmp(&a->f, &b->f, sizeof a->f) == 0;
}

static void set_constant(struct interp *in, struct ir_val to, const struct ir_constant *k) {
  in->is_constant[to.id] = true;
  in->constant[to.id] = *k;
}

static void take_constant(struct interp *in, struct ir_val to, struct ir_val from) {
  if (in->is_constant[from.id])
    set_constant(in, to, &in->constant[from.id]);
}

static void find_in_block(struct interp *in, struct ir_block b);

static const struct ir_opnode *end_of(const struct ir_module *m, struct ir_block b) {
  return ir_op_at(m, ir_block_at(m, b)->last);
}

/* Results of a conditional: of the branch that a constant takes, or what both sides agree on. */
static void find_in_if(struct interp *in, const struct ir_opnode *op) {
  const struct ir_opnode *x = end_of(in->m, op->blocks[0]), *y = end_of(in->m, op->blocks[1]);
  bool known = in->is_constant[op->in[0].id];
  for (uint32_t k = 0; k < op->n_out; k++) {
    struct ir_val a = x->in[k], b = y->in[k];
    if (known)
      take_constant(in, op->out[k], in->constant[op->in[0].id].i ? a : b);
    else if (in->is_constant[a.id] && in->is_constant[b.id] &&
             same_constant(&in->constant[a.id], &in->constant[b.id]))
      take_constant(in, op->out[k], a);
  }
}

/* Carried values that never change, and those of a loop that never runs. */
static void find_in_for(struct interp *in, const struct ir_opnode *op) {
  const struct ir_blocknode *body = ir_block_at(in->m, op->blocks[0]);
  const struct ir_opnode *end = end_of(in->m, op->blocks[0]);
  bool never = op->in[0].id == op->in[1].id ||
               (in->is_constant[op->in[0].id] && in->is_constant[op->in[1].id] &&
                in->constant[op->in[0].id].i >= in->constant[op->in[1].id].i);
  for (uint32_t k = 0; k < op->n_out; k++) {
    struct ir_val arg = body->args.at[1 + k], init = op->in[3 + k];
    bool stays = end->in[k].id == arg.id || end->in[k].id == init.id;
    if (stays)
      take_constant(in, arg, init);
    if (stays || never)
      take_constant(in, op->out[k], init);
  }
  find_in_block(in, op->blocks[0]);
}

static void find_in_elem(struct interp *in, const struct ir_opnode *op) {
  struct ir_constant k[3] = {{0}}, r;
  bool all = true;
  for (uint32_t i = 0; i < op->n_in; i++) {
    all = all && in->is_constant[op->in[i].id];
    k[i] = in->constant[op->in[i].id];
  }
  if (op->opcode == IR_SELECT && in->is_constant[op->in[0].id])
    take_constant(in, op->out[0], op->in[k[0].i ? 1 : 2]);
  else if (op->opcode == IR_SELECT && in->is_constant[op->in[1].id] &&
           in->is_constant[op->in[2].id] && same_constant(&k[1], &k[2]))
    take_constant(in, op->out[0], op->in[1]);
  else if (all && ir_fold(op->opcode, val_dtype(in, op->out[0]), k, &r))
    set_constant(in, op->out[0], &r);
}

static void find_in_op(struct interp *in, struct ir_op o) {
  const struct ir_opnode *op = ir_op_at(in->m, o);
  struct ir_constant k;
  switch ((int)op->opcode) {
  case IR_CONST:
    if (ir_constant_of(in->m, op->out[0], &k))
      set_constant(in, op->out[0], &k);
    return;
  case IR_SPLAT:
  case IR_BROADCAST:
  case IR_RESHAPE:
  case IR_TRANSPOSE:
  case IR_ITEM:
  case IR_CONVERT:
  case IR_EXTRACT:
  case IR_REDUCE_MAX:
  case IR_REDUCE_MIN:
  case IR_REDUCE_ANY:
  case IR_REDUCE_ALL: take_constant(in, op->out[0], op->in[0]); return;
  case IR_CONCAT:
    if (op->n_in == 1)
      take_constant(in, op->out[0], op->in[0]);
    return;
  case IR_MERGE:
    for (uint32_t i = 0; i < op->n_out; i++)
      take_constant(in, op->out[i], op->in[i]);
    return;
  case IR_FOR: find_in_for(in, op); return;
  case IR_IF:
    find_in_block(in, op->blocks[0]);
    find_in_block(in, op->blocks[1]);
    find_in_if(in, op);
    return;
  case IR_WHILE:
    find_in_block(in, op->blocks[0]);
    find_in_block(in, op->blocks[1]);
    return;
  default:
    if (interp_is_elem(op->opcode) || op->opcode == IR_CAST)
      find_in_elem(in, op);
  }
}

static void find_in_block(struct interp *in, struct ir_block b) {
  IR_EACH_OP (in->m, b, o)
    find_in_op(in, o);
}

struct missing {
  struct interp *in;
  struct ir_op op;
};

static void look_for_missing(void *user, struct ir_module *m, struct ir_op o) {
  struct missing *x = user;
  if (!x->op.id && rules[ir_op_at(m, o)->opcode] == NO_RULE)
    x->op = o;
}

bool interp_algebra_begin(struct interp *in) {
  struct missing x = {.in = in};
  ir_walk((struct ir_module *)(uintptr_t)in->m, in->m->body, look_for_missing, &x);
  if (x.op.id) {
    interp_fail(in, x.op, DIAG_INTERNAL, "'%s' has no rule in the algebraic domain",
                ir_info(ir_op_at(in->m, x.op)->opcode)->name);
    return false;
  }
  in->constant = ARENA_ARRAY(in->arena, struct ir_constant, in->m->values.n);
  in->is_constant = ARENA_ARRAY(in->arena, bool, in->m->values.n);
  find_in_block(in, in->m->body);
  return true;
}
