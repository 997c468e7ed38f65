/* Modules for Hopper written by hand (tests/machine) on the emulator: arguments, and what must come
 * out. */
#ifndef KILN_TESTS_HELP_HOPPER_H
#define KILN_TESTS_HELP_HOPPER_H

#include "codegen/emu.h"
#include "help_rt.h"

enum { HOPPER_MAX_ARGS = 8 };

struct hopper_run {
  struct help_arena mem;
  struct diag_sink diags;
  struct ir_module *m;
  struct interp_arg args[HOPPER_MAX_ARGS];
  uint32_t n;
  struct emu_stats stats;
};

/* The text of tests/machine/NAME.tir. */
const char *hopper_text(struct arena *a, const char *name);
void hopper_begin(struct hopper_run *r);
void hopper_end(struct hopper_run *r);
/* Parses and verifies; false after diagnostics. */
bool hopper_parse(struct hopper_run *r, const char *text);
/* The diagnostics so far. */
const char *hopper_messages(struct hopper_run *r);
/* The next argument: a row-major tensor of zeros whose rows are a multiple of 16 bytes apart. */
void *hopper_tensor(struct hopper_run *r, enum dtype t, uint32_t rank, const int64_t *dim);
/* 0..4, from the place alone. */
int hopper_value(uint64_t seed, int64_t i);
/* One of so many modes: those of the emulator, then seeded ones. 3 multiprocessors. */
enum { HOPPER_MODES = 8 };
bool hopper_emulate(struct hopper_run *r, uint32_t mode);

/* What a module computes: C = A . B^T in bf16 on integers (m > 0); attention over bh heads of s
 * keys with 128 columns; multicast_sum, role_pipe of so many rows. */
struct hopper_case {
  const char *name; /* of the module */
  int64_t m, n, k;
  int64_t bh, s;
  int64_t rows;
  bool role;
  bool causal;
};
void hopper_bind(struct hopper_run *r, const struct hopper_case *c);
/* Is the output right? wrong: where it is not. */
bool hopper_is_right(const struct hopper_run *r, const struct hopper_case *c, char *wrong,
                     size_t size);

#endif
