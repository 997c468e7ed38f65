/* Medians and their confidence intervals: the percentile bootstrap with a fixed generator, so that
 * the same samples give the same interval. */
#include "runtime/rt.h"

#include "base/check.h"

#define RESAMPLES 1000

/* Heap sort: no allocation, no worst case. */
static void sift(double *a, uint32_t root, uint32_t n) {
  for (uint32_t child; (child = 2 * root + 1) < n; root = child) {
    if (child + 1 < n && a[child + 1] > a[child])
      child++;
    if (a[root] >= a[child])
      return;
    double t = a[root];
    a[root] = a[child];
    a[child] = t;
  }
}

static void sort(double *a, uint32_t n) {
  for (uint32_t i = n / 2; i > 0; i--)
    sift(a, i - 1, n);
  for (uint32_t end = n; end > 1; end--) {
    double t = a[0];
    a[0] = a[end - 1];
    a[end - 1] = t;
    sift(a, 0, end - 1);
  }
}

static double median_sorted(const double *a, uint32_t n) {
  return n % 2 ? a[n / 2] : (a[n / 2 - 1] + a[n / 2]) / 2;
}

/* The median of n draws from sorted samples is found by counting draws per sample: no second
 * sort. */
static double resampled_median(const double *sorted, double *counts, uint32_t n, uint64_t *state) {
  for (uint32_t i = 0; i < n; i++)
    counts[i] = 0;
  for (uint32_t i = 0; i < n; i++) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    counts[(uint32_t)(((*state >> 32) * n) >> 32)] += 1;
  }
  double seen = 0, lower = 0;
  uint32_t low_rank = (n - 1) / 2, high_rank = n / 2; /* 0-based ranks of the middle */
  bool have_lower = false;
  for (uint32_t i = 0; i < n; i++) {
    seen += counts[i];
    if (!have_lower && seen > low_rank) {
      lower = sorted[i];
      have_lower = true;
    }
    if (seen > high_rank)
      return (lower + sorted[i]) / 2;
  }
  return lower;
}

struct rt_interval rt_median_interval(double *samples, double *scratch, uint32_t n) {
  KILN_ASSERT(n > 0);
  sort(samples, n);
  struct rt_interval r = {.median = median_sorted(samples, n), .min = samples[0]};
  double medians[RESAMPLES];
  uint64_t state = 0x6b696c6e;
  for (int i = 0; i < RESAMPLES; i++)
    medians[i] = resampled_median(samples, scratch, n, &state);
  sort(medians, RESAMPLES);
  r.lo = medians[RESAMPLES * 25 / 1000];
  r.hi = medians[RESAMPLES * 975 / 1000 - 1];
  return r;
}
