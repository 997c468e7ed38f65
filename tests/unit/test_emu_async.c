/* The emulator on modules for Hopper written by hand (tests/machine): the right results in every
 * mode, at sizes that leave tiles unfilled. */
#include "help_hopper.h"

#include <string.h>

static void cases(const struct hopper_case *c, uint32_t count) {
  for (uint32_t k = 0; k < count; k++)
    for (uint32_t mode = 0; mode < (k ? HOPPER_MODES : EMU_MODES); mode++) {
      struct hopper_run r;
      char wrong[200] = "";
      hopper_begin(&r);
      bool ok = hopper_parse(&r, hopper_text(&r.mem.arena, c[k].name));
      if (ok)
        hopper_bind(&r, &c[k]);
      if (!ok || !hopper_emulate(&r, mode))
        fail_msg("%s, case %u, mode %u: %s", c[k].name, k, mode, hopper_messages(&r));
      if (!hopper_is_right(&r, &c[k], wrong, sizeof wrong))
        fail_msg("%s, case %u, mode %u: %s", c[k].name, k, mode, wrong);
      hopper_end(&r);
    }
}

static void gemm_cooperative(void **state) {
  (void)state;
  static const struct hopper_case c[] = {{.name = "gemm_128x256", .m = 128, .n = 256, .k = 64},
                                         {.name = "gemm_128x256", .m = 130, .n = 520, .k = 328}};
  cases(c, 2);
}

static void gemm_split(void **state) {
  (void)state;
  static const struct hopper_case c[] = {{.name = "gemm_split2", .m = 64, .n = 64, .k = 128},
                                         {.name = "gemm_split2", .m = 70, .n = 132, .k = 200},
                                         {.name = "gemm_split2", .m = 33, .n = 68, .k = 1000}};
  cases(c, 3);
}

/* Payloads are a ring: C is A . B^T modulo 2^64, whatever the order, and nothing is rounded. */
static void algebra(const struct hopper_case *c) {
  struct hopper_run r;
  hopper_begin(&r);
  assert_true(hopper_parse(&r, hopper_text(&r.mem.arena, c->name)));
  const int64_t rows[3] = {c->m, c->n, c->m}, cols[3] = {c->k, c->k, c->n};
  int64_t *x[3];
  for (uint32_t k = 0; k < 3; k++) {
    x[k] = arena_get0(&r.mem.arena, (size_t)(rows[k] * cols[k]) * 8);
    r.args[r.n++].tensor = interp_dense(x[k], DT_S64, 2, (int64_t[]){rows[k], cols[k]});
    for (int64_t i = 0; i < rows[k] * cols[k] && k < 2; i++)
      for (uint64_t d = 0; d < 9; d++)
        x[k][i] = x[k][i] * 101 + hopper_value(10 * k + d, i);
  }
  for (uint32_t mode = 0; mode < EMU_MODES; mode++) {
    struct emu_options opt = {
        .domain = INTERP_ALGEBRAIC, .mode = (enum emu_mode)mode, .seed = 5, .sm_count = 2};
    memset(x[2], 0xff, (size_t)(c->m * c->n) * 8);
    if (!emu_run(r.m, r.args, r.n, &opt, NULL, &r.diags, &mem_libc))
      fail_msg("%s", hopper_messages(&r));
    for (int64_t i = 0; i < c->m * c->n; i++) {
      uint64_t want = 0;
      for (int64_t k = 0; k < c->k; k++)
        want += (uint64_t)x[0][i / c->n * c->k + k] * (uint64_t)x[1][i % c->n * c->k + k];
      assert_int_equal(x[2][i], (int64_t)want);
    }
  }
  hopper_end(&r);
}

static void gemms_in_algebra(void **state) {
  (void)state;
  algebra(&(struct hopper_case){.name = "gemm_128x256", .m = 136, .n = 264, .k = 200});
  algebra(&(struct hopper_case){.name = "gemm_split2", .m = 40, .n = 72, .k = 200});
}

static void attention(void **state) {
  (void)state;
  static const struct hopper_case c[] = {
      {.name = "attention_full", .bh = 1, .s = 128},
      {.name = "attention_full", .bh = 1, .s = 300},
      {.name = "attention_causal", .bh = 2, .s = 200, .causal = true}};
  cases(c, 3);
}

static void multicast(void **state) {
  (void)state;
  static const struct hopper_case c[] = {{.name = "multicast_sum", .rows = 64},
                                         {.name = "multicast_sum", .rows = 448}};
  cases(c, 2);
}

static void role_to_role(void **state) {
  (void)state;
  static const struct hopper_case c[] = {{.name = "role_pipe", .rows = 2, .role = true},
                                         {.name = "role_pipe", .rows = 17, .role = true}};
  cases(c, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gemm_cooperative), cmocka_unit_test(gemm_split),
      cmocka_unit_test(gemms_in_algebra), cmocka_unit_test(attention),
      cmocka_unit_test(multicast),        cmocka_unit_test(role_to_role),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
