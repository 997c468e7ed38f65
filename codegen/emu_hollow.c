/* Emulator: hollow values, as a memory checker follows them. A read of shared memory that nothing
 * has written is no error yet: padding of a tile is read like the rest, and what comes of it is
 * dropped. It is one where something depends on it. */
#include "codegen/emu_impl.h"

void emu_set_hollow(struct emu_agent *a, const struct emu_insn *i, emu_slot p, uint32_t lanes) {
  a->hollow[p] = a->unit->e->skeleton ? 0 : lanes;
  if (!a->hollow[p] || a->any_hollow)
    return;
  a->any_hollow = true;
  a->hollow_op = i->op.id;
}

/* The chosen side counts, and the choice itself. */
static uint32_t of_select(struct emu_agent *a, const struct emu_insn *i) {
  uint32_t taken = emu_lanes(emu_in_bool(a, i, 0), EMU_ALL);
  return emu_hollow(a, i->in[0]) | (emu_hollow(a, i->in[1]) & taken) |
         (emu_hollow(a, i->in[2]) & ~taken);
}

static uint32_t of_shuffle(struct emu_agent *a, const struct emu_insn *i) {
  uint32_t from = emu_hollow(a, i->in[0]), lanes = 0;
  for (uint32_t l = 0; l < EMU_LANES; l++)
    lanes |= (from >> (l ^ (uint32_t)i->imm) & 1) << l;
  return lanes;
}

void emu_follow(struct emu_agent *a, const struct emu_insn *i) {
  uint32_t lanes = 0;
  if (i->n->opcode == IR_SELECT) {
    lanes = of_select(a, i);
  } else if (i->n->opcode == IR_SHUFFLE) {
    lanes = of_shuffle(a, i);
  } else {
    for (uint32_t k = 0; k < i->n->n_in; k++)
      lanes |= emu_hollow(a, i->in[k]);
  }
  for (uint32_t k = 0; k < i->n->n_out; k++)
    a->hollow[i->out[k]] = lanes;
}

bool emu_need(struct emu_agent *a, const struct emu_insn *i, uint32_t k, uint32_t lanes) {
  uint32_t wrong = a->any_hollow ? emu_hollow(a, i->in[k]) & lanes : 0;
  if (!wrong)
    return true;
  const char *from = ir_info(ir_op_at(a->unit->e->m, (struct ir_op){a->hollow_op})->opcode)->name;
  emu_fail(a, i, (uint32_t)__builtin_ctz(wrong), DIAG_UNWRITTEN,
           "operand %u of '%s' comes from shared memory that nothing has written", k + 1,
           ir_info(i->n->opcode)->name);
  emu_also(a, a->hollow_op, "the warp first read such memory in this '%s'", from);
  return false;
}

void emu_store_hollow(struct emu_agent *a, uint32_t address, uint32_t bytes) {
  uint32_t size = a->unit->e->plan.granule;
  for (uint32_t b = address; b < address + bytes; b++)
    a->cta->granule[b / size].hollow |= (uint16_t)(1u << b % size);
}
