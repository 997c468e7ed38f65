/* cg_lower: copies the tile module, writes target and knobs into it, runs the pipeline. */
#include "codegen/pass.h"
#include "codegen/schedule.h"

/* Element types the target cannot hold or convert: one error each, at the first op that makes
 * one. */
static bool check_types(const struct ir_module *m, const struct cg_target *t,
                        struct diag_sink *diags) {
  bool said[DT_COUNT] = {false}, ok = true;
  for (uint32_t i = 1; i < m->values.n; i++) {
    const struct ir_value *v = &m->values.at[i];
    enum dtype d = (enum dtype)v->type.dtype;
    bool fp8 = d == DT_E4M3 || d == DT_E5M2;
    if (said[d] || !((dtype_bits(d) < 8) || (fp8 && !(t->features & CG_FP8_MMA))))
      continue;
    said[d] = true;
    ok = false;
    if (fp8)
      cg_error(m, diags, v->def, DIAG_LOWER_UNSUPPORTED, "%s needs sm_89 or newer, not %s",
               dtype_name(d), t->name);
    else
      cg_error(m, diags, v->def, DIAG_LOWER_UNSUPPORTED,
               "%s, two elements to a byte, is not lowered to the GPU yet; use s8 or u8",
               dtype_name(d));
  }
  return ok;
}

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
  if (!check_types(tile, opt->target, diags))
    return NULL;
  struct ir_module *m = ir_clone(tile, a);
  m->target = symtab_get(m->syms, opt->target->name);
  for (unsigned k = 0; k < CG_KNOB_COUNT; k++)
    if (opt->schedule.knob[k] != CG_AUTO)
      cg_knob_put(m, (enum cg_knob)k, opt->schedule.knob[k]);
  if (opt->stop == IR_SCHEDULED_STAGE)
    n = scheduled_passes(passes, n);
  return ir_run_passes(m, passes, n, diags, opt->run) ? m : NULL;
}
