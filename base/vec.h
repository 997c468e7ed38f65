/* Typed growable arrays over an arena.
 *
 *   VEC(uint32_t) ids = {0};
 *   VEC_PUSH(arena, &ids, 7u);      ids.at[0], ids.n
 *
 * Growth copies into new arena memory: pointers into `at` do not survive a push. Nothing is freed
 * before the arena is. */
#ifndef KILN_BASE_VEC_H
#define KILN_BASE_VEC_H

#include "base/mem.h"

#define VEC(type)                                                                                  \
  struct {                                                                                         \
    type *at;                                                                                      \
    uint32_t n, cap;                                                                               \
  }

/* Gives room for one more element; returns the (possibly moved) array. Private to the macros. */
void *vec_grow(struct arena *a, void *at, uint32_t n, uint32_t *cap, size_t elem, uint32_t more);

#define VEC_RESERVE(arena, v, more)                                                                \
  ((v)->n + (more) <= (v)->cap                                                                     \
       ? (void)0                                                                                   \
       : (void)((v)->at = vec_grow((arena), (v)->at, (v)->n, &(v)->cap, sizeof *(v)->at, (more))))
#define VEC_PUSH(arena, v, value) (VEC_RESERVE(arena, v, 1), (void)((v)->at[(v)->n++] = (value)))
#define VEC_POP(v)                ((v)->at[--(v)->n])
#define VEC_LAST(v)               ((v)->at[(v)->n - 1])

#endif
