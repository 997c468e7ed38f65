/* NVRTC for tests of emitted text: what is lowered must compile, and nothing may spill. */
#ifndef KILN_TESTS_HELP_NVRTC_H
#define KILN_TESTS_HELP_NVRTC_H

#include "help_cg.h"

struct nvrtc {
  struct diag_sink diags;
  struct rt_ctx *ctx;
  const char *missing; /* why it is not there, or NULL */
};

void nvrtc_open(struct nvrtc *n);
void nvrtc_close(struct nvrtc *n);
/* Lowers the kernel `text` for a target and compiles it; fails the test if either does not work or
 * if a register is spilled. Returns the registers a thread has; 0 where there is no NVRTC (what is
 * lowered is emitted all the same) or where it does not know the target. */
uint32_t nvrtc_check(struct nvrtc *n, const char *text, const char *dims, const char *layout,
                     const char *target, const char *knobs);

#endif
