/* Index dumps of a GPU's matrix instructions, descriptors and tensor maps: what pins the emulator's
 * tables (codegen/emu_tables.h). Needs a GPU of compute capability 9.0 and NVRTC; run it from the
 * root of the source tree:
 *
 *   dump_sm90a [--out DIR]   writes mma.txt, matrix.txt, wgmma.txt, numbers.txt, tma.txt,
 *                            rounding.txt and probes.txt into DIR (default build/gpu);
 *                            tests/data/sm90a/ keeps one such set
 *   dump_sm90a --compile     only compiles every source for sm_90a: needs no GPU; 77: no NVRTC
 *   dump_sm90a --compile-some   only every fifth
 *
 * It knows no table of the emulator: who meets whom is measured (operands.cu says how). The text it
 * writes is read by tests/unit/test_emu_dump.c. */
#include "base/num.h"
#include "runtime/internal.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct {
  struct rt_ctx *ctx;
  struct rt_device *dev; /* NULL: compile only */
  struct diag_sink diags;
  const char *dir;
  FILE *out;
  CUmodule module;
  CUresult (*encode)(void *map, int type, uint32_t rank, void *base, const uint64_t *dims,
                     const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                     int interleave, int swizzle, int promotion, int fill);
  unsigned every;                      /* of how many programs one is compiled */
  unsigned programs, compiled, blocks; /* of the file at hand */
} f;

static void die(const char *what, const char *more) {
  fprintf(stderr, "dump_sm90a: %s: %s\n", what, more);
  exit(1);
}

static void check(CUresult r, const char *what) {
  const char *name = "?";
  if (r == CUDA_SUCCESS)
    return;
  f.ctx->cuda.cuGetErrorName(r, &name);
  die(what, name);
}
#define CUDA(call) check(f.ctx->cuda.call, #call)

/* The newest diagnostic of the runtime. */
static const char *why(void) {
  uint32_t n = f.diags.list.n;
  return n ? f.diags.list.at[n - 1].message : "no message";
}

/* ---- sources ---- */

static char source[1 << 18];
static size_t length;

static void put(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void put(const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsnprintf(source + length, sizeof source - length, format, args);
  va_end(args);
  if (n < 0 || (size_t)n >= sizeof source - length)
    die("source", "too long");
  length += (size_t)n;
}

static void put_file(const char *name) {
  char path[256];
  snprintf(path, sizeof path, "tests/gpu/dump/%s", name);
  FILE *in = fopen(path, "rb");
  if (!in)
    die(path, "not found; run from the root of the source tree");
  length += fread(source + length, 1, sizeof source - 1 - length, in);
  source[length] = 0;
  fclose(in);
}

/* Compiles `source` and, with a GPU, loads it, unless it is what was built last. The former module
 * is gone. */
static void build(const char *name) {
  static char last[sizeof source];
  bool same = !strcmp(source, last);
  memcpy(last, source, length + 1);
  length = 0;
  if (same || ++f.programs % f.every)
    return;
  struct rt_compile_job job = {.name = name,
                               .source = source,
                               .arch = "sm_90a",
                               .max_spill_bytes = 1 << 20,
                               .allow_serialized = true};
  struct rt_compiled c;
  if (rt_compile(f.ctx, &job, &c) != RT_OK)
    die(name, c.log && *c.log ? c.log : why());
  f.compiled++;
  if (f.dev) {
    if (f.module)
      CUDA(cuModuleUnload(f.module));
    CUDA(cuModuleLoadData(&f.module, c.cubin));
  }
  rt_compiled_free(&c);
}

static void launch(const char *kernel, uint32_t grid, uint32_t threads, uint32_t shared,
                   void **params) {
  CUfunction function;
  CUlaunchConfig config = {.gridDimX = grid,
                           .gridDimY = 1,
                           .gridDimZ = 1,
                           .blockDimX = threads,
                           .blockDimY = 1,
                           .blockDimZ = 1,
                           .sharedMemBytes = shared};
  CUDA(cuModuleGetFunction(&function, f.module, kernel));
  CUDA(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shared));
  CUDA(cuLaunchKernelEx(&config, function, params, NULL));
  check(f.ctx->cuda.cuCtxSynchronize(), kernel);
}

static CUdeviceptr device_new(size_t bytes, unsigned char fill) {
  CUdeviceptr p;
  CUDA(cuMemAlloc(&p, bytes));
  CUDA(cuMemsetD8Async(p, fill, bytes, NULL));
  return p;
}

static uint32_t *fetch(CUdeviceptr p, size_t words) {
  uint32_t *host = malloc(words * 4);
  if (!host)
    die("memory", "none left");
  CUDA(cuMemcpyDtoH(host, p, words * 4));
  CUDA(cuMemFree(p));
  return host;
}

/* ---- matrix instructions ---- */

struct instruction {
  bool wgmma;
  uint32_t m, n, k;
  enum dtype a, b, d;
  bool a_in_regs, trans_a, trans_b;
  uint64_t mode;                  /* of the descriptors' swizzle */
  uint32_t lbo, sbo, start, base; /* alike for A and B, if shared */
  uint32_t bytes_a, bytes_b;      /* of shared memory */
  uint32_t one;                   /* not 0: bits of what is called 1 (product) */
};

struct setup { /* as in operands.cu */
  uint64_t a, b;
  uint32_t count_a, count_b, bytes_a;
};

static const char *ptx_type(const struct instruction *i, enum dtype t) {
  return t == DT_F32 ? "tf32" : t == DT_F64 && i->wgmma ? "?" : dtype_name(t);
}

static uint32_t bits_of(enum dtype t, uint32_t v) {
  uint64_t b = 0;
  num_store(t, &b, 0, v);
  return (uint32_t)b;
}

static uint32_t regs_of(uint32_t elements, enum dtype t) {
  return dtype_bits(t) < 32 ? elements * dtype_bits(t) / 32 : elements;
}

/* "%first, ..." */
static void put_places(uint32_t first, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    put("%s%%%u", i ? ", " : "", first + i);
}

static void put_list(uint32_t first, uint32_t n) {
  put("{");
  put_places(first, n);
  put("}");
}

static void put_operands(const char *constraint, const char *name, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    put("%s\"%s\"(%s[%u])", i ? ", " : "", constraint, name, i);
}

/* The defines that common.cu asks for, and the instruction. */
enum kernels { REACH = 1, MEET = 2, SUMS = 4, PRODUCT = 8 };
static void put_instruction(const struct instruction *i, unsigned kernels) {
  const uint32_t threads = i->wgmma ? 128 : 32;
  const uint32_t na = i->wgmma && !i->a_in_regs ? 0 : regs_of(i->m * i->k / threads, i->a);
  const uint32_t nb = i->wgmma ? 0 : regs_of(i->k * i->n / threads, i->b);
  const uint32_t nd = regs_of(i->m * i->n / threads, i->d);
  const char *reg = i->a == DT_F64 ? "d" : "r";
  const char *dreg = i->d == DT_F64 ? "+d" : i->d == DT_F32 ? "+f" : "+r";
  length = 0;
  put("#define THREADS %u\n#define ELEMENT_BITS %u\n", threads, dtype_bits(i->a));
  put("#define REG %s\n", i->a == DT_F64 ? "double" : "unsigned int");
  put("#define DREG %s\n", i->d == DT_F64   ? "double"
                           : i->d == DT_F32 ? "float"
                           : i->d == DT_S32 ? "int"
                                            : "unsigned int");
  put("#define D_CONSTRAINT \"%s\"\n", dreg);
  put("#define D_PACK %d\n#define KERNELS %u\n", i->d == DT_F16 ? 2 : 1, kernels);
  put("#define A_REGS %u\n#define B_REGS %u\n#define D_REGS %u\n", na, nb, nd);
  if (i->d == DT_F16) {
    put("__device__ __forceinline__ float half_value(unsigned r, int e) {\n  float x;\n"
        "  asm(\"cvt.f32.f16 %%0, %%1;\" : \"=f\"(x) : \"h\"((unsigned short)(r >> 16 * e)));\n"
        "  return x;\n}\n#define D_VALUE(r, e) half_value(r, e)\n");
  } else {
    put("#define D_VALUE(r, e) (r)\n");
  }
  put("#define ENCODE {");
  for (uint32_t v = 0; v < 8; v++)
    put("%s0x%xu", v ? ", " : "", v == 1 && i->one ? i->one : bits_of(i->a, v));
  put("}\n#define MULTIPLY asm volatile(\"");
  if (i->wgmma) {
    put("{ .reg .pred p; setp.eq.b32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n%uk%u.%s.%s.%s ",
        i->n, i->k, dtype_name(i->d), ptx_type(i, i->a), ptx_type(i, i->b));
    put_list(0, nd);
    put(", ");
    if (i->a_in_regs)
      put_list(nd, 4);
    else
      put("%%%u", nd);
    put(", %%%u, p", nd + (i->a_in_regs ? 4 : 1));
    if (dtype_is_float(i->a))
      put(", 1, 1");
    if (dtype_bits(i->a) == 16 && !i->a_in_regs)
      put(", %d", i->trans_a);
    if (dtype_bits(i->a) == 16)
      put(", %d", i->trans_b);
    put("; }\" : ");
    put_operands(dreg, "d", nd);
    put(" : ");
    if (i->a_in_regs)
      put_operands("r", "a", 4);
    else
      put("\"l\"(desc_a)");
    put(", \"l\"(desc_b) : \"memory\");\n");
  } else {
    put("mma.sync.aligned.m%un%uk%u.row.col.%s.%s.%s.%s ", i->m, i->n, i->k, dtype_name(i->d),
        ptx_type(i, i->a), ptx_type(i, i->b), dtype_name(i->d));
    put_list(0, nd);
    put(", ");
    if (i->m == 8)
      put("{%%%u}, {%%%u}", nd, nd + 1);
    else {
      put_list(nd, na);
      put(", ");
      put_list(nd + na, nb);
    }
    put(", ");
    put_list(0, nd);
    put(";\" : ");
    put_operands(dreg, "d", nd);
    put(" : ");
    put_operands(reg, "a", na);
    put(", ");
    put_operands(reg, "b", nb);
    put(");\n");
  }
  put_file("common.cu");
  put_file("operands.cu");
  put_file(i->wgmma ? "wgmma.cu" : "mma.cu");
  put_file("maps.cu");
  build(i->wgmma ? "wgmma.cu" : "mma.cu");
}

static struct setup setup_of(const struct instruction *i) {
  struct setup s = {.bytes_a = i->bytes_a};
  s.a = i->start >> 4 | (uint64_t)(i->lbo >> 4) << 16 | (uint64_t)(i->sbo >> 4) << 32 |
        (uint64_t)i->base << 49 | i->mode << 62;
  s.b = s.a;
  s.count_a = i->wgmma && !i->a_in_regs ? i->bytes_a * 8 / dtype_bits(i->a) : i->m * i->k;
  s.count_b = i->wgmma ? i->bytes_b * 8 / dtype_bits(i->b) : i->k * i->n;
  return s;
}

static uint32_t threads_of(const struct instruction *i) {
  return i->wgmma ? 128 : 32;
}

static uint32_t shared_of(const struct instruction *i) {
  return i->wgmma ? i->bytes_a + i->bytes_b + 1024 : 0;
}

static void begin(const char *what, const struct instruction *i) {
  fprintf(f.out, "begin %s m=%u n=%u k=%u a=%s b=%s d=%s", what, i->m, i->n, i->k, dtype_name(i->a),
          dtype_name(i->b), dtype_name(i->d));
  if (i->wgmma)
    fprintf(f.out, " regs=%d trans=%d,%d mode=%u lbo=%u sbo=%u start=%u base=%u", i->a_in_regs,
            i->trans_a, i->trans_b, (unsigned)i->mode, i->lbo, i->sbo, i->start, i->base);
  fprintf(f.out, "\n");
}

/* Triples (x, p, q) as lines "LETTER x count p step q step": x goes up by 1, p and q by their
 * steps.
 * Numbers in hex, steps in decimal. */
struct runs {
  char letter;
  uint32_t x, count, p, q;
  int64_t dp, dq;
};

static void runs_end(struct runs *r) {
  if (r->count)
    fprintf(f.out, "%c %x %x %x %d %x %d\n", r->letter, r->x, r->count, r->p, (int)r->dp, r->q,
            (int)r->dq);
  r->count = 0;
}

static void runs_add(struct runs *r, uint32_t x, uint32_t p, uint32_t q) {
  int64_t n = r->count, dp = (int64_t)p - r->p, dq = (int64_t)q - r->q;
  if (n == 1 && x == r->x + 1) {
    r->dp = dp;
    r->dq = dq;
  } else if (n == 0 || x != r->x + n || dp != n * r->dp || dq != n * r->dq) {
    runs_end(r);
    *r = (struct runs){r->letter, x, 0, p, q, 0, 0};
  }
  r->count++;
}

/* Who reaches what: a: (element of A, of D, of B); b: (element of B, of D, of A). */
static void dump_reach(const struct instruction *i) {
  f.blocks++;
  put_instruction(i, i->wgmma ? REACH : REACH | MEET);
  if (!f.dev)
    return;
  struct setup s = setup_of(i);
  begin("reach", i);
  for (int of_b = 0; of_b < 2; of_b++) {
    uint32_t count = of_b ? s.count_b : s.count_a;
    CUdeviceptr out = device_new(count * 4, 0xff);
    launch("reach", count, threads_of(i), shared_of(i), (void *[]){&out, &of_b, &s});
    uint32_t *got = fetch(out, count);
    struct runs r = {.letter = of_b ? 'b' : 'a'};
    for (uint32_t x = 0; x < count; x++)
      if (got[x] != UINT32_MAX)
        runs_add(&r, x, got[x] >> 16, got[x] & 0xffff);
    runs_end(&r);
    free(got);
  }
  fprintf(f.out, "end\n");
}

/* D's elements: d: (element of D, of A, of B), for one k. */
static void dump_meet(const struct instruction *i) {
  f.blocks++;
  put_instruction(i, i->wgmma ? MEET : REACH | MEET);
  if (!f.dev)
    return;
  struct setup s = setup_of(i);
  uint32_t count = i->m * i->n, first = 0;
  CUdeviceptr out = device_new(count * 8, 0xff);
  launch("meet", 1, threads_of(i), shared_of(i), (void *[]){&out, &first, &s});
  uint32_t *got = fetch(out, count * 2);
  begin("meet", i);
  struct runs r = {.letter = 'd'};
  for (uint32_t x = 0; x < count; x++)
    runs_add(&r, x, got[2 * x], got[2 * x + 1]);
  runs_end(&r);
  fprintf(f.out, "end\n");
  free(got);
}

static void dump_mma(void) {
  static const struct instruction all[] = {
      {.m = 16, .n = 8, .k = 16, .a = DT_F16, .b = DT_F16, .d = DT_F32},
      {.m = 16, .n = 8, .k = 16, .a = DT_F16, .b = DT_F16, .d = DT_F16},
      {.m = 16, .n = 8, .k = 16, .a = DT_BF16, .b = DT_BF16, .d = DT_F32},
      {.m = 16, .n = 8, .k = 8, .a = DT_BF16, .b = DT_BF16, .d = DT_F32},
      {.m = 16, .n = 8, .k = 8, .a = DT_F32, .b = DT_F32, .d = DT_F32},
      {.m = 16, .n = 8, .k = 4, .a = DT_F32, .b = DT_F32, .d = DT_F32},
      {.m = 16, .n = 8, .k = 32, .a = DT_E4M3, .b = DT_E4M3, .d = DT_F32},
      {.m = 16, .n = 8, .k = 32, .a = DT_E5M2, .b = DT_E5M2, .d = DT_F32},
      {.m = 16, .n = 8, .k = 32, .a = DT_S8, .b = DT_S8, .d = DT_S32},
      {.m = 16, .n = 8, .k = 32, .a = DT_U8, .b = DT_U8, .d = DT_S32},
      {.m = 16, .n = 8, .k = 16, .a = DT_S8, .b = DT_S8, .d = DT_S32},
      {.m = 8, .n = 8, .k = 4, .a = DT_F64, .b = DT_F64, .d = DT_F64},
      {.m = 16, .n = 8, .k = 4, .a = DT_F64, .b = DT_F64, .d = DT_F64},
      {.m = 16, .n = 8, .k = 8, .a = DT_F64, .b = DT_F64, .d = DT_F64},
      {.m = 16, .n = 8, .k = 16, .a = DT_F64, .b = DT_F64, .d = DT_F64},
  };
  for (size_t x = 0; x < sizeof all / sizeof *all; x++) {
    dump_reach(&all[x]);
    dump_meet(&all[x]);
  }
}

/* K-major and MN-major operands under every swizzle; natural offsets and such as tell the two
 * offsets apart. */
static void dump_wgmma(void) {
  enum { KM_16 = 1, KM_ALL = 2, MN_16 = 4 };
  static const struct {
    uint32_t on; /* types */
    uint64_t mode;
    uint32_t lbo, sbo, start, bytes_a, bytes_b;
  } places[] = {
      {KM_ALL, 0, 128, 256, 0, 4096, 1024},   {KM_16, 0, 2048, 144, 0, 4096, 4096},
      {KM_ALL, 3, 16, 256, 0, 4096, 1024},    {KM_ALL, 2, 16, 512, 0, 4096, 1024},
      {KM_16, 2, 1040, 512, 32, 8192, 4096},  {KM_ALL, 1, 16, 1024, 0, 8192, 2048},
      {KM_ALL, 1, 16, 1024, 64, 8192, 2048},  {KM_16, 1, 4096, 2048, 96, 16384, 4096},
      {MN_16, 0, 128, 256, 0, 4096, 8192},    {MN_16, 0, 2048, 128, 0, 4096, 8192},
      {MN_16, 3, 512, 256, 0, 4096, 8192},    {MN_16, 3, 768, 1024 * 7, 0, 16384, 16384},
      {MN_16, 2, 1024, 512, 0, 4096, 8192},   {MN_16, 1, 2048, 1024, 0, 4096, 8192},
      {MN_16, 1, 8192, 2048, 0, 4096, 16384},
  };
  static const enum dtype types[] = {DT_F16, DT_BF16, DT_F32, DT_E4M3, DT_S8, DT_E5M2, DT_U8};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++)
    for (int regs = 0; regs < 2; regs++)
      for (size_t x = 0; x < sizeof places / sizeof *places; x++) {
        enum dtype type = types[t];
        bool mn = places[x].on == MN_16;
        bool common = places[x].mode == 1 && !places[x].start;
        if ((places[x].on != KM_ALL && type != DT_F16 && !(mn && common && type == DT_BF16)) ||
            ((t > 3 || regs) && !common) || (regs && mn))
          continue;
        struct instruction i = {.wgmma = true,
                                .m = 64,
                                .n = mn ? 128 : 16,
                                .k = 256 / dtype_bits(type),
                                .a = type,
                                .b = type,
                                .d = dtype_is_int(type) ? DT_S32 : DT_F32,
                                .a_in_regs = regs,
                                .trans_a = mn,
                                .trans_b = mn,
                                .mode = places[x].mode,
                                .lbo = places[x].lbo,
                                .sbo = places[x].sbo,
                                .start = places[x].start,
                                .bytes_a = places[x].bytes_a,
                                .bytes_b = places[x].bytes_b};
        dump_reach(&i);
      }
  static const struct {
    uint32_t n;
    enum dtype a, d;
  } fragments[] = {{8, DT_F16, DT_F32}, {256, DT_BF16, DT_F32}, {32, DT_F16, DT_F16},
                   {24, DT_S8, DT_S32}, {40, DT_E4M3, DT_F32},  {16, DT_E5M2, DT_F16},
                   {16, DT_F32, DT_F32}};
  for (size_t x = 0; x < sizeof fragments / sizeof *fragments; x++) {
    struct instruction i = {.wgmma = true,
                            .m = 64,
                            .n = fragments[x].n,
                            .k = 256 / dtype_bits(fragments[x].a),
                            .a = fragments[x].a,
                            .b = fragments[x].a,
                            .d = fragments[x].d,
                            .lbo = 128,
                            .sbo = 256,
                            .bytes_a = 2048,
                            .bytes_b = fragments[x].n * 32 < 1024 ? 1024 : fragments[x].n * 32};
    dump_meet(&i);
  }
}

/* How far sums of integers are exact, how they are cut beyond; what a tf32 operand keeps. */
static void dump_numbers(void) {
  enum { EXPONENTS = 27 };
  static const enum dtype types[] = {DT_F16, DT_BF16, DT_F32, DT_E4M3, DT_E5M2, DT_S8, DT_U8};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++)
    for (int wgmma = 0; wgmma < 2; wgmma++) {
      struct instruction i = {.wgmma = wgmma,
                              .m = wgmma ? 64 : 16,
                              .n = wgmma ? 16 : 8,
                              .k = types[t] == DT_F32 ? 8 : 256 / dtype_bits(types[t]),
                              .a = types[t],
                              .b = types[t],
                              .d = dtype_is_int(types[t]) ? DT_S32 : DT_F32,
                              .lbo = 128,
                              .sbo = 256,
                              .bytes_a = wgmma ? 2048 : 0,
                              .bytes_b = wgmma ? 1024 : 0};
      f.blocks++;
      put_instruction(&i, SUMS);
      if (!f.dev)
        continue;
      struct setup s = setup_of(&i);
      CUdeviceptr out = device_new(EXPONENTS * 16, 0);
      launch("sums", EXPONENTS, threads_of(&i), shared_of(&i), (void *[]){&out, &s});
      uint32_t *got = fetch(out, EXPONENTS * 4);
      begin(wgmma ? "sums wgmma" : "sums mma", &i);
      for (uint32_t e = 0; e < EXPONENTS; e++)
        fprintf(f.out, "2^%u: %u wrong of %u; + 1 * 1: %g; + 3 * 1: %g\n", e, got[4 * e],
                32 * i.m * i.n, got[4 * e + 1] / 16.0, got[4 * e + 2] / 16.0);
      fprintf(f.out, "end\n");
      free(got);
    }
  /* x = 1 + 2^-11 + 2^-12: 1 if cut to 10 bits, 1 + 2^-10 if rounded; x squared tells. */
  for (int wgmma = 0; wgmma < 2; wgmma++) {
    struct instruction i = {.wgmma = wgmma,
                            .m = wgmma ? 64 : 16,
                            .n = wgmma ? 16 : 8,
                            .k = 8,
                            .a = DT_F32,
                            .b = DT_F32,
                            .d = DT_F32,
                            .lbo = 128,
                            .sbo = 256,
                            .bytes_a = wgmma ? 2048 : 0,
                            .bytes_b = wgmma ? 1024 : 0,
                            .one = 0x3f801800};
    f.blocks++;
    put_instruction(&i, PRODUCT);
    if (!f.dev)
      continue;
    struct setup s = setup_of(&i);
    CUdeviceptr out = device_new(4, 0);
    launch("product", 1, threads_of(&i), shared_of(&i), (void *[]){&out, &s});
    uint32_t *got = fetch(out, 1);
    begin(wgmma ? "product wgmma" : "product mma", &i);
    fprintf(f.out, "3f801800 squared: %08x, the operand was %s\nend\n", *got,
            *got == 0x3f800000   ? "cut to 10 bits"
            : *got == 0x3f801002 ? "rounded to 10 bits"
                                 : "something else");
    free(got);
  }
}

/* ---- ldmatrix, stmatrix ---- */

static void dump_matrix(void) {
  for (uint32_t n = 1; n <= 4; n *= 2)
    for (int trans = 0; trans < 2; trans++) {
      const char *t = trans ? ".trans" : "";
      length = 0;
      put("#define N %u\n#define LOAD asm volatile(\"ldmatrix.sync.aligned.m8n8.x%u%s.shared.b16 ",
          n, n, t);
      put_list(0, n);
      put(", [%%%u];\" : ", n);
      put_operands("=r", "r", n);
      put(" : \"r\"(address) : \"memory\");\n");
      put("#define STORE asm volatile(\"stmatrix.sync.aligned.m8n8.x%u%s.shared.b16 [%%%u], ", n, t,
          n);
      put_list(0, n);
      put(";\" : : ");
      put_operands("r", "r", n);
      put(", \"r\"(address) : \"memory\");\n");
      put_file("common.cu");
      put_file("matrix.cu");
      build("matrix.cu");
      f.blocks += 2;
      if (!f.dev)
        continue;
      for (int store = 0; store < 2; store++) {
        uint32_t count = store ? 512 : 64 * n;
        CUdeviceptr out = device_new(count * 4, 0xff);
        launch(store ? "store" : "load", 1, 32, 0, (void *[]){&out});
        uint32_t *got = fetch(out, count);
        fprintf(f.out, "begin %s num=%u trans=%d\n", store ? "store" : "load", n, trans);
        for (uint32_t x = 0; x < count; x++)
          fprintf(f.out, "%x%c", got[x], x % 16 == 15 ? '\n' : ' ');
        fprintf(f.out, "end\n");
        free(got);
      }
    }
}

/* ---- tensor maps ---- */

struct box {
  uint32_t bytes, rank, span, offset; /* offset: in shared memory, from a multiple of 1024 */
  uint32_t dim[5], box[5];
  int32_t at[5];
  uint32_t more; /* bytes that are expected beyond the box's own */
};
enum { SHARED = 16384 };

static void put_box_program(uint32_t rank, bool add) {
  length = 0;
  for (int store = 0; store < 2; store++) {
    put("#define %s asm volatile(\"cp%s.async.bulk.tensor.%ud.", store ? "STORE" : "LOAD",
        store && add ? ".reduce" : "", rank);
    put("%s", !store ? "shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {"
              : add  ? "global.shared::cta.add.tile.bulk_group [%1, {"
                     : "global.shared::cta.tile.bulk_group [%1, {");
    put_places(store ? 2 : 3, rank);
    put("%s", store ? "}], [%0];\" : : \"r\"(from), \"l\"(&map)"
                    : "}], [%2];\" : : \"r\"(to), \"l\"(&map), \"r\"(bar)");
    for (uint32_t d = 0; d < rank; d++)
      put(", \"r\"(at.c[%u])", d);
    put(" : \"memory\");\n");
  }
}

/* Strides: rows padded to a multiple of 16 bytes and one unit more; the rest dense on it. */
static void strides_of(const struct box *b, uint64_t *stride) {
  stride[0] = b->bytes;
  for (uint32_t d = 1; d < b->rank; d++)
    stride[d] = d == 1 ? ((uint64_t)b->dim[0] * b->bytes + 15) / 16 * 16 + 16
                       : stride[d - 1] * b->dim[d - 1];
}

static uint64_t bytes_of(const struct box *b) {
  uint64_t stride[5];
  strides_of(b, stride);
  return b->rank == 1 ? ((uint64_t)b->dim[0] * b->bytes + 31) / 16 * 16
                      : stride[b->rank - 1] * b->dim[b->rank - 1];
}

static void begin_box(const char *what, const struct box *b) {
  uint64_t stride[5];
  strides_of(b, stride);
  fprintf(f.out, "begin %s bytes=%u rank=%u span=%u offset=%u dims", what, b->bytes, b->rank,
          b->span, b->offset);
  for (uint32_t d = 0; d < b->rank; d++) /* extent, stride, box, coordinate */
    fprintf(f.out, " %u,%u,%u,%d", b->dim[d], (unsigned)stride[d], b->box[d], b->at[d]);
}

static bool encode_as(void *map, const struct box *b, CUdeviceptr base, int type) {
  uint64_t stride[5], dims[5];
  uint32_t ones[5] = {1, 1, 1, 1, 1};
  strides_of(b, stride);
  for (uint32_t d = 0; d < b->rank; d++)
    dims[d] = b->dim[d];
  int swizzle = b->span == 128 ? 3 : b->span == 64 ? 2 : b->span == 32 ? 1 : 0;
  return f.encode(map, type, b->rank, (void *)(uintptr_t)base, dims, stride + 1, b->box, ones, 0,
                  swizzle, 0, 0) == CUDA_SUCCESS;
}

static bool encode(void *map, const struct box *b, CUdeviceptr base) {
  static const int types[9] = {[1] = 0, [2] = 1, [4] = 2, [8] = 4}; /* UINT8, 16, 32, 64 */
  return encode_as(map, b, base, types[b->bytes]);
}

static uint32_t box_bytes(const struct box *b) {
  uint32_t n = b->bytes;
  for (uint32_t d = 0; d < b->rank; d++)
    n *= b->box[d];
  return n;
}

static uint32_t element_of(const void *p, uint32_t bytes, uint32_t i) {
  const unsigned char *at = (const unsigned char *)p + (size_t)i * bytes;
  uint32_t v = 0;
  memcpy(&v, at, bytes < 4 ? bytes : 4);
  return v;
}

/* Every element of the tensor's memory is its number + 1 (bytes: in two loads, low and high half).
 * Lines: elements of shared memory, in order: a number + 1, 0 a filled one, - nothing came. */
static void load_box(const struct box *b) {
  f.blocks++;
  if (!f.dev)
    return;
  _Alignas(64) unsigned char map[128];
  const uint64_t total = bytes_of(b), elements = total / b->bytes;
  if (elements >= 0xeeee)
    die("box", "too many elements to number");
  unsigned char *host = calloc(1, total);
  uint32_t expect = box_bytes(b) + b->more, *got[2] = {NULL, NULL}, offset = b->offset;
  struct {
    int32_t c[5];
  } at;
  memcpy(at.c, b->at, sizeof at.c);
  for (uint32_t half = 0; half < (b->bytes == 1 ? 2 : 1); half++) {
    for (uint64_t i = 0; i < elements; i++) {
      uint64_t v = (i + 1) >> 8 * half;
      memcpy(host + i * b->bytes, &v, b->bytes);
    }
    CUdeviceptr tensor = device_new(total, 0), out = device_new(SHARED + 4, 0xee);
    CUDA(cuMemcpyHtoD(tensor, host, total));
    if (!encode(map, b, tensor)) {
      begin_box("refused", b);
      fprintf(f.out, "\nend\n");
      CUDA(cuMemFree(tensor));
      CUDA(cuMemFree(out));
      free(host);
      return;
    }
    launch("load", 1, 128, SHARED + 1024, (void *[]){&out, map, &at, &offset, &expect});
    got[half] = fetch(out, SHARED / 4 + 1);
    CUDA(cuMemFree(tensor));
  }
  begin_box("load", b);
  fprintf(f.out, " expect=%u done=%u\n", expect, got[0][0]);
  uint32_t last = 0, n = SHARED / b->bytes;
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < (pass ? last : n); i++) {
      uint32_t v = element_of(got[0] + 1, b->bytes, i);
      if (b->bytes == 1)
        v |= element_of(got[1] + 1, 1, i) << 8;
      bool nothing = v == (b->bytes > 2 ? 0xeeeeeeee : 0xeeee);
      if (!pass)
        last = nothing ? last : i + 1;
      else if (nothing)
        fprintf(f.out, "-%c", i % 16 == 15 ? '\n' : ' ');
      else
        fprintf(f.out, "%x%c", v, i % 16 == 15 ? '\n' : ' ');
    }
  fprintf(f.out, "\nend\n");
  free(got[0]);
  free(got[1]);
  free(host);
}

/* Element i of shared memory is i + 1. Lines: "ELEMENT-OF-TENSOR'S-MEMORY VALUE" where one came;
 * adding: to 2^20, which is taken off again. */
static void store_box(const struct box *b, bool add) {
  f.blocks++;
  if (!f.dev)
    return;
  _Alignas(64) unsigned char map[128];
  const uint64_t total = bytes_of(b);
  uint32_t *words = calloc(1, SHARED), offset = b->offset, before = add ? 1 << 20 : 0;
  unsigned char *host = calloc(1, total);
  struct {
    int32_t c[5];
  } at;
  memcpy(at.c, b->at, sizeof at.c);
  for (uint32_t i = 0; i < SHARED / b->bytes; i++) {
    uint32_t v = i + 1;
    memcpy((char *)words + (size_t)i * b->bytes, &v, b->bytes < 4 ? b->bytes : 4);
  }
  for (uint64_t i = 0; i < total / b->bytes; i++)
    memcpy(host + i * b->bytes, &before, b->bytes < 4 ? b->bytes : 4);
  CUdeviceptr tensor = device_new(total, 0), in = device_new(SHARED, 0);
  CUDA(cuMemcpyHtoD(tensor, host, total));
  CUDA(cuMemcpyHtoD(in, words, SHARED));
  if (!encode(map, b, tensor))
    die("cuTensorMapEncodeTiled", "refused a box to store");
  launch("store", 1, 128, SHARED + 1024, (void *[]){&in, map, &at, &offset});
  uint32_t *got = fetch(tensor, total / 4);
  CUDA(cuMemFree(in));
  begin_box(add ? "add" : "store", b);
  fprintf(f.out, "\n");
  for (uint32_t i = 0; i < total / b->bytes; i++) {
    uint32_t v = element_of(got, b->bytes, i);
    if (v != before)
      fprintf(f.out, "%x %x\n", i, v - before);
  }
  fprintf(f.out, "end\n");
  free(got);
  free(words);
  free(host);
}

static void dump_tma(void) {
  /* Corners: inside, before the start, past the end. The innermost coordinate lies at a multiple
   * of 16 bytes: a box that starts elsewhere is an illegal instruction (measured; PTX does not say
   * so). */
  static const struct box rank2[] = {
      {1, 2, 0, 0, {200, 40}, {48, 9}, {16, 3}, 0},
      {1, 2, 128, 0, {200, 40}, {128, 9}, {-16, -2}, 0},
      {1, 2, 64, 0, {200, 40}, {64, 9}, {160, 35}, 0},
      {1, 2, 32, 0, {200, 40}, {32, 17}, {176, -9}, 0},
      {2, 2, 0, 0, {100, 40}, {40, 9}, {-8, 33}, 0},
      {2, 2, 128, 0, {100, 40}, {64, 20}, {40, 21}, 0},
      {2, 2, 64, 0, {100, 40}, {32, 20}, {72, -1}, 0},
      {2, 2, 32, 0, {100, 40}, {16, 20}, {-8, 37}, 0},
      {4, 2, 0, 0, {70, 40}, {20, 9}, {52, -8}, 0},
      {4, 2, 128, 0, {70, 40}, {32, 18}, {-4, -1}, 0},
      {4, 2, 64, 0, {70, 40}, {16, 18}, {60, 30}, 0},
      {4, 2, 32, 0, {70, 40}, {8, 18}, {4, 2}, 0},
      {8, 2, 0, 0, {50, 40}, {6, 9}, {46, 32}, 0},
      {8, 2, 128, 0, {50, 40}, {16, 18}, {-4, 3}, 0},
      {8, 2, 64, 0, {50, 40}, {8, 18}, {44, 39}, 0},
      {8, 2, 32, 0, {50, 40}, {4, 18}, {-2, -2}, 0},
      {2, 2, 128, 0, {100, 40}, {64, 20}, {504, 900}, 0}, /* all outside */
  };
  static const struct box ranks[] = {
      {2, 1, 0, 0, {300}, {256}, {64}, 0},
      {4, 1, 128, 0, {300}, {32}, {-4}, 0},
      {2, 3, 128, 0, {70, 9, 5}, {64, 4, 3}, {8, 6, 3}, 0},
      {2, 3, 64, 0, {70, 9, 5}, {32, 3, 4}, {-8, -1, -1}, 0},
      {2, 4, 128, 0, {70, 5, 4, 3}, {64, 3, 2, 2}, {8, -1, 3, 2}, 0},
      {4, 4, 32, 0, {20, 5, 4, 3}, {8, 3, 3, 2}, {16, 3, -1, 1}, 0},
      {2, 5, 128, 0, {70, 3, 4, 3, 2}, {64, 2, 2, 2, 2}, {0, 2, 3, -1, 0}, 0},
      {1, 5, 64, 0, {70, 3, 4, 3, 2}, {64, 2, 3, 2, 2}, {16, 0, -1, 2, 1}, 0},
  };
  /* Of a store no coordinate is negative: that is an illegal instruction, too (measured). */
  static const struct box stored[] = {
      {2, 2, 128, 0, {100, 40}, {64, 20}, {40, 21}, 0},
      {2, 2, 64, 0, {100, 40}, {32, 20}, {72, 30}, 0},
      {2, 2, 32, 0, {100, 40}, {16, 20}, {88, 30}, 0},
      {4, 2, 0, 0, {70, 40}, {20, 9}, {52, 33}, 0},
      {8, 2, 128, 0, {50, 40}, {16, 18}, {40, 3}, 0},
      {2, 3, 128, 0, {70, 9, 5}, {64, 4, 3}, {8, 6, 3}, 0},
  };
  const size_t n_ranks = sizeof ranks / sizeof *ranks, n_stored = sizeof stored / sizeof *stored;
  for (uint32_t rank = 1; rank <= 5; rank++)
    for (int add = 0; add < 2; add++) {
      put_box_program(rank, add);
      put_file("common.cu");
      put_file("tma.cu");
      build("tma.cu");
      for (size_t x = 0; !add && rank == 2 && x < sizeof rank2 / sizeof *rank2; x++)
        load_box(&rank2[x]);
      for (size_t x = 0; !add && x < n_ranks; x++)
        if (ranks[x].rank == rank)
          load_box(&ranks[x]);
      for (size_t x = 0; x < n_stored; x++)
        if (stored[x].rank == rank && (!add || stored[x].bytes == 4))
          store_box(&stored[x], add);
    }
}

/* What maps of floats do to the words that they load. Lines: word in the tensor, word in shared
 * memory. Both signs of exponents from 0 (denormals) to 255 (infinities, NaNs), with mantissas
 * about what tf32's 10 bits tell apart: ties, their neighbours, even and odd above, carries. */
static void dump_rounding(void) {
  static const struct {
    const char *name;
    int type;
  } as[] = {{"f32", CU_TENSOR_MAP_DATA_TYPE_FLOAT32}, {"tf32", CU_TENSOR_MAP_DATA_TYPE_TFLOAT32}};
  static const uint32_t exponents[] = {0, 1, 2, 127, 128, 253, 254, 255};
  static const uint32_t highs[] = {0, 1, 2, 0x155, 0x200, 0x3ff};
  static const uint32_t lows[] = {0, 1, 0x800, 0xfff, 0x1000, 0x1001, 0x1800, 0x1fff};
  enum { ROWS = 24, COLS = 32, WORDS = ROWS * COLS, PITCH = COLS + 4 }; /* strides_of: padded */
  const struct box b = {4, 2, 0, 0, {COLS, ROWS}, {COLS, ROWS}, {0, 0}, 0};
  uint32_t words[ROWS * PITCH] = {0}, n = 0;
  for (size_t e = 0; e < 8; e++)
    for (size_t h = 0; h < 6; h++)
      for (size_t l = 0; l < 8; l++)
        for (uint32_t sign = 0; sign < 2; sign++, n++)
          words[n / COLS * PITCH + n % COLS] =
              sign << 31 | exponents[e] << 23 | highs[h] << 13 | lows[l];
  if (n != WORDS || bytes_of(&b) != sizeof words)
    die("rounding", "the words do not fill the box");
  put_box_program(2, false);
  put_file("common.cu");
  put_file("tma.cu");
  build("tma.cu");
  for (size_t t = 0; t < 2; t++) {
    f.blocks++;
    if (!f.dev)
      continue;
    _Alignas(64) unsigned char map[128];
    CUdeviceptr tensor = device_new(sizeof words, 0), out = device_new(SHARED + 4, 0xee);
    uint32_t offset = 0, expect = box_bytes(&b);
    struct {
      int32_t c[5];
    } at = {{0}};
    CUDA(cuMemcpyHtoD(tensor, words, sizeof words));
    if (!encode_as(map, &b, tensor, as[t].type))
      die("cuTensorMapEncodeTiled", "refused a map of floats");
    launch("load", 1, 128, SHARED + 1024, (void *[]){&out, map, &at, &offset, &expect});
    uint32_t *got = fetch(out, SHARED / 4 + 1);
    CUDA(cuMemFree(tensor));
    fprintf(f.out, "begin round as=%s expect=%u done=%u\n", as[t].name, expect, got[0]);
    for (uint32_t i = 0; i < WORDS; i++)
      fprintf(f.out, "%08x %08x\n", words[i / COLS * PITCH + i % COLS], got[1 + i]);
    fprintf(f.out, "end\n");
    free(got);
  }
}

/* ---- what the tables do not claim, or may not ask for: for people to read ---- */

static void dump_probes(void) {
  /* Rows that do not begin at a pattern's start, with and without PTX's base offset. */
  for (uint32_t base = 0; base < 4; base += 3) {
    struct instruction i = {.wgmma = true,
                            .m = 64,
                            .n = 16,
                            .k = 16,
                            .a = DT_F16,
                            .b = DT_F16,
                            .d = DT_F32,
                            .mode = 1,
                            .lbo = 16,
                            .sbo = 1024,
                            .start = 384,
                            .base = base,
                            .bytes_a = 9216,
                            .bytes_b = 3072};
    dump_reach(&i);
  }
  static const struct box odd[] = {
      {2, 2, 128, 256, {100, 40}, {64, 20}, {0, 0}, 0}, /* not at a pattern's start */
      {2, 2, 64, 128, {100, 40}, {32, 20}, {0, 0}, 0},
      {2, 2, 128, 0, {100, 40}, {32, 20}, {0, 0}, 0},    /* inner extent below the span */
      {2, 2, 128, 0, {100, 40}, {32, 20}, {0, 0}, 1280}, /* the same, as if rows were padded */
      {2, 2, 64, 0, {100, 40}, {16, 20}, {0, 0}, 0},
      {2, 2, 32, 0, {100, 40}, {8, 20}, {0, 0}, 0},
  };
  put_box_program(2, false);
  put_file("common.cu");
  put_file("tma.cu");
  build("tma.cu");
  for (size_t x = 0; x < sizeof odd / sizeof *odd; x++)
    load_box(&odd[x]);
}

/* ---- the program ---- */

static void file(const char *name, const char *sources, void (*dump)(void)) {
  if (f.dev) {
    char path[512], date[32];
    time_t now = time(NULL);
    struct tm day;
    snprintf(path, sizeof path, "%s/%s", f.dir, name);
    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &day));
    f.out = fopen(path, "w");
    if (!f.out)
      die(path, "cannot be written");
    const struct rt_device_info *i = rt_device_info(f.dev);
    struct rt_library_info nvrtc = rt_library_info(f.ctx, RT_LIB_NVRTC);
    char driver[64] = "?";
    FILE *version = fopen("/sys/module/nvidia/version", "r");
    if (version) {
      if (fgets(driver, sizeof driver, version))
        driver[strcspn(driver, "\n")] = 0;
      fclose(version);
    }
    fprintf(f.out,
            "# index dump; %s, %s, driver %s (CUDA %d.%d), NVRTC %d.%d\n# by tests/gpu/dump/: "
            "dump.c, %s\n",
            date, i->name, driver, i->driver_version / 1000, i->driver_version % 1000 / 10,
            nvrtc.major, nvrtc.minor, sources);
  }
  f.blocks = 0;
  dump();
  if (f.dev && fclose(f.out))
    die(name, "cannot be written");
  printf("%s: %u blocks\n", name, f.blocks);
  fflush(stdout);
}

int main(int argc, char **argv) {
  bool compile = false;
  f.dir = "build/gpu";
  f.every = 1;
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], "--compile") || !strcmp(argv[i], "--compile-some")) {
      compile = true;
      f.every = argv[i][9] ? 5 : 1;
    } else if (!strcmp(argv[i], "--out") && i + 1 < argc)
      f.dir = argv[++i];
    else
      die(argv[i], "usage: dump_sm90a [--compile | --compile-some | --out DIR]");
  if (!diag_init(&f.diags, &mem_libc) || rt_ctx_new(&mem_libc, &f.diags, NULL, &f.ctx) != RT_OK)
    die("memory", "none left");
  if (rt_library_need(f.ctx, RT_LIB_NVRTC) != RT_OK) {
    printf("SKIP: %s\n", why());
    return 77;
  }
  if (!compile) {
    if (rt_device_open(f.ctx, 0, &f.dev) != RT_OK)
      die("no GPU", why());
    if (strcmp(rt_device_info(f.dev)->arch, "sm_90a"))
      die(rt_device_info(f.dev)->name, "compute capability 9.0 is needed");
    CUDA(cuCtxSetCurrent(f.dev->context));
    void *lib = dlopen(rt_library_info(f.ctx, RT_LIB_CUDA).path, RTLD_NOW);
    void *symbol = lib ? dlsym(lib, "cuTensorMapEncodeTiled") : NULL;
    if (!symbol)
      die("cuTensorMapEncodeTiled", "the driver has none");
    memcpy(&f.encode, &symbol, sizeof symbol);
  }
  file("mma.txt", "common.cu, operands.cu, mma.cu, maps.cu", dump_mma);
  file("matrix.txt", "common.cu, matrix.cu", dump_matrix);
  file("wgmma.txt", "common.cu, operands.cu, wgmma.cu, maps.cu", dump_wgmma);
  file("numbers.txt", "common.cu, operands.cu, mma.cu, wgmma.cu, maps.cu", dump_numbers);
  file("tma.txt", "common.cu, tma.cu", dump_tma);
  file("rounding.txt", "common.cu, tma.cu", dump_rounding);
  file("probes.txt", "common.cu, operands.cu, wgmma.cu, maps.cu, tma.cu", dump_probes);
  printf("%u of %u programs compiled\n", f.compiled, f.programs);
  if (f.module)
    CUDA(cuModuleUnload(f.module));
  rt_device_close(f.dev);
  rt_ctx_free(f.ctx);
  diag_free(&f.diags);
  return 0;
}
