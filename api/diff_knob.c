/* The knobs that a difference needs: from the schedule as it was filled, each knob goes to the
 * plainest value that still shows the difference, again and again until none moves. What is then
 * left above its plainest value is needed. */
#include "api/diff.h"

#include "codegen/pass.h"
#include "codegen/schedule.h"

#include <string.h>

#define MAX_SWEEPS 3

static int64_t plainest_of(enum cg_knob k) {
  switch ((int)k) {
  case CG_KNOB_THREADS: return 32;
  case CG_KNOB_PREFETCH:
  case CG_KNOB_SPARE:
  case CG_KNOB_WARPGROUPS:
  case CG_KNOB_STORE: return 0;
  default: return 1;
  }
}

static void look_for_dot(void *user, struct ir_module *m, struct ir_op o) {
  *(bool *)user |= ir_op_at(m, o)->opcode == IR_DOT;
}

/* The knobs that count: warps where there are dots, else threads, which would follow from warps. */
static bool counts(enum cg_knob k, bool has_dots) {
  if (k == CG_KNOB_THREADS)
    return !has_dots;
  return has_dots || (k != CG_KNOB_WARPS_M && k != CG_KNOB_WARPS_N);
}

/* As the rules fill it in for what was asked. */
static enum kiln_status fill(struct diff *d, struct cg_schedule *out) {
  struct api_mark before = api_mark(d->ctx);
  uint32_t n = d->ctx->diags.list.n, n_passes = 0;
  struct ir_run_options run = {0};
  while (n_passes < d->pipes.n_lowering &&
         !str_eq(d->pipes.lowering[n_passes].name, "lower_machine"))
    n_passes++;
  struct cg_options opt = {.target = d->v->target,
                           .schedule = d->v->schedule,
                           .stop = IR_MACHINE_STAGE,
                           .run = &run,
                           .passes = d->pipes.lowering,
                           .n_passes = n_passes};
  struct ir_module *m = cg_lower(d->tile, &opt, d->a, &d->ctx->diags);
  struct diff_verdict verdict;
  bool has_dots = false;
  *out = d->v->schedule;
  if (!m) {
    enum kiln_status st = diff_take_failure(d, before, n, DIFF_UNKNOWN, &verdict);
    d->no_knobs = arena_printf(d->a, "the kernel is not scheduled: %s", verdict.why);
    return st;
  }
  ir_walk(m, m->body, look_for_dot, &has_dots);
  d->knobs = ARENA_ARRAY(d->a, struct diff_knob, CG_KNOB_COUNT);
  for (unsigned k = 0; k < CG_KNOB_COUNT; k++) {
    int64_t value = cg_knob_get(m, (enum cg_knob)k), plain = plainest_of((enum cg_knob)k);
    if (value == CG_AUTO || !counts((enum cg_knob)k, has_dots))
      continue;
    out->knob[k] = value;
    d->knobs[d->n_knobs++] = (struct diff_knob){
        .name = cg_knob_name((enum cg_knob)k), .given = value, .plain = plain, .value = value};
  }
  return KILN_OK;
}

static int64_t *value_of(struct cg_schedule *s, const struct diff_knob *knob) {
  unsigned k = 0;
  while (!str_eq(cg_knob_name((enum cg_knob)k), knob->name))
    k++;
  return &s->knob[k];
}

static enum kiln_status try_schedule(struct diff *d, const struct cg_schedule *s,
                                     enum diff_state *state) {
  struct arena_mark mark = arena_get_mark(d->a);
  struct diff_verdict verdict;
  diff_step(d, "trying plainer schedules");
  enum kiln_status st = diff_probe(d, s, NULL, &verdict);
  *state = diff_is_bad(d, &verdict)     ? DIFF_DIFFERS
           : verdict.state == DIFF_SAME ? DIFF_SAME
                                        : DIFF_UNKNOWN;
  arena_reset(d->a, mark);
  return st;
}

/* The plainest value at which the difference shows: doubling from the plainest of all. */
static enum kiln_status lower_knob(struct diff *d, struct cg_schedule *s, struct diff_knob *knob,
                                   bool *moved) {
  int64_t *value = value_of(s, knob), kept = *value;
  enum diff_state state;
  knob->stuck = false;
  for (int64_t v = knob->plain; v < kept; v = v ? 2 * v : 1) {
    *value = v;
    enum kiln_status st = try_schedule(d, s, &state);
    if (st != KILN_OK)
      return st;
    if (state == DIFF_DIFFERS) {
      *moved = true;
      knob->value = v;
      knob->needed = v > knob->plain && !knob->stuck;
      return KILN_OK;
    }
    knob->stuck |= state == DIFF_UNKNOWN;
  }
  *value = kept;
  knob->needed = kept > knob->plain && !knob->stuck;
  return KILN_OK;
}

enum kiln_status diff_find_knobs(struct diff *d) {
  struct cg_schedule s;
  enum diff_state state;
  enum kiln_status st = fill(d, &s);
  if (st != KILN_OK || d->no_knobs)
    return st;
  if ((st = try_schedule(d, &s, &state)) != KILN_OK)
    return st;
  if (state != DIFF_DIFFERS) {
    d->no_knobs = "with the same knobs given one by one the difference does not show";
    return KILN_OK;
  }
  struct cg_schedule plain = s;
  for (uint32_t i = 0; i < d->n_knobs; i++)
    *value_of(&plain, &d->knobs[i]) = d->knobs[i].plain;
  if ((st = try_schedule(d, &plain, &state)) != KILN_OK)
    return st;
  if (state == DIFF_DIFFERS) {
    s = plain;
    d->any_schedule = true;
    for (uint32_t i = 0; i < d->n_knobs; i++)
      d->knobs[i].value = d->knobs[i].plain;
  }
  bool moved = !d->any_schedule;
  for (int sweep = 0; sweep < MAX_SWEEPS && moved; sweep++) {
    moved = false;
    for (uint32_t i = 0; i < d->n_knobs && st == KILN_OK; i++)
      if (d->knobs[i].value > d->knobs[i].plain)
        st = lower_knob(d, &s, &d->knobs[i], &moved);
  }
  struct strbuf text = {.arena = d->a};
  for (uint32_t i = 0; i < d->n_knobs; i++)
    sb_printf(&text, "%s%s=%lld", i ? "," : "", d->knobs[i].name, (long long)d->knobs[i].value);
  d->plainest = sb_str(&text);
  return st;
}
