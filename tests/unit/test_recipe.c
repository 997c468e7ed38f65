/* base/recipe.c: exact round trips, one bad text per rule with its place, damage of every line and
 * byte, memory failures. */
#include "help_rt.h"

#include "base/recipe.h"

#include <string.h>

static const char sample[] = "kiln-recipe 1\n"
                             "kernel \"gemm \\\"x\\\"\"\n"
                             "target \"sm_90a\"\n"
                             "arg in \"A\" bf16 [M, K]\n"
                             "arg in \"B\" bf16 [K, N]\n"
                             "arg in optional \"bias\" f32 [N]\n"
                             "arg out \"C\" bf16 [M, N]\n"
                             "arg inout \"state\" s4 []\n"
                             "arg scalar \"alpha\" f32\n"
                             "arg in \"S\" f32 [cdiv(M, 128), select(N < 3, max(M, 2), 1)]\n"
                             "check A.stride1 == 1 or A.stride0 == 1 : \"A: one stride: 1\\n\"\n"
                             "check A.addr % 16 == 0 : \"A must be aligned to 16 bytes\"\n"
                             "workspace 4 * M * N\n"
                             "memset 0, 4 * M\n"
                             "launch \"gemm_kernel\"\n"
                             "  grid cdiv(M, 128), cdiv(N, 256), 1\n"
                             "  block 128, 2, 1\n"
                             "  cluster 2, 1, 1\n"
                             "  smem 65536\n"
                             "  regs 168\n"
                             "  param ptr 0\n"
                             "  param ptr 3\n"
                             "  param workspace 4 * M\n"
                             "  param i32 M\n"
                             "  param i64 A.stride0\n"
                             "  param scalar 5\n"
                             "end\n"
                             "launch \"tail\"\n"
                             "  grid 1, 1, 1\n"
                             "  block 32, 1, 1\n"
                             "  cluster 1, 1, 1\n"
                             "  smem 0\n"
                             "  regs 0\n"
                             "  pdl\n"
                             "  param tmap 0 [K, M] strides [A.stride1 * 2, A.stride0 * 2] "
                             "box [64, 128] swizzle 128 l2 256 fill zero\n"
                             "  param tmap 6 [S.dim1, S.dim0] strides [4, S.stride0 * 4] "
                             "box [8, 256] swizzle 0 l2 0 fill nan round tf32\n"
                             "end\n";

struct fixture {
  struct help_arena mem;
  struct symtab *syms;
  struct diag_sink diags;
};

static void start(struct fixture *f) {
  help_arena_init(&f->mem);
  f->syms = symtab_new(&f->mem.arena);
  assert_true(diag_init(&f->diags, &mem_libc));
}

static void stop(struct fixture *f) {
  arena_free(&f->mem.arena);
  diag_free(&f->diags);
}

static struct recipe *parse(struct fixture *f, const char *text, size_t n) {
  return recipe_parse(&f->mem.arena, f->syms, &f->diags, 0, text, n);
}

static const char *print(struct fixture *f, const struct recipe *r) {
  struct strbuf b = {.arena = &f->mem.arena};
  recipe_print(r, &b);
  return sb_str(&b);
}

static void test_round_trip(void **state) {
  (void)state;
  struct fixture f;
  start(&f);
  struct recipe *r = parse(&f, sample, strlen(sample));
  if (!r)
    fail_msg("%s", help_last_message(&f.diags));
  assert_string_equal(print(&f, r), sample);
  assert_int_equal(r->args.n, 7);
  assert_string_equal(r->kernel, "gemm \"x\"");
  assert_true(r->args.at[2].optional && r->args.at[2].dtype == DT_F32);
  assert_int_equal(r->args.at[6].rank, 2);
  assert_int_equal(r->args.at[4].rank, 0);
  assert_int_equal(r->steps.at[1].block[1], 2);
  assert_int_equal(r->steps.at[1].params.at[5].kind, RECIPE_PARAM_SCALAR);
  assert_string_equal(r->checks.at[0].message, "A: one stride: 1\n");
  stop(&f);
}

/* What codegen builds in memory prints to text that reads back to the same text. */
static void test_built(void **state) {
  (void)state;
  struct fixture f;
  start(&f);
  struct arena *a = &f.mem.arena;
  struct recipe *r = recipe_new(a, f.syms);
  struct expr_pool *p = &r->exprs;
  r->kernel = "copy";
  r->target = "sm_80";
  struct recipe_arg x = {.name = "X\t\x01\xc3\xa9", .kind = RECIPE_IN, .dtype = DT_E4M3, .rank = 1};
  x.dim[0] = expr_sym(p, "n");
  VEC_PUSH(a, &r->args, x);
  struct recipe_step s = {.kind = RECIPE_KERNEL, .entry = "copy"};
  for (int i = 0; i < 3; i++) {
    s.grid[i] = expr_const(p, 1);
    s.block[i] = s.cluster[i] = 1;
  }
  s.grid[0] = expr_op2(p, EXPR_CDIV, x.dim[0], expr_const(p, 256));
  s.block[0] = 256;
  VEC_PUSH(a, &s.params, ((struct recipe_param){.kind = RECIPE_PARAM_PTR, .arg = 0}));
  VEC_PUSH(a, &r->steps, s);
  const char *text = print(&f, r);
  struct recipe *back = parse(&f, text, strlen(text));
  if (!back)
    fail_msg("%s\n%s", text, help_last_message(&f.diags));
  assert_string_equal(print(&f, back), text);
  assert_string_equal(back->args.at[0].name, x.name);
  stop(&f);
}

static char *replaced(struct arena *a, const char *from, const char *to) {
  const char *p = strstr(sample, from);
  assert_non_null(p);
  struct strbuf b = {.arena = a};
  sb_put(&b, sample, (size_t)(p - sample));
  sb_puts(&b, to);
  sb_puts(&b, p + strlen(from));
  return b.s;
}

static void test_bad(void **state) {
  (void)state;
  static const struct {
    const char *from, *to;
    uint32_t line, col;
    const char *message;
  } bad[] = {
      {"kiln-recipe 1", "kiln-recipe 2", 1, 1, "recipe version 2; this Kiln reads version 1"},
      {"kiln-recipe 1", "kiln-ir 1 tile", 1, 1, "expected `kiln-recipe 1`"},
      {"kernel \"gemm", "kernal \"gemm", 2, 1, "expected `kernel`"},
      {"\\\"x\\\"\"", "\\\"x", 2, 8, "does not end on its line"},
      {"\\\"x\\\"", "\\x", 2, 15, "unknown escape"},
      {"target", "arg", 3, 1, "expected `target`"},
      {"arg in \"A\"", "arg into \"A\"", 4, 5, "expected in, out, inout or scalar"},
      {"\"B\" bf16", "\"A\" bf16", 5, 8, "`A` is there twice"},
      {"bf16 [M, K]", "half [M, K]", 4, 12, "expected the dtype of `A`"},
      {"bf16 [M, K]", "index [M, K]", 4, 12, "expected the dtype of `A`"},
      {"[M, K]", "M, K]", 4, 17, "expected `[`"},
      {"[M, K]", "[M, K", 4, 22, "expected `]`"},
      {"[M, K]", "[M, K +]", 4, 24, "expected an expression"},
      {"[M, K]", "[M, K] 7", 4, 24, "end of the line"},
      {"[M, K]", "[M, K, 1, 1, 1, 1]", 4, 33, "more than 5 dims"},
      {"workspace 4 * M * N\n", "", 13, 1, "memset without a workspace"},
      {"workspace 4 * M * N\n", "workspace 1\nworkspace 1\n", 14, 1, "out of order"},
      {"memset 0, 4 * M\n", "memset 0, 4 * M\narg in \"Z\" f32 []\n", 15, 1, "out of order"},
      {"memset 0, 4 * M", "memset 0", 14, 9, "expected `,`"},
      {"block 128, 2, 1", "block 1024, 2, 1", 17, 1, "`block` is over the limit of 1024"},
      {"block 128, 2, 1", "block 0, 2, 1", 17, 9, "`block` is 0"},
      {"block 128, 2, 1", "block 99999999999, 2, 1", 17, 9, "over the limit of 1024"},
      {"cluster 2, 1, 1", "cluster 32, 1, 1", 18, 11, "over the limit of 16"},
      {"grid cdiv(M, 128), cdiv(N, 256), 1", "grid M, 1", 16, 12, "expected `,`"},
      {"param ptr 3", "param ptr 7", 22, 13, "there is no argument 7"},
      {"param ptr 3", "param ptr 5", 22, 13, "argument `alpha` is a scalar"},
      {"param scalar 5", "param scalar 0", 26, 16, "argument `A` is not a scalar"},
      {"param i32 M", "param f32 M", 24, 9, "expected ptr, workspace, i32, i64, scalar or tmap"},
      {"  param scalar 5\nend\n", "  param scalar 5\n", 27, 1, "expected `param` or `end`"},
      {"round tf32\nend\n", "round tf32\n", 36, 107, "has no `end`"},
      {"round tf32", "round f16", 36, 103, "expected `tf32`"},
      {"fill zero", "fill zero round tf32", 35, 110, "round tf32 over bf16"},
      {"pdl\n", "pdl\n  pdl\n", 35, 3, "expected `param` or `end`"},
      {"tmap 0", "tmap 5", 35, 14, "argument `alpha` is a scalar"},
      {"tmap 0", "tmap 4", 35, 15, "a tensor map of 2 dims over argument `state` of 0"},
      {"[K, M]", "[K]", 35, 15, "a tensor map of 1 dims over argument `A` of 2"},
      {"strides [A", "stride [A", 35, 23, "expected `strides`"},
      {"[A.stride1 * 2, ", "[", 35, 30, "1 strides for 2 dims"},
      {"box [64, 128]", "box [64, 257]", 35, 71, "257 is over the limit of 256"},
      {"box [64, 128]", "box [0, 128]", 35, 67, "a box of 0 elements"},
      {"box [64, 128]", "box [64]", 35, 69, "expected `,`"},
      {"swizzle 128", "swizzle 16", 35, 84, "`swizzle` is 16; it must be 0, 32, 64 or 128"},
      {"swizzle 128", "swizzle 64", 35, 71, "a box whose rows have 128 bytes"},
      {"l2 256", "l2 512", 35, 91, "`l2` is 512; it must be 0, 64, 128 or 256"},
      {"fill zero", "fill one", 35, 100, "expected `zero`"},
      {"launch \"tail\"", "call \"tail\"", 28, 1,
       "expected arg, check, workspace, memset or launch"},
  };
  struct fixture f;
  start(&f);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    char *text = replaced(&f.mem.arena, bad[i].from, bad[i].to);
    diag_clear(&f.diags);
    assert_null(parse(&f, text, strlen(text)));
    assert_int_equal(f.diags.n_errors, 1);
    const struct diag *d = &f.diags.list.at[0];
    if (!strstr(d->message, bad[i].message) || d->loc.line != bad[i].line ||
        d->loc.col != bad[i].col)
      fail_msg("`%s` for `%s`: %u:%u: %s", bad[i].to, bad[i].from, d->loc.line, d->loc.col,
               d->message);
  }
  stop(&f);
}

/* Whatever is dropped or changed: one diagnostic, or a recipe whose text is stable. */
static void test_damage(void **state) {
  (void)state;
  struct fixture f;
  start(&f);
  char text[sizeof sample + 8];
  size_t n = strlen(sample);
  int refused = 0;
  for (size_t i = 0; i < n; i++)
    for (int how = 0; how < 4; how++) {
      struct arena_mark mark = arena_get_mark(&f.mem.arena);
      struct fixture g = f;
      g.syms = symtab_new(&g.mem.arena);
      memcpy(text, sample, n + 1);
      size_t len = n;
      if (how == 0)
        memmove(text + i, text + i + 1, len-- - i); /* one byte gone */
      else if (how == 1)
        text[i] = (char)(text[i] ^ 1 << i % 8);
      else if (how == 2)
        len = i; /* the rest gone */
      else
        text[i] = "(]\"0\n :,"[i % 8];
      diag_clear(&g.diags);
      struct recipe *r = recipe_parse(&g.mem.arena, g.syms, &g.diags, 0, text, len);
      refused += !r;
      assert_int_equal(g.diags.n_errors, r ? 0 : 1);
      if (r) {
        const char *once = print(&g, r);
        struct recipe *again = parse(&g, once, strlen(once));
        assert_non_null(again);
        assert_string_equal(print(&g, again), once);
      }
      f.diags = g.diags;
      f.mem.arena = g.mem.arena;
      arena_reset(&f.mem.arena, mark);
    }
  assert_true(refused > (int)n);
  stop(&f);
}

struct job {
  struct help_mem *mem;
  struct arena arena;
  struct diag_sink diags;
  bool parsed;
};
static void job_body(void *user) {
  struct job *j = user;
  struct symtab *syms = symtab_new(&j->arena);
  struct recipe *r = recipe_parse(&j->arena, syms, &j->diags, 0, sample, strlen(sample));
  assert_non_null(r);
  struct strbuf b = {.arena = &j->arena};
  recipe_print(r, &b);
  assert_string_equal(sb_str(&b), sample);
  j->parsed = true;
}
static bool oom_body(struct help_mem *mem, void *user) {
  (void)user;
  struct job j = {.mem = mem};
  struct oom_trap trap = {0};
  if (!diag_init(&j.diags, &mem->alloc)) {
    diag_free(&j.diags);
    return false;
  }
  arena_init(&j.arena, &mem->alloc, &trap);
  bool ok = arena_guard(&j.arena, job_body, &j);
  assert_true(ok == j.parsed);
  arena_free(&j.arena);
  diag_free(&j.diags);
  return ok;
}
static void test_no_memory(void **state) {
  (void)state;
  assert_true(help_oom_loop(oom_body, NULL, false) > 1);
  help_oom_loop(oom_body, NULL, true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip), cmocka_unit_test(test_built),
      cmocka_unit_test(test_bad),        cmocka_unit_test(test_damage),
      cmocka_unit_test(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
