/* Targets and GPU models, from targets.def and gpus.def. */
#include "codegen/cg.h"

#define AMPERE (CG_CP_ASYNC | CG_LDMATRIX)
#define ADA    (AMPERE | CG_FP8_MMA)
#define HOPPER (ADA | CG_TMA)

static const struct cg_target targets[] = {
#define TARGET(name_, major, minor, exact_, block_kib, sm_kib, threads, blocks, features_,         \
               nv_major, nv_minor)                                                                 \
  {.name = name_,                                                                                  \
   .cc_major = major,                                                                              \
   .cc_minor = minor,                                                                              \
   .exact = exact_,                                                                                \
   .smem_per_block = (block_kib)*1024,                                                             \
   .smem_per_sm = (sm_kib)*1024,                                                                   \
   .smem_reserved = 1024,                                                                          \
   .regs_per_sm = 65536,                                                                           \
   .max_regs_per_thread = 255,                                                                     \
   .max_threads_per_sm = threads,                                                                  \
   .max_blocks_per_sm = blocks,                                                                    \
   .features = features_,                                                                          \
   .nvrtc_major = nv_major,                                                                        \
   .nvrtc_minor = nv_minor},
#include "codegen/targets.def"
};

static const struct cg_gpu gpus[] = {
#define GPU(name_, target_, sms, l2_mib, gbps)                                                     \
  {.name = name_,                                                                                  \
   .target = target_,                                                                              \
   .sm_count = sms,                                                                                \
   .l2_bytes = (l2_mib) << 20,                                                                     \
   .dram_gbps = gbps},
#include "codegen/gpus.def"
};

uint32_t cg_target_count(void) {
  return sizeof targets / sizeof targets[0];
}

const struct cg_target *cg_target_at(uint32_t i) {
  return &targets[i];
}

const struct cg_target *cg_find_target(const char *name) {
  for (uint32_t i = 0; i < cg_target_count(); i++)
    if (str_eq(targets[i].name, name))
      return &targets[i];
  return NULL;
}

const struct cg_target *cg_target_for_device(uint32_t cc_major, uint32_t cc_minor) {
  const struct cg_target *best = NULL;
  for (uint32_t i = 0; i < cg_target_count(); i++) {
    const struct cg_target *t = &targets[i];
    bool runs =
        t->cc_major == cc_major && (t->exact ? t->cc_minor == cc_minor : t->cc_minor <= cc_minor);
    if (runs &&
        (!best || t->cc_minor > best->cc_minor || (t->cc_minor == best->cc_minor && t->exact)))
      best = t;
  }
  return best;
}

void cg_list_targets(struct strbuf *out) {
  for (uint32_t i = 0; i < cg_target_count(); i++)
    sb_printf(out, i ? ", %s" : "%s", targets[i].name);
}

bool cg_mma_sums_short(const struct cg_target *t, enum dtype operand) {
  bool fp8 = operand == DT_E4M3 || operand == DT_E5M2;
  return fp8 && (t->features & CG_FP8_MMA) && t->cc_major != 9 && t->cc_major != 10;
}

uint32_t cg_gpu_count(void) {
  return sizeof gpus / sizeof gpus[0];
}

const struct cg_gpu *cg_gpu_at(uint32_t i) {
  return &gpus[i];
}

const struct cg_gpu *cg_target_gpu(const struct cg_target *t) {
  const struct cg_gpu *best = NULL;
  for (uint32_t i = 0; i < cg_gpu_count(); i++) {
    const struct cg_gpu *g = cg_gpu_at(i);
    if (str_eq(g->target, t->name) &&
        (!best || g->sm_count > best->sm_count ||
         (g->sm_count == best->sm_count && g->dram_gbps > best->dram_gbps)))
      best = g;
  }
  return best;
}

uint32_t cg_target_sms(const struct cg_target *t) {
  const struct cg_gpu *g = cg_target_gpu(t);
  return g ? g->sm_count : 0;
}

const struct cg_gpu *cg_find_gpu(const char *name) {
  if (str_starts(name, "NVIDIA "))
    name += strlen("NVIDIA ");
  for (uint32_t i = 0; i < cg_gpu_count(); i++)
    if (str_eq(gpus[i].name, name))
      return &gpus[i];
  return NULL;
}
