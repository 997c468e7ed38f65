/* Kinds of problems that broke other systems (docs/cases.md), where a case of a file does not
 * reach: one lowered kernel over many shapes, several launches on the same memory, tensors of which
 * nearly nothing is there. On the emulator, from the variant's machine module. In short a selection
 * of the grids; KILN_LONG=1: all of them. */
#include "api/api.h"
#include "codegen/emu.h"
#include "help_api.h"
#include "help_mach.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define COUNT(a)  (sizeof(a) / sizeof(a)[0])
#define MOST_LIST 8

/* ---- lowered kernels ---- */

struct machine {
  struct help_api api;
  struct kiln_file *file;
  struct kiln_variant *v;
};

static void request_lists(struct kiln_request *r, const char *const *shapes, const char *const *set,
                          const char *const *strides) {
  r->target = "sm_90a";
  for (r->shapes = shapes; r->n_shapes < MOST_LIST && shapes && shapes[r->n_shapes];)
    r->n_shapes++;
  for (r->set = set; r->n_set < MOST_LIST && set && set[r->n_set];)
    r->n_set++;
  for (r->strides = strides; r->n_strides < MOST_LIST && strides && strides[r->n_strides];)
    r->n_strides++;
}

static void lower(struct machine *m, const char *text, const char *const *shapes,
                  const char *const *set, const char *const *strides) {
  memset(m, 0, sizeof *m);
  help_api_start(&m->api, NULL);
  m->file = help_api_load(&m->api, "case.lua", text);
  struct kiln_request r = help_api_request();
  request_lists(&r, shapes, set, strides);
  help_api_expect(&m->api, kiln_specialise(m->file, &r, &m->v), KILN_OK, NULL);
  help_api_expect(&m->api, api_lower(m->v), KILN_OK, NULL);
}

static void drop(struct machine *m) {
  kiln_variant_free(m->v);
  kiln_file_free(m->file);
  help_api_stop(&m->api);
}

static struct interp_arg matrix(void *data, enum dtype t, int64_t rows, int64_t cols,
                                int64_t stride) {
  struct interp_arg a = {0};
  a.tensor = (struct interp_tensor){data, t, 2, {rows, cols}, {stride, 1}, 0};
  return a;
}

/* NULL, or what was wrong. */
static const char *emulate(struct machine *m, const struct interp_arg *args, uint32_t n,
                           uint32_t mode, int64_t sms) {
  struct kiln_context *ctx = m->api.ctx;
  struct emu_options opt = {.sm_count = sms};
  emu_choose_run(&opt, mode % EMU_RUNS, mode);
  if (emu_run(m->v->machine, args, n, &opt, NULL, &ctx->diags, &ctx->mem))
    return NULL;
  return kiln_diag_count(ctx) ? kiln_diag_text(ctx, 0) : "nothing was said";
}

static bool has_role(const struct machine *m, const char *name) {
  const struct ir_module *x = m->v->machine;
  for (uint32_t i = 0; i < x->roles.n; i++)
    if (str_eq(ir_sym(x, x->roles.at[i].name), name))
      return true;
  return false;
}

/* ---- case 7: every tile is written once, whatever the raster ---- */

static const char tiles_text[] =
    "return kernel { name = 'tiles', args = { inout('C', s32, 'I', 'J'), out('P', s32, 'I', 'J') },\n"
    "  grid = function(d) return d.I, d.J end,\n"
    "  body = function(a, d, c, i, j)\n"
    "    a.C:atomic_add({i + iota(0, 1), j + iota(1, 1)}, 1)\n"
    "    a.P:store({i, j}, cast(i * 1000 + j, s32))\n"
    "  end }\n";

/* C + A B^T: what is computed twice is added twice. */
static const char product_text[] =
    "return kernel { name = 'product', const = { O = {f32} },\n"
    "  args = { tensor('A', f16, 'M', 'K'), tensor('B', f16, 'N', 'K'), inout('C', f32, 'M', 'N') },\n"
    "  tune = { BM = {64}, BN = {8}, BK = {16} },\n"
    "  grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end,\n"
    "  body = function(a, d, c, i, j)\n"
    "    local acc = zeros(f32, c.BM, c.BN)\n"
    "    for k in range(0, d.K, c.BK) do\n"
    "      acc = acc + dot(a.A:tile({i * c.BM, k}, {c.BM, c.BK}),\n"
    "                      a.B:tile({j * c.BN, k}, {c.BN, c.BK}):T())\n"
    "    end\n"
    "    local at, size = {i * c.BM, j * c.BN}, {c.BM, c.BN}\n"
    "    a.C:store(at, acc + a.C:tile(at, size))\n"
    "  end }\n";

/* The orders that there are, those of kernels with a producer last. One more needs one line. */
static const char *const rasters[][3] = {
    {"group=1"},
    {"group=4"},
    {"group=8"},
    {"group=16"},
    {NULL}, /* as the rule has it */
    {"cluster=2", "cluster_axis=1"},
    {"cluster=4", "cluster_axis=1", "group=4"},
};
enum { ANY_KERNEL = 5 };

static bool is_taken(int i, int j, int step) {
  return getenv("KILN_LONG") || (i * 7 + j * 3) % step == 0 || (i == 40 && j == 40);
}

static void tiles_are_written_once(void **state) {
  (void)state;
  static const char *const shapes[] = {"I=37", "J=39",
                                       NULL}; /* of a class that all others are of */
  int32_t *c = malloc(1600 * sizeof *c), *p = malloc(1600 * sizeof *p);
  assert_true(c && p);
  for (size_t r = 0; r < ANY_KERNEL; r++) {
    struct machine m;
    lower(&m, tiles_text, shapes, rasters[r], NULL);
    for (int i = 1; i <= 40; i++)
      for (int j = 1; j <= 40; j++) {
        if (!is_taken(i, j, 67))
          continue;
        memset(c, 0, 1600 * sizeof *c);
        memset(p, 0xff, 1600 * sizeof *p);
        const struct interp_arg args[2] = {matrix(c, DT_S32, i, j, j), matrix(p, DT_S32, i, j, j)};
        const char *why = emulate(&m, args, 2, (uint32_t)(i * 40 + j), 132);
        if (why)
          fail_msg("%s, grid %d x %d: %s", rasters[r][0], i, j, why);
        for (int k = 0; k < i * j; k++)
          if (c[k] != 1 || p[k] != k / j * 1000 + k % j)
            fail_msg("%s, grid %d x %d: tile %d, %d was computed %d times and says %d",
                     rasters[r][0], i, j, k / j, k % j, (int)c[k], (int)p[k]);
      }
    drop(&m);
  }
  free(c);
  free(p);
}

static uint16_t small_half(int x) { /* 0 to 2 */
  return x == 0 ? 0 : x == 1 ? 0x3c00 : 0x4000;
}

/* A[i, k] = i % 3 and B = 1, so that C[i, j] gains K (i % 3). */
static void persistent_tiles_are_written_once(void **state) {
  (void)state;
  enum { K = 16, ROWS = 64 * 40, COLS = 8 * 40 };
  static const char *const shapes[] = {"M=2367", "N=312", "K=16", NULL};
  static const int sms[] = {132, 1, 3, 7};
  uint16_t *a = malloc(sizeof *a * ROWS * K), *b = malloc(sizeof *b * COLS * K);
  float *c = malloc(sizeof *c * ROWS * COLS);
  assert_true(a && b && c);
  for (int i = 0; i < ROWS * K; i++)
    a[i] = small_half(i / K % 3);
  for (int i = 0; i < COLS * K; i++)
    b[i] = small_half(1);
  for (size_t r = 0; r < COUNT(rasters); r++) {
    const char *set[5] = {"warpgroups=1"};
    for (int k = 0; k < 3; k++)
      set[k + 1] = rasters[r][k];
    struct machine m;
    lower(&m, product_text, shapes, set, NULL);
    assert_true(has_role(&m, "producer"));
    for (int i = 1; i <= 40; i++)
      for (int j = 1; j <= 40; j++) {
        if (!is_taken(i, j, 197))
          continue;
        int rows = 64 * i - (i + j) % 64, cols = 8 * j;
        for (int e = 0; e < rows * cols; e++)
          c[e] = (float)(e % 5);
        const struct interp_arg args[3] = {matrix(a, DT_F16, rows, K, K),
                                           matrix(b, DT_F16, cols, K, K),
                                           matrix(c, DT_F32, rows, cols, cols)};
        const char *why = emulate(&m, args, 3, (uint32_t)(i + j), sms[(i + j) % 4]);
        if (why)
          fail_msg("%s, grid %d x %d: %s", rasters[r][0], i, j, why);
        for (int e = 0; e < rows * cols; e++)
          if (c[e] != (float)(e % 5 + K * (e / cols % 3)))
            fail_msg("%s, grid %d x %d, %d SMs: C[%d, %d] is %g, not %d", rasters[r][0], i, j,
                     sms[(i + j) % 4], e / cols, e % cols, (double)c[e],
                     e % 5 + K * (e / cols % 3));
      }
    drop(&m);
  }
  free(a);
  free(b);
  free(c);
}

/* ---- case 9: split-K, launched twice on what the first launch left ---- */

static uint32_t seed = 1;

static uint32_t next(void) {
  seed = seed * 1664525u + 1013904223u;
  return seed >> 8;
}

static uint16_t any_half(void) { /* of all sizes: sums round */
  return (uint16_t)(0x3000 + next() % 0x1000 + (next() % 2 ? 0x8000 : 0));
}

struct split {
  uint16_t *a, *b;
  float *c;
  int m, n, k;
};

static void launch(struct machine *m, const struct split *s, uint32_t mode, const char *what) {
  const struct interp_arg args[3] = {matrix(s->a, DT_F16, s->m, s->k, s->k),
                                     matrix(s->b, DT_F16, s->n, s->k, s->k),
                                     matrix(s->c, DT_F32, s->m, s->n, s->n)};
  const char *why = emulate(m, args, 3, mode, 132);
  if (why)
    fail_msg("%s, %d x %d x %d: %s", what, s->m, s->n, s->k, why);
}

/* Whole numbers: exact, and the second launch adds the product once more. */
static void adds_exactly(struct machine *m, struct split *s, const char *what) {
  for (int i = 0; i < s->m * s->k; i++)
    s->a[i] = small_half((int)(next() % 3));
  for (int i = 0; i < s->n * s->k; i++)
    s->b[i] = small_half((int)(next() % 2));
  for (int i = 0; i < s->m * s->n; i++)
    s->c[i] = (float)(i % 7);
  for (int time = 1; time <= 2; time++) {
    launch(m, s, next(), what);
    for (int i = 0; i < s->m; i++)
      for (int j = 0; j < s->n; j++) {
        int sum = 0;
        for (int k = 0; k < s->k; k++)
          sum += (s->a[i * s->k + k] == 0x4000 ? 2 : s->a[i * s->k + k] != 0) *
                 (s->b[j * s->k + k] != 0);
        float want = (float)((i * s->n + j) % 7 + time * sum);
        if (s->c[i * s->n + j] != want)
          fail_msg("%s, %d x %d x %d, launch %d: C[%d, %d] is %g, not %g", what, s->m, s->n, s->k,
                   time, i, j, (double)s->c[i * s->n + j], (double)want);
      }
  }
}

/* Numbers whose sums depend on their order: the same bits in whatever order programs run. */
static void repeats_each_bit(struct machine *m, struct split *s, const char *what) {
  size_t bytes = sizeof(float) * (size_t)(s->m * s->n);
  float *first = malloc(bytes);
  assert_non_null(first);
  for (int i = 0; i < s->m * s->k; i++)
    s->a[i] = any_half();
  for (int i = 0; i < s->n * s->k; i++)
    s->b[i] = any_half();
  for (uint32_t mode = 0; mode < EMU_RUNS + 3; mode++) {
    for (int i = 0; i < s->m * s->n; i++)
      s->c[i] = (float)i * 0.1f;
    launch(m, s, mode, what);
    if (mode == 0)
      memcpy(first, s->c, bytes);
    else if (memcmp(first, s->c, bytes) != 0)
      fail_msg("%s, %d x %d x %d: other bits in mode %u", what, s->m, s->n, s->k, mode);
  }
  free(first);
}

static void splits_of_k(void **state) {
  (void)state;
  static const struct {
    const char *const set[6], *const shapes[4];
    int m, n, k;
  } rows[] = {
      {{"warpgroups=0", "split_k=3", "BM=16", "BK=32"}, {"M=5", "N=9", "K=700"}, 5, 9, 700},
      {{"warpgroups=0", "split_k=16"}, {"M=17", "N=8", "K=1001"}, 17, 8, 1001},
      {{"warpgroups=0", "split_k=64"}, {"M=1", "N=1", "K=31"}, 1, 1, 31}, /* parts of nothing */
      {{"warpgroups=1", "split_k=2", "BK=32"}, {"M=70", "N=16", "K=520"}, 70, 16, 520},
      {{"warpgroups=1", "split_k=7", "BK=64"}, {"M=16", "N=8", "K=1000"}, 16, 8, 1000},
      {{"warpgroups=1", "split_k=16"}, {"M=64", "N=24", "K=40"}, 64, 24, 40},
  };
  for (size_t r = 0; r < COUNT(rows); r++) {
    struct split s = {.m = rows[r].m, .n = rows[r].n, .k = rows[r].k};
    struct machine m;
    s.a = malloc(sizeof *s.a * (size_t)(s.m * s.k));
    s.b = malloc(sizeof *s.b * (size_t)(s.n * s.k));
    s.c = malloc(sizeof *s.c * (size_t)(s.m * s.n));
    assert_true(s.a && s.b && s.c);
    lower(&m, product_text, rows[r].shapes, rows[r].set, NULL);
    assert_true(has_role(&m, "producer") == (rows[r].set[0][11] == '1'));
    adds_exactly(&m, &s, rows[r].set[1]);
    repeats_each_bit(&m, &s, rows[r].set[1]);
    drop(&m);
    free(s.a);
    free(s.b);
    free(s.c);
  }
}

/* Whatever the tile and the parts: what merges them has registers for it. */
static void splits_fit(void **state) {
  (void)state;
  static const int parts[] = {2, 3, 4, 8, 12, 16, 64};
  static const char *const shapes[] = {"M=17", "N=8", "K=2000", NULL};
  for (int bm = 16; bm <= 128; bm *= 2)
    for (int bn = 8; bn <= 128; bn *= 2)
      for (size_t p = 0; p < COUNT(parts); p++) {
        char text[3][32];
        const char *const set[] = {"warpgroups=0", text[0], text[1], text[2], NULL};
        snprintf(text[0], sizeof text[0], "BM=%d", bm);
        snprintf(text[1], sizeof text[1], "BN=%d", bn);
        snprintf(text[2], sizeof text[2], "split_k=%d", parts[p]);
        struct machine m;
        lower(&m, product_text, shapes, set, NULL);
        drop(&m);
      }
}

/* ---- case 6: elements beyond 2^31, in address space of which few pages are there ---- */

enum { FAR_ROWS = 66, FAR_COLS = 72, FAR_K = 72 };
#define FAR_STRIDE ((INT64_C(1) << 25) + 8)
#define FAR_ROOM   ((size_t)FAR_ROWS * (size_t)FAR_STRIDE * 2)

static void *address_space(void) {
  void *p = mmap(NULL, FAR_ROOM, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    print_message("SKIP: no %zu bytes of address space\n", FAR_ROOM);
    skip();
  }
  return p;
}

static const char far_text[] =
    "return kernel { name = 'far',\n"
    "  args = { tensor('A', f16, 'M', 'K'), tensor('B', f16, 'N', 'K'), out('C', f32, 'M', 'N') },\n"
    "  tune = { BM = {64}, BN = {64}, BK = {64} },\n"
    "  grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end,\n"
    "  body = function(a, d, c, i, j)\n"
    "    local acc = zeros(f32, c.BM, c.BN)\n"
    "    for k in range(0, d.K, c.BK) do\n"
    "      acc = acc + dot(a.A:tile({i * c.BM, k}, {c.BM, c.BK}),\n"
    "                      a.B:tile({j * c.BN, k}, {c.BN, c.BK}):T())\n"
    "    end\n"
    "    a.C:store({i * c.BM, j * c.BN}, acc)\n"
    "  end }\n";

/* Loads: the right operand's rows lie far apart, for either path. */
static void loads_beyond_31_bits(void **state) {
  (void)state;
  static const char *const shapes[] = {"M=66", "N=72", "K=72", NULL};
  static const char *const sets[][2] = {{"warpgroups=0"}, {"warpgroups=1"}};
  static const char *const far[] = {"A=33554440,1", NULL};
  uint16_t *a = address_space(), b[FAR_COLS * FAR_K];
  float *c = malloc(sizeof *c * FAR_ROWS * FAR_COLS);
  assert_non_null(c);
  for (int i = 0; i < FAR_ROWS; i++)
    for (int k = 0; k < FAR_K; k++)
      a[i * FAR_STRIDE + k] = small_half((i + k) % 3);
  for (int i = 0; i < FAR_COLS * FAR_K; i++)
    b[i] = small_half(i % 2);
  for (size_t s = 0; s < COUNT(sets); s++) {
    struct machine m;
    lower(&m, far_text, shapes, sets[s], far);
    assert_true(has_role(&m, "producer") == (s == 1));
    for (uint32_t mode = 0; mode < EMU_RUNS; mode++) {
      const struct interp_arg args[3] = {matrix(a, DT_F16, FAR_ROWS, FAR_K, FAR_STRIDE),
                                         matrix(b, DT_F16, FAR_COLS, FAR_K, FAR_K),
                                         matrix(c, DT_F32, FAR_ROWS, FAR_COLS, FAR_COLS)};
      memset(c, 0xff, sizeof *c * FAR_ROWS * FAR_COLS);
      const char *why = emulate(&m, args, 3, mode, 132);
      if (why)
        fail_msg("%s: %s", sets[s][0], why);
      for (int i = 0; i < FAR_ROWS; i++)
        for (int j = 0; j < FAR_COLS; j++) {
          int want = 0;
          for (int k = 0; k < FAR_K; k++)
            want += (i + k) % 3 * ((j * FAR_K + k) % 2);
          if (c[i * FAR_COLS + j] != (float)want)
            fail_msg("%s: C[%d, %d] is %g, not %d", sets[s][0], i, j, (double)c[i * FAR_COLS + j],
                     want);
        }
    }
    drop(&m);
  }
  free(c);
  assert_int_equal(munmap(a, FAR_ROOM), 0);
}

/* Stores, in the executor of help_mach.h: the emulator remembers who wrote each element of an
 * output, which takes memory for all that lies between. */
static void stores_beyond_31_bits(void **state) {
  (void)state;
  static const char *const shapes[] = {"M=66", "N=72", "K=8", NULL};
  static const char *const sets[][3] = {{"warpgroups=0", "store=0"}, {"warpgroups=0", "store=1"}};
  static const char *const far[] = {"C=16777220,1", NULL};
  enum { K = 8 };
  const int64_t stride = FAR_STRIDE / 2; /* in bytes as far as that of f16 */
  uint16_t a[FAR_ROWS * K], b[FAR_COLS * K];
  float *c = address_space();
  for (int i = 0; i < FAR_ROWS * K; i++)
    a[i] = small_half(i % 3);
  for (int i = 0; i < FAR_COLS * K; i++)
    b[i] = small_half(i % 2);
  for (size_t s = 0; s < COUNT(sets); s++) {
    struct machine m;
    lower(&m, far_text, shapes, sets[s], far);
    const struct interp_arg args[3] = {matrix(a, DT_F16, FAR_ROWS, K, K),
                                       matrix(b, DT_F16, FAR_COLS, K, K),
                                       matrix(c, DT_F32, FAR_ROWS, FAR_COLS, stride)};
    struct mach_args in = {.arg = args, .n = 3};
    in.base[0] = a, in.alloc[0] = sizeof a;
    in.base[1] = b, in.alloc[1] = sizeof b;
    in.base[2] = c, in.alloc[2] = FAR_ROOM;
    struct mach_result r = mach_run(m.v->machine, &in);
    if (!r.ok)
      fail_msg("%s: %s", sets[s][1], r.error);
    for (int i = 0; i < FAR_ROWS; i++)
      for (int j = -4; j < FAR_COLS + 4; j++) {
        int want = 0;
        for (int k = 0; k < K && j >= 0 && j < FAR_COLS; k++)
          want += (i * K + k) % 3 * ((j * K + k) % 2);
        int64_t at = i * stride + j;
        if (at >= 0 && c[at] != (float)want)
          fail_msg("%s: C[%d, %d] is %g, not %d", sets[s][1], i, j, (double)c[at], want);
        if (at >= 0)
          c[at] = 0;
      }
    drop(&m);
  }
  assert_int_equal(munmap(c, FAR_ROOM), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tiles_are_written_once),
      cmocka_unit_test(persistent_tiles_are_written_once),
      cmocka_unit_test(splits_of_k),
      cmocka_unit_test(splits_fit),
      cmocka_unit_test(loads_beyond_31_bits),
      cmocka_unit_test(stores_beyond_31_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
