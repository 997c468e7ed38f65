/* Emulator: instructions of a warp: control, scalars, fragments.
 *
 * A warp executes 32 lanes at once under a mask of those that are active. What has no effect
 * computes all lanes: values of inactive lanes are never read. Where lanes disagree in an `if` the
 * warp goes through both sides, each with its part of the lanes. */
#include "codegen/emu_impl.h"

#include "base/random.h"

#include <string.h>

#define POLL_STEPS 4096
#define NEARLY     2 /* iterations that a loop may have more or less than another, see cut_trips */

/* ---- control ---- */

static void copy_lanes(void *to, const void *from, uint32_t bytes, uint32_t mask) {
  if (mask == EMU_ALL) {
    memcpy(to, from, (size_t)bytes * EMU_LANES);
    return;
  }
  EMU_EACH_LANE (l, mask)
    memcpy((char *)to + (size_t)l * bytes, (const char *)from + (size_t)l * bytes, bytes);
}

/* All at once, in the active lanes. */
static void move_hollow(struct emu_agent *a, const struct emu_insn *i) {
  uint32_t *temp = a->unit->temp_hollow;
  for (uint32_t k = 0; k < i->n_moves; k++)
    temp[k] = emu_hollow(a, i->moves[k].from);
  for (uint32_t k = 0; k < i->n_moves; k++) {
    uint32_t *to = &a->hollow[i->moves[k].to];
    *to = (*to & ~a->active) | (temp[k] & a->active);
  }
}

static void move_all(struct emu_agent *a, const struct emu_insn *i) {
  char *temp = a->unit->temp;
  if (!a->active)
    return;
  if (a->any_hollow)
    move_hollow(a, i);
  for (uint32_t k = 0; k < i->n_moves; k++)
    if (i->moves[k].late)
      memcpy(temp + (size_t)k * EMU_SLOT, emu_cells(a, i->moves[k].from), EMU_SLOT);
  for (uint32_t k = 0; k < i->n_moves; k++) {
    const struct emu_move *m = &i->moves[k];
    if (m->from != m->to)
      copy_lanes(emu_cells(a, m->to), m->late ? temp + (size_t)k * EMU_SLOT : emu_cells(a, m->from),
                 m->bytes, a->active);
  }
}

static struct emu_frame *top(struct emu_agent *a) {
  return &a->frame[a->depth - 1];
}

static void push(struct emu_agent *a) {
  a->frame[a->depth++] = (struct emu_frame){.saved = a->active};
}

void emu_if(struct emu_agent *a, const struct emu_insn *i) {
  uint32_t taken = emu_lanes(emu_in_bool(a, i, 0), a->active);
  emu_need(a, i, 0, a->active);
  push(a);
  top(a)->other = a->active & ~taken;
  a->active = taken;
  if (!taken)
    a->pc = i->target;
}

void emu_else(struct emu_agent *a, const struct emu_insn *i) {
  move_all(a, i);
  a->active = top(a)->other;
  if (!a->active)
    a->pc = i->target;
}

void emu_exit(struct emu_agent *a, const struct emu_insn *i) {
  (void)i;
  a->active = a->frame[--a->depth].saved;
}

void emu_end(struct emu_agent *a, const struct emu_insn *i) {
  move_all(a, i);
  emu_exit(a, i);
}

int64_t emu_cut_trips(struct emu_unit *u, int64_t n) {
  for (uint32_t k = 0; k < u->n_cuts; k++)
    if (n >= u->cut[k].n - NEARLY && n <= u->cut[k].n + NEARLY)
      return n - u->cut[k].less;
  if (n <= (int64_t)u->e->trips + 2 * NEARLY || u->n_cuts == EMU_CUTS)
    return n;
  u->cut[u->n_cuts++] = (struct emu_cut){n, n - u->e->trips};
  return u->e->trips;
}

/* The first two iterations of a skeleton's loop are run, and the last ones: there the pipe runs
 * empty. */
static void plan_leap(struct emu_agent *a, const struct emu_insn *i) {
  uint32_t l = (uint32_t)__builtin_ctz(a->active);
  int64_t lo = emu_in_int(a, i, 0)[l], hi = emu_in_int(a, i, 1)[l], step = emu_in_int(a, i, 2)[l];
  if (step <= 0 || lo >= hi || hi - lo > INT32_MAX)
    return;
  int64_t n = (hi - lo + step - 1) / step;
  top(a)->leap_at = 2;
  top(a)->leap = (n - emu_cut_trips(a->unit, n)) * step;
}

void emu_for(struct emu_agent *a, const struct emu_insn *i) {
  const int64_t *step = emu_in_int(a, i, 2);
  for (uint32_t k = 0; k < 3; k++)
    emu_need(a, i, k, a->active);
  move_all(a, i);
  copy_lanes(emu_cells(a, i->out[0]), emu_in_int(a, i, 0), 8, a->active);
  a->hollow[i->out[0]] &= ~a->active;
  push(a);
  if (a->unit->e->skeleton && a->active)
    plan_leap(a, i);
  EMU_EACH_LANE (l, a->active)
    if (step[l] <= 0)
      emu_fail(a, i, l, DIAG_OPERAND, "the step of a loop must be positive, it is %lld",
               (long long)step[l]);
}

/* While loops of a skeleton are cut short. */
static bool is_long_enough(struct emu_agent *a) {
  return a->unit->e->skeleton && ++top(a)->k > a->unit->e->trips;
}

void emu_for_test(struct emu_agent *a, const struct emu_insn *i) {
  const int64_t *k = emu_cells(a, i->out[0]), *hi = emu_in_int(a, i, 1);
  uint32_t on = 0;
  EMU_EACH_LANE (l, a->active)
    on |= (uint32_t)(k[l] < hi[l]) << l;
  a->active = on;
  if (!on)
    a->pc = i->target;
}

void emu_next(struct emu_agent *a, const struct emu_insn *i) {
  move_all(a, i);
  a->pc = i->target;
  if (!i->in) /* while */
    return;
  int64_t *k = emu_cells(a, i->out[0]);
  const int64_t *step = emu_in_int(a, i, 2);
  if (top(a)->leap && ++top(a)->k == top(a)->leap_at)
    EMU_EACH_LANE (l, a->active)
      k[l] += top(a)->leap;
  EMU_EACH_LANE (l, a->active)
    if (__builtin_add_overflow(k[l], step[l], &k[l]))
      k[l] = INT64_MAX; /* beyond any end */
}

static void set_all(struct emu_agent *a, emu_slot p, int64_t v) {
  int64_t *cells = emu_cells(a, p);
  a->hollow[p] = 0;
  for (uint32_t l = 0; l < EMU_LANES; l++)
    cells[l] = v;
}

void emu_each(struct emu_agent *a, const struct emu_insn *i) {
  push(a);
  set_all(a, i->out[0], 0);
}

void emu_each_next(struct emu_agent *a, const struct emu_insn *i) {
  int64_t k = ++top(a)->k;
  if (k < i->imm) {
    set_all(a, i->out[0], k);
    a->pc = i->target;
  } else {
    emu_exit(a, i);
  }
}

void emu_while(struct emu_agent *a, const struct emu_insn *i) {
  move_all(a, i);
  push(a);
}

void emu_while_test(struct emu_agent *a, const struct emu_insn *i) {
  emu_need(a, i, 0, a->active);
  move_all(a, i);
  a->active = emu_lanes(emu_in_bool(a, i, 0), a->active);
  if (is_long_enough(a))
    a->active = 0;
  if (!a->active)
    a->pc = i->target;
}

bool emu_need_all(struct emu_agent *a, const struct emu_insn *i) {
  if (a->active == EMU_ALL)
    return true;
  emu_fail(a, i, (uint32_t)__builtin_ctz(~a->active), DIAG_DIVERGED,
           "'%s' is for the whole warp, but lanes %#x alone have come to it",
           ir_info(i->n->opcode)->name, a->active);
  return false;
}

bool emu_uniform(struct emu_agent *a, const struct emu_insn *i, uint32_t k, int64_t *value) {
  const int64_t *cells = emu_in_int(a, i, k);
  uint32_t first = (uint32_t)__builtin_ctz(a->active);
  *value = cells[first];
  if (!emu_need(a, i, k, a->active))
    return false;
  if (k < 8 && i->uniform >> k & 1)
    return true;
  uint64_t differ = 0;
  for (uint32_t l = 0; l < EMU_LANES; l++)
    differ |= (uint64_t)cells[l] ^ (uint64_t)*value;
  EMU_EACH_LANE (l, differ ? a->active : 0)
    if (cells[l] != *value) {
      emu_fail(a, i, l, DIAG_DIVERGED,
               "operand %u of '%s' must be the same in all lanes: it is %lld and %lld", k + 1,
               ir_info(i->n->opcode)->name, (long long)*value, (long long)cells[l]);
      return false;
    }
  return true;
}

/* ---- scalars ---- */

/* Operand k of what is computed for lanes_of() lanes: of all of them, or of one that is active. */
static const void *operand(const struct emu_agent *a, const struct emu_insn *i, uint32_t k) {
  const char *x = emu_cells(a, i->in[k]);
  return i->once ? x + (size_t)__builtin_ctz(a->active) * i->bytes[k] : x;
}

static uint32_t lanes_of(const struct emu_insn *i) {
  return i->once ? 1 : EMU_LANES;
}

/* What was computed once is every lane's. */
static void spread(struct emu_agent *a, const struct emu_insn *i) {
  void *o = emu_cells(a, i->out[0]);
  if (!i->once)
    return;
  switch (i->bytes[3]) {
  case 1: memset(o, *(uint8_t *)o, EMU_LANES); break;
  case 4:
    for (uint32_t l = 1; l < EMU_LANES; l++)
      ((uint32_t *)o)[l] = *(uint32_t *)o;
    break;
  default:
    for (uint32_t l = 1; l < EMU_LANES; l++)
      ((uint64_t *)o)[l] = *(uint64_t *)o;
  }
}

static void elem(struct emu_agent *a, const struct emu_insn *i) {
  const void *x[3] = {NULL, NULL, NULL};
  for (uint32_t k = 0; k < i->n->n_in; k++)
    x[k] = operand(a, i, k);
  cells_elem(a->unit->e->opt->domain, i->n->opcode, i->in_dtype, i->out_dtype, lanes_of(i), x[0],
             x[1], x[2], emu_cells(a, i->out[0]));
  spread(a, i);
}

/* Pointers are cells of integers: comparing and choosing them is what select does with those. */
static void cast(struct emu_agent *a, const struct emu_insn *i) {
  cells_cast(a->unit->e->opt->domain, i->in_dtype, i->out_dtype, lanes_of(i), operand(a, i, 0),
             emu_cells(a, i->out[0]));
  spread(a, i);
}

static void thread_id(struct emu_agent *a, const struct emu_insn *i) {
  int64_t *o = emu_cells(a, i->out[0]);
  for (uint32_t l = 0; l < EMU_LANES; l++)
    o[l] = a->warp * EMU_LANES + l;
}

static void warp_id(struct emu_agent *a, const struct emu_insn *i) {
  set_all(a, i->out[0], a->warp);
}

static void lane_id(struct emu_agent *a, const struct emu_insn *i) {
  int64_t *o = emu_cells(a, i->out[0]);
  for (uint32_t l = 0; l < EMU_LANES; l++)
    o[l] = l;
}

static void block_id(struct emu_agent *a, const struct emu_insn *i) {
  set_all(a, i->out[0], (int64_t)a->cta->index);
}

static int64_t digits_of(const struct ir_attr *map, int64_t x, int64_t *left) {
  int64_t sum = 0;
  for (uint32_t k = 0; k < map->n_ints; k += 2) {
    int64_t extent = map->ints[k], step = map->ints[k + 1];
    if (extent & (extent - 1)) {
      sum += x % extent * step;
      x /= extent;
    } else { /* for what is below zero an error, whatever it gives */
      sum += (x & (extent - 1)) * step;
      x >>= __builtin_ctzll((uint64_t)extent);
    }
  }
  *left = x;
  return sum;
}

static void digits(struct emu_agent *a, const struct emu_insn *i) {
  const int64_t *x = operand(a, i, 0);
  int64_t *o = emu_cells(a, i->out[0]), left;
  uint32_t wrong = 0;
  for (uint32_t l = 0; l < lanes_of(i); l++) {
    o[l] = digits_of(i->data, x[l], &left);
    wrong |= (uint32_t)(left != 0 || x[l] < 0) << l;
  }
  wrong = i->once && wrong ? a->active : wrong & a->active;
  if (wrong) {
    uint32_t l = (uint32_t)__builtin_ctz(wrong);
    emu_fail(a, i, l, DIAG_OPERAND, "'digits' of %lld, which its map does not reach",
             (long long)x[i->once ? 0 : l]);
  }
  spread(a, i);
}

static void ptr_add(struct emu_agent *a, const struct emu_insn *i) {
  const int64_t *p = operand(a, i, 0), *k = operand(a, i, 1);
  int64_t *o = emu_cells(a, i->out[0]), size = emu_bytes(i->out_dtype);
  for (uint32_t l = 0; l < lanes_of(i); l++)
    o[l] = (int64_t)((uint64_t)p[l] + (uint64_t)k[l] * (uint64_t)size);
  spread(a, i);
}

/* to_bits, from_bits */
static void bits(struct emu_agent *a, const struct emu_insn *i) {
  const void *x = emu_cells(a, i->in[0]);
  void *o = emu_cells(a, i->out[0]);
  enum cell from = emu_cell(a->unit->e, i->in_dtype), to = emu_cell(a->unit->e, i->out_dtype);
  unsigned width = dtype_bits(i->out_dtype);
  uint64_t mask = width == 64 ? ~UINT64_C(0) : (UINT64_C(1) << width) - 1;
  for (uint32_t l = 0; l < EMU_LANES; l++)
    cells_put_bits(i->out_dtype, to, o, l, cells_get_bits(i->in_dtype, from, x, l) & mask);
}

static void random_words(struct emu_agent *a, const struct emu_insn *i) {
  const int64_t *seed = emu_in_int(a, i, 0), *counter = emu_in_int(a, i, 1);
  int64_t *o = emu_cells(a, i->out[0]);
  for (uint32_t l = 0; l < EMU_LANES; l++)
    o[l] = (int32_t)random_word((uint64_t)seed[l], (uint64_t)counter[l], (unsigned)i->imm);
}

/* Payloads stay: rounding is no law of theirs. */
static void tf32(struct emu_agent *a, const struct emu_insn *i) {
  const void *x = emu_cells(a, i->in[0]);
  void *o = emu_cells(a, i->out[0]);
  if (emu_cell(a->unit->e, i->out_dtype) == CELL_PAYLOAD) {
    memcpy(o, x, EMU_LANES * 8);
    return;
  }
  for (uint32_t l = 0; l < EMU_LANES; l++)
    ((float *)o)[l] = num_round_tf32(((const float *)x)[l]);
}

static void ex2(struct emu_agent *a, const struct emu_insn *i) {
  float *o = emu_cells(a, i->out[0]);
  cells_elem(a->unit->e->opt->domain, IR_EXP2, DT_F32, DT_F32, EMU_LANES, emu_cells(a, i->in[0]),
             NULL, NULL, o);
  for (uint32_t l = 0; l < EMU_LANES && emu_cell(a->unit->e, DT_F32) == CELL_FLOAT; l++)
    o[l] = o[l] < 0x1p-126f ? 0 : o[l]; /* .ftz; NaN stays */
}

static void shuffle(struct emu_agent *a, const struct emu_insn *i) {
  const char *x = emu_cells(a, i->in[0]);
  char *o = emu_cells(a, i->out[0]);
  size_t size = cell_size(emu_cell(a->unit->e, i->out_dtype));
  if (!emu_need_all(a, i))
    return;
  for (uint32_t l = 0; l < EMU_LANES; l++)
    memcpy(o + l * size, x + (l ^ (uint32_t)i->imm) * size, size);
}

/* ---- fragments ---- */

static bool inside(struct emu_agent *a, const struct emu_insn *i, const struct emu_frag *f,
                   int64_t k) {
  if (k >= 0 && k < f->n)
    return true;
  emu_fail(a, i, EMU_NO_LANE, DIAG_MACHINE_ACCESS,
           "'%s' of element %lld of a fragment of which a thread holds %u",
           ir_info(i->n->opcode)->name, (long long)k, f->n);
  return false;
}

void *emu_frag_read(struct emu_agent *a, const struct emu_insn *i, struct emu_frag *f, int64_t k) {
  if (!inside(a, i, f, k) || (a->mma_open && !emu_may_touch(a, i, f, k, false)))
    return NULL;
  f->touched = true;
  uint32_t missing = a->active & ~f->set[k];
  if (missing) {
    emu_fail(a, i, (uint32_t)__builtin_ctz(missing), DIAG_UNWRITTEN,
             "'%s' reads element %lld of a fragment before anything has written it",
             ir_info(i->n->opcode)->name, (long long)k);
    return NULL;
  }
  return f->cells + (size_t)k * EMU_LANES * cell_size(f->cell);
}

void *emu_frag_write(struct emu_agent *a, const struct emu_insn *i, struct emu_frag *f, int64_t k,
                     uint32_t hollow) {
  if (!inside(a, i, f, k) || (a->mma_open && !emu_may_touch(a, i, f, k, true)))
    return NULL;
  f->touched = true;
  f->set[k] |= a->active;
  f->hollow[k] = (f->hollow[k] & ~a->active) | (hollow & a->active);
  return f->cells + (size_t)k * EMU_LANES * cell_size(f->cell);
}

static void ffill(struct emu_agent *a, const struct emu_insn *i) {
  struct emu_frag *f = emu_frag_of(a, i, 0);
  const void *x = emu_cells(a, i->in[0]);
  for (uint32_t k = 0; k < f->n; k++) {
    void *o = emu_frag_write(a, i, f, k, emu_hollow(a, i->in[0]));
    if (!o)
      return;
    copy_lanes(o, x, (uint32_t)cell_size(f->cell), a->active);
  }
}

static void fget(struct emu_agent *a, const struct emu_insn *i) {
  struct emu_frag *f = emu_frag_of(a, i, 0);
  int64_t at;
  if (!emu_uniform(a, i, 0, &at))
    return;
  for (uint32_t k = 0; k < i->n->n_out; k++) {
    const void *x = emu_frag_read(a, i, f, at + k);
    if (!x)
      return;
    if (a->unit->e->skeleton && dtype_is_float(f->dtype))
      continue;
    memcpy(emu_cells(a, i->out[k]), x, EMU_LANES * cell_size(f->cell));
    a->hollow[i->out[k]] = f->hollow[at + k];
  }
}

static void fput(struct emu_agent *a, const struct emu_insn *i) {
  const struct emu *e = a->unit->e;
  struct emu_frag *f = emu_frag_of(a, i, 0);
  int64_t at, rounded[EMU_LANES];
  if (!emu_uniform(a, i, 0, &at))
    return;
  for (uint32_t k = 1; k < i->n->n_in; k++) {
    enum dtype from = emu_dtype(e, i->n->in[k]);
    const void *x = emu_cells(a, i->in[k]);
    void *o = emu_frag_write(a, i, f, at + k - 1, emu_hollow(a, i->in[k]));
    if (!o)
      return;
    if (e->skeleton && dtype_is_float(f->dtype))
      continue;
    if (from != f->dtype) {
      cells_cast(e->opt->domain, from, f->dtype, EMU_LANES, x, rounded);
      x = rounded;
    }
    copy_lanes(o, x, (uint32_t)cell_size(f->cell), a->active);
  }
}

/* ---- dispatch ---- */

static void barrier(struct emu_agent *a, const struct emu_insn *i) {
  if (emu_need_all(a, i))
    emu_bar_sync(a, 0, a->unit->e->warps * EMU_LANES);
}

static emu_fn *const table[IR_OPCODE_COUNT] = {
    [IR_CAST] = cast,
    [IR_THREAD_ID] = thread_id,
    [IR_WARP_ID] = warp_id,
    [IR_LANE_ID] = lane_id,
    [IR_BLOCK_ID] = block_id,
    [IR_DIGITS] = digits,
    [IR_PTR_ADD] = ptr_add,
    [IR_TF32] = tf32,
    [IR_EX2] = ex2,
    [IR_UNZIP] = emu_run_unzip,
    [IR_TO_BITS] = bits,
    [IR_FROM_BITS] = bits,
    [IR_RANDOM] = random_words,
    [IR_SHUFFLE] = shuffle,
    [IR_FFILL] = ffill,
    [IR_FGET] = fget,
    [IR_FPUT] = fput,
    [IR_GLOAD] = emu_gload,
    [IR_GSTORE] = emu_gstore,
    [IR_GATOMIC] = emu_gatomic,
    [IR_SLOAD] = emu_sload,
    [IR_SSTORE] = emu_sstore,
    [IR_CP_ASYNC] = emu_cp_async,
    [IR_PIPE_COMMIT] = emu_pipe_commit,
    [IR_PIPE_WAIT] = emu_pipe_wait,
    [IR_BARRIER] = barrier,
    [IR_LDMATRIX] = emu_run_ldmatrix,
    [IR_STMATRIX] = emu_run_stmatrix,
    [IR_MMA] = emu_run_mma,
    [IR_GPRINT] = emu_gprint,
    [IR_CHECK] = emu_check,
    [IR_PIPE_INIT] = emu_pipe_init,
    [IR_FENCE_INIT] = emu_fence_init,
    [IR_SLOT_ACQUIRE] = emu_slot_acquire,
    [IR_SLOT_EXPECT] = emu_slot_expect,
    [IR_SLOT_FILL] = emu_slot_fill,
    [IR_SLOT_WAIT] = emu_slot_wait,
    [IR_SLOT_RELEASE] = emu_slot_release,
    [IR_SLOT_NEXT] = emu_slot_next,
    [IR_SLOT_SKIP] = emu_slot_next,
    [IR_SLOT_AT] = emu_slot_at,
    [IR_FENCE_ASYNC] = emu_fence_async,
    [IR_TMAP_PREFETCH] = emu_no_effect,
    [IR_TMA_LOAD] = emu_tma_load,
    [IR_TMA_STORE] = emu_tma_store,
    [IR_BULK_COMMIT] = emu_bulk_commit,
    [IR_BULK_WAIT] = emu_bulk_wait,
    [IR_PIN] = emu_no_effect,
    [IR_RENEW] = emu_no_effect,
    [IR_DESC] = emu_desc,
    [IR_WGMMA] = emu_wgmma,
    [IR_WGMMA_FENCE] = emu_wgmma_fence,
    [IR_WGMMA_COMMIT] = emu_wgmma_commit,
    [IR_WGMMA_WAIT] = emu_wgmma_wait,
    [IR_WARPGROUP_ID] = emu_warpgroup_id,
    [IR_CLUSTER_RANK] = emu_cluster_rank,
    [IR_GRID_SIZE] = emu_grid_size,
    [IR_IN_ROLE] = emu_in_role,
    [IR_BAR_SYNC] = emu_bar_op,
    [IR_BAR_ARRIVE] = emu_bar_op,
    [IR_CLUSTER_ARRIVE] = emu_cluster_arrive,
    [IR_CLUSTER_WAIT] = emu_cluster_wait,
    [IR_SET_REGS] = emu_set_regs,
    [IR_RLOAD] = emu_rload,
    [IR_RSTORE] = emu_rstore,
    [IR_PDL_WAIT] = emu_pdl_wait,
    [IR_PDL_LAUNCH] = emu_no_effect,
};

emu_fn *emu_find_fn(enum ir_opcode opcode) {
  return table[opcode] ? table[opcode] : interp_is_elem(opcode) ? elem : NULL;
}

static void count_step(struct emu_agent *a) {
  struct emu_unit *u = a->unit;
  u->steps++;
  if (u->steps >= u->poll_at) {
    u->poll_at = u->steps + POLL_STEPS;
    emu_poll(u);
  }
}

void emu_run_warp(struct emu_agent *a, uint32_t budget) {
  const struct emu_plan *plan = &a->unit->e->plan;
  for (; budget && !a->unit->stopped && a->state == EMU_READY; budget--) {
    const struct emu_insn *i = &plan->insn[a->pc++];
    a->at = i;
    if (!i->fn) {
      if (emu_async_end(a))
        a->state = EMU_DONE;
      return;
    }
    count_step(a);
    i->fn(a, i);
    if (i->follows && a->any_hollow)
      emu_follow(a, i);
  }
}
