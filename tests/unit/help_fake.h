/* A CUDA driver in host memory, behind the runtime's table: allocations are host memory, copies and
 * memsets really happen, kernels are C functions, time is counted rather than measured, and any
 * call can be made to fail. One fake driver per process, with up to two GPUs that share memory;
 * help_fake_start begins afresh. */
#ifndef KILN_TESTS_HELP_FAKE_H
#define KILN_TESTS_HELP_FAKE_H

#include "help_rt.h"
#include "runtime/internal.h"

#define FAKE_MAX_DEVICES  2
#define FAKE_MAX_LAUNCHES 256
#define FAKE_MAX_CELLS    16
#define FAKE_COPY_US      20 /* of a copy within the device */

struct fake_kernel {
  const char *name;
  uint32_t n_params;
  double us; /* how long one launch takes */
  void (*body)(const uint64_t *cells, const CUlaunchConfig *config);
  void (*raw)(void **params, const CUlaunchConfig *config); /* instead, for larger parameters */
};

/* What the fake driver writes as a tensor map. */
struct fake_map {
  uint64_t address, dim[5], stride[4];
  uint16_t box[5];
  uint8_t rank, dtype, swizzle, l2, fill;
};

struct fake_launch {
  const char *name;
  CUlaunchConfig config;
  int device;          /* whose context was current; -1: none's */
  unsigned cluster[3]; /* 0: no attribute */
  bool pdl;            /* programmatic dependent launch allowed */
  uint64_t cells[FAKE_MAX_CELLS];
};

struct fake_gpu {
  /* set by tests */
  const struct fake_kernel *kernels; /* what any module contains; ends with a NULL name */
  const char *fail_call;             /* NULL: any call */
  uint64_t fail_at;                  /* the n-th (matching) call fails; 0: none */
  CUresult fail_with;
  int max_threads, static_smem, n_devices, cc_major, cc_minor;
  int other_cc_major, other_cc_minor; /* of GPU 1; 0: as the first */
  /* seen */
  uint64_t calls; /* matching fail_call */
  CUresult sticky;
  int live_allocs, live_modules, live_streams, live_events, live_graphs, retained;
  double clock_us;
  struct fake_launch launches[FAKE_MAX_LAUNCHES];
  uint32_t n_launches;
  uint64_t flushed_bytes; /* memsets of 16 MiB and more */
  int attributes[16];     /* last value set per function attribute; -1: never */
};
extern struct fake_gpu fake;
extern const struct cuda_api fake_cuda;
/* help_fake_compiler.c: a compiler that takes every source, for kernels named `twice`. */
extern const struct nvrtc_api fake_compiler;

void help_fake_start(void);
/* Nothing is left alive on the fake GPU. */
void help_fake_check(void);

#endif
