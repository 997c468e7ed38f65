/* Threads of a run: the same function on each, started and joined within one call. */
#ifndef KILN_BASE_THREADS_H
#define KILN_BASE_THREADS_H

#include "base/mem.h"

#include <stdint.h>

/* As many as there are processors that this process may use. */
uint32_t threads_processors(void);
/* Runs work(user, k) for k = 0 .. n - 1: k = 0 on the caller's thread, the others on threads of
 * their own, which take no signals. Fewer are run where threads cannot be had, but 0 always is.
 * While the caller waits for the others, it calls wait(user) every few milliseconds. */
void threads_run(uint32_t n, void (*work)(void *user, uint32_t k), void (*wait)(void *user),
                 void *user);

/* Parts of 0 .. n - 1, each of at least `least` numbers, that together are all of it: part(user,
 * first, end) for each, side by side where there is more than one. What a part does may depend on
 * its own numbers alone. */
void threads_split(int64_t n, int64_t least, void (*part)(void *user, int64_t first, int64_t end),
                   void *user);

/* An allocator over another one, safe to use from several threads. NULL: no memory or no lock. */
const struct mem_alloc *threads_mem_new(const struct mem_alloc *mem);
void threads_mem_free(const struct mem_alloc *locked);

#endif
