/* Helpers of the base and runtime tests: an allocator that counts and can fail on its n-th call,
 * and arenas that may not run out. */
#ifndef KILN_TESTS_HELP_RT_H
#define KILN_TESTS_HELP_RT_H

#include "base/diag.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* Counts live blocks and bytes, checks the sizes it is given back, fails when told to. */
struct help_mem {
  struct mem_alloc alloc; /* hand this out */
  uint64_t calls;         /* allocations and growths so far */
  uint64_t fail_at;       /* this call fails (1 is the first); 0: none */
  bool sticky;            /* and every later one */
  int64_t live_blocks, live_bytes;
};
void help_mem_init(struct help_mem *m);

/* Runs body(mem, user) with the n-th allocation failing, n = 1, 2, ... (in wider steps in the
 * stress build) until it returns true; after each run nothing may be left allocated. Returns n. */
uint64_t help_oom_loop(bool (*body)(struct help_mem *mem, void *user), void *user, bool sticky);

/* An arena over the C library whose exhaustion fails the test. */
struct help_arena {
  struct arena arena;
  struct oom_trap trap;
};
void help_arena_init(struct help_arena *a);

/* The newest diagnostic's message, "" if there is none. */
const char *help_last_message(const struct diag_sink *s);
/* Fails, printing all diagnostics, unless one of them has `id` and contains `text`. */
void help_expect_diag(const struct diag_sink *s, enum diag_id id, const char *text);

#endif
