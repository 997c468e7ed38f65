/* The public API: loading kernel files and IR texts, kernel roots, describing. */
#include "help_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[64]; /* a scratch folder */

static const char *path_of(const char *name) {
  static char path[2][256];
  static int which;
  which = !which;
  snprintf(path[which], sizeof path[which], "%s/%s", root, name);
  return path[which];
}

static void put(const char *name, const char *text) {
  FILE *f = fopen(path_of(name), "w");
  assert_non_null(f);
  assert_true(fputs(text, f) >= 0);
  assert_int_equal(fclose(f), 0);
}

static int make_root(void **state) {
  (void)state;
  snprintf(root, sizeof root, "/tmp/kiln-api-XXXXXX");
  if (!mkdtemp(root))
    return -1;
  mkdir(path_of("in"), 0777);
  mkdir(path_of("in/sub"), 0777);
  mkdir(path_of("out"), 0777);
  return 0;
}

static int remove_root(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", root);
  return system(command);
}

/* kernel(name): the text of a kernel whose body needs nothing. */
#define KERNEL(name)                                                                               \
  "kernel { name = '" name "', args = { out('Y', f32, 16) }, grid = function() return 1 end,\n"    \
  "  body = function(a) a.Y:store({0}, zeros(f32, 16)) end }"

static void test_kernels_of_a_file(void **state) {
  (void)state;
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(
      &t, "k.lua",
      "return { zeta = " KERNEL("x") ", Alpha = " KERNEL("y") ", beta = " KERNEL("z") " }\n");
  static const char *const names[] = {"Alpha", "beta", "zeta", ""};
  assert_int_equal(kiln_file_kernel_count(file), 3);
  for (uint32_t i = 0; i < 4; i++)
    assert_string_equal(kiln_file_kernel_name(file, i), names[i]);
  assert_int_equal(kiln_file_case_count(file, "beta"), 0);
  assert_int_equal(kiln_file_case_count(file, NULL), 0); /* which one? */
  struct kiln_variant *v;
  help_api_expect(&t, kiln_specialise(file, NULL, &v), KILN_INVALID, "Alpha, beta, zeta");
  struct kiln_request r = help_api_request();
  r.kernel = "betta";
  help_api_expect(&t, kiln_specialise(file, &r, &v), KILN_INVALID, "`betta`.*`?beta`?");
  r.kernel = "beta";
  v = help_api_specialise(file, &r);
  assert_string_equal(kiln_variant_kernel(v), "beta");
  kiln_variant_free(v);
  kiln_variant_free(NULL);
  kiln_file_free(file);
  kiln_file_free(NULL);
  file = help_api_load(&t, "k.lua", help_api_axpy);
  assert_int_equal(kiln_file_case_count(file, "axpy"), 2);
  assert_int_equal(kiln_file_case_count(file, NULL), 2);
  assert_int_equal(kiln_file_case_count(file, "nope"), 0);
  kiln_file_free(file);
  help_api_stop(&t);
}

static void test_files(void **state) {
  (void)state;
  struct help_api t;
  struct kiln_file *file;
  help_api_start(&t, NULL);
  put("in/k.lua", "return " KERNEL("k") "\n");
  help_api_expect(&t, kiln_file_load(t.ctx, path_of("in/k.lua"), NULL, &file), KILN_OK, NULL);
  assert_string_equal(kiln_file_kernel_name(file, 0), "k");
  kiln_file_free(file);
  help_api_expect(&t, kiln_file_load(t.ctx, path_of("none.lua"), NULL, &file), KILN_FAILED,
                  "cannot read .*/none.lua: No such file");
  assert_null(file);
  help_api_expect(&t, kiln_file_load(t.ctx, root, NULL, &file), KILN_FAILED, "not a regular file");
  help_api_expect(&t, kiln_file_load(t.ctx, "/dev/zero", NULL, &file), KILN_FAILED,
                  "not a regular file");
  put("big.lua", "");
  assert_int_equal(truncate(path_of("big.lua"), (off_t)65 << 20), 0);
  help_api_expect(&t, kiln_file_load(t.ctx, path_of("big.lua"), NULL, &file), KILN_FAILED,
                  "larger than 64 MiB");
  put("empty.lua", "");
  help_api_expect(&t, kiln_file_load(t.ctx, path_of("empty.lua"), NULL, &file), KILN_INVALID,
                  "empty.lua:1:1: error: a kernel file returns");
  /* A program text needs no end of line, and may hold NUL bytes where Lua takes them. */
  static const char nul[] = "local s = 'a\0b' assert(#s == 3) return " KERNEL("k");
  help_api_expect(&t, kiln_file_load_text(t.ctx, "n.lua", nul, sizeof nul - 1, NULL, &file),
                  KILN_OK, NULL);
  kiln_file_free(file);
  help_api_stop(&t);
}

static void test_require(void **state) {
  (void)state;
  struct help_api t;
  struct kiln_file *file;
  help_api_start(&t, NULL);
  put("in/lib.lua", "return { name = 'from_lib' }\n");
  put("in/sub/deep.lua", "return require('lib')\n");
  put("in/bad.lua", "return )\n");
  put("in/use.lua",
      "local m = require('sub.deep')\nassert(m.name == 'from_lib')\nreturn " KERNEL("k") "\n");
  put("out/secret.lua", "return 42\n");
  /* The root is the file's own folder, or the one given. */
  help_api_expect(&t, kiln_file_load(t.ctx, path_of("in/use.lua"), NULL, &file), KILN_OK, NULL);
  kiln_file_free(file);
  help_api_expect(&t, kiln_file_load(t.ctx, path_of("in/use.lua"), path_of("out"), &file),
                  KILN_INVALID, "sub.deep");
  put("use.lua", "require('lib') return " KERNEL("k") "\n");
  help_api_expect(&t, kiln_file_load(t.ctx, path_of("use.lua"), path_of("in"), &file), KILN_OK,
                  NULL);
  kiln_file_free(file);
  help_api_expect(&t, kiln_file_load(t.ctx, path_of("use.lua"), path_of("nowhere"), &file),
                  KILN_INVALID, "lib");
  static const struct {
    const char *text, *says;
  } wrong[] = {
      {"require('nothing')", "t.lua:1:.*nothing"},
      {"require('bad')", "bad.lua:1:8: error"},
      {"require('../out/secret')", "t.lua:1:"},
      {"require('/etc/passwd')", "t.lua:1:"},
      {"require('sub.link')", "symbolic link that leaves the kernel root"},
      {"require('linked.secret')", "symbolic link that leaves the kernel root"},
      {"require('sub')", "t.lua:1:"},
  };
  assert_int_equal(symlink(path_of("out/secret.lua"), path_of("in/sub/link.lua")), 0);
  assert_int_equal(symlink("../out", path_of("in/linked")), 0);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    help_api_expect(&t,
                    kiln_file_load_text(t.ctx, "t.lua", wrong[i].text, strlen(wrong[i].text),
                                        path_of("in"), &file),
                    KILN_INVALID, wrong[i].says);
  /* A link that stays inside is fine; so is a root that is itself a link. */
  assert_int_equal(symlink("lib.lua", path_of("in/same.lua")), 0);
  assert_int_equal(symlink("in", path_of("alias")), 0);
  const char *text = "require('same') return " KERNEL("k");
  help_api_expect(&t,
                  kiln_file_load_text(t.ctx, "t.lua", text, strlen(text), path_of("alias"), &file),
                  KILN_OK, NULL);
  kiln_file_free(file);
  /* A folder whose name the root's begins with is another folder. */
  mkdir(path_of("inner"), 0777);
  put("inner/secret.lua", "return 42\n");
  assert_int_equal(symlink("../../inner/secret.lua", path_of("in/sub/near.lua")), 0);
  text = "require('sub.near')";
  help_api_expect(&t, kiln_file_load_text(t.ctx, "t.lua", text, strlen(text), path_of("in"), &file),
                  KILN_INVALID, "symbolic link that leaves the kernel root");
  /* Text from memory has no root unless one is given. */
  help_api_expect(&t, help_api_try_load(&t, "t.lua", "require('lib')", &file), KILN_INVALID,
                  "t.lua:1:.*lib");
  help_api_stop(&t);
}

static void test_ir_texts(void **state) {
  (void)state;
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "k.lua", help_api_axpy), *ir;
  struct kiln_variant *v = help_api_specialise(file, NULL), *again;
  const char *text, *same;
  assert_int_equal(kiln_show(v, "tile", NULL, &text), KILN_OK);
  put("k.tir", text);
  help_api_expect(&t, kiln_file_load(t.ctx, path_of("k.tir"), NULL, &ir), KILN_OK, NULL);
  assert_int_equal(kiln_file_kernel_count(ir), 1);
  assert_string_equal(kiln_file_kernel_name(ir, 0), "axpy");
  assert_string_equal(kiln_file_kernel_name(ir, 1), "");
  assert_int_equal(kiln_file_case_count(ir, "axpy"), 0);
  again = help_api_specialise(ir, NULL);
  assert_int_equal(kiln_show(again, "tile", NULL, &same), KILN_OK);
  assert_string_equal(same, text);
  kiln_variant_free(again);
  struct kiln_request r = help_api_request();
  r.kernel = "other";
  help_api_expect(&t, kiln_specialise(ir, &r, &again), KILN_INVALID, "`axpy`, not `other`");
  kiln_file_free(ir);
  /* By its first line, too, whatever the name. */
  ir = help_api_load(&t, "memory", text);
  assert_string_equal(kiln_file_kernel_name(ir, 0), "axpy");
  kiln_file_free(ir);
  help_api_expect(&t, help_api_try_load(&t, "x.tir", "return 1\n", &ir), KILN_INVALID,
                  "x.tir:1:.*K0601");
  help_api_expect(&t, help_api_try_load(&t, "x.tir", "", &ir), KILN_INVALID, "x.tir.*K0601");
  help_api_expect(&t, help_api_try_load(&t, "x.tir", "kiln-ir 2 tile\n", &ir), KILN_INVALID,
                  "x.tir:1:.*");
  assert_null(ir);
  kiln_variant_free(v);
  kiln_file_free(file);
  help_api_stop(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_kernels_of_a_file),
      cmocka_unit_test(test_files),
      cmocka_unit_test(test_require),
      cmocka_unit_test(test_ir_texts),
  };
  return cmocka_run_group_tests(tests, make_root, remove_root);
}
