/* Names and kinds of attribute keys and resource kinds: what the printer, the parser and the
 * verifier need of attrs.def and res_kinds.def. Ops themselves: ir_info, ir_find_opcode. */
#ifndef KILN_IR_TABLE_H
#define KILN_IR_TABLE_H

#include "ir/ir.h"

const char *ir_attr_name(enum ir_attr_key key);
enum ir_attr_kind ir_attr_kind_of(enum ir_attr_key key);
bool ir_find_attr(const char *name, size_t n, enum ir_attr_key *out);
const char *ir_res_kind_name(enum ir_res_kind kind);
bool ir_find_res_kind(const char *name, size_t n, enum ir_res_kind *out);

#endif
