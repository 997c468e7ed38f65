/* Kernel files and IR texts: loading, describing. */
#include "api/api.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_FILE ((size_t)64 << 20)

/* Appends the whole file; false with *error (static or errno text). The file is not open while
 * memory is taken: a failed allocation must not leak it. */
bool api_read_file(const char *path, struct strbuf *text, const char **error) {
  struct stat st;
  *error = NULL;
  if (stat(path, &st) != 0)
    *error = strerror(errno);
  else if (!S_ISREG(st.st_mode))
    *error = "not a regular file";
  else if ((uint64_t)st.st_size > MAX_FILE)
    *error = "larger than 64 MiB";
  if (*error)
    return false;
  size_t want = (size_t)st.st_size, got = 0;
  char *buffer = arena_get(text->arena, want);
  FILE *f = fopen(path, "rb");
  if (f)
    got = fread(buffer, 1, want, f);
  if (!f || ferror(f))
    *error = strerror(errno);
  if (f)
    fclose(f);
  if (*error)
    return false;
  sb_put(text, buffer, got);
  return true;
}

static bool read_module(void *user, const char *path, struct strbuf *text, const char **error) {
  struct kiln_file *file = user;
  *error = NULL;
  return file->root && fe_read_module(file->root, path, text, error);
}

/* Text comes in pieces of any size; the log gets lines (a very long one in parts). */
static void print_plain(void *user, const char *text, size_t n) {
  struct kiln_file *file = user;
  for (size_t i = 0; i < n; i++) {
    if (text[i] != '\n')
      file->printed[file->n_printed++] = text[i];
    if (text[i] != '\n' && file->n_printed < sizeof file->printed)
      continue;
    api_print(file->own.ctx, file->printed, file->n_printed);
    file->n_printed = 0;
  }
}

static bool file_interrupted(void *user) {
  return api_interrupted(((struct kiln_file *)user)->own.ctx);
}

static bool host_matmul(void *user, const struct fe_matmul *mm) {
  return api_oracle_matmul(user, mm);
}

struct load_call {
  struct kiln_file *file;
  const char *path, *name, *text, *root;
  size_t n;
};

/* The folder of a path. */
static char *folder_of(struct arena *a, const char *path) {
  const char *slash = strrchr(path, '/');
  if (!slash)
    return arena_strdup(a, ".");
  return slash == path ? arena_strdup(a, "/") : arena_strndup(a, path, (size_t)(slash - path));
}

bool api_is_tir(const char *name, const char *text, size_t n) {
  size_t len = strlen(name);
  return (len > 4 && str_eq(name + len - 4, ".tir")) ||
         (n >= 8 && memcmp(text, "kiln-ir ", 8) == 0);
}

static enum kiln_status load(void *user) {
  struct load_call *c = user;
  struct kiln_file *file = c->file;
  struct kiln_context *ctx = file->own.ctx;
  struct arena *a = &file->own.arena;
  if (c->path) {
    struct strbuf text = {.arena = a};
    const char *error;
    if (!api_read_file(c->path, &text, &error)) {
      API_ERROR(ctx, FILE, "cannot read %s: %s", c->path, error);
      return KILN_FAILED;
    }
    c->text = sb_str(&text);
    c->n = text.n;
    c->name = c->path;
  }
  file->root = c->root ? arena_strdup(a, c->root) : c->path ? folder_of(a, c->path) : NULL;
  if (api_is_tir(c->name, c->text, c->n)) {
    uint32_t index = diag_add_file(&ctx->diags, c->name, c->text, c->n);
    file->tir = ir_parse(a, &ctx->diags, index, c->text, c->n);
    return file->tir && ir_verify(file->tir, &ctx->diags) ? KILN_OK : KILN_INVALID;
  }
  const struct kiln_context_options *o = &ctx->opt;
  struct fe_host host = {
      .mem = &ctx->mem,
      .diags = &ctx->diags,
      .limits = {.steps = (int64_t)(o->max_steps < INT64_MAX ? o->max_steps : INT64_MAX),
                 .memory = (size_t)o->max_memory,
                 .seconds = o->max_seconds,
                 .ops = o->max_ops},
      .root = file->root ? file->root : "",
      .read_module = read_module,
      .print = print_plain,
      .interrupted = file_interrupted,
      .matmul = host_matmul,
      .user = file};
  struct api_mark before = api_mark(ctx);
  file->fe = fe_load(&host, c->name, c->text, c->n);
  if (file->fe)
    return KILN_OK;
  return api_failure_since(ctx, before);
}

static enum kiln_status load_file(struct kiln_context *ctx, struct load_call *c,
                                  struct kiln_file **out) {
  *out = NULL;
  struct kiln_file *file = mem_get0(&ctx->mem, sizeof *file);
  if (!file)
    return api_no_memory(ctx);
  api_object_init(&file->own, ctx);
  api_object_init(&file->shown, ctx);
  api_object_init(&file->work, ctx);
  c->file = file;
  enum kiln_status st = api_guarded(&file->own, load, c);
  if (st == KILN_OK)
    *out = file;
  else
    kiln_file_free(file);
  return st;
}

enum kiln_status kiln_file_load(struct kiln_context *ctx, const char *path, const char *root,
                                struct kiln_file **out) {
  struct load_call c = {.path = path, .root = root};
  return load_file(ctx, &c, out);
}

enum kiln_status kiln_file_load_text(struct kiln_context *ctx, const char *name, const char *text,
                                     size_t n, const char *root, struct kiln_file **out) {
  struct load_call c = {.name = name, .text = text, .n = n, .root = root};
  return load_file(ctx, &c, out);
}

void kiln_file_free(struct kiln_file *file) {
  if (!file)
    return;
  struct kiln_context *ctx = file->own.ctx;
  fe_free(file->fe);
  api_pick_free(file);
  api_object_free(&file->work);
  api_object_free(&file->shown);
  api_object_free(&file->own);
  mem_drop(&ctx->mem, file, sizeof *file);
}

uint32_t kiln_file_kernel_count(const struct kiln_file *file) {
  return file->tir ? 1 : fe_kernel_count(file->fe);
}

const char *kiln_file_kernel_name(const struct kiln_file *file, uint32_t i) {
  if (i >= kiln_file_kernel_count(file))
    return "";
  return file->tir ? ir_sym(file->tir, file->tir->kernel) : fe_kernel_at(file->fe, i)->name;
}

static const struct fe_kernel *quiet_find(const struct kiln_file *file, const char *name) {
  uint32_t n = file->fe ? fe_kernel_count(file->fe) : 0;
  for (uint32_t i = 0; i < n; i++)
    if ((!name && n == 1) || (name && str_eq(fe_kernel_at(file->fe, i)->name, name)))
      return fe_kernel_at(file->fe, i);
  return NULL;
}

uint32_t kiln_file_case_count(const struct kiln_file *file, const char *kernel) {
  const struct fe_kernel *k = quiet_find(file, kernel);
  return k ? k->n_cases : 0;
}

/* ---- description ---- */

struct describe_call {
  struct kiln_file *file;
  const char *kernel, *text;
};

static void put_string(struct strbuf *b, const char *key, const char *value) {
  sb_put_json(b, key, strlen(key));
  sb_putc(b, ':');
  sb_put_json(b, value, strlen(value));
}

static void put_value(struct strbuf *b, struct fe_value v) {
  if (v.kind == FE_DTYPE || v.kind == FE_STR) {
    const char *s = v.kind == FE_STR ? v.s : dtype_name((enum dtype)v.i);
    sb_put_json(b, s, strlen(s));
  } else if (v.kind == FE_NUM && !isfinite(v.f)) {
    sb_puts(b, isnan(v.f) ? "\"nan\"" : v.f > 0 ? "\"inf\"" : "\"-inf\"");
  } else {
    fe_value_print(v, b);
  }
}

static void put_choices(struct strbuf *b, const struct fe_kernel *k, bool consts) {
  bool first = true;
  sb_putc(b, '{');
  for (uint32_t i = 0; i < k->n_choices; i++) {
    const struct fe_choice *c = &k->choices[i];
    if (c->is_const != consts)
      continue;
    sb_puts(b, first ? "" : ",");
    first = false;
    sb_put_json(b, c->name, strlen(c->name));
    sb_puts(b, ":{\"values\":[");
    for (uint32_t j = 0; j < c->n_values; j++) {
      sb_puts(b, j ? "," : "");
      put_value(b, c->values[j]);
    }
    sb_printf(b, "],\"open\":%s}", c->open ? "true" : "false");
  }
  sb_putc(b, '}');
}

static void put_arg(struct strbuf *b, const char *name, enum ir_arg_kind kind, const char *dtype,
                    bool optional) {
  static const char *const kinds[] = {"in", "out", "inout", "scalar", "scratch"};
  sb_putc(b, '{');
  put_string(b, "name", name);
  sb_putc(b, ',');
  put_string(b, "kind", kinds[kind]);
  sb_putc(b, ',');
  put_string(b, "dtype", dtype);
  sb_printf(b, ",\"optional\":%s,\"dims\":[", optional ? "true" : "false");
}

static void describe_kernel(const struct fe_kernel *k, struct strbuf *b) {
  for (uint32_t i = 0; i < k->n_args; i++) {
    const struct fe_arg *arg = &k->args[i];
    sb_puts(b, i ? "," : "");
    put_arg(b, arg->name, arg->kind, arg->dtype_const ? arg->dtype_const : dtype_name(arg->dtype),
            arg->optional);
    for (uint32_t d = 0; d < arg->rank; d++) {
      sb_puts(b, d ? "," : "");
      sb_put_json(b, arg->dim_text[d], strlen(arg->dim_text[d]));
    }
    sb_puts(b, "]}");
  }
  sb_puts(b, "],\"const\":");
  put_choices(b, k, true);
  sb_puts(b, ",\"tune\":");
  put_choices(b, k, false);
  sb_printf(b, ",\"oracle\":%s,\"inputs\":%s,\"cases\":%u}", k->has_oracle ? "true" : "false",
            k->has_inputs ? "true" : "false", k->n_cases);
}

/* An IR text has its consts and config chosen; an argument is optional where it is absent. */
static void describe_tir(const struct ir_module *m, struct arena *a, struct strbuf *b) {
  for (uint32_t i = 0; i < m->args.n; i++) {
    const struct ir_arg *arg = &m->args.at[i];
    sb_puts(b, i ? "," : "");
    put_arg(b, ir_sym(m, arg->name), arg->kind, dtype_name(arg->dtype), !arg->present);
    for (uint32_t d = 0; d < arg->rank; d++) {
      struct strbuf dim = {.arena = a};
      expr_print(&m->exprs, arg->dim[d], &dim);
      sb_puts(b, d ? "," : "");
      sb_put_json(b, sb_str(&dim), dim.n);
    }
    sb_puts(b, "]}");
  }
  sb_puts(b, "],\"const\":{},\"tune\":{},\"oracle\":false,\"inputs\":false,\"cases\":0}");
}

static enum kiln_status describe(void *user) {
  struct describe_call *c = user;
  struct arena *a = &c->file->shown.arena;
  const struct ir_module *m = c->file->tir;
  const char *tir_name = m ? ir_sym(m, m->kernel) : NULL;
  const struct fe_kernel *k = quiet_find(c->file, c->kernel);
  if (!k && (!m || (c->kernel && !str_eq(c->kernel, tir_name))))
    return KILN_OK;
  struct strbuf b = {.arena = a};
  sb_putc(&b, '{');
  put_string(&b, "kernel", k ? k->name : tir_name);
  sb_puts(&b, ",\"args\":[");
  if (k)
    describe_kernel(k, &b);
  else
    describe_tir(m, a, &b);
  c->text = sb_str(&b);
  return KILN_OK;
}

const char *kiln_file_describe(struct kiln_file *file, const char *kernel) {
  arena_free(&file->shown.arena);
  struct describe_call c = {file, kernel, "{}"};
  api_guarded(&file->shown, describe, &c);
  return c.text;
}
