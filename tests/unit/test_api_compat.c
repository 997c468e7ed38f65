/* What programs, files and other builds rely on: texts of earlier versions are read, the layout of
 * kiln.h's structs is what KILN_ABI stands for. */
#include "help_api.h"

#include "base/recipe.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#if KILN_ABI != 1
#error "pin the layout of this KILN_ABI as tests/data/compat/abi_1.def does"
#endif

static void test_layout(void **state) {
  (void)state;
#if defined(__x86_64__) && defined(__LP64__)
  int broken = 0;
#define CHECK(cond, ...) ((cond) ? (void)0 : (broken++, print_message(__VA_ARGS__)))
#define SIZE(s, n)                                                                                 \
  CHECK(sizeof(struct s) == (n), "struct %s has %zu bytes, had %d\n", #s, sizeof(struct s), n);
#define GROWS(s, n)                                                                                \
  CHECK(sizeof(struct s) >= (n), "struct %s has %zu bytes, had %d\n", #s, sizeof(struct s), n);
#define FIELD(s, f, at, n)                                                                         \
  CHECK(offsetof(struct s, f) == (at) && sizeof(((struct s *)NULL)->f) == (n),                     \
        "%s.%s is not where it was\n", #s, #f);
#define VALUE(e, n) CHECK((int)(e) == (n), "%s is %d, was %d\n", #e, (int)(e), n);
#include "tests/data/compat/abi_1.def"
  assert_int_equal(broken, 0);
#else
  print_message("SKIP: the layout is pinned for x86-64\n");
  skip();
#endif
}

static char *read_whole(const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f)
    fail_msg("cannot read %s", path);
  char *text = calloc(1, 1 << 20);
  assert_non_null(text);
  size_t n = fread(text, 1, (1 << 20) - 1, f);
  assert_true(n > 0 && n < (1 << 20) - 1);
  fclose(f);
  return text;
}

/* Calls fn for each file of tests/data/compat/<folder>; returns how many there were. */
static int each_file(const char *folder, const char *ending, void (*fn)(const char *path)) {
  char path[4096];
  int n = snprintf(path, sizeof path, "%s/tests/data/compat/%s", KILN_SRC_DIR, folder), files = 0;
  DIR *dir = opendir(path);
  if (!dir)
    fail_msg("no folder %s", path);
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    size_t len = strlen(e->d_name), end = strlen(ending);
    if (len <= end || strcmp(e->d_name + len - end, ending) != 0)
      continue;
    snprintf(path + n, sizeof path - (size_t)n, "/%s", e->d_name);
    fn(path);
    files++;
  }
  closedir(dir);
  return files;
}

/* Shapes for the reference kernels: what their facts allow. */
static void run_kernel(struct help_api *t, struct kiln_file *file) {
  static const char *const shapes[][3] = {{"M=64", "N=128", "K=96"},
                                          {"M=65", "N=127", "K=33"},
                                          {"M=5", "N=1000", NULL},
                                          {"M=16", "N=512", NULL}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    struct kiln_request r = help_api_request();
    r.shapes = shapes[i];
    r.n_shapes = shapes[i][2] ? 3 : 2;
    const struct kiln_report *report;
    if (kiln_run_case(file, &r, KILN_ON_INTERP, KILN_CASE_VERIFY, &report) == KILN_OK) {
      assert_int_equal(report->level, KILN_LEVEL_SELF_CHECKED);
      kiln_diag_clear(t->ctx);
      return;
    }
    kiln_diag_clear(t->ctx);
  }
  fail_msg("%s runs with no shape", kiln_file_kernel_name(file, 0));
}

static void read_ir(const char *path) {
  struct help_api t;
  struct kiln_file *file, *again;
  struct kiln_variant *v, *w;
  const char *text, *name = strrchr(path, '/') + 1;
  char *source = read_whole(path);
  print_message("%s\n", name);
  help_api_start(&t, NULL);
  file = help_api_load(&t, name, source);
  help_api_expect(&t, kiln_specialise(file, NULL, &v), KILN_OK, NULL);
  help_api_expect(&t, kiln_show(v, NULL, NULL, &text), KILN_OK, NULL);
  assert_memory_equal(text, source, strcspn(source, "\n") + 1);
  /* What is printed of it is read again, as the same. */
  again = help_api_load(&t, "again.tir", text);
  help_api_expect(&t, kiln_specialise(again, NULL, &w), KILN_OK, NULL);
  char *first = strdup(text);
  help_api_expect(&t, kiln_show(w, NULL, NULL, &text), KILN_OK, NULL);
  assert_string_equal(text, first);
  free(first);
  bool kernel = strncmp(name, "rule_", 5) != 0 && strncmp(name, "module_", 7) != 0;
  if (kernel && strstr(name, "_machine"))
    help_api_expect(&t, kiln_show(v, "cuda", NULL, &text), KILN_OK, NULL);
  else if (kernel)
    run_kernel(&t, file);
  kiln_variant_free(w);
  kiln_variant_free(v);
  kiln_file_free(again);
  kiln_file_free(file);
  help_api_stop(&t);
  free(source);
}

static void test_ir(void **state) {
  (void)state;
  assert_true(each_file("ir-1", ".tir", read_ir) >= 60);
}

static void read_recipe(const char *path) {
  char *source = read_whole(path);
  struct diag_sink diags;
  struct arena a;
  struct oom_trap trap = {.raise = NULL};
  print_message("%s\n", strrchr(path, '/') + 1);
  assert_true(diag_init(&diags, &mem_libc));
  arena_init(&a, &mem_libc, &trap);
  struct recipe *r = recipe_parse(&a, symtab_new(&a), &diags, 0, source, strlen(source));
  if (!r)
    fail_msg("%s: %s", path, diags.list.at[0].message);
  struct strbuf text = {.arena = &a};
  recipe_print(r, &text);
  struct recipe *again = recipe_parse(&a, symtab_new(&a), &diags, 0, sb_str(&text), text.n);
  assert_non_null(again);
  struct strbuf same = {.arena = &a};
  recipe_print(again, &same);
  assert_string_equal(sb_str(&text), sb_str(&same));
  arena_free(&a);
  diag_free(&diags);
  free(source);
}

static void test_recipes(void **state) {
  (void)state;
  assert_true(each_file("recipe-1", ".txt", read_recipe) >= 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_layout),
      cmocka_unit_test(test_ir),
      cmocka_unit_test(test_recipes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
