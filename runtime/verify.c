/* The error policy (docs/numerics.md, "Error policy"): is this output right?
 *
 * An output passes if nothing of it is unwritten, its special values are where the reference has
 * them, and then: bit for bit in exact mode; otherwise, per block of 128 x 128 (or 128 rows), its
 * largest error is at most twice the baseline's plus one rounding of the block's largest value,
 * its mean error likewise over the whole output, and every element's error is under the a-priori
 * bound plus one rounding. The baseline itself must be under that bound. */
#include "runtime/verify.h"

#include "base/check.h"
#include "base/num.h"
#include "base/threads.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

double rt_half_ulp(enum dtype t, double x) {
  if (!dtype_is_float(t))
    return 0.5;
  return num_unit(t) * x + num_tiny(t) / 2;
}

bool rt_saturates(enum dtype t) {
  return !dtype_is_float(t) || t == DT_E4M3 || t == DT_E5M2;
}

double rt_gamma(int64_t k, enum dtype accumulate) {
  double ku = (double)k * num_unit(accumulate);
  return ku < 1 ? ku / (1 - ku) : (double)INFINITY;
}

/* error / allowed, where 0 / 0 is 0. */
static double share_of(double error, double allowed) {
  return error == 0 ? 0 : allowed > 0 ? error / allowed : (double)INFINITY;
}

/* Unless the caller knows: in integers of 32 bits and more the poison is a number, but hardly one
 * that a kernel computes: it counts as unwritten where it is wrong. In fewer bits it is too likely
 * a value. */
static bool is_unwritten(const struct rt_verify *v, int64_t at, int64_t index, double got,
                         double ref) {
  if (v->unwritten)
    return v->unwritten[at];
  bool is_float = dtype_is_float(v->dtype);
  if (!is_float && (dtype_bits(v->dtype) < 32 || got == ref))
    return false;
  size_t bytes = dtype_bits(v->dtype) / 8;
  const unsigned char *p = (const unsigned char *)v->out + (size_t)index * bytes;
  for (size_t i = 0; i < bytes; i++)
    if (p[i] != rt_poison_byte(v->dtype))
      return false;
  return true;
}

/* The reference as the dtype can show it at best, before rounding. */
static double target(enum dtype t, double ref) {
  if (!rt_saturates(t) || isnan(ref))
    return ref;
  return ref > num_max(t) ? num_max(t) : ref < num_min(t) ? num_min(t) : ref;
}

enum special { SPECIAL_NONE, SPECIAL_RIGHT, SPECIAL_WRONG };

/* NaN and infinity. A finite reference that rounds to infinity accepts infinity; a finite output
 * there is judged by its error. */
static enum special compare_special(enum dtype t, double got, double ref) {
  if (isfinite(ref) && isfinite(got))
    return SPECIAL_NONE;
  if (isnan(ref))
    return isnan(got) ? SPECIAL_RIGHT : SPECIAL_WRONG;
  if (isnan(got))
    return SPECIAL_WRONG;
  if (isinf(ref))
    return got == ref ? SPECIAL_RIGHT : SPECIAL_WRONG;
  bool near_limit = fabs(ref) >= num_max(t) * (1 - 4 * num_unit(t)); /* got is infinite */
  return near_limit && (got > 0) == (ref > 0) ? SPECIAL_RIGHT : SPECIAL_WRONG;
}

static void note_max(double value, int64_t at, double *max, int64_t *max_at) {
  if (value > *max || *max_at < 0) {
    *max = value;
    *max_at = at;
  }
}

static void scan_element(const struct rt_verify *v, int64_t i, int64_t j,
                         struct rt_block_stats *s) {
  enum dtype t = v->dtype;
  int64_t at = i * v->cols + j, index = i * v->out_stride[0] + j * v->out_stride[1];
  double got = num_load(t, v->out, index), ref = target(t, v->ref[at]);
  if (is_unwritten(v, at, index, got, ref)) {
    if (s->n_unwritten++ == 0)
      s->at_unwritten = at;
    return;
  }
  enum special special = compare_special(t, got, ref);
  if (special == SPECIAL_WRONG && s->n_special++ == 0)
    s->at_special = at;
  if (v->exact && special != SPECIAL_WRONG) {
    double want = num_round(t, ref);
    if (got != want && !(isnan(got) && isnan(want)) && s->n_inexact++ == 0)
      s->at_inexact = at;
  }
  if (special != SPECIAL_NONE)
    return;
  double error = fabs(got - ref);
  note_max(error, at, &s->max_err, &s->at_err);
  s->sum_err += error;
  s->sum_ref += fabs(ref);
  s->max_ref = fmax(s->max_ref, fabs(ref));
  if (v->bound) {
    double allowed = v->bound[at] + rt_half_ulp(t, fabs(ref) + v->bound[at]);
    double share = share_of(error, allowed);
    note_max(share, at, &s->share, &s->at_share);
    s->n_ceiling += share > 1;
  }
  if (!v->base)
    return;
  double base = v->base[at], base_error = isfinite(base) ? fabs(base - ref) : 0;
  s->max_base = fmax(s->max_base, base_error);
  s->sum_base += base_error;
  if (v->bound) {
    double allowed = v->bound[at] + rt_half_ulp(t, fabs(ref) + v->bound[at]);
    bool lost = compare_special(t, base, ref) == SPECIAL_WRONG;
    note_max(lost ? (double)INFINITY : share_of(base_error, allowed), at, &s->base_share,
             &s->at_base);
  }
}

struct rt_block_stats rt_scan_block(const struct rt_verify *v, int64_t i0, int64_t j0,
                                    int64_t width) {
  struct rt_block_stats s = {.at_err = -1,
                             .at_share = -1,
                             .at_unwritten = -1,
                             .at_special = -1,
                             .at_inexact = -1,
                             .at_base = -1};
  for (int64_t i = i0; i < i0 + RT_BLOCK && i < v->rows; i++)
    for (int64_t j = j0; j < j0 + width && j < v->cols; j++)
      scan_element(v, i, j, &s);
  return s;
}

/* What one rule found: how many, and the place to show. */
struct finding {
  int64_t n, at;
};

/* Everything a verdict is made of, gathered block by block. */
struct tally {
  enum dtype t;
  bool exact, has_base, has_bound;
  int64_t size;
  int64_t worst_at; /* the largest error's position, -1: none */
  struct finding found[RT_RULE_NOTHING + 1];
  struct rt_verdict *out;
  double sum_err, sum_base, sum_ref, used, worst_ratio_share;
  double worst_share, worst_base_share;
};

static void tally_init(struct tally *y, struct rt_verdict *out, enum dtype t, int64_t rows,
                       int64_t cols, bool exact, bool has_base, bool has_bound) {
  memset(y, 0, sizeof *y);
  memset(out, 0, sizeof *out);
  y->t = t;
  y->exact = exact;
  y->has_base = has_base;
  y->has_bound = has_bound;
  y->size = rows * cols;
  y->worst_at = -1;
  y->out = out;
  for (int i = 0; i <= RT_RULE_NOTHING; i++)
    y->found[i].at = -1;
  out->ratio = -1;
  out->base_max_error = has_base ? 0 : -1;
}

static void add(struct finding *f, int64_t n, int64_t at) {
  if (n > 0 && f->n == 0)
    f->at = at;
  f->n += n;
}

static void tally_block(struct tally *y, const struct rt_block_stats *s) {
  struct rt_verdict *o = y->out;
  add(&y->found[RT_RULE_UNWRITTEN], s->n_unwritten, s->at_unwritten);
  add(&y->found[RT_RULE_SPECIAL], s->n_special, s->at_special);
  add(&y->found[RT_RULE_EXACT], s->n_inexact, s->at_inexact);
  if (s->at_err >= 0 && (y->worst_at < 0 || s->max_err > o->max_error))
    y->worst_at = s->at_err;
  o->max_error = fmax(o->max_error, s->max_err);
  o->max_ref = fmax(o->max_ref, s->max_ref);
  y->sum_err += s->sum_err;
  y->sum_base += s->sum_base;
  y->sum_ref += s->sum_ref;
  if (y->exact)
    return; /* the rules below are for rounded results */
  if (y->has_base) {
    o->base_max_error = fmax(o->base_max_error, s->max_base);
    double allowed = 2 * s->max_base + rt_half_ulp(y->t, s->max_ref);
    double share = share_of(s->max_err, allowed);
    o->ratio = fmax(o->ratio, share_of(s->max_err, s->max_base));
    if (share > 1) {
      struct finding *f = &y->found[RT_RULE_RATIO];
      f->n++;
      if (share > y->worst_ratio_share)
        f->at = s->at_err;
    }
    y->worst_ratio_share = fmax(y->worst_ratio_share, share);
    y->used = fmax(y->used, share);
  }
  if (y->has_bound) {
    struct finding *f = &y->found[RT_RULE_CEILING], *b = &y->found[RT_RULE_BASELINE];
    f->n += s->n_ceiling;
    if (s->share > 1 && s->share > y->worst_share)
      f->at = s->at_share;
    y->worst_share = fmax(y->worst_share, s->share);
    y->used = fmax(y->used, s->share);
    if (y->has_base && s->base_share > 1) {
      b->n++;
      if (s->base_share > y->worst_base_share)
        b->at = s->at_base;
      y->worst_base_share = fmax(y->worst_base_share, s->base_share);
    }
  }
}

static void tally_end(struct tally *y, int64_t cols) {
  struct rt_verdict *o = y->out;
  double n = y->size > 0 ? (double)y->size : 1;
  o->mean_error = y->sum_err / n;
  if (y->exact) {
    y->used = y->found[RT_RULE_EXACT].n ? (double)INFINITY : 0;
  } else if (y->has_base) {
    double share = share_of(o->mean_error, 2 * y->sum_base / n + rt_half_ulp(y->t, y->sum_ref / n));
    y->found[RT_RULE_MEAN] = (struct finding){share > 1, y->worst_at};
    y->used = fmax(y->used, share);
  } else if (!y->has_bound && y->size > 0) {
    y->found[RT_RULE_NOTHING].n = 1;
  }
  o->n_unwritten = y->found[RT_RULE_UNWRITTEN].n;
  o->tolerance_used = y->used;
  int64_t at = y->worst_at;
  for (int rule = RT_RULE_UNWRITTEN; rule <= RT_RULE_NOTHING; rule++)
    if (y->found[rule].n) {
      o->rule = (enum rt_rule)rule;
      o->n_wrong = y->found[rule].n;
      if (y->found[rule].at >= 0)
        at = y->found[rule].at;
      break;
    }
  o->passed = o->rule == RT_RULE_NONE;
  o->row = at >= 0 && cols > 0 ? at / cols : -1;
  o->col = at >= 0 && cols > 0 ? at % cols : -1;
}

void rt_judge(enum dtype t, int64_t rows, int64_t cols, bool exact, bool has_base, bool has_bound,
              const struct rt_block_stats *blocks, int64_t n_blocks, struct rt_verdict *out) {
  struct tally y;
  tally_init(&y, out, t, rows, cols, exact, has_base, has_bound);
  for (int64_t i = 0; i < n_blocks; i++)
    tally_block(&y, &blocks[i]);
  tally_end(&y, cols);
}

/* Blocks that are scanned side by side; they are added up in their order. */
#define SCANNED 256

struct scan {
  const struct rt_verify *v;
  int64_t width, across, first; /* of a block; blocks of a row of them; the first block's number */
  struct rt_block_stats *stats;
};

static void scan_blocks(void *user, int64_t first, int64_t end) {
  struct scan *s = user;
  for (int64_t k = first; k < end; k++) {
    int64_t block = s->first + k;
    s->stats[k] =
        rt_scan_block(s->v, block / s->across * RT_BLOCK, block % s->across * s->width, s->width);
  }
}

void rt_verify(const struct rt_verify *v, struct rt_verdict *out) {
  struct tally y;
  struct rt_block_stats stats[SCANNED];
  struct scan s = {.v = v, .stats = stats};
  tally_init(&y, out, v->dtype, v->rows, v->cols, v->exact, v->base != NULL, v->bound != NULL);
  s.width = v->row_blocks && v->cols > RT_BLOCK ? v->cols : RT_BLOCK;
  s.across = (v->cols + s.width - 1) / s.width;
  int64_t n = (v->rows + RT_BLOCK - 1) / RT_BLOCK * s.across;
  for (; s.first < n; s.first += SCANNED) {
    int64_t now = n - s.first < SCANNED ? n - s.first : SCANNED;
    threads_split(now, 4, scan_blocks, &s);
    for (int64_t k = 0; k < now; k++)
      tally_block(&y, &stats[k]);
  }
  tally_end(&y, v->cols);
  if (out->row >= 0) {
    out->got =
        num_load(v->dtype, v->out, out->row * v->out_stride[0] + out->col * v->out_stride[1]);
    out->want = v->ref[out->row * v->cols + out->col];
  }
  for (int64_t k = 0; k < RT_VERIFY_FIRST && k < v->rows * v->cols; k++) {
    int64_t i = k / v->cols, j = k % v->cols;
    out->first_got[out->n_first] =
        num_load(v->dtype, v->out, i * v->out_stride[0] + j * v->out_stride[1]);
    out->first_want[out->n_first++] = v->ref[k];
  }
}

void rt_verdict_text(const struct rt_verdict *v, struct strbuf *out) {
  static const char *const rules[] = {
      "right",
      "not written",
      "NaN or infinity in the wrong place",
      "not exact",
      "error over twice the baseline's",
      "error over the a-priori bound",
      "mean error over twice the baseline's",
      "the baseline itself is over the a-priori bound: the reference cannot be trusted",
      "nothing to judge by: neither baseline nor bound",
  };
  sb_printf(out, "%s", rules[v->rule]);
  if (v->passed) {
    sb_printf(out, "; max error %.3g, mean %.3g, max |R| %.3g, %.0f%% of the tolerance used",
              v->max_error, v->mean_error, v->max_ref, 100 * v->tolerance_used);
    return;
  }
  double got = isnan(v->got) ? (double)NAN : v->got; /* the sign of a NaN means nothing */
  double want = isnan(v->want) ? (double)NAN : v->want;
  if (v->row >= 0 && v->place)
    sb_printf(out, " at %s: got %.9g, reference %.9g", v->place, got, want);
  else if (v->row >= 0)
    sb_printf(out, " at [%" PRId64 ", %" PRId64 "]: got %.9g, reference %.9g", v->row, v->col, got,
              want);
  sb_printf(out, "; %" PRId64 " %s; max error %.3g", v->n_wrong,
            v->rule == RT_RULE_RATIO || v->rule == RT_RULE_BASELINE
                ? v->n_wrong == 1 ? "block" : "blocks"
            : v->n_wrong == 1 ? "place"
                              : "elements",
            v->max_error);
  if (v->base_max_error >= 0)
    sb_printf(out, ", the baseline's %.3g", v->base_max_error);
}

/* ---- pads ---- */

/* Sets the bit of every byte that an element covers; false if one lies outside. */
static bool mark(const struct rt_tensor *t, size_t bytes, size_t offset, uint8_t *bits) {
  int64_t index[RECIPE_MAX_RANK] = {0};
  int64_t width = dtype_bits(t->dtype) == 4 ? 0 : (int64_t)dtype_bits(t->dtype) / 8;
  for (uint32_t i = 0; i < t->rank; i++)
    if (t->dim[i] <= 0)
      return true;
  for (;;) {
    int64_t element = 0;
    for (uint32_t i = 0; i < t->rank; i++)
      element += index[i] * t->stride[i];
    int64_t first = (int64_t)offset + (width ? element * width : element / 2);
    for (int64_t b = first; b < first + (width ? width : 1); b++) {
      if (b < 0 || b >= (int64_t)bytes)
        return false;
      bits[b / 8] |= (uint8_t)(1u << b % 8);
    }
    uint32_t d = t->rank;
    while (d > 0 && ++index[d - 1] == t->dim[d - 1])
      index[--d] = 0;
    if (d == 0)
      return true;
  }
}

/* Do the elements fill the buffer? Each stride in order of size is the extent of the smaller. */
static bool is_dense(const struct rt_tensor *t, size_t bytes) {
  bool used[RECIPE_MAX_RANK] = {false};
  int64_t n = 1;
  for (uint32_t k = 0; k < t->rank; k++) {
    uint32_t d = 0;
    while (d < t->rank && (used[d] || (t->stride[d] != n && t->dim[d] != 1)))
      d++;
    if (d == t->rank)
      return false;
    used[d] = true;
    n *= t->dim[d];
  }
  return dtype_bits(t->dtype) >= 8 && (size_t)dtype_bytes(t->dtype, n) == bytes;
}

int64_t rt_check_pads(const struct mem_alloc *mem, const struct rt_tensor *t, const void *buffer,
                      size_t bytes, size_t offset, unsigned char poison) {
  size_t n = bytes / 8 + 1;
  if (offset == 0 && is_dense(t, bytes))
    return -1;
  uint8_t *bits = mem_get0(mem, n);
  if (!bits)
    return -2;
  bool inside = mark(t, bytes, offset, bits);
  KILN_ASSERT(inside);
  int64_t found = -1;
  const unsigned char *p = buffer;
  for (size_t i = 0; i < bytes && found < 0; i++)
    if (!(bits[i / 8] >> (i % 8) & 1) && p[i] != poison)
      found = (int64_t)i;
  mem_drop(mem, bits, n);
  return inside ? found : 0;
}
