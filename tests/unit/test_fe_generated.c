/* Random kernels over the whole language: the examples of frontend/dsl.def one after the other, in
 * device loops and branches and outside, each on what the ones before it gave. Each is traced (many
 * configurations of control around every function), valid, and means the same after every pass.
 * KILN_LONG=1 runs ten times as many; KILN_SEED and KILN_SEEDS choose. */
#include "help_fe.h"
#include "help_gen_ir.h"
#include "help_judge_ir.h"

#include "frontend/dsl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* `fit` makes a 4x8 tile of f32 of whatever a function gives, never a constant one. */
static const char head[] =
    "local function fit(r, x)\n"
    "  if r.dtype == bool then return where(r, x, 0.5 * x) end\n"
    "  if r.dtype ~= f32 then r = cast(r, f32) end\n"
    "  local n = r.shape\n"
    "  if not n or #n == 0 then return x + r end\n"
    "  if #n == 1 then r = r:row() n = r.shape end\n"
    "  if #n == 3 then r = r:reshape(n[1] * n[2], n[3]) n = r.shape end\n"
    "  if n[1] > 4 or n[2] > 8 then\n"
    "    r = r:slice({0, 0}, {min(n[1], 4), min(n[2], 8)}) n = r.shape\n"
    "  end\n"
    "  if n[1] ~= 1 and n[1] ~= 4 then r = r:slice({0, 0}, {1, n[2]}) n = r.shape end\n"
    "  if n[2] ~= 1 and n[2] ~= 8 then r = r:slice({0, 0}, {n[1], 1}) end\n"
    "  return x + r\n"
    "end\n"
    "return kernel { name = 'random',\n"
    "args = { tensor('X', f32, 8, 8), tensor('V', f32, 8), tensor('N', s32, 4, 8),\n"
    "         tensor('Z', f32, 'S', 'R'), out('Y', f32, 8, 8), inout('I', s32, 8) },\n"
    "grid = function() return 1 end,\n"
    "body = function(a, d, c, i)\n"
    "local x, y = a.X:tile({0, 0}, {4, 8}), a.X:tile({4, 0}, {4, 8})\n"
    "local v, n, s, m = a.V:tile({0}, {8}), a.N:tile({0, 0}, {4, 8}), d.S, x < y\n";

struct program {
  struct strbuf text;
  uint64_t rng;
  uint32_t depth, left;
  bool dots;
  uint32_t *used; /* by row */
};

static uint32_t below(struct program *p, uint32_t n) {
  return (uint32_t)gen_below(&p->rng, n);
}

static bool ends_in(const char *s, const char *end) {
  size_t n = strlen(s), k = strlen(end);
  return n >= k && strcmp(s + n - k, end) == 0;
}

/* Rows that give something in a body, loops aside. */
static bool is_usable(const struct program *p, const struct dsl_entry *e) {
  return strchr(e->on, 'b') && e->owner != DSL_OF_kernel && strcmp(e->name, "range") != 0 &&
         (p->dots || strcmp(e->name, "dot") != 0);
}

static void statement(struct program *p, uint32_t row, const struct dsl_entry *e) {
  p->used[row]++;
  bool nothing = !strstr(e->signature, "):") || strcmp(e->name, "print") == 0 ||
                 strcmp(e->name, "assert") == 0;
  if (nothing)
    sb_printf(&p->text, "%s\n", e->example);
  else if (ends_in(e->signature, "): tensor"))
    sb_printf(&p->text, "do local r = %s end\n", e->example);
  else
    sb_printf(&p->text, "%s = fit(%s, x)\n", below(p, 2) ? "x" : "y", e->example);
}

static void statements(struct program *p, uint32_t n) {
  uint32_t rows;
  const struct dsl_entry *e = dsl_entries(&rows);
  for (uint32_t i = 0; i < n && p->left; i++, p->left--) {
    uint32_t kind = p->depth < 3 ? below(p, 12) : 12;
    p->depth++;
    if (kind == 0) {
      sb_printf(&p->text, "for k%u in range(0, min(s, %u), %u) do\n", p->depth, 1 + below(p, 12),
                4 + below(p, 4));
      statements(p, 1 + below(p, 4));
      sb_puts(&p->text, "end\n");
    } else if (kind == 1) {
      sb_printf(&p->text, "if s > %u then\n", below(p, 16));
      statements(p, 1 + below(p, 3));
      if (below(p, 2)) {
        sb_puts(&p->text, "else\n");
        statements(p, 1 + below(p, 3));
      }
      sb_puts(&p->text, "end\n");
    } else if (kind == 2) {
      sb_puts(&p->text, below(p, 2) ? "m = x < y\n" : "x, y = y, x\n");
    } else {
      uint32_t row;
      do
        row = below(p, rows);
      while (!is_usable(p, &e[row]));
      statement(p, row, &e[row]);
    }
    p->depth--;
  }
}

/* False: refused for the one reason there may be, a sum or the like over what a read out of range
 * may have given. */
static bool check_seed(uint64_t seed, uint32_t *used) {
  struct hf h;
  hf_init(&h);
  struct hj_trial t = {.mode = seed & 1 ? HJ_BITS : HJ_PAYLOADS, .seed = seed};
  struct program p = {.text = {.arena = &h.arena},
                      .rng = seed,
                      .left = 4 + (uint32_t)(seed % 16),
                      .dots = t.mode == HJ_PAYLOADS, /* else merging them shows in the bits */
                      .used = used};
  sb_puts(&p.text, head);
  statements(&p, p.left);
  sb_puts(&p.text, "a.Y:store({0, 0}, x)\na.Y:store({4, 0}, where(m, x, y))\nend }\n");
  struct ir_module *m = NULL;
  if (hf_load(&h, "random.lua", sb_str(&p.text)))
    m = hf_trace(&h, NULL, 0);
  if (!m && h.diags.list.n && h.diags.list.at[0].id == DIAG_PADDED_REDUCE) {
    hf_free(&h);
    return false;
  }
  if (!m)
    fail_msg("seed %llu:\n%s%s", (unsigned long long)seed, hf_diags(&h), sb_str(&p.text));
  const char *what, *why = hj_judge(&t, m, &h.arena, &what);
  if (why) {
    fprintf(stderr, "%s", sb_str(&p.text));
    hj_show(&t, m, what, why, &h.arena);
  }
  hf_free(&h);
  return true;
}

static void test_generated(void **state) {
  (void)state;
  const char *s = getenv("KILN_SEED"), *n = getenv("KILN_SEEDS"), *longer = getenv("KILN_LONG");
  uint64_t seed = s ? strtoull(s, NULL, 0) : 1;
  uint64_t end = seed + (n ? strtoull(n, NULL, 0) : longer && *longer == '1' ? 5000 : 500);
  uint32_t rows, used[512] = {0};
  const struct dsl_entry *e = dsl_entries(&rows);
  assert_true(rows <= sizeof used / sizeof *used);
  uint64_t n_seeds = end - seed, refused = 0;
  for (; seed < end; seed++)
    refused += !check_seed(seed, used);
  printf("%llu programs, %llu refused\n", (unsigned long long)n_seeds, (unsigned long long)refused);
  assert_true(refused * 2 < n_seeds);
  struct program any = {.dots = true};
  for (uint32_t i = 0; i < rows; i++)
    if (n_seeds >= 500 && is_usable(&any, &e[i]) && !used[i])
      fail_msg("`%s` was never used", e[i].name);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_generated)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
