/* The text format beyond the texts of tests/ir: round trips of random modules, names and locations,
 * numbers to the bit, limits, and texts that are damaged in every way. */
#include "help_gen_ir.h"
#include "help_rt.h"

#include "ir/rules.h"

#include <locale.h>
#include <math.h>
#include <string.h>
#include <time.h>

/* Where every growth moves, a million is a square too many. */
#ifdef KILN_STRESS
#define MANY 2000u
#else
#define MANY 1000000u
#endif

struct text {
  struct help_arena h;
  struct diag_sink diags;
  struct strbuf s;
};

static void begin(struct text *t) {
  help_arena_init(&t->h);
  assert_true(diag_init(&t->diags, &mem_libc));
  t->s = (struct strbuf){.arena = &t->h.arena};
}

static void end(struct text *t) {
  diag_free(&t->diags);
  arena_free(&t->h.arena);
}

static struct ir_module *parse(struct text *t) {
  return ir_parse(&t->h.arena, &t->diags, 0, sb_str(&t->s), t->s.n);
}

static void head(struct text *t, const char *stage) {
  sb_printf(&t->s,
            "kiln-ir 1 %s\nkernel k {\n  dims M\n  grid 1\n  body(%%m: index, %%g: index) {\n",
            stage);
}

static void tail(struct text *t) {
  sb_puts(&t->s, "return\n}\n}\n");
}

/* ---- round trips ---- */

static void check_round_trip(struct ir_module *m, struct ir_print_options opt, uint64_t seed) {
  struct text t;
  begin(&t);
  opt.files = &t.diags;
  ir_print(m, opt, &t.s);
  struct ir_module *again = parse(&t);
  struct strbuf twice = {.arena = &t.h.arena}, why = {.arena = &t.h.arena};
  if (!again)
    fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, help_last_message(&t.diags),
             sb_str(&t.s));
  if (!ir_equal(m, again, &why))
    fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, sb_str(&why), sb_str(&t.s));
  ir_print(again, opt, &twice);
  if (!opt.locs) /* what had none now has its place in the text */
    assert_string_equal(sb_str(&t.s), sb_str(&twice));
  end(&t);
}

static void test_random_modules(void **state) {
  (void)state;
  uint32_t seen[IR_OPCODE_COUNT] = {0};
  for (uint64_t seed = 1; seed <= (MANY > 3000 ? 600 : 60); seed++) {
    struct help_arena h;
    help_arena_init(&h);
    struct gen_ir g = {.seed = seed, .n_ops = 40, .max_depth = 4};
    struct ir_module *m =
        seed % 4 ? gen_ir_text(&h.arena, &g, (enum ir_stage)(seed % 3)) : gen_ir(&h.arena, &g);
    struct ir_print_options opt = {.names = seed & 8, .locs = (seed & 48) == 0};
    check_round_trip(m, opt, seed);
    for (unsigned i = 0; i < IR_OPCODE_COUNT; i++)
      seen[i] += g.count[i];
    arena_free(&h.arena);
  }
  for (unsigned i = 1; i < IR_OPCODE_COUNT; i++)
    if (!seen[i])
      fail_msg("no module had `%s`", ir_info((enum ir_opcode)i)->name);
}

static void test_names_and_locations(void **state) {
  (void)state;
  struct text t;
  begin(&t);
  const char *want = "kiln-ir 1 tile\nkernel k {\n  dims M\n  grid 1\n"
                     "  body(%0 \"M\": index, %1: index) {\n"
                     "    %2 \"x y\" = const 1 : index @\"a.lua\":3:5\n"
                     "    for %3 \"i\": index = %2, %0, %2 carry(%4 \"acc\": index = %2)"
                     " : index @\"lib.lua\":10:2 @\"a.lua\":4:1 {\n"
                     "      yield %4 @\"a.lua\":5:1\n    }\n"
                     "    return @\"a.lua\":6:1\n  }\n}\n";
  sb_puts(&t.s, want);
  struct strbuf fixed = {.arena = &t.h.arena};
  for (const char *s = want; *s; s++) { /* the loop has a result, unnamed */
    if (str_starts(s, "    for %3"))
      sb_puts(&fixed, "    %3 = for %4 \"i\": index = %2, %0, %2 carry(%5 \"acc\": index = %2)"
                      " : index @\"lib.lua\":10:2 @\"a.lua\":4:1 {\n"
                      "      yield %5 @\"a.lua\":5:1\n    }\n    return @\"a.lua\":6:1\n  }\n}\n");
    if (str_starts(s, "    for %3"))
      break;
    sb_putc(&fixed, *s);
  }
  t.s = fixed;
  struct ir_module *m = parse(&t);
  if (!m)
    fail_msg("%s", help_last_message(&t.diags));
  struct strbuf out = {.arena = &t.h.arena}, plain = {.arena = &t.h.arena};
  ir_print(m, (struct ir_print_options){.names = true, .locs = true, .files = &t.diags}, &out);
  assert_string_equal(sb_str(&fixed), sb_str(&out));
  ir_print(m, (struct ir_print_options){0}, &plain);
  assert_null(strchr(sb_str(&plain), '@'));
  assert_null(strstr(sb_str(&plain), "acc"));
  /* A diagnostic of the verifier names the op's place and its callers. */
  m->n_grid = 1;
  ir_op_at(m, ir_block_at(m, m->body)->first)->attrs[0].i = 0; /* a step of 0 */
  assert_false(ir_verify(m, &t.diags));
  const struct diag *d = &t.diags.list.at[0];
  assert_string_equal(diag_file_name(&t.diags, d->loc.file), "lib.lua");
  assert_int_equal(d->loc.line, 10);
  assert_int_equal(d->notes.n, 1);
  assert_int_equal(d->notes.at[0].loc.line, 4);
  end(&t);
}

/* Without `@`, an op's place is its own line in the text. */
static void test_place_in_the_text(void **state) {
  (void)state;
  struct text t;
  begin(&t);
  head(&t, "tile");
  sb_puts(&t.s, "    %1 = add %m, %m : f32\n");
  tail(&t);
  uint32_t file = diag_add_file(&t.diags, "x.tir", sb_str(&t.s), t.s.n);
  struct ir_module *m = ir_parse(&t.h.arena, &t.diags, file, sb_str(&t.s), t.s.n);
  assert_non_null(m);
  assert_false(ir_verify(m, &t.diags));
  assert_int_equal(t.diags.list.at[0].loc.file, file);
  assert_int_equal(t.diags.list.at[0].loc.line, 6);
  assert_int_equal(t.diags.list.at[0].loc.col, 5);
  end(&t);
}

static double bits_double(uint64_t u) {
  double x;
  memcpy(&x, &u, sizeof x);
  return x;
}

static void test_numbers_to_the_bit(void **state) {
  (void)state;
  uint64_t rng = 5;
  struct text t;
  begin(&t);
  struct ir_module *m = ir_module_new(&t.h.arena, IR_TILE_STAGE);
  struct ir_builder b = {.m = m, .block = m->body};
  m->kernel = symtab_get(m->syms, "k");
  static const uint64_t odd[] = {0,
                                 UINT64_C(0x8000000000000000),
                                 1,
                                 UINT64_C(0x000fffffffffffff),
                                 UINT64_C(0x7fefffffffffffff),
                                 UINT64_C(0x7ff0000000000000),
                                 UINT64_C(0xfff0000000000000),
                                 UINT64_C(0x7ff8000000000000),
                                 UINT64_C(0xfff8000000000000),
                                 UINT64_C(0x7ff8000000000123),
                                 UINT64_C(0x7ff0000000000001)};
  double want[1000];
  uint32_t n = 0;
  for (; n < sizeof odd / sizeof odd[0]; n++)
    want[n] = bits_double(odd[n]);
  for (; n < 1000; n++)
    want[n] = bits_double(gen_below(&rng, UINT64_MAX));
  struct ir_type f64 = ir_scalar(DT_F64);
  for (uint32_t i = 0; i < n; i++) {
    struct ir_op o = ir_build(&b, IR_CONST, 0, NULL, 1, &f64);
    ir_set_attr(m, o, (struct ir_attr){.key = IR_ATTR_value, .f = want[i]});
  }
  ir_print(m, (struct ir_print_options){0}, &t.s);
  struct ir_module *again = parse(&t);
  assert_non_null(again);
  for (uint32_t i = 0; i < n; i++)
    assert_memory_equal(&again->ops.at[i + 1].attrs[0].f, &want[i], sizeof want[i]);
  end(&t);
}

/* A program that set another decimal point reads and writes the same text. */
static void test_locale(void **state) {
  (void)state;
  static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
  const char *set = NULL;
  for (size_t i = 0; i < sizeof names / sizeof names[0] && !set; i++)
    set = setlocale(LC_NUMERIC, names[i]);
  if (!set) {
    printf("SKIP: no locale with a decimal comma is installed\n");
    skip();
  }
  struct text t;
  begin(&t);
  head(&t, "tile");
  sb_puts(&t.s, "    %1 = const 0.5 : f32\n");
  tail(&t);
  struct ir_module *m = parse(&t);
  struct strbuf out = {.arena = &t.h.arena};
  if (m)
    ir_print(m, (struct ir_print_options){0}, &out);
  setlocale(LC_NUMERIC, "C");
  assert_non_null(m);
  assert_non_null(strstr(sb_str(&out), "const 0.5 : f32"));
  end(&t);
}

/* ---- limits ---- */

static double now_ms(void) {
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec * 1e-6;
}

static void test_a_million_ops(void **state) {
  (void)state;
  struct text t;
  begin(&t);
  head(&t, "tile");
  sb_puts(&t.s, "    %0 = const 1 : index\n");
  for (uint32_t i = 1; i < MANY; i++)
    sb_printf(&t.s, "    %%%u = add %%%u, %%%u : index\n", i, i - 1, i / 2);
  tail(&t);
  double start = now_ms();
  struct ir_module *m = parse(&t);
  assert_non_null(m);
  printf("%u ops: read in %.0f ms", MANY, now_ms() - start);
  start = now_ms();
  assert_true(ir_verify(m, &t.diags));
  printf(", verified in %.0f ms\n", now_ms() - start);
  assert_int_equal(m->ops.n, MANY + 2);
  end(&t);
}

/* Errors on a million lines: the first are shown, all are counted. */
static void test_a_million_errors(void **state) {
  (void)state;
  struct text t;
  begin(&t);
  head(&t, "tile");
  for (uint32_t i = 0; i < MANY; i++)
    sb_puts(&t.s, "nonsense\n");
  tail(&t);
  assert_null(parse(&t));
  assert_int_equal(t.diags.n_errors, MANY);
  assert_int_equal(t.diags.list.n, t.diags.max_errors);
  end(&t);
}

static void nest(struct text *t, uint32_t depth) {
  head(t, "tile");
  sb_puts(&t->s, "%c = const true : bool\n");
  for (uint32_t i = 0; i < depth; i++)
    sb_puts(&t->s, "if %c {\n");
  for (uint32_t i = 0; i < depth; i++)
    sb_puts(&t->s, "yield\n} else {\nyield\n}\n");
  tail(t);
}

static void test_nesting(void **state) {
  (void)state;
  struct text t;
  begin(&t);
  nest(&t, IR_MAX_DEPTH);
  struct ir_module *m = parse(&t);
  assert_non_null(m);
  assert_true(ir_verify(m, &t.diags));
  uint32_t n;
  const struct ir_pass *passes = ir_tile_pipeline(&n);
  assert_true(ir_run_passes(m, passes, n, &t.diags, NULL));
  end(&t);

  static const uint32_t deeper[] = {IR_MAX_DEPTH + 1, MANY / 4};
  for (int i = 0; i < 2; i++) {
    begin(&t);
    nest(&t, deeper[i]);
    assert_null(parse(&t));
    assert_int_equal(t.diags.n_errors, 1); /* once, however deep */
    help_expect_diag(&t.diags, DIAG_IR_SYNTAX, "blocks are nested deeper than 200");
    end(&t);
  }
}

static void repeat(struct strbuf *s, const char *what, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    sb_puts(s, what);
}

/* Lines of millions of bytes: read, or refused with one diagnostic, in time. */
static void test_long_lines(void **state) {
  (void)state;
  static const struct {
    const char *first, *again, *last, *error;
    uint32_t n;
  } cases[] = {
      {"print %m", ", %m", "\n", NULL, MANY < 65534 ? MANY : 65534},
      {"print %m", ", %m", "\n", MANY > 65535 ? "more than 65535 operands" : NULL, MANY},
      {"%1 = const 1", "1", " : index\n", "does not fit 64 bits", MANY},
      {"%1 = const 1.", "1", " : f64\n", "is not a number that f64 can hold", MANY},
      {"%1 = const 0.", "1", " : f64\n", NULL, 300},
      {"%", "a", " = const 1 : index\n", NULL, MANY},
      {"print %", "a", "\n", "is not defined before its use", MANY},
      {"a", "b", "\n", "there is no op `abbbbbbb", MANY},
      {"print {message = \"", "x", "\"}\n", NULL, MANY},
      {"print {message = \"", "\\", "\n", "the quoted text does not end", MANY},
      {"", "(", "\n", "an op expected", MANY},
      {"", "{", "\n}\n", "an op expected", MANY} /* and its end */,
      {"", "%1, ", "\n", NULL, 3}, /* see below */
      {"; ", "comment ", "\n", NULL, MANY},
      {"", "\t \r", "\n", NULL, MANY},
      {"", "\n", "\n", NULL, MANY},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct text t;
    begin(&t);
    head(&t, "tile");
    sb_puts(&t.s, cases[i].first);
    repeat(&t.s, cases[i].again, cases[i].n);
    sb_puts(&t.s, cases[i].last);
    tail(&t);
    struct ir_module *m = parse(&t);
    bool list = str_eq(cases[i].again, "%1, "); /* ends in a comma */
    if (cases[i].error || list) {
      assert_null(m);
      assert_int_equal(t.diags.n_errors, 1);
      help_expect_diag(&t.diags, DIAG_IR_SYNTAX, list ? "expected" : cases[i].error);
      assert_true(strlen(t.diags.list.at[0].message) < 200);
    } else if (!m) {
      fail_msg("case %zu: %s", i, help_last_message(&t.diags));
    }
    end(&t);
  }
}

/* Deep expressions in the head. */
static void test_deep_expressions(void **state) {
  (void)state;
  for (int kind = 0; kind < 3; kind++) {
    struct text t;
    begin(&t);
    sb_puts(&t.s, "kiln-ir 1 tile\nkernel k {\n  dims M\n  grid ");
    repeat(&t.s, kind == 0 ? "(" : kind == 1 ? "not " : "M + ", 20000);
    sb_puts(&t.s, "M\n  body(%m: index, %g: index) {\n");
    tail(&t);
    assert_null(parse(&t));
    assert_int_equal(t.diags.n_errors, 1);
    assert_int_equal(t.diags.list.at[0].loc.line, 4);
    end(&t);
  }
}

/* ---- damage ---- */

static const char sample[] =
    "kiln-ir 1 scheduled\nkernel k {\n  target sm_80\n  config BM = 128, T = bf16, x = 0.5\n"
    "  arg A: in f32 [M, K // 2]\n  arg s: optional absent scalar f32\n  dims M, K\n"
    "  fact K % 8\n  grid cdiv(M, 4)\n  roles load, mma\n"
    "  layout #1 = [4,8] reg 4:(0,2) lane 2!:(0,1)\n"
    "  body(%0: view f32(?,?), %1: index, %2: index, %3: index) {\n"
    "    %4 = const 0 <load stage 0 order 1> : index\n"
    "    %5 = const 1 : index\n"
    "    %6 = load %0, %4, %4 {pad = -inf} : f32(4,8) #1\n"
    "    %7 = for %8: index = %4, %1, %5 carry(%9: f32(4,8) #1 = %6) : f32(4,8) #1 {\n"
    "      %10 = transpose %9 {perm = [1,0]} : f32(8,4)\n"
    "      print %10 {message = \"a \\\"b\\\" \\x01\"}\n      yield %9\n    }\n"
    "    %11 = lt %1, %2 : bool\n    if %11 {\n      yield\n    } else {\n      yield\n    }\n"
    "    return\n  }\n}\n";

/* Reads damaged bytes: no crash, a diagnostic or a module that prints and reads back. */
static void read_damaged(const char *s, size_t n) {
  struct text t;
  begin(&t);
  sb_put(&t.s, s, n);
  struct ir_module *m = parse(&t);
  assert_int_equal(m == NULL, t.diags.n_errors > 0);
  for (uint32_t i = 0; i < t.diags.list.n; i++) {
    assert_int_equal(t.diags.list.at[i].id, DIAG_IR_SYNTAX);
    assert_true(t.diags.list.at[i].loc.line > 0 && t.diags.list.at[i].loc.col > 0);
  }
  if (m) {
    ir_verify(m, &t.diags);
    check_round_trip(m, (struct ir_print_options){.names = true}, 0);
  }
  end(&t);
}

static void test_sample_is_valid(void **state) {
  (void)state;
  struct text t;
  begin(&t);
  sb_puts(&t.s, sample);
  struct ir_module *m = parse(&t);
  assert_non_null(m);
  assert_true(ir_verify(m, &t.diags));
  struct strbuf out = {.arena = &t.h.arena};
  ir_print(m, (struct ir_print_options){0}, &out);
  assert_string_equal(sb_str(&out), sample);
  end(&t);
}

static void test_truncated(void **state) {
  (void)state;
  for (size_t n = 0; n < sizeof sample - 1; n++)
    read_damaged(sample, n);
}

static void test_each_byte_changed(void **state) {
  (void)state;
  static const char bytes[] = {0,   '\n', ' ', '{', '}', '(', ')',
                               '"', '%',  '#', ',', '9', 'z', '\xff'};
  char s[sizeof sample];
  for (size_t i = 0; i < sizeof sample - 1; i++)
    for (size_t k = 0; k < sizeof bytes; k++) {
      memcpy(s, sample, sizeof sample);
      s[i] = bytes[k];
      read_damaged(s, sizeof sample - 1);
    }
}

static void test_lines_removed_and_doubled(void **state) {
  (void)state;
  for (int doubled = 0; doubled < 2; doubled++)
    for (const char *line = sample; *line; line += strcspn(line, "\n") + 1) {
      char s[2 * sizeof sample];
      size_t before = (size_t)(line - sample), n = strcspn(line, "\n") + 1, rest = strlen(line + n);
      size_t at = before;
      memcpy(s, sample, before);
      for (int i = 0; i < (doubled ? 2 : 0); i++, at += n)
        memcpy(s + at, line, n);
      memcpy(s + at, line + n, rest);
      read_damaged(s, at + rest);
    }
}

static void test_random_damage(void **state) {
  (void)state;
  uint64_t rng = 11;
  for (int round = 0; round < (MANY > 3000 ? 3000 : 300); round++) {
    char s[2 * sizeof sample];
    size_t n = sizeof sample - 1;
    memcpy(s, sample, n);
    for (uint64_t edits = 1 + gen_below(&rng, 6); edits > 0; edits--) {
      size_t from = gen_below(&rng, n), to = gen_below(&rng, n), len = gen_below(&rng, 30);
      len = len > n - from ? n - from : len;
      len = len > n - to ? n - to : len;
      if (gen_below(&rng, 2)) {
        memmove(s + to, s + from, len);
      } else if (n > len + 10) {
        memmove(s + from, s + from + len, n - from - len);
        n -= len;
      }
    }
    read_damaged(s, n);
  }
}

/* An error in the recipe is placed in the module's text. */
static void test_recipe_errors(void **state) {
  (void)state;
  struct text t;
  begin(&t);
  sb_puts(&t.s,
          "kiln-ir 1 machine\nkernel k {\n  recipe {\n    kiln-recipe 1\n    kernel \"k\"\n"
          "    target \"sm_80\"\n    sideways\n  }\n  grid 1\n  body() {\n    return\n  }\n}\n");
  assert_null(parse(&t));
  assert_int_equal(t.diags.list.at[0].loc.line, 7);
  assert_true(t.diags.list.at[0].loc.col >= 5);
  end(&t);
  begin(&t);
  sb_puts(&t.s, "kiln-ir 1 machine\nkernel k {\n  recipe {\n    kiln-recipe 1\n");
  assert_null(parse(&t));
  help_expect_diag(&t.diags, DIAG_IR_SYNTAX, "the recipe that begins here has no end");
  assert_int_equal(t.diags.list.at[0].loc.line, 3);
  end(&t);
}

static void test_first_line(void **state) {
  (void)state;
  static const struct {
    const char *text, *error;
  } cases[] = {{"", "line 1 must be `kiln-ir 1 tile|scheduled|machine`"},
               {"\n\nkiln-ir 1 tile\n", "line 1 must be"},
               {"return kernel {}\n", "line 1 must be"},
               {"kiln-irx 1 tile\n", "line 1 must be"},
               {"kiln-ir tile\n", "a number expected"},
               {"kiln-ir 2 tile\n", "version 2 of the text format; this Kiln reads version 1"},
               {"kiln-ir 1 lava\n", "tile, scheduled or machine expected"},
               {"kiln-ir 1 tile tile\n", "the end of the line expected"},
               {"kiln-ir 1 tile", "the text ends before the kernel's body"},
               {"kiln-ir 1 tile\nkernel k {\n", "the text ends before the kernel's body"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct text t;
    begin(&t);
    sb_puts(&t.s, cases[i].text);
    assert_null(parse(&t));
    assert_int_equal(t.diags.n_errors, 1);
    help_expect_diag(&t.diags, DIAG_IR_SYNTAX, cases[i].error);
    end(&t);
  }
}

/* Windows line ends, no newline at the end, comments everywhere. */
static void test_layout_of_the_text(void **state) {
  (void)state;
  struct text t;
  begin(&t);
  for (const char *s = sample; *s; s++)
    sb_puts(&t.s, *s == '\n' ? "  ; comment { \" %x =\r\n\r\n; more\n" : (char[2]){*s, 0});
  t.s.n -= 1; /* the last newline */
  struct ir_module *m = parse(&t);
  if (!m)
    fail_msg("%s", help_last_message(&t.diags));
  struct strbuf out = {.arena = &t.h.arena};
  ir_print(m, (struct ir_print_options){0}, &out);
  assert_string_equal(sb_str(&out), sample);
  end(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_modules),
      cmocka_unit_test(test_names_and_locations),
      cmocka_unit_test(test_place_in_the_text),
      cmocka_unit_test(test_numbers_to_the_bit),
      cmocka_unit_test(test_locale),
      cmocka_unit_test(test_a_million_ops),
      cmocka_unit_test(test_a_million_errors),
      cmocka_unit_test(test_nesting),
      cmocka_unit_test(test_long_lines),
      cmocka_unit_test(test_deep_expressions),
      cmocka_unit_test(test_sample_is_valid),
      cmocka_unit_test(test_truncated),
      cmocka_unit_test(test_each_byte_changed),
      cmocka_unit_test(test_lines_removed_and_doubled),
      cmocka_unit_test(test_random_damage),
      cmocka_unit_test(test_recipe_errors),
      cmocka_unit_test(test_first_line),
      cmocka_unit_test(test_layout_of_the_text),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
