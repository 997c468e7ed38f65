/* Whole kernels in the interpreter, built by hand, against plain loops: vector add, GEMM, softmax,
 * rmsnorm, and nests of loops and branches. */
#include "help_interp.h"
#include "help_ref.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static struct ir_val add(struct hi *h, struct ir_val a, struct ir_val b) {
  return hi_op2(h, IR_ADD, a, b);
}
static struct ir_val mul(struct hi *h, struct ir_val a, struct ir_val b) {
  return hi_op2(h, IR_MUL, a, b);
}
static struct ir_val times(struct hi *h, struct ir_val a, int64_t n) {
  return mul(h, a, hi_index(h, n));
}

static void test_vector_add(void **state) {
  (void)state;
  for (int64_t n = 0; n < 70; n += n < 20 ? 1 : 13)
    for (uint64_t seed = 0; seed < 2; seed++) {
      struct hi h;
      hi_init(&h);
      h.opt.grid_seed = seed;
      h.opt.check_races = true;
      hi_tensor(&h, "X", IR_ARG_IN, DT_F32, "N");
      hi_tensor(&h, "Y", IR_ARG_IN, DT_F32, "N");
      hi_tensor(&h, "O", IR_ARG_OUT, DT_F32, "N");
      hi_begin(&h, "cdiv(N, 8)");
      struct ir_val i = times(&h, h.grid[0], 8);
      hi_store1(&h, 2, i, add(&h, hi_load1(&h, 0, i, 8), hi_load1(&h, 1, i, 8)));
      hi_end(&h);
      float x[72], y[72], o[72];
      for (int k = 0; k < 72; k++) {
        x[k] = 0.1f * (float)k;
        y[k] = 7.0f - 0.3f * (float)k;
        o[k] = -1;
      }
      for (uint32_t k = 0; k < 3; k++)
        hi_bind(&h, k, k == 0 ? x : k == 1 ? y : o, &n);
      hi_run_ok(&h);
      for (int k = 0; k < 72; k++)
        assert_true(o[k] == (k < n ? x[k] + y[k] : -1));
      hi_free(&h);
    }
}

/* ---- GEMM ---- */

/* C[M,N] = A[M,K] . B[K,N], tiles of bm x bn x bk; with `trans`, B is [N,K] and its tile is
 * transposed. Out of type t. */
static void build_gemm(struct hi *h, enum dtype t, int64_t bm, int64_t bn, int64_t bk, bool trans) {
  hi_init(h);
  hi_tensor(h, "A", IR_ARG_IN, t, "M,K");
  hi_tensor(h, "B", IR_ARG_IN, t, trans ? "N,K" : "K,N");
  hi_tensor(h, "C", IR_ARG_OUT, t, "M,N");
  char grid[64];
  snprintf(grid, sizeof grid, "cdiv(M, %lld),cdiv(N, %lld)", (long long)bm, (long long)bn);
  hi_begin(h, grid);
  /* The dims in order of appearance: M, K, N in both cases. */
  struct ir_val i = times(h, h->grid[0], bm), j = times(h, h->grid[1], bn);
  struct ir_val k_n = h->dim[1];
  if (trans)
    assert_string_equal(ir_sym(h->m, h->m->dims.at[1]), "K");
  struct ir_val init = hi_full(h, DT_F32, 0, bm, bn);
  struct ir_op loop = hi_for(h, hi_index(h, 0), k_n, hi_index(h, bk), 1, &init);
  struct ir_val k = hi_arg(h, loop, 0, 0), acc = hi_arg(h, loop, 0, 1);
  struct ir_val a = hi_load2(h, 0, i, k, bm, bk);
  struct ir_val b = trans ? hi_transpose(h, hi_load2(h, 1, j, k, bn, bk), (int64_t[]){1, 0})
                          : hi_load2(h, 1, k, j, bk, bn);
  acc = hi_op3(h, IR_DOT, a, b, acc);
  hi_yield(h, 1, &acc);
  hi_store2(h, 2, i, j, hi_cast(h, t, hi_out(h, loop, 0)));
  hi_end(h);
}

static void check_gemm(enum dtype t, int64_t m, int64_t n, int64_t k, bool trans, int64_t lda,
                       enum interp_domain domain) {
  struct hi h;
  build_gemm(&h, t, 16, 24, 8, trans);
  h.opt.domain = domain;
  h.opt.check_races = true;
  h.opt.grid_seed = (uint64_t)m;
  enum dtype as = domain ? DT_F64 : t;
  size_t size = 8 * (size_t)(m * lda + n * k + m * n + 8);
  void *a = calloc(1, size), *b = calloc(1, size), *c = calloc(1, size);
  uint64_t seed = (uint64_t)(m * n + k);
  for (int64_t i = 0; i < m * lda; i++)
    ref_put(t, a, i, (long double)(ref_random(&seed) % 5));
  for (int64_t i = 0; i < n * k; i++)
    ref_put(t, b, i, (long double)(ref_random(&seed) % 3));
  hi_bind(&h, 0, a, (int64_t[]){m, k});
  h.value[0].tensor.stride[0] = lda;
  hi_bind(&h, 1, b, trans ? (int64_t[]){n, k} : (int64_t[]){k, n});
  hi_bind_as(&h, 2, as, c, (int64_t[]){m, n});
  hi_run_ok(&h);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      long double r = 0;
      for (int64_t x = 0; x < k; x++)
        r += ref_get(t, a, i * lda + x) * ref_get(t, b, trans ? j * k + x : x * n + j);
      assert_true(ref_get(as, c, i * n + j) == (domain ? r : ref_round(t, r)));
    }
  free(a);
  free(b);
  free(c);
  hi_free(&h);
}

static void test_gemm(void **state) {
  (void)state;
  static const enum dtype types[] = {DT_BF16, DT_F16, DT_F32};
  for (size_t t = 0; t < COUNT(types); t++)
    for (int trans = 0; trans < 2; trans++)
      for (int domain = 0; domain < 2; domain++) {
        enum interp_domain d = (enum interp_domain)domain;
        check_gemm(types[t], 32, 48, 16, trans, 16, d);
        check_gemm(types[t], 33, 47, 29, trans, 31, d);
        check_gemm(types[t], 1, 1, 1, trans, 1, d);
        check_gemm(types[t], 5, 7, 0, trans, 3, d);
        check_gemm(types[t], 17, 50, 65, trans, 77, d);
      }
}

/* ---- rows ---- */

/* O = softmax of the rows of X (bf16 to bf16), a row in one tile of `width`, pad -inf. */
static void build_softmax(struct hi *h, int64_t rows, int64_t width) {
  hi_init(h);
  hi_tensor(h, "X", IR_ARG_IN, DT_BF16, "M,N");
  hi_tensor(h, "O", IR_ARG_OUT, DT_BF16, "M,N");
  char grid[32];
  snprintf(grid, sizeof grid, "cdiv(M, %lld)", (long long)rows);
  hi_begin(h, grid);
  struct ir_val i = times(h, h->grid[0], rows), zero = hi_index(h, 0);
  struct ir_val raw = hi_load2(h, 0, i, zero, rows, width);
  hi_set_pad(h, raw, -HUGE_VAL);
  struct ir_val x = hi_cast(h, DT_F32, raw);
  struct ir_val top = hi_wide(h, hi_reduce(h, IR_REDUCE_MAX, x, 1), rows, width);
  struct ir_val e = hi_op1(h, IR_EXP, hi_op2(h, IR_SUB, x, top));
  struct ir_val sum = hi_wide(h, hi_reduce(h, IR_REDUCE_SUM, e, 1), rows, width);
  hi_store2(h, 1, i, zero, hi_cast(h, DT_BF16, hi_op2(h, IR_DIV, e, sum)));
  hi_end(h);
}

static void test_softmax(void **state) {
  (void)state;
  enum { M = 7, N = 45 };
  for (int domain = 0; domain < 2; domain++) {
    struct hi h;
    build_softmax(&h, 4, 64);
    h.opt.domain = (enum interp_domain)domain;
    uint16_t x[M * N];
    double o[M * N];
    enum dtype as = domain ? DT_F64 : DT_BF16;
    uint64_t seed = 3;
    for (int i = 0; i < M * N; i++)
      ref_put(DT_BF16, x, i, (long double)(int64_t)ref_random(&seed) * 0x1p-60L);
    for (int j = 0; j < N; j++) /* a row of -inf: -inf - -inf is NaN, and stays in its row */
      ref_put(DT_BF16, x, 2 * N + j, -(long double)INFINITY);
    hi_bind(&h, 0, x, (int64_t[]){M, N});
    hi_bind_as(&h, 1, as, o, (int64_t[]){M, N});
    hi_run_ok(&h);
    for (int i = 0; i < M; i++) {
      long double top = -(long double)INFINITY, sum = 0;
      for (int j = 0; j < N; j++)
        top = fmaxl(top, ref_get(DT_BF16, x, i * N + j));
      for (int j = 0; j < N; j++)
        sum += expl(ref_get(DT_BF16, x, i * N + j) - top);
      for (int j = 0; j < N; j++) {
        long double got = ref_get(as, o, i * N + j);
        if (i == 2) {
          assert_true(isnan(got));
          continue;
        }
        long double want = expl(ref_get(DT_BF16, x, i * N + j) - top) / sum;
        long double unit = domain ? 0x1p-48L : 0x1p-8L + 0x1p-20L;
        assert_true(fabsl(got - want) <= unit * want + 0x1p-133L);
      }
    }
    hi_free(&h);
  }
}

/* O = x * rsqrt(mean(x^2) + eps) * w in f32; eps and the number of columns are scalars. */
static void test_rmsnorm(void **state) {
  (void)state;
  enum { M = 5, N = 100, W = 128 };
  for (int domain = 0; domain < 2; domain++) {
    struct hi h;
    hi_init(&h);
    h.opt.domain = (enum interp_domain)domain;
    hi_tensor(&h, "X", IR_ARG_IN, DT_F32, "M,N");
    hi_tensor(&h, "W", IR_ARG_IN, DT_F32, "N");
    hi_tensor(&h, "O", IR_ARG_OUT, DT_F32, "M,N");
    uint32_t eps_arg = hi_scalar(&h, "eps", DT_F32);
    hi_begin(&h, "M");
    int64_t one[2] = {1, 1}, wide[2] = {1, W};
    struct ir_val i = h.grid[0], zero = hi_index(&h, 0);
    struct ir_val x = hi_load2(&h, 0, i, zero, 1, W);
    struct ir_val sum = hi_reduce(&h, IR_REDUCE_SUM, mul(&h, x, x), 1);
    struct ir_val n = hi_splat(&h, hi_cast(&h, DT_F32, h.dim[1]), 2, one);
    struct ir_val eps = hi_splat(&h, h.arg[eps_arg], 2, one);
    struct ir_val r = hi_op1(&h, IR_RSQRT, add(&h, hi_op2(&h, IR_DIV, sum, n), eps));
    struct ir_val w = hi_shape(&h, IR_RESHAPE, hi_load1(&h, 1, zero, W), 2, wide);
    hi_store2(&h, 2, i, zero, mul(&h, mul(&h, x, hi_wide(&h, r, 1, W)), w));
    hi_end(&h);
    float x_data[M * N], w_data[N];
    double o[M * N];
    for (int k = 0; k < M * N; k++)
      x_data[k] = sinf((float)k) * 3;
    for (int k = 0; k < N; k++)
      w_data[k] = 1 + 0.01f * (float)k;
    enum dtype as = domain ? DT_F64 : DT_F32;
    hi_bind(&h, 0, x_data, (int64_t[]){M, N});
    hi_bind(&h, 1, w_data, (int64_t[]){N});
    hi_bind_as(&h, 2, as, o, (int64_t[]){M, N});
    h.value[eps_arg].f = 1e-5;
    hi_run_ok(&h);
    for (int a = 0; a < M; a++) {
      long double mean = 0;
      for (int b = 0; b < N; b++)
        mean += (long double)x_data[a * N + b] * x_data[a * N + b] / (long double)N;
      for (int b = 0; b < N; b++) {
        long double want = x_data[a * N + b] / sqrtl(mean + (long double)(float)1e-5) * w_data[b];
        long double unit = domain ? 0x1p-48L : 0x1p-21L;
        assert_true(fabsl(ref_get(as, o, a * N + b) - want) <= unit * fabsl(want));
      }
    }
    hi_free(&h);
  }
}

/* ---- control ---- */

/* Runs one program that stores an s64 scalar; N is a dim of the input. */
static struct ir_val begin_scalar(struct hi *h) {
  hi_init(h);
  hi_tensor(h, "O", IR_ARG_OUT, DT_S64, "P");
  uint32_t n = hi_scalar(h, "n", DT_S64);
  hi_begin(h, "1");
  return hi_cast(h, DT_INDEX, h->arg[n]);
}

/* Stores v, after making many other scalars that are all live at once: they would get hold of a
 * slot that was given up too early. */
static void end_scalar(struct hi *h, uint32_t n, const struct ir_val *v) {
  int64_t one = 1;
  struct ir_val others[24];
  for (uint32_t k = 0; k < COUNT(others); k++)
    others[k] = hi_index(h, 1000 + k);
  hi_message(h, IR_PRINT, NULL, COUNT(others), others);
  for (uint32_t k = 0; k < n; k++)
    hi_store1(h, 0, hi_index(h, k), hi_splat(h, hi_cast(h, DT_S64, v[k]), 1, &one));
  hi_end(h);
}

static const int64_t *run_scalar(struct hi *h, int64_t n) {
  static int64_t out[4];
  memset(out, 0x5a, sizeof out);
  hi_bind(h, 0, out, (int64_t[]){4});
  h->value[1].i = n;
  hi_run_ok(h);
  return out;
}

/* Carried values that change places, one of them yielded twice, one never changed. */
static void test_for_swaps(void **state) {
  (void)state;
  struct hi h;
  struct ir_val n = begin_scalar(&h);
  struct ir_val init[4] = {hi_index(&h, 1), hi_index(&h, 2), hi_index(&h, 3), hi_index(&h, 4)};
  struct ir_op loop = hi_for(&h, hi_index(&h, 0), n, hi_index(&h, 1), 4, init);
  struct ir_val c[4];
  for (uint32_t k = 0; k < 4; k++)
    c[k] = hi_arg(&h, loop, 0, k + 1);
  struct ir_val sum = add(&h, c[0], c[1]);
  hi_yield(&h, 4, (struct ir_val[]){c[1], sum, c[0], c[3]});
  end_scalar(&h, 4,
             (struct ir_val[]){hi_out(&h, loop, 0), hi_out(&h, loop, 1), hi_out(&h, loop, 2),
                               hi_out(&h, loop, 3)});
  int64_t a = 1, b = 2, d = 3;
  for (int64_t i = 0; i < 20; i++) {
    const int64_t *o = run_scalar(&h, i);
    assert_int_equal(o[0], a);
    assert_int_equal(o[1], b);
    assert_int_equal(o[2], d);
    assert_int_equal(o[3], 4);
    int64_t next = a + b;
    d = a;
    a = b;
    b = next;
  }
  hi_free(&h);
}

/* A value yielded to two places, and the loop index and an outer value yielded. */
static void test_for_duplicates(void **state) {
  (void)state;
  struct hi h;
  struct ir_val n = begin_scalar(&h);
  struct ir_val zero = hi_index(&h, 0);
  struct ir_op loop =
      hi_for(&h, zero, n, hi_index(&h, 3), 4, (struct ir_val[]){zero, zero, zero, zero});
  struct ir_val k = hi_arg(&h, loop, 0, 0);
  struct ir_val twice = add(&h, k, k);
  hi_yield(&h, 4, (struct ir_val[]){twice, twice, k, n});
  end_scalar(&h, 4,
             (struct ir_val[]){hi_out(&h, loop, 0), hi_out(&h, loop, 1), hi_out(&h, loop, 2),
                               hi_out(&h, loop, 3)});
  for (int64_t i = 0; i < 12; i++) {
    const int64_t *o = run_scalar(&h, i);
    int64_t last = i ? (i - 1) / 3 * 3 : 0;
    assert_int_equal(o[0], 2 * last);
    assert_int_equal(o[1], 2 * last);
    assert_int_equal(o[2], last);
    assert_int_equal(o[3], i ? i : 0);
  }
  hi_free(&h);
}

/* Loops whose bounds end at the last index there is, and empty ones. */
static void test_for_bounds(void **state) {
  (void)state;
  static const struct {
    int64_t lo, hi, step, trips;
  } cases[] = {{0, 10, 3, 4},
               {5, 5, 1, 0},
               {6, 5, 1, 0},
               {INT64_MAX - 3, INT64_MAX, 2, 2},
               {INT64_MAX - 2, INT64_MAX, INT64_MAX, 1},
               {INT64_MIN, INT64_MIN + 5, 2, 3},
               {INT64_MIN, INT64_MAX, INT64_MAX, 3},
               {-4, 3, 2, 4}};
  for (size_t c = 0; c < COUNT(cases); c++) {
    struct hi h;
    begin_scalar(&h);
    struct ir_val zero = hi_index(&h, 0);
    struct ir_op loop = hi_for(&h, hi_index(&h, cases[c].lo), hi_index(&h, cases[c].hi),
                               hi_index(&h, cases[c].step), 1, &zero);
    struct ir_val next = add(&h, hi_arg(&h, loop, 0, 1), hi_index(&h, 1));
    hi_yield(&h, 1, &next);
    struct ir_val r = hi_out(&h, loop, 0);
    end_scalar(&h, 1, &r);
    assert_int_equal(run_scalar(&h, 0)[0], cases[c].trips);
    hi_free(&h);
  }
}

/* Length of the Collatz sequence: while with an if in its body, results passed by the condition
 * other than what is carried. */
static void test_while(void **state) {
  (void)state;
  struct hi h;
  struct ir_val n = begin_scalar(&h);
  struct ir_val one = hi_index(&h, 1), two = hi_index(&h, 2), zero = hi_index(&h, 0);
  struct ir_type index = ir_scalar(DT_INDEX);
  struct ir_op loop =
      hi_while(&h, 2, (struct ir_val[]){n, zero}, 2, (struct ir_type[]){index, index});
  struct ir_val x = hi_arg(&h, loop, 0, 0), steps = hi_arg(&h, loop, 0, 1);
  struct ir_val next = add(&h, steps, one);
  hi_condition(&h, 3, (struct ir_val[]){hi_op2(&h, IR_GT, x, one), next, x});
  struct ir_val count = hi_arg(&h, loop, 1, 0), y = hi_arg(&h, loop, 1, 1);
  struct ir_val even = hi_op2(&h, IR_EQ, hi_op2(&h, IR_MOD, y, two), zero);
  struct ir_op branch = hi_if(&h, even, 1, &index);
  struct ir_val half = hi_op2(&h, IR_FLOORDIV, y, two);
  hi_yield(&h, 1, &half);
  struct ir_val more = add(&h, times(&h, y, 3), one);
  hi_yield(&h, 1, &more);
  hi_yield(&h, 2, (struct ir_val[]){hi_out(&h, branch, 0), count});
  end_scalar(&h, 2, (struct ir_val[]){hi_out(&h, loop, 0), hi_out(&h, loop, 1)});
  for (int64_t i = 1; i < 40; i++) {
    int64_t v = i, length = 1;
    for (; v > 1; length++)
      v = v % 2 ? 3 * v + 1 : v / 2;
    const int64_t *o = run_scalar(&h, i);
    assert_int_equal(o[0], length);
    assert_int_equal(o[1], 1);
  }
  hi_free(&h);
}

/* Three loops deep, a branch inside, tiles carried; values of outer loops used in inner ones after
 * inner ones made and dropped many of the same size: slots must not be shared too early. */
static void test_nest(void **state) {
  (void)state;
  enum { R = 3, C = 5 };
  struct hi h;
  hi_init(&h);
  hi_tensor(&h, "X", IR_ARG_IN, DT_S32, "M,N");
  hi_tensor(&h, "O", IR_ARG_OUT, DT_S32, "M,N");
  uint32_t arg = hi_scalar(&h, "n", DT_S64);
  hi_begin(&h, "1");
  struct ir_val zero = hi_index(&h, 0), one = hi_index(&h, 1);
  struct ir_val n = hi_cast(&h, DT_INDEX, h.arg[arg]);
  struct ir_val x = hi_load2(&h, 0, zero, zero, R, C);
  struct ir_type tile = ir_type_of(h.m, x);
  struct ir_op l1 = hi_for(&h, zero, n, one, 2, (struct ir_val[]){x, x});
  struct ir_val i = hi_arg(&h, l1, 0, 0), a = hi_arg(&h, l1, 0, 1), b = hi_arg(&h, l1, 0, 2);
  struct ir_val ab = add(&h, a, b);
  struct ir_op l2 = hi_for(&h, zero, i, one, 1, &ab);
  struct ir_val j = hi_arg(&h, l2, 0, 0), s = hi_arg(&h, l2, 0, 1);
  struct ir_val t1 = mul(&h, s, x), t2 = add(&h, t1, a), t3 = add(&h, t2, b);
  struct ir_op branch =
      hi_if(&h, hi_op2(&h, IR_EQ, hi_op2(&h, IR_MOD, add(&h, i, j), hi_index(&h, 2)), zero), 2,
            (struct ir_type[]){tile, tile});
  struct ir_val u = add(&h, t3, t1);
  hi_yield(&h, 2, (struct ir_val[]){u, t2});
  struct ir_op l3 = hi_for(&h, j, i, one, 1, &t3);
  struct ir_val v = hi_op2(&h, IR_SUB, hi_arg(&h, l3, 0, 1), x);
  hi_yield(&h, 1, &v);
  hi_yield(&h, 2, (struct ir_val[]){s, hi_out(&h, l3, 0)});
  struct ir_val w = hi_op2(&h, IR_XOR, hi_out(&h, branch, 0), hi_out(&h, branch, 1));
  hi_yield(&h, 1, &w);
  struct ir_val next_a = hi_out(&h, l2, 0), next_b = add(&h, a, x);
  hi_yield(&h, 2, (struct ir_val[]){next_b, next_a});
  struct ir_val x2 = mul(&h, x, x), x4 = add(&h, mul(&h, x2, x2), x2);
  hi_store2(&h, 1, zero, zero, add(&h, add(&h, hi_out(&h, l1, 0), hi_out(&h, l1, 1)), x4));
  hi_end(&h);
  int32_t in[R * C], out[R * C];
  for (int k = 0; k < R * C; k++)
    in[k] = 3 * k - 11;
  hi_bind(&h, 0, in, (int64_t[]){R, C});
  hi_bind(&h, 1, out, (int64_t[]){R, C});
  for (int64_t count = 0; count < 9; count++) {
    h.value[arg].i = count;
    hi_run_ok(&h);
    for (int k = 0; k < R * C; k++) {
      uint32_t xv = (uint32_t)in[k], av = xv, bv = xv;
      for (int64_t p = 0; p < count; p++) {
        uint32_t sv = av + bv;
        for (int64_t q = 0; q < p; q++) {
          uint32_t v1 = sv * xv, v2 = v1 + av, v3 = v2 + bv, r0 = v3 + v1, r1 = v2;
          if ((p + q) % 2) {
            r0 = sv;
            r1 = v3;
            for (int64_t r = q; r < p; r++)
              r1 -= xv;
          }
          sv = r0 ^ r1;
        }
        uint32_t keep = av + xv;
        bv = sv;
        av = keep;
      }
      uint32_t x2v = xv * xv;
      assert_int_equal(out[k], (int32_t)(av + bv + x2v * x2v + x2v));
    }
  }
  hi_free(&h);
}

/* What an untaken branch would store is not stored. */
static void test_if_effects(void **state) {
  (void)state;
  struct hi h;
  hi_init(&h);
  hi_tensor(&h, "O", IR_ARG_OUT, DT_F32, "N");
  hi_begin(&h, "N");
  struct ir_val i = h.grid[0];
  int64_t one = 1;
  hi_if(&h, hi_op2(&h, IR_LT, i, hi_index(&h, 3)), 0, NULL);
  hi_store1(&h, 0, i, hi_splat(&h, hi_num(&h, DT_F32, 1), 1, &one));
  hi_yield(&h, 0, NULL);
  hi_if(&h, hi_op2(&h, IR_EQ, i, hi_index(&h, 5)), 0, NULL);
  hi_store1(&h, 0, i, hi_splat(&h, hi_num(&h, DT_F32, 2), 1, &one));
  hi_yield(&h, 0, NULL);
  hi_yield(&h, 0, NULL);
  hi_yield(&h, 0, NULL);
  hi_end(&h);
  float o[7] = {9, 9, 9, 9, 9, 9, 9}, want[7] = {1, 1, 1, 9, 9, 2, 9};
  hi_bind(&h, 0, o, (int64_t[]){7});
  hi_run_ok(&h);
  assert_memory_equal(o, want, sizeof o);
  hi_free(&h);
}

/* Narrow floats compute in f32 and round once per op: 1 + 2^-8 + 2^-8 in bf16 stays 1, in DOUBLE it
 * does not; and a cast in DOUBLE keeps what it would round. */
static void test_domains_differ(void **state) {
  (void)state;
  for (int domain = 0; domain < 2; domain++) {
    struct hi h;
    hi_init(&h);
    h.opt.domain = (enum interp_domain)domain;
    hi_tensor(&h, "X", IR_ARG_IN, DT_BF16, "N");
    hi_tensor(&h, "O", IR_ARG_OUT, DT_F32, "N");
    hi_begin(&h, "1");
    struct ir_val zero = hi_index(&h, 0), x = hi_load1(&h, 0, zero, 2);
    int64_t two = 2;
    struct ir_val step = hi_splat(&h, hi_num(&h, DT_BF16, 0x1p-8), 1, &two);
    hi_store1(&h, 1, zero, hi_cast(&h, DT_F32, add(&h, add(&h, x, step), step)));
    hi_end(&h);
    uint16_t x_data[2];
    double o[2];
    ref_put(DT_BF16, x_data, 0, 1);
    ref_put(DT_BF16, x_data, 1, 0.1L); /* an input is what memory holds, in both domains */
    hi_bind(&h, 0, x_data, (int64_t[]){2});
    hi_bind_as(&h, 1, domain ? DT_F64 : DT_F32, o, (int64_t[]){2});
    hi_run_ok(&h);
    long double second = ref_get(DT_BF16, x_data, 1);
    if (domain) {
      assert_true(o[0] == 1 + 0x1p-7);
      assert_true((long double)o[1] == second + 0x1p-7L);
    } else {
      assert_true(ref_get(DT_F32, o, 0) == 1);
      long double once = ref_round(DT_BF16, second + 0x1p-8L);
      assert_true(ref_get(DT_F32, o, 1) == ref_round(DT_BF16, once + 0x1p-8L));
    }
    hi_free(&h);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_vector_add),     cmocka_unit_test(test_gemm),
      cmocka_unit_test(test_softmax),        cmocka_unit_test(test_rmsnorm),
      cmocka_unit_test(test_for_swaps),      cmocka_unit_test(test_for_duplicates),
      cmocka_unit_test(test_for_bounds),     cmocka_unit_test(test_while),
      cmocka_unit_test(test_nest),           cmocka_unit_test(test_if_effects),
      cmocka_unit_test(test_domains_differ),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
