/* Gives every tile that lives in registers its layout.
 *
 * Before: paths and warps chosen. After: each tile value has a layout, but for those that have none
 * by nature: dot operands as loaded, and free tiles (splats, iotas), which are computed in whatever
 * layout their reader has. Where an op wants an operand in another layout than it has, there is a
 * `convert` between them.
 *
 * Values that one op computes element by element, or that a loop carries, form a class with one
 * layout. Anchors fix layouts: first the accumulators of dots, in order; then operands that dots
 * take from registers; then, largest tile first, loads and stores of the classes that are left
 * (blocked, along the contiguous dim), and what meets no memory. From each fixed class layouts
 * spread over reductions, broadcasts, transposes and reshapes to its neighbours. A load or store
 * that moves its tile much better in another layout than its class has does so, with a convert
 * between them. */
#include "base/check.h"
#include "codegen/layouts.h"
#include "codegen/pass.h"
#include "ir/range.h"
#include "codegen/schedule.h"

#define LEAST_BYTES 1024 /* of a tile for which a barrier is worth it */

struct solver {
  struct ir_module *m;
  struct arena *a;
  struct cg_uses uses;
  uint32_t n; /* values at the start */
  uint32_t *parent;
  const struct layout **layout; /* per class representative */
  bool *has_class;              /* per value: does it take part? */
  VEC(struct ir_op) ops;        /* all ops, in order */
  VEC(uint32_t) todo;           /* classes whose neighbours are to be visited */
  uint32_t warps;
  bool dots;
};

static uint32_t find(struct solver *s, uint32_t v) {
  while (s->parent[v] != v)
    v = s->parent[v] = s->parent[s->parent[v]];
  return v;
}

static void unite(struct solver *s, struct ir_val x, struct ir_val y) {
  uint32_t a = find(s, x.id), b = find(s, y.id);
  /* The smaller id represents: the order of unions must not show. */
  if (a < b)
    s->parent[b] = a;
  else
    s->parent[a] = b;
}

static bool is_tile(const struct solver *s, struct ir_val v) {
  return ir_type_of(s->m, v).kind == IR_TILE;
}

/* Unites tiles that must agree; a free tile agrees with anything. */
static void tie(struct solver *s, struct ir_val x, struct ir_val y) {
  if (is_tile(s, x) && s->has_class[x.id] && s->has_class[y.id])
    unite(s, x, y);
}

static void tie_block(struct solver *s, struct ir_block b, uint32_t first, uint32_t n,
                      const struct ir_val *to) {
  const struct ir_opnode *last = ir_op_at(s->m, ir_block_at(s->m, b)->last);
  for (uint32_t i = 0; i < n; i++)
    tie(s, last->in[first + i], to[i]);
}

static void tie_op(struct solver *s, struct ir_op o) {
  struct ir_module *m = s->m;
  const struct ir_opnode *n = ir_op_at(m, o);
  if (cg_is_elementwise(n->opcode)) {
    for (uint32_t i = 0; i < n->n_in; i++)
      tie(s, n->in[i], n->out[0]);
  } else if (n->opcode == IR_SCAN_SUM) {
    tie(s, n->in[0], n->out[0]);
  } else if (n->opcode == IR_DOT) {
    tie(s, n->in[2], n->out[0]);
  } else if (cg_takes_indices(n->opcode)) {
    struct ir_val all = cg_selected(m, o);
    for (uint32_t i = 1; i < n->n_in; i++)
      if (ir_shape_eq(ir_type_of(m, n->in[i]), ir_type_of(m, all)))
        tie(s, n->in[i], all);
    if (n->opcode == IR_ATOMIC)
      tie(s, n->out[0], all);
  } else if (n->opcode == IR_FOR) {
    const struct ir_blocknode *b = ir_block_at(m, n->blocks[0]);
    for (uint32_t i = 0; i < n->n_out; i++) {
      tie(s, n->in[3 + i], n->out[i]);
      tie(s, b->args.at[1 + i], n->out[i]);
    }
    tie_block(s, n->blocks[0], 0, n->n_out, n->out);
  } else if (n->opcode == IR_IF) {
    tie_block(s, n->blocks[0], 0, n->n_out, n->out);
    tie_block(s, n->blocks[1], 0, n->n_out, n->out);
  } else if (n->opcode == IR_WHILE) {
    const struct ir_blocknode *head = ir_block_at(m, n->blocks[0]);
    const struct ir_blocknode *body = ir_block_at(m, n->blocks[1]);
    for (uint32_t i = 0; i < n->n_in; i++)
      tie(s, n->in[i], head->args.at[i]);
    for (uint32_t i = 0; i < n->n_out; i++)
      tie(s, body->args.at[i], n->out[i]);
    tie_block(s, n->blocks[0], 1, n->n_out, n->out);
    tie_block(s, n->blocks[1], 0, n->n_in, head->args.at);
  }
}

/* ---- spreading ---- */

static uint32_t grown_dims(struct ir_type from, struct ir_type to) {
  uint32_t dims = 0;
  for (uint32_t d = 0; d < to.rank; d++)
    dims |= (uint32_t)(from.dim[d] != to.dim[d]) << d;
  return dims;
}

/* How many elements of a bitcast's narrower type are one of the wider; `narrows`: the operand's is
 * the wider. */
static uint32_t bitcast_parts(const struct ir_module *m, struct ir_op o, bool *narrows) {
  uint32_t in = dtype_bits((enum dtype)ir_type_of(m, ir_op_at(m, o)->in[0]).dtype);
  uint32_t out = dtype_bits((enum dtype)ir_type_of(m, ir_op_at(m, o)->out[0]).dtype);
  *narrows = in > out;
  return in > out ? in / out : out / in;
}

/* The layout on the other side of a bitcast. */
static const struct layout *through_bitcast(struct solver *s, struct ir_op o,
                                            const struct layout *l, bool forward) {
  bool narrows;
  uint32_t parts = bitcast_parts(s->m, o, &narrows), last = l->rank - 1;
  return narrows == forward ? cg_layout_refine(s->a, l, last, parts)
                            : cg_layout_coarsen(s->a, l, last, parts);
}

/* The layout that the result of o has if its operand has l, or NULL if o does not say. */
static const struct layout *forward(struct solver *s, struct ir_op o, const struct layout *l) {
  const struct ir_opnode *n = ir_op_at(s->m, o);
  struct ir_type out = ir_type_of(s->m, n->out[0]);
  if (cg_is_reduce(n->opcode))
    return cg_layout_slice(s->a, l, 1u << ir_attr_int(s->m, o, IR_ATTR_axis, 0));
  if (n->opcode == IR_TRANSPOSE)
    return cg_layout_permute(s->a, l, ir_get_attr(s->m, o, IR_ATTR_perm)->ints);
  if (n->opcode == IR_RESHAPE)
    return cg_layout_reshape(s->a, l, out.rank, out.dim);
  if (n->opcode == IR_BITCAST)
    return through_bitcast(s, o, l, true);
  return NULL;
}

/* The layout that the operand of o needs for its result to have l, or NULL. */
static const struct layout *backward(struct solver *s, struct ir_op o, const struct layout *l) {
  const struct ir_opnode *n = ir_op_at(s->m, o);
  struct ir_type in = ir_type_of(s->m, n->in[0]), out = ir_type_of(s->m, n->out[0]);
  if (n->opcode == IR_BROADCAST)
    return cg_layout_slice(s->a, l, grown_dims(in, out));
  if (n->opcode == IR_TRANSPOSE) {
    const int64_t *perm = ir_get_attr(s->m, o, IR_ATTR_perm)->ints;
    int64_t inverse[IR_MAX_RANK];
    for (uint32_t d = 0; d < out.rank; d++)
      inverse[perm[d]] = d;
    return cg_layout_permute(s->a, l, inverse);
  }
  if (n->opcode == IR_RESHAPE)
    return cg_layout_reshape(s->a, l, in.rank, in.dim);
  if (n->opcode == IR_BITCAST)
    return through_bitcast(s, o, l, false);
  return NULL;
}

static bool relates(enum ir_opcode o) {
  return cg_is_reduce(o) || o == IR_BROADCAST || o == IR_TRANSPOSE || o == IR_RESHAPE ||
         o == IR_BITCAST;
}

static void fix(struct solver *s, uint32_t class, const struct layout *l) {
  if (!l || s->layout[class])
    return;
  s->layout[class] = l;
  VEC_PUSH(s->a, &s->todo, class);
}

/* Indices of o whose dims of 1 grow to those of what is selected, which has layout l. */
static void spread_to_indices(struct solver *s, struct ir_op o, uint32_t class,
                              const struct layout *l) {
  const struct ir_opnode *n = ir_op_at(s->m, o);
  struct ir_val all = cg_selected(s->m, o);
  if (!s->has_class[all.id] || find(s, all.id) != class)
    return;
  for (uint32_t i = 1; i < n->n_in; i++)
    if (is_tile(s, n->in[i]) && s->has_class[n->in[i].id]) {
      uint32_t grown = grown_dims(ir_type_of(s->m, n->in[i]), ir_type_of(s->m, all));
      if (grown)
        fix(s, find(s, n->in[i].id), cg_layout_slice(s->a, l, grown));
    }
}

static void spread(struct solver *s) {
  while (s->todo.n) {
    uint32_t class = VEC_POP(&s->todo);
    const struct layout *l = s->layout[class];
    for (uint32_t i = 0; i < s->ops.n; i++) {
      const struct ir_opnode *n = ir_op_at(s->m, s->ops.at[i]);
      if (cg_takes_indices(n->opcode))
        spread_to_indices(s, s->ops.at[i], class, l);
      if (!relates(n->opcode))
        continue;
      uint32_t in = n->in[0].id, out = n->out[0].id;
      if (s->has_class[in] && s->has_class[out]) {
        if (find(s, in) == class)
          fix(s, find(s, out), forward(s, s->ops.at[i], l));
        if (find(s, out) == class)
          fix(s, find(s, in), backward(s, s->ops.at[i], l));
      }
    }
  }
}

/* ---- anchors ---- */

/* The tile that an access to memory moves through registers, or none. */
static struct ir_val moved_by(const struct ir_module *m, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(m, o);
  if (cg_takes_indices(n->opcode))
    return cg_selected(m, o);
  return n->opcode == IR_LOAD    ? n->out[0]
         : n->opcode == IR_STORE ? n->in[n->n_in - 1]
                                 : (struct ir_val){0};
}

const struct layout *cg_dot_layout(struct ir_module *m, struct arena *a, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(m, o);
  struct ir_type t = ir_type_of(m, n->out[0]);
  const struct ir_attr *w = ir_get_attr(m, o, IR_ATTR_warps);
  struct cg_warps warps = {(uint32_t)w->ints[0], (uint32_t)w->ints[1]};
  if (cg_is_wgmma(m, o))
    return cg_layout_wgmma_acc(a, t.dim[0], t.dim[1], warps);
  if (cg_mma_of(m, o)) {
    struct cg_mma_atom atom = cg_mma_atom_of(m, o);
    return cg_layout_mma_acc(a, t.dim[0], t.dim[1], warps, &atom);
  }
  /* Adjacent rows where a lies with rows adjacent, so that one read fetches several; else rows that
   * alternate between lanes, so that their reads fall into different banks. */
  bool adjacent[2];
  for (int i = 0; i < 2; i++) {
    struct cg_operand_source src = cg_trace_operand(m, n->in[i]);
    enum ir_attr_key key = i ? IR_ATTR_b_path : IR_ATTR_a_path;
    int inner = i == 0 ? 1 : 0; /* the operand's dim that is k */
    if (str_eq(cg_attr_word(m, o, key), "smem"))
      adjacent[i] = src.dim[inner] != (int)ir_attr_int(m, src.load, IR_ATTR_vdim, 0);
    else
      adjacent[i] = i == 1; /* written row by row: b has its columns adjacent */
  }
  uint32_t vec = (uint32_t)(16 / dtype_bytes((enum dtype)t.dtype, 1));
  return cg_layout_fma_acc(a, t.dim[0], t.dim[1], warps, adjacent[0], adjacent[1], vec);
}

const struct layout *cg_operand_layout(struct ir_module *m, struct arena *a, struct ir_op o,
                                       uint32_t i) {
  const struct ir_opnode *n = ir_op_at(m, o);
  struct ir_type t = ir_type_of(m, n->in[i]);
  if (i > 0 || !cg_has_a_in_registers(m, o))
    return NULL;
  const struct ir_attr *w = ir_get_attr(m, o, IR_ATTR_warps);
  struct cg_warps warps = {(uint32_t)w->ints[0], (uint32_t)w->ints[1]};
  return cg_layout_wgmma_a(a, t.dim[0], t.dim[1], warps, dtype_bits((enum dtype)t.dtype));
}

/* A blocked layout for a class: along the dim that most of its accesses (stores count twice) have
 * contiguous, as wide as the widest of them. */
static const struct layout *memory_layout(struct solver *s, uint32_t class) {
  struct ir_module *m = s->m;
  struct ir_type t = ir_type_of(m, (struct ir_val){class});
  uint32_t votes[IR_MAX_RANK] = {0};
  int64_t vec[IR_MAX_RANK];
  int reduce_axis = -1;
  for (uint32_t d = 0; d < t.rank; d++)
    vec[d] = 1;
  for (uint32_t i = 0; i < s->ops.n; i++) {
    struct ir_op o = s->ops.at[i];
    const struct ir_opnode *n = ir_op_at(m, o);
    if ((cg_is_reduce(n->opcode) || n->opcode == IR_SCAN_SUM) && s->has_class[n->in[0].id] &&
        find(s, n->in[0].id) == class)
      reduce_axis = (int)ir_attr_int(m, o, IR_ATTR_axis, 0);
    struct ir_val v = moved_by(m, o);
    if (!v.id || !s->has_class[v.id] || find(s, v.id) != class)
      continue;
    int64_t d = ir_attr_int(m, o, IR_ATTR_vdim, 0), w = ir_attr_int(m, o, IR_ATTR_vec, 1);
    votes[d] += n->opcode == IR_STORE ? 2 : 1;
    vec[d] = w > vec[d] ? w : vec[d];
  }
  uint32_t vdim = t.rank - 1;
  for (uint32_t d = 0; d < t.rank; d++)
    if (votes[d] > votes[vdim])
      vdim = d;
  return cg_layout_blocked(s->a, t.rank, t.dim, vdim, (uint32_t)vec[vdim], s->warps, reduce_axis);
}

/* Classes that meet memory, as representatives: a bit each. */
static bool *memory_classes(struct solver *s) {
  bool *meets = ARENA_ARRAY(s->a, bool, s->n);
  for (uint32_t i = 0; i < s->ops.n; i++) {
    struct ir_val v = moved_by(s->m, s->ops.at[i]);
    if (v.id && s->has_class[v.id])
      meets[find(s, v.id)] = true;
  }
  return meets;
}

/* The class without a layout that has the largest tile (then the smallest id), or 0. Those that
 * meet memory come first: what lies between them follows from theirs. */
static uint32_t next_class(struct solver *s, const bool *meets) {
  uint32_t best = 0;
  int64_t most = -1;
  bool best_meets = false;
  for (uint32_t v = 1; v < s->n; v++) {
    if (!s->has_class[v] || s->parent[v] != v || s->layout[v])
      continue;
    int64_t elems = ir_elems(ir_type_of(s->m, (struct ir_val){v}));
    if (meets[v] != best_meets ? meets[v] : elems > most) {
      most = elems;
      best = v;
      best_meets = meets[v];
    }
  }
  return best;
}

/* ---- converts ---- */

static struct ir_val convert_before(struct solver *s, struct ir_op at, struct ir_val v,
                                    const struct layout *to) {
  struct ir_module *m = s->m;
  struct ir_builder b = {
      .m = m, .block = ir_op_at(m, at)->block, .before = at, .loc = ir_op_at(m, at)->loc};
  struct ir_type t = ir_type_of(m, v);
  struct ir_val r = ir_build1(&b, IR_CONVERT, t, 1, &v);
  cg_set_int(m, ir_value_at(m, r)->def, IR_ATTR_bytes,
             ir_elems(t) * dtype_bytes((enum dtype)t.dtype, 1));
  ir_value_at(m, r)->layout = ir_add_layout(m, to);
  return r;
}

static const struct layout *layout_of(struct solver *s, struct ir_val v) {
  uint32_t l = ir_value_at(s->m, v)->layout;
  return l ? s->m->layouts.at[l] : NULL;
}

/* Operand i of o must come in layout `want`. */
static void want_operand(struct solver *s, struct ir_op o, uint32_t i, const struct layout *want) {
  struct ir_val v = ir_op_at(s->m, o)->in[i];
  const struct layout *have = layout_of(s, v);
  if (!want || !have || layout_eq(have, want) || cg_is_free(s->m, v))
    return;
  struct ir_val r = convert_before(s, o, v, want);
  ir_op_at(s->m, o)->in[i] = r;
}

/* o makes its result in layout `makes`; its readers expect the class's. */
static void makes_result(struct solver *s, struct ir_op o, const struct layout *makes) {
  struct ir_module *m = s->m;
  struct ir_val v = ir_op_at(m, o)->out[0];
  const struct layout *want = layout_of(s, v);
  if (!makes || !want || layout_eq(makes, want))
    return;
  struct ir_op next = ir_op_at(m, o)->next;
  struct ir_val r = convert_before(s, next, v, want);
  ir_replace_uses(m, v, r);
  ir_op_at(m, ir_value_at(m, r)->def)->in[0] = v;
  ir_value_at(m, v)->layout = ir_add_layout(m, makes);
}

/* ---- accesses of their own layout ---- */

/* The layout in which a load or store moves its tile best, if that is not `have`: what is adjacent
 * in memory is adjacent in lanes, and registers lie so that the convert between the two moves
 * several elements at a time. */
static const struct layout *access_layout(struct solver *s, struct ir_op o, struct ir_type t,
                                          const struct layout *have) {
  uint32_t vdim = (uint32_t)ir_attr_int(s->m, o, IR_ATTR_vdim, 0), adim = vdim;
  uint32_t vec = (uint32_t)ir_attr_int(s->m, o, IR_ATTR_vec, 1);
  uint32_t bytes = (uint32_t)dtype_bytes((enum dtype)t.dtype, 1);
  for (uint32_t d = 0; d < t.rank; d++)
    if (d != vdim && cg_layout_run(have, d) > 1)
      adim = d;
  return cg_layout_turning(s->a, t.rank, t.dim, vdim, vec, adim, bytes, s->warps);
}

/* Is it worth a way through shared memory that an access is made in `own` and not in `have`? It
 * costs about as much as touching each byte once more in L1. Two accesses of 16 bytes that share
 * their sectors, as of f32 beside bf16, are no reason. Where there are dots, registers and shared
 * memory are theirs. */
static bool is_worth_it(const struct solver *s, struct ir_op o, struct ir_type t,
                        const struct layout *have, const struct layout *own) {
  int64_t size = dtype_bytes((enum dtype)t.dtype, 1), bytes = ir_elems(t) * size;
  uint32_t vdim = (uint32_t)ir_attr_int(s->m, o, IR_ATTR_vdim, 0);
  uint32_t vec = (uint32_t)ir_attr_int(s->m, o, IR_ATTR_vec, 1);
  int64_t most = cg_target_of(s->m)->smem_per_block / 2;
  return !s->dots && bytes >= LEAST_BYTES && bytes <= most &&
         cg_access_cost(have, vdim, vec, size) >= 2 * cg_access_cost(own, vdim, vec, size);
}

static void place_load(struct solver *s, struct ir_op o) {
  struct ir_val v = ir_op_at(s->m, o)->out[0];
  const struct layout *have = layout_of(s, v);
  if (!have || !str_eq(cg_attr_word(s->m, o, IR_ATTR_path), "frag"))
    return;
  const struct layout *own = access_layout(s, o, ir_type_of(s->m, v), have);
  if (is_worth_it(s, o, ir_type_of(s->m, v), have, own))
    makes_result(s, o, own);
}

/* A store whose path is open gets it here. `staged`: through shared memory, in wide accesses. */
static void place_store(struct solver *s, struct ir_op o) {
  struct ir_module *m = s->m;
  uint32_t last = ir_op_at(m, o)->n_in - 1u;
  struct ir_val v = ir_op_at(m, o)->in[last];
  const char *path = cg_attr_word(m, o, IR_ATTR_path);
  const struct layout *have = layout_of(s, v), *own = NULL;
  bool wider = false, worth = false;
  if (have) {
    own = access_layout(s, o, ir_type_of(m, v), have);
    wider = ir_attr_int(m, o, IR_ATTR_vec, 1) >
            cg_layout_run(have, (uint32_t)ir_attr_int(m, o, IR_ATTR_vdim, 0));
    worth = !cg_is_free(m, v) && is_worth_it(s, o, ir_type_of(m, v), have, own);
  }
  if (!*path) {
    cg_set_word(m, o, IR_ATTR_path, worth ? "staged" : "frag");
    if (worth)
      cg_knob_put(m, CG_KNOB_STORE, 1);
  }
  if (have && (*path ? str_eq(path, "staged") && (wider || worth) : worth))
    want_operand(s, o, last, own);
}

/* Has some dot that layout, as warpgroups make it? */
static bool is_wgmma_layout(struct solver *s, const struct layout *l) {
  for (uint32_t i = 0; i < s->ops.n; i++)
    if (ir_op_at(s->m, s->ops.at[i])->opcode == IR_DOT && cg_is_wgmma(s->m, s->ops.at[i]) &&
        layout_eq(l, cg_dot_layout(s->m, s->a, s->ops.at[i])))
      return true;
  return false;
}

/* A store by the tensor memory unit takes accumulators as they lie. */
static void check_store(struct solver *s, struct ir_op o) {
  struct ir_module *m = s->m;
  const struct ir_opnode *n = ir_op_at(m, o);
  const struct layout *l = layout_of(s, n->in[n->n_in - 1]);
  if (str_eq(cg_attr_word(m, o, IR_ATTR_path), "tma") && !(l && is_wgmma_layout(s, l)))
    cg_set_word(m, o, IR_ATTR_path, "frag");
}

static bool is_replicated(const struct layout *l) {
  for (uint32_t d = 0; d < l->rank; d++)
    if (cg_layout_cover(l, d) > 1)
      return false;
  return true;
}

static void want_indices(struct solver *s, struct ir_op o) {
  struct ir_module *m = s->m;
  struct ir_val all = cg_selected(m, o);
  const struct layout *l = layout_of(s, all);
  for (uint32_t i = 1; l && i < ir_op_at(m, o)->n_in; i++) {
    struct ir_val v = ir_op_at(m, o)->in[i];
    if (v.id != all.id && is_tile(s, v))
      want_operand(s, o, i,
                   cg_layout_slice(s->a, l, grown_dims(ir_type_of(m, v), ir_type_of(m, all))));
  }
}

static void insert_converts(struct solver *s, struct ir_op o) {
  struct ir_module *m = s->m;
  const struct ir_opnode n = *ir_op_at(m, o);
  if (cg_takes_indices(n.opcode)) {
    want_indices(s, o);
    return;
  }
  bool narrows = false;
  if (n.opcode == IR_BITCAST)
    bitcast_parts(m, o, &narrows);
  if (n.opcode == IR_BROADCAST || (n.opcode == IR_BITCAST && !narrows)) {
    const struct layout *l = layout_of(s, n.out[0]);
    if (l && layout_of(s, n.in[0]))
      want_operand(s, o, 0, backward(s, o, l));
  } else if (cg_is_reduce(n.opcode) || n.opcode == IR_TRANSPOSE || n.opcode == IR_RESHAPE ||
             n.opcode == IR_BITCAST) {
    const struct layout *l = layout_of(s, n.in[0]);
    if (l && layout_of(s, n.out[0]))
      makes_result(s, o, forward(s, o, l));
  } else if (n.opcode == IR_DOT) {
    const struct layout *l = cg_dot_layout(m, s->a, o);
    want_operand(s, o, 2, l);
    want_operand(s, o, 0, cg_operand_layout(m, s->a, o, 0));
    makes_result(s, o, l);
  } else if (n.opcode == IR_STORE) {
    check_store(s, o);
    place_store(s, o);
  } else if (n.opcode == IR_LOAD) {
    place_load(s, o);
  } else if (n.opcode == IR_ITEM && layout_of(s, n.in[0]) &&
             !is_replicated(layout_of(s, n.in[0]))) {
    struct ir_type t = ir_type_of(m, n.in[0]);
    want_operand(s, o, 0, cg_layout_blocked(s->a, t.rank, t.dim, 0, 1, s->warps, -1));
  }
}

/* ---- the pass ---- */

static void list_op(void *user, struct ir_module *m, struct ir_op o) {
  struct solver *s = user;
  (void)m;
  VEC_PUSH(s->a, &s->ops, o);
}

/* A free tile is in a class of its own only where an op must know its layout: stores, reductions.
 * What a gather takes to shared memory has one that says which thread moves which element: its
 * indices come in it. */
static bool needs_class(struct solver *s, struct ir_val v) {
  if (!is_tile(s, v))
    return false;
  struct ir_op def = ir_value_at(s->m, v)->def;
  if (def.id && ir_op_at(s->m, def)->opcode == IR_GATHER)
    return true;
  if (cg_is_smem_only(s->m, &s->uses, v))
    return false;
  if (!cg_is_free(s->m, v))
    return true;
  for (uint32_t i = s->uses.first[v.id]; i; i = s->uses.list.at[i].next) {
    struct ir_op user = s->uses.list.at[i].op;
    enum ir_opcode c = ir_op_at(s->m, user)->opcode;
    if (cg_takes_indices(c) && c != IR_GATHER && cg_selected(s->m, user).id == v.id)
      return true;
    if (c == IR_STORE || c == IR_TRANSPOSE || c == IR_RESHAPE || c == IR_ITEM || c == IR_ASSERT ||
        c == IR_BITCAST || c == IR_EXTRACT || c == IR_CONCAT || c == IR_PRINT || cg_is_reduce(c) ||
        (c == IR_DOT && s->uses.list.at[i].operand < 2))
      return true;
  }
  return false;
}

bool cg_pass_assign_layouts(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  struct solver s = {.m = m, .a = ctx->scratch, .n = m->values.n};
  s.uses = cg_collect_uses(m, s.a);
  s.parent = ARENA_ARRAY(s.a, uint32_t, s.n);
  s.layout = ARENA_ARRAY(s.a, const struct layout *, s.n);
  s.has_class = ARENA_ARRAY(s.a, bool, s.n);
  s.warps = (uint32_t)cg_knob_get(m, CG_KNOB_THREADS) / 32;
  ir_walk(m, m->body, list_op, &s);
  for (uint32_t v = 1; v < s.n; v++)
    s.parent[v] = v;
  for (uint32_t i = 0; i < s.ops.n; i++) {
    const struct ir_opnode *n = ir_op_at(m, s.ops.at[i]);
    for (uint32_t k = 0; k < n->n_out; k++)
      s.has_class[n->out[k].id] = needs_class(&s, n->out[k]);
    for (uint32_t k = 0; k < n->n_blocks; k++) {
      const struct ir_blocknode *b = ir_block_at(m, n->blocks[k]);
      for (uint32_t j = 0; j < b->args.n; j++)
        s.has_class[b->args.at[j].id] = is_tile(&s, b->args.at[j]);
    }
  }
  for (uint32_t i = 0; i < s.ops.n; i++)
    tie_op(&s, s.ops.at[i]);
  for (uint32_t i = 0; i < s.ops.n; i++)
    if (ir_op_at(m, s.ops.at[i])->opcode == IR_DOT) {
      s.dots = true;
      fix(&s, find(&s, ir_op_at(m, s.ops.at[i])->out[0].id), cg_dot_layout(m, s.a, s.ops.at[i]));
      spread(&s);
    }
  /* After accumulators: what becomes an operand is often made of one, in its layout. */
  for (uint32_t i = 0; i < s.ops.n; i++)
    if (ir_op_at(m, s.ops.at[i])->opcode == IR_DOT) {
      struct ir_val v = ir_op_at(m, s.ops.at[i])->in[0];
      if (s.has_class[v.id])
        fix(&s, find(&s, v.id), cg_operand_layout(m, s.a, s.ops.at[i], 0));
      spread(&s);
    }
  const bool *meets = memory_classes(&s);
  for (uint32_t class; (class = next_class(&s, meets)) != 0; spread(&s))
    fix(&s, class, memory_layout(&s, class));
  for (uint32_t v = 1; v < s.n; v++)
    if (s.has_class[v])
      ir_value_at(m, (struct ir_val){v})->layout = ir_add_layout(m, s.layout[find(&s, v)]);
  for (uint32_t i = 0; i < s.ops.n; i++)
    insert_converts(&s, s.ops.at[i]);
  *changed = true;
  return true;
}
