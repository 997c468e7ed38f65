/* Compilation: ptxas' report read from a kept log, rules of acceptance, NVRTC in this process and
 * in helpers, helpers that crash, hang, lie or are not there, memory failures.
 *
 * The misbehaving helper is this program itself, started with a helper's arguments; what it does is
 * said by the first line of the source it is asked to compile. */
#include "help_rt.h"

#include "runtime/internal.h"
#include "runtime/wire.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char good[] = "extern \"C\" __global__ void scale(float *a, float s, int n) {\n"
                           "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                           "  if (i < n) a[i] *= s;\n}\n";

/* ---- the helper that misbehaves ---- */

static bool read_n(int fd, void *p, size_t n) {
  for (size_t k = 0; k < n;) {
    ssize_t r = recv(fd, (char *)p + k, n - k, 0);
    if (r <= 0)
      return false;
    k += (size_t)r;
  }
  return true;
}

/* What ptxas says of a kernel without faults. */
#define REPORT                                                                                     \
  "ptxas info    : Compiling entry function 'k' for 'sm_90a'\nptxas info : Used 8 registers\n"

static void send_message(int fd, struct strbuf *m) {
  wire_finish(m);
  send(fd, m->s, m->n, MSG_NOSIGNAL);
}

static int bad_helper(int fd) {
  struct help_arena mem;
  help_arena_init(&mem);
  const char *mode = getenv("KILN_TEST_HELPER");
  if (mode && str_eq(mode, "no-start"))
    return 3;
  struct strbuf m = {.arena = &mem.arena};
  wire_begin(&m, WIRE_HELLO);
  uint32_t v[2] = {12, 9};
  wire_field(&m, WIRE_NVRTC, v, sizeof v);
  if (mode && str_eq(mode, "no-nvrtc"))
    wire_text(&m, WIRE_ERROR, "NVRTC not found (by the helper)");
  send_message(fd, &m);
  struct wire_header h;
  while (read_n(fd, &h, sizeof h)) {
    char *body = calloc(1, h.length + 1);
    if (!read_n(fd, body, h.length))
      return 1;
    const char *source = body;
    struct wire_reader r = {(unsigned char *)body, (unsigned char *)body + h.length};
    uint32_t tag;
    const void *p;
    size_t n;
    bool damaged;
    while (wire_next(&r, &tag, &p, &n, &damaged))
      if (tag == WIRE_SOURCE)
        source = p; /* the last field: NUL-terminated by calloc */
    if (str_starts(source, "// crash")) {
      fprintf(stderr, "ptxas fatal: everything is lost\n");
      raise(SIGSEGV);
      _exit(99);
    }
    if (str_starts(source, "// exit"))
      _exit(7);
    for (; str_starts(source, "// hang");)
      pause();
    m.n = 0;
    if (str_starts(source, "// garbage")) {
      send(fd, "this is not a message of any known kind", 39, MSG_NOSIGNAL);
    } else if (str_starts(source, "// huge")) {
      struct wire_header big = {WIRE_MAGIC, WIRE_VERSION, WIRE_RESULT, 0, UINT64_C(1) << 60};
      send(fd, &big, sizeof big, MSG_NOSIGNAL);
    } else if (str_starts(source, "// other-version")) {
      struct wire_header old = {WIRE_MAGIC, WIRE_VERSION + 1, WIRE_RESULT, 0, 0};
      send(fd, &old, sizeof old, MSG_NOSIGNAL);
    } else if (str_starts(source, "// hello-again")) {
      wire_begin(&m, WIRE_HELLO);
      send_message(fd, &m);
    } else if (str_starts(source, "// damaged")) {
      wire_begin(&m, WIRE_RESULT);
      sb_put(&m, "half a field", 12);
      send_message(fd, &m);
    } else {
      uint32_t status = RT_OK;
      wire_begin(&m, WIRE_RESULT);
      wire_field(&m, WIRE_STATUS, &status, sizeof status);
      wire_text(&m, WIRE_LOG, REPORT);
      wire_text(&m, WIRE_CUBIN, source);
      send_message(fd, &m);
    }
    free(body);
  }
  return 0;
}

/* ---- fixture ---- */

struct fixture {
  struct help_mem mem;
  struct diag_sink diags;
  struct rt_ctx *ctx;
  char log[512];
};

static void keep_log(void *user, const char *text) {
  struct fixture *f = user;
  snprintf(f->log, sizeof f->log, "%s", text);
}

static void start(struct fixture *f, const struct rt_options *options) {
  memset(f, 0, sizeof *f);
  help_mem_init(&f->mem);
  assert_true(diag_init(&f->diags, &mem_libc));
  struct rt_options o = options ? *options : (struct rt_options){0};
  o.log = keep_log;
  o.log_user = f;
  assert_int_equal(rt_ctx_new(&f->mem.alloc, &f->diags, &o, &f->ctx), RT_OK);
}

static void stop(struct fixture *f) {
  rt_ctx_free(f->ctx);
  assert_int_equal(f->mem.live_blocks, 0);
  diag_free(&f->diags);
  assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no helper is left behind */
  assert_int_equal(errno, ECHILD);
}

static bool has_nvrtc(struct fixture *f) {
  struct rt_library_info i = rt_library_info(f->ctx, RT_LIB_NVRTC);
  if (!i.loaded)
    printf("SKIP: %s\n", i.why);
  return i.loaded;
}

static struct rt_compile_job job_of(const char *name, const char *source) {
  return (struct rt_compile_job){.name = name, .source = source, .arch = "sm_90a"};
}

/* ---- without NVRTC ---- */

static void test_log(void **state) {
  (void)state;
  static const char log[] =
      "ptxas info    : (C7519) warpgroup.arrive is injected in around line 42 by compiler to allow "
      "use of registers in GMMA in function 'wg'\n"
      "ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are "
      "serialized due to insufficient register resources for the wgmma pipeline in the function "
      "'wg'\n"
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'copy' for 'sm_90a'\n"
      "ptxas info    : Function properties for copy\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 10 registers, used 0 barriers\n"
      "ptxas info    : Compile time = 9.961 ms\n"
      "ptxas info    : Compiling entry function 'spill' for 'sm_90a'\n"
      "ptxas info    : Function properties for spill\n"
      "ptxas         .     2960 bytes stack frame, 2576 bytes spill stores, 2528 bytes spill "
      "loads\n"
      "ptxas info    : Used 32 registers, used 1 barriers, 2960 bytes cumulative stack size, 256 "
      "bytes smem, 368 bytes cmem[0]\n"
      "ptxas info    : Function properties for _Z1gf\n"
      "ptxas         .     8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads";
  struct rt_compiled c;
  rt_compiled_init(&c, &mem_libc);
  rt_parse_ptxas_log(&c, log);
  assert_int_equal(c.n_kernels, 2);
  assert_string_equal(c.kernels[0].name, "copy");
  assert_int_equal(c.kernels[0].regs, 10);
  assert_int_equal(c.kernels[0].spill_stores, 0);
  assert_string_equal(c.kernels[1].name, "spill");
  assert_int_equal(c.kernels[1].regs, 32);
  assert_int_equal(c.kernels[1].stack, 2968); /* with the function that was not inlined */
  assert_int_equal(c.kernels[1].spill_stores, 2580);
  assert_int_equal(c.kernels[1].spill_loads, 2532);
  assert_int_equal(c.kernels[1].barriers, 1);
  assert_int_equal(c.kernels[1].smem_static, 256);
  assert_int_equal(c.kernels[1].cmem, 368);
  assert_int_equal(c.n_remarks, 2);
  assert_string_equal(c.remarks[1].code, "C7511");
  assert_non_null(strstr(c.remarks[1].text, "serialized"));
  rt_compiled_free(&c);
  static const char *const odd[] = {"",
                                    "\n\n",
                                    "(C75",
                                    "(C7510",
                                    "Compiling entry function 'x",
                                    "'",
                                    " registers",
                                    "Used  registers",
                                    "(Cabcd)"};
  for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
    rt_compiled_init(&c, &mem_libc);
    rt_parse_ptxas_log(&c, odd[i]);
    assert_int_equal(c.n_kernels + c.n_remarks, 0);
    rt_compiled_free(&c);
  }
}

static void test_options_text(void **state) {
  (void)state;
  struct help_arena mem;
  help_arena_init(&mem);
  const char *more[] = {"-DX=1", "--maxrregcount=64"};
  struct rt_compile_job job = job_of("k", good);
  job.options = more;
  job.n_options = 2;
  job.lineinfo = true;
  struct strbuf b = {.arena = &mem.arena};
  rt_compile_options_text(&job, &b);
  assert_string_equal(b.s, "--gpu-architecture=sm_90a --modify-stack-limit=false "
                           "--ptxas-options=-v -lineinfo -DX=1 --maxrregcount=64");
  arena_free(&mem.arena);
}

/* An NVRTC whose every answer the test decides. */
static bool fake_no_cache;
static nvrtcResult fake_compile_result;
static const char *fake_log;
static nvrtcResult fake_version(int *major, int *minor) {
  *major = 12;
  *minor = 6;
  return NVRTC_SUCCESS;
}
static const char *fake_error(nvrtcResult r) {
  return r == NVRTC_ERROR_COMPILATION ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR_OTHER";
}
static int fake_programs;
static nvrtcResult fake_create(nvrtcProgram *p, const char *source, const char *name, int n,
                               const char *const *headers, const char *const *names) {
  (void)source, (void)name, (void)n, (void)headers, (void)names;
  *p = (nvrtcProgram)&fake_programs;
  fake_programs++;
  return NVRTC_SUCCESS;
}
static nvrtcResult fake_destroy(nvrtcProgram *p) {
  *p = NULL;
  fake_programs--;
  return NVRTC_SUCCESS;
}
static nvrtcResult fake_compile(nvrtcProgram p, int n, const char *const *options) {
  (void)p;
  fake_no_cache = false;
  for (int i = 0; i < n; i++)
    fake_no_cache |= strcmp(options[i], "--no-cache") == 0;
  return fake_compile_result;
}
static nvrtcResult fake_size(nvrtcProgram p, size_t *size) {
  (void)p;
  *size = 5;
  return NVRTC_SUCCESS;
}
static nvrtcResult fake_get(nvrtcProgram p, char *out) {
  (void)p;
  memcpy(out, "CUBIN", 5);
  return NVRTC_SUCCESS;
}
static nvrtcResult fake_log_size(nvrtcProgram p, size_t *size) {
  (void)p;
  *size = strlen(fake_log) + 1;
  return NVRTC_SUCCESS;
}
static nvrtcResult fake_get_log(nvrtcProgram p, char *out) {
  (void)p;
  memcpy(out, fake_log, strlen(fake_log) + 1);
  return NVRTC_SUCCESS;
}
static const struct nvrtc_api fake_nvrtc = {fake_version, fake_error,    fake_create, fake_destroy,
                                            fake_compile, fake_size,     fake_get,    fake_size,
                                            fake_get,     fake_log_size, fake_get_log};

static void test_acceptance(void **state) {
  (void)state;
  struct fixture f;
  start(&f, NULL);
  rt_use_nvrtc(f.ctx, &fake_nvrtc, 12, 6);
  static const struct {
    const char *log;
    nvrtcResult result;
    enum rt_status status;
    enum diag_id id;
    const char *message;
  } cases[] = {
      {REPORT, NVRTC_SUCCESS, RT_OK, DIAG_OTHER, NULL},
      {"", NVRTC_SUCCESS, RT_FAILED, DIAG_COMPILE_REJECTED, "ptxas did not report on registers"},
      {"k.cu(3): error: identifier \"y\" is undefined\n\n2 errors detected in \"k.cu\".\n",
       NVRTC_ERROR_COMPILATION, RT_FAILED, DIAG_COMPILE_FAILED,
       "NVRTC 12.6 refuses k: k.cu(3): error: identifier \"y\" is undefined"},
      {"", NVRTC_ERROR_INVALID_OPTION, RT_FAILED, DIAG_COMPILE_FAILED, "NVRTC_ERROR_OTHER"},
      {"", NVRTC_ERROR_OUT_OF_MEMORY, RT_NO_MEMORY, DIAG_NO_MEMORY, "out of memory"},
      {REPORT "ptxas info    : (C7510) Potential Performance Loss in function 'k'", NVRTC_SUCCESS,
       RT_FAILED, DIAG_COMPILE_REJECTED, "C7510"},
      {REPORT "ptxas info    : (C7519) warpgroup.arrive is injected", NVRTC_SUCCESS, RT_OK,
       DIAG_OTHER, NULL},
      {"ptxas info : Compiling entry function 'k' for 'sm_90a'\n"
       "0 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\nUsed 64 registers",
       NVRTC_SUCCESS, RT_FAILED, DIAG_COMPILE_REJECTED,
       "kernel k spills registers: 8 bytes stored, 12 loaded (allowed: 0), with 64 registers"},
      {"ptxas info : Compiling entry function 'k' for 'sm_90a'\nUsed 200 registers", NVRTC_SUCCESS,
       RT_FAILED, DIAG_COMPILE_REJECTED, "uses 200 registers a thread (allowed: 168)"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct rt_compiled c;
    struct rt_compile_job job = job_of("k", good);
    job.allow_regs = 168;
    fake_log = cases[i].log;
    fake_compile_result = cases[i].result;
    diag_clear(&f.diags);
    assert_int_equal(rt_compile(f.ctx, &job, &c), cases[i].status);
    assert_int_equal(c.status, cases[i].status);
    assert_int_equal(f.diags.n_errors, cases[i].status == RT_OK ? 0 : 1);
    if (cases[i].message)
      help_expect_diag(&f.diags, cases[i].id, cases[i].message);
    assert_true((c.cubin != NULL) == (c.status == RT_OK));
    assert_string_equal(c.log, cases[i].log);
    rt_compiled_free(&c);
    assert_int_equal(fake_programs, 0);
  }
  /* What may be allowed is allowed. */
  struct rt_compile_job job = job_of("k", good);
  job.max_spill_bytes = 20;
  job.allow_serialized = true;
  struct rt_compiled c;
  fake_compile_result = NVRTC_SUCCESS;
  fake_log = cases[7].log;
  assert_int_equal(rt_compile(f.ctx, &job, &c), RT_OK);
  rt_compiled_free(&c);
  assert_false(fake_no_cache); /* 12.6 does not know it */
  rt_use_nvrtc(f.ctx, &fake_nvrtc, 12, 9);
  fake_log = REPORT "ptxas info    : (C7510) Potential Performance Loss in function 'k'";
  assert_int_equal(rt_compile(f.ctx, &job, &c), RT_OK);
  assert_int_equal(c.n_remarks, 1);
  rt_compiled_free(&c);
  assert_true(fake_no_cache); /* a cached result comes without ptxas' report */
  stop(&f);
}

static void test_missing(void **state) {
  (void)state;
  struct fixture f;
  start(&f, NULL);
  rt_use_nvrtc(f.ctx, NULL, 0, 0);
  struct rt_compile_job job = job_of("k", good);
  struct rt_compiled c;
  assert_int_equal(rt_compile(f.ctx, &job, &c), RT_MISSING);
  help_expect_diag(&f.diags, DIAG_NO_NVRTC, "");
  rt_compiled_free(&c);
  assert_int_equal(rt_compile_batch(f.ctx, NULL, 0, NULL), RT_OK);
  stop(&f);
  /* Named where there is none: the message says so, and what to do. */
  char old[1024] = "";
  if (getenv("KILN_NVRTC"))
    snprintf(old, sizeof old, "%s", getenv("KILN_NVRTC"));
  setenv("KILN_NVRTC", "/nonexistent/libnvrtc.so.13", 1);
  start(&f, NULL);
  struct rt_library_info i = rt_library_info(f.ctx, RT_LIB_NVRTC);
  assert_non_null(i.why);
  assert_non_null(strstr(i.why, "KILN_NVRTC names /nonexistent/libnvrtc.so.13"));
  stop(&f);
  if (old[0])
    setenv("KILN_NVRTC", old, 1);
  else
    unsetenv("KILN_NVRTC");
}

static bool oom_body(struct help_mem *mem, void *user) {
  (void)user;
  struct diag_sink diags;
  assert_true(diag_init(&diags, &mem_libc));
  struct rt_ctx *ctx;
  enum rt_status status = rt_ctx_new(&mem->alloc, &diags, NULL, &ctx);
  if (status == RT_OK) {
    rt_use_nvrtc(ctx, &fake_nvrtc, 12, 6);
    struct rt_compile_job job = job_of("k", good);
    struct rt_compiled c;
    status = rt_compile(ctx, &job, &c);
    rt_compiled_free(&c);
    rt_ctx_free(ctx);
  }
  if (status != RT_OK) {
    assert_int_equal(status, RT_NO_MEMORY);
    assert_int_equal(diags.n_errors, 1);
  }
  diag_free(&diags);
  assert_int_equal(fake_programs, 0);
  return status == RT_OK;
}

static void test_no_memory(void **state) {
  (void)state;
  fake_log = "ptxas info : Compiling entry function 'k' for 'sm_90a'\nUsed 20 registers";
  fake_compile_result = NVRTC_SUCCESS;
  assert_true(help_oom_loop(oom_body, NULL, false) > 2);
  help_oom_loop(oom_body, NULL, true);
}

/* ---- which library is taken ---- */

/* Builds a library that has NVRTC's functions but `without`, and says it is major.minor. */
static bool build_stub(const char *folder, const char *name, int major, int minor,
                       const char *without) {
  char path[600], command[1400];
  snprintf(path, sizeof path, "%s/stub.c", folder);
  FILE *c = fopen(path, "w");
  if (!c)
    return false;
  fprintf(c, "int nvrtcVersion(int *a, int *b) { *a = %d; *b = %d; return 0; }\n", major, minor);
#define X(member, symbol, result, params)                                                          \
  if (!str_eq(#symbol, "nvrtcVersion") && !(without && str_eq(#symbol, without)))                  \
    fprintf(c, "int %s(void) { return 0; }\n", #symbol);
  NVRTC_FUNCTIONS(X)
#undef X
  fclose(c);
  snprintf(command, sizeof command, "cc -shared -fPIC -o %s/%s %s 2>/dev/null", folder, name, path);
  return system(command) == 0;
}

static CUresult driver_12(int *v) {
  *v = 12040;
  return CUDA_SUCCESS;
}

static void expect_library(const char *named, bool old_driver, bool taken, const char *remark) {
  struct rt_options o = {.nvrtc = named};
  struct cuda_api driver = {.cuDriverGetVersion = driver_12};
  struct fixture f;
  start(&f, &o);
  rt_use_cuda(f.ctx, old_driver ? &driver : NULL);
  struct rt_library_info i = rt_library_info(f.ctx, RT_LIB_NVRTC);
  bool from_stub = i.loaded && strstr(i.path, "/kiln-stub-") != NULL;
  if (from_stub != taken || (remark && (!i.why || !strstr(i.why, remark))))
    fail_msg("%s: loaded %s, remarks: %s", named, i.path ? i.path : "nothing",
             i.why ? i.why : "none");
  stop(&f);
}

static void test_versions(void **state) {
  (void)state;
  char folder[] = "/tmp/kiln-stub-XXXXXX", path[600];
  assert_non_null(mkdtemp(folder));
  bool built = build_stub(folder, "libnvrtc.so.11.8", 11, 8, NULL) &&
               build_stub(folder, "libnvrtc.so.12.3", 12, 3, NULL) &&
               build_stub(folder, "libnvrtc.so.14", 14, 0, NULL) &&
               build_stub(folder, "libnvrtc.so.old", 12, 9, "nvrtcGetCUBIN") &&
               build_stub(folder, "libnvrtc.so.13", 13, 2, NULL) &&
               build_stub(folder, "libnvrtc.so.12", 12, 4, NULL);
  if (built) {
    static const struct {
      const char *file, *remark;
    } refused[] = {{"libnvrtc.so.11.8", "version 11.8 is not one of 12.4 to 13.x"},
                   {"libnvrtc.so.12.3", "version 12.3 is not one of"},
                   {"libnvrtc.so.14", "version 14.0 is not one of"},
                   {"libnvrtc.so.old", "it has no nvrtcGetCUBIN"},
                   {"stub.c", "does not load"}};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
      snprintf(path, sizeof path, "%s/%s", folder, refused[i].file);
      expect_library(path, false, false, refused[i].remark);
    }
    expect_library(folder, false, true, NULL); /* a folder: its newest */
    snprintf(path, sizeof path, "%s/libnvrtc.so.12", folder);
    expect_library(path, true, true, NULL);
    snprintf(path, sizeof path, "%s/libnvrtc.so.13", folder);
    expect_library(path, true, false, "needs a newer driver than the installed one (CUDA 12)");
    /* A folder falls back to what the driver can take. */
    expect_library(folder, true, true, "libnvrtc.so.13: version 13 needs a newer driver");
  }
  char command[700];
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
  if (!built) {
    printf("SKIP: no C compiler (cc) to build stub libraries with\n");
    skip();
  }
}

/* ---- helpers ---- */

static const struct rt_options self_helper = {
    .worker = RT_WORKER_MUST, .worker_path = "/proc/self/exe", .worker_count = 2};

static void test_misbehaving(void **state) {
  (void)state;
  struct fixture f;
  start(&f, &self_helper);
  static const struct {
    const char *source, *message;
  } bad[] = {
      {"// crash", "crashed with signal 11"},
      {"// crash", "it said: ptxas fatal: everything is lost"},
      {"// exit", "ended with exit code 7 while compiling bad"},
      {"// hang", "was stopped after its time limit of 300 ms"},
      {"// garbage", "not a message of Kiln's"},
      {"// huge", "message too large"},
      {"// other-version", "of another version"},
      {"// hello-again", "sent an unexpected message"},
      {"// damaged", "sent a damaged message"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    /* Between two good jobs, which must not be touched by it. */
    struct rt_compile_job jobs[3] = {job_of("first", "// good one"), job_of("bad", bad[i].source),
                                     job_of("last", "// good two")};
    jobs[1].timeout_ms = 300;
    struct rt_compiled out[3];
    diag_clear(&f.diags);
    assert_int_equal(rt_compile_batch(f.ctx, jobs, 3, out), RT_FAILED);
    assert_int_equal(out[0].status, RT_OK);
    assert_int_equal(out[1].status, RT_FAILED);
    assert_int_equal(out[2].status, RT_OK);
    assert_memory_equal(out[2].cubin, "// good two", 11);
    assert_int_equal(out[0].nvrtc_major, 12);
    assert_false(out[0].in_process);
    assert_int_equal(f.diags.n_errors, 1);
    help_expect_diag(&f.diags, DIAG_WORKER, bad[i].message);
    for (int k = 0; k < 3; k++)
      rt_compiled_free(&out[k]);
  }
  /* Many jobs over two helpers, in order. */
  struct rt_compile_job jobs[20];
  struct rt_compiled out[20];
  char sources[20][24];
  for (int i = 0; i < 20; i++) {
    snprintf(sources[i], sizeof sources[i], "// good %d", i);
    jobs[i] = job_of("k", sources[i]);
  }
  assert_int_equal(rt_compile_batch(f.ctx, jobs, 20, out), RT_OK);
  for (int i = 0; i < 20; i++) {
    assert_int_equal(out[i].cubin_size, strlen(sources[i]));
    assert_memory_equal(out[i].cubin, sources[i], strlen(sources[i]));
    rt_compiled_free(&out[i]);
  }
  stop(&f);
}

static void test_no_helper(void **state) {
  (void)state;
  struct rt_options o = {.worker = RT_WORKER_AUTO, .worker_path = "/nonexistent/kiln-worker"};
  struct fixture f;
  start(&f, &o);
  rt_use_nvrtc(f.ctx, &fake_nvrtc, 12, 6);
  fake_log = REPORT;
  fake_compile_result = NVRTC_SUCCESS;
  struct rt_compile_job job = job_of("k", "// good");
  struct rt_compiled c;
  assert_int_equal(rt_compile(f.ctx, &job, &c), RT_OK);
  assert_true(c.in_process);
  rt_compiled_free(&c);
  assert_non_null(strstr(f.log, "compiling in this process: no compile helper at /nonexistent"));
  stop(&f);
  o.worker = RT_WORKER_MUST;
  start(&f, &o);
  rt_use_nvrtc(f.ctx, &fake_nvrtc, 12, 6);
  assert_int_equal(rt_compile(f.ctx, &job, &c), RT_MISSING);
  help_expect_diag(&f.diags, DIAG_WORKER, "no compile helper at /nonexistent/kiln-worker");
  rt_compiled_free(&c);
  stop(&f);
  /* One that dies at once, and one that finds no NVRTC. */
  setenv("KILN_TEST_HELPER", "no-start", 1);
  start(&f, &self_helper);
  assert_int_equal(rt_compile(f.ctx, &job, &c), RT_MISSING);
  help_expect_diag(&f.diags, DIAG_WORKER, "ended with exit code 3 when it was started");
  rt_compiled_free(&c);
  stop(&f);
  setenv("KILN_TEST_HELPER", "no-nvrtc", 1);
  start(&f, &self_helper);
  assert_int_equal(rt_compile(f.ctx, &job, &c), RT_MISSING);
  help_expect_diag(&f.diags, DIAG_NO_NVRTC, "NVRTC not found (by the helper)");
  rt_compiled_free(&c);
  stop(&f);
  unsetenv("KILN_TEST_HELPER");
}

/* A helper that was killed while idle costs nothing. */
static void test_killed_idle(void **state) {
  (void)state;
  struct rt_options o = self_helper;
  o.worker_count = 1;
  struct fixture f;
  start(&f, &o);
  struct rt_compile_job job = job_of("k", "// good");
  for (int i = 0; i < 2; i++) {
    struct rt_compiled c;
    assert_int_equal(rt_compile(f.ctx, &job, &c), RT_OK);
    rt_compiled_free(&c);
    /* The only child is the helper: stop it without reaping it. */
    char path[64], text[64] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *children = fopen(path, "r");
    if (!children || !fgets(text, sizeof text, children)) {
      printf("SKIP: /proc does not list children\n");
      if (children)
        fclose(children);
      break;
    }
    fclose(children);
    pid_t pid = (pid_t)atoi(text);
    assert_true(pid > 1);
    kill(pid, SIGKILL);
    siginfo_t info;
    waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
  }
  stop(&f);
}

static bool oom_helper_body(struct help_mem *mem, void *user) {
  (void)user;
  struct diag_sink diags;
  assert_true(diag_init(&diags, &mem_libc));
  struct rt_ctx *ctx;
  enum rt_status status = rt_ctx_new(&mem->alloc, &diags, &self_helper, &ctx);
  if (status == RT_OK) {
    struct rt_compile_job jobs[2] = {job_of("a", "// good"), job_of("b", "// good")};
    struct rt_compiled out[2];
    status = rt_compile_batch(ctx, jobs, 2, out);
    for (int i = 0; i < 2; i++) {
      assert_true(status != RT_OK || out[i].status == RT_OK);
      rt_compiled_free(&out[i]);
    }
    rt_ctx_free(ctx);
  }
  if (status != RT_OK) {
    assert_int_equal(status, RT_NO_MEMORY);
    assert_true(diags.n_errors >= 1);
  }
  diag_free(&diags);
  return status == RT_OK;
}

static void test_no_memory_helper(void **state) {
  (void)state;
  assert_true(help_oom_loop(oom_helper_body, NULL, false) > 4);
}

/* ---- with NVRTC ---- */

static void test_nvrtc(void **state) {
  (void)state;
  struct fixture f;
  start(&f, NULL);
  if (!has_nvrtc(&f)) {
    stop(&f);
    skip();
  }
  struct rt_compile_job job = job_of("scale.cu", good);
  job.want_ptx = true;
  struct rt_compiled c, d;
  assert_int_equal(rt_compile(f.ctx, &job, &c), RT_OK);
  assert_int_equal(rt_compile(f.ctx, &job, &d), RT_OK);
  assert_true(c.cubin_size > 100 && memcmp(c.cubin,
                                           "\x7f"
                                           "ELF",
                                           4) == 0);
  assert_int_equal(c.cubin_size, d.cubin_size);
  assert_memory_equal(c.cubin, d.cubin, c.cubin_size);
  assert_non_null(strstr(c.ptx, ".entry scale"));
  assert_int_equal(c.n_kernels, 1);
  assert_string_equal(c.kernels[0].name, "scale");
  assert_true(c.kernels[0].regs >= 4 && c.kernels[0].regs <= 32);
  printf("NVRTC %d.%d: %.1f ms, %u registers\n", c.nvrtc_major, c.nvrtc_minor, d.compile_ms,
         c.kernels[0].regs);
  rt_compiled_free(&c);
  rt_compiled_free(&d);
  job.source = "__global__ void k(int *a) { a[0] = b; int q = 1 }\n";
  assert_int_equal(rt_compile(f.ctx, &job, &c), RT_FAILED);
  help_expect_diag(&f.diags, DIAG_COMPILE_FAILED, "scale.cu(1): error: identifier \"b\"");
  assert_int_equal(f.diags.n_errors, 1);
  assert_true(f.diags.list.at[0].notes.n >= 1);
  rt_compiled_free(&c);
  diag_clear(&f.diags);
  job.source = good;
  job.arch = "sm_12345";
  assert_int_equal(rt_compile(f.ctx, &job, &c), RT_FAILED);
  help_expect_diag(&f.diags, DIAG_COMPILE_FAILED, "invalid value for --gpu-architecture");
  rt_compiled_free(&c);
  diag_clear(&f.diags);
  job.arch = "compute_90a";
  assert_int_equal(rt_compile(f.ctx, &job, &c), RT_FAILED);
  help_expect_diag(&f.diags, DIAG_COMPILE_FAILED, "`compute_90a` is not a real architecture");
  rt_compiled_free(&c);
  stop(&f);
}

static void test_nvrtc_rejections(void **state) {
  (void)state;
  struct fixture f;
  start(&f, NULL);
  if (!has_nvrtc(&f)) {
    stop(&f);
    skip();
  }
  static const char spills[] =
      "extern \"C\" __global__ void __launch_bounds__(128) greedy(float *a, int n) {\n"
      "  float r[200];\n  for (int i = 0; i < 200; i++) r[i] = a[i * threadIdx.x];\n"
      "  for (int k = 0; k < n; k++)\n"
      "    for (int i = 0; i < 200; i++) r[i] = r[i] * r[(i + 7) % 200];\n"
      "  for (int i = 0; i < 200; i++) a[i * threadIdx.x] = r[i];\n}\n";
  static const char serialized[] =
      "extern \"C\" __global__ void wg(float *out, unsigned long long da,\n"
      "                              unsigned long long db) {\n"
      "  float c[4] = {0, 0, 0, 0};\n"
      "  asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");\n"
      "  for (int k = 0; k < 4; k++) {\n"
      "    asm volatile(\"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, %4, "
      "%5, 1,1,1,0,0;\" : \"+f\"(c[0]), \"+f\"(c[1]), \"+f\"(c[2]), \"+f\"(c[3]) : \"l\"(da + k), "
      "\"l\"(db));\n    c[0] += 1.0f;\n  }\n"
      "  asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\");\n"
      "  asm volatile(\"wgmma.wait_group.sync.aligned 0;\" ::: \"memory\");\n"
      "  out[threadIdx.x] = c[0] + c[1] + c[2] + c[3];\n}\n";
  const char *limit[] = {"--maxrregcount=64"};
  struct rt_compile_job job = job_of("greedy.cu", spills);
  job.options = limit;
  job.n_options = 1;
  struct rt_compiled c;
  assert_int_equal(rt_compile(f.ctx, &job, &c), RT_FAILED);
  help_expect_diag(&f.diags, DIAG_COMPILE_REJECTED, "kernel greedy spills registers");
  rt_compiled_free(&c);
  job = job_of("wg.cu", serialized);
  assert_int_equal(rt_compile(f.ctx, &job, &c), RT_FAILED);
  help_expect_diag(&f.diags, DIAG_COMPILE_REJECTED, "wg.cu: ptxas reports C75");
  rt_compiled_free(&c);
  job.allow_serialized = true;
  assert_int_equal(rt_compile(f.ctx, &job, &c), RT_OK);
  rt_compiled_free(&c);
  stop(&f);
}

static void test_real_helper(void **state) {
  (void)state;
  const char *build = getenv("KILN_BUILD");
  char path[1024] = "";
  snprintf(path, sizeof path, "%s/kiln-worker", build ? build : "/nonexistent");
  struct rt_options o = {.worker = RT_WORKER_MUST, .worker_path = path, .worker_count = 2};
  struct fixture f;
  start(&f, &o);
  bool nvrtc = has_nvrtc(&f);
  if (!nvrtc || access(path, X_OK) != 0) {
    if (nvrtc)
      printf("SKIP: no kiln-worker at %s (KILN_BUILD)\n", path);
    stop(&f);
    skip();
  }
  struct fixture g;
  start(&g, NULL);
  struct rt_compile_job jobs[3] = {job_of("a.cu", good), job_of("b.cu", "int x = ;\n"),
                                   job_of("c.cu", good)};
  jobs[2].lineinfo = true;
  struct rt_compiled here[3], there[3];
  assert_int_equal(rt_compile_batch(g.ctx, jobs, 3, here), RT_FAILED);
  assert_int_equal(rt_compile_batch(f.ctx, jobs, 3, there), RT_FAILED);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(here[i].status, there[i].status);
    assert_true(here[i].in_process && !there[i].in_process);
    assert_int_equal(here[i].cubin_size, there[i].cubin_size);
    assert_memory_equal(here[i].cubin, there[i].cubin, here[i].cubin_size);
    assert_int_equal(here[i].n_kernels, there[i].n_kernels);
    assert_int_equal(here[i].nvrtc_minor, there[i].nvrtc_minor);
  }
  assert_string_equal(help_last_message(&f.diags), help_last_message(&g.diags));
  for (int i = 0; i < 3; i++) {
    rt_compiled_free(&here[i]);
    rt_compiled_free(&there[i]);
  }
  stop(&f);
  stop(&g);
}

int main(int argc, char **argv) {
  if (argc == 6) {
    signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler would turn the signal into an exit */
    return bad_helper(atoi(argv[1]));
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_log),         cmocka_unit_test(test_options_text),
      cmocka_unit_test(test_acceptance),  cmocka_unit_test(test_missing),
      cmocka_unit_test(test_versions),    cmocka_unit_test(test_no_memory),
      cmocka_unit_test(test_misbehaving), cmocka_unit_test(test_no_helper),
      cmocka_unit_test(test_killed_idle), cmocka_unit_test(test_no_memory_helper),
      cmocka_unit_test(test_nvrtc),       cmocka_unit_test(test_nvrtc_rejections),
      cmocka_unit_test(test_real_helper),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
