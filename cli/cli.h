/* The command line: argument parsing and what the commands share. Uses the public API alone. */
#ifndef KILN_CLI_CLI_H
#define KILN_CLI_CLI_H

#include <kiln.h>

#include <stdio.h>

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_INTERRUPTED = 130 };

#define CLI_MAX_LIST 64

struct cli_list {
  uint32_t n;
  const char *at[CLI_MAX_LIST];
};

/* Every option any command takes; a command's table says which it accepts. */
struct cli_options {
  struct cli_list command; /* the words after --, where a command takes one */
  struct cli_list files, set, consts, shapes, layouts, strides, offsets, scalars, absent, targets,
      fused;
  const char *kernel, *root, *stage, *after, *on, *domain, *machine, *output, *junit;
  int32_t case_index, max_seconds, max_ops, max_errors;
  uint64_t seed;
  bool json, lineinfo, no_verify, no_time, no_peers, exact, reference, skip_unsupported, help;
  uint64_t max_steps, max_memory;
};

struct cli_command {
  /* With "-- COMMAND" in `arguments`, the words after -- are a command's. */
  const char *name, *arguments, *summary;
  /* Names of the accepted options, space separated, of the table in args.c. */
  const char *options;
  int min_files, max_files; /* max -1: any */
  bool many_targets;
  int (*run)(const struct cli_options *o);
};

extern const struct cli_command cli_commands[];
extern const uint32_t cli_n_commands;

/* args.c: fills `o` from the words after the command's name. Returns CLI_OK, or prints what is
 * wrong to stderr and returns CLI_USAGE. */
int cli_parse(const struct cli_command *cmd, int n, char **words, struct cli_options *o);
/* Usage and options of a command. */
void cli_print_help(const struct cli_command *cmd, FILE *out);

/* main.c: a context made from the options; prints the reason and returns NULL on failure. */
struct kiln_context *cli_context(const struct cli_options *o);
/* `text` as a JSON string. Bytes that are no UTF-8 do not occur in what the library gives. */
void cli_put_json(FILE *out, const char *text);
/* Prints the diagnostics (JSON lines with --json, on stdout; else text on stderr), clears them and
 * gives the exit code of `status`: CLI_USAGE where an option's value was at fault (K0003). */
int cli_finish(struct kiln_context *ctx, const struct cli_options *o, enum kiln_status status);
/* With --skip-unsupported: whether all errors are that the target has no lowering. Then says so in
 * a line, `SKIP what: the first error`, and clears the diagnostics. */
bool cli_skips(struct kiln_context *ctx, const struct cli_options *o, const char *what);
struct kiln_request cli_request(const struct cli_options *o);

int cmd_check(const struct cli_options *o);
int cmd_show(const struct cli_options *o);
int cmd_run(const struct cli_options *o);
int cmd_test(const struct cli_options *o);
int cmd_diff(const struct cli_options *o);
int cmd_reduce(const struct cli_options *o);
int cmd_doctor(const struct cli_options *o);
int cmd_stubs(const struct cli_options *o);

#endif
