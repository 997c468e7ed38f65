/* Interleaved timing with CUDA events, of single launches or of graphs that repeat them.
 *
 * Within a round every candidate runs once, in an order that rotates, so that clocks and power are
 * the same for all; ratios are taken within rounds. Before each timed stretch L2 is flushed by
 * writing a buffer twice its size, outside the stretch; while that runs, the stretch is already
 * enqueued, so launch latency is not in it. */
#include "runtime/internal.h"

#include <time.h>

#define DEFAULT_ROUNDS 30
#define DEFAULT_WARMUP 5
#define MIN_ROUNDS     3
#define GRAPH_INNER    20

/* What is made per candidate. */
struct timed {
  CUevent start, stop;
  CUgraph graph;
  CUgraphExec exec;
};

struct session {
  struct rt_device *dev;
  const struct rt_candidate *candidates;
  struct timed *timed;
  uint32_t n, rounds, warmup, inner;
  bool graph, flush;
  double limit_ms;
  CUstream stream;
};

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static enum rt_status check(struct rt_device *dev, CUresult r, const char *call) {
  return r == CUDA_SUCCESS ? RT_OK : rt_cuda_failed(dev, r, "%s", call);
}

/* The flush buffer stays with the device. */
static enum rt_status get_flush(struct rt_device *dev) {
  size_t want = 2 * dev->info.l2_bytes;
  want = want < ((size_t)64 << 20) ? (size_t)64 << 20 : want;
  if (dev->flush)
    return RT_OK;
  CUresult r = dev->ctx->cuda.cuMemAlloc(&dev->flush, want);
  if (r != CUDA_SUCCESS) {
    dev->flush = 0;
    return rt_cuda_failed(dev, r, "allocating %zu bytes to flush L2 with", want);
  }
  dev->flush_bytes = want;
  return RT_OK;
}

void rt_timing_close(struct rt_device *dev) {
  if (dev->flush)
    dev->ctx->cuda.cuMemFree(dev->flush);
  dev->flush = 0;
}

static enum rt_status run_inner(struct session *s, uint32_t c, uint32_t round) {
  enum rt_status status = RT_OK;
  for (uint32_t i = 0; i < s->inner && status == RT_OK; i++)
    status = s->candidates[c].run(s->candidates[c].user, s->stream, round * s->inner + i);
  return status;
}

/* Records `inner` runs into a graph. A capture that was begun is always ended. */
static enum rt_status capture(struct session *s, uint32_t c) {
  const struct cuda_api *cuda = &s->dev->ctx->cuda;
  struct timed *t = &s->timed[c];
  CUresult r = cuda->cuStreamBeginCapture(s->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  if (r != CUDA_SUCCESS)
    return rt_cuda_failed(s->dev, r, "cuStreamBeginCapture");
  enum rt_status status = run_inner(s, c, 0);
  r = cuda->cuStreamEndCapture(s->stream, &t->graph);
  if (status != RT_OK)
    return status;
  if (r == CUDA_SUCCESS)
    r = cuda->cuGraphInstantiate(&t->exec, t->graph, 0);
  return r == CUDA_SUCCESS
             ? RT_OK
             : rt_cuda_failed(s->dev, r, "making a graph of %s", s->candidates[c].name);
}

static enum rt_status set_up(struct session *s) {
  const struct cuda_api *cuda = &s->dev->ctx->cuda;
  enum rt_status status = s->flush ? get_flush(s->dev) : RT_OK;
  for (uint32_t c = 0; c < s->n && status == RT_OK; c++) {
    CUresult r = cuda->cuEventCreate(&s->timed[c].start, CU_EVENT_DEFAULT);
    if (r == CUDA_SUCCESS)
      r = cuda->cuEventCreate(&s->timed[c].stop, CU_EVENT_DEFAULT);
    status = check(s->dev, r, "cuEventCreate");
    /* Once outside the capture: whatever the candidate sets up on its first run may not be
     * captured. */
    if (status == RT_OK)
      status = s->candidates[c].run(s->candidates[c].user, s->stream, 0);
    if (status == RT_OK && s->graph)
      status = capture(s, c);
  }
  return status;
}

static void tear_down(struct session *s) {
  const struct cuda_api *cuda = &s->dev->ctx->cuda;
  if (s->dev->dead)
    return; /* the context owns them and is lost */
  cuda->cuStreamSynchronize(s->stream);
  for (uint32_t c = 0; c < s->n; c++) {
    struct timed *t = &s->timed[c];
    if (t->exec)
      cuda->cuGraphExecDestroy(t->exec);
    if (t->graph)
      cuda->cuGraphDestroy(t->graph);
    if (t->start)
      cuda->cuEventDestroy(t->start);
    if (t->stop)
      cuda->cuEventDestroy(t->stop);
  }
}

static enum rt_status run_stretch(struct session *s, uint32_t c, uint32_t round) {
  const struct cuda_api *cuda = &s->dev->ctx->cuda;
  struct timed *t = &s->timed[c];
  CUresult r = CUDA_SUCCESS;
  if (s->flush)
    r = cuda->cuMemsetD8Async(s->dev->flush, (unsigned char)round, s->dev->flush_bytes, s->stream);
  if (r == CUDA_SUCCESS)
    r = cuda->cuEventRecord(t->start, s->stream);
  enum rt_status status = check(s->dev, r, "starting a timed stretch");
  if (status != RT_OK)
    return status;
  if (s->graph)
    status = check(s->dev, cuda->cuGraphLaunch(t->exec, s->stream), "cuGraphLaunch");
  else
    status = run_inner(s, c, round);
  if (status == RT_OK)
    status = check(s->dev, cuda->cuEventRecord(t->stop, s->stream), "ending a timed stretch");
  return status;
}

/* Runs every candidate once; us[c] gets the time of one run unless us is NULL. */
static enum rt_status run_round(struct session *s, uint32_t round, double *const *us) {
  const struct cuda_api *cuda = &s->dev->ctx->cuda;
  enum rt_status status = RT_OK;
  for (uint32_t k = 0; k < s->n && status == RT_OK; k++)
    status = run_stretch(s, (round + k) % s->n, round);
  if (status == RT_OK)
    status = rt_stream_sync(s->dev, s->stream);
  for (uint32_t c = 0; c < s->n && status == RT_OK && us; c++) {
    float ms = 0;
    status = check(s->dev, cuda->cuEventElapsedTime(&ms, s->timed[c].start, s->timed[c].stop),
                   "cuEventElapsedTime");
    us[c][round] = (double)ms * 1e3 / s->inner;
  }
  return status;
}

static enum rt_status measure(struct session *s, struct rt_timing_set *out) {
  double *us[64];
  enum rt_status status = set_up(s);
  for (uint32_t c = 0; c < s->n; c++)
    us[c] = out->at[c].rounds_us;
  for (uint32_t r = 0; r < s->warmup && status == RT_OK; r++)
    status = run_round(s, r, NULL);
  double start = now_ms();
  uint32_t done = 0;
  while (done < s->rounds && status == RT_OK &&
         (done < MIN_ROUNDS || now_ms() - start < s->limit_ms)) {
    status = run_round(s, done, us);
    done++;
  }
  out->rounds = done;
  tear_down(s);
  return status;
}

static void summarise(struct rt_timing_set *t, double *sorted, double *scratch) {
  for (uint32_t c = 0; c < t->n; c++) {
    memcpy(sorted, t->at[c].rounds_us, t->rounds * sizeof *sorted);
    t->at[c].us = rt_median_interval(sorted, scratch, t->rounds);
    for (uint32_t r = 0; r < t->rounds; r++)
      sorted[r] = t->at[c].rounds_us[r] > 0 ? t->at[0].rounds_us[r] / t->at[c].rounds_us[r] : 0;
    t->at[c].ratio = rt_median_interval(sorted, scratch, t->rounds);
  }
}

enum rt_status rt_time(struct rt_device *dev, const struct rt_candidate *candidates, uint32_t n,
                       const struct rt_timing_options *options, struct rt_timing_set *out) {
  struct rt_timing_options o = options ? *options : (struct rt_timing_options){0};
  struct rt_ctx *ctx = dev->ctx;
  memset(out, 0, sizeof *out);
  out->ctx = ctx;
  if (n == 0 || n > 64)
    return rt_fail(ctx, RT_BAD_INPUT, DIAG_USAGE, "1 to 64 candidates can be timed, not %u", n);
  struct session s = {.dev = dev,
                      .candidates = candidates,
                      .n = n,
                      .rounds = o.rounds ? o.rounds : DEFAULT_ROUNDS,
                      .warmup = o.warmup ? o.warmup : DEFAULT_WARMUP,
                      .inner = o.inner   ? o.inner
                               : o.graph ? GRAPH_INNER
                                         : 1,
                      .graph = o.graph,
                      .flush = !o.keep_l2,
                      .limit_ms = (o.time_limit_us ? (double)o.time_limit_us : 1e7) / 1e3};
  s.rounds = s.rounds < MIN_ROUNDS ? MIN_ROUNDS : s.rounds;
  rt_stream stream;
  enum rt_status status = rt_device_stream(dev, &stream);
  if (status != RT_OK)
    return status;
  s.stream = stream;
  /* One block: results, samples, two rows of scratch; and what is made per candidate. */
  size_t doubles = ((size_t)n + 2) * s.rounds;
  out->bytes = n * sizeof *out->at + doubles * sizeof(double);
  out->at = mem_get0(&ctx->mem, out->bytes);
  s.timed = mem_get0(&ctx->mem, n * sizeof *s.timed);
  if (out->at && s.timed) {
    double *samples = (double *)(void *)(out->at + n);
    for (uint32_t c = 0; c < n; c++)
      out->at[c].rounds_us = samples + (size_t)c * s.rounds;
    out->n = n;
    out->inner = s.inner;
    out->graph = s.graph;
    out->flushed = s.flush;
    status = measure(&s, out);
    if (status == RT_OK)
      summarise(out, samples + (size_t)n * s.rounds, samples + ((size_t)n + 1) * s.rounds);
  } else {
    status = rt_no_memory(ctx);
  }
  mem_drop(&ctx->mem, s.timed, n * sizeof *s.timed);
  if (status != RT_OK)
    rt_timing_free(out);
  return status;
}

void rt_timing_free(struct rt_timing_set *t) {
  if (t->ctx)
    mem_drop(&t->ctx->mem, t->at, t->bytes);
  memset(t, 0, sizeof *t);
}
