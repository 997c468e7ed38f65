/* What a kernel costs on a GPU, modelled: for the choice of tiles and of split_k.
 *
 * Before: a tile module after the tile pipeline. It is lowered as far as its paths, instructions
 * and slots are known, and what stands in its body is added up; nothing else of the kernel counts.
 * After: microseconds, and what they are made of, or why the model says nothing: a kernel that does
 * not become warp-specialised, loops that compute more than products, or whose iterations are known
 * on the device alone.
 *
 *   program  its matrix instructions, the reads of shared memory that these make, and the bytes of
 *            its loads from L2 overlap: the longest of the three counts whole, the others in part
 *   waves    programs over SMs; what a program stores is not overlapped with its own products
 *   memory   each argument that is accessed moves once, no faster than the SMs at work can ask
 *   merge    with split_k, each part is written and the last program of a tile reads them all; in a
 *            cluster the others write into the shared memory of the one that adds
 *
 * It ranks schedules of one kernel; it is no forecast. Constants are for sm_90a and come from an
 * H200's figures (docs/performance.md) where no other source is given. */
#include "base/check.h"
#include "codegen/box.h"
#include "codegen/cluster.h"
#include "codegen/layouts.h"
#include "codegen/pass.h"
#include "codegen/schedule.h"
#include "ir/range.h"

#define CLOCK_MHZ      1600.0 /* between 1980 of short kernels and 1440 at the power limit */
#define SMEM_BYTES     128.0  /* a clock and SM */
#define L2_BYTES       64.0   /* a clock and SM, into shared memory */
#define DRAM_SHARE     0.88   /* of the nominal bandwidth, by a copy */
#define INST_COLS      4      /* an instruction costs as many columns more than it has */
#define INST_K_BYTES   32     /* of each row of A and B that an instruction takes */
#define OVERLAP        0.2    /* of what runs beside the longest: power and contention */
#define ITER_CLOCKS    30.0   /* of an iteration: waiting for a slot, handing it back */
#define PROGRAM_CLOCKS 500.0  /* of a program: its ends */
#define STORE_CLOCKS   4.0    /* an element of a thread's results */
#define SPLIT_CLOCKS   1500.0 /* a part is visible to the others, and counted */
#define MERGE_BYTES    16.0   /* a clock and SM, of parts written and read: 13 us for 4 of 64 KiB */
#define CLUSTER_CLOCKS 700.0  /* the blocks of a cluster meet */
#define CLUSTER_BYTES  16.0   /* a clock, of parts that a block of a cluster is sent */
#define LAUNCH_US      3.0
#define FILL_US        1.0 /* until the first slot is full */
#define MIN_TRIPS      8   /* iterations of a part: its ring is filled twice */
#define MAX_PARTS      16
#define MIN_K_BYTES    384 /* of a row of A and B in slots: three of 128 bytes */

struct model {
  struct ir_module *m;
  const struct ir_intervals *intervals;
  expr_lookup look_up;
  void *user;
  int64_t groups;
  double matrix, smem, l2, iters, store; /* clocks of a program; iterations */
  bool *moved;                           /* by argument: it is accessed */
  int64_t stream_axis;
  const char *why;
};

static bool value_of(struct model *x, struct expr e, int64_t *value) {
  const char *why;
  return e.id && expr_eval(&x->m->exprs, e, x->look_up, x->user, value, &why);
}

/* Iterations of a loop, or -1. */
static int64_t trips_of(struct model *x, struct ir_op loop) {
  int64_t bound[3];
  for (uint32_t i = 0; i < 3; i++)
    if (!value_of(x, ir_val_expr(x->m, ir_op_at(x->m, loop)->in[i]), &bound[i]))
      return -1;
  return bound[2] <= 0 ? -1 : bound[1] <= bound[0] ? 0 : (bound[1] - bound[0] - 1) / bound[2] + 1;
}

static void add_dot(struct model *x, struct ir_op o, double times) {
  struct ir_module *m = x->m;
  const struct ir_opnode *n = ir_op_at(m, o);
  struct ir_type a = ir_type_of(m, n->in[0]), acc = ir_type_of(m, n->in[2]);
  const struct ir_attr *warps = ir_get_attr(m, o, IR_ATTR_warps);
  struct cg_warps w = {(uint32_t)warps->ints[0], (uint32_t)warps->ints[1]};
  struct cg_wgmma_cut c = cg_wgmma_cut(acc.dim[0], acc.dim[1], w, acc.dtype == DT_S32);
  double steps = (double)a.dim[1] * dtype_bits((enum dtype)a.dtype) / 8 / INST_K_BYTES;
  double insts = times * steps * (double)x->groups * c.blocks * c.atoms;
  bool from_regs = cg_has_a_in_registers(m, o);
  x->matrix += insts * (c.n + INST_COLS) / 2;
  x->smem += insts * INST_K_BYTES * ((from_regs ? 0 : 64) + c.n) / SMEM_BYTES;
}

/* Does it take time of its own beside products and what moves for them? In a loop that is no
 * matter of the program's ends. */
static bool computes(const struct ir_module *m, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(m, o);
  return n->opcode != IR_DOT && n->opcode != IR_LOAD && n->opcode != IR_TRANSPOSE &&
         n->opcode != IR_RESHAPE && n->opcode != IR_FOR && n->n_out &&
         ir_type_of(m, n->out[0]).kind == IR_TILE;
}

/* The argument behind a view. */
static uint32_t argument_of(const struct ir_module *m, struct ir_val view) {
  while (ir_value_at(m, view)->def.id)
    view = ir_op_at(m, ir_value_at(m, view)->def)->in[0];
  return ir_entry_of(m, view).index;
}

/* Bytes of an access that lie inside of its argument, where the argument is smaller than the
 * tile. */
static double bytes_of(struct model *x, struct ir_op o, struct ir_type t) {
  struct cg_box box;
  double bytes = (double)ir_elems(t) * dtype_bits((enum dtype)t.dtype) / 8;
  if (cg_box_of(x->m, x->intervals, o, &box))
    return bytes;
  for (uint32_t d = 0; d < box.rank; d++) {
    int64_t size;
    if (box.tile_dim[d] >= 0 && value_of(x, x->m->args.at[box.arg].dim[d], &size) &&
        size < t.dim[box.tile_dim[d]])
      bytes = bytes * (double)size / (double)t.dim[box.tile_dim[d]];
  }
  return bytes;
}

static void add_block(struct model *x, struct ir_block b, double times) {
  struct ir_module *m = x->m;
  IR_EACH_OP (m, b, o) {
    const struct ir_opnode *n = ir_op_at(m, o);
    double inside = times;
    if (computes(m, o) && ir_block_at(m, b)->parent.id)
      x->why = "it computes more than products in a loop";
    if (n->opcode == IR_DOT)
      add_dot(x, o, times);
    if (n->opcode == IR_LOAD || n->opcode == IR_STORE) {
      struct ir_type t = ir_type_of(m, n->opcode == IR_LOAD ? n->out[0] : n->in[n->n_in - 1u]);
      x->moved[argument_of(m, n->in[0])] = true;
      x->l2 += times * bytes_of(x, o, t) / L2_BYTES;
      if (n->opcode == IR_STORE)
        x->store += times * (double)ir_elems(t) / (double)(128 * x->groups) * STORE_CLOCKS;
    }
    if (n->opcode == IR_FOR) {
      int64_t trips = trips_of(x, o);
      if (trips < 0)
        x->why = "it is known on the device alone how often a loop runs";
      inside *= (double)trips;
      x->iters += inside;
    } else if (n->n_blocks) {
      x->why = "it branches on data";
    }
    for (uint32_t i = 0; i < n->n_blocks && !x->why; i++)
      add_block(x, n->blocks[i], inside);
  }
}

static double bytes_of_argument(struct model *x, uint32_t i) {
  const struct ir_arg *arg = &x->m->args.at[i];
  double bytes = dtype_bits(arg->dtype) / 8.0;
  for (uint32_t d = 0; d < arg->rank; d++) {
    int64_t size;
    bytes *= value_of(x, arg->dim[d], &size) ? (double)size : 1;
  }
  return bytes;
}

/* Bytes of the arguments that the kernel reads or writes. */
static double moved_bytes(struct model *x) {
  double sum = 0;
  for (uint32_t i = 0; i < x->m->args.n; i++)
    sum += x->moved[i] ? bytes_of_argument(x, i) : 0;
  return sum;
}

/* The longest whole, of the others what power and contention take. */
static double beside(double a, double b, double c) {
  double most = a > b ? a : b;
  most = most > c ? most : c;
  return most + OVERLAP * (a + b + c - most);
}

/* Rounds of programs over the SMs. Of many rounds the last one's idle SMs leave power to others. */
static double waves_of(double programs, double sms) {
  double exact = programs / sms, whole = (double)(int64_t)exact;
  whole += whole < exact;
  return whole <= 2 ? whole : (whole + exact) / 2;
}

static struct cg_cost cost_of(struct model *x, const struct cg_gpu *gpu, double tiles,
                              int64_t parts, bool cluster, double state) {
  double sms = gpu->sm_count, p = (double)parts, programs = tiles * p;
  double used = programs < sms ? programs : sms;
  double iter = ITER_CLOCKS * (x->groups > 1 ? 1 : 2); /* no other group computes meanwhile */
  double us = 1 / CLOCK_MHZ, waves = waves_of(programs, sms);
  struct cg_cost c = {.programs = (int64_t)programs,
                      .waves = programs / sms,
                      .split_k = parts,
                      .split_cluster = cluster,
                      .stream_axis = x->stream_axis};
  c.matrix_us = waves * x->matrix / p * us;
  c.l2_us = waves * x->l2 / p * us;
  c.ends_us = waves * (x->iters / p * iter + x->store + PROGRAM_CLOCKS) * us;
  if (cluster)
    c.merge_us = waves * (CLUSTER_CLOCKS + state * (p - 1) / CLUSTER_BYTES) * us;
  else if (parts > 1)
    c.merge_us = waves * (SPLIT_CLOCKS + state * (1 + p) / MERGE_BYTES) * us;
  double busy = beside(c.matrix_us, c.l2_us, waves * x->smem / p * us) + c.ends_us;
  /* 112 SMs of 132 do not ask for all that memory can give. */
  double asked = 0.4 + 0.6 * used / sms;
  c.dram_us = moved_bytes(x) / (gpu->dram_gbps * 1e3 * DRAM_SHARE * asked);
  c.us = LAUNCH_US + FILL_US + beside(busy, c.dram_us, 0) + c.merge_us;
  return c;
}

/* Bytes that a program hands on when its loop is cut: what the loop carries. */
static double state_of(const struct ir_module *m, struct ir_op loop) {
  const struct ir_opnode *n = ir_op_at(m, loop);
  double bytes = 0;
  for (uint32_t i = 0; i < n->n_out; i++) {
    struct ir_type t = ir_type_of(m, n->out[i]);
    if (t.kind == IR_TILE)
      bytes += (double)ir_elems(t) * dtype_bits((enum dtype)t.dtype) / 8;
  }
  return bytes;
}

/* Passes up to the one that fills in the schedule. */
static struct ir_module *arranged(const struct ir_module *tile, const struct cg_options *opt,
                                  struct arena *a, struct diag_sink *diags) {
  struct cg_options to = *opt;
  uint32_t n, upto = 0;
  to.passes = cg_pipeline(&n);
  while (upto < n && !str_eq(to.passes[upto].name, "peel_loops"))
    upto++;
  to.n_passes = upto;
  to.stop = IR_MACHINE_STAGE;
  to.run = NULL;
  return cg_lower(tile, &to, a, diags);
}

/* Bytes of k that the slots of all loads hold, of the dot that has fewest. */
static int64_t k_in_slots(struct ir_module *m) {
  int64_t least = INT64_MAX;
  for (struct ir_op o = {1}; o.id < m->ops.n; o.id++) {
    if (!ir_op_at(m, o)->block.id || ir_op_at(m, o)->opcode != IR_DOT)
      continue;
    struct ir_type a = ir_type_of(m, ir_op_at(m, o)->in[0]);
    int64_t bytes = a.dim[1] * dtype_bytes((enum dtype)a.dtype, 1);
    least = bytes < least ? bytes : least;
  }
  return least == INT64_MAX ? 0 : least * cg_knob_get(m, CG_KNOB_STAGES);
}

/* Can this many parts be lowered to roles, too? In a cluster sums take room from slots. */
static bool splits(const struct ir_module *tile, const struct cg_options *opt, int64_t parts,
                   bool cluster, struct arena *a, struct diag_sink *diags) {
  struct cg_options to = *opt;
  to.schedule.knob[CG_KNOB_SPLIT_K] = parts;
  to.schedule.knob[CG_KNOB_SPLIT_CLUSTER] = cluster;
  struct arena_mark mark = arena_get_mark(a);
  struct ir_module *m = arranged(tile, &to, a, diags);
  bool ok = m && cg_knob_get(m, CG_KNOB_WARPGROUPS) > 0;
  ok = ok && (!cluster || k_in_slots(m) >= MIN_K_BYTES);
  arena_reset(a, mark);
  return ok;
}

/* Are these parts to be tried in a cluster (else: through memory)? Clusters of 3 leave SMs idle,
 * and larger ones do not find room for all. Parts that were asked for stay where they were. */
static bool may_be_cluster(const struct cg_options *opt, const struct cg_gpu *gpu, int64_t tiles,
                           int64_t parts, bool cluster) {
  int64_t asked = opt->schedule.knob[CG_KNOB_SPLIT_CLUSTER];
  if (parts == 1)
    return !cluster;
  if (asked != CG_AUTO)
    return cluster == (asked == 1);
  return !cluster || (opt->schedule.knob[CG_KNOB_SPLIT_K] == CG_AUTO &&
                      opt->schedule.knob[CG_KNOB_CLUSTER] == CG_AUTO &&
                      (parts == 2 || parts == 4) && tiles * parts <= gpu->sm_count / 4 * 4);
}

/* The axis with one tile of which operands of dots do not depend, if these are more than L2 holds:
 * nobody reads them again. */
static int64_t find_stream_axis(struct model *x, const struct cg_gpu *gpu) {
  struct ir_module *m = x->m;
  int64_t given = cg_knob_get(m, CG_KNOB_STREAM_AXIS), found = -1;
  for (uint32_t axis = 0; axis < m->n_grid && given == CG_AUTO && found < 0; axis++) {
    int64_t n;
    double bytes = 0;
    if (!value_of(x, m->grid[axis], &n) || n != 1)
      continue;
    cg_knob_put(m, CG_KNOB_STREAM_AXIS, axis);
    for (struct ir_op o = {1}; o.id < m->ops.n; o.id++) {
      const struct ir_opnode *load = ir_op_at(m, o);
      if (load->block.id && load->opcode == IR_LOAD && cg_is_streamed(m, o) &&
          str_eq(cg_attr_word(m, o, IR_ATTR_path), "tma"))
        bytes += bytes_of_argument(x, argument_of(m, load->in[0]));
    }
    cg_knob_put(m, CG_KNOB_STREAM_AXIS, CG_AUTO);
    if (bytes > gpu->l2_bytes)
      found = axis;
  }
  return found;
}

struct cg_cost cg_model_cost(struct ir_module *tile, const struct cg_options *opt,
                             const struct cg_gpu *gpu, expr_lookup look_up, void *user,
                             struct arena *a, struct diag_sink *diags) {
  static const int64_t choices[] = {1, 2, 3, 4, 6, 8, 12, MAX_PARTS};
  struct cg_cost best = {0};
  struct cg_options whole = *opt;
  struct ir_op loop;
  int64_t tiles = 1, asked = opt->schedule.knob[CG_KNOB_SPLIT_K];
  whole.schedule.knob[CG_KNOB_SPLIT_K] = 1;
  bool may_split = cg_may_split(tile, a, &loop);
  if (asked > 1 && !may_split)
    return (struct cg_cost){.why = "its loop may not be split"};
  struct ir_module *m = arranged(tile, &whole, a, diags);
  if (!m)
    return (struct cg_cost){.why = "it cannot be lowered"};
  struct model x = {.m = m, .look_up = look_up, .user = user};
  x.groups = cg_knob_get(m, CG_KNOB_WARPGROUPS);
  if (x.groups <= 0)
    return (struct cg_cost){.why = "it does not become warp-specialised"};
  x.intervals = ir_find_intervals(m, a);
  x.moved = ARENA_ARRAY(a, bool, m->args.n + 1);
  for (uint32_t i = 0; i < m->n_grid; i++) {
    int64_t n;
    if (!value_of(&x, m->grid[i], &n) || n < 1 || __builtin_mul_overflow(tiles, n, &tiles))
      return (struct cg_cost){.why = "its grid is empty or not known"};
  }
  add_block(&x, m->body, 1);
  if (x.why)
    return (struct cg_cost){.why = x.why};
  x.stream_axis = find_stream_axis(&x, gpu);
  int64_t trips = 0;
  double state = 0;
  if (may_split) {
    struct model outer = x;
    outer.m = tile;
    trips = trips_of(&outer, loop);
    state = state_of(tile, loop);
  }
  for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
    int64_t parts = asked > 0 ? asked : choices[i];
    bool fits = parts == 1 || (may_split && trips / parts >= MIN_TRIPS &&
                               tiles <= (int64_t)gpu->sm_count / parts);
    if (asked <= 0 && !fits)
      continue;
    for (int cluster = 0; cluster < 2; cluster++) {
      if (!may_be_cluster(opt, gpu, tiles, parts, cluster))
        continue;
      struct cg_cost c = cost_of(&x, gpu, (double)tiles, parts, cluster, state);
      if ((best.us == 0 || c.us < best.us) &&
          (parts == 1 || splits(tile, opt, parts, cluster, a, diags)))
        best = c;
    }
    if (asked > 0)
      break;
  }
  if (best.us == 0)
    return (struct cg_cost){.why = "its parts do not become warp-specialised"};
  return best;
}
