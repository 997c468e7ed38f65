/* kiln_diff: where interpreter, emulator and GPU differ.
 *
 * The interpreter runs the kernel as it was traced; that is what is expected. Each other side runs
 * the machine code. Sides are compared one by one; of the first that differs the element, op, pass
 * and knobs are sought. */
#include "api/diff.h"

#include <string.h>

/* ---- the two sides ---- */

static enum kiln_status make_tile(struct diff *d) {
  struct api_mark before = api_mark(d->ctx);
  struct ir_run_options run = api_run_options(d->ctx);
  struct ir_module *m = ir_clone(d->traced, d->a);
  d->tile = m;
  return ir_run_passes(m, d->pipes.tile, d->pipes.n_tile, &d->ctx->diags, &run)
             ? KILN_OK
             : api_failure_since(d->ctx, before);
}

/* Chooses the domain for the side and makes inputs for it. */
static enum kiln_status choose_domain(struct diff *d, enum kiln_domain asked) {
  bool exact = asked != KILN_DOMAIN_ALGEBRAIC && api_is_exact(d->traced, d->a);
  if (asked == KILN_DOMAIN_ALGEBRAIC && d->on == KILN_ON_GPU) {
    API_ERROR(d->ctx, USAGE, "the algebraic domain is the emulator's: not on a GPU");
    return KILN_INVALID;
  }
  d->domain = INTERP_ROUNDED;
  d->by_policy = false;
  enum kiln_status st = api_inputs_new(&d->p, !exact, d->a, &d->in);
  if (st == KILN_OK && exact)
    st = api_inputs_make(&d->p, &d->in, true, d->a);
  if (st != KILN_OK || (exact && api_inputs_whole(&d->p, &d->in)))
    return st;
  if (asked == KILN_DOMAIN_ALGEBRAIC || (asked == KILN_DOMAIN_AUTO && d->on == KILN_ON_EMU))
    d->domain = INTERP_ALGEBRAIC;
  else
    d->by_policy = true;
  return api_inputs_make(&d->p, &d->in, false, d->a);
}

static const char *domain_name(const struct diff *d) {
  return d->domain == INTERP_ALGEBRAIC ? "algebraic"
         : d->by_policy                ? "rounded, by the error policy"
                                       : "rounded";
}

/* Runs both; d->first is the verdict. */
static enum kiln_status compare_sides(struct diff *d, enum kiln_domain asked) {
  struct diff_job expected = diff_job_of(d, d->traced, KILN_ON_INTERP);
  enum kiln_status st = d->given               ? KILN_OK
                        : d->on == KILN_ON_GPU ? api_compile(d->v)
                                               : api_lower(d->v);
  if (st == KILN_OK)
    st = choose_domain(d, asked);
  if (st != KILN_OK)
    return st;
  expected = diff_job_of(d, d->traced, KILN_ON_INTERP);
  expected.checks = expected.keep = true;
  diff_step(d, "interpreting");
  st = diff_expect(d, &expected, &d->want, &d->first);
  uint32_t n = d->on == KILN_ON_EMU ? EMU_RUNS : 1;
  for (d->emu_run = 0; d->emu_run < n && st == KILN_OK; d->emu_run++) {
    struct arena_mark mark = arena_get_mark(d->a);
    diff_step(d, d->on == KILN_ON_EMU ? "emulating" : "running on the GPU");
    st = diff_probe(d, &d->v->schedule, NULL, &d->first);
    arena_reset(d->a, mark);
    if (d->first.state != DIFF_SAME)
      break;
  }
  if (st == KILN_OK && d->first.state == DIFF_UNKNOWN) {
    diag_report(&d->ctx->diags, DIAG_ERROR, d->first.id, d->first.loc, "%s", d->first.why);
    st = KILN_INVALID;
  }
  return st;
}

static const char *side_name(enum kiln_on on) {
  return on == KILN_ON_GPU ? "GPU" : "emulator";
}

static void complain(struct diff *d) {
  struct diag_sink *diags = &d->ctx->diags;
  const struct diff_element *e = &d->first.at;
  if (d->first.state == DIFF_FAILS) {
    diag_report(diags, DIAG_ERROR, d->first.id, d->first.loc, "%s", d->first.why);
    return;
  }
  struct strbuf at = {.arena = d->a};
  const struct api_arg *arg = &d->p.args[e->arg];
  for (uint32_t k = 0; k < arg->rank; k++)
    sb_printf(&at, k ? ", %lld" : "%lld", (long long)e->coord[k]);
  struct diag_loc loc = d->origin.found ? d->origin.loc : d->writer_loc;
  diag_report(diags, DIAG_ERROR, DIAG_VERIFY_FAILED, loc,
              "the %s differs from the interpreter: `%s` of %s at [%s]: expected %s, found %s",
              side_name(d->on), arg->name, d->p.text, sb_str(&at), e->want, e->got);
}

/* ---- the steps ---- */

struct diff_call {
  struct diff *d;
  uint32_t sides;
  enum kiln_domain domain;
  const char *machine;
  struct kiln_diff_report *report;
};

static enum kiln_status which_sides(struct diff *d, uint32_t asked, uint32_t *sides) {
  const uint32_t known = 1u << KILN_ON_EMU | 1u << KILN_ON_GPU;
  struct rt_device *dev = NULL;
  *sides = asked;
  if (asked & ~known) {
    API_ERROR(d->ctx, USAGE, "kiln_diff: sides are the emulator and the GPU");
    return KILN_INVALID;
  }
  if (asked)
    return KILN_OK;
  *sides = 1u << KILN_ON_EMU;
  enum kiln_status st = api_device_if_any(d->ctx, &dev);
  if (dev)
    *sides |= 1u << KILN_ON_GPU;
  return st;
}

static enum kiln_status begin(struct diff *d) {
  const struct cg_target *target;
  struct api_mark before = api_mark(d->ctx);
  enum kiln_status st = api_pick_target(d->ctx, d->req->target, &target);
  if (st != KILN_OK)
    return st;
  if (!api_resolve(d->file, d->req, true, d->a, &d->p))
    return api_failure_since(d->ctx, before);
  if ((st = api_pick_config(&d->p, target, d->a)) != KILN_OK)
    return st;
  if ((st = api_variant_new(&d->p, target, d->req->lineinfo, &d->v)) != KILN_OK)
    return st;
  if (!api_stage_upto(d->v, IR_TILE_STAGE,
                      "the comparison with the interpreter (KERNEL --machine TEXT)"))
    return KILN_INVALID;
  d->traced = d->v->traced;
  return make_tile(d);
}

/* The machine text, which must be one of this kernel. */
static enum kiln_status load_machine(struct diff *d, const char *path) {
  struct kiln_context *ctx = d->ctx;
  enum kiln_status st = kiln_file_load(ctx, path, NULL, &d->given_file);
  if (st != KILN_OK)
    return st;
  const struct ir_module *m = d->given_file->tir;
  if (!m || m->stage != IR_MACHINE_STAGE || !cg_has_launch(m)) {
    API_ERROR(
        ctx, USAGE,
        "--machine: %s is no machine IR with a recipe, as kiln show --stage machine prints it",
        path);
    return KILN_INVALID;
  }
  const char *name = ir_sym(m, m->target);
  if (!cg_find_target(name) || (d->req->target && !str_eq(d->req->target, name))) {
    API_ERROR(ctx, USAGE, "--machine: %s is for %s, not for %s", path, name,
              d->req->target ? d->req->target : "a target that is known");
    return KILN_INVALID;
  }
  bool same = m->args.n >= d->p.n_args && ir_given_args(m) <= d->p.n_args;
  for (uint32_t i = 0; i < d->p.n_args && same; i++)
    same = str_eq(ir_sym(m, m->args.at[i].name), d->p.args[i].name) &&
           m->args.at[i].dtype == d->p.args[i].dtype && m->args.at[i].rank == d->p.args[i].rank;
  if (!same) {
    API_ERROR(ctx, SHAPE_BINDING, "--machine: the arguments of %s are not those of %s", path,
              d->p.text);
    return KILN_INVALID;
  }
  d->v->target = cg_find_target(name);
  d->given = m;
  return KILN_OK;
}

static enum kiln_status compare_all(void *user) {
  struct diff_call *c = user;
  struct diff *d = c->d;
  uint32_t sides;
  static const enum kiln_on order[] = {KILN_ON_EMU, KILN_ON_GPU};
  enum kiln_status st = begin(d);
  if (st == KILN_OK && c->machine)
    st = load_machine(d, c->machine);
  if (st == KILN_OK)
    st = which_sides(d, c->sides, &sides);
  for (size_t k = 0; k < sizeof order / sizeof *order && st == KILN_OK; k++) {
    if (!(sides >> order[k] & 1))
      continue;
    d->on = order[k];
    st = compare_sides(d, c->domain);
    if (st != KILN_OK || d->first.state != DIFF_SAME)
      break;
    d->agreed = arena_printf(d->a, "%s%s%s (%s)", d->agreed ? d->agreed : "", d->agreed ? ", " : "",
                             side_name(d->on), domain_name(d));
  }
  if (st != KILN_OK || d->first.state == DIFF_SAME)
    return st;
  st = d->given ? diff_find_line(d) : diff_find_pass(d);
  if (st == KILN_OK && d->given)
    d->no_knobs = "the machine code was given";
  else if (st == KILN_OK && diff_is_lost(d))
    d->no_knobs = "the GPU's context is lost; a new process, with knobs given, can go on";
  else if (st == KILN_OK)
    st = diff_find_knobs(d);
  if (st == KILN_OK)
    complain(d);
  return st == KILN_OK ? KILN_WRONG : st;
}

static enum kiln_status write_report(void *user) {
  struct diff_call *c = user;
  struct arena *a = &c->d->file->shown.arena;
  c->report = ARENA_NEW(a, struct kiln_diff_report);
  diff_report(c->d, domain_name(c->d), c->report, a);
  return KILN_OK;
}

enum kiln_status diff_case(struct kiln_file *file, const struct kiln_request *req,
                           const struct kiln_diff_options *options,
                           const struct diff_pipelines *pipes,
                           const struct kiln_diff_report **out) {
  struct kiln_diff_options opt = {0};
  struct kiln_request request;
  struct kiln_context *ctx = file->own.ctx;
  *out = NULL;
  arena_free(&file->shown.arena);
  if (options &&
      (options->struct_size < sizeof options->struct_size || options->struct_size > sizeof opt)) {
    API_ERROR(ctx, USAGE, "kiln_diff: struct_size of the options is not set or too large");
    return KILN_INVALID;
  }
  if (options)
    memcpy(&opt, options, options->struct_size);
  if (!api_request(ctx, req, &request))
    return KILN_INVALID;
  struct diff d = {.file = file,
                   .ctx = ctx,
                   .req = &request,
                   .pipes = *pipes,
                   .progress = opt.progress,
                   .user = opt.user,
                   .a = &file->work.arena};
  struct diff_call c = {.d = &d, .sides = opt.sides, .domain = opt.domain, .machine = opt.machine};
  enum kiln_status st = api_guarded(&file->work, compare_all, &c);
  diff_release(&d); /* where memory ran out */
  if (st == KILN_OK || st == KILN_WRONG) {
    enum kiln_status wrote = api_guarded(&file->shown, write_report, &c);
    if (wrote == KILN_OK)
      *out = c.report;
    else
      st = wrote;
  }
  kiln_variant_free(d.v);
  kiln_file_free(d.given_file);
  arena_free(&file->work.arena);
  return st;
}

enum kiln_status kiln_diff(struct kiln_file *file, const struct kiln_request *req,
                           const struct kiln_diff_options *options,
                           const struct kiln_diff_report **out) {
  struct diff_pipelines pipes = {0};
  pipes.tile = ir_tile_pipeline(&pipes.n_tile);
  pipes.lowering = cg_pipeline(&pipes.n_lowering);
  return diff_case(file, req, options, &pipes, out);
}
