/* IR texts: any bytes are read or refused with a diagnostic; what was read is verified without a
 * crash, prints to a text that reads back to an equal module, and that text is a fixed point. */
#include "tests/fuzz/fuzz.h"

#include "ir/ir.h"

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
  uint32_t file = diag_add_file(&diags, "input.tir", in->text, in->n);
  struct ir_module *m = ir_parse(in->arena, &diags, file, in->text, in->n);
  PROMISE((m == NULL) == (diags.n_errors > 0));
  if (m) {
    struct strbuf once = {.arena = in->arena}, twice = {.arena = in->arena};
    struct strbuf why = {.arena = in->arena};
    ir_verify(m, &diags);
    ir_print(m, (struct ir_print_options){.names = true}, &once);
    struct ir_module *again = ir_parse(in->arena, &diags, file, sb_str(&once), once.n);
    PROMISE(again != NULL);
    PROMISE(ir_equal(m, again, &why));
    ir_print(again, (struct ir_print_options){.names = true}, &twice);
    PROMISE(once.n == twice.n && memcmp(sb_str(&once), sb_str(&twice), once.n) == 0);
  }
  struct strbuf shown = {.arena = in->arena};
  for (uint32_t i = 0; i < diags.list.n; i++)
    diag_render_text(&diags, &diags.list.at[i], &shown);
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
