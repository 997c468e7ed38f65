/* See help_gen_ir.h. */
#include "help_gen_ir.h"

#include "base/check.h"
#include "base/num.h"
#include "ir/rules.h"
#include "ir/table.h"

#include <math.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

struct gen {
  struct gen_ir *opt;
  struct ir_module *m;
  struct ir_builder b;
  uint64_t rng;
  uint32_t depth, left;    /* left: ops still to make */
  VEC(struct ir_val) pool; /* visible scalars and tiles */
  struct ir_val zero;      /* index 0 */
  VEC(uint32_t) stored;    /* stores so far, per out argument: where the next goes */
  bool no_floats;          /* smooth: of the op that is being made */
};

uint64_t gen_below(uint64_t *state, uint64_t n) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return (z ^ z >> 31) % n;
}

static uint32_t below(struct gen *g, uint32_t n) {
  return (uint32_t)gen_below(&g->rng, n);
}

static bool chance(struct gen *g, uint32_t percent) {
  return below(g, 100) < percent;
}

/* The arguments of every generated kernel. Tensors of rank 1, 2 and 3 of the main types; names of
 * dims as in each. */
static const struct {
  const char *name;
  enum ir_arg_kind kind;
  enum dtype t;
  uint32_t rank;
  const char *dim[3];
} arg_rows[] = {
    {"A", IR_ARG_IN, DT_F32, 2, {"M", "N"}},     {"B", IR_ARG_IN, DT_BF16, 2, {"N", "8"}},
    {"C", IR_ARG_IN, DT_S32, 1, {"N"}},          {"D", IR_ARG_IN, DT_F16, 3, {"M", "2", "N"}},
    {"E", IR_ARG_IN, DT_U8, 2, {"M", "N"}},      {"F", IR_ARG_IN, DT_E5M2, 1, {"M"}},
    {"s", IR_ARG_SCALAR, DT_F32, 0, {NULL}},     {"n", IR_ARG_SCALAR, DT_S32, 0, {NULL}},
    {"X", IR_ARG_OUT, DT_F32, 2, {"512", "8"}},  {"Y", IR_ARG_OUT, DT_S32, 2, {"512", "8"}},
    {"Z", IR_ARG_OUT, DT_BF16, 1, {"4096"}},     {"U", IR_ARG_OUT, DT_F64, 3, {"512", "8", "1"}},
    {"V", IR_ARG_INOUT, DT_S8, 2, {"512", "8"}}, {"W", IR_ARG_OUT, DT_BOOL, 1, {"4096"}},
};
static const enum dtype data_types[] = {DT_BOOL, DT_INDEX, DT_S4,  DT_U4,   DT_S8,   DT_U8,
                                        DT_S32,  DT_S64,   DT_F16, DT_BF16, DT_E4M3, DT_E5M2,
                                        DT_F32,  DT_F64,   DT_F32, DT_BF16, DT_INDEX};

/* In smooth modules: floats that hardly overflow, and none where an op of its own is not smooth. */
static bool usable(const struct gen *g, enum dtype t) {
  if (g->opt->smooth == 0 || !dtype_is_float(t))
    return true;
  return !g->no_floats &&
         (t == DT_F32 || t == DT_F64 || (t == DT_BF16 && g->opt->smooth == GEN_SMOOTH_BF16));
}

static enum dtype any_dtype(struct gen *g, bool (*allowed)(enum dtype)) {
  for (;;) {
    enum dtype t = data_types[below(g, COUNT(data_types))];
    if (!allowed && usable(g, t))
      return t;
    if (allowed && allowed(t) && usable(g, t))
      return t;
  }
}

/* A dtype that can be cast to t. */
static bool is_bits(enum dtype t);
static enum dtype source_dtype(struct gen *g, enum dtype t) {
  return any_dtype(g, g->opt->smooth && !dtype_is_float(t) ? is_bits : NULL);
}

static bool can_cast(const struct gen *g, enum dtype to, enum dtype from) {
  return !g->opt->smooth || dtype_is_float(to) || !dtype_is_float(from);
}

static bool is_numeric(enum dtype t) {
  return t != DT_BOOL;
}

static bool is_bits(enum dtype t) {
  return !dtype_is_float(t);
}

static struct ir_type any_shape(struct gen *g, enum dtype t) {
  static const struct {
    uint32_t rank;
    int64_t dim[3];
  } shapes[] = {{1, {1}},    {1, {4}},    {1, {5}},    {1, {8}},       {2, {1, 1}},   {2, {4, 1}},
                {2, {1, 8}}, {2, {4, 8}}, {2, {3, 5}}, {2, {8, 4}},    {2, {8, 8}},   {2, {5, 3}},
                {2, {4, 4}}, {2, {8, 1}}, {2, {1, 4}}, {3, {2, 1, 4}}, {3, {2, 2, 2}}};
  uint32_t i = below(g, COUNT(shapes));
  return ir_tile(t, shapes[i].rank, shapes[i].dim);
}

static struct ir_type any_type(struct gen *g, enum dtype t) {
  return chance(g, 35) ? ir_scalar(t) : any_shape(g, t);
}

static struct ir_type with_dtype(struct ir_type t, enum dtype dtype) {
  t.dtype = (uint8_t)dtype;
  return t;
}

static struct ir_type type_of(struct gen *g, struct ir_val v) {
  return ir_type_of(g->m, v);
}

static struct ir_val push(struct gen *g, struct ir_val v) {
  VEC_PUSH(g->m->arena, &g->pool, v);
  return v;
}

static void made(struct gen *g, enum ir_opcode op) {
  g->opt->count[op]++;
  if (g->left)
    g->left--;
}

/* A new op; its result joins the pool. */
static struct ir_val op(struct gen *g, enum ir_opcode opcode, struct ir_type t, uint32_t n,
                        const struct ir_val *in) {
  made(g, opcode);
  return push(g, ir_build1(&g->b, opcode, t, n, in));
}

static void set_int(struct gen *g, struct ir_val v, enum ir_attr_key key, int64_t i) {
  ir_set_attr(g->m, ir_value_at(g->m, v)->def, (struct ir_attr){.key = key, .i = i});
}

/* Numbers at which identities hold or fail. */
static double any_double(struct gen *g) {
  static const double neutral[] = {0.0, -0.0, 1.0, -1.0};
  static const double tame_ones[] = {2.0, 0.5, -0.1, 3.0, 1e-3};
  if (g->opt->smooth)
    return chance(g, 40) ? neutral[below(g, 4)] : tame_ones[below(g, COUNT(tame_ones))];
  if (chance(g, 60))
    return neutral[below(g, 4)];
  static const double some[] = {0.0,  -0.0,  1.0,     -1.0,    2.0,      0.5,  3.0,  -7.0,
                                1e-3, 448.0, 65504.0, 1e-40,   3.14159,  -0.1, 1e30, 1e300,
                                5.0,  12.0,  100.0,   0x1p-24, 0x1p-133, 6.0};
  uint32_t i = below(g, COUNT(some) + 3);
  return i < COUNT(some)        ? some[i]
         : i == COUNT(some)     ? (double)INFINITY
         : i == COUNT(some) + 1 ? -(double)INFINITY
                                : (double)NAN;
}

static int64_t any_int(struct gen *g, enum dtype t) {
  static const int64_t some[] = {0,  1,  -1,  2,   3,    7,         8,         -8,
                                 15, 31, 127, 255, 1000, INT32_MAX, INT64_MIN, INT64_MAX};
  if (t == DT_INDEX)
    return (int64_t)below(g, 12);
  int64_t cell = 0;
  num_store_int(t, &cell, 0, some[below(g, COUNT(some))]);
  return num_load_int(t, &cell, 0);
}

static struct ir_val constant(struct gen *g, enum dtype t) {
  made(g, IR_CONST);
  return push(g, dtype_is_float(t) ? ir_const_num(&g->b, t, any_double(g))
                                   : ir_const_int(&g->b, t, any_int(g, t)));
}

/* An existing value of type t, or 0. */
static struct ir_val find(struct gen *g, struct ir_type t) {
  uint32_t n = g->pool.n, at = n ? below(g, n) : 0;
  for (uint32_t i = 0; i < n && i < 40; i++) {
    struct ir_val v = g->pool.at[(at + i) % n];
    if (ir_type_eq(type_of(g, v), t))
      return v;
  }
  return (struct ir_val){0};
}

static struct ir_val need(struct gen *g, struct ir_type t);

/* A constant of type t. */
static struct ir_val constant_of(struct gen *g, struct ir_type t) {
  struct ir_val v = constant(g, (enum dtype)t.dtype);
  return t.kind == IR_SCALAR ? v : op(g, IR_SPLAT, t, 1, &v);
}

/* Keeps an index, the newest value, small: products of products would leave 64 bits. */
static struct ir_val tame(struct gen *g, struct ir_val v) {
  struct ir_type t = type_of(g, v);
  KILN_ASSERT(VEC_LAST(&g->pool).id == v.id);
  g->pool.n--;
  struct ir_val bound = ir_const_int(&g->b, DT_INDEX, 97);
  if (t.kind == IR_TILE)
    bound = op(g, IR_SPLAT, t, 1, &bound);
  struct ir_val in[2] = {v, bound};
  return op(g, IR_MOD, t, 2, in);
}

static struct ir_val cast_to(struct gen *g, enum dtype t, struct ir_val v) {
  struct ir_val r = op(g, IR_CAST, with_dtype(type_of(g, v), t), 1, &v);
  return t == DT_INDEX ? tame(g, r) : r;
}

static struct ir_val load(struct gen *g, struct ir_type t);

/* A value of type t: one there is, or a new one. */
static struct ir_val need(struct gen *g, struct ir_type t) {
  enum dtype dt = (enum dtype)t.dtype;
  if (chance(g, 75)) {
    struct ir_val v = find(g, t);
    if (v.id)
      return v;
  }
  if (t.kind == IR_SCALAR) {
    struct ir_val v =
        chance(g, 50) ? find(g, with_dtype(t, source_dtype(g, dt))) : (struct ir_val){0};
    return v.id ? cast_to(g, dt, v) : constant(g, dt);
  }
  if (chance(g, 50)) {
    struct ir_val v = load(g, t);
    if (v.id)
      return v;
  }
  if (chance(g, 50)) {
    struct ir_val v = find(g, with_dtype(t, source_dtype(g, dt)));
    if (v.id)
      return cast_to(g, dt, v);
  }
  struct ir_val s = need(g, ir_scalar(dt));
  return op(g, IR_SPLAT, t, 1, &s);
}

/* ---- memory ---- */

static struct ir_val body_arg(struct gen *g, uint32_t i) {
  return ir_block_at(g->m, g->m->body)->args.at[i];
}

static bool is_read(const struct gen *g, uint32_t k) {
  return (arg_rows[k].kind == IR_ARG_IN || arg_rows[k].kind == IR_ARG_INOUT) &&
         usable(g, arg_rows[k].t);
}

static struct ir_val load(struct gen *g, struct ir_type t) {
  uint32_t at = below(g, COUNT(arg_rows));
  for (uint32_t i = 0; i < COUNT(arg_rows); i++) {
    uint32_t k = (at + i) % COUNT(arg_rows);
    if (!is_read(g, k) || arg_rows[k].rank != t.rank ||
        !can_cast(g, (enum dtype)t.dtype, arg_rows[k].t))
      continue;
    struct ir_val in[4] = {body_arg(g, k)};
    for (uint32_t d = 0; d < t.rank; d++)
      in[1 + d] = chance(g, 60) ? g->zero : need(g, ir_scalar(DT_INDEX));
    struct ir_val v = op(g, IR_LOAD, with_dtype(t, arg_rows[k].t), 1 + t.rank, in);
    if (chance(g, 30)) {
      enum dtype dt = arg_rows[k].t;
      struct ir_attr a = {.key = IR_ATTR_pad, .i = any_int(g, dt)};
      a.f = dtype_is_float(dt) ? num_round(dt, (double)below(g, 3)) : 0;
      ir_set_attr(g->m, ir_value_at(g->m, v)->def, a);
    }
    return t.dtype == arg_rows[k].t ? v : cast_to(g, (enum dtype)t.dtype, v);
  }
  return (struct ir_val){0};
}

/* One view op on a view, with any operands; a view that cannot take it comes back as it is. */
static struct ir_val view_of(struct gen *g, enum ir_opcode opcode, struct ir_val view) {
  struct ir_type t = type_of(g, view), r = t;
  struct ir_val in[1 + 2 * IR_MAX_RANK] = {view};
  uint32_t axis = below(g, t.rank), n = 1;
  int64_t perm[IR_MAX_RANK] = {0, 1, 2, 3, 4}, count = 1 + below(g, 4);
  switch ((int)opcode) {
  case IR_VIEW_AT:
    if (t.rank < 2)
      return view;
    in[n++] = need(g, ir_scalar(DT_INDEX));
    r.rank--;
    for (uint32_t d = 0; d < t.rank; d++)
      r.dim[d] = d < axis ? t.dim[d] : d < r.rank ? t.dim[d + 1] : 0;
    break;
  case IR_VIEW_SLICE:
    for (uint32_t i = 0; i < 2u * t.rank; i++)
      in[n++] = chance(g, 40) ? g->zero : need(g, ir_scalar(DT_INDEX));
    for (uint32_t d = 0; d < t.rank; d++)
      r.dim[d] = in[1 + t.rank + d].id == g->zero.id && chance(g, 50) ? 0 : IR_DYN;
    break;
  case IR_VIEW_TRANSPOSE:
    for (uint32_t d = t.rank; d-- > 1;) {
      uint32_t k = below(g, d + 1);
      int64_t x = perm[d];
      perm[d] = perm[k];
      perm[k] = x;
    }
    for (uint32_t d = 0; d < t.rank; d++)
      r.dim[d] = t.dim[perm[d]];
    break;
  case IR_VIEW_EVERY: r.dim[axis] = t.dim[axis] == IR_DYN ? IR_DYN : t.dim[axis] * count; break;
  default: /* a dim of 1 more: any view can be that */
    if (t.rank > 2)
      return view;
    r.rank++;
    for (uint32_t d = 0, k = 0; d < r.rank; d++) {
      r.dim[d] = IR_DYN;
      if (d == axis) {
        in[n] = push(g, ir_const_int(&g->b, DT_INDEX, 1));
      } else {
        in[n] = op(g, IR_DIM, ir_scalar(DT_INDEX), 1, &view);
        set_int(g, in[n], IR_ATTR_axis, k++);
      }
      n++;
    }
  }
  made(g, opcode);
  struct ir_val v = ir_build1(&g->b, opcode, r, n, in);
  if (opcode == IR_VIEW_AT || opcode == IR_VIEW_EVERY)
    set_int(g, v, IR_ATTR_axis, axis);
  if (opcode == IR_VIEW_EVERY)
    set_int(g, v, IR_ATTR_count, count);
  if (opcode == IR_VIEW_TRANSPOSE)
    ir_set_attr(g->m, ir_value_at(g->m, v)->def,
                (struct ir_attr){.key = IR_ATTR_perm, .ints = perm, .n_ints = t.rank});
  return v;
}

/* A view through a few ops, one of them the one that is asked for; and a tile of it. */
static void gen_view(struct gen *g, enum ir_opcode opcode) {
  static const enum ir_opcode ops[] = {IR_VIEW_AT, IR_VIEW_SLICE, IR_VIEW_TRANSPOSE, IR_VIEW_EVERY,
                                       IR_VIEW_RESHAPE};
  uint32_t k;
  do
    k = below(g, COUNT(arg_rows));
  while (!is_read(g, k));
  struct ir_val v = view_of(g, opcode, body_arg(g, k));
  while (chance(g, 40))
    v = view_of(g, ops[below(g, COUNT(ops))], v);
  struct ir_type t = any_shape(g, arg_rows[k].t);
  struct ir_val in[1 + IR_MAX_RANK] = {v};
  t.rank = type_of(g, v).rank;
  for (uint32_t d = 0; d < t.rank; d++) {
    t.dim[d] = t.dim[d] ? t.dim[d] : 1;
    in[1 + d] = chance(g, 60) ? g->zero : need(g, ir_scalar(DT_INDEX));
  }
  op(g, IR_LOAD, t, 1 + t.rank, in);
}

/* Index operands for a view, tiles of one rank among them; the shape that they select. */
static struct ir_type indices(struct gen *g, struct ir_val view, struct ir_val *in) {
  struct ir_type v = type_of(g, view), t = ir_scalar((enum dtype)v.dtype);
  struct ir_type shape = any_shape(g, DT_INDEX);
  for (uint32_t k = 0; k < v.rank; k++) {
    struct ir_type x = shape;
    for (uint32_t d = 0; d < x.rank; d++)
      x.dim[d] = chance(g, 50) ? x.dim[d] : 1;
    in[1 + k] = need(g, chance(g, 30) ? ir_scalar(DT_INDEX) : x);
    x = type_of(g, in[1 + k]);
    if (x.kind == IR_SCALAR)
      continue;
    if (t.kind == IR_SCALAR)
      t = with_dtype(x, (enum dtype)v.dtype);
    for (uint32_t d = 0; d < x.rank; d++)
      t.dim[d] = x.dim[d] > t.dim[d] ? x.dim[d] : t.dim[d];
  }
  return t;
}

static void gen_gather(struct gen *g) {
  uint32_t k;
  do
    k = below(g, COUNT(arg_rows));
  while (!is_read(g, k));
  struct ir_val in[1 + IR_MAX_RANK] = {body_arg(g, k)};
  struct ir_type t = indices(g, in[0], in);
  struct ir_val v = op(g, IR_GATHER, t, 1 + arg_rows[k].rank, in);
  if (chance(g, 30))
    ir_set_attr(g->m, ir_value_at(g->m, v)->def,
                (struct ir_attr){.key = IR_ATTR_pad, .i = 1, .f = 1});
}

/* To the inout argument and to what the stores leave of the others. */
static void gen_scatter(struct gen *g, enum ir_opcode opcode) {
  static const char *const float_kinds[] = {"add", "min", "max", "exchange"};
  static const char *const int_kinds[] = {"add", "min", "max", "and", "or", "xor", "exchange"};
  uint32_t k;
  do
    k = below(g, COUNT(arg_rows));
  while ((arg_rows[k].kind != IR_ARG_OUT && arg_rows[k].kind != IR_ARG_INOUT) ||
         !usable(g, arg_rows[k].t));
  if (opcode == IR_ATOMIC && arg_rows[k].t != DT_F32 && arg_rows[k].t != DT_S32)
    k = COUNT(arg_rows) - 5; /* Y, of s32 */
  struct ir_val in[2 + IR_MAX_RANK] = {body_arg(g, k)};
  struct ir_type t = indices(g, in[0], in);
  uint32_t n = 1 + arg_rows[k].rank;
  bool splat = g->opt->any_order && opcode == IR_SCATTER && t.kind == IR_TILE;
  struct ir_val value = need(g, splat ? ir_scalar((enum dtype)t.dtype) : t);
  in[n++] = splat ? ir_build1(&g->b, IR_SPLAT, t, 1, &value) : value;
  if (opcode == IR_SCATTER) {
    made(g, opcode);
    ir_build(&g->b, opcode, n, in, 0, NULL);
    return;
  }
  made(g, opcode);
  struct ir_val v = ir_build1(&g->b, opcode, t, n, in);
  bool one_by_one = !g->opt->any_order;
  const char *kind = arg_rows[k].t != DT_F32 ? int_kinds[below(g, COUNT(int_kinds) - !one_by_one)]
                     : one_by_one            ? float_kinds[below(g, COUNT(float_kinds))]
                                             : float_kinds[1 + below(g, 2)];
  if (one_by_one)
    push(g, v);
  ir_set_attr(g->m, ir_value_at(g->m, v)->def,
              (struct ir_attr){.key = IR_ATTR_kind, .s = symtab_get(g->m->syms, kind)});
}

static void gen_dim(struct gen *g) {
  uint32_t k;
  do
    k = below(g, COUNT(arg_rows));
  while (arg_rows[k].kind == IR_ARG_SCALAR);
  struct ir_val view = body_arg(g, k);
  struct ir_val v = op(g, IR_DIM, ir_scalar(DT_INDEX), 1, &view);
  set_int(g, v, IR_ATTR_axis, below(g, arg_rows[k].rank));
  tame(g, v);
}

/* Stores v, cast and reshaped, where nothing was stored before (until the argument is full). */
static void store(struct gen *g, struct ir_val v) {
  struct ir_type t = type_of(g, v);
  uint32_t k, tries = 0;
  bool is_float = dtype_is_float((enum dtype)t.dtype);
  do /* mostly where the cast shows all of it */
    k = below(g, COUNT(arg_rows));
  while ((arg_rows[k].kind != IR_ARG_OUT && arg_rows[k].kind != IR_ARG_INOUT) ||
         !can_cast(g, arg_rows[k].t, (enum dtype)t.dtype) || !usable(g, arg_rows[k].t) ||
         (tries++ < 20 && (dtype_is_float(arg_rows[k].t) != is_float ||
                           dtype_bits(arg_rows[k].t) < dtype_bits((enum dtype)t.dtype))));
  uint32_t rank = arg_rows[k].rank;
  if (t.kind == IR_SCALAR) {
    int64_t one[3] = {1, 1, 1};
    t = ir_tile((enum dtype)t.dtype, rank, one);
    v = op(g, IR_SPLAT, t, 1, &v);
  }
  if (t.dtype != arg_rows[k].t)
    v = cast_to(g, arg_rows[k].t, v);
  if (t.rank != rank) {
    int64_t n = ir_elems(t), dims[3] = {n, 1, 1};
    if (rank > 1) { /* at most 8 wide */
      dims[0] = n / 8 ? n / 8 : 1;
      dims[1] = n / 8 ? 8 : n;
      if (dims[0] * dims[1] != n)
        dims[0] = n, dims[1] = 1;
    }
    t = ir_tile(arg_rows[k].t, rank, dims);
    v = op(g, IR_RESHAPE, t, 1, &v);
  }
  struct ir_val in[5] = {body_arg(g, k)};
  for (uint32_t d = 0; d < rank; d++)
    in[1 + d] = g->zero;
  in[1] = push(g, ir_const_int(&g->b, DT_INDEX, g->stored.at[k]));
  g->stored.at[k] += (uint32_t)t.dim[0];
  in[1 + rank] = v;
  made(g, IR_STORE);
  ir_build(&g->b, IR_STORE, rank + 2, in, 0, NULL);
}

/* ---- ops by rule ---- */

static void gen_block(struct gen *g, uint32_t n_ops);

static void gen_elementwise(struct gen *g, enum ir_opcode opcode, struct ir_type t) {
  struct ir_val in[3];
  /* What memory holds, against a constant: where identities show. */
  bool identity = ir_info(opcode)->n_in == 2 && chance(g, 40);
  in[0] = identity && t.kind == IR_TILE ? load(g, t) : (struct ir_val){0};
  for (uint32_t i = in[0].id ? 1 : 0; i < ir_info(opcode)->n_in; i++)
    in[i] = i && identity            ? constant_of(g, t)
            : i && chance(g, 8)      ? in[0]
            : chance(g, i ? 30 : 10) ? constant_of(g, t)
                                     : need(g, t);
  struct ir_val v = op(g, opcode, t, ir_info(opcode)->n_in, in);
  if (t.dtype == DT_INDEX)
    tame(g, v);
}

static void gen_compare(struct gen *g, enum ir_opcode opcode) {
  bool order = opcode != IR_EQ && opcode != IR_NE;
  struct ir_type t = any_type(g, any_dtype(g, order ? is_numeric : NULL));
  struct ir_val in[2] = {need(g, t), need(g, t)};
  op(g, opcode, with_dtype(t, DT_BOOL), 2, in);
}

static void gen_reshape(struct gen *g) {
  struct ir_type t = any_shape(g, any_dtype(g, NULL));
  struct ir_val v = need(g, t);
  int64_t n = ir_elems(t), flat[3] = {n, 1, 1}, row[3] = {1, n, 1};
  op(g, IR_RESHAPE,
     chance(g, 50) ? ir_tile((enum dtype)t.dtype, 1 + below(g, 3), flat)
                   : ir_tile((enum dtype)t.dtype, 2 + below(g, 2), row),
     1, &v);
}

static void gen_broadcast(struct gen *g) {
  struct ir_type t = any_shape(g, any_dtype(g, NULL)), from = t;
  from.dim[below(g, t.rank)] = 1;
  struct ir_val v = need(g, from);
  op(g, IR_BROADCAST, t, 1, &v);
}

static void gen_transpose(struct gen *g) {
  struct ir_type t = any_shape(g, any_dtype(g, NULL)), r = t;
  struct ir_val v = chance(g, 30) ? (struct ir_val){0} : need(g, t);
  for (uint32_t i = 0; !v.id && i < g->pool.n; i++) /* one that is a transpose already */
    if (ir_value_at(g->m, g->pool.at[i])->def.id &&
        ir_op_at(g->m, ir_value_at(g->m, g->pool.at[i])->def)->opcode == IR_TRANSPOSE)
      v = g->pool.at[i];
  v = v.id ? v : need(g, t);
  r = t = type_of(g, v);
  int64_t perm[IR_MAX_RANK] = {0, 1, 2, 3, 4};
  for (uint32_t i = t.rank; i > 1; i--) {
    uint32_t k = below(g, i);
    int64_t x = perm[i - 1];
    perm[i - 1] = perm[k];
    perm[k] = x;
  }
  for (uint32_t i = 0; i < t.rank; i++)
    r.dim[i] = t.dim[perm[i]];
  struct ir_val o = op(g, IR_TRANSPOSE, r, 1, &v);
  struct ir_attr a = {.key = IR_ATTR_perm, .ints = perm, .n_ints = t.rank};
  ir_set_attr(g->m, ir_value_at(g->m, o)->def, a);
}

static void gen_reduce(struct gen *g, enum ir_opcode opcode) {
  struct ir_type t = any_shape(g, any_dtype(g, is_numeric)), r = t;
  uint32_t axis = below(g, t.rank);
  struct ir_val v = need(g, t);
  r.dim[axis] = 1;
  struct ir_val o = op(g, opcode, r, 1, &v);
  set_int(g, o, IR_ATTR_axis, axis);
  if (t.dtype == DT_INDEX)
    tame(g, o);
}

/* Masks to masks, numbers to indices, running sums. */
static void gen_fold(struct gen *g, enum ir_opcode opcode) {
  bool masks = ir_info(opcode)->rule == IR_RULE_mask_reduce, scan = opcode == IR_SCAN_SUM;
  struct ir_type t = any_shape(g, masks ? DT_BOOL : any_dtype(g, is_numeric)), r = t;
  uint32_t axis = below(g, t.rank);
  struct ir_val v = need(g, t);
  if (!scan)
    r.dim[axis] = 1;
  if (!masks && !scan)
    r.dtype = DT_INDEX;
  struct ir_val o = op(g, opcode, r, 1, &v);
  set_int(g, o, IR_ATTR_axis, axis);
  if (scan && t.dtype == DT_INDEX)
    tame(g, o);
}

static void gen_extract(struct gen *g) {
  struct ir_type t = any_shape(g, any_dtype(g, NULL)), r = t;
  int64_t offsets[IR_MAX_RANK];
  struct ir_val v = need(g, t);
  for (uint32_t d = 0; d < t.rank; d++) {
    r.dim[d] = chance(g, 40) ? t.dim[d] : 1 + (int64_t)below(g, (uint32_t)t.dim[d]);
    offsets[d] = below(g, (uint32_t)(t.dim[d] - r.dim[d] + 1));
  }
  struct ir_val o = op(g, IR_EXTRACT, r, 1, &v);
  struct ir_attr a = {.key = IR_ATTR_offsets, .ints = offsets, .n_ints = t.rank};
  ir_set_attr(g->m, ir_value_at(g->m, o)->def, a);
}

static void gen_concat(struct gen *g) {
  struct ir_type t = any_shape(g, any_dtype(g, NULL)), r = t;
  uint32_t axis = below(g, t.rank), n = 1 + below(g, 3);
  struct ir_val in[3];
  r.dim[axis] = 0;
  for (uint32_t i = 0; i < n; i++) {
    struct ir_type part = t;
    part.dim[axis] = chance(g, 60) ? t.dim[axis] : 1;
    in[i] = i && chance(g, 20) ? in[0] : need(g, part);
    r.dim[axis] += type_of(g, in[i]).dim[axis];
  }
  set_int(g, op(g, IR_CONCAT, r, n, in), IR_ATTR_axis, axis);
}

static bool has_bits(enum dtype t) {
  return t != DT_BOOL && t != DT_INDEX;
}

static void gen_bitcast(struct gen *g) {
  struct ir_type t = any_type(g, any_dtype(g, has_bits)), r = t;
  r.dtype = (uint8_t)any_dtype(g, has_bits);
  int64_t from = dtype_bits((enum dtype)t.dtype), to = dtype_bits((enum dtype)r.dtype);
  uint32_t last = t.rank ? t.rank - 1u : 0;
  if (t.kind == IR_SCALAR) {
    r.dtype = from == to ? r.dtype : t.dtype;
  } else { /* a last dim that both widths fill */
    int64_t bits = (from > to ? from : to) * (1 + (int64_t)below(g, 3));
    t.dim[last] = bits / from;
    r.dim[last] = bits / to;
  }
  struct ir_val v = need(g, t);
  op(g, IR_BITCAST, r, 1, &v);
}

static void gen_random(struct gen *g) {
  struct ir_type t = any_type(g, chance(g, 50) ? DT_INDEX : DT_S64);
  struct ir_val in[2];
  in[0] = need(g, ir_scalar(DT_S64));
  in[1] = need(g, t);
  set_int(g, op(g, IR_RANDOM, with_dtype(t, DT_S32), 2, in), IR_ATTR_word, below(g, 4));
}

/* A tile of what the inputs of rank 2 hold, cast to t; no pad, no constant. */
static struct ir_val plain_load(struct gen *g, struct ir_type t) {
  uint32_t k;
  do
    k = below(g, COUNT(arg_rows));
  while (!is_read(g, k) || arg_rows[k].rank != 2);
  struct ir_val in[3] = {body_arg(g, k), chance(g, 60) ? g->zero : need(g, ir_scalar(DT_INDEX)),
                         g->zero};
  struct ir_val v = op(g, IR_LOAD, with_dtype(t, arg_rows[k].t), 3, in);
  return t.dtype == arg_rows[k].t ? v : cast_to(g, (enum dtype)t.dtype, v);
}

/* Dots of small whole numbers, added to such: exact in any order. Those from zero have no other
 * use, so that no pass can add them to anything else. */
static void exact_dot(struct gen *g, struct ir_type a, struct ir_type b, struct ir_type t) {
  struct ir_val in[3], sum[2];
  in[0] = plain_load(g, a);
  in[1] = plain_load(g, b);
  in[2] = sum[0] = plain_load(g, t);
  if (chance(g, 40)) {
    op(g, IR_DOT, t, 3, in);
    return;
  }
  struct ir_val s = ir_const_int(&g->b, (enum dtype)t.dtype, 0);
  in[2] = ir_build1(&g->b, IR_SPLAT, t, 1, &s);
  made(g, IR_DOT);
  sum[1] = ir_build1(&g->b, IR_DOT, t, 3, in);
  op(g, IR_ADD, t, 2, chance(g, 50) ? sum : (struct ir_val[]){sum[1], sum[0]});
}

static void gen_dot(struct gen *g) {
  static const enum dtype pairs[][2] = {{DT_BF16, DT_F32}, {DT_F16, DT_F32},  {DT_F16, DT_F16},
                                        {DT_F32, DT_F32},  {DT_E4M3, DT_F32}, {DT_E5M2, DT_F32},
                                        {DT_F64, DT_F64},  {DT_S8, DT_S32},   {DT_U8, DT_S32}};
  uint32_t p;
  do
    p = below(g, COUNT(pairs));
  while (!usable(g, pairs[p][0]) || !usable(g, pairs[p][1]));
  int64_t m = chance(g, 50) ? 4 : 8, n = chance(g, 50) ? 4 : 8, k = chance(g, 50) ? 4 : 8;
  int64_t da[2] = {m, k}, db[2] = {k, n}, dc[2] = {m, n};
  struct ir_type t = ir_tile(pairs[p][1], 2, dc);
  if (g->opt->exact_dots) {
    exact_dot(g, ir_tile(pairs[p][0], 2, da), ir_tile(pairs[p][0], 2, db), t);
    return;
  }
  struct ir_val in[3] = {
      need(g, ir_tile(pairs[p][0], 2, da)), need(g, ir_tile(pairs[p][0], 2, db)), {0}};
  bool zero = !g->opt->plain_dots && chance(g, 50);
  if (zero) {
    struct ir_val s = push(g, ir_const_int(&g->b, pairs[p][1], 0));
    in[2] = op(g, IR_SPLAT, t, 1, &s);
  } else {
    in[2] = need(g, t);
  }
  if (g->opt->plain_dots) { /* no constant: what was there could be zero */
    struct ir_val x = load(g, t);
    in[2] = x.id ? x : in[2];
  }
  struct ir_val o = op(g, IR_DOT, t, 3, in);
  if (pairs[p][0] == DT_F32 && chance(g, 50)) {
    struct ir_attr a = {.key = IR_ATTR_prec, .s = symtab_get(g->m->syms, "ieee")};
    ir_set_attr(g->m, ir_value_at(g->m, o)->def, a);
  }
  if ((pairs[p][0] == DT_E4M3 || pairs[p][0] == DT_E5M2) && chance(g, 50)) {
    struct ir_attr a = {.key = IR_ATTR_prec,
                        .s = symtab_get(g->m->syms, chance(g, 50) ? "promoted" : "fast")};
    ir_set_attr(g->m, ir_value_at(g->m, o)->def, a);
  }
  if (zero && chance(g, 60)) {
    /* Not -0.0: the sign of a sum that is zero is open, and here it would show the order. */
    struct ir_val s = push(g, ir_const_num(&g->b, pairs[p][1], 0)), clean[2] = {need(g, t)};
    clean[1] = op(g, IR_SPLAT, t, 1, &s);
    struct ir_val sum[2] = {op(g, IR_ADD, t, 2, clean), o};
    op(g, IR_ADD, t, 2, chance(g, 50) ? sum : (struct ir_val[]){sum[1], sum[0]});
  }
}

/* ---- control ---- */

static uint32_t any_types(struct gen *g, struct ir_type *t) {
  uint32_t n = below(g, 4);
  for (uint32_t i = 0; i < n; i++)
    t[i] = any_type(g, any_dtype(g, NULL));
  return n;
}

/* Is v made of constants alone, or hard to tell? */
static bool is_constant(struct gen *g, struct ir_val v, uint32_t depth) {
  struct ir_op def = ir_value_at(g->m, v)->def;
  const struct ir_opnode *n = ir_op_at(g->m, def);
  if (!def.id || !(ir_info(n->opcode)->traits & IR_PURE) || n->n_blocks || n->opcode == IR_DIM)
    return false;
  for (uint32_t i = 0; i < n->n_in; i++)
    if (depth < 10 && !is_constant(g, n->in[i], depth + 1))
      return false;
  return true;
}

/* A value for a loop or branch to give on. */
static struct ir_val carried(struct gen *g, struct ir_type t) {
  struct ir_val v = need(g, t);
  if (!g->opt->varying || !is_constant(g, v, 0))
    return v;
  for (uint32_t k = 0; k < COUNT(arg_rows); k++) /* a scalar argument: it varies */
    if (arg_rows[k].kind == IR_ARG_SCALAR &&
        dtype_is_float(arg_rows[k].t) == dtype_is_float((enum dtype)t.dtype))
      v = body_arg(g, k);
  if (type_of(g, v).dtype != t.dtype)
    v = cast_to(g, (enum dtype)t.dtype, v);
  return t.kind == IR_SCALAR ? v : op(g, IR_SPLAT, t, 1, &v);
}

/* Fills a block with ops and ends it: `condition` (then passed), or `yield`. */
static void fill(struct gen *g, struct ir_block b, uint32_t n, const struct ir_type *t,
                 const struct ir_val *condition) {
  struct ir_builder outer = g->b;
  uint32_t pool = g->pool.n;
  g->b.block = b;
  g->depth++;
  uint32_t n_args = ir_block_at(g->m, b)->args.n;
  for (uint32_t i = 0; i < n_args; i++)
    push(g, ir_block_at(g->m, b)->args.at[i]);
  gen_block(g, 1 + below(g, 6));
  if (n_args && chance(g, 40)) /* a use that is no result's */
    store(g, ir_block_at(g->m, b)->args.at[below(g, n_args)]);
  struct ir_val out[8];
  uint32_t at = 0;
  if (condition)
    out[at++] = *condition;
  for (uint32_t i = 0; i < n; i++) {
    /* Sometimes what came in, so that there are values that do not change. */
    uint32_t first = n_args - n;
    bool same = n_args >= n && chance(g, 15);
    struct ir_val x = same ? ir_block_at(g->m, b)->args.at[first + i] : (struct ir_val){0};
    out[at++] = same && ir_type_eq(type_of(g, x), t[i]) ? x : carried(g, t[i]);
  }
  made(g, condition ? IR_CONDITION : IR_YIELD);
  ir_build(&g->b, condition ? IR_CONDITION : IR_YIELD, at, out, 0, NULL);
  g->pool.n = pool;
  g->depth--;
  g->b = outer;
}

static void push_results(struct gen *g, struct ir_op o) {
  for (uint32_t i = 0; i < ir_op_at(g->m, o)->n_out; i++)
    push(g, ir_op_at(g->m, o)->out[i]);
}

/* A merge op behind a loop: it gives the results on; what its block says is only well-formed. */
static void gen_merge(struct gen *g, struct ir_op loop, uint32_t n, const struct ir_type *t) {
  struct ir_block around = g->b.block;
  struct ir_val in[4], y[4];
  for (uint32_t i = 0; i < n; i++)
    in[i] = ir_op_at(g->m, loop)->out[i];
  made(g, IR_MERGE);
  struct ir_op o = ir_build(&g->b, IR_MERGE, n, in, n, t);
  g->b.block = ir_op_at(g->m, o)->blocks[0];
  for (uint32_t i = 0; i < 2 * n; i++)
    ir_add_arg(g->m, g->b.block, t[i % n]);
  for (uint32_t i = 0; i < n; i++) {
    const struct ir_val *args = ir_block_at(g->m, g->b.block)->args.at;
    struct ir_val pair[2] = {args[i], args[n + i]};
    y[i] = pair[below(g, 2)];
    if (t[i].dtype != DT_BOOL && chance(g, 60))
      y[i] = ir_build1(&g->b, chance(g, 50) ? IR_ADD : IR_MAX, t[i], 2, pair);
  }
  ir_build(&g->b, IR_YIELD, n, y, 0, NULL);
  g->b.block = around;
  push_results(g, o);
}

static void gen_for(struct gen *g) {
  struct ir_type t[4];
  uint32_t n = any_types(g, t);
  struct ir_val in[8] = {push(g, ir_const_int(&g->b, DT_INDEX, below(g, 3))), {0}, {0}};
  int64_t trips = below(g, 4);
  in[1] = push(g, ir_const_int(&g->b, DT_INDEX, trips));
  if (chance(g, 40)) { /* a bound that is not known: a small index */
    struct ir_val pair[2] = {need(g, ir_scalar(DT_INDEX)),
                             push(g, ir_const_int(&g->b, DT_INDEX, 4))};
    in[1] = op(g, IR_MOD, ir_scalar(DT_INDEX), 2, pair);
  }
  in[2] = push(g, ir_const_int(&g->b, DT_INDEX, 1 + below(g, 2)));
  for (uint32_t i = 0; i < n; i++)
    in[3 + i] = carried(g, t[i]);
  made(g, IR_FOR);
  struct ir_op o = ir_build(&g->b, IR_FOR, 3 + n, in, n, t);
  struct ir_block b = ir_op_at(g->m, o)->blocks[0];
  ir_add_arg(g->m, b, ir_scalar(DT_INDEX));
  for (uint32_t i = 0; i < n; i++)
    ir_add_arg(g->m, b, t[i]);
  fill(g, b, n, t, NULL);
  if (n && chance(g, 25))
    gen_merge(g, o, n, t);
  push_results(g, o);
}

static void gen_if(struct gen *g) {
  struct ir_type t[4];
  uint32_t n = any_types(g, t);
  struct ir_val c = need(g, ir_scalar(DT_BOOL));
  made(g, IR_IF);
  struct ir_op o = ir_build(&g->b, IR_IF, 1, &c, n, t);
  fill(g, ir_op_at(g->m, o)->blocks[0], n, t, NULL);
  fill(g, ir_op_at(g->m, o)->blocks[1], n, t, NULL);
  push_results(g, o);
}

/* Counts up to a small bound, beside what else it carries. */
static void gen_while(struct gen *g) {
  struct ir_type t[5];
  uint32_t n = any_types(g, t + 1) + 1;
  t[0] = ir_scalar(DT_S32);
  struct ir_val in[5] = {push(g, ir_const_int(&g->b, DT_S32, 0))};
  for (uint32_t i = 1; i < n; i++)
    in[i] = carried(g, t[i]);
  made(g, IR_WHILE);
  struct ir_op o = ir_build(&g->b, IR_WHILE, n, in, n, t);
  struct ir_block first = ir_op_at(g->m, o)->blocks[0], second = ir_op_at(g->m, o)->blocks[1];
  for (uint32_t i = 0; i < n; i++) {
    ir_add_arg(g->m, first, t[i]);
    ir_add_arg(g->m, second, t[i]);
  }
  struct ir_builder outer = g->b;
  g->b.block = first;
  struct ir_val bound = ir_const_int(&g->b, DT_S32, below(g, 4));
  struct ir_val pair[2] = {ir_block_at(g->m, first)->args.at[0], bound};
  struct ir_val c = ir_build1(&g->b, IR_LT, ir_scalar(DT_BOOL), 2, pair), passed[6];
  passed[0] = c;
  for (uint32_t i = 0; i < n; i++)
    passed[1 + i] = ir_block_at(g->m, first)->args.at[i];
  made(g, IR_CONDITION);
  ir_build(&g->b, IR_CONDITION, n + 1, passed, 0, NULL);
  g->b.block = second;
  uint32_t pool = g->pool.n;
  g->depth++;
  for (uint32_t i = 1; i < n; i++)
    push(g, ir_block_at(g->m, second)->args.at[i]);
  gen_block(g, 1 + below(g, 4));
  struct ir_val next[5],
      one[2] = {ir_block_at(g->m, second)->args.at[0], ir_const_int(&g->b, DT_S32, 1)};
  next[0] = ir_build1(&g->b, IR_ADD, ir_scalar(DT_S32), 2, one);
  for (uint32_t i = 1; i < n; i++)
    next[i] = carried(g, t[i]);
  made(g, IR_YIELD);
  ir_build(&g->b, IR_YIELD, n, next, 0, NULL);
  g->pool.n = pool;
  g->depth--;
  g->b = outer;
  push_results(g, o);
}

static void gen_assert(struct gen *g) {
  struct ir_type t = any_type(g, DT_BOOL);
  struct ir_val x = need(g, t), y = op(g, IR_NOT, t, 1, &x), pair[2] = {x, y};
  struct ir_val always = op(g, IR_OR, t, 2, pair);
  made(g, IR_ASSERT);
  struct ir_op o = ir_build(&g->b, IR_ASSERT, 1, &always, 0, NULL);
  struct ir_attr a = {.key = IR_ATTR_message, .s = symtab_get(g->m->syms, "x or \"not\" x\n")};
  ir_set_attr(g->m, o, a);
}

static void gen_print(struct gen *g) {
  struct ir_val in[2] = {need(g, any_type(g, any_dtype(g, NULL))),
                         need(g, any_type(g, any_dtype(g, NULL)))};
  made(g, IR_PRINT);
  ir_build(&g->b, IR_PRINT, below(g, 3), in, 0, NULL);
}

/* Polynomials: ops whose rounding error is bounded by what they do to absolute values. */
static bool is_smooth(enum ir_opcode o) {
  switch ((int)o) {
  case IR_ADD:
  case IR_SUB:
  case IR_MUL:
  case IR_NEG:
  case IR_FMA:
  case IR_REDUCE_SUM:
  case IR_SCAN_SUM:
  case IR_DOT:
  case IR_STORE:
  case IR_SCATTER: return true;
  default: return (ir_info(o)->traits & IR_EXACT) != 0; /* the others of these move values, but: */
  case IR_MIN:
  case IR_MAX:
  case IR_ABS:
  case IR_FLOOR:
  case IR_CEIL:
  case IR_ROUND:
  case IR_TRUNC:
  case IR_REDUCE_MAX:
  case IR_REDUCE_MIN:
  case IR_ATOMIC: return false;
  }
}

/* Of six draws of a row, how many are taken: ops that take and give much come more often. */
static uint32_t weight(enum ir_opcode o) {
  const struct ir_opinfo *info = ir_info(o);
  bool reads = info->traits & IR_READS, combines = info->n_in > 1 && info->traits & IR_EXACT;
  return 1u + (info->n_blocks ? 1u : 0) + (info->rule == IR_RULE_dot ? 2u : 0) + reads + combines;
}

static bool make_op(struct gen *g, enum ir_opcode opcode);

/* One op of this row. False: it cannot stand here. */
static bool gen_op(struct gen *g, enum ir_opcode opcode) {
  if (g->opt->smooth && (ir_info(opcode)->rule == IR_RULE_float_arith && !is_smooth(opcode)))
    return false;
  bool outer = g->no_floats;
  g->no_floats = g->opt->smooth && !is_smooth(opcode) && !ir_info(opcode)->n_blocks;
  bool done = make_op(g, opcode);
  g->no_floats = outer;
  return done;
}

static bool make_op(struct gen *g, enum ir_opcode opcode) {
  enum dtype t;
  struct ir_val v;
  switch ((int)ir_info(opcode)->rule) {
  case IR_RULE_const: constant(g, any_dtype(g, NULL)); return true;
  case IR_RULE_splat:
    t = any_dtype(g, NULL);
    v = need(g, ir_scalar(t));
    op(g, IR_SPLAT, any_shape(g, t), 1, &v);
    return true;
  case IR_RULE_iota: {
    int64_t n = chance(g, 20) ? 1 : chance(g, 50) ? 4 : 8, axis = below(g, 2);
    int64_t dim[2] = {axis ? 1 : n, axis ? n : 1};
    v = op(g, IR_IOTA, ir_tile(DT_INDEX, 2, dim), 0, NULL);
    set_int(g, v, IR_ATTR_axis, axis);
    return true;
  }
  case IR_RULE_broadcast: gen_broadcast(g); return true;
  case IR_RULE_reshape: gen_reshape(g); return true;
  case IR_RULE_transpose: gen_transpose(g); return true;
  case IR_RULE_item: {
    int64_t one[3] = {1, 1, 1};
    t = any_dtype(g, NULL);
    v = need(g, ir_tile(t, 1 + below(g, 3), one));
    op(g, IR_ITEM, ir_scalar(t), 1, &v);
    return true;
  }
  case IR_RULE_arith:
    gen_elementwise(g, opcode, any_type(g, any_dtype(g, is_numeric)));
    return true;
  case IR_RULE_float_arith:
    gen_elementwise(g, opcode, any_type(g, any_dtype(g, dtype_is_float)));
    return true;
  case IR_RULE_int_arith:
    gen_elementwise(g, opcode, any_type(g, any_dtype(g, dtype_is_int)));
    return true;
  case IR_RULE_bits: gen_elementwise(g, opcode, any_type(g, any_dtype(g, is_bits))); return true;
  case IR_RULE_compare: gen_compare(g, opcode); return true;
  case IR_RULE_select: {
    struct ir_type x = any_type(g, any_dtype(g, NULL));
    struct ir_val in[3] = {need(g, with_dtype(x, DT_BOOL)), need(g, x), need(g, x)};
    if (chance(g, 30))
      in[0] = op(g, IR_NOT, with_dtype(x, DT_BOOL), 1, in);
    op(g, IR_SELECT, x, 3, in);
    return true;
  }
  case IR_RULE_cast:
    v = need(g, any_type(g, any_dtype(g, NULL)));
    do
      t = any_dtype(g, NULL);
    while (!can_cast(g, t, (enum dtype)type_of(g, v).dtype));
    cast_to(g, t, v);
    return true;
  case IR_RULE_reduce: gen_reduce(g, opcode); return true;
  case IR_RULE_mask_reduce:
  case IR_RULE_arg_reduce:
  case IR_RULE_scan: gen_fold(g, opcode); return true;
  case IR_RULE_extract: gen_extract(g); return true;
  case IR_RULE_concat: gen_concat(g); return true;
  case IR_RULE_bitcast: gen_bitcast(g); return true;
  case IR_RULE_random: gen_random(g); return true;
  case IR_RULE_dot: gen_dot(g); return true;
  case IR_RULE_view_at:
  case IR_RULE_view_slice:
  case IR_RULE_view_transpose:
  case IR_RULE_view_every:
  case IR_RULE_view_reshape: gen_view(g, opcode); return true;
  case IR_RULE_dim: gen_dim(g); return true;
  case IR_RULE_gather: gen_gather(g); return true;
  case IR_RULE_scatter:
  case IR_RULE_atomic: gen_scatter(g, opcode); return true;
  case IR_RULE_load: load(g, any_shape(g, any_dtype(g, NULL))); return true;
  case IR_RULE_store: store(g, need(g, any_type(g, any_dtype(g, NULL)))); return true;
  case IR_RULE_assert: gen_assert(g); return true;
  case IR_RULE_print: gen_print(g); return true;
  case IR_RULE_for:
    if (g->depth < g->opt->max_depth)
      gen_for(g);
    return g->depth < g->opt->max_depth;
  case IR_RULE_if:
    if (g->depth < g->opt->max_depth)
      gen_if(g);
    return g->depth < g->opt->max_depth;
  case IR_RULE_while:
    if (g->depth < g->opt->max_depth)
      gen_while(g);
    return g->depth < g->opt->max_depth;
  case IR_RULE_convert:
    v = need(g, any_shape(g, any_dtype(g, NULL)));
    op(g, opcode, type_of(g, v), 1, &v);
    return true;
  default: return false; /* terminators: fill() */
  }
}

static void gen_block(struct gen *g, uint32_t n_ops) {
  for (uint32_t i = 0; i < n_ops && g->left; i++) {
    enum ir_opcode opcode;
    do
      opcode = (enum ir_opcode)(1 + below(g, IR_OPCODE_COUNT - 1));
    while (below(g, 6) >= weight(opcode) || !(ir_info(opcode)->stages >> IR_TILE_STAGE & 1) ||
           (g->opt->allowed && !g->opt->allowed(opcode)) || !gen_op(g, opcode));
  }
}

static struct expr parse_expr(struct ir_module *m, const char *text) {
  const char *error, *at;
  struct expr e = expr_parse(&m->exprs, text, text + strlen(text), &error, &at);
  KILN_ASSERT(e.id);
  return e;
}

static void begin(struct gen *g, struct arena *a, enum ir_stage stage) {
  struct ir_module *m = g->m = ir_module_new(a, stage);
  m->kernel = symtab_get(m->syms, "random");
  for (uint32_t i = 0; i < COUNT(arg_rows); i++) {
    struct ir_arg x = {.name = symtab_get(m->syms, arg_rows[i].name),
                       .kind = arg_rows[i].kind,
                       .dtype = arg_rows[i].t,
                       .rank = arg_rows[i].rank,
                       .present = true};
    for (uint32_t d = 0; d < x.rank; d++)
      x.dim[d] = parse_expr(m, arg_rows[i].dim[d]);
    VEC_PUSH(a, &m->args, x);
  }
  VEC_PUSH(a, &m->dims, symtab_get(m->syms, "M"));
  VEC_PUSH(a, &m->dims, symtab_get(m->syms, "N"));
  m->n_grid = 1 + below(g, 3);
  for (uint32_t i = 0; i < 3; i++)
    m->grid[i] = parse_expr(m, i < m->n_grid && chance(g, 40) ? "cdiv(M, 8)" : "1");
  for (uint32_t i = 0; i < COUNT(arg_rows); i++) {
    struct ir_type t = ir_scalar(arg_rows[i].t);
    t.kind = arg_rows[i].kind == IR_ARG_SCALAR ? IR_SCALAR : IR_VIEW;
    t.rank = (uint8_t)arg_rows[i].rank;
    for (uint32_t d = 0; d < t.rank; d++) {
      int64_t n;
      t.dim[d] = expr_is_const(&m->exprs, m->args.at[i].dim[d], &n) && chance(g, 50) ? n : IR_DYN;
    }
    ir_add_arg(m, m->body, t);
    VEC_PUSH(a, &g->stored, 0);
  }
  for (uint32_t i = 0; i < m->dims.n + m->n_grid; i++)
    ir_add_arg(m, m->body, ir_scalar(DT_INDEX));
  g->b = (struct ir_builder){.m = m, .block = m->body};
}

/* Parts of the head that mean nothing to the interpreter. */
static void decorate(struct gen *g, struct arena *a) {
  static const struct ir_config_entry some[] = {
      {.kind = IR_CFG_INT, .i = -5},       {.kind = IR_CFG_NUM, .f = 0.1},
      {.kind = IR_CFG_BOOL, .i = 1},       {.kind = IR_CFG_DTYPE, .i = DT_BF16},
      {.kind = IR_CFG_NUM, .f = 1e300},    {.kind = IR_CFG_STR},
      {.kind = IR_CFG_INT, .i = INT64_MIN}};
  struct ir_module *m = g->m;
  for (uint32_t i = 0; i < COUNT(some); i++) {
    struct ir_config_entry e = some[i];
    char key[8] = {'k', (char)('a' + i), 0};
    e.key = symtab_get(m->syms, i == 3 ? "odd key" : key);
    e.s = symtab_get(m->syms, "text \"quoted\" \\ \x01 \xc3\xa9 \xff\t\n");
    if (e.kind == IR_CFG_NUM && chance(g, 20))
      e.f = any_double(g);
    if (chance(g, 60))
      VEC_PUSH(a, &m->config, e);
  }
  struct ir_fact facts[] = {{.sym = symtab_get(m->syms, "A.stride1"), .is_value = true, .n = 1},
                            {.sym = symtab_get(m->syms, "M"), .n = 1 + below(g, 1)},
                            {.sym = symtab_get(m->syms, "A.addr"), .n = 16}};
  for (uint32_t i = 0; i < COUNT(facts); i++)
    if (chance(g, 50))
      VEC_PUSH(a, &m->facts, facts[i]);
}

/* Names and locations here and there. */
static void annotate(struct gen *g) {
  for (uint32_t i = 1; i < g->m->values.n; i++)
    if (chance(g, 10))
      g->m->values.at[i].name = symtab_get(g->m->syms, chance(g, 50) ? "acc" : "odd \"name\"");
  for (uint32_t i = 1; i < g->m->ops.n; i++) {
    struct diag_loc at = {0, 1 + below(g, 100), below(g, 100)};
    uint32_t up = chance(g, 30) ? ir_add_loc(g->m, at, 0) : 0;
    at.line++;
    g->m->ops.at[i].loc = chance(g, 50) ? ir_add_loc(g->m, at, up) : 0;
  }
}

struct ir_module *gen_ir(struct arena *a, struct gen_ir *opt) {
  struct gen g = {.opt = opt, .rng = opt->seed, .left = opt->n_ops};
  begin(&g, a, IR_TILE_STAGE);
  decorate(&g, a);
  g.zero = push(&g, ir_const_int(&g.b, DT_INDEX, 0));
  const struct ir_blocknode *body = ir_block_at(g.m, g.m->body);
  for (uint32_t i = 0; i < body->args.n; i++)
    if (ir_type_of(g.m, body->args.at[i]).kind == IR_SCALAR)
      push(&g, body->args.at[i]);
  while (g.left)
    gen_block(&g, g.left);
  /* What is left at the end, tiles first: what was computed from. */
  for (uint32_t i = 0, n = g.pool.n; i < n; i++)
    if (chance(&g, ir_type_of(g.m, g.pool.at[i]).kind == IR_TILE ? 60 : 20))
      store(&g, g.pool.at[i]);
  made(&g, IR_RETURN);
  ir_build(&g.b, IR_RETURN, 0, NULL, 0, NULL);
  annotate(&g);
  return g.m;
}

/* ---- any text ---- */

static struct ir_type wild_type(struct gen *g) {
  struct ir_type t = any_type(g, any_dtype(g, NULL));
  uint32_t kind = below(g, 6);
  if (kind == 0)
    return (struct ir_type){.kind = IR_PTR, .dtype = t.dtype};
  if (kind == 1 && t.kind == IR_TILE) {
    t.kind = IR_VIEW;
    t.dim[0] = chance(g, 50) ? IR_DYN : t.dim[0];
  }
  return kind == 2 ? (struct ir_type){.kind = IR_NONE} : t;
}

static struct ir_attr wild_attr(struct gen *g, enum ir_attr_key key) {
  static const int64_t ints[] = {0, -1, INT64_MIN, INT64_MAX};
  static const char *const texts[] = {"", "word", "two words", "a\"b\\\n", "\xe2\x82\xac \x80"};
  struct ir_attr a = {.key = key};
  switch (ir_attr_kind_of(key)) {
  case IR_AK_INT: a.i = ints[below(g, 4)]; break;
  case IR_AK_NUM:
    a.i = ints[below(g, 4)];
    a.f = any_double(g);
    break;
  case IR_AK_INTS:
    a.ints = ints;
    a.n_ints = below(g, 5);
    break;
  case IR_AK_SYM: a.s = symtab_get(g->m->syms, texts[1 + below(g, 4)]); break;
  case IR_AK_STR: a.s = symtab_get(g->m->syms, texts[below(g, 5)]); break;
  case IR_AK_DTYPE: a.dtype = any_dtype(g, NULL); break;
  case IR_AK_EXPR:
    a.e = parse_expr(g->m, chance(g, 50) ? "min(M, 8) // 2" : "select(M < N, 1, 2)");
    break;
  }
  return a;
}

/* NUM attributes are kept as the dtype has them: what the text says is rounded to it. */
static void fit(struct ir_attr *a, enum dtype t) {
  if (ir_attr_kind_of(a->key) != IR_AK_NUM)
    return;
  if (!dtype_is_float(t))
    a->f = 0;
  else if (t != DT_F64 || !isnan(a->f))
    a->f = isinf(a->f) ? a->f : num_round(t, a->f);
  if (isinf(a->f) && dtype_bits(t) == 8)
    a->f = 1;
  if (dtype_is_float(t))
    a->i = 0;
}

static void wild_layouts(struct gen *g) {
  for (uint32_t i = 0; i < 3; i++) {
    int64_t shape[2] = {16 + (int64_t)i, 8}, step[2] = {0, 1};
    struct layout *l = layout_new(g->m->arena, i ? 2 : 0, shape);
    for (uint32_t k = below(g, 6); k > 0; k--) {
      step[0] = below(g, 9);
      layout_add(g->m->arena, l, (enum layout_hw)below(g, LAYOUT_HW_COUNT), 1 + below(g, 32), step);
      VEC_LAST(&l->modes).unreduced = chance(g, 20);
    }
    ir_add_layout(g->m, l);
  }
}

static void wild_head(struct gen *g) {
  struct ir_module *m = g->m;
  m->target = symtab_get(m->syms, "sm_90a");
  VEC_PUSH(m->arena, &m->roles, (struct ir_role){.name = symtab_get(m->syms, "load")});
  VEC_PUSH(m->arena, &m->roles, (struct ir_role){.name = symtab_get(m->syms, "odd role")});
  wild_layouts(g);
  static const char *const names[] = {"acc", "a.b", "odd name", "_"};
  for (uint32_t i = 0; i < COUNT(names); i++) {
    struct ir_attr attrs[3];
    struct ir_res r = {.kind = (enum ir_res_kind)below(g, IR_RES_KIND_COUNT),
                       .name = symtab_get(m->syms, names[i]),
                       .type = chance(g, 70) ? any_shape(g, any_dtype(g, NULL))
                                             : (struct ir_type){.kind = IR_NONE},
                       .layout = below(g, m->layouts.n),
                       .attrs = attrs};
    enum dtype t = r.type.kind == IR_NONE ? DT_F64 : (enum dtype)r.type.dtype;
    uint32_t first = 1 + below(g, IR_ATTR_COUNT - 3);
    for (uint32_t k = 0; k < 3; k++) {
      attrs[r.n_attrs] = wild_attr(g, (enum ir_attr_key)(first + k));
      fit(&attrs[r.n_attrs++], t);
    }
    ir_add_res(m, r);
  }
  for (uint32_t k = 0; k < 5; k++) {
    struct ir_param p = {.kind = (enum recipe_param_kind)k, .arg = 0};
    if (chance(g, 60))
      p.value = parse_expr(m, "M * 2 + N");
    VEC_PUSH(m->arena, &m->params, p);
  }
}

static struct ir_val wild_value(struct gen *g) {
  return g->pool.at[below(g, g->pool.n)];
}

static void wild_op(struct gen *g, enum ir_opcode opcode) {
  const struct ir_opinfo *info = ir_info(opcode);
  struct ir_val in[6];
  struct ir_type out[4];
  uint32_t n_in = info->n_in == IR_ANY || chance(g, 10) ? below(g, 7) : info->n_in;
  uint32_t n_out = info->n_out == IR_ANY || chance(g, 10) ? below(g, 4) : info->n_out;
  for (uint32_t i = 0; i < n_in; i++)
    in[i] = wild_value(g);
  for (uint32_t i = 0; i < n_out; i++)
    out[i] = wild_type(g);
  struct ir_op o = ir_build(&g->b, opcode, n_in, in, n_out, out);
  made(g, opcode);
  uint32_t res[3] = {1 + below(g, g->m->res.n - 1), 1 + below(g, g->m->res.n - 1), 1};
  uint32_t n_res = chance(g, 30) ? below(g, 4) : 0;
  if (n_res)
    ir_set_res(g->m, o, n_res, res);
  const struct ir_res *r = &g->m->res.at[res[0]];
  enum dtype t = n_out                              ? (enum dtype)out[0].dtype
                 : n_res && r->type.kind != IR_NONE ? (enum dtype)r->type.dtype
                                                    : DT_F64;
  for (uint32_t k = 0; k < info->n_attrs; k++)
    if (chance(g, 70)) {
      struct ir_attr a = wild_attr(g, (enum ir_attr_key)info->attrs[k].key);
      fit(&a, t);
      ir_set_attr(g->m, o, a);
    }
  if (chance(g, 30))
    ir_op_at(g->m, o)->sched = (struct ir_sched){below(g, 8), (int16_t)(below(g, 5) - 2), 3};
  for (uint32_t i = 0; i < n_out; i++)
    ir_value_at(g->m, ir_op_at(g->m, o)->out[i])->layout =
        chance(g, 20) ? below(g, g->m->layouts.n) : 0;
  uint32_t pool = g->pool.n;
  for (uint32_t k = 0; k < info->n_blocks; k++) {
    struct ir_block b = ir_op_at(g->m, o)->blocks[k];
    uint32_t n_args = chance(g, 50) ? n_in - (opcode == IR_FOR && n_in > 2 ? 2 : 0) : below(g, 3);
    struct ir_builder outer = g->b;
    g->b.block = b;
    for (uint32_t i = 0; i < n_args; i++)
      push(g, ir_add_arg(g->m, b, wild_type(g)));
    g->depth++;
    for (uint32_t i = below(g, 4); i > 0 && g->depth < g->opt->max_depth; i--)
      wild_op(g, (enum ir_opcode)(1 + below(g, IR_OPCODE_COUNT - 1)));
    g->depth--;
    g->b = outer;
    g->pool.n = pool;
  }
  push_results(g, o);
}

struct ir_module *gen_ir_text(struct arena *a, struct gen_ir *opt, enum ir_stage stage) {
  struct gen g = {.opt = opt, .rng = opt->seed};
  begin(&g, a, stage);
  decorate(&g, a);
  wild_head(&g);
  const struct ir_blocknode *body = ir_block_at(g.m, g.m->body);
  for (uint32_t i = 0; i < body->args.n; i++)
    push(&g, body->args.at[i]);
  for (uint32_t i = 0; i < opt->n_ops; i++)
    wild_op(&g, (enum ir_opcode)(1 + below(&g, IR_OPCODE_COUNT - 1)));
  annotate(&g);
  return g.m;
}
