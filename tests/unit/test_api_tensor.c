/* The public API: interpreting on the caller's tensors, laid out as DLPack has them. */
#include "help_api.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { INT = 0, UINT = 1, FLOAT = 2, BFLOAT = 4, BOOL = 6, E4M3 = 10, E5M2 = 12 };

/* A tensor and its shape and strides. */
struct view {
  struct kiln_tensor t;
  int64_t shape[5], strides[5];
};

static struct view *dense(struct view *v, void *data, int code, int bits, int rank, int64_t m,
                          int64_t n) {
  *v = (struct view){.t = {.data = data,
                           .device_type = 1,
                           .ndim = rank,
                           .dtype_code = (uint8_t)code,
                           .dtype_bits = (uint8_t)bits,
                           .dtype_lanes = 1},
                     .shape = {m, n}};
  v->t.shape = v->shape;
  return v;
}

static struct view *f32(struct view *v, float *data, int64_t m, int64_t n) {
  return dense(v, data, FLOAT, 32, 2, m, n);
}

static struct view *strided(struct view *v, int64_t s0, int64_t s1) {
  v->strides[0] = s0;
  v->strides[1] = s1;
  v->t.strides = v->strides;
  return v;
}

/* `T` of the copy kernel below; what a 3 x 5 tensor of it looks like is up to the test. */
static const char copies[] =
    "return kernel { name = 'copy',\n"
    "  const = { T = {f32, f64, f16, bf16, e4m3, e5m2, s8, u8, s32, s64, bool} },\n"
    "  args = { tensor('X', 'T', 'M', 'N'), out('Y', 'T', 'M', 'N') },\n"
    "  grid = function(d) return cdiv(d.M, 2), cdiv(d.N, 4) end,\n"
    "  body = function(a, d, c, i, j)\n"
    "    a.Y:store({i * 2, j * 4}, a.X:tile({i * 2, j * 4}, {2, 4}))\n"
    "  end }\n";

static struct kiln_variant *copy_of(struct kiln_file *file, const char *t) {
  char text[16];
  const char *list[] = {text};
  snprintf(text, sizeof text, "T=%s", t);
  struct kiln_request r = help_api_request();
  r.n_consts = 1;
  r.consts = list;
  return help_api_specialise(file, &r);
}

static void test_dtypes(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int code, bits;
  } types[] = {{"f32", FLOAT, 32}, {"f64", FLOAT, 64}, {"f16", FLOAT, 16}, {"bf16", BFLOAT, 16},
               {"e4m3", E4M3, 8},  {"e5m2", E5M2, 8},  {"s8", INT, 8},     {"u8", UINT, 8},
               {"s32", INT, 32},   {"s64", INT, 64},   {"bool", BOOL, 8}};
  enum { N = sizeof types / sizeof *types };
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "copy.lua", copies);
  for (int i = 0; i < N; i++) {
    struct kiln_variant *v = copy_of(file, types[i].name);
    size_t size = (size_t)types[i].bits / 8, bytes = 15 * size;
    _Alignas(8) unsigned char x[15 * 8], y[15 * 8];
    for (size_t k = 0; k < sizeof x; k++) /* no NaN in any type; bools are 0 or 1 */
      x[k] = (unsigned char)(types[i].code == BOOL ? k & 1 : (k * 37 + 11) & 0x3b);
    memset(y, 0xee, sizeof y);
    struct view vx, vy;
    dense(&vx, x, types[i].code, types[i].bits, 2, 3, 5);
    dense(&vy, y, types[i].code, types[i].bits, 2, 3, 5);
    struct kiln_arg args[2] = {{.tensor = &vx.t}, {.tensor = &vy.t}};
    help_api_expect(&t, kiln_interpret(v, args, 2, false), KILN_OK, NULL);
    assert_memory_equal(x, y, bytes);
    assert_int_equal(y[bytes < sizeof y ? bytes : 0], bytes < sizeof y ? 0xee : x[0]);
    for (int k = 0; k < N; k++) { /* every other dtype is refused by name */
      char says[64];
      snprintf(says, sizeof says, "argument 'X': expected %s, found %s", types[i].name,
               types[k].name);
      vx.t.dtype_code = (uint8_t)types[k].code;
      vx.t.dtype_bits = (uint8_t)types[k].bits;
      if (k != i)
        help_api_expect(&t, kiln_interpret(v, args, 2, false), KILN_INVALID, says);
    }
    kiln_variant_free(v);
  }
  kiln_file_free(file);
  help_api_stop(&t);
}

/* Element (i, j) of X is 10 i + j, wherever it lies; Y must get the same. */
static void test_layouts(void **state) {
  (void)state;
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "copy.lua", copies);
  struct kiln_variant *v = copy_of(file, "f32");
  static const struct {
    int64_t origin, s0, s1; /* of X and Y alike, in a buffer of 64 */
  } layouts[] = {{0, 5, 1},  {0, 1, 3},     {7, 5, 1},    {3, 20, 4}, {40, -20, 1},
                 {4, 5, -1}, {63, -29, -1}, {14, -1, -3}, {1, 2, 11}, {0, 5, 1}};
  for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++) {
    float x[64], y[64];
    struct view vx, vy;
    for (int k = 0; k < 64; k++)
      x[k] = -1, y[k] = -2;
    for (int64_t i = 0; i < 3; i++)
      for (int64_t j = 0; j < 5; j++)
        x[layouts[l].origin + i * layouts[l].s0 + j * layouts[l].s1] = (float)(10 * i + j);
    strided(f32(&vx, x, 3, 5), layouts[l].s0, layouts[l].s1);
    strided(f32(&vy, y, 3, 5), layouts[l].s0, layouts[l].s1);
    vx.t.byte_offset = vy.t.byte_offset = (uint64_t)layouts[l].origin * sizeof(float);
    struct kiln_arg args[2] = {{.tensor = &vx.t}, {.tensor = &vy.t}};
    help_api_expect(&t, kiln_interpret(v, args, 2, false), KILN_OK, NULL);
    for (int k = 0; k < 64; k++)
      assert_true(y[k] == (x[k] == -1 ? -2 : x[k])); /* and nothing else was written */
  }
  /* Stride 0 spreads a row or a single element; a dim of 1 may have any stride. */
  float row[5] = {1, 2, 3, 4, 5}, y[15];
  struct view vx, vy;
  struct kiln_arg args[2] = {{.tensor = &vx.t}, {.tensor = &vy.t}};
  strided(f32(&vx, row, 3, 5), 0, 1);
  f32(&vy, y, 3, 5);
  help_api_expect(&t, kiln_interpret(v, args, 2, false), KILN_OK, NULL);
  for (int k = 0; k < 15; k++)
    assert_true(y[k] == row[k % 5]);
  strided(f32(&vx, row + 2, 3, 5), 0, 0);
  help_api_expect(&t, kiln_interpret(v, args, 2, false), KILN_OK, NULL);
  for (int k = 0; k < 15; k++)
    assert_true(y[k] == 3);
  strided(f32(&vx, row, 1, 5), INT64_MAX, 1);
  f32(&vy, y, 1, 5);
  help_api_expect(&t, kiln_interpret(v, args, 2, false), KILN_OK, NULL);
  assert_memory_equal(row, y, sizeof row);
  /* Empty tensors need no memory, and none is touched. */
  f32(&vx, NULL, 0, 5);
  f32(&vy, NULL, 0, 5);
  help_api_expect(&t, kiln_interpret(v, args, 2, false), KILN_OK, NULL);
  f32(&vx, NULL, 3, 0);
  f32(&vy, y, 3, 0);
  help_api_expect(&t, kiln_interpret(v, args, 2, false), KILN_OK, NULL);
  kiln_variant_free(v);
  kiln_file_free(file);
  help_api_stop(&t);
}

static void test_axpy(void **state) {
  (void)state;
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "axpy.lua", help_api_axpy);
  const char *bf16[] = {"T=bf16"}, *absent[] = {"B"};
  struct kiln_request r = help_api_request();
  r.n_consts = 1;
  r.consts = bf16;
  struct kiln_variant *with = help_api_specialise(file, &r);
  r.n_absent = 1;
  r.absent = absent;
  struct kiln_variant *without = help_api_specialise(file, &r);
  uint16_t x[6] = {0x3f80, 0x4000, 0xc040, 0x0000, 0x7f80, 0x3f81}; /* 1, 2, -3, 0, inf, 1+2^-7 */
  uint16_t b[3] = {0x3f80, 0x3f00, 0x0000}, y[6];                   /* 1, 0.5, 0 */
  struct view vx, vb, vy;
  dense(&vx, x, BFLOAT, 16, 2, 2, 3);
  dense(&vb, b, BFLOAT, 16, 1, 3, 0);
  dense(&vy, y, BFLOAT, 16, 2, 2, 3);
  struct kiln_arg args[4] = {
      {.tensor = &vx.t}, {.tensor = &vb.t}, {.number = 2}, {.tensor = &vy.t}};
  help_api_expect(&t, kiln_interpret(with, args, 4, false), KILN_OK, NULL);
  const uint16_t sum[6] = {0x4040, 0x4090, 0xc0c0, 0x3f80, 0x7f80, 0x4001};
  assert_memory_equal(y, sum, sizeof sum); /* 3, 4.5, -6, 1, inf, 2+2^-6 */
  args[1].tensor = NULL;
  help_api_expect(&t, kiln_interpret(without, args, 4, false), KILN_OK, NULL);
  const uint16_t twice[6] = {0x4000, 0x4080, 0xc0c0, 0x0000, 0x7f80, 0x4001};
  assert_memory_equal(y, twice, sizeof twice);
  vb.t.data = NULL; /* the other way to leave it out */
  args[1].tensor = &vb.t;
  help_api_expect(&t, kiln_interpret(without, args, 4, false), KILN_OK, NULL);
  /* Left out though the variant has it, given though it has not. */
  help_api_expect(&t, kiln_interpret(with, args, 4, false), KILN_INVALID, "'B' is missing");
  args[1].tensor = NULL;
  help_api_expect(&t, kiln_interpret(with, args, 4, false), KILN_INVALID, "'B'");
  vb.t.data = b;
  args[1].tensor = &vb.t;
  help_api_expect(&t, kiln_interpret(without, args, 4, false), KILN_INVALID, "'B' is given");
  kiln_variant_free(with);
  kiln_variant_free(without);
  kiln_file_free(file);
  help_api_stop(&t);
}

/* Rounded once per op, or once at the end. */
static void test_domains(void **state) {
  (void)state;
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(
      &t, "cube.lua",
      "return kernel { name = 'cube', args = { tensor('X', bf16, 'N'), inout('Y', bf16, 'N') },\n"
      "  grid = function() return 1 end,\n"
      "  body = function(a) local x = a.X:tile({0}, {4})\n"
      "    a.Y:store({0}, x * x * x + a.Y:tile({0}, {4})) end }\n");
  struct kiln_variant *v = help_api_specialise(file, NULL);
  uint16_t x = 0x3fc1, y = 0; /* 1.5078125 */
  struct view vx, vy;
  dense(&vx, &x, BFLOAT, 16, 1, 1, 0);
  dense(&vy, &y, BFLOAT, 16, 1, 1, 0);
  struct kiln_arg args[2] = {{.tensor = &vx.t}, {.tensor = &vy.t}};
  help_api_expect(&t, kiln_interpret(v, args, 2, false), KILN_OK, NULL);
  assert_int_equal(y, 0x405c); /* 2.28125 * x = 3.4397 -> 3.4375 */
  y = 0;
  help_api_expect(&t, kiln_interpret(v, args, 2, true), KILN_OK, NULL);
  assert_int_equal(y, 0x405b); /* 3.4280 -> 3.421875 */
  /* Outputs in double are received unrounded. */
  double wide = 1;
  dense(&vy, &wide, FLOAT, 64, 1, 1, 0);
  help_api_expect(&t, kiln_interpret(v, args, 2, true), KILN_OK, NULL);
  assert_true(wide == 1.5078125 * 1.5078125 * 1.5078125 + 1);
  help_api_expect(&t, kiln_interpret(v, args, 2, false), KILN_INVALID, "expected bf16, found f64");
  kiln_variant_free(v);
  kiln_file_free(file);
  help_api_stop(&t);
}

static void test_wrong_tensors(void **state) {
  (void)state;
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "axpy.lua", help_api_axpy);
  struct kiln_variant *v = help_api_specialise(file, NULL);
  float x[15] = {0}, b[5] = {0}, y[16] = {0};
  struct view vx, vb, vy;
  struct kiln_arg args[4] = {
      {.tensor = &vx.t}, {.tensor = &vb.t}, {.number = 2}, {.tensor = &vy.t}};
  static const struct {
    const char *what, *says;
  } wrong[] = {
      {"nothing", NULL},
      {"rank", "'X': expected 2 dims, found 1"},
      {"no rank", "'X': expected 2 dims, found 0"},
      {"negative rank", "`X` has rank -1; at most 5"},
      {"rank 6", "`X` has rank 6; at most 5"},
      {"no shape", "`X` has rank 2 and no shape"},
      {"dim", "'B': dim 0: expected N = 5 as in dim 1 of 'X', found 4"},
      {"output dim", "'Y': dim 0: expected M = 3 as in dim 0 of 'X', found 2"},
      {"negative dim", "'X': dim 0 is negative \\(-3\\)"},
      {"huge dim", "'X': dim 0 of 4611686018427387904 .*too far"},
      {"huge stride", "'X': dim 0 of 3 with stride 4611686018427387904 reaches too far"},
      {"dtype", "'X': expected f32, found s32"},
      {"lanes", "`X`: DLPack type code 2 with 32 bits x 4 is unknown"},
      {"code", "`X`: DLPack type code 5 with 32 bits x 1 is unknown"},
      {"bits", "`X`: DLPack type code 2 with 8 bits x 1 is unknown"},
      {"device", "`Y` must lie in CPU memory \\(DLPack device type 1\\), found device type 2"},
      {"no device", "`Y` must lie in CPU memory .*found device type 0"},
      {"misaligned", "`Y`: its address is not a multiple of the element size 4"},
      {"no data", "'X' is missing"},
      {"no output", "'Y'"},
      {"three", "kernel `axpy` takes 4 arguments, got 3"},
      {"none", "kernel `axpy` takes 4 arguments, got 0"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const char *what = wrong[i].what;
    uint32_t n = 4;
    f32(&vx, x, 3, 5);
    dense(&vb, b, FLOAT, 32, 1, 5, 0);
    f32(&vy, y, 3, 5);
    args[3].tensor = &vy.t;
    if (strcmp(what, "rank") == 0)
      vx.t.ndim = 1;
    else if (strcmp(what, "no rank") == 0)
      vx.t.ndim = 0;
    else if (strcmp(what, "negative rank") == 0)
      vx.t.ndim = -1;
    else if (strcmp(what, "rank 6") == 0)
      vx.t.ndim = 6;
    else if (strcmp(what, "no shape") == 0)
      vx.t.shape = NULL;
    else if (strcmp(what, "dim") == 0)
      vb.shape[0] = 4;
    else if (strcmp(what, "output dim") == 0)
      vy.shape[0] = 2;
    else if (strcmp(what, "negative dim") == 0)
      vx.shape[0] = -3;
    else if (strcmp(what, "huge dim") == 0)
      vx.shape[0] = INT64_C(1) << 62;
    else if (strcmp(what, "huge stride") == 0)
      strided(&vx, INT64_C(1) << 62, 1);
    else if (strcmp(what, "dtype") == 0)
      vx.t.dtype_code = INT;
    else if (strcmp(what, "lanes") == 0)
      vx.t.dtype_lanes = 4;
    else if (strcmp(what, "code") == 0)
      vx.t.dtype_code = 5;
    else if (strcmp(what, "bits") == 0)
      vx.t.dtype_bits = 8;
    else if (strcmp(what, "device") == 0)
      vy.t.device_type = 2;
    else if (strcmp(what, "no device") == 0)
      vy.t.device_type = 0;
    else if (strcmp(what, "misaligned") == 0)
      vy.t.byte_offset = 2;
    else if (strcmp(what, "no data") == 0)
      vx.t.data = NULL;
    else if (strcmp(what, "no output") == 0)
      args[3].tensor = NULL;
    else if (strcmp(what, "three") == 0)
      n = 3;
    else if (strcmp(what, "none") == 0)
      n = 0;
    print_message("%s\n", what);
    help_api_expect(&t, kiln_interpret(v, args, n, false), wrong[i].says ? KILN_INVALID : KILN_OK,
                    wrong[i].says);
  }
  kiln_variant_free(v);
  kiln_file_free(file);
  help_api_stop(&t);
}

static void test_scalars(void **state) {
  (void)state;
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(
      &t, "s.lua",
      "return kernel { name = 's', const = { T = {s32, u8, s64, bool, f32, f16} },\n"
      "  args = { scalar('s', 'T'), out('Y', 'T', 'N') }, grid = function() return 1 end,\n"
      "  body = function(a, d, c) a.Y:store({0}, full(c.T, a.s, 1)) end }\n");
  static const struct {
    const char *type;
    double number, want; /* want NaN: refused */
    const char *says;
  } cases[] = {
      {"s32", -7, -7, NULL},
      {"s32", 2147483647, 2147483647, NULL},
      {"s32", 2147483648, NAN, "'s': 2147483648 does not fit into s32"},
      {"s32", 0.5, NAN, "`s`: expected a whole number that fits s32, found 0.5"},
      {"s32", NAN, NAN, "`s`: expected a whole number that fits s32, found -?nan"},
      {"s32", INFINITY, NAN, "`s`: .*found inf"},
      {"s64", 9007199254740992, 9007199254740992, NULL},
      {"s64", -0x1p63, -0x1p63, NULL},
      {"s64", 0x1p63, NAN, "`s`: expected a whole number that fits s64, found 9.22337e\\+18"},
      {"u8", 255, 255, NULL},
      {"u8", -1, NAN, "'s': -1 does not fit into u8"},
      {"bool", 1, 1, NULL},
      {"bool", 2, NAN, "'s': 2 does not fit into bool"},
      {"f32", 0.1, (double)0.1f, NULL},
      {"f32", -INFINITY, -INFINITY, NULL},
      {"f16", 1.0009765625, 1.0009765625, NULL},
      {"f16", 1e10, INFINITY, NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *type = cases[i].type;
    char text[16];
    const char *list[] = {text};
    snprintf(text, sizeof text, "T=%s", type);
    struct kiln_request r = help_api_request();
    r.n_consts = 1;
    r.consts = list;
    struct kiln_variant *v = help_api_specialise(file, &r);
    union {
      int32_t s32;
      uint8_t u8;
      int64_t s64;
      float f32;
      uint16_t f16;
    } y = {.s64 = 0};
    int bits = type[0] == 'b' ? 8 : atoi(type + 1);
    int code = type[0] == 'f' ? FLOAT : type[0] == 'u' ? UINT : type[0] == 'b' ? BOOL : INT;
    struct view vy;
    dense(&vy, &y, code, bits, 1, 1, 0);
    struct kiln_arg args[2] = {{.number = cases[i].number}, {.tensor = &vy.t}};
    help_api_expect(&t, kiln_interpret(v, args, 2, false), cases[i].says ? KILN_INVALID : KILN_OK,
                    cases[i].says);
    double got = bits == 8                   ? y.u8
                 : bits == 64                ? (double)y.s64
                 : bits == 32 && code == INT ? y.s32
                 : bits == 32                ? (double)y.f32
                 : y.f16 == 0x7c00           ? (double)INFINITY
                                             : 1 + (double)(y.f16 - 0x3c00) / 1024;
    if (!cases[i].says && got != cases[i].want)
      fail_msg("%s %g gave %g", type, cases[i].number, got);
    kiln_variant_free(v);
  }
  kiln_file_free(file);
  help_api_stop(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_dtypes),  cmocka_unit_test(test_layouts),
      cmocka_unit_test(test_axpy),    cmocka_unit_test(test_domains),
      cmocka_unit_test(test_scalars), cmocka_unit_test(test_wrong_tensors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
