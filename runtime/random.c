/* Counter-based random inputs: an element's value depends on the seed and its index alone.
 *
 * Normal values are sums of twelve 16-bit uniforms: integers scaled by 2^-16, so they need no libm,
 * are the same on every machine and on the GPU, and are exact in f32. */
#include "runtime/internal.h"
#include "runtime/random.h"

#include "base/num.h"

static uint64_t mix(uint64_t z) { /* SplitMix64's output function */
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

#define STEP UINT64_C(0x9e3779b97f4a7c15)

uint64_t rt_random_base(uint64_t seed) {
  return mix(seed + STEP);
}

static int64_t sum_of_four(uint64_t u) {
  return (int64_t)((u & 0xffff) + (u >> 16 & 0xffff) + (u >> 32 & 0xffff) + (u >> 48));
}

double rt_random(enum rt_fill fill, uint64_t seed, uint64_t index) {
  uint64_t base = rt_random_base(seed), at = base + 3 * index * STEP;
  switch (fill) {
  case RT_FILL_NORMAL: {
    int64_t sum =
        sum_of_four(mix(at)) + sum_of_four(mix(at + STEP)) + sum_of_four(mix(at + 2 * STEP));
    return (double)(sum - 6 * 65535) / 65536;
  }
  case RT_FILL_SMALL: return (double)((mix(at) >> 32) * 5 >> 32);
  case RT_FILL_ZERO: break;
  }
  return 0;
}

void rt_random_fill(enum rt_fill fill, uint64_t seed, double scale, enum dtype t, void *out,
                    int64_t first, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    num_store(t, out, first + i, rt_random(fill, seed, (uint64_t)(first + i)) * scale);
}
