/* The public API: stages as text, passes, keys, compilation, and what is missing for it. */
#include "help_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static const char *const absent_b[] = {"B"};

static const char *show(struct help_api *t, struct kiln_variant *v, const char *stage,
                        const char *after) {
  const char *text;
  help_api_expect(t, kiln_show(v, stage, after, &text), KILN_OK, NULL);
  assert_non_null(text);
  return text;
}

static bool has_nvrtc(struct help_api *t) {
  const char *text;
  assert_int_equal(kiln_doctor(t->ctx, false, &text), KILN_OK);
  return help_api_matches(text, "\nNVRTC +[0-9]");
}

static void test_stages(void **state) {
  (void)state;
  static const struct {
    const char *stage, *after, *pattern;
  } shown[] = {
      {"tile", NULL, "^kiln-ir 1 tile\n"},
      {NULL, NULL, "^kiln-ir 1 tile\n"},
      {"scheduled", NULL, "^kiln-ir 1 scheduled\n"},
      {"machine", NULL, "^kiln-ir 1 machine\n"},
      {"schedule", NULL, "^kiln-schedule 1\nkernel .*\nknobs: .*\nload.*: path = frag"},
      {"recipe", NULL, "^kiln-recipe 1"},
      {"cuda", NULL, "__global__ .*axpy"},
      {NULL, "cse", "^kiln-ir 1 tile\n"},
      {"tile", "dce", "^kiln-ir 1 tile\n"},
      {NULL, "choose_paths", "^kiln-ir 1 scheduled\n"},
      {"tile", "lower_machine", "^kiln-ir 1 machine\n"},
      {"machine", "canonicalise", "^kiln-ir 1 tile\n"},
  };
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "k.lua", help_api_axpy);
  struct kiln_variant *v = help_api_specialise(file, NULL);
  for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
    const char *text = show(&t, v, shown[i].stage, shown[i].after);
    if (!help_api_matches(text, shown[i].pattern))
      fail_msg("%s after %s: expected /%s/ in: %s", shown[i].stage, shown[i].after,
               shown[i].pattern, text);
  }
  static const struct {
    const char *stage, *after, *says;
  } wrong[] = {
      {"frob", NULL,
       "no stage `frob`; stages are tile, scheduled, machine, schedule, recipe, cuda, ptx, sass"},
      {"", NULL, "no stage ``"},
      {"frob", "cse", "no stage `frob`"},
      {"tile", "frob", "no pass `frob`; passes are canonicalise, .*cse, .*lower_machine"},
      {"tile", "", "no pass ``"},
      {"cuda", "cse", "after a pass there is IR, not cuda"},
      {"sass", "cse", "not sass"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const char *text;
    help_api_expect(&t, kiln_show(v, wrong[i].stage, wrong[i].after, &text), KILN_INVALID,
                    wrong[i].says);
    assert_null(text);
  }
  assert_string_equal(kiln_variant_kernel(v), "axpy");
  assert_string_equal(kiln_variant_target(v), "sm_90a");
  kiln_variant_free(v);
  kiln_file_free(file);
  help_api_stop(&t);
}

static const char hopper_on_ampere[] =
    "kiln-ir 1 machine\nkernel k {\n  target sm_80\n  arg X: in f16 [M]\n  dims M\n  grid 1\n"
    "  layout #1 = [64,16] reg 2:(0,1) 2:(8,0) 2:(0,8) lane 4:(0,2) 8:(1,0) warp 4:(16,0)\n"
    "  res frag $a: f16(64,16) #1\n  res buf $s: f16(64,16)\n  param ptr X\n"
    "  recipe {\n    kiln-recipe 1\n    kernel \"k\"\n    target \"sm_80\"\n"
    "    arg in \"X\" f16 [M]\n    launch \"k\"\n      grid 2, 1, 1\n      block 128, 1, 1\n"
    "      cluster 2, 1, 1\n      smem 200000\n      regs 0\n      param ptr 0\n    end\n  }\n"
    "  body(%x: ptr f16) {\n    %0 = const 0 : s32\n    wgmma_fence\n"
    "    stmatrix $s, $a, %0, %0 {num = 4, trans = 0}\n    return\n  }\n}\n";

/* An IR text of each stage can be shown from there on, and says what it cannot give. */
static void test_stages_of_ir_texts(void **state) {
  (void)state;
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "k.lua", help_api_axpy), *ir;
  struct kiln_request r = help_api_request();
  r.target = "sm_80";
  struct kiln_variant *v = help_api_specialise(file, &r), *w;
  const char *text;
  ir = help_api_load(&t, "scheduled.tir", show(&t, v, "scheduled", NULL));
  w = help_api_specialise(ir, NULL);
  assert_true(help_api_matches(show(&t, w, NULL, NULL), "^kiln-ir 1 scheduled\n"));
  help_api_expect(&t, kiln_show(w, "tile", NULL, &text), KILN_INVALID,
                  "at the scheduled stage: this stage needs tile IR");
  help_api_expect(&t, kiln_show(w, "machine", NULL, &text), KILN_INVALID,
                  "at the scheduled stage: lowering needs tile IR");
  help_api_expect(&t, kiln_show(w, NULL, "cse", &text), KILN_INVALID, "running passes needs tile");
  kiln_variant_free(w);
  kiln_file_free(ir);

  ir = help_api_load(&t, "machine.tir", show(&t, v, "machine", NULL));
  w = help_api_specialise(ir, NULL);
  assert_string_equal(kiln_variant_target(w), "sm_80"); /* what it was lowered for */
  assert_true(help_api_matches(show(&t, w, NULL, NULL), "^kiln-ir 1 machine\n"));
  char *cuda = strdup(show(&t, w, "cuda", NULL)), key[33], same[33];
  assert_string_equal(show(&t, v, "cuda", NULL), cuda);
  free(cuda);
  help_api_expect(&t, kiln_variant_key(v, key), KILN_OK, NULL);
  help_api_expect(&t, kiln_variant_key(w, same), KILN_OK, NULL);
  assert_string_equal(key, same);
  help_api_expect(&t, kiln_show(w, "tile", NULL, &text), KILN_INVALID, "at the machine stage");
  help_api_expect(&t, kiln_interpret(w, NULL, 0, false), KILN_INVALID,
                  "at the machine stage: the interpreter needs tile or scheduled IR");
  const struct kiln_report *report;
  const char *const shape[] = {"M=4", "N=16"};
  r = help_api_request();
  r.shapes = shape;
  r.n_shapes = 2;
  help_api_expect(&t, kiln_run_case(ir, &r, KILN_ON_INTERP, 0, &report), KILN_INVALID,
                  "at the machine stage");
  kiln_variant_free(w);
  char *bare = strdup(show(&t, v, "machine", NULL)), *recipe = strstr(bare, "  recipe {\n");
  char *end = strstr(recipe, "\n  }\n") + strlen("\n  }\n");
  memmove(recipe, end, strlen(end) + 1);
  struct kiln_file *no_launch = help_api_load(&t, "bare.tir", bare);
  w = help_api_specialise(no_launch, NULL);
  help_api_expect(&t, kiln_show(w, "cuda", NULL, &text), KILN_INVALID, "the IR text has no launch");
  help_api_expect(&t, kiln_show(w, "recipe", NULL, &text), KILN_INVALID, "has no launch");
  assert_true(help_api_matches(show(&t, w, "machine", NULL), "^kiln-ir 1 machine\n"));
  free(bare);
  kiln_variant_free(w);
  kiln_file_free(no_launch);
  struct kiln_file *hopper = help_api_load(&t, "needs.tir", hopper_on_ampere);
  w = help_api_specialise(hopper, NULL);
  help_api_expect(&t, kiln_show(w, "cuda", NULL, &text), KILN_INVALID,
                  "stmatrix: sm_80 has no such unit; sm_90, sm_90a, sm_100, sm_120, sm_121 have");
  help_api_expect(&t, kiln_show(w, "cuda", NULL, &text), KILN_INVALID,
                  "wgmma_fence: sm_80 has no such unit; sm_90a have");
  help_api_expect(&t, kiln_show(w, "cuda", NULL, &text), KILN_INVALID,
                  "the launch has 200000 bytes of shared memory, sm_80 has 166912 for a block");
  help_api_expect(&t, kiln_show(w, "cuda", NULL, &text), KILN_INVALID,
                  "the launch has clusters of 2 blocks; sm_80 has none");
  kiln_variant_free(w);
  kiln_file_free(hopper);
  r.target = "sm_90a";
  help_api_expect(&t, kiln_specialise(ir, &r, &w), KILN_INVALID,
                  "--target: the IR text was lowered for sm_80, not sm_90a");
  kiln_file_free(ir);
  kiln_variant_free(v);
  kiln_file_free(file);
  help_api_stop(&t);
}

/* What one kernel asked for in one way gives, in a context of its own. */
static void key_of(const char *text, const struct kiln_request *r, char key[33]) {
  struct help_api t;
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "k.lua", text);
  struct kiln_variant *v = help_api_specialise(file, r);
  help_api_expect(&t, kiln_variant_key(v, key), KILN_OK, NULL);
  assert_int_equal(strspn(key, "0123456789abcdef"), 32);
  assert_int_equal(key[32], 0);
  kiln_variant_free(v);
  kiln_file_free(file);
  help_api_stop(&t);
}

static char *replaced(const char *text, const char *from, const char *to) {
  const char *at = strstr(text, from);
  assert_non_null(at);
  char *out = malloc(strlen(text) + strlen(to) + 1);
  assert_non_null(out);
  sprintf(out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
  return out;
}

#define LIST(field, ...)                                                                           \
  .n_##field = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *),                        \
  .field = (const char *const[]) {                                                                 \
    __VA_ARGS__                                                                                    \
  }

#define SHAPE                                                                                      \
  LIST(shapes, "M=64", "N=64"), .case_index = -1, .struct_size = sizeof(struct kiln_request)

static void test_keys(void **state) {
  (void)state;
  const struct kiln_request base = {SHAPE};
  const struct kiln_request others[] = {
      {SHAPE, LIST(set, "BM=8")},
      {SHAPE, LIST(set, "BN=32")},
      {SHAPE, LIST(set, "threads=64")},
      {SHAPE, LIST(consts, "T=bf16")},
      {SHAPE, LIST(consts, "T=f16")},
      {SHAPE, .target = "sm_80"},
      {SHAPE, LIST(layouts, "X=col")},
      {SHAPE, LIST(strides, "X=65,1")},
      {SHAPE, LIST(absent, "B")},
      {SHAPE, .lineinfo = true},
      {LIST(shapes, "M=63", "N=64"), .case_index = -1, .struct_size = sizeof base},
      {LIST(shapes, "M=64", "N=63"), .case_index = -1, .struct_size = sizeof base},
  };
  enum { N = sizeof others / sizeof *others };
  char keys[N + 2][33], again[33];
  key_of(help_api_axpy, &base, keys[0]);
  key_of(help_api_axpy, &base, again);
  assert_string_equal(keys[0], again);
  for (int i = 0; i < N; i++)
    key_of(help_api_axpy, &others[i], keys[i + 1]);
  char *other = replaced(help_api_axpy, "* a.alpha", "* a.alpha * 2");
  key_of(other, &base, keys[N + 1]);
  free(other);
  for (int i = 0; i < N + 2; i++)
    for (int k = 0; k < i; k++)
      if (strcmp(keys[i], keys[k]) == 0)
        fail_msg("inputs %d and %d have one key", i, k);
  /* What does not enter: data, where the text stands, sizes of one class of divisibility. */
  const struct kiln_request same[] = {
      {SHAPE, .seed = 5},
      {SHAPE, LIST(scalars, "alpha=3")},
      {LIST(shapes, "M=192", "N=320"), .case_index = -1, .struct_size = sizeof base},
      {SHAPE, LIST(set, "BM=4")},
      {SHAPE, .kernel = "axpy", .target = "sm_90a"},
  };
  for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
    key_of(help_api_axpy, &same[i], again);
    assert_string_equal(again, keys[0]);
  }
  other = replaced(help_api_axpy, "  grid", "\n\n  -- a remark\n  grid");
  key_of(other, &base, again);
  free(other);
  assert_string_equal(again, keys[0]);
}

/* One more process, with another environment, gives the same key. */
static void test_key_of_another_process(void **state) {
  (void)state;
  const struct kiln_request base = {SHAPE};
  char key[33], line[64] = "", command[512];
  key_of(help_api_axpy, &base, key);
  snprintf(command, sizeof command, "cd / && HOME=/nonexistent LC_ALL=C.UTF-8 '%s' --key",
           getenv("KILN_TEST_SELF"));
  FILE *p = popen(command, "r");
  assert_non_null(p);
  assert_non_null(fgets(line, sizeof line, p));
  assert_int_equal(pclose(p), 0);
  line[strcspn(line, "\n")] = 0;
  assert_string_equal(line, key);
}

static void test_compile(void **state) {
  (void)state;
  struct help_api t;
  help_api_start(&t, NULL);
  if (!has_nvrtc(&t)) {
    print_message("SKIP: compiling needs NVRTC\n");
    help_api_stop(&t);
    skip();
  }
  struct kiln_file *file = help_api_load(&t, "k.lua", help_api_axpy);
  struct kiln_request r = help_api_request();
  r.n_absent = 1;
  r.absent = absent_b;
  struct kiln_variant *v = help_api_specialise(file, &r);
  struct kiln_compile_info info = {0};
  help_api_expect(&t, kiln_compile(v, &info), KILN_OK, NULL);
  assert_true(info.registers > 0 && info.registers < 256);
  assert_int_equal(info.spill_bytes, 0);
  assert_true(info.threads >= 32 && info.threads % 32 == 0);
  assert_true(info.cubin_bytes > 0);
  assert_true(info.trace_ms > 0 && info.lower_ms > 0 && info.emit_ms > 0 && info.nvrtc_ms > 0);
  assert_false(info.in_helper);
  const void *cubin, *same;
  size_t n, n_same;
  help_api_expect(&t, kiln_variant_cubin(v, &cubin, &n), KILN_OK, NULL);
  assert_int_equal(n, info.cubin_bytes);
  assert_memory_equal(cubin, "\177ELF", 4);
  help_api_expect(&t, kiln_compile(v, NULL), KILN_OK, NULL);
  help_api_expect(&t, kiln_variant_cubin(v, &same, &n_same), KILN_OK, NULL);
  assert_ptr_equal(cubin, same); /* compiled once */
  assert_true(help_api_matches(show(&t, v, "ptx", NULL), "\\.target sm_90a"));
  const char *sass;
  enum kiln_status st = kiln_show(v, "sass", NULL, &sass);
  if (st == KILN_UNAVAILABLE) {
    help_api_expect(&t, st, KILN_UNAVAILABLE, "nvdisasm was not found");
    print_message("SASS is not shown: no nvdisasm\n");
  } else {
    help_api_expect(&t, st, KILN_OK, NULL);
    assert_non_null(strstr(sass, "EXIT"));
  }
  kiln_variant_free(v);
  kiln_file_free(file);
  help_api_stop(&t);
}

static void put_tool(const char *dir, const char *script) {
  char path[128];
  snprintf(path, sizeof path, "%s/nvdisasm", dir);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  assert_true(fputs(script, f) >= 0);
  assert_int_equal(fclose(f), 0);
  assert_int_equal(chmod(path, 0755), 0);
}

/* The disassembler is a program of the toolkit; here stands another in its place. */
static void test_disassembler(void **state) {
  (void)state;
  struct help_api t;
  help_api_start(&t, NULL);
  if (!has_nvrtc(&t)) {
    print_message("SKIP: compiling needs NVRTC\n");
    help_api_stop(&t);
    skip();
  }
  char dir[] = "/tmp/kiln-api-XXXXXX", path[4096], command[128];
  assert_non_null(mkdtemp(dir));
  char *former = strdup(getenv("PATH")), *tmp = getenv("TMPDIR") ? strdup(getenv("TMPDIR")) : NULL;
  snprintf(path, sizeof path, ":%s:%s", dir, former);
  setenv("PATH", path, 1);
  struct kiln_file *file = help_api_load(&t, "k.lua", help_api_axpy);
  struct kiln_variant *v = help_api_specialise(file, NULL);
  const char *text;
  put_tool(dir, "#!/bin/sh\nhead -c 4 \"$2\" | grep -q ELF && seq 1 5000 && echo EXIT\n");
  setenv("TMPDIR", dir, 1);
  assert_true(help_api_matches(show(&t, v, "sass", NULL), "^1\n2\n.*\n5000\nEXIT\n$"));
  put_tool(dir, "#!/bin/sh\necho 'no such architecture' >&2\nexit 3\n");
  help_api_expect(&t, kiln_show(v, "sass", NULL, &text), KILN_FAILED,
                  "nvdisasm failed on the cubin: no such architecture");
  put_tool(dir, "#!/bin/sh\nkill -9 $$\n");
  help_api_expect(&t, kiln_show(v, "sass", NULL, &text), KILN_FAILED, "nvdisasm failed");
  put_tool(dir, "no program\n");
  help_api_expect(&t, kiln_show(v, "sass", NULL, &text), KILN_FAILED, "nvdisasm failed");
  setenv("TMPDIR", "/nonexistent", 1);
  help_api_expect(&t, kiln_show(v, "sass", NULL, &text), KILN_FAILED,
                  "cannot write /nonexistent/kiln-[^ ]*: No such file");
  /* Nothing is left but the tool. */
  snprintf(command, sizeof command, "test \"$(ls %s)\" = nvdisasm && rm -r %s", dir, dir);
  assert_int_equal(system(command), 0);
  setenv("PATH", former, 1);
  if (tmp)
    setenv("TMPDIR", tmp, 1);
  else
    unsetenv("TMPDIR");
  free(former);
  free(tmp);
  kiln_variant_free(v);
  kiln_file_free(file);
  help_api_stop(&t);
}

/* Without NVRTC everything up to the CUDA source works, and the message says what to do. */
static void test_without_nvrtc(void **state) {
  (void)state;
  struct help_api t;
  char key[33], *former = getenv("KILN_NVRTC") ? strdup(getenv("KILN_NVRTC")) : NULL;
  setenv("KILN_NVRTC", "/nonexistent", 1);
  help_api_start(&t, NULL);
  struct kiln_file *file = help_api_load(&t, "k.lua", help_api_axpy);
  struct kiln_variant *v = help_api_specialise(file, NULL);
  struct kiln_compile_info info;
  const char *text;
  const void *cubin = &info;
  size_t n = 1;
  help_api_expect(&t, kiln_compile(v, &info), KILN_UNAVAILABLE,
                  "NVRTC.*KILN_NVRTC names /nonexistent.*install .*K0803");
  help_api_expect(&t, kiln_variant_cubin(v, &cubin, &n), KILN_UNAVAILABLE, "NVRTC");
  assert_null(cubin);
  assert_int_equal(n, 0);
  help_api_expect(&t, kiln_show(v, "ptx", NULL, &text), KILN_UNAVAILABLE, "NVRTC");
  assert_null(text);
  help_api_expect(&t, kiln_show(v, "sass", NULL, &text), KILN_UNAVAILABLE, "NVRTC");
  assert_non_null(show(&t, v, "cuda", NULL));
  help_api_expect(&t, kiln_variant_key(v, key), KILN_OK, NULL);
  kiln_variant_free(v);
  kiln_file_free(file);
  help_api_stop(&t);
  if (former)
    setenv("KILN_NVRTC", former, 1);
  else
    unsetenv("KILN_NVRTC");
  free(former);
}

static void test_without_gpu(void **state) {
  (void)state;
  struct help_api t;
  help_api_start(&t, NULL);
  const char *text;
  assert_int_equal(kiln_doctor(t.ctx, true, &text), KILN_OK);
  if (strstr(text, "\"gpus\":[{")) {
    print_message("SKIP: this machine has a GPU\n");
    help_api_stop(&t);
    skip();
  }
  bool nvrtc = has_nvrtc(&t);
  struct kiln_file *file = help_api_load(&t, "k.lua", help_api_axpy);
  const struct kiln_report *report;
  help_api_expect(&t, kiln_run_case(file, NULL, KILN_ON_GPU, KILN_CASE_VERIFY, &report),
                  KILN_UNAVAILABLE, "CUDA driver.*K0901");
  assert_null(report);
  struct kiln_variant *v = help_api_specialise(file, NULL);
  struct kiln_launch *launch;
  struct kiln_arg args[4] = {0};
  help_api_expect(&t, kiln_prepare(v, 0, args, 4, &launch), KILN_UNAVAILABLE,
                  nvrtc ? "CUDA driver.*K0901" : "NVRTC.*K0803");
  assert_null(launch);
  help_api_expect(&t, kiln_prepare(v, 1, args, 4, &launch), KILN_INVALID, "device 1");
  assert_null(launch);
  kiln_launch_free(NULL);
  kiln_variant_free(v);
  kiln_file_free(file);
  help_api_stop(&t);
}

/* What the kernel's text pins of single ops reaches the schedule, the key, and the lowering. */
static void test_pins(void **state) {
  (void)state;
  static const struct {
    const char *pins, *shown, *says;
  } rows[] = {
      {"", "loop: slots = [2-8]\n", NULL},
      {"loop = {slots = 2}, ['load.A'] = {path = 'staged'}", "slots = 2.*load.A: path = staged",
       NULL},
      {"dot = {warps = '2x1'}", "threads = 64,.*warps = 2x1", NULL},
      {"['dot.warps'] = '2x1'", "warps = 2x1", NULL},
      {"dot = {warps = true}", NULL, "k.lua:1:.*schedule `dot.warps`: expected a whole number or"},
      {"dot = {warps = 4}", NULL, "k.lua:5:.*schedule `dot.warps`.* must be two numbers"},
      {"dots = {warps = '4x1'}", NULL, "k.lua:.*schedule `dots.warps`: neither a knob nor"},
  };
  struct help_api t;
  char key[2][33];
  help_api_start(&t, NULL);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char text[1024];
    const char *shown;
    snprintf(text, sizeof text,
             "return kernel { name = 'k', args = { tensor('A', bf16, 'M', 'K'),\n"
             "    tensor('B', bf16, 'K', 'N'), out('C', bf16, 'M', 'N') }, schedule = {%s},\n"
             "  grid = function(d) return cdiv(d.M, 64), cdiv(d.N, 64) end,\n"
             "  body = function(a, d, c, i, j) local acc = zeros(f32, 64, 64)\n"
             "    for k in range(0, d.K, 32) do acc = acc + dot(a.A:tile({i * 64, k}, {64, 32}),\n"
             "      a.B:tile({k, j * 64}, {32, 64})) end\n"
             "    a.C:store({i * 64, j * 64}, cast(acc, bf16)) end,\n"
             "  cases = {{shape = {M = 64, N = 64, K = 64}}} }\n",
             rows[i].pins);
    print_message("%s\n", rows[i].pins);
    struct kiln_file *file = help_api_load(&t, "k.lua", text);
    struct kiln_variant *v = NULL;
    enum kiln_status st = kiln_specialise(file, NULL, &v);
    if (st == KILN_OK)
      st = kiln_show(v, "schedule", NULL, &shown);
    help_api_expect(&t, st, rows[i].says ? KILN_INVALID : KILN_OK, rows[i].says);
    if (rows[i].shown && !help_api_matches(shown, rows[i].shown))
      fail_msg("expected /%s/ in: %s", rows[i].shown, shown);
    if (i < 2)
      help_api_expect(&t, kiln_variant_key(v, key[i]), KILN_OK, NULL);
    kiln_variant_free(v);
    kiln_file_free(file);
  }
  assert_string_not_equal(key[0], key[1]);
  help_api_stop(&t);
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "--key") == 0) {
    const struct kiln_request base = {SHAPE};
    char key[33];
    key_of(help_api_axpy, &base, key);
    printf("%s\n", key);
    return 0;
  }
  char self[4096];
  assert_non_null(realpath(argv[0], self));
  setenv("KILN_TEST_SELF", self, 1);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_stages),        cmocka_unit_test(test_stages_of_ir_texts),
      cmocka_unit_test(test_keys),          cmocka_unit_test(test_key_of_another_process),
      cmocka_unit_test(test_compile),       cmocka_unit_test(test_disassembler),
      cmocka_unit_test(test_without_nvrtc), cmocka_unit_test(test_without_gpu),
      cmocka_unit_test(test_pins),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
