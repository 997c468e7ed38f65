/* Emulator: the matrix unit of a warpgroup.
 *
 * Its work is done as one once all four warps have come to it: they must come with the same
 * operands, in the same order. It reads shared memory through the asynchronous proxy, by descriptor
 * bits, knowing what all four knew. Until a warp has waited for its group, the fragments that it
 * reads and writes are not the warp's to touch; and what the warp did with them before must be
 * behind a wgmma_fence. What sums claim is in emu_tables.h. */
#include "codegen/emu_async.h"

#include "base/check.h"

#include <stdio.h>
#include <string.h>

#define MAX_N 256u
#define MAX_K 32u
#define ROWS  16u /* of a warp */

struct plan {
  struct emu_wgmma what;
  uint64_t high_a, high_b;             /* words of the descriptors, at their place */
  uint32_t n_d, n_a;                   /* elements of a lane */
  uint16_t at_d[MAX_N / 2][EMU_LANES]; /* row * n + column, within the warp's rows */
  uint16_t at_a[16][EMU_LANES];        /* row * k + column */
};

static enum dtype type_of(const struct emu *e, const struct ir_opnode *n, uint32_t res) {
  return (enum dtype)e->m->res.at[n->res[res]].type.dtype;
}

/* The high word of a buffer's descriptors. */
static uint64_t high_word(const struct ir_res *buf) {
  int64_t span = ir_res_int(buf, IR_ATTR_swizzle_bytes, 0);
  uint64_t mode = span == 128 ? 1 : span == 64 ? 2 : span == 32 ? 3 : 0;
  return (uint64_t)(ir_res_int(buf, IR_ATTR_sbo, 0) >> 4 & 0x3fff) << 32 | mode << 62;
}

const void *emu_plan_wgmma(const struct emu *e, struct ir_op o, struct arena *a) {
  const struct ir_opnode *n = ir_op_at(e->m, o);
  const struct ir_attr *shape = ir_get_attr(e->m, o, IR_ATTR_shape);
  struct plan *p = ARENA_NEW(a, struct plan);
  struct emu_wgmma *w = &p->what;
  unsigned m, cols, k;
  if (!shape || sscanf(ir_sym(e->m, shape->s), "m%un%uk%u", &m, &cols, &k) != 3 || m != 64)
    return NULL;
  *w = (struct emu_wgmma){.n = cols,
                          .k = k,
                          .a = type_of(e, n, 1),
                          .b = type_of(e, n, 2),
                          .d = type_of(e, n, 0),
                          .a_in_regs = e->m->res.at[n->res[1]].kind == IR_RES_FRAG,
                          .trans_a = ir_attr_int(e->m, o, IR_ATTR_trans_a, 0) != 0,
                          .trans_b = ir_attr_int(e->m, o, IR_ATTR_trans_b, 0) != 0};
  if (emu_wgmma_refuse(w))
    return NULL;
  p->high_a = w->a_in_regs ? 0 : high_word(&e->m->res.at[n->res[1]]);
  p->high_b = high_word(&e->m->res.at[n->res[2]]);
  p->n_d = emu_wgmma_d_elements(cols);
  p->n_a = w->a_in_regs ? emu_wgmma_a_elements(dtype_bits(w->a)) : 0;
  for (uint32_t l = 0; l < EMU_LANES; l++) {
    for (uint32_t x = 0; x < p->n_d; x++) {
      struct emu_place at = emu_wgmma_d_place(0, l, x);
      p->at_d[x][l] = (uint16_t)(at.row * cols + at.col);
    }
    for (uint32_t x = 0; x < p->n_a; x++) {
      struct emu_place at = emu_wgmma_a_place(dtype_bits(w->a), 0, l, x);
      p->at_a[x][l] = (uint16_t)(at.row * k + at.col);
    }
  }
  return p;
}

void emu_desc(struct emu_agent *a, const struct emu_insn *i) {
  const int64_t *offset = emu_in_int(a, i, 0);
  int64_t *o = emu_cells(a, i->out[0]);
  int64_t start = ir_res_int(i->res[0], IR_ATTR_offset, 0);
  uint32_t lbo = (uint32_t)(ir_res_int(i->res[0], IR_ATTR_lbo, 0) >> 4) << 16;
  for (uint32_t l = 0; l < EMU_LANES; l++)
    o[l] = (int32_t)((uint32_t)((uint64_t)(start + offset[l]) & 0x3ffff) >> 4 | lbo);
}

/* ---- the warps' side ---- */

static void add_held(struct emu_agent *a, const struct emu_insn *i, const struct emu_frag *f,
                     uint32_t at, uint32_t n, bool written) {
  struct emu_async_warp *x = a->async;
  struct emu_held *last = x->n_held ? &x->held[x->n_held - 1] : NULL;
  for (struct emu_held *h = x->held; h < x->held + x->n_held; h++)
    if (h->frag == f && h->group == x->mma_group && h->written == written && h->at <= at &&
        at + n <= h->at + h->n)
      return;
  if (last && last->frag == f && last->group == x->mma_group && last->written == written &&
      last->at + last->n == at) {
    last->n += n;
    return;
  }
  if (x->n_held == EMU_HELD) {
    emu_fail(a, i, EMU_NO_LANE, DIAG_OPERAND,
             "more than %u pieces of fragments are held by wgmma under way", EMU_HELD);
    return;
  }
  x->held[x->n_held++] = (struct emu_held){f, at, n, x->mma_group, written};
  a->mma_open = true;
}

bool emu_may_touch(struct emu_agent *a, const struct emu_insn *i, const struct emu_frag *f,
                   int64_t k, bool writes) {
  const struct emu_async_warp *x = a->async;
  for (const struct emu_held *h = x->held; h < x->held + x->n_held; h++)
    if (h->frag == f && k >= h->at && k < h->at + h->n && (writes || h->written)) {
      emu_fail(a, i, EMU_NO_LANE, DIAG_MACHINE_RACE,
               "'%s' %s element %lld of a fragment, which a wgmma under way %s: wait for it first",
               ir_info(i->n->opcode)->name, writes ? "writes" : "reads", (long long)k,
               h->written ? "writes" : "reads");
      return false;
    }
  return true;
}

/* Fragment operand `res` of the op: n elements from `at` on. */
static bool frag_ok(struct emu_agent *a, const struct emu_insn *i, uint32_t res, int64_t at,
                    uint32_t n, bool read) {
  struct emu_frag *f = emu_frag_of(a, i, res);
  if (at < 0 || at + n > f->n) {
    emu_fail(a, i, EMU_NO_LANE, DIAG_MACHINE_ACCESS,
             "'wgmma' of elements %lld..%lld of a fragment of which a thread holds %u",
             (long long)at, (long long)at + n - 1, f->n);
    return false;
  }
  if (f->touched) {
    emu_fail(a, i, EMU_NO_LANE, DIAG_MACHINE_RACE,
             "'wgmma' takes a fragment that the warp has touched since its last wgmma_fence");
    return false;
  }
  for (uint32_t k = 0; k < n && read; k++)
    if (f->set[at + k] != EMU_ALL) {
      emu_fail(a, i, (uint32_t)__builtin_ctz(~f->set[at + k]), DIAG_UNWRITTEN,
               "'wgmma' reads element %lld of a fragment before anything has written it",
               (long long)at + k);
      return false;
    }
  return true;
}

/* The piece of work that is the warp's next: its own, or what another warp of the group began. */
static struct emu_work *find_work(struct emu_agent *a, const struct emu_insn *i,
                                  const struct emu_work *want) {
  struct emu_agent *by = emu_group_agent(a);
  uint32_t k = a->async->mma_count++ - by->finished;
  struct emu_work *w = by->first;
  for (; w && k; k--)
    w = w->next;
  if (!w) {
    w = emu_new_work(a, i, EMU_NO_LANE);
    w->at_d = want->at_d;
    w->at_a = want->at_a;
    w->desc_a = want->desc_a;
    w->desc_b = want->desc_b;
    w->add = want->add;
    w->time = a->async->mma_group;
    if (by->last)
      by->last->next = w;
    else
      by->first = w;
    by->last = w;
  }
  if (w->by != i || w->at_d != want->at_d || w->at_a != want->at_a || w->desc_a != want->desc_a ||
      w->desc_b != want->desc_b || w->add != want->add || w->time != a->async->mma_group) {
    emu_fail(a, i, EMU_NO_LANE, DIAG_DIVERGED,
             "the warps of a warpgroup come to different wgmma, or with different operands or "
             "groups");
    emu_also(a, w->by->op.id, "another warp has come to this one");
    return NULL;
  }
  for (uint32_t c = 0; c < EMU_CLOCKS(a->unit->e); c++)
    w->clock[c] = w->clock[c] < a->clock[c] ? w->clock[c] : a->clock[c];
  w->warps |= 1u << a->warp % 4;
  return w;
}

static bool uniform_flag(struct emu_agent *a, const struct emu_insn *i, uint32_t k, bool *flag) {
  uint32_t lanes = emu_lanes(emu_in_bool(a, i, k), EMU_ALL);
  *flag = lanes != 0;
  if (!emu_need(a, i, k, EMU_ALL))
    return false;
  if (!lanes || lanes == EMU_ALL)
    return true;
  emu_fail(a, i, EMU_NO_LANE, DIAG_DIVERGED, "operand %u of 'wgmma' is true in some lanes only",
           k + 1);
  return false;
}

void emu_wgmma(struct emu_agent *a, const struct emu_insn *i) {
  const struct plan *p = i->data;
  int64_t d, x, y;
  struct emu_work want = {0};
  if (!emu_need_all(a, i) || !emu_uniform(a, i, 0, &d) || !emu_uniform(a, i, 1, &x) ||
      !emu_uniform(a, i, 2, &y) || !uniform_flag(a, i, 3, &want.add))
    return;
  if (a->warp / 4 * 4 + 4 > a->unit->e->warps) {
    emu_fail(a, i, EMU_NO_LANE, DIAG_DIVERGED, "'wgmma' needs a whole warpgroup of four warps");
    return;
  }
  if (!a->async->mma_fenced) {
    emu_fail(a, i, EMU_NO_LANE, DIAG_MACHINE_RACE, "'wgmma' without a wgmma_fence before it");
    return;
  }
  if (!frag_ok(a, i, 0, d, p->n_d, want.add) || (p->n_a && !frag_ok(a, i, 1, x, p->n_a, true)))
    return;
  want.at_d = (uint32_t)d;
  want.at_a = p->n_a ? (uint32_t)x : 0;
  want.desc_a = p->n_a ? 0 : (uint32_t)(uint64_t)x;
  want.desc_b = (uint32_t)(uint64_t)y;
  add_held(a, i, emu_frag_of(a, i, 0), want.at_d, p->n_d, true);
  if (p->n_a)
    add_held(a, i, emu_frag_of(a, i, 1), want.at_a, p->n_a, false);
  struct emu_work *w = find_work(a, i, &want);
  if (!w)
    return;
  emu_tick(a);
  for (uint32_t k = 0; k < p->n_d; k++)
    emu_frag_of(a, i, 0)->set[d + k] = EMU_ALL;
  struct emu_agent *by = emu_group_agent(a);
  enum emu_mode mode = a->unit->e->opt->mode;
  if (w->warps != 15)
    return;
  by->state = EMU_READY;
  if (mode == EMU_EARLY || (mode == EMU_SEEDED && emu_random(a->unit) % 2))
    by->run(by, UINT32_MAX);
}

void emu_wgmma_fence(struct emu_agent *a, const struct emu_insn *i) {
  if (!emu_need_all(a, i))
    return;
  a->async->mma_fenced = true;
  for (uint32_t r = 1; r < a->unit->e->m->res.n; r++)
    a->frag[r].touched = false;
}

void emu_wgmma_commit(struct emu_agent *a, const struct emu_insn *i) {
  if (emu_need_all(a, i))
    a->async->mma_group++;
}

void emu_wgmma_wait(struct emu_agent *a, const struct emu_insn *i) {
  const struct emu *e = a->unit->e;
  struct emu_async_warp *x = a->async;
  uint32_t pending = (uint32_t)ir_attr_int(e->m, i->op, IR_ATTR_pending, 0), kept = 0;
  if (!emu_need_all(a, i) || !e->async->n_groups || x->mma_group - 1 <= pending)
    return;
  uint32_t target = x->mma_group - 1 - pending;
  struct emu_agent *by = emu_group_agent(a);
  if (by->first && by->first->time <= target) {
    EMU_WAIT_ON(
        a, by, by->first->warps == 15 ? "its wgmma" : "the other warps of its warpgroup, in wgmma");
    return;
  }
  uint32_t *over = EMU_ORDER(e, a->clock);
  over[by->id] = over[by->id] > target ? over[by->id] : target;
  a->clock[by->id] = a->clock[by->id] > target ? a->clock[by->id] : target;
  for (uint32_t k = 0; k < x->n_held; k++)
    if (x->held[k].group > target)
      x->held[kept++] = x->held[k];
  x->n_held = kept;
  a->mma_open = kept != 0;
}

bool emu_group_end(struct emu_agent *a) {
  if (!a->async->n_held)
    return true;
  emu_fail(a, a->at, EMU_NO_LANE, DIAG_MACHINE_RACE, "the warp ends without waiting for its wgmma");
  return false;
}

/* ---- operands ---- */

/* Doubles (which hold every float of up to 32 bits), or integers and payloads. */
union number {
  double f;
  int64_t i;
};

struct operand {
  union number *x; /* [mn][k] for A, [k][mn] for B */
  uint32_t mn_step, k_step;
  uint32_t mns;
  uint32_t begin, end; /* of its buffer */
  bool any_hollow;
  bool hollow[MAX_N]; /* by mn */
};

static double cut_tf32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  bits &= ~UINT32_C(0x1fff);
  memcpy(&x, &bits, 4);
  return (double)x;
}

static union number number_at(enum cell c, enum dtype t, const void *cells, uint32_t k) {
  union number v = {.i = 0};
  if (c == CELL_FLOAT)
    v.f = t == DT_F32 ? cut_tf32(((const float *)cells)[k]) : (double)((const float *)cells)[k];
  else
    v.i = ((const int64_t *)cells)[k];
  return v;
}

/* 16 bytes of the operand: elements from (mn, k) on, adjacent along mn or along k. */
static bool load_chunk(struct emu_agent *a, const struct emu_insn *i, const struct ir_res *buf,
                       const struct emu_desc *desc, bool trans, uint32_t mn, uint32_t k,
                       struct operand *to) {
  enum dtype t = (enum dtype)buf->type.dtype;
  enum cell c = emu_cell(a->unit->e, t);
  uint32_t bytes = emu_bytes(t), address = emu_desc_address(desc, bytes, trans, mn, k);
  int64_t cells[16];
  if (address < to->begin || address + 16 > to->end) {
    emu_fail(a, i, EMU_NO_LANE, DIAG_MACHINE_ACCESS,
             "'wgmma' reads bytes %u..%u of shared memory, outside of buffer '%s' (%u..%u)",
             address, address + 15, ir_sym(a->unit->e->m, buf->name), to->begin, to->end - 1);
    return false;
  }
  struct emu_ref r = emu_touch_shared(a, i, EMU_NO_LANE, EMU_ASYNC, EMU_READ, address, 16,
                                      c == CELL_PAYLOAD ? bytes : 0);
  if (!r.at)
    return false;
  if (a->unit->e->skeleton)
    return true;
  interp_load_cells(t, c, r.at, 0, r.step, 16 / bytes, cells);
  for (uint32_t x = 0; x < 16 / bytes; x++) {
    uint32_t at_mn = trans ? mn + x : mn, at_k = trans ? k : k + x;
    to->x[at_mn * to->mn_step + at_k * to->k_step] = number_at(c, t, cells, x);
    if (r.hollow >> (x * bytes) & ((1u << bytes) - 1))
      to->any_hollow = to->hollow[at_mn] = true;
  }
  return true;
}

static bool load_operand(struct emu_agent *a, const struct emu_insn *i, const struct ir_res *buf,
                         uint64_t bits, bool trans, uint32_t ks, struct operand *to) {
  struct emu_desc desc = emu_desc_decode(bits);
  const char *why = emu_desc_refuse(bits);
  uint32_t per = 16 / emu_bytes((enum dtype)buf->type.dtype);
  if (why) {
    emu_fail(a, i, EMU_NO_LANE, DIAG_MACHINE_ACCESS, "'wgmma' with descriptor %#llx: %s",
             (unsigned long long)bits, why);
    return false;
  }
  to->begin = (uint32_t)ir_res_int(buf, IR_ATTR_offset, 0);
  to->end = to->begin + (uint32_t)ir_res_int(buf, IR_ATTR_bytes, 0);
  for (uint32_t mn = 0; mn < to->mns; mn += trans ? per : 1)
    for (uint32_t k = 0; k < ks; k += trans ? 1 : per)
      if (!load_chunk(a, i, buf, &desc, trans, mn, k, to))
        return false;
  return true;
}

/* A warp's 16 rows of A from its fragment. */
static void take_a(const struct plan *p, const struct emu_frag *f, uint32_t at, uint32_t warp,
                   struct operand *to) {
  for (uint32_t x = 0; x < p->n_a; x++)
    for (uint32_t l = 0; l < EMU_LANES; l++) {
      const char *cells = f->cells + (size_t)(at + x) * EMU_LANES * cell_size(f->cell);
      uint32_t place = warp * ROWS * p->what.k + p->at_a[x][l];
      to->x[place] = number_at(f->cell, p->what.a, cells, l);
      if (f->hollow[at + x] >> l & 1)
        to->any_hollow = to->hollow[place / p->what.k] = true;
    }
}

/* ---- products ---- */

/* 8-bit floats, whose sums are short. */
static void multiply_short(const struct emu_wgmma *w, const union number *x, const union number *y,
                           union number *d) {
  double products[MAX_K];
  for (uint32_t r = 0; r < ROWS; r++)
    for (uint32_t n = 0; n < w->n; n++) {
      for (uint32_t k = 0; k < w->k; k++)
        products[k] = x[r * w->k + k].f * y[k * w->n + n].f;
      d[r * w->n + n].f = emu_short_sum(w->k, products, d[r * w->n + n].f);
    }
}

static void multiply(const struct emu_wgmma *w, enum cell c, const union number *x,
                     const union number *y, union number *d) {
  if (c == CELL_PAYLOAD) {
    static const uint32_t all = ROWS * MAX_N;
    int64_t first[ROWS * MAX_N];
    memcpy(first, d, sizeof *first * (w->n * ROWS < all ? w->n * ROWS : all));
    interp_algebra_dot(ROWS, w->k, w->n, &x->i, &y->i, first, &d->i);
    return;
  }
  if (c == CELL_FLOAT && (w->a == DT_E4M3 || w->a == DT_E5M2)) {
    multiply_short(w, x, y, d);
    return;
  }
  for (uint32_t r = 0; r < ROWS; r++)
    for (uint32_t k = 0; k < w->k; k++) {
      union number v = x[r * w->k + k];
      const union number *row = y + k * w->n;
      union number *sum = d + r * w->n;
      if (c == CELL_INT)
        for (uint32_t n = 0; n < w->n; n++)
          sum[n].i += v.i * row[n].i;
      else
        for (uint32_t n = 0; n < w->n; n++)
          sum[n].f += v.f * row[n].f;
    }
}

static void take_d(const struct plan *p, const struct emu_frag *f, uint32_t at, bool add,
                   union number *d) {
  for (uint32_t x = 0; x < p->n_d; x++)
    for (uint32_t l = 0; l < EMU_LANES; l++) {
      const char *cells = f->cells + (size_t)(at + x) * EMU_LANES * cell_size(f->cell);
      union number *v = &d[p->at_d[x][l]];
      v->i = 0; /* 0.0, too */
      if (add && f->cell == CELL_FLOAT)
        v->f = (double)((const float *)cells)[l];
      else if (add)
        v->i = ((const int64_t *)cells)[l];
    }
}

static void give_d(const struct plan *p, struct emu_frag *f, uint32_t at, const union number *d) {
  for (uint32_t x = 0; x < p->n_d; x++)
    for (uint32_t l = 0; l < EMU_LANES; l++) {
      char *cells = f->cells + (size_t)(at + x) * EMU_LANES * cell_size(f->cell);
      const union number *v = &d[p->at_d[x][l]];
      if (f->cell == CELL_FLOAT)
        ((float *)cells)[l] = num_round_f32(f->dtype, (float)v->f);
      else if (f->cell == CELL_INT)
        ((int64_t *)cells)[l] = (int32_t)(uint32_t)(uint64_t)v->i; /* wraps */
      else
        ((int64_t *)cells)[l] = v->i;
    }
}

/* D is hollow where its row of A or its column of B is, or where it was and is added to. */
static void follow(struct emu_agent *warp, const struct emu_insn *i, const struct plan *p,
                   struct emu_frag *f, const struct emu_work *w, const struct operand *x,
                   const struct operand *y) {
  for (uint32_t k = 0; k < p->n_d; k++) {
    uint32_t lanes = w->add ? f->hollow[w->at_d + k] : 0;
    for (uint32_t l = 0; l < EMU_LANES && (x->any_hollow || y->any_hollow); l++) {
      uint32_t row = warp->warp % 4 * ROWS + p->at_d[k][l] / p->what.n;
      lanes |= (uint32_t)(x->hollow[row] || y->hollow[p->at_d[k][l] % p->what.n]) << l;
    }
    f->hollow[w->at_d + k] = lanes;
    if (lanes && !warp->any_hollow) {
      warp->any_hollow = true;
      warp->hollow_op = i->op.id;
    }
  }
}

static void compute(struct emu_agent *a, const struct emu_work *w) {
  const struct emu_insn *i = w->by;
  const struct plan *p = i->data;
  const struct emu_wgmma *what = &p->what;
  union number x[64 * MAX_K], y[MAX_K * MAX_N], d[ROWS * MAX_N];
  struct operand left = {.x = x, .mn_step = what->k, .k_step = 1, .mns = 64};
  struct operand right = {.x = y, .mn_step = 1, .k_step = what->n, .mns = what->n};
  struct emu_agent *warps = a->cta->warp + 4 * (a - a->cta->unit - a->unit->e->async->n_slots);
  emu_become(a, w);
  if (!load_operand(a, i, i->res[2], p->high_b | w->desc_b, what->trans_b, what->k, &right) ||
      (!p->n_a &&
       !load_operand(a, i, i->res[1], p->high_a | w->desc_a, what->trans_a, what->k, &left)))
    return;
  if (a->unit->e->skeleton)
    return;
  for (uint32_t k = 0; k < 4 && p->n_a; k++)
    take_a(p, emu_frag_of(&warps[k], i, 1), w->at_a, k, &left);
  for (uint32_t k = 0; k < 4; k++) {
    struct emu_frag *f = emu_frag_of(&warps[k], i, 0);
    take_d(p, f, w->at_d, w->add, d);
    multiply(what, f->cell, x + k * ROWS * what->k, y, d);
    give_d(p, f, w->at_d, d);
    follow(&warps[k], i, p, f, w, &left, &right);
  }
}

void emu_run_group(struct emu_agent *a, uint32_t budget) {
  for (; budget && !a->unit->stopped && a->first && a->first->warps == 15; budget--) {
    struct emu_work *w = a->first;
    compute(a, w);
    a->first = w->next;
    a->last = a->first ? a->last : NULL;
    a->finished++;
    emu_free_work(a->unit, w);
  }
  if (!a->first || a->first->warps != 15)
    a->state = EMU_DONE;
  emu_wake_waiting(a->cta, a);
}
