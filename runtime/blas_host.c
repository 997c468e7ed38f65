/* Double-precision products on the host: OpenBLAS where it is found and found right, else blocked
 * loops. */
#include "runtime/internal.h"

#include <dlfcn.h>
#include <limits.h>

/* c = a b, any strides. */
static bool plain_matmul(struct rt_ctx *ctx, int64_t m, int64_t n, int64_t k, const double *a,
                         int64_t as0, int64_t as1, const double *b, int64_t bs0, int64_t bs1,
                         double *c) {
  enum { BLOCK_K = 64, BLOCK_N = 256 };
  size_t size = sizeof(double) * BLOCK_K * BLOCK_N;
  double *pack = mem_get(&ctx->mem, size);
  if (!pack)
    return false;
  for (int64_t i = 0; i < m * n; i++)
    c[i] = 0;
  for (int64_t j0 = 0; j0 < n; j0 += BLOCK_N)
    for (int64_t l0 = 0; l0 < k; l0 += BLOCK_K) {
      int64_t nj = n - j0 < BLOCK_N ? n - j0 : BLOCK_N, nl = k - l0 < BLOCK_K ? k - l0 : BLOCK_K;
      for (int64_t l = 0; l < nl; l++)
        for (int64_t j = 0; j < nj; j++)
          pack[l * BLOCK_N + j] = b[(l0 + l) * bs0 + (j0 + j) * bs1];
      for (int64_t i = 0; i < m; i++)
        for (int64_t l = 0; l < nl; l++) {
          double x = a[i * as0 + (l0 + l) * as1];
          double *row = c + i * n + j0;
          for (int64_t j = 0; j < nj; j++)
            row[j] += x * pack[l * BLOCK_N + j];
        }
    }
  mem_drop(&ctx->mem, pack, size);
  return true;
}

enum { CBLAS_ROW_MAJOR = 101, CBLAS_NO_TRANS = 111, CBLAS_TRANS = 112 };

/* As a BLAS operand: one stride is 1, the other at least as large as the extent along it. */
static bool blas_operand(int64_t rows, int64_t cols, int64_t s0, int64_t s1, int *trans, int *ld) {
  int64_t other;
  if (s1 == 1 && s0 >= (cols > 1 ? cols : 1)) {
    *trans = CBLAS_NO_TRANS;
    other = s0;
  } else if (s0 == 1 && s1 >= (rows > 1 ? rows : 1)) {
    *trans = CBLAS_TRANS;
    other = s1;
  } else {
    return false;
  }
  *ld = (int)other;
  return other <= INT_MAX && rows <= INT_MAX && cols <= INT_MAX;
}

static bool blas_matmul(rt_dgemm_fn dgemm, int64_t m, int64_t n, int64_t k, const double *a,
                        int64_t as0, int64_t as1, const double *b, int64_t bs0, int64_t bs1,
                        double *c) {
  int ta, tb, lda, ldb;
  if (m == 0 || n == 0 || k == 0 || !blas_operand(m, k, as0, as1, &ta, &lda) ||
      !blas_operand(k, n, bs0, bs1, &tb, &ldb))
    return false;
  dgemm(CBLAS_ROW_MAJOR, ta, tb, (int)m, (int)n, (int)k, 1, a, lda, b, ldb, 0, c, (int)n);
  return true;
}

/* Small integers make every product exact, so the library must agree to the last bit, in all four
 * layouts. */
bool rt_dgemm_is_right(rt_dgemm_fn dgemm) {
  enum { M = 37, N = 29, K = 41 };
  double a[M * K], b[K * N], c[M * N];
  for (int i = 0; i < M * K; i++)
    a[i] = rt_random(RT_FILL_SMALL, 1, (uint64_t)i) - 2;
  for (int i = 0; i < K * N; i++)
    b[i] = rt_random(RT_FILL_SMALL, 2, (uint64_t)i) - 2;
  for (int layout = 0; layout < 4; layout++) {
    int64_t as0 = layout & 1 ? 1 : K, as1 = layout & 1 ? M : 1;
    int64_t bs0 = layout & 2 ? 1 : N, bs1 = layout & 2 ? K : 1;
    if (!blas_matmul(dgemm, M, N, K, a, as0, as1, b, bs0, bs1, c))
      return false;
    for (int64_t i = 0; i < M; i++)
      for (int64_t j = 0; j < N; j++) {
        double sum = 0;
        for (int64_t l = 0; l < K; l++)
          sum += a[i * as0 + l * as1] * b[l * bs0 + j * bs1];
        if (c[i * N + j] != sum)
          return false;
      }
  }
  return true;
}

static void find_blas(struct rt_ctx *ctx) {
  if (ctx->dgemm_tried)
    return;
  ctx->dgemm_tried = true;
  ctx->dgemm_name = "plain loops";
  static const char *const names[] = {"libopenblas.so.0", "libopenblas.so", NULL};
  const char *path = NULL;
  void *lib = rt_open_host_library(ctx, names, &path);
  void *symbol = lib ? dlsym(lib, "cblas_dgemm") : NULL;
  rt_dgemm_fn dgemm = NULL;
  if (!symbol)
    return;
  memcpy(&dgemm, &symbol, sizeof symbol);
  if (!rt_dgemm_is_right(dgemm)) {
    rt_log(ctx, "%s gives wrong products and is not used", path);
    return;
  }
  ctx->dgemm = dgemm;
  ctx->dgemm_name = "OpenBLAS";
}

const char *rt_host_matmul_name(struct rt_ctx *ctx) {
  find_blas(ctx);
  return ctx->dgemm_name;
}

enum rt_status rt_host_matmul(struct rt_ctx *ctx, int64_t m, int64_t n, int64_t k, const double *a,
                              int64_t as0, int64_t as1, const double *b, int64_t bs0, int64_t bs1,
                              double *c) {
  find_blas(ctx);
  if (ctx->dgemm && blas_matmul(ctx->dgemm, m, n, k, a, as0, as1, b, bs0, bs1, c))
    return RT_OK;
  return plain_matmul(ctx, m, n, k, a, as0, as1, b, bs0, bs1, c) ? RT_OK : rt_no_memory(ctx);
}
