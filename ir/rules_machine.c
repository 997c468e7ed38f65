/* Verifier rules of the portable machine ops (rules_machine.def). What needs a look at several ops
 * at once (whether a slot is free, whether a barrier lies between) is the emulator's business, not
 * theirs. */
#include "ir/mma.h"
#include "ir/rules_impl.h"

#include <string.h>

bool ir_rule_is_scalar(struct ir_type t, enum dtype dt) {
  return t.kind == IR_SCALAR && t.dtype == dt;
}

bool ir_rule_want_scalar(struct ir_check *c, uint32_t i, enum dtype dt, const char *what) {
  struct ir_type_text a;
  if (ir_rule_is_scalar(in(c, i), dt))
    return true;
  ir_rule_fail(c, "operand %u, %s, must be %s, not %s", i + 1, what, dtype_name(dt),
               ir_type_text(in(c, i), &a));
  return false;
}

/* A constant index must leave room for n elements. */
void ir_rule_check_index(struct ir_check *c, uint32_t i, const struct ir_res *frag, int64_t n) {
  if (!ir_rule_want_scalar(c, i, DT_S32, "the index"))
    return;
  struct ir_op def = c->m->values.at[c->n->in[i].id].def;
  int64_t have = ir_frag_elems(c->m, frag);
  if (def.id && ir_op_at(c->m, def)->opcode == IR_CONST) {
    int64_t at = ir_attr_int(c->m, def, IR_ATTR_value, 0);
    if (at < 0 || at + n > have)
      ir_rule_fail(c, "elements %lld..%lld are outside the fragment's %lld", (long long)at,
                   (long long)(at + n - 1), (long long)have);
  } else if (n > have) {
    ir_rule_fail(c, "%lld elements do not fit into the fragment's %lld", (long long)n,
                 (long long)have);
  }
}

/* May a value of dtype v be written where t lies, rounding once? */
static bool rounds_to(enum dtype v, enum dtype t) {
  return v == t || (dtype_is_float(v) && dtype_is_float(t) && dtype_bits(v) > dtype_bits(t));
}

bool ir_rule_check_values(struct ir_check *c, uint32_t first, enum dtype t) {
  struct ir_type_text a;
  for (uint32_t i = first; i < c->n->n_in; i++)
    if (in(c, i).kind != IR_SCALAR || !rounds_to((enum dtype)in(c, i).dtype, t)) {
      ir_rule_fail(c, "operand %u is %s, which does not round to %s", i + 1,
                   ir_type_text(in(c, i), &a), dtype_name(t));
      return false;
    }
  return true;
}

bool ir_rule_check_results(struct ir_check *c, enum dtype t) {
  struct ir_type_text a;
  for (uint32_t i = 0; i < c->n->n_out; i++)
    if (!ir_rule_is_scalar(out(c, i), t)) {
      ir_rule_fail(c, "result %u is %s, not %s", i + 1, ir_type_text(out(c, i), &a), dtype_name(t));
      return false;
    }
  return true;
}

/* One access moves 1, 2, 4, 8 or 16 bytes. */
void ir_rule_check_width(struct ir_check *c, uint32_t n, enum dtype t) {
  /* Of 4-bit elements, one and up to 16. */
  uint32_t bits = dtype_bits(t), bytes = bits < 8 ? n : n * bits / 8;
  if (n == 0 || (n & (n - 1)) || bytes == 0 || bytes > 16)
    ir_rule_fail(c, "%u elements of %s are not an access of 1, 2, 4, 8 or 16 bytes", n,
                 dtype_name(t));
}

void ir_rule_convert(struct ir_check *c) {
  struct ir_type_text a, b;
  if (in(c, 0).kind != IR_TILE || !ir_type_eq(in(c, 0), out(c, 0)))
    ir_rule_fail(c, "takes a tile to the same tile, not %s to %s", ir_type_text(in(c, 0), &a),
                 ir_type_text(out(c, 0), &b));
}

void ir_rule_ident(struct ir_check *c) {
  struct ir_type_text a;
  if (!ir_rule_is_scalar(out(c, 0), DT_S32))
    ir_rule_fail(c, "the result must be s32, not %s", ir_type_text(out(c, 0), &a));
}

void ir_rule_digits(struct ir_check *c) {
  struct ir_type_text a;
  const struct ir_attr *map = ir_get_attr(c->m, c->op, IR_ATTR_map);
  ir_rule_want_scalar(c, 0, DT_S32, "what is taken apart");
  if (!ir_rule_is_scalar(out(c, 0), DT_S32))
    ir_rule_fail(c, "the result must be s32, not %s", ir_type_text(out(c, 0), &a));
  if (!map || map->n_ints % 2) {
    ir_rule_fail(c, "map must hold pairs of extent and step");
    return;
  }
  for (uint32_t i = 0; i < map->n_ints; i += 2)
    if (map->ints[i] < 1 || map->ints[i] > INT32_MAX || map->ints[i + 1] > INT32_MAX ||
        map->ints[i + 1] < INT32_MIN)
      ir_rule_fail(c, "extent %lld with step %lld is out of range", (long long)map->ints[i],
                   (long long)map->ints[i + 1]);
}

static bool is_word(struct ir_type t) {
  return ir_rule_is_scalar(t, DT_S32) || ir_rule_is_scalar(t, DT_S64);
}

/* `x`: what has the bits, `word`: the integer they are in. */
static void check_bits(struct ir_check *c, struct ir_type x, struct ir_type word) {
  struct ir_type_text a, b;
  if (x.kind != IR_SCALAR || !is_word(word) || dt(x) == DT_BOOL || dt(x) == DT_INDEX)
    ir_rule_fail(c, "goes between a float or integer and an s32 or s64, not %s and %s",
                 ir_type_text(x, &a), ir_type_text(word, &b));
  else if (dtype_bits(dt(x)) > dtype_bits(dt(word)))
    ir_rule_fail(c, "the bits of %s do not fit into %s", dtype_name(dt(x)), dtype_name(dt(word)));
}

void ir_rule_to_bits(struct ir_check *c) {
  check_bits(c, in(c, 0), out(c, 0));
}

void ir_rule_from_bits(struct ir_check *c) {
  check_bits(c, out(c, 0), in(c, 0));
}

void ir_rule_each(struct ir_check *c) {
  int64_t count = ir_attr_int(c->m, c->op, IR_ATTR_count, 0);
  if (count < 1 || count > INT32_MAX)
    ir_rule_fail(c, "count is %lld; it must be at least 1", (long long)count);
  const struct ir_blocknode *b = ir_block_at(c->m, c->n->blocks[0]);
  if (b->args.n != 1 || !ir_rule_is_scalar(ir_type_of(c->m, b->args.at[0]), DT_S32))
    ir_rule_fail(c, "its block takes one s32 argument");
  if (!b->last.id || ir_op_at(c->m, b->last)->opcode != IR_YIELD ||
      ir_op_at(c->m, b->last)->n_in != 0)
    ir_rule_fail_at(c, b->last.id ? b->last : c->op, "the block of each ends in an empty yield");
}

void ir_rule_ffill(struct ir_check *c) {
  ir_rule_want_scalar(c, 0, (enum dtype)ir_rule_res(c, 0)->type.dtype, "the value");
}

void ir_rule_fget(struct ir_check *c) {
  ir_rule_check_index(c, 0, ir_rule_res(c, 0), c->n->n_out);
  ir_rule_check_results(c, (enum dtype)ir_rule_res(c, 0)->type.dtype);
}

void ir_rule_fput(struct ir_check *c) {
  if (c->n->n_in < 2) {
    ir_rule_fail(c, "takes an index and at least one value");
    return;
  }
  const struct ir_res *frag = ir_rule_res(c, 0);
  enum dtype t = (enum dtype)frag->type.dtype;
  uint32_t n = c->n->n_in - 1u, bits = dtype_bits(t);
  uint32_t per_reg = bits < 8 ? 4 : bits < 32 ? 32 / bits : 1;
  ir_rule_check_index(c, 0, frag, n);
  ir_rule_check_values(c, 1, t);
  if (t != DT_BOOL && ir_frag_elems(c->m, frag) % per_reg == 0 && n % per_reg)
    ir_rule_fail(c, "writes %u elements of %s: not whole 32-bit registers", n, dtype_name(t));
}

void ir_rule_ptr_add(struct ir_check *c) {
  struct ir_type_text a, b;
  if (in(c, 0).kind != IR_PTR || out(c, 0).kind != IR_PTR || in(c, 0).dtype != out(c, 0).dtype)
    ir_rule_fail(c, "takes a pointer to a pointer of its dtype, not %s to %s",
                 ir_type_text(in(c, 0), &a), ir_type_text(out(c, 0), &b));
  ir_rule_want_scalar(c, 1, DT_INDEX, "the offset");
}

static bool want_ptr(struct ir_check *c) {
  struct ir_type_text a;
  if (in(c, 0).kind == IR_PTR)
    return true;
  ir_rule_fail(c, "operand 1 must be a pointer, not %s", ir_type_text(in(c, 0), &a));
  return false;
}

void ir_rule_gload(struct ir_check *c) {
  if (!want_ptr(c))
    return;
  enum dtype t = (enum dtype)in(c, 0).dtype;
  ir_rule_want_scalar(c, 1, DT_BOOL, "the mask");
  ir_rule_want_scalar(c, 2, t, "the other value");
  ir_rule_check_width(c, c->n->n_out, t);
  ir_rule_check_results(c, t);
}

void ir_rule_gstore(struct ir_check *c) {
  if (c->n->n_in < 3) {
    ir_rule_fail(c, "takes a pointer, a mask and at least one value");
    return;
  }
  if (!want_ptr(c))
    return;
  enum dtype t = (enum dtype)in(c, 0).dtype;
  ir_rule_want_scalar(c, 1, DT_BOOL, "the mask");
  ir_rule_check_width(c, c->n->n_in - 2u, t);
  ir_rule_check_values(c, 2, t);
}

void ir_rule_gatomic(struct ir_check *c) {
  if (!want_ptr(c))
    return;
  enum dtype t = (enum dtype)in(c, 0).dtype;
  const char *kind = ir_sym(c->m, ir_get_attr(c->m, c->op, IR_ATTR_kind)->s);
  ir_rule_want_scalar(c, 1, DT_BOOL, "the mask");
  ir_rule_want_scalar(c, 2, t, "the value");
  if (c->n->n_out > 1)
    ir_rule_fail(c, "gives %u results; it is one, or none", c->n->n_out);
  ir_rule_check_results(c, t);
  if (!ir_has_atomic(kind, t))
    ir_rule_fail(c, "there is no atomic %s of %s", kind, dtype_name(t));
  else
    ir_rule_check_sem(c, kind, ir_scalar(t));
}

void ir_rule_sload(struct ir_check *c) {
  enum dtype t = (enum dtype)ir_rule_res(c, 0)->type.dtype;
  ir_rule_want_scalar(c, 0, DT_S32, "the offset");
  ir_rule_check_width(c, c->n->n_out, t);
  ir_rule_check_results(c, t);
}

void ir_rule_sstore(struct ir_check *c) {
  if (c->n->n_in < 3) {
    ir_rule_fail(c, "takes an offset, a mask and at least one value");
    return;
  }
  enum dtype t = (enum dtype)ir_rule_res(c, 0)->type.dtype;
  ir_rule_want_scalar(c, 0, DT_S32, "the offset");
  ir_rule_want_scalar(c, 1, DT_BOOL, "the mask");
  ir_rule_check_width(c, c->n->n_in - 2u, t);
  ir_rule_check_values(c, 2, t);
}

void ir_rule_cp_async(struct ir_check *c) {
  int64_t bytes = ir_attr_int(c->m, c->op, IR_ATTR_bytes, 0);
  if (bytes != 4 && bytes != 8 && bytes != 16)
    ir_rule_fail(c, "copies %lld bytes; it must be 4, 8 or 16", (long long)bytes);
  if (!want_ptr(c))
    return;
  struct ir_type_text a;
  if (in(c, 0).dtype != ir_rule_res(c, 0)->type.dtype)
    ir_rule_fail(c, "copies %s into a buffer of %s", ir_type_text(in(c, 0), &a),
                 dtype_name((enum dtype)ir_rule_res(c, 0)->type.dtype));
  ir_rule_want_scalar(c, 1, DT_S32, "the offset");
  ir_rule_want_scalar(c, 2, DT_S32, "the valid count");
  ir_rule_want_scalar(c, 3, DT_BOOL, "the mask");
}

static bool is_groups(const struct ir_check *c, const struct ir_res *pipe) {
  return !ir_pipe_has_barriers(c->m, pipe);
}

void ir_rule_pipe_commit(struct ir_check *c) {
  if (!is_groups(c, ir_rule_res(c, 0)))
    ir_rule_fail(c, "the pipe has mbarriers; groups of copies are of the kinds cp_async, staged");
}

void ir_rule_pipe_wait(struct ir_check *c) {
  int64_t pending = ir_attr_int(c->m, c->op, IR_ATTR_pending, 0);
  int64_t slots = ir_res_int(ir_rule_res(c, 0), IR_ATTR_slots, 1);
  if (!is_groups(c, ir_rule_res(c, 0)))
    ir_rule_fail(c, "the pipe has mbarriers; groups of copies are of the kinds cp_async, staged");
  if (pending < 0 || pending >= slots)
    ir_rule_fail(c, "leaves %lld groups open in a pipe of %lld slots", (long long)pending,
                 (long long)slots);
}

/* That it names no resources is all: the table says so. */
void ir_rule_barrier(struct ir_check *c) {
  (void)c;
}

void ir_rule_ldmatrix(struct ir_check *c) {
  int64_t num = ir_attr_int(c->m, c->op, IR_ATTR_num, 0);
  int64_t trans = ir_attr_int(c->m, c->op, IR_ATTR_trans, 0);
  if (num != 1 && num != 2 && num != 4)
    ir_rule_fail(c, "loads %lld matrices; it must be 1, 2 or 4", (long long)num);
  if (trans != 0 && trans != 1)
    ir_rule_fail(c, "trans is %lld; it must be 0 or 1", (long long)trans);
  enum dtype t = (enum dtype)ir_rule_res(c, 0)->type.dtype;
  uint32_t bits = dtype_bits(t);
  if (bits < 8 || bits > (trans ? 16 : 32) || t == DT_BOOL || t != ir_rule_res(c, 1)->type.dtype)
    ir_rule_fail(c, "moves elements of one dtype of %s bits, not %s from %s",
                 trans ? "8 or 16" : "8, 16 or 32", dtype_name(t),
                 dtype_name((enum dtype)ir_rule_res(c, 1)->type.dtype));
  ir_rule_want_scalar(c, 0, DT_S32, "the offset");
  ir_rule_check_index(c, 1, ir_rule_res(c, 0), num * 32 / (bits < 8 ? 8 : bits > 32 ? 32 : bits));
}

void ir_rule_mma(struct ir_check *c) {
  const struct ir_attr *shape = ir_get_attr(c->m, c->op, IR_ATTR_shape);
  enum dtype d = (enum dtype)ir_rule_res(c, 0)->type.dtype,
             a = (enum dtype)ir_rule_res(c, 1)->type.dtype,
             b = (enum dtype)ir_rule_res(c, 2)->type.dtype;
  const struct ir_mma *x = ir_mma_find(d, a, b);
  if (!x) {
    ir_rule_fail(c, "no instruction multiplies %s and %s into %s", dtype_name(a), dtype_name(b),
                 dtype_name(d));
    return;
  }
  if (!shape || strcmp(ir_sym(c->m, shape->s), x->shape) != 0)
    ir_rule_fail(c, "shape must be %s for %s and %s into %s", x->shape, dtype_name(a),
                 dtype_name(b), dtype_name(d));
  ir_rule_check_index(c, 0, ir_rule_res(c, 0), ir_mma_elems(x, 2));
  ir_rule_check_index(c, 1, ir_rule_res(c, 1), ir_mma_elems(x, 0));
  ir_rule_check_index(c, 2, ir_rule_res(c, 2), ir_mma_elems(x, 1));
}

void ir_rule_unzip(struct ir_check *c) {
  int64_t count = ir_attr_int(c->m, c->op, IR_ATTR_count, 0);
  enum dtype t = (enum dtype)ir_rule_res(c, 0)->type.dtype;
  if (count != 8 && count != 16)
    ir_rule_fail(c, "count is %lld; it must be 8 or 16", (long long)count);
  if (dtype_bits(t) != 8 || t == DT_BOOL)
    ir_rule_fail(c, "moves 8-bit elements, not %s", dtype_name(t));
  ir_rule_check_index(c, 0, ir_rule_res(c, 0), count);
}

void ir_rule_tf32(struct ir_check *c) {
  struct ir_type_text a;
  if (!ir_rule_is_scalar(in(c, 0), DT_F32) || !ir_rule_is_scalar(out(c, 0), DT_F32))
    ir_rule_fail(c, "takes f32 to f32, not %s", ir_type_text(in(c, 0), &a));
}

void ir_rule_shuffle(struct ir_check *c) {
  struct ir_type_text a;
  int64_t mask = ir_attr_int(c->m, c->op, IR_ATTR_mask, 0);
  if (mask < 1 || mask > 31)
    ir_rule_fail(c, "mask is %lld; it must be 1..31", (long long)mask);
  if (in(c, 0).kind != IR_SCALAR || !ir_type_eq(in(c, 0), out(c, 0)))
    ir_rule_fail(c, "takes a scalar to a scalar of its dtype, not %s", ir_type_text(in(c, 0), &a));
}

void ir_rule_gprint(struct ir_check *c) {
  struct ir_type_text a;
  if (c->n->n_in < 1) {
    ir_rule_fail(c, "takes a mask and scalars");
    return;
  }
  ir_rule_want_scalar(c, 0, DT_BOOL, "the mask");
  for (uint32_t i = 1; i < c->n->n_in; i++)
    if (in(c, i).kind != IR_SCALAR)
      ir_rule_fail(c, "operand %u must be a scalar, not %s", i + 1, ir_type_text(in(c, i), &a));
  const char *s = ir_sym(c->m, ir_get_attr(c->m, c->op, IR_ATTR_message)->s);
  uint32_t n = 0;
  for (; (s = strstr(s, "{}")) != NULL; s += 2)
    n++;
  if (n < c->n->n_in - 1u)
    ir_rule_fail(c, "prints %u scalars with %u `{}` in its message", c->n->n_in - 1u, n);
}

void ir_rule_check(struct ir_check *c) {
  ir_rule_want_scalar(c, 0, DT_BOOL, "the condition");
}
