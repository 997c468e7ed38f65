/* cg_lower: copies the tile module, writes target and knobs into it, runs the pipeline. */
#include "codegen/cg.h"
#include "codegen/schedule.h"

/* Passes up to the one that makes machine IR. */
static uint32_t scheduled_passes(const struct ir_pass *p, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (str_eq(p[i].name, "lower_machine"))
      return i;
  return n;
}

struct ir_module *cg_lower(const struct ir_module *tile, const struct cg_options *opt,
                           struct arena *a, struct diag_sink *diags) {
  uint32_t n, features = CG_CP_ASYNC | CG_LDMATRIX;
  const struct ir_pass *passes = cg_pipeline(&n);
  if ((opt->target->features & features) != features) {
    diag_report(diags, DIAG_ERROR, DIAG_LOWER_UNSUPPORTED, DIAG_NOWHERE,
                "%s lacks cp.async and ldmatrix, which every kernel needs", opt->target->name);
    return NULL;
  }
  struct ir_module *m = ir_clone(tile, a);
  m->target = symtab_get(m->syms, opt->target->name);
  for (unsigned k = 0; k < CG_KNOB_COUNT; k++)
    if (opt->schedule.knob[k] != CG_AUTO)
      cg_knob_put(m, (enum cg_knob)k, opt->schedule.knob[k]);
  if (opt->stop == IR_SCHEDULED_STAGE)
    n = scheduled_passes(passes, n);
  return ir_run_passes(m, passes, n, diags, opt->run) ? m : NULL;
}
