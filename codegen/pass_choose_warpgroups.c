/* Kernels whose dots all go to the matrix unit of warpgroups (wgmma), fed by the tensor memory
 * unit.
 *
 * Before: accesses bounded. After, where the kernel qualifies: every dot has its instruction and
 * its warps; every load that feeds one, and every store that can, goes through the tensor memory
 * unit (path = tma); a left operand that is computed stays in registers (a_path = frag), a
 * right one goes to shared memory (b_path = computed). A kernel
 * that does not qualify stays as it is; where the knob `warpgroups` asks for it, it is refused with
 * the reason. A kernel is taken whole: its dots meet in registers, whose layouts the instructions
 * fix.
 *
 * Where the knob `cluster` asks for clusters, they lie along the axis of the grid along which they
 * share most, or that of the knob `cluster_axis`.
 *
 * Warpgroups lie along the rows of a dot first; as many as its accumulator needs at 128 registers
 * a thread, at least two where there are rows for them. */
#include "base/check.h"
#include "codegen/cluster.h"
#include "codegen/pass.h"
#include "codegen/schedule.h"

#define MAX_GROUPS    3
#define PANEL         64  /* columns of a panel of 16-bit elements */
#define ACC_REGS      128 /* of an accumulator: an instruction of 256 columns */
#define CONSUMER_REGS 240 /* with two consumers and a producer of a warpgroup each */
#define PRODUCER_REGS 24
#define PRODUCER_MORE 40 /* where it spilled: clusters, tiles that land in staging, edges */

struct chooser {
  struct ir_module *m;
  struct arena *a;
  struct cg_uses uses;
  const struct ir_intervals *intervals;
  VEC(struct ir_op) dots, loads, stores;
};

static void list(void *user, struct ir_module *m, struct ir_op o) {
  struct chooser *c = user;
  if (ir_op_at(m, o)->opcode == IR_DOT)
    VEC_PUSH(c->a, &c->dots, o);
  if (ir_op_at(m, o)->opcode == IR_STORE)
    VEC_PUSH(c->a, &c->stores, o);
}

static bool is_replayed(const struct ir_module *m, struct ir_val v, int depth) {
  const struct ir_value *x = ir_value_at(m, v);
  if (x->type.kind == IR_TILE || depth > 64)
    return false;
  if (x->block.id) {
    struct ir_op loop = ir_block_at(m, x->block)->parent;
    return !loop.id || (ir_op_at(m, loop)->opcode == IR_FOR && x->index == 0);
  }
  const struct ir_opnode *n = ir_op_at(m, x->def);
  if (!(ir_info(n->opcode)->traits & IR_PURE))
    return false;
  for (uint32_t i = 0; i < n->n_in; i++)
    if (!is_replayed(m, n->in[i], depth + 1))
      return false;
  return true;
}

bool cg_is_replayed(const struct ir_module *m, struct ir_val v) {
  return is_replayed(m, v, 0);
}

/* Loops alone lie around the op, and the producer can run them. */
static bool is_reached(const struct ir_module *m, struct ir_op o) {
  for (;;) {
    struct ir_op loop = ir_block_at(m, ir_op_at(m, o)->block)->parent;
    if (!loop.id)
      return true;
    if (ir_op_at(m, loop)->opcode != IR_FOR)
      return false;
    for (uint32_t i = 0; i < 3; i++)
      if (!cg_is_replayed(m, ir_op_at(m, loop)->in[i]))
        return false;
    o = loop;
  }
}

static void mark(struct chooser *c, struct ir_op load) {
  for (uint32_t i = 0; i < c->loads.n; i++)
    if (c->loads.at[i].id == load.id)
      return;
  VEC_PUSH(c->a, &c->loads, load);
}

/* NULL, or why the unit cannot load for a dot: the tile, and what the producer needs for it. */
static const char *check_load(struct chooser *c, struct ir_op load, struct cg_box *box) {
  struct ir_module *m = c->m;
  const struct ir_opnode *n = ir_op_at(m, load);
  if (cg_is_stored(m, load))
    return "an operand of a dot lies in a tensor that the kernel writes";
  for (uint32_t k = 0; k < n->n_in; k++)
    if (!cg_is_replayed(m, n->in[k]))
      return "where an operand of a dot lies is computed from data";
  if (!is_reached(m, load))
    return "an operand of a dot is loaded under a condition or a loop that depends on data";
  const char *pin = cg_attr_word(m, load, IR_ATTR_path);
  if (*pin && !str_eq(pin, "tma"))
    return "the path of a load is pinned";
  const char *why = cg_box_of(m, c->intervals, load, box);
  return why ? arena_printf(c->a, "load `%s`: %s", cg_attr_word(m, load, IR_ATTR_label), why)
             : NULL;
}

/* Do dots of tf32 alone read it, as it is or transposed? It is rounded on its way in. */
static bool feeds_tf32(struct chooser *c, struct ir_val v) {
  const struct ir_module *m = c->m;
  for (uint32_t i = c->uses.first[v.id]; i; i = c->uses.list.at[i].next) {
    struct ir_op user = c->uses.list.at[i].op;
    enum ir_opcode op = ir_op_at(m, user)->opcode;
    bool moves = op == IR_TRANSPOSE || op == IR_RESHAPE;
    if (moves ? !feeds_tf32(c, ir_op_at(m, user)->out[0])
              : op != IR_DOT || c->uses.list.at[i].operand > 1 ||
                    !str_eq(cg_attr_word(m, user, IR_ATTR_prec), "tf32"))
      return false;
  }
  return true;
}

/* NULL, or why operand i of the dot cannot come from shared memory as the unit loads it. */
static const char *check_operand(struct chooser *c, struct ir_op dot, uint32_t i) {
  struct ir_module *m = c->m;
  struct cg_operand_source s = cg_trace_operand(m, ir_op_at(m, dot)->in[i]);
  struct cg_box box;
  if (!s.load.id || ir_op_at(m, s.load)->opcode != IR_LOAD)
    return "an operand of a dot is computed";
  const char *why = check_load(c, s.load, &box);
  if (why)
    return why;
  int64_t vdim = ir_attr_int(m, s.load, IR_ATTR_vdim, 0);
  bool k_inner = vdim == s.dim[i == 0 ? 1 : 0];
  if (!k_inner && dtype_bits((enum dtype)ir_type_of(m, ir_op_at(m, dot)->in[i]).dtype) != 16)
    return "an operand of other than 16-bit elements has its rows or columns adjacent, and not k";
  if (!k_inner && (vdim != s.dim[i] || box.swizzle != 128))
    return "an operand of a dot lies with its rows or columns adjacent, and not 64 of them";
  if (ir_type_of(m, ir_op_at(m, dot)->in[i]).dtype == DT_F32 &&
      !feeds_tf32(c, ir_op_at(m, s.load)->out[0]))
    return "an operand of tf32 has other readers, who want it as it was";
  mark(c, s.load);
  return NULL;
}

/* Is operand i computed, and not loaded as it is? */
static bool is_computed(const struct ir_module *m, struct ir_op dot, uint32_t i) {
  struct ir_op load = cg_trace_operand(m, ir_op_at(m, dot)->in[i]).load;
  return !load.id || ir_op_at(m, load)->opcode != IR_LOAD;
}

/* NULL, or why the dot cannot take operand i where it is computed: the left one stays in registers,
 * the right one goes to shared memory, its columns adjacent. What it is computed from is loaded by
 * the unit where that are tiles of its size: their latency is the producer's. Others, a row or a
 * column say, the consumers load, and whatever is loaded once. */
static const char *check_computed(struct chooser *c, struct ir_op dot, uint32_t operand) {
  struct ir_module *m = c->m;
  struct ir_val v = ir_op_at(m, dot)->in[operand];
  struct ir_type t = ir_type_of(m, v);
  struct cg_loads from = {0};
  if (t.dtype == DT_F32)
    return "an operand of tf32 is computed";
  if (operand == 1 && (dtype_bits((enum dtype)t.dtype) != 16 || t.dim[1] % PANEL))
    return "the right operand of a dot is computed, and not of 16-bit elements and a multiple of "
           "64 columns";
  cg_find_loads(m, c->a, v, &from);
  for (uint32_t i = 0; i < from.list.n; i++) {
    struct ir_op load = from.list.at[i];
    struct cg_box box;
    bool whole = ir_elems(ir_type_of(m, ir_op_at(m, load)->out[0])) == ir_elems(ir_type_of(m, v));
    const char *why = whole ? check_load(c, load, &box) : NULL;
    if (whole && !why)
      mark(c, load);
    else if (why && ir_block_at(m, ir_op_at(m, load)->block)->parent.id)
      return why;
  }
  return NULL;
}

/* What the cut of a dot into warpgroups has to keep to. */
struct cut {
  int64_t least, most; /* warpgroups */
  bool along_rows;     /* rows alone are cut */
  bool integers;       /* are summed */
  int64_t panel;       /* an instruction's columns start at a multiple of this */
};

/* The warpgroups of a dot over rows x cols; false: none fit. */
static bool cut(int64_t rows, int64_t cols, const struct cut *t, struct cg_warps *w) {
  for (int64_t groups = t->least; groups <= t->most; groups++)
    for (int64_t along = groups; along >= (t->along_rows ? groups : 1); along--) {
      if (groups % along)
        continue;
      *w = (struct cg_warps){(uint32_t)(4 * along), (uint32_t)(groups / along)};
      struct cg_wgmma_cut x = cg_wgmma_cut(rows, cols, *w, t->integers);
      bool starts = (x.atoms == 1 && w->cols == 1) || x.n % t->panel == 0;
      if (x.n && starts && (int64_t)x.blocks * x.atoms * x.n / 2 <= ACC_REGS)
        return true;
    }
  return false;
}

/* NULL, or why the unit does not multiply such operands, or does not sum as the kernel wants. */
static const char *check_types(const struct ir_module *m, struct ir_op o, int64_t asked) {
  const struct ir_opnode *n = ir_op_at(m, o);
  enum dtype a = (enum dtype)ir_type_of(m, n->in[0]).dtype,
             b = (enum dtype)ir_type_of(m, n->in[1]).dtype,
             acc = (enum dtype)ir_type_of(m, n->in[2]).dtype;
  const char *prec = cg_attr_word(m, o, IR_ATTR_prec);
  bool halves = a == b && (a == DT_BF16 || a == DT_F16);
  bool bytes = a == b && (a == DT_S8 || a == DT_U8);
  bool floats = (a == DT_E4M3 || a == DT_E5M2) && (b == DT_E4M3 || b == DT_E5M2);
  if (bytes && acc == DT_S32)
    return NULL;
  if (a == DT_F32 && b == DT_F32 && str_eq(prec, "tf32"))
    return asked > 0
               ? NULL
               : "its dots are of tf32, whose rounding by the tensor memory unit has yet to be "
                 "measured: `warpgroups` takes it for granted";
  if (floats && acc == DT_F32 && !str_eq(prec, "promoted") && !str_eq(prec, "fast"))
    return "the unit sums 8-bit floats in fewer bits than f32 has: `prec` of the dot may allow it";
  if ((halves || floats) && acc == DT_F32)
    return NULL;
  return "a dot is not of bf16, f16, tf32 or 8-bit floats into f32, or of 8-bit integers into s32";
}

/* Does the right operand lie in shared memory with columns, not k, side by side? */
static bool has_adjacent_columns(const struct ir_module *m, struct ir_op dot) {
  struct cg_operand_source s = cg_trace_operand(m, ir_op_at(m, dot)->in[1]);
  return is_computed(m, dot, 1) || ir_attr_int(m, s.load, IR_ATTR_vdim, 0) != s.dim[0];
}

static const char *check_dot(struct chooser *c, struct ir_op o, int64_t asked, bool along_rows,
                             struct cg_warps *w) {
  struct ir_module *m = c->m;
  const struct ir_opnode *n = ir_op_at(m, o);
  struct ir_type a = ir_type_of(m, n->in[0]), acc = ir_type_of(m, n->in[2]);
  const char *types = check_types(m, o, asked);
  if (types)
    return types;
  if (*cg_attr_word(m, o, IR_ATTR_a_path) || *cg_attr_word(m, o, IR_ATTR_b_path) ||
      ir_get_attr(m, o, IR_ATTR_warps))
    return "a dot has pinned paths or warps";
  int64_t k = cg_wgmma_k((enum dtype)a.dtype);
  if (a.dim[1] % k)
    return arena_printf(c->a, "a dot's k is %lld, which is no multiple of %lld",
                        (long long)a.dim[1], (long long)k);
  bool promotes = cg_wgmma_promotes(m, o);
  if (promotes && a.dim[1] > IR_PROMOTED_K && a.dim[1] % IR_PROMOTED_K)
    return arena_printf(c->a, "a dot's k is %lld, which is above %d and no multiple of it",
                        (long long)a.dim[1], IR_PROMOTED_K);
  struct cut how = {.least = asked > 0           ? asked
                             : acc.dim[0] >= 128 ? 2
                                                 : 1,
                    .most = asked > 0 ? asked : MAX_GROUPS,
                    .along_rows = along_rows,
                    .integers = acc.dtype == DT_S32,
                    .panel = has_adjacent_columns(m, o) ? PANEL : 1};
  if (!cut(acc.dim[0], acc.dim[1], &how, w))
    return arena_printf(c->a,
                        "a dot of %lld x %lld is not cut into %s of 64 rows and at most %d "
                        "registers%s",
                        (long long)acc.dim[0], (long long)acc.dim[1],
                        asked > 0 ? "that many warpgroups" : "one to three warpgroups", ACC_REGS,
                        how.integers    ? ", and 8, 16, 24, 32, 48, 64, ... columns"
                        : how.panel > 1 ? ", and multiples of 64 columns, which lie side by side"
                                        : "");
  const char *why = NULL;
  for (uint32_t i = 0; i < 2 && !why; i++)
    why = is_computed(m, o, i) ? check_computed(c, o, i) : check_operand(c, o, i);
  return why;
}

/* Registers of a thread that hold what the epilogue loads: nothing where the tensor memory unit
 * stores, as those loads wait for their part of the store. */
static int64_t held_regs(struct chooser *c, int64_t groups) {
  struct ir_module *m = c->m;
  int64_t regs = 0;
  bool units = c->stores.n > 0;
  for (uint32_t i = 0; i < c->stores.n; i++) {
    struct cg_box box;
    units = units && !cg_box_of(m, c->intervals, c->stores.at[i], &box);
  }
  for (struct ir_op o = {1}; o.id < m->ops.n && !units; o.id++) {
    const struct ir_opnode *n = ir_op_at(m, o);
    if (!n->block.id || n->opcode != IR_LOAD || ir_block_at(m, n->block)->parent.id)
      continue;
    struct ir_type t = ir_type_of(m, n->out[0]);
    regs += ir_elems(t) * dtype_bytes((enum dtype)t.dtype, 1) / 4 / (128 * groups);
  }
  return regs;
}

/* Rows of panels are rows of the tile: its columns must be what is adjacent in memory. */
static bool may_be_unit_store(struct chooser *c, struct ir_op o) {
  struct ir_module *m = c->m;
  struct ir_type t = ir_type_of(m, ir_op_at(m, o)->in[ir_op_at(m, o)->n_in - 1u]);
  uint32_t bits = dtype_bits((enum dtype)t.dtype);
  struct cg_box box;
  return cg_knob_get(m, CG_KNOB_STORE) != 0 && (bits == 16 || bits == 32) && t.rank == 2 &&
         !cg_box_of(m, c->intervals, o, &box) && box.tile_dim[box.inner] == 1;
}

/* NULL, or why accumulators and slots do not fit. Registers a thread: 255 with one group, 240 with
 * two (set_regs), 128 with three; beside accumulators there are addresses and the epilogue. */
static const char *check_room(struct chooser *c, const struct cg_warps *w) {
  static const int64_t most[MAX_GROUPS + 1] = {0, 192, 192, 96};
  struct ir_module *m = c->m;
  int64_t regs = 0, groups = w[0].rows * w[0].cols / 4, bytes = 0;
  for (uint32_t i = 0; i < c->dots.n; i++) {
    struct ir_val v = ir_op_at(m, c->dots.at[i])->in[2];
    struct ir_op def = ir_value_at(m, v)->def;
    if (!def.id || ir_op_at(m, def)->opcode != IR_DOT)
      regs += ir_elems(ir_type_of(m, v)) / (128 * groups);
    if (cg_wgmma_promotes(m, c->dots.at[i]))
      regs += ir_elems(ir_type_of(m, v)) / (128 * groups);
  }
  regs += held_regs(c, groups);
  if (regs > most[groups])
    return arena_printf(
        c->a,
        "its accumulators and what it adds to them take %lld registers a thread, and "
        "%lld is the most",
        (long long)regs, (long long)most[groups]);
  for (uint32_t i = 0; i < c->loads.n; i++) {
    struct ir_type t = ir_type_of(m, ir_op_at(m, c->loads.at[i])->out[0]);
    bool looped = ir_block_at(m, ir_op_at(m, c->loads.at[i])->block)->parent.id != 0;
    bytes += ir_elems(t) * dtype_bytes((enum dtype)t.dtype, 1) * (looped ? 2 : 1);
  }
  for (uint32_t i = 0; i < c->stores.n; i++) {
    const struct ir_opnode *n = ir_op_at(m, c->stores.at[i]);
    struct ir_type t = ir_type_of(m, n->in[n->n_in - 1u]);
    bytes += may_be_unit_store(c, c->stores.at[i]) ? cg_least_staging(m, t, groups)
                                                   : cg_staging_bytes(m, t, groups);
  }
  for (uint32_t i = 0; i < c->dots.n; i++) {
    struct ir_type t = ir_type_of(m, ir_op_at(m, c->dots.at[i])->in[1]);
    if (is_computed(m, c->dots.at[i], 0))
      bytes += cg_crossing_bytes(m, c->dots.at[i]);
    if (is_computed(m, c->dots.at[i], 1))
      bytes += ir_elems(t) * dtype_bytes((enum dtype)t.dtype, 1);
  }
  bytes += cg_parts_bytes(m);
  const struct cg_target *target = cg_target_of(m);
  if (bytes > target->smem_per_block)
    return arena_printf(
        c->a,
        "two slots for its operands, the tiles it stores and sums from other blocks "
        "take %lld bytes of shared memory, and %s has %u for a block",
        (long long)bytes, target->name, target->smem_per_block);
  return NULL;
}

static const char *try_cut(struct chooser *c, int64_t asked, bool along_rows, struct cg_warps *w) {
  for (uint32_t i = 0; i < c->dots.n; i++) {
    const char *why = check_dot(c, c->dots.at[i], asked, along_rows, &w[i]);
    if (why)
      return why;
    if (w[i].rows * w[i].cols != w[0].rows * w[0].cols)
      return "its dots want different numbers of warpgroups";
  }
  return c->dots.n ? check_room(c, w) : "it has no dot";
}

/* Bytes that the blocks of a cluster along the axis share. */
static int64_t shared_bytes(struct chooser *c, int64_t blocks, uint32_t axis) {
  struct ir_module *m = c->m;
  int64_t bytes = 0;
  for (uint32_t i = 0; i < c->loads.n; i++) {
    struct ir_type t = ir_type_of(m, ir_op_at(m, c->loads.at[i])->out[0]);
    struct cg_box box;
    struct cg_share share;
    if (!cg_box_of(m, c->intervals, c->loads.at[i], &box) &&
        cg_is_shared(m, c->loads.at[i], &box, blocks, axis, &share))
      bytes += ir_elems(t) * dtype_bytes((enum dtype)t.dtype, 1);
  }
  return bytes;
}

/* NULL, or why there are no such clusters. By default they lie where they share most. */
static const char *choose_cluster(struct chooser *c, int64_t blocks) {
  struct ir_module *m = c->m;
  int64_t asked = cg_knob_get(m, CG_KNOB_CLUSTER_AXIS), most = 0;
  if (asked >= (int64_t)m->n_grid)
    return arena_printf(c->a, "`cluster_axis` is %lld, and its grid has %u", (long long)asked,
                        m->n_grid);
  for (uint32_t axis = 0; axis < m->n_grid; axis++) {
    int64_t bytes = asked == CG_AUTO || asked == axis ? shared_bytes(c, blocks, axis) : 0;
    if (bytes > most)
      cg_knob_put(m, CG_KNOB_CLUSTER_AXIS, axis);
    most = bytes > most ? bytes : most;
  }
  if (most)
    return NULL;
  return asked == CG_AUTO
             ? "neighbours along no axis of its grid load the same tile, in shares of whole boxes "
               "or 8 rows"
             : arena_printf(c->a,
                            "neighbours along axis %lld of its grid load no tile in common, in "
                            "shares of whole boxes or 8 rows",
                            (long long)asked);
}

/* Where a dot's result becomes a left operand, warpgroups lie along rows alone if they can: then
 * each has all of the operand's columns. */
static const char *check(struct chooser *c, int64_t asked, struct cg_warps *w) {
  bool computed = false;
  for (uint32_t i = 0; i < c->dots.n; i++)
    computed = computed || is_computed(c->m, c->dots.at[i], 0);
  if (computed && !try_cut(c, asked, true, w))
    return NULL;
  return try_cut(c, asked, false, w);
}

static void add_role(struct ir_module *m, const char *name, uint32_t warps, uint32_t regs) {
  struct ir_role r = {.name = symtab_get(m->syms, name), .warps = warps, .regs = regs};
  VEC_PUSH(m->arena, &m->roles, r);
}

/* Whether its tile has the layout for it is known when layouts are. */
static void choose_store(struct chooser *c, struct ir_op o) {
  if (!*cg_attr_word(c->m, o, IR_ATTR_path) && may_be_unit_store(c, o))
    cg_set_word(c->m, o, IR_ATTR_path, "tma");
}

static void take(struct chooser *c, const struct cg_warps *w) {
  struct ir_module *m = c->m;
  uint32_t groups = w[0].rows * w[0].cols / 4;
  for (uint32_t i = 0; i < c->dots.n; i++) {
    struct ir_op o = c->dots.at[i];
    struct ir_type acc = ir_type_of(m, ir_op_at(m, o)->in[2]);
    struct cg_wgmma_cut x = cg_wgmma_cut(acc.dim[0], acc.dim[1], w[i], acc.dtype == DT_S32);
    enum dtype t = (enum dtype)ir_type_of(m, ir_op_at(m, o)->in[0]).dtype;
    cg_set_word(m, o, IR_ATTR_inst,
                arena_printf(m->arena, "wgmma_m64n%uk%lld", x.n, (long long)cg_wgmma_k(t)));
    cg_set_word(m, o, IR_ATTR_a_path, is_computed(m, o, 0) ? "frag" : "smem");
    cg_set_word(m, o, IR_ATTR_b_path, is_computed(m, o, 1) ? "computed" : "smem");
    cg_set_ints(m, o, IR_ATTR_warps, 2, (int64_t[]){w[i].rows, w[i].cols});
  }
  for (uint32_t i = 0; i < c->loads.n; i++)
    cg_set_word(m, c->loads.at[i], IR_ATTR_path, "tma");
  for (uint32_t i = 0; i < c->stores.n; i++)
    choose_store(c, c->stores.at[i]);
  cg_knob_put(m, CG_KNOB_WARPGROUPS, groups);
  cg_knob_put(m, CG_KNOB_THREADS, 128 * (int64_t)groups);
  cg_knob_put(m, CG_KNOB_BLOCKS, 1);
  cg_knob_put(m, CG_KNOB_PREFETCH, 0);
}

/* A producer of a whole warpgroup gives its registers to the others. */
void cg_add_roles(struct ir_module *m) {
  int64_t groups = cg_knob_get(m, CG_KNOB_WARPGROUPS);
  bool gives = groups == 2;
  if (groups <= 0) {
    add_role(m, "all", 0, 0);
    return;
  }
  bool spares = cg_knob_get(m, CG_KNOB_SPARE) > 0;
  uint32_t kept = spares ? PRODUCER_MORE : PRODUCER_REGS, given = (kept - PRODUCER_REGS) / 2;
  add_role(m, "consumer", 4 * (uint32_t)groups, gives ? CONSUMER_REGS - given : 0);
  add_role(m, "producer", gives ? 4 : 1, gives ? kept : 0);
}

/* Are knobs set of kernels whose warps all do the same? `spare` = 1 is where this path spilled, 2
 * where it still did with a larger producer and no biases loaded early (pass_load_early.c). */
static bool is_arranged(struct ir_module *m) {
  static const enum cg_knob knobs[] = {CG_KNOB_THREADS,  CG_KNOB_WARPS_M, CG_KNOB_WARPS_N,
                                       CG_KNOB_PREFETCH, CG_KNOB_BLOCKS,  CG_KNOB_SPARE};
  for (uint32_t i = 0; i < sizeof knobs / sizeof knobs[0]; i++)
    if (cg_knob_get(m, knobs[i]) > (knobs[i] == CG_KNOB_SPARE ? 1 : CG_AUTO))
      return true;
  return false;
}

static bool refuse(struct chooser *c, struct ir_pass_ctx *ctx, enum cg_knob k, const char *why) {
  cg_error(c->m, ctx->diags, c->dots.n ? c->dots.at[0] : (struct ir_op){0}, DIAG_CONFIG,
           "schedule `%s` = %lld: %s", cg_knob_name(k), (long long)cg_knob_get(c->m, k), why);
  return false;
}

static bool any_streamed(struct chooser *c) {
  for (uint32_t i = 0; i < c->loads.n; i++)
    if (cg_knob_get(c->m, CG_KNOB_STREAM_AXIS) < (int64_t)c->m->n_grid &&
        cg_is_streamed(c->m, c->loads.at[i]))
      return true;
  return false;
}

/* The loop whose iterations a cluster shares, or 0. */
static struct ir_op parted_loop(const struct ir_module *m) {
  IR_EACH_OP (m, m->body, o)
    if (ir_op_at(m, o)->opcode == IR_FOR && ir_attr_int(m, o, IR_ATTR_parts, 1) > 1)
      return o;
  return (struct ir_op){0};
}

static bool is_dot_in(const struct ir_module *m, struct ir_op o, struct ir_block b) {
  return o.id && ir_op_at(m, o)->opcode == IR_DOT && ir_op_at(m, o)->block.id == b.id;
}

/* NULL, or why the blocks of a cluster cannot share the loop: they add up accumulators alone, and
 * what follows the loop is one block's, whose producer loads for the loop alone. */
static const char *check_parted(struct chooser *c, struct ir_op loop) {
  struct ir_module *m = c->m;
  const struct ir_opnode *n = ir_op_at(m, loop);
  const struct ir_blocknode *b = ir_block_at(m, n->blocks[0]);
  if (cg_knob_get(m, CG_KNOB_CLUSTER) > 1)
    return "`cluster` = 1 goes with it: a cluster's blocks share tiles or a loop";
  for (uint32_t k = 0; k < n->n_out; k++) {
    if (!c->uses.count[n->out[k].id])
      continue;
    struct ir_val v = ir_op_at(m, b->last)->in[k];
    while (is_dot_in(m, ir_value_at(m, v)->def, n->blocks[0]))
      v = ir_op_at(m, ir_value_at(m, v)->def)->in[2];
    if (v.id != b->args.at[1 + k].id || !cg_is_zero(m, n->in[3 + k]) ||
        ir_type_of(m, v).dtype != DT_F32)
      return "its loop carries more than f32 sums of dots that start at 0";
  }
  for (struct ir_op o = n->next; o.id; o = ir_op_at(m, o)->next)
    for (uint32_t i = 0; i < c->loads.n; i++) {
      struct ir_op at = c->loads.at[i];
      while (ir_block_at(m, ir_op_at(m, at)->block)->parent.id)
        at = ir_block_at(m, ir_op_at(m, at)->block)->parent;
      if (at.id == o.id)
        return "dots follow its loop";
    }
  return NULL;
}

bool cg_pass_choose_warpgroups(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  const struct cg_target *t = cg_target_of(m);
  int64_t asked = cg_knob_get(m, CG_KNOB_WARPGROUPS);
  struct chooser c = {.m = m, .a = ctx->scratch};
  const char *why = NULL;
  struct ir_op parted = parted_loop(m);
  bool clusters = cg_knob_get(m, CG_KNOB_CLUSTER) > 1 || parted.id;
  bool streams = cg_knob_get(m, CG_KNOB_STREAM_AXIS) != CG_AUTO, only = clusters || streams;
  enum cg_knob by = parted.id  ? CG_KNOB_SPLIT_CLUSTER
                    : clusters ? CG_KNOB_CLUSTER
                               : CG_KNOB_STREAM_AXIS;
  if (asked == 0 || (asked == CG_AUTO && is_arranged(m)))
    return !only || refuse(&c, ctx, by,
                           "its warps all do the same, by `warpgroups` = 0 or "
                           "another knob");
  c.uses = cg_collect_uses(m, c.a);
  c.intervals = ir_find_intervals(m, c.a);
  ir_walk(m, m->body, list, &c);
  struct cg_warps *w = ARENA_ARRAY(c.a, struct cg_warps, c.dots.n + 1);
  if (!(t->features & CG_WGMMA) || !(t->features & CG_TMA))
    why = arena_printf(c.a, "%s has no matrix unit of warpgroups", t->name);
  why = why ? why : check(&c, asked, w);
  if (clusters && !why)
    why =
        parted.id ? check_parted(&c, parted) : choose_cluster(&c, cg_knob_get(m, CG_KNOB_CLUSTER));
  if (streams && !why && !any_streamed(&c)) {
    by = CG_KNOB_STREAM_AXIS;
    why = "its grid has no such axis, or all that feeds its dots depends on it";
  }
  if (only && why)
    return refuse(&c, ctx, by, why);
  if (why && asked == CG_AUTO)
    return true;
  if (why)
    return refuse(&c, ctx, CG_KNOB_WARPGROUPS, why);
  take(&c, w);
  *changed = true;
  return true;
}
