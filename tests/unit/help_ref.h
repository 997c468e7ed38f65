/* Reference values of element types for tests, sharing no code with base/num.c: narrow floats are
 * decoded by formula and rounded by searching the list of all their values. */
#ifndef KILN_TESTS_HELP_REF_H
#define KILN_TESTS_HELP_REF_H

#include "base/dtype.h"

#include <stdbool.h>
#include <stdint.h>

/* Exact element i of an array; long double holds every value of every dtype (x86: 64 bits). */
long double ref_get(enum dtype t, const void *data, int64_t i);
/* Rounds to nearest even; overflow and NaN as the policy in base/num.h says. */
void ref_put(enum dtype t, void *data, int64_t i, long double x);
/* What get after put gives. */
long double ref_round(enum dtype t, long double x);
/* Raw bits of element i (low bits of the word). */
void ref_put_bits(enum dtype t, void *data, int64_t i, uint64_t bits);
/* v modulo 2^width, as the type reads it. */
int64_t ref_wrap(enum dtype t, uint64_t v);
/* Both NaN, or equal with equal signs. */
bool ref_same(long double a, long double b);

/* splitmix64. */
uint64_t ref_random(uint64_t *state);

#endif
