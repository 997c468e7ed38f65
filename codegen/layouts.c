/* See layouts.h. Modes are added fastest first within each hardware index. */
#include "codegen/layouts.h"

#include "base/check.h"

static int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

static uint32_t min_u32(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

/* A mode along one dim. A mode of extent 1 says nothing and is left out. */
static void add1(struct arena *a, struct layout *l, enum layout_hw hw, uint32_t extent,
                 uint32_t dim, int64_t step) {
  int64_t s[LAYOUT_MAX_RANK] = {0};
  s[dim] = step;
  if (extent > 1)
    layout_add(a, l, hw, extent, s);
}

static void replicate(struct arena *a, struct layout *l, enum layout_hw hw, uint32_t extent) {
  static const int64_t none[LAYOUT_MAX_RANK] = {0};
  if (extent > 1)
    layout_add(a, l, hw, extent, none);
}

/* ---- mma ---- */

struct cg_mma_cut cg_mma_cut(int64_t rows, int64_t cols, struct cg_warps w,
                             const struct cg_mma_atom *x) {
  int64_t n = x->col_pairs ? 16 : 8;
  return (struct cg_mma_cut){(uint32_t)ceil_div(rows, x->m * (int64_t)w.rows),
                             (uint32_t)(ceil_div(cols, n * w.cols) * n / 8)};
}

/* Blocks of columns of a warp; with pairs, two blocks share 16 columns. */
static void add_columns(struct arena *a, struct layout *l, const struct cg_mma_atom *x,
                        uint32_t n8) {
  if (x->col_pairs)
    add1(a, l, LAYOUT_REG, 2, 1, 1);
  add1(a, l, LAYOUT_REG, x->col_pairs ? n8 / 2 : n8, 1, x->col_pairs ? 16 : 8);
}

/* PTX: groupID g = lane / 4, t = lane % 4; c0,c1: row g, cols 2t,2t+1; c2,c3: row g+8. */
struct layout *cg_layout_mma_acc(struct arena *a, int64_t rows, int64_t cols, struct cg_warps w,
                                 const struct cg_mma_atom *x) {
  struct cg_mma_cut c = cg_mma_cut(rows, cols, w, x);
  struct layout *l = layout_new(a, 2, (int64_t[]){rows, cols});
  add1(a, l, LAYOUT_REG, 2, 1, x->col_pairs ? 2 : 1);
  add1(a, l, LAYOUT_REG, x->m / 8, 0, x->row_pairs ? 1 : 8);
  add_columns(a, l, x, c.n8);
  add1(a, l, LAYOUT_REG, c.blocks, 0, x->m);
  add1(a, l, LAYOUT_LANE, 4, 1, x->col_pairs ? 4 : 2);
  add1(a, l, LAYOUT_LANE, 8, 0, x->row_pairs ? 2 : 1);
  add1(a, l, LAYOUT_WARP, w.cols, 1, 8 * (int64_t)c.n8);
  add1(a, l, LAYOUT_WARP, w.rows, 0, x->m * (int64_t)c.blocks);
  return l;
}

/* PTX, p elements to a register: row g, k pt..; row g+8; then k p(t+4).. of both. */
struct layout *cg_layout_mma_a(struct arena *a, int64_t rows, int64_t cols, uint32_t steps,
                               struct cg_warps w, const struct cg_mma_atom *x) {
  struct cg_mma_cut c = cg_mma_cut(rows, cols, w, x);
  struct layout *l = layout_new(a, 2, (int64_t[]){rows, x->k * (int64_t)steps});
  add1(a, l, LAYOUT_REG, x->per, 1, 1);
  add1(a, l, LAYOUT_REG, x->m / 8, 0, x->row_pairs ? 1 : 8);
  add1(a, l, LAYOUT_REG, x->k / (4 * x->per), 1, 4 * (int64_t)x->per);
  add1(a, l, LAYOUT_REG, c.blocks, 0, x->m);
  add1(a, l, LAYOUT_REG, steps, 1, x->k);
  add1(a, l, LAYOUT_LANE, 4, 1, x->per);
  add1(a, l, LAYOUT_LANE, 8, 0, x->row_pairs ? 2 : 1);
  replicate(a, l, LAYOUT_WARP, w.cols);
  add1(a, l, LAYOUT_WARP, w.rows, 0, x->m * (int64_t)c.blocks);
  return l;
}

/* PTX: k pt.., col g; then k p(t+4).. */
struct layout *cg_layout_mma_b(struct arena *a, int64_t rows, int64_t cols, uint32_t steps,
                               struct cg_warps w, const struct cg_mma_atom *x) {
  struct cg_mma_cut c = cg_mma_cut(rows, cols, w, x);
  struct layout *l = layout_new(a, 2, (int64_t[]){x->k * (int64_t)steps, cols});
  add1(a, l, LAYOUT_REG, x->per, 0, 1);
  add1(a, l, LAYOUT_REG, x->k / (4 * x->per), 0, 4 * (int64_t)x->per);
  add_columns(a, l, x, c.n8);
  add1(a, l, LAYOUT_REG, steps, 0, x->k);
  add1(a, l, LAYOUT_LANE, 4, 0, x->per);
  add1(a, l, LAYOUT_LANE, 8, 1, x->col_pairs ? 2 : 1);
  add1(a, l, LAYOUT_WARP, w.cols, 1, 8 * (int64_t)c.n8);
  replicate(a, l, LAYOUT_WARP, w.rows);
  return l;
}

/* ---- wgmma ---- */

struct cg_wgmma_cut cg_wgmma_cut(int64_t rows, int64_t cols, struct cg_warps w, bool integers) {
  struct cg_wgmma_cut c = {0};
  int64_t groups = w.rows / 4, wide = w.cols ? cols / w.cols : 0;
  if (!groups || w.rows % 4 || rows % (64 * groups) || !wide || cols % w.cols)
    return c;
  c.blocks = (uint32_t)(rows / (64 * groups));
  c.atoms = (uint32_t)ceil_div(wide, 256);
  if (wide % (8 * (int64_t)c.atoms) == 0)
    c.n = (uint32_t)(wide / c.atoms);
  if (integers && c.n > 32 && c.n % 16)
    c.n = 0;
  return c;
}

/* PTX: warp w of the group, g = lane / 4, t = lane % 4; d0,d1: row 16w + g, cols 2t,2t+1; d2,d3:
 * row + 8; then 8 columns on. */
struct layout *cg_layout_wgmma_acc(struct arena *a, int64_t rows, int64_t cols, struct cg_warps w) {
  struct cg_wgmma_cut c = cg_wgmma_cut(rows, cols, w, false);
  struct layout *l = layout_new(a, 2, (int64_t[]){rows, cols});
  KILN_ASSERT(c.n);
  add1(a, l, LAYOUT_REG, 2, 1, 1);
  add1(a, l, LAYOUT_REG, 2, 0, 8);
  add1(a, l, LAYOUT_REG, c.atoms * c.n / 8, 1, 8);
  add1(a, l, LAYOUT_REG, c.blocks, 0, 64);
  add1(a, l, LAYOUT_LANE, 4, 1, 2);
  add1(a, l, LAYOUT_LANE, 8, 0, 1);
  add1(a, l, LAYOUT_WARP, 4, 0, 16);
  add1(a, l, LAYOUT_WARP, w.rows / 4, 0, 64 * (int64_t)c.blocks);
  add1(a, l, LAYOUT_WARP, w.cols, 1, c.atoms * (int64_t)c.n);
  return l;
}

/* PTX, p elements to a register: row g, k pt..; row g + 8; then k p(t + 4).. of both. */
struct layout *cg_layout_wgmma_a(struct arena *a, int64_t rows, int64_t k, struct cg_warps w,
                                 uint32_t bits) {
  struct layout *l = layout_new(a, 2, (int64_t[]){rows, k});
  int64_t per = 32 / bits, groups = w.rows / 4, blocks = rows / (64 * groups);
  KILN_ASSERT(rows == 64 * groups * blocks && k % (8 * per) == 0);
  add1(a, l, LAYOUT_REG, (uint32_t)per, 1, 1);
  add1(a, l, LAYOUT_REG, 2, 0, 8);
  add1(a, l, LAYOUT_REG, (uint32_t)(k / (4 * per)), 1, 4 * per);
  add1(a, l, LAYOUT_REG, (uint32_t)blocks, 0, 64);
  add1(a, l, LAYOUT_LANE, 4, 1, per);
  add1(a, l, LAYOUT_LANE, 8, 0, 1);
  add1(a, l, LAYOUT_WARP, 4, 0, 16);
  add1(a, l, LAYOUT_WARP, (uint32_t)groups, 0, 64 * blocks);
  replicate(a, l, LAYOUT_WARP, w.cols);
  return l;
}

/* ---- multiply-add ---- */

struct layout *cg_layout_fma_acc(struct arena *a, int64_t rows, int64_t cols, struct cg_warps w,
                                 bool rows_adjacent, bool cols_adjacent, uint32_t vec) {
  enum { LANE_ROWS = 4, LANE_COLS = 8 };
  struct layout *l = layout_new(a, 2, (int64_t[]){rows, cols});
  int64_t warp_rows = LANE_ROWS * (int64_t)vec, warp_cols = LANE_COLS * (int64_t)vec;
  int64_t block_rows = warp_rows * w.rows, block_cols = warp_cols * w.cols;
  /* All columns of a row first, so that the products of one row of a follow each other. */
  add1(a, l, LAYOUT_REG, vec, 1, cols_adjacent ? 1 : LANE_COLS);
  add1(a, l, LAYOUT_REG, (uint32_t)ceil_div(cols, block_cols), 1, block_cols);
  add1(a, l, LAYOUT_REG, vec, 0, rows_adjacent ? 1 : LANE_ROWS);
  add1(a, l, LAYOUT_REG, (uint32_t)ceil_div(rows, block_rows), 0, block_rows);
  add1(a, l, LAYOUT_LANE, LANE_COLS, 1, cols_adjacent ? (int64_t)vec : 1);
  add1(a, l, LAYOUT_LANE, LANE_ROWS, 0, rows_adjacent ? (int64_t)vec : 1);
  add1(a, l, LAYOUT_WARP, w.cols, 1, warp_cols);
  add1(a, l, LAYOUT_WARP, w.rows, 0, warp_rows);
  return l;
}

/* ---- memory ---- */

static uint32_t pow2_up(int64_t n, uint32_t most) {
  uint32_t p = 1;
  while (p < most && p < n)
    p *= 2;
  return p;
}

/* The largest divisor of n that is at most `most`. */
static uint32_t divisor_up_to(uint32_t n, int64_t most) {
  uint32_t d = most < n ? (uint32_t)most : n;
  while (d > 1 && n % d)
    d--;
  return d ? d : 1;
}

/* adj elements along adim, beside vec along vdim, to a thread; lanes go along vdim first, up to
 * `most` of them, then along the others, then along vdim again. */
static struct layout *blocked(struct arena *a, uint32_t rank, const int64_t *shape, uint32_t vdim,
                              uint32_t vec, uint32_t adim, uint32_t adj, uint32_t most,
                              uint32_t warps, int reduce_axis) {
  struct layout *l = layout_new(a, rank, shape);
  uint32_t order[LAYOUT_MAX_RANK], n = 0, lanes = 32;
  int64_t left[LAYOUT_MAX_RANK], at[LAYOUT_MAX_RANK];
  order[n++] = vdim;
  for (uint32_t d = rank; d-- > 0;)
    if (d != vdim)
      order[n++] = d;
  for (uint32_t d = 0; d < rank; d++) {
    at[d] = d == vdim ? (int64_t)vec : d == adim ? (int64_t)adj : 1;
    left[d] = ceil_div(shape[d], at[d]);
  }
  add1(a, l, LAYOUT_REG, vec, vdim, 1);
  if (adim != vdim)
    add1(a, l, LAYOUT_REG, adj, adim, 1);
  for (uint32_t i = 0; i <= n; i++) {
    uint32_t d = order[i % n], take = pow2_up(left[d], i == 0 ? min_u32(most, lanes) : lanes);
    add1(a, l, LAYOUT_LANE, take, d, at[d]);
    lanes /= take;
    at[d] *= take;
    left[d] = ceil_div(left[d], take);
  }
  replicate(a, l, LAYOUT_LANE, lanes);
  /* Warps: dims in order, but a reduced one last. */
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < n; i++) {
      uint32_t d = order[i];
      if (((int)d == reduce_axis) != (pass == 1))
        continue;
      uint32_t take = divisor_up_to(warps, left[d]);
      add1(a, l, LAYOUT_WARP, take, d, at[d]);
      warps /= take;
      at[d] *= take;
      left[d] = ceil_div(left[d], take);
    }
  replicate(a, l, LAYOUT_WARP, warps);
  for (uint32_t i = 0; i < n; i++)
    add1(a, l, LAYOUT_REG, (uint32_t)left[order[i]], order[i], at[order[i]]);
  return l;
}

struct layout *cg_layout_blocked(struct arena *a, uint32_t rank, const int64_t *shape,
                                 uint32_t vdim, uint32_t vec, uint32_t warps, int reduce_axis) {
  return blocked(a, rank, shape, vdim, vec, vdim, 1, 32, warps, reduce_axis);
}

struct layout *cg_layout_turning(struct arena *a, uint32_t rank, const int64_t *shape,
                                 uint32_t vdim, uint32_t vec, uint32_t adim, uint32_t bytes,
                                 uint32_t warps) {
  enum { ACCESS = 16, LINE = 128 };
  struct layout *plain = cg_layout_blocked(a, rank, shape, vdim, vec, warps, -1);
  uint32_t most = LINE / (vec * bytes);
  for (uint32_t adj = ACCESS / bytes; adj > 1 && adim != vdim; adj /= 2) {
    struct layout *l = blocked(a, rank, shape, vdim, vec, adim, adj, most, warps, -1);
    if (layout_extent(l, LAYOUT_REG) <= layout_extent(plain, LAYOUT_REG))
      return l;
  }
  return plain;
}

/* ---- derived layouts ---- */

static bool moves(const struct layout_mode *m, uint32_t rank) {
  for (uint32_t d = 0; d < rank; d++)
    if (m->step[d])
      return true;
  return false;
}

struct layout *cg_layout_slice(struct arena *a, const struct layout *l, uint32_t dims) {
  int64_t shape[LAYOUT_MAX_RANK];
  for (uint32_t d = 0; d < l->rank; d++)
    shape[d] = dims >> d & 1 ? 1 : l->shape[d];
  struct layout *s = layout_new(a, l->rank, shape);
  for (uint32_t i = 0; i < l->modes.n; i++) {
    struct layout_mode m = l->modes.at[i];
    for (uint32_t d = 0; d < l->rank; d++)
      if (dims >> d & 1)
        m.step[d] = 0;
    if (m.hw != LAYOUT_REG || moves(&m, l->rank))
      layout_add(a, s, m.hw, m.extent, m.step);
  }
  return s;
}

struct layout *cg_layout_permute(struct arena *a, const struct layout *l, const int64_t *perm) {
  int64_t shape[LAYOUT_MAX_RANK], step[LAYOUT_MAX_RANK];
  for (uint32_t d = 0; d < l->rank; d++)
    shape[d] = l->shape[perm[d]];
  struct layout *p = layout_new(a, l->rank, shape);
  for (uint32_t i = 0; i < l->modes.n; i++) {
    for (uint32_t d = 0; d < l->rank; d++)
      step[d] = l->modes.at[i].step[perm[d]];
    layout_add(a, p, l->modes.at[i].hw, l->modes.at[i].extent, step);
  }
  return p;
}

struct layout *cg_layout_reshape(struct arena *a, const struct layout *l, uint32_t rank,
                                 const int64_t *shape) {
  /* from[d]: the dim of l that dim d of the new shape is, or -1 for a new unit dim. */
  int from[LAYOUT_MAX_RANK];
  uint32_t k = 0;
  for (uint32_t d = 0; d < rank; d++) {
    while (k < l->rank && l->shape[k] == 1 && shape[d] != 1)
      k++;
    from[d] = -1;
    if (k < l->rank && l->shape[k] == shape[d])
      from[d] = (int)k++;
    else if (shape[d] != 1)
      return NULL;
  }
  for (; k < l->rank; k++)
    if (l->shape[k] != 1)
      return NULL;
  /* A unit dim that registers walk beyond is padding there; dropping it would make copies of it. */
  for (uint32_t d = 0; d < l->rank; d++)
    if (l->shape[d] == 1 && cg_layout_cover(l, d) > 1)
      return NULL;
  struct layout *r = layout_new(a, rank, shape);
  for (uint32_t i = 0; i < l->modes.n; i++) {
    const struct layout_mode *m = &l->modes.at[i];
    int64_t step[LAYOUT_MAX_RANK] = {0};
    for (uint32_t d = 0; d < rank; d++)
      step[d] = from[d] < 0 ? 0 : m->step[from[d]];
    layout_add(a, r, m->hw, m->extent, step);
  }
  return r;
}

struct layout *cg_layout_refine(struct arena *a, const struct layout *l, uint32_t dim,
                                uint32_t parts) {
  int64_t shape[LAYOUT_MAX_RANK];
  for (uint32_t d = 0; d < l->rank; d++)
    shape[d] = l->shape[d] * (d == dim ? (int64_t)parts : 1);
  struct layout *x = layout_new(a, l->rank, shape);
  /* Adjacent elements stay one digit: equal layouts are written alike. */
  const struct layout_mode *first = l->modes.n ? &l->modes.at[0] : NULL;
  bool joins = first && first->hw == LAYOUT_REG;
  for (uint32_t d = 0; d < l->rank && joins; d++)
    joins = first->step[d] == (d == dim);
  add1(a, x, LAYOUT_REG, joins ? parts * first->extent : parts, dim, 1);
  for (uint32_t i = joins; i < l->modes.n; i++) {
    struct layout_mode m = l->modes.at[i];
    m.step[dim] *= parts;
    layout_add(a, x, m.hw, m.extent, m.step);
  }
  return x;
}

struct layout *cg_layout_coarsen(struct arena *a, const struct layout *l, uint32_t dim,
                                 uint32_t parts) {
  int64_t shape[LAYOUT_MAX_RANK];
  for (uint32_t d = 0; d < l->rank; d++)
    shape[d] = l->shape[d] / (d == dim ? (int64_t)parts : 1);
  struct layout *x = layout_new(a, l->rank, shape);
  uint32_t left = parts; /* of the parts, those whose digit has not come yet */
  for (uint32_t i = 0; i < l->modes.n; i++) {
    struct layout_mode m = l->modes.at[i];
    if (left > 1) {
      uint32_t take = m.extent < left ? m.extent : left;
      for (uint32_t d = 0; d < l->rank; d++)
        if (m.hw != LAYOUT_REG || m.step[d] != (d == dim ? (int64_t)(parts / left) : 0))
          return NULL;
      if (m.extent % take || left % take)
        return NULL;
      left /= take;
      m.extent /= take;
      m.step[dim] *= take;
    }
    if (m.step[dim] % parts)
      return NULL;
    m.step[dim] /= parts;
    if (m.extent > 1)
      layout_add(a, x, m.hw, m.extent, m.step);
  }
  return left > 1 ? NULL : x;
}

/* ---- questions ---- */

int64_t cg_layout_cover(const struct layout *l, uint32_t dim) {
  int64_t last = 0;
  for (uint32_t i = 0; i < l->modes.n; i++)
    last += (int64_t)(l->modes.at[i].extent - 1) * l->modes.at[i].step[dim];
  return last + 1;
}

bool cg_layout_spans(const struct layout *l, enum layout_hw hw, uint32_t dim) {
  for (uint32_t i = 0; i < l->modes.n; i++)
    if (l->modes.at[i].hw == hw && l->modes.at[i].step[dim])
      return true;
  return false;
}

uint32_t cg_layout_run(const struct layout *l, uint32_t dim) {
  uint32_t run = 1;
  for (uint32_t i = 0; i < l->modes.n && l->modes.at[i].hw == LAYOUT_REG; i++) {
    const struct layout_mode *m = &l->modes.at[i];
    for (uint32_t d = 0; d < l->rank; d++)
      if (m->step[d] != (d == dim ? (int64_t)run : 0))
        return run;
    run = min_u32(run * m->extent, 1u << 20);
  }
  return run;
}

uint32_t cg_aligned_run(const struct layout *x, uint32_t dim, uint32_t most) {
  uint32_t run = cg_layout_run(x, dim), v = 1;
  while (v * 2 <= most && run % (v * 2) == 0)
    v *= 2;
  uint32_t covered = 1;
  for (uint32_t i = 0; i < x->modes.n; i++) {
    const struct layout_mode *m = &x->modes.at[i];
    if (m->hw == LAYOUT_REG && covered < run) {
      covered *= m->extent;
      continue;
    }
    while (v > 1 && m->step[dim] % v)
      v /= 2;
  }
  return v;
}

int64_t cg_access_cost(const struct layout *l, uint32_t vdim, uint32_t vec, int64_t bytes) {
  enum { LANES = 32, SECTOR = 32, PASS = 4 };
  int64_t row[LANES], sector[LANES], n = 0;
  uint32_t w = cg_aligned_run(l, vdim, vec);
  for (uint32_t lane = 0; lane < LANES; lane++) {
    uint32_t hw[LAYOUT_HW_COUNT] = {[LAYOUT_LANE] = lane};
    int64_t coord[LAYOUT_MAX_RANK], at = 0;
    bool inside = true;
    layout_coord(l, hw, coord);
    for (uint32_t d = 0; d < l->rank; d++) {
      inside = inside && coord[d] < l->shape[d];
      at = d == vdim ? at : at * l->shape[d] + coord[d];
    }
    int64_t k = 0;
    row[n] = at;
    sector[n] = coord[vdim] * bytes / SECTOR;
    while (k < n && (row[k] != row[n] || sector[k] != sector[n]))
      k++;
    n += inside && k == n;
  }
  n = (n + PASS) * (layout_extent(l, LAYOUT_REG) / w);
  for (uint32_t i = 0; i < l->modes.n; i++)
    if (l->modes.at[i].hw == LAYOUT_WARP && moves(&l->modes.at[i], l->rank))
      n *= l->modes.at[i].extent;
  return n;
}
