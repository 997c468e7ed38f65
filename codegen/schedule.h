/* Knobs as the passes see them: entries "schedule.<knob>" of the module's config, so that they are
 * printed, parsed and part of every key. */
#ifndef KILN_CODEGEN_SCHEDULE_H
#define KILN_CODEGEN_SCHEDULE_H

#include "codegen/cg.h"

/* How the keys of knobs and pins begin in a module's config. */
#define CG_SCHEDULE_PREFIX "schedule."

const char *cg_knob_name(enum cg_knob k);
/* CG_AUTO where it is not set. */
int64_t cg_knob_get(struct ir_module *m, enum cg_knob k);
void cg_knob_put(struct ir_module *m, enum cg_knob k, int64_t value);
/* Did the caller fix this field of the op of this label? */
bool cg_is_pinned(const struct ir_module *m, const char *label, const char *field);
void cg_pin_put(struct ir_module *m, const struct cg_pin *pin);

#endif
