/* What is asked of cuBLAS, and the device-side verification around it, on a fake GPU with a fake
 * cuBLAS that multiplies column-major matrices by their definition, and fake helper kernels. Shows
 * that every layout is described so that the row-major product comes out, and that every failing
 * call and allocation ends in one error and leaves nothing behind. */
#include "help_fake.h"

#include "base/num.h"
#include "runtime/verify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- a cuBLAS ---- */

struct desc {
  int compute, transa, transb, epilogue;
  const void *bias;
};
struct layout {
  int type;
  uint64_t rows, cols;
  int64_t ld;
};

static int live;                       /* descriptors and handles */
static uint64_t blas_calls, blas_fail; /* the n-th call fails */
static uint32_t last_alignment, last_reductions;
static int last_compute;
static int heuristic_found = 3;

static cublasStatus_t step(void) {
  return ++blas_calls == blas_fail ? 14 : CUBLAS_STATUS_SUCCESS;
}
#define STEP()                                                                                     \
  do {                                                                                             \
    if (step())                                                                                    \
      return 14;                                                                                   \
  } while (0)

static cublasStatus_t make(void **out, size_t size) {
  STEP();
  *out = calloc(1, size);
  live++;
  return CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t unmake(void *p) {
  free(p);
  live--;
  return CUBLAS_STATUS_SUCCESS;
}

static enum dtype type_named(int type) {
  switch (type) {
  case CUDA_R_16BF: return DT_BF16;
  case CUDA_R_16F: return DT_F16;
  case CUDA_R_64F: return DT_F64;
  case CUDA_R_8F_E4M3: return DT_E4M3;
  case CUDA_R_8F_E5M2: return DT_E5M2;
  case CUDA_R_8I: return DT_S8;
  case CUDA_R_32I: return DT_S32;
  default: return DT_F32;
  }
}

/* A column-major matrix. */
struct matrix {
  int type;
  const void *data;
  int64_t ld;
};

static double element(const struct matrix *x, int64_t i, int64_t j) {
  return num_load(type_named(x->type), x->data, i + j * x->ld);
}

static double activated(int epilogue, double x) {
  if (epilogue & CUBLASLT_EPILOGUE_RELU)
    return x > 0 ? x : 0;
  if (epilogue & CUBLASLT_EPILOGUE_GELU)
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  return x;
}

/* d[m, n] = activation(op(a) op(b) + c + bias of each row); c NULL: none. */
static void multiply(const struct desc *t, int64_t m, int64_t n, int64_t k, const struct matrix *a,
                     const struct matrix *b, const struct matrix *c, const struct matrix *d) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      double sum = c ? element(c, i, j) : 0;
      for (int64_t l = 0; l < k; l++)
        sum += (t->transa ? element(a, l, i) : element(a, i, l)) *
               (t->transb ? element(b, j, l) : element(b, l, j));
      if (t->epilogue & CUBLASLT_EPILOGUE_BIAS)
        sum += num_load(type_named(d->type), t->bias, i);
      num_store(type_named(d->type), (void *)(uintptr_t)d->data, i + j * d->ld,
                activated(t->epilogue, sum));
    }
}

static cublasStatus_t b_create(cublasHandle_t *h) {
  void *p = NULL;
  cublasStatus_t s = make(&p, 8);
  *h = p;
  return s;
}
static cublasStatus_t b_destroy(cublasHandle_t h) {
  return unmake(h);
}
static cublasStatus_t b_version(cublasHandle_t h, int *v) {
  (void)h;
  *v = 130000;
  return CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t b_stream(cublasHandle_t h, CUstream s) {
  (void)h, (void)s;
  return step();
}
static int math_mode;
static cublasStatus_t b_mode(cublasHandle_t h, int mode) {
  (void)h;
  math_mode = mode;
  return step();
}
static const char *b_text(cublasStatus_t s) {
  return s == 14 ? "as the test wants" : "?";
}
static cublasStatus_t b_dgemm(cublasHandle_t h, int ta, int tb, int m, int n, int k,
                              const double *alpha, const double *a, int lda, const double *b,
                              int ldb, const double *beta, double *c, int ldc) {
  (void)h;
  STEP();
  assert_true(*alpha == 1 && *beta == 0);
  assert_true(lda >= (ta ? k : m) && ldb >= (tb ? n : k) && ldc >= m);
  multiply(&(struct desc){.transa = ta, .transb = tb}, m, n, k,
           &(struct matrix){CUDA_R_64F, a, lda}, &(struct matrix){CUDA_R_64F, b, ldb}, NULL,
           &(struct matrix){CUDA_R_64F, c, ldc});
  return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t l_create(cublasLtHandle_t *h) {
  void *p = NULL;
  cublasStatus_t s = make(&p, 8);
  *h = p;
  return s;
}
static cublasStatus_t l_destroy(cublasLtHandle_t h) {
  return unmake(h);
}
static size_t l_version(void) {
  return 130000;
}
static cublasStatus_t l_desc(cublasLtMatmulDesc_t *d, int compute, int scale) {
  assert_true(scale == (compute == CUBLAS_COMPUTE_32I ? CUDA_R_32I : CUDA_R_32F));
  cublasStatus_t s = make(d, sizeof(struct desc));
  if (s == CUBLAS_STATUS_SUCCESS)
    ((struct desc *)*d)->compute = last_compute = compute;
  return s;
}
static cublasStatus_t l_desc_set(cublasLtMatmulDesc_t d, int attribute, const void *v, size_t n) {
  STEP();
  struct desc *x = d;
  bool bias = attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER;
  assert_int_equal(n, bias ? sizeof(void *) : sizeof(int));
  switch (attribute) {
  case CUBLASLT_MATMUL_DESC_TRANSA: memcpy(&x->transa, v, n); break;
  case CUBLASLT_MATMUL_DESC_TRANSB: memcpy(&x->transb, v, n); break;
  case CUBLASLT_MATMUL_DESC_EPILOGUE: memcpy(&x->epilogue, v, n); break;
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER: memcpy(&x->bias, v, n); break;
  default: fail_msg("attribute %d", attribute);
  }
  return CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t l_layout(cublasLtMatrixLayout_t *l, int type, uint64_t rows, uint64_t cols,
                               int64_t ld) {
  cublasStatus_t s = make(l, sizeof(struct layout));
  if (s == CUBLAS_STATUS_SUCCESS)
    *(struct layout *)*l = (struct layout){type, rows, cols, ld};
  assert_true(ld >= (int64_t)rows);
  return s;
}
static cublasStatus_t l_pref(cublasLtMatmulPreference_t *p) {
  return make(p, 8);
}
static cublasStatus_t l_pref_set(cublasLtMatmulPreference_t p, int attribute, const void *v,
                                 size_t n) {
  (void)p;
  STEP();
  if (attribute == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES)
    memcpy(&last_alignment, v, n);
  if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
    memcpy(&last_reductions, v, n);
  return CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t l_heuristic(cublasLtHandle_t h, cublasLtMatmulDesc_t d,
                                  cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                  cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t dd,
                                  cublasLtMatmulPreference_t p, int n,
                                  cublasLtMatmulHeuristicResult_t *results, int *found) {
  (void)h, (void)d, (void)a, (void)b, (void)c, (void)dd, (void)p;
  STEP();
  assert_true(n == 8);
  *found = heuristic_found;
  memset(results, 0, sizeof *results * (size_t)n);
  for (int i = 0; i < heuristic_found; i++) {
    results[i].algo.data[0] = (uint64_t)i;
    results[i].state = i == 1 ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t l_matmul(cublasLtHandle_t h, cublasLtMatmulDesc_t desc, const void *alpha,
                               const void *a, cublasLtMatrixLayout_t al, const void *b,
                               cublasLtMatrixLayout_t bl, const void *beta, const void *c,
                               cublasLtMatrixLayout_t cl, void *d, cublasLtMatrixLayout_t dl,
                               const cublasLtMatmulAlgo_t *algo, void *workspace, size_t bytes,
                               CUstream stream) {
  (void)h, (void)stream;
  STEP();
  const struct layout *x = al, *y = bl, *w = cl, *z = dl;
  const struct desc *t = desc;
  float factors[2] = {0};
  for (int i = 0; i < 2; i++) {
    const void *p = i ? beta : alpha;
    factors[i] = t->compute == CUBLAS_COMPUTE_32I ? (float)*(const int *)p : *(const float *)p;
  }
  bool adds = factors[1] != 0;
  assert_true(factors[0] == 1 && factors[1] == (float)adds && adds == (c != d));
  assert_true(workspace && bytes == (size_t)64 << 20 && (adds || cl == dl));
  int64_t m = (int64_t)(t->transa ? x->cols : x->rows);
  int64_t k = (int64_t)(t->transa ? x->rows : x->cols);
  int64_t n = (int64_t)(t->transb ? y->rows : y->cols);
  assert_int_equal(k, t->transb ? y->cols : y->rows);
  assert_true(m == (int64_t)z->rows && n == (int64_t)z->cols);
  assert_true(w->rows == z->rows && w->cols == z->cols && w->type == z->type);
  multiply(t, m, n, k, &(struct matrix){x->type, a, x->ld}, &(struct matrix){y->type, b, y->ld},
           adds ? &(struct matrix){w->type, c, w->ld} : NULL, &(struct matrix){z->type, d, z->ld});
  fake.clock_us += algo->data[0] == 2 ? 10 : 30; /* the third of the heuristic's is the fastest */
  return CUBLAS_STATUS_SUCCESS;
}

static const struct cublas_api fake_blas = {.cublasCreate = b_create,
                                            .cublasDestroy = b_destroy,
                                            .cublasGetVersion = b_version,
                                            .cublasSetStream = b_stream,
                                            .cublasSetMathMode = b_mode,
                                            .cublasGetStatusString = b_text,
                                            .cublasDgemm = b_dgemm};
static const struct cublaslt_api fake_lt = {.cublasLtCreate = l_create,
                                            .cublasLtDestroy = l_destroy,
                                            .cublasLtGetVersion = l_version,
                                            .cublasLtGetStatusString = b_text,
                                            .cublasLtMatmulDescCreate = l_desc,
                                            .cublasLtMatmulDescDestroy = unmake,
                                            .cublasLtMatmulDescSetAttribute = l_desc_set,
                                            .cublasLtMatrixLayoutCreate = l_layout,
                                            .cublasLtMatrixLayoutDestroy = unmake,
                                            .cublasLtMatmulPreferenceCreate = l_pref,
                                            .cublasLtMatmulPreferenceDestroy = unmake,
                                            .cublasLtMatmulPreferenceSetAttribute = l_pref_set,
                                            .cublasLtMatmulAlgoGetHeuristic = l_heuristic,
                                            .cublasLtMatmul = l_matmul};

/* ---- helper kernels ---- */

static enum dtype helper_type; /* a kernel does not know its type; the tests use one at a time */

static void k_to_f64(void **p, const CUlaunchConfig *c) {
  (void)c;
  double *dst = *(double **)p[0];
  const void *src = *(const void **)p[1];
  int64_t rows = *(int64_t *)p[2], cols = *(int64_t *)p[3];
  int64_t s0 = *(int64_t *)p[4], s1 = *(int64_t *)p[5];
  for (int64_t k = 0; k < rows * cols; k++) {
    double x = num_load(helper_type, src, k / cols * s0 + k % cols * s1);
    dst[k] = *(int *)p[6] ? fabs(x) : x;
  }
}

struct judge { /* as the compare kernel declares it */
  const void *out;
  const double *ref, *base, *bound;
  int64_t rows, cols, s0, s1;
  double gamma, unit, half_tiny, limit;
  int64_t exact;
};

static void k_compare(void **p, const CUlaunchConfig *c) {
  struct rt_block_stats *stats = *(struct rt_block_stats **)p[0];
  const struct judge *q = p[1];
  size_t n = (size_t)(q->rows * q->cols);
  double *bound = calloc(n, sizeof *bound);
  for (size_t i = 0; i < n && q->bound; i++)
    bound[i] = q->gamma * q->bound[i];
  struct rt_verify v = {.dtype = helper_type,
                        .rows = q->rows,
                        .cols = q->cols,
                        .out = q->out,
                        .out_stride = {q->s0, q->s1},
                        .ref = q->ref,
                        .base = q->base,
                        .bound = q->bound ? bound : NULL,
                        .exact = q->exact};
  for (unsigned i = 0; i < c->gridDimY; i++)
    for (unsigned j = 0; j < c->gridDimX; j++)
      stats[i * c->gridDimX + j] =
          rt_scan_block(&v, (int64_t)i * RT_BLOCK, (int64_t)j * RT_BLOCK, RT_BLOCK);
  free(bound);
}

static const struct fake_kernel kernels[] = {
    {.name = "to_f64", .raw = k_to_f64}, {.name = "compare", .raw = k_compare}, {.name = NULL}};

/* An NVRTC that compiles anything to an ELF header. */
static nvrtcResult n_version(int *major, int *minor) {
  *major = 13, *minor = 0;
  return NVRTC_SUCCESS;
}
static const char *n_error(nvrtcResult r) {
  (void)r;
  return "?";
}
static nvrtcResult n_create(nvrtcProgram *p, const char *source, const char *name, int n,
                            const char *const *h, const char *const *hn) {
  (void)source, (void)name, (void)n, (void)h, (void)hn;
  *p = (nvrtcProgram)&live;
  return NVRTC_SUCCESS;
}
static nvrtcResult n_destroy(nvrtcProgram *p) {
  *p = NULL;
  return NVRTC_SUCCESS;
}
static nvrtcResult n_compile(nvrtcProgram p, int n, const char *const *o) {
  (void)p, (void)n, (void)o;
  return NVRTC_SUCCESS;
}
static nvrtcResult n_size(nvrtcProgram p, size_t *n) {
  (void)p;
  *n = 64;
  return NVRTC_SUCCESS;
}
static nvrtcResult n_get(nvrtcProgram p, char *out) {
  (void)p;
  memset(out, 0, 64);
  memcpy(out, "\177ELF", 4);
  return NVRTC_SUCCESS;
}
static const char ptxas_report[] = "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
                                   "ptxas info    : Used 8 registers\n";
static nvrtcResult n_log_size(nvrtcProgram p, size_t *n) {
  (void)p;
  *n = sizeof ptxas_report;
  return NVRTC_SUCCESS;
}
static nvrtcResult n_log(nvrtcProgram p, char *out) {
  (void)p;
  memcpy(out, ptxas_report, sizeof ptxas_report);
  return NVRTC_SUCCESS;
}
static const struct nvrtc_api fake_nvrtc = {n_version, n_error,    n_create, n_destroy,
                                            n_compile, n_size,     n_get,    n_size,
                                            n_get,     n_log_size, n_log};

/* ---- fixture ---- */

struct fixture {
  struct help_mem mem;
  struct diag_sink diags;
  struct rt_ctx *ctx;
  struct rt_device *dev;
};

static enum rt_status start(struct fixture *f, uint64_t fail_allocation) {
  memset(f, 0, sizeof *f);
  help_fake_start();
  fake.kernels = kernels;
  blas_calls = blas_fail = 0;
  help_mem_init(&f->mem);
  f->mem.fail_at = fail_allocation;
  assert_true(diag_init(&f->diags, &mem_libc));
  enum rt_status status = rt_ctx_new(&f->mem.alloc, &f->diags, NULL, &f->ctx);
  if (status != RT_OK)
    return status;
  rt_use_cuda(f->ctx, &fake_cuda);
  rt_use_nvrtc(f->ctx, &fake_nvrtc, 13, 0);
  rt_use_cublas(f->ctx, &fake_blas, &fake_lt);
  return rt_device_open(f->ctx, 0, &f->dev);
}

static void stop(struct fixture *f) {
  if (f->dev)
    rt_device_close(f->dev);
  if (f->ctx)
    rt_ctx_free(f->ctx);
  assert_int_equal(f->mem.live_blocks, 0);
  assert_int_equal(live, 0);
  help_fake_check();
  diag_free(&f->diags);
}

#define OK(call)                                                                                   \
  do {                                                                                             \
    if ((call) != RT_OK)                                                                           \
      fail_msg("%s: %s", #call, help_last_message(&f.diags));                                      \
  } while (0)

/* A product in host memory (which is the fake GPU's). Layout bits: A, B column-major; 4: gaps. */
struct product {
  struct rt_tensor a, b, c;
  void *pa, *pb, *pc;
};

static struct rt_tensor make_matrix(enum dtype t, int64_t d0, int64_t d1, bool column, bool gap,
                                    uint64_t seed, void **memory) {
  int64_t ld = (column ? d0 : d1) + (gap ? 5 : 0), n = ld * (column ? d1 : d0);
  struct rt_tensor x = {
      .dtype = t, .rank = 2, .dim = {d0, d1}, .stride = {column ? 1 : ld, column ? ld : 1}};
  *memory = NULL;
  assert_int_equal(posix_memalign(memory, 256, (size_t)dtype_bytes(t, n) + 256), 0);
  memset(*memory, RT_POISON_FLOAT, (size_t)dtype_bytes(t, n) + 256);
  if (seed)
    rt_random_fill(RT_FILL_SMALL, seed, 1, t, *memory, 0, n);
  x.data = *memory;
  return x;
}

static struct product make_product(enum dtype in, enum dtype out, int layout, int64_t m, int64_t n,
                                   int64_t k) {
  struct product p;
  p.a = make_matrix(in, m, k, layout & 1, layout & 4, 1, &p.pa);
  p.b = make_matrix(in, k, n, layout & 2, layout & 4, 2, &p.pb);
  p.c = make_matrix(out, m, n, false, layout & 4, 0, &p.pc);
  return p;
}

static void free_product(struct product *p) {
  free(p->pa);
  free(p->pb);
  free(p->pc);
}

static bool is_right(const struct product *p) {
  for (int64_t i = 0; i < p->c.dim[0]; i++)
    for (int64_t j = 0; j < p->c.dim[1]; j++) {
      double sum = 0;
      for (int64_t l = 0; l < p->a.dim[1]; l++)
        sum += num_load(p->a.dtype, p->a.data, i * p->a.stride[0] + l * p->a.stride[1]) *
               num_load(p->b.dtype, p->b.data, l * p->b.stride[0] + j * p->b.stride[1]);
      double got = num_load(p->c.dtype, p->c.data, i * p->c.stride[0] + j * p->c.stride[1]);
      if (got != num_round(p->c.dtype, sum))
        return false;
    }
  return true;
}

/* ---- tests ---- */

static void test_lt_layouts(void **state) {
  (void)state;
  struct fixture f;
  OK(start(&f, 0));
  static const int64_t shapes[][3] = {{5, 7, 3}, {1, 7, 3}, {5, 1, 3}, {5, 7, 1}, {1, 1, 1}};
  static const enum dtype types[][2] = {{DT_BF16, DT_BF16}, {DT_F16, DT_F32},   {DT_F32, DT_F32},
                                        {DT_BF16, DT_F32},  {DT_E4M3, DT_BF16}, {DT_E5M2, DT_F32},
                                        {DT_S8, DT_S32}};
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
    for (int layout = 0; layout < 8; layout++)
      for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        struct product p = make_product(types[t][0], types[t][1], layout, shapes[s][0],
                                        shapes[s][1], shapes[s][2]);
        struct rt_lt_matmul *lt;
        OK(rt_lt_new(f.dev, &p.a, &p.b, &p.c, NULL, &lt));
        assert_int_equal(rt_lt_count(lt), 2); /* the one that is not supported is left out */
        OK(rt_lt_run(lt, 1, NULL));
        assert_true(is_right(&p));
        assert_int_equal(rt_lt_run(lt, 2, NULL), RT_BAD_INPUT);
        rt_lt_free(lt);
        free_product(&p);
      }
  assert_int_equal(last_alignment, 256);
  assert_int_equal(last_reductions & CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE, 0);
  /* Odd addresses are told; the fastest algorithm is found. */
  struct product p = make_product(DT_BF16, DT_BF16, 0, 5, 7, 3);
  p.a.data = (char *)p.a.data + 2;
  struct rt_lt_matmul *lt;
  OK(rt_lt_new(f.dev, &p.a, &p.b, &p.c, NULL, &lt));
  assert_int_equal(last_alignment, 2);
  uint32_t best;
  OK(rt_lt_fastest(lt, &best));
  assert_int_equal(best, 1);
  rt_lt_free(lt);
  /* What cannot be is refused in words. */
  diag_clear(&f.diags);
  struct rt_tensor bad = p.b;
  bad.dim[0] = 4;
  assert_int_equal(rt_lt_new(f.dev, &p.a, &bad, &p.c, NULL, &lt), RT_BAD_INPUT);
  help_expect_diag(&f.diags, DIAG_USAGE, "the shapes do not fit together");
  bad = p.b;
  bad.stride[1] = 2;
  assert_int_equal(rt_lt_new(f.dev, &p.a, &bad, &p.c, NULL, &lt), RT_BAD_INPUT);
  help_expect_diag(&f.diags, DIAG_USAGE, "an input has no stride of 1");
  bad = p.b;
  bad.dtype = DT_S8;
  assert_int_equal(rt_lt_new(f.dev, &p.a, &bad, &p.c, NULL, &lt), RT_BAD_INPUT);
  help_expect_diag(&f.diags, DIAG_USAGE, "these types are supported: bf16, f16 or f32 inputs");
  bad = p.c;
  bad.stride[0] = 1, bad.stride[1] = 5;
  assert_int_equal(rt_lt_new(f.dev, &p.a, &p.b, &bad, NULL, &lt), RT_BAD_INPUT);
  help_expect_diag(&f.diags, DIAG_USAGE, "the output's rows are not contiguous");
  heuristic_found = 0;
  assert_int_equal(rt_lt_new(f.dev, &p.a, &p.b, &p.c, NULL, &lt), RT_FAILED);
  help_expect_diag(&f.diags, DIAG_DRIVER, "cuBLAS has no algorithm");
  heuristic_found = 3;
  free_product(&p);
  stop(&f);
}

static void test_f64(void **state) {
  (void)state;
  struct fixture f;
  OK(start(&f, 0));
  for (int layout = 0; layout < 8; layout++) {
    struct product p = make_product(DT_F64, DT_F64, layout, 6, 9, 4);
    p.c.stride[0] = 9; /* row-major without gaps */
    OK(rt_device_matmul_f64(f.dev, 6, 9, 4, p.a.data, p.a.stride[0], p.a.stride[1], p.b.data,
                            p.b.stride[0], p.b.stride[1], p.c.data, NULL));
    assert_true(is_right(&p));
    free_product(&p);
  }
  assert_int_equal(math_mode, CUBLAS_PEDANTIC_MATH);
  double c[6] = {1, 1, 1, 1, 1, 1};
  OK(rt_device_matmul_f64(f.dev, 2, 3, 0, c, 1, 1, c, 3, 1, c, NULL));
  assert_true(c[0] == 0 && c[5] == 0);
  /* Host in, host out, through the device where it is large. */
  struct product p = make_product(DT_F64, DT_F64, 1, 500, 450, 470);
  OK(rt_matmul_f64(f.ctx, f.dev, 500, 450, 470, p.a.data, p.a.stride[0], p.a.stride[1], p.b.data,
                   p.b.stride[0], p.b.stride[1], p.c.data));
  uint64_t calls = blas_calls;
  double want = 0;
  for (int l = 0; l < 470; l++)
    want += ((double *)p.a.data)[499 + l * 500] * ((double *)p.b.data)[l * 450 + 449];
  assert_true(((double *)p.c.data)[500 * 450 - 1] == want);
  OK(rt_matmul_f64(f.ctx, f.dev, 2, 2, 2, p.a.data, 2, 1, p.b.data, 2, 1, p.c.data));
  assert_int_equal(blas_calls, calls); /* small: on the host */
  free_product(&p);
  stop(&f);
}

/* The oracle from inputs to verdict, with planted errors. */
static void check_oracle(struct fixture *fx, bool exact, int layout) {
  struct fixture f = *fx;
  helper_type = DT_BF16;
  struct product p = make_product(DT_BF16, DT_BF16, layout, 140, 133, 20);
  if (!exact) {
    rt_random_fill(RT_FILL_NORMAL, 5, 1, DT_BF16, p.pa, 0, 140 * 20);
    rt_random_fill(RT_FILL_NORMAL, 6, 1, DT_BF16, p.pb, 0, 133 * 20);
  }
  struct rt_gemm_oracle *o;
  struct rt_verdict v;
  OK(rt_gemm_oracle_new(f.dev, &p.a, &p.b, &p.c, exact, &o));
  OK(rt_gemm_oracle_judge(o, &p.c, &v));
  assert_true(v.rule == RT_RULE_UNWRITTEN && v.n_unwritten == 140 * 133 && v.on_device);
  struct rt_lt_matmul *lt;
  OK(rt_lt_new(f.dev, &p.a, &p.b, &p.c, NULL, &lt));
  OK(rt_lt_run(lt, 0, NULL));
  OK(rt_gemm_oracle_judge(o, &p.c, &v));
  assert_true(v.passed && v.n_first == 4 && v.first_got[2] == num_load(DT_BF16, p.c.data, 2));
  int64_t at = 139 * p.c.stride[0] + 130;
  num_store(DT_BF16, p.c.data, at, num_load(DT_BF16, p.c.data, at) * 1.25 + 5);
  OK(rt_gemm_oracle_judge(o, &p.c, &v));
  assert_true(!v.passed && v.row == 139 && v.col == 130);
  assert_int_equal(v.rule, exact ? RT_RULE_EXACT : RT_RULE_RATIO);
  assert_true(v.got == num_load(DT_BF16, p.c.data, at) && fabs(v.got - v.want) > 3);
  struct rt_tensor other = p.c;
  other.dim[0] = 139;
  assert_int_equal(rt_gemm_oracle_judge(o, &other, &v), RT_BAD_INPUT);
  rt_lt_free(lt);
  rt_gemm_oracle_free(o);
  free_product(&p);
}

static void test_oracle(void **state) {
  (void)state;
  struct fixture f;
  OK(start(&f, 0));
  for (int layout = 0; layout < 4; layout++) {
    check_oracle(&f, false, layout);
    check_oracle(&f, true, layout);
  }
  /* K = 0: the product of nothing is zero; M = 0: there is nothing to judge. */
  struct product p = make_product(DT_BF16, DT_BF16, 0, 3, 4, 0);
  struct rt_gemm_oracle *o;
  struct rt_verdict v;
  OK(rt_gemm_oracle_new(f.dev, &p.a, &p.b, &p.c, false, &o));
  memset(p.pc, 0, 24);
  OK(rt_gemm_oracle_judge(o, &p.c, &v));
  assert_true(v.passed);
  rt_gemm_oracle_free(o);
  p.a.dim[0] = p.c.dim[0] = 0;
  OK(rt_gemm_oracle_new(f.dev, &p.a, &p.b, &p.c, false, &o));
  OK(rt_gemm_oracle_judge(o, &p.c, &v));
  assert_true(v.passed && v.row == -1 && v.n_first == 0);
  rt_gemm_oracle_free(o);
  free_product(&p);
  stop(&f);
}

/* One oracle and one judgement, for the fault loops. */
static enum rt_status one_judgement(struct fixture *f, struct product *p) {
  struct rt_gemm_oracle *o = NULL;
  struct rt_verdict v;
  helper_type = DT_BF16;
  enum rt_status status = rt_gemm_oracle_new(f->dev, &p->a, &p->b, &p->c, false, &o);
  if (status == RT_OK)
    status = rt_gemm_oracle_judge(o, &p->c, &v);
  rt_gemm_oracle_free(o);
  return status;
}

enum fault { FAULT_MEMORY, FAULT_DRIVER, FAULT_BLAS };

static void test_faults(void **state) {
  (void)state;
  struct product p = make_product(DT_BF16, DT_BF16, 0, 10, 12, 8);
  for (int kind = FAULT_MEMORY; kind <= FAULT_BLAS; kind++) {
    bool reached = true;
    uint64_t n = 1;
    for (; reached; n++) {
      struct fixture f;
      enum rt_status status = start(&f, kind == FAULT_MEMORY ? n : 0);
      if (kind == FAULT_DRIVER) {
        fake.calls = 0;
        fake.fail_at = n;
        fake.fail_with = CUDA_ERROR_INVALID_VALUE;
      } else if (kind == FAULT_BLAS) {
        blas_fail = n;
      }
      if (status == RT_OK)
        status = one_judgement(&f, &p);
      reached = kind == FAULT_MEMORY   ? f.mem.calls >= n
                : kind == FAULT_DRIVER ? fake.calls >= n
                                       : blas_calls >= n;
      fake.fail_at = 0;
      assert_int_equal(f.diags.n_errors, status == RT_OK ? 0 : 1);
      /* Of the driver's calls, those that only clean up may fail without harm. */
      assert_true(status != RT_OK || !reached || kind == FAULT_DRIVER);
      if (kind == FAULT_BLAS && reached)
        help_expect_diag(&f.diags, DIAG_DRIVER, "failed: as the test wants (14)");
      stop(&f);
    }
    assert_true(n > 10);
  }
  free_product(&p);
}

/* Without cuBLAS: the reason and the remedy, one error. */
static void test_no_cublas(void **state) {
  (void)state;
  struct product p = make_product(DT_BF16, DT_BF16, 0, 10, 12, 8);
  struct fixture f;
  assert_int_equal(start(&f, 0), RT_OK);
  rt_use_cublas(f.ctx, NULL, NULL);
  assert_int_equal(one_judgement(&f, &p), RT_MISSING);
  help_expect_diag(&f.diags, DIAG_NO_CUBLAS, "hidden");
  assert_int_equal(f.diags.n_errors, 1);
  stop(&f);
  free_product(&p);
}

/* What cublasLt fuses, and which unit it may take, are described as asked for. */
static void test_lt_epilogues(void **state) {
  (void)state;
  struct fixture f;
  OK(start(&f, 0));
  for (int kind = 0; kind < 12; kind++) {
    enum rt_lt_activation activation = (enum rt_lt_activation)(kind % 3);
    bool bias = kind / 3 & 1, residual = kind / 6;
    struct product p = make_product(DT_F32, DT_F32, 0, 5, 7, 3);
    void *bias_memory, *residual_memory;
    struct rt_tensor b = make_matrix(DT_F32, 1, 7, false, false, 3, &bias_memory);
    struct rt_tensor r = make_matrix(DT_F32, 5, 7, false, true, 4, &residual_memory);
    for (int64_t j = 0; j < 7; j++) /* both signs, so that activations show */
      num_store(DT_F32, b.data, j, j % 2 ? 3.5 : -9.5);
    struct rt_lt_options opt = {.tf32 = kind % 2,
                                .bias = bias ? b.data : NULL,
                                .residual = residual ? &r : NULL,
                                .activation = activation};
    struct rt_lt_matmul *lt;
    OK(rt_lt_new(f.dev, &p.a, &p.b, &p.c, &opt, &lt));
    assert_int_equal(last_compute, kind % 2 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F);
    OK(rt_lt_run(lt, 0, NULL));
    for (int64_t i = 0; i < 5; i++)
      for (int64_t j = 0; j < 7; j++) {
        double x = bias ? num_load(DT_F32, b.data, j) : 0;
        x += residual ? num_load(DT_F32, r.data, i * r.stride[0] + j) : 0;
        for (int64_t l = 0; l < 3; l++)
          x += num_load(DT_F32, p.a.data, i * p.a.stride[0] + l) *
               num_load(DT_F32, p.b.data, l * p.b.stride[0] + j);
        double want = activation == RT_LT_RELU ? fmax(x, 0)
                      : activation == RT_LT_GELU_TANH
                          ? 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))
                          : x;
        double got = num_load(DT_F32, p.c.data, i * p.c.stride[0] + j);
        if (fabs(got - want) > 1e-6 * (1 + fabs(want)))
          fail_msg("kind %d at [%d, %d]: %g, not %g", kind, (int)i, (int)j, got, want);
      }
    rt_lt_free(lt);
    struct rt_tensor bad = r;
    bad.dim[0] = 4;
    opt.residual = &bad;
    assert_int_equal(rt_lt_new(f.dev, &p.a, &p.b, &p.c, &opt, &lt), RT_BAD_INPUT);
    help_expect_diag(&f.diags, DIAG_USAGE, "the residual is not like the output");
    diag_clear(&f.diags);
    free(bias_memory);
    free(residual_memory);
    free_product(&p);
  }
  stop(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lt_layouts), cmocka_unit_test(test_lt_epilogues),
      cmocka_unit_test(test_f64),        cmocka_unit_test(test_oracle),
      cmocka_unit_test(test_faults),     cmocka_unit_test(test_no_cublas),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
