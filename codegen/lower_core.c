/* What all lowering stands on: scalars with constant folding, launch parameters, thread coordinates
 * of layouts, fragments. See lower.h.
 *
 * Constants, parameters and what depends on the thread alone go to the prologue, once each, however
 * often they are asked for: loops then hold only what changes in them. */
#include "codegen/lower.h"

#include "base/check.h"
#include "base/hash.h"
#include "ir/range.h"

/* ---- the prologue ---- */

struct ir_builder cg_enter_top(struct lower *l) {
  struct ir_builder saved = l->b;
  l->b = l->top;
  l->b.loc = 0;
  return saved;
}

void cg_leave_top(struct lower *l, struct ir_builder saved) {
  l->b = saved;
}

/* Exact: kind below 16, a 32 bits, b below 2^28. */
static uint64_t key3(uint64_t kind, uint32_t a, uint32_t b) {
  KILN_ASSERT(kind < 16 && b < 1u << 28);
  return kind << 60 | (uint64_t)b << 32 | a;
}

/* ---- scalars ---- */

static struct ir_val constant(struct lower *l, enum dtype t, int64_t c) {
  /* Different constants may have one hash: the next number is tried then. */
  uint64_t key = hash_mix(1000 + t, (uint64_t)c);
  for (uint32_t *have; (have = map_get(&l->consts, key)) != NULL; key++) {
    struct ir_val v = {*have};
    const struct ir_attr *have_c = ir_get_attr(l->m, ir_value_at(l->m, v)->def, IR_ATTR_value);
    if (ir_type_of(l->m, v).dtype == t &&
        (dtype_is_float(t) ? have_c->f == (double)c : have_c->i == c))
      return v;
  }
  struct ir_builder saved = cg_enter_top(l);
  struct ir_val v = ir_const_int(&l->b, t, c);
  cg_leave_top(l, saved);
  map_put(&l->consts, key, v.id);
  return v;
}

struct ir_val cg_s32(struct lower *l, int64_t c) {
  KILN_ASSERT(c >= INT32_MIN && c <= INT32_MAX);
  return constant(l, DT_S32, c);
}

struct ir_val cg_index(struct lower *l, int64_t c) {
  return constant(l, DT_INDEX, c);
}

struct ir_val cg_int(struct lower *l, enum dtype t, int64_t c) {
  return constant(l, t, c);
}

struct ir_val cg_bool(struct lower *l, bool c) {
  return constant(l, DT_BOOL, c);
}

struct ir_val cg_zero_of(struct lower *l, enum dtype t) {
  return constant(l, t, 0);
}

static enum dtype dtype_of(const struct lower *l, struct ir_val v) {
  return (enum dtype)ir_type_of(l->m, v).dtype;
}

bool cg_is_const(const struct lower *l, struct ir_val v, int64_t *c) {
  struct ir_op def = ir_value_at(l->m, v)->def;
  if (!def.id || ir_op_at(l->m, def)->opcode != IR_CONST || dtype_is_float(dtype_of(l, v)))
    return false;
  *c = ir_attr_int(l->m, def, IR_ATTR_value, 0);
  return true;
}

/* The value of a op b in type t, if it is a number that t can hold. */
static bool fold(enum ir_opcode o, enum dtype t, int64_t a, int64_t b, int64_t *r) {
  bool over = false;
  if (o == IR_ADD)
    over = __builtin_add_overflow(a, b, r);
  else if (o == IR_SUB)
    over = __builtin_sub_overflow(a, b, r);
  else if (o == IR_MUL)
    over = __builtin_mul_overflow(a, b, r);
  else if (o == IR_MIN)
    *r = a < b ? a : b;
  else if (o == IR_MAX)
    *r = a > b ? a : b;
  else if (o == IR_AND)
    *r = a & b;
  else if (o == IR_OR)
    *r = a | b;
  else if (o == IR_XOR)
    *r = a ^ b;
  else if (o == IR_SHL && a >= 0 && b >= 0 && b < 31)
    over = __builtin_mul_overflow(a, (int64_t)1 << b, r);
  else if (o == IR_SHR && a >= 0 && b >= 0 && b < 63)
    *r = a >> b;
  else
    return false;
  return !over && (t != DT_S32 || (*r >= INT32_MIN && *r <= INT32_MAX));
}

struct ir_val cg_op2(struct lower *l, enum ir_opcode o, struct ir_val a, struct ir_val b) {
  enum dtype t = dtype_of(l, a);
  int64_t x = 0, y = 0, r;
  bool cx = cg_is_const(l, a, &x), cy = cg_is_const(l, b, &y);
  if (cx && cy && fold(o, t, x, y, &r))
    return constant(l, t, r);
  if (t == DT_BOOL) {
    if (o == IR_AND && (cx || cy))
      return cx ? (x ? b : a) : (y ? a : b);
    if (o == IR_OR && (cx || cy))
      return cx ? (x ? a : b) : (y ? b : a);
  } else {
    bool neutral_y = (y == 0 && (o == IR_ADD || o == IR_SUB || o == IR_OR || o == IR_XOR ||
                                 o == IR_SHL || o == IR_SHR)) ||
                     (y == 1 && o == IR_MUL);
    bool neutral_x =
        (x == 0 && (o == IR_ADD || o == IR_OR || o == IR_XOR)) || (x == 1 && o == IR_MUL);
    if (cy && neutral_y)
      return a;
    if (cx && neutral_x)
      return b;
    if ((o == IR_MUL || o == IR_AND) && ((cx && x == 0) || (cy && y == 0)))
      return constant(l, t, 0);
  }
  return ir_build1(&l->b, o, ir_scalar(t), 2, (struct ir_val[]){a, b});
}

struct ir_val cg_add(struct lower *l, struct ir_val a, struct ir_val b) {
  return cg_op2(l, IR_ADD, a, b);
}

struct ir_val cg_mul(struct lower *l, struct ir_val a, struct ir_val b) {
  return cg_op2(l, IR_MUL, a, b);
}

struct ir_val cg_addi(struct lower *l, struct ir_val a, int64_t c) {
  return cg_op2(l, IR_ADD, a, constant(l, dtype_of(l, a), c));
}

struct ir_val cg_muli(struct lower *l, struct ir_val a, int64_t c) {
  return cg_op2(l, IR_MUL, a, constant(l, dtype_of(l, a), c));
}

struct ir_val cg_cmp(struct lower *l, enum ir_opcode o, struct ir_val a, struct ir_val b) {
  int64_t x, y;
  if (cg_is_const(l, a, &x) && cg_is_const(l, b, &y) && (o == IR_LT || o == IR_EQ || o == IR_GE))
    return cg_bool(l, o == IR_LT ? x < y : o == IR_EQ ? x == y : x >= y);
  return ir_build1(&l->b, o, ir_scalar(DT_BOOL), 2, (struct ir_val[]){a, b});
}

struct ir_val cg_select(struct lower *l, struct ir_val c, struct ir_val x, struct ir_val y) {
  int64_t k;
  if (cg_is_const(l, c, &k))
    return k ? x : y;
  if (x.id == y.id)
    return x;
  return ir_build1(&l->b, IR_SELECT, ir_type_of(l->m, x), 3, (struct ir_val[]){c, x, y});
}

struct ir_val cg_cast(struct lower *l, struct ir_val v, enum dtype t) {
  int64_t c;
  if (dtype_of(l, v) == t)
    return v;
  if (cg_is_const(l, v, &c) && (t == DT_INDEX || (t == DT_S32 && c == (int32_t)c)))
    return constant(l, t, c);
  return ir_build1(&l->b, IR_CAST, ir_scalar(t), 1, &v);
}

struct ir_val cg_shuffle(struct lower *l, struct ir_val v, int64_t mask) {
  struct ir_val r = ir_build1(&l->b, IR_SHUFFLE, ir_type_of(l->m, v), 1, &v);
  cg_set_int(l->m, ir_value_at(l->m, r)->def, IR_ATTR_mask, mask);
  return r;
}

/* x = high * by + low with a constant low below by: as loops over registers count. */
static bool split_count(const struct lower *l, struct ir_val x, struct ir_val *high, int64_t *by,
                        int64_t *low) {
  const struct ir_module *m = l->m;
  struct ir_op def = ir_value_at(m, x)->def;
  *low = 0;
  if (def.id && ir_op_at(m, def)->opcode == IR_ADD && cg_is_const(l, ir_op_at(m, def)->in[1], low))
    def = ir_value_at(m, ir_op_at(m, def)->in[0])->def;
  if (!def.id || ir_op_at(m, def)->opcode != IR_MUL || !cg_is_const(l, ir_op_at(m, def)->in[1], by))
    return false;
  *high = ir_op_at(m, def)->in[0];
  return *low >= 0 && *low < *by;
}

static int64_t digits_of(int64_t c, uint32_t n, const int64_t *map) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < n; i += 2) {
    sum += c % map[i] * map[i + 1];
    c /= map[i];
  }
  return sum;
}

struct ir_val cg_digits(struct lower *l, struct ir_val x, uint32_t n, const int64_t *map) {
  int64_t kept[2 * 64], c, by, low, product = 1;
  uint32_t k = 0;
  bool any = false;
  struct ir_val high;
  KILN_ASSERT(n <= 128 && n % 2 == 0);
  if (cg_is_const(l, x, &c))
    return cg_s32(l, digits_of(c, n, map));
  if (split_count(l, x, &high, &by, &low)) {
    /* Where by is the product of the first extents, low has their digits and high the others. */
    uint32_t first = 0;
    for (; first < n && product < by; first += 2)
      product *= map[first];
    if (product == by && first < n)
      return cg_addi(l, cg_digits(l, high, n - first, map + first), digits_of(low, first, map));
  }
  for (uint32_t i = 0; i < n; i += 2) {
    any = any || map[i + 1];
    bool joins = k && ((kept[k - 1] == 0 && map[i + 1] == 0) ||
                       (kept[k - 1] && map[i + 1] == kept[k - 1] * kept[k - 2]));
    if (joins) {
      kept[k - 2] *= map[i];
    } else {
      kept[k++] = map[i];
      kept[k++] = map[i + 1];
    }
  }
  if (!any)
    return cg_s32(l, 0);
  if (k == 2)
    return cg_muli(l, x, kept[1]);
  struct ir_val v = ir_build1(&l->b, IR_DIGITS, ir_scalar(DT_S32), 1, &x);
  cg_set_ints(l->m, ir_value_at(l->m, v)->def, IR_ATTR_map, k, kept);
  return v;
}

/* ---- launch parameters ---- */

static struct ir_val param(struct lower *l, enum recipe_param_kind kind, struct expr e,
                           enum dtype t) {
  uint64_t key = key3(kind, e.id, 0);
  uint32_t *have = map_get(&l->exprs, key);
  if (have)
    return (struct ir_val){*have};
  struct ir_param p = {.kind = kind, .value = e};
  VEC_PUSH(l->m->arena, &l->m->params, p);
  struct ir_val v = ir_add_arg(l->m, l->top.block, ir_scalar(t));
  map_put(&l->exprs, key, v.id);
  return v;
}

struct ir_val cg_launch_index(struct lower *l, struct expr e) {
  int64_t value;
  if (ir_expr_value(l->m, e, &value))
    return cg_index(l, value);
  return param(l, RECIPE_PARAM_I64, e, DT_INDEX);
}

struct ir_val cg_launch_s32(struct lower *l, struct expr e) {
  int64_t value;
  if (ir_expr_value(l->m, e, &value) && value >= 0 && value <= INT32_MAX)
    return cg_s32(l, value);
  return param(l, RECIPE_PARAM_I32, e, DT_S32);
}

/* ---- loops over registers ---- */

static struct ir_val each(struct lower *l, uint32_t n, struct ir_builder *saved, bool rolled) {
  *saved = l->b;
  if (n == 1)
    return cg_s32(l, 0);
  struct ir_op o = ir_build(&l->b, IR_EACH, 0, NULL, 0, NULL);
  cg_set_int(l->m, o, IR_ATTR_count, n);
  if (rolled)
    cg_set_int(l->m, o, IR_ATTR_rolled, 1);
  struct ir_block body = ir_op_at(l->m, o)->blocks[0];
  struct ir_val r = ir_add_arg(l->m, body, ir_scalar(DT_S32));
  l->b.block = body;
  l->b.before = (struct ir_op){0};
  cg_next_reg(l);
  return r;
}

struct ir_val cg_each(struct lower *l, uint32_t n, struct ir_builder *saved) {
  return each(l, n, saved, false);
}

struct ir_val cg_each_rolled(struct lower *l, uint32_t n, struct ir_builder *saved) {
  return each(l, n, saved, true);
}

void cg_end_each(struct lower *l, struct ir_builder saved) {
  if (l->b.block.id != saved.block.id)
    ir_build(&l->b, IR_YIELD, 0, NULL, 0, NULL);
  l->b = saved;
  cg_next_reg(l);
}

/* ---- layouts ---- */

const struct layout *cg_layout_at(const struct lower *l, uint32_t layout) {
  KILN_ASSERT(layout && layout < l->m->layouts.n);
  return l->m->layouts.at[layout];
}

uint32_t cg_mode_map(const struct layout *x, enum layout_hw hw, uint32_t dim, int64_t *map) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < x->modes.n; i++)
    if (x->modes.at[i].hw == hw) {
      map[n++] = x->modes.at[i].extent;
      map[n++] = x->modes.at[i].step[dim];
    }
  return n;
}

struct ir_val cg_thread_coord(struct lower *l, uint32_t layout, uint32_t dim) {
  uint64_t key = key3(1, layout, dim);
  uint32_t *have = map_get(&l->coords, key);
  if (have)
    return (struct ir_val){*have};
  const struct layout *x = cg_layout_at(l, layout);
  int64_t map[128];
  struct ir_builder saved = cg_enter_top(l);
  uint32_t n = cg_mode_map(x, LAYOUT_LANE, dim, map);
  struct ir_val v = cg_digits(l, l->lane, n, map);
  n = cg_mode_map(x, LAYOUT_WARP, dim, map);
  v = cg_add(l, v, cg_digits(l, l->warp, n, map));
  cg_leave_top(l, saved);
  map_put(&l->coords, key, v.id);
  return v;
}

struct ir_val cg_reg_coord(struct lower *l, uint32_t layout, uint32_t dim, struct ir_val r) {
  int64_t map[128];
  uint32_t n = cg_mode_map(cg_layout_at(l, layout), LAYOUT_REG, dim, map);
  return cg_digits(l, r, n, map);
}

struct ir_val cg_coord(struct lower *l, uint32_t layout, uint32_t dim, struct ir_val r) {
  struct ir_val of_reg = cg_reg_coord(l, layout, dim, r);
  return cg_add(l, cg_thread_coord(l, layout, dim), of_reg);
}

/* Digits of lane or warp that are copies, each told apart: 0 for the first copy alone. */
static uint32_t copies_map(const struct layout *x, enum layout_hw hw, int64_t *map) {
  uint32_t n = 0;
  int64_t next = 1;
  for (uint32_t i = 0; i < x->modes.n; i++) {
    if (x->modes.at[i].hw != hw)
      continue;
    bool copies = true;
    for (uint32_t d = 0; d < x->rank; d++)
      copies = copies && x->modes.at[i].step[d] == 0;
    map[n++] = x->modes.at[i].extent;
    map[n++] = copies ? next : 0;
    if (copies)
      next *= x->modes.at[i].extent;
  }
  return n;
}

struct ir_val cg_is_writer(struct lower *l, uint32_t layout) {
  uint64_t key = key3(2, layout, 0);
  uint32_t *have = map_get(&l->coords, key);
  if (have)
    return (struct ir_val){*have};
  const struct layout *x = cg_layout_at(l, layout);
  int64_t map[128];
  struct ir_builder saved = cg_enter_top(l);
  uint32_t n = copies_map(x, LAYOUT_LANE, map);
  struct ir_val zero = cg_s32(l, 0);
  struct ir_val w = cg_cmp(l, IR_EQ, cg_digits(l, l->lane, n, map), zero);
  n = copies_map(x, LAYOUT_WARP, map);
  w = cg_op2(l, IR_AND, w, cg_cmp(l, IR_EQ, cg_digits(l, l->warp, n, map), zero));
  cg_leave_top(l, saved);
  map_put(&l->coords, key, w.id);
  return w;
}

struct ir_val cg_inside_tile(struct lower *l, struct ir_type t, uint32_t layout, struct ir_val r) {
  struct ir_val mask = cg_bool(l, true);
  for (uint32_t d = 0; d < t.rank; d++)
    if (cg_layout_cover(cg_layout_at(l, layout), d) > t.dim[d]) {
      struct ir_val end = cg_s32(l, t.dim[d]);
      mask = cg_op2(l, IR_AND, mask, cg_cmp(l, IR_LT, cg_coord(l, layout, d, r), end));
    }
  return mask;
}

/* ---- fragments ---- */

/* Not named `n`, `p`, `v`: the emitter numbers parameters, pieces and values so. */
uint32_t cg_new_frag(struct lower *l, const char *name, struct ir_type t, uint32_t layout) {
  const char *unique = arena_printf(l->m->arena, "%s%u", name, ++l->n_names);
  struct ir_res r = {
      .kind = IR_RES_FRAG, .name = symtab_get(l->m->syms, unique), .type = t, .layout = layout};
  return ir_add_res(l->m, r);
}

uint32_t cg_frag_elems(const struct lower *l, uint32_t frag) {
  return layout_extent(cg_layout_at(l, l->m->res.at[frag].layout), LAYOUT_REG);
}

uint32_t cg_put_width(const struct lower *l, uint32_t frag) {
  uint32_t bits = dtype_bits((enum dtype)l->m->res.at[frag].type.dtype);
  uint32_t per = bits < 8 ? 4 : bits < 32 ? 32 / bits : 1;
  bool packed = l->m->res.at[frag].type.dtype != DT_BOOL && cg_frag_elems(l, frag) % per == 0;
  return packed ? per : 1;
}

static struct ir_op res_op(struct lower *l, enum ir_opcode o, uint32_t res, uint32_t n_in,
                           const struct ir_val *in, uint32_t n_out, const struct ir_type *out) {
  struct ir_op op = ir_build(&l->b, o, n_in, in, n_out, out);
  ir_set_res(l->m, op, 1, &res);
  return op;
}

struct ir_val cg_fget(struct lower *l, uint32_t frag, struct ir_val at) {
  struct ir_type t = ir_scalar((enum dtype)l->m->res.at[frag].type.dtype);
  return ir_op_at(l->m, res_op(l, IR_FGET, frag, 1, &at, 1, &t))->out[0];
}

void cg_fput(struct lower *l, uint32_t frag, struct ir_val at, uint32_t n, const struct ir_val *v) {
  struct ir_val in[1 + 16];
  KILN_ASSERT(n <= 16);
  in[0] = at;
  for (uint32_t i = 0; i < n; i++)
    in[1 + i] = v[i];
  res_op(l, IR_FPUT, frag, n + 1, in, 0, NULL);
}

void cg_ffill(struct lower *l, uint32_t frag, struct ir_val v) {
  res_op(l, IR_FFILL, frag, 1, &v, 0, NULL);
}

uint32_t cg_new_buf(struct lower *l, const char *name, struct ir_type t, int64_t bytes,
                    int64_t align) {
  struct ir_attr attrs[2] = {{.key = IR_ATTR_bytes, .i = bytes},
                             {.key = IR_ATTR_align, .i = align}};
  const char *unique = arena_printf(l->m->arena, "%s%u", name, ++l->n_names);
  struct ir_res r = {.kind = IR_RES_BUF,
                     .name = symtab_get(l->m->syms, unique),
                     .type = t,
                     .attrs = attrs,
                     .n_attrs = 2};
  return ir_add_res(l->m, r);
}
