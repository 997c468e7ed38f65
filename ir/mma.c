/* See mma.h. */
#include "ir/mma.h"

#include <stddef.h>
#include <string.h>

static const struct ir_mma rows[] = {
#define MMA(id, m, k, acc, a, b) {IR_MMA_##id, "m" #m "n8k" #k, m, k, DT_##acc, DT_##a, DT_##b},
#include "ir/mma.def"
};

enum operands { ANY, F32, FP8 };

static const struct {
  const char *text;
  enum operands operands;
} precs[] = {
#define PREC(id, text, operands) {text, operands},
#include "ir/precs.def"
};

const char ir_prec_words[] = "ieee, tf32, tf32x3, promoted or fast";
_Static_assert(IR_PREC_COUNT == 5, "ir_prec_words names them all");

enum ir_prec ir_prec_find(const char *text) {
  unsigned i = 0;
  while (i < IR_PREC_COUNT && strcmp(precs[i].text, text) != 0)
    i++;
  return (enum ir_prec)i;
}

bool ir_prec_takes(enum ir_prec p, enum dtype operand) {
  switch (precs[p].operands) {
  case ANY: return true;
  case F32: return operand == DT_F32;
  case FP8: return operand == DT_E4M3 || operand == DT_E5M2;
  }
  return false;
}

const char *ir_prec_operands(enum ir_prec p) {
  static const char *const names[] = {
      [ANY] = "any operands", [F32] = "f32 operands", [FP8] = "operands of e4m3 and e5m2"};
  return names[precs[p].operands];
}

const struct ir_mma *ir_mma_find(enum dtype acc, enum dtype a, enum dtype b) {
  for (uint32_t i = 0; i < IR_MMA_COUNT; i++)
    if (rows[i].acc == acc && rows[i].a == a && rows[i].b == b)
      return &rows[i];
  return NULL;
}

uint32_t ir_mma_elems(const struct ir_mma *x, int operand) {
  return (operand == 0 ? x->m * x->k : operand == 1 ? 8 * x->k : 8 * x->m) / 32;
}
