/* The part of NVML's interface that Kiln uses; see abi_cuda.h for the form. */
#ifndef KILN_RUNTIME_ABI_NVML_H
#define KILN_RUNTIME_ABI_NVML_H

typedef struct nvmlDevice_st *nvmlDevice_t;
typedef int nvmlReturn_t; /* an enum; unknown values must be representable */

#define NVML_VALUES(X)                                                                             \
  X(NVML_SUCCESS, 0)                                                                               \
  X(NVML_CLOCK_SM, 1)                                                                              \
  X(NVML_CLOCK_MEM, 2)                                                                             \
  X(NVML_TEMPERATURE_GPU, 0)

enum nvml_value {
#define X(name, value) name = value,
  NVML_VALUES(X)
#undef X
};

/* nvmlClocksThrottleReason*, macros in nvml.h: X(bit, text) */
#define NVML_THROTTLE_REASONS(X)                                                                   \
  X(0x1, "idle")                                                                                   \
  X(0x2, "applications_clocks")                                                                    \
  X(0x4, "sw_power_cap")                                                                           \
  X(0x8, "hw_slowdown")                                                                            \
  X(0x10, "sync_boost")                                                                            \
  X(0x20, "sw_thermal_slowdown")                                                                   \
  X(0x40, "hw_thermal_slowdown")                                                                   \
  X(0x80, "hw_power_brake")                                                                        \
  X(0x100, "display_clocks")

/* nvmlDeviceGetCurrentClocksThrottleReasons was renamed ...EventReasons; drivers export both. */
#define NVML_FUNCTIONS(X)                                                                          \
  X(nvmlInit, nvmlInit_v2, nvmlReturn_t, (void))                                                   \
  X(nvmlShutdown, nvmlShutdown, nvmlReturn_t, (void))                                              \
  X(nvmlErrorString, nvmlErrorString, const char *, (nvmlReturn_t result))                         \
  X(nvmlSystemGetDriverVersion, nvmlSystemGetDriverVersion, nvmlReturn_t,                          \
    (char *version, unsigned int length))                                                          \
  X(nvmlDeviceGetHandleByPciBusId, nvmlDeviceGetHandleByPciBusId_v2, nvmlReturn_t,                 \
    (const char *id, nvmlDevice_t *device))                                                        \
  X(nvmlDeviceGetClockInfo, nvmlDeviceGetClockInfo, nvmlReturn_t,                                  \
    (nvmlDevice_t device, int type, unsigned int *mhz))                                            \
  X(nvmlDeviceGetPowerUsage, nvmlDeviceGetPowerUsage, nvmlReturn_t,                                \
    (nvmlDevice_t device, unsigned int *milliwatts))                                               \
  X(nvmlDeviceGetEnforcedPowerLimit, nvmlDeviceGetEnforcedPowerLimit, nvmlReturn_t,                \
    (nvmlDevice_t device, unsigned int *milliwatts))                                               \
  X(nvmlDeviceGetTemperature, nvmlDeviceGetTemperature, nvmlReturn_t,                              \
    (nvmlDevice_t device, int sensor, unsigned int *celsius))                                      \
  X(nvmlDeviceGetThrottleReasons, nvmlDeviceGetCurrentClocksThrottleReasons, nvmlReturn_t,         \
    (nvmlDevice_t device, unsigned long long *reasons))

struct nvml_api {
#define X(member, symbol, result, params) result(*member) params;
  NVML_FUNCTIONS(X)
#undef X
};

#endif
