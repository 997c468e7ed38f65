/* The single-precision product that serves as accuracy baseline; see rt.h. */
#include "runtime/rt.h"

#include "base/threads.h"

#include "runtime/internal.h"

#include <string.h>

/* Host memory of one call, released together. */
struct work {
  const struct mem_alloc *mem;
  float *a, *b, *c;
  size_t na, nb, nc; /* bytes */
};

#define PART (1 << 16) /* elements that are worth a thread */

struct gathering {
  float *to;
  const double *x;
  int64_t cols, s0, s1;
};

static void gather_rows(void *user, int64_t first, int64_t end) {
  const struct gathering *g = user;
  for (int64_t i = first; i < end; i++)
    for (int64_t j = 0; j < g->cols; j++)
      g->to[i * g->cols + j] = (float)g->x[i * g->s0 + j * g->s1];
}

static void gather(float *to, const double *x, int64_t rows, int64_t cols, int64_t s0, int64_t s1) {
  struct gathering g = {to, x, cols, s0, s1};
  threads_split(rows, PART / (cols + 1) + 1, gather_rows, &g);
}

struct widening {
  double *to;
  const float *x;
};

static void widen_part(void *user, int64_t first, int64_t end) {
  const struct widening *w = user;
  for (int64_t i = first; i < end; i++)
    w->to[i] = (double)w->x[i];
}

/* Rows of C at a time, k in order: each element is one running f32 sum. */
static void host_product(int64_t m, int64_t n, int64_t k, const float *restrict a,
                         const float *restrict b, float *restrict c) {
  for (int64_t i = 0; i < m; i++) {
    float *row = c + i * n;
    memset(row, 0, sizeof(float) * (size_t)n);
    for (int64_t l = 0; l < k; l++) {
      float x = a[i * k + l];
      const float *y = b + l * n;
      for (int64_t j = 0; j < n; j++)
        row[j] += x * y[j];
    }
  }
}

static enum rt_status device_product(struct rt_device *dev, int64_t m, int64_t n, int64_t k,
                                     const struct work *w) {
  struct rt_buffer *a = NULL, *b = NULL, *c = NULL;
  struct rt_lt_matmul *plan = NULL;
  enum rt_status st = rt_buffer_new(dev, "f32 baseline A", w->na, &a);
  if (st == RT_OK)
    st = rt_buffer_new(dev, "f32 baseline B", w->nb, &b);
  if (st == RT_OK)
    st = rt_buffer_new(dev, "f32 baseline C", w->nc, &c);
  if (st == RT_OK)
    st = rt_buffer_upload(a, 0, w->a, w->na);
  if (st == RT_OK)
    st = rt_buffer_upload(b, 0, w->b, w->nb);
  if (st == RT_OK) {
    struct rt_tensor ta = {rt_buffer_data(a), DT_F32, 2, {m, k}, {k, 1}};
    struct rt_tensor tb = {rt_buffer_data(b), DT_F32, 2, {k, n}, {n, 1}};
    struct rt_tensor tc = {rt_buffer_data(c), DT_F32, 2, {m, n}, {n, 1}};
    st = rt_lt_new(dev, &ta, &tb, &tc, NULL, &plan);
  }
  rt_stream stream = NULL;
  if (st == RT_OK)
    st = rt_device_stream(dev, &stream);
  if (st == RT_OK)
    st = rt_lt_run(plan, 0, stream);
  if (st == RT_OK)
    st = rt_device_sync(dev);
  if (st == RT_OK)
    st = rt_buffer_download(c, 0, w->c, w->nc);
  rt_lt_free(plan);
  rt_buffer_free(a);
  rt_buffer_free(b);
  rt_buffer_free(c);
  return st;
}

enum rt_status rt_matmul_f32(struct rt_ctx *ctx, struct rt_device *dev, int64_t m, int64_t n,
                             int64_t k, const double *a, int64_t as0, int64_t as1, const double *b,
                             int64_t bs0, int64_t bs1, double *c) {
  if (m == 0 || n == 0)
    return RT_OK;
  struct work w = {.mem = &ctx->mem};
  w.na = sizeof(float) * (size_t)(m * k);
  w.nb = sizeof(float) * (size_t)(k * n);
  w.nc = sizeof(float) * (size_t)(m * n);
  w.a = mem_get(w.mem, w.na);
  w.b = mem_get(w.mem, w.nb);
  w.c = mem_get(w.mem, w.nc);
  enum rt_status st = w.a && w.b && w.c ? RT_OK : RT_NO_MEMORY;
  if (st == RT_OK) {
    gather(w.a, a, m, k, as0, as1);
    gather(w.b, b, k, n, bs0, bs1);
    if (dev && k && (double)m * (double)n * (double)k > 1e8)
      st = device_product(dev, m, n, k, &w);
    else
      host_product(m, n, k, w.a, w.b, w.c);
  } else {
    diag_report(ctx->diags, DIAG_ERROR, DIAG_NO_MEMORY, DIAG_NOWHERE, "out of memory");
  }
  struct widening wide = {c, w.c};
  if (st == RT_OK)
    threads_split(m * n, PART, widen_part, &wide);
  mem_drop(w.mem, w.a, w.na);
  mem_drop(w.mem, w.b, w.nb);
  mem_drop(w.mem, w.c, w.nc);
  return st;
}
