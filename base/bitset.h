/* Fixed-size bit sets over an arena. */
#ifndef KILN_BASE_BITSET_H
#define KILN_BASE_BITSET_H

#include "base/mem.h"

struct bitset {
  uint64_t *words;
  uint32_t bits;
};

static inline struct bitset bitset_new(struct arena *a, uint32_t bits) {
  return (struct bitset){ARENA_ARRAY(a, uint64_t, (bits + 63) / 64 + 1), bits};
}
static inline bool bitset_has(const struct bitset *s, uint32_t i) {
  return s->words[i / 64] >> (i % 64) & 1;
}
static inline void bitset_add(struct bitset *s, uint32_t i) {
  s->words[i / 64] |= (uint64_t)1 << (i % 64);
}
static inline void bitset_remove(struct bitset *s, uint32_t i) {
  s->words[i / 64] &= ~((uint64_t)1 << (i % 64));
}

#endif
