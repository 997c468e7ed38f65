/* How long skeletons take: every kernel of kernels_ref as it is by default, and every text written
 * by hand. The shortest of several runs counts, in CPU time. The bar is 10 ms (a tuner checks each
 * candidate so); what is asserted leaves room for a slow machine. In short every third case;
 * KILN_LONG=1: all. */
#include "api/api.h"
#include "help_api.h"
#include "help_hopper.h"

#include <cmocka.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MOST_MS 600.0
#elif defined(NDEBUG)
#define MOST_MS 40.0
#else
#define MOST_MS 100.0 /* -O1 with asserts, perhaps counted for coverage */
#endif
enum { RUNS = 5, MORE_RUNS = 100 /* of what seems slow */, MAX_ARGS = 24 };

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

struct times {
  double worst;
  char name[100]; /* of the slowest */
  uint32_t n;
};

static void measure(const char *name, const struct ir_module *m, const struct interp_arg *args,
                    uint32_t n, struct times *times) {
  struct diag_sink diags;
  double best = 1e9;
  assert_true(diag_init(&diags, &mem_libc));
  for (int k = 0; k < RUNS || (best > MOST_MS && k < MORE_RUNS); k++) {
    struct emu_options opt = {.mode = EMU_LATE, .seed = 1, .skeleton = true};
    double start = now_ms();
    if (!emu_run(m, args, n, &opt, NULL, &diags, &mem_libc))
      fail_msg("%s: %s", name, diags.list.at[0].message);
    double ms = now_ms() - start;
    best = ms < best ? ms : best;
  }
  diag_free(&diags);
  print_message("%5.1f ms  %s\n", best, name);
  times->n++;
  if (best > times->worst) {
    times->worst = best;
    snprintf(times->name, sizeof times->name, "%s", name);
  }
}

static void finish(const struct times *times) {
  print_message("%u modules; the slowest: %s, %.1f ms\n", times->n, times->name, times->worst);
  if (times->worst > MOST_MS)
    fail_msg("the skeleton of %s takes %.1f ms", times->name, times->worst);
}

/* ---- references ---- */

/* Every tensor as the case has it, without data. */
static void bind(const struct api_problem *p, struct interp_arg *args) {
  memset(args, 0, MAX_ARGS * sizeof *args);
  assert_true(p->n_args <= MAX_ARGS);
  for (uint32_t k = 0; k < p->n_args; k++) {
    const struct api_arg *arg = &p->args[k];
    if (arg->absent)
      continue;
    args[k].f = arg->number;
    args[k].i = api_scalar_int(arg->dtype, arg->number);
    if (arg->kind == IR_ARG_SCALAR)
      continue;
    args[k].tensor.dtype = arg->dtype;
    args[k].tensor.rank = arg->rank;
    memcpy(args[k].tensor.dim, arg->dim, sizeof args[k].tensor.dim);
    memcpy(args[k].tensor.stride, arg->stride, sizeof args[k].tensor.stride);
  }
}

/* False: the file has no such case. */
static void measure_case(struct help_api *t, struct kiln_file *file, const char *kernel,
                         int32_t index, struct times *times) {
  struct kiln_request req = help_api_request();
  struct kiln_variant *v = NULL;
  struct interp_arg args[MAX_ARGS];
  struct api_problem p;
  struct arena a;
  struct oom_trap trap;
  char name[100];
  req.kernel = kernel;
  req.case_index = index;
  arena_init(&a, &mem_libc, &trap);
  help_api_expect(t, kiln_specialise(file, &req, &v), KILN_OK, NULL);
  help_api_expect(t, api_lower(v), KILN_OK, NULL);
  assert_true(api_resolve(file, &req, true, &a, &p));
  bind(&p, args);
  snprintf(name, sizeof name, "%s, case %d", kernel, (int)index);
  measure(name, v->machine, args, p.n_args, times);
  kiln_variant_free(v);
  arena_free(&a);
}

static void references(void **state) {
  (void)state;
  bool all = getenv("KILN_LONG") != NULL;
  glob_t files;
  struct times times = {0};
  assert_int_equal(glob(KILN_SRC_DIR "/kernels_ref/*.lua", 0, NULL, &files), 0);
  for (size_t f = 0; f < files.gl_pathc; f++) {
    struct help_api t = {0};
    struct kiln_file *file = NULL;
    help_api_start(&t, NULL);
    help_api_expect(&t, kiln_file_load(t.ctx, files.gl_pathv[f], NULL, &file), KILN_OK, NULL);
    for (uint32_t k = 0; k < kiln_file_kernel_count(file); k++) {
      const char *kernel = kiln_file_kernel_name(file, k);
      for (uint32_t i = all ? 0 : k % 3; i < kiln_file_case_count(file, kernel); i += all ? 1 : 3)
        measure_case(&t, file, kernel, (int32_t)i, &times);
    }
    kiln_file_free(file);
    help_api_stop(&t);
  }
  globfree(&files);
  assert_true(times.n > 50);
  finish(&times);
}

/* ---- written by hand ---- */

static void hand_written(void **state) {
  (void)state;
  static const struct hopper_case cases[] = {
      {.name = "gemm_128x256", .m = 512, .n = 512, .k = 2048},
      {.name = "gemm_split2", .m = 256, .n = 256, .k = 2048},
      {.name = "attention_full", .bh = 3, .s = 512},
      {.name = "attention_causal", .bh = 3, .s = 512, .causal = true},
      {.name = "multicast_sum", .rows = 256},
      {.name = "role_pipe", .rows = 64, .role = true},
  };
  struct times times = {0};
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    struct hopper_run r;
    hopper_begin(&r);
    if (!hopper_parse(&r, hopper_text(&r.mem.arena, cases[k].name)))
      fail_msg("%s", hopper_messages(&r));
    hopper_bind(&r, &cases[k]);
    for (uint32_t i = 0; i < r.n; i++)
      r.args[i].tensor.data = NULL;
    measure(cases[k].name, r.m, r.args, r.n, &times);
    hopper_end(&r);
  }
  finish(&times);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(references), cmocka_unit_test(hand_written)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
