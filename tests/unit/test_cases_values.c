/* Kinds of problems that broke other systems, swept around the values that did it, in the
 * interpreter through the public API: special values and roundings, accumulation, grids of every
 * size, splits of K, block scales, attention over sequences of every length. Layouts and edges:
 * test_cases_layout.c. */
#include "help_api.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

enum type { F32, F16, BF16, E4M3, S8, S32 };

static const struct {
  uint8_t code, bits;
} types[] = {{2, 32}, {2, 16}, {4, 16}, {10, 8}, {0, 8}, {0, 32}};

/* A dense tensor; n: 0 for rank 1. */
struct view {
  struct kiln_tensor t;
  int64_t shape[3];
};

static const struct kiln_tensor *dense(struct view *v, void *data, enum type t, int rank, int64_t m,
                                       int64_t n, int64_t k) {
  *v = (struct view){.t = {.data = data,
                           .device_type = 1,
                           .ndim = rank,
                           .dtype_code = types[t].code,
                           .dtype_bits = types[t].bits,
                           .dtype_lanes = 1},
                     .shape = {m, n, k}};
  v->t.shape = v->shape;
  return &v->t;
}

static void *make(size_t n, size_t size) {
  void *p = calloc(n + 1, size);
  assert_non_null(p);
  return p;
}

static uint32_t seed;

static uint32_t next(void) {
  seed = seed * 1664525u + 1013904223u;
  return seed >> 8;
}

static uint32_t bits_of(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

static float from_bits(uint32_t u) {
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}

static bool same(float a, float b) {
  return isnan(a) ? isnan(b) : bits_of(a) == bits_of(b);
}

static void interpret(struct help_api *t, struct kiln_variant *v, const struct kiln_arg *args,
                      uint32_t n) {
  help_api_expect(t, kiln_interpret(v, args, n, false), KILN_OK, NULL);
}

/* ---- roundings ---- */

/* From the format's definition: 4 bits of exponent, bias 7, no infinity. */
static float e4m3_value(uint8_t c) {
  int e = c >> 3 & 15, m = c & 7;
  float x = e ? ldexpf((float)(8 + m), e - 10) : ldexpf((float)m, -9);
  if ((c & 0x7f) == 0x7f)
    return NAN;
  return c & 0x80 ? -x : x;
}

/* The nearest of all codes, ties to the even one; beyond the largest, the largest. */
static uint8_t to_e4m3(float x) {
  if (isnan(x))
    return 0x7f;
  float a = fabsf(x);
  uint8_t best = 0;
  for (uint8_t c = 1; c < 0x7f; c++) {
    float d = fabsf(e4m3_value(c) - a), b = fabsf(e4m3_value(best) - a);
    if (d < b || (d <= b && !(c & 1)))
      best = c;
  }
  if (a > 448)
    best = 0x7e;
  return signbit(x) ? best | 0x80 : best;
}

static uint16_t to_bf16(float x) {
  uint32_t u = bits_of(x);
  return isnan(x) ? 0x7fff : (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static int8_t to_s8(float x) {
  return isnan(x) ? 0 : x <= -128 ? -128 : x >= 127 ? 127 : (int8_t)lrintf(x);
}

/* Values where formats end, tie, lose bits, or have none for them. */
static size_t make_values(float *x) {
  size_t n = 0;
  for (int i = 0; i <= 300; i++)
    x[n++] = 400 + 0.5f * (float)i; /* around 448 and 464, where e4m3 ends */
  for (int i = 0; i <= 200; i++)
    x[n++] = ldexpf((float)i, -13); /* its denormals and their ties */
  for (int i = 0; i <= 80; i++)
    x[n++] = 110 + 0.25f * (float)i; /* around 127.5 and 128 */
  for (int i = 0; i <= 200; i++)
    x[n++] = from_bits(0x3f800000u + (uint32_t)i * 0x1555u); /* ties of bf16 */
  for (uint32_t i = 0; i <= 64; i++)
    x[n++] = from_bits(0x7f7f0000u + i * 0x400u); /* where bf16 becomes infinite */
  for (uint32_t i = 0; i < 23; i++)
    x[n++] = from_bits(0x7f800000u + (1u << i)); /* NaN by any one bit */
  for (uint32_t i = 0; i < 31; i++)
    x[n++] = from_bits(1u << i); /* denormals, and normal powers of two */
  x[n++] = INFINITY;
  x[n++] = FLT_MAX;
  x[n++] = FLT_MIN;
  x[n++] = from_bits(0x007fffffu);
  x[n++] = 0;
  for (size_t i = 0, half = n; i < half; i++)
    x[n++] = -x[i];
  return n;
}

static void test_special_values(void **state) {
  (void)state;
  static const char text[] =
      "return kernel { name = 'k', args = { tensor('X', f32, 'N'), out('E', e4m3, 'N'),\n"
      "    out('B', bf16, 'N'), out('I', s8, 'N'), out('D', f32, 'N'), out('S', f32, 'N', 8) },\n"
      "  grid = function(d) return cdiv(d.N, 64) end,\n"
      "  body = function(a, d, c, i)\n"
      "    local n = i * 64\n"
      "    local x = a.X:tile({n}, {64})\n"
      "    local e = cast(x, e4m3)\n"
      "    a.E:store({n}, e)\n"
      "    a.B:store({n}, cast(x, bf16))\n"
      "    a.I:store({n}, cast(x, s8))\n"
      "    a.D:store({n}, cast(e, f32))\n"
      "    for j, y in ipairs {x * 1, x + 0, -x, abs(x), x * 0.5, x - x, max(x, 0), x * -0.0} do\n"
      "      a.S:store({n, j - 1}, y:col())\n"
      "    end\n"
      "  end }\n";
  enum { MOST = 2048 };
  float *x = make(MOST, sizeof *x), *d = make(MOST, sizeof *d), *s = make(MOST * 8, sizeof *s);
  uint8_t *e = make(MOST, 1);
  uint16_t *b = make(MOST, sizeof *b);
  int8_t *q = make(MOST, 1);
  int64_t n = (int64_t)make_values(x);
  assert_true(n > 1500 && n <= MOST);
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "k.lua", text);
  struct kiln_variant *v = help_api_specialise(file, NULL);
  struct view w[6];
  const struct kiln_arg args[6] = {
      {.tensor = dense(&w[0], x, F32, 1, n, 0, 0)},  {.tensor = dense(&w[1], e, E4M3, 1, n, 0, 0)},
      {.tensor = dense(&w[2], b, BF16, 1, n, 0, 0)}, {.tensor = dense(&w[3], q, S8, 1, n, 0, 0)},
      {.tensor = dense(&w[4], d, F32, 1, n, 0, 0)},  {.tensor = dense(&w[5], s, F32, 2, n, 8, 0)}};
  interpret(&t, v, args, 6);
  for (int64_t i = 0; i < n; i++) {
    uint8_t code = to_e4m3(x[i]);
    bool ok = isnan(x[i]) ? (e[i] & 0x7f) == 0x7f : e[i] == code;
    ok &= same(d[i], e4m3_value(code));
    bool nan16 = (b[i] & 0x7f80) == 0x7f80 && (b[i] & 0x7f);
    ok &= isnan(x[i]) ? nan16 : b[i] == to_bf16(x[i]);
    ok &= q[i] == to_s8(x[i]);
    const volatile float one = 1, half = 0.5f, zero = 0;
    const float want[8] = {x[i] * one,
                           x[i] + zero,
                           -x[i],
                           fabsf(x[i]),
                           x[i] * half,
                           x[i] - x[i],
                           isnan(x[i]) || x[i] > 0 ? x[i] : 0,
                           x[i] * -zero};
    for (int j = 0; j < 8; j++)
      if (!same(s[i * 8 + j], want[j]) && !(j == 6 && want[j] == 0 && s[i * 8 + j] == 0))
        fail_msg("%a: expression %d gives %a, not %a", (double)x[i], j, (double)s[i * 8 + j],
                 (double)want[j]);
    if (!ok)
      fail_msg("%a (%08x): e4m3 %02x, not %02x; back %a; bf16 %04x, not %04x; s8 %d, not %d",
               (double)x[i], bits_of(x[i]), e[i], code, (double)d[i], b[i], to_bf16(x[i]), q[i],
               to_s8(x[i]));
  }
  kiln_variant_free(v);
  kiln_file_free(file);
  help_api_stop(&t);
  free(x);
  free(d);
  free(s);
  free(e);
  free(b);
  free(q);
}

/* Rows of a softmax that is masked in part, altogether, and by what is no number. */
static void test_masked_rows(void **state) {
  (void)state;
  enum { N = 9, ROWS = 6 };
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = NULL;
  help_api_expect(&t, kiln_file_load(t.ctx, KILN_SRC_DIR "/kernels_ref/softmax.lua", NULL, &file),
                  KILN_OK, NULL);
  for (int n = 1; n <= N; n++)
    for (int at = 0; at < n; at++) {
      float x[ROWS * N], y[ROWS * N];
      char dim[16];
      snprintf(dim, sizeof dim, "N=%d", n);
      const char *consts[] = {"T=f32", dim};
      struct kiln_request r = help_api_request();
      r.n_consts = 2;
      r.consts = consts;
      struct kiln_variant *v = help_api_specialise(file, &r);
      const float marks[ROWS] = {-INFINITY, 3, INFINITY, NAN, -FLT_MAX, 0};
      for (int row = 0; row < ROWS; row++)
        for (int j = 0; j < n; j++)
          x[row * n + j] = j == at ? marks[row] : row == 5 ? -0.0f : -INFINITY;
      struct view vx, vy;
      const struct kiln_arg args[2] = {{.tensor = dense(&vx, x, F32, 2, ROWS, n, 0)},
                                       {.tensor = dense(&vy, y, F32, 2, ROWS, n, 0)}};
      interpret(&t, v, args, 2);
      for (int j = 0; j < n; j++) {
        assert_true(isnan(y[0 * n + j]));                 /* nothing is left: 0 / 0 */
        assert_true(same(y[1 * n + j], j == at ? 1 : 0)); /* one is left */
        assert_true(isnan(y[2 * n + j]));                 /* inf - inf */
        assert_true(isnan(y[3 * n + j]));
        assert_true(same(y[4 * n + j], j == at ? 1 : 0)); /* however low */
        assert_true(fabsf(y[5 * n + j] - 1 / (float)n) < 1e-6f);
      }
      kiln_variant_free(v);
    }
  kiln_file_free(file);
  help_api_stop(&t);
}

/* ---- accumulation ---- */

static const char dot_text[] =
    "return kernel { name = 'dot', const = { T = {f32, e4m3}, P = {'ieee', 'tf32', 'tf32x3', 'fast'} },\n"
    "  args = { tensor('A', 'T', 16, 'K'), tensor('B', 'T', 8, 'K'), out('C', f32, 16, 8) },\n"
    "  tune = { BK = {32} }, grid = function() return 1 end,\n"
    "  body = function(a, d, c)\n"
    "    local acc, o = zeros(f32, 16, 8), {prec = c.P}\n"
    "    for k in range(0, d.K, c.BK) do\n"
    "      acc = dot(a.A:tile({0, k}, {16, c.BK}), a.B:tile({0, k}, {8, c.BK}):T(), acc, o)\n"
    "    end\n"
    "    a.C:store({0, 0}, acc)\n"
    "  end }\n";

static struct kiln_variant *dot_of(struct help_api *t, struct kiln_file *file, const char *ct,
                                   const char *p, const char *bk) {
  const char *consts[] = {ct, p}, *set[] = {bk};
  struct kiln_request r = help_api_request();
  struct kiln_variant *v = NULL;
  r.n_consts = 2;
  r.consts = consts;
  r.n_set = 1;
  r.set = set;
  help_api_expect(t, kiln_specialise(file, &r, &v), KILN_OK, NULL);
  return v;
}

/* The largest product of e4m3 and then small ones: a sum that keeps fewer than 24 bits loses
 * them. */
static void test_long_sums_of_e4m3(void **state) {
  (void)state;
  static const int ks[] = {1, 33, 512, 1000, 4096, 20000};
  static const char *const bks[] = {"BK=16", "BK=32", "BK=120"};
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "dot.lua", dot_text);
  /* What the matrix unit may do is not what the kernel means. */
  for (size_t b = 0; b < COUNT(bks); b++) {
    struct kiln_variant *v = dot_of(&t, file, "T=e4m3", b ? "P=ieee" : "P=fast", bks[b]);
    for (size_t i = 0; i < COUNT(ks); i++) {
      int64_t k = ks[i];
      uint8_t *x = make((size_t)(16 * k), 1), *y = make((size_t)(8 * k), 1);
      float c[16 * 8];
      for (int64_t r = 0; r < 16; r++)
        for (int64_t p = 0; p < k; p++)
          x[r * k + p] = p == (r * 37) % k ? 0x7e : 0x38; /* 448, 1 */
      for (int64_t r = 0; r < 8; r++)
        for (int64_t p = 0; p < k; p++)
          y[r * k + p] = r == 0 && p < 20 ? 0x7e : 0x38;
      struct view w[3];
      const struct kiln_arg args[3] = {{.tensor = dense(&w[0], x, E4M3, 2, 16, k, 0)},
                                       {.tensor = dense(&w[1], y, E4M3, 2, 8, k, 0)},
                                       {.tensor = dense(&w[2], c, F32, 2, 16, 8, 0)}};
      interpret(&t, v, args, 3);
      for (int64_t r = 0; r < 16; r++)
        for (int64_t q = 0; q < 8; q++) {
          double want = 0;
          for (int64_t p = 0; p < k; p++)
            want += (double)e4m3_value(x[r * k + p]) * (double)e4m3_value(y[q * k + p]);
          if ((double)c[r * 8 + q] != want)
            fail_msg("K = %d, %s: [%d, %d] is %.9g, not %.9g", (int)k, bks[b], (int)r, (int)q,
                     (double)c[r * 8 + q], want);
        }
      free(x);
      free(y);
    }
    kiln_variant_free(v);
  }
  kiln_file_free(file);
  help_api_stop(&t);
}

/* Each bit of an f32 counts, unless tf32 is asked for: then the lower 13 are gone. */
static void test_f32_is_no_tf32(void **state) {
  (void)state;
  static const char *const precs[] = {"P=ieee", "P=tf32", "P=tf32x3"};
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "dot.lua", dot_text);
  for (size_t i = 0; i < COUNT(precs); i++) {
    struct kiln_variant *v = dot_of(&t, file, "T=f32", precs[i], "BK=8");
    for (uint32_t bit = 0; bit < 23; bit++) {
      float x[16] = {0}, y[8] = {0}, c[16 * 8];
      for (int r = 0; r < 16; r++)
        x[r] = from_bits(0x3f800000u | 1u << bit);
      for (int r = 0; r < 8; r++)
        y[r] = (float)(1 << r);
      struct view w[3];
      const struct kiln_arg args[3] = {{.tensor = dense(&w[0], x, F32, 2, 16, 1, 0)},
                                       {.tensor = dense(&w[1], y, F32, 2, 8, 1, 0)},
                                       {.tensor = dense(&w[2], c, F32, 2, 16, 8, 0)}};
      interpret(&t, v, args, 3);
      for (int q = 0; q < 16 * 8; q++) {
        float full = x[0] * y[q % 8], cut = y[q % 8];
        bool lost = i == 1 && bit < 13;
        /* Bit 12 is half of the last bit that is left: it rounds to even, which is down. */
        if (!same(c[q], lost ? cut : full) && !(i == 2 && fabsf(c[q] - full) <= full * 0x1p-21f))
          fail_msg("%s, bit %u: %a, not %a", precs[i], bit, (double)c[q],
                   (double)(lost ? cut : full));
      }
    }
    kiln_variant_free(v);
  }
  kiln_file_free(file);
  help_api_stop(&t);
}

/* ---- grids ---- */

/* Every element of every tile is counted once, whatever the grid, tails too. */
static void test_grids(void **state) {
  (void)state;
  static const char text[] =
      "return kernel { name = 'count', args = { inout('C', s32, 'M', 'N'), out('P', s32, 'I', 'J') },\n"
      "  grid = function(d) return d.I, d.J end,\n"
      "  body = function(a, d, c, i, j)\n"
      "    a.C:atomic_add({i * 2 + iota(0, 2), j * 3 + iota(1, 3)}, 1)\n"
      "    a.P:store({i, j}, cast(i * 1000 + j, s32))\n"
      "  end }\n";
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "count.lua", text);
  struct kiln_variant *v = help_api_specialise(file, NULL);
  int32_t c[80 * 120], p[40 * 40];
  for (int i = 1; i <= 40; i++)
    for (int j = 1; j <= 40; j += i % 4 ? 13 : 3) {
      int m = 2 * i - (i + j) % 2, n = 3 * j - (i * 7 + j) % 3;
      memset(c, 0, sizeof c);
      memset(p, 0xff, sizeof p);
      struct view vc, vp;
      const struct kiln_arg args[2] = {{.tensor = dense(&vc, c, S32, 2, m, n, 0)},
                                       {.tensor = dense(&vp, p, S32, 2, i, j, 0)}};
      interpret(&t, v, args, 2);
      for (int k = 0; k < m * n; k++)
        if (c[k] != 1)
          fail_msg("grid %d x %d: element %d written %d times", i, j, k, (int)c[k]);
      for (int k = 0; k < i * j; k++)
        assert_int_equal(p[k], k / j * 1000 + k % j);
    }
  kiln_variant_free(v);
  kiln_file_free(file);
  help_api_stop(&t);
}

/* ---- splits of K ---- */

/* C + A B^T in S parts of K that meet in atomics, through a workspace that starts as garbage. */
static const char split_text[] =
    "return kernel { name = 'split', const = { S = {4, any} },\n"
    "  args = { tensor('A', bf16, 'M', 'K'), tensor('B', bf16, 'N', 'K'),\n"
    "           inout('C', f32, 'M', 'N'), scratch('W', f32, 'S', 'M', 'N') },\n"
    "  grid = function(d, c) return cdiv(d.M, 16), cdiv(d.N, 8), c.S end,\n"
    "  body = function(a, d, c, i, j, s)\n"
    "    local m, n, acc = i * 16, j * 8, zeros(f32, 16, 8)\n"
    "    local part = cdiv(cdiv(d.K, 32), c.S) * 32\n"
    "    for k in range(s * part, min(d.K, s * part + part), 32) do\n"
    "      acc = acc + dot(a.A:tile({m, k}, {16, 32}), a.B:tile({n, k}, {8, 32}):T())\n"
    "    end\n"
    "    local w = a.W:at(s)\n"
    "    w:store({m, n}, acc)\n"
    "    a.C:atomic_add({m + iota(0, 16), n + iota(1, 8)}, w:tile({m, n}, {16, 8}))\n"
    "  end }\n";

static void split_check(struct help_api *t, struct kiln_variant *v, int s, int64_t m, int64_t n,
                        int64_t k) {
  uint16_t *a = make((size_t)(m * k), sizeof *a), *b = make((size_t)(n * k), sizeof *b);
  float *c = make((size_t)(m * n), sizeof *c), *want = make((size_t)(m * n), sizeof *want);
  for (int64_t i = 0; i < m * k; i++)
    a[i] = to_bf16((float)(next() % 5));
  for (int64_t i = 0; i < n * k; i++)
    b[i] = to_bf16((float)(next() % 4) - 1);
  for (int64_t i = 0; i < m * n; i++)
    c[i] = want[i] = (float)(next() % 100);
  struct view w[3];
  const struct kiln_arg args[4] = {{.tensor = dense(&w[0], a, BF16, 2, m, k, 0)},
                                   {.tensor = dense(&w[1], b, BF16, 2, n, k, 0)},
                                   {.tensor = dense(&w[2], c, F32, 2, m, n, 0)}};
  for (int launch = 1; launch <= 2; launch++) { /* the second adds to what the first left */
    interpret(t, v, args, 3);
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) {
        for (int64_t p = 0; p < k; p++)
          want[i * n + j] +=
              from_bits((uint32_t)a[i * k + p] << 16) * from_bits((uint32_t)b[j * k + p] << 16);
        if (!same(c[i * n + j], want[i * n + j]))
          fail_msg("%d parts, M, N, K = %d, %d, %d, launch %d: C[%d, %d] is %g, not %g", s, (int)m,
                   (int)n, (int)k, launch, (int)i, (int)j, (double)c[i * n + j],
                   (double)want[i * n + j]);
      }
  }
  free(a);
  free(b);
  free(c);
  free(want);
}

static void test_splits_of_k(void **state) {
  (void)state;
  static const int sizes[][2] = {{1, 1}, {3, 9}, {17, 8}, {33, 20}};
  static const int ks[] = {0, 1, 31, 32, 33, 250, 1001, 4096};
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "split.lua", split_text);
  for (int s = 1; s <= 9; s++) {
    char text[16];
    snprintf(text, sizeof text, "S=%d", s);
    const char *consts[] = {text};
    struct kiln_request r = help_api_request();
    r.n_consts = 1;
    r.consts = consts;
    struct kiln_variant *v = help_api_specialise(file, &r);
    for (size_t i = 0; i < COUNT(sizes); i++)
      for (size_t k = 0; k < COUNT(ks); k++)
        if (ks[k] < 1001 || sizes[i][0] < 17)
          split_check(&t, v, s, sizes[i][0], sizes[i][1], ks[k]);
    kiln_variant_free(v);
  }
  kiln_file_free(file);
  help_api_stop(&t);
}

/* ---- block scales ---- */

/* The scale of each row and each block of 128 of k and n, at the block's ends, for M around the
 * tile's multiples. */
static void test_block_scales(void **state) {
  (void)state;
  static const char text[] =
      "return kernel { name = 'scales',\n"
      "  args = { tensor('SA', f32, 'M', 'KB'), tensor('SB', f32, 'NB', 'KB'),\n"
      "           out('C', f32, 'M', 'KB', 'NB') },\n"
      "  tune = { BM = {128}, BK = {128} },\n"
      "  grid = function(d, c) return cdiv(d.M, c.BM), d.KB * (128 // c.BK) end,\n"
      "  body = function(a, d, c, i, kb)\n"
      "    local m, k = i * c.BM, kb * c.BK\n"
      "    local SA, SB = a.SA:every(1, 128), a.SB:every(0, 128):every(1, 128)\n"
      "    if (k + c.BK) % 128 == 0 then\n"
      "      for n in range(0, d.NB) do\n"
      "        local x = SA:tile({m, k}, {c.BM, 1}) * 1000\n"
      "        local y = SB:at(n * 128 + n % 128, k + c.BK - 1)\n"
      "        a.C:store({m, k // 128, n}, (x + y):reshape(c.BM, 1, 1))\n"
      "      end\n"
      "    end\n"
      "  end }\n";
  static const char *const sets[][2] = {
      {"BM=128", "BK=128"}, {"BM=64", "BK=32"}, {"BM=96", "BK=64"}};
  enum { KB = 16, NB = 3 };
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "scales.lua", text);
  float *sa = make(1100 * KB, sizeof *sa), sb[NB * KB], *c = make(1100 * KB * NB, sizeof *c);
  for (int i = 0; i < 1100 * KB; i++)
    sa[i] = (float)(next() % 64);
  for (int i = 0; i < NB * KB; i++)
    sb[i] = (float)i;
  for (size_t s = 0; s < COUNT(sets); s++) {
    struct kiln_request r = help_api_request();
    r.n_set = 2;
    r.set = sets[s];
    struct kiln_variant *v = help_api_specialise(file, &r);
    for (int m = 1000; m <= 1100; m += s ? 7 : 3) {
      struct view w[3];
      const struct kiln_arg args[3] = {{.tensor = dense(&w[0], sa, F32, 2, m, KB, 0)},
                                       {.tensor = dense(&w[1], sb, F32, 2, NB, KB, 0)},
                                       {.tensor = dense(&w[2], c, F32, 3, m, KB, NB)}};
      memset(c, 0xff, (size_t)m * KB * NB * sizeof *c);
      interpret(&t, v, args, 3);
      for (int i = 0; i < m * KB * NB; i++) {
        int k = i / NB % KB, n = i % NB;
        if (!same(c[i], sa[i / NB] * 1000 + sb[n * KB + k]))
          fail_msg("M = %d: row %d, block %d of k, %d of n", m, i / (NB * KB), k, n);
      }
    }
    kiln_variant_free(v);
  }
  kiln_file_free(file);
  help_api_stop(&t);
  free(sa);
  free(c);
}

/* ---- attention ---- */

static void attention_case(struct help_api *t, struct kiln_file *file, int h, int g, int m, int n,
                           bool causal, int window) {
  char text[6][24];
  const char *shapes[6], *consts[2], *set[2] = {"BM=32", "BN=32"};
  const struct kiln_report *report;
  const int dims[6] = {1, h, g, m, n, 16};
  for (int d = 0; d < 6; d++) {
    snprintf(text[d], sizeof text[d], "%c=%d", "BHGMND"[d], dims[d]);
    shapes[d] = text[d];
  }
  char w[24];
  snprintf(w, sizeof w, "window=%d", window);
  consts[0] = causal ? "causal=true" : "causal=false";
  consts[1] = w;
  struct kiln_request r = help_api_request();
  r.kernel = "attention";
  r.n_shapes = 6;
  r.shapes = shapes;
  r.n_consts = 2;
  r.consts = consts;
  r.n_set = 2;
  r.set = set;
  r.seed = (uint64_t)(m * 1000 + n);
  static const char *const absent[] = {"L"};
  r.n_absent = 1;
  r.absent = absent;
  if (kiln_run_case(file, &r, KILN_ON_INTERP, KILN_CASE_VERIFY, &report) != KILN_OK)
    fail_msg("H %d, G %d, M %d, N %d, %s, window %d: %s", h, g, m, n, consts[0], window,
             kiln_diag_text(t->ctx, 0));
  if (report->level != KILN_LEVEL_VERIFIED)
    fail_msg("M %d, N %d: not verified", m, n);
}

/* Queries and keys around and off the tile, one longer than the other, heads that share keys. */
static void test_attention_shapes(void **state) {
  (void)state;
  static const int sizes[] = {1, 2, 31, 32, 33, 62, 63, 64, 65, 100};
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = NULL;
  help_api_expect(&t, kiln_file_load(t.ctx, KILN_SRC_DIR "/kernels_ref/attention.lua", NULL, &file),
                  KILN_OK, NULL);
  for (size_t i = 0; i < COUNT(sizes); i++)
    for (size_t j = 0; j < COUNT(sizes); j++)
      attention_case(&t, file, 1, 1, sizes[i], sizes[j], (i + j) % 2, (i * 3 + j) % 4 ? 0 : 17);
  for (int share = 1; share <= 16; share++)
    attention_case(&t, file, 2 * share, 2, 5, 35, share % 2, 0);
  kiln_file_free(file);
  help_api_stop(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_special_values),
      cmocka_unit_test(test_masked_rows),
      cmocka_unit_test(test_long_sums_of_e4m3),
      cmocka_unit_test(test_f32_is_no_tf32),
      cmocka_unit_test(test_grids),
      cmocka_unit_test(test_splits_of_k),
      cmocka_unit_test(test_block_scales),
      cmocka_unit_test(test_attention_shapes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
