/* Arenas and the allocator interface: marks, reset, limit, guard, and what happens when memory runs
 * out at the n-th allocation, for every n. */
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Counts live bytes, checks the sizes it is told, and fails at the n-th request (0: never). */
struct counting {
  size_t live, requests, fail_at;
};

static void *counting_fn(void *user, void *p, size_t old_size, size_t new_size) {
  struct counting *c = user;
  if (new_size == 0) {
    if (p)
      c->live -= old_size;
    free(p);
    return NULL;
  }
  c->requests++;
  if (c->requests == c->fail_at)
    return NULL;
  void *q = realloc(p, new_size);
  assert_non_null(q);
  c->live = c->live - (p ? old_size : 0) + new_size;
  return q;
}

static void test_alignment_and_zero(void **state) {
  (void)state;
  struct counting c = {0};
  struct mem_alloc mem = {counting_fn, &c};
  struct oom_trap trap = {0};
  struct arena a;
  arena_init(&a, &mem, &trap);
  for (size_t size = 0; size < 200; size++) {
    unsigned char *p = arena_get0(&a, size);
    assert_int_equal((uintptr_t)p % ARENA_ALIGN, 0);
    for (size_t i = 0; i < size; i++) {
      assert_int_equal(p[i], 0);
      p[i] = 0xff; /* overlap with the next block would show there as a non-zero byte */
    }
  }
  arena_free(&a);
  assert_int_equal(c.live, 0);
}

static void test_blocks_do_not_overlap(void **state) {
  (void)state;
  struct oom_trap trap = {0};
  struct arena a;
  arena_init(&a, &mem_libc, &trap);
  enum { N = 500 };
  unsigned char *block[N];
  for (size_t i = 0; i < N; i++) {
    block[i] = arena_get(&a, i);
    memset(block[i], (int)(i & 0xff), i);
  }
  for (size_t i = 0; i < N; i++)
    for (size_t k = 0; k < i; k++)
      assert_int_equal(block[i][k], i & 0xff);
  arena_free(&a);
}

static void test_mark_and_reset(void **state) {
  (void)state;
  struct counting c = {0};
  struct mem_alloc mem = {counting_fn, &c};
  struct oom_trap trap = {0};
  struct arena a;
  arena_init(&a, &mem, &trap);
  struct arena_mark empty = arena_get_mark(&a);
  char *kept = arena_strdup(&a, "kept");
  struct arena_mark mark = arena_get_mark(&a);
  size_t live = c.live;
  void *first = arena_get(&a, 40);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 2000; i++)
      arena_get(&a, 777); /* several chunks */
    assert_true(c.live > live);
    arena_reset(&a, mark);
    assert_int_equal(c.live, live);
    assert_string_equal(kept, "kept");
    assert_ptr_equal(arena_get(&a, 40), first); /* the same place again */
    arena_reset(&a, mark);
  }
  arena_reset(&a, empty);
  assert_int_equal(c.live, 0);
  assert_int_equal(a.total, 0);
  arena_free(&a);
}

static void test_free_and_use_again(void **state) {
  (void)state;
  struct counting c = {0};
  struct mem_alloc mem = {counting_fn, &c};
  struct oom_trap trap = {0};
  struct arena a;
  arena_init(&a, &mem, &trap);
  arena_free(&a);
  arena_get(&a, 100);
  arena_free(&a);
  assert_int_equal(c.live, 0);
  assert_string_equal(arena_strdup(&a, "again"), "again");
  arena_free(&a);
  assert_int_equal(c.live, 0);
}

static void test_text_helpers(void **state) {
  (void)state;
  struct oom_trap trap = {0};
  struct arena a;
  arena_init(&a, &mem_libc, &trap);
  assert_string_equal(arena_strndup(&a, "abcdef", 3), "abc");
  assert_string_equal(arena_strndup(&a, "", 0), "");
  assert_string_equal(arena_printf(&a, "%s=%d", "x", -7), "x=-7");
  char big[3000];
  memset(big, 'y', sizeof big - 1);
  big[sizeof big - 1] = 0;
  assert_string_equal(arena_printf(&a, "%s", big), big);
  int32_t words[3] = {1, 2, 3};
  int32_t *copy = arena_copy(&a, words, sizeof words);
  assert_memory_equal(copy, words, sizeof words);
  arena_free(&a);
}

struct ask {
  struct arena *arena;
  size_t size, count, done;
};

static void get_blocks(void *user) {
  struct ask *ask = user;
  for (size_t i = 0; i < ask->count; i++) {
    arena_get(ask->arena, ask->size);
    ask->done++;
  }
}

static void test_limit(void **state) {
  (void)state;
  struct counting c = {0};
  struct mem_alloc mem = {counting_fn, &c};
  struct oom_trap trap = {0};
  struct arena a;
  arena_init(&a, &mem, &trap);
  a.limit = (size_t)1 << 20;
  struct ask ask = {.arena = &a, .size = 1000, .count = 1000000};
  assert_false(arena_guard(&a, get_blocks, &ask));
  assert_true(ask.done > 500); /* most of the limit was usable */
  assert_true(a.total <= a.limit);
  assert_ptr_equal(a.trap, &trap);
  size_t done = ask.done;
  ask = (struct ask){.arena = &a, .size = SIZE_MAX - 8, .count = 1};
  assert_false(arena_guard(&a, get_blocks, &ask)); /* no wrap-around */
  ask = (struct ask){.arena = &a, .size = SIZE_MAX / 2, .count = 1};
  assert_false(arena_guard(&a, get_blocks, &ask));
  arena_free(&a);
  ask = (struct ask){.arena = &a, .size = 1000, .count = done};
  assert_true(arena_guard(&a, get_blocks, &ask)); /* the limit counts what is held now */
  arena_free(&a);
  assert_int_equal(c.live, 0);
}

static void nested(void *user) {
  struct ask *ask = user;
  struct ask inner = {.arena = ask->arena, .size = SIZE_MAX / 4, .count = 1};
  assert_false(arena_guard(ask->arena, get_blocks, &inner));
  get_blocks(ask); /* the outer trap is in force again */
}

static void test_guards_nest(void **state) {
  (void)state;
  struct oom_trap trap = {0};
  struct arena a;
  arena_init(&a, &mem_libc, &trap);
  a.limit = (size_t)1 << 20;
  struct ask ask = {.arena = &a, .size = 16, .count = 10};
  assert_true(arena_guard(&a, nested, &ask));
  assert_int_equal(ask.done, 10);
  ask = (struct ask){.arena = &a, .size = (size_t)2 << 20, .count = 1};
  assert_false(arena_guard(&a, nested, &ask));
  assert_ptr_equal(a.trap, &trap);
  arena_free(&a);
}

static void mixed_work(void *user) {
  struct arena *a = user;
  for (int i = 0; i < 300; i++) {
    struct arena_mark mark = arena_get_mark(a);
    arena_get(a, (size_t)(i * 37 % 5000));
    arena_printf(a, "%d: %s", i, "some text");
    if (i % 3 == 0)
      arena_reset(a, mark);
  }
  arena_get(a, (size_t)300 << 10); /* larger than a chunk */
}

static void test_out_of_memory_at_every_point(void **state) {
  (void)state;
  size_t n = 1;
  for (;; n++) {
    struct counting c = {.fail_at = n};
    struct mem_alloc mem = {counting_fn, &c};
    struct oom_trap trap = {0};
    struct arena a;
    arena_init(&a, &mem, &trap);
    bool ok = arena_guard(&a, mixed_work, &a);
    assert_int_equal(ok, c.requests < n);
    arena_free(&a);
    assert_int_equal(c.live, 0);
    if (ok)
      break;
  }
  assert_true(n > 3); /* the loop did meet failures */
}

static jmp_buf raised;
static void raise_to_test(void *user) {
  *(int *)user += 1;
  longjmp(raised, 1);
}

static void test_trap_that_raises(void **state) {
  (void)state;
  int count = 0;
  struct oom_trap trap = {.raise = raise_to_test, .user = &count};
  struct arena a;
  arena_init(&a, &mem_libc, &trap);
  a.limit = 1;
  if (setjmp(raised) == 0) {
    arena_get(&a, 100);
    fail_msg("an allocation over the limit came back");
  }
  assert_int_equal(count, 1);
  arena_free(&a);
}

static void test_allocator_interface(void **state) {
  (void)state;
  struct counting c = {0};
  struct mem_alloc mem = {counting_fn, &c};
  char *p = mem_get0(&mem, 10);
  for (int i = 0; i < 10; i++)
    assert_int_equal(p[i], 0);
  memcpy(p, "012345678", 10);
  p = mem_resize(&mem, p, 10, 10000);
  assert_string_equal(p, "012345678");
  c.fail_at = c.requests + 1;
  assert_null(mem_resize(&mem, p, 10000, 20000));
  assert_string_equal(p, "012345678"); /* a failed resize leaves the block */
  mem_drop(&mem, p, 10000);
  mem_drop(&mem, NULL, 0);
  char *s = mem_strdup(&mem, "text");
  assert_string_equal(s, "text");
  mem_drop(&mem, s, 5);
  void *none = mem_get(&mem, 0); /* not NULL: NULL means no memory */
  assert_non_null(none);
  mem_drop(&mem, none, 1);
  assert_int_equal(c.live, 0);
  c.fail_at = c.requests + 1;
  assert_null(mem_strdup(&mem, "text"));
  c.fail_at = c.requests + 1;
  assert_null(mem_get0(&mem, 5));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_alignment_and_zero),
      cmocka_unit_test(test_blocks_do_not_overlap),
      cmocka_unit_test(test_mark_and_reset),
      cmocka_unit_test(test_free_and_use_again),
      cmocka_unit_test(test_text_helpers),
      cmocka_unit_test(test_limit),
      cmocka_unit_test(test_guards_nest),
      cmocka_unit_test(test_out_of_memory_at_every_point),
      cmocka_unit_test(test_trap_that_raises),
      cmocka_unit_test(test_allocator_interface),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
