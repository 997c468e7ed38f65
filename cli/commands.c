/* check, show, run, test, doctor and stubs. */
#include "cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

/* Loads the i-th file of the command line. */
static enum kiln_status load(struct kiln_context *ctx, const struct cli_options *o, uint32_t i,
                             struct kiln_file **file) {
  return kiln_file_load(ctx, o->files.at[i], o->root, file);
}

static void print_compiled(const struct cli_options *o, const struct kiln_variant *v,
                           const struct kiln_compile_info *c) {
  const char *name = kiln_variant_kernel(v), *target = kiln_variant_target(v);
  if (o->json) {
    fputs("{\"kernel\":", stdout);
    cli_put_json(stdout, name);
    printf(
        ",\"target\":\"%s\",\"registers\":%u,\"spill_bytes\":%u,\"smem_bytes\":%u,\"threads\":%u,"
        "\"cubin_bytes\":%llu,\"trace_ms\":%.3f,\"lower_ms\":%.3f,\"emit_ms\":%.3f,"
        "\"nvrtc_ms\":%.1f}\n",
        target, c->registers, c->spill_bytes, c->smem_bytes, c->threads,
        (unsigned long long)c->cubin_bytes, c->trace_ms, c->lower_ms, c->emit_ms, c->nvrtc_ms);
    return;
  }
  printf("%-20s %-8s %3u registers, %6u bytes of shared memory, %4u threads; traced in %.2f ms, "
         "lowered in %.2f ms, emitted in %.2f ms, NVRTC %.0f ms\n",
         name, target, c->registers, c->smem_bytes, c->threads, c->trace_ms, c->lower_ms,
         c->emit_ms, c->nvrtc_ms);
}

int cmd_check(const struct cli_options *o) {
  struct kiln_context *ctx = cli_context(o);
  if (!ctx)
    return CLI_FAILED;
  struct kiln_file *file = NULL;
  enum kiln_status st = load(ctx, o, 0, &file), worst = st;
  uint32_t n_kernels = st == KILN_OK && !o->kernel ? kiln_file_kernel_count(file) : 1;
  uint32_t n_targets = o->targets.n ? o->targets.n : 1;
  for (uint32_t k = 0; st == KILN_OK && k < n_kernels; k++)
    for (uint32_t t = 0; t < n_targets; t++) {
      struct kiln_request req = cli_request(o);
      req.kernel = o->kernel ? o->kernel : kiln_file_kernel_name(file, k);
      req.target = o->targets.n ? o->targets.at[t] : NULL;
      struct kiln_variant *v = NULL;
      struct kiln_compile_info info;
      enum kiln_status one = kiln_specialise(file, &req, &v);
      if (one == KILN_OK)
        one = kiln_compile(v, &info);
      if (one == KILN_OK)
        print_compiled(o, v, &info);
      kiln_variant_free(v);
      if (one != KILN_OK && cli_skips(ctx, o, req.kernel))
        one = KILN_OK;
      else if (o->skip_unsupported) /* nothing is left for the next kernel's verdict */
        cli_finish(ctx, o, one);
      if (one != KILN_OK)
        worst = one;
      if (one == KILN_INTERRUPTED || one == KILN_NO_MEMORY) {
        k = n_kernels;
        break;
      }
    }
  int rc = cli_finish(ctx, o, worst);
  kiln_file_free(file);
  kiln_context_free(ctx);
  return rc;
}

int cmd_show(const struct cli_options *o) {
  struct kiln_context *ctx = cli_context(o);
  if (!ctx)
    return CLI_FAILED;
  struct kiln_file *file = NULL;
  struct kiln_variant *v = NULL;
  struct kiln_request req = cli_request(o);
  const char *text = NULL;
  enum kiln_status st = load(ctx, o, 0, &file);
  if (st == KILN_OK)
    st = kiln_specialise(file, &req, &v);
  if (st == KILN_OK)
    st = kiln_show(v, o->stage, o->after, &text);
  int rc = cli_finish(ctx, o, st);
  if (text) {
    FILE *out = o->output ? fopen(o->output, "w") : stdout;
    if (out && o->json) {
      fputs("{\"kernel\":", out);
      cli_put_json(out, kiln_variant_kernel(v));
      fprintf(out, ",\"target\":\"%s\",\"text\":", kiln_variant_target(v));
      cli_put_json(out, text);
      fputs("}\n", out);
    } else if (out) {
      fputs(text, out);
    }
    bool ok = out && !ferror(out);
    if (out && out != stdout)
      ok = fclose(out) == 0 && ok;
    if (!ok) {
      fprintf(stderr, "kiln: cannot write %s: %s\n", o->output ? o->output : "the output",
              strerror(errno));
      rc = CLI_FAILED;
    }
  }
  kiln_variant_free(v);
  kiln_file_free(file);
  kiln_context_free(ctx);
  return rc;
}

/* Where to run and in which domain: false and a message if --on or --domain is unknown. */
static bool where(const struct cli_options *o, struct kiln_context *ctx, enum kiln_on *on,
                  uint32_t *flags) {
  bool algebraic = o->domain && strcmp(o->domain, "algebraic") == 0;
  if (o->domain && !algebraic && strcmp(o->domain, "rounded") != 0) {
    fprintf(stderr, "kiln: --domain takes rounded or algebraic, got `%s`\n", o->domain);
    return false;
  }
  if (algebraic) {
    *flags = KILN_CASE_ALGEBRAIC;
    *on = o->on && strcmp(o->on, "emu") == 0 ? KILN_ON_EMU : KILN_ON_INTERP;
    if (!o->on || strcmp(o->on, "interp") == 0 || *on == KILN_ON_EMU)
      return true;
    fprintf(stderr, "kiln: --domain algebraic is the interpreter's and the emulator's: --on interp "
                    "or --on emu\n");
    return false;
  }
  if (!o->on) {
    const char *doctor = NULL;
    bool gpu = kiln_doctor(ctx, true, &doctor) == KILN_OK && strstr(doctor, "\"gpus\":[{") != NULL;
    *on = gpu ? KILN_ON_GPU : KILN_ON_INTERP;
    return true;
  }
  static const char *const places[] = {
      [KILN_ON_INTERP] = "interp", [KILN_ON_GPU] = "gpu", [KILN_ON_EMU] = "emu"};
  for (size_t k = 0; k < sizeof places / sizeof places[0]; k++)
    if (strcmp(o->on, places[k]) == 0) {
      *on = (enum kiln_on)k;
      return true;
    }
  fprintf(stderr, "kiln: --on takes interp, emu or gpu, got `%s`\n", o->on);
  return false;
}

int cmd_run(const struct cli_options *o) {
  struct kiln_context *ctx = cli_context(o);
  if (!ctx)
    return CLI_FAILED;
  enum kiln_on on;
  uint32_t flags = (o->no_verify ? 0u : KILN_CASE_VERIFY) | (o->exact ? KILN_CASE_EXACT : 0u);
  if (!where(o, ctx, &on, &flags)) {
    kiln_context_free(ctx);
    return CLI_USAGE;
  }
  if (on == KILN_ON_GPU && !o->no_time)
    flags |= KILN_CASE_TIME | (o->no_peers ? 0u : KILN_CASE_PEERS);
  struct kiln_file *file = NULL;
  struct kiln_request req = cli_request(o);
  const struct kiln_report *report = NULL;
  enum kiln_status st = load(ctx, o, 0, &file);
  if (st == KILN_OK)
    st = kiln_run_case(file, &req, on, flags, &report);
  if (report)
    printf(o->json ? "%s\n" : "%s", o->json ? report->json : report->text);
  int rc = cli_finish(ctx, o, st);
  kiln_file_free(file);
  kiln_context_free(ctx);
  return rc;
}

int cmd_doctor(const struct cli_options *o) {
  struct kiln_context *ctx = cli_context(o);
  if (!ctx)
    return CLI_FAILED;
  const char *text = NULL;
  enum kiln_status st = kiln_doctor(ctx, o->json, &text);
  if (text)
    fputs(text, stdout);
  int rc = cli_finish(ctx, o, st);
  kiln_context_free(ctx);
  return rc;
}

/* With a folder as output: kiln.lua in it. */
int cmd_stubs(const struct cli_options *o) {
  struct kiln_context *ctx = cli_context(o);
  if (!ctx)
    return CLI_FAILED;
  const char *text = NULL;
  enum kiln_status st = kiln_describe_language(
      ctx, o->reference ? KILN_LANGUAGE_REFERENCE : KILN_LANGUAGE_STUBS, &text);
  int rc = CLI_OK;
  char path[PATH_MAX];
  struct stat about;
  const char *to = o->output;
  if (to && stat(to, &about) == 0 && S_ISDIR(about.st_mode)) {
    int n = snprintf(path, sizeof path, "%s/kiln.lua", to);
    to = n > 0 && (size_t)n < sizeof path ? path : to; /* too long: opening the folder says so */
  }
  if (text) {
    FILE *out = to ? fopen(to, "w") : stdout;
    bool ok = out != NULL;
    if (out && o->json) {
      fputs("{\"text\":", out);
      cli_put_json(out, text);
      fputs("}\n", out);
      ok = !ferror(out);
    } else if (out) {
      ok = fputs(text, out) >= 0;
    }
    if (out && to)
      ok = fclose(out) == 0 && ok;
    if (!ok && to) {
      fprintf(stderr, "kiln: cannot write %s: %s\n", to, strerror(errno));
      rc = CLI_FAILED;
    }
  }
  int said = cli_finish(ctx, o, st);
  kiln_context_free(ctx);
  return said != CLI_OK ? said : rc;
}

/* ---- test ---- */

struct tally {
  uint32_t passed, failed, skipped;
  bool found; /* a kernel of the name that was asked for */
  FILE *junit;
};

/* Text for an XML attribute or element. Control characters that XML does not allow become spaces,
 * and so do bytes over 127: a kernel file's lines need not be UTF-8. */
static void put_xml(FILE *out, const char *s) {
  for (; *s; s++)
    switch (*s) {
    case '&': fputs("&amp;", out); break;
    case '<': fputs("&lt;", out); break;
    case '>': fputs("&gt;", out); break;
    case '"': fputs("&quot;", out); break;
    case '\n':
    case '\t': fputc(*s, out); break;
    default: fputc(*s >= 0x20 && *s < 0x7f ? *s : ' ', out);
    }
}

static void record(struct tally *t, struct kiln_context *ctx, const struct cli_options *o,
                   const char *path, const char *kernel, int64_t index,
                   const struct kiln_report *report, enum kiln_status st) {
  bool ok = st == KILN_OK;
  char name[256];
  snprintf(name, sizeof name, "%s:%s case %lld", path, kernel, (long long)index);
  bool skipped = !ok && cli_skips(ctx, o, name);
  if (ok)
    t->passed++;
  else if (skipped)
    t->skipped++;
  else
    t->failed++;
  static const char *const levels[] = {"not checked", "self-checked", "verified"};
  const char *level = !ok || !report      ? kiln_status_name(st)
                      : report->algebraic ? "algebraic"
                                          : levels[report->level];
  if (o->json && report)
    printf("%s\n", report->json);
  else if (!o->json && !skipped)
    printf("%s %s:%s case %lld (%s)\n", ok ? "PASS" : "FAIL", path, kernel, (long long)index,
           level);
  if (t->junit) {
    fprintf(t->junit, "  <testcase classname=\"");
    put_xml(t->junit, path);
    fprintf(t->junit, "\" name=\"");
    put_xml(t->junit, kernel);
    fprintf(t->junit, " case %lld\">", (long long)index);
    if (skipped)
      fprintf(t->junit, "<skipped/>");
    else if (!ok) {
      fprintf(t->junit, "<failure message=\"%s\">", level);
      for (uint32_t i = 0; i < kiln_diag_count(ctx); i++)
        put_xml(t->junit, kiln_diag_text(ctx, i));
      fprintf(t->junit, "</failure>");
    }
    fprintf(t->junit, "</testcase>\n");
  }
  cli_finish(ctx, o, ok || skipped ? KILN_OK : st);
}

static enum kiln_status test_file(struct tally *t, struct kiln_context *ctx,
                                  const struct cli_options *o, uint32_t f, enum kiln_on on,
                                  uint32_t flags) {
  const char *path = o->files.at[f];
  struct kiln_file *file = NULL;
  enum kiln_status st = load(ctx, o, f, &file);
  if (st != KILN_OK) {
    record(t, ctx, o, path, "load", 0, NULL, st);
    kiln_file_free(file);
    return st;
  }
  for (uint32_t k = 0; k < kiln_file_kernel_count(file) && st != KILN_INTERRUPTED; k++) {
    const char *name = kiln_file_kernel_name(file, k);
    if (o->kernel && strcmp(o->kernel, name) != 0)
      continue;
    t->found = true;
    uint32_t n = kiln_file_case_count(file, name);
    for (uint32_t i = 0; i < n && st != KILN_INTERRUPTED; i++) {
      struct kiln_request req = cli_request(o);
      req.kernel = name;
      req.case_index = (int32_t)i;
      const struct kiln_report *report = NULL;
      st = kiln_run_case(file, &req, on, flags, &report);
      record(t, ctx, o, path, name, i, report, st);
    }
  }
  kiln_file_free(file);
  return st;
}

int cmd_test(const struct cli_options *o) {
  struct kiln_context *ctx = cli_context(o);
  if (!ctx)
    return CLI_FAILED;
  enum kiln_on on;
  uint32_t flags = KILN_CASE_VERIFY | (o->exact ? KILN_CASE_EXACT : 0u);
  if (!where(o, ctx, &on, &flags)) {
    kiln_context_free(ctx);
    return CLI_USAGE;
  }
  struct tally t = {0};
  if (o->junit && !(t.junit = fopen(o->junit, "w"))) {
    fprintf(stderr, "kiln: cannot write %s: %s\n", o->junit, strerror(errno));
    kiln_context_free(ctx);
    return CLI_FAILED;
  }
  if (t.junit)
    fprintf(t.junit, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"kiln\">\n");
  enum kiln_status st = KILN_OK;
  for (uint32_t f = 0; f < o->files.n && st != KILN_INTERRUPTED; f++)
    st = test_file(&t, ctx, o, f, on, flags);
  bool wrote = true;
  if (t.junit) {
    fprintf(t.junit, "</testsuite>\n");
    wrote = !ferror(t.junit);
    wrote = fclose(t.junit) == 0 && wrote;
    if (!wrote)
      fprintf(stderr, "kiln: cannot write %s: %s\n", o->junit, strerror(errno));
  }
  fflush(stdout);
  if (o->kernel && !t.found && t.failed == 0)
    fprintf(stderr, "kiln test: no file has a kernel `%s`\n", o->kernel);
  else if (t.passed + t.failed + t.skipped == 0 && st != KILN_INTERRUPTED)
    fprintf(stderr, "kiln test: no cases found\n");
  if (!o->json && o->skip_unsupported)
    printf("%u passed, %u failed, %u skipped\n", t.passed, t.failed, t.skipped);
  else if (!o->json)
    printf("%u passed, %u failed\n", t.passed, t.failed);
  kiln_context_free(ctx);
  if (st == KILN_INTERRUPTED)
    return CLI_INTERRUPTED;
  return t.failed || !wrote || t.passed + t.failed + t.skipped == 0 ? CLI_FAILED : CLI_OK;
}
