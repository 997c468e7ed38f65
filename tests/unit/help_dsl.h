/* Kernel files around single uses of the language's functions (frontend/dsl.def). */
#ifndef KILN_TESTS_HELP_DSL_H
#define KILN_TESTS_HELP_DSL_H

#include "help_fe.h"

/* A file named "example" with a line of code in one place: b body, g grid, o oracle, i inputs,
 * f and n file level. Code may use x, y (4x8 tiles), their mask m, v (a tile of 8), n (4x8
 * integers), s (a dim), and what stands for them in other places. */
const char *hd_file(struct hf *h, char place, const char *code);
/* The line of the code in that file. */
uint32_t hd_line(const char *file);
/* Evaluates the inputs and the oracle of the file's first kernel, on arrays of numbers. */
bool hd_run_oracle(struct hf *h);

#endif
