/* Dots of every dtype that the matrix unit takes, in every major-ness, as loaded and computed:
 * lowered and run on the host against the interpreter, bit for bit on whole numbers; and compiled
 * without a register spilled. */
#include "help_nvrtc.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static struct nvrtc nvrtc;

struct dot {
  const char *a, *b, *acc, *prec;
  int bm, bn, bk;
  const char *make_a, *make_b; /* an op that takes the tile as loaded to the operand, or NULL */
  const char *inst;            /* what the machine module must hold */
};

/* C = A . B^T over tiles of bm x bn x bk. */
static const char *dot_text(struct strbuf *b, const struct dot *d) {
  sb_printf(b, "kiln-ir 1 tile\nkernel dot {\n  arg A: in %s [M, K]\n  arg B: in %s [N, K]\n", d->a,
            d->b);
  sb_printf(b, "  arg C: out %s [M, N]\n  dims M, K, N\n  grid cdiv(M, %d), cdiv(N, %d)\n", d->acc,
            d->bm, d->bn);
  sb_printf(b, "  body(%%A: view %s(?,?), %%B: view %s(?,?), %%C: view %s(?,?), ", d->a, d->b,
            d->acc);
  sb_puts(b, "%M: index, %K: index, %N: index, %i: index, %j: index) {\n");
  sb_printf(b, "    %%bm = const %d : index\n    %%bn = const %d : index\n", d->bm, d->bn);
  sb_puts(b, "    %m = mul %i, %bm : index\n    %n = mul %j, %bn : index\n");
  sb_printf(b,
            "    %%0 = const 0 : index\n    %%bk = const %d : index\n    %%zero = const %s : %s\n",
            d->bk, d->acc[0] == 's' ? "0" : "0.0", d->acc);
  char c[40];
  snprintf(c, sizeof c, "%s(%d,%d)", d->acc, d->bm, d->bn);
  sb_printf(b, "    %%start = splat %%zero : %s\n", c);
  sb_printf(b, "    %%sum = for %%k: index = %%0, %%K, %%bk carry(%%acc: %s = %%start) : %s {\n", c,
            c);
  sb_printf(b, "      %%a = load %%A, %%m, %%k : %s(%d,%d)\n", d->a, d->bm, d->bk);
  sb_printf(b, "      %%b = load %%B, %%n, %%k : %s(%d,%d)\n", d->b, d->bn, d->bk);
  if (d->make_a)
    sb_printf(b, "      %%x = %s %%a : %s(%d,%d)\n", d->make_a, d->a, d->bm, d->bk);
  if (d->make_b)
    sb_printf(b, "      %%y = %s %%b : %s(%d,%d)\n", d->make_b, d->b, d->bn, d->bk);
  sb_printf(b, "      %%t = transpose %s {perm = [1,0]} : %s(%d,%d)\n", d->make_b ? "%y" : "%b",
            d->b, d->bk, d->bn);
  sb_printf(b, "      %%r = dot %s, %%t, %%acc%s%s%s : %s\n      yield %%r\n    }\n",
            d->make_a ? "%x" : "%a", d->prec ? " {prec = " : "", d->prec ? d->prec : "",
            d->prec ? "}" : "", c);
  sb_puts(b, "    store %C, %m, %n, %sum\n    return\n  }\n}\n");
  return sb_str(b);
}

static bool has_op(const struct ir_module *m, enum ir_opcode o, const char *shape) {
  for (uint32_t i = 1; i < m->ops.n; i++) {
    const struct ir_opnode *n = &m->ops.at[i];
    const struct ir_attr *a = ir_get_attr(m, (struct ir_op){i}, IR_ATTR_shape);
    if (n->block.id && n->opcode == o && (!shape || (a && str_eq(ir_sym(m, a->s), shape))))
      return true;
  }
  return false;
}

static void check(const struct dot *d, const char *dims, const char *layout, const char *target,
                  const char *knobs) {
  struct cg_test t;
  struct help_arena h;
  help_arena_init(&h);
  struct strbuf b = {.arena = &h.arena};
  cg_test_begin(&t, dot_text(&b, d));
  cg_test_args(&t, dims, layout, -3, 4);
  if (!cg_test_lower(&t, target, knobs))
    fail_msg("%s\nrefused: %s", sb_str(&b), cg_test_messages(&t));
  if (d->inst && !has_op(t.machine, IR_MMA, d->inst))
    fail_msg("%s\n%s: no mma of %s", sb_str(&b), target, d->inst);
  if (!d->inst)
    assert_false(has_op(t.machine, IR_MMA, NULL));
  cg_test_compare(&t, 0);
  cg_test_end(&t);
  arena_free(&h.arena);
}

static const char *const majors[] = {"", "A=col", "B=col", "A=col,B=col"};

static const struct dot kinds[] = {
    {"s8", "s8", "s32", NULL, 0, 0, 0, NULL, NULL, "m16n8k32"},
    {"u8", "u8", "s32", NULL, 0, 0, 0, NULL, NULL, "m16n8k32"},
    {"e4m3", "e4m3", "f32", NULL, 0, 0, 0, NULL, NULL, "m16n8k32"},
    {"e5m2", "e5m2", "f32", NULL, 0, 0, 0, NULL, NULL, "m16n8k32"},
    {"e4m3", "e5m2", "f32", NULL, 0, 0, 0, NULL, NULL, "m16n8k32"},
    {"e5m2", "e4m3", "f32", NULL, 0, 0, 0, NULL, NULL, "m16n8k32"},
    {"f32", "f32", "f32", "tf32", 0, 0, 0, NULL, NULL, "m16n8k8"},
    {"f32", "f32", "f32", "tf32x3", 0, 0, 0, NULL, NULL, "m16n8k8"},
    {"f64", "f64", "f64", NULL, 0, 0, 0, NULL, NULL, "m8n8k4"},
    {"f16", "f16", "f16", NULL, 0, 0, 0, NULL, NULL, "m16n8k16"},
    {"f32", "f32", "f32", "ieee", 0, 0, 0, NULL, NULL, NULL},
    {"e4m3", "e4m3", "f16", NULL, 0, 0, 0, NULL, NULL, "m16n8k32"},
    {"s4", "s4", "s32", NULL, 0, 0, 0, NULL, NULL, "m16n8k32"},
    {"u4", "u4", "s32", NULL, 0, 0, 0, NULL, NULL, "m16n8k32"},
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

static void every_dtype_and_majorness(void **state) {
  (void)state;
  for (unsigned i = 0; i < N_KINDS; i++)
    for (unsigned k = 0; k < 4; k++) {
      struct dot d = kinds[i];
      d.bm = d.bn = 64;
      d.bk = 64;
      check(&d, "M=64,N=64,K=96", majors[k], "sm_90a", "");
      check(&d, "M=65,N=63,K=33", majors[k], "sm_90a", "stages=2");
      d.bk = 32;
      check(&d, "M=72,N=40,K=70", majors[k], "sm_90a", "warps_m=2,warps_n=2,stages=3");
    }
}

/* Tiles and cuts that leave odd numbers of blocks; alignments of all sorts. */
static void odd_tiles(void **state) {
  (void)state;
  static const int bms[] = {16, 48, 24, 8, 80}, bns[] = {8, 24, 56, 20, 40},
                   bks[] = {16, 24, 40, 8, 96};
  static const char *const layouts[] = {"A=off1", "B=pad2,A=off4", "A=col,B=off3", "C=pad1,B=col",
                                        "A=pad16,B=pad4"};
  static const char *const knobs[] = {"", "warps_m=2,warps_n=2", "warps_m=1,warps_n=3", "stages=1",
                                      "prefetch=0,stages=2"};
  for (unsigned i = 0; i < N_KINDS; i++)
    for (unsigned j = 0; j < 5; j++) {
      struct dot d = kinds[i];
      d.bm = bms[j];
      d.bn = bns[(i + j) % 5];
      d.bk = bks[(2 * i + j) % 5];
      check(&d, "M=25,N=33,K=40", majors[(i + j) % 4], "sm_90a", knobs[j]);
      check(&d, "M=50,N=21,K=61", layouts[j], "sm_90a", knobs[(i + j) % 5]);
    }
}

static void computed_operands(void **state) {
  (void)state;
  for (unsigned i = 0; i < N_KINDS; i++)
    for (unsigned k = 1; k < 4; k++) {
      struct dot d = kinds[i];
      d.bm = 32;
      d.bn = 48;
      d.bk = 32;
      d.make_a = k & 1 ? "abs" : NULL;
      d.make_b = k & 2 ? (d.a[0] == 'u' ? "abs" : "neg") : NULL;
      check(&d, "M=40,N=50,K=64", majors[(i + k) % 4], "sm_90a", k == 3 ? "threads=64" : "");
      /* Read where they are computed: with strides that forbid wide accesses, and with others. */
      check(&d, "M=40,N=50,K=64", "A=pad1,B=off1", "sm_90a", "threads=32");
      check(&d, "M=40,N=50,K=61", majors[(i + k) % 4], "sm_90a", "spare=1");
      /* Zeros beyond the tile's k, by more threads than there are elements. */
      d.bm = 4;
      d.bk = 8;
      check(&d, "M=4,N=48,K=8", "", "sm_90a", "threads=256");
    }
}

/* 8-bit floats are multiplied as f16, which holds them all, where there is no instruction for them,
 * and where there is one whose sums have fewer bits than the kernel allows. */
static void eight_bit_floats(void **state) {
  (void)state;
  static const char *const own[] = {"sm_89", "sm_120", "sm_121"};
  for (unsigned i = 0; i < N_KINDS; i++)
    for (unsigned k = 0; k < 6 && kinds[i].a[0] == 'e'; k++) {
      struct dot d = kinds[i];
      static const char *const precs[] = {NULL, "promoted", "fast"};
      d.prec = precs[k % 3];
      d.inst = d.prec ? "m16n8k32" : "m16n8k16";
      d.bm = 64;
      d.bn = k < 3 ? 32 : 48;
      d.bk = k < 3 ? 32 : 96;
      check(&d, "M=72,N=40,K=70", majors[k % 4], own[k % 3], "");
      check(&d, "M=72,N=40,K=192", "", own[k / 2], k < 3 ? "prefetch=1,blocks=1" : "stages=1");
    }
  for (unsigned i = 0; i < N_KINDS; i++)
    for (unsigned k = 0; k < 4 && kinds[i].a[0] == 'e'; k++) {
      struct dot d = kinds[i];
      d.inst = "m16n8k16";
      d.bm = 64;
      d.bn = d.bk = 32;
      check(&d, "M=72,N=40,K=70", majors[k], k % 2 ? "sm_80" : "sm_86", "");
    }
}

static void nothing_spills(void **state) {
  (void)state;
  static const char *const targets[] = {"sm_80", "sm_89", "sm_90a", "sm_120"};
  static const char *const dims[] = {"M=256,N=256,K=256", "M=255,N=131,K=77"};
  for (unsigned i = 0; i < N_KINDS; i++)
    for (unsigned k = 0; k < 8; k++) {
      struct dot d = kinds[i];
      struct help_arena h;
      help_arena_init(&h);
      struct strbuf b = {.arena = &h.arena};
      bool wide = str_eq(d.a, "f64") || (d.prec && str_eq(d.prec, "tf32x3"));
      d.bm = 128;
      d.bn = wide || k % 4 == 1 || k % 4 == 3 ? 64 : 128;
      d.bk = str_eq(d.a, "f64") ? 16 : strchr(d.a, '8') || d.a[0] == 'e' ? 64 : 32;
      uint32_t regs = nvrtc_check(&nvrtc, dot_text(&b, &d), dims[k / 4], majors[(i + k) % 4],
                                  targets[k % 4], "");
      print_message("%s . %s into %s%s%s, %s, %s, %s: %u registers\n", d.a, d.b, d.acc,
                    d.prec ? " " : "", d.prec ? d.prec : "", dims[k / 4], majors[(i + k) % 4],
                    targets[k % 4], regs);
      arena_free(&h.arena);
    }
  if (nvrtc.missing) {
    print_message("SKIP: %s\n", nvrtc.missing);
    skip();
  }
}

int main(void) {
  nvrtc_open(&nvrtc);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_dtype_and_majorness),
      cmocka_unit_test(odd_tiles),
      cmocka_unit_test(computed_operands),
      cmocka_unit_test(eight_bit_floats),
      cmocka_unit_test(nothing_spills),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  nvrtc_close(&nvrtc);
  return failed;
}
