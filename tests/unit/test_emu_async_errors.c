/* What the emulator says of asynchronous hardware used wrongly: machine modules with one fault that
 * no deletion makes (those are in test_emu_mutants_hopper.c). */
#include "help_hopper.h"

#include <string.h>

struct fault {
  const char *module, *from, *to; /* all places */
  const char *says;
  bool misplace; /* the first argument lies 2 bytes further */
};

static const char *replace(struct arena *a, const char *text, const char *from, const char *to) {
  const char *at = strstr(text, from);
  if (!at)
    fail_msg("'%s' is not there", from);
  struct strbuf b = {.arena = a};
  for (; at; text = at + strlen(from), at = strstr(text, from))
    sb_printf(&b, "%.*s%s", (int)(at - text), text, to);
  sb_printf(&b, "%s", text);
  return sb_str(&b);
}

static void check(const struct fault *f) {
  struct hopper_run r;
  static const struct hopper_case cases[] = {{.name = "gemm_128x256", .m = 130, .n = 520, .k = 264},
                                             {.name = "gemm_split2", .m = 60, .n = 68, .k = 1672},
                                             {.name = "multicast_sum", .rows = 448}};
  const struct hopper_case *c = cases;
  while (strcmp(c->name, f->module))
    c++;
  hopper_begin(&r);
  const char *text = hopper_text(&r.mem.arena, f->module);
  if (f->from)
    text = replace(&r.mem.arena, text, f->from, f->to);
  if (!hopper_parse(&r, text))
    fail_msg("'%s' -> '%s': %s", f->from, f->to, hopper_messages(&r));
  hopper_bind(&r, c);
  if (f->misplace)
    r.args[0].tensor.data = (char *)r.args[0].tensor.data + 2;
  if (hopper_emulate(&r, EMU_LATE) || !strstr(hopper_messages(&r), f->says))
    fail_msg("'%s' -> '%s': expected '%s', found: %s", f->from, f->to, f->says,
             hopper_messages(&r));
  hopper_end(&r);
}

static void barriers(void **state) {
  (void)state;
  static const struct fault all[] = {
      {"gemm_128x256", "side = consumer}", "side = consumer, start = 3}",
       "one bit of the number does not tell them apart", false},
      {"gemm_128x256", "%one = eq %wt, %0", "%one = ge %wt, %0",
       "has had the arrivals of that phase already", false},
      {"gemm_128x256", "%leader = eq %tid, %256", "%leader = ge %tid, %256", "is for one thread",
       false},
      {"gemm_128x256", "      pipe_init $ab\n", "      pipe_init $ab\n      pipe_init $ab\n",
       "has been made before", false},
      {"gemm_128x256", "        slot_next $mma\n",
       "        %odd = eq %lane, %7 : bool\n        if %odd {\n        yield\n        } else {\n"
       "        slot_next $mma\n        yield\n        }\n",
       "lanes stand at different places", false},
      {"multicast_sum", "slot_release $use, %1", "slot_release $use, %2", "of a cluster of 2",
       false},
      {"multicast_sum", "slot_release $use, %1", "slot_release $use, %0",
       "while one of the copies into slot 0", false},
      {"multicast_sum", "    cluster_arrive {sem = relaxed}\n",
       "    cluster_arrive {sem = relaxed}\n    cluster_arrive {sem = relaxed}\n",
       "before the warp has waited for its last one", false},
      {"gemm_split2", "rload $part, %from, %1", "rload $part, %from, %2", "of a cluster of 2",
       false},
      {"gemm_128x256", "bar_sync $group, %wg", "bar_sync $group, %2", "which has 2", false},
      {"gemm_128x256", "240", "160", "of a warp that has 168", false},
  };
  for (unsigned k = 0; k < sizeof all / sizeof *all; k++)
    check(&all[k]);
}

static void boxes(void **state) {
  (void)state;
  static const struct fault all[] = {
      {"gemm_128x256", "$tA, %l_sa", "$tA, %l_sb", "of buffer 'A', which has 49152", false},
      {"gemm_128x256", "$tA, %l_sa", "$tA, %64", "a multiple of 128 bytes", false},
      {"gemm_128x256", "$tA, %l_sa", "$tA, %128", "a multiple of its swizzle's pattern", false},
      {"gemm_128x256", NULL, NULL, "address is a multiple of 16 bytes", true},
      {"gemm_128x256", "strides [2 * A.stride1,", "strides [4 * A.stride1,",
       "innermost dim of a tensor map must be contiguous", false},
      {"gemm_128x256", "          fence_async\n",
       "          if %one {\n          fence_async\n          yield\n          } else {\n"
       "          yield\n          }\n",
       "without a fence_async after it", false},
      {"gemm_128x256", "$tA, %l_sa, %l_k", "$tA, %l_sa, %4",
       "at coordinate 4, 0 is an illegal instruction: a box starts at a multiple of 16 bytes",
       false},
      {"gemm_128x256", "            tma_store $tC, $C, %from, %col",
       "            %beyond = sub %0, %64 : s32\n            tma_store $tC, $C, %from, %beyond",
       "at coordinate -64, 0 is an illegal instruction: a box to store starts at no negative",
       false},
      {"gemm_128x256", "      param tmap 2 [N, M]", "      param tmap 2 [N - 4, M]",
       "writes 8 bytes past the end of the tensor's innermost dim", false},
      {"multicast_sum", "%l_row, %3 {multicast", "%l_row, %7 {multicast", "of mask 0x7", false},
      {"multicast_sum", "%mine = mul %rank, %4096", "%mine = mul %rank, %0",
       "while one of the copies into slot 0", false},
  };
  for (unsigned k = 0; k < sizeof all / sizeof *all; k++)
    check(&all[k]);
}

/* ---- launches that may begin before the kernel before them has ended ---- */

static const struct overlap {
  struct hopper_case c;
  const char *first; /* in the role that reads tensors, before it does */
  const char *reads; /* what is reported without a wait */
} overlaps[] = {
    {{.name = "gemm_128x256", .m = 72, .n = 264, .k = 136}, "slot_acquire $load\n", "tma_load"},
    {{.name = "gemm_split2", .m = 60, .n = 68, .k = 264}, "slot_acquire $load\n", "tma_load"},
    {{.name = "attention_full", .bh = 1, .s = 100}, "slot_acquire $q_load\n", "tma_load"},
    {{.name = "multicast_sum", .rows = 128}, "slot_acquire $load\n", "tma_load"},
    {{.name = "role_pipe", .rows = 17, .role = true}, "%p_v = gload", "gload"},
};

/* Runs the module with `before` put in before `at`. says: of each mode; NULL: it runs, and is
 * right. */
static void launch(const struct overlap *o, const char *at, const char *before, const char *says) {
  for (uint32_t mode = 0; mode < HOPPER_MODES; mode++) {
    struct hopper_run r;
    char wrong[200];
    hopper_begin(&r);
    struct arena *a = &r.mem.arena;
    const char *text =
        replace(a, hopper_text(a, o->c.name), "      regs 0\n", "      regs 0\n      pdl\n");
    text = replace(a, text, at, arena_printf(a, "%s%s", before, at));
    if (!hopper_parse(&r, text))
      fail_msg("%s: %s", o->c.name, hopper_messages(&r));
    hopper_bind(&r, &o->c);
    bool ok = hopper_emulate(&r, mode);
    if (ok != !says || (says && !strstr(hopper_messages(&r), says)))
      fail_msg("%s, mode %u: expected %s, found: %s", o->c.name, mode, says ? says : "no error",
               hopper_messages(&r));
    if (ok && !hopper_is_right(&r, &o->c, wrong, sizeof wrong))
      fail_msg("%s, mode %u: %s", o->c.name, mode, wrong);
    hopper_end(&r);
  }
}

/* All threads wait; or only those that read tensors, after which the pipe orders who writes; or
 * nobody, or those who write. */
static void launches(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof overlaps / sizeof *overlaps; k++) {
    const struct overlap *o = &overlaps[k];
    char says[100];
    snprintf(says, sizeof says, "'%s' reads byte", o->reads);
    launch(o, "    %consumer = in_role", "    pdl_wait\n", NULL);
    launch(o, o->first, "pdl_wait\n", NULL);
    launch(o, o->first, "", says);
    launch(o, "    if %consumer {\n",
           "    if %consumer {\n      pdl_wait\n      yield\n"
           "    } else {\n      yield\n    }\n",
           says);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(barriers),
      cmocka_unit_test(boxes),
      cmocka_unit_test(launches),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
