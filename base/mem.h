/* Memory: the one allocator interface, out-of-memory traps, and arenas.
 *
 * Every byte Kiln uses comes through a `mem_alloc`. Compiler code allocates from arenas and never
 * frees; an arena that cannot grow jumps to the innermost `oom_trap`, so code between a trap and an
 * allocation owns nothing but arena memory. Long-lived objects outside the compiler use
 * mem_get/mem_resize/mem_drop and check for NULL. */
#ifndef KILN_BASE_MEM_H
#define KILN_BASE_MEM_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Allocates, resizes or frees: new_size 0 frees `p` and returns NULL; p NULL allocates. old_size is
 * the size of `p` as last given. Returns NULL on failure and then leaves `p` as it was. */
typedef void *(*mem_fn)(void *user, void *p, size_t old_size, size_t new_size);

struct mem_alloc {
  mem_fn fn;
  void *user;
};

/* The C library's allocator. */
extern const struct mem_alloc mem_libc;

void *mem_get(const struct mem_alloc *mem, size_t size);
/* Zero-filled. */
void *mem_get0(const struct mem_alloc *mem, size_t size);
void *mem_resize(const struct mem_alloc *mem, void *p, size_t old_size, size_t new_size);
void mem_drop(const struct mem_alloc *mem, void *p, size_t size);
/* A NUL-terminated copy; its size is strlen + 1. */
char *mem_strdup(const struct mem_alloc *mem, const char *s);

/* Where an arena goes when it cannot grow. With `raise` set it is called and must not return
 * (inside Lua it raises a Lua memory error); otherwise the trap's jump buffer is used. */
struct oom_trap {
  jmp_buf env;
  void (*raise)(void *user);
  void *user;
};

#define ARENA_ALIGN 16

struct arena_chunk; /* private to arena.c */

struct arena {
  const struct mem_alloc *mem;
  struct oom_trap *trap; /* must be set before the first allocation */
  struct arena_chunk *chunk;
  size_t limit; /* bytes over all chunks; 0 = none */
  size_t total; /* bytes over all chunks now */
};

struct arena_mark {
  struct arena_chunk *chunk;
  size_t used;
};

void arena_init(struct arena *a, const struct mem_alloc *mem, struct oom_trap *trap);
/* Frees every chunk; the arena may be used again. */
void arena_free(struct arena *a);
/* Uninitialised (0x55-filled in debug builds), 16-byte aligned; never NULL. size 0 gives a pointer
 * that must not be read. */
void *arena_get(struct arena *a, size_t size);
void *arena_get0(struct arena *a, size_t size);
void *arena_copy(struct arena *a, const void *src, size_t size);
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Everything allocated after the mark is given back by arena_reset. */
struct arena_mark arena_get_mark(const struct arena *a);
void arena_reset(struct arena *a, struct arena_mark mark);

#define ARENA_NEW(arena, type)      ((type *)arena_get0((arena), sizeof(type)))
#define ARENA_ARRAY(arena, type, n) ((type *)arena_get0((arena), sizeof(type) * (size_t)(n)))

/* Runs fn(user) under a fresh trap set on `a` (its former trap is restored after). Returns false if
 * memory ran out. */
bool arena_guard(struct arena *a, void (*fn)(void *user), void *user);

#endif
