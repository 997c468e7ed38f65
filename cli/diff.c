/* diff: where interpreter, emulator and GPU differ. */
#include "cli/cli.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

struct display {
  bool tty, drawn;
  double start;
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* One line on a terminal, once it takes longer than a second. */
static void progress(void *user, const char *step, uint32_t runs) {
  struct display *d = user;
  if (!d->tty || now() - d->start < 1)
    return;
  fprintf(stderr, "\rkiln diff: run %u, %-30s", runs, step);
  d->drawn = true;
}

static bool read_options(const struct cli_options *o, struct kiln_diff_options *opt) {
  if (o->on && strcmp(o->on, "emu") != 0 && strcmp(o->on, "gpu") != 0) {
    fprintf(stderr,
            "kiln diff: --on takes emu or gpu, which are compared with the interpreter; "
            "got `%s`\n",
            o->on);
    return false;
  }
  if (o->domain && strcmp(o->domain, "rounded") != 0 && strcmp(o->domain, "algebraic") != 0) {
    fprintf(stderr, "kiln diff: --domain takes rounded or algebraic, got `%s`\n", o->domain);
    return false;
  }
  opt->machine = o->machine;
  if (o->domain)
    opt->domain = *o->domain == 'r' ? KILN_DOMAIN_ROUNDED : KILN_DOMAIN_ALGEBRAIC;
  if (o->on)
    opt->sides = 1u << (*o->on == 'e' ? KILN_ON_EMU : KILN_ON_GPU);
  else if (opt->domain == KILN_DOMAIN_ALGEBRAIC)
    opt->sides = 1u << KILN_ON_EMU;
  return true;
}

int cmd_diff(const struct cli_options *o) {
  struct display d = {.tty = isatty(STDERR_FILENO) != 0, .start = now()};
  struct kiln_diff_options opt = {.struct_size = sizeof opt, .progress = progress, .user = &d};
  if (!read_options(o, &opt))
    return CLI_USAGE;
  struct kiln_context *ctx = cli_context(o);
  if (!ctx)
    return CLI_FAILED;
  struct kiln_file *file = NULL;
  struct kiln_request req = cli_request(o);
  const struct kiln_diff_report *report = NULL;
  enum kiln_status st = kiln_file_load(ctx, o->files.at[0], o->root, &file);
  if (st == KILN_OK)
    st = kiln_diff(file, &req, &opt, &report);
  if (d.drawn)
    fputc('\n', stderr);
  if (report)
    printf(o->json ? "%s\n" : "%s", o->json ? report->json : report->text);
  int rc = cli_finish(ctx, o, st);
  kiln_file_free(file);
  kiln_context_free(ctx);
  return rc;
}
