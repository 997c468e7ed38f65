/* Contexts, diagnostics, and running public calls under an allocation guard. */
#include "api/api.h"

#include "base/check.h"

#include <stdio.h>
#include <time.h>

const char *kiln_status_name(enum kiln_status status) {
  static const char *const names[] = {"ok",     "invalid", "out of memory", "unavailable",
                                      "failed", "wrong",   "interrupted"};
  return (unsigned)status < sizeof names / sizeof *names ? names[status] : "unknown status";
}

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

const char *kiln_version(void) {
  return TEXT(KILN_VERSION_MAJOR) "." TEXT(KILN_VERSION_MINOR) "." TEXT(KILN_VERSION_PATCH);
}

void api_object_init(struct api_object *o, struct kiln_context *ctx) {
  o->ctx = ctx;
  arena_init(&o->arena, &ctx->mem, &o->trap);
}

void api_object_free(struct api_object *o) {
  if (o->ctx)
    arena_free(&o->arena);
}

struct guarded_call {
  enum kiln_status (*fn)(void *user);
  void *user;
  enum kiln_status status;
};

static void call_guarded(void *user) {
  struct guarded_call *c = user;
  c->status = c->fn(c->user);
}

enum kiln_status api_guarded(struct api_object *o, enum kiln_status (*fn)(void *user), void *user) {
  struct guarded_call c = {fn, user, KILN_OK};
  locale_t callers = uselocale(o->ctx->c_locale);
  if (!arena_guard(&o->arena, call_guarded, &c))
    c.status = api_no_memory(o->ctx);
  uselocale(callers);
  return c.status;
}

enum kiln_status api_from_rt(enum rt_status st) {
  switch (st) {
  case RT_OK: return KILN_OK;
  case RT_NO_MEMORY: return KILN_NO_MEMORY;
  case RT_MISSING: return KILN_UNAVAILABLE;
  case RT_BAD_INPUT: return KILN_INVALID;
  case RT_FAILED:
  case RT_DEAD: return KILN_FAILED;
  }
  KILN_UNREACHABLE();
}

bool api_interrupted(void *user) {
  struct kiln_context *ctx = user;
  return ctx->opt.interrupted && ctx->opt.interrupted(ctx->opt.interrupted_user);
}

void api_log(struct kiln_context *ctx, enum kiln_log_level level, const char *fmt, ...) {
  if (!ctx->opt.log)
    return;
  char line[1024];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(line, sizeof line, fmt, ap);
  va_end(ap);
  ctx->opt.log(ctx->opt.log_user, level, line);
}

struct shown {
  struct strbuf b;
  const char *line;
  size_t n;
};

static void show_line(void *user) {
  struct shown *s = user;
  sb_put_shown(&s->b, s->line, s->n, false);
}

void api_print_line(void *user, const char *line) {
  api_print(user, line, strlen(line));
}

void api_print(struct kiln_context *ctx, const char *line, size_t n) {
  struct arena a;
  arena_init(&a, &ctx->mem, NULL);
  struct shown s = {.b = {.arena = &a}, .line = line, .n = n};
  bool ok = arena_guard(&a, show_line, &s);
  api_log(ctx, KILN_LOG_INFO, "%s", ok ? sb_str(&s.b) : "a line that memory did not suffice for");
  arena_free(&a);
}

double api_now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

struct append_call {
  struct strbuf *out;
  const char *text;
  size_t n;
};

static void append(void *user) {
  struct append_call *c = user;
  sb_put(c->out, c->text, c->n);
}

bool api_try_append(struct strbuf *out, const char *text, size_t n) {
  struct append_call c = {out, text, n};
  return arena_guard(out->arena, append, &c);
}

static void runtime_log(void *user, const char *text) {
  api_log(user, KILN_LOG_INFO, "%s", text);
}

enum kiln_status api_runtime(struct kiln_context *ctx, struct rt_ctx **out) {
  if (!ctx->rt) {
    struct rt_options o = {.private_dir = ctx->private_dir,
                           .worker = ctx->worker_path ? RT_WORKER_AUTO : RT_WORKER_OFF,
                           .worker_path = ctx->worker_path,
                           .log = runtime_log,
                           .log_user = ctx};
    enum rt_status st = rt_ctx_new(&ctx->mem, &ctx->diags, &o, &ctx->rt);
    if (st != RT_OK)
      return api_from_rt(st);
  }
  *out = ctx->rt;
  return KILN_OK;
}

enum kiln_status api_device(struct kiln_context *ctx, struct rt_device **out) {
  struct rt_ctx *rt = NULL;
  enum kiln_status st = api_runtime(ctx, &rt);
  if (st == KILN_OK && !ctx->device) {
    int n = 0;
    st = api_from_rt(rt_device_count(rt, &n));
    if (st == KILN_OK)
      st = api_from_rt(rt_device_open(rt, 0, &ctx->device));
  }
  *out = ctx->device;
  return st;
}

static void keep_reason(void *user) {
  struct kiln_context *ctx = user;
  ctx->no_device = arena_strdup(&ctx->own.arena, VEC_LAST(&ctx->diags.list).message);
}

enum kiln_status api_device_if_any(struct kiln_context *ctx, struct rt_device **out) {
  uint32_t before = ctx->diags.list.n;
  *out = NULL;
  if (ctx->no_device)
    return KILN_OK;
  enum kiln_status st = api_device(ctx, out);
  if (st == KILN_OK || st == KILN_NO_MEMORY)
    return st;
  /* The reason is kept for kiln_doctor; without it the search is made again the next time. */
  if (ctx->diags.list.n > before)
    arena_guard(&ctx->own.arena, keep_reason, ctx);
  diag_truncate(&ctx->diags, before);
  return KILN_OK;
}

enum kiln_status api_nvrtc_version(struct kiln_context *ctx, int *major, int *minor) {
  struct rt_ctx *rt = NULL;
  uint32_t before = ctx->diags.list.n;
  *major = *minor = 0;
  enum kiln_status st = api_runtime(ctx, &rt);
  if (st != KILN_OK)
    return st;
  st = api_from_rt(rt_library_need(rt, RT_LIB_NVRTC));
  if (st == KILN_NO_MEMORY)
    return st;
  diag_truncate(&ctx->diags, before);
  struct rt_library_info info = rt_library_info(rt, RT_LIB_NVRTC);
  *major = info.major;
  *minor = info.minor;
  return KILN_OK;
}

static enum kiln_status start(void *user) {
  struct kiln_context *ctx = user;
  struct arena *a = &ctx->own.arena;
  const struct kiln_context_options *o = &ctx->opt;
  ctx->worker_path = o->worker_path ? arena_strdup(a, o->worker_path) : NULL;
  ctx->private_dir = o->private_dir ? arena_strdup(a, o->private_dir) : NULL;
  ctx->ir_debug = o->ir_debug ? arena_strdup(a, o->ir_debug) : NULL;
  return KILN_OK;
}

enum kiln_status kiln_context_new(const struct kiln_context_options *options,
                                  struct kiln_context **out) {
  *out = NULL;
  struct kiln_context_options o = {0};
  if (options) {
    if (options->struct_size == 0 || options->struct_size > sizeof o)
      return KILN_INVALID; /* a newer program than this library */
    memcpy(&o, options, options->struct_size);
  }
  struct mem_alloc mem = o.alloc ? (struct mem_alloc){o.alloc, o.alloc_user} : mem_libc;
  struct kiln_context *ctx = mem_get0(&mem, sizeof *ctx);
  if (!ctx)
    return KILN_NO_MEMORY;
  ctx->mem = mem;
  ctx->opt = o;
  ctx->c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  api_object_init(&ctx->own, ctx);
  api_object_init(&ctx->shown, ctx);
  api_object_init(&ctx->reduced, ctx);
  if (!diag_init(&ctx->diags, &ctx->mem) || api_guarded(&ctx->own, start, ctx) != KILN_OK) {
    kiln_context_free(ctx);
    return KILN_NO_MEMORY;
  }
  if (o.max_errors)
    ctx->diags.max_errors = o.max_errors;
  *out = ctx;
  return KILN_OK;
}

void kiln_context_free(struct kiln_context *ctx) {
  if (!ctx)
    return;
  rt_device_close(ctx->device);
  rt_ctx_free(ctx->rt);
  diag_free(&ctx->diags);
  api_object_free(&ctx->reduced);
  api_object_free(&ctx->shown);
  api_object_free(&ctx->own);
  if (ctx->c_locale)
    freelocale(ctx->c_locale);
  struct mem_alloc mem = ctx->mem;
  mem_drop(&mem, ctx, sizeof *ctx);
}

uint32_t kiln_diag_count(const struct kiln_context *ctx) {
  return ctx->diags.list.n;
}

bool kiln_diag_is_error(const struct kiln_context *ctx, uint32_t i) {
  return i < ctx->diags.list.n && ctx->diags.list.at[i].severity == DIAG_ERROR;
}

const char *kiln_diag_code(const struct kiln_context *ctx, uint32_t i) {
  return i < ctx->diags.list.n ? diag_code(ctx->diags.list.at[i].id) : "";
}

struct api_mark api_mark(const struct kiln_context *ctx) {
  return (struct api_mark){ctx->diags.n_no_memory, ctx->diags.n_interrupted};
}

enum kiln_status api_failure_since(const struct kiln_context *ctx, struct api_mark since) {
  if (ctx->diags.n_interrupted != since.n_interrupted)
    return KILN_INTERRUPTED;
  return ctx->diags.n_no_memory != since.n_no_memory ? KILN_NO_MEMORY : KILN_INVALID;
}

enum kiln_status api_no_memory(struct kiln_context *ctx) {
  API_ERROR(ctx, NO_MEMORY, "out of memory");
  return KILN_NO_MEMORY;
}

struct render {
  struct kiln_context *ctx;
  uint32_t i;
  bool json;
  const char *text;
};

static enum kiln_status render(void *user) {
  struct render *r = user;
  struct strbuf b = {.arena = &r->ctx->shown.arena};
  const struct diag *d = &r->ctx->diags.list.at[r->i];
  (r->json ? diag_render_json : diag_render_text)(&r->ctx->diags, d, &b);
  r->text = sb_str(&b);
  return KILN_OK;
}

static const char *rendered(struct kiln_context *ctx, uint32_t i, bool json) {
  if (i >= ctx->diags.list.n)
    return "";
  arena_free(&ctx->shown.arena);
  struct render r = {ctx, i, json, NULL};
  if (api_guarded(&ctx->shown, render, &r) == KILN_OK)
    return r.text;
  return json ? "{\"severity\":\"error\",\"id\":\"K0002\",\"message\":\"out of memory\"}"
              : ctx->diags.list.at[i].message;
}

const char *kiln_diag_text(struct kiln_context *ctx, uint32_t i) {
  return rendered(ctx, i, false);
}

const char *kiln_diag_json(struct kiln_context *ctx, uint32_t i) {
  return rendered(ctx, i, true);
}

uint32_t kiln_diag_dropped(const struct kiln_context *ctx) {
  return ctx->diags.n_dropped;
}

void kiln_diag_clear(struct kiln_context *ctx) {
  diag_clear(&ctx->diags);
}
