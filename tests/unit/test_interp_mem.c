/* Loads and stores of the interpreter: strides of every sign, offsets far out of range, pads,
 * packed and empty tensors; aliasing within a program; race checks; the order of the grid. */
#include "help_interp.h"
#include "help_ref.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

enum { BYTES = 1 << 16 };
static unsigned char in[BYTES], out[BYTES];

static const enum dtype memory_types[] = {DT_BOOL, DT_S4,  DT_U4,  DT_S8,   DT_U8,
                                          DT_S32,  DT_S64, DT_F16, DT_BF16, DT_E4M3,
                                          DT_E5M2, DT_F32, DT_F64};

/* Small integers are values of every type. */
static long double small(enum dtype t, uint64_t r) {
  return t == DT_BOOL ? (long double)(r & 1) : (long double)(r % 7);
}

/* A strided tensor of rank 2 inside a buffer of `BYTES`: element (i, j) at offset + i*s0 + j*s1. */
struct strided {
  int64_t dim[2], stride[2], offset;
};

static struct interp_tensor tensor_of(const struct strided *s, enum dtype t, void *data) {
  struct interp_tensor r = {.data = data, .dtype = t, .rank = 2, .offset = s->offset};
  memcpy(r.dim, s->dim, sizeof s->dim);
  memcpy(r.stride, s->stride, sizeof s->stride);
  return r;
}

static int64_t at(const struct strided *s, int64_t i, int64_t j) {
  return s->offset + i * s->stride[0] + j * s->stride[1];
}

static bool inside(const struct strided *s, int64_t i, int64_t j) {
  return i >= 0 && i < s->dim[0] && j >= 0 && j < s->dim[1];
}

/* O[oi.., oj..] = X[xi.., xj..] through one tile of rows x cols. */
static void copy_tile(enum dtype t, const struct strided *x, const struct strided *o,
                      const int64_t *from, const int64_t *to, int64_t rows, int64_t cols,
                      const double *pad) {
  struct hi h;
  hi_init(&h);
  hi_tensor(&h, "X", IR_ARG_IN, t, "M,K");
  hi_tensor(&h, "O", IR_ARG_OUT, t, "P,Q");
  hi_begin(&h, "1");
  struct ir_val v = hi_load2(&h, 0, hi_index(&h, from[0]), hi_index(&h, from[1]), rows, cols);
  if (pad)
    hi_set_pad(&h, v, *pad);
  hi_store2(&h, 1, hi_index(&h, to[0]), hi_index(&h, to[1]), v);
  hi_end(&h);
  h.value[0].tensor = tensor_of(x, t, in);
  h.value[1].tensor = tensor_of(o, t, out);
  hi_run_ok(&h);
  hi_free(&h);
}

static void check_copy(enum dtype t, const struct strided *x, const struct strided *o,
                       const int64_t *from, const int64_t *to, int64_t rows, int64_t cols,
                       const double *pad) {
  static unsigned char want[BYTES];
  uint64_t seed = (uint64_t)(rows * 100 + cols);
  for (int64_t i = 0; i < BYTES / 8; i++) {
    ref_put(t, in, i, small(t, ref_random(&seed)));
    ref_put(t, out, i, 1);
  }
  memcpy(want, out, sizeof out);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < cols; j++) {
      /* Offsets near the ends of int64 are out of range whatever i is. */
      int64_t xi, xj, oi, oj;
      if (__builtin_add_overflow(to[0], i, &oi) || __builtin_add_overflow(to[1], j, &oj) ||
          !inside(o, oi, oj))
        continue;
      bool hit = !__builtin_add_overflow(from[0], i, &xi) &&
                 !__builtin_add_overflow(from[1], j, &xj) && inside(x, xi, xj);
      long double v = hit ? ref_get(t, in, at(x, xi, xj)) : pad ? (long double)*pad : 0;
      ref_put(t, want, at(o, oi, oj), v);
    }
  copy_tile(t, x, o, from, to, rows, cols, pad);
  if (memcmp(want, out, sizeof out) != 0)
    fail_msg("%s tile of %lld x %lld, strides %lld %lld to %lld %lld", dtype_name(t),
             (long long)rows, (long long)cols, (long long)x->stride[0], (long long)x->stride[1],
             (long long)o->stride[0], (long long)o->stride[1]);
}

static const struct strided layouts[] = {
    {{9, 13}, {13, 1}, 0},       /* row-major */
    {{9, 13}, {1, 9}, 0},        /* column-major */
    {{9, 13}, {37, 2}, 5},       /* gaps */
    {{9, 13}, {-13, 1}, 8 * 13}, /* rows reversed */
    {{9, 13}, {1, -9}, 12 * 9},  {{9, 13}, {-20, -1}, 200},
};

static void test_strides(void **state) {
  (void)state;
  static const struct {
    int64_t from[2], to[2], rows, cols;
  } moves[] = {
      {{0, 0}, {0, 0}, 9, 13},   {{2, 3}, {1, 4}, 4, 5},   {{-2, -3}, {1, 1}, 6, 7},
      {{5, 9}, {-1, 8}, 8, 8},   {{0, 0}, {0, 0}, 16, 16}, {{8, 12}, {0, 0}, 1, 1},
      {{9, 0}, {0, 0}, 3, 3},    {{0, 13}, {2, 2}, 3, 3},  {{-3, 0}, {2, 2}, 3, 3},
      {{0, -20}, {0, 0}, 3, 19}, {{0, 0}, {9, 13}, 3, 3},
  };
  const double pad = 1;
  for (size_t t = 0; t < COUNT(memory_types); t++)
    for (size_t x = 0; x < COUNT(layouts); x++)
      for (size_t k = 0; k < COUNT(moves); k++) {
        const struct strided *o = &layouts[(x + k) % COUNT(layouts)];
        check_copy(memory_types[t], &layouts[x], o, moves[k].from, moves[k].to, moves[k].rows,
                   moves[k].cols, k % 2 ? &pad : NULL);
      }
}

/* A stride of 0 reads one element again and again. */
static void test_zero_stride(void **state) {
  (void)state;
  const struct strided row = {{9, 13}, {0, 1}, 3}, all = {{9, 13}, {0, 0}, 7};
  const int64_t zero[2] = {0, 0};
  for (size_t t = 0; t < COUNT(memory_types); t++) {
    check_copy(memory_types[t], &row, &layouts[0], zero, zero, 9, 13, NULL);
    check_copy(memory_types[t], &all, &layouts[3], zero, zero, 10, 14, NULL);
  }
}

static void test_far_offsets(void **state) {
  (void)state;
  static const int64_t far[] = {INT64_MAX,
                                INT64_MAX - 3,
                                INT64_MIN,
                                INT64_MIN + 3,
                                INT64_MAX / 2,
                                (INT64_C(1) << 62),
                                -(INT64_C(1) << 62),
                                9,
                                -4};
  for (size_t a = 0; a < COUNT(far); a++)
    for (size_t b = 0; b < COUNT(far); b++) {
      const int64_t off[2] = {far[a], far[b]}, zero[2] = {0, 0};
      const double pad = 2;
      check_copy(DT_F32, &layouts[0], &layouts[1], off, zero, 4, 4, &pad);
      check_copy(DT_F32, &layouts[0], &layouts[1], zero, off, 4, 4, NULL);
      check_copy(DT_U4, &layouts[2], &layouts[1], off, off, 4, 4, &pad);
    }
}

/* Rank 1, 3, 4 and 5 against plain index arithmetic. */
static void test_ranks(void **state) {
  (void)state;
  static const struct {
    uint32_t rank;
    int64_t dim[5], tile[5], from[5];
  } cases[] = {
      {1, {17}, {8}, {12}},
      {3, {3, 5, 7}, {2, 4, 8}, {-1, 2, 1}},
      {4, {2, 3, 4, 5}, {2, 2, 2, 8}, {1, -1, 3, -2}},
      {5, {2, 2, 3, 2, 5}, {2, 1, 4, 2, 4}, {0, 1, -1, 1, 2}},
  };
  for (size_t c = 0; c < COUNT(cases); c++) {
    uint32_t rank = cases[c].rank;
    char dims[64] = "", tile[64] = "";
    size_t n = 0, q = 0;
    int64_t total = 1;
    for (uint32_t k = 0; k < rank; k++) {
      n += (size_t)snprintf(dims + n, sizeof dims - n, "%sD%u", k ? "," : "", k);
      q += (size_t)snprintf(tile + q, sizeof tile - q, "%s%lld", k ? "," : "",
                            (long long)cases[c].tile[k]);
      total *= cases[c].tile[k];
    }
    struct hi h;
    hi_init(&h);
    hi_tensor(&h, "X", IR_ARG_IN, DT_S32, dims);
    hi_tensor(&h, "O", IR_ARG_OUT, DT_S32, tile);
    hi_begin(&h, "1");
    struct ir_val from[5], zero[5];
    for (uint32_t k = 0; k < rank; k++) {
      from[k] = hi_index(&h, cases[c].from[k]);
      zero[k] = hi_index(&h, 0);
    }
    hi_store(&h, 1, zero, hi_load(&h, 0, from, cases[c].tile));
    hi_end(&h);
    for (int i = 0; i < 1000; i++)
      ((int32_t *)in)[i] = i + 1;
    hi_bind(&h, 0, in, cases[c].dim);
    hi_bind(&h, 1, out, cases[c].tile);
    hi_run_ok(&h);
    hi_free(&h);
    for (int64_t i = 0; i < total; i++) {
      int64_t rest = i, element = 0, scale = 1;
      bool hit = true;
      for (uint32_t k = rank; k-- > 0;) {
        int64_t x = rest % cases[c].tile[k] + cases[c].from[k];
        rest /= cases[c].tile[k];
        hit = hit && x >= 0 && x < cases[c].dim[k];
        element += x * scale;
        scale *= cases[c].dim[k];
      }
      assert_int_equal(((int32_t *)out)[i], hit ? element + 1 : 0);
    }
  }
}

/* No element at all: nothing is read, nothing written, data may be NULL. */
static void test_empty(void **state) {
  (void)state;
  struct hi h;
  hi_init(&h);
  hi_tensor(&h, "X", IR_ARG_IN, DT_F32, "M,K");
  hi_tensor(&h, "O", IR_ARG_OUT, DT_F32, "M");
  hi_begin(&h, "cdiv(M, 4)");
  struct ir_val i = hi_op2(&h, IR_MUL, h.grid[0], hi_index(&h, 4));
  struct ir_val x = hi_load2(&h, 0, i, hi_index(&h, 0), 4, 8);
  struct ir_val s = hi_reduce(&h, IR_REDUCE_SUM, x, 1);
  int64_t four = 4;
  hi_store1(&h, 1, i, hi_shape(&h, IR_RESHAPE, s, 1, &four));
  hi_end(&h);
  float o[5] = {9, 9, 9, 9, 9};
  hi_bind(&h, 0, NULL, (int64_t[]){5, 0});
  hi_bind(&h, 1, o, (int64_t[]){5});
  hi_run_ok(&h);
  for (int k = 0; k < 5; k++)
    assert_true(o[k] == 0);
  hi_bind(&h, 0, NULL, (int64_t[]){0, 3});
  hi_bind(&h, 1, NULL, (int64_t[]){0});
  hi_run_ok(&h);
  hi_free(&h);
}

/* Accesses to one tensor keep program order within a program. */
static void test_program_order(void **state) {
  (void)state;
  struct hi h;
  hi_init(&h);
  h.opt.check_races = true;
  hi_tensor(&h, "X", IR_ARG_INOUT, DT_S32, "N");
  hi_begin(&h, "cdiv(N, 4)");
  struct ir_val i = hi_op2(&h, IR_MUL, h.grid[0], hi_index(&h, 4));
  struct ir_val x = hi_load1(&h, 0, i, 4);
  hi_store1(&h, 0, i, hi_op2(&h, IR_ADD, x, x));
  struct ir_val y = hi_load1(&h, 0, i, 4);
  hi_store1(&h, 0, i, hi_op2(&h, IR_MUL, y, x));
  hi_end(&h);
  int32_t data[10];
  for (int k = 0; k < 10; k++)
    data[k] = k;
  hi_bind(&h, 0, data, (int64_t[]){10});
  hi_run_ok(&h);
  for (int k = 0; k < 10; k++)
    assert_int_equal(data[k], 2 * k * k);
  hi_free(&h);
}

/* ---- races ---- */

/* Program p writes O[p * step ...+4) and reads X[p * read_step + shift ...+4), where X is O itself
 * if `same`. */
static void build_race(struct hi *h, int64_t step, int64_t read_step, int64_t shift, bool same,
                       bool read_first) {
  hi_init(h);
  h->opt.check_races = true;
  hi_tensor(h, "X", IR_ARG_IN, DT_F32, "N");
  hi_tensor(h, "O", IR_ARG_INOUT, DT_F32, "N");
  hi_begin(h, "8");
  struct ir_val w = hi_op2(h, IR_MUL, h->grid[0], hi_index(h, step));
  struct ir_val r =
      hi_op2(h, IR_ADD, hi_op2(h, IR_MUL, h->grid[0], hi_index(h, read_step)), hi_index(h, shift));
  if (read_first)
    hi_store1(h, 1, w, hi_load1(h, same ? 1 : 0, r, 4));
  else {
    hi_store1(h, 1, w, hi_load1(h, 0, w, 4));
    struct ir_val v = hi_load1(h, same ? 1 : 0, r, 4);
    hi_message(h, IR_PRINT, NULL, 1, &v);
  }
  hi_end(h);
  static float x[64], o[64];
  hi_bind(h, 0, x, (int64_t[]){64});
  hi_bind(h, 1, o, (int64_t[]){64});
}

static void expect_race(struct hi *h, const char *text) {
  for (uint64_t seed = 0; seed < 5; seed++) {
    h->opt.grid_seed = seed;
    if (!text) {
      hi_run_ok(h);
      continue;
    }
    assert_false(hi_run(h));
    help_expect_diag(&h->diags, DIAG_RACE, text);
  }
  hi_free(h);
}

static void test_races(void **state) {
  (void)state;
  struct hi h;
  build_race(&h, 4, 4, 0, false, true); /* disjoint writes, reads of another tensor */
  expect_race(&h, NULL);
  build_race(&h, 4, 3, 0, false, true); /* an `in` tensor may be read by all */
  expect_race(&h, NULL);
  build_race(&h, 3, 4, 0, false, true); /* one element overlaps */
  expect_race(&h, "'store' writes element (3) of 'O', which another program writes");
  build_race(&h, 4, 4, 0, true, true); /* each program its own part */
  expect_race(&h, NULL);
  build_race(&h, 4, 4, 0, true, false);
  expect_race(&h, NULL);
  build_race(&h, 4, 4, 1, true, true); /* reads its neighbour's first element */
  expect_race(&h, "of 'O', which another program");
  build_race(&h, 4, 4, 1, true, false);
  expect_race(&h, "of 'O', which another program");
  build_race(&h, 0, 4, 40, false, true); /* all write the same */
  expect_race(&h, "conflicting accesses in all");
}

/* Found in whichever order the two programs run: one writes what the other reads. With `both`, the
 * writer has read it, too, just before. */
static void test_race_in_both_orders(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 8; seed++)
    for (int turn = 0; turn < 4; turn++) {
      int writer = turn % 2;
      bool both = turn / 2;
      struct hi h;
      hi_init(&h);
      h.opt.check_races = true;
      h.opt.grid_seed = seed;
      hi_tensor(&h, "O", IR_ARG_INOUT, DT_F32, "N");
      hi_begin(&h, "2");
      struct ir_val zero = hi_index(&h, 0);
      struct ir_val mine = hi_op2(&h, IR_EQ, h.grid[0], hi_index(&h, writer));
      hi_if(&h, mine, 0, NULL);
      int64_t four = 4;
      if (both) {
        struct ir_val y = hi_load1(&h, 0, zero, 4);
        hi_message(&h, IR_PRINT, NULL, 1, &y);
      }
      hi_store1(&h, 0, zero, hi_splat(&h, hi_num(&h, DT_F32, 1), 1, &four));
      hi_yield(&h, 0, NULL);
      struct ir_val x = hi_load1(&h, 0, zero, 4);
      hi_message(&h, IR_PRINT, NULL, 1, &x);
      hi_yield(&h, 0, NULL);
      hi_end(&h);
      float o[6] = {0};
      hi_bind(&h, 0, o, (int64_t[]){6});
      assert_false(hi_run(&h));
      help_expect_diag(&h.diags, DIAG_RACE, "element (0) of 'O'");
      hi_free(&h);
    }
}

/* Two coordinates that a stride of 0 puts on one address conflict, too. */
static void test_race_by_address(void **state) {
  (void)state;
  static float o[64];
  for (int overlapping = 0; overlapping < 2; overlapping++) {
    struct hi h;
    hi_init(&h);
    h.opt.check_races = true;
    hi_tensor(&h, "O", IR_ARG_OUT, DT_F32, "M,N");
    hi_begin(&h, "M");
    hi_store2(&h, 0, h.grid[0], hi_index(&h, 0), hi_full(&h, DT_F32, 3, 1, 4));
    hi_end(&h);
    hi_bind(&h, 0, o, (int64_t[]){4, 4});
    if (overlapping)
      h.value[0].tensor.stride[0] = 0;
    assert_int_equal(hi_run(&h), !overlapping);
    hi_free(&h);
  }
}

/* ---- order of the grid ---- */

struct lines {
  uint32_t n;
  char first[8][64];
};

static void keep_line(void *user, const char *line) {
  struct lines *l = user;
  if (l->n < 8)
    snprintf(l->first[l->n], sizeof l->first[0], "%s", line);
  l->n++;
}

/* Each program runs once, whatever the seed; seed 0 runs the first axis fastest. */
static void test_grid_order(void **state) {
  (void)state;
  static const int64_t grids[][3] = {{1, 1, 1},  {2, 3, 1},  {5, 3, 7},
                                     {64, 1, 1}, {1, 65, 1}, {0, 5, 1}};
  for (size_t g = 0; g < COUNT(grids); g++) {
    int different = 0;
    for (uint64_t seed = 0; seed < 6; seed++) {
      struct hi h;
      struct lines lines = {0};
      hi_init(&h);
      h.opt.grid_seed = seed;
      h.opt.print = keep_line;
      h.opt.user = &lines;
      hi_tensor(&h, "O", IR_ARG_INOUT, DT_S32, "P,Q,R");
      hi_begin(&h, "P,Q,R");
      struct ir_val p[3] = {h.grid[0], h.grid[1], h.grid[2]};
      struct ir_val x = hi_load(&h, 0, p, (int64_t[]){1, 1, 1});
      struct ir_val one = hi_splat(&h, ir_const_int(&h.b, DT_S32, 1), 3, (int64_t[]){1, 1, 1});
      hi_store(&h, 0, p, hi_op2(&h, IR_ADD, x, one));
      hi_message(&h, IR_PRINT, "at", 1, &p[0]);
      hi_end(&h);
      int32_t o[5 * 3 * 7] = {0};
      hi_bind(&h, 0, o, grids[g]);
      hi_run_ok(&h);
      int64_t n = grids[g][0] * grids[g][1] * grids[g][2];
      assert_int_equal(lines.n, n);
      for (int64_t i = 0; i < n; i++)
        assert_int_equal(o[i], 1);
      if (seed == 0 && g == 1) {
        assert_string_equal(lines.first[0], "program (0, 0, 0): at 0");
        assert_string_equal(lines.first[1], "program (1, 0, 0): at 1");
        assert_string_equal(lines.first[2], "program (0, 1, 0): at 0");
      }
      different += seed && n > 6 && strcmp(lines.first[0], "program (0, 0, 0): at 0") != 0;
      hi_free(&h);
    }
    assert_true(different > 0 || g < 2 || g == 5);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_strides),         cmocka_unit_test(test_zero_stride),
      cmocka_unit_test(test_far_offsets),     cmocka_unit_test(test_ranks),
      cmocka_unit_test(test_empty),           cmocka_unit_test(test_program_order),
      cmocka_unit_test(test_races),           cmocka_unit_test(test_race_in_both_orders),
      cmocka_unit_test(test_race_by_address), cmocka_unit_test(test_grid_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
