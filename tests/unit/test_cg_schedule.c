/* The schedule record and what an expert pins in it: pinned fields are kept, give the same results,
 * and are refused by name where they are not legal. */
#include "help_cg.h"

#include <cmocka.h>
#include <string.h>

static const char *gemm(struct help_arena *h) {
  struct strbuf b = {.arena = &h->arena};
  cg_gemm_text(&b, &(struct cg_gemm){.t = DT_BF16, .bm = 64, .bn = 64, .bk = 32, .residual = true});
  return sb_str(&b);
}

/* The record of the kernel, scheduled with these knobs and pins. */
static const char *record(struct help_arena *h, const char *knobs) {
  struct cg_test t;
  struct strbuf out = {.arena = &h->arena};
  cg_test_begin(&t, gemm(h));
  cg_test_args(&t, "M=128,N=128,K=96", "", 0, 1);
  struct ir_module *m = cg_test_schedule(&t, "sm_90a", knobs);
  if (!m)
    fail_msg("%s: %s", knobs, cg_test_messages(&t));
  cg_print_schedule(m, &out);
  cg_test_end(&t);
  return sb_str(&out);
}

static void whole_record(void **state) {
  (void)state;
  struct help_arena h;
  help_arena_init(&h);
  assert_string_equal(
      record(&h, ""),
      "kiln-schedule 1\n"
      "kernel gemm, sm_90a\n"
      "knobs: warpgroups = 0, warps_m = 2, warps_n = 2, threads = 128, blocks = 2, stages = 4, "
      "group = 8, prefetch = 0, store = 0\n"
      "loop: slots = 4\n"
      "  load.A: path = cp_async, masks = [0,0], vdim = 1, vec = 8, stage = 0, order = 0\n"
      "  load.B: path = cp_async, masks = [0,0], vdim = 1, vec = 8, stage = 0, order = 1\n"
      "  dot: inst = mma_m16n8k16, a_path = smem, b_path = smem, warps = 2x2, stage = 3, order = 3\n"
      "load.R: path = frag, masks = [0,0], vdim = 1, vec = 8\n"
      "store.C: path = frag, masks = [0,0], vdim = 1, vec = 8\n");
  arena_free(&h.arena);
}

/* Each is in the record, and the kernel computes the same. */
static void pinned(void **state) {
  (void)state;
  static const struct {
    const char *pins, *want;
  } rows[] = {
      {"loop.slots=2", "loop: slots = 2\n"},
      {"stages=3,loop.slots=1", "loop: slots = 1\n"},
      {"load.A.path=staged", "load.A: path = staged,"},
      {"load.B.path=frag", "a_path = smem, b_path = computed,"},
      {"load.A.path=cp_async", "load.A: path = cp_async,"},
      {"dot.a_path=computed", "a_path = computed, b_path = smem,"},
      {"dot.a_path=computed,dot.b_path=computed", "a_path = computed, b_path = computed,"},
      {"dot.a_path=smem", "a_path = smem,"},
      {"dot.warps=4x1", "warps = 4x1,"},
      {"dot.warps=1x2", "threads = 64,"},
      {"store.C.path=staged", "store.C: path = staged,"},
      {"store=1,store.C.path=frag", "store.C: path = frag,"},
      {"load.R.path=frag", "load.R: path = frag,"},
      {"load.A.path=direct", "load.A: path = direct,"},
      {"dot.b_path=computed,load.B.path=direct", "load.B: path = direct,"},
      {"dot.a_path=computed,spare=1", "load.A: path = direct,"},
      {"dot.a_path=computed,load.A.path=frag,spare=1", "load.A: path = frag,"},
      {"spare=0", "blocks = 2,"},
      {"spare=1", "blocks = 1,"},
      {"spare=1,blocks=2", "blocks = 2,"},
      {"spare=2", "threads = 256,"},
      {"spare=3", "threads = 512,"},
      {"threads=512,spare=3", "threads = 512,"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct help_arena h;
    help_arena_init(&h);
    const char *text = record(&h, rows[i].pins);
    if (!strstr(text, rows[i].want))
      fail_msg("%s: no `%s` in\n%s", rows[i].pins, rows[i].want, text);
    cg_check(gemm(&h), "M=70,N=130,K=72", "", rows[i].pins, 0);
    cg_check(gemm(&h), "M=64,N=63,K=40", "A=col,C=pad3", rows[i].pins, 0);
    arena_free(&h.arena);
  }
}

static void refused(void **state) {
  (void)state;
  static const struct {
    const char *pins, *layout, *want;
  } rows[] = {
      {"loop.slots=9", "",
       "schedule `loop.slots` (slots of the pipe that feeds the loop's dots) "
       "must be a whole number, 1 to 8"},
      {"loop.slots=two", "", "must be a whole number, 1 to 8"},
      {"loop.slot=2", "", "schedule `loop.slot`: loop has no field `slot`; it has slots"},
      {"loop.2.slots=2", "",
       "schedule `loop.2.slots`: neither a knob nor a field of an op; ops are "
       "loop, load.A, load.B, dot, load.R, store.C"},
      {"load.Q.path=frag", "", "schedule `load.Q.path`: neither a knob nor a field of an op"},
      {"load.A.path=fast", "", "must be frag, cp_async, staged, direct"},
      {"load.A.path=3", "", "must be frag, cp_async, staged"},
      {"load.R.path=staged", "", "schedule `load.R.path`: it feeds no dot as it is loaded"},
      {"load.R.path=direct", "",
       "schedule `load.R.path`: `direct` is for what one operand of a dot"},
      {"load.A.path=direct,dot.a_path=smem", "", "the dot that reads it is pinned"},
      {"loop.slots=3,load.A.path=direct,load.B.path=direct", "",
       "schedule `loop.slots`: no load of this loop can run ahead"},
      {"load.A.path=cp_async", "A=off1", "schedule `load.A.path`: cp_async needs"},
      {"load.A.path=frag,dot.a_path=smem", "", "the dot that reads it is pinned"},
      {"loop.slots=3,dot.a_path=computed,dot.b_path=computed", "",
       "schedule `loop.slots`: no load of this loop can run ahead"},
      {"dot.warps=3", "", "must be two numbers, as \"2x4\""},
      {"dot.warps=0x2", "", "must be two numbers, as \"2x4\""},
      {"dot.warps=2x2,threads=256", "", "warps_m * warps_n * 32 must be the threads"},
      {"store.C.path=computed", "", "must be frag, staged"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct help_arena h;
    struct cg_test t;
    help_arena_init(&h);
    cg_test_begin(&t, gemm(&h));
    cg_test_args(&t, "M=64,N=64,K=64", rows[i].layout, 0, 1);
    assert_false(cg_test_lower(&t, "sm_90a", rows[i].pins));
    if (!strstr(cg_test_messages(&t), rows[i].want))
      fail_msg("%s: no `%s` in\n%s", rows[i].pins, rows[i].want, cg_test_messages(&t));
    cg_test_end(&t);
    arena_free(&h.arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(whole_record),
      cmocka_unit_test(pinned),
      cmocka_unit_test(refused),
  };
  return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
