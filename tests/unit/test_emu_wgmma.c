/* The emulator's wgmma: every dtype, order and swizzle, operands brought by TMA, exact on integers;
 * and what it says where descriptors, warps or fragments are wrong. */
#include "help_hopper.h"

#include "base/num.h"
#include "base/str.h"

#include <string.h>

/* C[64, n] = A . B, one warpgroup, one load of `deep` elements of k. A is [64, deep] or, with
 * trans_a, [deep, 64]; B is [n, deep] or [deep, n]. */
struct product {
  enum dtype a, b, c;
  uint32_t n, deep, span;
  bool trans_a, trans_b;
};

static uint32_t bytes_of(enum dtype t) {
  return dtype_bits(t) / 8;
}

/* Elements of a row of the swizzle; without one, of 16 bytes. */
static uint32_t row_of(const struct product *p, enum dtype t) {
  return (p->span ? p->span : 16) / bytes_of(t);
}

struct place {
  uint32_t bytes;          /* of the operand */
  uint32_t panel;          /* bytes from a panel (a box) to the next */
  uint32_t panels;         /* boxes */
  uint32_t lbo, sbo, step; /* step: bytes from an instruction's k to the next */
};

/* K-major: panels along k of `rows` rows; MN-major: panels along mn of `deep` rows. */
static struct place place_of(const struct product *p, enum dtype t, bool trans, uint32_t mns) {
  uint32_t row = row_of(p, t), width = row * bytes_of(t), k = 32 / bytes_of(t);
  uint32_t along = trans ? mns : p->deep, down = trans ? p->deep : mns;
  struct place q = {.panel = down * width, .panels = (along + row - 1) / row};
  q.bytes = q.panel * q.panels;
  q.sbo = 8 * width;
  q.lbo = q.panel;
  if (trans && !p->span) { /* the offsets change places */
    q.lbo = q.sbo;
    q.sbo = q.panel;
  }
  q.step = trans ? k * width : p->span ? 32 : 2 * q.panel;
  return q;
}

static void put_head(struct strbuf *b, const struct product *p, const struct place *a,
                     const struct place *c) {
  const char *ta = dtype_name(p->a), *tb = dtype_name(p->b), *tc = dtype_name(p->c);
  uint32_t ra = p->trans_a ? p->deep : 64, ca = p->trans_a ? 64 : p->deep;
  uint32_t rb = p->trans_b ? p->deep : p->n, cb = p->trans_b ? p->n : p->deep;
  uint32_t wa = row_of(p, p->a), wb = row_of(p, p->b), smem = a->bytes + c->bytes;
  sb_printf(b,
            "kiln-ir 1 machine\nkernel w {\n  target sm_90a\n  arg A: in %s [%u, %u]\n"
            "  arg B: in %s [%u, %u]\n  arg C: out %s [64, %u]\n  grid 1\n"
            "  roles all {warps = 4}\n",
            ta, ra, ca, tb, rb, cb, tc, p->n);
  sb_printf(b,
            "  layout #1 = [64,%u] reg 2:(0,1) 2:(8,0)%s lane 4:(0,2) 8:(1,0) warp 4:(16,0)\n"
            "  res frag $acc: %s(64,%u) #1\n",
            p->n, p->n > 8 ? arena_printf(b->arena, " %u:(0,8)", p->n / 8) : "", tc, p->n);
  sb_printf(b,
            "  res buf $A: %s(%u,%u) {bytes = %u, offset = 0, swizzle_bytes = %u, lbo = %u, "
            "sbo = %u}\n",
            ta, ra, ca, a->bytes, p->span, a->lbo, a->sbo);
  sb_printf(b,
            "  res buf $B: %s(%u,%u) {bytes = %u, offset = %u, swizzle_bytes = %u, lbo = %u, "
            "sbo = %u}\n",
            tb, rb, cb, c->bytes, a->bytes, p->span, c->lbo, c->sbo);
  sb_printf(
      b,
      "  res tmap $tA: %s(%u,%u) {arg = A, perm = [1,0], box = [%u,%u], swizzle_bytes = %u}\n"
      "  res tmap $tB: %s(%u,%u) {arg = B, perm = [1,0], box = [%u,%u], swizzle_bytes = %u}\n",
      ta, ra, wa, wa, ra, p->span, tb, rb, wb, wb, rb, p->span);
  sb_printf(b,
            "  res pipe $x {kind = tma, slots = 1, bytes = %u, arrivals = 1, offset = %u}\n"
            "  res cursor $load {pipe = x, side = producer}\n"
            "  res cursor $use {pipe = x, side = consumer}\n"
            "  param tmap $tA\n  param tmap $tB\n  param ptr C\n",
            smem, smem);
  sb_printf(b,
            "  recipe {\n    kiln-recipe 1\n    kernel \"w\"\n    target \"sm_90a\"\n"
            "    arg in \"A\" %s [%u, %u]\n    arg in \"B\" %s [%u, %u]\n"
            "    arg out \"C\" %s [64, %u]\n    launch \"w_kernel\"\n      grid 1, 1, 1\n"
            "      block 128, 1, 1\n      cluster 1, 1, 1\n      smem %u\n      regs 0\n",
            ta, ra, ca, tb, rb, cb, tc, p->n, smem + 16);
  sb_printf(b,
            "      param tmap 0 [%u, %u] strides [%u, %u * A.stride0] box [%u, %u] swizzle %u l2 0 "
            "fill zero\n",
            ca, ra, bytes_of(p->a), bytes_of(p->a), wa, ra, p->span);
  sb_printf(b,
            "      param tmap 1 [%u, %u] strides [%u, %u * B.stride0] box [%u, %u] swizzle %u l2 0 "
            "fill zero\n      param ptr 2\n    end\n  }\n",
            cb, rb, bytes_of(p->b), bytes_of(p->b), wb, rb, p->span);
}

static void put_body(struct strbuf *b, const struct product *p, const struct place *a,
                     const struct place *c) {
  uint32_t k = 32 / bytes_of(p->a), steps = p->deep / k;
  sb_printf(b, "  body(%%ta: ptr %s, %%tb: ptr %s, %%c: ptr %s) {\n", dtype_name(p->a),
            dtype_name(p->b), dtype_name(p->c));
  static const uint32_t ints[] = {0, 1, 2, 3, 4, 5, 8, 16, 31};
  for (unsigned i = 0; i < sizeof ints / sizeof *ints; i++)
    sb_printf(b, "    %%%u = const %u : s32\n", ints[i], ints[i]);
  sb_printf(b, "    %%yes = const true : bool\n    %%tid = thread_id : s32\n"
               "    %%one = eq %%tid, %%0 : bool\n    if %%one {\n      pipe_init $x\n"
               "      fence_init\n      slot_expect $load\n");
  for (int of_b = 0; of_b < 2; of_b++)
    for (uint32_t i = 0; i < (of_b ? c : a)->panels; i++) {
      char x = of_b ? 'B' : 'A';
      sb_printf(b,
                "      %%o%c%u = const %u : s32\n      %%c%c%u = const %u : s32\n"
                "      tma_load $%c, $load, $t%c, %%o%c%u, %%c%c%u, %%0\n",
                x, i, i * (of_b ? c : a)->panel, x, i, i * row_of(p, of_b ? p->b : p->a), x, x, x,
                i, x, i);
    }
  sb_printf(b,
            "      yield\n    } else {\n      yield\n    }\n    barrier\n    slot_wait $use\n"
            "    %%da = desc $A, %%0 : s32\n    %%db = desc $B, %%0 : s32\n"
            "    %%sa = const %u : s32\n    %%sb = const %u : s32\n    wgmma_fence\n"
            "    each {count = %u} (%%k: s32) {\n      %%ka = mul %%k, %%sa : s32\n"
            "      %%kb = mul %%k, %%sb : s32\n      %%dak = add %%da, %%ka : s32\n"
            "      %%dbk = add %%db, %%kb : s32\n      %%more = gt %%k, %%0 : bool\n",
            a->step / 16, c->step / 16, steps);
  sb_printf(b, "      wgmma $acc, $A, $B, %%0, %%dak, %%dbk, %%more {shape = m64n%uk%u", p->n, k);
  if (p->trans_a || p->trans_b)
    sb_printf(b, ", trans_a = %d, trans_b = %d", p->trans_a, p->trans_b);
  sb_printf(b,
            "}\n      yield\n    }\n    wgmma_commit\n    wgmma_wait {pending = 0}\n"
            "    %%lane = and %%tid, %%31 : s32\n    %%warp = shr %%tid, %%5 : s32\n"
            "    %%g = shr %%lane, %%2 : s32\n    %%t = and %%lane, %%3 : s32\n"
            "    %%w16 = mul %%warp, %%16 : s32\n    %%row = add %%w16, %%g : s32\n"
            "    %%t2 = mul %%t, %%2 : s32\n    %%n = const %u : s32\n"
            "    each {count = %u} (%%j: s32) {\n      %%j4 = mul %%j, %%4 : s32\n"
            "      %%j8 = mul %%j, %%8 : s32\n      %%col = add %%j8, %%t2 : s32\n",
            p->n, p->n / 8);
  sb_printf(b,
            "      %%v0, %%v1, %%v2, %%v3 = fget $acc, %%j4 : %s, %s, %s, %s\n"
            "      %%r0 = mul %%row, %%n : s32\n      %%e0 = add %%r0, %%col : s32\n"
            "      %%i0 = cast %%e0 : index\n      %%p0 = ptr_add %%c, %%i0 : ptr %s\n"
            "      gstore %%p0, %%yes, %%v0, %%v1\n      %%r8 = add %%row, %%8 : s32\n"
            "      %%r1 = mul %%r8, %%n : s32\n      %%e1 = add %%r1, %%col : s32\n"
            "      %%i1 = cast %%e1 : index\n      %%p1 = ptr_add %%c, %%i1 : ptr %s\n"
            "      gstore %%p1, %%yes, %%v2, %%v3\n      yield\n    }\n    return\n  }\n}\n",
            dtype_name(p->c), dtype_name(p->c), dtype_name(p->c), dtype_name(p->c),
            dtype_name(p->c), dtype_name(p->c));
}

static const char *text_of(struct arena *mem, const struct product *p) {
  struct strbuf b = {.arena = mem};
  struct place a = place_of(p, p->a, p->trans_a, 64), c = place_of(p, p->b, p->trans_b, p->n);
  put_head(&b, p, &a, &c);
  put_body(&b, p, &a, &c);
  return sb_str(&b);
}

static int element(const struct product *p, uint64_t seed, int64_t i) {
  int low = p->a == DT_U8 || p->b == DT_U8 ? 0 : 2;
  return hopper_value(seed, i) - low;
}

static void bind(struct hopper_run *r, const struct product *p) {
  int64_t da[2] = {p->trans_a ? p->deep : 64, p->trans_a ? 64 : p->deep};
  int64_t db[2] = {p->trans_b ? p->deep : p->n, p->trans_b ? p->n : p->deep};
  void *a = hopper_tensor(r, p->a, 2, da), *b = hopper_tensor(r, p->b, 2, db);
  hopper_tensor(r, p->c, 2, (int64_t[]){64, p->n});
  for (int64_t i = 0; i < da[0] * da[1]; i++)
    num_store(p->a, a, i, element(p, 1, i));
  for (int64_t i = 0; i < db[0] * db[1]; i++)
    num_store(p->b, b, i, element(p, 2, i));
}

static void check(const struct hopper_run *r, const struct product *p, uint32_t which) {
  for (uint32_t i = 0; i < 64; i++)
    for (uint32_t j = 0; j < p->n; j++) {
      int want = 0;
      for (uint32_t k = 0; k < p->deep; k++)
        want += element(p, 1, p->trans_a ? k * 64 + i : i * p->deep + k) *
                element(p, 2, p->trans_b ? k * p->n + j : j * p->deep + k);
      double found = num_load(p->c, r->args[2].tensor.data, i * r->args[2].tensor.stride[0] + j);
      if (found != want)
        fail_msg("product %u, C[%u, %u]: expected %d, found %g", which, i, j, want, found);
    }
}

static void products(void **state) {
  (void)state;
  static const struct product all[] = {
      {DT_BF16, DT_BF16, DT_F32, 8, 64, 128, false, false},
      {DT_BF16, DT_BF16, DT_F32, 256, 64, 128, false, false},
      {DT_F16, DT_F16, DT_F32, 24, 32, 64, false, false},
      {DT_F16, DT_F16, DT_F16, 40, 16, 32, false, false},
      {DT_F16, DT_F16, DT_F32, 64, 48, 0, false, false},
      {DT_BF16, DT_BF16, DT_F32, 128, 64, 128, true, true},
      {DT_BF16, DT_BF16, DT_F32, 192, 32, 128, false, true},
      {DT_F16, DT_F16, DT_F32, 64, 32, 64, true, true},
      {DT_F16, DT_F16, DT_F32, 32, 32, 32, true, true},
      {DT_F16, DT_F16, DT_F32, 24, 32, 0, true, true},
      {DT_F32, DT_F32, DT_F32, 16, 32, 128, false, false},
      {DT_F32, DT_F32, DT_F32, 48, 16, 0, false, false},
      {DT_E4M3, DT_E4M3, DT_F32, 32, 128, 128, false, false},
      {DT_E4M3, DT_E5M2, DT_F16, 16, 64, 64, false, false},
      {DT_S8, DT_S8, DT_S32, 96, 128, 128, false, false},
      {DT_S8, DT_U8, DT_S32, 24, 64, 0, false, false},
  };
  for (uint32_t k = 0; k < sizeof all / sizeof *all; k++)
    for (uint32_t mode = 0; mode < EMU_MODES; mode++) {
      struct hopper_run r;
      hopper_begin(&r);
      const char *text = text_of(&r.mem.arena, &all[k]);
      bool ok = hopper_parse(&r, text);
      if (ok)
        bind(&r, &all[k]);
      if (!ok || !hopper_emulate(&r, mode))
        fail_msg("product %u, mode %u: %s\n%s", k, mode, hopper_messages(&r), text);
      check(&r, &all[k], k);
      hopper_end(&r);
    }
}

/* ---- what it refuses ---- */

static void says(const char *from, const char *to, const char *want) {
  static const struct product p = {DT_BF16, DT_BF16, DT_F32, 64, 64, 128, false, false};
  struct hopper_run r;
  hopper_begin(&r);
  const char *text = text_of(&r.mem.arena, &p), *at = strstr(text, from);
  if (!at)
    fail_msg("'%s' is not in\n%s", from, text);
  text = arena_printf(&r.mem.arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
  if (!hopper_parse(&r, text))
    fail_msg("%s", hopper_messages(&r));
  bind(&r, &p);
  if (hopper_emulate(&r, EMU_LATE) || !strstr(hopper_messages(&r), want))
    fail_msg("'%s' -> '%s': expected '%s', found: %s", from, to, want, hopper_messages(&r));
  hopper_end(&r);
}

static void faults(void **state) {
  (void)state;
  says("%sa = const 2", "%sa = const 600", "outside of buffer 'A'");
  says("%da = desc $A, %0", "%da = add %tid, %0", "must be the same in all lanes");
  says("%da = desc $A, %0 : s32", "%w = shr %tid, %5 : s32\n    %da = mul %w, %2 : s32",
       "come to different wgmma, or with different operands");
  says("wgmma_fence", "tmap_prefetch $tA", "without a wgmma_fence");
  says("      %more = gt %k, %0 : bool\n", "      %more = ge %k, %0 : bool\n",
       "before anything has written it");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(products), cmocka_unit_test(faults)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
