/* What changes along an axis or in its bits: argmax, masks, running sums, bitcasts, random numbers,
 * rounding. Lowered and run on the host against the interpreter, and compiled for each generation
 * of targets. */
#include "help_nvrtc.h"

#include <cmocka.h>
#include <stdlib.h>

static struct nvrtc nvrtc;
static const char *const targets[] = {"sm_80", "sm_89", "sm_90a", "sm_120"};

/* Y = op over an axis of an X of M x N, tiles of bm x bn with all of the axis in one. `before`: ops
 * that take %t, the tile, to %u, what the op works on; `to`: dtype of its result, cast to Y's. */
static const char *fold_text(struct strbuf *b, const char *op, const char *x, const char *y,
                             int axis, int m, int n, const char *before, const char *to) {
  bool keeps = str_starts(op, "scan");
  int om = axis == 0 && !keeps ? 1 : m, on = axis == 1 && !keeps ? 1 : n;
  sb_printf(b, "kiln-ir 1 tile\nkernel fold {\n  arg X: in %s [M, N]\n  arg Y: out %s [P, Q]\n", x,
            y);
  sb_printf(b, "  dims M, N, P, Q\n  grid 1\n  body(%%X: view %s(?,?), %%Y: view %s(?,?), ", x, y);
  sb_puts(b,
          "%M: index, %N: index, %P: index, %Q: index, %i: index) {\n    %z = const 0 : index\n");
  sb_printf(b, "    %%t = load %%X, %%z, %%z : %s(%d,%d)\n%s", x, m, n, before);
  sb_printf(b, "    %%r = %s %s {axis = %d} : %s(%d,%d)\n", op, *before ? "%u" : "%t", axis, to, om,
            on);
  if (str_eq(to, y))
    sb_puts(b, "    store %Y, %z, %z, %r\n    return\n  }\n}\n");
  else
    sb_printf(b,
              "    %%c = cast %%r : %s(%d,%d)\n    store %%Y, %%z, %%z, %%c\n    return\n  }\n}\n",
              y, om, on);
  return sb_str(b);
}

struct shape {
  int m, n;
  const char *layout, *knobs;
};
static const struct shape shapes[] = {
    {1, 1, "", ""},
    {3, 5, "", ""},
    {16, 64, "", ""},
    {4, 1000, "", "threads=128"},
    {100, 7, "X=col", ""},
    {33, 65, "Y=pad3", "threads=96"},
    {2, 512, "X=off1", ""},
    {512, 2, "", "threads=256"},
    {64, 64, "X=col", ""},
    {1, 4096, "", ""},
    {8, 12, "", "threads=32"},
};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

static void check_fold(const char *op, const char *x, const char *y, const char *before,
                       const char *to, unsigned from) {
  for (unsigned i = from; i < N_SHAPES; i++)
    for (int axis = 0; axis < 2; axis++) {
      const struct shape *s = &shapes[i];
      struct help_arena h;
      char dims[80], mask[1000];
      help_arena_init(&h);
      struct strbuf b = {.arena = &h.arena};
      bool keeps = str_starts(op, "scan");
      snprintf(dims, sizeof dims, "M=%d,N=%d,P=%d,Q=%d", s->m, s->n, axis == 0 && !keeps ? 1 : s->m,
               axis == 1 && !keeps ? 1 : s->n);
      /* "D" stands for the tile's dims. */
      size_t n = 0;
      for (const char *p = before; *p && n + 30 < sizeof mask; p++)
        n += (size_t)snprintf(mask + n, sizeof mask - n, *p == 'D' ? "(%d,%d)" : "%c",
                              *p == 'D' ? s->m : *p, s->n);
      mask[n] = 0;
      const char *text = fold_text(&b, op, x, y, axis, s->m, s->n, mask, to);
      cg_check(text, dims, s->layout, s->knobs, 0);
      arena_free(&h.arena);
    }
}

static void places_of_extremes(void **state) {
  (void)state;
  static const char *const types[] = {"f32", "bf16", "f16", "f64",  "s8",
                                      "u8",  "s32",  "s64", "e4m3", "s4"};
  for (unsigned i = 0; i < 10; i++) {
    check_fold("argmax", types[i], "s32", "", "index", 0);
    check_fold("argmin", types[i], "s64", "", "index", i < 2 ? 0 : 6);
  }
}

/* 0 / 0 where x = 4, -inf where x = -3. */
static void places_of_nan(void **state) {
  (void)state;
  static const char before[] = "    %n = const nan : f32\n    %nt = splat %n : f32D\n"
                               "    %m = const 4.0 : f32\n    %mt = splat %m : f32D\n"
                               "    %k = eq %t, %mt : boolD\n"
                               "    %v = const -inf : f32\n    %vt = splat %v : f32D\n"
                               "    %w = const -3.0 : f32\n    %wt = splat %w : f32D\n"
                               "    %j = eq %t, %wt : boolD\n"
                               "    %s = select %j, %vt, %t : f32D\n"
                               "    %u = select %k, %nt, %s : f32D\n";
  check_fold("argmax", "f32", "s32", before, "index", 0);
  check_fold("argmin", "f32", "s32", before, "index", 0);
}

static void masks(void **state) {
  (void)state;
  static const char before[] = "    %m = const 4.0 : f32\n    %mt = splat %m : f32D\n"
                               "    %u = eq %t, %mt : boolD\n";
  static const char not4[] = "    %m = const 4.0 : f32\n    %mt = splat %m : f32D\n"
                             "    %u = ne %t, %mt : boolD\n";
  check_fold("reduce_any", "f32", "bool", before, "bool", 0);
  check_fold("reduce_all", "f32", "s8", not4, "bool", 0);
}

static void running_sums(void **state) {
  (void)state;
  static const char *const types[] = {"f32", "bf16", "f64", "s8", "u8",
                                      "s32", "s64",  "s4",  "u4", "e5m2"};
  for (unsigned i = 0; i < 10; i++)
    check_fold("scan_sum", types[i], types[i], "", types[i], i < 2 ? 0 : 3);
}

/* From X of a to Y of b, `n` elements of the wider type a row. */
static void check_bitcast(const char *a, int wa, const char *b, int wb, const char *layout) {
  static const int sizes[][2] = {{1, 1}, {4, 8}, {3, 5}, {16, 64}, {70, 3}};
  for (unsigned i = 0; i < 5; i++) {
    struct help_arena h;
    char dims[80];
    help_arena_init(&h);
    struct strbuf t = {.arena = &h.arena};
    int wide = wa > wb ? wa : wb, m = sizes[i][0], na = sizes[i][1] * wide / wa,
        nb = sizes[i][1] * wide / wb;
    sb_printf(&t, "kiln-ir 1 tile\nkernel c {\n  arg X: in %s [M, N]\n  arg Y: out %s [M, Q]\n", a,
              b);
    sb_printf(&t, "  dims M, N, Q\n  grid 1\n  body(%%X: view %s(?,?), %%Y: view %s(?,?), ", a, b);
    sb_puts(&t, "%M: index, %N: index, %Q: index, %i: index) {\n    %z = const 0 : index\n");
    sb_printf(&t, "    %%t = load %%X, %%z, %%z : %s(%d,%d)\n", a, m, na);
    sb_printf(&t, "    %%u = bitcast %%t : %s(%d,%d)\n", b, m, nb);
    sb_puts(&t, "    store %Y, %z, %z, %u\n    return\n  }\n}\n");
    snprintf(dims, sizeof dims, "M=%d,N=%d,Q=%d", m, na, nb);
    cg_check(sb_str(&t), dims, layout, i % 2 ? "" : "threads=64", 0);
    if (i == 3)
      nvrtc_check(&nvrtc, sb_str(&t), dims, layout, targets[(unsigned)(wa + wb) / 8 % 4], "");
    arena_free(&h.arena);
  }
}

static void bits_of_every_pair(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int bits;
  } types[] = {{"s8", 8},   {"u8", 8},   {"f16", 16}, {"bf16", 16}, {"s32", 32},
               {"f32", 32}, {"s64", 64}, {"f64", 64}, {"s4", 4},    {"u4", 4}};
  static const char *const layouts[] = {"", "X=col", "Y=col", "X=off1"};
  for (unsigned i = 0; i < 10; i++)
    for (unsigned k = 0; k < 10; k++)
      if (i != k)
        check_bitcast(types[i].name, types[i].bits, types[k].name, types[k].bits,
                      layouts[(i + k) % 4]);
}

static const char random_text[] =
    "kiln-ir 1 tile\nkernel r {\n  arg seed: scalar s64\n  arg Y: out s32 [M, N]\n  dims M, N\n"
    "  grid 1\n  body(%s: s64, %Y: view s32(?,?), %M: index, %N: index, %i: index) {\n"
    "    %z = const 0 : index\n    %c = iota {axis = 1} : index(1,300)\n"
    "    %big = const 4294967290 : index\n    %bt = splat %big : index(1,300)\n"
    "    %k = add %c, %bt : index(1,300)\n"
    "    %r = random %s, %k {word = 2} : s32(1,300)\n"
    "    %q = random %s, %k {word = 1} : s32(1,300)\n"
    "    %x = xor %r, %q : s32(1,300)\n"
    "    %one = random %s, %big {word = 3} : s32\n    %ot = splat %one : s32(1,300)\n"
    "    %y = xor %x, %ot : s32(1,300)\n"
    "    store %Y, %z, %z, %y\n    return\n  }\n}\n";

static void random_numbers(void **state) {
  (void)state;
  cg_check(random_text, "M=1,N=300", "", "", 0);
  cg_check(random_text, "M=1,N=299", "", "threads=64", 0);
}

static void rounding(void **state) {
  (void)state;
  static const char *const ops[] = {"floor", "ceil", "round", "trunc"};
  static const char *const types[] = {"f32", "bf16", "f16", "f64"};
  for (unsigned i = 0; i < 4; i++)
    for (unsigned k = 0; k < 4; k++) {
      struct help_arena h;
      help_arena_init(&h);
      struct strbuf b = {.arena = &h.arena};
      const char *t = types[k];
      sb_printf(&b, "kiln-ir 1 tile\nkernel r {\n  arg X: in %s [N]\n  arg Y: out %s [N]\n", t, t);
      sb_printf(&b, "  dims N\n  grid 1\n  body(%%X: view %s(?), %%Y: view %s(?), ", t, t);
      sb_puts(&b, "%N: index, %i: index) {\n    %z = const 0 : index\n");
      sb_printf(&b, "    %%t = load %%X, %%z : %s(512)\n    %%h = const 0.25 : %s\n", t, t);
      sb_printf(&b, "    %%q = splat %%h : %s(512)\n    %%v = mul %%t, %%q : %s(512)\n", t, t);
      sb_printf(&b, "    %%y = %s %%v : %s(512)\n    store %%Y, %%z, %%y\n    return\n  }\n}\n",
                ops[i], t);
      cg_check(sb_str(&b), "N=500", "", "", 0);
      nvrtc_check(&nvrtc, sb_str(&b), "N=500", "", targets[(i + k) % 4], "");
      arena_free(&h.arena);
    }
}

/* Arithmetic wraps at 4 bits; rows start in either half of a byte; elements of one byte are written
 * by several threads. */
static void nibbles(void **state) {
  (void)state;
  static const char *const ops[] = {"add", "sub", "mul", "floordiv", "mod", "min", "xor", "shl"};
  static const char *const layouts[] = {"", "X=pad1", "Y=pad1", "X=col", "Y=col", "X=pad3,Y=col"};
  for (unsigned i = 0; i < 8; i++)
    for (unsigned k = 0; k < 6; k++) {
      struct help_arena h;
      help_arena_init(&h);
      struct strbuf b = {.arena = &h.arena};
      const char *t = (i + k) % 2 ? "s4" : "u4", *dims = k % 3 ? "M=7,N=41" : "M=8,N=48";
      sb_printf(&b, "kiln-ir 1 tile\nkernel r {\n  arg X: in %s [M, N]\n", t);
      sb_printf(&b, "  arg Y: out %s [M, N]\n  dims M, N\n  grid cdiv(N, 24)\n", t);
      sb_printf(&b, "  body(%%X: view %s(?,?), %%Y: view %s(?,?), ", t, t);
      sb_puts(&b, "%M: index, %N: index, %i: index) {\n    %z = const 0 : index\n");
      sb_puts(&b, "    %w = const 24 : index\n    %at = mul %i, %w : index\n");
      sb_printf(&b, "    %%t = load %%X, %%z, %%at {pad = 3} : %s(8,24)\n", t);
      sb_printf(&b, "    %%h = const 3 : %s\n    %%q = splat %%h : %s(8,24)\n", t, t);
      sb_printf(&b, "    %%v = mul %%t, %%q : %s(8,24)\n", t);
      sb_printf(&b, "    %%y = %s %%v, %%t : %s(8,24)\n    %%n = neg %%y : %s(8,24)\n", ops[i], t,
                t);
      sb_puts(&b, "    store %Y, %z, %at, %n\n    return\n  }\n}\n");
      cg_check(sb_str(&b), dims, layouts[k], "", 0);
      nvrtc_check(&nvrtc, sb_str(&b), dims, layouts[k], targets[(i + k) % 4], "");
      arena_free(&h.arena);
    }
}

static void all_compile_without_spills(void **state) {
  (void)state;
  static const char *const ops[][4] = {
      {"argmax", "f32", "s32", "index"}, {"argmin", "bf16", "s64", "index"},
      {"argmax", "f64", "s32", "index"}, {"argmax", "u8", "s32", "index"},
      {"scan_sum", "f32", "f32", "f32"}, {"scan_sum", "bf16", "bf16", "bf16"},
      {"scan_sum", "f64", "f64", "f64"}, {"scan_sum", "s8", "s8", "s8"},
      {"scan_sum", "s64", "s64", "s64"},
  };
  for (unsigned i = 0; i < 9; i++)
    for (unsigned k = 0; k < 4; k++) {
      struct help_arena h;
      char dims[80];
      help_arena_init(&h);
      struct strbuf b = {.arena = &h.arena};
      int axis = (int)(i + k) % 2, m = axis ? 4 : 256, n = axis ? 2048 : 8;
      bool keeps = str_starts(ops[i][0], "scan");
      snprintf(dims, sizeof dims, "M=%d,N=%d,P=%d,Q=%d", m, n, !axis && !keeps ? 1 : m,
               axis && !keeps ? 1 : n);
      const char *text = fold_text(&b, ops[i][0], ops[i][1], ops[i][2], axis, m, n, "", ops[i][3]);
      nvrtc_check(&nvrtc, text, dims, "", targets[k], "");
      arena_free(&h.arena);
    }
  for (unsigned k = 0; k < 4; k++)
    nvrtc_check(&nvrtc, random_text, "M=1,N=300", "", targets[k], "");
  if (nvrtc.missing) {
    print_message("SKIP: %s\n", nvrtc.missing);
    skip();
  }
}

int main(void) {
  nvrtc_open(&nvrtc);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(places_of_extremes),
      cmocka_unit_test(places_of_nan),
      cmocka_unit_test(masks),
      cmocka_unit_test(running_sums),
      cmocka_unit_test(bits_of_every_pair),
      cmocka_unit_test(random_numbers),
      cmocka_unit_test(rounding),
      cmocka_unit_test(nibbles),
      cmocka_unit_test(all_compile_without_spills),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  nvrtc_close(&nvrtc);
  return failed;
}
