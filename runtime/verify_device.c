/* Verification of large products without leaving the GPU.
 *
 * Made once per input: R = A B and |A||B| through cublasDgemm on the inputs converted to double,
 * and cublasLt's own result as the baseline. Each candidate's output is then compared by one
 * kernel that gives 144 bytes of statistics per 128 x 128 block; the verdict over them is the
 * host's own. */
#include "runtime/internal.h"
#include "runtime/random.h"
#include "runtime/verify.h"

#include "base/num.h"

struct rt_gemm_oracle {
  struct rt_device *dev;
  rt_stream stream;
  enum dtype dtype; /* of the outputs to judge */
  int64_t m, n, k;
  bool exact;
  struct rt_buffer *ref, *base, *bound; /* f64 [m, n] */
  struct rt_buffer *stats;
  struct rt_block_stats *host_stats;
  int64_t blocks_m, blocks_n;
};

/* Enqueues a helper kernel over a one-dimensional range of `work` elements. */
static enum rt_status launch_1d(struct rt_device *dev, CUfunction f, int64_t work, void **params,
                                CUstream stream) {
  int64_t blocks = (work + 255) / 256;
  CUlaunchConfig config = {.gridDimX = (unsigned)(blocks > 65536 ? 65536 : blocks),
                           .gridDimY = 1,
                           .gridDimZ = 1,
                           .blockDimX = 256,
                           .blockDimY = 1,
                           .blockDimZ = 1,
                           .hStream = stream};
  CUresult r = dev->ctx->cuda.cuLaunchKernelEx(&config, f, params, NULL);
  return r == CUDA_SUCCESS ? RT_OK : rt_cuda_failed(dev, r, "launching a helper kernel");
}

/* dst[rows, cols] row-major = |src| or src, in double. */
static enum rt_status to_f64(struct rt_device *dev, struct rt_buffer *dst,
                             const struct rt_tensor *src, bool absolute, CUstream stream) {
  CUfunction f;
  enum rt_status status = rt_helper_function(dev, RT_HELPER_TO_F64, src->dtype, &f);
  int64_t work = src->dim[0] * src->dim[1];
  if (status != RT_OK || work == 0)
    return status;
  void *to = rt_buffer_data(dst);
  const void *from = src->data;
  long long rows = src->dim[0], cols = src->dim[1], s0 = src->stride[0], s1 = src->stride[1];
  int flag = absolute;
  void *params[] = {&to, &from, &rows, &cols, &s0, &s1, &flag};
  return launch_1d(dev, f, work, params, stream);
}

static enum rt_status f64_buffer(struct rt_device *dev, const char *name, int64_t elements,
                                 struct rt_buffer **out) {
  return rt_buffer_new(dev, name, (size_t)elements * sizeof(double), out);
}

/* ref and bound, through doubles of both inputs that live only here. */
static enum rt_status make_references(struct rt_gemm_oracle *o, const struct rt_tensor *a,
                                      const struct rt_tensor *b) {
  struct rt_buffer *wide_a = NULL, *wide_b = NULL;
  enum rt_status status = f64_buffer(o->dev, "A in double", o->m * o->k, &wide_a);
  if (status == RT_OK)
    status = f64_buffer(o->dev, "B in double", o->k * o->n, &wide_b);
  for (int absolute = 0; absolute < (o->exact ? 1 : 2) && status == RT_OK; absolute++) {
    struct rt_buffer **result = absolute ? &o->bound : &o->ref;
    status = f64_buffer(o->dev, absolute ? "|A||B|" : "the reference", o->m * o->n, result);
    if (status == RT_OK)
      status = to_f64(o->dev, wide_a, a, absolute, o->stream);
    if (status == RT_OK)
      status = to_f64(o->dev, wide_b, b, absolute, o->stream);
    if (status == RT_OK)
      status =
          rt_device_matmul_f64(o->dev, o->m, o->n, o->k, rt_buffer_data(wide_a), o->k, 1,
                               rt_buffer_data(wide_b), o->n, 1, rt_buffer_data(*result), o->stream);
  }
  if (status == RT_OK)
    status = rt_stream_sync(o->dev, o->stream); /* the doubles are in use until then */
  rt_buffer_free(wide_a);
  rt_buffer_free(wide_b);
  return status;
}

static enum rt_status make_baseline(struct rt_gemm_oracle *o, const struct rt_tensor *a,
                                    const struct rt_tensor *b) {
  enum rt_status status = f64_buffer(o->dev, "the baseline", o->m * o->n, &o->base);
  if (status == RT_OK && o->k == 0) /* an empty sum */
    return rt_buffer_fill(o->base, 0, o->stream);
  struct rt_buffer *narrow = NULL;
  struct rt_lt_matmul *lt = NULL;
  struct rt_tensor c = {.dtype = o->dtype, .rank = 2, .dim = {o->m, o->n}};
  rt_tensor_contiguous(&c);
  if (status == RT_OK)
    status = rt_buffer_new(o->dev, "cuBLAS' output", (size_t)dtype_bytes(o->dtype, o->m * o->n),
                           &narrow);
  if (status == RT_OK) {
    c.data = rt_buffer_data(narrow);
    status = rt_buffer_poison(narrow, o->dtype, o->stream);
  }
  if (status == RT_OK)
    status = rt_lt_new(o->dev, a, b, &c, NULL, &lt);
  if (status == RT_OK)
    status = rt_lt_run(lt, 0, o->stream);
  if (status == RT_OK)
    status = to_f64(o->dev, o->base, &c, false, o->stream);
  if (status == RT_OK)
    status = rt_stream_sync(o->dev, o->stream);
  rt_lt_free(lt);
  rt_buffer_free(narrow);
  return status;
}

enum rt_status rt_gemm_oracle_new(struct rt_device *dev, const struct rt_tensor *a,
                                  const struct rt_tensor *b, const struct rt_tensor *out_like,
                                  bool exact, struct rt_gemm_oracle **out) {
  *out = NULL;
  struct rt_ctx *ctx = dev->ctx;
  if (a->rank != 2 || b->rank != 2 || out_like->rank != 2 || a->dim[1] != b->dim[0] ||
      out_like->dim[0] != a->dim[0] || out_like->dim[1] != b->dim[1])
    return rt_fail(ctx, RT_BAD_INPUT, DIAG_USAGE, "a product's shapes do not fit together");
  struct rt_gemm_oracle *o = mem_get0(&ctx->mem, sizeof *o);
  if (!o)
    return rt_no_memory(ctx);
  o->dev = dev;
  o->dtype = out_like->dtype;
  o->m = a->dim[0];
  o->n = b->dim[1];
  o->k = a->dim[1];
  o->exact = exact;
  o->blocks_m = (o->m + RT_BLOCK - 1) / RT_BLOCK;
  o->blocks_n = (o->n + RT_BLOCK - 1) / RT_BLOCK;
  size_t bytes = (size_t)(o->blocks_m * o->blocks_n) * sizeof *o->host_stats;
  o->host_stats = mem_get(&ctx->mem, bytes);
  enum rt_status status = o->host_stats ? rt_device_stream(dev, &o->stream) : rt_no_memory(ctx);
  if (status == RT_OK)
    status = rt_buffer_new(dev, "block statistics", bytes, &o->stats);
  if (status == RT_OK && o->m > 0 && o->n > 0) {
    status = make_references(o, a, b);
    if (status == RT_OK && !exact)
      status = make_baseline(o, a, b);
  }
  if (status == RT_OK)
    *out = o;
  else
    rt_gemm_oracle_free(o);
  return status;
}

void rt_gemm_oracle_free(struct rt_gemm_oracle *o) {
  if (!o)
    return;
  rt_buffer_free(o->ref);
  rt_buffer_free(o->base);
  rt_buffer_free(o->bound);
  rt_buffer_free(o->stats);
  mem_drop(&o->dev->ctx->mem, o->host_stats,
           (size_t)(o->blocks_m * o->blocks_n) * sizeof *o->host_stats);
  mem_drop(&o->dev->ctx->mem, o, sizeof *o);
}

/* As `struct judge` of the compare kernel. */
struct judge_params {
  const void *out, *ref, *base, *bound;
  int64_t rows, cols, s0, s1;
  double gamma, unit, half_tiny, limit;
  int64_t exact;
};

static const void *data_of(const struct rt_buffer *b) {
  return b ? rt_buffer_data(b) : NULL;
}

static enum rt_status launch_compare(struct rt_gemm_oracle *o, const struct rt_tensor *c) {
  CUfunction f;
  enum rt_status status = rt_helper_function(o->dev, RT_HELPER_COMPARE, o->dtype, &f);
  if (status != RT_OK)
    return status;
  struct judge_params q = {.out = c->data,
                           .ref = data_of(o->ref),
                           .base = data_of(o->base),
                           .bound = data_of(o->bound),
                           .rows = o->m,
                           .cols = o->n,
                           .s0 = c->stride[0],
                           .s1 = c->stride[1],
                           .gamma = rt_gamma(o->k, DT_F32),
                           .unit = num_unit(o->dtype),
                           .half_tiny = num_tiny(o->dtype) / 2,
                           .limit = num_max(o->dtype) * (1 - 4 * num_unit(o->dtype)),
                           .exact = o->exact};
  if (!dtype_is_float(o->dtype))
    q.half_tiny = 0.5;
  void *stats = rt_buffer_data(o->stats);
  void *params[] = {&stats, &q};
  CUlaunchConfig config = {.gridDimX = (unsigned)o->blocks_n,
                           .gridDimY = (unsigned)o->blocks_m,
                           .gridDimZ = 1,
                           .blockDimX = 256,
                           .blockDimY = 1,
                           .blockDimZ = 1,
                           .hStream = o->stream};
  CUresult r = o->dev->ctx->cuda.cuLaunchKernelEx(&config, f, params, NULL);
  return r == CUDA_SUCCESS ? RT_OK : rt_cuda_failed(o->dev, r, "launching the comparison");
}

/* One element of the output and of the reference. */
static enum rt_status fetch(struct rt_gemm_oracle *o, const struct rt_tensor *c, int64_t i,
                            int64_t j, double *got, double *want) {
  size_t size = dtype_bits(o->dtype) / 8;
  uint64_t cell = 0;
  int64_t offset = (i * c->stride[0] + j * c->stride[1]) * (int64_t)size;
  CUdeviceptr at = (CUdeviceptr)(uintptr_t)c->data + (CUdeviceptr)offset;
  CUresult r = o->dev->ctx->cuda.cuMemcpyDtoH(&cell, at, size);
  if (r != CUDA_SUCCESS)
    return rt_cuda_failed(o->dev, r, "reading an output");
  *got = num_load(o->dtype, &cell, 0);
  return rt_buffer_download(o->ref, (size_t)(i * o->n + j) * sizeof(double), want, sizeof *want);
}

enum rt_status rt_gemm_oracle_judge(struct rt_gemm_oracle *o, const struct rt_tensor *c,
                                    struct rt_verdict *verdict) {
  int64_t blocks = o->blocks_m * o->blocks_n;
  memset(verdict, 0, sizeof *verdict);
  if (c->rank != 2 || c->dtype != o->dtype || c->dim[0] != o->m || c->dim[1] != o->n)
    return rt_fail(o->dev->ctx, RT_BAD_INPUT, DIAG_USAGE,
                   "the output to judge has another dtype or shape than the reference");
  enum rt_status status = rt_device_sync(o->dev); /* the output may come from any stream */
  if (status == RT_OK && blocks > 0)
    status = launch_compare(o, c);
  if (status == RT_OK)
    status = rt_buffer_download(o->stats, 0, o->host_stats, rt_buffer_bytes(o->stats));
  if (status != RT_OK)
    return status;
  rt_judge(o->dtype, o->m, o->n, o->exact, o->base != NULL, o->bound != NULL, o->host_stats, blocks,
           verdict);
  verdict->on_device = true;
  if (verdict->row >= 0)
    status = fetch(o, c, verdict->row, verdict->col, &verdict->got, &verdict->want);
  for (int64_t e = 0; e < RT_VERIFY_FIRST && e < o->m * o->n && status == RT_OK; e++) {
    uint32_t at = verdict->n_first++;
    status = fetch(o, c, e / o->n, e % o->n, &verdict->first_got[at], &verdict->first_want[at]);
  }
  return status;
}

/* ---- random inputs on the device ---- */

/* Types that have no device helper are made on the host, in pieces. */
static enum rt_status fill_by_host(struct rt_buffer *b, enum rt_fill fill, uint64_t seed,
                                   double scale, enum dtype t, int64_t n) {
  struct rt_device *dev = rt_buffer_device(b);
  enum { PIECE = 1 << 18 };
  size_t size = (size_t)dtype_bytes(t, PIECE);
  unsigned char *piece = mem_get(&dev->ctx->mem, size);
  if (!piece)
    return rt_no_memory(dev->ctx);
  enum rt_status status = RT_OK;
  for (int64_t first = 0; first < n && status == RT_OK; first += PIECE) {
    int64_t count = n - first < PIECE ? n - first : PIECE;
    for (int64_t i = 0; i < count; i++)
      num_store(t, piece, i, rt_random(fill, seed, (uint64_t)(first + i)) * scale);
    status =
        rt_buffer_upload(b, (size_t)dtype_bytes(t, first), piece, (size_t)dtype_bytes(t, count));
  }
  mem_drop(&dev->ctx->mem, piece, size);
  return status;
}

enum rt_status rt_random_fill_device(struct rt_buffer *b, enum rt_fill fill, uint64_t seed,
                                     double scale, enum dtype t, int64_t n) {
  struct rt_device *dev = rt_buffer_device(b);
  if (n < 0 || (uint64_t)dtype_bytes(t, n) > rt_buffer_bytes(b))
    return rt_fail(dev->ctx, RT_BAD_INPUT, DIAG_USAGE, "filling more elements than a buffer has");
  if (n == 0)
    return RT_OK;
  bool there =
      t == DT_F32 || t == DT_F64 || t == DT_BF16 || t == DT_F16 || t == DT_S8 || t == DT_S32;
  if (fill == RT_FILL_ZERO || !there)
    return fill_by_host(b, fill, seed, scale, t, n);
  CUfunction f;
  rt_stream stream;
  enum rt_status status = rt_device_stream(dev, &stream);
  if (status == RT_OK)
    status = rt_helper_function(dev, RT_HELPER_FILL, t, &f);
  if (status != RT_OK)
    return status;
  void *to = rt_buffer_data(b);
  long long count = n;
  unsigned long long base = rt_random_base(seed);
  int is_small = fill == RT_FILL_SMALL;
  void *params[] = {&to, &count, &base, &is_small, &scale};
  status = launch_1d(dev, f, n, params, stream);
  return status == RT_OK ? rt_stream_sync(dev, stream) : status;
}
