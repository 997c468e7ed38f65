/* Programs that an atomic orders (sem = acq_rel): what others wrote before they counted themselves
 * in may be read by the one that comes last, in whatever order they run; without it, and for what
 * was written later or to another's counter, it is a race. */
#include "help_cg.h"
#include "ir/interp.h"

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

/* Program i of 6 writes W[i], counts itself in at C[i % 2 or 0] and, if it is the last of all,
 * stores the sum of W. */
static const char text[] =
    "kiln-ir 1 tile\nkernel k {\n  arg W: scratch s32 [6]\n  arg C: zero scratch s32 [2]\n"
    "  arg Y: out s32 [1]\n  grid 6\n"
    "  body(%%w: view s32(6), %%c: view s32(2), %%y: view s32(1), %%i: index) {\n"
    "    %%0 = const 0 : index\n    %%2 = const 2 : index\n    %%one = const 1 : s32\n"
    "    %%five = const %d : s32\n    %%x = cast %%i : s32\n    %%odd = mod %%i, %%2 : index\n"
    "%s    %%n = atomic %%c, %s, %%one {kind = add%s} : s32\n%s"
    "    %%last = eq %%n, %%five : bool\n"
    "    if %%last {\n      %%v = load %%w, %%0 : s32(6)\n"
    "      %%s = reduce_sum %%v {axis = 0} : s32(1)\n      store %%y, %%0, %%s\n      yield\n"
    "    } else {\n      yield\n    }\n    return\n  }\n}\n";
#define WRITE "    scatter %w, %i, %x\n"

static void run(int last, const char *before, const char *counter, const char *sem,
                const char *after, const char *want) {
  for (uint64_t seed = 0; seed < 20; seed++) {
    struct cg_test t;
    char kernel[2000];
    snprintf(kernel, sizeof kernel, text, last, before, counter, sem, after);
    cg_test_begin_module(&t, kernel);
    cg_test_args(&t, "", "", 0, 0);
    assert_true(ir_verify(t.tile, &t.diags));
    struct interp_options opt = {
        .check_races = true, .check_unwritten = true, .grid_seed = seed, .max_steps = 10000};
    bool ok = interp_run(t.tile, t.arg, t.tile->args.n, &opt, &t.diags, &mem_libc);
    if (ok != !want || (want && !strstr(cg_test_messages(&t), want)))
      fail_msg("seed %llu: expected `%s`, found\n%s", (unsigned long long)seed,
               want ? want : "no error", cg_test_messages(&t));
    if (ok)
      assert_int_equal(((int32_t *)t.base[2])[0], 15);
    cg_test_end(&t);
  }
}

static void last_reads_all(void **state) {
  (void)state;
  run(5, WRITE, "%0", ", sem = acq_rel", "", NULL);
}

static void races(void **state) {
  (void)state;
  const char *race = "'load' reads element";
  run(5, WRITE, "%0", "", "", race);                                 /* not ordered */
  run(2, WRITE, "%odd", ", sem = acq_rel", "", race);                /* half of them are */
  run(5, "", "%0", ", sem = acq_rel", WRITE, race);                  /* written too late */
  run(0, WRITE, "%0", ", sem = acq_rel", "", "nothing has written"); /* the first reads */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(last_reads_all), cmocka_unit_test(races)};
  return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
