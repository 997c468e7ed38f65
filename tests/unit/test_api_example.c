/* The program of docs/api.md: it is docs/example.c to the letter, it compiles without a warning,
 * runs, and prints what the page says. kiln.h is plain C99 and C++. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

int example_main(void);
#define main example_main
#include "docs/example.c"
#undef main

static char *read_file(const char *name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", KILN_SRC_DIR, name);
  FILE *f = fopen(path, "rb");
  if (!f)
    fail_msg("cannot read %s", path);
  char *text = calloc(1, 1 << 18);
  assert_non_null(text);
  assert_true(fread(text, 1, (1 << 18) - 1, f) > 0);
  fclose(f);
  return text;
}

static void test_page_has_the_program(void **state) {
  (void)state;
  char *page = read_file("docs/api.md"), *program = read_file("docs/example.c");
  const char *at = strstr(page, "```c\n");
  assert_non_null(at);
  size_t n = strlen(program);
  if (strncmp(at + 5, program, n) != 0 || strncmp(at + 5 + n, "```\n", 4) != 0)
    fail_msg("docs/api.md and docs/example.c differ");
  free(page);
  free(program);
}

static void test_program(void **state) {
  (void)state;
  char said[1024] = "", block[1200];
  FILE *out = tmpfile();
  assert_non_null(out);
  fflush(stdout);
  int former = dup(1);
  assert_true(former >= 0 && dup2(fileno(out), 1) == 1);
  int rc = example_main();
  fflush(stdout);
  assert_int_equal(dup2(former, 1), 1);
  close(former);
  rewind(out);
  assert_true(fread(said, 1, sizeof said - 1, out) > 0);
  fclose(out);
  assert_int_equal(rc, 0);
  snprintf(block, sizeof block, "```\n%s```\n", said);
  char *page = read_file("docs/api.md");
  if (!strstr(page, block))
    fail_msg("docs/api.md does not show what the program prints: %s", said);
  free(page);
}

static void test_header(void **state) {
  (void)state;
  static const char *const languages[][2] = {{"cc", "-x c -std=c99"}, {"c++", "-x c++ -std=c++11"}};
  for (int i = 0; i < 2; i++) {
    char command[4400];
    snprintf(command, sizeof command, "command -v %s >/dev/null", languages[i][0]);
    if (system(command) != 0) {
      print_message("SKIP: kiln.h is not tried as %s: no compiler\n", languages[i][1]);
      continue;
    }
    snprintf(command, sizeof command, "%s %s -pedantic -Wall -Wextra -Werror -fsyntax-only '%s/%s'",
             languages[i][0], languages[i][1], KILN_SRC_DIR, "include/kiln.h");
    assert_int_equal(system(command), 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_page_has_the_program),
      cmocka_unit_test(test_program),
      cmocka_unit_test(test_header),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
