/* Lua programs run by stock Lua, for tests that compare what they print. */
#ifndef KILN_TESTS_HELP_LUA_H
#define KILN_TESTS_HELP_LUA_H

#include "base/str.h"

#include <stdbool.h>

#define HL_FOLDER KILN_SRC_DIR "/tests/lua"

/* Is the Lua at hand the one that messages are compared with? Other releases word some of them
 * otherwise: programs then run with the global `exact` false. */
bool hl_is_exact(void);
/* The text of a program in HL_FOLDER, in b's arena. */
char *hl_read(struct arena *a, const char *name, size_t *n);
/* Names of all programs there, sorted. */
uint32_t hl_list(struct arena *a, const char *const **names);
/* Runs a program with stock Lua's libraries and appends what it prints. Fails the test if it
 * raises an error. `exact`: see above. */
void hl_run_stock(const char *name, const char *text, size_t n, bool exact, struct strbuf *out);
/* Fails the test and shows the first line that differs. */
void hl_compare(const char *name, struct strbuf *want, struct strbuf *got);

#endif
