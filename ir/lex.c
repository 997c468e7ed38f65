/* Words, numbers, types and expressions of the text format; see lex.h. */
#include "ir/lex.h"

#include "base/num.h"
#include "ir/text.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct diag_loc ir_lex_at(const struct ir_lex *x, const char *p) {
  /* An empty text has no line yet. */
  return (struct diag_loc){x->file, x->line ? x->line : 1, (uint32_t)(p - x->start) + 1};
}

bool ir_lex_fail(struct ir_lex *x, const char *p, const char *fmt, ...) {
  if (!x->failed) {
    va_list ap;
    va_start(ap, fmt);
    diag_vreport(x->diags, DIAG_ERROR, DIAG_IR_SYNTAX, ir_lex_at(x, p), fmt, ap);
    va_end(ap);
  }
  x->failed = x->any_failed = true;
  return false;
}

static void skip_blanks(struct ir_lex *x) {
  while (x->p < x->end && (*x->p == ' ' || *x->p == '\t' || *x->p == '\r'))
    x->p++;
}

bool ir_lex_end(struct ir_lex *x) {
  skip_blanks(x);
  return x->p == x->end || *x->p == ';';
}

bool ir_lex_is(struct ir_lex *x, char c) {
  return !ir_lex_end(x) && *x->p == c;
}

bool ir_lex_take(struct ir_lex *x, char c) {
  if (!ir_lex_is(x, c))
    return false;
  x->p++;
  return true;
}

/* The word at the cursor; n is 0 if there is none. */
static struct ir_span peek_word(struct ir_lex *x) {
  skip_blanks(x);
  struct ir_span w = {x->p, 0};
  if (x->p < x->end && *x->p >= '0' && *x->p <= '9')
    return w;
  while (w.s + w.n < x->end && ir_is_word_byte(w.s[w.n]))
    w.n++;
  return w.n && w.s[0] == '.' ? (struct ir_span){w.s, 0} : w;
}

static bool span_is(struct ir_span w, const char *text) {
  return strlen(text) == w.n && memcmp(w.s, text, w.n) == 0;
}

bool ir_lex_take_word(struct ir_lex *x, const char *word) {
  struct ir_span w = peek_word(x);
  if (!span_is(w, word))
    return false;
  x->p += w.n;
  return true;
}

bool ir_lex_take_open(struct ir_lex *x) {
  const char *back = x->p;
  if (ir_lex_take(x, '{') && ir_lex_end(x))
    return true;
  x->p = back;
  return false;
}

/* "%s, found ..." with what stands at the cursor. */
static bool fail_found(struct ir_lex *x, const char *wanted) {
  if (ir_lex_end(x))
    return ir_lex_fail(x, x->p, "%s, found the end of the line", wanted);
  unsigned char c = (unsigned char)*x->p;
  if (c < 0x20 || c >= 0x7f)
    return ir_lex_fail(x, x->p, "%s, found byte 0x%02x", wanted, c);
  struct ir_span w = {x->p, 1};
  while (w.s + w.n < x->end && ir_is_word_byte(w.s[0]) && ir_is_word_byte(w.s[w.n]))
    w.n++;
  return ir_lex_fail(x, x->p, "%s, found `%.*s`", wanted, IR_SPAN(w));
}

static bool expected(struct ir_lex *x, const char *what) {
  char wanted[120];
  snprintf(wanted, sizeof wanted, "%s expected", what);
  return fail_found(x, wanted);
}

bool ir_lex_expect(struct ir_lex *x, char c, const char *where) {
  char wanted[120];
  snprintf(wanted, sizeof wanted, "`%c` expected %s", c, where);
  return ir_lex_take(x, c) || fail_found(x, wanted);
}

bool ir_lex_expect_end(struct ir_lex *x) {
  return ir_lex_end(x) || expected(x, "the end of the line");
}

bool ir_lex_word(struct ir_lex *x, const char *what, struct ir_span *out) {
  *out = peek_word(x);
  if (!out->n)
    return expected(x, what);
  x->p += out->n;
  return true;
}

static int hex_digit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

bool ir_lex_string(struct ir_lex *x, struct ir_module *m, struct sym *out) {
  if (!ir_lex_is(x, '"'))
    return expected(x, "a quoted text");
  const char *first = x->p++;
  char *s = arena_get(x->arena, (size_t)(x->end - first));
  size_t n = 0;
  for (;;) {
    if (x->p == x->end)
      return ir_lex_fail(x, first, "the quoted text does not end on its line");
    char c = *x->p++;
    if (c == '"')
      break;
    if (c == '\\') {
      char e = x->p < x->end ? *x->p++ : ' ';
      int hi = e == 'x' && x->end - x->p >= 2 ? hex_digit(x->p[0]) : -1;
      int lo = hi >= 0 ? hex_digit(x->p[1]) : -1;
      if (e == 'n')
        c = '\n';
      else if (e == 't')
        c = '\t';
      else if (e == '"' || e == '\\')
        c = e;
      else if (lo >= 0) {
        c = (char)(hi * 16 + lo);
        x->p += 2;
      } else
        return ir_lex_fail(x, x->p - 1, "unknown escape; there are \\n \\t \\\" \\\\ \\xNN");
    }
    if (!c)
      return ir_lex_fail(x, x->p - 1, "texts hold no zero byte");
    s[n++] = c;
  }
  *out = symtab_intern(m->syms, s, n);
  return true;
}

bool ir_lex_name(struct ir_lex *x, struct ir_module *m, const char *what, struct sym *out) {
  struct ir_span w = peek_word(x);
  if (w.n) {
    x->p += w.n;
    *out = symtab_intern(m->syms, w.s, w.n);
    return true;
  }
  if (!ir_lex_is(x, '"'))
    return expected(x, what);
  const char *first = x->p;
  if (!ir_lex_string(x, m, out))
    return false;
  return out->id || ir_lex_fail(x, first, "%s expected, the text is empty", what);
}

bool ir_lex_value(struct ir_lex *x, struct ir_span *out) {
  if (!ir_lex_is(x, '%'))
    return expected(x, "a value (%name)");
  out->s = x->p + 1;
  out->n = 0;
  while (out->s + out->n < x->end && ir_is_word_byte(out->s[out->n]) && out->s[out->n] != '.')
    out->n++;
  if (!out->n)
    return ir_lex_fail(x, x->p, "a name or number expected after `%%`");
  x->p += out->n + 1;
  return true;
}

/* Digits at the cursor, without sign. False: none, or out of range (then failed). */
static bool read_digits(struct ir_lex *x, uint64_t *out) {
  const char *first = x->p;
  *out = 0;
  for (; x->p < x->end && *x->p >= '0' && *x->p <= '9'; x->p++)
    if (__builtin_mul_overflow(*out, UINT64_C(10), out) ||
        __builtin_add_overflow(*out, (uint64_t)(*x->p - '0'), out))
      return ir_lex_fail(x, first, "the number does not fit 64 bits");
  return x->p > first || expected(x, "a number");
}

bool ir_lex_int(struct ir_lex *x, int64_t lo, int64_t hi, int64_t *out) {
  skip_blanks(x);
  const char *first = x->p;
  uint64_t u;
  bool neg = ir_lex_take(x, '-');
  if (!read_digits(x, &u))
    return false;
  if (u > (uint64_t)INT64_MAX + neg)
    return ir_lex_fail(x, first, "the number does not fit 64 bits");
  int64_t v = neg ? (int64_t)(0 - u) : (int64_t)u;
  if (v < lo || v > hi)
    return ir_lex_fail(x, first, "%lld is out of range: %lld to %lld", (long long)v, (long long)lo,
                       (long long)hi);
  *out = v;
  return true;
}

bool ir_lex_take_dtype(struct ir_lex *x, enum dtype *out) {
  struct ir_span w = peek_word(x);
  char name[16];
  if (!w.n || w.n >= sizeof name)
    return false;
  memcpy(name, w.s, w.n);
  name[w.n] = 0;
  if (!dtype_find(name, out))
    return false;
  x->p += w.n;
  return true;
}

bool ir_lex_dtype(struct ir_lex *x, enum dtype *out) {
  if (ir_lex_take_dtype(x, out))
    return true;
  struct ir_span w = peek_word(x);
  return w.n ? ir_lex_fail(x, w.s, "`%.*s` is not a dtype", IR_SPAN(w)) : expected(x, "a dtype");
}

bool ir_lex_type(struct ir_lex *x, struct ir_type *out) {
  *out = (struct ir_type){.kind = IR_SCALAR};
  if (ir_lex_take_word(x, "none")) {
    out->kind = IR_NONE;
    return true;
  }
  enum dtype t;
  if (ir_lex_take_word(x, "view"))
    out->kind = IR_VIEW;
  else if (ir_lex_take_word(x, "ptr"))
    out->kind = IR_PTR;
  if (!ir_lex_dtype(x, &t))
    return false;
  out->dtype = (uint8_t)t;
  if (out->kind == IR_PTR)
    return true;
  /* `f32(4)` is a tile; a blank before the parenthesis starts a list of block arguments. */
  if (x->p == x->end || *x->p != '(')
    return out->kind == IR_SCALAR || ir_lex_expect(x, '(', "after the dtype of a view");
  if (out->kind == IR_SCALAR)
    out->kind = IR_TILE;
  x->p++;
  if (ir_lex_take(x, ')'))
    return true;
  do {
    if (out->rank == IR_MAX_RANK)
      return ir_lex_fail(x, x->p, "more than %d dims", IR_MAX_RANK);
    int64_t *dim = &out->dim[out->rank++];
    if (out->kind == IR_VIEW && ir_lex_take(x, '?'))
      *dim = IR_DYN;
    else if (!ir_lex_int(x, 0, INT64_MAX, dim))
      return false;
  } while (ir_lex_take(x, ','));
  return ir_lex_expect(x, ')', "after the dims");
}

bool ir_lex_expr(struct ir_lex *x, struct ir_module *m, char close, struct expr *out) {
  *out = (struct expr){0};
  if (ir_lex_take(x, '?'))
    return true;
  if (ir_lex_end(x))
    return expected(x, "an expression");
  const char *stop = x->p, *error, *at;
  for (int depth = 0; stop < x->end && *stop != ';' && (depth || *stop != close); stop++) {
    if (*stop == ',' && !depth)
      break;
    depth += *stop == '(' ? 1 : *stop == ')' ? -1 : 0;
    if (depth < 0)
      break;
  }
  *out = expr_parse(&m->exprs, x->p, stop, &error, &at);
  if (!out->id)
    return ir_lex_fail(x, at, "%s", error);
  x->p = stop;
  return true;
}

/* The C library reads the decimal point of the process's locale; the text always has a dot. */
static bool read_double(const char *s, size_t n, double *out) {
  char t[420];
  const char *point = localeconv()->decimal_point;
  size_t k = 0, len = strlen(point);
  for (size_t i = 0; i < n; i++) {
    if (k + len + 1 >= sizeof t)
      return false;
    if (s[i] == '.') {
      memcpy(t + k, point, len);
      k += len;
    } else {
      t[k++] = s[i];
    }
  }
  t[k] = 0;
  char *end;
  *out = strtod(t, &end);
  return end == t + k && !isinf(*out);
}

/* `nan:0x7ff8...`: the cursor is behind `nan`. */
static bool read_nan_bits(struct ir_lex *x, const char *first, double *out) {
  uint64_t bits = 0;
  x->p++;
  if (x->end - x->p < 3 || x->p[0] != '0' || x->p[1] != 'x')
    return ir_lex_fail(x, first, "nan: wants the 64 bits as 0x...");
  x->p += 2;
  int digits = 0;
  for (; x->p < x->end && hex_digit(*x->p) >= 0; x->p++, digits++)
    bits = bits << 4 | (unsigned)hex_digit(*x->p);
  memcpy(out, &bits, sizeof bits);
  return (digits && digits <= 16 && isnan(*out)) ||
         ir_lex_fail(x, first, "these bits are not a NaN");
}

bool ir_lex_literal(struct ir_lex *x, struct ir_literal *out) {
  *out = (struct ir_literal){0};
  if (ir_lex_end(x))
    return expected(x, "a number");
  const char *first = out->at = x->p;
  bool neg = ir_lex_take(x, '-');
  struct ir_span w = peek_word(x);
  if (w.n) {
    x->p += w.n;
    out->is_float = true;
    out->f = neg ? -(double)INFINITY : (double)INFINITY;
    if (span_is(w, "inf"))
      return true;
    out->f = (double)NAN;
    if (!neg && span_is(w, "nan"))
      return x->p == x->end || *x->p != ':' || read_nan_bits(x, first, &out->f);
    out->is_float = false;
    out->is_bool = true;
    out->i = span_is(w, "true");
    if (!neg && (out->i || span_is(w, "false")))
      return true;
    return ir_lex_fail(x, first, "a number expected, found `%.*s`", IR_SPAN(w));
  }
  w = (struct ir_span){x->p, 0};
  while (w.s + w.n < x->end &&
         ((w.s[w.n] >= '0' && w.s[w.n] <= '9') || w.s[w.n] == '.' || w.s[w.n] == 'e' ||
          ((w.s[w.n] == '-' || w.s[w.n] == '+') && w.n && w.s[w.n - 1] == 'e')))
    out->is_float |= w.s[w.n] == '.' || w.s[w.n] == 'e', w.n++;
  if (!w.n)
    return expected(x, "a number");
  if (!out->is_float) {
    x->p = first;
    return ir_lex_int(x, INT64_MIN, INT64_MAX, &out->i);
  }
  x->p += w.n;
  if (!read_double(w.s, w.n, &out->f))
    return ir_lex_fail(x, first, "`%.*s` is not a number that f64 can hold", IR_SPAN(w));
  if (neg)
    out->f = -out->f;
  return true;
}

bool ir_literal_fit(struct ir_lex *x, const struct ir_literal *l, enum dtype t,
                    struct ir_attr *out) {
  if (!dtype_is_float(t)) {
    if (l->is_float)
      return ir_lex_fail(x, l->at, "%s is no float: a whole number expected", dtype_name(t));
    if (l->is_bool && t != DT_BOOL)
      return ir_lex_fail(x, l->at, "true and false are of bool, not of %s", dtype_name(t));
    out->i = l->i;
    return true;
  }
  if (l->is_bool)
    return ir_lex_fail(x, l->at, "true and false are of bool, not of %s", dtype_name(t));
  double f = l->is_float ? l->f : (double)l->i;
  if (isnan(f)) {
    out->f = t == DT_F64 ? f : num_round(t, f);
    return true;
  }
  out->f = isinf(f) ? f : num_round(t, f);
  if (!isinf(f) && (isinf(out->f) || fabs(f) > num_max(t)))
    return ir_lex_fail(x, l->at, "%.17g is out of range of %s", f, dtype_name(t));
  return true;
}
