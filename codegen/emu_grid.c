/* Emulator: clusters over threads.
 *
 * What a run gives does not depend on the number of threads: blocks that do not conflict give the
 * same in any order, and conflicts are noticed by whoever comes second (emu_race.c). Whatever goes
 * wrong on a thread is not reported from there: outputs are restored and all clusters run again,
 * one by one, which reports it. Kernels whose blocks change memory atomically, or print, always run
 * one by one. */
#include "codegen/emu_impl.h"
#include "base/threads.h"

#include <string.h>

#define PARALLEL_STEPS    20000 /* of all that is left: some milliseconds */
#define SKELETON_CLUSTERS 3
#define MAX_THREADS       64
#define MAX_BYTES         (UINT64_C(1) << 30) /* that all threads take */

struct emu_team {
  struct emu *e;
  struct worker *workers;
  uint64_t n; /* clusters */
  atomic_uint_fast64_t next, steps;
  atomic_bool stop, failed;
  bool interrupted;
};

struct worker {
  struct emu_unit u;
  struct arena arena;
  struct diag_sink diags;
};

/* The cluster that is run as number k. */
static uint64_t cluster_at(const struct emu *e, uint64_t k) {
  return e->opt->mode == EMU_REVERSED ? e->grid / e->cluster - 1 - k : k;
}

static bool interrupted(struct emu_unit *u) {
  const struct emu_options *opt = u->e->opt;
  return opt->interrupted && opt->interrupted(opt->user);
}

static void step_limit(struct emu_unit *u) {
  diag_report(u->diags, DIAG_ERROR, DIAG_STEP_LIMIT, DIAG_NOWHERE,
              "more than %llu instructions were executed",
              (unsigned long long)u->e->opt->max_steps);
  u->stopped = true;
}

static void was_interrupted(struct emu_unit *u) {
  diag_report(u->diags, DIAG_ERROR, DIAG_INTERRUPTED, DIAG_NOWHERE, "interrupted while emulating");
  u->stopped = true;
}

void emu_poll(struct emu_unit *u) {
  struct emu_team *t = u->team;
  uint64_t limit = u->e->opt->max_steps;
  if (!t) {
    if (limit && u->steps > limit)
      step_limit(u);
    else if (interrupted(u))
      was_interrupted(u);
    return;
  }
  uint64_t more = u->steps - u->steps_told;
  u->steps_told = u->steps;
  if (atomic_fetch_add(&t->steps, more) + more > limit && limit) {
    atomic_store(&t->failed, true);
    atomic_store(&t->stop, true);
  }
  if (u->is_caller && interrupted(u)) {
    t->interrupted = true;
    atomic_store(&t->stop, true);
  }
  if (atomic_load(&t->stop))
    u->stopped = true;
}

/* ---- threads ---- */

static void run_share(void *user) {
  struct worker *w = user;
  struct emu_team *t = w->u.team;
  emu_unit_init(&w->u);
  while (!atomic_load(&t->stop)) {
    uint64_t k = atomic_fetch_add(&t->next, 1);
    if (k >= t->n)
      break;
    struct arena_mark mark = arena_get_mark(&w->arena);
    emu_run_cluster(&w->u, cluster_at(t->e, k));
    for (uint32_t a = 0; a < t->e->n_agents; a++)
      w->u.agent[a].copies.cap = w->u.agent[a].copies.n = 0;
    arena_reset(&w->arena, mark);
    if (w->u.stopped && !atomic_load(&t->stop)) {
      atomic_store(&t->failed, true);
      atomic_store(&t->stop, true);
    }
  }
  emu_poll(&w->u);
}

static void work(void *user, uint32_t k) {
  struct emu_team *t = user;
  struct worker *w = &t->workers[k];
  if (!arena_guard(&w->arena, run_share, w)) {
    atomic_store(&t->failed, true);
    atomic_store(&t->stop, true);
  }
}

static void wait(void *user) {
  struct emu_team *t = user;
  emu_poll(&t->workers[0].u);
}

static uint32_t thread_count(const struct emu *e, uint64_t left) {
  uint64_t n = e->opt->threads ? e->opt->threads : threads_processors();
  uint64_t agent = (uint64_t)e->plan.n_slots * EMU_SLOT;
  for (uint32_t r = 1; r < e->m->res.n; r++)
    agent += (uint64_t)emu_frag_elems(e->m, r) * EMU_LANES * 8;
  uint64_t granules = e->step->smem_bytes / e->plan.granule + 1;
  uint64_t block = e->step->smem_bytes * UINT64_C(9) +
                   granules * (sizeof(struct emu_granule) + e->n_agents * sizeof(struct emu_read));
  uint64_t bytes = agent * e->n_agents + block * e->cluster;
  n = n < MAX_BYTES / (bytes + 1) ? n : MAX_BYTES / (bytes + 1);
  n = n < left ? n : left;
  return (uint32_t)(n < MAX_THREADS ? n : MAX_THREADS);
}

/* ---- what is stored, to be restored ---- */

struct snapshot {
  struct emu *e;
  struct arena *a;
  char **kept;
};

static size_t region_bytes(const struct emu_region *r) {
  return (size_t)(r->hi - r->lo) / r->size * (r->payload ? 8 : r->size);
}

static char *first_byte(const struct emu_region *r) {
  return r->data + r->lo / r->size * (r->payload ? 8 : (int64_t)r->size);
}

static size_t shadow_bytes(const struct emu_region *r) {
  return (size_t)((r->hi - r->lo) / r->size + 1) * sizeof *r->shadow;
}

static void keep(void *user) {
  struct snapshot *s = user;
  s->kept = ARENA_ARRAY(s->a, char *, s->e->n_regions * 2);
  for (uint32_t k = 0; k < s->e->n_regions; k++) {
    const struct emu_region *r = &s->e->region[k];
    if (!r->shadow)
      continue;
    s->kept[2 * k] = arena_copy(s->a, first_byte(r), region_bytes(r));
    s->kept[2 * k + 1] = arena_copy(s->a, r->shadow, shadow_bytes(r));
  }
}

static void restore(const struct snapshot *s) {
  for (uint32_t k = 0; k < s->e->n_regions; k++) {
    const struct emu_region *r = &s->e->region[k];
    if (!r->shadow)
      continue;
    memcpy(first_byte(r), s->kept[2 * k], region_bytes(r));
    memcpy(r->shadow, s->kept[2 * k + 1], shadow_bytes(r));
  }
}

/* ---- the grid ---- */

static void add_stats(struct emu_stats *to, const struct emu_stats *from) {
  uint64_t blocks = to->blocks + from->blocks;
  if (from->barriers || from->sload.best || from->sstore.best || from->ldmatrix.best ||
      from->copy.best) /* of the one that ran block 0 */
    *to = *from;
  to->blocks = blocks;
}

/* Clusters [first, n) over threads; false: run them one by one, nothing has changed. */
static bool run_parallel(struct emu *e, struct emu_unit *u, uint64_t first, uint64_t n) {
  uint32_t n_threads = thread_count(e, n - first);
  if (n_threads < 2 || u->steps / first < PARALLEL_STEPS / (n - first))
    return false;
  struct emu_team *t = ARENA_NEW(u->arena, struct emu_team);
  struct snapshot before = {.e = e, .a = u->arena};
  bool ok = true;
  keep(&before);
  t->e = e;
  t->workers = ARENA_ARRAY(u->arena, struct worker, n_threads);
  const struct mem_alloc *mem = threads_mem_new(u->arena->mem);
  if (!mem) /* from here on nothing is taken from the arena, whose trap would leave this behind */
    return false;
  t->n = n;
  atomic_init(&t->next, first);
  atomic_init(&t->steps, u->steps);
  atomic_init(&t->stop, false);
  atomic_init(&t->failed, false);
  for (uint32_t k = 0; k < n_threads; k++) {
    struct worker *w = &t->workers[k];
    w->u = (struct emu_unit){.e = e, .arena = &w->arena, .diags = &w->diags, .team = t};
    w->u.is_caller = k == 0;
    arena_init(&w->arena, mem, NULL);
    ok = diag_init(&w->diags, mem) && ok;
  }
  if (ok)
    threads_run(n_threads, work, wait, t);
  ok = ok && !atomic_load(&t->failed);
  for (uint32_t k = 0; k < n_threads; k++) {
    if (ok)
      add_stats(&u->stats, &t->workers[k].u.stats);
    diag_free(&t->workers[k].diags);
    arena_free(&t->workers[k].arena);
  }
  threads_mem_free(mem);
  if (!ok)
    restore(&before);
  else
    u->steps = atomic_load(&t->steps);
  if (ok && t->interrupted)
    was_interrupted(u);
  return ok;
}

bool emu_run_grid(struct emu *e, struct emu_unit *u) {
  uint64_t n = e->grid / e->cluster;
  n = e->skeleton && n > SKELETON_CLUSTERS ? SKELETON_CLUSTERS : n;
  bool serial = e->serial;
  emu_unit_init(u);
  for (uint64_t k = 0; k < n && !u->stopped; k++) {
    if (k && !serial) {
      if (run_parallel(e, u, k, n))
        break;
      serial = u->steps / k >= PARALLEL_STEPS / (n - k); /* tried, and not again */
    }
    emu_run_cluster(u, cluster_at(e, k));
  }
  emu_poll(u);
  u->stats.steps = u->steps;
  return !u->stopped;
}
