/* Loops in parts: which loops may be cut (ir/merge.c), and that a loop which is cut at random and
 * merged gives what it gives in one go: sums, products of matrices, extremes, online softmax with a
 * merge function, nested loops and branches. */
#include "help_interp.h"
#include "help_ref.h"
#include "ir/merge.h"
#include "ir/passes.h"

#include <math.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

enum { ROWS = 4, COLS = 6, STEPS = 9, DEPTH = 5 };

/* ---- the kernels ---- */

/* A kernel whose loop over k = 0..STEPS carries what `body` says; its first result is stored. X is
 * [STEPS * ROWS, COLS], B [STEPS * COLS, COLS], O [ROWS, COLS]. */
struct loop {
  struct hi h;
  struct ir_op op;
  struct ir_val k, x, b; /* in the loop: its index, a tile of X and one of B */
  struct ir_val c[4];    /* carried values */
};

static struct ir_val op2(struct loop *l, enum ir_opcode op, struct ir_val a, struct ir_val b) {
  return hi_op2(&l->h, op, a, b);
}

static void begin(struct loop *l, enum dtype t, uint32_t n, const double *init) {
  struct hi *h = &l->h;
  hi_init(h);
  hi_tensor(h, "X", IR_ARG_IN, t, "M,N");
  hi_tensor(h, "B", IR_ARG_IN, t, "K,N");
  hi_tensor(h, "O", IR_ARG_OUT, t, "R,N");
  hi_begin(h, "1");
  struct ir_val zero = hi_index(h, 0), inits[4];
  for (uint32_t i = 0; i < n; i++)
    inits[i] = dtype_is_float(t) ? hi_full(h, t, init[i], ROWS, COLS)
                                 : hi_splat(h, ir_const_int(&h->b, t, (int64_t)init[i]), 2,
                                            (int64_t[]){ROWS, COLS});
  l->op = hi_for(h, zero, hi_index(h, STEPS * ROWS), hi_index(h, ROWS), n, inits);
  l->k = hi_arg(h, l->op, 0, 0);
  l->x = hi_load2(h, 0, l->k, zero, ROWS, COLS);
  l->b = hi_load2(h, 1, l->k, zero, COLS, COLS);
  for (uint32_t i = 0; i < n; i++)
    l->c[i] = hi_arg(h, l->op, 0, 1 + i);
}

/* Yields and stores the first result, through a merge op if `merge` builds one's block. */
typedef void merge_fn(struct loop *l, const struct ir_val *p, const struct ir_val *q,
                      struct ir_val *out);

static void end(struct loop *l, uint32_t n, const struct ir_val *next, merge_fn *merge) {
  struct hi *h = &l->h;
  hi_yield(h, n, next);
  struct ir_val out[4], y[4], args[8];
  struct ir_type t[4];
  for (uint32_t i = 0; i < n; i++) {
    out[i] = hi_out(h, l->op, i);
    t[i] = ir_type_of(h->m, out[i]);
  }
  if (merge) {
    struct ir_op o = ir_build(&h->b, IR_MERGE, n, out, n, t);
    struct ir_block around = h->b.block;
    h->b.block = ir_op_at(h->m, o)->blocks[0];
    for (uint32_t i = 0; i < 2 * n; i++)
      args[i] = ir_add_arg(h->m, h->b.block, t[i % n]);
    merge(l, args, args + n, y);
    ir_build(&h->b, IR_YIELD, n, y, 0, NULL);
    h->b.block = around;
    for (uint32_t i = 0; i < n; i++)
      out[i] = ir_op_at(h->m, o)->out[i];
  }
  struct ir_val zero = hi_index(h, 0);
  hi_store2(h, 2, zero, zero, out[0]);
  hi_end(h);
}

static void build_sum(struct loop *l, enum dtype t) {
  begin(l, t, 1, (double[]){3});
  struct ir_val y = op2(l, IR_ADD, l->x, l->c[0]);
  end(l, 1, &y, NULL);
}

static void build_dot(struct loop *l, enum dtype t) {
  begin(l, t, 1, (double[]){7});
  struct ir_val y = hi_op3(&l->h, IR_DOT, l->x, l->b, l->c[0]);
  y = op2(l, IR_SUB, y, l->x);
  y = op2(l, IR_ADD, y, l->x);
  end(l, 1, &y, NULL);
}

static void build_fma(struct loop *l, enum dtype t) {
  begin(l, t, 1, (double[]){-1});
  struct ir_val y = hi_op3(&l->h, IR_FMA, l->x, l->x, l->c[0]);
  end(l, 1, &y, NULL);
}

static void build_max(struct loop *l, enum dtype t) {
  begin(l, t, 3, (double[]){1, 2, 0});
  struct ir_val y[3] = {op2(l, IR_MAX, l->c[0], l->x), op2(l, IR_MIN, l->x, l->c[1]), {0}};
  y[2] = op2(l, IR_ADD, l->c[2], l->x);
  end(l, 3, y, NULL);
}

/* The sum goes on in a loop within the loop and in both sides of a branch. */
static void build_nested(struct loop *l, enum dtype t) {
  begin(l, t, 1, (double[]){2});
  struct hi *h = &l->h;
  struct ir_val zero = hi_index(h, 0), one = hi_index(h, 1), three = hi_index(h, 3);
  struct ir_op inner = hi_for(h, zero, three, one, 1, l->c);
  struct ir_val acc = hi_arg(h, inner, 0, 1), more = op2(l, IR_ADD, acc, l->x);
  hi_yield(h, 1, &more);
  struct ir_val v = hi_out(h, inner, 0), n8 = hi_index(h, 8);
  struct ir_type type = ir_type_of(h->m, v);
  struct ir_op branch = hi_if(h, op2(l, IR_LT, l->k, n8), 1, &type);
  struct ir_val then = op2(l, IR_SUB, v, l->x);
  hi_yield(h, 1, &then);
  hi_yield(h, 1, &v);
  struct ir_val y = hi_out(h, branch, 0);
  end(l, 1, &y, NULL);
}

static void build_swap(struct loop *l, enum dtype t) { /* changes places: no sum */
  begin(l, t, 2, (double[]){1, 2});
  struct ir_val y[2] = {op2(l, IR_ADD, l->c[1], l->x), op2(l, IR_ADD, l->c[0], l->x)};
  end(l, 2, y, NULL);
}

static void build_read(struct loop *l, enum dtype t) { /* a sum that is looked at */
  begin(l, t, 2, (double[]){0, 0});
  struct ir_val y[2] = {op2(l, IR_ADD, l->c[0], l->x), {0}};
  y[1] = op2(l, IR_ADD, l->c[1], y[0]);
  end(l, 2, y, NULL);
}

static void build_product(struct loop *l, enum dtype t) {
  begin(l, t, 1, (double[]){1});
  struct ir_val y = op2(l, IR_MUL, l->c[0], l->x);
  end(l, 1, &y, NULL);
}

static void build_mixed(struct loop *l, enum dtype t) { /* a sum, then an extreme */
  begin(l, t, 1, (double[]){0});
  struct ir_val y = op2(l, IR_MAX, op2(l, IR_ADD, l->c[0], l->x), l->x);
  end(l, 1, &y, NULL);
}

static void build_negated(struct loop *l, enum dtype t) { /* x - acc */
  begin(l, t, 1, (double[]){0});
  struct ir_val y = op2(l, IR_SUB, l->x, l->c[0]);
  end(l, 1, &y, NULL);
}

static void build_doubled(struct loop *l, enum dtype t) { /* acc + acc */
  begin(l, t, 1, (double[]){1});
  struct ir_val y = op2(l, IR_ADD, l->c[0], l->c[0]);
  end(l, 1, &y, NULL);
}

static void build_stored(struct loop *l, enum dtype t) { /* an effect in the loop */
  begin(l, t, 1, (double[]){0});
  struct ir_val zero = hi_index(&l->h, 0);
  hi_store2(&l->h, 2, zero, zero, l->x);
  struct ir_val y = op2(l, IR_ADD, l->c[0], l->x);
  end(l, 1, &y, NULL);
}

static void multiply(struct loop *l, const struct ir_val *p, const struct ir_val *q,
                     struct ir_val *out) {
  out[0] = op2(l, IR_MUL, p[0], q[0]);
}

static void build_merged_product(struct loop *l, enum dtype t) {
  begin(l, t, 1, (double[]){1});
  struct ir_val y = op2(l, IR_MUL, l->c[0], l->x);
  end(l, 1, &y, multiply);
}

/* Of two parts the first alone counts: wrong, and found. */
static void forget(struct loop *l, const struct ir_val *p, const struct ir_val *q,
                   struct ir_val *out) {
  (void)l, (void)q;
  out[0] = p[0];
}

static void build_wrong(struct loop *l, enum dtype t) {
  begin(l, t, 1, (double[]){1});
  struct ir_val y = op2(l, IR_MUL, l->c[0], l->x);
  end(l, 1, &y, forget);
}

/* Weighted sums by online softmax: maximum, sum, sum of X weighted. */
static void rescale(struct loop *l, const struct ir_val *p, const struct ir_val *q,
                    struct ir_val *out) {
  struct ir_val m = op2(l, IR_MAX, p[2], q[2]);
  struct ir_val wp = hi_op1(&l->h, IR_EXP2, op2(l, IR_SUB, p[2], m));
  struct ir_val wq = hi_op1(&l->h, IR_EXP2, op2(l, IR_SUB, q[2], m));
  for (int i = 0; i < 2; i++) {
    struct ir_val a = op2(l, IR_MUL, p[i], wp), b = op2(l, IR_MUL, q[i], wq);
    out[i] = op2(l, IR_ADD, a, b);
  }
  out[2] = m;
}

static void build_softmax(struct loop *l, enum dtype t) {
  begin(l, t, 3, (double[]){0, 0, -HUGE_VAL});
  struct ir_val m = op2(l, IR_MAX, l->c[2], l->x);
  struct ir_val e = hi_op1(&l->h, IR_EXP2, op2(l, IR_SUB, l->x, m));
  struct ir_val r = hi_op1(&l->h, IR_EXP2, op2(l, IR_SUB, l->c[2], m));
  struct ir_val y[3] = {op2(l, IR_MUL, l->c[0], r), op2(l, IR_MUL, l->c[1], r), m};
  struct ir_val weighted = op2(l, IR_MUL, e, l->x);
  y[0] = op2(l, IR_ADD, y[0], weighted);
  y[1] = op2(l, IR_ADD, y[1], e);
  end(l, 3, y, rescale);
}

#define N IR_MERGE_NONE
#define S IR_MERGE_SUM
#define C IR_MERGE_CUSTOM
static const struct sample {
  const char *name;
  void (*build)(struct loop *l, enum dtype t);
  bool ok, floats_only;
  enum ir_merge_kind kind[3];
} samples[] = {
    {"sum", build_sum, true, false, {S}},
    {"dot", build_dot, true, true, {S}},
    {"fma", build_fma, true, true, {S}},
    {"max", build_max, true, false, {IR_MERGE_MAX, IR_MERGE_MIN, S}},
    {"nested", build_nested, true, false, {S}},
    {"merged product", build_merged_product, true, false, {C}},
    {"softmax", build_softmax, true, true, {C, C, C}},
    {"swap", build_swap, false, false, {N, N}},
    {"read", build_read, false, false, {N, S}},
    {"product", build_product, false, false, {N}},
    {"mixed", build_mixed, false, false, {N}},
    {"negated", build_negated, false, false, {N}},
    {"doubled", build_doubled, false, false, {N}},
    {"stored", build_stored, false, false, {S}},
};
#undef N
#undef S
#undef C

/* ---- which loops may be cut ---- */

static void test_kinds(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(samples); i++) {
    struct loop l;
    samples[i].build(&l, DT_F32);
    struct ir_op merge = ir_op_at(l.h.m, l.op)->next;
    if (ir_op_at(l.h.m, merge)->opcode != IR_MERGE)
      merge = (struct ir_op){0};
    struct ir_merge found;
    bool ok = ir_find_merge(l.h.m, l.op, merge, l.h.m->arena, &found);
    if (ok != samples[i].ok)
      fail_msg("%s: found to be %s", samples[i].name, ok ? "mergeable" : "not mergeable");
    for (uint32_t k = 0; k < found.n; k++)
      if (found.kind[k] != samples[i].kind[k])
        fail_msg("%s: value %u is of kind %d, not %d", samples[i].name, k, found.kind[k],
                 samples[i].kind[k]);
    hi_free(&l.h);
  }
}

/* What ir_add_merges makes is valid, means the same, and ir_drop_merges takes it away again. */
static void test_add_and_drop(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(samples); i++) {
    struct loop l;
    samples[i].build(&l, DT_F32);
    struct ir_merges merges = {.arena = l.h.m->arena};
    bool had = ir_has_merge(l.h.m);
    struct ir_module *before = ir_clone(l.h.m, l.h.m->arena);
    ir_add_merges(l.h.m, &merges);
    assert_int_equal(merges.list.n > 0, samples[i].ok);
    assert_int_equal(ir_has_merge(l.h.m), samples[i].ok);
    if (!ir_verify(l.h.m, &l.h.diags))
      fail_msg("%s: %s", samples[i].name, help_last_message(&l.h.diags));
    ir_drop_merges(l.h.m);
    assert_false(ir_has_merge(l.h.m));
    assert_true(ir_verify(l.h.m, &l.h.diags));
    struct strbuf why = {.arena = l.h.m->arena};
    if (!had && !ir_equal(before, l.h.m, &why))
      fail_msg("%s: %s", samples[i].name, sb_str(&why));
    hi_free(&l.h);
  }
}

/* ---- parts ---- */

enum { X_LEN = STEPS * ROWS * COLS, B_LEN = (STEPS * ROWS + COLS) * COLS, O_LEN = ROWS * COLS };

struct run {
  int64_t x[X_LEN], b[B_LEN], o[O_LEN];
};

/* Small whole numbers, or payloads of all 64 bits. */
static void fill(struct run *r, enum dtype t, bool payloads, uint64_t seed) {
  for (int64_t i = 0; i < X_LEN; i++)
    if (payloads)
      r->x[i] = (int64_t)ref_random(&seed);
    else
      ref_put(t, r->x, i, (long double)(ref_random(&seed) % 5));
  for (int64_t i = 0; i < B_LEN; i++)
    if (payloads)
      r->b[i] = (int64_t)ref_random(&seed);
    else
      ref_put(t, r->b, i, (long double)(ref_random(&seed) % 3));
}

static void interpret(struct loop *l, struct run *r, enum dtype as, uint64_t cut_seed) {
  memset(r->o, 0x5a, sizeof r->o);
  l->h.opt.cut_seed = cut_seed;
  hi_bind_as(&l->h, 0, as, r->x, (int64_t[]){STEPS * ROWS, COLS});
  hi_bind_as(&l->h, 1, as, r->b, (int64_t[]){STEPS * ROWS + COLS, COLS});
  hi_bind_as(&l->h, 2, as, r->o, (int64_t[]){ROWS, COLS});
  hi_run_ok(&l->h);
}

static struct run whole, parts;

static void check_parts(const struct sample *s, enum dtype t, enum interp_domain domain) {
  enum dtype as = domain == INTERP_ALGEBRAIC && dtype_is_float(t) ? DT_S64 : t;
  struct loop l;
  s->build(&l, t);
  l.h.opt.domain = domain;
  fill(&whole, t, as != t, 71);
  interpret(&l, &whole, as, 0);
  for (uint64_t seed = 1; seed <= 20; seed++) {
    parts = whole;
    interpret(&l, &parts, as, seed);
    if (memcmp(parts.o, whole.o, sizeof whole.o) != 0)
      fail_msg("%s of %s, seed %llu: parts differ from the whole", s->name, dtype_name(t),
               (unsigned long long)seed);
  }
  hi_free(&l.h);
}

/* Exact on whole numbers, to the bit on payloads; loops that cannot be cut are left alone. */
static void test_parts(void **state) {
  (void)state;
  static const enum dtype types[] = {DT_F32, DT_F64, DT_S32, DT_S64, DT_S8};
  for (size_t i = 0; i < COUNT(samples); i++)
    for (size_t k = 0; k < COUNT(types); k++) {
      if (!dtype_is_float(types[k]) && samples[i].floats_only)
        continue;
      if (samples[i].build != build_softmax) /* its weights are powers of 2, but not whole */
        check_parts(&samples[i], types[k], INTERP_ROUNDED);
      check_parts(&samples[i], types[k], INTERP_ALGEBRAIC);
    }
}

/* Rounding aside, parts of online softmax agree too. */
static void test_softmax_rounded(void **state) {
  (void)state;
  struct loop l;
  build_softmax(&l, DT_F32);
  fill(&whole, DT_F32, false, 73);
  interpret(&l, &whole, DT_F32, 0);
  for (uint64_t seed = 1; seed <= 20; seed++) {
    parts = whole;
    interpret(&l, &parts, DT_F32, seed);
    for (int64_t i = 0; i < O_LEN; i++) {
      long double x = ref_get(DT_F32, whole.o, i), y = ref_get(DT_F32, parts.o, i);
      assert_true(fabsl(x - y) <= 1e-6L * fabsl(x));
    }
  }
  hi_free(&l.h);
}

/* The test of parts can fail: a merge function that forgets one part, and cuts do take place. */
static void test_wrong_merge(void **state) {
  (void)state;
  for (int algebraic = 0; algebraic < 2; algebraic++) {
    struct loop l;
    build_wrong(&l, DT_F32);
    l.h.opt.domain = algebraic ? INTERP_ALGEBRAIC : INTERP_ROUNDED;
    enum dtype as = algebraic ? DT_S64 : DT_F32;
    fill(&whole, DT_F32, algebraic, 79);
    for (int64_t i = 0; i < X_LEN && !algebraic; i++)
      ref_put(DT_F32, whole.x, i, (long double)(1 + i % 2));
    interpret(&l, &whole, as, 0);
    for (uint64_t seed = 1; seed <= 5; seed++) {
      parts = whole;
      interpret(&l, &parts, as, seed);
      assert_memory_not_equal(parts.o, whole.o, sizeof whole.o);
    }
    hi_free(&l.h);
  }
}

/* Values used by the loop alone must outlive it where it is cut: the merge block runs amid it. */
static void scale_both(struct loop *l, const struct ir_val *p, const struct ir_val *q,
                       struct ir_val *out) {
  struct ir_val a = op2(l, IR_ADD, p[0], p[0]), b = op2(l, IR_ADD, q[0], q[0]);
  struct ir_val c = op2(l, IR_ADD, a, b), half = op2(l, IR_SUB, c, op2(l, IR_ADD, p[0], q[0]));
  out[0] = half; /* 2p + 2q - (p + q) */
}

static void test_slots(void **state) {
  (void)state;
  struct loop l;
  struct hi *h = &l.h;
  hi_init(h);
  hi_tensor(h, "X", IR_ARG_IN, DT_F32, "M,N");
  hi_tensor(h, "B", IR_ARG_IN, DT_F32, "K,N");
  hi_tensor(h, "O", IR_ARG_OUT, DT_F32, "R,N");
  hi_begin(h, "1");
  struct ir_val zero = hi_index(h, 0), init = hi_full(h, DT_F32, 0, ROWS, COLS);
  struct ir_val outer[3]; /* used in the loop for the last time */
  for (int i = 0; i < 3; i++)
    outer[i] = hi_full(h, DT_F32, 1 << i, ROWS, COLS);
  l.op = hi_for(h, zero, hi_index(h, STEPS * ROWS), hi_index(h, ROWS), 1, &init);
  l.x = hi_load2(h, 0, hi_arg(h, l.op, 0, 0), zero, ROWS, COLS);
  struct ir_val y = op2(&l, IR_ADD, l.x, op2(&l, IR_ADD, outer[0], outer[1]));
  y = op2(&l, IR_ADD, y, op2(&l, IR_MUL, outer[2], l.x));
  y = op2(&l, IR_ADD, y, hi_arg(h, l.op, 0, 1));
  end(&l, 1, &y, scale_both);
  fill(&whole, DT_F32, false, 83);
  interpret(&l, &whole, DT_F32, 0);
  for (uint64_t seed = 1; seed <= 20; seed++) {
    parts = whole;
    interpret(&l, &parts, DT_F32, seed);
    assert_memory_equal(parts.o, whole.o, sizeof whole.o);
  }
  hi_free(h);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_kinds),       cmocka_unit_test(test_add_and_drop),
      cmocka_unit_test(test_parts),       cmocka_unit_test(test_softmax_rounded),
      cmocka_unit_test(test_wrong_merge), cmocka_unit_test(test_slots),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
