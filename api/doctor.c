/* kiln_doctor: what this machine has, what is missing, what to do about it. */
#include "api/api.h"

#include <string.h>
#include <unistd.h>

struct doctor_call {
  struct kiln_context *ctx;
  bool json;
  const char *text;
};

static void put_library(struct strbuf *b, const struct rt_library_info *i, bool json, bool first) {
  if (json) {
    sb_puts(b, first ? "{\"name\":" : ",{\"name\":");
    sb_put_json(b, i->name, strlen(i->name));
    sb_printf(b, ",\"found\":%s,\"version\":\"%d.%d\",\"path\":", i->loaded ? "true" : "false",
              i->major, i->minor);
    sb_put_json(b, i->path ? i->path : "", i->path ? strlen(i->path) : 0);
    sb_puts(b, ",\"remark\":");
    sb_put_json(b, i->why ? i->why : "", i->why ? strlen(i->why) : 0);
    sb_putc(b, '}');
    return;
  }
  if (i->loaded && (i->major || i->minor))
    sb_printf(b, "%-12s %d.%d  %s\n", i->name, i->major, i->minor, i->path);
  else
    sb_printf(b, "%-12s %s\n", i->name, i->loaded ? i->path : "missing");
  if (i->why)
    sb_printf(b, "%-12s %s\n", "", i->why);
}

static void put_gpu(struct strbuf *b, struct kiln_context *ctx, struct rt_device *dev, bool json) {
  if (!dev) {
    if (!json)
      sb_printf(b, "%-12s none: %s\n", "GPU", ctx->no_device ? ctx->no_device : "not found");
    return;
  }
  const struct rt_device_info *i = rt_device_info(dev);
  char driver[80];
  if (!rt_driver_version(dev, driver, sizeof driver))
    strcpy(driver, "unknown");
  if (json) {
    sb_puts(b, "{\"name\":");
    sb_put_json(b, i->name, strlen(i->name));
    sb_puts(b, ",\"driver\":");
    sb_put_json(b, driver, strlen(driver));
    sb_printf(b, ",\"arch\":\"%s\",\"sm_count\":%d,\"memory_bytes\":%zu,\"l2_bytes\":%zu}", i->arch,
              i->sm_count, i->memory_bytes, i->l2_bytes);
  } else {
    sb_printf(b, "%-12s %s (%s), driver %s, %d SMs, %.0f GiB, L2 %.0f MiB\n", "GPU", i->name,
              i->arch, driver, i->sm_count, (double)i->memory_bytes / (1 << 30),
              (double)i->l2_bytes / (1 << 20));
  }
}

static enum kiln_status examine(void *user) {
  struct doctor_call *c = user;
  struct kiln_context *ctx = c->ctx;
  struct rt_ctx *rt;
  struct rt_device *dev = NULL;
  enum kiln_status st = api_runtime(ctx, &rt);
  if (st == KILN_OK)
    st = api_device_if_any(ctx, &dev);
  if (st != KILN_OK)
    return st;
  struct strbuf b = {.arena = &ctx->shown.arena};
  sb_printf(&b, c->json ? "{\"version\":\"%s\",\"libraries\":[" : "kiln         %s\n",
            kiln_version());
  for (int i = 0; i < RT_LIB_COUNT; i++) {
    struct rt_library_info info = rt_library_info(rt, (enum rt_library)i);
    put_library(&b, &info, c->json, i == 0);
  }
  const char *worker = ctx->worker_path && access(ctx->worker_path, X_OK) == 0
                           ? ctx->worker_path
                           : "none: kernels compile in this process";
  if (c->json) {
    sb_puts(&b, "],\"gpus\":[");
    put_gpu(&b, ctx, dev, true);
    sb_puts(&b, "],\"host_matmul\":");
    const char *name = rt_host_matmul_name(rt);
    sb_put_json(&b, name, strlen(name));
    sb_puts(&b, ",\"worker\":");
    sb_put_json(&b, worker, strlen(worker));
    sb_puts(&b, "}\n");
  } else {
    put_gpu(&b, ctx, dev, false);
    sb_printf(&b, "%-12s %s\n", "host matmul", rt_host_matmul_name(rt));
    sb_printf(&b, "%-12s %s\n", "worker", worker);
  }
  c->text = sb_str(&b);
  return KILN_OK;
}

enum kiln_status kiln_doctor(struct kiln_context *ctx, bool json, const char **text) {
  *text = NULL;
  arena_free(&ctx->shown.arena);
  struct doctor_call c = {ctx, json, NULL};
  enum kiln_status st = api_guarded(&ctx->shown, examine, &c);
  if (st == KILN_OK)
    *text = c.text;
  return st;
}
