/* kiln-worker: compiles CUDA C for the process that started it, so that a crash, a hang or a memory
 * hog of the compiler costs that process nothing. Not meant to be run by hand.
 *
 *   kiln-worker SOCKET MEMORY NVRTC CUDA_HOME PRIVATE_DIR     "" where there is none
 *
 * Speaks runtime/wire.h on descriptor SOCKET: one HELLO, then a RESULT for each JOB, until the
 * other end closes. */
#define _GNU_SOURCE /* RLIMIT_AS with large limits, MSG_NOSIGNAL */
#include "runtime/internal.h"
#include "runtime/wire.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SHADOW 1 /* sanitizers map terabytes: an address-space limit would kill them */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SHADOW 1
#endif
#endif

struct worker {
  int fd;
  struct rt_ctx *ctx;
  struct arena arena; /* of one message */
  struct oom_trap trap;
  unsigned char *request;
  size_t request_size;
  struct rt_compiled result;
  struct strbuf reply;
  bool bad;
};

/* The other end is gone: nobody wants the result. */
static void *watch(void *user) {
  struct pollfd p = {.fd = *(int *)user};
  while (poll(&p, 1, -1) < 0 || !(p.revents & (POLLHUP | POLLERR | POLLNVAL)))
    ;
  _exit(0);
}

static void limit_memory(const char *bytes) {
  struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
#ifndef HAS_SHADOW
  rlim_t n = (rlim_t)strtoull(bytes, NULL, 10);
  struct rlimit limit;
  if (n && getrlimit(RLIMIT_AS, &limit) == 0) {
    if (limit.rlim_max != RLIM_INFINITY && n > limit.rlim_max)
      n = limit.rlim_max;
    limit.rlim_cur = n;
    setrlimit(RLIMIT_AS, &limit);
  }
#else
  (void)bytes;
#endif
}

static bool read_all(int fd, void *p, size_t n) {
  unsigned char *at = p;
  while (n) {
    ssize_t k = recv(fd, at, n, 0);
    if (k < 0 && errno == EINTR)
      continue;
    if (k <= 0)
      return false;
    at += k;
    n -= (size_t)k;
  }
  return true;
}

static bool write_all(int fd, const char *p, size_t n) {
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

static void put_version(struct strbuf *m, int major, int minor) {
  uint32_t v[2] = {(uint32_t)major, (uint32_t)minor};
  wire_field(m, WIRE_NVRTC, v, sizeof v);
}

static void build_hello(void *user) {
  struct worker *w = user;
  struct rt_library_info nvrtc = rt_library_info(w->ctx, RT_LIB_NVRTC);
  wire_begin(&w->reply, WIRE_HELLO);
  put_version(&w->reply, nvrtc.major, nvrtc.minor);
  wire_text(&w->reply, WIRE_PATH, nvrtc.path);
  if (!nvrtc.loaded)
    wire_text(&w->reply, WIRE_ERROR, nvrtc.why);
  wire_finish(&w->reply);
}

static void run_job(void *user) {
  struct worker *w = user;
  struct rt_compile_job job = {.name = "kernel", .arch = "", .source = ""};
  VEC(const char *) options = {0};
  struct wire_reader r = {w->request, w->request + w->request_size};
  uint32_t tag, flags = 0;
  const void *p;
  size_t n;
  bool damaged;
  while (wire_next(&r, &tag, &p, &n, &damaged)) {
    if (tag == WIRE_FLAGS && n == sizeof flags)
      memcpy(&flags, p, n);
    const char *text = arena_strndup(&w->arena, p, n);
    if (tag == WIRE_NAME)
      job.name = text;
    else if (tag == WIRE_ARCH)
      job.arch = text;
    else if (tag == WIRE_SOURCE)
      job.source = text;
    else if (tag == WIRE_OPTION)
      VEC_PUSH(&w->arena, &options, text);
  }
  w->bad = damaged;
  job.options = options.at;
  job.n_options = options.n;
  job.lineinfo = flags & 1;
  job.want_ptx = flags & 2;
  const char *error;
  rt_nvrtc_compile(w->ctx, &job, &w->result, &error);
  uint32_t status = (uint32_t)w->result.status;
  wire_begin(&w->reply, WIRE_RESULT);
  wire_field(&w->reply, WIRE_STATUS, &status, sizeof status);
  wire_field(&w->reply, WIRE_MILLISECONDS, &w->result.compile_ms, sizeof w->result.compile_ms);
  wire_text(&w->reply, WIRE_LOG, w->result.log);
  wire_text(&w->reply, WIRE_ERROR, error);
  wire_text(&w->reply, WIRE_PTX, w->result.ptx);
  if (w->result.status == RT_OK)
    wire_field(&w->reply, WIRE_CUBIN, w->result.cubin, w->result.cubin_size);
  wire_finish(&w->reply);
}

/* Runs `build` in a fresh arena and sends what it built. */
static bool answer(struct worker *w, void (*build)(void *user)) {
  arena_init(&w->arena, &mem_libc, &w->trap);
  rt_compiled_init(&w->result, &mem_libc);
  w->reply = (struct strbuf){.arena = &w->arena};
  w->bad = false;
  bool ok = arena_guard(&w->arena, build, w) && !w->bad && write_all(w->fd, w->reply.s, w->reply.n);
  rt_compiled_free(&w->result);
  arena_free(&w->arena);
  return ok;
}

static bool serve_one(struct worker *w) {
  struct wire_header h;
  if (!read_all(w->fd, &h, sizeof h) || wire_check(&h) || h.kind != WIRE_JOB)
    return false;
  w->request_size = (size_t)h.length;
  w->request = mem_get(&mem_libc, w->request_size);
  bool ok = w->request && read_all(w->fd, w->request, w->request_size) && answer(w, run_job);
  mem_drop(&mem_libc, w->request, w->request_size);
  return ok;
}

static const char *given(const char *s) {
  return s[0] ? s : NULL;
}

int main(int argc, char **argv) {
  if (argc != 6) {
    fprintf(stderr, "kiln-worker compiles for Kiln and is started by it, not by hand\n");
    return 2;
  }
  static struct worker w; /* not on a stack that a jump leaves */
  w.fd = atoi(argv[1]);
  limit_memory(argv[2]);
  pthread_t watcher;
  if (pthread_create(&watcher, NULL, watch, &w.fd) != 0)
    return 1;
  struct diag_sink diags;
  struct rt_options options = {
      .nvrtc = given(argv[3]), .cuda_home = given(argv[4]), .private_dir = given(argv[5])};
  if (!diag_init(&diags, &mem_libc) || rt_ctx_new(&mem_libc, &diags, &options, &w.ctx) != RT_OK)
    return 1;
  bool ok = answer(&w, build_hello) && rt_library_info(w.ctx, RT_LIB_NVRTC).loaded;
  while (ok)
    ok = serve_one(&w);
  rt_ctx_free(w.ctx);
  diag_free(&diags);
  return 0;
}
