/* Emulator: the tensor memory unit. Boxes move in pieces of 16 bytes, laid out by emu_smem.c. */
#include "codegen/emu_async.h"

#include <string.h>

static const char *op_name(const struct emu_insn *i) {
  return ir_info(i->n->opcode)->name;
}

/* Does the box's type lie in memory as payloads? */
static bool is_payload(const struct emu_agent *a, const struct ir_res *buf) {
  return emu_cell(a->unit->e, (enum dtype)buf->type.dtype) == CELL_PAYLOAD;
}

/* Offset (operand 0) and coordinates of a box; its address in shared memory, -1 after an error. */
static int64_t box_at(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                      const struct ir_res *buf, const struct emu_tmap *t, int32_t *coord) {
  for (uint32_t k = 0; k < i->n->n_in; k++)
    if (!emu_need(a, i, k, 1u << lane))
      return -1;
  for (uint32_t d = 0; d < t->rank; d++)
    coord[d] = (int32_t)emu_in_int(a, i, 1 + d)[lane];
  const char *illegal = emu_tmap_refuse_coord(t, coord, i->n->opcode == IR_TMA_STORE);
  if (illegal) {
    emu_fail(a, i, lane, DIAG_MACHINE_ACCESS,
             "'%s' at coordinate %d, %d is an illegal instruction: %s", op_name(i), coord[0],
             coord[1], illegal);
    return -1;
  }
  int64_t address =
      emu_buffer(a, i, lane, buf, emu_in_int(a, i, 0)[lane], emu_tmap_shared_bytes(t));
  if (address < 0)
    return -1;
  const char *why = emu_tmap_refuse_shared(t, (uint32_t)address);
  if (address + emu_tmap_shared_bytes(t) > a->unit->e->step->smem_bytes)
    why = "the box ends behind the block's shared memory";
  if (!why)
    return address;
  emu_fail(a, i, lane, DIAG_MACHINE_ACCESS, "'%s' at %lld in shared memory: %s", op_name(i),
           (long long)address, why);
  return -1;
}

/* ---- loads ---- */

static void poison(struct emu_agent *a, uint32_t at, uint32_t bytes) {
  const struct emu_plan *plan = &a->unit->e->plan;
  memset(a->cta->smem + at, 0xff, bytes);
  for (uint32_t k = at / plan->unit; a->cta->payload && k < (at + bytes) / plan->unit; k++)
    a->cta->payload[k] = INTERP_NAN;
}

/* The blocks of the cluster that get the box. */
static bool destinations(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                         uint32_t *mask) {
  const struct emu *e = a->unit->e;
  *mask = 1u << a->cta->rank;
  if (!ir_attr_int(e->m, i->op, IR_ATTR_multicast, 0))
    return true;
  int64_t asked = emu_in_int(a, i, i->n->n_in - 1u)[lane];
  *mask = (uint32_t)asked;
  if (asked > 0 && asked >> e->cluster == 0)
    return true;
  emu_fail(a, i, lane, DIAG_MACHINE_ACCESS, "'%s' to the blocks of mask %#llx of a cluster of %u",
           op_name(i), (long long)asked, e->cluster);
  return false;
}

void emu_tma_load(struct emu_agent *a, const struct emu_insn *i) {
  const struct emu *e = a->unit->e;
  const struct emu_tmap *t = &e->async->tmap[i->n->res[2]];
  int32_t coord[EMU_TMAP_RANK] = {0};
  uint32_t lane, slot, use, mask, bytes = emu_tmap_shared_bytes(t);
  if (!emu_one_lane(a, i, &lane) || !emu_cursor_at(a, i, 1, 0, &slot, &use) ||
      !destinations(a, i, lane, &mask))
    return;
  int64_t address = box_at(a, i, lane, i->res[0], t, coord);
  for (uint32_t c = 0; c < e->cluster && address >= 0; c++) {
    if (!(mask >> c & 1))
      continue;
    struct emu_agent *by = emu_slot_agent(&a->unit->cta[c], slot);
    struct emu_work *w = emu_new_work(a, i, lane);
    w->time = use + 1;
    w->address = (uint32_t)address;
    memcpy(w->coord, coord, sizeof coord);
    emu_become(by, w);
    if (!emu_order_fly(by, i, EMU_NO_LANE, EMU_ASYNC, w->address, bytes))
      return;
    if (!e->skeleton)
      poison(by, w->address, bytes);
    emu_issue(by, w);
  }
  emu_tick(a);
}

/* Of a skeleton: no values move, and no address can be wrong. */
static bool is_lean(const struct emu_agent *a, const struct emu_tmap *t) {
  const struct emu *e = a->unit->e;
  return e->skeleton && t->legal && (!e->step->pdl || EMU_WAITED(e, a->clock));
}

/* What the unit makes of f32 elements under a map that rounds. */
static void round_tf32(char *at, uint32_t bytes) {
  for (uint32_t b = 0; b < bytes; b += 4) {
    uint32_t x;
    memcpy(&x, at + b, 4);
    x = emu_tmap_tf32(x);
    memcpy(at + b, &x, 4);
  }
}

/* One element from the tensor to shared memory; NULL: what lies outside. */
static void put_element(struct emu_agent *a, bool payload, uint32_t at, const char *from,
                        uint32_t bytes) {
  static const char zero[8];
  if (payload)
    memcpy(a->cta->payload + at / a->unit->e->plan.unit, from ? from : zero, 8);
  else
    memcpy(a->cta->smem + at, from ? from : zero, bytes);
}

/* A piece that lies inside and is aligned moves at once, others by elements. */
static bool load_piece(struct emu_agent *a, const struct emu_insn *i, const struct emu_tmap *t,
                       const struct emu_piece *p, bool payload) {
  if (!payload && p->first == 0 && p->last == 16 && p->global % 16 == 0) {
    struct emu_ref r = emu_touch_global(a, i, EMU_NO_LANE, EMU_READ, p->global, 16, 0);
    if (r.at)
      memcpy(a->cta->smem + p->shared, r.at, 16);
    if (r.at && t->tf32)
      round_tf32((char *)a->cta->smem + p->shared, 16);
    return r.at != NULL;
  }
  for (uint32_t b = 0; b < 16; b += t->bytes) {
    struct emu_ref r = {0};
    if (b >= p->first && b < p->last) {
      r = emu_touch_global(a, i, EMU_NO_LANE, EMU_READ, p->global + (b - p->first), t->bytes,
                           payload ? t->bytes : 0);
      if (!r.at)
        return false;
    }
    put_element(a, payload, p->shared + b, r.at, t->bytes);
    if (t->tf32 && !payload)
      round_tf32((char *)a->cta->smem + p->shared + b, 4);
  }
  return true;
}

static void load(struct emu_agent *a, const struct emu_work *w) {
  const struct emu *e = a->unit->e;
  const struct emu_insn *i = w->by;
  const struct emu_tmap *t = &e->async->tmap[i->n->res[2]];
  bool payload = is_payload(a, i->res[0]);
  emu_become(a, w);
  if (emu_has_ended(a->cta)) {
    emu_fail(a, i, EMU_NO_LANE, DIAG_MACHINE_ACCESS,
             "the block has ended while a box was on its way into its shared memory");
    return;
  }
  for (uint32_t k = 0; k < emu_tmap_box_bytes(t) / 16 && !is_lean(a, t); k++) {
    struct emu_piece p = emu_tmap_piece(t, w->address, w->coord, k);
    if (!load_piece(a, i, t, &p, payload))
      return;
  }
  emu_order_land(a, i, EMU_NO_LANE, EMU_ASYNC, w->address, emu_tmap_shared_bytes(t));
  emu_bytes_came(a, w, (uint32_t)(a - a->cta->unit), emu_tmap_box_bytes(t));
}

static struct emu_work *next_work(struct emu_agent *a) {
  struct emu_work *w = a->first;
  a->first = w ? w->next : NULL;
  if (!a->first) {
    a->last = NULL;
    a->state = EMU_DONE;
  }
  return w;
}

void emu_run_loads(struct emu_agent *a, uint32_t budget) {
  struct emu_work *w;
  for (; budget && !a->unit->stopped && (w = next_work(a)); budget--) {
    load(a, w);
    emu_free_work(a->unit, w);
  }
}

/* ---- stores ---- */

void emu_tma_store(struct emu_agent *a, const struct emu_insn *i) {
  const struct emu_tmap *t = &a->unit->e->async->tmap[i->n->res[0]];
  struct emu_async_warp *x = a->async;
  struct emu_agent *by = emu_store_agent(a);
  uint32_t lane;
  int32_t coord[EMU_TMAP_RANK] = {0};
  if (!emu_one_lane(a, i, &lane))
    return;
  int64_t address = box_at(a, i, lane, i->res[1], t, coord);
  if (address < 0)
    return;
  if (x->store_lane && x->store_lane != lane + 1) {
    emu_fail(a, i, lane, DIAG_DIVERGED,
             "the emulator follows the stores of one thread of a warp, and thread %u has stored",
             a->warp * EMU_LANES + x->store_lane - 1);
    return;
  }
  x->store_lane = lane + 1;
  x->store_last = x->store_group;
  struct emu_work *w = emu_new_work(a, i, lane);
  w->time = x->store_group;
  w->address = (uint32_t)address;
  memcpy(w->coord, coord, sizeof coord);
  emu_tick(a);
  emu_issue(by, w);
}

/* to += from, rounded to the element's dtype. */
static void add_element(struct emu_agent *a, enum dtype t, char *to, const char *from) {
  enum cell c = emu_cell(a->unit->e, t);
  int64_t x[2] = {0}, sum = 0;
  interp_load_cells(t, c, to, 0, 1, 1, &x[0]);
  interp_load_cells(t, c, from, 0, 1, 1, &x[1]);
  cells_elem(a->unit->e->opt->domain, IR_ADD, t, t, 1, &x[0], &x[1], NULL, &sum);
  interp_store_cells(t, c, to, 0, 1, 1, &sum);
}

static bool store_piece(struct emu_agent *a, const struct emu_insn *i, const struct emu_tmap *t,
                        const struct emu_piece *p, bool add) {
  enum dtype type = (enum dtype)i->res[1]->type.dtype;
  bool payload = is_payload(a, i->res[1]);
  struct emu_ref from = emu_touch_shared(a, i, EMU_NO_LANE, EMU_ASYNC, EMU_READ, p->shared, 16,
                                         payload ? t->bytes : 0);
  if (!from.at)
    return false;
  if (p->stored > p->last) {
    emu_fail(
        a, i, EMU_NO_LANE, DIAG_MACHINE_ACCESS,
        "'%s' writes %u bytes past the end of the tensor's innermost dim: units of 16 bytes are "
        "written whole, and the dim has %llu bytes",
        op_name(i), (unsigned)(p->stored - p->last), (unsigned long long)(t->dim[0] * t->bytes));
    return false;
  }
  bool lean = is_lean(a, t) && t->writable;
  for (uint32_t b = p->first; b < p->last; b += t->bytes) {
    if (from.hollow >> b & ((1u << t->bytes) - 1)) {
      emu_fail(a, i, EMU_NO_LANE, DIAG_UNWRITTEN,
               "'%s' stores byte %u of shared memory, which nothing has written", op_name(i),
               p->shared + b);
      return false;
    }
    if (lean)
      continue;
    struct emu_ref to =
        emu_touch_global(a, i, EMU_NO_LANE, add ? EMU_ATOMIC : EMU_WRITE,
                         p->global + (b - p->first), t->bytes, payload ? t->bytes : 0);
    if (!to.at)
      return false;
    const char *x = payload ? from.at + (int64_t)(b / t->bytes) * from.step * 8 : from.at + b;
    if (add)
      add_element(a, type, to.at, x);
    else
      memcpy(to.at, x, payload ? 8 : t->bytes);
  }
  return true;
}

static void store(struct emu_agent *a, const struct emu_work *w) {
  const struct emu *e = a->unit->e;
  const struct emu_insn *i = w->by;
  const struct emu_tmap *t = &e->async->tmap[i->n->res[0]];
  bool add = ir_get_attr(e->m, i->op, IR_ATTR_reduce) != NULL;
  emu_become(a, w);
  for (uint32_t k = 0; k < emu_tmap_box_bytes(t) / 16; k++) {
    struct emu_piece p = emu_tmap_piece(t, w->address, w->coord, k);
    if (!store_piece(a, i, t, &p, add))
      return;
  }
}

void emu_run_stores(struct emu_agent *a, uint32_t budget) {
  struct emu_work *w;
  for (; budget && !a->unit->stopped && (w = next_work(a)); budget--) {
    store(a, w);
    emu_free_work(a->unit, w);
  }
  emu_wake_waiting(a->cta, a);
}

/* Is the lane that stores among the active ones? Others have no groups. */
static bool is_storing(const struct emu_agent *a) {
  return a->async->store_lane && (a->active >> (a->async->store_lane - 1) & 1);
}

void emu_bulk_commit(struct emu_agent *a, const struct emu_insn *i) {
  (void)i;
  if (is_storing(a))
    a->async->store_group++;
}

void emu_bulk_wait(struct emu_agent *a, const struct emu_insn *i) {
  const struct emu *e = a->unit->e;
  uint32_t pending = (uint32_t)ir_attr_int(e->m, i->op, IR_ATTR_pending, 0);
  if (!is_storing(a) || a->async->store_group - 1 <= pending)
    return;
  uint32_t target = a->async->store_group - 1 - pending;
  struct emu_agent *by = emu_store_agent(a);
  if (by->first && by->first->time <= target) {
    EMU_WAIT_ON(a, by, "its stores");
    return;
  }
  uint32_t *over = EMU_ORDER(e, a->clock);
  over[by->id] = over[by->id] > target ? over[by->id] : target;
  a->async->store_read = a->async->store_read > target ? a->async->store_read : target;
  if (!ir_attr_int(e->m, i->op, IR_ATTR_read, 0))
    a->clock[by->id] = a->clock[by->id] > target ? a->clock[by->id] : target;
}

bool emu_stores_end(struct emu_agent *a) {
  const struct emu_async_warp *x = a->async;
  if (x->store_read >= x->store_last)
    return true;
  emu_fail(a, a->at, EMU_NO_LANE, DIAG_MACHINE_ACCESS,
           "the warp ends while its stores may still read the block's shared memory: it has waited "
           "for groups up to %u of %u",
           x->store_read, x->store_last);
  return false;
}
