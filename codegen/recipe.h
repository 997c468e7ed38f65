/* Facts of a machine module's launch that passes and the emitter share. */
#ifndef KILN_CODEGEN_RECIPE_H
#define KILN_CODEGEN_RECIPE_H

#include "ir/ir.h"

/* lower_recipe.c: the name of the emitted function. */
const char *cg_entry_name(const struct ir_module *m);
/* What the launch needs of a tensor map resource that verifies, in the recipe's expressions and
 * arena: the argument's dims and strides in the map's order, the rest as the resource says. */
const struct recipe_tmap *cg_recipe_tmap(struct recipe *r, const struct ir_module *m, uint32_t res);

static inline struct recipe_step *cg_kernel_step(const struct ir_module *m) {
  return &m->recipe->steps.at[m->recipe->steps.n - 1];
}

/* pass_place_storage.c: attributes of resources. */
int64_t cg_res_int(const struct ir_res *r, enum ir_attr_key key, int64_t otherwise);
void cg_res_set_int(struct ir_module *m, uint32_t res, enum ir_attr_key key, int64_t value);

#endif
