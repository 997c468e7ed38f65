/* kiln_describe_language: the kernel language as text, from the frontend's table. */
#include "api/api.h"

struct language_call {
  struct kiln_context *ctx;
  enum kiln_language form;
  const char *text;
};

static enum kiln_status describe(void *user) {
  struct language_call *c = user;
  struct strbuf b = {.arena = &c->ctx->shown.arena};
  switch (c->form) {
  case KILN_LANGUAGE_STUBS: fe_language_stubs(&b); break;
  case KILN_LANGUAGE_REFERENCE: fe_language_reference(&b); break;
  }
  if (!b.n)
    API_ERROR(c->ctx, USAGE, "there is no form %d of the language", (int)c->form);
  c->text = b.n ? sb_str(&b) : NULL;
  return b.n ? KILN_OK : KILN_INVALID;
}

enum kiln_status kiln_describe_language(struct kiln_context *ctx, enum kiln_language form,
                                        const char **text) {
  *text = NULL;
  arena_free(&ctx->shown.arena);
  struct language_call c = {ctx, form, NULL};
  enum kiln_status st = api_guarded(&ctx->shown, describe, &c);
  if (st == KILN_OK)
    *text = c.text;
  return st;
}
