/* Row 16 of the cases that broke others: products of 8-bit floats over long K, under the error
 * policy (docs/numerics.md), by what `prec` allows the matrix unit, on the emulator. Where the unit
 * keeps few bits of sums, the default keeps to the policy of f32 results all the same, and what is
 * less precise has to be asked for; where it keeps f32's, all three do. */
#include "help_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

static const char text[] =
    "local function product(A, B, O, p)\n"
    "  return kernel { name = 'dot',\n"
    "    args = { tensor('A', A, 'M', 'K'), tensor('B', B, 'N', 'K'), out('C', O, 'M', 'N') },\n"
    "    grid = function(d) return cdiv(d.M, 32), cdiv(d.N, 32) end,\n"
    "    body = function(a, d, c, i, j)\n"
    "      local acc = zeros(f32, 32, 32)\n"
    "      for k in range(0, d.K, 64) do\n"
    "        acc = dot(a.A:tile({i * 32, k}, {32, 64}), a.B:tile({j * 32, k}, {32, 64}):T(), acc,\n"
    "                  p and {prec = p} or nil)\n"
    "      end\n"
    "      a.C:store({i * 32, j * 32}, cast(acc, O))\n"
    "    end,\n"
    "    oracle = function(t) return matmul(t.A, t.B:T()) end,\n"
    "    cases = {{shape = {M = 33, N = 32, K = 4096}, seed = 3}} }\n"
    "end\n"
    "local list = {}\n"
    "for name, p in pairs {default = false, ieee = 'ieee', promoted = 'promoted', fast = 'fast'} do\n"
    "  list[name .. '_f32'] = product(e4m3, e4m3, f32, p)\n"
    "  list[name .. '_mixed'] = product(e4m3, e5m2, f32, p)\n"
    "  list[name .. '_bf16'] = product(e4m3, e4m3, bf16, p)\n"
    "end\n"
    "return list\n";

static void long_sums(void **state) {
  (void)state;
  static const struct {
    const char *kernel;
    bool short_ok; /* within the policy where the unit keeps few bits? */
  } rows[] = {
      {"default_f32", true},   {"default_mixed", true}, {"ieee_f32", true},
      {"ieee_mixed", true},    {"promoted_f32", false}, {"promoted_mixed", false},
      {"promoted_bf16", true}, {"fast_f32", false},     {"fast_mixed", false},
  };
  /* Its unit's sums are short, those of f16, and none of its own: sm_80. */
  static const struct {
    const char *name;
    bool is_short;
  } targets[] = {{"sm_89", true}, {"sm_120", true}, {"sm_90a", false}, {"sm_80", false}};
  struct help_api t = {0};
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "fp8.lua", text);
  for (size_t g = 0; g < sizeof targets / sizeof *targets; g++)
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
      struct kiln_request req = help_api_request();
      const struct kiln_report *report = NULL;
      req.kernel = rows[i].kernel;
      req.case_index = 0;
      req.target = targets[g].name;
      enum kiln_status st = kiln_run_case(file, &req, KILN_ON_EMU, KILN_CASE_VERIFY, &report);
      enum kiln_status want = !targets[g].is_short || rows[i].short_ok ? KILN_OK : KILN_WRONG;
      if (st != want)
        fail_msg("%s, %s: %s, not %s: %s", targets[g].name, rows[i].kernel, kiln_status_name(st),
                 kiln_status_name(want),
                 kiln_diag_count(t.ctx) ? kiln_diag_text(t.ctx, 0) : "nothing was said");
      kiln_diag_clear(t.ctx);
    }
  kiln_file_free(file);
  help_api_stop(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(long_sums)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
