/* Conversions between element types and double; see num.h for the policy.
 *
 * All narrow float types go through one pair of functions over a small description of the format,
 * working on the bits of the double, so that rounding happens once and does not depend on the
 * floating-point environment. */
#include "base/num.h"

#include "base/check.h"

#include <math.h>
#include <string.h>

struct float_format {
  int man_bits, exp_bits;
  bool saturates;    /* overflow and infinity give `max` */
  uint32_t max_bits; /* largest finite value */
  uint32_t inf_bits; /* infinity, where !saturates */
  uint32_t nan_bits; /* the NaN that stores write */
};

static const struct float_format format_f16 = {10, 5, false, 0x7bff, 0x7c00, 0x7fff};
static const struct float_format format_bf16 = {7, 8, false, 0x7f7f, 0x7f80, 0x7fff};
static const struct float_format format_e4m3 = {3, 4, true, 0x7e, 0, 0x7f};
static const struct float_format format_e5m2 = {2, 5, true, 0x7b, 0, 0x7f};

static uint64_t double_bits(double x) {
  uint64_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

static double bits_double(uint64_t u) {
  double x;
  memcpy(&x, &u, sizeof x);
  return x;
}

/* m >> shift, rounded to nearest, ties to even. m < 2^53. */
static uint64_t shift_even(uint64_t m, int shift) {
  if (shift <= 0)
    return m << -shift;
  if (shift > 54)
    return 0;
  uint64_t whole = m >> shift;
  uint64_t rest = m & ((UINT64_C(1) << shift) - 1);
  uint64_t half = UINT64_C(1) << (shift - 1);
  return whole + (rest > half || (rest == half && (whole & 1)));
}

static uint32_t encode(const struct float_format *f, double x) {
  uint64_t u = double_bits(x);
  uint32_t sign = (uint32_t)(u >> 63) << (f->man_bits + f->exp_bits);
  int exp = (int)(u >> 52 & 0x7ff);
  uint64_t man = u & ((UINT64_C(1) << 52) - 1);
  if (exp == 0x7ff) {
    if (man)
      return f->nan_bits;
    return sign | (f->saturates ? f->max_bits : f->inf_bits);
  }
  int bias = (1 << (f->exp_bits - 1)) - 1;
  /* Value = man * 2^(exp - 1075) with the hidden bit in man. A double subnormal is far below half
   * the smallest value of every narrow format: it gives 0 like any other tiny value. */
  if (exp == 0)
    return sign;
  man |= UINT64_C(1) << 52;
  int e = exp - 1023 + bias; /* biased exponent in the target, <= 0: subnormal */
  int shift = 52 - f->man_bits + (e < 1 ? 1 - e : 0);
  uint64_t m = shift_even(man, shift);
  /* A normal result has its hidden bit at man_bits: adding the fields lets a carry out of the
   * mantissa, or out of the subnormals, raise the exponent by itself. */
  uint64_t bits = e < 1 ? m : ((uint64_t)(e - 1) << f->man_bits) + m;
  if (bits > f->max_bits)
    return sign | (f->saturates ? f->max_bits : f->inf_bits);
  return sign | (uint32_t)bits;
}

static double decode(const struct float_format *f, uint32_t bits) {
  int bias = (1 << (f->exp_bits - 1)) - 1;
  uint32_t sign = bits >> (f->man_bits + f->exp_bits) & 1;
  uint32_t magnitude = bits & ((UINT32_C(1) << (f->man_bits + f->exp_bits)) - 1);
  int e = (int)(magnitude >> f->man_bits);
  uint32_t man = magnitude & ((UINT32_C(1) << f->man_bits) - 1);
  if (magnitude > f->max_bits) {
    bool infinite =
        f->max_bits + 1 == (((UINT32_C(1) << f->exp_bits) - 1) << f->man_bits) && man == 0;
    return infinite ? (sign ? -(double)INFINITY : (double)INFINITY) : (double)NAN;
  }
  uint64_t s = (uint64_t)sign << 63;
  if (e == 0) {
    double v = ldexp((double)man, 1 - bias - f->man_bits);
    return sign ? -v : v;
  }
  return bits_double(s | (uint64_t)(e - bias + 1023) << 52 | (uint64_t)man << (52 - f->man_bits));
}

uint16_t num_f16_bits(double value) {
  return (uint16_t)encode(&format_f16, value);
}
uint16_t num_bf16_bits(double value) {
  return (uint16_t)encode(&format_bf16, value);
}
uint8_t num_e4m3_bits(double value) {
  return (uint8_t)encode(&format_e4m3, value);
}
uint8_t num_e5m2_bits(double value) {
  return (uint8_t)encode(&format_e5m2, value);
}
double num_f16_value(uint16_t bits) {
  return decode(&format_f16, bits);
}
double num_bf16_value(uint16_t bits) {
  return decode(&format_bf16, bits);
}
double num_e4m3_value(uint8_t bits) {
  return decode(&format_e4m3, bits);
}
double num_e5m2_value(uint8_t bits) {
  return decode(&format_e5m2, bits);
}

static float canonical_f32(float x) {
  if (!isnan(x))
    return x;
  uint32_t u = 0x7fffffff;
  memcpy(&x, &u, sizeof x);
  return x;
}

static int64_t clamp_int(int64_t v, int64_t lo, int64_t hi) {
  return v < lo ? lo : v > hi ? hi : v;
}

/* Rounded to nearest even, saturated to int64; NaN: 0. */
static int64_t double_to_int(double x) {
  if (isnan(x))
    return 0;
  x = rint(x);
  if (x >= 0x1p63)
    return INT64_MAX;
  if (x < -0x1p63)
    return INT64_MIN;
  return (int64_t)x;
}

/* Narrow types are read and written bytewise through memcpy: views of user memory carry no
 * alignment promise beyond the element's, and types differ from what the caller declared. */
#define AT(type) ((const unsigned char *)base + (size_t)index * sizeof(type))
#define LOAD(type, var)                                                                            \
  type var;                                                                                        \
  memcpy(&var, AT(type), sizeof var)
#define STORE(type, v)                                                                             \
  do {                                                                                             \
    type store_value = (v);                                                                        \
    memcpy((unsigned char *)base + (size_t)index * sizeof(type), &store_value,                     \
           sizeof store_value);                                                                    \
  } while (0)

static unsigned nibble(const void *base, int64_t index) {
  unsigned byte = ((const unsigned char *)base)[index / 2];
  return index % 2 ? byte >> 4 : byte & 15;
}

static void put_nibble(void *base, int64_t index, int64_t v) {
  unsigned char *p = (unsigned char *)base + index / 2;
  unsigned bits = (unsigned)v & 15;
  *p = (unsigned char)(index % 2 ? (*p & 0x0fu) | bits << 4 : (*p & 0xf0u) | bits);
}

/* The integer types' element; false for float types. */
static bool load_integer(enum dtype t, const void *base, int64_t index, int64_t *out) {
  switch (t) {
  case DT_BOOL: *out = ((const unsigned char *)base)[index] != 0; return true;
  case DT_S4: {
    unsigned n = nibble(base, index);
    *out = (int64_t)n - (n & 8 ? 16 : 0);
    return true;
  }
  case DT_U4: *out = (int64_t)nibble(base, index); return true;
  case DT_S8: {
    LOAD(int8_t, v);
    *out = v;
    return true;
  }
  case DT_U8: *out = ((const unsigned char *)base)[index]; return true;
  case DT_S32: {
    LOAD(int32_t, v);
    *out = v;
    return true;
  }
  case DT_INDEX:
  case DT_S64: {
    LOAD(int64_t, v);
    *out = v;
    return true;
  }
  case DT_F16:
  case DT_BF16:
  case DT_E4M3:
  case DT_E5M2:
  case DT_F32:
  case DT_F64:
  case DT_COUNT: break;
  }
  return false;
}

/* As load_integer; saturates. */
static bool store_integer(enum dtype t, void *base, int64_t index, int64_t v) {
  switch (t) {
  case DT_BOOL: ((unsigned char *)base)[index] = v != 0; return true;
  case DT_S4: put_nibble(base, index, clamp_int(v, -8, 7)); return true;
  case DT_U4: put_nibble(base, index, clamp_int(v, 0, 15)); return true;
  case DT_S8: STORE(int8_t, (int8_t)clamp_int(v, INT8_MIN, INT8_MAX)); return true;
  case DT_U8: STORE(uint8_t, (uint8_t)clamp_int(v, 0, UINT8_MAX)); return true;
  case DT_S32: STORE(int32_t, (int32_t)clamp_int(v, INT32_MIN, INT32_MAX)); return true;
  case DT_INDEX:
  case DT_S64: STORE(int64_t, v); return true;
  case DT_F16:
  case DT_BF16:
  case DT_E4M3:
  case DT_E5M2:
  case DT_F32:
  case DT_F64:
  case DT_COUNT: break;
  }
  return false;
}

double num_load(enum dtype t, const void *base, int64_t index) {
  switch (t) {
  case DT_F16: {
    LOAD(uint16_t, v);
    return num_f16_value(v);
  }
  case DT_BF16: {
    LOAD(uint16_t, v);
    return num_bf16_value(v);
  }
  case DT_E4M3: return num_e4m3_value(((const unsigned char *)base)[index]);
  case DT_E5M2: return num_e5m2_value(((const unsigned char *)base)[index]);
  case DT_F32: {
    LOAD(float, v);
    return isnan(v) ? (double)NAN : (double)v;
  }
  case DT_F64: {
    LOAD(double, v);
    return v;
  }
  case DT_BOOL:
  case DT_INDEX:
  case DT_S4:
  case DT_U4:
  case DT_S8:
  case DT_U8:
  case DT_S32:
  case DT_S64: {
    int64_t v = 0;
    (void)load_integer(t, base, index, &v);
    return (double)v;
  }
  case DT_COUNT: break;
  }
  KILN_ASSERT(t < DT_COUNT);
  return 0;
}

void num_store(enum dtype t, void *base, int64_t index, double value) {
  switch (t) {
  case DT_F16: STORE(uint16_t, num_f16_bits(value)); return;
  case DT_BF16: STORE(uint16_t, num_bf16_bits(value)); return;
  case DT_E4M3: ((unsigned char *)base)[index] = num_e4m3_bits(value); return;
  case DT_E5M2: ((unsigned char *)base)[index] = num_e5m2_bits(value); return;
  case DT_F32: STORE(float, canonical_f32((float)value)); return;
  case DT_F64: STORE(double, value); return;
  case DT_BOOL: ((unsigned char *)base)[index] = value != 0; return;
  case DT_INDEX:
  case DT_S4:
  case DT_U4:
  case DT_S8:
  case DT_U8:
  case DT_S32:
  case DT_S64: (void)store_integer(t, base, index, double_to_int(value)); return;
  case DT_COUNT: break;
  }
  KILN_ASSERT(t < DT_COUNT);
}

int64_t num_load_int(enum dtype t, const void *base, int64_t index) {
  int64_t v = 0;
  if (load_integer(t, base, index, &v))
    return v;
  return double_to_int(trunc(num_load(t, base, index)));
}

void num_store_int(enum dtype t, void *base, int64_t index, int64_t value) {
  if (store_integer(t, base, index, value))
    return;
  if (t == DT_F32) { /* straight from the integer: (double) could round first */
    STORE(float, (float)value);
    return;
  }
  /* For the narrow types an int64 that a double cannot hold may sit near a tie; keep the sticky
   * bit: round to odd into 53 bits, then once more to the narrow type, is correct rounding. */
  double d = (double)value;
  if (t != DT_F64 && (value > (INT64_C(1) << 53) || value < -(INT64_C(1) << 53))) {
    bool neg = value < 0;
    uint64_t m = neg ? 0 - (uint64_t)value : (uint64_t)value;
    int shift = 11 - __builtin_clzll(m);
    if (shift > 0) {
      uint64_t kept = m >> shift;
      if (m & ((UINT64_C(1) << shift) - 1))
        kept |= 1;
      d = ldexp((double)kept, shift);
      if (neg)
        d = -d;
    }
  }
  num_store(t, base, index, d);
}

double num_round(enum dtype t, double value) {
  double cell;
  num_store(t, &cell, 0, value);
  return num_load(t, &cell, 0);
}

float num_round_f32(enum dtype t, float value) {
  if (t == DT_F32 || t == DT_F64)
    return value;
  if (t == DT_BF16) {
    /* The interpreter's hottest conversion: bf16 is the upper half of an f32. */
    uint32_t u;
    memcpy(&u, &value, sizeof u);
    if ((u & 0x7fffffff) > 0x7f800000)
      return NAN;
    u = (u + 0x7fff + (u >> 16 & 1)) & 0xffff0000;
    memcpy(&value, &u, sizeof u);
    return value;
  }
  return (float)num_round(t, (double)value);
}

float num_round_tf32(float value) {
  uint32_t u;
  memcpy(&u, &value, sizeof u);
  if ((u & 0x7f800000) == 0x7f800000)
    return value;
  u = (u + 0xfff + (u >> 13 & 1)) & ~UINT32_C(0x1fff);
  memcpy(&value, &u, sizeof u);
  return value;
}

float num_round_tf32_away(float value) {
  uint32_t u;
  memcpy(&u, &value, sizeof u);
  if ((u & 0x7f800000) == 0x7f800000)
    return value;
  u = (u + 0x1000) & ~UINT32_C(0x1fff);
  memcpy(&value, &u, sizeof u);
  return value;
}

void num_load_n(enum dtype t, const void *base, int64_t first, size_t n, double *out) {
  for (size_t i = 0; i < n; i++)
    out[i] = num_load(t, base, first + (int64_t)i);
}

void num_store_n(enum dtype t, void *base, int64_t first, size_t n, const double *values) {
  for (size_t i = 0; i < n; i++)
    num_store(t, base, first + (int64_t)i, values[i]);
}

/* One row per type, in the order of dtypes.def: max, min, unit roundoff, smallest positive. */
static const struct {
  enum dtype t;
  double max, min, unit, tiny;
} facts[] = {
    {DT_BOOL, 1, 0, 0, 1},
    {DT_INDEX, 0x1p63, -0x1p63, 0, 1},
    {DT_S4, 7, -8, 0, 1},
    {DT_U4, 15, 0, 0, 1},
    {DT_S8, 127, -128, 0, 1},
    {DT_U8, 255, 0, 0, 1},
    {DT_S32, 2147483647, -2147483648.0, 0, 1},
    {DT_S64, 0x1p63, -0x1p63, 0, 1},
    {DT_F16, 65504, -65504, 0x1p-11, 0x1p-24},
    {DT_BF16, 0x1.fep127, -0x1.fep127, 0x1p-8, 0x1p-133},
    {DT_E4M3, 448, -448, 0x1p-4, 0x1p-9},
    {DT_E5M2, 57344, -57344, 0x1p-3, 0x1p-16},
    {DT_F32, 0x1.fffffep127, -0x1.fffffep127, 0x1p-24, 0x1p-149},
    {DT_F64, 0x1.fffffffffffffp1023, -0x1.fffffffffffffp1023, 0x1p-53, 0x1p-1074},
};
_Static_assert(sizeof facts / sizeof facts[0] == DT_COUNT, "one row per dtype");

double num_max(enum dtype t) {
  KILN_ASSERT(facts[t].t == t);
  return facts[t].max;
}
double num_min(enum dtype t) {
  KILN_ASSERT(facts[t].t == t);
  return facts[t].min;
}
double num_unit(enum dtype t) {
  KILN_ASSERT(facts[t].t == t);
  return facts[t].unit;
}
double num_tiny(enum dtype t) {
  KILN_ASSERT(facts[t].t == t);
  return facts[t].tiny;
}
