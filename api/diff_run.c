/* One module on one side: interpreted, or lowered and run on the emulator or the GPU. */
#include "api/diff.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void diff_step(struct diff *d, const char *what) {
  d->runs++;
  if (d->progress)
    d->progress(d->user, what, d->runs);
}

enum kiln_status diff_take_failure(struct diff *d, struct api_mark before, uint32_t n,
                                   enum diff_state state, struct diff_verdict *verdict) {
  struct diag_sink *diags = &d->ctx->diags;
  enum kiln_status st = api_failure_since(d->ctx, before);
  if (st == KILN_NO_MEMORY || st == KILN_INTERRUPTED)
    return st;
  *verdict = (struct diff_verdict){.state = state, .id = DIAG_INTERNAL};
  for (uint32_t i = n; i < diags->list.n; i++)
    if (diags->list.at[i].severity == DIAG_ERROR) {
      verdict->id = diags->list.at[i].id;
      verdict->loc = diags->list.at[i].loc;
      snprintf(verdict->why, sizeof verdict->why, "%s", diags->list.at[i].message);
      break;
    }
  diag_truncate(diags, n);
  return KILN_OK;
}

/* Arguments for interpreter and emulator; outputs in *out. */
static struct interp_arg *bind_args(struct diff *d, const struct diff_job *job, void **out) {
  struct interp_arg *args = ARENA_ARRAY(d->a, struct interp_arg, job->n_args + 1);
  for (uint32_t i = 0; i < job->n_args; i++) {
    const struct api_arg *arg = &job->args[i];
    if (arg->absent)
      continue;
    if (arg->kind == IR_ARG_SCALAR) {
      args[i].f = job->inputs[i][0];
      args[i].i = api_scalar_int(arg->dtype, job->inputs[i][0]);
      continue;
    }
    void *data = api_dense_new(arg, job->domain, job->inputs[i], d->a);
    args[i].tensor = interp_dense(data, api_dense_dtype(arg, job->domain), arg->rank, arg->dim);
    if (api_is_written(arg))
      out[i] = data;
  }
  return args;
}

static bool interpret(struct diff *d, const struct diff_job *job, void **out) {
  struct interp_options opt = {.domain = job->domain,
                               .check_races = job->checks,
                               .check_unwritten = job->checks,
                               .watch = job->watch,
                               .max_steps = d->ctx->opt.max_steps,
                               .interrupted = api_interrupted,
                               .user = d->ctx};
  struct interp_arg *args = bind_args(d, job, out);
  return interp_run(job->m, args, job->n_args, &opt, &d->ctx->diags, &d->ctx->mem);
}

static bool emulate(struct diff *d, const struct diff_job *job, const struct ir_module *machine,
                    void **out) {
  struct emu_options opt = {.domain = job->domain,
                            .max_steps = d->ctx->opt.max_steps,
                            .interrupted = api_interrupted,
                            .user = d->ctx};
  struct interp_arg *args = bind_args(d, job, out);
  struct api_placed *placed = ARENA_ARRAY(d->a, struct api_placed, job->n_args + 1);
  emu_choose_run(&opt, job->emu_run, d->p.seed);
  for (uint32_t i = 0; i < job->n_args; i++) {
    struct interp_tensor *t = &args[i].tensor;
    if (!t->data)
      continue;
    placed[i] = api_dense_place(&job->args[i], job->domain, t->data, d->a);
    memcpy(t->stride, job->args[i].stride, sizeof t->stride);
    t->data = placed[i].memory;
    t->offset = placed[i].origin;
  }
  if (!emu_run(machine, args, job->n_args, &opt, NULL, &d->ctx->diags, &d->ctx->mem))
    return false;
  for (uint32_t i = 0; i < job->n_args; i++)
    if (out[i])
      api_dense_fetch(&job->args[i], &placed[i], out[i]);
  return true;
}

/* ---- on the GPU ---- */

void diff_release(struct diff *d) {
  rt_prepared_free(d->prepared);
  for (uint32_t i = 0; i < d->n_buffers; i++)
    rt_buffer_free(d->buffers[i]);
  kiln_variant_free(d->on_gpu);
  d->prepared = NULL;
  d->n_buffers = 0;
  d->on_gpu = NULL;
}

static enum kiln_status upload(struct diff *d, const struct diff_job *job,
                               const struct interp_arg *host, struct api_placed *placed,
                               struct rt_arg *args) {
  enum kiln_status st = KILN_OK;
  for (uint32_t i = 0; i < job->n_args && st == KILN_OK; i++) {
    const struct api_arg *arg = &job->args[i];
    args[i].absent = arg->absent && arg->kind != IR_ARG_SCALAR;
    args[i].f64 = host[i].f;
    args[i].i64 = host[i].i;
    if (!host[i].tensor.data)
      continue;
    placed[i] = api_dense_place(arg, job->domain, host[i].tensor.data, d->a);
    st = api_from_rt(rt_buffer_new(d->ctx->device, arg->name, placed[i].bytes, &d->buffers[i]));
    if (st == KILN_OK)
      st = api_from_rt(rt_buffer_upload(d->buffers[i], 0, placed[i].memory, placed[i].bytes));
    if (st == KILN_OK) {
      int64_t offset = dtype_bytes(arg->dtype, placed[i].origin);
      args[i].tensor = api_rt_tensor(arg, (char *)rt_buffer_data(d->buffers[i]) + offset);
    }
  }
  return st;
}

static enum kiln_status launch(struct diff *d, const struct rt_arg *args) {
  const struct ir_module *m = d->on_gpu->machine;
  struct rt_arg *taken = ARENA_ARRAY(d->a, struct rt_arg, m->args.n + 1);
  uint32_t n = api_recipe_args(m, args, taken);
  rt_stream stream;
  enum rt_status st = rt_prepare(d->on_gpu->module, m->recipe, taken, n, NULL, &d->prepared);
  if (st == RT_OK)
    st = rt_device_stream(d->ctx->device, &stream);
  if (st == RT_OK)
    st = rt_launch(d->prepared, stream);
  if (st == RT_OK)
    st = rt_device_sync(d->ctx->device);
  return api_from_rt(st);
}

/* *compiled: whether it came as far as that. */
static enum kiln_status run_on_gpu(struct diff *d, const struct diff_job *job,
                                   const struct ir_module *machine, void **out, bool *compiled) {
  struct rt_arg *args = ARENA_ARRAY(d->a, struct rt_arg, job->n_args + 1);
  struct api_placed *placed = ARENA_ARRAY(d->a, struct api_placed, job->n_args + 1);
  d->buffers = ARENA_ARRAY(d->a, struct rt_buffer *, job->n_args + 1);
  struct rt_device *dev;
  enum kiln_status st = api_device(d->ctx, &dev);
  if (st == KILN_OK)
    st = api_variant_of_machine(d->file, d->v->target, machine, &d->on_gpu);
  if (st == KILN_OK)
    st = api_load(d->on_gpu);
  if (st != KILN_OK)
    return st;
  *compiled = true;
  d->n_buffers = job->n_args;
  const struct interp_arg *host = bind_args(d, job, out);
  st = upload(d, job, host, placed, args);
  if (st == KILN_OK)
    st = launch(d, args);
  for (uint32_t i = 0; i < job->n_args && st == KILN_OK; i++) {
    if (!d->buffers[i])
      continue;
    st = api_from_rt(rt_buffer_check_guards(d->buffers[i]));
    if (st == KILN_OK && out[i]) {
      st = api_from_rt(rt_buffer_download(d->buffers[i], 0, placed[i].memory, placed[i].bytes));
      api_dense_fetch(&job->args[i], &placed[i], out[i]);
    }
  }
  return st;
}

/* ---- jobs ---- */

static struct ir_module *lower(struct diff *d, const struct diff_job *job) {
  struct ir_run_options run = api_run_options(d->ctx);
  if (job->debug)
    run.debug = job->debug;
  struct cg_options opt = {.target = d->v->target,
                           .schedule = *job->schedule,
                           .stop = IR_MACHINE_STAGE,
                           .run = &run,
                           .passes = d->pipes.lowering,
                           .n_passes = d->pipes.n_lowering};
  return cg_lower(job->m, &opt, d->a, &d->ctx->diags);
}

enum kiln_status diff_run(struct diff *d, const struct diff_job *job, void ***out,
                          struct diff_verdict *verdict) {
  struct api_mark before = api_mark(d->ctx);
  uint32_t n = d->ctx->diags.list.n;
  void **results = ARENA_ARRAY(d->a, void *, job->n_args + 1);
  const struct ir_module *machine = NULL;
  *out = results;
  *verdict = (struct diff_verdict){.state = DIFF_SAME};
  if (api_interrupted(d->ctx))
    return KILN_INTERRUPTED;
  if (job->on == KILN_ON_INTERP) {
    bool ok = interpret(d, job, results);
    if (!ok && job->keep)
      return api_failure_since(d->ctx, before);
    return ok ? KILN_OK : diff_take_failure(d, before, n, DIFF_FAILS, verdict);
  }
  machine = job->machine ? job->machine : lower(d, job);
  if (!machine)
    return diff_take_failure(d, before, n, DIFF_UNKNOWN, verdict);
  if (job->on == KILN_ON_EMU)
    return emulate(d, job, machine, results) ? KILN_OK
                                             : diff_take_failure(d, before, n, DIFF_FAILS, verdict);
  bool compiled = false;
  enum kiln_status st = run_on_gpu(d, job, machine, results, &compiled);
  diff_release(d);
  if (st == KILN_OK || st == KILN_UNAVAILABLE || st == KILN_INTERRUPTED || st == KILN_NO_MEMORY)
    return st;
  return diff_take_failure(d, before, n, compiled ? DIFF_FAILS : DIFF_UNKNOWN, verdict);
}

struct diff_job diff_job_of(const struct diff *d, const struct ir_module *m, enum kiln_on on) {
  return (struct diff_job){.m = m,
                           .args = d->p.args,
                           .n_args = d->p.n_args,
                           .inputs = d->in.values,
                           .on = on,
                           .domain = d->domain,
                           .emu_run = d->emu_run,
                           .schedule = &d->v->schedule};
}

/* A job's outputs in double precision: float outputs are received as f64. */
static enum kiln_status interpret_exactly(struct diff *d, const struct diff_job *job,
                                          double **exact, struct diff_verdict *verdict) {
  struct api_mark before = api_mark(d->ctx);
  uint32_t n = d->ctx->diags.list.n;
  struct diff_job in_double = *job;
  in_double.domain = INTERP_DOUBLE;
  void **bits = ARENA_ARRAY(d->a, void *, job->n_args + 1);
  struct interp_arg *args = bind_args(d, &in_double, bits);
  for (uint32_t i = 0; i < job->n_args; i++) {
    if (!bits[i])
      continue;
    int64_t elements = api_elements(&job->args[i]);
    exact[i] = ARENA_ARRAY(d->a, double, elements + 1);
    if (!dtype_is_float(job->args[i].dtype))
      continue;
    for (int64_t e = 0; e < elements; e++)
      exact[i][e] = job->inputs[i] ? job->inputs[i][e] : (double)NAN;
    args[i].tensor.data = exact[i];
    args[i].tensor.dtype = DT_F64;
  }
  struct interp_options opt = {.domain = INTERP_DOUBLE,
                               .max_steps = d->ctx->opt.max_steps,
                               .interrupted = api_interrupted,
                               .user = d->ctx};
  if (!interp_run(job->m, args, job->n_args, &opt, &d->ctx->diags, &d->ctx->mem))
    return diff_take_failure(d, before, n, DIFF_FAILS, verdict);
  for (uint32_t i = 0; i < job->n_args; i++)
    if (exact[i] && !dtype_is_float(job->args[i].dtype))
      num_load_n(job->args[i].dtype, bits[i], 0, (size_t)api_elements(&job->args[i]), exact[i]);
  return KILN_OK;
}

enum kiln_status diff_expect(struct diff *d, const struct diff_job *job, struct diff_values *out,
                             struct diff_verdict *verdict) {
  out->exact = ARENA_ARRAY(d->a, double *, job->n_args + 1);
  enum kiln_status st = diff_run(d, job, &out->bits, verdict);
  if (st == KILN_OK && verdict->state == DIFF_SAME && d->by_policy)
    st = interpret_exactly(d, job, out->exact, verdict);
  return st;
}

enum kiln_status diff_probe(struct diff *d, const struct cg_schedule *schedule, const char *debug,
                            struct diff_verdict *verdict) {
  struct diff_job job = diff_job_of(d, d->tile, d->on);
  void **got;
  job.schedule = schedule;
  job.debug = debug;
  job.machine = d->given;
  enum kiln_status st = diff_run(d, &job, &got, verdict);
  if (st == KILN_OK && verdict->state == DIFF_SAME && !diff_compare(d, &d->want, got, &verdict->at))
    verdict->state = DIFF_DIFFERS;
  return st;
}
