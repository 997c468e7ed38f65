/* The public API: what can be asked of a kernel, list by list, and what each wrong value is
 * told. */
#include "help_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A request as words of the command line: "--set BM=8 --shape M=4 --case 1". */
struct asked {
  struct kiln_request r;
  char words[512];
  const char *list[9][8];
};

static void ask(struct asked *a, const char *words) {
  static const char *const options[] = {"set",    "const",  "shape",  "layout", "stride",
                                        "offset", "scalar", "absent", "fused"};
  memset(a, 0, sizeof *a);
  a->r = help_api_request();
  snprintf(a->words, sizeof a->words, "%s", words);
  uint32_t *const counts[] = {&a->r.n_set,     &a->r.n_consts,  &a->r.n_shapes,
                              &a->r.n_layouts, &a->r.n_strides, &a->r.n_offsets,
                              &a->r.n_scalars, &a->r.n_absent,  &a->r.n_fused};
  const char *const **const lists[] = {&a->r.set,     &a->r.consts,  &a->r.shapes,
                                       &a->r.layouts, &a->r.strides, &a->r.offsets,
                                       &a->r.scalars, &a->r.absent,  &a->r.fused};
  for (char *w = strtok(a->words, " "); w; w = strtok(NULL, " ")) {
    const char *name = w + 2, *value = strtok(NULL, " ");
    assert_non_null(value);
    bool known = true;
    if (strcmp(name, "case") == 0)
      a->r.case_index = atoi(value);
    else if (strcmp(name, "seed") == 0)
      a->r.seed = (uint64_t)atoi(value);
    else if (strcmp(name, "target") == 0)
      a->r.target = value;
    else if (strcmp(name, "kernel") == 0)
      a->r.kernel = value;
    else
      known = false;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
      if (strcmp(name, options[i]) == 0) {
        known = true;
        a->list[i][(*counts[i])++] = strcmp(value, "''") == 0 ? "" : value;
        *lists[i] = a->list[i];
      }
    assert_true(known);
  }
}

/* Two dims of which one is a const, an expression dim, every kind of argument. */
static const char wide[] =
    "return kernel {\n"
    "  name = 'wide',\n"
    "  const = { T = {f32, bf16}, N = {64, any}, fast = {true, false}, mode = {'a', 'b'} },\n"
    "  args = { tensor('X', 'T', 'M', 'N'), tensor('W', f32, 'M/4'), optional(tensor('B', f32, 'N')),\n"
    "           scalar('alpha', f32), scalar('n', s32), scalar('u', u8), optional(scalar('b', bool)),\n"
    "           out('Y', 'T', 'M', 'N') },\n"
    "  tune = { BM = {4, 8}, S = {0.5, 2} },\n"
    "  legal = function(c) return c.BM < 100 end,\n"
    "  grid = function(d, c) return cdiv(d.M, c.BM) end,\n"
    "  body = function(a, d, c, i)\n"
    "    a.Y:store({i * c.BM, 0}, a.X:tile({i * c.BM, 0}, {c.BM, c.N}))\n"
    "  end,\n"
    "  oracle = function(t) return t.X end,\n"
    "  cases = { {shape = {M = 8}}, {shape = {M = 12, N = 32}, const = {T = bf16}},\n"
    "            {shape = {M = 4}, const = {N = 16}} },\n"
    "}\n";

static void test_wrong_values(void **state) {
  (void)state;
  static const struct {
    const char *words, *says;
  } wrong[] = {
      /* what has no KEY=VALUE form */
      {"--set BM", "--set: expected KEY=VALUE, got `BM`"},
      {"--set =8", "--set: expected KEY=VALUE, got `=8`"},
      {"--const T", "--const: .*T"},
      {"--shape M", "--shape: expected KEY=VALUE, got `M`"},
      {"--shape ''", "--shape: expected KEY=VALUE, got ``"},
      {"--layout X", "--layout: expected KEY=VALUE, got `X`"},
      {"--stride X", "--stride: expected KEY=VALUE, got `X`"},
      {"--scalar n", "--scalar: expected KEY=VALUE, got `n`"},
      /* --set */
      {"--set BM=", "--set: .*BM"},
      {"--set BM=x", "--set: `BM` of kernel `wide` needs a number, got \"x\"; its list is 4, 8"},
      {"--set BM=true", "--set: `BM` .*needs a number, got true"},
      {"--set BQ=8",
       "--set: kernel `wide` has no meta-parameter `BQ`.*BM.*\n.*note: schedule knobs are threads, "},
      {"--set T=f32", "--set: `T` is a const of kernel `wide`: use --const"},
      {"--set BM=128", "`legal` refuses .*BM=128"},
      {"--set stages=x", "--set: knob `stages` takes a whole number, got `x`"},
      {"--set stages=1.5", "--set: knob `stages` takes a whole number, got `1.5`"},
      {"--set stages=3000", "--set: .*stages"},
      /* --const */
      {"--const T=f64",
       "--const: f64 is no value of const `T` of kernel `wide`; its list is f32, bf16"},
      {"--const T=4", "--const: `T` .*needs a dtype, got 4"},
      {"--const mode=c", "--const: \"c\" is no value of const `mode`.*\"a\", \"b\""},
      {"--const fast=1", "--const: `fast` .*needs true or false, got 1"},
      {"--const N=x", "--const: `N` .*needs a number"},
      {"--const BM=8", "--const: `BM` is a tune list of kernel `wide`: use --set"},
      {"--const Q=8", "--const: kernel `wide` has no const `Q`"},
      /* --shape */
      {"--shape Q=8", "--shape: kernel `wide` has no dim `Q`"},
      {"--shape M=x", "--shape: `M` must be a whole number of at least 0, got `x`"},
      {"--shape M=", "--shape: `M` must be .*got ``"},
      {"--shape M=-1", "--shape: `M` must be .*got `-1`"},
      {"--shape M=1.5", "--shape: `M` must be .*got `1.5`"},
      {"--shape M=4x", "--shape: `M` must be .*got `4x`"},
      {"--shape M=+4", "--shape: `M` must be .*got `\\+4`"},
      {"--shape M=0x10", "--shape: `M` must be .*got `0x10`"},
      {"--shape M=99999999999999999999", "--shape: `M` must be .*got `99999999999999999999`"},
      {"--shape M=8 --shape N=32 --const N=64", "dim `N` is 32 in the shape and 64 as a constant"},
      {"--shape M=6", "M is a multiple of 4, found 6"}, /* M/4 is exact */
      {"--shape M=4611686018427387904", "`[XY]` has more elements than memory can hold"},
      /* --layout and --stride */
      {"--layout Q=row", "--layout: kernel `wide` has no tensor `Q`"},
      {"--layout alpha=row", "--layout: kernel `wide` has no tensor `alpha`"},
      {"--layout X=diagonal", "--layout: `X` is row or col, got `diagonal`"},
      {"--offset Q=1", "--offset: kernel `wide` has no tensor `Q`"},
      {"--offset n=1", "--offset: kernel `wide` has no tensor `n`"},
      {"--offset X=-1", "--offset: `X` must be an integer of at least 0, got `-1`"},
      {"--offset X=1,2", "--offset: `X` must be an integer of at least 0, got `1,2`"},
      {"--offset X=", "--offset: `X` must be an integer of at least 0, got ``"},
      {"--stride Q=1,2", "--stride: kernel `wide` has no tensor `Q`"},
      {"--stride n=1", "--stride: kernel `wide` has no tensor `n`"},
      {"--stride X=1", "--stride: `X` has rank 2: expected 2 comma-separated numbers, got `1`"},
      {"--stride X=1,2,3", "--stride: `X` has rank 2: .*got `1,2,3`"},
      {"--stride X=1,", "--stride: `X` has rank 2: .*got `1,`"},
      {"--stride X=,1", "--stride: `X` has rank 2: .*got `,1`"},
      {"--stride X=1,x", "--stride: `X` has rank 2: .*got `1,x`"},
      {"--stride W=", "--stride: `W` has rank 1: expected 1 comma-separated number, got ``"},
      {"--stride W=99999999999999999999", "--stride: `W` has rank 1"},
      /* --scalar */
      {"--scalar Q=1", "--scalar: kernel `wide` has no scalar argument `Q`"},
      {"--scalar X=1", "--scalar: kernel `wide` has no scalar argument `X`"},
      {"--scalar alpha=x", "--scalar: `alpha` is f32, got `x`"},
      {"--scalar alpha=", "--scalar: `alpha` is f32, got ``"},
      {"--scalar alpha=1x", "--scalar: `alpha` is f32, got `1x`"},
      {"--scalar n=1.5", "--scalar: `n` is s32, got `1.5`"},
      {"--scalar n=nan", "--scalar: `n` is s32, got `nan`"},
      {"--scalar n=inf", "--scalar: `n` is s32, got `inf`"},
      {"--scalar n=3000000000", "--scalar: `n` is s32, got `3000000000`"},
      {"--scalar u=256", "--scalar: `u` is u8, got `256`"},
      {"--scalar u=-1", "--scalar: `u` is u8, got `-1`"},
      {"--scalar b=2", "--scalar: `b` is bool, got `2`"},
      /* the rest */
      {"--absent Q", "--absent: kernel `wide` has no optional argument `Q`"},
      {"--absent X", "--absent: kernel `wide` has no optional argument `X`"},
      {"--case 3", "--case: kernel `wide` has 3 cases, counted from 0: there is no case 3"},
      {"--target sm_12", "--target: unknown target `sm_12`; known are .*sm_90a"},
      {"--kernel vide", "`vide`.*wide"},
      /* twice, or in two ways */
      {"--shape M=8 --shape N=4 --shape M=4", "--shape: `M` is given twice, as `M=8` and `M=4`"},
      {"--set BM=8 --set BM=8", "--set: `BM` is given twice"},
      {"--const T=f32 --const T=bf16", "--const: `T` is given twice"},
      {"--layout X=row --layout X=col", "--layout: `X` is given twice"},
      {"--stride X=1,8 --stride X=64,1", "--stride: `X` is given twice"},
      {"--scalar n=1 --scalar n=2", "--scalar: `n` is given twice"},
      {"--absent B --absent B", "--absent: `B` is given twice, as `B` and `B`"},
      {"--offset X=1 --offset X=2", "--offset: `X` is given twice"},
      {"--fused bias=B --fused bias=B", "--fused: `bias` is given twice"},
      /* --fused */
      {"--fused bias", "--fused: expected bias=ARG, residual=ARG or activation=NAME, got `bias`"},
      {"--fused bia=B", "--fused: expected bias=ARG, .*, got `bia=B`"},
      {"--fused bias=Q", "--fused bias: `Q` is no argument of this case with 1 dim"},
      {"--fused bias=n", "--fused bias: `n` is no argument of this case with 1 dim"},
      {"--fused bias=X", "--fused bias: `X` is no argument of this case with 1 dim"},
      {"--fused bias=B --absent B", "--fused bias: `B` is no argument of this case"},
      {"--fused residual=B", "--fused residual: `B` is no argument of this case with 2 dims"},
      {"--fused activation=gelu", "expected none, relu or gelu_tanh, got `gelu`"},
      {"--layout X=col --stride X=1,8", "`X` has both --layout and --stride"},
      {"--set schedule.stages=x", "--set: knob `stages` takes a whole number"},
      {"--set schedule.frob=1", "has no meta-parameter `schedule.frob`"},
      /* an output that overlaps itself */
      {"--stride Y=0,1", "`Y` is written, but its strides make elements share memory"},
      {"--stride Y=1,1", "`Y` is written, but its strides"},
      {"--stride Y=63,1", "`Y` is written, but its strides"},
      {"--stride Y=-2,4", "`Y` is written, but its strides"},
      /* many at once */
      {"--set BQ=1 --shape Q=1 --scalar Q=1 --absent Q",
       "--shape: .*`Q`.*--set: .*`BQ`.*--absent: .*`Q`.*--scalar: .*`Q`"},
  };
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "wide.lua", wide);
  const struct kiln_report *report;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    struct asked a;
    ask(&a, wrong[i].words);
    print_message("%s\n", wrong[i].words);
    help_api_expect(&t, kiln_run_case(file, &a.r, KILN_ON_INTERP, 0, &report), KILN_INVALID,
                    wrong[i].says);
    assert_null(report);
  }
  kiln_file_free(file);
  help_api_stop(&t);
}

/* A scalar that its dtype does not hold is refused, in a case as on the command line. */
static void test_scalars_of_cases(void **state) {
  (void)state;
  static const char source[] =
      "local function case(t) return {shape = {N = 4}, scalar = t} end\n"
      "return kernel {\n"
      "  name = 'k',\n"
      "  args = { scalar('s', s8), scalar('t', s64), scalar('b', bool), scalar('f', bf16),\n"
      "           out('Y', s64, 'N') },\n"
      "  grid = function() return 1 end,\n"
      "  body = function(a) a.Y:store({0}, zeros(s64, 4) + cast(a.s, s64) + a.t) end,\n"
      "  oracle = function(t, d) return full(f64, t.s + t.t, d.N) end,\n"
      "  cases = { case {s = -128, t = 1 << 53, b = true, f = 0.1},\n"
      "            case {s = 300}, case {s = 0.5}, case {s = 0 / 0}, case {b = 3},\n"
      "            case {t = math.maxinteger}, case {t = (1 << 53) + 1}, case {t = 1e30} },\n"
      "}\n";
  static const char *const says[] = {
      NULL,
      "k.lua:2:8: error: the case's scalar `s` is s8, got 300 .K0404",
      "`s` is s8, got 0.5 .K0404",
      "`s` is s8, got -?nan .K0404",
      "`b` is bool, got 3 .K0404",
      "`t` is s64, got 9223372036854775807; whole numbers are passed exactly up to 2.53 .K0404",
      "`t` is s64, got 9007199254740993; whole numbers are passed exactly up to 2.53 .K0404",
      "`t` is s64, got 1e.30",
  };
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "k.lua", source);
  const struct kiln_report *report;
  struct asked a;
  for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
    ask(&a, "");
    a.r.case_index = (int32_t)i;
    enum kiln_status st = kiln_run_case(file, &a.r, KILN_ON_INTERP, 0, &report);
    if (says[i])
      help_api_expect(&t, st, KILN_INVALID, says[i]);
    else
      help_api_expect(&t, st, KILN_OK, NULL);
  }
  ask(&a, "--scalar t=9007199254740993");
  help_api_expect(&t, kiln_run_case(file, &a.r, KILN_ON_INTERP, 0, &report), KILN_INVALID,
                  "--scalar: `t` is s64, got `9007199254740993`; whole numbers");
  kiln_file_free(file);
  help_api_stop(&t);
}

static void test_wrong_inputs(void **state) {
  (void)state;
  static const struct {
    const char *gives, *says;
  } wrong[] = {
      {"{Y = 3}", "gives `Y`, which is no input: it is only written; args are X, Y"},
      {"{XX = 3}", "gives `XX`, which is no argument .did you mean `X`..; args are X, Y"},
      {"{X = rng:int(5, 3, 4)}", "rng:int.lo, hi. needs integers with lo <= hi"},
      {"{X = rng:int(0, 0 / 0, 4)}", "rng:int.lo, hi. needs integers with lo <= hi"},
      {"{X = rng:int(math.mininteger, math.maxinteger, 4)}",
       "rng:int.lo, hi. takes bounds of at most 2.53 in size and apart"},
      {"{X = rng:int(1e300, 1e300, 4)}", "takes bounds of at most 2.53"},
  };
  struct help_api t;
  help_api_start(&t, NULL);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char source[512];
    snprintf(source, sizeof source,
             "return kernel { name = 'k', args = { tensor('X', f32, 'N'), out('Y', f32, 'N') },\n"
             "  grid = function() return 1 end, body = function() end,\n"
             "  oracle = function(t) return t.X end, cases = {{shape = {N = 4}}},\n"
             "  inputs = function(shape, rng) return %s end }\n",
             wrong[i].gives);
    struct kiln_file *file = help_api_load(&t, "k.lua", source);
    struct asked a;
    ask(&a, "");
    const struct kiln_report *report;
    help_api_expect(&t, kiln_run_case(file, &a.r, KILN_ON_INTERP, 0, &report), KILN_INVALID,
                    wrong[i].says);
    kiln_file_free(file);
  }
  help_api_stop(&t);
}

static void test_right_values(void **state) {
  (void)state;
  static const struct {
    const char *words, *text; /* of the report */
  } right[] = {
      {"--set BM=8", "M=8 N=64  BM=8 N=64 S=0.5 T=f32 fast=true mode=\"a\""},
      {"--set BM=6", "BM=6 "}, /* the tuner's list is a list of proposals */
      {"--set S=2", "S=2 "},
      {"--set stages=2", "BM=4"},
      {"--const T=bf16", "T=bf16"},
      {"--const fast=false --const mode=b", "fast=false mode=\"b\""},
      {"--shape M=0", "M=0 "},
      {"--shape M=20 --shape N=40", "M=20 N=40  BM=4 N=40 "},
      {"--shape M=8 --const N=128", "M=8 N=128  BM=4 N=128 "},
      {"--const N=24", "M=8 N=24 "},
      /* The request's values replace the case's of the same name. */
      {"--case 1", "M=12 N=32  .*T=bf16"},
      {"--case 1 --const N=8", "M=12 N=8  BM=4 N=8 "},
      {"--case 1 --shape N=8", "M=12 N=8  BM=4 N=8 "},
      {"--case 2", "M=4 N=16  BM=4 N=16 "},
      {"--case 2 --shape N=8", "M=4 N=8  BM=4 N=8 "},
      {"--case 2 --const N=8", "M=4 N=8  BM=4 N=8 "},
      {"--case 1 --const T=f32 --shape M=16", "M=16 N=32  .*T=f32"},
      {"--set schedule.stages=2", "BM=4"},
      {"--absent B --absent b", "M=8"},
      {"--layout X=col --layout W=row", "M=8"},
      {"--stride X=1,8 --stride W=2", "M=8"},
      {"--stride X=-64,1", "M=8"},
      {"--stride X=0,1", "M=8"},
      {"--stride Y=64,1", "M=8"},
      {"--stride Y=-1,8", "M=8"},
      {"--stride Y=100,-1", "M=8"},
      {"--offset X=1 --offset Y=0 --stride X=-65,-1", "M=8"},
      {"--shape M=4 --const N=5 --stride Y=5,3", "M=4"}, /* 5i + 3j: apart, though not nested */
      {"--scalar alpha=1e-5 --scalar n=-3 --scalar u=255 --scalar b=1", "M=8"},
      {"--scalar alpha=inf", "M=8"},
      {"--absent B", "M=8"},
      {"--fused bias=B --fused residual=X --fused activation=relu", "M=8"},
      {"--seed 5 --target sm_80", "M=8"},
      {"--kernel wide", "M=8"},
  };
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "wide.lua", wide);
  const struct kiln_report *report;
  for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
    struct asked a;
    ask(&a, right[i].words);
    print_message("%s\n", right[i].words);
    help_api_expect(&t, kiln_run_case(file, &a.r, KILN_ON_INTERP, KILN_CASE_VERIFY, &report),
                    KILN_OK, NULL);
    if (!help_api_matches(report->text, right[i].text))
      fail_msg("expected /%s/ in: %s", right[i].text, report->text);
  }
  kiln_file_free(file);
  help_api_stop(&t);
}

static const char no_cases[] =
    "return kernel { name = 'k', args = { tensor('X', f32, 'M', 'N'), out('Y', f32, 'M', 'N') },\n"
    "  grid = function(d) return cdiv(d.M, 4), cdiv(d.N, 16) end,\n"
    "  body = function(a, d, c, i, j)\n"
    "    a.Y:store({i * 4, j * 16}, a.X:tile({i * 4, j * 16}, {4, 16}))\n"
    "  end }\n";

static void test_without_a_shape(void **state) {
  (void)state;
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "k.lua", no_cases);
  const struct kiln_report *report;
  struct kiln_variant *v;
  struct asked a;
  /* A variant needs no shape: then nothing is assumed of it. Running one does. */
  v = help_api_specialise(file, NULL);
  kiln_variant_free(v);
  ask(&a, "--shape M=4");
  v = help_api_specialise(file, &a.r);
  kiln_variant_free(v);
  help_api_expect(&t, kiln_run_case(file, &a.r, KILN_ON_INTERP, 0, &report), KILN_INVALID,
                  "dim `N` of kernel `k` has no value; give --shape N=");
  /* Layouts and strides are not ignored. */
  ask(&a, "--layout X=col");
  help_api_expect(&t, kiln_specialise(file, &a.r, &v), KILN_INVALID, "dim `M` .*--shape M=");
  /* Case 0 is asked for by a zeroed request, too: no cases, no matter; case 1 is a mistake. */
  ask(&a, "--case 0 --shape M=4 --shape N=4");
  help_api_expect(&t, kiln_run_case(file, &a.r, KILN_ON_INTERP, 0, &report), KILN_OK, NULL);
  ask(&a, "--case 1 --shape M=4 --shape N=4");
  help_api_expect(&t, kiln_run_case(file, &a.r, KILN_ON_INTERP, 0, &report), KILN_INVALID,
                  "`k` has 0 cases");
  kiln_file_free(file);
  help_api_stop(&t);
}

/* Sizes that no memory holds: specialised for all the same, refused before memory is taken. */
static void test_huge_shapes(void **state) {
  (void)state;
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "k.lua", no_cases);
  struct asked a;
  ask(&a, "--shape M=1099511627776 --shape N=4096");
  struct kiln_variant *v = help_api_specialise(file, &a.r);
  const char *text;
  help_api_expect(&t, kiln_show(v, "cuda", NULL, &text), KILN_OK, NULL);
  kiln_variant_free(v);
  static const struct {
    const char *words, *says;
  } wrong[] = {
      {"--shape M=1099511627776 --shape N=16", "needs more than .* GiB of host memory"},
      {"--shape M=1099511627776 --shape N=1099511627776", "more elements than memory can hold"},
      {"--shape M=0 --shape N=9223372036854775807", "more elements than memory can hold"},
      {"--shape M=4 --shape N=4 --stride X=1,1152921504606846976", "`X` reaches further"},
      {"--shape M=4 --shape N=4 --offset X=4611686018427387904", "`X` reaches further"},
      {"--shape M=4 --shape N=4 --offset X=1125899906842624", "needs more than .* GiB"},
      {"--shape M=4 --shape N=4 --stride X=1,4611686018427387904", "`X` reaches further"},
      {"--shape M=4 --shape N=4 --stride X=1,1125899906842624", "needs more than .* GiB"},
      {"--shape M=4 --shape N=4 --stride Y=-1125899906842624,1", "needs more than .* GiB"},
  };
  const struct kiln_report *report;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    print_message("%s\n", wrong[i].words);
    ask(&a, wrong[i].words);
    help_api_expect(&t, kiln_run_case(file, &a.r, KILN_ON_INTERP, KILN_CASE_VERIFY, &report),
                    KILN_INVALID, wrong[i].says);
  }
  kiln_file_free(file);
  help_api_stop(&t);
}

/* What the kernel itself pins and proposes. */
static void test_of_the_kernel(void **state) {
  (void)state;
  static const struct {
    const char *fields, *args, *says;
  } cases[] = {
      {"schedule = {stages = 2}", "", NULL},
      {"schedule = {stages = 99}", "", "k.lua:1:.*schedule `stages`: "},
      {"schedule = {frob = 2}", "", "k.lua:1:.*schedule `frob`: "},
      {"schedule = {stages = true}", "", "k.lua:1:.*schedule `stages`: expected a whole number"},
      {"cases = {{shape = {M = 4, N = 16}, stride = {X = {1, 4}, Y = {20, 1}}}}", "", NULL},
      {"cases = {{shape = {M = 4, N = 16}, stride = {Y = {0, 1}}}}", "", "`Y` is written, but"},
      {"cases = {{shape = {M = 4, N = 16}}}", "tensor('Z', f32, 'M - 8'),", "`Z`.* -4"},
      {"cases = {{shape = {M = 0, N = 16}}}", "tensor('Z', f32, '8 // M'),",
       "`Z` has no value: .*zero"},
  };
  struct help_api t;
  help_api_start(&t, NULL);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[1024];
    snprintf(text, sizeof text,
             "return kernel { name = 'k', args = { %s tensor('X', f32, 'M', 'N'),\n"
             "    inout('Y', f32, 'M', 'N') },\n"
             "  grid = function(d) return cdiv(d.M, 4), cdiv(d.N, 16) end,\n"
             "  body = function(a, d, c, i, j) local at, size = {i * 4, j * 16}, {4, 16}\n"
             "    a.Y:store(at, a.X:tile(at, size) + a.Y:tile(at, size)) end,\n"
             "  %s }\n",
             cases[i].args, cases[i].fields);
    print_message("%s\n", cases[i].fields);
    struct kiln_file *file = help_api_load(&t, "k.lua", text);
    const struct kiln_report *report;
    struct asked a;
    ask(&a, strstr(cases[i].fields, "cases") ? "--seed 3" : "--shape M=4 --shape N=16");
    enum kiln_status st = kiln_run_case(file, &a.r, KILN_ON_INTERP, KILN_CASE_VERIFY, &report);
    help_api_expect(&t, st, cases[i].says ? KILN_INVALID : KILN_OK, cases[i].says);
    kiln_file_free(file);
  }
  help_api_stop(&t);
}

static void test_of_an_ir_text(void **state) {
  (void)state;
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "k.lua", no_cases), *ir;
  struct kiln_variant *v = help_api_specialise(file, NULL);
  const char *text;
  assert_int_equal(kiln_show(v, "tile", NULL, &text), KILN_OK);
  ir = help_api_load(&t, "k.tir", text);
  static const struct {
    const char *words, *says;
  } wrong[] = {
      {"--set BM=4",
       "--set: an IR text has its config fixed; `BM` is no schedule knob.*\n.*note: schedule knobs are"},
      {"--const T=f32", "--const: an IR text has its constants fixed"},
      {"--shape Q=1", "no dim `Q`"},
      {"--absent X", "no optional argument `X`"},
      {"--case 2", "has 0 cases"},
      {"--shape M=4", "dim `N` of kernel `k` has no value"},
  };
  const struct kiln_report *report;
  struct asked a;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    ask(&a, wrong[i].words);
    help_api_expect(&t, kiln_run_case(ir, &a.r, KILN_ON_INTERP, 0, &report), KILN_INVALID,
                    wrong[i].says);
  }
  ask(&a, "--shape M=5 --shape N=17 --set stages=2 --layout X=col");
  help_api_expect(&t, kiln_run_case(ir, &a.r, KILN_ON_INTERP, KILN_CASE_VERIFY, &report), KILN_OK,
                  NULL);
  assert_int_equal(report->level, KILN_LEVEL_SELF_CHECKED);
  kiln_variant_free(v);
  kiln_file_free(ir);
  kiln_file_free(file);
  help_api_stop(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_wrong_values),    cmocka_unit_test(test_scalars_of_cases),
      cmocka_unit_test(test_wrong_inputs),    cmocka_unit_test(test_right_values),
      cmocka_unit_test(test_without_a_shape), cmocka_unit_test(test_huge_shapes),
      cmocka_unit_test(test_of_the_kernel),   cmocka_unit_test(test_of_an_ir_text),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
