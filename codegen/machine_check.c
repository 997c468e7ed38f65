/* Can a machine text be compiled for its target at all? Texts come from people as well as from the
 * lowering, which keeps every limit by itself; this says no before NVRTC does, at the line. */
#include "codegen/pass.h"

static const uint32_t needs[IR_OPCODE_COUNT] = {
#define NEEDS(op, feature) [IR_##op] = CG_##feature,
#include "codegen/needs.def"
};

/* "sm_90, sm_90a": the targets that have the features. */
static const char *targets_with(struct arena *a, uint32_t features) {
  struct strbuf b = {.arena = a};
  for (uint32_t i = 0; i < cg_target_count(); i++)
    if ((cg_target_at(i)->features & features) == features)
      sb_printf(&b, "%s%s", b.n ? ", " : "", cg_target_at(i)->name);
  return sb_str(&b);
}

bool cg_check_machine(const struct ir_module *m, struct diag_sink *diags) {
  const struct cg_target *t = cg_target_of(m);
  struct arena_mark mark = arena_get_mark(m->arena);
  bool ok = true;
  for (uint32_t i = 1; i < m->ops.n; i++) {
    const struct ir_opnode *n = ir_op_at(m, (struct ir_op){i});
    uint32_t want = needs[n->opcode];
    if (!n->block.id || (t->features & want) == want)
      continue;
    cg_error(m, diags, (struct ir_op){i}, DIAG_LOWER_UNSUPPORTED,
             "%s: %s has no such unit; %s have", ir_info(n->opcode)->name, t->name,
             targets_with(m->arena, want));
    ok = false;
  }
  for (uint32_t i = 0; m->recipe && i < m->recipe->steps.n; i++) {
    const struct recipe_step *s = &m->recipe->steps.at[i];
    uint32_t cluster = s->cluster[0] * s->cluster[1] * s->cluster[2];
    if (s->kind != RECIPE_KERNEL)
      continue;
    if (s->smem_bytes > t->smem_per_block)
      diag_report(diags, DIAG_ERROR, DIAG_LIMIT, m->at.kernel,
                  "the launch has %u bytes of shared memory, %s has %u for a block", s->smem_bytes,
                  t->name, t->smem_per_block);
    if (cluster > 1 && !(t->features & CG_TMA))
      diag_report(diags, DIAG_ERROR, DIAG_LOWER_UNSUPPORTED, m->at.kernel,
                  "the launch has clusters of %u blocks; %s has none", cluster, t->name);
    ok = ok && s->smem_bytes <= t->smem_per_block && (cluster <= 1 || (t->features & CG_TMA));
  }
  arena_reset(m->arena, mark);
  return ok;
}
