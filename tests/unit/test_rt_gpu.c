/* The runtime on a real GPU: what the fake driver cannot show. Skipped, counted, where there is
 * none.
 *
 * The last test destroys its context on purpose (an illegal access). */
#include "help_gpu.h"

#include "base/num.h"
#include "runtime/internal.h"
#include "runtime/verify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct help_gpu f;

#define OK(call) HELP_GPU_OK(&f, call)

static int setup(void **state) {
  (void)state;
  return help_gpu_open(&f);
}

static int teardown(void **state) {
  (void)state;
  return help_gpu_close(&f);
}

static void test_info(void **state) {
  (void)state;
  help_gpu_need(&f);
  const struct rt_device_info *i = rt_device_info(f.dev);
  printf("%s %s, %s, %s: %d SMs, %zu MiB, L2 %zu MiB, %zu bytes of shared memory a block\n",
         i->name, i->uuid, i->pci, i->arch, i->sm_count, i->memory_bytes >> 20, i->l2_bytes >> 20,
         i->smem_per_block_optin);
  assert_true(i->sm_count > 0 && i->cc_major >= 5 && i->smem_per_block_optin >= 48 * 1024);
  assert_int_equal(strlen(i->uuid), 40);
  struct rt_gpu_state s;
  if (rt_gpu_state(f.dev, &s) == RT_OK) {
    struct strbuf b = {.arena = &f.arena.arena};
    rt_throttle_text(s.throttle, &b);
    printf("NVML: %d MHz, %.0f of %.0f W, %d C, throttled: %s\n", s.sm_mhz, s.power_w,
           s.power_limit_w, s.temperature_c, b.s);
    assert_true(s.sm_mhz > 0);
  } else {
    printf("SKIP: no NVML: %s\n", rt_library_info(f.ctx, RT_LIB_NVML).why);
  }
}

/* A launch through a recipe with workspace, memset and scalar; then one that writes past its
 * end. */
static void test_launch(void **state) {
  (void)state;
  help_gpu_need(&f);
  struct rt_module *m = help_gpu_build(
      &f, "extern \"C\" __global__ void axpy(float *y, const float *x, unsigned *count, float a, "
          "int n, int extra) {\n"
          "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
          "  if (i < n + extra) { y[i] = a * (i < n ? x[i] : 0) ; atomicAdd(count, 1u); }\n}\n");
  struct recipe *r =
      help_gpu_recipe(&f, "arg in \"x\" f32 [n]\narg out \"y\" f32 [n]\n"
                          "arg scalar \"a\" f32\narg scalar \"extra\" s32\nworkspace 4\n"
                          "memset 0, 4\nlaunch \"axpy\"\n  grid cdiv(n, 128) + 1, 1, 1\n"
                          "  block 128, 1, 1\n  cluster 1, 1, 1\n  smem 0\n  regs 0\n"
                          "  param ptr 1\n  param ptr 0\n  param workspace 0\n"
                          "  param scalar 2\n  param i32 n\n  param i32 extra\nend\n");
  enum { N = 1000 };
  struct rt_buffer *x, *y, *count;
  OK(rt_buffer_new(f.dev, "argument x", N * 4, &x));
  OK(rt_buffer_new(f.dev, "argument y", N * 4, &y));
  OK(rt_buffer_new(f.dev, "workspace", 4, &count));
  float in[N], out[N];
  for (int i = 0; i < N; i++)
    in[i] = (float)i;
  OK(rt_buffer_upload(x, 0, in, sizeof in));
  OK(rt_buffer_poison(y, DT_F32, NULL));
  struct rt_arg args[4] = {{.tensor = {rt_buffer_data(x), DT_F32, 1, {N}, {1}}},
                           {.tensor = {rt_buffer_data(y), DT_F32, 1, {N}, {1}}},
                           {.f64 = 2.5},
                           {.i64 = 0}};
  struct rt_prepare_options o = {.workspace = rt_buffer_data(count), .workspace_bytes = 4};
  struct rt_prepared *p;
  rt_stream stream;
  OK(rt_prepare(m, r, args, 4, &o, &p));
  OK(rt_device_stream(f.dev, &stream));
  for (int i = 0; i < 3; i++)
    OK(rt_launch(p, stream));
  OK(rt_stream_sync(f.dev, stream));
  OK(rt_buffer_download(y, 0, out, sizeof out));
  for (int i = 0; i < N; i++)
    assert_true(out[i] == 2.5f * (float)i);
  unsigned counted;
  OK(rt_buffer_download(count, 0, &counted, 4));
  assert_int_equal(counted, N); /* cleared before every launch */
  OK(rt_buffer_check_guards(y));
  args[3].i64 = 2;
  OK(rt_rebind(p, args, 4));
  OK(rt_launch(p, stream));
  assert_int_equal(rt_buffer_check_guards(y), RT_FAILED);
  help_expect_diag(&f.diags, DIAG_GUARD, "argument y: memory outside it was written, 0 bytes past");
  diag_clear(&f.diags);
  rt_prepared_free(p);
  rt_buffer_free(x);
  rt_buffer_free(y);
  rt_buffer_free(count);
  rt_module_free(m);
}

/* Random inputs and conversions on the device are the host's, bit for bit. */
static void test_fill_and_convert(void **state) {
  (void)state;
  help_gpu_need(&f);
  static const enum dtype types[] = {DT_BF16, DT_F16,  DT_F32,  DT_F64, DT_S8,
                                     DT_S32,  DT_E4M3, DT_E5M2, DT_U8,  DT_S64};
  enum { N = 10007 };
  for (size_t k = 0; k < sizeof types / sizeof types[0]; k++)
    for (int fill = 0; fill < 2; fill++) {
      enum dtype t = types[k];
      size_t bytes = (size_t)dtype_bytes(t, N);
      double scale = fill ? 1 : 0.3; /* rounds in every type */
      unsigned char *want = calloc(1, bytes), *got = calloc(1, bytes);
      struct rt_buffer *b;
      OK(rt_buffer_new(f.dev, "random", bytes, &b));
      OK(rt_random_fill_device(b, (enum rt_fill)fill, 17, scale, t, N));
      OK(rt_buffer_download(b, 0, got, bytes));
      rt_random_fill((enum rt_fill)fill, 17, scale, t, want, 0, N);
      if (memcmp(got, want, bytes) != 0)
        fail_msg("%s, fill %d: device and host differ", dtype_name(t), fill);
      rt_buffer_free(b);
      free(want);
      free(got);
    }
}

static struct rt_tensor matrix(enum dtype t, struct rt_buffer *b, int64_t rows, int64_t cols,
                               int64_t ld, bool column_major) {
  struct rt_tensor x = {.data = rt_buffer_data(b), .dtype = t, .rank = 2, .dim = {rows, cols}};
  x.stride[0] = column_major ? 1 : ld;
  x.stride[1] = column_major ? ld : 1;
  return x;
}

/* cuBLAS in four layouts is judged right by the device oracle and by the host's; a planted error is
 * found at its place. */
static void check_product(enum dtype in, enum dtype out, int layout, int64_t m, int64_t n,
                          int64_t k, bool exact) {
  int64_t lda = (layout & 1 ? m : k) + 8, ldb = (layout & 2 ? k : n) + 8, ldc = n + 8;
  int64_t na = lda * (layout & 1 ? k : m), nb = ldb * (layout & 2 ? n : k), nc = ldc * m;
  struct rt_buffer *a, *b, *c;
  OK(rt_buffer_new(f.dev, "A", (size_t)dtype_bytes(in, na), &a));
  OK(rt_buffer_new(f.dev, "B", (size_t)dtype_bytes(in, nb), &b));
  OK(rt_buffer_new(f.dev, "C", (size_t)dtype_bytes(out, nc), &c));
  enum rt_fill fill = exact ? RT_FILL_SMALL : RT_FILL_NORMAL;
  OK(rt_random_fill_device(a, fill, 1, 1, in, na));
  OK(rt_random_fill_device(b, fill, 2, 1, in, nb));
  OK(rt_buffer_poison(c, out, NULL));
  OK(rt_device_sync(f.dev));
  struct rt_tensor ta = matrix(in, a, m, k, lda, layout & 1);
  struct rt_tensor tb = matrix(in, b, k, n, ldb, layout & 2);
  struct rt_tensor tc = matrix(out, c, m, n, ldc, false);
  struct rt_gemm_oracle *o;
  OK(rt_gemm_oracle_new(f.dev, &ta, &tb, &tc, exact, &o));
  struct rt_verdict v;
  OK(rt_gemm_oracle_judge(o, &tc, &v));
  assert_true(v.rule == RT_RULE_UNWRITTEN && v.n_unwritten == m * n && v.row == 0 && v.col == 0);
  struct rt_lt_matmul *lt;
  OK(rt_lt_new(f.dev, &ta, &tb, &tc, NULL, &lt));
  for (uint32_t i = 0; i < rt_lt_count(lt); i++) {
    OK(rt_lt_run(lt, i, NULL));
    OK(rt_gemm_oracle_judge(o, &tc, &v));
    struct strbuf text = {.arena = &f.arena.arena};
    rt_verdict_text(&v, &text);
    if (i == 0)
      printf("%s -> %s, layout %d, %s, %d algorithms: %s\n", dtype_name(in), dtype_name(out),
             layout, exact ? "exact" : "normal", (int)rt_lt_count(lt), text.s);
    if (i == 0 || exact)
      assert_true(v.passed);
  }
  /* The same on the host. */
  size_t bytes = rt_buffer_bytes(c);
  OK(rt_lt_run(lt, 0, NULL));
  void *host_c = malloc(bytes), *host_a = malloc(rt_buffer_bytes(a)),
       *host_b = malloc(rt_buffer_bytes(b));
  OK(rt_buffer_download(c, 0, host_c, bytes));
  OK(rt_buffer_download(a, 0, host_a, rt_buffer_bytes(a)));
  OK(rt_buffer_download(b, 0, host_b, rt_buffer_bytes(b)));
  assert_int_equal(rt_check_pads(&mem_libc, &tc, host_c, bytes, 0, RT_POISON_FLOAT), -1);
  double *wide_a = malloc((size_t)na * 8), *wide_b = malloc((size_t)nb * 8);
  double *ref = malloc((size_t)(m * n) * 8), *bound = malloc((size_t)(m * n) * 8);
  for (int absolute = 1; absolute >= 0; absolute--) {
    num_load_n(in, host_a, 0, (size_t)na, wide_a);
    num_load_n(in, host_b, 0, (size_t)nb, wide_b);
    for (int64_t i = 0; i < na && absolute; i++)
      wide_a[i] = fabs(wide_a[i]);
    for (int64_t i = 0; i < nb && absolute; i++)
      wide_b[i] = fabs(wide_b[i]);
    OK(rt_host_matmul(f.ctx, m, n, k, wide_a, ta.stride[0], ta.stride[1], wide_b, tb.stride[0],
                      tb.stride[1], absolute ? bound : ref));
  }
  for (int64_t i = 0; i < m * n; i++)
    bound[i] *= rt_gamma(k, DT_F32);
  struct rt_verify h = {.dtype = out,
                        .rows = m,
                        .cols = n,
                        .out = host_c,
                        .out_stride = {ldc, 1},
                        .ref = ref,
                        .bound = exact ? NULL : bound,
                        .exact = exact};
  struct rt_verdict hv;
  rt_verify(&h, &hv);
  assert_true(hv.passed);
  OK(rt_gemm_oracle_judge(o, &tc, &v));
  assert_true(fabs(hv.max_error - v.max_error) <= 1e-9 * (1 + hv.max_ref));
  assert_true(fabs(hv.mean_error - v.mean_error) <= 1e-9 * (1 + hv.max_ref));
  /* Plant an error. */
  int64_t i = m - 2, j = n / 2;
  size_t size = dtype_bits(out) / 8;
  unsigned char cell[8];
  double was = num_load(out, host_c, i * ldc + j);
  num_store(out, cell, 0,
            exact ? was + (out == DT_F32 ? 1 : 4 * num_unit(out) * was + 1) : was + 5);
  OK(rt_buffer_upload(c, (size_t)(i * ldc + j) * size, cell, size));
  OK(rt_gemm_oracle_judge(o, &tc, &v));
  assert_true(!v.passed && v.row == i && v.col == j);
  assert_int_equal(v.rule, exact ? RT_RULE_EXACT : RT_RULE_RATIO);
  num_store(out, cell, 0, (double)NAN);
  OK(rt_buffer_upload(c, (size_t)(i * ldc + j) * size, cell, size));
  OK(rt_gemm_oracle_judge(o, &tc, &v));
  assert_true(v.rule == RT_RULE_SPECIAL && v.row == i && v.col == j && v.n_wrong == 1);
  free(host_a), free(host_b), free(host_c), free(wide_a), free(wide_b), free(ref), free(bound);
  rt_lt_free(lt);
  rt_gemm_oracle_free(o);
  OK(rt_buffer_check_guards(c));
  rt_buffer_free(a);
  rt_buffer_free(b);
  rt_buffer_free(c);
}

static void test_products(void **state) {
  (void)state;
  help_gpu_need(&f);
  if (!rt_library_info(f.ctx, RT_LIB_CUBLASLT).loaded ||
      !rt_library_info(f.ctx, RT_LIB_CUBLAS).loaded) {
    printf("SKIP: %s\n", rt_library_info(f.ctx, RT_LIB_CUBLAS).why);
    skip();
  }
  for (int layout = 0; layout < 4; layout++)
    for (int exact = 0; exact < 2; exact++) {
      check_product(DT_BF16, DT_BF16, layout, 264, 200, 120, exact);
      check_product(DT_F16, DT_F32, layout, 130, 257, 64, exact);
    }
  check_product(DT_F32, DT_F32, 0, 129, 140, 300, false);
  check_product(DT_F32, DT_F32, 3, 129, 140, 300, true);
  check_product(DT_BF16, DT_BF16, 2, 131, 63, 37, false); /* odd everywhere */
}

static void test_reference_product(void **state) {
  (void)state;
  help_gpu_need(&f);
  if (!rt_library_info(f.ctx, RT_LIB_CUBLAS).loaded) {
    printf("SKIP: %s\n", rt_library_info(f.ctx, RT_LIB_CUBLAS).why);
    skip();
  }
  enum { M = 500, N = 600, K = 700 };
  double *a = malloc(M * K * 8), *b = malloc(K * N * 8), *c = malloc(M * N * 8),
         *d = malloc(M * N * 8);
  for (int i = 0; i < M * K; i++)
    a[i] = rt_random(RT_FILL_SMALL, 5, (uint64_t)i) - 2;
  for (int i = 0; i < K * N; i++)
    b[i] = rt_random(RT_FILL_SMALL, 6, (uint64_t)i) - 2;
  for (int layout = 0; layout < 4; layout++) {
    int64_t as0 = layout & 1 ? 1 : K, as1 = layout & 1 ? M : 1;
    int64_t bs0 = layout & 2 ? 1 : N, bs1 = layout & 2 ? K : 1;
    OK(rt_matmul_f64(f.ctx, f.dev, M, N, K, a, as0, as1, b, bs0, bs1, c));
    OK(rt_host_matmul(f.ctx, M, N, K, a, as0, as1, b, bs0, bs1, d));
    assert_memory_equal(c, d, M * N * 8);
  }
  free(a), free(b), free(c), free(d);
}

static enum rt_status run_prepared(void *user, rt_stream stream, uint32_t round) {
  (void)round;
  return rt_launch(user, stream);
}

/* A kernel that waits for a known number of nanoseconds is timed right, by events and by graph. */
static void test_timing(void **state) {
  (void)state;
  help_gpu_need(&f);
  struct rt_module *m = help_gpu_build(
      &f,
      "extern \"C\" __global__ void nap(long long ns) {\n"
      "  unsigned long long t0, t;\n"
      "  asm volatile(\"mov.u64 %0, %%globaltimer;\" : \"=l\"(t0));\n"
      "  do asm volatile(\"mov.u64 %0, %%globaltimer;\" : \"=l\"(t)); while (t - t0 < ns);\n}\n");
  struct recipe *r = help_gpu_recipe(&f, "arg scalar \"ns\" s64\nlaunch \"nap\"\n  grid 1, 1, 1\n"
                                         "  block 1, 1, 1\n  cluster 1, 1, 1\n  smem 0\n  regs 0\n"
                                         "  param i64 ns\nend\n");
  struct rt_arg slow = {.i64 = 200000}, fast = {.i64 = 100000};
  struct rt_prepared *p[2];
  OK(rt_prepare(m, r, &slow, 1, NULL, &p[0]));
  OK(rt_prepare(m, r, &fast, 1, NULL, &p[1]));
  struct rt_candidate c[2] = {{"slow", run_prepared, p[0]}, {"fast", run_prepared, p[1]}};
  for (int graph = 0; graph < 2; graph++) {
    struct rt_timing_options o = {.rounds = 15, .graph = graph};
    struct rt_timing_set t;
    OK(rt_time(f.dev, c, 2, &o, &t));
    printf("%s: %.1f us [%.1f, %.1f] and %.1f us; ratio %.3f [%.3f, %.3f]\n",
           graph ? "graph" : "events", t.at[0].us.median, t.at[0].us.lo, t.at[0].us.hi,
           t.at[1].us.median, t.at[1].ratio.median, t.at[1].ratio.lo, t.at[1].ratio.hi);
    assert_true(t.at[0].us.median > 195 && t.at[0].us.median < 230);
    assert_true(t.at[1].us.median > 97 && t.at[1].us.median < 125);
    assert_true(t.at[1].ratio.median > 1.7 && t.at[1].ratio.median < 2.1);
    rt_timing_free(&t);
  }
  rt_prepared_free(p[0]);
  rt_prepared_free(p[1]);
  rt_module_free(m);
}

/* Contract: a prepared launch costs at most 0.3 us of CPU over cuLaunchKernelEx alone. Printed; the
 * bound asserted is loose, for busy machines. */
static void test_launch_cost(void **state) {
  (void)state;
  help_gpu_need(&f);
  struct rt_module *m =
      help_gpu_build(&f, "extern \"C\" __global__ void empty(void *p, long long n) {}\n");
  struct recipe *r =
      help_gpu_recipe(&f, "arg inout \"x\" f32 [n]\nlaunch \"empty\"\n  grid 1, 1, 1\n"
                          "  block 32, 1, 1\n  cluster 1, 1, 1\n  smem 0\n  regs 0\n"
                          "  param ptr 0\n  param i64 n\nend\n");
  struct rt_buffer *b;
  OK(rt_buffer_new(f.dev, "x", 64, &b));
  struct rt_arg arg = {.tensor = {rt_buffer_data(b), DT_F32, 1, {16}, {1}}};
  struct rt_prepared *p;
  rt_stream stream;
  OK(rt_prepare(m, r, &arg, 1, NULL, &p));
  OK(rt_device_stream(f.dev, &stream));
  CUfunction fn;
  f.ctx->cuda.cuModuleGetFunction(&fn, m->handle, "empty");
  void *x = rt_buffer_data(b);
  long long n = 16;
  void *params[] = {&x, &n};
  CUlaunchConfig config = {.gridDimX = 1,
                           .gridDimY = 1,
                           .gridDimZ = 1,
                           .blockDimX = 32,
                           .blockDimY = 1,
                           .blockDimZ = 1,
                           .hStream = stream};
  double best[2] = {1e9, 1e9};
  const int RUNS = 500;
  for (int round = 0; round < 40; round++)
    for (int way = 0; way < 2; way++) {
      struct timespec t0, t1;
      OK(rt_stream_sync(f.dev, stream));
      clock_gettime(CLOCK_MONOTONIC, &t0);
      for (int i = 0; i < RUNS; i++)
        if (way)
          rt_launch(p, stream);
        else
          f.ctx->cuda.cuLaunchKernelEx(&config, fn, params, NULL);
      clock_gettime(CLOCK_MONOTONIC, &t1);
      double us =
          ((double)(t1.tv_sec - t0.tv_sec) * 1e9 + (double)(t1.tv_nsec - t0.tv_nsec)) / 1e3 / RUNS;
      best[way] = us < best[way] ? us : best[way];
    }
  printf("launch: cuLaunchKernelEx %.2f us, prepared %.2f us, %.2f us more\n", best[0], best[1],
         best[1] - best[0]);
  assert_true(best[1] - best[0] < 1);
  rt_prepared_free(p);
  rt_buffer_free(b);
  rt_module_free(m);
}

/* Last: the context does not survive it. */
static void test_illegal_access(void **state) {
  (void)state;
  help_gpu_need(&f);
  struct rt_module *m = help_gpu_build(
      &f, "extern \"C\" __global__ void wild(long long a) { *(volatile int *)a = 1; }\n");
  struct recipe *r = help_gpu_recipe(&f, "arg scalar \"a\" s64\nlaunch \"wild\"\n  grid 1, 1, 1\n"
                                         "  block 1, 1, 1\n  cluster 1, 1, 1\n  smem 0\n  regs 0\n"
                                         "  param i64 a\nend\n");
  struct rt_arg arg = {.i64 = 64};
  struct rt_prepared *p;
  diag_clear(&f.diags);
  OK(rt_prepare(m, r, &arg, 1, NULL, &p));
  OK(rt_launch(p, NULL));
  assert_int_equal(rt_device_sync(f.dev), RT_DEAD);
  help_expect_diag(&f.diags, DIAG_DRIVER, "CUDA_ERROR_ILLEGAL_ADDRESS (700)");
  assert_true(rt_device_is_dead(f.dev));
  assert_int_equal(rt_launch(p, NULL), RT_DEAD);
  rt_prepared_free(p);
  rt_module_free(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_info),
      cmocka_unit_test(test_launch),
      cmocka_unit_test(test_fill_and_convert),
      cmocka_unit_test(test_products),
      cmocka_unit_test(test_reference_product),
      cmocka_unit_test(test_timing),
      cmocka_unit_test(test_launch_cost),
      cmocka_unit_test(test_illegal_access),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
