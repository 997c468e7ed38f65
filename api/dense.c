/* Dense arrays of arguments: row-major elements of the argument's dtype or, of floats in the
 * algebraic domain, payloads; and the memory with the case's strides that machine code works on. */
#include "api/api.h"

#include <math.h>
#include <string.h>

static bool holds_payloads(const struct api_arg *arg, enum interp_domain domain) {
  return domain == INTERP_ALGEBRAIC && dtype_is_float(arg->dtype);
}

enum dtype api_dense_dtype(const struct api_arg *arg, enum interp_domain domain) {
  return holds_payloads(arg, domain) ? DT_S64 : arg->dtype;
}

size_t api_dense_bytes(const struct api_arg *arg, enum interp_domain domain) {
  return (size_t)dtype_bytes(api_dense_dtype(arg, domain), api_elements(arg));
}

void *api_dense_new(const struct api_arg *arg, enum interp_domain domain, const double *input,
                    struct arena *a) {
  size_t bytes = api_dense_bytes(arg, domain);
  int64_t n = api_elements(arg), *p = arena_get(a, bytes + sizeof *p);
  if (!input)
    memset(p, rt_poison_byte(arg->dtype), bytes);
  else if (!holds_payloads(arg, domain))
    num_store_n(arg->dtype, p, 0, (size_t)n, input);
  for (int64_t i = 0; i < n && input && holds_payloads(arg, domain); i++)
    p[i] = interp_embed(input[i]);
  return p;
}

bool api_dense_same(const struct api_arg *arg, enum interp_domain domain, const void *x,
                    const void *y, int64_t i) {
  if (holds_payloads(arg, domain))
    return ((const int64_t *)x)[i] == ((const int64_t *)y)[i];
  if (!dtype_is_float(arg->dtype))
    return num_load_int(arg->dtype, x, i) == num_load_int(arg->dtype, y, i);
  double u = num_load(arg->dtype, x, i), v = num_load(arg->dtype, y, i);
  return u == v || (isnan(u) && isnan(v));
}

/* Offsets of the first and behind the last element, counted in elements from element 0. */
static void span_of(const struct api_arg *arg, int64_t *lo, int64_t *hi) {
  *lo = *hi = 0;
  for (uint32_t d = 0; d < arg->rank; d++) {
    int64_t far = arg->dim[d] ? (arg->dim[d] - 1) * arg->stride[d] : 0;
    *(far < 0 ? lo : hi) += far;
  }
  *hi += 1;
}

static void copy_element(enum dtype t, void *to, int64_t i, const void *from, int64_t j) {
  int64_t size = dtype_bits(t) / 8;
  if (size == 0)
    num_store_int(t, to, i, num_load_int(t, from, j));
  else
    memcpy((char *)to + i * size, (const char *)from + j * size, (size_t)size);
}

/* Dense elements to their places in memory, or back. memory: of the element at offset lo. */
static void spread(const struct api_arg *arg, enum dtype t, void *dense, void *memory, int64_t lo,
                   bool back) {
  int64_t n = api_elements(arg), at[IR_MAX_RANK] = {0}, e = -lo;
  for (int64_t i = 0; i < n; i++) {
    if (back)
      copy_element(t, dense, i, memory, e);
    else
      copy_element(t, memory, e, dense, i);
    for (uint32_t d = arg->rank; d-- > 0;) {
      e += arg->stride[d];
      if (++at[d] < arg->dim[d])
        break;
      e -= at[d] * arg->stride[d];
      at[d] = 0;
    }
  }
}

struct api_placed api_dense_place(const struct api_arg *arg, enum interp_domain domain, void *dense,
                                  struct arena *a) {
  struct api_placed p = {.dtype = api_dense_dtype(arg, domain)};
  int64_t lo, hi;
  span_of(arg, &lo, &hi);
  lo -= arg->offset;
  p.bytes = (size_t)dtype_bytes(p.dtype, hi - lo);
  p.memory = arena_get0(a, p.bytes);
  p.origin = -lo;
  spread(arg, p.dtype, dense, p.memory, lo, false);
  return p;
}

void api_dense_fetch(const struct api_arg *arg, const struct api_placed *p, void *dense) {
  spread(arg, p->dtype, dense, p->memory, -p->origin, true);
}
