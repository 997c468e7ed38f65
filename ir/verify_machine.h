/* The verifier's second half for machine modules (verify_machine.c); verify.c calls it. */
#ifndef KILN_IR_VERIFY_MACHINE_H
#define KILN_IR_VERIFY_MACHINE_H

#include "ir/ir.h"

/* Roles, resources and parameters; clears *ok after reporting. Ops need not be valid. */
void ir_check_machine(const struct ir_module *m, struct diag_sink *diags, bool *ok);
/* No access to a fragment that a wgmma in flight has; of modules that are valid otherwise. */
void ir_check_in_flight(const struct ir_module *m, struct diag_sink *diags, bool *ok);

#endif
