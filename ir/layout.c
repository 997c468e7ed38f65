/* Layouts; see layout.h. */
#include "ir/layout.h"

#include "base/check.h"

#include <string.h>

static const char *const hw_names[LAYOUT_HW_COUNT] = {"reg", "lane", "warp", "warpgroup", "cta"};

struct layout *layout_new(struct arena *a, uint32_t rank, const int64_t *shape) {
  KILN_ASSERT(rank <= LAYOUT_MAX_RANK);
  struct layout *l = ARENA_NEW(a, struct layout);
  l->rank = rank;
  for (uint32_t i = 0; i < rank; i++)
    l->shape[i] = shape[i];
  return l;
}

static void add_mode(struct arena *a, struct layout *l, struct layout_mode m) {
  VEC_PUSH(a, &l->modes, m);
  uint32_t i = l->modes.n - 1;
  for (; i > 0 && l->modes.at[i - 1].hw > m.hw; i--)
    l->modes.at[i] = l->modes.at[i - 1];
  l->modes.at[i] = m;
}

void layout_add(struct arena *a, struct layout *l, enum layout_hw hw, uint32_t extent,
                const int64_t *step) {
  struct layout_mode m = {.hw = hw, .extent = extent};
  for (uint32_t i = 0; i < l->rank; i++)
    m.step[i] = step[i];
  add_mode(a, l, m);
}

uint32_t layout_extent(const struct layout *l, enum layout_hw hw) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < l->modes.n; i++)
    if (l->modes.at[i].hw == hw && n <= UINT32_MAX)
      n *= l->modes.at[i].extent;
  return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

void layout_coord(const struct layout *l, const uint32_t hw[LAYOUT_HW_COUNT],
                  int64_t coord[LAYOUT_MAX_RANK]) {
  uint32_t left[LAYOUT_HW_COUNT];
  memcpy(left, hw, sizeof left);
  for (uint32_t k = 0; k < LAYOUT_MAX_RANK; k++)
    coord[k] = 0;
  for (uint32_t i = 0; i < l->modes.n; i++) {
    const struct layout_mode *m = &l->modes.at[i];
    uint32_t digit = left[m->hw] % m->extent;
    left[m->hw] /= m->extent;
    for (uint32_t k = 0; k < l->rank; k++)
      coord[k] += digit * m->step[k];
  }
}

bool layout_eq(const struct layout *a, const struct layout *b) {
  if (a->rank != b->rank || a->modes.n != b->modes.n)
    return false;
  for (uint32_t k = 0; k < a->rank; k++)
    if (a->shape[k] != b->shape[k])
      return false;
  for (uint32_t i = 0; i < a->modes.n; i++) {
    const struct layout_mode *x = &a->modes.at[i], *y = &b->modes.at[i];
    if (x->hw != y->hw || x->extent != y->extent || x->unreduced != y->unreduced)
      return false;
    for (uint32_t k = 0; k < a->rank; k++)
      if (x->step[k] != y->step[k])
        return false;
  }
  return true;
}

static void put_list(struct strbuf *out, uint32_t n, const int64_t *v) {
  for (uint32_t i = 0; i < n; i++)
    sb_printf(out, i ? ",%lld" : "%lld", (long long)v[i]);
}

void layout_print(const struct layout *l, struct strbuf *out) {
  sb_putc(out, '[');
  put_list(out, l->rank, l->shape);
  sb_putc(out, ']');
  for (uint32_t i = 0; i < l->modes.n; i++) {
    const struct layout_mode *m = &l->modes.at[i];
    if (i == 0 || m->hw != l->modes.at[i - 1].hw)
      sb_printf(out, " %s", hw_names[m->hw]);
    sb_printf(out, " %u%s:(", m->extent, m->unreduced ? "!" : "");
    put_list(out, l->rank, m->step);
    sb_putc(out, ')');
  }
}

struct reader {
  const char *p, *end;
  const char *error;
};

static void skip_blanks(struct reader *r) {
  while (r->p < r->end && *r->p == ' ')
    r->p++;
}

static bool take(struct reader *r, char c) {
  skip_blanks(r);
  if (r->p == r->end || *r->p != c)
    return false;
  r->p++;
  return true;
}

static bool read_number(struct reader *r, int64_t *out) {
  bool neg = take(r, '-');
  skip_blanks(r);
  int64_t v = 0;
  const char *first = r->p;
  for (; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++)
    if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *r->p - '0', &v)) {
      r->error = "number too large";
      return false;
    }
  if (r->p == first)
    r->error = "number expected";
  *out = neg ? -v : v;
  return r->p != first;
}

/* Numbers separated by commas up to `close`, at most LAYOUT_MAX_RANK. */
static bool read_list(struct reader *r, char close, uint32_t *n, int64_t *v) {
  *n = 0;
  if (take(r, close))
    return true;
  do {
    if (*n == LAYOUT_MAX_RANK) {
      r->error = "more than 5 dims";
      return false;
    }
    if (!read_number(r, &v[(*n)++]))
      return false;
  } while (take(r, ','));
  if (take(r, close))
    return true;
  r->error = close == ')' ? "`,` or `)` expected" : "`,` or `]` expected";
  return false;
}

static bool read_mode(struct arena *a, struct reader *r, struct layout *l, enum layout_hw hw) {
  struct layout_mode m = {.hw = hw};
  int64_t extent;
  uint32_t n;
  if (!read_number(r, &extent))
    return false;
  if (extent < 1 || extent > UINT32_MAX) {
    r->error = "extent out of range";
    return false;
  }
  m.extent = (uint32_t)extent;
  m.unreduced = take(r, '!');
  if (!take(r, ':') || !take(r, '(')) {
    r->error = "`:(` expected after an extent";
    return false;
  }
  if (!read_list(r, ')', &n, m.step))
    return false;
  if (n != l->rank) {
    r->error = "one step per dim expected";
    return false;
  }
  add_mode(a, l, m);
  return true;
}

struct layout *layout_parse(struct arena *a, const char *text, const char *end, const char **after,
                            const char **error) {
  struct reader r = {text, end, NULL};
  uint32_t rank = 0;
  int64_t shape[LAYOUT_MAX_RANK];
  struct layout *l = NULL;
  if (!take(&r, '['))
    r.error = "`[` expected";
  else if (read_list(&r, ']', &rank, shape))
    l = layout_new(a, rank, shape);
  unsigned hw = LAYOUT_HW_COUNT;
  while (!r.error) {
    skip_blanks(&r);
    size_t n = 0;
    while (r.p + n < end && r.p[n] >= 'a' && r.p[n] <= 'z')
      n++;
    if (n) {
      for (hw = 0; hw < LAYOUT_HW_COUNT; hw++)
        if (strlen(hw_names[hw]) == n && memcmp(hw_names[hw], r.p, n) == 0)
          break;
      if (hw == LAYOUT_HW_COUNT)
        break; /* a word of the text around us */
      r.p += n;
    } else if (r.p == end || *r.p < '0' || *r.p > '9' || hw == LAYOUT_HW_COUNT) {
      break;
    }
    read_mode(a, &r, l, (enum layout_hw)hw);
  }
  *after = r.p;
  *error = r.error;
  return r.error ? NULL : l;
}
