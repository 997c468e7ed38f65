/* Lua programs run by stock Lua, for tests that compare what they print. */
#ifndef KILN_TESTS_HELP_STOCK_H
#define KILN_TESTS_HELP_STOCK_H

#include "base/str.h"

#include <lua.h>

#include <stdbool.h>

#define HS_FOLDER KILN_SRC_DIR "/tests/lua"

/* Is the Lua at hand the one that messages are compared with? Other releases word some of them
 * otherwise: programs then run with the global `exact` false. */
bool hs_is_exact(void);
/* The text of a program in HS_FOLDER, in b's arena. */
char *hs_read(struct arena *a, const char *name, size_t *n);
/* Names of all programs there, sorted. */
uint32_t hs_list(struct arena *a, const char *const **names);
/* Runs a program with stock Lua's libraries and appends what it prints. Fails the test if it
 * raises an error. `exact`: see above. */
void hs_run_stock(const char *name, const char *text, size_t n, bool exact, struct strbuf *out);
/* A state that makes random programs (tests/lua/mod/generate.lua): close it with lua_close. */
lua_State *hs_generator(void);
/* The text of the program of a seed. */
char *hs_generate(lua_State *L, uint32_t seed, struct arena *a, size_t *n);
/* Fails the test and shows the first line that differs. */
void hs_compare(const char *name, struct strbuf *want, struct strbuf *got);

#endif
