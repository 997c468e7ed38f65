/* Parts of tiles, tiles of parts, and print, on the GPU's way: what they are lowered to, run on the
 * host, gives the interpreter's bits, and its lines. */
#include "help_cg.h"

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#define HEAD                                                                                       \
  "kiln-ir 1 tile\nkernel k {\n  arg A: in %s [M, N]\n  arg B: out %s [M, N]\n  dims M, N\n"       \
  "  grid cdiv(M, 16), 1\n"                                                                        \
  "  body(%%0: view %s(?,?), %%1: view %s(?,?), %%2: index, %%3: index, %%4: index, %%5: index) "  \
  "{\n    %%6 = const 16 : index\n    %%7 = mul %%4, %%6 : index\n    %%8 = const 0 : index\n"     \
  "    %%9 = load %%0, %%7, %%8 : %s(16,24)\n"
#define TAIL "    return\n  }\n}\n"

/* T is the dtype. */
static const char *const parts[] = {
    "    %10 = extract %9 {offsets = [3,5]} : T(9,16)\n    store %1, %7, %8, %10\n",
    "    %10 = extract %9 {offsets = [0,8]} : T(16,16)\n    %11 = extract %9 {offsets = [0,0]} : "
    "T(16,8)\n    %12 = concat %10, %11 {axis = 1} : T(16,24)\n    store %1, %7, %8, %12\n",
    "    %10 = extract %9 {offsets = [5,0]} : T(1,24)\n    %11 = concat %9, %10, %10 {axis = 0} : "
    "T(18,24)\n    store %1, %7, %8, %11\n",
    "    %10 = neg %9 : T(16,24)\n    %11 = concat %10, %9, %10 {axis = 1} : T(16,72)\n"
    "    %12 = extract %11 {offsets = [1,20]} : T(13,37)\n    store %1, %7, %8, %12\n",
    "    %10 = iota {axis = 1} : index(1,24)\n    %11 = extract %10 {offsets = [0,4]} : index(1,8)\n"
    "    %12 = cast %11 : T(1,8)\n    %13 = concat %12, %12, %12 {axis = 1} : T(1,24)\n"
    "    %14 = broadcast %13 : T(16,24)\n    %15 = add %14, %9 : T(16,24)\n"
    "    store %1, %7, %8, %15\n",
    "    %10 = reshape %9 : T(384)\n    %11 = extract %10 {offsets = [7]} : T(300)\n"
    "    %12 = extract %10 {offsets = [0]} : T(84)\n    %13 = concat %11, %12 {axis = 0} : T(384)\n"
    "    %14 = reshape %13 : T(16,24)\n    store %1, %7, %8, %14\n",
};

static const char *program(struct strbuf *out, const char *dtype, const char *body) {
  sb_printf(out, HEAD, dtype, dtype, dtype, dtype, dtype);
  for (; *body; body++)
    if (*body == 'T')
      sb_puts(out, dtype);
    else
      sb_putc(out, *body);
  sb_puts(out, TAIL);
  return sb_str(out);
}

static void extract_and_concat(void **state) {
  (void)state;
  static const char *const dtypes[] = {"f32", "bf16", "s8", "f64", "s32"};
  static const char *const dims[] = {"M=16,N=24", "M=33,N=19", "M=48,N=80"};
  struct help_arena h;
  help_arena_init(&h);
  for (size_t p = 0; p < sizeof parts / sizeof parts[0]; p++)
    for (size_t t = 0; t < sizeof dtypes / sizeof dtypes[0]; t++)
      for (size_t d = 0; d < 3; d++) {
        struct strbuf b = {.arena = &h.arena};
        cg_check(program(&b, dtypes[t], parts[p]), dims[d], t % 2 ? "A=col" : "A=pad3",
                 d == 1 ? "threads=128" : "", 0);
      }
  arena_free(&h.arena);
}

static void add_line(void *user, const char *text) {
  strcat(strcat(user, text), "\n");
}

/* The lines of a print in every dtype, of scalars and tiles, with and without places. */
static void lines(void **state) {
  (void)state;
  static const char *const bodies[] = {
      "    print %9 {message = \"x\"}\n    store %1, %7, %8, %9\n",
      "    print %7, %9 {message = \"{} of {}, {} 100%\"}\n    store %1, %7, %8, %9\n",
      "    print %9, %7\n    store %1, %7, %8, %9\n",
      "    print {message = \"only words, \\\"quoted\\\"\"}\n    store %1, %7, %8, %9\n",
      "    %10 = const true : bool\n    %11 = const 0.1 : f64\n"
      "    print %10, %11 {message = \"{}\\t\"}\n    store %1, %7, %8, %9\n",
      "    %10 = add %9, %9 : T(16,24)\n    %11 = gt %10, %9 : bool(16,24)\n"
      "    %12 = extract %11 {offsets = [0,0]} : bool(2,3)\n    print %12, %10\n"
      "    store %1, %7, %8, %10\n",
  };
  static const char *const dtypes[] = {"f32", "bf16", "s8", "f64", "s64"};
  struct help_arena h;
  help_arena_init(&h);
  for (size_t p = 0; p < sizeof bodies / sizeof bodies[0]; p++)
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
      struct cg_test t;
      char want[4000] = "";
      struct strbuf b = {.arena = &h.arena};
      cg_test_begin(&t, program(&b, dtypes[d], bodies[p]));
      cg_test_args(&t, "M=30,N=20", "", -3, 4);
      if (!cg_test_lower(&t, "sm_90a", ""))
        fail_msg("refused: %s", cg_test_messages(&t));
      struct interp_options opt = {.domain = INTERP_ROUNDED, .print = add_line, .user = want};
      assert_true(interp_run(t.tile, t.ref, 2, &opt, &t.diags, &mem_libc));
      struct mach_result r = cg_test_run(&t);
      if (!r.ok)
        fail_msg("%s", r.error);
      assert_string_equal(r.printed, want);
      cg_test_end(&t);
    }
  arena_free(&h.arena);
}

static void too_long_a_line(void **state) {
  (void)state;
  struct cg_test t;
  cg_test_begin(&t, "kiln-ir 1 tile\nkernel k {\n  arg A: in f32 [M, M, M, M]\n  dims M\n  grid 1\n"
                    "  body(%0: view f32(?,?,?,?), %1: index, %2: index) {\n"
                    "    %3 = load %0, %2, %2, %2, %2 : f32(8,8,8,8)\n    print %3\n    return\n"
                    "  }\n}\n");
  cg_test_args(&t, "M=8", "", 0, 1);
  assert_false(cg_test_lower(&t, "sm_90a", ""));
  assert_non_null(strstr(cg_test_messages(&t), "print shows 4097 elements; on the GPU a line has "
                                               "at most 512"));
  cg_test_end(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(extract_and_concat),
      cmocka_unit_test(lines),
      cmocka_unit_test(too_long_a_line),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
