/* GPUs: the driver is started, a device's primary context retained, its facts read; modules. */
#include "runtime/internal.h"

#include <stdio.h>

/* Errors before there is a device. */
static enum rt_status driver_failed(struct rt_ctx *ctx, CUresult r, const char *call) {
  struct rt_device none = {.ctx = ctx};
  return rt_cuda_failed(&none, r, "%s", call);
}

static enum rt_status start_driver(struct rt_ctx *ctx) {
  if (ctx->cuda_started)
    return RT_OK;
  enum rt_status status = rt_library_need(ctx, RT_LIB_CUDA);
  if (status != RT_OK)
    return status;
  CUresult r = ctx->cuda.cuInit(0);
  if (r == CUDA_ERROR_NO_DEVICE)
    return rt_fail(ctx, RT_MISSING, DIAG_NO_DRIVER,
                   "the CUDA driver finds no GPU; is one visible to this process "
                   "(CUDA_VISIBLE_DEVICES, container options)?");
  if (r != CUDA_SUCCESS)
    return driver_failed(ctx, r, "cuInit");
  ctx->cuda_started = true;
  return RT_OK;
}

enum rt_status rt_device_count(struct rt_ctx *ctx, int *out) {
  *out = 0;
  enum rt_status status = start_driver(ctx);
  if (status != RT_OK)
    return status;
  CUresult r = ctx->cuda.cuDeviceGetCount(out);
  if (r != CUDA_SUCCESS)
    return driver_failed(ctx, r, "cuDeviceGetCount");
  if (*out == 0)
    return rt_fail(ctx, RT_MISSING, DIAG_NO_DRIVER, "the CUDA driver finds no GPU");
  return RT_OK;
}

/* Architectures whose instructions the `a` variants add to: compute capability 9.0 and up. */
static void name_arch(struct rt_device_info *i) {
  const char *suffix = i->cc_major >= 9 ? "a" : "";
  snprintf(i->arch, sizeof i->arch, "sm_%d%d%s", i->cc_major, i->cc_minor, suffix);
}

/* 8-4-4-4-12 hexadecimal digits, as nvidia-smi prints it. */
static void name_uuid(const CUuuid *u, char out[48]) {
  static const char digits[] = "0123456789abcdef";
  memcpy(out, "GPU-", 4);
  char *p = out + 4;
  for (int i = 0; i < 16; i++) {
    if (i == 4 || i == 6 || i == 8 || i == 10)
      *p++ = '-';
    unsigned byte = (unsigned char)u->bytes[i];
    *p++ = digits[byte >> 4];
    *p++ = digits[byte & 15];
  }
  *p = 0;
}

static enum rt_status read_info(struct rt_device *dev) {
  const struct cuda_api *cuda = &dev->ctx->cuda;
  struct rt_device_info *i = &dev->info;
  int smem_block = 0, smem_sm = 0, reserved = 0, l2 = 0;
  const struct {
    int attribute, *value;
    bool optional;
  } reads[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &i->cc_major, false},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &i->cc_minor, false},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &i->sm_count, false},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &i->max_threads_per_block, false},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &i->max_threads_per_sm, false},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, &i->regs_per_sm, false},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &smem_block, false},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, &smem_sm, false},
      {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, &reserved, true},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &l2, false},
      {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &i->clock_khz, true},
      {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, &i->memory_clock_khz, true},
      {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &i->bus_bits, true},
  };
  for (size_t k = 0; k < sizeof reads / sizeof reads[0]; k++) {
    CUresult r = cuda->cuDeviceGetAttribute(reads[k].value, reads[k].attribute, dev->handle);
    if (r != CUDA_SUCCESS && reads[k].optional)
      *reads[k].value = 0;
    else if (r != CUDA_SUCCESS)
      return rt_cuda_failed(dev, r, "cuDeviceGetAttribute(%d)", reads[k].attribute);
  }
  i->smem_per_block_optin = (size_t)smem_block;
  i->smem_per_sm = (size_t)smem_sm;
  i->smem_reserved = (size_t)reserved;
  i->l2_bytes = (size_t)l2;
  CUuuid uuid;
  CUresult r = cuda->cuDeviceGetName(i->name, sizeof i->name, dev->handle);
  if (r == CUDA_SUCCESS)
    r = cuda->cuDeviceTotalMem(&i->memory_bytes, dev->handle);
  if (r == CUDA_SUCCESS)
    r = cuda->cuDriverGetVersion(&i->driver_version);
  if (r != CUDA_SUCCESS)
    return rt_cuda_failed(dev, r, "reading the facts of GPU %d", dev->ordinal);
  i->name[sizeof i->name - 1] = 0;
  if (cuda->cuDeviceGetUuid(&uuid, dev->handle) == CUDA_SUCCESS)
    name_uuid(&uuid, i->uuid);
  if (cuda->cuDeviceGetPCIBusId(i->pci, sizeof i->pci, dev->handle) != CUDA_SUCCESS)
    i->pci[0] = 0;
  name_arch(i);
  return RT_OK;
}

enum rt_status rt_device_open(struct rt_ctx *ctx, int ordinal, struct rt_device **out) {
  *out = NULL;
  int count;
  enum rt_status status = rt_device_count(ctx, &count);
  if (status != RT_OK)
    return status;
  if (ordinal < 0 || ordinal >= count)
    return rt_fail(ctx, RT_BAD_INPUT, DIAG_NO_DRIVER, "there is no GPU %d: the driver has %d",
                   ordinal, count);
  struct rt_device *dev = mem_get0(&ctx->mem, sizeof *dev);
  if (!dev)
    return rt_no_memory(ctx);
  dev->ctx = ctx;
  dev->ordinal = ordinal;
  CUresult r = ctx->cuda.cuDeviceGet(&dev->handle, ordinal);
  if (r != CUDA_SUCCESS) {
    status = rt_cuda_failed(dev, r, "cuDeviceGet(%d)", ordinal);
  } else if ((status = read_info(dev)) == RT_OK) {
    r = ctx->cuda.cuDevicePrimaryCtxRetain(&dev->context, dev->handle);
    if (r == CUDA_SUCCESS) {
      *out = dev;
      return RT_OK;
    }
    status = rt_cuda_failed(dev, r, "cuDevicePrimaryCtxRetain(GPU %d)", ordinal);
  }
  mem_drop(&ctx->mem, dev, sizeof *dev);
  return status;
}

void rt_device_close(struct rt_device *dev) {
  if (!dev)
    return;
  const struct cuda_api *cuda = &dev->ctx->cuda;
  /* A dead context takes everything with it when it is released; touching it again only fails. */
  if (!dev->dead) {
    cuda->cuCtxSetCurrent(dev->context);
    rt_timing_close(dev);
    rt_blas_close(dev);
    if (dev->stream)
      cuda->cuStreamDestroy(dev->stream);
  }
  rt_helpers_free(dev);
  cuda->cuDevicePrimaryCtxRelease(dev->handle);
  struct mem_alloc mem = dev->ctx->mem;
  mem_drop(&mem, dev, sizeof *dev);
}

const struct rt_device_info *rt_device_info(const struct rt_device *dev) {
  return &dev->info;
}

bool rt_device_is_dead(const struct rt_device *dev) {
  return dev->dead;
}

enum rt_status rt_device_stream(struct rt_device *dev, rt_stream *out) {
  *out = NULL;
  enum rt_status status = rt_enter(dev);
  if (status != RT_OK)
    return status;
  if (!dev->stream) {
    CUresult r = dev->ctx->cuda.cuStreamCreate(&dev->stream, CU_STREAM_NON_BLOCKING);
    if (r != CUDA_SUCCESS)
      return rt_cuda_failed(dev, r, "cuStreamCreate");
  }
  *out = dev->stream;
  return RT_OK;
}

enum rt_status rt_device_sync(struct rt_device *dev) {
  enum rt_status status = rt_enter(dev);
  if (status != RT_OK)
    return status;
  CUresult r = dev->ctx->cuda.cuCtxSynchronize();
  return r == CUDA_SUCCESS ? RT_OK : rt_cuda_failed(dev, r, "waiting for GPU %d", dev->ordinal);
}

enum rt_status rt_stream_sync(struct rt_device *dev, rt_stream stream) {
  enum rt_status status = rt_enter(dev);
  if (status != RT_OK)
    return status;
  CUresult r = dev->ctx->cuda.cuStreamSynchronize(stream);
  return r == CUDA_SUCCESS ? RT_OK
                           : rt_cuda_failed(dev, r, "waiting for a stream of GPU %d", dev->ordinal);
}

bool rt_stream_is_capturing(struct rt_device *dev, rt_stream stream) {
  int status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (dev->dead || dev->ctx->cuda.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS)
    return false;
  return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

enum rt_status rt_module_load(struct rt_device *dev, const void *cubin, size_t size,
                              struct rt_module **out) {
  *out = NULL;
  struct rt_ctx *ctx = dev->ctx;
  enum rt_status status = rt_enter(dev);
  if (status != RT_OK)
    return status;
  /* The driver reads as far as the image's own headers say: refuse what is not even an ELF file. */
  if (size < 64 || memcmp(cubin, "\177ELF", 4) != 0)
    return rt_fail(ctx, RT_BAD_INPUT, DIAG_DRIVER, "not a cubin: %zu bytes without an ELF header",
                   size);
  struct rt_module *m = mem_get0(&ctx->mem, sizeof *m);
  if (!m)
    return rt_no_memory(ctx);
  m->dev = dev;
  CUresult r = ctx->cuda.cuModuleLoadData(&m->handle, cubin);
  if (r != CUDA_SUCCESS) {
    status = rt_cuda_failed(dev, r, "loading a cubin on %s (%s)", dev->info.name, dev->info.arch);
    if (r == CUDA_ERROR_NO_BINARY_FOR_GPU || r == CUDA_ERROR_INVALID_IMAGE)
      diag_note(
          ctx->diags, DIAG_NOWHERE,
          "a cubin loads only on the architecture it was compiled for, with a driver at least "
          "as new as the compiler");
    mem_drop(&ctx->mem, m, sizeof *m);
    return status;
  }
  *out = m;
  return RT_OK;
}

void rt_module_free(struct rt_module *m) {
  if (!m)
    return;
  if (!m->dev->dead) {
    m->dev->ctx->cuda.cuCtxSetCurrent(m->dev->context);
    m->dev->ctx->cuda.cuModuleUnload(m->handle);
  }
  mem_drop(&m->dev->ctx->mem, m, sizeof *m);
}
