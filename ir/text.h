/* Lexical conventions that the printer and the parser share; see docs/ir.md for the grammar. */
#ifndef KILN_IR_TEXT_H
#define KILN_IR_TEXT_H

#include "ir/ir.h"

/* Levels of nesting shown by indentation; deeper lines stay at this one, so that the text of a deep
 * module does not grow with the square of its depth. */
#define IR_TEXT_MAX_INDENT 32

/* [A-Za-z_][A-Za-z0-9_.]* : written bare; any other name is quoted. */
bool ir_is_word(const char *s, size_t n);
/* May c stand in a word, after its first byte? */
bool ir_is_word_byte(char c);
/* In double quotes; bytes that are not printable UTF-8 become \xNN. */
void ir_put_quoted(struct strbuf *out, const char *s);
void ir_put_name(struct strbuf *out, const char *s);
/* Reads back to the same bits; other NaNs than the canonical one are `nan:0x<bits>`. */
void ir_put_double(struct strbuf *out, double x);

/* The word between the blocks of an op that owns several: `} else {`. */
const char *ir_block_joint(enum ir_opcode opcode);
/* The dtype that a NUM attribute of an op has: the first result's, without results the first
 * resource's, without either f64. */
enum dtype ir_num_dtype(uint32_t n_out, const struct ir_type *first_out, uint32_t n_res,
                        const struct ir_res *first_res);

#endif
