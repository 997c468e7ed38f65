/* Random modules for tests, the same for the same seed.
 *
 * gen_ir: tile modules that are valid by construction and that the interpreter can run: loops are
 * bounded, indices stay small, asserts hold. What is computed ends in stores, so that passes cannot
 * remove all of it.
 * gen_ir_text: modules of any stage that only the text format must bear: every op of the table with
 * every attribute, any types, locations, schedules, resources, params. Not valid. */
#ifndef KILN_TESTS_HELP_GEN_IR_H
#define KILN_TESTS_HELP_GEN_IR_H

#include "ir/ir.h"

/* Smooth modules: every float is a polynomial of the inputs, in f32 and f64 (or bf16 too), and no
 * integer, mask or index comes from a float. */
enum gen_smooth { GEN_ANY, GEN_SMOOTH_F32, GEN_SMOOTH_BF16 };

struct gen_ir {
  uint64_t seed;
  uint32_t n_ops;     /* about so many */
  uint32_t max_depth; /* of nested blocks */
  /* Ops that may be made for their own sake (NULL: all); constants, casts, loads and stores come
   * with the others. */
  bool (*allowed)(enum ir_opcode o);
  enum gen_smooth smooth;
  bool plain_dots; /* no dot starts at a constant zero: see rule 4 of pass_canonicalise.c */
  bool exact_dots; /* dots of small whole numbers, if memory holds such: any order, same bits */
  /* The order in which a scatter or an atomic takes its elements does not show: a scatter writes
   * one value, an atomic gives nothing that is read, and rounds nothing. */
  bool any_order;
  /* Nothing constant goes through loops and branches: the algebraic domain folds what is constant
   * as the text stands, passes also what turns out to be. */
  bool varying;
  uint32_t count[IR_OPCODE_COUNT]; /* out: ops made, added up over calls */
};

struct ir_module *gen_ir(struct arena *a, struct gen_ir *g);
struct ir_module *gen_ir_text(struct arena *a, struct gen_ir *g, enum ir_stage stage);

/* A uniform number below n. */
uint64_t gen_below(uint64_t *state, uint64_t n);

#endif
