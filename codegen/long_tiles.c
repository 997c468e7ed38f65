/* Whether the long tiles of a kernel are computed again, or loaded, where they are read: the rule
 * of the knob `recompute`. See pass.h.
 *
 * Compilers compute a tile once and keep it, in 32 bits an element, until its last reader is done;
 * what a later reader loads they load with the rest. For a row of a softmax or a norm, of elements
 * of 16 bits, that is twice the registers of the row as it was loaded, and those of the weights.
 * What they take beside tiles is much the same everywhere. Registers of a thread by this sum, and
 * as compiled with up to 128 (tiles of 32 and of 64 elements of bf16 a thread, sm_90a):
 *                32           64
 *   softmax    58    56     90   128
 *   rmsnorm    74    71    122   121
 *   layernorm  90    90    154   128 */
#include "codegen/pass.h"
#include "codegen/schedule.h"

struct long_tiles {
  struct ir_module *m;
  struct arena *scratch;
  struct cg_uses uses;
  VEC(struct ir_op) ops;
  bool plain; /* accesses of more than one element a thread are wide, and none selects */
  /* Registers of a thread for what several ops read as it was loaded (kept) and for the largest of
   * these in 32 bits an element (wide), and for what one op reads (once). */
  int64_t kept, wide, once;
  int64_t elems; /* of a thread in the largest tile */
};

/* Which op reads a tile, behind what is computed element by element: one, or several. */
struct reader {
  struct ir_op op;
  bool several;
};

static void list_op(void *user, struct ir_module *m, struct ir_op o) {
  struct long_tiles *x = user;
  (void)m;
  VEC_PUSH(x->scratch, &x->ops, o);
}

static bool passes_on(enum ir_opcode c) {
  return cg_is_elementwise(c) || c == IR_BROADCAST || c == IR_TRANSPOSE || c == IR_RESHAPE;
}

/* Of each value; users come after what they use, so from the last op to the first. */
static struct reader *find_readers(struct long_tiles *x) {
  struct ir_module *m = x->m;
  struct reader *of = ARENA_ARRAY(x->scratch, struct reader, m->values.n);
  for (uint32_t k = x->ops.n; k-- > 0;) {
    const struct ir_opnode *n = ir_op_at(m, x->ops.at[k]);
    for (uint32_t r = 0; r < n->n_out; r++)
      for (uint32_t i = x->uses.first[n->out[r].id]; i; i = x->uses.list.at[i].next) {
        struct ir_op user = x->uses.list.at[i].op;
        struct reader next = {user, false}, *mine = &of[n->out[r].id];
        if (passes_on(ir_op_at(m, user)->opcode))
          next = of[ir_op_at(m, user)->out[0].id];
        mine->several = mine->several || next.several ||
                        (mine->op.id && next.op.id && mine->op.id != next.op.id);
        mine->op = next.op.id ? next.op : mine->op;
      }
  }
  return of;
}

static void add_access(struct long_tiles *x, struct ir_op o, int64_t threads,
                       const struct reader *readers) {
  struct ir_module *m = x->m;
  const struct ir_opnode *n = ir_op_at(m, o);
  bool load = n->opcode == IR_LOAD;
  struct ir_val v = load ? n->out[0] : n->in[n->n_in - 1u];
  int64_t bytes = dtype_bytes((enum dtype)ir_type_of(m, v).dtype, 1);
  int64_t elems = (ir_elems(ir_type_of(m, v)) + threads - 1) / threads;
  int64_t regs = (elems * bytes + 3) / 4, wide = elems * (bytes > 4 ? bytes / 4 : 1);
  x->plain = x->plain && (elems == 1 || ir_attr_int(m, o, IR_ATTR_vec, 1) * bytes >= 8);
  x->elems = elems > x->elems ? elems : x->elems;
  if (!load)
    return;
  if (!readers[v.id].several) {
    x->once += regs;
  } else {
    x->kept += regs;
    x->wide = wide > x->wide ? wide : x->wide;
  }
}

/* Threads of an SM that compilers leave room for, with so many registers each. */
static int64_t resident(const struct cg_target *t, int64_t threads, int64_t regs) {
  regs = (regs + 7) / 8 * 8;
  return t->regs_per_sm / (threads * regs) * threads;
}

bool cg_wants_recompute(struct ir_module *m, struct arena *scratch, int64_t threads) {
  const struct cg_target *t = cg_target_of(m);
  int64_t have = t->regs_per_sm / CG_BUSY_THREADS, most = t->regs_per_sm / threads;
  struct long_tiles x = {.m = m, .scratch = scratch, .plain = true};
  ir_walk(m, m->body, list_op, &x);
  x.uses = cg_collect_uses(m, scratch);
  const struct reader *readers = find_readers(&x);
  for (uint32_t i = 0; i < x.ops.n; i++) {
    enum ir_opcode c = ir_op_at(m, x.ops.at[i])->opcode;
    if (c == IR_LOAD || c == IR_STORE)
      add_access(&x, x.ops.at[i], threads, readers);
    x.plain = x.plain && !cg_takes_indices(c);
  }
  int64_t regs = x.kept + x.once + CG_ROOM_REGS;
  bool fits = regs <= have && x.elems <= have / 2;
  bool helps = x.kept + CG_ROOM_REGS <= have || regs > most;
  return x.plain && x.wide >= CG_LONG_TILE && !fits && helps &&
         2 * resident(t, threads, x.wide + x.once + CG_ROOM_REGS) <= CG_BUSY_THREADS;
}
