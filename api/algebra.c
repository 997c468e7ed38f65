/* A case in the algebraic domain: the kernel as traced, after the tile passes, with its loops cut
 * (ir/merge.h) and as scheduled for the target, and its machine code on the emulator give the same
 * payloads to the bit (docs/numerics.md). No oracle takes part. */
#include "api/api.h"
#include "codegen/emu.h"

#include <string.h>

struct stage {
  const char *what; /* as people read it */
  const struct ir_module *m;
  bool cut; /* loops run in parts */
  bool emu; /* machine code, in this interleaving: */
  uint32_t run;
  void **out; /* by argument: dense elements, NULL where not an output */
};

static bool is_payload(const struct api_arg *arg) {
  return dtype_is_float(arg->dtype);
}

static bool emulate(const struct api_problem *p, const struct stage *s, struct interp_arg *args,
                    struct arena *a, uint64_t seed) {
  struct kiln_context *ctx = p->file->own.ctx;
  struct api_placed *placed = ARENA_ARRAY(a, struct api_placed, p->n_args + 1);
  struct emu_options opt = {.domain = INTERP_ALGEBRAIC,
                            .max_steps = ctx->opt.max_steps,
                            .interrupted = api_interrupted,
                            .user = ctx};
  emu_choose_run(&opt, s->run, seed);
  for (uint32_t i = 0; i < p->n_args; i++)
    if (args[i].tensor.data) {
      struct interp_tensor *t = &args[i].tensor;
      placed[i] = api_dense_place(&p->args[i], INTERP_ALGEBRAIC, t->data, a);
      memcpy(t->stride, p->args[i].stride, sizeof t->stride);
      t->data = placed[i].memory;
      t->offset = placed[i].origin;
    }
  if (!emu_run(s->m, args, p->n_args, &opt, NULL, &ctx->diags, &ctx->mem))
    return false;
  for (uint32_t i = 0; i < p->n_args; i++)
    if (s->out[i])
      api_dense_fetch(&p->args[i], &placed[i], s->out[i]);
  return true;
}

/* ---- stages ---- */

static enum kiln_status run_stage(const struct api_problem *p, double **inputs, struct arena *a,
                                  uint64_t grid_seed, struct stage *s) {
  struct kiln_context *ctx = p->file->own.ctx;
  struct interp_arg *args = ARENA_ARRAY(a, struct interp_arg, p->n_args + 1);
  s->out = ARENA_ARRAY(a, void *, p->n_args + 1);
  for (uint32_t i = 0; i < p->n_args; i++) {
    const struct api_arg *arg = &p->args[i];
    if (arg->absent)
      continue;
    if (arg->kind == IR_ARG_SCALAR) {
      args[i].f = inputs[i][0];
      args[i].i = api_scalar_int(arg->dtype, inputs[i][0]);
      continue;
    }
    void *data = api_dense_new(arg, INTERP_ALGEBRAIC, inputs[i], a);
    args[i].tensor =
        interp_dense(data, api_dense_dtype(arg, INTERP_ALGEBRAIC), arg->rank, arg->dim);
    if (arg->kind == IR_ARG_OUT || arg->kind == IR_ARG_INOUT)
      s->out[i] = data;
  }
  struct interp_options opt = {.domain = INTERP_ALGEBRAIC,
                               .grid_seed = grid_seed,
                               .check_races = true,
                               .check_unwritten = true,
                               .max_steps = ctx->opt.max_steps,
                               .cut_seed = s->cut ? grid_seed : 0,
                               .interrupted = api_interrupted,
                               .user = ctx};
  struct api_mark before = api_mark(ctx);
  bool ok = s->emu ? emulate(p, s, args, a, grid_seed)
                   : interp_run(s->m, args, p->n_args, &opt, &ctx->diags, &ctx->mem);
  return ok ? KILN_OK : api_failure_since(ctx, before);
}

static void put_payload(struct strbuf *b, const struct api_arg *arg, const void *data, int64_t i) {
  int64_t x = is_payload(arg) ? ((const int64_t *)data)[i] : num_load_int(arg->dtype, data, i);
  if (is_payload(arg) && (x == INTERP_NAN || x == INTERP_MINUS_INF || x == INTERP_PLUS_INF))
    sb_puts(b, x == INTERP_NAN ? "nan" : x == INTERP_PLUS_INF ? "inf" : "-inf");
  else
    sb_printf(b, "%lld", (long long)x);
}

/* The first element and how many differ. */
static bool compare(const struct api_problem *p, uint32_t i, const struct stage *a,
                    const struct stage *b, struct arena *arena) {
  struct kiln_context *ctx = p->file->own.ctx;
  const struct api_arg *arg = &p->args[i];
  int64_t n = api_elements(arg), first = -1, differ = 0;
  if (memcmp(a->out[i], b->out[i], api_dense_bytes(arg, INTERP_ALGEBRAIC)) == 0)
    return true;
  for (int64_t e = 0; e < n; e++)
    if (!api_dense_same(arg, INTERP_ALGEBRAIC, a->out[i], b->out[i], e)) {
      first = first < 0 ? e : first;
      differ++;
    }
  if (first < 0) /* the unused half of a last byte */
    return true;
  struct strbuf at = {.arena = arena}, x = {.arena = arena}, y = {.arena = arena};
  int64_t coord[IR_MAX_RANK] = {0}, left = first;
  for (uint32_t d = arg->rank; d-- > 0; left /= arg->dim[d])
    coord[d] = left % arg->dim[d];
  for (uint32_t d = 0; d < arg->rank; d++)
    sb_printf(&at, "%s%lld", d ? ", " : "", (long long)coord[d]);
  put_payload(&x, arg, a->out[i], first);
  put_payload(&y, arg, b->out[i], first);
  API_ERROR(ctx, VERIFY_FAILED,
            "output `%s` of %s is not the same in the algebraic domain %s and %s: %lld of "
            "%lld elements differ, the first at [%s]: %s and %s",
            arg->name, p->text, a->what, b->what, (long long)differ, (long long)n, sb_str(&at),
            sb_str(&x), sb_str(&y));
  return false;
}

/* The scheduled module; NULL where the kernel cannot be lowered (that is no failure here), which
 * *why then says. */
static enum kiln_status schedule(const struct kiln_variant *v, struct arena *a,
                                 const struct ir_module **out, const char **why) {
  struct kiln_context *ctx = v->own.ctx;
  struct ir_run_options run = api_run_options(ctx);
  struct cg_options opt = {
      .target = v->target, .schedule = v->schedule, .stop = IR_SCHEDULED_STAGE, .run = &run};
  struct api_mark before = api_mark(ctx);
  uint32_t n = ctx->diags.list.n;
  *out = cg_lower(v->tile, &opt, a, &ctx->diags);
  enum kiln_status st = *out ? KILN_OK : api_failure_since(ctx, before);
  if (*out || st == KILN_NO_MEMORY || st == KILN_INTERRUPTED)
    return st;
  *why = n < ctx->diags.list.n ? arena_strdup(a, ctx->diags.list.at[n].message) : "";
  diag_truncate(&ctx->diags, n);
  return KILN_OK;
}

enum kiln_status api_compare_algebraic(const struct api_problem *p, const struct kiln_variant *v,
                                       double **inputs, bool emulated, struct arena *a,
                                       const char **agreed) {
  struct stage stages[4 + EMU_RUNS] = {{.what = "as traced", .m = v->traced}};
  uint32_t n = 1;
  const char *why = NULL;
  enum kiln_status st = KILN_OK;
  if (v->traced->stage == IR_TILE_STAGE) {
    stages[n++] = (struct stage){.what = "after the tile passes", .m = v->tile};
    stages[n++] = (struct stage){.what = "with loops cut and merged", .m = v->tile, .cut = true};
    st = schedule(v, a, &stages[n].m, &why);
    stages[n].what = "as scheduled";
    n += stages[n].m != NULL;
  } else { /* nothing that could be done to it: the order of the grid is left */
    stages[n++] = (struct stage){.what = "in another order of the grid", .m = v->traced};
  }
  static const char *const emulations[EMU_RUNS] = {
      "on the emulator, early", "on the emulator, late", "on the emulator, reversed",
      "on the emulator, by seed", "on the emulator, by another seed"};
  for (uint32_t run = 0; run < EMU_RUNS && emulated; run++)
    stages[n++] = (struct stage){.what = emulations[run], .m = v->machine, .emu = true, .run = run};
  for (uint32_t k = 0; k < n && st == KILN_OK; k++)
    st = run_stage(p, inputs, a, k ? p->seed + 1 : 0, &stages[k]);
  if (st != KILN_OK)
    return st;
  for (uint32_t k = 1; k < n; k++)
    for (uint32_t i = 0; i < p->n_args; i++)
      if (stages[0].out[i] && !compare(p, i, &stages[0], &stages[k], a))
        st = KILN_WRONG;
  struct strbuf b = {.arena = a};
  for (uint32_t k = 0; k < n; k++)
    sb_printf(&b, "%s%s", k == 0 ? "" : k + 1 == n ? " and " : ", ", stages[k].what);
  if (why)
    sb_printf(&b, " (not scheduled: %s)", why);
  *agreed = st == KILN_OK ? sb_str(&b) : "";
  return st;
}
