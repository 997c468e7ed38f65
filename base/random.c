/* See random.h. */
#include "base/random.h"

#define ROUNDS 10

void random_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  uint32_t k0 = key[0], k1 = key[1];
  for (int i = 0; i < ROUNDS; i++) {
    uint64_t p0 = (uint64_t)c0 * UINT32_C(0xD2511F53), p1 = (uint64_t)c2 * UINT32_C(0xCD9E8D57);
    c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)p1;
    c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)p0;
    k0 += UINT32_C(0x9E3779B9);
    k1 += UINT32_C(0xBB67AE85);
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

uint32_t random_word(uint64_t seed, uint64_t counter, unsigned word) {
  const uint32_t c[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0};
  const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  uint32_t out[4];
  random_philox(c, key, out);
  return out[word];
}
