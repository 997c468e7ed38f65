/* Helper processes that compile: kiln-worker, started by posix_spawn, spoken to over a socket pair.
 *
 * A helper compiles one job at a time; a batch is spread over several. A helper that crashes,
 * hangs or grows past its memory limit loses the job it had, which then fails with the reason; the
 * others go on, and a new helper is started when there is more to do. Helpers stay for the next
 * call and are ended with the context. They get their own process group, so that Ctrl-C reaches
 * the command alone; a helper whose parent is gone ends itself. */
#define _GNU_SOURCE /* environ, POLLRDHUP */
#include "runtime/internal.h"
#include "runtime/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_WORKERS      8
#define START_TIMEOUT_MS 30000.0

enum worker_state { WORKER_DOWN, WORKER_STARTING, WORKER_IDLE, WORKER_BUSY };

struct worker {
  enum worker_state state;
  pid_t pid;
  int fd, err_fd;
  uint32_t job;
  double deadline;    /* ms, monotonic */
  unsigned char *buf; /* the message being received */
  size_t n, cap;
  char err[512]; /* the end of what it wrote to stderr */
  size_t err_n;
};

struct rt_worker_pool {
  uint32_t n; /* workers in use, at most */
  struct worker at[MAX_WORKERS];
  int nvrtc_major, nvrtc_minor;
  char no_nvrtc[1024]; /* a helper's reason why it cannot compile; "" if it can */
  char path[1024];
  char why[2048]; /* why there is no helper */
};

/* One rt_pool_compile. */
struct batch {
  struct rt_ctx *ctx;
  struct rt_worker_pool *pool;
  const struct rt_compile_job *jobs;
  struct rt_compiled *out;
  const char **errors;
  uint32_t n, next, done;
  bool no_memory;
};

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* ---- starting and ending ---- */

static void reset_worker(struct rt_ctx *ctx, struct worker *w) {
  if (w->fd >= 0)
    close(w->fd);
  if (w->err_fd >= 0)
    close(w->err_fd);
  mem_drop(&ctx->mem, w->buf, w->cap);
  memset(w, 0, sizeof *w);
  w->fd = w->err_fd = -1;
}

/* Kills and awaits; gives the wait status, or -1 if the host reaped it (SIGCHLD ignored). */
static int end_worker(struct rt_ctx *ctx, struct worker *w, bool kill_it) {
  int status = -1;
  if (w->state == WORKER_DOWN)
    return status;
  if (kill_it)
    kill(w->pid, SIGKILL);
  while (waitpid(w->pid, &status, 0) < 0)
    if (errno != EINTR) {
      status = -1;
      break;
    }
  reset_worker(ctx, w);
  return status;
}

/* The helper's path: the context's, else beside the running executable. */
static bool find_helper(struct rt_ctx *ctx, struct rt_worker_pool *p) {
  if (ctx->options.worker_path) {
    snprintf(p->path, sizeof p->path, "%s", ctx->options.worker_path);
  } else {
    ssize_t n = readlink("/proc/self/exe", p->path, sizeof p->path - 16);
    char *slash = n > 0 ? memrchr(p->path, '/', (size_t)n) : NULL;
    if (!slash) {
      snprintf(p->why, sizeof p->why,
               "the running executable's folder is unknown, and no path to "
               "kiln-worker was given");
      return false;
    }
    memcpy(slash, "/kiln-worker", sizeof "/kiln-worker");
  }
  if (access(p->path, X_OK) != 0) {
    snprintf(p->why, sizeof p->why, "no compile helper at %s (%s)", p->path, strerror(errno));
    return false;
  }
  return true;
}

static int spawn(struct rt_ctx *ctx, const char *path, struct worker *w, int child_fd,
                 int child_err) {
  char memory[32], socket_text[8] = "3";
  snprintf(memory, sizeof memory, "%" PRIu64, ctx->options.compile_memory);
  /* What this process has loaded, or was told to load, the helper loads too. */
  const struct rt_lib *l = &ctx->libs[RT_LIB_NVRTC];
  const char *nvrtc = ctx->options.nvrtc;
  if (l->state == LIB_LOADED && l->path && l->path[0] == '/')
    nvrtc = l->path;
  union {
    const char *in[10];
    char *out[10]; /* posix_spawn promises not to change them */
  } argv = {{path, socket_text, memory, nvrtc ? nvrtc : "",
             ctx->options.cuda_home ? ctx->options.cuda_home : "",
             ctx->options.private_dir ? ctx->options.private_dir : "", NULL}};
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attr;
  if (posix_spawn_file_actions_init(&actions))
    return ENOMEM;
  if (posix_spawnattr_init(&attr)) {
    posix_spawn_file_actions_destroy(&actions);
    return ENOMEM;
  }
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  int r = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  r = r ? r : posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  r = r ? r : posix_spawn_file_actions_adddup2(&actions, child_err, 2);
  r = r ? r : posix_spawn_file_actions_adddup2(&actions, child_fd, 3);
  r = r ? r : posix_spawnattr_setpgroup(&attr, 0);
  r = r ? r : posix_spawnattr_setsigmask(&attr, &none);
  r = r ? r : posix_spawnattr_setsigdefault(&attr, &all);
  r = r ? r
        : posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
  r = r ? r : posix_spawn(&w->pid, path, &actions, &attr, argv.out, environ);
  posix_spawnattr_destroy(&attr);
  posix_spawn_file_actions_destroy(&actions);
  return r;
}

/* The descriptor, moved to 10 or above so that the child's 0 to 3 can be set up from it. */
static int moved_up(int fd) {
  int high = fcntl(fd, F_DUPFD_CLOEXEC, 10);
  close(fd);
  return high;
}

static bool start_worker(struct rt_ctx *ctx, struct rt_worker_pool *p, struct worker *w) {
  int sockets[2] = {-1, -1}, errs[2] = {-1, -1}, r = 0;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) || pipe2(errs, O_CLOEXEC))
    r = errno;
  if (!r) {
    sockets[1] = moved_up(sockets[1]);
    errs[1] = moved_up(errs[1]);
    if (sockets[1] < 0 || errs[1] < 0)
      r = EMFILE;
  }
  if (!r)
    r = spawn(ctx, p->path, w, sockets[1], errs[1]);
  if (sockets[1] >= 0)
    close(sockets[1]);
  if (errs[1] >= 0)
    close(errs[1]);
  if (r) {
    if (sockets[0] >= 0)
      close(sockets[0]);
    if (errs[0] >= 0)
      close(errs[0]);
    snprintf(p->why, sizeof p->why, "%s cannot be started: %s", p->path, strerror(r));
    return false;
  }
  struct timeval limit = {30, 0}; /* a stopped helper must not block sending for ever */
  setsockopt(sockets[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  fcntl(errs[0], F_SETFL, O_NONBLOCK);
  w->fd = sockets[0];
  w->err_fd = errs[0];
  w->state = WORKER_STARTING;
  w->deadline = now_ms() + START_TIMEOUT_MS;
  return true;
}

/* ---- talking ---- */

/* Keeps the newest part of stderr; ptxas explains itself there before it aborts. */
static void read_stderr(struct worker *w) {
  char chunk[256];
  ssize_t n;
  while ((n = read(w->err_fd, chunk, sizeof chunk)) > 0) {
    size_t most = sizeof w->err - 1, k = (size_t)n;
    if (w->err_n + k > most) {
      size_t drop = w->err_n + k - most;
      drop = drop < w->err_n ? drop : w->err_n;
      memmove(w->err, w->err + drop, w->err_n - drop);
      w->err_n -= drop;
    }
    memcpy(w->err + w->err_n, chunk, k);
    w->err_n += k;
    w->err[w->err_n] = 0;
  }
}

struct send_job {
  const struct rt_compile_job *job;
  struct strbuf message;
};

static void build_job(void *user) {
  struct send_job *s = user;
  const struct rt_compile_job *j = s->job;
  wire_begin(&s->message, WIRE_JOB);
  wire_text(&s->message, WIRE_NAME, j->name);
  wire_text(&s->message, WIRE_ARCH, j->arch);
  for (uint32_t i = 0; i < j->n_options; i++)
    wire_text(&s->message, WIRE_OPTION, j->options[i]);
  uint32_t flags = (j->lineinfo ? 1u : 0) | (j->want_ptx ? 2u : 0);
  wire_field(&s->message, WIRE_FLAGS, &flags, sizeof flags);
  wire_text(&s->message, WIRE_SOURCE, j->source);
  wire_finish(&s->message);
}

static bool send_all(int fd, const char *p, size_t n) {
  while (n) {
    ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
    if (k < 0 && errno == EINTR)
      continue;
    if (k <= 0)
      return false;
    p += k;
    n -= (size_t)k;
  }
  return true;
}

/* False when memory ran out; a helper that cannot be written to shows itself by its closed
 * socket. */
static bool give_job(struct batch *b, struct worker *w, uint32_t job) {
  struct arena a;
  struct oom_trap trap = {0};
  arena_init(&a, &b->ctx->mem, &trap);
  struct send_job s = {&b->jobs[job], {.arena = &a}};
  bool ok = arena_guard(&a, build_job, &s);
  if (ok) {
    uint32_t limit = b->jobs[job].timeout_ms;
    w->state = WORKER_BUSY;
    w->job = job;
    w->deadline = now_ms() + (limit ? limit : b->ctx->options.compile_timeout_ms);
    send_all(w->fd, s.message.s, s.message.n);
  }
  arena_free(&a);
  return ok;
}

/* What a message says, copied into the job's arena (for HELLO, into the pool). */
struct intake {
  struct batch *b;
  struct rt_compiled *out; /* NULL: HELLO */
  const unsigned char *p;
  size_t n;
  const char *error;
  bool damaged;
};

static void take_fields(void *user) {
  struct intake *t = user;
  struct rt_compiled *out = t->out;
  struct wire_reader r = {t->p, t->p + t->n};
  uint32_t tag;
  const void *p;
  size_t n;
  uint32_t status = RT_FAILED;
  while (wire_next(&r, &tag, &p, &n, &t->damaged)) {
    if (tag == WIRE_NVRTC && n == 8) {
      uint32_t v[2];
      memcpy(v, p, sizeof v);
      t->b->pool->nvrtc_major = (int)v[0];
      t->b->pool->nvrtc_minor = (int)v[1];
    } else if (!out && tag == WIRE_ERROR) {
      snprintf(t->b->pool->no_nvrtc, sizeof t->b->pool->no_nvrtc, "%.*s", (int)n, (const char *)p);
    } else if (out && tag == WIRE_STATUS && n == 4) {
      memcpy(&status, p, sizeof status);
    } else if (out && tag == WIRE_CUBIN) {
      out->cubin = arena_copy(&out->arena, p, n);
      out->cubin_size = n;
    } else if (out && tag == WIRE_PTX) {
      out->ptx = arena_strndup(&out->arena, p, n);
    } else if (out && tag == WIRE_LOG) {
      out->log = arena_strndup(&out->arena, p, n);
    } else if (out && tag == WIRE_ERROR) {
      t->error = arena_strndup(&out->arena, p, n);
    } else if (out && tag == WIRE_MILLISECONDS && n == sizeof(double)) {
      memcpy(&out->compile_ms, p, n);
    }
  }
  if (out)
    out->status = status <= RT_FAILED ? (enum rt_status)status : RT_FAILED;
}

struct explain {
  struct batch *b;
  struct worker *w;
  const char *what;
  const char *text;
};

static void build_explanation(void *user) {
  struct explain *x = user;
  struct arena *a = &x->b->out[x->w->job].arena;
  while (x->w->err_n && x->w->err[x->w->err_n - 1] == '\n')
    x->w->err[--x->w->err_n] = 0;
  x->text = arena_printf(a, "the compile helper %s while compiling %s%s%s", x->what,
                         x->b->jobs[x->w->job].name, x->w->err_n ? "; it said: " : "", x->w->err);
}

/* The helper is gone or useless: the job it had fails with the reason, or the pool learns that
 * helpers do not start. */
static void lose_worker(struct batch *b, struct worker *w, const char *what, bool kill_it) {
  char how[200];
  read_stderr(w);
  struct worker was = *w;
  int status = end_worker(b->ctx, w, kill_it);
  if (what)
    snprintf(how, sizeof how, "%s", what);
  else if (status >= 0 && WIFSIGNALED(status))
    snprintf(how, sizeof how, "crashed with signal %d (%s; its memory limit is %" PRIu64 " MiB)",
             WTERMSIG(status), strsignal(WTERMSIG(status)), b->ctx->options.compile_memory >> 20);
  else if (status >= 0 && WIFEXITED(status))
    snprintf(how, sizeof how, "ended with exit code %d", WEXITSTATUS(status));
  else
    snprintf(how, sizeof how, "ended");
  if (was.state == WORKER_STARTING)
    snprintf(b->pool->why, sizeof b->pool->why, "the compile helper %s %s when it was started%s%s",
             b->pool->path, how, was.err_n ? "; it said: " : "", was.err);
  if (was.state != WORKER_BUSY)
    return;
  struct explain x = {b, &was, how, NULL};
  struct rt_compiled *out = &b->out[was.job];
  out->status = RT_DEAD;
  if (!arena_guard(&out->arena, build_explanation, &x)) {
    out->status = RT_NO_MEMORY;
    b->no_memory = true;
  }
  b->errors[was.job] = x.text;
  b->done++;
}

static void take_message(struct batch *b, struct worker *w, const struct wire_header *h) {
  bool hello = w->state == WORKER_STARTING;
  struct rt_compiled *out = hello ? NULL : &b->out[w->job];
  struct intake t = {.b = b, .out = out, .p = w->buf + sizeof *h, .n = (size_t)h->length};
  if (h->kind != (uint32_t)(hello ? WIRE_HELLO : WIRE_RESULT)) {
    lose_worker(b, w, "sent an unexpected message", true);
    return;
  }
  if (hello)
    take_fields(&t); /* allocates nothing */
  else if (!arena_guard(&out->arena, take_fields, &t))
    out->status = RT_NO_MEMORY;
  if (t.damaged) {
    lose_worker(b, w, "sent a damaged message", true);
    return;
  }
  if (!hello) {
    out->nvrtc_major = b->pool->nvrtc_major;
    out->nvrtc_minor = b->pool->nvrtc_minor;
    b->errors[w->job] = t.error;
    b->done++;
  }
  w->state = WORKER_IDLE;
  w->n = 0;
  if (hello && b->pool->no_nvrtc[0])
    end_worker(b->ctx, w, true); /* the next call's helper may find one */
}

/* Reads what is there; a complete message is acted upon. */
static void receive(struct batch *b, struct worker *w) {
  struct wire_header h;
  size_t want = sizeof h;
  if (w->n >= sizeof h) {
    memcpy(&h, w->buf, sizeof h);
    want += (size_t)h.length;
  }
  if (want > w->cap) {
    unsigned char *p = mem_resize(&b->ctx->mem, w->buf, w->cap, want);
    if (!p) {
      lose_worker(b, w, "could not be heard for want of memory", true);
      b->no_memory = true;
      return;
    }
    w->buf = p;
    w->cap = want;
  }
  ssize_t k = recv(w->fd, w->buf + w->n, want - w->n, MSG_DONTWAIT);
  if (k < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (k <= 0) {
    lose_worker(b, w, NULL, false);
    return;
  }
  w->n += (size_t)k;
  if (w->n < want)
    return;
  memcpy(&h, w->buf, sizeof h);
  const char *bad = wire_check(&h);
  if (bad)
    lose_worker(b, w, bad, true);
  else if (w->n == sizeof h + h.length)
    take_message(b, w, &h);
}

/* ---- the loop ---- */

static uint32_t count(const struct rt_worker_pool *p, enum worker_state state) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < MAX_WORKERS; i++)
    n += p->at[i].state == state;
  return n;
}

/* Gives jobs to idle helpers and starts as many as there is work for. */
static void assign(struct batch *b) {
  struct rt_worker_pool *p = b->pool;
  for (uint32_t i = 0; i < p->n; i++) { /* one that died while it was idle costs no job */
    char c;
    if (p->at[i].state == WORKER_IDLE && recv(p->at[i].fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) >= 0)
      end_worker(b->ctx, &p->at[i], true);
  }
  for (uint32_t i = 0; i < p->n && b->next < b->n; i++)
    if (p->at[i].state == WORKER_IDLE) {
      if (!give_job(b, &p->at[i], b->next)) {
        b->out[b->next].status = RT_NO_MEMORY;
        b->no_memory = true;
        b->done++;
      }
      b->next++;
    }
  uint32_t waiting = b->n - b->next;
  for (uint32_t i = 0; i < p->n && count(p, WORKER_STARTING) < waiting && !p->why[0]; i++)
    if (p->at[i].state == WORKER_DOWN && !start_worker(b->ctx, p, &p->at[i]))
      break;
}

/* One round of waiting: messages, deaths, deadlines. */
static void wait_round(struct batch *b) {
  struct rt_worker_pool *p = b->pool;
  struct pollfd fds[2 * MAX_WORKERS];
  double now = now_ms(), first = now + 60000;
  for (uint32_t i = 0; i < MAX_WORKERS; i++) {
    struct worker *w = &p->at[i];
    bool up = w->state == WORKER_STARTING || w->state == WORKER_BUSY;
    fds[2 * i] = (struct pollfd){.fd = up ? w->fd : -1, .events = POLLIN};
    fds[2 * i + 1] = (struct pollfd){.fd = up ? w->err_fd : -1, .events = POLLIN};
    if (up && w->deadline < first)
      first = w->deadline;
  }
  int wait = first > now ? (int)(first - now) + 1 : 0;
  int r = poll(fds, 2 * MAX_WORKERS, wait);
  now = now_ms();
  for (uint32_t i = 0; i < MAX_WORKERS; i++) {
    struct worker *w = &p->at[i];
    if (r > 0 && fds[2 * i + 1].revents & POLLIN)
      read_stderr(w);
    if (r > 0 && fds[2 * i].revents) {
      receive(b, w);
    } else if (fds[2 * i].fd >= 0 && w->deadline <= now) {
      char what[80];
      uint32_t limit = w->state == WORKER_BUSY ? b->jobs[w->job].timeout_ms : 0;
      limit = limit ? limit : b->ctx->options.compile_timeout_ms;
      if (w->state == WORKER_STARTING)
        limit = (uint32_t)START_TIMEOUT_MS;
      snprintf(what, sizeof what, "was stopped after its time limit of %u ms", limit);
      lose_worker(b, w, what, true);
    }
  }
}

/* Jobs that no helper will take: fail them all with the same reason. */
static void fail_rest(struct batch *b, enum rt_status status, const char *text) {
  for (; b->next < b->n; b->next++) {
    b->out[b->next].status = status;
    b->errors[b->next] = text;
    b->done++;
  }
}

static bool open_pool(struct rt_ctx *ctx) {
  struct rt_worker_pool *p = mem_get0(&ctx->mem, sizeof *p);
  if (!p)
    return false;
  for (uint32_t i = 0; i < MAX_WORKERS; i++)
    p->at[i].fd = p->at[i].err_fd = -1;
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  uint32_t n = ctx->options.worker_count;
  p->n = n ? n : cores > 0 ? (uint32_t)cores : 1;
  p->n = p->n < MAX_WORKERS ? p->n : MAX_WORKERS;
  ctx->pool = p;
  return true;
}

enum rt_status rt_pool_compile(struct rt_ctx *ctx, const struct rt_compile_job *jobs, uint32_t n,
                               struct rt_compiled *out, const char **errors,
                               const char **why_missing) {
  if (!ctx->pool && !open_pool(ctx))
    return RT_NO_MEMORY;
  struct rt_worker_pool *p = ctx->pool;
  p->why[0] = p->no_nvrtc[0] = 0;
  if (!find_helper(ctx, p)) {
    *why_missing = p->why;
    return RT_MISSING;
  }
  struct batch b = {.ctx = ctx, .pool = p, .jobs = jobs, .out = out, .errors = errors, .n = n};
  while (b.done < n) {
    if (p->no_nvrtc[0])
      fail_rest(&b, RT_MISSING, p->no_nvrtc);
    assign(&b);
    if (count(p, WORKER_STARTING) + count(p, WORKER_BUSY) > 0) {
      wait_round(&b);
    } else if (b.done < n && p->why[0]) { /* nobody works, and starting failed */
      if (b.done == 0) {
        *why_missing = p->why;
        return RT_MISSING;
      }
      fail_rest(&b, RT_DEAD, p->why);
    }
  }
  return b.no_memory ? RT_NO_MEMORY : RT_OK;
}

void rt_pool_free(struct rt_ctx *ctx) {
  struct rt_worker_pool *p = ctx->pool;
  if (!p)
    return;
  for (uint32_t i = 0; i < MAX_WORKERS; i++)
    end_worker(ctx, &p->at[i], true);
  mem_drop(&ctx->mem, p, sizeof *p);
  ctx->pool = NULL;
}
