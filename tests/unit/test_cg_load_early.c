/* What follows a tile's dots is loaded while they run: which loads are, by the schedule record, and
 * which are not; results are verified by tests/gpu/sweep_warpgroups.lua (test_emu_warpgroups.c). */
#include "help_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define HEAD HEAD_WITH("")
#define HEAD_WITH(schedule)                                                                        \
  "return kernel { name = 'k', " schedule "tune = {BM = {128}, BN = {128}}, args = {\n"            \
  "  tensor('A', bf16, 'M', 'K'), tensor('B', bf16, 'N', 'K'), tensor('bias', bf16, 'N'),\n"       \
  "  tensor('R', bf16, 'M', 'N'), tensor('S', bf16, 'M', 'N'), tensor('F', f32, 'M', 'N'),\n"      \
  "  inout('I', bf16, 'M', 'N'), out('C', bf16, 'M', 'N') },\n"                                    \
  "  grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end,\n"                         \
  "  body = function(a, d, c, i, j)\n"                                                             \
  "    local m, n = i * c.BM, j * c.BN\n"                                                          \
  "    local tile = {c.BM, c.BN}\n"                                                                \
  "    local function at(x) return cast(x:tile({m, n}, tile), f32) end\n"                          \
  "    local x = zeros(f32, c.BM, c.BN)\n"                                                         \
  "    for k in range(0, d.K, 64) do\n"                                                            \
  "      x = x + dot(a.A:tile({m, k}, {c.BM, 64}), a.B:tile({n, k}, {c.BN, 64}):T())\n"            \
  "    end\n"
#define STORE "    a.C:store({m, n}, cast(x, bf16))\n"
#define END   "  end }\n"

/* Whether in the record one text stands before another. */
static bool stands_before(const char *text, const char *first, const char *then) {
  const char *at = strstr(text, first), *other = strstr(text, then);
  return at && other && at < other;
}

static uint32_t is_split(const char *set) {
  return strcmp(set, "split_cluster=1") == 0;
}

static void check(const char *text, const char *set, const char *layout, const char *const *want,
                  const char *const *never) {
  struct help_api t;
  const char *shown;
  static const char *const shapes[] = {"M=256", "N=256", "K=256"};
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "k.lua", text);
  struct kiln_request req = help_api_request();
  req.target = "sm_90a";
  req.shapes = shapes;
  req.n_shapes = 3;
  const char *sets[2] = {set, "split_k=2"}; /* the latter where the former wants it */
  req.set = sets;
  req.n_set = set ? 1 + is_split(set) : 0;
  req.layouts = &layout;
  req.n_layouts = layout != NULL;
  struct kiln_variant *v = NULL;
  if (kiln_specialise(file, &req, &v) != KILN_OK ||
      kiln_show(v, "schedule", NULL, &shown) != KILN_OK)
    fail_msg("%s\nof %s", kiln_diag_text(t.ctx, 0), text);
  if (!strstr(shown, "inst = wgmma"))
    fail_msg("not for warpgroups: %s", shown);
  for (; *want; want++)
    if (!strstr(shown, *want))
      fail_msg("no `%s` in %s", *want, shown);
  for (; *never; never++)
    if (strstr(shown, *never))
      fail_msg("`%s` in %s", *never, shown);
  help_api_expect(&t, kiln_show(v, "machine", NULL, &shown), KILN_OK, NULL);
  kiln_variant_free(v);
  kiln_file_free(file);
  help_api_stop(&t);
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NONE      ((const char *const[]){NULL})

static void tiles_land(void **state) {
  (void)state;
  /* One, whatever is computed from it; of two one; one for each store. */
  check(HEAD "    x = gelu(x + at(a.R))\n" STORE END, NULL, NULL, LIST("load.R: path = staging"),
        NONE);
  check(HEAD "    x = x + at(a.R) * at(a.S)\n" STORE END, NULL, NULL,
        LIST("load.R: path = staging", "load.S: path = frag"), NONE);
  check(HEAD STORE "    a.I:store({m, n}, cast(x + at(a.R), bf16))\n" END, NULL, NULL,
        LIST("load.R: path = staging"), NONE);
}

static void others_do_not(void **state) {
  (void)state;
  static const struct {
    const char *text, *set, *layout;
  } rows[] = {
      /* panels take turns */
      {HEAD "    x = x + at(a.R)\n" STORE END, "staging=1", NULL},
      /* one block of a cluster stores what all have added up */
      {HEAD "    x = x + at(a.R)\n" STORE END, "split_cluster=1", NULL},
      /* an expert's word */
      {HEAD_WITH("schedule = {['load.R'] = {path = 'frag'}}, ") "    x = x + at(a.R)\n" STORE END,
       NULL, NULL},
      /* columns adjacent */
      {HEAD "    x = x + at(a.R)\n" STORE END, NULL, "R=col"},
      /* what the kernel writes, elements of another size, another place of each element */
      {HEAD "    x = x + at(a.I)\n    a.I:store({m, n}, cast(x, bf16))\n" END, NULL, NULL},
      {HEAD "    x = x + a.F:tile({m, n}, tile)\n" STORE END, NULL, NULL},
      {HEAD "    x = x + cast(a.R:tile({n, m}, {c.BN, c.BM}):T(), f32)\n" STORE END, NULL, NULL},
      /* two readers: the tile would have to be kept */
      {HEAD
       "    local r = at(a.R)\n    a.I:store({m, n}, cast(x * r, bf16))\n    x = x + r\n" STORE END,
       NULL, NULL},
      /* under a condition */
      {HEAD "    if j == 1 then a.C:store({m, n}, cast(x + at(a.R), bf16)) end\n" END, NULL, NULL},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    check(rows[i].text, rows[i].set, rows[i].layout, NONE, LIST("path = staging"));
}

#define ROW_OF_BIASES HEAD "    x = x + cast(a.bias:tile({n}, {c.BN}):row(), f32)\n" STORE END

static void rows_come_first(void **state) {
  (void)state;
  struct help_api t;
  static const char *const shapes[] = {"M=256", "N=256", "K=256"};
  static const struct {
    const char *text, *set, *roles;
    bool early;
  } rows[] = {
      {ROW_OF_BIASES, NULL, "warps = 4, regs = 24", true},
      /* registers are spared: the producer has more, nothing is held */
      {ROW_OF_BIASES, "spare=1", "warps = 4, regs = 40", false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const char *shown;
    help_api_start(&t, NULL);
    struct kiln_file *file = help_api_load(&t, "k.lua", rows[i].text);
    struct kiln_request req = help_api_request();
    req.target = "sm_90a";
    req.shapes = shapes;
    req.n_shapes = 3;
    const char *sets[2] = {"warpgroups=2", rows[i].set};
    req.set = sets;
    req.n_set = 1 + (rows[i].set != NULL);
    struct kiln_variant *v = help_api_specialise(file, &req);
    help_api_expect(&t, kiln_show(v, "schedule", NULL, &shown), KILN_OK, NULL);
    if (stands_before(shown, "load.bias", "load.A") != rows[i].early)
      fail_msg("row %zu: %s", i, shown);
    help_api_expect(&t, kiln_show(v, "machine", NULL, &shown), KILN_OK, NULL);
    if (!strstr(shown, rows[i].roles))
      fail_msg("row %zu: no `%s` in %s", i, rows[i].roles, shown);
    kiln_variant_free(v);
    kiln_file_free(file);
    help_api_stop(&t);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tiles_land),
      cmocka_unit_test(others_do_not),
      cmocka_unit_test(rows_come_first),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
