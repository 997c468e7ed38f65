/* Device memory with guard bands, so that a kernel that writes past its arguments is caught:
 *
 *   | 4096 B of 0xff | bytes, rounded up to 4096 with 0xff | 4096 B of 0xff |
 *
 * The back guard begins at the first byte past the end, whatever its alignment. */
#include "runtime/internal.h"

struct rt_buffer {
  struct rt_device *dev;
  char *name;
  size_t name_size;
  CUdeviceptr base; /* start of the front guard */
  size_t bytes, total;
};

enum rt_status rt_buffer_new(struct rt_device *dev, const char *name, size_t bytes,
                             struct rt_buffer **out) {
  *out = NULL;
  struct rt_ctx *ctx = dev->ctx;
  enum rt_status status = rt_enter(dev);
  if (status != RT_OK)
    return status;
  if (bytes > SIZE_MAX / 2)
    return rt_fail(ctx, RT_NO_MEMORY, DIAG_NO_MEMORY, "%s: %zu bytes is too much", name, bytes);
  struct rt_buffer *b = mem_get0(&ctx->mem, sizeof *b);
  if (!b)
    return rt_no_memory(ctx);
  b->dev = dev;
  b->bytes = bytes;
  b->total = (bytes + RT_GUARD_BYTES - 1) / RT_GUARD_BYTES * RT_GUARD_BYTES + 2 * RT_GUARD_BYTES;
  b->name = mem_strdup(&ctx->mem, name);
  if (!b->name) {
    mem_drop(&ctx->mem, b, sizeof *b);
    return rt_no_memory(ctx);
  }
  b->name_size = strlen(b->name) + 1;
  CUresult r = ctx->cuda.cuMemAlloc(&b->base, b->total);
  if (r != CUDA_SUCCESS) {
    status = rt_cuda_failed(dev, r, "allocating %zu bytes on the GPU for %s", bytes, name);
    rt_buffer_free(b);
    return status;
  }
  size_t tail = b->total - RT_GUARD_BYTES - bytes;
  r = ctx->cuda.cuMemsetD8Async(b->base, 0xff, RT_GUARD_BYTES, NULL);
  if (r == CUDA_SUCCESS)
    r = ctx->cuda.cuMemsetD8Async(b->base + RT_GUARD_BYTES + bytes, 0xff, tail, NULL);
  if (r == CUDA_SUCCESS) /* other streams do not wait for the default stream */
    r = ctx->cuda.cuStreamSynchronize(NULL);
  if (r != CUDA_SUCCESS) {
    status = rt_cuda_failed(dev, r, "setting the guards of %s", name);
    rt_buffer_free(b);
    return status;
  }
  *out = b;
  return RT_OK;
}

void rt_buffer_free(struct rt_buffer *b) {
  if (!b)
    return;
  struct rt_ctx *ctx = b->dev->ctx;
  if (b->base && !b->dev->dead) {
    ctx->cuda.cuCtxSetCurrent(b->dev->context);
    ctx->cuda.cuMemFree(b->base); /* tried whatever the above gave */
  }
  mem_drop(&ctx->mem, b->name, b->name_size);
  mem_drop(&ctx->mem, b, sizeof *b);
}

void *rt_buffer_data(const struct rt_buffer *b) {
  return (void *)(uintptr_t)(b->base + RT_GUARD_BYTES);
}

struct rt_device *rt_buffer_device(const struct rt_buffer *b) {
  return b->dev;
}

size_t rt_buffer_bytes(const struct rt_buffer *b) {
  return b->bytes;
}

/* Enters the device and checks that [offset, offset + bytes) is inside. */
static enum rt_status begin(const struct rt_buffer *b, size_t offset, size_t bytes) {
  if (offset > b->bytes || bytes > b->bytes - offset)
    return rt_fail(b->dev->ctx, RT_BAD_INPUT, DIAG_USAGE,
                   "copying %zu bytes at offset %zu of %s, which has %zu", bytes, offset, b->name,
                   b->bytes);
  return rt_enter(b->dev);
}

enum rt_status rt_buffer_upload(struct rt_buffer *b, size_t offset, const void *src, size_t bytes) {
  enum rt_status status = begin(b, offset, bytes);
  if (status != RT_OK || bytes == 0)
    return status;
  CUresult r = b->dev->ctx->cuda.cuMemcpyHtoD(b->base + RT_GUARD_BYTES + offset, src, bytes);
  if (r == CUDA_SUCCESS) /* small copies return before they are done */
    r = b->dev->ctx->cuda.cuStreamSynchronize(NULL);
  return r == CUDA_SUCCESS ? RT_OK
                           : rt_cuda_failed(b->dev, r, "copying %zu bytes to %s", bytes, b->name);
}

enum rt_status rt_buffer_download(const struct rt_buffer *b, size_t offset, void *dst,
                                  size_t bytes) {
  enum rt_status status = begin(b, offset, bytes);
  if (status != RT_OK || bytes == 0)
    return status;
  /* Kiln's streams do not synchronise with the default stream: wait for all of them. */
  CUresult r = b->dev->ctx->cuda.cuCtxSynchronize();
  if (r == CUDA_SUCCESS)
    r = b->dev->ctx->cuda.cuMemcpyDtoH(dst, b->base + RT_GUARD_BYTES + offset, bytes);
  return r == CUDA_SUCCESS ? RT_OK
                           : rt_cuda_failed(b->dev, r, "copying %zu bytes from %s", bytes, b->name);
}

enum rt_status rt_buffer_copy(struct rt_buffer *to, const struct rt_buffer *from, size_t bytes,
                              rt_stream stream) {
  enum rt_status status = begin(to, 0, bytes);
  if (status == RT_OK)
    status = begin(from, 0, bytes);
  if (status != RT_OK || bytes == 0)
    return status;
  CUresult r = to->dev->ctx->cuda.cuMemcpyDtoDAsync(to->base + RT_GUARD_BYTES,
                                                    from->base + RT_GUARD_BYTES, bytes, stream);
  return r == CUDA_SUCCESS ? RT_OK
                           : rt_cuda_failed(to->dev, r, "copying %zu bytes from %s to %s", bytes,
                                            from->name, to->name);
}

enum rt_status rt_buffer_fill(struct rt_buffer *b, unsigned char byte, rt_stream stream) {
  enum rt_status status = rt_enter(b->dev);
  if (status != RT_OK || b->bytes == 0)
    return status;
  CUresult r = b->dev->ctx->cuda.cuMemsetD8Async(b->base + RT_GUARD_BYTES, byte, b->bytes, stream);
  return r == CUDA_SUCCESS ? RT_OK : rt_cuda_failed(b->dev, r, "filling %s", b->name);
}

enum rt_status rt_buffer_poison(struct rt_buffer *b, enum dtype t, rt_stream stream) {
  return rt_buffer_fill(b, rt_poison_byte(t), stream);
}

enum rt_status rt_buffer_check_guards(struct rt_buffer *b) {
  enum rt_status status = rt_enter(b->dev);
  if (status != RT_OK)
    return status;
  struct rt_ctx *ctx = b->dev->ctx;
  unsigned char guard[2 * RT_GUARD_BYTES];
  CUresult r = ctx->cuda.cuCtxSynchronize();
  for (int side = 0; side < 2 && r == CUDA_SUCCESS; side++) {
    CUdeviceptr at = side ? b->base + RT_GUARD_BYTES + b->bytes : b->base;
    size_t n = side ? b->total - RT_GUARD_BYTES - b->bytes : RT_GUARD_BYTES;
    r = ctx->cuda.cuMemcpyDtoH(guard, at, n);
    for (size_t i = 0; i < n && r == CUDA_SUCCESS; i++) {
      /* Before the buffer the byte nearest to it is looked at first: it is what tells most. */
      size_t k = side ? i : n - 1 - i;
      if (guard[k] != 0xff)
        return rt_fail(ctx, RT_FAILED, DIAG_GUARD,
                       "%s: memory outside it was written, %zu bytes %s (it has %zu bytes)",
                       b->name, side ? k : n - k, side ? "past its end" : "before its start",
                       b->bytes);
    }
  }
  return r == CUDA_SUCCESS ? RT_OK : rt_cuda_failed(b->dev, r, "reading the guards of %s", b->name);
}
