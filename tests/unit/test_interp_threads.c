/* Programs over threads: whatever a kernel does, what it leaves and what is reported do not depend
 * on the number of threads. Each kernel is large enough for threads to start. */
#include "help_interp.h"
#include "help_ref.h"
#include "ir/interp_impl.h"

#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAS_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(HAS_TSAN)
#define SEES_RACES                                                                                 \
  true /* a kernel's conflicts are ThreadSanitizer's, too, before they are undone */
#else
#define SEES_RACES false
#endif

enum { TILE = 2048, PROGRAMS = 64, N = TILE * PROGRAMS, REPS = 24 };

enum what {
  CLEAN,
  RACE,      /* all programs write element 0 */
  READ,      /* each reads what its neighbour writes */
  ASSERT,    /* program 40 fails */
  ATOMIC,    /* sums that depend on the order */
  PRINT,     /* one line per program */
  NIBBLES,   /* two programs share a byte */
  ALIAS,     /* input and output are the same memory */
  UNWRITTEN, /* programs 62 and 63 read an output that nobody writes */
};

/* Y = X after REPS steps of x = x * 3 + Y (integers), one tile per program. */
static void build(struct hi *h, enum what what) {
  enum dtype t = what == NIBBLES ? DT_S4 : DT_S32;
  hi_init(h);
  hi_tensor(h, "X", IR_ARG_IN, t, "N");
  hi_tensor(h, "Y", IR_ARG_INOUT, t, "N");
  hi_tensor(h, "Z", what == UNWRITTEN ? IR_ARG_OUT : IR_ARG_INOUT, DT_F32, "1");
  hi_begin(h, what == NIBBLES ? "cdiv(N, 2047)" : "cdiv(N, 2048)");
  int64_t tile = what == NIBBLES ? TILE - 1 : TILE;
  struct ir_val at = hi_op2(h, IR_MUL, h->grid[0], hi_index(h, tile)), zero = hi_index(h, 0);
  struct ir_val x = hi_load1(h, 0, at, tile), y = hi_load1(h, 1, at, tile);
  if (what == READ) {
    struct ir_val next = hi_op2(h, IR_ADD, at, hi_index(h, tile));
    y = hi_load1(h, 1, next, tile);
  }
  struct ir_val three = hi_splat(h, ir_const_int(&h->b, t, 3), 1, &tile);
  struct ir_op loop = hi_for(h, zero, hi_index(h, REPS), hi_index(h, 1), 1, &x);
  struct ir_val v = hi_op2(h, IR_MUL, hi_arg(h, loop, 0, 1), three);
  v = hi_op2(h, IR_ADD, v, y);
  hi_yield(h, 1, &v);
  v = hi_out(h, loop, 0);
  hi_store1(h, 1, at, v);
  if (what == RACE)
    hi_store1(h, 1, zero, v);
  if (what == ASSERT) {
    struct ir_val ok = hi_op2(h, IR_NE, h->grid[0], hi_index(h, 40));
    hi_message(h, IR_ASSERT, "not forty", 1, &ok);
  }
  if (what == UNWRITTEN) {
    struct ir_val late = hi_op2(h, IR_FLOORDIV, h->grid[0], hi_index(h, 62));
    hi_load1(h, 2, hi_op2(h, IR_SUB, hi_index(h, 1), late), 1);
  }
  if (what == PRINT)
    hi_message(h, IR_PRINT, "here", 0, NULL);
  if (what == ATOMIC) {
    struct ir_val f = hi_cast(h, DT_F32, hi_reduce(h, IR_REDUCE_SUM, v, 0));
    struct ir_val in[3] = {h->arg[2], zero, hi_op1(h, IR_ITEM, f)};
    struct ir_op o = ir_build(&h->b, IR_ATOMIC, 3, in, 1, (struct ir_type[]){ir_scalar(DT_F32)});
    ir_set_attr(h->m, o, (struct ir_attr){.key = IR_ATTR_kind, .s = symtab_get(h->m->syms, "add")});
  }
  hi_end(h);
}

struct memory {
  int32_t x[N], y[N];
  float z[1];
};

static struct memory first, other;
static char said[2][4000];

static void keep_line(void *user, const char *line) {
  strncat(user, line, 200);
}

/* Runs on so many threads; what is said goes to *text. */
static bool run(struct hi *h, struct memory *m, enum what what, uint32_t threads, char *text) {
  uint64_t seed = 97;
  for (int i = 0; i < N; i++) {
    m->x[i] = (int32_t)ref_random(&seed);
    m->y[i] = (int32_t)ref_random(&seed);
  }
  m->z[0] = 0.1f;
  h->opt.threads = threads;
  h->opt.print = keep_line;
  h->opt.user = text;
  *text = 0;
  hi_bind(h, 0, what == ALIAS ? m->y + 1 : m->x, (int64_t[]){what == ALIAS ? N - 1 : N});
  hi_bind(h, 1, m->y, (int64_t[]){what == ALIAS ? N - 1 : N});
  hi_bind(h, 2, m->z, (int64_t[]){1});
  bool ok = hi_run(h);
  for (uint32_t i = 0; i < h->diags.list.n; i++) {
    strncat(text, h->diags.list.at[i].message, 300);
    strcat(text, "\n");
  }
  return ok;
}

static void check(enum what what, bool ok, bool races, const char *says) {
  struct hi h;
  build(&h, what);
  h.opt.check_races = h.opt.check_unwritten = races;
  for (uint64_t seed = 0; seed < 2; seed++) {
    h.opt.grid_seed = seed * 7;
    assert_int_equal(run(&h, &first, what, 1, said[0]), ok);
    for (uint32_t threads = 2; threads <= 5; threads += 3) {
      assert_int_equal(run(&h, &other, what, threads, said[1]), ok);
      assert_string_equal(said[0], said[1]);
      assert_memory_equal(&first, &other, sizeof first);
    }
  }
  if (says && !strstr(said[0], says))
    fail_msg("expected %s, it says %s", says, said[0]);
  hi_free(&h);
}

static void test_same(void **state) {
  (void)state;
  check(CLEAN, true, false, NULL);
  check(CLEAN, true, true, NULL);
}

/* Unchecked, a kernel with conflicts gives what the programs one by one would give; checked, the
 * same reports come in the same order. */
static void test_conflicts(void **state) {
  (void)state;
  if (SEES_RACES) {
    print_message("SKIP: conflicts of kernels are what ThreadSanitizer reports\n");
    return;
  }
  check(RACE, true, false, NULL);
  check(RACE, false, true, "another program writes");
  check(READ, true, false, NULL);
  check(READ, false, true, "another program");
  check(ALIAS, true, false, NULL);
}

static void test_failures(void **state) {
  (void)state;
  check(ASSERT, false, false, "not forty [program (40)]");
  check(ASSERT, false, true, "not forty [program (40)]");
}

static void test_unwritten(void **state) {
  (void)state;
  check(UNWRITTEN, true, false, NULL);
  check(UNWRITTEN, false, true, "element (0) of 'Z', which nothing has written before");
}

static void test_serial_kernels(void **state) {
  (void)state;
  check(ATOMIC, true, false, NULL);
  check(PRINT, true, true, "program (1): here");
  check(NIBBLES, true, false, NULL);
}

/* The limit holds over all threads, and is reported at the same op. */
static void test_step_limit(void **state) {
  (void)state;
  struct hi h;
  build(&h, CLEAN);
  h.opt.max_steps = 1500;
  assert_false(run(&h, &first, CLEAN, 1, said[0]));
  assert_false(run(&h, &other, CLEAN, 4, said[1]));
  assert_string_equal(said[0], said[1]);
  assert_non_null(strstr(said[0], "more than 1500 ops"));
  assert_memory_equal(&first, &other, sizeof first);
  h.opt.max_steps = 100000;
  assert_true(run(&h, &other, CLEAN, 4, said[1]));
  hi_free(&h);
}

/* Programs that take long each: threads do start, and the question whether to stop is asked. */
static int asked;
static bool stop_at_second(void *user) {
  (void)user;
  return ++asked >= 2;
}

static void test_interrupt(void **state) {
  (void)state;
  struct hi h;
  build(&h, CLEAN);
  h.opt.interrupted = stop_at_second;
  for (uint32_t threads = 1; threads <= 4; threads += 3) {
    asked = 0;
    assert_false(run(&h, &other, CLEAN, threads, said[0]));
    assert_non_null(strstr(said[0], "interrupted while interpreting"));
    assert_int_equal(h.diags.list.n, 1);
    assert_int_equal(asked, 2);
  }
  hi_free(&h);
}

/* Memory that runs out: in a thread or while they are set up, the run goes on without threads, or
 * says that there is none. Nothing leaks: every byte that was given comes back. */
struct budget {
  long left, held;
};

static void *limited(void *user, void *p, size_t old_size, size_t new_size) {
  struct budget *b = user;
  if (new_size > old_size && b->left-- <= 0)
    return NULL;
  void *q = mem_libc.fn(mem_libc.user, p, old_size, new_size);
  if (q || new_size == 0)
    b->held += (long)new_size - (long)old_size;
  return q;
}

static void test_out_of_memory(void **state) {
  (void)state;
  struct hi h;
  build(&h, CLEAN);
  assert_true(run(&h, &first, CLEAN, 1, said[0]));
  bool done = false;
  int failed = 0;
  for (long n = 0; !done && n < 400; n++) {
    struct budget b = {n, 0};
    struct mem_alloc mem = {limited, &b};
    run(&h, &other, CLEAN, 1, said[1]); /* fills the memory anew */
    for (int i = 0; i < N; i++)
      other.y[i] = 0;
    h.opt.threads = 3;
    diag_clear(&h.diags);
    done = interp_run(h.m, h.value, h.m->args.n, &h.opt, &h.diags, &mem) && b.left > 0;
    failed += !done;
    assert_int_equal(b.held, 0);
  }
  assert_true(done && failed > 3);
  hi_free(&h);
}

/* And threads are what ran: on one kernel the programs were not all run by the caller. */
static void test_threads_start(void **state) {
  (void)state;
  struct hi h;
  build(&h, CLEAN);
  struct budget b = {1000000, 0};
  struct mem_alloc mem = {limited, &b};
  long used[2];
  for (uint32_t k = 0; k < 2; k++) {
    run(&h, &other, CLEAN, 1, said[0]);
    b.left = 1000000;
    h.opt.threads = 1 + 3 * k;
    assert_true(interp_run(h.m, h.value, h.m->args.n, &h.opt, &h.diags, &mem));
    used[k] = 1000000 - b.left;
  }
  assert_true(used[1] > used[0]); /* each has memory of its own */
  hi_free(&h);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_same),           cmocka_unit_test(test_conflicts),
      cmocka_unit_test(test_failures),       cmocka_unit_test(test_unwritten),
      cmocka_unit_test(test_serial_kernels), cmocka_unit_test(test_step_limit),
      cmocka_unit_test(test_interrupt),      cmocka_unit_test(test_out_of_memory),
      cmocka_unit_test(test_threads_start),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
