/* cuBLAS as oracle and as peer: cublasLt products, with what it fuses, and cublasDgemm.
 *
 * cuBLAS is column-major; a row-major C = A B is computed as C' = B' A', where a matrix with rows
 * of stride ld is a column-major matrix of its transpose. What makes an oracle of it: the compute
 * type is plain f32 (tf32 for a peer that asks for it), and reductions of split sums may not be
 * done in the output type. */
#include "runtime/internal.h"

#include <inttypes.h>
#include <limits.h>

#define LT_WORKSPACE ((size_t)64 << 20)
#define LT_MAX_ALGOS 8

static enum rt_status blas_failed(struct rt_device *dev, cublasStatus_t s, const char *call) {
  const char *text = dev->ctx->libs[RT_LIB_CUBLASLT].state == LIB_LOADED
                         ? dev->ctx->cublaslt.cublasLtGetStatusString(s)
                         : NULL;
  enum rt_status status = s == CUBLAS_STATUS_ALLOC_FAILED ? RT_NO_MEMORY : RT_FAILED;
  return rt_fail(dev->ctx, status, DIAG_DRIVER, "%s failed: %s (%d)", call,
                 text ? text : "unknown error", s);
}

void rt_blas_close(struct rt_device *dev) {
  struct rt_ctx *ctx = dev->ctx;
  if (dev->blas)
    ctx->cublas.cublasDestroy(dev->blas);
  if (dev->lt)
    ctx->cublaslt.cublasLtDestroy(dev->lt);
  if (dev->lt_workspace)
    ctx->cuda.cuMemFree(dev->lt_workspace);
  dev->blas = NULL;
  dev->lt = NULL;
  dev->lt_workspace = 0;
}

/* A matrix as cuBLAS sees it: column-major, rows x cols with leading dimension ld; `op` says
 * whether it must be transposed to become the transpose of what was asked for. */
struct operand {
  int64_t rows, cols, ld;
  int op;
};

static bool make_operand(int64_t dim0, int64_t dim1, int64_t s0, int64_t s1, struct operand *out) {
  if ((s1 == 1 || dim1 <= 1) && (s0 >= dim1 || dim0 <= 1)) {
    *out = (struct operand){dim1, dim0, dim0 <= 1 ? dim1 : s0, CUBLAS_OP_N};
  } else if ((s0 == 1 || dim0 <= 1) && (s1 >= dim0 || dim1 <= 1)) {
    *out = (struct operand){dim0, dim1, dim1 <= 1 ? dim0 : s1, CUBLAS_OP_T};
  } else {
    return false;
  }
  if (out->ld < 1)
    out->ld = 1;
  return true;
}

/* ---- cublasLt ---- */

struct rt_lt_matmul {
  struct rt_device *dev;
  const void *a, *b, *residual; /* NULL: none */
  void *c;
  bool integer; /* factors are s32 */
  cublasLtMatmulDesc_t desc;
  cublasLtMatrixLayout_t x, y, r, d; /* B', A', the residual', C' */
  cublasLtMatmulHeuristicResult_t algos[LT_MAX_ALGOS];
  uint32_t n;
};

static enum rt_status open_lt(struct rt_device *dev) {
  enum rt_status status = rt_library_need(dev->ctx, RT_LIB_CUBLASLT);
  if (status == RT_OK)
    status = rt_enter(dev);
  if (status != RT_OK || dev->lt)
    return status;
  cublasStatus_t s = dev->ctx->cublaslt.cublasLtCreate(&dev->lt);
  if (s != CUBLAS_STATUS_SUCCESS) {
    dev->lt = NULL;
    return blas_failed(dev, s, "cublasLtCreate");
  }
  CUresult r = dev->ctx->cuda.cuMemAlloc(&dev->lt_workspace, LT_WORKSPACE);
  if (r != CUDA_SUCCESS) {
    rt_blas_close(dev);
    return rt_cuda_failed(dev, r, "allocating cuBLAS' workspace");
  }
  return RT_OK;
}

/* cuBLAS' name of a type; -1: it has none that is used here. */
static int lt_type(enum dtype t) {
  static const struct {
    enum dtype t;
    int name;
  } names[] = {{DT_BF16, CUDA_R_16BF},    {DT_F16, CUDA_R_16F},      {DT_F32, CUDA_R_32F},
               {DT_E4M3, CUDA_R_8F_E4M3}, {DT_E5M2, CUDA_R_8F_E5M2}, {DT_S8, CUDA_R_8I},
               {DT_S32, CUDA_R_32I}};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (names[i].t == t)
      return names[i].name;
  return -1;
}

/* The largest power of two up to 256 that divides the address: what cuBLAS may assume. */
static uint32_t alignment_of(const void *p) {
  uintptr_t low = (uintptr_t)p & (~(uintptr_t)p + 1);
  return low == 0 || low > 256 ? 256 : (uint32_t)low;
}

static cublasStatus_t set_preferences(struct rt_lt_matmul *p, cublasLtMatmulPreference_t pref) {
  const struct cublaslt_api *lt = &p->dev->ctx->cublaslt;
  uint64_t workspace = LT_WORKSPACE;
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_INPLACE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  uint32_t ax = alignment_of(p->b), ay = alignment_of(p->a), ad = alignment_of(p->c);
  uint32_t ac = p->residual ? alignment_of(p->residual) : ad;
  const struct {
    int attribute;
    const void *value;
    size_t size;
  } sets[] = {
      {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace},
      {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof reductions},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &ax, sizeof ax},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &ay, sizeof ay},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &ac, sizeof ac},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &ad, sizeof ad},
  };
  cublasStatus_t s = CUBLAS_STATUS_SUCCESS;
  for (size_t i = 0; i < sizeof sets / sizeof sets[0] && s == CUBLAS_STATUS_SUCCESS; i++)
    s = lt->cublasLtMatmulPreferenceSetAttribute(pref, sets[i].attribute, sets[i].value,
                                                 sets[i].size);
  return s;
}

static enum rt_status ask_heuristic(struct rt_lt_matmul *p) {
  const struct cublaslt_api *lt = &p->dev->ctx->cublaslt;
  cublasLtMatmulPreference_t pref = NULL;
  cublasStatus_t s = lt->cublasLtMatmulPreferenceCreate(&pref);
  if (s != CUBLAS_STATUS_SUCCESS)
    return blas_failed(p->dev, s, "cublasLtMatmulPreferenceCreate");
  int found = 0;
  s = set_preferences(p, pref);
  if (s == CUBLAS_STATUS_SUCCESS)
    s = lt->cublasLtMatmulAlgoGetHeuristic(p->dev->lt, p->desc, p->x, p->y,
                                           p->residual ? p->r : p->d, p->d, pref, LT_MAX_ALGOS,
                                           p->algos, &found);
  lt->cublasLtMatmulPreferenceDestroy(pref);
  if (s != CUBLAS_STATUS_SUCCESS)
    return blas_failed(p->dev, s, "cublasLtMatmulAlgoGetHeuristic");
  for (int i = 0; i < found && i < LT_MAX_ALGOS; i++)
    if (p->algos[i].state == CUBLAS_STATUS_SUCCESS)
      p->algos[p->n++] = p->algos[i];
  if (p->n == 0)
    return rt_fail(p->dev->ctx, RT_FAILED, DIAG_DRIVER,
                   "cuBLAS has no algorithm for this product of types and layouts");
  return RT_OK;
}

/* What a product is made of, as cuBLAS sees it. */
struct product {
  struct operand x, y, r, d;
  int tx, ty, td; /* types */
};

static cublasStatus_t set_epilogue(struct rt_lt_matmul *p, const struct rt_lt_options *opt) {
  static const int epilogues[][2] = {
      [RT_LT_IDENTITY] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS},
      [RT_LT_RELU] = {CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU_BIAS},
      [RT_LT_GELU_TANH] = {CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_BIAS},
  };
  const struct cublaslt_api *lt = &p->dev->ctx->cublaslt;
  int epilogue = epilogues[opt->activation][opt->bias != NULL];
  cublasStatus_t s = CUBLAS_STATUS_SUCCESS;
  if (epilogue != CUBLASLT_EPILOGUE_DEFAULT)
    s = lt->cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                           sizeof epilogue);
  if (s == CUBLAS_STATUS_SUCCESS && opt->bias)
    s = lt->cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &opt->bias,
                                           sizeof opt->bias);
  return s;
}

static enum rt_status describe(struct rt_lt_matmul *p, const struct product *q,
                               const struct rt_lt_options *opt) {
  const struct cublaslt_api *lt = &p->dev->ctx->cublaslt;
  int compute = p->integer  ? CUBLAS_COMPUTE_32I
                : opt->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                            : CUBLAS_COMPUTE_32F;
  const struct {
    const struct operand *o;
    int type;
    cublasLtMatrixLayout_t *layout;
  } matrices[] = {
      {&q->x, q->tx, &p->x}, {&q->y, q->ty, &p->y}, {&q->d, q->td, &p->d}, {&q->r, q->td, &p->r}};
  cublasStatus_t s =
      lt->cublasLtMatmulDescCreate(&p->desc, compute, p->integer ? CUDA_R_32I : CUDA_R_32F);
  if (s == CUBLAS_STATUS_SUCCESS)
    s = lt->cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &q->x.op,
                                           sizeof q->x.op);
  if (s == CUBLAS_STATUS_SUCCESS)
    s = lt->cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSB, &q->y.op,
                                           sizeof q->y.op);
  if (s == CUBLAS_STATUS_SUCCESS)
    s = set_epilogue(p, opt);
  for (size_t i = 0; i < (p->residual ? 4 : 3) && s == CUBLAS_STATUS_SUCCESS; i++)
    s = lt->cublasLtMatrixLayoutCreate(matrices[i].layout, matrices[i].type,
                                       (uint64_t)matrices[i].o->rows, (uint64_t)matrices[i].o->cols,
                                       matrices[i].o->ld);
  return s == CUBLAS_STATUS_SUCCESS ? RT_OK
                                    : blas_failed(p->dev, s, "describing a product to cuBLAS");
}

static bool is_fp8(enum dtype t) {
  return t == DT_E4M3 || t == DT_E5M2;
}

static bool types_fit(enum dtype a, enum dtype b, enum dtype c) {
  bool wide = c == DT_BF16 || c == DT_F16 || c == DT_F32;
  if (is_fp8(a))
    return is_fp8(b) && wide;
  if (a == DT_S8)
    return b == DT_S8 && c == DT_S32;
  return a == b && (a == DT_BF16 || a == DT_F16 || a == DT_F32) && (c == a || c == DT_F32);
}

static const char *check_product(const struct rt_tensor *a, const struct rt_tensor *b,
                                 const struct rt_tensor *c, const struct rt_lt_options *opt,
                                 struct product *q) {
  const struct rt_tensor *r = opt->residual;
  if (a->rank != 2 || b->rank != 2 || c->rank != 2)
    return "matrices have two dims";
  if (a->dim[1] != b->dim[0] || a->dim[0] != c->dim[0] || b->dim[1] != c->dim[1])
    return "the shapes do not fit together";
  if (a->dim[0] <= 0 || a->dim[1] <= 0 || b->dim[1] <= 0)
    return "an extent is 0";
  if (!types_fit(a->dtype, b->dtype, c->dtype))
    return "these types are supported: bf16, f16 or f32 inputs of one type with an output of that "
           "type or f32; 8-bit floats with an output of bf16, f16 or f32; s8 with s32";
  if (!make_operand(b->dim[0], b->dim[1], b->stride[0], b->stride[1], &q->x) ||
      !make_operand(a->dim[0], a->dim[1], a->stride[0], a->stride[1], &q->y))
    return "an input has no stride of 1";
  if (!make_operand(c->dim[0], c->dim[1], c->stride[0], c->stride[1], &q->d) ||
      q->d.op != CUBLAS_OP_N)
    return "the output's rows are not contiguous";
  if (r &&
      (r->rank != 2 || r->dim[0] != c->dim[0] || r->dim[1] != c->dim[1] || r->dtype != c->dtype ||
       !make_operand(r->dim[0], r->dim[1], r->stride[0], r->stride[1], &q->r) ||
       q->r.op != CUBLAS_OP_N))
    return "the residual is not like the output";
  q->tx = lt_type(b->dtype);
  q->ty = lt_type(a->dtype);
  q->td = lt_type(c->dtype);
  return NULL;
}

enum rt_status rt_lt_new(struct rt_device *dev, const struct rt_tensor *a,
                         const struct rt_tensor *b, const struct rt_tensor *c,
                         const struct rt_lt_options *opt, struct rt_lt_matmul **out) {
  static const struct rt_lt_options plain = {0};
  struct product q = {0};
  *out = NULL;
  opt = opt ? opt : &plain;
  const char *bad = check_product(a, b, c, opt, &q);
  if (bad)
    return rt_fail(dev->ctx, RT_BAD_INPUT, DIAG_USAGE, "cuBLAS cannot compute this product: %s",
                   bad);
  enum rt_status status = open_lt(dev);
  if (status != RT_OK)
    return status;
  struct rt_lt_matmul *p = mem_get0(&dev->ctx->mem, sizeof *p);
  if (!p)
    return rt_no_memory(dev->ctx);
  p->dev = dev;
  p->a = a->data;
  p->b = b->data;
  p->c = c->data;
  p->residual = opt->residual ? opt->residual->data : NULL;
  p->integer = c->dtype == DT_S32;
  status = describe(p, &q, opt);
  if (status == RT_OK)
    status = ask_heuristic(p);
  if (status == RT_OK)
    *out = p;
  else
    rt_lt_free(p);
  return status;
}

uint32_t rt_lt_count(const struct rt_lt_matmul *p) {
  return p->n;
}

enum rt_status rt_lt_run(struct rt_lt_matmul *p, uint32_t i, rt_stream stream) {
  struct rt_device *dev = p->dev;
  enum rt_status status = rt_enter(dev);
  if (status != RT_OK)
    return status;
  if (i >= p->n)
    return rt_fail(dev->ctx, RT_BAD_INPUT, DIAG_USAGE, "cuBLAS gave %u algorithms, not %u", p->n,
                   i + 1);
  static const float numbers[2] = {0, 1};
  static const int32_t whole[2] = {0, 1};
  const void *zero = p->integer ? (const void *)&whole[0] : &numbers[0];
  const void *one = p->integer ? (const void *)&whole[1] : &numbers[1];
  cublasStatus_t s = dev->ctx->cublaslt.cublasLtMatmul(
      dev->lt, p->desc, one, p->b, p->x, p->a, p->y, p->residual ? one : zero,
      p->residual ? p->residual : p->c, p->residual ? p->r : p->d, p->c, p->d, &p->algos[i].algo,
      (void *)(uintptr_t)dev->lt_workspace, LT_WORKSPACE, stream);
  return s == CUBLAS_STATUS_SUCCESS ? RT_OK : blas_failed(dev, s, "cublasLtMatmul");
}

struct lt_candidate {
  struct rt_lt_matmul *p;
  uint32_t i;
};

static enum rt_status run_candidate(void *user, rt_stream stream, uint32_t round) {
  (void)round;
  struct lt_candidate *c = user;
  return rt_lt_run(c->p, c->i, stream);
}

enum rt_status rt_lt_fastest(struct rt_lt_matmul *p, uint32_t *out) {
  struct lt_candidate users[LT_MAX_ALGOS];
  struct rt_candidate candidates[LT_MAX_ALGOS];
  *out = 0;
  if (p->n == 1)
    return RT_OK;
  for (uint32_t i = 0; i < p->n; i++) {
    users[i] = (struct lt_candidate){p, i};
    candidates[i] = (struct rt_candidate){"cuBLAS", run_candidate, &users[i]};
  }
  struct rt_timing_options o = {.rounds = 12, .warmup = 2, .time_limit_us = 2000000};
  struct rt_timing_set t;
  enum rt_status status = rt_time(p->dev, candidates, p->n, &o, &t);
  if (status != RT_OK)
    return status;
  for (uint32_t i = 1; i < p->n; i++)
    if (t.at[i].us.median < t.at[*out].us.median)
      *out = i;
  rt_timing_free(&t);
  return RT_OK;
}

void rt_lt_free(struct rt_lt_matmul *p) {
  if (!p)
    return;
  const struct cublaslt_api *lt = &p->dev->ctx->cublaslt;
  if (p->x)
    lt->cublasLtMatrixLayoutDestroy(p->x);
  if (p->y)
    lt->cublasLtMatrixLayoutDestroy(p->y);
  if (p->r)
    lt->cublasLtMatrixLayoutDestroy(p->r);
  if (p->d)
    lt->cublasLtMatrixLayoutDestroy(p->d);
  if (p->desc)
    lt->cublasLtMatmulDescDestroy(p->desc);
  mem_drop(&p->dev->ctx->mem, p, sizeof *p);
}

/* ---- double precision ---- */

static enum rt_status open_blas(struct rt_device *dev) {
  enum rt_status status = rt_library_need(dev->ctx, RT_LIB_CUBLAS);
  if (status == RT_OK)
    status = rt_enter(dev);
  if (status != RT_OK || dev->blas)
    return status;
  const struct cublas_api *blas = &dev->ctx->cublas;
  cublasStatus_t s = blas->cublasCreate(&dev->blas);
  if (s != CUBLAS_STATUS_SUCCESS) {
    dev->blas = NULL;
    return blas_failed(dev, s, "cublasCreate");
  }
  /* Never emulated in lower precision, whatever the environment asks for. */
  s = blas->cublasSetMathMode(dev->blas, CUBLAS_PEDANTIC_MATH);
  return s == CUBLAS_STATUS_SUCCESS ? RT_OK : blas_failed(dev, s, "cublasSetMathMode");
}

enum rt_status rt_device_matmul_f64(struct rt_device *dev, int64_t m, int64_t n, int64_t k,
                                    const void *a, int64_t as0, int64_t as1, const void *b,
                                    int64_t bs0, int64_t bs1, void *c, rt_stream stream) {
  if (m == 0 || n == 0)
    return RT_OK;
  enum rt_status status = open_blas(dev);
  if (status != RT_OK)
    return status;
  struct rt_ctx *ctx = dev->ctx;
  if (k == 0) {
    CUresult r = ctx->cuda.cuMemsetD8Async((CUdeviceptr)(uintptr_t)c, 0,
                                           (size_t)(m * n) * sizeof(double), stream);
    return r == CUDA_SUCCESS ? RT_OK : rt_cuda_failed(dev, r, "clearing a product");
  }
  struct operand x, y;
  if (!make_operand(k, n, bs0, bs1, &x) || !make_operand(m, k, as0, as1, &y) || x.ld > INT_MAX ||
      y.ld > INT_MAX || m > INT_MAX || n > INT_MAX || k > INT_MAX)
    return rt_fail(ctx, RT_BAD_INPUT, DIAG_USAGE,
                   "cublasDgemm cannot compute %" PRId64 " x %" PRId64 " x %" PRId64
                   " with these strides",
                   m, n, k);
  double one = 1, zero = 0;
  cublasStatus_t s = ctx->cublas.cublasSetStream(dev->blas, stream);
  if (s == CUBLAS_STATUS_SUCCESS)
    s = ctx->cublas.cublasDgemm(dev->blas, x.op, y.op, (int)n, (int)m, (int)k, &one, b, (int)x.ld,
                                a, (int)y.ld, &zero, c, (int)n);
  return s == CUBLAS_STATUS_SUCCESS ? RT_OK : blas_failed(dev, s, "cublasDgemm");
}

/* Elements from the first to past the last; 0 for negative strides. */
static int64_t span(int64_t d0, int64_t d1, int64_t s0, int64_t s1) {
  return s0 < 0 || s1 < 0 ? 0 : (d0 - 1) * s0 + (d1 - 1) * s1 + 1;
}

static enum rt_status matmul_on_device(struct rt_device *dev, int64_t m, int64_t n, int64_t k,
                                       const double *a, int64_t as0, int64_t as1, const double *b,
                                       int64_t bs0, int64_t bs1, double *c) {
  size_t na = (size_t)span(m, k, as0, as1) * 8, nb = (size_t)span(k, n, bs0, bs1) * 8;
  size_t nc = (size_t)(m * n) * 8;
  struct rt_buffer *da = NULL, *db = NULL, *dc = NULL;
  rt_stream stream = NULL;
  enum rt_status status = rt_device_stream(dev, &stream);
  if (status == RT_OK)
    status = rt_buffer_new(dev, "a reference's A", na, &da);
  if (status == RT_OK)
    status = rt_buffer_new(dev, "a reference's B", nb, &db);
  if (status == RT_OK)
    status = rt_buffer_new(dev, "a reference", nc, &dc);
  if (status == RT_OK)
    status = rt_buffer_upload(da, 0, a, na);
  if (status == RT_OK)
    status = rt_buffer_upload(db, 0, b, nb);
  if (status == RT_OK)
    status = rt_device_matmul_f64(dev, m, n, k, rt_buffer_data(da), as0, as1, rt_buffer_data(db),
                                  bs0, bs1, rt_buffer_data(dc), stream);
  if (status == RT_OK)
    status = rt_buffer_download(dc, 0, c, nc);
  rt_buffer_free(da);
  rt_buffer_free(db);
  rt_buffer_free(dc);
  return status;
}

enum rt_status rt_matmul_f64(struct rt_ctx *ctx, struct rt_device *dev, int64_t m, int64_t n,
                             int64_t k, const double *a, int64_t as0, int64_t as1, const double *b,
                             int64_t bs0, int64_t bs1, double *c) {
  struct operand x, y;
  bool large = m > 0 && n > 0 && k > 0 && (double)m * (double)n * (double)k > 1e8;
  if (dev && !dev->dead && large && make_operand(k, n, bs0, bs1, &x) &&
      make_operand(m, k, as0, as1, &y) && rt_library_info(ctx, RT_LIB_CUBLAS).loaded)
    return matmul_on_device(dev, m, n, k, a, as0, as1, b, bs0, bs1, c);
  return rt_host_matmul(ctx, m, n, k, a, as0, as1, b, bs0, bs1, c);
}
