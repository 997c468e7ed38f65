/* The public API towards a GPU, on a driver in host memory: launches on the caller's tensors, cases
 * between guard bands, times, and every failure of the driver and of memory on the way. No compiler
 * is needed, either: in the cubin's place runs a C function that takes the recipe's parameters. */
#include "help_api.h"
#include "help_fake.h"

#include "api/api.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char text[] =
    "return kernel { name = 'twice',\n"
    "  args = { tensor('X', f32, 'M', 'N'), scalar('s', f32), out('Y', f32, 'M', 'N') },\n"
    "  grid = function(d) return cdiv(d.M, 8), cdiv(d.N, 32) end,\n"
    "  body = function(a, d, c, i, j)\n"
    "    a.Y:store({i * 8, j * 32}, a.X:tile({i * 8, j * 32}, {8, 32}) * a.s)\n"
    "  end,\n"
    "  oracle = function(t) return t.X * t.s end,\n"
    "  cases = {{shape = {M = 5, N = 33}, scalar = {s = 2}}} }\n";

/* ---- a GPU that runs one kernel ---- */

/* Where the recipe has its parameters, and what the kernel does wrong. */
static struct { uint32_t n, x, y, s, m, cols, x_stride, y_stride; } at;
static enum manner { RIGHT, OFF_BY_ONE, LAZY, WILD_AFTER, WILD_BEFORE, WILD_PAD } manner;

static void twice(const uint64_t *cells, const CUlaunchConfig *config) {
  (void)config;
  const float *x = (const float *)(uintptr_t)cells[at.x];
  float *y = (float *)(uintptr_t)cells[at.y], s;
  int64_t m = (int64_t)cells[at.m], n = (int64_t)cells[at.cols];
  int64_t xs = (int64_t)cells[at.x_stride], ys = (int64_t)cells[at.y_stride];
  memcpy(&s, &cells[at.s], sizeof s);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++)
      if (manner != LAZY || i * n + j != 70)
        y[i * ys + j] =
            x[i * xs + j] * s + (manner == OFF_BY_ONE && i == 2 && j == 4 ? 1.0f : 0.0f);
  if (manner == WILD_AFTER)
    y[(m - 1) * ys + n] = 7;
  if (manner == WILD_BEFORE)
    y[-1] = 7;
  if (manner == WILD_PAD)
    y[n] = 7;
}

/* 165 everywhere: what the poison of integers is. */
static void poison(const uint64_t *cells, const CUlaunchConfig *config) {
  (void)config;
  uint8_t *y = (uint8_t *)(uintptr_t)cells[at.y];
  int64_t m = (int64_t)cells[at.m], n = (int64_t)cells[at.cols];
  for (int64_t i = 0; i < m * n; i++)
    if (manner != LAZY || i != 70)
      y[i / n * (int64_t)cells[at.y_stride] + i % n] = 165;
}

static struct fake_kernel kernels[] = {{.name = "twice_kernel", .us = 25, .body = twice},
                                       {.name = NULL}};

static void read_parameters(struct kiln_variant *v) {
  const char *recipe;
  assert_int_equal(kiln_show(v, "recipe", NULL, &recipe), KILN_OK);
  static const struct {
    const char *line;
    uint32_t *index;
  } wanted[] = {{"ptr 0", &at.x},
                {"ptr 2", &at.y},
                {"scalar 1", &at.s},
                {"i64 M", &at.m},
                {"i64 N", &at.cols},
                {"i64 X.stride0", &at.x_stride},
                {"i64 Y.stride0", &at.y_stride}};
  uint32_t found = 0;
  at.n = 0;
  for (const char *p = recipe; (p = strstr(p, "  param ")) != NULL; at.n++) {
    p += strlen("  param ");
    size_t n = strcspn(p, "\n");
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
      if (strlen(wanted[i].line) == n && strncmp(p, wanted[i].line, n) == 0) {
        *wanted[i].index = at.n;
        found++;
      }
  }
  assert_int_equal(found, sizeof wanted / sizeof *wanted);
  kernels[0].n_params = at.n;
}

struct fixture {
  struct help_api t;
  struct kiln_file *file;
};

static void start_on(struct fixture *f, int cc_major) {
  struct rt_ctx *rt;
  help_fake_start();
  manner = RIGHT;
  fake.kernels = kernels;
  fake.cc_major = cc_major;
  fake.cc_minor = 0;
  help_api_start(&f->t, NULL);
  assert_int_equal(api_runtime(f->t.ctx, &rt), KILN_OK);
  rt_use_cuda(rt, &fake_cuda);
  rt_use_nvrtc(rt, &fake_compiler, 13, 0);
  rt_use_cublas(rt, NULL, NULL);
  rt_use_nvml(rt, NULL);
  f->file = help_api_load(&f->t, "twice.lua", text);
  struct kiln_variant *v = help_api_specialise(f->file, NULL);
  read_parameters(v);
  kiln_variant_free(v);
}

static void start(struct fixture *f) {
  start_on(f, 9);
}

static void stop(struct fixture *f) {
  kiln_file_free(f->file);
  help_api_stop(&f->t);
  if (!fake.sticky) /* a lost context takes all that is its own with it */
    help_fake_check();
}

#define VERIFY  KILN_CASE_VERIFY
#define REFUSED 801 /* CUDA_ERROR_NOT_SUPPORTED: an error of its call alone */

static void test_case(void **state) {
  (void)state;
  struct fixture f;
  const struct kiln_report *r;
  start(&f);
  help_api_expect(&f.t,
                  kiln_run_case(f.file, NULL, KILN_ON_GPU,
                                VERIFY | KILN_CASE_EXACT | KILN_CASE_TIME | KILN_CASE_PEERS, &r),
                  KILN_OK, NULL);
  assert_int_equal(r->level, KILN_LEVEL_VERIFIED);
  assert_true(r->exact);
  assert_true(help_api_matches(r->device, "^Fake GPU"));
  assert_true(r->compile.registers > 0 && r->compile.threads > 0);
  assert_true(r->flushed.rounds > 0 && r->graph.rounds > 0);
  assert_true(fabs(r->flushed.us - 25) < 1e-3 && fabs(r->graph.us - 25) < 1e-3);
  assert_true(r->compile.registers == 20);
  /* A kernel without products is timed beside a copy of as many bytes. */
  assert_string_equal(r->peer, "copy");
  assert_int_equal(r->peer_flushed.rounds, r->flushed.rounds);
  assert_true(fabs(r->peer_flushed.us - FAKE_COPY_US) < 1e-3);
  assert_true(fabs(r->ratio_flushed - FAKE_COPY_US / 25.0) < 1e-3);
  assert_true(help_api_matches(r->text, "0.800 x copy flushed"));
  assert_true(help_api_matches(r->json, "\"peer\":\"copy\",\"peer_flushed\""));
  assert_true(help_api_matches(r->text, "on Fake GPU.*sm_90a\n.*registers.*\n  verified against"));
  assert_true(help_api_matches(r->text, "L2 flushed +25.00 us"));
  assert_true(help_api_matches(r->text, "bound by"));
  assert_true(help_api_matches(r->json, "\"flushed\":\\{\"rounds\":[0-9]+,\"us\":25"));
  /* Without verification, and without times. */
  help_api_expect(&f.t, kiln_run_case(f.file, NULL, KILN_ON_GPU, 0, &r), KILN_OK, NULL);
  assert_int_equal(r->level, KILN_LEVEL_NONE);
  assert_int_equal(r->flushed.rounds, 0);
  assert_null(r->peer);
  /* Not asked for: no copy. */
  fake.fail_call = "cuMemcpyDtoDAsync";
  fake.calls = 0;
  help_api_expect(&f.t, kiln_run_case(f.file, NULL, KILN_ON_GPU, KILN_CASE_TIME, &r), KILN_OK,
                  NULL);
  assert_int_equal(fake.calls, 0);
  assert_null(r->peer);
  fake.fail_call = NULL;
  stop(&f);
}

/* A product that cuBLAS could be timed with: without cuBLAS that is a remark, no error. */
static void test_no_peer(void **state) {
  (void)state;
  struct fixture f;
  const struct kiln_report *r;
  start(&f);
  struct kiln_file *file = help_api_load(
      &f.t, "product.lua",
      "return kernel { name = 'twice',\n"
      "  args = { tensor('X', f32, 'M', 'N'), scalar('s', f32), out('Y', f32, 'M', 'N'),\n"
      "           tensor('I', f32, 'N', 'N') },\n"
      "  grid = function(d) return cdiv(d.M, 8), cdiv(d.N, 32) end,\n"
      "  body = function(a, d, c, i, j)\n"
      "    a.Y:store({i * 8, j * 32}, a.X:tile({i * 8, j * 32}, {8, 32}) * a.s)\n"
      "  end,\n"
      "  inputs = function(s)\n"
      "    local e = {}\n"
      "    for i = 1, s.N do for j = 1, s.N do e[#e + 1] = i == j and 1 or 0 end end\n"
      "    return {I = e}\n"
      "  end,\n"
      "  oracle = function(t) return matmul(t.X, t.I) * t.s end,\n"
      "  cases = {{shape = {M = 5, N = 33}, scalar = {s = 2}}} }\n");
  struct kiln_variant *v = help_api_specialise(file, NULL);
  read_parameters(v);
  kiln_variant_free(v);
  help_api_expect(
      &f.t, kiln_run_case(file, NULL, KILN_ON_GPU, VERIFY | KILN_CASE_TIME | KILN_CASE_PEERS, &r),
      KILN_OK, NULL);
  assert_int_equal(r->level, KILN_LEVEL_VERIFIED);
  assert_true(r->flops == 2.0 * 5 * 33 * 33);
  assert_true(r->flushed.rounds > 0);
  assert_int_equal(r->peer_flushed.rounds, 0);
  assert_true(help_api_matches(f.t.log, "warning: not timed beside cuBLAS: "));
  assert_true(help_api_matches(r->text, "TFLOP/s"));
  kiln_file_free(file);
  stop(&f);
}

static void test_doctor(void **state) {
  (void)state;
  struct fixture f;
  const char *said;
  start(&f);
  help_api_expect(&f.t, kiln_doctor(f.t.ctx, false, &said), KILN_OK, NULL);
  assert_true(
      help_api_matches(said, "\nGPU +Fake GPU \\(sm_90a\\), driver [^,]+, 132 SMs, 80 GiB"));
  help_api_expect(&f.t, kiln_doctor(f.t.ctx, true, &said), KILN_OK, NULL);
  assert_true(help_api_matches(said, "\"gpus\":\\[\\{\"name\":\"Fake GPU\",.*\"arch\":\"sm_90a\""));
  stop(&f);
  /* A GPU that no target runs on. */
  struct kiln_variant *v;
  start(&f);
  struct kiln_file *file = f.file;
  fake.cc_major = 5;
  fake.cc_minor = 2;
  struct rt_device *dev = f.t.ctx->device;
  f.t.ctx->device = NULL;
  rt_device_close(dev);
  help_api_expect(&f.t, kiln_specialise(file, NULL, &v), KILN_INVALID,
                  "Fake GPU has compute capability 5.2");
  stop(&f);
}

static void test_wrong_kernels(void **state) {
  (void)state;
  static const struct {
    enum manner manner;
    const char *stride;
    enum kiln_status status;
    const char *says;
  } wrong[] = {
      {OFF_BY_ONE, NULL, KILN_WRONG, "`Y` of kernel `twice` is wrong: .* at \\[2, 4\\]"},
      {LAZY, NULL, KILN_WRONG, "not written at \\[2, 4\\].*1 of 165 elements were never written"},
      {WILD_AFTER, NULL, KILN_FAILED, "`?Y`?.*K1002"},
      {WILD_BEFORE, NULL, KILN_FAILED, "`?Y`?.*K1002"},
      {WILD_PAD, "Y=40,1", KILN_WRONG, "between the elements of argument `Y`.*132 bytes"},
  };
  struct fixture f;
  start(&f);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const struct kiln_report *r;
    struct kiln_request q = help_api_request();
    q.strides = &wrong[i].stride;
    q.n_strides = wrong[i].stride != NULL;
    manner = RIGHT;
    help_api_expect(&f.t, kiln_run_case(f.file, &q, KILN_ON_GPU, VERIFY, &r), KILN_OK, NULL);
    manner = wrong[i].manner;
    help_api_expect(&f.t, kiln_run_case(f.file, &q, KILN_ON_GPU, VERIFY, &r), wrong[i].status,
                    wrong[i].says);
    assert_true((r != NULL) == (wrong[i].status == KILN_WRONG));
    assert_true(!r || r->level == KILN_LEVEL_NONE);
  }
  stop(&f);
}

/* The GPU beside the interpreter. Machine code with a value more among its outputs is not what runs
 * here, so where the GPU fails it does so without one. */
static void test_diff(void **state) {
  (void)state;
  struct fixture f;
  const struct kiln_diff_report *r;
  struct kiln_diff_options o = {.struct_size = sizeof o, .sides = 1u << KILN_ON_GPU};
  start(&f);
  manner = RIGHT;
  help_api_expect(&f.t, kiln_diff(f.file, NULL, &o, &r), KILN_OK, NULL);
  assert_true(help_api_matches(r->text, "same     interpreter and GPU \\(rounded\\)"));
  o.sides = 0;
  help_api_expect(&f.t, kiln_diff(f.file, NULL, &o, &r), KILN_OK, NULL);
  assert_true(help_api_matches(r->text, "emulator \\(rounded\\), GPU \\(rounded\\)"));
  o.domain = KILN_DOMAIN_ALGEBRAIC;
  o.sides = 1u << KILN_ON_GPU;
  help_api_expect(&f.t, kiln_diff(f.file, NULL, &o, &r), KILN_INVALID, "not on a GPU");
  o.domain = KILN_DOMAIN_ROUNDED;
  manner = WILD_AFTER;
  help_api_expect(&f.t, kiln_diff(f.file, NULL, &o, &r), KILN_WRONG, "K1002");
  assert_true(!r->same && r->on == KILN_ON_GPU && r->error && !r->output);
  manner = RIGHT;
  stop(&f);
}

/* An output of 8-bit integers that is right, were it written. */
static void test_unwritten_integers(void **state) {
  (void)state;
  struct fixture f;
  const struct kiln_report *r;
  start(&f);
  struct kiln_file *file =
      help_api_load(&f.t, "poison.lua",
                    "return kernel { name = 'twice',\n"
                    "  args = { tensor('X', f32, 'M', 'N'), scalar('s', f32),\n"
                    "           out('Y', u8, 'M', 'N') },\n"
                    "  grid = function(d) return cdiv(d.M, 8), cdiv(d.N, 32) end,\n"
                    "  body = function(a, d, c, i, j)\n"
                    "    local x = a.X:tile({i * 8, j * 32}, {8, 32})\n"
                    "    a.Y:store({i * 8, j * 32}, cast(x * 0 + a.s, u8))\n"
                    "  end,\n"
                    "  oracle = function(t) return t.X * 0 + t.s end,\n"
                    "  cases = {{shape = {M = 5, N = 33}, scalar = {s = 165}}} }\n");
  struct kiln_variant *v = help_api_specialise(file, NULL);
  read_parameters(v);
  kiln_variant_free(v);
  kernels[0].body = poison;
  help_api_expect(&f.t, kiln_run_case(file, NULL, KILN_ON_GPU, VERIFY, &r), KILN_OK, NULL);
  manner = LAZY;
  help_api_expect(&f.t, kiln_run_case(file, NULL, KILN_ON_GPU, VERIFY, &r), KILN_WRONG,
                  "not written at \\[2, 4\\].*1 of 165 elements were never written");
  kernels[0].body = twice;
  kiln_file_free(file);
  stop(&f);
}

/* Memory of the fake device. */
static void *device_memory(struct fixture *f, size_t bytes, struct rt_buffer **b) {
  struct rt_device *dev;
  assert_int_equal(api_device(f->t.ctx, &dev), KILN_OK);
  assert_int_equal(rt_buffer_new(dev, "test", bytes, b), RT_OK);
  return rt_buffer_data(*b);
}

static struct kiln_tensor on_gpu(void *data, int64_t *shape) {
  return (struct kiln_tensor){.data = data,
                              .device_type = 2,
                              .ndim = 2,
                              .dtype_code = 2,
                              .dtype_bits = 32,
                              .dtype_lanes = 1,
                              .shape = shape};
}

static void test_launches(void **state) {
  (void)state;
  struct fixture f;
  struct rt_buffer *bx, *by;
  start(&f);
  struct kiln_variant *v = help_api_specialise(f.file, NULL);
  float *x = device_memory(&f, 4096, &bx), *y = device_memory(&f, 4096, &by);
  int64_t shape[2] = {7, 9};
  struct kiln_tensor X = on_gpu(x, shape), Y = on_gpu(y, shape);
  struct kiln_arg args[3] = {{.tensor = &X}, {.number = 0.5}, {.tensor = &Y}};
  struct kiln_launch *l;
  for (int i = 0; i < 63; i++)
    x[i] = (float)i;
  help_api_expect(&f.t, kiln_prepare(v, 0, args, 3, &l), KILN_OK, NULL);
  for (int i = 0; i < 3; i++) {
    x[5] = (float)i;
    uint64_t before = f.t.requests;
    help_api_expect(&f.t, kiln_launch(l, NULL), KILN_OK, NULL);
    assert_int_equal(f.t.requests, before); /* launches take no memory */
    assert_true(y[5] == (float)i / 2 && y[62] == 31);
  }
  kiln_launch_free(l);
  /* A driver that refuses a launch. */
  help_api_expect(&f.t, kiln_prepare(v, 0, args, 3, &l), KILN_OK, NULL);
  fake.fail_call = "cuLaunchKernelEx";
  fake.calls = 0;
  fake.fail_at = 1;
  fake.fail_with = REFUSED;
  help_api_expect(&f.t, kiln_launch(l, NULL), KILN_FAILED, "K0902");
  fake.fail_at = 0;
  help_api_expect(&f.t, kiln_launch(l, NULL), KILN_OK, NULL);
  kiln_launch_free(l);
  static const struct {
    const char *what, *says;
  } wrong[] = {
      {"host memory", "`X` must lie in GPU memory \\(DLPack device type 2\\), found device type 1"},
      {"misaligned", "`X`: its address is not a multiple of the element size 4"},
      {"less aligned", "X.addr"},
      {"overlap", "overlap"},
      {"dims", "argument Y: dim 0 is 6, but M is 7"},
      {"dtype", "argument X: its dtype is s32"},
      {"rank", "argument X: it has 1 dims, the kernel takes 2"},
      {"missing", "argument Y: it is missing"},
      {"no data", "argument Y: it has no memory"},
      {"count", "kernel `twice` takes 3 arguments, got 2"},
      {"column", "X.stride1"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const char *what = wrong[i].what;
    int64_t other[2] = {6, 9}, column[2] = {1, 7};
    X = on_gpu(x, shape);
    Y = on_gpu(y, shape);
    args[2].tensor = &Y;
    if (strcmp(what, "host memory") == 0)
      X.device_type = 1;
    else if (strcmp(what, "misaligned") == 0)
      X.byte_offset = 2;
    else if (strcmp(what, "less aligned") == 0)
      X.byte_offset = 4;
    else if (strcmp(what, "overlap") == 0)
      Y.data = x + 16;
    else if (strcmp(what, "dims") == 0)
      Y.shape = other;
    else if (strcmp(what, "dtype") == 0)
      X.dtype_code = 0;
    else if (strcmp(what, "rank") == 0)
      X.ndim = 1;
    else if (strcmp(what, "missing") == 0)
      args[2].tensor = NULL;
    else if (strcmp(what, "no data") == 0)
      Y.data = NULL;
    else if (strcmp(what, "column") == 0)
      X.strides = column;
    print_message("%s\n", what);
    help_api_expect(&f.t, kiln_prepare(v, 0, args, strcmp(what, "count") == 0 ? 2 : 3, &l),
                    KILN_INVALID, wrong[i].says);
    assert_null(l);
  }
  kiln_variant_free(v);
  rt_buffer_free(bx);
  rt_buffer_free(by);
  stop(&f);
}

static void *launch_often(void *launch) {
  for (int i = 0; i < 1000; i++)
    if (kiln_launch(launch, NULL) != KILN_FAILED)
      return NULL;
  return launch;
}

/* Launches that fail on several threads at once: each is told or counted. */
/* GPU 0 is of another architecture than GPU 1, which is the caller's current one: the target is
 * that of the GPU of the launch, and what is not for it is refused in these words (docs/cases.md,
 * case 17). */
static void test_two_devices(void **state) {
  (void)state;
  struct fixture f;
  struct rt_buffer *bx, *by;
  const struct kiln_report *r;
  struct kiln_launch *l;
  struct rt_ctx *rt;
  struct rt_device *other;
  start_on(&f, 8);
  fake.n_devices = 2;
  fake.other_cc_major = 9;
  assert_int_equal(api_runtime(f.t.ctx, &rt), KILN_OK);
  assert_int_equal(rt_device_open(rt, 1, &other), RT_OK);
  assert_int_equal(rt_device_sync(other), RT_OK);
  struct kiln_variant *v = help_api_specialise(f.file, NULL);
  assert_string_equal(kiln_variant_target(v), "sm_80");
  float *x = device_memory(&f, 4096, &bx), *y = device_memory(&f, 4096, &by);
  int64_t shape[2] = {7, 9};
  struct kiln_tensor X = on_gpu(x, shape), Y = on_gpu(y, shape);
  struct kiln_arg args[3] = {{.tensor = &X}, {.number = 0.5}, {.tensor = &Y}};
  read_parameters(v);
  help_api_expect(&f.t, kiln_prepare(v, 0, args, 3, &l), KILN_OK, NULL);
  assert_int_equal(rt_device_sync(other), RT_OK);
  fake.n_launches = 0;
  help_api_expect(&f.t, kiln_launch(l, NULL), KILN_OK, NULL);
  assert_true(fake.n_launches == 1 && fake.launches[0].device == 0);
  kiln_launch_free(l);
  assert_int_equal(rt_device_sync(other), RT_OK);
  help_api_expect(&f.t, kiln_run_case(f.file, NULL, KILN_ON_GPU, VERIFY, &r), KILN_OK, NULL);
  assert_int_equal(fake.launches[fake.n_launches - 1].device, 0);
  help_api_expect(&f.t, kiln_prepare(v, 1, args, 3, &l), KILN_INVALID,
                  "device 1: this version launches on device 0");
  X.device_id = 1;
  help_api_expect(&f.t, kiln_prepare(v, 0, args, 3, &l), KILN_INVALID,
                  "argument `X` lies on GPU 1 \\(DLPack device id\\); the launch is on GPU 0");
  X.device_id = 0;
  kiln_variant_free(v);
  /* For the other one. */
  struct kiln_request q = help_api_request();
  q.target = "sm_90a";
  v = help_api_specialise(f.file, &q);
  help_api_expect(&f.t, kiln_prepare(v, 0, args, 3, &l), KILN_INVALID,
                  "kernel twice was compiled for sm_90a; GPU 0 \\(Fake GPU\\) is sm_80");
  help_api_expect(&f.t, kiln_run_case(f.file, &q, KILN_ON_GPU, VERIFY, &r), KILN_INVALID,
                  "kernel twice was compiled for sm_90a; GPU 0");
  kiln_variant_free(v);
  rt_buffer_free(bx);
  rt_buffer_free(by);
  rt_device_close(other);
  stop(&f);
}

static void test_failing_threads(void **state) {
  (void)state;
  struct fixture f;
  struct rt_buffer *bx, *by;
  pthread_t threads[4];
  start(&f);
  struct kiln_variant *v = help_api_specialise(f.file, NULL);
  int64_t shape[2] = {7, 9};
  struct kiln_tensor X = on_gpu(device_memory(&f, 4096, &bx), shape);
  struct kiln_tensor Y = on_gpu(device_memory(&f, 4096, &by), shape);
  struct kiln_arg args[3] = {{.tensor = &X}, {.number = 0.5}, {.tensor = &Y}};
  struct kiln_launch *l;
  help_api_expect(&f.t, kiln_prepare(v, 0, args, 3, &l), KILN_OK, NULL);
  fake.fail_call = "no call of that name"; /* so that nothing is counted, as threads would race */
  fake.sticky = REFUSED;
  for (int i = 0; i < 4; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, launch_often, l), 0);
  for (int i = 0; i < 4; i++) {
    void *all_failed;
    assert_int_equal(pthread_join(threads[i], &all_failed), 0);
    assert_non_null(all_failed);
  }
  fake.sticky = 0;
  assert_int_equal(kiln_diag_count(f.t.ctx), 200);
  assert_int_equal(kiln_diag_dropped(f.t.ctx), 3800);
  kiln_diag_clear(f.t.ctx);
  help_api_expect(&f.t, kiln_launch(l, NULL), KILN_OK, NULL);
  kiln_launch_free(l);
  kiln_variant_free(v);
  rt_buffer_free(bx);
  rt_buffer_free(by);
  stop(&f);
}

static enum kiln_status whole_case(struct fixture *f) {
  const struct kiln_report *r;
  enum kiln_status st =
      kiln_run_case(f->file, NULL, KILN_ON_GPU, VERIFY | KILN_CASE_EXACT | KILN_CASE_TIME, &r);
  assert_true((r != NULL) == (st == KILN_OK));
  assert_true(!r || r->level == KILN_LEVEL_VERIFIED);
  return st;
}

/* The n-th call of the driver fails: the case fails with a driver's diagnostic, and the next one
 * works, or, after an error that outlives its call, says that the device is lost. */
static void test_driver_failures(void **state) {
  (void)state;
  for (int lost = 0; lost < 2; lost++) {
    uint64_t failed = 0;
    for (uint64_t n = 1;; n += n < 60 ? 1 : n / 4) {
      struct fixture f;
      start(&f);
      fake.calls = 0;
      fake.fail_at = n;
      fake.fail_with = lost ? CUDA_ERROR_ILLEGAL_ADDRESS : REFUSED;
      enum kiln_status st = whole_case(&f);
      bool hit = fake.calls >= n;
      if (hit && st != KILN_OK) {
        failed++;
        help_api_expect(&f.t, st, KILN_FAILED, "K09|K1002");
        fake.fail_at = 0;
        st = whole_case(&f);
        if (fake.sticky) /* a device that was open is dead, one that was not cannot be opened */
          help_api_expect(&f.t, st, KILN_FAILED, "K0902");
        else
          help_api_expect(&f.t, st, KILN_OK, NULL);
      }
      kiln_diag_clear(f.t.ctx);
      stop(&f);
      if (!hit)
        break;
    }
    print_message("  %lu calls failed\n", (unsigned long)failed);
    assert_true(failed > 10);
  }
}

static void test_no_memory(void **state) {
  (void)state;
  for (int sticky = 0; sticky < 2; sticky++) {
    struct fixture f;
    start(&f);
    assert_int_equal(whole_case(&f), KILN_OK);
    uint64_t failed = 0;
    bool hit = true;
    for (uint64_t n = 1; hit; n += n < 40 ? 1 : n / 4) {
      f.t.requests = 0;
      f.t.fail_at = n;
      f.t.sticky = sticky;
      enum kiln_status st = whole_case(&f);
      hit = f.t.requests >= n;
      f.t.fail_at = 0;
      failed += st == KILN_NO_MEMORY;
      if (st != KILN_OK && st != KILN_NO_MEMORY)
        help_api_expect(&f.t, st, KILN_NO_MEMORY, "K0002");
      kiln_diag_clear(f.t.ctx);
      assert_int_equal(fake.live_modules, 0);
      assert_true(fake.live_allocs <= 1); /* what L2 is flushed with */
    }
    help_api_expect(&f.t, whole_case(&f), KILN_OK, NULL);
    print_message("  %lu allocations failed\n", (unsigned long)failed);
    assert_true(failed > 10);
    stop(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_case),
      cmocka_unit_test(test_no_peer),
      cmocka_unit_test(test_doctor),
      cmocka_unit_test(test_wrong_kernels),
      cmocka_unit_test(test_diff),
      cmocka_unit_test(test_unwritten_integers),
      cmocka_unit_test(test_launches),
      cmocka_unit_test(test_two_devices),
      cmocka_unit_test(test_failing_threads),
      cmocka_unit_test(test_driver_failures),
      cmocka_unit_test(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
