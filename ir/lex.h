/* The reading side of the text format: a cursor in one line, and what can stand in it.
 *
 * Functions that return bool report a diagnostic before they return false; only the first of a line
 * is kept, so that a line gives one error. Words, values and strings point into the text. */
#ifndef KILN_IR_LEX_H
#define KILN_IR_LEX_H

#include "ir/ir.h"

struct ir_lex {
  struct arena *arena;
  struct diag_sink *diags;
  uint32_t file, line;
  const char *start, *p, *end; /* of the line, without its newline */
  bool failed;                 /* something was reported for this line */
  bool any_failed;             /* ... or for an earlier one */
};

struct ir_span {
  const char *s;
  size_t n;
};

/* A span for "%.*s": at most 40 bytes are shown. */
#define IR_SPAN(w) (int)((w).n < 40 ? (w).n : 40), (w).s

struct diag_loc ir_lex_at(const struct ir_lex *x, const char *p);
/* Reports at p; always false. */
bool ir_lex_fail(struct ir_lex *x, const char *p, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Is the rest of the line blank or a comment? */
bool ir_lex_end(struct ir_lex *x);
/* Is c next? */
bool ir_lex_is(struct ir_lex *x, char c);
bool ir_lex_take(struct ir_lex *x, char c);
bool ir_lex_take_word(struct ir_lex *x, const char *word);
bool ir_lex_take_dtype(struct ir_lex *x, enum dtype *out);
/* A `{` that is the last thing of the line opens a block; consumes it. */
bool ir_lex_take_open(struct ir_lex *x);

/* Fails with "`c` expected after `where`". */
bool ir_lex_expect(struct ir_lex *x, char c, const char *where);
/* Fails unless the line ends here. */
bool ir_lex_expect_end(struct ir_lex *x);
bool ir_lex_word(struct ir_lex *x, const char *what, struct ir_span *out);
/* A word or a quoted name, interned; not empty. */
bool ir_lex_name(struct ir_lex *x, struct ir_module *m, const char *what, struct sym *out);
/* A quoted text, unescaped and interned. */
bool ir_lex_string(struct ir_lex *x, struct ir_module *m, struct sym *out);
/* %name; out without the sign. */
bool ir_lex_value(struct ir_lex *x, struct ir_span *out);
bool ir_lex_int(struct ir_lex *x, int64_t lo, int64_t hi, int64_t *out);
bool ir_lex_dtype(struct ir_lex *x, enum dtype *out);
bool ir_lex_type(struct ir_lex *x, struct ir_type *out);
/* Up to the next `,`, `close` or end of line outside parentheses; `?` gives no expression. */
bool ir_lex_expr(struct ir_lex *x, struct ir_module *m, char close, struct expr *out);

/* A number, true or false, as written; its dtype is known only later. */
struct ir_literal {
  const char *at;
  bool is_float, is_bool;
  int64_t i;
  double f;
};
bool ir_lex_literal(struct ir_lex *x, struct ir_literal *out);
/* As a value of dtype t: a decimal number is rounded to nearest; one out of range fails. */
bool ir_literal_fit(struct ir_lex *x, const struct ir_literal *l, enum dtype t,
                    struct ir_attr *out);

#endif
