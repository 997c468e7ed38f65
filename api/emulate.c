/* A case on the emulator: several interleavings from the same memory, and all must leave the same
 * bits. */
#include "api/api.h"
#include "codegen/emu.h"

#include <string.h>

static size_t image_bytes(const struct api_image *im) {
  return im->bytes + 2 * (size_t)RT_GUARD_BYTES;
}

static unsigned char **copy_images(const struct api_problem *p, const struct api_image *images,
                                   struct arena *a) {
  unsigned char **out = ARENA_ARRAY(a, unsigned char *, p->n_args + 1);
  for (uint32_t i = 0; i < p->n_args; i++)
    if (images[i].memory)
      out[i] = arena_copy(a, images[i].memory, image_bytes(&images[i]));
  return out;
}

/* Atomic operations on floats, or whose old values are used, may depend on who comes first. */
static void look_for_atomic(void *user, struct ir_module *m, struct ir_op o) {
  if (ir_op_at(m, o)->opcode == IR_ATOMIC)
    *(bool *)user = true;
}

static bool same_in(const struct api_problem *p, const struct api_image *images,
                    unsigned char **first, enum emu_mode mode) {
  for (uint32_t i = 0; i < p->n_args; i++)
    if (images[i].memory && memcmp(images[i].memory, first[i], image_bytes(&images[i])) != 0) {
      API_ERROR(p->file->own.ctx, VERIFY_FAILED,
                "argument `%s` of %s: what the emulator leaves in it depends on its mode: `%s` and "
                "`%s` differ",
                p->args[i].name, p->text, emu_mode_name(EMU_EARLY), emu_mode_name(mode));
      return false;
    }
  return true;
}

enum kiln_status api_emulate(const struct api_problem *p, const struct kiln_variant *v,
                             const struct interp_arg *args, struct api_image *images, bool print,
                             struct arena *a) {
  struct kiln_context *ctx = p->file->own.ctx;
  struct emu_options opt = {.domain = INTERP_ROUNDED,
                            .max_steps = ctx->opt.max_steps,
                            .interrupted = api_interrupted,
                            .user = ctx};
  struct api_mark before = api_mark(ctx);
  unsigned char **start = copy_images(p, images, a), **first = NULL;
  bool depends = false;
  ir_walk(v->tile, v->tile->body, look_for_atomic, &depends);
  for (uint32_t k = 0; k < EMU_RUNS; k++) {
    emu_choose_run(&opt, k, p->seed);
    opt.print = print && k == 0 ? api_print_line : NULL;
    for (uint32_t i = 0; i < p->n_args && k; i++)
      if (images[i].memory)
        memcpy(images[i].memory, start[i], image_bytes(&images[i]));
    if (!emu_run(v->machine, args, p->n_args, &opt, NULL, &ctx->diags, &ctx->mem))
      return api_failure_since(ctx, before);
    if (k == 0)
      first = copy_images(p, images, a);
    else if (!depends && !same_in(p, images, first, opt.mode))
      return KILN_WRONG;
  }
  return KILN_OK;
}
