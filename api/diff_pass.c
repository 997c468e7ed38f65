/* The pass that a difference comes with.
 *
 * Up to machine IR the interpreter runs the module after each pass: the first after which outputs
 * differ changed what the kernel means, and its op is sought between the modules before and after
 * it. Otherwise the difference is made on the way to machine code, and the op is sought there. Each
 * optional pass is left out once, to see which the difference needs. */
#include "api/diff.h"

#include "base/bitset.h"

#include <string.h>

/* ---- which value of one module is which of the other ---- */

struct live {
  struct bitset values;
  VEC(struct ir_val) order;
  struct arena *a;
};

static void add_value(struct live *l, struct ir_val v) {
  bitset_add(&l->values, v.id);
  VEC_PUSH(l->a, &l->order, v);
}

static void add_block_args(struct live *l, const struct ir_module *m, struct ir_block b) {
  for (uint32_t i = 0; i < ir_block_at(m, b)->args.n; i++)
    add_value(l, ir_block_at(m, b)->args.at[i]);
}

static void add_op(void *user, struct ir_module *m, struct ir_op o) {
  struct live *l = user;
  const struct ir_opnode *n = ir_op_at(m, o);
  for (uint32_t i = 0; i < n->n_out; i++)
    add_value(l, n->out[i]);
  for (uint32_t k = 0; k < n->n_blocks; k++)
    add_block_args(l, m, n->blocks[k]);
}

static struct live find_live(const struct ir_module *m, struct arena *a) {
  struct live l = {.values = bitset_new(a, m->values.n + 1), .a = a};
  add_block_args(&l, m, m->body);
  ir_walk((struct ir_module *)(uintptr_t)m, m->body, add_op, &l);
  return l;
}

static uint32_t loc_of(const struct ir_module *m, struct ir_val v) {
  const struct ir_value *value = ir_value_at(m, v);
  struct ir_op o = value->def.id ? value->def : ir_block_at(m, value->block)->parent;
  return o.id ? ir_op_at(m, o)->loc : 0;
}

static bool same_stack(const struct ir_module *m, uint32_t x, const struct ir_module *n,
                       uint32_t y) {
  for (; x && y; x = m->locs.at[x].up, y = n->locs.at[y].up) {
    struct diag_loc p = m->locs.at[x].at, q = n->locs.at[y].at;
    if (p.file != q.file || p.line != q.line || p.col != q.col)
      return false;
  }
  return !x && !y;
}

static bool is_alike(const struct ir_module *m, struct ir_val v, const struct ir_module *n,
                     struct ir_val w) {
  return ir_type_eq(ir_type_of(m, v), ir_type_of(n, w)) && loc_of(m, v) &&
         !ir_value_at(m, v)->def.id == !ir_value_at(n, w)->def.id &&
         same_stack(m, loc_of(m, v), n, loc_of(n, w));
}

/* A value that the pass left is itself. One that it made anew stands for one of the same type, made
 * in the same place of the kernel file, that is gone, if there are as many of both. */
static struct ir_val *pair_values(const struct ir_module *before, const struct ir_module *after,
                                  struct arena *a) {
  struct ir_val *pair = ARENA_ARRAY(a, struct ir_val, after->values.n + 1);
  struct live was = find_live(before, a), is = find_live(after, a);
  for (uint32_t i = 0; i < is.order.n; i++) {
    struct ir_val v = is.order.at[i];
    if (v.id < before->values.n && bitset_has(&was.values, v.id)) {
      if (ir_type_eq(ir_type_of(before, v), ir_type_of(after, v)))
        pair[v.id] = v;
      continue;
    }
    uint32_t alike = 0, number = 0, nth = 0;
    struct ir_val chosen = {0};
    for (uint32_t k = 0; k < is.order.n; k++) {
      struct ir_val w = is.order.at[k];
      bool made = w.id >= before->values.n || !bitset_has(&was.values, w.id);
      if (made && is_alike(after, v, after, w)) {
        number = w.id == v.id ? alike : number;
        alike++;
      }
    }
    for (uint32_t k = 0; k < was.order.n; k++) {
      struct ir_val w = was.order.at[k];
      if (bitset_has(&is.values, w.id) || !is_alike(after, v, before, w))
        continue;
      if (nth++ == number)
        chosen = w;
    }
    if (nth == alike)
      pair[v.id] = chosen;
  }
  return pair;
}

/* ---- the op ---- */

static bool is_alive_op(const struct ir_module *m, struct ir_op o) {
  while (o.id && o.id < m->ops.n && ir_op_at(m, o)->block.id) {
    if (ir_op_at(m, o)->block.id == m->body.id)
      return true;
    o = ir_block_at(m, ir_op_at(m, o)->block)->parent;
  }
  return false;
}

static struct diff_place place_of(const struct interp_watch *w) {
  struct diff_place p = {.n_loops = w->n_loops};
  memcpy(p.program, w->program, sizeof p.program);
  memcpy(p.iteration, w->iteration, sizeof p.iteration);
  return p;
}
_Static_assert(IR_TAP_LOOPS == INTERP_WATCH_LOOPS, "a watch tells what a tap wants to know");

/* Who writes the element that differs, as the module means it. */
static enum kiln_status watch(struct diff *d, const struct ir_module *m, struct interp_watch *w) {
  struct arena_mark mark = arena_get_mark(d->a);
  struct diff_job job = diff_job_of(d, m, KILN_ON_INTERP);
  struct diff_verdict verdict;
  void **out;
  *w = (struct interp_watch){.arg = d->first.at.arg};
  memcpy(w->coord, d->first.at.coord, sizeof w->coord);
  job.watch = w;
  diff_step(d, "looking for the op");
  enum kiln_status st = diff_run(d, &job, &out, &verdict);
  w->found = w->found && verdict.state == DIFF_SAME;
  arena_reset(d->a, mark);
  return st;
}

static void note_writer(struct diff *d, const struct ir_module *m) {
  const struct ir_opnode *n = ir_op_at(m, d->writer.op);
  struct ir_type t = ir_type_of(m, n->in[n->n_in - 1]);
  d->has_writer = true;
  d->writer_rank = t.kind == IR_TILE ? t.rank : 0;
  memcpy(d->writer_dim, t.dim, sizeof d->writer_dim);
  d->writer_op = ir_info(n->opcode)->name;
  d->writer_loc = m->locs.at[n->loc].at;
}

static enum kiln_status find_writer(struct diff *d) {
  enum kiln_status st = watch(d, d->traced, &d->writer);
  if (st == KILN_OK && d->writer.found)
    note_writer(d, d->traced);
  return st;
}

static enum kiln_status find_op(struct diff *d, const struct ir_module *before,
                                const struct ir_module *after, enum kiln_on on) {
  struct interp_watch w;
  enum kiln_status st = find_writer(d);
  if (st == KILN_OK)
    st = watch(d, after, &w);
  if (st == KILN_OK && !w.found)
    st = watch(d, before, &w);
  if (st != KILN_OK || !w.found || !is_alive_op(after, w.op))
    return st;
  struct diff_search s = {.want = before,
                          .got = after,
                          .on = on,
                          .pair = before == after ? NULL : pair_values(before, after, d->a),
                          .start = w.op,
                          .place = place_of(&w)};
  return diff_find_origin(d, &s, &d->origin);
}

enum kiln_status diff_find_line(struct diff *d) {
  const struct ir_module *given = d->given;
  struct diff_verdict own;
  struct strbuf why = {.arena = d->a};
  struct ir_op at;
  enum kiln_status st = d->first.state == DIFF_DIFFERS ? find_writer(d) : KILN_OK;
  if (st != KILN_OK || diff_is_lost(d))
    return st;
  d->given = NULL;
  diff_step(d, "running Kiln's own lowering");
  st = diff_probe(d, &d->v->schedule, NULL, &own);
  d->given = given;
  d->own_agrees = own.state == DIFF_SAME;
  if (st != KILN_OK || (st = api_lower(d->v)) != KILN_OK)
    return st;
  if (ir_equal_at(given, d->v->machine, &why, &at) || !at.id)
    return KILN_OK;
  d->origin = (struct diff_origin){.found = true,
                                   .op = ir_info(ir_op_at(given, at)->opcode)->name,
                                   .differs = sb_str(&why),
                                   .loc = given->locs.at[ir_op_at(given, at)->loc].at};
  return KILN_OK;
}

/* ---- passes ---- */

/* Is the module's interpretation another one than that of the kernel? */
static enum kiln_status is_other(struct diff *d, const struct ir_module *m, bool *other) {
  struct arena_mark mark = arena_get_mark(d->a);
  struct diff_job job = diff_job_of(d, m, KILN_ON_INTERP);
  struct diff_verdict verdict;
  struct diff_element at;
  void **got;
  diff_step(d, "looking for the pass");
  enum kiln_status st = diff_run(d, &job, &got, &verdict);
  *other = st == KILN_OK && (verdict.state != DIFF_SAME || !diff_compare(d, &d->want, got, &at));
  arena_reset(d->a, mark);
  return st;
}

/* The tile module after the first n tile passes, or the module after the first n of lowering; NULL:
 * a pass failed, *st says whether that stops all. */
static struct ir_module *after_tile(struct diff *d, uint32_t n, const char *debug,
                                    enum kiln_status *st) {
  struct api_mark before = api_mark(d->ctx);
  uint32_t n_diags = d->ctx->diags.list.n;
  struct ir_run_options run = {.debug = debug};
  struct ir_module *m = ir_clone(d->traced, d->a);
  struct diff_verdict ignored;
  *st = KILN_OK;
  if (ir_run_passes(m, d->pipes.tile, n, &d->ctx->diags, &run))
    return m;
  *st = diff_take_failure(d, before, n_diags, DIFF_UNKNOWN, &ignored);
  return NULL;
}

static struct ir_module *after_lowering(struct diff *d, uint32_t n, enum kiln_status *st) {
  struct api_mark before = api_mark(d->ctx);
  uint32_t n_diags = d->ctx->diags.list.n;
  struct ir_run_options run = {0};
  struct cg_options opt = {.target = d->v->target,
                           .schedule = d->v->schedule,
                           .stop = IR_MACHINE_STAGE,
                           .run = &run,
                           .passes = d->pipes.lowering,
                           .n_passes = n};
  struct diff_verdict ignored;
  struct ir_module *m = cg_lower(d->tile, &opt, d->a, &d->ctx->diags);
  *st = m ? KILN_OK : diff_take_failure(d, before, n_diags, DIFF_UNKNOWN, &ignored);
  return m;
}

static uint32_t count_scheduling(const struct diff *d) {
  for (uint32_t i = 0; i < d->pipes.n_lowering; i++)
    if (str_eq(d->pipes.lowering[i].name, "lower_machine"))
      return i;
  return 0;
}

/* After the first k of all passes that leave something to interpret. */
static struct ir_module *after(struct diff *d, uint32_t k, enum kiln_status *st) {
  return k <= d->pipes.n_tile ? after_tile(d, k, NULL, st)
                              : after_lowering(d, k - d->pipes.n_tile, st);
}

static enum kiln_status find_meaning(struct diff *d, struct ir_module **before,
                                     struct ir_module **changed) {
  uint32_t n = d->pipes.n_tile + count_scheduling(d);
  enum kiln_status st;
  bool other = true;
  *changed = NULL;
  struct ir_module *last = after(d, n, &st), *m = NULL;
  if (st == KILN_OK && last)
    st = is_other(d, last, &other);
  if (st != KILN_OK || !other)
    return st;
  *before = after(d, 0, &st);
  for (uint32_t k = 1; k <= n && st == KILN_OK; k++, *before = m) {
    m = after(d, k, &st);
    if (!m)
      break;
    st = is_other(d, m, &other);
    if (st != KILN_OK || !other)
      continue;
    d->pass = k <= d->pipes.n_tile ? d->pipes.tile[k - 1].name
                                   : d->pipes.lowering[k - 1 - d->pipes.n_tile].name;
    d->pass_of_interpretation = true;
    *changed = m;
    break;
  }
  return st;
}

/* Runs without an optional pass; *gone: then there is no difference. */
static enum kiln_status leave_out(struct diff *d, const struct ir_pass *pass, bool of_tile,
                                  bool *gone) {
  struct arena_mark mark = arena_get_mark(d->a);
  const char *debug = arena_printf(d->a, "skip=%s", pass->name);
  const struct ir_module *kept = d->tile;
  struct diff_verdict verdict = {.state = DIFF_UNKNOWN};
  enum kiln_status st = KILN_OK;
  diff_step(d, "leaving out passes");
  if (of_tile)
    d->tile = after_tile(d, d->pipes.n_tile, debug, &st);
  if (st == KILN_OK && d->tile)
    st = diff_probe(d, &d->v->schedule, of_tile ? NULL : debug, &verdict);
  d->tile = kept;
  *gone = st == KILN_OK && verdict.state == DIFF_SAME;
  arena_reset(d->a, mark);
  return st;
}

static enum kiln_status leave_each_out(struct diff *d) {
  struct strbuf names = {.arena = d->a};
  enum kiln_status st = KILN_OK;
  for (uint32_t k = 0; k < d->pipes.n_tile + d->pipes.n_lowering && st == KILN_OK; k++) {
    bool of_tile = k < d->pipes.n_tile, gone = false;
    const struct ir_pass *pass =
        of_tile ? &d->pipes.tile[k] : &d->pipes.lowering[k - d->pipes.n_tile];
    if (!pass->optional)
      continue;
    st = leave_out(d, pass, of_tile, &gone);
    if (gone)
      sb_printf(&names, names.n ? ", %s" : "%s", pass->name);
  }
  if (names.n)
    d->without = sb_str(&names);
  return st;
}

enum kiln_status diff_find_pass(struct diff *d) {
  struct ir_module *before = NULL, *changed = NULL;
  enum kiln_status st = find_meaning(d, &before, &changed);
  if (st == KILN_OK && d->first.state == DIFF_DIFFERS)
    st =
        changed ? find_op(d, before, changed, KILN_ON_INTERP) : find_op(d, d->tile, d->tile, d->on);
  if (st == KILN_OK && !diff_is_lost(d))
    st = leave_each_out(d);
  if (st == KILN_OK && !d->pass && d->without && !strchr(d->without, ','))
    d->pass = d->without;
  return st;
}
