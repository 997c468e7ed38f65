/* Mutants of the modules for Hopper in tests/machine, and of products that were lowered for
 * clusters: each synchronisation in turn deleted or
 * weakened. Each is noticed by the verifier, by the emulator in some mode or by wrong results, or
 * it is listed in tests/machine/mutants_equivalent.txt with the reason why it does no harm.
 * KILN_MUTANTS=1 prints all of them, and what noticed them. */
#include "help_hopper.h"

#include "base/str.h"
#include "help_cg.h"

#include <stdlib.h>
#include <string.h>

struct mutant {
  const char *op, *from, *to; /* in lines with `op`; from NULL: the line goes */
};

static const struct mutant mutants[] = {
    {"pipe_init", NULL, NULL},
    {"fence_init", NULL, NULL},
    {"bar_sync", NULL, NULL},
    {"bar_arrive", NULL, NULL},
    {"    barrier", NULL, NULL},
    {"slot_acquire", NULL, NULL},
    {"slot_expect", NULL, NULL},
    {"slot_wait", NULL, NULL},
    {"slot_release", NULL, NULL},
    {"slot_release", " {behind = 1}", ""},
    {"slot_next", NULL, NULL},
    {"wgmma_fence", NULL, NULL},
    {"wgmma_commit", NULL, NULL},
    {"wgmma_wait", NULL, NULL},
    {"wgmma_wait", "pending = 1", "pending = 2"},
    {"wgmma_wait", "pending = 0", "pending = 1"},
    {"fence_async", NULL, NULL},
    {"bulk_commit", NULL, NULL},
    {"bulk_wait", NULL, NULL},
    {"bulk_wait", "pending = 3", "pending = 4"},
    {"bulk_wait", "pending = 0", "pending = 1"},
    {"cluster_arrive", NULL, NULL},
    {"cluster_arrive", "release", "relaxed"},
    {"cluster_wait", NULL, NULL},
    {"up = 0", NULL, NULL},
    {"res pipe", "arrivals = 2", "arrivals = 1"},
    {"res pipe", "arrivals = 2", "arrivals = 3"},
    {"res pipe", "arrivals = 1", "arrivals = 2"},
    {"res pipe", "bytes = 49152", "bytes = 49136"},
    {"res pipe", "bytes = 49152", "bytes = 49168"},
    {"res pipe", "bytes = 16384", "bytes = 16368"},
    {"res pipe", "bytes = 32768", "bytes = 32784"},
    {"res pipe", "bytes = 8192", "bytes = 4096"},
    {"res pipe", "fills = 128", "fills = 96"},
    {"res pipe", "fills = 128", "fills = 160"},
    {"res pipe", "arrivals = 128", "arrivals = 96"},
    {"res pipe", "arrivals = 128", "arrivals = 160"},
    {"slot_fill", NULL, NULL},
    {"tma_load", ", %3 {multicast", ", %2 {multicast"},
    {"tma_load", " {multicast = 1}", ""},
    {"slot_release", ", %", "; , %"},
    {"res bar", "threads = 128", "threads = 96"},
    {"res bar", "threads = 128", "threads = 160"},
    {"res bar", "threads = 256", "threads = 224"},
    {"res bar", "threads = 384", "threads = 352"},
};

/* The text with mutant x made at its n-th place; NULL: it has fewer. */
static const char *mutate(struct arena *a, const char *text, const struct mutant *x, uint32_t n) {
  for (const char *at = text, *stop; (stop = strchr(at, '\n')); at = stop + 1) {
    const char *op = strstr(at, x->op), *from = x->from ? strstr(at, x->from) : at;
    if (!op || op > stop || !from || from > stop || *at == ';' || n--)
      continue;
    const char *rest = x->from ? from + strlen(x->from) : stop + 1;
    return arena_printf(a, "%.*s%s%s", (int)(from - text), text, x->to ? x->to : "", rest);
  }
  return NULL;
}

/* Is it noticed on this case in some mode? how: by what. */
static bool is_caught(const char *text, const struct hopper_case *c, char *how, size_t size) {
  for (uint32_t mode = 0; mode < HOPPER_MODES; mode++) {
    struct hopper_run r;
    hopper_begin(&r);
    bool ok = hopper_parse(&r, text);
    if (ok)
      hopper_bind(&r, c);
    ok = ok && hopper_emulate(&r, mode);
    if (!ok)
      snprintf(how, size, "mode %u: %s", mode,
               r.diags.list.n ? r.diags.list.at[0].message : "no reason given");
    ok = ok && hopper_is_right(&r, c, how, size);
    hopper_end(&r);
    if (!ok)
      return true;
  }
  return false;
}

/* tests/machine/mutants_equivalent.txt: names, each with its reason below it. */
static char *listed;

static void read_list(void) {
  char path[512];
  snprintf(path, sizeof path, "%s/tests/machine/mutants_equivalent.txt", KILN_SRC_DIR);
  FILE *f = fopen(path, "rb");
  if (!f)
    fail_msg("%s is not there", path);
  listed = calloc(1, 1 << 16);
  listed[0] = '\n';
  size_t n = fread(listed + 1, 1, (1 << 16) - 2, f);
  assert_true(n > 0);
  fclose(f);
}

static bool is_listed(const char *name) {
  char line[256];
  snprintf(line, sizeof line, "\n%s\n  ", name);
  return strstr(listed, line) != NULL;
}

/* Every mutant of one text, on each of the cases. */
static void mutants_of_text(const char *text, const struct hopper_case *cases, uint32_t n_cases) {
  struct help_arena h;
  char how[300] = "", name[200];
  uint32_t n = 0, alive = 0, wrong = 0;
  help_arena_init(&h);
  for (uint32_t k = 0; k < sizeof mutants / sizeof *mutants; k++)
    for (uint32_t place = 0;; place++, n++) {
      const char *changed = mutate(&h.arena, text, &mutants[k], place);
      if (!changed)
        break;
      bool caught = false;
      for (uint32_t c = 0; c < n_cases && !caught; c++)
        caught = is_caught(changed, &cases[c], how, sizeof how);
      snprintf(name, sizeof name, "machine/%s, %s %u, %s%s%s", cases[0].name, mutants[k].op, place,
               mutants[k].from ? mutants[k].from : "deleted", mutants[k].from ? " -> " : "",
               mutants[k].from ? mutants[k].to : "");
      alive += !caught;
      if (getenv("KILN_MUTANTS"))
        printf("%s: %s\n", name, caught ? how : "alive");
      if (caught == is_listed(name)) {
        print_error("%s: %s, %s listed\n", name, caught ? how : "not noticed",
                    caught ? "and is" : "and is not");
        wrong++;
      }
    }
  printf("%s: %u mutants, %u do no harm\n", cases[0].name, n, alive);
  arena_free(&h.arena);
  assert_true(n > 15);
  assert_int_equal(wrong, 0);
}

static void mutants_of(const struct hopper_case *cases, uint32_t n_cases) {
  struct help_arena h;
  help_arena_init(&h);
  mutants_of_text(hopper_text(&h.arena, cases[0].name), cases, n_cases);
  arena_free(&h.arena);
}

/* The same of a product's machine code, lowered for shapes like the case's. */
static void mutants_of_lowered(const struct hopper_case *c, const char *knobs, uint32_t computed) {
  struct cg_gemm product = {.t = DT_BF16, .bm = 64, .bn = 64, .bk = 32, .computed = computed};
  struct cg_test t;
  struct strbuf tile = {0}, text = {0};
  struct help_arena h;
  help_arena_init(&h);
  tile.arena = text.arena = &h.arena;
  cg_gemm_text(&tile, &product);
  cg_test_begin(&t, sb_str(&tile));
  const char *dims = arena_printf(&h.arena, "M=%d,N=%d,K=%d", (int)c->m, (int)c->n, (int)c->k);
  cg_test_args(&t, dims, "", 0, 1);
  if (!cg_test_lower(&t, "sm_90a", knobs))
    fail_msg("%s", cg_test_messages(&t));
  ir_print(t.machine, (struct ir_print_options){0}, &text);
  mutants_of_text(sb_str(&text), c, 1);
  cg_test_end(&t);
  arena_free(&h.arena);
}

/* Odd numbers of tiles along the cluster's axis, more of them than blocks. */
static void rows_shared(void **state) {
  (void)state;
  mutants_of_lowered(
      &(struct hopper_case){.name = "lowered, shared along axis 0", .m = 136, .n = 136, .k = 136},
      "warpgroups=1,stages=2,cluster=2,cluster_axis=0", 0);
}

static void columns_shared(void **state) {
  (void)state;
  mutants_of_lowered(
      &(struct hopper_case){.name = "lowered, shared along axis 1", .m = 72, .n = 264, .k = 136},
      "warpgroups=1,stages=2,cluster=2,cluster_axis=1", 0);
}

/* Blocks of a cluster share the loop; several tiles each. */
static void loop_shared(void **state) {
  (void)state;
  mutants_of_lowered(
      &(struct hopper_case){.name = "lowered, loop shared", .m = 136, .n = 136, .k = 200},
      "warpgroups=1,stages=2,split_k=2,split_cluster=1", 0);
}

/* A goes on to registers; several tiles a block. */
static void computed_a(void **state) {
  (void)state;
  mutants_of_lowered(
      &(struct hopper_case){.name = "lowered, a computed", .m = 136, .n = 264, .k = 136},
      "warpgroups=1,stages=2", 1);
}

/* B goes through registers and back to shared memory. */
static void computed_b(void **state) {
  (void)state;
  mutants_of_lowered(
      &(struct hopper_case){.name = "lowered, b computed", .m = 136, .n = 264, .k = 136},
      "warpgroups=1,stages=2", 2);
}

static void gemm(void **state) {
  (void)state;
  mutants_of((struct hopper_case[]){{.name = "gemm_128x256", .m = 130, .n = 520, .k = 264}}, 1);
}

static void gemm_split(void **state) {
  (void)state;
  mutants_of((struct hopper_case[]){{.name = "gemm_split2", .m = 60, .n = 68, .k = 1672}}, 1);
}

static void attention(void **state) {
  (void)state;
  mutants_of((struct hopper_case[]){{.name = "attention_full", .bh = 1, .s = 400},
                                    {.name = "attention_full", .bh = 7, .s = 100}},
             2);
}

static void attention_causal(void **state) {
  (void)state;
  mutants_of(
      (struct hopper_case[]){{.name = "attention_causal", .bh = 2, .s = 300, .causal = true},
                             {.name = "attention_causal", .bh = 7, .s = 100, .causal = true}},
      2);
}

static void multicast(void **state) {
  (void)state;
  mutants_of((struct hopper_case[]){{.name = "multicast_sum", .rows = 448}}, 1);
}

static void role_to_role(void **state) {
  (void)state;
  mutants_of((struct hopper_case[]){{.name = "role_pipe", .rows = 17, .role = true}}, 1);
}

int main(void) {
  read_list();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gemm),        cmocka_unit_test(gemm_split),
      cmocka_unit_test(attention),   cmocka_unit_test(attention_causal),
      cmocka_unit_test(multicast),   cmocka_unit_test(role_to_role),
      cmocka_unit_test(rows_shared), cmocka_unit_test(columns_shared),
      cmocka_unit_test(loop_shared), cmocka_unit_test(computed_a),
      cmocka_unit_test(computed_b),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  free(listed);
  return failed;
}
