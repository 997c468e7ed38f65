/* What the interpreter says to arguments that do not fit, to failing asserts, to runs that are too
 * long or interrupted, and to memory that runs out; and what `print` prints. */
#include "help_interp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* A [M,K], S [M,K//4], B [4] optional, O [M,N], n: s8, f: f32; O[i] = n for i < M. */
static void build(struct hi *h, bool with_b) {
  hi_init(h);
  hi_tensor(h, "A", IR_ARG_IN, DT_BF16, "M,K");
  hi_tensor(h, "S", IR_ARG_IN, DT_F32, "M,K // 4");
  uint32_t b = hi_tensor(h, "B", IR_ARG_IN, DT_F32, "4");
  h->m->args.at[b].optional = true;
  h->m->args.at[b].present = with_b;
  hi_tensor(h, "O", IR_ARG_OUT, DT_F32, "M,N");
  hi_scalar(h, "n", DT_S8);
  hi_scalar(h, "f", DT_F32);
  hi_begin(h, "M,n");
  struct ir_val zero = hi_index(h, 0);
  struct ir_val v = hi_splat(h, hi_cast(h, DT_F32, h->arg[4]), 2, (int64_t[]){1, 1});
  hi_store2(h, 3, h->grid[0], zero, v);
  hi_end(h);
  static uint16_t a[64];
  static float s[64], b_data[4], o[64];
  hi_bind(h, 0, a, (int64_t[]){3, 8});
  hi_bind(h, 1, s, (int64_t[]){3, 2});
  if (with_b)
    hi_bind(h, 2, b_data, (int64_t[]){4});
  hi_bind(h, 3, o, (int64_t[]){3, 5});
  h->value[4].i = 1;
}

static void expect(struct hi *h, enum diag_id id, const char *text) {
  assert_false(hi_run(h));
  assert_int_equal(h->diags.list.n, 1);
  help_expect_diag(&h->diags, id, text);
}

static void test_binding(void **state) {
  (void)state;
  struct hi h;
  build(&h, true);
  hi_run_ok(&h);
  assert_true(((float *)h.value[3].tensor.data)[10] == 1);

  struct interp_arg good[HI_MAX_ARGS];
  memcpy(good, h.value, sizeof good);
#define BAD(change, text)                                                                          \
  do {                                                                                             \
    memcpy(h.value, good, sizeof good);                                                            \
    change;                                                                                        \
    expect(&h, DIAG_SHAPE_BINDING, text);                                                          \
  } while (0)
  BAD(h.value[0].tensor.rank = 3, "argument 'A': expected 2 dims, found 3");
  BAD(h.value[0].tensor.dtype = DT_F16, "argument 'A': expected bf16, found f16");
  BAD(h.value[3].tensor.dtype = DT_F64, "argument 'O': expected f32, found f64");
  BAD(h.value[0].tensor.data = NULL, "argument 'A' is missing");
  BAD(h.value[0].tensor.dim[1] = -1, "argument 'A': dim 1 is negative (-1)");
  BAD(h.value[1].tensor.dim[1] = 3, "argument 'S': dim 1: expected K // 4 = 2, found 3");
  BAD(h.value[1].tensor.dim[0] = 4,
      "argument 'S': dim 0: expected M = 3 as in dim 0 of 'A', found 4");
  BAD(h.value[2].tensor.dim[0] = 5, "argument 'B': dim 0: expected 4, found 5");
  BAD(h.value[4].i = 200, "argument 'n': 200 does not fit into s8");
  BAD(h.value[4].i = -3, "grid axis 1, n, is negative: -3");
  BAD(h.value[3].tensor.stride[0] = INT64_C(1) << 60, "argument 'O': dim 0 of 3 with stride");
  BAD(h.value[3].tensor.stride[0] = INT64_MIN, "reaches too far");
  BAD(h.value[3].tensor.offset = INT64_MAX, "reaches too far");
  memcpy(h.value, good, sizeof good);
  assert_false(interp_run(h.m, h.value, 5, &h.opt, &h.diags, &mem_libc));
  help_expect_diag(&h.diags, DIAG_SHAPE_BINDING, "kernel 'test' takes 6 arguments, found 5");
  h.opt.domain = INTERP_DOUBLE; /* a float argument may be wider there */
  static double wide[64];
  h.value[3].tensor = interp_dense(wide, DT_F64, 2, (int64_t[]){3, 5});
  hi_run_ok(&h);
  hi_free(&h);

  build(&h, false);
  hi_run_ok(&h);
  h.value[2].tensor = interp_dense(wide, DT_F32, 1, (int64_t[]){4});
  expect(&h, DIAG_SHAPE_BINDING, "argument 'B' is given, but this specialization");
  hi_free(&h);
}

static void add_fact(struct hi *h, const char *name, bool is_value, int64_t n) {
  struct ir_fact f = {.sym = symtab_get(h->m->syms, name), .is_value = is_value, .n = n};
  VEC_PUSH(h->m->arena, &h->m->facts, f);
}

static void test_facts(void **state) {
  (void)state;
  static const struct {
    const char *name;
    bool is_value;
    int64_t n;
    const char *text; /* NULL: holds, or is of no concern */
  } cases[] = {
      {"K", true, 8, NULL},
      {"K", true, 16, "assumes K = 16, found 8"},
      {"M", false, 3, NULL},
      {"M", false, 2, "assumes that M is a multiple of 2, found 3"},
      {"n", true, 1, NULL},
      {"n", true, 2, "assumes n = 2, found 1"},
      {"A.dim1", true, 8, NULL},
      {"A.dim1", true, 9, "assumes A.dim1 = 9, found 8"},
      {"A.dim7", true, 9, "'A.dim7', which is not bound"},
      {"Q", true, 1, "'Q', which is not bound"},
      {"A.stride0", false, 1024, NULL},
      {"A.addr", false, 4096, NULL},
  };
  for (size_t k = 0; k < COUNT(cases); k++) {
    struct hi h;
    build(&h, true);
    add_fact(&h, cases[k].name, cases[k].is_value, cases[k].n);
    if (cases[k].text)
      expect(&h, DIAG_SHAPE_BINDING, cases[k].text);
    else
      hi_run_ok(&h);
    hi_free(&h);
  }
}

/* A dim that only an absent argument has: an error, unless a fact gives it. */
static void test_unbound_dim(void **state) {
  (void)state;
  for (int with_fact = 0; with_fact < 2; with_fact++) {
    struct hi h;
    hi_init(&h);
    hi_tensor(&h, "B", IR_ARG_IN, DT_F32, "L");
    h.m->args.at[0].optional = true;
    h.m->args.at[0].present = false;
    hi_tensor(&h, "O", IR_ARG_OUT, DT_S64, "N");
    hi_begin(&h, "1");
    int64_t one = 1;
    struct ir_val l = hi_cast(&h, DT_S64, h.dim[0]);
    hi_store1(&h, 1, hi_index(&h, 0), hi_splat(&h, l, 1, &one));
    hi_end(&h);
    int64_t o = 0;
    hi_bind(&h, 1, &o, &one);
    if (with_fact) {
      add_fact(&h, "L", true, 77);
      hi_run_ok(&h);
      assert_int_equal(o, 77);
    } else {
      expect(&h, DIAG_SHAPE_BINDING, "dim 'L' has no value");
    }
    hi_free(&h);
  }
}

static void test_grid_expressions(void **state) {
  (void)state;
  static const struct {
    const char *grid;
    const char *text;
  } cases[] = {
      {"M // (K - K)", "cannot be computed"},
      {"M - 10", "is negative: -7"},
      {"4294967296,4294967296,4294967296", "more than 2^63 programs"},
      {"4294967295", "fewer than 2^32 - 1 programs"},
  };
  for (size_t k = 0; k < COUNT(cases); k++) {
    struct hi h;
    hi_init(&h);
    h.opt.check_races = true;
    hi_tensor(&h, "A", IR_ARG_IN, DT_F32, "M,K");
    hi_begin(&h, cases[k].grid);
    hi_end(&h);
    static float a[24];
    hi_bind(&h, 0, a, (int64_t[]){3, 8});
    expect(&h, DIAG_SHAPE_BINDING, cases[k].text);
    hi_free(&h);
  }
}

/* ---- asserts, prints ---- */

struct lines {
  uint32_t n;
  char text[16][256];
};

static void keep_line(void *user, const char *line) {
  struct lines *l = user;
  assert_true(l->n < 16);
  snprintf(l->text[l->n++], sizeof l->text[0], "%s", line);
}

static void test_assert(void **state) {
  (void)state;
  for (int mask = 0; mask < 2; mask++) {
    struct hi h;
    hi_init(&h);
    uint32_t file = diag_add_file(&h.diags, "k.lua", "a\nb\nassert(x)\n", 14);
    hi_tensor(&h, "X", IR_ARG_IN, DT_S32, "M,N");
    hi_begin(&h, "2");
    h.b.loc = ir_add_loc(h.m, (struct diag_loc){file, 3, 1},
                         ir_add_loc(h.m, (struct diag_loc){file, 1, 1}, 0));
    struct ir_val zero = hi_index(&h, 0), ok;
    if (mask) {
      struct ir_val x = hi_load2(&h, 0, zero, zero, 2, 4);
      struct ir_val limit = hi_splat(&h, ir_const_int(&h.b, DT_S32, 7), 2, (int64_t[]){2, 4});
      ok = hi_op2(&h, IR_LT, x, limit);
    } else {
      ok = hi_op2(&h, IR_EQ, h.grid[0], zero);
    }
    hi_message(&h, IR_ASSERT, mask ? "too large" : NULL, 1, &ok);
    hi_end(&h);
    int32_t x[8] = {0, 1, 2, 3, 4, 5, 7, 8};
    hi_bind(&h, 0, x, (int64_t[]){2, 4});
    expect(&h, DIAG_ASSERT_FAILED,
           mask ? "assertion failed at element (1, 2): too large [program (0)]"
                : "assertion failed [program (1)]");
    assert_int_equal(h.diags.list.at[0].loc.line, 3);
    assert_int_equal(h.diags.list.at[0].notes.n, 1);
    assert_int_equal(h.diags.list.at[0].notes.at[0].loc.line, 1);
    hi_free(&h);
  }
}

static void test_print(void **state) {
  (void)state;
  struct hi h;
  struct lines lines = {0};
  hi_init(&h);
  h.opt.print = keep_line;
  h.opt.user = &lines;
  hi_begin(&h, "1,2");
  struct ir_val i = hi_iota(&h, 0, 3), j = hi_iota(&h, 1, 10);
  struct ir_val flag = hi_op2(&h, IR_EQ, h.grid[1], hi_index(&h, 1));
  hi_message(&h, IR_PRINT, "x =", 2, (struct ir_val[]){h.grid[1], i});
  hi_message(&h, IR_PRINT, NULL, 1, &j);
  struct ir_val v[2] = {flag, hi_num(&h, DT_F32, 0.1)};
  hi_message(&h, IR_PRINT, NULL, 2, v);
  hi_end(&h);
  hi_run_ok(&h);
  assert_int_equal(lines.n, 6);
  assert_string_equal(lines.text[0], "program (0, 0): x = 0\t[[0], [1], [2]]");
  assert_string_equal(lines.text[1], "program (0, 0): [[0, 1, 2, 3, 4, 5, 6, 7, ...]]");
  assert_string_equal(lines.text[2], "program (0, 0): false\t0.100000001");
  assert_string_equal(lines.text[5], "program (0, 1): true\t0.100000001");
  h.opt.print = NULL;
  hi_run_ok(&h);
  hi_free(&h);
}

/* ---- runs that end early ---- */

static void build_endless(struct hi *h) {
  hi_init(h);
  hi_begin(h, "1");
  struct ir_val zero = hi_index(h, 0), one = hi_index(h, 1);
  struct ir_type index = ir_scalar(DT_INDEX);
  struct ir_op loop = hi_while(h, 1, &zero, 1, &index);
  struct ir_val x = hi_arg(h, loop, 0, 0);
  hi_condition(h, 2, (struct ir_val[]){hi_op2(h, IR_GE, x, zero), x});
  struct ir_val next =
      hi_op2(h, IR_AND, hi_op2(h, IR_ADD, hi_arg(h, loop, 1, 0), one), hi_index(h, 1023));
  hi_yield(h, 1, &next);
  hi_end(h);
}

static bool after_three(void *user) {
  return ++*(int *)user == 3;
}

static void test_limits(void **state) {
  (void)state;
  struct hi h;
  build_endless(&h);
  h.opt.max_steps = 100000;
  expect(&h, DIAG_STEP_LIMIT, "more than 100000 ops");
  int asked = 0;
  h.opt.max_steps = 0;
  h.opt.interrupted = after_three;
  h.opt.user = &asked;
  expect(&h, DIAG_INTERRUPTED, "interrupted while interpreting");
  assert_int_equal(asked, 3);
  hi_free(&h);
}

/* Also between programs that each do next to nothing. */
static void test_interrupt_in_large_grid(void **state) {
  (void)state;
  struct hi h;
  hi_init(&h);
  hi_begin(&h, "4611686018427387904");
  hi_end(&h);
  int asked = 0;
  h.opt.interrupted = after_three;
  h.opt.user = &asked;
  expect(&h, DIAG_INTERRUPTED, "interrupted");
  hi_free(&h);
}

static void test_bad_step(void **state) {
  (void)state;
  for (int64_t step = -1; step <= 0; step++) {
    struct hi h;
    hi_init(&h);
    uint32_t n = hi_scalar(&h, "n", DT_S64);
    hi_begin(&h, "1");
    hi_for(&h, hi_index(&h, 0), hi_index(&h, 5), hi_cast(&h, DT_INDEX, h.arg[n]), 0, NULL);
    hi_yield(&h, 0, NULL);
    hi_end(&h);
    h.value[n].i = step;
    expect(&h, DIAG_OPERAND, "the step of a loop must be positive, it is");
    h.value[n].i = 2;
    hi_run_ok(&h);
    hi_free(&h);
  }
}

/* A run uses no more memory for more programs and iterations: all values have their slots, as many
 * times as there are threads. */
static void test_memory_is_bounded(void **state) {
  (void)state;
  int64_t peak[2];
  for (int longer = 0; longer < 2; longer++) {
    struct hi h;
    struct lines lines = {0};
    hi_init(&h);
    uint32_t n = hi_scalar(&h, "n", DT_S64);
    hi_begin(&h, "n");
    struct ir_val x = hi_full(&h, DT_F32, 1, 16, 16);
    struct ir_op loop =
        hi_for(&h, hi_index(&h, 0), hi_cast(&h, DT_INDEX, h.arg[n]), hi_index(&h, 1), 1, &x);
    struct ir_val c = hi_arg(&h, loop, 0, 1);
    struct ir_val y = hi_op2(&h, IR_ADD, hi_transpose(&h, c, (int64_t[]){1, 0}), x);
    hi_yield(&h, 1, &y);
    hi_end(&h);
    struct help_mem mem;
    help_mem_init(&mem);
    h.value[n].i = longer ? 100 : 2;
    h.opt.print = keep_line;
    h.opt.user = &lines;
    h.opt.threads = 1;
    assert_true(interp_run(h.m, h.value, 1, &h.opt, &h.diags, &mem.alloc));
    assert_int_equal(mem.live_blocks, 0);
    peak[longer] = (int64_t)mem.calls;
    hi_free(&h);
  }
  assert_int_equal(peak[0], peak[1]);
}

/* ---- memory that runs out ---- */

static bool run_with(struct help_mem *mem, void *user) {
  struct hi *h = user;
  diag_clear(&h->diags);
  if (interp_run(h->m, h->value, h->m->args.n, &h->opt, &h->diags, &mem->alloc))
    return true;
  help_expect_diag(&h->diags, DIAG_NO_MEMORY, "out of memory while interpreting kernel 'test'");
  return false;
}

static void ignore_line(void *user, const char *line) {
  (void)user, (void)line;
}

static void test_out_of_memory(void **state) {
  (void)state;
  for (int sticky = 0; sticky < 2; sticky++) {
    struct hi h;
    hi_init(&h);
    h.opt.check_races = true;
    h.opt.print = ignore_line;
    hi_tensor(&h, "X", IR_ARG_IN, DT_F32, "M,N");
    hi_tensor(&h, "O", IR_ARG_OUT, DT_F32, "M,N");
    hi_begin(&h, "cdiv(M, 64)");
    struct ir_val i = hi_op2(&h, IR_MUL, h.grid[0], hi_index(&h, 64)), zero = hi_index(&h, 0);
    struct ir_val x = hi_load2(&h, 0, i, zero, 64, 64);
    struct ir_op loop = hi_for(&h, zero, hi_index(&h, 3), hi_index(&h, 1), 1, &x);
    struct ir_val c = hi_arg(&h, loop, 0, 1);
    c = hi_op3(&h, IR_DOT, c, x, hi_op2(&h, IR_ADD, c, x));
    hi_yield(&h, 1, &c);
    struct ir_val r = hi_out(&h, loop, 0);
    hi_store2(&h, 1, i, zero, r);
    hi_message(&h, IR_PRINT, NULL, 1, &r);
    hi_end(&h);
    static float data[2][256 * 64];
    hi_bind(&h, 0, data[0], (int64_t[]){256, 64});
    hi_bind(&h, 1, data[1], (int64_t[]){256, 64});
    assert_true(help_oom_loop(run_with, &h, sticky) > 3);
    hi_free(&h);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_binding),       cmocka_unit_test(test_facts),
      cmocka_unit_test(test_unbound_dim),   cmocka_unit_test(test_grid_expressions),
      cmocka_unit_test(test_assert),        cmocka_unit_test(test_print),
      cmocka_unit_test(test_limits),        cmocka_unit_test(test_interrupt_in_large_grid),
      cmocka_unit_test(test_bad_step),      cmocka_unit_test(test_memory_is_bounded),
      cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
