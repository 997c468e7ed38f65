/* Loops cut where their masks become true: the same results, whatever the masks are and wherever
 * the cuts fall, through rings of slots that go on from loop to loop; the middle loop has no mask
 * left. */
#include "help_cg.h"

#include "ir/interp.h"

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static const char *gemm(struct help_arena *h, struct cg_gemm g) {
  struct strbuf b = {.arena = &h->arena};
  cg_gemm_text(&b, &g);
  return sb_str(&b);
}

/* In the executor, and in the emulator in two modes: copies land at once, and as late as can be. */
static void check(const char *text, const char *dims, const char *layout, const char *knobs) {
  struct cg_test t;
  cg_test_begin(&t, text);
  cg_test_args(&t, dims, layout, -3, 4);
  if (!cg_test_lower(&t, "sm_90a", knobs))
    fail_msg("refused: %s", cg_test_messages(&t));
  for (t.what = 0; t.what < 2; t.what++)
    cg_test_compare(&t, 0);
  cg_test_end(&t);
}

static uint32_t count_ops(const struct ir_module *m, enum ir_opcode opcode, bool follows) {
  uint32_t n = 0;
  for (struct ir_op o = {1}; o.id < m->ops.n; o.id++)
    n += ir_op_at(m, o)->block.id && ir_op_at(m, o)->opcode == opcode &&
         (!follows || ir_attr_int(m, o, IR_ATTR_follows, 0));
  return n;
}

/* The edge along K is checked in the last iterations alone; the ring goes on. */
static void k_tails(void **state) {
  (void)state;
  static const int ks[] = {0, 1, 8, 24, 31, 63, 250, 96, 1001}, bks[] = {16, 24, 32, 64};
  static const enum dtype types[] = {DT_BF16, DT_F16, DT_F32};
  static const char *const majors[] = {"", "A=col", "B=col", "A=col,B=col"};
  static const char *const knobs[] = {"peel=1", "peel=1,stages=2", "peel=1,stages=3,prefetch=1",
                                      "peel=1,stages=1", "peel=1,stages=4,split_k=3"};
  for (unsigned i = 0; i < 9; i++)
    for (unsigned j = 0; j < 20; j++) {
      struct help_arena h;
      char dims[60];
      help_arena_init(&h);
      snprintf(dims, sizeof dims, "M=32,N=40,K=%d", ks[i]);
      struct cg_gemm g = {.t = types[(i + j) % 3], .bm = 32, .bn = 32, .bk = bks[j % 4]};
      check(gemm(&h, g), dims, majors[(i + j / 4) % 4], knobs[j % 5]);
      arena_free(&h.arena);
    }
}

static void two_loops(void **state) {
  (void)state;
  struct help_arena h;
  struct cg_test t;
  help_arena_init(&h);
  cg_test_begin(&t, gemm(&h, (struct cg_gemm){.t = DT_BF16, .bm = 32, .bn = 32, .bk = 32}));
  cg_test_args(&t, "M=32,N=32,K=40", "", 0, 1);
  struct ir_module *m = cg_test_schedule(&t, "sm_90a", "peel=1");
  assert_non_null(m);
  assert_int_equal(count_ops(m, IR_FOR, false), 2);
  assert_int_equal(count_ops(m, IR_FOR, true), 1);
  struct strbuf b = {.arena = &h.arena};
  cg_print_schedule(m, &b);
  const char *last = strstr(sb_str(&b), "loop.last: slots = "), *first = sb_str(&b);
  assert_non_null(last);
  const char *without = strstr(first, "load.A: path = cp_async, masks = [0,0]");
  const char *with = strstr(last, "load.A: path = cp_async, masks = [0,1]");
  assert_true(without && without < last && with);
  cg_test_end(&t);
  arena_free(&h.arena);
}

/* ---- random masks ---- */

struct maker {
  struct strbuf out;
  uint64_t seed;
  int n; /* values so far */
};

static uint32_t draw(struct maker *g, uint32_t n) {
  g->seed = g->seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(g->seed >> 33) % n;
}

/* A side of a comparison, index(4,8): perhaps with the loop's index, a row, a column, sizes. */
static int side(struct maker *g, const char *indent, bool index) {
  struct strbuf *o = &g->out;
  int n = g->n;
  g->n += 10;
  sb_printf(o, "%s%%v%d = const %d : index\n", indent, n, (int)draw(g, 20) - 8);
  static const char *const from[] = {"%n", "%m", "%at", "%0"};
  sb_printf(o, "%s%%v%d = add %%v%d, %s : index\n", indent, n + 1, n, from[draw(g, 4)]);
  if (index) {
    sb_printf(o, "%s%%v%d = const %d : index\n", indent, n + 2, (int)draw(g, 7) - 3);
    sb_printf(o, "%s%%v%d = mul %%k, %%v%d : index\n", indent, n + 3, n + 2);
    sb_printf(o, "%s%%v%d = %s %%v%d, %%v%d : index\n", indent, n + 4, draw(g, 3) ? "add" : "sub",
              n + 3, n + 1);
  } else {
    sb_printf(o, "%s%%v%d = add %%v%d, %%0 : index\n", indent, n + 4, n + 1);
  }
  sb_printf(o, "%s%%v%d = splat %%v%d : index(4,8)\n", indent, n + 5, n + 4);
  static const char *const tiles[] = {"%rows", "%cols", "%zeros"};
  const char *tile = tiles[draw(g, 3)];
  if (draw(g, 4) == 0)
    sb_printf(o, "%s%%v%d = mul %s, %%three : index(4,8)\n", indent, n + 6, tile);
  else
    sb_printf(o, "%s%%v%d = add %s, %%zeros : index(4,8)\n", indent, n + 6, tile);
  sb_printf(o, "%s%%v%d = %s %%v%d, %%v%d : index(4,8)\n", indent, n + 7,
            draw(g, 3) ? "add" : "sub", n + 5, n + 6);
  return n + 7;
}

static int mask(struct maker *g) {
  static const char *const ops[] = {"lt", "le", "gt", "ge", "eq", "ne"};
  int x = side(g, "      ", draw(g, 4) > 0), y = side(g, "      ", draw(g, 4) == 0);
  sb_printf(&g->out, "      %%v%d = %s %%v%d, %%v%d : bool(4,8)\n", g->n, ops[draw(g, 6)], x, y);
  return g->n++;
}

static const char *random_loop(struct maker *g) {
  struct strbuf *o = &g->out;
  int lo = (int)draw(g, 4), step = 1 + (int)draw(g, 9);
  sb_printf(o,
            "kiln-ir 1 tile\nkernel k {\n  arg X: in s32 [M, N]\n  arg Y: out s32 [M, 8]\n"
            "  dims M, N\n  grid cdiv(M, 4)\n"
            "  body(%%x: view s32(?,?), %%y: view s32(?,8), %%m: index, %%n: index, %%i: index) {\n"
            "    %%0 = const 0 : index\n    %%4 = const 4 : index\n    %%lo = const %d : index\n"
            "    %%step = const %d : index\n    %%at = mul %%i, %%4 : index\n"
            "    %%z = const 0 : s32\n    %%zero = splat %%z : s32(4,8)\n"
            "    %%f = const 7 : s32\n    %%fill = splat %%f : s32(4,8)\n"
            "    %%r = iota {axis = 0} : index(4,1)\n    %%c = iota {axis = 1} : index(1,8)\n"
            "    %%rows = broadcast %%r : index(4,8)\n    %%cols = broadcast %%c : index(4,8)\n"
            "    %%zeros = splat %%0 : index(4,8)\n    %%3 = const 3 : index\n"
            "    %%three = splat %%3 : index(4,8)\n",
            lo, step);
  sb_puts(o, "    %s = for %k: index = %lo, %n, %step carry(%a: s32(4,8) = %zero) : s32(4,8) {\n"
             "      %t = load %x, %at, %k : s32(4,8)\n");
  int all = mask(g);
  for (uint32_t more = draw(g, 3); more > 0; more--) {
    int other = mask(g);
    if (draw(g, 6) == 0)
      sb_printf(o, "      %%v%d = not %%v%d : bool(4,8)\n", g->n++, other), other = g->n - 1;
    sb_printf(o, "      %%v%d = %s %%v%d, %%v%d : bool(4,8)\n", g->n++, draw(g, 4) ? "and" : "or",
              all, other);
    all = g->n - 1;
  }
  sb_printf(o,
            "      %%w = select %%v%d, %%t, %%fill : s32(4,8)\n"
            "      %%b = add %%a, %%w : s32(4,8)\n      yield %%b\n    }\n"
            "    store %%y, %%at, %%0, %%s\n    return\n  }\n}\n",
            all);
  return sb_str(o);
}

/* The scheduled module, peeled, means what the kernel means. */
static void same_in_interpreter(struct cg_test *t, const char *knobs, const char *text,
                                uint32_t *peeled) {
  struct ir_module *m = cg_test_schedule(t, "sm_90a", knobs);
  if (!m)
    fail_msg("program %llu: %s\n%s", (unsigned long long)t->what, cg_test_messages(t), text);
  *peeled += count_ops(m, IR_FOR, true) > 0;
  struct interp_options opt = {.check_races = true};
  if (!interp_run(t->tile, t->ref, t->tile->args.n, &opt, &t->diags, &mem_libc) ||
      !interp_run(m, t->arg, m->args.n, &opt, &t->diags, &mem_libc))
    fail_msg("program %llu: %s", (unsigned long long)t->what, cg_test_messages(t));
  for (uint32_t k = 0; k < t->tile->args.n; k++)
    if (t->tile->args.at[k].kind == IR_ARG_OUT &&
        memcmp(t->arg[k].tensor.data, t->ref[k].tensor.data, t->alloc[k]) != 0)
      fail_msg("program %llu is not the same when peeled\n%s", (unsigned long long)t->what, text);
}

static void random_masks(void **state) {
  (void)state;
  uint32_t peeled = 0;
  for (uint64_t seed = 1; seed <= 1500; seed++) {
    struct help_arena h;
    struct cg_test t;
    help_arena_init(&h);
    struct maker g = {.out = {.arena = &h.arena}, .seed = seed * 7919};
    const char *text = random_loop(&g);
    static const char *const dims[] = {"M=7,N=37", "M=4,N=5", "M=8,N=64", "M=12,N=1", "M=4,N=0"};
    cg_test_begin(&t, text);
    cg_test_args(&t, dims[seed % 5], "", -3, 4);
    t.what = seed;
    same_in_interpreter(&t, "peel=1", text, &peeled);
    cg_test_end(&t);
    if (seed <= 300)
      cg_check(text, dims[seed % 5], seed % 7 ? "" : "X=col",
               seed % 2 ? "peel=1" : "peel=1,threads=64", 0);
    arena_free(&h.arena);
  }
  print_message("%u loops were peeled\n", peeled);
  assert_true(peeled > 500);
}

/* ---- masks between dots, as attention has them ---- */

/* Y = sum over k of where(row - w < col and col <= row, A . B^T, 0) . C, causal, in a window. */
static const char window_text[] =
    "kiln-ir 1 tile\nkernel k {\n  arg A: in bf16 [M, D]\n  arg B: in bf16 [N, D]\n"
    "  arg C: in bf16 [N, D]\n  arg Y: out f32 [M, D]\n  dims M, D, N\n  grid cdiv(M, 16)\n"
    "  body(%%a: view bf16(?,?), %%b: view bf16(?,?), %%c: view bf16(?,?), %%y: view f32(?,?), "
    "%%m: index, %%d: index, %%n: index, %%i: index) {\n"
    "    %%0 = const 0 : index\n    %%16 = const 16 : index\n    %%w = const %d : index\n"
    "    %%at = mul %%i, %%16 : index\n    %%z = const 0.0 : f32\n"
    "    %%zero = splat %%z : f32(16,16)\n    %%q = load %%a, %%at, %%0 : bf16(16,16)\n"
    "    %%r = iota {axis = 0} : index(16,1)\n    %%s = splat %%at : index(16,1)\n"
    "    %%row = add %%r, %%s : index(16,1)\n    %%rows = broadcast %%row : index(16,16)\n"
    "    %%win = splat %%w : index(16,16)\n    %%low = sub %%rows, %%win : index(16,16)\n"
    "    %%e = iota {axis = 1} : index(1,16)\n"
    "    %%o = for %%k: index = %%0, %%n, %%16 carry(%%acc: f32(16,16) = %%zero) : f32(16,16) {\n"
    "      %%f = splat %%k : index(1,16)\n      %%col = add %%e, %%f : index(1,16)\n"
    "      %%cols = broadcast %%col : index(16,16)\n      %%t = load %%b, %%k, %%0 : bf16(16,16)\n"
    "      %%u = transpose %%t {perm = [1,0]} : bf16(16,16)\n"
    "      %%x = dot %%q, %%u, %%zero : f32(16,16)\n      %%g = le %%cols, %%rows : bool(16,16)\n"
    "      %%h = gt %%cols, %%low : bool(16,16)\n      %%j = and %%g, %%h : bool(16,16)\n"
    "      %%v = select %%j, %%x, %%zero : f32(16,16)\n      %%p = cast %%v : bf16(16,16)\n"
    "      %%l = load %%c, %%k, %%0 : bf16(16,16)\n"
    "      %%sum = dot %%p, %%l, %%acc : f32(16,16)\n      yield %%sum\n    }\n"
    "    store %%y, %%at, %%0, %%o\n    return\n  }\n}\n";

static void windows(void **state) {
  (void)state;
  static const int window[] = {0, 1, 17, 40, 1000};
  static const char *const dims[] = {"M=40,N=40,D=16", "M=70,N=33,D=16", "M=16,N=200,D=13"};
  static const char *const knobs[] = {
      "", "stages=2", "stages=4,peel=1", "stages=1", "stages=3,peel=1,split_k=2", "peel=0"};
  for (unsigned i = 0; i < 5; i++) {
    char text[3000];
    snprintf(text, sizeof text, window_text, window[i]);
    for (unsigned d = 0; d < 3; d++)
      for (unsigned k = 0; k < 6; k++)
        check(text, dims[d], "", knobs[k]);
    struct cg_test t;
    cg_test_begin(&t, text);
    cg_test_args(&t, dims[0], "", -3, 4);
    struct ir_module *m = cg_test_schedule(&t, "sm_90a", "peel=1");
    assert_non_null(m);
    assert_int_equal(count_ops(m, IR_FOR, false), 3);
    assert_int_equal(count_ops(m, IR_FOR, true), 2);
    assert_int_equal(count_ops(m, IR_SELECT, false), 2); /* none in the middle */
    assert_int_equal(count_ops(cg_test_schedule(&t, "sm_90a", "peel=0"), IR_FOR, false), 1);
    cg_test_end(&t);
  }
}

/* Where nothing is said, the mask must be worth it: 16 elements a thread, which 32 have of 16 x 32,
 * and the edge of a load never is. */
static void rule(void **state) {
  (void)state;
  static const struct {
    int columns;
    const char *knobs;
    uint32_t loops;
  } rows[] = {{32, "", 2},       {32, "threads=64", 1}, {16, "", 1},
              {32, "peel=0", 1}, {16, "peel=1", 2},     {32, "threads=64,peel=1", 2}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct cg_test t;
    char text[2000];
    int n = rows[i].columns;
    snprintf(text, sizeof text,
             "kiln-ir 1 tile\nkernel k {\n  arg X: in f32 [M, N]\n  arg Y: out f32 [M, %d]\n"
             "  dims M, N\n  grid cdiv(M, 16)\n  body(%%x: view f32(?,?), %%y: view f32(?,%d), "
             "%%m: index, %%n: index, %%i: index) {\n    %%0 = const 0 : index\n"
             "    %%16 = const 16 : index\n    %%w = const %d : index\n"
             "    %%at = mul %%i, %%16 : index\n    %%z = const 0.0 : f32\n"
             "    %%zero = splat %%z : f32(16,%d)\n    %%c = iota {axis = 1} : index(1,%d)\n"
             "    %%end = splat %%m : index(16,%d)\n    %%cols = broadcast %%c : index(16,%d)\n"
             "    %%o = for %%k: index = %%0, %%n, %%w carry(%%a: f32(16,%d) = %%zero) : "
             "f32(16,%d) {\n      %%t = load %%x, %%at, %%k : f32(16,%d)\n"
             "      %%s = splat %%k : index(16,%d)\n      %%e = add %%s, %%cols : index(16,%d)\n"
             "      %%l = lt %%e, %%end : bool(16,%d)\n"
             "      %%v = select %%l, %%t, %%zero : f32(16,%d)\n"
             "      %%b = add %%a, %%v : f32(16,%d)\n      yield %%b\n    }\n"
             "    store %%y, %%at, %%0, %%o\n    return\n  }\n}\n",
             n, n, n, n, n, n, n, n, n, n, n, n, n, n, n);
    cg_test_begin(&t, text);
    cg_test_args(&t, "M=40,N=100", "", -3, 4);
    char knobs[40];
    snprintf(knobs, sizeof knobs, "%s%s", rows[i].knobs,
             strstr(rows[i].knobs, "threads") ? ""
             : *rows[i].knobs                 ? ",threads=32"
                                              : "threads=32");
    uint32_t loops = count_ops(cg_test_schedule(&t, "sm_90a", knobs), IR_FOR, false);
    if (loops != rows[i].loops)
      fail_msg("row %zu: %u loops, not %u", i, loops, rows[i].loops);
    cg_test_end(&t);
  }
}

/* The tensor memory unit checks edges itself. */
static void tensor_memory(void **state) {
  (void)state;
  struct help_arena h;
  struct cg_test t;
  help_arena_init(&h);
  cg_test_begin(&t, gemm(&h, (struct cg_gemm){.t = DT_BF16, .bm = 128, .bn = 128, .bk = 64}));
  cg_test_args(&t, "M=128,N=128,K=200", "", -3, 4);
  assert_int_equal(count_ops(cg_test_schedule(&t, "sm_90a", "peel=1,warpgroups=2"), IR_FOR, false),
                   1);
  assert_true(cg_test_lower(&t, "sm_90a", "peel=1,warpgroups=2,split_k=2"));
  assert_string_equal(cg_test_emulate(&t, EMU_LATE, 1).error, "");
  cg_test_end(&t);
  arena_free(&h.arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(k_tails),       cmocka_unit_test(two_loops), cmocka_unit_test(random_masks),
      cmocka_unit_test(tensor_memory), cmocka_unit_test(windows),   cmocka_unit_test(rule),
  };
  return cmocka_run_group_tests_name("peel", tests, NULL, NULL);
}
