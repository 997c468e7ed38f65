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

/* A grid that leaves SMs idle gets parts of its loops, if nobody said how many. */
static void choose_split(struct kiln_variant *v, const struct api_problem *p) {
  int64_t *knob = &v->schedule.knob[CG_KNOB_SPLIT_K];
  if (*knob != CG_AUTO || !p->shaped || v->file->tir)
    return;
  int64_t parts = p->pick.split_k;
  if (!parts)
    parts = cg_split_rule(v->tile, api_class_lookup, (void *)(uintptr_t)p, cg_target_sms(v->target),
                          &v->own.arena);
  v->split_by_rule = parts > 1;
  *knob = parts > 1 ? parts : CG_AUTO;
  v->cluster_by_rule = p->pick.split_cluster && v->schedule.knob[CG_KNOB_SPLIT_CLUSTER] == CG_AUTO;
  if (v->cluster_by_rule)
    v->schedule.knob[CG_KNOB_SPLIT_CLUSTER] = 1;
}

/* What the model says of operands that are read once. */
static void choose_stream(struct kiln_variant *v, const struct api_problem *p) {
  int64_t *knob = &v->schedule.knob[CG_KNOB_STREAM_AXIS];
  v->stream_by_rule = p->pick.split_k && p->pick.stream_axis >= 0 && *knob == CG_AUTO;
  if (v->stream_by_rule)
    *knob = p->pick.stream_axis;
}

/* A rule must not refuse what works without it; false: none has said anything. */
static bool drop_rules(struct kiln_variant *v) {
  bool any = v->split_by_rule || v->cluster_by_rule || v->stream_by_rule;
  if (v->split_by_rule)
    v->schedule.knob[CG_KNOB_SPLIT_K] = 1;
  if (v->cluster_by_rule)
    v->schedule.knob[CG_KNOB_SPLIT_CLUSTER] = CG_AUTO;
  if (v->stream_by_rule)
    v->schedule.knob[CG_KNOB_STREAM_AXIS] = CG_AUTO;
  v->split_by_rule = v->cluster_by_rule = v->stream_by_rule = false;
  return any;
}

struct make_call {
  struct kiln_variant *v;
  const struct api_problem *p;
};

/* The facts that the problem's shapes and strides satisfy, and where its arguments begin in (fresh,
 * 4096-aligned) buffers. */
static void add_facts(struct ir_module *m, const struct api_problem *p, struct arena *a) {
  struct cg_arg_value *values = ARENA_ARRAY(a, struct cg_arg_value, p->n_args + 1);
  for (uint32_t i = 0; i < p->n_args; i++) {
    int64_t origin, bytes;
    values[i].present = !p->args[i].absent;
    if (api_is_tensor(&p->args[i]) && api_image_extent(&p->args[i], &origin, &bytes))
      values[i].addr = (uint64_t)origin;
    memcpy(values[i].dim, p->args[i].dim, sizeof values[i].dim);
    memcpy(values[i].stride, p->args[i].stride, sizeof values[i].stride);
  }
  cg_facts_from_args(m, values);
}

/* Machine IR was lowered for one target: that is the variant's. */
static bool take_target(struct kiln_variant *v, const struct api_problem *p) {
  struct kiln_context *ctx = v->own.ctx;
  const char *name = ir_sym(v->traced, v->traced->target);
  const struct cg_target *t = cg_find_target(name);
  if (!t)
    API_ERROR(ctx, USAGE, "the IR text is for target `%s`, which is unknown", name);
  else if (p->target && !str_eq(p->target, name))
    API_ERROR(ctx, USAGE, "--target: the IR text was lowered for %s, not %s", name, p->target);
  else
    v->target = t;
  return v->target == t;
}

struct ir_module *api_trace(const struct api_problem *p, struct arena *a) {
  struct fe_trace_options opt = {.config = &p->config, .absent = p->absent};
  struct ir_module *m = fe_trace(p->file->fe, p->kernel, &opt, a);
  if (!m || !ir_verify(m, &p->file->own.ctx->diags))
    return NULL;
  if (p->shaped)
    add_facts(m, p, a);
  return m;
}

static enum kiln_status make(void *user) {
  struct make_call *c = user;
  struct kiln_variant *v = c->v;
  const struct api_problem *p = c->p;
  struct kiln_context *ctx = v->own.ctx;
  struct arena *a = &v->own.arena;
  struct api_mark before = api_mark(ctx);
  double start = api_now_ms();
  v->schedule = cg_schedule_copy(&p->schedule, a);
  v->picked = p->pick.text ? arena_strdup(a, p->pick.text) : NULL;
  if (v->file->tir) {
    v->traced = ir_clone(v->file->tir, a);
    if (v->traced->stage == IR_MACHINE_STAGE && !take_target(v, p))
      return KILN_INVALID;
  } else {
    v->traced = api_trace(p, a);
    if (!v->traced)
      return api_failure_since(ctx, before);
  }
  v->tile = v->traced;
  if (v->traced->stage == IR_TILE_STAGE) {
    v->tile = ir_clone(v->traced, a);
    uint32_t n;
    const struct ir_pass *passes = ir_tile_pipeline(&n);
    struct ir_run_options run = api_run_options(ctx);
    if (!ir_run_passes(v->tile, passes, n, &ctx->diags, &run))
      return api_failure_since(ctx, before);
    choose_split(v, p);
    choose_stream(v, p);
  }
  v->info.trace_ms = api_now_ms() - start;
  return KILN_OK;
}

static struct kiln_variant *new_variant(struct kiln_file *file, const struct cg_target *target) {
  struct kiln_context *ctx = file->own.ctx;
  struct kiln_variant *v = mem_get0(&ctx->mem, sizeof *v);
  if (!v)
    return NULL;
  api_object_init(&v->own, ctx);
  api_object_init(&v->shown, ctx);
  v->file = file;
  v->target = target;
  return v;
}

enum kiln_status api_variant_of_machine(struct kiln_file *file, const struct cg_target *target,
                                        const struct ir_module *machine,
                                        struct kiln_variant **out) {
  struct kiln_variant *v = *out = new_variant(file, target);
  if (!v)
    return api_no_memory(file->own.ctx);
  v->traced = v->tile = v->machine = (struct ir_module *)(uintptr_t)machine;
  return KILN_OK;
}

enum kiln_status api_variant_new(const struct api_problem *p, const struct cg_target *target,
                                 bool lineinfo, struct kiln_variant **out) {
  struct kiln_context *ctx = p->file->own.ctx;
  *out = NULL;
  struct kiln_variant *v = new_variant(p->file, target);
  if (!v)
    return api_no_memory(ctx);
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
  const struct cg_target *target;
  struct api_problem p;
  struct api_mark before = api_mark(ctx);
  enum kiln_status st = api_pick_target(ctx, c->req->target, &target);
  if (st != KILN_OK)
    return st;
  if (!api_resolve(c->file, c->req, false, &c->file->work.arena, &p))
    return api_failure_since(ctx, before);
  if ((st = api_pick_config(&p, target, &c->file->work.arena)) != KILN_OK)
    return st;
  return api_variant_new(&p, target, c->req->lineinfo, c->out);
}

enum kiln_status kiln_specialise(struct kiln_file *file, const struct kiln_request *req,
                                 struct kiln_variant **out) {
  *out = NULL;
  struct kiln_request request;
  if (!api_request(file->own.ctx, req, &request))
    return KILN_INVALID;
  struct specialise_call c = {file, &request, out};
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

bool api_stage_upto(const struct kiln_variant *v, enum ir_stage last, const char *what) {
  static const char *const stages[] = {"tile", "scheduled", "machine"};
  if (v->tile->stage <= last)
    return true;
  API_ERROR(v->own.ctx, USAGE, "the IR text is at the %s stage: %s needs %s IR",
            stages[v->tile->stage], what, last == IR_TILE_STAGE ? "tile" : "tile or scheduled");
  return false;
}

static enum kiln_status lower(void *user) {
  struct kiln_variant *v = user;
  struct kiln_context *ctx = v->own.ctx;
  struct api_mark before = api_mark(ctx);
  double start = api_now_ms();
  if (v->tile->stage == IR_MACHINE_STAGE) {
    v->machine = v->tile;
    return KILN_OK;
  }
  if (!api_stage_upto(v, IR_TILE_STAGE, "lowering"))
    return KILN_INVALID;
  if (ctx->ir_debug && strstr(ctx->ir_debug, "stop-after=")) {
    API_ERROR(ctx, USAGE,
              "the debug mode `%s` stops before machine IR is whole; show --after prints "
              "what there is",
              ctx->ir_debug);
    return KILN_INVALID;
  }
  struct ir_run_options run = api_run_options(ctx);
  struct cg_options opt = {
      .target = v->target, .schedule = v->schedule, .stop = IR_MACHINE_STAGE, .run = &run};
  uint32_t n = ctx->diags.list.n;
  v->machine = cg_lower(v->tile, &opt, &v->own.arena, &ctx->diags);
  if (!v->machine && drop_rules(v)) {
    diag_truncate(&ctx->diags, n);
    opt.schedule = v->schedule;
    v->machine = cg_lower(v->tile, &opt, &v->own.arena, &ctx->diags);
  }
  v->info.lower_ms += api_now_ms() - start;
  return v->machine ? KILN_OK : api_failure_since(ctx, before);
}

enum kiln_status api_lower(struct kiln_variant *v) {
  return v->machine ? KILN_OK : api_guarded(&v->own, lower, v);
}

/* A machine text may lack its recipe. */
static bool has_launch(struct kiln_variant *v) {
  if (cg_has_launch(v->machine))
    return true;
  API_ERROR(v->own.ctx, USAGE,
            "the IR text has no launch: emission and compilation need its recipe (`recipe { ... }` "
            "with a `launch`)");
  return false;
}

static enum kiln_status emit(void *user) {
  struct kiln_variant *v = user;
  if (!has_launch(v) || !cg_check_machine(v->machine, &v->own.ctx->diags))
    return KILN_INVALID;
  double start = api_now_ms();
  struct strbuf text = {.arena = &v->own.arena};
  cg_emit(v->machine,
          (struct cg_emit_options){.lineinfo = v->lineinfo, .files = &v->own.ctx->diags}, &text);
  v->cuda = sb_str(&text);
  v->info.emit_ms += api_now_ms() - start;
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

/* What one compilation gave. */
static void take_info(struct kiln_variant *v) {
  const struct recipe *recipe = v->machine->recipe;
  v->info.registers = v->info.spill_bytes = v->info.smem_bytes = 0;
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
  v->info.nvrtc_ms += v->cubin.compile_ms;
  v->info.in_helper = !v->cubin.in_process;
}

static enum kiln_status compile_once(struct kiln_variant *v, struct rt_ctx *rt, bool may_spill) {
  struct rt_compile_job job = job_of(v);
  job.max_spill_bytes = may_spill ? UINT32_MAX : 0;
  enum kiln_status st = api_from_rt(rt_compile(rt, &job, &v->cubin));
  if (st == KILN_OK)
    take_info(v);
  else
    rt_compiled_free(&v->cubin);
  return st;
}

/* What the rule makes of the variant at the next step of the knob `spare` that changes the kernel
 * and can be lowered; *found: is there one? Otherwise the variant is as it was. */
static enum kiln_status spare_more(struct kiln_variant *v, bool *found) {
  struct kiln_context *ctx = v->own.ctx;
  struct ir_module *machine = v->machine;
  const char *cuda = v->cuda;
  struct cg_schedule schedule = v->schedule;
  enum kiln_status st = KILN_OK;
  uint32_t said = ctx->diags.list.n;
  *found = false;
  while (cg_spare_more(&v->schedule)) {
    v->machine = NULL;
    v->cuda = NULL;
    st = api_emit(v);
    if (st == KILN_NO_MEMORY || st == KILN_INTERRUPTED)
      return st;
    diag_truncate(&ctx->diags, said);
    *found = st == KILN_OK && !cg_is_same_kernel(v->machine, machine);
    if (*found)
      return KILN_OK;
  }
  v->machine = machine;
  v->cuda = cuda;
  v->schedule = schedule;
  return KILN_OK;
}

/* ptxas alone knows whether a kernel spills: if it does, and how much to spare is the rule's to
 * say, the rule is asked for more. */
enum kiln_status api_compile(struct kiln_variant *v) {
  if (v->compiled)
    return KILN_OK;
  struct rt_ctx *rt;
  enum kiln_status st = api_emit(v);
  if (st == KILN_OK)
    st = api_runtime(v->own.ctx, &rt);
  if (st != KILN_OK)
    return st;
  struct kiln_variant first = *v;
  bool open = v->tile->stage == IR_TILE_STAGE && v->schedule.knob[CG_KNOB_SPARE] == CG_AUTO;
  for (bool found = open; (st = compile_once(v, rt, open)) == KILN_OK && v->info.spill_bytes;) {
    rt_compiled_free(&v->cubin);
    st = spare_more(v, &found);
    if (st != KILN_OK)
      return st;
    if (found)
      continue;
    /* Nothing helps: the message is that of the kernel as it was asked for. */
    v->machine = first.machine;
    v->cuda = first.cuda;
    v->schedule = first.schedule;
    open = false;
  }
  v->compiled = st == KILN_OK;
  v->asked = v->machine != first.machine ? first.machine : NULL;
  if (st == KILN_OK && v->cuda != first.cuda)
    api_log(v->own.ctx, KILN_LOG_INFO, "%s: compiled with schedule.spare = %lld, as it spilled",
            kiln_variant_kernel(v), (long long)v->schedule.knob[CG_KNOB_SPARE]);
  return st;
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
  if (st == KILN_OK && !v->module) /* before the driver says it in its words */
    st = api_from_rt(rt_check_target(dev, kiln_variant_kernel(v), v->target->name));
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
  /* What NVRTC makes of the module asked for, spilling or not, follows from the fields below. */
  ir_print(v->asked ? v->asked : v->machine, (struct ir_print_options){0}, &ir);
  struct rt_compile_job job = job_of(v);
  rt_compile_options_text(&job, &options);
  int major, minor;
  enum kiln_status st = api_nvrtc_version(v->own.ctx, &major, &minor);
  if (st != KILN_OK)
    return st;
  hash_begin(&h);
  hash_field_str(&h, "ir", sb_str(&ir)); /* holds config, specialization, schedule and recipe */
  hash_field_str(&h, "target", v->target->name);
  hash_field_str(&h, "emitter", KILN_EMITTER_VERSION);
  hash_field_int(&h, "nvrtc.major", major);
  hash_field_int(&h, "nvrtc.minor", minor);
  hash_field_str(&h, "nvrtc.options", sb_str(&options));
  hash_hex(hash_end(&h), c->out);
  return KILN_OK;
}

enum kiln_status kiln_variant_key(struct kiln_variant *v, char out[33]) {
  memset(out, 0, 33);
  enum kiln_status st = api_lower(v);
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

static void refuse_pass(struct show_call *c) {
  uint32_t n_tile, n_lower;
  const struct ir_pass *tile = ir_tile_pipeline(&n_tile), *lowering = cg_pipeline(&n_lower);
  struct strbuf names = {.arena = &c->v->shown.arena};
  for (uint32_t i = 0; i < n_tile; i++)
    sb_printf(&names, "%s%s", i ? ", " : "", tile[i].name);
  for (uint32_t i = 0; i < n_lower; i++)
    sb_printf(&names, ", %s", lowering[i].name);
  API_ERROR(c->v->own.ctx, USAGE, "there is no pass `%s`; passes are %s", c->after, sb_str(&names));
}

/* The variant's tile module lowered anew, up to `stop` or to the pass that `run` stops after. */
static struct ir_module *lowered(struct show_call *c, enum ir_stage stop,
                                 const struct ir_run_options *run) {
  struct kiln_variant *v = c->v;
  struct cg_options opt = {.target = v->target, .schedule = v->schedule, .stop = stop, .run = run};
  return cg_lower(v->tile, &opt, &v->shown.arena, &v->own.ctx->diags);
}

/* IR that the variant does not keep: of the scheduled stage, or after some pass. */
static enum kiln_status show_passes(struct show_call *c, struct strbuf *out) {
  struct kiln_variant *v = c->v;
  struct kiln_context *ctx = v->own.ctx;
  struct arena *a = &v->shown.arena;
  struct api_mark before = api_mark(ctx);
  uint32_t n_tile, n_lower;
  const struct ir_pass *tile = ir_tile_pipeline(&n_tile), *lowering = cg_pipeline(&n_lower);
  struct ir_run_options run = api_run_options(ctx);
  struct ir_module *m = NULL;
  if (!api_stage_upto(v, IR_TILE_STAGE, c->after ? "running passes" : "this stage"))
    return KILN_INVALID;
  if (c->after)
    run.debug = arena_printf(a, "%s%sstop-after=%s", ctx->ir_debug ? ctx->ir_debug : "",
                             ctx->ir_debug ? "," : "", c->after);
  if (!c->after) {
    m = lowered(c, IR_SCHEDULED_STAGE, &run);
  } else if (has_pass(lowering, n_lower, c->after)) {
    m = lowered(c, IR_MACHINE_STAGE, &run);
  } else if (has_pass(tile, n_tile, c->after)) {
    m = ir_clone(v->traced, a);
    if (!ir_run_passes(m, tile, n_tile, &ctx->diags, &run))
      m = NULL;
  } else {
    refuse_pass(c);
  }
  if (!m)
    return api_failure_since(ctx, before);
  print_module(v, m, out);
  return KILN_OK;
}

static enum kiln_status show_schedule(struct show_call *c, struct strbuf *out) {
  struct kiln_variant *v = c->v;
  struct api_mark before = api_mark(v->own.ctx);
  struct ir_run_options run = api_run_options(v->own.ctx);
  struct ir_module *m = v->tile;
  if (m->stage == IR_TILE_STAGE)
    m = lowered(c, IR_SCHEDULED_STAGE, &run);
  else if (!api_stage_upto(v, IR_SCHEDULED_STAGE, "the schedule"))
    return KILN_INVALID;
  if (!m)
    return api_failure_since(v->own.ctx, before);
  cg_print_schedule(m, out);
  if (v->picked)
    sb_puts(out, v->picked);
  return KILN_OK;
}

static enum kiln_status show_ptx(struct kiln_variant *v, struct strbuf *out) {
  struct rt_ctx *rt;
  enum kiln_status st = api_emit(v);
  if (st == KILN_OK)
    st = api_runtime(v->own.ctx, &rt);
  if (st != KILN_OK)
    return st;
  struct rt_compile_job job = job_of(v);
  job.want_ptx = true;
  struct rt_compiled done;
  st = api_from_rt(rt_compile(rt, &job, &done));
  if (st == KILN_OK && !api_try_append(out, done.ptx, strlen(done.ptx)))
    st = api_no_memory(v->own.ctx);
  rt_compiled_free(&done);
  return st;
}

/* The first three in the order of enum ir_stage. */
enum stage { TILE, SCHEDULED, MACHINE, SCHEDULE, RECIPE, CUDA, PTX, SASS, N_STAGES };
static const char *const stage_names[] = {"tile",   "scheduled", "machine", "schedule",
                                          "recipe", "cuda",      "ptx",     "sass"};

static enum stage find_stage(struct kiln_context *ctx, const char *name) {
  for (int i = 0; i < N_STAGES; i++)
    if (str_eq(stage_names[i], name))
      return (enum stage)i;
  API_ERROR(
      ctx, USAGE,
      "there is no stage `%s`; stages are tile, scheduled, machine, schedule, recipe, cuda, ptx, "
      "sass",
      name);
  return N_STAGES;
}

static enum kiln_status show(void *user) {
  struct show_call *c = user;
  struct kiln_variant *v = c->v;
  struct kiln_context *ctx = v->own.ctx;
  struct strbuf out = {.arena = &v->shown.arena};
  enum kiln_status st = KILN_OK;
  enum stage own = (enum stage)v->tile->stage, stage = c->stage ? find_stage(ctx, c->stage) : own;
  if (c->after && stage > MACHINE && stage < N_STAGES) {
    API_ERROR(ctx, USAGE, "--after %s: after a pass there is IR, not %s", c->after, c->stage);
    return KILN_INVALID;
  }
  if (stage != N_STAGES && (c->after || (stage < MACHINE && stage != own))) {
    st = show_passes(c, &out);
    c->text = sb_str(&out);
    return st;
  }
  switch (stage) {
  case TILE:
  case SCHEDULED: print_module(v, v->tile, &out); break;
  case MACHINE:
    if ((st = api_lower(v)) == KILN_OK)
      print_module(v, v->machine, &out);
    break;
  case SCHEDULE: st = show_schedule(c, &out); break;
  case RECIPE:
    if ((st = api_lower(v)) == KILN_OK && !has_launch(v))
      st = KILN_INVALID;
    if (st == KILN_OK)
      recipe_print(v->machine->recipe, &out);
    break;
  case CUDA:
    if ((st = api_emit(v)) == KILN_OK)
      sb_puts(&out, v->cuda);
    break;
  case PTX: st = show_ptx(v, &out); break;
  case SASS:
    if ((st = api_compile(v)) == KILN_OK)
      st = api_disassemble(ctx, v->cubin.cubin, v->cubin.cubin_size, &out);
    break;
  case N_STAGES: st = KILN_INVALID; break;
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
