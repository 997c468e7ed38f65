/* Helpers of the evaluator's tests: the same Lua text run by stock Lua and by Kiln's evaluator,
 * what each printed and how it ended, in a form that can be compared byte for byte. */
#ifndef KILN_TESTS_HELP_LUA_H
#define KILN_TESTS_HELP_LUA_H

#include "base/diag.h"
#include "frontend/fe.h"

/* Output of print, then, if the program failed, "error: MESSAGE" (places as file:line). `folder`:
 * where require finds modules, or NULL. Results are in the arena. */
const char *hl_stock(struct arena *a, const char *name, const char *text, const char *folder);
const char *hl_kiln(struct arena *a, const char *name, const char *text, const char *folder);

/* Message of a syntax error, "line: text", or NULL if the text is accepted. */
const char *hl_stock_syntax(struct arena *a, const char *name, const char *text, size_t n);
const char *hl_kiln_syntax(struct arena *a, const char *name, const char *text, size_t n);

/* The diagnostics of running a text, rendered without source lines: "file:2:3: error: text
 * [K0101]". */
const char *hl_diags(struct arena *a, const char *name, const char *text,
                     const struct fe_limits *limits);

/* A random program of plain Lua. */
const char *hl_generate(struct arena *a, uint64_t seed);

/* Shows where two texts differ first and fails the test. */
void hl_same(const char *title, const char *text, const char *stock, const char *kiln);

#endif
