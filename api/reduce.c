/* kiln_reduce: the text to reduce, and what it means that a smaller one fails as it does.
 *
 * Without a test of the caller's the way to a cubin is taken anew for each text, in a context of
 * its own, up to the step at which the first text failed. The error must have the same code; while
 * loading also the same words, names and numbers aside: the reader has few codes, and a text with
 * nothing in it fails too. */
#include "api/api.h"

#include "ir/reduce.h"

#include <string.h>

/* The way to a cubin; NONE: none of them fails. */
enum step { STEP_LOAD, STEP_SPECIALISE, STEP_EMIT, STEP_COMPILE, STEP_NONE };

struct reduction {
  struct kiln_context *ctx;
  const char *path, *root;
  const struct kiln_request *req;
  const struct kiln_reduce_options *opt;
  struct strbuf text;          /* to reduce */
  struct kiln_request of_text; /* what a text is specialised by */
  enum step step;              /* where the first one fails, */
  enum diag_id id;             /* and how */
  char words[200];
  bool no_memory; /* a trial had none */
  const char *best;
};

static enum step fail_at(struct kiln_context *ctx, struct reduction *r, enum step last,
                         const char *text, size_t n) {
  struct kiln_file *file = NULL;
  struct kiln_variant *v = NULL;
  enum step at = STEP_LOAD;
  enum kiln_status st = kiln_file_load_text(ctx, "reduced.tir", text, n, r->root, &file);
  if (st == KILN_OK && at < last) {
    at = STEP_SPECIALISE;
    st = kiln_specialise(file, &r->of_text, &v);
  }
  if (st == KILN_OK && at < last) {
    at = STEP_EMIT;
    st = api_emit(v);
  }
  if (st == KILN_OK && at < last) {
    at = STEP_COMPILE;
    st = api_compile(v);
  }
  kiln_variant_free(v);
  kiln_file_free(file);
  r->no_memory |= st == KILN_NO_MEMORY;
  /* That there is no NVRTC is no failure of the text. */
  return st == KILN_OK || st == KILN_UNAVAILABLE ? STEP_NONE : at;
}

/* The words of a message without what stands in `quotes`, and without numbers. */
static void put_words(char *out, size_t size, const char *message) {
  size_t n = 0;
  bool quoted = false;
  for (const char *s = message; *s && n + 1 < size; s++) {
    quoted ^= *s == '`';
    if (!quoted && (*s < '0' || *s > '9'))
      out[n++] = *s;
  }
  out[n] = 0;
}

/* How a text fails within the steps up to `last`. words: of the message, or empty. */
static enum step failure(struct reduction *r, enum step last, const char *text, size_t n,
                         enum diag_id *id, char words[static 200]) {
  struct kiln_context_options o = r->ctx->opt;
  struct kiln_context *ctx;
  o.log = NULL;
  if (kiln_context_new(&o, &ctx) != KILN_OK) {
    r->no_memory = true;
    return STEP_NONE;
  }
  enum step at = fail_at(ctx, r, last, text, n);
  words[0] = 0;
  *id = DIAG_INTERNAL; /* a failure without a diagnostic would be that */
  for (uint32_t i = 0; i < ctx->diags.list.n; i++)
    if (ctx->diags.list.at[i].severity == DIAG_ERROR) {
      *id = ctx->diags.list.at[i].id;
      if (at == STEP_LOAD)
        put_words(words, 200, ctx->diags.list.at[i].message);
      break;
    }
  kiln_context_free(ctx);
  return at;
}

static bool fails_alike(void *user, const char *text, size_t n) {
  struct reduction *r = user;
  enum diag_id id;
  char words[200];
  return failure(r, r->step, text, n, &id, words) == r->step && id == r->id &&
         str_eq(words, r->words);
}

static bool fails(void *user, const char *text, size_t n) {
  struct reduction *r = user;
  return r->opt->fails(r->opt->user, text, n);
}

static void progress(void *user, uint32_t before, uint32_t now, uint32_t tried) {
  struct reduction *r = user;
  if (r->opt->progress)
    r->opt->progress(r->opt->user, before, now, tried);
}

static bool interrupted(void *user) {
  struct reduction *r = user;
  return r->no_memory || api_interrupted(r->ctx);
}

/* ---- the text ---- */

struct trace_call {
  struct reduction *r;
  struct kiln_file *file;
};

static enum kiln_status trace(void *user) {
  struct trace_call *c = user;
  struct reduction *r = c->r;
  struct api_mark before = api_mark(r->ctx);
  struct api_problem p;
  struct ir_module *m = NULL;
  const struct cg_target *target;
  enum kiln_status st = api_pick_target(r->ctx, r->req->target, &target);
  if (st != KILN_OK)
    return st;
  if (api_resolve(c->file, r->req, false, &c->file->work.arena, &p) &&
      api_pick_config(&p, target, &c->file->work.arena) == KILN_OK)
    m = api_trace(&p, &c->file->work.arena);
  if (!m)
    return api_failure_since(r->ctx, before);
  struct strbuf text = {.arena = &c->file->work.arena};
  ir_print(m, (struct ir_print_options){.names = true}, &text);
  return api_try_append(&r->text, sb_str(&text), text.n) ? KILN_OK : api_no_memory(r->ctx);
}

static enum kiln_status get_text(struct reduction *r) {
  const char *error;
  struct strbuf raw = {.arena = &r->ctx->reduced.arena};
  if (!api_read_file(r->path, &raw, &error)) {
    API_ERROR(r->ctx, FILE, "cannot read %s: %s", r->path, error);
    return KILN_FAILED;
  }
  r->text.arena = &r->ctx->reduced.arena;
  r->of_text = *r->req;
  if (api_is_tir(r->path, sb_str(&raw), raw.n)) {
    r->text = raw;
    return KILN_OK;
  }
  struct trace_call c = {.r = r};
  enum kiln_status st = kiln_file_load(r->ctx, r->path, r->root, &c.file);
  if (st == KILN_OK)
    st = api_guarded(&c.file->work, trace, &c);
  kiln_file_free(c.file);
  /* What was chosen is in the text. */
  r->of_text = (struct kiln_request){
      .struct_size = sizeof r->of_text, .target = r->req->target, .case_index = -1};
  return st;
}

/* ---- the reduction ---- */

static enum kiln_status begin(void *user) {
  struct reduction *r = user;
  enum kiln_status st = get_text(r);
  if (st != KILN_OK)
    return st;
  if (r->opt->fails) {
    if (fails(r, sb_str(&r->text), r->text.n))
      return KILN_OK;
    API_ERROR(r->ctx, USAGE, "%s does not fail to begin with", r->path);
    return KILN_INVALID;
  }
  r->step = failure(r, STEP_COMPILE, sb_str(&r->text), r->text.n, &r->id, r->words);
  if (r->no_memory)
    return api_no_memory(r->ctx);
  if (r->step != STEP_NONE)
    return KILN_OK;
  API_ERROR(r->ctx, USAGE,
            "%s passes `kiln check`: there is no error to keep; give a command that fails on it",
            r->path);
  return KILN_INVALID;
}

static enum kiln_status reduce(void *user) {
  struct reduction *r = user;
  struct ir_reduce_options opt = {.fails = r->opt->fails ? fails : fails_alike,
                                  .progress = progress,
                                  .interrupted = interrupted,
                                  .user = r};
  size_t n;
  r->best = ir_reduce(&r->ctx->reduced.arena, sb_str(&r->text), r->text.n, &opt, &n);
  if (r->no_memory)
    return api_no_memory(r->ctx);
  return api_interrupted(r->ctx) ? KILN_INTERRUPTED : KILN_OK;
}

enum kiln_status kiln_reduce(struct kiln_context *ctx, const char *path, const char *root,
                             const struct kiln_request *req,
                             const struct kiln_reduce_options *options, const char **text) {
  *text = NULL;
  struct kiln_reduce_options opt = {0};
  struct kiln_request request;
  if (options && (options->struct_size == 0 || options->struct_size > sizeof opt)) {
    API_ERROR(ctx, USAGE, "kiln_reduce: struct_size of the options is not set or too large");
    return KILN_INVALID;
  }
  if (options)
    memcpy(&opt, options, options->struct_size);
  if (!api_request(ctx, req, &request))
    return KILN_INVALID;
  arena_free(&ctx->reduced.arena);
  struct reduction r = {.ctx = ctx, .path = path, .root = root, .req = &request, .opt = &opt};
  enum kiln_status st = api_guarded(&ctx->reduced, begin, &r);
  if (st == KILN_OK) {
    st = api_guarded(&ctx->reduced, reduce, &r);
    *text = r.best;
  }
  return st;
}
