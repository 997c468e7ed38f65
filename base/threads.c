/* Threads of a run; see threads.h. */
#include "base/threads.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#define MAX_THREADS 64
#define WAIT_NS     20000000 /* between two calls of wait */

struct team {
  void (*work)(void *user, uint32_t k);
  void *user;
  pthread_mutex_t lock; /* of n_running */
  pthread_cond_t done;
  uint32_t n_running;
};

struct member {
  struct team *team;
  uint32_t k;
  pthread_t thread;
};

uint32_t threads_processors(void) {
  cpu_set_t cpus;
  return sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? (uint32_t)CPU_COUNT(&cpus) : 1;
}

static void *thread_main(void *user) {
  struct member *m = user;
  struct team *t = m->team;
  t->work(t->user, m->k);
  pthread_mutex_lock(&t->lock);
  t->n_running--;
  pthread_cond_signal(&t->done);
  pthread_mutex_unlock(&t->lock);
  return NULL;
}

static void wait_for_all(struct team *t, void (*wait)(void *user)) {
  pthread_mutex_lock(&t->lock);
  while (t->n_running) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WAIT_NS;
    if (until.tv_nsec >= 1000000000) {
      until.tv_nsec -= 1000000000;
      until.tv_sec++;
    }
    if (pthread_cond_timedwait(&t->done, &t->lock, &until) != ETIMEDOUT)
      continue;
    pthread_mutex_unlock(&t->lock);
    wait(t->user);
    pthread_mutex_lock(&t->lock);
  }
  pthread_mutex_unlock(&t->lock);
}

void threads_run(uint32_t n, void (*work)(void *user, uint32_t k), void (*wait)(void *user),
                 void *user) {
  struct team t = {.work = work, .user = user};
  struct member members[MAX_THREADS];
  sigset_t all, before;
  uint32_t started = 1;
  n = n < MAX_THREADS ? n : MAX_THREADS;
  if (n > 1 && pthread_mutex_init(&t.lock, NULL) == 0) {
    pthread_cond_init(&t.done, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; started < n; started++) {
      members[started] = (struct member){.team = &t, .k = started};
      pthread_mutex_lock(&t.lock);
      t.n_running++;
      pthread_mutex_unlock(&t.lock);
      if (pthread_create(&members[started].thread, NULL, thread_main, &members[started]) != 0) {
        pthread_mutex_lock(&t.lock);
        t.n_running--; /* fewer will do */
        pthread_mutex_unlock(&t.lock);
        break;
      }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    work(user, 0);
    wait_for_all(&t, wait);
    for (uint32_t k = 1; k < started; k++)
      pthread_join(members[k].thread, NULL);
    pthread_cond_destroy(&t.done);
    pthread_mutex_destroy(&t.lock);
    return;
  }
  work(user, 0);
}

/* ---- parts ---- */

struct split {
  void (*part)(void *user, int64_t first, int64_t end);
  void *user;
  int64_t n, size;
  atomic_int_fast64_t next; /* the first number that no thread has taken */
};

static void run_parts(void *user, uint32_t k) {
  struct split *s = user;
  (void)k;
  for (;;) {
    int64_t first = atomic_fetch_add(&s->next, s->size);
    if (first >= s->n)
      return;
    s->part(s->user, first, s->n - first < s->size ? s->n : first + s->size);
  }
}

static void wait_for_nothing(void *user) {
  (void)user;
}

void threads_split(int64_t n, int64_t least, void (*part)(void *user, int64_t first, int64_t end),
                   void *user) {
  least = least > 0 ? least : 1;
  int64_t threads = threads_processors(), most = n / least;
  threads = threads < most ? threads : most;
  if (threads < 2) {
    if (n > 0)
      part(user, 0, n);
    return;
  }
  /* Several parts a thread: one that is held up has fewer. */
  int64_t size = n / (4 * threads) > least ? n / (4 * threads) : least;
  struct split s = {.part = part, .user = user, .n = n, .size = size};
  threads_run((uint32_t)threads, run_parts, wait_for_nothing, &s);
}

/* ---- memory ---- */

struct locked_mem {
  struct mem_alloc alloc; /* what callers get */
  const struct mem_alloc *mem;
  pthread_mutex_t lock;
};

static void *locked(void *user, void *p, size_t old_size, size_t new_size) {
  struct locked_mem *l = user;
  pthread_mutex_lock(&l->lock);
  p = l->mem->fn(l->mem->user, p, old_size, new_size);
  pthread_mutex_unlock(&l->lock);
  return p;
}

const struct mem_alloc *threads_mem_new(const struct mem_alloc *mem) {
  struct locked_mem *l = mem_get(mem, sizeof *l);
  if (!l)
    return NULL;
  *l = (struct locked_mem){.alloc = {locked, l}, .mem = mem};
  if (pthread_mutex_init(&l->lock, NULL) != 0) {
    mem_drop(mem, l, sizeof *l);
    return NULL;
  }
  return &l->alloc;
}

void threads_mem_free(const struct mem_alloc *locked_alloc) {
  if (!locked_alloc)
    return;
  struct locked_mem *l = locked_alloc->user;
  pthread_mutex_destroy(&l->lock);
  mem_drop(l->mem, l, sizeof *l);
}
