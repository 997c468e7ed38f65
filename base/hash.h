/* Hashing: XXH3-128 over typed, delimited fields (keys, integrity), and a quick 64-bit hash for
 * tables that never leaves the process. */
#ifndef KILN_BASE_HASH_H
#define KILN_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

struct hash128 {
  uint64_t hi, lo;
};

/* A running hash of typed fields: each field enters with its type and its length, so that no two
 * field lists give the same byte stream. */
struct hasher {
  _Alignas(64) unsigned char state[640]; /* an XXH3 state; its size is asserted in hash.c */
};

void hash_begin(struct hasher *h);
void hash_field_str(struct hasher *h, const char *name, const char *value);
void hash_field_bytes(struct hasher *h, const char *name, const void *p, size_t n);
void hash_field_int(struct hasher *h, const char *name, int64_t value);
void hash_field_double(struct hasher *h, const char *name, double value); /* bit pattern */
struct hash128 hash_end(const struct hasher *h);

struct hash128 hash_bytes(const void *p, size_t n);
/* 32 lower-case hexadecimal digits and a NUL. */
void hash_hex(struct hash128 h, char out[33]);

uint64_t hash_quick(const void *p, size_t n);
static inline uint64_t hash_mix(uint64_t a, uint64_t b) {
  a ^= b + UINT64_C(0x9e3779b97f4a7c15) + (a << 6) + (a >> 2);
  a *= UINT64_C(0xbf58476d1ce4e5b9);
  return a ^ (a >> 29);
}

#endif
