/* The op that a difference comes from: the one whose value differs although what it is made of does
 * not.
 *
 * One value of one program and iteration at a time becomes an output (ir/tap.h) on both sides. The
 * search is algorithmic debugging by divide and query over the values that the bad one is made of:
 * a value that differs becomes the bad one, a value that agrees takes what only it is made of out
 * of suspicion, and each question halves the suspects as well as it can. Nothing is assumed about
 * how a difference spreads. Through a loop the search goes by bisection over its iterations:
 * between a carried value that agrees and one that differs there is an iteration that makes the
 * difference.
 *
 * A tap changes the schedule. Where the outputs agree once a value is tapped, its agreeing says
 * nothing: it stays unseen, as does a value that cannot be tapped. */
#include "api/diff.h"

#include "base/bitset.h"

#include <string.h>

#define MAX_QUESTIONS 400
#define MANY_SUSPECTS 1500 /* more are not weighed one by one */

enum sight { UNSEEN, GOOD, BAD, HIDDEN, BLIND };

/* What is bad: a value, or a store. */
struct suspect {
  struct ir_val v;
  struct ir_op store;
};

struct search {
  struct diff *d;
  const struct diff_search *s;
  const struct ir_module *m; /* got */
  struct arena *a;
  uint8_t *sight;     /* enum sight, by value */
  int64_t *iteration; /* by op: of a loop around */
  uint32_t questions;
  struct diff_element at; /* of the value found bad last */
  char blind[480];        /* why a value could not be seen */
};

/* ---- one question ---- */

/* Arguments with the tap's behind them. */
static void bind_tap(const struct search *x, const struct ir_module *m, const struct ir_tap *tap,
                     const int64_t *wanted, struct diff_job *job) {
  struct arena *a = x->d->a;
  struct api_arg *args = ARENA_ARRAY(a, struct api_arg, m->args.n + 1);
  double **inputs = ARENA_ARRAY(a, double *, m->args.n + 1);
  memcpy(args, job->args, job->n_args * sizeof *args);
  memcpy(inputs, job->inputs, job->n_args * sizeof *inputs);
  for (uint32_t i = job->n_args; i < m->args.n; i++) {
    const struct ir_arg *from = &m->args.at[i];
    struct api_arg *arg = &args[i];
    arg->name = ir_sym(m, from->name);
    arg->kind = from->kind;
    arg->dtype = from->dtype;
    arg->rank = from->rank;
    arg->absent = from->kind == IR_ARG_SCRATCH; /* of a pass: made by the run */
    if (arg->absent)
      continue;
    if (from->kind == IR_ARG_SCALAR) {
      inputs[i] = ARENA_ARRAY(a, double, 1);
      inputs[i][0] = (double)wanted[i - tap->first];
    }
    int64_t stride = 1;
    for (uint32_t k = arg->rank; k-- > 0;) {
      const char *why;
      expr_eval(&m->exprs, from->dim[k], NULL, NULL, &arg->dim[k], &why);
      arg->stride[k] = stride;
      stride *= arg->dim[k];
    }
  }
  job->args = args;
  job->inputs = inputs;
  job->n_args = m->args.n;
}

/* A job on the module with the value tapped; false: it cannot be. */
static bool tapped_job(const struct search *x, const struct ir_module *from, struct ir_val v,
                       enum kiln_on on, struct ir_tap *tap, struct diff_job *job) {
  struct ir_module *m = ir_clone(from, x->d->a);
  int64_t wanted[IR_MAX_GRID + IR_TAP_LOOPS];
  struct ir_op around[IR_TAP_LOOPS];
  const struct ir_value *seen = ir_value_at(x->m, v);
  struct ir_block b = seen->def.id ? ir_op_at(x->m, seen->def)->block : seen->block;
  uint32_t n = ir_loops_around(x->m, b, around);
  if (from != x->m)
    v = x->s->pair ? x->s->pair[v.id] : v;
  if (!v.id || !ir_add_tap(m, v, tap) || tap->n_loops != n)
    return false;
  for (uint32_t i = 0; i < m->n_grid; i++)
    wanted[i] = x->s->place.program[i];
  for (uint32_t i = 0; i < n; i++)
    wanted[m->n_grid + i] = x->iteration[around[i].id];
  *job = diff_job_of(x->d, m, on);
  bind_tap(x, m, tap, wanted, job);
  return true;
}

/* Does the value differ, where and when the search is? */
static enum kiln_status ask(struct search *x, struct ir_val v, enum sight *out) {
  struct diff *d = x->d;
  struct arena_mark mark = arena_get_mark(d->a);
  struct ir_tap want_tap, got_tap;
  struct diff_job want_job, got_job;
  struct diff_values want = {0};
  struct diff_verdict verdict = {0};
  struct diff_element at;
  void **got;
  enum kiln_status st = KILN_OK;
  *out = BLIND;
  x->questions++;
  diff_step(d, "looking for the op");
  bool can = tapped_job(x, x->s->want, v, KILN_ON_INTERP, &want_tap, &want_job) &&
             tapped_job(x, x->m, v, x->s->on, &got_tap, &got_job);
  if (can)
    st = diff_expect(d, &want_job, &want, &verdict);
  can = can && st == KILN_OK && verdict.state == DIFF_SAME;
  if (can)
    st = diff_run(d, &got_job, &got, &verdict);
  can = can && st == KILN_OK && verdict.state == DIFF_SAME;
  uint32_t w = can ? want_tap.value : 0, g = can ? got_tap.value : 0; /* passes add arguments */
  if (can && !diff_compare_arg(d, &got_job.args[g], g, want.bits[w], want.exact[w], got[g], &at)) {
    *out = BAD;
    x->at = at;
  } else if (can) {
    /* As long as the outputs differ, too, the tap shows what the kernel does without it. */
    *out = diff_compare(d, &d->want, got, &at) ? HIDDEN : GOOD;
  } else if (st == KILN_OK && verdict.why[0]) {
    memcpy(x->blind, verdict.why, sizeof x->blind);
  }
  arena_reset(d->a, mark);
  return st;
}

static enum kiln_status look(struct search *x, struct ir_val v) {
  enum sight sight = BLIND;
  enum kiln_status st = KILN_OK;
  if (x->sight[v.id] != UNSEEN)
    return KILN_OK;
  if (x->questions < MAX_QUESTIONS)
    st = ask(x, v, &sight);
  x->sight[v.id] = (uint8_t)sight;
  return st;
}

/* ---- what a value is made of ---- */

typedef VEC(struct ir_val) val_list;

struct use_walk {
  const struct search *x;
  struct bitset *inside;
  val_list *out;
};

static void note_inside(void *user, struct ir_module *m, struct ir_op o) {
  struct use_walk *w = user;
  const struct ir_opnode *n = ir_op_at(m, o);
  for (uint32_t i = 0; i < n->n_out; i++)
    bitset_add(w->inside, n->out[i].id);
  for (uint32_t k = 0; k < n->n_blocks; k++) {
    const struct ir_blocknode *b = ir_block_at(m, n->blocks[k]);
    for (uint32_t i = 0; i < b->args.n; i++)
      bitset_add(w->inside, b->args.at[i].id);
  }
}

static void note_uses(void *user, struct ir_module *m, struct ir_op o) {
  struct use_walk *w = user;
  const struct ir_opnode *n = ir_op_at(m, o);
  for (uint32_t i = 0; i < n->n_in; i++)
    if (!bitset_has(w->inside, n->in[i].id))
      VEC_PUSH(w->x->a, w->out, n->in[i]);
}

/* Operands, and what nested blocks take from outside. */
static void list_op_parts(const struct search *x, struct ir_op o, val_list *out) {
  struct ir_module *m = (struct ir_module *)(uintptr_t)x->m;
  const struct ir_opnode *n = ir_op_at(m, o);
  for (uint32_t i = 0; i < n->n_in; i++)
    VEC_PUSH(x->a, out, n->in[i]);
  if (!n->n_blocks || n->opcode == IR_MERGE)
    return;
  struct bitset inside = bitset_new(x->a, m->values.n);
  struct use_walk w = {x, &inside, out};
  note_inside(&w, m, o);
  for (uint32_t k = 0; k < n->n_blocks; k++)
    ir_walk(m, n->blocks[k], note_inside, &w);
  for (uint32_t k = 0; k < n->n_blocks; k++)
    ir_walk(m, n->blocks[k], note_uses, &w);
}

static const struct ir_opnode *end_of(const struct ir_module *m, struct ir_block b) {
  return ir_op_at(m, ir_block_at(m, b)->last);
}

static void list_parts(const struct search *x, struct suspect s, val_list *out) {
  const struct ir_module *m = x->m;
  if (s.store.id) {
    list_op_parts(x, s.store, out);
    return;
  }
  const struct ir_value *v = ir_value_at(m, s.v);
  if (v->def.id && ir_op_at(m, v->def)->opcode == IR_MERGE) {
    VEC_PUSH(x->a, out, ir_op_at(m, v->def)->in[v->index]);
  } else if (v->def.id) {
    list_op_parts(x, v->def, out);
  } else {
    struct ir_op parent = ir_block_at(m, v->block)->parent;
    if (parent.id && ir_op_at(m, parent)->opcode == IR_WHILE &&
        ir_op_at(m, parent)->blocks[1].id == v->block.id)
      VEC_PUSH(x->a, out, end_of(m, ir_op_at(m, parent)->blocks[0])->in[1 + v->index]);
  }
}

static bool is_sure(const struct search *x, struct ir_val v) {
  const struct ir_value *value = ir_value_at(x->m, v);
  struct ir_op parent = value->def.id ? value->def : ir_block_at(x->m, value->block)->parent;
  if (value->def.id)
    return ir_op_at(x->m, value->def)->opcode == IR_CONST;
  return !parent.id || (ir_op_at(x->m, parent)->opcode == IR_FOR && value->index == 0);
}

/* All that the suspect is made of and that has not been seen to agree, itself left out. */
static void list_suspects(const struct search *x, struct suspect s, val_list *out) {
  struct bitset seen = bitset_new(x->a, x->m->values.n);
  val_list todo = {0};
  list_parts(x, s, &todo);
  while (todo.n) {
    struct ir_val v = todo.at[--todo.n];
    if (bitset_has(&seen, v.id) || x->sight[v.id] == GOOD || is_sure(x, v))
      continue;
    bitset_add(&seen, v.id);
    VEC_PUSH(x->a, out, v);
    list_parts(x, (struct suspect){.v = v}, &todo);
  }
}

static bool can_look(const struct search *x, struct ir_val v) {
  uint8_t kind = ir_type_of(x->m, v).kind;
  return x->sight[v.id] == UNSEEN && (kind == IR_TILE || kind == IR_SCALAR);
}

/* The value to ask for: about half of the suspects hang on it. */
static struct ir_val choose(const struct search *x, const val_list *suspects) {
  struct ir_val best = {0};
  uint32_t best_off = UINT32_MAX, open = 0, middle = 0;
  for (uint32_t i = 0; i < suspects->n; i++)
    open += can_look(x, suspects->at[i]);
  for (uint32_t i = 0; i < suspects->n; i++) {
    struct ir_val v = suspects->at[i];
    if (!can_look(x, v))
      continue;
    uint32_t weight = middle++;
    if (open <= MANY_SUSPECTS) {
      struct arena_mark mark = arena_get_mark(x->a);
      val_list under = {0};
      list_suspects(x, (struct suspect){.v = v}, &under);
      weight = under.n + 1;
      arena_reset(x->a, mark);
    }
    uint32_t off = 2 * weight > suspects->n ? 2 * weight - suspects->n : suspects->n - 2 * weight;
    if (off < best_off) {
      best = v;
      best_off = off;
    }
  }
  return best;
}

/* Moves to the suspect of whose parts none is seen to differ; *left: those that could not be
 * seen. */
static enum kiln_status divide(struct search *x, struct suspect *s, uint32_t *left) {
  for (;;) {
    struct arena_mark mark = arena_get_mark(x->a);
    val_list suspects = {0};
    list_suspects(x, *s, &suspects);
    struct ir_val v = choose(x, &suspects);
    *left = 0;
    for (uint32_t i = 0; i < suspects.n; i++)
      *left += ir_type_of(x->m, suspects.at[i]).kind != IR_VIEW;
    arena_reset(x->a, mark);
    if (!v.id)
      return KILN_OK;
    enum kiln_status st = look(x, v);
    if (st != KILN_OK)
      return st;
    if (x->sight[v.id] == BAD)
      *s = (struct suspect){.v = v};
  }
}

/* ---- into loops and branches ---- */

static void forget_op(void *user, struct ir_module *m, struct ir_op o) {
  struct search *x = user;
  const struct ir_opnode *n = ir_op_at(m, o);
  for (uint32_t i = 0; i < n->n_out; i++)
    x->sight[n->out[i].id] = UNSEEN;
  for (uint32_t k = 0; k < n->n_blocks; k++)
    for (uint32_t i = 0; i < ir_block_at(m, n->blocks[k])->args.n; i++)
      x->sight[ir_block_at(m, n->blocks[k])->args.at[i].id] = UNSEEN;
}

/* What was seen in a loop was seen in one iteration of it. */
static void set_iteration(struct search *x, struct ir_op loop, int64_t i) {
  struct ir_module *m = (struct ir_module *)(uintptr_t)x->m;
  const struct ir_opnode *n = ir_op_at(m, loop);
  x->iteration[loop.id] = i;
  for (uint32_t k = 0; k < n->n_blocks; k++) {
    for (uint32_t j = 0; j < ir_block_at(m, n->blocks[k])->args.n; j++)
      x->sight[ir_block_at(m, n->blocks[k])->args.at[j].id] = UNSEEN;
    ir_walk(m, n->blocks[k], forget_op, x);
  }
}

/* What the interpreter makes of a value; *written: the program and iteration exist. */
static enum kiln_status interpreted(struct search *x, struct ir_val v, bool *written,
                                    int64_t *value) {
  struct diff *d = x->d;
  struct arena_mark mark = arena_get_mark(d->a);
  struct ir_tap tap;
  struct diff_job job;
  struct diff_verdict verdict;
  void **out;
  enum kiln_status st = KILN_OK;
  *written = false;
  diff_step(d, "looking for the op");
  if (tapped_job(x, x->m, v, KILN_ON_INTERP, &tap, &job)) {
    st = diff_run(d, &job, &out, &verdict);
    if (st == KILN_OK && verdict.state == DIFF_SAME) {
      const struct api_arg *arg = &job.args[tap.value];
      size_t bytes = api_dense_bytes(arg, d->domain);
      for (size_t i = 0; i < bytes && !*written; i++)
        *written = ((const unsigned char *)out[tap.value])[i] != rt_poison_byte(arg->dtype);
      *value = dtype_is_float(arg->dtype) ? 0 : num_load_int(arg->dtype, out[tap.value], 0);
    }
  }
  arena_reset(d->a, mark);
  return st;
}

static enum kiln_status trips(struct search *x, struct ir_op loop, int64_t *out) {
  const struct ir_opnode *n = ir_op_at(x->m, loop);
  int64_t bound[3] = {0, 0, 1};
  for (int i = 0; i < 3; i++) {
    struct ir_op def = ir_value_at(x->m, n->in[i])->def;
    bool written;
    if (def.id && ir_op_at(x->m, def)->opcode == IR_CONST) {
      bound[i] = ir_attr_int(x->m, def, IR_ATTR_value, 0);
      continue;
    }
    enum kiln_status st = interpreted(x, n->in[i], &written, &bound[i]);
    if (st != KILN_OK)
      return st;
  }
  *out = bound[1] > bound[0] && bound[2] > 0 ? (bound[1] - bound[0] - 1) / bound[2] + 1 : 0;
  return KILN_OK;
}

/* Iterations of a `while`: those that begin, so one more than its body runs. */
static enum kiln_status begun(struct search *x, struct ir_op loop, int64_t *out) {
  struct ir_val v = ir_block_at(x->m, ir_op_at(x->m, loop)->blocks[0])->args.at[0];
  int64_t lo = 0, hi = 1, ignored; /* lo begins, hi does not */
  bool written = true;
  for (;;) {
    x->iteration[loop.id] = hi;
    enum kiln_status st = interpreted(x, v, &written, &ignored);
    if (st != KILN_OK)
      return st;
    if (!written || hi > INT32_MAX)
      break;
    lo = hi;
    hi *= 2;
  }
  while (hi - lo > 1) {
    int64_t mid = lo + (hi - lo) / 2;
    x->iteration[loop.id] = mid;
    enum kiln_status st = interpreted(x, v, &written, &ignored);
    if (st != KILN_OK)
      return st;
    *(written ? &lo : &hi) = mid;
  }
  *out = lo + 1;
  return KILN_OK;
}

/* The carried value number k differs when iteration `bad` begins (or, there being none such, in the
 * result), and agrees at the start: sets the iteration that makes the difference. */
static enum kiln_status bisect_loop(struct search *x, struct ir_op loop, struct ir_val carried,
                                    int64_t bad) {
  int64_t good = 0;
  while (bad - good > 1) {
    int64_t mid = good + (bad - good) / 2;
    set_iteration(x, loop, mid);
    enum kiln_status st = look(x, carried);
    if (st != KILN_OK)
      return st;
    *(x->sight[carried.id] == BAD ? &bad : &good) = mid;
  }
  set_iteration(x, loop, good);
  return KILN_OK;
}

/* A carried value at the start of an iteration: what made it so. */
static enum kiln_status from_carried(struct search *x, struct suspect *s, bool *moved) {
  const struct ir_value *v = ir_value_at(x->m, s->v);
  struct ir_op loop = ir_block_at(x->m, v->block)->parent;
  const struct ir_opnode *n = loop.id ? ir_op_at(x->m, loop) : NULL;
  struct ir_val carried = s->v, init, next;
  if (!n || (n->opcode != IR_FOR && n->opcode != IR_WHILE) || v->block.id != n->blocks[0].id)
    return KILN_OK;
  if (n->opcode == IR_FOR && v->index == 0)
    return KILN_OK;
  init = n->opcode == IR_FOR ? n->in[3 + v->index - 1] : n->in[v->index];
  next = n->opcode == IR_FOR ? end_of(x->m, n->blocks[0])->in[v->index - 1]
                             : end_of(x->m, n->blocks[1])->in[v->index];
  int64_t bad = x->iteration[loop.id];
  enum kiln_status st = KILN_OK;
  *moved = true;
  if (bad > 0) {
    set_iteration(x, loop, 0);
    st = look(x, carried);
    if (st == KILN_OK && x->sight[carried.id] != BAD) {
      st = bisect_loop(x, loop, carried, bad);
      *s = (struct suspect){.v = next};
      return st;
    }
  }
  *s = (struct suspect){.v = init};
  return st;
}

/* A result of an op with blocks: the value inside that it is. */
static enum kiln_status from_result(struct search *x, struct suspect *s, bool *moved) {
  const struct ir_value *v = ir_value_at(x->m, s->v);
  struct ir_op o = v->def;
  const struct ir_opnode *n = ir_op_at(x->m, o);
  int64_t count = 0;
  bool written;
  enum kiln_status st = KILN_OK;
  *moved = true;
  switch ((int)n->opcode) {
  case IR_FOR:
    st = trips(x, o, &count);
    if (st == KILN_OK && count > 0) {
      st = bisect_loop(x, o, ir_block_at(x->m, n->blocks[0])->args.at[1 + v->index], count);
      *s = (struct suspect){.v = end_of(x->m, n->blocks[0])->in[v->index]};
    } else {
      *s = (struct suspect){.v = n->in[3 + v->index]};
    }
    break;
  case IR_IF:
    st = interpreted(x, n->in[0], &written, &count);
    *s = (struct suspect){.v = end_of(x->m, n->blocks[count ? 0 : 1])->in[v->index]};
    break;
  case IR_WHILE:
    if (n->n_in)
      st = begun(x, o, &count);
    set_iteration(x, o, count ? count - 1 : 0);
    *s = (struct suspect){.v = end_of(x->m, n->blocks[0])->in[1 + v->index]};
    break;
  case IR_MERGE: *s = (struct suspect){.v = n->in[v->index]}; break;
  default: *moved = false;
  }
  return st;
}

/* ---- the whole ---- */

static const char *label_of(const struct search *x, struct ir_op o) {
  struct diff *d = x->d;
  struct ir_module *m = ir_clone(x->m, d->a);
  struct diag_sink *diags = &d->ctx->diags;
  uint32_t n = diags->list.n, n_passes;
  const struct ir_pass *passes = cg_pipeline(&n_passes);
  const char *label = NULL;
  if (m->stage == IR_TILE_STAGE && ir_run_passes(m, passes, 1, diags, NULL)) {
    const struct ir_attr *a = ir_get_attr(m, o, IR_ATTR_label);
    label = a ? arena_strdup(d->a, ir_sym(m, a->s)) : NULL;
  }
  diag_truncate(diags, n);
  return label;
}

static void describe(const struct search *x, struct suspect s, uint32_t left,
                     struct diff_origin *out) {
  struct arena *a = x->d->a;
  const struct ir_module *m = x->m;
  struct ir_op o = s.store.id ? s.store : ir_value_at(m, s.v)->def;
  struct ir_op around[IR_TAP_LOOPS];
  out->found = true;
  out->is_store = s.store.id != 0;
  out->at_store = out->is_store && left == 0;
  struct ir_block b = o.id ? ir_op_at(m, o)->block : ir_value_at(m, s.v)->block;
  struct ir_op shown = o.id ? o : ir_block_at(m, b)->parent;
  out->op = shown.id ? ir_info(ir_op_at(m, shown)->opcode)->name : "argument";
  out->loc = shown.id ? m->locs.at[ir_op_at(m, shown)->loc].at : m->at.body;
  out->label = shown.id ? label_of(x, shown) : NULL;
  out->place = x->s->place;
  out->place.n_loops = ir_loops_around(m, b, around);
  for (uint32_t i = 0; i < out->place.n_loops && i < IR_TAP_LOOPS; i++)
    out->place.iteration[i] = x->iteration[around[i].id];
  out->at = x->at;
  if (!s.store.id) {
    const struct ir_value *v = ir_value_at(m, s.v);
    out->value = v->name.id ? arena_strdup(a, ir_sym(m, v->name)) : NULL;
    out->tile_rank = v->type.rank;
    memcpy(out->tile_dim, v->type.dim, sizeof out->tile_dim);
  }
  uint32_t hidden = 0;
  for (uint32_t i = 0; i < m->values.n; i++)
    hidden += x->sight[i] == HIDDEN;
  if (left)
    out->unseen =
        arena_printf(a, "%u of the values before it could not be compared%s%s%s", left,
                     hidden ? " (with a store of the value added the difference goes)" : "",
                     x->blind[0] ? ": " : "", x->blind);
}

enum kiln_status diff_find_origin(struct diff *d, const struct diff_search *s,
                                  struct diff_origin *out) {
  struct search x = {.d = d, .s = s, .m = s->got, .a = d->a};
  struct suspect bad = {.store = s->start};
  struct ir_op around[IR_TAP_LOOPS];
  uint32_t left = 0, n_loops = ir_loops_around(x.m, ir_op_at(x.m, s->start)->block, around);
  memset(out, 0, sizeof *out);
  if (n_loops > IR_TAP_LOOPS || n_loops != s->place.n_loops)
    return KILN_OK;
  x.sight = ARENA_ARRAY(d->a, uint8_t, x.m->values.n + 1);
  x.iteration = ARENA_ARRAY(d->a, int64_t, x.m->ops.n + 1);
  for (uint32_t i = 0; i < n_loops; i++)
    x.iteration[around[i].id] = s->place.iteration[i];
  for (uint32_t round = 0; round < MAX_QUESTIONS; round++) {
    bool moved = false;
    enum kiln_status st = divide(&x, &bad, &left);
    if (st == KILN_OK && !bad.store.id)
      st = ir_value_at(x.m, bad.v)->def.id ? from_result(&x, &bad, &moved)
                                           : from_carried(&x, &bad, &moved);
    if (st != KILN_OK)
      return st;
    if (!moved)
      break;
  }
  describe(&x, bad, left, out);
  return KILN_OK;
}
