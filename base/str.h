/* String builder over an arena, and interned names. */
#ifndef KILN_BASE_STR_H
#define KILN_BASE_STR_H

#include "base/mem.h"

#include <stdarg.h>
#include <string.h>

/* A growing NUL-terminated text. Zero-initialise with its arena: (struct strbuf){.arena = a}. */
struct strbuf {
  struct arena *arena;
  char *s; /* NULL while empty; see sb_str */
  size_t n, cap;
};

void sb_put(struct strbuf *b, const char *s, size_t n);
void sb_puts(struct strbuf *b, const char *s);
void sb_putc(struct strbuf *b, char c);
void sb_printf(struct strbuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sb_vprintf(struct strbuf *b, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));
/* The text so far; "" while empty. Valid until the next append. */
const char *sb_str(const struct strbuf *b);
/* A double that reads back to the same bits, shortest of %.{9,17}g; integral values keep ".0";
 * "inf", "-inf", "nan". */
void sb_put_double(struct strbuf *b, double x);
/* `s` as a double-quoted string with JSON escapes (UTF-8 passes through, bytes that are not UTF-8
 * become U+FFFD). */
void sb_put_json(struct strbuf *b, const char *s, size_t n);
/* Text for a terminal: control characters other than tabs (lines: and line feeds) and bytes that
 * are no UTF-8 as \xNN. */
void sb_put_shown(struct strbuf *b, const char *s, size_t n, bool lines);

static inline bool str_eq(const char *a, const char *b) {
  return strcmp(a, b) == 0;
}
static inline bool str_starts(const char *s, const char *prefix) {
  return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* Interned names: equal texts have equal ids; id 0 is the empty string. */
struct sym {
  uint32_t id;
};

struct symtab; /* str.c; lives in the arena given to symtab_new */

struct symtab *symtab_new(struct arena *a);
struct sym symtab_intern(struct symtab *t, const char *s, size_t n);
struct sym symtab_get(struct symtab *t, const char *s);
/* Interns nothing: false if `s` is unknown. */
bool symtab_find(const struct symtab *t, const char *s, size_t n, struct sym *out);
const char *symtab_str(const struct symtab *t, struct sym s);

#endif
