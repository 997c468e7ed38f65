/* See help_ref.h. */
#include "help_ref.h"

#include <math.h>
#include <string.h>

struct format {
  int man, exp;
  bool has_inf, saturates;
};

static bool find_format(enum dtype t, struct format *f) {
  switch ((int)t) {
  case DT_F16: *f = (struct format){10, 5, true, false}; return true;
  case DT_BF16: *f = (struct format){7, 8, true, false}; return true;
  case DT_E4M3: *f = (struct format){3, 4, false, true}; return true;
  case DT_E5M2: *f = (struct format){2, 5, true, true}; return true;
  default: return false;
  }
}

/* Sign, exponent and mantissa fields after the textbook. e4m3 has no infinity: its top exponent is
 * an ordinary one but for the mantissa of all ones. */
static long double decode(struct format f, unsigned bits) {
  int man = (int)(bits & ((1u << f.man) - 1)), exp = (int)(bits >> f.man & ((1u << f.exp) - 1));
  long double sign = bits >> (f.man + f.exp) & 1 ? -1.0L : 1.0L;
  int bias = (1 << (f.exp - 1)) - 1, top = (1 << f.exp) - 1;
  if (exp == top && f.has_inf)
    return man ? (long double)NAN : sign * (long double)INFINITY;
  if (exp == top && man == (1 << f.man) - 1)
    return (long double)NAN;
  if (exp == 0)
    return sign * ldexpl((long double)man, 1 - bias - f.man);
  return sign * ldexpl((long double)(man + (1 << f.man)), exp - bias - f.man);
}

/* The bits whose magnitude is nearest to |x|, by bisection over the ordered list of bit
 * patterns. */
static unsigned encode(struct format f, long double x) {
  unsigned sign = signbit(x) ? 1u << (f.man + f.exp) : 0;
  unsigned nan_bits = (1u << (f.man + f.exp)) - 1;
  unsigned inf_bits = ((1u << f.exp) - 1) << f.man;
  unsigned max_bits = f.has_inf ? inf_bits - 1 : nan_bits - 1;
  if (isnan(x))
    return nan_bits;
  long double m = fabsl(x), max = decode(f, max_bits);
  if (m >= max) { /* the next value would be one step further; a tie goes to it, it is even */
    long double step = max - decode(f, max_bits - 1);
    if (m >= max + step / 2 && !f.saturates)
      return sign | inf_bits;
    return sign | max_bits;
  }
  unsigned lo = 0, hi = max_bits; /* value(lo) <= m < value(hi) */
  while (hi - lo > 1) {
    unsigned mid = (lo + hi) / 2;
    if (decode(f, mid) <= m)
      lo = mid;
    else
      hi = mid;
  }
  long double down = m - decode(f, lo), up = decode(f, hi) - m;
  return sign | (down < up || (down == up && lo % 2 == 0) ? lo : hi);
}

static uint64_t get_bits(enum dtype t, const void *data, int64_t i) {
  unsigned bits = dtype_bits(t);
  const unsigned char *p = data;
  if (bits == 4)
    return (unsigned)p[i / 2] >> (i % 2 ? 4 : 0) & 15u;
  uint64_t v = 0;
  memcpy(&v, p + i * (int64_t)(bits / 8), bits / 8); /* little endian */
  return v;
}

void ref_put_bits(enum dtype t, void *data, int64_t i, uint64_t v) {
  unsigned bits = dtype_bits(t);
  unsigned char *p = data;
  if (bits == 4) {
    unsigned shift = i % 2 ? 4 : 0;
    p[i / 2] = (unsigned char)((p[i / 2] & ~(15u << shift)) | (unsigned)(v & 15) << shift);
    return;
  }
  memcpy(p + i * (int64_t)(bits / 8), &v, bits / 8);
}

int64_t ref_wrap(enum dtype t, uint64_t v) {
  unsigned bits = dtype_bits(t);
  if (bits == 64)
    return (int64_t)v;
  uint64_t size = UINT64_C(1) << bits;
  v %= size;
  if (dtype_kind(t) == DTK_INT && v >= size / 2)
    return (int64_t)v - (int64_t)size;
  return (int64_t)v;
}

long double ref_get(enum dtype t, const void *data, int64_t i) {
  struct format f;
  uint64_t bits = get_bits(t, data, i);
  if (find_format(t, &f))
    return decode(f, (unsigned)bits);
  if (t == DT_F32) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return (long double)x;
  }
  if (t == DT_F64) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return (long double)x;
  }
  if (t == DT_BOOL)
    return bits != 0;
  return (long double)ref_wrap(t, bits);
}

void ref_put(enum dtype t, void *data, int64_t i, long double x) {
  struct format f;
  if (find_format(t, &f)) {
    ref_put_bits(t, data, i, encode(f, x));
  } else if (t == DT_F32) {
    float y = (float)x;
    memcpy((float *)data + i, &y, sizeof y);
  } else if (t == DT_F64) {
    double y = (double)x;
    memcpy((double *)data + i, &y, sizeof y);
  } else if (t == DT_BOOL) {
    ref_put_bits(t, data, i, x != 0);
  } else {
    unsigned bits = dtype_bits(t);
    bool is_signed = dtype_kind(t) == DTK_INT;
    long double lo = is_signed ? -ldexpl(1, (int)bits - 1) : 0;
    long double hi = ldexpl(1, (int)bits - (is_signed ? 1 : 0)) - 1;
    x = isnan(x) ? 0 : rintl(x);
    x = x < lo ? lo : x > hi ? hi : x;
    ref_put_bits(t, data, i, (uint64_t)(int64_t)x);
  }
}

long double ref_round(enum dtype t, long double x) {
  uint64_t cell = 0;
  ref_put(t, &cell, 0, x);
  return ref_get(t, &cell, 0);
}

bool ref_same(long double a, long double b) {
  if (isnan(a) || isnan(b))
    return isnan(a) && isnan(b);
  return a == b && signbit(a) == signbit(b);
}

uint64_t ref_random(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}
