/* Diagnostics; see diag.h. */
#include "base/diag.h"

#include "base/check.h"

static const struct {
  const char *code, *summary;
} diag_info[] = {
#define DIAG(id, code, summary) {code, summary},
#include "base/diags.def"
};

const char *diag_code(enum diag_id id) {
  return diag_info[id].code;
}

const char *diag_summary(enum diag_id id) {
  return diag_info[id].summary;
}

/* One append to the sink under its own trap; carries the arguments of all of them. */
struct append {
  struct diag_sink *sink;
  struct diag diag;
  struct diag_text note;
  struct diag_file file;
  const char *fmt;
  va_list *ap;
};

static const char *format(struct arena *a, const char *fmt, va_list *ap) {
  struct strbuf b = {.arena = a};
  sb_vprintf(&b, fmt, *ap);
  return sb_str(&b);
}

static void append_file(void *user) {
  struct append *x = user;
  struct diag_sink *s = x->sink;
  struct diag_file f = x->file;
  f.name = arena_strdup(&s->arena, f.name);
  if (f.text)
    f.text = arena_strndup(&s->arena, f.text, f.n);
  VEC_PUSH(&s->arena, &s->files, f);
}

static void append_diag(void *user) {
  struct append *x = user;
  struct diag_sink *s = x->sink;
  x->diag.message = format(&s->messages, x->fmt, x->ap);
  VEC_PUSH(&s->messages, &s->list, x->diag);
}

static void append_note(void *user) {
  struct append *x = user;
  struct diag_sink *s = x->sink;
  x->note.text = format(&s->messages, x->fmt, x->ap);
  VEC_PUSH(&s->messages, &VEC_LAST(&s->list).notes, x->note);
}

bool diag_init(struct diag_sink *s, const struct mem_alloc *mem) {
  memset(s, 0, sizeof *s);
  arena_init(&s->arena, mem, &s->trap);
  arena_init(&s->messages, mem, &s->trap);
  s->max_errors = 200;
  struct append x = {.sink = s, .file = {"", NULL, 0}};
  return arena_guard(&s->arena, append_file, &x);
}

void diag_free(struct diag_sink *s) {
  arena_free(&s->arena);
  arena_free(&s->messages);
  memset(s, 0, sizeof *s);
}

void diag_clear(struct diag_sink *s) {
  arena_free(&s->messages);
  memset(&s->list, 0, sizeof s->list);
  s->n_errors = s->n_warnings = s->n_dropped = s->n_no_memory = s->n_interrupted = 0;
  s->dropped_last = false;
}

void diag_truncate(struct diag_sink *s, uint32_t n) {
  while (s->list.n > n) {
    enum diag_severity sev = VEC_POP(&s->list).severity;
    s->n_errors -= sev == DIAG_ERROR;
    s->n_warnings -= sev == DIAG_WARNING;
  }
}

uint32_t diag_add_file(struct diag_sink *s, const char *name, const char *text, size_t n) {
  for (uint32_t i = 1; i < s->files.n; i++)
    if (str_eq(s->files.at[i].name, name)) {
      struct diag_file *f = &s->files.at[i];
      if (!text || (f->text && f->n == n && memcmp(f->text, text, n) == 0))
        return i;
      struct append x = {.sink = s, .file = {name, text, n}};
      if (!arena_guard(&s->arena, append_file, &x))
        return 0;
      s->files.at[i] = VEC_POP(&s->files);
      return i;
    }
  struct append x = {.sink = s, .file = {name, text, n}};
  return arena_guard(&s->arena, append_file, &x) ? s->files.n - 1 : 0;
}

const char *diag_file_name(const struct diag_sink *s, uint32_t file) {
  return file < s->files.n ? s->files.at[file].name : "";
}

void diag_vreport(struct diag_sink *s, enum diag_severity sev, enum diag_id id, struct diag_loc loc,
                  const char *fmt, va_list ap) {
  va_list copy;
  va_copy(copy, ap);
  struct append x = {
      .sink = s, .diag = {.severity = sev, .id = id, .loc = loc}, .fmt = fmt, .ap = &copy};
  bool full = sev == DIAG_ERROR ? s->n_errors >= s->max_errors : s->n_warnings >= s->max_errors;
  if (sev == DIAG_ERROR)
    s->n_errors++;
  else if (sev == DIAG_WARNING)
    s->n_warnings++;
  bool had_memory = full || arena_guard(&s->messages, append_diag, &x);
  s->dropped_last = full || !had_memory;
  s->n_dropped += s->dropped_last;
  s->n_no_memory += id == DIAG_NO_MEMORY || !had_memory;
  s->n_interrupted += id == DIAG_INTERRUPTED;
  va_end(copy);
}

void diag_report(struct diag_sink *s, enum diag_severity sev, enum diag_id id, struct diag_loc loc,
                 const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  diag_vreport(s, sev, id, loc, fmt, ap);
  va_end(ap);
}

void diag_note(struct diag_sink *s, struct diag_loc loc, const char *fmt, ...) {
  if (s->dropped_last || s->list.n == 0)
    return;
  va_list ap;
  va_start(ap, fmt);
  struct append x = {.sink = s, .note = {.loc = loc}, .fmt = fmt, .ap = &ap};
  arena_guard(&s->messages, append_note, &x); /* a lost note is a lost note */
  va_end(ap);
}

static void put_shown(struct strbuf *out, const char *text) {
  sb_put_shown(out, text, strlen(text), true);
}

static void put_place(const struct diag_sink *s, struct diag_loc loc, struct strbuf *out) {
  if (!loc.file)
    return;
  put_shown(out, diag_file_name(s, loc.file));
  if (loc.line)
    sb_printf(out, ":%u", loc.line);
  if (loc.line && loc.col)
    sb_printf(out, ":%u", loc.col);
  sb_puts(out, ": ");
}

/* A part of a source line, a byte for a byte: what a terminal must not get is a `?`. */
static void put_line(struct strbuf *out, const char *p, size_t n) {
  struct strbuf one = {.arena = out->arena};
  for (size_t i = 0, len; i < n; i += len) {
    for (len = 1; len < 4 && i + len < n && ((unsigned char)p[i + len] & 0xc0) == 0x80;)
      len++;
    one.n = 0;
    sb_put_shown(&one, p + i, len, false);
    bool plain = one.n == len;
    for (size_t k = 0; k < len; k++)
      sb_putc(out, !plain ? '?' : p[i + k] == '\t' ? ' ' : p[i + k]);
  }
}

/* The source line of loc and a caret under its column, if the text is known. */
static void put_caret(const struct diag_sink *s, struct diag_loc loc, struct strbuf *out) {
  if (!loc.file || loc.file >= s->files.n || !loc.line || !s->files.at[loc.file].text)
    return;
  const char *p = s->files.at[loc.file].text, *end = p + s->files.at[loc.file].n;
  for (uint32_t line = 1; line < loc.line; line++) {
    p = memchr(p, '\n', (size_t)(end - p));
    if (!p)
      return;
    p++;
  }
  const char *nl = memchr(p, '\n', (size_t)(end - p));
  size_t n = (size_t)((nl ? nl : end) - p), first = 0;
  const size_t width = 160; /* a longer line is shown around the caret */
  if (n > width) {
    first = loc.col > width / 2 ? loc.col - width / 2 : 0;
    first = first < n - width ? first : n - width;
    n = width;
  }
  sb_puts(out, "  ");
  put_line(out, p + first, n);
  sb_putc(out, '\n');
  if (loc.col && loc.col > first && loc.col - first <= n + 1)
    sb_printf(out, "  %*s^\n", (int)(loc.col - first - 1), "");
}

void diag_render_text(const struct diag_sink *s, const struct diag *d, struct strbuf *out) {
  static const char *const names[] = {"error", "warning", "note"};
  put_place(s, d->loc, out);
  sb_printf(out, "%s: ", names[d->severity]);
  put_shown(out, d->message);
  sb_printf(out, " [%s]\n", diag_code(d->id));
  put_caret(s, d->loc, out);
  for (uint32_t i = 0; i < d->notes.n; i++) {
    sb_puts(out, "  ");
    put_place(s, d->notes.at[i].loc, out);
    sb_puts(out, "note: ");
    put_shown(out, d->notes.at[i].text);
    sb_putc(out, '\n');
  }
}

static void put_json_place(const struct diag_sink *s, struct diag_loc loc, struct strbuf *out) {
  if (loc.file) {
    const char *name = diag_file_name(s, loc.file);
    sb_puts(out, ",\"file\":");
    sb_put_json(out, name, strlen(name));
    if (loc.line)
      sb_printf(out, ",\"line\":%u", loc.line);
    if (loc.col)
      sb_printf(out, ",\"column\":%u", loc.col);
  }
}

void diag_render_json(const struct diag_sink *s, const struct diag *d, struct strbuf *out) {
  static const char *const names[] = {"error", "warning", "note"};
  sb_printf(out, "{\"severity\":\"%s\",\"id\":\"%s\",\"message\":", names[d->severity],
            diag_code(d->id));
  sb_put_json(out, d->message, strlen(d->message));
  put_json_place(s, d->loc, out);
  if (d->pass) {
    sb_puts(out, ",\"pass\":");
    sb_put_json(out, d->pass, strlen(d->pass));
  }
  if (d->notes.n) {
    sb_puts(out, ",\"notes\":[");
    for (uint32_t i = 0; i < d->notes.n; i++) {
      sb_puts(out, i ? ",{\"message\":" : "{\"message\":");
      sb_put_json(out, d->notes.at[i].text, strlen(d->notes.at[i].text));
      put_json_place(s, d->notes.at[i].loc, out);
      sb_putc(out, '}');
    }
    sb_putc(out, ']');
  }
  sb_putc(out, '}');
}
