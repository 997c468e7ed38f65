/* See crossing.h. 32 banks of 4 bytes; lanes go in groups that move 128 bytes, and within a group
 * different words of one bank take a pass each (CUDA C++ Programming Guide, "Shared Memory";
 * emu_mem.c counts the same for itself).
 *
 * A transpose of 64 x 64 elements of 2 bytes, as it comes out:
 *   write: 16 bytes along n; eight lanes of a group fill one row of 128 bytes
 *   read:  8 bytes along n, from rows 8 apart: a step of 16 bytes every 8 rows puts those of a
 *          group into different banks; registers, which hold 8 x 4 elements, are turned in place */
#include "codegen/crossing.h"

#include "base/check.h"

#define CHUNK           16  /* bytes of the widest access */
#define PASS            128 /* bytes of a pass over the banks */
#define LANES           32
#define MOST_STEP_SHIFT 5

static int64_t round_up(int64_t n, int64_t to) {
  return (n + to - 1) / to * to;
}

/* ---- which registers an access moves ---- */

static bool is_unit_step(const struct layout_mode *m, uint32_t rank, uint32_t dim) {
  for (uint32_t d = 0; d < rank; d++)
    if (m->step[d] != (d == dim))
      return false;
  return true;
}

static void put_map(struct cg_cross_side *s, int64_t extent, int64_t step) {
  if (extent > 1) {
    s->map[s->n_map++] = extent;
    s->map[s->n_map++] = step;
  }
}

/* Accesses of consecutive registers. */
static void lead(struct cg_cross_side *s, uint32_t width) {
  uint32_t regs = layout_extent(s->layout, LAYOUT_REG), part = width > s->put ? width : s->put;
  s->width = width;
  s->stride = 1;
  s->group = part / width;
  s->n = regs / part;
  s->n_map = 0;
  put_map(s, s->n, part);
}

/* The widest access along dim from registers that are not side by side: those of one mode. */
static bool stride_over(struct cg_cross_side *s, uint32_t dim, uint32_t most, int64_t rows) {
  const struct layout *l = s->layout;
  uint32_t stride = 1, best = s->width, at = 0, of = 0;
  for (uint32_t k = 0; k < l->modes.n && l->modes.at[k].hw == LAYOUT_REG; k++) {
    uint32_t w = 1, extent = l->modes.at[k].extent;
    bool whole = k > 0 && l->modes.at[0].extent % s->put == 0;
    while (whole && is_unit_step(&l->modes.at[k], l->rank, dim) && w * 2 <= most &&
           extent % (w * 2) == 0)
      w *= 2;
    for (uint32_t i = 0; i < l->modes.n; i++)
      while (i != k && w > 1 && l->modes.at[i].step[dim] % w)
        w /= 2;
    while (w > 1 && (rows % w || s->at[dim] % w))
      w /= 2;
    if (w > best) {
      best = w;
      at = k;
      of = stride;
    }
    stride *= extent;
  }
  if (!of)
    return false;
  s->width = best;
  s->stride = of;
  s->group = s->put;
  s->n = stride / best / s->put;
  s->n_map = 0;
  stride = 1;
  for (uint32_t k = 0; k < l->modes.n && l->modes.at[k].hw == LAYOUT_REG; k++) {
    uint32_t by = k == 0 ? s->put : k == at ? best : 1;
    put_map(s, l->modes.at[k].extent / by, (int64_t)stride * by);
    stride *= l->modes.at[k].extent;
  }
  return true;
}

static void choose_width(struct cg_cross_side *s, uint32_t dim, uint32_t most) {
  int64_t extent = s->layout->shape[dim];
  uint32_t w = cg_aligned_run(s->layout, dim, most);
  while (w > 1 && (extent % w || s->at[dim] % w))
    w /= 2;
  lead(s, w);
  stride_over(s, dim, most, extent);
}

/* ---- banks ---- */

/* Row and column of each lane's first access; row -1: the lane has none. */
struct places {
  int64_t row[LANES], col[LANES];
};

static struct places places_of(const struct cg_crossing *x, const struct cg_cross_side *s) {
  struct places p;
  for (uint32_t lane = 0; lane < LANES; lane++) {
    uint32_t hw[LAYOUT_HW_COUNT] = {[LAYOUT_LANE] = lane};
    int64_t coord[LAYOUT_MAX_RANK], row = 0;
    bool inside = true;
    layout_coord(s->layout, hw, coord);
    for (uint32_t d = 0; d < x->rank; d++) {
      inside = inside && coord[d] < s->layout->shape[d];
      if (d != x->inner)
        row = row * x->dim[d] + coord[d] + s->at[d];
    }
    p.row[lane] = inside ? row : -1;
    p.col[lane] = coord[x->inner] + s->at[x->inner];
  }
  return p;
}

static int64_t offset(const struct cg_crossing *x, int64_t row, int64_t col) {
  return row * x->pitch + (row >> x->shift) * x->step + col * x->size;
}

static uint32_t passes(const struct cg_crossing *x, const struct places *p, uint32_t bytes) {
  uint32_t lanes = bytes <= 4 ? LANES : PASS / bytes, words = bytes <= 4 ? 1 : bytes / 4, sum = 0;
  for (uint32_t first = 0; first < LANES; first += lanes) {
    int64_t seen[32][LANES];
    uint32_t n[32] = {0}, most = 0;
    for (uint32_t i = first; i < first + lanes; i++)
      for (uint32_t w = 0; w < words && p->row[i] >= 0; w++) {
        int64_t word = offset(x, p->row[i], p->col[i]) / 4 + w;
        uint32_t bank = (uint32_t)(word % 32), k = 0;
        while (k < n[bank] && seen[bank][k] != word)
          k++;
        if (k == n[bank])
          seen[bank][n[bank]++] = word;
        most = n[bank] > most ? n[bank] : most;
      }
    sum += most;
  }
  return sum;
}

/* ---- the choice ---- */

struct search {
  struct cg_crossing best;
  uint64_t cost, floor; /* passes; as few as the widths allow */
  int64_t rows;
  bool any;
};

static void try_rows(struct search *q, struct cg_crossing x, const struct cg_cross_side *sides,
                     const struct places *p, uint32_t n) {
  uint64_t cost = 0;
  x.bytes = round_up(offset(&x, q->rows - 1, x.dim[x.inner]), CHUNK);
  if (q->any && (q->cost == q->floor || (q->cost == 0 && x.bytes >= q->best.bytes)))
    return;
  for (uint32_t i = 0; i < n; i++)
    cost += (uint64_t)passes(&x, &p[i], sides[i].width * x.size) * sides[i].n * sides[i].group;
  if (q->any && (cost > q->cost || (cost == q->cost && x.bytes >= q->best.bytes)))
    return;
  q->best = x;
  q->cost = cost;
  q->any = true;
}

/* Row distances for one choice of the inner dim, the smallest buffers first. */
static void search_rows(struct search *q, struct cg_crossing x, const struct cg_cross_side *sides,
                        const struct places *p, uint32_t n) {
  int64_t unit = 4;
  q->rows = 1;
  for (uint32_t d = 0; d < x.rank; d++)
    q->rows *= d == x.inner ? 1 : x.dim[d];
  for (uint32_t i = 0; i < n; i++)
    unit = sides[i].width * x.size > unit ? sides[i].width * x.size : unit;
  int64_t packed = round_up(x.dim[x.inner] * x.size, unit);
  x.pitch = packed;
  try_rows(q, x, sides, p, n);
  for (uint32_t shift = MOST_STEP_SHIFT; shift > 0; shift--)
    for (int64_t step = unit; step < PASS && step << shift <= 2 * PASS; step *= 2) {
      x.shift = shift;
      x.step = step;
      try_rows(q, x, sides, p, n);
    }
  x.shift = 0;
  x.step = 0;
  for (int64_t pad = unit; pad < PASS; pad += unit) {
    x.pitch = packed + pad;
    try_rows(q, x, sides, p, n);
  }
}

void cg_plan_crossing(struct arena *a, struct cg_crossing *x, struct cg_cross_side *sides,
                      uint32_t n) {
  struct search q = {.any = false};
  struct places *p = ARENA_ARRAY(a, struct places, n);
  uint32_t most = CHUNK / x->size;
  KILN_ASSERT(most >= 1 && most <= CG_CROSS_MOST);
  x->shift = 0;
  x->step = 0;
  for (uint32_t d = x->rank; d-- > 0;) {
    x->inner = d;
    q.floor = 0;
    for (uint32_t i = 0; i < n; i++) {
      choose_width(&sides[i], d, most);
      p[i] = places_of(x, &sides[i]);
      q.floor += (uint64_t)round_up(LANES * sides[i].width * x->size, PASS) / PASS * sides[i].n *
                 sides[i].group;
    }
    if (!q.any || q.floor < q.cost)
      search_rows(&q, *x, sides, p, n);
  }
  *x = q.best;
  for (uint32_t i = 0; i < n; i++)
    choose_width(&sides[i], x->inner, most);
}

void cg_plan_packed(struct cg_crossing *x, struct cg_cross_side *sides, uint32_t n) {
  int64_t elems = 1;
  for (uint32_t d = 0; d < x->rank; d++)
    elems *= x->dim[d];
  x->inner = x->rank - 1;
  x->shift = 0;
  x->step = 0;
  x->pitch = x->dim[x->inner] * x->size;
  x->bytes = round_up(elems * x->size, CHUNK);
  for (uint32_t i = 0; i < n; i++)
    lead(&sides[i], 1);
}

bool cg_rows_split(const struct cg_crossing *x, const struct cg_cross_side *s) {
  int64_t stride = 1, unit = (int64_t)1 << x->shift, of[LAYOUT_MAX_RANK] = {0}, at = 0;
  bool threads = true, regs = true; /* whole units */
  for (uint32_t d = x->rank; d-- > 0;)
    if (d != x->inner) {
      of[d] = stride;
      at += s->at[d] * stride;
      stride *= x->dim[d];
    }
  for (uint32_t i = 0; i < s->layout->modes.n; i++) {
    const struct layout_mode *m = &s->layout->modes.at[i];
    int64_t step = 0;
    for (uint32_t d = 0; d < x->rank; d++)
      step += m->step[d] * of[d];
    if (m->hw == LAYOUT_REG)
      regs = regs && step % unit == 0;
    else
      threads = threads && step % unit == 0;
  }
  return threads || (regs && at % unit == 0);
}
