/* Facts about element types, from dtypes.def; see dtype.h. */
#include "base/dtype.h"

#include "base/check.h"

#include <string.h>

static const struct {
  const char *name;
  uint8_t bits;
  enum dtype_kind kind;
  uint8_t dl_code, dl_bits;
} info[] = {
#define DTYPE(id, text, bits, kind, dl_code, dl_bits) {text, bits, kind, dl_code, dl_bits},
#include "base/dtypes.def"
};

const char *dtype_name(enum dtype t) {
  KILN_ASSERT(t < DT_COUNT);
  return info[t].name;
}

unsigned dtype_bits(enum dtype t) {
  KILN_ASSERT(t < DT_COUNT);
  return info[t].bits;
}

int64_t dtype_bytes(enum dtype t, int64_t n) {
  unsigned bits = dtype_bits(t);
  return bits == 4 ? n / 2 + n % 2 : n * (int64_t)(bits / 8);
}

enum dtype_kind dtype_kind(enum dtype t) {
  KILN_ASSERT(t < DT_COUNT);
  return info[t].kind;
}

bool dtype_find(const char *name, enum dtype *out) {
  for (int i = 0; i < DT_COUNT; i++)
    if (strcmp(info[i].name, name) == 0) {
      *out = (enum dtype)i;
      return true;
    }
  return false;
}

uint8_t dtype_dl_code(enum dtype t) {
  KILN_ASSERT(t < DT_COUNT);
  return info[t].dl_code;
}

uint8_t dtype_dl_bits(enum dtype t) {
  KILN_ASSERT(t < DT_COUNT);
  return info[t].dl_bits;
}
