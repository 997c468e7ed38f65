/* What the device's random fill shares with the host's. */
#ifndef KILN_RUNTIME_RANDOM_H
#define KILN_RUNTIME_RANDOM_H

#include <stdint.h>

/* The seed, mixed: element i draws from the SplitMix64 outputs at base + (3i + 0..2) *
 * 0x9e37.... */
uint64_t rt_random_base(uint64_t seed);

#endif
