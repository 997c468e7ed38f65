/* Interpreter: what it tells people. Diagnostics of ops, asserts, and the text of `print`. */
#include "ir/interp_impl.h"

#include <stdarg.h>

#define MAX_FRAMES 16 /* notes for the call stack of one diagnostic */
#define MAX_ITEMS  8  /* elements printed per axis */

/* " in program (1, 0)", with as many axes as the grid has. */
static void put_program(const struct interp *in, struct strbuf *out) {
  sb_puts(out, "program (");
  for (uint32_t k = 0; k < in->m->n_grid; k++)
    sb_printf(out, "%s%lld", k ? ", " : "", (long long)in->at[k]);
  sb_putc(out, ')');
}

static void report(struct interp *in, struct ir_op o, enum diag_id id, const char *fmt,
                   va_list ap) {
  struct strbuf text = {.arena = in->arena};
  sb_vprintf(&text, fmt, ap);
  if (in->program) {
    sb_puts(&text, " [");
    put_program(in, &text);
    sb_putc(&text, ']');
  }
  const struct ir_loc *loc = &in->m->locs.at[ir_op_at(in->m, o)->loc];
  diag_report(in->diags, DIAG_ERROR, id, loc->at, "%s", sb_str(&text));
  for (int depth = 0; loc->up && depth < MAX_FRAMES; depth++) {
    loc = &in->m->locs.at[loc->up];
    diag_note(in->diags, loc->at, "called from here");
  }
}

void interp_report(struct interp *in, struct ir_op o, enum diag_id id, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  report(in, o, id, fmt, ap);
  va_end(ap);
}

void interp_fail(struct interp *in, struct ir_op o, enum diag_id id, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  report(in, o, id, fmt, ap);
  va_end(ap);
  in->stopped = true;
}

/* Coordinates of element i of a tile: "(3, 0)". */
static void put_coord(const struct ir_type *t, size_t i, struct strbuf *out) {
  int64_t at[IR_MAX_RANK] = {0};
  for (uint32_t k = t->rank; k-- > 0;) {
    at[k] = (int64_t)(i % (size_t)t->dim[k]);
    i /= (size_t)t->dim[k];
  }
  sb_putc(out, '(');
  for (uint32_t k = 0; k < t->rank; k++)
    sb_printf(out, "%s%lld", k ? ", " : "", (long long)at[k]);
  sb_putc(out, ')');
}

void interp_assert(struct interp *in, struct ir_op o) {
  const struct ir_opnode *op = ir_op_at(in->m, o);
  const struct ir_type *t = &ir_value_at(in->m, op->in[0])->type;
  const uint8_t *mask = val_buf(in, op->in[0]);
  size_t n = val_elems(in, op->in[0]), i = 0;
  while (i < n && mask[i])
    i++;
  if (i == n)
    return;
  const struct ir_attr *a = ir_get_attr(in->m, o, IR_ATTR_message);
  struct strbuf text = {.arena = in->arena};
  if (t->rank) {
    sb_puts(&text, " at element ");
    put_coord(t, i, &text);
  }
  const char *message = a ? ir_sym(in->m, a->s) : "";
  interp_fail(in, o, DIAG_ASSERT_FAILED, "assertion failed%s%s%s", sb_str(&text),
              *message ? ": " : "", message);
}

static void put_payload(int64_t x, struct strbuf *out) {
  if (x == INTERP_NAN || x == INTERP_MINUS_INF || x == INTERP_PLUS_INF)
    sb_puts(out, x == INTERP_NAN ? "nan" : x == INTERP_PLUS_INF ? "inf" : "-inf");
  else
    sb_printf(out, "%lld", (long long)x);
}

static void put_cell(const struct interp *in, struct ir_val v, size_t i, struct strbuf *out) {
  const void *x = val_buf(in, v);
  switch (val_cell(in, v)) {
  case CELL_FLOAT: sb_printf(out, "%.9g", (double)((const float *)x)[i]); break;
  case CELL_DOUBLE: sb_printf(out, "%.17g", ((const double *)x)[i]); break;
  case CELL_INT: sb_printf(out, "%lld", (long long)((const int64_t *)x)[i]); break;
  case CELL_BOOL: sb_puts(out, ((const uint8_t *)x)[i] ? "true" : "false"); break;
  case CELL_PAYLOAD: put_payload(((const int64_t *)x)[i], out); break;
  }
}

/* Axis k of the part of a tile that starts at cell `at` and has `n` cells: nested brackets. */
static void put_axis(const struct interp *in, struct ir_val v, const struct ir_type *t, uint32_t k,
                     size_t at, size_t n, struct strbuf *out) {
  if (k == t->rank) {
    put_cell(in, v, at, out);
    return;
  }
  size_t each = n / (size_t)t->dim[k];
  sb_putc(out, '[');
  for (size_t i = 0; i < (size_t)t->dim[k]; i++) {
    if (i)
      sb_puts(out, ", ");
    if (i == MAX_ITEMS) {
      sb_puts(out, "...");
      break;
    }
    put_axis(in, v, t, k + 1, at + i * each, each, out);
  }
  sb_putc(out, ']');
}

/* "(0, 1): message 3 [1, 2]"; the program first, as lines of a shuffled grid come in any order.
 * `{}` in the message stands for the next operand, the others follow it. */
void interp_print(struct interp *in, struct ir_op o) {
  if (!in->opt.print)
    return;
  const struct ir_opnode *op = ir_op_at(in->m, o);
  struct arena_mark mark = arena_get_mark(in->arena);
  struct strbuf out = {.arena = in->arena};
  put_program(in, &out);
  sb_putc(&out, ':');
  const struct ir_attr *a = ir_get_attr(in->m, o, IR_ATTR_message);
  uint32_t k = 0;
  if (a)
    sb_putc(&out, ' ');
  for (const char *s = a ? ir_sym(in->m, a->s) : ""; *s; s++) {
    if (s[0] == '{' && s[1] == '}' && k < op->n_in) {
      put_axis(in, op->in[k], &ir_value_at(in->m, op->in[k])->type, 0, 0, val_elems(in, op->in[k]),
               &out);
      k++;
      s++;
    } else {
      sb_putc(&out, *s);
    }
  }
  for (; k < op->n_in; k++) {
    const struct ir_type *t = &ir_value_at(in->m, op->in[k])->type;
    sb_putc(&out, k ? '\t' : ' ');
    put_axis(in, op->in[k], t, 0, 0, val_elems(in, op->in[k]), &out);
  }
  in->opt.print(in->opt.user, sb_str(&out));
  arena_reset(in->arena, mark);
}
