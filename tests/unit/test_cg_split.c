/* Loops in parts (split_k): the same results as of the whole loop, exactly where sums are exact,
 * and the same bits in every run; one workspace of the launch, whatever is in it; refused by name
 * where the loop's state cannot be merged; and the emulator sees that the programs are ordered. */
#include "base/num.h"
#include "help_cg.h"

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static const char *gemm(struct help_arena *h, struct cg_gemm g) {
  struct strbuf b = {.arena = &h->arena};
  cg_gemm_text(&b, &g);
  return sb_str(&b);
}

/* Small M and N, large K; parts of several iterations, of one, and without any. */
static void products(void **state) {
  (void)state;
  static const enum dtype types[] = {DT_BF16, DT_F16, DT_F32};
  static const char *const majors[] = {"", "A=col", "B=col", "A=col,B=col,C=pad3"};
  static const char *const dims[] = {"M=16,N=16,K=1001", "M=33,N=24,K=512", "M=7,N=1,K=64",
                                     "M=16,N=16,K=0",    "M=40,N=70,K=130", "M=0,N=16,K=64"};
  static const int parts[] = {2, 3, 4, 8, 64}; /* merged at once, and in a loop */
  for (unsigned i = 0; i < 6; i++)
    for (unsigned p = 0; p < 5; p++) {
      struct help_arena h;
      char knobs[60];
      struct cg_gemm g = {.t = types[(i + p) % 3], .bm = 16, .bn = 32, .bk = 32, .act = "relu"};
      g.bias = g.residual = p % 2 == 0;
      help_arena_init(&h);
      snprintf(knobs, sizeof knobs, "split_k=%d%s", parts[p], i % 2 ? ",stages=3,store=1" : "");
      cg_check(gemm(&h, g), dims[i], majors[(i + p) % 4], knobs, 0);
      arena_free(&h.arena);
    }
}

/* C += A . B, with C as what the sum starts from, or read after it. */
static const char beta_text[] =
    "kiln-ir 1 tile\nkernel k {\n  arg A: in bf16 [M, K]\n  arg B: in bf16 [K, N]\n"
    "  arg C: inout f32 [M, N]\n  dims M, K, N\n  grid cdiv(M, 16), cdiv(N, 16)\n"
    "  body(%%a: view bf16(?,?), %%b: view bf16(?,?), %%c: view f32(?,?), %%m: index, %%k: index, "
    "%%n: index, %%i: index, %%j: index) {\n"
    "    %%16 = const 16 : index\n    %%0 = const 0 : index\n    %%z = const 0.0 : f32\n"
    "    %%zero = splat %%z : f32(16,16)\n"
    "    %%x = mul %%i, %%16 : index\n    %%y = mul %%j, %%16 : index\n"
    "    %%old = load %%c, %%x, %%y : f32(16,16)\n"
    "    %%s = for %%l: index = %%0, %%k, %%16 carry(%%acc: f32(16,16) = %s) : f32(16,16) {\n"
    "      %%p = load %%a, %%x, %%l : bf16(16,16)\n      %%q = load %%b, %%l, %%y : bf16(16,16)\n"
    "      %%r = dot %%p, %%q, %%acc : f32(16,16)\n      yield %%r\n    }\n"
    "%s    store %%c, %%x, %%y, %s\n    return\n  }\n}\n";

static void reads_what_it_writes(void **state) {
  (void)state;
  for (int behind = 0; behind < 3; behind++) {
    struct cg_test t;
    char text[2000];
    snprintf(text, sizeof text, beta_text, behind ? "%zero" : "%old",
             behind == 1   ? "    %t = add %s, %old : f32(16,16)\n"
             : behind == 2 ? "    %again = load %c, %x, %y : f32(16,16)\n"
                             "    %t = add %s, %again : f32(16,16)\n"
                           : "",
             behind ? "%t" : "%s");
    cg_test_begin(&t, text);
    cg_test_args(&t, "M=33,N=20,K=200", "C=pad2", -3, 4);
    assert_true(cg_test_lower(&t, "sm_90a", "split_k=4"));
    for (t.what = 0; t.what < EMU_MODES; t.what++)
      cg_test_compare(&t, 0); /* each launch adds to what the one before left */
    cg_test_end(&t);
  }
}

/* Sums, maxima and minima of rows, of tiles and of scalars; a counter that starts at 5. */
static const char rows_text[] =
    "kiln-ir 1 tile\nkernel k {\n  arg X: in s32 [M, N]\n  arg S: out s32 [M, 3]\n"
    "  arg T: out s32 [M, 2]\n  dims M, N\n  grid M\n"
    "  body(%x: view s32(?,?), %s: view s32(?,3), %t: view s32(?,2), %m: index, %n: index, "
    "%i: index) {\n"
    "    %0 = const 0 : index\n    %1 = const 1 : index\n    %2 = const 2 : index\n"
    "    %8 = const 8 : index\n    %five = const 5 : s32\n    %z = const 0 : s32\n"
    "    %zero = splat %z : s32(1,8)\n    %lo = const -100 : s32\n    %low = splat %lo : s32(1,8)\n"
    "    %hi = const 100 : s32\n    %high = splat %hi : s32(1,8)\n"
    "    %a, %b, %c, %d, %e = for %k: index = %0, %n, %8 carry(%a0: s32(1,8) = %zero, %b0: s32(1,8)"
    " = %low, %c0: s32(1,8) = %high, %d0: s32 = %five, %e0: index = %8) : s32(1,8), s32(1,8), "
    "s32(1,8), s32, index {\n"
    "      %v = load %x, %i, %k : s32(1,8)\n      %a1 = add %a0, %v : s32(1,8)\n"
    "      %b1 = max %b0, %v : s32(1,8)\n      %c1 = min %c0, %v : s32(1,8)\n"
    "      %w = gather %x, %i, %k : s32\n      %d1 = add %d0, %w : s32\n"
    "      %e1 = max %e0, %k : index\n      yield %a1, %b1, %c1, %d1, %e1\n    }\n"
    "    %sum = reduce_sum %a {axis = 1} : s32(1,1)\n"
    "    %top = reduce_max %b {axis = 1} : s32(1,1)\n"
    "    %bot = reduce_min %c {axis = 1} : s32(1,1)\n"
    "    store %s, %i, %0, %sum\n    store %s, %i, %1, %top\n    store %s, %i, %2, %bot\n"
    "    scatter %t, %i, %0, %d\n    %f = cast %e : s32\n    scatter %t, %i, %1, %f\n"
    "    return\n  }\n}\n";

static void row_reductions(void **state) {
  (void)state;
  static const char *const dims[] = {"M=1,N=1000", "M=3,N=64", "M=5,N=7", "M=2,N=0"};
  for (unsigned i = 0; i < 4; i++)
    for (int parts = 2; parts < 10; parts += 3) {
      char knobs[40];
      snprintf(knobs, sizeof knobs, "split_k=%d", parts);
      cg_check(rows_text, dims[i], "", knobs, 0);
    }
}

/* As online softmax: a maximum and a sum that is scaled by it, merged as the kernel says. With
 * powers of 2, of whole numbers, all is exact. Rows of -inf alone: no part has anything. */
static const char softmax_text[] =
    "kiln-ir 1 tile\nkernel k {\n  arg X: in f32 [M, N]\n  arg Y: out f32 [M, 2]\n  dims M, N\n"
    "  grid cdiv(M, 4)\n"
    "  body(%x: view f32(?,?), %y: view f32(?,2), %m: index, %n: index, %i: index) {\n"
    "    %0 = const 0 : index\n    %1 = const 1 : index\n    %4 = const 4 : index\n"
    "    %8 = const 8 : index\n    %at = mul %i, %4 : index\n    %lo = const -64.0 : f32\n"
    "    %low = splat %lo : f32(4,1)\n    %z = const 0.0 : f32\n    %zero = splat %z : f32(4,1)\n"
    "    %mx, %l, %same = for %k: index = %0, %n, %8 carry(%m0: f32(4,1) = %low, %l0: f32(4,1) = "
    "%zero, %u: f32(4,1) = %low) : f32(4,1), f32(4,1), f32(4,1) {\n"
    "      %v = load %x, %at, %k {pad = -inf} : f32(4,8)\n"
    "      %top = reduce_max %v {axis = 1} : f32(4,1)\n      %m1 = max %m0, %top : f32(4,1)\n"
    "      %g = broadcast %m1 : f32(4,8)\n      %d = sub %v, %g : f32(4,8)\n"
    "      %p = exp2 %d : f32(4,8)\n      %sum = reduce_sum %p {axis = 1} : f32(4,1)\n"
    "      %e = sub %m0, %m1 : f32(4,1)\n      %r = exp2 %e : f32(4,1)\n"
    "      %s = mul %l0, %r : f32(4,1)\n      %l1 = add %s, %sum : f32(4,1)\n"
    "      yield %m1, %l1, %u\n    }\n"
    "    %mm, %ll, %uu = merge %mx, %l, %same : f32(4,1), f32(4,1), f32(4,1) (%pm: f32(4,1), "
    "%pl: f32(4,1), %pu: f32(4,1), %qm: f32(4,1), %ql: f32(4,1), %qu: f32(4,1)) {\n"
    "      %o = max %pm, %qm : f32(4,1)\n      %f = sub %pm, %o : f32(4,1)\n"
    "      %h = sub %qm, %o : f32(4,1)\n      %a = exp2 %f : f32(4,1)\n"
    "      %b = exp2 %h : f32(4,1)\n      %c = mul %pl, %a : f32(4,1)\n"
    "      %w = mul %ql, %b : f32(4,1)\n      %t = add %c, %w : f32(4,1)\n"
    "      yield %o, %t, %pu\n    }\n"
    "    store %y, %at, %0, %mm\n    %j = add %ll, %uu : f32(4,1)\n    store %y, %at, %1, %j\n"
    "    return\n  }\n}\n";

static void by_a_merge_function(void **state) {
  (void)state;
  static const char *const dims[] = {"M=4,N=100", "M=9,N=24", "M=3,N=5", "M=2,N=0", "M=5,N=64"};
  for (unsigned i = 0; i < 5; i++)
    for (int parts = 2; parts < 8; parts += 2) {
      struct cg_test t;
      char knobs[40];
      snprintf(knobs, sizeof knobs, "split_k=%d", parts);
      cg_test_begin(&t, softmax_text);
      cg_test_args(&t, dims[i], "", -3, 4);
      if (!cg_test_lower(&t, "sm_90a", knobs))
        fail_msg("%s", cg_test_messages(&t));
      cg_test_compare(&t, 1e-6);
      cg_test_compare_algebra(&t, 5);
      cg_test_end(&t);
    }
}

/* Fractions, whose sums depend on their order: the same bits in every mode, that is, whoever of the
 * programs comes last; and in the algebraic domain the interpreter's. */
static void the_same_bits_each_time(void **state) {
  (void)state;
  struct help_arena h;
  struct cg_test t;
  help_arena_init(&h);
  cg_test_begin(&t, gemm(&h, (struct cg_gemm){.t = DT_F32, .bm = 16, .bn = 16, .bk = 16}));
  cg_test_args(&t, "M=20,N=16,K=400", "", -3, 4);
  assert_true(cg_test_lower(&t, "sm_90a", "split_k=5"));
  uint64_t x = 7;
  for (uint32_t k = 0; k < 2; k++)
    for (int64_t i = 0; i < (int64_t)(t.alloc[k] / 4); i++) {
      x = x * 6364136223846793005u + 1442695040888963407u;
      num_store(DT_F32, t.base[k], i, (double)(int32_t)(x >> 33) * 0x1p-27);
    }
  void *first = NULL;
  for (int run = 0; run < 2 * EMU_MODES; run++) {
    memset(t.base[2], 0xee, t.alloc[2]);
    struct cg_emulation e = cg_test_emulate(&t, (enum emu_mode)(run % EMU_MODES), (uint64_t)run);
    if (*e.error)
      fail_msg("%s", e.error);
    if (!first)
      first = arena_copy(&h.arena, t.base[2], t.alloc[2]);
    assert_memory_equal(first, t.base[2], t.alloc[2]);
  }
  cg_test_compare_algebra(&t, 5);
  cg_test_end(&t);
  arena_free(&h.arena);
}

/* ---- the launch ---- */

static void recipe(void **state) {
  (void)state;
  struct help_arena h;
  struct cg_test t;
  help_arena_init(&h);
  cg_test_begin(&t, gemm(&h, (struct cg_gemm){.t = DT_BF16, .bm = 16, .bn = 32, .bk = 32}));
  cg_test_args(&t, "M=16,N=32,K=64", "", 0, 1);
  assert_true(cg_test_lower(&t, "sm_90a", "split_k=4"));
  struct strbuf b = {.arena = &t.mem.arena};
  recipe_print(t.machine->recipe, &b);
  static const char *const want[] = {
      "workspace cdiv(32 * (cdiv(M, 16) * cdiv(N, 32) * 4 * 16 * 32), 2048) * 256 + "
      "cdiv(cdiv(N, 32) * (cdiv(M, 16) * 32), 2048) * 256\n",
      /* the counters, behind the parts */
      "memset cdiv(32 * (cdiv(M, 16) * cdiv(N, 32) * 4 * 16 * 32), 2048) * 256, "
      "cdiv(cdiv(N, 32) * (cdiv(M, 16) * 32), 2048) * 256\n",
      "grid cdiv(M, 16) * cdiv(N, 32) * 4, 1, 1",
  };
  for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
    if (!strstr(sb_str(&b), want[i]))
      fail_msg("no `%s` in\n%s", want[i], sb_str(&b));
  struct strbuf c = {.arena = &t.mem.arena};
  cg_emit(t.machine, (struct cg_emit_options){0}, &c);
  assert_non_null(strstr(sb_str(&c), "atom.acq_rel.gpu.add.s32"));
  struct emu_options opt = {.skeleton = true};
  if (!emu_run(t.machine, t.arg, t.tile->args.n, &opt, NULL, &t.diags, &mem_libc))
    fail_msg("%s", cg_test_messages(&t));
  cg_test_end(&t);
  arena_free(&h.arena);
}

/* A grid of three axes gets a fourth. */
static void four_axes(void **state) {
  (void)state;
  static const char text[] =
      "kiln-ir 1 tile\nkernel k {\n  arg X: in f32 [P, Q, R, N]\n  arg Y: out f32 [P, Q, R]\n"
      "  dims P, Q, R, N\n  grid P, Q, R\n"
      "  body(%x: view f32(?,?,?,?), %y: view f32(?,?,?), %p: index, %q: index, %r: index, "
      "%n: index, %i: index, %j: index, %k: index) {\n"
      "    %0 = const 0 : index\n    %4 = const 4 : index\n    %z = const 0.0 : f32\n"
      "    %zero = splat %z : f32(1,1,1,4)\n"
      "    %s = for %l: index = %0, %n, %4 carry(%a: f32(1,1,1,4) = %zero) : f32(1,1,1,4) {\n"
      "      %v = load %x, %i, %j, %k, %l : f32(1,1,1,4)\n      %b = add %a, %v : f32(1,1,1,4)\n"
      "      yield %b\n    }\n"
      "    %t = reduce_sum %s {axis = 3} : f32(1,1,1,1)\n    %u = reshape %t : f32(1,1,1)\n"
      "    store %y, %i, %j, %k, %u\n    return\n  }\n}\n";
  cg_check(text, "P=2,Q=3,R=4,N=21", "", "split_k=2", 0);
  cg_check(text, "P=1,Q=3,R=2,N=50", "", "split_k=7", 0);
}

/* ---- what is refused ---- */

static void refuse(const char *text, const char *want) {
  struct cg_test t;
  cg_test_begin(&t, text);
  cg_test_args(&t, "M=16,N=16", "", 0, 1);
  assert_false(cg_test_lower(&t, "sm_90a", "split_k=4"));
  if (!strstr(cg_test_messages(&t), want))
    fail_msg("no `%s` in\n%s", want, cg_test_messages(&t));
  cg_test_end(&t);
}

#define HEAD                                                                                       \
  "kiln-ir 1 tile\nkernel k {\n  arg X: in f32 [M, N]\n  arg Y: inout f32 [M, N]\n  dims M, N\n"   \
  "  grid cdiv(M, 8)\n"                                                                            \
  "  body(%x: view f32(?,?), %y: view f32(?,?), %m: index, %n: index, %i: index) {\n"              \
  "    %0 = const 0 : index\n    %8 = const 8 : index\n    %z = const 1.0 : f32\n"                 \
  "    %one = splat %z : f32(8,8)\n    %at = mul %i, %8 : index\n"
#define LOOP(body)                                                                                 \
  "    %s \"product\" = for %k: index = %0, %n, %8 carry(%a: f32(8,8) = %one) : f32(8,8) {\n"      \
  "      %v = load %x, %at, %k : f32(8,8)\n" body "      yield %b\n    }\n"
#define END "    store %y, %at, %0, %s\n    return\n  }\n}\n"

static void refused(void **state) {
  (void)state;
  refuse(HEAD LOOP("      %b = mul %a, %v : f32(8,8)\n") END,
         "schedule `split_k` = 4: `product` is neither a sum nor an extreme over the loop's "
         "iterations, so that its parts cannot be merged; say how with");
  refuse(HEAD LOOP("      %b = add %a, %v : f32(8,8)\n      store %y, %at, %k, %v\n") END,
         "schedule `split_k` = 4: the loop writes");
  refuse(HEAD "    store %y, %at, %8, %one\n" LOOP("      %b = add %a, %v : f32(8,8)\n") END,
         "schedule `split_k` = 4: every part of the loop would do this, which stands before it");
  refuse(HEAD "    %s = load %x, %at, %0 : f32(8,8)\n" END,
         "schedule `split_k` = 4: the kernel has no loop to split");
}

/* ---- the rule ---- */

struct sizes {
  int64_t m, n, k;
};

static bool size_of(void *user, const char *name, int64_t *value) {
  const struct sizes *x = user;
  *value = *name == 'M' ? x->m : *name == 'N' ? x->n : x->k;
  return name[1] == 0 && strchr("MNK", *name);
}

static void rule(void **state) {
  (void)state;
  static const struct {
    struct sizes x;
    int64_t parts;
  } rows[] = {
      {{4096, 4096, 4096}, 1},                         /* a grid larger than the GPU */
      {{64, 4096, 14336}, 2},  {{64, 2112, 14336}, 4}, /* 64, 33 tiles for 132 SMs */
      {{64, 64, 65536}, 16},                           /* as many as there may be */
      {{64, 64, 512}, 1},      {{64, 64, 1024}, 2},    /* 8 iterations, 16 */
      {{64, 64, 0}, 1},        {{0, 64, 65536}, 1},
  };
  struct help_arena h;
  struct cg_test t;
  help_arena_init(&h);
  cg_test_begin(&t, gemm(&h, (struct cg_gemm){.t = DT_BF16, .bm = 64, .bn = 64, .bk = 64}));
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct sizes x = rows[i].x;
    int64_t parts = cg_split_rule(t.tile, size_of, &x, 132, &h.arena);
    if (parts != rows[i].parts)
      fail_msg("row %zu: %lld parts, not %lld", i, (long long)parts, (long long)rows[i].parts);
  }
  assert_int_equal(cg_split_rule(t.tile, size_of, &(struct sizes){64, 64, 65536}, 0, &h.arena), 1);
  cg_test_end(&t);
  cg_test_begin(&t, HEAD LOOP("      %b = mul %a, %v : f32(8,8)\n") END); /* no merging */
  assert_int_equal(cg_split_rule(t.tile, size_of, &(struct sizes){8, 65536, 0}, 132, &h.arena), 1);
  cg_test_end(&t);
  arena_free(&h.arena);
}

/* ---- the emulator ---- */

/* The op that counts a program in. */
static struct ir_op arrival(const struct ir_module *m) {
  for (struct ir_op o = {1}; o.id < m->ops.n; o.id++)
    if (ir_op_at(m, o)->block.id && ir_op_at(m, o)->opcode == IR_GATOMIC)
      return o;
  fail();
  return (struct ir_op){0};
}

/* Is a mutant reported in some mode? */
static bool is_reported(struct cg_test *t) {
  for (int mode = 0; mode < EMU_MODES; mode++)
    if (*cg_test_emulate(t, (enum emu_mode)mode, 3).error)
      return true;
  return false;
}

static void emulator_sees_the_order(void **state) {
  (void)state;
  for (int mutation = 0; mutation < 4; mutation++) {
    struct cg_test t;
    char text[2000];
    snprintf(text, sizeof text, beta_text, "%old", "", "%s"); /* 16 x 16 */
    cg_test_begin(&t, text);
    cg_test_args(&t, "M=16,N=16,K=128", "", -3, 4);
    assert_true(cg_test_lower(&t, "sm_90a", "split_k=4,threads=64"));
    struct ir_module *m = t.machine;
    struct ir_op o = arrival(m), before = ir_op_at(m, o)->prev, load = ir_op_at(m, o)->next;
    while (before.id && ir_op_at(m, before)->opcode != IR_BARRIER)
      before = ir_op_at(m, before)->prev;
    while (load.id && ir_op_at(m, load)->opcode != IR_BARRIER)
      load = ir_op_at(m, load)->next;
    assert_true(before.id && load.id);
    if (mutation == 1) /* what the other threads wrote is not handed on */
      ir_remove(m, before);
    if (mutation == 2) /* the order stops at one thread */
      ir_remove(m, load);
    if (mutation == 3) /* counted, but not ordered */
      ir_op_at(m, o)->n_attrs = 1;
    if (is_reported(&t) != (mutation > 0))
      fail_msg("mutation %d: %s", mutation, cg_test_messages(&t));
    cg_test_end(&t);
  }
}

/* ---- random loops ---- */

struct maker {
  struct strbuf out;
  uint64_t seed;
  int n; /* values so far */
};

static uint32_t draw(struct maker *g, uint32_t n) {
  g->seed = g->seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(g->seed >> 33) % n;
}

#define MOST 5
struct carried {
  bool tile, is_float, outside; /* outside: starts from what was loaded */
  int kind;                     /* sum, difference, max, min, unchanged */
  const char *type;
};

static const char *type_of(const struct carried *c) {
  return c->tile ? (c->is_float ? "f32(4,8)" : "s32(4,8)") : (c->is_float ? "f32" : "s32");
}

/* A value of c's type that depends on the iteration, or not: %v or %w. */
static void put_term(struct maker *g, const struct carried *c, const char *indent) {
  struct strbuf *o = &g->out;
  const char *x = c->is_float ? "%x" : "%w";
  if (c->tile)
    sb_printf(o, "%s%%t%d = load %s, %%at, %%k {pad = %s} : %s\n", indent, g->n, x,
              c->is_float ? "1.0" : "1", type_of(c));
  else
    sb_printf(o, "%s%%t%d = gather %s, %%at, %%k : %s\n", indent, g->n, x, type_of(c));
}

/* How iteration %k goes on from %a: the op, perhaps under an if, or several times in a loop. */
static void put_step(struct maker *g, int i, const struct carried *c) {
  static const char *const ops[] = {"add", "sub", "max", "min"};
  struct strbuf *o = &g->out;
  const char *t = type_of(c);
  int n = g->n;
  put_term(g, c, "      ");
  switch (draw(g, 3)) {
  case 0: sb_printf(o, "      %%b%d = %s %%a%d, %%t%d : %s\n", i, ops[c->kind], i, n, t); break;
  case 1:
    sb_printf(o,
              "      %%c%d = lt %%k, %%9 : bool\n      %%b%d = if %%c%d : %s {\n"
              "        %%d%d = %s %%a%d, %%t%d : %s\n        yield %%d%d\n      } else {\n"
              "        %%e%d = %s %%a%d, %%t%d : %s\n        %%f%d = %s %%e%d, %%t%d : %s\n"
              "        yield %%f%d\n      }\n",
              n, i, n, t, n, ops[c->kind], i, n, t, n, n, ops[c->kind], i, n, t, n, ops[c->kind], n,
              n, t, n);
    break;
  default:
    sb_printf(o,
              "      %%b%d = for %%h%d: index = %%0, %%2, %%1 carry(%%d%d: %s = %%a%d) : %s {\n"
              "        %%e%d = %s %%d%d, %%t%d : %s\n        yield %%e%d\n      }\n",
              i, n, n, t, i, t, n, ops[c->kind], n, n, t, n);
  }
  g->n++;
}

static const char *random_loop(struct maker *g) {
  struct carried c[MOST];
  struct strbuf *o = &g->out;
  int n = 1 + (int)draw(g, MOST), lo = (int)draw(g, 3), step = 1 + (int)draw(g, 9);
  sb_puts(o,
          "kiln-ir 1 tile\nkernel k {\n  arg X: in f32 [M, N]\n  arg W: in s32 [M, N]\n"
          "  arg F: out f32 [20, M, 8]\n  arg S: out s32 [20, M, 8]\n  dims M, N\n"
          "  grid cdiv(M, 4)\n  body(%x: view f32(?,?), %w: view s32(?,?), %f: view f32(20,?,8), "
          "%s: view s32(20,?,8), %m: index, %n: index, %i: index) {\n");
  sb_printf(o,
            "    %%0 = const 0 : index\n    %%1 = const 1 : index\n    %%2 = const 2 : index\n"
            "    %%4 = const 4 : index\n    %%9 = const 9 : index\n    %%lo = const %d : index\n"
            "    %%step = const %d : index\n    %%at = mul %%i, %%4 : index\n"
            "    %%zf = const 0.0 : f32\n    %%zs = const 0 : s32\n"
            "    %%tf = splat %%zf : f32(4,8)\n    %%ts = splat %%zs : s32(4,8)\n",
            lo, step);
  for (int i = 0; i < n; i++) {
    c[i] = (struct carried){.tile = draw(g, 3), .is_float = draw(g, 2), .outside = draw(g, 2)};
    c[i].kind = (int)draw(g, 5);
    if (c[i].outside)
      sb_printf(o,
                c[i].tile ? "    %%o%d = load %s, %%at, %%0 : %s\n"
                          : "    %%o%d = gather %s, %%at, %%0 : %s\n",
                i, c[i].is_float ? "%x" : "%w", type_of(&c[i]));
  }
  sb_puts(o, "    ");
  for (int i = 0; i < n; i++)
    sb_printf(o, i ? ", %%r%d" : "%%r%d", i);
  sb_puts(o, " = for %k: index = %lo, %n, %step carry(");
  for (int i = 0; i < n; i++) {
    sb_printf(o, i ? ", %%a%d: %s = " : "%%a%d: %s = ", i, type_of(&c[i]));
    if (c[i].outside)
      sb_printf(o, "%%o%d", i);
    else
      sb_puts(o, c[i].tile ? (c[i].is_float ? "%tf" : "%ts") : (c[i].is_float ? "%zf" : "%zs"));
  }
  sb_puts(o, ") : ");
  for (int i = 0; i < n; i++)
    sb_printf(o, i ? ", %s" : "%s", type_of(&c[i]));
  sb_puts(o, " {\n");
  for (int i = 0; i < n; i++)
    if (c[i].kind < 4)
      put_step(g, i, &c[i]);
  sb_puts(o, "      yield ");
  for (int i = 0; i < n; i++)
    sb_printf(o, i ? ", %%%s%d" : "%%%s%d", c[i].kind < 4 ? "b" : "a", i);
  sb_puts(o, "\n    }\n");
  for (int i = 0; i < n; i++) {
    const char *to = c[i].is_float ? "f" : "s";
    if (draw(g, 6) == 0)
      continue; /* nobody reads it */
    sb_printf(o,
              "    %%p%d = const %d : index\n    %%v%d = view_at %%%s, %%p%d {axis = 0} : view "
              "%s32(?,8)\n",
              i, i, i, to, i, to);
    if (c[i].tile)
      sb_printf(o, "    store %%v%d, %%at, %%0, %%r%d\n", i, i);
    else
      sb_printf(o, "    scatter %%v%d, %%at, %%0, %%r%d\n", i, i);
  }
  sb_puts(o, "    return\n  }\n}\n");
  return sb_str(o);
}

static void loops_keep_their_meaning(void **state) {
  (void)state;
  unsigned ran = 0;
  for (uint64_t seed = 1; seed <= 400; seed++) {
    struct help_arena h;
    struct cg_test t;
    char knobs[40];
    help_arena_init(&h);
    struct maker g = {.out = {.arena = &h.arena}, .seed = seed * 977};
    const char *text = random_loop(&g);
    cg_test_begin(&t, text);
    cg_test_args(&t, seed % 2 ? "M=7,N=37" : seed % 4 ? "M=4,N=5" : "M=8,N=64", "", -3, 4);
    snprintf(knobs, sizeof knobs, "split_k=%d", (int)(2 + seed % 5));
    if (cg_test_lower(&t, "sm_90a", knobs)) {
      t.what = seed;
      cg_test_compare(&t, 0);
      ran++;
    } else if (!strstr(cg_test_messages(&t), "no loop to split")) { /* dead code */
      fail_msg("program %llu: %s\n%s", (unsigned long long)seed, cg_test_messages(&t), text);
    }
    cg_test_end(&t);
    arena_free(&h.arena);
  }
  print_message("%u loops were split\n", ran);
  assert_true(ran > 300);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products),
      cmocka_unit_test(reads_what_it_writes),
      cmocka_unit_test(row_reductions),
      cmocka_unit_test(by_a_merge_function),
      cmocka_unit_test(the_same_bits_each_time),
      cmocka_unit_test(recipe),
      cmocka_unit_test(four_axes),
      cmocka_unit_test(refused),
      cmocka_unit_test(rule),
      cmocka_unit_test(emulator_sees_the_order),
      cmocka_unit_test(loops_keep_their_meaning),
  };
  return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
