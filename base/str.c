/* String builder and interned names; see str.h. */
#include "base/str.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void reserve(struct strbuf *b, size_t more) {
  if (b->n + more + 1 <= b->cap)
    return;
  size_t cap = b->cap ? b->cap * 2 : 128;
  while (cap < b->n + more + 1)
    cap *= 2;
  char *s = arena_get(b->arena, cap);
  if (b->n)
    memcpy(s, b->s, b->n);
  s[b->n] = 0;
  b->s = s;
  b->cap = cap;
}

void sb_put(struct strbuf *b, const char *s, size_t n) {
  reserve(b, n);
  if (n)
    memcpy(b->s + b->n, s, n);
  b->n += n;
  b->s[b->n] = 0;
}

void sb_puts(struct strbuf *b, const char *s) {
  sb_put(b, s, strlen(s));
}

void sb_putc(struct strbuf *b, char c) {
  sb_put(b, &c, 1);
}

void sb_vprintf(struct strbuf *b, const char *fmt, va_list ap) {
  va_list again;
  va_copy(again, ap);
  reserve(b, 64);
  int n = vsnprintf(b->s + b->n, b->cap - b->n, fmt, ap);
  KILN_ASSERT(n >= 0);
  if ((size_t)n >= b->cap - b->n) {
    reserve(b, (size_t)n);
    vsnprintf(b->s + b->n, b->cap - b->n, fmt, again);
  }
  va_end(again);
  b->n += (size_t)n;
}

void sb_printf(struct strbuf *b, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  sb_vprintf(b, fmt, ap);
  va_end(ap);
}

const char *sb_str(const struct strbuf *b) {
  return b->n ? b->s : "";
}

void sb_put_double(struct strbuf *b, double x) {
  char t[40];
  if (isnan(x)) {
    sb_puts(b, "nan");
    return;
  }
  if (isinf(x)) {
    sb_puts(b, x > 0 ? "inf" : "-inf");
    return;
  }
  for (int digits = 9; digits <= 17; digits++) {
    snprintf(t, sizeof t, "%.*g", digits, x);
    if (strtod(t, NULL) == x)
      break;
  }
  /* A dot, whatever the locale of the process. */
  const char *point = localeconv()->decimal_point;
  char *at = str_eq(point, ".") ? NULL : strstr(t, point);
  if (at) {
    *at = '.';
    memmove(at + 1, at + strlen(point), strlen(at + strlen(point)) + 1);
  }
  sb_puts(b, t);
  if (!strpbrk(t, ".e"))
    sb_puts(b, ".0");
}

/* Length of the valid UTF-8 sequence at s (at most n bytes), 0 if there is none. */
static size_t utf8_len(const unsigned char *s, size_t n) {
  size_t len = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
  if (len == 0 || len > n)
    return 0;
  uint32_t c = len == 1 ? s[0] : s[0] & (0xffu >> (len + 1));
  for (size_t i = 1; i < len; i++) {
    if (s[i] >> 6 != 2)
      return 0;
    c = c << 6 | (s[i] & 0x3fu);
  }
  static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
  return c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : len;
}

/* U+0080 to U+009F are control characters, too. */
static bool is_control(const unsigned char *s, size_t len) {
  return len == 1 ? s[0] < 0x20 || s[0] == 0x7f : len == 2 && s[0] == 0xc2 && s[1] < 0xa0;
}

void sb_put_shown(struct strbuf *b, const char *text, size_t n, bool lines) {
  const unsigned char *s = (const unsigned char *)text;
  for (size_t i = 0; i < n;) {
    size_t len = utf8_len(s + i, n - i);
    bool is_space = s[i] == '\t' || (lines && s[i] == '\n');
    bool shown = len && (is_space || !is_control(s + i, len));
    size_t end = i + (len ? len : 1);
    for (; i < end; i++)
      if (shown)
        sb_putc(b, text[i]);
      else
        sb_printf(b, "\\x%02x", s[i]);
  }
}

void sb_put_json(struct strbuf *b, const char *text, size_t n) {
  const unsigned char *s = (const unsigned char *)text;
  sb_putc(b, '"');
  for (size_t i = 0; i < n;) {
    size_t len = utf8_len(s + i, n - i);
    if (len == 0) {
      sb_puts(b, "\xef\xbf\xbd");
      i++;
      continue;
    }
    if (s[i] == '"' || s[i] == '\\')
      sb_printf(b, "\\%c", s[i]);
    else if (s[i] == '\n')
      sb_puts(b, "\\n");
    else if (s[i] < 0x20 || s[i] == 0x7f)
      sb_printf(b, "\\u%04x", s[i]);
    else
      sb_put(b, text + i, len);
    i += len;
  }
  sb_putc(b, '"');
}

struct symtab {
  struct arena *arena;
  struct map by_hash;
  VEC(struct sym_text {
    const char *s;
    size_t n;
  })
  texts;
};

struct symtab *symtab_new(struct arena *a) {
  struct symtab *t = ARENA_NEW(a, struct symtab);
  t->arena = a;
  map_init(&t->by_hash, a);
  symtab_intern(t, "", 0);
  return t;
}

static uint64_t sym_hash(const char *s, size_t n) {
#ifdef KILN_STRESS
  (void)s;
  return n & 1; /* forced collisions */
#else
  return hash_quick(s, n);
#endif
}

bool symtab_find(const struct symtab *t, const char *s, size_t n, struct sym *out) {
  uint32_t pos = 0, id;
  uint64_t h = sym_hash(s, n);
  while (map_find_from(&t->by_hash, h, &pos, &id))
    if (t->texts.at[id].n == n && memcmp(t->texts.at[id].s, s, n) == 0) {
      out->id = id;
      return true;
    }
  return false;
}

struct sym symtab_intern(struct symtab *t, const char *s, size_t n) {
  struct sym out;
  if (symtab_find(t, s, n, &out))
    return out;
  out.id = t->texts.n;
  struct sym_text text = {arena_strndup(t->arena, s, n), n};
  VEC_PUSH(t->arena, &t->texts, text);
  map_add(&t->by_hash, sym_hash(s, n), out.id);
  return out;
}

struct sym symtab_get(struct symtab *t, const char *s) {
  return symtab_intern(t, s, strlen(s));
}

const char *symtab_str(const struct symtab *t, struct sym s) {
  KILN_ASSERT(s.id < t->texts.n);
  return t->texts.at[s.id].s;
}
