/* The interpreter's frame: memory, the grid, and what each program starts with; see interp.h. */
#include "ir/interp_impl.h"

#include "base/check.h"
#include "base/num.h"

#include <string.h>

struct interp_tensor interp_dense(void *data, enum dtype t, uint32_t rank, const int64_t *dim) {
  struct interp_tensor r = {.data = data, .dtype = t, .rank = rank};
  uint64_t s = 1; /* of dims that no memory could have, strides wrap; binding refuses the tensor */
  for (uint32_t k = rank; k-- > 0;) {
    r.dim[k] = dim[k];
    r.stride[k] = (int64_t)s;
    s *= (uint64_t)dim[k];
  }
  return r;
}

/* A permutation of [0, n) that needs no memory: a Feistel network over the next even number of
 * bits, walked until it lands inside. */
static uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= UINT64_C(0xbf58476d1ce4e5b9);
  x ^= x >> 27;
  x *= UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

static uint64_t permute(uint64_t i, uint64_t n, uint64_t seed) {
  unsigned half = 1;
  while (half < 32 && UINT64_C(1) << (2 * half) < n)
    half++;
  uint64_t mask = (UINT64_C(1) << half) - 1;
  do {
    uint64_t left = i >> half, right = i & mask;
    for (uint64_t round = 1; round <= 4; round++) {
      uint64_t next = left ^ (mix(right + seed * 0x9e3779b97f4a7c15 + round) & mask);
      left = right;
      right = next;
    }
    i = left << half | right;
  } while (i >= n);
  return i;
}

/* The values that every program starts from: views, scalars and dims. */
static void set_entry(struct interp *in, const struct interp_arg *args) {
  const struct ir_module *m = in->m;
  const struct ir_blocknode *body = ir_block_at(m, m->body);
  uint32_t next = 0;
  for (uint32_t k = 0; k < m->args.n; k++) {
    const struct ir_arg *a = &m->args.at[k];
    if (!a->present)
      continue;
    struct ir_val v = body->args.at[next++];
    if (a->kind != IR_ARG_SCALAR) {
      interp_set_view(in, v, k);
      continue;
    }
    void *o = val_buf(in, v);
    switch (cell_of(in, a->dtype)) {
    case CELL_FLOAT: *(float *)o = (float)num_round(a->dtype, args[k].f); break;
    case CELL_DOUBLE: *(double *)o = num_round(a->dtype, args[k].f); break;
    case CELL_INT: *(int64_t *)o = args[k].i; break;
    case CELL_BOOL: *(uint8_t *)o = args[k].i != 0; break;
    case CELL_PAYLOAD: *(int64_t *)o = interp_embed(num_round(a->dtype, args[k].f)); break;
    }
  }
  for (uint32_t d = 0; d < m->dims.n; d++)
    *(int64_t *)val_buf(in, body->args.at[next++]) = in->dims[d];
  KILN_ASSERT(next + m->n_grid == body->args.n);
}

void interp_run_program(struct interp *in, uint64_t i, uint64_t n) {
  const struct ir_blocknode *body = ir_block_at(in->m, in->m->body);
  uint64_t p = in->opt.grid_seed ? permute(i, n, in->opt.grid_seed) : i;
  in->program = (uint32_t)(p + 1); /* a serial only where races are checked: then it fits */
  if (!in->program)
    in->program = 1;
  for (uint32_t k = 0; k < in->m->n_grid; k++) {
    in->at[k] = (int64_t)(p % (uint64_t)in->grid[k]);
    p /= (uint64_t)in->grid[k];
    *(int64_t *)val_buf(in, body->args.at[body->args.n - in->m->n_grid + k]) = in->at[k];
  }
  if (in->order)
    interp_order_program(in);
  in->cut_state = mix(in->opt.cut_seed + i);
  interp_exec_body(in);
}

static void run_programs(struct interp *in) {
  uint64_t n = 1;
  for (uint32_t k = 0; k < IR_MAX_GRID; k++)
    n *= (uint64_t)in->grid[k];
  for (uint64_t i = 0; i < n && !in->stopped; i++) {
    if (interp_run_parallel(in, i, n))
      break;
    interp_run_program(in, i, n);
  }
  if (in->n_races > INTERP_MAX_RACES)
    diag_report(in->diags, DIAG_ERROR, DIAG_RACE, DIAG_NOWHERE,
                "%llu conflicting accesses in all; the first %d are shown",
                (unsigned long long)in->n_races, INTERP_MAX_RACES);
  if (in->n_unwritten > 1)
    diag_report(in->diags, DIAG_ERROR, DIAG_UNWRITTEN, DIAG_NOWHERE,
                "%llu elements were read in all before anything had written them; the first that "
                "each op read is shown",
                (unsigned long long)in->n_unwritten);
}

/* Where the watched element is; a tensor without it has none to watch. */
static void begin_watch(struct interp *in) {
  struct interp_watch *w = in->opt.watch;
  struct interp_bound *b = &in->bound[w->arg];
  w->found = false;
  b->watched = b->t.data != NULL;
  in->watched_at = b->t.offset;
  for (uint32_t k = 0; k < b->t.rank; k++) {
    in->watched_at += w->coord[k] * b->t.stride[k];
    b->watched = b->watched && w->coord[k] >= 0 && w->coord[k] < b->t.dim[k];
  }
  in->serial = true;
}

void interp_note_watched(struct interp *in, struct ir_op o, int64_t element, int64_t cell) {
  struct interp_watch *w = in->opt.watch;
  if (element != in->watched_at)
    return;
  w->found = true;
  w->op = o;
  w->cell = cell;
  w->n_loops = in->depth;
  memcpy(w->program, in->at, sizeof w->program);
  memcpy(w->iteration, in->iteration, sizeof w->iteration);
}

static void mark_stored(void *user, struct ir_module *m, struct ir_op o) {
  struct interp *in = user;
  uint32_t arg;
  if ((ir_info(ir_op_at(m, o)->opcode)->traits & IR_WRITES) &&
      ir_view_arg(m, ir_op_at(m, o)->in[0], &arg))
    in->bound[arg].stored = true;
  if (in->opt.check_races && !in->order && ir_get_attr(m, o, IR_ATTR_sem))
    interp_order_begin(in);
}

struct run {
  struct interp in;
  const struct interp_arg *args;
  uint32_t n_args;
  bool ok;
};

static void run(void *user) {
  struct run *r = user;
  struct interp *in = &r->in;
  if (in->opt.cut_seed)
    interp_cut_begin(in);
  if (!interp_bind(in, r->args, r->n_args))
    return;
  if (in->opt.domain == INTERP_ALGEBRAIC && !interp_algebra_begin(in))
    return;
  interp_plan(in);
  if (in->opt.cut_seed)
    interp_cut_prepare(in);
  /* The walk hands out a module that may be changed; this one does not. */
  ir_walk((struct ir_module *)(uintptr_t)in->m, in->m->body, mark_stored, in);
  for (uint32_t k = 0; k < in->m->args.n; k++) {
    const struct ir_arg *arg = &in->m->args.at[k];
    struct interp_bound *b = &in->bound[k];
    bool unset = arg->kind == IR_ARG_OUT || (arg->kind == IR_ARG_SCRATCH && !arg->zero);
    b->unset = in->opt.check_races && in->opt.check_unwritten && unset;
    b->tracked = in->opt.check_races && (b->stored || b->unset);
  }
  if (in->opt.watch)
    begin_watch(in);
  interp_threads_prepare(in);
  set_entry(in, r->args);
  run_programs(in);
  r->ok = !in->stopped && !in->n_races && !in->n_unwritten;
}

bool interp_run(const struct ir_module *m, const struct interp_arg *args, uint32_t n_args,
                const struct interp_options *opt, struct diag_sink *diags,
                const struct mem_alloc *mem) {
  KILN_ASSERT(m->stage != IR_MACHINE_STAGE);
  struct arena arena;
  arena_init(&arena, mem, NULL);
  struct run r = {
      .in = {.m = m, .opt = *opt, .diags = diags, .arena = &arena}, .args = args, .n_args = n_args};
  if (!arena_guard(&arena, run, &r)) {
    diag_report(diags, DIAG_ERROR, DIAG_NO_MEMORY, DIAG_NOWHERE,
                "out of memory while interpreting kernel '%s'", ir_sym(m, m->kernel));
    r.ok = false;
  }
  arena_free(&arena);
  return r.ok;
}
