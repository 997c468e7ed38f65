/* Interpreter: checks for races and for reads of what nothing has written. Each touched element of
 * a tensor that some op writes, or that holds nothing at first, has a shadow that says who touched
 * it; see interp_impl.h. */
#include "ir/interp_impl.h"

#include <stdlib.h>

static struct shadow *shadow_at(struct interp *in, struct interp_bound *b, int64_t element) {
  int64_t key = element >= 0 ? element / SHADOW_PAGE : -1 - (-1 - element) / SHADOW_PAGE;
  if (!b->last_page || b->last_key != key) {
    uint32_t *found = map_get(&b->pages, (uint64_t)key);
    if (!found) {
      VEC_PUSH(in->arena, &b->page, ARENA_ARRAY(in->arena, struct shadow, SHADOW_PAGE));
      map_put(&b->pages, (uint64_t)key, b->page.n - 1);
      b->last_page = VEC_LAST(&b->page);
    } else {
      b->last_page = b->page.at[*found];
    }
    b->last_key = key;
  }
  return &b->last_page[element - key * SHADOW_PAGE];
}

static int64_t reach(const struct interp_tensor *t, uint32_t k) {
  return t->dim[k] > 1 ? llabs(t->stride[k]) : 0;
}

/* The coordinates of an element of the tensor, largest stride first; false if they do not follow
 * from its place (strides that overlap). */
static bool find_coord(const struct interp_tensor *t, int64_t element, int64_t *coord) {
  bool done[IR_MAX_RANK] = {false};
  int64_t rest = element - t->offset;
  for (uint32_t k = 0; k < t->rank; k++) {
    coord[k] = 0;
    if (t->stride[k] < 0) /* counted from the other end */
      rest -= (t->dim[k] - 1) * t->stride[k];
  }
  for (uint32_t i = 0; i < t->rank; i++) {
    uint32_t best = t->rank;
    for (uint32_t k = 0; k < t->rank; k++)
      if (!done[k] && (best == t->rank || reach(t, k) > reach(t, best)))
        best = k;
    int64_t s = reach(t, best), c = s ? rest / s : 0;
    done[best] = true;
    if (c >= t->dim[best])
      c = t->dim[best] - 1;
    rest -= c * s;
    coord[best] = t->stride[best] < 0 ? t->dim[best] - 1 - c : c;
  }
  return rest == 0;
}

/* Counts a conflict; true if it is to be reported. */
static bool count_race(struct interp *in) {
  return in->n_races++ < INTERP_MAX_RACES;
}

static const char *element_text(struct interp *in, const struct interp_bound *b, int64_t element) {
  struct strbuf text = {.arena = in->arena};
  int64_t coord[IR_MAX_RANK];
  if (!find_coord(&b->t, element, coord)) {
    sb_printf(&text, "at offset %lld", (long long)(element - b->t.offset));
    return sb_str(&text);
  }
  for (uint32_t k = 0; k < b->t.rank; k++)
    sb_printf(&text, "%s%lld", k ? ", " : "(", (long long)coord[k]);
  sb_putc(&text, ')');
  return sb_str(&text);
}

static const char *arg_name(const struct interp *in, const struct interp_bound *b) {
  return ir_sym(in->m, in->m->args.at[b - in->bound].name);
}

/* `o` does what to an element, which another program did other_what to, with the op other. */
static void report_race(struct interp *in, struct ir_op o, const struct interp_bound *b,
                        int64_t element, const char *what, uint32_t other, const char *other_what) {
  if (!count_race(in))
    return;
  const struct ir_opnode *by = ir_op_at(in->m, (struct ir_op){other});
  interp_report(in, o, DIAG_RACE, "'%s' %s element %s of '%s', which another program %s",
                ir_info(ir_op_at(in->m, o)->opcode)->name, what, element_text(in, b, element),
                arg_name(in, b), other_what);
  diag_note(in->diags, in->m->locs.at[by->loc].at, "the other access is this '%s'",
            ir_info(by->opcode)->name);
}

/* `o` does what to an element that nothing has written; each op is reported once. */
static void report_unwritten(struct interp *in, struct ir_op o, const struct interp_bound *b,
                             int64_t element, const char *what) {
  uint32_t k = 0;
  in->n_unwritten++;
  while (k < INTERP_MAX_RACES && in->unwritten_by[k] && in->unwritten_by[k] != o.id)
    k++;
  if (k == INTERP_MAX_RACES || in->unwritten_by[k] == o.id)
    return;
  in->unwritten_by[k] = o.id;
  bool scratch = in->m->args.at[b - in->bound].kind == IR_ARG_SCRATCH;
  interp_report(in, o, DIAG_UNWRITTEN,
                "'%s' %s element %s of '%s', which nothing has written before; write it first, or "
                "%s",
                ir_info(ir_op_at(in->m, o)->opcode)->name, what, element_text(in, b, element),
                arg_name(in, b),
                scratch ? "declare it with {zero = true}"
                        : "make it an inout that the caller fills");
}

/* ---- order between programs ---- */

/* Parts of programs: a program's next one begins behind each atomic of it that orders programs.
 * What such an atomic at an element has behind it are the parts that ended there before, and those
 * that these had behind them. */
struct bits {
  VEC(uint64_t) word;
};

struct interp_order {
  uint32_t first, part;  /* of the program that runs: its first part, the one it is in */
  VEC(uint32_t) program; /* by part */
  struct map cells;      /* place of an element -> index into `done` */
  VEC(struct bits) done; /* by element: the parts that are over for who comes there */
  struct bits seen;      /* the parts that are over for the program that runs */
};

static void add_bit(struct arena *a, struct bits *b, uint32_t i) {
  while (b->word.n <= i / 64)
    VEC_PUSH(a, &b->word, 0);
  b->word.at[i / 64] |= UINT64_C(1) << i % 64;
}

static void add_bits(struct arena *a, struct bits *to, const struct bits *from) {
  for (uint32_t k = 0; k < from->word.n; k++) {
    while (to->word.n <= k)
      VEC_PUSH(a, &to->word, 0);
    to->word.at[k] |= from->word.at[k];
  }
}

void interp_order_begin(struct interp *in) {
  in->order = ARENA_NEW(in->arena, struct interp_order);
  map_init(&in->order->cells, in->arena);
  VEC_PUSH(in->arena, &in->order->program, 0);
}

static void next_part(struct interp *in) {
  struct interp_order *x = in->order;
  x->part = x->program.n;
  VEC_PUSH(in->arena, &x->program, in->program);
}

void interp_order_program(struct interp *in) {
  in->order->seen.word.n = 0;
  next_part(in);
  in->order->first = in->order->part;
}

void interp_order_sync(struct interp *in, const struct interp_bound *b, int64_t element) {
  struct interp_order *x = in->order;
  uint64_t key = (uint64_t)(b - in->bound) << 48 ^ (uint64_t)element;
  if (!map_get(&x->cells, key)) {
    map_put(&x->cells, key, x->done.n);
    VEC_PUSH(in->arena, &x->done, (struct bits){{0}});
  }
  struct bits *done = &x->done.at[*map_get(&x->cells, key)];
  add_bits(in->arena, &x->seen, done);
  for (uint32_t k = x->first; k <= x->part; k++)
    add_bit(in->arena, &x->seen, k);
  add_bits(in->arena, done, &x->seen);
  next_part(in);
}

/* Who touches an element now, as shadows have it. */
static uint32_t self(const struct interp *in) {
  return in->order ? in->order->part : in->program;
}

/* Is it another program's doing, which nothing orders before this? */
static bool is_other(const struct interp *in, uint32_t who) {
  const struct interp_order *x = in->order;
  if (!who || !x)
    return who && who != in->program;
  return x->program.at[who] != in->program &&
         !(who / 64 < x->seen.word.n && x->seen.word.at[who / 64] >> who % 64 & 1);
}

/* ---- accesses ---- */

void interp_note_read(struct interp *in, struct ir_op o, struct interp_bound *b, int64_t element) {
  struct shadow *s = shadow_at(in, b, element);
  if (is_other(in, s->writer))
    report_race(in, o, b, element, "reads", s->writer_op, "writes");
  else if (is_other(in, s->atomic))
    report_race(in, o, b, element, "reads", s->atomic_op, "changes atomically");
  if (b->unset && !s->writer && !s->atomic)
    report_unwritten(in, o, b, element, "reads");
  if (!s->reader || (in->order && !is_other(in, s->reader))) {
    s->reader = self(in);
    s->reader_op = o.id;
  }
}

void interp_note_write(struct interp *in, struct ir_op o, struct interp_bound *b, int64_t element) {
  struct shadow *s = shadow_at(in, b, element);
  if (is_other(in, s->writer))
    report_race(in, o, b, element, "writes", s->writer_op, "writes");
  else if (is_other(in, s->reader))
    report_race(in, o, b, element, "writes", s->reader_op, "reads");
  else if (is_other(in, s->atomic))
    report_race(in, o, b, element, "writes", s->atomic_op, "changes atomically");
  s->writer = self(in);
  s->writer_op = o.id;
}

void interp_note_atomic(struct interp *in, struct ir_op o, struct interp_bound *b, int64_t element,
                        bool reads) {
  struct shadow *s = shadow_at(in, b, element);
  if (is_other(in, s->writer))
    report_race(in, o, b, element, "changes atomically", s->writer_op, "writes");
  else if (is_other(in, s->reader))
    report_race(in, o, b, element, "changes atomically", s->reader_op, "reads");
  if (reads && b->unset && !s->writer && !s->atomic)
    report_unwritten(in, o, b, element, "changes");
  if (!s->atomic) {
    s->atomic = self(in);
    s->atomic_op = o.id;
  }
}

void interp_note_repeated(struct interp *in, struct ir_op o, struct interp_bound *b,
                          int64_t element) {
  struct shadow *s = shadow_at(in, b, element);
  if (s->scatter == in->scatter && count_race(in))
    interp_report(in, o, DIAG_RACE,
                  "'scatter' writes element %s of '%s' more than once: which value stays is not "
                  "said; indices must differ, or use an atomic",
                  element_text(in, b, element), arg_name(in, b));
  s->scatter = in->scatter;
}
