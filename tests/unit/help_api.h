/* For tests of the public API (kiln.h and nothing else): a context on an allocator that counts,
 * checks sizes and can fail, with its log; kernels to use; what diagnostics must say. */
#ifndef KILN_TESTS_HELP_API_H
#define KILN_TESTS_HELP_API_H

#include <kiln.h>

#include <stdio.h>

struct help_api {
  struct kiln_context *ctx;
  /* Allocator: the fail_at-th request fails (0: none), with `sticky` all after it, too. */
  uint64_t requests, fail_at;
  bool sticky;
  size_t live;
  uint64_t asked, stop_at; /* interruption: polls; stop at that one and after (0: never) */
  size_t n_log;
  char log[16384]; /* "level: text\n" each */
};

/* options may be NULL; its allocator, log and interruption are replaced by the test's. */
void help_api_start(struct help_api *t, const struct kiln_context_options *options);
/* The same over a context that was freed: the counts go on, allocations may fail. */
enum kiln_status help_api_restart(struct help_api *t, const struct kiln_context_options *options);
/* Frees the context; fails if it left memory behind. */
void help_api_stop(struct help_api *t);
struct kiln_file *help_api_load(struct help_api *t, const char *name, const char *text);
enum kiln_status help_api_try_load(struct help_api *t, const char *name, const char *text,
                                   struct kiln_file **out);
/* A request with nothing asked for. */
struct kiln_request help_api_request(void);
struct kiln_variant *help_api_specialise(struct kiln_file *file, const struct kiln_request *req);

/* The status is `want` and the diagnostics, as text, match the extended regular expression `says`
 * (NULL: there are none); they are cleared. */
#define help_api_expect(t, got, want, says)                                                        \
  help_api_expect_at((t), (got), (want), (says), __FILE__, __LINE__)
void help_api_expect_at(struct help_api *t, enum kiln_status got, enum kiln_status want,
                        const char *says, const char *file, int line);
bool help_api_matches(const char *text, const char *pattern);

/* Y = X * alpha + B, rows of B; T, two tune lists, `legal`, an optional argument, a scalar, an
 * oracle and two cases. */
extern const char help_api_axpy[];

#endif
