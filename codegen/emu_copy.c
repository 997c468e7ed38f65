/* Emulator: cp.async. A copy is on its way from its instruction to the wait for its group; nobody
 * may touch the bytes it goes to in between. When it lands, at once or at the wait, is the mode's
 * to say; the bytes are poison until then. Groups are the warp's: threads of a warp that commit and
 * wait apart are an error. */
#include "codegen/emu_impl.h"

#include <string.h>

static bool lands_at_once(struct emu_unit *u) {
  enum emu_mode mode = u->e->opt->mode;
  return mode == EMU_EARLY || (mode == EMU_SEEDED && (emu_random(u) & 1));
}

static void poison(struct emu_agent *a, const struct emu_copy *c) {
  const struct emu_plan *plan = &a->unit->e->plan;
  memset(a->cta->smem + c->to, 0xff, c->bytes);
  for (uint32_t k = c->to / plan->unit; a->cta->payload && k < (c->to + c->bytes) / plan->unit; k++)
    a->cta->payload[k] = INTERP_NAN;
}

/* Bytes move as they are; payloads one per element. */
static void move(struct emu_agent *a, const struct emu_copy *c) {
  const struct emu *e = a->unit->e;
  enum dtype t = (enum dtype)c->by->res[0]->type.dtype;
  uint32_t size = emu_bytes(t);
  bool payload = emu_cell(e, t) == CELL_PAYLOAD;
  char *to = payload ? (char *)(a->cta->payload + c->to / e->plan.unit) : a->cta->smem + c->to;
  if (!payload) {
    if (c->valid)
      memcpy(to, c->from.at, c->valid);
    memset(to + c->valid, 0, c->bytes - c->valid);
    return;
  }
  for (uint32_t k = 0; k < c->bytes / size; k++) {
    int64_t x = 0;
    if (k * size < c->valid)
      memcpy(&x, c->from.at + k * c->from.step * 8, 8);
    ((int64_t *)to)[k * (size / e->plan.unit)] = x;
  }
}

/* The bytes that are read: the first `valid` ones, element by element, as no tensor's end need be
 * aligned to the copy. */
static bool find_source(struct emu_agent *a, uint64_t va, struct emu_copy *c) {
  const struct emu_insn *i = c->by;
  enum dtype t = (enum dtype)i->res[0]->type.dtype;
  uint32_t size = emu_bytes(t), elem = emu_cell(a->unit->e, t) == CELL_PAYLOAD ? size : 0;
  if (c->valid && va % c->bytes) {
    emu_fail(a, i, c->lane, DIAG_MACHINE_ACCESS,
             "'cp_async' of %u bytes from an address that is not a multiple of %u", c->bytes,
             c->bytes);
    return false;
  }
  for (uint32_t b = 0; b < c->valid; b += size) {
    struct emu_ref r = emu_touch_global(a, i, c->lane, EMU_READ, va + b, size, elem);
    if (!r.at)
      return false;
    if (b == 0)
      c->from = r;
  }
  return true;
}

void emu_cp_async(struct emu_agent *a, const struct emu_insn *i) {
  const int64_t *ptr = emu_in_int(a, i, 0), *offset = emu_in_int(a, i, 1);
  const int64_t *valid = emu_in_int(a, i, 2);
  uint32_t on = emu_lanes(emu_in_bool(a, i, 3), a->active), bytes = (uint32_t)i->imm;
  int64_t address[EMU_LANES], size = emu_bytes((enum dtype)i->res[0]->type.dtype);
  if (!emu_need(a, i, 3, a->active))
    return;
  for (uint32_t k = 0; k < 3; k++)
    if (!emu_need(a, i, k, on))
      return;
  EMU_EACH_LANE (l, on) {
    struct emu_copy c = {.bytes = bytes, .lane = l, .group = a->group, .by = i};
    if ((address[l] = emu_buffer(a, i, l, i->res[0], offset[l], bytes)) < 0)
      return;
    if (valid[l] < 0 || valid[l] * size > bytes) {
      emu_fail(a, i, l, DIAG_MACHINE_ACCESS, "'cp_async' of %u bytes, of which %lld are valid",
               bytes, (long long)(valid[l] * size));
      return;
    }
    if (address[l] % bytes || address[l] + bytes > a->unit->e->step->smem_bytes) {
      emu_fail(a, i, l, DIAG_MACHINE_ACCESS, "'cp_async' of %u bytes to %lld in shared memory",
               bytes, (long long)address[l]);
      return;
    }
    c.to = (uint32_t)address[l];
    c.valid = (uint32_t)(valid[l] * size);
    if (!find_source(a, (uint64_t)ptr[l], &c) || !emu_order_fly(a, i, l, EMU_GENERIC, c.to, bytes))
      return;
    c.landed = lands_at_once(a->unit);
    if (c.landed)
      move(a, &c);
    else
      poison(a, &c);
    VEC_PUSH(a->unit->arena, &a->copies, c);
  }
  emu_count_banks(a, &a->unit->stats.copy, address, on, bytes);
}

void emu_pipe_commit(struct emu_agent *a, const struct emu_insn *i) {
  if (emu_need_all(a, i))
    a->group++;
}

void emu_pipe_wait(struct emu_agent *a, const struct emu_insn *i) {
  uint32_t kept = 0, open = (uint32_t)i->imm;
  if (!emu_need_all(a, i))
    return;
  for (uint32_t k = 0; k < a->copies.n; k++) {
    struct emu_copy *c = &a->copies.at[k];
    if (c->group + open >= a->group) {
      a->copies.at[kept++] = *c;
      continue;
    }
    if (!c->landed)
      move(a, c);
    emu_order_land(a, c->by, c->lane, EMU_GENERIC, c->to, c->bytes);
  }
  a->copies.n = kept;
}
