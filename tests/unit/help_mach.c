/* Executes machine IR on the host; see help_mach.h. */
#include "help_mach.h"

#include "base/num.h"
#include "base/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A scalar: integers, bools and pointers in i; floats in f, exactly a value of their dtype. */
struct cell {
  int64_t i;
  double f;
};

/* A byte of shared memory: who touched it since which barrier. */
struct shadow {
  int32_t writer, reader; /* thread, -1 none, -2 several */
  int32_t w_epoch, r_epoch;
  int32_t in_flight; /* copies that are still to write it */
};

struct copy {
  uint32_t to, bytes;
  uint8_t data[16];
  int group; /* of its thread */
};

struct thread {
  VEC(struct copy) copies;
  int groups; /* committed */
};

struct mach {
  const struct ir_module *m;
  const struct mach_args *args;
  struct arena arena;
  struct oom_trap trap;
  jmp_buf fail;
  struct mach_result *r;
  uint32_t threads;
  int64_t block;
  struct cell *val;   /* [value][thread] */
  struct cell **frag; /* [resource] -> [thread][element] */
  bool **frag_set;
  uint32_t *frag_n;
  uint8_t *smem;
  struct shadow *shadow;
  uint32_t smem_bytes;
  int32_t epoch;
  struct thread *thread;
  struct ir_op at;
  uint8_t *workspace; /* aligned to 256 bytes */
  int64_t workspace_bytes;
  uint32_t *arg_of; /* per argument of the recipe: the module's, scratch left out */
};

static void fail(struct mach *x, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn));
static void fail(struct mach *x, const char *fmt, ...) {
  va_list ap;
  char text[300];
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  snprintf(x->r->error, sizeof x->r->error, "block %lld, %s: %s", (long long)x->block,
           x->at.id ? ir_info(ir_op_at(x->m, x->at)->opcode)->name : "launch", text);
  x->r->ok = false;
  longjmp(x->fail, 1);
}

static enum dtype dtype_of(const struct mach *x, struct ir_val v) {
  return (enum dtype)ir_type_of(x->m, v).dtype;
}

static struct cell *cell(struct mach *x, struct ir_val v, uint32_t t) {
  return &x->val[(size_t)v.id * x->threads + t];
}

/* ---- scalar arithmetic ---- */

static int64_t wrap(enum dtype t, int64_t v) {
  switch (dtype_bits(t)) {
  case 4: return t == DT_U4 ? v & 15 : (v & 15) - 2 * (v & 8);
  case 8: return t == DT_BOOL ? v != 0 : t == DT_U8 ? (uint8_t)v : (int8_t)v;
  case 32: return (int32_t)v;
  default: return v;
  }
}

static int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0)
    return 0;
  if (b == -1)
    return (int64_t)(0 - (uint64_t)a);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static bool less(double a, double b) {
  return a < b || (a == b && signbit(a) && !signbit(b));
}

static double float_op(struct mach *x, enum ir_opcode o, enum dtype t, double a, double b,
                       double c) {
  bool f32 = t != DT_F64;
  float fa = (float)a, fb = (float)b, fc = (float)c;
  switch ((int)o) {
  case IR_ADD: return f32 ? (double)(fa + fb) : a + b;
  case IR_SUB: return f32 ? (double)(fa - fb) : a - b;
  case IR_MUL: return f32 ? (double)(fa * fb) : a * b;
  case IR_DIV: return f32 ? (double)(fa / fb) : a / b;
  case IR_FMA: return f32 ? (double)fmaf(fa, fb, fc) : fma(a, b, c);
  case IR_MIN: return isnan(a) ? a : isnan(b) ? b : less(b, a) ? b : a;
  case IR_MAX: return isnan(a) ? a : isnan(b) ? b : less(a, b) ? b : a;
  case IR_NEG: return -a;
  case IR_ABS: return fabs(a);
  case IR_EXP: return exp(a);
  case IR_EXP2: return exp2(a);
  case IR_LOG: return log(a);
  case IR_LOG2: return log2(a);
  case IR_SQRT: return sqrt(a);
  case IR_RSQRT: return 1 / sqrt(a);
  case IR_TANH: return tanh(a);
  case IR_ERF: return erf(a);
  case IR_SIGMOID: return 1 / (1 + exp(-a));
  case IR_SIN: return sin(a);
  case IR_COS: return cos(a);
  case IR_FLOOR: return floor(a);
  case IR_CEIL: return ceil(a);
  case IR_ROUND: return rint(a);
  case IR_TRUNC: return trunc(a);
  default: fail(x, "no such float op");
  }
}

static int64_t int_op(struct mach *x, enum ir_opcode o, enum dtype t, int64_t a, int64_t b) {
  unsigned bits = dtype_bits(t);
  switch ((int)o) {
  case IR_ADD: return wrap(t, (int64_t)((uint64_t)a + (uint64_t)b));
  case IR_SUB: return wrap(t, (int64_t)((uint64_t)a - (uint64_t)b));
  case IR_MUL: return wrap(t, (int64_t)((uint64_t)a * (uint64_t)b));
  case IR_FLOORDIV: return wrap(t, floor_div(a, b));
  case IR_MOD: return b == 0 || b == -1 ? 0 : a - floor_div(a, b) * b;
  case IR_MIN: return a < b ? a : b;
  case IR_MAX: return a > b ? a : b;
  case IR_NEG: return wrap(t, (int64_t)(0 - (uint64_t)a));
  case IR_ABS: return a < 0 ? wrap(t, (int64_t)(0 - (uint64_t)a)) : a;
  case IR_AND: return wrap(t, a & b);
  case IR_OR: return wrap(t, a | b);
  case IR_XOR: return wrap(t, a ^ b);
  case IR_NOT: return t == DT_BOOL ? !a : wrap(t, ~a);
  case IR_SHL: return b < 0 || b >= bits ? 0 : wrap(t, (int64_t)((uint64_t)a << b));
  case IR_SHR: return b < 0 || b >= bits ? (a < 0 ? -1 : 0) : a >> b;
  default: fail(x, "no such integer op");
  }
}

static bool compare(enum ir_opcode o, double a, double b) {
  return o == IR_EQ   ? a == b
         : o == IR_NE ? a != b
         : o == IR_LT ? a < b
         : o == IR_LE ? a <= b
         : o == IR_GT ? a > b
                      : a >= b;
}

static bool compare_int(enum ir_opcode o, int64_t a, int64_t b) {
  return o == IR_EQ   ? a == b
         : o == IR_NE ? a != b
         : o == IR_LT ? a < b
         : o == IR_LE ? a <= b
         : o == IR_GT ? a > b
                      : a >= b;
}

static struct cell cast(enum dtype to, enum dtype from, struct cell c) {
  struct cell r = {0};
  if (dtype_is_float(from) && dtype_is_float(to))
    r.f = num_round(to, c.f);
  else if (dtype_is_float(to)) {
    uint64_t bits = 0;
    num_store_int(to, &bits, 0, c.i);
    r.f = num_load(to, &bits, 0);
  } else if (to == DT_BOOL) {
    r.i = dtype_is_float(from) ? c.f != 0 : c.i != 0;
  } else if (dtype_is_float(from)) {
    num_store(to, &r.i, 0, c.f);
    r.i = num_load_int(to, &r.i, 0);
  } else {
    int64_t bits = 0;
    num_store_int(to, &bits, 0, c.i);
    r.i = num_load_int(to, &bits, 0);
  }
  return r;
}

/* to_bits, from_bits: what memory would hold, zero-extended; the low bits of that. */
static struct cell bits(enum dtype to, enum dtype from, struct cell c) {
  uint64_t cell = 0;
  struct cell r = {0};
  if (dtype_is_float(from))
    num_store(from, &cell, 0, c.f);
  else
    num_store_int(from, &cell, 0, c.i);
  if (dtype_bits(from) == 4)
    cell &= 15;
  if (dtype_is_float(to))
    r.f = num_load(to, &cell, 0);
  else
    r.i = num_load_int(to, &cell, 0);
  return r;
}

static struct cell scalar(struct mach *x, struct ir_op o, uint32_t t) {
  const struct ir_opnode *n = ir_op_at(x->m, o);
  enum dtype out = dtype_of(x, n->out[0]), in = n->n_in ? dtype_of(x, n->in[0]) : out;
  struct cell c[3] = {{0}}, r = {0};
  for (uint32_t i = 0; i < n->n_in && i < 3; i++)
    c[i] = *cell(x, n->in[i], t);
  if (n->opcode == IR_SELECT)
    return c[0].i ? c[1] : c[2];
  if (n->opcode == IR_CAST)
    return cast(out, in, c[0]);
  if (n->opcode == IR_TO_BITS || n->opcode == IR_FROM_BITS)
    return bits(out, in, c[0]);
  if (n->opcode == IR_RANDOM) {
    int64_t word = ir_attr_int(x->m, o, IR_ATTR_word, 0);
    r.i = (int32_t)random_word((uint64_t)c[0].i, (uint64_t)c[1].i, (unsigned)word);
    return r;
  }
  if (n->opcode >= IR_EQ && n->opcode <= IR_GE)
    r.i = dtype_is_float(in) ? compare(n->opcode, c[0].f, c[1].f)
                             : compare_int(n->opcode, c[0].i, c[1].i);
  else if (dtype_is_float(out))
    r.f = num_round(out, float_op(x, n->opcode, out, c[0].f, c[1].f, c[2].f));
  else
    r.i = int_op(x, n->opcode, out, c[0].i, c[1].i);
  return r;
}

static int64_t digits(struct mach *x, struct ir_op o, int64_t v) {
  const struct ir_attr *map = ir_get_attr(x->m, o, IR_ATTR_map);
  int64_t sum = 0;
  for (uint32_t i = 0; i < map->n_ints; i += 2) {
    sum += v % map->ints[i] * map->ints[i + 1];
    v /= map->ints[i];
  }
  if (v)
    fail(x, "digits run over");
  return sum;
}

/* ---- memory ---- */

static struct cell load_cell(enum dtype t, const void *p, int64_t i) {
  struct cell c = {0};
  if (dtype_is_float(t))
    c.f = num_load(t, p, i);
  else
    c.i = num_load_int(t, p, i);
  return c;
}

static void store_cell(enum dtype t, void *p, int64_t i, enum dtype from, struct cell c) {
  c = cast(t, from, c);
  if (dtype_is_float(t))
    num_store(t, p, i, c.f);
  else
    num_store_int(t, p, i, c.i);
}

static void check_global(struct mach *x, int64_t at, size_t bytes) {
  if (at % (int64_t)bytes)
    fail(x, "address not aligned to %zu", bytes);
  for (uint32_t k = 0; k < x->args->n; k++) {
    int64_t lo = (int64_t)(intptr_t)x->args->base[k];
    if (lo && at >= lo && at + (int64_t)bytes <= lo + (int64_t)x->args->alloc[k])
      return;
  }
  int64_t lo = (int64_t)(intptr_t)x->workspace;
  if (lo && at >= lo && at + (int64_t)bytes <= lo + x->workspace_bytes)
    return;
  fail(x, "%zu bytes at %lld are outside every tensor", bytes, (long long)at);
}

static void touch(struct mach *x, uint32_t t, int64_t at, uint32_t bytes, bool write) {
  if (at < 0 || at + bytes > x->smem_bytes)
    fail(x, "thread %u: shared bytes %lld..%lld of %u", t, (long long)at, (long long)at + bytes,
         x->smem_bytes);
  if (at % bytes)
    fail(x, "thread %u: shared address %lld not aligned to %u", t, (long long)at, bytes);
  for (uint32_t i = 0; i < bytes; i++) {
    struct shadow *s = &x->shadow[at + i];
    bool wrote = s->w_epoch == x->epoch && s->writer != (int32_t)t && s->writer != -1;
    bool read = s->r_epoch == x->epoch && s->reader != (int32_t)t && s->reader != -1;
    if (s->in_flight)
      fail(x, "thread %u: shared byte %lld is still being copied", t, (long long)at + i);
    if (wrote || (write && read))
      fail(x, "thread %u %s shared byte %lld that thread %d %s with no barrier between", t,
           write ? "writes" : "reads", (long long)at + i, wrote ? s->writer : s->reader,
           wrote ? "wrote" : "read");
    if (write) {
      s->writer = (int32_t)t;
      s->w_epoch = x->epoch;
    } else {
      bool same = s->r_epoch == x->epoch && s->reader != -1 && s->reader != (int32_t)t;
      s->reader = same ? -2 : (int32_t)t;
      s->r_epoch = x->epoch;
    }
  }
}

static int64_t res_int(const struct ir_res *r, enum ir_attr_key key, int64_t otherwise) {
  for (uint32_t i = 0; i < r->n_attrs; i++)
    if (r->attrs[i].key == key)
      return r->attrs[i].i;
  return otherwise;
}

/* Address in shared memory of offset `in` of the op's buffer, which must hold `bytes` there. */
static int64_t buf_at(struct mach *x, struct ir_op o, struct ir_val in, uint32_t t,
                      uint32_t bytes) {
  const struct ir_opnode *n = ir_op_at(x->m, o);
  for (uint32_t i = 0; i < n->n_res; i++) {
    const struct ir_res *r = &x->m->res.at[n->res[i]];
    int64_t at = cell(x, in, t)->i;
    if (r->kind != IR_RES_BUF)
      continue;
    if (at < 0 || at + bytes > res_int(r, IR_ATTR_bytes, 0))
      fail(x, "thread %u: offset %lld in buffer %s of %lld bytes", t, (long long)at,
           ir_sym(x->m, r->name), (long long)res_int(r, IR_ATTR_bytes, 0));
    return at + res_int(r, IR_ATTR_offset, -1);
  }
  fail(x, "no buffer");
}

static bool is_true(struct mach *x, struct ir_val v, uint32_t t) {
  return cell(x, v, t)->i != 0;
}

/* Address of element i of what a pointer points to; elements of 4 bits: of its byte, and which half
 * of it. */
static void *elem_at(enum dtype t, int64_t at, uint32_t i, int64_t *half) {
  *half = dtype_bits(t) == 4 ? (at + i) % 2 : 0;
  return (void *)(intptr_t)(dtype_bits(t) == 4 ? (at + i) / 2 : at + i * dtype_bits(t) / 8);
}

static void check_elems(struct mach *x, enum dtype t, int64_t at, uint32_t n) {
  if (dtype_bits(t) == 4 && at % n)
    fail(x, "address not aligned to %u elements of 4 bits", n);
  if (dtype_bits(t) == 4)
    check_global(x, at / 2, n > 1 ? n / 2 : 1);
  else
    check_global(x, at, n * dtype_bits(t) / 8);
}

static void gload(struct mach *x, struct ir_op o, uint32_t t) {
  const struct ir_opnode *n = ir_op_at(x->m, o);
  enum dtype d = dtype_of(x, n->in[0]);
  int64_t at = cell(x, n->in[0], t)->i, half;
  bool mask = is_true(x, n->in[1], t);
  if (mask)
    check_elems(x, d, at, n->n_out);
  for (uint32_t i = 0; i < n->n_out; i++) {
    const void *p = elem_at(d, at, i, &half);
    *cell(x, n->out[i], t) = mask ? load_cell(d, p, half) : *cell(x, n->in[2], t);
  }
}

static void gstore(struct mach *x, struct ir_op o, uint32_t t) {
  const struct ir_opnode *n = ir_op_at(x->m, o);
  enum dtype d = dtype_of(x, n->in[0]);
  int64_t at = cell(x, n->in[0], t)->i, half;
  if (!is_true(x, n->in[1], t))
    return;
  check_elems(x, d, at, n->n_in - 2u);
  for (uint32_t i = 2; i < n->n_in; i++) {
    void *p = elem_at(d, at, i - 2, &half);
    store_cell(d, p, half, dtype_of(x, n->in[i]), *cell(x, n->in[i], t));
  }
}

/* Threads one after the other: each step is one. */
static void gatomic(struct mach *x, struct ir_op o, uint32_t t) {
  const struct ir_opnode *n = ir_op_at(x->m, o);
  enum dtype d = dtype_of(x, n->in[0]);
  const char *kind = ir_sym(x->m, ir_get_attr(x->m, o, IR_ATTR_kind)->s);
  static const struct {
    const char *kind;
    enum ir_opcode o;
  } ops[] = {{"add", IR_ADD}, {"min", IR_MIN}, {"max", IR_MAX},
             {"and", IR_AND}, {"or", IR_OR},   {"xor", IR_XOR}};
  void *at = (void *)(intptr_t)cell(x, n->in[0], t)->i;
  struct cell old = {0}, new = *cell(x, n->in[2], t);
  if (is_true(x, n->in[1], t)) {
    check_global(x, (int64_t)(intptr_t)at, dtype_bits(d) / 8);
    old = load_cell(d, at, 0);
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
      if (!str_eq(kind, ops[i].kind))
        continue;
      if (dtype_is_float(d))
        new.f = num_round(d, float_op(x, ops[i].o, d, old.f, new.f, 0));
      else
        new.i = int_op(x, ops[i].o, d, old.i, new.i);
    }
    store_cell(d, at, 0, d, new);
  }
  if (n->n_out)
    *cell(x, n->out[0], t) = old;
}

static void sload(struct mach *x, struct ir_op o, uint32_t t) {
  const struct ir_opnode *n = ir_op_at(x->m, o);
  enum dtype d = (enum dtype)x->m->res.at[n->res[0]].type.dtype;
  uint32_t size = (dtype_bits(d) + 4) / 8;
  int64_t at = buf_at(x, o, n->in[0], t, size * n->n_out);
  touch(x, t, at, size * n->n_out, false);
  for (uint32_t i = 0; i < n->n_out; i++)
    *cell(x, n->out[i], t) = load_cell(d, x->smem + at + i * size, 0);
}

static void sstore(struct mach *x, struct ir_op o, uint32_t t) {
  const struct ir_opnode *n = ir_op_at(x->m, o);
  enum dtype d = (enum dtype)x->m->res.at[n->res[0]].type.dtype;
  uint32_t size = (dtype_bits(d) + 4) / 8;
  if (!is_true(x, n->in[1], t))
    return;
  int64_t at = buf_at(x, o, n->in[0], t, size * (n->n_in - 2u));
  touch(x, t, at, size * (n->n_in - 2u), true);
  for (uint32_t i = 2; i < n->n_in; i++)
    store_cell(d, x->smem + at + (i - 2) * size, 0, dtype_of(x, n->in[i]), *cell(x, n->in[i], t));
}

/* 16-byte accesses of eight lanes go through in one phase if they hit the eight groups of four
 * banks once each. */
static void count_conflicts(struct mach *x, const int64_t *at, uint32_t n, int64_t *conflicts,
                            int64_t *rows) {
  uint32_t taken = 0;
  if (x->block)
    return;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t bit = 1u << (at[i] / 16 % 8);
    *conflicts += (taken & bit) != 0;
    taken |= bit;
  }
  *rows += n;
}

static void count_copies(struct mach *x, struct ir_op o, const bool *on) {
  const struct ir_opnode *n = ir_op_at(x->m, o);
  if (ir_attr_int(x->m, o, IR_ATTR_bytes, 0) != 16)
    return;
  for (uint32_t t = 0; t < x->threads; t += 8) {
    int64_t at[8];
    uint32_t k = 0;
    for (uint32_t i = 0; i < 8; i++)
      if (on[t + i] && is_true(x, n->in[3], t + i))
        at[k++] = buf_at(x, o, n->in[1], t + i, 16);
    count_conflicts(x, at, k, &x->r->copy_conflicts, &x->r->copy_rows);
  }
}

/* Data is read at once and lands at the wait. */
static void cp_async(struct mach *x, struct ir_op o, uint32_t t) {
  const struct ir_opnode *n = ir_op_at(x->m, o);
  uint32_t bytes = (uint32_t)ir_attr_int(x->m, o, IR_ATTR_bytes, 0);
  uint32_t size = dtype_bits(dtype_of(x, n->in[0])) / 8;
  int64_t from = cell(x, n->in[0], t)->i, valid = cell(x, n->in[2], t)->i * size;
  struct copy c = {.bytes = bytes, .group = x->thread[t].groups};
  if (!is_true(x, n->in[3], t))
    return;
  int64_t at = buf_at(x, o, n->in[1], t, bytes);
  if (valid < 0 || valid > bytes)
    fail(x, "%lld valid bytes of %u", (long long)valid, bytes);
  touch(x, t, at, bytes, true);
  c.to = (uint32_t)at;
  if (valid) {
    if (from % bytes)
      fail(x, "source not aligned to %u", bytes);
    check_global(x, from, size);
    check_global(x, from + valid - size, size);
    memcpy(c.data, (const void *)(intptr_t)from, (size_t)valid);
  }
  for (uint32_t i = 0; i < bytes; i++) {
    x->shadow[at + i].in_flight++;
    x->smem[at + i] = 0xff;
  }
  VEC_PUSH(&x->arena, &x->thread[t].copies, c);
}

static void pipe_wait(struct mach *x, struct ir_op o, uint32_t t) {
  struct thread *th = &x->thread[t];
  int done = th->groups - (int)ir_attr_int(x->m, o, IR_ATTR_pending, 0);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < th->copies.n; i++) {
    struct copy *c = &th->copies.at[i];
    if (c->group >= done) {
      th->copies.at[kept++] = *c;
      continue;
    }
    memcpy(x->smem + c->to, c->data, c->bytes);
    for (uint32_t k = 0; k < c->bytes; k++)
      x->shadow[c->to + k].in_flight--;
  }
  th->copies.n = kept;
}

/* ---- fragments ---- */

static struct cell *frag_at(struct mach *x, uint32_t res, uint32_t t, int64_t i, bool write) {
  if (i < 0 || i >= x->frag_n[res])
    fail(x, "element %lld of %s, which has %u", (long long)i, ir_sym(x->m, x->m->res.at[res].name),
         x->frag_n[res]);
  size_t k = (size_t)t * x->frag_n[res] + (size_t)i;
  if (write)
    x->frag_set[res][k] = true;
  else if (!x->frag_set[res][k])
    fail(x, "thread %u reads element %lld of %s before it is written", t, (long long)i,
         ir_sym(x->m, x->m->res.at[res].name));
  return &x->frag[res][k];
}

static void frag_op(struct mach *x, struct ir_op o, uint32_t t) {
  const struct ir_opnode *n = ir_op_at(x->m, o);
  uint32_t res = n->res[0];
  enum dtype d = (enum dtype)x->m->res.at[res].type.dtype;
  if (n->opcode == IR_FFILL) {
    for (uint32_t i = 0; i < x->frag_n[res]; i++)
      *frag_at(x, res, t, i, true) = *cell(x, n->in[0], t);
    return;
  }
  int64_t at = cell(x, n->in[0], t)->i;
  if (n->opcode == IR_FGET)
    for (uint32_t i = 0; i < n->n_out; i++)
      *cell(x, n->out[i], t) = *frag_at(x, res, t, at + i, false);
  else
    for (uint32_t i = 1; i < n->n_in; i++)
      *frag_at(x, res, t, at + i - 1, true) = cast(d, dtype_of(x, n->in[i]), *cell(x, n->in[i], t));
}

/* PTX ISA, ldmatrix: lane 8m + r gives the address of row r of matrix m; lane l receives, of each
 * matrix, 16-bit units 2 (l % 4) and the next of row l / 4 (trans: of column l / 4). */
static void ldmatrix(struct mach *x, struct ir_op o, uint32_t warp) {
  const struct ir_opnode *n = ir_op_at(x->m, o);
  uint32_t num = (uint32_t)ir_attr_int(x->m, o, IR_ATTR_num, 0);
  bool trans = ir_attr_int(x->m, o, IR_ATTR_trans, 0) != 0;
  enum dtype d = (enum dtype)x->m->res.at[n->res[0]].type.dtype;
  uint32_t size = (dtype_bits(d) + 4) / 8;
  for (uint32_t k = 0; k < num; k++) {
    const uint8_t *row[8];
    int64_t at[8];
    for (uint32_t r = 0; r < 8; r++) {
      uint32_t t = warp * 32 + k * 8 + r;
      at[r] = buf_at(x, o, n->in[0], t, 16);
      touch(x, t, at[r], 16, false);
      row[r] = x->smem + at[r];
    }
    count_conflicts(x, at, 8, &x->r->ldmatrix_conflicts, &x->r->ldmatrix_rows);
    for (uint32_t lane = 0; lane < 32; lane++) {
      uint32_t t = warp * 32 + lane, g = lane / 4, q = lane % 4 * 2;
      int64_t to = cell(x, n->in[1], t)->i + 4 / size * k;
      uint8_t word[4];
      for (uint32_t e = 0; e < 2; e++)
        memcpy(word + 2 * e, trans ? row[q + e] + 2 * g : row[g] + 2 * (q + e), 2);
      for (uint32_t e = 0; e < 4 / size; e++)
        *frag_at(x, n->res[0], t, to + e, true) = load_cell(d, word + e * size, 0);
    }
  }
}

static void unzip(struct mach *x, struct ir_op o, uint32_t t) {
  const struct ir_opnode *n = ir_op_at(x->m, o);
  int64_t count = ir_attr_int(x->m, o, IR_ATTR_count, 0), at = cell(x, n->in[0], t)->i;
  struct cell c[16];
  for (int64_t i = 0; i < count; i++)
    c[i] = *frag_at(x, n->res[0], t, at + i, false);
  for (int64_t i = 0; i < count; i++)
    *frag_at(x, n->res[0], t, at + i, true) = c[2 * i % count + 2 * i / count];
}

/* PTX ISA, matrix fragments of mma, by shape: where element i of a lane's a or b lies. g: its group
 * of lanes, q: its number in it. */
static void place_a(uint32_t k, uint32_t g, uint32_t q, uint32_t i, uint32_t *row, uint32_t *col) {
  switch (k) {
  case 4: /* m8n8k4 */
    *row = g;
    *col = q;
    return;
  case 8: /* a0 (g, q), a1 (g+8, q), a2 (g, q+4), a3 (g+8, q+4) */
    *row = i % 2 ? g + 8 : g;
    *col = i >= 2 ? q + 4 : q;
    return;
  case 16:
    *row = i < 2 || (i >= 4 && i < 6) ? g : g + 8;
    *col = q * 2 + (i & 1) + (i >= 4 ? 8 : 0);
    return;
  default: /* k32 */
    *row = i < 4 || (i >= 8 && i < 12) ? g : g + 8;
    *col = q * 4 + (i & 3) + (i >= 8 ? 16 : 0);
  }
}

static uint32_t row_of_b(uint32_t k, uint32_t q, uint32_t i) {
  switch (k) {
  case 4: return q;
  case 8: return i ? q + 4 : q;
  case 16: return q * 2 + (i & 1) + (i >= 2 ? 8 : 0);
  default: return q * 4 + (i & 3) + (i >= 4 ? 16 : 0);
  }
}

/* tf32 operands: the bits that the unit looks at. */
static double operand(enum dtype t, struct cell c) {
  if (t != DT_F32)
    return dtype_is_float(t) ? c.f : (double)c.i;
  float f = (float)c.f;
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  u &= ~UINT32_C(0x1fff);
  memcpy(&f, &u, sizeof f);
  return (double)f;
}

static void mma(struct mach *x, struct ir_op o, uint32_t warp) {
  const struct ir_opnode *n = ir_op_at(x->m, o);
  const struct ir_attr *shape = ir_get_attr(x->m, o, IR_ATTR_shape);
  uint32_t k_n = (uint32_t)atoi(strchr(ir_sym(x->m, shape->s), 'k') + 1);
  uint32_t m_n = (uint32_t)atoi(ir_sym(x->m, shape->s) + 1);
  enum dtype td = (enum dtype)x->m->res.at[n->res[0]].type.dtype;
  enum dtype ta = (enum dtype)x->m->res.at[n->res[1]].type.dtype;
  enum dtype tb = (enum dtype)x->m->res.at[n->res[2]].type.dtype;
  double a[16][32], b[32][8];
  for (uint32_t lane = 0; lane < 32; lane++) {
    uint32_t t = warp * 32 + lane, g = lane / 4, q = lane % 4, row, col;
    int64_t ai = cell(x, n->in[1], t)->i, bi = cell(x, n->in[2], t)->i;
    for (uint32_t i = 0; i < m_n * k_n / 32; i++) {
      place_a(k_n, g, q, i, &row, &col);
      a[row][col] = operand(ta, *frag_at(x, n->res[1], t, ai + i, false));
    }
    for (uint32_t i = 0; i < k_n / 4; i++)
      b[row_of_b(k_n, q, i)][g] = operand(tb, *frag_at(x, n->res[2], t, bi + i, false));
  }
  for (uint32_t lane = 0; lane < 32; lane++) {
    uint32_t t = warp * 32 + lane, g = lane / 4, q = lane % 4;
    int64_t ci = cell(x, n->in[0], t)->i;
    for (uint32_t i = 0; i < m_n / 4; i++) {
      uint32_t row = i < 2 ? g : g + 8, col = q * 2 + (i & 1);
      struct cell *c = frag_at(x, n->res[0], t, ci + i, false);
      double sum = 0;
      for (uint32_t k = 0; k < k_n; k++)
        sum += a[row][k] * b[k][col];
      if (dtype_is_float(td))
        c->f = num_round(td, c->f + sum);
      else
        c->i = (int32_t)(uint32_t)(uint64_t)(c->i + (int64_t)sum);
    }
  }
}

/* ---- control ---- */

static void run_block(struct mach *x, struct ir_block b, const bool *on);

static bool *all_on(struct mach *x, bool *on) {
  for (uint32_t t = 0; t < x->threads; t++)
    if (!on[t])
      fail(x, "threads have diverged");
  return on;
}

static int64_t uniform(struct mach *x, struct ir_val v, const bool *on) {
  int64_t first = 0;
  bool any = false;
  for (uint32_t t = 0; t < x->threads; t++) {
    if (!on[t])
      continue;
    if (any && cell(x, v, t)->i != first)
      fail(x, "value differs between threads");
    first = cell(x, v, t)->i;
    any = true;
  }
  return first;
}

/* to[i] = from[i] at once. */
static void move(struct mach *x, uint32_t n, const struct ir_val *to, const struct ir_val *from,
                 const bool *on) {
  struct cell copy[32];
  if (n > 32)
    fail(x, "too many values carried");
  for (uint32_t t = 0; t < x->threads; t++) {
    if (!on[t])
      continue;
    for (uint32_t i = 0; i < n; i++)
      copy[i] = *cell(x, from[i], t);
    for (uint32_t i = 0; i < n; i++)
      *cell(x, to[i], t) = copy[i];
  }
}

static const struct ir_opnode *last(struct mach *x, struct ir_block b) {
  return ir_op_at(x->m, ir_block_at(x->m, b)->last);
}

static void set_all(struct mach *x, struct ir_val v, int64_t i, const bool *on) {
  for (uint32_t t = 0; t < x->threads; t++)
    if (on[t])
      cell(x, v, t)->i = i;
}

static void run_for(struct mach *x, const struct ir_opnode *n, const bool *on) {
  const struct ir_blocknode *b = ir_block_at(x->m, n->blocks[0]);
  int64_t lo = uniform(x, n->in[0], on), hi = uniform(x, n->in[1], on);
  int64_t step = uniform(x, n->in[2], on);
  move(x, n->n_out, b->args.at + 1, n->in + 3, on);
  for (int64_t k = lo; k < hi; k += step) {
    set_all(x, b->args.at[0], k, on);
    run_block(x, n->blocks[0], on);
    move(x, n->n_out, b->args.at + 1, last(x, n->blocks[0])->in, on);
  }
  move(x, n->n_out, n->out, b->args.at + 1, on);
}

static void run_if(struct mach *x, const struct ir_opnode *n, const bool *on) {
  bool *side = calloc(x->threads, 1);
  for (uint32_t i = 0; i < 2; i++) {
    bool any = false;
    for (uint32_t t = 0; t < x->threads; t++) {
      side[t] = on[t] && is_true(x, n->in[0], t) == (i == 0);
      any = any || side[t];
    }
    if (!any)
      continue;
    run_block(x, n->blocks[i], side);
    move(x, n->n_out, n->out, last(x, n->blocks[i])->in, side);
  }
  free(side);
}

static void run_while(struct mach *x, const struct ir_opnode *n, const bool *on) {
  const struct ir_blocknode *head = ir_block_at(x->m, n->blocks[0]);
  const struct ir_blocknode *body = ir_block_at(x->m, n->blocks[1]);
  move(x, n->n_in, head->args.at, n->in, on);
  for (;;) {
    run_block(x, n->blocks[0], on);
    const struct ir_opnode *condition = last(x, n->blocks[0]);
    move(x, n->n_out, body->args.at, condition->in + 1, on);
    if (!uniform(x, condition->in[0], on))
      break;
    run_block(x, n->blocks[1], on);
    move(x, n->n_in, head->args.at, last(x, n->blocks[1])->in, on);
  }
  move(x, n->n_out, n->out, body->args.at, on);
}

static void gprint(struct mach *x, struct ir_op o, uint32_t t) {
  const struct ir_opnode *n = ir_op_at(x->m, o);
  const char *s = ir_sym(x->m, ir_get_attr(x->m, o, IR_ATTR_message)->s);
  uint32_t k = 1;
  if (!is_true(x, n->in[0], t))
    return;
  for (; *s; s++) {
    size_t at = strlen(x->r->printed), room = sizeof x->r->printed - at;
    char *to = x->r->printed + at;
    if (s[0] != '{' || s[1] != '}' || k == n->n_in) {
      snprintf(to, room, "%c", *s);
      continue;
    }
    struct cell c = *cell(x, n->in[k], t);
    enum dtype d = dtype_of(x, n->in[k++]);
    if (d == DT_BOOL)
      snprintf(to, room, "%s", c.i ? "true" : "false");
    else if (dtype_is_float(d))
      snprintf(to, room, "%.*g", d == DT_F64 ? 17 : 9, c.f);
    else
      snprintf(to, room, "%lld", (long long)c.i);
    s++;
  }
}

static void per_thread(struct mach *x, struct ir_op o, uint32_t t) {
  const struct ir_opnode *n = ir_op_at(x->m, o);
  struct cell *out = n->n_out ? cell(x, n->out[0], t) : NULL;
  switch ((int)n->opcode) {
  case IR_CONST: {
    const struct ir_attr *a = ir_get_attr(x->m, o, IR_ATTR_value);
    *out = (struct cell){.i = a->i, .f = a->f};
    return;
  }
  case IR_THREAD_ID: out->i = t; return;
  case IR_LANE_ID: out->i = t % 32; return;
  case IR_WARP_ID: out->i = t / 32; return;
  case IR_BLOCK_ID: out->i = x->block; return;
  case IR_DIGITS: out->i = digits(x, o, cell(x, n->in[0], t)->i); return;
  case IR_PTR_ADD:
    out->i = cell(x, n->in[0], t)->i +
             cell(x, n->in[1], t)->i * (int64_t)((dtype_bits(dtype_of(x, n->in[0])) + 4) / 8);
    return;
  case IR_FFILL:
  case IR_FGET:
  case IR_FPUT: frag_op(x, o, t); return;
  case IR_GLOAD: gload(x, o, t); return;
  case IR_GSTORE: gstore(x, o, t); return;
  case IR_GATOMIC: gatomic(x, o, t); return;
  case IR_SLOAD: sload(x, o, t); return;
  case IR_SSTORE: sstore(x, o, t); return;
  case IR_UNZIP: unzip(x, o, t); return;
  case IR_EX2: out->f = num_round(DT_F32, exp2(cell(x, n->in[0], t)->f)); return;
  case IR_TF32: out->f = (double)num_round_tf32((float)cell(x, n->in[0], t)->f); return;
  case IR_CP_ASYNC: cp_async(x, o, t); return;
  case IR_PIPE_COMMIT: x->thread[t].groups++; return;
  case IR_PIPE_WAIT: pipe_wait(x, o, t); return;
  case IR_GPRINT: gprint(x, o, t); return;
  case IR_CHECK:
    if (!is_true(x, n->in[0], t))
      fail(x, "assertion");
    return;
  default: *out = scalar(x, o, t); return;
  }
}

static void shuffle(struct mach *x, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(x->m, o);
  uint32_t mask = (uint32_t)ir_attr_int(x->m, o, IR_ATTR_mask, 0);
  for (uint32_t t = 0; t < x->threads; t++)
    *cell(x, n->out[0], t) = *cell(x, n->in[0], t ^ mask);
}

static void run_op(struct mach *x, struct ir_op o, const bool *on) {
  const struct ir_opnode *n = ir_op_at(x->m, o);
  x->at = o;
  switch ((int)n->opcode) {
  case IR_EACH:
    for (int64_t r = 0; r < ir_attr_int(x->m, o, IR_ATTR_count, 0); r++) {
      set_all(x, ir_block_at(x->m, n->blocks[0])->args.at[0], r, on);
      run_block(x, n->blocks[0], on);
    }
    return;
  case IR_FOR: run_for(x, n, on); return;
  case IR_IF: run_if(x, n, on); return;
  case IR_WHILE: run_while(x, n, on); return;
  case IR_BARRIER:
    all_on(x, (bool *)on);
    x->epoch++;
    x->r->barriers += x->block == 0;
    return;
  case IR_SHUFFLE:
    all_on(x, (bool *)on);
    shuffle(x, o);
    return;
  case IR_LDMATRIX:
  case IR_MMA:
    all_on(x, (bool *)on);
    for (uint32_t w = 0; w < x->threads / 32; w++)
      n->opcode == IR_MMA ? mma(x, o, w) : ldmatrix(x, o, w);
    return;
  case IR_RENEW: return;
  case IR_CP_ASYNC: count_copies(x, o, on); break;
  default: break;
  }
  for (uint32_t t = 0; t < x->threads; t++)
    if (on[t])
      per_thread(x, o, t);
}

static void run_block(struct mach *x, struct ir_block b, const bool *on) {
  IR_EACH_OP (x->m, b, o) {
    if (ir_info(ir_op_at(x->m, o)->opcode)->traits & IR_TERM)
      return;
    run_op(x, o, on);
  }
}

/* ---- launch ---- */

/* Dim names, "A.dim0", "A.stride0", "A.addr", scalars, as recipe.h says. */
static bool lookup(void *user, const char *name, int64_t *value) {
  struct mach *x = user;
  const struct recipe *r = x->m->recipe;
  for (uint32_t k = 0; k < r->args.n; k++) {
    const struct recipe_arg *a = &r->args.at[k];
    const struct interp_tensor *t = &x->args->arg[x->arg_of[k]].tensor;
    size_t n = strlen(a->name);
    if (a->kind == RECIPE_SCALAR && str_eq(a->name, name)) {
      *value = x->args->arg[x->arg_of[k]].i;
      return true;
    }
    for (uint32_t d = 0; d < a->rank && t->data; d++) {
      const struct expr_node *e = expr_at(&r->exprs, a->dim[d]);
      if (e->op == EXPR_SYM && str_eq(symtab_str(r->exprs.syms, e->sym), name)) {
        *value = t->dim[d];
        return true;
      }
    }
    if (strncmp(name, a->name, n) != 0 || name[n] != '.')
      continue;
    const char *p = name + n + 1;
    if (str_eq(p, "addr"))
      *value = (int64_t)(intptr_t)t->data;
    else if (str_starts(p, "dim"))
      *value = t->dim[p[3] - '0'];
    else
      *value = t->stride[p[6] - '0'];
    return true;
  }
  return false;
}

static int64_t eval(struct mach *x, struct expr e) {
  int64_t v;
  const char *why;
  if (!expr_eval(&x->m->recipe->exprs, e, lookup, x, &v, &why))
    fail(x, "expression: %s", why);
  return v;
}

static void start_block(struct mach *x) {
  const struct ir_module *m = x->m;
  memset(x->smem, 0xff, x->smem_bytes + 1);
  for (uint32_t i = 0; i < x->smem_bytes; i++)
    x->shadow[i] = (struct shadow){-1, -1, -1, -1, 0};
  for (uint32_t r = 1; r < m->res.n; r++)
    if (x->frag_n[r])
      memset(x->frag_set[r], 0, (size_t)x->threads * x->frag_n[r]);
  for (uint32_t t = 0; t < x->threads; t++) {
    x->thread[t].copies.n = 0;
    x->thread[t].groups = 0;
  }
  x->epoch = 0;
}

/* The workspace, full of 0xff; what the launch sets to zero is. */
static void make_workspace(struct mach *x) {
  const struct recipe *r = x->m->recipe;
  if (!r->workspace_bytes.id)
    return;
  x->workspace_bytes = eval(x, r->workspace_bytes);
  uint8_t *at = arena_get(&x->arena, (size_t)x->workspace_bytes + 256);
  x->workspace = at + (256 - (uintptr_t)at % 256) % 256;
  memset(x->workspace, 0xff, (size_t)x->workspace_bytes);
  for (uint32_t i = 0; i < r->steps.n; i++) {
    const struct recipe_step *s = &r->steps.at[i];
    if (s->kind != RECIPE_MEMSET)
      continue;
    int64_t from = eval(x, s->offset), bytes = eval(x, s->bytes);
    if (from < 0 || bytes < 0 || from + bytes > x->workspace_bytes)
      fail(x, "memset of %lld bytes at %lld", (long long)bytes, (long long)from);
    memset(x->workspace + from, 0, (size_t)bytes);
  }
}

static void launch(struct mach *x) {
  const struct ir_module *m = x->m;
  const struct recipe *r = m->recipe;
  x->arg_of = ARENA_ARRAY(&x->arena, uint32_t, m->args.n + 1);
  for (uint32_t k = 0, n = 0; k < m->args.n; k++)
    if (m->args.at[k].kind != IR_ARG_SCRATCH)
      x->arg_of[n++] = k;
  make_workspace(x);
  const struct recipe_step *step = &r->steps.at[r->steps.n - 1];
  const struct ir_blocknode *body = ir_block_at(m, m->body);
  for (uint32_t i = 0; i < r->checks.n; i++)
    if (!eval(x, r->checks.at[i].cond))
      fail(x, "check: %s", r->checks.at[i].message);
  x->threads = step->block[0] * step->block[1] * step->block[2];
  int64_t blocks = 1;
  for (int i = 0; i < 3; i++)
    blocks *= eval(x, step->grid[i]);
  x->smem_bytes = step->smem_bytes;
  x->smem = arena_get0(&x->arena, x->smem_bytes + 1);
  x->shadow = ARENA_ARRAY(&x->arena, struct shadow, x->smem_bytes + 1);
  x->val = ARENA_ARRAY(&x->arena, struct cell, (size_t)m->values.n * x->threads);
  x->thread = ARENA_ARRAY(&x->arena, struct thread, x->threads);
  x->frag = ARENA_ARRAY(&x->arena, struct cell *, m->res.n + 1);
  x->frag_set = ARENA_ARRAY(&x->arena, bool *, m->res.n + 1);
  x->frag_n = ARENA_ARRAY(&x->arena, uint32_t, m->res.n + 1);
  for (uint32_t i = 1; i < m->res.n; i++)
    if (m->res.at[i].kind == IR_RES_FRAG) {
      x->frag_n[i] = layout_extent(m->layouts.at[m->res.at[i].layout], LAYOUT_REG);
      x->frag[i] = ARENA_ARRAY(&x->arena, struct cell, (size_t)x->threads * x->frag_n[i]);
      x->frag_set[i] = ARENA_ARRAY(&x->arena, bool, (size_t)x->threads * x->frag_n[i]);
    }
  bool *on = ARENA_ARRAY(&x->arena, bool, x->threads);
  for (uint32_t t = 0; t < x->threads; t++)
    on[t] = true;
  if (step->params.n != body->args.n)
    fail(x, "%u params for %u body arguments", step->params.n, body->args.n);
  for (x->block = 0; x->block < blocks; x->block++) {
    start_block(x);
    for (uint32_t i = 0; i < step->params.n; i++) {
      const struct recipe_param *p = &step->params.at[i];
      struct cell c = {0};
      if (p->kind == RECIPE_PARAM_PTR)
        c.i = (int64_t)(intptr_t)x->args->arg[x->arg_of[p->arg]].tensor.data;
      else if (p->kind == RECIPE_PARAM_WORKSPACE)
        c.i = (int64_t)(intptr_t)x->workspace + eval(x, p->value);
      else if (p->kind == RECIPE_PARAM_SCALAR)
        c = (struct cell){x->args->arg[x->arg_of[p->arg]].i, x->args->arg[x->arg_of[p->arg]].f};
      else
        c.i = eval(x, p->value);
      struct ir_type type = ir_type_of(m, body->args.at[i]);
      if (type.kind == IR_PTR && dtype_bits((enum dtype)type.dtype) == 4)
        c.i *= 2;
      if (p->kind == RECIPE_PARAM_I32 && c.i != (int32_t)c.i)
        fail(x, "parameter %u does not fit 32 bits", i);
      for (uint32_t t = 0; t < x->threads; t++)
        *cell(x, body->args.at[i], t) = c;
    }
    run_block(x, m->body, on);
    x->at.id = 0;
    x->r->programs++;
  }
}

struct mach_result mach_run(const struct ir_module *m, const struct mach_args *args) {
  struct mach_result r = {.ok = true};
  struct mach x = {.m = m, .args = args, .r = &r};
  arena_init(&x.arena, &mem_libc, &x.trap);
  if (setjmp(x.trap.env)) {
    r.ok = false;
    snprintf(r.error, sizeof r.error, "out of memory");
  } else if (!setjmp(x.fail)) {
    launch(&x);
  }
  arena_free(&x.arena);
  return r;
}
