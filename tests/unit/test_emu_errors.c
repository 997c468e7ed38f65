/* What the emulator reports: small machine modules that are wrong in one way each, beside the same
 * module without the mistake, which runs. */
#include "codegen/emu.h"
#include "help_rt.h"
#include "ir/ir.h"

#include <cmocka.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Values have names here; the text form numbers them in order of appearance. */
static void put_numbered(struct strbuf *out, const char *text) {
  char names[64][16];
  int n = 0;
  for (const char *p = text; *p; p++) {
    sb_putc(out, *p);
    if (*p != '%' || !isalpha((unsigned char)p[1]))
      continue;
    size_t len = 0;
    while (isalnum((unsigned char)p[1 + len]))
      len++;
    int k = 0;
    while (k < n && (strlen(names[k]) != len || memcmp(names[k], p + 1, len) != 0))
      k++;
    if (k == n) {
      assert_true(n < 64 && len < sizeof names[0]);
      snprintf(names[n++], sizeof names[0], "%.*s", (int)len, p + 1);
    }
    sb_printf(out, "%d", k);
    p += len;
  }
}

#define N 256

struct bad {
  const char *body;
  const char *code; /* NULL: runs */
  const char *says; /* part of the message */
  uint32_t warps, blocks;
};

struct world {
  struct help_arena mem;
  struct diag_sink diags;
  struct ir_module *m;
  float x[N], y[N];
  struct interp_arg args[2];
};

/* Y and X are f32 tensors of N = 256 elements; $b: 1024 bytes of shared memory at 128, of 2048 that
 * the block has; $f: a fragment of 4 elements; $h: one of 8 of bf16, $s: bf16 at 1152. pdl: the
 * launch may begin before the kernel before it has ended. */
static void start(struct world *w, const struct bad *b, bool pdl) {
  help_arena_init(&w->mem);
  assert_true(diag_init(&w->diags, &mem_libc));
  struct strbuf t = {.arena = &w->mem.arena};
  uint32_t warps = b->warps ? b->warps : 2, blocks = b->blocks ? b->blocks : 1;
  sb_puts(&t, "kiln-ir 1 machine\nkernel bad {\n  target sm_90a\n  arg X: in f32 [N]\n"
              "  arg Y: out f32 [N]\n  dims N\n  grid 1\n  roles all\n"
              "  layout #1 = [16,8] reg 2:(0,1) 2:(8,0) lane 4:(0,2) 8:(1,0)\n"
              "  res buf $b: f32(16,16) {bytes = 1024, offset = 128}\n"
              "  res pipe $p {slots = 3, kind = cp_async}\n"
              "  res frag $f: f32(16,8) #1\n"
              "  param ptr X\n  param ptr Y\n  recipe {\n    kiln-recipe 1\n    kernel \"bad\"\n"
              "    target \"sm_90a\"\n    arg in \"X\" f32 [N]\n    arg out \"Y\" f32 [N]\n"
              "    check N == 256 : \"made for 256 elements\"\n    launch \"bad\"\n");
  sb_printf(&t, "      grid %u, 1, 1\n      block %u, 1, 1\n", blocks, warps * 32);
  sb_printf(&t,
            "      cluster 1, 1, 1\n      smem 2048\n      regs 0\n%s      param ptr 0\n"
            "      param ptr 1\n    end\n  }\n",
            pdl ? "      pdl\n" : "");
  struct strbuf body = {.arena = &w->mem.arena};
  sb_puts(&body, "  body(%X: ptr f32, %Y: ptr f32) {\n"
                 "    %t = thread_id : s32\n    %w = warp_id : s32\n    %l = lane_id : s32\n"
                 "    %zero = const 0 : s32\n    %one = const 1 : s32\n    %four = const 4 : s32\n"
                 "    %ti = cast %t : index\n    %px = ptr_add %X, %ti : ptr f32\n"
                 "    %py = ptr_add %Y, %ti : ptr f32\n    %T = const true : bool\n"
                 "    %t4 = mul %t, %four : s32\n    %l4 = mul %l, %four : s32\n"
                 "    %v = const 2.0 : f32\n    %first = eq %w, %zero : bool\n");
  sb_puts(&body, b->body);
  sb_puts(&body, "    return\n  }\n}\n");
  put_numbered(&t, sb_str(&body));
  uint32_t file = diag_add_file(&w->diags, "bad.tir", sb_str(&t), t.n);
  w->m = ir_parse(&w->mem.arena, &w->diags, file, sb_str(&t), t.n);
  if (!w->m || !ir_verify(w->m, &w->diags))
    fail_msg("%s%s", b->body, help_last_message(&w->diags));
  int64_t n = N;
  for (int i = 0; i < N; i++) {
    w->x[i] = (float)i;
    w->y[i] = -1;
  }
  w->args[0] = (struct interp_arg){.tensor = interp_dense(w->x, DT_F32, 1, &n)};
  w->args[1] = (struct interp_arg){.tensor = interp_dense(w->y, DT_F32, 1, &n)};
}

static void stop(struct world *w) {
  diag_free(&w->diags);
  arena_free(&w->mem.arena);
}

static bool run(struct world *w, enum emu_mode mode, uint64_t seed) {
  struct emu_options opt = {.mode = mode, .seed = seed};
  diag_clear(&w->diags);
  return emu_run(w->m, w->args, 2, &opt, NULL, &w->diags, &mem_libc);
}

/* In every mode and some seeds: a mistake in how threads are ordered shows whoever runs first. What
 * is found first may differ (a read before the write is one of memory that nothing has written):
 * each of the codes will do, and the text must be said once. */
static void check(const struct bad *b, bool pdl) {
  struct world w;
  bool said = false;
  start(&w, b, pdl);
  for (uint32_t k = 0; k < EMU_MODES + 4; k++) {
    enum emu_mode mode = k < EMU_MODES ? (enum emu_mode)k : EMU_SEEDED;
    bool ok = run(&w, mode, k);
    if (ok != !b->code)
      fail_msg("%s\n%s: %s", b->body, emu_mode_name(mode),
               ok ? "nothing was reported" : help_last_message(&w.diags));
    if (ok)
      continue;
    assert_true(w.diags.list.n == 1);
    const struct diag *d = &w.diags.list.at[0];
    if (!strstr(b->code, diag_code(d->id)))
      fail_msg("%s\n%s: %s instead of %s: %s", b->body, emu_mode_name(mode), diag_code(d->id),
               b->code, d->message);
    said |= strstr(d->message, b->says) != NULL;
  }
  if (b->code && !said)
    fail_msg("%s\nnever said '%s', but: %s", b->body, b->says, help_last_message(&w.diags));
  stop(&w);
}

/* A skeleton says the same, but for what values and tensors would show. */
static void check_skeleton(const struct bad *b) {
  struct world w;
  struct emu_options opt = {.mode = EMU_LATE, .skeleton = true};
  start(&w, b, false);
  bool ok = emu_run(w.m, w.args, 2, &opt, NULL, &w.diags, &mem_libc);
  if (ok != !b->code)
    fail_msg("%s\nskeleton: %s", b->body,
             ok ? "nothing was reported" : help_last_message(&w.diags));
  if (!ok && (!strstr(b->code, diag_code(w.diags.list.at[0].id)) ||
              !strstr(w.diags.list.at[0].message, b->says)))
    fail_msg("%s\nskeleton: '%s' instead of '%s'", b->body, w.diags.list.at[0].message, b->says);
  stop(&w);
}

#define CHECK_SKELETONS(list)                                                                      \
  for (size_t k_ = 0; k_ < sizeof(list) / sizeof(list)[0]; k_++)                                   \
  check_skeleton(&(list)[k_])

#define CHECK_ALL(list, pdl)                                                                       \
  for (size_t k_ = 0; k_ < sizeof(list) / sizeof(list)[0]; k_++)                                   \
  check(&(list)[k_], (pdl))

/* Threads hand each other values backwards: thread t stores at t, loads at 63 - t. */
#define STORE "    sstore $b, %t4, %T, %v\n"
#define LOAD                                                                                       \
  "    %last = const 252 : s32\n    %r = sub %last, %t4 : s32\n    %u = sload $b, %r : f32\n"
#define OUT "    gstore %py, %T, %u\n"

static void races_in_shared_memory(void **state) {
  (void)state;
  static const struct bad list[] = {
      {STORE "    barrier\n" LOAD OUT, NULL, NULL, 2, 1},
      {STORE LOAD OUT, "K1007 K1006", "nothing", 2, 1},
      /* Lanes of one warp: what orders them is a barrier too. */
      {STORE "    %q = xor %t4, %four : s32\n    %u = sload $b, %q : f32\n" OUT, "K1007",
       "another thread of the warp", 1, 1},
      {STORE "    barrier\n    %q = xor %t4, %four : s32\n    %u = sload $b, %q : f32\n" OUT, NULL,
       NULL, 1, 1},
      /* Written before it was read. */
      {STORE "    barrier\n" LOAD "    sstore $b, %t4, %T, %u\n" OUT, "K1007", "'sstore'", 2, 1},
      {STORE "    barrier\n" LOAD "    barrier\n    sstore $b, %t4, %T, %u\n" OUT, NULL, NULL, 2,
       1},
      /* Two writers. */
      {"    sstore $b, %l4, %T, %v\n", "K1007", "'sstore' writes", 2, 1},
      {"    sstore $b, %l4, %first, %v\n", NULL, NULL, 2, 1},
      /* A barrier too early. */
      {"    barrier\n" STORE LOAD OUT, "K1007 K1006", "nothing", 2, 1},
  };
  CHECK_ALL(list, false);
  CHECK_SKELETONS(list);
}

#define COPY "    cp_async $b, $p, %px, %t4, %one, %T {bytes = 4}\n"
#define MORE                                                                                       \
  "    %k = const 256 : s32\n    %t5 = add %t4, %k : s32\n"                                        \
  "    cp_async $b, $p, %px, %t5, %one, %T {bytes = 4}\n    pipe_commit $p\n"

static void copies_on_their_way(void **state) {
  (void)state;
  static const struct bad list[] = {
      {COPY "    pipe_commit $p\n    pipe_wait $p {pending = 0}\n    barrier\n" LOAD OUT, NULL,
       NULL, 2, 1},
      {COPY "    pipe_commit $p\n    pipe_wait $p {pending = 0}\n" LOAD OUT, "K1007 K1006",
       "shared", 2, 1},
      {COPY "    pipe_commit $p\n    barrier\n    pipe_wait $p {pending = 0}\n" LOAD OUT, "K1007",
       "shared", 2, 1},
      {COPY "    pipe_commit $p\n    pipe_wait $p {pending = 1}\n    barrier\n" LOAD OUT, "K1007",
       "on its way", 2, 1},
      /* Nothing was committed: the wait has nothing to wait for. */
      {COPY "    pipe_wait $p {pending = 0}\n    barrier\n" LOAD OUT, "K1007", "on its way", 2, 1},
      {COPY "    pipe_commit $p\n" MORE "    pipe_wait $p {pending = 1}\n    barrier\n" LOAD OUT,
       NULL, NULL, 2, 1},
      {COPY "    pipe_commit $p\n" MORE "    pipe_wait $p {pending = 2}\n    barrier\n" LOAD OUT,
       "K1007", "on its way", 2, 1},
      /* The slot was not left by its readers. */
      {STORE "    barrier\n" LOAD COPY OUT, "K1007 K1006", "shared", 2, 1},
      {STORE "    barrier\n" LOAD "    barrier\n" COPY OUT, NULL, NULL, 2, 1},
  };
  CHECK_ALL(list, false);
  CHECK_SKELETONS(list);
}

static void races_in_tensors(void **state) {
  (void)state;
  static const struct bad list[] = {
      {"    gstore %py, %T, %v\n", NULL, NULL, 2, 1},
      {"    gstore %py, %T, %v\n", "K1007", "another block writes", 2, 3},
      {"    %li = cast %l : index\n    %q = ptr_add %Y, %li : ptr f32\n    gstore %q, %T, %v\n",
       "K1007", "element 0 of the memory of 'Y'", 2, 1},
      {"    barrier\n    gstore %py, %T, %v\n    %back = const 63 : s32\n"
       "    %r = sub %back, %t : s32\n"
       "    %ri = cast %r : index\n    %q = ptr_add %Y, %ri : ptr f32\n"
       "    %u = gload %q, %T, %v : f32\n    sstore $b, %t4, %T, %u\n",
       "K1007 K1006", "nothing", 2, 1},
      {"    gstore %py, %T, %v\n    barrier\n    %back = const 63 : s32\n"
       "    %r = sub %back, %t : s32\n    %ri = cast %r : index\n"
       "    %q = ptr_add %Y, %ri : ptr f32\n    %u = gload %q, %T, %v : f32\n"
       "    sstore $b, %t4, %T, %u\n",
       NULL, NULL, 2, 1},
  };
  CHECK_ALL(list, false);
}

#define GLOAD "    %u = gload %px, %T, %v : f32\n"

/* Of a launch that may begin before the kernel before it has ended. */
static void launches_that_overlap(void **state) {
  (void)state;
  static const struct bad list[] = {
      {"    pdl_wait\n" GLOAD "    gstore %py, %T, %u\n", NULL, NULL, 2, 1},
      {GLOAD "    gstore %py, %T, %u\n", "K1007", "'gload' reads byte", 2, 1},
      {GLOAD "    pdl_wait\n    gstore %py, %T, %u\n", "K1007", "may still write there", 2, 1},
      {"    gstore %py, %T, %v\n    pdl_wait\n", "K1007",
       "'gstore' writes byte 0 of 'Y' without a pdl_wait before it", 2, 1},
      {COPY "    pipe_commit $p\n    pipe_wait $p {pending = 0}\n    pdl_wait\n", "K1007",
       "'cp_async' reads", 2, 1},
      {"    pdl_wait\n" COPY "    pipe_commit $p\n    pipe_wait $p {pending = 0}\n", NULL, NULL, 2,
       1},
      /* One warp waits: the others come after it through a barrier alone. */
      {"    if %first {\n      pdl_wait\n      yield\n    } else {\n      yield\n    }\n"
       "    barrier\n    gstore %py, %T, %v\n",
       NULL, NULL, 3, 1},
      {"    if %first {\n      pdl_wait\n      yield\n    } else {\n      yield\n    }\n"
       "    gstore %py, %T, %v\n    barrier\n",
       "K1007", "without a pdl_wait", 3, 1},
      {"    if %first {\n      yield\n    } else {\n      yield\n    }\n    barrier\n"
       "    gstore %py, %T, %v\n",
       "K1007", "without a pdl_wait", 3, 1},
      /* So it is with the lanes of a warp. */
      {"    %lane0 = eq %l, %zero : bool\n    if %lane0 {\n      pdl_wait\n"
       "      gstore %py, %T, %v\n      yield\n    } else {\n      yield\n    }\n",
       NULL, NULL, 1, 1},
      {"    %lane0 = eq %l, %zero : bool\n    if %lane0 {\n      pdl_wait\n      yield\n"
       "    } else {\n      yield\n    }\n    gstore %py, %T, %v\n",
       "K1007", "without a pdl_wait", 1, 1},
      {"    %lane0 = eq %l, %zero : bool\n    if %lane0 {\n      pdl_wait\n      yield\n"
       "    } else {\n      yield\n    }\n    barrier\n    gstore %py, %T, %v\n",
       NULL, NULL, 2, 1},
  };
  CHECK_ALL(list, true);
  static const struct bad alone = {GLOAD "    gstore %py, %T, %u\n", NULL, NULL, 2, 1};
  check(&alone, false);
}

static void accesses_outside(void **state) {
  (void)state;
  static const struct bad list[] = {
      {"    %k = const 1024 : s32\n    sstore $b, %k, %first, %v\n", "K1008",
       "buffer 'b', which has 1024", 1, 1},
      {"    %k = const -4 : s32\n    sstore $b, %k, %first, %v\n", "K1008", "bytes -4..-1", 1, 1},
      {"    %k = const 2 : s32\n    %z = lt %t, %one : bool\n    sstore $b, %k, %z, %v\n", "K1008",
       "not a multiple of 4", 1, 1},
      {"    %k = const 225 : index\n    %q = ptr_add %px, %k : ptr f32\n"
       "    %u = gload %q, %T, %v : f32\n",
       "K1008", "bytes 1024..1027 of 'X', whose memory is bytes 0..1023", 1, 1},
      {"    %k = const 224 : index\n    %q = ptr_add %px, %k : ptr f32\n"
       "    %u = gload %q, %T, %v : f32\n",
       NULL, NULL, 1, 1},
      {"    %k = const -1 : index\n    %q = ptr_add %px, %k : ptr f32\n"
       "    %u = gload %q, %T, %v : f32\n",
       "K1008", "bytes -4..-1 of 'X'", 1, 1},
      {"    gstore %px, %T, %v\n", "K1008", "an input", 1, 1},
      {"    %u, %u2 = gload %px, %T, %v : f32, f32\n", "K1008", "not a multiple of 8", 1, 1},
      {"    %k = const 35184372088832 : index\n    %q = ptr_add %px, %k : ptr f32\n"
       "    %u = gload %q, %T, %v : f32\n",
       "K1008", "", 1, 1},
      /* A masked access is none. */
      {"    %k = const 1024 : s32\n    %no = const false : bool\n    sstore $b, %k, %no, %v\n",
       NULL, NULL, 1, 1},
  };
  CHECK_ALL(list, false);
  CHECK_SKELETONS(list);
}

static void memory_that_nothing_has_written(void **state) {
  (void)state;
  static const struct bad list[] = {
      {"    %u = sload $b, %t4 : f32\n    gstore %py, %T, %u\n", "K1006",
       "operand 3 of 'gstore' comes from shared memory that nothing has written", 1, 1},
      {"    %u = sload $b, %t4 : f32\n    %u2 = add %u, %v : f32\n"
       "    %s = shuffle %u2 {mask = 1} : f32\n    fput $f, %zero, %s\n"
       "    %g = fget $f, %zero : f32\n    gstore %py, %T, %g\n",
       "K1006", "operand 3 of 'gstore'", 1, 1},
      {"    %u = sload $b, %t4 : f32\n    %c = lt %u, %v : bool\n    if %c {\n      yield\n"
       "    } else {\n      yield\n    }\n",
       "K1006", "operand 1 of 'if'", 1, 1},
      {"    %u = sload $b, %t4 : f32\n    %c = lt %u, %v : bool\n    gstore %py, %c, %v\n", "K1006",
       "operand 2 of 'gstore'", 1, 1},
      /* Computed with, and dropped. */
      {"    %u = sload $b, %t4 : f32\n    %u2 = add %u, %v : f32\n"
       "    %s = select %first, %v, %u2 : f32\n    gstore %py, %T, %s\n",
       NULL, NULL, 1, 1},
      /* Through shared memory. */
      {"    %u = sload $b, %t4 : f32\n    barrier\n    sstore $b, %t4, %T, %u\n    barrier\n"
       "    %u2 = sload $b, %t4 : f32\n    gstore %py, %T, %u2\n",
       "K1006", "operand 3 of 'gstore'", 1, 1},
      {"    %g = fget $f, %zero : f32\n    gstore %py, %T, %g\n", "K1006",
       "element 0 of a fragment", 1, 1},
      {"    %u = gload %py, %T, %v : f32\n    gstore %py, %T, %u\n", "K1006",
       "element 0 of the memory of 'Y'", 1, 1},
  };
  CHECK_ALL(list, false);
}

static void divergence(void **state) {
  (void)state;
  static const struct bad list[] = {
      {"    %c = lt %l, %four : bool\n    if %c {\n      barrier\n      yield\n    } else {\n"
       "      yield\n    }\n",
       "K1009", "'barrier' is for the whole warp", 2, 1},
      {"    %c = lt %l, %four : bool\n    if %c {\n      %s = shuffle %l {mask = 1} : s32\n"
       "      yield\n    } else {\n      yield\n    }\n",
       "K1009", "'shuffle'", 2, 1},
      {"    %c = lt %l, %four : bool\n    if %c {\n      gstore %py, %T, %v\n      yield\n"
       "    } else {\n      gstore %py, %T, %v\n      yield\n    }\n    barrier\n",
       NULL, NULL, 2, 1},
      {"    %z = and %l, %one : s32\n    fput $f, %z, %v\n", "K1009", "the same in all lanes", 1,
       1},
  };
  CHECK_ALL(list, false);
}

/* What is the same in all lanes is computed for one that is active: %s and %c1 are the same number,
 * one made of the loop's index, the other lane by lane. */
#define COUNT(first, last)                                                                         \
  "    %out = for %k: s32 = " first ", " last ", %one carry(%c: s32 = " first ") : s32 {\n"        \
  "      %s = add %k, %one : s32\n      %c1 = add %c, %one : s32\n"                                \
  "      %d = digits %s {map = [4,1,64,4]} : s32\n      %same = eq %d, %c1 : bool\n"               \
  "      check %same {message = \"another lane's\"}\n      yield %c1\n    }\n"

static void values_of_one_lane(void **state) {
  (void)state;
  static const struct bad list[] = {
      {COUNT("%zero", "%four"), NULL, NULL, 2, 1},
      {COUNT("%zero", "%l"), NULL, NULL, 2, 1},
      {COUNT("%l", "%four"), NULL, NULL, 2, 1},
      {COUNT("%w", "%l4"), NULL, NULL, 3, 1},
      {"    %odd = and %l, %one : s32\n    %c0 = eq %odd, %one : bool\n    if %c0 {\n" COUNT(
           "%one", "%l") "      yield\n    } else {\n      yield\n    }\n",
       NULL, NULL, 2, 1},
      {COUNT("%zero", "%four") "    %m = mul %w, %four : s32\n    %q = eq %m, %zero : bool\n"
                               "    check %q {message = \"of the second warp\"}\n",
       "K1005", "of the second warp", 2, 1},
      {"    %m = sub %zero, %w : s32\n    %q = digits %m {map = [4,1]} : s32\n", "K0503",
       "'digits' of -1", 2, 1},
  };
  CHECK_ALL(list, false);
}

static void deadlocks(void **state) {
  (void)state;
  static const struct bad list[] = {
      {"    if %first {\n      barrier\n      yield\n    } else {\n      yield\n    }\n", "K1010",
       "warp 0 waits for barrier 0; 2 warps have ended", 3, 1},
      {"    if %first {\n      barrier\n      yield\n    } else {\n      barrier\n      yield\n"
       "    }\n",
       NULL, NULL, 3, 1},
  };
  CHECK_ALL(list, false);
  CHECK_SKELETONS(list);
}

static void other_faults(void **state) {
  (void)state;
  static const struct bad list[] = {
      {"    check %first {message = \"warp 0 alone\"}\n", "K1005", "warp 0 alone", 2, 1},
      {"    check %T\n", NULL, NULL, 2, 1},
      {"    %none = sub %t, %t : s32\n    for %k: s32 = %zero, %four, %none {\n"
       "      yield\n    }\n",
       "K0503", "step of a loop must be positive", 1, 1},
      {"    %d = digits %t {map = [8,1]} : s32\n", "K0503", "which its map does not reach", 1, 1},
  };
  CHECK_ALL(list, false);
}

static void launches_that_are_refused(void **state) {
  (void)state;
  struct world w;
  struct bad b = {"    gstore %py, %T, %v\n", NULL, NULL, 2, 1};
  start(&w, &b, false);
  w.args[0].tensor.dim[0] = 200;
  assert_false(run(&w, EMU_EARLY, 0));
  assert_non_null(strstr(help_last_message(&w.diags), "expected 200, found 256"));
  w.args[1].tensor.dim[0] = 200;
  assert_false(run(&w, EMU_EARLY, 0));
  assert_non_null(strstr(help_last_message(&w.diags), "made for 256 elements"));
  w.args[0].tensor.dim[0] = w.args[1].tensor.dim[0] = 256;
  w.args[0].tensor.dtype = DT_S32;
  assert_false(run(&w, EMU_EARLY, 0));
  assert_non_null(strstr(help_last_message(&w.diags), "expected f32, found s32"));
  w.args[0].tensor.dtype = DT_F32;
  w.args[0].tensor.stride[0] = INT64_MAX / 4;
  assert_false(run(&w, EMU_EARLY, 0));
  assert_non_null(strstr(help_last_message(&w.diags), "reaches further than memory can"));
  stop(&w);
}

static bool always(void *user) {
  ++*(int *)user;
  return true;
}

static void limits(void **state) {
  (void)state;
  struct world w;
  struct bad b = {"    %many = const 100000 : s32\n    for %k: s32 = %zero, %many, %one {\n"
                  "      yield\n    }\n",
                  NULL, NULL, 2, 4};
  int asked = 0;
  start(&w, &b, false);
  for (uint32_t threads = 1; threads < 3; threads++) {
    struct emu_options opt = {.max_steps = 50000, .threads = threads};
    diag_clear(&w.diags);
    assert_false(emu_run(w.m, w.args, 2, &opt, NULL, &w.diags, &mem_libc));
    assert_int_equal(w.diags.list.at[0].id, DIAG_STEP_LIMIT);
    opt = (struct emu_options){.interrupted = always, .user = &asked, .threads = threads};
    diag_clear(&w.diags);
    assert_false(emu_run(w.m, w.args, 2, &opt, NULL, &w.diags, &mem_libc));
    assert_int_equal(w.diags.list.at[0].id, DIAG_INTERRUPTED);
  }
  assert_true(asked > 0);
  stop(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(races_in_shared_memory),
      cmocka_unit_test(copies_on_their_way),
      cmocka_unit_test(races_in_tensors),
      cmocka_unit_test(launches_that_overlap),
      cmocka_unit_test(accesses_outside),
      cmocka_unit_test(memory_that_nothing_has_written),
      cmocka_unit_test(divergence),
      cmocka_unit_test(values_of_one_lane),
      cmocka_unit_test(deadlocks),
      cmocka_unit_test(other_faults),
      cmocka_unit_test(launches_that_are_refused),
      cmocka_unit_test(limits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
