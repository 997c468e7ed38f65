/* The frontend's interface: reference kernels against their own oracles through the interpreter,
 * configs, inputs and oracles, limits, running out of memory at every allocation. */
#include "base/num.h"
#include "help_fe.h"
#include "ir/interp.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- running a case ---- */

struct run {
  struct hf *h;
  const struct fe_kernel *k;
  const struct fe_case *c;
  struct fe_config config;
  uint64_t absent;
};

static bool dim_value(void *user, const char *name, int64_t *value) {
  const struct run *r = user;
  for (uint32_t i = 0; i < r->c->n_shape; i++)
    if (str_eq(r->c->shape[i].name, name)) {
      *value = r->c->shape[i].value.i;
      return true;
    }
  return false;
}

static bool make_config(struct run *r) {
  struct fe_config fixed = fe_empty_config(r->k, &r->h->arena);
  for (uint32_t i = 0; i < r->c->n_consts; i++)
    if (!fe_set_value(r->h->file, r->k, &r->h->arena, FE_SET_CONST, "case", r->c->consts[i].name,
                      r->c->consts[i].value, &fixed))
      return false;
  for (uint32_t i = 0; i < r->c->n_set; i++)
    if (!fe_set_value(r->h->file, r->k, &r->h->arena, FE_SET_TUNE, "case", r->c->set[i].name,
                      r->c->set[i].value, &fixed))
      return false;
  for (uint32_t i = 0; i < r->k->n_choices; i++) {
    int64_t v;
    if (r->k->choices[i].is_const && fixed.at[i].kind == FE_NONE &&
        dim_value(r, r->k->choices[i].name, &v))
      fixed.at[i] = (struct fe_value){.kind = FE_INT, .i = v};
  }
  return fe_default_config(r->h->file, r->k, &r->h->arena, &fixed, &r->config);
}

static double pseudo_random(uint64_t *s) {
  *s = *s * UINT64_C(6364136223846793005) + 1;
  return (double)(int64_t)(*s >> 40) / (1 << 23) - 1;
}

/* Outputs of the interpreter, in double precision, against the oracle's. */
static void run_case(struct hf *h, const struct fe_kernel *k, const struct fe_case *c) {
  struct run r = {.h = h, .k = k, .c = c};
  for (uint32_t i = 0; i < c->n_absent; i++)
    r.absent |= (uint64_t)1 << (fe_find_arg(k, c->absent[i]) - k->args);
  if (!make_config(&r))
    fail_msg("%s", hf_diags(h));
  struct fe_trace_options opt = {.config = &r.config, .absent = r.absent};
  struct ir_module *m = fe_trace(h->file, k, &opt, &h->arena);
  if (!m || !ir_verify(m, &h->diags))
    fail_msg("%s: %s", k->name, hf_diags(h));
  struct fe_problem p = {.config = &r.config, .dim = dim_value, .dim_user = &r, .absent = r.absent};
  struct fe_array arrays[FE_MAX_ARGS] = {{0}}, results[FE_MAX_ARGS] = {{0}};
  struct interp_arg *args = ARENA_ARRAY(&h->arena, struct interp_arg, k->n_args);
  double *outs[FE_MAX_ARGS] = {0};
  uint64_t seed = (uint64_t)c->seed + 7;
  for (uint32_t i = 0; i < k->n_args; i++) {
    const struct fe_arg *a = &k->args[i];
    enum dtype t = fe_arg_dtype(k, &r.config, a);
    struct fe_array *x = &arrays[i];
    if (r.absent >> i & 1)
      continue;
    x->rank = a->rank;
    assert_true(fe_arg_shape(h->file, k, a, &p, x->dim));
    int64_t n = 1;
    for (uint32_t d = 0; d < a->rank; d++)
      n *= x->dim[d];
    x->data = ARENA_ARRAY(&h->arena, double, n + 1);
    outs[i] = ARENA_ARRAY(&h->arena, double, n + 1);
    results[i] = *x;
    results[i].data = ARENA_ARRAY(&h->arena, double, n + 1);
    for (int64_t j = 0; j < n; j++)
      x->data[j] = num_round(t, pseudo_random(&seed));
    if (a->kind == IR_ARG_SCALAR) {
      for (uint32_t j = 0; j < c->n_scalars; j++)
        if (str_eq(c->scalars[j].name, a->name))
          x->data[0] =
              num_round(t, c->scalars[j].value.kind == FE_INT ? (double)c->scalars[j].value.i
                                                              : c->scalars[j].value.f);
      args[i].f = x->data[0];
      args[i].i = (int64_t)x->data[0];
      continue;
    }
    /* In the double domain arguments may be double arrays: nothing is rounded on the way. */
    memcpy(outs[i], x->data, (size_t)n * sizeof(double));
    args[i].tensor = interp_dense(outs[i], DT_F64, a->rank, x->dim);
  }
  struct interp_options io = {.domain = INTERP_DOUBLE};
  if (!interp_run(m, args, k->n_args, &io, &h->diags, &mem_libc))
    fail_msg("%s: %s", k->name, hf_diags(h));
  if (!fe_oracle(h->file, k, &p, arrays, results))
    fail_msg("%s: %s", k->name, hf_diags(h));
  for (uint32_t i = 0; i < k->n_args; i++) {
    if (k->args[i].kind != IR_ARG_OUT || r.absent >> i & 1)
      continue;
    int64_t n = 1;
    for (uint32_t d = 0; d < results[i].rank; d++)
      n *= results[i].dim[d];
    for (int64_t j = 0; j < n; j++) {
      double got = outs[i][j], want = results[i].data[j];
      /* Constants of a kernel are rounded to f32, those of an oracle are not. */
      if (!(fabs(got - want) <= 1e-6 * (1 + fabs(want))))
        fail_msg("%s: %s[%" PRId64 "] is %.17g, the oracle says %.17g", k->name, k->args[i].name, j,
                 got, want);
    }
  }
}

static void run_reference(const char *file) {
  struct hf h;
  hf_init(&h);
  char path[512];
  size_t n;
  snprintf(path, sizeof path, "%s/kernels_ref/%s", KILN_SRC_DIR, file);
  const char *text = hf_read(&h, path, &n);
  assert_non_null(text);
  if (!hf_load(&h, file, text))
    fail_msg("%s", hf_diags(&h));
  uint32_t cases = 0;
  for (uint32_t i = 0; i < fe_kernel_count(h.file); i++) {
    const struct fe_kernel *k = fe_kernel_at(h.file, i);
    for (uint32_t j = 0; j < k->n_cases; j++, cases++)
      run_case(&h, k, &k->cases[j]);
  }
  assert_true(cases > 0);
  assert_int_equal(h.diags.list.n, 0);
  hf_free(&h);
}

static void test_gemm(void **state) {
  (void)state;
  run_reference("gemm.lua");
}
static void test_elementwise(void **state) {
  (void)state;
  run_reference("elementwise.lua");
}
static void test_softmax(void **state) {
  (void)state;
  run_reference("softmax.lua");
}
static void test_rmsnorm(void **state) {
  (void)state;
  run_reference("rmsnorm.lua");
}

/* ---- one kernel from text ---- */

/* Folds, parts and random numbers: what tiles give is what the same words give in the oracle. */
static void test_tiles_as_oracles(void **state) {
  (void)state;
  static const char text[] =
      "local function f(x, at, masks)\n"
      "  local top, low = rowargmax(x), rowargmin(x)\n"
      "  local some = masks and gt(x, 0.7) or x > 0.7\n"
      "  local c = cumsum(x, 1) + cumsum(x, 0) + floor(x * 4) + ceil(x * 3) + round(x * 5)\n"
      "  c = c + trunc(x * 6) + clamp(x, -0.5, 0.25)\n"
      "  c = c + cat(1, x:slice({0, 8}, {4, 8}), x:slice({0, 0}, {4, 8}))\n"
      "  local r = random(7, at) + random_normal(7, at) + random(9, at, 3)\n"
      "  local p = where(rowany(some), cast(top, f32), 50) + where(colany(some), x, 2)\n"
      "  p = p + where(rowall(masks and lt(x, 0.9) or x < 0.9), cast(low, f32) * 10, 7)\n"
      "  return c, p, r + cast(random_bits(7, at), f32) / 2 ^ 40\n"
      "end\n"
      "return kernel { name = 'k', args = { tensor('A', f32, 'M', 16), out('C', f32, 'M', 16),\n"
      "    out('P', f32, 'M', 16), out('R', f32, 'M', 16) },\n"
      "  grid = function(d) return cdiv(d.M, 4) end,\n"
      "  body = function(a, d, c, i)\n"
      "    local x = a.A:tile({i * 4, 0}, {4, 16}, {pad = 0})\n"
      "    local p, q, r = f(x, (i * 4 + iota(0, 4)) * 16 + iota(1, 16))\n"
      "    a.C:store({i * 4, 0}, p) a.P:store({i * 4, 0}, q) a.R:store({i * 4, 0}, r)\n"
      "  end,\n"
      "  oracle = function(t, d)\n"
      "    local c, p, r = {}, {}, {}\n"
      "    for i = 0, d.M // 4 - 1 do\n"
      "      local at = (iota(0, 4) + i * 4) * 16 + iota(1, 16)\n"
      "      c[#c + 1], p[#p + 1], r[#r + 1] = f(t.A:slice({i * 4, 0}, {4, 16}), at, true)\n"
      "    end\n"
      "    return cat(0, table.unpack(c)), cat(0, table.unpack(p)), cat(0, table.unpack(r))\n"
      "  end,\n"
      "  cases = {{shape = {M = 20}, seed = 1}, {shape = {M = 64}, seed = 2}} }";
  struct hf h;
  hf_init(&h);
  if (!hf_load(&h, "k.lua", text))
    fail_msg("%s", hf_diags(&h));
  const struct fe_kernel *k = fe_kernel_at(h.file, 0);
  for (uint32_t i = 0; i < k->n_cases; i++)
    run_case(&h, k, &k->cases[i]);
  hf_free(&h);
}

#define KERNEL(fields)                                                                             \
  "return kernel { name = 'k', args = { tensor('A', f32, 'M', 'N'), out('C', f32, 'M', 'N') }, "   \
  "grid = function() return 1 end, body = function(a, d, c, i) end, " fields " }"

static const struct fe_kernel *load(struct hf *h, const char *text) {
  if (!hf_load(h, "k.lua", text))
    fail_msg("%s", hf_diags(h));
  return fe_kernel_at(h->file, 0);
}

static void expect_diags(struct hf *h, const char *want) {
  assert_string_equal(hf_diags(h), want);
  diag_clear(&h->diags);
}

static const char *config_text(struct hf *h, const struct fe_kernel *k, const struct fe_config *c) {
  struct strbuf out = {.arena = &h->arena};
  fe_config_print(k, c, &out);
  return sb_str(&out);
}

static void test_default_config(void **state) {
  (void)state;
  struct hf h;
  struct fe_config c, fixed;
  hf_init(&h);
  const struct fe_kernel *k =
      load(&h, KERNEL("const = {T = {bf16, f32}}, tune = {b = {1, 2, 3}, a = {4, 5}},"
                      "legal = function(c) return c.a * c.b > 8 end"));
  assert_true(fe_default_config(h.file, k, &h.arena, NULL, &c));
  /* (4,1) (4,2) are refused; the last name varies fastest. */
  assert_string_equal(config_text(&h, k, &c), "T=bf16 a=4 b=3");
  fixed = fe_empty_config(k, &h.arena);
  assert_true(fe_set_config(h.file, k, &h.arena, FE_SET_TUNE, "--set", "a=5", &fixed));
  assert_true(fe_set_config(h.file, k, &h.arena, FE_SET_CONST, "--const", "T=f32", &fixed));
  assert_true(fe_default_config(h.file, k, &h.arena, &fixed, &c));
  assert_string_equal(config_text(&h, k, &c), "T=f32 a=5 b=2");
  assert_int_equal(fe_is_legal(h.file, k, &c), FE_LEGAL);
  assert_true(fe_set_config(h.file, k, &h.arena, FE_SET_TUNE, "--set", "a=1,b=7", &fixed));
  assert_false(fe_default_config(h.file, k, &h.arena, &fixed, &c));
  expect_diags(&h, "k.lua:1:8: error: kernel `k`: `legal` refuses every config with T=f32 a=1 b=7 "
                   "[K0403]\n");
  assert_int_equal(fe_is_legal(h.file, k, &fixed), FE_ILLEGAL);
  assert_int_equal(h.diags.list.n, 0);
  assert_false(fe_check_config(h.file, k, &fixed));
  expect_diags(&h, "k.lua:1:8: error: kernel `k`: `legal` refuses the config T=f32 a=1 b=7 "
                   "[K0403]\n");
  hf_free(&h);
}

static void test_config_errors(void **state) {
  (void)state;
  static const struct {
    enum fe_set which;
    const char *text, *want;
  } table[] = {
      {FE_SET_TUNE, "BM", "error: --x: \"BM\" is not of the form NAME=VALUE [K0403]\n"},
      {FE_SET_TUNE, "=4", "error: --x: \"=4\" is not of the form NAME=VALUE [K0403]\n"},
      {FE_SET_TUNE, "BM=", "error: --x: \"BM=\" is not of the form NAME=VALUE [K0403]\n"},
      {FE_SET_TUNE, "BL=4",
       "error: --x: kernel `k` has no meta-parameter `BL` (did you mean `BM`?); it has BM, act, "
       "flag [K0403]\n"},
      {FE_SET_TUNE, "T=bf16", "error: --x: `T` is a const of kernel `k`: use --const [K0403]\n"},
      {FE_SET_CONST, "BM=64", "error: --x: `BM` is a tune list of kernel `k`: use --set [K0403]\n"},
      {FE_SET_TUNE, "BM=abc",
       "error: --x: `BM` of kernel `k` needs a number, got \"abc\"; its list is 64, 128 [K0403]\n"},
      {FE_SET_TUNE, "BM=bf16",
       "error: --x: `BM` of kernel `k` needs a number, got bf16; its list is 64, 128 [K0403]\n"},
      {FE_SET_TUNE, "flag=1",
       "error: --x: `flag` of kernel `k` needs true or false, got 1; its list is true [K0403]\n"},
      {FE_SET_CONST, "T=f16",
       "error: --x: f16 is no value of const `T` of kernel `k`; its list is bf16, f32 [K0403]\n"},
      {FE_SET_CONST, "T=3",
       "error: --x: `T` of kernel `k` needs a dtype, got 3; its list is bf16, f32 [K0403]\n"},
      {FE_SET_CONST, "W=true",
       "error: --x: `W` of kernel `k` needs a number, got true; its list is 4096, or any other "
       "[K0403]\n"},
      {FE_SET_TUNE, "BM=1,BL=2,BM=x",
       "error: --x: kernel `k` has no meta-parameter `BL` (did you mean `BM`?); it has BM, act, "
       "flag [K0403]\n"
       "error: --x: `BM` of kernel `k` needs a number, got \"x\"; its list is 64, 128 [K0403]\n"},
  };
  struct hf h;
  hf_init(&h);
  const struct fe_kernel *k =
      load(&h, KERNEL("const = {T = {bf16, f32}, W = {4096, any}}, tune = {BM = {64, 128}, "
                      "act = {'relu', 'none'}, flag = {true}}"));
  struct fe_config c = fe_empty_config(k, &h.arena);
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    assert_false(fe_set_config(h.file, k, &h.arena, table[i].which, "--x", table[i].text, &c));
    expect_diags(&h, table[i].want);
  }
  /* Values of the right kind that are not in a tune list, and in an open const list, are fine. */
  assert_true(fe_set_config(h.file, k, &h.arena, FE_SET_TUNE, "--set",
                            "BM=96.0,act=\"tanh\",flag=false", &c));
  assert_true(fe_set_config(h.file, k, &h.arena, FE_SET_CONST, "--const", "W=77,T=f32", &c));
  assert_string_equal(config_text(&h, k, &c), "BM=96 T=f32 W=77 act=\"tanh\" flag=false");
  hf_free(&h);
}

static void test_legal_errors(void **state) {
  (void)state;
  struct hf h;
  struct fe_config c;
  hf_init(&h);
  const struct fe_kernel *k = load(&h, KERNEL("tune = {BM = {64}}, legal = function(c) end"));
  assert_false(fe_default_config(h.file, k, &h.arena, NULL, &c));
  expect_diags(&h,
               "k.lua:1:8: error: legal of kernel `k` gives nil for BM=64; it must give true or "
               "false [K0401]\n");
  k = load(&h, KERNEL("tune = {BM = {64}}, legal = function(c) return c.BN > 1 end"));
  assert_false(fe_default_config(h.file, k, &h.arena, NULL, &c));
  expect_diags(&h, "k.lua:1:210: error: attempt to compare number with nil [K0201]\n");
  hf_free(&h);
}

static void test_find_kernel(void **state) {
  (void)state;
  struct hf h;
  hf_init(&h);
  assert_true(
      hf_load(&h, "k.lua",
              "local k = kernel { args = { out('C', f32, 'N') }, grid = function() return 1 "
              "end, body = function() end } return { gemm = k, softmax = k }"));
  assert_null(fe_find_kernel(h.file, NULL));
  expect_diags(
      &h,
      "error: the file has several kernels; choose one (--kernel NAME) of gemm, softmax [K0402]\n");
  assert_null(fe_find_kernel(h.file, "gem"));
  expect_diags(&h, "error: there is no kernel `gem` (did you mean `gemm`?); the file has gemm, "
                   "softmax [K0402]\n");
  assert_string_equal(fe_find_kernel(h.file, "softmax")->name, "softmax");
  hf_free(&h);
}

/* ---- facts and absent arguments ---- */

static void test_facts(void **state) {
  (void)state;
  struct hf h;
  struct fe_config c;
  hf_init(&h);
  const struct fe_kernel *k = load(&h, KERNEL(""));
  assert_true(fe_default_config(h.file, k, &h.arena, NULL, &c));
  static const struct fe_fact facts[] = {
      {"M", false, 64}, {"A.stride1", true, 1}, {"A.addr", false, 16}};
  struct fe_trace_options opt = {.config = &c, .facts = facts, .n_facts = 3};
  struct ir_module *m = fe_trace(h.file, k, &opt, &h.arena);
  assert_non_null(m);
  assert_true(ir_verify(m, &h.diags));
  assert_int_equal(m->facts.n, 3);
  assert_string_equal(ir_sym(m, m->facts.at[1].sym), "A.stride1");
  assert_true(m->facts.at[1].is_value && m->facts.at[1].n == 1);
  hf_free(&h);
}

/* One trace leaves no trace in the next: counters and caches of the file's own locals. */
static void test_traces_are_independent(void **state) {
  (void)state;
  struct hf h;
  hf_init(&h);
  assert_true(hf_load(&h, "k.lua",
                      "local count, cache = 0, {} "
                      "return kernel { name = 'k', args = { out('C', f32, 'N') }, "
                      "grid = function() return 1 end, body = function(a, d, c, i) "
                      "count = count + 1 cache[#cache + 1] = i "
                      "a.C:store({0}, full(f32, count + #cache, 4)) end }"));
  struct strbuf first = {.arena = &h.arena};
  for (int round = 0; round < 3; round++) {
    struct ir_module *m = hf_trace(&h, NULL, 0);
    struct strbuf text = {.arena = &h.arena};
    if (!m)
      fail_msg("%s", hf_diags(&h));
    ir_print(m, (struct ir_print_options){0}, &text);
    if (round == 0)
      sb_puts(&first, sb_str(&text));
    assert_string_equal(sb_str(&first), sb_str(&text));
  }
  assert_non_null(strstr(sb_str(&first), "const 2.0"));
  hf_free(&h);
}

/* The example of the documentation is a kernel. */
static void test_documentation(void **state) {
  (void)state;
  struct hf h;
  size_t n;
  hf_init(&h);
  char *text = hf_read(&h, KILN_SRC_DIR "/docs/dsl.md", &n);
  assert_non_null(text);
  char *code = strstr(text, "```lua\n");
  assert_non_null(code);
  code += strlen("```lua\n");
  char *end = strstr(code, "```");
  assert_non_null(end);
  *end = 0;
  if (!hf_load(&h, "dsl.md", code) || !hf_trace(&h, NULL, 0))
    fail_msg("%s", hf_diags(&h));
  hf_free(&h);
}

/* ---- oracles and inputs ---- */

struct oracle_run {
  struct hf h;
  const struct fe_kernel *k;
  struct fe_config config;
  struct fe_problem p;
  double a[12], out[64];
  struct fe_array arrays[2], results[2];
  int64_t out_dim[2];
};

static bool small_dims(void *user, const char *name, int64_t *value) {
  const struct oracle_run *r = user;
  if (str_eq(name, "M") || str_eq(name, "N"))
    *value = *name == 'M' ? 3 : 4;
  else if (str_eq(name, "P") || str_eq(name, "Q"))
    *value = r->out_dim[*name == 'Q'];
  else
    return false;
  return true;
}

/* oracle = function(t, d, c) <body> end over A[3,4] = 1..12, C[P,Q]. */
static bool run_oracle(struct oracle_run *r, const char *body, int64_t p, int64_t q, bool single) {
  struct strbuf text = {.arena = &r->h.arena};
  sb_printf(&text,
            "return kernel { name = 'k', args = { tensor('A', f32, 'M', 'N'), out('C', f32, 'P', "
            "'Q') }, grid = function() return 1 end, body = function() end,\n"
            "oracle = function(t, d, c) %s end }",
            body);
  r->k = load(&r->h, sb_str(&text));
  assert_true(fe_default_config(r->h.file, r->k, &r->h.arena, NULL, &r->config));
  for (int i = 0; i < 12; i++)
    r->a[i] = i + 1;
  r->out_dim[0] = p;
  r->out_dim[1] = q;
  r->p =
      (struct fe_problem){.config = &r->config, .dim = small_dims, .dim_user = r, .single = single};
  r->arrays[0] = (struct fe_array){.rank = 2, .dim = {3, 4}, .data = r->a};
  r->results[1] = (struct fe_array){.rank = 2, .dim = {p, q}, .data = r->out};
  memset(r->out, 0, sizeof r->out);
  return fe_oracle(r->h.file, r->k, &r->p, r->arrays, r->results);
}

static void expect_oracle(struct oracle_run *r, const char *body, int64_t p, int64_t q,
                          const double *want) {
  if (!run_oracle(r, body, p, q, false))
    fail_msg("%s: %s", body, hf_diags(&r->h));
  for (int64_t i = 0; i < p * q; i++)
    if (!(fabs(r->out[i] - want[i]) <= 1e-15 * (1 + fabs(want[i]))))
      fail_msg("%s: element %" PRId64 " is %.17g, not %.17g", body, i, r->out[i], want[i]);
}

#define D(...) ((const double[]){__VA_ARGS__})

static void test_oracle_builtins(void **state) {
  (void)state;
  struct oracle_run r = {.k = NULL};
  hf_init(&r.h);
  expect_oracle(&r, "return t.A", 3, 4, D(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
  expect_oracle(&r, "return t.A:T()", 4, 3, D(1, 5, 9, 2, 6, 10, 3, 7, 11, 4, 8, 12));
  expect_oracle(&r, "return t.A * 2 - 1 + t.A / t.A", 3, 4,
                D(2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24));
  expect_oracle(&r, "return 2 - t.A:slice({0, 1}, {2, 2})", 2, 2, D(0, -1, -4, -5));
  expect_oracle(&r, "return t.A // 5 + t.A % 5 - -t.A ^ 0", 3, 4,
                D(2, 3, 4, 5, 2, 3, 4, 5, 6, 3, 4, 5));
  expect_oracle(&r, "return sum(t.A, 1)", 3, 1, D(10, 26, 42));
  expect_oracle(&r, "return sum(t.A, 0)", 1, 4, D(15, 18, 21, 24));
  expect_oracle(&r, "return rowsum(t.A) + colsum(t.A)", 3, 4,
                D(25, 28, 31, 34, 41, 44, 47, 50, 57, 60, 63, 66));
  expect_oracle(&r, "return amax(t.A, 1) - amin(t.A, 1)", 3, 1, D(3, 3, 3));
  expect_oracle(&r, "return rowmax(t.A:T()) - colmin(t.A):T()", 4, 1, D(8, 8, 8, 8));
  expect_oracle(&r, "return mean(t.A, 1)", 3, 1, D(2.5, 6.5, 10.5));
  expect_oracle(&r, "return full(f32, sum(t.A) + mean(t.A) + max(t.A) + min(t.A), 1, 1)", 1, 1,
                D(78 + 6.5 + 12 + 1));
  expect_oracle(&r, "return matmul(t.A, t.A:T())", 3, 3,
                D(30, 70, 110, 70, 174, 278, 110, 278, 446));
  expect_oracle(&r, "return matmul(t.A:T(), t.A)", 4, 4,
                D(107, 122, 137, 152, 122, 140, 158, 176, 137, 158, 179, 200, 152, 176, 200, 224));
  expect_oracle(&r, "local b = t.A:reshape(1, 3, 4) return matmul(b, b:T()):reshape(3, 3)", 3, 3,
                D(30, 70, 110, 70, 174, 278, 110, 278, 446));
  expect_oracle(&r, "return where(gt(t.A, 6), t.A, 0) + max(3 - t.A, 0) * relu(t.A - 2)", 3, 4,
                D(0, 0, 0, 0, 0, 0, 7, 8, 9, 10, 11, 12));
  expect_oracle(&r, "return where(le(iota(1, 4), iota(0, 3)), t.A, -1)", 3, 4,
                D(1, -1, -1, -1, 5, 6, -1, -1, 9, 10, 11, -1));
  expect_oracle(&r, "return map(function(x, y) return x * y + 1 end, t.A, t.A)", 3, 4,
                D(2, 5, 10, 17, 26, 37, 50, 65, 82, 101, 122, 145));
  expect_oracle(&r, "return cast(t.A / 3, bf16):slice({0, 0}, {1, 2})", 1, 2,
                D(0.333984375, 0.66796875));
  expect_oracle(&r, "return t.A:slice({1, 0}, {1, 4}):reshape(4):col() + t.A:at(2, 3)", 4, 1,
                D(17, 18, 19, 20));
  expect_oracle(&r, "return {C = t.A:slice({0, 0}, {1, 4}):reshape(4):row()}", 1, 4, D(1, 2, 3, 4));
  expect_oracle(&r,
                "local x = t.A:slice({0, 0}, {2, 3}):reshape(1, 2, 3) "
                "return x:permute(2, 0, 1):permute({1, 2, 0}):reshape(2, 3) + "
                "x:permute(2, 1, 0):reshape(3, 2):T()",
                2, 3, D(2, 4, 6, 10, 12, 14));
  expect_oracle(&r, "return cumsum(t.A, 1)", 3, 4, D(1, 3, 6, 10, 5, 11, 18, 26, 9, 19, 30, 42));
  expect_oracle(&r, "return cumsum(t.A:T(), 1)", 4, 3, D(1, 6, 15, 2, 8, 18, 3, 10, 21, 4, 12, 24));
  expect_oracle(&r, "return cumsum(t.A:slice({0, 0}, {1, 4}):reshape(4)):row()", 1, 4,
                D(1, 3, 6, 10));
  expect_oracle(&r, "return cat(0, clamp(zeros(f64, 0, 4), 0, -1), clamp(t.A, 3, 2))", 3, 4,
                D(2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2));
  expect_oracle(&r, "local x = t.A % 5 return rowargmax(x) * 10 + rowargmin(x)", 3, 1,
                D(30, 40 - 10, 1));
  expect_oracle(&r,
                "return colargmax(t.A) * 10 + colargmin(-t.A) + argmax(t.A, 0) - argmin(t.A, 0)", 1,
                4, D(24, 24, 24, 24));
  expect_oracle(&r, "return full(f32, argmax(t.A) + argmin(t.A % 5) / 100, 1, 1)", 1, 1,
                D(11 + 0.04));
  expect_oracle(&r, "return full(f32, argmax(t.A / 0 - t.A / 0), 1, 1)", 1, 1, D(0));
  expect_oracle(&r, "return rowany(gt(t.A, 11)) + 2 * rowall(gt(t.A, 8)) + 4 * all(gt(t.A, 4), 1)",
                3, 1, D(0, 4, 7));
  expect_oracle(&r, "return colany(gt(t.A, 11)) + 2 * colall(gt(t.A, 2)) + 4 * any(eq(t.A, 1), 0)",
                1, 4, D(4, 0, 2, 3));
  expect_oracle(&r, "return full(f32, any(gt(t.A, 11)) and not all(gt(t.A, 1)) and 1 or 0, 1, 1)",
                1, 1, D(1));
  expect_oracle(&r, "return cat(0, t.A:slice({2, 0}, {1, 4}), t.A:slice({0, 0}, {2, 4}))", 3, 4,
                D(9, 10, 11, 12, 1, 2, 3, 4, 5, 6, 7, 8));
  expect_oracle(&r, "local x = t.A:slice({0, 0}, {2, 2}) return cat(1, x, x:T(), sum(x, 1))", 2, 5,
                D(1, 2, 1, 5, 3, 5, 6, 2, 6, 11));
  expect_oracle(&r, "return t.A:permute(1, 0):permute(1, 0):at(2):row()", 1, 4, D(9, 10, 11, 12));
  expect_oracle(&r, "return t.A:reshape(2, 3, 2):permute(2, 0, 1):at(1):at(0):row()", 1, 3,
                D(2, 4, 6));
  expect_oracle(&r, "return cat(0, rowargmax(t.A:slice({0, 0}, {0, 4})), rowargmax(t.A))", 3, 1,
                D(3, 3, 3));
  expect_oracle(&r,
                "local x = zeros(f32, 0, 1) + iota(0, 0) + full(f32, 2, {0, 1}) "
                "return cat(0, x, iota(0, 2))",
                2, 1, D(0, 1));
  expect_oracle(&r, "return clamp(t.A, 4, 6) + clamp(t.A, rowmax(t.A), 100) * 0", 3, 4,
                D(4, 4, 4, 4, 5, 6, 6, 6, 6, 6, 6, 6));
  expect_oracle(&r, "local x = t.A / 4 return floor(x) + 10 * ceil(x) + 100 * round(x) - trunc(x)",
                3, 4, D(10, 10 + 0, 110, 110, 120, 220, 220, 220, 230, 230, 330, 330));
  expect_oracle(&r, "return full(f32, random_bits(0, 0) + random_bits(0, 0, 1) * 2 ^ -40, 1, 1)", 1,
                1, D(0x6627e8d5 - (0x100000000 - 0xe169c58d) * 0x1p-40));
  expect_oracle(&r, "return full(f32, random(0, 0), 1, 1) + random(0, iota(0, 1)) * 2 ^ 20", 1, 1,
                D((double)0x6627e8 * 0x1p-24 * (1 + 0x1p20)));
  expect_oracle(&r, "return t.A:at(1):row()", 1, 4, D(5, 6, 7, 8));
  expect_oracle(&r, "return t.A:T():at(2):col() + t.A:reshape(1, 3, 4):at(0, 2):at(3.0)", 3, 1,
                D(15, 19, 23));
  expect_oracle(&r, "return full(f32, t.A:size(0) * 10 + t.A:T():size(0), 1, 1)", 1, 1, D(34));
  expect_oracle(&r, "return t.A:slice({0, 0}, {2, 2}):every(1, 2):every(0, 1)", 2, 4,
                D(1, 1, 2, 2, 5, 5, 6, 6));
  expect_oracle(&r, "return t.A:T():slice({1, 1}, {1, 2}):every(0, 2)", 2, 2, D(6, 10, 6, 10));
  expect_oracle(&r,
                "local x = zeros(f32, 3, 4) x:store({1, 1}, t.A:slice({0, 0}, {2, 2})) "
                "x:at(0):store({2}, 9) x:T():store({0, 2}, x:T():slice({1, 1}, {2, 1})) return x",
                3, 4, D(0, 0, 9, 0, 0, 1, 2, 0, 1, 2, 6, 0));
  expect_oracle(&r, "return (t.A + 0):store({0, 0}, t.A:slice({2, 0}, {1, 4}))", 3, 4,
                D(9, 10, 11, 12, 5, 6, 7, 8, 9, 10, 11, 12));
  expect_oracle(&r, "return t.A:gather({t.A:slice({0, 0}, {1, 4}):reshape(4), 1}):row()", 1, 4,
                D(6, 10, 0, 0));
  expect_oracle(&r, "return t.A:gather({iota(0, 3) * 2 - 1, 3 - iota(1, 4)}, {pad = -1})", 3, 4,
                D(-1, -1, -1, -1, 8, 7, 6, 5, -1, -1, -1, -1));
  expect_oracle(&r, "return full(f32, t.A:gather({2, 3}) + t.A:gather({inf, 0}, {pad = 7}), 1, 1)",
                1, 1, D(19));
  expect_oracle(&r,
                "return zeros(f32, 3, 4):scatter({iota(0, 3), 3 - iota(0, 3)}, t.A:slice({0, "
                "0}, {3, 1})):scatter({-1, 0}, 5):scatter({0, iota(1, 2)}, 2)",
                3, 4, D(2, 2, 0, 1, 0, 0, 5, 0, 0, 9, 0, 0));
  expect_oracle(&r,
                "return zeros(f32, 4):scatter_add({(t.A % 4):reshape(12)}, t.A:reshape(12)):row()",
                1, 4, D(24, 15, 18, 21));
  expect_oracle(&r, "local s = t.A.shape return t.A * (#s - 1) + s[2] - d.N + (s[1] - d.M)", 3, 4,
                D(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
  hf_free(&r.h);
}

static void test_oracle_functions(void **state) {
  (void)state;
  static const struct {
    const char *name;
    double at_half; /* f(0.5) to 17 digits */
  } table[] = {
      {"exp", 1.6487212707001282},
      {"exp2", 1.4142135623730951},
      {"log", -0.69314718055994531},
      {"log2", -1},
      {"sqrt", 0.70710678118654757},
      {"rsqrt", 1.4142135623730951},
      {"tanh", 0.46211715726000979},
      {"erf", 0.52049987781304652},
      {"sigmoid", 0.62245933120185459},
      {"sin", 0.47942553860420301},
      {"cos", 0.87758256189037276},
      {"floor", 0},
      {"ceil", 1},
      {"round", 0},
      {"trunc", 0},
      {"abs", 0.5},
      {"relu", 0.5},
      {"silu", 0.31122966560092730},
      {"gelu", 0.34573123063700656},
      {"gelu_tanh", 0.34571400982514394},
  };
  struct oracle_run r = {.k = NULL};
  hf_init(&r.h);
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    char body[120];
    /* On arrays and on plain numbers. */
    snprintf(body, sizeof body, "return full(f32, 0.5, 1, 1) * 0 + %s(full(f32, 0.5, 1, 1))",
             table[i].name);
    expect_oracle(&r, body, 1, 1, &table[i].at_half);
    snprintf(body, sizeof body, "return full(f32, %s(0.5), 1, 1)", table[i].name);
    expect_oracle(&r, body, 1, 1, &table[i].at_half);
  }
  expect_oracle(&r, "return softmax(log(t.A:slice({0, 0}, {1, 4})))", 1, 4, D(0.1, 0.2, 0.3, 0.4));
  hf_free(&r.h);
}

static void test_oracle_single(void **state) {
  (void)state;
  struct oracle_run r = {.k = NULL};
  hf_init(&r.h);
  assert_true(run_oracle(&r, "return t.A / 3", 3, 4, true));
  for (int i = 0; i < 12; i++)
    assert_true(r.out[i] == (double)(float)((i + 1) / 3.0));
  assert_true(run_oracle(&r, "return rounded(t.A / 3, bf16)", 3, 4, true));
  assert_true(r.out[0] == 0.333984375); /* 0x1.56p-2 */
  assert_true(run_oracle(&r, "return rounded(t.A / 3, bf16)", 3, 4, false));
  assert_true(r.out[0] == 1 / 3.0);
  /* 2^24 + 1 + 1 summed in f32 stays 2^24. */
  assert_true(run_oracle(
      &r, "return full(f32, sum(t.A * 0 + 2 ^ 24 * eq(t.A, 1) + ge(t.A, 2)), 1, 1)", 1, 1, true));
  assert_true(r.out[0] == 16777216.0);
  hf_free(&r.h);
}

static void test_oracle_errors(void **state) {
  (void)state;
  static const struct {
    const char *body, *want;
  } table[] = {
      {"return", "k.lua:1:8: error: oracle of kernel `k` gives 0 values; it must give one per "
                 "output, which are 1 [K0401]\n"},
      {"return t.A, t.A", "k.lua:1:8: error: oracle of kernel `k` gives 2 values; it must give one "
                          "per output, which are 1 [K0401]\n"},
      {"return t.A:T()",
       "k.lua:1:8: error: oracle gives array(4,3) for `C`, which is (3,4) [K0404]\n"},
      {"return 3", "k.lua:1:8: error: oracle gives number 3 for `C`, which is (3,4) [K0404]\n"},
      {"return {D = t.A}", "k.lua:1:8: error: oracle gives nil for `C`, which is (3,4) [K0404]\n"},
      {"return t.A + sum(t.A, 0):T()",
       "k.lua:2:39: error: shapes (3,4) and (4,1) of `+` do not fit [K0502]\n"},
      {"return t.A < 3", "k.lua:2:39: error: arrays are compared by lt(x, y), le, gt, ge, eq, ne, "
                         "which give an array of 0 and 1 [K0503]\n"},
      {"return matmul(t.A, t.A)",
       "k.lua:2:35: error: matmul of array(3,4) and array(3,4): it takes "
       "(...,M,K) and (...,K,N) [K0502]\n"},
      {"return t.A:transpose()",
       "k.lua:2:39: error: an array has no transpose; it has T, permute, row, col, reshape, slice, "
       "at, size, every, store, gather, scatter, scatter_add, shape [K0503]\n"},
      {"return iota(0, -1)", "k.lua:2:35: error: size of iota is -1; it must be an integer of at "
                             "least 0 [K0503]\n"},
      {"return t.A:at()", "k.lua:2:39: error: :at of (3,4) takes 1 to 2 indices, got 0 [K0502]\n"},
      {"return t.A:at(3)",
       "k.lua:2:39: error: :at: index 3 is outside of dim 0 of (3,4) [K0502]\n"},
      {"return clamp(3, 0, -1)", "k.lua:2:35: error: clamp: lo is 0, above hi, -1 [K0503]\n"},
      {"t.A:store({0, 0}, 1)",
       "k.lua:2:32: error: :store writes to an argument's array; make one of your own first: x + 0, "
       "zeros(...) [K0503]\n"},
      {"t.A:T():at(0):scatter({0}, 1)",
       "k.lua:2:42: error: :scatter writes to an argument's array"},
      {"zeros(f32, 4):store({0}, t.A)",
       "k.lua:2:42: error: :store of (3,4) to (4): the ranks differ [K0502]\n"},
      {"zeros(f32, 4):store({3}, zeros(f32, 2))",
       "k.lua:2:42: error: :store: 2 elements from 3 on are not inside dim 0 of (4) [K0502]\n"},
      {"zeros(f32, 4):store(3, 1)",
       "k.lua:2:42: error: :store needs a list of offsets, one integer per dim [K0503]\n"},
      {"zeros(f32, 4):store({3}, 'x')",
       "k.lua:2:42: error: :store writes an array or a number, got a string [K0503]\n"},
      {"zeros(f32, 4):scatter({iota(0, 2)}, zeros(f32, 4))",
       "k.lua:2:42: error: :scatter of (4) to elements of shape (2,1) [K0502]\n"},
      {"t.A:gather({1})",
       "k.lua:2:32: error: :gather of (3,4) needs a list of indices, one per dim [K0503]\n"},
      {"t.A:gather({t.A, iota(0, 2)})",
       "k.lua:2:32: error: :gather: index 1 is (2,1), which does not fit those before it [K0502]\n"},
      {"t.A:gather({t.A / 2, 0})",
       "k.lua:2:32: error: :gather: index 0 has 0.5, which is no integer [K0503]\n"},
      {"t.A:gather({'x', 0})",
       "k.lua:2:32: error: :gather: index 0 is a string, not a number or an array [K0503]\n"},
      {"t.A:gather({1, 0}, 3)", "k.lua:2:32: error: options of :gather are a table {pad = x} "},
      {"t.A:every(2, 2)", "k.lua:2:32: error: every: axis is number 2; axes count from 0 to 1"},
      {"t.A:every(0, 2 ^ 60)", "k.lua:2:32: error: every: arrays would take more than"},
      {"return t.A:slice({0, 0}, {4, 4})",
       "k.lua:2:39: error: :slice: 4 elements from 0 on are not inside dim 0 of (3,4) [K0502]\n"},
      {"return t.A:permute(0, 0)",
       "k.lua:2:39: error: :permute of (3,4) needs each of its axes once, "
       "counted from 0 [K0503]\n"},
      {"return t.A:permute({1, 2})",
       "k.lua:2:39: error: :permute of (3,4) needs each of its axes once, counted from 0 [K0503]\n"},
      {"return t.A:permute(1)",
       "k.lua:2:39: error: :permute of (3,4) needs each of its axes once, counted from 0 [K0503]\n"},
      {"return dot(t.A, t.A)",
       "k.lua:2:35: error: dot takes tiles and scalars, got array(3,4) [K0503]\n"},
      {"return rounded(3, bf16)",
       "k.lua:2:35: error: rounded takes arrays (it is for oracles), got number 3 [K0503]\n"},
      {"return rounded(t.A, 'bf16')",
       "k.lua:2:35: error: rounded needs a dtype (f32, bf16, ...), got a string [K0501]\n"},
      {"return exp('x')",
       "k.lua:2:35: error: exp takes tiles, scalars and numbers, got a string [K0503]\n"},
      {"return t.A + 'x'",
       "k.lua:2:39: error: `+` takes arrays and numbers, got a string [K0503]\n"},
      {"while true do end",
       "k.lua:2:28: error: the kernel file ran for more than its limit of 100000 steps"},
  };
  struct oracle_run r = {.k = NULL};
  hf_init(&r.h);
  r.h.host.limits.steps = 100000;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    assert_false(run_oracle(&r, table[i].body, 3, 4, false));
    const char *got = hf_diags(&r.h);
    /* Each starts with what is expected; nothing is left behind for the next. */
    if (!str_starts(got, table[i].want))
      fail_msg("%s:\n%s\nexpected:\n%s", table[i].body, got, table[i].want);
    diag_clear(&r.h.diags);
  }
  hf_free(&r.h);
}

static struct fe_matmul seen; /* the last product that the oracle asked for */

static bool log_matmul(void *user, const struct fe_matmul *mm) {
  (void)user;
  seen = *mm;
  for (int64_t i = 0; i < mm->m; i++)
    for (int64_t j = 0; j < mm->n; j++) {
      double s = 0;
      for (int64_t p = 0; p < mm->k; p++)
        s += mm->a[i * mm->a_row + p * mm->a_col] * mm->b[p * mm->b_row + j * mm->b_col];
      mm->c[i * mm->n + j] = s;
    }
  return true;
}

static bool failing_matmul(void *user, const struct fe_matmul *mm) {
  (void)mm;
  struct hf *h = user;
  diag_report(&h->diags, DIAG_ERROR, DIAG_DRIVER, DIAG_NOWHERE, "no GPU");
  return false;
}

/* The arguments' own memory reaches the callback, transposed or not. */
static void test_matmul_callback(void **state) {
  (void)state;
  struct oracle_run r = {.k = NULL};
  hf_init(&r.h);
  r.h.host.matmul = log_matmul;
  expect_oracle(&r, "return matmul(t.A, t.A:T())", 3, 3,
                D(30, 70, 110, 70, 174, 278, 110, 278, 446));
  assert_ptr_equal(seen.a, r.a);
  assert_ptr_equal(seen.b, r.a);
  assert_true(seen.m == 3 && seen.n == 3 && seen.k == 4);
  assert_true(seen.a_row == 4 && seen.a_col == 1 && seen.b_row == 1 && seen.b_col == 4);
  /* A copy, and products of it. */
  expect_oracle(&r,
                "local x = t.A:reshape(3, 2, 2):T():slice({0, 0, 0}, {3, 1, 2}):reshape(3, 2) "
                "return matmul(x, x:T())",
                3, 3, D(10, 26, 42, 26, 74, 122, 42, 122, 202));
  assert_ptr_not_equal(seen.a, r.a);
  r.h.host.matmul = failing_matmul;
  assert_false(run_oracle(&r, "return matmul(t.A, t.A:T())", 3, 3, false));
  expect_diags(&r.h, "error: no GPU [K0902]\n"
                     "k.lua:2:35: error: matmul: the host's matrix product failed [K0201]\n");
  hf_free(&r.h);
}

/* Kernel text may keep an argument's array; its memory is the caller's, who takes it back. */
static void test_kept_arrays(void **state) {
  (void)state;
  static const struct {
    const char *keep, *use, *message;
  } cases[] = {
      {"t.A", "kept", "oracle gives array(0,0) of an earlier call for `C`, which is (3,4)"},
      {"t.A:T():slice({1, 0}, {2, 2})", "kept:at(0, 0)", "outside of dim 0 of (0,0) of an earlier"},
      {"t.A:T()", "kept:T() + t.A", "shapes (0,0) of an earlier call and (3,4) of `+`"},
      {"t.A", "sum(kept) + amax(kept, 1) + t.A", "of `+` do not fit"},
      {"t.A + 0", "kept", NULL}, /* an array of its own */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct oracle_run r = {0};
    hf_init(&r.h);
    struct strbuf text = {.arena = &r.h.arena};
    sb_printf(
        &text,
        "local kept return kernel { name = 'k', args = { tensor('A', f32, 'M', 'N'), "
        "out('C', f32, 'M', 'N') }, grid = function() return 1 end, body = function() end,\n"
        "oracle = function(t, d, c) if not kept then kept = %s return t.A end return %s end }",
        cases[i].keep, cases[i].use);
    r.k = load(&r.h, sb_str(&text));
    assert_true(fe_default_config(r.h.file, r.k, &r.h.arena, NULL, &r.config));
    r.p = (struct fe_problem){.config = &r.config, .dim = small_dims, .dim_user = &r};
    for (int call = 0; call < 2; call++) {
      double *a = calloc(12, sizeof *a);
      assert_non_null(a);
      r.arrays[0] = (struct fe_array){.rank = 2, .dim = {3, 4}, .data = a};
      r.results[1] = (struct fe_array){.rank = 2, .dim = {3, 4}, .data = r.out};
      bool good = fe_oracle(r.h.file, r.k, &r.p, r.arrays, r.results);
      free(a);
      if (good != (call == 0 || !cases[i].message))
        fail_msg("%s, %s: %s", cases[i].keep, cases[i].use, hf_diags(&r.h));
    }
    if (cases[i].message && !strstr(hf_diags(&r.h), cases[i].message))
      fail_msg("%s, %s: %s", cases[i].keep, cases[i].use, hf_diags(&r.h));
    hf_free(&r.h);
  }
}

static void test_no_oracle(void **state) {
  (void)state;
  struct hf h;
  hf_init(&h);
  const struct fe_kernel *k =
      load(&h, "return kernel { name = 'k', args = { out('C', f32, 'N') },\n"
               "grid = function() return 1 end, body = function() end }");
  struct fe_problem p = {0};
  assert_false(fe_oracle(h.file, k, &p, NULL, NULL));
  assert_int_equal(h.diags.n_errors, 1);
  assert_int_equal(h.diags.list.at[0].id, DIAG_NO_ORACLE);
  assert_string_equal(h.diags.list.at[0].message, "kernel `k` has no oracle");
  hf_free(&h);
}

static void test_inputs(void **state) {
  (void)state;
  struct hf h;
  hf_init(&h);
  const struct fe_kernel *k = load(
      &h, "return kernel { name = 'k', args = { tensor('T', s32, 'B', 4), tensor('L', s32, 'B'), "
          "tensor('X', f32, 'B'), scalar('n', s32), out('C', f32, 'B') }, "
          "grid = function() return 1 end, body = function() end, inputs = function(shape, rng, c) "
          "local l = {} for b = 1, shape.B do l[b] = b * 10 end "
          "return {T = rng:int(0, 9, shape.B, 4), L = l, n = rng:int(5, 5)} end }");
  struct fe_config c;
  assert_true(fe_default_config(h.file, k, &h.arena, NULL, &c));
  struct fe_named shape = {"B", {.kind = FE_INT, .i = 3}};
  struct fe_case kase = {.shape = &shape, .n_shape = 1};
  struct run r = {.c = &kase};
  struct fe_problem p = {.config = &c, .dim = dim_value, .dim_user = &r};
  double t[2][12], l[3] = {0}, x[3] = {7, 7, 7}, n = 0;
  struct fe_array arrays[5] = {{.rank = 2, .dim = {3, 4}, .data = t[0]},
                               {.rank = 1, .dim = {3}, .data = l},
                               {.rank = 1, .dim = {3}, .data = x},
                               {.data = &n}};
  uint64_t given;
  assert_true(fe_inputs(h.file, k, &p, 11, arrays, &given));
  assert_int_equal(given, 1 | 2 | 8);
  assert_true(l[0] == 10 && l[2] == 30 && n == 5 && x[0] == 7);
  double least = 9, most = 0;
  for (int i = 0; i < 12; i++) {
    assert_true(t[0][i] == floor(t[0][i]));
    least = fmin(least, t[0][i]);
    most = fmax(most, t[0][i]);
  }
  assert_true(least >= 0 && most <= 9 && most > least);
  arrays[0].data = t[1];
  assert_true(fe_inputs(h.file, k, &p, 11, arrays, &given)); /* the same seed, the same numbers */
  assert_memory_equal(t[0], t[1], sizeof t[0]);
  assert_true(fe_inputs(h.file, k, &p, 12, arrays, &given));
  assert_memory_not_equal(t[0], t[1], sizeof t[0]);
  hf_free(&h);
}

/* ---- limits ---- */

static const char *kernel_text(struct hf *h, const char *body) {
  struct strbuf text = {.arena = &h->arena};
  sb_printf(&text,
            "return kernel { name = 'k', args = { tensor('A', f32, 'M'), out('C', f32, 'M') }, "
            "grid = function() return 1 end, body = function(a, d, c, i)\n%s end }",
            body);
  return sb_str(&text);
}

static void expect_trace_error(struct hf *h, const char *body, const char *want) {
  if (!hf_load(h, "k.lua", kernel_text(h, body)))
    fail_msg("%s", hf_diags(h));
  assert_null(hf_trace(h, NULL, 0));
  const char *got = hf_diags(h);
  if (!strstr(got, want))
    fail_msg("%s\ngives\n%sand not\n%s", body, got, want);
  diag_clear(&h->diags);
}

static bool stop_at_once(void *user) {
  (void)user;
  return true;
}

static void test_limits(void **state) {
  (void)state;
  struct hf h;
  hf_init(&h);
  /* 10^6 ops. Tables that grow by one element (KILN_STRESS) would take all memory before. */
#ifdef KILN_STRESS
  h.host.limits.ops = 800;
  const char *too_many = "k.lua:2:53: error: the kernel has more than 800 ops; plain loops unroll: "
                         "use range(lo, hi, step) [K0505]";
#else
  const char *too_many = "k.lua:2:53: error: the kernel has more than 100000 ops; plain loops "
                         "unroll: use range(lo, hi, step) [K0505]";
#endif
  expect_trace_error(&h, "local x = zeros(f32, 4) for r = 1, 1000000 do x = x + 1 end", too_many);
  /* The discarded pass of a loop does not count beside the one that is kept. */
  h.host.limits.ops = 2000;
  assert_true(hf_load(&h, "k.lua",
                      kernel_text(&h, "for k in range(0, d.M) do for r = 1, 400 do "
                                      "a.C:store({r}, 0) end end")));
  assert_non_null(hf_trace(&h, NULL, 0));
  h.host.limits.ops = 1000;
  expect_trace_error(&h, "for k in range(0, d.M) do for r = 1, 400 do a.C:store({r}, 0) end end",
                     "more than 1000 ops");
  h.host.limits.ops = 0;
  h.host.limits.steps = 100000;
  expect_trace_error(&h, "while true do end", "[K0202]");
  expect_trace_error(&h, "for r = 1, 1e9 do end", "[K0202]");
  expect_trace_error(&h, "local s = ('a'):rep(1 << 60)", "[K02");
  expect_trace_error(&h, "string.find(('a'):rep(3000), ('.-'):rep(12) .. 'b')", "[K0202]");
  h.host.limits.steps = 0;
  h.host.limits.memory = 4 << 20;
  expect_trace_error(&h, "local t = {} for r = 1, 1e7 do t[r] = r end", "[K0203]");
  h.host.limits.memory = 0;
  expect_trace_error(&h, "local function f() return 1 + f() end f()", "[K0205]");
  h.host.limits.seconds = 0.05;
  expect_trace_error(&h, "while true do end", "[K0204]");
  h.host.limits.seconds = 0;
  h.host.interrupted = stop_at_once;
  if (hf_load(&h, "k.lua", kernel_text(&h, "while true do end")))
    assert_null(hf_trace(&h, NULL, 0));
  assert_non_null(strstr(hf_diags(&h), "[K0004]"));
  hf_free(&h);
}

static void test_many_errors(void **state) {
  (void)state;
  struct hf h;
  hf_init(&h);
  h.diags.max_errors = 20;
  assert_true(
      hf_load(&h, "k.lua",
              kernel_text(&h, "for r = 1, 100 do local x = zeros(f32, r) + zeros(f32, r + 1) "
                              "local y = zeros(f32, r + 1) + zeros(f32, r + 3) end")));
  assert_null(hf_trace(&h, NULL, 0));
  assert_int_equal(h.diags.n_errors, 20);
  /* The file is as usable as before. */
  diag_clear(&h.diags);
  assert_true(hf_load(&h, "k.lua", kernel_text(&h, "a.C:store({0}, a.A:tile({0}, {4}))")));
  assert_non_null(hf_trace(&h, NULL, 0));
  hf_free(&h);
}

/* ---- memory ---- */

struct failing {
  long left; /* allocations that succeed; < 0: all */
  long live;
};

static void *failing_alloc(void *user, void *p, size_t old_size, size_t new_size) {
  struct failing *f = user;
  if (new_size == 0) {
    f->live -= p != NULL;
    return mem_libc.fn(NULL, p, old_size, 0);
  }
  if (f->left == 0)
    return NULL;
  if (f->left > 0)
    f->left--;
  void *q = mem_libc.fn(NULL, p, old_size, new_size);
  f->live += q && !p;
  return q;
}

struct oom_run {
  struct fe_host host;
  const char *text;
  struct arena arena;
  struct fe_file *file;
  bool done;
};

static void load_and_trace(void *user) {
  struct oom_run *r = user;
  struct fe_config config;
  struct fe_file *f = r->file = fe_load(&r->host, "k.lua", r->text, strlen(r->text));
  if (!f)
    return;
  const struct fe_kernel *k = fe_kernel_at(f, 0);
  if (fe_default_config(f, k, &r->arena, NULL, &config)) {
    struct fe_trace_options opt = {.config = &config};
    r->done = fe_trace(f, k, &opt, &r->arena) != NULL;
  }
}

/* Every n-th allocation fails: no crash, no leak, and an error each time. */
static void test_out_of_memory(void **state) {
  (void)state;
  struct failing failing = {.left = -1};
  struct mem_alloc mem = {failing_alloc, &failing};
  struct diag_sink diags;
  assert_true(diag_init(&diags, &mem_libc));
  struct arena text_arena;
  struct oom_trap trap;
  arena_init(&text_arena, &mem_libc, &trap);
  if (setjmp(trap.env))
    fail_msg("out of memory");
  struct hf h = {.arena = text_arena};
  struct oom_run r = {
      .host = {.mem = &mem, .diags = &diags, .root = ""},
      .text =
          kernel_text(&h, "local s, t = zeros(f32, 4), {} for k in range(0, d.M, 4) do "
                          "t.x = a.A:tile({k}, {4}) if k > 3 then s = s + t.x else s = s * 2 end "
                          "end a.C:store({0}, gelu(s)) print('x', s)")};
  long n = 0;
  for (; !r.done && n < 5000; n++) {
    struct oom_trap arena_trap;
    arena_init(&r.arena, &mem, &arena_trap);
    failing.left = n;
    diag_clear(&diags);
    bool fitted = arena_guard(&r.arena, load_and_trace, &r);
    assert_true(r.done || !fitted || diags.n_errors > 0 || diags.n_dropped > 0);
    failing.left = -1;
    fe_free(r.file);
    r.file = NULL;
    arena_free(&r.arena);
    assert_int_equal(failing.live, 0);
  }
  assert_true(r.done && n > 50);
  arena_free(&h.arena);
  diag_free(&diags);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_gemm),
      cmocka_unit_test(test_elementwise),
      cmocka_unit_test(test_softmax),
      cmocka_unit_test(test_rmsnorm),
      cmocka_unit_test(test_tiles_as_oracles),
      cmocka_unit_test(test_default_config),
      cmocka_unit_test(test_config_errors),
      cmocka_unit_test(test_legal_errors),
      cmocka_unit_test(test_find_kernel),
      cmocka_unit_test(test_facts),
      cmocka_unit_test(test_traces_are_independent),
      cmocka_unit_test(test_documentation),
      cmocka_unit_test(test_oracle_builtins),
      cmocka_unit_test(test_oracle_functions),
      cmocka_unit_test(test_oracle_single),
      cmocka_unit_test(test_oracle_errors),
      cmocka_unit_test(test_matmul_callback),
      cmocka_unit_test(test_kept_arrays),
      cmocka_unit_test(test_no_oracle),
      cmocka_unit_test(test_inputs),
      cmocka_unit_test(test_limits),
      cmocka_unit_test(test_many_errors),
      cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests_name("the frontend's interface", tests, NULL, NULL);
}
