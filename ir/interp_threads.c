/* Interpreter: programs of the grid over threads.
 *
 * What a run gives does not depend on the number of threads:
 * 1. Programs that do not conflict give the same in any order. So each thread keeps shadows of what
 *    it touched, as race checks do, and they are compared at the end.
 * 2. Whatever goes wrong (a conflict, an assertion, the step limit, no memory) is not reported from
 *    here: outputs are restored, and the caller runs the programs one by one, which reports it.
 * 3. Kernels with atomics, with `print`, with stores of two elements to a byte, or whose arguments
 *    share memory are not run here.
 *
 * Threads start once the programs run so far say that it pays. The caller's thread works as well,
 * and it alone asks opt.interrupted. Memory comes from the caller's allocator under a lock. */
#include "ir/interp_impl.h"
#include "base/threads.h"

#include <stdatomic.h>
#include <string.h>

#define MAX_THREADS   64
#define PARALLEL_WORK (UINT64_C(1) << 23) /* of all that is left: some milliseconds */
#define MAX_BYTES     (UINT64_C(1) << 30) /* that all threads take for values */

struct interp_team {
  struct worker *workers;
  uint64_t n; /* programs */
  uint64_t max_steps;
  atomic_uint_fast64_t next, steps;
  atomic_bool stop, failed;
  bool interrupted;
  struct ir_op interrupted_at;
};

struct worker {
  struct interp in;
  struct interp_team *team;
  struct arena arena;
  struct diag_sink diags;
  const struct interp *from;
};

/* ---- which kernels ---- */

static void look_for_serial(void *user, struct ir_module *m, struct ir_op o) {
  struct interp *in = user;
  enum ir_opcode opcode = ir_op_at(m, o)->opcode;
  if (opcode == IR_ATOMIC || (opcode == IR_PRINT && in->opt.print))
    in->serial = true;
}

/* The bytes [*lo, *hi) that a tensor reaches; false if it has no elements. */
static bool reach(const struct interp_tensor *t, uintptr_t *lo, uintptr_t *hi) {
  int64_t first = t->offset, last = t->offset;
  for (uint32_t k = 0; k < t->rank; k++) {
    if (t->dim[k] == 0)
      return false;
    int64_t span = (t->dim[k] - 1) * t->stride[k];
    *(span < 0 ? &first : &last) += span;
  }
  int64_t bits = dtype_bits(t->dtype);
  *lo = (uintptr_t)t->data + (uintptr_t)(first * bits / 8);
  *hi = (uintptr_t)t->data + (uintptr_t)((last * bits + bits + 7) / 8);
  return true;
}

void interp_threads_prepare(struct interp *in) {
  ir_walk((struct ir_module *)(uintptr_t)in->m, in->m->body, look_for_serial, in);
  for (uint32_t k = 0; k < in->m->args.n; k++) {
    uintptr_t lo, hi, other_lo, other_hi;
    if (!in->bound[k].stored || !reach(&in->bound[k].t, &lo, &hi))
      continue;
    if (dtype_bits(in->bound[k].t.dtype) < 8)
      in->serial = true;
    for (uint32_t j = 0; j < in->m->args.n; j++)
      if (j != k && in->bound[j].t.data && reach(&in->bound[j].t, &other_lo, &other_hi) &&
          lo < other_hi && other_lo < hi)
        in->serial = true;
  }
}

static uint32_t thread_count(const struct interp *in, uint64_t left) {
  uint64_t n = in->opt.threads ? in->opt.threads : threads_processors();
  uint64_t bytes = in->scratch_bytes;
  for (uint32_t s = 1; s <= in->n_slots; s++)
    bytes += in->buf_bytes[s];
  if (n > MAX_BYTES / (bytes + 1))
    n = MAX_BYTES / (bytes + 1);
  n = n < left ? n : left;
  return (uint32_t)(n < MAX_THREADS ? n : MAX_THREADS);
}

/* A worker's own interpreter: shares the module, the plan and the tensors. */
static void set_up(void *user) {
  struct worker *w = user;
  struct interp *in = &w->in;
  const struct interp *from = w->from;
  struct arena *a = &w->arena;
  *in = *from;
  in->team = w->team;
  in->arena = a;
  in->diags = &w->diags;
  in->opt.max_steps = 0; /* the team counts */
  in->steps = in->steps_told = in->work = in->poll_at = 0;
  in->n_races = in->n_unwritten = 0;
  in->bound = arena_copy(a, from->bound, from->m->args.n * sizeof *in->bound);
  for (uint32_t k = 0; k < from->m->args.n; k++) {
    struct interp_bound *b = &in->bound[k];
    *b = (struct interp_bound){
        .t = b->t, .stored = b->stored, .tracked = b->stored || b->unset, .unset = b->unset};
    map_init(&b->pages, a);
  }
  in->views = arena_copy(a, from->views, from->n_views * sizeof *in->views);
  in->buf = ARENA_ARRAY(a, void *, from->n_slots + 1);
  for (uint32_t s = 1; s <= from->n_slots; s++)
    in->buf[s] = arena_copy(a, from->buf[s], from->buf_bytes[s]);
  in->scratch = arena_get(a, from->scratch_bytes);
  if (from->cuts) {
    in->cuts = arena_copy(a, from->cuts, from->n_cuts * sizeof *in->cuts);
    interp_cut_prepare(in);
  }
}

/* ---- what is stored, to be restored ---- */

static size_t element_count(const struct interp_tensor *t) {
  size_t n = 1;
  for (uint32_t k = 0; k < t->rank; k++)
    n *= (size_t)t->dim[k];
  return n;
}

/* Copies all elements to a dense array, or back. */
static void copy_elements(const struct interp_tensor *t, char *dense, bool back) {
  size_t size = dtype_bits(t->dtype) / 8, n = element_count(t);
  int64_t at[IR_MAX_RANK] = {0}, e = t->offset;
  for (size_t i = 0; i < n; i++) {
    char *p = (char *)t->data + e * (int64_t)size;
    memcpy(back ? p : dense + i * size, back ? dense + i * size : p, size);
    for (uint32_t k = t->rank; k-- > 0;) {
      e += t->stride[k];
      if (++at[k] < t->dim[k])
        break;
      e -= at[k] * t->stride[k];
      at[k] = 0;
    }
  }
}

struct snapshot {
  const struct interp *in;
  struct arena *arena;
  char **dense; /* by argument */
};

static void take_snapshot(void *user) {
  struct snapshot *s = user;
  s->dense = ARENA_ARRAY(s->arena, char *, s->in->m->args.n + 1);
  for (uint32_t k = 0; k < s->in->m->args.n; k++) {
    const struct interp_tensor *t = &s->in->bound[k].t;
    if (!s->in->bound[k].stored)
      continue;
    s->dense[k] = arena_get(s->arena, element_count(t) * dtype_bits(t->dtype) / 8);
    copy_elements(t, s->dense[k], false);
  }
}

static void restore(const struct snapshot *s) {
  for (uint32_t k = 0; k < s->in->m->args.n; k++)
    if (s->in->bound[k].stored)
      copy_elements(&s->in->bound[k].t, s->dense[k], true);
}

/* ---- conflicts between threads ---- */

static bool pages_conflict(const struct shadow *a, const struct shadow *b) {
  for (size_t i = 0; i < SHADOW_PAGE; i++)
    if ((a[i].writer && (b[i].writer || b[i].reader)) || (a[i].reader && b[i].writer))
      return true;
  return false;
}

/* Did programs of two interpreters touch one element, one of them writing? */
static bool conflict(const struct interp *x, const struct interp *y) {
  for (uint32_t k = 0; k < x->m->args.n; k++) {
    const struct interp_bound *a = &x->bound[k], *b = &y->bound[k];
    for (uint32_t i = 0; a->stored && i < a->pages.cap; i++) {
      const uint32_t *other = a->pages.full[i] ? map_get(&b->pages, a->pages.keys[i]) : NULL;
      if (other && pages_conflict(a->page.at[a->pages.values[i]], b->page.at[*other]))
        return true;
    }
  }
  return false;
}

/* ---- the threads ---- */

void interp_team_poll(struct interp *in, struct ir_op o) {
  struct interp_team *t = in->team;
  uint64_t more = in->steps - in->steps_told;
  in->steps_told = in->steps;
  if (atomic_fetch_add(&t->steps, more) + more > t->max_steps && t->max_steps) {
    atomic_store(&t->failed, true);
    atomic_store(&t->stop, true);
  }
  if (in->is_caller && in->opt.interrupted && in->opt.interrupted(in->opt.user)) {
    t->interrupted = true;
    t->interrupted_at = o;
    atomic_store(&t->stop, true);
  }
  if (atomic_load(&t->stop))
    in->stopped = true;
}

static void run_share(void *user) {
  struct worker *w = user;
  struct interp_team *t = w->team;
  if (w->in.is_caller) /* however few programs are left for it */
    interp_team_poll(&w->in, ir_block_at(w->in.m, w->in.m->body)->last);
  while (!atomic_load(&t->stop)) {
    uint64_t i = atomic_fetch_add(&t->next, 1);
    if (i >= t->n)
      break;
    interp_run_program(&w->in, i, t->n);
    if ((w->in.stopped && !atomic_load(&t->stop)) || w->in.n_races || w->in.n_unwritten) {
      atomic_store(&t->failed, true);
      atomic_store(&t->stop, true);
    }
  }
  atomic_fetch_add(&t->steps, w->in.steps - w->in.steps_told);
}

static void run_worker(void *user, uint32_t k) {
  struct interp_team *t = user;
  struct worker *w = &t->workers[k];
  if (!arena_guard(&w->arena, run_share, w)) {
    atomic_store(&t->failed, true);
    atomic_store(&t->stop, true);
  }
}

/* While the caller waits for the others, it goes on asking whether to stop. */
static void poll_caller(void *user) {
  struct interp *in = &((struct interp_team *)user)->workers[0].in;
  interp_team_poll(in, ir_block_at(in->m, in->m->body)->last);
}

/* Whether all programs are done, and nothing has to be done again one by one. */
static bool all_well(const struct interp *in, const struct interp_team *t,
                     const struct worker *workers, uint32_t n) {
  if (atomic_load(&t->failed))
    return false;
  if (t->max_steps && atomic_load(&t->steps) > t->max_steps)
    return false;
  for (uint32_t k = 0; k < n; k++) {
    if (in->opt.check_races && conflict(&workers[k].in, in))
      return false;
    for (uint32_t j = 0; j < k; j++)
      if (conflict(&workers[k].in, &workers[j].in))
        return false;
  }
  return true;
}

bool interp_run_parallel(struct interp *in, uint64_t first, uint64_t n) {
  uint64_t left = n - first;
  uint32_t n_threads = in->serial ? 1 : thread_count(in, left);
  if (n_threads < 2 || first == 0 || in->work / first < PARALLEL_WORK / left)
    return false;
  struct interp_team *t = ARENA_NEW(in->arena, struct interp_team);
  struct worker *workers = ARENA_ARRAY(in->arena, struct worker, n_threads);
  const struct mem_alloc *mem = threads_mem_new(in->arena->mem);
  if (!mem)
    return false;
  t->workers = workers;
  t->n = n;
  t->max_steps = in->opt.max_steps;
  atomic_init(&t->next, first);
  atomic_init(&t->steps, in->steps);
  atomic_init(&t->stop, false);
  atomic_init(&t->failed, false);
  bool ok = true;
  for (uint32_t k = 0; k < n_threads; k++) {
    struct worker *w = &workers[k];
    w->team = t;
    w->from = in;
    arena_init(&w->arena, mem, NULL);
    ok = diag_init(&w->diags, mem) && ok;
    ok = ok && arena_guard(&w->arena, set_up, w);
  }
  struct snapshot before = {in, &workers[0].arena, NULL};
  ok = ok && arena_guard(&workers[0].arena, take_snapshot, &before);
  if (ok) {
    workers[0].in.is_caller = true;
    threads_run(n_threads, run_worker, poll_caller, t);
    ok = t->interrupted || all_well(in, t, workers, n_threads);
    if (!ok)
      restore(&before);
    else
      in->steps = atomic_load(&t->steps);
  }
  if (!ok)
    in->serial = true; /* not tried again */
  for (uint32_t k = 0; k < n_threads; k++) {
    diag_free(&workers[k].diags);
    arena_free(&workers[k].arena);
  }
  threads_mem_free(mem);
  if (ok && t->interrupted)
    interp_fail(in, t->interrupted_at, DIAG_INTERRUPTED, "interrupted while interpreting");
  return ok;
}
