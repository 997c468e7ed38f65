/* Emulator: memory. Every access comes through emu_touch_shared or emu_touch_global, which check
 * place, alignment and order, and say where the bytes are. */
#include "codegen/emu_impl.h"

#include <string.h>

static const char *verb(enum emu_kind kind) {
  return kind == EMU_READ ? "reads" : kind == EMU_WRITE ? "writes" : "changes";
}

static const char *op_name(const struct emu_insn *i) {
  return ir_info(i->n->opcode)->name;
}

/* ---- places ---- */

struct emu_ref emu_touch_shared(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                                enum emu_proxy proxy, enum emu_kind kind, int64_t address,
                                uint32_t bytes, uint32_t elem) {
  const struct emu *e = a->unit->e;
  struct emu_ref none = {0};
  if (address < 0 || address + bytes > e->step->smem_bytes) {
    emu_fail(a, i, lane, DIAG_MACHINE_ACCESS,
             "'%s' %s bytes %lld..%lld of shared memory, of which the block has %u", op_name(i),
             verb(kind), (long long)address, (long long)address + bytes - 1, e->step->smem_bytes);
    return none;
  }
  if (address % bytes) {
    emu_fail(a, i, lane, DIAG_MACHINE_ACCESS,
             "'%s' %s %u bytes of shared memory at %lld, which is not a multiple of %u", op_name(i),
             verb(kind), bytes, (long long)address, bytes);
    return none;
  }
  uint32_t hollow = 0;
  if (!emu_order_shared(a, i, lane, proxy, kind, (uint32_t)address, bytes, &hollow))
    return none;
  if (a->cta->payload && elem)
    return (struct emu_ref){(char *)(a->cta->payload + address / e->plan.unit), elem / e->plan.unit,
                            hollow};
  return (struct emu_ref){a->cta->smem + address, 1, hollow};
}

int64_t emu_buffer(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                   const struct ir_res *buf, int64_t offset, uint32_t bytes) {
  bool known = buf == i->buf;
  int64_t have = known ? i->buf_bytes : ir_res_int(buf, IR_ATTR_bytes, 0);
  if (offset >= 0 && offset + bytes <= have)
    return (known ? i->buf_at : ir_res_int(buf, IR_ATTR_offset, 0)) + offset;
  emu_fail(a, i, lane, DIAG_MACHINE_ACCESS,
           "'%s' of bytes %lld..%lld of buffer '%s', which has %lld", op_name(i), (long long)offset,
           (long long)offset + bytes - 1, ir_sym(a->unit->e->m, buf->name), (long long)have);
  return -1;
}

struct emu_ref emu_touch_global(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                                enum emu_kind kind, uint64_t va, uint32_t bytes, uint32_t elem) {
  const struct emu *e = a->unit->e;
  struct emu_ref none = {0};
  uint64_t k = (va + (UINT64_C(1) << (EMU_REGION_BITS - 1))) >> EMU_REGION_BITS;
  if (k == 0 || k > e->n_regions || !e->region[k - 1].va) {
    emu_fail(a, i, lane, DIAG_MACHINE_ACCESS, "'%s' %s memory through an address that is none",
             op_name(i), verb(kind));
    return none;
  }
  struct emu_region *r = &e->region[k - 1];
  int64_t at = (int64_t)(va - r->va);
  if (at < r->lo || at + bytes > r->hi) {
    emu_fail(a, i, lane, DIAG_MACHINE_ACCESS,
             "'%s' %s bytes %lld..%lld of '%s', whose memory is bytes %lld..%lld", op_name(i),
             verb(kind), (long long)at, (long long)at + bytes - 1, r->name, (long long)r->lo,
             (long long)r->hi - 1);
    return none;
  }
  if (va % bytes || at % r->size) {
    emu_fail(a, i, lane, DIAG_MACHINE_ACCESS,
             "'%s' %s %u bytes of '%s' at byte %lld, an address that is not a multiple of %u",
             op_name(i), verb(kind), bytes, r->name, (long long)at, bytes);
    return none;
  }
  if (kind != EMU_READ && !r->writable) {
    emu_fail(a, i, lane, DIAG_MACHINE_ACCESS, "'%s' %s '%s', which is an input", op_name(i),
             verb(kind), r->name);
    return none;
  }
  if (e->step->pdl && !emu_order_launches(a, i, lane, kind, r, at))
    return none;
  for (uint32_t b = 0; r->shadow && b < bytes; b += r->size)
    if (!emu_order_global(a, i, lane, kind, r, (at + b - r->lo) / r->size))
      return none;
  if (e->skeleton)
    return (struct emu_ref){e->zeros + (kind == EMU_READ ? 0 : EMU_SLOT), 1, 0};
  if (r->payload)
    return (struct emu_ref){r->data + at / r->size * 8, elem ? elem / r->size : 8, 0};
  return (struct emu_ref){r->data + at, 1, 0};
}

/* ---- banks ---- */

/* 32 banks of 4 bytes. Lanes go in groups that move 128 bytes; within one, different words of one
 * bank take a pass each. */
void emu_count_banks(struct emu_agent *a, struct emu_banks *banks, const int64_t *address,
                     uint32_t mask, uint32_t bytes) {
  uint32_t group = bytes <= 4 ? 32 : 128 / bytes, words = bytes < 4 ? 1 : bytes / 4;
  if (!a->unit->counting || !mask)
    return;
  for (uint32_t first = 0; first < EMU_LANES; first += group) {
    int64_t seen[32][32];
    uint32_t n[32] = {0}, most = 0;
    uint32_t lanes = mask & (group == 32 ? EMU_ALL : ((1u << group) - 1) << first);
    EMU_EACH_LANE (l, lanes)
      for (uint32_t w = 0; w < words; w++) {
        int64_t word = address[l] / 4 + w;
        uint32_t bank = (uint32_t)word % 32, k = 0;
        while (k < n[bank] && seen[bank][k] != word)
          k++;
        if (k == n[bank])
          seen[bank][n[bank]++] = word;
        most = n[bank] > most ? n[bank] : most;
      }
    banks->best += most != 0;
    banks->extra += most ? most - 1 : 0;
  }
}

/* ---- loads and stores ---- */

static size_t lane_at(enum cell c, uint32_t lane) {
  return lane * cell_size(c);
}

/* Bytes of an element that is a payload, which does not lie where its bytes do; 0: it is none. */
static uint32_t payload_elem(const struct emu *e, enum dtype t) {
  return emu_cell(e, t) == CELL_PAYLOAD ? emu_bytes(t) : 0;
}

/* Where the elements of an access lie: number of the first from its address on, and how far they
 * are apart. Elements of 4 bits are two to a byte in global memory, to which a pointer is twice the
 * address and which half; in shared memory they take a byte each. */
struct place {
  uint32_t first, each;
  uint64_t va;
  uint32_t bytes;
};

static struct place global_place(enum dtype t, int64_t ptr, uint32_t n) {
  if (dtype_bits(t) != 4)
    return (struct place){0, 1, (uint64_t)ptr, n * emu_bytes(t)};
  return (struct place){(uint32_t)(ptr & 1), 1, (uint64_t)ptr / 2, n > 1 ? n / 2 : 1};
}

static struct place shared_place(enum dtype t) {
  return (struct place){.each = dtype_bits(t) == 4 ? 2 : 1};
}

static void load(struct emu_agent *a, const struct emu_insn *i, enum dtype t, uint32_t lane,
                 struct emu_ref from, struct place p) {
  enum cell c = emu_cell(a->unit->e, t);
  for (uint32_t k = 0; k < i->n->n_out && !(a->unit->e->skeleton && dtype_is_float(t)); k++)
    interp_load_cells(t, c, from.at, p.first + k * p.each * from.step, 0, 1,
                      (char *)emu_cells(a, i->out[k]) + lane_at(c, lane));
}

/* The values to be stored as cells of the memory's dtype. */
static const char *rounded(struct emu_agent *a, const struct emu_insn *i, uint32_t k, enum dtype t,
                           char *room) {
  const struct emu *e = a->unit->e;
  enum dtype from = emu_dtype(e, i->n->in[k]);
  if (from == t)
    return emu_cells(a, i->in[k]);
  cells_cast(e->opt->domain, from, t, EMU_LANES, emu_cells(a, i->in[k]), room);
  return room;
}

struct stored {
  const char *cells[16];
  char room[16][EMU_SLOT];
};

/* Index of the first value of a store; its mask is before it. */
static uint32_t first_value(const struct emu_insn *i) {
  return i->n->opcode == IR_RSTORE ? 3 : 2;
}

static void round_all(struct emu_agent *a, const struct emu_insn *i, enum dtype t,
                      struct stored *s) {
  if (emu_is_left_out(a->unit->e, t))
    return;
  for (uint32_t first = first_value(i), k = first; k < i->n->n_in; k++)
    s->cells[k - first] = rounded(a, i, k, t, s->room[k - first]);
}

static void store(const struct emu *e, const struct emu_insn *i, enum dtype t,
                  const struct stored *s, uint32_t lane, struct emu_ref to, struct place p) {
  enum cell c = emu_cell(e, t);
  if (emu_is_left_out(e, t))
    return;
  for (uint32_t first = first_value(i), k = first; k < i->n->n_in; k++)
    interp_store_cells(t, c, to.at, p.first + (k - first) * p.each * to.step, 0, 1,
                       s->cells[k - first] + lane_at(c, lane));
}

/* Of a skeleton's accesses to floats: do all lanes of `on` touch one region as they may? Then that
 * is all there is to them; if not, the way lane by lane says what is wrong. */
static bool are_legal(const struct emu_agent *a, enum emu_kind kind, enum dtype t,
                      const int64_t *va, uint32_t on, uint32_t bytes) {
  const struct emu *e = a->unit->e;
  if (!emu_is_left_out(e, t) || dtype_bits(t) < 8 || e->step->pdl || bytes & (bytes - 1))
    return false;
  if (!on)
    return true;
  int64_t first = va[__builtin_ctz(on)];
  uint64_t k = ((uint64_t)first + (UINT64_C(1) << (EMU_REGION_BITS - 1))) >> EMU_REGION_BITS;
  if (k == 0 || k > e->n_regions || !e->region[k - 1].va)
    return false;
  const struct emu_region *r = &e->region[k - 1];
  uint64_t base = r->va, all = 0, places = 0;
  int64_t lo = INT64_MAX, hi = INT64_MIN;
  EMU_EACH_LANE (l, on) {
    int64_t at = (int64_t)((uint64_t)va[l] - base);
    lo = at < lo ? at : lo;
    hi = at > hi ? at : hi;
    all |= (uint64_t)va[l];
    places |= (uint64_t)at;
  }
  return lo >= r->lo && hi <= r->hi - bytes && !(all & (bytes - 1)) && !(places & (r->size - 1)) &&
         (kind == EMU_READ || r->writable);
}

void emu_gload(struct emu_agent *a, const struct emu_insn *i) {
  enum dtype t = i->out_dtype;
  const int64_t *ptr = emu_in_int(a, i, 0);
  uint32_t on = emu_lanes(emu_in_bool(a, i, 1), a->active);
  uint32_t elem = payload_elem(a->unit->e, t);
  size_t cell = cell_size(emu_cell(a->unit->e, t));
  if (!emu_need(a, i, 1, a->active) || !emu_need(a, i, 0, on))
    return;
  for (uint32_t k = 0; k < i->n->n_out; k++)
    emu_set_hollow(a, i, i->out[k], emu_hollow(a, i->in[2]) & ~on);
  for (uint32_t k = 0; k < i->n->n_out && on != EMU_ALL && !emu_is_left_out(a->unit->e, t); k++)
    memcpy(emu_cells(a, i->out[k]), emu_cells(a, i->in[2]), EMU_LANES * cell);
  if (are_legal(a, EMU_READ, t, ptr, on, i->n->n_out * emu_bytes(t)))
    return;
  EMU_EACH_LANE (l, on) {
    struct place p = global_place(t, ptr[l], i->n->n_out);
    struct emu_ref r = emu_touch_global(a, i, l, EMU_READ, p.va, p.bytes, elem);
    if (!r.at)
      return;
    load(a, i, t, l, r, p);
  }
}

void emu_gstore(struct emu_agent *a, const struct emu_insn *i) {
  const struct emu *e = a->unit->e;
  enum dtype t = emu_dtype(e, i->n->in[0]);
  const int64_t *ptr = emu_in_int(a, i, 0);
  uint32_t elem = payload_elem(e, t), count = i->n->n_in - 2u;
  /* One element of 4 bits leaves the other half of its byte to others. */
  enum emu_kind kind = dtype_bits(t) == 4 && count == 1 ? EMU_ATOMIC : EMU_WRITE;
  uint32_t on = emu_lanes(emu_in_bool(a, i, 1), a->active);
  struct stored s;
  if (!emu_need(a, i, 1, a->active))
    return;
  for (uint32_t k = 0; k < i->n->n_in; k++)
    if (!emu_need(a, i, k, on))
      return;
  if (are_legal(a, kind, t, ptr, on, count * emu_bytes(t)))
    return;
  round_all(a, i, t, &s);
  EMU_EACH_LANE (l, on) {
    struct place p = global_place(t, ptr[l], count);
    struct emu_ref r = emu_touch_global(a, i, l, kind, p.va, p.bytes, elem);
    if (!r.at)
      return;
    store(e, i, t, &s, l, r, p);
  }
}

/* Addresses of the lanes that take part; false after an error. */
static bool buffer_addresses(struct emu_agent *a, const struct emu_insn *i, uint32_t k,
                             uint32_t mask, uint32_t bytes, int64_t *address) {
  const int64_t *offset = emu_in_int(a, i, k);
  int64_t at = i->buf_at, last = i->buf_bytes - bytes;
  bool inside = true;
  for (uint32_t l = 0; l < EMU_LANES; l++) {
    inside &= (offset[l] >= 0 && offset[l] <= last) || !(mask >> l & 1);
    address[l] = at + offset[l];
  }
  EMU_EACH_LANE (l, inside ? 0 : mask)
    if (emu_buffer(a, i, l, i->res[0], offset[l], bytes) < 0)
      return false;
  return true;
}

bool emu_are_legal(const struct emu_agent *a, enum dtype t, const int64_t *address, uint32_t lanes,
                   uint32_t bytes) {
  uint64_t all = 0;
  int64_t most = 0;
  if (!emu_is_left_out(a->unit->e, t) || bytes & (bytes - 1))
    return false;
  EMU_EACH_LANE (l, lanes) {
    all |= (uint64_t)address[l];
    most = address[l] > most ? address[l] : most;
  }
  return !(all & (bytes - 1)) && most + bytes <= a->unit->e->step->smem_bytes;
}

/* An access to the shared memory of another block of the cluster, or of its own. */
static struct emu_ref touch_other(struct emu_agent *a, const struct emu_insn *i, uint32_t lane,
                                  int64_t rank, enum emu_kind kind, int64_t address, uint32_t bytes,
                                  uint32_t elem) {
  struct emu_cta *own = a->cta, *other = emu_other_block(a, i, lane, rank);
  struct emu_ref r = {0};
  if (!other)
    return r;
  a->cta = other;
  r = emu_touch_shared(a, i, lane, EMU_GENERIC, kind, address, bytes, elem);
  a->cta = own;
  return r;
}

void emu_sload(struct emu_agent *a, const struct emu_insn *i) {
  enum dtype t = i->out_dtype;
  uint32_t size = emu_bytes(t), bytes = size * i->n->n_out, elem = payload_elem(a->unit->e, t);
  uint32_t hollow[16] = {0};
  int64_t address[EMU_LANES];
  const int64_t *rank = i->n->opcode == IR_RLOAD ? emu_in_int(a, i, 1) : NULL;
  if (!buffer_addresses(a, i, 0, a->active, bytes, address) ||
      (rank && !emu_need(a, i, 1, a->active)))
    return;
  if (!rank)
    emu_count_banks(a, &a->unit->stats.sload, address, a->active, bytes);
  uint32_t left = a->active, found[EMU_LANES];
  if (!rank && emu_are_legal(a, t, address, left, bytes)) {
    if (!emu_order_lanes(a, i, left, false, EMU_READ, address, bytes, found))
      return;
    for (uint32_t k = 0; k < i->n->n_out; k++)
      EMU_EACH_LANE (l, left)
        hollow[k] |= (uint32_t)((found[l] >> (k * size) & ((1u << size) - 1)) != 0) << l;
    left = 0;
  }
  EMU_EACH_LANE (l, left) {
    struct emu_ref r =
        rank ? touch_other(a, i, l, rank[l], EMU_READ, address[l], bytes, elem)
             : emu_touch_shared(a, i, l, EMU_GENERIC, EMU_READ, address[l], bytes, elem);
    if (!r.at)
      return;
    load(a, i, t, l, r, shared_place(t));
    for (uint32_t k = 0; k < i->n->n_out && r.hollow; k++)
      hollow[k] |= (uint32_t)((r.hollow >> (k * size) & ((1u << size) - 1)) != 0) << l;
  }
  for (uint32_t k = 0; k < i->n->n_out; k++)
    emu_set_hollow(a, i, i->out[k], hollow[k]);
}

void emu_rload(struct emu_agent *a, const struct emu_insn *i) {
  emu_sload(a, i);
}

void emu_sstore(struct emu_agent *a, const struct emu_insn *i) {
  const struct emu *e = a->unit->e;
  enum dtype t = (enum dtype)i->res[0]->type.dtype;
  uint32_t first = first_value(i), elem = payload_elem(e, t);
  uint32_t on = emu_lanes(emu_in_bool(a, i, first - 1), a->active);
  uint32_t size = emu_bytes(t), bytes = size * (i->n->n_in - first);
  const int64_t *rank = first == 3 ? emu_in_int(a, i, 1) : NULL;
  int64_t address[EMU_LANES];
  struct stored s;
  round_all(a, i, t, &s);
  for (uint32_t k = 1; k < (rank ? i->n->n_in : 2u); k++)
    if (!emu_need(a, i, k, k < first ? a->active : on))
      return;
  if (!buffer_addresses(a, i, 0, on, bytes, address))
    return;
  if (!rank)
    emu_count_banks(a, &a->unit->stats.sstore, address, on, bytes);
  uint32_t left = on;
  if (!rank && !a->any_hollow && emu_are_legal(a, t, address, on, bytes)) {
    if (!emu_order_lanes(a, i, on, false, EMU_WRITE, address, bytes, NULL))
      return;
    left = 0;
  }
  EMU_EACH_LANE (l, left) {
    struct emu_ref r =
        rank ? touch_other(a, i, l, rank[l], EMU_WRITE, address[l], bytes, elem)
             : emu_touch_shared(a, i, l, EMU_GENERIC, EMU_WRITE, address[l], bytes, elem);
    if (!r.at)
      return;
    store(e, i, t, &s, l, r, shared_place(t));
    for (uint32_t k = first; k < i->n->n_in && a->any_hollow && !rank; k++)
      if (emu_hollow(a, i->in[k]) >> l & 1)
        emu_store_hollow(a, (uint32_t)address[l] + (k - first) * size, size);
  }
}

void emu_rstore(struct emu_agent *a, const struct emu_insn *i) {
  emu_sstore(a, i);
}

/* ---- atomics ---- */

static enum ir_opcode atomic_op(const char *kind) {
  static const struct {
    const char *kind;
    enum ir_opcode op;
  } ops[] = {{"add", IR_ADD}, {"min", IR_MIN}, {"max", IR_MAX},
             {"and", IR_AND}, {"or", IR_OR},   {"xor", IR_XOR}};
  for (size_t k = 0; k < sizeof ops / sizeof ops[0]; k++)
    if (str_eq(kind, ops[k].kind))
      return ops[k].op;
  return IR_NO_OP; /* exchange */
}

/* Lane after lane; blocks run one after the other (emu_grid.c). */
void emu_gatomic(struct emu_agent *a, const struct emu_insn *i) {
  const struct emu *e = a->unit->e;
  enum dtype t = emu_dtype(e, i->n->in[0]);
  enum cell c = emu_cell(e, t);
  size_t size = cell_size(c);
  enum ir_opcode op = atomic_op(ir_sym(e->m, ir_get_attr(e->m, i->op, IR_ATTR_kind)->s));
  const int64_t *ptr = emu_in_int(a, i, 0);
  const char *value = emu_cells(a, i->in[2]);
  char old[EMU_SLOT] = {0};
  bool orders = ir_get_attr(e->m, i->op, IR_ATTR_sem) && !e->skeleton;
  uint32_t on = emu_lanes(emu_in_bool(a, i, 1), a->active);
  if (!emu_need(a, i, 1, a->active) || !emu_need(a, i, 0, on) || !emu_need(a, i, 2, on))
    return;
  EMU_EACH_LANE (l, on) {
    struct emu_ref r =
        emu_touch_global(a, i, l, EMU_ATOMIC, (uint64_t)ptr[l], emu_bytes(t), payload_elem(e, t));
    char new[8], *was = old + l *size;
    if (!r.at)
      return;
    interp_load_cells(t, c, r.at, 0, 0, 1, was);
    if (op == IR_NO_OP)
      memcpy(new, value + l * size, size);
    else
      cells_elem(e->opt->domain, op, t, t, 1, was, value + l * size, NULL, new);
    interp_store_cells(t, c, r.at, 0, 0, 1, new);
    if (orders)
      emu_sync_at(a, (uint64_t)ptr[l]);
  }
  if (i->n->n_out)
    memcpy(emu_cells(a, i->out[0]), old, EMU_LANES * size);
  if (i->n->n_out)
    a->hollow[i->out[0]] = 0;
}
