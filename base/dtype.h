/* Element types: names, sizes and kinds, from dtypes.def. Conversions are in base/num.h. */
#ifndef KILN_BASE_DTYPE_H
#define KILN_BASE_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

enum dtype {
#define DTYPE(id, text, bits, kind, dl_code, dl_bits) DT_##id,
#include "base/dtypes.def"
  DT_COUNT
};

enum dtype_kind { DTK_BOOL, DTK_INT, DTK_UINT, DTK_FLOAT };

const char *dtype_name(enum dtype t);
unsigned dtype_bits(enum dtype t);
/* Bytes of n elements (packed 4-bit types: two to a byte, n rounded up to even). */
int64_t dtype_bytes(enum dtype t, int64_t n);
enum dtype_kind dtype_kind(enum dtype t);
static inline bool dtype_is_float(enum dtype t) {
  return dtype_kind(t) == DTK_FLOAT;
}
static inline bool dtype_is_int(enum dtype t) {
  return dtype_kind(t) == DTK_INT || dtype_kind(t) == DTK_UINT;
}
bool dtype_find(const char *name, enum dtype *out);
/* DLPack's code and bits of the type. */
uint8_t dtype_dl_code(enum dtype t);
uint8_t dtype_dl_bits(enum dtype t);

#endif
