/* The allocator interface and arenas; see mem.h.
 *
 * An arena is a list of chunks, newest first. Under AddressSanitizer what is not handed out is
 * poisoned, with a red zone behind each block; debug builds fill new memory with 0x55. */
#include "base/mem.h"

#include "base/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif
#ifdef HAS_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, n)   ASAN_POISON_MEMORY_REGION((p), (n))
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION((p), (n))
#define RED_ZONE       16
#else
#define POISON(p, n)   ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#define RED_ZONE       0
#endif

#ifdef KILN_STRESS
#define CHUNK_SIZE 256
#else
#define CHUNK_SIZE ((size_t)64 << 10)
#endif

struct arena_chunk {
  struct arena_chunk *older;
  size_t size; /* of data */
  size_t used;
  size_t pad; /* keeps data 16-byte aligned */
  unsigned char data[];
};

static void *libc_alloc(void *user, void *p, size_t old_size, size_t new_size) {
  (void)user;
  (void)old_size;
  if (new_size == 0) {
    free(p);
    return NULL;
  }
  return realloc(p, new_size);
}

const struct mem_alloc mem_libc = {libc_alloc, NULL};

void *mem_get(const struct mem_alloc *mem, size_t size) {
  return mem->fn(mem->user, NULL, 0, size ? size : 1);
}

void *mem_get0(const struct mem_alloc *mem, size_t size) {
  void *p = mem_get(mem, size);
  if (p)
    memset(p, 0, size);
  return p;
}

void *mem_resize(const struct mem_alloc *mem, void *p, size_t old_size, size_t new_size) {
  return mem->fn(mem->user, p, old_size, new_size ? new_size : 1);
}

void mem_drop(const struct mem_alloc *mem, void *p, size_t size) {
  if (p)
    mem->fn(mem->user, p, size, 0);
}

char *mem_strdup(const struct mem_alloc *mem, const char *s) {
  size_t n = strlen(s) + 1;
  char *p = mem_get(mem, n);
  if (p)
    memcpy(p, s, n);
  return p;
}

void arena_init(struct arena *a, const struct mem_alloc *mem, struct oom_trap *trap) {
  memset(a, 0, sizeof *a);
  a->mem = mem;
  a->trap = trap;
}

static void drop_chunk(struct arena *a) {
  struct arena_chunk *c = a->chunk;
  a->chunk = c->older;
  a->total -= c->size;
  UNPOISON(c->data, c->size);
  mem_drop(a->mem, c, sizeof *c + c->size);
}

void arena_free(struct arena *a) {
  while (a->chunk)
    drop_chunk(a);
}

static _Noreturn void out_of_memory(struct arena *a) {
  struct oom_trap *trap = a->trap;
  KILN_ASSERT(trap != NULL);
  if (trap->raise)
    trap->raise(trap->user);
  longjmp(trap->env, 1);
}

static void add_chunk(struct arena *a, size_t need) {
  size_t size = need > CHUNK_SIZE ? need : CHUNK_SIZE;
  if (need > SIZE_MAX / 2 || (a->limit && (size > a->limit || a->total > a->limit - size)))
    out_of_memory(a);
  struct arena_chunk *c = mem_get(a->mem, sizeof *c + size);
  if (!c)
    out_of_memory(a);
  c->older = a->chunk;
  c->size = size;
  c->used = 0;
  a->chunk = c;
  a->total += size;
  POISON(c->data, size);
}

void *arena_get(struct arena *a, size_t size) {
  if (size > SIZE_MAX / 2)
    out_of_memory(a);
  size_t step = (size + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN + RED_ZONE;
  if (!a->chunk || a->chunk->size - a->chunk->used < step)
    add_chunk(a, step);
  struct arena_chunk *c = a->chunk;
  unsigned char *p = c->data + c->used;
  c->used += step;
  UNPOISON(p, size);
#ifndef NDEBUG
  memset(p, 0x55, size);
#endif
  return p;
}

void *arena_get0(struct arena *a, size_t size) {
  void *p = arena_get(a, size);
  memset(p, 0, size);
  return p;
}

void *arena_copy(struct arena *a, const void *src, size_t size) {
  void *p = arena_get(a, size);
  if (size)
    memcpy(p, src, size);
  return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t n) {
  char *p = arena_get(a, n + 1);
  if (n)
    memcpy(p, s, n);
  p[n] = 0;
  return p;
}

char *arena_strdup(struct arena *a, const char *s) {
  return arena_strndup(a, s, strlen(s));
}

char *arena_printf(struct arena *a, const char *fmt, ...) {
  va_list ap, again;
  va_start(ap, fmt);
  va_copy(again, ap);
  int n = vsnprintf(NULL, 0, fmt, ap);
  va_end(ap);
  KILN_ASSERT(n >= 0);
  char *p = arena_get(a, (size_t)n + 1);
  vsnprintf(p, (size_t)n + 1, fmt, again);
  va_end(again);
  return p;
}

struct arena_mark arena_get_mark(const struct arena *a) {
  return (struct arena_mark){a->chunk, a->chunk ? a->chunk->used : 0};
}

void arena_reset(struct arena *a, struct arena_mark mark) {
  while (a->chunk != mark.chunk)
    drop_chunk(a);
  if (a->chunk) {
    POISON(a->chunk->data + mark.used, a->chunk->used - mark.used);
    a->chunk->used = mark.used;
  }
}

bool arena_guard(struct arena *a, void (*fn)(void *user), void *user) {
  struct oom_trap trap = {.raise = NULL, .user = NULL};
  struct oom_trap *volatile former = a->trap;
  a->trap = &trap;
  volatile bool ok = true;
  if (setjmp(trap.env) == 0)
    fn(user);
  else
    ok = false;
  a->trap = former;
  return ok;
}
