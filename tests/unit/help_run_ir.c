/* See help_run_ir.h. */
#include "help_run_ir.h"

#include "help_gen_ir.h"
#include "help_rt.h"

#include "base/num.h"
#include "ir/walk.h"

#include <math.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

void hm_print_diags(const struct diag_sink *d) {
  struct help_arena h;
  help_arena_init(&h);
  struct strbuf out = {.arena = &h.arena};
  for (uint32_t i = 0; i < d->list.n; i++)
    diag_render_text(d, &d->list.at[i], &out);
  fputs(sb_str(&out), stderr);
  arena_free(&h.arena);
}

const char *hm_text(const struct ir_module *m, struct arena *a) {
  struct strbuf out = {.arena = a};
  ir_print(m, (struct ir_print_options){.names = true}, &out);
  return sb_str(&out);
}

/* ---- memory ---- */

static enum dtype held_as(const struct ir_arg *a, enum hm_fill how) {
  if (!dtype_is_float(a->dtype))
    return a->dtype;
  if (how == HM_PAYLOADS)
    return DT_S64;
  return a->kind == IR_ARG_OUT && how >= HM_SIZES ? DT_F64 : a->dtype;
}

static int64_t random_int(enum dtype t, uint64_t *seed, enum hm_fill how) {
  if (how == HM_PAYLOADS)
    return (int64_t)(gen_below(seed, UINT64_MAX) * 2 + gen_below(seed, 2));
  return (int64_t)gen_below(seed, 5) - (dtype_kind(t) == DTK_UINT ? 0 : 2);
}

static void fill_tensor(enum dtype t, void *bytes, int64_t n, uint64_t *seed, enum hm_fill how) {
  static const double special[] = {0.0,         -0.0,     1.0, (double)INFINITY, -(double)INFINITY,
                                   (double)NAN, 0x1p-140, -3.0};
  bool is_float = dtype_is_float(t);
  if (how == HM_BITS)
    for (int64_t k = 0; k < dtype_bytes(t, n); k++)
      ((unsigned char *)bytes)[k] = (unsigned char)gen_below(seed, 256);
  for (int64_t k = 0; k < n; k++) {
    if (how == HM_BITS && is_float && gen_below(seed, 2))
      num_store(t, bytes, k, special[gen_below(seed, COUNT(special))]);
    else if (how != HM_BITS && !is_float)
      num_store_int(t, bytes, k, random_int(t, seed, how));
    else if (how == HM_INTEGERS)
      num_store(t, bytes, k, (double)gen_below(seed, 5) - 2);
    else if (how != HM_BITS) {
      double x = (double)gen_below(seed, 1u << 20) / (1 << 18) - 2;
      num_store(t, bytes, k, how == HM_ZEROS ? 0 : how == HM_SIZES ? fabs(num_round(t, x)) : x);
    }
  }
  if (t == DT_E5M2 && how == HM_BITS && n)
    *(unsigned char *)bytes = 0x7c; /* the infinity that a store would saturate */
}

void hm_fill(const struct ir_module *m, struct hm_memory *x, uint64_t seed, enum hm_fill how) {
  memset(x->args, 0, sizeof x->args);
  for (uint32_t i = 0; i < m->args.n; i++) {
    const struct ir_arg *a = &m->args.at[i];
    int64_t dim[IR_MAX_RANK], elems = 1;
    for (uint32_t k = 0; k < a->rank; k++) {
      if (!expr_is_const(&m->exprs, a->dim[k], &dim[k]))
        dim[k] = str_eq(ir_sym(m, expr_at(&m->exprs, a->dim[k])->sym), "M") ? 7 : 9;
      elems *= dim[k];
    }
    enum dtype t = held_as(a, how);
    int64_t bytes = dtype_bytes(t, elems);
    assert_true(i < HM_MAX_ARGS && bytes <= HM_MAX_BYTES);
    x->args[i].tensor = interp_dense(x->bytes[i], t, a->rank, dim);
    x->args[i].i = (int64_t)gen_below(&seed, 7) - 3;
    x->args[i].f = (double)x->args[i].i;
    if (how == HM_ZEROS)
      x->args[i].f = 0;
    else if (how == HM_SIZES)
      x->args[i].f = fabs(x->args[i].f);
    if (a->kind == IR_ARG_OUT)
      memset(x->bytes[i], how >= HM_SIZES && dtype_is_float(a->dtype) ? 0 : 0x5a, (size_t)bytes);
    else if (a->rank)
      fill_tensor(t, x->bytes[i], elems, &seed, how);
  }
}

bool hm_run(const struct ir_module *m, struct hm_memory *x, enum interp_domain domain,
            struct diag_sink *diags) {
  struct interp_options opt = {.domain = domain, .max_steps = 10000000};
  return interp_run(m, x->args, m->args.n, &opt, diags, &mem_libc);
}

bool hm_same_elem(enum dtype t, const void *x, const void *y, int64_t i) {
  if (!dtype_is_float(t))
    return num_load_int(t, x, i) == num_load_int(t, y, i);
  double a = num_load(t, x, i), b = num_load(t, y, i);
  return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

const char *hm_difference(const struct ir_module *m, const struct hm_memory *x,
                          const struct hm_memory *y, struct arena *a) {
  for (uint32_t i = 0; i < m->args.n; i++) {
    const struct interp_tensor *t = &x->args[i].tensor;
    int64_t elems = 1;
    for (uint32_t k = 0; k < t->rank; k++)
      elems *= t->dim[k];
    if (!m->args.at[i].rank ||
        memcmp(x->bytes[i], y->bytes[i], (size_t)dtype_bytes(t->dtype, elems)) == 0)
      continue;
    for (int64_t k = 0; k < elems; k++)
      if (!hm_same_elem(t->dtype, x->bytes[i], y->bytes[i], k))
        return arena_printf(a, "argument %s, element %lld: %.17g before, %.17g after",
                            ir_sym(m, m->args.at[i].name), (long long)k,
                            num_load(t->dtype, x->bytes[i], k), num_load(t->dtype, y->bytes[i], k));
  }
  return NULL;
}

/* ---- error bounds of smooth modules ---- */

struct rewrite {
  struct ir_module *m;
  struct ir_builder b; /* after the op that is rewritten */
  struct ir_op op;
};

static struct ir_val build(struct rewrite *r, enum ir_opcode o, struct ir_type t, uint32_t n,
                           const struct ir_val *in) {
  return ir_build1(&r->b, o, t, n, in);
}

static struct ir_val number(struct rewrite *r, struct ir_type t, double x) {
  struct ir_val v = ir_const_num(&r->b, (enum dtype)t.dtype, x);
  return t.kind == IR_SCALAR ? v : build(r, IR_SPLAT, t, 1, &v);
}

static struct ir_val pair(struct rewrite *r, enum ir_opcode o, struct ir_val x, struct ir_val y) {
  struct ir_val in[2] = {x, y};
  return build(r, o, ir_type_of(r->m, x), 2, in);
}

static struct ir_val plus(struct rewrite *r, struct ir_val x, double n) {
  struct ir_val y = number(r, ir_type_of(r->m, x), n);
  return pair(r, IR_ADD, x, y);
}

/* The largest element, as a tile of the shape t. */
static struct ir_val largest(struct rewrite *r, struct ir_val x, struct ir_type t) {
  struct ir_type from = ir_type_of(r->m, x);
  for (uint32_t d = 0; d < from.rank; d++) {
    from.dim[d] = 1;
    x = build(r, IR_REDUCE_MAX, from, 1, &x);
    ir_set_attr(r->m, ir_value_at(r->m, x)->def, (struct ir_attr){.key = IR_ATTR_axis, .i = d});
  }
  struct ir_type s = ir_scalar((enum dtype)from.dtype);
  x = build(r, IR_ITEM, s, 1, &x);
  if (from.dtype != t.dtype)
    x = build(r, IR_CAST, ir_scalar((enum dtype)t.dtype), 1, &x);
  return build(r, IR_SPLAT, t, 1, &x);
}

static bool is_float(const struct ir_module *m, struct ir_val v) {
  struct ir_type t = ir_type_of(m, v);
  return (t.kind == IR_SCALAR || t.kind == IR_TILE) && dtype_is_float((enum dtype)t.dtype);
}

/* Uses of the op's result, those that the rewrite made aside, become uses of `by`. */
static void put(struct rewrite *r, struct ir_val by, uint32_t first_new) {
  struct ir_val out = ir_op_at(r->m, r->op)->out[0];
  struct ir_op o = ir_block_at(r->m, r->m->body)->first;
  for (; o.id; o = ir_walk_next(r->m, o, r->m->body))
    for (uint32_t i = 0; i < ir_op_at(r->m, o)->n_in && o.id < first_new; i++)
      if (ir_op_at(r->m, o)->in[i].id == out.id)
        ir_op_at(r->m, o)->in[i] = by;
}

static void set_number(struct ir_module *m, struct ir_op o, enum ir_attr_key key, bool zero) {
  const struct ir_attr *had = ir_get_attr(m, o, key);
  if (!had)
    return;
  struct ir_attr a = *had;
  a.f = zero ? 0 : fabs(a.f);
  ir_set_attr(m, o, a);
}

static void absolute(struct rewrite *r) {
  struct ir_opnode *n = ir_op_at(r->m, r->op);
  uint32_t first_new = r->m->ops.n;
  set_number(r->m, r->op, IR_ATTR_value, false);
  set_number(r->m, r->op, IR_ATTR_pad, false);
  n = ir_op_at(r->m, r->op);
  if (n->opcode == IR_SUB)
    n->opcode = IR_ADD;
  else if (n->opcode == IR_NEG)
    n->opcode = IR_ABS;
  else if (n->opcode == IR_CAST && !is_float(r->m, n->in[0])) {
    struct ir_val v = n->out[0];
    put(r, build(r, IR_ABS, ir_type_of(r->m, v), 1, &v), first_new);
  }
}

static void roundings(struct rewrite *r) {
  const struct ir_opnode *n = ir_op_at(r->m, r->op);
  uint32_t first_new = r->m->ops.n;
  struct ir_val in[3] = {{0}}, v = n->out[0];
  struct ir_type t = ir_type_of(r->m, v);
  for (uint32_t i = 0; i < n->n_in && i < 3; i++)
    in[i] = n->in[i];
  switch ((int)n->opcode) {
  case IR_CONST: set_number(r->m, r->op, IR_ATTR_value, true); return;
  case IR_LOAD:
  case IR_GATHER: set_number(r->m, r->op, IR_ATTR_pad, true); return;
  case IR_ADD:
  case IR_SUB: v = plus(r, pair(r, IR_MAX, in[0], in[1]), 1); break;
  case IR_MUL: v = plus(r, pair(r, IR_ADD, in[0], in[1]), 1); break;
  case IR_FMA: v = plus(r, pair(r, IR_MAX, pair(r, IR_ADD, in[0], in[1]), in[2]), 1); break;
  case IR_NEG: v = in[0]; break;
  case IR_CAST: v = is_float(r->m, in[0]) ? plus(r, v, 1) : number(r, t, 1); break;
  case IR_REDUCE_SUM:
    ir_op_at(r->m, r->op)->opcode = IR_REDUCE_MAX;
    v = plus(r, v, (double)ir_elems(ir_type_of(r->m, in[0])));
    break;
  case IR_SCAN_SUM: v = plus(r, largest(r, in[0], t), (double)ir_elems(t)); break;
  case IR_DOT: {
    struct ir_val a = largest(r, in[0], t), b = largest(r, in[1], t);
    double k = (double)ir_type_of(r->m, in[0]).dim[1];
    v = plus(r, pair(r, IR_MAX, pair(r, IR_ADD, a, b), in[2]), k + 1);
    break;
  }
  default: return; /* moves */
  }
  put(r, v, first_new);
}

static struct ir_module *rewritten(const struct ir_module *m, struct arena *a,
                                   void (*fn)(struct rewrite *)) {
  struct rewrite r = {.m = ir_clone(m, a)};
  uint32_t n = r.m->ops.n;
  r.b.m = r.m;
  for (uint32_t i = 1; i < n; i++) {
    const struct ir_opnode *o = ir_op_at(r.m, (struct ir_op){i});
    if (!o->block.id || o->n_out != 1 || o->n_blocks || !is_float(r.m, o->out[0]))
      continue;
    r.op.id = i;
    r.b.block = o->block;
    r.b.before = o->next;
    fn(&r);
  }
  return r.m;
}

struct ir_module *hm_absolute(const struct ir_module *m, struct arena *a) {
  return rewritten(m, a, absolute);
}

struct ir_module *hm_roundings(const struct ir_module *m, struct arena *a) {
  return rewritten(m, a, roundings);
}
