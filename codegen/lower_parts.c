/* Loops whose iterations the blocks of a cluster share (attribute `parts`), all at one tile: block
 * r runs the r-th part, and block 0 adds up what the dots left and does what follows.
 *
 *   block r > 0   writes its accumulators into block 0's shared memory
 *   all threads   meet (release, acquire): once a tile
 *   block 0       adds them to its own, in the order of the parts; goes on behind the loop
 *
 * Accumulators cross as they lie in registers, 16 bytes a thread side by side, so nobody computes
 * places. There is room for two tiles in turn: what was read for one tile was read before its
 * reader came to the next tile's meeting, and only behind that is the room written again. */
#include "base/check.h"
#include "codegen/lower.h"

#define PIECE 4 /* floats of an access */

int64_t cg_loop_parts(const struct ir_module *m, struct ir_op o) {
  return ir_op_at(m, o)->opcode == IR_FOR ? ir_attr_int(m, o, IR_ATTR_parts, 1) : 1;
}

int64_t cg_parts_bytes(const struct ir_module *m) {
  int64_t bytes = 0;
  IR_EACH_OP (m, m->body, o)
    for (uint32_t k = 0; cg_loop_parts(m, o) > 1 && k < ir_op_at(m, o)->n_out; k++) {
      struct ir_type t = ir_type_of(m, ir_op_at(m, o)->out[k]);
      bytes += t.kind == IR_TILE ? 2 * (cg_loop_parts(m, o) - 1) * 4 * ir_elems(t) : 0;
    }
  return bytes;
}

static struct ir_val op2_index(struct lower *l, enum ir_opcode o, struct ir_val a,
                               struct ir_val b) {
  return ir_build1(&l->b, o, ir_scalar(DT_INDEX), 2, (struct ir_val[]){a, b});
}

void cg_cut_bounds(struct lower *l, struct ir_op loop, struct ir_val bounds[3]) {
  int64_t parts = cg_loop_parts(l->m, loop);
  if (parts < 2)
    return;
  struct ir_val lo = bounds[0], hi = bounds[1], step = bounds[2], n = cg_index(l, parts);
  struct ir_val rank = cg_cast(l, l->roles->rank, DT_INDEX);
  struct ir_val span = op2_index(l, IR_MAX, op2_index(l, IR_SUB, hi, lo), cg_index(l, 0));
  span = op2_index(l, IR_ADD, span, op2_index(l, IR_SUB, step, cg_index(l, 1)));
  struct ir_val trips = op2_index(l, IR_FLOORDIV, span, step), cut[2];
  for (int i = 0; i < 2; i++) {
    struct ir_val at =
        op2_index(l, IR_MUL, trips, i ? op2_index(l, IR_ADD, rank, cg_index(l, 1)) : rank);
    at = op2_index(l, IR_MUL, op2_index(l, IR_FLOORDIV, at, n), step);
    cut[i] = op2_index(l, IR_ADD, lo, at);
  }
  bounds[0] = cut[0];
  bounds[1] = op2_index(l, IR_MIN, cut[1], hi);
}

/* What a dot left: its fragment, the buffer; bool: did it come to any iteration? (0: yes) */
struct sum {
  uint32_t frag, buf;
  struct ir_val ran;
};

/* A buffer for the accumulators of all parts but one, twice. */
static uint32_t open_room(struct lower *l, uint32_t elems, int64_t parts) {
  int64_t n = (parts - 1) * elems * l->threads;
  struct ir_attr attrs[3] = {{.key = IR_ATTR_bytes, .i = 8 * n},
                             {.key = IR_ATTR_align, .i = 16},
                             {.key = IR_ATTR_slots, .i = 2}};
  struct ir_res r = {.kind = IR_RES_BUF,
                     .type = ir_tile(DT_F32, 2, (int64_t[]){2, n}),
                     .attrs = attrs,
                     .n_attrs = 3};
  r.name = symtab_get(l->m->syms, arena_printf(l->m->arena, "parts%u", ++l->n_names));
  return ir_add_res(l->m, r);
}

static void get_piece(struct lower *l, uint32_t frag, struct ir_val at, struct ir_val *v) {
  struct ir_type t[PIECE];
  for (int i = 0; i < PIECE; i++)
    t[i] = ir_scalar(DT_F32);
  struct ir_op o = ir_build(&l->b, IR_FGET, 1, &at, PIECE, t);
  ir_set_res(l->m, o, 1, &frag);
  memcpy(v, ir_op_at(l->m, o)->out, PIECE * sizeof *v);
}

/* The part's sum, zeros where it had no iterations and the dots wrote nothing. It has registers of
 * its own: ptxas serialises wgmma (C7520) whose accumulators code writes to that depends on the
 * block. */
static void take(struct lower *l, struct sum *x) {
  uint32_t from = x->frag, elems = cg_frag_elems(l, from);
  struct ir_val ran = x->ran.id ? x->ran : cg_bool(l, true), v[PIECE];
  x->frag = cg_new_frag(l, "sum", l->m->res.at[from].type, l->m->res.at[from].layout);
  struct ir_op branch = ir_build(&l->b, IR_IF, 1, &ran, 0, NULL);
  struct ir_builder saved = cg_enter_block(l, ir_op_at(l->m, branch)->blocks[0]), each;
  struct ir_val at = cg_muli(l, cg_each(l, elems / PIECE, &each), PIECE);
  get_piece(l, from, at, v);
  cg_fput(l, x->frag, at, PIECE, v);
  cg_end_each(l, each);
  cg_leave_block(l, saved, IR_YIELD, 0, NULL);
  saved = cg_enter_block(l, ir_op_at(l->m, branch)->blocks[1]);
  cg_ffill(l, x->frag, cg_zero_of(l, DT_F32));
  cg_leave_block(l, saved, IR_YIELD, 0, NULL);
}

/* This thread's pieces of part `part` (counted from 0, block 1's) start there: bytes. */
static struct ir_val room_at(struct lower *l, struct ir_val part, uint32_t elems, int64_t parts) {
  int64_t bytes = (int64_t)elems * l->threads * 4;
  struct ir_val at = cg_muli(l, l->roles->turn, (parts - 1) * bytes);
  at = cg_add(l, at, cg_muli(l, part, bytes));
  return cg_add(l, at, cg_muli(l, l->roles->thread, 4 * PIECE));
}

static void send(struct lower *l, const struct sum *x, int64_t parts) {
  uint32_t elems = cg_frag_elems(l, x->frag);
  struct ir_val from = room_at(l, cg_addi(l, l->roles->rank, -1), elems, parts), in[3 + PIECE];
  struct ir_builder saved;
  struct ir_val i = cg_each(l, elems / PIECE, &saved);
  in[0] = cg_add(l, from, cg_muli(l, i, 4 * PIECE * (int64_t)l->threads));
  in[1] = cg_s32(l, 0);
  in[2] = cg_bool(l, true);
  get_piece(l, x->frag, cg_muli(l, i, PIECE), in + 3);
  cg_res_op(l, IR_RSTORE, 1, &x->buf, 3 + PIECE, in);
  cg_end_each(l, saved);
}

static void add_others(struct lower *l, const struct sum *x, int64_t parts) {
  uint32_t elems = cg_frag_elems(l, x->frag);
  struct ir_val from[IR_MAX_PARTS], v[PIECE], w[PIECE];
  struct ir_type t[PIECE];
  for (int64_t p = 0; p + 1 < parts; p++)
    from[p] = room_at(l, cg_s32(l, p), elems, parts);
  for (int k = 0; k < PIECE; k++)
    t[k] = ir_scalar(DT_F32);
  struct ir_builder saved;
  struct ir_val i = cg_each(l, elems / PIECE, &saved);
  struct ir_val piece = cg_muli(l, i, 4 * PIECE * (int64_t)l->threads);
  get_piece(l, x->frag, cg_muli(l, i, PIECE), v);
  for (int64_t p = 0; p + 1 < parts; p++) {
    struct ir_val at = cg_add(l, from[p], piece);
    struct ir_op o = ir_build(&l->b, IR_SLOAD, 1, &at, PIECE, t);
    ir_set_res(l->m, o, 1, &x->buf);
    memcpy(w, ir_op_at(l->m, o)->out, sizeof w);
    for (int k = 0; k < PIECE; k++)
      v[k] = ir_build1(&l->b, IR_ADD, t[0], 2, (struct ir_val[]){v[k], w[k]});
  }
  cg_fput(l, x->frag, cg_muli(l, i, PIECE), PIECE, v);
  cg_end_each(l, saved);
}

void cg_meet_parts(struct lower *l) {
  struct ir_op o = ir_build(&l->b, IR_CLUSTER_ARRIVE, 0, NULL, 0, NULL);
  cg_set_word(l->m, o, IR_ATTR_sem, "release");
  ir_build(&l->b, IR_CLUSTER_WAIT, 0, NULL, 0, NULL);
}

struct ir_builder cg_join_parts(struct lower *l, struct ir_op loop) {
  struct ir_module *m = l->m;
  int64_t parts = cg_loop_parts(m, loop);
  uint32_t n_out = ir_op_at(m, loop)->n_out, n = 0;
  struct sum *sum = ARENA_ARRAY(l->a, struct sum, n_out + 1);
  struct ir_val first = cg_cmp(l, IR_EQ, l->roles->rank, cg_s32(l, 0));
  struct ir_val other = cg_cmp(l, IR_GT, l->roles->rank, cg_s32(l, 0));
  for (uint32_t k = 0; k < n_out; k++) {
    struct ir_val v = ir_op_at(m, loop)->out[k];
    struct cg_lval *x = &l->val[v.id];
    if (!l->uses.count[v.id])
      continue;
    KILN_ASSERT(x->kind == CG_LV_FRAG);
    sum[n] = (struct sum){x->frag, open_room(l, cg_frag_elems(l, x->frag), parts), x->filled};
    take(l, &sum[n]);
    x->frag = sum[n++].frag;
    x->filled = (struct ir_val){0};
  }
  struct ir_builder saved = cg_enter_if(l, other);
  for (uint32_t k = 0; k < n; k++)
    send(l, &sum[k], parts);
  cg_leave_if(l, saved);
  cg_meet_parts(l);
  saved = cg_enter_if(l, first);
  for (uint32_t k = 0; k < n; k++)
    add_others(l, &sum[k], parts);
  return saved;
}
