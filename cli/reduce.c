/* reduce: shrinks an IR text while `kiln check` goes on finding the same error, or while a command
 * goes on ending with the same exit code. The command gets the text as a file: {} in its words
 * stands for the path; without one the path is added at the end. What it prints is not shown. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct trial {
  char *words[CLI_MAX_LIST + 2];
  char path[PATH_MAX];
  int expected; /* exit code, or 256 + signal; -1: not known yet */
  int error;    /* errno of what went wrong with the trial itself */
  bool tty, drawn;
};

/* The command's words with the path in place; those that were made are freed by end_trial. */
static bool begin_trial(struct trial *t, const struct cli_list *command) {
  const char *folder = getenv("TMPDIR");
  memset(t, 0, sizeof *t);
  t->expected = -1;
  t->tty = isatty(STDERR_FILENO) != 0;
  int n = snprintf(t->path, sizeof t->path, "%s/kiln-reduce-XXXXXX.tir",
                   folder && *folder ? folder : "/tmp");
  int fd = n > 0 && (size_t)n < sizeof t->path ? mkstemps(t->path, 4) : -1;
  if (fd < 0)
    return false;
  close(fd);
  bool named = false;
  uint32_t k = 0;
  for (uint32_t i = 0; i < command->n; i++) {
    const char *w = command->at[i], *at = strstr(w, "{}");
    size_t size = strlen(w) + (at ? strlen(t->path) : 0) + 1;
    char *word = malloc(size);
    if (!word)
      return false;
    if (at)
      snprintf(word, size, "%.*s%s%s", (int)(at - w), w, t->path, at + 2);
    else
      memcpy(word, w, size);
    named |= at != NULL;
    t->words[k++] = word;
  }
  if (!named && !(t->words[k] = strdup(t->path)))
    return false;
  return true;
}

static void end_trial(struct trial *t) {
  for (uint32_t i = 0; i < CLI_MAX_LIST + 1; i++)
    free(t->words[i]);
  if (t->path[0])
    unlink(t->path);
}

static bool write_text(const char *path, const char *text, size_t n) {
  FILE *f = fopen(path, "wb");
  bool ok = f && fwrite(text, 1, n, f) == n;
  return f && fclose(f) == 0 && ok;
}

/* Runs the command; its exit code, 256 + the signal that ended it, or -1 with errno. */
static int run_command(struct trial *t) {
  posix_spawn_file_actions_t quiet;
  pid_t pid;
  int status, error = posix_spawn_file_actions_init(&quiet);
  if (error == 0) {
    error = posix_spawn_file_actions_addopen(&quiet, 0, "/dev/null", O_RDONLY, 0);
    if (error == 0)
      error = posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
    if (error == 0)
      error = posix_spawn_file_actions_adddup2(&quiet, 1, 2);
    if (error == 0)
      error = posix_spawnp(&pid, t->words[0], &quiet, NULL, t->words, environ);
    posix_spawn_file_actions_destroy(&quiet);
  }
  if (error != 0) {
    errno = error;
    return -1;
  }
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR)
      return -1;
    kill(pid, SIGTERM); /* Kiln was told to stop: the command may take long */
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

static bool fails(void *user, const char *text, size_t n) {
  struct trial *t = user;
  int code = write_text(t->path, text, n) ? run_command(t) : -1;
  if (code < 0 && !t->error)
    t->error = errno ? errno : EIO;
  if (t->expected < 0)
    t->expected = code;
  return code > 0 && code == t->expected;
}

static void progress(void *user, uint32_t before, uint32_t now, uint32_t tried) {
  struct trial *t = user;
  if (!t->tty)
    return;
  fprintf(stderr, "\rkiln reduce: %u of %u lines, %u texts tried ", now, before, tried);
  t->drawn = true;
}

static uint32_t count_lines(const char *s) {
  uint32_t n = 0;
  for (; *s; s++)
    n += *s == '\n' || !s[1];
  return n;
}

static bool print_result(const struct cli_options *o, const char *text) {
  if (o->output)
    return write_text(o->output, text, strlen(text));
  if (o->json) {
    fputs("{\"text\":", stdout);
    cli_put_json(stdout, text);
    fputs("}\n", stdout);
  } else {
    fputs(text, stdout);
  }
  return true;
}

int cmd_reduce(const struct cli_options *o) {
  static struct trial t;
  struct kiln_context *ctx = cli_context(o);
  if (!ctx)
    return CLI_FAILED;
  if (!begin_trial(&t, &o->command)) {
    fprintf(stderr, "kiln reduce: cannot make a file in the folder of TMPDIR: %s\n",
            strerror(errno));
    end_trial(&t);
    kiln_context_free(ctx);
    return CLI_FAILED;
  }
  struct kiln_reduce_options opt = {.struct_size = sizeof opt,
                                    .fails = o->command.n ? fails : NULL,
                                    .progress = progress,
                                    .user = &t};
  struct kiln_request req = cli_request(o);
  const char *text = NULL;
  enum kiln_status st = kiln_reduce(ctx, o->files.at[0], o->root, &req, &opt, &text);
  if (t.drawn)
    fputc('\n', stderr);
  if (t.error)
    fprintf(stderr, "kiln reduce: cannot run %s: %s\n", t.words[0], strerror(t.error));
  else if (o->command.n && !text && t.expected == 0)
    fprintf(stderr, "kiln reduce: %s ends with exit code 0\n", t.words[0]);
  int rc = cli_finish(ctx, o, st);
  if (text && !print_result(o, text)) {
    fprintf(stderr, "kiln: cannot write %s: %s\n", o->output, strerror(errno));
    rc = CLI_FAILED;
  }
  if (text)
    fprintf(stderr, "kiln reduce: %u %s left\n", count_lines(text),
            count_lines(text) == 1 ? "line is" : "lines are");
  end_trial(&t);
  kiln_context_free(ctx);
  return rc;
}
