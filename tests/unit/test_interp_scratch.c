/* Scratch arguments of the interpreter: what they hold at first, in each domain; that a run never
 * sees what the one before left; sizes; races in them. And loops whose bounds and conditions come
 * from memory. */
#include "help_interp.h"

#include <math.h>
#include <string.h>

/* O[i] = W[i], then W = 7. */
static void build_copy(struct hi *h, enum dtype t, const char *dims, bool zero) {
  int64_t four = 4;
  hi_init(h);
  hi_tensor(h, "O", IR_ARG_OUT, t, "N");
  uint32_t w = hi_tensor(h, "W", IR_ARG_SCRATCH, t, dims); /* moves the arguments */
  h->m->args.at[w].zero = zero;
  hi_begin(h, "1");
  hi_store1(h, 0, hi_index(h, 0), hi_load1(h, 1, hi_index(h, 0), 4));
  struct ir_val seven = dtype_is_float(t) ? hi_num(h, t, 7) : ir_const_int(&h->b, t, 7);
  hi_store1(h, 1, hi_index(h, 0), hi_splat(h, seven, 1, &four));
  hi_end(h);
}

static void test_first_values(void **state) {
  (void)state;
  for (int zero = 0; zero < 2; zero++) {
    struct hi h;
    float f[6];
    int32_t s[6];
    double d[6];
    int64_t p[6];
    build_copy(&h, DT_F32, "N", zero);
    hi_bind(&h, 0, f, (int64_t[]){6});
    hi_run_ok(&h);
    hi_run_ok(&h); /* what the first run wrote is gone */
    for (int i = 0; i < 4; i++)
      assert_true(zero ? f[i] == 0 : isnan(f[i]));
    h.opt.domain = INTERP_DOUBLE;
    hi_bind_as(&h, 0, DT_F64, d, (int64_t[]){6});
    hi_run_ok(&h);
    for (int i = 0; i < 4; i++)
      assert_true(zero ? d[i] == 0 : isnan(d[i]));
    h.opt.domain = INTERP_ALGEBRAIC;
    hi_bind_as(&h, 0, DT_S64, p, (int64_t[]){6});
    hi_run_ok(&h);
    for (int i = 0; i < 4; i++)
      assert_true(p[i] == (zero ? 0 : INTERP_NAN));
    hi_free(&h);
    build_copy(&h, DT_S32, "N", zero);
    hi_bind(&h, 0, s, (int64_t[]){6});
    hi_run_ok(&h);
    for (int i = 0; i < 4; i++)
      assert_int_equal(s[i], zero ? 0 : -1);
    hi_free(&h);
  }
}

/* Sizes are expressions of dims; what lies outside is dropped and reads as 0, as in any tensor. */
static void test_sizes(void **state) {
  (void)state;
  struct hi h;
  int32_t s[6] = {0};
  build_copy(&h, DT_S32, "cdiv(N, 4)", false);
  hi_bind(&h, 0, s, (int64_t[]){6});
  hi_run_ok(&h);
  assert_true(s[0] == -1 && s[1] == -1 && s[2] == 0 && s[3] == 0);
  hi_free(&h);
  build_copy(&h, DT_S32, "N - 4", false);
  hi_bind(&h, 0, s, (int64_t[]){4});
  hi_run_ok(&h);
  hi_bind(&h, 0, s, (int64_t[]){3});
  assert_false(hi_run(&h));
  help_expect_diag(&h.diags, DIAG_SHAPE_BINDING, "argument 'W': dim 0, N - 4, is negative (-1)");
  hi_free(&h);
  build_copy(&h, DT_S32, "N * 1099511627776", false);
  hi_bind(&h, 0, s, (int64_t[]){6});
  assert_false(hi_run(&h));
  help_expect_diag(&h.diags, DIAG_SHAPE_BINDING, "more scratch memory than");
  hi_free(&h);
}

/* A scratch argument's dims give no dim its value. */
static void test_binds_nothing(void **state) {
  (void)state;
  struct hi h;
  float f[4];
  hi_init(&h);
  hi_tensor(&h, "W", IR_ARG_SCRATCH, DT_F32, "M");
  hi_tensor(&h, "O", IR_ARG_OUT, DT_F32, "N");
  hi_begin(&h, "1");
  hi_store1(&h, 1, hi_index(&h, 0), hi_load1(&h, 0, hi_index(&h, 0), 4));
  hi_end(&h);
  hi_bind(&h, 1, f, (int64_t[]){4});
  assert_false(hi_run(&h));
  help_expect_diag(&h.diags, DIAG_SHAPE_BINDING, "dim 'M' has no value");
  hi_free(&h);
}

/* Programs that meet in scratch memory conflict as anywhere. */
static void test_races(void **state) {
  (void)state;
  for (int64_t step = 3; step <= 4; step++) {
    struct hi h;
    float f[16];
    hi_init(&h);
    h.opt.check_races = true;
    hi_tensor(&h, "W", IR_ARG_SCRATCH, DT_F32, "N");
    hi_tensor(&h, "O", IR_ARG_OUT, DT_F32, "N");
    hi_begin(&h, "4");
    struct ir_val at = hi_op2(&h, IR_MUL, h.grid[0], hi_index(&h, step));
    int64_t four = 4;
    hi_store1(&h, 0, at, hi_splat(&h, hi_num(&h, DT_F32, 1), 1, &four));
    hi_store1(&h, 1, hi_op2(&h, IR_MUL, h.grid[0], hi_index(&h, 4)), hi_load1(&h, 0, at, 4));
    hi_end(&h);
    hi_bind(&h, 1, f, (int64_t[]){16});
    assert_int_equal(hi_run(&h), step == 4);
    if (step == 3)
      help_expect_diag(&h.diags, DIAG_RACE, "element (3) of 'W', which another program");
    hi_free(&h);
  }
}

/* ---- what nothing has written ---- */

enum access { LOAD, GATHER, ADD, EXCHANGE, LOSING_EXCHANGE, N_ACCESSES };

/* Reads W[start .. start + 4) in some way, of which [0, written) was written before. */
static void build_access(struct hi *h, enum ir_arg_kind kind, bool zero, enum access access,
                         int64_t start, int64_t written) {
  hi_init(h);
  h->opt.check_races = h->opt.check_unwritten = true;
  uint32_t w = hi_tensor(h, "W", kind, DT_S32, "N");
  h->m->args.at[w].zero = zero;
  hi_tensor(h, "O", IR_ARG_OUT, DT_S32, "N");
  hi_begin(h, "1");
  struct ir_val first = hi_index(h, start), seven = ir_const_int(&h->b, DT_S32, 7);
  if (written)
    hi_store1(h, 0, hi_index(h, 0), hi_splat(h, seven, 1, &written));
  int64_t four = 4;
  struct ir_val got, tile = hi_splat(h, seven, 1, &four), from = hi_splat(h, first, 1, &four);
  struct ir_val iota = hi_shape(h, IR_RESHAPE, hi_iota(h, 0, 4), 1, &four);
  struct ir_val at = hi_op2(h, IR_ADD, from, iota), in[3] = {h->arg[0], at, tile};
  if (access == LOAD) {
    got = hi_load1(h, 0, first, 4);
  } else if (access == GATHER) {
    got = ir_build1(&h->b, IR_GATHER, ir_type_of(h->m, tile), 2, in);
  } else {
    got = ir_build1(&h->b, IR_ATOMIC, ir_type_of(h->m, tile), 3, in);
    const char *name = access == ADD ? "add" : "exchange";
    ir_set_attr(h->m, ir_value_at(h->m, got)->def,
                (struct ir_attr){.key = IR_ATTR_kind, .s = symtab_get(h->m->syms, name)});
  }
  hi_store1(h, 1, hi_index(h, 0), access == LOSING_EXCHANGE ? tile : got);
  hi_end(h);
}

/* Every way to read, every kind of argument; partly written memory as well as none of it. */
static void test_unwritten(void **state) {
  (void)state;
  static const enum ir_arg_kind kinds[] = {IR_ARG_OUT, IR_ARG_INOUT, IR_ARG_SCRATCH,
                                           IR_ARG_SCRATCH};
  for (int k = 0; k < 4; k++)
    for (enum access access = 0; access < N_ACCESSES; access++)
      for (int64_t start = 0; start <= 2; start++)
        for (int64_t written = 0; written <= 4; written += 4) {
          struct hi h;
          int32_t w[8] = {0}, o[8];
          bool initialised = kinds[k] == IR_ARG_INOUT || k == 3 || access == LOSING_EXCHANGE;
          bool ok = initialised || start + 4 <= written;
          build_access(&h, kinds[k], k == 3, access, start, written);
          if (kinds[k] != IR_ARG_SCRATCH)
            hi_bind(&h, 0, w, (int64_t[]){8});
          hi_bind(&h, 1, o, (int64_t[]){8});
          assert_int_equal(hi_run(&h), ok);
          char text[80];
          snprintf(text, sizeof text, "element (%d) of 'W', which nothing has written before",
                   (int)(written > start ? written : start));
          if (!ok)
            help_expect_diag(&h.diags, DIAG_UNWRITTEN, text);
          else
            assert_int_equal(h.diags.list.n, 0);
          h.opt.check_unwritten = false;
          assert_true(hi_run(&h));
          hi_free(&h);
        }
}

/* ---- control from memory ---- */

static struct ir_val loaded(struct hi *h, uint32_t arg, struct ir_val at) {
  return hi_cast(h, DT_INDEX, hi_op1(h, IR_ITEM, hi_load1(h, arg, at, 1)));
}

/* Program i sums X[start[i] .. start[i + 1]): sequences of different lengths, some empty, some with
 * their bounds the wrong way round. */
static void test_loaded_bounds(void **state) {
  (void)state;
  const int32_t start[] = {0, 3, 3, 9, 7, 10}, x[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
  int32_t sums[5];
  struct hi h;
  hi_init(&h);
  hi_tensor(&h, "X", IR_ARG_IN, DT_S32, "N");
  hi_tensor(&h, "S", IR_ARG_IN, DT_S32, "C");
  hi_tensor(&h, "O", IR_ARG_OUT, DT_S32, "P");
  hi_begin(&h, "P");
  struct ir_val next = hi_op2(&h, IR_ADD, h.grid[0], hi_index(&h, 1));
  struct ir_val lo = loaded(&h, 1, h.grid[0]);
  struct ir_val hi = loaded(&h, 1, next);
  int64_t one = 1;
  struct ir_val zero = hi_splat(&h, ir_const_int(&h.b, DT_S32, 0), 1, &one);
  struct ir_op o = hi_for(&h, lo, hi, hi_index(&h, 1), 1, &zero);
  struct ir_val e = hi_load1(&h, 0, hi_arg(&h, o, 0, 0), 1);
  struct ir_val sum = hi_op2(&h, IR_ADD, hi_arg(&h, o, 0, 1), e);
  hi_yield(&h, 1, &sum);
  hi_store1(&h, 2, h.grid[0], hi_out(&h, o, 0));
  hi_end(&h);
  hi_bind(&h, 0, (void *)(uintptr_t)x, (int64_t[]){10});
  hi_bind(&h, 1, (void *)(uintptr_t)start, (int64_t[]){6});
  hi_bind(&h, 2, sums, (int64_t[]){5});
  hi_run_ok(&h);
  hi_free(&h);
  for (int i = 0; i < 5; i++) {
    int32_t want = 0;
    for (int k = start[i]; k < start[i + 1]; k++)
      want += x[k];
    assert_int_equal(sums[i], want);
  }
}

/* A linked list: while (at >= 0) { length++; at = next[at]; } One that never ends is stopped. */
static void test_loaded_condition(void **state) {
  (void)state;
  int32_t next[] = {3, -1, 5, 1, 0, 4}, head[] = {0, 1, 2, -1}, length[4];
  for (int endless = 0; endless < 2; endless++) {
    struct hi h;
    hi_init(&h);
    h.opt.max_steps = 100000;
    hi_tensor(&h, "next", IR_ARG_IN, DT_S32, "N");
    hi_tensor(&h, "head", IR_ARG_IN, DT_S32, "P");
    hi_tensor(&h, "O", IR_ARG_OUT, DT_S32, "P");
    hi_begin(&h, "P");
    struct ir_type carried[2] = {ir_scalar(DT_INDEX), ir_scalar(DT_S32)};
    struct ir_val inits[2] = {loaded(&h, 1, h.grid[0]), ir_const_int(&h.b, DT_S32, 0)};
    struct ir_op o = hi_while(&h, 2, inits, 2, carried);
    struct ir_val at = hi_arg(&h, o, 0, 0);
    struct ir_val go_on = hi_op2(&h, IR_GE, at, hi_index(&h, 0));
    struct ir_val passed[3] = {go_on, at, hi_arg(&h, o, 0, 1)};
    hi_condition(&h, 3, passed);
    struct ir_val one = ir_const_int(&h.b, DT_S32, 1);
    struct ir_val after[2] = {loaded(&h, 0, hi_arg(&h, o, 1, 0)),
                              hi_op2(&h, IR_ADD, hi_arg(&h, o, 1, 1), one)};
    hi_yield(&h, 2, after);
    int64_t single = 1;
    hi_store1(&h, 2, h.grid[0], hi_splat(&h, hi_out(&h, o, 1), 1, &single));
    hi_end(&h);
    next[1] = endless ? 0 : -1;
    hi_bind(&h, 0, next, (int64_t[]){6});
    hi_bind(&h, 1, head, (int64_t[]){4});
    hi_bind(&h, 2, length, (int64_t[]){4});
    assert_int_equal(hi_run(&h), !endless);
    if (endless)
      help_expect_diag(&h.diags, DIAG_STEP_LIMIT, "more than 100000 ops");
    hi_free(&h);
    if (!endless)
      assert_true(length[0] == 3 && length[1] == 1 && length[2] == 6 && length[3] == 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_first_values),     cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_binds_nothing),    cmocka_unit_test(test_races),
      cmocka_unit_test(test_unwritten),        cmocka_unit_test(test_loaded_bounds),
      cmocka_unit_test(test_loaded_condition),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
