/* Types of values; see ir.h. */
#include "base/check.h"
#include "ir/ir.h"

struct ir_type ir_tile(enum dtype t, uint32_t rank, const int64_t *dim) {
  KILN_ASSERT(rank <= IR_MAX_RANK);
  struct ir_type r = {.kind = IR_TILE, .dtype = (uint8_t)t, .rank = (uint8_t)rank};
  for (uint32_t i = 0; i < rank; i++)
    r.dim[i] = dim[i];
  return r;
}

bool ir_shape_eq(struct ir_type a, struct ir_type b) {
  if (a.kind != b.kind || a.rank != b.rank)
    return false;
  for (uint32_t i = 0; i < a.rank; i++)
    if (a.dim[i] != b.dim[i])
      return false;
  return true;
}

bool ir_type_eq(struct ir_type a, struct ir_type b) {
  return a.dtype == b.dtype && ir_shape_eq(a, b);
}

/* Saturates: a count past int64 is as wrong as any other that is too large. A dim known only at
 * launch makes the count unknown: IR_DYN. */
int64_t ir_elems(struct ir_type t) {
  int64_t n = 1;
  for (uint32_t i = 0; i < t.rank; i++) {
    if (t.dim[i] == IR_DYN)
      return IR_DYN;
    if (__builtin_mul_overflow(n, t.dim[i], &n))
      return INT64_MAX;
  }
  return n;
}

void ir_type_describe(struct ir_type t, struct strbuf *out) {
  if (t.kind == IR_NONE) {
    sb_puts(out, "none");
    return;
  }
  sb_puts(out, t.kind == IR_VIEW ? "view " : t.kind == IR_PTR ? "ptr " : "");
  sb_puts(out, dtype_name((enum dtype)t.dtype));
  if (t.kind != IR_TILE && t.kind != IR_VIEW)
    return;
  sb_putc(out, '(');
  for (uint32_t i = 0; i < t.rank; i++) {
    if (i)
      sb_putc(out, ',');
    if (t.dim[i] == IR_DYN)
      sb_putc(out, '?');
    else
      sb_printf(out, "%lld", (long long)t.dim[i]);
  }
  sb_putc(out, ')');
}
