/* Hashing over xxHash; see hash.h. */
#include "base/hash.h"

#include <stdio.h>
#include <string.h>
#define XXH_INLINE_ALL /* the state is a value here, whatever the shared library's version */
#include <xxhash.h>

_Static_assert(sizeof(XXH3_state_t) <= sizeof(((struct hasher *)0)->state), "hasher too small");

static XXH3_state_t *state_of(struct hasher *h) {
  return (XXH3_state_t *)(void *)h->state;
}

void hash_begin(struct hasher *h) {
  memset(h, 0, sizeof *h);
  XXH3_128bits_reset(state_of(h));
}

static void put_u64(struct hasher *h, uint64_t x) {
  unsigned char b[8];
  for (int i = 0; i < 8; i++)
    b[i] = (unsigned char)(x >> (8 * i));
  XXH3_128bits_update(state_of(h), b, sizeof b);
}

static void put_field(struct hasher *h, char type, const char *name, const void *p, size_t n) {
  XXH3_128bits_update(state_of(h), &type, 1);
  put_u64(h, strlen(name));
  XXH3_128bits_update(state_of(h), name, strlen(name));
  put_u64(h, n);
  XXH3_128bits_update(state_of(h), p, n);
}

void hash_field_str(struct hasher *h, const char *name, const char *value) {
  put_field(h, 's', name, value, strlen(value));
}

void hash_field_bytes(struct hasher *h, const char *name, const void *p, size_t n) {
  put_field(h, 'b', name, p, n);
}

static void put_word(struct hasher *h, char type, const char *name, uint64_t x) {
  unsigned char b[8];
  for (int i = 0; i < 8; i++)
    b[i] = (unsigned char)(x >> (8 * i));
  put_field(h, type, name, b, sizeof b);
}

void hash_field_int(struct hasher *h, const char *name, int64_t value) {
  put_word(h, 'i', name, (uint64_t)value);
}

void hash_field_double(struct hasher *h, const char *name, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  put_word(h, 'd', name, bits);
}

struct hash128 hash_end(const struct hasher *h) {
  XXH128_hash_t x = XXH3_128bits_digest((const XXH3_state_t *)(const void *)h->state);
  return (struct hash128){x.high64, x.low64};
}

struct hash128 hash_bytes(const void *p, size_t n) {
  XXH128_hash_t x = XXH3_128bits(p, n);
  return (struct hash128){x.high64, x.low64};
}

void hash_hex(struct hash128 h, char out[33]) {
  snprintf(out, 33, "%016llx%016llx", (unsigned long long)h.hi, (unsigned long long)h.lo);
}

uint64_t hash_quick(const void *p, size_t n) {
  return XXH3_64bits(p, n);
}
