/* Shrinks an IR text while it goes on failing in the same way. */
#ifndef KILN_IR_REDUCE_H
#define KILN_IR_REDUCE_H

#include "ir/ir.h"

struct ir_reduce_options {
  /* Does this text fail as the first one does? It is asked of smaller and smaller texts. */
  bool (*fails)(void *user, const char *text, size_t n);
  /* After each text that was kept, and now and then. May be NULL. */
  void (*progress)(void *user, uint32_t lines_before, uint32_t lines_now, uint32_t tried);
  /* True ends the reduction: what was found so far is the result. May be NULL. */
  bool (*interrupted)(void *user);
  void *user;
};

/* The smallest text found, in `a`; `text` itself if nothing can go. If `text` can be read, so can
 * the result, and if it passes the verifier, so does the result. The same text and the same answers
 * give the same result. */
const char *ir_reduce(struct arena *a, const char *text, size_t n,
                      const struct ir_reduce_options *opt, size_t *n_out);

#endif
