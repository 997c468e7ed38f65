/* Resolves the knobs of the schedule, and cuts each dot over warps.
 *
 * Before: paths chosen; knobs given by the caller are in the config. After: all knobs are in the
 * config, but for those of loops (split_k, peel) and `recompute`, which are 1, 0 and 0 where they
 * are not there, `staging` where it is all panels of a tile, `promote` where it is 3, `spare` where
 * nothing is given up, and `blocks` of kernels without dots, which pass_check_budgets.c sets when
 * it knows the registers; every dot has `warps`, and paths of stores may be open where there are
 * none. Rules, where nothing is given (figures: H200, bf16 4096^3 and rows of 1024 to 32768,
 * docs/performance.md):
 *   warps     one per 64x64 of the largest dot's tile (per 32x64 where accesses have edges or are
 *             scalar, or dots are multiply-adds), at least 4 where there are blocks for them; as
 *             square as that goes
 *   threads   with dots: their warps. Else 64 bytes a thread of the largest tile (four accesses on
 *             their way), at most 512 threads unless a thread would hold over 64 elements
 *   blocks    2 an SM for at most 4 warps of dots, else 1
 *   stages    as many slots as fit beside `blocks` blocks, 2 to 4; with warpgroups, whose copies
 *             the tensor memory unit makes, as many as fit beside the results, up to 8
 *   staging   all panels of a tile; where that leaves fewer than 3 slots (or than are asked for),
 *             half of them, and again, down to 2
 *   group     8 where dots share rows and columns over a grid of two axes or more
 *   prefetch  where a block is alone on its SM, nothing else fills the gap at an iteration's start
 *             (0.61 against 0.51 of cuBLAS for 128x256); two blocks fill each other's (0.57 against
 *             0.53 for 128x128), and the loop costs half the compile time
 *   store     with dots: through shared memory where a block is alone: no one computes while it
 *             stores; every store whose path is not pinned takes that. Without: each store by
 *             itself, when layouts are known (pass_assign_layouts.c): 1 if any goes that way
 *   recompute where long tiles would leave an SM half of its threads, and need not (long_tiles.c)
 *   spare     nothing. What the compiler makes of a kernel is not known here: where it had to
 *             spill, the kernel is lowered again with the next step (api/variant.c), each with
 *             those before it:
 *               1  one block an SM: its threads may have all registers that the block leaves;
 *                  nothing is loaded ahead, and what operands of dots are computed from is read
 *                  there, a few elements at a time (path `direct`)
 *               2  twice the warps: half the fragments each; 8 where dots have more, as each thread
 *                  may then have 255 registers, and half of what it needs is not halved by more
 *               3  the same again
 *             what the caller gave or pinned stays */
#include "codegen/box.h"
#include "codegen/layouts.h"
#include "codegen/pass.h"
#include "codegen/schedule.h"

/* Accumulators a thread: with 64x64 per warp, shared-memory reads stay below the matrix rate. That
 * leaves no registers for edges, scalar copies or operands of multiply-adds. */
#define ACC_MOST         128
#define ACC_LESS         64
#define ACC_TWICE        32   /* where there is about as much else to hold */
#define SMEM_SLACK       2048 /* for reductions and small converts */
#define ELEMS_PER_THREAD 64
#define OTHERS           64 /* registers beside tiles: fragments of a step, addresses */
#define READ_MOST        16 /* elements of a thread that are read one by one into registers */
#define MOST_SLOTS       8  /* more hide no more latency, by the default rule */
#define FEW_SLOTS        3  /* fewer, and products wait for copies */

struct survey {
  VEC(struct ir_op) dots, stores;
  VEC(struct ir_op) loads, fed; /* into registers; into shared memory, for dots */
  struct arena *scratch;
  int64_t most_macs;
  struct ir_op main_dot;
  int64_t largest_tile, widest; /* elements of the largest tile in registers; bytes of an element */
  int64_t fixed_bytes;          /* operands that are gathered */
  bool plain;                   /* no access has edges to check or is scalar; all dots are mma
                                   that takes few registers */
};

static int64_t round_up(int64_t n, int64_t to) {
  return (n + to - 1) / to * to;
}

/* Do elements, or the two parts of split ones, take two registers? */
static bool is_wide(const struct ir_module *m, struct ir_op o) {
  const struct ir_mma *x = cg_mma_of(m, o);
  return x && (dtype_bits(x->acc) > 32 || str_eq(cg_attr_word(m, o, IR_ATTR_prec), "tf32x3"));
}

/* Is an operand made of 4-bit elements? Each is loaded, if there are edges, and unpacked by
 * itself. */
static bool is_unpacked(const struct ir_module *m, struct ir_op o) {
  for (uint32_t i = 0; i < 2; i++) {
    struct ir_op def = ir_value_at(m, ir_op_at(m, o)->in[i])->def;
    while (def.id &&
           (ir_op_at(m, def)->opcode == IR_TRANSPOSE || ir_op_at(m, def)->opcode == IR_CAST) &&
           dtype_bits((enum dtype)ir_type_of(m, ir_op_at(m, def)->in[0]).dtype) > 4)
      def = ir_value_at(m, ir_op_at(m, def)->in[0])->def;
    if (def.id && ir_op_at(m, def)->opcode == IR_CAST)
      return true;
  }
  return false;
}

static void look(void *user, struct ir_module *m, struct ir_op o) {
  struct survey *s = user;
  const struct ir_opnode *n = ir_op_at(m, o);
  if (n->opcode == IR_DOT) {
    s->plain =
        s->plain && cg_mma_of(m, o) && !is_wide(m, o) && !cg_mma_converts(m, cg_mma_of(m, o)->a);
    struct ir_type a = ir_type_of(m, n->in[0]), c = ir_type_of(m, n->in[2]);
    int64_t macs = c.dim[0] * c.dim[1] * a.dim[1];
    VEC_PUSH(s->scratch, &s->dots, o);
    if (macs > s->most_macs) {
      s->most_macs = macs;
      s->main_dot = o;
    }
  }
  if (cg_takes_indices(n->opcode)) {
    struct ir_type t = ir_type_of(m, cg_selected(m, o));
    int64_t elems = t.kind == IR_TILE ? ir_elems(t) : 1,
            bytes = dtype_bytes((enum dtype)t.dtype, 1);
    s->largest_tile = elems > s->largest_tile ? elems : s->largest_tile;
    if (str_eq(cg_attr_word(m, o, IR_ATTR_path), "staged"))
      s->fixed_bytes += round_up(elems * bytes, 128);
    s->widest = bytes > s->widest ? bytes : s->widest;
    s->plain = false;
  }
  if (n->opcode != IR_LOAD && n->opcode != IR_STORE)
    return;
  if (n->opcode == IR_STORE)
    VEC_PUSH(s->scratch, &s->stores, o);
  const struct ir_attr *masks = ir_get_attr(m, o, IR_ATTR_masks);
  for (uint32_t d = 0; d < masks->n_ints; d++)
    s->plain = s->plain && !masks->ints[d];
  s->plain = s->plain && ir_attr_int(m, o, IR_ATTR_vec, 1) > 1;
  struct ir_type t = ir_type_of(m, n->opcode == IR_LOAD ? n->out[0] : n->in[n->n_in - 1]);
  int64_t bytes = dtype_bytes((enum dtype)t.dtype, 1);
  const char *path = cg_attr_word(m, o, IR_ATTR_path);
  if (n->opcode == IR_LOAD && str_eq(path, "frag"))
    VEC_PUSH(s->scratch, &s->loads, o);
  if (n->opcode == IR_STORE || cg_goes_to_registers(m, o)) {
    int64_t elems = ir_elems(t);
    s->largest_tile = elems > s->largest_tile ? elems : s->largest_tile;
    s->widest = bytes > s->widest ? bytes : s->widest;
  } else {
    VEC_PUSH(s->scratch, &s->fed, o);
  }
}

/* Warps over a tile: least padding first, then least operand traffic (rows + columns of a warp's
 * part), then more columns. Fixed parts of the grid stay. */
static struct cg_warps cut(int64_t rows, int64_t cols, uint32_t warps, int64_t fixed_rows,
                           int64_t fixed_cols) {
  static const struct cg_mma_atom usual = {.m = 16, .k = 16, .per = 2};
  struct cg_warps best = {1, warps};
  int64_t best_area = INT64_MAX, best_edge = INT64_MAX;
  for (uint32_t r = 1; r <= warps; r++) {
    if (warps % r || (fixed_rows > 0 && r != (uint32_t)fixed_rows) ||
        (fixed_cols > 0 && warps / r != (uint32_t)fixed_cols))
      continue;
    struct cg_warps w = {r, warps / r};
    struct cg_mma_cut c = cg_mma_cut(rows, cols, w, &usual);
    int64_t wr = 16 * (int64_t)c.blocks, wc = 8 * (int64_t)c.n8;
    int64_t area = wr * w.rows * wc * w.cols, edge = wr + wc;
    if (area < best_area || (area == best_area && edge < best_edge)) {
      best = w;
      best_area = area;
      best_edge = edge;
    }
  }
  return best;
}

static uint32_t dot_warps(struct ir_module *m, const struct survey *s) {
  int64_t wm = cg_knob_get(m, CG_KNOB_WARPS_M), wn = cg_knob_get(m, CG_KNOB_WARPS_N);
  int64_t threads = cg_knob_get(m, CG_KNOB_THREADS);
  const struct ir_attr *pin = ir_get_attr(m, s->main_dot, IR_ATTR_warps);
  if (pin)
    return (uint32_t)(pin->ints[0] * pin->ints[1]);
  if (wm > 0 && wn > 0)
    return (uint32_t)(wm * wn);
  if (threads > 0)
    return (uint32_t)threads / 32;
  struct ir_type c = ir_type_of(m, ir_op_at(m, s->main_dot)->in[2]);
  int64_t area = c.dim[0] * c.dim[1];
  int64_t blocks = round_up(c.dim[0], 16) / 16 * (round_up(c.dim[1], 8) / 8);
  const struct ir_mma *x = cg_mma_of(m, s->main_dot);
  /* Operands read element by element need an address for nearly each. */
  bool elements = x && dtype_bits(x->a) >= 32 &&
                  (cg_is_mn_inner(m, s->main_dot, 0) || cg_is_mn_inner(m, s->main_dot, 1));
  bool twice =
      x && (is_wide(m, s->main_dot) || is_unpacked(m, s->main_dot) || (elements && !s->plain));
  int64_t warps = 1, most = s->plain ? ACC_MOST : twice ? ACC_TWICE : ACC_LESS;
  int64_t up_to = s->plain || twice ? 16 : 8;
  while ((warps < up_to && area > warps * 32 * most) ||
         (warps < 16 && area > warps * 32 * ACC_MOST) || (warps < 4 && blocks >= 8 * warps))
    warps *= 2;
  for (int64_t step = 2; step <= cg_knob_get(m, CG_KNOB_SPARE); step++)
    warps = warps > 8 ? 8 : 2 * warps;
  int64_t fixed = wm > 0 ? wm : wn > 0 ? wn : 1;
  return (uint32_t)round_up(warps, fixed);
}

static uint32_t free_threads(struct ir_module *m, const struct survey *s) {
  int64_t bytes = s->widest ? s->widest : 4;
  int64_t per = 64 / bytes, threads = 32;
  while (threads < 512 && threads * per < s->largest_tile)
    threads *= 2;
  while (threads < 1024 && threads * ELEMS_PER_THREAD < s->largest_tile)
    threads *= 2;
  for (int64_t step = 2; step <= cg_knob_get(m, CG_KNOB_SPARE) && threads < 1024; step++)
    threads *= 2;
  return (uint32_t)threads;
}

static void put_auto(struct ir_module *m, enum cg_knob k, int64_t value) {
  if (cg_knob_get(m, k) == CG_AUTO)
    cg_knob_put(m, k, value);
}

/* Bytes of a slot of the loads that run ahead in loops; *once: of what else is loaded for dots. */
static int64_t slot_bytes(struct ir_module *m, struct survey *s, int64_t *once) {
  struct cg_uses u = cg_collect_uses(m, s->scratch);
  int64_t slot = 0;
  for (uint32_t i = 0; i < s->fed.n; i++) {
    struct ir_op o = s->fed.at[i];
    struct cg_use use = cg_dot_of_load(m, &u, o);
    struct cg_matrix x = cg_matrix_of_load(m, o, use, cg_dot_layout(m, s->scratch, use.op));
    enum dtype t = (enum dtype)ir_type_of(m, ir_op_at(m, o)->out[0]).dtype;
    int64_t bytes = cg_matrix_bytes(t, x.outer, x.inner);
    *(ir_block_at(m, ir_op_at(m, o)->block)->parent.id ? &slot : once) += bytes;
  }
  return slot;
}

/* Slots of pipes that the tensor memory unit fills: as many as fit beside the results' way out. 0:
 * no loop loads anything. */
static int64_t unit_stages(struct ir_module *m, struct survey *s) {
  int64_t room = cg_target_of(m)->smem_per_block - SMEM_SLACK, slot = 0;
  for (uint32_t i = 0; i < s->fed.n; i++) {
    struct ir_op o = s->fed.at[i];
    struct ir_type t = ir_type_of(m, ir_op_at(m, o)->out[0]);
    int64_t bytes = ir_elems(t) * dtype_bytes((enum dtype)t.dtype, 1);
    if (ir_block_at(m, ir_op_at(m, o)->block)->parent.id)
      slot += bytes;
    else
      room -= bytes;
  }
  for (uint32_t i = 0; i < s->stores.n; i++) {
    const struct ir_opnode *n = ir_op_at(m, s->stores.at[i]);
    struct ir_type t = ir_type_of(m, n->in[n->n_in - 1u]);
    int64_t bytes = ir_elems(t) * dtype_bytes((enum dtype)t.dtype, 1);
    if (str_eq(cg_attr_word(m, s->stores.at[i], IR_ATTR_path), "tma"))
      bytes = cg_staging_bytes(m, t, cg_knob_get(m, CG_KNOB_WARPGROUPS));
    else
      bytes += bytes / 8; /* rows of the way there are padded */
    if (cg_knob_get(m, CG_KNOB_STORE) != 0)
      room -= round_up(bytes, 1024);
  }
  for (uint32_t i = 0; i < s->dots.n; i++) {
    struct ir_type t = ir_type_of(m, ir_op_at(m, s->dots.at[i])->in[1]);
    if (cg_has_a_in_registers(m, s->dots.at[i]))
      room -= cg_crossing_bytes(m, s->dots.at[i]);
    if (!cg_takes_loaded(m, s->dots.at[i], 1))
      room -= round_up(ir_elems(t) * dtype_bytes((enum dtype)t.dtype, 1), 1024);
  }
  room -= cg_parts_bytes(m);
  return slot == 0 ? 0 : room < slot ? 1 : room / slot;
}

/* The largest number of panels of a warpgroup in a store of the unit. */
static int64_t most_panels(struct ir_module *m, const struct survey *s) {
  int64_t most = 0, groups = cg_knob_get(m, CG_KNOB_WARPGROUPS);
  for (uint32_t i = 0; i < s->stores.n; i++) {
    const struct ir_opnode *n = ir_op_at(m, s->stores.at[i]);
    int64_t panels = cg_panels(ir_type_of(m, n->in[n->n_in - 1u]), groups);
    if (str_eq(cg_attr_word(m, s->stores.at[i], IR_ATTR_path), "tma") && panels > most)
      most = panels;
  }
  return most;
}

/* Where results of 32 bits leave no room for slots, their panels take turns. */
static void fill_unit_stages(struct ir_module *m, struct survey *s) {
  int64_t asked = cg_knob_get(m, CG_KNOB_STAGES), want = asked > 0 ? asked : FEW_SLOTS;
  int64_t stages = unit_stages(m, s), panels = most_panels(m, s) / 2;
  if (cg_knob_get(m, CG_KNOB_STAGING) == CG_AUTO && stages > 0)
    for (; stages < want && panels >= CG_LEAST_PANELS; panels /= 2) {
      cg_knob_put(m, CG_KNOB_STAGING, panels);
      stages = unit_stages(m, s);
    }
  put_auto(m, CG_KNOB_STAGES, stages > MOST_SLOTS ? MOST_SLOTS : stages < 1 ? 1 : stages);
}

static void fill_stages(struct ir_module *m, struct survey *s) {
  const struct cg_target *t = cg_target_of(m);
  int64_t blocks = cg_knob_get(m, CG_KNOB_BLOCKS), stages = 1, fixed = s->fixed_bytes;
  int64_t slot = slot_bytes(m, s, &fixed);
  if (slot) {
    for (;;) {
      int64_t room = (int64_t)t->smem_per_sm / (blocks > 0 ? blocks : 1) - t->smem_reserved;
      room = (room < t->smem_per_block ? room : t->smem_per_block) - SMEM_SLACK;
      room = room > fixed ? room - fixed : 0;
      stages = room / slot;
      if (stages >= 2 || blocks <= 1 || cg_knob_get(m, CG_KNOB_STAGES) != CG_AUTO)
        break;
      cg_knob_put(m, CG_KNOB_BLOCKS, blocks = 1);
    }
    stages = stages > 4 ? 4 : stages < 1 ? 1 : stages;
  }
  put_auto(m, CG_KNOB_STAGES, stages);
}

/* Registers of a thread for a tile, at least. */
static int64_t regs_of(const struct ir_module *m, struct ir_val v, int64_t threads) {
  struct ir_type t = ir_type_of(m, v);
  return ir_elems(t) * dtype_bytes((enum dtype)t.dtype, 1) / 4 / threads;
}

/* Loads that a dot's operand is computed from: read there, a few elements at a time, where
 * addresses for each element would take too many registers, or where registers are short. */
static void fill_reads(struct ir_module *m, struct survey *s) {
  struct cg_uses u = cg_collect_uses(m, s->scratch);
  int64_t threads = cg_knob_get(m, CG_KNOB_THREADS), held = 0;
  const struct cg_target *t = cg_target_of(m);
  int64_t limit = t->regs_per_sm / threads, most = t->max_regs_per_thread;
  for (uint32_t i = 0; i < s->loads.n; i++)
    held += regs_of(m, ir_op_at(m, s->loads.at[i])->out[0], threads);
  if (s->dots.n)
    held += regs_of(m, ir_op_at(m, s->main_dot)->out[0], threads);
  bool tight = held + OTHERS > (limit < most ? limit : most);
  for (uint32_t i = 0; i < s->loads.n; i++) {
    struct ir_op o = s->loads.at[i];
    int64_t each = ir_elems(ir_type_of(m, ir_op_at(m, o)->out[0])) / threads;
    bool many = ir_attr_int(m, o, IR_ATTR_vec, 1) == 1 && each > READ_MOST;
    if ((many || tight || cg_knob_get(m, CG_KNOB_SPARE) > 0) && cg_only_computes(m, &u, o).id &&
        !cg_is_pinned(m, cg_attr_word(m, o, IR_ATTR_label), "path"))
      cg_set_word(m, o, IR_ATTR_path, "direct");
  }
}

bool cg_pass_fill_schedule(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  struct survey s = {.scratch = ctx->scratch, .most_macs = -1, .plain = true};
  bool ok = true;
  bool spares = cg_knob_get(m, CG_KNOB_SPARE) > 0;
  ir_walk(m, m->body, look, &s);
  uint32_t warps = s.dots.n ? dot_warps(m, &s) : 0;
  int64_t wm = cg_knob_get(m, CG_KNOB_WARPS_M), wn = cg_knob_get(m, CG_KNOB_WARPS_N);
  int64_t threads = cg_knob_get(m, CG_KNOB_THREADS);
  if (s.dots.n && (warps > 32 || (wm > 0 && warps % wm) || (wn > 0 && warps % wn) ||
                   (threads > 0 && warps * 32 != threads))) {
    cg_error(m, ctx->diags, s.main_dot, DIAG_LIMIT,
             "schedule asks for warps_m = %lld, warps_n = %lld, threads = %lld (-1: not given): "
             "warps_m * warps_n * 32 must be the threads of the block, at most 1024",
             (long long)wm, (long long)wn, (long long)threads);
    ok = false;
  }
  for (uint32_t i = 0; i < s.dots.n && ok; i++) {
    struct ir_op o = s.dots.at[i];
    struct ir_type c = ir_type_of(m, ir_op_at(m, o)->in[2]);
    bool is_main = o.id == s.main_dot.id;
    const struct ir_attr *pin = ir_get_attr(m, o, IR_ATTR_warps);
    if (pin && pin->ints[0] * pin->ints[1] != warps) {
      cg_error(m, ctx->diags, o, DIAG_CONFIG,
               "schedule `%s.warps` is %lldx%lld: the block has %u warps",
               cg_attr_word(m, o, IR_ATTR_label), (long long)pin->ints[0], (long long)pin->ints[1],
               warps);
      return false;
    }
    struct cg_warps w =
        pin ? (struct cg_warps){(uint32_t)pin->ints[0], (uint32_t)pin->ints[1]}
            : cut(c.dim[0], c.dim[1], warps, is_main ? wm : CG_AUTO, is_main ? wn : CG_AUTO);
    cg_set_ints(m, o, IR_ATTR_warps, 2, (int64_t[]){w.rows, w.cols});
    if (is_main) {
      cg_knob_put(m, CG_KNOB_WARPS_M, w.rows);
      cg_knob_put(m, CG_KNOB_WARPS_N, w.cols);
    }
  }
  if (!ok)
    return false;
  put_auto(m, CG_KNOB_WARPS_M, 1);
  put_auto(m, CG_KNOB_WARPS_N, 1);
  put_auto(m, CG_KNOB_THREADS, s.dots.n ? (int64_t)warps * 32 : (int64_t)free_threads(m, &s));
  if (s.dots.n || spares)
    put_auto(m, CG_KNOB_BLOCKS, warps <= 4 && !spares ? 2 : 1);
  if (cg_knob_get(m, CG_KNOB_WARPGROUPS) > 0)
    fill_unit_stages(m, &s);
  else
    fill_stages(m, &s);
  fill_reads(m, &s);
  bool alone = cg_knob_get(m, CG_KNOB_BLOCKS) == 1;
  put_auto(m, CG_KNOB_GROUP, s.dots.n && m->n_grid >= 2 ? 8 : 1);
  bool open = !s.dots.n && cg_knob_get(m, CG_KNOB_STORE) == CG_AUTO;
  put_auto(m, CG_KNOB_PREFETCH, s.dots.n && alone && !spares);
  if (!s.dots.n && cg_knob_get(m, CG_KNOB_RECOMPUTE) == CG_AUTO &&
      cg_wants_recompute(m, s.scratch, cg_knob_get(m, CG_KNOB_THREADS)))
    cg_knob_put(m, CG_KNOB_RECOMPUTE, 1);
  put_auto(m, CG_KNOB_STORE, s.dots.n && alone);
  for (uint32_t i = 0; i < s.stores.n && !open; i++)
    if (!ir_get_attr(m, s.stores.at[i], IR_ATTR_path))
      cg_set_word(m, s.stores.at[i], IR_ATTR_path,
                  cg_knob_get(m, CG_KNOB_STORE) == 1 ? "staged" : "frag");
  *changed = true;
  return true;
}
