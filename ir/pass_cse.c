/* Common subexpressions: an op that computes what an op before it computed, where that one's
 * results are visible, gives way to it. Pure ops without blocks only, by value numbering in one
 * walk.
 *
 * The table of available ops is a hash table whose entries form a stack: those of a block are taken
 * off at its end, as its values are not visible after it. */
#include "base/check.h"
#include "base/hash.h"
#include "ir/passes.h"
#include "ir/rules.h"

#include <string.h>

struct entry {
  uint64_t hash;
  struct ir_op op;
  uint32_t next; /* entry of the same bucket, older; 0 = none */
};

struct cse {
  struct ir_module *m;
  struct arena *scratch;
  uint32_t *subst; /* value -> value that replaces it, 0 = itself */
  uint32_t *buckets;
  uint32_t mask;
  VEC(struct entry) entries; /* 0 is a placeholder */
  bool changed;
};

static bool is_candidate(const struct ir_opnode *n) {
  return (ir_info(n->opcode)->traits & IR_PURE) && !n->n_blocks && n->n_out;
}

/* The operands in an order that does not depend on how a commutative op was written. */
static struct ir_val operand(const struct ir_opnode *n, uint32_t i) {
  bool swap = (ir_info(n->opcode)->traits & IR_COMMUTES) && n->in[0].id > n->in[1].id;
  return n->in[swap && i < 2 ? 1 - i : i];
}

static uint64_t hash_attr(uint64_t h, const struct ir_attr *a) {
  uint64_t bits;
  memcpy(&bits, &a->f, sizeof bits);
  h = hash_mix(h, a->key);
  h = hash_mix(h, (uint64_t)a->i);
  h = hash_mix(h, bits);
  h = hash_mix(h, (uint64_t)a->s.id << 32 | a->e.id);
  for (uint32_t i = 0; i < a->n_ints; i++)
    h = hash_mix(h, (uint64_t)a->ints[i]);
  return h;
}

static uint64_t hash_op(const struct ir_module *m, const struct ir_opnode *n) {
  uint64_t h = hash_mix((uint64_t)n->opcode, n->n_in);
  for (uint32_t i = 0; i < n->n_in; i++)
    h = hash_mix(h, operand(n, i).id);
  for (uint32_t i = 0; i < n->n_attrs; i++)
    h = hash_attr(h, &n->attrs[i]);
  struct ir_type t = ir_type_of(m, n->out[0]);
  h = hash_mix(h, (uint64_t)t.kind << 16 | (uint64_t)t.dtype << 8 | t.rank);
  for (uint32_t i = 0; i < t.rank; i++)
    h = hash_mix(h, (uint64_t)t.dim[i]);
#ifdef KILN_STRESS
  h &= 3; /* forced collisions */
#endif
  return h;
}

static bool same_attr(const struct ir_attr *a, const struct ir_attr *b) {
  return a->key == b->key && a->i == b->i && memcmp(&a->f, &b->f, sizeof a->f) == 0 &&
         a->s.id == b->s.id && a->dtype == b->dtype && a->e.id == b->e.id &&
         a->n_ints == b->n_ints &&
         (!a->n_ints || memcmp(a->ints, b->ints, a->n_ints * sizeof *a->ints) == 0);
}

static bool same_op(const struct ir_module *m, const struct ir_opnode *a,
                    const struct ir_opnode *b) {
  if (a->opcode != b->opcode || a->n_in != b->n_in || a->n_out != b->n_out ||
      a->n_attrs != b->n_attrs || a->n_res != b->n_res)
    return false;
  if (a->sched.role_mask != b->sched.role_mask || a->sched.stage != b->sched.stage)
    return false;
  for (uint32_t i = 0; i < a->n_in; i++)
    if (operand(a, i).id != operand(b, i).id)
      return false;
  for (uint32_t i = 0; i < a->n_res; i++)
    if (a->res[i] != b->res[i])
      return false;
  for (uint32_t i = 0; i < a->n_attrs; i++)
    if (!same_attr(&a->attrs[i], &b->attrs[i]))
      return false;
  for (uint32_t i = 0; i < a->n_out; i++) {
    const struct ir_value *x = ir_value_at(m, a->out[i]), *y = ir_value_at(m, b->out[i]);
    if (!ir_type_eq(x->type, y->type) || x->layout != y->layout)
      return false;
  }
  return true;
}

/* An available op that computes the same, or 0; then the op itself becomes available. */
static struct ir_op find_or_add(struct cse *c, struct ir_op o) {
  const struct ir_opnode *n = ir_op_at(c->m, o);
  uint64_t h = hash_op(c->m, n);
  uint32_t *bucket = &c->buckets[h & c->mask];
  for (uint32_t e = *bucket; e; e = c->entries.at[e].next)
    if (c->entries.at[e].hash == h && same_op(c->m, ir_op_at(c->m, c->entries.at[e].op), n))
      return c->entries.at[e].op;
  struct entry added = {h, o, *bucket};
  *bucket = c->entries.n;
  VEC_PUSH(c->scratch, &c->entries, added);
  return (struct ir_op){0};
}

static void replace(struct cse *c, struct ir_op o, struct ir_op by) {
  const struct ir_opnode *n = ir_op_at(c->m, o), *k = ir_op_at(c->m, by);
  for (uint32_t i = 0; i < n->n_out; i++) {
    c->subst[n->out[i].id] = k->out[i].id;
    struct ir_value *kept = ir_value_at(c->m, k->out[i]);
    if (!kept->name.id)
      kept->name = ir_value_at(c->m, n->out[i])->name;
  }
  ir_remove(c->m, o);
  c->changed = true;
}

static void visit_block(struct cse *c, struct ir_block b, uint32_t depth) {
  KILN_ASSERT(depth <= IR_MAX_DEPTH);
  uint32_t first = c->entries.n;
  for (struct ir_op o = ir_block_at(c->m, b)->first, next; o.id; o = next) {
    struct ir_opnode *n = ir_op_at(c->m, o);
    next = n->next;
    for (uint32_t i = 0; i < n->n_in; i++)
      if (c->subst[n->in[i].id])
        n->in[i].id = c->subst[n->in[i].id];
    struct ir_op known = is_candidate(n) ? find_or_add(c, o) : (struct ir_op){0};
    if (known.id)
      replace(c, o, known);
    for (uint32_t i = 0; i < n->n_blocks; i++)
      visit_block(c, n->blocks[i], depth + 1);
  }
  while (c->entries.n > first) {
    struct entry e = VEC_POP(&c->entries);
    c->buckets[e.hash & c->mask] = e.next;
  }
}

bool ir_pass_cse(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  struct cse c = {.m = m, .scratch = ctx->scratch, .mask = 63};
  while (c.mask < m->ops.n)
    c.mask = c.mask * 2 + 1;
  c.buckets = ARENA_ARRAY(ctx->scratch, uint32_t, c.mask + 1);
  c.subst = ARENA_ARRAY(ctx->scratch, uint32_t, m->values.n);
  VEC_PUSH(ctx->scratch, &c.entries, (struct entry){0});
  visit_block(&c, m->body, 0);
  *changed = c.changed;
  return true;
}
