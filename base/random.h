/* Philox4x32-10: random numbers from a counter and a key, the same on every machine and in every
 * order. (J. Salmon and others, Parallel random numbers: as easy as 1, 2, 3, 2011.) */
#ifndef KILN_BASE_RANDOM_H
#define KILN_BASE_RANDOM_H

#include <stdint.h>

void random_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
/* Word 0..3 of the block whose counter is `counter` (its upper 64 bits are 0) under key `seed`:
 * what the op `random` gives. */
uint32_t random_word(uint64_t seed, uint64_t counter, unsigned word);

#endif
