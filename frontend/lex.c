/* Lexer of Lua 5.4; see ast.h. Follows llex.c in what it accepts and how it words errors, but keeps
 * columns, and decodes a string only when it has escapes. */
#include "frontend/ast.h"

#include "base/check.h"
#include "base/hash.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ORDER: enum fe_token_type from FE_T_AND on. */
static const char *const keywords[] = {"and",   "break", "do",       "else", "elseif", "end",
                                       "false", "for",   "function", "goto", "if",     "in",
                                       "local", "nil",   "not",      "or",   "repeat", "return",
                                       "then",  "true",  "until",    "while"};
_Static_assert(sizeof keywords / sizeof *keywords == FE_T_WHILE - FE_T_AND + 1, "keyword table");

/* ---- names ---- */

static uint32_t hash_text(const char *s, size_t n) {
  if (n > 32)
    return (uint32_t)hash_quick(s, n);
  uint32_t h = UINT32_C(2166136261);
  for (size_t i = 0; i < n; i++)
    h = (h ^ (unsigned char)s[i]) * UINT32_C(16777619);
  return h ^ (h >> 15);
}

static void grow_names(struct fe_names *t) {
  uint32_t cap = t->cap ? t->cap * 2 : 256;
  struct fe_name **at = ARENA_ARRAY(t->arena, struct fe_name *, cap);
  for (uint32_t i = 0; i < t->cap; i++)
    if (t->at[i]) {
      uint32_t k = t->at[i]->hash & (cap - 1);
      while (at[k])
        k = (k + 1) & (cap - 1);
      at[k] = t->at[i];
    }
  t->at = at;
  t->cap = cap;
}

void fe_names_init(struct fe_names *t, struct arena *a) {
  memset(t, 0, sizeof *t);
  t->arena = a;
  for (int i = 0; i <= FE_T_WHILE - FE_T_AND; i++)
    fe_name_get(t, keywords[i], strlen(keywords[i]))->keyword = (uint16_t)(FE_T_AND + i);
}

struct fe_name *fe_name_get(struct fe_names *t, const char *s, size_t n) {
  if (t->n * 2 >= t->cap)
    grow_names(t);
  uint32_t hash = hash_text(s, n), k = hash & (t->cap - 1);
  for (; t->at[k]; k = (k + 1) & (t->cap - 1))
    if (t->at[k]->hash == hash && t->at[k]->n == n && memcmp(t->at[k]->s, s, n) == 0)
      return t->at[k];
  struct fe_name *name = ARENA_NEW(t->arena, struct fe_name);
  name->s = arena_strndup(t->arena, s, n);
  name->n = n;
  name->hash = hash;
  t->at[k] = name;
  t->n++;
  return name;
}

/* ---- characters ---- */

enum { IS_ALPHA = 1, IS_DIGIT = 2, IS_HEX = 4, IS_SPACE = 8 };

static unsigned char_class(int c) {
  if (c >= '0' && c <= '9')
    return IS_DIGIT | IS_HEX;
  if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))
    return IS_ALPHA | IS_HEX;
  if ((c >= 'g' && c <= 'z') || (c >= 'G' && c <= 'Z') || c == '_')
    return IS_ALPHA;
  if (c == ' ' || (c >= '\t' && c <= '\r'))
    return IS_SPACE;
  return 0;
}

static bool is_class(int c, unsigned classes) {
  return (char_class(c) & classes) != 0;
}

/* The character at p + ahead, or -1 past the end. */
static int look(const struct fe_lexer *x, size_t ahead) {
  return (size_t)(x->end - x->p) > ahead ? (unsigned char)x->p[ahead] : -1;
}

static unsigned hex_value(int c) {
  return (unsigned)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
}

/* p is at \n or \r: passes it, and a following one of the other kind. */
static void pass_newline(struct fe_lexer *x) {
  char c = *x->p++;
  int d = look(x, 0);
  if ((d == '\n' || d == '\r') && d != c)
    x->p++;
  x->line++;
  x->line_start = x->p;
}

/* ---- errors ---- */

void fe_lex_error(struct fe_lexer *x, enum diag_id id, uint32_t line, uint32_t col, const char *fmt,
                  ...) {
  struct strbuf b = {.arena = x->arena};
  va_list ap;
  va_start(ap, fmt);
  sb_vprintf(&b, fmt, ap);
  va_end(ap);
  x->fail(x->user, id, (struct diag_loc){x->file, line, col}, sb_str(&b));
  KILN_UNREACHABLE();
}

const char *fe_token_name(struct fe_lexer *x, int type) {
  switch (type) {
  case FE_T_EOF: return "<eof>";
  case FE_T_NAME: return "<name>";
  case FE_T_STRING: return "<string>";
  case FE_T_INTEGER: return "<integer>";
  case FE_T_NUMBER: return "<number>";
  case FE_T_CONCAT: return "'..'";
  case FE_T_DOTS: return "'...'";
  case FE_T_EQ: return "'=='";
  case FE_T_GE: return "'>='";
  case FE_T_LE: return "'<='";
  case FE_T_NE: return "'~='";
  case FE_T_SHL: return "'<<'";
  case FE_T_SHR: return "'>>'";
  case FE_T_IDIV: return "'//'";
  case FE_T_DBCOLON: return "'::'";
  default: break;
  }
  if (type >= FE_T_AND)
    return arena_printf(x->arena, "'%s'", keywords[type - FE_T_AND]);
  if (type >= 32 && type < 127)
    return arena_printf(x->arena, "'%c'", type);
  return arena_printf(x->arena, "'<\\%d>'", type);
}

void fe_near_error(struct fe_lexer *x, const char *message) {
  const struct fe_token *t = &x->now;
  bool has_text = t->type >= FE_T_NAME && t->type <= FE_T_NUMBER;
  if (has_text && t->n <= 200)
    fe_lex_error(x, DIAG_SYNTAX, t->line, t->col, "%s near '%.*s'", message, (int)t->n, t->text);
  if (has_text)
    fe_lex_error(x, DIAG_SYNTAX, t->line, t->col, "%s near '%.200s...'", message, t->text);
  fe_lex_error(x, DIAG_SYNTAX, t->line, t->col, "%s near %s", message, fe_token_name(x, t->type));
}

/* An error inside token t, whose text so far reaches to `to`. */
static _Noreturn void token_error(struct fe_lexer *x, const struct fe_token *t, const char *to,
                                  const char *message) {
  size_t n = (size_t)(to - t->text);
  if (n > 200)
    fe_lex_error(x, DIAG_SYNTAX, t->line, t->col, "%s near '%.200s...'", message, t->text);
  fe_lex_error(x, DIAG_SYNTAX, t->line, t->col, "%s near '%.*s'", message, (int)n, t->text);
}

/* ---- long brackets ---- */

/* Number of = of the opening long bracket at p, or -1 if there is none; -2 for "[=" and no second
 * bracket. */
static int long_level(const struct fe_lexer *x) {
  size_t i = 1;
  while (look(x, i) == '=')
    i++;
  if (look(x, i) == '[')
    return (int)(i - 1);
  return i == 1 ? -1 : -2;
}

/* p is at the opening bracket. Passes everything; the content is in *from..*to, and *has_cr is set
 * where line ends need to become \n. */
static void pass_long(struct fe_lexer *x, const struct fe_token *t, int level, const char *what,
                      const char **from, const char **to, bool *has_cr) {
  x->p += level + 2;
  if (look(x, 0) == '\n' || look(x, 0) == '\r')
    pass_newline(x);
  *from = x->p;
  *has_cr = false;
  for (;;) {
    int c = look(x, 0);
    if (c < 0)
      fe_lex_error(x, DIAG_SYNTAX, t->line, t->col,
                   "unfinished long %s (starting at line %u) near <eof>", what, t->line);
    if (c == '\n' || c == '\r') {
      *has_cr |= c == '\r' || look(x, 1) == '\r';
      pass_newline(x);
      continue;
    }
    if (c == ']') {
      int i = 1;
      while (look(x, (size_t)i) == '=')
        i++;
      if (i - 1 == level && look(x, (size_t)i) == ']') {
        *to = x->p;
        x->p += i + 1;
        return;
      }
    }
    x->p++;
  }
}

static void read_long_string(struct fe_lexer *x, struct fe_token *t, int level) {
  const char *from, *to;
  bool has_cr;
  pass_long(x, t, level, "string", &from, &to, &has_cr);
  t->type = FE_T_STRING;
  if (!has_cr) {
    t->u.name = fe_name_get(x->names, from, (size_t)(to - from));
    return;
  }
  struct strbuf b = {.arena = x->arena};
  while (from < to) {
    char c = *from++;
    if (c == '\n' || c == '\r') {
      if (from < to && (*from == '\n' || *from == '\r') && *from != c)
        from++;
      c = '\n';
    }
    sb_putc(&b, c);
  }
  t->u.name = fe_name_get(x->names, sb_str(&b), b.n);
}

/* ---- strings ---- */

static void put_utf8(struct strbuf *b, uint32_t c) {
  char buf[8];
  unsigned n = 0;
  if (c < 0x80) {
    sb_putc(b, (char)c);
    return;
  }
  uint32_t first_max = 0x3f;
  do {
    buf[n++] = (char)(0x80 | (c & 0x3f));
    c >>= 6;
    first_max >>= 1;
  } while (c > first_max);
  buf[n++] = (char)((~first_max << 1) | c);
  while (n)
    sb_putc(b, buf[--n]);
}

/* The text of an erroneous escape reaches one character past p, as in stock Lua. */
static _Noreturn void escape_error(struct fe_lexer *x, const struct fe_token *t,
                                   const char *message) {
  token_error(x, t, x->p < x->end ? x->p + 1 : x->p, message);
}

static void read_utf8_escape(struct fe_lexer *x, const struct fe_token *t, struct strbuf *b) {
  if (look(x, 0) != '{')
    escape_error(x, t, "missing '{'");
  x->p++;
  if (!is_class(look(x, 0), IS_HEX))
    escape_error(x, t, "hexadecimal digit expected");
  uint32_t c = 0;
  for (; is_class(look(x, 0), IS_HEX); x->p++) {
    if (c > (UINT32_C(0x7fffffff) >> 4))
      escape_error(x, t, "UTF-8 value too large");
    c = c * 16 + hex_value(look(x, 0));
  }
  if (look(x, 0) != '}')
    escape_error(x, t, "missing '}'");
  x->p++;
  put_utf8(b, c);
}

static void read_escape(struct fe_lexer *x, const struct fe_token *t, struct strbuf *b) {
  static const char letters[] = "abfnrtv\\\"'", values[] = "\a\b\f\n\r\t\v\\\"'";
  int c = look(x, 0);
  const char *letter = c > 0 ? strchr(letters, c) : NULL;
  if (letter) {
    sb_putc(b, values[letter - letters]);
    x->p++;
  } else if (c == 'x') {
    unsigned v = 0;
    for (int i = 0; i < 2; i++) {
      x->p++;
      if (!is_class(look(x, 0), IS_HEX))
        escape_error(x, t, "hexadecimal digit expected");
      v = v * 16 + hex_value(look(x, 0));
    }
    x->p++;
    sb_putc(b, (char)v);
  } else if (c == 'u') {
    x->p++;
    read_utf8_escape(x, t, b);
  } else if (c == '\n' || c == '\r') {
    pass_newline(x);
    sb_putc(b, '\n');
  } else if (c == 'z') {
    x->p++;
    while (is_class(look(x, 0), IS_SPACE))
      if (look(x, 0) == '\n' || look(x, 0) == '\r')
        pass_newline(x);
      else
        x->p++;
  } else if (is_class(c, IS_DIGIT)) {
    unsigned v = 0;
    for (int i = 0; i < 3 && is_class(look(x, 0), IS_DIGIT); i++)
      v = v * 10 + hex_value(*x->p++);
    if (v > 255)
      escape_error(x, t, "decimal escape too large");
    sb_putc(b, (char)v);
  } else if (c >= 0) { /* at the end of input the string is unfinished, which is said then */
    escape_error(x, t, "invalid escape sequence");
  }
}

static void read_string(struct fe_lexer *x, struct fe_token *t) {
  char quote = *x->p++;
  const char *from = x->p; /* start of what is not in b yet */
  struct strbuf b = {.arena = x->arena};
  for (;;) {
    int c = look(x, 0);
    if (c == quote)
      break;
    if (c < 0)
      fe_lex_error(x, DIAG_SYNTAX, t->line, t->col, "unfinished string near <eof>");
    if (c == '\n' || c == '\r')
      token_error(x, t, x->p, "unfinished string");
    if (c != '\\') {
      x->p++;
      continue;
    }
    sb_put(&b, from, (size_t)(x->p - from));
    x->p++;
    read_escape(x, t, &b);
    from = x->p;
  }
  t->type = FE_T_STRING;
  if (b.s || b.n) {
    sb_put(&b, from, (size_t)(x->p - from));
    t->u.name = fe_name_get(x->names, sb_str(&b), b.n);
  } else {
    t->u.name = fe_name_get(x->names, from, (size_t)(x->p - from));
  }
  x->p++;
}

/* ---- numerals ---- */

static void read_number(struct fe_lexer *x, struct fe_token *t) {
  bool hex = *x->p == '0' && (look(x, 1) | 32) == 'x';
  const char exponent = hex ? 'p' : 'e';
  bool plain = !hex;
  if (hex)
    x->p += 2;
  for (;;) {
    int c = look(x, 0);
    if (c >= 0 && (c | 32) == exponent) {
      plain = false;
      x->p++;
      if (look(x, 0) == '+' || look(x, 0) == '-')
        x->p++;
    } else if (is_class(c, IS_HEX) || c == '.') {
      plain = plain && is_class(c, IS_DIGIT);
      x->p++;
    } else {
      break;
    }
  }
  if (is_class(look(x, 0), IS_ALPHA)) {
    x->p++; /* shown in the message */
    token_error(x, t, x->p, "malformed number");
  }
  size_t n = (size_t)(x->p - t->text);
  if (plain && n <= 18) { /* the common case; cannot overflow */
    lua_Integer v = 0;
    for (size_t i = 0; i < n; i++)
      v = v * 10 + (t->text[i] - '0');
    t->type = FE_T_INTEGER;
    t->u.i = v;
    return;
  }
  if (lua_stringtonumber(x->L, arena_strndup(x->arena, t->text, n)) == 0)
    token_error(x, t, x->p, "malformed number");
  if (lua_isinteger(x->L, -1)) {
    t->type = FE_T_INTEGER;
    t->u.i = lua_tointeger(x->L, -1);
  } else {
    t->type = FE_T_NUMBER;
    t->u.f = lua_tonumber(x->L, -1);
  }
  lua_pop(x->L, 1);
}

/* ---- tokens ---- */

static void pass_space(struct fe_lexer *x) {
  for (;;) {
    int c = look(x, 0);
    if (c == ' ' || c == '\t' || c == '\f' || c == '\v') {
      x->p++;
    } else if (c == '\n' || c == '\r') {
      pass_newline(x);
    } else if (c == '-' && look(x, 1) == '-') {
      struct fe_token t = {.line = x->line, .col = (uint32_t)(x->p - x->line_start) + 1};
      x->p += 2;
      int level = look(x, 0) == '[' ? long_level(x) : -1;
      if (level >= 0) {
        const char *from, *to;
        bool has_cr;
        pass_long(x, &t, level, "comment", &from, &to, &has_cr);
      } else {
        while (look(x, 0) >= 0 && *x->p != '\n' && *x->p != '\r')
          x->p++;
      }
    } else {
      return;
    }
  }
}

/* The type of an operator or punctuation token at p, and its length. */
static int read_sign(const struct fe_lexer *x, size_t *n) {
  int c = look(x, 0), d = look(x, 1);
  *n = 2;
  if (c == '.' && d == '.') {
    if (look(x, 2) != '.')
      return FE_T_CONCAT;
    *n = 3;
    return FE_T_DOTS;
  }
  if (d == '=' && (c == '=' || c == '<' || c == '>' || c == '~'))
    return c == '=' ? FE_T_EQ : c == '<' ? FE_T_LE : c == '>' ? FE_T_GE : FE_T_NE;
  if (c == d && (c == '<' || c == '>' || c == '/' || c == ':'))
    return c == '<' ? FE_T_SHL : c == '>' ? FE_T_SHR : c == '/' ? FE_T_IDIV : FE_T_DBCOLON;
  *n = 1;
  return c;
}

static void read_token(struct fe_lexer *x, struct fe_token *t) {
  pass_space(x);
  t->line = x->line;
  t->col = (uint32_t)(x->p - x->line_start) + 1;
  t->text = x->p;
  int c = look(x, 0);
  if (c < 0) {
    t->type = FE_T_EOF;
  } else if (is_class(c, IS_ALPHA)) {
    do
      x->p++;
    while (is_class(look(x, 0), IS_ALPHA | IS_DIGIT));
    t->u.name = fe_name_get(x->names, t->text, (size_t)(x->p - t->text));
    t->type = t->u.name->keyword ? t->u.name->keyword : FE_T_NAME;
  } else if (is_class(c, IS_DIGIT) || (c == '.' && is_class(look(x, 1), IS_DIGIT))) {
    read_number(x, t);
  } else if (c == '"' || c == '\'') {
    read_string(x, t);
  } else {
    int level = c == '[' ? long_level(x) : -1;
    if (level == -2) {
      for (x->p++; look(x, 0) == '='; x->p++)
        ;
      token_error(x, t, x->p, "invalid long string delimiter");
    }
    if (level >= 0) {
      read_long_string(x, t, level);
    } else {
      size_t n;
      t->type = read_sign(x, &n);
      x->p += n;
    }
  }
  t->n = (size_t)(x->p - t->text);
}

void fe_lex_init(struct fe_lexer *x, uint32_t file, const char *text, size_t n) {
  x->p = x->line_start = text;
  x->end = text + n;
  x->line = 1;
  x->file = file;
  x->has_ahead = false;
  if (n >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
    x->p = x->line_start = text + 3;
  if (look(x, 0) == '#') /* a first line for the shell; as in stock Lua, only \n ends it */
    while (look(x, 0) >= 0 && *x->p != '\n')
      x->p++;
  fe_lex_next(x);
}

void fe_lex_next(struct fe_lexer *x) {
  if (x->has_ahead) {
    x->now = x->ahead;
    x->has_ahead = false;
  } else {
    read_token(x, &x->now);
  }
}

int fe_lex_peek(struct fe_lexer *x) {
  KILN_ASSERT(!x->has_ahead);
  read_token(x, &x->ahead);
  x->has_ahead = true;
  return x->ahead.type;
}
