/* Open-address hash map; see map.h. Linear probing, at most 2/3 full. */
#include "base/map.h"

#include "base/hash.h"

#include <string.h>

#ifdef KILN_STRESS
#define FIRST_CAP 2u
#else
#define FIRST_CAP 32u
#endif

void map_init(struct map *m, struct arena *a) {
  memset(m, 0, sizeof *m);
  m->arena = a;
}

static uint32_t slot_of(const struct map *m, uint64_t key) {
  return (uint32_t)(hash_mix(key, 0) & (m->cap - 1));
}

static void insert(struct map *m, uint64_t key, uint32_t value) {
  uint32_t i = slot_of(m, key);
  while (m->full[i])
    i = (i + 1) & (m->cap - 1);
  m->full[i] = 1;
  m->keys[i] = key;
  m->values[i] = value;
  m->n++;
}

static void grow(struct map *m) {
  struct map old = *m;
  uint32_t cap = old.cap ? old.cap * 2 : FIRST_CAP;
  /* The arena may unwind for want of memory: the map changes only when all is there. */
  uint64_t *keys = ARENA_ARRAY(m->arena, uint64_t, cap);
  uint32_t *values = ARENA_ARRAY(m->arena, uint32_t, cap);
  uint8_t *full = ARENA_ARRAY(m->arena, uint8_t, cap);
  m->cap = cap;
  m->keys = keys;
  m->values = values;
  m->full = full;
  m->n = 0;
  /* In probe order, starting after a free slot, so that equal keys keep their order. */
  uint32_t start = 0;
  while (start < old.cap && old.full[start])
    start++;
  for (uint32_t k = 0; k < old.cap; k++) {
    uint32_t i = (start + k) & (old.cap - 1);
    if (old.full[i])
      insert(m, old.keys[i], old.values[i]);
  }
}

uint32_t *map_get(const struct map *m, uint64_t key) {
  if (!m->cap)
    return NULL;
  for (uint32_t i = slot_of(m, key); m->full[i]; i = (i + 1) & (m->cap - 1))
    if (m->keys[i] == key)
      return &m->values[i];
  return NULL;
}

void map_add(struct map *m, uint64_t key, uint32_t value) {
  if ((m->n + 1) * 3 > m->cap * 2)
    grow(m);
  insert(m, key, value);
}

void map_put(struct map *m, uint64_t key, uint32_t value) {
  uint32_t *v = map_get(m, key);
  if (v)
    *v = value;
  else
    map_add(m, key, value);
}

bool map_find_from(const struct map *m, uint64_t key, uint32_t *pos, uint32_t *value) {
  if (!m->cap)
    return false;
  for (uint32_t i = (slot_of(m, key) + *pos) & (m->cap - 1); m->full[i];
       i = (i + 1) & (m->cap - 1)) {
    ++*pos;
    if (m->keys[i] == key) {
      *value = m->values[i];
      return true;
    }
  }
  return false;
}

void map_clear(struct map *m) {
  m->n = 0;
  if (m->cap)
    memset(m->full, 0, m->cap);
}
