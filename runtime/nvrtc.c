/* One compilation through NVRTC in this process. Used by the runtime where no helper is wanted, and
 * by the helper itself. */
#include "runtime/internal.h"

#include <time.h>

struct compilation {
  struct rt_ctx *ctx;
  const struct rt_compile_job *job;
  struct rt_compiled *out;
  nvrtcProgram program;
  const char *error;
};

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Every option that can change the result, in order, with room for one more. Compilations may not
 * change this process's stack limit; ptxas' report on registers and spills is what acceptance is
 * decided by. */
static uint32_t list_options(const struct rt_compile_job *job, struct arena *a, const char ***out) {
  uint32_t n = 0;
  const char **list = ARENA_ARRAY(a, const char *, job->n_options + 5);
  list[n++] = arena_printf(a, "--gpu-architecture=%s", job->arch);
  list[n++] = "--modify-stack-limit=false";
  list[n++] = "--ptxas-options=-v";
  if (job->lineinfo)
    list[n++] = "-lineinfo";
  for (uint32_t i = 0; i < job->n_options; i++)
    list[n++] = job->options[i];
  *out = list;
  return n;
}

void rt_compile_options_text(const struct rt_compile_job *job, struct strbuf *out) {
  const char **list;
  uint32_t n = list_options(job, out->arena, &list);
  for (uint32_t i = 0; i < n; i++) {
    if (i)
      sb_putc(out, ' ');
    sb_puts(out, list[i]);
  }
}

static bool failed(struct compilation *c, nvrtcResult r, const char *call) {
  if (r == NVRTC_SUCCESS)
    return false;
  c->out->status = r == NVRTC_ERROR_OUT_OF_MEMORY ? RT_NO_MEMORY : RT_FAILED;
  c->error = arena_printf(&c->out->arena, "%s: %s", call, c->ctx->nvrtc.nvrtcGetErrorString(r));
  return true;
}

static void read_log(struct compilation *c) {
  const struct nvrtc_api *n = &c->ctx->nvrtc;
  size_t size = 0;
  if (n->nvrtcGetProgramLogSize(c->program, &size) != NVRTC_SUCCESS || size == 0)
    return;
  char *log = arena_get(&c->out->arena, size + 1);
  if (n->nvrtcGetProgramLog(c->program, log) != NVRTC_SUCCESS)
    return;
  log[size] = 0; /* NVRTC counts its own NUL; do not lean on it */
  c->out->log = log;
}

static void compile(void *user) {
  struct compilation *c = user;
  const struct nvrtc_api *n = &c->ctx->nvrtc;
  struct rt_compiled *out = c->out;
  const char **options;
  uint32_t n_options = list_options(c->job, &out->arena, &options);
  if (failed(c, n->nvrtcCreateProgram(&c->program, c->job->source, c->job->name, 0, NULL, NULL),
             "nvrtcCreateProgram"))
    return;
  /* From 12.9 on NVRTC keeps results of its own on disk and gives no ptxas report with them. */
  const struct rt_lib *lib = &c->ctx->libs[RT_LIB_NVRTC];
  if (lib->major > 12 || (lib->major == 12 && lib->minor >= 9))
    options[n_options++] = "--no-cache";
  double start = now_ms();
  nvrtcResult r = n->nvrtcCompileProgram(c->program, (int)n_options, options);
  out->compile_ms = now_ms() - start;
  read_log(c);
  size_t size = 0;
  if (failed(c, r, "nvrtcCompileProgram") ||
      failed(c, n->nvrtcGetCUBINSize(c->program, &size), "nvrtcGetCUBINSize"))
    return;
  if (size == 0) {
    out->status = RT_FAILED;
    c->error = arena_printf(&out->arena, "NVRTC gave no cubin: `%s` is not a real architecture",
                            c->job->arch);
    return;
  }
  char *cubin = arena_get(&out->arena, size);
  if (failed(c, n->nvrtcGetCUBIN(c->program, cubin), "nvrtcGetCUBIN"))
    return;
  if (c->job->want_ptx) {
    size_t ptx_size = 0;
    if (failed(c, n->nvrtcGetPTXSize(c->program, &ptx_size), "nvrtcGetPTXSize"))
      return;
    char *ptx = arena_get0(&out->arena, ptx_size + 1);
    if (failed(c, n->nvrtcGetPTX(c->program, ptx), "nvrtcGetPTX"))
      return;
    out->ptx = ptx;
  }
  out->cubin = cubin;
  out->cubin_size = size;
  out->status = RT_OK;
}

void rt_nvrtc_compile(struct rt_ctx *ctx, const struct rt_compile_job *job, struct rt_compiled *out,
                      const char **error) {
  struct compilation c = {.ctx = ctx, .job = job, .out = out};
  out->status = RT_FAILED;
  out->nvrtc_major = ctx->libs[RT_LIB_NVRTC].major;
  out->nvrtc_minor = ctx->libs[RT_LIB_NVRTC].minor;
  if (!arena_guard(&out->arena, compile, &c)) {
    out->status = RT_NO_MEMORY;
    c.error = "out of memory";
  }
  if (c.program)
    ctx->nvrtc.nvrtcDestroyProgram(&c.program);
  *error = out->status == RT_OK ? NULL : c.error;
}
