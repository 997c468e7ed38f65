/* See help_rt.h. */
#include "help_rt.h"

#include <stdlib.h>
#include <string.h>

/* In front of each block: its size, to check what callers say it is. */
struct block {
  _Alignas(16) size_t size;
  size_t magic;
};
#define MAGIC ((size_t)0x6b696c6e)

static void *help_alloc(void *user, void *p, size_t old_size, size_t new_size) {
  struct help_mem *m = user;
  struct block *b = p ? (struct block *)p - 1 : NULL;
  if (b) {
    assert_int_equal(b->magic, MAGIC);
    assert_int_equal(b->size, old_size ? old_size : 1);
  }
  if (new_size == 0) {
    if (b) {
      m->live_blocks--;
      m->live_bytes -= (int64_t)b->size;
      b->magic = 0;
      free(b);
    }
    return NULL;
  }
  m->calls++;
  if (m->fail_at && (m->sticky ? m->calls >= m->fail_at : m->calls == m->fail_at))
    return NULL;
  size_t before = b ? b->size : 0;
  struct block *n = realloc(b, sizeof *n + new_size);
  assert_non_null(n);
  if (!b)
    m->live_blocks++;
  m->live_bytes += (int64_t)new_size - (int64_t)before;
  n->size = new_size;
  n->magic = MAGIC;
  return n + 1;
}

void help_mem_init(struct help_mem *m) {
  memset(m, 0, sizeof *m);
  m->alloc = (struct mem_alloc){help_alloc, m};
}

/* The next allocation to fail. Where every growth is an allocation of its own, as in the stress
 * build, there are too many to let each fail: steps grow by one with every hundred. */
static uint64_t next_failure(uint64_t n) {
#ifdef KILN_STRESS
  return n + 1 + n / 100;
#else
  return n + 1;
#endif
}

uint64_t help_oom_loop(bool (*body)(struct help_mem *mem, void *user), void *user, bool sticky) {
  for (uint64_t n = 1;; n = next_failure(n)) {
    struct help_mem m;
    help_mem_init(&m);
    m.fail_at = n;
    m.sticky = sticky;
    bool done = body(&m, user);
    if (m.live_blocks || m.live_bytes)
      fail_msg("failing allocation %llu leaks %lld blocks, %lld bytes", (unsigned long long)n,
               (long long)m.live_blocks, (long long)m.live_bytes);
    if (done)
      return n;
    assert_true(m.calls >= n); /* it failed although every allocation succeeded */
  }
}

static void out_of_memory(void *user) {
  (void)user;
  fail_msg("%s", "a test's arena ran out of memory");
  abort();
}

void help_arena_init(struct help_arena *a) {
  memset(a, 0, sizeof *a);
  a->trap.raise = out_of_memory;
  arena_init(&a->arena, &mem_libc, &a->trap);
}

const char *help_last_message(const struct diag_sink *s) {
  return s->list.n ? s->list.at[s->list.n - 1].message : "";
}

void help_expect_diag(const struct diag_sink *s, enum diag_id id, const char *text) {
  for (uint32_t i = 0; i < s->list.n; i++)
    if (s->list.at[i].id == id && strstr(s->list.at[i].message, text))
      return;
  printf("expected [%s] ...%s..., got %u diagnostics:\n", diag_code(id), text, s->list.n);
  for (uint32_t i = 0; i < s->list.n; i++)
    printf("  [%s] %s\n", diag_code(s->list.at[i].id), s->list.at[i].message);
  fail_msg("no diagnostic %s with: %s", diag_code(id), text);
}
