/* Reading a module file below the kernel root, and nothing else: a symbolic link that leads out, a
 * device, a folder, a huge file are refused. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "frontend/fe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads up to `size` bytes of the file `want` at `name`; returns how many, or -1 and sets errno. An
 * open file must not be lost when memory runs out: nothing is allocated here. */
static ssize_t read_plain(const char *name, const struct stat *want, char *to, size_t size) {
  int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (fd < 0)
    return -1;
  struct stat st;
  ssize_t got = -1;
  size_t n = 0;
  if (fstat(fd, &st) != 0) {
    /* errno is set */
  } else if (st.st_dev != want->st_dev || st.st_ino != want->st_ino) {
    errno = EAGAIN; /* replaced since it was looked at */
  } else {
    while (n < size && (got = read(fd, to + n, size - n)) != 0) {
      if (got < 0 && errno != EINTR)
        break;
      n += got > 0 ? (size_t)got : 0;
    }
    got = got < 0 ? got : (ssize_t)n;
  }
  int error = errno;
  close(fd);
  errno = error;
  return got;
}

bool fe_read_module(const char *root, const char *path, struct strbuf *text, const char **error) {
  struct arena *a = text->arena;
  char real_root[PATH_MAX], real[PATH_MAX];
  *error = NULL;
  if (!root || !*root)
    root = ".";
  if (!realpath(root, real_root)) {
    *error = arena_printf(a, "kernel root '%s': %s", root, strerror(errno));
    return false;
  }
  if (!realpath(arena_printf(a, "%s/%s", real_root, path), real)) {
    if (errno != ENOENT && errno != ENOTDIR)
      *error = arena_strdup(a, strerror(errno));
    return false;
  }
  size_t n = strlen(real_root);
  if (n == 1)
    n = 0; /* the root folder itself */
  if (strncmp(real, real_root, n) != 0 || real[n] != '/') {
    *error = "it is a symbolic link that leaves the kernel root";
    return false;
  }
  struct stat st;
  if (stat(real, &st) != 0) {
    *error = arena_strdup(a, strerror(errno));
    return false;
  }
  if (!S_ISREG(st.st_mode)) {
    *error = "it is not a plain file";
    return false;
  }
  if (st.st_size > (off_t)FE_MODULE_MAX) {
    *error =
        arena_printf(a, "it has %lld bytes; the limit is %u", (long long)st.st_size, FE_MODULE_MAX);
    return false;
  }
  size_t size = (size_t)st.st_size;
  char *bytes = arena_get(a, size + 1);
  ssize_t got = read_plain(real, &st, bytes, size + 1);
  if (got < 0) {
    *error = arena_strdup(a, strerror(errno));
    return false;
  }
  if ((size_t)got > size) {
    *error = "it grew while it was read";
    return false;
  }
  sb_put(text, bytes, (size_t)got);
  return true;
}
