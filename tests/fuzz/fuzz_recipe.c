/* Launch recipes are read from files: any bytes are read or refused with a diagnostic, and what was
 * read prints to a text that reads back to the same. */
#include "tests/fuzz/fuzz.h"

#include "base/recipe.h"

struct input {
  const char *text;
  size_t n;
  struct arena *arena;
};

static void one(void *user) {
  struct input *in = user;
  struct diag_sink diags;
  if (!diag_init(&diags, &mem_libc))
    return;
  uint32_t file = diag_add_file(&diags, "input", in->text, in->n);
  struct symtab *syms = symtab_new(in->arena);
  struct recipe *r = recipe_parse(in->arena, syms, &diags, file, in->text, in->n);
  PROMISE((r == NULL) == (diags.n_errors > 0));
  if (r) {
    struct strbuf once = {.arena = in->arena}, twice = {.arena = in->arena};
    recipe_print(r, &once);
    struct recipe *again = recipe_parse(in->arena, syms, &diags, file, sb_str(&once), once.n);
    PROMISE(again != NULL);
    recipe_print(again, &twice);
    PROMISE(once.n == twice.n && memcmp(sb_str(&once), sb_str(&twice), once.n) == 0);
  }
  struct strbuf shown = {.arena = in->arena};
  for (uint32_t i = 0; i < diags.list.n; i++) {
    diag_render_text(&diags, &diags.list.at[i], &shown);
    diag_render_json(&diags, &diags.list.at[i], &shown);
  }
  diag_free(&diags);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct arena arena;
  struct oom_trap trap = {0};
  arena_init(&arena, &mem_libc, &trap);
  struct input in = {(const char *)data, size, &arena};
  PROMISE(arena_guard(&arena, one, &in));
  arena_free(&arena);
  return 0;
}
