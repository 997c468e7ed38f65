/* The reducer: what it keeps still fails, is as valid as the first text was, and is small; any text
 * is taken; it ends when told to, and when memory runs out. */
#include "help_gen_ir.h"
#include "help_rt.h"

#include "ir/reduce.h"

#include <string.h>

struct probe {
  const char *needle; /* a text fails if it has this */
  uint32_t asked, kept, stop_after, last_lines;
  bool shrinks; /* the counts that progress was told never rose */
};

static const char *find(const char *text, size_t n, const char *needle) {
  size_t k = strlen(needle);
  for (size_t i = 0; i + k <= n; i++)
    if (memcmp(text + i, needle, k) == 0)
      return text + i;
  return NULL;
}

static bool has_needle(void *user, const char *text, size_t n) {
  struct probe *p = user;
  p->asked++;
  bool yes = find(text, n, p->needle) != NULL;
  p->kept += yes;
  return yes;
}

static bool stop(void *user) {
  struct probe *p = user;
  return p->stop_after && p->asked >= p->stop_after;
}

static void note(void *user, uint32_t before, uint32_t now, uint32_t tried) {
  struct probe *p = user;
  p->shrinks = p->shrinks && now <= before && tried <= p->asked;
  p->last_lines = now;
}

static const char *reduce(struct arena *a, const char *text, struct probe *p, size_t *n) {
  p->shrinks = true;
  struct ir_reduce_options opt = {has_needle, note, stop, p};
  return ir_reduce(a, text, strlen(text), &opt, n);
}

static const char *generated(struct arena *a, uint64_t seed, uint32_t n_ops) {
  struct gen_ir g = {.seed = seed, .n_ops = n_ops, .max_depth = 3};
  struct strbuf out = {.arena = a};
  ir_print(gen_ir(a, &g), (struct ir_print_options){.names = true, .locs = true}, &out);
  return sb_str(&out);
}

static bool verifies(struct arena *a, const char *text, size_t n) {
  struct diag_sink diags;
  assert_true(diag_init(&diags, &mem_libc));
  struct ir_module *m = ir_parse(a, &diags, 0, text, n);
  bool ok = m && ir_verify(m, &diags);
  diag_free(&diags);
  return ok;
}

/* One op of a large module is all that is left, with what it needs to be valid. */
static void test_one_op(void **state) {
  (void)state;
  static const char *const needles[] = {" = exp ",   " = dot ", " = select ", "store ",
                                        " = while ", " = for ", "print"};
  for (size_t i = 0; i < sizeof needles / sizeof *needles; i++) {
    struct help_arena h;
    help_arena_init(&h);
    const char *text = NULL;
    for (uint64_t seed = 1; !text || !strstr(text, needles[i]); seed++)
      text = generated(&h.arena, seed, 150);
    struct probe p = {.needle = needles[i]};
    size_t n;
    const char *small = reduce(&h.arena, text, &p, &n);
    assert_non_null(find(small, n, needles[i]));
    if (!verifies(&h.arena, small, n))
      fail_msg("%s: what is left is not valid\n%.*s", needles[i], (int)n, small);
    uint32_t lines = 0;
    for (size_t k = 0; k < n; k++)
      lines += small[k] == '\n';
    if (lines > 24)
      fail_msg("%s: %u lines are left\n%.*s", needles[i], lines, (int)n, small);
    assert_true(p.shrinks && p.kept > 3);
    assert_int_equal(p.last_lines, lines);
    /* The same again; and of what is left nothing can go. */
    struct probe again = {.needle = needles[i]}, settled = again;
    size_t n2, n3;
    const char *same = reduce(&h.arena, text, &again, &n2);
    assert_true(n2 == n && memcmp(same, small, n) == 0 && again.asked == p.asked);
    char *copy = arena_strndup(&h.arena, small, n);
    assert_ptr_equal(reduce(&h.arena, copy, &settled, &n3), copy);
    assert_int_equal(n3, n);
    arena_free(&h.arena);
  }
}

/* What reads but does not verify stays readable; what cannot be read loses lines. */
static void test_broken_texts(void **state) {
  (void)state;
  struct help_arena h;
  help_arena_init(&h);
  const char *head = "kiln-ir 1 tile\nkernel k {\n  grid 1\n  body(%0: index) {\n";
  const char *invalid = arena_printf(&h.arena,
                                     "%s    %%1 = const 1 : index\n    %%2 = add %%0, %%1 : f32\n"
                                     "    %%3 = exp %%2 : f32\n    print %%3\n    return\n  }\n}\n",
                                     head);
  struct probe p = {.needle = ": f32"};
  size_t n;
  const char *small = reduce(&h.arena, invalid, &p, &n);
  assert_string_equal(arena_strndup(&h.arena, small, n),
                      "kiln-ir 1 tile\nkernel k {\n  body(%0: index) {\n"
                      "    %1 = add %0, %0 : f32\n  }\n}\n");
  const char *torn = arena_printf(&h.arena, "%s    %%1 = frobnicate %%0\n    print %%7\n", head);
  p = (struct probe){.needle = "frob"};
  small = reduce(&h.arena, torn, &p, &n);
  assert_string_equal(arena_strndup(&h.arena, small, n), "    %1 = frobnicate %0\n");
  p = (struct probe){.needle = "x"};
  small = reduce(&h.arena, "\n\nx", &p, &n);
  assert_true(n == 1 && *small == 'x');
  small = reduce(&h.arena, "", &p, &n);
  assert_int_equal(n, 0);
  arena_free(&h.arena);
}

/* Texts of every stage, valid or not: the result still has the needle and still reads. */
static void test_any_module(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 12; seed++) {
    struct help_arena h;
    help_arena_init(&h);
    struct gen_ir g = {.seed = seed, .n_ops = 25, .max_depth = 3};
    struct strbuf out = {.arena = &h.arena};
    enum ir_stage stage = (enum ir_stage)(seed % 3);
    ir_print(gen_ir_text(&h.arena, &g, stage), (struct ir_print_options){0}, &out);
    static const char *const needles[] = {" = ", "{", "const", "arg W"};
    struct probe p = {.needle = needles[seed % 4]};
    size_t n;
    const char *small = reduce(&h.arena, sb_str(&out), &p, &n);
    assert_non_null(find(small, n, p.needle));
    assert_true(n < out.n / 2);
    struct diag_sink diags;
    assert_true(diag_init(&diags, &mem_libc));
    assert_non_null(ir_parse(&h.arena, &diags, 0, small, n));
    diag_free(&diags);
    arena_free(&h.arena);
  }
}

/* The best so far is given when it is stopped. */
static void test_interrupted(void **state) {
  (void)state;
  struct help_arena h;
  help_arena_init(&h);
  const char *text = generated(&h.arena, 3, 150);
  struct probe all = {.needle = "store "};
  size_t n_all, n = strlen(text);
  reduce(&h.arena, text, &all, &n_all);
  for (uint32_t stop_after = 1; stop_after < all.asked; stop_after *= 2) {
    struct probe p = {.needle = "store ", .stop_after = stop_after};
    size_t now;
    const char *small = reduce(&h.arena, text, &p, &now);
    assert_int_equal(p.asked, stop_after);
    assert_true(now <= n && now >= n_all && find(small, now, "store "));
    n = now;
  }
  assert_true(n < strlen(text));
  arena_free(&h.arena);
}

struct work {
  const char *text;
  struct arena arena;
  bool done;
};

static void reduce_it(void *user) {
  struct work *w = user;
  struct probe p = {.needle = "store "};
  size_t n;
  reduce(&w->arena, w->text, &p, &n);
  w->done = true;
}

static bool reduce_in(struct help_mem *mem, void *user) {
  struct work *w = user;
  struct oom_trap trap = {0};
  w->done = false;
  arena_init(&w->arena, &mem->alloc, &trap);
  bool had_memory = arena_guard(&w->arena, reduce_it, w);
  arena_free(&w->arena);
  assert_true(had_memory == w->done);
  return w->done;
}

static void test_no_memory(void **state) {
  (void)state;
  struct help_arena h;
  help_arena_init(&h);
  struct work w = {.text = generated(&h.arena, 5, 30)};
  assert_true(help_oom_loop(reduce_in, &w, false) > 3);
  assert_true(help_oom_loop(reduce_in, &w, true) > 3);
  arena_free(&h.arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_op),     cmocka_unit_test(test_broken_texts),
      cmocka_unit_test(test_any_module), cmocka_unit_test(test_interrupted),
      cmocka_unit_test(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
