/* See help_nvrtc.h. */
#include "help_nvrtc.h"

#include "runtime/rt.h"

#include <cmocka.h>
#include <string.h>

void nvrtc_open(struct nvrtc *n) {
  memset(n, 0, sizeof *n);
  assert_true(diag_init(&n->diags, &mem_libc));
  assert_int_equal(rt_ctx_new(&mem_libc, &n->diags, NULL, &n->ctx), RT_OK);
  struct rt_library_info nvrtc = rt_library_info(n->ctx, RT_LIB_NVRTC);
  n->missing = nvrtc.loaded ? NULL : nvrtc.why ? nvrtc.why : "NVRTC is not there";
}

void nvrtc_close(struct nvrtc *n) {
  rt_ctx_free(n->ctx);
  diag_free(&n->diags);
}

uint32_t nvrtc_check(struct nvrtc *n, const char *text, const char *dims, const char *layout,
                     const char *target, const char *knobs) {
  struct cg_test t;
  cg_test_begin(&t, text);
  cg_test_args(&t, dims, layout, 0, 1);
  if (!cg_test_lower(&t, target, knobs))
    fail_msg("%s\n%s: %s", text, target, cg_test_messages(&t));
  struct strbuf out = {.arena = &t.mem.arena};
  cg_emit(t.machine, (struct cg_emit_options){0}, &out);
  uint32_t regs = 0;
  if (!n->missing) {
    struct rt_compile_job job = {.name = "test", .source = sb_str(&out), .arch = target};
    struct rt_compiled c;
    if (rt_compile(n->ctx, &job, &c) != RT_OK)
      fail_msg("%s: %s\n%s\n%s", target, help_last_message(&n->diags), c.log, text);
    const struct rt_kernel_info *k = &c.kernels[0];
    if (k->spill_stores || k->spill_loads || k->stack)
      fail_msg("%s\n%s: %u registers, %u bytes of stack, %u spilled, %u loaded again", text, target,
               k->regs, k->stack, k->spill_stores, k->spill_loads);
    regs = k->regs;
    rt_compiled_free(&c);
  }
  cg_test_end(&t);
  return regs;
}
