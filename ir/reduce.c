/* The reducer; see reduce.h.
 *
 * The state is a text. One step reads it, takes something out, prints the rest, and keeps that if
 * it still fails:
 *   - ops, in runs of halving length, last ones first: what used their results uses an operand of
 *     the same type, or zero;
 *   - the frame of a loop or branch, its ops staying; single carried values;
 *   - arguments that nothing uses, and equal or unused ops (cse, dce);
 *   - lines of the text, in runs of halving length. This alone works on texts that cannot be read.
 * Every step leaves fewer ops other than constants, or fewer lines, so the reduction ends. */
#include "base/check.h"
#include "ir/passes.h"
#include "ir/reduce.h"
#include "ir/walk.h"

#include <string.h>

struct reducer {
  const struct ir_reduce_options *opt;
  struct arena *out; /* holds `best` */
  struct arena *scratch;
  struct diag_sink diags;
  const char *best;
  size_t n;
  bool reads, verifies; /* what the first text does, all others must */
  uint32_t lines, tried;
  bool stopped;
};

typedef VEC(struct ir_op) op_list;

static uint32_t count_lines(const char *s, size_t n) {
  uint32_t lines = n && s[n - 1] != '\n';
  for (size_t i = 0; i < n; i++)
    lines += s[i] == '\n';
  return lines;
}

static struct ir_module *read_text(struct reducer *r, const char *text, size_t n) {
  diag_clear(&r->diags);
  return ir_parse(r->scratch, &r->diags, 0, text, n);
}

/* Keeps the text if it fails as the first one did. */
static bool try_text(struct reducer *r, const char *text, size_t n) {
  if (n == r->n && memcmp(text, r->best, n) == 0)
    return false;
  if (r->opt->interrupted && r->opt->interrupted(r->opt->user))
    r->stopped = true;
  if (r->stopped)
    return false;
  if (r->reads) {
    struct ir_module *m = read_text(r, text, n);
    if (!m || (r->verifies && !ir_verify(m, &r->diags)))
      return false;
  }
  r->tried++;
  bool kept = r->opt->fails(r->opt->user, text, n);
  if (kept) {
    r->best = arena_strndup(r->out, text, n);
    r->n = n;
  }
  if (r->opt->progress && (kept || r->tried % 64 == 0))
    r->opt->progress(r->opt->user, r->lines, count_lines(r->best, r->n), r->tried);
  return kept;
}

static bool try_module(struct reducer *r, const struct ir_module *m) {
  struct strbuf text = {.arena = r->scratch};
  ir_print(m, (struct ir_print_options){.names = true}, &text);
  return try_text(r, sb_str(&text), text.n);
}

/* ---- edits of a module; each returns false where it cannot be done ---- */

static op_list ops_of(struct reducer *r, struct ir_module *m) {
  op_list ops = {0};
  for (struct ir_op o = ir_block_at(m, m->body)->first; o.id; o = ir_walk_next(m, o, m->body))
    VEC_PUSH(r->scratch, &ops, o);
  return ops;
}

static bool is_constant(enum ir_opcode o) {
  return o == IR_CONST || o == IR_SPLAT;
}

/* A value of the type that stands before op o in its block. */
static struct ir_val before(struct ir_module *m, struct ir_op o, struct ir_type t) {
  const struct ir_blocknode *b = ir_block_at(m, ir_op_at(m, o)->block);
  for (uint32_t i = 0; i < b->args.n; i++)
    if (ir_type_eq(ir_type_of(m, b->args.at[i]), t))
      return b->args.at[i];
  for (struct ir_op x = b->first; x.id != o.id; x = ir_op_at(m, x)->next)
    for (uint32_t i = 0; i < ir_op_at(m, x)->n_out; i++)
      if (ir_type_eq(ir_type_of(m, ir_op_at(m, x)->out[i]), t))
        return ir_op_at(m, x)->out[i];
  return (struct ir_val){0};
}

/* What may stand for a result of op o: an operand of the type, or zero, made (for constants: a
 * value before). 0: there is none. */
static struct ir_val stand_in(struct ir_module *m, struct ir_op o, struct ir_type t, bool zero) {
  const struct ir_opnode *n = ir_op_at(m, o);
  for (uint32_t i = 0; i < n->n_in && (!zero || t.kind == IR_VIEW || t.kind == IR_PTR); i++)
    if (ir_type_eq(ir_type_of(m, n->in[i]), t))
      return n->in[i];
  if ((t.kind != IR_SCALAR && t.kind != IR_TILE) || is_constant(n->opcode))
    return before(m, o, t);
  struct ir_builder b = {.m = m, .block = n->block, .before = o, .loc = n->loc};
  struct ir_val v = ir_const_int(&b, (enum dtype)t.dtype, 0);
  return t.kind == IR_SCALAR ? v : ir_build1(&b, IR_SPLAT, t, 1, &v);
}

static bool is_used(struct ir_module *m, struct ir_val v) {
  struct ir_op o = ir_block_at(m, m->body)->first;
  for (; o.id; o = ir_walk_next(m, o, m->body))
    for (uint32_t i = 0; i < ir_op_at(m, o)->n_in; i++)
      if (ir_op_at(m, o)->in[i].id == v.id)
        return true;
  return false;
}

static bool remove_op(struct ir_module *m, struct ir_op o, bool zero) {
  if (!ir_op_at(m, o)->block.id || ir_info(ir_op_at(m, o)->opcode)->traits & IR_TERM)
    return false;
  for (uint32_t i = 0; i < ir_op_at(m, o)->n_out; i++) {
    struct ir_val v = ir_op_at(m, o)->out[i];
    if (!is_used(m, v))
      continue;
    struct ir_val by = stand_in(m, o, ir_type_of(m, v), zero);
    if (!by.id)
      return false;
    ir_replace_uses(m, v, by);
  }
  ir_remove(m, o);
  return true;
}

/* Puts the ops of block k of o before o, and gives o's results and block arguments the values that
 * they would have if the block ran once. */
static bool unwrap(struct ir_module *m, struct ir_op o, uint32_t k) {
  const struct ir_opnode *n = ir_op_at(m, o);
  if (k >= n->n_blocks)
    return false;
  const struct ir_blocknode *b = ir_block_at(m, n->blocks[k]);
  struct ir_op last = b->last;
  if (!last.id || !(ir_info(ir_op_at(m, last)->opcode)->traits & IR_TERM))
    return false;
  /* for: the index is `lo`, then the initial values; others: the initial values. */
  uint32_t skip = n->opcode == IR_FOR ? 2 : 0;
  for (uint32_t i = 0; i < b->args.n; i++) {
    uint32_t in = i ? i + skip : 0;
    if (in >= n->n_in || !ir_type_eq(ir_type_of(m, b->args.at[i]), ir_type_of(m, n->in[in])))
      return false;
  }
  uint32_t first = ir_op_at(m, last)->opcode == IR_CONDITION ? 1 : 0;
  for (uint32_t i = 0; i < n->n_out; i++)
    if (i + first >= ir_op_at(m, last)->n_in ||
        !ir_type_eq(ir_type_of(m, n->out[i]), ir_type_of(m, ir_op_at(m, last)->in[i + first])))
      return false;
  for (uint32_t i = 0; i < b->args.n; i++)
    ir_replace_uses(m, b->args.at[i], n->in[i ? i + skip : 0]);
  for (uint32_t i = 0; i < n->n_out; i++)
    ir_replace_uses(m, n->out[i], ir_op_at(m, last)->in[i + first]);
  for (struct ir_op x = b->first, next; x.id != last.id; x = next) {
    next = ir_op_at(m, x)->next;
    ir_move_before(m, x, n->block, o);
  }
  ir_remove(m, o);
  return true;
}

/* Takes result k of a for or if away. */
static bool drop_result(struct reducer *r, struct ir_module *m, struct ir_op o, uint32_t k) {
  const struct ir_opnode *n = ir_op_at(m, o);
  bool loop = n->opcode == IR_FOR;
  if (k >= n->n_out || (!loop && n->opcode != IR_IF) || (loop && n->n_in != n->n_out + 3u))
    return false;
  for (uint32_t i = 0; i < n->n_blocks; i++) {
    const struct ir_blocknode *b = ir_block_at(m, n->blocks[i]);
    const struct ir_opnode *last = ir_op_at(m, b->last);
    if (last->opcode != IR_YIELD || last->n_in != n->n_out || (loop && b->args.n != n->n_out + 1u))
      return false;
  }
  struct ir_val by = stand_in(m, o, ir_type_of(m, n->out[k]), !loop);
  if (!by.id)
    return false;
  n = ir_op_at(m, o);
  ir_replace_uses(m, n->out[k], by);
  if (loop)
    ir_replace_uses(m, ir_block_at(m, n->blocks[0])->args.at[k + 1], n->in[k + 3]);
  bool *drop = ARENA_ARRAY(r->scratch, bool, n->n_out);
  drop[k] = true;
  ir_drop_carried(m, o, drop);
  return true;
}

/* Of the body's arguments: number i, from place `at` of its module table on, goes. */
static bool drop_body_arg(struct ir_module *m, uint32_t i) {
  struct ir_blocknode *body = ir_block_at(m, m->body);
  if (i >= body->args.n || is_used(m, body->args.at[i]))
    return false;
  for (uint32_t k = i + 1; k < body->args.n; k++) {
    body->args.at[k - 1] = body->args.at[k];
    ir_value_at(m, body->args.at[k])->index = k - 1;
  }
  body->args.n--;
  return true;
}

static bool drop_arg(struct ir_module *m, uint32_t k) {
  uint32_t place = 0;
  for (uint32_t i = 0; i < k; i++)
    place += m->args.at[i].present;
  if (m->stage == IR_MACHINE_STAGE || (m->args.at[k].present && !drop_body_arg(m, place)))
    return false;
  memmove(&m->args.at[k], &m->args.at[k + 1], (m->args.n - k - 1) * sizeof *m->args.at);
  m->args.n--;
  return true;
}

static bool drop_dim(struct ir_module *m, uint32_t k) {
  uint32_t place = k;
  for (uint32_t i = 0; i < m->args.n; i++)
    place += m->args.at[i].present;
  if (m->stage == IR_MACHINE_STAGE || !drop_body_arg(m, place))
    return false;
  memmove(&m->dims.at[k], &m->dims.at[k + 1], (m->dims.n - k - 1) * sizeof *m->dims.at);
  m->dims.n--;
  return true;
}

/* ---- rounds: what can be left out of the text as it is now ---- */

/* Runs of `size` ops, the last first. */
static bool round_of_runs(struct reducer *r, uint32_t size, bool zero) {
  bool any = false;
  struct arena_mark mark = arena_get_mark(r->scratch);
  struct ir_module *m = read_text(r, r->best, r->n);
  uint32_t end = m ? ops_of(r, m).n : 0;
  while (end && !r->stopped) {
    uint32_t start = end > size ? end - size : 0, gone = 0;
    arena_reset(r->scratch, mark);
    m = read_text(r, r->best, r->n);
    op_list ops = ops_of(r, m);
    if (end > ops.n)
      end = ops.n;
    for (uint32_t i = end; i > start; i--)
      gone += remove_op(m, ops.at[i - 1], zero);
    any |= gone && try_module(r, m);
    end = start;
  }
  arena_reset(r->scratch, mark);
  return any;
}

enum single { UNWRAP, DROP_RESULT, DROP_ARG, DROP_DIM, CLEAN, SINGLES };

/* Edit number `which` of a kind, of those that the module allows. False: there are not so many. */
static bool edit(struct reducer *r, struct ir_module *m, enum single kind, uint32_t which,
                 bool *done) {
  *done = false;
  if (kind == CLEAN) {
    struct ir_pass_ctx ctx = {&r->diags, r->scratch};
    bool ok = which < 2 && r->verifies;
    if (ok && which == 0)
      ir_pass_dce(m, &ctx, done);
    else if (ok)
      ir_pass_cse(m, &ctx, done);
    return which < 2;
  }
  if (kind == DROP_ARG || kind == DROP_DIM) {
    uint32_t n = kind == DROP_ARG ? m->args.n : m->dims.n;
    if (which < n)
      *done = kind == DROP_ARG ? drop_arg(m, which) : drop_dim(m, which);
    return which < n;
  }
  struct ir_op o = ir_block_at(m, m->body)->first;
  for (; o.id; o = ir_walk_next(m, o, m->body)) {
    const struct ir_opnode *n = ir_op_at(m, o);
    uint32_t here = kind == UNWRAP ? n->n_blocks : n->n_blocks ? n->n_out : 0u;
    if (which < here) {
      *done = kind == UNWRAP ? unwrap(m, o, which) : drop_result(r, m, o, which);
      return true;
    }
    which -= here;
  }
  return false;
}

static bool round_of_edits(struct reducer *r, enum single kind) {
  bool any = false;
  struct arena_mark mark = arena_get_mark(r->scratch);
  for (uint32_t which = 0; !r->stopped;) {
    bool done;
    arena_reset(r->scratch, mark);
    struct ir_module *m = read_text(r, r->best, r->n);
    if (!m || !edit(r, m, kind, which, &done))
      break;
    if (done && try_module(r, m))
      any = true; /* the next one has this number now */
    else
      which++;
  }
  arena_reset(r->scratch, mark);
  return any;
}

/* Runs of `size` lines, the last first. */
static bool round_of_lines(struct reducer *r, uint32_t size) {
  bool any = false;
  uint32_t end = count_lines(r->best, r->n);
  while (end && !r->stopped) {
    uint32_t start = end > size ? end - size : 0, line = 0;
    struct arena_mark mark = arena_get_mark(r->scratch);
    struct strbuf text = {.arena = r->scratch};
    for (size_t i = 0; i < r->n; line++) {
      const char *nl = memchr(r->best + i, '\n', r->n - i);
      size_t len = nl ? (size_t)(nl - r->best) + 1 - i : r->n - i;
      if (line < start || line >= end)
        sb_put(&text, r->best + i, len);
      i += len;
    }
    any |= try_text(r, sb_str(&text), text.n);
    arena_reset(r->scratch, mark);
    end = start;
  }
  return any;
}

static bool shrink_module(struct reducer *r) {
  struct ir_module *m = read_text(r, r->best, r->n);
  bool any = false;
  for (uint32_t size = m ? m->ops.n / 2 : 0; size >= 1 && !r->stopped; size /= 2)
    any |= round_of_runs(r, size, false);
  any |= round_of_runs(r, 1, true);
  for (int kind = 0; kind < SINGLES; kind++)
    any |= round_of_edits(r, (enum single)kind);
  return any;
}

static bool shrink_lines(struct reducer *r) {
  bool any = false;
  for (uint32_t size = count_lines(r->best, r->n) / 2; size >= 1 && !r->stopped; size /= 2)
    any |= round_of_lines(r, size);
  return any;
}

static void reduce(void *user) {
  struct reducer *r = user;
  r->scratch->trap = r->out->trap;
  struct ir_module *m = read_text(r, r->best, r->n);
  r->reads = m != NULL;
  r->verifies = m && ir_verify(m, &r->diags);
  bool any = true;
  while (any && !r->stopped) {
    any = r->reads && shrink_module(r);
    any = shrink_lines(r) || any;
  }
}

const char *ir_reduce(struct arena *a, const char *text, size_t n,
                      const struct ir_reduce_options *opt, size_t *n_out) {
  struct arena scratch;
  struct reducer r = {.opt = opt, .out = a, .scratch = &scratch, .best = text, .n = n};
  r.lines = count_lines(text, n);
  arena_init(&scratch, a->mem, a->trap);
  bool had_memory = diag_init(&r.diags, a->mem);
  if (had_memory) {
    had_memory = arena_guard(a, reduce, &r);
    diag_free(&r.diags);
  }
  arena_free(&scratch);
  if (!had_memory) /* now that nothing is held: the caller's trap */
    arena_get(a, SIZE_MAX);
  *n_out = r.n;
  return r.best;
}
