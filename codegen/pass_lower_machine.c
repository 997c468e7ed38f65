/* Scheduled tile IR to machine IR: the walk over ops, the grid, the parameters.
 *
 * Before: every decision is in the module (paths, layouts, stages, knobs). After: the module is at
 * the machine stage, its params and recipe are filled; buffers have no offsets yet and barriers are
 * only where a pipe waits: pass_place_storage.c and pass_insert_barriers.c follow.
 *
 * The body starts with a prologue (thread coordinates, constants, grid indices); all that follows
 * refers to it. Blocks are launched in one line and numbered so that `group` rows of the grid are
 * walked together, column by column: neighbours in time share operands in L2. */
#include "base/check.h"
#include "codegen/lower.h"
#include "ir/range.h"
#include "codegen/schedule.h"

/* Where a scratch tensor starts in the launch's workspace: behind those before it. */
static struct expr scratch_offset(struct ir_module *m, uint32_t arg) {
  struct expr at = expr_const(&m->exprs, 0);
  for (uint32_t k = 0; k < arg; k++)
    if (m->args.at[k].kind == IR_ARG_SCRATCH)
      at = expr_op2(&m->exprs, EXPR_ADD, at, cg_scratch_bytes(m, k));
  return at;
}

static void add_arg_params(struct lower *l) {
  struct ir_module *m = l->m;
  l->arg_ptr = ARENA_ARRAY(l->a, struct ir_val, m->args.n + 1);
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t k = 0; k < m->args.n; k++) {
      const struct ir_arg *a = &m->args.at[k];
      if (!a->present || (a->kind == IR_ARG_SCALAR) != (pass == 1))
        continue;
      struct ir_type t = ir_scalar(a->dtype);
      if (pass == 0)
        t.kind = IR_PTR;
      struct ir_param p = {.kind = pass ? RECIPE_PARAM_SCALAR : RECIPE_PARAM_PTR, .arg = k};
      if (a->kind == IR_ARG_SCRATCH)
        p = (struct ir_param){.kind = RECIPE_PARAM_WORKSPACE, .value = scratch_offset(m, k)};
      VEC_PUSH(m->arena, &m->params, p);
      struct ir_val v = ir_add_arg(m, l->b.block, t);
      ir_value_at(m, v)->name = a->name;
      l->arg_ptr[k] = v;
    }
}

/* The prologue ends before a marker, which is removed at the end. */
static struct ir_op open_prologue(struct lower *l) {
  struct ir_type s32 = ir_scalar(DT_S32);
  struct ir_op marker = ir_build(&l->b, IR_BARRIER, 0, NULL, 0, NULL);
  l->top = l->b;
  l->top.before = marker;
  struct ir_builder saved = cg_enter_top(l);
  l->lane = ir_build1(&l->b, IR_LANE_ID, s32, 0, NULL);
  l->warp = ir_build1(&l->b, IR_WARP_ID, s32, 0, NULL);
  cg_leave_top(l, saved);
  return marker;
}

/* a / b and a % b of counts known to be positive. */
struct ir_val cg_quotient(struct lower *l, struct ir_val a, struct ir_val b) {
  int64_t c;
  if (cg_is_const(l, b, &c) && c == 1)
    return a;
  return ir_build1(&l->b, IR_FLOORDIV, ir_scalar(DT_S32), 2, (struct ir_val[]){a, b});
}

static struct ir_val remainder_of(struct lower *l, struct ir_val a, struct ir_val b) {
  int64_t c;
  if (cg_is_const(l, b, &c) && c == 1)
    return cg_s32(l, 0);
  return ir_build1(&l->b, IR_MOD, ir_scalar(DT_S32), 2, (struct ir_val[]){a, b});
}

struct expr cg_grid_size(struct lower *l, uint32_t axis) {
  struct ir_module *m = l->m;
  struct expr e = m->grid[axis];
  if (l->roles && l->roles->blocks > 1 && l->roles->axis == axis)
    e = expr_op2(&m->exprs, EXPR_CDIV, e, expr_const(&m->exprs, l->roles->blocks));
  return e;
}

/* From the index of a cluster to that of its block's tile. A block whose tile would lie outside
 * stands at the last one inside. */
static struct ir_val own_index(struct lower *l, struct ir_val index) {
  struct ir_module *m = l->m;
  struct cg_roles *r = l->roles;
  struct expr size = m->grid[r->axis];
  index = cg_add(l, cg_muli(l, index, r->blocks), r->rank);
  r->has_tile = (struct ir_val){0};
  if (ir_expr_divisor(m, size) % r->blocks == 0)
    return index;
  struct ir_val n = cg_launch_s32(l, size);
  r->has_tile = cg_cmp(l, IR_LT, index, n);
  return cg_op2(l, IR_MIN, index, cg_op2(l, IR_SUB, n, cg_s32(l, 1)));
}

/* Of a grid that stays: block b takes tiles b, b + grid, ..., so that all of its indices along axis
 * 0 are the same modulo a common divisor of the grid and the axis. Where programs of higher indices
 * have more to do, as under a causal mask, some blocks would have more of them: at 1024 queries of
 * 128 a tile 1.34 times the mean. So every other round walks aligned runs of axis 0 backwards; they
 * are as long as the largest power of two that divides grid, axis and band, and thus no run is torn
 * between two rounds. */
static struct ir_val take_turns(struct lower *l, struct ir_val index, struct ir_val id,
                                struct ir_val size, int64_t group) {
  struct ir_val grid = ir_build1(&l->b, IR_GRID_SIZE, ir_scalar(DT_S32), 0, NULL);
  struct ir_val run = cg_op2(l, IR_OR, grid, size);
  run = cg_op2(l, IR_OR, run, cg_s32(l, group));
  struct ir_val negative = cg_op2(l, IR_SUB, cg_s32(l, 0), run);
  run = cg_op2(l, IR_AND, run, negative);
  struct ir_val round = cg_quotient(l, id, grid);
  round = cg_op2(l, IR_AND, round, cg_s32(l, 1));
  struct ir_val most = cg_op2(l, IR_SUB, run, cg_s32(l, 1));
  return cg_op2(l, IR_XOR, index, cg_mul(l, round, most));
}

/* Grid indices of tile `id`, a cluster's where there are such. The last axis from 2 on is the
 * slowest; then groups of `group` rows of axis 0; in a group axis 0 is the fastest. With group = 1
 * axis 1 is the fastest. */
static void lower_grid(struct lower *l, const struct ir_val *grid_args, struct ir_val id) {
  struct ir_module *m = l->m;
  int64_t group = cg_knob_get(m, CG_KNOB_GROUP);
  struct ir_val index[IR_MAX_GRID], size[IR_MAX_GRID] = {{0}}, tile = id;
  for (uint32_t i = 0; i < m->n_grid; i++)
    size[i] = cg_launch_s32(l, cg_grid_size(l, i));
  bool clusters = l->roles && l->roles->blocks > 1 && l->roles->axis < m->n_grid;
  if (clusters && l->roles->axis == 0)
    group = group > l->roles->blocks ? group / l->roles->blocks : 1;
  for (uint32_t i = m->n_grid; i-- > 2;) {
    struct ir_val plane = size[0];
    for (uint32_t k = 1; k < i; k++)
      plane = cg_mul(l, plane, size[k]);
    index[i] = cg_quotient(l, id, plane);
    id = remainder_of(l, id, plane);
  }
  if (m->n_grid == 1) {
    index[0] = id;
  } else if (group <= 1) {
    index[0] = cg_quotient(l, id, size[1]);
    index[1] = remainder_of(l, id, size[1]);
  } else {
    struct ir_val band = cg_muli(l, size[1], group);
    struct ir_val first = cg_muli(l, cg_quotient(l, id, band), group);
    struct ir_val most = cg_s32(l, group);
    struct ir_val rows = cg_op2(l, IR_MIN, cg_op2(l, IR_SUB, size[0], first), most);
    struct ir_val in_band = remainder_of(l, id, band);
    index[0] = cg_add(l, first, remainder_of(l, in_band, rows));
    index[1] = cg_quotient(l, in_band, rows);
  }
  bool adjacent = m->n_grid == 1 || group > 1;
  if (l->roles && l->roles->blocks == 1 && adjacent && cg_trips_differ(m, 0))
    index[0] = take_turns(l, index[0], tile, size[0], m->n_grid == 1 ? 0 : group);
  if (clusters)
    index[l->roles->axis] = own_index(l, index[l->roles->axis]);
  for (uint32_t i = 0; i < m->n_grid; i++)
    cg_set_scalar(l, grid_args[i], cg_cast(l, index[i], DT_INDEX));
}

/* Body arguments: views have no value of their own; dims are computed where they are read. */
void cg_bind_entry(struct lower *l, struct ir_block entry, struct ir_val id) {
  struct ir_module *m = l->m;
  const struct ir_blocknode *body = ir_block_at(m, entry);
  uint32_t k = 0;
  for (uint32_t i = 0; i < m->args.n; i++) {
    if (!m->args.at[i].present)
      continue;
    if (m->args.at[i].kind == IR_ARG_SCALAR)
      cg_set_scalar(l, body->args.at[k], l->arg_ptr[i]);
    k++;
  }
  for (uint32_t i = 0; i < m->dims.n; i++, k++) {
    if (!l->uses.count[body->args.at[k].id])
      continue;
    struct expr e = expr_sym(&m->exprs, ir_sym(m, m->dims.at[i]));
    cg_set_scalar(l, body->args.at[k], cg_launch_index(l, e));
  }
  lower_grid(l, body->args.at + k, id);
}

static struct expr grid_size(struct lower *l) {
  struct expr e = cg_grid_size(l, 0);
  for (uint32_t i = 1; i < l->m->n_grid; i++)
    e = expr_op2(&l->m->exprs, EXPR_MUL, e, cg_grid_size(l, i));
  return e;
}

bool cg_pass_lower_machine(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  struct lower l = {.m = m, .ctx = ctx, .a = ctx->scratch, .target = cg_target_of(m)};
  struct ir_block old = m->body;
  l.n_val = m->values.n;
  l.n_ops = m->ops.n;
  l.uses = cg_collect_uses(m, l.a);
  l.intervals = ir_find_intervals(m, l.a);
  l.val = ARENA_ARRAY(l.a, struct cg_lval, l.n_val);
  l.threads = (uint32_t)cg_knob_get(m, CG_KNOB_THREADS);
  l.warps = l.threads / 32;
  l.all_threads = l.threads;
  map_init(&l.exprs, l.a);
  map_init(&l.coords, l.a);
  map_init(&l.consts, l.a);
  l.b = (struct ir_builder){.m = m, .block = ir_new_block(m, (struct ir_op){0})};
  add_arg_params(&l);
  struct ir_op marker = open_prologue(&l);
  /* Facts about entry values are looked up through m->body: it changes last. */
  if (cg_knob_get(m, CG_KNOB_WARPGROUPS) > 0) {
    cg_lower_roles(&l, old);
  } else {
    cg_bind_entry(&l, old, ir_build1(&l.b, IR_BLOCK_ID, ir_scalar(DT_S32), 0, NULL));
    cg_lower_block(&l, old);
  }
  l.b.loc = 0;
  ir_build(&l.b, IR_RETURN, 0, NULL, 0, NULL);
  ir_remove(m, marker);
  m->body = l.top.block;
  m->stage = IR_MACHINE_STAGE;
  cg_fill_recipe(&l, grid_size(&l));
  *changed = true;
  return !l.failed;
}
