/* Intervals and divisors; see interval.h. Arithmetic on bounds is done in 128 bits: whether a
 * result leaves its type is seen, and then either it may wrap (only low zero bits stay known) or,
 * for index, it is taken not to. */
#include "ir/interval.h"

#include "base/check.h"
#include "ir/passes.h"
#include "ir/range.h"
#include "ir/rules.h"

#define MAX_LOOP_DEPTH 3 /* loops nested deeper carry anything */
#define MAX_ROUNDS     6 /* of a loop before what still moves is given up */

__extension__ typedef __int128 wide;

struct walk {
  const struct ir_module *m;
  struct ir_interval *of;
};

/* ---- intervals ---- */

struct ir_interval ir_interval_all(enum dtype t) {
  struct ir_interval r = {INT64_MIN, INT64_MAX, 1};
  unsigned bits = dtype_bits(t);
  if (dtype_is_float(t) || (bits == 64 && t != DT_BOOL))
    return r;
  if (t == DT_BOOL)
    return (struct ir_interval){0, 1, 1};
  bool is_unsigned = dtype_kind(t) == DTK_UINT;
  r.lo = is_unsigned ? 0 : -(INT64_C(1) << (bits - 1));
  r.hi = is_unsigned ? (INT64_C(1) << bits) - 1 : (INT64_C(1) << (bits - 1)) - 1;
  return r;
}

static int64_t pow2_part(int64_t d) {
  return d & -d; /* of 0: 0 */
}

static struct ir_interval single(int64_t x) {
  return (struct ir_interval){x, x, x == INT64_MIN ? INT64_C(1) << 62 : x < 0 ? -x : x};
}

/* Of a result that, without wrapping, lies in [lo, hi] and is divisible by div. */
static struct ir_interval result(enum dtype t, wide lo, wide hi, int64_t div) {
  struct ir_interval all = ir_interval_all(t), r = {all.lo, all.hi, div};
  if (t != DT_INDEX && (lo < all.lo || hi > all.hi)) {
    r.div = pow2_part(div);
    return r;
  }
  r.lo = lo < all.lo ? all.lo : lo > all.hi ? all.hi : (int64_t)lo;
  r.hi = hi > all.hi ? all.hi : hi < all.lo ? all.lo : (int64_t)hi;
  if (r.lo == r.hi)
    return single(r.lo);
  if (r.div == 0)
    return single(0);
  return r;
}

static struct ir_interval join(struct ir_interval a, struct ir_interval b) {
  return (struct ir_interval){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi,
                              ir_gcd(a.div, b.div)};
}

static bool same(struct ir_interval a, struct ir_interval b) {
  return a.lo == b.lo && a.hi == b.hi && a.div == b.div;
}

static wide least(const wide *x, int n) {
  wide r = x[0];
  for (int i = 1; i < n; i++)
    r = x[i] < r ? x[i] : r;
  return r;
}

static wide most(const wide *x, int n) {
  wide r = x[0];
  for (int i = 1; i < n; i++)
    r = x[i] > r ? x[i] : r;
  return r;
}

/* A product of divisors, or one of them where that is too large. */
static int64_t times(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_mul_overflow(a, b, &r) ? (a > b ? a : b) : r;
}

static wide floor_div(wide a, wide b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* The least 2^k - 1 that is at least x >= 0. */
static int64_t mask_over(int64_t x) {
  uint64_t m = (uint64_t)x;
  for (unsigned s = 1; s < 64; s *= 2)
    m |= m >> s;
  return (int64_t)m;
}

/* ---- elementwise ops ---- */

static struct ir_interval multiply(enum dtype t, struct ir_interval a, struct ir_interval b) {
  wide p[4] = {(wide)a.lo * b.lo, (wide)a.lo * b.hi, (wide)a.hi * b.lo, (wide)a.hi * b.hi};
  return result(t, least(p, 4), most(p, 4), times(a.div, b.div));
}

static struct ir_interval divide(enum dtype t, struct ir_interval a, struct ir_interval b) {
  if (b.lo < 1) { /* it may be 0, which gives 0; the size never grows */
    wide size[2] = {-(wide)a.lo, a.hi};
    wide n = most(size, 2);
    n = n < 0 ? -n : n;
    return result(t, -n, n, 1);
  }
  wide q[4] = {floor_div(a.lo, b.lo), floor_div(a.lo, b.hi), floor_div(a.hi, b.lo),
               floor_div(a.hi, b.hi)};
  int64_t div = b.lo == b.hi && a.div % b.lo == 0 ? a.div / b.lo : 1;
  return result(t, least(q, 4), most(q, 4), div);
}

static struct ir_interval modulo(enum dtype t, struct ir_interval a, struct ir_interval b) {
  int64_t div = ir_gcd(a.div, b.div);
  if (a.lo >= 0 && b.lo > a.hi)
    return a;
  if (b.lo == b.hi && b.lo != 0 && a.div % b.lo == 0)
    return single(0);
  wide lo = b.lo < 0 ? (wide)b.lo + 1 : 0, hi = b.hi > 0 ? (wide)b.hi - 1 : 0;
  if (a.lo >= 0 && b.lo >= 0 && a.hi < hi)
    hi = a.hi;
  return result(t, lo, hi, div);
}

static struct ir_interval bits(enum ir_opcode o, enum dtype t, struct ir_interval a,
                               struct ir_interval b) {
  struct ir_interval all = ir_interval_all(t);
  int64_t pa = pow2_part(a.div), pb = pow2_part(b.div);
  bool both = a.lo >= 0 && b.lo >= 0;
  if (o == IR_AND) {
    int64_t hi = a.lo < 0 ? b.hi : b.lo < 0 ? a.hi : a.hi < b.hi ? a.hi : b.hi;
    int64_t div = !pa || !pb ? 0 : pa > pb ? pa : pb;
    if (t == DT_BOOL)
      return result(t, a.lo & b.lo, hi, 1);
    return a.lo >= 0 || b.lo >= 0 ? result(t, 0, hi, div) : result(t, all.lo, all.hi, div);
  }
  int64_t div = !pa ? pb : !pb ? pa : pa < pb ? pa : pb;
  int64_t hi = both ? mask_over(a.hi | b.hi) : all.hi;
  int64_t lo = !both ? all.lo : o == IR_XOR ? 0 : a.lo > b.lo ? a.lo : b.lo;
  if (t == DT_BOOL && o == IR_XOR && a.lo == a.hi && b.lo == b.hi)
    return single(a.lo ^ b.lo);
  return result(t, lo, hi, div);
}

static struct ir_interval shift(enum ir_opcode o, enum dtype t, struct ir_interval a,
                                struct ir_interval b) {
  int64_t width = dtype_bits(t);
  bool fixed = b.lo == b.hi && b.lo >= 0 && b.lo < width;
  if (o == IR_SHR) {
    if (fixed)
      return result(t, a.lo >> b.lo, a.hi >> b.lo, 1);
    return result(t, a.lo < 0 ? a.lo : 0, a.hi < 0 ? -1 : a.hi, 1);
  }
  struct ir_interval all = ir_interval_all(t);
  if (fixed && b.lo < 63) {
    wide lo = (wide)a.lo * ((wide)1 << b.lo), hi = (wide)a.hi * ((wide)1 << b.lo);
    if (lo >= all.lo && hi <= all.hi)
      return result(t, lo, hi, times(a.div, INT64_C(1) << b.lo));
  }
  all.div = pow2_part(a.div); /* bits go out above, zeros come in below */
  return all.div ? all : single(0);
}

static struct ir_interval compare(enum ir_opcode o, struct ir_interval a, struct ir_interval b) {
  bool below = a.hi<b.lo, above = a.lo> b.hi;
  bool at_most = a.hi <= b.lo, at_least = a.lo >= b.hi;
  bool equal = a.lo == a.hi && b.lo == b.hi && a.lo == b.lo, differ = below || above;
  bool yes, no;
  switch ((int)o) {
  case IR_EQ: yes = equal, no = differ; break;
  case IR_NE: yes = differ, no = equal; break;
  case IR_LT: yes = below, no = at_least; break;
  case IR_LE: yes = at_most, no = above; break;
  case IR_GT: yes = above, no = at_most; break;
  default: yes = at_least, no = below; break;
  }
  return yes ? single(1) : no ? single(0) : ir_interval_all(DT_BOOL);
}

/* Clamps; to bool: is it not 0? */
static struct ir_interval cast(enum dtype t, struct ir_interval a) {
  struct ir_interval all = ir_interval_all(t);
  if (t == DT_BOOL)
    return a.lo > 0 || a.hi < 0 ? single(1) : a.div == 0 ? single(0) : all;
  if (a.lo >= all.lo && a.hi <= all.hi)
    return a;
  wide lo = a.lo < all.lo ? all.lo : a.lo > all.hi ? all.hi : a.lo;
  wide hi = a.hi > all.hi ? all.hi : a.hi < all.lo ? all.lo : a.hi;
  return result(t, lo, hi, 1);
}

static struct ir_interval arithmetic(enum ir_opcode o, enum dtype t, struct ir_interval a,
                                     struct ir_interval b) {
  struct ir_interval all = ir_interval_all(t);
  int64_t div = ir_gcd(a.div, b.div);
  switch ((int)o) {
  case IR_ADD: return result(t, (wide)a.lo + b.lo, (wide)a.hi + b.hi, div);
  case IR_SUB: return result(t, (wide)a.lo - b.hi, (wide)a.hi - b.lo, div);
  case IR_MUL: return multiply(t, a, b);
  case IR_FLOORDIV: return divide(t, a, b);
  case IR_MOD: return modulo(t, a, b);
  case IR_MIN: return result(t, a.lo < b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi, div);
  case IR_MAX: return result(t, a.lo > b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi, div);
  case IR_NEG: return result(t, -(wide)a.hi, -(wide)a.lo, a.div);
  case IR_ABS: {
    wide ends[3] = {-(wide)a.lo, a.hi, 0};
    wide low = a.lo > 0 ? (wide)a.lo : a.hi < 0 ? -(wide)a.hi : 0;
    return result(t, low, most(ends, 3), a.div);
  }
  case IR_AND:
  case IR_OR:
  case IR_XOR: return bits(o, t, a, b);
  case IR_NOT:
    if (t == DT_BOOL || dtype_kind(t) == DTK_UINT)
      return result(t, (wide)all.hi - a.hi, (wide)all.hi - a.lo, 1);
    return result(t, -1 - (wide)a.hi, -1 - (wide)a.lo, 1);
  case IR_SHL:
  case IR_SHR: return shift(o, t, a, b);
  default: return all;
  }
}

/* ---- launch expressions ---- */

struct ir_interval ir_interval_of_expr(const struct ir_module *m, struct expr e) {
  int64_t value;
  struct ir_interval all = ir_interval_all(DT_INDEX);
  if (!e.id)
    return all;
  if (ir_expr_value(m, e, &value))
    return single(value);
  all.div = ir_expr_divisor(m, e);
  const struct expr_node *n = expr_at(&m->exprs, e);
  if (n->op == EXPR_SYM)
    for (uint32_t i = 0; i < m->dims.n; i++)
      if (m->dims.at[i].id == n->sym.id)
        all.lo = 0;
  return all;
}

/* The last program index of a grid axis. */
static int64_t last_program(const struct ir_module *m, uint32_t axis) {
  int64_t n;
  return ir_expr_value(m, m->grid[axis], &n) && n > 0 ? n - 1 : INT64_MAX;
}

static struct ir_interval entry(const struct ir_module *m, struct ir_val v) {
  struct ir_interval r = ir_interval_all((enum dtype)ir_type_of(m, v).dtype);
  struct ir_entry e = ir_entry_of(m, v);
  int64_t value;
  if (e.kind == IR_ENTRY_GRID)
    return result(DT_INDEX, 0, last_program(m, e.index), 1);
  if (e.kind != IR_ENTRY_DIM)
    return r;
  if (ir_val_const(m, v, &value))
    return single(value);
  r.lo = 0;
  r.div = ir_sym_divisor(m, m->dims.at[e.index]);
  return r;
}

/* ---- ops ---- */

static struct ir_interval get(const struct walk *w, struct ir_val v) {
  return w->of[v.id];
}

static bool is_integer(const struct ir_module *m, struct ir_val v) {
  struct ir_type t = ir_type_of(m, v);
  return (t.kind == IR_SCALAR || t.kind == IR_TILE) && !dtype_is_float((enum dtype)t.dtype);
}

static int64_t extent(const struct walk *w, struct ir_op o, struct ir_val v) {
  return ir_type_of(w->m, v).dim[ir_attr_int(w->m, o, IR_ATTR_axis, 0)];
}

static struct ir_interval sum_of(enum dtype t, struct ir_interval a, wide least_n, wide most_n) {
  wide lo[2] = {a.lo * least_n, a.lo * most_n}, hi[2] = {a.hi * least_n, a.hi * most_n};
  return result(t, least(lo, 2), most(hi, 2), a.div);
}

static struct ir_interval dot(const struct walk *w, const struct ir_opnode *n, enum dtype t) {
  if (dtype_is_float((enum dtype)ir_type_of(w->m, n->in[0]).dtype))
    return ir_interval_all(t);
  struct ir_interval p = multiply(DT_S64, get(w, n->in[0]), get(w, n->in[1]));
  struct ir_interval c = get(w, n->in[2]);
  wide k = ir_type_of(w->m, n->in[0]).dim[1];
  return result(t, p.lo * k + c.lo, p.hi * k + c.hi, ir_gcd(p.div, c.div));
}

/* Of the one result of an op without blocks. */
static struct ir_interval visit(const struct walk *w, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(w->m, o);
  enum dtype t = (enum dtype)ir_type_of(w->m, n->out[0]).dtype;
  struct ir_interval all = ir_interval_all(t), a = all, b = all;
  if (n->n_in > 0 && is_integer(w->m, n->in[0]))
    a = get(w, n->in[0]);
  if (n->n_in > 1 && is_integer(w->m, n->in[1]))
    b = get(w, n->in[1]);
  switch ((int)n->opcode) {
  case IR_CONST: return single(ir_attr_int(w->m, o, IR_ATTR_value, 0));
  case IR_IOTA: return result(t, 0, ir_elems(ir_type_of(w->m, n->out[0])) - 1, 1);
  case IR_SPLAT:
  case IR_BROADCAST:
  case IR_RESHAPE:
  case IR_TRANSPOSE:
  case IR_ITEM:
  case IR_EXTRACT:
  case IR_CONVERT:
  case IR_REDUCE_MAX:
  case IR_REDUCE_MIN:
  case IR_REDUCE_ANY:
  case IR_REDUCE_ALL: return a;
  case IR_CONCAT:
    for (uint32_t i = 1; i < n->n_in; i++)
      a = join(a, get(w, n->in[i]));
    return a;
  case IR_SELECT:
    if (a.lo == a.hi)
      return get(w, n->in[a.lo ? 1 : 2]);
    return join(get(w, n->in[1]), get(w, n->in[2]));
  case IR_CAST: return is_integer(w->m, n->in[0]) ? cast(t, a) : all;
  case IR_REDUCE_SUM: {
    wide k = extent(w, o, n->in[0]);
    return sum_of(t, a, k, k);
  }
  case IR_SCAN_SUM: return sum_of(t, a, 1, extent(w, o, n->in[0]));
  case IR_ARGMAX:
  case IR_ARGMIN: return result(t, 0, extent(w, o, n->in[0]) - 1, 1);
  case IR_DOT: return dot(w, n, t);
  case IR_DIM: {
    int64_t size = ir_type_of(w->m, n->in[0]).dim[ir_attr_int(w->m, o, IR_ATTR_axis, 0)];
    return size == IR_DYN ? result(t, 0, INT64_MAX, 1) : single(size);
  }
  default: break;
  }
  switch ((int)ir_info(n->opcode)->rule) {
  case IR_RULE_compare: return is_integer(w->m, n->in[0]) ? compare(n->opcode, a, b) : all;
  case IR_RULE_arith:
  case IR_RULE_int_arith:
  case IR_RULE_bits: return arithmetic(n->opcode, t, a, b);
  default: return all;
  }
}

/* ---- control ---- */

static void set(struct walk *w, struct ir_val v, struct ir_interval r) {
  if (is_integer(w->m, v))
    w->of[v.id] = r;
}

static void set_all(struct walk *w, struct ir_val v) {
  set(w, v, ir_interval_all((enum dtype)ir_type_of(w->m, v).dtype));
}

static const struct ir_opnode *end_of(const struct walk *w, struct ir_block b) {
  return ir_op_at(w->m, ir_block_at(w->m, b)->last);
}

static void visit_block(struct walk *w, struct ir_block b, uint32_t loops);

/* Joins what comes back to a loop's arguments with what they were. Bounds that move after the first
 * round are given up, and everything after MAX_ROUNDS. True: nothing moved. */
static bool close_loop(struct walk *w, uint32_t n, const struct ir_val *arg,
                       const struct ir_val *back, int round) {
  bool settled = true;
  for (uint32_t i = 0; i < n; i++) {
    if (!is_integer(w->m, arg[i]))
      continue;
    struct ir_interval old = get(w, arg[i]), now = join(old, get(w, back[i]));
    struct ir_interval all = ir_interval_all((enum dtype)ir_type_of(w->m, arg[i]).dtype);
    if (round > 0) {
      now.lo = now.lo != old.lo ? all.lo : now.lo;
      now.hi = now.hi != old.hi ? all.hi : now.hi;
    }
    settled = settled && same(old, now);
    set(w, arg[i], now);
  }
  for (uint32_t i = 0; i < n && !settled && round >= MAX_ROUNDS; i++)
    set_all(w, arg[i]);
  return settled;
}

static void visit_for(struct walk *w, const struct ir_opnode *n, uint32_t loops) {
  const struct ir_blocknode *b = ir_block_at(w->m, n->blocks[0]);
  const struct ir_opnode *yield = end_of(w, n->blocks[0]);
  struct ir_interval lo = get(w, n->in[0]), hi = get(w, n->in[1]), step = get(w, n->in[2]);
  wide last = (wide)hi.hi - 1;
  /* The last index is lo + k * step, if all that is known. */
  if (lo.lo == lo.hi && step.lo == step.hi && step.lo > 0 && last >= lo.lo)
    last = lo.lo + (last - lo.lo) / step.lo * step.lo;
  bool may_run = last >= lo.lo, runs = lo.hi < hi.lo;
  enum dtype t = (enum dtype)ir_type_of(w->m, b->args.at[0]).dtype;
  set(w, b->args.at[0],
      result(t, lo.lo, may_run ? last : lo.lo, may_run ? ir_gcd(lo.div, step.div) : 1));
  const struct ir_val *arg = b->args.at + 1, *init = n->in + 3;
  for (uint32_t i = 0; i < n->n_out; i++) {
    if (loops >= MAX_LOOP_DEPTH)
      set_all(w, arg[i]);
    else
      set(w, arg[i], get(w, init[i]));
  }
  int round = 0;
  do
    visit_block(w, n->blocks[0], loops + 1);
  while (!close_loop(w, n->n_out, arg, yield->in, round++));
  for (uint32_t i = 0; i < n->n_out; i++)
    set(w, n->out[i], runs ? get(w, yield->in[i]) : get(w, arg[i]));
}

static void visit_while(struct walk *w, const struct ir_opnode *n, uint32_t loops) {
  const struct ir_blocknode *test = ir_block_at(w->m, n->blocks[0]);
  const struct ir_blocknode *body = ir_block_at(w->m, n->blocks[1]);
  const struct ir_opnode *passed = end_of(w, n->blocks[0]), *yield = end_of(w, n->blocks[1]);
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (loops >= MAX_LOOP_DEPTH)
      set_all(w, test->args.at[i]);
    else
      set(w, test->args.at[i], get(w, n->in[i]));
  }
  int round = 0;
  do {
    visit_block(w, n->blocks[0], loops + 1);
    for (uint32_t i = 0; i < body->args.n; i++)
      set(w, body->args.at[i], get(w, passed->in[i + 1]));
    visit_block(w, n->blocks[1], loops + 1);
  } while (!close_loop(w, n->n_in, test->args.at, yield->in, round++));
  for (uint32_t i = 0; i < n->n_out; i++)
    set(w, n->out[i], get(w, passed->in[i + 1]));
}

static void visit_if(struct walk *w, const struct ir_opnode *n, uint32_t loops) {
  struct ir_interval c = get(w, n->in[0]);
  visit_block(w, n->blocks[0], loops);
  visit_block(w, n->blocks[1], loops);
  const struct ir_opnode *yes = end_of(w, n->blocks[0]), *no = end_of(w, n->blocks[1]);
  for (uint32_t i = 0; i < n->n_out; i++) {
    struct ir_interval a = get(w, yes->in[i]), b = get(w, no->in[i]);
    set(w, n->out[i], c.lo > 0 ? a : c.hi < 1 ? b : join(a, b));
  }
}

static void visit_op(struct walk *w, struct ir_op o, uint32_t loops) {
  const struct ir_opnode *n = ir_op_at(w->m, o);
  switch ((int)n->opcode) {
  case IR_FOR: visit_for(w, n, loops); return;
  case IR_WHILE: visit_while(w, n, loops); return;
  case IR_IF: visit_if(w, n, loops); return;
  default: break;
  }
  if (n->n_out == 1 && !n->n_blocks && is_integer(w->m, n->out[0])) {
    set(w, n->out[0], visit(w, o));
    return;
  }
  /* What is not known here gives anything; a merge gives its operands on. */
  for (uint32_t i = 0; i < n->n_blocks; i++) {
    const struct ir_blocknode *b = ir_block_at(w->m, n->blocks[i]);
    for (uint32_t k = 0; k < b->args.n; k++)
      set_all(w, b->args.at[k]);
    visit_block(w, n->blocks[i], loops);
  }
  for (uint32_t i = 0; i < n->n_out; i++) {
    set_all(w, n->out[i]);
    if (n->opcode == IR_MERGE)
      set(w, n->out[i], get(w, n->in[i]));
  }
}

static void visit_block(struct walk *w, struct ir_block b, uint32_t loops) {
  for (struct ir_op o = ir_block_at(w->m, b)->first; o.id; o = ir_op_at(w->m, o)->next)
    visit_op(w, o, loops);
}

struct ir_intervals *ir_find_intervals(const struct ir_module *m, struct arena *a) {
  struct ir_intervals *r = ARENA_NEW(a, struct ir_intervals);
  r->m = m;
  r->n = m->values.n;
  r->of = ARENA_ARRAY(a, struct ir_interval, m->values.n);
  struct walk w = {.m = m, .of = r->of};
  for (uint32_t i = 0; i < m->values.n; i++)
    r->of[i] = ir_interval_all(DT_INDEX);
  const struct ir_blocknode *body = ir_block_at(m, m->body);
  for (uint32_t i = 0; i < body->args.n; i++)
    set(&w, body->args.at[i], entry(m, body->args.at[i]));
  visit_block(&w, m->body, 0);
  return r;
}
