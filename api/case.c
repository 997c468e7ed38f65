/* Cases: inputs, a run on poisoned outputs between guard bands, the verdict, the times. */
#include "api/api.h"

#include <math.h>
#include <string.h>

struct case_run {
  struct kiln_file *file;
  struct kiln_context *ctx;
  const struct kiln_request *req;
  enum kiln_on on;
  uint32_t flags;
  struct arena *a;
  struct api_problem p;
  struct kiln_variant *v;
  struct api_inputs in;
  struct kiln_report *report; /* NULL until there is something to report; `draft` */
  struct kiln_report draft;
  struct kiln_output_report *outputs;
  bool cut;         /* interpreter: loops run in parts, which are merged */
  bool again;       /* a run that was made before: what it prints was printed */
  bool **unwritten; /* per argument: the elements that were not written; NULL: not known */
  /* GPU */
  struct rt_device *dev;
  struct rt_buffer **buffers;
  struct rt_arg *args;
  struct rt_prepared *prepared;
  const struct kiln_report **out;
};

/* ---- running ---- */

/* The arguments on the host: tensors lie in the images. */
static struct interp_arg *host_args(struct case_run *r) {
  struct api_problem *p = &r->p;
  struct interp_arg *args = ARENA_ARRAY(r->a, struct interp_arg, p->n_args + 1);
  for (uint32_t i = 0; i < p->n_args; i++) {
    const struct api_arg *arg = &p->args[i];
    if (arg->kind == IR_ARG_SCALAR && !arg->absent) {
      args[i].f = r->in.values[i][0];
      args[i].i = api_scalar_int(arg->dtype, r->in.values[i][0]);
    }
    if (!api_is_tensor(arg))
      continue;
    struct interp_tensor *t = &args[i].tensor;
    t->data = r->in.images[i].memory + RT_GUARD_BYTES + r->in.images[i].origin;
    t->dtype = arg->dtype;
    t->rank = arg->rank;
    memcpy(t->dim, arg->dim, sizeof t->dim);
    memcpy(t->stride, arg->stride, sizeof t->stride);
  }
  return args;
}

static enum kiln_status run_interp(struct case_run *r) {
  struct api_problem *p = &r->p;
  struct interp_arg *args = host_args(r);
  struct interp_options opt = {.domain = INTERP_ROUNDED,
                               .grid_seed = p->seed + 1,
                               .check_races = true,
                               .check_unwritten = true,
                               .max_steps = r->ctx->opt.max_steps,
                               .cut_seed = r->cut ? p->seed + 1 : 0,
                               .interrupted = api_interrupted,
                               .print = r->again ? NULL : api_print_line,
                               .user = r->ctx};
  struct api_mark before = api_mark(r->ctx);
  return interp_run(r->v->tile, args, p->n_args, &opt, &r->ctx->diags, &r->ctx->mem)
             ? KILN_OK
             : api_failure_since(r->ctx, before);
}

static enum kiln_status run_emu(struct case_run *r) {
  return api_emulate(&r->p, r->v, host_args(r), r->in.images, !r->again, r->a);
}

static enum kiln_status upload(struct case_run *r) {
  enum rt_status st = RT_OK;
  for (uint32_t i = 0; i < r->p.n_args && st == RT_OK; i++)
    if (r->buffers[i])
      st = rt_buffer_upload(r->buffers[i], 0, r->in.images[i].memory + RT_GUARD_BYTES,
                            r->in.images[i].bytes);
  return api_from_rt(st);
}

/* Device buffers, arguments and the prepared launch. */
static enum kiln_status prepare_gpu(struct case_run *r) {
  struct api_problem *p = &r->p;
  enum kiln_status st = api_device(r->ctx, &r->dev);
  if (st == KILN_OK)
    st = api_load(r->v);
  for (uint32_t i = 0; i < p->n_args && st == KILN_OK; i++) {
    const struct api_arg *arg = &p->args[i];
    r->args[i].absent = arg->absent && arg->kind != IR_ARG_SCALAR;
    if (!api_is_tensor(arg))
      continue;
    st = api_from_rt(rt_buffer_new(r->dev, arg->name, r->in.images[i].bytes, &r->buffers[i]));
    if (st == KILN_OK)
      r->args[i].tensor =
          api_rt_tensor(arg, (char *)rt_buffer_data(r->buffers[i]) + r->in.images[i].origin);
  }
  return st;
}

static enum kiln_status prepare(struct case_run *r) {
  const struct ir_module *m = r->v->machine;
  const struct mem_alloc *mem = &r->v->own.ctx->mem;
  size_t bytes = (m->args.n + 1) * sizeof(struct rt_arg);
  struct rt_arg *args = mem_get0(mem, bytes);
  if (!args)
    return api_no_memory(r->v->own.ctx);
  uint32_t n = api_recipe_args(m, r->args, args);
  enum kiln_status st =
      api_from_rt(rt_prepare(r->v->module, m->recipe, args, n, NULL, &r->prepared));
  mem_drop(mem, args, bytes);
  return st;
}

/* Uploads the images, launches once, downloads the outputs into the images. */
static enum kiln_status run_gpu(struct case_run *r) {
  struct api_problem *p = &r->p;
  for (uint32_t i = 0; i < p->n_args; i++)
    if (p->args[i].kind == IR_ARG_SCALAR && !p->args[i].absent) {
      r->args[i].f64 = r->in.values[i][0];
      r->args[i].i64 = api_scalar_int(p->args[i].dtype, r->in.values[i][0]);
    }
  rt_prepared_free(r->prepared);
  r->prepared = NULL;
  enum kiln_status st = upload(r);
  if (st == KILN_OK)
    st = prepare(r);
  rt_stream stream;
  if (st == KILN_OK)
    st = api_from_rt(rt_device_stream(r->dev, &stream));
  if (st == KILN_OK)
    st = api_from_rt(rt_launch(r->prepared, stream));
  if (st == KILN_OK)
    st = api_from_rt(rt_device_sync(r->dev));
  for (uint32_t i = 0; i < p->n_args && st == KILN_OK; i++) {
    if (!r->buffers[i])
      continue;
    st = api_from_rt(rt_buffer_check_guards(r->buffers[i]));
    if (st == KILN_OK)
      st = api_from_rt(rt_buffer_download(r->buffers[i], 0, r->in.images[i].memory + RT_GUARD_BYTES,
                                          r->in.images[i].bytes));
  }
  return st;
}

static enum kiln_status run_there(struct case_run *r) {
  return r->on == KILN_ON_GPU ? run_gpu(r) : r->on == KILN_ON_EMU ? run_emu(r) : run_interp(r);
}

/* ---- what was not written ---- */

/* A kernel may well compute the number that the poison of an integer is. Where it is found in an
 * output, the case is run once more on another poison: only what was not written shows both. The
 * images are left as the first run left them. */
static enum kiln_status find_unwritten(struct case_run *r) {
  struct api_problem *p = &r->p;
  unsigned char **kept = ARENA_ARRAY(r->a, unsigned char *, p->n_args + 1);
  bool doubtful = false;
  r->unwritten = ARENA_ARRAY(r->a, bool *, p->n_args + 1);
  for (uint32_t i = 0; i < p->n_args; i++) {
    const struct api_arg *arg = &p->args[i];
    if (!api_is_tensor(arg) || arg->kind != IR_ARG_OUT || dtype_is_float(arg->dtype))
      continue;
    int64_t n = api_elements(arg);
    r->unwritten[i] = ARENA_ARRAY(r->a, bool, n + 1);
    memset(r->unwritten[i], true, (size_t)n);
    doubtful |= api_image_mark_poison(&r->in.images[i], arg, false, r->unwritten[i]) != 0;
  }
  if (!doubtful)
    return KILN_OK;
  for (uint32_t i = 0; i < p->n_args; i++)
    if (api_is_tensor(&p->args[i])) {
      kept[i] = api_image_other_poison(&r->in.images[i], &p->args[i], r->a);
      if (r->in.values[i])
        api_image_store(&r->in.images[i], &p->args[i], r->in.values[i]);
    }
  r->again = true;
  enum kiln_status st = run_there(r);
  r->again = false;
  for (uint32_t i = 0; i < p->n_args; i++) {
    if (r->unwritten[i])
      api_image_mark_poison(&r->in.images[i], &p->args[i], true, r->unwritten[i]);
    if (kept[i])
      api_image_restore(&r->in.images[i], kept[i]);
  }
  return st;
}

/* ---- the verdict ---- */

/* The shape as rt_verify takes it: last dim x the rest, from a dense copy in the dtype. */
static void judge_output(struct case_run *r, uint32_t i, const struct api_reference *ref,
                         bool exact, struct kiln_output_report *out, struct rt_verdict *verdict) {
  const struct api_arg *arg = &r->p.args[i];
  int64_t n = api_elements(arg), cols = arg->rank ? arg->dim[arg->rank - 1] : 1;
  void *copy = arena_get(r->a, (size_t)dtype_bytes(arg->dtype, n) + 1);
  api_image_pack(&r->in.images[i], arg, copy);
  struct rt_verify v = {.dtype = arg->dtype,
                        .rows = cols ? n / cols : 0,
                        .cols = cols,
                        .out = copy,
                        .out_stride = {cols, 1},
                        .ref = ref->ref[i],
                        .base = ref->base[i],
                        .bound = ref->bound[i],
                        .unwritten = r->unwritten[i],
                        .exact = exact,
                        .row_blocks = ref->n_matmuls == 0};
  rt_verify(&v, verdict);
  *out = (struct kiln_output_report){.name = arg->name,
                                     .max_error = verdict->max_error,
                                     .baseline_error = verdict->base_max_error,
                                     .max_reference = verdict->max_ref,
                                     .tolerance_used = verdict->tolerance_used,
                                     .rank = arg->rank,
                                     .worst_out = verdict->got,
                                     .worst_ref = verdict->want};
  int64_t row = verdict->row < 0 ? 0 : verdict->row;
  for (uint32_t d = arg->rank; d-- > 0;) {
    bool last = d + 1 == arg->rank;
    int64_t extent = arg->dim[d] ? arg->dim[d] : 1;
    out->worst[d] = last ? (verdict->col < 0 ? 0 : verdict->col) : row % extent;
    row = last ? row : row / extent;
  }
}

static const char *place_text(struct arena *a, const struct kiln_output_report *o) {
  struct strbuf b = {.arena = a};
  for (uint32_t d = 0; d < o->rank; d++)
    sb_printf(&b, "%s%lld", d ? ", " : "[", (long long)o->worst[d]);
  sb_puts(&b, o->rank ? "]" : "its element");
  return sb_str(&b);
}

static enum kiln_status judge(struct case_run *r, bool exact, struct api_reference *ref) {
  enum kiln_status st = api_reference_make(&r->p, r->v->tile, r->in.values, r->a, ref);
  if (st == KILN_OK)
    st = find_unwritten(r);
  if (st != KILN_OK)
    return st;
  uint32_t n = 0;
  for (uint32_t i = 0; i < r->p.n_args; i++) {
    const struct api_arg *arg = &r->p.args[i];
    if (!api_is_tensor(arg))
      continue;
    enum kiln_status checked = api_image_check(r->ctx, &r->in.images[i], arg);
    if (checked == KILN_NO_MEMORY)
      return checked;
    if (checked != KILN_OK)
      st = checked;
    if (!api_is_written(arg))
      continue;
    struct rt_verdict verdict;
    struct kiln_output_report *o = &r->outputs[n++];
    judge_output(r, i, ref, exact, o, &verdict);
    if (verdict.passed)
      continue;
    struct strbuf why = {.arena = r->a};
    verdict.place = place_text(r->a, o);
    rt_verdict_text(&verdict, &why);
    API_ERROR(r->ctx, VERIFY_FAILED, "output `%s` of %s%s is wrong: %s", arg->name, r->p.text,
              r->cut  ? ", its loops run in parts and merged,"
              : exact ? " on integer-valued inputs"
                      : "",
              sb_str(&why));
    if (verdict.rule == RT_RULE_UNWRITTEN)
      diag_note(&r->ctx->diags, DIAG_NOWHERE,
                "%lld of %lld elements were never written: does `grid` cover all of `%s`?",
                (long long)verdict.n_unwritten, (long long)api_elements(arg), arg->name);
    st = KILN_WRONG;
  }
  r->report->n_outputs = n;
  r->report->outputs = r->outputs;
  r->report->reference = ref->source;
  r->report->baseline = ref->baseline;
  r->report->level = st == KILN_OK ? ref->level : KILN_LEVEL_NONE;
  return st;
}

/* ---- times ---- */

static enum rt_status run_ours(void *user, rt_stream stream, uint32_t round) {
  (void)round;
  return rt_launch(user, stream);
}

static struct kiln_timing timing_of(const struct rt_timing *t, uint32_t rounds) {
  return (struct kiln_timing){t->us.median, t->us.lo, t->us.hi, rounds};
}

static enum kiln_status time_both(struct case_run *r, struct rt_candidate *candidates, uint32_t n) {
  for (int graph = 0; graph < 2; graph++) {
    struct rt_timing_options opt = {.graph = graph == 1, .keep_l2 = graph == 1};
    struct rt_timing_set set = {0};
    enum kiln_status st = api_from_rt(rt_time(r->dev, candidates, n, &opt, &set));
    if (st != KILN_OK)
      return st;
    *(graph ? &r->report->graph : &r->report->flushed) = timing_of(&set.at[0], set.rounds);
    if (n > 1) {
      *(graph ? &r->report->peer_graph : &r->report->peer_flushed) =
          timing_of(&set.at[1], set.rounds);
      /* set.at[1].ratio is ours / peer: the inverse is peer / ours, > 1 where we are faster. */
      *(graph ? &r->report->ratio_graph : &r->report->ratio_flushed) = 1 / set.at[1].ratio.median;
      if (!graph) {
        r->report->ratio_low = 1 / set.at[1].ratio.hi;
        r->report->ratio_high = 1 / set.at[1].ratio.lo;
      }
    }
    rt_timing_free(&set);
  }
  return KILN_OK;
}

static enum kiln_status time_case(struct case_run *r, const struct api_reference *ref) {
  struct api_peer peer = {0};
  uint32_t before = r->ctx->diags.list.n;
  bool with_peer =
      (r->flags & KILN_CASE_PEERS) &&
      (ref->n_matmuls ? api_peer_product(&peer, r->dev, &r->p, r->v->tile, r->args, ref)
                      : api_peer_copy(&peer, r->dev, r->report->bytes));
  if (r->ctx->diags.list.n > before) { /* no peer is no failure */
    api_log(r->ctx, KILN_LOG_WARNING, "not timed beside %s: %s", peer.name,
            r->ctx->diags.list.at[before].message);
    diag_truncate(&r->ctx->diags, before);
  }
  struct rt_candidate candidates[2] = {{"kiln", run_ours, r->prepared},
                                       {peer.name, api_peer_run, &peer}};
  r->report->peer = with_peer ? peer.name : NULL;
  enum kiln_status st = time_both(r, candidates, with_peer ? 2 : 1);
  api_peer_free(&peer);
  return st;
}

/* ---- the whole ---- */

static void count_work(struct case_run *r, const struct api_reference *ref) {
  for (uint32_t i = 0; i < ref->n_matmuls; i++)
    r->report->flops +=
        2.0 * (double)ref->matmuls[i].m * (double)ref->matmuls[i].n * (double)ref->matmuls[i].k;
  for (uint32_t i = 0; i < r->p.n_args; i++) {
    const struct api_arg *arg = &r->p.args[i];
    double bytes = api_is_tensor(arg) ? (double)dtype_bytes(arg->dtype, api_elements(arg)) : 0;
    r->report->bytes += bytes * ((api_is_read(arg) ? 1 : 0) + (api_is_written(arg) ? 1 : 0));
  }
}

static enum kiln_status run_once(struct case_run *r, bool small) {
  enum kiln_status st = api_inputs_make(&r->p, &r->in, small, r->a);
  if (st != KILN_OK)
    return st;
  return run_there(r);
}

/* Integer-valued inputs, judged bitwise, where that is possible. Gives back what it takes. */
static enum kiln_status run_exact(struct case_run *r) {
  struct api_reference ref;
  struct arena_mark mark = arena_get_mark(r->a);
  enum kiln_status st = run_once(r, true);
  bool whole = st == KILN_OK && api_inputs_whole(&r->p, &r->in);
  if (whole)
    st = judge(r, true, &ref);
  r->report->exact = whole && st == KILN_OK;
  arena_reset(r->a, mark);
  return st;
}

/* The same inputs with loops run in parts, for kernels that say how to merge them. What it finds
 * replaces the report of the run in one go only where it is wrong. */
static enum kiln_status run_cut(struct case_run *r) {
  struct api_reference ref;
  struct kiln_output_report *whole = r->outputs;
  struct kiln_report before = *r->report;
  r->cut = true;
  r->outputs = ARENA_ARRAY(r->a, struct kiln_output_report, r->p.n_args + 1);
  enum kiln_status st = run_once(r, false);
  if (st == KILN_OK)
    st = judge(r, false, &ref);
  r->cut = false;
  if (st == KILN_OK) {
    *r->report = before;
    r->outputs = whole;
  }
  return st;
}

static enum kiln_status run_steps(struct case_run *r) {
  struct api_problem *p = &r->p;
  const struct cg_target *target;
  struct api_mark before = api_mark(r->ctx);
  enum kiln_status st = api_pick_target(r->ctx, r->req->target, &target);
  if (st != KILN_OK)
    return st;
  if (!api_resolve(r->file, r->req, true, r->a, p))
    return api_failure_since(r->ctx, before);
  if ((st = api_pick_config(p, target, r->a)) != KILN_OK)
    return st;
  if ((st = api_variant_new(p, target, r->req->lineinfo, &r->v)) != KILN_OK)
    return st;
  bool algebraic = (r->flags & KILN_CASE_ALGEBRAIC) != 0;
  bool verify = (r->flags & KILN_CASE_VERIFY) != 0 && !algebraic;
  if (algebraic && r->on == KILN_ON_GPU) {
    API_ERROR(r->ctx, USAGE,
              "the algebraic domain is the interpreter's and the emulator's: not on a GPU");
    return KILN_INVALID;
  }
  if ((verify || algebraic || r->on == KILN_ON_INTERP) &&
      !api_stage_upto(r->v, IR_SCHEDULED_STAGE,
                      verify ? "verification (--no-verify leaves it out)" : "the interpreter"))
    return KILN_INVALID;
  r->buffers = ARENA_ARRAY(r->a, struct rt_buffer *, p->n_args + 1);
  r->args = ARENA_ARRAY(r->a, struct rt_arg, p->n_args + 1);
  r->outputs = ARENA_ARRAY(r->a, struct kiln_output_report, p->n_args + 1);
  if ((st = api_inputs_new(p, (r->flags & KILN_CASE_VERIFY) != 0, r->a, &r->in)) != KILN_OK)
    return st;
  r->report = &r->draft;
  r->report->device = r->on == KILN_ON_EMU ? "emulator" : "interpreter";
  if (r->on == KILN_ON_EMU && (st = api_lower(r->v)) != KILN_OK)
    return st;
  if (r->on == KILN_ON_GPU && (st = prepare_gpu(r)) != KILN_OK)
    return st;
  if (algebraic) {
    if ((st = api_inputs_make(p, &r->in, false, r->a)) != KILN_OK)
      return st;
    return api_compare_algebraic(p, r->v, r->in.values, r->on == KILN_ON_EMU, r->a,
                                 &r->report->algebraic);
  }
  struct api_reference ref = {0};
  if (verify && (r->flags & KILN_CASE_EXACT) && api_is_exact(r->v->tile, r->a) &&
      (st = run_exact(r)) != KILN_OK)
    return st;
  if ((st = run_once(r, false)) != KILN_OK || (verify && (st = judge(r, false, &ref)) != KILN_OK))
    return st;
  if (verify && r->on == KILN_ON_INTERP && ir_has_merge(r->v->tile) && (st = run_cut(r)) != KILN_OK)
    return st;
  count_work(r, &ref);
  if (r->on == KILN_ON_GPU) {
    const struct rt_device_info *info = rt_device_info(r->dev);
    char driver[80];
    if (!rt_driver_version(r->dev, driver, sizeof driver))
      strcpy(driver, "unknown");
    r->report->device = arena_printf(r->a, "%s, driver %s", info->name, driver);
    r->report->compile = r->v->info;
    if (r->flags & KILN_CASE_TIME)
      st = time_case(r, &ref);
  }
  return st;
}

static enum kiln_status run_case(void *user) {
  return run_steps(user);
}

static enum kiln_status write_report(void *user) {
  struct case_run *r = user;
  struct arena *a = &r->file->shown.arena;
  struct kiln_output_report *outputs =
      ARENA_ARRAY(a, struct kiln_output_report, r->report->n_outputs + 1);
  for (uint32_t i = 0; i < r->report->n_outputs; i++) {
    outputs[i] = r->outputs[i];
    outputs[i].name = arena_strdup(a, outputs[i].name);
  }
  struct kiln_report *report = ARENA_NEW(a, struct kiln_report);
  *report = r->draft;
  report->outputs = outputs;
  report->device = arena_strdup(a, report->device);
  if (report->algebraic)
    report->algebraic = arena_strdup(a, report->algebraic);
  api_report_text(report, &r->p, r->v, r->dev, a);
  r->report = report;
  return KILN_OK;
}

static void release(struct case_run *r) {
  rt_prepared_free(r->prepared);
  for (uint32_t i = 0; r->buffers && i < r->p.n_args; i++)
    rt_buffer_free(r->buffers[i]);
  kiln_variant_free(r->v);
}

enum kiln_status kiln_run_case(struct kiln_file *file, const struct kiln_request *req,
                               enum kiln_on on, uint32_t flags, const struct kiln_report **out) {
  *out = NULL;
  arena_free(&file->shown.arena);
  struct kiln_request request;
  if (!api_request(file->own.ctx, req, &request))
    return KILN_INVALID;
  struct case_run r = {.file = file,
                       .ctx = file->own.ctx,
                       .req = &request,
                       .on = on,
                       .flags = flags,
                       .a = &file->work.arena};
  enum kiln_status st = api_guarded(&file->work, run_case, &r);
  if (r.report && r.v && (st == KILN_OK || st == KILN_WRONG)) {
    enum kiln_status wrote = api_guarded(&file->shown, write_report, &r);
    if (wrote == KILN_OK)
      *out = r.report;
    else
      st = wrote;
  }
  release(&r);
  arena_free(&file->work.arena);
  return st;
}
