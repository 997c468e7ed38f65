/* Elements at indices on the GPU's way: gathers, scatters and atomics, of scalars and tiles, with
 * indices that broadcast, lie outside, repeat, or are coordinates (then several elements go in one
 * access). What they are lowered to, run on the host, gives the interpreter's bits. */
#include "help_cg.h"

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static struct help_arena h;

static const char *const layouts[] = {"", "A=col", "A=pad3", "B=pad4", "A=off1,B=col"};

/* $T: the dtype; $C a constant of it. */
static const char *with_type(const char *text, const char *dtype) {
  struct strbuf b = {.arena = &h.arena};
  for (const char *p = text; *p; p++) {
    if (p[0] == '$' && p[1] == 'T')
      sb_puts(&b, dtype);
    else if (p[0] == '$' && p[1] == 'C')
      sb_puts(&b, dtype[0] == 's' ? "2" : "2.0");
    else
      sb_putc(&b, *p);
    p += p[0] == '$' && (p[1] == 'T' || p[1] == 'C');
  }
  return sb_str(&b);
}

/* A [M,N] and B [M,N] of T, I [M] of s32: -3 .. 4. */
#define HEAD                                                                                       \
  "kiln-ir 1 tile\nkernel k {\n  arg A: in $T [M, N]\n  arg I: in s32 [M]\n"                       \
  "  arg B: inout $T [M, N]\n  dims M, N\n  grid cdiv(M, 16)\n"                                    \
  "  body(%0: view $T(?,?), %1: view s32(?), %2: view $T(?,?), %3: index, %4: index, %5: index) "  \
  "{\n    %6 = const 16 : index\n    %7 = mul %5, %6 : index\n    %8 = const 0 : index\n"          \
  "    %9 = iota {axis = 0} : index(16,1)\n    %10 = iota {axis = 1} : index(1,32)\n"              \
  "    %11 = splat %7 : index(16,1)\n    %12 = add %11, %9 : index(16,1)\n"                        \
  "    %13 = load %1, %7 : s32(16)\n    %14 = cast %13 : index(16)\n"                              \
  "    %15 = reshape %14 : index(16,1)\n"
#define TAIL "    return\n  }\n}\n"

static const char *const programs[] = {
    /* rows of A that I names, columns as they lie */
    HEAD "    %16 = gather %0, %15, %10 : $T(16,32)\n    store %2, %7, %8, %16\n" TAIL,
    /* the same with a pad value, columns from an odd place on */
    HEAD "    %16 = const 1 : index\n    %17 = splat %16 : index(1,32)\n"
         "    %18 = add %10, %17 : index(1,32)\n    %19 = gather %0, %15, %18 {pad = $C} : "
         "$T(16,32)\n    store %2, %7, %8, %19\n" TAIL,
    /* one element a row: label */
    HEAD "    %16 = gather %0, %12, %15 : $T(16,1)\n    store %2, %7, %8, %16\n" TAIL,
    /* rows from a scalar on, whole coordinates: as a load */
    HEAD "    %16 = gather %0, %12, %10 : $T(16,32)\n    store %2, %7, %8, %16\n" TAIL,
    /* through a transposed view, a repeated one and a part */
    HEAD "    %16 = view_transpose %0 {perm = [1,0]} : view $T(?,?)\n"
         "    %17 = gather %16, %15, %10 {pad = $C} : $T(16,32)\n    store %2, %7, %8, %17\n" TAIL,
    HEAD "    %16 = view_every %0 {axis = 1, count = 3} : view $T(?,?)\n"
         "    %17 = gather %16, %12, %10 : $T(16,32)\n    store %2, %7, %8, %17\n" TAIL,
    HEAD "    %16 = const 2 : index\n    %17 = const 5 : index\n"
         "    %18 = view_slice %0, %16, %16, %17, %4 : view $T(5,?)\n"
         "    %19 = gather %18, %15, %10 {pad = $C} : $T(16,32)\n    store %2, %7, %8, %19\n" TAIL,
    /* scalars: one in range, one outside */
    HEAD "    %16 = const 1 : index\n    %17 = gather %0, %16, %8 : $T\n"
         "    %18 = const -1 : index\n    %19 = gather %0, %8, %18 {pad = $C} : $T\n"
         "    %20 = add %17, %19 : $T\n    scatter %2, %7, %8, %20\n" TAIL,
    /* scatter: rows where they come from, columns the other way round */
    HEAD "    %16 = load %0, %7, %8 : $T(16,32)\n    %17 = const 31 : index\n"
         "    %18 = splat %17 : index(1,32)\n    %19 = sub %18, %10 : index(1,32)\n"
         "    scatter %2, %12, %19, %16\n" TAIL,
    /* scatter to coordinates: as a store; of one value for all */
    HEAD "    %16 = load %0, %7, %8 : $T(16,32)\n    scatter %2, %12, %10, %16\n" TAIL,
    HEAD "    %16 = const $C : $T\n    %17 = splat %16 : $T(16,32)\n"
         "    scatter %2, %12, %10, %17\n" TAIL,
    /* what a scatter wrote is read again */
    HEAD "    %16 = load %0, %7, %8 : $T(16,32)\n    scatter %2, %12, %10, %16\n"
         "    %17 = load %2, %7, %8 : $T(16,32)\n    %18 = add %17, %16 : $T(16,32)\n"
         "    store %2, %7, %8, %18\n" TAIL,
};

static void one(const char *text, const char *dims, const char *layout, const char *knobs,
                uint64_t what) {
  struct cg_test t;
  cg_test_begin(&t, text);
  cg_test_args(&t, dims, layout, -3, 4);
  t.what = what;
  if (!cg_test_lower(&t, "sm_90a", knobs))
    fail_msg("refused: %s", cg_test_messages(&t));
  cg_test_compare(&t, 0);
  cg_test_end(&t);
}

static void gathers_and_scatters(void **state) {
  (void)state;
  static const char *const dtypes[] = {"f32", "bf16", "s8", "s64", "f64", "s32"};
  static const char *const dims[] = {"M=16,N=32", "M=37,N=33", "M=5,N=3", "M=64,N=64"};
  for (size_t p = 0; p < sizeof programs / sizeof programs[0]; p++)
    for (size_t t = 0; t < sizeof dtypes / sizeof dtypes[0]; t++)
      for (size_t d = 0; d < sizeof dims / sizeof dims[0]; d++)
        one(with_type(programs[p], dtypes[t]), dims[d], layouts[(p + t + d) % 5],
            d % 2 ? "threads=64" : "", p * 100 + t * 10 + d);
}

/* Coordinates along a unit stride, aligned: 16 bytes at once; not where anything forbids it. */
static void wide_accesses(void **state) {
  (void)state;
  static const struct {
    int program;
    const char *dims, *layout, *want;
  } rows[] = {
      {0, "M=64,N=64", "", "masks = [3,0], vdim = 1, vec = 8"},
      {0, "M=64,N=64", "A=off1", "masks = [3,0], vdim = 0, vec = 1"},
      {0, "M=64,N=24", "", "masks = [3,1], vdim = 1, vec = 8"},
      {0, "M=64,N=20", "", "masks = [3,1], vdim = 1, vec = 4"},
      {0, "M=64,N=64", "A=pad3", "masks = [3,0], vdim = 0, vec = 1"},
      {0, "M=64,N=64", "A=col", "masks = [3,0], vdim = 0, vec = 1"},
      {1, "M=64,N=64", "", "masks = [3,0], vdim = 0, vec = 1"},
      {3, "M=64,N=64", "", "masks = [0,0], vdim = 1, vec = 8"},
      {3, "M=60,N=64", "A=col", "masks = [1,0], vdim = 0, vec = 4"},
      {5, "M=64,N=64", "", "masks = [0,0], vdim = 1, vec = 1"},
      {9, "M=64,N=64", "", "masks = [0,0], vdim = 1, vec = 8"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct cg_test t;
    struct cg_options opt = {.target = cg_find_target("sm_80"), .schedule = cg_schedule_auto()};
    struct strbuf text = {.arena = &h.arena};
    cg_test_begin(&t, with_type(programs[rows[i].program], "bf16"));
    cg_test_args(&t, rows[i].dims, rows[i].layout, 0, 1);
    opt.stop = IR_SCHEDULED_STAGE;
    cg_test_facts(&t);
    for (uint32_t f = 0; f < t.tile->facts.n; f++) /* the dims as numbers */
      if (str_eq(ir_sym(t.tile, t.tile->facts.at[f].sym), "N"))
        t.tile->facts.at[f] = (struct ir_fact){
            .sym = t.tile->facts.at[f].sym, .is_value = true, .n = t.arg[0].tensor.dim[1]};
    struct ir_module *m = cg_lower(t.tile, &opt, &t.mem.arena, &t.diags);
    assert_non_null(m);
    ir_print(m, (struct ir_print_options){0}, &text);
    const char *at = strstr(sb_str(&text), rows[i].program == 9 ? "scatter" : "gather");
    const char *end = strchr(at, '\n');
    if (!strstr(at, rows[i].want) || strstr(at, rows[i].want) > end)
      fail_msg("row %zu: no `%s` in `%.*s`", i, rows[i].want, (int)(end - at), at);
    cg_test_end(&t);
  }
}

/* C = A[I] . B[J]^T, or of B itself: gathered rows go to shared memory as the dot wants them, in
 * every orientation, with padding along k; the third reads a gathered tile elsewhere too. */
static const char *const dots[] = {
    "    %16 = gather %0, %12, %13 : $T(33,20)\n    %17 = gather %1, %15, %13 {pad = $C} : $T(24,20)\n"
    "    %18 = transpose %17 {perm = [1,0]} : $T(20,24)\n    %19 = dot %16, %18, %11 : f32(33,24)\n"
    "    store %3, %8, %8, %19\n",
    "    %16 = gather %0, %12, %13 {pad = $C} : $T(33,20)\n    %20 = iota {axis = 0} : index(20,1)\n"
    "    %21 = iota {axis = 1} : index(1,24)\n    %17 = gather %1, %20, %21 : $T(20,24)\n"
    "    %19 = dot %16, %17, %11 : f32(33,24)\n    store %3, %8, %8, %19\n",
    "    %16 = gather %0, %12, %13 : $T(33,20)\n    %17 = transpose %16 {perm = [1,0]} : $T(20,33)\n"
    "    %18 = const 0.0 : f32\n    %19 = splat %18 : f32(33,33)\n"
    "    %20 = dot %16, %17, %19 : f32(33,33)\n    %21 = reduce_sum %16 {axis = 1} : $T(33,1)\n"
    "    %22 = cast %21 : f32(33,1)\n    %23 = broadcast %22 : f32(33,33)\n"
    "    %24 = add %20, %23 : f32(33,33)\n    store %3, %8, %8, %24\n",
};

static void gathered_operands(void **state) {
  (void)state;
  static const char head[] =
      "kiln-ir 1 tile\nkernel k {\n  arg A: in $T [M, K]\n  arg B: in $T [N, K]\n"
      "  arg I: in s32 [P]\n  arg C: out f32 [M, N]\n  dims M, K, N, P\n  grid 1\n"
      "  body(%0: view $T(?,?), %1: view $T(?,?), %2: view s32(?), %3: view f32(?,?), %4: index, "
      "%5: index, %6: index, %7: index, %30: index) {\n    %8 = const 0 : index\n"
      "    %9 = load %2, %8 : s32(33)\n    %31 = cast %9 : index(33)\n"
      "    %12 = reshape %31 : index(33,1)\n    %13 = iota {axis = 1} : index(1,20)\n"
      "    %32 = load %2, %8 : s32(24)\n    %33 = cast %32 : index(24)\n"
      "    %15 = reshape %33 : index(24,1)\n    %10 = const 0.0 : f32\n"
      "    %11 = splat %10 : f32(33,24)\n";
  static const char *const dims[] = {"M=40,K=24,N=32,P=40", "M=33,K=19,N=21,P=7"};
  for (size_t p = 0; p < sizeof dots / sizeof dots[0]; p++)
    for (size_t d = 0; d < 2; d++)
      for (size_t y = 0; y < 3; y++) {
        struct strbuf b = {.arena = &h.arena};
        sb_printf(&b, "%s%s%s", head, dots[p], TAIL);
        const char *how = y == 0 ? "" : y == 1 ? "A=col" : "B=col,A=pad1";
        /* bf16 on the matrix unit; f32 by multiply-adds */
        one(with_type(sb_str(&b), y == 1 ? "f32" : "bf16"), dims[d], how, "", p * 10 + d);
      }
}

/* H [N] of T, X [M] of T, I [M] of s32 -3..4; O [M]: old values. */
#define ATOMIC_HEAD                                                                                \
  "kiln-ir 1 tile\nkernel k {\n  arg X: in $T [M]\n  arg I: in s32 [M]\n  arg H: inout $T [N]\n"   \
  "  arg O: out $T [M]\n  dims M, N\n  grid cdiv(M, 32)\n"                                         \
  "  body(%0: view $T(?), %1: view s32(?), %2: view $T(?), %3: view $T(?), %4: index, %5: index, " \
  "%6: index) {\n    %7 = const 32 : index\n    %8 = mul %6, %7 : index\n"                         \
  "    %9 = load %0, %8 : $T(32)\n    %10 = load %1, %8 : s32(32)\n"                               \
  "    %11 = cast %10 : index(32)\n    %12 = const 0 : index\n    %13 = const 1 : index\n"

static const char *const atomics[] = {
    /* indices that repeat and lie outside, twice: any order gives the same */
    ATOMIC_HEAD "    %14 = atomic %2, %11, %9 {kind = $K} : $T(32)\n"
                "    %15 = atomic %2, %11, %9 {kind = $K} : $T(32)\n" TAIL,
    /* each element once: old values, before and after another change */
    ATOMIC_HEAD "    %14 = iota {axis = 1} : index(1,32)\n    %15 = reshape %14 : index(32)\n"
                "    %16 = splat %8 : index(32)\n    %17 = add %15, %16 : index(32)\n"
                "    %18 = atomic %2, %17, %9 {kind = $K} : $T(32)\n"
                "    %19 = const $C : $T\n    %20 = splat %19 : $T(32)\n"
                "    %21 = atomic %2, %17, %20 {kind = add} : $T(32)\n"
                "    %22 = add %18, %21 : $T(32)\n    store %3, %8, %22\n" TAIL,
    /* scalars: the old value for all; and one that nobody wants */
    ATOMIC_HEAD "    %14 = const $C : $T\n    %15 = atomic %2, %6, %14 {kind = $K} : $T\n"
                "    %16 = atomic %2, %6, %14 {kind = $K} : $T\n    %17 = splat %15 : $T(32)\n"
                "    %18 = add %9, %17 : $T(32)\n    store %3, %8, %18\n" TAIL,
    /* in a loop, with loads of what it changes between */
    ATOMIC_HEAD "    %14 = const 3 : index\n    for %15: index = %12, %14, %13 {\n"
                "      %16 = atomic %2, %11, %9 {kind = $K} : $T(32)\n"
                "      %17 = load %2, %12 : $T(16)\n      store %3, %8, %17\n"
                "      yield\n    }\n" TAIL,
};

static const char *with_kind(const char *text, const char *kind) {
  struct strbuf b = {.arena = &h.arena};
  for (const char *p; (p = strstr(text, "$K")) != NULL; text = p + 2)
    sb_printf(&b, "%.*s%s", (int)(p - text), text, kind);
  sb_puts(&b, text);
  return sb_str(&b);
}

static void atomics_of_every_kind(void **state) {
  (void)state;
  static const char *const rows[][2] = {
      {"add", "s32"}, {"min", "s32"},      {"max", "s32"},      {"and", "s32"},
      {"or", "s32"},  {"xor", "s32"},      {"exchange", "s32"}, {"add", "s64"},
      {"min", "s64"}, {"max", "s64"},      {"and", "s64"},      {"or", "s64"},
      {"xor", "s64"}, {"exchange", "s64"}, {"add", "f32"},      {"min", "f32"},
      {"max", "f32"}, {"exchange", "f32"}, {"add", "f64"},      {"exchange", "f64"},
      {"add", "f16"}, {"add", "bf16"},
  };
  static const char *const dims[] = {"M=32,N=40", "M=70,N=71", "M=5,N=3"};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    for (size_t p = 0; p < 4; p++)
      for (size_t d = 0; d < 3; d++) {
        bool exchange = str_eq(rows[i][0], "exchange");
        if (exchange && (p == 0 || p == 3))
          continue; /* the last of several to one element is anybody's */
        one(with_kind(with_type(atomics[p], rows[i][1]), rows[i][0]), dims[d], "",
            d == 1 ? "threads=128" : "", i * 100 + p * 10 + d);
      }
}

/* Barriers: between atomics whose order shows, and none where it does not. */
static int64_t barriers(const char *text) {
  struct cg_test t;
  cg_test_begin(&t, text);
  cg_test_args(&t, "M=32,N=40", "", -3, 4);
  if (!cg_test_lower(&t, "sm_90a", "threads=64"))
    fail_msg("refused: %s", cg_test_messages(&t));
  struct mach_result r = cg_test_run(&t);
  assert_true(r.ok);
  cg_test_end(&t);
  return r.barriers;
}

static void order_of_atomics(void **state) {
  (void)state;
  const char *twice = with_type(atomics[0], "s32");
  assert_int_equal(barriers(with_kind(twice, "add")), 0);
  assert_int_equal(barriers(with_kind(twice, "exchange")), 1);
  /* two kinds */
  const char *two = with_kind(with_type(atomics[1], "s32"), "max");
  assert_true(barriers(two) >= 1);
  /* load and store between: before the load, and before the next atomic */
  assert_true(barriers(with_kind(with_type(atomics[3], "s32"), "add")) >= 5);
}

/* Stores to one tensor: a barrier where they may meet, none where they do not. */
static void order_of_stores(void **state) {
  (void)state;
  static const struct {
    const char *body;
    int64_t barriers;
  } rows[] = {
      /* one over the other; side by side */
      {"    store %2, %8, %9\n    store %2, %13, %9\n", 1},
      {"    store %2, %8, %9\n    %14 = add %8, %7 : index\n    store %2, %14, %9\n", 0},
      {"    store %2, %12, %9\n    store %2, %7, %9\n", 0},
      /* a scatter, who knows where */
      {"    store %2, %8, %9\n    scatter %2, %11, %9\n", 1},
      /* iterations that meet, that do not, and pairs of both */
      {"    for %14: index = %12, %7, %13 {\n      store %2, %14, %9\n      yield\n    }\n", 32},
      {"    %14 = const 128 : index\n    for %15: index = %12, %14, %7 {\n"
       "      store %2, %15, %9\n      yield\n    }\n",
       0},
      {"    %14 = const 128 : index\n    %15 = const 64 : index\n"
       "    for %16: index = %12, %14, %15 {\n      %17 = add %16, %7 : index\n"
       "      store %2, %17, %9\n      store %2, %16, %9\n      yield\n    }\n",
       0},
      {"    %14 = const 128 : index\n    for %16: index = %12, %14, %7 {\n"
       "      %17 = add %16, %7 : index\n      store %2, %17, %9\n      store %2, %16, %9\n"
       "      yield\n    }\n",
       8},
      /* on both ways, then after them */
      {"    %14 = lt %6, %13 : bool\n    if %14 {\n      store %2, %8, %9\n      yield\n    } "
       "else {\n      yield\n    }\n    store %2, %13, %9\n",
       1},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct strbuf b = {.arena = &h.arena};
    sb_printf(&b, "%s%s%s", ATOMIC_HEAD, rows[i].body, TAIL);
    int64_t n = barriers(with_type(sb_str(&b), "s32"));
    if (n != rows[i].barriers)
      fail_msg("row %zu: %lld barriers, not %lld", i, (long long)n, (long long)rows[i].barriers);
  }
}

int main(void) {
  help_arena_init(&h);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gathers_and_scatters), cmocka_unit_test(wide_accesses),
      cmocka_unit_test(gathered_operands),    cmocka_unit_test(atomics_of_every_kind),
      cmocka_unit_test(order_of_atomics),     cmocka_unit_test(order_of_stores),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  arena_free(&h.arena);
  return failed;
}
