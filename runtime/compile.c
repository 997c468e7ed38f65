/* From jobs to accepted cubins: chooses helper or process, reads ptxas' report, applies the rules
 * of acceptance, and says in words why a job failed. */
#include "runtime/internal.h"

#include <inttypes.h>
#include <stdlib.h>

void rt_compiled_init(struct rt_compiled *c, const struct mem_alloc *mem) {
  memset(c, 0, sizeof *c);
  c->status = RT_FAILED;
  c->log = "";
  arena_init(&c->arena, mem, &c->trap);
}

void rt_compiled_free(struct rt_compiled *c) {
  if (c && c->arena.mem)
    arena_free(&c->arena);
  if (c)
    memset(c, 0, sizeof *c);
}

/* ---- ptxas' report ---- */

/* Copies the text between a and b. */
static const char *copy_span(struct arena *arena, const char *a, const char *b) {
  return arena_strndup(arena, a, (size_t)(b - a));
}

/* The number before `text` in the line, as in "168 registers"; 0 if the text is not there. */
static uint32_t number_before(const char *line, size_t n, const char *text) {
  size_t len = strlen(text);
  for (size_t i = 0; i + len <= n; i++)
    if (memcmp(line + i, text, len) == 0) {
      size_t d = i;
      while (d > 0 && line[d - 1] >= '0' && line[d - 1] <= '9')
        d--;
      if (d < i)
        return (uint32_t)strtoul(line + d, NULL, 10);
    }
  return 0;
}

/* The text in single quotes after `key`; NULL if the line has none. */
static const char *quoted_after(struct arena *arena, const char *line, size_t n, const char *key) {
  size_t len = strlen(key);
  if (n < len)
    return NULL;
  for (size_t i = 0; i + len <= n; i++)
    if (memcmp(line + i, key, len) == 0) {
      const char *a = memchr(line + i + len, '\'', n - i - len);
      const char *b = a ? memchr(a + 1, '\'', (size_t)(line + n - a - 1)) : NULL;
      return b ? copy_span(arena, a + 1, b) : NULL;
    }
  return NULL;
}

static bool has(const char *line, size_t n, const char *text) {
  size_t len = strlen(text);
  for (size_t i = 0; i + len <= n; i++)
    if (memcmp(line + i, text, len) == 0)
      return true;
  return false;
}

struct log_parse {
  struct rt_compiled *c;
  const char *log;
  VEC(struct rt_kernel_info) kernels;
  VEC(struct rt_ptxas_remark) remarks;
  bool in_entry; /* the property lines that follow belong to the newest kernel */
};

static void parse_remark(struct log_parse *p, const char *line, size_t n) {
  const char *open = memchr(line, '(', n);
  if (!open || (size_t)(line + n - open) < 7 || open[1] != 'C' || open[6] != ')')
    return;
  for (int i = 2; i < 6; i++)
    if (open[i] < '0' || open[i] > '9')
      return;
  struct arena *a = &p->c->arena;
  struct rt_ptxas_remark r = {copy_span(a, open + 1, open + 6), copy_span(a, line, line + n)};
  VEC_PUSH(a, &p->remarks, r);
}

static void parse_line(struct log_parse *p, const char *line, size_t n) {
  struct arena *a = &p->c->arena;
  parse_remark(p, line, n);
  const char *entry = quoted_after(a, line, n, "Compiling entry function");
  if (entry) {
    VEC_PUSH(a, &p->kernels, ((struct rt_kernel_info){.name = entry}));
    p->in_entry = true;
    return;
  }
  /* "Function properties for NAME": of the entry, or of a function that was not inlined, whose
   * spills count as much but have no kernel of their own: they go to the newest entry. */
  if (!p->kernels.n)
    return;
  struct rt_kernel_info *k = &VEC_LAST(&p->kernels);
  if (has(line, n, "bytes stack frame")) {
    k->stack += number_before(line, n, " bytes stack frame");
    k->spill_stores += number_before(line, n, " bytes spill stores");
    k->spill_loads += number_before(line, n, " bytes spill loads");
  } else if (has(line, n, "Used ") && has(line, n, " registers") && p->in_entry) {
    k->regs = number_before(line, n, " registers");
    k->barriers = number_before(line, n, " barriers");
    k->smem_static = number_before(line, n, " bytes smem");
    k->cmem = number_before(line, n, " bytes cmem[0]");
    p->in_entry = false;
  }
}

static void parse_log(void *user) {
  struct log_parse *p = user;
  for (const char *line = p->log; *line;) {
    size_t n = strcspn(line, "\n");
    parse_line(p, line, n);
    line += n + (line[n] == '\n');
  }
  p->c->kernels = p->kernels.at;
  p->c->n_kernels = p->kernels.n;
  p->c->remarks = p->remarks.at;
  p->c->n_remarks = p->remarks.n;
}

void rt_parse_ptxas_log(struct rt_compiled *c, const char *log) {
  struct log_parse p = {.c = c, .log = log};
  if (!arena_guard(&c->arena, parse_log, &p))
    c->status = RT_NO_MEMORY;
}

/* ---- messages ---- */

/* NVRTC's first error line becomes the message, up to three more become notes. */
static void report_log(struct rt_ctx *ctx, const struct rt_compile_job *job,
                       const struct rt_compiled *c, const char *error) {
  int told = 0;
  for (const char *line = c->log; *line && told < 4;) {
    size_t n = strcspn(line, "\n");
    bool is_error = has(line, n, "error") || has(line, n, "fatal");
    if (is_error && !has(line, n, "errors detected") && !has(line, n, "error detected")) {
      if (told++ == 0)
        rt_fail(ctx, RT_FAILED, DIAG_COMPILE_FAILED, "NVRTC %d.%d refuses %s: %.*s", c->nvrtc_major,
                c->nvrtc_minor, job->name, (int)n, line);
      else
        diag_note(ctx->diags, DIAG_NOWHERE, "%.*s", (int)n, line);
    }
    line += n + (line[n] == '\n');
  }
  if (!told)
    rt_fail(ctx, RT_FAILED, DIAG_COMPILE_FAILED, "NVRTC %d.%d refuses %s: %s", c->nvrtc_major,
            c->nvrtc_minor, job->name, error ? error : "no reason given");
}

static bool is_refused_remark(const struct rt_ptxas_remark *r) {
  return (str_starts(r->code, "C75") && !str_eq(r->code, "C7519")) || str_eq(r->code, "C7602");
}

/* What compiled but may not be used. */
static enum rt_status accept(struct rt_ctx *ctx, const struct rt_compile_job *job,
                             const struct rt_compiled *c) {
  if (c->n_kernels == 0)
    return rt_fail(
        ctx, RT_FAILED, DIAG_COMPILE_REJECTED,
        "%s: ptxas did not report on registers and spills, by which kernels are accepted",
        job->name);
  for (uint32_t i = 0; i < c->n_remarks && !job->allow_serialized; i++)
    if (is_refused_remark(&c->remarks[i]))
      return rt_fail(ctx, RT_FAILED, DIAG_COMPILE_REJECTED, "%s: ptxas reports %s: %s", job->name,
                     c->remarks[i].code, c->remarks[i].text);
  for (uint32_t i = 0; i < c->n_kernels; i++) {
    const struct rt_kernel_info *k = &c->kernels[i];
    if (k->spill_stores + k->spill_loads > job->max_spill_bytes)
      return rt_fail(ctx, RT_FAILED, DIAG_COMPILE_REJECTED,
                     "%s: kernel %s spills registers: %u bytes stored, %u loaded (allowed: %u), "
                     "with %u registers a thread; use smaller tiles or more threads",
                     job->name, k->name, k->spill_stores, k->spill_loads, job->max_spill_bytes,
                     k->regs);
    if (job->allow_regs && k->regs > job->allow_regs)
      return rt_fail(ctx, RT_FAILED, DIAG_COMPILE_REJECTED,
                     "%s: kernel %s uses %u registers a thread (allowed: %u)", job->name, k->name,
                     k->regs, job->allow_regs);
  }
  return RT_OK;
}

static void finish(struct rt_ctx *ctx, const struct rt_compile_job *job, struct rt_compiled *c,
                   const char *error) {
  if (c->status == RT_OK)
    rt_parse_ptxas_log(c, c->log);
  switch (c->status) {
  case RT_OK: c->status = accept(ctx, job, c); break;
  case RT_NO_MEMORY:
    if (c->in_process || !error)
      rt_no_memory(ctx);
    else
      rt_fail(ctx, RT_NO_MEMORY, DIAG_NO_MEMORY,
              "%s: %s (the compile helper's memory limit is %" PRIu64 " MiB)", job->name, error,
              ctx->options.compile_memory >> 20);
    break;
  case RT_MISSING: rt_fail(ctx, RT_MISSING, DIAG_NO_NVRTC, "%s", error); break;
  case RT_BAD_INPUT: rt_fail(ctx, RT_BAD_INPUT, DIAG_USAGE, "%s", error); break;
  case RT_DEAD: /* the helper died over it */
    c->status = rt_fail(ctx, RT_FAILED, DIAG_WORKER, "%s", error);
    break;
  case RT_FAILED: report_log(ctx, job, c, error); break;
  }
  if (c->status != RT_OK) {
    c->cubin = NULL;
    c->cubin_size = 0;
  }
}

/* ---- the two ways ---- */

static enum rt_status compile_here(struct rt_ctx *ctx, const struct rt_compile_job *jobs,
                                   uint32_t n, struct rt_compiled *out) {
  enum rt_status status = rt_library_need(ctx, RT_LIB_NVRTC);
  if (status != RT_OK) {
    for (uint32_t i = 0; i < n; i++)
      out[i].status = status;
    return status;
  }
  for (uint32_t i = 0; i < n; i++) {
    const char *error = NULL;
    out[i].in_process = true;
    rt_nvrtc_compile(ctx, &jobs[i], &out[i], &error);
    finish(ctx, &jobs[i], &out[i], error);
    if (out[i].status != RT_OK && status == RT_OK)
      status = out[i].status;
  }
  return status;
}

static enum rt_status compile_in_helpers(struct rt_ctx *ctx, const struct rt_compile_job *jobs,
                                         uint32_t n, struct rt_compiled *out, bool *none) {
  const char **errors = mem_get0(&ctx->mem, sizeof *errors * n);
  if (!errors)
    return rt_no_memory(ctx);
  const char *why = NULL;
  enum rt_status status = rt_pool_compile(ctx, jobs, n, out, errors, &why);
  *none = status == RT_MISSING;
  if (*none && ctx->options.worker == RT_WORKER_MUST) {
    *none = false;
    rt_fail(ctx, RT_MISSING, DIAG_WORKER, "%s", why);
    for (uint32_t i = 0; i < n; i++)
      out[i].status = RT_MISSING;
  } else if (*none) {
    if (!ctx->said_in_process)
      rt_log(ctx, "compiling in this process: %s", why);
    ctx->said_in_process = true;
  } else if (status == RT_OK) {
    for (uint32_t i = 0; i < n; i++) {
      finish(ctx, &jobs[i], &out[i], errors[i]);
      if (out[i].status != RT_OK && status == RT_OK)
        status = out[i].status;
    }
  } else {
    rt_no_memory(ctx);
    for (uint32_t i = 0; i < n; i++)
      out[i].status = status;
  }
  mem_drop(&ctx->mem, errors, sizeof *errors * n);
  return status;
}

enum rt_status rt_compile_batch(struct rt_ctx *ctx, const struct rt_compile_job *jobs, uint32_t n,
                                struct rt_compiled *out) {
  for (uint32_t i = 0; i < n; i++)
    rt_compiled_init(&out[i], &ctx->mem);
  if (n == 0)
    return RT_OK;
  if (ctx->options.worker != RT_WORKER_OFF) {
    bool none = false;
    enum rt_status status = compile_in_helpers(ctx, jobs, n, out, &none);
    if (!none)
      return status;
  }
  return compile_here(ctx, jobs, n, out);
}

enum rt_status rt_compile(struct rt_ctx *ctx, const struct rt_compile_job *job,
                          struct rt_compiled *out) {
  return rt_compile_batch(ctx, job, 1, out);
}
