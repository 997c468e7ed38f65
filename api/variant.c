/* Variants: from a request to tile IR, machine IR, CUDA C and a cubin; and showing each stage. */
#include "api/api.h"

#include "base/hash.h"
#include "generated/emitter_version.h"

#include <string.h>

static void dump(void *user, const char *text) {
  struct kiln_context *ctx = user;
  if (ctx->opt.log)
    ctx->opt.log(ctx->opt.log_user, KILN_LOG_INFO, text);
}

struct ir_run_options api_run_options(struct kiln_context *ctx) {
  return (struct ir_run_options){.debug = ctx->ir_debug, .dump = dump, .user = ctx};
}

struct make_call {
  struct kiln_variant *v;
  const struct api_problem *p;
};

/* The facts that the problem's shapes, strides and (fresh, 4096-aligned) buffers satisfy. */
static void add_facts(struct ir_module *m, const struct api_problem *p, struct arena *a) {
  struct cg_arg_value *values = ARENA_ARRAY(a, struct cg_arg_value, p->n_args + 1);
  for (uint32_t i = 0; i < p->n_args; i++) {
    values[i].present = !p->args[i].absent;
    memcpy(values[i].dim, p->args[i].dim, sizeof values[i].dim);
    memcpy(values[i].stride, p->args[i].stride, sizeof values[i].stride);
  }
  cg_facts_from_args(m, values);
}

static enum kiln_status make(void *user) {
  struct make_call *c = user;
  struct kiln_variant *v = c->v;
  const struct api_problem *p = c->p;
  struct kiln_context *ctx = v->own.ctx;
  struct arena *a = &v->own.arena;
  uint32_t before = ctx->diags.list.n;
  double start = api_now_ms();
  if (v->file->tir) {
    v->traced = ir_clone(v->file->tir, a);
  } else {
    struct fe_trace_options opt = {.config = &p->config, .absent = p->absent};
    v->traced = fe_trace(v->file->fe, p->kernel, &opt, a);
    if (!v->traced || !ir_verify(v->traced, &ctx->diags))
      return api_failure_since(ctx, before);
    if (p->shaped)
      add_facts(v->traced, p, a);
  }
  v->tile = v->traced;
  if (v->traced->stage == IR_TILE_STAGE) {
    v->tile = ir_clone(v->traced, a);
    uint32_t n;
    const struct ir_pass *passes = ir_tile_pipeline(&n);
    struct ir_run_options run = api_run_options(ctx);
    if (!ir_run_passes(v->tile, passes, n, &ctx->diags, &run))
      return api_failure_since(ctx, before);
  }
  v->info.trace_ms = api_now_ms() - start;
  return KILN_OK;
}

enum kiln_status api_variant_new(const struct api_problem *p, const struct cg_target *target,
                                 bool lineinfo, struct kiln_variant **out) {
  struct kiln_context *ctx = p->file->own.ctx;
  *out = NULL;
  struct kiln_variant *v = mem_get0(&ctx->mem, sizeof *v);
  if (!v) {
    API_ERROR(ctx, NO_MEMORY, "out of memory");
    return KILN_NO_MEMORY;
  }
  api_object_init(&v->own, ctx);
  api_object_init(&v->shown, ctx);
  v->file = p->file;
  v->target = target;
  v->schedule = p->schedule;
  v->lineinfo = lineinfo;
  struct make_call c = {v, p};
  enum kiln_status st = api_guarded(&v->own, make, &c);
  if (st == KILN_OK)
    *out = v;
  else
    kiln_variant_free(v);
  return st;
}

struct specialise_call {
  struct kiln_file *file;
  const struct kiln_request *req;
  struct kiln_variant **out;
};

static enum kiln_status specialise(void *user) {
  struct specialise_call *c = user;
  struct kiln_context *ctx = c->file->own.ctx;
  const struct cg_target *target = api_pick_target(ctx, c->req->target);
  struct api_problem p;
  if (!target || !api_resolve(c->file, c->req, false, &c->file->work.arena, &p))
    return KILN_INVALID;
  return api_variant_new(&p, target, c->req->lineinfo, c->out);
}

enum kiln_status kiln_specialise(struct kiln_file *file, const struct kiln_request *req,
                                 struct kiln_variant **out) {
  *out = NULL;
  struct specialise_call c = {file, req, out};
  enum kiln_status st = api_guarded(&file->work, specialise, &c);
  arena_free(&file->work.arena);
  return st;
}

void kiln_variant_free(struct kiln_variant *v) {
  if (!v)
    return;
  struct kiln_context *ctx = v->own.ctx;
  rt_module_free(v->module);
  if (v->compiled)
    rt_compiled_free(&v->cubin);
  api_object_free(&v->shown);
  api_object_free(&v->own);
  mem_drop(&ctx->mem, v, sizeof *v);
}

const char *kiln_variant_kernel(const struct kiln_variant *v) {
  return ir_sym(v->tile, v->tile->kernel);
}

const char *kiln_variant_target(const struct kiln_variant *v) {
  return v->target->name;
}

/* ---- lowering, emission, compilation ---- */

static enum kiln_status lower(void *user) {
  struct kiln_variant *v = user;
  struct kiln_context *ctx = v->own.ctx;
  uint32_t before = ctx->diags.list.n;
  double start = api_now_ms();
  if (v->tile->stage == IR_MACHINE_STAGE) {
    v->machine = v->tile;
    return KILN_OK;
  }
  struct ir_run_options run = api_run_options(ctx);
  struct cg_options opt = {
      .target = v->target, .schedule = v->schedule, .stop = IR_MACHINE_STAGE, .run = &run};
  v->machine = cg_lower(v->tile, &opt, &v->own.arena, &ctx->diags);
  v->info.lower_ms = api_now_ms() - start;
  return v->machine ? KILN_OK : api_failure_since(ctx, before);
}

enum kiln_status api_lower(struct kiln_variant *v) {
  return v->machine ? KILN_OK : api_guarded(&v->own, lower, v);
}

static enum kiln_status emit(void *user) {
  struct kiln_variant *v = user;
  double start = api_now_ms();
  struct strbuf text = {.arena = &v->own.arena};
  cg_emit(v->machine,
          (struct cg_emit_options){.lineinfo = v->lineinfo, .files = &v->own.ctx->diags}, &text);
  v->cuda = sb_str(&text);
  v->info.emit_ms = api_now_ms() - start;
  return KILN_OK;
}

enum kiln_status api_emit(struct kiln_variant *v) {
  enum kiln_status st = api_lower(v);
  return st != KILN_OK || v->cuda ? st : api_guarded(&v->own, emit, v);
}

static struct rt_compile_job job_of(const struct kiln_variant *v) {
  return (struct rt_compile_job){.name = kiln_variant_kernel(v),
                                 .source = v->cuda,
                                 .arch = v->target->name,
                                 .lineinfo = v->lineinfo};
}

enum kiln_status api_compile(struct kiln_variant *v) {
  if (v->compiled)
    return KILN_OK;
  struct rt_ctx *rt;
  enum kiln_status st = api_emit(v);
  if (st == KILN_OK)
    st = api_runtime(v->own.ctx, &rt);
  if (st != KILN_OK)
    return st;
  struct rt_compile_job job = job_of(v);
  st = api_from_rt(rt_compile(rt, &job, &v->cubin));
  if (st != KILN_OK) {
    rt_compiled_free(&v->cubin);
    return st;
  }
  v->compiled = true;
  const struct recipe *recipe = v->machine->recipe;
  for (uint32_t i = 0; i < v->cubin.n_kernels; i++) {
    const struct rt_kernel_info *k = &v->cubin.kernels[i];
    if (k->regs > v->info.registers)
      v->info.registers = k->regs;
    v->info.spill_bytes += k->spill_stores + k->spill_loads;
    v->info.smem_bytes += k->smem_static;
  }
  for (uint32_t i = 0; i < recipe->steps.n; i++)
    if (recipe->steps.at[i].kind == RECIPE_KERNEL) {
      const uint32_t *b = recipe->steps.at[i].block;
      v->info.threads = b[0] * b[1] * b[2];
      v->info.smem_bytes += recipe->steps.at[i].smem_bytes;
    }
  v->info.cubin_bytes = v->cubin.cubin_size;
  v->info.nvrtc_ms = v->cubin.compile_ms;
  v->info.in_helper = !v->cubin.in_process;
  return KILN_OK;
}

enum kiln_status kiln_compile(struct kiln_variant *v, struct kiln_compile_info *info) {
  enum kiln_status st = api_compile(v);
  if (st == KILN_OK && info)
    *info = v->info;
  return st;
}

enum kiln_status kiln_variant_cubin(struct kiln_variant *v, const void **data, size_t *n) {
  enum kiln_status st = api_compile(v);
  *data = st == KILN_OK ? v->cubin.cubin : NULL;
  *n = st == KILN_OK ? v->cubin.cubin_size : 0;
  return st;
}

enum kiln_status api_load(struct kiln_variant *v) {
  struct rt_device *dev;
  enum kiln_status st = api_compile(v);
  if (st == KILN_OK)
    st = api_device(v->own.ctx, &dev);
  if (st == KILN_OK && !v->module)
    st = api_from_rt(rt_module_load(dev, v->cubin.cubin, v->cubin.cubin_size, &v->module));
  return st;
}

/* ---- key ---- */

struct key_call {
  struct kiln_variant *v;
  char *out;
};

static enum kiln_status make_key(void *user) {
  struct key_call *c = user;
  struct kiln_variant *v = c->v;
  struct hasher h;
  struct strbuf ir = {.arena = &v->shown.arena}, options = {.arena = &v->shown.arena};
  ir_print(v->machine, (struct ir_print_options){0}, &ir);
  struct rt_compile_job job = job_of(v);
  rt_compile_options_text(&job, &options);
  struct rt_ctx *rt;
  enum kiln_status st = api_runtime(v->own.ctx, &rt);
  if (st != KILN_OK)
    return st;
  struct rt_library_info nvrtc = rt_library_info(rt, RT_LIB_NVRTC);
  hash_begin(&h);
  hash_field_str(&h, "ir", sb_str(&ir)); /* holds config, specialization, schedule and recipe */
  hash_field_str(&h, "target", v->target->name);
  hash_field_str(&h, "emitter", KILN_EMITTER_VERSION);
  hash_field_int(&h, "nvrtc.major", nvrtc.major);
  hash_field_int(&h, "nvrtc.minor", nvrtc.minor);
  hash_field_str(&h, "nvrtc.options", sb_str(&options));
  hash_hex(hash_end(&h), c->out);
  return KILN_OK;
}

enum kiln_status kiln_variant_key(struct kiln_variant *v, char out[33]) {
  memset(out, 0, 33);
  enum kiln_status st = api_emit(v);
  if (st != KILN_OK)
    return st;
  arena_free(&v->shown.arena);
  struct key_call c = {v, out};
  return api_guarded(&v->shown, make_key, &c);
}

/* ---- show ---- */

struct show_call {
  struct kiln_variant *v;
  const char *stage, *after, *text;
};

static void print_module(struct kiln_variant *v, const struct ir_module *m, struct strbuf *out) {
  ir_print(m, (struct ir_print_options){.names = true, .files = &v->own.ctx->diags}, out);
}

/* Whether `name` is one of the passes. */
static bool has_pass(const struct ir_pass *passes, uint32_t n, const char *name) {
  for (uint32_t i = 0; i < n; i++)
    if (str_eq(passes[i].name, name))
      return true;
  return false;
}

static const char *stop_after(struct arena *a, const char *debug, const char *pass) {
  return arena_printf(a, "%s%sstop-after=%s", debug ? debug : "", debug ? "," : "", pass);
}

/* The module after pass `after`, which belongs to the tile pipeline or to the lowering. */
static enum kiln_status show_after(struct show_call *c, struct strbuf *out) {
  struct kiln_variant *v = c->v;
  struct kiln_context *ctx = v->own.ctx;
  struct arena *a = &v->shown.arena;
  uint32_t n_tile, n_lower, before = ctx->diags.list.n;
  const struct ir_pass *tile = ir_tile_pipeline(&n_tile), *lowering = cg_pipeline(&n_lower);
  struct ir_run_options run = api_run_options(ctx);
  run.debug = stop_after(a, ctx->ir_debug, c->after);
  struct ir_module *m = NULL;
  if (has_pass(tile, n_tile, c->after)) {
    m = ir_clone(v->traced, a);
    if (!ir_run_passes(m, tile, n_tile, &ctx->diags, &run))
      m = NULL;
  } else if (has_pass(lowering, n_lower, c->after)) {
    struct cg_options opt = {
        .target = v->target, .schedule = v->schedule, .stop = IR_MACHINE_STAGE, .run = &run};
    m = cg_lower(v->tile, &opt, a, &ctx->diags);
  } else {
    struct strbuf names = {.arena = a};
    for (uint32_t i = 0; i < n_tile; i++)
      sb_printf(&names, "%s%s", i ? ", " : "", tile[i].name);
    for (uint32_t i = 0; i < n_lower; i++)
      sb_printf(&names, ", %s", lowering[i].name);
    API_ERROR(ctx, USAGE, "there is no pass `%s`; passes are %s", c->after, sb_str(&names));
  }
  if (!m)
    return api_failure_since(ctx, before);
  print_module(v, m, out);
  return KILN_OK;
}

static enum kiln_status show_scheduled(struct show_call *c, struct strbuf *out) {
  struct kiln_variant *v = c->v;
  struct kiln_context *ctx = v->own.ctx;
  uint32_t before = ctx->diags.list.n;
  struct ir_run_options run = api_run_options(ctx);
  struct cg_options opt = {
      .target = v->target, .schedule = v->schedule, .stop = IR_SCHEDULED_STAGE, .run = &run};
  struct ir_module *m = cg_lower(v->tile, &opt, &v->shown.arena, &ctx->diags);
  if (!m)
    return api_failure_since(ctx, before);
  print_module(v, m, out);
  return KILN_OK;
}

static enum kiln_status show_ptx(struct show_call *c, struct strbuf *out) {
  struct kiln_variant *v = c->v;
  struct rt_ctx *rt;
  enum kiln_status st = api_runtime(v->own.ctx, &rt);
  if (st != KILN_OK)
    return st;
  struct rt_compile_job job = job_of(v);
  job.want_ptx = true;
  struct rt_compiled done;
  st = api_from_rt(rt_compile(rt, &job, &done));
  size_t n = st == KILN_OK ? strlen(done.ptx) : 0;
  if (st == KILN_OK && !api_try_append(out, done.ptx, n))
    st = KILN_NO_MEMORY;
  rt_compiled_free(&done);
  return st;
}

static enum kiln_status show(void *user) {
  struct show_call *c = user;
  struct kiln_variant *v = c->v;
  struct kiln_context *ctx = v->own.ctx;
  struct strbuf out = {.arena = &v->shown.arena};
  enum kiln_status st = KILN_OK;
  if (c->after) {
    st = show_after(c, &out);
  } else if (str_eq(c->stage, "tile")) {
    print_module(v, v->tile, &out);
  } else if (str_eq(c->stage, "scheduled")) {
    st = show_scheduled(c, &out);
  } else if (str_eq(c->stage, "machine")) {
    if ((st = api_lower(v)) == KILN_OK)
      print_module(v, v->machine, &out);
  } else if (str_eq(c->stage, "recipe")) {
    if ((st = api_lower(v)) == KILN_OK)
      recipe_print(v->machine->recipe, &out);
  } else if (str_eq(c->stage, "cuda")) {
    if ((st = api_emit(v)) == KILN_OK)
      sb_puts(&out, v->cuda);
  } else if (str_eq(c->stage, "ptx")) {
    if ((st = api_emit(v)) == KILN_OK)
      st = show_ptx(c, &out);
  } else if (str_eq(c->stage, "sass")) {
    if ((st = api_compile(v)) == KILN_OK)
      st = api_disassemble(ctx, v->cubin.cubin, v->cubin.cubin_size, &out);
  } else {
    API_ERROR(
        ctx, USAGE,
        "there is no stage `%s`; stages are tile, scheduled, machine, recipe, cuda, ptx, sass",
        c->stage);
    st = KILN_INVALID;
  }
  c->text = sb_str(&out);
  return st;
}

enum kiln_status kiln_show(struct kiln_variant *v, const char *stage, const char *after,
                           const char **text) {
  *text = NULL;
  arena_free(&v->shown.arena);
  struct show_call c = {v, stage, after, NULL};
  enum kiln_status st = api_guarded(&v->shown, show, &c);
  if (st == KILN_OK)
    *text = c.text;
  return st;
}
