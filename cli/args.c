/* Option parsing: one table of options; `--name value` and `--name=value`; lists may repeat and
 * take comma-separated items; `--` ends options, or begins the command that a command takes. */
#include "cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum option_kind { FLAG, TEXT, LIST, PAIRS, NUMBER, INT32 };

/* LIST takes comma-separated items; PAIRS comma-separated KEY=VALUE items (a comma inside a value
 * is kept where what follows it has no '='). */
static const struct option {
  const char *name;
  enum option_kind kind;
  size_t offset;
  const char *value, *help;
} options[] = {
    {"kernel", TEXT, offsetof(struct cli_options, kernel), "NAME",
     "kernel, where a file has several"},
    {"set", PAIRS, offsetof(struct cli_options, set), "K=V,..",
     "meta-parameters and schedule knobs"},
    {"const", PAIRS, offsetof(struct cli_options, consts), "K=V,..", "constants: T=bf16"},
    {"shape", PAIRS, offsetof(struct cli_options, shapes), "D=N,..", "dims: M=4096,N=4096"},
    {"layout", PAIRS, offsetof(struct cli_options, layouts), "A=col,..", "row (default) or col"},
    {"stride", PAIRS, offsetof(struct cli_options, strides), "A=1,4096", "strides in elements"},
    {"offset", PAIRS, offsetof(struct cli_options, offsets), "A=1,..",
     "elements of its allocation before an argument begins"},
    {"scalar", PAIRS, offsetof(struct cli_options, scalars), "S=X,..", "scalar arguments"},
    {"absent", LIST, offsetof(struct cli_options, absent), "A,..", "optional arguments left out"},
    {"target", LIST, offsetof(struct cli_options, targets), "sm_..", "architecture, e.g. sm_90a"},
    {"case", INT32, offsetof(struct cli_options, case_index), "I",
     "start from the kernel's case I"},
    {"seed", NUMBER, offsetof(struct cli_options, seed), "N", "seed of random inputs"},
    {"root", TEXT, offsetof(struct cli_options, root), "DIR", "folder that require reads from"},
    {"stage", TEXT, offsetof(struct cli_options, stage), "S",
     "tile (default), scheduled, machine, schedule, recipe, cuda, ptx or sass"},
    {"after", TEXT, offsetof(struct cli_options, after), "PASS",
     "IR after this pass (a wrong name lists them)"},
    {"on", TEXT, offsetof(struct cli_options, on), "WHERE",
     "interp, emu or gpu (default: gpu if present; diff: emu or gpu, default both)"},
    {"domain", TEXT, offsetof(struct cli_options, domain), "NAME",
     "rounded (default); algebraic: compare stages bit for bit (diff: as is exact)"},
    {"machine", TEXT, offsetof(struct cli_options, machine), "FILE",
     "machine IR text to run instead of the kernel's lowering"},
    {"exact", FLAG, offsetof(struct cli_options, exact), NULL,
     "also compare bitwise on integer-valued inputs"},
    {"no-verify", FLAG, offsetof(struct cli_options, no_verify), NULL, "do not verify"},
    {"no-time", FLAG, offsetof(struct cli_options, no_time), NULL, "do not time"},
    {"fused", PAIRS, offsetof(struct cli_options, fused), "bias=A,..",
     "what cuBLAS computes as well: bias=ARG, residual=ARG, activation=relu or gelu_tanh"},
    {"no-peers", FLAG, offsetof(struct cli_options, no_peers), NULL,
     "do not time cuBLAS or a copy beside"},
    {"lineinfo", FLAG, offsetof(struct cli_options, lineinfo), NULL,
     "refer to the kernel file's lines in the CUDA source"},
    {"skip-unsupported", FLAG, offsetof(struct cli_options, skip_unsupported), NULL,
     "count as skipped what the target has no lowering for (K0701)"},
    {"junit", TEXT, offsetof(struct cli_options, junit), "FILE", "write a JUnit report"},
    {"output", TEXT, offsetof(struct cli_options, output), "FILE",
     "write there, not to stdout; also -o"},
    {"reference", FLAG, offsetof(struct cli_options, reference), NULL,
     "print the tables of docs/reference.md instead"},
    {"max-steps", NUMBER, offsetof(struct cli_options, max_steps), "N",
     "Lua steps (default 10^8); if given, also ops in the interpreter or emulator"},
    {"max-memory", NUMBER, offsetof(struct cli_options, max_memory), "BYTES", "default 256 MiB"},
    {"max-seconds", INT32, offsetof(struct cli_options, max_seconds), "N", "default 10"},
    {"max-ops", INT32, offsetof(struct cli_options, max_ops), "N", "ops a kernel (default 10^5)"},
    {"max-errors", INT32, offsetof(struct cli_options, max_errors), "N", "default 200"},
    {"json", FLAG, offsetof(struct cli_options, json), NULL, "machine-readable output on stdout"},
    {"help", FLAG, offsetof(struct cli_options, help), NULL, "this text"},
};

#define N_OPTIONS (sizeof options / sizeof *options)

/* Whether `name` is a word of the space-separated list. */
static bool in_list(const char *list, const char *name) {
  size_t n = strlen(name);
  for (const char *p = list; (p = strstr(p, name)) != NULL; p += n)
    if ((p == list || p[-1] == ' ') && (p[n] == 0 || p[n] == ' '))
      return true;
  return false;
}

static bool accepts(const struct cli_command *cmd, const struct option *opt) {
  return strcmp(opt->name, "help") == 0 || in_list(cmd->options, opt->name);
}

static int usage_error(const struct cli_command *cmd, const char *what, const char *word) {
  fprintf(stderr, "kiln %s: %s `%s`; see kiln %s --help\n", cmd->name, what, word, cmd->name);
  return CLI_USAGE;
}

/* Splits `text` in place at commas into the list; with pairs, only before an item with '='. Returns
 * what is wrong and the item, or NULL. */
static const char *add_items(struct cli_list *list, char *text, bool pairs, const char **bad) {
  for (char *item = text; item;) {
    char *comma = strchr(item, ',');
    while (pairs && comma) {
      char *next = strchr(comma + 1, ','), *eq = strchr(comma + 1, '=');
      if (eq && (!next || eq < next))
        break;
      comma = next;
    }
    if (comma)
      *comma = 0;
    *bad = item;
    if (list->n == CLI_MAX_LIST)
      return "too many items at";
    if (pairs && (!strchr(item, '=') || *item == '='))
      return "expected KEY=VALUE,... at";
    if (*item == 0)
      return "expected a name at";
    list->at[list->n++] = item;
    item = comma ? comma + 1 : NULL;
  }
  return NULL;
}

static bool parse_number(const char *text, uint64_t max, uint64_t *value) {
  char *end;
  errno = 0;
  unsigned long long x = strtoull(text, &end, 10);
  *value = x;
  return errno == 0 && *text >= '0' && *text <= '9' && *end == 0 && x <= max;
}

static const struct option *find_option(const struct cli_command *cmd, const char *name, size_t n) {
  for (size_t i = 0; i < N_OPTIONS; i++)
    if (strlen(options[i].name) == n && memcmp(options[i].name, name, n) == 0)
      return accepts(cmd, &options[i]) ? &options[i] : NULL;
  return NULL;
}

int cli_parse(const struct cli_command *cmd, int n, char **words, struct cli_options *o) {
  memset(o, 0, sizeof *o);
  o->case_index = -1;
  bool more_options = true;
  for (int i = 0; i < n; i++) {
    char *w = words[i];
    if (more_options && strcmp(w, "--") == 0) {
      more_options = false;
      continue;
    }
    if (more_options && strcmp(w, "-h") == 0) {
      o->help = true;
      continue;
    }
    if (!more_options && strstr(cmd->arguments, "-- COMMAND")) {
      if (o->command.n == CLI_MAX_LIST)
        return usage_error(cmd, "too many words in the command at", w);
      o->command.at[o->command.n++] = w;
      continue;
    }
    if (!more_options || w[0] != '-' || w[1] == 0) {
      if (o->files.n == CLI_MAX_LIST)
        return usage_error(cmd, "too many files at", w);
      o->files.at[o->files.n++] = w;
      continue;
    }
    bool is_o = strcmp(w, "-o") == 0;
    if (w[1] != '-' && !is_o)
      return usage_error(cmd, "unknown option", w);
    char *eq = strchr(w, '=');
    size_t len = eq ? (size_t)(eq - w) - 2 : strlen(w) - 2;
    const struct option *opt = is_o ? find_option(cmd, "output", 6) : find_option(cmd, w + 2, len);
    if (!opt)
      return usage_error(cmd, "unknown option", w);
    void *field = (char *)o + opt->offset;
    if (opt->kind == FLAG) {
      if (eq)
        return usage_error(cmd, "no value is taken by", w);
      *(bool *)field = true;
      continue;
    }
    char *value = eq ? eq + 1 : i + 1 < n ? words[++i] : NULL;
    if (!value)
      return usage_error(cmd, "a value is missing after", w);
    const char *wrong = NULL, *bad = value;
    uint64_t number;
    switch (opt->kind) {
    case TEXT: *(const char **)field = value; break;
    case LIST:
    case PAIRS: wrong = add_items(field, value, opt->kind == PAIRS, &bad); break;
    case NUMBER:
      if (!parse_number(value, INT64_MAX, field))
        wrong = "expected a whole number, got";
      break;
    case INT32:
      if (!parse_number(value, INT32_MAX, &number))
        wrong = "expected a whole number below 2^31, got";
      else
        *(int32_t *)field = (int32_t)number;
      break;
    case FLAG: break;
    }
    if (wrong)
      return usage_error(cmd, wrong, bad);
  }
  if (o->help)
    return CLI_OK;
  if ((int)o->files.n < cmd->min_files) {
    fprintf(stderr, "kiln %s: a FILE is missing; see kiln %s --help\n", cmd->name, cmd->name);
    return CLI_USAGE;
  }
  if (o->targets.n > 1 && !cmd->many_targets)
    return usage_error(cmd, "one --target is taken here, not also", o->targets.at[1]);
  if (cmd->max_files >= 0 && (int)o->files.n > cmd->max_files)
    return usage_error(cmd, "one argument too many:", o->files.at[cmd->max_files]);
  return CLI_OK;
}

void cli_print_help(const struct cli_command *cmd, FILE *out) {
  fprintf(out, "usage: kiln %s %s\n%s\n\n", cmd->name, cmd->arguments, cmd->summary);
  for (size_t i = 0; i < N_OPTIONS; i++)
    if (accepts(cmd, &options[i]))
      fprintf(out, "  --%-11s %-9s %s\n", options[i].name, options[i].value ? options[i].value : "",
              options[i].help);
}
