/* Matrix products, lowered and run on the host, against the interpreter: integer-valued operands,
 * so that every sum is exact and outputs are compared bit for bit. */
#include "help_cg.h"

#include <cmocka.h>

static void check(struct cg_gemm g, const char *dims, const char *layout, const char *knobs) {
  struct help_arena h;
  help_arena_init(&h);
  struct strbuf b = {.arena = &h.arena};
  cg_gemm_text(&b, &g);
  cg_check(sb_str(&b), dims, layout, knobs, g.act && !str_eq(g.act, "relu") ? 1e-2 : 0);
  arena_free(&h.arena);
}

static const enum dtype types[] = {DT_BF16, DT_F16, DT_F32};
static const char *const majors[] = {"", "A=col", "B=col", "A=col,B=col"};

static void every_majorness_and_dtype(void **state) {
  (void)state;
  for (unsigned i = 0; i < 3; i++)
    for (unsigned k = 0; k < 4; k++) {
      struct cg_gemm g = {.t = types[i], .bm = 64, .bn = 64, .bk = 32};
      check(g, "M=64,N=64,K=96", majors[k], "");
      check(g, "M=72,N=40,K=70", majors[k], "");
      check(g, "M=65,N=63,K=33", majors[k], "");
      g.bias = g.residual = true;
      check(g, "M=72,N=80,K=40", majors[k], "stages=2");
    }
}

static void k_tails(void **state) {
  (void)state;
  static const int ks[] = {0, 1, 8, 24, 31, 63, 250}, bks[] = {16, 24, 32, 40, 48, 56, 64, 80, 128};
  for (unsigned i = 0; i < 7; i++)
    for (unsigned j = 0; j < 9; j++) {
      char dims[60];
      snprintf(dims, sizeof dims, "M=32,N=32,K=%d", ks[i]);
      struct cg_gemm g = {.t = types[j % 2], .bm = 32, .bn = 32, .bk = bks[j], .bias = true};
      check(g, dims, majors[(i + j) % 4], j % 3 ? "" : "stages=3");
      g.t = DT_F32;
      check(g, dims, majors[(i + j) % 4], "stages=2");
    }
}

static void m_and_n_tails(void **state) {
  (void)state;
  static const int ms[] = {0, 1, 7, 16, 17, 119}, ns[] = {63, 104, 129};
  for (unsigned i = 0; i < 6; i++)
    for (unsigned j = 0; j < 3; j++) {
      char dims[60];
      snprintf(dims, sizeof dims, "M=%d,N=%d,K=40", ms[i], ns[j]);
      struct cg_gemm g = {.t = DT_BF16, .bm = 32, .bn = 64, .bk = 32, .residual = true};
      check(g, dims, majors[(i + j) % 4], "");
    }
}

/* Tiles that are no powers of two, and every cut of a tile over warps. */
static void odd_tiles_and_warps(void **state) {
  (void)state;
  static const int bms[] = {16, 48, 80, 24, 8}, bns[] = {8, 24, 96, 56, 120, 20};
  for (unsigned i = 0; i < 5; i++)
    for (unsigned j = 0; j < 6; j++) {
      struct cg_gemm g = {.t = types[(i + j) % 3], .bm = bms[i], .bn = bns[j], .bk = 32};
      check(g, "M=25,N=33,K=40", majors[(i + j) % 4], "");
      check(g, "M=25,N=33,K=40", majors[(i + j + 1) % 4], "warps_m=2,warps_n=2");
      check(g, "M=25,N=33,K=40", majors[(i + j + 2) % 4], "warps_m=1,warps_n=3,prefetch=0");
    }
}

static void knobs(void **state) {
  (void)state;
  static const char *const lists[] = {
      "stages=1",
      "stages=2",
      "stages=3,prefetch=0",
      "stages=5",
      "store=1",
      "group=1",
      "group=3",
      "warps_m=4,warps_n=2",
      "threads=64",
      "threads=256",
      "blocks=1",
      "prefetch=0,store=1,stages=4",
      "warps_m=1,warps_n=4",
      "stages=8",
  };
  for (unsigned i = 0; i < sizeof lists / sizeof lists[0]; i++) {
    struct cg_gemm g = {.t = types[i % 2], .bm = 64, .bn = 64, .bk = i % 3 ? 32 : 64};
    g.residual = g.bias = i % 2;
    check(g, "M=72,N=136,K=200", majors[i % 4], lists[i]);
  }
}

static void misaligned_views(void **state) {
  (void)state;
  static const char *const layouts[] = {
      "A=off1", "B=off2,A=off4", "A=pad1,B=pad2", "A=pad4,B=pad8", "C=off1,R=off2", "C=pad3,R=pad4",
  };
  for (unsigned i = 0; i < 6; i++)
    for (unsigned k = 0; k < 3; k++) {
      struct cg_gemm g = {.t = types[k], .bm = 32, .bn = 64, .bk = 32, .residual = true};
      check(g, "M=40,N=72,K=48", layouts[i], "");
      check(g, "M=40,N=72,K=48", layouts[i], "store=1");
    }
}

static void activations(void **state) {
  (void)state;
  static const char *const acts[] = {"relu", "gelu", "gelu_tanh", "silu"};
  for (unsigned i = 0; i < 4; i++) {
    struct cg_gemm g = {.t = DT_BF16, .bm = 32, .bn = 32, .bk = 32, .act = acts[i], .bias = true};
    check(g, "M=40,N=40,K=8", "", "");
    g.t = DT_F32;
    check(g, "M=40,N=40,K=8", "", "");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_majorness_and_dtype),
      cmocka_unit_test(k_tails),
      cmocka_unit_test(m_and_n_tails),
      cmocka_unit_test(odd_tiles_and_warps),
      cmocka_unit_test(knobs),
      cmocka_unit_test(misaligned_views),
      cmocka_unit_test(activations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
