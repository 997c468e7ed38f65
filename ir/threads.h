/* Threads of a run: the same function on each, started and joined within one call. */
#ifndef KILN_IR_THREADS_H
#define KILN_IR_THREADS_H

#include "base/mem.h"

/* As many as there are processors that this process may use. */
uint32_t ir_processors(void);
/* Runs work(user, k) for k = 0 .. n - 1: k = 0 on the caller's thread, the others on threads of
 * their own, which take no signals. Fewer are run where threads cannot be had, but 0 always is.
 * While the caller waits for the others, it calls wait(user) every few milliseconds. */
void ir_run_threads(uint32_t n, void (*work)(void *user, uint32_t k), void (*wait)(void *user),
                    void *user);

/* An allocator over another one, safe to use from several threads. NULL: no memory or no lock. */
const struct mem_alloc *ir_locked_mem_new(const struct mem_alloc *mem);
void ir_locked_mem_free(const struct mem_alloc *locked);

#endif
