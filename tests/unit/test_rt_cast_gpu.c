/* The conversions of base/num.h against the GPU's own (PTX cvt): every value of the 8- and 16-bit
 * types; for f32 and f64 every value of the target type, every midpoint between two of them, and
 * the neighbours of both; integers at their edges and at random. Skipped, counted, where there is
 * no GPU. */
#include "help_gpu.h"

#include "base/num.h"
#include "runtime/internal.h"

#include <math.h>
#include <string.h>

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

/* ---- the conversions ---- */

/* Bit patterns travel in 64 bits. PTX registers: x the source, y the result, of the widths given
 * (8-bit results come as the low half of a pair). */
static const struct conversion {
  const char *name;
  enum dtype from, to;
  const char *ptx;
  int min_cc; /* compute capability that has it, times 10 */
} conversions[] = {
    {"f32 to f16", DT_F32, DT_F16,
     "{.reg .f32 a; .reg .b32 i; .reg .b16 h; cvt.u32.u64 i, %1; mov.b32 a, i; "
     "cvt.rn.f16.f32 h, a; cvt.u64.u16 %0, h;}",
     80},
    {"f32 to bf16", DT_F32, DT_BF16,
     "{.reg .f32 a; .reg .b32 i; .reg .b16 h; cvt.u32.u64 i, %1; mov.b32 a, i; "
     "cvt.rn.bf16.f32 h, a; cvt.u64.u16 %0, h;}",
     80},
    {"f32 to e4m3", DT_F32, DT_E4M3,
     "{.reg .f32 a, z; .reg .b32 i; .reg .b16 h; cvt.u32.u64 i, %1; mov.b32 a, i; mov.f32 z, 0f00000000; "
     "cvt.rn.satfinite.e4m3x2.f32 h, z, a; cvt.u64.u16 %0, h;}",
     89},
    {"f32 to e5m2", DT_F32, DT_E5M2,
     "{.reg .f32 a, z; .reg .b32 i; .reg .b16 h; cvt.u32.u64 i, %1; mov.b32 a, i; mov.f32 z, 0f00000000; "
     "cvt.rn.satfinite.e5m2x2.f32 h, z, a; cvt.u64.u16 %0, h;}",
     89},
    {"f32 to s32", DT_F32, DT_S32,
     "{.reg .f32 a; .reg .b32 i; cvt.u32.u64 i, %1; mov.b32 a, i; cvt.rni.s32.f32 i, a; "
     "cvt.u64.u32 %0, i;}",
     50},
    {"f32 to s8", DT_F32, DT_S8,
     "{.reg .f32 a; .reg .b32 i; .reg .s16 h; cvt.u32.u64 i, %1; mov.b32 a, i; "
     "cvt.rni.sat.s8.f32 h, a; cvt.u64.u16 %0, h;}",
     50},
    {"f32 to u8", DT_F32, DT_U8,
     "{.reg .f32 a; .reg .b32 i; .reg .u16 h; cvt.u32.u64 i, %1; mov.b32 a, i; "
     "cvt.rni.sat.u8.f32 h, a; cvt.u64.u16 %0, h;}",
     50},
    {"f32 to f64", DT_F32, DT_F64,
     "{.reg .f32 a; .reg .f64 d; .reg .b32 i; cvt.u32.u64 i, %1; mov.b32 a, i; cvt.f64.f32 d, a; "
     "mov.b64 %0, d;}",
     50},
    {"f16 to f32", DT_F16, DT_F32,
     "{.reg .f32 a; .reg .b32 i; .reg .b16 h; cvt.u16.u64 h, %1; cvt.f32.f16 a, h; mov.b32 i, a; "
     "cvt.u64.u32 %0, i;}",
     53},
    {"bf16 to f32", DT_BF16, DT_F32,
     "{.reg .f32 a; .reg .b32 i; .reg .b16 h; cvt.u16.u64 h, %1; cvt.f32.bf16 a, h; mov.b32 i, a; "
     "cvt.u64.u32 %0, i;}",
     90},
    {"f16 to s32", DT_F16, DT_S32,
     "{.reg .b32 i; .reg .b16 h; cvt.u16.u64 h, %1; cvt.rni.s32.f16 i, h; cvt.u64.u32 %0, i;}", 53},
    {"f16 to bf16", DT_F16, DT_BF16,
     "{.reg .f32 a; .reg .b16 h; cvt.u16.u64 h, %1; cvt.f32.f16 a, h; cvt.rn.bf16.f32 h, a; "
     "cvt.u64.u16 %0, h;}",
     80},
    {"e4m3 to f16", DT_E4M3, DT_F16,
     "{.reg .b32 i; .reg .b16 h; cvt.u16.u64 h, %1; cvt.rn.f16x2.e4m3x2 i, h; "
     "and.b32 i, i, 65535; cvt.u64.u32 %0, i;}",
     89},
    {"e5m2 to f16", DT_E5M2, DT_F16,
     "{.reg .b32 i; .reg .b16 h; cvt.u16.u64 h, %1; cvt.rn.f16x2.e5m2x2 i, h; "
     "and.b32 i, i, 65535; cvt.u64.u32 %0, i;}",
     89},
    {"f64 to f32", DT_F64, DT_F32,
     "{.reg .f32 a; .reg .f64 d; .reg .b32 i; mov.b64 d, %1; cvt.rn.f32.f64 a, d; mov.b32 i, a; "
     "cvt.u64.u32 %0, i;}",
     50},
    {"f64 to f16", DT_F64, DT_F16,
     "{.reg .f64 d; .reg .b16 h; mov.b64 d, %1; cvt.rn.f16.f64 h, d; cvt.u64.u16 %0, h;}", 53},
    {"f64 to bf16", DT_F64, DT_BF16,
     "{.reg .f64 d; .reg .b16 h; mov.b64 d, %1; cvt.rn.bf16.f64 h, d; cvt.u64.u16 %0, h;}", 90},
    {"f64 to s64", DT_F64, DT_S64, "{.reg .f64 d; mov.b64 d, %1; cvt.rni.s64.f64 %0, d;}", 50},
    {"s32 to f32", DT_S32, DT_F32,
     "{.reg .f32 a; .reg .b32 i; cvt.u32.u64 i, %1; cvt.rn.f32.s32 a, i; mov.b32 i, a; "
     "cvt.u64.u32 %0, i;}",
     50},
    {"s64 to f32", DT_S64, DT_F32,
     "{.reg .f32 a; .reg .b32 i; cvt.rn.f32.s64 a, %1; mov.b32 i, a; cvt.u64.u32 %0, i;}", 50},
    {"s64 to f64", DT_S64, DT_F64, "{.reg .f64 d; cvt.rn.f64.s64 d, %1; mov.b64 %0, d;}", 50},
    {"s64 to f16", DT_S64, DT_F16, "{.reg .b16 h; cvt.rn.f16.s64 h, %1; cvt.u64.u16 %0, h;}", 53},
};
#define N_CONVERSIONS (sizeof conversions / sizeof conversions[0])

/* What the GPU gives for f32 rounded to tf32, in both ways. */
static const struct tf32 {
  const char *name, *ptx;
  float (*host)(float);
  int min_cc;
} tf32s[] = {
    {"f32 to tf32, ties to even",
     "{.reg .f32 a; .reg .b32 i; cvt.u32.u64 i, %1; mov.b32 a, i; cvt.rn.tf32.f32 i, a; "
     "cvt.u64.u32 %0, i;}",
     num_round_tf32, 90},
    {"f32 to tf32, ties away",
     "{.reg .f32 a; .reg .b32 i; cvt.u32.u64 i, %1; mov.b32 a, i; cvt.rna.tf32.f32 i, a; "
     "cvt.u64.u32 %0, i;}",
     num_round_tf32_away, 80},
};

/* ---- sources ---- */

struct bits_list {
  uint64_t *at;
  uint32_t n, cap;
};

static void push(struct bits_list *list, uint64_t bits) {
  VEC_PUSH(&f.arena.arena, list, bits);
}

static void push_value(struct bits_list *list, enum dtype from, double v) {
  if (from == DT_F32) {
    float near[3] = {(float)v, nextafterf((float)v, INFINITY), nextafterf((float)v, -INFINITY)};
    for (int i = 0; i < 3; i++) {
      uint32_t u;
      memcpy(&u, &near[i], 4);
      push(list, u);
    }
  } else if (from == DT_F64) {
    double near[3] = {v, nextafter(v, INFINITY), nextafter(v, -INFINITY)};
    for (int i = 0; i < 3; i++) {
      uint64_t u;
      memcpy(&u, &near[i], 8);
      push(list, u);
    }
  }
}

static uint64_t next_random(uint64_t *seed) {
  uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static void make_sources(struct bits_list *list, enum dtype from, enum dtype to) {
  static const double special[] = {0.0,
                                   -0.0,
                                   1.0,
                                   -1.0,
                                   0.5,
                                   1.5,
                                   2.5,
                                   -2.5,
                                   127.5,
                                   128.5,
                                   -128.5,
                                   255.5,
                                   1e10,
                                   -1e10,
                                   1e30,
                                   -1e30,
                                   1e300,
                                   1e-300,
                                   INFINITY,
                                   -INFINITY,
                                   NAN,
                                   2147483647.0,
                                   -2147483648.0,
                                   9223372036854775807.0,
                                   -9223372036854775808.0,
                                   1e-45,
                                   1e-40};
  uint64_t seed = 99;
  if (!dtype_is_float(from)) {
    uint64_t mask = from == DT_S32 ? UINT32_MAX : UINT64_MAX;
    for (uint32_t k = 0; k < 64; k++)
      for (int64_t d = -3; d <= 3; d++) {
        push(list, ((UINT64_C(1) << k) + (uint64_t)d) & mask);
        push(list, (uint64_t)(d - (int64_t)((UINT64_C(1) << k) / 2) * 2) & mask);
      }
    for (int i = 0; i < 200000; i++)
      push(list, (next_random(&seed) >> (i % 60)) & mask);
    return;
  }
  if (from != DT_F32 && from != DT_F64) {
    for (uint32_t b = 0; b < UINT32_C(1) << dtype_bits(from); b++)
      push(list, b);
    return;
  }
  for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
    push_value(list, from, special[i]);
  if (dtype_is_float(to) && to != DT_F32 && to != DT_F64) {
    double last = NAN;
    for (uint32_t b = 0; b < UINT32_C(1) << dtype_bits(to); b++) {
      double v = num_load(to, &b, 0);
      if (isfinite(v)) {
        push_value(list, from, v);
        if (isfinite(last))
          push_value(list, from, last + (v - last) / 2);
      } else if (isfinite(last)) { /* where rounding would overflow */
        push_value(list, from, last * (1 + num_unit(to)));
      }
      last = v;
    }
  }
  if (!dtype_is_float(to))
    for (int i = -1000; i <= 1000; i++)
      push_value(list, from, i / 2.0);
  for (int i = 0; i < 200000; i++) {
    uint64_t r = next_random(&seed);
    if (from == DT_F64 && i % 2) { /* near f32: midpoints of neighbours */
      uint32_t u = (uint32_t)r;
      float x;
      memcpy(&x, &u, 4);
      if (isfinite(x) && isfinite(nextafterf(x, INFINITY)))
        push_value(list, from, ((double)x + (double)nextafterf(x, INFINITY)) / 2);
    } else if (from == DT_F32 && i % 2) { /* near tf32: the 13 bits it drops */
      push(list, ((uint32_t)r & 0xffffe000u) + 0x1000u);
      push(list, ((uint32_t)r & 0xffffe000u) + 0xfffu);
      push(list, ((uint32_t)r & 0xffffe000u) + 0x1001u);
    } else {
      push(list, from == DT_F32 ? (uint32_t)r : r);
    }
  }
}

/* ---- the run ---- */

static void run_on_gpu(const char *ptx, const uint64_t *in, uint64_t *out, size_t n) {
  const char *source = arena_printf(
      &f.arena.arena,
      "extern \"C\" __global__ void convert(unsigned long long *y, const unsigned long long *x, "
      "int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (i >= n) return;\n"
      "  unsigned long long v = x[i], r;\n"
      "  asm volatile(\"%s\" : \"=l\"(r) : \"l\"(v));\n"
      "  y[i] = r;\n}\n",
      ptx);
  struct rt_module *m = help_gpu_build(&f, source);
  struct recipe *r = help_gpu_recipe(
      &f, "arg in \"x\" s64 [n]\narg out \"y\" s64 [n]\nlaunch \"convert\"\n"
          "  grid cdiv(n, 256), 1, 1\n  block 256, 1, 1\n  cluster 1, 1, 1\n  smem 0\n  regs 0\n"
          "  param ptr 1\n  param ptr 0\n  param i32 n\nend\n");
  struct rt_buffer *x, *y;
  OK(rt_buffer_new(f.dev, "x", n * 8, &x));
  OK(rt_buffer_new(f.dev, "y", n * 8, &y));
  OK(rt_buffer_upload(x, 0, in, n * 8));
  struct rt_arg args[2] = {{.tensor = {rt_buffer_data(x), DT_S64, 1, {(int64_t)n}, {1}}},
                           {.tensor = {rt_buffer_data(y), DT_S64, 1, {(int64_t)n}, {1}}}};
  struct rt_prepared *p;
  rt_stream stream;
  OK(rt_prepare(m, r, args, 2, NULL, &p));
  OK(rt_device_stream(f.dev, &stream));
  OK(rt_launch(p, stream));
  OK(rt_stream_sync(f.dev, stream));
  OK(rt_buffer_download(y, 0, out, n * 8));
  rt_prepared_free(p);
  rt_buffer_free(x);
  rt_buffer_free(y);
  rt_module_free(m);
}

static uint64_t host_convert(enum dtype from, enum dtype to, uint64_t bits) {
  uint64_t out = 0;
  if (dtype_is_float(from))
    num_store(to, &out, 0, num_load(from, &bits, 0));
  else
    num_store_int(to, &out, 0, num_load_int(from, &bits, 0));
  return out;
}

static bool is_nan(enum dtype t, uint64_t bits) {
  return dtype_is_float(t) && isnan(num_load(t, &bits, 0));
}

static bool has_conversion(const char *name, int min_cc) {
  const struct rt_device_info *i = rt_device_info(f.dev);
  if (i->cc_major * 10 + i->cc_minor >= min_cc)
    return true;
  printf("SKIP: %s needs compute capability %d.%d\n", name, min_cc / 10, min_cc % 10);
  return false;
}

/* Any NaN is as good as another; an integer from NaN is Kiln's policy (0), and the emitter's work
 * where the instruction gives something else (64 bits). */
static void test_conversions(void **state) {
  (void)state;
  help_gpu_need(&f);
  size_t total = 0;
  for (size_t k = 0; k < N_CONVERSIONS; k++) {
    const struct conversion *c = &conversions[k];
    if (!has_conversion(c->name, c->min_cc))
      continue;
    struct bits_list in = {0};
    make_sources(&in, c->from, c->to);
    uint64_t *got = ARENA_ARRAY(&f.arena.arena, uint64_t, in.n);
    run_on_gpu(c->ptx, in.at, got, in.n);
    uint64_t mask = dtype_bits(c->to) == 64 ? UINT64_MAX : (UINT64_C(1) << dtype_bits(c->to)) - 1;
    uint32_t bad = 0;
    for (uint32_t i = 0; i < in.n; i++) {
      uint64_t want = host_convert(c->from, c->to, in.at[i]) & mask, have = got[i] & mask;
      if (want == have || (is_nan(c->to, want) && is_nan(c->to, have)))
        continue;
      if (is_nan(c->from, in.at[i]) && c->to == DT_S64)
        continue;
      if (bad++ < 5)
        print_error("%s: of %#llx the GPU makes %#llx, Kiln %#llx\n", c->name,
                    (unsigned long long)in.at[i], (unsigned long long)have,
                    (unsigned long long)want);
    }
    if (bad)
      fail_msg("%s: %u of %u values differ", c->name, bad, in.n);
    total += in.n;
  }
  printf("%zu conversions of %zu kinds agree\n", total, N_CONVERSIONS);
}

static void test_tf32(void **state) {
  (void)state;
  help_gpu_need(&f);
  for (size_t k = 0; k < sizeof tf32s / sizeof tf32s[0]; k++) {
    const struct tf32 *c = &tf32s[k];
    if (!has_conversion(c->name, c->min_cc))
      continue;
    struct bits_list in = {0};
    make_sources(&in, DT_F32, DT_F32);
    uint64_t *got = ARENA_ARRAY(&f.arena.arena, uint64_t, in.n);
    run_on_gpu(c->ptx, in.at, got, in.n);
    uint32_t bad = 0;
    for (uint32_t i = 0; i < in.n; i++) {
      uint32_t bits = (uint32_t)in.at[i], have = (uint32_t)got[i];
      float x, want, y;
      memcpy(&x, &bits, 4);
      memcpy(&y, &have, 4);
      want = c->host(x);
      if (memcmp(&want, &y, 4) == 0 || (isnan(want) && isnan(y)))
        continue;
      if (bad++ < 5)
        print_error("%s: of %a the GPU makes %a, Kiln %a\n", c->name, (double)x, (double)y,
                    (double)want);
    }
    if (bad)
      fail_msg("%s: %u of %u values differ", c->name, bad, in.n);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_conversions),
                                     cmocka_unit_test(test_tf32)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
