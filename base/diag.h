/* Diagnostics: what Kiln tells people.
 *
 * A sink collects diagnostics with stable ids (diags.def), a location in a kernel file, notes
 * (further places: the call stack, the other branch) and renders them as text with source line and
 * caret, or as JSON. A sink owns its memory (its own arena, independent of any compile), and keeps
 * working when that memory runs out: it then counts what it had to drop. */
#ifndef KILN_BASE_DIAG_H
#define KILN_BASE_DIAG_H

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"

enum diag_id {
#define DIAG(id, code, summary) DIAG_##id,
#include "base/diags.def"
  DIAG_COUNT
};

enum diag_severity { DIAG_ERROR, DIAG_WARNING, DIAG_NOTE };

/* A place in a source file. file: index from diag_add_file, 0 = none; line and col from 1, 0 =
 * unknown; col counts bytes. */
struct diag_loc {
  uint32_t file, line, col;
};

struct diag_text {
  struct diag_loc loc;
  const char *text;
};

struct diag {
  enum diag_severity severity;
  enum diag_id id;
  struct diag_loc loc;
  const char *message;
  const char *pass; /* pass or phase that found it, or NULL */
  VEC(struct diag_text) notes;
};

struct diag_file {
  const char *name;
  const char *text; /* NUL-terminated copy, NULL if not known */
  size_t n;
};

struct diag_sink {
  struct arena arena;    /* files */
  struct arena messages; /* `list`; diag_clear gives it back */
  struct oom_trap trap;
  VEC(struct diag) list;
  VEC(struct diag_file) files; /* files.at[0] is a placeholder: file indices start at 1 */
  uint32_t n_errors, n_warnings;
  uint32_t n_dropped;  /* over the limit, or no memory */
  uint32_t max_errors; /* default 200; further errors are counted in n_dropped */
  bool dropped_last;   /* the newest diagnostic was dropped: its notes go with it */
  /* DIAG_NO_MEMORY and DIAG_INTERRUPTED reports, dropped ones too; and reports dropped for want of
   * memory count as the former. */
  uint32_t n_no_memory, n_interrupted;
};

bool diag_init(struct diag_sink *s, const struct mem_alloc *mem);
void diag_free(struct diag_sink *s);
/* Forgets diagnostics, keeps files. */
void diag_clear(struct diag_sink *s);
/* Forgets the diagnostics of `list` from number n on: of an attempt whose failure does not
 * matter. */
void diag_truncate(struct diag_sink *s, uint32_t n);
/* Registers a file (copied). Returns its index; 0 when memory ran out. A name already there gets
 * its text replaced. text may be NULL. */
uint32_t diag_add_file(struct diag_sink *s, const char *name, const char *text, size_t n);
const char *diag_file_name(const struct diag_sink *s, uint32_t file);

/* Reports; the message is formatted at once. */
void diag_report(struct diag_sink *s, enum diag_severity sev, enum diag_id id, struct diag_loc loc,
                 const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void diag_vreport(struct diag_sink *s, enum diag_severity sev, enum diag_id id, struct diag_loc loc,
                  const char *fmt, va_list ap) __attribute__((format(printf, 5, 0)));
/* Adds a note to the newest diagnostic (ignored if that one was dropped). */
void diag_note(struct diag_sink *s, struct diag_loc loc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#define DIAG_NOWHERE ((struct diag_loc){0, 0, 0})

const char *diag_code(enum diag_id id);    /* "K0101" */
const char *diag_summary(enum diag_id id); /* "syntax error" */

/* `file:line:col: error: message [K0101]`, the source line, a caret, the notes. */
void diag_render_text(const struct diag_sink *s, const struct diag *d, struct strbuf *out);
/* One JSON object: severity, id, message, file, line, column, pass, notes. */
void diag_render_json(const struct diag_sink *s, const struct diag *d, struct strbuf *out);

#endif
