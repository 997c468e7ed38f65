/* Memory that runs out at each allocation in turn, once and from then on, while a text is read,
 * verified, optimised in every debug mode, printed, copied and compared: every call comes back
 * through arena_guard and nothing is left allocated. */
#include "help_gen_ir.h"
#include "help_rt.h"

#include <string.h>

#ifdef KILN_STRESS /* thousands of allocations even for little work */
#define N_OPS   10
#define N_LINES 30
#else
#define N_OPS   300
#define N_LINES 3000
#endif

struct work {
  struct arena arena;
  struct oom_trap trap;
  struct diag_sink diags;
  const char *text;
  size_t n;
  const char *debug;
  bool valid; /* whether the text is */
  bool done;
};

static void ignore(void *user, const char *text) {
  (void)user;
  (void)text;
}

static void do_all(void *user) {
  struct work *w = user;
  struct ir_module *m = ir_parse(&w->arena, &w->diags, 0, w->text, w->n);
  w->done = m == NULL && !w->valid;
  if (!m)
    return;
  uint32_t n;
  const struct ir_pass *passes = ir_tile_pipeline(&n);
  struct ir_run_options opt = {.debug = w->debug, .dump = ignore};
  if (!ir_verify(m, &w->diags) || !ir_run_passes(m, passes, n, &w->diags, &opt)) {
    w->done = !w->valid;
    return;
  }
  struct strbuf out = {.arena = &w->arena}, why = {.arena = &w->arena};
  ir_print(m, (struct ir_print_options){.names = true, .locs = true}, &out);
  struct ir_module *copy = ir_clone(m, &w->arena);
  assert_true(ir_equal(m, copy, &why));
  w->done = true;
}

static bool body(struct help_mem *mem, void *user) {
  struct work *w = user;
  w->done = false;
  if (!diag_init(&w->diags, &mem->alloc)) {
    diag_free(&w->diags);
    return false;
  }
  w->diags.max_errors = UINT32_MAX; /* so that only memory makes it drop any */
  arena_init(&w->arena, &mem->alloc, &w->trap);
  bool had_memory = arena_guard(&w->arena, do_all, w);
  arena_free(&w->arena);
  uint32_t dropped = w->diags.n_dropped;
  diag_free(&w->diags);
  /* A diagnostic that could not be kept does not stop the work. */
  assert_true(!had_memory || w->done || dropped);
  return had_memory && w->done && !dropped;
}

static const char *text_of(struct help_arena *h, struct ir_module *m, size_t *n) {
  struct strbuf out = {.arena = &h->arena};
  ir_print(m, (struct ir_print_options){.names = true}, &out);
  *n = out.n;
  return sb_str(&out);
}

static void run_case(struct work *w) {
  uint64_t once = help_oom_loop(body, w, false), sticky = help_oom_loop(body, w, true);
  printf("%llu and %llu allocations\n", (unsigned long long)once, (unsigned long long)sticky);
  assert_true(once > 5 && sticky > 5);
}

static void test_valid(void **state) {
  (void)state;
  static const char *const debug[] = {NULL, "roundtrip,clone,timing,print:after=all"};
  for (int i = 0; i < 2; i++) {
    struct help_arena h;
    help_arena_init(&h);
    struct gen_ir g = {.seed = 7, .n_ops = N_OPS, .max_depth = 4};
    struct work w = {.debug = debug[i], .valid = true};
    w.text = text_of(&h, gen_ir(&h.arena, &g), &w.n);
    run_case(&w);
    arena_free(&h.arena);
  }
}

/* Thousands of errors: from the reader, and from the verifier. */
static void test_invalid(void **state) {
  (void)state;
  for (int kind = 0; kind < 2; kind++) {
    struct help_arena h;
    help_arena_init(&h);
    struct strbuf s = {.arena = &h.arena};
    sb_puts(&s, "kiln-ir 1 tile\nkernel k {\n  grid 1\n  body(%0: index) {\n");
    for (int i = 0; i < N_LINES; i++)
      sb_puts(&s, kind ? "    print %0, %nothing\n" : "    assert %0\n");
    sb_puts(&s, "    return\n  }\n}\n");
    struct work w = {.text = sb_str(&s), .n = s.n};
    run_case(&w);
    arena_free(&h.arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_valid), cmocka_unit_test(test_invalid)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
