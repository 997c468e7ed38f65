/* `kiln`: finds the command, makes the context, turns statuses into exit codes (0 fine, 1 an error
 * of the kernel, the machine or the result, 2 a mistake on the command line, 130 interrupted). */
#include "cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KERNEL_OPTIONS                                                                             \
  "kernel set const shape layout stride offset scalar absent target case root max-steps "          \
  "max-memory max-seconds max-ops max-errors json "

const struct cli_command cli_commands[] = {
    {"check", "FILE [options]",
     "Trace, verify and compile the kernels of FILE for the given targets. Needs no GPU.",
     KERNEL_OPTIONS "skip-unsupported", 1, 1, true, cmd_check},
    {"show", "FILE [options]", "Print a stage of a kernel's way to the GPU.",
     KERNEL_OPTIONS "stage after lineinfo output", 1, 1, false, cmd_show},
    {"run", "FILE [options]",
     "Run a kernel on random inputs, verify it, time it, say what bounds it.",
     KERNEL_OPTIONS "on domain seed exact no-verify no-time no-peers fused", 1, 1, false, cmd_run},
    {"test", "FILE... [options]", "Run the kernels' own cases; the exit code is 1 if one fails.",
     "kernel target root on domain exact json junit skip-unsupported max-steps max-memory "
     "max-seconds max-ops max-errors",
     1, -1, false, cmd_test},
    {"diff", "FILE [options]",
     "Say where interpreter, emulator and GPU differ first: element, tile, op, pass, knobs.",
     KERNEL_OPTIONS "on domain seed machine", 1, 1, false, cmd_diff},
    {"reduce", "FILE [options] [-- COMMAND ...]",
     "Shrink an IR text, or what a kernel traces to, while it goes on failing (with COMMAND).",
     KERNEL_OPTIONS "output", 1, 1, false, cmd_reduce},
    {"doctor", "[options]", "Say what was found on this machine and what is missing.", "json", 0, 0,
     false, cmd_doctor},
    {"stubs", "[options]",
     "Print what editors need to know of the language, or put it into a folder.",
     "output reference json", 0, 0, false, cmd_stubs},
};
const uint32_t cli_n_commands = sizeof cli_commands / sizeof *cli_commands;

/* A second Ctrl-C ends the process at once. One that comes sooner than a person presses it again is
 * the first once more: some senders (timeout of coreutils) signal a process and its group. */
#define SAME_INTERRUPT_MS 200

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig) {
  static struct timespec first;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (!interrupted) {
    first = now;
    interrupted = 1;
    return;
  }
  if ((now.tv_sec - first.tv_sec) * 1000 + (now.tv_nsec - first.tv_nsec) / 1000000 <
      SAME_INTERRUPT_MS)
    return;
  signal(sig, SIG_DFL);
  raise(sig); /* delivered on return */
}

static bool is_interrupted(void *user) {
  (void)user;
  return interrupted != 0;
}

static void log_line(void *user, enum kiln_log_level level, const char *text) {
  (void)user;
  fflush(stdout); /* a pipe that takes both gets them in order */
  fprintf(stderr, "%s%s\n", level == KILN_LOG_INFO ? "" : "kiln: ", text);
}

/* For tests of running out of memory: KILN_TEST_FAIL_ALLOC=N lets the N-th allocation and all after
 * it fail. */
static long allocations_left = LONG_MAX;

static void *failing_alloc(void *user, void *p, size_t old_size, size_t new_size) {
  (void)user;
  (void)old_size;
  if (new_size == 0) {
    free(p);
    return NULL;
  }
  if (allocations_left <= 0)
    return NULL;
  allocations_left--;
  return realloc(p, new_size);
}

/* The path of a file beside this executable, or NULL if there is none. */
static const char *beside(const char *name, char path[PATH_MAX]) {
  ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
  if (n <= 0)
    return NULL;
  path[n] = 0;
  char *slash = strrchr(path, '/');
  if (!slash || (size_t)(slash - path) + strlen(name) + 2 > PATH_MAX)
    return NULL;
  strcpy(slash + 1, name);
  return access(path, R_OK) == 0 ? path : NULL;
}

struct kiln_context *cli_context(const struct cli_options *o) {
  static char worker[PATH_MAX];
  struct kiln_context_options c = {.struct_size = sizeof c};
  const char *fail = getenv("KILN_TEST_FAIL_ALLOC");
  if (fail) {
    allocations_left = strtol(fail, NULL, 10);
    c.alloc = failing_alloc;
  }
  c.log = log_line;
  c.interrupted = is_interrupted;
  c.worker_path = beside("kiln-worker", worker);
  c.private_dir = getenv("KILN_PRIVATE_DIR");
  c.max_steps = o->max_steps;
  c.max_memory = o->max_memory;
  c.max_seconds = (uint32_t)o->max_seconds;
  c.max_ops = (uint32_t)o->max_ops;
  c.max_errors = (uint32_t)o->max_errors;
  c.ir_debug = getenv("KILN_IR");
  struct kiln_context *ctx = NULL;
  enum kiln_status st = kiln_context_new(&c, &ctx);
  if (st != KILN_OK)
    fprintf(stderr, "kiln: cannot start: %s\n", kiln_status_name(st));
  return st == KILN_OK ? ctx : NULL;
}

void cli_put_json(FILE *out, const char *text) {
  fputc('"', out);
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\')
      fprintf(out, "\\%c", c);
    else if (c < 0x20)
      fprintf(out, "\\u%04x", c);
    else
      fputc(c, out);
  }
  fputc('"', out);
}

bool cli_skips(struct kiln_context *ctx, const struct cli_options *o, const char *what) {
  uint32_t n = kiln_diag_count(ctx), first = n;
  for (uint32_t i = n; i-- > 0;)
    if (kiln_diag_is_error(ctx, i)) {
      if (strcmp(kiln_diag_code(ctx, i), "K0701") != 0)
        return false;
      first = i;
    }
  if (!o->skip_unsupported || first == n)
    return false;
  const char *why = kiln_diag_text(ctx, first);
  if (o->json) {
    printf("{\"skipped\":");
    cli_put_json(stdout, what);
    printf(",\"why\":");
    cli_put_json(stdout, why);
    printf("}\n");
  } else {
    printf("SKIP %s: %.*s\n", what, (int)strcspn(why, "\n"), why);
  }
  kiln_diag_clear(ctx);
  return true;
}

int cli_finish(struct kiln_context *ctx, const struct cli_options *o, enum kiln_status status) {
  uint32_t n = kiln_diag_count(ctx);
  bool usage = false;
  fflush(stdout); /* a pipe that takes both gets them in order */
  for (uint32_t i = 0; i < n; i++) {
    usage |= kiln_diag_is_error(ctx, i) && strcmp(kiln_diag_code(ctx, i), "K0003") == 0;
    const char *text = o->json ? kiln_diag_json(ctx, i) : kiln_diag_text(ctx, i);
    fprintf(o->json ? stdout : stderr, o->json ? "%s\n" : "%s", text);
  }
  if (kiln_diag_dropped(ctx))
    fprintf(stderr, "kiln: %u further messages are not shown\n", kiln_diag_dropped(ctx));
  if (status != KILN_OK && n == 0 && !(status == KILN_INTERRUPTED))
    fprintf(stderr, "kiln: %s\n", kiln_status_name(status));
  kiln_diag_clear(ctx);
  if (status == KILN_INTERRUPTED) {
    fprintf(stderr, "kiln: interrupted\n");
    return CLI_INTERRUPTED;
  }
  return status == KILN_OK ? CLI_OK : usage && status == KILN_INVALID ? CLI_USAGE : CLI_FAILED;
}

struct kiln_request cli_request(const struct cli_options *o) {
  struct kiln_request r = {.struct_size = sizeof r};
  r.kernel = o->kernel;
  r.target = o->targets.n ? o->targets.at[0] : NULL;
  r.case_index = o->case_index;
  r.n_set = o->set.n;
  r.set = o->set.at;
  r.n_consts = o->consts.n;
  r.consts = o->consts.at;
  r.n_shapes = o->shapes.n;
  r.shapes = o->shapes.at;
  r.n_layouts = o->layouts.n;
  r.layouts = o->layouts.at;
  r.n_strides = o->strides.n;
  r.strides = o->strides.at;
  r.n_offsets = o->offsets.n;
  r.offsets = o->offsets.at;
  r.n_scalars = o->scalars.n;
  r.scalars = o->scalars.at;
  r.n_absent = o->absent.n;
  r.absent = o->absent.at;
  r.n_fused = o->fused.n;
  r.fused = o->fused.at;
  r.seed = o->seed;
  r.lineinfo = o->lineinfo;
  return r;
}

static void print_usage(FILE *out) {
  fprintf(out, "usage: kiln COMMAND ...\n\n");
  for (uint32_t i = 0; i < cli_n_commands; i++)
    fprintf(out, "  kiln %-6s %-28s %s\n", cli_commands[i].name, cli_commands[i].arguments,
            cli_commands[i].summary);
  fprintf(out,
          "\nkiln COMMAND --help lists a command's options; kiln --version prints the version.\n");
}

static int run_command(const struct cli_command *cmd, int n, char **words) {
  static struct cli_options o;
  int rc = cli_parse(cmd, n, words, &o);
  if (rc != CLI_OK)
    return rc;
  if (o.help) {
    cli_print_help(cmd, stdout);
    return CLI_OK;
  }
  struct sigaction sa = {.sa_handler = on_interrupt};
  sigaddset(&sa.sa_mask, SIGINT);
  sigaddset(&sa.sa_mask, SIGTERM);
  sigaction(SIGINT, &sa, NULL);
  sigaction(SIGTERM, &sa, NULL);
  rc = cmd->run(&o);
  if (fflush(stdout) != 0 || ferror(stdout)) {
    fprintf(stderr, "kiln: cannot write the output: %s\n", strerror(errno));
    return CLI_FAILED;
  }
  return rc;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    print_usage(stderr);
    return CLI_USAGE;
  }
  if (strcmp(argv[1], "--version") == 0) {
    printf("kiln %s\n", kiln_version());
    return CLI_OK;
  }
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
      strcmp(argv[1], "help") == 0) {
    print_usage(stdout);
    return CLI_OK;
  }
  for (uint32_t i = 0; i < cli_n_commands; i++)
    if (strcmp(argv[1], cli_commands[i].name) == 0)
      return run_command(&cli_commands[i], argc - 2, argv + 2);
  fprintf(stderr, "kiln: unknown command `%s`; see kiln --help\n", argv[1]);
  return CLI_USAGE;
}
