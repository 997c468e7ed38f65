/* Case reports for people and for scripts, and the roofline line. */
#include "api/api.h"

#include <math.h>
#include <string.h>

static const char *const level_names[] = {"not checked", "self-checked", "verified"};

/* Nominal dense matrix rate in FLOP/s of a device at its boost clock for the kernel's operand type:
 * per SM and cycle 4096 for 16-bit types on compute capability 9.0, 2048 on 8.0, 1024 on 8.x and
 * 12.x; f32 products run on the FMA units: 256 per SM and cycle (128 on none of the targets). */
static double peak_flops(const struct rt_device_info *info, enum dtype t) {
  double per_cycle = dtype_bits(t) >= 32                          ? 256
                     : info->cc_major == 9                        ? 4096
                     : info->cc_major == 10                       ? 8192
                     : info->cc_major == 8 && info->cc_minor == 0 ? 2048
                                                                  : 1024;
  return per_cycle * info->sm_count * (double)info->clock_khz * 1e3;
}

/* The nominal memory bandwidth in bytes/s: by the GPU table, else by clock and bus width; 0
 * unknown. */
static double peak_bytes(const struct rt_device_info *info) {
  const struct cg_gpu *gpu = cg_find_gpu(info->name);
  if (gpu)
    return gpu->dram_gbps * 1e9;
  return 2.0 * info->memory_clock_khz * 1e3 * info->bus_bits / 8;
}

/* What bounds the case: the larger of the two roofline times, and how near the measured one is. */
static const char *bound_text(const struct kiln_report *r, const struct api_problem *p,
                              struct rt_device *dev, struct arena *a) {
  if (!dev || !r->flushed.rounds)
    return "not timed";
  const struct rt_device_info *info = rt_device_info(dev);
  enum dtype t = p->n_args ? p->args[0].dtype : DT_F32;
  double flops = peak_flops(info, t), bytes = peak_bytes(info);
  double compute_us = flops > 0 ? r->flops / flops * 1e6 : 0;
  double memory_us = bytes > 0 ? r->bytes / bytes * 1e6 : 0, launch_us = 2;
  double us = r->graph.rounds ? fmin(r->flushed.us, r->graph.us) : r->flushed.us;
  const char *what = compute_us > memory_us ? dtype_bits(t) >= 32 ? "FMA units" : "matrix units"
                                            : "memory bandwidth";
  double best = fmax(compute_us, memory_us);
  if (best < launch_us)
    return arena_printf(a, "launch latency: the work itself takes %.2f us at best", best);
  return arena_printf(a, "%s: %.1f us at the nominal rate, %.0f%% of it reached", what, best,
                      best / us * 100);
}

static void put_timing(struct strbuf *b, const char *name, const struct kiln_timing *t,
                       const struct kiln_report *r) {
  if (!t->rounds)
    return;
  sb_printf(b, "  %-16s %9.2f us  [%.2f, %.2f], %u rounds", name, t->us, t->us_low, t->us_high,
            t->rounds);
  if (r->flops > 0)
    sb_printf(b, ", %.1f TFLOP/s", r->flops / t->us * 1e-6);
  sb_printf(b, ", %.2f TB/s\n", r->bytes / t->us * 1e-6);
}

static void put_problem(struct strbuf *b, const struct api_problem *p) {
  sb_puts(b, p->name);
  for (uint32_t i = 0; i < p->n_dims; i++)
    sb_printf(b, " %s=%lld", p->dims[i].name, (long long)p->dims[i].value);
  if (p->kernel) {
    sb_puts(b, "  ");
    fe_config_print(p->kernel, &p->config, b);
  }
}

/* Of a case that reached no level: was it compared and found wrong? */
static bool is_wrong(const struct kiln_report *r) {
  return r->n_outputs || (r->algebraic && !*r->algebraic);
}

static const char *text_of(const struct kiln_report *r, const struct api_problem *p,
                           const char *target, bool gpu, struct arena *a) {
  struct strbuf b = {.arena = a};
  put_problem(&b, p);
  sb_printf(&b, "\n  on %s%s%s\n", r->device, gpu ? ", " : "", gpu ? target : "");
  if (gpu)
    sb_printf(&b, "  %u registers, %u bytes of shared memory, %u threads; NVRTC %.0f ms\n",
              r->compile.registers, r->compile.smem_bytes, r->compile.threads, r->compile.nvrtc_ms);
  if (r->algebraic && *r->algebraic)
    sb_printf(&b, "  the same bits in the algebraic domain: %s\n", r->algebraic);
  else if (r->level == KILN_LEVEL_NONE)
    sb_printf(&b, "  %s\n", is_wrong(r) ? "WRONG" : "not verified");
  else
    sb_printf(&b, "  %s against %s%s\n", level_names[r->level], r->reference,
              r->exact ? "; bitwise on integer-valued inputs" : "");
  for (uint32_t i = 0; i < r->n_outputs; i++) {
    const struct kiln_output_report *o = &r->outputs[i];
    sb_printf(&b, "  %s: max error %.3g (baseline %.3g, max |R| %.3g), %.0f%% of the tolerance\n",
              o->name, o->max_error, o->baseline_error, o->max_reference, o->tolerance_used * 100);
  }
  put_timing(&b, "L2 flushed", &r->flushed, r);
  put_timing(&b, r->peer, &r->peer_flushed, r);
  put_timing(&b, "in a graph", &r->graph, r);
  put_timing(&b, r->peer, &r->peer_graph, r);
  if (r->ratio_flushed > 0)
    sb_printf(&b, "  %.3f x %s flushed [%.3f, %.3f], %.3f in a graph\n", r->ratio_flushed, r->peer,
              r->ratio_low, r->ratio_high, r->ratio_graph);
  if (r->flushed.rounds)
    sb_printf(&b, "  bound by %s\n", r->bound);
  return sb_str(&b);
}

static void put_number(struct strbuf *b, const char *key, double x) {
  sb_printf(b, ",\"%s\":", key);
  if (isfinite(x))
    sb_put_double(b, x);
  else
    sb_puts(b, isnan(x) ? "\"nan\"" : x > 0 ? "\"inf\"" : "\"-inf\"");
}

static void put_text(struct strbuf *b, const char *key, const char *value) {
  sb_printf(b, ",\"%s\":", key);
  if (value)
    sb_put_json(b, value, strlen(value));
  else
    sb_puts(b, "null");
}

static void put_json_timing(struct strbuf *b, const char *key, const struct kiln_timing *t) {
  if (!t->rounds)
    return;
  sb_printf(b, ",\"%s\":{\"rounds\":%u", key, t->rounds);
  put_number(b, "us", t->us);
  put_number(b, "us_low", t->us_low);
  put_number(b, "us_high", t->us_high);
  sb_putc(b, '}');
}

static const char *json_of(const struct kiln_report *r, const struct api_problem *p,
                           const char *target, bool gpu, struct arena *a) {
  struct strbuf b = {.arena = a}, config = {.arena = a};
  if (p->kernel)
    fe_config_print(p->kernel, &p->config, &config);
  sb_puts(&b, "{\"kernel\":");
  sb_put_json(&b, p->name, strlen(p->name));
  put_text(&b, "config", sb_str(&config));
  sb_puts(&b, ",\"shape\":{");
  for (uint32_t i = 0; i < p->n_dims; i++)
    sb_printf(&b, "%s\"%s\":%lld", i ? "," : "", p->dims[i].name, (long long)p->dims[i].value);
  sb_puts(&b, "}");
  put_text(&b, "device", r->device);
  put_text(&b, "target", gpu ? target : NULL);
  put_text(&b, "level",
           r->level == KILN_LEVEL_NONE && is_wrong(r) ? "wrong" : level_names[r->level]);
  put_text(&b, "reference", r->reference);
  put_text(&b, "baseline", r->baseline);
  put_text(&b, "algebraic", r->algebraic);
  sb_printf(&b, ",\"exact\":%s,\"outputs\":[", r->exact ? "true" : "false");
  for (uint32_t i = 0; i < r->n_outputs; i++) {
    const struct kiln_output_report *o = &r->outputs[i];
    sb_puts(&b, i ? ",{\"name\":" : "{\"name\":");
    sb_put_json(&b, o->name, strlen(o->name));
    put_number(&b, "max_error", o->max_error);
    put_number(&b, "baseline_error", o->baseline_error);
    put_number(&b, "max_reference", o->max_reference);
    put_number(&b, "tolerance_used", o->tolerance_used);
    sb_puts(&b, ",\"worst\":[");
    for (uint32_t d = 0; d < o->rank; d++)
      sb_printf(&b, "%s%lld", d ? "," : "", (long long)o->worst[d]);
    sb_putc(&b, ']');
    put_number(&b, "worst_out", o->worst_out);
    put_number(&b, "worst_reference", o->worst_ref);
    sb_putc(&b, '}');
  }
  sb_putc(&b, ']');
  if (gpu) {
    sb_printf(&b, ",\"registers\":%u,\"smem_bytes\":%u,\"threads\":%u,\"spill_bytes\":%u",
              r->compile.registers, r->compile.smem_bytes, r->compile.threads,
              r->compile.spill_bytes);
    put_number(&b, "nvrtc_ms", r->compile.nvrtc_ms);
  }
  put_number(&b, "flops", r->flops);
  put_number(&b, "bytes", r->bytes);
  put_json_timing(&b, "flushed", &r->flushed);
  put_json_timing(&b, "graph", &r->graph);
  put_text(&b, "peer", r->peer);
  put_json_timing(&b, "peer_flushed", &r->peer_flushed);
  put_json_timing(&b, "peer_graph", &r->peer_graph);
  if (r->ratio_flushed > 0) {
    put_number(&b, "ratio_flushed", r->ratio_flushed);
    put_number(&b, "ratio_low", r->ratio_low);
    put_number(&b, "ratio_high", r->ratio_high);
    put_number(&b, "ratio_graph", r->ratio_graph);
  }
  put_text(&b, "bound", r->bound);
  sb_putc(&b, '}');
  return sb_str(&b);
}

void api_report_text(struct kiln_report *r, const struct api_problem *p,
                     const struct kiln_variant *v, struct rt_device *dev, struct arena *a) {
  const char *target = kiln_variant_target(v);
  r->bound = bound_text(r, p, dev, a);
  const char *text = text_of(r, p, target, dev != NULL, a);
  struct strbuf shown = {.arena = a};
  sb_put_shown(&shown, text, strlen(text), true);
  r->text = sb_str(&shown);
  r->json = json_of(r, p, target, dev != NULL, a);
}
