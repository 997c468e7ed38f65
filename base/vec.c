/* Growth of typed arrays; see vec.h. */
#include "base/vec.h"

#include <string.h>

void *vec_grow(struct arena *a, void *at, uint32_t n, uint32_t *cap, size_t elem, uint32_t more) {
  uint64_t want = (uint64_t)n + more;
#ifdef KILN_STRESS
  uint64_t grown = want; /* moves on every growth */
#else
  uint64_t grown = *cap ? (uint64_t)*cap * 2 : 8;
#endif
  if (grown < want)
    grown = want;
  if (grown > UINT32_MAX)
    grown = UINT32_MAX;
  void *p = arena_get(a, grown < want ? SIZE_MAX : (size_t)grown * elem);
  if (n)
    memcpy(p, at, (size_t)n * elem);
  *cap = (uint32_t)grown;
  return p;
}
