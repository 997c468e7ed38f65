/* Device values: types, operands, constants, and how messages describe them; see dsl.h. */
#include "base/check.h"
#include "base/hash.h"
#include "base/num.h"
#include "frontend/dsl.h"

#include <inttypes.h>
#include <math.h>

/* ---- types ---- */

static uint64_t type_hash(struct ir_type t) {
  uint64_t h = hash_mix((uint64_t)t.kind << 16 | (uint64_t)t.dtype << 8 | t.rank, 1);
  for (uint32_t i = 0; i < t.rank; i++)
    h = hash_mix(h, (uint64_t)t.dim[i]);
  return h;
}

struct fe_type dsl_type_id(struct fe_file *f, struct ir_type t) {
  uint64_t h = type_hash(t);
  uint32_t pos = 0, id;
  while (map_find_from(&f->type_ids, h, &pos, &id))
    if (ir_type_eq(f->types.at[id - 1], t))
      return (struct fe_type){id};
  VEC_PUSH(fe_arena(f->fe), &f->types, t);
  map_add(&f->type_ids, h, f->types.n);
  return (struct fe_type){f->types.n};
}

struct ir_type dsl_type(const struct fe_file *f, struct fe_type id) {
  KILN_ASSERT(id.id && id.id <= f->types.n);
  return f->types.at[id.id - 1];
}

const char *dsl_describe_type(struct fe_file *f, struct ir_type t) {
  struct strbuf b = {.arena = fe_trace_arena(f->fe)};
  ir_type_describe(t, &b);
  return sb_str(&b);
}

const char *dsl_shape_text(struct fe_file *f, struct ir_type t) {
  struct strbuf b = {.arena = fe_trace_arena(f->fe)};
  sb_putc(&b, '(');
  for (uint32_t i = 0; i < t.rank; i++)
    sb_printf(&b, "%s%" PRId64, i ? "," : "", t.dim[i]);
  sb_putc(&b, ')');
  return sb_str(&b);
}

const char *dsl_describe_opnd(struct fe_file *f, const struct dsl_opnd *o) {
  struct strbuf b = {.arena = fe_trace_arena(f->fe)};
  switch (o->kind) {
  case DSL_DEV: return dsl_describe_type(f, o->dev->t);
  case DSL_INT: sb_printf(&b, "number %" PRId64, o->i); break;
  case DSL_FLT: /* C libraries differ in the sign of NaN */
    sb_printf(&b, "number %.14g", isnan(o->f) ? fabs(o->f) : o->f);
    break;
  case DSL_BOOL: return o->i ? "true" : "false";
  }
  return sb_str(&b);
}

/* ---- making values ---- */

struct dsl_val *dsl_new_val(struct fe_file *f, struct ir_type t, struct ir_val v) {
  struct dsl_val *d = ARENA_NEW(fe_trace_arena(f->fe), struct dsl_val);
  d->h.kind = FE_DEV_VALUE;
  uint8_t flags = 0;
  if (t.dtype == DT_BOOL)
    flags |= FE_DEV_MASK;
  if (t.kind == IR_SCALAR)
    flags |= FE_DEV_SCALAR;
  if (dtype_is_int((enum dtype)t.dtype))
    flags |= FE_DEV_INT;
  d->h.flags = flags;
  d->h.region = fe_value_region(f->fe);
  d->h.type = dsl_type_id(f, t);
  d->made = fe_where(f->fe);
  d->t = t;
  d->v = v;
  return d;
}

struct dsl_val *dsl_new_expr(struct fe_file *f, enum dtype t, struct expr e) {
  if (expr_size(&f->m->exprs, e) > EXPR_MAX_SIZE)
    fe_error(f->fe, DIAG_LIMIT, "this launch expression is larger than %d terms", EXPR_MAX_SIZE);
  struct dsl_val *d = dsl_new_val(f, ir_scalar(t), (struct ir_val){0});
  d->e = e;
  return d;
}

int dsl_push(struct fe_file *f, struct dsl_val *v) {
  if (v)
    lua_pushlightuserdata(fe_lua(f->fe), v);
  else
    fe_push_unknown(f->fe);
  return 1;
}

/* The module's index of the running function's place and callers. */
static uint32_t present_loc(struct fe_file *f) {
  uint32_t id = fe_callstack(f->fe);
  if (!id)
    return 0;
  uint32_t want = fe_callstack_count(f->fe) + 1;
  if (id >= want)
    want = id + 1;
  while (f->locs.n < want)
    VEC_PUSH(fe_trace_arena(f->fe), &f->locs, 0u);
  /* Callers first: a chain is as long as the recursion is deep, so no recursion here. */
  uint32_t chain = id, todo = 0;
  while (chain && !f->locs.at[chain]) {
    todo++;
    fe_callstack_at(f->fe, chain, &chain);
  }
  while (todo--) {
    uint32_t at = id, up;
    for (uint32_t i = 0; i < todo; i++)
      fe_callstack_at(f->fe, at, &at);
    struct diag_loc loc = fe_callstack_at(f->fe, at, &up);
    f->locs.at[at] = ir_add_loc(f->m, loc, up ? f->locs.at[up] : 0);
  }
  return f->locs.at[id];
}

struct ir_op dsl_build(struct fe_file *f, enum ir_opcode op, uint32_t n, const struct ir_val *in,
                       uint32_t n_out, const struct ir_type *out) {
  if (f->m->ops.n > f->max_ops)
    fe_error(f->fe, DIAG_OP_LIMIT,
             "the kernel has more than %u ops; plain loops unroll: use range(lo, hi, step)",
             f->max_ops);
  fe_charge(f->fe, 1);
  f->b.loc = present_loc(f);
  return ir_build(&f->b, op, n, in, n_out, out);
}

struct ir_val dsl_build1(struct fe_file *f, enum ir_opcode op, struct ir_type t, uint32_t n,
                         const struct ir_val *in) {
  struct ir_op o = dsl_build(f, op, n, in, 1, &t);
  return ir_op_at(f->m, o)->out[0];
}

/* ---- operands ---- */

static bool refuse_outside(struct fe_file *f, const char *what) {
  fe_soft_error(f->fe, DIAG_STAGE_OPERAND,
                "%s makes a device value: only a kernel's body does that", what);
  return false;
}

const char *dsl_describe(struct fe_file *f, int idx) {
  lua_State *L = fe_lua(f->fe);
  enum dtype t;
  if (lua_type(L, idx) != LUA_TUSERDATA)
    return fe_describe(f->fe, idx);
  if (dsl_to_dtype(L, idx, &t))
    return arena_printf(fe_arena(f->fe), "the dtype %s", dtype_name(t));
  /* arrays, kernels: their own text. */
  const char *text = arena_strdup(fe_arena(f->fe), luaL_tolstring(L, idx, NULL));
  lua_pop(L, 1);
  return text;
}

bool dsl_opnd_at(struct fe_file *f, int idx, const char *what, struct dsl_opnd *out) {
  lua_State *L = fe_lua(f->fe);
  *out = (struct dsl_opnd){0};
  switch (lua_type(L, idx)) {
  case LUA_TNUMBER:
    if (lua_isinteger(L, idx)) {
      out->kind = DSL_INT;
      out->i = lua_tointeger(L, idx);
      out->f = (double)out->i;
    } else {
      out->kind = DSL_FLT;
      out->f = lua_tonumber(L, idx);
    }
    return true;
  case LUA_TBOOLEAN:
    out->kind = DSL_BOOL;
    out->i = lua_toboolean(L, idx);
    out->f = (double)out->i;
    return true;
  case LUA_TLIGHTUSERDATA:
    out->kind = DSL_DEV;
    out->dev = dsl_val_at(f, idx, what);
    return out->dev != NULL;
  default:
    fe_soft_error(f->fe, DIAG_OPERAND, "%s takes tiles, scalars and numbers, got %s", what,
                  dsl_describe(f, idx));
    return false;
  }
}

struct dsl_val *dsl_val_at(struct fe_file *f, int idx, const char *what) {
  lua_State *L = fe_lua(f->fe);
  struct fe_dev *h = fe_to_dev(L, idx);
  if (fe_is_unknown(h))
    return NULL;
  if (!h || h->kind != FE_DEV_VALUE) {
    fe_soft_error(f->fe, DIAG_OPERAND, "%s takes tiles and scalars, got %s%s", what,
                  dsl_describe(f, idx),
                  h && h->kind == FE_DEV_OBJECT  ? "; read a tile of it: t:tile(offsets, sizes)"
                  : h && h->kind == FE_DEV_RANGE ? "; a range only goes into `for k in ...`"
                                                 : "");
    return NULL;
  }
  struct dsl_val *v = (struct dsl_val *)h;
  if (!fe_check_open(f->fe, h, v->made))
    return NULL;
  return v;
}

/* ---- constants ---- */

static const char *no_fit(struct fe_file *f, enum dtype t, const struct dsl_opnd *o) {
  struct strbuf b = {.arena = fe_trace_arena(f->fe)};
  sb_printf(&b, "%s does not fit %s", dsl_describe_opnd(f, o), dtype_name(t));
  if (t == DT_BOOL)
    sb_puts(&b, "; masks come from comparisons");
  else if (dtype_is_float(t))
    sb_printf(&b, " (largest %.10g)", num_max(t));
  else if (dtype_bits(t) < 64)
    sb_printf(&b, " (%.10g to %.10g)", num_min(t), num_max(t));
  return sb_str(&b);
}

bool dsl_fits(struct fe_file *f, enum dtype t, const struct dsl_opnd *o, const char **why) {
  KILN_ASSERT(o->kind != DSL_DEV);
  *why = NULL;
  if (o->kind == DSL_BOOL) {
    if (t == DT_BOOL)
      return true;
    *why = arena_printf(fe_trace_arena(f->fe), "%s is no number; %s needs one",
                        o->i ? "true" : "false", dtype_name(t));
    return false;
  }
  if (t == DT_BOOL) {
    *why = no_fit(f, t, o);
    return false;
  }
  if (dtype_is_float(t)) {
    /* Infinity where the type has none saturates in casts; written as a number it is a mistake. */
    double r = num_round(t, o->f);
    if (isinf(o->f) ? !isinf(r) : fabs(o->f) > num_max(t) && (isinf(r) || dtype_bits(t) == 8)) {
      *why = no_fit(f, t, o);
      return false;
    }
    return true;
  }
  if (o->kind == DSL_FLT && o->f != floor(o->f) && !isnan(o->f)) {
    *why = arena_printf(fe_trace_arena(f->fe), "the fraction %.14g cannot become %s", o->f,
                        dtype_name(t));
    return false;
  }
  bool fits =
      o->kind == DSL_INT
          ? dtype_bits(t) == 64 || ((double)o->i >= num_min(t) && (double)o->i <= num_max(t))
          : o->f >= -0x1p63 && o->f < 0x1p63 && o->f >= num_min(t) && o->f <= num_max(t);
  if (!fits)
    *why = no_fit(f, t, o);
  return fits;
}

static struct dsl_val *make_const(struct fe_file *f, enum dtype t, bool is_int, int64_t i,
                                  double x) {
  struct dsl_val *d;
  if (f->mode == DSL_GRID) {
    if (t != DT_INDEX && t != DT_BOOL) {
      fe_soft_error(f->fe, DIAG_OPERAND, "a grid is made of integers, not of %s", dtype_name(t));
      return NULL;
    }
    d = dsl_new_expr(f, t, expr_const(&f->m->exprs, i));
  } else if (f->mode == DSL_BODY) {
    f->b.loc = 0;
    struct ir_type type = ir_scalar(t);
    struct ir_op o = dsl_build(f, IR_CONST, 0, NULL, 1, &type);
    struct ir_attr a = {.key = IR_ATTR_value};
    if (dtype_is_float(t))
      a.f = num_round(t, x);
    else
      a.i = i;
    ir_set_attr(f->m, o, a);
    d = dsl_new_val(f, type, ir_op_at(f->m, o)->out[0]);
  } else {
    refuse_outside(f, dtype_name(t));
    return NULL;
  }
  d->is_const = true;
  d->value = is_int ? (double)i : num_round(t, x);
  if (is_int && t != DT_BOOL) {
    d->has_range = true;
    d->lo = d->hi = i;
  }
  return d;
}

struct dsl_val *dsl_const(struct fe_file *f, enum dtype t, const struct dsl_opnd *o) {
  const char *why;
  if (!dsl_fits(f, t, o, &why)) {
    fe_soft_error(f->fe, DIAG_TYPE_MISMATCH, "%s", why);
    return NULL;
  }
  bool is_int = !dtype_is_float(t);
  int64_t i = o->kind == DSL_FLT ? (is_int ? (int64_t)o->f : 0) : o->i;
  return make_const(f, t, is_int, i, o->f);
}

struct dsl_val *dsl_const_num(struct fe_file *f, enum dtype t, double x) {
  struct dsl_opnd o = {.kind = DSL_FLT, .f = x};
  return dsl_const(f, t, &o);
}

struct dsl_val *dsl_const_int(struct fe_file *f, enum dtype t, int64_t x) {
  struct dsl_opnd o = {.kind = DSL_INT, .i = x, .f = (double)x};
  return dsl_const(f, t, &o);
}

struct dsl_val *dsl_as_index(struct fe_file *f, const struct dsl_opnd *o, const char *what) {
  if (o->kind != DSL_DEV)
    return dsl_const(f, DT_INDEX, o);
  struct dsl_val *v = o->dev;
  if (v->t.kind != IR_SCALAR || !dtype_is_int((enum dtype)v->t.dtype)) {
    fe_soft_error(f->fe, DIAG_OPERAND, "%s is %s, not an integer scalar", what,
                  dsl_describe_type(f, v->t));
    return NULL;
  }
  return v->t.dtype == DT_INDEX ? v : dsl_cast(f, v, DT_INDEX);
}
