/* Gives every buffer its place in shared memory.
 *
 * Before: machine IR whose buffers have `bytes` and `align`. After: each has an `offset`; buffers
 * whose lives do not overlap may share bytes; the recipe knows the total. A buffer lives from its
 * first to its last access; one that is touched inside a loop lives as long as the outermost loop
 * around the touch that does not hold the whole life. Places are given in order of first access,
 * lowest fitting offset first. Barriers between buffers that share bytes come with the next
 * pass. */
#include "base/check.h"
#include "codegen/pass.h"
#include "codegen/recipe.h"
#include "ir/resource.h"

struct life {
  uint32_t res;
  int64_t first, last; /* positions in the walk */
  int64_t bytes, align, offset;
  bool placed;
};

struct walk {
  struct arena *a;
  struct life *life; /* per resource */
  int64_t position;
};

int64_t cg_res_int(const struct ir_res *r, enum ir_attr_key key, int64_t otherwise) {
  for (uint32_t i = 0; i < r->n_attrs; i++)
    if (r->attrs[i].key == key)
      return r->attrs[i].i;
  return otherwise;
}

void cg_res_set_int(struct ir_module *m, uint32_t res, enum ir_attr_key key, int64_t value) {
  struct ir_res *r = &m->res.at[res];
  struct ir_attr *attrs = arena_get(m->arena, (r->n_attrs + 1u) * sizeof *attrs);
  uint32_t n = 0;
  bool done = false;
  /* Sorted by key, as ir_add_res leaves them. */
  for (uint32_t i = 0; i <= r->n_attrs; i++) {
    if (!done && (i == r->n_attrs || r->attrs[i].key >= key)) {
      attrs[n++] = (struct ir_attr){.key = key, .i = value};
      done = true;
      if (i < r->n_attrs && r->attrs[i].key == key)
        continue;
    }
    if (i < r->n_attrs)
      attrs[n++] = r->attrs[i];
  }
  r->attrs = attrs;
  r->n_attrs = (uint16_t)n;
}

static bool is_loop(enum ir_opcode o) {
  return o == IR_FOR || o == IR_WHILE;
}

static void walk_block(struct walk *w, struct ir_module *m, struct ir_block b) {
  IR_EACH_OP (m, b, o) {
    const struct ir_opnode *n = ir_op_at(m, o);
    int64_t start = ++w->position;
    for (uint32_t i = 0; i < n->n_res; i++) {
      struct life *x = &w->life[n->res[i]];
      if (!x->res)
        x->first = start;
      x->res = n->res[i];
      x->last = start;
    }
    for (uint32_t i = 0; i < n->n_blocks; i++)
      walk_block(w, m, n->blocks[i]);
    int64_t end = ++w->position;
    if (!is_loop(n->opcode))
      continue;
    /* What is written in one iteration may be read in the next: the whole loop. */
    for (uint32_t r = 1; r < m->res.n; r++) {
      struct life *x = &w->life[r];
      if (x->res && x->last >= start) {
        x->first = x->first < start ? x->first : start;
        x->last = end;
      }
    }
  }
}

static bool overlaps(const struct life *a, const struct life *b) {
  return a->first <= b->last && b->first <= a->last;
}

/* The lowest aligned offset at which x meets no living neighbour. */
static int64_t place(const struct life *x, const struct life *all, uint32_t n) {
  int64_t at = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t i = 0; i < n; i++) {
      const struct life *y = &all[i];
      if (!y->placed || !overlaps(x, y) || at >= y->offset + y->bytes || y->offset >= at + x->bytes)
        continue;
      at = (y->offset + y->bytes + x->align - 1) / x->align * x->align;
      moved = true;
    }
  }
  return at;
}

bool cg_pass_place_storage(struct ir_module *m, struct ir_pass_ctx *ctx, bool *changed) {
  struct walk w = {.a = ctx->scratch, .life = ARENA_ARRAY(ctx->scratch, struct life, m->res.n)};
  int64_t total = 0;
  walk_block(&w, m, m->body);
  for (;;) {
    struct life *next = NULL;
    for (uint32_t r = 1; r < m->res.n; r++) {
      struct life *x = &w.life[r];
      if (m->res.at[r].kind == IR_RES_BUF && x->res && !x->placed &&
          (!next || x->first < next->first))
        next = x;
    }
    if (!next)
      break;
    next->bytes = cg_res_int(&m->res.at[next->res], IR_ATTR_bytes, 0);
    next->align = cg_res_int(&m->res.at[next->res], IR_ATTR_align, 16);
    next->offset = place(next, w.life, m->res.n);
    next->placed = true;
    cg_res_set_int(m, next->res, IR_ATTR_offset, next->offset);
    total = next->offset + next->bytes > total ? next->offset + next->bytes : total;
  }
  /* Mbarriers, two a slot, live as long as the kernel. */
  for (uint32_t r = 1; r < m->res.n; r++) {
    if (m->res.at[r].kind != IR_RES_PIPE || !ir_pipe_has_barriers(m, &m->res.at[r]))
      continue;
    total = (total + 7) / 8 * 8;
    cg_res_set_int(m, r, IR_ATTR_offset, total);
    total += 16 * cg_res_int(&m->res.at[r], IR_ATTR_slots, 1);
  }
  /* The budget pass refuses what is too large, with the sum; keep the value in range until then. */
  cg_kernel_step(m)->smem_bytes = total > UINT32_MAX ? UINT32_MAX : (uint32_t)total;
  *changed = true;
  return true;
}
