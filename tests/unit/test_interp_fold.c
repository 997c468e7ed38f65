/* Ops of the interpreter that reduce masks, find extremes, sum along, cut, join, reread bits and
 * draw random numbers, for every dtype they take, against naive code: long double, and the bytes in
 * memory. */
#include "base/random.h"
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

static void tensor(struct hi *h, const char *name, enum ir_arg_kind kind, struct ir_type t) {
  char buf[64];
  size_t n = 0;
  for (uint32_t k = 0; k < t.rank; k++)
    n += (size_t)snprintf(buf + n, sizeof buf - n, "%s%lld", k ? "," : "", (long long)t.dim[k]);
  hi_tensor(h, name, kind, (enum dtype)t.dtype, buf);
}

static struct ir_val whole(struct hi *h, uint32_t arg, struct ir_type t) {
  struct ir_val zero = hi_index(h, 0), at[IR_MAX_RANK] = {zero, zero, zero, zero, zero};
  return hi_load(h, arg, at, t.dim);
}

/* out = op(in[0], ..., in[n - 1]), whole tensors of types t; index results are stored as s64. */
static void run_op(enum ir_opcode op, uint32_t n, const struct ir_type *t, struct ir_type r,
                   const struct ir_attr *attr, enum interp_domain domain, enum dtype as) {
  static const char *const names[] = {"X", "Y", "Z"};
  struct hi h;
  hi_init(&h);
  h.opt.domain = domain;
  struct ir_type stored = r;
  if (r.dtype == DT_INDEX)
    stored.dtype = DT_S64;
  for (uint32_t k = 0; k < n; k++)
    tensor(&h, names[k], IR_ARG_IN, t[k]);
  tensor(&h, "O", IR_ARG_OUT, stored);
  hi_begin(&h, "1");
  struct ir_val x[3], zero = hi_index(&h, 0), at[IR_MAX_RANK] = {zero, zero, zero, zero, zero};
  for (uint32_t k = 0; k < n; k++)
    x[k] = whole(&h, k, t[k]);
  struct ir_val y = ir_build1(&h.b, op, r, n, x);
  if (attr)
    ir_set_attr(h.m, ir_value_at(h.m, y)->def, *attr);
  if (r.dtype == DT_INDEX)
    y = hi_cast(&h, DT_S64, y);
  hi_store(&h, n, at, y);
  hi_end(&h);
  for (uint32_t k = 0; k < n; k++)
    hi_bind(&h, k, in[k], t[k].dim);
  memset(out, 0x5a, sizeof out);
  hi_bind_as(&h, n, as == DT_COUNT ? (enum dtype)stored.dtype : as, out, stored.dim);
  hi_run_ok(&h);
  hi_free(&h);
}

static struct ir_attr axis_attr(int64_t axis) {
  return (struct ir_attr){.key = IR_ATTR_axis, .i = axis};
}

static const struct shape {
  uint32_t rank;
  int64_t dim[5], axis;
} shapes[] = {{1, {1}, 0},          {1, {100}, 0},           {2, {7, 65}, 1},
              {2, {65, 7}, 0},      {2, {5, 1}, 1},          {3, {4, 9, 6}, 1},
              {4, {2, 3, 4, 5}, 2}, {5, {2, 2, 3, 2, 7}, 4}, {3, {4, 9, 6}, 0}};
static const enum dtype numeric_types[] = {DT_S4,  DT_U4,   DT_S8,   DT_U8,   DT_S32, DT_S64,
                                           DT_F16, DT_BF16, DT_E4M3, DT_E5M2, DT_F32, DT_F64};

/* ---- floor and its kin ---- */

static long double to_whole(enum ir_opcode op, long double x) {
  if (isnan(x) || isinf(x))
    return x;
  long double down = x - fmodl(x, 1); /* towards zero */
  if (op == IR_FLOOR && down > x)
    down -= 1;
  if (op == IR_CEIL && down < x)
    down += 1;
  if (op == IR_ROUND) {
    long double rest = fabsl(x - down);
    if (rest > 0.5L || (rest == 0.5L && fmodl(down, 2) != 0))
      down += x < 0 ? -1 : 1;
  }
  return copysignl(down, x);
}

static void test_floor(void **state) {
  (void)state;
  static const enum ir_opcode ops[] = {IR_FLOOR, IR_CEIL, IR_ROUND, IR_TRUNC};
  static const enum dtype types[] = {DT_E4M3, DT_E5M2, DT_F16, DT_BF16, DT_F32, DT_F64};
  int64_t n = 2048;
  struct ir_type t;
  for (size_t q = 0; q < COUNT(ops); q++)
    for (size_t j = 0; j < COUNT(types); j++)
      for (int domain = 0; domain < 2; domain++) {
        uint64_t seed = q * 8 + j;
        enum dtype as = domain ? DT_F64 : types[j];
        t = ir_tile(types[j], 1, &n);
        for (int64_t i = 0; i < n; i++)
          if (i < 400) /* quarters around zero: every tie, both signs */
            ref_put(types[j], in[0], i, (long double)(i - 200) / 4);
          else if (i < 800) /* where the last halves are */
            ref_put(types[j], in[0], i,
                    ldexpl((long double)(int64_t)(ref_random(&seed) % 64), (int)(i % 50)) + 0.5L);
          else
            ref_put_bits(types[j], in[0], i, ref_random(&seed));
        ref_put(types[j], in[0], 0, -0.0L);
        ref_put(types[j], in[0], 1, (long double)INFINITY);
        run_op(ops[q], 1, &t, t, NULL, (enum interp_domain)domain, as);
        for (int64_t i = 0; i < n; i++) {
          long double x = ref_get(types[j], in[0], i), want = to_whole(ops[q], x);
          if (!domain) /* e5m2 keeps the infinities that are moved, arithmetic clamps them */
            want = ref_round(types[j], want);
          if (!ref_same(ref_get(as, out, i), want))
            fail_msg("%s on %s: %.20Lg gave %.20Lg, expected %.20Lg", ir_info(ops[q])->name,
                     dtype_name(types[j]), x, ref_get(as, out, i), want);
        }
      }
}

/* ---- masks ---- */

static void test_masks(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT(shapes); k++)
    for (int density = 0; density < 4; density++)
      for (int all = 0; all < 2; all++) {
        struct ir_type t = ir_tile(DT_BOOL, shapes[k].rank, shapes[k].dim), r = t;
        uint64_t seed = k;
        int64_t n = product(t.rank, t.dim), axis = shapes[k].axis;
        r.dim[axis] = 1;
        for (int64_t i = 0; i < n; i++)
          in[0][i] =
              (unsigned char)(density == 0   ? 0
                              : density == 3 ? 1 + i % 3 /* any byte but 0 is true */
                                             : (ref_random(&seed) % 64 < (density == 1 ? 2 : 62)));
        struct ir_attr a = axis_attr(axis);
        run_op(all ? IR_REDUCE_ALL : IR_REDUCE_ANY, 1, &t, r, &a, INTERP_ROUNDED, DT_COUNT);
        for (int64_t i = 0; i < product(r.rank, r.dim); i++) {
          int64_t c[5], trues = 0;
          coords(i, r.rank, r.dim, c);
          for (c[axis] = 0; c[axis] < t.dim[axis]; c[axis]++)
            trues += in[0][linear(t.rank, t.dim, c)] != 0;
          assert_int_equal(out[i], all ? trues == t.dim[axis] : trues > 0);
        }
      }
}

/* ---- positions of extremes ---- */

static void check_arg(enum dtype t, const struct shape *s, bool max) {
  struct ir_type x = ir_tile(t, s->rank, s->dim), r = x;
  struct ir_attr a = axis_attr(s->axis);
  r.dim[s->axis] = 1;
  r.dtype = DT_INDEX;
  for (int domain = 0; domain < 2; domain++) {
    run_op(max ? IR_ARGMAX : IR_ARGMIN, 1, &x, r, &a, (enum interp_domain)domain, DT_COUNT);
    for (int64_t i = 0; i < product(r.rank, r.dim); i++) {
      int64_t c[5], want = 0;
      long double best = 0;
      coords(i, r.rank, r.dim, c);
      for (int64_t k = 0; k < x.dim[s->axis]; k++) {
        c[s->axis] = k;
        long double v = ref_get(t, in[0], linear(x.rank, x.dim, c));
        bool better = k == 0 || (!isnan(best) && (isnan(v) || (max ? v > best : v < best)));
        want = better ? k : want;
        best = better ? v : best;
      }
      if (ref_get(DT_S64, out, i) != (long double)want)
        fail_msg("%s: position %.0Lf, expected %lld", dtype_name(t), ref_get(DT_S64, out, i),
                 (long long)want);
    }
  }
}

static void test_positions(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT(shapes); k++)
    for (size_t j = 0; j < COUNT(numeric_types); j++)
      for (int few = 0; few < 2; few++) {
        enum dtype t = numeric_types[j];
        uint64_t seed = k * 100 + j;
        for (int64_t i = 0; i < product(shapes[k].rank, shapes[k].dim); i++)
          if (few) /* many equal extremes; zeros of both signs */
            ref_put(
                t, in[0], i,
                copysignl((long double)(ref_random(&seed) % 2), ref_random(&seed) % 2 ? 1 : -1));
          else
            ref_put_bits(t, in[0], i, ref_random(&seed));
        check_arg(t, &shapes[k], true);
        check_arg(t, &shapes[k], false);
      }
}

/* Rows of special values, and the index each must give. */
static void test_positions_of_specials(void **state) {
  (void)state;
  double inf = HUGE_VAL, nan = NAN;
  const struct {
    double x[4];
    int64_t max, min;
  } rows[] = {{{1, nan, 2, nan}, 1, 1},         {{nan, inf, -inf, 0}, 0, 0},
              {{-inf, -inf, -inf, -inf}, 0, 0}, {{inf, 3, inf, -inf}, 0, 3},
              {{-0.0, 0.0, -0.0, 0.0}, 0, 0},   {{2, 7, 7, 2}, 1, 0}};
  static const enum dtype types[] = {DT_F16, DT_BF16, DT_F32, DT_F64};
  int64_t n = COUNT(rows), dim[2] = {n, 4};
  struct ir_attr a = axis_attr(1);
  for (size_t j = 0; j < COUNT(types); j++)
    for (int max = 0; max < 2; max++) {
      struct ir_type t = ir_tile(types[j], 2, dim), r = t;
      r.dim[1] = 1;
      r.dtype = DT_INDEX;
      for (int64_t i = 0; i < n * 4; i++)
        ref_put(types[j], in[0], i, (long double)rows[i / 4].x[i % 4]);
      run_op(max ? IR_ARGMAX : IR_ARGMIN, 1, &t, r, &a, INTERP_ROUNDED, DT_COUNT);
      for (int64_t i = 0; i < n; i++)
        assert_int_equal(((int64_t *)(void *)out)[i], max ? rows[i].max : rows[i].min);
    }
}

/* ---- running sums ---- */

static void check_scan(enum dtype t, const struct shape *s, bool exact, enum interp_domain domain) {
  struct ir_type x = ir_tile(t, s->rank, s->dim);
  struct ir_attr a = axis_attr(s->axis);
  enum dtype as = domain == INTERP_DOUBLE && dtype_is_float(t) ? DT_F64 : t;
  run_op(IR_SCAN_SUM, 1, &x, x, &a, domain, as);
  for (int64_t i = 0; i < product(x.rank, x.dim); i++) {
    int64_t c[5], to;
    long double sum = 0, size = 0;
    uint64_t wrapped = 0;
    coords(i, x.rank, x.dim, c);
    to = c[s->axis];
    for (c[s->axis] = 0; c[s->axis] <= to; c[s->axis]++) {
      long double v = ref_get(t, in[0], linear(x.rank, x.dim, c));
      sum += v;
      size += fabsl(v);
      if (!dtype_is_float(t))
        wrapped += (uint64_t)(int64_t)v;
    }
    long double got = ref_get(as, out, i);
    if (!dtype_is_float(t)) {
      assert_true(got == (long double)ref_wrap(t, wrapped));
      continue;
    }
    long double error = exact || isinf(sum) ? 0 : size * 0x1p-50L;
    long double least = sum - error, most = sum + error;
    if (as == t) {
      least = ref_round(t, least);
      most = ref_round(t, most);
    }
    if (isnan(sum) ? !isnan(got) : !(got >= least && got <= most))
      fail_msg("scan_sum on %s: got %.20Lg, expected %.20Lg", dtype_name(t), got, sum);
  }
}

static void test_running_sums(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT(shapes); k++)
    for (size_t j = 0; j < COUNT(numeric_types); j++)
      for (int domain = 0; domain < 2; domain++) {
        enum dtype t = numeric_types[j];
        uint64_t seed = k * 100 + j;
        int64_t n = product(shapes[k].rank, shapes[k].dim);
        for (int64_t i = 0; i < n; i++)
          if (dtype_is_float(t))
            ref_put(t, in[0], i, (long double)(int64_t)(ref_random(&seed) % 9) - 3);
          else
            ref_put_bits(t, in[0], i, ref_random(&seed));
        check_scan(t, &shapes[k], true, (enum interp_domain)domain);
        for (int64_t i = 0; i < n && dtype_is_float(t); i++)
          ref_put(t, in[0], i, (long double)(int64_t)ref_random(&seed) * 0x1p-63L);
        if (dtype_is_float(t))
          check_scan(t, &shapes[k], false, (enum interp_domain)domain);
        if (n < 3 || !dtype_is_float(t))
          continue;
        ref_put(t, in[0], n / 2, (long double)NAN);
        ref_put(t, in[0], 0, (long double)INFINITY); /* fp8 takes the largest there */
        check_scan(t, &shapes[k], false, (enum interp_domain)domain);
      }
}

/* ---- parts ---- */

static const enum dtype moved_types[] = {DT_BOOL, DT_S4,  DT_U8,  DT_S32, DT_S64,
                                         DT_BF16, DT_F32, DT_F64, DT_E5M2};

static void fill_bits(enum dtype t, void *data, int64_t n, uint64_t seed) {
  for (int64_t i = 0; i < n; i++) {
    ref_put_bits(t, data, i, t == DT_BOOL ? ref_random(&seed) & 1 : ref_random(&seed));
    if (isnan(ref_get(t, data, i))) /* payloads are not kept */
      ref_put_bits(t, data, i, 1);
  }
}

static void test_extract(void **state) {
  (void)state;
  static const struct {
    uint32_t rank;
    int64_t dim[5], at[5], size[5];
  } cases[] = {
      {1, {9}, {0}, {9}},
      {1, {9}, {8}, {1}},
      {2, {5, 9}, {1, 3}, {3, 5}},
      {2, {5, 9}, {0, 8}, {5, 1}},
      {3, {4, 5, 6}, {3, 0, 2}, {1, 5, 4}},
      {5, {2, 3, 2, 3, 4}, {1, 1, 0, 2, 1}, {1, 2, 2, 1, 3}},
  };
  for (size_t k = 0; k < COUNT(cases); k++)
    for (size_t j = 0; j < COUNT(moved_types); j++) {
      enum dtype t = moved_types[j];
      struct ir_type x = ir_tile(t, cases[k].rank, cases[k].dim);
      struct ir_type r = ir_tile(t, cases[k].rank, cases[k].size);
      struct ir_attr a = {.key = IR_ATTR_offsets, .ints = cases[k].at, .n_ints = x.rank};
      fill_bits(t, in[0], product(x.rank, x.dim), k);
      run_op(IR_EXTRACT, 1, &x, r, &a, INTERP_ROUNDED, DT_COUNT);
      for (int64_t i = 0; i < product(r.rank, r.dim); i++) {
        int64_t c[5];
        coords(i, r.rank, r.dim, c);
        for (uint32_t d = 0; d < r.rank; d++)
          c[d] += cases[k].at[d];
        assert_true(ref_same(ref_get(t, out, i), ref_get(t, in[0], linear(x.rank, x.dim, c))));
      }
    }
}

static void test_concat(void **state) {
  (void)state;
  static const struct {
    uint32_t rank, n;
    int64_t axis, dim[5], len[3];
  } cases[] = {
      {1, 1, 0, {4}, {4}},
      {1, 3, 0, {1}, {3, 1, 5}},
      {2, 2, 0, {1, 7}, {2, 3}},
      {2, 3, 1, {5, 1}, {4, 1, 2}},
      {3, 2, 1, {2, 1, 3}, {4, 1}},
      {5, 3, 4, {2, 1, 2, 3, 1}, {1, 2, 3}},
      {5, 2, 0, {1, 2, 1, 2, 3}, {1, 3}},
  };
  for (size_t k = 0; k < COUNT(cases); k++)
    for (size_t j = 0; j < COUNT(moved_types); j++) {
      enum dtype t = moved_types[j];
      struct ir_type x[3], r = ir_tile(t, cases[k].rank, cases[k].dim);
      int64_t axis = cases[k].axis;
      r.dim[axis] = 0;
      for (uint32_t q = 0; q < cases[k].n; q++) {
        x[q] = ir_tile(t, cases[k].rank, cases[k].dim);
        x[q].dim[axis] = cases[k].len[q];
        r.dim[axis] += cases[k].len[q];
        fill_bits(t, in[q], product(x[q].rank, x[q].dim), k * 3 + q);
      }
      struct ir_attr a = axis_attr(axis);
      run_op(IR_CONCAT, cases[k].n, x, r, &a, INTERP_ROUNDED, DT_COUNT);
      for (int64_t i = 0; i < product(r.rank, r.dim); i++) {
        int64_t c[5];
        uint32_t q = 0;
        coords(i, r.rank, r.dim, c);
        for (; c[axis] >= x[q].dim[axis]; q++)
          c[axis] -= x[q].dim[axis];
        assert_true(
            ref_same(ref_get(t, out, i), ref_get(t, in[q], linear(x[q].rank, x[q].dim, c))));
      }
    }
}

/* ---- bits ---- */

/* A bitcast moves no byte: what is stored is what was loaded. NaNs become the one that stores
 * write, unless the bits were integers on both sides. */
static void test_bitcast(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT(numeric_types); k++)
    for (size_t j = 0; j < COUNT(numeric_types); j++) {
      enum dtype t = numeric_types[k], u = numeric_types[j];
      int64_t bytes = 3 * 48, dx[2] = {3, 48 * 8 / dtype_bits(t)},
              dr[2] = {3, 48 * 8 / dtype_bits(u)};
      struct ir_type x = ir_tile(t, 2, dx), r = ir_tile(u, 2, dr);
      uint64_t seed = k * 100 + j;
      for (int64_t i = 0; i < bytes; i++)
        in[0][i] = (unsigned char)ref_random(&seed);
      if (t == DT_E5M2 || u == DT_E5M2)
        in[0][5] = 0x7c, in[0][6] = 0xfc; /* infinities, which stores of results clamp */
      for (int64_t i = 0; i < product(2, dx); i++)
        if (isnan(ref_get(t, in[0], i)))
          ref_put_bits(t, in[0], i, 0x3c);
      for (int64_t i = 0; i < product(2, dr); i++)
        if (isnan(ref_get(u, in[0], i)))
          ref_put_bits(u, in[0], i, 0);
      for (int64_t i = 0; i < product(2, dx); i++) /* again: the second may have made some */
        if (isnan(ref_get(t, in[0], i)))
          memset(in[0], 0, (size_t)bytes);
      run_op(IR_BITCAST, 1, &x, r, NULL, INTERP_ROUNDED, DT_COUNT);
      if (memcmp(in[0], out, (size_t)bytes) != 0)
        fail_msg("bitcast of %s to %s changed bits", dtype_name(t), dtype_name(u));
    }
}

/* DOUBLE holds values that no f16 is; their bits are those of the nearest. NaN: all ones. */
static void test_bitcast_rounds(void **state) {
  (void)state;
  struct hi h;
  int64_t n = 4, one = 4;
  hi_init(&h);
  h.opt.domain = INTERP_DOUBLE;
  hi_tensor(&h, "X", IR_ARG_IN, DT_F16, "4");
  hi_tensor(&h, "O", IR_ARG_OUT, DT_S32, "2");
  hi_begin(&h, "1");
  struct ir_val x = hi_load1(&h, 0, hi_index(&h, 0), n);
  struct ir_val third = hi_op2(&h, IR_DIV, x, hi_splat(&h, hi_num(&h, DT_F16, 3), 1, &one));
  int64_t two = 2;
  hi_store1(&h, 1, hi_index(&h, 0),
            ir_build1(&h.b, IR_BITCAST, ir_tile(DT_S32, 1, &two), 1, &third));
  hi_end(&h);
  static const double values[] = {1, -2, 0, NAN};
  for (int i = 0; i < 4; i++)
    ref_put(DT_F16, in[0], i, (long double)values[i]);
  hi_bind(&h, 0, in[0], &n);
  hi_bind(&h, 1, out, &two);
  hi_run_ok(&h);
  hi_free(&h);
  const uint32_t *bits = (const uint32_t *)(const void *)out;
  assert_int_equal(bits[0], 0xb9553555); /* -2/3 over 1/3 */
  assert_int_equal(bits[1], 0x7fff0000);
}

/* ---- random numbers ---- */

/* The published known answers of Philox4x32-10 (Random123's kat_vectors). */
static void test_philox(void **state) {
  (void)state;
  static const struct {
    uint32_t counter[4], key[2], want[4];
  } known[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (size_t k = 0; k < COUNT(known); k++) {
    uint32_t got[4];
    random_philox(known[k].counter, known[k].key, got);
    assert_memory_equal(got, known[k].want, sizeof got);
  }
  for (unsigned word = 0; word < 4; word++)
    assert_int_equal(random_word(0, 0, word), known[0].want[word]);
}

/* The same rounds written apart from base/random.c, in 64-bit words: high and low halves are what
 * the paper calls L and R. */
static uint32_t philox_ref(uint64_t seed, uint64_t counter, int word) {
  uint64_t a = counter, b = 0; /* words 0, 1 and 2, 3 */
  for (unsigned round = 0; round < 10; round++) {
    uint32_t k0 = (uint32_t)(seed & 0xffffffff) + round * 2654435769u;
    uint32_t k1 = (uint32_t)(seed >> 32) + round * 3144134277u;
    uint64_t pa = (a & 0xffffffff) * 3528531795u, pb = (b & 0xffffffff) * 3449720151u;
    uint64_t x0 = (pb >> 32) ^ (a >> 32) ^ k0, x2 = (pa >> 32) ^ (b >> 32) ^ k1;
    a = x0 | pb << 32;
    b = x2 | pa << 32;
  }
  return (uint32_t)((word < 2 ? a : b) >> (word % 2 * 32));
}

static void test_random_op(void **state) {
  (void)state;
  int64_t n = 512, one = 1;
  for (int word = 0; word < 4; word++) {
    struct hi h;
    int64_t seed = word ? INT64_C(-7) * 0x1234567890 : 0;
    uint64_t rng = (uint64_t)word;
    hi_init(&h);
    hi_scalar(&h, "seed", DT_S64);
    hi_tensor(&h, "X", IR_ARG_IN, DT_S64, "512");
    hi_tensor(&h, "O", IR_ARG_OUT, DT_S32, "512");
    hi_tensor(&h, "P", IR_ARG_OUT, DT_S32, "1");
    hi_begin(&h, "1");
    struct ir_attr a = {.key = IR_ATTR_word, .i = word};
    struct ir_val zero = hi_index(&h, 0), pair[2] = {h.arg[0], hi_load1(&h, 1, zero, n)};
    struct ir_val r = ir_build1(&h.b, IR_RANDOM, ir_tile(DT_S32, 1, &n), 2, pair);
    ir_set_attr(h.m, ir_value_at(h.m, r)->def, a);
    pair[1] = hi_index(&h, 41);
    struct ir_val s = ir_build1(&h.b, IR_RANDOM, ir_scalar(DT_S32), 2, pair);
    ir_set_attr(h.m, ir_value_at(h.m, s)->def, a);
    hi_store1(&h, 2, zero, r);
    hi_store1(&h, 3, zero, hi_splat(&h, s, 1, &one));
    hi_end(&h);
    for (int64_t i = 0; i < n; i++)
      ((int64_t *)(void *)in[1])[i] = i < 256 ? i : (int64_t)ref_random(&rng);
    h.value[0].i = seed;
    hi_bind(&h, 1, in[1], &n);
    hi_bind(&h, 2, out, &n);
    hi_bind(&h, 3, in[2], &one);
    hi_run_ok(&h);
    hi_free(&h);
    for (int64_t i = 0; i < n; i++)
      assert_int_equal(((uint32_t *)(void *)out)[i],
                       philox_ref((uint64_t)seed, ((uint64_t *)(void *)in[1])[i], word));
    assert_int_equal(*(uint32_t *)(void *)in[2], philox_ref((uint64_t)seed, 41, word));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_floor),          cmocka_unit_test(test_masks),
      cmocka_unit_test(test_positions),      cmocka_unit_test(test_positions_of_specials),
      cmocka_unit_test(test_running_sums),   cmocka_unit_test(test_extract),
      cmocka_unit_test(test_concat),         cmocka_unit_test(test_bitcast),
      cmocka_unit_test(test_bitcast_rounds), cmocka_unit_test(test_philox),
      cmocka_unit_test(test_random_op),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
