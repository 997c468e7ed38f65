/* Layouts: every element held, once per copy; matrix fragments as PTX says; derived layouts; and
 * the places of matrices in shared memory: no bank conflicts where a kernel reads and writes
 * them. */
#include "codegen/layouts.h"
#include "help_cg.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static struct help_arena h;

/* Calls see(user, coord, reg, lane, warp) for all that a layout holds. */
typedef void (*see_fn)(void *user, const int64_t *coord, const uint32_t *hw);
static void all(const struct layout *l, see_fn see, void *user) {
  uint32_t hw[LAYOUT_HW_COUNT] = {0};
  int64_t coord[LAYOUT_MAX_RANK];
  for (uint32_t w = 0; w < layout_extent(l, LAYOUT_WARP); w++)
    for (uint32_t t = 0; t < layout_extent(l, LAYOUT_LANE); t++)
      for (uint32_t r = 0; r < layout_extent(l, LAYOUT_REG); r++) {
        hw[LAYOUT_REG] = r;
        hw[LAYOUT_LANE] = t;
        hw[LAYOUT_WARP] = w;
        layout_coord(l, hw, coord);
        see(user, coord, hw);
      }
}

struct count {
  const struct layout *l;
  uint32_t *held; /* per element of the shape */
};

static void count_element(void *user, const int64_t *coord, const uint32_t *hw) {
  struct count *c = user;
  int64_t at = 0;
  (void)hw;
  for (uint32_t d = 0; d < c->l->rank; d++) {
    assert_true(coord[d] >= 0 && coord[d] < cg_layout_cover(c->l, d));
    if (coord[d] >= c->l->shape[d])
      return; /* padding */
    at = at * c->l->shape[d] + coord[d];
  }
  c->held[at]++;
}

/* Every element is held equally often: `copies` times, or by any one number if that is 0. */
static void check_cover(const struct layout *l, uint32_t warps, uint32_t copies) {
  int64_t n = 1;
  for (uint32_t d = 0; d < l->rank; d++)
    n *= l->shape[d];
  struct count c = {l, calloc((size_t)n, sizeof(uint32_t))};
  all(l, count_element, &c);
  for (int64_t i = 0; i < n; i++) {
    assert_true(c.held[i] > 0);
    assert_int_equal(c.held[i], copies ? copies : c.held[0]);
  }
  assert_int_equal(layout_extent(l, LAYOUT_LANE), 32);
  assert_int_equal(layout_extent(l, LAYOUT_WARP), warps);
  free(c.held);
}

static void blocked_layouts_hold_everything(void **state) {
  (void)state;
  static const int64_t extents[] = {1, 2, 7, 16, 48, 63, 96, 257, 1000};
  static const uint32_t warps[] = {1, 3, 4, 8}, vecs[] = {1, 2, 8};
  for (unsigned i = 0; i < 9; i++)
    for (unsigned j = 0; j < 9; j++)
      for (unsigned k = 0; k < 4; k++)
        for (unsigned v = 0; v < 3; v++)
          for (int axis = -1; axis < 2; axis++) {
            int64_t shape[2] = {extents[i], extents[j]};
            const struct layout *l =
                cg_layout_blocked(&h.arena, 2, shape, v % 2, vecs[v], warps[k], axis);
            check_cover(l, warps[k], 0);
            assert_int_equal(cg_layout_run(l, v % 2) % vecs[v], 0);
          }
  int64_t shape3[3] = {3, 5, 40};
  check_cover(cg_layout_blocked(&h.arena, 3, shape3, 2, 8, 4, 1), 4, 0);
}

static const struct cg_mma_atom k16 = {.m = 16, .k = 16, .per = 2};

/* PTX ISA, "Matrix Fragments for mma.m16n8k16": row and column of element i of a lane. */
static void acc_formula(void *user, const int64_t *coord, const uint32_t *hw) {
  const struct cg_mma_cut *c = user;
  uint32_t i = hw[LAYOUT_REG] % 4, n = hw[LAYOUT_REG] / 4 % c->n8, m = hw[LAYOUT_REG] / 4 / c->n8;
  uint32_t group = hw[LAYOUT_LANE] >> 2, in_group = hw[LAYOUT_LANE] % 4;
  uint32_t row = i < 2 ? group : group + 8, col = in_group * 2 + (i & 1);
  uint32_t wr = hw[LAYOUT_WARP] / 2, wc = hw[LAYOUT_WARP] % 2;
  assert_int_equal(coord[0], wr * 16 * c->blocks + 16 * m + row);
  assert_int_equal(coord[1], wc * 8 * c->n8 + 8 * n + col);
}

static void a_formula(void *user, const int64_t *coord, const uint32_t *hw) {
  const struct cg_mma_cut *c = user;
  uint32_t i = hw[LAYOUT_REG] % 8, m = hw[LAYOUT_REG] / 8 % c->blocks,
           k = hw[LAYOUT_REG] / 8 / c->blocks;
  uint32_t group = hw[LAYOUT_LANE] >> 2, in_group = hw[LAYOUT_LANE] % 4;
  uint32_t row = (i < 2) || (i >= 4 && i < 6) ? group : group + 8;
  uint32_t col = in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0);
  assert_int_equal(coord[0], hw[LAYOUT_WARP] / 2 * 16 * c->blocks + 16 * m + row);
  assert_int_equal(coord[1], 16 * k + col);
}

static void b_formula(void *user, const int64_t *coord, const uint32_t *hw) {
  const struct cg_mma_cut *c = user;
  uint32_t i = hw[LAYOUT_REG] % 4, n = hw[LAYOUT_REG] / 4 % c->n8, k = hw[LAYOUT_REG] / 4 / c->n8;
  uint32_t group = hw[LAYOUT_LANE] >> 2, in_group = hw[LAYOUT_LANE] % 4;
  uint32_t row = in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0);
  assert_int_equal(coord[0], 16 * k + row);
  assert_int_equal(coord[1], hw[LAYOUT_WARP] % 2 * 8 * c->n8 + 8 * n + group);
}

static void fragments_are_those_of_ptx(void **state) {
  (void)state;
  static const int64_t sizes[] = {16, 64, 96, 128};
  for (unsigned i = 0; i < 4; i++)
    for (unsigned j = 0; j < 4; j++) {
      struct cg_warps w = {2, 2};
      struct cg_mma_cut c = cg_mma_cut(sizes[i], sizes[j], w, &k16);
      const struct layout *acc = cg_layout_mma_acc(&h.arena, sizes[i], sizes[j], w, &k16);
      all(acc, acc_formula, &c);
      check_cover(acc, 4, 1);
      const struct layout *a = cg_layout_mma_a(&h.arena, sizes[i], sizes[j], 2, w, &k16);
      all(a, a_formula, &c);
      check_cover(a, 4, w.cols);
      const struct layout *b = cg_layout_mma_b(&h.arena, sizes[i], sizes[j], 2, w, &k16);
      all(b, b_formula, &c);
      check_cover(b, 4, w.rows);
    }
}

static void fma_layouts_hold_everything(void **state) {
  (void)state;
  static const int64_t sizes[] = {8, 16, 24, 64, 100, 128};
  for (unsigned i = 0; i < 6; i++)
    for (unsigned j = 0; j < 6; j++)
      for (unsigned k = 0; k < 4; k++)
        for (uint32_t vec = 2; vec <= 4; vec *= 2) {
          struct cg_warps w = {k % 2 ? 2 : 1, k / 2 ? 4 : 2};
          check_cover(cg_layout_fma_acc(&h.arena, sizes[i], sizes[j], w, k & 1, k & 2, vec),
                      w.rows * w.cols, 1);
        }
}

static const char *text_of(const struct layout *l) {
  struct strbuf b = {.arena = &h.arena};
  layout_print(l, &b);
  return sb_str(&b);
}

static void derived_layouts(void **state) {
  (void)state;
  struct cg_warps w = {1, 2};
  const struct layout *l = cg_layout_mma_acc(&h.arena, 16, 32, w, &k16);
  assert_string_equal(text_of(l), "[16,32] reg 2:(0,1) 2:(8,0) 2:(0,8) lane 4:(0,2) 8:(1,0) "
                                  "warp 2:(0,16)");
  assert_string_equal(text_of(cg_layout_slice(&h.arena, l, 2)),
                      "[16,1] reg 2:(8,0) lane 4:(0,0) 8:(1,0) warp 2:(0,0)");
  assert_string_equal(text_of(cg_layout_permute(&h.arena, l, (int64_t[]){1, 0})),
                      "[32,16] reg 2:(1,0) 2:(0,8) 2:(8,0) lane 4:(2,0) 8:(0,1) warp 2:(16,0)");
  const struct layout *r = cg_layout_reshape(&h.arena, l, 3, (int64_t[]){1, 16, 32});
  assert_string_equal(text_of(r), "[1,16,32] reg 2:(0,0,1) 2:(0,8,0) 2:(0,0,8) lane 4:(0,0,2) "
                                  "8:(0,1,0) warp 2:(0,0,16)");
  assert_true(layout_eq(l, cg_layout_reshape(&h.arena, r, 2, (int64_t[]){16, 32})));
  assert_null(cg_layout_reshape(&h.arena, l, 2, (int64_t[]){32, 16}));
  /* One row of a 16-row fragment: the other rows are padding and may not become copies. */
  const struct layout *row = cg_layout_mma_acc(&h.arena, 1, 32, w, &k16);
  assert_int_equal(cg_layout_cover(row, 0), 16);
  assert_null(cg_layout_reshape(&h.arena, row, 1, (int64_t[]){32}));
}

/* Shared memory as kernels use it. */
static void matrices_meet_no_bank_conflicts(void **state) {
  (void)state;
  static const int bks[] = {16, 32, 48, 64, 80, 128}, bns[] = {32, 64, 96, 128};
  static const char *const majors[] = {"", "A=col", "B=col", "A=col,B=col"};
  for (unsigned i = 0; i < 6; i++)
    for (unsigned j = 0; j < 4; j++) {
      struct cg_gemm g = {.t = DT_BF16, .bm = bns[(j + 1) % 4], .bn = bns[j], .bk = bks[i]};
      struct cg_test t;
      struct strbuf b = {.arena = &h.arena};
      cg_gemm_text(&b, &g);
      cg_test_begin(&t, sb_str(&b));
      cg_test_args(&t, "M=128,N=128,K=256", majors[(i + j) % 4], 0, 1);
      assert_true(cg_test_lower(&t, "sm_90a", "stages=2"));
      struct mach_result r = cg_test_run(&t);
      if (!r.ok)
        fail_msg("%s", r.error);
      assert_true(r.ldmatrix_rows > 0 && r.copy_rows > 0);
      assert_int_equal(r.ldmatrix_conflicts, 0);
      assert_int_equal(r.copy_conflicts, 0);
      cg_test_end(&t);
    }
}

int main(void) {
  help_arena_init(&h);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blocked_layouts_hold_everything),
      cmocka_unit_test(fragments_are_those_of_ptx),
      cmocka_unit_test(fma_layouts_hold_everything),
      cmocka_unit_test(derived_layouts),
      cmocka_unit_test(matrices_meet_no_bank_conflicts),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  arena_free(&h.arena);
  return failed;
}
