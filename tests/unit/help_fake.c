/* See help_fake.h. */
#include "help_fake.h"

#include <stdlib.h>
#include <string.h>

struct fake_gpu fake;

/* Buffers from here on are there to flush L2 with: nobody reads them, so they are not filled. */
#define LARGE ((size_t)16 << 20)

struct op {                         /* of a captured graph */
  const struct fake_kernel *kernel; /* NULL: memset, or a copy where src is given */
  struct fake_launch launch;
  CUdeviceptr dst, src;
  unsigned char value;
  size_t n;
  struct op *next;
};
struct CUgraph_st {
  struct op *first, *last;
};
struct CUgraphExec_st {
  const struct CUgraph_st *graph;
};
struct CUstream_st {
  struct CUgraph_st *capture;
};
struct CUevent_st {
  double us;
};
struct CUmod_st {
  int unused;
};
struct CUctx_st {
  int unused;
};

static struct CUctx_st contexts[FAKE_MAX_DEVICES];
static CUcontext current;

/* What a context that is lost takes with it when it is released. */
static void *live[1024];
static int n_live;

static void *track(void *p) {
  assert_true(p && n_live < 1024);
  return live[n_live++] = p;
}

static void untrack(void *p) {
  for (int i = 0; i < n_live; i++)
    if (live[i] == p) {
      live[i] = live[--n_live];
      free(p);
      return;
    }
  fail_msg("%s", "something is freed that is not alive");
}

static void *fresh(size_t size) {
  return track(calloc(1, size));
}

/* Every call passes here first. */
static CUresult enter(const char *name) {
  if (!fake.fail_call || strcmp(fake.fail_call, name) == 0)
    if (++fake.calls == fake.fail_at) {
      if (fake.fail_with >= 700 && fake.fail_with < 720)
        fake.sticky = fake.fail_with;
      return fake.fail_with;
    }
  return fake.sticky;
}
#define ENTER(name)                                                                                \
  do {                                                                                             \
    CUresult entered = enter(name);                                                                \
    if (entered)                                                                                   \
      return entered;                                                                              \
  } while (0)

static CUresult f_init(unsigned flags) {
  (void)flags;
  ENTER("cuInit");
  return fake.n_devices ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}
static CUresult f_version(int *v) {
  *v = 13000;
  return CUDA_SUCCESS;
}
static CUresult f_error_name(CUresult e, const char **text) {
  *text = e == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : e == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
                                          : "CUDA_ERROR_FAKE";
  return CUDA_SUCCESS;
}
static CUresult f_error_string(CUresult e, const char **text) {
  (void)e;
  *text = "as the test wants";
  return CUDA_SUCCESS;
}
static CUresult f_count(int *n) {
  ENTER("cuDeviceGetCount");
  *n = fake.n_devices;
  return CUDA_SUCCESS;
}
static CUresult f_get(CUdevice *d, int ordinal) {
  ENTER("cuDeviceGet");
  *d = ordinal;
  return CUDA_SUCCESS;
}
static CUresult f_name(char *name, int len, CUdevice d) {
  ENTER("cuDeviceGetName");
  snprintf(name, (size_t)len, d ? "Fake GPU %d" : "Fake GPU", d);
  return CUDA_SUCCESS;
}
static CUresult f_uuid(CUuuid *u, CUdevice d) {
  (void)d;
  ENTER("cuDeviceGetUuid");
  for (int i = 0; i < 16; i++)
    u->bytes[i] = (char)(i * 17);
  return CUDA_SUCCESS;
}
static CUresult f_memory(size_t *bytes, CUdevice d) {
  (void)d;
  ENTER("cuDeviceTotalMem");
  *bytes = (size_t)80 << 30;
  return CUDA_SUCCESS;
}
static CUresult f_attribute(int *v, int attribute, CUdevice d) {
  ENTER("cuDeviceGetAttribute");
  bool other = d == 1 && fake.other_cc_major;
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *v = other ? fake.other_cc_major : fake.cc_major;
    break;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *v = other ? fake.other_cc_minor : fake.cc_minor;
    break;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *v = 132; break;
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *v = 1024; break;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *v = 232448; break;
  case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *v = 1 << 20; break;
  default: *v = attribute;
  }
  return CUDA_SUCCESS;
}
static CUresult f_pci(char *id, int len, CUdevice d) {
  (void)d;
  ENTER("cuDeviceGetPCIBusId");
  snprintf(id, (size_t)len, "0000:17:00.0");
  return CUDA_SUCCESS;
}
static CUresult f_retain(CUcontext *c, CUdevice d) {
  ENTER("cuDevicePrimaryCtxRetain");
  assert_true(d >= 0 && d < FAKE_MAX_DEVICES);
  *c = &contexts[d];
  fake.retained++;
  return CUDA_SUCCESS;
}
static CUresult f_release(CUdevice d) {
  (void)d;
  fake.retained--;
  current = NULL;
  while (fake.sticky && n_live)
    untrack(live[0]);
  return CUDA_SUCCESS;
}
static CUresult f_get_current(CUcontext *c) {
  ENTER("cuCtxGetCurrent");
  *c = current;
  return CUDA_SUCCESS;
}
static CUresult f_set_current(CUcontext c) {
  ENTER("cuCtxSetCurrent");
  current = c;
  return CUDA_SUCCESS;
}
static CUresult f_sync(void) {
  ENTER("cuCtxSynchronize");
  return CUDA_SUCCESS;
}
static CUresult f_load(CUmodule *m, const void *image) {
  (void)image;
  ENTER("cuModuleLoadData");
  *m = fresh(sizeof **m);
  fake.live_modules++;
  return CUDA_SUCCESS;
}
static CUresult f_unload(CUmodule m) {
  untrack(m);
  fake.live_modules--;
  return CUDA_SUCCESS;
}
static CUresult f_function(CUfunction *f, CUmodule m, const char *name) {
  (void)m;
  ENTER("cuModuleGetFunction");
  for (const struct fake_kernel *k = fake.kernels; k && k->name; k++)
    if (strcmp(k->name, name) == 0) {
      *f = (CUfunction)(uintptr_t)k;
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_NOT_FOUND;
}
static CUresult f_func_set(CUfunction f, int attribute, int value) {
  (void)f;
  ENTER("cuFuncSetAttribute");
  fake.attributes[attribute] = value;
  return CUDA_SUCCESS;
}
static CUresult f_func_get(int *v, int attribute, CUfunction f) {
  (void)f;
  ENTER("cuFuncGetAttribute");
  *v = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? fake.max_threads : fake.static_smem;
  return CUDA_SUCCESS;
}
static CUresult f_alloc(CUdeviceptr *p, size_t n) {
  ENTER("cuMemAlloc");
  void *m = NULL;
  if (posix_memalign(&m, 256, n ? n : 1))
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (n < LARGE)
    memset(m, 0x33, n);
  *p = (CUdeviceptr)(uintptr_t)track(m);
  fake.live_allocs++;
  return CUDA_SUCCESS;
}
static CUresult f_free(CUdeviceptr p) {
  untrack((void *)(uintptr_t)p);
  fake.live_allocs--;
  return CUDA_SUCCESS;
}
static CUresult f_to_device(CUdeviceptr dst, const void *src, size_t n) {
  ENTER("cuMemcpyHtoD");
  memcpy((void *)(uintptr_t)dst, src, n);
  return CUDA_SUCCESS;
}
static CUresult f_to_host(void *dst, CUdeviceptr src, size_t n) {
  ENTER("cuMemcpyDtoH");
  memcpy(dst, (void *)(uintptr_t)src, n);
  return CUDA_SUCCESS;
}

static void run(const struct op *o) {
  if (o->src) {
    memcpy((void *)(uintptr_t)o->dst, (void *)(uintptr_t)o->src, o->n);
    fake.clock_us += FAKE_COPY_US;
    return;
  }
  if (!o->kernel) {
    if (o->n < LARGE)
      memset((void *)(uintptr_t)o->dst, o->value, o->n);
    else
      fake.flushed_bytes += o->n;
    fake.clock_us += 1;
    return;
  }
  fake.clock_us += o->kernel->us;
  if (fake.n_launches < FAKE_MAX_LAUNCHES)
    fake.launches[fake.n_launches++] = o->launch;
  if (o->kernel->body)
    o->kernel->body(o->launch.cells, &o->launch.config);
}

static CUresult issue(CUstream s, const struct op *o) {
  if (!s || !s->capture) {
    run(o);
    return CUDA_SUCCESS;
  }
  struct op *copy = fresh(sizeof *copy);
  *copy = *o;
  copy->next = NULL;
  if (s->capture->last)
    s->capture->last->next = copy;
  else
    s->capture->first = copy;
  s->capture->last = copy;
  return CUDA_SUCCESS;
}

static CUresult f_copy(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream s) {
  ENTER("cuMemcpyDtoDAsync");
  struct op o = {.dst = dst, .src = src, .n = n};
  return issue(s, &o);
}
static CUresult f_memset(CUdeviceptr dst, unsigned char value, size_t n, CUstream s) {
  ENTER("cuMemsetD8Async");
  struct op o = {.dst = dst, .value = value, .n = n};
  return issue(s, &o);
}
static CUresult f_stream(CUstream *s, unsigned flags) {
  (void)flags;
  ENTER("cuStreamCreate");
  *s = fresh(sizeof **s);
  fake.live_streams++;
  return CUDA_SUCCESS;
}
static CUresult f_stream_end(CUstream s) {
  untrack(s);
  fake.live_streams--;
  return CUDA_SUCCESS;
}
static CUresult f_stream_sync(CUstream s) {
  (void)s;
  ENTER("cuStreamSynchronize");
  return CUDA_SUCCESS;
}
static CUresult f_capturing(CUstream s, int *status) {
  ENTER("cuStreamIsCapturing");
  *status = s && s->capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
static CUresult f_begin(CUstream s, int mode) {
  (void)mode;
  ENTER("cuStreamBeginCapture");
  s->capture = fresh(sizeof *s->capture);
  fake.live_graphs++;
  return CUDA_SUCCESS;
}
static void free_graph(CUgraph g) {
  for (struct op *o = g->first, *next; o; o = next) {
    next = o->next;
    untrack(o);
  }
  untrack(g);
  fake.live_graphs--;
}
static CUresult f_end(CUstream s, CUgraph *g) {
  CUresult r = enter("cuStreamEndCapture");
  *g = r ? NULL : s->capture;
  if (r)
    free_graph(s->capture);
  s->capture = NULL;
  return r;
}
static CUresult f_instantiate(CUgraphExec *e, CUgraph g, unsigned long long flags) {
  (void)flags;
  ENTER("cuGraphInstantiate");
  *e = fresh(sizeof **e);
  (*e)->graph = g;
  fake.live_graphs++;
  return CUDA_SUCCESS;
}
static CUresult f_graph_launch(CUgraphExec e, CUstream s) {
  (void)s;
  ENTER("cuGraphLaunch");
  for (const struct op *o = e->graph->first; o; o = o->next)
    run(o);
  return CUDA_SUCCESS;
}
static CUresult f_exec_end(CUgraphExec e) {
  untrack(e);
  fake.live_graphs--;
  return CUDA_SUCCESS;
}
static CUresult f_graph_end(CUgraph g) {
  free_graph(g);
  return CUDA_SUCCESS;
}
static CUresult f_event(CUevent *e, unsigned flags) {
  (void)flags;
  ENTER("cuEventCreate");
  *e = fresh(sizeof **e);
  fake.live_events++;
  return CUDA_SUCCESS;
}
static CUresult f_event_end(CUevent e) {
  untrack(e);
  fake.live_events--;
  return CUDA_SUCCESS;
}
static CUresult f_record(CUevent e, CUstream s) {
  (void)s;
  ENTER("cuEventRecord");
  e->us = fake.clock_us;
  return CUDA_SUCCESS;
}
static CUresult f_event_sync(CUevent e) {
  (void)e;
  ENTER("cuEventSynchronize");
  return CUDA_SUCCESS;
}
static CUresult f_elapsed(float *ms, CUevent a, CUevent b) {
  ENTER("cuEventElapsedTime");
  *ms = (float)((b->us - a->us) / 1000);
  return CUDA_SUCCESS;
}
/* Writes what it was given, in the clear, and refuses what the hardware would. */
static CUresult f_encode(CUtensorMap *map, int dtype, uint32_t rank, void *address,
                         const uint64_t *dims, const uint64_t *strides, const uint32_t *box,
                         const uint32_t *steps, int interleave, int swizzle, int l2, int fill) {
  ENTER("cuTensorMapEncodeTiled");
  struct fake_map m = {.address = (uint64_t)(uintptr_t)address,
                       .rank = (uint8_t)rank,
                       .dtype = (uint8_t)dtype,
                       .swizzle = (uint8_t)swizzle,
                       .l2 = (uint8_t)l2,
                       .fill = (uint8_t)fill};
  bool ok = (uintptr_t)map % 64 == 0 && rank >= 1 && rank <= 5 && m.address % 16 == 0 &&
            interleave == CU_TENSOR_MAP_INTERLEAVE_NONE;
  for (uint32_t d = 0; ok && d < rank; d++) {
    ok = dims[d] >= 1 && dims[d] <= UINT64_C(1) << 32 && box[d] >= 1 && box[d] <= 256 &&
         steps[d] == 1 && (!d || (strides[d - 1] % 16 == 0 && strides[d - 1] < UINT64_C(1) << 40));
    m.dim[d] = dims[d];
    m.box[d] = (uint16_t)box[d];
    if (d)
      m.stride[d - 1] = strides[d - 1];
  }
  if (!ok)
    return CUDA_ERROR_INVALID_VALUE;
  memset(map, 0, sizeof *map);
  memcpy(map, &m, sizeof m);
  return CUDA_SUCCESS;
}
_Static_assert(sizeof(struct fake_map) <= sizeof(CUtensorMap), "it fits");

static CUresult f_launch(const CUlaunchConfig *c, CUfunction f, void **params, void **extra) {
  (void)extra;
  ENTER("cuLaunchKernelEx");
  const struct fake_kernel *k = (const struct fake_kernel *)(uintptr_t)f;
  if (k->raw) { /* at once, and never captured */
    k->raw(params, c);
    fake.clock_us += k->us;
    return CUDA_SUCCESS;
  }
  struct op o = {.kernel = k, .launch = {.name = k->name, .config = *c, .device = -1}};
  if (current)
    o.launch.device = (int)(current - contexts);
  for (uint32_t i = 0; i < k->n_params && i < FAKE_MAX_CELLS; i++)
    memcpy(&o.launch.cells[i], params[i], 8);
  for (unsigned i = 0; i < c->numAttrs; i++)
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      o.launch.cluster[0] = c->attrs[i].value.clusterDim.x;
      o.launch.cluster[1] = c->attrs[i].value.clusterDim.y;
      o.launch.cluster[2] = c->attrs[i].value.clusterDim.z;
    } else if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
      o.launch.pdl = c->attrs[i].value.programmaticStreamSerializationAllowed == 1;
    }
  o.launch.config.attrs = NULL;
  return issue(c->hStream, &o);
}

const struct cuda_api fake_cuda = {
    .cuInit = f_init,
    .cuDriverGetVersion = f_version,
    .cuGetErrorName = f_error_name,
    .cuGetErrorString = f_error_string,
    .cuDeviceGetCount = f_count,
    .cuDeviceGet = f_get,
    .cuDeviceGetName = f_name,
    .cuDeviceGetUuid = f_uuid,
    .cuDeviceTotalMem = f_memory,
    .cuDeviceGetAttribute = f_attribute,
    .cuDeviceGetPCIBusId = f_pci,
    .cuDevicePrimaryCtxRetain = f_retain,
    .cuDevicePrimaryCtxRelease = f_release,
    .cuCtxGetCurrent = f_get_current,
    .cuCtxSetCurrent = f_set_current,
    .cuCtxSynchronize = f_sync,
    .cuModuleLoadData = f_load,
    .cuModuleUnload = f_unload,
    .cuModuleGetFunction = f_function,
    .cuFuncSetAttribute = f_func_set,
    .cuFuncGetAttribute = f_func_get,
    .cuMemAlloc = f_alloc,
    .cuMemFree = f_free,
    .cuMemcpyHtoD = f_to_device,
    .cuMemcpyDtoH = f_to_host,
    .cuMemcpyDtoDAsync = f_copy,
    .cuMemsetD8Async = f_memset,
    .cuStreamCreate = f_stream,
    .cuStreamDestroy = f_stream_end,
    .cuStreamSynchronize = f_stream_sync,
    .cuStreamIsCapturing = f_capturing,
    .cuStreamBeginCapture = f_begin,
    .cuStreamEndCapture = f_end,
    .cuGraphInstantiate = f_instantiate,
    .cuGraphLaunch = f_graph_launch,
    .cuGraphExecDestroy = f_exec_end,
    .cuGraphDestroy = f_graph_end,
    .cuEventCreate = f_event,
    .cuEventDestroy = f_event_end,
    .cuEventRecord = f_record,
    .cuEventSynchronize = f_event_sync,
    .cuEventElapsedTime = f_elapsed,
    .cuTensorMapEncodeTiled = f_encode,
    .cuLaunchKernelEx = f_launch,
};

void help_fake_start(void) {
  memset(&fake, 0, sizeof fake);
  fake.n_devices = 1;
  fake.cc_major = 9;
  fake.max_threads = 1024;
  for (int i = 0; i < 16; i++)
    fake.attributes[i] = -1;
  current = NULL;
}

void help_fake_check(void) {
  assert_int_equal(fake.live_allocs, 0);
  assert_int_equal(fake.live_modules, 0);
  assert_int_equal(fake.live_streams, 0);
  assert_int_equal(fake.live_events, 0);
  assert_int_equal(fake.live_graphs, 0);
  assert_int_equal(fake.retained, 0);
}
