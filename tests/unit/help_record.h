/* A tracer for the tests of regions: it only writes down what the evaluator asks it to do.
 *
 * Globals of the test programs: idx, f, t, m, tm (device values: an index, an f32 scalar, an
 * f32(4), a scalar mask, a tile mask), range(), make(type), op(name, ...) with an effect, peek(v),
 * which says what v is. The record is one line per event:
 *   %3 = t + 1        loop {, then {, else {, } around what is inside        name! operands: an
 *   effect
 * Dropped regions leave no lines. */
#ifndef KILN_TESTS_HELP_RECORD_H
#define KILN_TESTS_HELP_RECORD_H

#include "frontend/stage.h"

/* One state under test, its tracer and what they gave. */
struct hr {
  struct arena arena;
  struct oom_trap trap;
  struct diag_sink diags;
  struct fe_state *fe;
  lua_State *L;
  struct fe_tracer tracer;
  struct strbuf lines, out; /* the record; what print wrote */
  unsigned n_values, n_passes, n_open, indent;
  const char *text;
  /* the state's allocator: allocation number fail_at fails (0: none does), and all later ones if
   * sticky */
  struct mem_alloc mem;
  long fail_at, n_allocs, alive;
  bool sticky;
};

void hr_init(struct hr *t);
/* False if memory ran out. */
bool hr_make_state(struct hr *t);
/* Runs t->text as a file inside one trace: for fe_protect. */
void hr_trace_text(struct fe_state *fe, void *user);
/* All of it: hr_init, hr_make_state, the trace; the result as hr_result. */
const char *hr_run(struct hr *t, const char *text);
/* Printed text, then diagnostics as "line:col: text", then, if there was no error, the record. */
const char *hr_result(struct hr *t);
/* Frees everything; fails the test if the state leaked. */
void hr_done(struct hr *t);

#endif
