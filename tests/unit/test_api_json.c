/* The public API's JSON, read by a JSON parser: diagnostics, descriptions, reports, doctor. */
#ifdef KILN_HAVE_CJSON
#include "help_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

static cJSON *parse(const char *text) {
  cJSON *o = cJSON_Parse(text);
  if (!o)
    fail_msg("not JSON: %s", text);
  return o;
}

static const cJSON *get(const cJSON *o, const char *key) {
  const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
  if (!v)
    fail_msg("no \"%s\"", key);
  return v;
}

static const char *string_of(const cJSON *o, const char *key) {
  const char *s = cJSON_GetStringValue(get(o, key));
  if (!s)
    fail_msg("\"%s\" is no string", key);
  return s;
}

static double number_of(const cJSON *o, const char *key) {
  if (!cJSON_IsNumber(get(o, key)))
    fail_msg("\"%s\" is no number", key);
  return cJSON_GetNumberValue(get(o, key));
}

static const cJSON *item(const cJSON *o, const char *key, int i) {
  const cJSON *v = cJSON_GetArrayItem(get(o, key), i);
  if (!v)
    fail_msg("\"%s\" has no item %d", key, i);
  return v;
}

/* An array of strings and numbers, as "a,b,1". */
static const char *list_of(const cJSON *o, const char *key) {
  static char text[256];
  const cJSON *v;
  size_t n = 0;
  text[0] = 0;
  cJSON_ArrayForEach(v, get(o, key)) {
    const char *comma = n ? "," : "";
    if (cJSON_IsString(v))
      n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", comma, v->valuestring);
    else
      n += (size_t)snprintf(text + n, sizeof text - n, "%s%g", comma, v->valuedouble);
  }
  return text;
}

static void test_diagnostics(void **state) {
  (void)state;
  struct help_api t;
  struct kiln_file *file;
  help_api_start(&t, NULL);
  const char *text = "local function f(x)\n  return x + nil\nend\nf(\"a\\\"b\")\n";
  assert_int_equal(help_api_try_load(&t, "dir/a \"b\".lua", text, &file), KILN_INVALID);
  cJSON *d = parse(kiln_diag_json(t.ctx, 0));
  assert_string_equal(string_of(d, "severity"), "error");
  assert_string_equal(string_of(d, "id"), "K0201");
  assert_string_equal(string_of(d, "file"), "dir/a \"b\".lua");
  assert_int_equal((int)number_of(d, "line"), 2);
  assert_int_equal((int)number_of(d, "column"), 12);
  assert_non_null(strstr(kiln_diag_text(t.ctx, 0), string_of(d, "message")));
  assert_int_equal((int)number_of(item(d, "notes", 0), "line"), 4); /* the caller */
  cJSON_Delete(d);
  kiln_diag_clear(t.ctx);
  /* Bytes that are no UTF-8 do not make bad JSON. */
  assert_int_equal(help_api_try_load(&t, "k.lua", "local x = \"\xff\xfe\" .. nil", &file),
                   KILN_INVALID);
  for (uint32_t i = 0; i < kiln_diag_count(t.ctx); i++)
    cJSON_Delete(parse(kiln_diag_json(t.ctx, i)));
  help_api_stop(&t);
}

static void test_doctor(void **state) {
  (void)state;
  struct help_api t;
  const char *text;
  help_api_start(&t, NULL);
  help_api_expect(&t, kiln_doctor(t.ctx, true, &text), KILN_OK, NULL);
  cJSON *d = parse(text);
  assert_string_equal(string_of(d, "version"), kiln_version());
  static const char *const names[] = {"CUDA driver", "NVRTC", "cuBLAS", "cuBLASLt", "NVML"};
  assert_int_equal(cJSON_GetArraySize(get(d, "libraries")), 5);
  for (int i = 0; i < 5; i++) {
    const cJSON *lib = item(d, "libraries", i);
    assert_string_equal(string_of(lib, "name"), names[i]);
    bool found = cJSON_IsTrue(get(lib, "found"));
    assert_true(found == (string_of(lib, "path")[0] != 0));
    if (!found) /* what to do */
      assert_true(strlen(string_of(lib, "remark")) > 20);
  }
  assert_true(cJSON_IsArray(get(d, "gpus")));
  assert_true(strlen(string_of(d, "host_matmul")) > 0);
  cJSON_Delete(d);
  help_api_stop(&t);
}

static void test_description(void **state) {
  (void)state;
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "k.lua", help_api_axpy);
  cJSON *d = parse(kiln_file_describe(file, NULL));
  assert_string_equal(string_of(d, "kernel"), "axpy");
  static const struct {
    const char *name, *kind, *dtype, *dims;
    bool optional;
  } args[] = {{"X", "in", "T", "M,N", false},
              {"B", "in", "T", "N", true},
              {"alpha", "scalar", "f32", "", false},
              {"Y", "out", "T", "M,N", false}};
  assert_int_equal(cJSON_GetArraySize(get(d, "args")), 4);
  for (int i = 0; i < 4; i++) {
    const cJSON *a = item(d, "args", i);
    assert_string_equal(string_of(a, "name"), args[i].name);
    assert_string_equal(string_of(a, "kind"), args[i].kind);
    assert_string_equal(string_of(a, "dtype"), args[i].dtype);
    assert_string_equal(list_of(a, "dims"), args[i].dims);
    assert_true(cJSON_IsTrue(get(a, "optional")) == args[i].optional);
  }
  const cJSON *c = get(d, "const"), *tune = get(d, "tune");
  assert_string_equal(list_of(get(c, "T"), "values"), "f32,bf16,f16");
  assert_true(cJSON_IsFalse(get(get(c, "T"), "open")));
  assert_string_equal(list_of(get(tune, "BM"), "values"), "4,8,16");
  assert_string_equal(list_of(get(tune, "BN"), "values"), "16,32");
  assert_true(cJSON_IsTrue(get(d, "oracle")));
  assert_true(cJSON_IsFalse(get(d, "inputs")));
  assert_int_equal((int)number_of(d, "cases"), 2);
  cJSON_Delete(d);
  cJSON *by_name = parse(kiln_file_describe(file, "axpy")),
        *none = parse(kiln_file_describe(file, "x"));
  assert_string_equal(string_of(by_name, "kernel"), "axpy");
  assert_int_equal(cJSON_GetArraySize(none), 0);
  cJSON_Delete(by_name);
  cJSON_Delete(none);
  kiln_file_free(file);

  /* Values that JSON has no word for; dims that are expressions; open lists. */
  file = help_api_load(
      &t, "k.lua",
      "return kernel { name = 'k', const = { S = {1/0, -1/0, 0.5, 0/0}, N = {64, any},\n"
      "    F = {true, false}, W = {'a\"b'} },\n"
      "  args = { tensor('X', s8, 'N', 'K/128', 3), inout('Y', e4m3, 'K') },\n"
      "  grid = function(d, c) return 1 end, body = function(a, d, c, i) end }\n");
  d = parse(kiln_file_describe(file, NULL));
  c = get(d, "const");
  assert_string_equal(list_of(get(c, "S"), "values"), "inf,-inf,0.5,nan");
  assert_true(cJSON_IsTrue(get(get(c, "N"), "open")));
  assert_true(cJSON_IsTrue(item(get(c, "F"), "values", 0)));
  assert_string_equal(list_of(get(c, "W"), "values"), "a\"b");
  assert_string_equal(list_of(item(d, "args", 0), "dims"), "N,K/128,3");
  assert_string_equal(string_of(item(d, "args", 1), "kind"), "inout");
  cJSON_Delete(d);
  kiln_file_free(file);
  help_api_stop(&t);
}

static void test_description_of_ir(void **state) {
  (void)state;
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "k.lua", help_api_axpy), *ir;
  const char *absent[] = {"B"}, *text;
  struct kiln_request r = help_api_request();
  r.absent = absent;
  r.n_absent = 1;
  struct kiln_variant *v = help_api_specialise(file, &r);
  assert_int_equal(kiln_show(v, "tile", NULL, &text), KILN_OK);
  ir = help_api_load(&t, "k.tir", text);
  cJSON *d = parse(kiln_file_describe(ir, "axpy")), *none = parse(kiln_file_describe(ir, "x"));
  assert_int_equal(cJSON_GetArraySize(none), 0);
  assert_string_equal(string_of(d, "kernel"), "axpy");
  assert_string_equal(string_of(item(d, "args", 0), "dtype"), "f32");
  assert_string_equal(list_of(item(d, "args", 0), "dims"), "M,N");
  assert_true(cJSON_IsTrue(get(item(d, "args", 1), "optional")));
  assert_int_equal((int)number_of(d, "cases"), 0);
  cJSON_Delete(d);
  cJSON_Delete(none);
  kiln_variant_free(v);
  kiln_file_free(ir);
  kiln_file_free(file);
  help_api_stop(&t);
}

static void test_report(void **state) {
  (void)state;
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "k.lua", help_api_axpy);
  const struct kiln_report *r;
  help_api_expect(&t,
                  kiln_run_case(file, NULL, KILN_ON_INTERP, KILN_CASE_VERIFY | KILN_CASE_EXACT, &r),
                  KILN_OK, NULL);
  cJSON *d = parse(r->json);
  assert_string_equal(string_of(d, "kernel"), "axpy");
  assert_string_equal(string_of(d, "level"), "verified");
  assert_string_equal(string_of(d, "device"), "interpreter");
  assert_string_equal(string_of(d, "reference"), r->reference);
  assert_int_equal((int)number_of(get(d, "shape"), "M"), 5);
  assert_int_equal((int)number_of(get(d, "shape"), "N"), 33);
  assert_true(cJSON_IsTrue(get(d, "exact")));
  const cJSON *y = item(d, "outputs", 0);
  assert_string_equal(string_of(y, "name"), "Y");
  assert_true(number_of(y, "max_error") == r->outputs[0].max_error);
  assert_true(number_of(d, "bytes") == 4 * (2 * 5 * 33 + 33));
  cJSON_Delete(d);
  kiln_file_free(file);
  /* A wrong result with infinities and NaN is still JSON. */
  file = help_api_load(
      &t, "k.lua",
      "return kernel { name = 'k', args = { tensor('X', f32, 'N'), out('Y', f32, 'N') },\n"
      "  grid = function(d) return 1 end,\n"
      "  body = function(a) a.Y:store({0}, a.X:tile({0}, {16}) / 0) end,\n"
      "  oracle = function(t) return t.X end, cases = {{shape = {N = 16}}} }\n");
  help_api_expect(&t, kiln_run_case(file, NULL, KILN_ON_INTERP, KILN_CASE_VERIFY, &r), KILN_WRONG,
                  "`Y` of kernel `k` is wrong: NaN or infinity in the wrong place at \\[0\\]");
  d = parse(r->json);
  assert_string_equal(string_of(d, "level"), "wrong");
  assert_string_equal(list_of(item(d, "outputs", 0), "worst"), "0");
  assert_true(strstr(string_of(item(d, "outputs", 0), "worst_out"), "inf") != NULL);
  cJSON_Delete(d);
  kiln_file_free(file);
  help_api_stop(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_diagnostics), cmocka_unit_test(test_doctor),
      cmocka_unit_test(test_description), cmocka_unit_test(test_description_of_ir),
      cmocka_unit_test(test_report),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

#else
#include <stdio.h>

int main(void) {
  printf("SKIP: the API's JSON is not read back without cJSON (libcjson-dev)\n");
  return 77;
}
#endif
