/* Element values: exact loads, and stores that round once.
 *
 * A load gives the element's exact value (s64 and index beyond 2^53 excepted: use num_load_int). A
 * store rounds the double it is given once, to nearest, ties to even, straight into the element
 * type: never through f32. What happens at the edges is the language's policy, the same for the
 * interpreter, the emulator and (by the emitter's choice of conversions) the GPU:
 *
 *   type        overflow                     infinity     NaN
 *   f64 f32     infinity                     infinity     f32: 0x7FFFFFFF; f64: its bits
 *   f16 bf16    infinity                     infinity     0x7FFF
 *   e4m3        saturates to +-448           +-448        0x7F (no infinity; 0x7F, 0xFF are NaN)
 *   e5m2        saturates to +-57344         +-57344      0x7F
 *   integers    saturate to the type's range the range    0
 *   bool        not zero gives 1             1            1
 *
 * Subnormals are kept everywhere, -0 stays -0 in float types. Loading any NaN pattern gives a quiet
 * NaN; its sign and payload are dropped, except for f64. Packed 4-bit types hold element 2i in the
 * low and 2i+1 in the high half of byte i. All functions assume the default rounding mode. */
#ifndef KILN_BASE_NUM_H
#define KILN_BASE_NUM_H

#include "base/dtype.h"

#include <stddef.h>

/* base: start of the array (aligned for the type); index: element. */
double num_load(enum dtype t, const void *base, int64_t index);
void num_store(enum dtype t, void *base, int64_t index, double value);

/* Integers without a detour: exact for s64 and index. A float element is truncated towards zero and
 * saturated on load (NaN: 0), rounded to nearest even on store; integer stores saturate. */
int64_t num_load_int(enum dtype t, const void *base, int64_t index);
void num_store_int(enum dtype t, void *base, int64_t index, int64_t value);

/* The value that a store followed by a load gives. */
double num_round(enum dtype t, double value);
/* The same within float arithmetic (f32, f64: the value itself). */
float num_round_f32(enum dtype t, float value);
/* tf32 (10 mantissa bits, f32's exponents): to nearest, ties to even (cvt.rn.tf32), and ties away
 * from zero (cvt.rna.tf32, all that sm_80 has). Infinity and NaN stay. */
float num_round_tf32(float value);
float num_round_tf32_away(float value);

/* n elements from `first` on, to or from doubles or floats; as n single calls. */
void num_load_n(enum dtype t, const void *base, int64_t first, size_t n, double *out);
void num_store_n(enum dtype t, void *base, int64_t first, size_t n, const double *values);

/* Bit patterns. */
uint16_t num_f16_bits(double value);
uint16_t num_bf16_bits(double value);
uint8_t num_e4m3_bits(double value);
uint8_t num_e5m2_bits(double value);
double num_f16_value(uint16_t bits);
double num_bf16_value(uint16_t bits);
double num_e4m3_value(uint8_t bits);
double num_e5m2_value(uint8_t bits);

/* Facts: largest finite value (integers: largest value), unit roundoff (half the distance from 1 to
 * the next value; 0 for integers and bool), smallest positive (subnormal) value. */
double num_max(enum dtype t);
double num_min(enum dtype t); /* lowest value: -num_max for floats */
double num_unit(enum dtype t);
double num_tiny(enum dtype t);

#endif
