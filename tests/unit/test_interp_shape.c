/* Ops of the interpreter that move elements, reduce, and multiply matrices, against naive loops in
 * long double. */
#include "help_interp.h"
#include "help_ref.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX = 4096, MAX_BYTES = MAX * 8 };
#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static unsigned char in[3][MAX_BYTES], out[MAX_BYTES];

static int64_t product(uint32_t rank, const int64_t *dim) {
  int64_t n = 1;
  for (uint32_t k = 0; k < rank; k++)
    n *= dim[k];
  return n;
}

/* "2,3,4" */
static const char *dims_text(uint32_t rank, const int64_t *dim, char *buf, size_t size) {
  size_t n = 0;
  for (uint32_t k = 0; k < rank; k++)
    n += (size_t)snprintf(buf + n, size - n, "%s%lld", k ? "," : "", (long long)dim[k]);
  return buf;
}

static void add_tensor(struct hi *h, const char *name, enum ir_arg_kind kind, enum dtype t,
                       uint32_t rank, const int64_t *dim) {
  char buf[64];
  hi_tensor(h, name, kind, t, dims_text(rank, dim, buf, sizeof buf));
}

/* A kernel X -> O over whole tensors: returns the loaded tile of X, in `h`. */
static struct ir_val begin(struct hi *h, enum dtype t, uint32_t rank, const int64_t *dim,
                           enum dtype u, uint32_t out_rank, const int64_t *out_dim) {
  hi_init(h);
  add_tensor(h, "X", IR_ARG_IN, t, rank, dim);
  add_tensor(h, "O", IR_ARG_OUT, u, out_rank, out_dim);
  hi_begin(h, "1");
  struct ir_val zero = hi_index(h, 0), at[IR_MAX_RANK] = {zero, zero, zero, zero, zero};
  hi_bind(h, 0, in[0], dim);
  hi_bind(h, 1, out, out_dim);
  memset(out, 0x5a, sizeof out);
  return hi_load(h, 0, at, dim);
}

static void finish(struct hi *h, struct ir_val r) {
  struct ir_val zero = hi_index(h, 0), at[IR_MAX_RANK] = {zero, zero, zero, zero, zero};
  hi_store(h, 1, at, r);
  hi_end(h);
  hi_run_ok(h);
  hi_free(h);
}

static void fill_bits(enum dtype t, void *data, int64_t n, uint64_t seed) {
  for (int64_t i = 0; i < n; i++) {
    ref_put_bits(t, data, i, t == DT_BOOL ? ref_random(&seed) & 1 : ref_random(&seed));
    if (isnan(ref_get(t, data, i))) /* payloads are not kept */
      ref_put_bits(t, data, i, 1);
  }
}

/* Row-major coordinates of element i. */
static void coords(int64_t i, uint32_t rank, const int64_t *dim, int64_t *c) {
  for (uint32_t k = rank; k-- > 0;) {
    c[k] = i % dim[k];
    i /= dim[k];
  }
}

static int64_t linear(uint32_t rank, const int64_t *dim, const int64_t *c) {
  int64_t i = 0;
  for (uint32_t k = 0; k < rank; k++)
    i = i * dim[k] + c[k];
  return i;
}

static const enum dtype moved_types[] = {DT_BOOL, DT_S4,  DT_U8,  DT_S32, DT_S64,
                                         DT_BF16, DT_F32, DT_F64, DT_E5M2};

static void test_transpose(void **state) {
  (void)state;
  static const struct {
    uint32_t rank;
    int64_t dim[5], perm[5];
  } cases[] = {
      {1, {7}, {0}},
      {2, {5, 9}, {1, 0}},
      {2, {5, 9}, {0, 1}},
      {2, {1, 6}, {1, 0}},
      {3, {3, 4, 5}, {2, 0, 1}},
      {3, {3, 4, 5}, {1, 0, 2}},
      {4, {2, 3, 4, 5}, {3, 2, 1, 0}},
      {5, {2, 3, 2, 3, 4}, {4, 0, 3, 1, 2}},
  };
  for (size_t k = 0; k < COUNT(cases); k++)
    for (size_t j = 0; j < COUNT(moved_types); j++) {
      enum dtype t = moved_types[j];
      uint32_t rank = cases[k].rank;
      int64_t out_dim[5];
      for (uint32_t d = 0; d < rank; d++)
        out_dim[d] = cases[k].dim[cases[k].perm[d]];
      int64_t n = product(rank, cases[k].dim);
      fill_bits(t, in[0], n, k + 1);
      struct hi h;
      struct ir_val x = begin(&h, t, rank, cases[k].dim, t, rank, out_dim);
      finish(&h, hi_transpose(&h, x, cases[k].perm));
      for (int64_t i = 0; i < n; i++) {
        int64_t c[5], from[5];
        coords(i, rank, out_dim, c);
        for (uint32_t d = 0; d < rank; d++)
          from[cases[k].perm[d]] = c[d];
        assert_true(
            ref_same(ref_get(t, out, i), ref_get(t, in[0], linear(rank, cases[k].dim, from))));
      }
    }
}

static void test_broadcast(void **state) {
  (void)state;
  static const struct {
    uint32_t rank;
    int64_t from[5], to[5];
  } cases[] = {
      {1, {1}, {9}},       {2, {5, 1}, {5, 7}},       {2, {1, 7}, {5, 7}},
      {2, {1, 1}, {3, 4}}, {3, {2, 1, 5}, {2, 3, 5}}, {4, {1, 3, 1, 2}, {4, 3, 5, 2}},
      {2, {4, 6}, {4, 6}},
  };
  for (size_t k = 0; k < COUNT(cases); k++)
    for (size_t j = 0; j < COUNT(moved_types); j++) {
      enum dtype t = moved_types[j];
      uint32_t rank = cases[k].rank;
      fill_bits(t, in[0], product(rank, cases[k].from), k + 9);
      struct hi h;
      struct ir_val x = begin(&h, t, rank, cases[k].from, t, rank, cases[k].to);
      finish(&h, hi_shape(&h, IR_BROADCAST, x, rank, cases[k].to));
      for (int64_t i = 0; i < product(rank, cases[k].to); i++) {
        int64_t c[5];
        coords(i, rank, cases[k].to, c);
        for (uint32_t d = 0; d < rank; d++)
          c[d] = cases[k].from[d] == 1 ? 0 : c[d];
        assert_true(
            ref_same(ref_get(t, out, i), ref_get(t, in[0], linear(rank, cases[k].from, c))));
      }
    }
}

/* splat(item(x[1,1])) over a shape, and reshape keeps the row-major order. */
static void test_splat_item_reshape(void **state) {
  (void)state;
  int64_t one[2] = {1, 1}, wide[3] = {3, 2, 5}, flat[1] = {30};
  for (size_t j = 0; j < COUNT(moved_types); j++) {
    enum dtype t = moved_types[j];
    fill_bits(t, in[0], 30, 5);
    struct hi h;
    struct ir_val x = begin(&h, t, 2, one, t, 3, wide);
    finish(&h, hi_splat(&h, hi_op1(&h, IR_ITEM, x), 3, wide));
    for (int64_t i = 0; i < 30; i++)
      assert_true(ref_same(ref_get(t, out, i), ref_get(t, in[0], 0)));
    x = begin(&h, t, 1, flat, t, 3, wide);
    finish(&h, hi_shape(&h, IR_RESHAPE, x, 3, wide));
    for (int64_t i = 0; i < 30; i++)
      assert_true(ref_same(ref_get(t, out, i), ref_get(t, in[0], i)));
  }
}

static void test_iota(void **state) {
  (void)state;
  for (int64_t axis = 0; axis < 2; axis++) {
    int64_t dim[2] = {axis ? 1 : 37, axis ? 37 : 1};
    struct hi h;
    begin(&h, DT_S64, 2, dim, DT_S64, 2, dim);
    finish(&h, hi_cast(&h, DT_S64, hi_iota(&h, axis, 37)));
    for (int64_t i = 0; i < 37; i++)
      assert_int_equal(((int64_t *)out)[i], i);
  }
}

/* ---- reductions ---- */

static long double extreme(enum ir_opcode op, long double a, long double b) {
  if (isnan(a) || isnan(b))
    return (long double)NAN;
  if (a == b)
    return (op == IR_REDUCE_MAX) == (bool)signbit(a) ? b : a;
  return (a > b) == (op == IR_REDUCE_MAX) ? a : b;
}

static void check_reduce(enum ir_opcode op, enum dtype t, uint32_t rank, const int64_t *dim,
                         int64_t axis, bool exact) {
  int64_t out_dim[5];
  memcpy(out_dim, dim, sizeof(int64_t) * rank);
  out_dim[axis] = 1;
  struct hi h;
  struct ir_val x = begin(&h, t, rank, dim, t, rank, out_dim);
  finish(&h, hi_reduce(&h, op, x, axis));
  for (int64_t i = 0; i < product(rank, out_dim); i++) {
    int64_t c[5];
    long double r = 0, size = 0;
    uint64_t wrapped = 0;
    coords(i, rank, out_dim, c);
    for (c[axis] = 0; c[axis] < dim[axis]; c[axis]++) {
      long double v = ref_get(t, in[0], linear(rank, dim, c));
      if (op == IR_REDUCE_SUM)
        r += v;
      else
        r = c[axis] ? extreme(op, r, v) : v;
      size += fabsl(v);
      if (!dtype_is_float(t))
        wrapped += (uint64_t)(int64_t)v;
    }
    long double got = ref_get(t, out, i), want = r;
    if (op == IR_REDUCE_SUM && !dtype_is_float(t))
      want = (long double)ref_wrap(t, wrapped);
    else if (op == IR_REDUCE_SUM)
      want = ref_round(t, r);
    if (ref_same(got, want))
      continue;
    /* Sums in double: the rounding of something within their error of the exact sum. */
    long double error = size * 0x1p-50L;
    if (exact || got < ref_round(t, r - error) || got > ref_round(t, r + error))
      fail_msg("%s on %s: got %.20Lg, expected %.20Lg", ir_info(op)->name, dtype_name(t), got,
               want);
  }
}

static const enum dtype numeric_types[] = {DT_S4,   DT_U8,   DT_S32,  DT_S64, DT_F16,
                                           DT_BF16, DT_E4M3, DT_E5M2, DT_F32, DT_F64};

static void test_reduce(void **state) {
  (void)state;
  static const struct {
    uint32_t rank;
    int64_t dim[5], axis;
  } cases[] = {
      {1, {100}, 0},     {2, {7, 65}, 1},   {2, {65, 7}, 0},      {2, {5, 1}, 1},
      {3, {4, 9, 6}, 1}, {3, {4, 9, 6}, 0}, {4, {2, 3, 4, 5}, 2}, {5, {2, 2, 3, 2, 7}, 4},
  };
  static const enum ir_opcode ops[] = {IR_REDUCE_SUM, IR_REDUCE_MAX, IR_REDUCE_MIN};
  for (size_t k = 0; k < COUNT(cases); k++)
    for (size_t j = 0; j < COUNT(numeric_types); j++)
      for (size_t q = 0; q < COUNT(ops); q++) {
        enum dtype t = numeric_types[j];
        int64_t n = product(cases[k].rank, cases[k].dim);
        uint64_t seed = k * 100 + j;
        /* Integers where every partial sum is exact: the rounded sum is one number. Random bits of
         * integer types: sums wrap. */
        for (int64_t i = 0; i < n; i++)
          if (dtype_is_float(t))
            ref_put(t, in[0], i, (long double)(int64_t)(ref_random(&seed) % 9) - 3);
          else
            ref_put_bits(t, in[0], i, ref_random(&seed));
        check_reduce(ops[q], t, cases[k].rank, cases[k].dim, cases[k].axis, true);
        for (int64_t i = 0; i < n && dtype_is_float(t); i++)
          ref_put(t, in[0], i, (long double)(int64_t)ref_random(&seed) * 0x1p-63L);
        check_reduce(ops[q], t, cases[k].rank, cases[k].dim, cases[k].axis, q > 0);
      }
}

/* Each row: what NaN, infinities and zeros of both signs give. */
static void test_reduce_specials(void **state) {
  (void)state;
  double inf = HUGE_VAL, nan = NAN;
  const struct {
    double x[3], sum, max, min;
  } rows[] = {
      {{1, nan, 2}, nan, nan, nan},        {{nan, 1, 2}, nan, nan, nan},
      {{1, 2, nan}, nan, nan, nan},        {{inf, 1, -inf}, nan, inf, -inf},
      {{inf, 1, 2}, inf, inf, 1},          {{-0.0, 0.0, -0.0}, 0.0, 0.0, -0.0},
      {{0.0, -0.0, -0.0}, 0.0, 0.0, -0.0}, {{-inf, -inf, -inf}, -inf, -inf, -inf},
  };
  static const enum dtype types[] = {DT_F16, DT_BF16, DT_F32, DT_F64};
  for (size_t j = 0; j < COUNT(types); j++)
    for (int transposed = 0; transposed < 2; transposed++) {
      enum dtype t = types[j];
      int64_t n = COUNT(rows), dim[2] = {n, 3}, out_dim[2] = {n, 1};
      if (transposed) {
        dim[0] = 3, dim[1] = n;
        out_dim[0] = 1, out_dim[1] = n;
      }
      for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < 3; k++)
          ref_put(t, in[0], transposed ? k * n + i : i * 3 + k, (long double)rows[i].x[k]);
      static const enum ir_opcode ops[] = {IR_REDUCE_SUM, IR_REDUCE_MAX, IR_REDUCE_MIN};
      for (size_t q = 0; q < 3; q++) {
        struct hi h;
        struct ir_val x = begin(&h, t, 2, dim, t, 2, out_dim);
        finish(&h, hi_reduce(&h, ops[q], x, transposed ? 0 : 1));
        for (int64_t i = 0; i < n; i++) {
          double want = q == 0 ? rows[i].sum : q == 1 ? rows[i].max : rows[i].min;
          assert_true(ref_same(ref_get(t, out, i), (long double)want));
        }
      }
    }
}

/* ---- dot ---- */

struct dot_case {
  enum dtype a, b, acc;
  const char *prec;
};
static const struct dot_case dot_cases[] = {
    {DT_BF16, DT_BF16, DT_F32, NULL},   {DT_F16, DT_F16, DT_F32, NULL},
    {DT_F16, DT_F16, DT_F16, NULL},     {DT_E4M3, DT_E5M2, DT_F32, NULL},
    {DT_E4M3, DT_E4M3, DT_F16, NULL},   {DT_F32, DT_F32, DT_F32, NULL},
    {DT_F32, DT_F32, DT_F32, "ieee"},   {DT_F32, DT_F32, DT_F32, "tf32"},
    {DT_E4M3, DT_E4M3, DT_F32, "fast"}, {DT_E5M2, DT_E4M3, DT_F32, "promoted"},
    {DT_F32, DT_F32, DT_F32, "tf32x3"}, {DT_F64, DT_F64, DT_F64, NULL},
    {DT_S8, DT_S8, DT_S32, NULL},       {DT_U8, DT_U8, DT_S32, NULL},
    {DT_S4, DT_S4, DT_S32, NULL},       {DT_U4, DT_U4, DT_S32, NULL}};

static void run_dot(const struct dot_case *d, int64_t m, int64_t k, int64_t n,
                    enum interp_domain domain, enum dtype as) {
  struct hi h;
  hi_init(&h);
  h.opt.domain = domain;
  int64_t da[2] = {m, k}, db[2] = {k, n}, dc[2] = {m, n};
  add_tensor(&h, "A", IR_ARG_IN, d->a, 2, da);
  add_tensor(&h, "B", IR_ARG_IN, d->b, 2, db);
  add_tensor(&h, "C", IR_ARG_IN, d->acc, 2, dc);
  add_tensor(&h, "O", IR_ARG_OUT, d->acc, 2, dc);
  hi_begin(&h, "1");
  struct ir_val z = hi_index(&h, 0);
  struct ir_val r = hi_op3(&h, IR_DOT, hi_load2(&h, 0, z, z, m, k), hi_load2(&h, 1, z, z, k, n),
                           hi_load2(&h, 2, z, z, m, n));
  if (d->prec)
    ir_set_attr(h.m, ir_value_at(h.m, r)->def,
                (struct ir_attr){.key = IR_ATTR_prec, .s = symtab_get(h.m->syms, d->prec)});
  hi_store2(&h, 3, z, z, r);
  hi_end(&h);
  hi_bind(&h, 0, in[0], da);
  hi_bind(&h, 1, in[1], db);
  hi_bind(&h, 2, in[2], dc);
  hi_bind_as(&h, 3, as, out, dc);
  memset(out, 0x5a, sizeof out);
  hi_run_ok(&h);
  hi_free(&h);
}

/* To 11 significant bits, ties to even. */
static long double tf32(long double x) {
  int e;
  long double f = frexpl(x, &e);
  return ldexpl(rintl(ldexpl(f, 11)), e - 11);
}

/* What element (i, j) is in exact arithmetic, given how operands enter; *size: sum of
 * |products|. */
static long double dot_ref(const struct dot_case *d, bool rounded, int64_t i, int64_t j,
                           int64_t k_n, int64_t n, long double *size) {
  long double r = ref_get(d->acc, in[2], i * n + j);
  *size = fabsl(r);
  for (int64_t k = 0; k < k_n; k++) {
    long double a = ref_get(d->a, in[0], i * k_n + k), b = ref_get(d->b, in[1], k * n + j);
    *size += fabsl(a * b);
    if (rounded && d->prec && strcmp(d->prec, "tf32") == 0) {
      r += tf32(a) * tf32(b);
    } else if (rounded && d->prec && strcmp(d->prec, "tf32x3") == 0) {
      long double ah = tf32(a), al = tf32(a - ah), bh = tf32(b), bl = tf32(b - bh);
      r += ah * bh + ah * bl + al * bh;
    } else {
      r += a * b;
    }
  }
  return r;
}

static void test_dot_integers(void **state) {
  (void)state;
  static const int64_t shapes[][3] = {
      {16, 16, 16}, {1, 1, 1}, {5, 7, 3}, {33, 17, 9}, {2, 130, 31}};
  for (size_t c = 0; c < COUNT(dot_cases); c++)
    for (size_t s = 0; s < COUNT(shapes); s++)
      for (int domain = 0; domain < 2; domain++) {
        const struct dot_case *d = &dot_cases[c];
        int64_t m = shapes[s][0], k = shapes[s][1], n = shapes[s][2];
        uint64_t seed = c * 10 + s;
        enum dtype as = domain && dtype_is_float(d->acc) ? DT_F64 : d->acc;
        for (int64_t i = 0; i < m * k; i++)
          ref_put(d->a, in[0], i, (long double)(ref_random(&seed) % 4));
        for (int64_t i = 0; i < k * n; i++)
          ref_put(d->b, in[1], i, (long double)(int64_t)(ref_random(&seed) % 4) - 1);
        for (int64_t i = 0; i < m * n; i++)
          ref_put(d->acc, in[2], i, (long double)(int64_t)(ref_random(&seed) % 9) - 4);
        run_dot(d, m, k, n, (enum interp_domain)domain, as);
        for (int64_t i = 0; i < m * n; i++) {
          long double size, want = dot_ref(d, true, i / n, i % n, k, n, &size);
          assert_true(ref_get(as, out, i) == want);
        }
      }
}

static void test_dot_reals(void **state) {
  (void)state;
  int64_t m = 19, k = 77, n = 13;
  for (size_t c = 0; c < COUNT(dot_cases); c++)
    for (int domain = 0; domain < 2; domain++) {
      const struct dot_case *d = &dot_cases[c];
      if (!dtype_is_float(d->acc))
        continue;
      uint64_t seed = c;
      enum dtype as = domain ? DT_F64 : d->acc;
      const int64_t counts[3] = {m * k, k * n, m * n};
      for (int q = 0; q < 3; q++)
        for (int64_t i = 0; i < counts[q]; i++)
          ref_put(q == 0   ? d->a
                  : q == 1 ? d->b
                           : d->acc,
                  in[q], i, (long double)(int64_t)ref_random(&seed) * 0x1p-62L);
      run_dot(d, m, k, n, (enum interp_domain)domain, as);
      for (int64_t i = 0; i < m * n; i++) {
        long double size, r = dot_ref(d, domain == 0, i / n, i % n, k, n, &size);
        /* One rounding to the accumulator, and the error of k additions in double. */
        long double unit = as == DT_F64 ? 0 : as == DT_F16 ? 0x1p-11L : 0x1p-24L;
        long double bound = unit * fabsl(r) + (long double)(k + 1) * 0x1p-53L * size;
        if (fabsl(ref_get(as, out, i) - r) > bound)
          fail_msg("dot of %s: got %.20Lg, expected %.20Lg within %.3Lg", dtype_name(d->a),
                   ref_get(as, out, i), r, bound);
      }
    }
}

/* NaN and infinity reach exactly the row and column they touch: no multiplication is skipped. */
static void test_dot_specials(void **state) {
  (void)state;
  const struct dot_case d = {DT_BF16, DT_BF16, DT_F32, NULL};
  int64_t m = 4, k = 8, n = 4;
  for (int64_t i = 0; i < m * k; i++)
    ref_put(DT_BF16, in[0], i, i / k == 1 ? 0 : 1);
  for (int64_t i = 0; i < k * n; i++)
    ref_put(DT_BF16, in[1], i, 1);
  memset(in[2], 0, sizeof in[2]);
  ref_put(DT_BF16, in[0], 2 * k + 3, (long double)NAN);
  ref_put(DT_BF16, in[1], 5 * n + 3, (long double)INFINITY);
  run_dot(&d, m, k, n, INTERP_ROUNDED, DT_F32);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      long double got = ref_get(DT_F32, out, i * n + j);
      if (i == 2 || (i == 1 && j == 3)) /* NaN, and 0 * infinity */
        assert_true(isnan(got));
      else if (j == 3)
        assert_true(isinf(got));
      else
        assert_true(got == (i == 1 ? 0 : (long double)k));
    }
}

/* s32 accumulation wraps. */
static void test_dot_wraps(void **state) {
  (void)state;
  const struct dot_case d = {DT_S8, DT_S8, DT_S32, NULL};
  int64_t m = 2, k = 64, n = 2;
  for (int64_t i = 0; i < m * k; i++) {
    ref_put(DT_S8, in[0], i, 127);
    ref_put(DT_S8, in[1], i, i % 2 ? -127 : 127);
  }
  for (int64_t i = 0; i < m * n; i++)
    ref_put(DT_S32, in[2], i, i % 2 ? -2147483648.0L : 2147483647);
  run_dot(&d, m, k, n, INTERP_ROUNDED, DT_S32);
  for (int64_t i = 0; i < m * n; i++) {
    int64_t start = i % 2 ? INT32_MIN : INT32_MAX, sum = 64 * 127 * 127 * (i % 2 ? -1 : 1);
    assert_int_equal(((int32_t *)out)[i], ref_wrap(DT_S32, (uint64_t)(start + sum)));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_transpose),
      cmocka_unit_test(test_broadcast),
      cmocka_unit_test(test_splat_item_reshape),
      cmocka_unit_test(test_iota),
      cmocka_unit_test(test_reduce),
      cmocka_unit_test(test_reduce_specials),
      cmocka_unit_test(test_dot_integers),
      cmocka_unit_test(test_dot_reals),
      cmocka_unit_test(test_dot_specials),
      cmocka_unit_test(test_dot_wraps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
