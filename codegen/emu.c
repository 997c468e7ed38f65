/* The emulator's frame; see emu.h. */
#include "codegen/emu_impl.h"

#include "base/check.h"

struct run {
  struct emu e;
  struct emu_unit u;
  struct emu_stats *stats;
  struct diag_sink *diags;
  uint32_t n_args;
  bool ok;
};

static void run(void *user) {
  struct run *r = user;
  const struct ir_module *m = r->e.m;
  if (r->n_args != m->args.n && r->n_args != ir_given_args(m)) {
    diag_report(r->diags, DIAG_ERROR, DIAG_SHAPE_BINDING, DIAG_NOWHERE,
                "kernel '%s' takes %u arguments, found %u", ir_sym(m, m->kernel), m->args.n,
                r->n_args);
    return;
  }
  r->u.e = &r->e;
  r->u.diags = r->diags;
  r->e.skeleton = r->e.opt->skeleton;
  r->e.serial = r->e.skeleton;
  r->e.counts = r->stats != NULL;
  r->e.zeros = ARENA_ARRAY(r->u.arena, char, 2 * EMU_SLOT);
  if (!emu_bind(&r->e, r->u.arena, r->diags) || !emu_make_plan(&r->e, r->u.arena, r->diags))
    return;
  r->ok = emu_run_grid(&r->e, &r->u);
  if (r->stats)
    *r->stats = r->u.stats;
}

bool emu_run(const struct ir_module *m, const struct interp_arg *args, uint32_t n_args,
             const struct emu_options *opt, struct emu_stats *stats, struct diag_sink *diags,
             const struct mem_alloc *mem) {
  KILN_ASSERT(m->stage == IR_MACHINE_STAGE && m->recipe && opt->domain != INTERP_DOUBLE &&
              (!opt->skeleton || opt->domain == INTERP_ROUNDED));
  struct arena arena;
  arena_init(&arena, mem, NULL);
  struct run r = {.e = {.m = m, .opt = opt, .args = args},
                  .u = {.arena = &arena},
                  .stats = stats,
                  .diags = diags,
                  .n_args = n_args};
  if (!arena_guard(&arena, run, &r)) {
    diag_report(diags, DIAG_ERROR, DIAG_NO_MEMORY, DIAG_NOWHERE,
                "out of memory while emulating kernel '%s'", ir_sym(m, m->kernel));
    r.ok = false;
  }
  arena_free(&arena);
  return r.ok;
}
