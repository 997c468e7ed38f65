/* Bitcasts: elements to their bits and back.
 *
 * Where the widths differ, the parts of one wide element are neighbours in one thread: the layout
 * of the narrow tile is the wide one's, refined (cg_layout_refine). So register r of the narrow
 * tile is part r % f of register r / f of the wide one, low bits first, and nothing moves. */
#include "codegen/lower.h"

#include "base/check.h"

/* The integer type in which bits of a dtype are shifted. */
static enum dtype word_of(enum dtype t) {
  return dtype_bits(t) > 32 ? DT_S64 : DT_S32;
}

static struct ir_val to_bits(struct lower *l, struct ir_val v, enum dtype word) {
  if (ir_type_of(l->m, v).dtype == word)
    return v;
  return ir_build1(&l->b, IR_TO_BITS, ir_scalar(word), 1, &v);
}

static struct ir_val from_bits(struct lower *l, struct ir_val v, enum dtype t) {
  if (ir_type_of(l->m, v).dtype == t)
    return v;
  return ir_build1(&l->b, IR_FROM_BITS, ir_scalar(t), 1, &v);
}

struct ir_val cg_bitcast(struct lower *l, struct ir_val v, enum dtype to) {
  enum dtype from = (enum dtype)ir_type_of(l->m, v).dtype;
  return from == to ? v : from_bits(l, to_bits(l, v, word_of(from)), to);
}

/* Part r % f of a wide element. */
static struct ir_val part(struct lower *l, struct ir_val in, enum dtype to, struct ir_val r,
                          uint32_t n, uint32_t f) {
  enum dtype word = word_of((enum dtype)ir_type_of(l->m, in).dtype);
  int64_t high[4] = {f, 0, n / f, 1}, low[4] = {f, dtype_bits(to), n / f, 0};
  struct ir_val x = cg_eval(l, in, cg_digits(l, r, 4, high), cg_layout_of(l, in));
  struct ir_val by = cg_cast(l, cg_digits(l, r, 4, low), word);
  return from_bits(l, cg_op2(l, IR_SHR, to_bits(l, x, word), by), to);
}

/* A wide element of f narrow ones. */
static struct ir_val whole(struct lower *l, struct ir_val in, enum dtype to, struct ir_val r,
                           uint32_t f) {
  enum dtype word = word_of(to), from = (enum dtype)ir_type_of(l->m, in).dtype;
  struct ir_val sum = cg_int(l, word, 0), first = cg_muli(l, r, f);
  for (uint32_t j = 0; j < f; j++) {
    struct ir_val x = cg_eval(l, in, cg_addi(l, first, j), cg_layout_of(l, in));
    struct ir_val by = cg_int(l, word, (int64_t)j * dtype_bits(from));
    /* Of 32 bits in a word of 64 the sign must not spread: to_bits it is, not a cast. */
    x = ir_build1(&l->b, IR_TO_BITS, ir_scalar(word), 1, &x);
    sum = cg_op2(l, IR_OR, sum, cg_op2(l, IR_SHL, x, by));
  }
  return from_bits(l, sum, to);
}

struct ir_val cg_eval_bitcast(struct lower *l, struct ir_op o, struct ir_val r, uint32_t layout) {
  struct ir_val in = ir_op_at(l->m, o)->in[0];
  enum dtype from = (enum dtype)ir_type_of(l->m, in).dtype;
  enum dtype to = (enum dtype)ir_type_of(l->m, ir_op_at(l->m, o)->out[0]).dtype;
  uint32_t wide = dtype_bits(from), narrow = dtype_bits(to);
  KILN_ASSERT(layout == cg_layout_of(l, ir_op_at(l->m, o)->out[0]));
  if (wide == narrow)
    return cg_bitcast(l, cg_eval(l, in, r, cg_layout_of(l, in)), to);
  if (wide > narrow)
    return part(l, in, to, r, layout_extent(cg_layout_at(l, layout), LAYOUT_REG), wide / narrow);
  return whole(l, in, to, r, narrow / wide);
}
