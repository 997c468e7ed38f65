/* Clocks, power and throttle reasons, read through NVML. */
#include "runtime/internal.h"

static bool start_nvml(struct rt_device *dev) {
  struct rt_ctx *ctx = dev->ctx;
  if (!rt_library_info(ctx, RT_LIB_NVML).loaded)
    return false;
  if (!ctx->nvml_started) {
    if (ctx->nvml.nvmlInit() != NVML_SUCCESS)
      return false;
    ctx->nvml_started = true;
  }
  return dev->nvml ||
         ctx->nvml.nvmlDeviceGetHandleByPciBusId(dev->info.pci, &dev->nvml) == NVML_SUCCESS;
}

enum rt_status rt_gpu_state(struct rt_device *dev, struct rt_gpu_state *out) {
  *out = (struct rt_gpu_state){-1, -1, -1, -1, -1, -1};
  if (!start_nvml(dev))
    return RT_MISSING;
  const struct nvml_api *nvml = &dev->ctx->nvml;
  unsigned v;
  unsigned long long mask;
  if (nvml->nvmlDeviceGetClockInfo(dev->nvml, NVML_CLOCK_SM, &v) == NVML_SUCCESS)
    out->sm_mhz = (int)v;
  if (nvml->nvmlDeviceGetClockInfo(dev->nvml, NVML_CLOCK_MEM, &v) == NVML_SUCCESS)
    out->memory_mhz = (int)v;
  if (nvml->nvmlDeviceGetTemperature(dev->nvml, NVML_TEMPERATURE_GPU, &v) == NVML_SUCCESS)
    out->temperature_c = (int)v;
  if (nvml->nvmlDeviceGetPowerUsage(dev->nvml, &v) == NVML_SUCCESS)
    out->power_w = v / 1000.0;
  if (nvml->nvmlDeviceGetEnforcedPowerLimit(dev->nvml, &v) == NVML_SUCCESS)
    out->power_limit_w = v / 1000.0;
  if (nvml->nvmlDeviceGetThrottleReasons(dev->nvml, &mask) == NVML_SUCCESS)
    out->throttle = (int64_t)mask;
  return RT_OK;
}

bool rt_driver_version(struct rt_device *dev, char *out, size_t size) {
  return start_nvml(dev) && size <= UINT32_MAX &&
         dev->ctx->nvml.nvmlSystemGetDriverVersion(out, (unsigned)size) == NVML_SUCCESS;
}

void rt_throttle_text(int64_t mask, struct strbuf *out) {
  static const struct {
    int64_t bit;
    const char *text;
  } reasons[] = {
#define X(bit, text) {bit, text},
      NVML_THROTTLE_REASONS(X)
#undef X
  };
  size_t start = out->n;
  if (mask < 0) {
    sb_puts(out, "unknown");
    return;
  }
  for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
    if (mask & reasons[i].bit) {
      if (out->n > start)
        sb_putc(out, '|');
      sb_puts(out, reasons[i].text);
      mask &= ~reasons[i].bit;
    }
  if (mask) /* bits newer than this list */
    sb_printf(out, "%s0x%llx", out->n > start ? "|" : "", (unsigned long long)mask);
  if (out->n == start)
    sb_puts(out, "none");
}
