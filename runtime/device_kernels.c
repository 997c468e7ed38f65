/* Kiln's own helper kernels: conversion to double, comparison by the error policy, random fill.
 *
 * They are compiled through NVRTC on first use, once per element type, for the device at hand, and
 * stay with the device. Each source is small and stands alone: `load` and `store` of the element
 * type are put in front of it. */
#include "runtime/internal.h"

/* double load(const void *p, long long i): exact. */
static const char *load_source(enum dtype t) {
  switch (t) {
  case DT_BF16:
    return "__device__ double load(const void *p, long long i) {\n"
           "  return __int_as_float((int)((const unsigned short *)p)[i] << 16);\n}\n";
  case DT_F16:
    return "__device__ double load(const void *p, long long i) {\n"
           "  float f;\n"
           "  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(f) : \"h\"(((const unsigned short *)p)[i]));\n"
           "  return f;\n}\n";
  case DT_E5M2: /* the upper half of an f16 */
    return "__device__ double load(const void *p, long long i) {\n"
           "  float f;\n"
           "  unsigned short h = ((const unsigned char *)p)[i] << 8;\n"
           "  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(f) : \"h\"(h));\n"
           "  return f;\n}\n";
  case DT_E4M3:
    return "__device__ double load(const void *p, long long i) {\n"
           "  int b = ((const unsigned char *)p)[i], e = b >> 3 & 15, m = b & 7;\n"
           "  float f = (b & 127) == 127 ? __int_as_float(0x7fffffff)\n"
           "            : e ? __int_as_float((e + 120) << 23 | m << 20) : m * 0.001953125f;\n"
           "  return b & 128 ? -f : f;\n}\n";
  case DT_F32:
    return "__device__ double load(const void *p, long long i) { return ((const float *)p)[i]; }\n";
  case DT_F64:
    return "__device__ double load(const void *p, long long i) { return ((const double *)p)[i]; "
           "}\n";
  case DT_S8:
    return "__device__ double load(const void *p, long long i) {\n"
           "  return ((const signed char *)p)[i];\n}\n";
  case DT_U8:
  case DT_BOOL:
    return "__device__ double load(const void *p, long long i) {\n"
           "  return ((const unsigned char *)p)[i];\n}\n";
  case DT_S32:
    return "__device__ double load(const void *p, long long i) { return ((const int *)p)[i]; }\n";
  case DT_S64:
  case DT_INDEX:
    return "__device__ double load(const void *p, long long i) {\n"
           "  return (double)((const long long *)p)[i];\n}\n";
  case DT_S4:
  case DT_U4:
  case DT_COUNT: break;
  }
  return NULL;
}

/* To f32, rounded to odd: the 13 or more bits that it has over a 16-bit type then make rounding it
 * once more the same as rounding the double. */
static const char to_odd_source[] =
    "__device__ float to_odd(double x) {\n"
    "  float f = __double2float_rz(x);\n"
    "  return (double)f == x ? f : __int_as_float(__float_as_int(f) | 1);\n"
    "}\n";

/* void store(void *p, long long i, double x), rounding once as num_store does. */
static const char *store_source(enum dtype t) {
  switch (t) {
  case DT_BF16:
    return "__device__ void store(void *p, long long i, double x) {\n"
           "  unsigned short h;\n"
           "  asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(h) : \"f\"(to_odd(x)));\n"
           "  ((unsigned short *)p)[i] = h;\n}\n";
  case DT_F16:
    return "__device__ void store(void *p, long long i, double x) {\n"
           "  unsigned short h;\n"
           "  asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(h) : \"f\"(to_odd(x)));\n"
           "  ((unsigned short *)p)[i] = h;\n}\n";
  case DT_F32:
    return "__device__ void store(void *p, long long i, double x) { ((float *)p)[i] = (float)x; "
           "}\n";
  case DT_F64:
    return "__device__ void store(void *p, long long i, double x) { ((double *)p)[i] = x; }\n";
  case DT_S8:
    return "__device__ void store(void *p, long long i, double x) {\n"
           "  ((signed char *)p)[i] = (signed char)rint(fmin(fmax(x, -128.0), 127.0));\n}\n";
  case DT_S32:
    return "__device__ void store(void *p, long long i, double x) {\n"
           "  ((int *)p)[i] = (int)rint(fmin(fmax(x, -2147483648.0), 2147483647.0));\n}\n";
  case DT_E4M3:
  case DT_E5M2:
  case DT_U8:
  case DT_BOOL:
  case DT_S64:
  case DT_INDEX:
  case DT_S4:
  case DT_U4:
  case DT_COUNT: break;
  }
  return NULL;
}

static const char to_f64_source[] =
    "extern \"C\" __global__ void to_f64(double *dst, const void *src, long long rows,\n"
    "                                  long long cols, long long s0, long long s1,\n"
    "                                  int absolute) {\n"
    "  long long step = (long long)gridDim.x * blockDim.x;\n"
    "  for (long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x; k < rows * cols;\n"
    "       k += step) {\n"
    "    double x = load(src, k / cols * s0 + k % cols * s1);\n"
    "    dst[k] = absolute ? fabs(x) : x;\n"
    "  }\n"
    "}\n";

/* As rt_random of RT_FILL_NORMAL (fill 0) and RT_FILL_SMALL (fill 1). */
static const char fill_source[] =
    "typedef unsigned long long u64;\n"
    "__device__ u64 mix(u64 z) {\n"
    "  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;\n"
    "  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;\n"
    "  return z ^ (z >> 31);\n"
    "}\n"
    "__device__ int four(u64 u) {\n"
    "  return (int)((u & 65535) + (u >> 16 & 65535) + (u >> 32 & 65535) + (u >> 48));\n"
    "}\n"
    "extern \"C\" __global__ void fill(void *dst, long long n, u64 base, int small, double scale) "
    "{\n"
    "  const u64 step = 0x9e3779b97f4a7c15ull;\n"
    "  for (long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x; k < n;\n"
    "       k += (long long)gridDim.x * blockDim.x) {\n"
    "    u64 at = base + 3 * (u64)k * step;\n"
    "    double x = small ? (double)((mix(at) >> 32) * 5 >> 32)\n"
    "                     : (four(mix(at)) + four(mix(at + step)) + four(mix(at + 2 * step)) -\n"
    "                        393210) / 65536.0;\n"
    "    store(dst, k, x * scale);\n"
    "  }\n"
    "}\n";

/* One CTA of 256 threads per 128 x 128 block; the fields are struct rt_block_stats'. BYTES is the
 * element's size, FLOATS whether it is a float type. bound holds |A||B|; gamma times it is the
 * a-priori bound. */
static const char compare_types[] =
    "struct stats {\n"
    "  double max_err, max_base, max_ref, sum_err, sum_base, sum_ref, share, base_share;\n"
    "  long long n_unwritten, n_special, n_inexact, n_ceiling;\n"
    "  long long at_err, at_share, at_unwritten, at_special, at_inexact, at_base;\n"
    "};\n"
    "struct judge {\n"
    "  const void *out;\n"
    "  const double *ref, *base, *bound;\n"
    "  long long rows, cols, s0, s1;\n"
    "  double gamma, unit, half_tiny, limit;\n"
    "  long long exact;\n"
    "};\n"
    "__device__ void larger(double v, long long at, double &max, long long &max_at) {\n"
    "  if (at >= 0 && (max_at < 0 || v > max || (v == max && at < max_at))) {\n"
    "    max = v;\n    max_at = at;\n  }\n"
    "}\n"
    "__device__ void earlier(long long at, long long &first) {\n"
    "  if (at >= 0 && (first < 0 || at < first)) first = at;\n"
    "}\n"
    "__device__ double infinite() { return __longlong_as_double(0x7ff0000000000000ll); }\n"
    "__device__ double share(double error, double allowed) {\n"
    "  return error == 0 ? 0 : allowed > 0 ? error / allowed : infinite();\n"
    "}\n"
    "__device__ bool unwritten(const void *p, long long i) {\n"
    "  for (int b = 0; b < BYTES; b++)\n"
    "    if (((const unsigned char *)p)[i * BYTES + b] != 255) return false;\n"
    "  return FLOATS;\n"
    "}\n"
    "__device__ bool wrong_special(const judge &q, double got, double ref) {\n"
    "  if (isnan(ref)) return !isnan(got);\n"
    "  if (isnan(got)) return true;\n"
    "  if (isinf(ref)) return got != ref;\n"
    "  return fabs(ref) < q.limit || (got > 0) != (ref > 0);\n"
    "}\n";

static const char compare_source[] =
    "__device__ void element(const judge &q, long long i, long long j, stats &s) {\n"
    "  long long at = i * q.cols + j, index = i * q.s0 + j * q.s1;\n"
    "  double got = load(q.out, index), ref = q.ref[at];\n"
    "  if (unwritten(q.out, index)) { s.n_unwritten++; earlier(at, s.at_unwritten); return; }\n"
    "  bool special = !isfinite(got) || !isfinite(ref);\n"
    "  bool wrong = special && wrong_special(q, got, ref);\n"
    "  if (wrong) { s.n_special++; earlier(at, s.at_special); }\n"
    "  if (q.exact && !wrong) {\n"
    "    double want[1];\n"
    "    store(want, 0, ref);\n"
    "    double w = load(want, 0);\n"
    "    if (w != got && !(isnan(w) && isnan(got))) { s.n_inexact++; earlier(at, s.at_inexact); }\n"
    "  }\n"
    "  if (special) return;\n"
    "  double error = fabs(got - ref), a = fabs(ref);\n"
    "  larger(error, at, s.max_err, s.at_err);\n"
    "  s.sum_err += error;\n"
    "  s.sum_ref += a;\n"
    "  s.max_ref = fmax(s.max_ref, a);\n"
    "  double bound = q.bound ? q.gamma * q.bound[at] : 0;\n"
    "  double allowed = bound + q.unit * (a + bound) + q.half_tiny;\n"
    "  if (q.bound) {\n"
    "    double part = share(error, allowed);\n"
    "    larger(part, at, s.share, s.at_share);\n"
    "    s.n_ceiling += part > 1;\n"
    "  }\n"
    "  if (!q.base) return;\n"
    "  double base = q.base[at], base_error = isfinite(base) ? fabs(base - ref) : 0;\n"
    "  s.max_base = fmax(s.max_base, base_error);\n"
    "  s.sum_base += base_error;\n"
    "  if (q.bound) {\n"
    "    bool lost = !isfinite(base) && wrong_special(q, base, ref);\n"
    "    larger(lost ? infinite() : share(base_error, allowed), at, s.base_share, s.at_base);\n"
    "  }\n"
    "}\n"
    "__device__ void merge(stats &s, const stats &o) {\n"
    "  larger(o.max_err, o.at_err, s.max_err, s.at_err);\n"
    "  larger(o.share, o.at_share, s.share, s.at_share);\n"
    "  larger(o.base_share, o.at_base, s.base_share, s.at_base);\n"
    "  s.max_base = fmax(s.max_base, o.max_base);\n"
    "  s.max_ref = fmax(s.max_ref, o.max_ref);\n"
    "  s.sum_err += o.sum_err; s.sum_base += o.sum_base; s.sum_ref += o.sum_ref;\n"
    "  s.n_unwritten += o.n_unwritten; s.n_special += o.n_special;\n"
    "  s.n_inexact += o.n_inexact; s.n_ceiling += o.n_ceiling;\n"
    "  earlier(o.at_unwritten, s.at_unwritten);\n"
    "  earlier(o.at_special, s.at_special);\n"
    "  earlier(o.at_inexact, s.at_inexact);\n"
    "}\n"
    "extern \"C\" __global__ void __launch_bounds__(256) compare(stats *out, judge q) {\n"
    "  __shared__ stats all[256];\n"
    "  stats s = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, -1, -1};\n"
    "  long long j = (long long)blockIdx.x * 128 + threadIdx.x % 128;\n"
    "  long long i0 = (long long)blockIdx.y * 128;\n"
    "  for (int k = threadIdx.x / 128; k < 128; k += 2)\n"
    "    if (i0 + k < q.rows && j < q.cols) element(q, i0 + k, j, s);\n"
    "  all[threadIdx.x] = s;\n"
    "  for (int half = 128; half > 0; half /= 2) {\n"
    "    __syncthreads();\n"
    "    if (threadIdx.x < half) merge(all[threadIdx.x], all[threadIdx.x + half]);\n"
    "  }\n"
    "  if (threadIdx.x == 0) out[(long long)blockIdx.y * gridDim.x + blockIdx.x] = all[0];\n"
    "}\n";

static const char *const entry_names[RT_HELPER_COUNT] = {"to_f64", "compare", "fill"};

/* The whole source for one helper and type; NULL where the type is not supported. */
static const char *build_source(struct arena *a, enum rt_helper which, enum dtype t) {
  const char *load = load_source(t), *store = store_source(t);
  struct strbuf b = {.arena = a};
  switch (which) {
  case RT_HELPER_TO_F64:
    if (!load)
      return NULL;
    sb_printf(&b, "%s%s", load, to_f64_source);
    return sb_str(&b);
  case RT_HELPER_FILL:
    if (!store)
      return NULL;
    sb_printf(&b, "%s%s%s", to_odd_source, store, fill_source);
    return sb_str(&b);
  case RT_HELPER_COMPARE:
    if (!load || !store)
      return NULL;
    sb_printf(&b, "#define BYTES %u\n#define FLOATS %d\n%s%s%s%s%s", dtype_bits(t) / 8,
              dtype_is_float(t), to_odd_source, load, store, compare_types, compare_source);
    return sb_str(&b);
  case RT_HELPER_COUNT: break;
  }
  return NULL;
}

struct build {
  struct arena arena;
  struct oom_trap trap;
  enum rt_helper which;
  enum dtype t;
  const char *source, *name;
};

static void build(void *user) {
  struct build *x = user;
  x->name = arena_printf(&x->arena, "kiln_%s_%s.cu", entry_names[x->which], dtype_name(x->t));
  x->source = build_source(&x->arena, x->which, x->t);
}

static enum rt_status compile_helper(struct rt_device *dev, struct build *x,
                                     struct rt_helper_kernel *k) {
  /* No contraction: allowed errors must be computed as the host computes them. */
  static const char *const options[] = {"--fmad=false"};
  struct rt_compile_job job = {.name = x->name,
                               .source = x->source,
                               .arch = dev->info.arch,
                               .options = options,
                               .n_options = 1,
                               .max_spill_bytes = UINT32_MAX};
  struct rt_compiled c;
  enum rt_status status = rt_compile(dev->ctx, &job, &c);
  if (status == RT_OK)
    status = rt_module_load(dev, c.cubin, c.cubin_size, &k->module);
  rt_compiled_free(&c);
  if (status != RT_OK)
    return status;
  CUresult r =
      dev->ctx->cuda.cuModuleGetFunction(&k->function, k->module->handle, entry_names[x->which]);
  if (r == CUDA_SUCCESS)
    return RT_OK;
  rt_module_free(k->module);
  k->module = NULL;
  return rt_cuda_failed(dev, r, "finding helper kernel %s", entry_names[x->which]);
}

enum rt_status rt_helper_function(struct rt_device *dev, enum rt_helper which, enum dtype t,
                                  CUfunction *out) {
  struct rt_helper_kernel *k = &dev->helpers[which][t];
  enum rt_status status = RT_OK;
  if (!k->module) {
    struct build x = {.which = which, .t = t};
    arena_init(&x.arena, &dev->ctx->mem, &x.trap);
    if (!arena_guard(&x.arena, build, &x))
      status = rt_no_memory(dev->ctx);
    else if (!x.source)
      status =
          rt_fail(dev->ctx, RT_BAD_INPUT, DIAG_USAGE, "there is no device helper %s for dtype %s",
                  entry_names[which], dtype_name(t));
    else
      status = compile_helper(dev, &x, k);
    arena_free(&x.arena);
  }
  *out = k->function;
  return status;
}

void rt_helpers_free(struct rt_device *dev) {
  for (int w = 0; w < RT_HELPER_COUNT; w++)
    for (int t = 0; t < DT_COUNT; t++)
      rt_module_free(dev->helpers[w][t].module);
}
