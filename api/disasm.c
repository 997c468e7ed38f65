/* SASS through nvdisasm, where the machine has it: the cubin goes through a temporary file, the
 * listing comes back through a pipe. */
#include "api/api.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The path of nvdisasm: $PATH first, then the usual toolkit folders. */
static bool find_tool(char *path, size_t size) {
  const char *list = getenv("PATH");
  for (const char *p = list ? list : ""; *p;) {
    size_t n = strcspn(p, ":");
    if (n && (size_t)snprintf(path, size, "%.*s/nvdisasm", (int)n, p) < size &&
        access(path, X_OK) == 0)
      return true;
    p += n + (p[n] == ':');
  }
  glob_t g;
  bool found = false;
  if (glob("/usr/local/cuda*/bin/nvdisasm", 0, NULL, &g) == 0) {
    found = g.gl_pathc > 0 && (size_t)snprintf(path, size, "%s", g.gl_pathv[g.gl_pathc - 1]) < size;
    globfree(&g);
  }
  return found;
}

/* Starts the tool on a file with all that it says on a pipe; -1 on failure. */
static pid_t start(char *tool, char *file, int *out) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return -1;
  posix_spawn_file_actions_t actions;
  pid_t pid = -1;
  if (posix_spawn_file_actions_init(&actions) == 0) {
    char *argv[] = {tool, (char[]){"-c"}, file, NULL};
    if (posix_spawn_file_actions_adddup2(&actions, ends[1], 1) != 0 ||
        posix_spawn_file_actions_adddup2(&actions, ends[1], 2) != 0 ||
        posix_spawn(&pid, tool, &actions, NULL, argv, environ) != 0)
      pid = -1;
    posix_spawn_file_actions_destroy(&actions);
  }
  close(ends[1]);
  if (pid < 0)
    close(ends[0]);
  *out = ends[0];
  return pid;
}

static bool write_all(int fd, const void *data, size_t n) {
  for (const char *p = data; n;) {
    ssize_t k = write(fd, p, n);
    if (k < 0 && errno == EINTR)
      continue;
    if (k <= 0)
      return false;
    p += k;
    n -= (size_t)k;
  }
  return true;
}

enum kiln_status api_disassemble(struct kiln_context *ctx, const void *cubin, size_t n,
                                 struct strbuf *out) {
  char tool[4096], file[4096];
  const char *tmp = getenv("TMPDIR");
  if (!find_tool(tool, sizeof tool)) {
    API_ERROR(ctx, FILE, "nvdisasm was not found; it comes with the CUDA toolkit");
    return KILN_UNAVAILABLE;
  }
  snprintf(file, sizeof file, "%s/kiln-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  int fd = mkostemp(file, O_CLOEXEC);
  if (fd < 0 || !write_all(fd, cubin, n)) {
    API_ERROR(ctx, FILE, "cannot write %s: %s", file, strerror(errno));
    if (fd >= 0) {
      close(fd);
      unlink(file);
    }
    return KILN_FAILED;
  }
  close(fd);
  int pipe_end, status = 0;
  pid_t pid = start(tool, file, &pipe_end);
  bool ok = pid >= 0, memory = true;
  char buffer[8192];
  size_t before = out->n;
  while (ok) {
    ssize_t k = read(pipe_end, buffer, sizeof buffer);
    if (k < 0 && errno == EINTR)
      continue;
    if (k <= 0)
      break;
    memory = memory && api_try_append(out, buffer, (size_t)k); /* keep draining */
  }
  if (pid >= 0) {
    close(pipe_end);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
      ;
    ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  unlink(file);
  if (!memory)
    return api_no_memory(ctx);
  if (!ok) {
    const char *said = sb_str(out) + before;
    API_ERROR(ctx, FILE, "%s failed on the cubin: %.*s", tool, (int)strcspn(said, "\n"), said);
  }
  return ok ? KILN_OK : KILN_FAILED;
}
