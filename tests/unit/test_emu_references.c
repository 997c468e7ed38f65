/* Cases of every reference kernel on the emulator, in five interleavings each: verified against the
 * oracle (on integers to the bit), and in the algebraic domain the interpreter's payloads. In short
 * a case is run in one of the two and in one schedule, taking turns; KILN_LONG=1: all of them.
 * What has no lowering yet is refused with that message alone, and named as skipped. */
#include "help_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

/* Knobs that an op has no use for are not looked at. */
#define N_SCHEDULES 4
static const char *const schedules[N_SCHEDULES][4] = {
    {NULL},
    {"stages=1", "threads=64", "store=1", NULL},
    {"stages=4", "threads=256", "prefetch=0", NULL},
    {"stages=2", "threads=32", "blocks=1", NULL},
};

struct count {
  uint32_t ran, refused, limits;
};

/* Whether all that was said has this code. */
static bool said(struct kiln_context *ctx, const char *code) {
  uint32_t n = kiln_diag_count(ctx);
  for (uint32_t i = 0; i < n; i++)
    if (strcmp(kiln_diag_code(ctx, i), code) != 0)
      return false;
  return n > 0;
}

/* False: over a limit of the target in this schedule. */
static bool run(struct help_api *t, struct kiln_file *file, const char *kernel, int32_t i,
                const char *const *knobs, uint32_t flags, struct count *count) {
  struct kiln_request req = help_api_request();
  const struct kiln_report *report = NULL;
  req.kernel = kernel;
  req.case_index = i;
  req.set = knobs;
  while (knobs[req.n_set])
    req.n_set++;
  enum kiln_status st = kiln_run_case(file, &req, KILN_ON_EMU, flags, &report);
  if (st == KILN_OK)
    count->ran++;
  else if (st == KILN_INVALID && said(t->ctx, "K0701"))
    count->refused++;
  else if (!(st == KILN_INVALID && said(t->ctx, "K0702")))
    fail_msg("%s, case %d, %s: %s", kernel, (int)i, knobs[0] ? knobs[0] : "default",
             kiln_diag_count(t->ctx) ? kiln_diag_text(t->ctx, 0) : kiln_status_name(st));
  bool over = st == KILN_INVALID && said(t->ctx, "K0702");
  kiln_diag_clear(t->ctx);
  return !over;
}

static void run_file(const char *path, uint32_t flags, char *left, size_t size,
                     struct count *total) {
  bool all = getenv("KILN_LONG") != NULL;
  struct help_api t = {0};
  struct kiln_file *file = NULL;
  help_api_start(&t, NULL);
  help_api_expect(&t, kiln_file_load(t.ctx, path, NULL, &file), KILN_OK, NULL);
  for (uint32_t k = 0; k < kiln_file_kernel_count(file); k++) {
    const char *name = kiln_file_kernel_name(file, k);
    struct count count = {0};
    for (uint32_t i = 0; i < kiln_file_case_count(file, name); i++) {
      bool turn = (i + k + (flags == KILN_CASE_ALGEBRAIC)) % 2 == 0;
      for (uint32_t s = 0; s < N_SCHEDULES; s++)
        if ((all || (turn && s == (i + k) / 2 % N_SCHEDULES)) &&
            !run(&t, file, name, (int32_t)i, schedules[s], flags, &count)) {
          count.limits++;
          if (!all)
            run(&t, file, name, (int32_t)i, schedules[0], flags, &count);
        }
    }
    if (count.refused && strlen(left) + strlen(name) + 3 < size)
      sprintf(left + strlen(left), "%s%s", *left ? ", " : "", name);
    total->ran += count.ran;
    total->refused += count.refused;
    total->limits += count.limits;
  }
  kiln_file_free(file);
  help_api_stop(&t);
}

static void run_files(uint32_t flags) {
  glob_t files;
  char left[4096] = "";
  struct count total = {0};
  assert_int_equal(glob(KILN_SRC_DIR "/kernels_ref/*.lua", 0, NULL, &files), 0);
  for (size_t f = 0; f < files.gl_pathc; f++)
    run_file(files.gl_pathv[f], flags, left, sizeof left, &total);
  globfree(&files);
  print_message("%u runs; %u cases over a limit in a schedule\n", total.ran, total.limits);
  if (*left)
    print_message("SKIP: not lowered yet, in some case: %s\n", left);
  assert_true(total.ran > 90 && total.limits < total.ran / 2);
}

static void references_are_verified(void **state) {
  (void)state;
  run_files(KILN_CASE_VERIFY | KILN_CASE_EXACT);
}

static void references_agree_in_the_algebraic_domain(void **state) {
  (void)state;
  run_files(KILN_CASE_ALGEBRAIC);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(references_are_verified),
                                     cmocka_unit_test(references_agree_in_the_algebraic_domain)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
