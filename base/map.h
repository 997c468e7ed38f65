/* Open-address hash map from uint64_t keys to uint32_t values over an arena; the one map of the
 * compiler. Structured keys hash to 64 bits with hash_quick() and compare through the caller's
 * table: use map_find_from to walk the candidates of a colliding key. Iteration order is not
 * defined and must never reach an output. */
#ifndef KILN_BASE_MAP_H
#define KILN_BASE_MAP_H

#include "base/mem.h"

struct map {
  struct arena *arena;
  uint64_t *keys;
  uint32_t *values;
  uint8_t *full;
  uint32_t n, cap; /* cap: power of two or 0 */
};

void map_init(struct map *m, struct arena *a);
/* Pointer to the value of `key`, or NULL. Valid until the next map_put. */
uint32_t *map_get(const struct map *m, uint64_t key);
/* Inserts or overwrites. */
void map_put(struct map *m, uint64_t key, uint32_t value);
/* Inserts a further entry under a key that may be present (for hashed structured keys). */
void map_add(struct map *m, uint64_t key, uint32_t value);
/* The next entry with `key` at or after *pos (start with 0); false when there is none. */
bool map_find_from(const struct map *m, uint64_t key, uint32_t *pos, uint32_t *value);
void map_clear(struct map *m);

#endif
