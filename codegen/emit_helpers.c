/* Prints the device helpers a kernel uses, in the order of emit_helpers.def. */
#include "codegen/emit.h"

static const char *const texts[] = {
#define HELPER(id, text) text,
#include "codegen/emit_helpers.def"
};

void emit_helpers(const struct emit *e, struct strbuf *out) {
  for (int h = 0; h < EMIT_HELPER_COUNT; h++)
    if (e->used[h]) {
      sb_puts(out, "__device__ __forceinline__ ");
      sb_puts(out, texts[h]);
      sb_putc(out, '\n');
    }
  sb_puts(out, sb_str(&e->makes));
}
