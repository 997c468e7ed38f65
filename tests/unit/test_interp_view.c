/* Views in the interpreter: random chains of view ops on strided tensors against their definition,
 * coordinate by coordinate; extreme offsets and sizes; reshapes that are none; races through views;
 * tensors of more than 2^31 elements. */
#include "help_interp.h"
#include "help_ref.h"

#include <string.h>
#include <sys/mman.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

enum { MAX_OPS = 6, CELLS = 4096, MAX_TILE = 256 };

/* ---- the definition ---- */

struct view_op {
  enum ir_opcode op;
  uint32_t axis;
  int64_t n;                                      /* at: index; every: count */
  int64_t offset[IR_MAX_RANK], size[IR_MAX_RANK]; /* slice; reshape: size */
  int64_t perm[IR_MAX_RANK];
  uint32_t rank; /* of the result */
  int64_t dim[IR_MAX_RANK];
};

struct chain {
  uint32_t n_ops, rank; /* rank, dim: of the argument */
  int64_t dim[IR_MAX_RANK], stride[IR_MAX_RANK], offset;
  struct view_op op[MAX_OPS];
};

static uint32_t rank_after(const struct chain *c, uint32_t n) {
  return n ? c->op[n - 1].rank : c->rank;
}

static const int64_t *dim_after(const struct chain *c, uint32_t n) {
  return n ? c->op[n - 1].dim : c->dim;
}

/* The element that coordinate x of the view after the first n ops stands for; -1 out of range. */
static int64_t element_of(const struct chain *c, uint32_t n, const int64_t *x) {
  for (uint32_t d = 0; d < rank_after(c, n); d++)
    if (x[d] < 0 || x[d] >= dim_after(c, n)[d])
      return -1;
  if (!n) {
    int64_t at = c->offset;
    for (uint32_t d = 0; d < c->rank; d++)
      at += x[d] * c->stride[d];
    return at;
  }
  const struct view_op *v = &c->op[n - 1];
  int64_t y[IR_MAX_RANK] = {0};
  uint32_t rank = rank_after(c, n - 1);
  switch ((int)v->op) {
  case IR_VIEW_AT:
    for (uint32_t d = 0; d < rank; d++)
      y[d] = d < v->axis ? x[d] : d == v->axis ? v->n : x[d - 1];
    break;
  case IR_VIEW_SLICE:
    for (uint32_t d = 0; d < rank; d++)
      if (__builtin_add_overflow(x[d], v->offset[d], &y[d]))
        return -1;
    break;
  case IR_VIEW_TRANSPOSE:
    for (uint32_t d = 0; d < rank; d++)
      y[v->perm[d]] = x[d];
    break;
  case IR_VIEW_EVERY:
    memcpy(y, x, sizeof y);
    y[v->axis] /= v->n;
    break;
  default: { /* the same place in row-major order */
    int64_t at = 0;
    for (uint32_t d = 0; d < v->rank; d++)
      at = at * v->dim[d] + x[d];
    for (uint32_t d = rank; d-- > 0;) {
      y[d] = at % dim_after(c, n - 1)[d];
      at /= dim_after(c, n - 1)[d];
    }
  }
  }
  return element_of(c, n - 1, y);
}

/* ---- the interpreter ---- */

static struct ir_val build_view(struct hi *h, struct ir_val view, const struct view_op *v) {
  struct ir_val in[1 + 2 * IR_MAX_RANK] = {view};
  struct ir_type t = ir_type_of(h->m, view), r = t;
  uint32_t n = 1;
  r.rank = (uint8_t)v->rank;
  memset(r.dim, 0, sizeof r.dim);
  switch ((int)v->op) {
  case IR_VIEW_AT:
    in[n++] = hi_index(h, v->n);
    for (uint32_t d = 0; d < r.rank; d++)
      r.dim[d] = t.dim[d + (d >= v->axis)];
    break;
  case IR_VIEW_SLICE:
    for (uint32_t d = 0; d < t.rank; d++)
      in[n++] = hi_index(h, v->offset[d]);
    for (uint32_t d = 0; d < t.rank; d++) {
      in[n++] = hi_index(h, v->size[d]);
      r.dim[d] = v->size[d] % 2 && v->size[d] > 0 ? v->size[d] : IR_DYN; /* either may be said */
    }
    break;
  case IR_VIEW_TRANSPOSE:
    for (uint32_t d = 0; d < t.rank; d++)
      r.dim[d] = t.dim[v->perm[d]];
    break;
  case IR_VIEW_EVERY:
    memcpy(r.dim, t.dim, sizeof r.dim);
    if (r.dim[v->axis] != IR_DYN)
      r.dim[v->axis] *= v->n;
    break;
  default:
    for (uint32_t d = 0; d < v->rank; d++) {
      in[n++] = hi_index(h, v->size[d]);
      r.dim[d] = IR_DYN;
    }
  }
  struct ir_op o = ir_build(&h->b, v->op, n, in, 1, &r);
  if (v->op == IR_VIEW_AT || v->op == IR_VIEW_EVERY)
    ir_set_attr(h->m, o, (struct ir_attr){.key = IR_ATTR_axis, .i = v->axis});
  if (v->op == IR_VIEW_EVERY)
    ir_set_attr(h->m, o, (struct ir_attr){.key = IR_ATTR_count, .i = v->n});
  if (v->op == IR_VIEW_TRANSPOSE)
    ir_set_attr(h->m, o, (struct ir_attr){.key = IR_ATTR_perm, .ints = v->perm, .n_ints = t.rank});
  return ir_op_at(h->m, o)->out[0];
}

static struct ir_val build_chain(struct hi *h, const struct chain *c, struct ir_val view) {
  for (uint32_t i = 0; i < c->n_ops; i++)
    view = build_view(h, view, &c->op[i]);
  return view;
}

static struct ir_val load_view(struct hi *h, struct ir_val view, const int64_t *at,
                               const int64_t *tile) {
  struct ir_val in[1 + IR_MAX_RANK] = {view};
  struct ir_type t = ir_type_of(h->m, view);
  for (uint32_t d = 0; d < t.rank; d++)
    in[1 + d] = hi_index(h, at[d]);
  return ir_build1(&h->b, IR_LOAD, ir_tile((enum dtype)t.dtype, t.rank, tile), 1u + t.rank, in);
}

static void store_view(struct hi *h, struct ir_val view, const int64_t *at, struct ir_val x) {
  struct ir_val in[2 + IR_MAX_RANK] = {view};
  uint32_t rank = ir_type_of(h->m, view).rank;
  for (uint32_t d = 0; d < rank; d++)
    in[1 + d] = hi_index(h, at[d]);
  in[1 + rank] = x;
  ir_build(&h->b, IR_STORE, 2 + rank, in, 0, NULL);
}

static struct ir_val dim_of(struct hi *h, struct ir_val view, uint32_t axis) {
  struct ir_val v = ir_build1(&h->b, IR_DIM, ir_scalar(DT_INDEX), 1, &view);
  ir_set_attr(h->m, ir_value_at(h->m, v)->def, (struct ir_attr){.key = IR_ATTR_axis, .i = axis});
  return v;
}

static const char *const names[] = {"", "A", "A,B", "A,B,C", "A,B,C,D", "A,B,C,D,E"};

/* X or, for writing, Y through the chain; the tile at `at` lands in, comes from, O. */
static void start(struct hi *h, const struct chain *c, enum ir_arg_kind kind, enum dtype t,
                  void *data, const int64_t *tile, void *flat) {
  uint32_t rank = rank_after(c, c->n_ops);
  char dims[120] = "";
  size_t n = 0;
  int64_t elems = 1;
  for (uint32_t d = 0; d < rank; d++) {
    n += (size_t)snprintf(dims + n, sizeof dims - n, "%s%lld", d ? "," : "", (long long)tile[d]);
    elems *= tile[d];
  }
  assert_true(elems <= MAX_TILE);
  hi_init(h);
  hi_tensor(h, "X", kind, t, names[c->rank]);
  hi_tensor(h, "O", IR_ARG_INOUT, t, dims);
  hi_tensor(h, "S", IR_ARG_OUT, DT_S64, "5");
  hi_begin(h, "1");
  struct interp_tensor x = {.data = data, .dtype = t, .rank = c->rank, .offset = c->offset};
  memcpy(x.dim, c->dim, sizeof x.dim);
  memcpy(x.stride, c->stride, sizeof x.stride);
  h->value[0].tensor = x;
  h->value[1].tensor = interp_dense(flat, t, rank, tile);
}

static const int64_t zeros[IR_MAX_RANK];

static void check_chain(const struct chain *c, const int64_t *at, const int64_t *tile, bool write) {
  static int32_t data[CELLS], want[CELLS], flat[MAX_TILE];
  int64_t sizes[5] = {0}, five = 5;
  uint32_t rank = rank_after(c, c->n_ops);
  struct hi h;
  for (int32_t i = 0; i < CELLS; i++)
    data[i] = want[i] = i + 1;
  for (int32_t i = 0; i < MAX_TILE; i++)
    flat[i] = -1 - i;
  start(&h, c, write ? IR_ARG_INOUT : IR_ARG_IN, DT_S32, data, tile, flat);
  struct ir_val view = build_chain(&h, c, h.arg[0]);
  if (write)
    store_view(&h, view, at, load_view(&h, h.arg[1], zeros, tile));
  else
    store_view(&h, h.arg[1], zeros, load_view(&h, view, at, tile));
  for (uint32_t d = 0; d < rank; d++) {
    int64_t d64 = d, one = 1;
    store_view(&h, h.arg[2], &d64, hi_splat(&h, hi_cast(&h, DT_S64, dim_of(&h, view, d)), 1, &one));
  }
  hi_end(&h);
  h.value[2].tensor = interp_dense(sizes, DT_S64, 1, &five);
  hi_run_ok(&h);
  hi_free(&h);
  for (uint32_t d = 0; d < rank; d++)
    assert_int_equal(sizes[d], dim_after(c, c->n_ops)[d]);
  int64_t x[IR_MAX_RANK], i[IR_MAX_RANK] = {0};
  for (int32_t k = 0;; k++) {
    bool far = false;
    for (uint32_t d = 0; d < rank; d++)
      far |= __builtin_add_overflow(at[d], i[d], &x[d]);
    int64_t e = far ? -1 : element_of(c, c->n_ops, x);
    if (write && e >= 0)
      want[e] = -1 - k; /* the last one in order stays */
    else if (!write && flat[k] != (e < 0 ? 0 : e + 1))
      fail_msg("cell %d is %d, its element %lld", k, flat[k], (long long)e);
    uint32_t d = rank;
    while (d > 0 && ++i[d - 1] == tile[d - 1])
      i[--d] = 0;
    if (!d)
      break;
  }
  if (memcmp(want, data, sizeof data) != 0)
    fail_msg("elements were written that the view does not have, or the wrong ones");
}

/* ---- random chains ---- */

static int64_t draw(uint64_t *seed, int64_t lo, int64_t hi) {
  return lo + (int64_t)(ref_random(seed) % (uint64_t)(hi - lo + 1));
}

static void draw_tensor(struct chain *c, uint64_t *seed, bool overlap) {
  c->rank = (uint32_t)draw(seed, 1, 5);
  c->offset = 0;
  uint32_t order[IR_MAX_RANK];
  int64_t span = 1;
  for (uint32_t d = 0; d < c->rank; d++) {
    c->dim[d] = draw(seed, draw(seed, 0, 9) ? 1 : 0, c->rank > 3 ? 4 : 6);
    order[d] = d;
  }
  for (uint32_t d = c->rank; d-- > 1;) {
    uint32_t k = (uint32_t)draw(seed, 0, d), t = order[d];
    order[d] = order[k];
    order[k] = t;
  }
  for (uint32_t j = 0; j < c->rank; j++) {
    uint32_t d = order[j];
    c->stride[d] = span + (draw(seed, 0, 3) ? 0 : draw(seed, 0, 1));
    span = c->stride[d] * (c->dim[d] ? c->dim[d] : 1);
    if (overlap && !draw(seed, 0, 4))
      c->stride[d] = 0;
    if (!draw(seed, 0, 3)) {
      c->stride[d] = -c->stride[d];
      c->offset -= c->dim[d] ? (c->dim[d] - 1) * c->stride[d] : 0;
    }
  }
}

/* A reshape that moves no data: a dim is split in two. False where no dim can be. */
static bool draw_split(struct view_op *v, uint32_t rank, const int64_t *dim, uint64_t *seed) {
  uint32_t axis = (uint32_t)draw(seed, 0, rank - 1);
  int64_t by = draw(seed, 1, 3);
  if (rank == IR_MAX_RANK || dim[axis] % by)
    return false;
  v->rank = rank + 1;
  for (uint32_t d = 0; d <= rank; d++)
    v->size[d] = d < axis ? dim[d] : d == axis ? dim[d] / by : d == axis + 1 ? by : dim[d - 1];
  memcpy(v->dim, v->size, sizeof v->dim);
  return true;
}

static void draw_op(struct chain *c, uint64_t *seed, bool may_repeat, bool *whole) {
  struct view_op *v = &c->op[c->n_ops];
  uint32_t rank = rank_after(c, c->n_ops);
  const int64_t *dim = dim_after(c, c->n_ops);
  *v = (struct view_op){.rank = rank, .axis = (uint32_t)draw(seed, 0, rank - 1)};
  memcpy(v->dim, dim, sizeof v->dim);
  switch (draw(seed, 0, 4)) {
  case 0:
    if (rank < 2)
      return;
    v->op = IR_VIEW_AT;
    v->n = draw(seed, draw(seed, 0, 5) ? 0 : -1, dim[v->axis]);
    v->rank--;
    for (uint32_t d = v->axis; d < v->rank; d++)
      v->dim[d] = dim[d + 1];
    break;
  case 1:
    v->op = IR_VIEW_SLICE;
    *whole = false;
    for (uint32_t d = 0; d < rank; d++) {
      v->offset[d] = draw(seed, -2, dim[d] + 1);
      v->size[d] = draw(seed, draw(seed, 0, 9) ? 1 : -3, dim[d] + 2);
      v->dim[d] = v->size[d] < 0 ? 0 : v->size[d];
    }
    break;
  case 2:
    v->op = IR_VIEW_TRANSPOSE;
    for (uint32_t d = 0; d < rank; d++)
      v->perm[d] = d;
    for (uint32_t d = rank; d-- > 1;) {
      uint32_t k = (uint32_t)draw(seed, 0, d);
      int64_t t = v->perm[d];
      v->perm[d] = v->perm[k];
      v->perm[k] = t;
    }
    for (uint32_t d = 0; d < rank; d++)
      v->dim[d] = dim[v->perm[d]];
    break;
  case 3:
    if (!may_repeat)
      return;
    v->op = IR_VIEW_EVERY;
    *whole = false;
    v->n = draw(seed, 1, 3);
    v->dim[v->axis] *= v->n;
    break;
  default:
    v->op = IR_VIEW_RESHAPE;
    if (!*whole || !draw_split(v, rank, dim, seed))
      return;
  }
  c->n_ops++;
}

static void test_random_chains(void **state) {
  (void)state;
  uint32_t kinds[IR_OPCODE_COUNT] = {0};
  for (uint64_t k = 1; k <= 6000; k++) {
    uint64_t seed = k;
    struct chain c = {0};
    bool write = k % 3 == 0, whole = true;
    draw_tensor(&c, &seed, !write);
    for (int64_t tries = draw(&seed, 0, MAX_OPS); tries > 0; tries--)
      draw_op(&c, &seed, !write, &whole);
    for (uint32_t i = 0; i < c.n_ops; i++)
      kinds[c.op[i].op]++;
    uint32_t rank = rank_after(&c, c.n_ops);
    int64_t at[IR_MAX_RANK], tile[IR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++) {
      at[d] = draw(&seed, draw(&seed, 0, 2) ? 0 : -2, 2);
      tile[d] = draw(&seed, 1, rank > 3 ? 3 : rank > 2 ? 6 : 12);
    }
    check_chain(&c, at, tile, write);
  }
  static const enum ir_opcode ops[] = {IR_VIEW_AT, IR_VIEW_SLICE, IR_VIEW_TRANSPOSE, IR_VIEW_EVERY,
                                       IR_VIEW_RESHAPE};
  for (size_t i = 0; i < COUNT(ops); i++)
    assert_true(kinds[ops[i]] > 500);
}

/* Slices at the ends of int64: nothing overflows, what is in range stays right. */
static void test_extreme_slices(void **state) {
  (void)state;
  static const int64_t ends[] = {
      INT64_MIN,        INT64_MIN + 1, -(INT64_C(1) << 62), -(INT64_C(1) << 62) + 2, -3, 0, 2,
      INT64_C(1) << 62, INT64_MAX};
  for (size_t a = 0; a < COUNT(ends); a++)
    for (size_t b = 0; b < COUNT(ends); b++)
      for (size_t x = 0; x < COUNT(ends); x++)
        for (int every = 0; every < 2; every++) {
          struct chain c = {.rank = 1, .dim = {7}, .stride = {3}, .offset = 1};
          if (every)
            c.op[c.n_ops++] = (struct view_op){.op = IR_VIEW_EVERY, .n = 2, .rank = 1, .dim = {14}};
          int64_t size = ends[b] < 0 ? 0 : ends[b] > INT64_C(1) << 62 ? INT64_C(1) << 62 : ends[b];
          struct view_op slice = {.op = IR_VIEW_SLICE,
                                  .rank = 1,
                                  .offset = {ends[a]},
                                  .size = {ends[b]},
                                  .dim = {size}};
          c.op[c.n_ops++] = slice;
          slice.offset[0] = ends[x];
          slice.size[0] = slice.dim[0] = 9;
          c.op[c.n_ops++] = slice;
          const int64_t at = ends[x], tile = 5, zero = 0;
          check_chain(&c, &at, &tile, false);
          check_chain(&c, &zero, &tile, false);
        }
}

/* ---- reshapes ---- */

struct reshape_case {
  uint32_t rank;
  int64_t dim[3], stride[3];
  int64_t at, n; /* a slice of dim 0; n < 0: none */
  uint32_t new_rank;
  int64_t size[4];
  const char *error; /* NULL: it is one */
};

static void test_reshapes(void **state) {
  (void)state;
  static const struct reshape_case cases[] = {
      {2, {4, 6}, {6, 1}, 0, -1, 1, {24}, NULL},
      {2, {4, 6}, {6, 1}, 0, -1, 3, {2, 3, 4}, NULL},
      {2, {4, 6}, {6, 1}, 0, -1, 4, {1, 24, 1, 1}, NULL},
      {2, {4, 6}, {12, 2}, 0, -1, 2, {8, 3}, NULL},
      {2, {4, 6}, {-6, -1}, 0, -1, 1, {24}, NULL},
      {3, {4, 1, 6}, {6, 99, 1}, 0, -1, 2, {12, 2}, NULL},
      {2, {4, 6}, {0, 0}, 0, -1, 2, {3, 8}, NULL},
      {2, {4, 6}, {7, 1}, 0, -1, 1, {24}, "its dims 0 and 1 do not lie one after the other"},
      {2, {4, 6}, {7, 1}, 0, -1, 3, {4, 2, 3}, NULL},
      {2, {4, 6}, {7, 1}, 0, -1, 3, {2, 2, 6}, NULL},
      {2, {4, 6}, {7, 1}, 0, -1, 2, {6, 4}, "its dims 0 and 1 do not lie"},
      {2, {6, 4}, {1, 6}, 0, -1, 1, {24}, "its dims 0 and 1 do not lie"},
      {2, {4, 6}, {0, 1}, 0, -1, 1, {24}, "its dims 0 and 1 do not lie"},
      {3, {2, 2, 6}, {12, 6, 1}, 0, -1, 1, {25}, "24 elements cannot become 25"},
      {2, {4, 6}, {6, 1}, 1, 2, 1, {12}, NULL},
      {2, {4, 6}, {6, 1}, 2, 4, 2, {4, 6}, NULL},
      {2, {4, 6}, {6, 1}, 2, 4, 3, {4, 1, 6}, NULL},
      {2, {4, 6}, {6, 1}, 2, 4, 3, {4, 2, 3}, NULL},
      {2, {4, 6}, {6, 1}, 2, 4, 1, {24}, "its dim 0, of 4 elements, reaches outside"},
      {2, {4, 6}, {6, 1}, 0, 0, 2, {3, 0}, NULL},
      {2, {4, 6}, {6, 1}, 0, 0, 1, {6}, "0 elements cannot become 6"},
      {2, {4, 6}, {6, 1}, 4, 1, 1, {6}, NULL}, /* one row, out of range */
  };
  for (size_t k = 0; k < COUNT(cases); k++) {
    const struct reshape_case *r = &cases[k];
    struct chain c = {.rank = r->rank, .offset = 500};
    memcpy(c.dim, r->dim, sizeof r->dim);
    memcpy(c.stride, r->stride, sizeof r->stride);
    if (r->n >= 0) {
      struct view_op *s = &c.op[c.n_ops++];
      *s = (struct view_op){.op = IR_VIEW_SLICE, .rank = r->rank, .offset = {r->at}};
      for (uint32_t d = 0; d < r->rank; d++)
        s->dim[d] = s->size[d] = d ? r->dim[d] : r->n;
    }
    struct view_op *v = &c.op[c.n_ops++];
    *v = (struct view_op){.op = IR_VIEW_RESHAPE, .rank = r->new_rank};
    memcpy(v->size, r->size, sizeof r->size);
    memcpy(v->dim, r->size, sizeof r->size);
    const int64_t tile[IR_MAX_RANK] = {4, 4, 3, 2, 1}, row = 25;
    if (!r->error) {
      check_chain(&c, zeros, r->new_rank == 1 ? &row : tile, false);
      continue;
    }
    static int32_t data[CELLS], flat[MAX_TILE];
    struct hi h;
    int64_t five = 5;
    start(&h, &c, IR_ARG_IN, DT_S32, data, r->new_rank == 1 ? &row : tile, flat);
    struct ir_val view = build_chain(&h, &c, h.arg[0]);
    store_view(&h, h.arg[1], zeros, load_view(&h, view, zeros, r->new_rank == 1 ? &row : tile));
    hi_end(&h);
    int64_t sizes[5];
    h.value[2].tensor = interp_dense(sizes, DT_S64, 1, &five);
    assert_false(hi_run(&h));
    help_expect_diag(&h.diags, DIAG_OPERAND, r->error);
    hi_free(&h);
  }
}

/* A view that cannot be is no fault until something reads it. */
static void test_unread_fault(void **state) {
  (void)state;
  struct hi h;
  int32_t data[24] = {0}, flat[4] = {1, 1, 1, 1};
  int64_t four = 4, five = 5, sizes[5];
  struct chain c = {.rank = 1, .dim = {24}, .stride = {1}};
  const struct view_op bad = {.op = IR_VIEW_RESHAPE, .rank = 1, .size = {23}, .dim = {23}};
  for (int read = 0; read < 2; read++) {
    start(&h, &c, IR_ARG_IN, DT_S32, data, &four, flat);
    struct ir_val view = build_view(&h, h.arg[0], &bad);
    struct ir_val grid = hi_op2(&h, IR_EQ, h.grid[0], hi_index(&h, read ? 0 : 1));
    hi_if(&h, grid, 0, NULL);
    store_view(&h, h.arg[1], zeros, load_view(&h, view, zeros, &four));
    hi_yield(&h, 0, NULL);
    hi_yield(&h, 0, NULL);
    hi_end(&h);
    h.value[2].tensor = interp_dense(sizes, DT_S64, 1, &five);
    assert_int_equal(hi_run(&h), !read);
    hi_free(&h);
  }
}

static void test_too_long(void **state) {
  (void)state;
  struct hi h;
  int32_t data[1] = {0}, flat[4];
  int64_t four = 4, five = 5, sizes[5];
  struct chain c = {.rank = 1, .dim = {INT64_C(1) << 40}, .stride = {0}};
  struct view_op every = {.op = IR_VIEW_EVERY, .n = 1 << 22, .rank = 1};
  for (int twice = 0; twice < 2; twice++) {
    start(&h, &c, IR_ARG_IN, DT_S32, data, &four, flat);
    struct ir_val view = build_view(&h, h.arg[0], &every);
    if (twice)
      view = build_view(&h, view, &every);
    store_view(&h, h.arg[1], zeros, load_view(&h, view, zeros, &four));
    hi_end(&h);
    h.value[2].tensor = interp_dense(sizes, DT_S64, 1, &five);
    assert_int_equal(hi_run(&h), !twice);
    if (twice)
      help_expect_diag(&h.diags, DIAG_OPERAND, "longer than 2^62");
    hi_free(&h);
  }
}

/* ---- races through views ---- */

/* Program p writes row p of a transposed slice; with `shift`, the next program's first element
 * too. */
static void test_races(void **state) {
  (void)state;
  for (int shift = 0; shift < 2; shift++)
    for (int stride = 0; stride < 3; stride++) {
      struct hi h;
      static float o[200];
      hi_init(&h);
      h.opt.check_races = true;
      hi_tensor(&h, "O", IR_ARG_OUT, DT_F32, "M,N");
      hi_begin(&h, "4");
      const struct view_op slice = {
          .op = IR_VIEW_SLICE, .rank = 2, .offset = {1, 2}, .size = {5, 6}};
      const struct view_op turn = {.op = IR_VIEW_TRANSPOSE, .rank = 2, .perm = {1, 0}};
      struct ir_val view = build_view(&h, build_view(&h, h.arg[0], &slice), &turn);
      struct ir_val in[4] = {view, h.grid[0], hi_index(&h, 0),
                             hi_full(&h, DT_F32, 1, 1 + shift, 2)};
      ir_build(&h.b, IR_STORE, 4, in, 0, NULL);
      hi_end(&h);
      hi_bind(&h, 0, o, (int64_t[]){7, 9});
      struct interp_tensor *t = &h.value[0].tensor;
      if (stride == 1) { /* rows reversed */
        t->stride[0] = -9;
        t->offset = 6 * 9;
      } else if (stride == 2) { /* column-major */
        t->stride[0] = 1;
        t->stride[1] = 7;
      }
      assert_int_equal(hi_run(&h), !shift);
      if (shift)
        help_expect_diag(&h.diags, DIAG_RACE,
                         "'store' writes element (1, 3) of 'O', which another program writes");
      hi_free(&h);
    }
}

/* ---- far elements ---- */

/* Coordinates beyond 2^31 in a tensor whose rows are all the same memory. */
static void test_far_elements(void **state) {
  (void)state;
  static float row[16];
  for (int k = 0; k < 16; k++)
    row[k] = (float)k;
  const int64_t rows = INT64_C(51200) * 51200;
  struct chain c = {.rank = 3, .dim = {rows, 4, 16}, .stride = {0, 0, 1}};
  c.op[0] = (struct view_op){.op = IR_VIEW_AT, .axis = 0, .n = rows - 2, .rank = 2, .dim = {4, 16}};
  c.op[1] = (struct view_op){.op = IR_VIEW_SLICE, .rank = 2, .offset = {1, 3}, .size = {9, 9}};
  c.n_ops = 2;
  struct hi h;
  float got[2 * 4];
  int64_t sizes[5], five = 5;
  start(&h, &c, IR_ARG_IN, DT_F32, row, (int64_t[]){2, 4}, got);
  struct ir_val view = build_chain(&h, &c, h.arg[0]);
  store_view(&h, h.arg[1], zeros, load_view(&h, view, (int64_t[]){2, 6}, (int64_t[]){2, 4}));
  hi_end(&h);
  h.value[2].tensor = interp_dense(sizes, DT_S64, 1, &five);
  hi_run_ok(&h);
  hi_free(&h);
  for (int k = 0; k < 8; k++) /* row 2 of the slice is the tensor's last, column 8 the slice's */
    assert_true(got[k] == (k < 3 ? (float)(9 + k) : 0.0f));
}

/* [320, 2560, 3072] of e4m3: more than 2^31 bytes, touched at their far end only. */
static void test_large_tensor(void **state) {
  (void)state;
  const int64_t dim[3] = {320, 2560, 3072}, n = 320 * INT64_C(2560) * 3072;
  unsigned char got[8], *data = mmap(NULL, (size_t)n, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    print_message("not run: no room for %lld bytes\n", (long long)n);
    skip();
  }
  for (int k = 0; k < 8; k++)
    data[n - 8 + k] = (unsigned char)(0x38 + k);
  struct chain c = {.rank = 3, .dim = {320, 2560, 3072}, .stride = {2560 * 3072, 3072, 1}};
  c.op[0] = (struct view_op){.op = IR_VIEW_RESHAPE, .rank = 1, .size = {n}, .dim = {n}};
  c.op[1] = (struct view_op){.op = IR_VIEW_SLICE, .rank = 1, .offset = {n - 6}, .size = {100}};
  c.n_ops = 2;
  struct hi h;
  int64_t sizes[5], five = 5, eight = 8;
  start(&h, &c, IR_ARG_INOUT, DT_E4M3, data, &eight, got);
  struct ir_val view = build_chain(&h, &c, h.arg[0]);
  store_view(&h, h.arg[1], zeros, load_view(&h, view, zeros, &eight));
  struct ir_val far[3] = {hi_index(&h, 319), hi_index(&h, 2559), hi_index(&h, 3068)};
  hi_store(&h, 0, far, load_view(&h, h.arg[0], (int64_t[]){319, 2559, 3064}, (int64_t[]){1, 1, 8}));
  hi_end(&h);
  h.value[2].tensor = interp_dense(sizes, DT_S64, 1, &five);
  hi_bind(&h, 0, data, dim);
  hi_run_ok(&h);
  hi_free(&h);
  for (int k = 0; k < 8; k++)
    assert_int_equal(got[k], k < 6 ? 0x38 + 2 + k : 0);
  for (int k = 0; k < 4; k++) { /* what was 8 before the end was 0 there */
    assert_int_equal(data[n - 4 + k], 0x38 + k);
    assert_int_equal(data[n - 8 + k], 0x38 + k);
  }
  munmap(data, (size_t)n);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_chains), cmocka_unit_test(test_extreme_slices),
      cmocka_unit_test(test_reshapes),      cmocka_unit_test(test_unread_fault),
      cmocka_unit_test(test_too_long),      cmocka_unit_test(test_races),
      cmocka_unit_test(test_far_elements),  cmocka_unit_test(test_large_tensor),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
