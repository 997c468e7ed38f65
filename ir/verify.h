/* The verifier for its callers inside ir/: verdicts kept per op, for a listing that shows them. */
#ifndef KILN_IR_VERIFY_H
#define KILN_IR_VERIFY_H

#include "ir/ir.h"

/* A finding. op 0: about the module. */
struct ir_note {
  struct ir_op op;
  const char *text;
};

struct ir_notes {
  struct arena *arena;
  VEC(struct ir_note) list;
};

/* As ir_verify; findings also go to `notes` (NULL: none), at most as many as the sink keeps. */
bool ir_verify_notes(const struct ir_module *m, struct diag_sink *diags, struct ir_notes *notes);

/* print.c: ir_print with `; ^ text` under each op that has a finding. */
void ir_print_notes(const struct ir_module *m, struct ir_print_options opt,
                    const struct ir_notes *notes, struct strbuf *out);

#endif
