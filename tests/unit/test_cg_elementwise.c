/* Kernels without dots, lowered and run on the host, against the interpreter. */
#include "help_cg.h"

#include <cmocka.h>

static void check_add(enum dtype t, int tile, const char *dims, const char *layout,
                      const char *knobs) {
  struct help_arena h;
  help_arena_init(&h);
  struct strbuf b = {.arena = &h.arena};
  cg_add_text(&b, t, tile);
  cg_check(sb_str(&b), dims, layout, knobs, 0);
  arena_free(&h.arena);
}

static void add_of_every_dtype_and_size(void **state) {
  (void)state;
  static const enum dtype types[] = {DT_BF16, DT_F16, DT_F32};
  static const char *const sizes[] = {"N=0", "N=1", "N=63", "N=1024", "N=1025", "N=2500"};
  for (unsigned i = 0; i < 3; i++)
    for (unsigned k = 0; k < 6; k++) {
      check_add(types[i], 1024, sizes[k], "", "");
      check_add(types[i], 1000, sizes[k], "", "");
      check_add(types[i], 96, sizes[k], "X=off1", "threads=96");
    }
}

static void check_rows(void (*text)(struct strbuf *, enum dtype, int, int), enum dtype t, int rows,
                       int cols, const char *layout, const char *knobs) {
  struct help_arena h;
  char dims[40];
  help_arena_init(&h);
  struct strbuf b = {.arena = &h.arena};
  text(&b, t, rows, cols);
  snprintf(dims, sizeof dims, "M=5,N=%d", cols);
  cg_check(sb_str(&b), dims, layout, knobs, t == DT_F32 ? 2e-6 : 1e-2);
  arena_free(&h.arena);
}

static void row_kernels(void **state) {
  (void)state;
  static const enum dtype types[] = {DT_BF16, DT_F16, DT_F32};
  static const int cols[] = {1, 63, 257, 1000, 2048};
  for (unsigned i = 0; i < 3; i++)
    for (unsigned k = 0; k < 5; k++)
      for (int rows = 1; rows <= 4; rows *= 4) {
        check_rows(cg_softmax_text, types[i], rows, cols[k], "", "");
        check_rows(cg_rmsnorm_text, types[i], rows, cols[k], "X=col", "");
        check_rows(cg_softmax_text, types[i], rows, cols[k], "Y=pad3", "threads=96");
        check_rows(cg_rmsnorm_text, types[i], rows, cols[k], "W=off1", "threads=256");
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(add_of_every_dtype_and_size),
      cmocka_unit_test(row_kernels),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
