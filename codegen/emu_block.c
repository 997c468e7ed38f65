/* Emulator: the block and its cluster: where a thread is, named barriers, barriers of clusters,
 * memory of other blocks, registers of warpgroups. */
#include "codegen/emu_async.h"

#include "base/str.h"

#include <string.h>

static const char *op_name(const struct emu_insn *i) {
  return ir_info(i->n->opcode)->name;
}

static void give_int(struct emu_agent *a, const struct emu_insn *i, int64_t v) {
  int64_t *o = emu_cells(a, i->out[0]);
  for (uint32_t l = 0; l < EMU_LANES; l++)
    o[l] = v;
}

void emu_warpgroup_id(struct emu_agent *a, const struct emu_insn *i) {
  give_int(a, i, a->warp / 4);
}

void emu_cluster_rank(struct emu_agent *a, const struct emu_insn *i) {
  give_int(a, i, a->cta->rank);
}

void emu_grid_size(struct emu_agent *a, const struct emu_insn *i) {
  give_int(a, i, (int64_t)a->unit->e->grid);
}

/* Roles take the warps in the order of the module's list. */
void emu_in_role(struct emu_agent *a, const struct emu_insn *i) {
  const struct ir_module *m = a->unit->e->m;
  const struct ir_attr *name = ir_get_attr(m, i->op, IR_ATTR_role);
  uint32_t role = 0, first = 0;
  if (!name || !ir_find_role(m, name->s, &role))
    return;
  for (uint32_t r = 0; r < role; r++)
    first += m->roles.at[r].warps;
  bool in = a->warp >= first && a->warp - first < m->roles.at[role].warps;
  memset(emu_cells(a, i->out[0]), in, EMU_LANES);
}

/* ---- named barriers ---- */

/* Barrier id of the op; false after an error. */
static bool bar_id(struct emu_agent *a, const struct emu_insn *i, uint32_t *id) {
  int64_t index = 0, count = ir_res_int(i->res[0], IR_ATTR_count, 1);
  if (!emu_need_all(a, i) || (i->n->n_in && !emu_uniform(a, i, 0, &index)))
    return false;
  *id = (uint32_t)(ir_res_int(i->res[0], IR_ATTR_id, 0) + index);
  if (index >= 0 && index < count && *id < EMU_BARRIERS)
    return true;
  emu_fail(a, i, EMU_NO_LANE, DIAG_MACHINE_ACCESS, "'%s' of barrier %lld of '%s', which has %lld",
           op_name(i), (long long)index, ir_sym(a->unit->e->m, i->res[0]->name), (long long)count);
  return false;
}

void emu_bar_op(struct emu_agent *a, const struct emu_insn *i) {
  uint32_t id, threads = (uint32_t)ir_res_int(i->res[0], IR_ATTR_threads, 0);
  if (!bar_id(a, i, &id))
    return;
  if (i->n->opcode == IR_BAR_ARRIVE)
    emu_bar_arrive(a, id, threads);
  else
    emu_bar_sync(a, id, threads);
}

/* ---- clusters ---- */

void emu_cluster_arrive(struct emu_agent *a, const struct emu_insn *i) {
  const struct emu *e = a->unit->e;
  struct emu_cluster_bar *b = a->unit->cluster_bar;
  const struct ir_attr *sem = ir_get_attr(e->m, i->op, IR_ATTR_sem);
  if (!emu_need_all(a, i))
    return;
  if (a->async->cluster_phase > b->phase) {
    emu_fail(a, i, EMU_NO_LANE, DIAG_MACHINE_RACE,
             "'%s' before the warp has waited for its last one", op_name(i));
    return;
  }
  a->async->cluster_phase = b->phase + 1;
  if (sem && str_eq(ir_sym(e->m, sem->s), "relaxed"))
    emu_release_order(a, b->clock);
  else
    emu_release(a, b->clock);
  if (++b->arrived < e->cluster * e->warps)
    return;
  b->arrived = 0;
  b->phase++;
  memcpy(b->done, b->clock, EMU_CLOCKS(e) * sizeof *b->done);
  memset(b->clock, 0, EMU_CLOCKS(e) * sizeof *b->clock);
  for (uint32_t c = 0; c < e->cluster; c++)
    emu_wake_waiting(&a->unit->cta[c], b);
}

void emu_cluster_wait(struct emu_agent *a, const struct emu_insn *i) {
  struct emu_cluster_bar *b = a->unit->cluster_bar;
  if (!emu_need_all(a, i))
    return;
  if (!a->async->cluster_phase) {
    emu_fail(a, i, EMU_NO_LANE, DIAG_MACHINE_RACE, "'%s' without a cluster_arrive before it",
             op_name(i));
    return;
  }
  if (b->phase < a->async->cluster_phase) {
    EMU_WAIT_ON(a, b, "the barrier of its cluster");
    return;
  }
  a->async->cluster_phase = 0;
  emu_acquire(a, b->done);
}

struct emu_cta *emu_other_block(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                                int64_t rank) {
  const struct emu *e = a->unit->e;
  if (rank < 0 || rank >= e->cluster) {
    emu_fail(a, i, lane, DIAG_MACHINE_ACCESS, "'%s' at block %lld of a cluster of %u", op_name(i),
             (long long)rank, e->cluster);
    return NULL;
  }
  if (!emu_has_ended(&a->unit->cta[rank]))
    return &a->unit->cta[rank];
  emu_fail(a, i, lane, DIAG_MACHINE_ACCESS, "'%s' at block %lld of the cluster, which has ended",
           op_name(i), (long long)rank);
  return NULL;
}

/* ---- launches ---- */

/* What those lanes do from here on comes after the kernels before this one. */
void emu_pdl_wait(struct emu_agent *a, const struct emu_insn *i) {
  (void)i;
  a->waited |= a->active;
  EMU_WAITED(a->unit->e, a->clock) |= a->waited == EMU_ALL;
}

/* ---- registers ---- */

/* What ptxas may give each thread of a block of so many warps. */
static uint32_t entry_regs(uint32_t warps) {
  uint32_t n = 16384 / (32 * ((warps + 3) / 4)) / 8 * 8;
  return n < 255 ? n : 255;
}

void emu_start_regs(struct emu_cta *cta, uint32_t warps) {
  cta->free_regs = 0;
  for (uint32_t w = 0; w < warps; w++)
    cta->warp[w].async->regs = entry_regs(warps);
}

/* A warp that gets more waits until others have given enough back. */
void emu_set_regs(struct emu_agent *a, const struct emu_insn *i) {
  const struct ir_module *m = a->unit->e->m;
  uint32_t count = (uint32_t)ir_attr_int(m, i->op, IR_ATTR_count, 0), *have = &a->async->regs;
  bool up = ir_attr_int(m, i->op, IR_ATTR_up, 0) != 0;
  if (!emu_need_all(a, i))
    return;
  if (up ? count < *have : count > *have) {
    emu_fail(a, i, EMU_NO_LANE, DIAG_OPERAND, "'%s' %s to %u registers of a warp that has %u",
             op_name(i), up ? "up" : "down", count, *have);
    return;
  }
  if (up && count - *have > a->cta->free_regs) {
    EMU_WAIT_ON(a, &a->cta->free_regs, "registers");
    return;
  }
  a->cta->free_regs += *have - count; /* wraps as it should where count is the larger */
  *have = count;
  emu_wake_waiting(a->cta, &a->cta->free_regs);
}
