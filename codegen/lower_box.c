/* What the tensor memory unit moves: buffers in panels as it swizzles them, tensor maps, loads of
 * tiles as boxes, stores of accumulators.
 *
 * A matrix lies in panels: each has all rows, and of each row as many elements as one swizzled row
 * of 32, 64 or 128 bytes holds. Chunk c (16 bytes) of row r lies at r * bytes + (c ^ s) * 16, where
 * s is r / (128 / bytes) modulo the chunks of a row (PTX ISA, "Swizzling modes").
 *
 * A store goes panel by panel, 64 rows each: a warpgroup writes its part with stmatrix (elements of
 * 32 bits one by one), and its first thread has the box stored while the next panel is written.
 * Each panel has a place of its own, which is written again when the unit has read it, one tile
 * later; where the knob `staging` gives less room, panels take turns (a number of places that
 * divides theirs). */
#include "base/check.h"
#include "codegen/lower.h"
#include "codegen/schedule.h"

#define MOST_PENDING 7  /* of groups, that a wait can leave open */
#define ROWS         64 /* of an instruction of warpgroups */

struct cg_smem *cg_new_panels(struct lower *l, const char *name, enum dtype t, int64_t outer,
                              int64_t inner, uint32_t swizzle, uint32_t slots) {
  struct cg_smem *s = ARENA_NEW(l->a, struct cg_smem);
  int64_t panel = swizzle / dtype_bytes(t, 1), panels = inner / panel;
  s->dtype = t;
  s->outer = outer;
  s->inner = inner;
  s->pitch = swizzle;
  s->panel = panel;
  s->panel_swizzle = swizzle;
  s->slot_bytes = panels * outer * swizzle;
  int64_t shape[4] = {slots, panels, outer, panel};
  bool one_slot = slots == 1, one_panel = panels == 1;
  if (one_panel)
    shape[1] = shape[2], shape[2] = shape[3];
  uint32_t rank = one_panel ? 3 : 4;
  struct ir_type type = one_slot ? ir_tile(t, rank - 1, shape + 1) : ir_tile(t, rank, shape);
  struct ir_attr attrs[6] = {
      {.key = IR_ATTR_bytes, .i = slots * s->slot_bytes},
      {.key = IR_ATTR_align, .i = 1024},
      {.key = IR_ATTR_slots, .i = slots},
      {.key = IR_ATTR_swizzle_bytes, .i = swizzle},
      {.key = IR_ATTR_lbo, .i = one_panel ? 16 : outer * swizzle},
      {.key = IR_ATTR_sbo, .i = 8 * swizzle},
  };
  struct ir_res r = {.kind = IR_RES_BUF, .type = type, .attrs = attrs, .n_attrs = 6};
  r.name = symtab_get(l->m->syms, arena_printf(l->m->arena, "%s%u", name, ++l->n_names));
  s->buf = ir_add_res(l->m, r);
  return s;
}

/* The argument's dim of the tile's rows, or -1: it has one row. */
static int rows_dim(const struct cg_box *b, struct ir_type t) {
  for (uint32_t d = 0; d < b->rank; d++)
    if (b->tile_dim[d] >= 0 && d != b->inner && t.dim[b->tile_dim[d]] != 1)
      return (int)d;
  return -1;
}

/* The argument's dims in the order of the map: the contiguous one, then from the last. */
static void order_of(const struct cg_box *b, int64_t *perm) {
  uint32_t n = 0;
  perm[n++] = b->inner;
  for (uint32_t d = b->rank; d-- > 0;)
    if (d != b->inner)
      perm[n++] = d;
}

/* By default the most: rows of tiles are neighbours in memory as a rule. */
static int64_t l2_promotion(struct ir_module *m) {
  int64_t asked = cg_knob_get(m, CG_KNOB_PROMOTE);
  return asked == 0 ? 0 : 32 << (asked > 0 ? asked : 3);
}

uint32_t cg_new_tmap(struct lower *l, const struct cg_box *b, struct ir_type t, int64_t rows,
                     bool tf32) {
  struct ir_module *m = l->m;
  const struct ir_arg *a = &m->args.at[b->arg];
  int64_t *perm = arena_get(m->arena, IR_MAX_RANK * sizeof *perm);
  int64_t *box = arena_get(m->arena, IR_MAX_RANK * sizeof *box);
  int64_t shape[IR_MAX_RANK];
  int along = rows_dim(b, t);
  order_of(b, perm);
  for (uint32_t i = 0; i < b->rank; i++) {
    box[i] = i == 0 ? b->panel : perm[i] == along ? rows : 1;
    shape[perm[i]] = box[i];
  }
  struct ir_attr attrs[6] = {
      {.key = IR_ATTR_arg, .s = a->name},
      {.key = IR_ATTR_perm, .ints = perm, .n_ints = b->rank},
      {.key = IR_ATTR_box, .ints = box, .n_ints = b->rank},
      {.key = IR_ATTR_swizzle_bytes, .i = b->swizzle},
      {.key = IR_ATTR_l2, .i = l2_promotion(m)},
  };
  struct ir_res r = {
      .kind = IR_RES_TMAP, .type = ir_tile(a->dtype, b->rank, shape), .attrs = attrs};
  r.n_attrs = 5;
  if (tf32)
    attrs[r.n_attrs++] = (struct ir_attr){.key = IR_ATTR_round, .s = symtab_get(m->syms, "tf32")};
  r.name =
      symtab_get(m->syms, arena_printf(m->arena, "map_%s%u", ir_sym(m, a->name), ++l->n_names));
  uint32_t res = ir_add_res(m, r);
  struct ir_param p = {.kind = RECIPE_PARAM_TMAP, .res = res};
  struct ir_type ptr = ir_scalar(a->dtype);
  ptr.kind = IR_PTR;
  VEC_PUSH(m->arena, &m->params, p);
  ir_add_arg(m, l->top.block, ptr);
  return res;
}

/* Coordinates of the tile's first element, in the order of the map, s32. */
static void coordinates(struct lower *l, const struct cg_box *b, struct ir_val *at) {
  int64_t perm[IR_MAX_RANK];
  order_of(b, perm);
  for (uint32_t i = 0; i < b->rank; i++) {
    struct ir_val v = b->at[perm[i]];
    if (b->checked && v.id && b->tile_dim[perm[i]] < 0) {
      struct ir_val least = cg_index(l, -1), most = cg_index(l, INT32_MAX);
      struct ir_val x = cg_op2(l, IR_MAX, cg_scalar(l, v), least);
      at[i] = cg_cast(l, cg_op2(l, IR_MIN, x, most), DT_S32);
      continue;
    }
    at[i] = v.id ? cg_cast(l, cg_scalar(l, v), DT_S32) : cg_s32(l, 0);
  }
}

/* From the tile's first row to the first of this block's share: offset and coordinates. */
static void skip_rows(struct lower *l, const struct cg_unit_load *x, struct ir_val *in) {
  int64_t perm[IR_MAX_RANK];
  int along = rows_dim(&x->box, ir_type_of(l->m, ir_op_at(l->m, x->load)->out[0]));
  struct ir_val row = cg_muli(l, l->roles->rank, x->share.rows);
  order_of(&x->box, perm);
  in[0] = cg_add(l, in[0], cg_muli(l, row, x->smem->pitch));
  for (uint32_t d = 0; d < x->box.rank; d++)
    if (perm[d] == along)
      in[1 + d] = cg_add(l, in[1 + d], row);
}

void cg_load_boxes(struct lower *l, const struct cg_unit_load *x) {
  const struct cg_feed *f = &l->roles->feeds.at[x->feed];
  const struct cg_smem *s = x->smem;
  uint32_t panels = (uint32_t)(s->inner / s->panel);
  struct ir_val in[2 + IR_MAX_RANK];
  struct ir_type t = ir_scalar(DT_S32);
  struct ir_op slot = ir_build(&l->b, IR_SLOT_AT, 0, NULL, 1, &t);
  ir_set_res(l->m, slot, 2, (uint32_t[]){f->cursor[0], s->buf});
  coordinates(l, &x->box, in + 1);
  in[0] = ir_op_at(l->m, slot)->out[0];
  if (x->shared && x->share.by_rows)
    skip_rows(l, x, in);
  struct ir_builder saved;
  struct ir_val p = cg_each(l, x->shared ? (uint32_t)x->share.panels : panels, &saved);
  if (x->shared && !x->share.by_rows)
    p = cg_add(l, p, cg_muli(l, l->roles->rank, x->share.panels));
  in[0] = cg_add(l, in[0], cg_muli(l, p, s->outer * s->pitch));
  in[1] = cg_add(l, in[1], cg_muli(l, p, s->panel));
  if (x->shared)
    in[1 + x->box.rank] = cg_s32(l, (1 << l->roles->blocks) - 1);
  struct ir_op o = cg_res_op(l, IR_TMA_LOAD, 3, (uint32_t[]){s->buf, f->cursor[0], x->tmap},
                             1 + x->box.rank + x->shared, in);
  if (x->shared)
    cg_set_int(l->m, o, IR_ATTR_multicast, 1);
  if (x->streamed)
    cg_set_word(l->m, o, IR_ATTR_hint, "evict_first");
  cg_end_each(l, saved);
}

/* ---- stores ---- */

struct out {
  struct ir_val v;
  struct ir_type type;
  uint32_t layout;
  struct cg_box box;
  struct cg_warps w;
  uint32_t blocks, cols; /* of a warpgroup: of 64 rows; columns */
  uint32_t panels;
};

/* How the accumulator's layout lies over the warps, read off it: groups along rows and columns. */
static struct out open_out(struct lower *l, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(l->m, o);
  struct out x = {.v = n->in[n->n_in - 1u]};
  const char *why = cg_box_of(l->m, l->intervals, o, &x.box);
  KILN_ASSERT(!why);
  (void)why;
  x.type = ir_type_of(l->m, x.v);
  x.layout = cg_layout_of(l, x.v);
  const struct layout *y = cg_layout_at(l, x.layout);
  uint32_t regs = layout_extent(y, LAYOUT_REG), along = 1;
  for (uint32_t i = 0; i < y->modes.n; i++)
    if (y->modes.at[i].hw == LAYOUT_WARP && y->modes.at[i].step[0] >= ROWS)
      along = y->modes.at[i].extent;
  x.w = (struct cg_warps){4 * along, l->roles->groups / along};
  x.cols = (uint32_t)x.type.dim[1] / x.w.cols;
  x.blocks = regs / (x.cols / 2);
  int64_t bytes = dtype_bytes((enum dtype)x.type.dtype, 1);
  while (x.cols * bytes % x.box.swizzle)
    x.box.swizzle /= 2;
  x.box.panel = x.box.swizzle / bytes;
  x.panels = (uint32_t)(x.cols / x.box.panel);
  return x;
}

uint32_t cg_store_box_count(struct lower *l, struct ir_op o) {
  struct out x = open_out(l, o);
  return x.blocks * x.panels;
}

/* Places of a warpgroup's panels. */
static uint32_t places(struct lower *l, uint32_t panels) {
  int64_t asked = cg_knob_get(l->m, CG_KNOB_STAGING);
  uint32_t n = asked > 0 && asked < panels ? (uint32_t)asked : panels;
  while (panels % n)
    n--;
  return n;
}

/* At most `pending` groups of this thread's have yet to be read; fewer where so many cannot be
 * waited for. */
static void bulk_wait(struct lower *l, int64_t pending) {
  pending = pending > MOST_PENDING ? MOST_PENDING : pending;
  struct ir_builder saved = cg_enter_if(l, l->roles->one);
  struct ir_op o = ir_build(&l->b, IR_BULK_WAIT, 0, NULL, 0, NULL);
  cg_set_int(l->m, o, IR_ATTR_pending, pending);
  cg_set_int(l->m, o, IR_ATTR_read, 1);
  cg_leave_if(l, saved);
}

/* The layout of `cols` columns of 64 rows of each warpgroup. */
static uint32_t part_layout(struct lower *l, const struct out *x, int64_t cols) {
  struct cg_warps w = x->w;
  return ir_add_layout(l->m,
                       cg_layout_wgmma_acc(l->a, ROWS * (int64_t)w.rows / 4, cols * w.cols, w));
}

/* Which row of 8 elements of a panel a lane gives the address of, for 16 x 16 elements a warp. */
struct lane_place {
  struct ir_val row_at, half, turn;
};

static struct lane_place place_lane(struct lower *l, const struct out *x) {
  static const int64_t low16[4] = {16, 1, 2, 0}, high[4] = {16, 0, 2, 1};
  static const int64_t warp_rows[4] = {4, 16, 0, 0};
  int64_t swizzle = x->box.swizzle;
  struct lane_place p;
  struct ir_builder saved = cg_enter_top(l);
  struct ir_val in_group = cg_op2(l, IR_AND, l->warp, cg_s32(l, 3));
  struct ir_val row = cg_muli(l, in_group, warp_rows[1]);
  row = cg_add(l, row, cg_digits(l, l->lane, 4, low16));
  p.half = cg_digits(l, l->lane, 4, high);
  p.turn = cg_op2(l, IR_SHR, row, cg_s32(l, swizzle == 128 ? 0 : swizzle == 64 ? 1 : 2));
  p.turn = cg_op2(l, IR_AND, p.turn, cg_s32(l, swizzle / 16 - 1));
  p.row_at = cg_muli(l, row, swizzle);
  cg_leave_top(l, saved);
  return p;
}

/* Offset of that row, for the q-th 16 columns of the panel at `at`. */
static struct ir_val column_at(struct lower *l, const struct lane_place *p, struct ir_val at,
                               struct ir_val q) {
  struct ir_val chunk = cg_op2(l, IR_XOR, cg_add(l, cg_muli(l, q, 2), p->half), p->turn);
  struct ir_val to = cg_add(l, at, p->row_at);
  return cg_add(l, to, cg_muli(l, chunk, 16));
}

/* A panel of this warpgroup's rows, 16 columns at a time; `from`: its first register. */
static void write_panel(struct lower *l, const struct out *x, uint32_t buf, struct ir_val at,
                        struct ir_val from) {
  uint32_t part = part_layout(l, x, 16);
  const int64_t *shape = cg_layout_at(l, part)->shape;
  uint32_t frag = cg_new_frag(l, "out", ir_tile((enum dtype)x->type.dtype, 2, shape), part);
  struct lane_place p = place_lane(l, x);
  struct ir_builder loop;
  struct ir_val q = cg_each(l, (uint32_t)x->box.panel / 16, &loop), v[8];
  struct ir_val r = cg_add(l, from, cg_muli(l, q, 8));
  cg_eval_run(l, x->v, r, x->layout, 8, v);
  for (uint32_t i = 0; i < 8; i += 2)
    cg_fput(l, frag, cg_s32(l, i), 2, v + i);
  struct ir_val to = column_at(l, &p, at, q);
  struct ir_op o =
      cg_res_op(l, IR_STMATRIX, 2, (uint32_t[]){buf, frag}, 2, (struct ir_val[]){to, cg_s32(l, 0)});
  cg_set_int(l->m, o, IR_ATTR_num, 4);
  cg_set_int(l->m, o, IR_ATTR_trans, 0);
  cg_end_each(l, loop);
}

/* The same of 32-bit elements: two columns of a row at a time, as a thread has them. In order,
 * lanes of four rows would have the same banks twice; so in panels of 32 columns every other row
 * has its halves changed, in panels of 16 every other two rows: then 16 lanes have all banks. */
static void write_words(struct lower *l, const struct out *x, const struct cg_smem *s,
                        struct ir_val at, struct ir_val from) {
  static const int64_t lane_rows[4] = {4, 0, 8, 1}, lane_half[6] = {2, 0, 2, 1, 8, 0};
  int64_t swizzle = x->box.swizzle, bytes = dtype_bytes(s->dtype, 1);
  uint32_t n = (uint32_t)x->box.panel / 8; /* 8 columns are 4 registers: 2 of a row, 2 of another */
  uint32_t flip = n / 2;                   /* of blocks of 8 columns; 0: nothing changes */
  struct ir_builder saved = cg_enter_top(l);
  struct ir_val row = cg_muli(l, cg_op2(l, IR_AND, l->warp, cg_s32(l, 3)), 16);
  row = cg_add(l, row, cg_digits(l, l->lane, 4, lane_rows));
  struct ir_val other = cg_op2(l, IR_SHR, row, cg_s32(l, n == 2 ? 1 : 0));
  other = cg_op2(l, IR_AND, other, cg_s32(l, 1));
  uint32_t shift = swizzle == 128 ? 0 : swizzle == 64 ? 1 : 2;
  struct ir_val chunk = cg_op2(l, IR_SHR, row, cg_s32(l, shift));
  chunk = cg_op2(l, IR_AND, chunk, cg_s32(l, swizzle / 16 - 1));
  chunk = cg_op2(l, IR_XOR, chunk, cg_digits(l, l->lane, 6, lane_half));
  if (flip)
    chunk = cg_op2(l, IR_XOR, chunk, cg_muli(l, other, 2 * flip));
  struct ir_val to = cg_muli(l, row, swizzle);
  struct ir_val odd = cg_op2(l, IR_AND, l->lane, cg_s32(l, 1));
  to = cg_add(l, to, cg_muli(l, odd, 2 * bytes));
  struct ir_val is_other = cg_cmp(l, IR_EQ, other, cg_s32(l, 1));
  cg_leave_top(l, saved);
  struct ir_val v[16], base = cg_add(l, at, to);
  cg_eval_run(l, x->v, from, x->layout, 4 * n, v);
  for (uint32_t k = 0; k < n; k++) {
    struct ir_val here = cg_muli(l, cg_op2(l, IR_XOR, chunk, cg_s32(l, 2 * k)), 16);
    for (uint32_t i = 4 * k; i < 4 * k + 4; i += 2) {
      struct ir_val pair[2] = {v[i], v[i + 1]};
      for (uint32_t e = 0; e < 2 && flip; e++)
        pair[e] = cg_select(l, is_other, v[(i + e) ^ 4 * flip], v[i + e]);
      struct ir_val where = cg_add(l, base, here);
      cg_sstore(l, s, cg_addi(l, where, i % 4 * 4 * swizzle), cg_bool(l, true), 2, pair);
    }
  }
}

/* Where a warpgroup's part of the tile begins, s32. */
struct corner {
  struct ir_val row, col;
};

static struct corner corner_of(struct lower *l, const struct out *x, struct ir_val group) {
  struct ir_val row = group, col = cg_s32(l, 0);
  int64_t along = x->w.rows / 4;
  if (x->w.cols > 1) {
    row = cg_digits(l, group, 4, (int64_t[]){along, 1, x->w.cols, 0});
    col = cg_digits(l, group, 4, (int64_t[]){along, 0, x->w.cols, 1});
  }
  return (struct corner){cg_muli(l, row, ROWS * (int64_t)x->blocks), cg_muli(l, col, x->cols)};
}

/* Panels of 64 rows, of one warpgroup after the other. */
static struct cg_smem *new_staging(struct lower *l, const struct out *x, uint32_t arg) {
  uint32_t held = places(l, x->blocks * x->panels);
  return cg_new_panels(l, ir_sym(l->m, l->m->args.at[arg].name), (enum dtype)x->type.dtype, ROWS,
                       (int64_t)l->roles->groups * held * x->box.panel, x->box.swizzle, 1);
}

static const struct cg_unit_load *landed_in(struct lower *l, struct ir_op store) {
  for (uint32_t i = 0; i < l->roles->loads.n; i++)
    if (l->roles->loads.at[i].store.id == store.id)
      return &l->roles->loads.at[i];
  return NULL;
}

void cg_store_boxes(struct lower *l, struct ir_op o) {
  struct cg_roles *r = l->roles;
  struct out x = open_out(l, o);
  uint32_t count = x.blocks * x.panels, held = places(l, count);
  const struct cg_unit_load *landed = landed_in(l, o);
  const struct cg_smem *s = landed ? landed->smem : new_staging(l, &x, x.box.arg);
  uint32_t tmap = cg_new_tmap(l, &x.box, x.type, ROWS, false);
  int64_t panel_bytes = ROWS * (int64_t)x.box.swizzle;
  struct ir_val first[IR_MAX_RANK], at[1 + IR_MAX_RANK];
  coordinates(l, &x.box, first);
  struct corner corner = corner_of(l, &x, r->group);
  struct ir_val base = cg_muli(l, r->group, held * panel_bytes);
  struct ir_val col0 = cg_add(l, first[0], corner.col);
  if (!r->store_groups && held == count && !landed)
    bulk_wait(l, 0);
  struct ir_builder saved;
  struct ir_val i = cg_each(l, count, &saved);
  struct ir_val panel = cg_digits(l, i, 4, (int64_t[]){x.panels, 1, x.blocks, 0});
  struct ir_val block = cg_digits(l, i, 4, (int64_t[]){x.panels, 0, x.blocks, 1});
  struct ir_val reg = cg_muli(l, block, x.cols / 2);
  reg = cg_add(l, reg, cg_muli(l, panel, x.box.panel / 2));
  int64_t turns[4] = {held, panel_bytes, count / held, 0};
  struct ir_val place = held < count ? cg_digits(l, i, 4, turns) : cg_muli(l, i, panel_bytes);
  struct ir_val from = r->panel_at = cg_add(l, base, place);
  cg_load_part(l, x.v, part_layout(l, &x, x.box.panel), reg);
  if (held < count)
    bulk_wait(l, held - 1);
  else if (r->store_groups && !landed)
    bulk_wait(l, r->store_groups - 1);
  /* The place is free for all: what was in it has been read, by the unit or, where a tile landed,
   * by the threads of a warp for each other. */
  cg_res_op(l, IR_BAR_SYNC, 1, &r->group_bar, 1, &r->group);
  if (dtype_bits((enum dtype)x.type.dtype) == 32)
    write_words(l, &x, s, from, reg);
  else
    write_panel(l, &x, s->buf, from, reg);
  ir_build(&l->b, IR_FENCE_ASYNC, 0, NULL, 0, NULL);
  cg_res_op(l, IR_BAR_SYNC, 1, &r->group_bar, 1, &r->group);
  struct ir_builder in = cg_enter_if(l, r->one);
  int64_t perm[IR_MAX_RANK];
  order_of(&x.box, perm);
  int along_rows = rows_dim(&x.box, x.type);
  at[0] = from;
  for (uint32_t d = 0; d < x.box.rank; d++)
    at[1 + d] = first[d];
  at[1] = cg_add(l, col0, cg_muli(l, panel, x.box.panel));
  for (uint32_t d = 1; d < x.box.rank; d++)
    if (perm[d] == along_rows) {
      at[1 + d] = cg_add(l, first[d], corner.row);
      at[1 + d] = cg_add(l, at[1 + d], cg_muli(l, block, ROWS));
    }
  cg_res_op(l, IR_TMA_STORE, 2, (uint32_t[]){tmap, s->buf}, 1 + x.box.rank, at);
  ir_build(&l->b, IR_BULK_COMMIT, 0, NULL, 0, NULL);
  cg_leave_if(l, in);
  cg_end_each(l, saved);
  if (!landed)
    return;
  /* The next tile may land when the unit has read this one. */
  bulk_wait(l, 0);
  cg_release_feeds(l, landed->load, false, cg_bool(l, true));
  cg_advance_feeds(l, landed->load);
}

/* ---- loads that land in the panels of a store ---- */

void cg_open_landing(struct lower *l, struct cg_unit_load *x) {
  struct out s = open_out(l, x->store);
  struct ir_type t = ir_type_of(l->m, ir_op_at(l->m, x->load)->out[0]);
  KILN_ASSERT(places(l, s.blocks * s.panels) == s.blocks * s.panels);
  x->smem = new_staging(l, &s, s.box.arg);
  x->box.swizzle = s.box.swizzle;
  x->box.panel = s.box.panel;
  x->tmap = cg_new_tmap(l, &x->box, t, ROWS, false);
}

void cg_load_landing(struct lower *l, const struct cg_unit_load *x) {
  const struct cg_feed *f = &l->roles->feeds.at[x->feed];
  struct out s = open_out(l, x->store);
  struct ir_type t = ir_type_of(l->m, ir_op_at(l->m, x->load)->out[0]);
  uint32_t count = s.blocks * s.panels;
  struct ir_val in[1 + IR_MAX_RANK];
  int64_t perm[IR_MAX_RANK];
  int rows = rows_dim(&x->box, t);
  order_of(&x->box, perm);
  coordinates(l, &x->box, in + 1);
  struct ir_builder saved;
  struct ir_val i = cg_each(l, l->roles->groups * count, &saved);
  struct ir_val group = cg_digits(l, i, 4, (int64_t[]){count, 0, l->roles->groups, 1});
  struct ir_val panel =
      cg_digits(l, i, 6, (int64_t[]){s.panels, 1, s.blocks, 0, l->roles->groups, 0});
  struct ir_val block =
      cg_digits(l, i, 6, (int64_t[]){s.panels, 0, s.blocks, 1, l->roles->groups, 0});
  struct corner corner = corner_of(l, &s, group);
  in[0] = cg_muli(l, i, ROWS * (int64_t)s.box.swizzle);
  in[1] = cg_add(l, in[1], cg_add(l, corner.col, cg_muli(l, panel, s.box.panel)));
  for (uint32_t d = 1; d < x->box.rank; d++)
    if (perm[d] == rows)
      in[1 + d] = cg_add(l, in[1 + d], cg_add(l, corner.row, cg_muli(l, block, ROWS)));
  cg_res_op(l, IR_TMA_LOAD, 3, (uint32_t[]){x->smem->buf, f->cursor[0], x->tmap}, 1 + x->box.rank,
            in);
  cg_end_each(l, saved);
}

uint32_t cg_read_landed(struct lower *l, const struct cg_unit_load *x, uint32_t part) {
  const struct layout *y = cg_layout_at(l, part);
  struct out s = open_out(l, x->store);
  struct ir_type t = ir_type_of(l->m, ir_op_at(l->m, x->load)->out[0]);
  uint32_t frag = cg_new_frag(l, "x", ir_tile((enum dtype)t.dtype, y->rank, y->shape), part);
  struct lane_place p = place_lane(l, &s);
  struct ir_builder saved;
  struct ir_val q = cg_each(l, (uint32_t)s.box.panel / 16, &saved);
  struct ir_val in[2] = {column_at(l, &p, l->roles->panel_at, q), cg_muli(l, q, 8)};
  struct ir_op o = cg_res_op(l, IR_LDMATRIX, 2, (uint32_t[]){frag, x->smem->buf}, 2, in);
  cg_set_int(l->m, o, IR_ATTR_num, 4);
  cg_set_int(l->m, o, IR_ATTR_trans, 0);
  cg_end_each(l, saved);
  return frag;
}
