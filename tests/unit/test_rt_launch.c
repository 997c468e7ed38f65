/* Devices, buffers, launches by recipe and timing on the fake driver: what is handed to the driver,
 * what is refused and in which words, and that every failing allocation and every failing driver
 * call ends in one error and leaves nothing behind. */
#include "help_fake.h"

#include <stdlib.h>
#include <string.h>

static const unsigned char elf[64] = "\177ELF";

/* ---- fixture ---- */

struct fixture {
  struct help_mem mem;
  struct help_arena arena;
  struct diag_sink diags;
  struct rt_ctx *ctx;
  struct rt_device *dev;
  struct rt_module *module;
};

static const struct fake_kernel kernels[] = {{.name = "main_kernel", .n_params = 6, .us = 100},
                                             {.name = "tail_kernel", .us = 10},
                                             {.name = NULL}};

static void start(struct fixture *f) {
  memset(f, 0, sizeof *f);
  help_fake_start();
  fake.kernels = kernels;
  help_mem_init(&f->mem);
  help_arena_init(&f->arena);
  assert_true(diag_init(&f->diags, &mem_libc));
  assert_int_equal(rt_ctx_new(&f->mem.alloc, &f->diags, NULL, &f->ctx), RT_OK);
  rt_use_cuda(f->ctx, &fake_cuda);
  assert_int_equal(rt_device_open(f->ctx, 0, &f->dev), RT_OK);
  assert_int_equal(rt_module_load(f->dev, elf, sizeof elf, &f->module), RT_OK);
}

static void stop(struct fixture *f) {
  rt_module_free(f->module);
  rt_device_close(f->dev);
  rt_ctx_free(f->ctx);
  assert_int_equal(f->mem.live_blocks, 0);
  if (!fake.sticky)
    help_fake_check();
  diag_free(&f->diags);
  arena_free(&f->arena.arena);
}

static struct recipe *parse(struct help_arena *a, struct diag_sink *diags, const char *text) {
  struct symtab *syms = symtab_new(&a->arena);
  struct recipe *r = recipe_parse(&a->arena, syms, diags, 0, text, strlen(text));
  if (!r)
    fail_msg("%s", help_last_message(diags));
  return r;
}

static const char gemm_text[] =
    "kiln-recipe 1\n"
    "kernel \"gemm\"\n"
    "target \"sm_90a\"\n"
    "arg in \"A\" bf16 [M, K]\n"
    "arg in \"B\" bf16 [K, N]\n"
    "arg in optional \"bias\" f32 [N]\n"
    "arg out \"C\" f32 [M, N]\n"
    "arg in \"S\" f32 [cdiv(M, 128), 2]\n"
    "arg scalar \"alpha\" f32\n"
    "arg scalar \"shift\" s32\n"
    "check A.stride1 == 1 or A.stride0 == 1 : \"A must have a stride of 1\"\n"
    "check bias.stride0 == 1 : \"bias must be contiguous\"\n"
    "check A.addr % 16 == 0 : \"A must be aligned to 16 bytes\"\n"
    "workspace 4 * M\n"
    "memset 0, 4 * M\n"
    "launch \"main_kernel\"\n"
    "  grid cdiv(M, 128), cdiv(N, 256), min(sm_count, shift + 1)\n"
    "  block 256, 1, 1\n"
    "  cluster 2, 1, 1\n"
    "  smem 100000\n"
    "  regs 168\n"
    "  param ptr 0\n"
    "  param ptr 2\n"
    "  param workspace 4\n"
    "  param i32 M\n"
    "  param i64 A.stride0 * K\n"
    "  param scalar 5\n"
    "end\n"
    "launch \"tail_kernel\"\n"
    "  grid 1, 1, 1\n"
    "  block 32, 1, 1\n"
    "  cluster 1, 1, 1\n"
    "  smem 0\n"
    "  regs 0\n"
    "end\n";

static _Alignas(256) unsigned char memory[4][1 << 16];

static struct rt_tensor tensor(enum dtype t, void *data, int64_t d0, int64_t d1) {
  struct rt_tensor x = {.data = data, .dtype = t, .rank = 2, .dim = {d0, d1}};
  rt_tensor_contiguous(&x);
  return x;
}

/* M = 256, N = 40, K = 64. */
static void gemm_args(struct rt_arg args[7]) {
  memset(args, 0, 7 * sizeof *args);
  args[0].tensor = tensor(DT_BF16, memory[0], 256, 64);
  args[1].tensor = tensor(DT_BF16, memory[1], 64, 40);
  args[2].tensor = (struct rt_tensor){
      .data = memory[1] + 32768, .dtype = DT_F32, .rank = 1, .dim = {40}, .stride = {1}};
  args[3].tensor = tensor(DT_F32, memory[2], 256, 40);
  args[4].tensor = tensor(DT_F32, memory[3], 2, 2);
  args[5].f64 = 0.1;
  args[6].i64 = 4;
}

/* ---- devices ---- */

static void test_device(void **state) {
  (void)state;
  struct fixture f;
  start(&f);
  const struct rt_device_info *i = rt_device_info(f.dev);
  assert_string_equal(i->name, "Fake GPU");
  assert_string_equal(i->uuid, "GPU-00112233-4455-6677-8899-aabbccddeeff");
  assert_string_equal(i->pci, "0000:17:00.0");
  assert_string_equal(i->arch, "sm_90a");
  assert_true(i->sm_count == 132 && i->smem_per_block_optin == 232448);
  struct rt_device *none;
  assert_int_equal(rt_device_open(f.ctx, 1, &none), RT_BAD_INPUT);
  help_expect_diag(&f.diags, DIAG_NO_DRIVER, "there is no GPU 1: the driver has 1");
  struct rt_module *m;
  assert_int_equal(rt_module_load(f.dev, "nonsense", 8, &m), RT_BAD_INPUT);
  help_expect_diag(&f.diags, DIAG_DRIVER, "not a cubin");
  rt_stream s, again;
  assert_int_equal(rt_device_stream(f.dev, &s), RT_OK);
  assert_int_equal(rt_device_stream(f.dev, &again), RT_OK);
  assert_ptr_equal(s, again);
  assert_false(rt_stream_is_capturing(f.dev, s));
  stop(&f);
  /* No GPU, no driver. */
  struct rt_ctx *ctx;
  struct help_mem mem;
  help_mem_init(&mem);
  assert_true(diag_init(&f.diags, &mem_libc));
  help_fake_start();
  fake.n_devices = 0;
  assert_int_equal(rt_ctx_new(&mem.alloc, &f.diags, NULL, &ctx), RT_OK);
  rt_use_cuda(ctx, &fake_cuda);
  assert_int_equal(rt_device_open(ctx, 0, &none), RT_MISSING);
  help_expect_diag(&f.diags, DIAG_NO_DRIVER, "finds no GPU");
  rt_use_cuda(ctx, NULL);
  int count;
  assert_int_equal(rt_device_count(ctx, &count), RT_MISSING);
  rt_ctx_free(ctx);
  diag_free(&f.diags);
}

/* Two GPUs of two architectures: what is launched, allocated and refused goes by the device that it
 * is asked of, whichever is the caller's current one (docs/cases.md, case 17). */
static void test_two_devices(void **state) {
  (void)state;
  struct fixture f;
  struct rt_device *other;
  struct rt_module *module;
  struct rt_prepared *p;
  struct rt_arg args[7];
  start(&f);
  fake.n_devices = 2;
  fake.other_cc_major = 8;
  fake.other_cc_minor = 6;
  assert_int_equal(rt_device_open(f.ctx, 1, &other), RT_OK);
  assert_string_equal(rt_device_info(f.dev)->arch, "sm_90a");
  assert_string_equal(rt_device_info(other)->arch, "sm_86");
  assert_int_equal(rt_module_load(other, elf, sizeof elf, &module), RT_OK);
  static const char *const targets[] = {"sm_90a", "sm_86", "sm_80", "sm_89", "sm_90"};
  static const bool runs[][2] = {
      {true, false}, {false, true}, {false, true}, {false, false}, {true, false}};
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
    for (int d = 0; d < 2; d++) {
      char *text = strdup(gemm_text), want[120], *at;
      char *replaced = malloc(strlen(text) + 16);
      assert_true(text && replaced);
      at = strstr(text, "sm_90a");
      sprintf(replaced, "%.*s%s%s", (int)(at - text), text, targets[i], at + strlen("sm_90a"));
      struct recipe *r = parse(&f.arena, &f.diags, replaced);
      gemm_args(args);
      assert_int_equal(rt_device_sync(d ? f.dev : other), RT_OK); /* the other one is current */
      enum rt_status st = rt_prepare(d ? module : f.module, r, args, 7, NULL, &p);
      assert_int_equal(st, runs[i][d] ? RT_OK : RT_BAD_INPUT);
      if (st == RT_OK) {
        fake.n_launches = 0;
        assert_int_equal(rt_device_sync(d ? f.dev : other), RT_OK);
        assert_int_equal(rt_launch(p, NULL), RT_OK);
        assert_int_equal(fake.n_launches, 2);
        assert_true(fake.launches[0].device == d && fake.launches[1].device == d);
        rt_prepared_free(p);
      } else {
        snprintf(want, sizeof want, "kernel gemm was compiled for %s; GPU %d (Fake GPU%s) is %s",
                 targets[i], d, d ? " 1" : "", d ? "sm_86" : "sm_90a");
        help_expect_diag(&f.diags, DIAG_DRIVER, want);
        diag_clear(&f.diags);
      }
      free(text);
      free(replaced);
    }
  rt_module_free(module);
  rt_device_close(other);
  stop(&f);
}

/* The driver's real library is looked for; here or elsewhere the answer is one of two. */
static void test_real_driver_or_reason(void **state) {
  (void)state;
  struct diag_sink diags;
  struct rt_ctx *ctx;
  assert_true(diag_init(&diags, &mem_libc));
  assert_int_equal(rt_ctx_new(&mem_libc, &diags, NULL, &ctx), RT_OK);
  for (int lib = 0; lib < RT_LIB_COUNT; lib++) {
    struct rt_library_info i = rt_library_info(ctx, (enum rt_library)lib);
    printf("%s: %s\n", i.name, i.loaded ? i.path : i.why);
    assert_true(i.loaded ? i.path != NULL : i.why != NULL && strlen(i.why) > 20);
    assert_int_equal(diags.n_errors, 0);
  }
  rt_ctx_free(ctx);
  diag_free(&diags);
}

/* ---- buffers ---- */

static void test_buffers(void **state) {
  (void)state;
  struct fixture f;
  start(&f);
  struct rt_buffer *b;
  unsigned char in[100], out[100];
  for (int i = 0; i < 100; i++)
    in[i] = (unsigned char)i;
  assert_int_equal(rt_buffer_new(f.dev, "argument C", 100, &b), RT_OK);
  assert_int_equal((uintptr_t)rt_buffer_data(b) % 256, 0);
  assert_int_equal(rt_buffer_bytes(b), 100);
  assert_int_equal(rt_buffer_check_guards(b), RT_OK);
  assert_int_equal(rt_buffer_poison(b, DT_BF16, NULL), RT_OK);
  assert_int_equal(rt_buffer_upload(b, 10, in, 50), RT_OK);
  assert_int_equal(rt_buffer_download(b, 0, out, 100), RT_OK);
  assert_true(out[9] == 0xff && out[10] == 0 && out[59] == 49 && out[60] == 0xff);
  assert_int_equal(rt_buffer_poison(b, DT_S8, NULL), RT_OK);
  assert_int_equal(rt_buffer_download(b, 99, out, 1), RT_OK);
  assert_int_equal(out[0], RT_POISON_INT);
  assert_int_equal(rt_buffer_upload(b, 51, in, 50), RT_BAD_INPUT);
  help_expect_diag(&f.diags, DIAG_USAGE, "copying 50 bytes at offset 51 of argument C");
  assert_int_equal(rt_buffer_download(b, SIZE_MAX, out, 1), RT_BAD_INPUT);
  /* Both guards, their near and far ends; the exact byte is named. */
  unsigned char *p = rt_buffer_data(b);
  static const struct {
    long at;
    const char *text;
  } writes[] = {{100, "0 bytes past its end"},
                {100 + 4000, "4000 bytes past its end"},
                {8191, "8091 bytes past its end"},
                {-1, "1 bytes before its start"},
                {-4096, "4096 bytes before its start"}};
  for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
    diag_clear(&f.diags);
    p[writes[i].at] = 0;
    assert_int_equal(rt_buffer_check_guards(b), RT_FAILED);
    help_expect_diag(&f.diags, DIAG_GUARD, writes[i].text);
    help_expect_diag(&f.diags, DIAG_GUARD, "argument C: memory outside it was written");
    p[writes[i].at] = 0xff;
    assert_int_equal(rt_buffer_check_guards(b), RT_OK);
  }
  rt_buffer_free(b);
  assert_int_equal(rt_buffer_new(f.dev, "empty", 0, &b), RT_OK);
  assert_int_equal(rt_buffer_fill(b, 0, NULL), RT_OK);
  assert_int_equal(rt_buffer_check_guards(b), RT_OK);
  rt_buffer_free(b);
  diag_clear(&f.diags);
  fake.fail_call = "cuMemAlloc";
  fake.calls = 0;
  fake.fail_at = 1;
  fake.fail_with = CUDA_ERROR_OUT_OF_MEMORY;
  assert_int_equal(rt_buffer_new(f.dev, "argument A", 1000, &b), RT_NO_MEMORY);
  help_expect_diag(&f.diags, DIAG_DRIVER,
                   "allocating 1000 bytes on the GPU for argument A failed: "
                   "CUDA_ERROR_OUT_OF_MEMORY (2)");
  stop(&f);
}

/* ---- launches ---- */

static void test_launch(void **state) {
  (void)state;
  struct fixture f;
  start(&f);
  struct recipe *r = parse(&f.arena, &f.diags, gemm_text);
  struct rt_arg args[7];
  gemm_args(args);
  struct rt_prepared *p;
  if (rt_prepare(f.module, r, args, 7, NULL, &p) != RT_OK)
    fail_msg("%s", help_last_message(&f.diags));
  assert_int_equal(fake.n_launches, 0);
  assert_int_equal(rt_prepared_workspace(p), 1024);
  uint32_t grid[3];
  assert_true(rt_prepared_grid(p, 0, grid) && grid[0] == 2 && grid[1] == 1 && grid[2] == 5);
  assert_true(rt_prepared_grid(p, 1, grid) && grid[0] == 1);
  assert_false(rt_prepared_grid(p, 2, grid));
  assert_int_equal(fake.attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES], 100000);
  uint64_t before = f.mem.calls;
  int allocs = fake.live_allocs;
  rt_stream stream;
  assert_int_equal(rt_device_stream(f.dev, &stream), RT_OK);
  assert_int_equal(rt_launch(p, stream), RT_OK);
  assert_int_equal(f.mem.calls, before); /* launching allocates nothing */
  assert_int_equal(fake.live_allocs, allocs);
  assert_int_equal(fake.n_launches, 2);
  const struct fake_launch *l = &fake.launches[0];
  assert_string_equal(l->name, "main_kernel");
  assert_true(l->config.gridDimX == 2 && l->config.gridDimY == 1 && l->config.gridDimZ == 5);
  assert_true(l->config.blockDimX == 256 && l->config.sharedMemBytes == 100000);
  assert_true(l->cluster[0] == 2 && l->cluster[1] == 1);
  assert_ptr_equal(l->config.hStream, stream);
  assert_int_equal(l->cells[0], (uintptr_t)memory[0]);
  assert_int_equal(l->cells[1], (uintptr_t)(memory[1] + 32768));
  assert_int_equal((int32_t)l->cells[3], 256);
  assert_int_equal(l->cells[4], 64 * 64);
  float alpha;
  memcpy(&alpha, &l->cells[5], sizeof alpha);
  assert_true(alpha == 0.1f);
  /* The workspace was cleared before the kernel, and its pointer is base + 4. */
  const unsigned char *ws = (const unsigned char *)(uintptr_t)l->cells[2] - 4;
  assert_true(ws[0] == 0 && ws[1023] == 0 && ws[1024] == 0xff);
  assert_true(fake.launches[1].cluster[0] == 0 && fake.launches[1].config.blockDimX == 32);
  /* An absent optional tensor is a null pointer, and its predicates hold. */
  args[2].absent = true;
  args[2].tensor = (struct rt_tensor){0};
  assert_int_equal(rt_rebind(p, args, 7), RT_OK);
  fake.n_launches = 0;
  assert_int_equal(rt_launch(p, NULL), RT_OK);
  assert_int_equal(fake.launches[0].cells[1], 0);
  /* A failing rebind makes it unlaunchable, a good one launchable again. */
  args[0].tensor.dim[1] = 63;
  assert_int_equal(rt_rebind(p, args, 7), RT_BAD_INPUT);
  assert_int_equal(rt_launch(p, NULL), RT_BAD_INPUT);
  help_expect_diag(&f.diags, DIAG_USAGE, "its last binding failed");
  /* Nothing to do: success without a launch of the empty grid. */
  gemm_args(args);
  args[0].tensor.dim[0] = args[3].tensor.dim[0] = args[4].tensor.dim[0] = 0;
  assert_int_equal(rt_rebind(p, args, 7), RT_OK);
  fake.n_launches = 0;
  assert_int_equal(rt_launch(p, NULL), RT_OK);
  assert_int_equal(fake.n_launches, 1);
  assert_string_equal(fake.launches[0].name, "tail_kernel");
  assert_int_equal(rt_prepared_check_guards(p), RT_OK);
  memset((void *)(uintptr_t)(ws + 1024), 0, 1);
  assert_int_equal(rt_prepared_check_guards(p), RT_FAILED);
  help_expect_diag(&f.diags, DIAG_GUARD,
                   "the workspace: memory outside it was written, 0 bytes past");
  rt_prepared_free(p);
  /* A workspace of the caller's. */
  static unsigned char mine[2048];
  struct rt_prepare_options o = {.workspace = mine, .workspace_bytes = sizeof mine};
  gemm_args(args);
  assert_int_equal(rt_prepare(f.module, r, args, 7, &o, &p), RT_OK);
  fake.n_launches = 0;
  assert_int_equal(rt_launch(p, NULL), RT_OK);
  assert_int_equal(fake.launches[0].cells[2], (uintptr_t)mine + 4);
  rt_prepared_free(p);
  o.workspace_bytes = 1000;
  assert_int_equal(rt_prepare(f.module, r, args, 7, &o, &p), RT_BAD_INPUT);
  help_expect_diag(&f.diags, DIAG_SHAPE_BINDING, "needs 1024 bytes of workspace, 1000 were given");
  stop(&f);
}

static void change(struct rt_arg *args, int which) {
  switch (which) {
  case 0: args[0].tensor.dtype = DT_F16; break;
  case 1: args[1].tensor.rank = 1; break;
  case 2: args[1].tensor.dim[0] = 65; break;
  case 3: args[4].tensor.dim[0] = 3; break;
  case 4: args[4].tensor.dim[1] = 3; break;
  case 5: args[3].tensor.data = memory[0]; break;
  case 6: args[3].tensor.dim[0] = -1; break;
  case 7: args[1].absent = true; break;
  case 8: args[3].tensor.stride[1] = 0; break;
  case 9: args[0].tensor.stride[0] = 128, args[0].tensor.stride[1] = 2; break;
  case 10: args[0].tensor.data = memory[0] + 8; break;
  case 11: args[0].tensor.data = memory[0] + 1; break;
  case 12: args[1].tensor.data = NULL; break;
  case 13: args[6].i64 = INT64_C(1) << 40; break;
  case 14: args[6].i64 = -3; break;
  case 15: args[0].tensor.stride[0] = INT64_MAX; break;
  case 16: args[5].absent = true; break;
  case 17: args[2].tensor.stride[0] = 2; break;
  case 18: args[3].tensor.data = memory[1] + 32768 - 40956; break;
  }
}

static const char *const refusals[] = {
    "argument A: its dtype is f16, the kernel takes bf16",
    "argument B: it has 1 dims, the kernel takes 2",
    "argument B: dim 0 is 65, but K is 64 (argument A, dim 1)",
    "argument S: dim 0 is 3, but cdiv(M, 128) is 2",
    "argument S: dim 1 is 3, the kernel takes 2",
    "arguments A and C overlap in memory, and C is written",
    "argument C: dim 0 is -1",
    "argument B: it is missing, and not optional",
    "argument C: it is written, but stride 0 of dim 1",
    "A must have a stride of 1 (A.stride1 == 1 or A.stride0 == 1)",
    "A must be aligned to 16 bytes (A.addr % 16 == 0)",
    "argument A: its address is not a multiple of the element size 2",
    "argument B: it has no memory",
    "argument shift: 1099511627776 does not fit in s32",
    "kernel main_kernel: grid dim z is -2, CUDA allows 0 to 65535",
    "argument A: its extent overflows 64 bits",
    "argument alpha: a scalar cannot be left out",
    "bias must be contiguous",
    "arguments bias and C overlap in memory",
};

static void test_refusals(void **state) {
  (void)state;
  struct fixture f;
  start(&f);
  struct recipe *r = parse(&f.arena, &f.diags, gemm_text);
  for (int i = 0; i < (int)(sizeof refusals / sizeof refusals[0]); i++) {
    struct rt_arg args[7];
    struct rt_prepared *p;
    gemm_args(args);
    change(args, i);
    diag_clear(&f.diags);
    assert_int_equal(rt_prepare(f.module, r, args, 7, NULL, &p), RT_BAD_INPUT);
    assert_null(p);
    assert_true(f.diags.n_errors >= 1);
    help_expect_diag(&f.diags, DIAG_SHAPE_BINDING, refusals[i]);
    /* Without a device the same is found, but for what the grid alone shows. */
    struct rt_bindings *b;
    diag_clear(&f.diags);
    enum rt_status status = rt_bind(f.ctx, r, args, 7, 132, false, &b);
    assert_int_equal(status, i == 14 ? RT_OK : RT_BAD_INPUT);
    rt_bindings_free(b);
  }
  /* Several at once are all told. */
  struct rt_arg args[7];
  struct rt_prepared *p;
  gemm_args(args);
  change(args, 0);
  change(args, 1);
  change(args, 6);
  diag_clear(&f.diags);
  assert_int_equal(rt_prepare(f.module, r, args, 7, NULL, &p), RT_BAD_INPUT);
  assert_int_equal(f.diags.n_errors, 3);
  diag_clear(&f.diags);
  assert_int_equal(rt_prepare(f.module, r, args, 6, NULL, &p), RT_BAD_INPUT);
  help_expect_diag(&f.diags, DIAG_SHAPE_BINDING, "takes 7 arguments, 6 were given");
  /* Overlap that is declared is allowed. */
  gemm_args(args);
  change(args, 5);
  struct rt_prepare_options o = {.allow_overlap = true};
  assert_int_equal(rt_prepare(f.module, r, args, 7, &o, &p), RT_OK);
  rt_prepared_free(p);
  stop(&f);
}

/* What recipe and device say, rather than the arguments. */
static void test_device_limits(void **state) {
  (void)state;
  static const struct {
    const char *from, *to, *message;
  } cases[] = {
      {"target \"sm_90a\"", "target \"sm_100a\"",
       "compiled for sm_100a; GPU 0 (Fake GPU) is sm_90a"},
      {"target \"sm_90a\"", "target \"sm_80\"", "compiled for sm_80"},
      {"target \"sm_90a\"", "target \"sm_91a\"", "compiled for sm_91a"},
      {"target \"sm_90a\"", "target \"sm_90\"", NULL},
      {"\"tail_kernel\"", "\"no_kernel\"", "finding kernel no_kernel in its cubin failed"},
      {"block 256, 1, 1", "block 513, 1, 1", "513 threads a block, the compiled kernel allows 512"},
      {"smem 100000", "smem 232440", "232456 bytes of shared memory, Fake GPU allows 232448"},
      {"param i32 M", "param i32 M * 100000000", "parameter 3 is 25600000000, which does not fit"},
      {"param workspace 4", "param workspace 1025", "offset 1025 does not lie in the workspace"},
      {"memset 0, 4 * M", "memset 8, 4 * M", "a memset of 1024 bytes at 8 does not lie"},
      {"workspace 4 * M", "workspace -4 * M", "its workspace of -1024 bytes is negative"},
      {"grid cdiv(M, 128)", "grid 3 * M", NULL},
      {"grid cdiv(M, 128)", "grid 3 * M + 1",
       "grid dim x of 769 is not a multiple of its cluster's 2"},
      {"grid cdiv(M, 128)", "grid M * 100000000", "grid dim x is 25600000000, CUDA allows"},
      {"cdiv(N, 256)", "N * 2000", "grid dim y is 80000, CUDA allows 0 to 65535"},
      {"cdiv(N, 256)", "Q", "the grid: Q of kernel gemm has no value here: Q"},
      {"cdiv(N, 256)", "M // (N - 40)", "division by zero"},
      {"cluster 2, 1, 1", "cluster 2, 1, 5", NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct fixture f;
    start(&f);
    fake.max_threads = 512;
    fake.static_smem = 16;
    const char *at = strstr(gemm_text, cases[i].from);
    struct strbuf b = {.arena = &f.arena.arena};
    sb_put(&b, gemm_text, (size_t)(at - gemm_text));
    sb_printf(&b, "%s%s", cases[i].to, at + strlen(cases[i].from));
    struct recipe *r = parse(&f.arena, &f.diags, b.s);
    struct rt_arg args[7];
    gemm_args(args);
    struct rt_prepared *p;
    enum rt_status status = rt_prepare(f.module, r, args, 7, NULL, &p);
    if (!cases[i].message && status != RT_OK)
      fail_msg("%s: %s", cases[i].to, help_last_message(&f.diags));
    if (cases[i].message) {
      assert_true(status != RT_OK);
      assert_int_equal(f.diags.n_errors, 1);
      assert_non_null(help_last_message(&f.diags));
      if (!strstr(help_last_message(&f.diags), cases[i].message))
        fail_msg("%s: %s", cases[i].to, help_last_message(&f.diags));
    }
    if (strstr(cases[i].to, "cluster"))
      assert_int_equal(fake.attributes[CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED], 1);
    rt_prepared_free(p);
    stop(&f);
  }
}

/* ---- faults ---- */

/* The whole life of a launch: 0 errors reported means every status was RT_OK. */
static enum rt_status whole_life(struct help_mem *mem, struct diag_sink *diags) {
  struct help_arena arena;
  help_arena_init(&arena);
  struct diag_sink parse_diags;
  assert_true(diag_init(&parse_diags, &mem_libc));
  struct recipe *r = parse(&arena, &parse_diags, gemm_text);
  struct rt_ctx *ctx;
  struct rt_device *dev = NULL;
  struct rt_module *m = NULL;
  struct rt_prepared *p = NULL;
  struct rt_buffer *b = NULL;
  rt_stream stream = NULL;
  struct rt_arg args[7];
  gemm_args(args);
  enum rt_status status = rt_ctx_new(&mem->alloc, diags, NULL, &ctx);
  if (status == RT_OK) {
    rt_use_cuda(ctx, &fake_cuda);
    status = rt_device_open(ctx, 0, &dev);
    if (status == RT_OK)
      status = rt_device_stream(dev, &stream);
    if (status == RT_OK)
      status = rt_buffer_new(dev, "argument", 5000, &b);
    if (status == RT_OK)
      status = rt_buffer_upload(b, 0, memory, 5000);
    if (status == RT_OK)
      status = rt_module_load(dev, elf, sizeof elf, &m);
    if (status == RT_OK)
      status = rt_prepare(m, r, args, 7, NULL, &p);
    if (status == RT_OK)
      status = rt_launch(p, stream);
    if (status == RT_OK)
      status = rt_stream_sync(dev, stream);
    if (status == RT_OK)
      status = rt_buffer_check_guards(b);
    if (status == RT_OK)
      status = rt_buffer_download(b, 0, memory[3], 5000);
    rt_prepared_free(p);
    rt_module_free(m);
    rt_buffer_free(b);
    rt_device_close(dev);
    rt_ctx_free(ctx);
  }
  diag_free(&parse_diags);
  arena_free(&arena.arena);
  return status;
}

static bool oom_body(struct help_mem *mem, void *user) {
  (void)user;
  struct diag_sink diags;
  assert_true(diag_init(&diags, &mem_libc));
  help_fake_start();
  fake.kernels = kernels;
  enum rt_status status = whole_life(mem, &diags);
  assert_int_equal(diags.n_errors, status == RT_OK ? 0 : 1);
  assert_true(status == RT_OK || status == RT_NO_MEMORY);
  help_fake_check();
  diag_free(&diags);
  return status == RT_OK;
}

static void test_no_host_memory(void **state) {
  (void)state;
  assert_true(help_oom_loop(oom_body, NULL, false) > 8);
  help_oom_loop(oom_body, NULL, true);
}

/* Every driver call in turn fails, with a passing error and with a sticky one. */
static void test_driver_failures(void **state) {
  (void)state;
  for (int sticky = 0; sticky < 2; sticky++)
    for (uint64_t n = 1;; n++) {
      struct help_mem mem;
      struct diag_sink diags;
      help_mem_init(&mem);
      assert_true(diag_init(&diags, &mem_libc));
      help_fake_start();
      fake.kernels = kernels;
      fake.fail_at = n;
      fake.fail_with = sticky ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_ERROR_INVALID_VALUE;
      enum rt_status status = whole_life(&mem, &diags);
      bool reached = fake.calls >= n;
      assert_int_equal(mem.live_blocks, 0);
      if (!fake.sticky)
        help_fake_check();
      assert_int_equal(fake.retained, 0);
      /* Facts that only some drivers tell may be missing without harm; all else is an error. */
      assert_true(diags.n_errors == (status == RT_OK ? 0u : 1u));
      assert_true(!sticky || !reached || status == RT_DEAD || status == RT_OK);
      diag_free(&diags);
      if (!reached) {
        assert_true(n > 40);
        break;
      }
    }
}

static void test_dead_device(void **state) {
  (void)state;
  struct fixture f;
  start(&f);
  struct recipe *r = parse(&f.arena, &f.diags, gemm_text);
  struct rt_arg args[7];
  gemm_args(args);
  struct rt_prepared *p;
  assert_int_equal(rt_prepare(f.module, r, args, 7, NULL, &p), RT_OK);
  struct rt_buffer *b;
  assert_int_equal(rt_buffer_new(f.dev, "argument A", 16, &b), RT_OK);
  fake.fail_call = "cuCtxSynchronize";
  fake.fail_at = 1;
  fake.calls = 0;
  fake.fail_with = CUDA_ERROR_ILLEGAL_ADDRESS;
  assert_false(rt_device_is_dead(f.dev));
  assert_int_equal(rt_device_sync(f.dev), RT_DEAD);
  help_expect_diag(&f.diags, DIAG_DRIVER,
                   "waiting for GPU 0 failed: CUDA_ERROR_ILLEGAL_ADDRESS (700): as the test wants; "
                   "the device's context is lost");
  assert_true(rt_device_is_dead(f.dev));
  diag_clear(&f.diags);
  assert_int_equal(rt_launch(p, NULL), RT_DEAD);
  help_expect_diag(&f.diags, DIAG_DRIVER, "an earlier CUDA error (700) destroyed its context");
  char byte;
  assert_int_equal(rt_buffer_download(b, 0, &byte, 1), RT_DEAD);
  assert_int_equal(rt_buffer_check_guards(b), RT_DEAD);
  assert_int_equal(rt_rebind(p, args, 7), RT_OK); /* touches the host alone */
  rt_prepared_free(p);
  rt_buffer_free(b);
  stop(&f);
}

/* ---- timing ---- */

struct timed_launch {
  struct fixture *f;
  CUfunction function;
  uint32_t rounds, last;
  uint32_t fail_at;
};

static enum rt_status run_timed(void *user, rt_stream stream, uint32_t round) {
  struct timed_launch *t = user;
  t->last = round;
  if (t->fail_at && ++t->rounds == t->fail_at)
    return rt_fail(t->f->ctx, RT_FAILED, DIAG_OTHER, "the candidate failed");
  CUlaunchConfig c = {.gridDimX = 1,
                      .gridDimY = 1,
                      .gridDimZ = 1,
                      .blockDimX = 32,
                      .blockDimY = 1,
                      .blockDimZ = 1,
                      .hStream = stream};
  uint64_t cells[FAKE_MAX_CELLS] = {0};
  void *params[FAKE_MAX_CELLS];
  for (int i = 0; i < FAKE_MAX_CELLS; i++)
    params[i] = &cells[i];
  return fake_cuda.cuLaunchKernelEx(&c, t->function, params, NULL) ? RT_FAILED : RT_OK;
}

static void test_timing(void **state) {
  (void)state;
  struct fixture f;
  start(&f);
  struct timed_launch slow = {.f = &f}, fast = {.f = &f};
  fake_cuda.cuModuleGetFunction(&slow.function, NULL, "main_kernel");
  fake_cuda.cuModuleGetFunction(&fast.function, NULL, "tail_kernel");
  const struct rt_candidate candidates[] = {{"slow", run_timed, &slow}, {"fast", run_timed, &fast}};
  struct rt_timing_options o = {.rounds = 12, .warmup = 2};
  struct rt_timing_set t;
  assert_int_equal(rt_time(f.dev, candidates, 2, &o, &t), RT_OK);
  assert_true(t.n == 2 && t.rounds == 12 && t.inner == 1 && t.flushed && !t.graph);
  assert_true(t.at[0].us.median > 99.9 && t.at[0].us.median < 100.1);
  assert_true(t.at[1].us.median > 9.99 && t.at[1].us.median < 10.01);
  assert_true(t.at[1].ratio.median > 9.9 && t.at[1].ratio.median < 10.1);
  assert_true(t.at[0].ratio.median == 1 && t.at[1].ratio.lo <= t.at[1].ratio.hi);
  /* L2 is flushed before every stretch: (12 + 2) rounds of 2, with 64 MiB at least. */
  assert_true(fake.flushed_bytes == (uint64_t)28 * (64 << 20));
  rt_timing_free(&t);
  /* As graphs of 20 runs: the time is that of one. */
  o.graph = true;
  o.keep_l2 = true;
  fake.flushed_bytes = 0;
  assert_int_equal(rt_time(f.dev, candidates, 2, &o, &t), RT_OK);
  assert_true(t.inner == 20 && t.graph && !t.flushed && fake.flushed_bytes == 0);
  assert_true(t.at[0].us.median > 99.9 && t.at[0].us.median < 100.1);
  assert_int_equal(slow.last, 19); /* rounds count up inside the graph */
  rt_timing_free(&t);
  /* A time limit ends early, after three rounds at least. */
  o = (struct rt_timing_options){.rounds = 1000, .time_limit_us = 1};
  assert_int_equal(rt_time(f.dev, candidates, 2, &o, &t), RT_OK);
  assert_true(t.rounds >= 3 && t.rounds < 900);
  rt_timing_free(&t);
  assert_int_equal(rt_time(f.dev, candidates, 0, &o, &t), RT_BAD_INPUT);
  diag_clear(&f.diags);
  /* A candidate that fails, in set-up, inside a capture, and while timed. */
  for (uint32_t at = 1; at < 40; at += 3)
    for (int graph = 0; graph < 2; graph++) {
      slow.rounds = 0;
      slow.fail_at = at;
      o = (struct rt_timing_options){.rounds = 40, .graph = graph};
      assert_int_equal(rt_time(f.dev, candidates, 2, &o, &t), graph && at > 21 ? RT_OK : RT_FAILED);
      rt_timing_free(&t);
    }
  stop(&f);
}

static void test_timing_driver_failures(void **state) {
  (void)state;
  uint64_t n = 1;
  for (bool reached = true; reached; n++) {
    struct fixture f;
    start(&f);
    struct timed_launch one = {.f = &f};
    fake_cuda.cuModuleGetFunction(&one.function, NULL, "tail_kernel");
    const struct rt_candidate candidate = {"one", run_timed, &one};
    struct rt_timing_options o = {.rounds = 3, .warmup = 1, .inner = 2, .graph = true};
    struct rt_timing_set t;
    fake.calls = 0;
    fake.fail_at = n;
    fake.fail_with = CUDA_ERROR_INVALID_VALUE;
    enum rt_status status = rt_time(f.dev, &candidate, 1, &o, &t);
    reached = fake.calls >= n;
    fake.fail_at = 0;
    rt_timing_free(&t);
    assert_true(reached || status == RT_OK);
    stop(&f); /* leaks nothing */
  }
  assert_true(n > 20);
}

/* ---- helper kernels ---- */

/* With a real NVRTC: the helpers compile. `load` and `store` of every type, the comparison for one
 * of each width, and all three for other architectures. */
static bool is_tried(int arch, int helper, int t) {
  if (arch > 0)
    return t == DT_BF16;
  return helper != RT_HELPER_COMPARE || t == DT_BF16 || t == DT_F32 || t == DT_S8;
}

static void test_helpers_compile(void **state) {
  (void)state;
  static const char *const archs[] = {"sm_90a", "sm_80", "sm_89"};
  static const struct fake_kernel helper_kernels[] = {
      {.name = "to_f64"}, {.name = "compare"}, {.name = "fill"}, {.name = NULL}};
  for (int a = 0; a < 3; a++) {
    struct fixture f;
    start(&f);
    fake.kernels = helper_kernels;
    snprintf(f.dev->info.arch, sizeof f.dev->info.arch, "%s", archs[a]);
    if (!rt_library_info(f.ctx, RT_LIB_NVRTC).loaded) {
      printf("SKIP: %s\n", rt_library_info(f.ctx, RT_LIB_NVRTC).why);
      stop(&f);
      skip();
    }
    int built = 0, refused = 0;
    for (int w = 0; w < RT_HELPER_COUNT; w++)
      for (int t = 0; t < DT_COUNT; t++) {
        if (!is_tried(a, w, t))
          continue;
        CUfunction fn;
        enum rt_status status = rt_helper_function(f.dev, (enum rt_helper)w, (enum dtype)t, &fn);
        if (status != RT_OK && status != RT_BAD_INPUT)
          fail_msg("%s", help_last_message(&f.diags));
        built += status == RT_OK;
        refused += status != RT_OK;
      }
    printf("%s: %d helpers built, %d refused\n", archs[a], built, refused);
    assert_true(a > 0 ? built == 3 : built == 12 + 6 + 3 && refused == 2 + 8);
    stop(&f);
  }
}

/* NVML's mask in words. */
static void test_throttle_text(void **state) {
  (void)state;
  struct help_arena mem;
  help_arena_init(&mem);
  static const struct {
    int64_t mask;
    const char *text;
  } cases[] = {{0, "none"},
               {4, "sw_power_cap"},
               {0x28, "hw_slowdown|sw_thermal_slowdown"},
               {0x1004, "sw_power_cap|0x1000"},
               {-1, "unknown"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct strbuf b = {.arena = &mem.arena};
    rt_throttle_text(cases[i].mask, &b);
    assert_string_equal(b.s, cases[i].text);
  }
  arena_free(&mem.arena);
}

/* ---- tensor maps ---- */

/* To go on: " round tf32", or the end of the line. */
static const char map_text[] =
    "kiln-recipe 1\n"
    "kernel \"copy\"\n"
    "target \"sm_90a\"\n"
    "arg in \"A\" bf16 [M, K]\n"
    "arg in optional \"B\" e4m3 [K, M]\n"
    "arg out \"C\" f32 [M, K]\n"
    "launch \"map_kernel\"\n"
    "  grid M, 1, 1\n"
    "  block 128, 1, 1\n"
    "  cluster 2, 1, 1\n"
    "  smem 0\n"
    "  regs 0\n"
    "  pdl\n"
    "  param tmap 0 [K, M] strides [2 * A.stride1, 2 * A.stride0] box [64, 128] swizzle 128 l2 256 "
    "fill nan\n"
    "  param i32 M\n"
    "  param tmap 1 [M, K] strides [B.stride1, B.stride0] box [32, 8] swizzle 32 l2 0 fill zero\n"
    "  param tmap 2 [K, M] strides [4 * C.stride1, 4 * C.stride0] box [4, 1] swizzle 0 l2 64 fill "
    "zero";

static struct fake_map seen[3];
static bool seen_pdl;

static void see_maps(void **params, const CUlaunchConfig *config) {
  static const int which[3] = {0, 2, 3};
  for (int i = 0; i < 3; i++) {
    assert_int_equal((uintptr_t)params[which[i]] % 64, 0);
    memcpy(&seen[i], params[which[i]], sizeof seen[i]);
  }
  seen_pdl = config->numAttrs == 2 &&
             config->attrs[1].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
             config->attrs[1].value.programmaticStreamSerializationAllowed == 1 &&
             config->attrs[0].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
}

static const struct fake_kernel map_kernels[] = {
    {.name = "map_kernel", .n_params = 4, .us = 1, .raw = see_maps}, {.name = NULL}};

static void map_args(struct rt_arg args[3], int64_t m, int64_t k) {
  memset(args, 0, 3 * sizeof *args);
  args[0].tensor = tensor(DT_BF16, memory[0], m, k);
  args[1].tensor = tensor(DT_E4M3, memory[1], k, m);
  args[2].tensor = tensor(DT_F32, memory[2], m, k);
}

static void test_maps(void **state) {
  (void)state;
  struct fixture f;
  start(&f);
  fake.kernels = map_kernels;
  char text[2 * sizeof map_text];
  struct rt_arg args[3];
  struct rt_prepared *p;
  map_args(args, 32, 64);
  snprintf(text, sizeof text, "%s round tf32\nend\n", map_text);
  struct recipe *r = parse(&f.arena, &f.diags, text);
  assert_int_equal(rt_prepare(f.module, r, args, 3, NULL, &p), RT_OK);
  assert_int_equal(rt_launch(p, NULL), RT_OK);
  assert_int_equal(seen[2].dtype, 11);
  rt_prepared_free(p);
  snprintf(text, sizeof text, "%s\nend\n", map_text);
  r = parse(&f.arena, &f.diags, text);
  args[0].tensor.stride[0] = 72;
  assert_int_equal(rt_prepare(f.module, r, args, 3, NULL, &p), RT_OK);
  uint64_t before = f.mem.calls;
  assert_int_equal(rt_launch(p, NULL), RT_OK);
  assert_int_equal(f.mem.calls, before); /* nothing is allocated at a launch */
  assert_true(seen_pdl);
  const struct fake_map *a = &seen[0], *b = &seen[1], *c = &seen[2];
  assert_true(a->address == (uintptr_t)memory[0] && a->rank == 2 && a->dim[0] == 64 &&
              a->dim[1] == 32 && a->stride[0] == 144 && a->box[0] == 64 && a->box[1] == 128);
  assert_true(a->dtype == 9 && a->swizzle == 3 && a->l2 == 3 && a->fill == 1);
  assert_true(b->dtype == 0 && b->swizzle == 1 && b->l2 == 0 && b->fill == 0 && b->dim[0] == 32 &&
              b->dim[1] == 64 && b->stride[0] == 32);
  assert_true(c->dtype == 7 && c->swizzle == 0 && c->l2 == 1 && c->stride[0] == 256);
  /* Another binding of the same launch; an argument that is not there; a dim of 1. */
  map_args(args, 1, 128);
  args[0].tensor.data = memory[3];
  args[0].tensor.stride[0] = 3; /* never taken */
  args[1].absent = true;
  args[2].tensor.stride[0] = -5;
  args[2].tensor.dim[0] = args[0].tensor.dim[0] = 1;
  assert_int_equal(rt_rebind(p, args, 3), RT_BAD_INPUT); /* one block is no cluster of two */
  map_args(args, 2, 128);
  args[0].tensor.data = memory[3];
  args[1].absent = true;
  assert_int_equal(rt_rebind(p, args, 3), RT_OK);
  assert_int_equal(rt_launch(p, NULL), RT_OK);
  assert_true(seen[0].address == (uintptr_t)memory[3] && seen[0].dim[0] == 128);
  assert_true(seen[1].address == 0 && seen[1].rank == 0);
  rt_prepared_free(p);
  stop(&f);
}

static void test_maps_refused(void **state) {
  (void)state;
  struct fixture f;
  start(&f);
  fake.kernels = map_kernels;
  char text[2 * sizeof map_text];
  snprintf(text, sizeof text, "%s\nend\n", map_text);
  struct recipe *r = parse(&f.arena, &f.diags, text);
  static const struct {
    int64_t m, k, stride0, stride1;
    size_t offset;
    const char *message;
  } bad[] = {
      {32, 64, 64, 1, 8, "argument A cannot be copied by the tensor memory unit: its address"},
      {32, 64, 1, 32, 0, "its innermost elements lie 64 bytes apart; they must be contiguous (2)"},
      {32, 64, 65, 1, 0, "the stride of dim 1 from the innermost is 130 bytes; it must be a"},
      {32, 64, -64, 1, 8192, "the stride of dim 1 from the innermost is -128 bytes"},
      {32, 0, 64, 1, 0, "dim 0 from the innermost is 0; it must be 1 to 2^32"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    struct rt_arg args[3];
    struct rt_prepared *p;
    map_args(args, bad[i].m, bad[i].k);
    args[0].tensor.data = memory[0] + bad[i].offset;
    args[0].tensor.stride[0] = bad[i].stride0;
    args[0].tensor.stride[1] = bad[i].stride1;
    args[1].absent = true;
    diag_clear(&f.diags);
    assert_int_equal(rt_prepare(f.module, r, args, 3, NULL, &p), RT_BAD_INPUT);
    if (f.diags.n_errors != 1 || !strstr(help_last_message(&f.diags), bad[i].message))
      fail_msg("%s for %s", help_last_message(&f.diags), bad[i].message);
  }
  struct rt_arg args[3];
  struct rt_prepared *p;
  map_args(args, 0, 64); /* an empty grid needs no maps */
  assert_int_equal(rt_prepare(f.module, r, args, 3, NULL, &p), RT_OK);
  rt_prepared_free(p);
  map_args(args, 32, 64);
  fake.fail_call = "cuTensorMapEncodeTiled";
  fake.calls = 0;
  fake.fail_at = 1;
  fake.fail_with = CUDA_ERROR_INVALID_VALUE;
  diag_clear(&f.diags);
  assert_int_equal(rt_prepare(f.module, r, args, 3, NULL, &p), RT_BAD_INPUT);
  assert_non_null(strstr(help_last_message(&f.diags), "cuTensorMapEncodeTiled refuses"));
  stop(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_maps),
      cmocka_unit_test(test_maps_refused),
      cmocka_unit_test(test_device),
      cmocka_unit_test(test_two_devices),
      cmocka_unit_test(test_real_driver_or_reason),
      cmocka_unit_test(test_buffers),
      cmocka_unit_test(test_launch),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_device_limits),
      cmocka_unit_test(test_no_host_memory),
      cmocka_unit_test(test_driver_failures),
      cmocka_unit_test(test_dead_device),
      cmocka_unit_test(test_timing),
      cmocka_unit_test(test_timing_driver_failures),
      cmocka_unit_test(test_helpers_compile),
      cmocka_unit_test(test_throttle_text),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
