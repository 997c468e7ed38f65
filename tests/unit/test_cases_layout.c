/* Kinds of problems that broke other systems, swept around the values that did it, in the
 * interpreter through the public API: tails, views of every layout, stores at edges, tensors beyond
 * 2^31 elements, splits of K, special values. Whole numbers are compared exactly; every buffer lies
 * between guard bands, and nothing outside of a view may change. */
#include "help_api.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* ---- values ---- */

enum type { F32, F64, F16, BF16, E4M3, E5M2, S8, U8, S32, S64, BOOL, N_TYPES };

static const struct {
  const char *name;
  uint8_t code, bits;
} types[N_TYPES] = {{"f32", 2, 32},  {"f64", 2, 64},  {"f16", 2, 16}, {"bf16", 4, 16},
                    {"e4m3", 10, 8}, {"e5m2", 12, 8}, {"s8", 0, 8},   {"u8", 1, 8},
                    {"s32", 0, 32},  {"s64", 0, 64},  {"bool", 6, 8}};

/* Written from the format's definition: 4 bits of exponent, bias 7, no infinity. */
static float e4m3_value(uint8_t c) {
  int e = c >> 3 & 15, m = c & 7;
  float x = e ? ldexpf((float)(8 + m), e - 10) : ldexpf((float)m, -9);
  if ((c & 0x7f) == 0x7f)
    return NAN;
  return c & 0x80 ? -x : x;
}

static void put(enum type t, void *at, int v) {
  float f = (float)v;
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  switch ((int)t) {
  case F32: memcpy(at, &f, sizeof f); return;
  case BF16: {
    uint16_t h = (uint16_t)(bits >> 16);
    memcpy(at, &h, sizeof h);
    return;
  }
  case E4M3:
    for (int c = 0; c < 256; c++)
      if (e4m3_value((uint8_t)c) == f) {
        *(uint8_t *)at = (uint8_t)c;
        return;
      }
    fail_msg("%d is no value of e4m3", v);
    return;
  case S8: *(int8_t *)at = (int8_t)v; return;
  case S32: {
    int32_t x = v;
    memcpy(at, &x, sizeof x);
    return;
  }
  default: fail_msg("no numbers of %s here", types[t].name);
  }
}

static uint32_t seed;

static uint32_t next(void) {
  seed = seed * 1664525u + 1013904223u;
  return seed >> 8;
}

/* ---- buffers and views ---- */

enum { GUARD = 4096, FILL = 0xa5 };

struct buf {
  unsigned char *mem;
  size_t bytes; /* between the bands */
};

static struct buf buf_new(size_t bytes) {
  struct buf b = {malloc(bytes + 2 * GUARD), bytes};
  assert_non_null(b.mem);
  memset(b.mem, FILL, bytes + 2 * GUARD);
  return b;
}

static void buf_free(struct buf *b) {
  for (size_t i = 0; i < GUARD; i++)
    if (b->mem[i] != FILL || b->mem[GUARD + b->bytes + i] != FILL)
      fail_msg("a guard band was written, %zu bytes from its edge", i);
  free(b->mem);
}

struct view {
  struct kiln_tensor t;
  int64_t shape[5], strides[5];
};

/* A view of rank 2 of a buffer, strides in elements, origin in bytes. */
static void view_of(struct view *v, void *data, enum type t, int rank, const int64_t *shape,
                    const int64_t *strides, uint64_t origin) {
  *v = (struct view){.t = {.data = data,
                           .device_type = 1,
                           .ndim = rank,
                           .dtype_code = types[t].code,
                           .dtype_bits = types[t].bits,
                           .dtype_lanes = 1,
                           .byte_offset = origin}};
  for (int d = 0; d < rank; d++) {
    v->shape[d] = shape[d];
    v->strides[d] = strides[d];
  }
  v->t.shape = v->shape;
  v->t.strides = v->strides;
}

/* How a matrix lies: strides as multiples and surplus, an origin off alignment. */
struct layout {
  const char *name;
  int gap;         /* elements between rows */
  int off;         /* elements before the first */
  bool col;        /* columns lie together */
  int flip;        /* 1: rows backwards, 2: columns backwards, 3: both */
  bool row0, col0; /* stride 0 */
};

static const struct layout layouts[] = {
    {.name = "dense"},
    {.name = "rows apart", .gap = 1},
    {.name = "rows further apart", .gap = 5, .off = 1},
    {.name = "off by two", .off = 2},
    {.name = "off by four", .off = 4, .gap = 8},
    {.name = "column-major", .col = true},
    {.name = "column-major apart", .col = true, .gap = 3, .off = 1},
    {.name = "rows backwards", .flip = 1},
    {.name = "columns backwards", .flip = 2, .gap = 1},
    {.name = "backwards", .flip = 3, .off = 3},
    {.name = "one row", .row0 = true},
    {.name = "one column", .col0 = true},
    {.name = "one element", .row0 = true, .col0 = true},
};
enum { WRITABLE = 10 }; /* the layouts before the broadcast ones */

struct matrix {
  struct buf b;
  struct view v;
  enum type t;
  int64_t m, n, s0, s1, origin; /* elements */
};

static void matrix_new(struct matrix *x, enum type t, int64_t m, int64_t n,
                       const struct layout *l) {
  int64_t inner = (l->col ? m : n) + l->gap, outer = l->col ? n : m;
  *x = (struct matrix){.t = t, .m = m, .n = n, .s0 = l->col ? 1 : inner, .s1 = l->col ? inner : 1};
  x->origin = l->off;
  if (l->flip & 1) {
    x->origin += m ? (m - 1) * x->s0 : 0;
    x->s0 = -x->s0;
  }
  if (l->flip & 2) {
    x->origin += n ? (n - 1) * x->s1 : 0;
    x->s1 = -x->s1;
  }
  x->s0 = l->row0 ? 0 : x->s0;
  x->s1 = l->col0 ? 0 : x->s1;
  size_t size = types[t].bits / 8u;
  x->b = buf_new((size_t)(inner * outer + l->off) * size);
  const int64_t shape[2] = {m, n}, strides[2] = {x->s0, x->s1};
  view_of(&x->v, x->b.mem + GUARD, t, 2, shape, strides, (uint64_t)x->origin * size);
}

static void *element(const struct matrix *x, int64_t i, int64_t j) {
  int64_t at = x->origin + i * x->s0 + j * x->s1, size = types[x->t].bits / 8;
  return x->b.mem + GUARD + at * size;
}

/* Small whole numbers; what element (i, j) holds is read from memory, so broadcasts are right. */
static void matrix_fill(struct matrix *x, int lo, int hi) {
  for (int64_t i = 0; i < x->m; i++)
    for (int64_t j = 0; j < x->n; j++)
      put(x->t, element(x, i, j), lo + (int)(next() % (unsigned)(hi - lo + 1)));
}

static double number(const struct matrix *x, int64_t i, int64_t j) {
  const void *p = element(x, i, j);
  float f;
  uint16_t h;
  uint32_t u;
  int32_t s;
  switch ((int)x->t) {
  case F32: memcpy(&f, p, sizeof f); return (double)f;
  case BF16:
    memcpy(&h, p, sizeof h);
    u = (uint32_t)h << 16;
    memcpy(&f, &u, sizeof f);
    return (double)f;
  case E4M3: return (double)e4m3_value(*(const uint8_t *)p);
  case S8: return *(const int8_t *)p;
  case S32: memcpy(&s, p, sizeof s); return s;
  default: fail_msg("no numbers of %s here", types[x->t].name); return 0;
  }
}

/* Bytes outside of the view are as they were filled. */
static void check_outside(const struct matrix *x, const char *what) {
  size_t size = types[x->t].bits / 8u, n = x->b.bytes / size;
  bool *in = calloc(n + 1, 1);
  assert_non_null(in);
  for (int64_t i = 0; i < x->m; i++)
    for (int64_t j = 0; j < x->n; j++)
      in[x->origin + i * x->s0 + j * x->s1] = true;
  for (size_t k = 0; k < n * size; k++)
    if (!in[k / size] && x->b.mem[GUARD + k] != FILL)
      fail_msg("%s: byte %zu outside of the view was written", what, k);
  free(in);
}

/* ---- running ---- */

static struct kiln_variant *specialise(struct kiln_file *file, const char *kernel,
                                       uint32_t n_consts, const char *const *consts, uint32_t n_set,
                                       const char *const *set) {
  struct kiln_request r = help_api_request();
  r.kernel = kernel;
  r.n_consts = n_consts;
  r.consts = consts;
  r.n_set = n_set;
  r.set = set;
  return help_api_specialise(file, &r);
}

static void interpret(struct help_api *t, struct kiln_variant *v, const struct kiln_arg *args,
                      uint32_t n) {
  help_api_expect(t, kiln_interpret(v, args, n, false), KILN_OK, NULL);
}

/* ---- matrix products: tails, layouts ---- */

/* 2 A B^T + 3, so that K = 0 gives what the epilogue makes of zero. */
static const char gemm_text[] =
    "return kernel { name = 'gemm',\n"
    "  const = { T = {bf16, f32, e4m3, s8}, O = {f32, s32} },\n"
    "  args = { tensor('A', 'T', 'M', 'K'), tensor('B', 'T', 'N', 'K'), out('C', 'O', 'M', 'N') },\n"
    "  tune = { BM = {16}, BN = {8}, BK = {16} },\n"
    "  grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end,\n"
    "  body = function(a, d, c, i, j)\n"
    "    local m, n, acc = i * c.BM, j * c.BN, zeros(c.O, c.BM, c.BN)\n"
    "    for k in range(0, d.K, c.BK) do\n"
    "      acc = acc + dot(a.A:tile({m, k}, {c.BM, c.BK}), a.B:tile({n, k}, {c.BN, c.BK}):T())\n"
    "    end\n"
    "    a.C:store({m, n}, acc * 2 + 3)\n"
    "  end }\n";

static struct kiln_variant *gemm_of(struct kiln_file *file, enum type t, int bm, int bn, int bk) {
  char ct[16], m[16], n[16], k[16];
  snprintf(ct, sizeof ct, "T=%s", types[t].name);
  snprintf(m, sizeof m, "BM=%d", bm);
  snprintf(n, sizeof n, "BN=%d", bn);
  snprintf(k, sizeof k, "BK=%d", bk);
  const char *consts[] = {ct, t == S8 ? "O=s32" : "O=f32"}, *set[] = {m, n, k};
  return specialise(file, NULL, 2, consts, 3, set);
}

static void gemm_check(struct help_api *t, struct kiln_variant *v, enum type type, int64_t m,
                       int64_t n, int64_t k, const struct layout *la, const struct layout *lb,
                       const struct layout *lc) {
  struct matrix a, b, c;
  matrix_new(&a, type, m, k, la);
  matrix_new(&b, type, n, k, lb);
  matrix_new(&c, type == S8 ? S32 : F32, m, n, lc);
  matrix_fill(&a, -2, 4);
  matrix_fill(&b, 0, 4);
  const struct kiln_arg args[3] = {{.tensor = &a.v.t}, {.tensor = &b.v.t}, {.tensor = &c.v.t}};
  interpret(t, v, args, 3);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      double want = 0;
      for (int64_t p = 0; p < k; p++)
        want += number(&a, i, p) * number(&b, j, p);
      want = want * 2 + 3;
      if (number(&c, i, j) != want)
        fail_msg("%s, M, N, K = %d, %d, %d, A %s, B %s, C %s: C[%d, %d] is %g, not %g",
                 types[type].name, (int)m, (int)n, (int)k, la->name, lb->name, lc->name, (int)i,
                 (int)j, number(&c, i, j), want);
    }
  check_outside(&c, lc->name);
  buf_free(&a.b);
  buf_free(&b.b);
  buf_free(&c.b);
}

static void test_tails_of_k(void **state) {
  (void)state;
  static const int ks[] = {0,  1,  2,  7,  8,  9,  23,  24,  25,  31,
                           32, 33, 62, 63, 64, 65, 249, 250, 1001};
  static const int bks[] = {16, 24, 32, 40, 48, 56, 64, 80, 128};
  static const enum type in[] = {BF16, E4M3, S8};
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "gemm.lua", gemm_text);
  for (size_t y = 0; y < COUNT(in); y++)
    for (size_t b = 0; b < COUNT(bks); b++) {
      struct kiln_variant *v = gemm_of(file, in[y], 16, 8, bks[b]);
      for (size_t k = 0; k < COUNT(ks); k++)
        gemm_check(&t, v, in[y], 17, 9, ks[k], &layouts[0], &layouts[k % 2 ? 5 : 0], &layouts[0]);
      kiln_variant_free(v);
    }
  kiln_file_free(file);
  help_api_stop(&t);
}

static void test_tails_of_m_and_n(void **state) {
  (void)state;
  static const int ms[] = {0, 1, 7, 15, 16, 17, 119, 1000};
  static const int ns[] = {0, 1, 63, 64, 65, 104, 192, 229, 257, 511, 999};
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "gemm.lua", gemm_text);
  struct kiln_variant *v = gemm_of(file, BF16, 16, 64, 16);
  for (size_t i = 0; i < COUNT(ms); i++)
    for (size_t j = 0; j < COUNT(ns); j++)
      gemm_check(&t, v, BF16, ms[i], ns[j], 3, &layouts[0], &layouts[0], &layouts[(i + j) % 7]);
  kiln_variant_free(v);
  kiln_file_free(file);
  help_api_stop(&t);
}

/* Views that no bulk copy takes: any of the layouts at each place, for every width. */
static void test_layouts(void **state) {
  (void)state;
  static const enum type in[] = {BF16, F32, E4M3, S8};
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "gemm.lua", gemm_text);
  for (size_t y = 0; y < COUNT(in); y++) {
    struct kiln_variant *v = gemm_of(file, in[y], 16, 8, 16);
    for (size_t a = 0; a < COUNT(layouts); a++)
      for (size_t b = 0; b < COUNT(layouts); b++)
        gemm_check(&t, v, in[y], 19, 13, 21 + (int64_t)(a % 3), &layouts[a], &layouts[b],
                   &layouts[(a + b) % WRITABLE]);
    kiln_variant_free(v);
  }
  kiln_file_free(file);
  help_api_stop(&t);
}

/* ---- stores at edges ---- */

static const char copy_text[] =
    "return kernel { name = 'copy',\n"
    "  const = { T = {f32, f64, f16, bf16, e4m3, e5m2, s8, u8, s32, s64, bool} },\n"
    "  args = { tensor('X', 'T', 'M', 'N'), out('Y', 'T', 'M', 'N') },\n"
    "  tune = { BM = {2}, BN = {4} },\n"
    "  grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end,\n"
    "  body = function(a, d, c, i, j)\n"
    "    a.Y:store({i * c.BM, j * c.BN}, a.X:tile({i * c.BM, j * c.BN}, {c.BM, c.BN}))\n"
    "  end }\n";

/* Every dtype, every inner extent around whole 16-byte units, guard columns of many widths. */
static void test_stores_at_edges(void **state) {
  (void)state;
  static const char *const tiles[][2] = {{"BM=2", "BN=4"}, {"BM=1", "BN=64"}, {"BM=8", "BN=16"}};
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "copy.lua", copy_text);
  for (int y = 0; y < N_TYPES; y++)
    for (size_t b = 0; b < COUNT(tiles); b++) {
      char text[16];
      snprintf(text, sizeof text, "T=%s", types[y].name);
      const char *consts[] = {text};
      struct kiln_variant *v = specialise(file, NULL, 1, consts, 2, tiles[b]);
      for (int64_t n = 0; n <= 35; n++)
        for (size_t l = 0; l < WRITABLE; l++) {
          struct matrix from, to;
          int64_t m = 1 + (n + (int64_t)l) % 5;
          matrix_new(&from, (enum type)y, m, n, &layouts[(l + (size_t)n) % COUNT(layouts)]);
          matrix_new(&to, (enum type)y, m, n, &layouts[l]);
          for (size_t k = 0; k < from.b.bytes; k++) /* no NaN in any type; bools are 0 or 1 */
            from.b.mem[GUARD + k] = (unsigned char)(y == BOOL ? next() & 1 : next() & 0x3b);
          const struct kiln_arg args[2] = {{.tensor = &from.v.t}, {.tensor = &to.v.t}};
          interpret(&t, v, args, 2);
          for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++)
              if (memcmp(element(&from, i, j), element(&to, i, j), types[y].bits / 8u) != 0)
                fail_msg("%s, %d columns, %s: element %d, %d", types[y].name, (int)n,
                         layouts[l].name, (int)i, (int)j);
          check_outside(&to, layouts[l].name);
          buf_free(&from.b);
          buf_free(&to.b);
        }
      kiln_variant_free(v);
    }
  kiln_file_free(file);
  help_api_stop(&t);
}

/* ---- tensors beyond 2^31 elements ---- */

/* A tile at a far place, read and written; places come as scalars. */
static const char far_text[] =
    "return kernel { name = 'far',\n"
    "  const = { T = {e4m3, u8, s64} },\n"
    "  args = { inout('X', 'T', 'A', 'B', 'C'), scalar('i', s64), scalar('j', s64),\n"
    "           scalar('k', s64), out('Y', 'T', 2, 4) },\n"
    "  grid = function() return 1 end,\n"
    "  body = function(a, d, c)\n"
    "    local x = a.X:at(a.i):tile({a.j, a.k}, {2, 4})\n"
    "    a.Y:store({0, 0}, x)\n"
    "    a.X:at(a.i):store({a.j + 2, a.k}, x)\n"
    "    a.X:store({a.i, a.j + 4, a.k}, x:reshape(1, 2, 4))\n"
    "  end }\n";

static void far_check(struct help_api *t, struct kiln_variant *v, enum type type,
                      const int64_t shape[3], const int64_t stride[3], unsigned char *mem,
                      uint64_t origin, const int64_t at[3]) {
  size_t size = types[type].bits / 8u;
  unsigned char y[2 * 4 * 8], want[sizeof y] = {0};
  struct view vx, vy;
  const int64_t dims[2] = {2, 4}, steps[2] = {4, 1};
  view_of(&vx, mem, type, 3, shape, stride, origin * size);
  view_of(&vy, y, type, 2, dims, steps, 0);
  unsigned char *first = mem + (int64_t)size * ((int64_t)origin + at[0] * stride[0] +
                                                at[1] * stride[1] + at[2] * stride[2]);
  for (int64_t i = 0; i < 2; i++)
    for (int64_t j = 0; j < 4; j++) {
      bool inside = at[1] + i < shape[1] && at[2] + j < shape[2];
      unsigned char *p = first + (int64_t)size * (i * stride[1] + j * stride[2]);
      for (size_t k = 0; inside && k < size; k++)
        want[((size_t)(i * 4 + j)) * size + k] = p[k] = (unsigned char)(next() & 0x3b);
    }
  const struct kiln_arg args[5] = {{.tensor = &vx.t},
                                   {.number = (double)at[0]},
                                   {.number = (double)at[1]},
                                   {.number = (double)at[2]},
                                   {.tensor = &vy.t}};
  interpret(t, v, args, 5);
  assert_memory_equal(y, want, 8 * size);
  for (int64_t i = 2; i < 6; i++)
    for (int64_t j = 0; j < 4; j++) {
      const unsigned char *p = first + (int64_t)size * (i * stride[1] + j * stride[2]);
      bool inside = at[1] + i < shape[1] && at[2] + j < shape[2];
      if (inside && memcmp(p, want + (size_t)((i & 1) * 4 + j) * size, size) != 0)
        fail_msg("%s at %lld, %lld, %lld: row %d", types[type].name, (long long)at[0],
                 (long long)at[1], (long long)at[2], (int)i);
    }
}

static void test_beyond_31_bits(void **state) {
  (void)state;
  /* Address space, of which the pages that are touched alone take memory. */
  size_t room = (size_t)51200 * 51200 * 8 + 65536;
  unsigned char *mem =
      mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mem == MAP_FAILED) {
    print_message("SKIP: no %zu bytes of address space\n", room);
    skip();
  }
  static const struct {
    enum type t;
    int64_t shape[3];
  } tensors[] = {{E4M3, {320, 2560, 3072}}, {E4M3, {1, 51200, 51200}}, {U8, {51200, 51200, 1}},
                 {S64, {2, 25600, 51200}},  {U8, {3, 46341, 46341}},   {S64, {1, 46341, 46341}}};
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "far.lua", far_text);
  for (size_t k = 0; k < COUNT(tensors); k++) {
    char text[16];
    snprintf(text, sizeof text, "T=%s", types[tensors[k].t].name);
    const char *consts[] = {text};
    struct kiln_variant *v = specialise(file, NULL, 1, consts, 0, NULL);
    const int64_t *s = tensors[k].shape;
    const int64_t dense[3] = {s[1] * s[2], s[2], 1}, turned[3] = {1, s[0], s[0] * s[1]};
    const int64_t back[3] = {-dense[0], -dense[1], -1};
    const int64_t places[][3] = {{0, 0, 0},
                                 {s[0] - 1, s[1] - 6, s[2] - 4},
                                 {s[0] - 1, s[1] - 7, s[2] - 3},
                                 {s[0] / 2, s[1] / 2, s[2] / 2},
                                 {s[0] - 1, s[1] - 1, s[2] - 1}};
    for (size_t p = 0; p < COUNT(places); p++) {
      int64_t at[3];
      for (int d = 0; d < 3; d++)
        at[d] = places[p][d] < 0 ? 0 : places[p][d];
      far_check(&t, v, tensors[k].t, s, dense, mem, 0, at);
      far_check(&t, v, tensors[k].t, s, turned, mem, 0, at);
      far_check(&t, v, tensors[k].t, s, back, mem, (uint64_t)(s[0] * s[1] * s[2] - 1), at);
    }
    kiln_variant_free(v);
  }
  kiln_file_free(file);
  help_api_stop(&t);
  assert_int_equal(munmap(mem, room), 0);
}

/* Strides of 0 make tensors of any size of one row: all elements count, offsets pass 2^31. */
static void test_beyond_31_bits_in_no_memory(void **state) {
  (void)state;
  static const char text[] =
      "return kernel { name = 'pick',\n"
      "  args = { tensor('X', u8, 'M', 'N'), scalar('i', s64), out('Y', s32, 1, 8) },\n"
      "  grid = function() return 1 end,\n"
      "  body = function(a, d)\n"
      "    local n = d.M * d.N - a.i * d.N\n"
      "    local here = cast(a.X:tile({a.i, d.N - 8}, {1, 8}), s32)\n"
      "    a.Y:store({0, 0}, here + cast((n // d.N) % 1000, s32))\n"
      "  end }\n";
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "pick.lua", text);
  struct kiln_variant *v = specialise(file, NULL, 0, NULL, 0, NULL);
  static const int64_t rows[] = {1,
                                 1 << 24,
                                 INT64_C(1) << 27,
                                 (INT64_C(1) << 31) - 1,
                                 INT64_C(1) << 31,
                                 INT64_C(1) << 33,
                                 INT64_C(1) << 45};
  unsigned char row[64];
  for (int i = 0; i < 64; i++)
    row[i] = (unsigned char)i;
  for (size_t r = 0; r < COUNT(rows); r++)
    for (int64_t back = 1; back <= 3 && back <= rows[r]; back++) {
      int32_t y[8];
      struct view vx, vy;
      const int64_t shape[2] = {rows[r], 64}, stride[2] = {0, 1}, dims[2] = {1, 8}, one[2] = {8, 1};
      view_of(&vx, row, U8, 2, shape, stride, 0);
      view_of(&vy, y, S32, 2, dims, one, 0);
      const struct kiln_arg args[3] = {
          {.tensor = &vx.t}, {.number = (double)(rows[r] - back)}, {.tensor = &vy.t}};
      interpret(&t, v, args, 3);
      for (int j = 0; j < 8; j++)
        assert_int_equal(y[j], 56 + j + back);
    }
  kiln_variant_free(v);
  kiln_file_free(file);
  help_api_stop(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tails_of_k),     cmocka_unit_test(test_tails_of_m_and_n),
      cmocka_unit_test(test_layouts),        cmocka_unit_test(test_stores_at_edges),
      cmocka_unit_test(test_beyond_31_bits), cmocka_unit_test(test_beyond_31_bits_in_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
