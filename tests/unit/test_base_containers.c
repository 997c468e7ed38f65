/* Vectors, maps, bit sets: against plain arrays, with collisions, across growth, out of memory. */
#include "base/bitset.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
  struct arena arena;
  struct oom_trap trap;
};

static struct arena *start(struct fixture *f) {
  memset(f, 0, sizeof *f);
  arena_init(&f->arena, &mem_libc, &f->trap);
  return &f->arena;
}

/* splitmix64: a fixed sequence, the same on every machine. */
static uint64_t next_random(uint64_t *seed) {
  uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static void test_vec_push_pop(void **state) {
  (void)state;
  struct fixture f;
  struct arena *a = start(&f);
  VEC(uint32_t) v = {0};
  for (uint32_t i = 0; i < 10000; i++) {
    VEC_PUSH(a, &v, i * 3);
    assert_int_equal(VEC_LAST(&v), i * 3);
  }
  assert_int_equal(v.n, 10000);
  for (uint32_t i = 0; i < v.n; i++)
    assert_int_equal(v.at[i], i * 3);
  for (uint32_t i = 10000; i-- > 0;)
    assert_int_equal(VEC_POP(&v), i * 3);
  assert_int_equal(v.n, 0);
  arena_free(a);
}

static void test_vec_reserve(void **state) {
  (void)state;
  struct fixture f;
  struct arena *a = start(&f);
  VEC(uint64_t) v = {0};
  VEC_RESERVE(a, &v, 100);
  assert_true(v.cap >= 100);
  uint64_t *at = v.at;
  for (uint64_t i = 0; i < 100; i++)
    VEC_PUSH(a, &v, i);
  assert_ptr_equal(v.at, at); /* room that was reserved does not move */
  VEC_RESERVE(a, &v, 5000);
  assert_true(v.cap >= 5100);
  for (uint64_t i = 0; i < 100; i++)
    assert_int_equal(v.at[i], i);
  arena_free(a);
}

struct grow_call {
  struct arena *arena;
  uint32_t n, cap, more;
};

static void grow_it(void *user) {
  struct grow_call *g = user;
  vec_grow(g->arena, NULL, g->n, &g->cap, 8, g->more);
}

static void test_vec_index_overflow(void **state) {
  (void)state;
  struct fixture f;
  struct arena *a = start(&f);
  struct grow_call g = {.arena = a, .n = 0, .cap = UINT32_MAX - 1, .more = UINT32_MAX};
  a->limit = (size_t)1 << 20;
  assert_false(arena_guard(a, grow_it, &g)); /* 2^32 elements do not wrap to few */
  g = (struct grow_call){.arena = a, .n = UINT32_MAX, .cap = UINT32_MAX, .more = 1};
  assert_false(arena_guard(a, grow_it, &g));
  arena_free(a);
}

static void test_map_against_array(void **state) {
  (void)state;
  struct fixture f;
  struct arena *a = start(&f);
  enum { KEYS = 3000 };
  static uint32_t model[KEYS];
  static bool present[KEYS];
  memset(model, 0, sizeof model);
  memset(present, 0, sizeof present);
  struct map m;
  map_init(&m, a);
  assert_null(map_get(&m, 1));
  uint64_t seed = 1;
  uint32_t n = 0;
  for (uint32_t i = 0; i < 20000; i++) {
    uint32_t key = (uint32_t)(next_random(&seed) % KEYS);
    /* Keys that share their low bits, as pointers and multiples do. */
    uint64_t spread = (uint64_t)key << 40;
    if (i % 2) {
      n += !present[key];
      present[key] = true;
      model[key] = i;
      map_put(&m, spread, i);
    } else {
      uint32_t *v = map_get(&m, spread);
      assert_int_equal(v != NULL, present[key]);
      if (v)
        assert_int_equal(*v, model[key]);
    }
  }
  assert_int_equal(m.n, n);
  for (uint32_t key = 0; key < KEYS; key++) {
    uint32_t *v = map_get(&m, (uint64_t)key << 40);
    assert_int_equal(v != NULL, present[key]);
    if (v)
      assert_int_equal(*v, model[key]);
  }
  map_clear(&m);
  assert_int_equal(m.n, 0);
  for (uint32_t key = 0; key < KEYS; key++)
    assert_null(map_get(&m, (uint64_t)key << 40));
  map_put(&m, 7, 8);
  assert_int_equal(*map_get(&m, 7), 8);
  arena_free(a);
}

/* Many entries under one key: all are found, in the order they were added, across growth. */
static void test_map_equal_keys(void **state) {
  (void)state;
  struct fixture f;
  struct arena *a = start(&f);
  struct map m;
  map_init(&m, a);
  enum { EACH = 50, KEYS = 5 };
  for (uint32_t i = 0; i < EACH; i++)
    for (uint64_t key = 0; key < KEYS; key++)
      map_add(&m, key, i * KEYS + (uint32_t)key);
  for (uint64_t key = 0; key < KEYS; key++) {
    uint32_t pos = 0, value, i = 0;
    while (map_find_from(&m, key, &pos, &value)) {
      assert_int_equal(value, i * KEYS + key);
      i++;
    }
    assert_int_equal(i, EACH);
  }
  uint32_t pos = 0, value;
  assert_false(map_find_from(&m, 99, &pos, &value));
  struct map empty;
  map_init(&empty, a);
  assert_false(map_find_from(&empty, 0, &pos, &value));
  arena_free(a);
}

static void test_map_extreme_keys(void **state) {
  (void)state;
  struct fixture f;
  struct arena *a = start(&f);
  struct map m;
  map_init(&m, a);
  map_put(&m, 0, UINT32_MAX);
  map_put(&m, UINT64_MAX, 0);
  assert_int_equal(*map_get(&m, 0), UINT32_MAX);
  assert_int_equal(*map_get(&m, UINT64_MAX), 0);
  arena_free(a);
}

static void test_bitset(void **state) {
  (void)state;
  struct fixture f;
  struct arena *a = start(&f);
  static const uint32_t sizes[] = {0, 1, 63, 64, 65, 1000};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    struct bitset b = bitset_new(a, sizes[s]);
    for (uint32_t i = 0; i < sizes[s]; i++)
      assert_false(bitset_has(&b, i));
    for (uint32_t i = 0; i < sizes[s]; i += 3)
      bitset_add(&b, i);
    for (uint32_t i = 0; i < sizes[s]; i += 6)
      bitset_remove(&b, i);
    for (uint32_t i = 0; i < sizes[s]; i++)
      assert_int_equal(bitset_has(&b, i), i % 3 == 0 && i % 6 != 0);
  }
  arena_free(a);
}

/* A map that runs out of memory while it grows is as it was before, and can go on. */
static void *fail_at(void *user, void *p, size_t old_size, size_t new_size) {
  int *left = user;
  if (new_size > old_size && (*left)-- == 0)
    return NULL;
  return mem_libc.fn(mem_libc.user, p, old_size, new_size);
}

static void test_map_out_of_memory(void **state) {
  (void)state;
  volatile uint32_t failures = 0; /* volatile: kept across longjmp */
  for (volatile int n = 1; n < 40; n++) {
    int left = n;
    const struct mem_alloc mem = {fail_at, &left};
    struct oom_trap trap = {0};
    struct arena a;
    arena_init(&a, &mem, &trap);
    struct map m;
    map_init(&m, &a);
    volatile uint64_t added = 0;
    if (setjmp(trap.env) == 0)
      for (; added < 20000; added++)
        map_add(&m, added * 7, (uint32_t)added);
    else
      failures++;
    assert_int_equal(m.n, added);
    for (uint64_t k = 0; k < added; k++) {
      const uint32_t *v = map_get(&m, k * 7);
      assert_non_null(v);
      assert_int_equal(*v, k);
    }
    assert_null(map_get(&m, 1));
    uint32_t pos = 0, value;
    assert_false(map_find_from(&m, 1, &pos, &value));
    left = INT_MAX;
    if (setjmp(trap.env) == 0)
      for (uint64_t k = added; k < added + 5000; k++)
        map_put(&m, k * 7, (uint32_t)k);
    else
      fail_msg("out of memory again");
    assert_int_equal(m.n, added + 5000);
    arena_free(&a);
  }
  assert_true(failures > 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_vec_push_pop),
      cmocka_unit_test(test_vec_reserve),
      cmocka_unit_test(test_vec_index_overflow),
      cmocka_unit_test(test_map_against_array),
      cmocka_unit_test(test_map_equal_keys),
      cmocka_unit_test(test_map_extreme_keys),
      cmocka_unit_test(test_bitset),
      cmocka_unit_test(test_map_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
