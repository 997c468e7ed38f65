/* Case 5 of those that broke other systems (docs/cases.md): views that the tensor memory unit does
 * not take. A kernel that is asked to use it is refused at the line of the dot, with the reason;
 * not asked, it takes another path to the same result. A kernel that was lowered for maps is not
 * launched on tensors that have none, which get a variant of their own. */
#include "api/api.h"
#include "codegen/emu.h"
#include "help_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* A product whose operands come through what stands for X and Y. */
static const char text[] =
    "local function product(view, times)\n"
    "  return kernel { name = 'product',\n"
    "    args = { tensor('A', f16, 'M', 'K'), tensor('B', f16, 'N', 'K'), out('C', f16, 'M', 'N') },\n"
    "    tune = { BM = {64}, BN = {64}, BK = {64} },\n"
    "    grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end,\n"
    "    body = function(a, d, c, i, j)\n"
    "      local acc = zeros(f32, c.BM, c.BN)\n"
    "      for k in range(0, d.K, c.BK) do\n"
    "        acc = acc + dot(view(a.A, d, i * c.BM, k, c), a.B:tile({j * c.BN, k}, {c.BN, c.BK}):T())\n"
    "      end\n"
    "      a.C:store({i * c.BM, j * c.BN}, cast(acc, f16))\n"
    "    end,\n"
    "    oracle = function(t) return matmul(t.A * (times or 1), t.B:T()) end }\n"
    "end\n"
    "return {\n"
    "  plain = product(function(A, d, m, k, c) return A:tile({m, k}, {c.BM, c.BK}) end),\n"
    "  part = product(function(A, d, m, k, c)\n"
    "    return A:slice({0, 0}, {d.M, d.K}):tile({m, k}, {c.BM, c.BK})\n"
    "  end),\n"
    "  shape = product(function(A, d, m, k, c)\n"
    "    return A:reshape(1, d.M, d.K):at(0):tile({m, k}, {c.BM, c.BK})\n"
    "  end),\n"
    "  computed = product(function(A, d, m, k, c) return A:tile({m, k}, {c.BM, c.BK}) * 2 end, 2),\n"
    "  padded = product(function(A, d, m, k, c)\n"
    "    return A:tile({m, k}, {c.BM, c.BK}, {pad = 1})\n"
    "  end),\n"
    "  shifted = product(function(A, d, m, k, c)\n"
    "    return A:tile({m, k + 1 - 1}, {c.BM, c.BK})\n"
    "  end),\n"
    "}\n";

struct asked {
  const char *kernel;
  const char *set[5], *shapes[4], *strides[3], *offsets[3], *layouts[3];
  const char *why; /* NULL: the unit takes it */
};

static uint32_t length(const char *const *list, uint32_t most) {
  uint32_t n = 0;
  while (n < most && list[n])
    n++;
  return n;
}

static struct kiln_request request(const struct asked *q, bool asks) {
  static const char *const sizes[] = {"M=72", "N=64", "K=64"};
  struct kiln_request r = help_api_request();
  r.kernel = q->kernel;
  r.target = "sm_90a";
  r.set = q->set + !asks;
  r.n_set = length(r.set, 4);
  r.shapes = q->shapes[0] ? q->shapes : sizes;
  r.n_shapes = 3;
  r.strides = q->strides;
  r.n_strides = length(q->strides, 3);
  r.offsets = q->offsets;
  r.n_offsets = length(q->offsets, 3);
  r.layouts = q->layouts;
  r.n_layouts = length(q->layouts, 3);
  return r;
}

#define ASKED .set = {"warpgroups=1"}
#define ROWS  "may not begin at multiples of 16 bytes"

static const struct asked rows[] = {
    {"plain", ASKED},
    {"plain", ASKED, .strides = {"A=72,1"}, .offsets = {"A=8", "B=16"}},
    /* rows not a multiple of 16 bytes apart */
    {"plain", ASKED, .strides = {"A=65,1"}, .why = "load `load.A`: .*" ROWS},
    {"plain", ASKED, .strides = {"A=66,1"}, .why = "load `load.A`: .*" ROWS},
    {"plain", ASKED, .strides = {"B=68,1"}, .why = "load `load.B`: .*" ROWS},
    /* a base off by 2, 4 and 8 bytes */
    {"plain", ASKED, .offsets = {"A=1"}, .why = "load `load.A`: .*" ROWS},
    {"plain", ASKED, .offsets = {"A=2"}, .why = "load `load.A`: .*" ROWS},
    {"plain", ASKED, .offsets = {"B=4"}, .why = "load `load.B`: .*" ROWS},
    /* rows that do not end there, and rows shorter than that */
    {"plain", ASKED, .shapes = {"M=72", "N=64", "K=60"}, .why = "load `load.A`: .*" ROWS},
    {"plain", ASKED, .shapes = {"M=72", "N=64", "K=4"}, .why = "load `load.A`: .*" ROWS},
    {"plain", ASKED, .shapes = {"M=72", "N=64", "K=1"}, .why = ROWS "|lies with its rows"},
    /* strides below 0; elements apart; rows that are one (a map has strides of 0) */
    {"plain", ASKED, .strides = {"A=-64,1"}, .why = "load `load.A`: .*" ROWS},
    {"plain", ASKED, .strides = {"B=64,-1"}, .why = ROWS "|lies with its rows"},
    {"plain", ASKED, .strides = {"A=128,2"}, .why = ROWS "|lies with its rows"},
    {"plain", ASKED, .strides = {"A=0,1"}},
    {"plain", ASKED, .strides = {"A=0,0"}, .why = ROWS "|lies with its rows"},
    /* columns that lie together, with too few of them */
    {"plain", ASKED, .layouts = {"A=col"}},
    {"plain", .set = {"warpgroups=1", "BN=32"}, .shapes = {"M=72", "N=80", "K=64"},
     .layouts = {"B=col"}, .why = "rows or columns adjacent, and not 64 of them"},
    /* nothing at all */
    {"plain", ASKED, .shapes = {"M=72", "N=64", "K=0"}, .why = "has no elements"},
    {"plain", ASKED, .shapes = {"M=0", "N=64", "K=64"}, .why = "has no elements"},
    /* what lies outside is not 0; views that are more than dims of the argument */
    {"padded", ASKED, .why = "what lies outside is not read as 0"},
    {"part", ASKED, .why = "its view is a part, a reshape or a repetition"},
    {"shape", ASKED, .why = "its view is a part, a reshape or a repetition"},
    {"computed", ASKED},
    /* offsets of which too little is known */
    {"shifted", ASKED, .why = "load `load.A`: .*" ROWS},
};

static void refusals_say_why(void **state) {
  (void)state;
  struct help_api t = {0};
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "views.lua", text);
  for (size_t i = 0; i < COUNT(rows); i++) {
    const struct kiln_report *report = NULL;
    struct kiln_request r = request(&rows[i], true);
    enum kiln_status st =
        kiln_run_case(file, &r, KILN_ON_EMU, KILN_CASE_VERIFY | KILN_CASE_EXACT, &report);
    if (!rows[i].why) {
      if (st != KILN_OK)
        fail_msg("row %zu: %s", i, kiln_diag_text(t.ctx, 0));
      continue;
    }
    if (st != KILN_INVALID || kiln_diag_count(t.ctx) != 1)
      fail_msg("row %zu: %s, %u messages", i, kiln_status_name(st), kiln_diag_count(t.ctx));
    const char *said = kiln_diag_text(t.ctx, 0);
    if (strcmp(kiln_diag_code(t.ctx, 0), "K0403") != 0 || !help_api_matches(said, rows[i].why) ||
        !help_api_matches(said, "^views.lua:9:[0-9]+: error: schedule `warpgroups` = 1: "))
      fail_msg("row %zu says: %s", i, said);
    kiln_diag_clear(t.ctx);
    r = request(&rows[i], false);
    st = kiln_run_case(file, &r, KILN_ON_EMU, KILN_CASE_VERIFY | KILN_CASE_EXACT, &report);
    if (st != KILN_OK)
      fail_msg("row %zu, not asked: %s", i, kiln_diag_text(t.ctx, 0));
  }
  kiln_file_free(file);
  help_api_stop(&t);
}

/* ---- at the launch ---- */

struct bound {
  uint16_t mem[3][80 * 80];
  struct interp_arg args[3];
};

/* M = 72, N = 64, K = 64; strides and origins of A and B in elements. */
static void bind(struct bound *b, int64_t sa, int64_t sb, int64_t oa, int64_t ob) {
  const int64_t dim[3][2] = {{72, 64}, {64, 64}, {72, 64}}, stride[3] = {sa, sb, 64};
  const int64_t origin[3] = {oa, ob, 0};
  memset(b, 0, sizeof *b);
  for (int k = 0; k < 3; k++) {
    for (int i = 0; i < 80 * 80; i++)
      b->mem[k][i] = (uint16_t)(i % 3 == 0 ? 0x3c00 : 0);
    b->args[k].tensor = (struct interp_tensor){b->mem[k],      DT_F16,   2, {dim[k][0], dim[k][1]},
                                               {stride[k], 1}, origin[k]};
  }
}

static void maps_are_checked_at_the_launch(void **state) {
  (void)state;
  static const struct {
    int64_t sa, sb, oa, ob;
    const char *why; /* NULL: launched */
  } launches[] = {
      {64, 64, 0, 0, NULL},
      {72, 80, 8, 16, NULL},
      {0, 64, 0, 0, NULL},
      {65, 64, 0, 0, "A.stride0 divisible by 8"},
      {64, 68, 0, 0, "B.stride0 divisible by 8"},
      {64, 64, 1, 0, "A.addr divisible by 16"},
      {64, 64, 0, 4, "B.addr divisible by 16"},
      {-64, 64, 71 * 64, 0, "multiples of 16 bytes|from 0 to 2.40"},
  };
  struct help_api t = {0};
  struct bound *b = aligned_alloc(64, (sizeof *b + 63) / 64 * 64);
  assert_non_null(b);
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "views.lua", text);
  struct kiln_request r = request(&rows[0], true);
  struct kiln_variant *v = help_api_specialise(file, &r);
  help_api_expect(&t, api_lower(v), KILN_OK, NULL);
  for (size_t i = 0; i < COUNT(launches); i++) {
    struct emu_options opt = {.mode = EMU_LATE};
    bind(b, launches[i].sa, launches[i].sb, launches[i].oa, launches[i].ob);
    bool ok = emu_run(v->machine, b->args, 3, &opt, NULL, &t.ctx->diags, &t.ctx->mem);
    if (ok != !launches[i].why ||
        (!ok && !help_api_matches(kiln_diag_text(t.ctx, 0), launches[i].why)))
      fail_msg("launch %zu: %s", i, ok ? "launched" : kiln_diag_text(t.ctx, 0));
    kiln_diag_clear(t.ctx);
  }
  kiln_variant_free(v);
  kiln_file_free(file);
  help_api_stop(&t);
  free(b);
}

/* The variant that such tensors get: another key, no maps of what has none. */
static void others_get_another_variant(void **state) {
  (void)state;
  struct help_api t = {0};
  char first[33], key[33];
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "views.lua", text);
  for (size_t i = 0; i < COUNT(rows); i++) {
    const char *said;
    struct kiln_request r = request(&rows[i], false);
    struct kiln_variant *v = NULL;
    help_api_expect(&t, kiln_specialise(file, &r, &v), KILN_OK, NULL);
    help_api_expect(&t, kiln_variant_key(v, i ? key : first), KILN_OK, NULL);
    help_api_expect(&t, kiln_show(v, "machine", NULL, &said), KILN_OK, NULL);
    bool maps = strstr(said, "tma_load $A") != NULL;
    if (maps != !rows[i].why)
      fail_msg("row %zu: A comes %s", i, maps ? "by the unit" : "another way");
    if (rows[i].why)
      assert_string_not_equal(first, key);
    kiln_variant_free(v);
  }
  kiln_file_free(file);
  help_api_stop(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(refusals_say_why),
      cmocka_unit_test(maps_are_checked_at_the_launch),
      cmocka_unit_test(others_get_another_variant),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
