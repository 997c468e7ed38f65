/* The first element of an output that differs: bit for bit, or by the error policy. */
#include "api/diff.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_unwritten(const struct api_arg *arg, enum dtype held, const void *data, int64_t i) {
  size_t size = dtype_bits(held) / 8;
  const unsigned char *p = (const unsigned char *)data + (size_t)i * size;
  if (arg->kind != IR_ARG_OUT || (dtype_bits(held) < 32 && !dtype_is_float(held)))
    return false; /* too likely a value */
  for (size_t k = 0; k < size; k++)
    if (p[k] != rt_poison_byte(arg->dtype))
      return false;
  return true;
}

static void put_value(const struct diff *d, const struct api_arg *arg, const void *data, int64_t i,
                      char out[static 40]) {
  enum dtype held = api_dense_dtype(arg, d->domain);
  if (is_unwritten(arg, held, data, i))
    snprintf(out, 40, "not written");
  else if (held == arg->dtype && dtype_is_float(held)) {
    double x = num_load(held, data, i);
    snprintf(out, 40, "%.*g", held == DT_F64 ? 17 : 9, isnan(x) ? (double)NAN : x);
  } else {
    int64_t x = num_load_int(held, data, i);
    if (held != arg->dtype && (x == INTERP_NAN || x == INTERP_MINUS_INF || x == INTERP_PLUS_INF))
      snprintf(out, 40, "%s", x == INTERP_NAN ? "nan" : x == INTERP_PLUS_INF ? "inf" : "-inf");
    else
      snprintf(out, 40, "%lld", (long long)x);
  }
}

/* The number of a float among the values of its type, in order: both zeros are 0. */
static int64_t rank_of(enum dtype t, const void *data, int64_t i) {
  uint64_t bits = 0;
  unsigned width = dtype_bits(t);
  memcpy(&bits, (const char *)data + i * (int64_t)(width / 8), width / 8);
  uint64_t sign = UINT64_C(1) << (width - 1), size = bits & (sign - 1);
  return bits & sign ? -(int64_t)size : (int64_t)size;
}

static double ulps_between(enum dtype t, const void *x, const void *y, int64_t i) {
  if (!dtype_is_float(t) || !isfinite(num_load(t, x, i)) || !isfinite(num_load(t, y, i)))
    return -1;
  return fabs((double)rank_of(t, x, i) - (double)rank_of(t, y, i));
}

static void describe(const struct diff *d, const struct api_arg *arg, const void *want,
                     const void *got, struct diff_element *at) {
  int64_t left = at->number;
  for (uint32_t k = arg->rank; k-- > 0; left /= arg->dim[k])
    at->coord[k] = left % arg->dim[k];
  at->n_elements = api_elements(arg);
  put_value(d, arg, want, at->number, at->want);
  put_value(d, arg, got, at->number, at->got);
  enum dtype held = api_dense_dtype(arg, d->domain);
  at->ulps = held == arg->dtype ? ulps_between(held, want, got, at->number) : -1;
}

/* By the error policy: against double precision, the interpreter being the baseline. */
static bool passes(const struct diff *d, const struct api_arg *arg, const double *exact,
                   const void *want, const void *got, struct diff_element *at) {
  int64_t n = api_elements(arg), cols = arg->rank ? arg->dim[arg->rank - 1] : 1;
  double *base = ARENA_ARRAY(d->a, double, n + 1);
  num_load_n(arg->dtype, want, 0, (size_t)n, base);
  struct rt_verify v = {.dtype = arg->dtype,
                        .rows = cols ? n / cols : 0,
                        .cols = cols,
                        .out = got,
                        .out_stride = {cols, 1},
                        .ref = exact,
                        .base = base};
  struct rt_verdict verdict;
  rt_verify(&v, &verdict);
  if (verdict.passed)
    return true;
  struct strbuf why = {.arena = d->a};
  verdict.row = verdict.row < 0 ? 0 : verdict.row;
  verdict.col = verdict.col < 0 ? 0 : verdict.col;
  verdict.place = "the element";
  rt_verdict_text(&verdict, &why);
  at->number = verdict.row * cols + verdict.col;
  at->n_differ = verdict.n_wrong;
  snprintf(at->rule, sizeof at->rule, "%s", sb_str(&why));
  return false;
}

bool diff_compare_arg(const struct diff *d, const struct api_arg *arg, uint32_t i, const void *want,
                      const double *exact, const void *got, struct diff_element *at) {
  *at = (struct diff_element){.arg = i, .number = -1};
  if (d->by_policy) {
    if (passes(d, arg, exact, want, got, at))
      return true;
  } else {
    for (int64_t e = 0, n = api_elements(arg); e < n; e++)
      if (!api_dense_same(arg, d->domain, want, got, e)) {
        at->number = at->number < 0 ? e : at->number;
        at->n_differ++;
      }
    if (at->number < 0)
      return true;
  }
  describe(d, arg, want, got, at);
  return false;
}

bool diff_compare(const struct diff *d, const struct diff_values *want, void **got,
                  struct diff_element *at) {
  for (uint32_t i = 0; i < d->p.n_args; i++)
    if (api_is_written(&d->p.args[i]) &&
        !diff_compare_arg(d, &d->p.args[i], i, want->bits[i], want->exact[i], got[i], at))
      return false;
  return true;
}
