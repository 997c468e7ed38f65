/* Helpers of the frontend's tests: load a kernel file from text, trace it, collect what it said. */
#ifndef KILN_TESTS_HELP_FE_H
#define KILN_TESTS_HELP_FE_H

#include "base/diag.h"
#include "frontend/fe.h"

struct hf {
  struct diag_sink diags;
  struct arena arena;
  struct oom_trap trap;
  struct fe_host host;
  struct fe_file *file;
  struct strbuf printed; /* what print wrote */
  const char *modules;   /* folder that require reads from, or NULL */
};

void hf_init(struct hf *h);
void hf_free(struct hf *h);
/* file:line:col: message [code] of each diagnostic, notes indented, one a line. Each call starts
 * from scratch. */
const char *hf_diags(struct hf *h);
bool hf_load(struct hf *h, const char *name, const char *text);
/* Traces the file's kernel `name` (NULL: the only one) under its default config; verifies the
 * module (a broken rule fails the test) and compares print(parse(print)). NULL if there were
 * errors. absent: bit mask of args. */
struct ir_module *hf_trace(struct hf *h, const char *name, uint64_t absent);
/* All of a file into the helper's arena; NULL if it cannot be read. */
char *hf_read(struct hf *h, const char *path, size_t *n);

#endif
