/* Case 8 of those that broke other systems (docs/cases.md): registers and shared memory of kernels
 * whose warps have roles. Whatever is over the budget is refused before it is compiled, with the
 * sum and the limit; whatever is not is accepted. All combinations of producer, consumer and
 * registers in machine texts, against arithmetic of the test's own; tile sizes by the knob
 * `warpgroups`. KILN_LONG=1: some of the accepted kernels are compiled, too; few of them spill, and
 * those are refused. */
#include "api/api.h"
#include "help_api.h"
#include "help_rt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* ---- machine texts ---- */

struct role {
  uint32_t warps, regs; /* 0: as the block starts */
};

static void put_role(char *out, size_t size, const char *name, struct role r) {
  size_t n = strlen(out);
  snprintf(out + n, size - n, "%s%s {warps = %u", n ? ", " : "", name, r.warps);
  n = strlen(out);
  snprintf(out + n, size - n, r.regs ? ", regs = %u}" : "}", r.regs);
}

/* A register file of 65536, given to warpgroups of 128 threads by 8 a thread, of which a thread
 * names 255. */
static uint32_t at_start(uint32_t warps) {
  uint32_t groups = (warps + 3) / 4, regs = 65536 / (groups * 128);
  regs -= regs % 8;
  return regs > 255 ? 255 : regs;
}

/* "" where the roles are legal, else what must be said. */
static void expected(struct role p, struct role c, char *out, size_t size) {
  struct role r[2] = {c, p};
  static const char *const names[] = {"consumer", "producer"};
  uint32_t warps = p.warps + c.warps, start = at_start(warps), sum = 0;
  *out = 0;
  for (int i = 0; i < 2; i++) {
    if (r[i].regs && (r[i].regs < 24 || r[i].regs > 256 || r[i].regs % 8))
      snprintf(out, size, "role `%s`: regs is %u; it must be 24 to 256 in steps of 8", names[i],
               r[i].regs);
    if (!*out && r[i].regs && r[i].warps % 4)
      snprintf(out, size, "role `%s` has %u warps; registers are set by whole warpgroups of 4",
               names[i], r[i].warps);
    sum += r[i].warps * 32 * (r[i].regs ? r[i].regs : start);
  }
  if (!*out && (p.regs || c.regs) && sum > warps * 32 * start)
    snprintf(out, size, "the roles have %u registers, the block starts with %u (%u x %u)", sum,
             warps * 32 * start, warps * 32, start);
}

static void check_roles(struct help_arena *h, struct diag_sink *diags, struct role p,
                        struct role c) {
  char text[600], roles[200] = "", want[200];
  put_role(roles, sizeof roles, "consumer", c);
  put_role(roles, sizeof roles, "producer", p);
  snprintf(text, sizeof text,
           "kiln-ir 1 machine\nkernel k {\n  target sm_90a\n  arg X: in bf16 [M]\n  dims M\n"
           "  grid 1\n  roles %s\n  param i32 = M\n  body(%%m: s32) {\n    return\n  }\n}\n",
           roles);
  expected(p, c, want, sizeof want);
  struct arena_mark mark = arena_get_mark(&h->arena);
  diag_clear(diags);
  struct ir_module *m = ir_parse(&h->arena, diags, 0, text, strlen(text));
  if (!m)
    fail_msg("%s: %s", roles, help_last_message(diags));
  bool ok = ir_verify(m, diags), said = false;
  for (uint32_t i = 0; i < diags->list.n; i++)
    said =
        said || (strcmp(diags->list.at[i].message, want) == 0 && diags->list.at[i].loc.line == 7);
  if (ok != !*want || (!ok && !said))
    fail_msg("%s: expected `%s`, found `%s`", roles, want, ok ? "" : help_last_message(diags));
  arena_reset(&h->arena, mark);
}

static void roles_and_registers(void **state) {
  (void)state;
  static const uint32_t producers[] = {1, 2, 4, 8}, consumers[] = {4, 8, 12, 16};
  struct help_arena h;
  struct diag_sink diags;
  uint32_t n = 0;
  help_arena_init(&h);
  assert_true(diag_init(&diags, &mem_libc));
  for (size_t p = 0; p < COUNT(producers); p++)
    for (size_t c = 0; c < COUNT(consumers); c++)
      for (uint32_t pr = 16; pr <= 264; pr += 8)
        for (uint32_t cr = 16; cr <= 264; cr += 8, n++)
          check_roles(&h, &diags, (struct role){producers[p], pr == 16 ? 0 : pr},
                      (struct role){consumers[c], cr == 16 ? 0 : cr});
  /* off the steps */
  static const uint32_t odd[] = {1, 16, 23, 25, 28, 100, 239, 255, 257, 512};
  for (size_t i = 0; i < COUNT(odd); i++, n++) {
    check_roles(&h, &diags, (struct role){4, odd[i]}, (struct role){8, 0});
    check_roles(&h, &diags, (struct role){4, 24}, (struct role){8, odd[i]});
  }
  print_message("%u combinations\n", n);
  /* Those that every hand-written kernel has (NVIDIA, FlashAttention), and one step more. */
  char want[200];
  expected((struct role){4, 24}, (struct role){8, 240}, want, sizeof want);
  assert_string_equal(want, "");
  expected((struct role){4, 40}, (struct role){8, 232}, want, sizeof want);
  assert_string_equal(want, "");
  expected((struct role){4, 32}, (struct role){12, 160}, want, sizeof want);
  assert_string_equal(want, "");
  expected((struct role){4, 32}, (struct role){8, 240}, want, sizeof want);
  assert_string_equal(want,
                      "the roles have 65536 registers, the block starts with 64512 (384 x 168)");
  diag_free(&diags);
  arena_free(&h.arena);
}

/* ---- tile sizes by the knob ---- */

static const char text[] =
    "return kernel { name = 'product',\n"
    "  args = { tensor('A', f16, 'M', 'K'), tensor('B', f16, 'N', 'K'), tensor('R', f16, 'M', 'N'),\n"
    "           out('C', f16, 'M', 'N') },\n"
    "  tune = { BM = {64}, BN = {64}, BK = {64} },\n"
    "  grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end,\n"
    "  body = function(a, d, c, i, j)\n"
    "    local acc, at = zeros(f32, c.BM, c.BN), {i * c.BM, j * c.BN}\n"
    "    for k in range(0, d.K, c.BK) do\n"
    "      acc = acc + dot(a.A:tile({i * c.BM, k}, {c.BM, c.BK}),\n"
    "                      a.B:tile({j * c.BN, k}, {c.BN, c.BK}):T())\n"
    "    end\n"
    "    a.C:store(at, cast(acc + cast(a.R:tile(at, {c.BM, c.BN}), f32), f16))\n"
    "  end }\n";

static uint32_t numbers_in(const char *s) {
  uint32_t n = 0;
  for (; *s; s++)
    n += *s >= '0' && *s <= '9' && (s[1] < '0' || s[1] > '9');
  return n;
}

struct tally {
  uint32_t taken, refused, compiled, spilled;
  bool no_compiler;
};

static void check_tile(struct help_api *t, struct kiln_file *file, const int *tile, int groups,
                       int stages, struct tally *tally) {
  static const char *const shapes[] = {"M=512", "N=512", "K=512"};
  char words[5][32];
  const char *set[5];
  snprintf(words[0], sizeof words[0], "BM=%d", tile[0]);
  snprintf(words[1], sizeof words[1], "BN=%d", tile[1]);
  snprintf(words[2], sizeof words[2], "BK=%d", tile[2]);
  snprintf(words[3], sizeof words[3], "warpgroups=%d", groups);
  snprintf(words[4], sizeof words[4], "stages=%d", stages);
  for (int i = 0; i < 5; i++)
    set[i] = words[i];
  struct kiln_request r = help_api_request();
  struct kiln_variant *v = NULL;
  r.target = "sm_90a";
  r.shapes = shapes;
  r.n_shapes = 3;
  r.set = set;
  r.n_set = stages ? 5 : 4;
  enum kiln_status st = kiln_specialise(file, &r, &v);
  if (st == KILN_OK)
    st = api_lower(v);
  if (st == KILN_OK) {
    const struct ir_module *m = v->machine;
    uint32_t warps = 0, bytes = 0, sum = 0, start;
    for (uint32_t i = 0; i < m->recipe->steps.n; i++)
      bytes = m->recipe->steps.at[i].smem_bytes > bytes ? m->recipe->steps.at[i].smem_bytes : bytes;
    for (uint32_t i = 0; i < m->roles.n; i++)
      warps += m->roles.at[i].warps;
    start = at_start(warps);
    for (uint32_t i = 0; i < m->roles.n; i++)
      sum += m->roles.at[i].warps * 32 * (m->roles.at[i].regs ? m->roles.at[i].regs : start);
    assert_int_equal(m->roles.n, 2);
    assert_true(warps <= 32 && bytes > 0 && bytes <= 232448 && sum <= 65536);
    /* accumulators have registers: rows x cols over the threads that compute */
    assert_true(tile[0] * tile[1] / (128 * groups) <=
                (int)(m->roles.at[0].regs ? m->roles.at[0].regs : start));
    tally->taken++;
    if (getenv("KILN_LONG") && tally->taken % 5 == 0 && !tally->no_compiler) {
      struct kiln_compile_info info;
      st = kiln_compile(v, &info);
      tally->no_compiler = st == KILN_UNAVAILABLE;
      if (st == KILN_FAILED && help_api_matches(kiln_diag_text(t->ctx, 0), "spills.*K0802"))
        tally->spilled++; /* what the sum cannot know: said after the compilation */
      else if (!tally->no_compiler && (st != KILN_OK || info.spill_bytes))
        fail_msg("%s, %s, %s, %s: %s", words[0], words[1], words[2], words[3],
                 st == KILN_OK ? "spills" : kiln_diag_text(t->ctx, 0));
      tally->compiled += !tally->no_compiler;
    }
  } else {
    /* one message, at the dot or the op that asks for most; what it found and what there is */
    const char *said = kiln_diag_count(t->ctx) ? kiln_diag_text(t->ctx, 0) : "nothing";
    const char *why = strstr(said, "error: ");
    if (st != KILN_INVALID || kiln_diag_count(t->ctx) != 1 || !why || numbers_in(why) < 4 ||
        !help_api_matches(said, "^tile.lua:[0-9]+:[0-9]+: error: ") ||
        !help_api_matches(said, "K0403|K0702"))
      fail_msg("%s, %s, %s, %s, %s: %s", words[0], words[1], words[2], words[3], words[4], said);
    tally->refused++;
  }
  kiln_variant_free(v);
  kiln_diag_clear(t->ctx);
}

static void tiles_and_warpgroups(void **state) {
  (void)state;
  static const int rows[] = {64, 128, 192, 256, 384}, cols[] = {8, 64, 96, 128, 200, 256, 512};
  static const int ks[] = {16, 64, 128, 256}, slots[] = {0, 2, 5, 12};
  struct help_api t = {0};
  struct tally tally = {0};
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "tile.lua", text);
  for (size_t i = 0; i < COUNT(rows); i++)
    for (size_t j = 0; j < COUNT(cols); j++)
      for (size_t k = 0; k < COUNT(ks); k++)
        for (int groups = 1; groups <= 3; groups++)
          for (size_t s = 0; s < COUNT(slots); s++) {
            const int tile[] = {rows[i], cols[j], ks[k]};
            check_tile(&t, file, tile, groups, slots[s], &tally);
          }
  print_message("%u taken, %u refused, %u compiled, of which %u spill\n", tally.taken,
                tally.refused, tally.compiled, tally.spilled);
  assert_true(tally.spilled * 10 <= tally.compiled);
  assert_true(tally.taken > 100 && tally.refused > 100);
  kiln_file_free(file);
  help_api_stop(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(roles_and_registers),
      cmocka_unit_test(tiles_and_warpgroups),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
